"""Output of actuators when a body enters: the closed form of the first-order lag from y(t0) (Simu2VITA, Sensors 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.lab import Lab
from wavesim_world.config import LoadedConfig

LAG = 0.1754  #: time constant of VITA1's thrusters in s; their limits are -39.91 N and 51.48 N
MODEL = """<time step="{step}"/><world><bed depth="900 m"/></world><models><model name="m" type="underwater">
<box length="1 m" width="1 m" height="1 m"/><mass value="1025 kg"/><inertia gyration="0.4 0.4 0.4 m"/><added-mass diagonal="0 0 0 0 0 0"/>
<linear-drag diagonal="90 90 90 90 90 90"/>{actuators}</model></models>"""
THRUSTER = (
    '<thruster name="{name}" position="0 0 0 m" direction="1 0 0" law="force" minimum="-39.91" maximum="51.48"'
    ' lag="0.1754 s" {more}/>'
)


def world(actuators: str, step: str = "20 ms") -> str:
    return MODEL.format(step=step, actuators=actuators)


def outputs(sim: Simulation, row: int) -> list[float]:
    """The outputs of the actuators, in the order of the model."""
    return [float(v) for v in sim.results.motion()[1][row]["actual"][: len(sim.occupants[row].actuators)]]


def closed_form(y: float, targets: list[float], seconds: float) -> list[float]:
    """The outputs after each interval with a constant target, from the output y before the first."""
    found = []
    for target in targets:
        y = math.exp(-seconds / LAG) * y + (1.0 - math.exp(-seconds / LAG)) * min(max(target, -39.91), 51.48)
        found.append(y)
    return found


@pytest.mark.parametrize("initial", [20.0, -39.91, 51.48, 0.0])
@pytest.mark.parametrize("step", ["20 ms", "2.5 ms"])
def test_the_lag_from_the_initial_output(config: Callable[..., LoadedConfig], initial: float, step: str) -> None:
    """y(t) = exp(-(t - t0)/T) y(t0) + (1 - exp(-(t - t0)/T)) u, for a series of inputs of which some are saturated."""
    sim = Simulation(config(world(THRUSTER.format(name="t", more=f'initial="{initial}"'), step)))
    row = sim.enter("b", "m", (0.0, 0.0, 50.0))
    assert outputs(sim, row) == [initial], "before the first tick"
    assert sim.results.effort()[row]["actuators"][0] == pytest.approx(initial)
    targets = [30.0, 500.0, -500.0, 0.0, -7.5]
    for target, expected in zip(targets, closed_form(initial, targets, 0.1), strict=True):
        sim.command(row, [target])
        sim.advance(round(1e8) // sim.step_ns)
        assert outputs(sim, row) == pytest.approx([expected], rel=1e-12, abs=1e-12)


def test_without_a_command_the_output_decays(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(world(THRUSTER.format(name="t", more='initial="20"'))))
    row = sim.enter("b", "m", (0.0, 0.0, 50.0))
    sim.advance(10)
    assert outputs(sim, row) == pytest.approx([20.0 * math.exp(-0.2 / LAG)], rel=1e-12)
    slow = 90.0 / 1025.0  # m v' = 20 exp(-t/T) - d v
    speed = 20.0 / 1025.0 * (math.exp(-0.2 / LAG) - math.exp(-0.2 * slow)) / (slow - 1.0 / LAG)
    assert sim.state()["v_WB_B"][row][0] == pytest.approx(speed, rel=1e-5)


def test_the_output_is_kept_until_the_start_time(config: Callable[..., LoadedConfig]) -> None:
    """With a start time t1, the closed form begins at t1 with the initial output, however early the command came."""
    more = 'initial="-10" start="2 s"'
    sim = Simulation(
        config(world(THRUSTER.format(name="t", more=more) + THRUSTER.format(name="u", more='initial="5"')))
    )
    row = sim.enter("b", "m", (0.0, 0.0, 50.0))
    sim.command(row, [30.0, 30.0])
    sim.advance(50)
    assert outputs(sim, row) == pytest.approx([-10.0, *closed_form(5.0, [30.0], 1.0)], rel=1e-12)
    sim.advance(50)
    assert outputs(sim, row)[0] == -10.0
    sim.advance(5)
    assert outputs(sim, row)[0] == pytest.approx(closed_form(-10.0, [30.0], 0.1)[0], rel=1e-12)


ALL = (
    THRUSTER.format(name="t", more='initial="3" feedback="1 s"')[:-2]
    + '><swivel lag="1 s" initial="30 deg"/><deflector lag="2 s" initial="-0.5"/></thruster>'
    + THRUSTER.format(name="u", more="")
    + '<fin name="f" area="0.1 m2" lift_slope="3" limit="20 deg" rate="5 deg/s" initial="-10 deg"/>'
    + '<ballast name="b" position="0 0 0 m" minimum="-1 kg" maximum="2 kg" rate="0.5" initial="1.5 kg"/>'
)


def test_each_kind_of_actuator(config: Callable[..., LoadedConfig]) -> None:
    """In the order of the model: thrusters, fin, angle, deflector, tank; lags, and rates towards the command 0 (1 for a
    deflector)."""
    sim = Simulation(config(world(ALL)))
    row = sim.enter("b", "m", (0.0, 0.0, 50.0))
    turn = math.radians(30.0)
    assert outputs(sim, row) == pytest.approx([3.0, 0.0, math.radians(-10.0), turn, -0.5, 1.5])
    assert sim.results.motion()[1][row]["feedback"][0] == 3.0
    along, across = sim.results.effort()[row]["actuators"][:2]
    assert math.hypot(along, across) > 0.0 and along != pytest.approx(3.0), "turned, and scaled by the deflector"
    sim.advance(50)
    expected = [3.0 * math.exp(-1.0 / LAG), 0.0, math.radians(-5.0), turn * math.exp(-1.0)]
    expected += [1.0 - 1.5 * math.exp(-0.5), 1.0]
    assert outputs(sim, row) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_a_reset_restores_the_output(config: Callable[..., LoadedConfig]) -> None:
    body = '<fleet><vehicle name="b" model="m" position="0 0 50 m"/></fleet>'
    lab = Lab(config(world(ALL) + body))
    lab.enter("late", "m", (50.0, 0.0, 50.0))
    first = [outputs(lab, row) for row in lab.rows]
    lab.command(0, [50.0, 50.0, 0.1])
    lab.run(3.0)
    track = lab.state()["p_WB_W"].tobytes()
    assert [outputs(lab, row) for row in lab.rows] != first
    lab.reset()
    assert [outputs(lab, row) for row in lab.rows] == first and first[0] == first[1]
    lab.command(0, [50.0, 50.0, 0.1])
    lab.run(3.0)
    assert lab.state()["p_WB_W"].tobytes() == track


def test_steady_motion_replaces_the_initial_output(config: Callable[..., LoadedConfig]) -> None:
    thruster = THRUSTER.format(name="t", more='initial="-10"')
    body = '<fleet><vehicle name="b" model="m" position="0 0 50 m" speed="0.3 m/s"/></fleet>'
    sim = Simulation(config(world(thruster) + body))
    sim.enter_residents()
    assert outputs(sim, 0) == pytest.approx([90.0 * 0.3], rel=1e-6)


@pytest.mark.parametrize(
    ("actuators", "message"),
    [
        (THRUSTER.format(name="t", more='initial="51.5"'), "thruster 't': `initial` is 51.5; use -39.91 to 51.48 N"),
        (
            THRUSTER.format(name="t", more='initial="9" motor="1 0.1"').replace("51.48", "60"),
            "thruster 't': `initial` is 9; use -4.991 to 7 N",
        ),
        (
            THRUSTER.format(name="t", more="")[:-2] + '><swivel maximum="90 deg" initial="100 deg"/></thruster>',
            "the swivel of thruster 't': `initial` is 1.74533; use -3.14159 to 1.5708 rad",
        ),
        (
            THRUSTER.format(name="t", more="")[:-2] + '><deflector minimum="0" initial="-0.1"/></thruster>',
            "the deflector of thruster 't': `initial` is -0.1; use 0 to 1",
        ),
        (ALL.replace('"-10 deg"', '"-21 deg"'), "fin 'f': `initial` is -0.366519; use -0.349066 to 0.349066 rad"),
        (ALL.replace('"1.5 kg"', '"2.5 kg"'), "ballast 'b': `initial` is 2.5; use -1 to 2 kg"),
        (
            '<actuator name="sail" type="sail" minimum="0" maximum="1" initial="1.1"/>',
            "actuator 'sail': `initial` is 1.1; use 0 to 1",
        ),
    ],
    ids=["thruster", "motor", "swivel", "deflector", "fin", "ballast", "other"],
)
def test_an_output_beyond_the_limits_is_refused(
    config: Callable[..., LoadedConfig], actuators: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        config(world(actuators))
    assert message in str(caught.value)


def test_a_zero_outside_the_limits_is_the_default(config: Callable[..., LoadedConfig]) -> None:
    """A thruster whose range excludes 0 still begins at 0, as before."""
    loaded: Any = config(world(THRUSTER.format(name="t", more="").replace("-39.91", "10")))
    sim = Simulation(loaded)
    assert outputs(sim, sim.enter("b", "m", (0.0, 0.0, 50.0))) == [0.0]
    assert np.isfinite(sim.state()["p_WB_W"]).all()
