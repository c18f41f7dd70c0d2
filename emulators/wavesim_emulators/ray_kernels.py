"""Kernels that cast rays against the fixed world. :mod:`wavesim_world.ocean.scene` contains a more readable
implementation of the same functions.
"""

from __future__ import annotations

import math

from wavesim_emulators.bank_kernels import (
    DEPTH,
    FALSE,
    NUMBERS,
    PLACE,
    POSITION,
    R_WS,
    RAYS,
    ROWS,
    TRUE,
    VALID,
    VECTOR,
    Kernels,
    maximum,
    minimum,
)
from wavesim_kernels import compiled_elementary  # noqa: F401  # registers the elementary functions with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.elementary import exp, hypot
from wavesim_sdk.sensors import SENSORS
from wavesim_world.instruments import ECHO_SIGMA
from wavesim_world.ocean.scene import CLOSE, STEPS

#: columns of a ray: origin and unit direction in W, range in m (inf = no hit), and velocity in m/s of the body that it
#: hit, along the ray (0 = none)
ORIGIN, DIRECTION, RANGE, CLOSING, RAY_COLUMNS = 0, 3, 6, 7, 8
#: columns of a box: centre, half sizes, square of the half diagonal, axes in W (3, 3) by row
BOX_CENTRE, BOX_HALF, BOX_SQUARE, BOX_AXES, BOX_COLUMNS = 0, 3, 6, 7, 16
#: columns of a pier: centre, radius, half height, square of the half diagonal
PIER_CENTRE, PIER_RADIUS, PIER_HALF, PIER_SQUARE, PIER_COLUMNS = 0, 3, 4, 5, 6


_ECHO_RANGE = SENSORS["echosounder"].first_columns["range"]

FLOATING = 0.5  #: height in m above the water up to which an echosounder on a floating hull still counts as submerged
MARGIN = 0.01  #: margin in m that a search for bodies adds to distances; it is larger than any rounding error


@kernel
def fill_rays(
    poses: Floats, directions: Floats, positions: Floats, is_apart: bool, is_level: bool, out: Floats
) -> None:
    """Set the origins and directions, in W, of the rays of instruments (n, beams, RAY_COLUMNS).

    ``directions`` and ``positions`` (beams, 3) are in S. If ``is_apart`` is False, all positions are zero. If
    ``is_level`` is set, the directions are in W.
    """
    for i in range(out.shape[0]):
        pose = poses[i]
        for k in range(out.shape[1]):
            d, p, ray = directions[k], positions[k if len(positions) > 1 else 0], out[i, k]
            for j in range(3):
                x, y, z = pose[R_WS + 3 * j], pose[R_WS + 3 * j + 1], pose[R_WS + 3 * j + 2]
                ray[ORIGIN + j] = pose[PLACE + j]
                if is_apart:
                    ray[ORIGIN + j] = pose[PLACE + j] + (x * p[0] + y * p[1] + z * p[2])
                ray[DIRECTION + j] = d[j] if is_level else x * d[0] + y * d[1] + z * d[2]
            ray[RANGE], ray[CLOSING] = math.inf, 0.0


@device_function
def distance_to_bed(ray: Floats, bed: Floats, bumps: Floats, limit: float) -> float:
    """Return the distance to the analytic bed. ``bed`` contains the depth, the slopes to north and east, and the
    maximum slope. ``bumps`` (n, 5) contains height, position and scales.

    The steps are bounded by the maximum slope, so a ray cannot pass through a hill.
    """
    dx, dy, dz = ray[DIRECTION], ray[DIRECTION + 1], ray[DIRECTION + 2]
    fall = bed[3] * hypot(dx, dy) + dz  # maximum rate at which ray and bed approach each other
    if not fall > 0.0:
        return math.inf
    t = 0.0
    for _ in range(STEPS):
        x, y, z = ray[ORIGIN] + t * dx, ray[ORIGIN + 1] + t * dy, ray[ORIGIN + 2] + t * dz
        depth = bed[0] + bed[1] * x + bed[2] * y
        for k in range(len(bumps)):
            b = bumps[k]
            north, east = b[3] * (x - b[1]), b[4] * (y - b[2])
            depth = depth + b[0] * exp(-(north * north) - east * east)
        clear = depth - z
        if clear <= CLOSE:
            return t if t <= limit else math.inf
        t += maximum(clear, CLOSE) / fall if clear < math.inf else 5.0
        if not t <= limit:
            break
    return math.inf


@device_function
def distance_to_slab(p: float, v: float, half: float) -> tuple[float, float]:
    """Return the distances at which a ray enters and leaves the space between two planes at ``-half`` and ``half``."""
    if abs(v) < 1e-12:  # parallel
        return (-math.inf, math.inf) if abs(p) <= half else (math.inf, -math.inf)
    near, far = (-half - p) / v, (half - p) / v
    return minimum(near, far), maximum(near, far)


@device_function
def is_towards(x: float, y: float, z: float, ray: Floats, square: float) -> bool:
    """Return whether a ray passes the origin of the relative coordinates at a squared distance of at most ``square``."""
    ahead = -(x * ray[DIRECTION] + y * ray[DIRECTION + 1] + z * ray[DIRECTION + 2])
    far = x * x + y * y + z * z
    return bool(far - ahead * ahead <= square + 1e-6 and (ahead > 0.0 or far <= square))


