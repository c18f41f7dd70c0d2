"""Planar learned dead reckoning: the forms of the dissertation, dense and recurrent, on a boat with a rudder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("duckdb")

from tests.studies import boat, recorded_boat
from wavesim_sdk.errors import LogError, WaveSimError
from wavesim_studies import recurrent_network
from wavesim_studies.navigation import cli, dataset, learned_forms, planar_runs, training_missions
from wavesim_studies.recurrent_network import RecurrentNetwork
from wavesim_world.config import load_text

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("navigation")]
Array = Any
IMU = boat.SENSORS[: boat.SENSORS.index("<uwb")] + '<ahrs rate="10 Hz"/>'


def invoke(*arguments: str | Path) -> Any:
    return CliRunner().invoke(cli.nav, [*map(str, arguments)])


# ------------------------------------------------------------------ network


def recurrent(inputs: int = 3, outputs: int = 2) -> RecurrentNetwork:
    network = RecurrentNetwork(inputs, 5, outputs, np.random.default_rng(2), 1.0)
    network.parameters = [p.astype(float) + 0.1 for p in network.parameters]
    return network


def test_gradients_through_time_are_those_of_finite_differences() -> None:
    network, rng = recurrent(), np.random.default_rng(3)
    x, wanted = rng.standard_normal((7, 4, 3)), rng.standard_normal((7, 4, 2))

    def loss() -> float:
        return float(0.5 * ((network(x) - wanted) ** 2).sum())

    found = network.gradients(network(x) - wanted)
    for p, g in zip(network.parameters, found, strict=True):
        for at in rng.integers(p.size, size=12):
            k, h = np.unravel_index(at, p.shape), 1e-6
            kept = p[k]
            p[k] = kept + h
            above = loss()
            p[k] = kept - h
            assert g[k] == pytest.approx((above - loss()) / (2.0 * h), rel=1e-5, abs=1e-7)
            p[k] = kept


def test_steps_and_sequences_agree() -> None:
    network, x = recurrent(), np.random.default_rng(4).standard_normal((6, 2, 3))
    state, found = recurrent_network.start(network.parameters, 2), []
    for now in x:
        y, state = recurrent_network.step(network.parameters, now, state)
        found.append(y)
    assert np.array(found) == pytest.approx(network(x), abs=1e-12)


# ------------------------------------------------------------------ forms


def circle(name: str, part: str, seconds: float, seed: int) -> planar_runs.PlanarRun:
    """A boat whose velocity and turn rate follow thrust and rudder with a lag; nothing is noisy except a little gyro bias."""
    rng, n = np.random.default_rng(seed), round(seconds / 0.1) + 1
    rudder, thrust = (np.repeat(rng.uniform(low, 1.0, n // 40 + 1), 40)[:n] for low in (-1.0, 0.4))
    u, v, r, yaw = np.zeros((4, n))
    u[0] = thrust[0]
    for k in range(1, n):
        u[k] = u[k - 1] + 0.05 * (thrust[k] - u[k - 1])
        r[k] = r[k - 1] + 0.2 * (-0.5 * rudder[k] - r[k - 1])
        v[k] = 0.2 * r[k]
        yaw[k] = yaw[k - 1] + 0.1 * r[k]
    c, s = np.cos(yaw), np.sin(yaw)
    steps = 0.1 * np.stack([c * u - s * v, s * u + c * v], axis=1)[1:]
    place = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
    measured = np.stack([np.gradient(u, 0.1) - r * v, np.gradient(v, 0.1) + r * u, r + 0.01], axis=1)
    measured += [0.05, 0.05, 0.005] * rng.standard_normal((n, 3))
    time = 0.1 * np.arange(n)
    return planar_runs.PlanarRun(
        name,
        part,
        time,
        measured,
        np.stack([rudder, thrust], axis=1),
        ("rudder", "t"),
        yaw,
        place,
        np.stack([u, v], axis=1),
        yaw,
    )


@pytest.fixture(scope="module")
def compared() -> dict[str, Any]:
    runs = [circle(f"r{k}", "train", 60.0, k) for k in range(12)] + [
        circle(f"t{k}", "test", 40.0, 100 + k) for k in range(3)
    ]
    return learned_forms.compare(runs, list(learned_forms.FORMS), 12)


def median(compared: dict[str, Any], name: str, key: str = "rms") -> float:
    return float(np.median([e[key] for e in compared["errors"][name].values()]))


def test_velocity_forms_beat_constant_speed_and_position_forms_drift(compared: dict[str, Any]) -> None:
    """As the dissertation found: velocity and yaw predicted step by step work; absolute positions do not."""
    best = min(median(compared, k) for k in ("velocity-yaw-delta", "lstm-velocity-yaw"))
    assert best < 0.6 * median(compared, "constant speed, gyro")
    assert median(compared, "velocity") < 0.5 * median(compared, "constant speed, AHRS")
    assert all(median(compared, k) > 2.0 * best for k in ("position", "lstm-position"))
    assert set(learned_forms.FORMS) < set(compared["errors"])


def test_the_predicted_yaw_forgets_the_bias_of_the_gyro(compared: dict[str, Any]) -> None:
    assert median(compared, "lstm-velocity-yaw", "yaw") < 0.6 * median(compared, "constant speed, gyro", "yaw")
    assert median(compared, "velocity", "yaw") < 1e-9, "this form is given the yaw"


@pytest.mark.parametrize("name", ["velocity-yaw", "lstm-decoupled"])
def test_saved_networks_predict_the_same(compared: dict[str, Any], tmp_path: Path, name: str) -> None:
    made, run = compared["forms"][name], circle("x", "test", 10.0, 200)
    made.save(tmp_path / "net.npz")
    assert (learned_forms.LearnedForm.load(tmp_path / "net.npz").run(run) == made.run(run)).all()
    for bad in ((np.array("other"), np.array(1)), (np.array(name), np.array("two"))):
        np.savez(tmp_path / "bad.npz", *bad)
        with pytest.raises(WaveSimError, match="valid planar network"):
            learned_forms.LearnedForm.load(tmp_path / "bad.npz")


def test_the_reference_reaches_no_prediction(compared: dict[str, Any]) -> None:
    """A test run whose reference is wrong after the start has the same prediction."""
    run = circle("x", "test", 10.0, 201)
    wrong = planar_runs.PlanarRun(
        **{
            **run.__dict__,
            "place": np.where(np.arange(101)[:, None] > 0, run.place + 5.0, run.place),
            "yaw": run.yaw + run.time,
        }
    )
    for name in ("velocity", "velocity-yaw-delta", "lstm-velocity-yaw", "delta"):
        assert (compared["forms"][name].run(run) == compared["forms"][name].run(wrong)).all()


# ------------------------------------------------------------------ missions of any vehicle


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four short missions of the model boat, one of them for the test."""
    found = tmp_path_factory.mktemp("missions")
    names = [n for n, _ in training_missions.make_dataset(found, 4, 15.0, 1, load_text(boat.configuration(IMU, 1)))]
    index = json.loads((found / "dataset.json").read_text())
    for k, name in enumerate(names):
        index["missions"][name]["part"] = "test" if k == 3 else "train"
    (found / "dataset.json").write_text(json.dumps(index))
    return found


