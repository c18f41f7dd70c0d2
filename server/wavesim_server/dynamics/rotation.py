"""Attitude functions, compiled. Each function accepts either single numbers or vectors of all lanes, so the types are
``Any``.
"""

from __future__ import annotations

from typing import Any

from wavesim_sdk.compiled_elementary import rotation_elements
from wavesim_sdk.kernel_compiler import always_inline

matrix = rotation_elements


@always_inline
def to_world(w: Any, x: Any, y: Any, z: Any, bx: Any, by: Any, bz: Any) -> tuple[Any, Any, Any]:
    """Rotate a vector from B to W by q_WB. For a single vector, this is cheaper than the matrix."""
    tx, ty, tz = 2.0 * (y * bz - z * by), 2.0 * (z * bx - x * bz), 2.0 * (x * by - y * bx)
    return bx + w * tx + y * tz - z * ty, by + w * ty + z * tx - x * tz, bz + w * tz + x * ty - y * tx
