"""Forces and accelerations part by part: their sum equals M a, and they are those of the step."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.test_terms import TERMS, model_text
from wavesim_sdk import frames
from wavesim_sdk.tables import EFFORT
from wavesim_server import Simulation
from wavesim_server.argument_checks import checked_numbers
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.model_compiler import free_dofs, mass_matrices
from wavesim_world.config import LoadedConfig, library

PARTS = ("restoring", "drag", "actuators", "environment", "external", "contact")
WEATHER = (
    '<world><current north="0.3 m/s" east="-0.2 m/s"/><bed depth="1000 m"/><wind speed="8 m/s" gusts="20"/>'
    '<waves height="1 m" peak="1 rad/s" components="20"/></world>'
)


def share(sim: Simulation, row: int) -> float:
    """What is left of the water's forces and inertia of a body: from the volume that is under the local water plane."""
    model, p, b = sim.occupants[row].model, sim.fleet.coefficients(row), sim.fleet.body(row)
    if model.restoring is not None or 2 not in free_dofs(model):
        return 1.0
    up = np.array([-b[B.WATER_SLOPE], -b[B.WATER_SLOPE + 1], 1.0]) / math.sqrt(
        1.0 + b[B.WATER_SLOPE] ** 2 + b[B.WATER_SLOPE + 1] ** 2
    )
    normal = frames.rotation(b[B.QW : B.QW + 4]).T @ up
    part = hydrostatics.submerged_share(
        p[P.SHAPE],
        *p[P.HALF : P.HALF + 3],
        p[P.BOUNDING_RADIUS],
        hydrostatics.WaterPlane(*normal, -up[2] * (b[B.PZ] - b[B.WATER_LEVEL])),
    )[0]
    wet = min(1.0, part * p[P.FULL_BUOYANCY] / min(p[P.FULL_BUOYANCY], p[P.WEIGHT]))
    return float(wet * (2.0 - wet))


def check(sim: Simulation, row: int) -> np.void:
    """The sums, and M a; returns the row."""
    found = sim.results.effort()[row]
    model = sim.occupants[row].model
    total, a = found["total"], found["acceleration"]
    scale = max(float(np.abs([found[p] for p in PARTS]).max()), 1.0)
    assert np.allclose(sum(found[p] for p in PARTS), total, rtol=0.0, atol=1e-12 * scale)
    rigid, added = mass_matrices(model)
    free = free_dofs(model)
    inertia = (rigid + share(sim, row) * added)[np.ix_(free, free)]
    assert np.allclose(inertia @ a[free], total[free], rtol=1e-9, atol=1e-9 * scale)
    assert np.isfinite(found["total"]).all()
    return found


def derivative(sim: Simulation, row: int) -> np.ndarray:
    """Rate of change of the velocities, from a very short step of the kernel."""
    from wavesim_server.dynamics import integrators

    f = sim.fleet
    before, blocks = f.body(row)[B.NU : B.NU + 6].copy(), f.blocks.copy()
    h = 1e-7
    integrators.step_all(f.arrays, f.models, f.sequence, f.work, h, f.integrator)
    after = f.body(row)[B.NU : B.NU + 6].copy()
    f.blocks[:] = blocks
    return (after - before) / h


