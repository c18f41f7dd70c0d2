"""Shared memory: readers get only whole ticks, even with a writer that never pauses; refusals name both sides."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import posix_ipc
import pytest

from wavesim_sdk import tables
from wavesim_sdk.arrays import Ints
from wavesim_sdk.attach import ClaimLock, create_semaphores, remove_semaphores
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.layout import layout_hash
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.shared_memory import (
    BEGUN,
    DONE,
    OWNER,
    SYNCHRONOUS,
    TICK_0,
    SharedMemoryArea,
    TableView,
    create_memory,
    is_process_alive,
    process_start,
)

NAME = f"/wavesim.area-test-{os.getpid()}"


@pytest.fixture
def area() -> SharedMemoryArea:
    made = SharedMemoryArea.create(NAME, [(tables.STATE, 100), (tables.CLOCK, 1)])
    yield made
    made.unlink()


def _write_for_ever(name: str) -> None:
    table = SharedMemoryArea.attach(name, writable=True)["state"]
    tick = 0
    while True:
        tick += 1
        table.begin_write()["p_WB_W"][:] = tick
        table.end_write(tick)


def test_readers_never_see_half_a_tick(area: SharedMemoryArea) -> None:
    writer = mp.get_context("spawn").Process(target=_write_for_ever, args=(NAME,))
    writer.start()
    try:
        limit = time.monotonic() + 30
        while area["state"].header[BEGUN] == 0 and time.monotonic() < limit:
            pass
        seen = set()
        reads = 0
        limit = time.monotonic() + 120
        # on a busy machine the writer gets few turns: read until it had its share
        while reads < 20_000 or (len(seen) <= 100 and time.monotonic() < limit):
            reads += 1
            tick, rows = area["state"].snapshot()
            assert (rows["p_WB_W"] == tick).all()
            seen.add(tick)
        assert len(seen) > 100
    finally:
        writer.kill()
        writer.join()
    tick, rows = area["state"].snapshot()
    assert (rows["p_WB_W"] == tick).all(), "a writer killed inside a write leaves the last whole tick"


def test_a_foreign_layout_is_refused_with_both_versions(
    area: SharedMemoryArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wavesim_sdk.shared_memory.layout_hash", lambda: "0" * 16)
    with pytest.raises(
        AttachError, match=f"layout version 1 \\({layout_hash()}\\), but this program expects 1 \\(0000"
    ):
        SharedMemoryArea.attach(NAME)


def test_absent_damaged_and_orphaned(area: SharedMemoryArea) -> None:
    with pytest.raises(NotRunning, match=r"no server named 'area-test-[0-9]+x' is running; "):
        SharedMemoryArea.attach(NAME + "x")
    area.header[6] += 1
    with pytest.raises(NotRunning, match=r"no server named 'area-test-[0-9]+' is running; "):
        SharedMemoryArea.attach(NAME)
    area.header[6] -= 1
    area.header[0] = 0
    with pytest.raises(NotRunning, match=r"the server 'area-test-[0-9]+' is still starting"):
        SharedMemoryArea.attach(NAME)
    area.header[0] = 1
    with pytest.raises(AttachError, match=f"{NAME} is not a WaVeSim area$"):
        SharedMemoryArea.attach(NAME)


def test_one_that_has_its_name_and_no_size_yet_is_being_made() -> None:
    made = posix_ipc.SharedMemory(NAME + "n", posix_ipc.O_CREX)
    try:
        with pytest.raises(NotRunning, match=r"the server 'area-test-[0-9]+n' is still starting"):
            SharedMemoryArea.attach(NAME + "n")
    finally:
        made.close_fd()
        made.unlink()


@pytest.mark.parametrize("size", [1, 63])
def test_a_segment_that_is_too_small_for_a_header(size: int) -> None:
    memory = create_memory(NAME + "s", size)
    memory[:1] = b"W"
    try:
        with pytest.raises(AttachError, match=rf"is not a WaVeSim area \(only {size} bytes\)"):
            SharedMemoryArea.attach(NAME + "s")
    finally:
        posix_ipc.unlink_shared_memory(NAME + "s")


def test_a_table_that_lies_outside_is_refused(area: SharedMemoryArea) -> None:
    text = bytes(area._view[64 : 64 + int(area.header[7])])
    layout = json.loads(text)
    room = len(area._view) - 64 - 2 * area["clock"].dtype.itemsize
    for offset, good in ((room, True), (room + 1, False)):
        layout[1]["offset"] = offset
        changed = json.dumps(layout).encode()
        area._view[64 : 64 + len(changed)] = changed
        area.header[7] = len(changed)
        if good:
            SharedMemoryArea.attach(NAME)
        else:
            with pytest.raises(AttachError, match=f"{NAME} is damaged: table 'clock' exceeds the segment"):
                SharedMemoryArea.attach(NAME)


def test_a_layout_that_cannot_be_read(area: SharedMemoryArea) -> None:
    area.header[7] -= 1
    with pytest.raises(AttachError, match=f"{NAME} is damaged: .*delimiter"):
        SharedMemoryArea.attach(NAME)


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 5000,
        b"{}[",
        b'[{"name": "state", "offset": -1e400}]',
        b'[{"name": "state", "offset": 4096, "capacity": -7, "fields": [{"name": "a", "type": "<f8", "shape": []}]}]',
        b'[{"name": "state", "offset": -9999999999999999999999, "capacity": 1, "fields": [{"name": "a", "type": "<f8", "shape": []}]}]',
        b'[{"name": "state", "offset": 4096, "capacity": 1, "fields": [{"name": "a", "type": "|O", "shape": []}]}]',
        b'[{"name": "state", "offset": 4096, "capacity": 1, "fields": [{"name": "a", "type": "<f8", "shape": [9e99]}]}]',
        b'[{"name": "state", "offset": 4096, "capacity": 1, "fields": [[]]}]',
    ],
)
def test_a_layout_of_nonsense(area: SharedMemoryArea, text: bytes) -> None:
    area._view[64 : 64 + len(text)] = text
    area.header[7] = len(text)
    with pytest.raises(AttachError, match=f"{NAME} is damaged: "):
        SharedMemoryArea.attach(NAME)


def test_permission(area: SharedMemoryArea, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise posix_ipc.PermissionsError("no")

    monkeypatch.setattr(posix_ipc, "SharedMemory", refuse)
    with pytest.raises(AttachError, match=f"no permission to open the shared memory {NAME}"):
        SharedMemoryArea.attach(NAME)


def test_a_reader_opens_for_reading_alone(area: SharedMemoryArea, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that may only read could not attach otherwise."""
    opened = []
    true = posix_ipc.SharedMemory

    def note(name: str, flags: int = 0, **how: object) -> object:
        opened.append(how)
        return true(name, flags, **how)

    monkeypatch.setattr(posix_ipc, "SharedMemory", note)
    assert SharedMemoryArea.attach(NAME).name == NAME
    SharedMemoryArea.attach(NAME, writable=True)["clock"].begin_write()["tick"] = 1
    assert opened == [{"read_only": True}, {"read_only": False}]


