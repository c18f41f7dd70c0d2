"""Measure processor time of a tick with lines, compared with as many LAUVs, by segments and substeps. `python -m
benchmarks.lines`.
"""

from __future__ import annotations

import time

from wavesim_server.simulation import Simulation
from wavesim_world.config import load_text

LINES, TICKS, SERIES = 50, 400, 5
LINE = """<line name="l{k}" length="30 m" diameter="10 mm" mass="0.3 kg/m" stiffness="50 kN" segments="{n}" substeps="{steps}">
<end position="{x} 0 40 m"/><end position="{x} 20 25 m"/></line>"""


def world(lines: str, bodies: str) -> Simulation:
    """Return a world with fifty lines or bodies."""
    text = (
        f"<wavesim><world><bed depth='100 m'/></world><shared vehicles='64'/><fleet>{bodies}{lines}</fleet></wavesim>"
    )
    sim = Simulation(load_text(text))
    sim.enter_residents()
    sim.advance(TICKS)
    return sim


def cost(sim: Simulation) -> float:
    """Return the processor time of a tick in us, the minimum of several series."""
    found = []
    for _ in range(SERIES):
        before = time.process_time()
        sim.advance(TICKS)
        found.append((time.process_time() - before) / TICKS)
    return 1e6 * min(found)


def main() -> None:
    """Print the table of docs/evidence/performance.md."""
    empty = cost(world("", ""))
    vehicles = "".join(f"<vehicle name='v{k}' model='lauv' position='{9 * k} 0 50 m'/>" for k in range(LINES))
    vehicle = (cost(world("", vehicles)) - empty) / LINES
    print(f"empty tick {empty:.2f} us; a LAUV {vehicle:.3f} us per tick")
    print("| segments | substeps | us per line and tick | ns per segment and substep | LAUVs |\n|---|---|---|---|---|")
    for segments, steps in ((5, 4), (10, 4), (20, 4), (40, 6), (64, 9), (20, 16), (20, 64)):
        lines = "".join(LINE.format(k=k, n=segments, steps=steps, x=9 * k) for k in range(LINES))
        one = (cost(world(lines, "")) - empty) / LINES
        print(f"| {segments} | {steps} | {one:.2f} | {1e3 * one / segments / steps:.0f} | {one / vehicle:.1f} |")


if __name__ == "__main__":
    main()
