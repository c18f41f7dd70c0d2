"""From receptions to ranges, bearings and positions: what on-board software computes of its acoustics.

Times are nanoseconds by the node's own clock, as they come in receptions; angles in rad, frame B or W as said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk.algebra import matvec, norm, pseudo_inverse
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.frames import rotation
from wavesim_sdk.wire.items import Reception

Array = np.ndarray[Any, np.dtype[np.float64]]


def two_way_range(query_ns: int, reply_ns: int, turn_around: float, sound_speed: float) -> float:
    """Range in m from the emission of a query to the arrival of its answer, less the turn-around in s.

    For a moving asker it is the range at mid-time, to the first order.
    """
    return 0.5 * sound_speed * ((reply_ns - query_ns) * 1e-9 - turn_around)


def one_way_range(sent_ns: int, received_ns: int, sound_speed: float) -> float:
    """Range in m between two clocks that agree: ``sent_ns`` is known from a schedule or from the payload."""
    return sound_speed * (received_ns - sent_ns) * 1e-9


def direction_of_arrival(azimuth: float, elevation: float) -> Array:
    """Unit vector in B towards the source of a reception, from a head's angles."""
    (s, c), (east, north) = sin_cos(elevation), sin_cos(azimuth)
    return np.array([c * north, c * east, s])


def usbl_offset(reception: Reception, q_WB: Sequence[float], distance: float | None = None) -> Array | None:
    """Vector in W from the head to the source: its range (or ``distance``) along the direction of arrival.

    None without angles or range.
    """
    r = reception.range if distance is None else distance
    if r is None or reception.azimuth is None or reception.elevation is None:
        return None
    return np.asarray(
        r * matvec(rotation(np.asarray(q_WB, float)), direction_of_arrival(reception.azimuth, reception.elevation))
    )


def doppler_speed(reception: Reception, carrier: float, sound_speed: float) -> float:
    """Speed in m/s at which source and receiver approach each other, from the shift of a known carrier."""
    return sound_speed * (reception.frequency / carrier - 1.0)


def position_from_ranges(beacons: Array, ranges: Array, depth: float, near: Sequence[float]) -> Array | None:
    """Position (north, east, depth) of least squares from ranges to beacons (n, 3) at a known depth.

    ``near`` (north, east) starts the search and picks the side where two positions fit. None if it finds none.
    """
    p = np.array(near[:2], float)
    for _ in range(50):
        delta = np.column_stack([p[0] - beacons[:, 0], p[1] - beacons[:, 1], depth - beacons[:, 2]])
        far = norm(delta)
        step = matvec(pseudo_inverse(delta[:, :2] / far[:, None])[0], ranges - far)
        p += step
        if np.abs(step).max() < 1e-9:
            return np.array([p[0], p[1], depth])
        if not np.isfinite(p).all():
            return None
    return None
