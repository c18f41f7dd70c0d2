"""Bridge to PX4. WaVeSim provides physics and sensors through PX4's simulator interface (MAVLink over TCP). See
docs/bridges/px4.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import click

from wavesim_bridges.core import (
    STACK_TIMEOUT_S,
    BridgedVehicle,
    BridgeOptions,
    bridge,
    distances,
    last,
    port_unavailable,
    run_together,
    true_motion,
)
from wavesim_bridges.geo_reference import origin_of, origin_options
from wavesim_bridges.mavlink_codec import MavlinkMessage, MavlinkStream
from wavesim_bridges.px4_sensors import FRAME_US, Px4Sensors
from wavesim_bridges.servo_outputs import Mixer, ServoOutput, autopilot_options, chosen
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import WaveSimError

PORT = 4560
ANSWER_S = 0.1  #: maximum wall time in s to wait for PX4's answer to a frame
#: maximum interval in us between two answers from PX4; if the interval is longer, an answer counts as missed
MOST_GAP_US = 20_000
GAPS = 8  #: number of recent intervals between PX4's answers; their maximum predicts the next interval
MAX_BUFFER_BYTES = 1 << 16  #: number of bytes waiting to be read by PX4 at which the bridge stops sending

_HORIZONTAL = {
    1: ServoOutput("front-starboard"),
    2: ServoOutput("front-port"),
    3: ServoOutput("rear-starboard"),
    4: ServoOutput("rear-port"),
}
#: outputs for PX4's airframes: output number -> actuator in WaVeSim's models
FRAMES = {
    "bluerov2_heavy": {
        **_HORIZONTAL,
        5: ServoOutput("vertical-front-starboard", -1.0),
        6: ServoOutput("vertical-front-port"),
        7: ServoOutput("vertical-rear-starboard"),
        8: ServoOutput("vertical-rear-port", -1.0),
    },
    "bluerov2": {**_HORIZONTAL, 5: ServoOutput("vertical-starboard"), 6: ServoOutput("vertical-port")},
    "boat": {1: ServoOutput("port"), 2: ServoOutput("starboard")},
    "differential": {1: ServoOutput("starboard"), 2: ServoOutput("port")},
    "rudder": {1: ServoOutput("propeller"), 2: ServoOutput("rudder")},
}
ROVS = ("bluerov2", "bluerov2_heavy")  #: airframes for which PX4 receives its position from odometry


class Px4Connection(asyncio.Protocol):
    """One TCP connection to the bridge."""

    def __init__(self, port: Px4Server) -> None:
        self._port, self._stream = port, MavlinkStream()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register a connection. A peer that sends MAVLink becomes the autopilot."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        """Process received bytes."""
        messages, faults = self._stream.feed(data)
        for fault in faults:
            self._port.vehicle.count_dropped(fault)
        for message in messages:
            self._port.handle(self, message)

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the connection."""
        self._port.on_connection_lost(self)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


class Px4Server:
    """Server for PX4, which accepts one connection at a time. It sends a frame every 4 ms of PX4's clock, and receives
    the actuator outputs with which PX4 answers.

    The frames set PX4's clock, which therefore advances by exactly ``FRAME_US`` per frame, regardless of delays. An
    answer contains the time of its frame. Controllers whose rate is lower than the frame rate answer every second
    or third frame. The bridge predicts the time of the next answer from the intervals between recent answers, and waits
    only when an answer is due.
    """

    def __init__(self, vehicle: BridgedVehicle, sensors: Px4Sensors) -> None:
        self.vehicle, self.sensors = vehicle, sensors
        self.client: Px4Connection | None = None
        #: last actuator outputs from PX4, -1 to 1; None if PX4 is not armed or has sent none
        self.controls: list[float | None] | None = None
        self.misses = 0  #: number of answers from PX4 that did not arrive in time
        self._sent_us = 0
        self._answer_us = 0
        self._new = self._is_lockstep = False
        self._gaps: deque[int] = deque(maxlen=GAPS)
        self._free_at = 0.0
        self._came = asyncio.Event()

    # -- receiving

    def handle(self, link: Px4Connection, m: MavlinkMessage) -> None:
        """Process a message from a connection."""
        if self.client is None:
            self._begin(link)
        elif link is not self.client:
            self.vehicle.count_dropped("another sender")
            link.close()
            return
        if m.name == "HIL_ACTUATOR_CONTROLS":
            self._answered(m)
        elif m.name == "COMMAND_LONG" and m.fields["command"] == 511 and m.fields["param1"] == 115:
            self.sensors.set_truth_interval(m.fields["param2"])

    def _begin(self, link: Px4Connection) -> None:
        self.client, self.controls, self._is_lockstep = link, None, False
        self._new = True  # its first frame sets its clock: not before a time already sent
        self._gaps.clear()
        self.sensors.reset()
        host, port = link.transport.get_extra_info("peername")[:2] if link.transport is not None else ("", 0)
        self.vehicle.options.report(f"an autopilot at {host}:{port}")

    def _answered(self, m: MavlinkMessage) -> None:
        outputs, at = m.fields["controls"], m.fields["time_usec"]
        finite = [min(max(u, -1.0), 1.0) if math.isfinite(u) else None for u in outputs]
        if None in finite:
            self.vehicle.count_dropped("not finite")
        self.controls = finite if m.fields["mode"] & 128 else None
        gap = at - self._answer_us
        if 0 < gap <= MOST_GAP_US:
            self._gaps.append(gap)
        self._is_lockstep = 0 <= self._sent_us - at <= MOST_GAP_US
        self._answer_us = at
        self._came.set()

    def on_connection_lost(self, link: Px4Connection) -> None:
        """Handle a closed connection."""
        if link is self.client:
            self.vehicle.options.report("the autopilot has disconnected; the vehicle continues with neutral outputs")
            self.client = self.controls = None
            self._came.set()

    def close(self) -> None:
        if self.client is not None:
            self.client.close()

    # -- sending

    async def exchange(self, motion: VehicleMotion, ranges: list[float]) -> list[float | None] | None:
        """Send a frame and wait for its answer. Return the outputs, or None for neutral outputs."""
        if self.client is None or self.client.transport is None:
            return None
        if self.client.transport.get_write_buffer_size() < MAX_BUFFER_BYTES:
            now_us = round(motion.time * 1e6)
            after = self._sent_us + FRAME_US
            self._sent_us, self._new = max(now_us, after) if self._new else after, False
            self.client.transport.write(self.sensors.frame(motion, self._sent_us, ranges))
        await self._wait()
        silent = self._sent_us - self._answer_us > STACK_TIMEOUT_S * 1e6
        return None if silent else self.controls

    async def _wait(self) -> None:
        """Wait for the answer to the last frame, if one is due. If PX4's controllers are not running, keep pace with
        real time.
        """
        now = asyncio.get_running_loop().time()
        if not self._is_lockstep:
            self._free_at = max(self._free_at + 1e-6 * FRAME_US, now)
            await self._answer_within(self._free_at - now)
        elif self._sent_us - self._answer_us >= max(self._gaps, default=FRAME_US):
            await self._answer_within(ANSWER_S)
            if self.client is not None and self._answer_us < self._sent_us:
                self._count_miss()

    def _count_miss(self) -> None:
        self._is_lockstep = False
        self.misses += 1
        if self.misses == 1:
            self.vehicle.options.report(
                f"no answer within {1e3 * ANSWER_S:g} ms; continuing in real time until one arrives"
            )

    async def _answer_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.client is not None and self._answer_us < self._sent_us:
                    self._came.clear()
                    await self._came.wait()


