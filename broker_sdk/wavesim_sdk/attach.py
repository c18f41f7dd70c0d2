"""Access to the shared memory of a running server: consistent snapshots for readers, and sensor tables for writers."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import posix_ipc

from wavesim_sdk.arrays import Floats, Ints, Record, as_numbers
from wavesim_sdk.errors import AttachError, NotRunning, UnknownPart
from wavesim_sdk.fences import fences_in_rows
from wavesim_sdk.shared_memory import (
    BEGUN,
    DONE,
    DUE,
    OWNER,
    OWNER_START,
    SYNCHRONOUS,
    SharedMemoryArea,
    TableView,
    is_process_alive,
    no_such_server,
    process_start,
    running_servers,
    segment_name,
)
from wavesim_sdk.tables import (
    CLIENTS,
    CREW,
    CREW_ROWS,
    FENCE_CORNERS,
    FENCES,
    HISTORY_ROWS,
    NOTICE,
    RECEPTION,
    SENT,
    SIGNALS,
    SIMULATION_TABLES,
    SNAPSHOTS,
    TIME_CHANGE,
    RunState,
    Table,
)
from wavesim_sdk.wire.items import Fence

__all__ = ["FleetSnapshot", "SensorTableClaim", "SharedState"]

START_LIMIT_S = 180.0


EACH_TICK = frozenset(("state", "actuation", "weather"))  #: tables that the engine writes at each published tick
AGREE_S = 1.0  #: time limit in s for reading all tables at one tick; the engine needs only microseconds to publish them


@dataclass(frozen=True)
class FleetSnapshot:
    """All bodies at one tick. The arrays have as many rows as their tables; ``rows`` lists the rows that contain a
    body.

    ``tables`` contains the other requested tables at the same tick. Snapshots with the same ``version`` have the same
    bodies and instruments; the version is None if it is unknown.
    """

    tick: int
    time_ns: int
    rows: Ints
    identity: Record
    state: Record
    tables: Mapping[str, Record] = field(default_factory=dict)
    version: tuple[int, ...] | None = None

    @functools.cached_property
    def state_numbers(self) -> Floats:
        """The `state` table as a matrix of numbers, for kernels."""
        return as_numbers(self.state)

    @functools.cached_property
    def weather(self) -> Record:
        """The record in the `weather` table."""
        record: Record = self.tables["weather"][0]
        return record

    @functools.cached_property
    def level(self) -> float:
        """Height of the water surface above its mean level in m."""
        return float(self.weather["level"])


class SharedState:
    """Reader of a server's two shared-memory areas. It maps them read-only.

    ``SharedState("wavesim")`` attaches to the server with that name. Raises :class:`~wavesim_sdk.errors.NotRunning` if
    no such server is running.
    """

    def __init__(self, server: str = "wavesim") -> None:
        self.server = server
        self._map(
            SharedMemoryArea.attach(segment_name(server, "simulation")),
            SharedMemoryArea.attach(segment_name(server, "vehicles")),
        )

    @classmethod
    def from_areas(cls, simulation: SharedMemoryArea, vehicles: SharedMemoryArea) -> SharedState:
        """Create a reader of shared-memory areas that this process owns."""
        reader = cls.__new__(cls)
        reader.server = ""
        reader._map(simulation, vehicles)
        return reader

    def _map(self, simulation: SharedMemoryArea, vehicles: SharedMemoryArea) -> None:
        self.simulation, self.vehicles = simulation, vehicles
        self._step_ns = self._await_engine()

    def _await_engine(self) -> int:
        """Wait until the engine has published its first tick; return the time step in ns."""
        limit = time.monotonic() + START_LIMIT_S
        while not (step := int(self.world()["step_ns"])):
            if not self.alive():
                raise NotRunning(f"the server '{self.server}' exited during startup")
            if time.monotonic() > limit:
                raise NotRunning(f"the server '{self.server}' did not start within {START_LIMIT_S:g} s")
            time.sleep(0.02)
        return step

    def alive(self) -> bool:
        """Return whether the server is still running."""
        return is_process_alive(*self.simulation.server)

    def clock(self) -> Record:
        """Return the record of the simulation clock (``clock`` table)."""
        clock: Record = self.simulation["clock"].snapshot()[1][0]
        return clock

    def run_state(self) -> RunState:
        return RunState(int(self.clock()["state"]))

    def world(self) -> Record:
        """Return the parameters of the world (``world`` table)."""
        world: Record = self.simulation["world"].snapshot()[1][0]
        return world

    def weather(self) -> Record:
        """Return the current, wind and water level at the last published tick."""
        weather: Record = self.simulation["weather"].snapshot()[1][0]
        return weather

    def clients(self) -> Record:
        """Return all rows in the ``clients`` table."""
        return self.simulation["clients"].snapshot()[1]

    def crew(self) -> Record:
        """Return the sessions of instruments and listeners, in the order of their bodies."""
        rows = self.simulation["crew"].snapshot()[1]
        return rows[rows["role"] > 0]

    def signals(self) -> Record:
        """Return the acoustic signals that can still be received."""
        rows = self.simulation["signals"].snapshot()[1]
        return rows[rows["id"] > 0]

    def fences(self) -> list[Fence]:
        """Return the current fences."""
        return list(fences_in_rows(self.simulation["fences"].snapshot()[1]))

    def history(self, table: str, seen: int) -> tuple[int, Record]:
        """Return the total number of records ever written to a table, and the records that follow the first ``seen``
        records.

        The table is ``sent``, ``reception`` or ``notice``. It keeps only the newest records. If the total has grown by
        more than the number of records returned, the remaining new records have already been overwritten.
        """
        total, rows = self.simulation[table].snapshot()
        first = max(seen, total - len(rows))
        return total, rows[np.arange(first, total) % len(rows)]

    def snapshot_times(self) -> list[int]:
        """Return the simulation times (ns) of the automatic snapshots that the server holds, in ascending order."""
        times = self.simulation[SNAPSHOTS.name].snapshot()[1]["time_ns"]
        return [int(t) for t in times[times >= 0]]

    def time_change(self) -> Record:
        """Return the record of the newest time change (``time_change`` table); its ``count`` is 0 if there was none."""
        change: Record = self.simulation[TIME_CHANGE.name].snapshot()[1][0]
        return change

    def estimates(self) -> Record:
        """Return the estimates from on-board navigators, by row; bodies without an estimate have zeros."""
        return self.vehicles["estimate"].snapshot()[1]

    def table(self, name: str) -> TableView:
        """Return the table with this name from either area."""
        for area in (self.vehicles, self.simulation):
            if name in area.tables:
                return area.tables[name]
        raise UnknownPart(f"this run has no table '{name}'")

    def snapshot(self, *more: str) -> FleetSnapshot:
        """Return the identity and motion of all bodies at one tick, together with the tables in ``more``.

        All tables that the engine writes at each tick contain values from the same tick. While they were being copied,
        no body or instrument was added or removed, and no fault changed.
        """
        names = dict.fromkeys(("identity", *more, "state"))
        limit = time.monotonic() + AGREE_S
        while True:
            found = self._together({name: self.table(name) for name in names})
            if found is not None:
                return found
            if time.monotonic() > limit:
                if not self.alive():
                    raise NotRunning(f"the server '{self.server}' exited while it was publishing a tick")
                raise AttachError(
                    "the tables are changing too fast: this program cannot read all of them at the same tick"
                )
            time.sleep(0.0)

    def _together(self, views: dict[str, TableView]) -> FleetSnapshot | None:
        """Try once to read all tables at the same tick. Return None if the engine was writing to them in the meantime."""
        steady = {n: v for n, v in views.items() if n not in EACH_TICK}
        before = {n: v.header[DONE] for n, v in steady.items()}
        copies, ticks = {}, set()
        for name, view in views.items():
            tick, copies[name] = view.snapshot()
            if name in EACH_TICK:
                ticks.add(tick)
        if len(ticks) > 1 or any(v.header[BEGUN] != before[n] for n, v in steady.items()):
            return None
        tick, identity = ticks.pop(), copies.pop("identity")
        rows = np.flatnonzero(identity["present"])
        state = copies.pop("state")
        return FleetSnapshot(tick, tick * self._step_ns, rows, identity, state, copies, tuple(before.values()))

    def row(self, name: str) -> int:
        """Return the row of the body with this name."""
        identity = self.vehicles["identity"].snapshot()[1]
        found = np.flatnonzero((identity["name"] == name.encode()) & (identity["present"] == 1))
        if not len(found):
            raise UnknownPart(f"body '{name}' is not in the simulation")
        return int(found[0])

    def instruments(self, name: str) -> dict[str, Record]:
        """Return the instruments of a body, by name: their records in the ``instruments`` table, in the order of the
        configuration.
        """
        row = self.row(name)
        table = self.vehicles["instruments"].snapshot()[1]
        mine = table[table["body"] == row]
        return {bytes(r["name"]).decode(): r for r in mine[np.argsort(mine["number"])]}

    def sensor(self, body: str, name: str) -> Record:
        """Return the newest value from an instrument on a body; ``valid`` is 0 if the instrument has no value yet."""
        suite = self.instruments(body)
        if name not in suite:
            raise UnknownPart(f"'{body}' has no sensor '{name}'; available: {', '.join(suite) or 'none'}")
        entry = suite[name]
        record: Record = self.values(bytes(entry["type"]).decode())[int(entry["place"])]
        if record["generation"] != entry["generation"]:
            record["valid"] = 0  # value of an earlier instrument at this place
        return record

    def values(self, type_: str) -> Record:
        """Return the values from all instruments of one sensor type.

        The ``instruments`` table gives the index of each instrument in this array of values.
        """
        if type_ not in self.vehicles.tables:
            raise UnknownPart(f"this run has no sensor of type '{type_}'; add it under <sensors>")
        return self.vehicles[type_].snapshot()[1]


class SensorTableClaim:
    """Exclusive right to write to the table of one sensor type.

    A POSIX semaphore with a time limit guards the claim. A claim fails while another running process owns the table; if
    the owner has exited, the claim is taken over.
    """

    def __init__(self, simulation: SharedState, sensor: str) -> None:
        self.simulation, self.sensor = simulation, sensor
        self.is_released = False
        if sensor not in simulation.vehicles.tables:
            raise UnknownPart(f"this run has no sensor of type '{sensor}'; add it under <sensors>")
        self.table = SharedMemoryArea.attach(segment_name(simulation.server, "vehicles"), writable=True)[sensor]
        with ClaimLock(simulation.server):
            owner, start = self.table.header[OWNER], self.table.header[OWNER_START]
            if is_process_alive(owner, start) and owner != os.getpid():
                raise AttachError(f"process {owner} already writes the values of the sensor '{sensor}'; stop it first")
            self.table.header[SYNCHRONOUS] = 0
            self.table.header[OWNER] = os.getpid()
            self.table.header[OWNER_START] = process_start(os.getpid())
        self._due = open_semaphore(simulation.server, sensor, "due")
        self._done = open_semaphore(simulation.server, sensor, "done")
        # An earlier writer that was killed may have left posts.
        for s in (self._due, self._done):
            with contextlib.suppress(posix_ipc.BusyError):
                while True:
                    s.acquire(0)

    def request_synchronous(self) -> None:
        """Ask the engine to wait for this table at each tick at which one of its instruments is due."""
        self.table.header[SYNCHRONOUS] = 1

    @property
    def is_synchronous(self) -> bool:
        """Return whether the engine still waits for this table on the ticks when it is due."""
        return bool(self.table.header[SYNCHRONOUS])

    def wait_due(self, timeout: float) -> int | None:
        """Wait until the engine requests values, and return the tick for which it requests them.

        Return None after ``timeout`` seconds or when interrupted by a signal.
        """
        try:
            self._due.acquire(timeout)
        except (posix_ipc.BusyError, posix_ipc.SignalError):
            return None
        due: int = self.table.header[DUE]
        return due

    def write(self, rows: Record, tick: int) -> None:
        """Publish the values of all rows for a tick."""
        self.table.publish(rows, tick)

    def signal_done(self) -> None:
        """Signal to the engine that the values for the due tick have been written."""
        self._done.release()

    def wake(self) -> None:
        """Interrupt a call to :meth:`wait_due` that is waiting in another thread."""
        self._due.release()

    def release(self) -> None:
        """Release the claim on a sensor table. A second call has no effect."""
        if self.is_released:
            return
        self.is_released = True
        if self.table.header[OWNER] == os.getpid():
            self.table.header[SYNCHRONOUS] = 0
            self.table.header[OWNER] = 0
            self._done.release()
        for semaphore in (self._due, self._done):  # Python does not close them
            semaphore.close()


def simulation_tables(vehicles: int, signals: int, snapshots: int = 1) -> list[tuple[Table, int]]:
    """Return the tables of the *simulation* area, each with its number of rows."""
    rows = {t.name: HISTORY_ROWS for t in (SENT, RECEPTION, NOTICE)} | {SNAPSHOTS.name: snapshots}
    rows |= {CLIENTS.name: vehicles, CREW.name: vehicles + CREW_ROWS, SIGNALS.name: signals, FENCES.name: FENCE_CORNERS}
    return [(t, rows.get(t.name, 1)) for t in SIMULATION_TABLES]


def create_semaphores(server: str, sensors: Iterable[str], group: bool = False) -> None:
    """Create the semaphores that guard claims and pace synchronous sensors. :func:`remove_semaphores` removes these
    semaphores.
    """
    mode, before = (0o660, os.umask(0)) if group else (0o600, os.umask(0o077))  # the mode cannot be changed later
    try:
        posix_ipc.Semaphore(_claim_name(server), posix_ipc.O_CREX, mode=mode, initial_value=1).close()
        for sensor in sensors:
            for what in ("due", "done"):
                posix_ipc.Semaphore(_semaphore_name(server, sensor, what), posix_ipc.O_CREX, mode=mode).close()
    finally:
        os.umask(before)


def remove_semaphores(server: str, sensors: Iterable[str]) -> list[str]:
    """Remove the semaphores that :func:`create_semaphores` created and that still exist, and return their names."""
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
        if server not in dict(running_servers()):
            raise no_such_server(server) from None
        raise NotRunning(f"the server '{server}' is shutting down") from None
    except (posix_ipc.PermissionsError, PermissionError):
        raise AttachError(f"no permission to open the semaphore {name}") from None


def open_semaphore(server: str, sensor: str, what: str) -> posix_ipc.Semaphore:
    """Return one of the two semaphores that pace a synchronous sensor: ``due`` or ``done``."""
    return _open(server, _semaphore_name(server, sensor, what))


class ClaimLock:
    """Context manager for the semaphore that guards claims. If the semaphore is not released within ``timeout``
    seconds, its holder is assumed to have been killed, and the lock is taken over.
    """

    def __init__(self, server: str, timeout: float = 2.0) -> None:
        self._guard, self._timeout = _open(server, _claim_name(server)), timeout

    def __enter__(self) -> None:
        # The guarded part takes microseconds: a process that holds the semaphore for seconds has ended, so its post is used.
        with contextlib.suppress(posix_ipc.BusyError):
            self._guard.acquire(self._timeout)

    def __exit__(self, *_: object) -> None:
        if self._guard.value == 0:
            self._guard.release()
        self._guard.close()