def test_what_a_writer_wrote_is_seen_by_who_attached_before(area: SharedMemoryArea) -> None:
    reader, writer = SharedMemoryArea.attach(NAME), SharedMemoryArea.attach(NAME, writable=True)
    rows = np.zeros(60, tables.STATE.dtype)
    for tick in (5, 7, 6):
        rows["p_WB_W"] = tick
        writer["state"].publish(rows, tick)
        seen, copy = reader["state"].snapshot()
        assert seen == tick and (copy["p_WB_W"][:60] == tick).all() and (copy["p_WB_W"][60:] == 0).all()


def test_a_forgotten_name_is_forgotten_once(area: SharedMemoryArea) -> None:
    area.unlink()
    area.unlink()
    with pytest.raises(NotRunning):
        SharedMemoryArea.attach(NAME)
    assert (area["clock"].snapshot()[1]["tick"] == 0).all(), "mappings live on"


def test_the_segment_is_as_its_document_says(area: SharedMemoryArea) -> None:
    """Read from the file by docs/SHARED_MEMORY.md alone."""
    area["state"].publish(np.ones(100, tables.STATE.dtype), 41)
    area["state"].publish(np.full(100, 2, tables.STATE.dtype), 42)
    area["state"].begin_write()
    for k, word in zip(range(OWNER, SYNCHRONOUS + 1), (11, 12, 13, 14), strict=True):
        area["state"].header[k] = word
    data = (Path("/dev/shm") / NAME[1:]).read_bytes()
    magic, version, digest, size, pid, start, length = struct.unpack_from("<8sq16sqqqq", data)
    assert (magic, version, digest, size) == (b"WVSMAREA", 1, layout_hash().encode(), len(data))
    assert (pid, start) == (os.getpid(), process_start(os.getpid()))
    layout = json.loads(data[64 : 64 + length])
    assert [(t["name"], t["capacity"], t["writer"]) for t in layout] == [
        ("state", 100, "engine"),
        ("clock", 1, "engine"),
    ]
    assert layout[0]["fields"][0] == {
        "name": "p_WB_W",
        "type": "<f8",
        "shape": [3],
        "unit": "m",
        "doc": tables.STATE.fields[0].doc,
    }
    at = layout[0]["offset"]
    assert at % 64 == 0 and layout[1]["offset"] % 64 == 0
    assert struct.unpack_from("<8q", data, at) == (3, 2, 42, 41, 11, 12, 13, 14)
    table = np.frombuffer(data, tables.STATE.dtype, 200, at + 64)
    assert (table[:100]["p_WB_W"] == 2).all() and (table[100:]["p_WB_W"] == 1).all()


