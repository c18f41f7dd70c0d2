"""Closest approaches: by hand, against dense sampling, and from tracks that begin and end at different times."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavesim_sdk.guidance.encounters import closest_approach, closest_on_track, closest_passes


def test_by_hand() -> None:
    """Meeting head-on at 10 m/s each over 1000 m; crossing at right angles, 300 m to the side; parted since 5 s; abreast."""
    distance, time = closest_approach(
        [[1000.0, 0.0], [400.0, 300.0], [50.0, 0.0], [0.0, 80.0]],
        [[-20.0, 0.0], [-4.0, 0.0], [10.0, 0.0], [0.0, 0.0]],
    )
    assert distance == pytest.approx([0.0, 300.0, 0.0, 80.0], abs=1e-9)
    assert time == pytest.approx([50.0, 100.0, -5.0, 0.0], abs=1e-12)


def test_no_time_is_nearer() -> None:
    dice = np.random.default_rng(5)
    p, v = dice.normal(0.0, 100.0, (50, 3)), dice.normal(0.0, 3.0, (50, 3))
    distance, time = closest_approach(p, v)
    for k in range(50):
        at = time[k] + np.linspace(-50.0, 50.0, 2001)
        sampled = np.linalg.norm(p[k] + v[k] * at[:, None], axis=1)
        assert sampled.min() == pytest.approx(distance[k], abs=1e-6) and abs(int(sampled.argmin()) - 1000) <= 1


def test_between_the_samples_of_a_track() -> None:
    """They cross between two samples: the nearest one is 5.1 m away, the pass 1 m."""
    times = np.array([0.0, 1.0, 2.0, 3.0])
    track = np.array([[-15.0, 1.0], [-5.0, 1.0], [5.0, 1.0], [15.0, 1.0]])
    assert closest_on_track(times, track) == pytest.approx((1.0, 1.5))
    assert closest_on_track(times[:1], track[:1])[0] == pytest.approx(math.hypot(15.0, 1.0))


def test_each_has_its_nearest() -> None:
    def line(start: float, end: float, east: float) -> tuple[np.ndarray, np.ndarray]:
        t = np.arange(start, end + 0.5)
        return t, np.stack([t, np.full(len(t), east), np.zeros(len(t))], axis=1)

    tracks = {"a": line(0, 10, 0.0), "b": line(5, 20, 7.0), "c": line(12, 20, 9.0), "late": line(30, 40, 0.0)}
    found = closest_passes(tracks)
    assert found["a"] == ("b", pytest.approx(7.0), 5.0)
    assert found["b"][0] == "c" and found["b"][1] == pytest.approx(2.0)
    assert found["c"][0] == "b", "a had left before it came"
    assert "late" not in found
    assert closest_passes({"absent": (np.zeros(0), np.zeros((0, 3))), "a": tracks["a"]}) == {}
