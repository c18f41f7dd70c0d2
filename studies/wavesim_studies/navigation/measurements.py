"""Functions that convert measurements to the rows of numbers that the filter expects.

Times are in s, lengths in m and angles in rad. ``lever`` is the position of the sensor in B, relative to the IMU.
``sigma`` is a common standard deviation of all numbers, a standard deviation for each number, or a covariance (m, m).
``sensor`` is the number under which rejections are counted. ``gate`` is the maximum normalised innovation squared; 0
selects the 99 % quantile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_studies.navigation import measurement_models as e

__all__ = [
    "JOLT",
    "angles",
    "depth",
    "direction",
    "each",
    "one_way",
    "plane",
    "position",
    "received_position",
    "round_trip",
    "schedule",
    "velocity",
]

Vector = Sequence[float] | Floats
_NONE = (0.0, 0.0, 0.0)
ANGLE = ("roll", "pitch", "heading")
#: gate for measured speeds when there is no IMU; it is wide, so that sudden motion is not rejected as an outlier
JOLT = 400.0
_TURN = {e.KEEP: 0, e.DROP: 2, e.MARK: 3}


def _row(time: float, kind: int, values: Any, sigma: Any, sensor: int, gate: float, lever: Vector = _NONE) -> Floats:
    values, s = np.atleast_1d(np.asarray(values, float)), np.asarray(sigma, float)
    m = len(values)
    row = np.zeros(e.WIDTH)
    row[[e.T, e.KIND, e.SENSOR, e.M, e.GATE, e.BED]] = time, kind, sensor, m, gate, np.nan
    row[e.Z : e.Z + m] = values
    covariance = s if s.ndim == 2 else np.diag(np.broadcast_to(s, m) ** 2)
    for a in range(m):
        row[e.NOISE + 4 * a : e.NOISE + 4 * a + m] = covariance[a]
    row[e.LEVER : e.LEVER + 3] = lever
    return row


def _rows(row: Floats, rows: Any) -> Floats:
    flat = np.asarray(rows, float).ravel()
    row[e.ROWS : e.ROWS + len(flat)] = flat
    return row


def position(time: float, p_W: Vector, sigma: Any, lever: Vector = _NONE, sensor: int = 0, gate: float = 0.0) -> Floats:
    """Return the row of a measured position: the north and east coordinates of a point on the body, for example from
    GPS. An optional third number is the down coordinate.
    """
    return _rows(_row(time, e.POSITION, p_W, sigma, sensor, gate, lever), np.eye(3)[: len(p_W)])


def depth(time: float, z: float, sigma: float, lever: Vector = _NONE, sensor: int = 0, gate: float = 0.0) -> Floats:
    """Return the row of a measured depth of the pressure sensor."""
    return _rows(_row(time, e.DEPTH, z, sigma, sensor, gate, lever), (0.0, 0.0, 1.0))


def velocity(
    time: float,
    v: Vector,
    sigma: Any,
    lever: Vector = _NONE,
    directions_B: Any = None,
    water: bool = False,
    sensor: int = 0,
    gate: float = 0.0,
) -> Floats:
    """Return the row of a measured velocity of the sensor, over the bottom or through water. ``v`` contains its
    components along at most four axes or beams, and ``directions_B`` (m, 3) contains the directions of these axes or
    beams.

    Without directions, the axes of B are used. At least two beams are needed.
    """
    axes = np.eye(3)[: len(v)] if directions_B is None else directions_B
    return _rows(_row(time, e.WATER if water else e.BOTTOM, v, sigma, sensor, gate, lever), axes)


def angles(time: float, values: Mapping[str, float], sigma: Any, sensor: int = 0, gate: float = 0.0) -> Floats:
    """Return the row of measured angles: any of roll, pitch and heading."""
    which = [ANGLE.index(name) for name in values]
    return _rows(_row(time, e.ANGLES, list(values.values()), sigma, sensor, gate), which)


def _acoustic(row: Floats, beacon: Vector, bed: float | None, excursion: float = 0.0) -> Floats:
    row[e.PLACE : e.PLACE + 3], row[e.EXCURSION] = beacon, excursion
    row[e.BED] = np.nan if bed is None else bed
    return row


def round_trip(
    asked: float,
    heard: float,
    length: float,
    beacon: Vector,
    sigma: float,
    lever: Vector = _NONE,
    bed: float | None = None,
    sensor: int = 0,
    gate: float = 0.0,
    excursion: float = 0.0,
) -> Floats:
    """Return the row of a measured two-way path in m: the travel time multiplied by the assumed speed of sound. The
    travel time is the time from query to reception, minus the turn-around time.

    ``bed`` is the depth of the bed. If it is given, a measurement that fails the gate is tested as an echo from the
    surface or the bed before it is rejected.

    ``excursion`` is the expected displacement in m (magnitude) of a moored beacon caused by the current. It is
    multiplied by the state ``mooring``, which is common to all beacons.
    """
    row = _acoustic(_row(heard, e.ROUND_TRIP, length, sigma, sensor, gate, lever), beacon, bed, excursion)
    row[e.ID] = asked
    return row


def one_way(
    heard: float,
    length: float,
    beacon: Vector,
    sigma: float,
    lever: Vector = _NONE,
    covariance: Any = None,
    bed: float | None = None,
    sensor: int = 0,
    gate: float = 0.0,
) -> Floats:
    """Return the row of a one-way path in m, measured with the vehicle's clock. The path begins at the position of a
    beacon at the time of emission.

    ``covariance`` (3, 3) is the covariance of this position. The sender may have computed its position with data from
    this filter. The weight of the measurement is therefore chosen so that the same information is not counted twice.
    """
    return _shared(_acoustic(_row(heard, e.ONE_WAY, length, sigma, sensor, gate, lever), beacon, bed), covariance)


def _shared(row: Floats, known: Any) -> Floats:
    if known is not None:
        row[e.SHARED] = 1.0
        row[e.EXTRA : e.EXTRA + 9] = np.asarray(known, float).ravel()
    return row


def received_position(time: float, p_W: Vector, covariance: Any, lever: Vector = _NONE, sensor: int = 0) -> Floats:
    """Return the row of our own position as estimated by another vehicle. ``covariance`` (3, 3) is the covariance of
    this estimate.

    The estimate may depend on our own data, so covariance intersection is used.
    """
    return _shared(position(time, p_W, 0.0, lever, sensor, gate=1e9), covariance)


def direction(
    time: float,
    azimuth: float,
    elevation: float,
    beacon: Vector,
    sigma: Any,
    lever: Vector = _NONE,
    R_SB: Any = None,
    sensor: int = 0,
    gate: float = 0.0,
    excursion: float = 0.0,
) -> Floats:
    """Return the measurement row for a direction to a beacon, measured in the frame of a USBL head: the azimuth from x
    to y, and the downward elevation. For ``excursion``, see :func:`round_trip`.
    """
    row = _acoustic(_row(time, e.DIRECTION, (azimuth, elevation), sigma, sensor, gate, lever), beacon, None, excursion)
    return _rows(row, np.eye(3) if R_SB is None else R_SB)


def plane(
    time: float,
    ranges: Any,
    point: Vector,
    normal: Vector,
    sigma: Any,
    lever: Vector = _NONE,
    directions_B: Any = (0.0, 0.0, 1.0),
    sensor: int = 0,
    gate: float = 0.0,
) -> Floats:
    """Return the row of measured distances to a plane (bed, wall) along at most four beams.

    ``directions_B`` (m, 3) are the directions of the beams in B.
    """
    row = _rows(_row(time, e.PLANE, ranges, sigma, sensor, gate, lever), directions_B)
    row[e.PLACE : e.PLACE + 3], row[e.EXTRA : e.EXTRA + 3] = point, normal
    return row


def each(row: Floats, times: Any, values: Any) -> Floats:
    """Return N copies (N, WIDTH) of a row, with individual times (N) in s and values (N, m)."""
    if not len(times):
        return np.zeros((0, len(row)))
    values = np.asarray(values, float).reshape(len(times), -1)
    rows = np.tile(row, (len(times), 1))
    rows[:, e.T] = times
    rows[:, e.Z : e.Z + values.shape[1]] = values
    return rows


def keep_pose(time: float) -> Floats:
    """Clone the pose at the given time, for round trips whose query was sent at that time."""
    row = np.zeros(e.WIDTH)
    row[[e.T, e.KIND, e.ID]] = time, e.KEEP, time
    return row


def drop_pose(time: float, asked: float) -> Floats:
    """Remove the clone of the pose at the given time."""
    row = np.zeros(e.WIDTH)
    row[[e.T, e.KIND, e.ID]] = time, e.DROP, asked
    return row


def event_order(row: Floats) -> tuple[float, int, float]:
    """Return the sort key of an event. Events are sorted by time. At equal times, clones come first, then measurements
    by sensor, and marks last.
    """
    return row[e.T], _TURN.get(int(row[e.KIND]), 1), row[e.SENSOR]


def schedule(rows: Any, marks: Any) -> Floats:
    """Return all events of a run in chronological order: measurements, the clones that round trips need, and marks.

    Marks are the times at which the state is recorded.
    """
    rows = np.asarray(rows, float).reshape(-1, e.WIDTH)
    trips = rows[rows[:, e.KIND] == e.ROUND_TRIP]
    added = []
    for asked in np.unique(trips[:, e.ID]):
        added += [keep_pose(asked), drop_pose(trips[trips[:, e.ID] == asked, e.T].max(), asked)]
    marks = np.asarray(marks, float)
    marked = np.zeros((len(marks), e.WIDTH))
    marked[:, e.T], marked[:, e.KIND], marked[:, e.ID] = marks, e.MARK, np.arange(len(marks))
    rows = np.concatenate([rows, *(a[None] for a in added), marked])
    turn = np.ones(len(rows))
    for kind, number in _TURN.items():
        turn[rows[:, e.KIND] == kind] = number
    return rows[np.lexsort((rows[:, e.SENSOR], turn, rows[:, e.T]))]
