"""Measurement rows of the filter for the acoustic round trips and directions in a log, and the positions of moored
beacons.

The accuracies follow from the configuration in the log. A current displaces all moored beacons in the same direction.
The magnitude of this displacement follows from the mooring and the configured current; its direction is unknown to the
filter, which estimates it (state ``mooring``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.log import Log
from wavesim_sdk.tables import RECEPTION, SENT, Outcome
from wavesim_studies.navigation import measurement_models as e
from wavesim_studies.navigation import measurements as make
from wavesim_world.config import LoadedConfig
from wavesim_world.config.primitives import shape_of
from wavesim_world.ocean.sound import sound_speed_profile
from wavesim_world.ocean.water import Water, uniform_current

#: standard deviation of each component of the displacement, relative to its expected magnitude: the direction is unknown
DIRECTION_UNKNOWN = 0.5**0.5
#: standard deviation in m of what the path model neglects: swing of a beacon, and delays of the logged states
PATH_SIGMA = 0.01
#: standard deviation in rad of the error that refraction causes in the apparent direction of a source
RAY_BEND_SIGMA = 3e-3


class BeaconPlace(NamedTuple):
    """Position of a beacon, as far as it follows from the configuration."""

    p_W: Floats  #: position in still water in m
    excursion: float  #: expected horizontal displacement caused by the current, in m
    settling: float  #: time constant in s with which a moored beacon reaches its displaced position


class AcousticInput(NamedTuple):
    """Acoustic measurements of a vehicle."""

    rows: list[Floats]
    moored: bool  #: whether a beacon is displaced by a current
    sound: float  #: relative uncertainty of the assumed speed of sound
    sound_walk: float  #: random walk of the relative error of the speed of sound, per square root of s
    layered: bool  #: whether refraction causes errors that change slowly


def beacon_place(loaded: LoadedConfig, beacon: Any, time: float) -> BeaconPlace:
    """Return the position of a beacon: as configured or, if a taut line holds it above an anchor, in equilibrium."""
    p_W, mooring = np.array(beacon.position, float), getattr(beacon, "mooring", None)
    model = loaded.models[beacon.model]
    if mooring is None or model.restoring is not None:
        return BeaconPlace(p_W, 0.0, 1.0)
    world = loaded.config.world
    speed = _current_speed(loaded, p_W, time)
    linear, quadratic = _surge(model.linear_drag), _surge(model.quadratic_drag)
    volume = model.buoyancy.volume if model.buoyancy else shape_of(model).volume
    lift = (world.density * volume - model.mass.value) * world.gravity
    anchor = np.array(mooring.anchor, float)
    length = mooring.length + lift / mooring.stiffness if mooring.stiffness > 0.0 else mooring.length
    inert = model.mass.value + _surge(model.added_mass)
    settling = 2.0 * inert / max(linear + 2.0 * quadratic * speed, 1e-3)
    if lift <= 0.0 or length >= anchor[2]:  # it floats on a slack line, anywhere within its watch circle
        watch = max(mooring.length**2 - float(anchor[2] - p_W[2]) ** 2, 0.0) ** 0.5
        return BeaconPlace(p_W, watch if speed > 0.0 else 0.0, settling)
    drag = (linear + quadratic * speed) * speed
    return BeaconPlace(anchor - [0.0, 0.0, length], length * drag / lift, settling)


def _surge(matrix: Any) -> float:
    """Return the surge element (the first diagonal element) of a matrix in a model, such as the added mass."""
    if matrix is None:
        return 0.0
    return float(matrix.diagonal[0] if matrix.diagonal else matrix.rows[0])


def _water(loaded: LoadedConfig) -> Water | None:
    """Return the configured water, or None if its configuration refers to files, because a log does not contain
    those.
    """
    try:
        return Water(loaded)
    except (ConfigError, OSError):
        return None


def _current_speed(loaded: LoadedConfig, p_W: Floats, time: float) -> float:
    """Return the speed in m/s of the current that is expected according to the configuration."""
    current, water = loaded.config.world.current, _water(loaded)
    flow = uniform_current(current, time) if water is None else water.current(p_W, time)
    drift = current.drift.speed**2 + current.drift.speed_deviation**2 if current.drift is not None else 0.0
    return float(flow[0] ** 2 + flow[1] ** 2 + drift) ** 0.5


def current_walk(loaded: LoadedConfig, seconds: float) -> float:
    """Return the random walk of the current in m/s/sqrt(s) that is expected in a run of this length, according to the
    configuration.
    """
    current = loaded.config.world.current
    # a slow ramp looks to the filter like the random walk that leads equally far by the end of the run
    ramp = current.tide_amplitude * 2.0 * np.pi / current.tide_period * 0.5**0.5
    walk = 1e-4 + float(ramp) * seconds**0.5
    if current.drift is not None:
        walk += current.drift.speed_deviation * (2.0 / current.drift.time_constant) ** 0.5
    if current.layer or loaded.config.world.volume is not None:
        walk += CURRENT_IN_DEPTH
    return walk


CURRENT_IN_DEPTH = 0.002  #: random walk of a current in m/s/sqrt(s) for a vehicle that moves through different layers


def acoustic_input(
    log: Log, loaded: LoadedConfig, name: str, unit: Floats, sensor: int, depths: Floats, noise: float
) -> AcousticInput:
    """Return the round trips to beacons at configured positions. ``depths`` are the measured depths of the vehicle.
    ``noise`` multiplies the standard deviations.

    If the vehicle has a USBL head, the directions measured by the head are added as another sensor.
    """
    bodies = {b.name: b for b in loaded.config.fleet.bodies}
    mine = next(row for row, b in log.bodies.items() if b["name"] == name)
    transducer = loaded.transducer(bodies[name]) if name in bodies else None
    if transducer is None:
        return AcousticInput([], False, 0.0, 0.0, False)
    sent = log.get("/acoustics/sent", SENT).records
    asked = {int(r["id"]): int(r["emission_ns"]) * 1e-9 for r in sent[sent["source"] == mine]}
    heard = log.get("/acoustics/reception", RECEPTION).records
    heard = heard[(heard["receiver"] == mine) & (heard["outcome"] == Outcome.HEARD) & np.isfinite(heard["measured"])]
    rows, lever, places = [], np.array(transducer.position) - unit, {}
    timing = _timing_sigma(transducer, loaded.config.acoustics.sound_speed)
    for r in heard:
        beacon = bodies.get(log.bodies.get(int(r["source"]), {}).get("name", ""))
        there = loaded.transducer(beacon) if beacon is not None else None
        if there is None or beacon is None or int(r["query"]) not in asked:
            continue
        time = int(r["arrival_ns"]) * 1e-9
        if beacon.name not in places:
            places[beacon.name] = beacon_place(loaded, beacon, time)
        place = places[beacon.name]
        swing = DIRECTION_UNKNOWN * place.excursion * float(np.exp(-time / place.settling))
        p_W = place.p_W + there.position
        sigma = noise * float(np.linalg.norm([timing, 2.0 * swing, 2.0 * PATH_SIGMA]))
        asked_at, length = asked[int(r["query"])], 2.0 * float(r["measured"])
        row = make.round_trip(asked_at, time, length, p_W, sigma, lever, sensor=sensor, excursion=place.excursion)
        rows.append(row)
        if transducer.head is not None and np.isfinite(r["azimuth"]) and np.isfinite(r["elevation"]):
            sight, across = (
                (float(r["azimuth"]), float(r["elevation"])),
                _sight_sigma(transducer.head, loaded.config.acoustics.sound_speed),
            )
            across = noise * float(np.hypot(across, swing / max(float(r["measured"]), 1.0)))
            rows.append(make.direction(time, *sight, p_W, across, lever, sensor=sensor + 1, excursion=place.excursion))
    if not rows:
        return AcousticInput([], False, 0.0, 0.0, False)
    depths = np.array([*depths, *(place.p_W[2] for place in places.values())])
    error, walk, spread = _sound_uncertainty(log, loaded, depths)
    if layered := loaded.config.acoustics.profile in ("water", "volume"):
        _add_refraction(rows, noise * spread)
    moored = any(place.excursion > 0.0 for place in places.values())
    return AcousticInput(rows, moored, error, walk, layered)


def _sound_uncertainty(log: Log, loaded: LoadedConfig, depths: Floats) -> tuple[float, float, float]:
    """Return the relative uncertainty of the assumed speed of sound, its random walk, and its spread over depth.

    They follow from the configured profile between the depths of beacons and vehicle. The uncertainty is the RMS
    deviation of the profile from the assumed speed. The walk results from the change of the mean speed along the paths
    when the vehicle changes its depth.
    """
    acoustics, water = loaded.config.acoustics, _water(loaded)
    if _needs_file(log) or water is None:
        return SOUND_UNKNOWN, 0.0, 0.0
    if acoustics.profile == "constant":
        return 0.0, 0.0, 0.0
    z, c = sound_speed_profile(loaded, water, max(1.0, float(depths.max())))
    at = np.linspace(float(depths.min()), float(depths.max()), 65)
    off = np.interp(at, z, c) / acoustics.sound_speed - 1.0
    mean = np.cumsum(off) / np.arange(1, len(off) + 1)
    walk = float(mean.std()) * (2.0 / DEPTH_CHANGE) ** 0.5
    return float(np.sqrt(np.mean(off**2))), walk, float(off.std())


def _needs_file(log: Log) -> bool:
    """Return whether the speed of sound depends on a file, which a log does not contain."""
    text = str(log.metadata.get("configuration", ""))
    if 'profile="file"' in text or 'profile="volume"' in text:
        return True
    return 'profile="water"' in text and ("<volume" in text or "<samples" in text)


SOUND_UNKNOWN = 0.003  #: relative uncertainty of the speed of sound if the profile is not in the log
DEPTH_CHANGE = 60.0  #: typical time in s between changes of a vehicle's depth
#: correlation time in s of the error caused by refraction; the value was tuned on the trial `shallow`
REFRACTION_TIME = 15.0


def _add_refraction(rows: list[Floats], spread: float) -> None:
    """Add the error caused by refraction to the variance of round trips. ``spread`` is the relative standard deviation
    of the speed of sound over depth.

    In a stratified sea, the fastest path does not pass through the same layers as the straight line, and the difference
    depends on the beacon. The error changes slowly, but the filter assumes white noise. White noise carries the same
    information if its variance is larger by the factor (1 + a) / (1 - a), where a is the correlation of successive
    errors.
    """
    trips = [row for row in rows if row[e.KIND] == e.ROUND_TRIP]
    times: dict[tuple[float, ...], list[float]] = {}
    for row in trips:
        times.setdefault(tuple(row[e.PLACE : e.PLACE + 3]), []).append(float(row[e.T]))
    steps = np.concatenate([np.diff(t) for t in times.values()])
    a = float(np.exp(-np.median(steps) / REFRACTION_TIME)) if len(steps) else 0.0
    for row in trips:
        row[e.NOISE] += (spread * row[e.Z]) ** 2 * (1.0 + a) / (1.0 - a)


def _sight_sigma(head: Any, speed: float) -> float:
    """Return the standard deviation in rad of a direction measured by a USBL head. It is caused by timing errors
    between the hydrophones and by refraction. ``speed`` is the speed of sound if the head does not assume its own.
    """
    places = np.array([h.position for h in head.hydrophone])
    wide = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)[1]
    timing = np.linalg.norm([head.timing_noise, head.timing_resolution / 12.0**0.5])
    return float(np.linalg.norm([(head.sound_speed or speed) * timing / wide, RAY_BEND_SIGMA]))


def _timing_sigma(mine: Any, speed: float) -> float:
    """Return the standard deviation in m of the length of a round trip that results from the timing of the receiver.
    The turn-around of the beacon is exact.
    """
    return float(speed * np.linalg.norm([1e-6, mine.timing_noise, mine.timing_resolution / 12.0**0.5]))
