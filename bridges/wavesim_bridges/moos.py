"""MOOS-IvP: our physics in place of its simulator, by the variables of a MOOSDB. See docs/bridges/moos.md."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import click

from wavesim_bridges import moos_sound
from wavesim_bridges.core import AGAIN_S, SILENT_S, Seat, Vehicle, bridge
from wavesim_bridges.geography import Origin, origin_of, with_origin
from wavesim_bridges.moos_wire import NOTIFY, REGISTER, TIMING, WELCOME, Message, Reader, Unusable, Writer
from wavesim_bridges.motion import Motion, motion_of
from wavesim_bridges.outputs import Output, assigned, moved_by
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.frames import euler, wrap
from wavesim_sdk.wire.items import ActuatorDescription, SensorDescription
from wavesim_sdk.wire.state import Sensors

PORT = 9000
BEAT_S = 0.5  #: between two heartbeats; a MOOSDB gives up a client that says nothing for five seconds
DEAD_S = 5.0  #: of silence, after which a MOOSDB is given up
BACKLOG_BYTES = 1 << 20  #: that a MOOSDB may leave unread
THRUST, RUDDER, ELEVATOR = "DESIRED_THRUST", "DESIRED_RUDDER", "DESIRED_ELEVATOR"
LEFT, RIGHT = "DESIRED_THRUST_L", "DESIRED_THRUST_R"
DESIRED = (THRUST, RUDDER, ELEVATOR, LEFT, RIGHT)
FULL = 100.0
#: which actuators a variable moves; the first of these of which the vehicle has all. A fin's positive angle turns to port or
#: raises the nose, unless its model has coefficients of its own.
FRAMES: tuple[dict[str, tuple[Output, ...]], ...] = (
    {
        THRUST: (Output("propeller"),),
        RUDDER: (Output("rudder-top", -1.0), Output("rudder-bottom", -1.0)),
        ELEVATOR: (Output("plane-port", -1.0), Output("plane-starboard", -1.0)),
    },
    {THRUST: (Output("propeller"),), RUDDER: (Output("rudder"),), ELEVATOR: (Output("stern-plane"),)},
    {THRUST: (Output("propeller"),), RUDDER: (Output("rudder", -1.0),)},
    {LEFT: (Output("port"),), RIGHT: (Output("starboard"),)},
)


def navigation(motion: Motion, through: Sequence[float], origin: Origin, altitude: float | None) -> dict[str, float]:
    """What a MOOS community knows of its vehicle. ``through``: velocity through the water in the body; ``altitude`` above the bed,
    if an instrument knows it."""
    north, east, down = map(float, motion.position)
    _, pitch, heading = euler(motion.attitude)
    latitude, longitude = origin.degrees(north, east)
    over = math.hypot(*motion.velocity[:2])
    course = math.atan2(motion.velocity[1], motion.velocity[0]) if over > 1e-3 else heading
    found = {
        "NAV_X": east, "NAV_Y": north, "NAV_Z": -down, "NAV_DEPTH": down, "NAV_LAT": latitude, "NAV_LONG": longitude,
        "NAV_HEADING": math.degrees(heading) % 360.0, "NAV_YAW": -wrap(heading), "NAV_PITCH": pitch, "NAV_SPEED": float(through[0]),
        "NAV_SPEED_OVER_GROUND": over, "NAV_HEADING_OVER_GROUND": math.degrees(course) % 360.0,
    }  # fmt: skip
    if altitude is not None:
        found["NAV_ALTITUDE"] = altitude
    return found


class Moves:
    """Desired values by variable, and the actuators that they move.

    Thrust in percent is revolutions: a force goes with its square. Rudder in percent of its limit, elevator in degrees. A vehicle
    with two thrusters and no rudder takes DESIRED_THRUST and DESIRED_RUDDER too: their sum to port, their difference to starboard.
    """

    def __init__(self, given: Mapping[str, Sequence[Output]], actuators: Sequence[ActuatorDescription]) -> None:
        names = [a.name for a in actuators]
        fitting = (f for f in FRAMES if all(o.actuator in names for outputs in f.values() for o in outputs))
        frame = given or next(fitting, {})
        if not frame:
            raise BrokerError(
                "no preset fits this vehicle: say with --output what moves it, such as "
                f"{THRUST}={next(iter(names), 'ACTUATOR')}"
            )
        self._moves = {v: [(moved_by(o, actuators), o.sign) for o in outputs] for v, outputs in frame.items()}
        self._twin = {LEFT, RIGHT} <= frame.keys() and not {THRUST, RUDDER} & frame.keys()
        self._count = len(actuators)

    def commands(self, desired: Mapping[str, float]) -> list[float | None]:
        """By position, for the values that there are; nothing asked is neutral."""
        wanted = {v: desired.get(v, 0.0) for v in self._moves}
        if self._twin and not {LEFT, RIGHT} & desired.keys():
            ahead, turn = desired.get(THRUST, 0.0), desired.get(RUDDER, 0.0)
            wanted = {LEFT: ahead + turn, RIGHT: ahead - turn}
        found: list[float | None] = [None] * self._count
        for variable, value in wanted.items():
            for a, sign in self._moves[variable]:
                found[a.number] = _command(variable, sign * value, a)
        return found


def _command(variable: str, value: float, a: ActuatorDescription) -> float:
    if variable == ELEVATOR:
        value = math.radians(value)
    else:
        u = min(max(value / FULL, -1.0), 1.0)
        value = (u * abs(u) if a.unit == "N" else u) * (a.maximum if u > 0.0 else -a.minimum)
    return min(max(value, a.minimum), a.maximum)


class Readings:
    """What instruments measure, as variables: each value once; several numbers are a text."""

    def __init__(self, sensors: Iterable[SensorDescription]) -> None:
        self._sensors = [(s.name, [(f.name, _variable(s.name, f.name)) for f in s.fields]) for s in sensors]
        self._seen: dict[str, int] = {}

    def new(self, sensors: Sensors) -> dict[str, float | str]:
        """Those that have come since the last call."""
        found: dict[str, float | str] = {}
        for name, fields in self._sensors:
            value = sensors.get(name)
            if value is None or value.time_ns == self._seen.get(name):
                continue
            self._seen[name] = value.time_ns
            for field, variable in fields:
                number = value[field]
                if isinstance(number, tuple):
                    found[variable] = ",".join(f"{n:.9g}" for n in number)
                elif math.isfinite(number):
                    found[variable] = number
        return found


def _variable(*names: str) -> str:
    return "_".join(names).upper().replace("-", "_")


class Community:
    """The MOOSDB: sought until it is there, and again when it is gone. ``take`` gets the mail."""

    def __init__(
        self, address: tuple[str, int], vehicle: Vehicle, hears: Iterable[str], take: Callable[[Message], None]
    ) -> None:
        self.address, self.vehicle = address, vehicle
        self.warp = 0.0  #: of MOOS time; 0 while nobody is there
        self.name = ""
        self._hears, self._take, self._ahead = tuple(hears), take, 0.0
        self._writer = Writer(f"wavesim_{vehicle.seat.vehicle}")
        self._stream: asyncio.StreamWriter | None = None

    def now(self) -> float:
        """MOOS time in s, by the MOOSDB's clock."""
        return time.time() * self.warp + self._ahead

    def post(self, values: Mapping[str, float | str]) -> None:
        """Tell the community; nobody hears it while it is not there."""
        if self.warp:
            now = self.now()
            self._send(*(Message(NOTIFY, key, value, now) for key, value in values.items()))

    def _send(self, *messages: Message) -> None:
        if self._stream is None or not messages:
            return
        if self._stream.transport.get_write_buffer_size() > BACKLOG_BYTES:
            self.vehicle.drop("the MOOSDB does not read")
        else:
            self._stream.write(self._writer.packet(*messages))

    async def run(self) -> None:
        """For ever."""
        told = False
        while True:
            try:
                await self._meet()
            except Unusable as unusable:
                self.vehicle.drop(str(unusable))
            except (OSError, EOFError):
                pass
            if self.warp:
                self.vehicle.seat.say("the MOOSDB is gone")
            if self.warp or not told:
                self.vehicle.seat.say("waiting for a MOOSDB at {}:{}".format(*self.address))
            told, self.warp = True, 0.0
            await asyncio.sleep(AGAIN_S)

    async def _meet(self) -> None:
        """One connection, to its end: OSError, EOFError, Unusable."""
        async with asyncio.timeout(DEAD_S):
            reader, self._stream = await asyncio.open_connection(*self.address)
        beat: asyncio.Task[None] | None = None
        try:
            self._stream.write(self._writer.greeting(time.time()))
            received = Reader()
            while True:
                async with asyncio.timeout(DEAD_S):
                    data = await reader.read(65536)
                if not data:
                    raise EOFError
                for message in received.feed(data):
                    self._hear(message)
                    if message.kind == WELCOME and beat is None:
                        self.name, beat = message.community, asyncio.create_task(self._beat())
        finally:
            if beat is not None:
                beat.cancel()
            stream, self._stream = self._stream, None
            stream.close()

    async def _beat(self) -> None:
        """Say hello, and what is of interest; then that we live, which is answered by the time."""
        now = time.time()
        self._send(Message(TIMING, time=now), *(Message(REGISTER, key, 0.0, now) for key in self._hears))
        while True:
            await asyncio.sleep(BEAT_S)
            self._send(Message(TIMING, time=time.time()))

    def _hear(self, message: Message) -> None:
        match message.kind:
            case "K":
                raise Unusable(f"the MOOSDB refuses us: {message.value!r}")
            case "T" if not self.warp:
                if not isinstance(message.value, float) or not 0.0 < message.value < math.inf:
                    raise Unusable("no time")
                ours = time.time()
                self.warp = round(message.value / ours, 2) or 1.0
                self._ahead = message.value - self.warp * ours
                self.vehicle.seat.say(f"in the community '{self.name}', time warp {self.warp:g}")
            case "N" if self.warp:
                self._take(message)


