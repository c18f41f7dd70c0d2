"""Bridge to MOOS-IvP: WaVeSim's physics replaces the MOOS-IvP simulator. Data are exchanged through MOOSDB variables.
See docs/bridges/moos.md.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import click

from wavesim_bridges import moos_acoustics
from wavesim_bridges.core import RECONNECT_S, STACK_TIMEOUT_S, BridgedVehicle, BridgeOptions, MalformedMessage, bridge
from wavesim_bridges.geo_reference import WorldOrigin, origin_of, origin_options
from wavesim_bridges.moos_codec import NOTIFY, REGISTER, TIMING, WELCOME, MoosMessage, MoosReader, MoosWriter
from wavesim_bridges.servo_outputs import ServoOutput, assigned, moved_by
from wavesim_bridges.vehicle_motion import VehicleMotion, motion_of
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import BrokerError, InvalidArgument, WaveSimError
from wavesim_sdk.frames import euler, wrap
from wavesim_sdk.wire.items import ActuatorDescription, SensorDescription
from wavesim_sdk.wire.state import Sensors

PORT = 9000
BEAT_S = 0.5  #: interval in s between two heartbeats; a MOOSDB drops a client that sends nothing for five seconds
CONNECTION_TIMEOUT_S = 5.0  #: time in s without data after which a MOOSDB counts as disconnected
BACKLOG_BYTES = 1 << 20  #: maximum number of sent bytes that the MOOSDB has not read yet
THRUST, RUDDER, ELEVATOR = "DESIRED_THRUST", "DESIRED_RUDDER", "DESIRED_ELEVATOR"
LEFT, RIGHT = "DESIRED_THRUST_L", "DESIRED_THRUST_R"
DESIRED = (THRUST, RUDDER, ELEVATOR, LEFT, RIGHT)
FULL_SCALE = 100.0
# A fin's positive angle turns to port or raises the nose, unless the model has its own coefficients.
#: maps from MOOS variables to the actuators that they move; the bridge uses the first map whose actuators the vehicle
#: has
FRAMES: tuple[dict[str, tuple[ServoOutput, ...]], ...] = (
    {
        THRUST: (ServoOutput("propeller"),),
        RUDDER: (ServoOutput("rudder-top", -1.0), ServoOutput("rudder-bottom", -1.0)),
        ELEVATOR: (ServoOutput("plane-port", -1.0), ServoOutput("plane-starboard", -1.0)),
    },
    {THRUST: (ServoOutput("propeller"),), RUDDER: (ServoOutput("rudder"),), ELEVATOR: (ServoOutput("stern-plane"),)},
    {THRUST: (ServoOutput("propeller"),), RUDDER: (ServoOutput("rudder", -1.0),)},
    {LEFT: (ServoOutput("port"),), RIGHT: (ServoOutput("starboard"),)},
)


def navigation(
    motion: VehicleMotion, through: Sequence[float], origin: WorldOrigin, altitude: float | None
) -> dict[str, float]:
    """Return the motion of a vehicle as MOOS variables. ``through`` is the velocity through the water in the body
    frame. ``altitude`` is the height above the bed, if an instrument measures it.
    """
    north, east, down = map(float, motion.position)
    _, pitch, heading = euler(motion.attitude)
    latitude, longitude = origin.degrees(north, east)
    over = math.hypot(*motion.velocity[:2])
    course = math.atan2(motion.velocity[1], motion.velocity[0]) if over > 1e-3 else heading
    found = {
        "NAV_X": east,
        "NAV_Y": north,
        "NAV_Z": -down,
        "NAV_DEPTH": down,
        "NAV_LAT": latitude,
        "NAV_LONG": longitude,
        "NAV_HEADING": math.degrees(heading) % 360.0,
        "NAV_YAW": -wrap(heading),
        "NAV_PITCH": pitch,
        "NAV_SPEED": float(through[0]),
        "NAV_SPEED_OVER_GROUND": over,
        "NAV_HEADING_OVER_GROUND": math.degrees(course) % 360.0,
    }
    if altitude is not None:
        found["NAV_ALTITUDE"] = altitude
    return found


class MoosActuators:
    """Mapping from the MOOS variables that contain desired values to the actuators that these values move.

    DESIRED_THRUST is a shaft speed in percent; the force of a thruster is proportional to the square of this value.
    DESIRED_RUDDER is in percent of the maximum rudder angle, and DESIRED_ELEVATOR is in degrees. A vehicle with two
    thrusters and no rudder accepts DESIRED_THRUST and DESIRED_RUDDER too, and mixes them: their sum drives the port
    thruster, and their difference drives the starboard one.
    """

    def __init__(self, outputs: Mapping[str, Sequence[ServoOutput]], actuators: Sequence[ActuatorDescription]) -> None:
        names = [a.name for a in actuators]
        fitting = (f for f in FRAMES if all(o.actuator in names for channel in f.values() for o in channel))
        frame = outputs or next(fitting, {})
        if not frame:
            raise BrokerError(
                "no preset fits this vehicle: use --output to map its actuators, such as "
                f"{THRUST}={next(iter(names), 'ACTUATOR')}"
            )
        self._outputs_of_variable = {
            v: [(moved_by(o, actuators), o.sign) for o in outputs] for v, outputs in frame.items()
        }
        self._twin = {LEFT, RIGHT} <= frame.keys() and not {THRUST, RUDDER} & frame.keys()
        self._count = len(actuators)

    def commands(self, desired: Mapping[str, float]) -> list[float | None]:
        """Return the commands for the current values, in the order of the actuators. Actuators without a value are
        neutral.
        """
        values = {v: desired.get(v, 0.0) for v in self._outputs_of_variable}
        if self._twin and not {LEFT, RIGHT} & desired.keys():
            ahead, turn = desired.get(THRUST, 0.0), desired.get(RUDDER, 0.0)
            values = {LEFT: ahead + turn, RIGHT: ahead - turn}
        found: list[float | None] = [None] * self._count
        for variable, value in values.items():
            for a, sign in self._outputs_of_variable[variable]:
                found[a.number] = _command(variable, sign * value, a)
        return found


def _command(variable: str, value: float, a: ActuatorDescription) -> float:
    if variable == ELEVATOR:
        value = math.radians(value)
    else:
        u = min(max(value / FULL_SCALE, -1.0), 1.0)
        value = (u * abs(u) if a.unit == "N" else u) * (a.maximum if u > 0.0 else -a.minimum)
    return min(max(value, a.minimum), a.maximum)


class SensorVariables:
    """Instrument values as MOOS variables. Each value is published once. A value that consists of several numbers is
    published as a string.
    """

    def __init__(self, sensors: Iterable[SensorDescription]) -> None:
        self._sensors = [(s.name, [(f.name, _variable(s.name, f.name)) for f in s.fields]) for s in sensors]
        self._seen: dict[str, int] = {}

    def new(self, sensors: Sensors) -> dict[str, float | str]:
        """Return the values that have arrived since the last call."""
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


class MoosCommunity:
    """Connection to the MOOSDB. It is opened as soon as the MOOSDB exists, and reopened after it has been lost.
    ``take`` is called with the messages received.
    """

    def __init__(
        self,
        address: tuple[str, int],
        vehicle: BridgedVehicle,
        hears: Iterable[str],
        take: Callable[[MoosMessage], None],
    ) -> None:
        self.address, self.vehicle = address, vehicle
        self.warp = 0.0  #: time warp of the MOOS community; 0 if there is no connection
        self.name = ""
        self._subscriptions, self._on_mail, self._ahead = tuple(hears), take, 0.0
        self._writer = MoosWriter(f"wavesim_{vehicle.options.vehicle}")
        self._stream: asyncio.StreamWriter | None = None

    def now(self) -> float:
        """Return the MOOS time in s according to the MOOSDB's clock."""
        return time.time() * self.warp + self._ahead

    def post(self, values: Mapping[str, float | str]) -> None:
        """Post a message to the community. If there is no connection, drop the message."""
        if self.warp:
            now = self.now()
            self._send(*(MoosMessage(NOTIFY, key, value, now) for key, value in values.items()))

    def _send(self, *messages: MoosMessage) -> None:
        if self._stream is None or not messages:
            return
        if self._stream.transport.get_write_buffer_size() > BACKLOG_BYTES:
            self.vehicle.count_dropped("the MOOSDB is not reading the data sent to it")
        else:
            self._stream.write(self._writer.packet(*messages))

    async def run(self) -> None:
        """Keep the connection open permanently."""
        reported = False
        while True:
            try:
                await self._run_connection()
            except MalformedMessage as unusable:
                self.vehicle.count_dropped(str(unusable))
            except (OSError, EOFError):
                pass
            if self.warp:
                self.vehicle.options.report("connection to the MOOSDB lost")
            if self.warp or not reported:
                self.vehicle.options.report("waiting for a MOOSDB at {}:{}".format(*self.address))
            reported, self.warp = True, 0.0
            await asyncio.sleep(RECONNECT_S)

    async def _run_connection(self) -> None:
        """Handle one connection until it ends with OSError, EOFError or MalformedMessage."""
        async with asyncio.timeout(CONNECTION_TIMEOUT_S):
            reader, self._stream = await asyncio.open_connection(*self.address)
        beat: asyncio.Task[None] | None = None
        try:
            self._stream.write(self._writer.greeting(time.time()))
            received = MoosReader()
            while True:
                async with asyncio.timeout(CONNECTION_TIMEOUT_S):
                    data = await reader.read(65536)
                if not data:
                    raise EOFError
                for message in received.feed(data):
                    self._hear(message)
                    if message.kind == WELCOME and beat is None:
                        self.name, beat = message.community, asyncio.create_task(self._keep_alive())
        finally:
            if beat is not None:
                beat.cancel()
            stream, self._stream = self._stream, None
            stream.close()

    async def _keep_alive(self) -> None:
        """Send the greeting and the subscriptions, and then heartbeats. The MOOSDB's answer to a heartbeat contains the
        MOOS time.
        """
        now = time.time()
        self._send(
            MoosMessage(TIMING, time=now), *(MoosMessage(REGISTER, key, 0.0, now) for key in self._subscriptions)
        )
        while True:
            await asyncio.sleep(BEAT_S)
            self._send(MoosMessage(TIMING, time=time.time()))

    def _hear(self, message: MoosMessage) -> None:
        match message.kind:
            case "K":
                raise MalformedMessage(f"the MOOSDB refused the connection: {message.value!r}")
            case "T" if not self.warp:
                if not isinstance(message.value, float) or not 0.0 < message.value < math.inf:
                    raise MalformedMessage("no time")
                ours = time.time()
                self.warp = round(message.value / ours, 2) or 1.0
                self._ahead = message.value - self.warp * ours
                self.vehicle.options.report(f"connected to the community '{self.name}', time warp {self.warp:g}")
            case "N" if self.warp:
                self._on_mail(message)


