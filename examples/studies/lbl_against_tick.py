"""Study how much of the error of a long-baseline position comes from the simulator's time step.

A vehicle on a circle queries four beacons every four seconds. Its position follows from the four two-way ranges by
least squares, without any instrument noise. The study compares this simulator's times with times rounded up to the next
tick, as simulators report them if they process sound once per tick. It prints a table and draws
docs/images/lbl-against-tick.png.

    python examples/studies/lbl_against_tick.py [--out FILE] [--ticks 1 4 20 100]
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

BEACONS = np.array([[-250.0, -250.0, 30.0], [-250.0, 250.0, 32.0], [250.0, 250.0, 28.0], [250.0, -250.0, 31.0]])
RADIUS, SPEED, DEPTH, C, TURN = 120.0, 2.0, 15.0, 1500.0, 0.015
QUIET = '<inertia xx="1" yy="1" zz="1"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/>'


def configuration(tick_ms: float) -> str:
    """Return a configuration with four transponders, and a vehicle that moves in a circle without any forces."""
    ghost = f'<sphere diameter="0.1 m"/><mass value="1000 kg"/>{QUIET}<buoyancy volume="1 m3"/>'
    asker = '<transducer threshold="60 dB" recharge="0 s"/>'
    models = f'<model name="vehicle" type="underwater">{ghost}{asker}</model>'
    beacons = ""
    for k, (n, e, d) in enumerate(BEACONS):
        answer = f'<transducer threshold="60 dB" recharge="0 s" query="25 kHz" reply="{26 + k} kHz" turn_around="{TURN * 1e3:g} ms"/>'
        models += f'<model name="beacon{k}" type="buoy">{ghost}{answer}</model>'
        beacons += f'<buoy name="b{k}" model="beacon{k}" position="{n} {e} {d} m"/>'
    return (
        f'<wavesim><time step="{tick_ms} ms"/><world density="1000 kg/m3"><bed depth="100 m"/></world>'
        f"<acoustics sound_speed='{C} m/s'/><models>{models}</models><fleet>{beacons}</fleet></wavesim>"
    )


def on_circle(t: float) -> Any:
    """Return the position of the vehicle on its circle."""
    a = SPEED * t / RADIUS
    return np.array([RADIUS * math.sin(a), RADIUS * (1.0 - math.cos(a)), DEPTH])


def errors(tick_ms: float, fixes: int) -> tuple[Any, Any]:
    """Return the horizontal errors of the fixes in m: with exact times, and with times rounded up to the tick."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.xml"
        path.write_text(configuration(tick_ms))
        simulation = Simulation(load(path))
    simulation.enter_residents()
    row = simulation.enter("auv", "vehicle", (0.0, 0.0, DEPTH))
    simulation.set_pose(row, velocity=(SPEED, 0.0, 0.0, 0.0, 0.0, SPEED / RADIUS))
    simulation.fleet.override_parameters(row, dict.fromkeys(_inverse_mass(), 0.0))
    for k in range(fixes):
        simulation.ping(row, 25e3, at=1_000_000_000 + k * 4_000_000_000)
    simulation.advance(math.ceil((fixes * 4.0 + 2.0) * 1e3 / tick_ms))
    sent, heard = simulation.take_signals()
    replies = heard[(heard["receiver"] == row) & (heard["outcome"] == 0)]
    exact, rounded = [], []
    for query in sent[sent["source"] == row]:
        mine = np.sort(replies[replies["query"] == query["id"]], order="source")
        if len(mine) != len(BEACONS):
            continue
        asked = int(query["emission_ns"])
        arrivals = mine["arrival_ns"].astype(float)
        tick = tick_ms * 1e6
        for times, out in ((arrivals, exact), (np.ceil(arrivals / tick - 1e-9) * tick, rounded)):
            ranges = 0.5 * C * ((times - asked) * 1e-9 - TURN)
            # a range belongs to the middle of its flight: the position at that time is the truth
            middle = (asked + arrivals) * 0.5e-9
            truth = np.mean([on_circle(t) for t in middle], axis=0)
            moved = [
                float(np.linalg.norm(on_circle(t) - b) - np.linalg.norm(truth - b))
                for t, b in zip(middle, BEACONS, strict=True)
            ]
            fix = position_from_ranges(BEACONS, ranges - moved, DEPTH, (truth[0] + 5.0, truth[1] - 5.0))
            if fix is not None:
                out.append(float(np.hypot(*(fix - truth)[:2])))
    return np.array(exact), np.array(rounded)


def _inverse_mass() -> range:
    from wavesim_server.dynamics import parameter_rows as P

    return range(P.MASS_INVERSE, P.MASS_INVERSE + 36)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--ticks", type=float, nargs="+", default=[1, 2, 4, 10, 20, 50, 100])
    parser.add_argument("--fixes", type=int, default=80)
    a = parser.parse_args()
    rows = []
    print(f"{'tick':>8} {'exact times: rms':>18} {'rounded to the tick: rms':>26} {'max':>9}")
    for tick in a.ticks:
        exact, rounded = errors(tick, a.fixes)
        rms = float(np.sqrt(np.mean(exact**2))), float(np.sqrt(np.mean(rounded**2)))
        rows.append((tick, *rms))
        print(f"{tick:5.0f} ms {rms[0] * 1e3:15.4f} mm {rms[1]:24.3f} m {rounded.max():7.2f} m")
    if a.out is not None:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(6.4, 3.8))
        x = [r[0] for r in rows]
        axes.loglog(x, [r[2] for r in rows], "s--", color="0.45", label="arrival times rounded to the tick")
        axes.loglog(x, [r[1] for r in rows], "o-", label="exact times inside the tick (WaVeSim)")
        axes.axhline(0.015, color="tab:red", lw=0.8, ls=":")
        axes.text(x[0], 0.018, "accuracy of LBL equipment: 15 mm", color="tab:red", fontsize=8)
        axes.set_xlabel("tick of the simulation, ms")
        axes.set_ylabel("rms error of an LBL fix, m")
        axes.set_title("Four beacons, 500 m square, no instrument noise", fontsize=10)
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False, loc="center right")
        figure.tight_layout()
        figure.savefig(a.out, dpi=140)
    return 0


if __name__ == "__main__":
    sys.exit(main())
