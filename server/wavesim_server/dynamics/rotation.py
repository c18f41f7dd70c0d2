"""Attitude functions, compiled. Each function accepts either single numbers or vectors with one number per lane."""

from __future__ import annotations

from wavesim_kernels.compiled_elementary import rotation_elements
from wavesim_kernels.compiler import always_inline
from wavesim_server.dynamics.types import Number

matrix = rotation_elements


@always_inline
def to_world(
    w: Number, x: Number, y: Number, z: Number, bx: Number, by: Number, bz: Number
) -> tuple[Number, Number, Number]:
    """Rotate a vector from B to W by q_WB. For a single vector, this is cheaper than rotation with the matrix."""
    tx, ty, tz = 2.0 * (y * bz - z * by), 2.0 * (z * bx - x * bz), 2.0 * (x * by - y * bx)
    return bx + w * tx + y * tz - z * ty, by + w * ty + z * tx - x * tz, bz + w * tz + x * ty - y * tx
