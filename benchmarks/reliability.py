"""Produce the figures of docs/evidence/reliability.md that take too long for the tests. All load is on loopback, bounded in
count and time.

python benchmarks/reliability.py fuzz [datagrams]      hostile datagrams to the sessions of a server, in memory
python benchmarks/reliability.py flood [seconds]       the same to a running server, with a client that must not be affected
python benchmarks/reliability.py chaos [seconds]       SIGKILL and SIGSTOP of everything around the engine, at random
python benchmarks/reliability.py soak [seconds] [speed]  100 vehicles and 20 beacons, memory and lost events
python benchmarks/reliability.py soaklog [seconds] [speed]  the same with a log and 2000 joins a minute
python benchmarks/reliability.py stall [seconds]       front and engine suspended for longer than the allowed silence
python benchmarks/reliability.py rows [seconds]        bodies that succeed each other in a few rows, and their receptions
python benchmarks/reliability.py forge [seconds]       forged datagrams from a sealed session's own address
python benchmarks/reliability.py matrix [process ...]  SIGKILL and SIGSTOP of each kind of process in each phase of a trial
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import harm, matrix
from benchmarks.network import CLI, Server
from benchmarks.processes import children, cpu_s, memory_mb
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.shared_memory import OWNER
from wavesim_sdk.testing import admit_all, stopped_clock
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.client import ClientSession, Phase
from wavesim_sdk.wire.messages import MESSAGES, Join
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.vectors import VECTORS

ADDRESS = ("127.0.0.1", 4000)


class Hostile:
    """Datagrams made from good ones of a session: bytes changed, cut, inserted; headers that almost fit."""

    def __init__(self, token: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.good = [
            codec.encode(message, token if MESSAGES[codec.message_type(message)][1] else 0, 5, 0)
            for _, _, _, message in VECTORS
            if MESSAGES[codec.message_type(message)][0]
        ]
        self.sequence = 10

    def next(self) -> bytes:
        r = self.random
        data = bytearray(r.choice(self.good))
        self.sequence += 1
        data[16:20] = (self.sequence & 0xFFFFFFFF).to_bytes(4, "little")
        how = r.random()
        if how < 0.1:
            return r.randbytes(r.randrange(0, 80))
        for _ in range(1 + int(4 * r.random())):
            at = r.randrange(24 if how < 0.7 and len(data) > 24 else 0, len(data)) if data else 0
            if how < 0.85 and data:
                data[at] = r.randrange(256)
            elif how < 0.95:
                del data[at:]
            else:
                data[at:at] = r.randbytes(8)
        return bytes(data)


def fuzz(count: int) -> None:
    faults: list[Exception] = []
    sessions = ServerSessions(admit_all, stopped_clock, 0.5, 1e9, on_error=faults.append)
    client, now = ClientSession(Join(name="a")), 100.0
    fuzz_join(sessions, client, now)
    hostile = Hostile(client.token, 1)
    begun, taken = time.monotonic(), 0
    marks = []
    for k in range(count):
        taken += len(sessions.receive(hostile.next(), ADDRESS, now))
        sessions.outgoing.clear()
        if k % (count // 4) == count // 4 - 1:
            marks.append(memory_mb(os.getpid()))
        if client.token not in sessions.by_token:  # a LEAVE that was still good, or too many events without an answer
            fuzz_join(sessions, client := ClientSession(Join(name="a")), now)
            hostile = Hostile(client.token, k)
        now += 1e-5
    took = time.monotonic() - begun
    print(
        f"fuzz: {count} datagrams in {took:.0f} s ({count / took:.0f}/s), {len(faults) or 'no'} unexpected exceptions; {taken} were still good; "
        f"memory {' '.join(f'{m:.0f}' for m in marks)} MB at the quarters; drops {dict(sessions.drops)}"
    )


def fuzz_join(sessions: ServerSessions, client: ClientSession, now: float) -> None:
    while client.phase is not Phase.JOINED:
        now += 0.3
        for data in client.outgoing(now):
            sessions.receive(data, ADDRESS, now)
        for data, _ in sessions.outgoing:
            client.receive(data, now)
        sessions.outgoing.clear()


FLEET = '<vehicle name="v" model="lauv" position="0 0 10 m" client="optional"/><vehicle name="w" model="remus100" position="50 0 10 m"/>'


def flood(seconds: float) -> None:
    server = Server(f'<time step="4 ms"/><world><bed depth="200 m"/></world><fleet>{FLEET}</fleet>', "1")
    try:
        with Broker("v", ("127.0.0.1", server.port), state_period=0.02) as broker:
            server.send("start")
            front = children(server.process.pid)["front"]

            def rate(during: float) -> float:
                limit, n = time.monotonic() + during, 0
                while time.monotonic() < limit:
                    n += len(broker.poll(0.05))
                return n / during

            quiet, before = rate(3.0), memory_mb(front)
            script = (
                "import sys,socket,time; sys.path.insert(0,'.');from benchmarks.reliability import Hostile;h=Hostile(0x1122334455667788,2);"
                "d=[h.next() for _ in range(20000)];s=[socket.socket(2,2) for _ in range(8)];t=time.monotonic()+float(sys.argv[2]);n=0\n"
                "for k,x in enumerate(s): x.bind((f'127.0.0.{k+2}',0))\n"
                "while time.monotonic()<t:\n"
                "  for k in range(200): s[k%8].sendto(d[(n+k)%20000],('127.0.0.1',int(sys.argv[1])))\n"
                "  n+=200; time.sleep(0.004)\n"
                "print(n)"
            )
            hostile = subprocess.Popen(
                [sys.executable, "-c", script, str(server.port), str(seconds)], stdout=subprocess.PIPE, text=True
            )
            time.sleep(1.0)
            loud = rate(seconds - 2.0)
            assert hostile.stdout is not None
            sent = int(hostile.stdout.read())
            after = memory_mb(front)
            status = server.send("status")
            print(
                f"flood: {sent} hostile datagrams in {seconds:.0f} s from 8 addresses; the client's states {quiet:.1f}/s before, {loud:.1f}/s "
                f"during; memory of the front {before:.1f} -> {after:.1f} MB; drops {status['drops']}, "
                f"ticks late {status['ticks_late']}, slipped {status['slipped_ns']} ns"
            )
    finally:
        server.end()


SENSORS = ("ctd", "ahrs", "gps", "dvl", "imu", "echosounder")
PROGRAM = (
    "import sys\nfrom wavesim_sdk.broker import Broker\n"
    "with Broker(sys.argv[1], ('127.0.0.1', int(sys.argv[2]))) as b:\n"
    "    for s in b.steps():\n        b.answer([5.0])\n"
)
READER = (
    "import sys, time\nfrom wavesim_sdk.attach import SharedState\nimport numpy as np\n"
    "s = SharedState(sys.argv[1])\nlast = -1\n"
    "while True:\n    v = s.snapshot()\n    assert v.tick >= last, 'time went back'\n    last = v.tick\n"
    "    q = v.state['q_WB'][v.rows]\n    assert np.allclose((q * q).sum(axis=1), 1.0, atol=1e-6), 'torn'\n    time.sleep(0.001)\n"
)


LOOK = """
import asyncio, sys
import aiohttp
async def look(url):
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.ws_connect(f"{url}/ws", origin=url, max_msg_size=0) as ws:
                    async for m in ws:
                        if m.type is aiohttp.WSMsgType.BINARY:
                            assert m.data[:4] == b"WVF1" and len(m.data) >= 64
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(0.1)
asyncio.run(look(sys.argv[1]))
"""


def frames_seen(port: int, wanted: int) -> bool:
    """Whether the viewer's server sends frames again."""
    import asyncio

    import aiohttp

    async def look() -> bool:
        url, seen = f"http://127.0.0.1:{port}", 0
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/ws", origin=url) as ws:
            async for m in ws:
                seen += m.type is aiohttp.WSMsgType.BINARY
                if seen >= wanted:
                    return True
        return False

    try:
        return asyncio.run(asyncio.wait_for(look(), 10.0))
    except (aiohttp.ClientError, OSError, TimeoutError):
        return False


