"""Trace and time the two routes of a client's data through the server: ACTUATE with the STATE that follows, and a ping.

    python -m benchmarks.routes [OTHER_CHECKOUT]

Front, rings and engine run in this process, without sockets. The trace lists the modules of WaVeSim in the order in
which they are entered. Figures are processor time; another checkout is measured in turn, and the minimum counts.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

ROOT = Path(__file__).parents[1]
PARTS = ("broker_sdk", "kernels", "world", "devices", "conformance", "server", "emulators", "viz", "bridges")
CONFIG = """
<wavesim><time step="4 ms"/><network acoustic_rate="1 kHz" datagram_rate="1000 kHz"/><log state_rate="10 Hz"/>
<world><bed depth="200 m"/></world>
<fleet><vehicle name="a" model="lauv" client="optional" position="0 0 10 m"><transducer><modem address="1"/></transducer></vehicle></fleet></wavesim>
"""
BATCH, BATCHES, ROUNDS = 64, 40, 5
ADDRESS = ("127.0.0.1", 4000)
GENERATED = "schema (generated)"


class Rig:
    """Engine, front and one client in this process."""

    def __init__(self) -> None:
        from wavesim_sdk.shared_memory import SharedMemoryArea
        from wavesim_sdk.wire.client import ClientSession, Phase
        from wavesim_sdk.wire.messages import Join
        from wavesim_server import Simulation
        from wavesim_server.engine.core import Engine
        from wavesim_server.engine.emulators import SynchronousEmulators
        from wavesim_server.engine.event_queue import EventQueue
        from wavesim_server.engine.pace import TickPacer
        from wavesim_server.instruments import InstrumentRegistry
        from wavesim_server.network.engine_queue import EngineQueue
        from wavesim_server.network.front import Front
        from wavesim_server.resources import area_tables
        from wavesim_server.ring import Ring
        from wavesim_world.config import load

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "routes.xml"
            path.write_text(CONFIG)
            loaded = load(path)
        areas = {name: SharedMemoryArea.create_private(tables) for name, tables in area_tables(loaded).items()}
        self.commands, self.events = Ring.create_private(1 << 20), Ring.create_private(1 << 20)
        simulation = Simulation(loaded)
        instruments = InstrumentRegistry(loaded.sensor_rows, simulation.step_ns)
        emulators = SynchronousEmulators(areas["vehicles"], {}, instruments, 1.0, loaded.config.network.lockstep_budget)
        pacer = TickPacer.from_config(loaded.config.time)
        events = EventQueue(self.events, pacer)
        self.engine = Engine(simulation, areas, self.commands, events, emulators, pacer)
        self.front = Front(loaded, "routes", 1, areas, EngineQueue(self.commands), self.events)
        self.client, self.now = ClientSession(Join(name="a", state_period_ns=10_000_000)), 100.0
        self.received: list[Any] = []
        self.engine.begin(self.now)
        for _ in range(100):
            self.turn()
        assert self.client.phase is Phase.JOINED and simulation.occupants

    def turn(self) -> None:
        """Let a hundredth of a second pass."""
        self.now += 0.01
        self.engine.poll(self.now)
        for kind, payload in self.events.pop_all():
            self.front.event(kind, payload, self.now)
        for data in self.client.outgoing(self.now):
            self.front.receive(data, ADDRESS, self.now)
        self.front.poll(self.now)
        self.send()

    def send(self) -> None:
        """Deliver the datagrams of the front to the client."""
        batches, self.front.outgoing = self.front.outgoing, []
        for batch in batches:
            rows = [bytes(row) for row in batch.matrix] if hasattr(batch, "matrix") else [data for data, _ in batch]
            for data in rows:
                self.received += self.client.receive(data, self.now)

    def to_front(self, datagrams: list[bytes]) -> None:
        """Receive datagrams as the front's process does, one by one."""
        for data in datagrams:
            self.front.receive(data, ADDRESS, self.now)
            self.front.hand_over()

    def to_engine(self) -> None:
        """Let the engine execute the commands that have arrived."""
        self.engine.poll(self.now)

    def actuate(self) -> list[bytes]:
        """Return a datagram with commands for the five actuators of the vehicle."""
        self.client.actuate([8.0, 0.1, -0.1, 0.05, -0.05])
        return [d for d in self.client.outgoing(self.now) if d[5] == 16]

    def ping(self) -> list[bytes]:
        """Return a datagram with the request of a ping."""
        from wavesim_sdk.wire.items import Ping

        self.client.request(Ping(25e3))
        return [d for d in self.client.outgoing(self.now) if d[5] == 17]

    def state(self) -> None:
        """Publish a tick and send the STATE."""
        from wavesim_sdk.tables import RunState

        self.engine.publication.publish_tick(RunState.STOPPED, self.engine.pacer, self.now)
        self.now += 0.02
        self.front.poll(self.now)


