"""A custom hydrodynamic term: a drogue towed from a point P on the hull.

The force is F = -drag abs(v_P) v_P, where v_P is the velocity of P through the water.
"""

from wavesim_kernels.compiler import always_inline
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.extension_points import Term
from wavesim_server.dynamics.lanes import add_to, broadcast, load, sqrt
from wavesim_server.dynamics.types import Floats


@always_inline
def force(block: Floats, params: Floats, first: int, work: Floats) -> None:
    drag = broadcast(params, first)  # 1/2 rho C_D A, kg/m
    x, y, z = broadcast(params, first + 1), broadcast(params, first + 2), broadcast(params, first + 3)
    p, q, r = load(work, W.NU_R + 3), load(work, W.NU_R + 4), load(work, W.NU_R + 5)
    u = load(work, W.NU_R) + q * z - r * y
    v = load(work, W.NU_R + 1) + r * x - p * z
    w = load(work, W.NU_R + 2) + p * y - q * x
    size = -drag * sqrt(u * u + v * v + w * w)
    fx, fy, fz = size * u, size * v, size * w
    add_to(work, W.FORCE, fx)
    add_to(work, W.FORCE + 1, fy)
    add_to(work, W.FORCE + 2, fz)
    add_to(work, W.FORCE + 3, y * fz - z * fy)
    add_to(work, W.FORCE + 4, z * fx - x * fz)
    add_to(work, W.FORCE + 5, x * fy - y * fx)


DROGUE = Term("drogue", ("drag", "x", "y", "z"), force)
