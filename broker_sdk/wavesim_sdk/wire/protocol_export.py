"""The tables in docs/PROTOCOL.md and the machine-readable schema, both generated from the declarations."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from wavesim_sdk.sensors import SENSORS, value_fields
from wavesim_sdk.tables import Outcome, RunState
from wavesim_sdk.wire import items, messages
from wavesim_sdk.wire.messages import MESSAGES
from wavesim_sdk.wire.schema import TaggedUnion, schema_of

FILE = Path(__file__).parent / "protocol.json"

_REFUSALS = {
    messages.Refusal.COOKIE: "the cookie is wrong or too old, or the session that this JOIN opened has ended; start again with HELLO and a new nonce",
    messages.Refusal.NAME_IN_USE: "another pilot drives this body, or the body accepts no client",
    messages.Refusal.UNKNOWN_NAME: "unknown body, and the JOIN names no model for a new one",
    messages.Refusal.UNKNOWN_MODEL: "the JOIN names an unknown model",
    messages.Refusal.FULL: "the server has no room for another session or body",
    messages.Refusal.BAD_VALUE: "an element is invalid; the text of the refusal names it",
    messages.Refusal.KEY: "the key is not valid for this name, or was replaced",
    messages.Refusal.EXPIRED: "`previous` does not name a live session of this body and role; join again with `previous` 0",
    messages.Refusal.ROLE: "this name may not join this body or this server in that role",
    messages.Refusal.INTERNAL: "internal server error; the server counts these errors in its status",
}
_RIGHTS = {
    messages.Right.FAULT: "FAULT",
    messages.Right.PUSH: "PUSH",
    messages.Right.POSE: "POSE",
    messages.Right.ALLOCATE: "ALLOCATE",
    messages.Right.WEATHER: "WEATHER",
    messages.Right.CONTROL: "CONTROL",
    messages.Right.MISSION: "MISSION",
    messages.Right.FENCE: "FENCE",
}
_OUTCOMES = {
    Outcome.HEARD: "received",
    Outcome.BELOW_THRESHOLD: "signal too weak relative to the noise at the receiver",
    Outcome.FADED: "the signal level fell below the ambient noise before the signal arrived",
    Outcome.OUT_OF_BAND: "signal outside the receiver's frequency band",
    Outcome.TRANSMITTING: "the receiver was transmitting",
    Outcome.RECHARGING: "the receiver was recharging",
    Outcome.RECEIVER_LEFT: "the receiver had already left the simulation",
    Outcome.NOT_SENT: "not sent: the sender was still recharging",
    Outcome.COLLISION: "the signal overlapped another one, and its level did not exceed the other level by the capture ratio",
    Outcome.BLOCKED: "an obstacle or the sea bed blocked the path",
    Outcome.SHADOW: "no ray reaches the receiver through the sound-speed profile",
    Outcome.ECHO: "the signal had already been detected on an earlier path",
    Outcome.DROPPED: "lost at random by the receiver",
    Outcome.CORRUPT: "the packet has bit errors",
    Outcome.FOREIGN: "the modulation of the packet differs from that of the receiver",
}


def _table(head: str, rows: list[str]) -> str:
    columns = head.count("|") - 1
    return "\n".join([head, "|" + "---|" * columns, *rows])


def _codes(words: Mapping[Any, str]) -> str:
    return _table("| code | name | meaning |", [f"| {int(c)} | {c.name} | {text} |" for c, text in words.items()])


def _family(family: TaggedUnion, names: type[IntEnum]) -> str:
    rows = [f"| {n} | {names(n).name} {row}" for n, r in family.records.items() for row in schema_of(r).markdown_rows()]
    return _table("| kind | name | element | type | unit | meaning |", rows)


def _sensors() -> str:
    rows = [
        f"| {name} | `{f.name}` | {_count(f.shape)} | {f.unit} | {f.doc} |"
        for name, table in SENSORS.items()
        for f in value_fields(table)
    ]
    return _table("| type | field | count | unit | meaning |", rows)


def _count(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 1


def protocol_tables() -> dict[str, str]:
    """Return the generated tables of docs/PROTOCOL.md, as a mapping from the names of their markers."""
    rows = [
        f"| {kind.value} | {kind.name} | {'client' if client else 'server'} | {'yes' if session else 'no'} | {len(schema_of(record).fields)} |"
        for kind, (client, session, record) in MESSAGES.items()
    ]
    bodies = [
        f"| {kind.name} {row}" for kind, (_, _, record) in MESSAGES.items() for row in schema_of(record).markdown_rows()
    ]
    fleet, offset = [], 0
    for name, kind, count, doc in messages.FLEET_RECORD:
        fleet.append(f"| {offset} | {name} | {kind}{f' x {count}' if count > 1 else ''} | {doc} |")
        offset += int(kind[1]) * count
    effort = [
        f"| {6 * k}..{6 * k + 5} | {name} | {unit} | {doc} |" for k, (name, unit, doc) in enumerate(messages.EFFORT)
    ]
    return {
        "messages": _table("| type | message | from | session | elements |", rows),
        "bodies": _table("| message | element | type | unit | meaning |", bodies),
        "fleet": _table("| offset | field | type | meaning |", fleet),
        "effort": _table("| indices | component | unit | meaning |", effort),
        "events": _family(items.EVENTS, items.EventKind),
        "requests": _family(items.REQUESTS, items.Request),
        "refusals": _codes(_REFUSALS),
        "rights": _table(
            "| bit | right | request |",
            [f"| {int(r)} | {r.name.lower() if r.name else ''} | {t} |" for r, t in _RIGHTS.items()],
        ),
        "outcomes": _codes(_OUTCOMES),
        "sensors": _sensors(),
    }


def _describe(family: TaggedUnion, names: type[IntEnum]) -> list[dict[str, Any]]:
    return [
        {"kind": n, "name": names(n).name, "record": r.__name__, "fields": schema_of(r).describe()}
        for n, r in family.records.items()
    ]


def _enumeration(values: type[IntEnum]) -> dict[str, int]:
    return {v.name: int(v) for v in values}


def protocol() -> dict[str, Any]:
    """Return the whole protocol as plain data; docs/PROTOCOL.md explains it."""
    return {
        "protocol": "wavesim",
        "version": messages.VERSION,
        "magic": messages.MAGIC.decode(),
        "byte_order": "little",
        "header": [
            {"name": name, "offset": offset, "size": size}
            for name, offset, size in (
                ("magic", 0, 4),
                ("version", 4, 1),
                ("type", 5, 1),
                ("flags", 6, 2),
                ("token", 8, 8),
                ("sequence", 16, 4),
                ("ack", 20, 4),
            )
        ],
        "limits": {
            "datagram_bytes": messages.MAX_DATAGRAM,
            "header_bytes": messages.HEADER_BYTES,
            "seal_bytes": messages.SEAL_BYTES,
            "least_hello_bytes": messages.MIN_HELLO,
            "depth": messages.MAX_DEPTH,
            "items": messages.MAX_ITEMS,
        },
        "messages": [
            {
                "type": int(kind),
                "name": kind.name,
                "from": "client" if client else "server",
                "session": session,
                "latest_wins": kind in messages.LATEST_WINS,
                "record": record.__name__,
                "fields": schema_of(record).describe(),
            }
            for kind, (client, session, record) in MESSAGES.items()
        ],
        "events": _describe(items.EVENTS, items.EventKind),
        "requests": _describe(items.REQUESTS, items.Request),
        "roles": _enumeration(messages.Role),
        "resumed": _enumeration(messages.Resumption),
        "refusals": _enumeration(messages.Refusal),
        "rights": {r.name: int(r) for r in messages.Right},
        "run_states": _enumeration(RunState),
        "outcomes": _enumeration(Outcome),
        "fleet_record": [{"name": n, "type": k, "count": c, "doc": d} for n, k, c, d in messages.FLEET_RECORD],
        "effort": [{"name": n, "unit": u, "count": 6, "doc": d} for n, u, d in messages.EFFORT],
        "sensors": {
            name: [
                {"name": f.name, "unit": f.unit, "count": _count(f.shape), "doc": f.doc} for f in value_fields(table)
            ]
            for name, table in SENSORS.items()
        },
    }


def protocol_json() -> str:
    """Return the machine-readable schema in the form in which it is shipped (``protocol.json``)."""
    return json.dumps(protocol(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(protocol_json())
