"""Evaluation of policies, and everything of a training that needs no trainer; tests/judges/test_trainers.py trains."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("gymnasium")

from wavesim_sdk.cli import cli, load_commands
from wavesim_sdk.errors import BrokerError, ConfigError, WaveSimError
from wavesim_studies import learning
from wavesim_studies.learning import training
from wavesim_studies.learning.baselines import Pid
from wavesim_studies.learning.core import Core
from wavesim_studies.learning.custom_core import make_core
from wavesim_studies.learning.evaluation import UNSEEN, VALIDATION_SEEDS, Evaluation, evaluate, evaluate_core
from wavesim_studies.learning.policy import Policy
from wavesim_studies.learning.training import TrainingSettings, train
from wavesim_studies.learning.training_state import (
    STATE,
    Evaluator,
    TrainingFolder,
    check_arguments,
    opened,
    reserve_seeds,
)
from wavesim_world.config import load

EXAMPLES = Path(__file__).parents[2] / "examples"
SHIPPED = EXAMPLES / "onboard" / "station-keeping.npz"
OWN = """
from wavesim_studies import learning

class Sink(learning.Task):
    model, dt, limit, observations, actions, uniforms = "lauv", 0.2, 5.0, 1, 1, 1
    def __init__(self, depth=20.0):
        self.depth = depth
    def start(self, s):
        s.position[:, 2] = self.depth + s.uniform[:, 0]
    def command(self, s):
        return s.action[:, 0], 0.0, 0.0, 0.0, 0.0
    def observe(self, s):
        return (s.position[:, 2] - 20.0,)
    def reward(self, s):
        return s.action[:, 0]
    def success(self, s):
        return s.position[:, 0] > 1.0
    def info(self, s):
        return {"north": s.position[:, 0]}

    units = {"north": "m"}

