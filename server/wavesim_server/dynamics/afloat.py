"""How much of a body is under water in a stage, and where its centre is: constant far below the surface, by its shape at it."""

from __future__ import annotations

import math

from wavesim_sdk.kernel_compiler import always_inline, device_function
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics.lanes import broadcast, element, load, maximum, minimum, select, splat, sqrt, store
from wavesim_server.dynamics.rows import (
    BUOYANCY,
    BUOYANCY_CENTRE,
    FULL_B,
    HALF,
    KIND_FACES,
    LANES,
    LEVEL,
    NUR,
    PRESENT,
    PZ,
    RB,
    REACH,
    ROT,
    SHAPE,
    SLOPE,
    STATE,
    TMP,
    VOLUME,
    WET,
)
from wavesim_server.dynamics.types import Floats, Ints


@always_inline
def submerged(params: Floats, work: Floats) -> None:
    """Buoyancy of bodies that are under water in this whole step."""
    store(work, BUOYANCY, broadcast(params, FULL_B))
    store(work, BUOYANCY_CENTRE, broadcast(params, RB))
    store(work, BUOYANCY_CENTRE + 1, broadcast(params, RB + 1))
    store(work, BUOYANCY_CENTRE + 2, broadcast(params, RB + 2))
    store(work, WET, splat(1.0))


@always_inline
def floating(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats) -> None:
    """Buoyancy of bodies at the surface: the true volume under the local water plane and its centre. It acts against DOWN,
    upright on the slope of a wave whose water accelerates so."""
    z = load(work, STATE + PZ) - load(block, LEVEL)
    r31, r32, r33 = load(work, ROT + 6), load(work, ROT + 7), load(work, ROT + 8)
    sx, sy = -load(block, SLOPE), -load(block, SLOPE + 1)
    s = 1.0 / sqrt(1.0 + sx * sx + sy * sy)
    nx = s * (r31 + sx * load(work, ROT) + sy * load(work, ROT + 3))
    ny = s * (r32 + sx * load(work, ROT + 1) + sy * load(work, ROT + 4))
    nz = s * (r33 + sx * load(work, ROT + 2) + sy * load(work, ROT + 5))
    store(work, TMP, nx)
    store(work, TMP + 1, ny)
    store(work, TMP + 2, nz)
    store(work, TMP + 3, -z * s)
    _displaced(block, params, work, kind, tables)


@always_inline
def an_instant_later(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats, instant: float) -> None:
    """Buoyancy when a body has moved on through the water for an instant; its centre stays that of now."""
    nx, ny, nz = load(work, TMP), load(work, TMP + 1), load(work, TMP + 2)
    u, v, w = load(work, NUR), load(work, NUR + 1), load(work, NUR + 2)
    p, q, r = load(work, NUR + 3), load(work, NUR + 4), load(work, NUR + 5)
    x, y, d = load(work, BUOYANCY_CENTRE), load(work, BUOYANCY_CENTRE + 1), load(work, BUOYANCY_CENTRE + 2)
    store(work, TMP, nx + instant * (ny * r - nz * q))
    store(work, TMP + 1, ny + instant * (nz * p - nx * r))
    store(work, TMP + 2, nz + instant * (nx * q - ny * p))
    store(work, TMP + 3, load(work, TMP + 3) - instant * (nx * u + ny * v + nz * w))
    _displaced(block, params, work, kind, tables)
    store(work, BUOYANCY_CENTRE, x)
    store(work, BUOYANCY_CENTRE + 1, y)
    store(work, BUOYANCY_CENTRE + 2, d)


@device_function
def _displaced(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats) -> None:
    """Buoyancy and its centre under the plane in the first rows of what is computed lane by lane."""
    nx, ny, nz = load(work, TMP), load(work, TMP + 1), load(work, TMP + 2)
    if kind[KIND_FACES]:
        _floating_mesh(block, params, work, kind, tables)
    elif params[SHAPE] == hydrostatics.SPHERE:
        radius = broadcast(params, HALF)
        d = minimum(maximum(load(work, TMP + 3), -radius), radius)
        cap = radius - d
        square = radius * radius - d * d
        volume = (math.pi / 3.0) * cap * cap * (3.0 * radius - cap)
        moment = (0.25 * math.pi) * square * square / maximum(volume, 1e-300)
        share = volume / ((4.0 / 3.0 * math.pi) * radius * radius * radius)
        full = broadcast(params, FULL_B)
        store(work, BUOYANCY, select(cap < 2.0 * radius, full * share, full))
        store(work, BUOYANCY_CENTRE, broadcast(params, RB) + moment * nx)
        store(work, BUOYANCY_CENTRE + 1, broadcast(params, RB + 1) + moment * ny)
        store(work, BUOYANCY_CENTRE + 2, broadcast(params, RB + 2) + moment * nz)
    else:
        is_box = params[SHAPE] == hydrostatics.BOX
        if is_box:
            _upright_box(params, work)
        for l in range(LANES):
            if not (is_box and _is_upright(block, params, work, l)):
                _displaced_by_one(params, work, l)


