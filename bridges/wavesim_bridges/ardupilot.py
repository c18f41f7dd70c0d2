"""Bridge to ArduPilot (ArduSub, Rover): WaVeSim's physics replaces ArduPilot's simulator, through its JSON interface.
See docs/bridges/ardupilot.md.
"""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import click

from wavesim_bridges.aiding import Aiding, AidingOptions, aiding_options
from wavesim_bridges.core import (
    STACK_TIMEOUT_S,
    BridgedVehicle,
    BridgeOptions,
    LatestValue,
    MalformedMessage,
    bridge,
    distances,
    last,
    port_unavailable,
    run_together,
    true_motion,
)
from wavesim_bridges.servo_outputs import Mixer, ServoOutput, autopilot_options, chosen
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.arrays import Floats
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.names import suggest_name
from wavesim_sdk.terminal_text import echo

PORT, PORTS_APART = 9002, 10
_SERVOS = {18458: struct.Struct("<HHI16H"), 29569: struct.Struct("<HHI32H")}
NEUTRAL_US, FULL_US = 1500.0, 400.0
RATE = 400.0  #: minimum number of vehicle states sent per second; at a lower rate, ArduPilot's depth control oscillates

_HORIZONTAL = {
    1: ServoOutput("front-starboard", -1.0),
    2: ServoOutput("front-port", -1.0),
    3: ServoOutput("rear-starboard"),
    4: ServoOutput("rear-port"),
}
#: for each frame type of ArduSub and Rover, a map from servo outputs to actuators of WaVeSim's models
FRAMES = {
    "vectored": {**_HORIZONTAL, 5: ServoOutput("vertical-starboard"), 6: ServoOutput("vertical-port")},
    "vectored_6dof": {
        **_HORIZONTAL,
        5: ServoOutput("vertical-front-starboard"),
        6: ServoOutput("vertical-front-port"),
        7: ServoOutput("vertical-rear-starboard"),
        8: ServoOutput("vertical-rear-port"),
    },
    # a rudder's positive angle turns to port, Rover's to starboard
    "boat": {1: ServoOutput("rudder", -1.0), 3: ServoOutput("propeller")},
    "skid": {1: ServoOutput("port"), 3: ServoOutput("starboard")},
}


class ServoFrame(NamedTuple):
    """A servo frame from an autopilot."""

    rate: int
    number: int
    pwm: tuple[int, ...]

    def outputs(self) -> list[float | None]:
        """Return the value of each output, from -1 to 1, or None for an unused output."""
        return [None if us == 0 else min(max((us - NEUTRAL_US) / FULL_US, -1.0), 1.0) for us in self.pwm]


def parse_servo_frame(data: bytes) -> ServoFrame:
    """Decode the frame in a datagram from the autopilot."""
    layout = _SERVOS.get(int.from_bytes(data[:2], "little"))
    if layout is None:
        raise MalformedMessage("magic")
    if len(data) != layout.size:
        raise MalformedMessage("size")
    _, rate, number, *pwm = layout.unpack(data)
    return ServoFrame(rate, number, tuple(pwm))


def state_message(motion: VehicleMotion, ranges: Sequence[float] = ()) -> bytes:
    """Encode a vehicle state as JSON for ArduPilot. ArduPilot does not parse the JSON, but searches the text for key
    names. The text therefore contains no spaces, and no key contains the name of another key.
    """

    def numbers(values: Floats) -> str:
        return "[" + ",".join([f"{v:.9g}" for v in values.tolist()]) + "]"

    text = (
        f'\n{{"timestamp":{motion.time:.9f},"imu":{{"gyro":{numbers(motion.rates)},"accel_body":{numbers(motion.force)}}},'
        f'"position":{numbers(motion.position)},"quaternion":{numbers(motion.attitude)},"velocity":{numbers(motion.velocity)}'
    )
    text += "".join(f',"rng_{k}":{r:.9g}' for k, r in enumerate(ranges, 1))
    return (text + "}\n").encode()


