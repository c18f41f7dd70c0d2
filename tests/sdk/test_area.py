"""Shared memory: whole ticks only, under a writer that never pauses; refusals name both sides."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import time
from pathlib import Path

import numpy as np
import posix_ipc
import pytest

from wavesim_sdk import tables
from wavesim_sdk.area import BEGUN, Area, alive, process_start
from wavesim_sdk.attach import ClaimLock, make_semaphores, remove_semaphores
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.sensors import SENSORS

NAME = f"/wavesim.area-test-{os.getpid()}"


@pytest.fixture
def area() -> Area:
    made = Area.create(NAME, [(tables.STATE, 100), (tables.CLOCK, 1)])
    yield made
    made.unlink()


def _write_for_ever(name: str) -> None:
    table = Area.attach(name, writable=True)["state"]
    tick = 0
    while True:
        tick += 1
        table.begin()["p_WB_W"][:] = tick
        table.end(tick)


def test_readers_never_see_half_a_tick(area: Area) -> None:
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


def test_a_foreign_layout_is_refused_with_both_versions(area: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wavesim_sdk.area.layout_hash", lambda: "0" * 16)
    with pytest.raises(AttachError, match=f"version 1 \\({tables.layout_hash()}\\), this program expects 1 \\(0000"):
        Area.attach(NAME)


def test_absent_damaged_and_orphaned(area: Area) -> None:
    with pytest.raises(NotRunning, match="no server owns"):
        Area.attach(NAME + "x")
    area.header[6] += 1
    with pytest.raises(NotRunning, match="is gone"):
        Area.attach(NAME)
    area.header[6] -= 1
    area.header[0] = 0
    with pytest.raises(AttachError, match="no WaVeSim area"):
        Area.attach(NAME)


def test_a_reader_cannot_write(area: Area) -> None:
    reader = Area.attach(NAME)
    with pytest.raises(ValueError, match="read-only"):
        reader["state"].buffers[0]["p_WB_W"][0] = 1.0


@pytest.mark.parametrize("machine", ["aarch64", "riscv64", "ppc64le", "i686", ""])
def test_a_machine_that_reorders_stores_is_refused_by_name(
    area: Area, monkeypatch: pytest.MonkeyPatch, machine: str
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(AttachError, match=f"x86-64 processor.* this one is '{machine}'"):
        Area.attach(NAME)
    with pytest.raises(AttachError, match=f"x86-64 processor.* this one is '{machine}'"):
        Area.create(NAME + "y", [(tables.CLOCK, 1)])
    with pytest.raises(posix_ipc.ExistentialError):
        posix_ipc.SharedMemory(NAME + "y")
    assert Area.private([(tables.CLOCK, 1)]).layout, "one process alone needs no such order"


@pytest.mark.parametrize(("group", "mode"), [(False, 0o600), (True, 0o660)])
def test_the_umask_takes_nothing_from_the_group(group: bool, mode: int) -> None:
    before = os.umask(0o077)
    try:
        made = Area.create(NAME + "g", [(tables.CLOCK, 1)], group)
    finally:
        os.umask(before)
    try:
        assert (Path("/dev/shm") / (NAME + "g")[1:]).stat().st_mode & 0o777 == mode
    finally:
        made.unlink()


def test_a_private_area_has_the_same_face() -> None:
    made = Area.private([(tables.STATE, 3), (tables.CLOCK, 1)])
    shared = Area.create(NAME + "p", [(tables.STATE, 3), (tables.CLOCK, 1)])
    try:
        assert made.layout == shared.layout and made.server == shared.server
        assert bytes(made.header) == bytes(shared.header)
        assert {n: t.dtype for n, t in made.tables.items()} == {n: t.dtype for n, t in shared.tables.items()}
    finally:
        shared.unlink()
    table = made["state"]
    for tick in (1, 2, 3):
        table.begin()["p_WB_W"][:] = tick
        table.end(tick)
        seen, rows = table.snapshot()
        assert seen == tick and (rows["p_WB_W"] == tick).all() and (table.latest["p_WB_W"] == tick).all()
    assert made["clock"].snapshot()[1]["tick"] == 0
    other = Area.private([(tables.STATE, 3), (tables.CLOCK, 1)])
    assert (other["state"].snapshot()[1]["p_WB_W"] == 0).all(), "each has memory of its own"
    made.unlink()


def test_process_identity() -> None:
    assert alive(os.getpid(), process_start(os.getpid()))
    assert not alive(os.getpid(), process_start(os.getpid()) + 1)
    assert process_start(2**22 + 1) == 0


def _die_inside(name: str) -> None:
    with ClaimLock(name):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_killed_inside_the_semaphore_stops_nobody() -> None:
    name = f"claim-{os.getpid()}"
    make_semaphores(name, [])
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
    for t in (*tables.SIMULATION_TABLES, *tables.VEHICLE_TABLES, *SENSORS.values(), *tables.RECORDS):
        assert t.dtype.itemsize == sum(t.dtype[f.name].itemsize for f in t.fields)
        assert t.dtype.itemsize % 8 == 0
        assert np.dtype(t.dtype).isalignedstruct or all(o % 8 == 0 for _, o in t.dtype.fields.values())
