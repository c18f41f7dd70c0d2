"""The ring between engine and front: order, wrap-around, full rings, and records larger than the ring."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator

import posix_ipc
import pytest

from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.shared_memory import create_memory
from wavesim_server import ring as module
from wavesim_server.ring import CAPACITY, MAGIC, READ, WRITTEN, PushResult, Ring

NAME = f"/wavesim.ring-test-{os.getpid()}"
LARGE = 1024 - 8  #: the largest payload that goes in one piece through 4096 bytes


@pytest.fixture(params=["shared", "private"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[Ring, Ring]]:
    """(writer, reader)"""
    if request.param == "private":
        both = Ring.create_private(4096)
        yield both, both
        return
    yield Ring.create(NAME, 4096), Ring.attach(NAME)
    posix_ipc.unlink_shared_memory(NAME)


@pytest.fixture
def ring() -> Iterator[Ring]:
    yield Ring.create(NAME, 4096)
    posix_ipc.unlink_shared_memory(NAME)


@pytest.mark.parametrize("greatest", [300, 20_000])
def test_order_and_wrap_around(ends: tuple[Ring, Ring], greatest: int) -> None:
    ring, reader = ends
    rng = random.Random(1)
    sent, got = [], []
    for k in range(1000):
        record = (k % 7, rng.randbytes(rng.randrange(greatest)))
        while not ring.push(*record):
            got += list(reader.pop_all())
        sent.append(record)
    got += list(reader.pop_all())
    assert got == sent
    assert ring.dropped == 0


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, LARGE - 1, LARGE, LARGE + 1, 2 * LARGE, 2 * LARGE + 1, 100_000])
def test_every_size_arrives_whole_and_alone(ends: tuple[Ring, Ring], size: int) -> None:
    ring, reader = ends
    payload = random.Random(size).randbytes(size)
    for _ in range(5):
        got = []
        while not ring.push(3, payload):
            got += list(reader.pop_all())
        got += list(reader.pop_all())
        assert got == [(3, payload)]


def test_a_full_ring_says_so(ring: Ring) -> None:
    count = 0
    while ring.push(1, bytes(100)) is PushResult.DONE:
        count += 1
    assert ring.push(1, bytes(100)) is PushResult.FULL
    assert count == 4096 // 112
    ring.count_dropped()
    assert ring.dropped == Ring.attach(NAME).dropped == 1
    assert len(list(Ring.attach(NAME).pop_all())) == count


def test_the_last_byte_of_the_ring_is_used(ring: Ring) -> None:
    reader = Ring.attach(NAME)
    for _ in range(3):
        assert all(ring.push(k, bytes([k]) * (512 - 8)) for k in range(8))
        assert not ring.push(9, b"")
        assert list(reader.pop_all()) == [(k, bytes([k]) * (512 - 8)) for k in range(8)]


def test_a_record_beyond_every_bound_is_refused_and_counted(ring: Ring, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", 10_000)
    reader = Ring.attach(NAME)
    assert ring.push(1, bytes(10_001)) is PushResult.REFUSED
    assert ring.push(1, bytes(10_001)), "nobody shall wait for it"
    assert ring.dropped == 2
    got = []
    while not ring.push(2, bytes(10_000)):
        got += list(reader.pop_all())
    assert [*got, *reader.pop_all()] == [(2, bytes(10_000))]


def test_a_large_record_given_up_in_the_middle_leaves_no_trace(ring: Ring) -> None:
    reader = Ring.attach(NAME)
    for give_up in (ring.count_dropped, lambda: None):  # reported, or noticed when another record is pushed
        for following in (b"small", random.Random(0).randbytes(9000)):
            before = ring.dropped
            assert ring.push(1, bytes(50_000)) is PushResult.FULL
            got = list(reader.pop_all())
            assert ring.push(1, bytes(50_000)) is PushResult.FULL
            give_up()
            while not ring.push(2, following):
                got += list(reader.pop_all())
            got += list(reader.pop_all())
            assert got == [(2, following)]
            assert ring.dropped == before + 1


@pytest.mark.parametrize("what", ["shifted", "length", "negative", "kind", "read", "ahead", "written"])
def test_damage_is_counted_and_skipped(ring: Ring, what: str) -> None:
    """Another process of the user has written over the ring: what it holds is lost, later records come."""
    reader = Ring.attach(NAME)
    assert ring.push(1, b"before") and list(reader.pop_all()) == [(1, b"before")]
    assert all(ring.push(2, bytes([9]) * 40) for _ in range(3))
    at, memory = 64 + 16, ring._memory
    if what == "shifted":
        memory[at : at + 144] = memory[at + 8 : at + 152]
    elif what in ("length", "negative"):
        memory[at : at + 4] = (10**6 if what == "length" else -8).to_bytes(4, "little", signed=True)
    elif what == "kind":
        memory[at + 4 : at + 8] = b"\xff" * 4
    else:
        place, value = {"read": (module.READ, 12), "ahead": (module.READ, 10**9), "written": (module.WRITTEN, 10**9)}[
            what
        ]
        ring._header[place] = value
    assert list(reader.pop_all()) == [] and ring.damaged == reader.damaged == 1
    assert ring.push(3, b"after") and list(reader.pop_all()) == [(3, b"after")]
    assert reader.damaged == 1


def test_a_reader_that_dies_in_the_middle_costs_that_record_alone(ring: Ring) -> None:
    first = Ring.attach(NAME)
    large = random.Random(0).randbytes(20_000)
    assert ring.push(1, b"before") and not ring.push(1, large)
    assert list(first.pop_all()) == [(1, b"before")]
    del first  # with the beginning of the large one
    second, got = Ring.attach(NAME), []
    while not ring.push(1, large):
        got += list(second.pop_all())
    for record in ((1, b"after"), (2, large), (3, b"end")):
        while not ring.push(*record):
            got += list(second.pop_all())
    got += list(second.pop_all())
    assert got == [(1, b"after"), (2, large), (3, b"end")]


def test_a_writer_that_dies_in_the_middle_costs_that_record_alone(ring: Ring) -> None:
    reader = Ring.attach(NAME)
    assert not ring.push(1, bytes(20_000))
    assert list(reader.pop_all()) == []
    heir = Ring.attach(NAME)
    assert heir.push(2, b"new")
    assert list(reader.pop_all()) == [(2, b"new")]


def test_a_pop_that_is_not_finished_goes_on(ring: Ring) -> None:
    for k in range(3):
        ring.push(k, b"x")
    first = next(iter(ring.pop_all()))
    assert [first, *ring.pop_all()] == [(0, b"x"), (1, b"x"), (2, b"x")]


@pytest.mark.parametrize(
    ("what", "size", "says"),
    [
        (b"", 64, "' is still starting; try again"),
        (MAGIC, 63, "is not a WaVeSim ring (only 63 bytes)"),
        (b"WVSMAREA", 4160, "is not a WaVeSim ring"),
        (MAGIC, 4160, "is damaged: 4160 bytes for a capacity of 0, written 0, read 0"),
    ],
)
def test_what_is_no_ring_is_refused(what: bytes, size: int, says: str) -> None:
    """Nothing there, something cut short, something of another, something half made."""
    memory = create_memory(NAME, size)
    memory[: len(what)] = what
    try:
        with pytest.raises(AttachError if what else NotRunning, match=re.escape(says)):
            Ring.attach(NAME)
    finally:
        posix_ipc.unlink_shared_memory(NAME)


def test_a_ring_that_is_gone_is_no_servers() -> None:
    with pytest.raises(NotRunning, match=f"no server named '{NAME.removeprefix('/wavesim.')}' is running; "):
        Ring.attach(NAME)


@pytest.mark.parametrize(
    ("place", "value"), [(CAPACITY, 4097), (CAPACITY, -1), (WRITTEN, 4097), (WRITTEN, -8), (READ, 8), (READ, -8)]
)
def test_a_ring_whose_counters_cannot_be_is_refused(ring: Ring, place: int, value: int) -> None:
    ring._header[place] = value
    with pytest.raises(AttachError, match=f"{NAME} is damaged: 4160 bytes for a capacity of"):
        Ring.attach(NAME)
