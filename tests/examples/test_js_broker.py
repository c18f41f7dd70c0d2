"""The JavaScript client, whose codec is generated from the SDK's schema: checked for conformance, run, and given
invalid input.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server, wavesim
from tests.examples import foreign
from tests.examples.compiled import tool
from wavesim_sdk.testing import FakeServer
from wavesim_sdk.wire import codec
from wavesim_sdk.wire import items as i
from wavesim_sdk.wire.codec import encode
from wavesim_sdk.wire.messages import Refusal
from wavesim_sdk.wire.session import Actuated, NotAdmitted, Requested
from wavesim_sdk.wire.vectors import TOKEN, VECTORS
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.timeout(150)]


@pytest.fixture(scope="module")
def node() -> str:
    return tool("node")


@pytest.fixture(scope="module")
def auv(node: str, root: Path) -> list[str]:
    return [node, str(root / "examples/js-broker/auv.js")]


@pytest.fixture
def reader(node: str, root: Path) -> Callable[..., Any]:
    """Asks the client's codec about datagrams."""

    def ask(verb: str, *data: bytes) -> list[Any]:
        lines = "".join(f"{verb} {d.hex()}\n" for d in data)
        program = [node, str(root / "tests/examples/js/reader.js")]
        done = subprocess.run(program, input=lines, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


# --------------------------------------------------------------------------------------------------------- the codec


def test_its_codec_is_that_of_the_schema(node: str, root: Path) -> None:
    folder, schema = root / "examples/js-broker", root / "broker_sdk/wavesim_sdk/wire/protocol.json"
    made = subprocess.run([node, str(folder / "generate.js"), str(schema)], capture_output=True, text=True, check=True)
    assert made.stdout == (folder / "protocol.js").read_text(), (
        "protocol.json has changed: node generate.js ../../broker_sdk/wavesim_sdk/wire/protocol.json > protocol.js"
    )


@pytest.mark.parametrize("place", ["vectors", "alternatives"])
def test_it_reads_every_vector(root: Path, reader: Callable[..., Any], place: str) -> None:
    vectors = foreign.lines(root, place)
    for (name, _, meaning), found in zip(vectors, reader("decode", *(data for _, data, _ in vectors)), strict=True):
        body = meaning.pop("body")
        assert {k: v for k, v in found.items() if k != "body"} == meaning, name
        known = json.dumps(found["body"]), json.dumps(body[: len(found["body"])])
        assert json.loads(known[0]) == json.loads(known[1]), name


def test_it_takes_what_the_sdk_takes(reader: Callable[..., Any]) -> None:
    """20 000 datagrams that are a little wrong: taken or dropped alike."""
    datagrams = foreign.broken([encode(message, TOKEN, 5, 0) for *_, message in VECTORS], 20_000, 9)
    datagrams = [d for d in datagrams if len(d) >= 24 and d[5] not in (3,)]  # a JOIN is looked at differently
    taken = 0
    for data, found in zip(datagrams, reader("takes", *datagrams), strict=True):
        from_client = data[5] < 24 and data[5] not in (2, 4, 5)
        try:
            codec.decode_payload(data, codec.decode_header(data, from_client))
        except codec.Dropped as dropped:
            assert found is not None or (dropped.reason == "body" and foreign.passed_over(data)), data.hex()
        else:
            assert found is None, (found, data.hex())
            taken += 1
    assert taken > 1000


def test_foreign_bytes_do_no_harm(node: str, root: Path) -> None:
    """The vectors are taken; 60 000 broken ones end nothing, and nothing grows."""
    foreign.feed_broken_datagrams([node, "--max-old-space-size=96", root / "tests/examples/js/fuzz.js"])


# ---------------------------------------------------------------------------------------------------------- the client


def test_it_keeps_every_rule(auv: list[str]) -> None:
    done = wavesim("conformance", "--", *auv, "127.0.0.1", "{port}", "{name}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 24


@pytest.mark.parametrize("keys", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_nothing_is_lost_over_a_bad_network(auv: list[str], tmp_path: Path, loss: float, keys: bool) -> None:
    out = foreign.fly_over(loss, auv, tmp_path, keys)
    assert "propeller: -25 to 25 1/s" in out and re.search(r"^40 steps", out, re.MULTILINE), out


def test_without_the_right_key_it_says_why(auv: list[str], tmp_path: Path) -> None:
    for file, why in (("other", "does it have this key?"), ("readable", "other users may read")):
        done = foreign.join_with_wrong_key(auv, tmp_path, file)
        assert done.returncode == 1 and why in done.stderr, done.stderr


def run(node: str, root: Path, tmp_path: Path, script: str, port: int, **environment: str) -> subprocess.Popen[str]:
    """A program of some lines that uses the client."""
    broker = (root / "examples/js-broker/broker.js").as_uri()
    path = tmp_path / f"program-{random.randrange(10**9)}.mjs"
    path.write_text(
        f'import {{ Broker, Refused, SessionLost, Refusal }} from "{broker}";\nconst port = {port};\n{script}'
    )
    return subprocess.Popen(
        [node, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "WAVESIM_KEYS": "", **environment},
    )


def said(program: subprocess.Popen[str]) -> str:
    """All that it said."""
    try:
        out, error = program.communicate(timeout=30)
    finally:
        program.kill()
    assert program.returncode == 0 and error == "", error
    return out


def test_commands_by_name_and_by_position(node: str, root: Path, tmp_path: Path) -> None:
    script = """
const broker = await Broker.connect({ name: "a", port });
console.log(broker.actuators.map((a) => a.name).join(), broker.sensors.map((s) => s.fields[0].name).join(), broker.welcome.id);
broker.answer({ rudder: 0.25 });
broker.answer([8, null]);
for (const wrong of [{ ruder: 1 }, { rudder: Infinity }, [NaN, "x"], 7])
  try { broker.answer(wrong); } catch (error) { console.log(error.name, error.message); }
try { broker.request("PONG", {}); } catch (error) { console.log(error.message); }
try { broker.ping("loud"); } catch (error) { console.log(error.message); }
broker.ping(25000);
broker.send("hello", { to: 3 });
broker.rangeTo(4);
broker.request("SUBSCRIBE", { sensors: ["ctd"], acoustics: 1, effort: 0, others: 1, state_period_ns: 0 });
await broker.close();
"""
    with FakeServer() as server:
        out = said(run(node, root, tmp_path, script, server.address[1])).splitlines()
        assert out[0] == "propeller,rudder pressure,range 3"
        assert out[1] == "TypeError unknown actuator 'ruder'; use propeller, rudder"
        assert out[2] == "TypeError invalid command for rudder: Infinity"
        assert ", got x" in out[3] and "expected a finite number" in out[3] and "by name or position, got 7" in out[4]
        assert out[5].startswith("unknown request 'PONG'; use PING, SEND")
        assert out[6].startswith("Ping.frequency: expected a finite number") and out[6].endswith(", got loud")
        assert [tuple(a.message.command) for a in server.events_of(Actuated, "a")] == [(None, 0.25), (8.0, None)]
        assert [type(r.request) for r in server.events_of(Requested, "a")] == [i.Ping, i.Send, i.Range, i.Subscribe]


def test_states_come_with_all_that_happened(node: str, root: Path, tmp_path: Path) -> None:
    """A program that is slow gets the newest state and every reception; sensors by name, one that is absent is undefined."""
    script = """
const broker = await Broker.connect({ name: "a", port });
let at_once = 0;
broker.listeners.push(() => at_once++);
console.log("joined");
const until = performance.now() + 700;
while (performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
for await (const step of broker.steps()) {
  const { ctd, sonar } = step.sensors;
  console.log(step.tick, step.time, ctd.temperature, Number.isNaN(ctd.conductivity), sonar.range.length, step.sensors.dvl, step.complete);
  console.log(step.receptions.map((r) => r.id).join(), at_once, step.notices.length, step.actuators.rudder, step.efforts);
  break;
}
await broker.close();
"""
    from wavesim_sdk.testing import make_step
    from wavesim_sdk.wire.messages import StateMessage

    with FakeServer() as server:
        program = run(node, root, tmp_path, script, server.address[1])
        assert program.stdout is not None and program.stdout.readline() == "joined\n"
        values = {"ctd": [11.5, 15.25, None, 35.5], "sonar": [float(k) for k in range(256)]}
        for k in range(1, 6):
            step, parts = make_step(server.session("a"), 25 * k, values)
            fields = (step.tick, step.time_ns, 1, step.parts, None, (1.0, 0.5), None, step.sensors)
            for message in (StateMessage(*fields), *parts):
                server.send("a", message)
            server.event("a", i.Reception(k, k, 0, 0, 0, 0, 0, 25e3, 130.0, 40.0))
        server.event("a", i.Notice(1, "so it is"))
        lines = said(program).splitlines()
    assert lines[0] == "125 0.5 15.25 true 256 undefined true"
    assert lines[1] == "1,2,3,4,5 5 1 0.5 null"


def test_ends_and_refusals(node: str, root: Path, tmp_path: Path) -> None:
    script = """
try {
  const broker = await Broker.connect({ name: "a", port, role: "listener" });
  console.log("joined", broker.welcome.role);
  for await (const step of broker.steps()) console.log(step.tick);
} catch (error) {
  console.log(error instanceof SessionLost, error instanceof Refused, error.code === Refusal.ROLE, error.message);
}
"""
    with FakeServer() as server:
        program = run(node, root, tmp_path, script, server.address[1])
        server.session("a")
        server.bye("a", "enough")
        assert said(program) == "joined 2\ntrue false false the server ended the session: enough\n"

    def refuse(*_: Any) -> Any:
        raise NotAdmitted(Refusal.ROLE, "no listener here")

    with FakeServer(refuse) as server:
        program = run(node, root, tmp_path, script, server.address[1])
        assert said(program) == "false true true the server refused the join: no listener here\n"
    none = script.replace('role: "listener"', "timeout: 0.3")
    assert "no server answers at 127.0.0.1:1; is one running there?" in said(run(node, root, tmp_path, none, 1))


# --------------------------------------------------------------------------------------------------- on a real server

RUN = """<time step="4 ms" duration="{duration} s"/><world><bed depth="100 m"/></world>{network}
<fleet><vehicle name="auv" model="lauv" position="0 0 5 m" client="required"><sensors><ahrs rate="10 Hz"/>
<pressure rate="10 Hz"/><ctd name="nose" rate="5 Hz"/></sensors></vehicle>
<buoy name="c" model="buoy" position="300 40 0 m"/></fleet>"""


@pytest.mark.system
@pytest.mark.parametrize("keys", [False, True], ids=["open", "sealed"])
def test_it_flies_a_course(
    auv: list[str], config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, keys: bool
) -> None:
    network, environment = foreign.keys_of("auv", tmp_path) if keys else ("", {})
    loaded = config(RUN.format(duration=90, network=network))
    server = serve(loaded.path, "--speed", "0")
    with foreign.emulators(loaded.path, server.name, "ahrs", "pressure"):
        program = subprocess.Popen(
            [*auv, "127.0.0.1", str(server.port), "auv", "60", "12"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "WAVESIM_KEYS": "", **environment},
        )
        try:
            server.wait(lambda s: s["clients_total"] == 1)
            server.send("start")
            out, _ = program.communicate(timeout=100)
        finally:
            program.kill()
    assert program.returncode == 0 and "rudder-top" in out and "0 datagrams dropped" in out, out
    found = [tuple(map(float, f)) for f in re.findall(r"^(\S+) s: heading (\S+) deg, depth (\S+) m", out, re.MULTILINE)]
    time, heading, depth = found[-1]
    assert time >= 80 and heading == pytest.approx(60, abs=3) and depth == pytest.approx(12, abs=1), found


@pytest.mark.system
def test_an_instrument_takes_part(
    node: str,
    auv: list[str],
    root: Path,
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    tmp_path: Path,
) -> None:
    """Beside the program that drives: it chooses a sensor, sends sound, hears the answer, and leaves alone."""
    loaded = config(RUN.format(duration=30, network=""))
    server = serve(loaded.path, "--speed", "0")
    script = """
const broker = await Broker.connect({ name: "auv", port, role: "instrument", sensors: ["nose"] });
console.log(broker.sensors.map((s) => s.name).join(), broker.welcome.role, broker.actuators[0].name);
const seen = new Set();
let [asked, ranges] = [-Infinity, []];
for await (const step of broker.steps()) {
  for (const name of Object.keys(step.sensors)) seen.add(name);
  for (const heard of step.receptions) if (heard.range !== null) ranges.push(heard.range);
  if (step.time - asked > 1) { asked = step.time; broker.ping(25000); }
  if (ranges.length >= 3 && seen.size > 0) break;
}
console.log([...seen].join(), ranges.every((r) => r > 250 && r < 310));
await broker.close();
"""
    with foreign.emulators(loaded.path, server.name, "ahrs", "pressure", "ctd"):
        pilot = subprocess.Popen([*auv, "127.0.0.1", str(server.port), "auv"], stdout=subprocess.DEVNULL)
        try:
            instrument = run(node, root, tmp_path, script, server.port)
            server.wait(lambda s: s["clients_total"] == 2)
            server.send("speed", factor=5)
            server.send("start")
            first, last = said(instrument).splitlines()
            assert first.split()[1:] == ["1", "propeller"] and "nose" in first
            assert last == "nose true"
            server.wait(lambda s: s["clients_total"] == 1)
            assert pilot.poll() is None, "the pilot flies on"
        finally:
            pilot.kill()
            pilot.wait()
