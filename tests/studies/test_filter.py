"""The navigation filter: its derivatives, its result without noise, and whether its errors are as large as stated."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from tests.studies.voyage import Voyage, compass, depths, noisy, sampled, velocities
from wavesim_sdk import frames
from wavesim_studies.navigation import forward_filter, measurement_models, strapdown
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.filter import (
    CLONES,
    Filter,
    FilterDesign,
    FilterState,
    Track,
    estimate,
    rotation_vector,
)

pytestmark = [pytest.mark.xdist_group("navigation")]  # they share compiled kernels, and voyages
Array = Any
FULL = FilterDesign(
    current=0.3,
    clock=(3.0, 0.01),
    sound=0.01,
    scale=0.01,
    skew=0.02,
    offset=0.5,
    current_time=900.0,
    gyro_time=500.0,
    earth=(5e-5, 0.0, -5e-5),
)
LEVER = (0.4, -0.2, 0.3)


@functools.cache
def voyage(duration: float, rate: float, **more: float) -> Voyage:
    return Voyage(duration, rate, **more)


def started(
    design: FilterDesign, o: Voyage, rng: np.random.Generator | None, sigma: Any, clones: int = CLONES
) -> FilterState:
    """At the truth, or (with ``rng``) as far from it as ``sigma`` says."""
    state = design.start(0.0, o.p[0], o.v[0], o.q[0], sigma, clones)
    if rng is not None:
        error = np.sqrt(np.diag(state.covariance)) * rng.standard_normal(design.size)
        forward_filter.inject_error(state.x, design.state_indices, state.clones, state.count, error)
    return state


# ------------------------------------------------------------------ derivatives

_R = frames.rotation(frames.quaternion(0.2, -0.3, 0.7))
MEASUREMENTS = {
    "position": make.position(0.0, (1.0, 2.0, 3.0), 1.0, LEVER),
    "depth": make.depth(0.0, 5.0, 0.1, LEVER),
    "bottom": make.velocity(0.0, (1.0, 0.1, 0.0), 0.01, LEVER, _R),
    "beams": make.velocity(0.0, (1.0, 0.1), 0.01, LEVER, _R[:2]),
    "water": make.velocity(0.0, (1.0, 0.1, 0.0), 0.01, LEVER, water=True),
    "angles": make.angles(0.0, {"roll": 0.1, "pitch": 0.1, "heading": 0.1}, 0.01),
    "round trip": make.round_trip(-1.0, 0.0, 300.0, (90.0, -120.0, 60.0), 0.5, LEVER),
    "one way": make.one_way(0.0, 150.0, (90.0, -120.0, 60.0), 0.5, LEVER),
    "direction": make.direction(0.0, 0.3, 0.2, (90.0, -120.0, 60.0), 0.01, LEVER, _R),
    "bed": make.plane(0.0, 30.0, (0.0, 0.0, 50.0), (0.02, -0.05, 1.0), 0.1, LEVER, _R[2] * (-1.0, -1.0, 1.0)),
}


def _somewhere() -> FilterState:
    """A state with a clone, and with nothing at a round number."""
    rng = np.random.default_rng(3)
    state = FULL.start(0.0, (12.0, -7.0, 20.0), (1.2, 0.8, -0.1), frames.quaternion(0.1, -0.2, 2.0), [0.1] * 5)
    state.clones[0] = [-1.0, 10.5, -8.0, 19.5, *frames.quaternion(0.05, -0.1, 1.8)]
    state.count[1] = 1
    forward_filter.inject_error(
        state.x, FULL.state_indices, state.clones, state.count, 0.02 * rng.standard_normal(FULL.size + strapdown.CLONE)
    )
    return state


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_derivatives_of_measurements(name: str) -> None:
    """Against differences of what is expected; steps of 1e-5 leave errors of 1e-8."""
    row, base, w = MEASUREMENTS[name], _somewhere(), np.array([0.02, -0.03, 0.1])
    m, n = int(row[measurement_models.M]), FULL.size + strapdown.CLONE

    def expected(error: Array) -> tuple[Array, Array]:
        s, H, z = base.copy(), np.zeros((4, n)), np.zeros(4)
        forward_filter.inject_error(s.x, FULL.state_indices, s.clones, s.count, error)
        assert measurement_models.expected_measurement(
            row, s.arrays, FULL.state_indices, w + base.x[10:13] - s.x[10:13], 0, H, z
        )
        return z[:m], H[:m]

    _, H = expected(np.zeros(n))
    step = 1e-5 * np.eye(n)
    found = np.array([(expected(d)[0] - expected(-d)[0]) / 2e-5 for d in step]).T
    assert np.abs(H).max() > 0.5
    assert np.abs(found - H).max() < 1e-6 * max(1.0, np.abs(H).max())


def test_derivatives_of_motion() -> None:
    """Block by block, over one sample of 10 ms."""
    base, dt, earth = _somewhere(), 0.01, np.array(FULL.earth)
    rates, force = np.array([0.05, -0.08, 0.3]), np.array([0.4, -0.3, -9.7])
    noise, memory = FilterDesign(earth=FULL.earth).noise, np.concatenate([np.zeros(8), rates, force])

    def moved(error: Array) -> FilterState:
        s, w, f, g = base.copy(), np.empty(3), np.empty(3), np.empty((2, 3))
        forward_filter.inject_error(s.x, FULL.state_indices, s.clones, s.count, error)
        strapdown.corrected_rates(s.x, memory, earth, w, f)
        strapdown.transition(s.x[6:10], w, f, dt, earth, F, g)
        strapdown.propagate_state(s.x, w, dt, 9.81, earth, FULL.state_indices, noise, g)
        return s

    F, n = np.zeros((9, 3, 3)), FULL.size + strapdown.CLONE
    moved(np.zeros(n))
    whole = np.eye(15)
    blocks = ((0, 6), (0, 9), (0, 12), (3, 3), (3, 6), (3, 9), (3, 12), (6, 6), (6, 9))
    for (i, j), block in zip(blocks, F, strict=True):
        whole[i : i + 3, j : j + 3] = block
    whole[:3, 3:6] = dt * np.eye(3)
    for k in range(15):
        d = np.zeros(n)
        d[k] = 1e-4
        ahead, behind = moved(d).x, moved(-d).x
        turned = rotation_vector(frames.rotation(ahead[6:10]) @ frames.rotation(behind[6:10]).T)
        found = np.concatenate([ahead[:6] - behind[:6], turned, ahead[10:16] - behind[10:16]]) / 2e-4
        assert np.abs(found - whole[:, k]).max() < 1e-6, k


# ------------------------------------------------------------------ without noise


def test_an_ideal_unit_alone_is_right_to_a_millimetre_after_ten_minutes() -> None:
    """Turns, rolling and pitching included: coning, sculling and gravity are where they belong."""
    o, design = voyage(600.0, 50.0, sway=0.05), FilterDesign()
    track = estimate(
        design, started(design, o, None, [1e-3] * 5), o.imu, np.zeros((0, measurement_models.WIDTH)), [600.0]
    )
    assert np.abs(track.p[-1] - o.p[-1]).max() < 1e-3
    assert np.abs(track.v[-1] - o.v[-1]).max() < 1e-5


# ------------------------------------------------------------------ is it as sure as it may be?

DEG = math.pi / 180.0
SIGMA = [0.5, 0.1, 0.5 * DEG, 2e-5, 0.01]
MEMS = {"gyro_noise": 1e-4, "accelerometer_noise": 2e-3}


@functools.cache
def _diverse(runs: int, factor: float) -> tuple[Array, list[Track]]:
    """NEES (runs, times) of runs with all that a vehicle has; the unit's noise is ``1/factor`` of what the filter believes."""
    o = voyage(240.0, 10.0, leg=60.0)
    believed = FilterDesign(
        gyro_noise=factor * MEMS["gyro_noise"], accelerometer_noise=factor * MEMS["accelerometer_noise"]
    )
    rows = np.concatenate(
        [
            velocities(o, 0.5, 0.01, LEVER),
            depths(o, 0.5, 0.05),
            compass(o, 0.5, 0.3 * DEG),
            np.array([make.position(o.t[i], o.place(i, LEVER), 0.5, LEVER, sensor=4, gate=1e9) for i in o.every(5.0)]),
        ]
    )
    rows[:, measurement_models.GATE] = 1e9  # whoever leaves out the worst is surer than he may be
    marks = o.t[o.every(10.0)]
    k = o.every(10.0)
    found, tracks = [], []
    for run in range(runs):
        rng = np.random.default_rng([run, 15])
        start = started(believed, o, rng, SIGMA, clones=0)
        imu = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])  # whose true biases are 0
        track = estimate(believed, start, imu, noisy(rows, rng), marks)
        e = track.error(o.p[k], o.v[k], o.q[k], gyro=0.0, accelerometer=0.0)
        found.append(np.einsum("ti,ti->t", e, np.linalg.solve(track.covariance, e[:, :, None])[:, :, 0]))
        tracks.append(track)
    return np.array(found), tracks


