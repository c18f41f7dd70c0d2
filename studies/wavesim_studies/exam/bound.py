"""Posterior Cramer-Rao bound of the horizontal position, along the true track, for the models that a scenario states.

The bound is the recursion of Tichavsky, Muravchik and Nehorai (1998), evaluated along the true track. With a linear
model of the motion, its information matrices are the inverses of the covariances of a Kalman filter whose derivatives
are evaluated at the true states. This module therefore advances the covariance, which also exists if the noise of the
motion is singular.

States: for each vehicle, north and east (m), velocity through the water along the body's forward and starboard axes
(m/s), heading (rad), clock offset (m) and its rate (m/s); common to all vehicles, the current (m/s) and the relative
error of the speed of sound. The velocity is a random walk (``agility``). Roll, pitch and depth are assumed to be known.
An outlier, or an echo whose path is more than 2 m longer than the straight line, carries no information, and the bound
assumes that both are recognised without error. It is therefore lower than the bound of a program that must recognise
them. The detections that occurred are taken as given.

The bound is that of a program that knows each path of the sound and the place of each beacon. The same recursion also
propagates the error of an estimator that takes paths as straight and beacons as undisplaced (``errors``). Its mean
squared error is the bound plus the square of this error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.tables import SENT, STATE
from wavesim_studies.exam.facts import as_floats, bodies, dvl_of, heard, timing_sigma
from wavesim_studies.exam.run import ExamRun, helpers
from wavesim_studies.exam.scenario import FilterSettings
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_world.instruments import dvl_beams

__all__ = ["BoundModel", "Observation", "PositionBound", "position_bound"]

OWN = 7  #: number of states of each vehicle
NORTH, EAST, FORWARD, STARBOARD, HEADING, CLOCK, RATE = range(OWN)
OUTLIER = 6.0  #: error, in standard deviations, beyond which a reported time is an outlier
HEADING_SIGMA, VELOCITY_SIGMA = 0.006, 0.1  #: prior of heading (rad) and velocity (m/s), as in the baseline
UNUSED_CLOCK = 1e-9
DETOUR_M = 2.0  #: length in m by which the path of an echo exceeds the straight line


@dataclass
class Observation:
    """Measurement at one time: its derivatives (m, n) with respect to the states, its noise covariance (m, m), and its
    difference (m) from the value that straight paths and undisplaced beacons predict.
    """

    time: float
    H: Floats
    R: Floats
    excess: Floats


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
        return self.recursion()[0]

    def recursion(self) -> tuple[Floats, Floats]:
        """Return the covariances (V, T, 2, 2) of the bound, and the horizontal errors (V, T, 2) in m that the excess of the
        observations causes.
        """
        found = np.zeros((self.vehicles, len(self.time), 2, 2))
        errors, x = np.zeros((self.vehicles, len(self.time), 2)), np.zeros(self.size)
        P, rest = self.P.copy(), sorted(self.observations, key=lambda o: o.time)
        k = 0
        for t, time in enumerate(self.time):
            if t:
                F, Q = self.transition(t)
                P, x = F @ P @ F.T + Q, F @ x
            while k < len(rest) and rest[k].time <= time + 1e-6:
                H, R = rest[k].H, rest[k].R
                gain = np.linalg.solve(H @ P @ H.T + R, H @ P).T
                keep = np.eye(self.size) - gain @ H
                P = keep @ P @ keep.T + gain @ R @ gain.T
                x = x + gain @ (rest[k].excess - H @ x)
                k += 1
            for v in range(self.vehicles):
                place = slice(OWN * v, OWN * v + 2)
                found[v, t], errors[v, t] = P[place, place], x[place]
        return found, errors

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

    def observe(self, time: float, rows: Sequence[Floats], sigma: float, excess: Floats | float = 0.0) -> None:
        """Add a measurement with independent errors of the standard deviation ``sigma``."""
        R = np.diag(np.full(len(rows), sigma**2))
        self.observations.append(Observation(time, np.array(rows), R, np.broadcast_to(excess, len(rows))))


def prior(vehicles: int, start_sigma: list[float], has_clock: list[bool], s: FilterSettings, c: float) -> Floats:
    """Return the covariance of the states at the start."""
    sigma = []
    for v in range(vehicles):
        clock = (c * s.clock_sigma, c * s.drift_sigma) if has_clock[v] and s.clock_sigma > 0.0 else (UNUSED_CLOCK,) * 2
        sigma += [start_sigma[v], start_sigma[v], VELOCITY_SIGMA, VELOCITY_SIGMA, HEADING_SIGMA, *clock]
    sigma += [s.current_sigma, s.current_sigma, max(s.sound_sigma, 1e-12)]
    return np.diag(np.square(sigma))


class PositionBound(NamedTuple):
    """Bound of one vehicle: times (T) in s, covariances (T, 2, 2) in m^2, and errors (T, 2) in m that straight paths and
    undisplaced beacons add.
    """

    time: Floats
    P: Floats
    errors: Floats


def position_bound(run: ExamRun) -> dict[str, PositionBound]:
    """Return the bound of each scored vehicle."""
    everyone = (*helpers(run), *run.scenario.vehicles)
    tracks = [run.truth(name) for name in everyone]
    first = max(float(t.time[0]) for t in tracks)
    tracks = [t.part(t.time >= first - 1e-9) for t in tracks]
    model = _model(run, everyone, tracks)
    _add_instruments(model, run, everyone, tracks)
    _add_sound(model, run, everyone, tracks)
    P, errors = model.recursion()
    order = {name: everyone.index(name) for name in run.scenario.vehicles}
    return {name: PositionBound(model.time, P[k], errors[k]) for name, k in order.items()}


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


class _Sound:
    """Places of transducers, and the receptions behind the measurements."""

    def __init__(self, run: ExamRun, everyone: tuple[str, ...], tracks: list[PoseTrack]) -> None:
        self.run, self.everyone, self.tracks = run, everyone, tracks
        self.c, self.known = run.loaded.config.acoustics.sound_speed, bodies(run.loaded)
        self.clocks = run.scenario.settings(run.level).clock_sigma > 0.0
        names = {row: b["name"] for row, b in run.log.bodies.items()}
        self.received = {
            (names[int(r["receiver"])], names[int(r["source"])], int(r["reported_ns"])): r for r in heard(run.log)
        }
        sent = run.log.get("/acoustics/sent", SENT).records
        self.emitted = {int(r["id"]): int(r["emission_ns"]) * 1e-9 for r in sent}

    def sigma(self, name: str) -> float:
        """Return the standard deviation in s of the arrival times that a node reports."""
        return timing_sigma(self.run.loaded.transducer(self.known[name]))

    def attitude(self, name: str, time: float) -> Floats:
        """Return the true attitude (3, 3) of a vehicle."""
        track = self.tracks[self.everyone.index(name)]
        assert track.q is not None
        return np.asarray(frames.rotation(track.q[min(int(np.searchsorted(track.time, time)), len(track.time) - 1)]))

    def place(self, name: str, time: float) -> Floats:
        """Return the position (3) of a transducer: the true one of a vehicle, and the stated one of a node."""
        if name not in self.everyone:
            return np.array(self.run.facts["nodes"][name]["position"], float)
        track = self.tracks[self.everyone.index(name)]
        p = np.array([np.interp(time, track.time, track.p[:, k]) for k in range(3)])
        return np.asarray(
            p + self.attitude(name, time) @ np.array(self.run.facts["vehicles"][name]["transducer"], float)
        )

    def true_place(self, name: str, time: float) -> Floats:
        """Return the true position (3) of a transducer."""
        if name in self.everyone:
            return self.place(name, time)
        state = self.run.log.get(f"/state/{name}", STATE)
        k = min(int(np.searchsorted(state.time_ns, round(time * 1e9))), len(state.time_ns) - 1)
        r, t = state.records[k], self.run.loaded.transducer(self.known[name])
        assert t is not None
        return np.asarray(r["p_WB_W"] + frames.rotation(r["q_WB"]) @ np.array(t.position, float))

    def sight(self, name: str, other: str, time: float) -> tuple[Floats, float]:
        """Return the unit vector from another transducer to that of a vehicle, and the distance in m."""
        away = self.place(name, time) - self.place(other, time)
        d = float(np.linalg.norm(away))
        return away / d, d

    def reception(self, receiver: str, sender: str, reported: float) -> Any:
        """Return the record of a reported time, or None if it is an outlier or belongs to an echo."""
        r = self.received[receiver, sender, round(reported * 1e9)]
        late = abs(int(r["reported_ns"]) - int(r["arrival_ns"])) * 1e-9
        if r["range"] - r["distance"] >= DETOUR_M or (
            not self.clocks and late > OUTLIER * max(self.sigma(receiver), 1e-9)
        ):
            return None
        return r


def _add_sound(model: BoundModel, run: ExamRun, everyone: tuple[str, ...], tracks: list[PoseTrack]) -> None:
    sound = _Sound(run, everyone, tracks)
    ranges = [*_round_trips(model, sound), *_one_way(model, sound)]
    # a common relative error of the speed of sound is a state; only the rest is an excess
    common = 0.0
    if run.scenario.settings(run.level).sound_sigma > 0.0 and ranges:
        d, excess = np.array([(-o.H[0, -1], o.excess[0]) for o in ranges]).T
        common = float(d @ excess) / float(d @ d)
    for o in ranges:
        o.excess = o.excess + common * o.H[0, -1]
    model.observations += ranges
    _add_directions(model, sound)


def _round_trips(model: BoundModel, sound: _Sound) -> Iterator[Observation]:
    """Yield the ranges from round trips: the mean of the distances at the query and at the reply."""
    for vehicle, node, time, asked, _ in _rows(sound.run, "ranges"):
        r = sound.reception(vehicle, node, time)
        if asked < model.time[0] or r is None:
            continue
        u, d = sound.sight(vehicle, node, 0.5 * (asked + time))
        row = model.row(sound.everyone.index(vehicle), north=float(u[0]), east=float(u[1]), sound=-d)
        begin, end = sound.emitted[int(r["query"])], int(r["arrival_ns"]) * 1e-9
        trip = end - begin - sound.run.facts["nodes"][node]["turn_around"]
        straight = 0.5 * (sound.sight(vehicle, node, begin)[1] + sound.sight(vehicle, node, end)[1])
        sigma = max(0.5 * sound.c * sound.sigma(vehicle), 1e-6)
        yield Observation(time, row[None], np.array([[sigma**2]]), np.array([0.5 * sound.c * trip - straight]))


def _one_way(model: BoundModel, sound: _Sound) -> Iterator[Observation]:
    """Yield the one-way ranges."""
    for sender, receiver, sent, received, _ in _rows(sound.run, "one-way"):
        r = sound.reception(receiver, sender, received)
        if min(sent, received) < model.time[0] or r is None:
            continue
        row = np.zeros(model.size)
        for name, other, sign in ((sender, receiver, -1.0), (receiver, sender, 1.0)):
            if name in sound.everyone:
                u, d = sound.sight(name, other, sent if sign < 0.0 else received)
                row += model.row(sound.everyone.index(name), north=float(u[0]), east=float(u[1]), clock=sign)
                row[-1] = -d
        begin, end = int(r["emission_ns"]) * 1e-9, int(r["arrival_ns"]) * 1e-9
        straight = float(np.linalg.norm(sound.place(receiver, end) - sound.place(sender, begin)))
        time = min(sent, received) if sender in sound.everyone else received
        sigma = sound.c * sound.sigma(receiver) + 1e-6
        yield Observation(time, row[None], np.array([[sigma**2]]), np.array([sound.c * (end - begin) - straight]))


def _add_directions(model: BoundModel, sound: _Sound) -> None:
    """Add the directions of heads.

    The delays between the hydrophones are the products of their places with the direction in B. Their common part is
    unknown. The principal axes of the places turn the rest into three values with independent noise.
    """
    for vehicle, node, time, *_ in _rows(sound.run, "directions"):
        if time < model.time[0] or sound.reception(vehicle, node, time) is None:
            continue
        head = sound.run.facts["vehicles"][vehicle]["head"]
        axes = head_axes(np.array(head["hydrophones"], float))
        u, d = sound.sight(vehicle, node, time)
        R_BW = sound.attitude(vehicle, time).T
        rows = direction_rows(model, sound.everyone.index(vehicle), axes @ R_BW, -u, d)
        true = sound.true_place(node, time) - sound.place(vehicle, time)
        excess = axes @ R_BW @ (true / np.linalg.norm(true) + u)
        model.observe(time, rows, sound.c * head["timing_sigma"], excess)


def head_axes(places: Floats) -> Floats:
    """Return the matrix (3, 3) whose product with a direction in B has one independent noise in each row: that of the
    delay at a hydrophone, in m. ``places`` (N, 3) are those of the hydrophones in B.
    """
    _, size, axes = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)
    return np.asarray(size[:, None] * axes)


def direction_rows(model: BoundModel, v: int, axes_W: Floats, toward: Floats, d: float) -> list[Floats]:
    """Return the derivatives of ``axes_W`` (3, 3) times the direction from vehicle ``v`` to a node, which is the unit
    vector ``toward`` (3) in W, at the distance ``d`` in m.
    """
    across = axes_W @ (np.outer(toward, toward) - np.eye(3)) / d
    turned = -axes_W @ np.cross((0.0, 0.0, 1.0), toward)
    return [
        model.row(v, north=float(a[0]), east=float(a[1]), heading=float(h)) for a, h in zip(across, turned, strict=True)
    ]


def _rows(run: ExamRun, name: str) -> list[tuple[Any, ...]]:
    table = run.tables.get(name)
    return table.rows if table is not None else []
