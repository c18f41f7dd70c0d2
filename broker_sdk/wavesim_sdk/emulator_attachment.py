"""Attachment of an emulator to a server, through shared memory on the same machine or over the network from any other
machine.

An emulator waits for a due tick, takes a snapshot of the bodies, writes the values for its sensor type and reports that
it is done. Both kinds of attachment have the same methods, so the code of an emulator does not depend on the machine on
which it runs::

    with attach_emulator("10.0.0.2:9750", "depth") as server:
        values = server.values()
        server.serve()
        while server.alive():
            if (due := server.wait(0.2)) is not None:
                view = server.snapshot()
                ...  # fill the rows of the instruments that are due
                server.write(values, view.tick)
                server.done()
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from wavesim_sdk import arguments
from wavesim_sdk.arrays import Ints, Record, as_words
from wavesim_sdk.arrival_batches import ARRIVAL_TABLES, ArrivalCollector
from wavesim_sdk.attach import FleetSnapshot, SensorTableClaim, SharedState
from wavesim_sdk.broker import ANSWER_TIMEOUT_S, JOIN_TIMEOUT_S
from wavesim_sdk.emulator_service import (
    EMULATOR_TABLES,
    FRAME_NUMBERS,
    FRAME_NUMBERS_DTYPE,
    column_hash,
    pieces,
    row_pieces,
)
from wavesim_sdk.errors import AttachError, Refused, SessionEnded, SessionLost
from wavesim_sdk.frame_rings import FrameRings
from wavesim_sdk.front_rings import FrontReader
from wavesim_sdk.front_tables import FrontBatch
from wavesim_sdk.onboard import RequestOutcomes
from wavesim_sdk.sensors import all_sensor_tables, sensor_table_of
from wavesim_sdk.server_address import address_of
from wavesim_sdk.shared_memory import DONE
from wavesim_sdk.wire.client import SessionEvent
from wavesim_sdk.wire.emulator_items import (
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
from wavesim_sdk.wire.items import Answer, RequestRefused
from wavesim_sdk.wire.link import SessionLink
from wavesim_sdk.wire.messages import SHUTDOWN, Join, Role

__all__ = ["EmulatorAttachment", "LocalAttachment", "RemoteAttachment", "attach_emulator", "is_remote"]

MAX_UNACKNOWLEDGED = 1024  #: maximum number of unacknowledged requests before a frame has to wait
FRAME_PATIENCE_S = 2.0  #: maximum time in s to wait for the log writer to read a frame before the frame is overwritten


class EmulatorAttachment(Protocol):
    """Attachment to a server for the emulator of one sensor type. Only one emulator of each type can be attached."""

    @property
    def world(self) -> Record:
        """The record in the `world` table."""

    def values(self) -> Record:
        """Return a copy of the values from all instruments of this type, as the previous emulator left them."""

    def serve(self, lockstep: bool = True) -> None:
        """Begin to serve the sensor type. In lockstep, the engine waits for the values; otherwise, this emulator sets
        its own pace.
        """

    def wait(self, timeout: float, pause: float = 0.2) -> int | None:
        """Wait until values are due, and return their tick. Return None after ``timeout`` seconds.

        An emulator that sets its own pace waits ``pause`` seconds; it then uses the tick of the snapshot.
        """

    def snapshot(self) -> FleetSnapshot:
        """Return the bodies at one tick, together with the `instruments` table and the requested tables."""

    def write(self, rows: Record, tick: int) -> None:
        """Publish the values of all rows at the tick of the snapshot."""

    def write_frame(self, row: int, record: Any, *payload: bytes) -> int:
        """Publish a frame from the instrument whose values are in this row. Return the number of the frame, for the
        `frame` column.
        """

    def take_fronts(self) -> FrontBatch:
        """Return the waveforms and fronts since the last call. Only attachments with the tables `waveform` and `front`
        have them.
        """

    def take_restored(self) -> Record | None:
        """Return the values of all instruments if the server has replaced them since the last call, because it was
        reset or has returned to a snapshot; otherwise, return None. The emulator must continue from these values.
        """

    def done(self) -> None:
        """Report that the values of the due tick have been written."""

    def alive(self) -> bool:
        """Return whether the server is still running."""

    def release(self) -> None:
        """Detach the emulator; another emulator can then serve this sensor type."""

    def __enter__(self) -> EmulatorAttachment: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def is_remote(server: str) -> bool:
    """Return whether a server is specified by its address (HOST:PORT), rather than by its name on this machine."""
    return ":" in server


def attach_emulator(
    server: str, sensor: str, tables: Sequence[str] = (), all_bodies: bool = True, key: bytes | None = None
) -> EmulatorAttachment:
    """Attach an emulator to a server, which is specified by its name on this machine or as HOST:PORT.

    :param server: name of a server on this machine, or ``"HOST:PORT"``
    :param sensor: sensor type that the emulator serves
    :param tables: tables that the emulator needs at each tick, in addition to `identity`, `state` and `instruments`
    :param all_bodies: whether the emulator needs all bodies, or only those with an instrument of its type
    :param key: key of 32 or 64 bytes (`wavesim keys`); None: the key in the file that WAVESIM_KEYS names, if this
        environment variable is set
    """
    if is_remote(server):
        return RemoteAttachment(address_of(server), sensor, tables, all_bodies, key)
    return LocalAttachment(server, sensor, tables)


class LocalAttachment:
    """Attachment to a server on this machine."""

    def __init__(self, server: str, sensor: str, tables: Sequence[str] = ()) -> None:
        self.state = SharedState(server)
        shared = (name for name in tables if name not in ARRIVAL_TABLES)
        self.sensor, self._tables = sensor, tuple(dict.fromkeys(("instruments", *shared)))
        self._lockstep = True
        self._rings: FrameRings | None = None
        self._fronts: FrontReader | None = None
        self._written = 0  # number of writes of the table, as of the last one by this emulator
        self._claim: SensorTableClaim | None = None

    @property
    def claim(self) -> SensorTableClaim:
        """The claim on the table of values, which is created on first use."""
        if self._claim is None:
            self._claim = SensorTableClaim(self.state, self.sensor)
            self._written = self._claim.table.header[DONE]
        return self._claim

    def __enter__(self) -> LocalAttachment:
        assert self.claim
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def world(self) -> Record:
        return self.state.world()

    def values(self) -> Record:
        assert self.claim
        return self.state.values(self.sensor)

    def serve(self, lockstep: bool = True) -> None:
        self._lockstep = lockstep
        if lockstep:
            self.claim.request_synchronous()

    def wait(self, timeout: float, pause: float = 0.2) -> int | None:
        if not self._lockstep:
            time.sleep(min(timeout, pause))
            return 0 if self.alive() else None
        due = self.claim.wait_due(timeout)
        if due is None and not self.claim.is_synchronous and self.alive():
            self.claim.request_synchronous()  # the engine stopped waiting for this emulator: ask it to wait again
        return due

    def snapshot(self) -> FleetSnapshot:
        return self.state.snapshot(*self._tables)

    def write(self, rows: Record, tick: int) -> None:
        self.claim.write(rows, tick)
        self._written = self.claim.table.header[DONE]

    def take_fronts(self) -> FrontBatch:
        if self._fronts is None:
            self._fronts = FrontReader.open(self.state.server)
        return self._fronts.take()

    def take_restored(self) -> Record | None:
        done = self.claim.table.header[DONE]
        if done == self._written:
            return None
        self._written = done
        return self.state.values(self.sensor)

    def write_frame(self, row: int, record: Any, *payload: bytes) -> int:
        if self._rings is None:
            self._rings = FrameRings.attach(self.state.server, writable=True)
        real = 0.0 < self.state.clock()["speed"] <= 1.0  # a frame cannot wait for the log in real time
        ring = self._rings.ring_index(self.sensor, row)
        return self._rings.write(ring, record, *payload, patience=0.0 if real else FRAME_PATIENCE_S)

    def done(self) -> None:
        if self._lockstep:
            self.claim.signal_done()

    def alive(self) -> bool:
        return self.state.alive()

    def release(self) -> None:
        if self._claim is not None:
            self._claim.release()


class RemoteAttachment:
    """Attachment to a server over the network, as a client of the server with the emulator role."""

    def __init__(
        self,
        server: tuple[str, int],
        sensor: str,
        tables: Sequence[str] = (),
        all_bodies: bool = True,
        key: bytes | None = None,
    ) -> None:
        self.sensor = sensor
        join = Join(name=arguments.short_name("sensor", sensor), role=Role.EMULATOR)
        self.link = SessionLink(join, server, arguments.key_bytes(key))
        self._names: dict[int, str] = {}  # names of tables, by number
        self._tables: dict[str, Record] = {}
        self._named = tuple(name for name in tables if name not in ARRIVAL_TABLES)
        self._arrivals = ArrivalCollector()
        self._outcomes = RequestOutcomes()
        self._due: Due | None = None
        self._view: Due | None = None
        self._lockstep = True
        self._is_over = False
        self._changed = self._is_restored = False
        self.link.connect(JOIN_TIMEOUT_S)
        try:
            self._await(self.link.session.request(Attach(tuple(tables), int(all_bodies))))
        except BaseException:
            self.link.close()
            raise
        self._sent: Ints = as_words(self._tables[sensor]).copy()  #: values that the server already has
        self._is_restored = False  # the first values are not a change

    def __enter__(self) -> RemoteAttachment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    @property
    def world(self) -> Record:
        world: Record = self._tables["world"][0]
        return world

    def values(self) -> Record:
        return self._tables[self.sensor].copy()

    def serve(self, lockstep: bool = True) -> None:
        self._lockstep = lockstep
        if lockstep:
            self.link.session.request(Serve(1))
            self.link.flush(time.monotonic())

    def wait(self, timeout: float, pause: float = 0.2) -> int | None:
        limit = time.monotonic() + timeout
        if not self._lockstep and self._due is None:
            begin = time.monotonic() + min(timeout, pause)
            while not self._is_over and time.monotonic() < begin:
                self._poll(begin)
            self.link.session.request(Serve(0))
            limit = time.monotonic() + timeout
        while self._due is None:
            if self._is_over or time.monotonic() >= limit:
                return None
            self._poll(limit)
        self._view, self._due = self._due, None
        return self._view.due

    def snapshot(self) -> FleetSnapshot:
        at = self._view
        if at is None:
            raise AttachError("wait() must return a tick before snapshot() is called")
        tables = {name: self._tables[name].copy() for name in ("instruments", *self._named)}
        identity, state = self._tables["identity"].copy(), self._tables["state"].copy()
        rows = np.flatnonzero(identity["present"])
        return FleetSnapshot(at.tick, at.time_ns, rows, identity, state, tables, (at.version,))

    def write(self, rows: Record, tick: int) -> None:
        words = as_words(rows)
        changed = np.flatnonzero((words != self._sent).any(axis=1))
        if not len(changed):
            return
        self._sent[changed] = words[changed]
        for offset, data in row_pieces(words, changed):
            self._request(Values(offset, data))
        self._changed = True

    def take_fronts(self) -> FrontBatch:
        if self._view is None:
            raise AttachError("wait() must return a tick before take_fronts() is called")
        return self._arrivals.take(self._view.time_ns)

    def take_restored(self) -> Record | None:
        restored, self._is_restored = self._is_restored, False
        if not restored:
            return None
        self._sent = as_words(self._tables[self.sensor]).copy()
        return self.values()

    def write_frame(self, row: int, record: Any, *payload: bytes) -> int:
        numbers = self._tables[FRAME_NUMBERS]["number"]
        body = b"".join(payload)
        number = int(numbers[row]) + 1
        record["number"], record["bytes"] = number, len(body)
        data = record.tobytes() + body
        for offset, piece in pieces(data):
            self._request(FramePart(int(row), offset, len(data), piece))
        numbers[row] = number
        return number

    def done(self) -> None:
        assert self._view is not None
        self._request(Written(self._view.tick, int(self._changed)))
        self._changed = False
        self.link.flush(time.monotonic())

    def alive(self) -> bool:
        return not self._is_over

    def release(self) -> None:
        limit = time.monotonic() + 1.0  # the last values must arrive before the session ends
        while not self._is_over and self.link.session.unacknowledged_requests and time.monotonic() < limit:
            self._poll(limit)
        self.link.close()

    def _request(self, item: Values | Written | FramePart) -> None:
        """Send a request. If the server is slow to acknowledge requests, wait until it has caught up."""
        session = self.link.session
        while session.unacknowledged_requests >= MAX_UNACKNOWLEDGED and not self._is_over:
            self._poll(time.monotonic() + 1.0)
        session.request(item)

    def _poll(self, limit: float) -> None:
        try:
            for event in self.link.poll(limit):
                self._feed(event)
            self.link.check_alive()
        except SessionEnded:
            if self.link.session.end_reason != SHUTDOWN:
                raise
            self._is_over = True

    def _feed(self, event: SessionEvent) -> None:
        match event:
            case Rows(table, offset, data) if table in self._names:
                raw = self._tables[self._names[table]].view(np.uint8)
                if offset + len(data) > len(raw):
                    raise AttachError(f"the server sent {len(data)} bytes beyond the end of '{self._names[table]}'")
                raw[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
                self._is_restored |= self._names[table] == self.sensor
            case Due():
                self._due = event
            case Arrivals() | ArrivalPart():
                self._arrivals.feed(event)
            case TableDescription():
                self._add_table(event)
            case RequestRefused(text=text):
                raise Refused(f"the server refused a request from the emulator '{self.sensor}': {text}")
            case Answer():
                self._outcomes.add(event)

    def _add_table(self, table: TableDescription) -> None:
        known = {**EMULATOR_TABLES, **ARRIVAL_TABLES, **all_sensor_tables()}
        if table.name == FRAME_NUMBERS:
            dtype = FRAME_NUMBERS_DTYPE
        else:
            dtype = known[table.name].dtype if table.name in known else sensor_table_of(table.name).dtype
        if (table.columns, table.row_bytes) != (column_hash(dtype), dtype.itemsize):
            raise AttachError(
                f"the server's table '{table.name}' does not have the columns that this program expects; install the same release on both machines"
            )
        self._names[table.number] = table.name
        self._tables[table.name] = np.zeros(table.rows, dtype)

    def _await(self, request: int) -> None:
        limit = time.monotonic() + ANSWER_TIMEOUT_S
        while self._outcomes.take(request) is None:
            if time.monotonic() >= limit or self._is_over:
                raise SessionLost(f"the server did not answer within {ANSWER_TIMEOUT_S:g} s")
            self._poll(limit)