@device_function
def distance_to_box(x: float, y: float, z: float, ray: Floats, box: Floats) -> float:
    """Return the distance to an upright box from a position relative to its centre; 0 = the position is inside, inf =
    no hit.
    """
    u, v, w = ray[DIRECTION], ray[DIRECTION + 1], ray[DIRECTION + 2]
    low, high = -math.inf, math.inf
    for k in range(3):
        a, b, c = box[BOX_AXES + k], box[BOX_AXES + 3 + k], box[BOX_AXES + 6 + k]
        near, far = distance_to_slab(x * a + y * b + z * c, u * a + v * b + w * c, box[BOX_HALF + k])
        low, high = maximum(low, near), minimum(high, far)
    return maximum(low, 0.0) if low <= high and high >= 0.0 else math.inf


@device_function
def distance_to_pier(x: float, y: float, z: float, ray: Floats, pier: Floats) -> float:
    """Return the distance to an upright cylinder from a position relative to its centre; 0 = the position is inside,
    inf = no hit.
    """
    u, v = ray[DIRECTION], ray[DIRECTION + 1]
    a, b = u * u + v * v, x * u + y * v
    c = x * x + y * y - pier[PIER_RADIUS] * pier[PIER_RADIUS]
    if a < 1e-24:  # upright
        low, high = (-math.inf, math.inf) if c <= 0.0 else (math.inf, -math.inf)
    else:
        square = b * b - a * c
        root = math.sqrt(square) if square >= 0.0 else math.nan
        low, high = (-b - root) / a, (-b + root) / a
    near, far = distance_to_slab(z, ray[DIRECTION + 2], pier[PIER_HALF])
    low, high = maximum(low, near), minimum(high, far)
    return maximum(low, 0.0) if low <= high and high >= 0.0 else math.inf


@kernel
def cast_rays(
    rays: Floats, bed: Floats, bumps: Floats, boxes: Floats, piers: Floats, limit: float, level: float, surface: bool
) -> None:
    """Set the ranges of rays to the nearest part of the bed, the boxes and the piers within ``limit`` (m).

    With ``surface``, rays from below the water also hit its surface, which is ``level`` m above the mean.
    """
    for i in range(rays.shape[0]):
        for k in range(rays.shape[1]):
            ray = rays[i, k]
            found = distance_to_bed(ray, bed, bumps, limit)
            for j in range(len(boxes)):
                box = boxes[j]
                x, y, z = ray[ORIGIN] - box[0], ray[ORIGIN + 1] - box[1], ray[ORIGIN + 2] - box[2]
                if is_towards(x, y, z, ray, box[BOX_SQUARE]):
                    found = minimum(found, distance_to_box(x, y, z, ray, box))
            for j in range(len(piers)):
                pier = piers[j]
                x, y, z = ray[ORIGIN] - pier[0], ray[ORIGIN + 1] - pier[1], ray[ORIGIN + 2] - pier[2]
                if is_towards(x, y, z, ray, pier[PIER_SQUARE]):
                    found = minimum(found, distance_to_pier(x, y, z, ray, pier))
            if surface and ray[DIRECTION + 2] < 0.0:
                depth = ray[ORIGIN + 2] + level
                if depth >= 0.0:
                    found = minimum(found, -depth / ray[DIRECTION + 2])
            ray[RANGE] = found if found <= limit else math.inf


@kernel
def may_hit_bodies(rays: Floats, own: Ints, state: Floats, bodies: Ints, radii: Floats, limit: float) -> bool:
    """Return whether any ray, within its range and ``limit``, may hit a body other than the one that carries its
    instrument.

    ``own`` (n,) contains the row of each instrument's body in the `state` table. ``bodies`` contains the rows of all
    bodies, and ``radii`` the radii of their bounding spheres.
    """
    for i in range(rays.shape[0]):
        origin, reach = rays[i, 0], 0.0
        for k in range(rays.shape[1]):
            ray = rays[i, k]
            x, y, z = ray[0] - origin[0], ray[1] - origin[1], ray[2] - origin[2]
            reach = maximum(reach, math.sqrt(x * x + y * y + z * z) + minimum(ray[RANGE], limit))
        for j in range(len(bodies)):
            p = state[bodies[j]]
            x, y, z = p[POSITION] - origin[0], p[POSITION + 1] - origin[1], p[POSITION + 2] - origin[2]
            apart = reach + radii[j] + MARGIN
            if bodies[j] != own[i] and not x * x + y * y + z * z > apart * apart:
                return True
    return False


@kernel
def fill_echosounder(poses: Floats, rays: Floats, noise: Floats, blanking: float, out: Floats) -> None:
    """Compute the values of echosounders from their rays (n, beams, RAY_COLUMNS) and standard normal random numbers (n,
    1).

    Ranges up to ``blanking`` (m) are not valid.
    """
    for i in range(len(out)):
        nearest = math.inf
        for k in range(rays.shape[1]):
            nearest = minimum(nearest, rays[i, k, RANGE])
        is_hit = math.isfinite(nearest)
        out[i, _ECHO_RANGE] = nearest + ECHO_SIGMA * noise[i, 0] if is_hit else math.nan
        out[i, VALID] = TRUE if is_hit and nearest > blanking and poses[i, DEPTH] >= -FLOATING else FALSE


KERNELS: Kernels = (
    (fill_rays, NUMBERS, NUMBERS, NUMBERS, False, False, RAYS),
    (cast_rays, RAYS, VECTOR, NUMBERS, NUMBERS, NUMBERS, 0.0, 0.0, False),
    (may_hit_bodies, RAYS, ROWS, NUMBERS, ROWS, VECTOR, 0.0),
)
ECHOSOUNDER_KERNELS: Kernels = (*KERNELS, (fill_echosounder, NUMBERS, RAYS, NUMBERS, 0.0, NUMBERS))
