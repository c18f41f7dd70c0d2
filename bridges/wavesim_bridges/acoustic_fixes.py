"""Position fixes for a vehicle, computed from ranges to transponders (long baseline) or from the range and direction
that a USBL head measures. The fixes are independent of each other, as navigation filters require.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wavesim_bridges.vehicle_motion import turned
from wavesim_sdk.acoustics import position_from_ranges, usbl_offset
from wavesim_sdk.arrays import Floats
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.frames import quaternion
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import Reception
from wavesim_sdk.wire.state import Value
from wavesim_world.config import LoadedConfig
from wavesim_world.config.acoustics import UsblHead
from wavesim_world.instruments import HEADING_SIGMA
from wavesim_world.ocean.water import depth_of_pressure

METHODS = ("lbl", "usbl")
#: standard deviation of a range in m; it covers timing errors, sound speed errors, and the swing of beacons on their
#: moorings
RANGE_SIGMA = 0.15
DEPTH_SIGMA = 0.1  #: standard deviation of the measured depth in m
MIN_RANGES = 3  #: minimum number of ranges for a long-baseline fix, because two ranges leave two possible positions
MAX_RESIDUAL = 1.0  #: rms residual in m above which the ranges of a fix count as contradictory
MAX_SIGMAS = 4.0  #: deviation of a direction, in standard deviations, above which USBL positions count as contradictory
#: time in s during which the replies to a USBL query are combined into one fix. EKF3 ignores a position that follows
#: another one within 20 ms, and uses no position older than about 0.2 s
GATHER_S = 0.1
#: maximum difference in s between simulation time and a time of arrival; if it is exceeded, the time is not used
MAX_CLOCK_ERROR_S = 0.5
DEPTH_SENSORS = ("pressure", "ctd")


class PositionFix(NamedTuple):
    """Position of the transducer: north, east and depth in m, and the horizontal covariance (nn, ne, ee) in m2."""

    time: float  #: simulation time in s at which the position applies
    position: tuple[float, float, float]
    covariance: tuple[float, float, float]


@dataclass(frozen=True)
class Transponder:
    """Transponder at a surveyed position in W (m)."""

    name: str
    position: tuple[float, float, float]
    query: float  #: frequency in Hz of the queries that the transponder answers
    reply: float  #: frequency in Hz of the replies
    turn_around: float  #: s


def transponders(loaded: LoadedConfig, vehicle: str) -> list[Transponder]:
    """Return the transponders of a configuration, except the vehicle's own, at their configured positions."""
    found = []
    for body in loaded.config.fleet.bodies:
        t = loaded.transducer(body)
        if t is not None and t.query and body.name != vehicle:
            north, east, depth = (p + o for p, o in zip(body.position, t.position, strict=True))
            found.append(Transponder(body.name, (north, east, depth), t.query, t.reply, t.turn_around))
    return found


@dataclass(frozen=True)
class UsblReply:
    """Reply of a transponder to a USBL head."""

    beacon: tuple[float, float, float]  #: position of the transponder in W (m)
    offset: Floats  #: measured vector from the head to the transponder in W (m)
    middle: float  #: time in s of the middle of the round trip


