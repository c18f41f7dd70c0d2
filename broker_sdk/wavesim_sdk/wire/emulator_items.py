"""The items of a session with the emulator role: tables and due ticks from the server, and values and frames to the
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.wire.messages import FLAG, NAME, TICKS, TIME, UINT32
from wavesim_sdk.wire.schema import Bin, Int, List, record_field

MAX_TABLES = 32  #: maximum number of tables that one emulator can receive
MAX_TABLE_DATA = 1120  #: maximum number of bytes of a table or frame in one item
TABLE_NUMBER = Int(0, MAX_TABLES - 1)
_TABLE = "number of the table, as in its TABLE event"
_OFFSET = "offset of `data` in bytes from the start of the table's rows"
_BYTES, _DATA = Int(0, 2**40), Bin(1, MAX_TABLE_DATA)

# ------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table that an emulator receives. All of its rows are zero until ROWS events change them."""

    number: int = record_field(TABLE_NUMBER, "number by which ROWS refers to the table")
    name: str = record_field(NAME, "name of the table, as in docs/SHARED_MEMORY.md")
    rows: int = record_field(UINT32, "number of rows in the table")
    row_bytes: int = record_field(UINT32, "size of a row in bytes")
    columns: str = record_field(NAME, "hash of the columns; two tables with equal hashes have equal columns")


@dataclass(frozen=True, slots=True)
class Rows:
    """New content for a range of bytes in a table."""

    table: int = record_field(TABLE_NUMBER, _TABLE)
    offset: int = record_field(_BYTES, _OFFSET)
    data: bytes = record_field(_DATA, "new bytes, little-endian")


@dataclass(frozen=True, slots=True)
class Due:
    """The tables now contain the values at ``tick``. The emulator answers with VALUES and WRITTEN."""

    due: int = record_field(TICKS, "tick at which values are due")
    tick: int = record_field(TICKS, "tick of the tables; later than `due` if the emulator is slow in real time")
    time_ns: int = record_field(TIME, "simulation time of the tables", "ns")
    version: int = record_field(UINT32, "increases whenever a body or an instrument is added, removed or changed")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """New records of the tables `waveform`, `front` and `sound`, which the following DUE completes. They are compressed, because
    most columns hardly differ from record to record.
    """

    restart: int = record_field(
        FLAG, "1 = discard all earlier records, because the emulator has just joined or the simulation time has changed"
    )
    lost: int = record_field(Int(0, 2**53), "number of records that were lost on their way, since the last DUE")
    waveforms: int = record_field(UINT32, "number of new records of `waveform`")
    fronts: int = record_field(UINT32, "number of new records of `front`")
    sounds: int = record_field(UINT32, "number of new records of `sound`")


@dataclass(frozen=True, slots=True)
class ArrivalPart:
    """Part of the records that the last ARRIVALS announced: those of `waveform`, `front` and `sound`, together compressed
    by zlib (RFC 1950). The samples of the sounds follow, one sound after the other, as 32-bit floating-point values
    (little-endian, not compressed). The parts are sent in order.
    """

    data: bytes = record_field(_DATA, "bytes of the compressed records, or of samples")


# ------------------------------------------------------------------------------------------------ requests


@dataclass(frozen=True, slots=True)
class Attach:
    """Select the tables that an emulator receives. Only a session with the emulator role may send this request, once,
    before all other requests.
    """

    tables: Sequence[str] = record_field(
        List(NAME, MAX_TABLES),
        "names of the tables to send, in addition to `world`, `identity`, `state`, `instruments` and the emulator's own",
    )
    all_bodies: int = record_field(
        FLAG, "1 = send the rows of all bodies; 0 = only those of bodies with an instrument of this sensor type"
    )


@dataclass(frozen=True, slots=True)
class Serve:
    """Request DUE events."""

    lockstep: int = record_field(
        FLAG,
        "1 = send a DUE at each tick at which values are due, and let the engine wait for the answer; 0 = send one DUE immediately",
    )


@dataclass(frozen=True, slots=True)
class Values:
    """New content for a range of bytes in the table of the emulator's sensor type. WRITTEN publishes this content."""

    offset: int = record_field(_BYTES, _OFFSET)
    data: bytes = record_field(_DATA, "new bytes, little-endian")


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to a DUE event. It publishes the values."""

    tick: int = record_field(TICKS, "`tick` of the DUE event")
    written: int = record_field(FLAG, "1 = values have changed; 0 = no value has changed")


@dataclass(frozen=True, slots=True)
class FramePart:
    """Part of a frame from a sonar, camera or lidar. The parts of a frame are sent in order; WRITTEN publishes complete
    frames.
    """

    row: int = record_field(Int(0, 2**31 - 1), "row of the instrument in the table of the sensor type")
    offset: int = record_field(_BYTES, "offset of `data` in bytes from the start of the frame")
    size: int = record_field(_BYTES, "size of the whole frame: its record and its payload (docs/sonars.md)")
    data: bytes = record_field(_DATA, "bytes of the frame")
