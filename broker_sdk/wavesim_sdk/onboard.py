"""Steps for on-board programs and requests from them: the code shared by the blocking and the asyncio broker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any

from wavesim_sdk import arguments
from wavesim_sdk.device_faults import device_name
from wavesim_sdk.errors import BrokerError, InvalidArgument, Refused, UnknownName
from wavesim_sdk.estimate import Estimate, estimate_numbers
from wavesim_sdk.guidance.control import Waypoint
from wavesim_sdk.mission_status import MissionStatus
from wavesim_sdk.privileged_requests import PrivilegedRequests
from wavesim_sdk.server_address import ServerName, address_of
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import items
from wavesim_sdk.wire.client import ClientSession, SessionClosed, SessionEvent
from wavesim_sdk.wire.frame_pieces import WholeFrame
from wavesim_sdk.wire.items import (
    ActuatorDescription,
    Answer,
    BodyChanged,
    ChannelState,
    CommandReceived,
    CommandResult,
    DeviceFault,
    MissionPart,
    Notice,
    Reception,
    RequestRefused,
    RunStateChanged,
    SensorDescription,
    SignalSent,
    TimeChanged,
)
from wavesim_sdk.wire.link import make_session, raise_if_ended
from wavesim_sdk.wire.messages import SHUTDOWN, Join, Role, Welcome
from wavesim_sdk.wire.schema import Malformed
from wavesim_sdk.wire.state import Sensors, State, missing_name_text

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

__all__ = ["BrokerBase", "Command", "ReceivedMission", "RequestOutcomes", "Step"]

KEPT_ANSWERS = 256
KEPT_FRAMES = 4  #: number of frames kept for each sonar until the program retrieves them
KEPT_BLOCKS = 64  #: number of blocks of samples kept for each hydrophone until the program retrieves them
Command = Mapping[str, float] | Sequence[float | None]
ROLES = {"pilot": Role.PILOT, "instrument": Role.INSTRUMENT, "listener": Role.LISTENER}


@dataclass
class Step:
    """One state of the body, with all events since the previous state. Each list is in the order of arrival."""

    state: State  #: motion, actuation, sensors and forces of the body at one tick
    receptions: list[Reception] = field(default_factory=list)  #: signals that the body's transducer received
    #: signals that the body's own transducer has sent, with their times of emission
    sent: list[SignalSent] = field(default_factory=list)
    #: changes of the channel between busy and idle, if the body's transducer has carrier sense
    channel: list[ChannelState] = field(default_factory=list)
    #: requests that the server refused, with the reason for each
    refused: list[RequestRefused] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)  #: results of the requests that the server did not refuse
    #: starts and pauses of the simulation clock, and the end of the run
    run_states: list[RunStateChanged] = field(default_factory=list)
    #: human-readable texts, for example from the watchdog or about fences, faults and contacts
    notices: list[Notice] = field(default_factory=list)
    others: list[BodyChanged] = field(default_factory=list)  #: bodies that were added or removed (``others=True``)
    missions: list[ReceivedMission] = field(default_factory=list)  #: missions for a pilot that accepts them
    commands: list[CommandReceived] = field(default_factory=list)  #: vehicle commands for a pilot that accepts them
    #: faults of the device that this session serves; the last one applies
    device_faults: list[DeviceFault] = field(default_factory=list)
    #: one event for each time that the simulation was reset or returned to a snapshot; after such an event, the state
    #: may belong to an earlier time than the previous state
    time_changes: list[TimeChanged] = field(default_factory=list)

    @property
    def tick(self) -> int:
        """Tick of the state: the number of time steps since the start of the simulation."""
        return self.state.tick

    @property
    def time(self) -> float:
        """Simulation time in s."""
        return self.state.time_ns * 1e-9

    @property
    def sensors(self) -> Sensors:
        """The sensors that have a valid value, for example ``step.sensors.ctd.temperature``."""
        return self.state.sensors

    def merge_into(self, later: Step) -> None:
        """Move the events of this step into a later step, because the program was too slow to process this step."""
        later.receptions[:0], later.sent[:0], later.refused[:0] = self.receptions, self.sent, self.refused
        later.answers[:0], later.run_states[:0] = self.answers, self.run_states
        later.notices[:0], later.others[:0] = self.notices, self.others
        later.missions[:0], later.commands[:0] = self.missions, self.commands
        later.device_faults[:0], later.channel[:0] = self.device_faults, self.channel
        later.time_changes[:0] = self.time_changes


@dataclass(frozen=True)
class ReceivedMission:
    """Mission for a pilot that accepts missions. It replaces any earlier mission. The sender must have the ``mission``
    right.
    """

    number: int
    points: tuple[tuple[float, ...], ...]  #: for each waypoint: north, east and down (m, in W), and speed (m/s)

    @property
    def waypoints(self) -> list[Waypoint]:
        """The waypoints in the form that :mod:`wavesim_sdk.guidance.control` uses."""
        return [Waypoint(north=n, east=e, depth=d, speed=u) for n, e, d, u in self.points]


class MissionAssembler:
    """Assembler for missions whose parts arrive in order. It drops a part that does not continue the current mission,
    for example because another sender sent it.
    """

    def __init__(self) -> None:
        self._current = 0, 0  # number and size of the incomplete mission
        self._numbers: list[float] = []  # its numbers so far

    def add(self, part: MissionPart) -> ReceivedMission | None:
        """Add a part of a mission and return the mission that the part completes, or None."""
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
    """The newest answers to requests and refusals of requests. Each can be retrieved once."""

    def __init__(self) -> None:
        self._said: dict[int, Answer | RequestRefused] = {}

    def __len__(self) -> int:
        return len(self._said)

    def add(self, event: Answer | RequestRefused) -> None:
        """Add an answer to a request, or the refusal of a request."""
        self._said[event.request] = event
        while len(self._said) > KEPT_ANSWERS:
            del self._said[next(iter(self._said))]

    def take(self, request: int) -> str | None:
        """Return the text of the answer to a request, or None if the answer has not arrived yet. Raises Refused if the
        server refused it.
        """
        match self._said.pop(request, None):
            case Answer(ok=1, text=text):
                return text
            case Answer(text=text) | RequestRefused(text=text):
                raise Refused(f"the server refused request {request}: {text}")
        return None


class StepCollector:
    """Combines the events of a session into steps."""

    def __init__(self) -> None:
        self.ended = False
        self.listeners: list[Callable[[Reception], None]] = []
        self.outcomes = RequestOutcomes()
        self.missions = MissionAssembler()
        self.pending = Step(State())

    def feed(self, event: SessionEvent) -> Step | None:
        """Add an event to the current step and return the step that the event completes, or None."""
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
            case ChannelState():
                step.channel.append(event)
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
            case CommandReceived():
                step.commands.append(event)
            case DeviceFault():
                step.device_faults.append(event)
            case TimeChanged():
                step.time_changes.append(event)
                self.ended = False
        return None


class BrokerBase(PrivilegedRequests):
    """Base class of both brokers: the session, and all calls that do not wait."""

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
        device: str = "",
        key: bytes | None = None,
    ) -> None:
        """Prepare a session; :meth:`connect` or a ``with`` block starts it. Raises InvalidArgument if an argument is invalid.

        :param name: name of the body in the configuration
        :param server: name of a server on this machine, ``"HOST:PORT"`` or ``(host, port)``; None: the server that the
            environment variable WAVESIM_SERVER names, or port 9750 of this machine if the variable is not set
        :param role: ``"pilot"`` commands the actuators, and a body has only one pilot; ``"instrument"`` receives sound
            and selected sensors, and may send sound; ``"listener"`` only receives
        :param model: model of a new body, if the server accepts new names (``<network newcomers>``); otherwise empty
        :param position: initial position (north, east, down; in W, m) of a new body
        :param attitude: initial roll, pitch and heading (rad) of a new body
        :param lockstep: simulation time in s between two steps; the server waits for the answer to each step; 0: the
            server never waits
        :param state_period: wall time in s between two states without lockstep; 0: the server's default
        :param previous: :attr:`token` of an earlier session, which this session resumes after a crash
        :param sensors: names of the sensors to receive; None: all
        :param acoustics: whether to receive reports of acoustic receptions and of the channel
        :param effort: whether the states contain forces and accelerations
        :param others: whether to receive events about bodies that are added or removed
        :param device: name of the device that this session serves; its faults arrive in ``Step.device_faults``
        :param key: key of 32 or 64 bytes (`wavesim keys`); None: the key in the file that WAVESIM_KEYS names, if this
            environment variable is set
        """
        if role not in ROLES:
            raise UnknownName(missing_name_text("unknown role", str(role), ROLES))
        self.name, self.server = arguments.short_name("name", name), address_of(server)
        self.join = Join(
            name=name,
            role=ROLES[role],
            model=arguments.short_name("model", model),
            position=arguments.position("position", position),
            attitude=arguments.attitude("attitude", attitude),
            lockstep_ns=arguments.seconds("lockstep", lockstep, "no lockstep"),
            state_period_ns=arguments.seconds("state_period", state_period, "the server's default"),
            previous=arguments.whole("previous", previous),
            sensors=arguments.names("sensors", sensors),
            acoustics=int(bool(acoustics)),
            effort=int(bool(effort)),
            others=int(bool(others)),
            device=device_name(device),
        )
        self.lockstep = lockstep
        self.session = self._create_session(arguments.key_bytes(key))
        self._steps = StepCollector()
        self._step: State | None = None
        self._frames: dict[int, deque[ImagingFrame]] = {}
        self._frames_late = 0
        self._takes_missions = self._takes_commands = False
        self._sounds = 0

    def _create_session(self, key: bytes | None) -> ClientSession:
        return make_session(self.join, key)

    @property
    def welcome(self) -> Welcome:
        """The WELCOME message from the server."""
        if self.session.welcome is None:
            raise BrokerError("the broker has not joined")
        return self.session.welcome

    @property
    def token(self) -> int:
        """Number of the session; pass it as ``previous`` to resume the session after a crash. If keys are used, keep
        this number secret.
        """
        return self.session.ticket

    @property
    def ended(self) -> bool:
        """True if the run has ended, even if it ended before this program joined."""
        at = self.session.welcome
        late = at is not None and not at.resumed and at.run_state == RunState.ENDED
        return late or self._steps.ended

    @property
    def end_reason(self) -> str:
        """Reason why the server ended the session; empty while the session lasts, if the program left, or if it lost
        the connection.
        """
        return self.session.end_reason

    @property
    def is_shut_down(self) -> bool:
        """True if the server was shut down with `wavesim shutdown` or Ctrl-C, which ends the run."""
        return self.session.end_reason == SHUTDOWN

    def raise_if_shut_down(self) -> None:
        """Raise SessionEnded if the server was shut down, for programs that reconnect to a restarted server."""
        if self.is_shut_down:
            raise_if_ended(SessionClosed(self.end_reason))

    @property
    def actuators(self) -> tuple[ActuatorDescription, ...]:
        """The actuators of the body, in the order of the model, with names, units and limits."""
        return self.session.body.ordered_actuators

    @property
    def sensors(self) -> tuple[SensorDescription, ...]:
        """The sensors of the body, with their fields and units."""
        return tuple(self.session.body.layouts[k].description for k in sorted(self.session.body.layouts))

    @property
    def frames_lost(self) -> int:
        """Number of sonar frames that were lost in the network, or dropped because :meth:`take_frames` was called too
        late.
        """
        return self.session.frames.lost_frames + self._frames_late

    @property
    def since(self) -> Step:
        """The events since the last returned step, in a :class:`Step` with the same state as that step."""
        return self._steps.pending

    # -- requests --------------------------------------------------------------------------

    def ping(
        self,
        frequency: float,
        level: float | None = None,
        *,
        at: int | None = None,
        code: int | None = None,
        duration: float | None = None,
    ) -> int:
        """Request a pulse from the transducer and return the number of the request. ``frequency`` is in Hz, and
        ``level`` is in dB re 1 uPa at 1 m.

        In lockstep, the transducer emits the pulse at the time of the current step; otherwise, it does so at the next
        tick. ``at`` requests another time, on the node's clock (ns). ``duration`` is the length of the pulse in s; by
        default, the transducer's pulse length applies. ``Step.refused`` reports a refusal, for example because the
        transducer is still recharging.
        """
        hertz = arguments.number("frequency", frequency, "Hz")
        return self.request(
            items.Ping(hertz, _level(level), _whole("at", at), _whole("code", code), _seconds(duration))
        )

    def send(
        self,
        payload: bytes,
        to: int = 0,
        level: float | None = None,
        *,
        at: int | None = None,
        duration: float | None = None,
    ) -> int:
        """Send a packet with the modem to one address, or to all modems (0). Timing is as in :meth:`ping`.

        ``duration`` is the length of the packet in s; by default, it follows from the modem's preamble and bit rate.
        Set it for modems with several data rates.
        """
        data, address = arguments.payload_bytes(payload), arguments.whole("to", to)
        return self.request(items.Send(address, data, _level(level), _whole("at", at), _seconds(duration)))

    def range_to(
        self,
        address: int,
        level: float | None = None,
        *,
        at: int | None = None,
        payload: bytes = b"",
        duration: float | None = None,
    ) -> int:
        """Request a reply from the modem with this address. The reply arrives as a reception of kind 3, which contains
        the ``range`` (m).

        The modem replies to a request with a ``payload`` only if it has received the payload. ``duration`` is the length
        of the request, as in :meth:`send`.
        """
        data, to = arguments.payload_bytes(payload), arguments.whole("address", address)
        return self.request(items.Range(to, _level(level), _whole("at", at), data, _seconds(duration)))

    def transmit(
        self,
        samples: Any,
        sampling_rate: float,
        level: float | None = None,
        at: int | None = None,
        *,
        scale: str = "rms",
    ) -> int:
        """Request that the transducer play a sound, and return the number of the request. Timing is as in :meth:`ping`;
        without lockstep, the samples first travel to the server.

        ``samples`` are real numbers of one channel, for example a NumPy array of float32, of at most 60 s.
        ``sampling_rate`` is in Hz. ``level`` is the rms source level in dB re 1 uPa at 1 m, whatever the scale of the
        samples; by default, it is that of the transducer. With ``scale="peak"``, it is the level of a sine between -1
        and 1, and the samples are between -1 and 1.

        Hydrophones hear the samples. Transducers lose the signal, but it interferes with others. ``Step.refused``
        reports a refusal, for example because the band of the sound is not within that of the transducer.

        Raises InvalidArgument if the samples or the other arguments are invalid. In that case, nothing is sent.
        """
        from wavesim_sdk import sounds  # imports NumPy, so only when needed

        x, sampling = sounds.checked_sound(samples, sampling_rate, scale)
        wanted = items.Transmit(self._sounds + 1, sampling, _level(level), _whole("at", at), int(scale == "peak"))
        self._sounds += 1
        for part in sounds.sound_parts(self._sounds, x):
            self.request(part, sounds.MAX_PARTS)
        return self.request(wanted, sounds.MAX_PARTS)

    def subscribe(
        self,
        sensors: Sequence[str] | None = None,
        *,
        acoustics: bool = True,
        effort: bool = False,
        others: bool = False,
        state_period: float = 0.0,
    ) -> int:
        """Change what this session receives: sensors by name (None = all), receptions, forces, and the addition and
        removal of bodies.
        """
        names = arguments.names("sensors", sensors)
        period = arguments.seconds("state_period", state_period, "unchanged")
        return self.request(items.Subscribe(names, int(bool(acoustics)), int(bool(effort)), int(bool(others)), period))

    def subscribe_frames(self, *sonars: str, period: float = 0.0) -> int:
        """Request frames from imaging sonars by name (no name = all sonars), at least ``period`` s of wall time apart.

        Frames arrive independently of steps, and each frame arrives once or not at all; see :meth:`take_frames`. On the
        server's machine, every frame is available in the rings in shared memory.
        """
        names = arguments.names("sonars", sonars) or None
        return self.request(items.Frames(names, arguments.seconds("period", period, "every frame")))

    def take_missions(self, text: str = "", *, take: bool = True) -> int:
        """Announce that this pilot accepts missions; they arrive in ``Step.missions``. ``take=False`` withdraws the
        announcement.

        ``text`` is published as a notice that states what the pilot does with missions. A later call may publish
        another text. Call this method again after the session has been resumed.
        """
        self._takes_missions = take
        return self.request(items.Missions(int(take), text))

    def report_mission(self, status: MissionStatus) -> int:
        """Publish what the vehicle is doing: mode, waypoint and target. Viewers show this status, and the log keeps it
        as a notice.
        """
        return self.request(items.Missions(int(self._takes_missions), str(status)))

    def take_commands(self, *, take: bool = True) -> None:
        """Accept vehicle commands, which arrive in ``Step.commands``: go to, loiter, return, pause, resume, abort.

        Answer each command with :meth:`accept_command` or :meth:`refuse_command`. If a program does not call this
        method, each command is answered automatically with *not supported*.
        """
        self._takes_commands = take

    def accept_command(self, command: CommandReceived, text: str = "") -> int:
        """Accept a vehicle command, which the vehicle then carries out. ``text`` states how it does so."""
        return self.request(items.CommandAnswer(command.number, CommandResult.ACCEPTED, text))

    def refuse_command(self, command: CommandReceived, reason: str, *, supported: bool = True) -> int:
        """Refuse a vehicle command because the vehicle cannot carry it out now, or never can (``supported=False``)."""
        result = CommandResult.REFUSED if supported else CommandResult.NOT_SUPPORTED
        return self.request(items.CommandAnswer(command.number, result, reason))

    def stop_frames(self) -> int:
        """Stop receiving frames from imaging sonars."""
        return self.request(items.Frames((), 0))

    def take_frames(self) -> list[ImagingFrame]:
        """Return the frames received since the last call, at most four from each sonar and 64 from each hydrophone."""
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
        most = KEPT_BLOCKS if frame.kind == "hydrophone" else KEPT_FRAMES
        kept = self._frames.setdefault(whole.sensor, deque(maxlen=most))
        self._frames_late += len(kept) == most
        kept.append(frame)

    def _feed(self, event: SessionEvent) -> Step | None:
        """Process an event and return the step that the event completes, or None."""
        if isinstance(event, WholeFrame):
            self._frame(event)
            return None
        if isinstance(event, CommandReceived) and not self._takes_commands:
            text = "the program that drives this vehicle does not accept commands, or does not accept them yet"
            self.refuse_command(event, text, supported=False)
            return None
        return self._steps.feed(event)

    def on_reception(self, call: Callable[[Reception], None]) -> None:
        """Register a function that is called with every reception, before the step that contains the reception is
        returned.
        """
        if not callable(call):
            raise InvalidArgument(f"call must be a function that takes one reception, got {arguments.shown(call)}")
        self._steps.listeners.append(call)

    # -- commands --------------------------------------------------------------------------

    def command(self, wanted: Command) -> list[float | None]:
        """Return the given actuator commands in the order of the actuators. ``wanted`` contains the commands by name,
        or already in this order. Raises InvalidArgument if a command is invalid.
        """
        actuators = self.actuators
        if isinstance(wanted, Mapping):
            positions = self.session.body.positions
            values: list[Any] = [None] * len(actuators)
            for name, value in wanted.items():
                if name not in positions:
                    raise UnknownName(missing_name_text(f"'{self.name}' has no actuator", name, positions))
                values[positions[name]] = value
        else:
            if isinstance(wanted, str | bytes) or not hasattr(wanted, "__iter__"):
                raise InvalidArgument(
                    f"command must give values by name or in the order of `actuators`, got {arguments.shown(wanted)}"
                )
            values = list(wanted)
            if len(values) > len(actuators):
                raise InvalidArgument(
                    f"too many commands for '{self.name}': it has {len(actuators)} actuators, got {len(values)} commands"
                )
        for k, value in enumerate(values):
            if not _is_sendable(value):
                values[k] = arguments.number(f"the command of '{actuators[k].name}'", value, actuators[k].unit)
        return values

    def answer(self, command: Command | None = None, estimate: Estimate | Sequence[float | None] | None = None) -> None:
        """Send actuator commands and the navigator's estimate; in lockstep, this answers the current step.

        Commands are given by name, or in the order of ``actuators``; None = unchanged. ``estimate`` is an
        :class:`Estimate`, or its ten numbers in the same order. Raises InvalidArgument if a value is invalid. In that
        case, nothing is sent, and the step still needs an answer.
        """
        values = None if command is None else self.command(command)
        estimated = None if estimate is None else estimate_numbers(estimate)
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
            raise InvalidArgument(f"invalid answer: {malformed}") from None


def _is_sendable(value: Any) -> bool:
    """Return whether a value is a finite float or None, so that it can be sent without conversion."""
    return value is None or (type(value) is float and isfinite(value))


def _level(value: float | None) -> float | None:
    return None if value is None else arguments.number("level", value, "dB")


def _seconds(value: float | None) -> float | None:
    return None if value is None else arguments.number("duration", value, "s")


def _whole(name: str, value: int | None) -> int | None:
    return None if value is None else arguments.whole(name, value, "ns" if name == "at" else "")
