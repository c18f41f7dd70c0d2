"""What the tests of clients in other languages share: bodies to be told of, vectors of the page, broken datagrams."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path
from typing import Any

from wavesim_sdk.wire import items as i
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire.codec import encode
from wavesim_sdk.wire.schema import schema_of
from wavesim_sdk.wire.state import Body, State
from wavesim_sdk.wire.vectors import TOKEN

COOKIE = bytes(range(16))
NONCE = 7
NAN = math.nan


def sensor(number: int, name: str, **fields: int) -> i.SensorDescription:
    described = tuple(i.FieldDescription(field, "", count) for field, count in fields.items())
    return i.SensorDescription(number, name, name.split("-")[0], 100_000_000, described)


#: a body that the states among the vectors fit
ACTUATORS = tuple(i.ActuatorDescription(n, f"actuator-{n}", n % 2, "1/s", -5.0, 5.0) for n in range(3))
SENSORS = (
    sensor(0, "ctd", pressure=1, temperature=1, conductivity=1, salinity=1),
    sensor(1, "ahrs", heading=1),
    sensor(2, "dvl-down", velocity=3, range=4, bottom=5),
    sensor(3, "current", north=1, east=1),
)
WELCOME = m.Welcome(
    NONCE, 3, 0, 0, 4_000_000, 1500.0, 0, 1, 50_000_000, 100_000_000, 0.5, 5.0, len(ACTUATORS), len(SENSORS), 0
)
DESCRIBED = m.Events(1, [i.EVENTS.encode(e) for e in (*ACTUATORS, *SENSORS)])


def welcomed(seal: Any = None) -> list[bytes]:
    """The datagrams after which a client that joins knows its body."""
    return [encode(WELCOME, TOKEN, 1, 0, seal), encode(DESCRIBED, TOKEN, 2, 0, seal)]


def body() -> Body:
    """The same for the SDK."""
    known = Body()
    for a in ACTUATORS:
        known.actuator(a)
    for s in SENSORS:
        known.sensor(s)
    return known


def lines(root: Path, place: str) -> list[tuple[str, bytes, dict[str, Any]]]:
    """Vectors of the page at some place: name, datagram, meaning."""
    page = (root / "docs/PROTOCOL.md").read_text()
    text = page.split(f"<!-- {place}:begin -->")[1].split(f"<!-- {place}:end -->")[0]
    found = re.findall(r"^(.*?):? ([0-9a-f]{48,}) (\{.*\})$", text, re.MULTILINE)
    assert found, place
    return [(name, bytes.fromhex(data), json.loads(meaning)) for name, data, meaning in found]


def message_of(meaning: dict[str, Any]) -> Any:
    """The message of a vector's meaning."""

    def value(v: Any) -> Any:
        if isinstance(v, dict):
            return bytes.fromhex(v["bin"])
        return [value(x) for x in v] if isinstance(v, list) else v

    return schema_of(m.MESSAGES[m.Type(meaning["type"])][2]).decode(value(meaning["body"]))


def by_name(state: State) -> dict[str, Any]:
    """What a client should have understood of a state: each sensor's fields as lists."""
    sensors = {
        name: {
            "time_ns": one.time_ns,
            **{
                field: list(one[field]) if count > 1 else [one[field]]
                for field, (_, count) in one._layout.places.items()
            },
        }
        for name, one in state.sensors.items()
    }
    return {"tick": state.tick, "time_ns": state.time_ns, "run_state": state.run_state, "sensors": sensors}


def same(a: Any, b: Any) -> bool:
    """Equal, and nil is NaN."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    a, b = (NAN if x is None else x for x in (a, b))
    return bool(a == b or (a != a and b != b))


def broken(good: list[bytes], count: int, seed: int) -> list[bytes]:
    """Datagrams with bytes changed, taken away and put in behind the header, such that promise much."""
    rng = random.Random(seed)
    bad = []
    for _ in range(count):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 6)):
            how = rng.random()
            at = rng.randrange(24, len(data)) if len(data) > 24 else 0
            if how < 0.7 and data:
                data[at] = rng.choice((rng.randrange(256), 0xDD, 0xDF, 0xC6, 0xDB, 0x9F, 0xC0, 0xCB, 0xCF, 0xFF))
            elif how < 0.85:
                del data[at:]
            else:
                data[at:at] = rng.randbytes(rng.randint(1, 40))
        bad.append(bytes(data[:1300]))
    return bad
