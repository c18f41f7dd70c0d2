"""Steps and requests of on-board programs: the common part of the blocking and the asyncio broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from wavesim_sdk import commands
from wavesim_sdk.errors import BrokerError, Refused
from wavesim_sdk.guidance.control import Waypoint
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
    from wavesim_sdk.imaging_frames import ImagingFrame

__all__ = ["BrokerBase", "Command", "PrivilegedRequests", "ReceivedMission", "RequestOutcomes", "Step"]

KEPT_ANSWERS = 256
KEPT_FRAMES = 4  #: number of frames kept for each sonar if the program is slow
Command = Mapping[str, float] | Sequence[float | None]
ROLES = {"pilot": Role.PILOT, "instrument": Role.INSTRUMENT, "listener": Role.LISTENER}


@dataclass
class Step:
    """One state of the body, with all events since the previous state."""

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
        """The sensors with a valid value: ``step.sensors.ctd.temperature``."""
        return self.state.sensors

    def merge_into(self, later: Step) -> None:
        """Move the events of this step into a later step, because the program was too slow to process this step."""
        later.receptions[:0], later.sent[:0], later.refused[:0] = self.receptions, self.sent, self.refused
        later.answers[:0], later.run_states[:0] = self.answers, self.run_states
        later.notices[:0], later.others[:0] = self.notices, self.others
        later.missions[:0] = self.missions


@dataclass(frozen=True)
class ReceivedMission:
    """Mission for a pilot that accepts missions. It replaces the earlier one; its sender has the right ``mission``."""

    number: int
    points: tuple[tuple[float, ...], ...]  #: for each waypoint: north, east, down (m, W), speed (m/s)

    @property
    def waypoints(self) -> list[Waypoint]:
        """The waypoints in the form that :mod:`wavesim_sdk.guidance.control` uses."""
        return [Waypoint(north=n, east=e, depth=d, speed=u) for n, e, d, u in self.points]


class MissionAssembler:
    """Assembler of missions from parts that arrive in order. It drops parts that do not fit, because they come from
    another sender.
    """

    def __init__(self) -> None:
        self._current = 0, 0  # number and size of the incomplete mission
        self._numbers: list[float] = []  # its numbers so far

    def add(self, part: MissionPart) -> ReceivedMission | None:
        """Add a part and return the mission that it completes, or None."""
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
    """Store of the newest answers and refusals of requests; each is returned once."""

    def __init__(self) -> None:
        self._said: dict[int, Answer | RequestRefused] = {}

    def __len__(self) -> int:
        return len(self._said)

    def add(self, event: Answer | RequestRefused) -> None:
        """Add the answer to a request, or its refusal."""
        self._said[event.request] = event
        while len(self._said) > KEPT_ANSWERS:
            del self._said[next(iter(self._said))]

    def take(self, request: int) -> str | None:
        """Return the text of the answer to a request, or None before it arrives. Raises Refused if the server refused it."""
        match self._said.pop(request, None):
            case Answer(ok=1, text=text):
                return text
            case Answer(text=text) | RequestRefused(text=text):
                raise Refused(f"the server refused request {request}: {text}")
        return None


class StepCollector:
    """Collector that combines the events of a session into steps."""

    def __init__(self) -> None:
        self.ended = False
        self.listeners: list[Callable[[Reception], None]] = []
        self.outcomes = RequestOutcomes()
        self.missions = MissionAssembler()
        self.pending = Step(State())

    def feed(self, event: SessionEvent) -> Step | None:
        """Add an event and return the step that it completes, or None."""
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
    """Requests that need a right (`<network><grant>`). Each method returns the number that the answer or refusal names."""

    session: ClientSession

    def request(self, request: AnyRequest) -> int:
        """Send any request and return its number."""
        try:
            return self.session.request(request)
        except Malformed as malformed:
            raise BrokerError(f"invalid request: {malformed}") from None
        except (ValueError, OverflowError) as error:
            raise BrokerError(f"cannot send this request: {error}") from None

    def control(self, verb: str, value: float | None = None) -> int:
        """Control the simulation clock (right `control`).

        Verbs: start, pause, step (ticks), speed (factor; 0 = as fast as possible), stop, shutdown.
        """
        return self.request(items.Control(verb, None if value is None else float(value)))

    def fault(self, part: str, kind: str, amount: float = 0.0, *, field: str = "", body: str = "") -> int:
        """Set a fault of an actuator, a sensor or one field of a sensor, or clear it (kind ``none``); right `fault`."""
        return self.request(items.Fault(body, part, kind, float(amount), field))

    def push(self, force: Sequence[float], torque: Sequence[float] = (0.0, 0.0, 0.0), *, body: str = "") -> int:
        """Apply an external force (N) and moment (N m) in B until the next push (right `push`)."""
        return self.request(items.Push(body, _floats(force), _floats(torque)))

    def pose(
        self,
        position: Sequence[float] | None = None,
        attitude: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None,
        *,
        body: str = "",
    ) -> int:
        """Set position (m, W), attitude (rad) and velocity (m/s, rad/s, B) of a body; None = unchanged. Requires the
        right `pose`.
        """
        p, a, v = (None if some is None else _floats(some) for some in (position, attitude, velocity))
        return self.request(items.Pose(body, p, a, v))

    def allocate(self, matrix: Sequence[Sequence[float]], *, body: str = "") -> int:
        """Replace the thruster allocation matrix: six rows of one number per thruster (right `allocate`)."""
        return self.request(items.Allocate(body, tuple(float(v) for row in matrix for v in row)))

    def weather(self, **values: float) -> int:
        """Change current, wind and waves (right `weather`).

        Values: current_north, current_east, wind_speed (m/s), wind_direction (rad), wave_height (m), wave_peak (rad/s),
        wave_direction (rad).
        """
        try:
            return self.request(items.Weather(**values))
        except TypeError:
            known = items.Weather.__dataclass_fields__
            strange = next((name for name in values if name not in known), "")
            raise BrokerError(missing_name_text("the weather has no value", strange, known)) from None

    _missions = 0

    def mission(self, waypoints: Sequence[Sequence[float]], *, body: str = "") -> int:
        """Send waypoints (north, east, down in m, W; speed in m/s) to the pilot of a body that accepts missions (right `mission`).

        A long mission requires several requests; the number of the last request is returned.
        """
        self._missions += 1
        try:
            parts = commands.split_mission(waypoints, self._missions, body)
        except (ValueError, TypeError) as error:
            raise BrokerError(str(error)) from None
        return [self.request(part) for part in parts][-1]


class BrokerBase(PrivilegedRequests):
    """Common part of both brokers: the session and the calls that do not wait."""

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
            raise BrokerError(missing_name_text("unknown role", role, ROLES))
        self.name, self.server, self.lockstep = name, address_of(server), lockstep
        self.join = Join(
            name=name,
            role=ROLES[role],
            model=model,
            position=_floats(position),
            attitude=_floats(attitude),
            lockstep_ns=round(lockstep * 1e9),
            state_period_ns=round(state_period * 1e9),
            previous=previous,
            sensors=None if sensors is None else tuple(sensors),
            acoustics=int(acoustics),
            effort=int(effort),
            others=int(others),
        )
        self.session = self._create_session(key)
        self._steps = StepCollector()
        self._step: State | None = None
        self._frames: dict[int, deque[ImagingFrame]] = {}
        self._frames_late = 0

    def _create_session(self, key: bytes | None) -> ClientSession:
        return make_session(self.join, key)

    @property
    def welcome(self) -> Welcome:
        """The server's WELCOME."""
        if self.session.welcome is None:
            raise BrokerError("the broker has not joined")
        return self.session.welcome

    @property
    def token(self) -> int:
        """Token of the session; pass it as ``previous`` to resume the session after a crash."""
        return self.session.token

    @property
    def ended(self) -> bool:
        """True if the run has ended, even if it ended before this program joined."""
        at = self.session.welcome
        late = at is not None and not at.resumed and at.run_state == RunState.ENDED
        return late or self._steps.ended

    @property
    def actuators(self) -> tuple[ActuatorDescription, ...]:
        """The actuators of the body in the model's order, with name, unit and limits."""
        return self.session.body.ordered_actuators

    @property
    def sensors(self) -> tuple[SensorDescription, ...]:
        """The sensors of the body, with their fields and units."""
        return tuple(self.session.body.layouts[k].description for k in sorted(self.session.body.layouts))

    @property
    def frames_lost(self) -> int:
        """Number of sonar frames that the network lost, or that were dropped because :meth:`take_frames` was called too late."""
        return self.session.frames.lost_frames + self._frames_late

    @property
    def since(self) -> Step:
        """The events since the last returned step, in a :class:`Step` with the state of that step."""
        return self._steps.pending

    # -- requests --------------------------------------------------------------------------

    def ping(
        self, frequency: float, level: float | None = None, *, at: int | None = None, code: int | None = None
    ) -> int:
        """Request a pulse of the transducer (Hz, dB re 1 uPa at 1 m) and return the number of the request.

        In lockstep, the transducer emits the pulse at the time of the current step; otherwise, at the next tick. ``at``
        requests another time, on the node's clock (ns). ``Step.refused`` reports a refusal, for example because the
        transducer is still recharging.
        """
        return self.request(items.Ping(float(frequency), level, at, code))

    def send(self, payload: bytes, to: int = 0, level: float | None = None, *, at: int | None = None) -> int:
        """Send a packet with the modem to one address, or to all (0); otherwise like :meth:`ping`."""
        return self.request(items.Send(to, payload, level, at))

    def range_to(self, address: int, level: float | None = None, *, at: int | None = None) -> int:
        """Request a reply from the modem with an address. A reception of kind 3 contains the ``range`` (m)."""
        return self.request(items.Range(address, level, at))

    def subscribe(
        self,
        sensors: Sequence[str] | None = None,
        *,
        acoustics: bool = True,
        effort: bool = False,
        others: bool = False,
        state_period: float = 0.0,
    ) -> int:
        """Change what this session receives: sensors by name (None = all), receptions, forces, bodies that enter or leave."""
        names = None if sensors is None else tuple(sensors)
        period = round(state_period * 1e9)
        return self.request(items.Subscribe(names, int(acoustics), int(effort), int(others), period))

    def subscribe_frames(self, *sonars: str, period: float = 0.0) -> int:
        """Request frames of imaging sonars by name (no name = all), at least ``period`` s of wall time apart.

        Frames arrive independently of steps, each once or not at all; see :meth:`take_frames`. On the machine of the
        server, its rings in shared memory have every frame.
        """
        return self.request(items.Frames(sonars or None, round(period * 1e9)))

    def take_missions(self, text: str = "", *, take: bool = True) -> int:
        """Announce that this pilot accepts missions; they arrive in ``Step.missions``. ``take=False`` withdraws the
        announcement.

        ``text`` is published as a notice; it states what the pilot does with missions. A later call may publish
        another text. Call this method again after the session is resumed.
        """
        return self.request(items.Missions(int(take), text))

    def stop_frames(self) -> int:
        """Stop receiving frames of imaging sonars."""
        return self.request(items.Frames((), 0))

    def take_frames(self) -> list[ImagingFrame]:
        """Return the frames received since the last call, at most four of each sonar."""
        found = [frame for frames in self._frames.values() for frame in frames]
        self._frames.clear()
        return found

    def _frame(self, whole: WholeFrame) -> None:
        from wavesim_sdk.imaging_frames import ImagingFrame  # imports NumPy, so only when needed

        try:
            frame = ImagingFrame.from_bytes(whole.data)
        except ValueError:
            self.session.drops["frame"] += 1
            return
        kept = self._frames.setdefault(whole.sensor, deque(maxlen=KEPT_FRAMES))
        self._frames_late += len(kept) == KEPT_FRAMES
        kept.append(frame)

    def _feed(self, event: SessionEvent) -> Step | None:
        """Process an event and return the step that it completes, or None."""
        if isinstance(event, WholeFrame):
            self._frame(event)
            return None
        return self._steps.feed(event)

    def on_reception(self, call: Callable[[Reception], None]) -> None:
        """Register a function that is called with every reception, before the step of the reception is returned."""
        self._steps.listeners.append(call)

    # -- commands --------------------------------------------------------------------------

    def command(self, wanted: Command) -> list[float | None]:
        """Return actuator commands by position, from commands by name or by position. Raises BrokerError if one is invalid."""
        actuators = self.actuators
        if isinstance(wanted, Mapping):
            positions = self.session.body.positions
            values: list[Any] = [None] * len(actuators)
            for name, value in wanted.items():
                if name not in positions:
                    raise BrokerError(missing_name_text(f"'{self.name}' has no actuator", name, positions))
                values[positions[name]] = value
        else:
            values = list(wanted)
            if len(values) > len(actuators):
                raise BrokerError(
                    f"too many commands for '{self.name}': it has {len(actuators)} actuators, got {len(values)} commands"
                )
        for k, value in enumerate(values):
            if not _is_sendable(value):
                values[k] = _number(value, f"the command of '{actuators[k].name}'")
        return values

    def answer(self, command: Command | None = None, estimate: Sequence[float | None] | None = None) -> None:
        """Send actuator commands and the navigator's estimate; in lockstep, this answers the step.

        Commands are given by name, or in the order of ``actuators``; None = unchanged. ``estimate`` contains ten
        numbers in m: position (3), its standard deviation (3), dead-reckoned position (3), and last range innovation.
        Raises BrokerError if a value is not a finite number. In that case nothing is sent, and the step still needs an
        answer.
        """
        values = None if command is None else self.command(command)
        estimated = None
        if estimate is not None:
            estimated = [v if _is_sendable(v) else _number(v, f"estimate[{k}]") for k, v in enumerate(estimate)]
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
            raise BrokerError(f"invalid answer: {malformed}") from None


def _is_sendable(value: Any) -> bool:
    """Return whether a value is a finite float or None, and can be sent as it is."""
    return value is None or (type(value) is float and isfinite(value))


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise BrokerError(f"{what} is not a number: {value!r}") from None
    if number - number != 0.0:
        raise BrokerError(f"{what} must be a finite number, got {number}")
    return number


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(v) for v in values)