class AcousticFixes:
    """Source of fixes. It sends one query per period, and every transponder that listens at the query frequency
    answers.
    """

    def __init__(self, method: str, loaded: LoadedConfig, vehicle: str, period: float) -> None:
        bodies = {b.name: b for b in loaded.config.fleet.bodies}
        if vehicle not in bodies:
            raise WaveSimError(f"{loaded.path} has no vehicle '{vehicle}'{suggest_name(vehicle, bodies)}")
        transducer = loaded.transducer(bodies[vehicle])
        self._beacons = transponders(loaded, vehicle)
        need = MIN_RANGES if method == "lbl" else 1
        if transducer is None:
            raise WaveSimError(f"fixes need a <transducer> on '{vehicle}' in {loaded.path}")
        if method == "usbl" and transducer.head is None:
            raise WaveSimError(f"USBL fixes need a <head> in the transducer of '{vehicle}' in {loaded.path}")
        if len(self._beacons) < need:
            raise WaveSimError(
                f"{method} fixes need at least {need} transponders with 'query' and 'reply' in {loaded.path}, "
                f"which has {len(self._beacons)}"
            )
        if len({b.query for b in self._beacons}) > 1:
            raise WaveSimError(
                f"the transponders in {loaded.path} have different query frequencies; use the same frequency for all of them"
            )
        self._is_lbl, self._period, self._world = method == "lbl", period, loaded.config.world
        self._sound_speed = loaded.config.acoustics.sound_speed
        self._near: Sequence[float] = np.mean([b.position for b in self._beacons], axis=0)[:2].tolist()
        self._depth_sensor = self._ahrs = ""
        self._next: float | None = None  # time of the next query; None until the first step
        self._request = self._signal = 0
        self._ranges: dict[int, tuple[float, float]] = {}  # range in m and time in s by transponder
        self._replies: list[UsblReply] = []
        self._gather_until = math.inf  # time at which the replies become a fix
        self._angle_sigma = 0.0 if transducer.head is None else direction_sigma(transducer.head, self._sound_speed)
        self.fixes = self.contradictions = 0  #: number of fixes, and of cycles whose measurements contradict each other

    def on_joined(self, broker: AsyncBroker) -> None:
        """Find the sensors of the vehicle that the fixes need."""
        self._depth_sensor = _sensor(broker, *DEPTH_SENSORS)
        self._ahrs = "" if self._is_lbl else _sensor(broker, "ahrs")
        self._next, self._request, self._signal = None, 0, 0

    def advance(self, broker: AsyncBroker, step: Step) -> Iterator[PositionFix]:
        """Process a step, send the query that is due, and yield the fixes that are complete."""
        for sent in step.sent:
            if sent.request == self._request:
                self._signal = sent.id
        for heard in step.receptions:
            if self._signal and heard.query == self._signal and heard.range is not None:
                yield from self._take(heard, heard.range, step)
        if step.time >= self._gather_until:
            yield from self._combine(step)
        if self._next is None:
            self._next = step.time
        if step.time >= self._next - 1e-9:
            if self._is_lbl and len(self._ranges) >= MIN_RANGES:
                yield from self._solve(step)
            if self._replies:
                yield from self._combine(step)
            self._next += self._period * max(1, math.ceil((step.time - self._next) / self._period + 1e-9))
            self._ranges.clear()
            self._signal, self._request = 0, broker.ping(self._beacons[0].query)

    def _take(self, heard: Reception, distance: float, step: Step) -> Iterator[PositionFix]:
        k = min(range(len(self._beacons)), key=lambda k: abs(self._beacons[k].reply - heard.frequency))
        beacon = self._beacons[k]
        middle = step.time - distance / self._sound_speed - 0.5 * beacon.turn_around  # of the round trip
        if self._is_lbl:
            self._ranges[k] = distance, middle
            if len(self._ranges) == len(self._beacons):
                yield from self._solve(step)
            return
        ahrs = step.sensors.get(self._ahrs)
        if ahrs is None:
            return
        offset = usbl_offset(heard, _attitude(ahrs, 1e-9 * heard.reception_ns, step.time).tolist(), distance)
        if offset is None or not np.isfinite(offset).all():
            return
        if not self._replies:
            self._gather_until = step.time + GATHER_S
        self._replies.append(UsblReply(beacon.position, offset, middle))
        if len(self._replies) == len(self._beacons):
            yield from self._combine(step)

    def _combine(self, step: Step) -> Iterator[PositionFix]:
        """Yield one fix from the replies gathered so far, unless they contradict each other."""
        replies, depth = self._replies, self._depth(step)
        self._replies, self._gather_until = [], math.inf
        if depth is None:
            return
        found = position_from_directions(replies, depth, self._angle_sigma)
        if found is None:
            self.contradictions += 1
            return
        (north, east), covariance = found
        self.fixes += 1
        yield PositionFix(float(np.mean([r.middle for r in replies])), (north, east, depth), covariance)

    def _solve(self, step: Step) -> Iterator[PositionFix]:
        depth = self._depth(step)
        places = np.array([self._beacons[k].position for k in self._ranges])
        ranges = np.array([r for r, _ in self._ranges.values()])
        time = float(np.mean([t for _, t in self._ranges.values()]))
        self._ranges.clear()
        if depth is None:
            return
        found = position_from_ranges(places, ranges, depth, self._near)
        if found is None:
            self.contradictions += 1
            return
        away = found - places
        distances = np.linalg.norm(away, axis=1)
        if math.sqrt(float(np.mean((distances - ranges) ** 2))) > MAX_RESIDUAL:
            self.contradictions += 1
            return
        covariance = _covariance(away[:, :2] / distances[:, None])
        self._near = found[:2].tolist()
        self.fixes += 1
        yield PositionFix(time, (float(found[0]), float(found[1]), depth), covariance)

    def _depth(self, step: Step) -> float | None:
        value = step.sensors.get(self._depth_sensor)
        if value is None:
            return None
        depth = float(depth_of_pressure(self._world, value.pressure))
        return depth if math.isfinite(depth) else None


