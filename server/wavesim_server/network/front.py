"""The front process: UDP, keep-alive, send-state, commander and logger on one asyncio loop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.area import Area, Record, segment_name
from wavesim_sdk.commander import CommanderQueue, Reply
from wavesim_sdk.config import Loaded, load
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.tables import RECEPTION, SENT, BodyType, RunState
from wavesim_sdk.wire import codec, server
from wavesim_sdk.wire.client import Join
from wavesim_sdk.wire.messages import Event as WireEvent
from wavesim_sdk.wire.messages import Refusal, Type
from wavesim_sdk.wire.server import Admission, Session
from wavesim_sdk.wire.udp import Udp
from wavesim_server import messages
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.messages import NO_RESOURCE, Actuate, Answer, Command, Enter, Execute, Leave, Release
from wavesim_server.network import control, sound
from wavesim_server.network.observers import Observers
from wavesim_server.network.publish import Publisher
from wavesim_server.network.states import Sensors, Writer
from wavesim_server.resources import ring_names
from wavesim_server.ring import Ring

if TYPE_CHECKING:
    from wavesim_sdk.wire.seal import Keyring

HOUSEKEEPING_S = 0.04
GRAIN_S = 0.005  #: at most
STALE_PERIODS = 5.0


@dataclass
class Step:
    """A lockstep tick that the engine waits at."""

    tick: int
    waiting: set[int]  # rows
    answers: dict[int, tuple[list[float | None] | None, list[float | None] | None]]
    deadline: float


class Front:
    """Everything between the socket and the rings."""

    def __init__(
        self, loaded: Loaded, name: str, seed: int, commands_fd: int, events_fd: int, log: LogWriter | None
    ) -> None:
        self.loaded, self.config, self.name, self.seed, self.log = loaded, loaded.config, name, seed, log
        self.areas = {a: Area.attach(segment_name(name, a), writable=True) for a in ("simulation", "vehicles")}
        self.tables = Publisher(self.areas["simulation"], self.areas["vehicles"])
        commands, events = ring_names(name)
        self.commands, self.events = Ring.attach(commands), Ring.attach(events)
        self.commands_fd, self.events_fd = commands_fd, events_fd
        network = self.config.network
        self.sessions = server.ServerSessions(
            self._admit, network.keepalive_period, network.keepalive_timeout, keyring(loaded), network.takeover,
            network.datagram_rate,
        )  # fmt: skip
        self.by_row: dict[int, Session] = {}
        self.reserved = {b.name: row for row, b in enumerate(self.config.fleet.bodies)}
        self.requests: dict[int, list[messages.Sound]] = {}  # row -> acoustic requests of the step under way
        self.allowance, self.payloads = sound.Allowance(network.acoustic_rate), sound.Payloads()
        self.observers = Observers(self._push_event)
        self.step: Step | None = None
        self.dismissed: set[int] = set()  # lockstep rows not waited for since they were too slow
        self.queue = CommanderQueue(name, self.config.shared.group)
        declared = {
            n: e for n in self.config.emulators.names if (e := self.config.emulators.get(n)) is not None and e.send
        }
        self.sensors = tuple(declared)
        # a value that is older is stale: its emulator is dead, frozen or too slow
        fresh_ns = {n: round((STALE_PERIODS / e.rate + e.latency) * 1e9) for n, e in declared.items()}
        self.states = Writer(Sensors(fresh_ns))
        self.step_ns = round(self.config.time.step * 1e9)
        self.pending: dict[int, dict[str, Any]] = {}  # commands to the commander that the engine works on
        self._numbers = 0
        self._parent = os.getppid()
        self.udp: Udp | None = None
        self.free: list[Session] = []  # sessions that are sent their state by wall time
        self.shortest = math.inf  # period of one of them
        self._told: dict[int, Session] = {}  # sessions with new events
        self._backlog: list[tuple[int, bytes]] = []
        self._ended = asyncio.Event()
        self.orphans: dict[int, str] = {}  # bodies of clients that a front before this one had
        self._orphans_until = math.inf

    def inherit(self) -> None:
        """Take over from a front that crashed: its clients' bodies wait for them, as long as a silent client has."""
        identity, clock = self.areas["vehicles"]["identity"].snapshot()[1], self._clock()
        for row in map(int, np.flatnonzero(identity["present"])):
            name = bytes(identity["name"][row]).decode()
            if row >= len(self.config.fleet.bodies) or self.config.fleet.bodies[row].client != "none":
                self.orphans[row] = name
            if self.log is not None:
                kind = BodyType(int(identity["type"][row])).name.lower()
                self.log.body(int(clock["time_ns"]), row, name, bytes(identity["model"][row]).decode(), kind, True)
        self._orphans_until = time.monotonic() + self.config.network.keepalive_timeout
        self._tell(Release(int(clock["tick"]), []))  # the engine may wait for an answer that died

    def _let_orphans_go(self) -> None:
        self._orphans_until = math.inf
        for row in self.orphans:
            self._tell(Leave(row))
            self.tables.left(row, 2)
        self.orphans.clear()

    # -- processes -------------------------------------------------------------------------------

    async def run(self, sock: socket.socket) -> None:
        """Until the supervisor sends SIGTERM."""
        self.udp = await Udp.over(sock)
        loop = asyncio.get_running_loop()
        loop.add_reader(self.events_fd, self._on_events)
        loop.add_reader(self.queue.fd, self._on_commander)
        loop.add_signal_handler(signal.SIGTERM, self._ended.set)
        tasks = [asyncio.create_task(self._receive()), asyncio.create_task(self._housekeeping())]
        ended = asyncio.create_task(self._ended.wait())
        await asyncio.wait([*tasks, ended], return_when=asyncio.FIRST_COMPLETED)
        failed = [t for t in tasks if t.done() and t.exception() is not None]
        for session in list(self.sessions.by_token.values()):
            self.sessions.bye(session, "the server shuts down")
        self._flush()
        for task in tasks:
            task.cancel()
        self._on_events()
        self.tables.flush(int(self._clock()["tick"]))
        self.udp.close()
        await asyncio.sleep(0)  # the transport closes on the next turn of the loop
        if self.log is not None:
            self.log.close()
        self.queue.close()
        for task in failed:
            task.result()

    async def _receive(self) -> None:
        assert self.udp is not None
        while (first := await self.udp.receive()) is not None:
            now = time.monotonic()
            for data, address in (first, *self.udp.receive_ready()):
                for happening in self.sessions.receive(data, address, now):
                    self._handle(happening)
            self._flush()

    def _flush(self) -> None:
        assert self.udp is not None
        self.udp.send_each(self.sessions.outgoing)
        self.sessions.outgoing.clear()

    async def _housekeeping(self) -> None:
        sessions_at = 0.0
        while os.getppid() == self._parent:
            now = time.monotonic()
            if now >= sessions_at:
                sessions_at = now + HOUSEKEEPING_S
                for happening in self.sessions.tick(now):
                    self._handle(happening)
            self._send_states(now)
            if now >= self._orphans_until:
                self._let_orphans_go()
            if self.step is not None and now > self.step.deadline:
                self._dismiss(self.step)
            self.tables.turn(now, int(self._clock()["tick"]), self.by_row)
            self._push_backlog()
            self.queue.turn(now)
            self._flush()
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        """Until states are due: they go out in batches, four in the shortest period of a client."""
        wait = HOUSEKEEPING_S if self.shortest == math.inf else min(max(0.25 * self.shortest, 0.001), GRAIN_S)
        return max(0.001, min(wait, self.observers.next_timer() - time.monotonic()))

    def _tell(self, command: Command) -> None:
        """Hand a command to the engine, in order, never blocking."""
        self._backlog.append(messages.encode(command))
        self._push_backlog()

    def _push_backlog(self) -> None:
        while self._backlog and self.commands.push(*self._backlog[0]):
            self._backlog.pop(0)
        os.eventfd_write(self.commands_fd, 1)

    # -- clients -----------------------------------------------------------------------------------

    def _admit(self, join: Join) -> Admission:
        if join.observe:
            limit = self.config.network.observers
            if len(self.observers.by_token) >= limit:
                raise server.Refused(Refusal.FULL, f"there are {limit} observers already, as many as may be")
            if not join.name:
                raise server.Refused(Refusal.BAD_VALUE, "an observer has a name")
            return Admission(-1, True, self._welcome(-1, math.inf), math.inf)
        row = self.reserved.get(join.name)
        truth = True
        if row is not None:
            body = self.config.fleet.bodies[row]
            if body.client == "none":
                raise server.Refused(
                    Refusal.NAME_IN_USE,
                    f"'{join.name}' is a body without a client (client=\"none\" in the configuration)",
                )
            truth = body.truth == "full"
        else:
            if not join.model:
                raise server.Refused(
                    Refusal.UNKNOWN_NAME,
                    f"the configuration has no body '{join.name}', and no model was named for a new one",
                )
            try:
                self.loaded.model(join.model)
            except ConfigError as error:
                raise server.Refused(Refusal.UNKNOWN_MODEL, error.message) from None
            if not join.name or not join.name.isascii() or not join.name.replace("-", "").replace("_", "").isalnum():
                raise server.Refused(Refusal.BAD_VALUE, "a name has 1 to 31 letters, digits, - and _")
            if max(map(abs, (*join.position, *join.attitude))) > 1e6:
                raise server.Refused(Refusal.BAD_VALUE, "position or attitude is out of range")
            taken = {*self.reserved.values(), *self.by_row, *self.orphans}
            mine = [r for r, name in self.orphans.items() if name == join.name]
            free = (r for r in range(self.config.shared.vehicles) if r not in taken)
            row = next(iter(mine), next(free, None))
            if row is None:
                raise server.Refused(Refusal.FULL, f"all {self.config.shared.vehicles} rows are taken")
        if join.lockstep_ns < 0 or join.lockstep_ns % self.step_ns:
            raise server.Refused(
                Refusal.BAD_VALUE, f"lockstep_ns {join.lockstep_ns} is no multiple of the time step, {self.step_ns} ns"
            )
        period = join.state_period_ns * 1e-9 if join.state_period_ns > 0 else 1.0 / self.config.network.state_rate
        period = max(period, 1e-3)
        return Admission(row, truth, self._welcome(row, period), period)

    def _welcome(self, row: int, period: float) -> list[Any]:
        clock = self._clock()
        return [
            row,
            self.step_ns,
            self.config.acoustics.sound_speed,
            int(clock["tick"]),
            int(clock["state"]),
            round(period * 1e9) if math.isfinite(period) else 0,
            self.config.network.keepalive_timeout,
        ]

    def _handle(self, happening: server.Happening) -> None:
        session, row = happening.session, happening.session.admission.id
        match happening:
            case server.Joined() | server.Resumed():
                j = session.join
                if j.observe:
                    self.observers.join(session, self.areas["vehicles"]["identity"].snapshot()[1])
                    return
                self.by_row[row] = session
                self.orphans.pop(row, None)
                session.kind = self._type(j)
                self._list_free()
                lockstep = j.lockstep_ns // self.step_ns
                self._tell(Enter(row, j.name, j.model, list(j.position), list(j.attitude), lockstep))
                if isinstance(happening, server.Resumed) and self.step is not None and row in self.step.waiting:
                    self._ask(session, self.step.tick)
            case server.Gone(reason=reason):
                self._gone(session, reason)
            case server.Actuated(command=command) if not session.join.observe:
                self._tell(Actuate(row, command))
            case server.Estimated(values=values) if not session.join.observe:
                self._estimate(row, values, int(self._clock()["time_ns"]))
            case server.Requested(number=number, item=item):
                self._request(session, row, number, item)
            case server.StepDone(tick=tick, command=command, estimate=estimate):
                self._answered(row, tick, command, estimate)

    def _entered(self, session: Session) -> bool:
        """Whether the engine has let the body of a new session in; before that its row holds nothing to send."""
        who = self.areas["vehicles"]["identity"].snapshot()[1][session.admission.id]
        session.ready = bool(who["present"]) and bytes(who["name"]).decode() == session.name
        return session.ready

    def _list_free(self) -> None:
        self.free = [s for s in self.by_row.values() if not s.join.lockstep_ns]
        self.shortest = min((s.admission.state_period for s in self.free), default=math.inf)

    def _type(self, join: Join) -> int:
        row = self.reserved.get(join.name)
        model = self.loaded.model(self.config.fleet.bodies[row].model if row is not None else join.model)
        return int(BodyType[model.type.upper()])

    def _gone(self, session: Session, reason: str) -> None:
        row = session.admission.id
        self.observers.leave(session)
        if self.by_row.get(row) is session:
            del self.by_row[row]
            self._list_free()
            self.allowance.forget(row)
            self.requests.pop(row, None)
            self.dismissed.discard(row)
            self._tell(Leave(row))
            self.tables.left(row, 2 if reason == "silent" else 3)
            if self.step is not None:
                self.step.waiting.discard(row)
                self.step.answers.pop(row, None)
                self._release_if_complete()

    def _request(self, session: Session, row: int, number: int, item: list[Any]) -> None:
        if session.join.observe:
            why_not = self.observers.ask(session, item, time.monotonic())
        else:
            why_not = self.allowance.why_not(row, session.name, item[0], int(self._clock()["time_ns"]))
        if why_not:
            self._refuse(session, number, why_not)
        elif session.join.lockstep_ns:
            self.requests.setdefault(row, []).append(messages.Sound(row, number, item))
        elif not session.join.observe:
            self._tell(messages.Sound(row, number, item))

    def _refuse(self, session: Session, number: int, text: str) -> None:
        session.outbox.push(codec.event(WireEvent.REQUEST_REFUSED, number, text[:400]))

    def _estimate(self, row: int, values: list[float | None] | None, time_ns: int) -> None:
        if values is not None:
            self.tables.estimate(row, values)
            if self.log is not None:
                self.log.estimate(time_ns, row, values)

    # -- lockstep ------------------------------------------------------------------------------------

    def _on_step(self, tick: int, rows: list[int]) -> None:
        now = time.monotonic()
        present = {row for row in rows if row in self.by_row}
        waited = present - self.dismissed
        self.step = Step(tick, waited, {}, now + self.config.network.lockstep_timeout)
        snapshot = self._states()
        for row in sorted(present):
            self._ask(self.by_row[row], tick, snapshot)
        self._release_if_complete()

    def _ask(
        self, session: Session, tick: int, snapshot: tuple[Record, Record, dict[str, Record]] | None = None
    ) -> None:
        state = self._state_body(session, tick, snapshot or self._states())
        self.sessions.step(session, state, time.monotonic())

    def _answered(
        self, row: int, tick: int, command: list[float | None] | None, estimate: list[float | None] | None
    ) -> None:
        self.dismissed.discard(row)
        if self.step is not None and self.step.tick == tick:
            self.step.answers[row] = (command, estimate)
            self.step.waiting.discard(row)
            self._release_if_complete()

    def _dismiss(self, step: Step) -> None:
        """Clients that took too long are no longer waited for, until they answer again."""
        self.dismissed |= step.waiting
        step.waiting.clear()
        self._release_if_complete()

    def _release_if_complete(self) -> None:
        step = self.step
        if step is None or step.waiting:
            return
        self.step = None
        answers = []
        for row, (command, estimate) in sorted(step.answers.items()):
            answers.append(Answer(row, command, self.requests.pop(row, [])))
            self._estimate(row, estimate, step.tick * self.step_ns)
        self._tell(Release(step.tick, answers))

    # -- send-state ------------------------------------------------------------------------------------

    def _clock(self) -> Any:
        return self.areas["simulation"]["clock"].snapshot()[1][0]

    def _states(self) -> tuple[Record, Record, dict[str, Record]]:
        vehicles = self.areas["vehicles"]
        sensors = {s: vehicles[s].snapshot()[1] for s in self.sensors}
        return vehicles["state"].snapshot()[1], vehicles["actuation"].snapshot()[1], sensors

    def _state_body(self, session: Session, tick: int, snapshot: tuple[Record, Record, dict[str, Record]]) -> list[Any]:
        state, actuation, sensors = snapshot
        row = session.admission.id
        motion = state[row : row + 1].view(np.float64).tolist() if session.admission.truth else None
        values = self.states.sensors.of(row, tick * self.step_ns, sensors)
        run_state = int(self._clock()["state"])
        return [tick, tick * self.step_ns, run_state, motion, actuation["actual"][row].tolist(), values]

    def _send_states(self, now: float) -> None:
        due = [s for s in self.free if now >= s.next_state and (s.ready or self._entered(s))]
        watching = self.observers.due(now)
        if not due and not watching:
            return
        snapshot = self._states()
        tick = int(self._clock()["tick"])
        for watch in watching:
            identity, run_state = self.areas["vehicles"]["identity"].snapshot()[1], int(self._clock()["state"])
            for body in self.observers.fleet(watch, tick, tick * self.step_ns, run_state, identity, snapshot[0]):
                self.sessions.send(watch.session, Type.FLEET, body)
        for session in due:
            behind, period = now - session.next_state, session.admission.state_period
            session.next_state = now + period - (behind if behind < period else 0.0)
        if due:
            assert self.udp is not None
            self._flush()  # in the order of their numbers
            run_state = int(self._clock()["state"])
            for members, rows in self.states.write(due, tick, tick * self.step_ns, run_state, snapshot):
                self.udp.send_rows(rows, b"".join([s.packed_address for s in members]))

    # -- the engine's events ----------------------------------------------------------------------------

    def _on_events(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.events_fd)
        for kind, payload in self.events.pop_all():
            match messages.decode_event(kind, payload):
                case messages.Signals(sent, receptions):
                    self._on_signals(np.frombuffer(sent, SENT.dtype), np.frombuffer(receptions, RECEPTION.dtype))
                case messages.Log() as record:
                    if self.log is not None:
                        rows = np.frombuffer(record.rows, np.int64)
                        self.log.table(record.tick * self.step_ns, record.table, rows, record.records)
                case messages.Step(tick, rows):
                    self._on_step(tick, rows)
                case messages.Run(state, time_ns):
                    self._on_run(state, time_ns)
                case messages.Executed(number, ok, text):
                    self._on_reply(number, ok, text, {})
                case messages.Refused(row, number, text):
                    if row in self.by_row:
                        self._refuse(self.by_row[row], number, text)
                case messages.Roster() as r:
                    self._on_roster(r.time_ns, r.row, r.name, r.model, r.type, r.present)
                case messages.Notice() as n:
                    self._on_notice(n.time_ns, n.row, n.name, n.text)
                case messages.TurnedAway(row, text) | messages.Failed(row, text):
                    if row in self.by_row:
                        self.sessions.bye(self.by_row[row], text)
                        self._gone(self.by_row[row], "silent")
                case messages.Frozen(time_ns, names):
                    print(f"faulted and frozen: {', '.join(names)}", file=sys.stderr, flush=True)
                    if self.log is not None:
                        self.log.frozen(time_ns, names)
            if self.sessions.outgoing:  # a step must not wait for the log behind it
                self._flush()
        if self._told:
            now = time.monotonic()
            for session in self._told.values():
                self.sessions.flush_events(session, now)
            self._told.clear()
            self._flush()

    def _on_signals(self, sent: Record, receptions: Record) -> None:
        if self.log is not None:
            self.log.signals(sent, receptions)
        self.tables.signals(sent, receptions)
        sound.tell(sent, receptions, self.payloads, self.by_row, lambda row, e: self._push_event(self.by_row[row], e))
        self.observers.sounds(sent, receptions)

    def _push_event(self, session: Session, event: list[Any]) -> None:
        try:
            session.outbox.push(event)
            self._told[session.token] = session
        except OverflowError:
            self.sessions.bye(session, "it acknowledged none of the last 4096 events")
            self._gone(session, "silent")

    def _on_run(self, state: int, time_ns: int) -> None:
        if self.log is not None:
            self.log.run(time_ns, RunState(state).name.lower())
        for session in list(self.by_row.values()):
            self._push_event(session, codec.event(WireEvent.RUN_STATE, state, time_ns))
        self.observers.run_state(state, time_ns)

    def _on_roster(self, time_ns: int, row: int, name: str, model: str, kind: str, present: bool) -> None:
        # after the end programs leave in any order: that is no part of the run
        if self.log is not None and self._clock()["state"] != RunState.ENDED:
            self.log.body(time_ns, row, name, model, kind, present)
        who = {"name": name.encode(), "model": model.encode(), "type": int(BodyType[kind.upper()])}
        self.observers.roster(row, who, present)

    def _on_notice(self, time_ns: int, row: int, name: str, text: str) -> None:
        self.tables.notice(time_ns, row, name, text)
        if self.log is not None:
            self.log.notice(time_ns, name, text)
        if row in self.by_row:
            self._push_event(self.by_row[row], codec.event(WireEvent.NOTICE, time_ns, text))

    # -- commander -----------------------------------------------------------------------------------------

    def _on_commander(self) -> None:
        for command in self.queue.receive():
            verb, argument, error = control.parse(command)
            if error:
                self.queue.reply(command, Reply(False, error))
            elif verb == "status":
                self.queue.reply(command, Reply(True, "", control.status(self)))
            elif len(self.pending) < 64:
                self._numbers += 1
                self.pending[self._numbers] = command
                self._tell(Execute(self._numbers, verb, argument))
            else:
                self.queue.reply(command, Reply(False, "too many commands at once"))

    def _on_reply(self, number: int, ok: bool, text: str, data: dict[str, Any]) -> None:
        command = self.pending.pop(number, None)
        if command is not None:
            self.queue.reply(command, Reply(ok, text, data))