def test_errors_are_as_large_as_the_filter_says() -> None:
    """NEES of 15 states: 95 % bounds of the mean of 50 runs; NIS of each sensor in the bounds of as many numbers."""
    nees, tracks = _diverse(50, 1.0)
    inside = (nees.mean(axis=0) > 13.52) & (nees.mean(axis=0) < 16.56)
    assert inside.mean() >= 0.9
    for sensor, m in ((1, 3), (2, 1), (3, 1), (4, 3)):
        nis = np.concatenate([t.event_outcomes[t.events[:, measurement_models.SENSOR] == sensor, 1] for t in tracks])
        assert nis.mean() == pytest.approx(m, abs=2.6 * math.sqrt(2.0 * m / len(nis))), sensor


def test_a_filter_that_is_too_sure_fails_that_test() -> None:
    """A tenth of the unit's Q."""
    nees, _ = _diverse(20, math.sqrt(0.1))
    assert (nees.mean(axis=0) > 17.49).mean() > 0.8


def drift(design: FilterDesign, o: Voyage, imu: Array, rows: Array, sigma: Any) -> Array:
    """Error of position (3) at the end of a run that began at the truth."""
    track = estimate(design, started(design, o, None, sigma), imu, rows, [o.duration])
    return track.p[-1] - o.p[-1]


