"""Regenerate a published result on the simulated long baseline: the lowest dilution of precision of N ranges.

N. Levanon (2000), "Lowest GDOP in 2-D scenarios", IEE Proceedings - Radar, Sonar and Navigation 147 (3), 149-155: the
lowest geometric dilution of precision (GDOP) that ranges to N optimally located points attain is 2/sqrt(N), as at the
centre of a regular polygon. Here, a vehicle at rest queries N transponders on a circle. Each position follows from
one round of ranges by least squares. The GDOP is the rms error of the positions, divided by the standard deviation of a
range. The second column is the GDOP half-way between the centre and a transponder.

    python examples/studies/lbl_dilution.py [--out FILE] [--fixes 400]
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.acoustics import position_from_ranges
from wavesim_server import Simulation
from wavesim_world.config import load

RADIUS, DEPTH, C, TURN, TIMING = 200.0, 20.0, 1500.0, 0.015, 2e-4
SIGMA = 0.5 * C * TIMING  # standard deviation of a range in m
QUIET = '<inertia xx="1" yy="1" zz="1"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/>'


def polygon(n: int) -> Any:
    """Return the positions (n, 3) of transponders at the corners of a regular polygon, at the depth of the vehicle."""
    angle = 2.0 * np.pi * np.arange(n) / n
    return np.stack([RADIUS * np.cos(angle), RADIUS * np.sin(angle), np.full(n, DEPTH)], axis=1)


def configuration(n: int) -> str:
    """Return a configuration with n transponders and a vehicle on which no force acts."""
    ghost = f'<sphere diameter="0.1 m"/><mass value="1000 kg"/>{QUIET}<buoyancy volume="1 m3"/>'
    asker = f'<transducer threshold="60 dB" recharge="0 s" timing_noise="{TIMING * 1e6:g} us"/>'
    models = f'<model name="vehicle" type="underwater">{ghost}{asker}</model>'
    beacons = ""
    for k, (north, east, down) in enumerate(polygon(n)):
        answer = f'<transducer threshold="60 dB" recharge="0 s" query="21 kHz" reply="{22 + k} kHz" turn_around="{TURN * 1e3:g} ms"/>'
        models += f'<model name="beacon{k}" type="buoy">{ghost}{answer}</model>'
        beacons += f'<buoy name="b{k}" model="beacon{k}" position="{north:.6f} {east:.6f} {down} m"/>'
    return (
        f'<wavesim seed="7"><time step="20 ms"/><world density="1000 kg/m3"><bed depth="100 m"/></world>'
        f"<acoustics sound_speed='{C} m/s'/><models>{models}</models><fleet>{beacons}</fleet></wavesim>"
    )


def theory(n: int, place: tuple[float, float]) -> float:
    """Return the GDOP of ranges at a position: the root of the trace of the inverse of G^T G, with unit vectors G."""
    G = np.array([*place, DEPTH]) - polygon(n)
    G = G[:, :2] / np.linalg.norm(G, axis=1)[:, None]
    return float(np.sqrt(np.trace(np.linalg.inv(G.T @ G))))


def measured(n: int, place: tuple[float, float], fixes: int) -> float:
    """Return the rms error of simulated positions, divided by the standard deviation of a range."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.xml"
        path.write_text(configuration(n))
        simulation = Simulation(load(path))
    simulation.enter_residents()
    row = simulation.enter("auv", "vehicle", (*place, DEPTH))
    for k in range(fixes):
        simulation.ping(row, 21e3, at=500_000_000 + k * 1_000_000_000)
    simulation.advance(math.ceil((fixes + 2.0) / 0.02))
    sent, heard = simulation.take_signals()
    replies = heard[(heard["receiver"] == row) & (heard["outcome"] == 0)]
    errors = []
    for query in sent[sent["source"] == row]:
        mine = np.sort(replies[replies["query"] == query["id"]], order="source")
        if len(mine) != n:
            continue
        ranges = 0.5 * C * ((mine["reported_ns"] - int(query["emission_ns"])) * 1e-9 - TURN)
        fix = position_from_ranges(polygon(n), ranges, DEPTH, (place[0] + 3.0, place[1] - 3.0))
        if fix is not None:
            errors.append(float(np.hypot(fix[0] - place[0], fix[1] - place[1])))
    if len(errors) < fixes // 2:
        raise SystemExit(f"only {len(errors)} of {fixes} positions: replies collide")
    return float(np.sqrt(np.mean(np.square(errors)))) / SIGMA


def draw(rows: list[tuple[float, ...]], path: Path) -> None:
    """Draw the GDOP over the number of transponders."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    n = np.linspace(3.0, 8.0, 200)
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    axes.plot(n, 2.0 / np.sqrt(n), "-", color="0.45", label="2/sqrt(N), lowest possible (Levanon 2000)")
    axes.plot([r[0] for r in rows], [r[2] for r in rows], "o", label="simulated, at the centre")
    axes.plot(
        [r[0] for r in rows], [r[3] for r in rows], "x", color="0.45", label="geometry, half-way to a transponder"
    )
    axes.plot([r[0] for r in rows], [r[4] for r in rows], "s", mfc="none", label="simulated, half-way")
    axes.set_xlabel("number of transponders on the circle")
    axes.set_ylabel("GDOP (rms error / sigma of a range)")
    axes.set_ylim(0.6, None)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=140)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--fixes", type=int, default=400)
    a = parser.parse_args()
    rows = []
    print(f"{'N':>3} {'2/sqrt(N)':>10} {'simulated':>10} {'half-way':>10} {'simulated':>10}")
    for n in range(3, 9):
        aside = (0.5 * RADIUS, 0.0)
        rows.append(
            (n, 2.0 / math.sqrt(n), measured(n, (0.0, 0.0), a.fixes), theory(n, aside), measured(n, aside, a.fixes))
        )
        print(f"{n:3} " + " ".join(f"{x:10.4f}" for x in rows[-1][1:]))
    if a.out is not None:
        draw(rows, a.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
