"""What a program on board sees and can ask for, however it waits: the part that blocking and asyncio brokers share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from wavesim_sdk import commands
from wavesim_sdk.errors import BrokerError, Refused
from wavesim_sdk.server_address import ServerName, address_of
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import items
from wavesim_sdk.wire.client import ClientSession, SessionEvent
from wavesim_sdk.wire.frame_pieces import WholeFrame
from wavesim_sdk.wire.items import (
    ActuatorDescription,
    Answer,
    AnyRequest,
    BodyChanged,
    MissionPart,
    Notice,
    Reception,
    RequestRefused,
    RunStateChanged,
    SensorDescription,
    SignalSent,
)
from wavesim_sdk.wire.link import make_session
from wavesim_sdk.wire.messages import Join, Role, Welcome
from wavesim_sdk.wire.schema import Malformed
from wavesim_sdk.wire.state import Sensors, State, missing_name_text

if TYPE_CHECKING:
    from wavesim_sdk.config.model import Waypoint
    from wavesim_sdk.sonars.frames import ImagingFrame

KEPT_ANSWERS = 256
KEPT_FRAMES = 4  #: of each sonar, for a program that is slow
Command = Mapping[str, float] | Sequence[float | None]
ROLES = {"pilot": Role.PILOT, "instrument": Role.INSTRUMENT, "listener": Role.LISTENER}


@dataclass
class Step:
    """One state, with everything that happened since the one before."""

    state: State
    receptions: list[Reception] = field(default_factory=list)
    sent: list[SignalSent] = field(default_factory=list)
    refused: list[RequestRefused] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    run_states: list[RunStateChanged] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    others: list[BodyChanged] = field(default_factory=list)
    missions: list[ReceivedMission] = field(default_factory=list)

    @property
    def time(self) -> float:
        """Simulation time in s."""
        return self.state.time_ns * 1e-9

    @property
    def sensors(self) -> Sensors:
        """The sensors that have a valid value: ``step.sensors.ctd.temperature``."""
        return self.state.sensors

    def merge_into(self, later: Step) -> None:
        """A program was too slow for this step: what happened in it goes into a later one."""
        later.receptions[:0], later.sent[:0], later.refused[:0] = self.receptions, self.sent, self.refused
        later.answers[:0], later.run_states[:0] = self.answers, self.run_states
        later.notices[:0], later.others[:0] = self.notices, self.others
        later.missions[:0] = self.missions


@dataclass(frozen=True)
class ReceivedMission:
    """What somebody who may has sent to a pilot that takes missions: to be followed instead of the one before."""

    number: int
    points: tuple[tuple[float, ...], ...]  #: of each waypoint: north, east, down (m, W), speed (m/s)

    @property
    def waypoints(self) -> list[Waypoint]:
        """As those of a configuration."""
        from wavesim_sdk.config.model import Waypoint  # NumPy: not before it is needed

        return [Waypoint(north=n, east=e, depth=d, speed=u) for n, e, d, u in self.points]


class MissionAssembler:
    """Puts missions together from their parts, which come in order; parts that do not fit are another sender's, and dropped."""

    def __init__(self) -> None:
        self._current = 0, 0  # number and size of the one that is coming
        self._numbers: list[float] = []  # that have come of it

    def add(self, part: MissionPart) -> ReceivedMission | None:
        """The whole mission, with its last part."""
        if part.first == 0:
            self._current, self._numbers = (part.number, part.count), []
        if (part.number, part.count) != self._current or 4 * part.first != len(self._numbers) or len(part.points) % 4:
            return None
        self._numbers += part.points
        if len(self._numbers) != 4 * part.count:
            return None
        self._current = 0, 0
        return ReceivedMission(part.number, tuple(zip(*(iter(self._numbers),) * 4, strict=True)))


class RequestOutcomes:
    """What the server said to requests: the newest, each told once."""

    def __init__(self) -> None:
        self._said: dict[int, Answer | RequestRefused] = {}

    def __len__(self) -> int:
        return len(self._said)

    def add(self, event: Answer | RequestRefused) -> None:
        """It came."""
        self._said[event.request] = event
        while len(self._said) > KEPT_ANSWERS:
            del self._said[next(iter(self._said))]

    def take(self, request: int) -> str | None:
        """What the server said to a request, None if nothing yet; Refused if it said no."""
        match self._said.pop(request, None):
            case Answer(ok=1, text=text):
                return text
            case Answer(text=text) | RequestRefused(text=text):
                raise Refused(f"the server refused request {request}: {text}")
        return None


