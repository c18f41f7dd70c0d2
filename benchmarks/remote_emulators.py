"""Emulators over the network and on the server's machine: values and frames per second, and processor time of each process.

    python -m benchmarks.remote_emulators [values|frames] [SECONDS]

Values: CTDs at 100 Hz on 64 bodies, computed by `wavesim emulate`. Frames: a camera whose images of 1 MB are ready, so that only
their way is measured. The clock runs at the pace `fast`, in lockstep.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander
from wavesim_sdk.emulator_attachment import attach_emulator
from wavesim_sdk.imaging_frames import FRAME_KINDS, RECORD
from wavesim_sdk.shared_memory import SYNCHRONOUS

ROWS, COLUMNS = 576, 608  #: an image of 1.05 MB
CLI = [sys.executable, "-m", "wavesim_sdk"]
VEHICLE = '<vehicle name="v{k}" model="lauv" position="{k}0 0 10 m" client="none"><sensors>{sensor}</sensors></vehicle>'
CONFIG = '<wavesim><time step="10 ms"/><network lockstep_budget="600 s"/><world><bed depth="40 m"/></world><fleet>{fleet}</fleet></wavesim>'
CAMERA = f'<camera name="eye" rate="100 Hz" width="{COLUMNS}" height="{ROWS}"/>'


def processor_s(pid: int) -> float:
    """Return the processor time of a process in s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> dict[str, int]:
    """Return the processes of a server: name -> PID."""
    pids = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return {Path(f"/proc/{p}/comm").read_text().strip(): p for p in pids}


def send_images(server: str) -> None:
    """Serve the camera with one image, again and again."""
    record, image = np.zeros((), RECORD), bytes(3 * ROWS * COLUMNS)
    record["kind"], record["beams"], record["bins"] = FRAME_KINDS.index("camera"), ROWS, 3 * COLUMNS
    record["sample_bytes"] = 1
    with attach_emulator(server, "camera") as attached:
        values = attached.values()
        attached.serve()
        while attached.alive():
            if attached.wait(0.2) is None:
                continue
            view = attached.snapshot()
            entries = view.tables["instruments"]
            entry = entries[entries["type"] == b"camera"][0]
            record["generation"], record["name"], record["body"] = entry["generation"], entry["name"], b"v1"
            record["time_ns"] = view.time_ns
            v = values[entry["place"]]
            v["frame"] = attached.write_frame(int(entry["place"]), record, image)
            v["tick"], v["time_ns"], v["valid"], v["generation"] = view.tick, view.time_ns, 1, entry["generation"]
            v["sequence"] += 1
            attached.write(values, view.tick)
            attached.done()


def measure(kind: str, remote: bool, seconds: float) -> str:
    """Run a server for some seconds; return a line of figures."""
    sensor, count = ("ctd", 64) if kind == "values" else ("camera", 1)
    part = '<ctd rate="100 Hz"/>' if kind == "values" else CAMERA
    fleet = "".join(VEHICLE.format(k=k + 1, sensor=part) for k in range(count))
    name = f"bench{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.xml"
        path.write_text(CONFIG.format(fleet=fleet))
        server = subprocess.Popen(
            [*CLI, "serve", path, "--name", name, "--port", "0", "--speed", "0"], stderr=subprocess.PIPE, text=True
        )
        assert server.stderr is not None
        while "on UDP" not in (line := server.stderr.readline()):
            assert line
        address = line.split("on UDP ")[1].split(";")[0] if remote else name
        command = [*CLI, "emulate", "ctd", path] if kind == "values" else [sys.executable, "-m", __spec__.name, "serve"]
        emulator = subprocess.Popen([*command, *(["-s"] if kind == "values" else []), address.strip()])
        state = SharedState(name)
        while not state.vehicles[sensor].header[SYNCHRONOUS]:
            time.sleep(0.05)
        pids = {**children(server.pid), "emulator": emulator.pid}
        with Commander(name) as commander:
            commander.send("start")
            first, begun = state.clock()["tick"], time.monotonic()
            before = {who: processor_s(pid) for who, pid in pids.items()}
            time.sleep(seconds)
            ticks, took = int(state.clock()["tick"] - first), time.monotonic() - begun
            used = {who: processor_s(pid) - before[who] for who, pid in pids.items()}
            late = commander.send("status").data["sensors_late"]
            commander.send("shutdown")
        server.wait(20)
        emulator.wait(20)
    each = ", ".join(f"{who} {1e3 * s / ticks:.2f}" for who, s in used.items())
    what = f"{ticks * count / took:.0f} values/s" if kind == "values" else f"{ticks / took:.1f} frames/s of 1.05 MB"
    where = "network" if remote else "local  "
    return f"{where} {what}; processor time in ms per tick: {each}; late {late}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        send_images(sys.argv[2])
    else:
        duration = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
        for is_remote in (False, True, False, True):
            print(measure(sys.argv[1] if len(sys.argv) > 1 else "values", is_remote, duration), flush=True)
