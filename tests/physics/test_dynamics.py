"""The dynamics kernel against a slow twin, theory, order of convergence and invariants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.physics.twin import Twin
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.sizes import SLOTS
from wavesim_world.config import LoadedConfig, library

BARE = """<models><model name="bare" type="underwater"><cylinder length="2 m" radius="0.2 m"/><mass value="250 kg" centre="0.1 0.02 0.03 m"/>
<inertia xx="5" yy="80" zz="81" xz="0.5"/><buoyancy volume="{volume} m3" centre="{rb} m"/>
<added-mass>12 0 0 0 1 0  0 240 0 -2 0 6  0 0 238 0 -5 0  0 -2 0 3 0 0  1 0 -5 0 70 0  0 6 0 0 0 71</added-mass>
<linear-drag diagonal="{d} {d} {d} {d} {d} {d}"/><quadratic-drag diagonal="{d} {d} {d} {d} {d} {d}"/>
<thruster name="t" position="-1 0.1 0 m" direction="1 0 0" law="force" minimum="-100" maximum="100" lag="{lag} s"/></model></models>"""


def place(
    sim: Simulation, name: str, model: str, depth: float = 100.0, attitude: tuple[float, float, float] = (0, 0, 0)
) -> int:
    return sim.enter(name, model, (0.0, 0.0, depth), attitude)


def set_velocity(sim: Simulation, row: int, nu: Any) -> None:
    sim.fleet.body(row)[B.NU : B.NU + 6] = nu


def settle_actuators(sim: Simulation, row: int, values: list[float]) -> Any:
    """Command actuators and skip their lag."""
    sim.command(row, values)
    b = sim.fleet.body(row)
    b[B.ACTUATOR_STATE : B.ACTUATOR_STATE + SLOTS] = b[B.ACTUATOR_COMMAND : B.ACTUATOR_COMMAND + SLOTS]
    return b[B.ACTUATOR_COMMAND : B.ACTUATOR_COMMAND + SLOTS].copy()


@pytest.mark.parametrize("model", ["lauv", "remus100"])
def test_the_kernel_agrees_with_the_slow_twin(config: Callable[..., LoadedConfig], model: str) -> None:
    sim = Simulation(
        config(
            '<time step="10 ms"/><world><current north="0.3 m/s" east="-0.2 m/s" down="0.15 m/s"/><bed depth="1000 m"/></world>'
        )
    )
    row = place(sim, "v", model, attitude=(0.2, -0.4, 2.0))
    sim.enter("other", "buoy", (500.0, 0.0, 50.0))
    nu = [1.3, 0.2, -0.1, 0.3, -0.2, 0.25]
    set_velocity(sim, row, nu)
    commands = settle_actuators(sim, row, [6.0, 0.1, 0.12, -0.05, -0.08])
    world = sim.config.world
    twin = Twin(library()[model], world.density, world.gravity, np.array([0.3, -0.2, 0.15]), commands)
    x = sim.fleet.body(row)[: B.RIGID_ROWS].copy()
    for _ in range(300):
        sim.advance(1)
        x = twin.step(x, 0.01)
        assert np.allclose(sim.fleet.body(row)[: B.RIGID_ROWS], x, rtol=1e-10, atol=1e-11)
    assert np.abs(x[7:] - nu).max() > 0.1, "it moved"


def test_fourth_order_with_lagging_actuators(config: Callable[..., LoadedConfig]) -> None:
    ends = {}
    for ms in (40, 20, 10, 5):
        # abs(nu) nu has a kink at zero, where no integrator keeps its order: linear drag only
        text = BARE.format(volume=0.2439, rb="0.1 0 -0.1", d=8, lag=0.5)
        text = text.replace('<quadratic-drag diagonal="8 8 8 8 8 8"/>', '<quadratic-drag diagonal="0 0 0 0 0 0"/>')
        sim = Simulation(
            config(f'<time step="{ms} ms"/><world><current north="0.4 m/s"/><bed depth="1000 m"/></world>{text}')
        )
        row = place(sim, "v", "bare", attitude=(0.5, 0.3, 1.0))
        set_velocity(sim, row, [1.0, 0.4, -0.3, 0.8, 0.5, -0.6])
        sim.command(row, [80.0])
        sim.advance(4000 // ms)
        ends[ms] = sim.fleet.body(row)[: B.RIGID_ROWS].copy()
    errors = [np.abs(ends[ms] - ends[5]).max() for ms in (40, 20, 10)]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(4.0, abs=0.35)
    assert errors[2] < 5e-6


def energy(sim: Simulation, row: int) -> float:
    nu = sim.fleet.body(row)[B.NU : B.NU + 6]
    M = np.linalg.inv(sim.fleet.coefficients(row)[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6))
    return float(0.5 * nu @ M @ nu)


@pytest.mark.compiled
def test_energy_is_kept_without_drag_and_falls_with_it(config: Callable[..., LoadedConfig]) -> None:
    for d, steps in ((0, 200_000), (3, 2_000)):
        text = BARE.format(volume=250 / 1025, rb="0.1 0.02 0.03", d=d, lag=0)
        sim = Simulation(config(f'<time step="5 ms"/><world><bed depth="100000 m"/></world>{text}'))
        row = place(sim, "v", "bare", depth=5000.0)
        set_velocity(sim, row, [0.5, 0.2, -0.1, 0.3, 0.2, -0.2])
        before = energy(sim, row)
        history = []
        for _ in range(20):
            sim.advance(steps // 20)
            history.append(energy(sim, row))
        if d == 0:
            assert history[-1] == pytest.approx(before, rel=1e-9), "1000 s without drag"
        else:
            assert all(b < a for a, b in zip([before, *history], history, strict=False))


def test_no_direction_is_special(config: Callable[..., LoadedConfig]) -> None:
    """Turning the whole world about the vertical turns the track, and changes nothing else."""
    ends = []
    for turn in (0.0, 1.234):
        c, s = math.cos(turn), math.sin(turn)
        sim = Simulation(
            config(
                f'<time step="20 ms"/><world><current north="{0.3 * c} m/s" east="{0.3 * s} m/s"/><bed depth="1000 m"/></world>'
            )
        )
        row = place(sim, "v", "lauv", attitude=(0.0, 0.0, turn))
        sim.command(row, [8.0, 0.1, 0.1])
        sim.advance(1000)
        p = sim.state()["p_WB_W"][row]
        ends.append((c * p[0] + s * p[1], -s * p[0] + c * p[1], p[2]))
    assert np.allclose(ends[0], ends[1], atol=1e-8)


@pytest.mark.compiled
def test_other_vehicles_change_nothing(config: Callable[..., LoadedConfig]) -> None:
    tracks = []
    for others in (0, 20):
        sim = Simulation(config('<time step="20 ms"/><world><bed depth="1000 m"/></world>'))
        row = place(sim, "v", "remus100")
        for k in range(others):
            sim.enter(f"o{k}", "lauv" if k % 2 else "jolner", (100.0 + 10 * k, 0.0, 50.0 if k % 2 else -0.1))
        sim.command(row, [4.0, 0.1, 0.1, 0.05, 0.05])
        sim.advance(1000)
        tracks.append(sim.state()[row].tobytes())
    assert tracks[0] == tracks[1]


@pytest.mark.compiled
def test_terminal_speeds(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<time step="20 ms"/><world><bed depth="100000 m"/></world>'))
    lauv, remus = place(sim, "a", "lauv", depth=5000.0), sim.enter("b", "remus100", (50.0, 50.0, 5000.0))
    sim.command(lauv, [2.4 * 1.5 + 2.4 * 1.5**2])
    sim.command(remus, [3.86])
    # neutral, so that they go level
    for row in (lauv, remus):
        sim.fleet.override_parameters(row, {P.FULL_BUOYANCY: sim.fleet.coefficients(row)[P.WEIGHT]})
    sim.advance(10_000)
    speeds = sim.state()["v_FB_B"][:, 0]
    assert speeds[lauv] == pytest.approx(1.5, rel=1e-6)
    assert speeds[remus] == pytest.approx(1.54, rel=0.005), "Prestero: 3.86 N at 1.54 m/s"


@pytest.mark.compiled
def test_neutral_buoyancy_stays_put_for_an_hour(config: Callable[..., LoadedConfig]) -> None:
    text = BARE.format(volume=250 / 1025, rb="0.1 0.02 -0.07", d=5, lag=0)
    sim = Simulation(config(f'<time step="20 ms"/>{text}'))
    row = place(sim, "v", "bare", depth=20.0)
    sim.advance(180_000)
    assert np.abs(sim.state()["p_WB_W"][row] - [0, 0, 20]).max() < 1e-9


@pytest.mark.compiled
def test_a_body_without_power_goes_with_the_current(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(
        config('<time step="20 ms"/><world><current north="0.2 m/s" east="0.3 m/s"/><bed depth="500 m"/></world>')
    )
    row = place(sim, "v", "remus100")
    sim.advance(30_000)
    v = np.array([0.2, 0.3])
    R = sim.state()
    from wavesim_sdk import frames

    ground = frames.rotation(R["q_WB"][row]) @ R["v_WB_B"][row]
    assert np.allclose(ground[:2], v, atol=0.02)


@pytest.mark.compiled
def test_pitch_through_ninety_degrees(config: Callable[..., LoadedConfig]) -> None:
    text = BARE.format(volume=250 / 1025, rb="0.1 0.02 0.03", d=0, lag=0)
    sim = Simulation(config(f'<time step="10 ms"/><world><bed depth="100000 m"/></world>{text}'))
    row = place(sim, "v", "bare", depth=5000.0)
    set_velocity(sim, row, [0, 0, 0, 0, 0.5, 0])
    before = energy(sim, row)
    seen = []
    for _ in range(1300):
        sim.advance(1)
        q = sim.state()["q_WB"][row]
        seen.append(q)
        assert np.linalg.norm(q) == pytest.approx(1.0, abs=1e-12)
    assert energy(sim, row) == pytest.approx(before, rel=1e-9)
    down = [2 * (q[1] * q[3] - q[2] * q[0]) for q in seen]
    assert min(down) < -0.99 and max(down) > 0.99, "nose straight up and straight down"


def test_saturation_lag_and_rate(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<time step="10 ms"/><world><bed depth="500 m"/></world>'))
    row = place(sim, "v", "lauv")
    sim.command(row, [99.0, 1.0])
    sim.advance(20)
    actual = sim.actuation()["actual"][row]
    assert actual[0] == pytest.approx(12.0 * (1 - math.exp(-0.2 / 0.2)), rel=1e-12), (
        "saturated at 12 N, lag 0.2 s, exact"
    )
    sim.advance(500)
    assert sim.actuation()["actual"][row][1] == pytest.approx(math.radians(25.0)), "the fin stops at its limit"
    sim.command(row, {"rudder-top": -1.0})
    before = sim.actuation()["actual"][row][1]
    sim.advance(1)
    assert before - sim.actuation()["actual"][row][1] <= math.radians(90.0) * 0.01 + 1e-12, "rate limit"


def test_a_broken_state_is_frozen_and_the_others_go_on(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<time step="10 ms"/><world><bed depth="500 m"/></world>'))
    bad, good = place(sim, "bad", "lauv"), sim.enter("good", "lauv", (50.0, 0.0, 20.0))
    sim.command(good, [8.0])
    sim.advance(10)
    sim.fleet.body(bad)[B.NU] = math.nan
    sim.advance(200)
    assert sim.frozen_bodies == ["bad"]
    assert np.isfinite(sim.state()["p_WB_W"][bad]).all()
    assert sim.state()["v_WB_B"][good][0] > 0.5