@device_function
def _displaced_by_one(params: Floats, work: Floats, l: int) -> None:
    """The same for one box or cylinder at any attitude."""
    fraction, mx, my, mz = hydrostatics.submerged(
        params[SHAPE], params[HALF], params[HALF + 1], params[HALF + 2], params[REACH],
        element(work, TMP, l), element(work, TMP + 1, l), element(work, TMP + 2, l), element(work, TMP + 3, l),
    )  # fmt: skip
    work[BUOYANCY * LANES + l] = params[FULL_B] * fraction
    work[BUOYANCY_CENTRE * LANES + l] = params[RB] + mx
    work[(BUOYANCY_CENTRE + 1) * LANES + l] = params[RB + 1] + my
    work[(BUOYANCY_CENTRE + 2) * LANES + l] = params[RB + 2] + mz


@device_function
def _floating_mesh(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats) -> None:
    """Submerged part of hulls from meshes."""
    for l in range(LANES):
        if element(block, PRESENT, l) == 0.0:
            continue
        if element(work, TMP + 3, l) <= -params[REACH]:  # to the bit as if nobody else were near the surface
            work[BUOYANCY * LANES + l] = params[FULL_B]
            for i in range(3):
                work[(BUOYANCY_CENTRE + i) * LANES + l] = params[RB + i]
            continue
        nx, ny, nz = element(work, TMP, l), element(work, TMP + 1, l), element(work, TMP + 2, l)
        volume, mx, my, mz = hydrostatics.mesh(kind, tables, nx, ny, nz, element(work, TMP + 3, l))
        wet = max(volume, 0.0)
        by = 1.0 / wet if wet > 1e-12 else 0.0
        work[BUOYANCY * LANES + l] = params[FULL_B] * wet / params[VOLUME]
        work[BUOYANCY_CENTRE * LANES + l] = mx * by
        work[(BUOYANCY_CENTRE + 1) * LANES + l] = my * by
        work[(BUOYANCY_CENTRE + 2) * LANES + l] = mz * by


@always_inline
def _is_upright(block: Floats, params: Floats, work: Floats, l: int) -> bool:
    """Whether the water plane cuts only the four upright edges of a box, or there is none."""
    tilt = abs(element(work, TMP, l)) * params[HALF] + abs(element(work, TMP + 1, l)) * params[HALF + 1]
    inside = tilt + abs(element(work, TMP + 3, l)) < abs(element(work, TMP + 2, l)) * params[HALF + 2]
    return inside or element(block, PRESENT, l) == 0.0


@always_inline
def _upright_box(params: Floats, work: Floats) -> None:
    """Submerged part of boxes whose upright edges the water cuts: a column's depth is linear in x and y."""
    hx, hy, hz = broadcast(params, HALF), broadcast(params, HALF + 1), broadcast(params, HALF + 2)
    nz = load(work, TMP + 2)
    nz = select(abs(nz) < 1e-9, 1.0, nz)  # lanes without a body
    level, tx, ty = load(work, TMP + 3) / nz, load(work, TMP) / nz, load(work, TMP + 1) / nz
    side = select(nz > 0.0, 1.0, -1.0)
    height = hz - side * level
    share = 1.0 / height
    square = level * level + (tx * tx * hx * hx + ty * ty * hy * hy) / 3.0
    store(work, BUOYANCY, broadcast(params, FULL_B) * height / (2.0 * hz))
    store(work, BUOYANCY_CENTRE, broadcast(params, RB) + side * tx * hx * hx / 3.0 * share)
    store(work, BUOYANCY_CENTRE + 1, broadcast(params, RB + 1) + side * ty * hy * hy / 3.0 * share)
    store(work, BUOYANCY_CENTRE + 2, broadcast(params, RB + 2) + side * 0.5 * (hz * hz - square) * share)


@device_function
def is_afloat(block: Floats, params: Floats) -> bool:
    """Whether any body of a block is so near the surface that its buoyancy may change within the step."""
    for l in range(LANES):
        if (
            element(block, PRESENT, l) != 0.0
            and element(block, PZ, l) - element(block, LEVEL, l) < 1.5 * params[REACH] + 1.0
        ):
            return True
    return False
