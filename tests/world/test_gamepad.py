"""A gamepad drives a body: recorded events of a pseudo device, through the command and a real server, to the motion."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import Server
from tests.nursery import CLI
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import ConfigError, InvalidArgument
from wavesim_sdk.gamepad import Gamepad, with_dead_zone
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_world.cli_drive import drive
from wavesim_world.config import LoadedConfig, library
from wavesim_world.manual_axes import NEUTRAL, actuator_commands, allocated_commands, default_wrench
from wavesim_world.mixing import Mixer

SEA = """<time step="20 ms"/><log effort="yes"/><world><bed depth="100 m"/></world><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional"/>
<vehicle name="hull" model="lauv" position="0 50 10 m"/></fleet>"""


def js(*events: tuple[int, int, int]) -> bytes:
    """Events of the joystick API: (type, number, value)."""
    return b"".join(
        struct.pack("=IhBB", 1000 + k, value, kind, number) for k, (kind, number, value) in enumerate(events)
    )


def evdev(*events: tuple[int, int, int]) -> bytes:
    """Input events of Linux: (type, code, value), each followed by its report."""
    return b"".join(
        struct.pack("@llHHi", 1, k, *event) + struct.pack("@llHHi", 1, k, 0, 0, 0) for k, event in enumerate(events)
    )


class Device:
    """Pseudo device: a pipe with the records of a gamepad."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd: int | None = os.open(path, os.O_RDWR)  # both ends: opening does not wait for a reader or a writer

    def play(self, data: bytes) -> None:
        assert self._fd is not None
        os.write(self._fd, data)

    def plug_in(self) -> None:
        """Leave only the writing end, so that the reader notices when the device is unplugged."""
        assert self._fd is not None
        writer = os.open(self.path, os.O_WRONLY)
        os.close(self._fd)
        self._fd = writer

    def unplug(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Callable[[str], Device]]:
    found: list[Device] = []

    def make(name: str) -> Device:
        found.append(Device(tmp_path / name))
        return found[-1]

    yield make
    for d in found:
        d.unplug()


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.005)


# ------------------------------------------------------------------ devices


def test_events_of_the_joystick_api(device: Callable[[str], Device]) -> None:
    d = device("js0")
    pad = Gamepad(d.path)
    d.plug_in()
    data = js((0x82, 0, 0), (2, 1, -32767), (2, 0, 16384), (0x81, 3, 0), (1, 4, 1), (2, 99, 5))
    for part in (data[:5], data[5:11], data[11:]):  # records arrive in pieces
        d.play(part)
    until(lambda: 4 in pad.buttons)
    assert (pad.axis(1), pad.axis(7), pad.buttons) == (-1.0, 0.0, {4}) and abs(pad.axis(0) - 0.5) < 1e-4
    d.play(js((2, 1, -32768), (1, 4, 0)))
    until(lambda: not pad.buttons)
    assert pad.axis(1) == -1.0
    d.unplug()
    until(lambda: pad.is_lost)
    assert pad.axis(1) == 0.0, "neutral"


def test_input_events(device: Callable[[str], Device]) -> None:
    d = device("event7")
    pad = Gamepad(d.path)
    d.plug_in()
    d.play(evdev((3, 1, -32767), (3, 4, 12000), (2, 0, 5), (1, 0x130, 1)))
    until(lambda: 0x130 in pad.buttons)
    assert pad.axis(1) == -1.0 and abs(pad.axis(4) - 12000 / 32767) < 1e-4
    d.play(evdev((0, 3, 0)))  # Linux dropped events, perhaps the release of the button
    until(lambda: not pad.buttons)
    assert pad.axis(1) == 0.0
    with pytest.raises(ConfigError, match="cannot open the gamepad: No such file"):
        Gamepad(d.path.parent / "js9")
    assert [with_dead_zone(v, 0.1) for v in (0.05, -0.1, 0.11, -2.0)] == [0.0, 0.0, 0.11, -1.0]


# ------------------------------------------------------------------ mappings


def test_each_actuator_has_its_axis() -> None:
    model = library()["jolner"]
    rest = allocated_commands(Mixer(model), NEUTRAL)
    port, starboard = (t.name for t in model.thruster)
    found = actuator_commands(model, rest, {port: 0.5, starboard: -1.0})
    assert found == {**rest, port: 0.5 * model.thruster[0].maximum, starboard: model.thruster[1].minimum}
    force = default_wrench(model)
    assert force[0] == pytest.approx(0.2 * model.mass.value) and force[3] > 0.0


def test_a_push_ends_by_itself(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(SEA))
    sim.enter_residents()
    row = sim.row_of("hull")
    assert row is not None

    def force() -> float:
        return float(sim.fleet.body(row)[B.EXTERNAL_WRENCH])

    sim.push(row, (10.0, 0.0, 0.0), duration=0.1)
    sim.advance(5)  # five ticks of 20 ms, in one call
    moved = float(sim.fleet.body(row)[B.NU])
    assert force() == 10.0 and moved > 0.0
    sim.advance(1)
    assert force() == 0.0, "the sixth tick has no force"
    other = Simulation(config(SEA))
    other.enter_residents()
    other.push(row, (10.0, 0.0, 0.0))
    other.advance(5)
    assert float(other.fleet.body(row)[B.NU]) == moved
    sim.push(row, (10.0, 0.0, 0.0), duration=0.1)
    sim.push(row, (20.0, 0.0, 0.0))  # a push without a duration replaces it
    sim.advance(50)
    assert force() == 20.0
    sim.push(row, (30.0, 0.0, 0.0), duration=0.05)  # two and a half ticks
    sim.advance(3)
    assert force() == 30.0
    sim.advance(1)
    assert force() == 0.0
    for wrong in (-1.0, float("nan")):
        with pytest.raises(InvalidArgument):
            sim.push(row, (1.0, 0.0, 0.0), duration=wrong)


