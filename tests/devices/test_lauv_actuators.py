"""Virtual controllers of a LAUV: frames of LUCL, the start of DUNE's drivers, speeds, servos, errors, a real server."""

from __future__ import annotations

import math
import socket
import struct
import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.bench import device, processes
from wavesim_conformance.device import ACTUATORS
from wavesim_devices.lauv_actuators import LauvActuators, Propeller
from wavesim_devices.lucl import LuclSplitter, frame
from wavesim_sdk.broker import Step
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.wire.client import State
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_sdk.wire.messages import Role
from wavesim_sdk.wire.state import Actuation
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
NAMES = {a.name: a.number for a in ACTUATORS}


class Broker:
    """A broker whose actuators reach their commands within a step."""

    def __init__(self, role: Role = Role.PILOT, actuators: Any = ACTUATORS) -> None:
        self.name, self.join, self.actuators = "lauv", SimpleNamespace(role=role), actuators
        self.commands: dict[str, float] = {}

    def answer(self, commands: dict[str, float]) -> None:
        self.commands = {**self.commands, **commands}


class Bench:
    """The device with a host at each port. A step takes 20 ms."""

    def __init__(self, *, inverted: bool = True) -> None:
        self.broker, self.ticks = Broker(), 0
        self.device = LauvActuators(self.broker, 1500.0, inverted=inverted)  # type: ignore[arg-type]
        self.sent = {"motor": bytearray(), "servos": bytearray()}
        self.hosts = {port: self.device.connect(port, self.sent[port].extend) for port in self.sent}
        self.run(0.02)

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / 0.02)):
            self.ticks += 1
            values = [self.broker.commands.get(a.name, 0.0) for a in ACTUATORS]
            state = State(0, self.ticks * 20_000_000, actuation=Actuation.from_values(values, NAMES))
            self.device.step(Step(state))

    def frames(self, port: str) -> list[tuple[int, bytes]]:
        splitter = LuclSplitter()
        found = splitter.feed(bytes(self.sent[port]))
        self.sent[port].clear()
        assert not splitter.dropped
        return found

    def ask(self, port: str, command: int, data: bytes = b"") -> tuple[int, bytes]:
        self.frames(port)
        self.hosts[port].receive(frame(command, data))
        return self.frames(port)[0]

    def speed(self, rpm: float) -> float:
        """Command a speed as DUNE does, with its inverted rotation and 12 pole pairs; return the measured one."""
        reference = -int(rpm * 12 / 100)
        for _ in range(2):
            command, data = self.ask("motor", 2, bytes((reference >> 8 & 3 | 3 << 6, reference & 0xFF)))
            assert command == 2
            self.run(0.04)
        return -float(struct.unpack(">hhh", data)[2]) * 10.0 / 12.0

    def angle(self, servo: int, radians: float) -> None:
        """Command an angle as DUNE does, with the directions, ends and resolution that it reads."""
        direction = (-1, 1, -1, 1)[servo]
        resolution = self.ask("servos", 2)[1][6]
        effective = self.ask("servos", 4)[1]
        low, high = -struct.unpack_from("<4H", effective, 18)[servo], struct.unpack_from("<4H", effective, 26)[servo]
        part = round((math.degrees(radians * direction) - low) * resolution / (high - low))
        assert self.ask("servos", 9, bytes((servo, part))) == (9, bytes((servo, part)))
        self.run(0.04)


def test_vectors() -> None:
    """The request for the version, and the actuation of DUNE's driver; both were computed by hand."""
    assert frame(0).hex() == "2a0100ab" and frame(2, b"\xc0\x64").hex() == "2a0302c0648f"


@given(st.lists(st.tuples(st.integers(0, 0xDF), st.binary(max_size=60))), st.data())
def test_frames_in_pieces(frames: list[tuple[int, bytes]], data: st.DataObject) -> None:
    splitter, stream, found = LuclSplitter(), b"".join(frame(c, d) for c, d in frames), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == frames and splitter.dropped == 0


