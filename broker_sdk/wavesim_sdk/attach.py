"""Attaching to a running server: consistent snapshots to read, sensor columns to write."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import posix_ipc

from wavesim_sdk.area import DUE, OWNER, OWNER_START, PERIOD, Area, Record, alive, process_start, segment_name
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.tables import CLIENTS, HISTORY, NOTICE, RECEPTION, SENT, SIGNALS, SIMULATION_TABLES, RunState, Table

START_LIMIT_S = 180.0


@dataclass(frozen=True)
class Snapshot:
    """Bodies of one tick. ``rows`` are those with a body; arrays have capacity rows."""

    tick: int
    time_ns: int
    rows: np.ndarray[Any, np.dtype[np.int64]]
    identity: Record
    state: Record


class SharedState:
    """A reader of both areas: it maps them so that it cannot write.

    ``SharedState("wavesim")`` attaches to the server of that name; raises
    :class:`~wavesim_sdk.errors.NotRunning` when there is none.
    """

    def __init__(self, server: str = "wavesim") -> None:
        self.server = server
        self.simulation = Area.attach(segment_name(server, "simulation"))
        self.vehicles = Area.attach(segment_name(server, "vehicles"))
        self._step_ns = self._await_engine()

    def _await_engine(self) -> int:
        """The time step, once the engine has published (its first start compiles its kernels)."""
        limit = time.monotonic() + START_LIMIT_S
        while not (step := int(self.world()["step_ns"])):
            if not self.alive():
                raise NotRunning(f"the server '{self.server}' ended while it started")
            if time.monotonic() > limit:
                raise NotRunning(f"the server '{self.server}' did not start within {START_LIMIT_S:g} s")
            time.sleep(0.02)
        return step

    def alive(self) -> bool:
        """Whether the server still runs."""
        return alive(*self.simulation.server)

    def clock(self) -> Record:
        """The clock's record."""
        clock: Record = self.simulation["clock"].snapshot()[1][0]
        return clock

    def run_state(self) -> RunState:
        return RunState(int(self.clock()["state"]))

    def world(self) -> Record:
        """The world's parameters."""
        world: Record = self.simulation["world"].snapshot()[1][0]
        return world

    def weather(self) -> Record:
        """Flow, wind and water level now."""
        weather: Record = self.simulation["weather"].snapshot()[1][0]
        return weather

    def clients(self) -> Record:
        """The clients' table, all rows."""
        return self.simulation["clients"].snapshot()[1]

    def signals(self) -> Record:
        """The live signals."""
        rows = self.simulation["signals"].snapshot()[1]
        return rows[rows["id"] > 0]

    def history(self, table: str, seen: int) -> tuple[int, Record]:
        """(count of all there ever were, those after the first ``seen``) of the table ``sent``, ``reception`` or ``notice``. It holds
        the newest only: if fewer come than were counted, the reader was too slow for the others."""
        total, rows = self.simulation[table].snapshot()
        first = max(seen, total - len(rows))
        return total, rows[np.arange(first, total) % len(rows)]

    def estimates(self) -> Record:
        """What on-board navigators believe, by row; all zero where none does."""
        return self.vehicles["estimate"].snapshot()[1]

    def snapshot(self) -> Snapshot:
        """Identity and motion of every body at one tick."""
        identity = self.vehicles["identity"].snapshot()[1]
        tick, state = self.vehicles["state"].snapshot()
        rows = np.flatnonzero(identity["present"])
        return Snapshot(tick, tick * self._step_ns, rows, identity, state)

    def row(self, name: str) -> int:
        """Row of a body by its name."""
        identity = self.vehicles["identity"].snapshot()[1]
        found = np.flatnonzero((identity["name"] == name.encode()) & (identity["present"] == 1))
        if not len(found):
            raise AttachError(f"there is no body '{name}' at present")
        return int(found[0])

    def sensor(self, name: str) -> Record:
        """All rows of a sensor's table."""
        if name not in self.vehicles.tables:
            raise AttachError(f"this run has no sensor '{name}'; name it under <emulators>")
        return self.vehicles[name].snapshot()[1]


