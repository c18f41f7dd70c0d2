"""The recorded runs of the model boat as a folder to import, and simulations of them by the recorded rudder commands."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.studies import boat
from wavesim_sdk import frames
from wavesim_studies.navigation import lab_logs
from wavesim_world.config import load_text

Array = Any
MAP = """<import vehicle="boat" origin="13 80 deg">
<sensors><imu rate="100 Hz"/></sensors>
<table file="imu.csv" sensor="imu" columns="time=t force=ax,ay,az rates=wx,wy,wz"/>
<table file="odometry.csv" sensor="truth" columns="time=t"/>
</import>"""
#: factors that a fit of the yaw rate of run a found: damping of yaw by yaw rate and by sway, rudder
FITTED = {"N_r": 3.55, "N_v": 1.31, "N_d1": 0.92}
DELAY_S = 0.3  #: delay between rudder command and rudder in the recording
SHIPPED: dict[str, float] = {}
#: standard deviations of what the recording does not tell about the start: heading in rad, speed in m/s, position in m
START = (math.radians(3.0), 0.05, 0.1)


def _read(path: Path) -> dict[str, Array]:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = [k for k in rows[0] if k not in ("actuator_values", "actuator_names", "covariance")]
    return {k: np.array([int(r[k]) if k == "t_ns" else float(r[k]) for r in rows]) for k in numbers}


def recorded(run: Path, folder: Path) -> tuple[Path, Path]:
    """Write the IMU and the track of a run as CSV files with an import map. Return folder and map.

    Time 0 is the first rudder command. The track has the positions of the odometry and the heading of the IMU, because the
    odometry's heading and rates contradict the gyro.
    """
    folder.mkdir(parents=True, exist_ok=True)
    imu, odometry = _read(run / "sookshma_00_imu_data.csv"), _read(run / "sookshma_00_odometry.csv")
    zero = _read(run / "mav_rudder_command.csv")["t_ns"][0]
    t = np.linspace(imu["t_ns"][0] - zero, imu["t_ns"][-1] - zero, len(imu["t_ns"])) * 1e-9  # reception times jitter
    columns = ("ax", "ay", "az", "wx", "wy", "wz")
    table = np.stack([t, *(imu[k] for k in columns)], axis=1)
    np.savetxt(folder / "imu.csv", table, delimiter=",", header=",".join(("t", *columns)), comments="")
    heading = np.unwrap(frames.euler(np.stack([imu[k] for k in ("qw", "qx", "qy", "qz")], axis=1))[:, 2])
    at = (odometry["t_ns"] - zero) * 1e-9
    inside = (at >= max(t[0], 0.0)) & (at <= t[-1])
    track = np.stack([at, odometry["x"], odometry["y"], np.interp(at, t, heading)], axis=1)[inside]
    np.savetxt(folder / "odometry.csv", track, delimiter=",", header="t,north,east,heading", comments="")
    (folder / "map.xml").write_text(MAP)
    return folder, folder / "map.xml"


def simulated(run: Path, folder: Path, seeds: Sequence[int], factors: dict[str, float], delay: float) -> list[Path]:
    """Simulate a run with the recorded rudder commands, ``delay`` s late, once for each seed. The derivatives of the shipped model
    are multiplied by ``factors``. Each seed starts at another position, heading and speed near the recorded ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out = recorded(run, folder / "recorded")[0]
    track = np.loadtxt(out / "odometry.csv", delimiter=",", skiprows=1)
    rudder = _read(run / "mav_rudder_command.csv")
    t = (rudder["t_ns"] - rudder["t_ns"][0]) * 1e-9
    seconds = math.floor(min(t[-1], track[-1, 0]))
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        turn, way = START[0] * rng.standard_normal(), START[1] * rng.standard_normal()
        north, east = track[0, 1:3] + START[2] * rng.standard_normal(2)
        text = boat.configuration(boat.SENSORS.format(rate=5.0), seed, heading=math.degrees(track[0, 3] + turn))
        text = text.replace('position="0 0 0 m" attitude', f'position="{north:.3f} {east:.3f} 0 m" attitude')
        text = text.replace('speed="0.5 m/s" client', f'speed="{0.5 + way:.3f} m/s" client')
        for name, factor in factors.items():
            before = text.partition(f'<derivative name="{name}" value="')[2].partition('"')[0]
            text = text.replace(f'"{name}" value="{before}"', f'"{name}" value="{factor * float(before):.9g}"')

        def program(time: float, state: Any, dt: float) -> dict[str, float]:
            k = max(int(np.searchsorted(t, time - delay, side="right")) - 1, 0)
            return {"rudder": float(np.clip(rudder["data"][k], -0.61, 0.61)), "t": boat.DRAG}

        path = folder / f"seed-{seed}.mcap"
        lab_logs.record(load_text(text), "boat", path, seconds, seed, program, every=0.02, state=0.1)
        found.append(path)
    return found
