"""Submerged volume and its centre in a stage: constant far below the surface, computed from the shape at the surface."""

from __future__ import annotations

import math

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics.lanes import broadcast, element, load, maximum, minimum, select, splat, sqrt, store
from wavesim_server.dynamics.rows import (
    BOUNDING_RADIUS,
    BUOYANCY,
    BUOYANCY_CENTRE,
    FULL_BUOYANCY,
    FULL_BUOYANCY_CENTRE,
    HALF,
    LANE_SCRATCH,
    LANES,
    MODEL_FACES,
    NU_R,
    PRESENT,
    PZ,
    ROT,
    SHAPE,
    STATE,
    VOLUME,
    WATER_LEVEL,
    WATER_SLOPE,
    WET_SHARE,
)
from wavesim_server.dynamics.types import Floats, Ints


@always_inline
def submerged_buoyancy(params: Floats, work: Floats) -> None:
    """Set the buoyancy of bodies that are under water during the whole step."""
    store(work, BUOYANCY, broadcast(params, FULL_BUOYANCY))
    store(work, BUOYANCY_CENTRE, broadcast(params, FULL_BUOYANCY_CENTRE))
    store(work, BUOYANCY_CENTRE + 1, broadcast(params, FULL_BUOYANCY_CENTRE + 1))
    store(work, BUOYANCY_CENTRE + 2, broadcast(params, FULL_BUOYANCY_CENTRE + 2))
    store(work, WET_SHARE, splat(1.0))


