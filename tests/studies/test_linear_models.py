"""Trims and linear models: closed forms, the nonlinear simulation as the judge, files and messages."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.io import loadmat

from tests.conftest import ROOT
from tests.examples.pages import page_blocks
from wavesim_sdk.actuators import ActuatorKind
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.cli_vehicles import vehicles
from wavesim_server.dynamics import block_rows as B
from wavesim_server.study import batch, empty_sea, track_row
from wavesim_studies.linear_models import LinearModel, find_trim, linearise
from wavesim_studies.linear_models.linearisation import STATE_UNITS, STATES
from wavesim_studies.linear_models.model_files import fossen_matrices
from wavesim_studies.linear_models.trim import free_motion
from wavesim_world.config import Model, library
from wavesim_world.config.exposure import Oscillator, Radiation
from wavesim_world.config.validation import matrix

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("linear models")]


def deviations(vehicle: str | Model, model: LinearModel, actuator: str, size: float, seconds: float) -> Floats:
    """Return the deviations (12,) from the trim after ``seconds`` of simulation: of a body with a step of one
    actuator, minus a body that stays in trim.
    """
    sim, trim, motion = empty_sea(2, 0.002), model.trim, free_motion(vehicle)
    rows = []
    state = trim.state
    for k in range(2):
        position = state[:3] + [0.0, 1000.0 * k, 0.0]
        row = sim.enter(f"v{k}", position=position, attitude=state[3:6], variant=motion.model)
        sim.set_pose(row, velocity=state[6:])
        values = trim.actuators.copy()
        values[trim.names.index(actuator)] += k * size
        body = sim.fleet.body(row)
        for a, value in zip(motion.actuators, values, strict=True):
            body[B.ACTUATOR_STATE + a.slot] = body[B.ACTUATOR_COMMAND + a.slot] = value
        body[B.MEMORY_STATE : B.MEMORY_STATE + len(trim.memory)] = trim.memory
        rows.append(row)
    sim.advance(round(seconds / 0.002))
    here, there = (track_row(sim, sim.state()[row])[1:] for row in rows)
    found = there - here
    found[1] -= 1000.0
    return np.asarray(found)


@pytest.mark.parametrize(
    ("name", "speed", "actuator", "size"),
    [
        ("lauv", 1.5, "rudder-top", 1e-5),
        ("lauv", 1.2, "plane-port", 1e-5),
        ("remus100", 1.5, "propeller", 1e-3),
        ("otter", 1.5, "port", 1e-3),
        ("cybership2", 0.5, "rudder", 1e-5),
    ],
)
def test_the_simulation_moves_like_the_linear_model(name: str, speed: float, actuator: str, size: float) -> None:
    model = linearise(name, speed)
    for seconds in (0.5, 3.0):
        expected = model.step_response(actuator, size, np.array([0.0, seconds]))[1]
        found = deviations(name, model, actuator, size, seconds)
        expected = expected[:12]
        assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max(), (seconds, found, expected)


def radiating_otter() -> Model:
    """Return an Otter with two coupled oscillators for its waves; they are not symmetric about its origin."""
    oscillators = (
        Oscillator(frequency=2.0, damping=(1.5, 0.2), coupling=(4.0, 9.0, 6.0, 1.0, -2.0, 3.0)),
        Oscillator(frequency=4.0, damping=(0.2, 2.5), coupling=(9.0, 3.0, -4.0, 0.5, 3.0, 5.0)),
    )
    return replace(library()["otter"], name="radiating-otter", radiation=Radiation(oscillator=oscillators))


@pytest.mark.parametrize(
    ("vehicle", "speed", "actuator", "size", "memory"),
    [
        ("supply", 5.0, "azimuth-port", 1.0, 18),
        ("supply", 5.0, "azimuth-starboard-angle", 1e-6, 18),
        ("odin", 1.0, "port-angle", 1e-6, 41),
        (radiating_otter(), 1.5, "port", 1e-3, 4),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_fluid_memory_has_states(vehicle: str | Model, speed: float, actuator: str, size: float, memory: int) -> None:
    """The linear model has no air drag, which the simulation has, so it is left out here."""
    still = replace(library()[vehicle] if isinstance(vehicle, str) else vehicle, wind_drag=None)
    model = linearise(still, speed)
    assert len(model.A) == len(model.states) == len(model.state_units) == 12 + memory == 12 + len(model.trim.memory)
    without = model.reduced(STATES)
    shared = 0.0
    for seconds in (0.5, 5.0, 20.0):
        expected = model.step_response(actuator, size, np.array([0.0, seconds]))[1, :12]
        found = deviations(still, model, actuator, size, seconds)
        assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max(), (seconds, found, expected)
        short = without.step_response(actuator, size, np.array([0.0, seconds]))[1]
        shared = max(shared, float(np.abs(short - found).max() / np.abs(expected).max()))
    assert shared > 5e-3  # without the memory, the response is wrong
    assert any("memory" in n or "oscillator" in n for m in model.modes() for n in m.states)
    poles = np.sort_complex(np.linalg.eigvals(model.A[12:, 12:]))
    wanted = [np.roots([1.0, *memory.a[::-1]]) for memory in still.memory]
    if still.radiation is not None:
        R, squares = np.array([o.damping for o in still.radiation.oscillator]), np.diag([4.0, 16.0])
        wanted.append(np.linalg.eigvals(np.block([[np.zeros((2, 2)), np.eye(2)], [-squares, -R]])))
    assert poles == pytest.approx(np.sort_complex(np.concatenate(wanted)), abs=1e-6)  # the body is held still


def test_a_trim_has_the_memory_of_a_steady_motion() -> None:
    """The states of a <memory> are then constant, so that x0 is the velocity divided by a0."""
    trim, memory = find_trim("supply", 5.0), library()["supply"].memory
    assert trim.memory[0] == pytest.approx(trim.state[6] / memory[0].a[0], rel=1e-9)
    assert trim.memory[1:3] == pytest.approx([0.0, 0.0], abs=1e-9)


@pytest.mark.parametrize(("name", "speed"), [("lauv", 1.5), ("otter", 2.0), ("bluerov2-heavy", 0.8)])
def test_the_simulation_stays_in_trim(name: str, speed: float) -> None:
    model = linearise(name, speed)
    actuator = model.inputs[0]
    still = deviations(name, model, actuator, 0.0, 1.0)
    assert np.abs(still).max() < 1e-12
    sim, motion = empty_sea(1, 0.01), free_motion(name)
    row = sim.enter("v", position=model.trim.state[:3], attitude=model.trim.attitude, variant=library()[name])
    sim.set_pose(row, velocity=model.trim.state[6:])
    body = sim.fleet.body(row)
    for a, value in zip(motion.actuators, model.trim.actuators, strict=True):
        body[B.ACTUATOR_STATE + a.slot] = body[B.ACTUATOR_COMMAND + a.slot] = value
    sim.advance(500)
    end = track_row(sim, sim.state()[row])[1:]
    assert end[0] == pytest.approx(5.0 * speed, abs=1e-6)
    assert np.abs(np.delete(end - model.trim.state, 0)).max() < 1e-6


def test_matrices_of_a_vehicle_at_rest() -> None:
    """Without a speed, the velocity decays with the linear drag alone, and weight and buoyancy right the vehicle."""
    model, m = linearise("bluerov2-heavy", 0.0), fossen_matrices(library()["bluerov2-heavy"])
    inverse = np.linalg.inv(m["M_RB"] + m["M_A"])
    assert model.A[6:, 6:] == pytest.approx(-inverse @ m["D_L"], abs=2e-3)  # D_Q times the step of the derivative
    lever = m["W"] * m["r_G"] - m["B"] * m["r_B"]
    righting = np.zeros((6, 3))
    righting[:3] = (m["W"] - m["B"]) * np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    righting[3:] = [[-lever[2], 0.0, 0.0], [0.0, -lever[2], 0.0], [lever[0], lever[1], 0.0]]
    assert model.A[6:, 3:6] == pytest.approx(inverse @ righting, abs=1e-8)
    assert model.B_force[6:] == pytest.approx(inverse)
    assert m["M_A"] == pytest.approx(matrix(library()["bluerov2-heavy"].added_mass))


@pytest.mark.parametrize("name", ["lauv", "otter", "bluerov2"])
def test_a_trim_exists_up_to_the_full_speed(name: str) -> None:
    """The full speed is that of a long run with the forward thrusters at their limits."""
    motion = free_motion(name)
    forward = {a.name: a.maximum for a in motion.actuators if a.kind == ActuatorKind.THRUSTER}
    if name == "bluerov2":
        forward = {n: v if "vertical" not in n else 0.0 for n, v in forward.items()}
    trimmed = find_trim(motion, 1.0)
    others = {n: float(v) for n, v in zip(trimmed.names, trimmed.actuators, strict=True) if n not in forward}
    track = batch([library()[name]], forward | others, 120.0, step=0.02)
    full = float(np.linalg.norm(track[0, -1, 7:10]))
    assert find_trim(motion, 0.97 * full).speed == 0.97 * full
    with pytest.raises(ConfigError, match="no straight, level motion"):
        find_trim(motion, 1.03 * full)


def test_lags_become_states() -> None:
    fast, slow = linearise("lauv", 1.5), linearise("lauv", 1.5, with_lags=True)
    assert slow.states == STATES + fast.inputs and slow.state_units[:12] == STATE_UNITS
    assert slow.A[:12, 12:] == pytest.approx(fast.B)
    fins = [k for k, name in enumerate(slow.states) if name.startswith(("rudder", "plane"))]
    assert slow.A[fins, fins] == pytest.approx([-1.0 / f.lag for f in library()["lauv"].fin])
    assert slow.B[fins, 1:] == pytest.approx(np.diag([1.0 / f.lag for f in library()["lauv"].fin]))


def test_modes() -> None:
    """Equal eigenvalues with too few eigenvectors, an oscillation, and a state that no actuator reaches."""
    trim = find_trim("lauv", 1.0)
    A = np.array(
        [
            [0.0, 1.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, -4.0, -0.4, 0.0],
            [0.0, 0.0, 0.0, 0.0, -2.0],
        ]
    )
    inputs = np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]).T
    model = LinearModel(trim, A, inputs, np.zeros((5, 6)), tuple("abcde"), ("",) * 5, ("motor",), ("N",))
    rest, swing, alone = sorted(
        model.modes(), key=lambda m: abs(m.eigenvalue.imag) + (abs(m.eigenvalue.real) > 1.0) * 9
    )
    assert rest.multiplicity == 2 and set(rest.states) == {"a", "b"} and rest.controllable
    assert rest.time_constant == rest.period == np.inf
    assert set(swing.states) == {"c", "d"} and swing.damping_ratio == pytest.approx(0.1) and swing.controllable
    assert swing.period == pytest.approx(2.0 * np.pi / (2.0 * np.sqrt(0.99))) and swing.multiplicity == 1
    assert alone.states == ("e",) and not alone.controllable and alone.time_constant == pytest.approx(0.5)
    assert pytest.approx(A[2:4, 2:4]) == model.reduced(("c", "d")).A


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(vehicles, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit | ConfigError), result.exception
    return result.exit_code, result.output + str(result.exception or "")


def test_commands_and_files(tmp_path: Path) -> None:
    code, text = invoke("trim", "lauv", "--speed", "1.5 m/s", "--speed", "9")
    assert (
        code == 0
        and "1.5 m/s: roll 0.00 deg, pitch -0.30 deg" in text
        and "9 m/s: model 'lauv' has no straight" in text
    )
    model = linearise("lauv", 1.5, depth=20.0)
    for suffix in ("json", "mat", "npz"):
        path = tmp_path / f"lauv.{suffix}"
        code, text = invoke("linearise", "lauv", "--speed", "1.5", "--depth", "20", "--out", path)
        assert code == 0 and "pitch, w" in text and "28.05 s" in text
        found = (
            json.loads(path.read_text()) if suffix == "json" else loadmat(path) if suffix == "mat" else np.load(path)
        )
        assert np.array_equal(found["A"], model.A) and np.array_equal(found["B"], model.B)
        states = [str(np.ravel(s)[0]) for s in np.ravel(found["states"])]
        assert tuple(states) == STATES
    picture = tmp_path / "steps.png"
    assert invoke("linearise", "otter", "--speed", "1", "--picture", picture)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    code, text = invoke("export", "remus100", "--out", tmp_path / "m.json")
    assert code == 0 and "not in the matrices: forces of the fins" in text
    assert json.loads((tmp_path / "m.json").read_text())["M_A"][0][0] == pytest.approx(0.93)


def test_a_table_of_trims(tmp_path: Path) -> None:
    code, text = invoke("trim", "lauv", "--speeds", "1.2", "1.8", "0.3", "--out", tmp_path / "trims.csv")
    assert code == 0, text
    rows = list(csv.DictReader((tmp_path / "trims.csv").open()))
    assert [row["speed_m_s"] for row in rows] == ["1.2", "1.5", "1.8"] and rows[2]["propeller (N)"] == ""
    assert "no straight, level motion" in rows[2]["problem"] and not rows[1]["problem"]
    found = find_trim("lauv", 1.5)
    assert float(rows[1]["propeller (N)"]) == found.actuators[0]
    assert float(rows[1]["pitch_deg"]) == pytest.approx(np.degrees(found.attitude[1]))
    assert invoke("trim", "lauv", "--speed", "1.5", "--out", tmp_path / "trims.json")[0] == 0
    assert json.loads((tmp_path / "trims.json").read_text())[0]["actuators"]["propeller (N)"] == found.actuators[0]


def test_the_controller_of_the_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program in docs/models.md, which designs a controller with SciPy from the written file, stabilises the depth."""
    block = next(b for b in page_blocks(ROOT, "docs/models.md") if b.text.startswith("import json\n"))
    monkeypatch.chdir(tmp_path)
    assert invoke("linearise", "lauv", "--speed", "1.5", "--out", "lauv.json")[0] == 0
    names: dict[str, Any] = {}
    exec(compile(block.text, block.page, "exec"), names)
    poles = np.linalg.eigvals(names["A"] - names["B"] @ names["K"])
    assert np.linalg.eigvals(names["A"]).real.max() > -1e-6 and poles.real.max() < -0.05


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["trim", "aerosonde", "--speed", "20"], "is an aircraft"),
        (["trim", "remus100", "--speed", "0"], "it rises, and its actuators cannot prevent this"),
        (["trim", "lauv"], "give --speed, or --speeds FIRST LAST STEP"),
        (["trim", "lauv", "--speeds", "1", "2", "-0.5"], "does not lead from 1 to 2 m/s"),
        (["trim", "lauv", "--speeds", "1", "2", "1e-4"], "are more than the largest number"),
        (["trim", "lauv", "--speed", "1", "--out", "a.txt"], "must end in one of .csv, .json"),
        (["linearise", "lauv", "--speed", "1", "--out", "a.txt"], "must end in one of .json, .mat, .npz"),
        (["linearise", "lauv", "--speed", "1", "--out", "no/a.npz"], "the folder no does not exist"),
        (["linearise", "lauv", "--speed", "1", "--time", "5"], "--time needs --picture"),
        (["linearise", "lauvv", "--speed", "1"], "did you mean 'lauv'"),
    ],
)
def test_mistakes(words: list[str], text: str) -> None:
    code, output = invoke(*words)
    assert code != 0 and text in output