class SensorColumn:
    """The right to write one sensor's table.

    A claim is guarded by a POSIX semaphore with a time limit; it is refused while another live
    process holds the table, and taken over from a dead one.
    """

    def __init__(self, simulation: SharedState, sensor: str) -> None:
        self.simulation, self.sensor = simulation, sensor
        if sensor not in simulation.vehicles.tables:
            raise AttachError(f"this run has no sensor '{sensor}'; name it under <emulators>")
        self.table = Area.attach(segment_name(simulation.server, "vehicles"), writable=True)[sensor]
        with claim_lock(simulation.server):
            owner, start = int(self.table.header[OWNER]), int(self.table.header[OWNER_START])
            if alive(owner, start) and owner != os.getpid():
                raise AttachError(f"sensor '{sensor}' is written by process {owner} already; stop that one first")
            self.table.header[PERIOD] = 0
            self.table.header[OWNER] = os.getpid()
            self.table.header[OWNER_START] = process_start(os.getpid())
        self._due = semaphore(simulation.server, sensor, "due")
        self._done = semaphore(simulation.server, sensor, "done")
        # A predecessor that was killed may have left posts behind.
        for s in (self._due, self._done):
            with contextlib.suppress(posix_ipc.BusyError):
                while True:
                    s.acquire(0)

    def synchronise(self, period_ticks: int) -> None:
        """Ask the engine to wait for this column at each ``period_ticks``-th tick."""
        self.table.header[PERIOD] = period_ticks

    @property
    def synchronous(self) -> bool:
        """Whether the engine still waits for this column."""
        return bool(self.table.header[PERIOD])

    def wait_due(self, timeout: float) -> int | None:
        """The tick the engine asks for, or None when ``timeout`` seconds passed or a signal came."""
        try:
            self._due.acquire(timeout)
        except (posix_ipc.BusyError, posix_ipc.SignalError):
            return None
        return int(self.table.header[DUE])

    def write(self, rows: Record, tick: int) -> None:
        """Publish the values of all rows."""
        self.table.publish(rows, tick)

    def answer(self) -> None:
        """Tell the engine that the values of the due tick are written."""
        self._done.release()

    def release(self) -> None:
        """Give the column back."""
        if int(self.table.header[OWNER]) == os.getpid():
            self.table.header[PERIOD] = 0
            self.table.header[OWNER] = 0
            self._done.release()


def simulation_tables(vehicles: int, signals: int) -> list[tuple[Table, int]]:
    """The tables of the area *simulation* with their rows."""
    rows = {t.name: HISTORY for t in (SENT, RECEPTION, NOTICE)} | {CLIENTS.name: vehicles, SIGNALS.name: signals}
    return [(t, rows.get(t.name, 1)) for t in SIMULATION_TABLES]


def make_semaphores(server: str, sensors: Iterable[str], group: bool = False) -> None:
    """What guards claims and paces synchronous sensors; see :func:`remove_semaphores`."""
    mode, before = (0o660, os.umask(0)) if group else (0o600, os.umask(0o077))  # there is no way to change it later
    try:
        posix_ipc.Semaphore(_claim_name(server), posix_ipc.O_CREX, mode=mode, initial_value=1).close()
        for sensor in sensors:
            for what in ("due", "done"):
                posix_ipc.Semaphore(_semaphore_name(server, sensor, what), posix_ipc.O_CREX, mode=mode).close()
    finally:
        os.umask(before)


def remove_semaphores(server: str, sensors: Iterable[str]) -> list[str]:
    """Remove what :func:`make_semaphores` made, as far as it is there; returns the names."""
    found = []
    for name in (_claim_name(server), *(_semaphore_name(server, s, what) for s in sensors for what in ("due", "done"))):
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_semaphore(name)
            found.append(name)
    return found


def _claim_name(server: str) -> str:
    return f"/wavesim.{server}.claim"


def _semaphore_name(server: str, sensor: str, what: str) -> str:
    return f"/wavesim.{server}.{sensor}.{what}"


def _open(server: str, name: str) -> posix_ipc.Semaphore:
    try:
        return posix_ipc.Semaphore(name)
    except posix_ipc.ExistentialError:
        raise NotRunning(f"the server '{server}' has no semaphore {name}") from None
    except (posix_ipc.PermissionsError, PermissionError):
        raise AttachError(f"no permission for the semaphore {name}") from None


def semaphore(server: str, sensor: str, what: str) -> posix_ipc.Semaphore:
    """One of the two semaphores that pace a synchronous sensor: ``due`` or ``done``."""
    return _open(server, _semaphore_name(server, sensor, what))


@contextlib.contextmanager
def claim_lock(server: str, timeout: float = 2.0) -> Iterator[None]:
    """The semaphore that guards claims. A holder that was killed inside loses it after ``timeout``."""
    guard = _open(server, _claim_name(server))
    # The guarded part takes microseconds: whoever holds it for seconds is dead, and its post is ours.
    with contextlib.suppress(posix_ipc.BusyError):
        guard.acquire(timeout)
    try:
        yield
    finally:
        if guard.value == 0:
            guard.release()
        guard.close()
