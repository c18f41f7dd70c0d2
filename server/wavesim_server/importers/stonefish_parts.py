"""Parts of a Stonefish body: mass, buoyancy, added mass and drag, as Stonefish computes them from the geometry.

Stonefish replaces each part by an ellipsoid (a cylinder or a sphere for these shapes). Its added mass is the mean of three
coefficients of that shape, equal in all directions. The drag of each external part is a sum over the triangles that face
the flow: `|v| (v n) A` along the flow at the centre of the triangle, times a drag coefficient for the direction of the
force; it grows with the third power of the speed. Skin friction is the sum of forces on all triangles, linear in
the speed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import stonefish_shapes as shapes
from wavesim_server.importers.spatial_matrices import spatial_inertia
from wavesim_server.importers.stonefish_scenario import StonefishScenario, frame, number, vector

FRICTION = 0.1  #: skin friction coefficients as a fraction of the drag coefficients
IN_WATER = ("submerged", "floating")


class StonefishPart(NamedTuple):
    """Part of a body. Points and axes are those of the body; inertias are about the part's centre of mass."""

    name: str
    external: bool
    mass: float
    added_mass: float
    inertia: Floats  #: (3, 3)
    added_inertia: Floats  #: (3, 3)
    centre: Floats  #: centre of mass (3,)
    volume: float  #: displaced volume in m3; 0 for a part without buoyancy
    centre_of_buoyancy: Floats  #: (3,)
    corners: Floats  #: triangles (n, 3, 3)
    axes: Floats  #: rotation (3, 3) from the part to the body
    drag: Floats  #: drag coefficients (3,) along the axes of the part
    friction: Floats  #: skin friction coefficients (3,) along the axes of the part
    in_water: bool


class StonefishBody(NamedTuple):
    """Sum of the parts: 6x6 matrices about the origin of the body, its weight and its buoyancy."""

    parts: list[StonefishPart]
    mass: float
    centre: Floats
    rigid_body: Floats
    added_mass: Floats
    volume: float
    centre_of_buoyancy: Floats


def body(
    element: etree._Element, scenario: StonefishScenario, materials: dict[str, float], density: float
) -> StonefishBody:
    """Return the body of a <base_link> (or <link>)."""
    if element.get("type") == "compound":
        parts = [
            part(p, scenario, materials, density, tag == "external_part")
            for tag in ("external_part", "internal_part")
            for p in element.findall(tag)
        ]
    else:
        parts = [part(element, scenario, materials, density, True)]
    if not parts:
        raise ConfigError(f"<{element.tag} name='{element.get('name')}'> has no parts", str(scenario.path))
    mass = sum(p.mass for p in parts)
    centre = sum((p.mass * p.centre for p in parts), np.zeros(3)) / mass
    floats = element.get("buoyant", "true") == "true"
    volume = sum(p.volume for p in parts) if floats else 0.0
    buoyancy = sum((p.volume * p.centre_of_buoyancy for p in parts), np.zeros(3)) / volume if volume else np.zeros(3)
    rigid, whole = np.zeros((3, 3)), np.zeros((3, 3))
    for p in parts:
        arm = p.centre - centre
        spread = arm @ arm * np.eye(3) - np.outer(arm, arm)
        rigid += p.inertia + p.mass * spread
        extra = p.external and p.in_water
        whole += p.inertia + (p.added_inertia if extra else 0.0) + (p.mass + (p.added_mass if extra else 0.0)) * spread
    added = sum(p.added_mass for p in parts if p.external and p.in_water)
    return StonefishBody(
        parts,
        mass,
        centre,
        spatial_inertia(mass, centre, rigid),
        spatial_inertia(added, centre, whole - rigid),
        volume,
        buoyancy,
    )


