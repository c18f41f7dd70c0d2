"""ArduPilot parameter files for our vehicles: the shipped files, read by a stand-in that measures and holds depth below
12 m as ArduSub does.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.bridges.autopilot import DEFAULTS, SUB_PARM, VECTORED, VECTORED_6DOF, State, reported_depth, rov, shipped
from tests.conftest import wavesim
from wavesim_bridges.ardupilot import FRAMES, parameter_files, parameters, parse_servo_frame, state_message
from wavesim_bridges.servo_outputs import Mixer
from wavesim_bridges.vehicle_motion import motion_of
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_sdk.wire.state import Effort
from wavesim_sdk.wire.state import State as WireState
from wavesim_server import Simulation
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, library

DEPTH = 16.0
ROVS = {
    "bluerov2": "vectored",
    "bluerov2-vectored": "vectored",
    "bluerov2-heavy": "vectored_6dof",
    "vita1": "vectored_6dof",
}
BOATS = {"otter": "skid", "jolner": "skid", "wam-v": "skid", "cybership2": "boat"}
MOTORS = {"vectored": VECTORED, "vectored_6dof": VECTORED_6DOF}


class Flight(NamedTuple):
    """The last seconds of a dive."""

    true: np.ndarray[tuple[int], np.dtype[np.float64]]  #: depth, m
    reported: np.ndarray[tuple[int], np.dtype[np.float64]]
    thrust: np.ndarray[tuple[int, int], np.dtype[np.float64]]  #: of the vertical thrusters, N


def with_drag_of(model: str, other: str) -> str:
    """<models> of a configuration: ``model`` as "rov", with the drag that ``other`` has."""
    root = ElementTree.parse(str(files("wavesim_world") / "models" / "rov.xml")).getroot()
    rov, source = (next(m for m in root if m.get("name") == n) for n in (model, other))
    rov.set("name", "rov")
    for tag in ("linear-drag", "quadratic-drag"):
        mine, theirs = rov.find(tag), source.find(tag)
        assert mine is not None and theirs is not None
        mine.set("diagonal", theirs.attrib["diagonal"])
    return f"<models>{ElementTree.tostring(rov, encoding='unicode')}</models>"


def dive(
    config: Callable[..., LoadedConfig], model: str, parm: Mapping[str, float], drag: str = "", seconds: float = 32.0
) -> Flight:
    """Dive from 2 m to ``DEPTH``, through the bridge's bytes both ways, 400 times a second. Returns the last six seconds. ``drag``
    names another model whose drag the vehicle has."""
    models = with_drag_of(model, drag) if drag else ""
    sim = Simulation(config(f'<time step="2.5 ms"/><world><bed depth="40 m"/></world>{models}'))
    row = sim.enter("rov", "rov" if drag else model, (0.0, 0.0, 2.0), (0.0, 0.0, 0.0))
    own = actuators_of(library()[model])
    descriptions = [ActuatorDescription(k, a.name, a.kind, a.unit, a.minimum, a.maximum) for k, a in enumerate(own)]
    vertical = [k for k, a in enumerate(own) if a.name.startswith("vertical")]
    mixer = Mixer(FRAMES[ROVS[model]], descriptions)
    pilot = rov(MOTORS[ROVS[model]], DEPTH, parm=parm)
    true, thrust = [], []
    for k in range(round(400 * seconds)):
        state, effort = sim.state()[row], sim.results.effort([row])[row]
        numbers = np.concatenate([state[n] for n in ("p_WB_W", "q_WB", "v_WB_B", "w_WB_B", "v_FB_B")])
        motion = motion_of(
            WireState(
                k, sim.time_ns, 1, numbers.tolist(), effort=Effort.from_numbers([*effort["acceleration"], *[0.0] * 42])
            )
        )
        assert motion is not None
        outputs = pilot(State(state_message(motion).decode()))
        pwm = [round(1500 + 400 * u) for u in outputs]
        data = struct.pack("<HHI16H", 18458, 400, k, *pwm, *[0] * (16 - len(pwm)))
        sim.command(row, mixer.commands(parse_servo_frame(data).outputs()))
        sim.advance(1)
        true.append(float(state["p_WB_W"][2]))
        thrust.append(sim.actuation()[row]["actual"][vertical])
    last = np.array(true[-2400:])
    return Flight(last, np.array([reported_depth(z, parm) for z in last]), np.array(thrust[-2400:]))


@pytest.mark.compiled
@pytest.mark.parametrize("model", sorted(ROVS))
def test_below_twelve_metres_by_the_shipped_parameters(config: Callable[..., LoadedConfig], model: str) -> None:
    """The reported depth is the true one, and the vertical thrusters are steady."""
    flight = dive(config, model, shipped(model))
    assert np.abs(flight.reported - flight.true).max() < 0.02
    assert np.abs(flight.true - DEPTH).max() < 0.2
    assert np.ptp(flight.thrust, axis=0).max() < 5.0, "N"


@pytest.mark.compiled
@pytest.mark.parametrize(("drag", "range_"), [("", 10.0), ("bluerov2-marinegym", 40.0)])
def test_without_our_parameters_the_same_flight_is_wrong(
    config: Callable[..., LoadedConfig], drag: str, range_: float
) -> None:
    """With `sub.parm` alone a BlueROV2 reports 16 m where it is 0.39 m higher, and its thrusters swing without end. The drag of
    the hull limits the swing. ArduSub itself, flown at 16 m: 17 N with the drag of our model, 52 N with that of Wu (2018)."""
    flight = dive(config, "bluerov2-vectored", SUB_PARM, drag)
    assert (flight.reported - flight.true).mean() == pytest.approx(0.0247 * flight.true.mean(), abs=0.01)
    assert np.abs(flight.true - DEPTH).max() > 0.3
    swing = np.ptp(flight.thrust, axis=0).min()
    assert swing > range_, "N"
    first, second = (np.ptp(part, axis=0).min() for part in np.split(flight.thrust, 2))
    assert second > 0.9 * first, "it does not die away"
    ours = dive(config, "bluerov2-vectored", shipped("bluerov2-vectored"), drag)
    assert swing > 20.0 * np.ptp(ours.thrust, axis=0).max()


@pytest.mark.parametrize(("parm", "ratio"), [(DEFAULTS, 1.024 * 9.80665 / 9.8), (shipped("bluerov2"), 9.80665 / 9.8)])
def test_what_a_barometer_makes_of_a_depth(parm: Mapping[str, float], ratio: float) -> None:
    assert reported_depth(100.0, parm) == pytest.approx(100.0 * ratio, rel=1e-12)


def as_ardupilot_reads(path: Path) -> dict[str, float]:
    """NAME and VALUE, apart by blanks, commas or =; a line that begins with # is none. What follows on a line is passed over,
    and so is a name of more than 16 letters."""
    found = {}
    for line in path.read_text().splitlines():
        words = line.replace(",", " ").replace("=", " ").split()
        if line[:1] != "#" and len(words) > 1 and len(words[0]) <= 16:
            found[words[0]] = float(words[1])
    return found


def test_every_vehicle_has_its_file() -> None:
    """One reading of them, ours and ArduPilot's; frames and outputs are those of the bridge."""
    files = parameter_files()
    assert set(files) == {*ROVS, *BOATS, "unattended-sub", "unattended-rover", "acoustic-fixes", "doppler-log"}
    for name, path in files.items():
        found = as_ardupilot_reads(path)
        assert found and found == {n: float(v) for n, v, _ in parameters(path)}
        assert len(found) == len(parameters(path)), "a name twice"
        assert all(why for _, _, why in parameters(path))
        if name in {**ROVS, **BOATS}:
            frame_ = {**ROVS, **BOATS}[name]
            assert f"--frame {frame_}" in path.read_text().splitlines()[0].split(";")[1]
            assert {o.actuator for o in FRAMES[frame_].values()} <= {a.name for a in actuators_of(library()[name])}
    for name, frame_ in ROVS.items():
        parm = shipped(name)
        assert parm["FRAME_CONFIG"] == {"vectored": 1, "vectored_6dof": 2}[frame_]
        assert frame_ == "vectored" or parm["SERVO8_FUNCTION"] == 40
        gains = as_ardupilot_reads(files[name])
        for gain in ("P", "I", "FF"):
            assert gains[f"PSC_D_ACC_{gain}"] == pytest.approx(0.1 * gains[f"PSC_ACCZ_{gain}"]), (
                "the newer name, in units ten times as large"
            )
    for name, frame_ in BOATS.items():
        found = as_ardupilot_reads(files[name])
        functions = {"skid": (73, 74), "boat": (26, 70)}[frame_]
        assert (found["SERVO1_FUNCTION"], found["SERVO3_FUNCTION"]) == functions and found["FRAME_CLASS"] == 2
        assert all((found[f"SERVO{k}_MIN"], found[f"SERVO{k}_MAX"]) == (1100, 1900) for k in (1, 3))


def test_the_command_prints_the_paths() -> None:
    """As `--defaults` takes them, without a vehicle or a server."""
    done = wavesim("bridge", "ardupilot", "--parm", "otter,unattended-rover")
    files = parameter_files()
    assert done.stdout == f"{files['otter']},{files['unattended-rover']}\n" and done.returncode == 0
    wrong = wavesim("bridge", "ardupilot", "--parm", "oter")
    assert (
        wrong.returncode == 2 and "there are no ArduPilot parameters for 'oter'; did you mean 'otter'?" in wrong.stderr
    )


def test_the_page_names_them_in_its_first_commands(root: Path) -> None:
    """Its table is made of the files by docs/generate.py, which CI checks."""
    page = (root / "docs/bridges/ardupilot.md").read_text()
    first = page.split("```")[1]
    assert "--defaults sub.parm,$(wavesim bridge ardupilot --parm bluerov2-vectored)" in first
    table = page.split("<!-- parameters:begin -->")[1].split("<!-- parameters:end -->")[0]
    for path in parameter_files().values():
        assert all(f"`{name} {value}`" in table for name, value, _ in parameters(path))
