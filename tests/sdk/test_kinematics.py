"""Kinematics, geodesy and survey patterns, judged by SciPy, pymap3d and finite differences."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest
from scipy.spatial.transform import Rotation

from wavesim_sdk import frames, geodesy, kinematics
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.survey_patterns import circle_points, parallel_legs

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(1048)
ANGLES = np.column_stack([RNG.uniform(-3.1, 3.1, 300), RNG.uniform(-1.55, 1.55, 300), RNG.uniform(-3.1, 3.1, 300)])


def judge(euler: Any) -> Rotation:
    """The rotations of SciPy: intrinsic ZYX, from heading, pitch and roll."""
    return Rotation.from_euler("ZYX", np.asarray(euler)[..., ::-1])


def scalar_first(rotation: Rotation) -> Any:
    return np.roll(rotation.as_quat(), 1, axis=-1)


Q = scalar_first(judge(ANGLES))


def test_conversions_agree_with_scipy() -> None:
    R = judge(ANGLES).as_matrix()
    assert np.abs(kinematics.euler_to_rotation(ANGLES) - R).max() < 1e-15
    assert np.abs(kinematics.quaternion_to_rotation(3.0 * Q) - R).max() < 1e-15, "any length"
    assert np.abs(kinematics.rotation_to_euler(R) - ANGLES).max() < 1e-13
    assert np.abs(kinematics.quaternion_to_euler(-Q) - ANGLES).max() < 1e-13, "q and -q are one rotation"
    found = kinematics.rotation_to_quaternion(R)
    assert (found[:, 0] >= 0.0).all() and np.abs(found - np.where(Q[:, :1] < 0.0, -Q, Q)).max() < 1e-15
    assert np.abs(kinematics.rotation_to_quaternion(R, near=-found) + found).max() == 0.0
    # one value and arrays of any shape
    assert np.array_equal(
        kinematics.rotation_to_euler(R.reshape(3, 100, 3, 3)).reshape(-1, 3), kinematics.rotation_to_euler(R)
    )
    assert kinematics.rotation_to_quaternion(R[0]).shape == (4,) and kinematics.rotation_to_euler(R[0]).shape == (3,)


def test_half_turns_have_no_preferred_component() -> None:
    """At rotations by 180 degrees the scalar part is zero, and a formula that divides by it fails."""
    axes = RNG.normal(size=(200, 3))
    axes = np.vstack([np.eye(3), axes / np.linalg.norm(axes, axis=1)[:, None]])
    R = Rotation.from_rotvec(math.pi * axes).as_matrix()
    q = kinematics.rotation_to_quaternion(R)
    assert np.abs(np.linalg.norm(q, axis=1) - 1.0).max() < 1e-15
    assert np.abs(frames.rotation(q) - R).max() < 1e-15


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("off", [0.0, 1e-15, 1e-12, 3e-9, 1e-7])
def test_gimbal_lock_keeps_the_heading_and_the_rotation(side: float, off: float) -> None:
    euler = np.array([0.3, side * (0.5 * math.pi - off), 0.8])
    R = judge(euler).as_matrix()
    locked = off if off < kinematics.GIMBAL_LOCK else 0.0  # the kept heading turns the body by at most this angle
    for near in (None, np.array([9.0, 9.0, 1.7])):
        found = kinematics.rotation_to_euler(R, near)
        assert np.abs(judge(found).as_matrix() - R).max() < 2e-15 + 3.0 * locked, "rounding cancels"
        assert abs(found[1] - euler[1]) < 2e-15
        if locked or not off:
            assert found[2] == (0.0 if near is None else 1.7)
    # the angles of the previous tick are kept, so that they do not jump
    assert np.abs(kinematics.rotation_to_euler(R, euler) - euler).max() < (1e-6 if off > 1e-10 else 1e-11)
    assert np.isinf(kinematics.euler_rate_matrix([0.0, side * 0.5 * math.pi, 0.0])).any() or (
        np.abs(kinematics.euler_rate_matrix([0.0, side * 0.5 * math.pi, 0.0])).max() > 1e15
    )


def test_quaternion_algebra_agrees_with_scipy() -> None:
    a, b = judge(ANGLES[:150]), judge(ANGLES[150:])
    qa, qb = scalar_first(a), scalar_first(b)
    product, known = kinematics.quaternion_product(qa, qb), scalar_first(a * b)
    assert np.abs(np.abs(np.sum(product * known, axis=1)) - 1.0).max() < 1e-14
    assert np.abs(frames.rotation(product) - (a * b).as_matrix()).max() < 1e-14
    assert np.abs(frames.rotation(kinematics.quaternion_conjugate(qa)) - a.inv().as_matrix()).max() < 1e-14
    one = kinematics.quaternion_product(qa, kinematics.quaternion_conjugate(qa))
    assert np.abs(one - [1.0, 0.0, 0.0, 0.0]).max() < 1e-15
    v = RNG.normal(size=(150, 3))
    assert np.abs(kinematics.rotate_vector(qa, v) - a.apply(v)).max() < 1e-14
    by_product = kinematics.quaternion_product(
        kinematics.quaternion_product(qa, np.column_stack([np.zeros(150), v])), kinematics.quaternion_conjugate(qa)
    )
    assert np.abs(by_product - np.column_stack([np.zeros(150), a.apply(v)])).max() < 1e-14
    assert np.abs(np.einsum("nij,nj->ni", kinematics.skew(v), v[::-1]) - np.cross(v, v[::-1])).max() < 1e-15


def test_rates_agree_with_finite_differences() -> None:
    """A body turns with w_WB_B for a moment: SciPy's attitudes before and after give the rates."""
    w, h = RNG.normal(size=(300, 3)), 1e-6
    start = judge(ANGLES)

    def attitudes(sign: float) -> Rotation:
        return start * Rotation.from_rotvec(sign * h * w)

    def slope(of: Any) -> Any:
        return (of(attitudes(1.0)) - of(attitudes(-1.0))) / (2.0 * h)

    calm = np.abs(ANGLES[:, 1]) < 1.4  # near gimbal lock the differences are inaccurate
    euler = slope(lambda r: r.as_euler("ZYX")[:, ::-1])
    euler = np.where(np.abs(euler) > 1e5, np.nan, euler)  # an angle that jumped by a whole turn
    found = kinematics.euler_rates(ANGLES, w)
    assert np.nanmax(np.abs(found - euler)[calm]) < 1e-6
    same = lambda r: (q := scalar_first(r)) * np.sign(np.sum(q * Q, axis=1))[:, None]  # noqa: E731
    assert np.abs(kinematics.quaternion_rates(Q, w) - slope(same)).max() < 1e-8
    inverse = kinematics.body_rate_matrix(ANGLES)
    assert np.abs(np.einsum("nij,nj->ni", inverse, found) - w).max() < 1e-12
    assert np.isfinite(kinematics.body_rate_matrix([0.1, 0.5 * math.pi, 0.2])).all()


