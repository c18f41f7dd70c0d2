"""Every shipped vessel and buoy stays where it is in still water, as long as nothing does work on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavesim_sdk.arrays import Floats
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_world.config import library, matrix

pytestmark = pytest.mark.compiled
#: like its source, it has a vertical weight and a restoring force along the body's axis z, which drive it when it trims
CREEPS = "otter-fossen"
MODELS = {name: model for name, model in library().items() if model.type in ("surface", "buoy")}
STILL = 1e-3  # m/s
SETTLING_S, WAIT_S, STEP = 120.0, 600.0, 0.05


def drift(moment: float) -> dict[str, tuple[float, float, float]]:
    """Return for each model the distance in m that it moves in ten minutes, and its speeds in m/s in the middle and at the
    end of these minutes. Before them, it settles for two minutes.

    ``moment`` is a constant moment about the axes x and y, stated as the angle in rad by which it turns the body.
    """
    sim = empty_sea(len(MODELS), STEP)
    for k, model in enumerate(MODELS.values()):
        row = sim.enter(f"b{k}", model.name, (0.0, 2000.0 * k, equilibrium_depth(model, 1025.0)))
        lever = 0.05 * model.mass.value * 9.81  # N m/rad, of a floating shape
        stiff = (lever, lever) if model.restoring is None else np.diag(matrix(model.restoring))[3:5]
        sim.push(row, [0.0] * 3, [moment * stiff[0], moment * stiff[1], 0.0])

    def snapshot(seconds: float) -> tuple[Floats, Floats]:
        sim.advance(round(seconds / STEP))
        state = sim.state()
        return state["p_WB_W"].copy(), np.linalg.norm(state["v_WB_B"], axis=1)

    (before, _), (_, halfway), (after, at_end) = (snapshot(t) for t in (SETTLING_S, WAIT_S / 2, WAIT_S / 2))
    moved = np.hypot(*(after - before)[:, :2].T)
    return {name: (float(moved[k]), float(halfway[k]), float(at_end[k])) for k, name in enumerate(MODELS)}


@pytest.fixture(scope="module")
def untouched() -> dict[str, tuple[float, float, float]]:
    return drift(0.0)


@pytest.mark.parametrize("name", [n for n in MODELS if n != CREEPS])
def test_it_stays_where_it_is(name: str, untouched: dict[str, tuple[float, float, float]]) -> None:
    moved, halfway, at_end = untouched[name]
    assert moved < 0.02 and max(halfway, at_end) < STILL


def test_a_moment_that_heels_and_trims_it_does_not_drive_it() -> None:
    """A turn of about 6 deg each way sets it in motion, and drag ends this motion. The supply vessel, which has the least
    drag for its mass, loses three quarters of its speed in five minutes.
    """
    for name, (_, halfway, at_end) in drift(0.1).items():
        assert at_end < max(STILL, 0.5 * halfway) or name == CREEPS, name


def test_the_authors_otter_creeps_as_its_terms_say(untouched: dict[str, tuple[float, float, float]]) -> None:
    """The payload's weight m g sinks the boat and trims it by theta. Then m g sin(theta) balances the linear surge drag."""
    model = MODELS[CREEPS]
    (load,), g = model.load, matrix(model.restoring)
    weight, theta = load.mass * 9.81, 0.0
    for _ in range(20):
        z_force = weight * math.cos(theta)
        pitch = -load.position[0] * z_force - load.position[2] * weight * math.sin(theta)
        _, theta = np.linalg.solve(g[np.ix_([2, 4], [2, 4])], [z_force, pitch])
    speed = -weight * math.sin(theta) / matrix(model.linear_drag)[0, 0]
    assert speed == pytest.approx(0.083, abs=1e-3), "as the original does"
    moved, _, at_end = untouched[CREEPS]
    assert at_end == pytest.approx(speed, rel=0.01) and moved == pytest.approx(speed * WAIT_S, rel=0.01)
