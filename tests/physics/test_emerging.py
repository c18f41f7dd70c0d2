"""Bodies that leave the water and return: in the air no water force acts, and at their draft the forces are the usual
ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.physics.test_effort import derivative, share
from tests.physics.test_terms import model_text
from tests.physics.twin import Twin
from wavesim_sdk import frames
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.model_compiler import free_dofs, mass_matrices
from wavesim_server.dynamics.sizes import SLOTS
from wavesim_world.config import LoadedConfig, library

Make = Callable[..., LoadedConfig]
R, RHO, G = 0.2, 1025.0, 9.81
VOLUME = 4.0 / 3.0 * math.pi * R**3
BALL = (
    '<models><model name="ball" type="underwater" {attributes}><sphere diameter="0.4 m"/><mass value="{mass} kg"/>'
    '<inertia xx="1" yy="1" zz="1"/><added-mass diagonal="{added} {added} {added} 0.2 0.2 0"/><linear-drag diagonal="{drag} {drag} {drag} 1 1 1"/>'
    '<quadratic-drag diagonal="{drag} {drag} {drag} 0 0 0"/></model></models>'
)


def ball(config: Make, mass: float = RHO * VOLUME, drag: float = 0.0, step: str = "2 ms", more: str = "") -> Simulation:
    text = BALL.format(mass=mass, added=0.5 * RHO * VOLUME, drag=drag, attributes=more)
    return Simulation(config(f'<time step="{step}"/><world><current north="0.4 m/s"/></world>{text}'))


def fly(sim: Simulation, row: int, centre: np.ndarray, within: float) -> int:
    """Let a body leave the water; then its centre of mass must follow the parabola until it is back. Ticks in the air."""
    h, found = sim.step_ns * 1e-9, []
    for _ in range(3000):
        sim.advance(1)
        b = sim.fleet.body(row)
        R_WB = frames.rotation(b[B.QW : B.QW + 4])
        if share(sim, row) == 0.0:
            v = R_WB @ (b[B.NU : B.NU + 3] + np.cross(b[B.NU + 3 : B.NU + 6], centre))
            found.append(np.concatenate([b[B.PX : B.PX + 3] + R_WB @ centre, v]))
        elif found:
            break
    t = h * np.arange(len(found))[:, None]
    (p, v), down = np.split(found[0], 2), np.array([0.0, 0.0, 0.5 * G])
    track = np.array(found)
    assert np.allclose(track[:, :3], p + v * t + down * t * t, rtol=0.0, atol=within)
    assert np.allclose(track[:, 3:], v + 2.0 * down * t, rtol=0.0, atol=within)
    return len(found)


@pytest.mark.compiled
def test_a_sphere_that_is_thrown_out_flies_a_parabola(config: Make) -> None:
    """In a current, with drag and added mass in the water."""
    sim = ball(config, drag=30.0)
    row = sim.enter("b", "ball", (0.0, 0.0, 0.1))
    sim.set_pose(row, velocity=[2.0, 0.5, -6.0, 0.0, 0.0, 1.0])
    assert fly(sim, row, np.zeros(3), 1e-9) > 300
    sim.advance(3000)
    b = sim.fleet.body(row)
    v = frames.rotation(b[B.QW : B.QW + 4]) @ b[B.NU : B.NU + 3]
    assert np.allclose(v, [0.4, 0.0, 0.0], rtol=0.0, atol=0.05), "the current has it again"


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["lauv", "remus100"])
def test_an_auv_that_broaches(config: Make, name: str) -> None:
    """With its propeller at full speed and its rudder over, neither of which has any hold in the air."""
    sim = Simulation(config('<time step="4 ms"/>'))
    row = sim.enter("v", name, (0.0, 0.0, 0.6), (0.0, math.radians(50.0), 0.0))
    sim.set_pose(row, velocity=[9.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    sim.command(row, [a.maximum for a in sim.fleet.actuators(row)])
    sim.fleet.settle_actuators(row)
    assert fly(sim, row, np.array(library()[name].mass.centre), 1e-5) > 50
    sim.command(row, [0.0] * len(sim.fleet.actuators(row)))
    sim.advance(5000)
    assert share(sim, row) > 0.9 and np.abs(sim.fleet.body(row)[B.NU : B.NU + 6]).max() < 0.3, "it floats again"


def test_everybody_falls_alike(config: Make) -> None:
    """All models with a shape of their own, turning, in the air: the centre of mass falls with g, momentum about it is kept."""
    sim = Simulation(config('<time step="10 ms"/><world><current east="1 m/s"/></world>'))
    models = {n: m for n, m in library().items() if m.restoring is None and m.type not in ("surface", "aircraft")}
    assert len(models) > 10
    for k, name in enumerate(models):
        row = sim.enter(name, name, (50.0 * k, 0.0, -40.0), (0.1, 0.2, 0.3))
        sim.set_pose(row, velocity=[3.0, 1.0, -2.0, 0.3, -0.2, 0.4])
        sim.command(row, [a.maximum for a in sim.fleet.actuators(row) if a.unit != "kg"])
    sim.advance(1)
    effort = sim.results.effort()
    for name, model in models.items():
        row = sim.row_of(name)
        assert row is not None
        b, found, (rigid, _) = sim.fleet.body(row), effort[row], mass_matrices(model)
        assert len(free_dofs(model)) == 6
        centre = np.array(model.mass.centre)
        nu, a = b[B.NU : B.NU + 6], found["acceleration"]
        of_centre = (
            a[:3] + np.cross(nu[3:], nu[:3]) + np.cross(a[3:], centre) + np.cross(nu[3:], np.cross(nu[3:], centre))
        )
        down = frames.rotation(b[B.QW : B.QW + 4])[2]
        assert np.allclose(rigid[:3, :3], model.mass.value * np.eye(3), rtol=1e-2), f"{name}: its mass has two values"
        assert np.allclose(of_centre, G * down, rtol=0.0, atol=0.02), name
        assert not found["actuators"].any() or model.ballast, name


def energy(sim: Simulation, row: int, mass: float, z: float, v: np.ndarray) -> float:
    """Kinetic energy of the ball and of what it carries through the water, potential of its weight and of the water that it displaces."""
    h = min(max(R + z, 0.0), 2.0 * R)
    lifted = math.pi / 3.0 * (R * h**3 - h**4 / 4.0) + VOLUME * max(z - R, 0.0)
    return float(0.5 * (mass + share(sim, row) * 0.5 * RHO * VOLUME) * v @ v - mass * G * z + RHO * G * lifted)


@pytest.mark.compiled
@pytest.mark.parametrize("mass", [0.5 * RHO * VOLUME, RHO * VOLUME, 2.0 * RHO * VOLUME])
def test_energy_only_falls(config: Make, mass: float) -> None:
    """Without drag: a ball is thrown up, flies, falls back, dives, and comes up again; nothing moves the water."""
    text = BALL.format(mass=mass, added=0.5 * RHO * VOLUME, drag=0.0, attributes="")
    sim = Simulation(config(f'<time step="1 ms"/><world><bed depth="100 m"/></world>{text}'))
    row = sim.enter("b", "ball", (0.0, 0.0, 0.5))
    sim.set_pose(row, velocity=[0.5, 0.0, -7.0, 0.0, 0.0, 0.0])
    held, heights = [], []
    for _ in range(4000):
        sim.advance(1)
        b = sim.fleet.body(row)
        held.append(energy(sim, row, mass, b[B.PZ], b[B.NU : B.NU + 3].copy()))
        heights.append(b[B.PZ])
    steps = np.diff(held)
    assert min(heights) < -0.5 and max(heights[1000:]) > 0.2, "out and in"
    assert steps.max() < 1e-5 * held[0], "more by the step's own error only"
    assert held[-1] < 0.9 * held[0], "spray took some"


@pytest.mark.parametrize("step", ["0.5 ms", "2 ms"])
def test_a_drop_shares_its_momentum(config: Make, step: str) -> None:
    """Von Karman: m v before is (m + a) v' after; so fast that weight does nothing meanwhile. A neutral sphere keeps 2/3."""
    sim = ball(config, step=step)
    row = sim.enter("b", "ball", (0.0, 0.0, -0.3))
    sim.set_pose(row, velocity=[0.4, 0.0, 20.0, 0.0, 0.0, 0.0])
    while sim.fleet.body(row)[B.PZ] < R:
        sim.advance(1)
    assert sim.fleet.body(row)[B.NU + 2] == pytest.approx(math.sqrt(400.0 + 0.2 * G) / 1.5, rel=0.01)
    assert sim.fleet.body(row)[B.NU] == pytest.approx(0.4, abs=1e-9), "with the current already"


