"""Navigation aids for an autopilot that computes its own position: acoustic fixes and Doppler velocities. The aids are
sent as MAVLink messages over UDP, as a companion computer would send them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

import click

from wavesim_bridges.acoustic_fixes import DEPTH_SIGMA, METHODS, AcousticFixes, PositionFix
from wavesim_bridges.core import BridgeOptions, port_unavailable
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.mavlink_codec import MavlinkMessage, MavlinkWriter, read
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_world.config import load

PORT = 14560  #: UDP port for the navigation aids of the first vehicle
SYSTEM, COMPONENT = 1, 197  #: MAVLink identity of the sender: a visual-inertial odometry component
AUTOPILOT = 1  #: MAVLink component number of an autopilot
HEARTBEAT_S = 1.0  #: interval in s between heartbeats, and between attempts to set the origin
MAX_GAP_S = 1.0  #: maximum interval in s between two Doppler velocities that are combined into one position change


@dataclass(frozen=True)
class AidingOptions:
    """Options of the navigation aids for one or more vehicles."""

    fixes: str | None  #: method of the acoustic fixes
    period: float  #: time in s between two queries
    doppler: str | None  #: name of a Doppler log
    port: int
    config: str | None  #: configuration that contains the transponders and the origin of the world

    def aids(self, seat: BridgeOptions, number: int) -> Aiding | None:
        """Return the navigation aids for the vehicle with the given instance number, or None if no aid is selected."""
        if self.fixes is None and self.doppler is None:
            return None
        if self.config is None:
            raise WaveSimError(
                "--fixes and --doppler need --config FILE, which contains the transponders and the origin of the world"
            )
        loaded = load(self.config)
        world = loaded.config.world
        origin = WorldOrigin(math.degrees(world.latitude), math.degrees(world.longitude))
        source = None if self.fixes is None else AcousticFixes(self.fixes, loaded, seat.vehicle, self.period)
        return Aiding(MavlinkAids(origin, seat.report, self.port + number), source, self.doppler)


def aiding_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the command-line options for the navigation aids, and pass their values to the command as ``aiding``."""

    @click.option(
        "--fixes",
        type=click.Choice(METHODS),
        help="Send acoustic position fixes to the autopilot: lbl = ranges to at least three transponders, usbl = range "
        "and direction from the vehicle's own USBL head to a transponder.",
    )
    @click.option(
        "--fix-period",
        type=Quantity("time", low=0.05),
        default=1.0,
        show_default=True,
        help="Time in s between two acoustic queries.",
    )
    @click.option("--doppler", metavar="SENSOR", help="Doppler log (`dvl`) whose velocities are sent to the autopilot.")
    @click.option(
        "--aiding-port",
        type=click.IntRange(1, 65535),
        default=PORT,
        show_default=True,
        help="UDP port to which the autopilot connects for --fixes and --doppler; the instance number is added to it.",
    )
    @click.option(
        "--config",
        metavar="FILE",
        help="Configuration file that defines the transponders and the origin of the world.",
    )
    @wraps(function)
    def run(
        *args: Any,
        fixes: str | None,
        fix_period: float,
        doppler: str | None,
        aiding_port: int,
        config: str | None,
        **own: Any,
    ) -> None:
        function(*args, aiding=AidingOptions(fixes, fix_period, doppler, aiding_port, config), **own)

    return run


