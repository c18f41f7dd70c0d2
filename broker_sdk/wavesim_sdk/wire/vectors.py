"""Test vectors of the wire protocol: one datagram of each type."""

from __future__ import annotations

import json
import struct
from typing import Any

from wavesim_sdk.wire.codec import encode
from wavesim_sdk.wire.messages import Type

TOKEN = 0x1122334455667788
_MOTION = [1.5, -2.0, 10.0, 1.0, 0.0, 0.0, 0.0, 1.25, 0.0, 0.5, 0.0, 0.0, 0.125, 1.0, 0.0, 0.5]
_STATE = [
    250,
    1_000_000_000,
    1,
    _MOTION,
    [9.5, *[0.0] * 7, 0.25, 0.25, *[0.0] * 14],
    {"ctd": [1_000_000_000, 11.5, 15.25, 4.25, 35.5]},
]
_BODY = struct.pack("<I3d10f", 3, 1.5, -2.0, 10.0, 1.0, *[0.0] * 3, 1.25, 0.0, 0.5, 0.0, 0.0, 0.125)
_COOKIE = bytes(range(16))

#: (type, token, sequence, ack, body)
VECTORS: list[tuple[Type, int, int, int, list[Any]]] = [
    (Type.HELLO, 0, 1, 0, [7, bytes(64)]),
    (Type.CHALLENGE, 0, 0, 0, [7, _COOKIE]),
    (Type.JOIN, 0, 2, 0, [_COOKIE, 7, "lauv", "", [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 100_000_000, 0, 0, 0]),
    (Type.WELCOME, TOKEN, 1, 0, [7, 3, 4_000_000, 1500.0, 0, 0, 50_000_000, 5.0]),
    (Type.REFUSE, 0, 0, 0, [7, 2, "'lauv' is in use"]),
    (Type.ACTUATE, TOKEN, 3, 0, [[9.5, None, None, None, None, None, None, None, 0.25, 0.25]]),
    (
        Type.REQUESTS,
        TOKEN,
        4,
        0,
        [
            1,
            [
                [1, 25000.0, None, None, None],
                [1, 26000.0, 180.0, 2_000_000_000, 7],
                [2, 3, b"ping", None, None],
                [3, 3, None, None],
                [4, 50_000_000, [0, 3], [0.0, 0.0, 10.0], 500.0, 1],
            ],
        ],
    ),
    (Type.DONE, TOKEN, 5, 2, [250, 4, [9.5], None]),
    (Type.KEEPALIVE_REPLY, TOKEN, 6, 2, [12]),
    (Type.LEAVE, TOKEN, 7, 2, []),
    (Type.ESTIMATE, TOKEN, 8, 2, [[1.0, 2.0, 3.0, 0.5, 0.5, 0.1, 1.5, 2.5, 3.0, None]]),
    (Type.ACK, TOKEN, 9, 2, []),
    (Type.STATE, TOKEN, 2, 0, _STATE),
    (
        Type.EVENTS,
        TOKEN,
        3,
        1,
        [
            1,
            [
                [2, 1, 5, 1_000_000_000, 25000.0, 188.0, 0.01],
                [1, 1_350_000_000, 6, 5, 0, 0, 0, 0, 26000.5, 131.5, 40.25, 249.5, None, None, None],
                [1, 1_500_000_000, 7, 0, 1, 0, 3, 4, 25000.0, 128.0, 36.0, None, 0.5, -0.25, b"pong"],
                [4, 2, 1_400_000_000],
                [5, 3, 1, 1, "lauv", "lauv"],
                [6, 5, 3, 0, 1_000_000_000, 25000.0, 188.0, [1.5, -2.0, 10.0]],
                [7, 5, 3, 4, 0, 1_250_000_000, 131.5, 375.0],
                [8, 1_500_000_000, "no command for 2 s: actuators at zero"],
            ],
        ],
    ),
    (Type.STEP, TOKEN, 4, 1, [*_STATE[:3], None, *_STATE[4:], 4]),
    (Type.KEEPALIVE, TOKEN, 5, 1, [12]),
    (Type.FLEET, TOKEN, 7, 1, [250, 1_000_000_000, 1, 0, 1, _BODY]),
    (Type.BYE, TOKEN, 6, 1, ["the server shuts down"]),
]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bin": value.hex()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def markdown() -> str:
    """The vectors as the lines of docs/PROTOCOL.md."""
    lines = ["```"]
    for kind, token, sequence, ack, body in VECTORS:
        meaning = {"type": kind.value, "token": token, "sequence": sequence, "ack": ack, "body": _plain(body)}
        lines.append(f"{kind.name} {encode(kind, body, token, sequence, ack).hex()} {json.dumps(meaning)}")
    return "\n".join([*lines, "```"])


KEY = bytes(range(32))


def sealed_markdown() -> str:
    """Sealed datagrams and everything that they follow from, for the same page."""
    from wavesim_sdk.wire import seal

    session = seal.Seal(KEY, _COOKIE, 7, TOKEN, is_client=True)
    answers = seal.Seal(KEY, _COOKIE, 7, TOKEN, is_client=False)
    join = next(v for v in VECTORS if v[0] is Type.JOIN)
    fixed = bytes(range(12))
    facts = {
        "key": KEY.hex(),
        "key id": f"{seal.key_id(KEY):016x}",
        "cookie": _COOKIE.hex(),
        "nonce of the JOIN": 7,
        "token": f"{TOKEN:016x}",
    }
    lines = ["```", *(f"{k} = {v}" for k, v in facts.items())]
    datagrams = {
        f"JOIN (sealing nonce {fixed.hex()})": encode(
            join[0], join[4], seal.key_id(KEY), 2, 0, seal.Handshake(KEY, seal.JOIN, fixed)
        ),
        "WELCOME": encode(Type.WELCOME, [7, 3, 4_000_000, 1500.0, 0, 0, 50_000_000, 5.0], TOKEN, 1, 0, answers),
        "ACTUATE": encode(Type.ACTUATE, [[9.5]], TOKEN, 3, 0, session),
        "KEEPALIVE": encode(Type.KEEPALIVE, [12], TOKEN, 2, 1, answers),
    }
    lines += [f"{name}: {data.hex()}" for name, data in datagrams.items()]
    return "\n".join([*lines, "```"])
