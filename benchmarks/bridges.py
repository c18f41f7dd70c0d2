"""Measure the ArduPilot and PX4 bridges.

ArduPilot: time from a servo frame to the next state, compared with a bare UDP echo in the same run; ten and sixteen in one
world. PX4: speed in lockstep with a stand-in that answers immediately, and the share of each process.

python -m benchmarks.bridges [ardupilot] [px4]
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import struct
import subprocess
import sys
import time

import numpy as np
from tests.bridges import autopilot
from tests.bridges.px4 import Px4

from benchmarks.network import CLI, Server
from benchmarks.processes import children, cpu_s
from wavesim_sdk.attach import SharedState

FRAMES = 4000
ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    s.sendto(*s.recvfrom(4096))
"""
VEHICLES = """<time step="2.5 ms"/><world><bed depth="60 m"/></world><fleet>{}</fleet>"""
ONE = '<vehicle name="v{}" model="bluerov2" position="{} 0 5 m" client="required"/>'


def ask(ports: list[int], frames: int) -> list[float]:
    """Measure the wall time of servo frames, each sent after the answer to the previous one. All ports run
    independently.
    """
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in ports]
        poll, times = select.poll(), list[float]()
        counts, begun = dict.fromkeys(range(len(ports)), 0), dict.fromkeys(range(len(ports)), 0.0)
        known = {s.fileno(): k for k, s in enumerate(socks)}

        def send(k: int) -> None:
            begun[k] = time.perf_counter()
            socks[k].send(struct.pack("<HHI16H", 18458, 400, counts[k], *[1500] * 16))

        for k, (sock, port) in enumerate(zip(socks, ports, strict=True)):
            sock.connect(("127.0.0.1", port))
            poll.register(sock, select.POLLIN)
            send(k)
        while min(counts.values()) < frames:
            ready = poll.poll(5000) or sys.exit("no answer")
            for fd, _ in ready:
                k = known[fd]
                socks[k].recv(4096)
                times.append(time.perf_counter() - begun[k])
                counts[k] += 1
                if counts[k] < frames:
                    send(k)
        return times


