"""Random streams belong to an entity and a purpose, and the numbers are normally distributed."""

from __future__ import annotations

import numpy as np
from scipy import stats

from wavesim_kernels.randomness import key, normal, uniform
from wavesim_sdk import frames


def test_the_law() -> None:
    keys = np.array([key(1, f"v{i}", "range") for i in range(200)], np.uint64)
    draws = np.concatenate([normal(keys, k) for k in range(500)])
    assert stats.kstest(draws, "norm").pvalue > 1e-3
    flat = np.concatenate([uniform(keys, k) for k in range(500)])
    assert stats.kstest(flat, "uniform").pvalue > 1e-3
    pair = np.array([normal(keys, 5, 0), normal(keys, 5, 1)])
    assert abs(np.corrcoef(pair)[0, 1]) < 0.25
    series = np.array([normal(keys[:1], k)[0] for k in range(4000)])
    assert abs(np.corrcoef(series[:-1], series[1:])[0, 1]) < 0.06


def test_draws_depend_on_nobody_else() -> None:
    a, b = key(1, "a", "x"), key(1, "b", "x")
    alone = normal(np.array([a], np.uint64), 7)[0]
    assert normal(np.array([b, a], np.uint64), 7)[1] == alone
    assert len({key(1, "a", "x"), key(2, "a", "x"), key(1, "a", "y"), b}) == 4


def test_rotations_there_and_back() -> None:
    rng = np.random.default_rng(2)
    for _ in range(100):
        angles = rng.uniform([-3.1, -1.5, -3.1], [3.1, 1.5, 3.1])
        q = frames.quaternion(*angles)
        assert np.allclose(frames.euler(q), angles)
        R = frames.rotation(q)
        assert np.allclose(R @ R.T, np.eye(3))
    # heading east, forward is east; pitched up, forward points up (negative down)
    assert np.allclose(frames.rotation(frames.quaternion(0, 0, np.pi / 2)) @ [1, 0, 0], [0, 1, 0])
    assert frames.rotation(frames.quaternion(0, 0.3, 0))[2, 0] < 0
    # rolled starboard down, starboard points down
    assert frames.rotation(frames.quaternion(0.3, 0, 0))[2, 1] > 0
