"""What engine and front say to each other through the two rings."""

from __future__ import annotations

from enum import IntEnum


class Command(IntEnum):
    """Front to engine; the payload is a msgpack list."""

    ENTER = 1  # row, name, model, position, attitude, lockstep ticks
    LEAVE = 2  # row
    ACTUATE = 3  # row, values
    SOUND = 4  # row, request as on the wire, its number
    CONTROL = 5  # id, verb, argument
    RELEASE = 6  # tick, [row, values or nil, [[request, number], ...]] of every lockstep client


class Event(IntEnum):
    """Engine to front."""

    SIGNALS = 1  # msgpack [bytes of sent records, bytes of reception records]
    LOG = 2  # msgpack [tick, rows, state, actuation, {sensor: [rows, records]}]
    STEP = 3  # msgpack [tick, rows]: lockstep clients are due, the engine waits for RELEASE
    RUN = 4  # msgpack [run state, time_ns]
    REPLY = 5  # msgpack [id, ok, text, data]
    REFUSED = 6  # msgpack [row, request number, text]
    ROSTER = 7  # msgpack [time_ns, row, name, model, type, present]
    FAULT = 8  # msgpack [time_ns, names]
    NOTICE = 9  # msgpack [time_ns, row, name, text]


COMMANDS_BYTES = 4 * 1024 * 1024
EVENTS_BYTES = 32 * 1024 * 1024
NO_RESOURCE = 10  #: exit code of a process that the system refused something
