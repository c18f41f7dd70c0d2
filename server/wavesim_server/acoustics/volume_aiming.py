"""Aiming of rays at a receiver in water whose sound speed is linear in tetrahedra; compiled.

Newton's method changes both launch angles until the point of the ray that is nearest to the receiver (:mod:`volume_rays`)
is the receiver itself. The displacements d1 and d2 of two neighbours from the ray at this point, per radian of the launch
angle between neighbour and ray, are also the edges of the ray tube:

    |pressure at 1 m / pressure|^2 = |r . (d1 x d2)| c_source / c_receiver,   r = direction at the receiver
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics.ray_tubes import MAX_FOCUSING_DB
from wavesim_server.acoustics.sound_field import speed_at
from wavesim_server.acoustics.types import Record, Vector
from wavesim_server.acoustics.volume_rays import ClosestApproach, RayTarget, trace_ray
from wavesim_server.acoustics.waveguides import (
    BESIDE,
    HISTORY,
    MAX_AIM_STEPS,
    NOW,
    TURNS_MET,
    RayStart,
    Waveguide,
    X,
    Y,
)
from wavesim_server.elementary import log10

AIM_TOLERANCE = 1e-6  #: maximum distance in m by which an aimed ray may miss the receiver
MAX_BEYOND = 1e-3  #: maximum distance in m by which a receiver may be beyond a bounce, because it rests on the bed
NEIGHBOUR_ANGLE = 1e-7  #: angle in rad between a ray and its neighbours


class FirstGuess(NamedTuple):
    """Direction near which a ray is searched for.

    ``down`` and ``side`` are the displacements at the target in m, per radian of a tilt of the direction downwards and
    to the side, of a ray that was aimed earlier; they are 0 if they are not known.
    """

    direction: Vector
    down: Vector
    side: Vector


@device_function
def aim_ray(
    guide: Waveguide,
    start: Vector,
    target: RayTarget,
    guess: FirstGuess,
    with_level: bool,
    legs: Floats,
    no_points: Floats,
    shot: Record,
) -> bool:
    """Find the ray from a point to a target near a given direction (Newton); ``shot`` receives the ray. Returns False if
    there is no such ray.

    Known displacements save two rays in each step. The edges of the ray tube are then those of a nearby ray; they are
    computed again only if ``with_level`` requests the level of the ray.
    """
    tilt, side = Vector(0.0, 0.0, 0.0), Vector(0.0, 0.0, 0.0)
    down_tube, side_tube = guess.down, guess.side
    is_old = down_tube.x != 0.0 or down_tube.y != 0.0 or down_tube.z != 0.0
    caustics, previous, fresh, found = 0, math.inf, is_old, False
    sx, sy, sz = guess.direction.x, guess.direction.y, guess.direction.z
    px, py, pz = sx, sy, sz
    near = ClosestApproach(-1, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for _ in range(MAX_AIM_STEPS):
        ray = RayStart(start, Vector(sx, sy, sz))
        near = trace_ray(guide, ray, target, True, legs[NOW], no_points, shot)
        miss = math.sqrt(near.x * near.x + near.y * near.y + near.z * near.z)
        if near.reversals < 0 or miss > previous:
            if math.isinf(previous):
                return False
            if is_old:  # back to the last ray, with its own displacements
                sx, sy, sz, previous, fresh, is_old = px, py, pz, math.inf, False, False
            else:
                sx, sy, sz = _unit(0.5 * (sx + px), 0.5 * (sy + py), 0.5 * (sz + pz))  # back by half of the step
            continue
        if is_old and miss > 0.1 * previous and miss >= AIM_TOLERANCE:
            fresh = is_old = False
        tilt, side = _tilts(ray.direction)
        if not fresh:
            good, caustics, down_tube, side_tube = _edges(guide, ray, target, near, legs, no_points, shot)
            if not good:
                return False
            fresh = miss < 1.0
        if miss < AIM_TOLERANCE:
            found = True
            break
        area = _triple(near, down_tube, side_tube)
        if area == 0.0:
            return False
        short = Vector(-near.x, -near.y, -near.z)
        down, aside = _triple(near, short, side_tube) / area, _triple(near, down_tube, short) / area
        size = math.sqrt(down * down + aside * aside)
        if size > 0.1:
            down, aside = down * 0.1 / size, aside * 0.1 / size
        px, py, pz, previous = sx, sy, sz, miss
        sx, sy, sz = _unit(sx + down * tilt.x + aside * side.x, sy + down * tilt.y + aside * side.y, sz + down * tilt.z)
    if not found or near.beyond > MAX_BEYOND:
        return False
    if is_old and with_level:
        ray = RayStart(start, Vector(sx, sy, sz))
        good, caustics, down_tube, side_tube = _edges(guide, ray, target, near, legs, no_points, shot)
        if not good:
            return False
    a, b = speed_at(guide.field, start), speed_at(guide.field, target.position)
    tube = abs(_triple(near, down_tube, side_tube)) * a / b
    length: float = shot.length
    shot.spread = max(10.0 * log10(max(tube, 1.0)), 20.0 * log10(max(length, 1.0)) - MAX_FOCUSING_DB)
    shot.caustics, shot.reversals = caustics, near.reversals
    shot.down_x, shot.down_y, shot.down_z = down_tube.x, down_tube.y, down_tube.z
    shot.side_x, shot.side_y, shot.side_z = side_tube.x, side_tube.y, side_tube.z
    return True


@device_function
def _tilts(direction: Vector) -> tuple[Vector, Vector]:
    """Return two unit vectors at right angles to a direction: downwards and to the side."""
    level = math.sqrt(direction.x * direction.x + direction.y * direction.y)
    if level < 1e-9:  # vertical: any two horizontal vectors
        return Vector(-direction.z, 0.0, 0.0), Vector(0.0, 1.0, 0.0)
    x, y = -direction.y / level, direction.x / level
    return Vector(-direction.z * y, direction.z * x, level), Vector(x, y, 0.0)


@device_function
def _edges(
    guide: Waveguide,
    ray: RayStart,
    target: RayTarget,
    near: ClosestApproach,
    legs: Floats,
    no_points: Floats,
    shot: Record,
) -> tuple[bool, int, Vector, Vector]:
    """Compute both neighbours of a ray that passes its target at ``near``. Return (whether they exist, number of
    caustics, displacements of the neighbours downwards and to the side).
    """
    tilt, side = _tilts(ray.direction)
    exact = RayTarget(target.position, near.reversals, target.bounces)
    good, caustics, down_tube = _neighbour_shift(guide, ray, exact, near, tilt, legs, no_points, shot)
    if not good:
        return False, 0, down_tube, down_tube
    good, _, side_tube = _neighbour_shift(guide, ray, exact, near, side, legs, no_points, shot)
    return good, caustics, down_tube, side_tube


@device_function
def _unit(x: float, y: float, z: float) -> tuple[float, float, float]:
    size = math.sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


@device_function
def _triple(near: ClosestApproach, a: Vector, b: Vector) -> float:
    """Return r . (a x b), where r is the direction of a ray as it passes its target."""
    return near.rx * (a.y * b.z - a.z * b.y) + near.ry * (a.z * b.x - a.x * b.z) + near.rz * (a.x * b.y - a.y * b.x)


@device_function
def _neighbour_shift(
    guide: Waveguide,
    start: RayStart,
    target: RayTarget,
    near: ClosestApproach,
    tilt: Vector,
    legs: Floats,
    no_points: Floats,
    shot: Record,
) -> tuple[bool, int, Vector]:
    """Compute a neighbour of the ray ``legs[NOW]``, which passes its target at ``near``. The launch direction of the
    neighbour is tilted towards ``tilt``. Return (whether the neighbour exists, number of caustics between the two rays,
    displacement from the ray at the target per rad of tilt).

    Seen along the ray, the neighbour stays on one side between two caustics; each bounce and each caustic moves it to
    the other side.
    """
    for k in range(2):
        d = NEIGHBOUR_ANGLE if k == 0 else -NEIGHBOUR_ANGLE
        s = start.direction
        tx, ty, tz = _unit(s.x + d * tilt.x, s.y + d * tilt.y, s.z + d * tilt.z)
        tilted = RayStart(start.position, Vector(tx, ty, tz))
        other = trace_ray(guide, tilted, target, False, legs[BESIDE], no_points, shot)
        if other.reversals < 0 or not _same_crests(legs[NOW], legs[BESIDE], min(near.reversals, other.reversals)):
            continue
        shift = Vector((other.x - near.x) / d, (other.y - near.y) / d, (other.z - near.z) / d)
        count, before = 0, -1.0
        for r in range(near.reversals):
            dx, dy = legs[BESIDE, r, X] - legs[NOW, r, X], legs[BESIDE, r, Y] - legs[NOW, r, Y]
            if dx == dx:
                ahead = dx * (legs[NOW, r, X] - start.position.x) + dy * (legs[NOW, r, Y] - start.position.y)
                if (legs[NOW, r, TURNS_MET] % 2.0 == 1.0) != (d * s.z < 0.0):
                    ahead = -ahead
                if ahead * before < 0.0:
                    count += 1
                before = ahead
        # the side on which the neighbour is at the end: (r x shift) . (horizontal normal of the launch direction)
        across = (near.rz * shift.x - near.rx * shift.z) * s.x - (near.ry * shift.z - near.rz * shift.y) * s.y
        if target.bounces % 2 == 1:
            across = -across
        if across * before < 0.0:
            count += 1
        return True, count, shift
    return False, 0, Vector(0.0, 0.0, 0.0)


@device_function
def _same_crests(one: Floats, other: Floats, leg: int) -> bool:
    """Return whether the last leg that both rays complete has the same history."""
    for r in range(leg - 1, -1, -1):
        if one[r, X] == one[r, X] and other[r, X] == other[r, X]:
            return bool(one[r, HISTORY] == other[r, HISTORY])
    return True
