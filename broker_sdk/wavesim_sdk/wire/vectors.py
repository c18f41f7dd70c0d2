"""Test vectors for the wire protocol: datagrams of each type, sealed datagrams, and alternative encodings."""

from __future__ import annotations

import json
import struct
from typing import Any

from wavesim_sdk.wire import emulator_items as e
from wavesim_sdk.wire import items as i
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.codec import encode, message_type
from wavesim_sdk.wire.messages import Reading
from wavesim_sdk.wire.schema import TaggedUnion, schema_of

TOKEN = 0x1122334455667788
_MOTION = (1.5, -2.0, 10.0, 1.0, 0.0, 0.0, 0.0, 1.25, 0.0, 0.5, 0.0, 0.0, 0.125, 1.0, 0.0, 0.5)
_CTD = Reading(0, 1_000_000_000, 0, (11.5, 15.25, 4.25, 35.5))
_DVL = Reading(2, 996_000_000, 10, (None, 3.5))
_EFFORT = tuple(float(k) for k in range(48))
_BODY = struct.pack("<I3d10f", 3, 1.5, -2.0, 10.0, 1.0, *[0.0] * 3, 1.25, 0.0, 0.5, 0.0, 0.0, 0.125)
_COOKIE = bytes(range(16))
_GREAT = 2**53 + 1  #: an integer that a double cannot represent
WELCOME = m.Welcome(
    7, 3, 0, 1, 4_000_000, 1500.0, _GREAT, 1, 50_000_000, 100_000_000, 0.5, 5.0, 3, 2, m.Right.FAULT | m.Right.CONTROL
)
REFUSE = m.Refuse(7, m.Refusal.NAME_IN_USE, "'lauv' is in use by another client")


def _items(family: TaggedUnion, *records: Any) -> list[Any]:
    return [family.encode(r) for r in records]


