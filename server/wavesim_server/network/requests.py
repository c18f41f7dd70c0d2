"""What sessions ask for: sound, other subscriptions, an observer's view, commands."""

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
from wavesim_server.network.admission import LEAST_PERIOD_NS, Seat
from wavesim_server.network.commands import permitted, taken
from wavesim_server.network.crew import Member
from wavesim_server.network.sound import Allowance

if TYPE_CHECKING:
    from wavesim_server.network.front import Front

SAYINGS_PER_S = 1.0  #: notices of a pilot, simulated time
MOST_SOUNDS = 4096  #: of a lockstep client for one step


class Requests:
    """Takes them, one by one. Each is answered."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self.allowance = Allowance(front.config.network.acoustic_rate)
        self.sayings = Allowance(SAYINGS_PER_S, "notices")
        self.sounds: dict[int, list[messages.Sound]] = {}  #: session -> acoustic requests of the step under way

    def take(self, session: Session, member: Member | None, number: int, request: AnyRequest) -> None:
        """A request of a session; ``member`` is None for an observer."""
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

    def forget(self, session: Session) -> None:
        """A session is over: what it asked for last does not happen."""
        self.sounds.pop(session.token, None)
        self.allowance.forget(session.token)
        self.sayings.forget(session.token)

    def goes_on(self, old: Session, new: Session, same: bool) -> None:
        """Another session took the place of one: what that one asked for still happens if both are of the ``same`` client."""
        sounds = self.sounds.pop(old.token, None)
        self.forget(old)
        if same and sounds:
            self.sounds[new.token] = sounds

    def _answer(self, session: Session, number: int, ok: bool, text: str) -> None:
        self._front.sessions.push(session, items.Answer(number, int(ok), sanitise_text(text, TEXT_BYTES)))

    def _sound(self, member: Member | None, number: int, request: items.Ping | items.Send | items.Range) -> None:
        if member is None or not member.berth.may_send:
            raise ValueError("this session may not send sound")
        front, token = self._front, member.session.token
        self.allowance.take(token, member.session.name, int(front.clock()["time_ns"]))
        sound = messages.Sound(member.row, front.crews.tag(member, number), items.REQUESTS.encode(request))
        if not member.in_lockstep:
            front.tell(sound)
            return
        waiting = self.sounds.setdefault(token, [])
        if len(waiting) >= MOST_SOUNDS:
            raise ValueError(f"more than {MOST_SOUNDS} acoustic requests for one step")
        waiting.append(sound)

    def _observe(self, session: Session, request: items.Observe) -> None:
        if session.role is not Role.OBSERVER:
            raise ValueError("only an observer observes")
        self._front.observers.ask(session, request, self._front.now)

    def _frames(self, member: Member | None, request: items.Frames) -> None:
        if member is None:
            raise ValueError("an observer has no body with sonars")
        self._front.feeds.ask(member, request.sensors, request.period_ns * 1e-9, self._front.now)

    def _missions(self, member: Member | None, request: items.Missions) -> None:
        if member is None or member.role is not Role.PILOT:
            raise ValueError("missions are for pilots")
        member.missions = bool(request.take)
        if request.text:
            now = int(self._front.clock()["time_ns"])
            self.sayings.take(member.session.token, member.session.name, now)
            self._front.news.report(now, member, request.text)

    def _subscribe(self, member: Member | None, request: items.Subscribe) -> None:
        if member is None:
            raise ValueError("an observer has no body to subscribe to")
        front, session = self._front, member.session
        wrong = member.choose(request.sensors)
        if wrong:
            raise ValueError(wrong)
        for sensor in front.gate.describe(member.berth.suite):
            if sensor.number in member.chosen and sensor.number not in member.told:
                front.sessions.push(session, sensor)
                member.told.add(sensor.number)
        if request.others and not member.others:
            front.observers.roll_call(session, front.areas["vehicles"]["identity"].snapshot()[1])
        member.acoustics, member.others = bool(request.acoustics), bool(request.others)
        if member.effort != bool(request.effort):
            member.effort, member.shape = bool(request.effort), None
        if request.state_period_ns and not member.in_lockstep:
            member.period = max(request.state_period_ns, LEAST_PERIOD_NS) * 1e-9
            member.next_state = min(member.next_state, front.now + member.period)
        front.crews.arrange()
        assert math.isfinite(member.period) or member.in_lockstep

    def _command(self, session: Session, number: int, request: commands.Command) -> None:
        assert isinstance(session.admission, Seat)
        command = permitted(request, session.admission.berth)
        taken(command, self._front.crews)
        self._front.under_way.give(command, session.name, lambda ok, text: self._answer(session, number, ok, text))
