"""Server side of an emulator on another machine. It claims the table of the sensor type and writes to the table on
behalf of the emulator.

The emulator receives the tables that it needs: at first all rows that are not zero, and later the rows that have
changed. To the engine, such an emulator looks the same as an emulator on the server's machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Ints, Mask, as_numbers, as_words
from wavesim_sdk.arrival_batches import ARRIVAL_TABLES, split_batch
from wavesim_sdk.attach import FleetSnapshot, SensorTableClaim, SharedState
from wavesim_sdk.errors import AttachError, NotRunning, UnknownPart
from wavesim_sdk.frame_rings import FrameRings
from wavesim_sdk.front_rings import FrontReader
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, RECORD, ImagingFrame
from wavesim_sdk.sensors import HEAD_COLUMNS, all_sensor_tables, sensor_table_of, value_count
from wavesim_sdk.shared_memory import DONE
from wavesim_sdk.tables import CLOCK, INSTRUMENTS, VEHICLE_TABLES, WEATHER, WORLD, Table
from wavesim_sdk.wire.emulator_items import (
    MAX_TABLE_DATA,
    ArrivalPart,
    Arrivals,
    Attach,
    Due,
    FramePart,
    Rows,
    Serve,
    TableDescription,
    Values,
    Written,
)

__all__ = ["EMULATOR_TABLES", "FRAME_NUMBERS", "EmulatorService", "column_hash"]

EmulatorRequest = Attach | Serve | Values | Written | FramePart
#: pseudo-table for an emulator that produces frames: number of the newest frame from each instrument
FRAME_NUMBERS = "frames"
FRAME_NUMBERS_DTYPE = np.dtype([("number", "<i8")])
BODY_TABLES = frozenset(t.name for t in VEHICLE_TABLES if t is not INSTRUMENTS)  #: tables with a row for each body
ALWAYS = ("identity", "instruments", "state")  #: tables sent with the first ATTACH and with each DUE
#: tables that an emulator may receive, in addition to the tables of sensors
EMULATOR_TABLES: dict[str, Table] = {t.name: t for t in (*VEHICLE_TABLES, WORLD, WEATHER, CLOCK)}
WATCH_S = 0.5  #: interval in s at which to check whether the service has ended


def column_hash(dtype: np.dtype[Any]) -> str:
    """Return the hash of the columns of a table; equal hashes mean equal columns."""
    return hashlib.sha256(repr(dtype.descr).encode()).hexdigest()[:16]


def pieces(data: bytes, first: int = 0) -> Iterator[tuple[int, bytes]]:
    """Split data into pieces that fit into one item each, and yield the pieces with their offsets. ``first`` is the
    offset of the first piece.
    """
    for at in range(0, len(data), MAX_TABLE_DATA):
        yield first + at, data[at : at + MAX_TABLE_DATA]


def row_pieces(words: Ints, rows: Ints) -> Iterator[tuple[int, bytes]]:
    """Split rows of a table into pieces that fit into one item each, and yield the pieces with their offsets in the
    table. ``rows`` is ascending and not empty.
    """
    for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
        yield from pieces(words[run].tobytes(), int(run[0]) * words.shape[1] * 8)


class _Feed:
    """One table that an emulator receives, with the content that the emulator already has."""

    def __init__(self, number: int, words: Ints) -> None:
        self.number, self.sent = number, np.zeros_like(words)

    def changes(self, words: Ints, wanted: Mask | None = None) -> Iterator[Rows]:
        """Yield the changed rows, limited to the requested rows if these are given."""
        differs = (words != self.sent).any(axis=1)
        rows = np.flatnonzero(differs if wanted is None else differs & wanted)
        if not len(rows):
            return
        self.sent[rows] = words[rows]
        for offset, data in row_pieces(words, rows):
            yield Rows(self.number, offset, data)


class DueWatcher:
    """Thread that waits for the due ticks of a claim, because a semaphore cannot wake an event loop."""

    def __init__(self, claim: SensorTableClaim, report: Callable[[int], None]) -> None:
        self._claim, self._report, self._is_over = claim, report, False
        self._thread = threading.Thread(target=self._watch, name=f"due {claim.sensor}", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._is_over:
            due = self._claim.wait_due(WATCH_S)
            if due is not None and not self._is_over:
                self._report(due)

    def end(self) -> None:
        """End the thread."""
        self._is_over = True
        self._claim.wake()
        self._thread.join()


class EmulatorService:
    """Service for one emulator. ``push`` sends an event to the emulator. ``report_due`` is called with each due tick in
    another thread, and must schedule a call to :meth:`on_due` in the server's event loop. ``before_frame`` is called
    before a frame is overwritten. ``room`` returns the number of events that the session can take now; arrivals that do
    not fit wait for :meth:`continue_sending`.

    If a request from the emulator is invalid, the methods raise a ValueError whose message is intended for the
    emulator.
    """

    def __init__(
        self,
        state: SharedState,
        sensor: str,
        push: Callable[[TableDescription | Rows | Arrivals | ArrivalPart | Due], None],
        report_due: Callable[[int], None],
        before_frame: Callable[[], None] = lambda: None,
        room: Callable[[], int] = lambda: 1,
    ) -> None:
        self.state, self.sensor, self._push, self._before_frame = state, sensor, push, before_frame
        self._room = room
        self._waiting: deque[Arrivals | ArrivalPart | Due] = deque()  #: events that wait for room
        self.claim = SensorTableClaim(state, sensor)
        self._watcher = DueWatcher(self.claim, report_due)
        self._step_ns = int(state.world()["step_ns"])
        self._write_count = self.claim.table.header[
            DONE
        ]  # number of writes of the table, as of the last one by the emulator
        self._rows = state.values(sensor)  #: newest values written by the emulator
        self._count = value_count(sensor_table_of(sensor))
        self._feeds: dict[str, _Feed] = {}
        self._tables: tuple[str, ...] = ()
        self._all_bodies = True
        self._lockstep = False
        self._asked: FleetSnapshot | None = None  #: bodies in the DUE that has not been answered yet
        self._next_due: int | None = None  #: due tick that arrived while the service was waiting for an answer
        self._version = 0
        self._seen_version: tuple[int, ...] | None = None
        self._parts: dict[int, bytearray] = {}  #: incomplete frames, by row
        self._rings: FrameRings | None = None
        self._fronts: FrontReader | None = None

    def release(self) -> None:
        """Release the claim on the sensor table."""
        self._watcher.end()
        self.claim.release()

    # -- requests ------------------------------------------------------------------------------------

    def handle(self, request: EmulatorRequest) -> bool:
        """Handle a request from the emulator. Return whether the request must be answered."""
        match request:
            case Attach():
                self._attach(request)
                return True
            case Serve(lockstep):
                self._serve(bool(lockstep))
                return True
            case Values(offset, data):
                raw = self._rows.view(np.uint8)
                if offset + len(data) > len(raw):
                    raise ValueError(
                        f"values: bytes {offset} .. {offset + len(data)} are outside the table, which has {len(raw)} bytes"
                    )
                raw[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
            case Written(tick, written):
                self._written(tick, bool(written))
            case FramePart():
                self._frame_part(request)
        return False

    def _attach(self, request: Attach) -> None:
        if self._feeds:
            raise ValueError("ATTACH may be sent only once")
        for name in request.tables:
            if name not in EMULATOR_TABLES and name not in all_sensor_tables() and name not in ARRIVAL_TABLES:
                raise ValueError(f"an emulator cannot receive the table '{name}'")
        self._all_bodies = bool(request.all_bodies)
        named = dict.fromkeys((*ALWAYS, *request.tables))
        named.pop(WORLD.name, None)
        self._tables = tuple(name for name in named if name not in ARRIVAL_TABLES)
        self._describe(WORLD.name, as_words(self.state.simulation[WORLD.name].snapshot()[1]))
        for name in dict.fromkeys((self.sensor, *self._tables)):
            try:
                self._describe(name, as_words(self.state.table(name).snapshot()[1]), send=name == self.sensor)
            except UnknownPart as error:
                self._feeds.clear()
                raise ValueError(str(error)) from None
        if self.sensor in FRAME_SENSOR_TYPES:
            self._rings = FrameRings.attach(self.state.server, writable=True)
            self._describe(FRAME_NUMBERS, self._frame_numbers())
        if arrivals := [table for name, table in ARRIVAL_TABLES.items() if name in named]:
            self._attach_fronts(arrivals)

    def _attach_fronts(self, arrivals: Sequence[Table]) -> None:
        """Describe the tables of arrivals, which have no permanent rows, and open the rings of fronts."""
        try:
            self._fronts = FrontReader.open(self.state.server)
        except (NotRunning, AttachError) as error:
            raise ValueError(str(error)) from None
        for number, table in enumerate(arrivals, len(self._feeds)):
            self._push(TableDescription(number, table.name, 0, table.dtype.itemsize, column_hash(table.dtype)))

    def _describe(self, name: str, words: Ints, send: bool = True) -> None:
        feed = self._feeds[name] = _Feed(len(self._feeds), words)
        dtype = self.state.table(name).dtype if name != FRAME_NUMBERS else FRAME_NUMBERS_DTYPE
        self._push(TableDescription(feed.number, name, len(words), dtype.itemsize, column_hash(dtype)))
        if send:
            for event in feed.changes(words):
                self._push(event)

    def _serve(self, lockstep: bool) -> None:
        if not self._feeds:
            raise ValueError("send ATTACH before SERVE")
        self._lockstep = lockstep
        if lockstep:
            self.claim.request_synchronous()
        elif self._asked is None:
            self._send_due(None)

    def _written(self, tick: int, written: bool) -> None:
        asked, self._asked = self._asked, None
        if asked is None or asked.tick != tick:
            self._asked = asked
            raise ValueError(f"WRITTEN names tick {tick}, which is not due")
        try:
            if written:
                wrong = self._find_mistake(asked)
                if wrong:
                    raise ValueError(wrong)
                self.claim.write(self._rows, tick)
                self._write_count = self.claim.table.header[DONE]
        finally:
            if self._lockstep:
                self.claim.signal_done()
                if not self.claim.is_synchronous:  # the engine stopped waiting: this emulator answers again
                    self.claim.request_synchronous()
        if self._next_due is not None:
            self.on_due(self._next_due)

    def _find_mistake(self, asked: FleetSnapshot) -> str:
        """Return the reason why the values must not be published, or an empty string if they are valid."""
        new, old = self._rows, self.claim.table.latest
        rows = np.flatnonzero((as_words(new) != as_words(old)).any(axis=1))
        changed, before = new[rows], old[rows]
        generations = np.full(len(new), -1)
        instruments = asked.tables["instruments"]
        mine = instruments[(instruments["type"] == self.sensor.encode()) & (instruments["body"] >= 0)]
        generations[mine["place"]] = mine["generation"]
        valid = changed["valid"] == 1
        values = as_numbers(new)[rows][:, HEAD_COLUMNS : HEAD_COLUMNS + self._count]
        same = before["generation"] == changed["generation"]
        for is_wrong, text in (
            ((changed["valid"] != 1) & (changed["valid"] != 0), "`valid` must be 0 or 1"),
            (valid & (changed["generation"] != generations[rows]), "the row has no instrument with this generation"),
            (valid & ((changed["tick"] < 0) | (changed["tick"] > asked.tick)), f"`tick` exceeds {asked.tick}"),
            (valid & (changed["time_ns"] != changed["tick"] * self._step_ns), "`time_ns` is not the time of `tick`"),
            (valid & same & (changed["sequence"] < before["sequence"]), "`sequence` decreases"),
            (valid & np.isinf(values).any(axis=1), "a value is infinite; use NaN for a missing value"),
        ):
            if is_wrong.any():
                return f"invalid values of '{self.sensor}' in row {rows[np.flatnonzero(is_wrong)[0]]}: {text}"
        return ""

    # -- due ticks -----------------------------------------------------------------------------------

    def on_due(self, due: int) -> None:
        """Send the tables and a DUE. If the previous DUE is still unanswered, delay the new one until the answer
        arrives.
        """
        if not self._lockstep:
            return
        if self._asked is not None:
            self._next_due = due
            return
        self._next_due = None
        self._send_due(due)

    def _send_due(self, due: int | None) -> None:
        view = self._asked = self.state.snapshot(*(t for t in self._tables if t not in ("identity", "state")))
        if view.version != self._seen_version:
            self._version, self._seen_version = self._version + 1, view.version
        if self.claim.table.header[DONE] != self._write_count:  # the engine has restored a snapshot
            self._write_count = self.claim.table.header[DONE]
            self._rows = self.state.values(self.sensor)
            words = as_words(self._rows)
            self._feeds[self.sensor].sent = ~words  # every row differs, so the emulator receives the whole table
            for event in self._feeds[self.sensor].changes(words):
                self._push(event)
        instruments = view.tables["instruments"]
        mine = (instruments["type"] == self.sensor.encode()) & (instruments["body"] >= 0)
        wanted = np.full(len(view.identity), self._all_bodies)
        wanted[instruments["body"][mine]] = True
        for name in self._tables:
            rows = view.identity if name == "identity" else view.state if name == "state" else view.tables[name]
            self._send_changes(name, as_words(rows), mine, wanted)
        if self._rings is not None:
            self._send_changes(FRAME_NUMBERS, self._frame_numbers(), mine, wanted)
        if self._fronts is not None:
            self._waiting += split_batch(self._fronts.take())
        self._waiting.append(Due(view.tick if due is None else due, view.tick, view.time_ns, self._version))
        self.continue_sending()

    def continue_sending(self) -> bool:
        """Send the waiting events for which the session has room. Return whether any are left."""
        while self._waiting and self._room() > 0:
            self._push(self._waiting.popleft())
        return bool(self._waiting)

    def _send_changes(self, name: str, words: Ints, mine: Mask, wanted: Mask) -> None:
        if name == INSTRUMENTS.name:
            words = np.where(mine[:, None], words, 0)
        elif name == "identity":
            words = np.where(wanted[:, None], words, 0)
        for event in self._feeds[name].changes(words, wanted if name in BODY_TABLES and name != "identity" else None):
            self._push(event)

    # -- frames --------------------------------------------------------------------------------------

    def _frame_numbers(self) -> Ints:
        assert self._rings is not None
        count = len(self._rows)
        rings = [self._rings.ring_index(self.sensor, row) for row in range(count)]
        return self._rings.done[rings].reshape(count, 1).astype(np.int64)

    def _frame_part(self, part: FramePart) -> None:
        if self._rings is None or self._asked is None:
            raise ValueError("a frame must belong to a DUE for a sensor type that has frames")
        if not RECORD.itemsize <= part.size <= self._rings.slot_bytes or part.row >= len(self._rows):
            raise ValueError(f"a frame of {part.size} bytes does not fit into the ring for row {part.row}")
        if part.offset == 0:
            self._parts[part.row] = bytearray()
        data = self._parts.get(part.row)
        if data is None or part.offset != len(data) or part.offset + len(part.data) > part.size:
            self._parts.pop(part.row, None)
            raise ValueError(f"the parts of a frame for row {part.row} are not in order")
        data += part.data
        if len(data) == part.size:
            self._write_frame(part.row, bytes(self._parts.pop(part.row)), self._asked)

    def _write_frame(self, row: int, data: bytes, asked: FleetSnapshot) -> None:
        assert self._rings is not None
        frame = ImagingFrame.from_bytes(data)
        entries = asked.tables["instruments"]
        found = entries[(entries["type"] == self.sensor.encode()) & (entries["place"] == row) & (entries["body"] >= 0)]
        if not len(found):
            raise ValueError(f"row {row} has no instrument of type '{self.sensor}'")
        r, entry = frame.record, found[0]
        body = asked.identity["name"][entry["body"]]
        if (r["generation"], r["body"], r["name"]) != (entry["generation"], body, entry["name"]):
            raise ValueError(
                f"the body, name or generation in the frame differs from that of the instrument in row {row}"
            )
        if not 0 <= r["time_ns"] <= asked.time_ns:
            raise ValueError(f"the `time_ns` of the frame exceeds {asked.time_ns}")
        self._before_frame()
        with contextlib.suppress(AttachError):  # its size was checked
            self._rings.write(self._rings.ring_index(self.sensor, row), r.copy(), frame.payload)


def unknown_sensor(sensor: str, there: Sequence[str]) -> str:
    """Return the message for a sensor type that the run does not use."""
    return f"no body of this run has a sensor of type '{sensor}'; available: {', '.join(there) or 'none'}"