# ------------------------------------------------------------------ sound

BEACONS = np.array([[-300.0, -300.0, 50.0], [-300.0, 300.0, 50.0], [300.0, -300.0, 50.0], [300.0, 300.0, 50.0]])
SOUND = 1500.0


def _trips(o: Voyage, places: Array, period: float, sigma: float, sensor: int = 5, ignored: bool = False) -> Array:
    """Exact round trips to all places (each with its own delay); ``ignored``: reported as if requested at reception."""
    rows = []

    def at(t: float) -> Array:
        v = o.motion(np.array([t]))[0][0]
        k = min(round(t * o.rate), len(o.t) - 1)
        return o.p[k] + (t - o.t[k]) * 0.5 * (v + o.v[k])

    for asked in np.arange(period, o.duration - 2.0 * period, period):
        for b in places:
            out = np.linalg.norm(at(asked) - b)
            heard = asked + 2.0 * out / SOUND
            for _ in range(20):
                back = np.linalg.norm(at(heard) - b)
                heard = asked + (out + back) / SOUND
            rows.append(make.round_trip(heard if ignored else asked, heard, out + back, b, sigma, sensor=sensor))
    return np.array(rows)


def test_a_range_belongs_to_both_its_ends() -> None:
    """Straight towards a beacon 1000 m off at 1.5 m/s: who puts the range to the time of its arrival is v r/c = 1 m behind."""
    o = voyage(120.0, 5.0, leg=1e9, sway=0.0)
    far = o.p[0] + 1100.0 * np.array([math.cos(0.3), math.sin(0.3), 0.0])
    design, errors = FilterDesign(gyro_noise=1e-6, accelerometer_noise=1e-3), []
    for ignored in (True, False):
        rows = _trips(o, [far], 4.0, 0.05, ignored=ignored)
        rows[:, measurement_models.GATE] = 1e9
        error = drift(design, o, o.imu, rows, [3.0, 1e-3, 1e-4, 1e-7, 1e-5])
        errors.append(abs(error @ (math.cos(0.3), math.sin(0.3), 0.0)))
    assert errors[0] > 0.8 and errors[1] < 0.1


