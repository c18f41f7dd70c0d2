"""Mission files: waypoints in formats that other programs use.

    mission = read_mission("survey.plan", Origin(latitude, longitude))
    follower = MissionFollower(mission.waypoints, start)

| format | recognised by |
|---|---|
| QGroundControl plan (JSON) | `.plan` or `.json` |
| MAVLink mission as text (`QGC WPL 110`) | its first line |
| Panisim guidance (YAML): XYZ, NED or LLA waypoints | `.yml` or `.yaml` |
| CSV with a header: `north,east` or `latitude,longitude` | `.csv` |

Latitudes and longitudes are converted to W with the world's origin. An altitude is positive upwards, relative to the
water surface (mean sea level, or the home position); the depth is its negative. Entries that are not waypoints are
listed as notices.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.control import Waypoint
from wavesim_sdk.guidance.mavlink_items import MissionItem, Route, read_items

__all__ = ["MissionFile", "parse_mission", "read_mission"]

MAX_BYTES = 4 * 1024 * 1024
MAX_WAYPOINTS = 10_000
MAX_DISTANCE_M = 1e6  #: maximum distance in m of a waypoint from the world's origin
DEFAULT_SPEED = 1.0  #: speed in m/s if neither the file nor the user specifies one
SUFFIXES = (".plan", ".json", ".waypoints", ".yml", ".yaml", ".csv")
_BOATS = (10, 11, 12)  #: MAVLink vehicle types: ground rover, surface boat, submarine
#: accepted names for each column of a CSV file
_COLUMNS = {
    "north": ("north", "n", "northing"),
    "east": ("east", "e", "easting"),
    "latitude": ("latitude", "lat"),
    "longitude": ("longitude", "lon", "lng", "long"),
    "depth": ("depth", "down"),
    "altitude": ("altitude", "alt", "height"),
    "speed": ("speed",),
    "acceptance": ("acceptance", "acceptance_radius"),
    "hold": ("hold", "hold_time"),
}
_UNITS = ("_m", "_m_s", "_mps", "_s", "_deg", " (m)", " [m]", " (deg)", " [deg]", " (m/s)", " [m/s]", " (s)", " [s]")


@dataclass(frozen=True)
class MissionFile:
    """Contents of a mission file, in the world frame W."""

    waypoints: tuple[Waypoint, ...]
    lookahead: float | None = None  #: lookahead distance in m that the file states; None = not stated
    acceptance: float | None = None  #: acceptance radius in m that the file states; None = not stated
    notices: tuple[str, ...] = ()  #: notices about contents other than waypoints, and about converted values
    text: str = field(default="", repr=False)  #: text of the file


def read_mission(
    path: str | Path, origin: Origin | Callable[[], Origin] | None = None, *, speed: float | None = None
) -> MissionFile:
    """Read a mission file.

    ``origin`` is the origin of the world, or a function that returns it. It is needed only if the file contains
    latitudes and longitudes. ``speed`` (m/s) applies to waypoints without a speed in the file. It takes
    precedence over the vehicle's default speed in a plan. Raises ConfigError if the file is invalid or contains no
    waypoint.
    """
    return parse_mission(str(path), _text(Path(path)), origin, speed=speed)


def parse_mission(
    name: str, text: str, origin: Origin | Callable[[], Origin] | None = None, *, speed: float | None = None
) -> MissionFile:
    """Parse the text of a mission file that is called ``name``; see :func:`read_mission`."""
    route = _route(name, text)
    if not route.points:
        raise ConfigError("the file contains no waypoint", name)
    if len(route.points) > MAX_WAYPOINTS:
        raise ConfigError(f"the file has {len(route.points)} waypoints; the maximum is {MAX_WAYPOINTS}", name)
    converter = _Converter(name, origin, speed if speed is not None else route.speed or DEFAULT_SPEED)
    waypoints = tuple(converter.waypoint(k, item) for k, item in enumerate(route.points, 1))
    notices = [*route.notices, *converter.notices()]
    radii = [item.acceptance for item in route.points if item.acceptance]
    acceptance = route.acceptance or (min(radii) if radii else None)
    if len(set(radii)) > 1 and not route.acceptance:
        notices.append(f"the waypoints have different acceptance radii; the smallest, {acceptance:g} m, applies to all")
    if held := [str(k) for k, item in enumerate(route.points, 1) if item.hold]:
        notices.append(
            f"the vehicle does not hold at waypoints: the hold time of waypoint {', '.join(held)} is ignored"
        )
    return MissionFile(waypoints, route.lookahead, acceptance, tuple(notices), text)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the mission file: {error.strerror}", str(path)) from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"the mission file is larger than {MAX_BYTES} bytes", str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError("the mission file is not a text file in UTF-8", str(path)) from None


def _route(name: str, text: str) -> Route:
    readers: dict[str, Callable[[str, str], Route]] = {
        ".plan": _read_plan,
        ".json": _read_plan,
        ".yml": _read_guidance,
        ".yaml": _read_guidance,
        ".csv": _read_csv,
    }
    suffix = Path(name).suffix.lower()
    if text.startswith("QGC WPL") or suffix == ".waypoints":
        return _read_text_items(text, name)
    reader = readers.get(suffix)
    if reader is None:
        raise ConfigError(f"unknown type of mission file '{suffix}'; use {', '.join(SUFFIXES)}", name)
    return reader(text, name)


class _Converter:
    """Converter of route points to waypoints in W."""

    def __init__(self, file: str, origin: Origin | Callable[[], Origin] | None, speed: float) -> None:
        self._file, self._origin, self._speed = file, origin, speed
        self._above: list[str] = []

    def waypoint(self, number: int, point: MissionItem) -> Waypoint:
        x, y, depth = point.x, point.y, point.depth
        down = depth
        if point.is_geodetic:
            if not (abs(x) <= 90.0 and abs(y) <= 360.0):
                raise ConfigError(f"waypoint {number}: invalid latitude and longitude {x:g}, {y:g}", self._file)
            x, y, down = self._world_origin().ned(math.radians(x), math.radians(y), -depth).tolist()
        if not math.isfinite(x + y + down) or max(abs(x), abs(y), abs(down)) > MAX_DISTANCE_M:
            hint = "; check the latitude and longitude of <world>" if point.is_geodetic else ""
            raise ConfigError(
                f"waypoint {number} is more than {MAX_DISTANCE_M / 1000.0:g} km from the world's origin{hint}",
                self._file,
            )
        if depth < 0.0:
            self._above.append(f"{number} ({-depth:g} m)")
        speed = self._speed if point.speed is None else point.speed
        if not 0.0 <= speed < math.inf:
            raise ConfigError(f"waypoint {number}: invalid speed {speed:g} m/s; use 0 or more", self._file)
        return Waypoint(x, y, max(0.0, depth), speed)

    def _world_origin(self) -> Origin:
        if self._origin is None:
            raise ConfigError(
                "the waypoints are latitudes and longitudes; the origin of a world is needed to convert them",
                self._file,
            )
        if not isinstance(self._origin, Origin):
            self._origin = self._origin()
        return self._origin

    def notices(self) -> Iterator[str]:
        if self._above:
            shown = ", ".join(self._above[:5]) + (f" and {len(self._above) - 5} more" if len(self._above) > 5 else "")
            yield f"waypoints above the water surface become waypoints at the surface (depth 0 m): waypoint {shown}"


# ------------------------------------------------------------------ formats


def _read_plan(text: str, file: str) -> Route:
    """Read a QGroundControl plan: simple items, and the simple items that a survey or corridor scan contains."""
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"not a QGroundControl plan: {error}", file) from None
    mission = plan.get("mission") if isinstance(plan, dict) else None
    if not isinstance(mission, dict) or not isinstance(mission.get("items"), list):
        raise ConfigError("not a QGroundControl plan: `mission` with `items` is missing", file)
    notices: list[str] = []
    route = read_items(_plan_items(mission["items"], notices, file), file)
    cruise = mission.get("cruiseSpeed")
    if isinstance(cruise, int | float) and not isinstance(cruise, bool) and cruise > 0.0:
        if mission.get("vehicleType") in _BOATS:
            route.speed = float(cruise)
        else:
            notices.append(
                f"cruiseSpeed ({cruise:g} m/s) is ignored, because the plan is not for a boat or a submarine"
            )
    fence, rally = plan.get("geoFence") or {}, plan.get("rallyPoints") or {}
    for name, found in (
        (
            "geofence",
            [*(fence.get("circles") or []), *(fence.get("polygons") or [])] if isinstance(fence, dict) else [],
        ),
        ("rally points", rally.get("points") if isinstance(rally, dict) else []),
    ):
        if found:
            notices.append(f"the {name} of the plan ({len(found)}) are ignored")
    route.notices[:0] = notices
    return route


def _plan_items(items: Sequence[Any], notices: list[str], file: str) -> Iterator[MissionItem]:
    for k, item in enumerate(items, 1):
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "ComplexItem":
            name, style = str(item.get("complexItemType")), item.get("TransectStyleComplexItem")
            inner = style.get("Items") if isinstance(style, dict) else item.get("Items")
            if not isinstance(inner, list) or not inner:
                notices.append(f"item {k} (complex item '{name}') contains no waypoints and is ignored")
                continue
            notices.append(f"item {k} (complex item '{name}') becomes the waypoints that it contains")
            yield from _plan_items(inner, notices, file)
        elif kind == "SimpleItem" and isinstance(item.get("params"), list) and len(item["params"]) == 7:
            number = item.get("doJumpId", k)
            values = [math.nan if v is None else _number(v, f"item {number}", file) for v in item["params"]]
            command, frame = (int(_number(item.get(n), f"item {number}", file)) for n in ("command", "frame"))
            yield MissionItem.of_mavlink(number, command, frame, values, file)
        else:
            raise ConfigError(f"item {k} of the plan is invalid: expected a SimpleItem with seven `params`", file)


def _read_text_items(text: str, file: str) -> Route:
    """Read a MAVLink mission in text format (QGC WPL). In version 110 of the format, item 0 is the home position; in
    version 120, it is an ordinary item.
    """
    lines = text.splitlines()
    version = lines[0].split() if lines else []
    if version[:2] != ["QGC", "WPL"] or version[2:] not in (["110"], ["120"]):
        raise ConfigError("the first line must be `QGC WPL 110`", file, 1)
    items, notices = [], []
    for line, row in enumerate(lines[1:], 2):
        fields = row.split()
        if not fields or row.startswith("#"):
            continue
        if len(fields) != 12:
            raise ConfigError(f"expected 12 fields, got {len(fields)}", file, line)
        numbers = [_number(f, "the item", file, line) for f in fields]
        index, _, frame, command = (int(v) for v in numbers[:4])
        if index == 0 and version[2] == "110":
            notices.append("item 0 is the home position, not a waypoint")
            continue
        items.append(MissionItem.of_mavlink(index, command, frame, numbers[4:11], file, line))
    route = read_items(items, file)
    route.notices[:0] = notices
    return route


def _read_guidance(text: str, file: str) -> Route:
    """Read the guidance file of a Panisim vessel."""
    from wavesim_sdk.extras import check_installed

    check_installed("yaml")
    import yaml

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 1
        raise ConfigError(f"not valid YAML: {getattr(error, 'problem', None) or error}", file, line) from None
    if not isinstance(found, dict) or not isinstance(found.get("waypoints"), list):
        raise ConfigError("the list `waypoints` is missing", file)
    kind = str(found.get("waypoints_type", "XYZ")).upper()
    if kind not in ("XYZ", "NED", "LLA"):
        raise ConfigError(f"unknown waypoints_type '{kind}'; use XYZ, NED or LLA", file)
    route = Route()
    for k, row in enumerate(found["waypoints"], 1):
        if not isinstance(row, list) or len(row) not in (2, 3):
            raise ConfigError(f"waypoint {k} must be a list of two or three numbers", file)
        x, y, z = [*(_number(v, f"waypoint {k}", file) for v in row), 0.0][:3]
        route.points.append(MissionItem(x, y, -z if kind == "LLA" else z, is_geodetic=kind == "LLA"))
    for name, at in (("lookahead_distance", "lookahead"), ("acceptance_radius", "acceptance")):
        if found.get(name) is not None:
            value = _number(found[name], name, file)
            if not 0.0 < value < math.inf:
                raise ConfigError(f"{name} must be greater than 0 m, got {value:g}", file)
            setattr(route, at, value)
    known = {"waypoints", "waypoints_type", "lookahead_distance", "acceptance_radius"}
    route.notices += [f"the key '{name}' is ignored" for name in found if name not in known]
    return route


def _read_csv(text: str, file: str) -> Route:
    """Read a CSV file whose first line names the columns."""
    rows = [(n, r) for n, r in enumerate(text.splitlines(), 1) if r.strip() and not r.lstrip().startswith("#")]
    if not rows:
        raise ConfigError("the file contains no header", file)
    delimiter = max(",;\t", key=rows[0][1].count)
    route = Route()
    try:
        names = next(csv.reader([rows[0][1]], delimiter=delimiter))
        columns = _csv_columns(names, file, rows[0][0], route.notices)
        for line, row in rows[1:]:
            cells = next(csv.reader([row], delimiter=delimiter))
            if len(cells) != len(names):
                raise ConfigError(f"expected {len(names)} values, got {len(cells)}", file, line)
            given = {n: cells[k].strip() for n, k in columns.items()}
            route.points.append(_csv_point({n: _number(v, n, file, line) for n, v in given.items() if v}, file, line))
    except csv.Error as error:
        raise ConfigError(f"invalid CSV: {error}", file) from None
    return route


def _csv_columns(names: Sequence[str], file: str, line: int, notices: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for k, name in enumerate(names):
        plain = name.strip().lower()
        for unit in _UNITS:
            plain = plain.removesuffix(unit)
        column = next((c for c, known in _COLUMNS.items() if plain in known), None)
        if column is None:
            notices.append(f"the column '{name.strip()}' is ignored")
        elif column in found:
            raise ConfigError(f"two columns contain the {column}", file, line)
        else:
            found[column] = k
    local, geodetic = {"north", "east"} <= found.keys(), {"latitude", "longitude"} <= found.keys()
    if local == geodetic or {"depth", "altitude"} <= found.keys():
        raise ConfigError(
            "the header must name either north and east or latitude and longitude, and at most one of depth and altitude",
            file,
            line,
        )
    return found


def _csv_point(values: Mapping[str, float], file: str, line: int) -> MissionItem:
    is_geodetic = "latitude" in values
    first, second = ("latitude", "longitude") if is_geodetic else ("north", "east")
    if first not in values or second not in values:
        raise ConfigError(f"the line has no values for {first} and {second}", file, line)
    depth = values.get("depth", -values["altitude"] if "altitude" in values else 0.0)
    return MissionItem(
        values[first],
        values[second],
        depth + 0.0,
        is_geodetic=is_geodetic,
        speed=values.get("speed"),
        acceptance=values.get("acceptance", 0.0),
        hold=values.get("hold", 0.0),
    )


def _number(value: Any, what: str, file: str, line: int = 0) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"{what}: '{str(value)[:30]}' is not a number", file, line)
    return number