class Px4Bridge:
    """Vehicle driven by PX4. Without PX4, the outputs are neutral, and the simulation does not wait."""

    def __init__(
        self, seat: BridgeOptions, outputs: dict[int, ServoOutput], sensors: Px4Sensors, ranges: Sequence[str]
    ) -> None:
        self.vehicle = BridgedVehicle(seat, self._on_joined)
        self.port = Px4Server(self.vehicle, sensors)
        self._outputs, self._ranges = outputs, ranges
        self._parts = round(seat.period * 1e6 / FRAME_US)
        if self._parts < 1 or abs(self._parts * FRAME_US - seat.period * 1e6) > 1e-3:
            raise WaveSimError(f"PX4 needs a frame every 4 ms; --period {seat.period:g} is not a multiple of 0.004")
        self._mixer: Mixer  # set when the vehicle has joined

    async def run(self, port: int) -> None:
        """Run until the simulation ends."""
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(lambda: Px4Connection(self.port), "127.0.0.1", port)
        except OSError as error:
            raise port_unavailable("TCP", port, error) from None
        try:
            async for broker, step in self.vehicle.steps():
                await self._answer_step(broker, step)
        finally:
            server.close()
            self.port.close()

    def _on_joined(self, broker: AsyncBroker) -> None:
        self._mixer = Mixer(self._outputs, broker.actuators)

    async def _answer_step(self, broker: AsyncBroker, step: Step) -> None:
        motion, ranges = true_motion(step, "an autopilot's physics"), distances(step, self._ranges)
        outputs = None
        for k in range(self._parts):
            outputs = await self.port.exchange(motion.after(1e-6 * FRAME_US * k) if k else motion, ranges)
        broker.answer(self._mixer.neutral if outputs is None else self._mixer.commands(outputs))


@bridge("px4", period=0.004)
@autopilot_options(
    FRAMES,
    65535 - PORT,
    "Instance number, as in PX4's option `-i`; the TCP port is 4560 plus this number.",
)
@click.option(
    "--odometry/--no-odometry", default=None, help="Send the true pose to PX4; default: only for the ROV presets."
)
@click.option(
    "--range",
    "ranges",
    multiple=True,
    metavar="SENSOR",
    help="Sensor whose first value is sent to PX4 as a downward distance. Repeatable.",
)
@origin_options
def command(
    seat: BridgeOptions,
    frame_: str | None,
    output: tuple[str, ...],
    instance: int,
    also: tuple[str, ...],
    odometry: bool | None,
    ranges: tuple[str, ...],
    latitude: float | None,
    longitude: float | None,
    config: str | None,
) -> None:
    """Provide physics and sensors for PX4 (`px4_sitl none_...`)."""
    outputs = chosen(FRAMES, frame_, output)
    last(PORT, 1, instance + len(also))
    origin = origin_of(latitude, longitude, config)
    with_odometry = frame_ in ROVS if odometry is None else odometry
    run_together(
        Px4Bridge(replace(seat, vehicle=vehicle), outputs, Px4Sensors(origin, with_odometry, k), ranges).run(PORT + k)
        for k, vehicle in enumerate((seat.vehicle, *also), instance)
    )