@pytest.mark.parametrize("name", sorted(library()))
def test_the_library_in_wind_and_waves(config: Callable[..., LoadedConfig], name: str) -> None:
    sim = Simulation(config(f'<time step="10 ms"/>{WEATHER}'))
    deep = library()[name].type == "underwater"
    row = sim.enter("v", name, (0.0, 0.0, 60.0 if deep else 0.1), (0.05, -0.03, 0.7))
    sim.set_pose(row, velocity=[0.8, 0.1, 0.05, 0.02, -0.03, 0.04])
    sim.command(row, [0.5 * a.maximum for a in sim.fleet.actuators(row)])
    sim.push(row, [5.0, -3.0, 2.0], [0.1, 0.2, -0.3])
    sim.advance(20)
    sim.fleet.settle_actuators(row)  # or the step's later stages would have other actuators
    found = check(sim, row)
    assert np.allclose(found["external"], [5.0, -3.0, 2.0, 0.1, 0.2, -0.3])
    assert not found["contact"].any()
    model = sim.occupants[row].model
    pushes = model.thruster or any(f.law != "derivatives" for f in model.fin)
    assert found["actuators"].any() == bool(pushes), "fins of law derivatives are part of the hull's"
    assert found["environment"].any() == bool(model.wind_drag or model.wave_filter)
    # the kernel holds wind and waves over the step, and so does this
    assert np.allclose(derivative(sim, row), found["acceleration"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", TERMS)
def test_every_term(config: Callable[..., LoadedConfig], name: str) -> None:
    sim = Simulation(config(f'<time step="10 ms"/>{WEATHER}{model_text(name)}'))
    row = sim.enter("v", "m", (0.0, 0.0, 100.0), (0.2, -0.1, 2.0))
    sim.enter("other", "m", (300.0, 0.0, 100.0))
    sim.set_pose(row, velocity=[1.3, 0.2, -0.1, 0.1, -0.2, 0.35])
    sim.command(row, [0.3 * a.maximum for a in sim.fleet.actuators(row)])
    sim.advance(5)
    sim.fleet.settle_actuators(row)
    assert np.allclose(derivative(sim, row), check(sim, row)["acceleration"], rtol=1e-5, atol=1e-6)


def test_frozen_axes(config: Callable[..., LoadedConfig]) -> None:
    text = model_text("coupled masses").replace('type="underwater"', 'type="underwater" active="u v r"')
    sim = Simulation(config(f"<time step='10 ms'/><world><bed depth='1000 m'/></world>{text}"))
    row = sim.enter("v", "m", (0.0, 0.0, 100.0))
    sim.push(row, [50.0, 20.0, 30.0], [5.0, 5.0, 5.0])
    sim.advance(30)
    found = check(sim, row)
    assert not found["acceleration"][2:5].any() and found["total"][2] != 0.0


def test_drag_and_weight_by_hand(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config("<world density='1000 kg/m3' gravity='10 m/s2'><bed depth='1000 m'/></world>"))
    row = sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    sim.set_pose(row, velocity=[1.5, 0, 0, 0, 0, 0])
    found, model = sim.results.effort([row])[row], library()["lauv"]
    assert model.buoyancy is not None
    net = model.mass.value * 10.0 - 1000.0 * 10.0 * model.buoyancy.volume
    assert found["restoring"][2] == pytest.approx(net, abs=1e-9)
    assert found["drag"][0] == pytest.approx(-(2.4 * 1.5 + 2.4 * 1.5**2), abs=1e-9)
    assert not found["actuators"].any() and not found["environment"].any()


def test_a_mooring(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(
        config(
            '<world><bed depth="100 m"/></world><fleet><buoy name="b" model="buoy" position="3 0 10 m">'
            '<mooring anchor="0 0 10 m" length="1 m" stiffness="100 N/m"/></buoy></fleet>'
        )
    )
    row = sim.enter("b")
    found = check(sim, row)
    assert np.allclose(found["contact"], [-200.0, 0, 0, 0, 0, 0], atol=1e-9)


@pytest.mark.compiled
def test_a_body_that_rests_on_the_bed_does_not_accelerate(config: Callable[..., LoadedConfig]) -> None:
    """Contact acts by impulses at the end of a tick: averaged over it, they carry the weight."""
    text = model_text("coupled masses").replace('volume="0.2439 m3"', 'volume="0.2 m3"')
    sim = Simulation(config(f'<time step="10 ms"/><world><bed depth="20 m"/></world>{text}'))
    row = sim.enter("v", "m", (0.0, 0.0, 19.7))
    sim.advance(3000)
    found = check(sim, row)
    assert abs(found["restoring"][2]) > 100.0, "it is heavy"
    free_fall = found["restoring"][2] / 488.0
    assert abs(found["acceleration"][2]) < 0.01 * free_fall
    assert found["contact"][2] == pytest.approx(-found["restoring"][2], rel=0.05)


def test_only_what_is_asked_for(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<world><bed depth="1000 m"/></world>'))
    rows = [sim.enter(f"v{k}", "lauv" if k % 3 else "remus100", (50.0 * k, 0.0, 50.0)) for k in range(20)]
    sim.command(rows[5], [8.0])
    sim.advance(20)
    table = np.zeros(sim.capacity, EFFORT.dtype)
    table["total"] = math.nan
    before = sim.fleet.blocks.copy()
    sim.results.effort([rows[5], 63, rows[2]], table)
    assert np.isfinite(table["total"]).all(axis=1).nonzero()[0].tolist() == [rows[2], rows[5]]
    assert np.array_equal(sim.fleet.blocks, before), "looking changes nothing"
    whole = sim.results.effort()
    assert np.array_equal(whole[rows[5]], table[rows[5]]) and whole[rows[5]]["actuators"][0] > 1.0


def test_a_body_that_was_frozen_has_none(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<world><bed depth="1000 m"/></world>'))
    row = sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    sim.fleet.body(row)[B.NU] = math.nan
    sim.advance(1)
    assert sim.frozen_bodies == ["v"] and not sim.results.effort()[row]["total"].any()
    sim.set_pose(row, velocity=[0.0] * 6)
    assert sim.frozen_bodies == [] and sim.results.effort()[row]["total"].any()


def test_numbers_of_a_caller() -> None:
    assert checked_numbers("a", [1, 2.5], 2, 9.0).tolist() == [1.0, 2.5]
    nested: list[object] = []
    for _ in range(2000):
        nested = [nested]
    for garbage in (
        [1],
        [1, 2, 3],
        [1, math.nan],
        [1, math.inf],
        [1, 10],
        ["1", "2"],
        [None, 1],
        [[1], [2, 3]],
        None,
        "12",
        {1: 2},
        5,
        nested,
        [10**400, 1],
        [True, False],
        [1j, 2],
    ):
        with pytest.raises(ValueError):
            checked_numbers("a", garbage, 2, 9.0)
