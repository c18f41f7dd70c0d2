"""Buoyancy of a vehicle: from collision shapes (gz-sim), from <volume> (UUV Simulator) or from points (VRX); buoyancy
engines and drop weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_server.importers.gazebo.elements import Element, describe
from wavesim_server.importers.gazebo.frames import MassSum, RigidPose
from wavesim_server.importers.gazebo.robot import LinkShape, Robot, RobotLink
from wavesim_server.importers.model_draft import ModelDraft, format_numbers

G = 9.81
Body = Callable[[RigidPose], RigidPose]


def density(draft: ModelDraft, robot: Robot) -> float:
    """Return the density of the water in kg/m3 that the file states, and add a note."""
    found: dict[float, str] = {}
    for plugin in robot.plugins:
        for tag in ("uniform_fluid_density", "graded_buoyancy", "fluid_density"):
            element = plugin.find(tag)
            inner = element.find("default_density") if element is not None and tag == "graded_buoyancy" else element
            if inner is not None:
                robot.use.mark(element)
                found.setdefault(robot.use.numbers(inner, 1)[0], describe(plugin))
    if len(found) > 1:
        draft.notes.append("the file has several densities: " + ", ".join(f"{k:g} ({v})" for k, v in found.items()))
    value = next(iter(found), 1000.0)
    why = "" if found else " (gz-sim's default)"
    draft.notes.append(f"the file is for water of {value:g} kg/m3{why}; set <world density=...> to this value")
    return value


def add(draft: ModelDraft, robot: Robot, base: RobotLink, body: Body, masses: MassSum, rho: float) -> None:
    """Add <buoyancy>, or <restoring> for a vehicle that floats on points."""
    plugins = [p for p in robot.plugins if p.get("name", "").endswith("::Surface") or "libsurface" in _file(p)]
    hulls = [p for p in robot.plugins if "PolyhedraBuoyancyDrag" in p.get("name", "")]
    for plugin in hulls:
        draft.unused.append(f"{describe(plugin)}: buoyancy and drag of polyhedra in waves")
        robot.use.mark_all(plugin)
    for plugin in robot.plugins:
        if plugin.get("name", "").endswith("::Buoyancy") or "buoyancy-system" in _file(plugin):
            _read_world_plugin(draft, robot, plugin)
    if plugins:
        _add_points(draft, robot, plugins, body, masses)
        return
    parts = _uuv_volumes(draft, robot, body, masses, rho)
    if parts is None:
        parts = [_volume(robot, link, body) for link in robot.links.values()]
        if draft.attributes["type"] == "underwater":
            draft.notes.append(
                "the displaced volume is that of the collision shapes, as in gz-sim's Buoyancy plugin, which belongs to the world"
            )
    volume = sum(v for v, _ in parts)
    if volume <= 0.0:
        given = draft.require_numbers("volume", 1)
        if given is not None:
            draft.add("buoyancy", volume=f"{given[0]:.12g} m3", centre=format_numbers(*masses.centre) + " m")
            draft.notes.append("the centre of buoyancy is at the centre of mass, because the file has no volume")
        return
    centre = sum((v * c for v, c in parts), np.zeros(3)) / volume
    draft.add("buoyancy", volume=f"{volume:.12g} m3", centre=format_numbers(*np.round(centre, 9)) + " m")


def _file(plugin: Element) -> str:
    return plugin.get("filename", "").lower()


def _read_world_plugin(draft: ModelDraft, robot: Robot, plugin: Element) -> None:
    robot.use.mark(plugin)
    for tag in ("uniform_fluid_density", "graded_buoyancy"):
        robot.use.mark_all(plugin.find(tag))
    for enable in plugin.findall("enable"):
        robot.use.mark(enable)


def _volume(robot: Robot, link: RobotLink, body: Body) -> tuple[float, Floats]:
    """Return the volume of the collision shapes of a link, and its centre in body axes. As in gz-sim, the centre of a
    mesh is the origin of its frame.
    """
    total, moment = 0.0, np.zeros(3)
    for shape in link.collisions:
        volume = shape_volume(robot, shape)
        total += volume
        moment += volume * body(link.pose.then(shape.pose)).position
    return total, moment / total if total > 0.0 else np.zeros(3)


def shape_volume(robot: Robot, shape: LinkShape) -> float:
    """Return the volume of a shape in m3."""
    s = shape.size
    if shape.kind == "box":
        return s[0] * s[1] * s[2]
    if shape.kind == "sphere":
        return 4.0 / 3.0 * math.pi * s[0] ** 3
    if shape.kind == "ellipsoid":
        return 4.0 / 3.0 * math.pi * s[0] * s[1] * s[2]
    if shape.kind == "cone":
        return math.pi * s[0] ** 2 * s[1] / 3.0
    if shape.kind in ("cylinder", "capsule"):
        return math.pi * s[0] ** 2 * (s[1] + (4.0 / 3.0 * s[0] if shape.kind == "capsule" else 0.0))
    triangles = mesh_triangles(robot, shape)
    if triangles is None:
        return 0.0
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    return abs(float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum())) / 6.0


def mesh_triangles(robot: Robot, shape: LinkShape) -> Floats | None:
    """Return the triangles (n, 3, 3) of a mesh in m, in the frame of the shape; None, with an entry in the list of lost
    content, if the file cannot be read.
    """
    from wavesim_world.hull_reader import FORMATS, read_parts

    path = Path(shape.uri)
    if not path.is_file():
        _lose(robot, f"{describe(shape.element)}: mesh {shape.uri} not found; give its folder with --path")
        return None
    if path.suffix.lower().lstrip(".") not in FORMATS:
        _lose(robot, f"{describe(shape.element)}: the type of the mesh {path.name} is none of {', '.join(FORMATS)}")
        return None
    try:
        parts = read_parts(path)
    except (WaveSimError, ConfigError) as error:
        _lose(robot, f"{describe(shape.element)}: mesh {path.name}: {error}")
        return None
    scale = np.array(shape.size if len(shape.size) == 3 else shape.size[:1] * 3)
    return np.asarray(np.concatenate([p.vertices[p.triangles] for p in parts]) * scale)


def _lose(robot: Robot, text: str) -> None:
    if text not in robot.lost:
        robot.lost.append(text)


def _uuv_volumes(
    draft: ModelDraft, robot: Robot, body: Body, masses: MassSum, rho: float
) -> list[tuple[float, Floats]] | None:
    """Return the volumes that UUV Simulator's plugin states and their centres in body axes; None without such a plugin.

    Gazebo applies this force at a point relative to the centre of mass of the link.
    """
    use, found = robot.use, None
    for plugin in robot.plugins:
        if "uuv_underwater_object" not in _file(plugin):
            continue
        found = found or []
        for element in plugin.findall("link"):
            link = robot.find_link(element.get("name", ""))
            if link is None:
                continue
            volume = use.number(element, "volume", 0.0)
            if use.flag(element, "neutrally_buoyant", False):
                volume = link.mass / use.number(plugin, "fluid_density", 1028.0)
            centre = use.vector(element, "center_of_buoyancy", (0.0, 0.0, 0.0))
            if link.centre.any():
                draft.notes.append(f"{describe(element)}: Gazebo counts center_of_buoyancy from the centre of mass")
            at = body(link.pose)
            found.append((volume, at.position + at.rotation @ (link.centre + centre)))
            for tag in ("metacentric_width", "metacentric_length", "submerged_height"):
                if element.find(tag) is not None:
                    draft.unused.append(f"{describe(element)} / {tag} = {use.text(element, tag)}")
    return found


def _add_points(draft: ModelDraft, robot: Robot, plugins: list[Element], body: Body, masses: MassSum) -> None:
    """Add the restoring matrix of VRX's Surface plugin, linearised about the equilibrium: hulls with a circular section
    whose buoyancy acts at points.
    """
    use, hulls = robot.use, []
    for plugin in plugins:
        use.mark(plugin)
        link = robot.find_link(use.text(plugin, "link_name"))
        if link is None:
            raise use.fail(plugin, "there is no such link")
        points = use.child(plugin, "points")
        given = [use.numbers(p, 3) for p in (points if points is not None else [])]
        for point in points if points is not None else []:
            use.mark(point)
        if not given:
            raise use.fail(plugin, "there are no <points>")
        use.mark_all(plugin.find("wavefield"))
        length, radius = use.number(plugin, "hull_length", 4.9), use.number(plugin, "hull_radius", 0.213)
        force = length / len(given) * use.number(plugin, "fluid_density", 997.8) * G
        level, at = use.number(plugin, "fluid_level", 0.0), body(link.pose)
        hulls += [(at.position + at.rotation @ np.array(p), radius, force, level) for p in given]

    def wrench(z: float, roll: float, pitch: float) -> Floats:
        down = np.array([-math.sin(pitch), math.sin(roll) * math.cos(pitch), math.cos(roll) * math.cos(pitch)])
        total = np.concatenate([masses.mass * G * down, np.cross(masses.centre, masses.mass * G * down)])
        for place, radius, force, level in hulls:
            depth = min(max(z + float(place @ down) + level, 0.0), radius)
            up = -force * _segment(radius, depth) * down
            total += np.concatenate([up, np.cross(place, up)])
        return total

    low, high = -5.0, 5.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if wrench(middle, 0.0, 0.0)[2] > 0.0 else (low, middle)
    z, g, h = 0.5 * (low + high), np.zeros((6, 6)), 1e-5
    if abs(wrench(z, 0.0, 0.0)[2]) > 1e-3 * masses.mass * G:
        draft.unused.append("the points of the Surface plugin do not carry the weight of the vehicle")
        return
    for k in range(3):
        step = np.eye(3)[k] * h
        g[:, 2 + k] = -(wrench(z + step[0], *step[1:]) - wrench(z - step[0], *-step[1:])) / (2 * h)
    g[np.abs(g) < 1e-6 * np.abs(g).max()] = 0.0
    trim = wrench(z, 0.0, 0.0)
    g[[0, 1, 5]] = 0.0
    from lxml import etree

    element = etree.Element("restoring", {"z": f"{z:.9g} m"})
    element.text = "\n" + "\n".join("      " + format_numbers(*np.round(row, 6)) for row in g) + "\n    "
    draft.elements.append(element)
    draft.notes.append(
        f"<restoring> is the buoyancy of the Surface plugins linearised about the draft at which they carry {masses.mass:g} kg; "
        f"there, the file leaves moments of {trim[3]:.4g} and {trim[4]:.4g} N m (roll, pitch), which the model does not have"
    )


def _segment(radius: float, depth: float) -> float:
    """Return the area of the part of a circle up to a depth from its lowest point."""
    if depth <= 0.0:
        return 0.0
    return radius**2 * math.acos((radius - depth) / radius) - (radius - depth) * math.sqrt(
        max(0.0, 2.0 * radius * depth - depth**2)
    )


def add_ballast(draft: ModelDraft, robot: Robot, body: Body) -> None:
    """Add buoyancy engines and drop weights as ballast. A dropped weight is a negative mass."""
    use = robot.use
    for plugin in robot.plugins:
        if plugin.get("name", "").endswith("::BuoyancyEngine"):
            use.mark(plugin)
            link = robot.find_link(use.text(plugin, "link_name"))
            if link is None:
                raise use.fail(plugin, "there is no such link")
            rho = use.number(plugin, "fluid_density", 1000.0)
            neutral = use.number(plugin, "neutral_volume", 0.0003)
            least, most = use.number(plugin, "min_volume", 0.00003), use.number(plugin, "max_volume", 0.00099)
            initial = use.number(plugin, "default_volume", 0.00003)
            rate = use.number(plugin, "max_inflation_rate", 0.000003)
            use.text(plugin, "namespace")
            draft.add(
                "ballast",
                name="buoyancy-engine",
                position=format_numbers(*np.round(body(link.pose).position, 9)) + " m",
                minimum=f"{rho * (neutral - most):.9g} kg",
                maximum=f"{rho * (neutral - least):.9g} kg",
                rate=f"{rho * rate:.9g}",
                initial=f"{rho * (neutral - initial):.9g} kg",
            )
            draft.notes.append(
                f"{describe(plugin)}: the command is the mass {rho:g} kg/m3 (neutral volume - volume); without a command, the "
                "volume becomes neutral"
            )
        elif plugin.get("name", "").endswith("::DetachableJoint"):
            link = robot.find_link(plugin.findtext("child_link") or "")
            if link is None or (plugin.findtext("child_model") or "").strip() != "__model__":
                continue
            use.mark_all(plugin)
            draft.add(
                "ballast",
                name=link.name.replace("::", "-").replace("_", "-").lower(),
                position=format_numbers(*np.round(body(link.pose).position + body(link.pose).rotation @ link.centre, 9))
                + " m",
                minimum=f"{-link.mass:.9g} kg",
                maximum="0 kg",
            )
            draft.notes.append(
                f"{describe(plugin)}: the command {-link.mass:g} kg drops the weight; the model can also take it back"
            )
