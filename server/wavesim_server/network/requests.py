"""Requests from sessions: sound, subscriptions, the view of an observer, and commands."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from wavesim_sdk import commands
from wavesim_sdk.arrays import Record
from wavesim_sdk.wire import items
from wavesim_sdk.wire.emulator_items import Attach, FramePart, Serve, Values, Written
from wavesim_sdk.wire.items import REQUESTS, SensorDescription
from wavesim_sdk.wire.messages import TEXT_BYTES, Role
from wavesim_sdk.wire.schema import sanitise_text
from wavesim_sdk.wire.server import ServerSessions
from wavesim_sdk.wire.session import Requested, Session
from wavesim_server.network.acoustic_events import RequestAllowance
from wavesim_server.network.admission import MIN_PERIOD_NS, JoinResult
from wavesim_server.network.commands import PendingCommands, check_recipient, permit_command
from wavesim_server.network.crews import CrewMember, Crews
from wavesim_server.network.emulator_sessions import EmulatorSessions
from wavesim_server.network.engine_queue import EngineCommands
from wavesim_server.network.frame_streaming import FrameStreamer
from wavesim_server.network.observers import Observers
from wavesim_server.network.simulation_clock import SimulationClock
from wavesim_server.network.vehicle_commands import VehicleCommands
from wavesim_world.config.sensors import InstrumentConfig

NOTICES_PER_S = 1.0  #: maximum number of notices per simulated second from one pilot
MAX_PENDING_SOUNDS = 4096  #: maximum number of acoustic requests from one lockstep client for one step


@dataclass(frozen=True)
class RequestAccess:
    """The parts of the front end that answer requests."""

    sessions: ServerSessions
    crews: Crews
    observers: Observers
    emulators: EmulatorSessions
    frame_streamer: FrameStreamer
    pending_commands: PendingCommands
    vehicle_commands: VehicleCommands
    engine_queue: EngineCommands
    clock: SimulationClock
    identity: Callable[[], Record]  #: function that returns the bodies in all rows
    describe_sensors: Callable[[Sequence[InstrumentConfig]], Iterable[SensorDescription]]
    #: function that publishes a notice, given its time in ns, sender and text
    report_notice: Callable[[int, CrewMember, str], None]


class RequestHandler:
    """Handles requests one by one, and answers each of them."""

    def __init__(self, access: RequestAccess, acoustic_rate: float) -> None:
        self._access = access
        self.acoustic_quota = RequestAllowance(acoustic_rate)
        self.notice_quota = RequestAllowance(NOTICES_PER_S, "notices")
        #: acoustic requests for the current step by session, as (number that the result will carry, encoded request)
        self.pending_sounds: dict[int, list[tuple[int, bytes]]] = {}

    def handle(self, happening: Requested, member: CrewMember | None, now: float) -> None:
        """Handle a request from a session; ``member`` is None for an observer."""
        session, number, request = happening.session, happening.number, happening.request
        try:
            match request:
                case items.Ping() | items.Send() | items.Range() | items.Transmit():
                    self._sound(member, number, happening.item)
                case items.SoundPart():
                    self._sound_part(member, number, happening.item)
                case Attach() | Serve() | Values() | Written() | FramePart():
                    self._access.emulators.handle(session, number, request)
                case items.Observe():
                    self._observe(session, request, now)
                    self._answer(session, number, True, "")
                case items.Subscribe():
                    self._subscribe(member, request, now)
                    self._answer(session, number, True, "")
                case items.Missions():
                    self._missions(member, request)
                    self._answer(session, number, True, "")
                case items.CommandAnswer():
                    self._access.vehicle_commands.take(member, request)
                    self._answer(session, number, True, "")
                case items.Frames():
                    self._frames(member, request, now)
                    self._answer(session, number, True, "")
                case _:
                    self._command(session, number, request)
        except ValueError as error:
            self._access.sessions.refuse(session, number, str(error))

    def discard(self, session: Session) -> None:
        """Discard the pending requests from a session that has ended."""
        self.pending_sounds.pop(session.token, None)
        self.acoustic_quota.remove(session.token)
        self.notice_quota.remove(session.token)

    def change_time(self) -> None:
        """Discard all pending requests and reset the allowances, because the simulation time has changed."""
        self.pending_sounds.clear()
        self.acoustic_quota.clear()
        self.notice_quota.clear()

    def transfer(self, old: Session, new: Session, same: bool) -> None:
        """Move pending requests from a session to its replacement, if both belong to the same client."""
        sounds = self.pending_sounds.pop(old.token, None)
        self.discard(old)
        if same and sounds:
            self.pending_sounds[new.token] = sounds

    def take_sounds(self, token: int) -> Sequence[tuple[int, bytes]]:
        """Return and remove the acoustic requests from a lockstep session for the current step."""
        return self.pending_sounds.pop(token, ())

    def _answer(self, session: Session, number: int, ok: bool, text: str) -> None:
        self._access.sessions.push(session, items.Answer(number, int(ok), sanitise_text(text, TEXT_BYTES)))

    def _sound(self, member: CrewMember | None, number: int, item: Sequence[Any]) -> None:
        if member is None or not member.grant.may_send:
            raise ValueError("this session may not transmit sound")
        access, token = self._access, member.session.token
        self.acoustic_quota.consume(token, member.session.name, access.clock.time_ns)
        tag, data = access.crews.request_tag(member, number), REQUESTS.pack_checked(item)
        if not member.in_lockstep:
            access.engine_queue.request(member.row, tag, data)
            return
        waiting = self.pending_sounds.setdefault(token, [])
        if len(waiting) >= MAX_PENDING_SOUNDS:
            raise ValueError(f"more than {MAX_PENDING_SOUNDS} acoustic requests for one step; this request is dropped")
        waiting.append((tag, data))

    def _sound_part(self, member: CrewMember | None, number: int, item: Sequence[Any]) -> None:
        """Forward some of the samples of a sound.

        In lockstep, they do not wait for the step either, because TRANSMIT waits for it. Samples from a session that
        may not send sound have no effect, because TRANSMIT is refused.
        """
        if member is None or not member.grant.may_send:
            return
        tag, data = self._access.crews.request_tag(member, number), REQUESTS.pack_checked(item)
        self._access.engine_queue.request(member.row, tag, data)

    def _observe(self, session: Session, request: items.Observe, now: float) -> None:
        if session.role is not Role.OBSERVER:
            raise ValueError("only an observer may send OBSERVE")
        self._access.observers.set_view(session, request, now)

    def _frames(self, member: CrewMember | None, request: items.Frames, now: float) -> None:
        if member is None:
            raise ValueError("an observer cannot receive frames: it has no body")
        self._access.frame_streamer.subscribe(member, request.sensors, request.period_ns * 1e-9, now)

    def _missions(self, member: CrewMember | None, request: items.Missions) -> None:
        if member is None or member.role is not Role.PILOT:
            raise ValueError("only a pilot may accept missions")
        member.takes_missions = bool(request.take)
        if request.text:
            time_ns = self._access.clock.time_ns
            self.notice_quota.consume(member.session.token, member.session.name, time_ns)
            self._access.report_notice(time_ns, member, request.text)

    def _subscribe(self, member: CrewMember | None, request: items.Subscribe, now: float) -> None:
        if member is None:
            raise ValueError("an observer cannot subscribe: it has no body")
        access, session = self._access, member.session
        wrong = member.select_sensors(request.sensors)
        if wrong:
            raise ValueError(wrong)
        for sensor in access.describe_sensors(member.grant.suite):
            if sensor.number in member.sensor_numbers and sensor.number not in member.described_sensors:
                access.sessions.push(session, sensor)
                member.described_sensors.add(sensor.number)
        if request.others and not member.wants_others:
            access.observers.roll_call(session, access.identity())
        member.wants_acoustics, member.wants_others = bool(request.acoustics), bool(request.others)
        if member.wants_effort != bool(request.effort):
            member.wants_effort, member.state_layout = bool(request.effort), None
        if request.state_period_ns and not member.in_lockstep:
            member.period = max(request.state_period_ns, MIN_PERIOD_NS) * 1e-9
            member.next_state = min(member.next_state, now + member.period)
        access.crews.rearrange()
        assert math.isfinite(member.period) or member.in_lockstep

    def _command(self, session: Session, number: int, request: commands.Command) -> None:
        assert isinstance(session.admission, JoinResult)
        command = permit_command(request, session.admission.grant)
        check_recipient(command, self._access.crews)
        answer = self._access.vehicle_commands.answer_later(
            command, lambda ok, text: self._answer(session, number, ok, text)
        )
        self._access.pending_commands.submit(command, session.name, answer)