def test_a_sphere_is_no_plane() -> None:
    """How much longer ways are on average, and by how much they differ, because of what is uncertain across them: against places
    drawn by chance."""
    rng, far = np.random.default_rng(8), np.array([90.0, -120.0, 60.0])
    base, deviation = _somewhere(), [20.0, 12.0, 3.0]
    root = frames.rotation(frames.quaternion(0.3, 0.2, 0.6)) @ np.diag(deviation)
    k = FULL.size
    for i in (0, k):
        for j in (0, k):
            base.P[i : i + 3, j : j + 3] = root @ root.T
    found, moved = np.zeros(2), rng.standard_normal((200_000, 3)) @ root.T
    for row, poses in ((MEASUREMENTS["one way"], [base.x]), (MEASUREMENTS["round trip"], [base.x, base.clones[0, 1:]])):
        measurement_models.second_order_terms(row, base.x, base.clones, base.count, 0, base.P, found)
        ways, slopes = np.zeros(len(moved)), np.zeros(len(moved))
        for pose in poses:
            q = pose[6:10] if pose is base.x else pose[3:7]
            way = pose[:3] + frames.rotation(q) @ LEVER - far
            ways += np.linalg.norm(way + moved, axis=1)
            slopes += np.linalg.norm(way) + moved @ way / np.linalg.norm(way)
        left = (ways - slopes) / (1.0 + base.optional_state("sound")[0])
        assert found[0] > 0.5 and found == pytest.approx([left.mean(), left.std()], rel=0.1)


def test_who_begins_far_off_finds_its_place_by_the_first_answers() -> None:
    """Direction and range of one beacon, once in 2 s; the first belief is 50 m off. The range alone, weighed as if the beacon were where
    it is thought to be seen, would make it sure of a place three metres beside its own, and it would refuse what is right."""
    o, design = voyage(20.0, 5.0, leg=1e9, sway=0.0), FilterDesign(accelerometer_noise=1e-2)
    beacon = np.array([270.0, 250.0, 25.0])
    rows = [_trips(o, beacon[None], 2.0, 0.3)]
    for trip in rows[0]:
        at = o.p[round(trip[measurement_models.T] * o.rate)]
        north, east, down = o.R[0].T @ (beacon - at)
        level = math.hypot(north, east)
        sight = math.atan2(east, north), math.atan2(down, level)
        rows.append(make.direction(trip[measurement_models.T], *sight, beacon, DEG, sensor=6)[None])
    for first in (5, 6):  # of those of one time: by the number of the sensor
        rng = np.random.default_rng(first)
        measured = noisy(np.concatenate(rows), rng)
        measured[measured[:, measurement_models.SENSOR] == 6, measurement_models.SENSOR] = 11 - first
        misled = o.p[0] + [-30.0, 40.0, 0.0]
        start = design.start(0.0, misled, o.v[0], o.q[0], [(50.0, 50.0, 0.1), 0.1, 0.1 * DEG, 1e-6, 1e-4])
        track = estimate(design, start, o.imu, measured, o.t[o.every(1.0)][6:])
        error = (track.p - o.p[o.every(1.0)][6:])[:, :2]
        assert (track.event_outcomes[:, 0] != 0.0).all(), "nothing is refused"
        nees = np.einsum("ti,ti->t", error, np.linalg.solve(track.covariance[:, :2, :2], error[:, :, None])[:, :, 0])
        assert nees.max() < 13.8, "1 in 1000 for two axes"