number = 3
"""


class Sway(learning.Task):
    """Two steps; the reward is the number of the step, and the copies whose random number is above a half succeed."""

    model, dt, limit, observations, actions, uniforms = "lauv", 0.2, 0.4, 1, 1, 1
    variables: ClassVar = {"draw": 1}

    def start(self, s: Any) -> None:
        s.draw[:] = s.uniform[:, 0]

    def command(self, s: Any) -> Any:
        return 0.0, 0.0, 0.0, 0.0, 0.0

    def observe(self, s: Any) -> Any:
        return (s.draw,)

    def reward(self, s: Any) -> Any:
        return s.step + 0.0 * s.draw

    def success(self, s: Any) -> Any:
        return s.draw > 0.5

    def info(self, s: Any) -> dict[str, Any]:
        return {"draw": s.draw}


def nothing(seen: Any) -> Any:
    return np.zeros((len(seen), 1), np.float32)


def invoke(*arguments: str | Path) -> Any:
    load_commands()
    return CliRunner().invoke(cli, ["learn", *map(str, arguments)])


def test_every_kind_of_policy_is_evaluated_alike() -> None:
    """A function, an object that acts, and a model that predicts: the same episodes, to the last bit."""
    policy = Policy.load(SHIPPED)
    kinds = (policy, policy.act, SimpleNamespace(predict=lambda seen, deterministic: (policy.act(seen), None)))
    found = [evaluate(kind, "StationKeeping", 8) for kind in kinds]
    assert len({f.returns.tobytes() + f.succeeded.tobytes() for f in found}) == 1
    assert found[0].success > 0.5 and found[0].summary()["distance"] == found[0].mean("distance")
    other = evaluate(policy, "StationKeeping", 8, seed=UNSEEN + 8)
    assert set(other.returns.tolist()).isdisjoint(found[0].returns.tolist()), "other seeds are other episodes"


def test_an_evaluation_adds_up_what_the_copies_did() -> None:
    found = evaluate(nothing, Sway, 40)
    assert (found.returns == found.returns[0]).all() and (found.steps == 2).all() and found.completed.all()
    draws = found.infos["draw"]
    assert (found.succeeded == (draws > 0.5)).all() and 0.1 < found.success < 0.9
    wins, n, z = found.succeeded.sum(), 40, 1.959964
    middle, half = (wins + z * z / 2.0) / (n + z * z), z * math.sqrt(wins * (n - wins) / n + z * z / 4.0) / (n + z * z)
    assert found.interval == pytest.approx((middle - half, middle + half), abs=1e-6), "Wilson's, as the book has it"
    assert f"of {n} episodes" in str(found) and f"draw {draws.mean():.3g}" in str(found)


def test_an_episode_that_ends_early_counts_once() -> None:
    """Full thrust leaves the neighbourhood of the target: neither completed nor a success, and no second episode."""
    found = evaluate(lambda seen: np.tile(np.float32([1, -1, 1, -1, 1, 1]), (len(seen), 1)), "StationKeeping", 6)
    assert not found.completed.any() and found.success == 0.0 and (found.steps < 400).all()
    assert math.isnan(found.mean("distance")) and np.isfinite(found.infos["distance"]).all()


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (3.0, "a policy must be a function"),
        (lambda seen: seen, r"returned actions of shape \(4, 26\) for 4 observations; expected \(4, 6\)"),
        (lambda seen: np.full((len(seen), 6), np.nan), "not finite, at step 0"),
    ],
)
def test_what_is_no_policy_is_refused(policy: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        evaluate(policy, "StationKeeping", 4)


def test_an_evaluation_needs_episodes_and_an_end() -> None:
    class Endless(Sway):
        limit = math.inf

    with pytest.raises(ConfigError, match="a task with a time limit"):
        evaluate(nothing, Endless, 4)
    with pytest.raises(ConfigError, match="at least one episode, got 0"):
        evaluate(nothing, Sway, 0)


def test_a_controller_can_be_evaluated_twice() -> None:
    core = Core("StationKeeping", 10)
    pid = Pid(core)
    first, again = evaluate_core(core, pid, 1), evaluate_core(core, pid, 1)
    assert first.returns.tobytes() == again.returns.tobytes(), "an episode starts without the integrals of the last one"


def test_training_never_sees_the_episodes_of_an_evaluation() -> None:
    assert VALIDATION_SEEDS < UNSEEN
    TrainingSettings(seed=VALIDATION_SEEDS - 1024)
    for wrong in ({"seed": VALIDATION_SEEDS - 1023}, {"seed": -1}):
        with pytest.raises(ConfigError, match="evaluations use the seeds above"):
            TrainingSettings(**wrong)
    with pytest.raises(ConfigError, match="'samples' of a training run must be positive, got 0"):
        TrainingSettings(samples=0)


def test_a_resumed_training_never_sees_an_episode_again() -> None:
    """With more or fewer copies, and with another seed; evaluations keep their seeds however often it is resumed."""
    made = state(resumed=0)
    used: set[int] = set()
    for copies, seed in ((1000, 1), (10, 1), (2000, 500), (10, 50_000), (100, 1), (200_000, 1), (200_000, 1)):
        settings = TrainingSettings(copies=copies, seed=seed)
        first = reserve_seeds(made, settings)
        new = set(range(first, first + copies))
        assert used.isdisjoint(new) and first >= seed and max(new) < VALIDATION_SEEDS
        used |= new
    with pytest.raises(ConfigError, match=r"no unused seeds are left for 200000 copies.*below 450110, .* from 500000"):
        reserve_seeds(made, TrainingSettings(copies=200_000))
    assert reserve_seeds(made, TrainingSettings(copies=10)) == 450_110, "a refused call uses none"


def test_other_arguments_of_a_resumed_training_are_refused() -> None:
    made = state(resumed=0)
    first = {"n_steps": 8, "learning_rate": lambda left: 1e-3 * left, "device": "cpu"}
    check_arguments(made, first)
    made = json.loads(json.dumps(made)) | {"resumed": 1}
    for same in ({}, {"n_steps": 8}, {**first, "device": "cuda", "learning_rate": lambda left: 1e-3 * left}):
        check_arguments(made, same)
    for other, said in (
        ({"n_steps": 16}, "'n_steps' was 8, got 16"),
        ({"gamma": 0.9}, "'gamma' was not given, got 0.9"),
    ):
        with pytest.raises(ConfigError, match=f"keeps the arguments of its first call: {said}"):
            check_arguments(made, other)


def refuse(constant: str) -> None:
    raise AssertionError(f"JSON has no {constant}")


def test_files_and_outputs_are_valid_json(tmp_path: Path) -> None:
    """A setting may be infinite, and a mean over no episode is NaN."""
    made = state(settings=asdict(TrainingSettings()), resumed=0, curve=[{"distance": math.nan, "return": 1.0}])
    TrainingFolder(tmp_path, made, 2).write()
    found = json.loads((tmp_path / STATE).read_text(), parse_constant=refuse)
    assert found["settings"]["seconds"] is None and found["curve"][0]["distance"] is None
    again = opened(tmp_path, "Sway", resume=True)["curve"][0]
    assert math.isnan(again["distance"]) and again["return"] == 1.0, "as before the file"
    (tmp_path / "own.py").write_text(
        OWN.replace("def info", "def terminated(self, s):\n        return s.step >= 1\n    def info")
    )
    done = invoke("evaluate", "random", f"{tmp_path / 'own.py'}:Sink", "--episodes", 3, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output, parse_constant=refuse)["north"] is None


def state(**more: Any) -> dict[str, Any]:
    return {"task": "Sway", "samples": 0, "seconds": 0.0, "processor_seconds": 0.0, "curve": [], **more}


def test_the_best_policy_is_recognised_after_a_resume_too(tmp_path: Path) -> None:
    core = make_core(Sway, 30)
    folder = TrainingFolder(tmp_path, state(), 2)
    judge = Evaluator(core, folder)
    (first, best), (second, better) = judge.measure(nothing, 100), judge.measure(nothing, 200)
    assert best and not better, "the same is not better"
    assert [first["samples"], second["samples"]] == [100, 200] and folder.state["samples"] == 200
    assert first["success"] == second["success"] and second["seconds"] >= first["seconds"] > 0.0
    later = Evaluator(core, TrainingFolder(tmp_path, folder.state, 2))
    row, better = later.measure(nothing, 300)
    assert not better and folder.state["curve"] == [first, second, row]
    assert row["seconds"] >= second["seconds"], "the time of both calls"


def test_an_interrupt_leaves_whole_files(tmp_path: Path) -> None:
    """The old checkpoint or the new one: never half of one, and no more than are kept."""
    folder = TrainingFolder(tmp_path, state(), 2)
    with pytest.raises(ConfigError, match="no checkpoint to resume"):
        folder.last_checkpoint()
    for samples in (1_000, 20_000, 300_000):
        folder.state["samples"] = samples
        folder.add_checkpoint(lambda path, text=str(samples): path.write_text(text))

    def interrupted(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    folder.state["samples"] = 4_000_000
    with pytest.raises(KeyboardInterrupt):
        folder.add_checkpoint(interrupted)
    assert [p.read_text() for p in folder.checkpoints()] == ["20000", "300000"]
    assert folder.last_checkpoint().read_text() == "300000"
    assert json.loads((tmp_path / STATE).read_text())["samples"] == 300_000


@pytest.mark.parametrize(
    ("found", "resume", "said"),
    [
        (None, True, "contains no training run to resume"),
        ("[]", True, "contains no training run to resume"),
        ('{"task": "Circle"}', True, "a training run for the task Circle, not for Sway"),
        ('{"task": "Sway"}', False, "already contains a training run; resume it, or choose another folder"),
        (b"", False, "exists and is not an empty folder; choose another folder"),
    ],
)
def test_a_folder_is_never_overwritten(tmp_path: Path, found: str | bytes | None, resume: bool, said: str) -> None:
    if isinstance(found, str):
        (tmp_path / STATE).write_text(found)
    elif found is not None:
        (tmp_path / "photo.jpg").write_bytes(found)
    with pytest.raises(ConfigError, match=said):
        opened(tmp_path, "Sway", resume)


def test_the_curve_is_drawn(tmp_path: Path) -> None:
    evaluation = Evaluation(np.array([True, False]), np.ones(2, bool), np.ones(2), np.ones(2, np.int64))
    training.draw_curve([evaluation.summary() | {"samples": 1e6 * k} for k in range(3)], tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("activation", "squash"), [("relu", True), ("elu", False), ("tanh", False), ("tanh", True)])
def test_policies_of_other_networks(tmp_path: Path, activation: str, squash: bool) -> None:
    rng = np.random.default_rng(1)
    W, b = rng.normal(size=(3, 5)).astype("f4"), rng.normal(size=5).astype("f4")
    V, c = rng.normal(size=(5, 2)).astype("f4"), rng.normal(size=2).astype("f4")
    Policy([W, b, V, c], activation, squash).save(tmp_path / "p.npz")
    seen = rng.normal(size=(7, 3)).astype("f4")
    functions = {"relu": lambda v: max(v, 0.0), "elu": lambda v: v if v > 0.0 else math.exp(v) - 1.0, "tanh": math.tanh}
    hidden = np.array([[functions[activation](v) for v in row] for row in seen @ W + b])
    wanted = np.tanh(hidden @ V + c) if squash else np.clip(hidden @ V + c, -1.0, 1.0)
    assert Policy.load(tmp_path / "p.npz").act(seen) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    "changed",
    [
        {"form": np.array([{}], dtype=object)},
        {"form": np.array(3.0)},
        {"form": np.array("gelu")},
        {"arr_1": np.zeros(4, np.float32)},
        {"arr_2": np.zeros((4, 2), np.float32)},
        {"arr_4": np.zeros((2, 2), np.float32)},
        {"arr_0": np.array("tanh")},
        {"arr_0": np.array([{}], dtype=object)},
    ],
)
def test_a_file_of_something_else_is_no_policy(tmp_path: Path, changed: dict[str, Any]) -> None:
    sizes = {"arr_0": (3, 5), "arr_1": (5,), "arr_2": (5, 2), "arr_3": (2,)}
    layers = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
    np.savez(tmp_path / "p.npz", **layers)
    Policy.load(tmp_path / "p.npz")
    np.savez(tmp_path / "p.npz", **(layers | changed))
    with pytest.raises(WaveSimError, match=r"does not contain a valid policy|unknown activation 'gelu'"):
        Policy.load(tmp_path / "p.npz")


def test_the_program_on_board_refuses_another_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "onboard")
    learned = importlib.import_module("learned")
    loaded = load(EXAMPLES / "trials" / "learned.xml")
    Policy(Policy.load(SHIPPED).parameters, "relu").save(tmp_path / "p.npz")
    with pytest.raises(BrokerError, match="tanh"):
        learned.Rov(loaded, loaded.config.fleet.bodies[0], SimpleNamespace(policy=tmp_path / "p.npz"))
    with pytest.raises(WaveSimError, match="unknown activation 'gelu'"):
        Policy([], "gelu")


def test_without_the_trainer_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [m for m in sys.modules if m.partition(".")[0] == "stable_baselines3"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("sb3", "sb3_monitor"):
        monkeypatch.delitem(sys.modules, f"wavesim_studies.learning.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(WaveSimError, match="Stable-Baselines3 is not installed; run pip install"):
        train("StationKeeping", tmp_path / "t")
    assert not (tmp_path / "t").exists()
    for algorithm in ("PPO", "SAC"):
        done = invoke("train", "StationKeeping", "--out", tmp_path / "t", "--algorithm", algorithm)
        assert done.exit_code == 19 and "Stable-Baselines3 is not installed" in done.output


def test_the_command_evaluates_what_ships_and_what_is_ones_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    task = f"{tmp_path / 'own.py'}:Sink"
    done = invoke("evaluate", SHIPPED, "StationKeeping", "--episodes", 20, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["episodes"] == 20 and found["low"] < found["success"] <= 1.0 and found["distance"] < 0.2
    done = invoke("evaluate", "pid", "StationKeeping", "--episodes", 20, "--option", "vary=0")
    assert done.exit_code == 0 and done.output.startswith(
        "success 100.0 % of 20 episodes (95 % interval 83.9 to 100.0 %)"
    )
    assert re.search(r", distance [0-9.e-]+ m, heading_error [0-9.e-]+ rad$", done.output.strip()), done.output
    done = invoke("evaluate", "random", task, "--episodes", 20, "--option", "depth=30")
    assert done.exit_code == 0 and re.search(r", north [0-9.e-]+ m$", done.output.strip()), done.output
    done = invoke(
        "evaluate", "random", "TeamLocalisation", "--episodes", 4, "--option", "members=2", "--option", "limit=5"
    )
    assert done.exit_code == 0 and re.search(r", error [0-9.]+ m, sigma [0-9.]+ m, heard", done.output), done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pid", "StationKeepin"), "unknown task 'StationKeepin'; did you mean 'StationKeeping'?"),
        (("pid", "absent.py:Sink"), "task 'absent.py:Sink': "),
        (("pid", "{}/own.py:Sinks"), "has no object 'Sinks'; did you mean 'Sink'?"),
        (("pid", "{}/own.py:number"), "is not a class"),
        (("random", "TeamLocalization"), "did you mean 'TeamLocalisation'?"),
        (("random", "TeamLocalisation", "--episodes", "4"), "must be a multiple of 5 members, got 4"),
        (("pid", "{}/own.py:Sink"), "the PID controller applies only to StationKeeping, Circle, Helix, Lemniscate"),
        (("pid", "{}/broken.py:Sink"), "ZeroDivisionError: division by zero (broken.py:1)"),
        (("pid", "StationKeeping", "--option", "hull=1"), "the task does not accept these options (hull=1)"),
        (("pid", "StationKeeping", "--option", "hulls"), "'hulls' must be NAME=VALUE"),
        (("absent.npz", "StationKeeping"), "neither a file or folder nor one of pid, random"),
        (("{}", "StationKeeping"), "does not contain a valid policy"),
        ((str(SHIPPED), "{}/own.py:Sink"), "the policy has 26 inputs"),
    ],
)
def test_mistakes_at_the_command_are_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "broken.py").write_text("1 / 0")
    done = invoke("evaluate", *(a.format(tmp_path) for a in arguments))
    assert done.exit_code not in (0, 130) and said in " ".join(done.output.split()), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
