"""Fins and thrusters of a model, from the meshes of the parts or from a few numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.friction import DENSITY, VISCOSITY, ittc_line
from wavesim_studies.from_mesh.hull_sections import cut
from wavesim_studies.from_mesh.resistance import TURBULENT, DragEstimate, laminar_friction
from wavesim_world.hull_geometry import mass_properties, part_frame

SLOPE_DEVIATION = 0.15  #: relative standard deviation of the lift slope: gap at the root, hull, boundary layer
STALL_DEVIATION = 0.20
THRUST_RESERVE = 2.0  #: maximum thrust divided by the drag at the design speed, if the user states no thrust
ASTERN_SHARE = 0.5  #: largest thrust astern divided by the largest thrust ahead


class FinEstimate(NamedTuple):
    """Fin of a model: centre of pressure in m, unit vectors ``normal`` and ``chord``, planform area in m2, effective
    aspect ratio, lift slope in 1/rad, stall angle in rad, and the drag at angle 0 divided by the square of the speed,
    in kg/m.
    """

    position: Array
    normal: Array
    chord: Array
    area: float
    aspect_ratio: float
    lift_slope: float
    stall: float
    drag: float
    notes: tuple[str, ...]


def lift_slope(aspect_ratio: float, sweep: float = 0.0) -> float:
    """Return the slope of the lift coefficient in 1/rad for an effective aspect ratio and a sweep angle in rad (Whicker
    and Fehlner, DTMB report 933, 1958).
    """
    c = math.cos(sweep)
    return 1.8 * math.pi * aspect_ratio / (c * math.sqrt(aspect_ratio**2 / c**4 + 4.0) + 1.8)


def stall_angle(aspect_ratio: float) -> float:
    """Return the stall angle in rad of an all-movable fin: 24 deg at an aspect ratio of 2, 20 deg at 3 (Whicker and
    Fehlner). The straight line between them is continued to 30 deg and 15 deg.
    """
    return math.radians(min(max(24.0 - 4.0 * (aspect_ratio - 2.0), 15.0), 30.0))


def fin(triangles: Array, design_speed: float, hull: Array | None = None, density: float = DENSITY) -> FinEstimate:
    """Return the estimate of a fin from its closed mesh, triangles (n, 3, 3) in m and body axes.

    ``hull`` contains the triangles of the hull. If the fin begins at the hull, the hull acts as a mirror and doubles the
    aspect ratio. Without a hull, both ends of the fin are free. Raises ValueError if the part is not a thin plate along
    the direction of motion.
    """
    frame = part_frame(triangles)
    normal = frame.normal
    if abs(float(normal[0])) > 0.7:
        raise ValueError(
            "the part stands across the flow, so it is not a fin: a fin is thin across the direction of motion"
        )
    chord = np.array([1.0, 0.0, 0.0]) - normal[0] * normal
    chord = chord / math.sqrt(float(chord @ chord))
    spanwise = np.cross(normal, chord)
    along = triangles.reshape(-1, 3) @ spanwise
    span = float(np.ptp(along))
    cross = 0.5 * np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    weight = 0.5 * np.abs(cross @ normal)
    area = float(weight.sum())
    mean_chord = area / span
    thickness = abs(mass_properties(triangles).volume) / area / mean_chord
    if thickness > 0.5:
        raise ValueError("the part is too thick for a fin: its mean thickness is more than half of its chord")
    middle = triangles.mean(axis=1)
    centre = (weight[:, None] * middle).sum(axis=0) / area
    s, x = middle @ spanwise - centre @ spanwise, middle @ chord - centre @ chord
    spread = float((weight * s * s).sum())
    sweep = math.atan(float((weight * s * x).sum()) / spread) if spread > 0.0 else 0.0
    attached = hull is not None and _begins_at(hull, centre, spanwise, along, centre @ spanwise, span)
    aspect = (2.0 if attached else 1.0) * span * span / area
    reynolds = design_speed * mean_chord / VISCOSITY
    skin = ittc_line(reynolds) if reynolds > TURBULENT else laminar_friction(reynolds)
    form = 1.0 + 2.0 * thickness + 60.0 * thickness**4
    return FinEstimate(
        centre + 0.25 * mean_chord * chord,
        normal,
        chord,
        area,
        aspect,
        lift_slope(aspect, sweep),
        stall_angle(aspect),
        density * skin * form * area,  # both faces
        (
            f"fin: span {span:.3g} m, aspect ratio {aspect:.3g}"
            + (" with its mirror image in the hull" if attached else " with free ends")
            + f", lift slope of Whicker and Fehlner +- {SLOPE_DEVIATION:.0%}, stall angle +- {STALL_DEVIATION:.0%}",
        ),
    )


def _begins_at(hull: Array, centre: Array, spanwise: Array, along: Array, middle: float, span: float) -> bool:
    """Return whether one end of the fin is in the hull, or closer to it than a fifth of the span."""
    s = cut(hull)
    if not s.first < float(centre[0]) < s.first + s.length:
        return False
    low, high = hull.reshape(-1, 3).min(axis=0), hull.reshape(-1, 3).max(axis=0)
    axis = 0.5 * (low + high)[1:]
    half = np.maximum([np.interp(centre[0], s.x, s.beam), np.interp(centre[0], s.x, s.height)], 1e-9) * 0.5
    ends = [(centre + (e - middle) * spanwise)[1:] - axis for e in (float(along.min()), float(along.max()))]
    inside = [bool(((e / (half + 0.2 * span)) ** 2).sum() < 1.0) for e in ends]
    return inside[0] != inside[1]


def with_fins(estimate: DragEstimate, fins: Sequence[FinEstimate], design_speed: float) -> DragEstimate:
    """Return the estimate of the hull with the drag of its fins at angle 0. The lift of the fins belongs to the <fin>
    elements of the model.
    """
    quadratic = estimate.quadratic.copy()
    for f in fins:
        quadratic[0, 0] += f.drag
        quadratic[3:, 0] += np.cross(f.position, [f.drag, 0.0, 0.0])
    clean = np.abs(quadratic[3:, 0]) < 1e-6 * quadratic[0, 0]
    quadratic[3:, 0][clean] = estimate.quadratic[3:, 0][clean]
    total = sum(f.drag for f in fins)
    return estimate._replace(
        quadratic=quadratic,
        drag=estimate.drag + total * design_speed**2,
        notes=(
            *estimate.notes,
            f"drag of {len(fins)} fins at angle 0: {total * design_speed**2:.3g} N at the design speed",
        ),
    )


def thruster_limits(directions: Sequence[Sequence[float]], drag: float) -> list[tuple[float, float]]:
    """Return the minimum and maximum force in N of each thruster for which the user states none.

    ``directions`` are unit vectors in body axes, and ``drag`` is the axial drag in N at the design speed. Together, the
    thrusters that push forward produce twice this drag. All others have the same maximum force.
    """
    forward = sum(abs(float(d[0])) for d in directions if abs(float(d[0])) > 0.3)
    most = THRUST_RESERVE * drag / forward if forward > 0.0 else THRUST_RESERVE * drag
    return [(-ASTERN_SHARE * most, most) if abs(float(d[0])) > 0.3 else (-most, most) for d in directions]
