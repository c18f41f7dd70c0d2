"""Growth of dead-reckoning errors: each instrument error against its closed form, and an hour of lawn mowing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.studies.test_filter import DEG, drift, started, voyage
from tests.studies.voyage import Voyage, compass, depths, noisy, sampled, velocities
from wavesim_sdk import frames
from wavesim_studies.navigation import FilterDesign, estimate, measurement_models

pytestmark = [pytest.mark.xdist_group("navigation")]
Array = Any
#: straight on for 400 s; the filter believes its Doppler log and its heading
SURE = FilterDesign(gyro_noise=1e-9, accelerometer_noise=1e-2)
TIGHT = [1e-6, 1e-4, 1e-7, 1e-12, 1e-9]
AHEAD, ACROSS = np.array([math.cos(0.3), math.sin(0.3), 0.0]), np.array([-math.sin(0.3), math.cos(0.3), 0.0])


def test_drift_has_its_closed_forms() -> None:
    o = voyage(400.0, 5.0, leg=1e9, sway=0.0)
    dvl, way = velocities(o, 1.0, 1e-3), o.way

    scaled = dvl.copy()
    scaled[:, measurement_models.Z : measurement_models.Z + 3] *= 1.002
    assert drift(SURE, o, o.imu, scaled, TIGHT) @ AHEAD == pytest.approx(0.002 * way, rel=0.02)

    b = 0.5 * DEG  # of heading, at the start
    start = SURE.start(0.0, o.p[0], o.v[0], frames.quaternion(0.0, 0.0, 0.3 + b), TIGHT, 0)
    track = estimate(SURE, start, o.imu, dvl, [400.0])
    assert (track.p[-1] - o.p[-1]) @ ACROSS == pytest.approx(b * way, rel=0.02)

    turning = o.imu.copy()
    turning[:, 6] += DEG / 60.0  # 60 deg/h
    w, T = DEG / 3600.0 * 60.0, 400.0
    assert drift(SURE, o, turning, dvl, TIGHT) @ ACROSS == pytest.approx(0.5 * w * T * way, rel=0.03)

    alone = np.zeros((0, measurement_models.WIDTH))
    pushed = o.imu.copy()
    pushed[:, 1] += 0.1e-3 * 9.81
    assert np.linalg.norm(drift(SURE, o, pushed, alone, TIGHT)) == pytest.approx(0.5 * 0.1e-3 * 9.81 * T**2, rel=1e-3)
    tipped = o.imu.copy()
    tipped[:, 5] += DEG / 3600.0  # 1 deg/h
    assert np.linalg.norm(drift(SURE, o, tipped, alone, TIGHT)) == pytest.approx(
        9.81 * DEG / 3600.0 * T**3 / 6.0, rel=1e-3
    )


def test_an_unknown_current_and_a_turned_doppler_log_have_theirs() -> None:
    o = voyage(400.0, 5.0, leg=1e9, sway=0.0)
    water = velocities(o, 1.0, 1e-3, water=True)
    current = np.array([0.1, -0.05, 0.0])
    water[:, measurement_models.Z : measurement_models.Z + 3] -= np.einsum("tji,j->ti", o.R[o.every(1.0)], current)
    assert drift(SURE, o, o.imu, water, TIGHT) == pytest.approx(-400.0 * current, abs=0.6)
    b, turned = 0.5 * DEG, velocities(o, 1.0, 1e-3)
    turned[:, measurement_models.Z : measurement_models.Z + 3] @= frames.rotation(frames.quaternion(0.0, 0.0, b)).T
    assert drift(SURE, o, o.imu, turned, TIGHT) @ ACROSS == pytest.approx(b * o.way, rel=0.02)


def test_noise_adds_up_as_it_should_and_the_filter_says_so() -> None:
    """A Doppler log's n sqrt(T/f) and a gyro's angle random walk D a sqrt(T/3): what the covariance says, and 60 runs do."""
    o, T, runs = voyage(400.0, 5.0, leg=1e9, sway=0.0), 400.0, 60
    n, a = 0.05, 1e-4  # m/s at 1 Hz, rad/sqrt(s)
    loose, walking = (
        FilterDesign(gyro_noise=1e-9, accelerometer_noise=0.02),
        FilterDesign(gyro_noise=a, accelerometer_noise=1e-2),
    )
    for design, rows, expected in (
        (loose, velocities(o, 1.0, n), n * math.sqrt(T)),
        (walking, velocities(o, 1.0, 1e-3), o.way * a * math.sqrt(T / 3.0)),
    ):
        errors = []
        for run in range(runs):
            rng = np.random.default_rng([run, 3])
            imu = sampled(o, rng, design.gyro_noise, design.accelerometer_noise)
            track = estimate(design, started(design, o, None, TIGHT, clones=0), imu, noisy(rows, rng), [T])
            errors.append(ACROSS @ (track.p[-1] - o.p[-1]))
        assert math.sqrt(ACROSS @ track.covariance[-1, :3, :3] @ ACROSS) == pytest.approx(expected, rel=0.03)
        assert np.std(errors) == pytest.approx(expected, rel=0.28), "3 sigma of so many runs"


def lawn_mower(o: Voyage, runs: int, scale: float = 0.0) -> Array:
    """Final horizontal errors as shares of the way: Doppler log 1 cm/s (wrong by ``scale``), gyros off by 1 deg/h, heading 0.1 deg white."""
    rows = np.concatenate([velocities(o, 1.0, 0.01), depths(o, 1.0, 0.05), compass(o, 1.0, 0.1 * DEG)])
    rows[rows[:, measurement_models.SENSOR] == 1, measurement_models.Z : measurement_models.Z + 3] *= 1.0 + scale
    design, found = FilterDesign(gyro_noise=1e-5, accelerometer_noise=1e-3, scale=scale), []
    for run in range(runs):
        rng = np.random.default_rng([run, 36])
        bias = DEG / 3600.0 * rng.choice((-1.0, 1.0), 3)
        imu = sampled(o, rng, 1e-5, 1e-3, bias, 1e-3)
        start = started(design, o, None, [0.01, 0.05, 0.5 * DEG, 5e-6, 2e-3], clones=0)
        track = estimate(design, start, imu, noisy(rows, rng), [o.duration])
        found.append(np.linalg.norm((track.p[-1] - o.p[-1])[:2]) / o.way)
    return np.array(found)


def test_an_hour_of_lawn_mowing() -> None:
    """`benchmarks/navigation.py` has a hundred runs of each."""
    o = voyage(3600.0, 5.0)
    assert np.percentile(lawn_mower(o, 8), 95) <= 0.003
    assert np.percentile(lawn_mower(o, 8, 0.002), 95) <= 0.005
