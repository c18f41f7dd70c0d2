"""Measure the trial as a whole: real-time factor, lateness of ticks in real time with a busy front, memory.

python -m benchmarks.trial
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.processes import children, memory_mb
from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander
from wavesim_server import Simulation
from wavesim_server.serve import is_ready

ROOT = Path(__file__).parent.parent
CLI = [sys.executable, "-m", "wavesim_sdk"]


def run_demonstration(*options: str) -> tuple[dict[str, Any], float]:
    """Return the table of the demonstration trial, and the processor time of all its processes in s."""
    before = os.times()
    with tempfile.TemporaryDirectory() as folder:
        more = ["--out", folder, "--port", "0", "--name", "bench", "--quiet", "--no-plots"]
        subprocess.run(
            [*CLI, "trial", str(ROOT / "config.xml"), *more, *options], check=True, stdout=subprocess.DEVNULL
        )
        table = json.loads((Path(folder) / "bench" / "table.json").read_text())
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return table, spent


def real_time_factor() -> None:
    """Measure the demonstration in processes, in one process, and its bodies alone."""
    for name, options in (("in processes, over the network", ()), ("in one process", ("--in-process",))):
        table, spent = run_demonstration(*options)
        print(
            f"demonstration {name}: {table['realtime_factor']:.0f} x real time ({table['duration_s']:.0f} s in "
            f"{table['wall_s']:.1f} s, {spent:.1f} s of processor time with the start), content hash {table['content_hash'][:16]}"
        )
    sim = Simulation.from_config(ROOT / "config.xml")
    for name in ("lauv", "remus", "jolner"):
        sim.command(sim.enter(name), [8.0])
    sim.advance(1)
    start = time.perf_counter()
    for k in range(600):
        sim.ping(k % 2, 25e3)
        sim.advance(250)
        sim.take_signals()
    wall = time.perf_counter() - start
    print(f"the same bodies as a library, no processes: {600 / wall:.0f} x real time")


def lateness(busy: bool, seconds: float = 15.0) -> None:
    """Measure ticks of 4 ms in real time, with a bounded flood of foreign datagrams at the front if ``busy``."""
    config = ROOT / "config.xml"
    server = subprocess.Popen(
        [*CLI, "serve", str(config), "--name", "bench", "--port", "0", "--log", "", "--speed", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    port = int(server.stderr.readline().split("on UDP ")[1].split(";")[0].rpartition(":")[2])
    while not is_ready("bench"):
        time.sleep(0.05)
    stop = threading.Event()

    def flood() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            while not stop.is_set():
                for _ in range(25):
                    s.sendto(b"WVSM" + os.urandom(200), ("127.0.0.1", port))
                time.sleep(0.005)

    flooder = threading.Thread(target=flood)
    if busy:
        flooder.start()
    reader = SharedState("bench")
    with Commander("bench") as commander:
        commander.send("start")
        late, end, last = [], time.monotonic() + seconds, -1
        while time.monotonic() < end:
            clock = reader.clock()
            if clock["tick"] != last:
                last = int(clock["tick"])
                late.append(int(clock["lateness_ns"]) / 1e3)
            time.sleep(0.001)
        drops = sum(commander.send("status").data["drops"].values())
        clock = reader.clock()
        memory = {name: memory_mb(pid) for name, pid in children(server.pid).items()}
        stop.set()
        commander.send("shutdown")
    server.wait()
    if busy:
        flooder.join()
    q = statistics.quantiles(late, n=1000)
    print(
        f"real time, front {'takes ' + str(round(drops / seconds)) + ' foreign datagrams a second' if busy else 'idle'}: lateness p50 {q[499]:.0f}, p99 {q[989]:.0f}, p99.9 {q[998]:.0f} us "
        f"({len(late)} ticks seen, {int(clock['ticks_late'])} late by a whole step, {int(clock['slipped_ns']) / 1e6:.0f} ms given up); "
        + ", ".join(f"{k} {v:.0f} MB" for k, v in memory.items())
    )


def main() -> None:
    real_time_factor()
    lateness(busy=False)
    lateness(busy=True)


if __name__ == "__main__":
    main()
