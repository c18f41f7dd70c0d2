"""Other vessels that an on-board program detects by radar or AIS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from wavesim_sdk.ais import reports
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.sensors import RADAR_TARGETS
from wavesim_sdk.wire.state import Value


@dataclass(frozen=True)
class Target:
    """Tracked vessel with its position ``place`` (m) and its velocity over ground (m/s), both as (north, east).

    ``track_id`` stays the same as long as the vessel is tracked.
    """

    track_id: int
    place: tuple[float, float]
    velocity: tuple[float, float]
    length: float = 0.0  #: length of the vessel in m; 0 means unknown
    fixed: bool = False  #: True for a charted object, and False for a vessel


def from_radar(value: Value, place: tuple[float, float]) -> Iterator[Target]:
    """Yield those targets of a `radar` sensor that have a course.

    ``place`` is the position of own ship (north, east) at the time of the radar image.
    """
    for i in range(RADAR_TARGETS):
        if math.isfinite(value.target[i]) and math.isfinite(value.course[i]):
            (sb, cb), (sc, cc) = sin_cos(value.bearing[i]), sin_cos(value.course[i])
            r, v = value.range[i], value.speed[i]
            yield Target(int(value.target[i]), (place[0] + r * cb, place[1] + r * sb), (v * cc, v * sc))


def from_ais(value: Value, origin: Origin) -> Iterator[Target]:
    """Yield the stations of an `ais` sensor, except own station, with positions extrapolated to the time of the sensor
    value.

    ``origin`` is the origin of own ship's world frame.
    """
    for r in reports(value)[1:]:
        if r is None or r.latitude is None or r.longitude is None:
            continue
        north, east, _ = origin.ned(r.latitude, r.longitude).tolist()
        s, c = sin_cos(r.cog or 0.0)
        v = (r.sog or 0.0) * float(c), (r.sog or 0.0) * float(s)
        age = value.time_ns * 1e-9 - r.time
        yield Target(r.mmsi, (north + v[0] * age, east + v[1] * age), v, r.length)
