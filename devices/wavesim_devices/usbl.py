"""Virtual ship USBL: it interrogates beacons in turn and sends telegrams with their positions. Time is simulation time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from wavesim_devices import usbl_telegrams as t
from wavesim_devices.level_frame import level_direction
from wavesim_devices.ports import Bytes
from wavesim_devices.usbl_telegrams import BeaconFix, ShipState
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.epoch import utc
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.wire.items import Reception
from wavesim_sdk.wire.state import Value

TYPES = ("ahrs", "gps")  #: sensors that the USBL reads
GEOGRAPHIC = ("PTSAG", "PSONLLD")  #: telegrams that require a position of the ship


@dataclass(frozen=True)
class UsblBeacon:
    """Beacon to interrogate: a modem, identified by its address, or a transponder, identified by the frequency (Hz) of
    its query.
    """

    number: int
    address: int = 0  #: acoustic address of the modem; 0 = the beacon is a transponder
    frequency: float = 0.0
    code: int | None = None  #: code of the query

    def interrogate(self, broker: AsyncBroker) -> int:
        """Send the query and return the number of the request."""
        return broker.range_to(self.address) if self.address else broker.ping(self.frequency, code=self.code)


@dataclass(frozen=True)
class UsblOptions:
    """Settings of the virtual USBL. ``head_offset`` is the position of the head along the body axes (m), measured
    horizontally from the satellite antenna and vertically from the waterline.
    """

    beacons: Sequence[UsblBeacon]
    telegrams: Sequence[str] = ("PSIMSSB",)
    period: float = 2.0  #: time in s from one interrogation to the next
    orientation: str = "H"  #: coordinate system of the PSIMSSB telegrams
    head_offset: tuple[float, float, float] = (0.0, 0.0, 0.0)


class ShipUsbl:
    """Virtual USBL. It is a talker, so it ignores bytes from hosts and counts them in ``ignored``."""

    def __init__(self, broker: AsyncBroker, send: Bytes, sensors: Mapping[str, str], options: UsblOptions) -> None:
        self.broker, self.send, self.options = broker, send, options
        self.ignored, self.replies, self.losses = 0, 0, 0
        self._sensors = sensors
        self._turn, self._frame = 0, 0
        self._next: float | None = None  # time of the next interrogation; None until the first state arrives
        self._asked: UsblBeacon | None = None  # the beacon whose reply is awaited
        self._request, self._signal = 0, 0  # its request, and the signal of the query (0 = it has not left)

    def receive(self, data: bytes) -> None:
        """Ignore received bytes, because a talker only sends."""
        self.ignored += len(data)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        for sent in step.sent:
            if sent.request == self._request:
                self._signal = sent.id
        ahrs, gps = (step.sensors.get(self._sensors.get(type_, "")) for type_ in TYPES)
        for heard in step.receptions:
            if self._asked is not None and self._signal and heard.query == self._signal and heard.range is not None:
                self._report(heard, self._asked, ahrs, gps)
                self._asked = None
        if self._next is None:
            self._next = step.time
        if step.time >= self._next:
            self._next += self.options.period * max(1, math.ceil((step.time - self._next) / self.options.period + 1e-9))
            if self._asked is not None:
                self._lose(step, self._asked)
            self._asked = self.options.beacons[self._turn]
            self._turn = (self._turn + 1) % len(self.options.beacons)
            self._signal, self._request = 0, self._asked.interrogate(self.broker)

    def _lose(self, step: Step, beacon: UsblBeacon) -> None:
        self.losses += 1
        time = utc(step.state.time_ns)
        for name in self.options.telegrams:
            if name in _LOST:
                self.send(_LOST[name](self, time, beacon.number))

    def _report(self, heard: Reception, beacon: UsblBeacon, ahrs: Value | None, gps: Value | None) -> None:
        if heard.azimuth is None or heard.elevation is None or heard.range is None or ahrs is None:
            return  # no head, or no compass: the beacon counts as lost
        self.replies += 1
        self._frame = self._frame % t.MAX_FRAME + 1
        roll, pitch, heading = ahrs.roll, ahrs.pitch, ahrs.heading
        direction = level_direction(heard.azimuth, heard.elevation, roll, pitch)
        lever = self._level_offset(roll, pitch)
        forward, starboard, depth = (heard.range * d + o for d, o in zip(direction, lever, strict=True))
        north = math.cos(heading) * forward - math.sin(heading) * starboard
        east = math.sin(heading) * forward + math.cos(heading) * starboard
        latitude = longitude = math.nan
        ship = None
        time = utc(heard.reception_ns)
        if gps is not None and math.isfinite(gps.latitude):
            place = Origin(gps.latitude, gps.longitude).geodetic([north, east, 0.0])
            latitude, longitude = float(place[0]), float(place[1])
            ship = ShipState(time, gps.latitude, gps.longitude, gps.sog, heading, roll, pitch)
        fix = BeaconFix(time, beacon.number, forward, starboard, depth, north, east, latitude, longitude)
        bare = ship or ShipState(time, math.nan, math.nan, 0.0, heading, roll, pitch)
        for name in self.options.telegrams:
            if ship is not None or name not in GEOGRAPHIC:
                self.send(_TELEGRAMS[name](self, fix, bare))

    def _level_offset(self, roll: float, pitch: float) -> tuple[float, float, float]:
        x, y, z = self.options.head_offset
        distance = math.sqrt(x * x + y * y + z * z)
        if not distance:
            return 0.0, 0.0, 0.0
        direction = level_direction(math.atan2(y, x), math.asin(z / distance), roll, pitch)
        return direction[0] * distance, direction[1] * distance, direction[2] * distance


_TELEGRAMS: Mapping[str, Callable[[ShipUsbl, BeaconFix, ShipState], bytes]] = MappingProxyType(
    {
        "PSIMSSB": lambda u, fix, _: t.psimssb(fix, u.options.orientation),
        "PSIMSNS": lambda _, fix, ship: t.psimsns(ship),
        "PTSAG": lambda u, fix, ship: t.ptsag_ship(u._frame, ship) + t.ptsag(u._frame, fix),
        "PTSAX": lambda u, fix, _: t.ptsax(u._frame, fix),
        "PTSAH": lambda _, fix, ship: t.ptsah(ship),
        "PSONLLD": lambda _, fix, ship: t.psonlld(fix),
    }
)
TELEGRAMS = tuple(_TELEGRAMS)
_LOST: Mapping[str, Callable[..., bytes]] = MappingProxyType(
    {
        "PSIMSSB": lambda u, time, number: t.psimssb_lost(time, number, u.options.orientation),
        "PSONLLD": lambda _, time, number: t.psonlld_lost(time, number),
    }
)
