"""Water Linked Underwater GPS G2: the topside and its HTTP interface (version 1). Time is simulation time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from wavesim_devices.http import NOT_FOUND, HttpAnswer, HttpConnection
from wavesim_devices.json_fields import Fields, InvalidContent, check_fields
from wavesim_devices.level_frame import Point
from wavesim_devices.ports import Bytes, Connection
from wavesim_devices.waterlinked_ugps import settings as s
from wavesim_devices.waterlinked_ugps.acoustic import (
    PING_LIMIT,
    PositionFilter,
    RawPosition,
    raw_position,
    receiver_distances,
)
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception

TYPES = ("gps", "ahrs", "ctd", "temperature")  #: sensors that the topside reads if the body has them
MASTER_PERIOD_S = 1.0
BOARD_C, WATER_C, BATTERY_PERCENT = 35.0, 15.0, 100
NO_DATA = -1
#: receivers of the antenna in its frame: forward, starboard and down in m (assumed)
RECEIVERS: tuple[Point, ...] = ((0.2, 0.0, 0.0), (-0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.2))
VERSION = {
    "chipid": "0x0123456789abcdef0123456789abcdef",
    "hardware_revision": 1,
    "product_id": 1,
    "product_name": "Underwater GPS G2",
    "variant": "",
    "version": "3.3.1 (wavesim)",
    "version_short": "3.3.1",
    "is_ready": True,
}
_API = "/api/v1/"
_MASTER_FIELDS = ("lat", "lon", "orientation", "cog", "sog", "hdop", "numsats", "fix_quality")


def _no_master() -> dict[str, Any]:
    return {**dict.fromkeys(_MASTER_FIELDS, NO_DATA), "fix_quality": 0, "numsats": 0}


class UnderwaterGps:
    """Virtual topside. ``emission`` is the period and the offset of the locator's pings in s."""

    def __init__(
        self,
        broker: AsyncBroker,
        sensors: Mapping[str, str],
        emission: tuple[float, float],
        antenna_depth: float,
        receivers: Sequence[Point] = RECEIVERS,
    ) -> None:
        self.emission, self.receivers = emission, receivers
        self.antenna = s.AntennaSettings(depth=antenna_depth)
        self.generic = s.GenericSettings(speed_of_sound=broker.welcome.sound_speed)
        self.errors = 0  #: number of rejected requests
        self._sensors = sensors
        self._attitude, self._compass, self._water = (0.0, 0.0), math.nan, WATER_C
        self._onboard: dict[str, Any] | None = None
        self._external: dict[str, Any] | None = None
        self._depth: float | None = None  # of a locator without a depth sensor, from the host
        self._raw: RawPosition | None = None
        self._filter = PositionFilter(emission[0])
        self._now, self._next_master, self._master = 0.0, 0.0, _no_master()
        self._points_of_interest: Any = []
        broker.on_reception(self._listen)
        self._get: dict[str, Callable[[], HttpAnswer]] = {
            "about": lambda: HttpAnswer(200, VERSION),
            "about/status": lambda: HttpAnswer(
                200, {"imu": int("ahrs" in sensors), "gps": int("gps" in sensors), "battery": BATTERY_PERCENT}
            ),
            "about/temperature": lambda: HttpAnswer(200, {"board": BOARD_C, "water": round(self._water, 2)}),
            "position/acoustic/filtered": lambda: self._acoustic(self._filter.point, self._filter.std),
            "position/acoustic/raw": lambda: self._acoustic(self._raw.point if self._raw else None, self._filter.std),
            "position/global": self._global,
            "position/master": lambda: HttpAnswer(200, self._master),
            "config/antenna": lambda: HttpAnswer(200, asdict(self.antenna)),
            "config/generic": lambda: HttpAnswer(200, asdict(self.generic)),
            "config/receivers": lambda: HttpAnswer(200, [self._receiver(k) for k in range(len(receivers))]),
            "poi": lambda: HttpAnswer(200, self._points_of_interest),
            "status_report": lambda: HttpAnswer(200, {"status": "ok"}),
        }
        self._put: dict[str, Callable[[Any], None]] = {
            "config/antenna": lambda content: self._configure(self.antenna, content, s.ANTENNA),
            "config/generic": lambda content: self._configure(self.generic, content, s.GENERIC),
            "external/depth": self._set_depth,
            "external/master": self._set_master,
            "external/orientation": self._set_orientation,
            "external/imu": lambda content: None,
            "imu/calibrate": lambda content: None,
            "poi": self._set_points_of_interest,
            "status_report": lambda content: None,
        }

    # -- hosts -----------------------------------------------------------------------------------

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host."""
        return HttpConnection(self.handle, send)

    def handle(self, method: str, path: str, content: Any) -> HttpAnswer:
        """Answer a host's request."""
        name = path.removeprefix(_API).strip("/") if path.startswith(_API) else ""
        if method == "GET":
            if name in self._get:
                return self._get[name]()
            folder, _, number = name.rpartition("/")
            if folder == "config/receivers" and number.isdecimal() and int(number) < len(self.receivers):
                return HttpAnswer(200, self._receiver(int(number)))
        elif method in ("PUT", "POST") and name in self._put:
            try:
                self._put[name](content)
            except InvalidContent as error:
                self.errors += 1
                return HttpAnswer(400, {"success": False, "error": str(error)})
            return HttpAnswer(200, {"success": True})
        self.errors += 1
        return NOT_FOUND

    def _receiver(self, k: int) -> dict[str, Any]:
        return dict(zip(("id", "x", "y", "z"), (k, *self.receivers[k]), strict=True))

    @staticmethod
    def _configure(target: s.AntennaSettings | s.GenericSettings, content: Any, fields: Fields) -> None:
        for name, value in check_fields(content, fields).items():
            setattr(target, name, value)

    def _set_depth(self, content: Any) -> None:
        self._depth = check_fields(content, s.EXTERNAL_DEPTH_FIELDS, ("depth",))["depth"]

    def _set_master(self, content: Any) -> None:
        if isinstance(content, dict) and "long" in content and "lon" not in content:
            content = {"lon" if k == "long" else k: v for k, v in content.items()}
        self._external = (self._external or _no_master()) | check_fields(content, s.EXTERNAL_MASTER, ("lat", "lon"))

    def _set_orientation(self, content: Any) -> None:
        self._external = (self._external or _no_master()) | check_fields(
            content, s.EXTERNAL_ORIENTATION, ("orientation",)
        )

    def _set_points_of_interest(self, content: Any) -> None:
        self._points_of_interest = content

    # -- positions -------------------------------------------------------------------------------

    @property
    def _is_valid(self) -> bool:
        """Whether the locator was received recently and its position is inside the search area."""
        point = self._filter.point
        if point is None or self._raw is None or self._now - self._raw.time > PING_LIMIT * self.emission[0]:
            return False
        return self.generic.contains(point[0], point[1])

    def _topside_frame(self, point: Point) -> Point:
        """Convert a point relative to the antenna into the frame of the topside, whose origin is at the surface."""
        turn = math.radians(self.antenna.antenna_rotation)
        x, y, z = point
        return (
            self.antenna.x + math.cos(turn) * x - math.sin(turn) * y,
            self.antenna.y + math.sin(turn) * x + math.cos(turn) * y,
            self.antenna.depth + z,
        )

    def _acoustic(self, point: Point | None, std: float) -> HttpAnswer:
        if point is None or self._raw is None:
            return HttpAnswer(500, {"success": False, "error": "the position of the locator is unknown"})
        place, n, valid = self._topside_frame(point), len(self.receivers), self._is_valid
        center = self.antenna.x, self.antenna.y, self.antenna.depth
        far = receiver_distances(place, self.receivers, center, math.radians(self.antenna.antenna_rotation))
        content = {
            "position_valid": valid,
            **{axis: round(v, 4) for axis, v in zip("xyz", place, strict=True)},
            "std": round(std, 4),
            "receiver_distance": [round(d, 4) for d in far],
            "receiver_nsd": [round(self._raw.noise, 1)] * n,
            "receiver_rssi": [round(self._raw.level, 1)] * n,
            "receiver_valid": [valid] * n,
        }
        return HttpAnswer(200, content)

    def _global(self) -> HttpAnswer:
        point, master = self._filter.point, self._current_master()
        if not self._is_valid or point is None:
            return HttpAnswer(500, {"success": False, "error": "the position of the locator is unknown"})
        if not master["fix_quality"] or master["orientation"] == NO_DATA:
            return HttpAnswer(
                500, {"success": False, "error": "the position or the orientation of the topside is unknown"}
            )
        x, y, _ = self._topside_frame(point)
        heading = math.radians(master["orientation"])
        north, east = math.cos(heading) * x - math.sin(heading) * y, math.sin(heading) * x + math.cos(heading) * y
        origin = Origin(math.radians(master["lat"]), math.radians(master["lon"]))
        latitude, longitude = origin.degrees([north, east, 0.0])
        own = {"lat": round(float(latitude), 9), "lon": round(float(longitude), 9)}
        return HttpAnswer(200, {**master, **own, "orientation": NO_DATA, "cog": NO_DATA, "sog": NO_DATA})

    def _current_master(self) -> dict[str, Any]:
        """Return the position and the orientation of the topside, from the selected sources."""
        g = self.generic
        static = {"lat": g.static_lat, "lon": g.static_lon, "hdop": 1, "numsats": 0, "fix_quality": 1}
        sources = {"onboard": self._onboard, "external": self._external, "static": _no_master() | static}
        master = dict(sources[g.gps] or _no_master())
        compass = NO_DATA if math.isnan(self._compass) else self._compass
        outside = (self._external or {}).get("orientation", NO_DATA)
        master["orientation"] = {"onboard": compass, "external": outside, "static": g.static_orientation}[g.compass]
        return master

    # -- the water and the sensors ----------------------------------------------------------------

    def _listen(self, heard: Reception) -> None:
        if heard.kind != SignalKind.PULSE or heard.code != self.generic.channel:
            return
        down: float | None = None
        if self.generic.locator_type == s.EXTERNAL_DEPTH:
            if self._depth is None:
                return
            down = self._depth - self.antenna.depth
        raw = raw_position(heard, self.emission, self.generic.speed_of_sound, self._attitude, down)
        if raw is not None:
            self._raw = raw
            self._filter.update(raw)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now = step.time
        values = {t: step.sensors.get(name) for t, name in self._sensors.items()}
        if (ahrs := values.get("ahrs")) is not None and math.isfinite(ahrs.heading):
            self._attitude = ahrs.roll, ahrs.pitch
            self._compass = round(math.degrees(ahrs.heading) % 360.0, 2)
        for name in ("temperature", "ctd"):
            if (water := values.get(name)) is not None and math.isfinite(water.temperature):
                self._water = water.temperature
        if (gps := values.get("gps")) is not None:
            self._onboard = (
                None
                if not all(map(math.isfinite, gps.numbers))
                else {
                    "lat": math.degrees(gps.latitude),
                    "lon": math.degrees(gps.longitude),
                    "orientation": NO_DATA,
                    "cog": round(math.degrees(gps.cog) % 360.0, 2),
                    "sog": round(gps.sog * 3.6, 3),
                    "hdop": round(gps.hdop, 2),
                    "numsats": round(gps.satellites),
                    "fix_quality": 1,
                }
            )
        if self._now >= self._next_master:
            self._next_master = self._now + MASTER_PERIOD_S
            self._master = self._current_master()