def test_missions_of_a_boat_with_a_rudder(folder: Path) -> None:
    """The commands move rudder and thruster, and the boat turns by them; the filter without a measured speed is beside it."""
    name, entry = next((n, e) for n, e in dataset.missions(folder).items() if e["part"] == "test")
    run = planar_runs.of_mission(folder, name, entry, True)
    assert run.commands.std(axis=0).min() > 0.01 and run.measured.shape == (len(run.time), 3)
    assert np.corrcoef(np.gradient(run.yaw, 0.1), run.measured[:, 2])[0, 1] > 0.9 and np.ptp(run.yaw) > 0.3
    assert run.filtered.shape == run.place.shape and np.linalg.norm(run.filtered - run.place, axis=1)[5] < 0.2
    done = invoke("learn", folder, "--form", "lstm-velocity-yaw", "--epochs", "2", "--out", folder / "net.npz")
    assert done.exit_code == 0, (done.output, done.exception)
    assert (
        "unseen runs" in done.output
        and "filter without Doppler" in done.output
        and "constant speed, AHRS" in done.output
    )
    assert len(learned_forms.LearnedForm.load(folder / "net.npz").run(run)) == len(run.time)
    done = invoke("learn", folder, "--epochs", "2")
    assert done.exit_code == 0, "a boat needs no pressure sensor for the network in three dimensions"


