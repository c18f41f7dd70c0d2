"""Repeat past failures on a real server: a log with churn, suspended processes, reused rows, forged datagrams."""

from __future__ import annotations

import os
import secrets
import select
import signal
import socket
import struct
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.network import Server
from benchmarks.processes import children, memory_mb
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import CommanderError, WaveSimError
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase
from wavesim_sdk.wire.items import Reception
from wavesim_sdk.wire.messages import Actuate, Join, Welcome
from wavesim_sdk.wire.udp import open_socket

MARKS = 60  #: looks at the memory in a soak
LOOKS = 12  #: at the memory, between two marks
BED = '<world><bed depth="200 m"/></world>'


@dataclass
class Guest:
    """A body that the configuration does not name, with its client."""

    session: ClientSession
    leave_at: float
    tick: int = 0  #: when it was welcomed


@dataclass
class Churn:
    """Guests that join and leave over one socket."""

    port: int
    rate: float  #: joins per second
    stay: float
    model: str = "buoy"
    names: int = 64
    guests: list[Guest] = field(default_factory=list)
    joined: int = 0
    refused: int = 0
    heard: int = 0
    early: int = 0  #: receptions from before the guest was welcomed

    def __post_init__(self) -> None:
        self.sock = open_socket("127.0.0.1", 0)
        self.sock.connect(("127.0.0.1", self.port))
        self._begun, self._asked = time.monotonic(), 0

    def run(self, until: float, step_ns: int) -> None:
        """Let the guests join and leave."""
        while (now := time.monotonic()) < until:
            while self._asked < (now - self._begun) * self.rate and len(self.guests) < self.names:
                self._asked += 1
                place = (100.0 * secrets.SystemRandom().random(), 0.0, 10.0)
                join = Join(name=f"g{self._asked % (4 * self.names)}", model=self.model, position=place)
                self.guests.append(Guest(ClientSession(join), now + 30.0))
            for g in list(self.guests):
                if now >= g.leave_at and g.session.phase is Phase.JOINED:
                    g.session.leave()
                if g.session.phase is Phase.CLOSED or now > g.leave_at + 5.0:
                    self.guests.remove(g)
                    continue
                for data in g.session.outgoing(now):
                    self.sock.send(data)
            while select.select([self.sock], [], [], 0.002)[0]:
                self._take(self.sock.recv(2000), time.monotonic(), step_ns)

    def _take(self, data: bytes, now: float, step_ns: int) -> None:
        (token,) = struct.unpack_from("<Q", data, 8)
        mine = [g for g in self.guests if g.session.token == token] or [g for g in self.guests if not g.session.token]
        for g in mine:
            for e in g.session.receive(data, now):
                if isinstance(e, Welcome):
                    g.tick, g.leave_at = e.tick, now + self.stay
                    self.joined += 1
                elif isinstance(e, JoinRefused):
                    self.refused += 1
                elif isinstance(e, Reception):
                    self.heard += 1
                    self.early += e.reception_ns < g.tick * step_ns


