"""Code shared by the tests of clients in other languages: bodies, vectors of the protocol page, and broken datagrams."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import re
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack

from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.shared_memory import OWNER
from wavesim_sdk.testing import FakeServer, LossyProxy
from wavesim_sdk.wire import items as i
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire import seal
from wavesim_sdk.wire.codec import encode
from wavesim_sdk.wire.messages import MESSAGES
from wavesim_sdk.wire.schema import schema_of
from wavesim_sdk.wire.session import Requested, SessionGone, StepDone
from wavesim_sdk.wire.state import Body, State
from wavesim_sdk.wire.vectors import TOKEN, VECTORS

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
        known.add_actuator(a)
    for s in SENSORS:
        known.add_sensor(s)
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
                field: list(one[field]) if isinstance(place, slice) else [one[field]]
                for field, place in one._layout.places.items()
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


def passed_over(data: bytes) -> bool:
    """Whether a body is msgpack but for a text that is no UTF-8, a map as a key, or an extension with a reserved code:
    clients need not look at these in what they pass over.
    """
    try:
        msgpack.unpackb(
            data[24:],
            unicode_errors="replace",
            strict_map_key=False,
            object_pairs_hook=lambda pairs: None,
            ext_hook=lambda code, content: None,
        )
    except (ValueError, TypeError):
        return False
    return True


def parts() -> list[Any]:
    """A state and a step of several datagrams."""
    readings = [
        m.Reading(s.number, 10**9, 0, tuple(float(k) for k in range(count)))
        for s, count in zip(SENSORS, (4, 1, 12, 2), strict=True)
    ]
    made: list[Any] = [m.StateMessage(300, 10**9, 1, 2, None, (1.0, 2.0, 3.0), None, ())]
    made.append(m.StepMessage(301, 10**9, 1, 2, None, (1.0, 2.0, 3.0), None, (), 7))
    return [
        *made,
        *(m.SensorsMessage(t, k, (readings[2 * k], readings[2 * k + 1])) for t in (300, 301) for k in (0, 1)),
    ]


# ------------------------------------------------------------------------------------------------- programs that fly

KEY = bytes(range(32))
STEPS = 40


def key_file(path: Path, name: str, key: bytes, mode: int = 0o600) -> dict[str, str]:
    """A client's keys, and the environment that names them."""
    path.write_text(f"# of a test\n* {bytes(32).hex()}\n{name} {key.hex()}\n")
    path.chmod(mode)
    return {"WAVESIM_KEYS": str(path)}


def keys_of(name: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The configuration of a server that wants keys, and the environment of a client."""
    keys = folder / "server.keys"
    keys.write_text(f"{name} {KEY.hex()}\n")
    keys.chmod(0o600)
    return f'<network keys="{keys}"/>', key_file(folder / "client.keys", name, KEY)


def fly_over(loss: float, command: list[str], folder: Path, keys: bool) -> str:
    """A program is asked for some steps by a scripted server over a bad network: what it sent arrived once and in order."""
    ring = seal.Keyring([seal.KeyHolder("candidate", KEY)]) if keys else None
    environment = key_file(folder / "client.keys", "candidate", KEY) if keys else {"WAVESIM_KEYS": ""}
    values = {"ctd": [11.5, None, 4.25, 35.5], "sonar": [float(k) for k in range(256)]}
    with FakeServer(keys=ring) as server, LossyProxy(server.address, loss=loss, delay=(0.0, 0.02), seed=5) as proxy:
        program = subprocess.Popen(
            [*command, "127.0.0.1", str(proxy.address[1]), "candidate"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        try:
            server.session("candidate")
            for number in range(1, STEPS + 1):
                server.event("candidate", i.Notice(number, f"notice {number}"))
                server.step("candidate", 25 * number, values)
                limit = time.monotonic() + 60.0
                while len(server.events_of(StepDone, "candidate")) < number:
                    assert time.monotonic() < limit, f"step {number} was not answered"
                    time.sleep(0.002)
            server.event("candidate", i.RunStateChanged(3, 0))
            out, _ = program.communicate(timeout=30)
        finally:
            program.kill()
        assert [d.message.tick for d in server.events_of(StepDone, "candidate")] == [
            25 * k for k in range(1, STEPS + 1)
        ]
        numbers = [r.number for r in server.events_of(Requested, "candidate")]
        assert numbers == list(range(1, len(numbers) + 1))
        assert [g.reason for g in server.events_of(SessionGone, "candidate")] == ["left"]
    assert program.returncode == 0
    return out


def join_with_wrong_key(command: list[str], folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    """A program that has another key, one that others may read, or none."""
    environment = {"WAVESIM_KEYS": ""}
    if file:
        mode = 0o644 if file == "readable" else 0o600
        environment = key_file(folder / file, "candidate", bytes(range(1, 33)), mode)
    with FakeServer(keys=seal.Keyring([seal.KeyHolder("candidate", KEY)])) as server:
        return subprocess.run(
            [*command, "127.0.0.1", str(server.address[1]), "candidate"],
            capture_output=True,
            text=True,
            timeout=30,
            env={**os.environ, **environment},
        )


@contextlib.contextmanager
def emulators(config: Path, server: str, *types: str) -> Iterator[None]:
    """Emulators of some types of sensors, which have taken up their tables."""
    running = [launch("emulate", kind, config, "-s", server, stderr=subprocess.DEVNULL) for kind in types]
    tables = SharedState(server).vehicles
    limit = time.monotonic() + 60.0
    try:
        while not all(tables[kind].header[OWNER] for kind in types):
            assert time.monotonic() < limit and all(p.poll() is None for p in running)
            time.sleep(0.02)
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(60)


def feed_broken_datagrams(program: list[str | Path]) -> None:
    """Feed a client's fuzzer: it takes all vectors, and neither fails nor grows by 60 000 broken ones of them."""
    good = [
        encode(message, token, sequence, 0)
        for token, sequence, _, message in [*VECTORS, *((TOKEN, 50 + k, 0, m) for k, m in enumerate(parts()))]
        if not next(m[0] for m in MESSAGES.values() if m[2] is type(message))
    ]
    described = encode(DESCRIBED, TOKEN, 2)

    def feed(datagrams: list[bytes]) -> tuple[int, int, int]:
        stream = b"".join(struct.pack("<H", len(d)) + d for d in [described, *datagrams])
        done = subprocess.run(program, input=stream, capture_output=True, timeout=100)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        taken, count, events = re.findall(r"(\d+) of (\d+) taken, (\d+) events", done.stdout.decode())[0]
        return int(taken), int(count), int(events)

    known = [d for d in good if d[5] not in (2, 5) and d[8:16] != bytes(8)]
    assert feed(known)[:2] == (len(known) + 1, len(known) + 1)
    bad = broken(good, 60_000, 4)
    taken, count, events = feed(bad)
    assert count == len(bad) + 1 and 1000 < taken < count and events > 1000