def test_jacobians_have_the_rates_of_position_and_attitude() -> None:
    nu = RNG.normal(size=(300, 6))
    J = kinematics.jacobian(ANGLES)
    assert J.shape == (300, 6, 6) and kinematics.jacobian(ANGLES[0]).shape == (6, 6)
    eta_dot = np.einsum("nij,nj->ni", J, nu)
    assert np.abs(eta_dot[:, :3] - judge(ANGLES).apply(nu[:, :3])).max() < 1e-14
    assert np.abs(eta_dot[:, 3:] - kinematics.euler_rates(ANGLES, nu[:, 3:])).max() < 1e-14
    assert not J[:, :3, 3:].any() and not J[:, 3:, :3].any()
    J = kinematics.quaternion_jacobian(Q)
    assert J.shape == (300, 7, 6)
    assert np.abs(np.einsum("nij,nj->ni", J, nu)[:, 3:] - kinematics.quaternion_rates(Q, nu[:, 3:])).max() < 1e-15


def test_derivatives_between_euler_angles_and_quaternions() -> None:
    calm = np.abs(ANGLES[:, 1]) < 1.4
    euler, q, h = ANGLES[calm], Q[calm], 1e-6
    found = kinematics.euler_by_quaternion(q)
    for k in range(4):
        step = h * np.eye(4)[k]
        slope = (
            Rotation.from_quat(np.roll(q + step, -1, axis=1)).as_euler("ZYX")[:, ::-1]
            - Rotation.from_quat(np.roll(q - step, -1, axis=1)).as_euler("ZYX")[:, ::-1]
        ) / (2.0 * h)
        assert np.abs(found[:, :, k] - slope).max() < 1e-5
    q = frames.quaternion(*euler.T)
    back = kinematics.quaternion_by_euler(euler)
    for k in range(3):
        step = h * np.eye(3)[k]
        slope = (frames.quaternion(*(euler + step).T) - frames.quaternion(*(euler - step).T)) / (2.0 * h)
        assert np.abs(back[:, :, k] - slope).max() < 1e-9
    assert np.abs(np.einsum("nij,njk->nik", kinematics.euler_by_quaternion(q), back) - np.eye(3)).max() < 1e-12
    assert np.array_equal(kinematics.quaternion_by_euler(euler[0]), back[0])


