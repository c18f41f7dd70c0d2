"""Runs for planar dead reckoning: measured accelerations, turn rate and commands of any vehicle, with a reference
track.

A run is a mission of a dataset, or a recorded run of a real vehicle: a CSV file with the columns ``time`` (s),
``force_x``, ``force_y`` (m/s2), ``rates_z`` (rad/s), ``north``, ``east`` (m, the reference track) and ``yaw`` (rad, of
the reference). Columns that begin with ``command_`` contain commands. ``heading`` (rad) is optional: the measured
heading. ``force_z``, ``rates_x``, ``rates_y``, ``roll`` and ``pitch`` are needed only for the filter.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import LogError
from wavesim_studies.navigation import dataset, logs
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.filter import FilterDesign, estimate

PERIOD = 0.1  #: period in s, as in the dissertation from which the forms come
COMMAND = "command_"  #: prefix of the names of columns that contain commands
SMOOTH_S = 1.0  #: duration in s over which a recorded track is fitted to obtain its velocity
REQUIRED = ("time", "force_x", "force_y", "rates_z", "north", "east", "yaw")
#: types of instruments that are withheld from the filter, so that it has no measurements of position or speed
AIDS = ("dvl", "speedlog", "gps", "uwb", "sound")
#: assumed noise of a recorded IMU and of its angles, for the filter: m/s/sqrt(s), rad/sqrt(s), rad
FORCE_NOISE, RATE_NOISE, ANGLE_SIGMA = 0.02, 1e-3, 0.02


@dataclass(frozen=True)
class PlanarRun:
    """One run at a constant period."""

    name: str
    part: str
    time: Array  #: times (T) in s
    measured: Array  #: means (T, 3) since the previous time: forward and starboard specific force, and turn rate
    commands: Array  #: commands (T, C), in the order of the names
    names: tuple[str, ...]  #: names (C) of the actuators that are commanded
    heading: Array  #: measured headings (T) in rad, NaN if not measured
    place: Array  #: reference positions (T, 2) in m
    velocity: Array  #: reference velocities over ground (T, 2) in B
    yaw: Array  #: reference yaw (T) in rad, without jumps
    #: positions (T, 2) that the reference filter estimates without any measured position or speed; empty if unknown
    filtered: Array = field(default_factory=lambda: np.zeros((0, 2)))

    @property
    def distance(self) -> float:
        """Length of the reference track in m."""
        return float(np.linalg.norm(np.diff(self.place, axis=0), axis=1).sum())


def _actuators(columns: list[str]) -> tuple[str, ...]:
    return tuple(k.removeprefix(COMMAND) for k in columns)


def velocity_of(time: Array, place: Array, yaw: Array) -> Array:
    """Return the velocities (T, 2) in B along a track. Each is the slope of a straight line that is fitted to the
    positions around that time.
    """
    half = max(round(0.5 * SMOOTH_S / float(np.median(np.diff(time)))), 1)
    found = np.empty_like(place)
    for k in range(len(time)):
        part = slice(max(k - half, 0), k + half + 1)
        t = time[part] - time[part].mean()
        found[k] = (t @ place[part]) / (t @ t)
    c, s = np.cos(yaw), np.sin(yaw)
    return np.stack([c * found[:, 0] + s * found[:, 1], c * found[:, 1] - s * found[:, 0]], axis=1)


def of_mission(folder: Path, name: str, entry: dict[str, Any], with_filter: bool) -> PlanarRun:
    """Return a mission of a dataset. Raise LogError if it has no IMU, or no valid values from it."""
    body, model = next(iter(entry["bodies"].items()))
    suite = {i.type: i for i in reversed(dataset.configuration(folder, name).suite_by_name(body, model))}
    if "imu" not in suite:
        raise LogError(f"{folder / name}: '{body}' needs an IMU for planar dead reckoning")
    state = dataset.table(folder, name, "truth", f"state.{body}")
    imu = dataset.valid_rows(folder, name, body, suite["imu"].name)
    actuation = dataset.table(folder, name, "seen", f"actuation.{body}")
    R_BS = frames.rotation(frames.quaternion(*suite["imu"].parameters.attitude))
    names = [f"{k}_{axis}" for k in ("force", "rates") for axis in "xyz"]
    values = np.stack([imu[k].astype(float) for k in names], axis=1)
    values = np.concatenate([values[:, :3] @ R_BS.T, values[:, 3:] @ R_BS.T], axis=1)
    t = state["time_ns"] * 1e-9
    at = np.arange(t[0], t[-1] + 1e-9, PERIOD)
    q = np.stack([state[f"q_WB_{axis}"] for axis in "wxyz"], axis=1)
    yaw = np.interp(at, t, np.unwrap(frames.euler(q)[:, 2]))
    v = np.stack([np.interp(at, t, state[f"v_WB_B_{axis}"]) for axis in "xy"], axis=1)
    p = np.stack([np.interp(at, t, state[f"p_WB_W_{axis}"]) for axis in "xy"], axis=1)
    if not (np.isfinite(v).all() and np.isfinite(p).all() and np.isfinite(yaw).all()):
        raise LogError(
            f"{folder / name}: the true states of '{body}' are not complete, so nothing can be learned from them"
        )
    ordered = sorted(k for k in actuation if k.startswith(COMMAND))
    commands = np.stack([actuation[k].astype(float) for k in ordered], axis=1)
    heading = np.full(len(at), np.nan)
    if "ahrs" in suite:
        ahrs = dataset.valid_rows(folder, name, body, suite["ahrs"].name)
        heading = np.interp(at, ahrs["time_ns"] * 1e-9, np.unwrap(ahrs["heading"].astype(float)))
    filtered = np.zeros((0, 2))
    if with_filter:
        case = logs.estimation_case(dataset.log(folder, name, body, model), body, AIDS)
        track = case.run().at(case.lever)
        filtered = np.stack([np.interp(at, case.time, track[:, k]) for k in (0, 1)], axis=1) - p[0]
    measured = _means(imu["time_ns"] * 1e-9, values[:, [0, 1, 5]], at)
    return PlanarRun(
        name,
        str(entry["part"]),
        at,
        measured,
        _held(t, commands, at),
        _actuators(ordered),
        heading,
        p - p[0],
        v,
        yaw,
        filtered,
    )


def of_csv(path: Path, part: str) -> PlanarRun:
    """Return a recorded run. Raise LogError if the file is invalid."""
    try:
        with path.open(newline="") as file:
            rows = csv.reader(file)
            header = [h.strip() for h in next(rows, [])]
            table = np.array([[float(cell) for cell in row] for row in rows if row], float)
    except (OSError, ValueError, UnicodeDecodeError, csv.Error) as error:
        raise LogError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if missing := [name for name in REQUIRED if name not in header]:
        raise LogError(f"{path} has no column '{missing[0]}'; required: {', '.join(REQUIRED)}")
    if len(table) < 20 or table.shape[1] != len(header) or not np.isfinite(table).all():
        raise LogError(f"{path} needs at least 20 rows of {len(header)} finite numbers")
    columns = dict(zip(header, table.T, strict=True))
    t = columns["time"]
    if not (np.diff(t) > 0.0).all() or t[-1] - t[0] < 20.0 * PERIOD:
        raise LogError(f"{path}: times must increase and cover at least {20.0 * PERIOD:g} s")
    at = np.arange(t[0], t[-1] + 1e-9, PERIOD)
    yaw = np.interp(at, t, np.unwrap(columns["yaw"]))
    p = np.stack([np.interp(at, t, columns[k]) for k in ("north", "east")], axis=1)
    measured = _means(t, np.stack([columns[k] for k in ("force_x", "force_y", "rates_z")], axis=1), at)
    names = sorted(k for k in header if k.startswith(COMMAND))
    commands = _held(t, np.stack([columns[k] for k in names], axis=1) if names else np.zeros((len(t), 0)), at)
    heading = np.interp(at, t, np.unwrap(columns["heading"])) if "heading" in columns else np.full(len(at), np.nan)
    velocity = velocity_of(at, p, yaw)
    run = PlanarRun(path.stem, part, at, measured, commands, _actuators(names), heading, p - p[0], velocity, yaw)
    extra = ("force_z", "rates_x", "rates_y", "roll", "pitch", "heading")
    return run if not all(k in columns for k in extra) else _with_filter(run, columns)


def _with_filter(run: PlanarRun, columns: dict[str, Array]) -> PlanarRun:
    """Return a recorded run with the track of the reference filter, which uses the IMU and its angles."""
    t = columns["time"]
    names = [f"{k}_{axis}" for k in ("force", "rates") for axis in "xyz"]
    imu = np.stack([t, *(columns[k] for k in names)], axis=1)
    design = FilterDesign(gyro_noise=RATE_NOISE, accelerometer_noise=FORCE_NOISE, accelerometer_walk=1e-4)
    angles = np.stack([columns[k] for k in ("roll", "pitch", "heading")], axis=1)
    q = frames.quaternion(*angles[0])
    v = frames.rotation(q) @ [*run.velocity[0], 0.0]
    begin = design.start(float(t[0]), np.zeros(3), v, q, [0.05, 0.1, ANGLE_SIGMA, 0.01, 0.1])
    row = make.angles(0.0, dict.fromkeys(make.ANGLE, 0.0), ANGLE_SIGMA)
    level = make.each(make.depth(0.0, 0.0, 0.05, sensor=1), t[1:], np.zeros(len(t) - 1))  # a boat stays at the surface
    rows = np.concatenate([make.each(row, t[1:], angles[1:]), level])
    track = estimate(design, begin, imu[1:], rows, run.time[1:])
    filtered = np.concatenate([np.zeros((1, 2)), track.p[:, :2]])
    return PlanarRun(**{**run.__dict__, "filtered": filtered})


def _held(t: Array, x: Array, at: Array) -> Array:
    """Return the newest values (T, k) at the given times."""
    return np.asarray(x[np.clip(np.searchsorted(t, at + 1e-9, side="right") - 1, 0, None)])


def _means(t: Array, x: Array, at: Array) -> Array:
    """Return, for each of the given times, the means (T, k) of the samples since the previous time."""
    last = np.searchsorted(t, at + 1e-9, side="right")
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    first = np.concatenate([[0], last[:-1]])
    found = (sums[last] - sums[first]) / np.maximum(last - first, 1)[:, None]
    empty = last == first
    found[empty] = _held(t, x, at)[empty]
    return np.asarray(found)
