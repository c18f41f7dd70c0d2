"""DUNE (LAUV): our physics in place of its own, or our instruments in place of its drivers, by IMC. See docs/bridges/dune.md."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import click

from wavesim_bridges import imc
from wavesim_bridges.core import SILENT_S, Seat, Vehicle, bridge
from wavesim_bridges.geography import Origin
from wavesim_bridges.motion import Motion, motion_of
from wavesim_bridges.outputs import Output, parsed
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.frames import euler, rotation, wrap
from wavesim_sdk.names import nearest
from wavesim_sdk.wire.items import ActuatorDescription, SensorDescription
from wavesim_sdk.wire.state import Sensors, Value

LISTEN, DUNE = 6102, "127.0.0.1:6002"
SYSTEM = 0x00D1  #: lauv-simulator-1
HEARTBEAT_S, ANNOUNCE_BEATS = 1.0, 10
#: of the model `lauv`: IMC's fins 1 and 2 push the nose down where ours push it up
THRUSTERS = {0: Output("propeller")}
SERVOS = {
    0: Output("rudder-top"), 1: Output("plane-port", -1.0), 2: Output("plane-starboard", -1.0), 3: Output("rudder-bottom"),
}  # fmt: skip
Address = tuple[str, int]


def simulated_state(motion: Motion, through: Sequence[float], origin: tuple[float, float]) -> imc.SimulatedState:
    """The true motion as DUNE's own physics tells it: its velocity is that through the water (``through``, in the body)."""
    flow = motion.velocity - rotation(motion.attitude) @ through
    numbers = (*motion.position, *euler(motion.attitude), *through, *motion.rates, *flow)
    return imc.SimulatedState(*origin, 0.0, *map(float, numbers))


# -- actuators -------------------------------------------------------------------------------------------


class Moves:
    """Thrusters and servos of IMC, and the actuators that they move."""

    def __init__(
        self, thrusters: Mapping[int, Output], servos: Mapping[int, Output], actuators: Sequence[ActuatorDescription]
    ) -> None:
        places = {a.name: a for a in actuators}
        self._moves: dict[tuple[bool, int], tuple[ActuatorDescription, float]] = {}
        self.neutral: list[float | None] = [None] * len(actuators)
        for thruster, outputs in ((True, thrusters), (False, servos)):
            for number, output in outputs.items():
                a = places.get(output.actuator)
                if a is None:
                    raise BrokerError(
                        f"the vehicle has no actuator '{output.actuator}'{nearest(output.actuator, places)}"
                    )
                self._moves[thruster, number] = (a, output.sign)
                self.neutral[a.number] = 0.0

    def command(self, message: imc.Message) -> tuple[int, float] | None:
        """Position and value that a message asks for; None if it asks for nothing. Unusable for values that are none."""
        match message:
            case imc.SetThrusterActuation(id=number, value=value):
                thruster = True
            case imc.SetServoPosition(id=number, value=value) | imc.ServoPosition(id=number, value=value):
                thruster = False
            case _:
                return None
        if not math.isfinite(value):
            raise imc.Unusable("no number")
        if (thruster, number) not in self._moves:
            raise imc.Unusable("no such thruster" if thruster else "no such servo")
        a, sign = self._moves[thruster, number]
        value *= sign
        if thruster:
            value *= a.maximum if value >= 0.0 else -a.minimum
        return a.number, min(max(value, a.minimum), a.maximum)


# -- instruments -----------------------------------------------------------------------------------------


