"""Measure learning environments: steps per second compared with the bare kernel, scores of baselines, and the training
of a policy.

python -m benchmarks.learning [speed] [own] [beside] [shells] [teams] [scores] [train]

``train`` needs Stable-Baselines3. It trains five policies, each in about half a minute of processor time; to keep a
policy, use `wavesim learn train`.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server import Simulation
from wavesim_server.dynamics import integrators
from wavesim_server.dynamics.bodies import BodyArrays, ModelArrays
from wavesim_studies.learning.baselines import Pid, RandomPolicy
from wavesim_studies.learning.core import Core
from wavesim_studies.learning.custom_core import make_core
from wavesim_studies.learning.env import VectorTaskEnv
from wavesim_studies.learning.evaluation import UNSEEN, evaluate_core
from wavesim_studies.learning.tasks import TASKS
from wavesim_studies.learning.training import TrainingSettings
from wavesim_world.config import load_text

COPIES = 4096


def cost(act: Callable[[], object], times: int = 20) -> float:
    """Return the processor time in ns for each copy and step."""
    start = time.process_time()
    for _ in range(times):
        act()
    return (time.process_time() - start) / times / COPIES * 1e9


def speed() -> None:
    """Measure the variants in turn and print medians of nine."""
    actions = np.random.default_rng(1).uniform(-1.0, 1.0, (COPIES, 6)).astype(np.float32)
    first = np.random.default_rng(2).normal(size=(32, 64)).astype(np.float32)[:26]
    second, third = (np.random.default_rng(3).normal(size=s).astype(np.float32) for s in ((64, 64), (64, 6)))
    cores = {
        "all of it": Core("StationKeeping", COPIES),
        "without noise": Core("StationKeeping", COPIES, noise=0.0),
        "64 hulls": Core("StationKeeping", COPIES, hulls=1.0),
        "4 substeps": Core("StationKeeping", COPIES, substeps=4),
    }
    for core in cores.values():
        core.seed(1)
        core.reset_copies()
        core.step(actions)
    envs = VectorTaskEnv("StationKeeping", COPIES, autoreset_mode="SameStep")
    envs.reset(seed=1)
    f = cores["without noise"].fleet
    blocks = f.blocks.copy()
    turn = np.arange(len(blocks))
    bodies = BodyArrays(blocks, np.zeros(0, np.int64), f.heads, f.params)
    acts: dict[str, Callable[[], object]] = {
        "bare kernel, one RK4 step": lambda: integrators.step_all(
            bodies, ModelArrays(f.kinds, f.tables), turn, f.work, 0.05, integrators.RK4
        ),
        **{name: lambda core=core: core.step(actions) for name, core in cores.items()},  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        "Gymnasium's vector": lambda: envs.step(actions),
        "a policy of 2 x 64": lambda: np.tanh(np.tanh(cores["all of it"].outputs.observation @ first) @ second) @ third,
    }
    found: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(9):
        for name, act in acts.items():
            found[name].append(cost(act))
    bare = median(found["bare kernel, one RK4 step"])
    for name, values in found.items():
        ns = median(values)
        print(
            f"{name:28} {ns:7.0f} ns a copy and step, {1e3 / ns:6.2f} M/s, {ns / bare:5.2f} of the bare kernel (best {min(values):.0f} ns)"
        )


def own() -> None:
    """Measure the custom tasks from the examples and a built-in task alternately: steps per second of processor time,
    the best and the median of nine series.
    """
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "studies"))
    of_numpy, of_numba = (importlib.import_module(name) for name in ("own_tasks", "compiled_task"))
    cores: dict[str, Any] = {
        "StationKeeping, built in": Core("StationKeeping", COPIES),
        "StationKeeping, 2 substeps": Core("StationKeeping", COPIES, substeps=2),
        "DepthAndHeading, NumPy": make_core(of_numpy.DepthAndHeading, COPIES),
        "DepthAndHeading, Numba": make_core(of_numba.CompiledDepthAndHeading, COPIES),
        "Waypoints, NumPy": make_core(of_numpy.Waypoints, COPIES),
        "CourseLine, NumPy": make_core(of_numpy.CourseLine, COPIES),
    }
    draw_ = np.random.default_rng(1)
    actions = {name: draw_.uniform(-1.0, 1.0, (COPIES, c.actions)).astype(np.float32) for name, c in cores.items()}
    found: dict[str, list[float]] = {name: [] for name in cores}
    for name, core in cores.items():
        core.seed(1)
        core.reset_copies()
        core.step(actions[name])
    for _ in range(9):
        for name, core in cores.items():
            found[name].append(cost(lambda c=core, a=actions[name]: c.step(a)))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    for name, values in found.items():
        print(
            f"{name:28} {1e3 / min(values):5.2f} M steps/s (best), {1e3 / median(values):5.2f} (median), "
            f"{min(values):5.0f} ns per copy and step"
        )


def shells() -> None:
    """Measure the adapters for installed packages: steps per second of processor time, and ratio to the time of the
    core; medians of nine.
    """
    from wavesim_sdk.errors import WaveSimError

    actions = np.random.default_rng(1).uniform(-1.0, 1.0, (COPIES, 6)).astype(np.float32)
    core = Core("StationKeeping", COPIES)
    core.seed(1)
    core.reset_copies()
    acts: dict[str, Callable[[], object]] = {"core": lambda: core.step(actions)}
    for name, kind in (("sb3", "VecEnv"), ("puffer", "Puffer")):
        try:
            envs = getattr(importlib.import_module(f"wavesim_studies.learning.{name}"), kind)("StationKeeping", COPIES)
        except WaveSimError as error:
            print(f"{name}: {error}")
            continue
        envs.reset()
        acts[name] = lambda envs=envs: envs.step(actions)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    found: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(9):
        for name, act in acts.items():
            found[name].append(cost(act))
    for name, values in found.items():
        ns = median(values)
        print(f"{name:8} {1e9 / ns:12.0f} steps/s, {ns / median(found['core']):5.2f} times the time of the core")


def beside() -> None:
    """Measure Gymnasium's vectors of MuJoCo (`pip install 'gymnasium[mujoco]'`) in turn with ours: steps per second,
    medians of seven.
    """
    import gymnasium

    core, actions = Core("StationKeeping", COPIES), np.zeros((COPIES, 6), np.float32)
    core.seed(1)
    core.reset_copies()
    core.step(actions)
    others = {name: gymnasium.make_vec(name, num_envs=16) for name in ("HalfCheetah-v5", "Ant-v5")}
    found: dict[str, list[float]] = {"StationKeeping": [], **{name: [] for name in others}}
    for envs in others.values():
        envs.reset(seed=1)
    for _ in range(7):
        found["StationKeeping"].append(1e9 / cost(lambda: core.step(actions)))
        for name, envs in others.items():
            action, start = envs.action_space.sample(), time.process_time()
            for _ in range(30):
                envs.step(action)
            found[name].append(30 * 16 / (time.process_time() - start))
    ours = median(found["StationKeeping"])
    for name, values in found.items():
        print(f"{name:16} {median(values):12.0f} steps/s of processor time, ours / it {ours / median(values):7.1f}")


def teams() -> None:
    """Measure vectors of teams in which each member sends at random in 18 % of the steps: team steps per second of
    processor time, the best of nine series. Alternate with the engine alone (`Simulation`), which has the same motion,
    commands and packets, but no filters, observations or rewards.
    """
    from wavesim_studies.learning.team_core import VectorLocalisation, configuration
    from wavesim_studies.learning.team_tables import CONTROL_S, INTERVALS, SEND_VALUE

    def advance_vector(vector: VectorLocalisation, actions: Array) -> None:
        for given in actions:
            vector.step(given)

    random, substeps = np.random.default_rng(1), 4
    acts: dict[str, tuple[int, Callable[[], object]]] = {}
    for count, members, steps in (
        (1, 5, 4),
        (16, 5, 4),
        (256, 5, 4),
        (1024, 5, 4),
        (256, 2, 4),
        (256, 20, 4),
        (256, 5, 2),
    ):
        vector = VectorLocalisation(count, members, substeps=steps)
        actions = random.uniform(-1.0, 1.0, (16, count, members, vector.actions)).astype(np.float32)
        actions[..., SEND_VALUE] = np.where(random.random(actions.shape[:-1]) < 0.184, 1.0, -1.0)
        vector.reset(1)

        name = f"{count} teams of {members}, {1e3 * CONTROL_S / steps:.0f} ms"
        acts[name] = 16 * count, partial(advance_vector, vector, actions)
    sim = Simulation(load_text(configuration(5, substeps)))
    rows = [sim.enter(f"m{k}") for k in range(5)]

    def advance() -> None:
        for row in rows:
            if random.random() < 0.184:
                sim.send(row, bytes(12))
        for _ in range(INTERVALS):
            for row in rows:
                rudder = random.uniform(-0.4, 0.4)
                sim.command(row, {"propeller": 6.0, "rudder-top": rudder, "rudder-bottom": rudder})
            sim.advance(substeps)
        sim.take_signals()

    acts["Simulation, 1 team of 5, 50 ms"] = 1, advance
    found: dict[str, list[float]] = {name: [] for name in acts}
    for _, act in acts.values():
        act()
    for _ in range(9):
        for name, (steps, act) in acts.items():
            times, start = max(1, 2000 // steps), time.process_time()
            for _ in range(times):
                act()
            found[name].append((time.process_time() - start) / times / steps)
    for name, values in found.items():
        print(
            f"{name:32} {1.0 / min(values):8.0f} steps/s, {1e6 * min(values):7.1f} us (median {1e6 * median(values):.1f} us)"
        )


def scores() -> None:
    """Score the baselines over 300 episodes of each task."""
    for task in TASKS:
        for name, vary in (("as in the book", 0.0), ("varied", 1.0)):
            core = Core(task, 300, vary=vary)
            for policy in (Pid(core), RandomPolicy(core)):
                print(f"{task:16} {name:15} {type(policy).__name__:12} {evaluate_core(core, policy, UNSEEN)}")


def train(seeds: int = 5) -> None:
    """Train policies for station keeping with different seeds. Print the cost of each training and its score over
    unseen episodes, beside that of the PID controller.
    """
    from wavesim_studies.learning.training import train as run

    for seed in range(1, seeds + 1):
        settings = TrainingSettings(seed=seed)
        with tempfile.TemporaryDirectory() as folder:
            result = run("StationKeeping", Path(folder), settings)
        cost = f"{result.processor_seconds:.1f} s of processor time, {result.seconds:.1f} s"
        print(f"seed {seed}: {result.samples} samples, {cost}; {result.evaluation}", flush=True)
    core = Core("StationKeeping", 300)
    print("PID:", evaluate_core(core, Pid(core), UNSEEN))


if __name__ == "__main__":
    parts = {f.__name__: f for f in (speed, own, beside, shells, teams, scores, train)}
    for name in sys.argv[1:] or ("speed", "scores"):
        parts[name]()