def test_random_commands_stay_within_the_limits_of_any_vehicle() -> None:
    from wavesim_world.actuators import actuators_of
    from wavesim_world.config import library

    for name in ("lauv", "otter", "odin", "bluerov2", "remus100"):
        model = library()[name]
        program, limits = training_missions.RandomCommands(model, 1), {a.name: a for a in actuators_of(model)}
        seen = []
        for k in range(200):
            commands = program.commands(0.5 * k, np.void(b""), 0.5)
            assert commands.keys() == limits.keys()
            assert all(limits[n].minimum <= c <= limits[n].maximum for n, c in commands.items()), name
            seen.append(list(commands.values()))
        assert np.std(seen, axis=0).max() > 0.0


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    assert "unknown form 'gru'; use: position" in invoke("learn", folder, "--form", "gru").output
    assert "exactly one --form" in invoke("learn", folder, "--form", "all", "--out", "x.npz").output
    assert "give FOLDER" in invoke("learn").output
    path = tmp_path / "run.csv"
    path.write_text("time,force_x\n0,1\n")
    assert "has no column 'force_y'" in str(invoke("learn", folder, "--test-run", path).exception)
    path.write_text(",".join(planar_runs.REQUIRED) + "\n" + "1,1,1,1,1,1,1\n" * 30)
    assert "times must increase" in str(invoke("learn", folder, "--test-run", path).exception)
    path.write_text("x\ny\n")
    with pytest.raises(LogError, match="cannot read"):
        planar_runs.of_csv(path, "test")
    other = planar_runs.PlanarRun(**{**circle("o", "test", 10.0, 1).__dict__, "names": ("wheel", "t")})
    with pytest.raises(LogError, match=r"different actuators: c \(rudder, t\) and o \(wheel, t\)"):
        learned_forms.compare([circle("c", "train", 10.0, 1), other], ["delta"], 1)
    with pytest.raises(LogError, match="for training and for the test; got 0 and 1"):
        learned_forms.compare([circle("t", "test", 10.0, 1)], ["delta"], 1)


# ------------------------------------------------------------------ recorded runs


@pytest.mark.data
def test_a_network_trained_on_one_recorded_run_navigates_the_other(data_dir: Path, tmp_path: Path) -> None:
    """Trained on run a of the real boat (24 s), tested on run b (30 s, 15 m from begin to end): velocity and predicted yaw are
    better than the filter without a Doppler log by far; on runs at one speed, they are no better than constant speed."""
    for k in "ab":
        recorded_boat.write(data_dir / f"sookshma/run-{k}", tmp_path / f"run-{k}.csv")
    done = invoke(
        "learn", "--train-run", tmp_path / "run-a.csv", "--test-run", tmp_path / "run-b.csv", "--form", "velocity-yaw-delta",
        "--form", "lstm-velocity-yaw", "--epochs", "60", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, (done.output, done.exception)
    rms = {name: e["run-b"]["rms"] for name, e in json.loads(done.stdout)["errors"].items()}
    best = min(rms["velocity-yaw-delta"], rms["lstm-velocity-yaw"])
    assert best < 0.5 * rms["filter without Doppler"] and best < 2.0 * rms["constant speed, gyro"], rms
