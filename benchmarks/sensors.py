"""Measure the cost of each emulator against the number of bodies, rays per second on every kind of sea bed, and latency
of a value.

python benchmarks/sensors.py [--against CHECKOUT]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import trimesh
from sensors_before import place

from wavesim_emulators.sensor_bank import SensorBank
from wavesim_sdk.attach import FleetSnapshot, SharedState
from wavesim_sdk.commander import Commander
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, IDENTITY, INSTRUMENTS, STATE, WEATHER
from wavesim_world.config import LoadedConfig, allow_files, load
from wavesim_world.ocean.scene import RaycastScene

WALLS = '<obstacles><block position="30 0 10 m" size="2 40 20 m"/><pier position="-20 10 10 m" radius="2 m" height="20 m"/></obstacles>'
HILLS = '<bed depth="40 m" slope_north="0.05"><bump height="-15 m" north="20 m" east="10 m" alpha="0.03 1/m" beta="0.04 1/m"/></bed>'

DYE = '<scalar name="dye"><gaussian peak="1" north="0 m" east="0 m" sigma_north="9 m" sigma_east="9 m"/></scalar>'
WORLD = HILLS + WALLS + DYE
COUNTS, FIVE = (1, 10, 100, 1000), -1
TICKS, TURNS = 8, 3
PAUSE_S = 5e-5  #: pause between two reads in s, because a reader without a pause would occupy a core
CLI = [sys.executable, "-m", "wavesim_sdk"]


def configuration(inner: str) -> LoadedConfig:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.xml"
        path.write_text(f"<wavesim>{inner}</wavesim>")
        return load(path)


class Fleet:
    """Return bodies about 30 m from each other that carry one sensor of a type, in ``suites`` different mountings."""

    def __init__(self, name: str, bodies: int, suites: int = 1) -> None:
        of = {e.name: e.load() for e in entry_points(group="wavesim.emulators")}[name]
        element = name.replace("_", "-")
        kinds = [f"<sensors><{element} send='no' position='{0.1 * k} 0 0 m'/></sensors>" for k in range(suites)]
        vehicles = "".join(
            f"<vehicle name='b{k}' model='lauv' position='0 0 5 m'>{kinds[k % suites]}</vehicle>" for k in range(bodies)
        )
        loaded = configuration(f"<world>{WORLD}</world><shared vehicles='{bodies}'/><fleet>{vehicles}</fleet>")
        identity, self.state = np.zeros(bodies, IDENTITY.dtype), np.zeros(bodies, STATE.dtype)
        identity["present"] = identity["generation"] = 1
        identity["name"], identity["model"] = [f"b{k}".encode() for k in range(bodies)], b"lauv"
        place(self.state)
        instruments = np.zeros(bodies, INSTRUMENTS.dtype)
        instruments["type"], instruments["name"], instruments["period"] = name.encode(), name.encode(), 1
        instruments["body"] = instruments["place"] = np.arange(bodies)
        instruments["generation"] = 1
        self.identity = identity
        self.tables = {
            "instruments": instruments,
            "actuation": np.zeros(bodies, ACTUATION.dtype),
            "weather": np.zeros(1, WEATHER.dtype),
        }
        self.station = SensorBank(of(loaded), 1, np.zeros(bodies, SENSORS[name].dtype))

    def best(self, ticks: int) -> float:
        """Return the seconds for one value of all bodies."""
        best, rows = np.inf, np.arange(len(self.state))
        for tick in range(ticks):
            view = FleetSnapshot(tick, tick * 4_000_000, rows, self.identity, self.state, self.tables, (1,))
            before = time.perf_counter()
            self.station.compute(view, tick)
            best = min(best, time.perf_counter() - before)
        return best


def emulators(against: Path | None) -> None:
    """Measure the emulators in ms. With another checkout, measure in turn and return the ratio of values per second."""
    print(f"{'ms per value of all bodies':28} {'1':>8} {'10':>8} {'100':>8} {'1000':>8} {'1000, five suites':>18}")
    for name in SENSORS:
        here = dict.fromkeys((*COUNTS, FIVE), np.inf)
        there = dict.fromkeys(COUNTS, np.inf)
        for _ in range(1 if against is None else TURNS):
            for n in COUNTS:
                here[n] = min(here[n], Fleet(name, n).best(TICKS))
            here[FIVE] = min(here[FIVE], Fleet(name, 1000, 5).best(TICKS))
            if against is not None:
                there = {n: min(there[n], t) for n, t in before(against, name).items()}
        print(f"{name:28}" + "".join(f" {here[n] * 1e3:8.2f}" for n in COUNTS) + f" {here[FIVE] * 1e3:18.2f}")
        if against is not None:
            shares = [there[n] / here[n] for n in COUNTS] + [there[1000] / here[FIVE]]
            print(
                f"{'    values/s, this / that':28}"
                + "".join(f" {x:8.2f}" for x in shares[:-1])
                + f" {shares[-1]:18.2f}"
            )


def before(checkout: Path, name: str) -> dict[int, float]:
    """Measure with the packages of another checkout."""
    path = os.pathsep.join(
        str(checkout / p) for p in ("broker_sdk", "kernels", "world", "devices", "conformance", "server", "emulators")
    )
    arguments = json.dumps({"world": WORLD, "names": [name], "counts": list(COUNTS), "ticks": TICKS})
    script = str(Path(__file__).with_name("sensors_before.py"))
    done = subprocess.run(
        [sys.executable, script, arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return {int(n): t for n, t in json.loads(done.stdout)[name].items()}


def bodies() -> None:
    """Measure the cost of other bodies for a beam: a multibeam of 64 beams and a single beam on each of 1000 bodies.
    Closer bodies cost more.
    """
    print(f"\n{'ms, 1000 bodies, apart by':28} {'300 m':>8} {'30 m':>8} {'10 m':>8} {'3 m':>8}")
    for name in ("echosounder", "dvl", "multibeam"):
        line = f"{name:28}"
        for apart in (300.0, 30.0, 10.0, 3.0):
            fleet = Fleet(name, 1000)
            fleet.state["p_WB_W"][:, :2] *= apart / 30.0
            line += f" {fleet.best(3) * 1e3:8.2f}"
        print(line)


def rays() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(size=(20_000, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    print("\nrays per second on one core")
    with tempfile.TemporaryDirectory() as folder, allow_files(folder):
        ball = Path(folder) / "ball.stl"
        trimesh.creation.icosphere(subdivisions=4, radius=8.0).export(str(ball))  # 5120 triangles
        mesh = f'<obstacles><mesh file="{ball}" position="20 0 12 m"/></obstacles>'
        worlds = {
            "flat bed": '<bed depth="40 m"/>',
            "hills": HILLS,
            "hills, wall, pier": HILLS + WALLS,
            "hills, mesh": HILLS + mesh,
        }
        scenes = {name: RaycastScene(configuration(f"<world>{world}</world>")) for name, world in worlds.items()}
    for name, scene in scenes.items():
        o = np.array([0.0, 0.0, 5.0]) + rng.uniform(-2, 2, (len(d), 3))
        best = np.inf
        for _ in range(3):
            before = time.perf_counter()
            scene.cast(o, d, 150.0)
            best = min(best, time.perf_counter() - before)
        print(f"{name:28} {len(d) / best:12.0f}")


def latency() -> None:
    """Measure the time from the publication of a tick to that of a due sensor value, as seen by a third process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.xml"
        body = '<vehicle name="v" model="lauv" position="0 0 10 m" client="none"/>'
        path.write_text(
            f'<wavesim name="latency{os.getpid()}"><time step="4 ms"/><fleet><sensors><ahrs rate="25 Hz"/></sensors>{body}</fleet></wavesim>'
        )
        name = load(path).config.name
        server = subprocess.Popen(
            [*CLI, "serve", str(path), "--port", "0", "--speed", "1"], stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        server.stderr.readline()
        emulator = subprocess.Popen([*CLI, "emulate", "ahrs", str(path), "-s", name], stderr=subprocess.DEVNULL)
        try:
            with Commander(name) as commander:
                commander.send("start")
            state = SharedState(name)
            limit = time.monotonic() + 60.0
            while not state.values("ahrs")["sequence"][0]:
                if time.monotonic() > limit:
                    raise SystemExit("the emulator did not start")
                time.sleep(0.05)
            found: list[float] = []
            while len(found) < 200:
                due = int(state.values("ahrs")["tick"][0]) + 10
                while int(state.clock()["tick"]) < due - 1:
                    time.sleep(0.0005)
                while int(state.clock()["tick"]) < due:
                    time.sleep(PAUSE_S)
                begun = time.perf_counter()
                while int(state.values("ahrs")["tick"][0]) < due:
                    time.sleep(PAUSE_S)
                found.append(time.perf_counter() - begun)
            cuts = statistics.quantiles(found, n=100)
            print(
                f"\nfrom tick to value, real time, ms: median {1e3 * cuts[49]:.2f}, p99 {1e3 * cuts[98]:.2f} (tick of 4 ms)"
            )
        finally:
            emulator.terminate()
            server.terminate()
            emulator.wait(10)
            server.wait(10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, help="checkout from before bodies had individual instruments")
    against = parser.parse_args().against
    emulators(against)
    bodies()
    rays()
    latency()


if __name__ == "__main__":
    main()