_EVENTS = _items(
    i.EVENTS,
    i.ActuatorDescription(0, "propeller", 0, "1/s", -25.0, 25.0),
    i.SensorDescription(
        0,
        "ctd",
        "ctd",
        100_000_000,
        (i.FieldDescription("pressure", "dbar", 1), i.FieldDescription("temperature", "C", 1)),
    ),
    i.SignalSent(1, 5, 1_000_000_000, 25000.0, 188.0, 0.01),
    i.Reception(1_350_000_000, 6, 5, 0, 0, 0, 0, 26000.5, 131.5, 40.25, 249.5, None, None, None),
    i.Reception(1_500_000_000, 7, 0, 1, 0, 3, 4, 25000.0, 128.0, 36.0, None, 0.5, -0.25, b"pong"),
    i.RunStateChanged(2, 1_400_000_000),
    i.BodyChanged(3, 1, 1, "lauv", "lauv"),
    i.SignalSeen(5, 3, 0, 1_000_000_000, 25000.0, 188.0, (1.5, -2.0, 10.0)),
    i.FateSeen(5, 3, 4, 0, 1_250_000_000, 131.5, 375.0),
    i.Notice(1_500_000_000, "no command for 2 s: actuators at zero"),
    i.RequestRefused(2, "the transducer recharges"),
    i.Answer(3, 1, ""),
    i.MissionPart(7, 24, 25, (100.0, -50.0, 10.0, 1.5)),
)
_REQUESTS = _items(
    i.REQUESTS,
    i.Ping(25000.0),
    i.Ping(26000.0, 180.0, _GREAT, 7),
    i.Ping(26000.0, duration=0.25),
    i.Send(3, b"ping"),
    i.Send(3, b"slow", None, None, 3.2),
    i.Range(3),
    i.Range(3, payload=b"acknowledge me", duration=0.5),
    i.Observe(50_000_000, (0, 3), (0.0, 0.0, 10.0), 500.0, 1),
    i.Subscribe(("ctd", "dvl-down"), 1, 0, 1, 100_000_000),
    i.Control("speed", 4.0),
    i.Fault("", "ctd", "bias", 0.5, "temperature"),
    i.Push("lauv", (10.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    i.Pose("", (1.5, -2.0, 10.0), None, (0.0,) * 6),
    i.Allocate("lauv", tuple(float(k) for k in range(6))),
    i.Weather(current_north=0.25, wave_height=1.5),
    i.Weather(current_down=-0.05),
    i.Frames(("side",), 100_000_000),
    i.Mission("lauv", 7, 24, 25, (100.0, -50.0, 10.0, 1.5)),
    i.Missions(1, "takes 25 waypoints"),
    i.Fence("bay", "outside", (0.0, 0.0, 100.0, 0.0, 0.0, 50.5)),
    i.Fence("bay"),
    i.SoundPart(1, 280, 282, b"\x00\x00\x80\x3f\x00\x00\x00\xbf"),
    i.Transmit(1, 96000.0, 180.0, _GREAT),
    i.Transmit(1, 48000.0, is_peak=1),
)
_COMMANDS = _items(
    i.EVENTS, i.CommandReceived(5, "goto", (100.0, -50.0, 10.0, 1.5)), i.CommandReceived(6, "loiter", None)
)
_COMMAND_REQUESTS = _items(
    i.REQUESTS,
    i.VehicleCommand("lauv", "goto", (100.0, -50.0, 10.0, 1.5)),
    i.VehicleCommand("", "abort"),
    i.CommandAnswer(5, i.CommandResult.REFUSED, "the point is on land"),
)

_EMULATOR_EVENTS = _items(
    i.EVENTS,
    e.TableDescription(5, "state", 64, 128, "0123456789abcdef"),
    e.Rows(5, 384, bytes(range(8))),
    e.Due(250, 251, 1_004_000_000, 2),
)
_ARRIVAL_EVENTS = _items(i.EVENTS, e.Arrivals(1, 0, 1, 12, 1), e.ArrivalPart(bytes(range(8))))
_EMULATOR_REQUESTS = _items(
    i.REQUESTS,
    e.Attach(("weather", "actuation"), 0),
    e.Serve(1),
    e.Values(144, bytes(range(8))),
    e.FramePart(3, 1120, 1128, bytes(range(8))),
    e.Written(251, 1),
)

_DEVICE_EVENTS = _items(i.EVENTS, i.DeviceFault("late", 0.5))
_TIME_EVENTS = _items(i.EVENTS, i.TimeChanged(0, 2_500_000_000))
_CHANNEL_EVENTS = _items(i.EVENTS, i.ChannelState(1_250_000_000, 1), i.ChannelState(1_500_000_000, 0))
_TIME_REQUESTS = _items(i.REQUESTS, i.SnapshotAction("save", "before-turn"))

#: test vectors, each as (token, sequence number, acknowledgement, message)
VECTORS: list[tuple[int, int, int, Any]] = [
    (0, 1, 0, m.Hello(2**63 - 1, bytes(40))),
    (0, 0, 0, m.Challenge(2**63 - 1, _COOKIE)),
    (0, 2, 0, m.Join(_COOKIE, 7, "lauv", lockstep_ns=100_000_000)),
    (
        0,
        2,
        0,
        m.Join(
            _COOKIE,
            7,
            "\u00e5l-1",
            m.Role.INSTRUMENT,
            "lauv",
            (1.0, 2.0, 3.0),
            (0.0, 0.0, 1.5),
            0,
            _GREAT,
            TOKEN,
            ("ctd",),
            1,
            0,
            1,
        ),
    ),
    (TOKEN, 1, 0, WELCOME),
    (0, 0, 0, REFUSE),
    (TOKEN, 3, 0, m.Actuate((9.5, None, None, -0.25))),
    (TOKEN, 4, 0, m.Requests(1, _REQUESTS)),
    (TOKEN, 5, 2, m.Done(_GREAT, 4, (9.5,), None)),
    (TOKEN, 6, 2, m.KeepaliveReply(12)),
    (TOKEN, 7, 2, m.Leave()),
    (TOKEN, 8, 2, m.Estimate((1.0, 2.0, 3.0, 0.5, 0.5, 0.1, 1.5, 2.5, 3.0, None))),
    (TOKEN, 9, 2, m.Ack()),
    (TOKEN, 10, 2, m.Proof(2**64 - 1)),
    (TOKEN, 2, 0, m.StateMessage(250, 1_000_000_000, 1, 1, _MOTION, (9.5, 0.0, 0.25), None, (_CTD,))),
    (TOKEN, 2, 0, m.StateMessage(_GREAT, 2**62, 2, 0, None, (), _EFFORT, ())),
    (TOKEN, 3, 1, m.Events(1, _EVENTS)),
    (TOKEN, 4, 1, m.StepMessage(250, 1_000_000_000, 1, 0, None, (9.5, 0.0, 0.25), None, (_CTD, _DVL), 12)),
    (TOKEN, 5, 1, m.Keepalive(12)),
    (TOKEN, 6, 1, m.Bye("the server shuts down")),
    (TOKEN, 7, 1, m.Fleet(250, 1_000_000_000, 1, 0, 1, _BODY)),
    (TOKEN, 8, 1, m.SensorsMessage(250, 0, (_DVL, Reading(3, 1_000_000_000, 0, (1.0, 2.0))))),
    (TOKEN, 9, 1, m.Prove(2**64 - 1)),
    (TOKEN, 11, 2, m.Requests(16, _COMMAND_REQUESTS)),
    (TOKEN, 11, 1, m.Events(14, _COMMANDS)),
    (TOKEN, 10, 1, m.Piece(1, 3, 2, 8192, bytes(range(8)))),
    (TOKEN, 12, 1, m.Events(16, _EMULATOR_EVENTS)),
    (TOKEN, 12, 2, m.Requests(19, _EMULATOR_REQUESTS)),
    (TOKEN, 13, 1, m.Events(19, _DEVICE_EVENTS)),
    (TOKEN, 14, 1, m.Events(20, _TIME_EVENTS)),
    (TOKEN, 15, 1, m.Events(21, _CHANNEL_EVENTS)),
    (TOKEN, 13, 2, m.Requests(24, _TIME_REQUESTS)),
    (TOKEN, 15, 1, m.Events(21, _ARRIVAL_EVENTS)),
    (0, 2, 0, m.Join(_COOKIE, 7, "lauv", m.Role.INSTRUMENT, device="nmea")),
]


#: alternative encodings of messages; a receiver must accept all of them
ALTERNATIVES = {
    "KEEPALIVE with its array encoded as array16 and its number as uint64": (
        m.Keepalive(12),
        "dc0001cf000000000000000c",
    ),
    "KEEPALIVE with its array encoded as array32 and its number as uint16": (m.Keepalive(12), "dd00000001cd000c"),
    "KEEPALIVE with its number encoded as int8": (m.Keepalive(12), "91d00c"),
    "BYE with its text encoded as str8": (m.Bye("so long"), "91d907736f206c6f6e67"),
    "BYE with its text encoded as str16": (m.Bye("so long"), "91da0007736f206c6f6e67"),
    "BYE with its text encoded as str32": (m.Bye("so long"), "91db00000007736f206c6f6e67"),
    "CHALLENGE with its cookie encoded as bin16": (m.Challenge(7, _COOKIE), "9207c50010" + _COOKIE.hex()),
    "STATE with its numbers encoded as float32 and as integers": (
        m.StateMessage(250, 1_000_000_000, 1, 0, None, (9.5, 0.0, 2.0), None, (Reading(0, 1_000_000_000, 0, (11.5,)),)),
        "98d100fad23b9aca000100c093ca4118000000ca40000000c091dc0004d300" + "0" * 14 + "d23b9aca000091ca41380000",
    ),
    "BYE with an element from a future version": (m.Bye("so long"), "92a7736f206c6f6e6782a16101a162c0"),
}


def to_json_value(value: Any) -> Any:
    """Return a value in a form that JSON can store; bytes become {"bin": hexadecimal}."""
    if isinstance(value, bytes):
        return {"bin": value.hex()}
    if isinstance(value, list | tuple):
        return [to_json_value(v) for v in value]
    return {k: to_json_value(v) for k, v in value.items()} if isinstance(value, dict) else value


def _line(name: str, data: bytes, token: int, sequence: int, ack: int, message: Any) -> str:
    body = to_json_value(schema_of(type(message)).encode(message))
    meaning = {"type": int(message_type(message)), "token": token, "sequence": sequence, "ack": ack, "body": body}
    return f"{name} {data.hex()} {json.dumps(meaning)}"


def vectors_markdown() -> str:
    """Return the test vectors, one per line, for docs/PROTOCOL.md."""
    lines = [
        _line(message_type(message).name, encode(message, token, sequence, ack), token, sequence, ack, message)
        for token, sequence, ack, message in VECTORS
    ]
    return "\n".join(["```", *lines, "```"])


def alternatives_markdown() -> str:
    """Return the alternative encodings, one per line, each with name, bytes and meaning."""
    lines = []
    for name, (message, body) in ALTERNATIVES.items():
        header = encode(message, TOKEN, 9, 1)[: m.HEADER_BYTES]
        lines.append(_line(f"{name}:", header + bytes.fromhex(body), TOKEN, 9, 1, message))
    return "\n".join(["```", *lines, "```"])


KEY = bytes(range(32))


def sealed_markdown() -> str:
    """Return sealed datagrams together with all inputs from which they are computed, for docs/PROTOCOL.md."""
    from wavesim_sdk.wire import seal

    fixed = bytes(range(12))
    client_private, server_private, static_private = (bytes(range(k, k + 32)) for k in (32, 64, 96))
    key = KEY + seal.public_key(static_private)  # the second half of the vectors: a key for this server only
    facts = {
        "key": KEY.hex(),
        "key ID, as bytes in header order": seal.key_id(KEY).to_bytes(8, "little").hex(),
        "cookie": _COOKIE.hex(),
        "nonce of the JOIN": 7,
        "token, as bytes in header order": TOKEN.to_bytes(8, "little").hex(),
        "sealing nonce of JOIN and REFUSE": fixed.hex(),
        "ephemeral private key of the client": client_private.hex(),
        "ephemeral private key of the server": server_private.hex(),
        "private key of the server": static_private.hex(),
        "public key of the server": key[32:].hex(),
        "ID of the key that contains the server's public key": seal.key_id(key).to_bytes(8, "little").hex(),
    }
    join = m.Join(_COOKIE, 7, "lauv", lockstep_ns=100_000_000)
    datagrams: dict[str, bytes] = {}
    for known, suffix in ((KEY, ""), (key, " with the server's public key")):
        ring = seal.Keyring([seal.KeyHolder("lauv", known)], static_private)
        of_client = seal.EphemeralKey(client_private)
        answer = ring.exchange(ring.holders[0], of_client.public, seal.EphemeralKey(server_private))
        server = answer.session_seal(_COOKIE, 7, TOKEN)
        client = seal.ClientExchange(known, of_client).session_seal(
            _COOKIE, 7, TOKEN, seal.EphemeralKey(server_private).public
        )
        again = m.Join(_COOKIE, 7, "lauv", previous=seal.previous_proof(client.ticket, of_client.public))
        opened = seal.HandshakeSeal(known, seal.JOIN, fixed, of_client.public)
        made = {
            "JOIN": encode(join, seal.key_id(known), 2, 0, opened),
            "REFUSE": encode(REFUSE, seal=seal.HandshakeSeal(known, seal.REFUSE, fixed)),
            "WELCOME": encode(WELCOME, TOKEN, 1, 0, server),
            "ACTUATE": encode(m.Actuate((9.5,)), TOKEN, 3, 0, client),
            "KEEPALIVE": encode(m.Keepalive(12), TOKEN, 2, 1, server),
            "JOIN that resumes this session": encode(again, seal.key_id(known), 2, 0, opened),
        }
        facts[f"ticket of the session{suffix}"] = client.ticket
        datagrams |= {f"{name}{suffix}": data for name, data in made.items()}
    lines = ["```", *(f"{k} = {v}" for k, v in facts.items())]
    lines += [f"{name}: {data.hex()}" for name, data in datagrams.items()]
    return "\n".join([*lines, "```"])