class Emerging(Twin):
    """A body of which the share s is left to the water, and grows by s' in a second."""

    def __init__(self, sim: Simulation, row: int, model: Any, commands: np.ndarray) -> None:
        world, b, p = sim.config.world, sim.fleet.body(row), sim.fleet.coefficients(row)
        super().__init__(model, world.density, world.gravity, np.array([0.3, -0.2, 0.0]), commands)
        x = b[: B.RIGID_ROWS].copy()
        s = share(sim, row)
        # where it is a moment later, through the water
        later, q = 1e-5, x[3:7]
        b[B.PX : B.PX + 3] += later * (frames.rotation(q) @ x[7:10] - self.current)
        w = x[10:13]
        rate = np.array([-q[1:] @ w, *(q[0] * w + np.cross(q[1:], w))])
        b[B.QW : B.QW + 4] = (q + 0.5 * later * rate) / np.linalg.norm(q + 0.5 * later * rate)
        self.grows = max((share(sim, row) - s) / later, 0.0)
        b[: B.RIGID_ROWS] = x
        self.s, self.blow = s, self.MA.copy()
        normal = frames.rotation(q)[2]
        part, *centre = hydrostatics.submerged_share(
            p[P.SHAPE], *p[P.HALF : P.HALF + 3], p[P.BOUNDING_RADIUS], hydrostatics.WaterPlane(*normal, -x[2])
        )
        self.B, self.rb = p[P.FULL_BUOYANCY] * part, self.rb + centre
        for name in ("MA", "MAs", "MAc", "DL", "DQ", "L"):
            setattr(self, name, s * getattr(self, name))
        self.Minv = np.linalg.inv(self.MRB + self.MA)

    def thrusters(self, nu_r: np.ndarray) -> np.ndarray:
        return self.s * super().thrusters(nu_r)

    def extra(self, x: np.ndarray, rotation: np.ndarray, nu_r: np.ndarray, nu_d: np.ndarray) -> np.ndarray:
        scaled, self.MAs = self.MAs, self.MAs / self.s  # of terms that take out parts of it
        found = super().extra(x, rotation, nu_r, nu_d)
        self.MAs = scaled
        return self.s * found - self.grows * self.blow @ nu_r


