"""Requests from sessions: sound, subscriptions, an observer's view, commands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from wavesim_sdk import commands
from wavesim_sdk.wire import items
from wavesim_sdk.wire.items import AnyRequest
from wavesim_sdk.wire.messages import TEXT_BYTES, Role
from wavesim_sdk.wire.schema import sanitise_text
from wavesim_sdk.wire.session import Session
from wavesim_server import messages
from wavesim_server.network.acoustic_events import RequestAllowance
from wavesim_server.network.admission import MIN_PERIOD_NS, JoinResult
from wavesim_server.network.commands import check_mission_taker, permit_command
from wavesim_server.network.crews import CrewMember

if TYPE_CHECKING:
    from wavesim_server.network.front import Front

NOTICES_PER_S = 1.0  #: maximum number of notices per simulated second from one pilot
MAX_PENDING_SOUNDS = 4096  #: maximum number of acoustic requests from one lockstep client for one step


class RequestHandler:
    """Handles requests one by one, and answers each of them."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self.acoustic_quota = RequestAllowance(front.config.network.acoustic_rate)
        self.notice_quota = RequestAllowance(NOTICES_PER_S, "notices")
        self.pending_sounds: dict[
            int, list[messages.SoundCommand]
        ] = {}  #: session -> acoustic requests for the current step

    def handle(self, session: Session, member: CrewMember | None, number: int, request: AnyRequest) -> None:
        """Handle a request from a session; ``member`` is None for an observer."""
        try:
            match request:
                case items.Ping() | items.Send() | items.Range():
                    self._sound(member, number, request)
                case items.Observe():
                    self._observe(session, request)
                    self._answer(session, number, True, "")
                case items.Subscribe():
                    self._subscribe(member, request)
                    self._answer(session, number, True, "")
                case items.Missions():
                    self._missions(member, request)
                    self._answer(session, number, True, "")
                case items.Frames():
                    self._frames(member, request)
                    self._answer(session, number, True, "")
                case _:
                    self._command(session, number, request)
        except ValueError as error:
            self._front.sessions.refuse(session, number, str(error))

    def discard(self, session: Session) -> None:
        """Discard the pending requests of a session that ended."""
        self.pending_sounds.pop(session.token, None)
        self.acoustic_quota.remove(session.token)
        self.notice_quota.remove(session.token)

    def transfer(self, old: Session, new: Session, same: bool) -> None:
        """Move pending requests from a session to its replacement, if both belong to the same client."""
        sounds = self.pending_sounds.pop(old.token, None)
        self.discard(old)
        if same and sounds:
            self.pending_sounds[new.token] = sounds

    def _answer(self, session: Session, number: int, ok: bool, text: str) -> None:
        self._front.sessions.push(session, items.Answer(number, int(ok), sanitise_text(text, TEXT_BYTES)))

    def _sound(self, member: CrewMember | None, number: int, request: items.Ping | items.Send | items.Range) -> None:
        if member is None or not member.grant.may_send:
            raise ValueError("this session may not send sound")
        front, token = self._front, member.session.token
        self.acoustic_quota.consume(token, member.session.name, int(front.clock()["time_ns"]))
        sound = messages.SoundCommand(
            member.row, front.crews.request_tag(member, number), items.REQUESTS.encode(request)
        )
        if not member.in_lockstep:
            front.send_to_engine(sound)
            return
        waiting = self.pending_sounds.setdefault(token, [])
        if len(waiting) >= MAX_PENDING_SOUNDS:
            raise ValueError(f"more than {MAX_PENDING_SOUNDS} acoustic requests for one step; this request is dropped")
        waiting.append(sound)

    def _observe(self, session: Session, request: items.Observe) -> None:
        if session.role is not Role.OBSERVER:
            raise ValueError("only an observer may send OBSERVE")
        self._front.observers.set_view(session, request, self._front.now)

    def _frames(self, member: CrewMember | None, request: items.Frames) -> None:
        if member is None:
            raise ValueError("an observer cannot receive frames: it has no body")
        self._front.frame_streamer.subscribe(member, request.sensors, request.period_ns * 1e-9, self._front.now)

    def _missions(self, member: CrewMember | None, request: items.Missions) -> None:
        if member is None or member.role is not Role.PILOT:
            raise ValueError("only a pilot may accept missions")
        member.takes_missions = bool(request.take)
        if request.text:
            now = int(self._front.clock()["time_ns"])
            self.notice_quota.consume(member.session.token, member.session.name, now)
            self._front.event_dispatcher.report_notice(now, member, request.text)

    def _subscribe(self, member: CrewMember | None, request: items.Subscribe) -> None:
        if member is None:
            raise ValueError("an observer cannot subscribe: it has no body")
        front, session = self._front, member.session
        wrong = member.select_sensors(request.sensors)
        if wrong:
            raise ValueError(wrong)
        for sensor in front.admission_policy.describe(member.grant.suite):
            if sensor.number in member.sensor_numbers and sensor.number not in member.described_sensors:
                front.sessions.push(session, sensor)
                member.described_sensors.add(sensor.number)
        if request.others and not member.wants_others:
            front.observers.roll_call(session, front.areas["vehicles"]["identity"].snapshot()[1])
        member.wants_acoustics, member.wants_others = bool(request.acoustics), bool(request.others)
        if member.wants_effort != bool(request.effort):
            member.wants_effort, member.datagram_shape = bool(request.effort), None
        if request.state_period_ns and not member.in_lockstep:
            member.period = max(request.state_period_ns, MIN_PERIOD_NS) * 1e-9
            member.next_state = min(member.next_state, front.now + member.period)
        front.crews.rearrange()
        assert math.isfinite(member.period) or member.in_lockstep

    def _command(self, session: Session, number: int, request: commands.Command) -> None:
        assert isinstance(session.admission, JoinResult)
        command = permit_command(request, session.admission.grant)
        check_mission_taker(command, self._front.crews)
        self._front.pending_commands.submit(
            command, session.name, lambda ok, text: self._answer(session, number, ok, text)
        )
