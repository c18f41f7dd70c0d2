"""Keys of a running server: replaced without losing a step, revoked for good, and valid for one server only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk import log
from wavesim_sdk.broker import Broker
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import Refused, SessionLost
from wavesim_sdk.testing import LossyProxy
from wavesim_sdk.wire import codec, key_file, seal
from wavesim_sdk.wire.link import KEYS_VARIABLE
from wavesim_sdk.wire.messages import HEADER_BYTES, Type
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("network"), pytest.mark.timeout(300)]

CONFIG = """<time step="10 ms" pace="fast"/><network {network}/><world><bed depth="100 m"/></world>
<fleet><vehicle name="a" model="lauv" position="0 0 20 m" client="optional"/>
<vehicle name="b" model="lauv" position="500 0 20 m" client="optional"/></fleet>"""
PROGRAM = """
import sys
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import SessionEnded
try:
    with Broker(sys.argv[1], sys.argv[2], lockstep=0.1) as broker:
        for step in broker.steps():
            print(round(step.time * 10), flush=True)
            broker.answer({"propeller": 5.0})
except SessionEnded as error:
    print(error, flush=True)
"""


class Program:
    """A broker in a separate process, which prints its steps and the reason for its end."""

    def __init__(self, name: str, server: Server, keys: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, name, f"127.0.0.1:{server.port}"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, KEYS_VARIABLE: str(keys)},
        )
        self.lines: list[str] = []

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(10)

    def read(self, count: int) -> int:
        """Wait for ``count`` more steps, and return the number of the last one."""
        assert self.process.stdout is not None
        for _ in range(count):
            self.lines.append(self.process.stdout.readline().strip())
        return int(self.lines[-1])

    def rest(self) -> str:
        """Wait for the end of the process and return its last line."""
        assert self.process.stdout is not None
        self.lines += self.process.stdout.read().split("\n")[:-1]
        assert self.process.wait(30) == 0
        return self.lines[-1]

    def check_no_gap(self, last: int) -> None:
        ticks = [int(line) for line in self.lines[:last]]
        assert ticks == list(range(ticks[0], ticks[0] + len(ticks))), "a step was lost or came twice"


def own_line(keys: Path, name: str, to: Path) -> Path:
    """Copy the newest line of a client to a separate file, as the page says."""
    line = [line for line in keys.read_text().splitlines() if line.startswith(f"{name} ")][-1]
    to.write_text(line + "\n")
    to.chmod(0o600)
    return to


def reload(server: Server, ok: bool = True) -> str:
    with Commander(server.name) as commander:
        reply = commander.send("reload-keys", timeout=30.0)
    assert reply.ok == ok
    return reply.text


def test_keys_are_replaced_and_revoked_while_clients_run(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    keys = tmp_path / "trial.keys"
    assert wavesim("keys", keys, "a", "b").returncode == 0
    server = serve(config(CONFIG.format(network='keys="trial.keys"')).path, "--log", tmp_path / "run.mcap")
    at = ("127.0.0.1", server.port)
    old_a, old_b = (own_line(keys, name, tmp_path / f"{name}.keys") for name in "ab")
    key_a, key_b = seal.find_key(old_a, "a"), seal.find_key(old_b, "b")
    with Program("a", server, old_a) as a, Program("b", server, old_b) as b:
        server.wait(lambda s: s["clients_total"] == 2)
        server.send("start")
        a.read(20), b.read(20)

        assert wavesim("keys", keys, "a", "--replace").returncode == 0
        assert wavesim("reload-keys", "--server", server.name).stdout == "3 keys: added a; replaced a\n"
        a.read(20), b.read(20)
        assert server.status()["keys"] == {"valid": 2, "replaced_in_use": ["a"]}
        assert "keys       replaced, but still in use: a" in wavesim("status", "-s", server.name).stdout.splitlines()
        with pytest.raises(Refused, match="this key was replaced; join with the new key"):
            Broker("a", at, role="listener", key=key_a).connect()
        new_a = seal.find_key(own_line(keys, "a", tmp_path / "new.keys"), "a")
        with Broker("a", at, role="listener", key=new_a) as listener:
            assert listener.welcome.id == 0
        assert reload(server) == "3 keys: no change"

        before = keys.read_text()
        keys.write_text(before + "b 1234\n")
        assert "the earlier keys stay valid" in reload(server, ok=False)
        keys.chmod(0o644)
        assert "other users may read this key file" in reload(server, ok=False)
        keys.unlink()
        assert "cannot read the key file" in reload(server, ok=False)
        keys.write_text(before)
        keys.chmod(0o600)
        a.read(20), b.read(20)

        assert wavesim("keys", keys, "b", "--revoke").stdout == f"{keys}: revoked keys: 1\n"
        assert reload(server) == "2 keys: revoked b; ended b (pilot)"
        assert b.rest() == "the server ended the session: the key of this session was revoked"
        a.read(20)
        a.check_no_gap(80)
        b.check_no_gap(len(b.lines) - 1)
        with pytest.raises(SessionLost, match="check that it has this key"):
            Broker("b", at, key=key_b).connect(1.5)
        assert server.status()["drops"]["key"] >= 3  # type: ignore[index]

        key_file.revoke_keys(keys, ["a"])
        key_file.add_keys(keys, ["b"], seal.public_key)
        assert reload(server) == "1 keys: added b; revoked a, a; ended a (pilot)"
        assert a.rest().endswith("the key of this session was revoked")
        a.check_no_gap(len(a.lines) - 1)
        with Broker("b", at, key=seal.find_key(keys, "b")) as back:
            assert back.welcome.resumed == 0
    assert server.end() == 0
    found = log.read(path := tmp_path / "run.mcap")
    assert [m["text"] for _, m in found.json["/host/keys"]] == [
        "3 keys: added a; replaced a",
        "3 keys: no change",
        "2 keys: revoked b; ended b (pilot)",
        "1 keys: added b; revoked a, a; ended a (pilot)",
    ]
    damage = [m["text"] for _, m in found.json["/host/damage"]]
    assert [f"'{name}' (pilot) was disconnected: its key was revoked" in damage for name in "ab"] == [True, True]
    assert not any(h.key[:32].hex() in path.read_bytes().hex() for h in seal.read_keys(keys))


def test_a_server_without_keys_says_so(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(CONFIG.format(network="")).path)
    done = wavesim("reload-keys", "--server", server.name)
    assert (
        done.returncode != 0 and "this server does not require keys" in done.stderr and "Traceback" not in done.stderr
    )
    assert "keys" not in server.status()


def test_a_key_is_valid_for_its_server_only_and_a_record_does_not_open(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    """Another server with the same pre-shared key; and everything that passed, with every line of the key file."""
    keys = tmp_path / "trial.keys"
    assert wavesim("keys", keys, "a").returncode == 0
    key = seal.find_key(keys, "a")
    other = os.urandom(32)
    foreign = key[:32] + seal.public_key(other)
    server = serve(config(CONFIG.format(network='keys="trial.keys"')).path)
    at = ("127.0.0.1", server.port)
    with pytest.raises(SessionLost, match="check that it has this key"):
        Broker("a", at, key=foreign).connect(1.5)
    with pytest.raises(SessionLost, match="check that it has this key"):
        Broker("a", at, key=key[:32]).connect(1.5)
    assert server.status()["clients_total"] == 0

    passed: list[tuple[bool, bytes]] = []

    class Recorder(LossyProxy):
        def _pass(self, transport, data, to):  # type: ignore[no-untyped-def]
            passed.append((to == self.target, data))
            super()._pass(transport, data, to)

    server.send("start")
    with Recorder(at) as way, Broker("a", way.address, key=key) as broker:
        broker.poll(5.0)
        broker.answer({"propeller": 9.0})
        broker.poll(5.0)
        token = broker.session.token
    sealed = [(to_server, data) for to_server, data in passed if data[6]]
    (join, *_), (welcome, *_) = ([d for _, d in sealed if d[5] == kind] for kind in (Type.JOIN, Type.WELCOME))
    opened = codec.decode_payload(join, codec.decode_header(join, True), seal.HandshakeSeal(key, seal.JOIN))
    assert opened.name == "a", "the key opens a JOIN, as the page says"
    salt = opened.cookie + opened.nonce.to_bytes(8, "little") + seal.public_of_join(join)
    salt += welcome[HEADER_BYTES:][: seal.PUBLIC_BYTES]
    static = seal.EphemeralKey(key_file.read_key_file(keys).server_private).agree(seal.public_of_join(join))
    for secret in (key, key[:32], key + static, key + static + static):
        for to_server, data in sealed:
            if data[5] != Type.JOIN:
                with pytest.raises(codec.Dropped, match="seal"):
                    thief = seal.SessionSeal(secret, salt, token, is_client=not to_server)
                    codec.open_payload(data, codec.decode_header(data, to_server), thief)
    assert len({d[5] for _, d in sealed}) >= 5
