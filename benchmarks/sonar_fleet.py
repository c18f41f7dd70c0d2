"""Run four vehicles with imaging sonars in real time with real processes: python -m benchmarks.sonar_fleet [seconds]"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.frame_rings import FrameReader

NAME = f"sonar-fleet-{os.getpid()}"
FORWARD = '<sonar name="s" preset="m750d-low" range="40 m" rate="5 Hz" beams="256" bins="500"/>'
SIDE = '<sonar name="s" preset="starfish-450" range="50 m" rate="10 Hz"/>'
WORLD = """<wavesim><time step="4 ms"/><world><current north="0.5 m/s"/><bed depth="14 m" slope_east="0.02"><bump height="-2 m" north="20 m" east="5 m" alpha="0.1 1/m" beta="0.1 1/m"/></bed>
<obstacles><block position="40 0 10 m" size="2 80 8 m"/><pier position="20 4 7 m" radius="0.5 m" height="14 m"/></obstacles></world><fleet>{}</fleet></wavesim>"""
RATES = (5.0, 5.0, 10.0, 10.0)


def spent(pid: int) -> float:
    """Return the processor time in s of a process and its children, ended or running."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, fields = stat.read_text().rsplit(") ", 1)
        except OSError:
            continue
        values = fields.split()
        if int(head.split()[0]) == pid or int(values[1]) == pid:
            ticks += int(values[11]) + int(values[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    bodies = "".join(
        f'<vehicle name="v{k}" model="lauv" position="0 {6 * k} 6 m"><sensors>{FORWARD if k < 2 else SIDE}</sensors></vehicle>'
        for k in range(4)
    )
    command = [sys.executable, "-m", "wavesim_sdk"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.xml"
        file.write_text(WORLD.format(bodies))
        server = subprocess.Popen(
            [*command, "serve", str(file), "--name", NAME, "--port", "0", "--speed", "1"], stderr=subprocess.DEVNULL
        )
        emulator: subprocess.Popen[bytes] | None = None
        try:
            while True:
                try:
                    state = SharedState(NAME)
                    break
                except WaveSimError:
                    time.sleep(0.1)
            emulator = subprocess.Popen([*command, "emulate", "sonar", str(file), "-s", NAME])
            with Commander(NAME) as commander:
                commander.send("start")
            readers = [FrameReader.open(NAME, f"v{k}", "s") for k in range(4)]
            while not all(int(r.rings.done[r.ring]) for r in readers):  # kernels are loaded by then
                time.sleep(0.1)
            before = [int(r.rings.done[r.ring]) for r in readers]
            clock = state.clock()
            t0, late0, cpu0 = int(clock["time_ns"]), int(clock["ticks_late"]), (spent(server.pid), spent(emulator.pid))
            wall0 = time.monotonic()
            time.sleep(seconds)
            clock, wall = state.clock(), time.monotonic() - wall0
            passed = (int(clock["time_ns"]) - t0) * 1e-9
            came = [int(r.rings.done[r.ring]) - b for r, b in zip(readers, before, strict=True)]
            cpu = spent(server.pid) - cpu0[0], spent(emulator.pid) - cpu0[1]
        finally:
            for process in (emulator, server):
                if process is not None:
                    process.terminate()
                    process.wait(30)
    print(f"{passed:.1f} s simulated in {wall:.1f} s; {int(clock['ticks_late']) - late0} ticks late")
    for k, (rate, n) in enumerate(zip(RATES, came, strict=True)):
        print(f"v{k}: {n / passed:5.2f} frames/s of {rate:g}")
    print(
        f"of a core: server {cpu[0] / wall:.0%}, sonars {cpu[1] / wall:.0%}; load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )


if __name__ == "__main__":
    main()