class MavlinkAids(asyncio.DatagramProtocol):
    """MAVLink connection that sends navigation aids to an autopilot. The autopilot opens the connection with a
    heartbeat.
    """

    def __init__(self, origin: WorldOrigin, report: Callable[[str], None], port: int) -> None:
        self._origin, self._report, self._port = origin, report, port
        self._writer = MavlinkWriter(SYSTEM, COMPONENT)
        self._transport: asyncio.DatagramTransport | None = None
        self._address: tuple[str, int] | None = None
        self._system = SYSTEM
        self._beat_at = -math.inf
        self.has_origin = False  #: whether the autopilot has confirmed its origin
        self.sent = 0  #: number of fixes and velocities sent

    async def open(self) -> None:
        """Open the UDP port."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", self._port))
        except OSError as error:
            raise port_unavailable("UDP", self._port, error) from None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        """Process messages from the autopilot, and ignore all other datagrams."""
        for message in read(data)[0]:
            if message.component == AUTOPILOT:
                self._handle(message, address)

    def _handle(self, m: MavlinkMessage, address: tuple[str, int]) -> None:
        if m.name == "HEARTBEAT":
            if address != self._address:
                self._report(f"navigation aids are sent to the autopilot at {address[0]}:{address[1]}")
                self._address, self._system, self.has_origin, self._beat_at = address, m.system, False, -math.inf
        elif m.name == "GPS_GLOBAL_ORIGIN" and address == self._address:
            self.has_origin = True

    def error_received(self, error: Exception) -> None:
        """Ignore errors that report a closed port, because a restarted autopilot connects again."""

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _send(self, name: str, **values: Any) -> None:
        if self._address is not None and self._transport is not None:
            self._transport.sendto(self._writer.frame(name, **values), self._address)

    def beat(self, time: float) -> None:
        """Send a heartbeat if one is due. Also send the origin of the world until the autopilot has confirmed it."""
        if self._address is None or 0.0 <= time - self._beat_at < HEARTBEAT_S:
            return
        self._beat_at = time
        self._send("HEARTBEAT", type=18, autopilot=8, system_status=4, mavlink_version=3)
        if not self.has_origin:
            self._send(
                "SET_GPS_GLOBAL_ORIGIN",
                latitude=round(1e7 * self._origin.latitude),
                longitude=round(1e7 * self._origin.longitude),
                altitude=0,
                target_system=self._system,
                time_usec=round(1e6 * time),
            )

    def send_fix(self, fix: PositionFix) -> None:
        """Send a fix as VISION_POSITION_ESTIMATE. The attitude in this message is 0, and the autopilot must ignore it."""
        if not self.has_origin:
            return  # a position has no meaning before the origin is set
        north, east, depth = fix.position
        covariance = [0.0] * 21
        covariance[0], covariance[1], covariance[6] = fix.covariance
        covariance[11] = DEPTH_SIGMA**2
        self._send(
            "VISION_POSITION_ESTIMATE", usec=round(1e6 * fix.time), x=north, y=east, z=depth, covariance=covariance
        )
        self.sent += 1

    def send_velocity(self, time: float, velocity: tuple[float, float, float], seconds: float) -> None:
        """Send the velocity (m/s, body frame) over the last ``seconds`` s as VISION_POSITION_DELTA."""
        self._send(
            "VISION_POSITION_DELTA",
            time_usec=round(1e6 * time),
            time_delta_usec=round(1e6 * seconds),
            position_delta=[v * seconds for v in velocity],
            confidence=100.0,
        )
        self.sent += 1


class Aiding:
    """Navigation aids for one vehicle, measured with its transducer and sensors and sent to its autopilot."""

    def __init__(self, link: MavlinkAids, fixes: AcousticFixes | None, doppler: str | None) -> None:
        self.link, self.fixes = link, fixes
        self._doppler, self._measured_ns = doppler, 0

    def on_joined(self, broker: AsyncBroker) -> None:
        """Check that the vehicle has the required sensors."""
        if self.fixes is not None:
            self.fixes.on_joined(broker)
        logs = [s.name for s in broker.sensors if s.type == "dvl"]
        if self._doppler is not None and self._doppler not in logs:
            known = suggest_name(self._doppler, logs) or f"; it has {', '.join(logs) or 'none'}"
            raise BrokerError(f"'{broker.join.name}' has no Doppler log '{self._doppler}'{known}")

    def advance(self, broker: AsyncBroker, step: Step) -> None:
        """Process a step of the simulation."""
        self.link.beat(step.time)
        if self.fixes is not None:
            for fix in self.fixes.advance(broker, step):
                self.link.send_fix(fix)
        value = step.sensors.get(self._doppler) if self._doppler is not None else None
        if value is not None and value.time_ns != self._measured_ns:
            seconds, self._measured_ns = 1e-9 * (value.time_ns - self._measured_ns), value.time_ns
            if 0.0 < seconds <= MAX_GAP_S and all(map(math.isfinite, value.bottom)):
                self.link.send_velocity(1e-9 * value.time_ns, value.bottom, seconds)
