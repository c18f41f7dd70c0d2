"""Measure the cost of echoes from a bed that is not level, and from a moving surface, compared with a level bed under a
flat surface in the same run.

    python -m benchmarks.echoes [--pings 20]

A sender pings. One, ten and a hundred nodes on still bodies, 100 to 800 m away, receive the signal directly and by up
to two bounces. The result is the processor time of ticks with a live signal, less that of as many silent ticks, per
emission and node. Beds alternate with every ping, so that all of them meet the same load. `waves` is the level bed under
a moving surface with waves of Hs 1 m.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from wavesim_server.simulation import Simulation
from wavesim_world.config import allow_files, load_text

TICKS, DEPTH = 100, 60.0  #: ticks of 20 ms that a signal lives; m
BUMP = '<bump height="-6 m" north="260 m" east="0 m" alpha="0.011 1/m" beta="0.005 1/m"/>'
PROFILE = "0 1520\n15 1519\n25 1508\n40 1500\n60 1500.5\n120 1502\n"


def beds(folder: Path) -> dict[str, str]:
    x = np.arange(-1000.0, 1001.0, 25.0)
    rows = [f"{u} {v} {DEPTH + 0.01 * u - 6.0 * math.exp(-((0.011 * (u - 260.0)) ** 2))}" for u in x for v in x]
    (folder / "s.xyz").write_text("\n".join(rows))
    return {
        "level": f'<bed depth="{DEPTH} m"/>',
        "plane": f'<bed depth="{DEPTH} m" slope_north="0.01" slope_east="0.02"/>',
        "hill": f'<bed depth="{DEPTH} m" slope_north="0.01">{BUMP}</bed>',
        "soundings": f'<soundings file="{folder / "s.xyz"}"/>',
        "waves": f'<bed depth="{DEPTH} m"/><waves height="1 m" peak="0.9 rad/s"/>',
    }


def made(folder: Path, bed: str, sound: str, nodes: int) -> Simulation:
    """Return a sea with a sender in the middle and this many nodes around it, on a spiral."""
    surface = "moving" if "<waves" in bed else "flat"
    sim = Simulation(
        load_text(
            f"<wavesim><time step='20 ms'/><world density='1000 kg/m3'>{bed}</world>"
            f"<acoustics ambient_noise='20 dB' absorption='0.005 dB/m' {sound}><multipath order='2' surface='{surface}'/></acoustics>"
            f"<shared vehicles='{nodes + 1}' signals='64'/><log faded='no'/>"
            "<models><model name='n' type='buoy'><sphere diameter='0.1 m'/><mass value='1000 kg'/><inertia xx='1' yy='1' zz='1'/>"
            "<buoyancy volume='1 m3'/><added-mass diagonal='0 0 0 0 0 0'/><linear-drag diagonal='0 0 0 0 0 0'/>"
            "<quadratic-drag diagonal='0 0 0 0 0 0'/><transducer source_level='200 dB' threshold='60 dB' listen_low='1 kHz' "
            "listen_high='99 kHz' recharge='0 s'/></model></models></wavesim>"
        )
    )
    sim.enter("a", "n", (0.0, 0.0, 12.0))
    for k in range(nodes):
        far, bearing = 100.0 + 700.0 * (k + 0.5) / nodes, 2.4 * k
        sim.enter(f"b{k}", "n", (far * math.cos(bearing), far * math.sin(bearing), 10.0 + 25.0 * (k % 7) / 6.0))
    return sim


def spent(sim: Simulation, ping: bool) -> float:
    """Return the processor time in s of the ticks of a signal."""
    if ping:
        sim.ping(0, 25e3)
    before = time.process_time()
    sim.advance(TICKS)
    after = time.process_time() - before
    sim.take_signals()
    return after


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pings", type=int, default=20)
    pings = parser.parse_args().pings
    with tempfile.TemporaryDirectory() as name, allow_files(name):
        folder = Path(name)
        (folder / "c.txt").write_text(PROFILE)
        ground = beds(folder)
        for sound in ("profile='constant'", f"profile='file' file='{folder / 'c.txt'}'"):
            print(f"{'one sound speed' if 'constant' in sound else 'a profile of six knots'}: us per emission and node")
            print(
                f"{'nodes':>6}"
                + "".join(f"{b:>12}" for b in ground)
                + "   over the level bed: "
                + ", ".join(list(ground)[1:])
            )
            for nodes in (1, 10, 100):
                sims = {b: made(folder, xml, sound, nodes) for b, xml in ground.items()}
                costs: dict[str, list[float]] = {b: [] for b in ground}
                for k in range(pings + 1):
                    for b, sim in sims.items():
                        silent = spent(sim, False)
                        if k:  # the first is for warming up
                            costs[b].append((spent(sim, True) - silent) / nodes * 1e6)
                        else:
                            spent(sim, True)
                us = {b: float(np.median(c)) for b, c in costs.items()}
                ratios = ", ".join(f"{us[b] / us['level']:.2f}" for b in list(ground)[1:])
                print(f"{nodes:6d}" + "".join(f"{us[b]:12.1f}" for b in ground) + f"   {ratios}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
