"""Submerged volume and its centre at an integrator stage. Far below the surface, both are constant; at the surface,
they are computed from the shape.
"""

from __future__ import annotations

import math

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.lanes import broadcast, element, load, maximum, minimum, select, splat, sqrt, store
from wavesim_server.dynamics.sizes import LANES


@always_inline
def submerged_buoyancy(params: Floats, work: Floats) -> None:
    """Set the buoyancy of bodies that are under water during the whole step."""
    store(work, W.BUOYANCY, broadcast(params, P.FULL_BUOYANCY))
    store(work, W.BUOYANCY_CENTRE, broadcast(params, P.FULL_BUOYANCY_CENTRE))
    store(work, W.BUOYANCY_CENTRE + 1, broadcast(params, P.FULL_BUOYANCY_CENTRE + 1))
    store(work, W.BUOYANCY_CENTRE + 2, broadcast(params, P.FULL_BUOYANCY_CENTRE + 2))
    store(work, W.WET_SHARE, splat(1.0))


@always_inline
def surface_buoyancy(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Set the buoyancy of bodies at the surface, from the exact volume below the local water plane and the centre of
    this volume.

    The buoyancy acts against G_EFF_B, which is normal to the sloping surface of a wave because the water in the wave
    accelerates.
    """
    z = load(work, W.STATE + B.PZ) - load(block, B.WATER_LEVEL)
    r31, r32, r33 = load(work, W.ROT + 6), load(work, W.ROT + 7), load(work, W.ROT + 8)
    sx, sy = -load(block, B.WATER_SLOPE), -load(block, B.WATER_SLOPE + 1)
    s = 1.0 / sqrt(1.0 + sx * sx + sy * sy)
    nx = s * (r31 + sx * load(work, W.ROT) + sy * load(work, W.ROT + 3))
    ny = s * (r32 + sx * load(work, W.ROT + 1) + sy * load(work, W.ROT + 4))
    nz = s * (r33 + sx * load(work, W.ROT + 2) + sy * load(work, W.ROT + 5))
    store(work, W.LANE_SCRATCH, nx)
    store(work, W.LANE_SCRATCH + 1, ny)
    store(work, W.LANE_SCRATCH + 2, nz)
    store(work, W.LANE_SCRATCH + 3, -z * s)
    _displaced_volume(block, params, work, model_ints, tables)


@always_inline
def buoyancy_after_instant(
    block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats, instant: float
) -> None:
    """Set the buoyancy that a body will have after it has moved through the water for the time ``instant``. The centre
    of buoyancy does not change.
    """
    nx, ny, nz = load(work, W.LANE_SCRATCH), load(work, W.LANE_SCRATCH + 1), load(work, W.LANE_SCRATCH + 2)
    u, v, w = load(work, W.NU_R), load(work, W.NU_R + 1), load(work, W.NU_R + 2)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    x, y, d = load(work, W.BUOYANCY_CENTRE), load(work, W.BUOYANCY_CENTRE + 1), load(work, W.BUOYANCY_CENTRE + 2)
    store(work, W.LANE_SCRATCH, nx + instant * (ny * r - nz * q))
    store(work, W.LANE_SCRATCH + 1, ny + instant * (nz * p - nx * r))
    store(work, W.LANE_SCRATCH + 2, nz + instant * (nx * q - ny * p))
    store(work, W.LANE_SCRATCH + 3, load(work, W.LANE_SCRATCH + 3) - instant * (nx * u + ny * v + nz * w))
    _displaced_volume(block, params, work, model_ints, tables)
    store(work, W.BUOYANCY_CENTRE, x)
    store(work, W.BUOYANCY_CENTRE + 1, y)
    store(work, W.BUOYANCY_CENTRE + 2, d)


@device_function
def _displaced_volume(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Set the buoyancy and its centre for the water plane given in the first rows of the lane scratch."""
    nx, ny, nz = load(work, W.LANE_SCRATCH), load(work, W.LANE_SCRATCH + 1), load(work, W.LANE_SCRATCH + 2)
    if model_ints[M.FACES]:
        _displaced_volume_of_mesh(block, params, work, model_ints, tables)
    elif params[P.SHAPE] == hydrostatics.SPHERE:
        radius = broadcast(params, P.HALF)
        d = minimum(maximum(load(work, W.LANE_SCRATCH + 3), -radius), radius)
        cap = radius - d
        square = radius * radius - d * d
        volume = (math.pi / 3.0) * cap * cap * (3.0 * radius - cap)
        moment = (0.25 * math.pi) * square * square / maximum(volume, 1e-300)
        share = volume / ((4.0 / 3.0 * math.pi) * radius * radius * radius)
        full = broadcast(params, P.FULL_BUOYANCY)
        store(work, W.BUOYANCY, select(cap < 2.0 * radius, full * share, full))
        store(work, W.BUOYANCY_CENTRE, broadcast(params, P.FULL_BUOYANCY_CENTRE) + moment * nx)
        store(work, W.BUOYANCY_CENTRE + 1, broadcast(params, P.FULL_BUOYANCY_CENTRE + 1) + moment * ny)
        store(work, W.BUOYANCY_CENTRE + 2, broadcast(params, P.FULL_BUOYANCY_CENTRE + 2) + moment * nz)
    else:
        is_box = params[P.SHAPE] == hydrostatics.BOX
        if is_box:
            _upright_box(params, work)
        for l in range(LANES):
            if element(block, B.PRESENT, l) != 0.0 and not (is_box and _is_upright(params, work, l)):
                _displaced_volume_of_lane(params, work, l)


@always_inline
def _water_plane(work: Floats, l: int) -> hydrostatics.WaterPlane:
    """Return the water plane of one lane, from the lane scratch."""
    return hydrostatics.WaterPlane(
        element(work, W.LANE_SCRATCH, l),
        element(work, W.LANE_SCRATCH + 1, l),
        element(work, W.LANE_SCRATCH + 2, l),
        element(work, W.LANE_SCRATCH + 3, l),
    )


@device_function
def _displaced_volume_of_lane(params: Floats, work: Floats, l: int) -> None:
    """Set the buoyancy and its centre for one box or cylinder at any attitude."""
    fraction, mx, my, mz = hydrostatics.submerged_share(
        params[P.SHAPE],
        params[P.HALF],
        params[P.HALF + 1],
        params[P.HALF + 2],
        params[P.BOUNDING_RADIUS],
        _water_plane(work, l),
    )
    work[W.BUOYANCY * LANES + l] = params[P.FULL_BUOYANCY] * fraction
    work[W.BUOYANCY_CENTRE * LANES + l] = params[P.FULL_BUOYANCY_CENTRE] + mx
    work[(W.BUOYANCY_CENTRE + 1) * LANES + l] = params[P.FULL_BUOYANCY_CENTRE + 1] + my
    work[(W.BUOYANCY_CENTRE + 2) * LANES + l] = params[P.FULL_BUOYANCY_CENTRE + 2] + mz


@device_function
def _displaced_volume_of_mesh(block: Floats, params: Floats, work: Floats, model_ints: Ints, tables: Floats) -> None:
    """Set the submerged part of hulls that are given as meshes."""
    for l in range(LANES):
        if element(block, B.PRESENT, l) == 0.0:
            continue
        if (
            element(work, W.LANE_SCRATCH + 3, l) <= -params[P.BOUNDING_RADIUS]
        ):  # identical to the bit to a block without other bodies near the surface
            work[W.BUOYANCY * LANES + l] = params[P.FULL_BUOYANCY]
            for i in range(3):
                work[(W.BUOYANCY_CENTRE + i) * LANES + l] = params[P.FULL_BUOYANCY_CENTRE + i]
            continue
        volume, mx, my, mz = hydrostatics.mesh_volume(model_ints, tables, _water_plane(work, l))
        wet = max(volume, 0.0)
        by = 1.0 / wet if wet > 1e-12 else 0.0
        work[W.BUOYANCY * LANES + l] = params[P.FULL_BUOYANCY] * wet / params[P.VOLUME]
        work[W.BUOYANCY_CENTRE * LANES + l] = mx * by
        work[(W.BUOYANCY_CENTRE + 1) * LANES + l] = my * by
        work[(W.BUOYANCY_CENTRE + 2) * LANES + l] = mz * by


@always_inline
def _is_upright(params: Floats, work: Floats, l: int) -> bool:
    """Return whether the water plane cuts only the four upright edges of a box, or does not cut it."""
    tilt = (
        abs(element(work, W.LANE_SCRATCH, l)) * params[P.HALF]
        + abs(element(work, W.LANE_SCRATCH + 1, l)) * params[P.HALF + 1]
    )
    return bool(
        tilt + abs(element(work, W.LANE_SCRATCH + 3, l))
        < abs(element(work, W.LANE_SCRATCH + 2, l)) * params[P.HALF + 2]
    )


@always_inline
def _upright_box(params: Floats, work: Floats) -> None:
    """Set the submerged part of boxes whose upright edges the water plane cuts. The immersed depth of each column of
    the box is linear in x and y.
    """
    hx, hy, hz = broadcast(params, P.HALF), broadcast(params, P.HALF + 1), broadcast(params, P.HALF + 2)
    nz = load(work, W.LANE_SCRATCH + 2)
    nz = select(abs(nz) < 1e-9, 1.0, nz)  # lanes without a body
    level, tx, ty = (
        load(work, W.LANE_SCRATCH + 3) / nz,
        load(work, W.LANE_SCRATCH) / nz,
        load(work, W.LANE_SCRATCH + 1) / nz,
    )
    side = select(nz > 0.0, 1.0, -1.0)
    height = hz - side * level
    share = 1.0 / height
    square = level * level + (tx * tx * hx * hx + ty * ty * hy * hy) / 3.0
    store(work, W.BUOYANCY, broadcast(params, P.FULL_BUOYANCY) * height / (2.0 * hz))
    store(work, W.BUOYANCY_CENTRE, broadcast(params, P.FULL_BUOYANCY_CENTRE) + side * tx * hx * hx / 3.0 * share)
    store(
        work, W.BUOYANCY_CENTRE + 1, broadcast(params, P.FULL_BUOYANCY_CENTRE + 1) + side * ty * hy * hy / 3.0 * share
    )
    store(
        work,
        W.BUOYANCY_CENTRE + 2,
        broadcast(params, P.FULL_BUOYANCY_CENTRE + 2) + side * 0.5 * (hz * hz - square) * share,
    )


@device_function
def is_afloat(block: Floats, params: Floats) -> bool:
    """Return whether at least one body in a block is so close to the surface that its buoyancy may change within the
    step.
    """
    for l in range(LANES):
        if (
            element(block, B.PRESENT, l) != 0.0
            and element(block, B.PZ, l) - element(block, B.WATER_LEVEL, l) < 1.5 * params[P.BOUNDING_RADIUS] + 1.0
        ):
            return True
    return False
