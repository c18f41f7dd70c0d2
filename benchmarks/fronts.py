"""Measure the cost of fronts at hydrophones: processor time per front, by water, number of paths and of elements.

    python -m benchmarks.fronts [--rounds 5]

A pinger sends without a pause, so that fronts leave every 20 ms, and a hydrophone listens. The kernel of the
hydrophones is called for one tick after the other; the minimum of the rounds is divided by the number of fronts.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from wavesim_server import Simulation, tick
from wavesim_server.acoustics import front_arrays, medium_arrays
from wavesim_world.config import load_text

TICKS = 250
TEXT = """<wavesim><time step="20 ms"/><shared vehicles="4"/>{water}<fleet>
<vehicle name="source" model="lauv" position="0 0 20 m" speed="1 m/s"><transducer source_level="190 dB" pulse="10 s" recharge="0 s"/></vehicle>
<vehicle name="listener" model="lauv" position="400 0 30 m"><sensors><hydrophone>{elements}</hydrophone></sensors></vehicle>
</fleet></wavesim>"""
IMAGES = '<world><bed depth="60 m"/></world><acoustics><multipath order="{order}"/></acoustics>'
LAYERS = (
    '<world><bed depth="60 m"/><temperature surface="19 C" knee_1="14 m" knee_2="29 m" gradient_1="-0.3 C/m" '
    'gradient_2="-0.02 C/m"/></world><acoustics profile="water" formula="chen-millero"><multipath order="2"/></acoustics>'
)
WATERS = {
    "images, 1 path": IMAGES.format(order=0),
    "images, 5 paths": IMAGES.format(order=2),
    "layers": LAYERS,
}


def run(water: str, elements: int) -> tuple[float, int]:
    """Return (processor time in s, number of fronts) of the kernel over all ticks."""
    inner = "".join(f'<element position="{0.05 * k} 0 0 m"/>' for k in range(elements))
    sim = Simulation(load_text(TEXT.format(water=water, elements=inner)))
    sim.enter_residents()
    sim.ping(0, 25e3, duration=10.0)
    took, count = 0.0, 0
    step = sim.step_ns * 1e-9
    for n in range(1, TICKS + 1):
        sim.contacts.sort_rows()
        while code := _call(tick.advance_acoustics, sim, n, step):
            _make_room(sim, code)
        table = sim.tick_executor.packed_state()
        start = time.process_time_ns()
        code = tick.advance_hydrophones(table, n, (n - 1) * step, n * step)
        took += (time.process_time_ns() - start) * 1e-9
        while code:
            _make_room(sim, code)
            code = _call(tick.advance_hydrophones, sim, n, step)
        sim.channel.collect()
        sim.tick = n
        count += len(sim.take_fronts().fronts)
    return took, count


def _call(kernel: Any, sim: Simulation, n: int, step: float) -> int:
    return int(kernel(sim.tick_executor.packed_state(), n, (n - 1) * step, n * step))


def _make_room(sim: Simulation, code: int) -> None:
    if code == front_arrays.GROW_FRONTS:
        sim.channel.grow_fronts()
        return
    if code == medium_arrays.GROW:
        sim.channel.grow()
    sim.channel.collect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    for name, water in WATERS.items():
        for elements in (1, 4, 8):
            results = [run(water, elements) for _ in range(rounds)]
            took, count = min(results)
            print(f"{name:16} {elements} elements: {1e6 * took / count:7.2f} us per front, {count} fronts", flush=True)


if __name__ == "__main__":
    main()