def chaos(seconds: float) -> None:
    rng = random.Random(7)
    names = [f"v{k}" for k in range(4)]
    fleet = "".join(
        f'<vehicle name="{n}" model="lauv" position="{50 * k} 0 10 m" client="optional"/>' for k, n in enumerate(names)
    )
    sensors = "".join(f'<{s} rate="10 Hz" position="0 0 -1 m"/>' for s in SENSORS)
    keep = 'keepalive_period="200 ms" keepalive_timeout="2 s"'
    server = Server(
        f'<time step="4 ms"/><network {keep}/><world><bed depth="200 m"/></world><fleet><sensors>{sensors}</sensors>{fleet}</fleet>',
        "1",
    )
    config = Path(server.folder.name) / "c.xml"
    state = SharedState(server.name)
    manager = subprocess.Popen([*CLI, "emulate", "all", str(config), "-s", server.name], stderr=subprocess.DEVNULL)
    programs: dict[str, subprocess.Popen[bytes]] = {}
    commands = {n: [sys.executable, "-c", PROGRAM, n, str(server.port)] for n in names}
    commands |= {f"reader{k}": [sys.executable, "-c", READER, server.name] for k in range(2)}
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        viewer_port = s.getsockname()[1]
    commands["viz"] = [*CLI, "viz", "-s", server.name, "--port", str(viewer_port)]
    commands["look"] = [sys.executable, "-c", LOOK, f"http://127.0.0.1:{viewer_port}"]
    commands["log"] = [*CLI, "status", "-s", server.name]
    torn, errors = 0, Path(server.folder.name) / "readers.txt"
    server.send("start")
    counts: dict[str, int] = {"killed": 0, "stopped": 0, "restarted": 0}
    stopped: list[tuple[float, int]] = []
    begun = time.monotonic()
    ticks, due = [], begun
    try:
        while time.monotonic() < begun + seconds:
            now = time.monotonic()
            for name, command in commands.items():
                p = programs.get(name)
                if p is None or p.poll() is not None:
                    if p is not None and name.startswith("reader") and p.returncode == 1:
                        torn += 1
                        print(errors.read_text()[-400:])
                    with errors.open("a") as err:
                        programs[name] = subprocess.Popen(
                            command,
                            stdout=subprocess.DEVNULL,
                            stderr=err if name.startswith("reader") else subprocess.DEVNULL,
                        )
                    counts["restarted"] += p is not None and name != "log"
            for until, pid in [x for x in stopped if x[0] <= now]:
                stopped.remove((until, pid))
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue
            if now >= due:
                due = now + rng.uniform(0.3, 1.5)
                own = [int(state.vehicles[s].header[OWNER]) for s in SENSORS]
                victim = rng.choice([p.pid for p in programs.values() if p.poll() is None] + [p for p in own if p])
                kind = signal.SIGKILL if rng.random() < 0.6 else signal.SIGSTOP
                if rng.random() < 0.1:  # the server's own: they may stand still, and nobody is removed for it
                    victim, kind = rng.choice(list(children(server.process.pid).values())), signal.SIGSTOP
                try:
                    os.kill(victim, kind)
                except ProcessLookupError:
                    continue
                if kind == signal.SIGSTOP:
                    stopped.append((now + rng.uniform(0.2, 4.0), victim))
                counts["killed" if kind == signal.SIGKILL else "stopped"] += 1
            ticks.append(int(state.clock()["lateness_ns"]))
            time.sleep(0.01)
        for _, pid in stopped:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue
        end = time.monotonic() + 30.0
        back = False
        while not back and time.monotonic() < end:  # everything recovers
            for name, command in commands.items():
                p = programs[name]
                if p.poll() is not None and not name.startswith("log"):
                    programs[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.5)
            now_ns = int(state.clock()["time_ns"])
            values = [state.values(s) for s in SENSORS]  # valid or not: a GPS says under water that it has no fix
            fresh = [now_ns - v["time_ns"][v["sequence"] > 0] for v in values]
            back = (
                frames_seen(viewer_port, 20)
                and len(state.snapshot().rows) == len(names)
                and all(len(f) and (f < 1_000_000_000).all() for f in fresh)
            )
        clock = state.clock()
        late = np.array(ticks) * 1e-3
        print(
            f"chaos: {seconds:.0f} s, {counts['killed']} SIGKILL, {counts['stopped']} SIGSTOP of 4 brokers, {len(SENSORS)} emulators, 2 readers, the viewer and one who looks; "
            f"{counts['restarted']} started again; torn snapshots {torn}; tick lateness sampled: p50 {np.percentile(late, 50):.0f} us, p99 "
            f"{np.percentile(late, 99):.0f} us, greatest {int(clock['lateness_max_ns']) / 1e6:.1f} ms; ticks late {int(clock['ticks_late'])} of "
            f"{int(clock['tick'])}, slipped {int(clock['slipped_ns']) / 1e6:.1f} ms; all back at the end: {'yes' if back else 'NO'}"
        )
    finally:
        manager.terminate()
        for p in programs.values():
            p.kill()
            p.wait()
        manager.wait(15)
        server.end()


