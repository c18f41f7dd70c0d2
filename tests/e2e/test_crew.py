"""The crew of one AUV: a broker controls it while a GPS, an echosounder, a Doppler log and a modem, each a separate
program, serve other clients. Each program is killed and returns without affecting the others.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import gpsd
from tests.conftest import Server
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("crew"), pytest.mark.timeout(240)]

WORLD = """<time step="4 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="30 m"/></world>
<network keepalive_timeout="3 s"/>
<fleet>
  <vehicle name="auv" model="lauv" position="0 0 0 m" client="required">
    <transducer threshold="80 dB" recharge="0 s" turn_around="50 ms"><modem address="3" bit_rate="1000" preamble="20 ms"/></transducer>
    <sensors>
      <gps rate="5 Hz" noise="0" position="0 0 -3 m"/><ahrs rate="10 Hz" noise="0"/><ctd rate="5 Hz" noise="0"/>
      <echosounder rate="5 Hz" noise="0"/><dvl rate="5 Hz" noise="0" position="0 0 0.5 m"/>
    </sensors>
  </vehicle>
  <vehicle name="base" model="lauv" position="300 0 20 m">
    <transducer threshold="80 dB" recharge="0 s" turn_around="50 ms"><modem address="4" bit_rate="1000" preamble="20 ms"/></transducer>
  </vehicle>
</fleet>"""


class Program:
    """A `wavesim device` at its port."""

    def __init__(self, server: Server, *arguments: str, by: str = "--tcp", port: int = 0) -> None:
        self._again = (server, arguments, by)
        command = ["device", *arguments, by, str(port), "--port", str(server.port)]
        self.process = launch(*command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert " at " in said, said
        self.port = int(said.rpartition(":")[2])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        self._close()

    def again(self) -> Program:
        """The same program, at the same port."""
        server, arguments, by = self._again
        return Program(server, *arguments, by=by, port=self.port)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(15)
        self._close()

    def _close(self) -> None:
        if self.process.stdout is not None:
            self.process.stdout.close()


class Driver:
    """The pilot: drives all the time, in a thread of its own, and watches that its steps go on."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.steps, self.gap = broker, 0, 0.0
        self._last, self._over = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._drive)
        self._thread.start()

    def _drive(self) -> None:
        while not self._over.is_set():
            for _ in self.broker.poll(0.1):
                now = time.monotonic()
                self.gap, self._last = max(self.gap, now - self._last), now
                self.steps += 1
                self.broker.answer({"propeller": 4.0})

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def until(self, what: str, found: Callable[[], Any], timeout: float = 30.0) -> Any:
        """Wait until something is there, while the driving goes on."""
        limit = time.monotonic() + timeout
        while time.monotonic() < limit:
            assert self._thread.is_alive(), "the pilot lost its session"
            if (value := found()) is not None:
                return value
            time.sleep(0.01)
        raise AssertionError(f"no {what} within {timeout:g} s")