def keyring(loaded: Loaded) -> Keyring | None:
    """The keys of a configuration; None = datagrams in the clear."""
    if not loaded.config.network.keys:
        return None
    from wavesim_sdk.wire import seal

    return seal.Keyring(seal.read_keys(loaded.data_file(loaded.config.network.keys)))


def main() -> None:
    """Entry point of the process; arguments come from the supervisor."""
    parser = argparse.ArgumentParser()
    for name in ("--config", "--name", "--seed", "--commands-fd", "--events-fd", "--socket-fd", "--log"):
        parser.add_argument(name)
    parser.add_argument("--again", action="store_true")
    a = parser.parse_args()
    try:
        loaded = load(Path(a.config))
        log = LogWriter(Path(a.log), loaded, int(a.seed)) if a.log else None
        front = Front(loaded, a.name, int(a.seed), int(a.commands_fd), int(a.events_fd), log)
        if a.again:
            front.inherit()
    except WaveSimError as error:
        print(f"wavesim: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    sock = socket.socket(fileno=int(a.socket_fd))
    sock.setblocking(False)
    try:
        asyncio.run(front.run(sock))
    except OSError as error:
        sys.stderr.write(f"wavesim: the system refuses the front what it needs: {error}\n")
        sys.exit(NO_RESOURCE)


if __name__ == "__main__":
    main()
