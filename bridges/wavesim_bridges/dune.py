"""Bridge to DUNE (LAUV) over IMC. WaVeSim's physics or instruments replace DUNE's simulator or drivers. See
docs/bridges/dune.md.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any, cast

import click

from wavesim_bridges import dune_flight, imc
from wavesim_bridges.core import STACK_TIMEOUT_S, BridgedVehicle, BridgeOptions, MalformedMessage, bridge
from wavesim_bridges.dune_acoustics import DuneAcoustics
from wavesim_bridges.dune_operator import LEAKS, OperatorCommands, parse_compartment
from wavesim_bridges.dune_vehicle import (
    SERVOS,
    THRUSTERS,
    ImcActuators,
    ImcInstruments,
    ReferencePoint,
    estimated_state,
    simulated_state,
)
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.imc_codec import EVERYBODY, UNKNOWN_ENTITY, ImcMessage, ImcPacket, UnknownMessage, packed, read
from wavesim_bridges.servo_outputs import ServoOutput, parsed
from wavesim_bridges.vehicle_motion import VehicleMotion, motion_of
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.frames import rotation

LISTEN, DUNE = 6102, "127.0.0.1:6002"
SYSTEM = 0x00D1  #: default IMC number of the vehicle: the number of DUNE's vehicle lauv-simulator-1
HEARTBEAT_S, ANNOUNCE_BEATS = 1.0, 10
ASK_AGAIN_S = 1.0  #: interval in s between requests for DUNE's list of entities
PEER_S, MOST_PEERS = (
    30.0,
    16,
    #: time in s without a message after which an operator's program is dropped, and maximum number of operators' programs
)
#: label of the DUNE entity that sends each message type; by default, the labels are those in the configuration of a
#: LAUV
ENTITIES = {
    imc.GpsFix: "GPS",
    imc.EulerAngles: "AHRS",
    imc.AngularVelocity: "AHRS",
    imc.Acceleration: "AHRS",
    imc.GroundVelocity: "DVL",
    imc.WaterVelocity: "DVL",
    imc.Distance: "Altimeter",
    imc.Depth: "Depth Sensor",
    imc.Temperature: "CTD",
    imc.Conductivity: "CTD",
    imc.Rpm: "Motor",
    imc.LblRange: "LBL",
    imc.UamRxFrame: "Acoustic Modem",
    imc.UamTxStatus: "Acoustic Modem",
    imc.UamRxRange: "Acoustic Modem",
}
#: state of a vehicle whose on-board software is not running
BOOT = imc.VehicleState(
    op_mode=imc.VehicleState.VS_BOOT,
    error_count=0,
    error_ents="",
    maneuver_type=0xFFFF,
    maneuver_stime=-1.0,
    maneuver_eta=0xFFFF,
    control_loops=0,
    flags=0,
    last_error="",
    last_error_time=-1.0,
)
Address = tuple[str, int]


class ImcSocket(asyncio.DatagramProtocol):
    """Socket to DUNE and to operators' programs. It keeps DUNE's actuator commands until DUNE stops sending."""

    def __init__(
        self, vehicle: BridgedVehicle, dune: Address, system: int, entities: Mapping[type[ImcMessage], str]
    ) -> None:
        self.vehicle, self.dune, self.system = vehicle, dune, system
        self.client: Address | None = None  #: address of the DUNE process in control; None if no DUNE is connected
        self.actuators: ImcActuators | None = None
        self.commands: list[float | None] = []
        self.flight: dune_flight.DuneFlight | None = None  #: flight controller of an aircraft
        self.operator: OperatorCommands | None = None
        self.sound: DuneAcoustics | None = None
        self._entities, self._numbers = entities, dict[str, int]()
        self._peers: dict[int, tuple[Address, float]] = {}
        self._heard_at = self._asked_at = 0.0
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the socket when it has been opened."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: Address) -> None:
        """Process a packet from any sender."""
        try:
            self._dispatch(read(data), address)
        except MalformedMessage as unusable:
            self.vehicle.count_dropped(str(unusable))

    def _dispatch(self, packet: ImcPacket, address: Address) -> None:
        own, message = packet.source == self.system, packet.message

        def answer(message: ImcMessage) -> None:
            self.send(message, time.time(), address, to=packet.source)

        if not own and isinstance(message, (imc.Heartbeat, imc.Announce)):
            self._note_peer(packet.source, address)
        elif not own and isinstance(message, UnknownMessage):
            return  # operators' programs send many messages meant for DUNE
        elif own and isinstance(message, imc.GpsFix):
            return  # DUNE's own GPS, not an operator
        elif self.operator is not None and self.operator.handle(message, answer):
            return
        elif not own:
            raise MalformedMessage("another system")
        elif self.actuators is not None:
            self._handle_dune_message(self.actuators, message, address)

    def _handle_dune_message(self, moves: ImcActuators, message: ImcMessage, address: Address) -> None:
        """Process a message from the vehicle's own DUNE."""
        if self.client is not None and address != self.client:
            raise MalformedMessage("another sender")
        command = moves.command(message)
        if self.client is None:
            self.client = address
            self.commands, self._numbers = list(moves.neutral), {}
            self.vehicle.options.report(f"a DUNE at {address[0]}:{address[1]}")
        self._heard_at = time.monotonic()
        if not self._numbers and self._heard_at - self._asked_at > ASK_AGAIN_S:
            self._asked_at = self._heard_at
            self.send(imc.EntityList(imc.EntityList.OP_QUERY, ""), time.time())
        if command is not None:
            self.commands[command[0]] = command[1]
            if self.flight is not None:
                self.flight.is_engaged = False
        elif self.flight is not None and self.flight.handle(message):
            return
        elif isinstance(message, imc.EntityList) and message.op == imc.EntityList.OP_REPORT:
            self._numbers = entity_numbers(message.list)
        elif isinstance(message, (imc.UamTxFrame, imc.UamTxRange)):
            if self.sound is None:
                raise MalformedMessage("no modem")
            self.sound.handle(message)
        elif isinstance(message, UnknownMessage):
            raise MalformedMessage("unknown message")

    def _note_peer(self, system: int, address: Address) -> None:
        """Register the address of an operator's program. Ignore messages that DUNE forwards, because they do not
        contain the address at which the program listens.
        """
        if address not in (self.dune, self.client) and (system in self._peers or len(self._peers) < MOST_PEERS):
            self._peers[system] = address, time.monotonic()

    @property
    def peers(self) -> set[Address]:
        """Return the addresses of operators' programs."""
        limit = time.monotonic() - PEER_S
        self._peers = {system: (address, heard) for system, (address, heard) in self._peers.items() if heard > limit}
        return {address for address, _ in self._peers.values()} - {self.dune, self.client}

    def error_received(self, error: Exception) -> None:
        """Ignore errors that report a closed port. The bridge detects a lost DUNE by the absence of messages."""

    def current_commands(self, moves: ImcActuators) -> list[float | None]:
        """Return the current actuator commands."""
        self.actuators = moves
        if self.client is not None and time.monotonic() - self._heard_at > STACK_TIMEOUT_S:
            circles = self.flight is not None and self.flight.is_engaged
            how = "the aircraft circles" if circles else "the vehicle continues with neutral outputs"
            self.vehicle.options.report(f"no data from DUNE; {how}")
            self.client = None
            if self.flight is not None:
                self.flight.loiter()
        return list(moves.neutral if self.client is None else self.commands)

    def send(self, message: ImcMessage, now: float, *others: Address, to: int = EVERYBODY, label: str = "") -> None:
        """Send a message to the given addresses. By default, send it to DUNE, both to the port on which DUNE listens
        and to the port from which DUNE sends. ``label`` names the source entity; by default, it is the label configured
        for this message type.
        """
        if self._transport is not None:
            entity = self._numbers.get(label or self._entities.get(type(message), ""), UNKNOWN_ENTITY)
            data = packed(ImcPacket(message, now, self.system, to, entity))
            for address in others or {self.dune, self.client or self.dune}:
                self._transport.sendto(data, address)

    def send_as_entity(self, message: ImcMessage, label: str) -> None:
        """Send a message as the DUNE entity with the given label. If the number of this entity is still unknown, send
        nothing.
        """
        if label in self._numbers:
            self.send(message, time.time(), label=label)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def entity_numbers(text: str) -> dict[str, int]:
    """Parse DUNE's list of entities, `Label=number;Label=number`. Skip invalid entries."""
    pairs = (entry.rpartition("=")[::2] for entry in text.split(";"))
    return {label: int(number) for label, number in pairs if number.isdecimal() and int(number) < UNKNOWN_ENTITY}


