"""Poses of transducers within a tick, and readings of their clocks; compiled."""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_kernels.compiler import always_inline, device_function
from wavesim_server.acoustics.medium_arrays import Medium
from wavesim_server.acoustics.types import Record


class TickInterval(NamedTuple):
    """Number of the current tick, and its start and end in s."""

    number: int
    start: float
    end: float


@device_function
def position_and_velocity(
    m: Medium, tick: TickInterval, j: int, time: float
) -> tuple[float, float, float, float, float, float]:
    """Return the position and velocity of a transducer at a time within the tick, by cubic interpolation between the
    states at both ends of the tick.
    """
    return cubic_motion(
        m.places[(tick.number - 1) & 1, j], m.places[tick.number & 1, j], time - tick.start, m.water[0].step
    )


@always_inline
def cubic_motion(p: Record, q: Record, time: float, h: float) -> tuple[float, float, float, float, float, float]:
    """Return position and velocity ``time`` seconds after the state p, by cubic interpolation between the states p and
    q, which are ``h`` seconds apart.
    """
    u = time / h
    w = 1.0 - u
    b, d, e = u * u * (3.0 - 2.0 * u), u * w * w * h, -u * u * w * h
    k, f, g = 6.0 * u * w / h, w * (1.0 - 3.0 * u), u * (3.0 * u - 2.0)
    return (
        p.x + b * (q.x - p.x) + d * p.vx + e * q.vx,
        p.y + b * (q.y - p.y) + d * p.vy + e * q.vy,
        p.z + b * (q.z - p.z) + d * p.vz + e * q.vz,
        k * (q.x - p.x) + f * p.vx + g * q.vx,
        k * (q.y - p.y) + f * p.vy + g * q.vy,
        k * (q.z - p.z) + f * p.vz + g * q.vz,
    )


@device_function
def attitude(m: Medium, tick: TickInterval, j: int, time: float) -> tuple[float, float, float, float]:
    """Return the attitude q_WB at a time within the tick, by normalised linear interpolation between its values at both
    ends of the tick.
    """
    p, q = m.places[(tick.number - 1) & 1, j], m.places[tick.number & 1, j]
    u = (time - tick.start) / m.water[0].step
    s = 1.0 if p.qw * q.qw + p.qx * q.qx + p.qy * q.qy + p.qz * q.qz >= 0.0 else -1.0
    w, x, y, z = (
        p.qw + u * (s * q.qw - p.qw),
        p.qx + u * (s * q.qx - p.qx),
        p.qy + u * (s * q.qy - p.qy),
        p.qz + u * (s * q.qz - p.qz),
    )
    n = math.sqrt(w * w + x * x + y * y + z * z)
    return w / n, x / n, y / n, z / n


@device_function
def clock_reading(m: Medium, j: int, time: float) -> float:
    """Return the reading of a node's clock."""
    return float(time + m.nodes[j].clock_offset + m.nodes[j].clock_drift * time)
