"""Frames of other systems: ENU and FLU against NED and FRD, checked by SciPy, and interpolation between two steps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wavesim_bridges.vehicle_motion import GRAVITY, motion_of
from wavesim_sdk.axes import attitude_enu, frd_to_flu, ned_to_enu
from wavesim_sdk.frames import quaternion
from wavesim_sdk.wire.state import Effort, State

S = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
B = np.diag([1.0, -1.0, -1.0])


def test_a_thousand_attitudes() -> None:
    q = np.random.default_rng(5).normal(size=(1000, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    ours = Rotation.from_quat(attitude_enu(q), scalar_first=True).as_matrix()
    assert np.abs(ours - S @ Rotation.from_quat(q, scalar_first=True).as_matrix() @ B).max() < 1e-14
    assert np.abs(attitude_enu(attitude_enu(q)) - q).max() < 1e-14
    v = np.random.default_rng(6).normal(size=(1000, 3))
    assert (
        (ned_to_enu(ned_to_enu(v)) == v).all()
        and (frd_to_flu(frd_to_flu(v)) == v).all()
        and np.abs(ned_to_enu(v) - v @ S.T).max() == 0.0
    )


@pytest.mark.parametrize(("heading", "yaw"), [(0.0, 90.0), (90.0, 0.0), (180.0, -90.0), (-90.0, 180.0)])
def test_headings(heading: float, yaw: float) -> None:
    q = attitude_enu(quaternion(0.1, 0.2, np.radians(heading)))
    found = Rotation.from_quat(q, scalar_first=True).as_euler("ZYX", degrees=True)
    assert found[0] == pytest.approx(yaw, abs=1e-9) or abs(found[0]) == pytest.approx(abs(yaw), abs=1e-9) == 180.0
    assert found[1:] == pytest.approx([-np.degrees(0.2), np.degrees(0.1)])


def state(motion: list[float], acceleration: list[float] | None = None) -> State:
    effort = None if acceleration is None else Effort.from_numbers([*acceleration, *[0.0] * 42])
    return State(1, 2_500_000, 1, motion, effort=effort)


def test_at_rest_an_accelerometer_feels_the_ground() -> None:
    level = motion_of(state([0, 0, 1, 1, 0, 0, 0, *[0.0] * 9], [0.0] * 6))
    assert level is not None and level.force == pytest.approx([0, 0, -GRAVITY]) and level.time == 0.0025
    nose_up = motion_of(state([0, 0, 1, *quaternion(0, np.pi / 2, 0), *[0.0] * 9], [0.0] * 6))
    assert nose_up is not None and nose_up.force == pytest.approx([GRAVITY, 0, 0])
    assert motion_of(State(motion=None)) is None


def test_on_a_circle_it_feels_the_turn() -> None:
    """u, r constant: nothing changes in the body's axes, and yet v^2 / radius to the inside."""
    turning = motion_of(state([0, 0, 0, 1, 0, 0, 0, 2.0, 0, 0, 0, 0, 0.5, 0, 0, 0], [0.0] * 6))
    assert turning is not None and turning.force == pytest.approx([0, 2.0 * 0.5, -GRAVITY])
    later = turning
    for _ in range(1000):
        later = later.after(1e-3)
        later.force = turning.force
    angle = 0.5
    assert later.position[:2] == pytest.approx([4 * np.sin(angle), 4 * (1 - np.cos(angle))], abs=2e-3)
    assert later.velocity[:2] == pytest.approx([2 * np.cos(angle), 2 * np.sin(angle)], abs=1e-3)
    assert later.attitude == pytest.approx(quaternion(0, 0, angle), abs=1e-6) and later.time == pytest.approx(1.0025)


def test_any_motion_is_that_of_matrices() -> None:
    """What is written out, against SciPy's rotations."""
    dice = np.random.default_rng(7)
    for _ in range(200):
        q, v, w, change = dice.normal(size=4), dice.normal(size=3), dice.normal(size=3), dice.normal(size=6)
        q /= np.linalg.norm(q)
        found = motion_of(state([1, 2, 3, *q, *v, *w, 0, 0, 0], change.tolist()))
        R = Rotation.from_quat(q, scalar_first=True).as_matrix()
        assert found is not None and found.velocity == pytest.approx(R @ v, abs=1e-12)
        assert found.force == pytest.approx(change[:3] + np.cross(w, v) - GRAVITY * R[2], abs=1e-12)
        assert (found.position == [1, 2, 3]).all() and (found.rates == w).all() and (found.attitude == q).all()
