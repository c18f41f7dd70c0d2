"""Cost of each emulator against the number of bodies, rays per second on every kind of sea bed, latency of a value.

python benchmarks/sensors.py
"""

from __future__ import annotations

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

from wavesim_emulators.base import no_faults
from wavesim_sdk.attach import SharedState, Snapshot
from wavesim_sdk.commander import Commander
from wavesim_sdk.config import Loaded, load
from wavesim_sdk.ocean.scene import Scene
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import IDENTITY, STATE

WALLS = '<obstacles><block position="30 0 10 m" size="2 40 20 m"/><pier position="-20 10 10 m" radius="2 m" height="20 m"/></obstacles>'
HILLS = '<bed depth="40 m" slope_north="0.05"><bump height="-15 m" north="20 m" east="10 m" alpha="0.03 1/m" beta="0.04 1/m"/></bed>'

DYE = '<scalar name="dye"><gaussian peak="1" north="0 m" east="0 m" sigma_north="9 m" sigma_east="9 m"/></scalar>'
PAUSE_S = 5e-5  #: between looks: a reader that spins takes a core from the others
CLI = [sys.executable, "-m", "wavesim_sdk.cli"]


def configuration(inner: str) -> Loaded:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.xml"
        path.write_text(f"<wavesim>{inner}</wavesim>")
        return load(path)


def emulators() -> None:
    names = [n for n in SENSORS if n not in ("encoder", "battery", "rpm")]  # these read a running server's actuators
    print(f"{'ms per value of all bodies':28} {'1':>8} {'100':>8} {'1000':>8}")
    classes = {e.name: e.load() for e in entry_points(group="wavesim.emulators")}
    for name in names:
        element = name.replace("_", "-")
        line = f"{name:28}"
        for bodies in (1, 100, 1000):
            world = f"<world>{HILLS}{WALLS}{DYE}</world><shared vehicles='{bodies}'/>"
            emulator = classes[name](configuration(f"{world}<emulators><{element} send='no'/></emulators>"))
            identity, state = np.zeros(bodies, IDENTITY.dtype), np.zeros(bodies, STATE.dtype)
            identity["present"] = identity["generation"] = 1
            identity["name"] = [f"b{k}".encode() for k in range(bodies)]
            state["q_WB"][:, 0] = 1.0
            rng = np.random.default_rng(1)
            state["p_WB_W"] = np.column_stack([rng.uniform(-15, 15, (bodies, 2)), rng.uniform(1, 8, bodies)])
            out, faults = np.zeros(bodies, SENSORS[name].dtype), no_faults(bodies)
            best = np.inf
            for tick in range(6):
                before = time.perf_counter()
                emulator.compute(Snapshot(tick, tick * 4_000_000, np.arange(bodies), identity, state), faults, 1, out)
                best = min(best, time.perf_counter() - before)
            line += f" {best * 1e3:8.2f}"
        print(line)


def rays() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(size=(20_000, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    print("\nrays per second on one core")
    with tempfile.TemporaryDirectory() as folder:
        ball = Path(folder) / "ball.stl"
        trimesh.creation.icosphere(subdivisions=4, radius=8.0).export(str(ball))  # 5120 triangles
        mesh = f'<obstacles><mesh file="{ball}" position="20 0 12 m"/></obstacles>'
        worlds = {
            "flat bed": '<bed depth="40 m"/>',
            "hills": HILLS,
            "hills, wall, pier": HILLS + WALLS,
            "hills, mesh": HILLS + mesh,
        }
        scenes = {name: Scene(configuration(f"<world>{world}</world>")) for name, world in worlds.items()}
    for name, scene in scenes.items():
        o = np.array([0.0, 0.0, 5.0]) + rng.uniform(-2, 2, (len(d), 3))
        best = np.inf
        for _ in range(3):
            before = time.perf_counter()
            scene.cast(o, d, 150.0)
            best = min(best, time.perf_counter() - before)
        print(f"{name:28} {len(d) / best:12.0f}")


def latency() -> None:
    """From the publication of a tick to that of the value of a sensor due at it, as a third process sees it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.xml"
        body = '<vehicle name="v" model="lauv" position="0 0 10 m" client="none"/>'
        path.write_text(
            f'<wavesim name="latency{os.getpid()}"><time step="4 ms"/><fleet>{body}</fleet><emulators><ahrs rate="25 Hz"/></emulators></wavesim>'
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
            while not state.sensor("ahrs")["sequence"][0]:
                if time.monotonic() > limit:
                    raise SystemExit("the emulator did not come up")
                time.sleep(0.05)
            found = []
            while len(found) < 200:
                due = int(state.sensor("ahrs")["tick"][0]) + 10
                while int(state.clock()["tick"]) < due - 1:
                    time.sleep(0.0005)
                while int(state.clock()["tick"]) < due:
                    time.sleep(PAUSE_S)
                begun = time.perf_counter()
                while int(state.sensor("ahrs")["tick"][0]) < due:
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


if __name__ == "__main__":
    emulators()
    rays()
    latency()
    sys.exit(0)
