"""Names and removal of a server's shared objects, and the lock on the server's name."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import tempfile
from pathlib import Path
from typing import IO, NoReturn

import posix_ipc

from wavesim_sdk import frame_rings, front_rings
from wavesim_sdk.attach import remove_semaphores, simulation_tables
from wavesim_sdk.commander import queue_name
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.front_rings import FrontRings
from wavesim_sdk.names import server_name
from wavesim_sdk.reply_queue import remove_stale_queues
from wavesim_sdk.sensors import all_sensor_tables, sensor_table_of
from wavesim_sdk.shared_memory import SharedMemoryArea, segment_name
from wavesim_sdk.tables import INSTRUMENTS, LINES, VEHICLE_TABLES, Table
from wavesim_server.messages import EXIT_NO_RESOURCE
from wavesim_world.config import LoadedConfig


def attach_areas(server: str) -> dict[str, SharedMemoryArea]:
    """Attach to the shared-memory areas of a server in order to write to them."""
    return {a: SharedMemoryArea.attach(segment_name(server, a), writable=True) for a in ("simulation", "vehicles")}


def attach_front_rings(loaded: LoadedConfig, server: str) -> FrontRings | None:
    """Attach to the rings of fronts of a server in order to write to them; None if there are no hydrophones."""
    return FrontRings.attach(server, writable=True) if loaded.sensor_rows.get("hydrophone") else None


class AlreadyRunning(WaveSimError):
    """Raised if another server owns the name."""

    exit_code = 7


class NameLock:
    """An advisory lock on a name. The kernel releases the lock when its holder exits; release() also removes the file."""

    def __init__(self, server: str) -> None:
        folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
        self._path = folder / f"wavesim-{os.getuid()}-{server_name(server)}.lock"
        while True:
            self._file: IO[str] = _open_own_file(self._path)
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._file.seek(0)
                pid = self._file.read().strip() or "unknown"
                self._file.close()
                raise AlreadyRunning(
                    f"a server named '{server}' is already running (process {pid}); "
                    "stop it, or select another name with --name"
                ) from None
            if self._is_current():
                break
            self._file.close()  # its last holder removed the file between open and lock
        self._file.seek(0)
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def _is_current(self) -> bool:
        """Return whether the path still names the locked file."""
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


def _open_own_file(path: Path) -> IO[str]:
    """Open a regular file that belongs to this user; reject links and files of other users."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise WaveSimError(f"cannot create the lock file {path}: {error.strerror}") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_nlink > 1:
        os.close(descriptor)
        raise WaveSimError(
            f"the lock file {path} belongs to another user or is not a regular file: remove it, or set XDG_RUNTIME_DIR to a folder of your own"
        )
    return os.fdopen(descriptor, "r+")


def area_tables(loaded: LoadedConfig) -> dict[str, list[tuple[Table, int]]]:
    """Return the tables of both shared-memory areas of a server, with their row counts."""
    shared = loaded.config.shared
    sensors = loaded.sensor_rows
    rows = {INSTRUMENTS.name: max(1, sum(sensors.values())), LINES.name: max(1, len(loaded.config.fleet.line))}
    vehicles = [(t, rows.get(t.name, shared.vehicles)) for t in VEHICLE_TABLES]
    vehicles += [(sensor_table_of(s), count) for s, count in sensors.items()]
    time = loaded.config.time
    simulation = simulation_tables(shared.vehicles, shared.signals, time.snapshots if time.snapshot_period else 1)
    return {"simulation": simulation, "vehicles": vehicles}


def exit_without_resource(part: str, error: Exception) -> NoReturn:
    """Exit from a process that cannot obtain a system resource (descriptors, memory, queues), with a one-line message."""
    sys.stderr.write(f"wavesim: the {part} could not obtain a system resource: {error}\n")
    sys.stderr.flush()
    os._exit(EXIT_NO_RESOURCE)  # a normal exit prints tracebacks of the half-initialised event loop


def ring_names(server: str) -> tuple[str, str]:
    """Return the names of two rings: the commands to the engine, and the events from the engine."""
    return segment_name(server, "commands"), segment_name(server, "events")


def remove_leftovers(server: str) -> list[str]:
    """Remove all objects that an earlier server with this name has left behind, and return the names of these objects."""
    found: list[str] = []
    areas = [segment_name(server, a) for a in ("simulation", "vehicles")]
    for name in (*areas, *ring_names(server)):
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_shared_memory(name)
            found.append(name)
    found += frame_rings.remove_rings(server)
    found += front_rings.SEGMENT.remove(server)
    found += remove_semaphores(server, all_sensor_tables())
    with contextlib.suppress(posix_ipc.ExistentialError):
        posix_ipc.unlink_message_queue(queue_name(server))
        found.append(queue_name(server))
    return found + remove_stale_queues(server)