def print_times(name: str, times: list[float]) -> None:
    t = 1e3 * np.array(times[len(times) // 4 :])
    print(f"{name}: median {np.median(t):.3f} ms, p99 {np.percentile(t, 99):.3f} ms, worst {t.max():.2f} ms")


def flown(count: int, frames: int, together: bool = False) -> list[float]:
    """Measure the round trips of this many simultaneous bridges, and the speed of the world."""
    server = Server(VEHICLES.format("".join(ONE.format(k, 5 * k) for k in range(count))), "0")
    bridges = []
    try:
        groups = [list(range(count))] if together else [[k] for k in range(count)]
        for first, *others in groups:
            command = [*CLI, "bridge", "ardupilot", "--vehicle", f"v{first}", "--port", str(server.port)]
            command += ["--frame", "vectored", "--instance", str(100 + first)]
            for k in others:
                command += ["--also", f"v{k}"]
            bridges.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        while server.send("status")["clients_total"] != count:
            time.sleep(0.05)
        server.send("start")
        begun = time.perf_counter()
        times = ask([10002 + 10 * k for k in range(count)], frames)
        factor = 0.0025 * frames / (time.perf_counter() - begun)
        how = "in one process" if together else "a process each"
        print(f"{count} vehicles ({how}): {frames} frames of 2.5 ms each at {factor:.2f} times real time")
        return times
    finally:
        for b in bridges:
            b.terminate()
            b.wait()
        server.end()


def sixteen(seconds: float = 20.0) -> None:
    """Run twelve ROVs that hold a depth and four boats that drive to a point, in one world, each with its own
    autopilot.
    """
    rovs, boats = range(12), range(12, 16)
    depths, goals = {k: 3.0 + 0.5 * k for k in rovs}, {k: (8.0, 10.0 * k + 6.0) for k in boats}
    boat = '<vehicle name="v{}" model="otter" position="0 {} 0 m" client="required"/>'
    fleet = "".join(ONE.replace("{} 0 5 m", "0 {} 2 m").format(k, 10 * k) for k in rovs)
    server = Server(VEHICLES.format(fleet + "".join(boat.format(k, 10 * k) for k in boats)), "0")
    bridges = []
    try:
        for group, frame in ((rovs, "vectored"), (boats, "skid")):
            command = [*CLI, "bridge", "ardupilot", "--vehicle", f"v{group[0]}", "--port", str(server.port)]
            command += ["--frame", frame, "--instance", str(200 + group[0])]
            for k in group[1:]:
                command += ["--also", f"v{k}"]
            bridges.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        pilots = [autopilot.rov(autopilot.VECTORED, depths[k]) for k in rovs] + [
            autopilot.skid(*goals[k]) for k in boats
        ]
        flying = [autopilot.Autopilot(pilot, seconds, 200 + k) for k, pilot in enumerate(pilots)]
        for a in flying:
            a.start()
        while server.send("status")["clients_total"] != len(flying):
            time.sleep(0.05)
        server.send("start")
        begun = time.perf_counter()
        for a in flying:
            a.join(600.0)
        factor = seconds / (time.perf_counter() - begun)
        server.send("pause")
        truth = SharedState(server.name)
        places = [truth.snapshot().state["p_WB_W"][truth.row(f"v{k}")] for k in range(len(flying))]
        deep = max(abs(places[k][2] - depths[k]) for k in rovs)
        away = max(math.dist(places[k][:2], goals[k]) for k in boats)
        error = max(math.dist(places[k], a.states[-1].position) for k, a in enumerate(flying))
        print(
            f"sixteen autopilots in one world, {seconds:g} s at {factor:.2f} times real time: twelve ROVs {deep:.2f} m from their depths at most, "
            f"four boats {away:.2f} m from their goals, autopilots {error:.2f} m from the truth"
        )
    finally:
        for b in bridges:
            b.terminate()
            b.wait()
        server.end()


def px4(count: int, period: float, seconds: float = 20.0) -> None:
    """Run this many ROVs on one bridge, each with its own PX4 stand-in (threads of one process) that answers every
    frame of 4 ms.
    """
    fleet = "".join(
        f'<vehicle name="v{k}" model="vita1" position="{5 * k} 0 5 m" client="required"/>' for k in range(count)
    )
    server = Server(f'<time step="4 ms"/><world><bed depth="60 m"/></world><fleet>{fleet}</fleet>', "0")
    command = [*CLI, "bridge", "px4", "--vehicle", "v0", "--port", str(server.port), "--frame", "bluerov2_heavy"]
    command += ["--latitude", "41", "--longitude", "-8", "--instance", "300", "--period", str(period)]
    bridge = subprocess.Popen(command + [f"--also=v{k}" for k in range(1, count)], stderr=subprocess.DEVNULL)
    try:
        flying = [Px4(lambda seen: [0.1] * 8, seconds, 4860 + k, plain=True) for k in range(count)]
        for p in flying:
            p.start()
        while server.send("status")["clients_total"] != count:
            time.sleep(0.05)
        who = {**children(server.process.pid), "bridge": bridge.pid, "stand-ins and this": os.getpid()}
        server.send("start")
        while min(len(p.times) for p in flying) < 100:
            time.sleep(0.01)
        before, begun, first = {n: cpu_s(pid) for n, pid in who.items()}, time.perf_counter(), len(flying[0].times)
        marks = [(begun, first)]
        while all(p.is_alive() for p in flying):
            time.sleep(0.02)
            marks.append((time.perf_counter(), len(flying[0].times)))
        wall, frames = time.perf_counter() - begun, len(flying[0].times) - first
        used = ", ".join(f"{n} {1e6 * (cpu_s(pid) - before[n]) / frames:.0f}" for n, pid in who.items())
        paces = [0.004 * (m - n) / (t - s) for (s, n), (t, m) in zip(marks, marks[25:], strict=False)]
        print(
            f"{count} PX4 stand-ins, a step of {1e3 * period:g} ms: {frames} frames of 4 ms at {0.004 * frames / wall:.1f} times real time, "
            f"{max(paces, default=0.0):.1f} in its fastest half second; processor time of a frame in us: {used}"
        )
    finally:
        bridge.terminate()
        bridge.wait()
        server.end()


def main() -> None:
    wanted = sys.argv[1:] or ["ardupilot", "px4"]
    if "ardupilot" in wanted:
        ardupilot()
    if "px4" in wanted:
        for count, period in ((1, 0.004), (1, 0.02), (2, 0.004), (2, 0.02)):
            px4(count, period)


def ardupilot() -> None:
    echo = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True)
    assert echo.stdout is not None
    try:
        print_times("bare UDP echo in another process", ask([int(echo.stdout.readline())], FRAMES))
    finally:
        echo.kill()
        echo.wait()
    print_times("servo frame to state, one bridge", flown(1, FRAMES))
    for together in (False, True):
        print_times("of ten in one world", flown(10, FRAMES // 4, together))
    sixteen()


if __name__ == "__main__":
    main()