class StepCollector:
    """Collects session events into steps."""

    def __init__(self) -> None:
        self.ended = False
        self.listeners: list[Callable[[Reception], None]] = []
        self.outcomes = RequestOutcomes()
        self.missions = MissionAssembler()
        self.pending = Step(State())

    def feed(self, event: SessionEvent) -> Step | None:
        """A finished step, if this event completes one."""
        step = self.pending
        match event:
            case State():
                step.state = event
                self.pending = Step(event)
                return step
            case Reception():
                step.receptions.append(event)
                for call in self.listeners:
                    call(event)
            case SignalSent():
                step.sent.append(event)
            case RequestRefused():
                step.refused.append(event)
                self.outcomes.add(event)
            case Answer():
                step.answers.append(event)
                self.outcomes.add(event)
            case RunStateChanged():
                step.run_states.append(event)
                self.ended = self.ended or event.run_state == RunState.ENDED
            case Notice():
                step.notices.append(event)
            case BodyChanged():
                step.others.append(event)
            case MissionPart() if (mission := self.missions.add(event)) is not None:
                step.missions.append(mission)
        return None


class PrivilegedRequests:
    """Requests that need a right (`<network><grant>`). Each returns its number, which its answer or refusal carries."""

    session: ClientSession

    def request(self, request: AnyRequest) -> int:
        """Any request; returns its number."""
        try:
            return self.session.request(request)
        except Malformed as malformed:
            raise BrokerError(f"a request like this cannot be sent: {malformed}") from None
        except (ValueError, OverflowError) as error:
            raise BrokerError(f"this request cannot be sent: {error}") from None

    def control(self, verb: str, value: float | None = None) -> int:
        """Right `control`: start, pause, step (ticks), speed (factor; 0 = as fast as possible), stop, shutdown."""
        return self.request(items.Control(verb, None if value is None else float(value)))

    def fault(self, part: str, kind: str, amount: float = 0.0, *, field: str = "", body: str = "") -> int:
        """Right `fault`: break an actuator or a sensor (or one field of it), or make it whole again (kind ``none``)."""
        return self.request(items.Fault(body, part, kind, float(amount), field))

    def push(self, force: Sequence[float], torque: Sequence[float] = (0.0, 0.0, 0.0), *, body: str = "") -> int:
        """Right `push`: an external force (N) and moment (N m) in B, until the next one."""
        return self.request(items.Push(body, _floats(force), _floats(torque)))

    def pose(
        self, position: Sequence[float] | None = None, attitude: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None, *, body: str = "",
    ) -> int:  # fmt: skip
        """Right `pose`: put the body elsewhere; what is None stays as it is."""
        p, a, v = (None if some is None else _floats(some) for some in (position, attitude, velocity))
        return self.request(items.Pose(body, p, a, v))

    def allocate(self, matrix: Sequence[Sequence[float]], *, body: str = "") -> int:
        """Right `allocate`: another allocation matrix: six rows of one number per thruster."""
        return self.request(items.Allocate(body, tuple(float(v) for row in matrix for v in row)))

    def weather(self, **values: float) -> int:
        """Right `weather`: current_north, current_east, wind_speed, wind_direction, wave_height, wave_peak, wave_direction."""
        try:
            return self.request(items.Weather(**values))
        except TypeError:
            known = items.Weather.__dataclass_fields__
            strange = next((name for name in values if name not in known), "")
            raise BrokerError(missing_name_text("the weather has", strange, known)) from None

    _missions = 0

    def mission(self, waypoints: Sequence[Sequence[float]], *, body: str = "") -> int:
        """Right `mission`: waypoints (north, east, down in m, W; speed in m/s) for the pilot of a body that takes missions. Of a
        long one, which goes in several requests, the number is that of the last."""
        self._missions += 1
        try:
            parts = commands.split_mission(waypoints, self._missions, body)
        except (ValueError, TypeError) as error:
            raise BrokerError(str(error)) from None
        return [self.request(part) for part in parts][-1]


