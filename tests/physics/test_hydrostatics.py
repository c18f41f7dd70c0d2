"""Buoyancy of partly submerged primitives against Monte Carlo, theory and floating bodies."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wavesim_sdk import frames
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics import parameter_rows as P
from wavesim_world.config import LoadedConfig

GRID = 60


def direction(a: float, b: float) -> np.ndarray:
    return np.array([math.sin(a) * math.cos(b), math.sin(a) * math.sin(b), math.cos(a)])


def brute(
    inside: Callable[[np.ndarray], np.ndarray], half: tuple[float, float, float], n: np.ndarray, d: float
) -> np.ndarray:
    """(volume, moments) by counting points."""
    axes = [(np.arange(GRID) + 0.5) / GRID * 2 * h - h for h in half]
    p = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
    p = p[inside(p) & (p @ n > d)]
    cell = 8 * half[0] * half[1] * half[2] / GRID**3
    return np.array([len(p) * cell, *(p.sum(axis=0) * cell)])


ANGLES = (st.floats(0, math.pi), st.floats(-math.pi, math.pi))


@settings(max_examples=60, deadline=None)
@given(*ANGLES, st.floats(-1.2, 1.2))
def test_box(a: float, b: float, d: float) -> None:
    half, n = (1.0, 0.5, 0.3), direction(a, b)
    exact = np.array(hydrostatics.box(*half, hydrostatics.WaterPlane(*n, d)))
    assert exact == pytest.approx(brute(lambda p: np.ones(len(p), bool), half, n, d), abs=0.012)


@settings(max_examples=60, deadline=None)
@given(*ANGLES, st.floats(-1.2, 1.2))
def test_cylinder(a: float, b: float, d: float) -> None:
    n = direction(a, b)
    exact = np.array(hydrostatics.cylinder(1.0, 0.4, hydrostatics.WaterPlane(*n, d)))
    assert exact == pytest.approx(brute(lambda p: p[:, 1] ** 2 + p[:, 2] ** 2 < 0.16, (1.0, 0.4, 0.4), n, d), abs=0.012)


@settings(deadline=None)
@given(st.floats(-1.2, 1.2))
def test_sphere(d: float) -> None:
    exact = np.array(hydrostatics.sphere_cap(1.0, d))
    n = direction(0.6, 0.4)
    numbers = brute(lambda p: (p * p).sum(axis=1) < 1, (1.0, 1.0, 1.0), n, d)
    assert exact == pytest.approx([numbers[0], numbers[1:] @ n], abs=0.02)


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-7, 1e-4])
def test_upright_bodies_are_no_special_case(tilt: float) -> None:
    n = direction(tilt, 0.3)
    v, mx, my, mz = hydrostatics.box(1.0, 0.5, 0.3, hydrostatics.WaterPlane(*n, 0.1))
    assert (v, mz) == pytest.approx((2 * 1 * 0.2, 0.4 * 0.2), abs=1e-3)
    assert abs(mx) < 1e-3 and abs(my) < 1e-3
    v, _, _, mz = hydrostatics.cylinder(1.0, 0.4, hydrostatics.WaterPlane(*n, 0.0))
    assert v == pytest.approx(math.pi * 0.16, rel=2e-3)
    assert mz / v == pytest.approx(4 * 0.4 / (3 * math.pi), rel=2e-3), "centroid of a half disc"


BOX = """<models><model name="raft" type="surface"><box length="2 m" width="1 m" height="0.5 m"/><mass value="{mass} kg" centre="0 0 {zg} m"/>
<inertia xx="40" yy="120" zz="150"/><added-mass diagonal="0 0 300 10 80 0"/><linear-drag diagonal="{d} {d} {d} {d} {d} {d}"/>
<quadratic-drag diagonal="0 0 0 0 0 0"/></model></models>"""


def _period(values: np.ndarray, h: float) -> float:
    """Mean time between upward zero crossings, interpolated."""
    up = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    at = up - values[up] / (values[up + 1] - values[up])
    return float(np.diff(at).mean() * h)


@pytest.mark.compiled
def test_draft_and_free_decay_periods_of_a_raft(config: Callable[..., LoadedConfig]) -> None:
    rho, g, mass, zg = 1025.0, 9.81, 400.0, 0.05
    draft = mass / (rho * 2.0 * 1.0)
    sim = Simulation(config('<time step="10 ms"/>' + BOX.format(mass=mass, zg=zg, d=400)))
    row = sim.enter("raft", "raft", (0.0, 0.0, -0.1))
    sim.advance(20_000)
    assert sim.state()["p_WB_W"][row][2] == pytest.approx(draft - 0.25, abs=1e-6), "floats at its draft"
    # heave
    sim = Simulation(config('<time step="10 ms"/>' + BOX.format(mass=mass, zg=zg, d=0)))
    row = sim.enter("raft", "raft", (0.0, 0.0, draft - 0.25 + 0.02))
    z = []
    for _ in range(2000):
        sim.advance(1)
        z.append(sim.state()["p_WB_W"][row][2] - (draft - 0.25))
    assert _period(np.array(z), 0.01) == pytest.approx(
        2 * math.pi * math.sqrt((mass + 300) / (rho * g * 2.0)), rel=1e-3
    )
    # roll: stiffness W GM about the centre of mass; the axis is free, so use the measured coupled mode
    sim = Simulation(config('<time step="10 ms"/>' + BOX.format(mass=mass, zg=0.0, d=0)))
    row = sim.enter("raft", "raft", (0.0, 0.0, draft - 0.25), (0.02, 0.0, 0.0))
    roll = []
    for _ in range(4000):
        sim.advance(1)
        roll.append(frames.euler(sim.state()["q_WB"][row])[0])
    kb = 0.25 - draft / 2  # centre of buoyancy below the box's centre
    bm = (2.0 * 1.0**3 / 12) / (2.0 * 1.0 * draft)
    gm = bm - kb
    assert _period(np.array(roll), 0.01) == pytest.approx(
        2 * math.pi * math.sqrt((40 + 10) / (mass * g * gm)), rel=0.01
    )


@pytest.mark.compiled
def test_a_buoy_bobs_at_its_natural_period(config: Callable[..., LoadedConfig]) -> None:
    """Small heave of a half-submerged sphere: omega^2 = rho g pi R^2 / (m + m_a)."""
    sim = Simulation(config('<time step="4 ms"/>'))
    row = sim.enter("b", "buoy", (0.0, 0.0, 0.0))
    half = 0.5 * 4 / 3 * math.pi * 0.25**3 * 1025
    mass = np.diag([half + 33.54] * 3 + [1.0] * 3)
    zero = dict.fromkeys(
        (
            *range(P.LINEAR_DRAG, P.LINEAR_DRAG + 36),
            *range(P.QUADRATIC_DRAG, P.QUADRATIC_DRAG + 36),
            *range(P.WEIGHT_MOMENT, P.WEIGHT_MOMENT + 3),
        ),
        0.0,
    )
    sim.fleet.override_parameters(
        row,
        zero
        | {P.WEIGHT: half * 9.81}
        | {row + k: float(v) for row in (P.MASS, P.TOTAL_INERTIA) for k, v in enumerate(mass.ravel())}
        | {P.ADDED_MASS + 7 * k: 33.54 for k in range(3)}
        | {P.MASS_INVERSE + k: float(v) for k, v in enumerate(np.linalg.inv(mass).ravel())},
    )
    b = sim.fleet.body(row)
    b[B.PZ] = 0.005
    z = []
    for _ in range(4000):
        sim.advance(1)
        z.append(sim.state()["p_WB_W"][row][2])
    assert _period(np.array(z), 0.004) == pytest.approx(
        2 * math.pi * math.sqrt((half + 33.54) / (1025 * 9.81 * math.pi * 0.0625)), rel=1e-3
    )
