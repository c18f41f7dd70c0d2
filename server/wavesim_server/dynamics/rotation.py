"""Attitude, compiled: of numbers, and of all lanes at once."""

from __future__ import annotations

import numba as nb

from wavesim_server.dynamics.types import Lanes

_inline = nb.njit(cache=True, error_model="numpy", forceinline=True)


@_inline
def matrix(
    w: Lanes, x: Lanes, y: Lanes, z: Lanes
) -> tuple[Lanes, Lanes, Lanes, Lanes, Lanes, Lanes, Lanes, Lanes, Lanes]:
    """R_WB of the unit quaternion q_WB, row by row."""
    return (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w),
        2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w),
        2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip


@_inline
def to_world(w: Lanes, x: Lanes, y: Lanes, z: Lanes, bx: Lanes, by: Lanes, bz: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """A vector of B in W, by q_WB: for one vector cheaper than the matrix."""
    tx, ty, tz = 2.0 * (y * bz - z * by), 2.0 * (z * bx - x * bz), 2.0 * (x * by - y * bx)
    return bx + w * tx + y * tz - z * ty, by + w * ty + z * tx - x * tz, bz + w * tz + x * ty - y * tx
