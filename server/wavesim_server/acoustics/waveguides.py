"""Water and bed along a path, and the records of a ray through them; compiled.

The tracers of :mod:`range_dependent_rays` and :mod:`volume_rays` fill the same arrays of legs, so that the search for
rays (:mod:`fans`) works with both.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import Table, integer, value
from wavesim_server.acoustics import eigenrays, image_paths, rays, sloping_bed_images
from wavesim_server.acoustics.image_paths import AcousticScene
from wavesim_server.acoustics.sound_field import SoundField, speed_at
from wavesim_server.acoustics.types import SoundSpeedProfile, Vector
from wavesim_server.elementary import hypot
from wavesim_server.seabed import bed_depth

SHOT = Table(
    "shot",
    "A ray over a bed that is not level, or through a sound field.",
    "medium",
    (
        value("x", "m", "Position at which the ray crosses the receiver's depth, W."),
        value("y", "m", ""),
        value("time", "s", "Travel time."),
        value("length", "m", "Length along the ray."),
        value("sx", "", "Direction of the ray at the source, W."),
        value("sy", "", ""),
        value("sz", "", ""),
        value("rx", "", "Direction of the ray at the receiver."),
        value("ry", "", ""),
        value("rz", "", ""),
        integer("surface", "", "Bounces off the surface."),
        integer("bottom", "", "Bounces off the bottom."),
        value("sine_top", "", "Mean sine of the grazing angles at the surface."),
        integer("reversals", "", "Reversals up to the receiver."),
        value("spread", "dB", "Spreading loss."),
        integer("caustics", "", "Number of caustics passed."),
        value(
            "down_x",
            "m",
            "For a ray in a sound field: its displacement (W) at the receiver per rad of downward tilt at the source.",
        ),
        value("down_y", "m", ""),
        value("down_z", "m", ""),
        value("side_x", "m", "The same displacement per rad of sideways tilt."),
        value("side_y", "m", ""),
        value("side_z", "m", ""),
    ),
)
MAX_LEGS = eigenrays.REVERSALS + 1  #: maximum number of legs of a ray; a leg is the part between two reversals
DEEP = 10  #: maximum number of times that the angle between two rays of the fan is halved
LEG_ARRAYS = 9 + DEEP  #: number of arrays of legs
#: indices of the arrays of legs; the arrays from HIGH on hold the rays between two rays of the fan
NOW, BESIDE, BEFORE, NEXT, TRIED, EDGE, BEYOND, LOW, HIGH = range(9)
#: columns of a leg: its position; its history; the numbers of turning points, bottom bounces and all bounces up to the
#: leg; and, in a sound field, a number that encodes the levels between which the ray has turned. SINE and SPEED are
#: indexed by bottom bounce, not by leg: row k contains the sine of the grazing angle at bottom bounce k, and the sound
#: speed there (1 in layers)
X, Y, HISTORY, TURNS_MET, BEDS_MET, BOUNCES_MET, LEVELS, SINE, SPEED = range(9)
COLUMNS = 9
TURNED, SURFACE, BED = 1.0, 2.0, 3.0  #: events in the history of a ray
#: base and modulus of the number that encodes the history of a ray; their product is below 2^53, so that a float64
#: represents it exactly
KINDS_OF, KINDS_MOST = 61.0, 140737488355213.0
NEIGHBOUR_ANGLE = 1e-6  #: angle in rad between a ray and its neighbours
#: maximum distance in m by which an aimed ray may miss the receiver; the travel time is corrected to second order
AIM_TOLERANCE = 1e-3
MAX_AIM_STEPS = 24
CLEARANCE = 1e-3  #: minimum distance in m of the ends of a path from the surface and from the bed, in a sound field


class Waveguide(NamedTuple):
    """Water and bed along a path, with the minimum depth and the maximum slope of this bed.

    The sound speed depends on depth only (``profile``), unless ``field`` has values. Refraction out of the vertical plane
    through both positions is neglected; (``across_x``, ``across_y``) is the horizontal unit vector normal to this plane.

    The search for the bed along a ray uses a minimum step, and ends at a maximum range (m) or a maximum number of
    bounces.
    """

    profile: SoundSpeedProfile
    field: SoundField
    scene: AcousticScene
    min_depth: float
    max_slope: float
    min_step: float
    max_range: float
    max_bounces: int
    across_x: float
    across_y: float


class RayStart(NamedTuple):
    """Point at which a ray starts, and its direction there (a unit vector)."""

    position: Vector
    direction: Vector


@device_function
def has_field(guide: Waveguide) -> bool:
    """Return whether the sound speed is given by a grid."""
    return bool(guide.field.c.shape[0] > 0)


@device_function
def sound_speed(guide: Waveguide, point: Vector) -> float:
    """Return the sound speed at a point in m/s."""
    if has_field(guide):
        return speed_at(guide.field, point)
    return rays.sound_speed_at(guide.profile, point.z)


@device_function
def legs_view(legs: Floats) -> Floats:
    """Return a three-dimensional view (LEG_ARRAYS, MAX_LEGS, COLUMNS) of the arrays of legs."""
    return legs.reshape(LEG_ARRAYS, MAX_LEGS, COLUMNS)


@device_function
def met(kinds: float, what: float) -> float:
    """Add an event to the number that encodes the history of a ray."""
    kinds = KINDS_OF * kinds + what
    return float(kinds - KINDS_MOST * math.floor(kinds / KINDS_MOST))


@device_function
def bed_depth_at(guide: Waveguide, x: float, y: float) -> float:
    return float(bed_depth(guide.scene.bed, guide.scene.soundings_mesh, guide.scene.cursor, 0, x, y))


@device_function
def waveguide_between(
    profile: SoundSpeedProfile, field: SoundField, scene: AcousticScene, order: int, a: Vector, b: Vector
) -> Waveguide:
    """Return the water and bed between two positions; the bed is sampled in 32 steps."""
    ax, ay, bx, by = a.x, a.y, b.x, b.y
    horizontal_range, min_depth, max_slope = hypot(bx - ax, by - ay), math.inf, 0.0
    before = math.nan
    for k in range(33):
        u = k / 32.0
        depth = bed_depth(scene.bed, scene.soundings_mesh, scene.cursor, 0, ax + u * (bx - ax), ay + u * (by - ay))
        min_depth = min(min_depth, depth)
        if k > 0 and horizontal_range > 1.0:
            max_slope = max(max_slope, abs(depth - before) * 32.0 / horizontal_range)
        before = depth
    max_slope = min(2.0 * max_slope + 0.05, scene.bed.max_slope)
    reach = max(horizontal_range, 0.0) / 64.0 + scene.bed.max_slope * max(min_depth, 0.0)
    limit = 1.5 * horizontal_range + 2.0 * max(min_depth, 1.0)
    least = min_depth - max_slope * reach
    across_x, across_y = 0.0, 1.0
    if horizontal_range > 1e-9:
        across_x, across_y = (ay - by) / horizontal_range, (bx - ax) / horizontal_range
    return Waveguide(
        profile, field, scene, least, max_slope, max(limit / 128.0, 0.25), limit, order, across_x, across_y
    )


@device_function
def moved_into_water(guide: Waveguide, point: Vector) -> Vector:
    """Return a point, moved into the water if it is outside of it or closer than CLEARANCE to the surface or to the bed.

    At the boundary itself, the path that leaves directly and the path that bounces there first would be the same, and it
    would depend on the direction of the path which of the two is found.
    """
    depth = bed_depth_at(guide, point.x, point.y)
    clearance = min(CLEARANCE, 0.5 * max(depth, 0.0))
    return Vector(point.x, point.y, max(min(point.z, depth - clearance), clearance))


@device_function
def reflect_off_bed(
    guide: Waveguide, x: float, y: float, qx: float, qy: float, qz: float
) -> tuple[float, float, float, float]:
    """Return four values: the three components of a vector along a ray, for example its slowness, after a bounce off
    the bed, and the component normal to the bed before the bounce. The last value is not positive if the ray comes from
    below the bed.
    """
    nx, ny, nz, _ = sloping_bed_images.tangent_plane(guide.scene, x, y)
    along = qx * nx + qy * ny + qz * nz
    return qx - 2.0 * along * nx, qy - 2.0 * along * ny, qz - 2.0 * along * nz, -along


@device_function
def copy(legs: Floats, to: Floats) -> None:
    """Copy the elements one by one, because a row assignment would also compile NumPy's error message about shapes."""
    for k in range(MAX_LEGS):
        for i in range(COLUMNS):
            to[k, i] = legs[k, i]


@device_function
def bed_loss(
    legs: Floats, bottom: int, density: float, speed: float, attenuation: float, phases: bool
) -> tuple[float, float]:
    """Return (loss in dB, phase in rad), each summed over the bounces of the ray ``legs`` off the bed. The phase is
    computed only if ``phases`` is true. The ratio of the sound speeds is ``speed`` times the column SPEED. See
    :func:`image_paths.bottom_loss` and :func:`image_paths.bottom_phase`.
    """
    total = turned = 0.0
    for k in range(min(bottom, MAX_LEGS)):
        ratio = speed * legs[k, SPEED]
        total += image_paths.bottom_loss(legs[k, SINE], density, ratio, attenuation)
        if phases:
            turned += image_paths.bottom_phase(legs[k, SINE], density, ratio, attenuation)
    return total, turned