def part(
    element: etree._Element, scenario: StonefishScenario, materials: dict[str, float], density: float, external: bool
) -> StonefishPart:
    """Return one part with Stonefish's values; values in the file replace computed ones."""
    name, kind = element.get("name", ""), element.get("type", "")
    where = f"part '{name}'"
    material = element.find("material")
    if material is None or (stuff := material.get("name", "")) not in materials:
        raise ConfigError(
            f"{where}: the material '{material.get('name') if material is not None else ''}' is not defined; import the "
            "scenario that defines it and includes this file",
            str(scenario.path),
        )
    origin = frame(element.find("origin"))
    mesh, thickness, origin = _geometry(element, kind, scenario, origin, where)
    volume, centre, unit = _mass_properties(element, kind, mesh, thickness)
    moments, axes = _principal(unit)  # the axes of the part's centre of mass, in the axes of its mesh
    in_centre = (mesh.vertices - centre) @ axes
    added, added_moments, drag = _approximation(kind, in_centre, density)
    mass = volume * materials[stuff]
    moments = moments * materials[stuff]
    to_part = origin[:3, :3] @ axes  # from the centre of mass to the part
    drag = np.abs(to_part @ drag)
    at = origin[:3, :3] @ centre + origin[:3, 3]
    buoyancy = at
    given, inertia, cg = element.find("mass"), element.find("inertia"), element.find("cg")
    if given is not None and inertia is None and cg is None:
        moments, mass = moments * (number(given, "value") / mass), number(given, "value")
    else:
        mass = number(given, "value", mass)
        moments = vector(inertia.get("xyz"), inertia) if inertia is not None else moments
        if cg is not None:
            new = frame(cg)
            to_part, at = new[:3, :3], new[:3, 3]
    friction, own = FRICTION * drag, element.find("hydrodynamics")
    if own is not None:
        drag = vector(own.get("quadratic_drag"), own) if own.get("quadratic_drag") else drag
        friction = vector(own.get("viscous_drag"), own) if own.get("viscous_drag") else friction
    place = frame(element.find("compound_transform"))
    turn, shift = place[:3, :3], place[:3, 3]
    tensor, extra = (turn @ to_part @ np.diag(m) @ to_part.T @ turn.T for m in (moments, added_moments))
    return StonefishPart(
        name,
        external,
        mass,
        float(added.mean()),
        tensor,
        extra,
        turn @ at + shift,
        volume if element.get("buoyant", "true") == "true" else 0.0,
        turn @ buoyancy + shift,
        mesh.corners @ (turn @ origin[:3, :3]).T + (turn @ origin[:3, 3] + shift),
        turn,
        drag,
        friction,
        element.get("physics", "submerged") in IN_WATER,
    )


def _geometry(
    element: etree._Element, kind: str, scenario: StonefishScenario, origin: Floats, where: str
) -> tuple[shapes.StonefishMesh, float, Floats]:
    """Return the mesh of a part, the thickness of its wall, and the frame of the mesh."""
    size = element.find("dimensions")
    thickness = -1.0 if size is None else number(size, "thickness", -1.0)
    if kind == "box" and size is not None:
        return shapes.box(vector(size.get("xyz"), size)), thickness, origin
    if kind == "cylinder":
        return shapes.cylinder(number(size, "radius"), number(size, "height")), thickness, origin
    if kind == "sphere":
        return shapes.sphere(number(size, "radius")), thickness, origin
    if kind != "model":
        raise ConfigError(
            f"{where}: the type '{kind}' is not supported; use box, cylinder, sphere or model", str(scenario.path)
        )
    physical = element.find("physical")
    file = None if physical is None else physical.find("mesh")
    if physical is None or file is None:
        raise ConfigError(f"{where} has no physical mesh", str(scenario.path))
    found = scenario.locate(file.get("filename", ""))
    if found is None:
        raise ConfigError(
            f"{where}: the mesh '{file.get('filename')}' was not found; state its folder with --path",
            str(scenario.path),
        )
    return (
        shapes.read(found, number(file, "scale", 1.0)),
        -1.0 if physical.find("thickness") is None else number(physical.find("thickness"), "value"),
        frame(physical.find("origin")),
    )


def _mass_properties(
    element: etree._Element, kind: str, mesh: shapes.StonefishMesh, wall: float
) -> tuple[float, Floats, Floats]:
    """Return the volume, the centre and the unit inertia. Primitive shapes have closed forms."""
    size = element.find("dimensions")
    if kind == "model" or size is None:
        return shapes.mass_properties(mesh, wall)
    solids = (
        [_solid(size, kind, wall / 2.0), _solid(size, kind, -wall / 2.0)] if wall > 0.0 else [_solid(size, kind, 0.0)]
    )
    volume, moments = solids[0]
    if len(solids) == 2:
        volume, moments = volume - solids[1][0], moments - solids[1][1]
    return volume, np.zeros(3), np.diag(moments)