class MoosBridge:
    """Vehicle driven by a MOOS community. MOOS runs on the wall clock, and the simulation does not wait for it, so the
    server must keep pace with MOOS.
    """

    def __init__(
        self,
        seat: BridgeOptions,
        address: tuple[str, int],
        origin: WorldOrigin,
        outputs: Mapping[str, Sequence[ServoOutput]],
        sensors: bool,
        silence: float,
    ) -> None:
        self.vehicle, self.origin, self.sensors, self.silence = BridgedVehicle(seat), origin, sensors, silence
        self.community = MoosCommunity(
            address, self.vehicle, (*DESIRED, *moos_acoustics.REQUEST_VARIABLES), self._on_mail
        )
        self._outputs = outputs
        self._desired: dict[str, float] = {}
        self._pending_requests = -math.inf  # time of the last desired value, monotonic clock
        self._is_commanded = False
        self._actuators: MoosActuators | None = None
        self._readings: SensorVariables | None = None

    async def run(self) -> None:
        """Run until the simulation ends."""
        community = asyncio.create_task(self.community.run())
        try:
            async for broker, step in self.vehicle.steps():
                self._answer_step(broker, step)
        finally:
            community.cancel()

    def _answer_step(self, broker: AsyncBroker, step: Step) -> None:
        moves = self._actuators = self._actuators or MoosActuators(self._outputs, broker.actuators)
        motion = motion_of(step.state)
        if motion is None or step.state.motion is None:
            raise BrokerError(
                "the server does not send this vehicle its true state, which NAV_X and the other NAV variables need"
            )
        variables: dict[str, float | str] = {}
        if self.sensors:
            self._readings = self._readings or SensorVariables(broker.sensors)
            variables |= self._readings.new(step.sensors)
        altitude = altitude_of(broker.sensors, step.sensors)
        variables |= navigation(motion, step.state.motion[13:16], self.origin, altitude)
        self.community.post(variables)
        for reception in step.receptions:
            self.community.post(
                moos_acoustics.reception_variables(reception, self.vehicle.options.vehicle, self.community.now())
            )
        for refused in step.refused:
            self.community.post({"ACOUSTIC_REFUSED": refused.text})
        broker.answer(moves.commands(self._desired_commands()))

    def _desired_commands(self) -> dict[str, float]:
        """Return the desired values from the community. The result is empty if the community has stopped sending."""
        flown = time.monotonic() - self._pending_requests <= self.silence
        if self._is_commanded and not flown:
            self.vehicle.options.report("no new desired values; the vehicle continues with neutral outputs")
        self._is_commanded = flown
        if not flown:
            self._desired.clear()
        return self._desired

    def _on_mail(self, message: MoosMessage) -> None:
        """Process the messages received from the community."""
        if self.community.now() - message.time > self.silence * self.community.warp:
            return  # old values that a MOOSDB still stores
        try:
            if message.key in DESIRED:
                if not isinstance(message.value, float) or not math.isfinite(message.value):
                    raise MalformedMessage(f"{message.key} is not a number")
                self._desired[message.key], self._pending_requests = message.value, time.monotonic()
            elif message.key in moos_acoustics.REQUEST_VARIABLES and self.vehicle.broker is not None:
                if not isinstance(message.value, str):
                    raise MalformedMessage(f"{message.key} is not a string")
                moos_acoustics.request(message.key, message.value)(self.vehicle.broker)
        except (MalformedMessage, BrokerError, InvalidArgument) as unusable:
            self.vehicle.count_dropped(str(unusable))