def test_the_start_of_dunes_motor_driver() -> None:
    """Version, then each configuration area is read, written and read back."""
    bench = Bench()
    assert bench.ask("motor", 0) == (0, bytes((1, 2, 0))) and bench.ask("motor", 0xFE) == (0xFE, b"BROOM")
    for area, size in ((3, 6), (4, 9), (5, 9), (6, 9)):
        command, old = bench.ask("motor", area)
        assert (command, len(old)) == (area, size)
        new = bytes(range(size))
        assert bench.ask("motor", area, new) == bench.ask("motor", area) == (area, new)
        assert bench.ask("motor", area, new[:-1])[0] == 0xE7


def test_the_force_grows_with_the_square_of_the_speed() -> None:
    bench = Bench()
    assert bench.speed(750.0) == pytest.approx(750.0, abs=9.0)
    assert bench.broker.commands["propeller"] == pytest.approx(12.0 / 4.0, rel=0.03)
    assert bench.speed(-750.0) == pytest.approx(-750.0, abs=9.0)
    assert bench.broker.commands["propeller"] == pytest.approx(-6.0 / 4.0, rel=0.03)
    assert bench.speed(1900.0) == pytest.approx(1500.0, abs=1.0), "the force has its limit"
    state = bench.ask("motor", 1, b"\0")[1]
    assert len(state) == 8 and state[:4] == bytes((0, 25, 25, 25)) and struct.unpack(">h", state[6:])[0] > 200


def test_the_configured_limit_of_the_speed_applies() -> None:
    bench = Bench()
    bench.ask("motor", 6, struct.pack("<HBhhh", 1200, 10, 0, 0, 0))
    assert bench.speed(1400.0) == pytest.approx(1000.0, abs=9.0)


def test_voltage_and_no_control() -> None:
    bench = Bench(inverted=False)
    bench.ask("motor", 2, bytes((0x40 | 1, 0xFF)))  # 511 of 511
    bench.run(0.04)
    assert bench.broker.commands["propeller"] == pytest.approx(12.0)
    volts, amperes, electrical = struct.unpack(">hhh", bench.ask("motor", 2, bytes((0, 0)))[1])
    assert (volts * 0.125, amperes / 32.0, electrical * 10 / 12) == pytest.approx((24.0, 5.0, 1500.0))
    bench.run(0.04)
    assert bench.broker.commands["propeller"] == 0.0
    assert bench.ask("motor", 2, bytes((0x80, 100)))[0] == 0xE7, "current control"


def test_the_watchdog_stops_the_motor_but_not_the_servos() -> None:
    bench = Bench()
    bench.ask("motor", 3, bytes((0, 10, 85, 75, 100, 50)))
    bench.angle(3, 0.2)
    bench.speed(1000.0)
    bench.run(0.9)
    assert bench.broker.commands["propeller"] > 5.0
    bench.run(0.2)
    assert bench.broker.commands["propeller"] == 0.0
    assert bench.broker.commands["rudder-top"] == pytest.approx(0.2, abs=0.004)


def test_a_shaft_is_commanded_in_revolutions() -> None:
    propeller = Propeller(ActuatorDescription(0, "propeller", 0, "1/s", -20.0, 20.0), 1500.0)
    assert propeller.command(600.0) == 10.0 and propeller.command(-3000.0) == -20.0 and propeller.rpm(10.0) == 600.0


@pytest.mark.parametrize(
    ("servo", "name", "sign"), [(0, "rudder-bottom", 1), (1, "plane-port", -1), (2, "plane-starboard", -1), (3, "rudder-top", 1)]
)  # fmt: skip
def test_fins_move_as_imc_defines_them(servo: int, name: str, sign: int) -> None:
    """The same signs as those of the bridge to DUNE, after the directions in the configuration of a LAUV."""
    bench = Bench()
    bench.angle(servo, 0.3)
    assert bench.broker.commands[name] == pytest.approx(0.3 * sign, abs=0.004)
    assert {n for n in bench.broker.commands if n != "propeller"} == {name}, "the others were not commanded"
    state = bench.ask("servos", 1)[1]
    degrees = struct.unpack_from("<H", state, 12 * servo + 4)[0] - 45
    assert degrees == round(math.degrees(0.3)) * (-1, 1, -1, 1)[servo]
    bench.angle(servo, -0.7)
    assert bench.broker.commands[name] == pytest.approx(-0.4 * sign), "the limit of the fin"


