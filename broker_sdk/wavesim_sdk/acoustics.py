"""Ranges, bearings and positions computed from acoustic receptions, for on-board software.

Times are in ns on the node's own clock, as in receptions. Angles are in rad, in frame B or W as stated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavesim_sdk.algebra import matvec, norm, pseudo_inverse
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.frames import rotation
from wavesim_sdk.wire.items import Reception


def two_way_range(query_ns: int, reply_ns: int, turn_around: float, sound_speed: float) -> float:
    """Return the range in m, computed from the round-trip time of a query and its reply after subtracting the
    turn-around time (s).

    If the interrogator moves, the result is, to first order, the range at the middle of the exchange.
    """
    return 0.5 * sound_speed * ((reply_ns - query_ns) * 1e-9 - turn_around)


def one_way_range(sent_ns: int, received_ns: int, sound_speed: float) -> float:
    """Return the range in m between nodes with synchronised clocks, from the one-way travel time. ``sent_ns`` is the
    time of emission, which the receiver knows from a schedule or from the payload.
    """
    return sound_speed * (received_ns - sent_ns) * 1e-9


def direction_of_arrival(azimuth: float, elevation: float) -> Floats:
    """Return the unit vector in B towards the source of a reception, from the angles that the receiving head measured."""
    (s, c), (east, north) = sin_cos(elevation), sin_cos(azimuth)
    return np.array([c * north, c * east, s])


def usbl_offset(reception: Reception, q_WB: Sequence[float], distance: float | None = None) -> Floats | None:
    """Return the vector in W from the USBL head to the source: the measured range (or ``distance``, if given) times the
    unit vector of the direction of arrival.

    Return None if the reception does not have angles or a range.
    """
    r = reception.range if distance is None else distance
    if r is None or reception.azimuth is None or reception.elevation is None:
        return None
    return np.asarray(
        r * matvec(rotation(np.asarray(q_WB, float)), direction_of_arrival(reception.azimuth, reception.elevation))
    )


def doppler_speed(reception: Reception, carrier: float, sound_speed: float) -> float:
    """Return the speed in m/s at which source and receiver approach each other, from the Doppler shift of a known
    carrier in Hz.
    """
    return sound_speed * (reception.frequency / carrier - 1.0)


def position_from_ranges(beacons: Floats, ranges: Floats, depth: float, near: Sequence[float]) -> Floats | None:
    """Return the least-squares position (north, east, depth) of a vehicle at a known depth, from its ranges to beacons
    at the positions (n, 3).

    ``near`` (north, east) is the starting point of the search and selects one of the two possible positions. Return
    None if the search fails.
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