class BrokerBase(PrivilegedRequests):
    """What both kinds of broker share: the session and the calls that need no waiting."""

    def __init__(
        self,
        name: str,
        server: ServerName | None = None,
        *,
        role: str = "pilot",
        model: str = "",
        position: Sequence[float] = (0.0, 0.0, 0.0),
        attitude: Sequence[float] = (0.0, 0.0, 0.0),
        lockstep: float = 0.0,
        state_period: float = 0.0,
        previous: int = 0,
        sensors: Sequence[str] | None = None,
        acoustics: bool = True,
        effort: bool = False,
        others: bool = False,
        key: bytes | None = None,
    ) -> None:
        if role not in ROLES:
            raise BrokerError(f"{missing_name_text('there is', role, ROLES)} among the roles")
        self.name, self.server, self.lockstep = name, address_of(server), lockstep
        self.join = Join(
            name=name, role=ROLES[role], model=model, position=_floats(position), attitude=_floats(attitude),
            lockstep_ns=round(lockstep * 1e9), state_period_ns=round(state_period * 1e9), previous=previous,
            sensors=None if sensors is None else tuple(sensors), acoustics=int(acoustics), effort=int(effort),
            others=int(others),
        )  # fmt: skip
        self.session = self._create_session(key)
        self._steps = StepCollector()
        self._step: State | None = None
        self._frames: dict[int, deque[ImagingFrame]] = {}
        self._frames_late = 0

    def _create_session(self, key: bytes | None) -> ClientSession:
        return make_session(self.join, key)

    @property
    def welcome(self) -> Welcome:
        """What the server said at joining."""
        if self.session.welcome is None:
            raise BrokerError("the broker has not joined")
        return self.session.welcome

    @property
    def token(self) -> int:
        """Of the session: give it as ``previous`` to come back without a break after a crash."""
        return self.session.token

    @property
    def ended(self) -> bool:
        """Whether the run has ended, or had before this program joined."""
        at = self.session.welcome
        late = at is not None and not at.resumed and at.run_state == RunState.ENDED
        return late or self._steps.ended

    @property
    def actuators(self) -> tuple[ActuatorDescription, ...]:
        """What the body can be commanded, in order: name, unit, limits."""
        return self.session.body.ordered_actuators

    @property
    def sensors(self) -> tuple[SensorDescription, ...]:
        """The sensors of the body, with their fields and units."""
        return tuple(self.session.body.layouts[k].description for k in sorted(self.session.body.layouts))

    @property
    def frames_lost(self) -> int:
        """Frames of sonars that the network lost a piece of, or that :meth:`take_frames` came too late for."""
        return self.session.frames.lost_frames + self._frames_late

    @property
    def since(self) -> Step:
        """What happened since the last step that was handed out; its state is that one's."""
        return self._steps.pending

    # -- requests --------------------------------------------------------------------------

    def ping(
        self, frequency: float, level: float | None = None, *, at: int | None = None, code: int | None = None
    ) -> int:
        """Ask the transducer to send a pulse (Hz, dB re 1 uPa at 1 m); returns the request's number.

        It leaves at the time of the step under way (in lockstep) or at the next tick, or ``at`` a time of the
        node's own clock (ns). A refusal, such as a transducer that still recharges, comes in ``Step.refused``.
        """
        return self.request(items.Ping(float(frequency), level, at, code))

    def send(self, payload: bytes, to: int = 0, level: float | None = None, *, at: int | None = None) -> int:
        """Send a packet by modem, to an address or (0) to all; otherwise like :meth:`ping`."""
        return self.request(items.Send(to, payload, level, at))

    def range_to(self, address: int, level: float | None = None, *, at: int | None = None) -> int:
        """Ask the modem of an address to answer; its range comes as ``range`` of a reception of kind 3."""
        return self.request(items.Range(address, level, at))

    def subscribe(
        self, sensors: Sequence[str] | None = None, *, acoustics: bool = True, effort: bool = False, others: bool = False,
        state_period: float = 0.0,
    ) -> int:  # fmt: skip
        """Ask for other things than at joining: sensors by name (None: all), receptions, forces, who else comes and goes."""
        names = None if sensors is None else tuple(sensors)
        period = round(state_period * 1e9)
        return self.request(items.Subscribe(names, int(acoustics), int(effort), int(others), period))

    def subscribe_frames(self, *sonars: str, period: float = 0.0) -> int:
        """Ask for frames of imaging sonars, by their names (none: of all), at least ``period`` s of wall time apart. They come
        beside the steps, each once or not at all: :meth:`take_frames`. Where the server runs, its rings hold every frame."""
        return self.request(items.Frames(sonars or None, round(period * 1e9)))

    def take_missions(self, text: str = "", *, take: bool = True) -> int:
        """This pilot takes missions: they come in ``Step.missions``. ``text``, said now or later, tells people what it does with
        one: it becomes a notice. To be said again after a session was resumed."""
        return self.request(items.Missions(int(take), text))

    def stop_frames(self) -> int:
        """No more frames."""
        return self.request(items.Frames((), 0))

    def take_frames(self) -> list[ImagingFrame]:
        """The frames that have come since the last call, at most four of each sonar."""
        found = [frame for frames in self._frames.values() for frame in frames]
        self._frames.clear()
        return found

    def _frame(self, whole: WholeFrame) -> None:
        from wavesim_sdk.sonars.frames import ImagingFrame  # NumPy: not before it is needed

        try:
            frame = ImagingFrame.from_bytes(whole.data)
        except ValueError:
            self.session.drops["frame"] += 1
            return
        kept = self._frames.setdefault(whole.sensor, deque(maxlen=KEPT_FRAMES))
        self._frames_late += len(kept) == KEPT_FRAMES
        kept.append(frame)

    def _feed(self, event: SessionEvent) -> Step | None:
        """A finished step, if this event completes one."""
        if isinstance(event, WholeFrame):
            self._frame(event)
            return None
        return self._steps.feed(event)

    def on_reception(self, call: Callable[[Reception], None]) -> None:
        """Call a function with every reception, before its step is handed out."""
        self._steps.listeners.append(call)

    # -- commands --------------------------------------------------------------------------

    def command(self, wanted: Command) -> list[float | None]:
        """Actuator commands by position, from those by name or by position; BrokerError says what is wrong with them."""
        actuators = self.actuators
        if isinstance(wanted, Mapping):
            positions = {a.name: k for k, a in enumerate(actuators)}
            values: list[Any] = [None] * len(actuators)
            for name, value in wanted.items():
                if name not in positions:
                    raise BrokerError(missing_name_text(f"'{self.name}' has", name, positions))
                values[positions[name]] = value
        else:
            values = list(wanted)
            if len(values) > len(actuators):
                raise BrokerError(f"{len(values)} commands for the {len(actuators)} actuators of '{self.name}'")
        for k, value in enumerate(values):
            if value is not None and not (type(value) is float and isfinite(value)):
                values[k] = _number(value, f"the command of '{actuators[k].name}'")
        return values

    def answer(self, command: Command | None = None, estimate: Sequence[float | None] | None = None) -> None:
        """Actuator commands (by name, or in the order of ``actuators``; None: as before), and what the navigator believes.

        ``estimate``: position x3, sigma x3, dead reckoning x3, last range innovation. BrokerError if a value is no number;
        nothing was sent then, and a step still waits for its answer.
        """
        values = None if command is None else self.command(command)
        estimated = None
        if estimate is not None:
            estimated = [None if v is None else _number(v, f"estimate[{k}]") for k, v in enumerate(estimate)]
        try:
            if self._step is not None and self._step.step:
                self.session.done(self._step.tick, values, estimated)
                self._step = None
                return
            if values is not None:
                self.session.actuate(values)
            if estimated is not None:
                self.session.estimate(estimated)
        except Malformed as malformed:
            raise BrokerError(f"an answer like this cannot be sent: {malformed}") from None


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BrokerError(f"{what} is no number: {value!r}") from None
    if number - number != 0.0:
        raise BrokerError(f"{what} is {number}, no finite number")
    return number


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