def altitude_of(sensors: Iterable[SensorDescription], values: Sensors) -> float | None:
    """Return the altitude above the bed in m, from the first Doppler log or echosounder with an echo."""
    for s in sensors:
        field = {"dvl": "altitude", "echosounder": "range"}.get(s.type)
        value = values.get(s.name)
        if field is not None and value is not None and math.isfinite(value[field]):
            return float(value[field])
    return None


@bridge("moos", period=0.05)
@click.option(
    "--db", default=f"127.0.0.1:{PORT}", show_default=True, metavar="HOST:PORT", help="Address of the MOOSDB."
)
@click.option(
    "--output",
    multiple=True,
    metavar="VARIABLE=ACTUATOR",
    help="MOOS variable that commands an actuator. Replaces the presets. Repeatable.",
)
@click.option("--sensors", is_flag=True, help="Also post the measurements from the vehicle's sensors.")
@click.option(
    "--silence",
    type=Quantity("time"),
    default=STACK_TIMEOUT_S,
    show_default=True,
    help="Time in s without a DESIRED_ variable after which the outputs return to neutral.",
)
@origin_options
def command(
    seat: BridgeOptions,
    db: str,
    output: tuple[str, ...],
    sensors: bool,
    silence: float,
    latitude: float | None,
    longitude: float | None,
    config: str | None,
) -> None:
    """Provide the physics for MOOS-IvP (pHelmIvP, pMarinePIDV22)."""
    host, _, port = db.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise WaveSimError(f"invalid address '{db}'; write HOST:PORT")
    outputs: dict[str, list[ServoOutput]] = {}
    for text in output:
        variable, moved = assigned(text, "VARIABLE", DESIRED.__contains__)
        outputs.setdefault(variable, []).append(moved)
    origin = origin_of(latitude, longitude, config)
    asyncio.run(MoosBridge(seat, (host or "127.0.0.1", int(port)), origin, outputs, sensors, silence).run())
