"""Measure the cost of the acoustic medium against nodes, live signals and arrivals, compared with a pairwise twin in the same
run.

    python benchmarks/acoustics.py [--picture FILE]

Nodes drift on straight lines at up to 2 m/s in a square whose size determines how many receive a signal. The pairwise
twin works like many simulators: in each tick it compares every live signal with every node.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_server import array_tables
from wavesim_server.acoustics import medium, medium_setup
from wavesim_server.acoustics import medium_arrays as medium_memory
from wavesim_world.config import load
from wavesim_world.ocean.water import Water

STEP_NS = 4_000_000
WARM_S = 6.0
C = 1500.0


def world(nodes: int, reach: float) -> Any:
    """Return a medium with silent water up to ``reach`` and nodes that all have the same type of transducer."""
    level = 20.0 * math.log10(reach) + 0.005 * reach + 60.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.xml"
        path.write_text(
            f"<wavesim><time step='4 ms'/><acoustics ambient_noise='60 dB'/><log faded='no'/>"
            f"<shared vehicles='{nodes}' signals='4096'/><models><model name='n' type='buoy'><sphere diameter='1 m'/>"
            f"<mass value='1 kg'/><inertia xx='1' yy='1' zz='1'/><added-mass diagonal='0 0 0 0 0 0'/><linear-drag diagonal='0 0 0 0 0 0'/><transducer source_level='{level:.3f} dB' threshold='60 dB' "
            f"listen_low='1 kHz' listen_high='99 kHz' recharge='0 s'/></model></models></wavesim>"
        )
        return load(path)


def pulse(acoustics: Any, level: float) -> Any:
    """Return the benchmark signal: 10 ms at 25 kHz."""
    wanted = medium_memory.make_record(medium_memory.EMISSION)
    p = wanted[0]
    p.frequency, p.source_level, p.duration, p.band, p.query_source = 25e3, level, 0.01, 200.0, -1
    p.absorption, p.noise = medium_setup.carrier_conditions(acoustics, 0.0, 25e3, 200.0)
    return wanted


@kernel
def drift(places: Any, start: Any, speed: Any, tick: int, h: float) -> None:
    """Move all nodes along straight lines."""
    after = places[tick & 1]
    for j in range(start.shape[0]):
        place = after[j]
        place.x, place.y = start[j, 0] + speed[j, 0] * tick * h, start[j, 1] + speed[j, 1] * tick * h
        place.z = start[j, 2] + speed[j, 2] * tick * h
        place.vx, place.vy, place.vz = speed[j, 0], speed[j, 1], speed[j, 2]


@kernel
def pairwise(origins: Any, times: Any, done: Any, places: Any, now: float, reach: float) -> int:
    """Compare every live signal with every node: which nodes has the wavefront passed since the last tick?"""
    heard = 0
    for s in range(origins.shape[0]):
        radius = C * (now - times[s])
        if radius < 0.0 or radius > reach + 20.0:
            continue
        for j in range(places.shape[0]):
            place = places[j]
            dx, dy, dz = place.x - origins[s, 0], place.y - origins[s, 1], place.z - origins[s, 2]
            if not done[s, j] and dx * dx + dy * dy + dz * dz <= radius * radius:
                done[s, j] = True
                heard += 1
    return heard


def measure(
    nodes: int, live: int, side: float, reach: float, seconds: float = 4.0, twin: bool = True
) -> dict[str, float]:
    """Return the mean cost per tick while about ``live`` signals are travelling."""
    loaded = world(nodes, reach)
    model = loaded.model("n")
    assert model.transducer is not None
    t = model.transducer
    m = medium_setup.make_medium(loaded, Water(loaded), nodes, STEP_NS * 1e-9, 4096, 65536)
    rng = np.random.default_rng(1)
    start = np.column_stack([rng.uniform(0, side, (nodes, 2)), rng.uniform(5, 100, nodes)])
    speed = np.column_stack([rng.uniform(-2, 2, (nodes, 2)), np.zeros(nodes)])
    for j in range(nodes):
        installed = medium_setup.InstalledTransducer(t, j + 1, (0.0, 0.0))
        medium_setup.set_node(m, loaded.config.acoustics, j, installed, -1.0)
        m.places["qw"][:, j] = 1.0
    sound = array_tables.address_table(m)
    scene = _flat()
    drift(m.places, start, speed, 0, STEP_NS * 1e-9)
    rate = live / (reach / C)  # signals live as long as they can be heard
    wanted = pulse(loaded.config.acoustics, t.source_level)
    cost = emitted = 0.0
    arrived, lives, ticks = 0, 0, 0
    origins, times = np.zeros((8192, 3)), np.full(8192, 1e9)
    done = np.zeros((8192, nodes), bool)
    twin_cost, twin_ticks, sent = 0.0, 0, 0
    first = int(WARM_S * 1e9 / STEP_NS)
    last = first + int(seconds * 1e9 / STEP_NS)
    for tick in range(1, last + 1):
        begin, end = (tick - 1) * STEP_NS * 1e-9, tick * STEP_NS * 1e-9
        while emitted < rate * begin:
            emitted += 1.0
            j = int(rng.integers(nodes))
            while not medium.request_emission(sound, j, begin, wanted):
                m = medium_memory.grow_medium(m)
                sound = array_tables.address_table(m)
            place = m.places[(tick - 1) & 1, j]
            origins[sent % 8192], times[sent % 8192], done[sent % 8192] = (place.x, place.y, place.z), begin, False
            done[sent % 8192, j] = True
            sent += 1
        before = time.perf_counter()
        drift(m.places, start, speed, tick, STEP_NS * 1e-9)
        moved = time.perf_counter()
        while (code := medium.advance(sound, scene, tick, begin, end, nodes)) != medium_memory.OK:
            if code == medium_memory.GROW:
                m = medium_memory.grow_medium(m)
                sound = array_tables.address_table(m)
            else:
                arrived += int(m.counters[0].receptions)
                m.counters[0].receptions = m.counters[0].sent = 0
        spent = time.perf_counter() - moved
        arrived += int(m.counters[0].receptions)
        m.counters[0].receptions = m.counters[0].sent = 0
        if tick > first:
            cost, ticks = cost + spent + (moved - before), ticks + 1
            lives += int(m.counters[0].live)
            if twin and tick % 50 == 0:
                use = min(sent, 8192)
                pairwise(origins[:use], times[:use], done, m.places[tick & 1], end, reach)
                before = time.perf_counter()
                pairwise(origins[:use], times[:use], done, m.places[tick & 1], end, reach)
                twin_cost, twin_ticks = twin_cost + time.perf_counter() - before, twin_ticks + 1
        else:
            arrived = 0
    arrivals = arrived / ticks
    return {
        "nodes": nodes,
        "live": lives / ticks,
        "arrivals": arrivals,
        "us": cost / ticks * 1e6,
        "twin_us": twin_cost / twin_ticks * 1e6 if twin_ticks else math.nan,
    }


def _flat() -> medium.AcousticScene:
    """Return a scene without obstacles over a level bed at 1000 m."""
    from wavesim_server.seabed import BedParameters, SoundingsMesh

    empty = np.zeros((0, 3), np.int64)
    bed = BedParameters(np.array([1000.0, 0.0, 0.0]), np.zeros((0, 5)), 0.0, False)
    mesh = SoundingsMesh(np.zeros((0, 3)), empty, empty)
    return medium.AcousticScene(np.zeros((0, 17)), bed, mesh, np.zeros(1, np.int64))


def memory(emissions: int = 100_000) -> tuple[int, int]:
    """Return the size of the medium in bytes after a tenth and after all of many emissions."""
    loaded = world(50, 1500.0)
    t = loaded.model("n").transducer
    assert t is not None
    m = medium_setup.make_medium(loaded, Water(loaded), 50, STEP_NS * 1e-9)
    rng = np.random.default_rng(2)
    for j in range(50):
        installed = medium_setup.InstalledTransducer(t, j + 1, (0.0, 0.0))
        medium_setup.set_node(m, loaded.config.acoustics, j, installed, -1.0)
        place = m.places[:, j]
        place["x"], place["y"] = rng.uniform(0, 1000, 2)
        place["z"], place["qw"] = 20.0, 1.0
    sound = array_tables.address_table(m)
    scene = _flat()
    wanted = pulse(loaded.config.acoustics, 120.0)
    sizes = []
    for tick in range(1, emissions // 2 + 1):
        begin, end = (tick - 1) * STEP_NS * 1e-9, tick * STEP_NS * 1e-9
        for j in rng.integers(0, 50, 2):
            while not medium.request_emission(sound, j, begin, wanted):
                m = medium_memory.grow_medium(m)
                sound = array_tables.address_table(m)
        while (code := medium.advance(sound, scene, tick, begin, end, 50)) != medium_memory.OK:
            if code == medium_memory.GROW:
                m = medium_memory.grow_medium(m)
                sound = array_tables.address_table(m)
            m.counters[0].receptions = m.counters[0].sent = 0
        m.counters[0].receptions = m.counters[0].sent = 0
        if tick in (emissions // 20, emissions // 2):
            sizes.append(sum(v.nbytes for v in m))
    return sizes[0], sizes[1]


def picture(path: Path, rows: list[list[dict[str, float]]]) -> None:
    """Draw the cost against nodes, signals and arrivals."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True)
    for axis, series, key, label in zip(
        axes, rows, ("nodes", "live", "arrivals"), ("nodes", "live signals", "arrivals per tick"), strict=True
    ):
        x = [r[key] for r in series]
        axis.loglog(x, [r["us"] for r in series], "o-", label="this medium")
        axis.loglog(x, [r["twin_us"] for r in series], "s--", color="0.5", label="every pair, every tick")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("us per tick of 4 ms")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", type=Path)
    a = parser.parse_args()
    head = f"{'nodes':>6} {'live':>7} {'arrivals/tick':>14} {'us/tick':>9} {'pairwise':>10} {'ratio':>7}"
    plans = {
        "against nodes (1000 live signals that reach 5 km; 0.4 nodes/km2)": [
            (n, 1000, 1000.0 * math.sqrt(n / 0.4), 5000.0) for n in (100, 300, 1000, 3000, 10000)
        ],
        "against live signals (1000 nodes)": [(1000, k, 50e3, 5000.0) for k in (10, 30, 100, 300, 1000, 3000)],
        "against arrivals (1000 nodes, 1000 live signals, smaller and smaller seas)": [
            (1000, 1000, side, 5000.0) for side in (200e3, 100e3, 50e3, 25e3, 12e3, 5e3)
        ],
    }
    measure(10, 10, 1000.0, 2000.0, 0.4)
    rows: list[list[dict[str, float]]] = []
    for title, plan in plans.items():
        print(title, head, sep="\n")
        rows.append([])
        for nodes, live, side, reach in plan:
            r = measure(nodes, live, side, reach, 2.0 if nodes > 1000 else 4.0)
            rows[-1].append(r)
            print(
                f"{r['nodes']:6.0f} {r['live']:7.0f} {r['arrivals']:14.1f} {r['us']:9.1f} {r['twin_us']:10.1f} "
                f"{r['twin_us'] / r['us']:7.1f}"
            )
    early, late = memory()
    print(f"memory of the medium after 10 000 and 100 000 emissions: {early} and {late} bytes")
    if a.picture is not None:
        picture(a.picture, rows)


if __name__ == "__main__":
    main()
