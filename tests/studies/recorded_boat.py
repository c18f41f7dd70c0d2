"""The recorded runs of the model boat as tables for planar dead reckoning."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from tests.studies.boat import DRAG
from wavesim_sdk import frames

Array = Any
COLUMNS = [
    "time",
    "force_x",
    "force_y",
    "force_z",
    "rates_x",
    "rates_y",
    "rates_z",
    "roll",
    "pitch",
    "heading",
    "yaw",
    "north",
    "east",
    "command_rudder",
    "command_t",
]


def _read(path: Path) -> dict[str, Array]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, Array] = {}
    for name in rows[0]:
        if name not in ("actuator_values", "actuator_names", "covariance"):
            found[name] = np.array([int(r[name]) if name == "t_ns" else float(r[name]) for r in rows])
    return found


def write(folder: Path, out: Path) -> Path:
    """Write one table at 50 Hz. Times of the IMU are those of reception, which jitter; its samples are taken as regular. The reference
    is the odometry, which the boat's filter made of UWB and IMU; the reference yaw is that of the IMU, whose magnetometer measures it.
    The propeller turned at 800 rpm throughout; its command is the thrust that holds the simulated boat at the same speed.
    """
    imu, odometry = _read(folder / "sookshma_00_imu_data.csv"), _read(folder / "sookshma_00_odometry.csv")
    rudder = _read(folder / "mav_rudder_command.csv")
    begin = max(imu["t_ns"][0], odometry["t_ns"][0], rudder["t_ns"][0])
    end = min(imu["t_ns"][-1], odometry["t_ns"][-1], rudder["t_ns"][-1])
    t = np.linspace(imu["t_ns"][0] - begin, imu["t_ns"][-1] - begin, len(imu["t_ns"])) * 1e-9
    angles = frames.euler(np.stack([imu[k] for k in ("qw", "qx", "qy", "qz")], axis=1))
    at = np.arange(0.0, (end - begin) * 1e-9, 0.02)
    sums = {k: np.concatenate([[0.0], np.cumsum(imu[k])]) for k in ("ax", "ay", "az", "wx", "wy", "wz")}
    last = np.searchsorted(t, at, side="right")
    first = np.searchsorted(t, at - 0.02, side="right")
    columns = [(sums[k][last] - sums[k][first]) / np.maximum(last - first, 1) for k in sums]
    roll, pitch, yaw = (np.interp(at, t, np.unwrap(angles[:, k])) for k in range(3))
    op = [np.interp(at, (odometry["t_ns"] - begin) * 1e-9, odometry[k]) for k in ("x", "y")]
    held = rudder["data"][np.clip(np.searchsorted((rudder["t_ns"] - begin) * 1e-9, at, side="right") - 1, 0, None)]
    table = np.stack([at, *columns, roll, pitch, yaw, yaw, *op, held, np.full(len(at), DRAG)], axis=1)
    np.savetxt(out, table, delimiter=",", header=",".join(COLUMNS), comments="")
    return out