def test_long_baseline_is_as_good_as_four_ranges_allow() -> None:
    """0.5 m, every 4 s, 2 m/s, with a Doppler log. The bound is the filter's own covariance at the truth (posterior Cramer-Rao for
    Gaussian noise, with derivatives at the true state), here that of a run without noise."""
    o = voyage(240.0, 5.0, leg=60.0, speed=2.0)
    design = FilterDesign(**MEMS)
    rows = np.concatenate(
        [_trips(o, BEACONS, 4.0, 1.0), velocities(o, 1.0, 0.05), depths(o, 1.0, 0.05), compass(o, 1.0, DEG)]
    )
    k = o.every(4.0)[20:]
    sigma = [3.0, 0.1, DEG, 1e-5, 1e-3]
    bound = estimate(design, started(design, o, None, sigma), o.imu, rows, o.t[k]).covariance
    errors = []
    for run in range(15):
        rng = np.random.default_rng([run, 4])
        imu = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])
        track = estimate(design, started(design, o, rng, sigma), imu, noisy(rows, rng), o.t[k])
        errors.append(track.p - o.p[k])
    rms = math.sqrt((np.array(errors)[:, :, :2] ** 2).sum(axis=2).mean())
    least = math.sqrt((bound[:, 0, 0] + bound[:, 1, 1]).mean())
    assert 0.7 * least < rms < 1.3 * least


# ------------------------------------------------------------------ what goes wrong


def _position(track: Track, o: Voyage, k: Array) -> float:
    return float(np.sqrt(((track.p - o.p[k])[:, :2] ** 2).sum(axis=1).mean()))


def test_outliers_are_refused() -> None:
    """5 % of the ranges 50 m too long."""
    o = voyage(240.0, 5.0, leg=60.0, speed=2.0)
    ranges, design, k = _trips(o, BEACONS, 4.0, 1.0), FilterDesign(**MEMS), o.every(4.0)[5:]
    rows = np.concatenate([ranges, velocities(o, 1.0, 0.05), depths(o, 1.0, 0.05), compass(o, 1.0, DEG)])
    rms: dict[float, list[float]] = {0.0: [], 50.0: []}
    for run in range(6):
        for size, found in rms.items():
            rng = np.random.default_rng([run, 5])
            imu, measured = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"]), noisy(rows, rng)
            wrong = np.flatnonzero(rng.random(len(ranges)) < 0.05)
            measured[wrong, measurement_models.Z] += size
            track = estimate(design, started(design, o, rng, [3.0, 0.1, DEG, 1e-5, 1e-3]), imu, measured, o.t[k])
            found.append(_position(track, o, k) ** 2)
            if size:
                mine = track.events[:, measurement_models.SENSOR] == 5
                assert len(wrong) - 1 <= (track.event_outcomes[mine, 0] == 0.0).sum() <= len(wrong) + 12
    assert np.mean(rms[50.0]) < 1.2**2 * np.mean(rms[0.0])


def test_an_echo_is_known_for_what_it_is() -> None:
    """A range off the surface is taken as one, if the filter knows how deep the bed is; else it is refused."""
    o, design = voyage(20.0, 5.0, leg=1e9, sway=0.0), FilterDesign()
    beacon, t = np.array([80.0, 30.0, 60.0]), 10.0
    length = np.linalg.norm(o.p[50] - beacon * (1.0, 1.0, -1.0))
    for bed, code in ((None, 0.0), (90.0, 2.0)):
        row = make.one_way(t, length, beacon, 0.5, bed=bed)
        track = estimate(design, started(design, o, None, [0.5, 1e-3, 1e-4, 1e-7, 1e-5]), o.imu, [row], [t])
        assert track.event_outcomes[0, 0] == code


def test_while_the_doppler_log_is_lost_the_error_stays_inside_its_own_bounds() -> None:
    o, design = voyage(240.0, 5.0, leg=60.0), FilterDesign(**MEMS)
    dvl = velocities(o, 0.4, 0.01)
    seen = dvl[(dvl[:, measurement_models.T] < 120.0) | (dvl[:, measurement_models.T] > 180.0)]
    rows = np.concatenate([seen, depths(o, 0.4, 0.05), compass(o, 0.4, 0.3 * DEG)])
    k = o.every(1.0)[119:180]
    outside, grown = [], 0.0
    for run in range(20):
        rng = np.random.default_rng([run, 60])
        imu = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])
        track = estimate(design, started(design, o, rng, SIGMA), imu, noisy(rows, rng), o.t[k])
        sigma = np.sqrt(np.einsum("tii->ti", track.covariance)[:, :3])
        outside.append(np.abs(track.p - o.p[k]) > 3.0 * sigma)
        grown = max(grown, float((sigma[-1] / sigma[0])[:2].max()))
    assert np.mean(outside) < 0.01, "0.3 % by chance"
    assert grown > 1.5, "and the filter knows that it knows less"