def test_smallest_signed_angles() -> None:
    angles = np.array([math.pi, -math.pi, 3.0 * math.pi, 0.0, 7.0, -7.0, 1e-9])
    assert kinematics.smallest_signed_angle(angles).tolist() == [frames.wrap(a) for a in angles]
    assert kinematics.smallest_signed_angle(-math.pi) == math.pi


# ------------------------------------------------------------------ geodesy

PLACES = [(41.18, -8.7), (-77.0, 179.999), (0.0, 0.0), (-33.0, -179.9999), (90.0, 0.0), (-90.0, 120.0), (89.9999, 10.0)]


@pytest.mark.parametrize(("latitude", "longitude"), PLACES)
def test_earth_fixed_coordinates_agree_with_pymap3d(latitude: float, longitude: float) -> None:
    lat, lon = math.radians(latitude), math.radians(longitude)
    heights = np.array([-11000.0, -5.0, 0.0, 120.0, 8848.0])
    p_E = geodesy.ecef(lat, lon, heights)
    known = np.column_stack(pymap3d.geodetic2ecef(latitude, longitude, heights))
    assert np.abs(p_E - known).max() < 2e-9
    found = geodesy.geodetic(p_E)
    assert np.abs(np.degrees(found[0]) - latitude).max() < 1e-12
    if abs(latitude) < 90.0:
        assert np.abs((np.degrees(found[1]) - longitude + 180.0) % 360.0 - 180.0).max() < 1e-9
    assert np.abs(found[2] - heights).max() < 1e-7
    v = RNG.normal(size=3)
    R = geodesy.ned_to_ecef(lat, lon)
    east_north_up = v[1], v[0], -v[2]
    assert np.abs(R @ v - np.array(pymap3d.enu2uvw(*east_north_up, latitude, longitude))).max() < 1e-15
    assert np.abs(R @ R.T - np.eye(3)).max() < 1e-15 and np.linalg.det(R) > 0.99
    origin = Origin(lat, lon)
    p_W = RNG.uniform(-2e4, 2e4, (50, 3))
    known = np.column_stack(pymap3d.ned2ecef(*p_W.T, latitude, longitude, 0.0))
    assert np.abs(origin.ecef(p_W) - known).max() < 1e-8
    assert np.abs(origin.from_ecef(origin.ecef(p_W)) - p_W).max() < 1e-8
    assert np.abs(origin.from_ecef(p_E[1]) - [0.0, 0.0, 5.0]).max() < 1e-8


def test_the_poles_and_the_antimeridian() -> None:
    assert geodesy.geodetic([0.0, 0.0, 6356752.314245179])[0] == pytest.approx(math.pi / 2, abs=1e-15)
    latitude, longitude, height = geodesy.geodetic([0.0, 0.0, -6356752.314245179])
    assert abs(latitude + math.pi / 2) < 1e-15 and longitude == 0.0 and abs(height) < 1e-8
    east = Origin(0.0, math.radians(179.9999)).ned(0.0, math.radians(-179.9999))
    assert east == pytest.approx([0.0, 22.26, 0.0], abs=0.01), "22 m across the antimeridian, not around the Earth"


