"""How a state is divided into datagrams: by bytes, the seal included, so that nothing is lost for its size."""

from __future__ import annotations

from collections.abc import Sequence

from wavesim_sdk.wire.messages import HEADER_BYTES, MAX_DATAGRAM, SEAL_BYTES, Reading, SensorsMessage, Snapshot

FLOAT_BYTES = 9
READING_BYTES = 24  #: of a reading around its values, at most
AROUND_BYTES = 34  #: of STATE or STEP around its lists, at most; of SENSORS it is less
LIST_BYTES = 3
ROOM = MAX_DATAGRAM - HEADER_BYTES - SEAL_BYTES  #: for a body
FRESH = ROOM - (1 + 9 + 5 + LIST_BYTES)  #: for readings, in a SENSORS datagram


def reading_bytes_available(message: Snapshot) -> int:
    """Bytes that a STATE or STEP has for readings."""
    lists = (message.motion, message.actuation, message.effort, ())
    return ROOM - AROUND_BYTES - sum(LIST_BYTES + FLOAT_BYTES * len(some or ()) for some in lists)


def split_readings(message: Snapshot, readings: Sequence[Reading]) -> tuple[list[Reading], list[SensorsMessage]]:
    """(readings that fit into the state itself, the SENSORS datagrams with the others). A sensor with more numbers than fit is
    cut; its pieces say where they belong."""
    room = reading_bytes_available(message)
    first: list[Reading] = []
    parts: list[list[Reading]] = []
    for reading in readings:
        done, count = 0, len(reading.values)
        while True:
            size = READING_BYTES + FLOAT_BYTES * (count - done)
            if size > room and (size <= FRESH or room < READING_BYTES + FLOAT_BYTES):  # cut only what must be
                parts.append([])
                room = FRESH
            fits = min(count - done, (room - READING_BYTES) // FLOAT_BYTES)
            piece = Reading(reading.number, reading.time_ns, done, tuple(reading.values[done : done + fits]))
            (parts[-1] if parts else first).append(piece)
            room -= READING_BYTES + FLOAT_BYTES * fits
            done += fits
            if done >= count:
                break
    return first, [SensorsMessage(message.tick, k, tuple(part)) for k, part in enumerate(parts)]