class Trace:
    """Modules in the order in which they are entered, and the numbers of encodings, decodings and checks."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.counts: Counter[str] = Counter()
        self._names: dict[CodeType, str] = {}

    def __enter__(self) -> Trace:
        import msgpack

        from wavesim_sdk.wire import codec, schema

        packers = [(m, "_pack", "encodings") for m in (codec, schema) if hasattr(m, "_pack")]
        self._patches = [
            mock.patch.object(owner, name, self._counted(f"msgpack {what}", getattr(owner, name)))
            for owner, name, what in (
                (msgpack, "packb", "encodings"),
                (msgpack, "unpackb", "decodings"),
                *packers,
            )
        ]
        for patch in self._patches:
            patch.start()
        sys.setprofile(self._on_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        for patch in self._patches:
            patch.stop()

    def _counted(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **options: Any) -> Any:
            self.counts[what] += 1
            return function(*values, **options)

        return call

    def _name(self, frame: FrameType) -> str:
        code = frame.f_code
        if code not in self._names:
            path = Path(code.co_filename)
            known = path.parts[-2] if "wavesim_" in code.co_filename and "site-packages" not in path.parts else ""
            name = f"{known.removeprefix('wavesim_')}/{path.stem}" if known else ""
            self._names[code] = GENERATED if code.co_filename == "<string>" and code.co_name == "decode" else name
        return self._names[code]

    def _on_event(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            if (name := self._name(frame)) == GENERATED:
                self.counts[f"schema checks of {frame.f_globals['record'].__name__}"] += 1
            elif frame.f_code.co_name == "order_command":
                self.counts["checks by order_command"] += 1
            elif frame.f_code.co_qualname == "Schema.encode":
                self.counts["schema encodings"] += 1
        elif event == "return":
            back = frame.f_back
            name = self._name(back) if back is not None else ""
        else:
            return
        if name and (not self.modules or self.modules[-1] != name):
            self.modules.append(name)

    def report(self) -> dict[str, Any]:
        """Return the figures of the trace."""
        seen: list[str] = []
        returns = 0
        for name in self.modules:
            returns += name in seen
            if name not in seen:
                seen.append(name)
        return {
            "route": seen,
            "modules": len(seen),
            "entries": len(self.modules),
            "returns": returns,
            "entries of wire/server": self.modules.count("wire/server"),
            "entries of network/front": self.modules.count("network/front"),
            **self.counts,
        }


def cpu_us(run: Callable[[], object]) -> float:
    """Return the processor time of a call in us."""
    start = time.process_time_ns()
    run()
    return (time.process_time_ns() - start) * 1e-3


def times(rig: Rig, make: Callable[[], list[bytes]], acknowledge: bool) -> tuple[float, float]:
    """Return the minimum processor time of one datagram in front and engine, in us."""
    front, engine = [], []
    for _ in range(BATCHES):
        datagrams = list(itertools.chain.from_iterable(make() for _ in range(BATCH)))
        assert len(datagrams) == BATCH
        front.append(cpu_us(functools.partial(rig.to_front, datagrams)) / BATCH)
        engine.append(cpu_us(rig.to_engine) / BATCH)
        if acknowledge:
            for _ in range(6):
                rig.turn()
    return min(front), min(engine)


def measure() -> dict[str, Any]:
    """Return traces and times of this checkout."""
    rig = Rig()
    found: dict[str, Any] = {}
    for data in (rig.actuate(), rig.actuate()):
        with Trace() as trace:
            rig.to_front(data)
        found["ACTUATE, front"] = trace.report()
        with Trace() as trace:
            rig.to_engine()
        found["ACTUATE, engine"] = trace.report()
    rig.state()
    rig.send()
    with Trace() as trace:
        rig.state()
    found["STATE out"] = trace.report()
    rig.send()
    with mock.patch.object(rig.engine.sim, "ping", lambda *values, **named: None):
        for _ in range(2):
            rig.turn()
            with Trace() as trace:
                data = rig.ping()
            found["ping, client"] = trace.report()
            with Trace() as trace:
                rig.to_front(data)
            found["ping, front"] = trace.report()
            with Trace() as trace:
                rig.to_engine()
            found["ping, engine"] = trace.report()
        actuate = times(rig, rig.actuate, False)
        ping = times(rig, rig.ping, True)
    found["us"] = dict(
        zip(("ACTUATE, front", "ACTUATE, engine", "ping, front", "ping, engine"), actuate + ping, strict=True)
    )
    return found


def measured(checkouts: list[Path]) -> Iterator[dict[str, Any]]:
    """Yield the figures of each checkout, measured in turn."""
    best: list[dict[str, Any]] = [{} for _ in checkouts]
    for _ in range(ROUNDS):
        for k, root in enumerate(checkouts):
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(root / part) for part in PARTS)}
            command = [sys.executable, "-P", __file__, "--json"]
            new = json.loads(
                subprocess.run(command, env=environment, capture_output=True, check=True, text=True).stdout
            )
            old = best[k].get("us", new["us"])
            best[k] = new | {"us": {name: min(old[name], us) for name, us in new["us"].items()}}
    yield from best


def main() -> None:
    """Print the figures of this checkout, and of another one."""
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(measure()))
        return
    checkouts = [ROOT, *(Path(name).resolve() for name in sys.argv[1:])]
    for root, found in zip(checkouts, measured(checkouts), strict=True):
        print("this checkout" if root == ROOT else "the other checkout")
        for name, values in found.items():
            print(f"  {name}")
            for what, value in values.items():
                text = f"{value:.1f}" if isinstance(value, float) else value
                print(f"    {what}: {' > '.join(text) if isinstance(text, list) else text}")


if __name__ == "__main__":
    main()
