"""Every message of the wire protocol, declared once; see docs/PROTOCOL.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from wavesim_sdk.tables import MAX_ACTUATORS

MAGIC = b"WVSM"
VERSION = 1
HEADER_BYTES = 24
MAX_DATAGRAM = 1200
MIN_HELLO = 64
MAX_DEPTH = 4
MOTION_NUMBERS = 16


class Type(IntEnum):
    HELLO = 1
    CHALLENGE = 2
    JOIN = 3
    WELCOME = 4
    REFUSE = 5
    ACTUATE = 16
    REQUESTS = 17
    DONE = 18
    KEEPALIVE_REPLY = 19
    LEAVE = 20
    ESTIMATE = 21
    ACK = 22
    STATE = 32
    EVENTS = 33
    STEP = 34
    KEEPALIVE = 35
    BYE = 36
    FLEET = 37


class Refusal(IntEnum):
    COOKIE = 1
    NAME_IN_USE = 2
    UNKNOWN_NAME = 3
    UNKNOWN_MODEL = 4
    FULL = 5
    BAD_VALUE = 6
    KEY = 7


class Event(IntEnum):
    RECEPTION = 1
    SENT = 2
    REQUEST_REFUSED = 3
    RUN_STATE = 4
    BODY = 5
    SIGNAL = 6
    FATE = 7
    NOTICE = 8


class Request(IntEnum):
    PING = 1
    SEND = 2
    RANGE = 3
    OBSERVE = 4


@dataclass(frozen=True)
class Element:
    """One element of a body: its types as in the document, unit, meaning."""

    name: str
    types: str
    unit: str
    doc: str
    size: int = 0  # exact length of a list, greatest length of a text or bin; 0 = free


def _e(name: str, types: str, doc: str, unit: str = "", size: int = 0) -> Element:
    return Element(name, types, unit, doc, size)


_STATE = (
    _e("tick", "int", "tick of this state"),
    _e("time", "int", "simulation time", "ns"),
    _e("run_state", "int", "state of the simulation timer"),
    _e("motion", "list|nil", "true motion", "SI", MOTION_NUMBERS),
    _e("actuation", "list", "actual actuation", "SI", MAX_ACTUATORS),
    _e("sensors", "map", "latest sensor values; nil = no such value"),
)
_NUMBERED = (
    _e("first", "int", "number of the first item"),
    _e("items", "list", "the items"),
)

#: type -> (from the client?, needs a session?, elements)
MESSAGES: dict[Type, tuple[bool, bool, tuple[Element, ...]]] = {
    Type.HELLO: (True, False, (_e("nonce", "int", "any number, comes back"), _e("padding", "bin", "to make 64 bytes"))),
    Type.CHALLENGE: (
        False,
        False,
        (_e("nonce", "int", "of the HELLO"), _e("cookie", "bin", "to be returned in JOIN", size=16)),
    ),
    Type.JOIN: (
        True,
        False,
        (
            _e("cookie", "bin", "of the CHALLENGE", size=16),
            _e("nonce", "int", "any number, comes back"),
            _e("name", "str", "name of the body", size=31),
            _e("model", "str", "name of a model, or empty", size=31),
            _e("position", "list", "start position in W for a new name", "m", 3),
            _e("attitude", "list", "start roll, pitch, heading for a new name", "rad", 3),
            _e("lockstep_ns", "int", "lockstep period; 0 = free", "ns"),
            _e("state_period_ns", "int", "wall time between STATE messages; 0 = the server's default", "ns"),
            _e("previous", "int", "token of the session to resume; 0 = none"),
            _e("observe", "int", "1 = observe only, without a body; the name is then a name for people"),
        ),
    ),
    Type.WELCOME: (
        False,
        False,
        (
            _e("nonce", "int", "of the JOIN"),
            _e("id", "int", "row of the body in shared memory; -1 for an observer"),
            _e("step_ns", "int", "length of a tick", "ns"),
            _e("sound_speed", "float", "speed of sound", "m/s"),
            _e("tick", "int", "tick at joining"),
            _e("run_state", "int", "state of the simulation timer"),
            _e("state_period_ns", "int", "wall time between STATE messages", "ns"),
            _e("keepalive_timeout", "float", "a client silent for longer is removed", "s"),
        ),
    ),
    Type.REFUSE: (
        False,
        False,
        (
            _e("nonce", "int", "of the JOIN"),
            _e("code", "int", "refusal code"),
            _e("text", "str", "for people", size=400),
        ),
    ),
    Type.ACTUATE: (True, True, (_e("command", "list", "actuator commands", "SI"),)),
    Type.REQUESTS: (True, True, _NUMBERED),
    Type.DONE: (
        True,
        True,
        (
            _e("tick", "int", "of the STEP"),
            _e("last_request", "int", "number of the last request that belongs to this step"),
            _e("command", "list|nil", "actuator commands", "SI"),
            _e("estimate", "list|nil", "as in ESTIMATE"),
        ),
    ),
    Type.KEEPALIVE_REPLY: (True, True, (_e("number", "int", "of the KEEPALIVE"),)),
    Type.LEAVE: (True, True, ()),
    Type.ESTIMATE: (
        True,
        True,
        (
            _e(
                "values",
                "list",
                "estimated position x3, sigma x3, dead reckoning x3 (m), last range innovation (m, nil = none)",
            ),
        ),
    ),
    Type.ACK: (True, True, ()),
    Type.STATE: (False, True, _STATE),
    Type.EVENTS: (False, True, _NUMBERED),
    Type.STEP: (False, True, (*_STATE, _e("last_event", "int", "number of the last event before this step"))),
    Type.KEEPALIVE: (False, True, (_e("number", "int", "to be returned"),)),
    Type.FLEET: (
        False,
        True,
        (
            _e("tick", "int", "tick of these states"),
            _e("time", "int", "simulation time", "ns"),
            _e("run_state", "int", "state of the simulation timer"),
            _e("part", "int", "number of this part, from 0"),
            _e("parts", "int", "parts of this tick"),
            _e("bodies", "bin", "records of the bodies of this part, below"),
        ),
    ),
    Type.BYE: (False, True, (_e("text", "str", "why the session ended", size=400),)),
}

LATEST_WINS = frozenset({Type.STATE, Type.ACTUATE, Type.ESTIMATE})

EVENTS: dict[Event, tuple[Element, ...]] = {
    Event.RECEPTION: (
        _e("reception", "int", "time of arrival by the node's clock, as its instrument reports it", "ns"),
        _e("id", "int", "number of the signal"),
        _e("query", "int", "number of the signal that it answers; 0 = none"),
        _e("kind", "int", "0 pulse, 1 data, 2 range request, 3 range reply"),
        _e("code", "int", "code; 0 = none"),
        _e("from", "int", "modem address of the sender; 0 = none"),
        _e("to", "int", "modem address of the destination; 0 = all"),
        _e("frequency", "float", "frequency as received, with Doppler shift", "Hz"),
        _e("level", "float", "received level", "dB re 1 uPa"),
        _e("snr", "float", "level over the noise in band", "dB"),
        _e("range", "float|nil", "two-way range, of an answer to an own query", "m"),
        _e("azimuth", "float|nil", "direction of arrival in B, from forward to starboard (USBL heads)", "rad"),
        _e("elevation", "float|nil", "the same, down from the horizontal of B", "rad"),
        _e("payload", "bin|nil", "payload of a packet"),
    ),
    Event.SENT: (
        _e("request", "int", "number of the request; 0 = the node sent by itself"),
        _e("id", "int", "number that the signal got"),
        _e("emission", "int", "time of emission by the node's clock", "ns"),
        _e("frequency", "float", "carrier", "Hz"),
        _e("level", "float", "source level", "dB re 1 uPa at 1 m"),
        _e("duration", "float", "length of the signal", "s"),
    ),
    Event.REQUEST_REFUSED: (
        _e("request", "int", "number of the request"),
        _e("text", "str", "why", size=400),
    ),
    Event.RUN_STATE: (
        _e("run_state", "int", "new state of the simulation timer"),
        _e("time", "int", "when", "ns"),
    ),
    Event.BODY: (
        _e("id", "int", "row"),
        _e("present", "int", "1 = it came (or was there), 0 = it left"),
        _e("type", "int", "0 surface, 1 underwater, 2 buoy"),
        _e("name", "str", "name", size=31),
        _e("model", "str", "model", size=31),
    ),
    Event.SIGNAL: (
        _e("id", "int", "number of the signal"),
        _e("source", "int", "row of the sender"),
        _e("kind", "int", "0 pulse, 1 data, 2 range request, 3 range reply"),
        _e("emission", "int", "true time of emission", "ns"),
        _e("frequency", "float", "carrier", "Hz"),
        _e("level", "float", "source level", "dB re 1 uPa at 1 m"),
        _e("origin", "list", "place of emission in W", "m", 3),
    ),
    Event.FATE: (
        _e("id", "int", "number of the signal"),
        _e("source", "int", "row of the sender"),
        _e("receiver", "int", "row of the receiver"),
        _e("outcome", "int", "0 heard, else why not: as in docs/LOG.md"),
        _e("arrival", "int", "true time of arrival", "ns"),
        _e("level", "float|nil", "received level", "dB re 1 uPa"),
        _e("range", "float|nil", "true length of the path", "m"),
    ),
    Event.NOTICE: (
        _e("time", "int", "when", "ns"),
        _e("text", "str", "for people, such as what the watchdog did", size=400),
    ),
}

#: a body in FLEET: little-endian, without gaps
FLEET_RECORD = (
    ("id", "u4", 1, "row"),
    ("p_WB_W", "f8", 3, "position in W, m"),
    ("q_WB", "f4", 4, "attitude"),
    ("v_WB_B", "f4", 3, "velocity over ground in B, m/s"),
    ("w_WB_B", "f4", 3, "angular velocity in B, rad/s"),
)
FLEET_BODIES = 16  #: in one datagram

_AT = _e("at", "int|nil", "when, by the node's clock; nil or past = now", "ns")
_LEVEL = _e("level", "float|nil", "source level; nil = the transducer's own", "dB re 1 uPa at 1 m")

REQUESTS: dict[Request, tuple[Element, ...]] = {
    Request.PING: (
        _e("frequency", "float", "carrier", "Hz"),
        _LEVEL,
        _AT,
        _e("code", "int|nil", "code; nil = its own"),
    ),
    Request.SEND: (
        _e("to", "int", "modem address of the destination; 0 = all"),
        _e("payload", "bin", "payload"),
        _LEVEL,
        _AT,
    ),
    Request.RANGE: (_e("to", "int", "modem address of the one that shall answer"), _LEVEL, _AT),
    Request.OBSERVE: (
        _e("period", "int", "wall time between FLEETs; 0 = none", "ns"),
        _e("bodies", "list|nil", "rows to be told of; nil = all"),
        _e("center", "list|nil", "middle of the area of interest in W; nil = everywhere", "m", 3),
        _e("radius", "float", "of that area", "m"),
        _e("sounds", "int", "1 = SIGNAL and FATE events too"),
    ),
}


def _rows(elements: tuple[Element, ...]) -> str:
    parts = []
    for e in elements:
        unit = f" [{e.unit}]" if e.unit else ""
        size = f" ({e.size})" if e.size else ""
        types = e.types.replace("|", "\\|")  # a bar would end the table's cell
        parts.append(f"`{e.name}` {types}{size}{unit}: {e.doc}")
    return "<br>".join(parts) or "(empty array)"


def markdown() -> dict[str, str]:
    """The three tables of docs/PROTOCOL.md, by the name of their place."""
    lines = ["| type | message | from | session | body, in order |", "|---|---|---|---|---|"]
    for kind, (client, session, elements) in MESSAGES.items():
        lines.append(
            f"| {kind.value} | {kind.name} | {'client' if client else 'server'} | {'yes' if session else 'no'} | {_rows(elements)} |"
        )
    tables = {"messages": "\n".join(lines)}
    lines = ["| offset | field | type | meaning |", "|---|---|---|---|"]
    offset = 0
    for name, kind_, count, doc in FLEET_RECORD:
        lines.append(f"| {offset} | {name} | {kind_}{f' x {count}' if count > 1 else ''} | {doc} |")
        offset += int(kind_[1]) * count
    tables["fleet"] = "\n".join(lines)
    numbered: tuple[tuple[str, dict[Event, tuple[Element, ...]] | dict[Request, tuple[Element, ...]]], ...] = (
        ("events", EVENTS),
        ("requests", REQUESTS),
    )
    for name, group in numbered:
        lines = ["| kind | name | elements after the kind, in order |", "|---|---|---|"]
        lines += [f"| {int(k)} | {k.name} | {_rows(elements)} |" for k, elements in group.items()]
        tables[name] = "\n".join(lines)
    return tables
