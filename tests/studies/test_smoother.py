"""The smoother against the textbook form, and the metrics against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.studies.test_filter import BEACONS, DEG, MEMS, SIGMA, _trips, started, voyage
from tests.studies.voyage import compass, depths, noisy, sampled, velocities
from wavesim_sdk import frames
from wavesim_studies.navigation import FilterDesign, estimate, measurement_models, metrics
from wavesim_studies.navigation import measurements as make

pytestmark = [pytest.mark.xdist_group("navigation")]


def test_where_all_is_linear_it_is_that_of_rauch_tung_and_striebel() -> None:
    """Position, velocity and the accelerometer's bias along one axis, level and still: a linear system of three states."""
    rng, dt, q, walk, sigma, n = np.random.default_rng(2), 0.1, 0.05, 0.02, 0.5, 200
    design = FilterDesign(gyro_noise=1e-9, accelerometer_noise=q, accelerometer_walk=walk)
    start = design.start(
        0.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), [2.0, 1.0, 1e-9, 1e-12, 0.3], clones=0
    )
    imu = np.zeros((n, 7))
    imu[:, 0], imu[:, 3] = dt * np.arange(1, n + 1), -9.81
    imu[:, 1] = rng.standard_normal(n)
    z = np.cumsum(rng.standard_normal(n // 5))
    rows = [make.position(imu[5 * k + 4, 0], (z[k], 0.0), sigma, gate=1e9) for k in range(n // 5)]
    track = estimate(design, start, imu, rows, imu[:, 0], smooth=True)

    F = np.array([[1.0, dt, -0.5 * dt * dt], [0.0, 1.0, -dt], [0.0, 0.0, 1.0]])
    Q = np.array(
        [[q * q * dt**3 / 3, q * q * dt**2 / 2, 0.0], [q * q * dt**2 / 2, q * q * dt, 0.0], [0.0, 0.0, walk**2 * dt]]
    )
    x, P, H = np.zeros(3), np.diag([4.0, 1.0, 0.09]), np.array([1.0, 0.0, 0.0])
    seen: list[tuple[Any, ...]] = []
    for k in range(n):
        before = F @ x + np.array([0.5 * dt * dt, dt, 0.0]) * imu[k, 1]
        spread = F @ P @ F.T + Q
        x, P = before, spread
        if k % 5 == 4:
            K = P @ H / (H @ P @ H + sigma**2)
            x, P = x + K * (z[k // 5] - x[0]), P - np.outer(K, H @ P)
        seen.append((before, spread, x, P))
    for k in range(n):
        assert track.x[k, [0, 3, 13]] == pytest.approx(seen[k][2], abs=1e-6)
    places = np.ix_([0, 3, 12], [0, 3, 12])
    smoothed = track.smoothed()
    for k in range(n - 2, -1, -1):
        before, spread, _, _ = seen[k + 1]
        C = seen[k][3] @ F.T @ np.linalg.inv(spread)
        x, P = seen[k][2] + C @ (x - before), seen[k][3] + C @ (P - spread) @ C.T
        assert smoothed.x[k, [0, 3, 13]] == pytest.approx(x, abs=1e-6)
        assert smoothed.covariance[k][places] == pytest.approx(P, rel=1e-5, abs=1e-9)


def test_it_is_better_than_the_filter_and_says_so() -> None:
    """Round trips (with their clones), a Doppler log that is lost for a minute: everywhere no worse, in the gap much better."""
    o, design = voyage(240.0, 5.0, leg=60.0), FilterDesign(**MEMS)
    dvl, k = velocities(o, 0.4, 0.01), o.every(2.0)
    seen = dvl[(dvl[:, measurement_models.T] < 120.0) | (dvl[:, measurement_models.T] > 180.0)]
    trips = _trips(o, BEACONS[:2], 10.0, 0.5)
    ranges = trips[(trips[:, measurement_models.T] < 110.0) | (trips[:, measurement_models.T] > 190.0)]
    rows = np.concatenate([seen, ranges, depths(o, 0.4, 0.05), compass(o, 0.4, 0.3 * DEG)])
    gap = (o.t[k] > 130.0) & (o.t[k] < 180.0)
    squares, nees = [], []
    for run in range(12):
        rng = np.random.default_rng([run, 9])
        imu = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])
        track = estimate(design, started(design, o, rng, SIGMA), imu, noisy(rows, rng), o.t[k], smooth=True)
        both = (track, track.smoothed())
        squares.append([((t.p - o.p[k])[:, :2] ** 2).sum(axis=1) for t in both])
        error = both[1].error(o.p[k], o.v[k], o.q[k], gyro=0.0, accelerometer=0.0)
        nees.append(metrics.nees(error[:, :9], both[1].covariance[:, :9, :9]))
        assert (np.einsum("tii->ti", both[1].covariance) <= np.einsum("tii->ti", track.covariance) * (1 + 1e-6)).all()
    forward, back = np.sqrt(np.mean(squares, axis=0))
    assert math.sqrt((back**2).mean()) <= math.sqrt((forward**2).mean())
    assert math.sqrt((back[gap] ** 2).mean()) <= 0.7 * math.sqrt((forward[gap] ** 2).mean())
    low, high = metrics.bounds(9, 12)
    assert ((np.mean(nees, axis=0) > low) & (np.mean(nees, axis=0) < high)).mean() > 0.8


def test_measures() -> None:
    rng = np.random.default_rng(0)
    s = np.arange(0.0, 2000.0, 1.0)
    true = np.stack([s, 0.0 * s, 20.0 + 0.0 * s], 1)
    q = np.tile(frames.quaternion(0.0, 0.0, 0.0), (len(s), 1))
    b = 1.0 * DEG
    turned = true @ np.array([[math.cos(b), math.sin(b), 0.0], [-math.sin(b), math.cos(b), 0.0], [0.0, 0.0, 1.0]])
    q_turned = np.tile(frames.quaternion(0.0, 0.0, b), (len(s), 1))
    found = metrics.score(turned, q_turned, true, q, np.tile(np.eye(2), (len(s), 1, 1)))
    assert found.final == pytest.approx(2.0 * math.sin(b / 2) * 1999.0)
    assert found.percent == pytest.approx(1.745, abs=0.001) and found.heading_rms == pytest.approx(b)
    assert max(found.per_leg.values()) < 1e-9, "seen from its own beginning each leg is right"
    askew = metrics.score(turned, q, true, q)
    assert askew.per_leg == {d: pytest.approx(2.0 * math.sin(b / 2) * float(d)) for d in ("10", "100", "1000")}
    assert (
        metrics.absolute_trajectory_error(turned, true, align=True).max()
        < 1e-9
        < 34.0
        < metrics.absolute_trajectory_error(turned, true).max()
    )
    assert metrics.bounds(15, 50) == pytest.approx((13.52, 16.56), abs=0.006)
    assert metrics.bounds(1, 50) == pytest.approx((0.647, 1.428), abs=0.001)
    white = rng.standard_normal(4000)
    assert abs(metrics.whiteness(white)) < 1.96 / math.sqrt(4000) < metrics.whiteness(np.convolve(white, [1.0, 0.5]))
