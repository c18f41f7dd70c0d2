"""Measure the front under load: many clients that receive their own state, compared with raw sockets; round trip of a
command.

python -m benchmarks.network [clients] [rate]
"""

from __future__ import annotations

import multiprocessing
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.processes import children, cpu_s
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.commander import Commander
from wavesim_sdk.wire import codec, seal
from wavesim_sdk.wire.client import ClientSession, Phase
from wavesim_sdk.wire.messages import HEADER_BYTES, Join, StateMessage, Type
from wavesim_sdk.wire.udp import open_socket
from wavesim_server import Simulation
from wavesim_server.address_layout import same_address_layout
from wavesim_world.config import load as load_config

CLI = [sys.executable, "-m", "wavesim_sdk"]
SECONDS = 8.0
PER_SOCKET = 50


class Server:
    def __init__(self, inner: str, speed: str, *arguments: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "c.xml"
        self.name = f"bench{os.getpid()}"
        path.write_text(f'<wavesim name="{self.name}">{inner}</wavesim>')
        command = [*CLI, "serve", str(path), "--port", "0", "--speed", speed, *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        while "on UDP" not in line:
            line = self.process.stderr.readline()
        self.port = int(line.split("on UDP ")[1].split(";")[0].rpartition(":")[2])

    def send(self, verb: str) -> dict[str, object]:
        with Commander(self.name) as commander:
            return commander.send(verb).data

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.folder.cleanup()


class Clients:
    """Many sessions over few sockets. Keep-alive messages are answered, and states are counted by session."""

    def __init__(self, port: int, count: int, rate: float) -> None:
        self.sockets = [open_socket("127.0.0.1", 0) for _ in range(-(-count // PER_SOCKET))]
        for s in self.sockets:
            s.connect(("127.0.0.1", port))
        self.by_token: dict[int, ClientSession] = {}
        self.count = np.zeros(count, np.int64)
        self.gaps = 0
        self._last: dict[int, int] = {}
        period = round(1e9 / rate)
        for k in range(count):
            place = (100.0 * (k % 40), 100.0 * (k // 40), 10.0)
            session = ClientSession(Join(name=f"c{k}", model="buoy", position=place, state_period_ns=period))
            sock = self.sockets[k // PER_SOCKET]
            while session.phase is not Phase.JOINED:
                for data in session.outgoing(time.monotonic()):
                    sock.send(data)
                if select.select([sock], [], [], 0.1)[0]:
                    data = sock.recv(2000)
                    if struct.unpack_from("<Q", data, 8)[0] in self.by_token:
                        self._take(data, sock, time.monotonic())
                    else:
                        session.receive(data, time.monotonic())
            self.by_token[session.token] = session
            self._last[session.token] = 0

    def _take(self, data: bytes, sock: socket.socket, now: float) -> None:
        token, sequence = struct.unpack_from("<QI", data, 8)
        session = self.by_token.get(token)
        if session is None:
            return
        if self._last[token] and sequence != self._last[token] + 1:
            self.gaps += sequence - self._last[token] - 1
        self._last[token] = sequence
        self.count[0] += 1
        if data[5] != Type.STATE:
            session.receive(data, now)
            for out in session.outgoing(now):
                sock.send(out)

    def run(self, seconds: float, sample: Callable[[], None] = lambda: None) -> tuple[int, int]:
        """Return (datagrams, lost) within some seconds. ``sample`` is called about a hundred times per second."""
        self.count[:] = 0
        self.gaps = 0
        limit = time.monotonic() + seconds
        while (now := time.monotonic()) < limit:
            sample()
            for sock in select.select(self.sockets, [], [], 0.01)[0]:
                for _ in range(2000):
                    try:
                        data = sock.recv(2000)
                    except BlockingIOError:
                        break
                    self._take(data, sock, now)
        return int(self.count[0]), self.gaps


def raw(rate: float, size: int, seconds: float, ready: object) -> None:
    """Send datagrams by plain sendto, as the limit."""
    sender, receiver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    receiver.bind(("127.0.0.1", 0))
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    target, data = receiver.getsockname(), bytes(size)
    begun, sent = time.monotonic(), 0
    cpu = time.process_time()
    while (now := time.monotonic()) < begun + seconds:
        due = int((now - begun) * rate)
        while sent < due:
            sender.sendto(data, target)
            sent += 1
        time.sleep(0.001)
    ready.put((sent, time.process_time() - cpu))  # type: ignore[attr-defined]  # a queue of multiprocessing


def load(count: int, rate: float) -> None:
    server = Server(
        f'<time step="4 ms"/><network newcomers="free"/><shared vehicles="{count}"/><world><bed depth="200 m"/></world>',
        "1",
    )
    try:
        clients = Clients(server.port, count, rate)
        server.send("start")
        clients.run(1.0)
        found = children(server.process.pid)
        front, engine = found["front"], found["engine"]
        before = cpu_s(front), cpu_s(engine)
        state = SharedState(server.name)
        late: list[float] = []
        begun = time.monotonic()
        got, lost = clients.run(SECONDS, lambda: late.append(int(state.clock()["lateness_ns"]) * 1e-3))
        took = time.monotonic() - begun
        share = (cpu_s(front) - before[0]) / took
        queue: multiprocessing.Queue[tuple[int, float]] = multiprocessing.Queue()
        process = multiprocessing.Process(target=raw, args=(count * rate, 430, 3.0, queue))
        process.start()
        _, plain = queue.get()
        process.join()
        print(
            f"{count} clients at {rate:g} Hz: {got / took:9.0f} datagrams/s, lost {lost}; front {100 * share:5.1f} % of a core, "
            f"engine {100 * (cpu_s(engine) - before[1]) / took:5.1f} %; plain sendto of as many {100 * plain / 3.0:5.1f} %: "
            f"{share / (plain / 3.0):.2f} x; lateness of ticks p50 {np.percentile(late, 50):.0f} us, p99 {np.percentile(late, 99):.0f} us"
        )
    finally:
        server.end()


def round_trip() -> None:
    """Measure the delay from a command to the state that shows its effect, against the tick."""
    for tick in (1, 4, 20):
        body = '<vehicle name="v" model="lauv" position="0 0 10 m" client="optional"/>'
        server = Server(f'<time step="{tick} ms"/><world><bed depth="200 m"/></world><fleet>{body}</fleet>', "1")
        try:
            with Broker("v", ("127.0.0.1", server.port), state_period=1e-3) as broker:
                server.send("start")
                found, shown = [], 0.0
                for k in range(150):
                    settle = time.monotonic() + 0.25  # the thruster's lag is over
                    while time.monotonic() < settle:
                        for step in broker.poll(0.01):
                            shown = step.state.actuation[0]
                    begun = time.perf_counter()
                    broker.answer([5.0 if k % 2 else 9.0])
                    moved = False
                    while not moved:
                        moved = any(abs(step.state.actuation[0] - shown) > 1e-6 for step in broker.poll(0.5))
                    found.append(time.perf_counter() - begun)
            ms = [1e3 * f for f in found]
            print(
                f"command to state, tick {tick:2} ms: median {statistics.median(ms):6.2f} ms, p95 {statistics.quantiles(ms, n=20)[18]:6.2f} ms"
            )
        finally:
            server.end()


def talking(modem: bool, tick: int, simulated: float = 40.0) -> tuple[float, float, float]:
    """Return simulated seconds per second of the engine alone, receptions and ranges per second, for 100 vehicles and
    20 beacons with ten range requests per second in ticks of ``tick`` ms. With a modem, all nodes receive the packet
    and one beacon answers; with a pulse, all nodes receive it and all twenty beacons answer.
    """

    def node(k: int) -> str:
        inner = f'<modem address="{k + 1}" frequency="25 kHz" bit_rate="5000" preamble="10 ms"/>' if modem else ""
        asks = "" if modem or k < 100 else ' query="25 kHz" reply="26 kHz" turn_around="15 ms"'
        return f'<transducer position="0 0 0.2 m" listen_low="20 kHz" listen_high="32 kHz" recharge="200 ms"{asks}>{inner}</transducer>'

    auvs = "".join(
        f'<vehicle name="v{k}" model="lauv" position="{60 * (k % 10)} {60 * (k // 10)} 30 m">{node(k)}</vehicle>'
        for k in range(100)
    )
    buoys = "".join(
        f'<buoy name="b{k}" model="buoy" position="{150 * (k % 5)} {150 * (k // 5)} 1 m">{node(100 + k)}</buoy>'
        for k in range(20)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.xml"
        path.write_text(
            f'<wavesim><time step="{tick} ms"/><shared vehicles="128" signals="1024"/><world><bed depth="200 m"/></world>'
            f"<fleet>{auvs}{buoys}</fleet></wavesim>"
        )
        sim = Simulation(load_config(path))
    sim.enter_residents()
    sim.ping(sim.rows[0], 25_000.0)  # loads the kernels
    sim.advance(100)
    sim.take_signals()
    per, heard, ranges = 100 // tick, 0, 0
    begun = time.perf_counter()
    for k in range(int(simulated * 10)):  # each tenth of a second one vehicle
        if modem:
            sim.range_request(sim.rows[k % 100], 101 + k % 20)
        else:
            sim.ping(sim.rows[k % 100], 25_000.0)
        sim.advance(per)
        receptions = sim.take_signals()[1]
        heard += len(receptions)
        ranges += int(np.isfinite(receptions["measured"]).sum())
    return simulated / (time.perf_counter() - begun), heard / simulated, ranges / simulated


def library() -> None:
    for modem, what in ((True, "ranges by modem"), (False, "ranges by pulses")):
        for tick in (20, 4):
            factor, heard, ranges = talking(modem, tick)
            print(
                f"library, 100 vehicles, 20 beacons, {what}, tick {tick:2} ms: {factor:6.0f} x real time; "
                f"{heard:.0f} receptions and {ranges:.0f} ranges a second"
            )


def sealing() -> None:
    """Measure the cost of keys: sealing and opening a datagram of 300 bytes, compared with encoding and decoding it."""
    state = StateMessage(25, 100_000_000, 1, 0, (0.5,) * 16, (0.0,) * 10, None, ())
    a, b = (seal.SessionSeal(bytes(32), bytes(16), 9, is_client=c) for c in (True, False))
    n = 20_000
    begun = time.perf_counter()
    for k in range(n):
        data = codec.encode(state, 9, k + 1)
    encoded = time.perf_counter()
    header = data[:HEADER_BYTES]
    for k in range(n):
        shut = a.seal(header, data[HEADER_BYTES:], k + 1)
        b.open(header, shut, k + 1)
    sealed = time.perf_counter()
    print(
        f"keys: {len(data)} bytes sealed and opened in {1e6 * (sealed - encoded) / n:.1f} us; encoding alone {1e6 * (encoded - begun) / n:.1f} us"
    )


PROGRAM = """
import multiprocessing, sys
from wavesim_sdk.broker import Broker

def fly(k):
    with Broker(f"v{k}", ("127.0.0.1", int(sys.argv[1])), lockstep=float(sys.argv[2])) as broker:
        for step in broker.steps():
            broker.answer([5.0])
        print("ended", flush=True)

if sys.argv[3] == "fork":
    multiprocessing.set_start_method("fork")
    for k in range(10):
        multiprocessing.Process(target=fly, args=(k,)).start()
else:
    fly(sys.argv[3])
"""


def lockstep(period: float, how: str, forked: bool = False) -> None:
    """Run ten lockstep brokers in separate processes, as ten commands or as forks of one program."""
    fleet = "".join(
        f'<vehicle name="v{k}" model="lauv" position="{50 * k} 0 20 m" client="required"/>' for k in range(10)
    )
    server = Server(
        f'<time step="20 ms" duration="20 s"/><world><bed depth="200 m"/></world><fleet>{fleet}</fleet>', "0"
    )
    read, write = os.pipe()
    programs = [
        subprocess.Popen([sys.executable, "-c", PROGRAM, str(server.port), str(period), which], stdout=write)
        for which in (["fork"] if forked else map(str, range(10)))
    ]
    os.close(write)
    try:
        while server.send("status")["clients_total"] != 10:
            time.sleep(0.05)
        begun = time.perf_counter()
        server.send("start")
        output = b""
        while output.count(b"ended") < 10:  # each has heard that the run is over
            output += os.read(read, 1000) or sys.exit("a broker died")
        factor = 20.0 / (time.perf_counter() - begun)
        print(
            f"ten brokers ({how}) in lockstep, tick 20 ms, asked every {1e3 * period:3.0f} ms: {factor:5.1f} x real time"
        )
    finally:
        for p in programs:
            p.terminate()
            p.wait()
        server.end()
        os.close(read)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        load(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 50.0)
    else:
        for n in (1, 10, 100, 1000):
            load(n, 50.0)
        round_trip()
        sealing()
        library()
        for period in (0.02, 0.1):
            lockstep(period, "ten commands")
            with same_address_layout():
                lockstep(period, "ten commands with one layout of memory, as in a trial")
            lockstep(period, "forked by one program", forked=True)
    sys.exit(0)