def test_texts_keep_their_type_in_the_layout() -> None:
    made = SharedMemoryArea.create_private([(tables.IDENTITY, 2)])
    assert {f["name"]: f["type"] for f in made.layout[0]["fields"]}["name"] == "|S32"
    assert made["identity"].dtype == tables.IDENTITY.dtype and made["identity"].capacity == 2


def test_every_table_of_a_server_has_room_of_its_own() -> None:
    """Each lies behind the one before, also where the layout's text is long."""
    declared = [(t, 50) for t in (*tables.SIMULATION_TABLES, *tables.VEHICLE_TABLES, *SENSORS.values())]
    made = SharedMemoryArea.create_private(declared)
    end = 64 + int(made.header[7])
    for entry, (table, capacity) in zip(made.layout, declared, strict=True):
        assert entry["offset"] >= end
        end = entry["offset"] + 64 + 2 * capacity * table.dtype.itemsize
    assert end <= int(made.header[4]) == len(made._view) < end + 64


class Overtaken:
    """The two buffers of a table whose writer acts while a reader copies."""

    def __init__(self, view: TableView, *acts: Callable[[], None]) -> None:
        self.view, self.acts, self.copies = view, list(acts), 0
        self.words = view.words

    def __getitem__(self, k: int) -> Overtaken:
        self.chosen = k
        return self

    def copy(self) -> Ints:
        self.copies += 1
        found = self.words[self.chosen].copy()
        if self.acts:
            self.acts.pop(0)()
        return found


def test_the_counters_of_a_write(area: SharedMemoryArea) -> None:
    table = area["clock"]
    assert table.header[:4].tolist() == [0, 0, 0, 0]
    for k in (1, 2, 3):
        rows = table.begin_write()
        assert rows is table.buffers[k & 1] and rows is not table.latest
        assert (table.header[BEGUN], table.header[DONE]) == (k, k - 1)
        table.begin_write()
        assert (table.header[BEGUN], table.header[DONE]) == (k, k - 1), "a write that its writer began anew"
        table.end_write(100 + k)
        assert (table.header[BEGUN], table.header[DONE]) == (k, k)
        assert table.header[TICK_0 + (k & 1)] == 100 + k and table.latest is table.buffers[k & 1]


@pytest.mark.parametrize("first", [3, 4])
def test_a_reader_that_is_overtaken_starts_again(first: int) -> None:
    """One write meanwhile goes into the other buffer; with the next one's begin the copy may be torn."""
    made = SharedMemoryArea.create_private([(tables.CLOCK, 1)])
    reader, writer = SharedMemoryArea("", made._memory)["clock"], made["clock"]
    rows = np.zeros(1, tables.CLOCK.dtype)

    def write(tick: int) -> None:
        rows["tick"] = tick
        writer.publish(rows, tick)

    for tick in range(1, first + 1):
        write(tick)

    def one() -> None:
        writer.begin_write()

    def two() -> None:
        write(first + 1)
        writer.begin_write()["tick"] = -1

    reader.words = spy = Overtaken(reader, one)  # type: ignore[assignment]  # it stands for a pair of arrays
    assert reader.snapshot()[0] == first and spy.copies == 1, "the other buffer is being filled"
    spy.acts = [two, one]
    spy.copies = 0
    tick, seen = reader.snapshot()
    assert tick == first + 1 and seen["tick"] == first + 1 and spy.copies == 2


