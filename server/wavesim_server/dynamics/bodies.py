"""Pose, size and speed of bodies for contacts and forces, and the check that their states are finite; compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_sdk.arrays import Floats, Ints
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import rotation
from wavesim_server.dynamics.shapes import (
    CORE,
    CORE_MARGIN,
    POSE,
    R11,
    R12,
    R13,
    R21,
    R22,
    R23,
    R31,
    R32,
    R33,
    SHAPE_CODE,
)
from wavesim_server.dynamics.sizes import LANES


class BodyArrays(NamedTuple):
    """All bodies in a simulation; see :class:`~wavesim_server.dynamics.fleet.FleetDynamics`."""

    blocks: Floats  # (n, B.SIZE)
    slots: Ints  # slot of each row: block times LANES plus lane
    block_heads: Ints  # (n, B.HEAD_SIZE)
    params: Floats  # (models, P.ROWS)


class ModelArrays(NamedTuple):
    """Integers and tables for all models, in addition to their parameters."""

    ints: Ints  # (models, M.COLUMNS)
    tables: Floats  # (tables, 2, TABLE_POINTS)


class TickScratch(NamedTuple):
    """Scratch arrays for the tick: occupied rows, transducers on the bodies, last finite states."""

    order: Ints
    transducer_levers: Floats
    last_finite: Floats
    faults: Ints
    counters: Ints  # number of bodies, contacts, new faults


@device_function
def geometry(f: BodyArrays, row: int, g: Floats) -> None:
    """Fill in the geometry of a body at its current pose."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    p = f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]]
    margin = p[P.CONTACT_MARGIN]
    g[SHAPE_CODE] = p[P.SHAPE]
    for i in range(3):
        g[CORE + i] = max(p[P.HALF + i] - margin, 0.0)
        g[POSE + i] = b[(B.PX + i) * LANES + l]
    g[CORE_MARGIN] = margin
    g[R11], g[R12], g[R13], g[R21], g[R22], g[R23], g[R31], g[R32], g[R33] = rotation.matrix(
        b[B.QW * LANES + l], b[B.QX * LANES + l], b[B.QY * LANES + l], b[B.QZ * LANES + l]
    )


@always_inline
def bounding_sphere(f: BodyArrays, row: int) -> tuple[float, float, float, float]:
    """Return the position of a body and the radius of its bounding sphere."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    p = f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]]
    return b[B.PX * LANES + l], b[B.PY * LANES + l], b[B.PZ * LANES + l], p[P.BOUNDING_RADIUS]


@always_inline
def speed_bound(f: BodyArrays, row: int) -> float:
    """Return an upper bound on the speed of any point of a body."""
    slot = f.slots[row]
    b, l = f.blocks[slot // LANES], slot % LANES
    reach = f.params[f.block_heads[slot // LANES, B.HEAD_MODEL]][P.BOUNDING_RADIUS]
    u, v, w = b[B.NU * LANES + l], b[(B.NU + 1) * LANES + l], b[(B.NU + 2) * LANES + l]
    p, q, r = b[(B.NU + 3) * LANES + l], b[(B.NU + 4) * LANES + l], b[(B.NU + 5) * LANES + l]
    return math.sqrt(u * u + v * v + w * w) + reach * math.sqrt(p * p + q * q + r * r)


@always_inline
def is_asleep(f: BodyArrays, row: int) -> bool:
    """Return whether a body is asleep and is therefore skipped; see :mod:`wavesim_server.dynamics.sleep`."""
    slot = f.slots[row]
    return bool(f.blocks[slot // LANES, B.ASLEEP * LANES + slot % LANES] != 0.0)


@device_function
def hold_diverged(f: BodyArrays, order: Ints, count: int, last_finite: Floats, faults: Ints) -> tuple[int, float]:
    """If the state of a body is no longer finite, freeze the body in its last finite state. Returns the number of newly
    frozen bodies and the maximum speed. Sleeping bodies do not change.

    If the angular rate is so large that the norm of the quaternion overflows, normalisation makes the quaternion zero.
    Such a state is finite, but the body has no attitude, so it counts as diverged.
    """
    newly_diverged, fastest = 0, 0.0
    for i in range(count):
        row = order[i]
        slot = f.slots[row]
        b, l = f.blocks[slot // LANES], slot % LANES
        if b[B.ASLEEP * LANES + l] != 0.0:
            continue
        total = 0.0
        for k in range(B.RIGID_ROWS):
            total += b[k * LANES + l]
        e0, x, y, z = b[B.QW * LANES + l], b[B.QX * LANES + l], b[B.QY * LANES + l], b[B.QZ * LANES + l]
        if faults[row] == 0 and math.isfinite(total) and e0 * e0 + x * x + y * y + z * z > 0.5:
            for k in range(B.RIGID_ROWS):
                last_finite[row, k] = b[k * LANES + l]
            fastest = max(fastest, speed_bound(f, row))
        elif b[B.PRESENT * LANES + l] != 0.0:
            for k in range(B.STATE_ROWS):
                b[k * LANES + l] = last_finite[row, k] if k < B.NU else 0.0
            newly_diverged += 1 - faults[row]
            faults[row] = 1
    return newly_diverged, fastest
