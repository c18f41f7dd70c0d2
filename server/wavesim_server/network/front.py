"""The core of the front end: everything between the network, the engine and the commander, without sockets, clocks or processes.

The inputs are datagrams, engine events and commands, each passed with the current time ``now``. The outputs are
datagrams, commands to the engine and replies to the commander. If a session causes an error in the front end, the error
ends only that session.
"""

from __future__ import annotations

import math
import random
import secrets
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.commander import CommandReply
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import BodyType
from wavesim_sdk.wire import items
from wavesim_sdk.wire.messages import SHUTDOWN, Join, Refusal, Resumption, Role
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import (
    Actuated,
    AddressMigrated,
    Estimated,
    Happening,
    Joined,
    LocalClient,
    NotAdmitted,
    PilotReturned,
    Requested,
    Resumed,
    Session,
    SessionGone,
    StepDone,
)
from wavesim_server import messages
from wavesim_server.logbook.writer import LogWriter
from wavesim_server.messages import RecordQueue
from wavesim_server.network.admission import AdmissionPolicy, BodyParts, JoinResult, Roster
from wavesim_server.network.arrival_losses import ArrivalLosses
from wavesim_server.network.broadcast import Address, DatagramRows, StateBroadcaster
from wavesim_server.network.commands import COMMANDER, PendingCommands, check_recipient, parse_queue_command
from wavesim_server.network.crews import CrewMember, Crews
from wavesim_server.network.data_loss import DataLossReport
from wavesim_server.network.emulator_sessions import EmulatorSessions
from wavesim_server.network.engine_queue import EngineCommands
from wavesim_server.network.event_dispatcher import EngineEventDispatcher
from wavesim_server.network.frame_streaming import FrameLogger, FrameStreamer
from wavesim_server.network.front_tables import FrontTables
from wavesim_server.network.key_changes import VERB as RELOAD_KEYS
from wavesim_server.network.key_changes import describe_change, status_of
from wavesim_server.network.lockstep import Barrier
from wavesim_server.network.observers import Observers
from wavesim_server.network.requests import RequestAccess, RequestHandler
from wavesim_server.network.run_reports import RunReports
from wavesim_server.network.simulation_clock import SimulationClock
from wavesim_server.network.status import StatusReport
from wavesim_server.network.step_exchange import StepExchange
from wavesim_server.network.vehicle_commands import VehicleCommands
from wavesim_world.config import LoadedConfig

if TYPE_CHECKING:
    from wavesim_sdk.wire.seal import Keyring

FEW_SESSIONS = 64
GENERATION_MARGIN = 1000  #: margin for the generations of bodies that an earlier front end may have added to a row
#: intervals between two polls of the sessions, for few sessions and for many
SESSION_POLL_S, BUSY_SESSION_POLL_S = 0.01, 0.04
LONG_S = 0.1  #: wait in s after which the waiting budgets are checked
#: maximum interval in s between two calls; after a longer interval, the front end itself has stalled, and the time is
#: not charged to its clients
STALL_THRESHOLD_S = 0.25
GONE_TEXTS = {
    "left": "left",
    "silent": "fell silent and was removed",
    "ended": "was disconnected",
    "sequence": "was disconnected: its sequence numbers are exhausted",
    "revoked": "was disconnected: its key was revoked",
    "lockstep": "was disconnected: its slow answers used up the time for which the server may wait for it",
    "unacknowledged": "was disconnected: it does not acknowledge events",
    "internal": "was disconnected: the server failed while executing its request",
}


_JOINED_TEXTS = {Resumption.NEW: "joined", Resumption.RESUMED: "rejoined", Resumption.TOOK_OVER: "took over"}