def test_states_of_the_servos_at_a_rate() -> None:
    bench = Bench()
    assert bench.ask("servos", 12) == (12, b"\0") and bench.ask("servos", 11) == (11, b"\xf0")
    command, state = bench.ask("servos", 1, b"\x0a")
    assert command == 1 and len(state) == 48
    bench.run(2.0)
    assert [c for c, _ in bench.frames("servos")] == [1] * 20
    bench.ask("servos", 1, b"\0")
    bench.run(2.0)
    assert not bench.frames("servos") and not bench.frames("motor")
    assert bench.ask("servos", 1, b"\x03")[0] == 0xE7, "a rate that does not exist"
    bench.ask("servos", 1, b"\x0a")
    bench.hosts["servos"].close()
    bench.run(1.0)
    assert not bench.frames("servos")


def test_invalid_commands_are_answered_with_errors() -> None:
    bench = Bench()
    assert bench.ask("motor", 0x20) == (0xE0, b"") and bench.ask("servos", 5) == (0xE0, b"")
    assert bench.ask("servos", 9, b"\x04\x80") == (0xE7, b"") and bench.ask("motor", 2, b"\xc0") == (0xE7, b"")
    assert bench.device.errors == 4
    bench.hosts["motor"].receive(frame(0)[:-1] + b"\x80")
    assert bench.frames("motor") == [(0xE5, b"")] and bench.hosts["motor"].errors == 1
    assert bench.ask("motor", 0)[0] == 0 and bench.ask("motor", 0xFF) == (0xFF, b"")


def test_only_a_pilot_with_these_actuators_can_use_it() -> None:
    with pytest.raises(BrokerError, match="add --pilot"):
        LauvActuators(Broker(Role.INSTRUMENT), 1500.0, inverted=True)  # type: ignore[arg-type]
    with pytest.raises(BrokerError, match="'lauv' has no actuator 'rudder-bottom'; it has propeller"):
        LauvActuators(Broker(actuators=ACTUATORS[:1]), 1500.0, inverted=True)  # type: ignore[arg-type]


def test_it_drives_a_vehicle(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    """The motor turns in a real server, and the states of the servos arrive."""
    fleet = '<fleet><vehicle name="boat" model="lauv" position="0 0 10 m" client="required"/></fleet>'
    server = serve(config(f'<time step="10 ms"/><world><bed depth="50 m"/></world>{fleet}').path, "--speed", "5")
    ports = device(processes, server, "lauv-actuators", "--motor", "tcp:0", "--servos", "tcp:0").split(", ")
    server.send("start")
    motor, servos = (socket.create_connection(("127.0.0.1", int(p.rpartition(":")[2])), 20.0) for p in ports)
    servos.sendall(frame(9, b"\x00\xc0") + frame(1, b"\x0a"))
    splitter, states = LuclSplitter(), []
    rpm = 0.0
    answers = LuclSplitter()
    while len(states) < 30:
        motor.sendall(frame(2, bytes((3 << 6 | 3, 0x88))))  # -120: 1000 1/min ahead
        for command, data in answers.feed(motor.recv(4096)):
            assert command == 2
            rpm = -struct.unpack(">hhh", data)[2] * 10.0 / 12.0
        states += [data for command, data in splitter.feed(servos.recv(4096)) if command == 1]
    assert rpm == pytest.approx(1000.0, abs=10.0)
    fin = struct.unpack_from("<H", states[-1], 4)[0] - 45
    assert fin == round(90 * 0xC0 / 255 - 45), "the servo is within the limit of the fin"
    for s in (motor, servos):
        s.close()