def test_a_refusing_filter_opens_up() -> None:
    """It was put 40 m away with a centimetre of doubt: after some refusals in a row it listens again."""
    o, design = voyage(120.0, 5.0, leg=1e9, sway=0.0), FilterDesign()
    state = design.start(0.0, o.p[0] + [40.0, 0.0, 0.0], o.v[0], o.q[0], [0.01, 0.01, 1e-3, 1e-6, 1e-4])
    rows = [make.position(o.t[i], o.p[i], 1.0, sensor=4) for i in o.every(1.0)]
    track = estimate(design, state, o.imu, rows, [20.0, 120.0])
    error = np.linalg.norm(track.p - o.p[[100, 600]], axis=1)
    assert error[0] > 30.0 and error[1] < 1.0


def test_late_messages_come_to_the_same() -> None:
    """Everything half a second late and out of order, round trips too: the filter that goes on knows the same, to the last bit
    nearly."""
    o, design = voyage(60.0, 10.0, leg=20.0), FilterDesign(**MEMS)
    rng = np.random.default_rng(1)
    rows = np.concatenate(
        [_trips(o, BEACONS, 4.0, 0.5), velocities(o, 0.5, 0.01), depths(o, 1.0, 0.05), compass(o, 1.0, 0.5 * DEG)]
    )
    rows, imu = noisy(rows, rng), sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])
    start = started(design, o, rng, SIGMA)
    whole = estimate(design, start, imu, rows, [o.duration - 1.0])
    found = []
    for delay in (0.0, 0.5):
        going, left = (
            Filter(start),
            sorted(
                rows, key=lambda r: r[measurement_models.T] + delay + 0.02 * (r[measurement_models.KIND] % 3) * delay
            ),
        )
        for s in imu[: round((o.duration - 1.0) * o.rate)]:
            going.sample(s[0], s[1:4], s[4:7])
            while left and left[0][measurement_models.T] + delay <= s[0] + 1e-9:
                going.add(left.pop(0))
        going.add(*[r for r in left if r[measurement_models.T] <= going.time])
        assert going.late_count == 0
        found.append(going.state.x[:16])
        assert sum(going.counts(5).values()) == sum(
            1 for r in rows if r[measurement_models.SENSOR] == 5 and r[measurement_models.T] <= going.time
        )
    assert np.abs(found[0] - found[1]).max() < 1e-9
    assert np.abs(found[1][:3] - whole.p[-1]).max() < 0.01


def test_two_who_only_exchange_what_they_believe_do_not_get_surer() -> None:
    """Each tells the other, a hundred times, where it believes that both are; and each measures its distance to a companion who knows
    his own place only as well."""
    o, design = voyage(20.0, 5.0, leg=1e9, sway=0.0), FilterDesign(accelerometer_noise=1e-6)
    states = [started(design, o, None, [s, 1e-3, 1e-4, 1e-7, 1e-5]) for s in (3.0, 4.0)]
    before = [np.trace(s.covariance[:3, :3]) for s in states]
    none = np.zeros((0, 7)), np.zeros((0, 26)), np.zeros((0, 1, 1)), np.zeros(0)

    def receive(listener: FilterState, row: Array) -> None:
        listener.run(none[0], row[None], *none[1:])

    for k in range(100):
        speaker, listener = states[k % 2], states[1 - k % 2]
        receive(listener, make.received_position(0.0, speaker.x[:3], speaker.covariance[:3, :3]))
    after = [np.trace(s.covariance[:3, :3]) for s in states]
    assert after[0] == pytest.approx(before[0], rel=1e-6), "the surer one has heard nothing new"
    assert before[0] * 0.999 < after[1] < before[1], "the other one has learned what the first one knew, no more"
    for k in range(100):
        speaker, listener = states[k % 2], states[1 - k % 2]
        place = speaker.x[:3] + [100.0, 0.0, 0.0]
        receive(listener, make.one_way(0.0, 100.0, place, 0.1, covariance=speaker.covariance[:3, :3]))
    assert np.trace(states[0].covariance[:3, :3]) > 0.999 * before[0]
