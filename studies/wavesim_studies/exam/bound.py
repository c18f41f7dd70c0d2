"""Posterior Cramer-Rao bound of the horizontal position, along the true track, for the models that a scenario states.

The bound is the recursion of Tichavsky, Muravchik and Nehorai (1998), evaluated along the true track. With a linear
model of the motion, its information matrices are the inverses of the covariances of a Kalman filter whose derivatives
are evaluated at the true states. This module therefore advances the covariance, which also exists if the noise of the
motion is singular.

States: for each vehicle, north and east (m), velocity through the water along the body's forward and starboard axes
(m/s), heading (rad), clock offset (m) and its rate (m/s); common to all vehicles, the current (m/s) and the relative
error of the speed of sound. The velocity is a random walk (``agility``). Roll, pitch and depth are assumed to be known.
An outlier, or an echo whose path is more than 2 m longer than the straight line, carries no information, and the bound
assumes that both are recognised without error. It is therefore
lower than the bound of a program that must recognise them. The detections that occurred are taken as given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_studies.exam.facts import as_floats, bodies, dvl_of, heard, timing_sigma
from wavesim_studies.exam.run import ExamRun, helpers
from wavesim_studies.exam.scenario import FilterSettings
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_world.instruments import dvl_beams

__all__ = ["BoundModel", "Observation", "position_bound"]

OWN = 7  #: number of states of each vehicle
NORTH, EAST, FORWARD, STARBOARD, HEADING, CLOCK, RATE = range(OWN)
OUTLIER = 6.0  #: error, in standard deviations, beyond which a reported time is an outlier
HEADING_SIGMA, VELOCITY_SIGMA = 0.006, 0.1  #: prior of heading (rad) and velocity (m/s), as in the baseline
UNUSED_CLOCK = 1e-9
DETOUR_M = 2.0  #: length in m by which the path of an echo exceeds the straight line


@dataclass
class Observation:
    """Measurement at one time: its derivatives (m, n) with respect to the states, and its noise covariance (m, m)."""

    time: float
    H: Floats
    R: Floats


@dataclass
class BoundModel:
    """Model of the motion of vehicles on a common time grid, with the observations of their instruments.

    ``heading`` (V, T), ``velocity`` (V, T, 2, through the water, B) are those of the true track.
    """

    time: Floats
    heading: Floats
    velocity: Floats
    settings: FilterSettings
    rate_sigma: float
    P: Floats  #: covariance of the states at the first time
    observations: list[Observation] = field(default_factory=list)

    @property
    def vehicles(self) -> int:
        """Number of vehicles."""
        return len(self.heading)

    @property
    def size(self) -> int:
        """Number of states."""
        return OWN * self.vehicles + 3

    def covariances(self) -> Floats:
        """Return the covariances (V, T, 2, 2) of the horizontal positions that no unbiased filter falls below."""
        found = np.zeros((self.vehicles, len(self.time), 2, 2))
        P, rest = self.P.copy(), sorted(self.observations, key=lambda o: o.time)
        k = 0
        for t, time in enumerate(self.time):
            if t:
                F, Q = self.transition(t)
                P = F @ P @ F.T + Q
            while k < len(rest) and rest[k].time <= time + 1e-6:
                H, R = rest[k].H, rest[k].R
                gain = np.linalg.solve(H @ P @ H.T + R, H @ P).T
                keep = np.eye(self.size) - gain @ H
                P = keep @ P @ keep.T + gain @ R @ gain.T
                k += 1
            for v in range(self.vehicles):
                found[v, t] = P[OWN * v : OWN * v + 2, OWN * v : OWN * v + 2]
        return found

    def transition(self, t: int) -> tuple[Floats, Floats]:
        """Return the transition matrix from the previous grid time to time ``t``, and the covariance of its noise."""
        n, s = self.size, self.settings
        dt = float(self.time[t] - self.time[t - 1])
        F, Q = np.eye(n), np.zeros((n, n))
        current = OWN * self.vehicles
        for v in range(self.vehicles):
            o, heading = OWN * v, float(self.heading[v, t - 1])
            R = np.array([[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]])
            F[o : o + 2, o + FORWARD : o + FORWARD + 2] = dt * R
            turned = R @ np.array([-self.velocity[v, t - 1, 1], self.velocity[v, t - 1, 0]])
            F[o : o + 2, o + HEADING] = dt * turned
            F[o : o + 2, current : current + 2] = dt * np.eye(2)
            F[o + CLOCK, o + RATE] = dt
            for k in (FORWARD, STARBOARD):
                Q[o + k, o + k] = s.agility**2 * dt
            Q[o + HEADING, o + HEADING] = (self.rate_sigma * dt) ** 2
        if s.current_time > 0.0:
            decay = np.exp(-dt / s.current_time)
            for k in (current, current + 1):
                F[k, k] = decay
                Q[k, k] = s.current_sigma**2 * (1.0 - decay**2)
        return F, Q

    def row(self, v: int, **values: float) -> Floats:
        """Return derivatives (n), given by name for vehicle ``v``; ``sound`` and the current are common states."""
        h = np.zeros(self.size)
        places = {
            "north": OWN * v + NORTH,
            "east": OWN * v + EAST,
            "forward": OWN * v + FORWARD,
            "starboard": OWN * v + STARBOARD,
            "heading": OWN * v + HEADING,
            "clock": OWN * v + CLOCK,
            "current_north": OWN * self.vehicles,
            "current_east": OWN * self.vehicles + 1,
            "sound": OWN * self.vehicles + 2,
        }
        for name, x in values.items():
            h[places[name]] = x
        return h

    def observe(self, time: float, rows: list[Floats], sigma: float | Floats) -> None:
        """Add a measurement with independent errors of the standard deviation ``sigma``."""
        R = np.diag(np.broadcast_to(np.square(sigma), len(rows)).astype(float))
        self.observations.append(Observation(time, np.array(rows), R))


def prior(vehicles: int, start_sigma: list[float], has_clock: list[bool], s: FilterSettings, c: float) -> Floats:
    """Return the covariance of the states at the start."""
    sigma = []
    for v in range(vehicles):
        clock = (c * s.clock_sigma, c * s.drift_sigma) if has_clock[v] and s.clock_sigma > 0.0 else (UNUSED_CLOCK,) * 2
        sigma += [start_sigma[v], start_sigma[v], VELOCITY_SIGMA, VELOCITY_SIGMA, HEADING_SIGMA, *clock]
    sigma += [s.current_sigma, s.current_sigma, max(s.sound_sigma, 1e-12)]
    return np.diag(np.square(sigma))


def position_bound(run: ExamRun) -> dict[str, tuple[Floats, Floats]]:
    """Return, for each scored vehicle, the times (T) of the bound and its covariances (T, 2, 2)."""
    everyone = (*helpers(run), *run.scenario.vehicles)
    tracks = [run.truth(name) for name in everyone]
    first = max(float(t.time[0]) for t in tracks)
    tracks = [t.part(t.time >= first - 1e-9) for t in tracks]
    model = _model(run, everyone, tracks)
    _add_instruments(model, run, everyone, tracks)
    _add_sound(model, run, everyone, tracks)
    P = model.covariances()
    return {name: (model.time, P[everyone.index(name)]) for name in run.scenario.vehicles}


def _model(run: ExamRun, everyone: tuple[str, ...], tracks: list[PoseTrack]) -> BoundModel:
    settings, c = run.scenario.settings(run.level), run.loaded.config.acoustics.sound_speed
    heading, velocity = [], []
    for name, track in zip(everyone, tracks, strict=True):
        assert track.q is not None
        heading.append(frames.euler(track.q)[:, 2])
        through = run.log.series[f"/state/{name}"].records["v_FB_B"][-len(track.time) :, :2]
        velocity.append(np.asarray(through, float))
    P = prior(
        len(everyone),
        [run.facts["vehicles"][name]["start_sigma"] for name in everyone],
        [name in run.scenario.vehicles for name in everyone],
        settings,
        c,
    )
    return BoundModel(tracks[0].time, np.array(heading), np.array(velocity), settings, run.facts["noise"]["rates"], P)


def _add_instruments(model: BoundModel, run: ExamRun, everyone: tuple[str, ...], tracks: list[PoseTrack]) -> None:
    noise = run.facts["noise"]
    for v, (name, track) in enumerate(zip(everyone, tracks, strict=True)):
        for instrument in run.facts["vehicles"][name]["instruments"]:
            table = run.tables.get(f"{name}-{instrument['name']}")
            for (time,) in as_floats(table, "time").tolist():
                if time < model.time[0] - 1e-9:
                    continue
                if instrument["type"] == "ahrs":
                    model.observe(time, [model.row(v, heading=1.0)], noise["heading"])
                elif instrument["type"] == "speedlog":
                    rows = [model.row(v, forward=1.0), model.row(v, starboard=1.0)]
                    model.observe(time, rows, noise["speedlog"])
                elif instrument["type"] == "dvl":
                    heading = float(np.interp(time, track.time, np.unwrap(model.heading[v])))
                    current = _current(run, name, time)
                    model.observe(time, _over_bottom(model, v, heading, current), _dvl_sigma(run, name))


def _current(run: ExamRun, name: str, time: float) -> Floats:
    """Return the true current (2) at a vehicle."""
    series = run.log.series[f"/state/{name}"]
    k = min(int(np.searchsorted(series.time_ns, round(time * 1e9))), len(series.time_ns) - 1)
    r = series.records[k]
    R = frames.rotation(r["q_WB"])
    return np.asarray((R @ (r["v_WB_B"] - r["v_FB_B"]))[:2], float)


def _over_bottom(model: BoundModel, v: int, heading: float, current: Floats) -> list[Floats]:
    """Return the derivatives of the velocity over the bottom along the forward and starboard axes."""
    s, c = float(np.sin(heading)), float(np.cos(heading))
    north, east = current
    return [
        model.row(v, forward=1.0, current_north=c, current_east=s, heading=-s * north + c * east),
        model.row(v, starboard=1.0, current_north=-s, current_east=c, heading=-c * north - s * east),
    ]


def _dvl_sigma(run: ExamRun, name: str) -> float:
    """Return the standard deviation in m/s of a horizontal component of the velocity over the bottom."""
    p = dvl_of(run.loaded, name)
    assert p is not None
    along, _ = dvl_beams(p)
    return float(p.noise * p.bottom_sigma * np.sqrt(np.linalg.inv(along.T @ along)[0, 0]))


# ------------------------------------------------------------------ sound


def _place(run: ExamRun, name: str, everyone: tuple[str, ...], tracks: list[PoseTrack], time: float) -> Floats:
    """Return the true position (3) of a transducer."""
    if name not in everyone:
        return np.array(run.facts["nodes"][name]["position"], float)
    track = tracks[everyone.index(name)]
    p = np.array([np.interp(time, track.time, track.p[:, k]) for k in range(3)])
    k = min(int(np.searchsorted(track.time, time)), len(track.time) - 1)
    assert track.q is not None
    return np.asarray(p + frames.rotation(track.q[k]) @ np.array(run.facts["vehicles"][name]["transducer"], float))


def _add_sound(model: BoundModel, run: ExamRun, everyone: tuple[str, ...], tracks: list[PoseTrack]) -> None:
    c, known, exact = run.loaded.config.acoustics.sound_speed, bodies(run.loaded), _exact(run)
    begin = float(model.time[0])

    def sigma_of(name: str) -> float:
        return timing_sigma(run.loaded.transducer(known[name]))

    for vehicle, node, time, asked, _ in _rows(run, "ranges"):
        if asked < begin or not exact(vehicle, node, time, sigma_of(vehicle)):
            continue
        v = everyone.index(vehicle)
        u, d = _sight(run, vehicle, node, everyone, tracks, 0.5 * (asked + time))
        row = model.row(v, north=float(u[0]), east=float(u[1]), sound=-d)
        model.observe(time, [row], max(0.5 * c * sigma_of(vehicle), 1e-6))
    for vehicle, node, time, *_ in _rows(run, "directions"):
        head = run.facts["vehicles"][vehicle]["head"]
        places = np.array(head["hydrophones"])
        wide = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)[1]
        u, d = _sight(run, vehicle, node, everyone, tracks, time)
        level = float(np.hypot(u[0], u[1])) * d
        across, v = (float(-u[1]), float(u[0])), everyone.index(vehicle)
        size = float(np.hypot(*across))
        # an azimuth in B: it turns with the position across the line of sight, and with the heading
        row = model.row(v, north=across[0] / size / level, east=across[1] / size / level, heading=-1.0)
        down = float(u[2]) * d
        slope = down / (level * d * d)
        tilt = model.row(v, north=float(-u[0]) * d * slope, east=float(-u[1]) * d * slope)
        model.observe(time, [row, tilt], c * head["timing_sigma"] / wide)
    for sender, receiver, sent, received, _ in _rows(run, "one-way"):
        if min(sent, received) < begin or not exact(receiver, sender, received, sigma_of(receiver)):
            continue
        rows = np.zeros(model.size)
        for name, other, sign in ((sender, receiver, -1.0), (receiver, sender, 1.0)):
            if name in everyone:
                u, d = _sight(run, name, other, everyone, tracks, sent if sign < 0.0 else received)
                v = everyone.index(name)
                rows += model.row(v, north=float(u[0]), east=float(u[1]), clock=sign)
                rows[-1] = -d
        model.observe(min(sent, received) if sender in everyone else received, [rows], c * sigma_of(receiver) + 1e-6)


def _rows(run: ExamRun, name: str) -> list[tuple[Any, ...]]:
    table = run.tables.get(name)
    return table.rows if table is not None else []


def _sight(
    run: ExamRun, name: str, other: str, everyone: tuple[str, ...], tracks: list[PoseTrack], time: float
) -> tuple[Floats, float]:
    """Return the unit vector from another transducer to that of a vehicle, and the distance in m."""
    away = _place(run, name, everyone, tracks, time) - _place(run, other, everyone, tracks, time)
    d = float(np.linalg.norm(away))
    return away / d, d


def _exact(run: ExamRun) -> Callable[[str, str, float, float], bool]:
    """Return a function that states whether a reported time is not an outlier and belongs to a nearly direct path."""
    names = {row: b["name"] for row, b in run.log.bodies.items()}
    good: dict[tuple[str, str, int], tuple[float, bool]] = {}
    for r in heard(run.log):
        late = (int(r["reported_ns"]) - int(r["arrival_ns"])) * 1e-9
        direct = float(r["range"] - r["distance"]) < DETOUR_M
        key = (names[int(r["receiver"])], names[int(r["source"])], int(r["reported_ns"]))
        good[key] = (late, direct)
    clocks = run.scenario.settings(run.level).clock_sigma > 0.0

    def check(receiver: str, sender: str, reported: float, sigma: float) -> bool:
        late, direct = good[(receiver, sender, round(reported * 1e9))]
        return direct and (clocks or abs(late) <= OUTLIER * max(sigma, 1e-9))

    return check
