"""A siege: a server with well-behaved clients, and an adversary who knows everything about the network but no key.

Each seed runs a world and then a siege. Its clients do nothing wrong: they resume, leave, move, vanish, and are late. The
adversary sees all datagrams, and adds others: copies that overtake the originals, replays, forgeries and joins (after
Dolev and Yao). Neither draws random numbers of the world, so the seeds of the regressions stay valid.

:class:`Judge` decides by what was on the network and in the engine, without asking the sessions what they allow.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from benchmarks.world import invariants, scenes
from benchmarks.world.adversary import Adversary
from benchmarks.world.citizens import MARK, Citizen
from benchmarks.world.judge import Judge
from benchmarks.world.network import Address, Weather
from benchmarks.world.world import CALM_S, SETTLED_S, World
from wavesim_sdk.wire.messages import (
    Role,
)
from wavesim_server import messages

if TYPE_CHECKING:
    from benchmarks.world.clients import Client
    from wavesim_server.network.front import Front

THEMES = ("resume", "restless", "move", "vanish", "lossy steps", "dawdle", "frozen emulator", "probe", "flood")
SUSPENDS = 0.15  #: fraction of the sieges in which the whole machine is suspended once


class Siege(World):
    """A world with an adversary; see the module."""

    scenes = scenes.BESIEGED
    possible_plagues: tuple[str, ...] = ()
    clients: list[Client]

    def __init__(self, seed: int, without: frozenset[str] = frozenset()) -> None:
        self.citizens: list[Citizen] = []
        self.intruders: set[Address] = set()  #: addresses of clients that have no session of their own
        super().__init__(seed, without | {"thief", "stall", "rekeying"})
        r = self.stream("siege")
        self.loud = "loud" not in without and "restless" in self.themes  # events that reach who came later
        self.length = r.choice((2.5, 3.5))
        self.server.slow = r.choice((0.01, 0.03))
        self.commander.calm = True
        self.suspends = "suspend" not in without and self.stream("suspend").random() < SUSPENDS
        self.adversary = Adversary(self, self.stream("adversary"))
        self.judge = Judge(self)
        self.network.tap = self._tap

    def stream(self, of: str) -> random.Random:
        """Return random numbers for one part of the siege."""
        return random.Random(f"{self.seed} siege {of}")

    def _weather(self) -> Weather:
        return Weather(delay=self.stream("delay").choice((0.001, 0.004, 0.01)))

    def _populate(self, r: random.Random) -> list[Client]:
        self.themes = [t for t in r.sample(THEMES, 4) if f"theme {t}" not in self.without]
        on = set(self.themes)

        def those(*habits: str) -> list[str]:
            return [h for h in habits if h in on]

        ticks = r.choice((0, 1, 2)) if not on & {"dawdle", "lossy steps"} else 1
        found = [
            Citizen(self, "auv-pilot", Role.PILOT, "auv", ticks, those("resume", "lossy steps", "move")),
            Citizen(self, "usv-pilot", Role.PILOT, "usv", 0, those("restless") or those("resume")),
        ]
        if "restless" in on:
            found += [
                Citizen(self, "comes-and-goes", Role.PILOT, "newby", 0, ["restless"]),
                Citizen(self, "sounder", Role.INSTRUMENT, "auv", 0, ["restless"]),
            ]
        if "vanish" in on:
            found.append(Citizen(self, "vanisher", Role.PILOT, "late-one", 0, ["vanish"]))
        if "dawdle" in on:
            found.append(Citizen(self, "dawdler", Role.PILOT, "third", 1, ["dawdle"]))
            found[0].thinks = 0.1  # so that a late answer often arrives while another one is awaited
        if "move" in on:
            found.append(Citizen(self, "walker", Role.PILOT, "drifter", 0, ["move", "move"]))
        self.citizens = [c for c in found if c.name not in self.without]
        return self.citizens  # type: ignore[return-value]  # they do what clients do, except for their acts

    @property
    def parts(self) -> list[str]:
        """Return the parts that can be omitted."""
        names = [c.name for c in self.citizens] + [f"theme {t}" for t in self.themes]
        rare = ["suspend"] if self.suspends else []
        return [p for p in (*names, *rare, "adversary", "loud") if p not in self.without]

    def client_of(self, token: int) -> Citizen | None:
        """Return the client that has this session now."""
        return next((c for c in self.citizens if c.session is not None and c.session.token == token), None)

    def front_begins(self, front: Front) -> None:
        super().front_begins(front)
        receive = front.sessions.receive

        def judged(data: bytes, address: Address, now: float) -> Any:
            return self.judge.receives(front, receive, data, address, now, self.adversary.injecting)

        front.sessions.receive = judged  # type: ignore[method-assign]  # to see what goes in and comes out

    def _tap(self, data: bytes, source: Address, target: Address) -> None:
        self.judge.on_the_way(data, source, target)
        if "adversary" not in self.without:
            self.adversary.watch(data, source, target)

    def turned(self, now: float) -> None:
        super().turned(now)
        self._mark()

    def _mark(self) -> None:
        """Let the engine say something about each newcomer, so that each row has notices on their way."""
        engine = self.server.engine
        for row, occupant in engine.sim.occupants.items():
            if occupant.name in ("newby", "usv") and not self.calm and not engine.is_over:
                engine.events.emit(
                    messages.NoticeEvent(engine.sim.time_ns, row, occupant.name, MARK, engine.run.generation(row))
                )

    def _until(self, end: float) -> None:
        while self.clock.step(end):
            invariants.hold(self)
            if self.clock.steps % invariants.EVERY == 0:
                self.judge.hold()

    def _live(self) -> None:
        now = self.clock.now
        self.server.start(now)
        sizes = self.server.sizes() if self.seed % 8 == 0 else {}
        for emulator in self.emulators:
            emulator.start(now)
        self.commander.start(now)
        for k, citizen in enumerate(self.citizens):
            self.clock.at(now + 0.02 * k, citizen.start)
        if "adversary" not in self.without:
            self.adversary.start(now)
            if "probe" in self.themes:
                self.clock.at(now + 0.6, self.adversary.probe)
            if "flood" in self.themes:
                self.clock.at(now + 0.4, self.adversary.flood)
        if self.suspends:
            self.clock.at(now + self.stream("suspend at").uniform(0.3, 2.0), self._suspend)
        if "frozen emulator" in self.themes:
            self.clock.at(now + 0.5, self._freeze)
        self._until(self.clock.now + self.length)
        if self.suspends:
            self._until(self.clock.now + 1.0)
        self._become_calm()
        self._until(self.clock.now + CALM_S)
        before = invariants.said(self)
        self._until(self.clock.now + SETTLED_S)
        invariants.at_rest(self, before)
        self._leave(sizes)
        self.witness.read_logs()

    def _suspend(self, now: float) -> None:
        """Suspend the machine: no process of it runs for a while. Nobody may be removed for that."""
        seconds = self.stream("suspended for").choice((0.4, 2.0, 8.0, 3600.0))
        self.note("suspend", seconds)
        self.clock.jump(seconds)
        self.server.stood = self.clock.now
        for citizen in self.citizens:
            if citizen.session is not None:
                citizen.session.last_heard += seconds
        for token in self.judge.life:
            self.judge.life[token] += seconds

    def _freeze(self, now: float) -> None:
        for emulator in self.emulators:
            emulator.state = "frozen"