def soaklog(seconds: float, speed: float) -> None:
    """Log 100 bodies at 10 Hz, with 2000 joins a minute."""
    auvs = "".join(
        f'<vehicle name="s{k}" model="{("lauv", "remus100")[k % 2]}" position="{40 * (k % 10)} {40 * (k // 10)} 20 m"/>'
        for k in range(100)
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.mcap"
        inner = f'<time step="20 ms"/><network newcomers="free"/><shared vehicles="256"/>{BED}<log faded="no" sync="5 s"/><fleet>{auvs}</fleet>'
        server = Server(inner, str(speed), "--log", str(log))
        try:
            parts = children(server.process.pid)
            churn = Churn(server.port, 2000 / 60, 1.0)
            server.send("start")
            begun, slowest, unanswered, kept = time.monotonic(), 0.0, 0, 0
            marks: dict[str, list[float]] = {"front": [], "engine": []}
            for k in range(MARKS):
                seen: dict[str, list[float]] = {part: [] for part in marks}
                for look in range(
                    1, LOOKS + 1
                ):  # the most between two marks: a part of the log may begin at each of them
                    churn.run(begun + (k + look / LOOKS) * seconds / MARKS, 20_000_000)
                    for part, memory in seen.items():
                        memory.append(memory_mb(parts[part]))
                asked = time.monotonic()
                try:
                    server.send("status")
                except CommanderError:
                    unanswered += 1
                slowest = max(slowest, time.monotonic() - asked)
                for part, memory in marks.items():
                    memory.append(max(seen[part]))
                files = sorted(log.parent.glob("run*.mcap"), key=lambda p: p.stat().st_mtime_ns)
                kept += sum(f.stat().st_size for f in files[:-1])
                for old in files[:-1]:  # a long soak would fill the disk
                    old.unlink()
                print(
                    f"{time.monotonic() - begun:.0f} s, MB: {', '.join(f'{p} {m[-1]:.1f}' for p, m in marks.items())}; "
                    f"log {(kept + files[-1].stat().st_size) / 1e6:.0f}; {churn.joined} joins; load {os.getloadavg()[0]:.0f}",
                    file=sys.stderr,
                    flush=True,
                )
            status = server.send("status")
            of_front, of_engine = (
                f"the {part} {' '.join(f'{x:.1f}' for x in m[:: MARKS // 12])} MB, at most {100 * (max(m) / max(m[: MARKS // 6]) - 1):+.1f} % of the most in its first sixth"
                for part, m in marks.items()
            )
            print(
                f"soaklog: {seconds:.0f} s at {speed:g} times real time with a log: {float(str(status['time_ns'])) / 3.6e12:.2f} simulated hours, "
                f"{churn.joined} joins ({60 * churn.joined / seconds:.0f} a minute), {churn.refused} refused; memory of {of_front}; of {of_engine}; "
                f"log {(kept + files[-1].stat().st_size) / 1e6:.0f} MB; status answered within {slowest:.2f} s, {unanswered} of {MARKS} times not; "
                f"records lost {status['events_dropped']}, slipped {float(str(status['slipped_ns'])) * 1e-9:.1f} s, log {status['log']}"
            )
        finally:
            server.end()


def stall(seconds: float) -> None:
    """Send SIGSTOP to the front, then to the engine, for longer than a client may be silent."""
    names = [f"v{k}" for k in range(8)]
    fleet = "".join(
        f'<vehicle name="{n}" model="lauv" position="{50 * k} 0 10 m" client="optional"/>' for k, n in enumerate(names)
    )
    server = Server(f'<time step="4 ms"/>{BED}<fleet>{fleet}</fleet>', "1")
    brokers = [Broker(n, ("127.0.0.1", server.port), lockstep=0.1 if k < 2 else 0.0) for k, n in enumerate(names)]
    try:
        for b in brokers:
            b.connect()
        server.send("start")

        def serve(until: float) -> None:
            while time.monotonic() < until:
                for b in brokers:
                    for step in b.poll(0.0):
                        if step.state.step:
                            b.answer([1.0])
                time.sleep(0.002)

        serve(time.monotonic() + 1.0)
        for part in ("front", "engine"):
            pid = children(server.process.pid)[part]
            os.kill(pid, signal.SIGSTOP)
            serve(time.monotonic() + seconds)
            os.kill(pid, signal.SIGCONT)
            woke = time.monotonic()
            tick = int(str(server.send("status")["tick"]))
            while int(str((status := server.send("status"))["tick"])) < tick + 100:
                serve(time.monotonic() + 0.02)
            print(
                f"stall: {part} stopped for {seconds:g} s: {status['clients_total']} of {len(names)} clients are there, "
                f"damage {status['damage'] or 'none'}; ticks go on after {time.monotonic() - woke:.2f} s"
            )
    finally:
        for b in brokers:
            try:
                b.close()
            except WaveSimError as error:
                print(error)
        server.end()


def rows(seconds: float) -> None:
    """Let bodies follow each other in a few rows, while another body pings twenty times a second."""
    fleet = '<vehicle name="v" model="lauv" position="50 20 10 m" client="optional"/>'
    server = Server(
        f'<time step="4 ms"/><network acoustic_rate="100 Hz"/><shared vehicles="6"/>{BED}<fleet>{fleet}</fleet>', "1"
    )
    try:
        with Broker("v", ("127.0.0.1", server.port)) as pinger:
            server.send("start")
            churn = Churn(server.port, 20.0, 0.3, "lauv", names=5)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                pinger.ping(25_000.0)
                pinger.poll(0.0)
                churn.run(time.monotonic() + 0.05, 4_000_000)
        print(
            f"rows: {churn.joined} bodies followed each other in 5 rows in {seconds:.0f} s; {churn.heard} receptions, "
            f"{churn.early} of them from before their client had joined"
        )
    finally:
        server.end()


def forge(seconds: float) -> None:
    """Send forged datagrams with the token and from the address of a session with keys, as many as one core can make."""
    key = secrets.token_bytes(32)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys"
        file.touch(0o600)
        file.write_text(f"v {key.hex()}\n")
        fleet = '<vehicle name="v" model="lauv" position="0 0 10 m" client="optional"/>'
        server = Server(
            f'<time step="4 ms"/><network keys="{file}"/>{BED}<fleet>{fleet}</fleet>', "1", "--files", folder
        )
        try:
            with Broker("v", ("127.0.0.1", server.port), key=key, state_period=0.02) as broker:
                server.send("start")

                def rate(during: float) -> float:
                    limit, n = time.monotonic() + during, 0
                    while time.monotonic() < limit:
                        n += len(broker.poll(0.05))
                    return n / during

                quiet = rate(3.0)
                link: Any = broker._link
                sent = _forger(link._socket, bytearray(broker.session._encode(Actuate([1.0]))), seconds)
                loud = rate(seconds)
                count = int(os.read(sent, 20))
                status = server.send("status")
                drops = status["drops"]
                assert isinstance(drops, dict)
                print(
                    f"forge: {count} forged datagrams in {seconds:.0f} s ({count / seconds:.0f}/s) from the session's own address; states "
                    f"{quiet:.1f}/s before, {loud:.1f}/s during; clients {status['clients_total']} of 1; dropped as seal {drops.get('seal', 0)}, "
                    f"as replay {drops.get('replay', 0)}, as rate {drops.get('rate', 0)}; ticks late {status['ticks_late']}"
                )
        finally:
            server.end()


def _forger(sock: socket.socket, data: bytearray, seconds: float) -> int:
    """Start a process that sends the datagrams. Return the end of a pipe that reports their number."""
    out, into = os.pipe()
    if os.fork():
        os.close(into)
        return out
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(200):
            n += 1
            data[16:20] = (1000 + n & 0x7FFFFFFF).to_bytes(4, "little")
            try:
                sock.send(data, socket.MSG_DONTWAIT)
            except OSError:
                continue
        time.sleep(0.002)
    os.write(into, str(n).encode())
    os._exit(0)
