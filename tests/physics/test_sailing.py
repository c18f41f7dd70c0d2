"""Every shipped model of the library at sea: ten minutes of each manoeuvre."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavesim_server.dynamics import block_rows as B
from wavesim_server.model_properties import derived_properties
from wavesim_server.sailing import IN_WAVES, MAX_TILT, SEA, ManoeuvreRun, is_surface_model, run_manoeuvres
from wavesim_server.study import empty_sea
from wavesim_world.config import library

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("sailing")]
MODELS = {name: model for name, model in library().items() if model.type != "aircraft"}


@pytest.fixture(scope="module")
def runs() -> list[ManoeuvreRun]:
    return run_manoeuvres(MODELS.values())


@pytest.mark.parametrize("name", MODELS)
def test_it_stays_finite_upright_and_inside_its_stated_range(name: str, runs: list[ManoeuvreRun]) -> None:
    model = MODELS[name]
    assert model.valid_speed > 0.0 and model.valid_sea > 0.0, "a shipped model says what it is meant for"
    mine = [run for run in runs if run.model == name]
    assert {"push", "waves"} <= {run.manoeuvre for run in mine}
    for run in mine:
        assert run.is_finite, run.manoeuvre
        if is_surface_model(model):
            assert run.tilts.max() < MAX_TILT, run.manoeuvre
            assert np.abs(run.track[:, 2]).max() < 2.0 * model.valid_sea + 1.0, run.manoeuvre
        # in waves the water itself moves: there the mean counts
        assert (run.end_speed if run.manoeuvre in IN_WAVES else run.speeds.max()) < model.valid_speed, run.manoeuvre
        if run.manoeuvre in ("port", "starboard"):
            assert (run.track[5:60, 12].mean() > 0.0) == (run.manoeuvre == "starboard"), (
                "that is where its helm turns it"
            )
    push = next(run for run in mine if run.manoeuvre == "push")
    assert np.abs(push.track[-60:, 10:13]).max() < math.radians(0.5), "what turned it has died out"


@pytest.mark.parametrize("name", [n for n, m in MODELS.items() if m.thruster])
def test_its_sheet_says_what_it_does(name: str, runs: list[ManoeuvreRun]) -> None:
    """The figures of `wavesim vehicles` are those of the model as it is shipped, not of one that is held or trimmed."""
    sheet = derived_properties(MODELS[name])
    mine = {run.manoeuvre: run for run in runs if run.model == name}
    assert sheet["full_speed_m_s"] == pytest.approx(mine["ahead"].end_speed, rel=2e-3)
    if "turning_diameter_m" in sheet:
        assert sheet["turning_diameter_m"] == pytest.approx(mine["starboard"].turning_circle[0], rel=0.01, abs=0.06)
    assert sheet.get("upright", "yes") == "yes"


def test_a_push_does_not_leave_jolner_spinning() -> None:
    """2 N m of yaw for 2 s, at equal thrust in calm water; then a straight course again."""
    sim = empty_sea(2, 0.02)
    boats = [sim.enter("slow", "jolner"), sim.enter("fast", "jolner", (0.0, 500.0, 0.0))]
    for row, speed in zip(boats, (15.811, 50.0), strict=True):  # 25 N and 250 N
        sim.command(row, [speed, speed])
    sim.advance(3000)
    for row in boats:
        sim.push(row, [0.0] * 3, [0.0, 0.0, 2.0])
    sim.advance(100)
    for row in boats:
        assert abs(sim.fleet.body(row)[B.NU + 5]) > math.radians(0.5)
        sim.push(row, [0.0] * 3, [0.0] * 3)
    sim.advance(3000)
    for row, speed in zip(boats, (1.2, 3.0), strict=True):
        assert abs(sim.fleet.body(row)[B.NU + 5]) < math.radians(0.01)
        assert sim.fleet.body(row)[B.NU] == pytest.approx(speed, rel=0.01)


def test_jolner_turns_as_its_authors_parameter_file_lets_it() -> None:
    """Rates of steady turns under a force ahead and a yaw moment: those that sway and yaw of that file's derivatives
    (Y_v, N_r, N_rr, N_v, C_rb_26, cross-flow) give at this model's surge drag, solved apart from this program."""
    turns = {(25.0, 0.5): 0.0306, (25.0, 2.0): 0.106, (50.0, 3.0): 0.1496, (100.0, 5.0): 0.228, (250.0, 5.0): 0.228}
    sim = empty_sea(len(turns), 0.02)
    for k, (ahead, moment) in enumerate(turns):
        row = sim.enter(f"j{k}", "jolner", (0.0, 2000.0 * k, 0.0))
        sim.push(row, [ahead, 0.0, 0.0], [0.0, 0.0, moment])
    sim.advance(10_000)
    rates = [sim.fleet.body(k)[B.NU + 5] for k in range(len(turns))]
    assert rates == pytest.approx(list(turns.values()), rel=0.25)


def test_jolner_in_the_sea_of_the_thesis_third_scenario() -> None:
    """Significant height 1 m, peak 0.888 rad/s, at cruising thrust, on eight courses."""
    world = f'<waves height="{SEA[0]} m" peak="{SEA[1]} rad/s" direction="30 deg"/><bed depth="300 m"/>'
    sim = empty_sea(8, 0.02, world)
    for k in range(8):
        row = sim.enter(f"j{k}", "jolner", (0.0, 2000.0 * k, 0.0), (0.0, 0.0, math.pi / 4 * k))
        sim.command(row, [17.5, 17.5])
    for _ in range(300):
        sim.advance(50)
        q = sim.state()["q_WB"][:8]
        assert np.arccos(1.0 - 2.0 * (q[:, 1] ** 2 + q[:, 2] ** 2)).max() < math.radians(45.0)
    assert sim.frozen_bodies == []