class Front:
    """The front end of one server.

    ``print_line`` prints a line for the user. ``load_keys`` reads the key file again.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        name: str,
        seed: int,
        areas: Mapping[str, SharedMemoryArea],
        engine_queue: EngineCommands,
        events: RecordQueue | None = None,
        log: LogWriter | None = None,
        *,
        keys: Keyring | None = None,
        load_keys: Callable[[], Keyring | None] = lambda: None,
        rng: random.Random | None = None,
        print_line: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._load_keys = load_keys
        self.has_network = True  #: False if all clients are in this process
        self.config, self.log = loaded.config, log
        self.areas, self.events, self.print_line = areas, events, print_line
        step_ns = round(self.config.time.step * 1e9)
        network = self.config.network
        self._rng = rng if rng is not None else secrets.SystemRandom()
        self.clock = SimulationClock(areas["simulation"], step_ns)
        self.engine_queue = engine_queue
        self.sessions = ServerSessions(
            self._admit,
            self.clock.tick_and_state,
            network.keepalive_period,
            network.keepalive_timeout,
            keys,
            network.takeover != "no",
            network.datagram_rate,
            network.sessions,
            self._rng,
            self._on_error,
        )
        self.sessions.returns_pilot = network.takeover == "return"
        self._suspended: dict[int, CrewMember] = {}  # session -> pilot that waits while another client drives
        #: replies to the commander, each with the command that it answers
        self.replies: list[tuple[dict[str, Any], CommandReply]] = []
        #: function that returns the part of the status that concerns the process
        self.gauges: Callable[[], dict[str, Any]] = dict
        self.tables = FrontTables(areas["simulation"], areas["vehicles"])
        self.admission_policy, self.crews = AdmissionPolicy(loaded, step_ns), Crews()
        self._look_at, self._damaged = 0.0, 0
        self.data_loss = DataLossReport(log, self.clock)
        self.arrival_losses = ArrivalLosses(areas["vehicles"].tables, self.data_loss.record)
        self.observers = Observers(self.sessions.push)
        self.emulators = EmulatorSessions(name, loaded, areas, self.sessions, lambda: self.now)
        self.pending_commands = PendingCommands(self.engine_queue.execute)
        #: name and model of the bodies that are in the simulation or about to be added, by row
        self.bodies: dict[int, tuple[str, str]] = {
            row: (b.name, b.model) for row, b in enumerate(self.config.fleet.bodies) if b.client == "none"
        }
        self.reports = RunReports(print_line, self.tables, self.data_loss, self.clock, self.bodies)
        #: generation, by row, of the body whose sessions are served; events about earlier bodies do not concern any
        #: session
        self.generations = np.zeros(areas["vehicles"]["identity"].capacity, np.int64)
        self.generations[list(self.bodies)] = 1
        self.broadcast = StateBroadcaster(
            areas["vehicles"],
            step_ns,
            self.sessions,
            self.crews,
            self.observers,
            self.bodies,
            self.clock.tick_and_state,
            self.generations,
        )
        self.frame_streamer = FrameStreamer(name, self.sessions, self.broadcast.writer.instruments, network.frame_rate)
        self.frame_logger = (
            FrameLogger(name, loaded, self.bodies, log, self.data_loss.record) if log is not None else None
        )
        if self.frame_logger is not None:
            self.emulators.before_frame = self.frame_logger.poll
        self.event_dispatcher = EngineEventDispatcher(
            self.sessions,
            self.crews,
            self.observers,
            self.tables,
            self.pending_commands,
            log,
            self.clock,
            step_ns,
            print_line,
            self.generations,
            self.data_loss.count_omitted,
        )
        self.vehicle_commands = VehicleCommands(
            self.sessions, self.crews, self.clock, lambda: self.now, self.event_dispatcher.report_notice
        )
        self.request_handler = RequestHandler(
            RequestAccess(
                self.sessions,
                self.crews,
                self.observers,
                self.emulators,
                self.frame_streamer,
                self.pending_commands,
                self.vehicle_commands,
                self.engine_queue,
                self.clock,
                self.broadcast.identity,
                self.admission_policy.describe,
                self.event_dispatcher.report_notice,
            ),
            network.acoustic_rate,
        )
        self.steps = StepExchange(
            network,
            self.sessions,
            self.crews,
            self.broadcast,
            self.engine_queue,
            self.clock,
            self.reports,
            self.request_handler.take_sounds,
        )
        self._status = StatusReport(
            name,
            loaded,
            seed,
            step_ns,
            self.clock,
            self.crews,
            self.observers,
            self.emulators,
            self.steps,
            self.sessions.drops,
            self.request_handler.acoustic_quota.refused,
            self.data_loss,
            areas["simulation"]["fences"],
        )
        self.orphans: set[int] = set()  #: rows whose pilots belonged to an earlier front end
        self._orphans_until = math.inf
        self._poll_sessions_at = 0.0
        self._effort_rows: tuple[int, ...] = ()
        self._instrument_steps: tuple[tuple[int, int], ...] = ()
        self._traced: set[str] = set()
        self.now = 0.0
        self.stood_still_s = 0.0  #: total wall time during which the front end had work to do but did not run

    def set_time(self, now: float) -> None:
        """Set the current time on the front end's clock.

        The time during which the front end itself stalled, because it was stopped or had no processor, is excluded from
        all limits.
        """
        stalled_s, self.now = now - self.now, now
        if stalled_s <= STALL_THRESHOLD_S or stalled_s == now:  # the first call
            return
        self.stood_still_s += stalled_s
        self.sessions.exclude_stall(stalled_s, now)
        self.steps.forgive(stalled_s)
        self._orphans_until += stalled_s
        if stalled_s >= 1.0:
            self.print_line(f"the front end stalled for {stalled_s:.1f} s")

    # -- input -----------------------------------------------------------------------------------

    def receive(self, data: bytes, address: Address, now: float) -> None:
        """Handle a datagram."""
        self.set_time(now)
        self._handle_all(self.sessions.receive(data, address, now))

    def join_local(self, join: Join, client: LocalClient, now: float) -> Session:
        """Open the session of a client in this process. Raises NotAdmitted if the join is refused."""
        self.set_time(now)
        session, happened = self.sessions.join_local(join, client, now)
        self._handle_all(happened)
        return session

    def receive_local(self, session: Session, message: Any) -> None:
        """Handle a message from a client in this process."""
        self._handle_all(self.sessions.receive_local(session, message))

    def request_local(self, session: Session, number: int, item: Any) -> None:
        """Handle a request from a client in this process."""
        self._handle_all(self.sessions.request_local(session, number, item))

    def end_local(self, session: Session) -> None:
        """End the session of a client that ran in this process and ended without leaving."""
        self.sessions.bye(session, "the program has ended", "silent")
        self._handle_all(self.sessions.take_ended())

    def event(self, kind: int, payload: bytes, now: float) -> None:
        """Handle an event from the engine in the form of a ring record."""
        try:
            event_ = messages.decode_event(kind, payload)
        except Exception as error:  # the engine wrote an invalid record, so no session is concerned
            self.sessions.fail_session(None, error)
        else:
            self.handle_event(event_, now)

    def handle_event(self, event_: messages.EngineEvent, now: float) -> None:
        """Handle an event from the engine."""
        self.set_time(now)
        try:
            if isinstance(event_, messages.LockstepDueEvent):
                self.steps.begin(event_, self.generations, self.now)
            elif isinstance(event_, messages.SlowEmulator):
                self.steps.report_emulator(event_)
            elif isinstance(event_, messages.TimeChangedEvent):
                self._on_time_changed(event_)
            else:
                self.event_dispatcher.dispatch(event_)
                if isinstance(event_, messages.BodyPresenceEvent):
                    self._on_body_presence(event_)
        except Exception as error:  # last resort: all other sessions continue
            self.sessions.fail_session(None, error)
        self._handle_all(self.sessions.take_ended())

    def command(self, message: dict[str, Any], now: float) -> None:
        """Handle a command from the commander's queue."""
        self.set_time(now)

        def answer(ok: bool, text: str) -> None:
            self.replies.append((message, CommandReply(ok, text)))

        try:
            if message["verb"] == "status":
                self.replies.append((message, CommandReply(True, "", self.status())))
            elif message["verb"] == RELOAD_KEYS:
                answer(True, self.reload_keys())
            else:
                command = check_recipient(parse_queue_command(message, self._parts_of), self.crews)
                self.pending_commands.submit(command, COMMANDER, self.vehicle_commands.answer_later(command, answer))
        except ValueError as error:
            answer(False, str(error))
        except Exception as error:  # last resort: report to the sender
            self.sessions.fail_session(None, error)
            answer(False, "the server failed while executing this command; see the server's standard error")

    def poll(self, now: float) -> float:
        """Do all work that is due; return the latest time at which to call this method again.

        If the next call is much later, the front end assumes that it has stalled. Before you call this method, read the
        socket. Without a network, the returned time concerns only the clients. To publish the tables in time, call this
        method more frequently.
        """
        self.set_time(now)
        if now >= self._poll_sessions_at:
            self._poll_sessions_at = now + (
                SESSION_POLL_S if len(self.sessions.by_token) <= FEW_SESSIONS else BUSY_SESSION_POLL_S
            )
            self._handle_all(self.sessions.poll(now))
            if not self.has_network:
                self._poll_sessions_at = math.inf  # clients in this process need no keep-alive
        if self.barrier.tick is not None and now >= self.barrier.since + LONG_S:
            self.steps.end_those_without_budget(now)
            self._handle_all(self.sessions.take_ended())
        states = math.inf
        try:
            states = min(self.broadcast.poll(now), self.frame_streamer.poll(now), self.emulators.poll(now))
            if self.frame_logger is not None:
                states = min(states, self.frame_logger.poll(now))
            if now >= self._orphans_until:
                self._remove_orphans()
            if now >= self._look_at:
                self._look_at = now + LONG_S
                self.steps.report_slow(now)
                self._report_damaged_queues()
                self.arrival_losses.poll()
            self.tables.poll(now, self.clock.tick, self.crews.by_token.values())
            states = min(states, self.vehicle_commands.poll(now))
            if self.observers.has_roll_calls:
                self.observers.continue_roll_calls(self.broadcast.identity())
                states = now
        except Exception as error:
            self.sessions.fail_session(None, error)
        self._handle_all(self.sessions.take_ended())
        self.hand_over()
        if reason := self.data_loss.take_log_failure():
            self.print_line(reason)
        return min(self._poll_sessions_at, states, self.barrier.deadline, self._orphans_until)

    def _report_damaged_queues(self) -> None:
        """Report records that another process has overwritten on their way from the engine to the front end. A session
        that is joining may then wait for its body forever.
        """
        found = self.engine_queue.damaged + (self.events.damaged if self.events is not None else 0)
        if found > self._damaged:
            self._damaged = found
            text = "a queue between the front end and the engine was damaged: commands or events were lost; restart the server"
            self.data_loss.record(text)
            self.print_line(text)

    def hand_over(self) -> None:
        """Forward the results of earlier input to the clients and the engine."""
        if self.barrier.tick is not None:
            self.steps.release(self.now)
        if self.crews.effort_rows != self._effort_rows:
            self._effort_rows = self.crews.effort_rows
            self.engine_queue.send(messages.EffortCommand(self._effort_rows))
        if self.crews.instrument_steps != self._instrument_steps:
            self._instrument_steps = self.crews.instrument_steps
            self.engine_queue.send(
                messages.InstrumentStepsCommand(
                    [row for row, _ in self._instrument_steps], [n for _, n in self._instrument_steps]
                )
            )
        self.sessions.flush(self.now)
        self.broadcast.collect_session_datagrams()
        self.engine_queue.flush()

    @property
    def outgoing(self) -> list[list[tuple[bytes, Address]] | DatagramRows]:
        """The datagrams to send: lists of (bytes, address), and rows for many sessions. The code that sends them
        removes them.
        """
        return self.broadcast.outgoing

    @outgoing.setter
    def outgoing(self, left: list[list[tuple[bytes, Address]] | DatagramRows]) -> None:
        self.broadcast.outgoing = left

    def finish(self, now: float) -> None:
        """Shut down: end all sessions, publish the tables and close the log."""
        self.now = now
        self.emulators.finish()
        for session in list(self.sessions.by_token.values()):
            self.sessions.bye(session, SHUTDOWN)
        self.broadcast.collect_session_datagrams()
        self.tables.flush(self.clock.tick)
        if self.frame_logger is not None:
            self.frame_logger.poll(now)
        self.arrival_losses.poll()
        if self.log is not None:
            self.event_dispatcher.finish()
            self.data_loss.write_summary()
            self.log.close()

    def status(self) -> dict[str, Any]:
        """Return the answer to the commander's `status` command."""
        keys = status_of(self.sessions.keys, self.sessions.by_token.values())
        return self._status.make(self.now, self.gauges() | ({"keys": keys} if keys else {}), self.stood_still_s)

    def reload_keys(self) -> str:
        """Read the key file again, end the sessions whose keys it no longer contains, and return what has changed.

        Raises ValueError if the server has no keys or the file is invalid; the earlier keys then stay valid.
        """
        old = self.sessions.keys
        if old is None:
            raise ValueError("this server does not require keys: set <network keys=...> and restart it")
        try:
            new = self._load_keys()
        except ConfigError as error:
            raise ValueError(f"the key file was not loaded, so the earlier keys stay valid: {error}") from None
        assert new is not None
        text = describe_change(old, new, self.sessions.replace_keys(new))
        self._handle_all(self.sessions.take_ended())
        self.print_line(text)
        if self.log is not None:
            self.log.keys(self.clock.time_ns, text)
        return text

    @property
    def barrier(self) -> Barrier:
        """The barrier of the current lockstep tick."""
        return self.steps.barrier

    # -- the engine --------------------------------------------------------------------------------

    def take_over(self, now: float) -> None:
        """Take over from a front end that crashed. The bodies of its clients stay in the simulation for the keep-alive
        timeout, like the body of a silent client.
        """
        identity, clock = self.areas["vehicles"]["identity"].snapshot()[1], self.clock()
        # commands of the earlier front may still add bodies, which belong to no client of this front
        self.generations[:] = identity["generation"] + np.where(identity["present"], 0, GENERATION_MARGIN)
        for row in map(int, np.flatnonzero(identity["present"])):
            name, model = (bytes(identity[k][row]).decode() for k in ("name", "model"))
            if row not in self.bodies:
                self.bodies[row] = name, model
                self.orphans.add(row)
            if self.log is not None:
                kind = BodyType(int(identity["type"][row])).name.lower()
                self.log.body(int(clock["time_ns"]), row, name, model, kind, True)
                self.event_dispatcher.logged_generations[row] = identity["generation"][row]
        self.crews.start_new_epochs(self._rng)
        self._orphans_until = now + self.config.network.keepalive_timeout
        self.engine_queue.send(messages.EffortCommand(()))
        self.engine_queue.send(messages.InstrumentStepsCommand((), ()))
        # the engine may wait for an answer that was lost
        self.engine_queue.send(messages.ReleaseCommand(int(clock["tick"])))

    def _on_body_presence(self, r: messages.BodyPresenceEvent) -> None:
        """Handle the removal of a body that was left over from a crashed front end. If the engine adds a body that the
        crashed front end requested, remove this body.
        """
        if not r.is_present and r.row in self.orphans and r.generation == self.generations[r.row]:
            self.orphans.discard(r.row)
            self.bodies.pop(r.row, None)
        elif r.is_present and r.is_new and r.row not in self.bodies:
            self.engine_queue.leave(r.row)  # has no effect on a body of this front that has already left

    def _on_time_changed(self, e: messages.TimeChangedEvent) -> None:
        """Continue after a reset or after the return to a snapshot. Steps that clients have not answered are void."""
        self.print_line(
            f"the simulation time changed from {e.before_ns * 1e-9:.3f} s to {e.time_ns * 1e-9:.3f} s"
            + (f"; the log continues in {place}" if (place := self.event_dispatcher.change_time(e.time_ns)) else "")
        )
        self.tables.time_change(e.time_ns, e.before_ns, self.clock.tick)
        self.steps.cancel()
        self.request_handler.change_time()
        self.sessions.announce_time_change(items.TimeChanged(e.time_ns, e.before_ns))

    def _remove_orphans(self) -> None:
        self._orphans_until = math.inf
        for row in sorted(self.orphans):
            self._remove_body(row, silent=True)
        self.orphans.clear()

    # -- sessions ------------------------------------------------------------------------------------

    def _admit(self, join: Join, previous: Session | None) -> JoinResult:
        if join.role == Role.EMULATOR:
            return self.emulators.admit(join, previous)
        result = self.admission_policy.admit(join, self._roster_without(previous))
        if previous is not None and result.id != previous.admission.id:
            raise NotAdmitted(
                Refusal.EXPIRED, f"'{join.name}' is now the name of a different body; join again without resuming"
            )
        return result

    def _roster_without(self, previous: Session | None) -> Roster:
        observing = len(self.observers.by_token) - (previous is not None and previous.role is Role.OBSERVER)
        rows = {name: row for row, (name, _) in self.bodies.items()}
        return Roster(rows, {row: model for row, (_, model) in self.bodies.items()}, observing)

    def _parts_of(self, body: str) -> BodyParts:
        """Return the actuators and sensors of a body that is in the simulation or in the configuration."""
        models = dict(self.bodies.values())
        return self.admission_policy.parts_of(body, models.get(body, ""))

    def _handle_all(self, happenings: list[Happening]) -> None:
        """Handle session events, including the events that they cause, such as the end of a session."""
        while happenings:
            for h in happenings:
                try:
                    self._handle(h)
                except Exception as error:  # last resort: it ends only this session
                    self.sessions.fail_session(h.session, error)
            happenings = self.sessions.take_ended()

    def _handle(self, h: Happening) -> None:
        session = h.session
        if type(h) is StepDone:  # by far the most frequent
            self.steps.take(h, self.now)
            return
        member = self.crews.by_token.get(session.token)
        match h:
            case Joined():
                self._on_joined(session, None)
            case Resumed(previous=old):
                self._on_joined(session, old)
            case PilotReturned(previous=old, reason=reason):
                self._on_returned(session, old, reason)
            case SessionGone(reason=reason):
                self._on_session_gone(session, reason)
            case AddressMigrated(old_address=before):
                self.print_line(
                    f"'{session.name}' moved from {_address_text(before)} to {_address_text(session.address)}"
                )
            case Actuated(payload=payload) if member is not None and member.role is Role.PILOT:
                self.engine_queue.forward(member.row, session.token, h.message, payload)
            case Estimated(message=estimate) if member is not None and member.role is Role.PILOT:
                self.reports.estimate(member, estimate.values, self.clock.time_ns)
            case Requested():
                self.request_handler.handle(h, member, self.now)

    def _on_joined(self, session: Session, previous: Session | None) -> None:
        assert isinstance(session.admission, JoinResult)
        grant, join = session.admission.grant, session.join
        resumption_text = _JOINED_TEXTS[session.resumed]
        self.print_line(
            f"'{session.name}' {resumption_text} as {session.role.name.lower()} from {_address_text(session.address)}"
        )
        if session.role is Role.OBSERVER:
            self.observers.join(session, self.broadcast.identity(), previous)
            return
        if session.role is Role.EMULATOR:
            self.emulators.join(session, previous)
            return
        former = self.crews.leave(previous.token) if previous is not None else None
        if former is not None and former.session.is_suspended:
            self._suspended[former.session.token] = former
            text = f"another client is now driving '{grant.body}'; you will drive it again when that client leaves"
            self.sessions.push(former.session, items.Notice(self.clock.time_ns, text))
        member = CrewMember(session, grant, session.admission.state_period, next_state=self.now)
        member.wants_acoustics, member.wants_effort, member.wants_others = (
            bool(join.acoustics),
            bool(join.effort),
            bool(join.others),
        )
        member.select_sensors(join.sensors)
        member.described_sensors.update(member.sensor_numbers)
        self.crews.join(member)
        if fault := self.crews.device_faults.get((grant.body, member.device)):
            member.set_device_fault(fault)
            self.sessions.push(session, fault)
        if member.wants_others:
            self.observers.roll_call(session, self.broadcast.identity())
        same = session.resumed is Resumption.RESUMED
        if previous is not None:
            self.request_handler.transfer(previous, session, same)
        if member.role is Role.PILOT:
            self._pilot_joined(member, former, same)
        elif former is not None:
            self.steps.replace(member, former.session, same, self.now)

    def _on_returned(self, session: Session, previous: Session, reason: str) -> None:
        """Let a pilot drive its body again after the client that had taken over the body has left."""
        self.print_line(
            f"'{previous.name}' (pilot) {GONE_TEXTS.get(reason, reason)}; the earlier program is driving again"
        )
        self.request_handler.discard(previous)
        former, member = self.crews.leave(previous.token), self._suspended.pop(session.token)
        self.crews.join(member)
        text = f"you drive '{member.grant.body}' again"
        self.sessions.push(session, items.Notice(self.clock.time_ns, text))
        self._pilot_joined(member, former, same=False)

    def _pilot_joined(self, member: CrewMember, former: CrewMember | None, same: bool) -> None:
        grant, join, token = member.grant, member.session.join, member.session.token
        if member.row not in self.bodies:
            self.generations[member.row] += 1
        self.bodies[member.row] = grant.body, grant.model
        self.orphans.discard(member.row)
        self.engine_queue.send(
            messages.EnterCommand(
                member.row,
                token,
                grant.body,
                join.model or grant.model,
                join.position,
                join.attitude,
                grant.lockstep_ticks,
                int(self.generations[member.row]),
            )
        )
        if former is not None:
            self.steps.replace(member, former.session, same, self.now)

    def _on_session_gone(self, session: Session, reason: str) -> None:
        if self._suspended.pop(session.token, None) is not None:
            self.print_line(f"'{session.name}' (pilot, waiting) {GONE_TEXTS.get(reason, reason)}")
        is_emulator = self.emulators.leave(session)
        if (
            self.crews.by_token.get(session.token) is None
            and session.token not in self.observers.by_token
            and not is_emulator
        ):
            return
        self.print_line(f"'{session.name}' ({session.role.name.lower()}) {GONE_TEXTS.get(reason, reason)}")
        self.observers.leave(session)
        self.request_handler.discard(session)
        if reason != "left" and session.role in (Role.PILOT, Role.INSTRUMENT, Role.EMULATOR):
            self.data_loss.record(f"'{session.name}' ({session.role.name.lower()}) {GONE_TEXTS.get(reason, reason)}")
        member = self.crews.leave(session.token)
        if member is None:
            return
        self.steps.remove(session, self.now)
        if member.role is not Role.PILOT:
            return
        self.vehicle_commands.discard(member.row)
        self._remove_body(member.row, silent=reason != "left")

    def _remove_body(self, row: int, silent: bool) -> None:
        self.bodies.pop(row, None)
        self.engine_queue.leave(row)
        self.tables.mark_departed(row, 2 if silent else 3)
        for other in self.crews.members_of(row):
            other.is_aboard = False
            if other.grant.is_newcomer:  # its row may soon hold another body
                self.sessions.bye(other.session, f"'{other.grant.body}' left the simulation")

    def _on_error(self, error: Exception) -> None:
        """Print the traceback of an unexpected error to standard error, only once."""
        place = "".join(traceback.format_exception(error)[-2:])
        if place not in self._traced:
            self._traced.add(place)
            self.print_line("".join(traceback.format_exception(error)).rstrip())


def _address_text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