def test_a_reader_that_is_overtaken_again_and_again_gives_up() -> None:
    table = SharedMemoryArea.create_private([(tables.CLOCK, 1)])["clock"]

    def two() -> None:
        table.header[BEGUN] += 2

    table.words = spy = Overtaken(table, two, two, two, two)  # type: ignore[assignment]
    with pytest.raises(AttachError, match=r"^the table is changing faster than this program can read it$"):
        table.snapshot(3)
    assert spy.copies == 3


def test_a_reader_cannot_write(area: SharedMemoryArea) -> None:
    reader = SharedMemoryArea.attach(NAME)
    with pytest.raises(ValueError, match="read-only"):
        reader["state"].buffers[0]["p_WB_W"][0] = 1.0


@pytest.mark.parametrize("machine", ["aarch64", "riscv64", "ppc64le", "i686", ""])
def test_a_machine_that_reorders_stores_is_refused_by_name(
    area: SharedMemoryArea, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(AttachError, match=f"x86-64 processor.* this processor is '{machine}'"):
        SharedMemoryArea.attach(NAME)
    with pytest.raises(AttachError, match=f"x86-64 processor.* this processor is '{machine}'"):
        SharedMemoryArea.create(NAME + "y", [(tables.CLOCK, 1)])
    with pytest.raises(posix_ipc.ExistentialError):
        posix_ipc.SharedMemory(NAME + "y")
    assert SharedMemoryArea.create_private([(tables.CLOCK, 1)]).layout, "one process alone needs no such order"


@pytest.mark.parametrize(("group", "mode"), [(False, 0o600), (True, 0o660)])
def test_the_umask_takes_nothing_from_the_group(group: bool, mode: int) -> None:
    before = os.umask(0o077)
    try:
        made = SharedMemoryArea.create(NAME + "g", [(tables.CLOCK, 1)], group)
    finally:
        os.umask(before)
    try:
        assert (Path("/dev/shm") / (NAME + "g")[1:]).stat().st_mode & 0o777 == mode
    finally:
        made.unlink()


def test_a_private_area_has_the_same_face() -> None:
    made = SharedMemoryArea.create_private([(tables.STATE, 3), (tables.CLOCK, 1)])
    shared = SharedMemoryArea.create(NAME + "p", [(tables.STATE, 3), (tables.CLOCK, 1)])
    try:
        assert made.layout == shared.layout and made.server == shared.server
        assert bytes(made.header) == bytes(shared.header)
        assert {n: t.dtype for n, t in made.tables.items()} == {n: t.dtype for n, t in shared.tables.items()}
    finally:
        shared.unlink()
    table = made["state"]
    for tick in (1, 2, 3):
        table.begin_write()["p_WB_W"][:] = tick
        table.end_write(tick)
        seen, rows = table.snapshot()
        assert seen == tick and (rows["p_WB_W"] == tick).all() and (table.latest["p_WB_W"] == tick).all()
    assert made["clock"].snapshot()[1]["tick"] == 0
    other = SharedMemoryArea.create_private([(tables.STATE, 3), (tables.CLOCK, 1)])
    assert (other["state"].snapshot()[1]["p_WB_W"] == 0).all(), "each has memory of its own"
    assert made.name == ""
    made.unlink()


def test_process_identity() -> None:
    assert is_process_alive(os.getpid(), process_start(os.getpid()))
    assert not is_process_alive(os.getpid(), process_start(os.getpid()) + 1)
    assert process_start(2**22 + 1) == 0


def _die_inside(name: str) -> None:
    with ClaimLock(name):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_killed_inside_the_semaphore_stops_nobody() -> None:
    name = f"claim-{os.getpid()}"
    create_semaphores(name, [])
    try:
        child = mp.get_context("spawn").Process(target=_die_inside, args=(name,))
        child.start()
        child.join()
        assert child.exitcode == -signal.SIGKILL
        started = time.monotonic()
        with ClaimLock(name, timeout=0.3):
            pass
        with ClaimLock(name, timeout=5.0):
            pass
        assert time.monotonic() - started < 3.0
    finally:
        remove_semaphores(name, [])


def test_tables_are_free_of_padding() -> None:
    for t in (*tables.SIMULATION_TABLES, *tables.VEHICLE_TABLES, *SENSORS.values()):
        assert t.dtype.itemsize == sum(t.dtype[f.name].itemsize for f in t.fields)
        assert t.dtype.itemsize % 8 == 0
        assert np.dtype(t.dtype).isalignedstruct or all(o % 8 == 0 for _, o in t.dtype.fields.values())
