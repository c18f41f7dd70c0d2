"""One world: a server, its clients and emulators, a commander, foreign senders and all faults, from one seed.

It has three phases. First, everything possible happens. Then the network is perfect and no participant does harm; all
that are alive must come to rest with nothing outstanding. Finally all leave, and nothing of them may remain.
"""

from __future__ import annotations

import contextlib
import io
import random
import traceback
from collections.abc import Iterator
from typing import Any
from unittest import mock

from benchmarks.world import invariants
from benchmarks.world.absurd import Absurd
from benchmarks.world.clients import Client
from benchmarks.world.clock import Clock
from benchmarks.world.emulators import SELF, Emulator
from benchmarks.world.key_officer import KeyOfficer
from benchmarks.world.ledger import Book
from benchmarks.world.network import Address, Network, Weather
from benchmarks.world.others import Commander, Stranger, Thief
from benchmarks.world.program import Program
from benchmarks.world.report import Broken, Report, Trace
from benchmarks.world.scenes import KEYS, NAMES, NEWCOMERS, Scene, scene
from benchmarks.world.server import Server
from benchmarks.world.witness import Witness
from wavesim_sdk.commander import CommandReply
from wavesim_sdk.wire import reliable, server
from wavesim_sdk.wire.items import EVENTS, REQUESTS, EventKind, Request
from wavesim_sdk.wire.messages import Role, Welcome
from wavesim_sdk.wire.schema import schema_of
from wavesim_sdk.wire.session import AddressMigrated, Joined, Resumed, SessionGone
from wavesim_sdk.wire.state import State
from wavesim_server.engine import emulators as asked
from wavesim_server.logbook import writer
from wavesim_server.network.front import Front
from wavesim_server.network.key_changes import VERB as RELOAD_KEYS

PENDING = 256  #: number of unacknowledged events that end a session; with the product's 4096, a run would take minutes
BEGIN_S = 100.0  #: the virtual clock does not begin at zero
ROLES = (Role.PILOT, Role.PILOT, Role.PILOT, Role.INSTRUMENT, Role.LISTENER, Role.OBSERVER)
PLAGUES = ("loss", "double", "flip", "cut", "late", "crash", "disk", "rings", "emulators")
TOMBS_S = 11.0  #: time for which ended sessions are remembered
CALM_S = 1.3  #: longer than all time limits in sequence
SETTLED_S = 0.2  #: time after which all earlier messages have arrived
STALLS = 0.2  #: fraction of the worlds in which a part of the server stops for a while
THIEVES = 0.7  #: fraction of the worlds with keys in which an attacker copies, replays, forges and relays datagrams
REKEYED = 0.8  #: fraction of the worlds with keys in which keys are replaced and revoked
LOUD = 0.3  #: fraction of those in which one client pings continually, and another leaves and rejoins continually
KINDS = 4  #: in each group of this many seeds, the first is checked for leaks, and the last two end without the slow calm phase
#: items that are not drawn yet, because a message of a pilot becomes a notice that the engine did not send, and because
#: the seeds that detect defects were found without these items
LEFT_OUT: dict[str, set[int]] = {
    EVENTS.name: {EventKind.MISSION, EventKind.VEHICLE_COMMAND},
    REQUESTS.name: {Request.MISSION, Request.MISSIONS, Request.VEHICLE_COMMAND, Request.COMMAND_ANSWER},
}
_FAMILIES = {
    family.name: {
        number: schema_of(record).describe()
        for number, record in family.records.items()
        if number not in LEFT_OUT[family.name]
    }
    for family in (EVENTS, REQUESTS)
}


@contextlib.contextmanager
def altered() -> Iterator[None]:
    """Patches of the product while worlds run, removed afterwards so that other users of this process are not affected."""
    with contextlib.ExitStack() as stack:
        for module in (reliable, server):
            stack.enter_context(mock.patch.object(module, "MAX_PENDING", PENDING))
        # The picture of the bed in the log costs as much as all else of a short log; and there are no processes here.
        stack.enter_context(mock.patch.object(writer, "bed_around_fleet", lambda loaded: {}))
        stack.enter_context(mock.patch.object(asked, "is_process_alive", lambda pid, start: (pid, start) == SELF))
        yield