# ------------------------------------------------------------------ the command


class Driver:
    """`wavesim drive` in a process."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*CLI, "drive", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.first = self.process.stdout.readline()

    def end(self, code: int | None = None) -> str:
        if code is None:
            self.process.kill()
        _, said = self.process.communicate(timeout=30)
        assert code is None or self.process.returncode == code, said
        return said


@pytest.fixture
def boat(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str, tmp_path: Path
) -> Iterator[tuple[Server, SharedState]]:
    server = serve(config(SEA).path, "--log", str(tmp_path / "run.mcap"))
    server.send("start")
    yield server, SharedState(name)


@pytest.mark.system
@pytest.mark.timeout(180)
def test_sticks_push_the_hull_until_the_client_dies(
    boat: tuple[Server, SharedState], device: Callable[[str], Device], name: str
) -> None:
    """The document's second program: stick to surge and sway force and yaw moment, here with heave."""
    server, shared = boat
    row = shared.row("hull")

    def pushed() -> Any:
        return shared.snapshot("effort").tables["effort"]["external"][row]

    d = device("js0")
    driver = Driver(
        "hull", "--gamepad", str(d.path), "--mapping", "force", "--scale", "surge=40N", "--scale", "yaw=5", "-s", name
    )
    assert "surge axis -1" in driver.first, driver.end()
    d.plug_in()
    d.play(js((2, 1, -32767), (2, 0, 16384)))
    until(lambda: np.allclose(pushed(), [40, 0, 0, 0, 0, 2.5], atol=1e-3))
    d.play(js((2, 1, 0), (2, 0, 0)))
    until(lambda: not pushed().any())
    d.play(js((2, 3, 32767), (2, 4, -32767)))
    sway, heave = default_wrench(library()["lauv"])[1:3]
    until(lambda: np.allclose(pushed(), [0, sway, -heave, 0, 0, 0], atol=1e-3))
    d.play(js((2, 3, 1500)))  # inside the dead zone
    until(lambda: np.allclose(pushed(), [0, 0, -heave, 0, 0, 0], atol=1e-3))
    driver.process.send_signal(signal.SIGKILL)  # nothing can be sent any more
    driver.end()
    until(lambda: not pushed().any(), 10.0)
    assert server.status()["state"] == "running"


@pytest.mark.system
@pytest.mark.timeout(180)
def test_sticks_drive_each_thruster_until_the_gamepad_is_unplugged(
    boat: tuple[Server, SharedState], device: Callable[[str], Device], name: str
) -> None:
    """The document's first program: the command of each thruster follows the vertical position of a stick."""
    server, shared = boat

    def commands() -> Any:
        return shared.snapshot("actuation").tables["actuation"]["command"][shared.row("boat")][:2]

    d = device("event3")
    driver = Driver("boat", "--gamepad", str(d.path), "--mapping", "actuators", "--hold", "304", "-s", name)
    assert "axis -1" in driver.first and "axis -4" in driver.first, driver.end()
    d.plug_in()
    port, starboard = library()["jolner"].thruster
    until(lambda: b"boat" in shared.vehicles["identity"].snapshot()[1]["name"])
    d.play(evdev((3, 1, -32767), (3, 4, 16384)))
    d.play(evdev((1, 304, 1)))
    until(lambda: np.allclose(commands(), [port.maximum, 0.5 * starboard.minimum], rtol=1e-3))
    d.play(evdev((1, 304, 0)))  # the button is released
    until(lambda: not commands().any())
    d.play(evdev((1, 304, 1)))
    until(lambda: commands().all())
    before = commands().copy()
    d.unplug()
    said = driver.end(1)
    assert "was disconnected" in said and "Traceback" not in said and before.all()
    # the driver has left at neutral: the body has left with it
    server.wait(lambda status: not status["clients"])


@pytest.mark.system
@pytest.mark.timeout(120)
def test_mistakes_of_the_command(boat: tuple[Server, SharedState], tmp_path: Path, name: str) -> None:
    nothing = str(tmp_path / "js0")
    for arguments, message in (
        (("boat", "--gamepad", nothing), "cannot open the gamepad"),
        (("boot", "--gamepad", nothing), "did you mean 'boat'"),
        (("boat", "--gamepad", nothing, "--axis", "surge=x"), "invalid axis 'x'"),
        (("boat", "--gamepad", nothing, "--axis", "surg=1"), "'surg' cannot be mapped"),
        (("boat", "--gamepad", nothing, "--scale", "surge=2"), "invalid scale 2"),
        (("boat", "--gamepad", nothing, "--mapping", "force", "--scale", "surge=2 kg"), "2 kg"),
        (("boat", "--gamepad", nothing, "--dead-zone", "2"), "invalid dead zone 2"),
    ):
        done = CliRunner().invoke(drive, [*arguments, "-s", name])
        assert isinstance(done.exception, ConfigError) or done.exit_code == 2
        assert message in done.output + str(done.exception)