class Bridge:
    """A vehicle flown by a MOOS community. MOOS lives by the wall clock: nobody waits for it, the server has to keep its pace."""

    def __init__(
        self, seat: Seat, address: tuple[str, int], origin: Origin, outputs: Mapping[str, Sequence[Output]], sensors: bool,
        silence: float,
    ) -> None:  # fmt: skip
        self.vehicle, self.origin, self.sensors, self.silence = Vehicle(seat), origin, sensors, silence
        self.community = Community(address, self.vehicle, (*DESIRED, *moos_sound.ASKED), self._take)
        self._outputs = outputs
        self._desired: dict[str, float] = {}
        self._asked = -math.inf  # when something was desired last, by the monotonic clock
        self._flown = False
        self._moves: Moves | None = None
        self._readings: Readings | None = None

    async def run(self) -> None:
        """Until the run has ended."""
        community = asyncio.create_task(self.community.run())
        try:
            async for broker, step in self.vehicle.steps():
                self._step(broker, step)
        finally:
            community.cancel()

    def _step(self, broker: AsyncBroker, step: Step) -> None:
        moves = self._moves = self._moves or Moves(self._outputs, broker.actuators)
        motion = motion_of(step.state)
        if motion is None or step.state.motion is None:
            raise BrokerError("the server hides the truth from this vehicle, and NAV_X and the others are the truth")
        told: dict[str, float | str] = {}
        if self.sensors:
            self._readings = self._readings or Readings(broker.sensors)
            told |= self._readings.new(step.sensors)
        altitude = altitude_of(broker.sensors, step.sensors)
        told |= navigation(motion, step.state.motion[13:16], self.origin, altitude)
        self.community.post(told)
        for reception in step.receptions:
            self.community.post(moos_sound.heard(reception, self.vehicle.seat.vehicle, self.community.now()))
        for refused in step.refused:
            self.community.post({"ACOUSTIC_REFUSED": refused.text})
        broker.answer(moves.commands(self._wanted()))

    def _wanted(self) -> dict[str, float]:
        """What the community desires; nothing when it has been silent."""
        flown = time.monotonic() - self._asked <= self.silence
        if self._flown and not flown:
            self.vehicle.seat.say("nothing is desired any more; the vehicle goes on at neutral outputs")
        self._flown = flown
        if not flown:
            self._desired.clear()
        return self._desired

    def _take(self, message: Message) -> None:
        """Mail."""
        if self.community.now() - message.time > self.silence * self.community.warp:
            return  # what a MOOSDB remembers of long ago
        try:
            if message.key in DESIRED:
                if not isinstance(message.value, float) or not math.isfinite(message.value):
                    raise Unusable(f"{message.key} is no number")
                self._desired[message.key], self._asked = message.value, time.monotonic()
            elif message.key in moos_sound.ASKED and self.vehicle.broker is not None:
                if not isinstance(message.value, str):
                    raise Unusable(f"{message.key} is no text")
                moos_sound.request(message.key, message.value)(self.vehicle.broker)
        except (Unusable, BrokerError) as unusable:
            self.vehicle.drop(str(unusable))


