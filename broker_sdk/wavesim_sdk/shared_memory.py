"""Shared-memory areas: tables that one process writes and many processes read, one whole tick at a time.

docs/SHARED_MEMORY.md defines the layout of a shared-memory segment and of its tables.

The writer of a table increments ``begun``, fills the buffer ``begun & 1``, which readers do not use at that time, and
then sets ``done``. A reader copies the buffer ``done & 1`` and keeps the copy if ``begun`` has not exceeded ``done +
1`` in the meantime. No process has to wait, and no reader sees a half-written tick.

Tables in shared memory require a processor that makes stores visible in program order, as x86-64 does. On any other
machine, attaching raises an error, because Python does not have the memory fences that would enforce that order.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import mmap
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import posix_ipc

from wavesim_sdk.arrays import Floats, Ints, Record, as_numbers, as_words
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.layout import layout_hash
from wavesim_sdk.names import server_name
from wavesim_sdk.tables import LAYOUT_VERSION, Table

MAGIC = b"WVSMAREA"
HEADER_BYTES = 64
TABLE_HEADER_BYTES = 64
ORDERED_MACHINES = ("x86_64", "AMD64")  #: processors that preserve the order of stores and of loads
MEMORY = Path("/dev/shm")  #: folder in which Linux lists shared-memory segments
MAX_NAMED_SERVERS = 5  #: maximum number of servers that a message lists
BEGUN, DONE, TICK_0, TICK_1, OWNER, OWNER_START, DUE, SYNCHRONOUS = range(8)


def segment_name(server: str, area: str) -> str:
    """Return the POSIX name of the segment for an area."""
    return f"/wavesim.{server_name(server)}.{area}"


def process_start(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot, or 0 if the process does not exist.

    Together with the PID, the start time identifies a process uniquely, even though PIDs are reused.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def is_process_alive(pid: int, start: int) -> bool:
    """Return whether the process with this PID and start time is still running."""
    return pid > 0 and process_start(pid) == start


def running_servers() -> Iterator[tuple[str, int]]:
    """Yield the name of every server on this machine and the PID of its engine, sorted by name."""
    for path in sorted(MEMORY.glob("wavesim.*.simulation")):
        with contextlib.suppress(OSError, ValueError, UnicodeError):
            with path.open("rb") as segment:
                head = segment.read(HEADER_BYTES)
            pid, start = (int.from_bytes(head[at : at + 8], "little") for at in (40, 48))
            if head.startswith(MAGIC) and is_process_alive(pid, start):
                yield path.name.removeprefix("wavesim.").removesuffix(".simulation"), pid


def no_such_server(server: str) -> NotRunning:
    """Return the error for a server name that is not in use. The error suggests a running server, or states how to
    start one.
    """
    found = [name for name, _ in running_servers() if name != server]
    if not found:
        hint = "start one with: wavesim serve CONFIG"
    elif close := difflib.get_close_matches(server, found, 1):
        hint = f"did you mean '{close[0]}'?"
    else:
        hint = f"running here: {', '.join(found[:MAX_NAMED_SERVERS])}; select one with -s NAME"
    return NotRunning(f"no server named '{server}' is running; {hint}")


def server_of(segment: str) -> str:
    """Return the name of the server that owns a segment."""
    return segment.removeprefix("/wavesim.").partition(".")[0]


def require_ordered_stores() -> None:
    """Raise AttachError on a machine whose processor does not preserve the order of stores."""
    if platform.machine() not in ORDERED_MACHINES:
        raise AttachError(
            f"shared memory requires an x86-64 processor, which preserves the order of memory writes; this processor is '{platform.machine()}', "
            "where a reader could see a half-written tick. Only brokers run here, over the network; the server and emulators do not"
        )


def _format(dtype: np.dtype[Any]) -> str:
    """Return the format of a column for :mod:`struct`."""
    kinds = {"i": "q", "f": "d"}
    return kinds[dtype.base.kind] * math.prod(dtype.shape) if dtype.base.kind in kinds else f"{dtype.itemsize}s"


class TableView:
    """Table inside a mapped segment. Its rows consist of whole 8-byte words, so that they can be copied as numbers."""

    def __init__(self, buffer: memoryview, offset: int, capacity: int, dtype: np.dtype[np.void]) -> None:
        self.capacity, self.dtype = capacity, dtype
        start = offset + TABLE_HEADER_BYTES
        self.header = buffer[offset:start].cast("q")
        size = capacity * dtype.itemsize
        self.buffers: tuple[Record, Record] = (
            np.frombuffer(buffer, dtype, capacity, start),
            np.frombuffer(buffer, dtype, capacity, start + size),
        )
        #: the buffers as integers (rows, words), which NumPy copies ten times faster than structured rows
        self.words: tuple[Ints, Ints] = (as_words(self.buffers[0]), as_words(self.buffers[1]))
        #: the table's buffers in the form that kernels use
        self.numbers: tuple[Floats, Floats] = (as_numbers(self.buffers[0]), as_numbers(self.buffers[1]))
        #: the columns of a row for the :mod:`struct` module, which packs a row ten times faster than NumPy
        self.row_format = struct.Struct("<" + "".join(_format(dtype[name]) for name in dtype.names or ()))

    def snapshot(self, tries: int = 1_000_000) -> tuple[int, Record]:
        """Copy the last completed write, and return its tick and all rows. This never blocks the writer.

        Raises AttachError if ``tries`` attempts fail because the table changes too often or its header is damaged.
        """
        header = self.header
        for _ in range(tries):
            done = header[DONE]
            tick = header[TICK_0 + (done & 1)]
            copy = self.words[done & 1].copy()
            if header[BEGUN] <= done + 1:
                return tick, np.frombuffer(copy, self.dtype)
        raise AttachError("the table is changing faster than this program can read it")

    def take(self, rows: Ints, tries: int = 1_000_000) -> Ints:
        """Copy selected rows of the last completed write as a matrix of numbers; see :meth:`snapshot`."""
        for _ in range(tries):
            done = self.header[DONE]
            copy = self.words[done & 1].take(rows, 0)
            if self.header[BEGUN] <= done + 1:
                return copy
        raise AttachError("the table is changing faster than this program can read it")

    @property
    def latest(self) -> Record:
        """Return the rows of the last completed write without copying them. Only the writer may use this method."""
        return self.buffers[self.header[DONE] & 1]

    @property
    def latest_words(self) -> Ints:
        """Return the rows of :attr:`latest` as 64-bit integers."""
        return self.words[self.header[DONE] & 1]

    def begin_write(self) -> Record:
        """Begin a write and return the rows to fill. They still contain the values from the write before the previous
        one.
        """
        return self.buffers[self._begin()]

    def begin_numbers(self) -> Floats:
        """Begin a write and return the rows to fill as a matrix of numbers."""
        return self.numbers[self._begin()]

    def _begin(self) -> int:
        begun: int = self.header[DONE] + 1
        self.header[BEGUN] = begun
        return begun & 1

    def end_write(self, tick: int) -> None:
        """Publish the rows that were filled since :meth:`begin_write`."""
        begun = self.header[BEGUN]
        self.header[TICK_0 + (begun & 1)] = tick
        self.header[DONE] = begun

    def publish_row(self, tick: int, *numbers: float | bytes) -> None:
        """Publish the only row of a table, given as the numbers and texts of its columns; a column with three elements
        needs three values.
        """
        self.row_format.pack_into(self.words[self._begin()].data, 0, *numbers)
        self.end_write(tick)

    def publish(self, rows: Record, tick: int) -> None:
        """Publish a copy of ``rows``."""
        self.words[self._begin()][: len(rows)] = as_words(rows)
        self.end_write(tick)

    def publish_numbers(self, rows: Floats, tick: int) -> None:
        """Publish a copy of rows given as a matrix of numbers."""
        self.begin_numbers()[: len(rows)] = rows
        self.end_write(tick)


def create_memory(name: str, size: int, group: bool = False) -> mmap.mmap:
    """Create and allocate a shared-memory segment. Raises OSError if this fails.

    All pages are allocated immediately, because a later access to a page that the system cannot provide would kill the
    process.
    """
    require_ordered_stores()
    with contextlib.suppress(posix_ipc.ExistentialError):
        posix_ipc.unlink_shared_memory(name)
    shared = posix_ipc.SharedMemory(name, posix_ipc.O_CREX, mode=0o600)
    try:
        if group:
            os.fchmod(shared.fd, 0o660)  # the umask restricts the mode above
        os.ftruncate(shared.fd, size)
        os.posix_fallocate(shared.fd, 0, size)
        return mmap.mmap(shared.fd, size)
    except OSError as error:
        posix_ipc.unlink_shared_memory(name)
        raise OSError(
            f"{size / 2**20:.1f} MB of shared memory for {name} could not be allocated: {error.strerror}"
        ) from None
    finally:
        shared.close_fd()


def map_memory(name: str, magic: bytes, min_bytes: int, description: str, writable: bool = False) -> mmap.mmap:
    """Map a segment that another process created. It must start with ``magic`` and be at least ``min_bytes`` bytes
    long.

    ``description`` names the segment in messages. Raises posix_ipc.ExistentialError if the segment does not exist, and
    NotRunning if another process is still creating it. Raises AttachError if this process may not open the segment or
    if the segment is of another kind.
    """
    require_ordered_stores()
    try:
        shared = posix_ipc.SharedMemory(name, 0, read_only=not writable)
    except (posix_ipc.PermissionsError, PermissionError):
        raise AttachError(f"no permission to open the shared memory {name}") from None
    try:
        size = os.fstat(shared.fd).st_size
        if size == 0:  # the server has created it, but not yet set its size
            raise NotRunning(f"the server '{server_of(name)}' is still starting; try again")
        if size < min_bytes:
            raise AttachError(f"{name} is not a {description} (only {size} bytes)")
        memory = mmap.mmap(shared.fd, size, access=mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ)
    finally:
        shared.close_fd()
    if memory[:8] == bytes(8):  # the server writes the magic last
        raise NotRunning(f"the server '{server_of(name)}' is still starting; try again")
    if memory[:8] != magic:
        raise AttachError(f"{name} is not a {description}")
    return memory


class RingSegment(NamedTuple):
    """Identity of a shared-memory segment with rings. Its header consists of integers of 8 bytes: magic, version, the
    hash of the records (16 bytes), size, PID and start time of the server, and further numbers.
    """

    part: str  #: last part of the segment's name
    magic: bytes
    version: int
    record_hash: bytes
    header_bytes: int
    description: str  #: name of the segment in messages
    contents: str  #: instruments that a server without this segment lacks

    def create(self, server: str, size: int, numbers: Sequence[int], group: bool) -> Any:
        """Create the segment of a server, with further numbers in its header. Raises OSError on failure."""
        memory = create_memory(segment_name(server, self.part), size, group)
        header = np.frombuffer(memory, np.int64, 7 + len(numbers), 0)
        header[1], header[4:] = self.version, (size, os.getpid(), process_start(os.getpid()), *numbers)
        memory[16:32] = self.record_hash
        memory[0:8] = self.magic  # last, because readers take it for a sign that the rest is there
        return memory

    def attach(self, server: str, writable: bool) -> Any:
        """Map the segment of a server. Raises NotRunning or AttachError, with the reason, on failure."""
        name = segment_name(server, self.part)
        try:
            memory = map_memory(name, self.magic, self.header_bytes, self.description, writable)
        except posix_ipc.ExistentialError:
            if server not in dict(running_servers()):
                raise no_such_server(server) from None
            raise NotRunning(f"the server '{server}' has no {self.contents}; add them under <sensors>") from None
        if memory[16:32] != self.record_hash or int(np.frombuffer(memory, np.int64, 2)[1]) != self.version:
            raise AttachError(f"{name} was created by another release; install the same release on both sides")
        return memory

    def remove(self, server: str) -> list[str]:
        """Remove the segment of a server if it exists. Return its name in a list, which is empty if the segment did not
        exist.
        """
        name = segment_name(server, self.part)
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_shared_memory(name)
            return [name]
        return []


def require_owner(server: str, memory: Any) -> None:
    """Raise NotRunning if the server that created a segment with rings has ended."""
    pid, start = (int(n) for n in np.frombuffer(memory, np.int64, 2, 40))
    if not is_process_alive(pid, start):
        raise no_such_server(server)


def _layout(tables: Sequence[tuple[Table, int]]) -> tuple[list[dict[str, Any]], int]:
    """Return the layout of a segment (offset and columns of each table, in the form that the header contains) and the
    size of the segment.
    """
    layout: list[dict[str, Any]] = []
    for table, capacity in tables:
        fields = [
            {
                "name": f.name,
                "type": f"<{f.type}" if f.type[0] in "if" else f"|{f.type}",
                "shape": list(f.shape),
                "unit": f.unit,
                "doc": f.doc,
            }
            for f in table.fields
        ]
        layout.append(
            {"name": table.name, "offset": 2**53, "capacity": capacity, "writer": table.writer, "fields": fields}
        )
    # The text with the largest possible offsets is at least as long as with the real ones.
    offset = (HEADER_BYTES + len(json.dumps(layout).encode()) + 4095) & ~4095
    for entry, (table, capacity) in zip(layout, tables, strict=True):
        entry["offset"] = offset
        offset += TABLE_HEADER_BYTES + 2 * capacity * table.dtype.itemsize
        offset = (offset + 63) & ~63
    return layout, offset


def _write_header(memory: mmap.mmap | bytearray, layout: list[dict[str, Any]], size: int) -> None:
    """Write the header of a new area. The magic is written last, so that no process can attach while the header is
    incomplete.
    """
    text = json.dumps(layout).encode()
    header = np.frombuffer(memory, np.int64, 8, 0)
    memory[HEADER_BYTES : HEADER_BYTES + len(text)] = text
    header[1], header[4] = LAYOUT_VERSION, size
    header[5], header[6], header[7] = os.getpid(), process_start(os.getpid()), len(text)
    memory[16:32] = layout_hash().encode()
    memory[0:8] = MAGIC


class SharedMemoryArea:
    """Mapped segment with its tables."""

    def __init__(self, name: str, memory: mmap.mmap | bytearray) -> None:
        self.name, self._memory = name, memory
        self._view = memoryview(memory)
        self.header = np.frombuffer(self._view, np.int64, 8, 0)
        text = bytes(self._view[HEADER_BYTES : HEADER_BYTES + int(self.header[7])])
        self.layout: list[dict[str, Any]] = json.loads(text)
        self.tables: dict[str, TableView] = {}
        for t in self.layout:
            dtype = np.dtype([(f["name"], f["type"], tuple(f["shape"])) for f in t["fields"]])
            end = t["offset"] + TABLE_HEADER_BYTES + 2 * t["capacity"] * dtype.itemsize
            if min(t["offset"], t["capacity"]) < 0 or end > len(self._view):
                raise AttachError(f"{name} is damaged: table '{t['name']}' exceeds the segment")
            self.tables[t["name"]] = TableView(self._view, t["offset"], t["capacity"], dtype)

    def __getitem__(self, table: str) -> TableView:
        return self.tables[table]

    @property
    def server(self) -> tuple[int, int]:
        """(PID, start time) of the server that owns the segment."""
        return int(self.header[5]), int(self.header[6])

    @classmethod
    def create(cls, name: str, tables: Sequence[tuple[Table, int]], group: bool = False) -> SharedMemoryArea:
        """Create a shared-memory segment. The caller must ensure that no other server owns the name."""
        layout, size = _layout(tables)
        memory = create_memory(name, size, group)
        _write_header(memory, layout, size)
        return cls(name, memory)

    @classmethod
    def create_private(cls, tables: Sequence[tuple[Table, int]]) -> SharedMemoryArea:
        """Create an area in this process's own memory, for a server that runs in one process."""
        layout, size = _layout(tables)
        memory = bytearray(size)
        _write_header(memory, layout, size)
        return cls("", memory)

    @classmethod
    def attach(cls, name: str, writable: bool = False) -> SharedMemoryArea:
        """Attach to a server's segment; raises NotRunning or AttachError with the reason."""
        try:
            memory = map_memory(name, MAGIC, HEADER_BYTES, "WaVeSim area", writable)
        except posix_ipc.ExistentialError:
            raise no_such_server(server_of(name)) from None
        version = int.from_bytes(memory[8:16], "little")
        found = memory[16:32].decode(errors="replace")
        if version != LAYOUT_VERSION or found != layout_hash():
            raise AttachError(
                f"{name} has layout version {version} ({found}), but this program expects {LAYOUT_VERSION} ({layout_hash()}); install the same release on both sides"
            )
        try:
            area = cls(name, memory)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise AttachError(f"{name} is damaged: {error}") from None
        if not is_process_alive(*area.server):
            raise no_such_server(server_of(name))  # it was killed; the next start removes what it left
        return area

    def unlink(self) -> None:
        """Remove the name of the segment, if it has one. Existing mappings stay valid."""
        if self.name:
            with contextlib.suppress(posix_ipc.ExistentialError):
                posix_ipc.unlink_shared_memory(self.name)