def test_the_example_of_the_reference_document() -> None:
    """llh_to_ned of (60.001, 10.001, 10) from (60, 10, 0): 111.41, 55.80 and -10.0 m; and a survey around the datum as
    latitudes and longitudes.
    """
    origin = Origin(math.radians(60.0), math.radians(10.0))
    lat, lon = np.radians([60.001, 60.0]), np.radians([10.001, 10.0])
    found = origin.ned(lat, lon, np.array([10.0, 0.0]))
    assert found[0] == pytest.approx(pymap3d.geodetic2ned(60.001, 10.001, 10.0, 60.0, 10.0, 0.0), abs=1e-8)
    assert found[0] == pytest.approx([111.41289, 55.79840, -9.99878], abs=1e-5) and np.abs(found[1]).max() < 1e-9
    legs = parallel_legs([(0, 0), (40, 0), (40, 20), (0, 20)], 10.0)
    latitude, longitude, _ = origin.geodetic(np.column_stack([legs, np.zeros(len(legs))]))
    assert np.abs(origin.ned(latitude, longitude)[:, :2] - legs).max() < 1e-6


# ------------------------------------------------------------------ survey patterns

SQUARE = [(0.0, 0.0), (40.0, 0.0), (40.0, 20.0), (0.0, 20.0)]
HOOK = [(0.0, 0.0), (100.0, 10.0), (90.0, 80.0), (50.0, 30.0), (5.0, 70.0)]


def test_a_survey_covers_its_area_back_and_forth() -> None:
    assert parallel_legs(SQUARE, 10.0).tolist() == [[0, 5], [40, 5], [40, 15], [0, 15]]
    legs = parallel_legs(HOOK, 7.0, math.radians(30.0)).reshape(-1, 2, 2)
    inside = [p for p in RNG.uniform(0, 100, (600, 2)) if _is_inside(p, HOOK)]
    assert len(inside) > 100
    across = legs[:, 0] @ [-math.sin(math.radians(30.0)), math.cos(math.radians(30.0))]
    for p in inside:
        at = p @ [-math.sin(math.radians(30.0)), math.cos(math.radians(30.0))]
        assert np.abs(across - at).min() <= 3.5 + 1e-9
    turns = np.diff(across)
    assert (turns > -1e-9).all() and turns.max() < 7.0 + 1e-9
    for wrong, spacing in (([(0, 0), (1, 1)], 1.0), (SQUARE, 0.0), (SQUARE, -1.0), (SQUARE, 1e-5)):
        with pytest.raises(InvalidArgument):
            parallel_legs(wrong, spacing)


def _is_inside(p: Any, polygon: list[tuple[float, float]]) -> bool:
    inside = False
    for (n0, e0), (n1, e1) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        if (e0 > p[1]) != (e1 > p[1]) and p[0] < n0 + (p[1] - e0) / (e1 - e0) * (n1 - n0):
            inside = not inside
    return inside


def test_the_page_draws_the_same_survey(tmp_path: Path) -> None:
    node, esbuild = shutil.which("node"), ROOT / "viz/web/node_modules/.bin/esbuild"
    if node is None or not esbuild.exists():
        pytest.skip("needs Node.js and the page's packages (make setup)")
    cases = [(SQUARE, 10.0, 0.0), (SQUARE, 7.0, 90.0), (HOOK, 6.0, 30.0), (HOOK, 300.0, -75.0)]
    source, program = ROOT / "viz/web/src/survey_patterns.ts", tmp_path / "legs.mjs"
    subprocess.run(
        [esbuild, source, "--format=esm", f"--outfile={tmp_path / 'page.mjs'}"], check=True, capture_output=True
    )
    program.write_text(f"""import * as page from "./page.mjs";
const found = {json.dumps(cases)}.map(([a, s, h]) => page.parallelLegs(a, s, h));
console.log(JSON.stringify([found, page.circlePoints([5, 7], 20)]));""")
    done = subprocess.run([node, str(program)], capture_output=True, text=True, timeout=60, check=True)
    legs, circle = json.loads(done.stdout)
    for (area, spacing, heading), known in zip(cases, legs, strict=True):
        assert np.abs(parallel_legs(area, spacing, math.radians(heading)) - known).max() < 1e-9
    assert np.abs(circle_points((5.0, 7.0), 20.0) - circle).max() < 1e-12
