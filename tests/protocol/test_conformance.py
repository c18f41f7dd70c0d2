"""The conformance checker: our broker keeps every rule; brokers that break one are told which."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import wavesim

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
    "HELLO has at least 64 bytes": "import wavesim_sdk.wire.client as c; c.MIN_HELLO = 8\n",
    "KEEPALIVE is answered with its number": "import wavesim_sdk.wire.client as c; old = c.ClientSession._handle\n"
    "def mute(self, h, b, n):\n    return [] if h.type == 35 else old(self, h, b, n)\nc.ClientSession._handle = mute\n",
    "a repeated STEP gets the same DONE": "import wavesim_sdk.wire.client as c; old = c.ClientSession._on_step\n"
    "def other(self, b):\n    if self._done: self._done = (self._done[0], [*self._done[1][:2], [1.0], None])\n    return old(self, b)\n"
    "c.ClientSession._on_step = other\n",
    "the sequence grows by one with each datagram": "import wavesim_sdk.wire.client as c; old = c.ClientSession._encode\n"
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
    assert len(found) == 19 and all(found.values()), [r for r, ok in found.items() if not ok]


@pytest.mark.parametrize("rule", BREAKS, ids=lambda r: r.replace(" ", "-"))
def test_a_broken_rule_is_found(rule: str, tmp_path: Path) -> None:
    assert not findings(BREAKS[rule] + GOOD, tmp_path)[rule]


def test_a_command_that_does_not_exist() -> None:
    done = wavesim("conformance", "--", "/no/such/broker")
    assert done.returncode == 5 and "cannot start '/no/such/broker'" in done.stderr