@pytest.mark.parametrize("down", [0.7, -0.7])
@pytest.mark.parametrize("name", ["coupled masses", "cross-flow", "without Munk", "laws", "aerofoil"])
def test_partly_out_it_agrees_with_the_slow_twin(config: Make, name: str, down: float) -> None:
    text = model_text(name)
    sim = Simulation(config(f'<time step="10 ms"/><world><current north="0.3 m/s" east="-0.2 m/s"/></world>{text}'))
    row = sim.enter("v", "m", (0.0, 0.0, 0.05), (0.2, -0.1, 2.0))
    sim.enter("deep", "m", (300.0, 0.0, 50.0))
    sim.set_pose(row, velocity=[1.3, 0.2, down, 0.1, -0.2, 0.35])
    sim.command(row, [0.3 * a.maximum for a in sim.fleet.actuators(row)])
    sim.fleet.settle_actuators(row)
    b = sim.fleet.body(row)
    twin = Emerging(sim, row, sim.occupants[row].model, b[B.ACTUATOR_STATE : B.ACTUATOR_STATE + SLOTS].copy())
    assert 0.1 < twin.s < 0.9 and (twin.grows > 0.5) == (down > 0.0)
    expected = twin.derivative(b[: B.RIGID_ROWS].copy())[7:13]
    assert np.allclose(sim.results.effort()[row]["acceleration"], expected, rtol=1e-4, atol=1e-4)
    assert np.allclose(derivative(sim, row), expected, rtol=1e-4, atol=1e-4)


def test_at_its_draft_and_deeper_it_has_its_own_coefficients(config: Make) -> None:
    """To the bit: nothing of what fades is looked at, not even beside one that flies; and a body that cannot heave never leaves."""
    planar = BALL.format(mass=0.5 * RHO * VOLUME, added=20.0, drag=5.0, attributes='active="u v r"').replace(
        '"ball"', '"planar"'
    )
    ends = []
    for garbage, flies in ((False, False), (True, False), (False, True)):
        sim = Simulation(config(f'<time step="5 ms"/><world><current east="0.2 m/s"/></world>{planar}'))
        rows = [
            sim.enter("box", "box-buoy", (0.0, 0.0, 0.02)),
            sim.enter("buoy", "buoy", (20.0, 0.0, 0.1)),
            sim.enter("p", "planar", (40.0, 0.0, -0.15)),
        ]
        if flies:
            for k, model in enumerate(("box-buoy", "buoy", "planar")):
                sim.enter(f"high {k}", model, (0.0, 50.0 + 10.0 * k, -30.0))
        for row in rows:
            if garbage:
                sim.fleet.override_parameters(
                    row,
                    dict.fromkeys(
                        (*range(P.ADDED_MASS, P.ADDED_MASS + 36), *range(P.ADDED_MOMENTUM, P.ADDED_MOMENTUM + 36)), 1e3
                    ),
                )
            sim.fleet.body(row)[B.NU : B.NU + 6] = 0.5, 0.3, 0.0, 0.1, 0.0, 0.2
        sim.advance(3)
        ends.append([sim.fleet.body(row)[: B.RIGID_ROWS].tobytes() for row in rows])
    assert ends[0] == ends[1] == ends[2]


def test_small_motions_about_the_draft_have_its_coefficients_too(config: Make) -> None:
    """The share has no slope there: lifted by a hundredth of its draft, a body lacks a ten-thousandth of its added mass."""
    sim = Simulation(config('<time step="5 ms"/>'))
    row = sim.enter("b", "box-buoy", (0.0, 0.0, 0.0))
    assert share(sim, row) == pytest.approx(1.0, abs=1e-15), "its draft"
    sim.fleet.body(row)[B.PZ] = -0.003
    assert 1.0 - share(sim, row) == pytest.approx(1e-4, rel=1e-6)
