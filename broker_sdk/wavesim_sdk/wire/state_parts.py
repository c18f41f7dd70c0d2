"""Division of a state into datagrams that do not exceed the maximum size even when sealed, so that no value is lost."""

from __future__ import annotations

from collections.abc import Sequence

from wavesim_sdk.wire.messages import HEADER_BYTES, MAX_DATAGRAM, SEAL_BYTES, Reading, SensorsMessage, StateContents

FLOAT_BYTES = 9
READING_BYTES = 24  #: maximum size in bytes of a reading without its values
#: maximum size in bytes of a STATE or STEP message without its lists; a SENSORS message without its list is smaller
AROUND_BYTES = 34
LIST_BYTES = 3
ROOM = MAX_DATAGRAM - HEADER_BYTES - SEAL_BYTES  #: maximum size of a payload in bytes
FRESH = ROOM - (1 + 9 + 5 + LIST_BYTES)  #: maximum total size in bytes of the readings in a SENSORS datagram


def reading_bytes_available(message: StateContents) -> int:
    """Return the number of bytes that are left for readings in a STATE or STEP."""
    lists = (message.motion, message.actuation, message.effort, ())
    return ROOM - AROUND_BYTES - sum(LIST_BYTES + FLOAT_BYTES * len(some or ()) for some in lists)


def split_readings(message: StateContents, readings: Sequence[Reading]) -> tuple[list[Reading], list[SensorsMessage]]:
    """Split readings into those that fit into the state itself and those that are sent in SENSORS datagrams.

    A sensor that has more numbers than fit into a datagram is split; each piece contains the index of its first number.
    """
    room = reading_bytes_available(message)
    first: list[Reading] = []
    parts: list[list[Reading]] = []
    for reading in readings:
        done, count = 0, len(reading.values)
        while True:
            size = READING_BYTES + FLOAT_BYTES * (count - done)
            if size > room and (size <= FRESH or room < READING_BYTES + FLOAT_BYTES):  # cut only if necessary
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