def altitude_of(sensors: Iterable[SensorDescription], values: Sensors) -> float | None:
    """Above the bed in m, by the first Doppler log or echosounder that sees it."""
    for s in sensors:
        field = {"dvl": "altitude", "echosounder": "range"}.get(s.type)
        value = values.get(s.name)
        if field is not None and value is not None and math.isfinite(value[field]):
            return float(value[field])
    return None


@bridge("moos", period=0.05)
@click.option("--db", default=f"127.0.0.1:{PORT}", show_default=True, metavar="HOST:PORT", help="Where the MOOSDB is.")
@click.option("--output", multiple=True, metavar="VARIABLE=ACTUATOR", help="All that moves a vehicle of another kind.")
@click.option("--sensors", is_flag=True, help="Post what the vehicle's instruments measure, besides.")
@click.option(
    "--silence", default=SILENT_S, show_default=True, help="Seconds without a DESIRED_ until the outputs are neutral."
)
@with_origin
def command(
    seat: Seat, db: str, output: tuple[str, ...], sensors: bool, silence: float, latitude: float | None,
    longitude: float | None, config: str | None,
) -> None:  # fmt: skip
    """MOOS-IvP (pHelmIvP, pMarinePIDV22): this is its physics."""
    host, _, port = db.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise WaveSimError(f"'{db}' is no address; write HOST:PORT")
    outputs: dict[str, list[Output]] = {}
    for text in output:
        variable, moved = assigned(text, "VARIABLE", DESIRED.__contains__)
        outputs.setdefault(variable, []).append(moved)
    origin = origin_of(latitude, longitude, config)
    asyncio.run(Bridge(seat, (host or "127.0.0.1", int(port)), origin, outputs, sensors, silence).run())