def _whole(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _gps(v: Value, at: float) -> imc.Message | None:
    if not _whole(*v.numbers):
        return None
    date, valid = time.gmtime(at), 0b010111111  # all but vacc and vdop, which no receiver of ours tells
    return imc.GpsFix(
        valid, 0, date.tm_year, date.tm_mon, date.tm_mday, at % 86400.0, v.latitude, v.longitude, v.height,
        min(max(round(v.satellites), 0), 255), v.cog, v.sog, v.hdop, 0.0, v.hacc, 0.0,
    )  # fmt: skip


def _euler(v: Value, at: float) -> imc.Message | None:
    heading = wrap(v.heading) if _whole(v.heading) else v.heading
    return imc.EulerAngles(at, v.roll, v.pitch, heading, heading) if _whole(v.roll, v.pitch, heading) else None


def _rates(v: Value, at: float) -> imc.Message | None:
    return imc.AngularVelocity(at, *v.rates) if _whole(*v.rates) else None


def _acceleration(v: Value, at: float) -> imc.Message | None:
    return imc.Acceleration(at, *v.force) if _whole(*v.force) else None


def _velocity(kind: Callable[..., imc.Message], field: str) -> Callable[[Value, float], imc.Message | None]:
    def told(v: Value, at: float) -> imc.Message:
        bits = sum(1 << k for k, x in enumerate(v[field]) if math.isfinite(x))
        return kind(bits, *(x if math.isfinite(x) else 0.0 for x in v[field]))

    return told


def _distance(field: str) -> Callable[[Value, float], imc.Message | None]:
    def told(v: Value, at: float) -> imc.Message:
        echo = math.isfinite(v[field])
        return imc.Distance(int(echo), (), (), v[field] if echo else 0.0)

    return told


def _number(kind: Callable[[float], imc.Message], field: str) -> Callable[[Value, float], imc.Message | None]:
    return lambda v, at: kind(v[field]) if _whole(v[field]) else None


def _rpm(v: Value, at: float) -> imc.Message | None:
    """Of the first thruster that has a shaft."""
    turning = [r for r in v.numbers if math.isfinite(r)]
    return imc.Rpm(min(max(round(turning[0]), -32768), 32767)) if turning else None


#: message, type of sensor: the first of these that the vehicle has tells it
_TOLD: tuple[tuple[type[imc.Message], str, Callable[[Value, float], imc.Message | None]], ...] = (
    (imc.GpsFix, "gps", _gps),
    (imc.EulerAngles, "ahrs", _euler),
    (imc.AngularVelocity, "imu", _rates),
    (imc.AngularVelocity, "ahrs", _rates),
    (imc.Acceleration, "imu", _acceleration),
    (imc.GroundVelocity, "dvl", _velocity(imc.GroundVelocity, "bottom")),
    (imc.WaterVelocity, "dvl", _velocity(imc.WaterVelocity, "water")),
    (imc.WaterVelocity, "speedlog", _velocity(imc.WaterVelocity, "v_FB_B")),
    (imc.Distance, "echosounder", _distance("range")),
    (imc.Distance, "dvl", _distance("altitude")),
    (imc.Temperature, "ctd", _number(imc.Temperature, "temperature")),
    (imc.Temperature, "temperature", _number(imc.Temperature, "temperature")),
    (imc.Depth, "pressure", _number(imc.Depth, "depth")),
    (imc.Conductivity, "ctd", _number(imc.Conductivity, "conductivity")),
    (imc.Conductivity, "conductivity", _number(imc.Conductivity, "conductivity")),
    (imc.Rpm, "rpm", _rpm),
)


class Instruments:
    """The messages of a vehicle's instruments: each kind from one of them, each value once."""

    def __init__(self, sensors: Iterable[SensorDescription]) -> None:
        names: dict[str, str] = {}
        for s in sensors:
            names.setdefault(s.type, s.name)
        told: dict[type[imc.Message], tuple[str, Callable[[Value, float], imc.Message | None]]] = {}
        for kind, sensor, tell in _TOLD:
            if sensor in names:
                told.setdefault(kind, (names[sensor], tell))
        self.kinds = list(told)
        self._told = list(told.values())
        self._seen: dict[str, int] = {}

    def messages(self, sensors: Sensors, time_ns: int, now: float) -> list[imc.Message]:
        """What is new. Simulation time ``time_ns`` is unix time ``now``."""
        found = []
        for name, tell in self._told:
            value = sensors.get(name)
            if value is not None and value.time_ns != self._seen.get(name):
                message = tell(value, now - 1e-9 * (time_ns - value.time_ns))
                if message is not None:
                    found.append(message)
        self._seen.update((name, value.time_ns) for name, value in sensors.items())
        return found


# -- the bridge ------------------------------------------------------------------------------------------


class Port(asyncio.DatagramProtocol):
    """The socket to DUNE: what it asks of the actuators, until it falls silent."""

    def __init__(self, vehicle: Vehicle, dune: Address, system: int) -> None:
        self.vehicle, self.dune, self.system = vehicle, dune, system
        self.client: Address | None = None  #: the DUNE that flies; None: none does
        self.moves: Moves | None = None
        self.commands: list[float | None] = []
        self._heard = 0.0
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: Address) -> None:
        """A packet of somebody."""
        try:
            self._take(imc.read(data), address)
        except imc.Unusable as unusable:
            self.vehicle.drop(str(unusable))

    def _take(self, packet: imc.Packet, address: Address) -> None:
        if packet.source != self.system:
            raise imc.Unusable("another system")
        if self.moves is None:
            return  # the vehicle has not joined yet
        asked = self.moves.command(packet.message)
        if self.client is None:
            self.client = address
            self.commands = list(self.moves.neutral)
            self.vehicle.seat.say(f"a DUNE at {address[0]}:{address[1]}")
        elif address != self.client:
            raise imc.Unusable("another sender")
        self._heard = time.monotonic()
        if asked is not None:
            self.commands[asked[0]] = asked[1]

    def error_received(self, error: Exception) -> None:
        """Nobody is at a port: DUNE is found out by its silence."""

    def asked(self, moves: Moves) -> list[float | None]:
        """The actuators' commands now."""
        self.moves = moves
        if self.client is not None and time.monotonic() - self._heard > SILENT_S:
            self.vehicle.seat.say("DUNE is silent; the vehicle goes on at neutral outputs")
            self.client = None
        return list(moves.neutral if self.client is None else self.commands)

    def tell(self, message: imc.Message, now: float, *others: Address) -> None:
        """To others, or else to DUNE: at the port where it listens, and at the one from which it sends."""
        if self._transport is not None:
            data = imc.packed(imc.Packet(message, now, self.system))
            for address in others or {self.dune, self.client or self.dune}:
                self._transport.sendto(data, address)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Bridge:
    """A vehicle flown by DUNE. DUNE lives by the wall clock: nobody waits for it, the server has to keep real time."""

    def __init__(
        self, seat: Seat, port: Port, thrusters: Mapping[int, Output], servos: Mapping[int, Output],
        origin: tuple[float, float], sensors: bool, announce: Sequence[Address],
    ) -> None:  # fmt: skip
        self.vehicle, self.port, self.origin, self.sensors = port.vehicle, port, origin, sensors
        self._outputs, self._announce = (thrusters, servos), announce
        self._place, self._world = origin, Origin(*map(math.degrees, origin))
        self._moves: Moves | None = None
        self._instruments: Instruments | None = None

    async def run(self, listen: int) -> None:
        """Until the run has ended."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(lambda: self.port, local_addr=("127.0.0.1", listen))
        except OSError as error:
            raise BrokerError(
                f"cannot listen at UDP port {listen}: {error.strerror}; is it another bridge's?"
            ) from None
        presence = asyncio.create_task(self._be_seen(listen))
        try:
            async for broker, step in self.vehicle.steps():
                self._step(broker, step)
        finally:
            presence.cancel()
            self.port.close()

    def _step(self, broker: AsyncBroker, step: Step) -> None:
        moves = self._moves = self._moves or Moves(*self._outputs, broker.actuators)
        motion, now = motion_of(step.state), time.time()
        if motion is not None and step.state.motion is not None:
            north, east = motion.position[:2]
            latitude, longitude = self._world.degrees(float(north), float(east))
            self._place = math.radians(latitude), math.radians(longitude)
        if self.sensors:
            self._instruments = self._instruments or Instruments(broker.sensors)
            for message in self._instruments.messages(step.sensors, step.state.time_ns, now):
                self.port.tell(message, now)
        elif motion is None or step.state.motion is None:
            raise BrokerError(
                "the server hides the truth from this vehicle, and the simulated state is the truth; try --sensors"
            )
        else:
            self.port.tell(simulated_state(motion, step.state.motion[13:16], self.origin), now)
        broker.answer(self.port.asked(moves))

    async def _be_seen(self, listen: int) -> None:
        beats = 0
        while self._announce:
            now = time.time()
            if beats % ANNOUNCE_BEATS == 0:
                self.port.tell(
                    imc.Announce(
                        self.vehicle.seat.vehicle, imc.UUV, imc.EVERYBODY, *self._place, 0.0,
                        f"imc+udp://127.0.0.1:{listen}/",
                    ), now, *self._announce,
                )  # fmt: skip
            self.port.tell(imc.Heartbeat(), now, *self._announce)
            beats += 1
            await asyncio.sleep(HEARTBEAT_S)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise WaveSimError(f"'{text}' is no address; write PORT or HOST:PORT")
    return host or "127.0.0.1", int(port)


def _origin(text: str) -> tuple[float, float]:
    try:
        latitude, longitude = map(float, text.split(","))
    except ValueError:
        latitude = longitude = math.nan
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0):
        raise WaveSimError(f"'{text}' is no origin; write LATITUDE,LONGITUDE in degrees")
    return math.radians(latitude), math.radians(longitude)


@bridge("dune", period=0.04)
@click.option("--listen", default=LISTEN, show_default=True, help="UDP port of the bridge, where DUNE sends to.")
@click.option("--dune", default=DUNE, show_default=True, metavar="[HOST:]PORT", help="Where DUNE listens.")
@click.option("--system", default=f"0x{SYSTEM:04X}", show_default=True, help="IMC's number of the vehicle.")
@click.option("--origin", default="0,0", show_default=True, metavar="LAT,LON", help="Of the world, in degrees.")
@click.option("--sensors", is_flag=True, help="Tell what the vehicle's instruments measure, in place of the truth.")
@click.option("--thruster", multiple=True, metavar="N=ACTUATOR", help="A thruster of another vehicle than the LAUV.")
@click.option(
    "--servo", multiple=True, metavar="N=ACTUATOR", help="A fin of such a vehicle; 1=-plane for the other way."
)
@click.option("--announce", multiple=True, metavar="[HOST:]PORT", help="Also seen by this one, Neptus for example.")
def command(seat: Seat, listen: int, dune: str, system: str, origin: str, **options: Any) -> None:
    """DUNE (LAUV): this is its physics, or its sensors."""
    thrusters, servos = dict(map(parsed, options["thruster"])), dict(map(parsed, options["servo"]))
    if not thrusters and not servos:
        thrusters, servos = THRUSTERS, SERVOS
    try:
        number = int(system, 0)
    except ValueError:
        number = -1
    if not 0 <= number < imc.EVERYBODY:
        raise WaveSimError(f"'{system}' is no number of a system; write 0x00D1, or 209")
    port = Port(Vehicle(seat), _address(dune), number)
    announce = [_address(a) for a in options["announce"]]
    asyncio.run(Bridge(seat, port, thrusters, servos, _origin(origin), options["sensors"], announce).run(listen))