class World:
    """A world; see the module. ``without`` omits parts: clients, habits (`NAME.habit`), plagues."""

    scenes: tuple[str, ...] = NAMES
    possible_plagues: tuple[str, ...] = PLAGUES

    def __init__(self, seed: int, without: frozenset[str] = frozenset()) -> None:
        self.seed, self.without = seed, without
        self.trace = Trace()
        self.clock = Clock(BEGIN_S)
        r = self.stream("world")
        self.scene: Scene = scene(r.choice(self.scenes))
        self.step_ns = round(self.scene.loaded.config.time.step * 1e9)
        plagues = r.sample(self.possible_plagues, r.randrange(len(self.possible_plagues) + 1))
        self.plagues = [p for p in plagues if p not in without]
        self.network = Network(self.clock, self.stream("network"), self._weather(), self._damaged)
        self.calm = False
        self.quiet_at = BEGIN_S  #: time at which nothing was in transit inside the server
        self.books: dict[int, Book] = {}
        self.answers: dict[
            int, float
        ] = {}  #: session -> time of its first answer in the calm phase after the engine stopped waiting for it
        self._places: dict[Address, Program] = {}
        self._addresses = 0
        self._names: dict[str, int] = {}
        changes = "rekeying" not in without and self.scene.sealed and self.stream("keys").random() < REKEYED
        self.officer = KeyOfficer(self, self.stream("key officer"), KEYS, changes)
        self.loud = "loud" not in without and self.stream("loud").random() < LOUD
        self.server = Server(self, self.scene, self.stream("server"))
        self.witness = Witness(self.server, self.trace)
        vehicles = self.server.areas["vehicles"]
        self.emulators = [
            Emulator(self, t, self.stream(f"emulator {t}"), bell, vehicles)
            for t, bell in self.server.bells.items()
            if f"emulator-{t}" not in without
        ]
        self.commander = Commander(self, self.stream("commander"))
        self.clients = [c for c in self._populate(r) if c.name not in without]
        strangers = r.choice((0, 0, 0, 1, 2))
        self.strangers = [
            Stranger(self, self.stream(f"stranger {k}")) for k in range(strangers) if f"stranger-{k}" not in without
        ]
        self.thief: Thief | None = None
        if self.scene.sealed and "thief" not in without and self.stream("thief").random() < THIEVES:
            self.thief = Thief(self, self.stream("thief's"))
        self.short = seed % KINDS > 1
        self.length = 2.0 if r.random() < 0.05 else r.choice((0.3, 0.5, 0.8))
        if "crash" in self.plagues:
            self.clock.at(BEGIN_S + self.length * r.random(), self._crash)
        self.stalls = "stall" not in without and self.stream("stalls").random() < STALLS
        if self.stalls:
            self.clock.at(BEGIN_S + self.length * self.stream("stall at").random(), self._stall)

    def stream(self, of: str) -> random.Random:
        """Return random numbers for one part, which do not depend on draws of other parts."""
        return random.Random(f"{self.seed} {of}")

    def _weather(self) -> Weather:
        weather = Weather.draw(self.stream("weather"))
        for plague in ("loss", "double", "flip", "cut", "late"):
            if plague not in self.plagues:
                setattr(weather, plague, 0.0)
        return weather

    def _populate(self, r: random.Random) -> list[Client]:
        found = []
        for k in range(r.randint(1, 4)):
            role = r.choice(ROLES)
            body = r.choice((*self.scene.bodies, *self.scene.bodies, *NEWCOMERS))
            if role is Role.OBSERVER:
                body = f"watcher-{k}"
            name = f"{role.name.lower()}-{k}"
            found.append(Client(self, name, self.stream(name), role, body))
        if self.loud:  # it listens, leaves and comes again, always in the same row
            restless = Client(self, "restless", self.stream("restless"), Role.PILOT, "usv")
            restless.habits, restless.favourite, restless.listens = ["leave"], "leave", 1
            found.append(restless)
        return found

    @property
    def parts(self) -> list[str]:
        """Return the parts that can be omitted."""
        names = [c.name for c in self.clients]
        habits = [f"{c.name}.{h}" for c in self.clients for h in c.habits]
        others = [f"stranger-{k}" for k in range(len(self.strangers))] + [
            f"emulator-{e.sensor}" for e in self.emulators
        ]
        rare = [
            name
            for name, there in (
                ("stall", self.stalls),
                ("loud", self.loud),
                ("thief", self.thief is not None),
                ("rekeying", self.officer.changes),
            )
            if there
        ]
        return [p for p in (*names, *others, *self.plagues, *rare, *habits) if p not in self.without]

    @property
    def clean(self) -> bool:
        """Return whether every datagram arrives unchanged and no part of the server was killed."""
        weather = self._weather()
        bad = weather.loss + weather.flip + weather.cut + weather.late
        return bad == 0.0 and "crash" not in self.plagues and not self.server.engine.is_over

    # -- what the actors ask of it ---------------------------------------------------------------------

    def note(self, what: str, *more: object) -> None:
        """Record an event."""
        self.trace.note(self.clock.now, what, *more)

    def new_address(self) -> Address:
        """Return an address that no participant had."""
        self._addresses += 1
        return f"10.0.{self._addresses >> 8}.{self._addresses & 255}", 5000 + self._addresses

    def index(self, name: str) -> int:
        """Return a small number for a name."""
        return self._names.setdefault(name, len(self._names) + 1)

    def absurd(self, r: random.Random) -> Absurd:
        """Return a source of invalid values that uses these random numbers."""
        return Absurd(r, self.scene.words, _FAMILIES)

    def _damaged(self, address: Address) -> None:
        """Record that a datagram from or to an address was changed. Sealed sessions detect this; for others no
        guarantee applies any more.
        """
        if not self.scene.sealed:
            for client in self.clients:
                if client.address == address:
                    client.lie()

    def key(self, name: str, newest: bool = False) -> bytes | None:
        """Return the key of a program by name, if keys are required."""
        if not self.scene.sealed:
            return None
        return self.officer.newest(name) if newest else self.officer.key(name)

    def token(self, client: Program) -> None:
        """Record that a client learned its token, so that both ends of its session are known."""
        assert client.session is not None and client.book is not None
        book = self.books.get(client.session.token)
        if book is None:
            if client.honest:
                raise Broken(f"a token of nobody: {client.name} was given one that the server does not have")
            return
        book.adopt(client.book)

    def replied(self, message: dict[str, Any], reply: CommandReply) -> None:
        """Check an answer of the front to the commander."""
        if message["verb"] == RELOAD_KEYS:
            self.officer.replies.append(reply)
        if not self.commander.replied(message, reply.ok):
            raise Broken(f"a reply to nothing: {message} got {reply}")
        self.witness.replied(reply)

    def check_welcome(self, client: Program, welcome: Welcome) -> None:
        """Check that the statements of a WELCOME are true."""
        self.witness.welcomed(client, welcome)

    def check_state(self, client: Program, state: State) -> None:
        """Check that the content of a state was true."""
        self.witness.check_state(client, state, {e.sensor for e in self.emulators if e.dirty})

    # -- the server ------------------------------------------------------------------------------------

    def front_begins(self, front: Front) -> None:
        """Watch the sessions of a new front."""
        receive = front.sessions.receive

        def watched(data: bytes, address: Address, now: float) -> Any:
            thief = self.thief if self.thief is not None and self.thief.said(data, address) else None
            before = thief.touches(front, data) if thief is not None else ()
            happened = receive(data, address, now)
            said = any(isinstance(h, AddressMigrated | SessionGone) for h in happened)
            if thief is not None and not said and (after := thief.touches(front, data)) != before:
                raise Broken(f"somebody without a key changed a session: {before} to {after}")
            for h in happened:
                if isinstance(h, Joined | Resumed):
                    book = self.books[h.session.token] = Book(h.session.name)
                    book.server_side(h.session)
                    book.since = self.server.engine.sim.tick
                    if self.scene.sealed:
                        self.officer.joined(h.session)
            return happened

        front.sessions.receive = watched  # type: ignore[method-assign]  # to see what goes in and comes out

    def turned(self, now: float) -> None:
        """Record that the engine ran."""
        self.witness.turned(now)

    def _crash(self, now: float) -> None:
        r = self.stream("crash")
        self.note("crash")
        self.server.crash(lambda: r.random() < 0.7)
        self.commander.waiting.clear()
        self.clock.at(now + r.choice((0.01, 0.2, 0.6)), self._restart)

    def _stall(self, now: float) -> None:
        r = self.stream("stall")
        part, seconds = r.choice(("front", "front", "engine")), r.choice((0.3, 0.65, 0.65, 1.2))
        self.note("stall", part, seconds)
        self.server.stand_still(part, now, seconds)

    def _restart(self, now: float) -> None:
        self.note("restart")
        self.server.restart(now)

    def _plague_emulators(self, now: float) -> None:
        if not self.calm and self.emulators:
            r = self.stream(f"plague {now}")
            r.choice(self.emulators).misbehave(now)
            self.clock.at(now + r.expovariate(4.0), self._plague_emulators)

    # -- its life --------------------------------------------------------------------------------------

    def run(self) -> Report:
        """Run the world from beginning to end."""
        broken, trouble, heard = "", "", io.StringIO()
        with contextlib.redirect_stderr(heard):
            try:
                self._live()
            except Broken as error:
                broken, trouble = str(error), traceback.format_exc()
            except Exception as error:  # what nobody caught would have ended a process
                place = traceback.extract_tb(error.__traceback__)[-1]
                broken = f"{type(error).__name__} in {place.name}: {error}"
                trouble = traceback.format_exc()
        trouble += "\n".join(self.server.said[-3:]) + heard.getvalue()[-4000:] if broken else ""
        self.trace.data(self.witness.digest())
        counts = self.trace.counts
        counts["scene " + self.scene.name] += 1
        counts["datagrams"] = self.network.carried
        return Report(
            self.seed,
            self.trace.hash,
            self.clock.steps,
            self.clock.now - BEGIN_S,
            counts,
            broken,
            trouble,
            self.trace.last if broken else (),
        )

    def _live(self) -> None:
        now = self.clock.now
        self.server.start(now)
        sizes = self.server.sizes() if self.seed % KINDS == 0 else {}
        for emulator in self.emulators:
            emulator.start(now)
        if "emulators" in self.plagues:
            self.clock.at(now + 0.3, self._plague_emulators)
        self.commander.start(now)
        self.officer.start(now)
        for client in self.clients:
            self.clock.at(now + self.stream(f"start {client.name}").random() * 0.1, client.start)
        for stranger in self.strangers:
            stranger.start(now)
        if self.thief is not None:
            self.thief.start()
        self._until(now + self.length)
        if self.short:
            self.server.go_on(self.clock.now)
            self.server.restart(self.clock.now)
            self.server.finish(self.clock.now)
        else:
            self._become_calm()
            self._until(max(self.clock.now, self.server.stood) + CALM_S)
            before = invariants.said(self)
            self._until(self.clock.now + SETTLED_S)
            invariants.at_rest(self, before)
            self._leave(sizes)
        if self.seed % KINDS != 1:
            self.witness.read_logs()

    def _until(self, end: float) -> None:
        while self.clock.step(end):
            invariants.hold(self)

    def _become_calm(self) -> None:
        now = self.clock.now
        self.note("calm")
        self.calm = True
        self.network.weather = Weather()
        self.server.slow = 0.1  # it is time that matters now, not ticks
        self.server.restart(now)
        for emulator in self.emulators:
            emulator.mend(now)
        for client in self.clients:
            client.wake()
            client.has_new_key(now)
            if not client.honest:
                client.vanish(now)
        self.commander.send("start")

    def _leave(self, sizes: dict[str, int]) -> None:
        self.note("end")
        for client in self.clients:
            client.quit()
        self._until(self.clock.now + 0.8)  # who asked just now is removed as silent
        self.commander.send("pause")
        self._until(self.clock.now + 0.1)
        if sizes:
            self.server.slow, self.server.seldom = 1.0, 0.2  # little is left to do
            self._until(self.clock.now + TOMBS_S)
        invariants.no_client_left(self)
        self.server.finish(self.clock.now)
        if sizes:
            invariants.nothing_left(self, sizes)
