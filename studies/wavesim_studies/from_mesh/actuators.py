"""Thrusters and fins of a model: stated by the user, measured from named parts of the mesh, or assumed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.model_draft import format_numbers
from wavesim_server.model_estimate import FIN_AREA_SHARE
from wavesim_studies.from_mesh import appendages
from wavesim_studies.from_mesh.appendages import FinEstimate
from wavesim_world.hull_geometry import part_frame

FIN_LIMIT, FIN_RATE = "25 deg", "90 deg/s"
FIN_ASPECT_RATIO = 3.0  #: effective aspect ratio of a fin of which the user states only the area


class ThrusterPart(NamedTuple):
    """Thruster: name, position in m, unit direction, minimum and maximum force in N, and the source of the values.

    The limits are 0 until :func:`with_limits` has computed them.
    """

    name: str
    position: Array
    direction: Array
    minimum: float
    maximum: float
    source: str

    def attributes(self) -> dict[str, str]:
        """Return the attributes of <thruster>."""
        return {
            "name": self.name,
            "position": f"{format_numbers(*np.round(self.position, 5))} m",
            "direction": format_numbers(*np.round(self.direction, 6)),
            "law": "force",
            "minimum": f"{self.minimum:.4g}",
            "maximum": f"{self.maximum:.4g}",
            "lag": "0.2 s",
        }


class FinPart(NamedTuple):
    """Fin: name, position of its centre of pressure in m, normal, area in m2, lift slope in 1/rad with its relative
    standard deviation, stall angle in rad, drag at angle 0 divided by the square of the speed in kg/m, and the source.
    """

    name: str
    position: Array
    normal: Array
    area: float
    lift_slope: float
    deviation: float
    stall: float
    drag: float
    source: str

    def attributes(self) -> dict[str, str]:
        """Return the attributes of <fin>."""
        return {
            "name": self.name,
            "position": f"{format_numbers(*np.round(self.position, 5))} m",
            "normal": format_numbers(*np.round(self.normal, 6)),
            "area": f"{self.area:.4g} m2",
            "lift_slope": f"{self.lift_slope:.4g}",
            "stall": f"{math.degrees(self.stall):.4g} deg",
            "limit": FIN_LIMIT,
            "rate": FIN_RATE,
            "lag": "0.1 s",
        }


def numbers_after_name(text: str, count: Sequence[int], option: str, form: str) -> tuple[str, list[float]]:
    """Return the name and the numbers in the value of an option. Raises ConfigError unless their number is allowed."""
    name, *words = text.replace(",", " ").split() or [""]
    try:
        values = [float(w) for w in words]
    except ValueError:
        values = []
    if not name or len(values) not in count or not all(map(math.isfinite, values)):
        raise ConfigError(f"{option} '{text}': use \"{form}\"")
    return name, values


def _unit(v: Sequence[float], option: str) -> Array:
    a = np.array(v, float)
    size = math.sqrt(float(a @ a))
    if size < 1e-9:
        raise ConfigError(f"{option}: the direction must not be zero")
    return a / size


def thruster(text: str) -> ThrusterPart:
    """Return the thruster that the option --thruster states."""
    form = "NAME X Y Z DX DY DZ MAX"
    name, v = numbers_after_name(text, (6, 7), "--thruster", form)
    most = v[6] if len(v) == 7 else 0.0
    if len(v) == 7 and most <= 0.0:
        raise ConfigError(f"--thruster '{text}': MAX must be above 0 N")
    return ThrusterPart(name, np.array(v[:3]), _unit(v[3:6], "--thruster"), -most, most, "--thruster")


def thruster_of_part(text: str, parts: Mapping[str, Array]) -> ThrusterPart:
    """Return the thruster that is a part of the mesh. The text is its name, or NAME=MAX."""
    name, _, most = text.partition("=") if text not in parts else (text, "", "")
    frame = part_frame(parts[name])
    try:
        force = float(most or 0.0)
    except ValueError:
        force = -1.0
    if force < 0.0 or not math.isfinite(force):
        raise ConfigError(f"--thruster-part '{text}': use NAME or NAME=MAX, with the maximum force in N")
    return ThrusterPart(valid_name(name), frame.centre, frame.axis, -force, force, f"part '{name}' of the mesh")


def part_name(text: str, parts: Sequence[str]) -> str:
    """Return the name of a part in the value of --thruster-part."""
    return text if text in parts else text.partition("=")[0]


def valid_name(text: str) -> str:
    """Return a name for an actuator: letters, digits and dashes."""
    return "-".join("".join(c if c.isalnum() and c.isascii() else " " for c in text).split()).lower()[:24] or "part"


def fin(text: str) -> FinPart:
    """Return the fin that the option --fin states."""
    name, v = numbers_after_name(text, (7, 8), "--fin", "NAME X Y Z NX NY NZ AREA [ASPECT-RATIO]")
    area, aspect = v[6], v[7] if len(v) == 8 else FIN_ASPECT_RATIO
    if area <= 0.0 or aspect <= 0.0:
        raise ConfigError(f"--fin '{text}': the area in m2 and the aspect ratio must be above 0")
    return _fin(name, np.array(v[:3]), _unit(v[3:6], "--fin"), area, aspect, "--fin")


def _fin(name: str, position: Array, normal: Array, area: float, aspect: float, source: str) -> FinPart:
    return FinPart(
        name,
        position,
        normal,
        area,
        appendages.lift_slope(aspect),
        appendages.SLOPE_DEVIATION,
        appendages.stall_angle(aspect),
        0.0,
        f"{source}; lift slope of Whicker and Fehlner with an effective aspect ratio of {aspect:g}",
    )


def fin_of_part(name: str, parts: Mapping[str, Array], hull: Array, speed: float) -> tuple[FinPart, FinEstimate]:
    """Return the fin that is a part of the mesh, and its estimate."""
    try:
        found = appendages.fin(parts[name], speed, hull)
    except ValueError as error:
        raise ConfigError(f"--fin-part '{name}': {error}") from None
    made = FinPart(
        valid_name(name),
        found.position,
        found.normal,
        found.area,
        found.lift_slope,
        appendages.SLOPE_DEVIATION,
        found.stall,
        found.drag,
        f"part '{name}' of the mesh; {'; '.join(found.notes)}",
    )
    return made, found


def assumed_thrusters(kind: str, hull: Array) -> list[ThrusterPart]:
    """Return thrusters for a vehicle of which the user states none: a propeller at the stern of an underwater vehicle,
    and two at the stern of a boat, which turn it.
    """
    points = hull.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    middle = 0.5 * (low + high)
    ahead = np.array([1.0, 0.0, 0.0])
    if kind == "underwater":
        at = np.array([low[0], middle[1], middle[2]])
        return [ThrusterPart("propeller", at, ahead, 0.0, 0.0, "assumed: at the stern")]
    side = 0.25 * (high[1] - low[1])
    return [
        ThrusterPart(name, np.array([low[0], middle[1] + y, high[2]]), ahead, 0.0, 0.0, "assumed: at the stern")
        for name, y in (("port", -side), ("starboard", side))
    ]


def assumed_fins(hull: Array) -> list[FinPart]:
    """Return the four fins of a torpedo, as in `wavesim vehicles estimate`."""
    points = hull.reshape(-1, 3)
    low, high = points.min(axis=0), points.max(axis=0)
    length, middle, half = high[0] - low[0], 0.5 * (low + high), 0.5 * (high - low)
    area = FIN_AREA_SHARE * float(length) * float(half[1] + half[2])
    source = f"assumed: {100 * FIN_AREA_SHARE:.2g} % of length times diameter, as on the LAUV"
    found = []
    for name, y, z, normal in (
        ("rudder-top", 0.0, -1.2, (0.0, 1.0, 0.0)),
        ("rudder-bottom", 0.0, 1.2, (0.0, 1.0, 0.0)),
        ("plane-port", -1.2, 0.0, (0.0, 0.0, 1.0)),
        ("plane-starboard", 1.2, 0.0, (0.0, 0.0, 1.0)),
    ):
        at = middle + [-0.42 * length, y * half[1], z * half[2]]
        found.append(_fin(name, at, np.array(normal), area, FIN_ASPECT_RATIO, source))
    return found


def with_limits(thrusters: Sequence[ThrusterPart], drag: float) -> list[ThrusterPart]:
    """Return the thrusters, with limits for those without one. ``drag`` is the axial drag in N at the design speed."""
    limits = appendages.thruster_limits([t.direction.tolist() for t in thrusters], drag)
    return [
        t
        if t.maximum > 0.0
        else t._replace(
            minimum=low, maximum=high, source=f"{t.source}; force assumed: twice the drag at the design speed"
        )
        for t, (low, high) in zip(thrusters, limits, strict=True)
    ]


def check_names(thrusters: Sequence[ThrusterPart], fins: Sequence[FinPart]) -> None:
    """Raise ConfigError if two actuators have the same name."""
    names = [*(t.name for t in thrusters), *(f.name for f in fins)]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two actuators have the name '{name}': rename one of them")