class ArduPilotSocket(asyncio.DatagramProtocol):
    """Socket that receives the servo frames from an autopilot."""

    def __init__(self, vehicle: BridgedVehicle) -> None:
        self.vehicle, self.frames = vehicle, LatestValue[ServoFrame]()
        #: address of the autopilot in control; None if there is no autopilot
        self.client: tuple[str, int] | None = None
        self.restarts = 0
        self._number, self._answered = -1, b""
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the socket when it has been opened."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        """Process a servo frame. The bridge answers a new frame with the next vehicle state. It answers a repeated
        frame with the state that it sent before.
        """
        try:
            servo = parse_servo_frame(data)
        except MalformedMessage as unusable:
            self.vehicle.count_dropped(str(unusable))
            return
        if self.client is None or (address != self.client and servo.number < self._number):
            self.vehicle.options.report(f"an autopilot at {address[0]}:{address[1]}")
            self.client = address
        elif address != self.client:
            self.vehicle.count_dropped("another sender")
            return
        elif servo.number == self._number:
            if self._answered and self._transport is not None:
                self._transport.sendto(self._answered, address)
            return
        self.restarts += servo.number < self._number
        self._number, self._answered = servo.number, b""
        self.frames.put(servo)

    def error_received(self, error: Exception) -> None:
        """Ignore errors that report a closed port. The bridge detects a lost autopilot by the absence of frames."""

    def answer(self, state: bytes) -> None:
        """Send a state as the answer to the last frame."""
        if self.client is not None and self._transport is not None:
            self._answered = state
            self._transport.sendto(state, self.client)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class ArduPilotBridge:
    """Vehicle driven by an autopilot. Each step of the simulation waits for a servo frame, and the autopilot waits for
    the state after each step.

    If the simulation steps less often than ``RATE``, the bridge extrapolates the motion and sends additional states
    between the steps. Servo frames contain a frame rate. The bridge ignores this rate, because the autopilot derives it
    from the timestamps that the bridge sent. Without an autopilot, the outputs are neutral, and the simulation does not
    wait.
    """

    def __init__(
        self,
        seat: BridgeOptions,
        outputs: dict[int, ServoOutput],
        ranges: Sequence[str],
        aiding: Aiding | None = None,
    ) -> None:
        self.vehicle = BridgedVehicle(seat, self._on_joined)
        self.port = ArduPilotSocket(self.vehicle)
        self._outputs, self._ranges, self._aiding = outputs, ranges, aiding
        self._parts = math.ceil(RATE * seat.period - 1e-6)
        self._mixer: Mixer  # set when the vehicle has joined

    async def run(self, port: int) -> None:
        """Run until the simulation ends."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(lambda: self.port, local_addr=("127.0.0.1", port))
        except OSError as error:
            raise port_unavailable("UDP", port, error) from None
        try:
            if self._aiding is not None:
                await self._aiding.link.open()
            async for broker, step in self.vehicle.steps():
                if self._aiding is not None:
                    self._aiding.advance(broker, step)
                await self._answer_step(broker, step)
        finally:
            self.port.close()
            if self._aiding is not None:
                self._aiding.link.close()

    def _on_joined(self, broker: AsyncBroker) -> None:
        self._mixer = Mixer(self._outputs, broker.actuators)
        if self._aiding is not None:
            self._aiding.on_joined(broker)

    async def _answer_step(self, broker: AsyncBroker, step: Step) -> None:
        motion, ranges = true_motion(step, "an autopilot's physics"), distances(step, self._ranges)
        servo: ServoFrame | None = None
        for k in range(self._parts):
            if self.port.client is not None:
                then = motion.after(k * self.vehicle.options.period / self._parts) if k else motion
                self.port.answer(state_message(then, ranges))
            servo = await self._next()
            if servo is None:
                break
        broker.answer(self._mixer.neutral if servo is None else self._mixer.commands(servo.outputs()))

    async def _next(self) -> ServoFrame | None:
        """Wait for the autopilot's next frame; return None if no autopilot is connected, or if it has stopped sending."""
        servo = await self.port.frames.take(STACK_TIMEOUT_S if self.port.client is not None else 0.0)
        if servo is None and self.port.client is not None:
            self.vehicle.options.report("no data from the autopilot; the vehicle continues with neutral outputs")
            self.port.client = None
        return servo


def parameter_files() -> dict[str, Path]:
    """Return the ArduPilot parameter files for WaVeSim's vehicles and for operation without a human pilot, by name."""
    return {path.stem: path for path in sorted(Path(__file__).with_name("parm").glob("*.parm"), key=lambda p: p.stem)}


def parameters(path: Path) -> list[tuple[str, str, str]]:
    """Return the parameters in a file as (name, value, reason) tuples. The file is in ArduPilot's format: lines with
    NAME VALUE, and comments after #. A comment after an empty line is the reason for the parameters that follow it.
    """
    found, why, after = [], "", "text"
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            text = line.lstrip("# ")
            why, after = (f"{why} {text}" if after == "comment" else text), "comment"
        elif line:
            name, value = line.split()
            found.append((name, value, why))
            after = "text"
        else:
            after = "text"
    return found


def _print_parm(context: click.Context, _: click.Parameter, names: str | None) -> None:
    """Print the files that `--parm` names, in the format of ArduPilot's `--defaults`, and exit."""
    if names is None or context.resilient_parsing:
        return
    known = parameter_files()
    for name in names.split(","):
        if name not in known:
            raise click.BadParameter(f"there are no ArduPilot parameters for '{name}'{suggest_name(name, known)}")
    echo(",".join(str(known[name]) for name in names.split(",")))
    context.exit()


@bridge("ardupilot", period=0.0025)
@autopilot_options(
    FRAMES,
    (65535 - PORT) // PORTS_APART,
    "Instance number, as in ArduPilot's option `-I`; the UDP port is 9002 plus ten times this number.",
)
@click.option(
    "--parm",
    metavar="VEHICLE,...",
    is_eager=True,
    expose_value=False,
    callback=_print_parm,
    help="Print the paths of the parameter files for ArduPilot's --defaults (bluerov2-vectored, unattended-sub, ...) and exit.",
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="SENSOR",
    help="Sensor whose first value is sent as the distance rng_1. Repeat the option to send the "
    "distance from a second sensor as rng_2, and so on.",
)
@aiding_options
def command(
    seat: BridgeOptions,
    frame_: str | None,
    output: tuple[str, ...],
    instance: int,
    also: tuple[str, ...],
    ranges: tuple[str, ...],
    aiding: AidingOptions,
) -> None:
    """Provide the physics for ArduSub or Rover SITL (`--model JSON`)."""
    outputs = chosen(FRAMES, frame_, output)
    last(PORT, PORTS_APART, instance + len(also))
    seats = {k: replace(seat, vehicle=vehicle) for k, vehicle in enumerate((seat.vehicle, *also), instance)}
    bridges = {k: ArduPilotBridge(s, outputs, ranges, aiding.aids(s, k)) for k, s in seats.items()}
    run_together(b.run(PORT + PORTS_APART * k) for k, b in bridges.items())