class Lines:
    """Lines of a TCP port, never blocking."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setblocking(False)
        self._text = b""

    def next(self, pattern: str) -> re.Match[str] | None:
        """The next line that matches; earlier ones are let go."""
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            self._text += self.socket.recv(65536)
        *lines, self._text = self._text.split(b"\n")
        return next((m for line in lines if (m := re.match(pattern, line.decode("ascii", "replace")))), None)

    def close(self) -> None:
        self.socket.close()


class Gpsd:
    """gpsd with our receiver as its only device."""

    def __init__(self, device_port: int) -> None:
        self.process, port = gpsd.start(f"tcp://127.0.0.1:{device_port}")
        gpsd.connect(port).close()  # it listens
        self.lines = Lines(port)
        self.lines.socket.sendall(b'?WATCH={"enable":true,"json":true};\n')

    def fix(self) -> dict[str, Any] | None:
        line = self.lines.next(r'(\{"class":"TPV".*\})')
        report: dict[str, Any] = json.loads(line[1]) if line is not None else {}
        return report if report.get("mode", 0) >= 2 and "lat" in report else None

    def end(self) -> None:
        self.lines.close()
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture
def cleanup() -> Iterator[list[Callable[[], object]]]:
    calls: list[Callable[[], object]] = []
    yield calls
    for call in reversed(calls):
        call()


def test_four_instruments_of_four_kinds_beside_a_pilot(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], cleanup: list[Callable[[], object]]
) -> None:
    from brping import Ping1D

    path = config(WORLD).path
    server = serve(path, "--speed", "1")
    emulators = launch("emulate", "all", path, "-s", server.name)
    cleanup += [lambda: emulators.wait(15), emulators.terminate]
    programs = {
        "nmea": Program(server, "nmea", "auv"),
        "ping1d": Program(server, "ping1d", "auv", by="--udp"),
        "dvl": Program(server, "dvl", "auv", "--format", "PD6"),
        "nanomodem": Program(server, "nanomodem", "auv", "--address", "3"),
    }
    cleanup.append(lambda: [p.end() for p in programs.values()])
    with Broker("auv", ("127.0.0.1", server.port)) as broker, Driver(broker) as driver:
        server.send("start")
        state = SharedState(server.name)
        driver.until("motion", lambda: True if driver.steps > 20 else None)
        row = state.row("auv")

        def gps() -> None:
            judge = Gpsd(programs["nmea"].port)
            try:
                fix = driver.until("fix", judge.fix)
                north = state.snapshot().state["p_WB_W"][row, 0]
                assert fix["lat"] == pytest.approx(41.18 + math.degrees(north / 6_362_000.0), abs=5e-5)
            finally:
                judge.end()

        def sounder() -> None:
            ping = Ping1D()
            ping.connect_udp("127.0.0.1", programs["ping1d"].port)
            try:
                assert ping.initialize() is True

                def depth() -> float | None:
                    data = ping.get_distance()
                    return data["distance"] / 1000.0 if data and data["confidence"] else None

                assert driver.until("depth", depth) == pytest.approx(30.0, abs=0.8)
            finally:
                ping.iodev.close()

        def doppler() -> None:
            lines = Lines(programs["dvl"].port)
            try:
                line = driver.until("velocity", lambda: lines.next(r":BS,\s*([+-]?\d+),\s*([+-]?\d+),.*,A"))
                speed = state.snapshot().state["v_WB_B"][row]
                assert math.hypot(int(line[1]), int(line[2])) / 1000.0 == pytest.approx(
                    math.hypot(speed[0], speed[1]), abs=0.3
                )
            finally:
                lines.close()

        def modem() -> None:
            lines = Lines(programs["nanomodem"].port)
            try:
                lines.socket.sendall(b"$P004")
                line = driver.until("range", lambda: lines.next(r"#R004T(\d{5})"))
                there = state.snapshot().state["p_WB_W"]
                away = float(((there[row] - there[state.row("base")]) ** 2).sum() ** 0.5)
                assert int(line[1]) * 31.25e-6 * 1500.0 == pytest.approx(away, abs=3.0)
            finally:
                lines.close()

        checks = {"nmea": gps, "ping1d": sounder, "dvl": doppler, "nanomodem": modem}
        for check in checks.values():
            check()
        clients = server.status()["clients"]
        assert isinstance(clients, list)
        assert sorted(c["role"] for c in clients if c["name"] == "auv") == ["instrument"] * 4 + ["pilot"]
        for name, check in checks.items():
            programs[name].kill()
            others = [c for n, c in checks.items() if n != name]
            others[0]()
            programs[name] = programs[name].again()
            check()
        assert driver.gap < 2.0, "the pilot's states went on all the time"
    assert server.process.poll() is None


def test_a_pilot_that_dies_leaves_its_crew_waiting(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    path = config(WORLD.replace('keepalive_timeout="3 s"', 'keepalive_timeout="1 s" keepalive_period="0.2 s"')).path
    server = serve(path, "--speed", "1")
    address = ("127.0.0.1", server.port)
    server.send("start")
    with Broker("auv", address, role="listener") as listener:
        assert listener.poll(0.3) == [], "the body is not there yet, so there is no state of it"
        with Broker("auv", address) as pilot:
            assert pilot.poll(5.0)
            assert listener.poll(5.0), "the body came with its pilot"
        limit = time.monotonic() + 60.0
        while listener.poll(0.5):
            assert time.monotonic() < limit, "the body left with its pilot"
        with Broker("auv", address) as pilot:
            assert pilot.poll(5.0) and listener.poll(5.0), "both are back without joining anew"
        status = server.wait(lambda s: s["clients_total"] == 1)
        assert [c["role"] for c in status["clients"]] == ["listener"]  # type: ignore[attr-defined]


def test_shared_memory_tells_who_is_on_board(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    """The pilot in `clients`, everybody else in `crew`, by role and number; gone when they have gone."""
    server = serve(config(WORLD).path)
    address, state = ("127.0.0.1", server.port), SharedState(server.name)

    def on_board(expected: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """(role, ordinal) of the crew, once it is as expected."""
        limit = time.monotonic() + 60.0
        while True:
            crew = state.crew()
            found = [(int(r["role"]), int(r["ordinal"])) for r in crew]
            if found == expected or time.monotonic() > limit:
                assert all(r["address"] == b"127.0.0.1" and 0.0 <= r["silent"] < 5.0 for r in crew)
                return found
            time.sleep(0.02)

    with Broker("auv", address) as pilot, Broker("auv", address, role="instrument"):
        pilot.poll(10.0)  # a state: the engine has let the body in, and shared memory tells of it
        row = state.row("auv")
        with Broker("auv", address, role="listener"):
            assert on_board([(1, 1), (2, 2)]) == [(1, 1), (2, 2)]
            assert set(state.crew()["body"]) == {row} and state.clients()["status"][row] == 1
        assert on_board([(1, 1)]) == [(1, 1)]
    assert on_board([]) == []
