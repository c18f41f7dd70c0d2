"""Broad phase of contact detection, compiled. It lists the pairs of bodies and obstacles that may touch soon.

The list is valid until a body has moved by the width of its skin, which is a margin around the body.
"""

from __future__ import annotations

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Ints
from wavesim_server.dynamics.bodies import BodyArrays, bounding_sphere
from wavesim_server.dynamics.contact_memory import N_LOST, N_PAIRS, ContactMemory
from wavesim_server.dynamics.shapes import (
    CORE_MARGIN,
    HALF_X,
    HALF_Y,
    HALF_Z,
    RADIUS,
    SHAPE_CODE,
    TRIANGLE,
    X,
    Y,
    Z,
    to_body,
)

SKIN = 1.0  #: width of the skin around a body in m


@device_function
def list_pairs(f: BodyArrays, order: Ints, count: int, t: ContactMemory) -> None:
    """List all pairs that can meet before a body has moved by the width of the skin. ``order`` contains the rows,
    sorted by the lowest x coordinate of each body.
    """
    for i in range(1, count):  # insertion sort: the order hardly changes
        row = order[i]
        key = _lowest_x(f, row)
        k = i - 1
        while k >= 0 and _lowest_x(f, order[k]) > key:
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = row
    n = 0
    for i in range(count):
        ra = order[i]
        xa, ya, za, reach = bounding_sphere(f, ra)
        for k in range(i + 1, count):
            rb = order[k]
            xb, yb, zb, rad = bounding_sphere(f, rb)
            if xb - rad > xa + reach + SKIN:
                break
            far = reach + rad + SKIN
            dx, dy, dz = xb - xa, yb - ya, zb - za
            if abs(dy) < far and dx * dx + dy * dy + dz * dz < far * far:
                n = _add_pair(t, n, min(ra, rb), max(ra, rb))
        for k in range(t.obstacles.shape[0]):
            g = t.obstacles[k]
            dx, dy, dz = xa - g[X], ya - g[Y], za - g[Z]
            if g[SHAPE_CODE] == TRIANGLE:
                far = reach + SKIN + g[RADIUS]
                if dx * dx + dy * dy + dz * dz < far * far:
                    n = _add_pair(t, n, ra, -1 - k)
                continue
            bx, by, bz = to_body(g, dx, dy, dz)
            outside = max(abs(bx) - g[HALF_X], abs(by) - g[HALF_Y], abs(bz) - g[HALF_Z])
            if outside < reach + SKIN + g[CORE_MARGIN]:
                n = _add_pair(t, n, ra, -1 - k)
    t.counters[N_PAIRS] = min(n, t.pairs.shape[0])
    t.counters[N_LOST] += max(n - t.pairs.shape[0], 0)
    t.moved_since_listing[0] = 0.0


@device_function
def _add_pair(t: ContactMemory, n: int, a: int, b: int) -> int:
    if n < t.pairs.shape[0]:
        t.pairs[n, 0], t.pairs[n, 1] = a, b
    return n + 1


@device_function
def _lowest_x(f: BodyArrays, row: int) -> float:
    x, _, _, reach = bounding_sphere(f, row)
    return x - reach
