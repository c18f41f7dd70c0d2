"""Forwarding of events from the engine to sessions, log and shared memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from wavesim_sdk import commands
from wavesim_sdk.arrays import Mask
from wavesim_sdk.device_faults import device_of
from wavesim_sdk.tables import RECEPTION, SENT, BodyType, RunState
from wavesim_sdk.wire import items
from wavesim_sdk.wire.messages import TEXT_BYTES
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.value_types import sanitise_text
from wavesim_server import messages
from wavesim_server.logbook.writer import LogWriter, logged_table
from wavesim_server.network import acoustic_events
from wavesim_server.network.commands import PendingCommands
from wavesim_server.network.crews import CrewMember, Crews
from wavesim_server.network.front_tables import FrontTables
from wavesim_server.network.observers import Observers
from wavesim_server.network.simulation_clock import SimulationClock


class EngineEventDispatcher:
    """Handles the events from the engine, except :class:`~wavesim_server.messages.LockstepDueEvent`."""

    def __init__(
        self,
        sessions: ServerSessions,
        crews: Crews,
        observers: Observers,
        tables: FrontTables,
        under_way: PendingCommands,
        log: LogWriter | None,
        clock: SimulationClock,
        step_ns: int,
        say: Callable[[str], None],
        lives: Any,
        leave_out: Callable[[int], None],
    ) -> None:
        self.sessions, self.crews, self.observers, self.tables = sessions, crews, observers, tables
        self.pending_commands, self.log, self.clock, self.step_ns, self.print_line = under_way, log, clock, step_ns, say
        self._count_omitted = leave_out
        self.generations = lives  # by row: generation of the body whose sessions are served
        #: generation, by row, of the body listed in the log; 0 means that no body is listed
        self.logged_generations = np.zeros_like(lives)
        self.payloads = acoustic_events.PayloadStore()
        self._new_notices: list[tuple[int, int, str, str]] = []  # notices of pilots at one time: time, row, body, text

    def dispatch(self, event: messages.EngineEvent) -> None:
        """Handle one event from the engine."""
        if self._new_notices:
            self._log_notices_before(self.clock.time_ns)
        match event:
            case messages.LogRecordsEvent() if self.log is not None:
                self._table(self.log, event)
            case messages.SignalsEvent():
                self._signals(event)
            case messages.SoundEvent() if self.log is not None:
                self.log.sound(event.time_ns, event.name, event.signal, event.sampling, event.samples)
            case messages.ChannelStatesEvent():
                acoustic_events.push_channel_states(event, self.generations, self.crews, self.sessions.push)
            case messages.RunStateEvent(state, time_ns):
                self._run(state, time_ns)
            case messages.ExecutedEvent():
                self._executed(event)
            case messages.SoundRefusedEvent(row, number, text):
                member, own = self.crews.request_owner(row, number)
                if member is not None:
                    self.sessions.refuse(member.session, own, text)
            case messages.BodyPresenceEvent():
                self._body_presence(event)
            case messages.NoticeEvent():
                self._notice(event)
            case messages.SessionFailedEvent():
                self._ended(event)
            case messages.BodiesFrozenEvent(time_ns, names):
                self.print_line(f"frozen because the state diverged (NaN or infinity): {', '.join(names)}")
                if self.log is not None:
                    self.log.frozen(time_ns, names)

    def _table(self, log: LogWriter, e: messages.LogRecordsEvent) -> None:
        """Log the records of those bodies that are listed in the log.

        After a front end has taken over, some records may belong to bodies that were removed in the meantime; such
        records are only counted.
        """
        lives = np.frombuffer(e.generations, np.int64)
        there = (self.logged_generations[np.frombuffer(e.rows, np.int64)[::2]] == lives) | (lives == messages.NO_BODY)
        if (count := np.count_nonzero(there)) < len(lives):
            self._count_omitted(len(lives) - int(count))
            e = _only(e, there)
        log.records(e.tick * self.step_ns, e.tables, e.counts, e.rows, e.records)

    def _ended(self, e: messages.SessionFailedEvent) -> None:
        member = self.crews.by_token.get(e.session)
        if member is None:
            return
        if e.is_internal:
            self.sessions.drops["internal"] += 1
        self.sessions.bye(member.session, e.text, "internal" if e.is_internal else "ended")

    def _executed(self, event: messages.ExecutedEvent) -> None:
        by, command = self.pending_commands.complete(event)
        if (
            event.ok
            and isinstance(command, items.Mission)
            and (pilot := self.crews.mission_pilot(command.body)) is not None
        ):
            part = items.MissionPart(command.number, command.first, command.count, command.points)
            self.sessions.push(pilot.session, part)
        if event.ok and isinstance(command, items.Fault) and (device := device_of(command.part)):
            self._device_fault(command.body, device, items.DeviceFault(command.kind, command.amount))
        if self.log is None or not event.ok:
            return
        arguments = commands.to_dict(command)
        self.log.command(event.time_ns, by, arguments.pop("verb"), arguments)
        if isinstance(command, items.Fault):
            self.log.fault(
                event.time_ns,
                command.body,
                command.part,
                command.kind,
                begins=command.kind != "none",
                amount=command.amount,
                field=command.field or None,
            )

    def _device_fault(self, body: str, device: str, fault: items.DeviceFault) -> None:
        self.crews.device_faults[body, device] = fault  # for a device that joins later or again
        if (member := self.crews.device(body, device)) is not None:
            member.set_device_fault(fault)
            self.sessions.push(member.session, fault)

    def _signals(self, event: messages.SignalsEvent) -> None:
        sent, receptions = np.frombuffer(event.sent, SENT.dtype), np.frombuffer(event.receptions, RECEPTION.dtype)
        senders = self.generations[sent["source"]] == np.frombuffer(event.senders, np.int64)
        receivers = self.generations[receptions["receiver"]] == np.frombuffer(event.receivers, np.int64)
        if self.log is not None:
            self.log.signals(sent, receptions)
        self.tables.signals(sent, receptions)
        acoustic_events.push_signal_events(
            sent, receptions, senders, receivers, self.payloads, self.crews, self.sessions.push
        )
        self.observers.announce_signals(sent, receptions)

    def _run(self, state: int, time_ns: int) -> None:
        if self.log is not None:
            self.log.run(time_ns, RunState(state).name.lower())
            self.log.health(time_ns, self.clock())
        for session in list(self.sessions.by_token.values()):
            self.sessions.push(session, items.RunStateChanged(state, time_ns))

    def _body_presence(self, r: messages.BodyPresenceEvent) -> None:
        self.generations[r.row] = max(
            self.generations[r.row], r.generation
        )  # of bodies that the engine added without a client
        known = self.logged_generations[r.row]
        if r.is_logged and self.log is not None and (r.generation > known if r.is_present else r.generation == known):
            self.logged_generations[r.row] = r.generation if r.is_present else 0
            self.log.body(r.time_ns, r.row, r.name, r.model, r.type, bool(r.is_present))
        if r.is_new:
            body = items.BodyChanged(r.row, r.is_present, int(BodyType[r.type.upper()]), r.name, r.model)
            for member in self.crews.watching_others():
                self.sessions.push(member.session, body)
            self.observers.announce_body(body)

    def report_notice(self, time_ns: int, member: CrewMember, text: str) -> None:
        """Publish and log a notice from a pilot.

        The notice is not sent to the crew, so that a session with many notices does not slow down the other sessions.
        """
        text = sanitise_text(text, TEXT_BYTES)
        self.tables.notice(time_ns, member.row, member.grant.body, text)
        if self.log is not None:
            self._log_notices_before(time_ns)
            self._new_notices.append((time_ns, member.row, member.grant.body, text))

    def _log_notices_before(self, time_ns: float) -> None:
        """Log the notices that pilots sent before a given time. They are sorted by row, because the order in which
        pilots answer a step differs from run to run.
        """
        if self._new_notices and self._new_notices[0][0] < time_ns and self.log is not None:
            for at_ns, _, body, text in sorted(self._new_notices, key=lambda notice: notice[1]):
                self.log.notice(at_ns, body, text)
            self._new_notices.clear()

    def change_time(self, time_ns: int) -> str:
        """Continue the log in a new file, because the simulation time has changed. Return the name of the file, or an
        empty string if there is no log.
        """
        self.finish()
        self.logged_generations[:] = 0
        return self.log.branch(time_ns) if self.log is not None else ""

    def finish(self) -> None:
        """Log the notices that were held back because further notices with the same time could have followed."""
        self._log_notices_before(math.inf)

    def _notice(self, n: messages.NoticeEvent) -> None:
        self.tables.notice(n.time_ns, n.row, n.name, n.text)
        if self.log is not None:
            self.log.notice(n.time_ns, n.name, n.text)
        for member in self.crews.members_of(n.row) if n.generation == self.generations[n.row] else ():
            self.sessions.push(member.session, items.Notice(n.time_ns, sanitise_text(n.text, TEXT_BYTES)))


def _only(e: messages.LogRecordsEvent, kept: Mask) -> messages.LogRecordsEvent:
    """Return the event with only those records for which ``kept`` is True."""
    counts, records, first, at = list[int](), list[bytes](), 0, 0
    for table, count in zip(e.tables, e.counts, strict=True):
        whose, size = kept[first : first + count], logged_table(table).dtype.itemsize
        counts.append(int(np.count_nonzero(whose)))
        records.append(np.frombuffer(e.records, f"V{size}", count, at)[whose].tobytes())
        first, at = first + count, at + count * size
    rows = np.frombuffer(e.rows, np.int64).reshape(-1, 2)[kept].tobytes()
    return replace(e, counts=counts, rows=rows, records=b"".join(records))
