"""How much of a body is under water in a stage, and where its centre is: constant far below the surface, by its shape at it."""

from __future__ import annotations

import math

from wavesim_sdk.parts import inlined, part
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics.lanes import broadcast, element, load, maximum, minimum, select, sqrt, store
from wavesim_server.dynamics.rows import (
    BUOYANCY,
    BUOYANCY_CENTRE,
    FULL_B,
    HALF,
    KIND_FACES,
    LANES,
    LEVEL,
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
)
from wavesim_server.dynamics.types import Floats, Ints


@inlined
def submerged(params: Floats, work: Floats) -> None:
    """Buoyancy of bodies that are under water in this whole step."""
    store(work, BUOYANCY, broadcast(params, FULL_B))
    store(work, BUOYANCY_CENTRE, broadcast(params, RB))
    store(work, BUOYANCY_CENTRE + 1, broadcast(params, RB + 1))
    store(work, BUOYANCY_CENTRE + 2, broadcast(params, RB + 2))


@inlined
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
    if kind[KIND_FACES]:
        _floating_mesh(block, params, work, kind, tables)
    elif params[SHAPE] == hydrostatics.SPHERE:
        radius = broadcast(params, HALF)
        d = minimum(maximum(-z * s, -radius), radius)
        cap = radius - d
        square = radius * radius - d * d
        volume = (math.pi / 3.0) * cap * cap * (3.0 * radius - cap)
        moment = (0.25 * math.pi) * square * square / maximum(volume, 1e-300)
        store(work, BUOYANCY, broadcast(params, FULL_B) * volume / ((4.0 / 3.0 * math.pi) * radius * radius * radius))
        store(work, BUOYANCY_CENTRE, broadcast(params, RB) + moment * nx)
        store(work, BUOYANCY_CENTRE + 1, broadcast(params, RB + 1) + moment * ny)
        store(work, BUOYANCY_CENTRE + 2, broadcast(params, RB + 2) + moment * nz)
    elif params[SHAPE] == hydrostatics.BOX and _is_upright(block, params, work):
        _upright_box(params, work)
    else:
        for l in range(LANES):
            fraction, mx, my, mz = hydrostatics.submerged(
                params[SHAPE], params[HALF], params[HALF + 1], params[HALF + 2], params[REACH],
                element(work, TMP, l), element(work, TMP + 1, l), element(work, TMP + 2, l), element(work, TMP + 3, l),
            )  # fmt: skip
            work[BUOYANCY * LANES + l] = params[FULL_B] * fraction
            work[BUOYANCY_CENTRE * LANES + l] = params[RB] + mx
            work[(BUOYANCY_CENTRE + 1) * LANES + l] = params[RB + 1] + my
            work[(BUOYANCY_CENTRE + 2) * LANES + l] = params[RB + 2] + mz


@part
def _floating_mesh(block: Floats, params: Floats, work: Floats, kind: Ints, tables: Floats) -> None:
    """Submerged part of hulls from meshes."""
    for l in range(LANES):
        if element(block, PRESENT, l) == 0.0:
            continue
        nx, ny, nz = element(work, TMP, l), element(work, TMP + 1, l), element(work, TMP + 2, l)
        volume, mx, my, mz = hydrostatics.mesh(kind, tables, nx, ny, nz, element(work, TMP + 3, l))
        wet = max(volume, 0.0)
        by = 1.0 / wet if wet > 1e-12 else 0.0
        work[BUOYANCY * LANES + l] = params[FULL_B] * wet / params[VOLUME]
        work[BUOYANCY_CENTRE * LANES + l] = mx * by
        work[(BUOYANCY_CENTRE + 1) * LANES + l] = my * by
        work[(BUOYANCY_CENTRE + 2) * LANES + l] = mz * by


@part
def _is_upright(block: Floats, params: Floats, work: Floats) -> bool:
    """Whether the water plane cuts only the four upright edges of every box of a block."""
    for l in range(LANES):
        if element(block, PRESENT, l) != 0.0:
            tilt = abs(element(work, TMP, l)) * params[HALF] + abs(element(work, TMP + 1, l)) * params[HALF + 1]
            if not tilt + abs(element(work, TMP + 3, l)) < abs(element(work, TMP + 2, l)) * params[HALF + 2]:
                return False
    return True


@inlined
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


@part
def is_afloat(block: Floats, params: Floats) -> bool:
    """Whether any body of a block is so near the surface that its buoyancy may change within the step."""
    for l in range(LANES):
        if (
            element(block, PRESENT, l) != 0.0
            and element(block, PZ, l) - element(block, LEVEL, l) < 1.5 * params[REACH] + 1.0
        ):
            return True
    return False