class DuneBridge:
    """Vehicle driven by DUNE. DUNE runs on the wall clock, and the simulation does not wait for it, so the server must
    keep real time.
    """

    def __init__(
        self,
        port: ImcSocket,
        name: str,
        outputs: tuple[Mapping[int, ServoOutput], Mapping[int, ServoOutput]] | None,
        reference: ReferencePoint,
        sensors: bool,
        announce: Sequence[Address],
    ) -> None:
        self.vehicle, self.port, self.name, self.sensors = port.vehicle, port, name, sensors
        self._outputs, self._announce, self._reference = outputs, announce, reference
        self._vehicle_present = asyncio.Event()  #: event that is set when the vehicle has joined the server
        self._motion: VehicleMotion | None = None
        self._actuators: ImcActuators | None = None
        self._instruments: ImcInstruments | None = None
        self._airspeed_sensors: list[str] = []

    async def run(self, listen: int) -> None:
        """Run until the simulation ends."""
        try:
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(("127.0.0.1", listen))
        except OSError as error:
            sock.close()
            raise BrokerError(
                f"cannot listen on UDP port {listen}: {error.strerror}; is another bridge using it?"
            ) from None
        sock.setblocking(False)
        sock.setsockopt(
            socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1")
        )  # restricted to this machine
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self.port, sock=sock)
        flying = asyncio.create_task(self._fly())
        working = (
            [flying] if self.port.sound is None else [flying, asyncio.create_task(self._run_acoustics(self.port.sound))]
        )
        presence = asyncio.create_task(self._announce_presence(listen))
        try:
            while not flying.done():  # a transducer that is reconnecting must not delay the end
                done, _ = await asyncio.wait({w for w in working if not w.done()}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in (presence, *working):
                task.cancel()
            self.port.close()

    async def _fly(self) -> None:
        async for broker, step in self.vehicle.steps():
            self._answer_step(broker, step)
            self._vehicle_present.set()

    async def _run_acoustics(self, sound: DuneAcoustics) -> None:
        await self._vehicle_present.wait()
        await sound.run()

    def _answer_step(self, broker: AsyncBroker, step: Step) -> None:
        if self._actuators is None:
            self._actuators = self._assign_outputs(broker)
        moves = self._actuators
        motion, now = motion_of(step.state), time.time()
        self._motion = motion
        if self.port.operator is not None:
            self.port.operator.advance(broker, step)
        if self.sensors:
            self._instruments = self._instruments or ImcInstruments(broker.sensors)
            for message in self._instruments.messages(step.sensors, step.state.time_ns, now):
                self.port.send(message, now)
        elif motion is None or step.state.motion is None:
            raise BrokerError(
                "the server does not send this vehicle its true state, which SimulatedState messages need; use --sensors"
            )
        else:
            flies = self.port.flight is not None
            through = rotation(motion.attitude).T @ motion.velocity if flies else step.state.motion[13:16]
            self.port.send(simulated_state(motion, through, self._reference), now)
        broker.answer(self._commands(moves, step, motion, now))

    def _assign_outputs(self, broker: AsyncBroker) -> ImcActuators:
        """Return the actuators that DUNE's outputs move. By default, they are the actuators of a LAUV or of an
        aircraft.
        """
        if dune_flight.is_aircraft(broker.actuators):
            self.port.flight = dune_flight.DuneFlight(broker.actuators)
            self._airspeed_sensors = [s.name for s in broker.sensors if s.type == dune_flight.AIRSPEED]
            if self.port.operator is not None and self._outputs is None:
                self.port.operator.servos = dune_flight.SURFACES
        servos = SERVOS if self.port.flight is None else dune_flight.SERVOS
        return ImcActuators(*(self._outputs or (THRUSTERS, servos)), broker.actuators)

    def _commands(
        self, moves: ImcActuators, step: Step, motion: VehicleMotion | None, now: float
    ) -> list[float | None]:
        """Return the commands for a step. For an aircraft, also report its airspeed."""
        commands, flight = self.port.current_commands(moves), self.port.flight
        if flight is None:
            return commands
        airspeed = dune_flight.airspeed_of(self._airspeed_sensors, step.sensors)
        if airspeed is not None:
            self.port.send(imc.IndicatedSpeed(airspeed), now)
            self.port.send(imc.TrueSpeed(airspeed), now)
        if not flight.is_engaged or (motion is None and self.port.client is None):
            return commands
        if motion is None:
            raise BrokerError(
                'the flight controller needs the true state of the aircraft; set truth="full" in the configuration, or let '
                "DUNE command the servos"
            )
        return flight.commands(motion, airspeed)

    @property
    def _system_type(self) -> int:
        return imc.Announce.SYSTEMTYPE_UUV if self.port.flight is None else imc.Announce.SYSTEMTYPE_UAV

    async def _announce_presence(self, listen: int) -> None:
        """Send messages with the identity and the motion of the vehicle to Neptus and similar programs."""
        beats, reference = 0, self._reference
        while True:
            now, motion = time.time(), self._motion
            if beats % ANNOUNCE_BEATS == 0 and self._announce:
                north, east = (0.0, 0.0) if motion is None else map(float, motion.position[:2])
                latitude, longitude = map(math.radians, reference.world.degrees(north, east))
                services = f"imc+udp://127.0.0.1:{listen}/"
                announce = imc.Announce(self.name, self._system_type, EVERYBODY, latitude, longitude, 0.0, services)
                self.port.send(announce, now, *self._announce)
            if others := {*self._announce, *self.port.peers}:
                self.port.send(imc.Heartbeat(), now, *others)
                if motion is not None:
                    self.port.send(estimated_state(motion, reference, self.port.flight is not None), now, *others)
                if self.port.client is None:
                    self.port.send(BOOT, now, *others)
            beats += 1
            await asyncio.sleep(HEARTBEAT_S)


# -- the command -----------------------------------------------------------------------------------------


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise WaveSimError(f"invalid address '{text}'; write PORT or HOST:PORT")
    try:
        return socket.gethostbyname(host or "127.0.0.1"), int(port)
    except OSError as error:
        raise WaveSimError(f"invalid address '{text}': {error.strerror}") from None


def _numbers(text: str, count: int) -> list[float]:
    """Parse comma-separated numbers. Return an empty list if there are too many or too few, or if one of them is not
    finite.
    """
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        return []
    return found if len(found) == count and all(map(math.isfinite, found)) else []


def _origin(text: str) -> WorldOrigin:
    place = _numbers(text, 2)
    if not place or not (abs(place[0]) <= 90.0 and abs(place[1]) <= 180.0):
        raise WaveSimError(f"invalid origin '{text}'; write LATITUDE,LONGITUDE in degrees")
    return WorldOrigin(*place)


def _modem(text: str) -> tuple[str, int]:
    name, _, address = text.rpartition("=")
    if not name or not address.isdecimal() or int(address) < 1:
        raise WaveSimError(f"invalid modem '{text}'; write NAME=ADDRESS")
    return name, int(address)


def _transponder(text: str) -> tuple[str, tuple[float, float]]:
    name, _, rest = text.rpartition("=")
    frequencies = _numbers(rest, 2)
    if not name or not frequencies or min(frequencies) <= 0.0:
        raise WaveSimError(f"invalid transponder '{text}'; write NAME=QUERY,REPLY with frequencies in Hz")
    return name, (frequencies[0], frequencies[1])


def _entity(text: str) -> tuple[type[ImcMessage], str]:
    name, _, label = text.partition("=")
    kinds = {kind.__name__: kind for kind in ENTITIES}
    if name not in kinds or not label:
        raise WaveSimError(f"invalid entity '{text}'; write MESSAGE=LABEL, where MESSAGE is one of {', '.join(kinds)}")
    return kinds[name], label


@bridge("dune", period=0.04)
@click.option(
    "--listen",
    type=click.IntRange(1, 65535),
    default=LISTEN,
    show_default=True,
    help="UDP port on which the bridge receives messages from DUNE.",
)
@click.option("--dune", default=DUNE, show_default=True, metavar="[HOST:]PORT", help="Address on which DUNE listens.")
@click.option("--system", default=f"0x{SYSTEM:04X}", show_default=True, help="IMC system number of the vehicle.")
@click.option("--name", default="", help="IMC name of the vehicle; default: the name in WaVeSim.")
@click.option(
    "--origin",
    default="0,0",
    show_default=True,
    metavar="LAT,LON",
    help="Latitude and longitude of the world's origin in degrees.",
)
@click.option("--sensors", is_flag=True, help="Send measurements from the vehicle's sensors instead of the true state.")
@click.option(
    "--thruster",
    multiple=True,
    metavar="N=ACTUATOR",
    help="Actuator that receives DUNE's commands for thruster N, for a vehicle that is not a LAUV. Repeatable.",
)
@click.option(
    "--servo",
    multiple=True,
    metavar="N=ACTUATOR",
    help="Actuator that receives DUNE's commands for servo N, for a vehicle that is not a LAUV: `1=plane`, or "
    "`1=-plane` to reverse the fin. Repeatable.",
)
@click.option(
    "--modem",
    multiple=True,
    metavar="NAME=ADDRESS",
    help="Acoustic modem: its IMC name and its WaVeSim address. Repeat for each modem, including the vehicle's own.",
)
@click.option(
    "--transponder",
    multiple=True,
    metavar="NAME=QUERY,REPLY",
    help="Query and reply frequencies, in Hz, of a beacon that is not a modem. Repeatable.",
)
@click.option(
    "--leak",
    multiple=True,
    metavar="LABEL=COMPARTMENT",
    help="Compartment whose leaks are reported to DUNE under LABEL, for a vehicle that is not a LAUV. Repeatable.",
)
@click.option(
    "--entity", multiple=True, metavar="MESSAGE=LABEL", help="DUNE entity label for an IMC message type. Repeatable."
)
@click.option(
    "--announce",
    multiple=True,
    metavar="[HOST:]PORT",
    help="Additional address to which the bridge announces the vehicle, for example the address of Neptus. Repeatable.",
)
def command(seat: BridgeOptions, listen: int, dune: str, system: str, name: str, origin: str, **options: Any) -> None:
    """Provide physics or sensor data for DUNE (LAUV or aircraft)."""
    thrusters, servos = dict(map(parsed, options["thruster"])), dict(map(parsed, options["servo"]))
    outputs = (thrusters, servos) if thrusters or servos else None
    try:
        number = int(system, 0)
    except ValueError:
        number = -1
    if not 0 <= number < EVERYBODY:
        raise WaveSimError(f"invalid system number '{system}'; write a number such as 0x00D1 or 209")
    name, reference = name or seat.vehicle, ReferencePoint(_origin(origin))
    port = ImcSocket(
        BridgedVehicle(seat), _address(dune), number, {**ENTITIES, **dict(map(_entity, options["entity"]))}
    )
    modems, transponders = dict(map(_modem, options["modem"])), dict(map(_transponder, options["transponder"]))
    if modems or transponders:
        port.sound = DuneAcoustics(seat, name, modems, transponders, lambda message: port.send(message, time.time()))
    port.operator = OperatorCommands(
        seat.report,
        reference,
        [o.actuator for o in (servos if outputs else SERVOS).values()],
        dict(map(parse_compartment, options["leak"])) or LEAKS,
        port.sound,
        port.send_as_entity,
        number,
    )
    announce = [_address(a) for a in options["announce"]]
    asyncio.run(DuneBridge(port, name, outputs, reference, options["sensors"], announce).run(listen))
