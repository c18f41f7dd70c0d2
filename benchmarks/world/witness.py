"""Record of the true events, for comparison with messages to clients and with the log."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.world import scenes
from benchmarks.world.emulators import value
from benchmarks.world.logs import ExpectedLog, compare
from benchmarks.world.report import Broken, Trace
from wavesim_sdk.commander import CommandReply
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire.messages import Resumption, Role, Welcome
from wavesim_sdk.wire.state import State

if TYPE_CHECKING:
    from benchmarks.world.program import Program
    from benchmarks.world.server import Server

MOTION = 16
STALE_PERIODS = 5  #: age of a value, in periods of its sensor, above which it must not be sent
STALE_NS = 1_000_000_000  #: more than the latency of each sensor


@dataclass(frozen=True)
class Standing:
    """The engine waits: at a tick, since a time."""

    tick: int
    since: float


class Witness:
    """Observes the simulation itself instead of its published data."""

    def __init__(self, server: Server, trace: Trace) -> None:
        self._server, self._trace = server, trace
        self._hash = hashlib.blake2b(digest_size=8)
        self._truth: dict[int, list[Any]] = defaultdict(list)  # tick -> motion of all rows, each time it was published
        self._clock: list[tuple[float, int, int]] = []  # when, tick, run state
        self._there: dict[int, tuple[Any, float]] = {}  # row -> who is in it, since when
        self.waits: Standing | None = None  #: wait for lockstep clients
        self.asks: Standing | None = None  #: wait for emulators
        self._expected_log = ExpectedLog(server)
        engine = server.engine
        publish = engine.run.publish

        def watched() -> None:
            publish()
            self._published()

        engine.run.publish = watched  # type: ignore[method-assign]  # to see when it does

    def _published(self) -> None:
        engine = self._server.engine
        state = engine.sim.state().view(np.float64).reshape(-1, MOTION)
        self._truth[engine.sim.tick].append(state)
        self._clock.append((engine.run.now, engine.sim.tick, int(engine.run.state)))
        self._hash.update(state.tobytes())
        for row, occupant in engine.sim.occupants.items():
            if row not in self._there or self._there[row][0] is not occupant:
                self._there[row] = occupant, engine.run.now

    def came(self, row: int) -> float:
        """Return the time at which the body of a row entered."""
        return self._there[row][1]

    def digest(self) -> bytes:
        """Return a digest of everything that the simulation did."""
        return self._hash.digest()

    def turned(self, now: float) -> None:
        """Record that the engine ran."""
        engine = self._server.engine
        tick = engine.sim.tick
        if not engine.run.awaits_release:
            self.waits = None
        elif self.waits is None or self.waits.tick != tick:
            self.waits = Standing(tick, now)
            self._trace.note(now, "barrier", tick)
        if not engine.emulators.pending or engine.run.state is not RunState.RUNNING:
            self.asks = None
        elif self.asks is None or self.asks.tick != tick:
            self.asks = Standing(tick, now)

    def welcomed(self, client: Program, welcome: Welcome) -> None:
        """Check that tick and run state were true at a moment since the client's request, and that the statement about
        its body is true.
        """
        first = max(bisect_right(self._clock, (client.joined_at, 2**62, 0)) - 1, 0)
        if not any((tick, state) == (welcome.tick, welcome.run_state) for _, tick, state in self._clock[first:]):
            raise Broken(
                f"a welcome that is not true: {client.name} received tick {welcome.tick}, run state {welcome.run_state}; since it "
                f"asked there were {sorted({c[1:] for c in self._clock[first:]})[:8]}"
            )
        assert client.session is not None
        asked = client.session.join
        if (welcome.resumed == Resumption.RESUMED) != bool(asked.previous):
            raise Broken(f"how it came: {client.name} named session {asked.previous}, welcome says {welcome.resumed}")
        if welcome.resumed == Resumption.TOOK_OVER and self._server.loaded.config.network.takeover == "no":
            raise Broken(f"how it came: {client.name} took over where nobody may")
        if welcome.lockstep_ns % self._server.engine.sim.step_ns:
            raise Broken(f"a period that cannot be: {client.name} is asked every {welcome.lockstep_ns} ns")
        if (welcome.id == -1) != (asked.role == Role.OBSERVER):
            raise Broken(f"how it came: {client.name} has row {welcome.id}")

    def check_state(self, client: Program, state: State, dirty: set[str]) -> None:
        """Check that motion and sensor values of a state were those of the body at that tick."""
        assert client.welcome is not None
        engine, row = self._server.engine, client.welcome.id
        # after a reset, a state from before it may still arrive, so the tick need not have been reached again
        if state.tick not in self._truth or state.time_ns != state.tick * engine.sim.step_ns:
            raise Broken(f"a state of no time: {client.name} received tick {state.tick}, {state.time_ns} ns")
        body = next((b for b in engine.sim.config.fleet.bodies if b.name == client.body), None)
        if body is not None and (state.motion is None) != (body.truth == "none"):
            raise Broken(f"truth: {client.name} received {state.motion}")
        if state.motion is not None:
            motion = np.array(state.motion)
            if not any(np.array_equal(motion, t[row], equal_nan=True) for t in self._truth[state.tick]):
                was = [t[row, :3].tolist() for t in self._truth[state.tick]]
                raise Broken(
                    f"a state that was not: {client.name} at tick {state.tick} in row {row}: {motion[:3]}, it was {was}"
                )
        self._sensors(client, state, dirty)

    def _sensors(self, client: Program, state: State, dirty: set[str]) -> None:
        assert client.session is not None
        who = client.world.index(client.body)
        layouts = {layout.description.name: layout for layout in client.session.body.layouts.values()}
        for name, sensor in state.sensors.items():
            description = layouts[name].description
            if description.type in dirty:
                continue
            tick = sensor.time_ns // self._server.engine.sim.step_ns
            right = value(who, description.number, tick, len(sensor.numbers))
            # one that needs several datagrams has gaps where its pieces were of two sendings of the same tick
            if not all(n == v or n != n for n, v in zip(sensor.numbers, right.tolist(), strict=True)):
                raise Broken(
                    f"values of another: {client.name} received {name} = {sensor.numbers[:3]} of tick {tick}, it is number {who}"
                )
            if state.time_ns - sensor.time_ns > STALE_PERIODS * description.period_ns + STALE_NS:
                raise Broken(f"stale values: {client.name} at tick {state.tick} received {name} of tick {tick}")
            if tick > state.tick:
                raise Broken(f"values of the future: {client.name} at tick {state.tick} received {name} of tick {tick}")

    def replied(self, reply: CommandReply) -> None:
        """Check a reply to the commander."""
        if "the server failed" in reply.text:
            raise Broken(f"a command failed inside the server: {reply.text}")

    def read_logs(self) -> None:
        """Check that the log equals the events."""
        server = self._server
        compare(server, self._expected_log, scenes.folder() / "run.mcap", server.lost)