def _attitude(ahrs: Value, arrival: float, now: float) -> Floats:
    """Return the attitude (w, x, y, z) at the arrival of a signal, extrapolated from the last AHRS value and its rates.

    An ROV that holds its position turns at up to 30 deg/s. Between two AHRS values, the direction to a transponder can
    therefore change by several degrees.
    """
    if abs(arrival - now) > MAX_CLOCK_ERROR_S:
        arrival = now  # the transducer's clock is not set
    attitude = quaternion(ahrs.roll, ahrs.pitch, ahrs.heading)
    return turned(attitude, np.asarray(ahrs.rates, float), arrival - 1e-9 * ahrs.time_ns)


def direction_sigma(head: UsblHead, sound_speed: float) -> float:
    """Return the standard deviation in rad of a direction, computed from the errors of the USBL head and of the AHRS
    heading.

    The errors of the arrival times cause a direction error that decreases with the distance between the hydrophones.
    This error depends on the direction; the function uses the largest value.
    """
    places = np.array([h.position for h in head.hydrophone])
    spread = np.linalg.eigvalsh(np.cov(places.T, bias=True) * len(places))
    timing = math.hypot(head.timing_noise, head.timing_resolution / math.sqrt(12.0))
    # a planar head measures only two components; its third one follows from the length of a unit vector
    least = float(min(s for s in spread if s > 1e-9 * spread[-1]))
    return math.hypot((head.sound_speed or sound_speed) * timing / math.sqrt(least), HEADING_SIGMA)


def position_from_directions(
    replies: Sequence[UsblReply], depth: float, angle_sigma: float
) -> tuple[tuple[float, float], tuple[float, float, float]] | None:
    """Return the position (north, east) that agrees best with the ranges and directions of USBL replies, and its
    covariance (nn, ne, ee). Return None if the replies contradict each other.

    Each reply yields a position. Along the line to the transponder, the position follows from the range; across this
    line, it follows from the direction, with an error that grows with the range. The positions are averaged with the
    inverses of their covariances as weights. Therefore, the ranges dominate if there are transponders in several
    directions.
    """
    information, weighted = np.zeros((2, 2)), np.zeros(2)
    places, limits = [], []
    for r in replies:
        distance = float(np.linalg.norm(r.offset))
        along, across = np.outer(r.offset, r.offset) / distance**2, distance * angle_sigma
        weight = along / RANGE_SIGMA**2 + (np.eye(3) - along) / across**2
        place = np.array(r.beacon) - r.offset
        # the measured depth is one more observation: at long range, it is more accurate than the elevation
        covariance = np.linalg.inv(weight + np.diag([0.0, 0.0, DEPTH_SIGMA**-2]))
        place += covariance[:, 2] * (depth - place[2]) / DEPTH_SIGMA**2
        inverse = np.linalg.inv(covariance[:2, :2])
        information += inverse
        weighted += inverse @ place[:2]
        places.append(place[:2])
        limits.append(MAX_RESIDUAL + MAX_SIGMAS * across)
    covariance = np.linalg.inv(information)
    found = covariance @ weighted
    if (np.linalg.norm(np.array(places) - found, axis=1) > limits).any():
        return None
    (nn, ne), (_, ee) = covariance.tolist()
    return (float(found[0]), float(found[1])), (nn, ne, ee)


def _covariance(directions: Floats) -> tuple[float, float, float]:
    """Return the covariance (nn, ne, ee) of a least-squares position fix, computed from the horizontal directions
    (n, 2) in which the ranges were measured.
    """
    nn, ne, ee = (float(np.sum(directions[:, i] * directions[:, j])) for i, j in ((0, 0), (0, 1), (1, 1)))
    scale = RANGE_SIGMA**2 / max(nn * ee - ne * ne, 1e-12)
    return scale * ee, -scale * ne, scale * nn


def _sensor(broker: AsyncBroker, *types: str) -> str:
    """Return the name of the vehicle's first sensor that has one of the given types."""
    for sensor in broker.sensors:
        if sensor.type in types:
            return sensor.name
    have = ", ".join(s.type for s in broker.sensors) or "none"
    raise BrokerError(f"the fixes need a sensor of type {' or '.join(types)} on '{broker.join.name}'; it has {have}")