@always_inline
def surface_buoyancy(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Set the buoyancy of bodies at the surface, from the exact volume under the local water plane and its centre.

    The buoyancy acts against G_EFF_B, which is normal to the slope of a wave whose water accelerates.
    """
    z = load(work, STATE + PZ) - load(block, WATER_LEVEL)
    r31, r32, r33 = load(work, ROT + 6), load(work, ROT + 7), load(work, ROT + 8)
    sx, sy = -load(block, WATER_SLOPE), -load(block, WATER_SLOPE + 1)
    s = 1.0 / sqrt(1.0 + sx * sx + sy * sy)
    nx = s * (r31 + sx * load(work, ROT) + sy * load(work, ROT + 3))
    ny = s * (r32 + sx * load(work, ROT + 1) + sy * load(work, ROT + 4))
    nz = s * (r33 + sx * load(work, ROT + 2) + sy * load(work, ROT + 5))
    store(work, LANE_SCRATCH, nx)
    store(work, LANE_SCRATCH + 1, ny)
    store(work, LANE_SCRATCH + 2, nz)
    store(work, LANE_SCRATCH + 3, -z * s)
    _displaced_volume(block, params, work, model_ints, tables)


@always_inline
def buoyancy_after_instant(
    block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats, instant: float
) -> None:
    """Set the buoyancy that a body will have after moving through the water for the time ``instant``. The centre of
    buoyancy does not change.
    """
    nx, ny, nz = load(work, LANE_SCRATCH), load(work, LANE_SCRATCH + 1), load(work, LANE_SCRATCH + 2)
    u, v, w = load(work, NU_R), load(work, NU_R + 1), load(work, NU_R + 2)
    p, q, r = load(work, NU_R + 3), load(work, NU_R + 4), load(work, NU_R + 5)
    x, y, d = load(work, BUOYANCY_CENTRE), load(work, BUOYANCY_CENTRE + 1), load(work, BUOYANCY_CENTRE + 2)
    store(work, LANE_SCRATCH, nx + instant * (ny * r - nz * q))
    store(work, LANE_SCRATCH + 1, ny + instant * (nz * p - nx * r))
    store(work, LANE_SCRATCH + 2, nz + instant * (nx * q - ny * p))
    store(work, LANE_SCRATCH + 3, load(work, LANE_SCRATCH + 3) - instant * (nx * u + ny * v + nz * w))
    _displaced_volume(block, params, work, model_ints, tables)
    store(work, BUOYANCY_CENTRE, x)
    store(work, BUOYANCY_CENTRE + 1, y)
    store(work, BUOYANCY_CENTRE + 2, d)


@device_function
def _displaced_volume(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Set the buoyancy and its centre for the water plane given in the first rows of the lane scratch."""
    nx, ny, nz = load(work, LANE_SCRATCH), load(work, LANE_SCRATCH + 1), load(work, LANE_SCRATCH + 2)
    if model_ints[MODEL_FACES]:
        _displaced_volume_of_mesh(block, params, work, model_ints, tables)
    elif params[SHAPE] == hydrostatics.SPHERE:
        radius = broadcast(params, HALF)
        d = minimum(maximum(load(work, LANE_SCRATCH + 3), -radius), radius)
        cap = radius - d
        square = radius * radius - d * d
        volume = (math.pi / 3.0) * cap * cap * (3.0 * radius - cap)
        moment = (0.25 * math.pi) * square * square / maximum(volume, 1e-300)
        share = volume / ((4.0 / 3.0 * math.pi) * radius * radius * radius)
        full = broadcast(params, FULL_BUOYANCY)
        store(work, BUOYANCY, select(cap < 2.0 * radius, full * share, full))
        store(work, BUOYANCY_CENTRE, broadcast(params, FULL_BUOYANCY_CENTRE) + moment * nx)
        store(work, BUOYANCY_CENTRE + 1, broadcast(params, FULL_BUOYANCY_CENTRE + 1) + moment * ny)
        store(work, BUOYANCY_CENTRE + 2, broadcast(params, FULL_BUOYANCY_CENTRE + 2) + moment * nz)
    else:
        is_box = params[SHAPE] == hydrostatics.BOX
        if is_box:
            _upright_box(params, work)
        for l in range(LANES):
            if not (is_box and _is_upright(block, params, work, l)):
                _displaced_volume_of_lane(params, work, l)


@device_function
def _displaced_volume_of_lane(params: Floats, work: Floats, l: int) -> None:
    """Set the buoyancy and its centre for one box or cylinder at any attitude."""
    fraction, mx, my, mz = hydrostatics.submerged_share(
        params[SHAPE],
        params[HALF],
        params[HALF + 1],
        params[HALF + 2],
        params[BOUNDING_RADIUS],
        element(work, LANE_SCRATCH, l),
        element(work, LANE_SCRATCH + 1, l),
        element(work, LANE_SCRATCH + 2, l),
        element(work, LANE_SCRATCH + 3, l),
    )
    work[BUOYANCY * LANES + l] = params[FULL_BUOYANCY] * fraction
    work[BUOYANCY_CENTRE * LANES + l] = params[FULL_BUOYANCY_CENTRE] + mx
    work[(BUOYANCY_CENTRE + 1) * LANES + l] = params[FULL_BUOYANCY_CENTRE + 1] + my
    work[(BUOYANCY_CENTRE + 2) * LANES + l] = params[FULL_BUOYANCY_CENTRE + 2] + mz


@device_function
def _displaced_volume_of_mesh(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Set the submerged part of hulls from meshes."""
    for l in range(LANES):
        if element(block, PRESENT, l) == 0.0:
            continue
        if (
            element(work, LANE_SCRATCH + 3, l) <= -params[BOUNDING_RADIUS]
        ):  # identical to the bit to a block without other bodies near the surface
            work[BUOYANCY * LANES + l] = params[FULL_BUOYANCY]
            for i in range(3):
                work[(BUOYANCY_CENTRE + i) * LANES + l] = params[FULL_BUOYANCY_CENTRE + i]
            continue
        nx, ny, nz = (
            element(work, LANE_SCRATCH, l),
            element(work, LANE_SCRATCH + 1, l),
            element(work, LANE_SCRATCH + 2, l),
        )
        volume, mx, my, mz = hydrostatics.mesh_volume(
            model_ints, tables, nx, ny, nz, element(work, LANE_SCRATCH + 3, l)
        )
        wet = max(volume, 0.0)
        by = 1.0 / wet if wet > 1e-12 else 0.0
        work[BUOYANCY * LANES + l] = params[FULL_BUOYANCY] * wet / params[VOLUME]
        work[BUOYANCY_CENTRE * LANES + l] = mx * by
        work[(BUOYANCY_CENTRE + 1) * LANES + l] = my * by
        work[(BUOYANCY_CENTRE + 2) * LANES + l] = mz * by


@always_inline
def _is_upright(block: Floats, params: Floats, work: Floats, l: int) -> bool:
    """Return whether the water plane cuts only the four upright edges of a box, or misses it."""
    tilt = (
        abs(element(work, LANE_SCRATCH, l)) * params[HALF] + abs(element(work, LANE_SCRATCH + 1, l)) * params[HALF + 1]
    )
    inside = tilt + abs(element(work, LANE_SCRATCH + 3, l)) < abs(element(work, LANE_SCRATCH + 2, l)) * params[HALF + 2]
    return inside or element(block, PRESENT, l) == 0.0


@always_inline
def _upright_box(params: Floats, work: Floats) -> None:
    """Set the submerged part of boxes whose upright edges the water cuts: the immersed depth of each column of the box
    is linear in x and y.
    """
    hx, hy, hz = broadcast(params, HALF), broadcast(params, HALF + 1), broadcast(params, HALF + 2)
    nz = load(work, LANE_SCRATCH + 2)
    nz = select(abs(nz) < 1e-9, 1.0, nz)  # lanes without a body
    level, tx, ty = load(work, LANE_SCRATCH + 3) / nz, load(work, LANE_SCRATCH) / nz, load(work, LANE_SCRATCH + 1) / nz
    side = select(nz > 0.0, 1.0, -1.0)
    height = hz - side * level
    share = 1.0 / height
    square = level * level + (tx * tx * hx * hx + ty * ty * hy * hy) / 3.0
    store(work, BUOYANCY, broadcast(params, FULL_BUOYANCY) * height / (2.0 * hz))
    store(work, BUOYANCY_CENTRE, broadcast(params, FULL_BUOYANCY_CENTRE) + side * tx * hx * hx / 3.0 * share)
    store(work, BUOYANCY_CENTRE + 1, broadcast(params, FULL_BUOYANCY_CENTRE + 1) + side * ty * hy * hy / 3.0 * share)
    store(
        work, BUOYANCY_CENTRE + 2, broadcast(params, FULL_BUOYANCY_CENTRE + 2) + side * 0.5 * (hz * hz - square) * share
    )


@device_function
def is_afloat(block: Floats, params: Floats) -> bool:
    """Return whether one of the bodies of a block is so close to the surface that its buoyancy may change within the
    step.
    """
    for l in range(LANES):
        if (
            element(block, PRESENT, l) != 0.0
            and element(block, PZ, l) - element(block, WATER_LEVEL, l) < 1.5 * params[BOUNDING_RADIUS] + 1.0
        ):
            return True
    return False