def _solid(size: etree._Element, kind: str, grow: float) -> tuple[float, Floats]:
    """Return the volume and the moments of inertia (3,) of a primitive whose walls are moved outwards."""
    if kind == "box":
        a, b, c = vector(size.get("xyz"), size) + 2.0 * grow
        volume = float(a * b * c)
        return volume, volume / 12.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    r = number(size, "radius") + grow
    if kind == "sphere":
        volume = 4.0 / 3.0 * math.pi * r**3
        return volume, np.full(3, 0.4 * volume * r * r)
    h = number(size, "height") + 2.0 * grow
    volume = math.pi * r * r * h
    across = volume * (3.0 * r * r + h * h) / 12.0
    return volume, np.array([across, across, 0.5 * volume * r * r])


def _principal(inertia: Floats) -> tuple[Floats, Floats]:
    """Return the principal moments (3,), ascending, and axes (3, 3); a diagonal matrix keeps its axes."""
    off = np.abs(inertia - np.diag(np.diag(inertia))).max()
    if off < 1e-6 * np.abs(np.diag(inertia)).min():
        return np.diag(inertia).copy(), np.eye(3)
    values, axes = np.linalg.eigh(inertia)
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    return values, axes


def _approximation(kind: str, points: Floats, density: float) -> tuple[Floats, Floats, Floats]:
    """Return the added masses (3,), added moments (3,) and drag coefficients (3,) of a part's replacement shape."""
    if kind == "sphere":
        r = float((points**2).sum(axis=1).max())  # Stonefish takes the square of the radius here
        return np.full(3, 2.0 / 3.0 * math.pi * density * r**3), np.zeros(3), np.ones(3)
    if kind == "cylinder":
        r = math.sqrt(float((points[:, :2] ** 2).sum(axis=1).max()))
        length = 2.0 * float(np.abs(points[:, 2]).max())
        section = density * math.pi * r * r
        across = math.pi * density * length**2 * r**3 / 12.0
        return (
            np.array([section * length, section * length, section]),
            np.array([across, across, 0.0]),
            np.array([0.5, 0.5, 1.0]),
        )
    a, b, c = (float(x) for x in shapes.ellipsoid(points))
    mean = 0.5 * (b + c)
    ball = 4.0 / 3.0 * math.pi * density
    added = np.array([_lamb(a, mean) * ball * a * mean**2, ball * c * c * a, ball * b * b * a])
    moments = math.pi * density * a**3 / 12.0 * np.array([0.0, b * b, c * c])
    drag = np.array([1.0 / a, 1.0 / b, 1.0 / c])
    return added, moments, drag / drag.max()


def _lamb(along: float, across: float) -> float:
    """Return Stonefish's factor of the added mass along the first axis."""
    e = 1.0 - across * across / along
    if e == 0.0 or (1.0 + e) / (1.0 - e) <= 0.0:
        return 1.0
    alpha = 2.0 * (1.0 - e * e) / (e * e) * (0.5 * math.log((1.0 + e) / (1.0 - e)) - e)
    return alpha / (2.0 - alpha)


def drag_forces(found: StonefishBody, density: float, motion: Floats) -> tuple[Floats, Floats]:
    """Return the drag and the skin friction (6,) about the origin for u, v, w, p, q, r (6,) through still water."""
    pressure, skin = np.zeros(6), np.zeros(6)
    velocity, turn = motion[:3] + np.cross(motion[3:], found.centre), motion[3:]
    for p in found.parts:
        if not (p.external and p.in_water):
            continue
        t = p.corners
        normal = np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
        length = np.linalg.norm(normal, axis=1)
        keep = length > 1e-6
        normal, area, at = normal[keep] / length[keep, None], 0.5 * length[keep], t[keep].mean(axis=1) - found.centre
        flow = -(velocity + np.cross(turn, at))
        head = np.einsum("ij,ij->i", flow, normal)
        front = head < -1e-12
        force = np.where(front, -head * area * np.linalg.norm(flow, axis=1), 0.0)[:, None] * flow
        rub = (flow - head[:, None] * normal) * area[:, None]
        for total, sums, share, factor in ((pressure, force, p.drag, 0.5), (skin, rub, p.friction, 1.0)):
            for rows, whole in ((slice(0, 3), sums.sum(axis=0)), (slice(3, 6), np.cross(at, sums).sum(axis=0))):
                size = np.linalg.norm(whole)
                if size > 0.0:
                    total[rows] += factor * density * (np.abs(p.axes.T @ whole) / size @ share) * whole
    for total in (pressure, skin):
        total[3:] += np.cross(found.centre, total[:3])
    return pressure, skin