def soak(seconds: float, speed: float) -> None:
    auvs = "".join(
        f'<vehicle name="s{k}" model="{("lauv", "remus100")[k % 2]}" position="{40 * (k % 10)} {40 * (k // 10)} 20 m"/>'
        for k in range(99)
    )
    buoys = "".join(
        f'<buoy name="b{k}" model="buoy" position="{200 * (k % 5)} {200 * (k // 5)} 1 m"/>' for k in range(20)
    )
    one = '<vehicle name="v" model="lauv" position="-100 0 20 m" client="optional"/>'
    world = '<time step="20 ms"/><shared vehicles="128"/><world><bed depth="200 m"/></world>'
    server = Server(f'{world}<log faded="no"/><fleet>{one}{auvs}{buoys}</fleet>', str(speed))
    try:
        engine, front = children(server.process.pid)["engine"], children(server.process.pid)["front"]
        with Broker("v", ("127.0.0.1", server.port), state_period=0.1) as broker:
            server.send("start")
            begun = last = time.monotonic()
            asked: set[int] = set()
            answered: list[int] = []
            heard: list[int] = []
            memory = []
            next_mark = begun + 30.0
            used = cpu_s(engine), cpu_s(front)
            while (now := time.monotonic()) < begun + seconds:
                if now - last > 1.0:
                    last = now
                    asked.add(broker.ping(25_000.0))
                for step in broker.poll(0.1):
                    answered += [s.request for s in step.sent if s.request] + [r.request for r in step.refused]
                    heard += [r.id for r in step.receptions]
                if now > next_mark:
                    next_mark += max(60.0, seconds / 12.0)
                    memory.append((memory_mb(engine), memory_mb(front)))
            for step in [s for _ in range(20) for s in broker.poll(0.1)]:
                answered += [s.request for s in step.sent if s.request] + [r.request for r in step.refused]
                heard += [r.id for r in step.receptions]
        took = time.monotonic() - begun
        status = server.send("status")
        print(
            f"soak: {took:.0f} s at {speed:g} times real time: {float(str(status['time_ns'])) / 3.6e12:.2f} simulated hours, 100 vehicles, 20 beacons; "
            f"memory MB engine {' '.join(f'{e:.1f}' for e, _ in memory)}; front {' '.join(f'{f:.1f}' for _, f in memory)}; "
            f"requests {len(asked)}, answered once each: {sorted(answered) == sorted(asked)}; receptions {len(heard)}, twice {len(heard) - len(set(heard))}; "
            f"slipped {float(str(status['slipped_ns'])) / 1e6:.1f} ms, ticks late {status['ticks_late']} of {status['tick']}, "
            f"records lost {status['events_dropped']}; engine {100 * (cpu_s(engine) - used[0]) / took:.0f} %, front {100 * (cpu_s(front) - used[1]) / took:.0f} % of a core"
        )
    finally:
        server.end()


def main() -> None:
    if sys.argv[1:2] == ["matrix"]:
        raise SystemExit(bool(matrix.table(tuple(sys.argv[2:]) or matrix.KINDS)))
    numbers = [float(x) for x in sys.argv[2:]]
    match sys.argv[1:2]:
        case ["fuzz"]:
            fuzz(int(numbers[0]) if numbers else 10_000_000)
        case ["flood"]:
            flood(numbers[0] if numbers else 20.0)
        case ["chaos"]:
            chaos(numbers[0] if numbers else 600.0)
        case ["soak"]:
            soak(numbers[0] if numbers else 3600.0, numbers[1] if len(numbers) > 1 else 24.0)
        case ["soaklog"]:
            harm.soaklog(numbers[0] if numbers else 3600.0, numbers[1] if len(numbers) > 1 else 20.0)
        case ["stall"]:
            harm.stall(numbers[0] if numbers else 7.0)
        case ["rows"]:
            harm.rows(numbers[0] if numbers else 60.0)
        case ["forge"]:
            harm.forge(numbers[0] if numbers else 10.0)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main()
