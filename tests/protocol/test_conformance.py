"""The conformance checker: our broker keeps every rule, and for other brokers it names the rule that they break."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CLI, wavesim
from wavesim_conformance.broker import Finding
from wavesim_conformance.server import ServerChecker
from wavesim_sdk.testing import FakeServer
from wavesim_sdk.wire.items import Answer, CommandAnswer, RequestRefused
from wavesim_sdk.wire.session import Requested

pytestmark = [pytest.mark.timeout(90)]

GOOD = """
import sys
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import SessionLost
try:
    with Broker(sys.argv[2], ("127.0.0.1", int(sys.argv[1])), lockstep=0.1) as broker:
        for step in broker.steps():
            broker.answer([5.0])
except SessionLost:
    pass
"""
BREAKS = {
    "HELLO has at least 64 bytes": "import wavesim_sdk.wire.client as c; H = c.Hello; c.Hello = lambda n, p: H(n, b'')\n",
    "the answer to a KEEPALIVE repeats its number": "import wavesim_sdk.wire.client as c; old = c.ClientSession._handle\n"
    "def mute(self, m, n):\n    return [] if isinstance(m, c.Keepalive) else old(self, m, n)\nc.ClientSession._handle = mute\n",
    "every correct msgpack encoding is accepted": "import wavesim_sdk.wire.codec as c; old = c.unpack_payload\n"
    "def strict(plain, kind):\n    if kind == 35 and plain[:1] in (b'\\xdc', b'\\xdd'): raise c.Dropped('body')\n    return old(plain, kind)\n"
    "c.unpack_payload = strict\n",
    "PROVE is answered with PROOF with the same number": "import wavesim_sdk.wire.client as c; c.Proof = lambda n: c.KeepaliveReply(0)\n",
    "a repeated STEP is answered with the same DONE": "import wavesim_sdk.wire.client as c; old = c.ClientSession._on_step\n"
    "def other(self, m):\n    if self._done: self._done = c.replace(self._done, command=(1.0,))\n    return old(self, m)\n"
    "c.ClientSession._on_step = other\n",
    "a STEP is answered only after all its parts have arrived": "import wavesim_sdk.wire.state as s; s.Parts.is_complete = lambda self, m: True\n",
    "the sequence number grows by one with each datagram": "import wavesim_sdk.wire.client as c; old = c.ClientSession._encode\n"
    "def skip(self, *a):\n    self._sequence += 1\n    return old(self, *a)\nc.ClientSession._encode = skip\n",
}


def findings(script: str, tmp_path: Path) -> dict[str, bool]:
    path = tmp_path / "broker.py"
    path.write_text(script)
    done = wavesim("conformance", "--json", "--", sys.executable, str(path), "{port}", "{name}")
    assert "Traceback" not in done.stderr
    found = {f["rule"]: f["ok"] for f in json.loads(done.stdout)}
    assert done.returncode == (0 if all(found.values()) else 5), done.stderr
    return found


def test_our_own_broker_keeps_every_rule(tmp_path: Path) -> None:
    found = findings(GOOD, tmp_path)
    assert len(found) == 24 and all(found.values()), [r for r, ok in found.items() if not ok]


@pytest.mark.parametrize("rule", BREAKS, ids=lambda r: r.replace(" ", "-"))
def test_a_broken_rule_is_found(rule: str, tmp_path: Path) -> None:
    assert not findings(BREAKS[rule] + GOOD, tmp_path)[rule]


def test_a_broker_that_gives_up_half_way(tmp_path: Path) -> None:
    leaver = GOOD.replace("broker.answer([5.0])", "broker.answer([5.0]); break")
    found = findings(leaver, tmp_path)
    assert not all(found.values()), "reported as a broken rule, not as an internal error"


def test_a_command_that_does_not_exist() -> None:
    done = wavesim("conformance", "--", "/no/such/broker")
    assert done.returncode == 5 and "cannot start '/no/such/broker'" in done.stderr


# ---------------------------------------------------------------------------------- servers


def reply(request: Requested) -> Answer | RequestRefused:
    """Do what is wanted; no vehicle command was sent."""
    if isinstance(request.request, CommandAnswer):
        return RequestRefused(request.number, "no vehicle command waits for an answer")
    return Answer(request.number, 1, "")


def look_at(server: FakeServer) -> dict[str, bool]:
    server.answer = reply
    findings = ServerChecker(server.address, "a").run()
    assert len({f.rule for f in findings}) == len(findings)
    return {f.rule: f.ok for f in findings}


def test_our_own_sessions_keep_every_rule_of_a_server() -> None:
    with FakeServer(keepalive=0.1) as server:
        found = look_at(server)
    assert len(found) == 43 and all(found.values()), [r for r, ok in found.items() if not ok]


def test_the_command_asks_a_server() -> None:
    with FakeServer(keepalive=0.1) as server:
        server.answer = reply
        at = f"127.0.0.1:{server.address[1]}"
        done = wavesim("conformance", "--json", "--at", at, "--body", "a")
        assert done.returncode == 0 and len(json.loads(done.stdout)) == 43, done.stderr
        for wrong in (("--at", at), ("--at", "nowhere", "--body", "a"), ("--at", at, "--body", "a", "--", "x"), ()):
            assert wavesim("conformance", *wrong).returncode == 2


#: what is done to our sessions, and the rule that breaks
WRONG_SERVERS = {
    "a repeated JOIN receives the same session": lambda s: setattr(s, "_by_join", _Forgetful()),
    "a second pilot is refused": lambda s: setattr(s, "takeover", True),
    "a cookie is valid for one address only": lambda s: setattr(
        s._address_validator, "is_valid_cookie", lambda *a: True
    ),
    "events are repeated until they are acknowledged": lambda s: setattr(s, "_tick", lambda session, now: None),
    "KEEPALIVE arrives in every period": lambda s: setattr(
        s, "_tick", lambda session, now: s.flush_events(session, now)
    ),
    "a session's datagram from a new address is answered with PROVE": lambda s: setattr(
        s, "_receive_from_new_address", lambda *a: []
    ),
    "LEAVE is answered with BYE": lambda s: setattr(s, "_send_bye", lambda *a: None),
}


class _Forgetful(dict[Any, Any]):
    def get(self, key: Any, default: Any = None) -> Any:
        return default


@pytest.mark.parametrize("rule", WRONG_SERVERS, ids=lambda r: r.replace(" ", "-"))
def test_a_broken_rule_of_a_server_is_found(rule: str) -> None:
    with FakeServer(keepalive=0.1) as server:
        WRONG_SERVERS[rule](server.sessions)
        server.answer = reply

        def say(finding: Finding) -> None:
            if finding.rule == rule and not finding.ok:
                raise Found  # what follows it would only take time

        with pytest.raises(Found):
            ServerChecker(server.address, "a", say).run()


class Found(Exception):
    """A broken rule."""


# ---------------------------------------------------------------------------------- emulators

SENSORS = """<wavesim><time step="4 ms"/><world><bed depth="30 m"/></world><fleet>
<sensors><{sensor} name="first" rate="10 Hz" {mounted}/></sensors>
<vehicle name="alpha" model="jolner" position="0 0 0 m"><sensors><{sensor} name="second" rate="5 Hz" {mounted}/></sensors></vehicle>
<vehicle name="beta" model="jolner" position="0 20 0 m"/>
<vehicle name="gamma" model="jolner" position="0 40 0 m"><sensors inherit="no"/></vehicle></fleet></wavesim>"""
MOUNTED = {"ctd": 'position="0 0 0.6 m"', "gps": 'position="0 0 -1.5 m"'}
FAULTY = """
import sys
{patch}
from wavesim_sdk.console import main
sys.argv = ["wavesim", "emulate", "ctd", sys.argv[1], "--server", sys.argv[2]]
main()
"""
OLD = "from wavesim_emulators.sensor_bank import SensorBank, InstrumentGroup\n"
WRONG = {
    "each instrument produces a value at each multiple of its period, with the next sequence number": OLD
    + "old = SensorBank._publish\n"
    "def twice(self, places, *rest):\n    new = old(self, places, *rest)\n    self.table['sequence'][places] += 1\n    return new\n"
    "SensorBank._publish = twice",
    "a value carries the tick and the time of the bodies from which it was computed": OLD
    + "old = SensorBank._publish\n"
    "def late(self, places, *rest):\n    new = old(self, places, *rest)\n    self.table['tick'][places] -= 1\n    return new\n"
    "SensorBank._publish = late",
    "a value carries the generation of its instrument": ""
    "import wavesim_sdk.attach as a\nwrite = a.SensorTableClaim.write\ndef wrong(self, rows, tick):\n    rows = rows.copy()\n"
    "    rows['generation'] += 1\n    write(self, rows, tick)\na.SensorTableClaim.write = wrong",
    "the fault 'lost' makes values invalid": OLD + "SensorBank._apply_faults = lambda *a: None",
    "a fault affects only the components that it names": OLD + "old = SensorBank._apply_faults\n"
    "def all(self, group, batch, before, now, faults):\n    faults['fault_count'] = 99\n    old(self, group, batch, before, now, faults)\n"
    "SensorBank._apply_faults = all",
    "the same seed and the same motion produce the same values": OLD
    + "import time\nimport wavesim_kernels.randomness as r\nr.key = lambda *a: time.time_ns()",
}


def emulator_findings(sensor: str, *command: str, options: tuple[str, ...] = ()) -> dict[str, bool]:
    done = wavesim("conformance", "--json", "--sensor", sensor, *options, "--", *command)
    assert "Traceback" not in done.stderr, done.stderr
    found = {f["rule"]: f["ok"] for f in json.loads(done.stdout)}
    assert done.returncode == (0 if all(found.values()) else 5), done.stderr
    return found


@pytest.mark.parametrize("sensor", ["ctd", "imu", "echosounder", "gps"])
def test_our_own_emulators_keep_every_rule(sensor: str, tmp_path: Path) -> None:
    path = tmp_path / "c.xml"
    path.write_text(SENSORS.format(sensor=sensor, mounted=MOUNTED.get(sensor, "")))
    found = emulator_findings(sensor, sys.executable, "-m", "wavesim_sdk", "emulate", sensor, str(path), "-s", "{name}")
    assert len(found) == 20 and all(found.values()), [r for r, ok in found.items() if not ok]


@pytest.mark.parametrize("sensor", ["ctd", "imu", "echosounder"])
def test_our_own_emulators_keep_every_rule_over_the_network(sensor: str, tmp_path: Path) -> None:
    path = tmp_path / "c.xml"
    path.write_text(SENSORS.format(sensor=sensor, mounted=MOUNTED.get(sensor, "")))
    command = (sys.executable, "-m", "wavesim_sdk", "emulate", sensor, str(path), "-s", "127.0.0.1:{port}")
    found = emulator_findings(sensor, *command, options=("--remote",))
    assert len(found) == 20 and all(found.values()), [r for r, ok in found.items() if not ok]


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.replace(" ", "-"))
def test_a_broken_rule_of_an_emulator_is_found(rule: str, tmp_path: Path) -> None:
    path, script = tmp_path / "c.xml", tmp_path / "emulator.py"
    path.write_text(SENSORS.format(sensor="ctd", mounted=MOUNTED["ctd"]))
    script.write_text(FAULTY.format(patch=WRONG[rule]))
    assert not emulator_findings("ctd", sys.executable, str(script), str(path), "{name}")[rule]


@pytest.mark.parametrize(
    ("sensor", "code", "text"), [("odometer", 2, "unknown sensor type 'odometer'"), ("ctd", 5, "claims its sensor")]
)
def test_an_emulator_that_cannot_be_checked(sensor: str, code: int, text: str) -> None:
    """Told, and nothing is left in shared memory."""
    process = subprocess.Popen(
        [*CLI, "conformance", "--sensor", sensor, "--", "true"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = process.communicate(timeout=60)[0]
    assert process.returncode == code and text in said and "Traceback" not in said
    assert not list(Path("/dev/shm").glob(f"*wavesim.conformance-{process.pid}.*"))
