"""Learned dead reckoning: a network estimates a vehicle's velocity from the IMU, the attitude, the pressure and the
commands.

The network is trained on missions with known true states, and tested on whole missions that were not used in training.

A dense network predicts how the velocity through water, in the body frame, changes within a step. Its inputs are the
previous estimate of the velocity and the values from the instruments. To compute the track, the velocity is rotated to
the world frame with the attitude of the AHRS, and integrated. In training, random errors are added to the true previous
velocity. As a result, the network learns to return to the velocity that thrust, rudder and turning imply, so that
errors do not accumulate. On board, only a Doppler log can measure a current.

The results are compared with the reference filter, with and without a Doppler log, and with dead reckoning at a
constant speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import LogError, WaveSimError
from wavesim_studies.navigation import dataset, logs
from wavesim_studies.navigation.planar_runs import AIDS
from wavesim_studies.neural_networks import Adam, DenseNetwork, are_layers, forward, load
from wavesim_world.ocean.water import depth_of_pressure

LAGS = (1.0, 3.0, 9.0)  #: time constants in s with which the commands are smoothed for the network
DEPTH_S = 2.0  #: interval in s over which the change of pressure is computed
WRONG = 0.15  #: standard deviation in m/s of the error that is added to the previous velocity in training
SIZES = (64, 64)
BATCH = 1024


@dataclass(frozen=True)
class TrainingMission:
    """One mission, sampled at the times of its true states: the inputs for a learner, and the true values for
    training.
    """

    name: str
    part: str
    time: Array  #: times (T) in s
    inputs: Array  #: inputs (T, F) of the network
    R_WB: Array  #: attitude (T, 3, 3) from the AHRS
    velocity: Array  #: true velocity through water (T, 3) in B
    place: Array  #: true position (T, 3) in W


def _before(columns: dataset.Columns, at: Array, names: list[str]) -> Array:
    """Return the newest values (T, k) at the given times (ns). For times before the first value, return the first
    value.
    """
    k = np.clip(np.searchsorted(columns["time_ns"], at, side="right") - 1, 0, None)
    return np.stack([columns[n][k].astype(float) for n in names], axis=1)


def _mean(columns: dataset.Columns, at: Array, names: list[str]) -> Array:
    """Return, for each of the given times, the means (T, k) of the values since the previous time."""
    k = np.searchsorted(columns["time_ns"], at, side="right")
    sums = np.concatenate([np.zeros((1, len(names))), np.cumsum(np.stack([columns[n] for n in names], axis=1), axis=0)])
    first = np.concatenate([[0], k[:-1]])
    n = np.maximum(k - first, 1)[:, None]
    found = (sums[k] - sums[first]) / n
    found[k == first] = _before(columns, at, names)[k == first]
    return np.asarray(found)


def _smoothed(x: Array, dt: float, lag: float) -> Array:
    """Return the columns of x (T, k), filtered by a first-order lag."""
    found, share = x.copy(), 1.0 - np.exp(-dt / lag)
    for k in range(1, len(x)):
        found[k] = found[k - 1] + share * (x[k] - found[k - 1])
    return found


def mission(folder: Path, name: str, entry: dict[str, Any]) -> TrainingMission:
    """Return a mission from a dataset. Raise LogError if it lacks valid values from an IMU or an AHRS.

    Without a pressure sensor (a boat needs none), the change of pressure is not an input.
    """
    body, model = next(iter(entry["bodies"].items()))
    loaded = dataset.configuration(folder, name)
    suite = {i.type: i for i in reversed(loaded.suite_by_name(body, model))}
    pressure = next((k for k in ("ctd", "pressure") if k in suite), "")
    if not {"imu", "ahrs"} <= suite.keys():
        raise LogError(
            f"{folder / name}: '{body}' needs an IMU and an AHRS for learning; planar forms need only an IMU"
        )
    state = dataset.table(folder, name, "truth", f"state.{body}")
    at = state["time_ns"].astype(np.int64)
    dt = float(np.median(np.diff(at))) * 1e-9
    seen = {k: dataset.valid_rows(folder, name, body, suite[k].name) for k in ("imu", "ahrs", pressure) if k}
    actuation = dataset.table(folder, name, "seen", f"actuation.{body}")
    R_BS = frames.rotation(frames.quaternion(*suite["imu"].parameters.attitude))
    force, rates = (_mean(seen["imu"], at, [f"{k}_{axis}" for axis in "xyz"]) @ R_BS.T for k in ("force", "rates"))
    angles = _before(seen["ahrs"], at, ["roll", "pitch", "heading"])
    R = frames.rotation(frames.quaternion(*angles.T))
    sinking = np.zeros((len(at), 1 if pressure else 0))
    if pressure:
        depth = depth_of_pressure(loaded.config.world, _before(seen[pressure], at, ["pressure"]))
        lag = max(round(DEPTH_S / dt), 1)
        sinking[lag:] = (depth[lag:] - depth[:-lag]) / (lag * dt)
    commands = _before(actuation, at, [k for k in actuation if k.startswith("command_")])
    free = force + loaded.config.world.gravity * R[:, 2, :]
    columns = [free, rates, R[:, 2, :2], sinking, commands, *(_smoothed(commands, dt, s) for s in LAGS)]
    v, p = (np.stack([state[f"{k}_{axis}"] for axis in "xyz"], axis=1) for k in ("v_FB_B", "p_WB_W"))
    if not (np.isfinite(v).all() and np.isfinite(p).all()):
        raise LogError(
            f"{folder / name}: the true states of '{body}' are not complete, so nothing can be learned from them"
        )
    return TrainingMission(name, str(entry["part"]), at * 1e-9, np.concatenate(columns, axis=1), R, v, p)


@dataclass(frozen=True)
class DeadReckoningNetwork:
    """A trained network with the scaling of its inputs."""

    parameters: list[Array]
    centre: Array
    scale: Array
    spread: Array  #: scale of the velocity increments that the network predicts

    def velocity(self, m: TrainingMission) -> Array:
        """Return the velocities (T, 3) in B, starting from the true velocity."""
        found = np.empty((len(m.time), 3))
        found[0] = m.velocity[0]
        x = ((m.inputs - self.centre[3:]) / self.scale[3:]).astype(np.float32)
        for k in range(1, len(found)):
            own = (found[k - 1] - self.centre[:3]) / self.scale[:3]
            seen = np.concatenate([own, x[k]]).astype(np.float32)
            found[k] = found[k - 1] + self.spread * forward(self.parameters, seen)
        return found

    def save(self, path: Path) -> None:
        """Write the network to a .npz file."""
        try:
            np.savez(path, self.centre, self.scale, self.spread, *self.parameters)
        except OSError as error:
            raise WaveSimError(f"cannot write {path}: {error.strerror}") from None

    @classmethod
    def load(cls, path: Path) -> DeadReckoningNetwork:
        """Read a network from a .npz file. Raise WaveSimError if the file is invalid."""
        (centre, scale, spread, *parameters), _ = load(path, "network", 3)
        if not are_layers(parameters):
            raise WaveSimError(f"{path} does not contain a valid network: its arrays are not the layers of one network")
        return cls(parameters, centre, scale, spread)


def track(m: TrainingMission, velocity: Array) -> Array:
    """Return the positions (T, 3) that result from integrating a velocity in B with the attitudes of the AHRS.

    The integration starts at the true initial position and uses the trapezoidal rule.
    """
    flow = np.einsum("tij,tj->ti", m.R_WB, velocity)
    steps = 0.5 * (flow[1:] + flow[:-1]) * np.diff(m.time)[:, None]
    return np.asarray(m.place[0] + np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)]))


def train(
    missions: list[TrainingMission],
    epochs: int = 60,
    seed: int = 1,
    shuffled: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> DeadReckoningNetwork:
    """Train a network on the `train` split of a dataset. Return the network from the epoch with the smallest error on
    the `validation` split.

    With ``shuffled``, the true states are assigned to random times, so that the network can learn only their mean; this
    network serves as a baseline.
    """
    random = np.random.default_rng(seed)
    mine = [m for m in missions if m.part == "train"]
    if not mine:
        raise LogError("the dataset has no training missions")
    judges = [m for m in missions if m.part == "validation"] or mine
    seen, now = np.concatenate([m.inputs[1:] for m in mine]), np.concatenate([m.velocity[1:] for m in mine])
    last = np.concatenate([m.velocity[:-1] for m in mine])
    if shuffled:
        now = now[random.permutation(len(now))]
    centre = np.concatenate([now.mean(axis=0), seen.mean(axis=0)])
    scale = np.maximum(np.concatenate([now.std(axis=0), seen.std(axis=0)]), 1e-6)
    spread = np.full(3, WRONG)
    inputs = ((seen - centre[3:]) / scale[3:]).astype(np.float32)
    network = DenseNetwork((inputs.shape[1] + 3, *SIZES, 3), random, 0.1)
    adam = Adam(network.parameters, 2e-3)
    best, least, rate = [p.copy() for p in network.parameters], np.inf, adam.rate
    for epoch in range(epochs):
        adam.rate = rate * (1.0 - 0.95 * epoch / epochs)
        order = random.permutation(len(inputs))
        for first in range(0, len(order), BATCH):
            at = order[first : first + BATCH]
            before = last[at] + WRONG * random.standard_normal((len(at), 3))
            x = np.concatenate([(before - centre[:3]) / scale[:3], inputs[at]], axis=1).astype(np.float32)
            error = network(x) - ((now[at] - before) / spread).astype(np.float32)
            adam.apply(network.gradients((error / len(at)).astype(np.float32)))
        made = DeadReckoningNetwork([p.copy() for p in network.parameters], centre, scale, spread)
        loss = float(np.median([np.linalg.norm((track(m, made.velocity(m)) - m.place)[-1, :2]) for m in judges]))
        say(f"epoch {epoch + 1} of {epochs}: median final error on the validation missions {loss:.1f} m")
        if loss < least:
            least, best = loss, made.parameters
    return DeadReckoningNetwork(best, centre, scale, spread)


@dataclass(frozen=True)
class MissionErrors:
    """Horizontal errors of a method on one mission: final error and RMS error, in m."""

    mission: str
    distance: float
    final: dict[str, float]
    rms: dict[str, float]
    velocity: dict[str, float]  #: RMS error of the velocity through water in m/s, for methods that estimate it


def evaluate(
    folder: Path, missions: list[TrainingMission], reckoners: dict[str, DeadReckoningNetwork], part: str = "test"
) -> list[MissionErrors]:
    """Evaluate every method on each mission in one split of the dataset.

    The methods are the given networks, `filter` (without a Doppler log), `doppler` (filter with a Doppler log) and
    `constant` (constant speed).
    """
    mine = [m for m in missions if m.part == "train"] or missions
    usual = np.concatenate([m.velocity for m in mine]).mean(axis=0)
    index, rows = dataset.missions(folder), []
    for m in (m for m in missions if m.part == part):
        body, model = next(iter(index[m.name]["bodies"].items()))
        log, off = dataset.log(folder, m.name, body, model), dict[str, Array]()
        for name, without in (("filter", AIDS), ("doppler", tuple(k for k in AIDS if k != "dvl"))):
            voyage = logs.estimation_case(log, body, without)
            off[name] = (voyage.run().at(voyage.lever) - voyage.p)[:, :2]
        said = {
            "constant": np.broadcast_to(usual, m.velocity.shape),
            **{k: r.velocity(m) for k, r in reckoners.items()},
        }
        off |= {k: (track(m, v) - m.place)[:, :2] for k, v in said.items()}
        wrong = {k: float(np.sqrt(np.mean(np.sum((v - m.velocity) ** 2, axis=1)))) for k, v in said.items()}
        way = float(np.linalg.norm(np.diff(m.place[:, :2], axis=0), axis=1).sum())
        far = {k: np.linalg.norm(v, axis=1) for k, v in off.items()}
        final, rms = (
            {k: float(v[-1]) for k, v in far.items()},
            {k: float(np.sqrt(np.mean(v * v))) for k, v in far.items()},
        )
        rows.append(MissionErrors(m.name, way, final, rms, wrong))
    return rows


def summary(rows: list[MissionErrors]) -> dict[str, dict[str, float]]:
    """Return the median of each quantity over the missions, for each method.

    The quantities are the final error (m, % of distance), the RMS error (m), the velocity error (m/s), and the RMS
    error divided by the RMS error of the filter.
    """
    return {
        k: {
            "final": float(np.median([r.final[k] for r in rows])),
            "percent": float(np.median([100.0 * r.final[k] / r.distance for r in rows])),
            "rms": float(np.median([r.rms[k] for r in rows])),
            "of_filter": float(np.median([r.rms[k] / r.rms["filter"] for r in rows])),
            "velocity": float(np.median([r.velocity.get(k, np.nan) for r in rows])),
        }
        for k in rows[0].final
    }


def learn(
    folder: Path, epochs: int = 60, seed: int = 1, shuffle: bool = True, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Train on a dataset and evaluate on its unseen missions.

    Return the trained network, the errors on each mission (``rows``), their summary, the number of missions in each
    split, and the training time in seconds.
    """
    start = time.perf_counter()
    index = dataset.missions(folder)
    found = [mission(folder, name, entry) for name, entry in index.items()]
    parts = {p: sum(m.part == p for m in found) for p in ("train", "validation", "test")}
    if not parts["train"] or not parts["test"]:
        raise LogError(f"{folder} has {parts['train']} training missions and {parts['test']} test missions; add more")
    reckoner = train(found, epochs, seed, say=say)
    trained = time.perf_counter() - start
    reckoners = {"learned": reckoner}
    if shuffle:
        reckoners["shuffled"] = train(found, max(epochs // 5, 1), seed, shuffled=True)
    rows = evaluate(folder, found, reckoners)
    return {"reckoner": reckoner, "rows": rows, "summary": summary(rows), "missions": parts, "seconds": trained}
