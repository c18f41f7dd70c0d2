"""A small navigation filter for the exam, in plain NumPy: it needs no part of WaVeSim.

It reads the folders that `wavesim exam export` writes, and writes an estimate into each of them:

    wavesim exam export lbl one-way exam-data --seeds 3
    python examples/exam/own_filter.py exam-data
    wavesim exam score lbl exam-data --name own --out own.json

The filter dead-reckons with heading and speed through the water. Its states are the north and east coordinates, the
current, and the offset and rate of the clock in metres. It uses round trips and one-way travel times to known positions.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

GATE = 9.0  # largest squared innovation in units of its variance
WALK = 0.02  # error of dead reckoning in m/sqrt(s)


def table(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a CSV file; numbers are converted."""
    if not path.exists():
        return []
    with path.open() as file:
        rows = list(csv.DictReader(file))
    texts = {"vehicle", "node", "sender", "receiver"}
    return [{k: v if k in texts else float(v) for k, v in row.items()} for row in rows]


def paths(folder: Path, facts: dict[str, Any], vehicle: str) -> list[tuple[float, str, float, float, float]]:
    """Return the measured paths in order: time, node, length in m, its standard deviation, and the factor by which the
    clock offset changes the length (1, 0 or -1).
    """
    c, nodes = facts["sound_speed"], facts["nodes"]
    own = facts["vehicles"][vehicle]
    found = []
    for row in table(folder / "ranges.csv"):
        if row["vehicle"] == vehicle:
            middle = 0.5 * (row["query_time"] + row["time"])  # the range is the mean of both ways
            found.append((middle, row["node"], row["range"], 0.5 * c * own["timing_sigma"], 0.0))
    for row in table(folder / "one-way.csv"):
        if row["receiver"] == vehicle and row["sender"] in nodes:
            found.append((row["received"], row["sender"], row["length"], c * own["timing_sigma"], 1.0))
        elif row["sender"] == vehicle and row["receiver"] in nodes:
            sigma = c * nodes[row["receiver"]]["timing_sigma"]
            found.append((row["sent"], row["receiver"], row["length"], sigma, -1.0))
    return sorted(found)


def estimate(folder: Path, facts: dict[str, Any], vehicle: str) -> list[tuple[float, ...]]:
    """Return the rows of the estimate: time, north, east, depth, and standard deviations of north and east."""
    own, prior, c = facts["vehicles"][vehicle], facts["prior"], facts["sound_speed"]
    ahrs, speed = table(folder / f"{vehicle}-ahrs.csv"), table(folder / f"{vehicle}-speedlog.csv")
    depths, heard = table(folder / f"{vehicle}-ctd.csv"), paths(folder, facts, vehicle)
    depth_times, depth_values = [r["time"] for r in depths], [r["depth"] for r in depths]
    speed_times = [r["time"] for r in speed]
    surge, sway = [r["u"] for r in speed], [r["v"] for r in speed]
    x = np.array([*own["start"], 0.0, 0.0, 0.0, 0.0])
    sigma = (
        [own["start_sigma"]] * 2 + [prior["current_sigma"]] * 2 + [c * prior["clock_sigma"], c * prior["drift_sigma"]]
    )
    P, last, k, rows = np.diag(np.square(sigma)), ahrs[0]["time"], 0, []
    for a in ahrs:
        dt, last, heading = a["time"] - last, a["time"], a["heading"]
        u, v = (np.interp(a["time"], speed_times, s) for s in (surge, sway))
        F = np.eye(6)
        F[0, 2] = F[1, 3] = F[4, 5] = dt
        x = F @ x + dt * np.array(
            [u * np.cos(heading) - v * np.sin(heading), u * np.sin(heading) + v * np.cos(heading), 0, 0, 0, 0]
        )
        P = F @ P @ F.T + np.diag([WALK**2 * dt] * 2 + [0.0] * 4)
        depth = float(np.interp(a["time"], depth_times, depth_values))
        ahead, starboard, down = own["transducer"] or (0.0, 0.0, 0.0)
        arm = np.array(
            [
                ahead * np.cos(heading) - starboard * np.sin(heading),
                ahead * np.sin(heading) + starboard * np.cos(heading),
                down,
            ]
        )
        while k < len(heard) and heard[k][0] <= a["time"]:
            _, node, length, noise, clock = heard[k]
            k += 1
            away = np.array([x[0], x[1], depth]) + arm - facts["nodes"][node]["position"]
            distance = float(np.linalg.norm(away))
            H = np.array([away[0] / distance, away[1] / distance, 0.0, 0.0, clock, 0.0])
            across = float(P[0, 0] + P[1, 1] - H[:2] @ P[:2, :2] @ H[:2]) / distance  # second-order error
            S = float(H @ P @ H) + noise**2 + 0.1**2 + across**2
            innovation = length - distance - clock * x[4]
            if innovation**2 < GATE * S:
                gain = P @ H / S
                x = x + gain * innovation
                P = P - np.outer(gain, H @ P)
        rows.append((a["time"], x[0], x[1], depth, P[0, 0], P[0, 1], P[1, 1]))
    return rows


def main(folder: Path) -> None:
    """Write the estimates for all cases in a folder."""
    for path in sorted(folder.glob("*/exam.json")):
        facts = json.loads(path.read_text())
        scored = [v for v, known in facts["vehicles"].items() if known["scored"]]
        for vehicle in scored:
            name = f"estimate-{vehicle}.csv" if len(scored) > 1 else "estimate.csv"
            rows = estimate(path.parent, facts, vehicle)
            text = [",".join(f"{value:.6f}" for value in row) for row in rows]
            (path.parent / name).write_text("\n".join(["time,north,east,down,cov_nn,cov_ne,cov_ee", *text]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
