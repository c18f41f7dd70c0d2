"""Viscous forces and added mass from meshes: published coefficients of simple bodies, closed forms, and symmetries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from wavesim_server.friction import VISCOSITY, ittc_line, streamlined_form_factor
from wavesim_server.spheroid import spheroid_added_mass
from wavesim_studies.from_mesh import added_mass_of_parts
from wavesim_studies.from_mesh.appendages import fin, lift_slope, stall_angle, thruster_limits, with_fins
from wavesim_studies.from_mesh.open_frame import OpenFramePart, open_frame
from wavesim_studies.from_mesh.resistance import DragEstimate, resistance
from wavesim_studies.from_mesh.section_drag import section_drag, span_factor

trimesh: Any = pytest.importorskip("trimesh")
RHO = 1000.0


def box(*size: float, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Any:
    return np.asarray(trimesh.creation.box(size).triangles) + np.array(at)


def ellipsoid(*half: float) -> Any:
    return np.asarray(trimesh.creation.icosphere(4, 1.0).triangles) * np.array(half)


def cone(length: float, radius: float) -> Any:
    """A cone with its tip ahead; the origin is in the middle of its axis."""
    t = np.asarray(trimesh.creation.cone(radius, length, sections=48).triangles)  # along z
    return np.roll(t, 1, axis=2) - np.array([0.5 * length, 0.0, 0.0])


def coefficients(t: Any, speed: float, area: tuple[float, ...]) -> list[float]:
    """The drag coefficients along the axes, at the design speed (across the axis: at a quarter of it)."""
    d = resistance(t, speed, RHO)
    speeds = (speed, 0.25 * speed, 0.25 * speed)
    return [
        2.0 * (d.quadratic[k, k] + d.linear[k, k] / v) / RHO / a
        for k, (v, a) in enumerate(zip(speeds, area, strict=True))
    ]


def test_simple_bodies_have_their_published_coefficients() -> None:
    """Sphere 0.47, cube 1.05, disc 1.12 to 1.17, square plate across the flow 1.16 (Hoerner 1965), below the drag crisis."""
    a = math.pi * 0.1**2
    assert coefficients(ellipsoid(0.1, 0.1, 0.1), 1.0, (a, a, a)) == pytest.approx([0.47, 0.47, 0.47], rel=0.15)
    assert coefficients(box(0.2, 0.2, 0.2), 1.0, (0.04, 0.04, 0.04)) == pytest.approx([1.05, 1.05, 1.05], rel=0.1)
    assert coefficients(box(0.005, 0.5, 0.5), 1.0, (0.25, 1.0, 1.0))[0] == pytest.approx(1.15, rel=0.05)
    assert coefficients(box(0.5, 0.5, 0.005), 1.0, (1.0, 1.0, 0.25))[2] == pytest.approx(1.16, rel=0.2)


def test_sections_and_finite_lengths() -> None:
    """Plate 1.98, square 2.2, circle 1.0, rectangle of ratio 2 1.6; a cylinder of ratio 5 has 0.62 of the endless one."""
    found = section_drag(np.array([0.0, 1.0, 1.0, 2.0]), np.ones(4), np.array([1.0, 1.0, math.pi / 4.0, 1.0]))
    assert found == pytest.approx([1.98, 2.2, 1.0, 1.6], rel=1e-9)
    assert [span_factor(r) for r in (1.0, 5.0, 40.0, 1000.0)] == pytest.approx([0.5, 0.62, 0.82, 0.98])


def test_a_streamlined_hull_has_the_friction_of_its_wetted_area() -> None:
    """ITTC 1957 times Hoerner's form factor on Thomsen's area of a spheroid, at the design speed and at half of it."""
    d = resistance(ellipsoid(1.0, 0.1, 0.1), 2.0, RHO)
    e = math.sqrt(0.99)
    area = 2.0 * math.pi * 0.01 * (1.0 + math.asin(e) / (0.1 * e))
    assert d.regime == "streamlined"
    assert d.wetted == pytest.approx(area, rel=0.01)
    for u in (1.0, 2.0):
        skin = 0.5 * RHO * ittc_line(u * 2.0 / VISCOSITY) * streamlined_form_factor(0.1) * d.wetted * u * u
        assert d.linear[0, 0] * u + d.quadratic[0, 0] * u * u == pytest.approx(skin, rel=0.02)
    assert d.drag == pytest.approx(d.linear[0, 0] * 2.0 + d.quadratic[0, 0] * 4.0)


def test_strips_of_a_box() -> None:
    """Sway: 1/2 rho L h CD. Yaw: the strips of the sides, and the ends, whose centre line is at rest."""
    length, side = 2.0, 0.3
    d = resistance(box(length, side, side), 20.0, RHO)  # so fast that friction matters little
    k = 0.5 * RHO * side * 2.2 * span_factor(length / side)
    assert d.quadratic[1, 1] == pytest.approx(k * length, rel=0.015)
    ends = d.quadratic[0, 0] / (side * side) * side * 2.0 * (0.5 * side) ** 4 / 4.0
    assert d.quadratic[5, 5] == pytest.approx(k * length**4 / 32.0 + ends, rel=0.03)


def test_strips_of_an_ellipsoid() -> None:
    """The flow normal to a spheroid that yaws is that of strips multiplied by 1 - (b/a)^2; a sphere has none at all."""
    a, b = 1.0, 0.2
    d = resistance(ellipsoid(a, b, b), 1.0, RHO)
    k = RHO * b * 1.0 * span_factor(a / b)  # in the middle
    assert d.quadratic[1, 1] == pytest.approx(k * math.pi / 2.0 * a, rel=0.05)
    assert d.quadratic[5, 5] == pytest.approx(k * 4.0 / 15.0 * a**4 * (1.0 - (b / a) ** 2) ** 2, rel=0.05)
    assert d.quadratic[3, 3] < 1e-3 * d.quadratic[5, 5]
    ball = resistance(ellipsoid(0.2, 0.2, 0.2), 1.0, RHO).quadratic
    assert ball[5, 5] < 0.05 * ball[1, 1] * 0.2**3


def test_symmetric_hulls_have_no_coupling() -> None:
    d = resistance(ellipsoid(1.0, 0.2, 0.2), 1.0, RHO)
    assert np.count_nonzero(d.quadratic - np.diag(np.diag(d.quadratic))) == 0
    assert np.count_nonzero(d.linear - np.diag(np.diag(d.linear))) == 0


def test_a_hull_that_is_wider_aft_yaws_with_sway_and_pitches_with_heave() -> None:
    q = resistance(cone(2.0, 0.2), 1.0, RHO).quadratic
    assert q[5, 1] < -0.1 * q[1, 1]  # the force acts aft of the middle
    assert q[1, 5] < 0.0
    for heave, sway in (((2, 4), (1, 5)), ((4, 2), (5, 1))):
        assert q[heave] == pytest.approx(-q[sway], rel=0.02)


def _irregular() -> Any:
    t = ellipsoid(1.0, 0.2, 0.15)
    t[:, :, 1] += 0.1 * t[:, :, 0]  # it bends to starboard
    t[:, :, 2] *= 1.0 + 0.3 * t[:, :, 0]
    return t


def test_mirrors_and_rotations() -> None:
    t = _irregular()
    d = resistance(t, 1.5, RHO)
    mirror = np.diag([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    m = resistance((t * np.array([1.0, -1.0, 1.0]))[:, ::-1], 1.5, RHO)
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # a quarter turn about x
    r = resistance(t @ turn.T, 1.5, RHO)
    whole = np.kron(np.eye(2), turn)
    for name in ("linear", "quadratic", "lift"):
        mine = getattr(d, name)
        size = float(np.abs(mine).max())
        # the signs of a quadratic term of a motion follow those of the motion
        assert getattr(m, name) == pytest.approx(mirror @ mine @ mirror, abs=3e-3 * size), name
        assert getattr(r, name) == pytest.approx(whole @ mine @ whole.T, abs=3e-3 * size), name


def test_body_lift_is_what_the_flow_lacks_after_it_has_separated() -> None:
    """A cylinder keeps the lift rho (k2 - k1) S of its nose. It lacks the opposite force on its base."""
    t = np.roll(np.asarray(trimesh.creation.cylinder(0.1, 2.0, sections=48).triangles), 1, axis=2)
    d = resistance(t, 1.5, RHO)
    k1, k2, _ = spheroid_added_mass(10.0)
    lift = RHO * (k2 - k1) * math.pi * 0.1**2
    assert d.lift[1, 1] == pytest.approx(lift, rel=0.02)
    assert d.lift[5, 1] == pytest.approx(-lift * 1.0, rel=0.03)  # the base is 1 m aft of the origin
    assert d.lift[2, 2] == pytest.approx(d.lift[1, 1], rel=0.01)
    assert d.lift[4, 2] == pytest.approx(-d.lift[5, 1], rel=0.01)
    moved = resistance(t - np.array([0.3, 0.0, 0.0]), 1.5, RHO)
    assert moved.lift[5, 1] == pytest.approx(d.lift[5, 1] - 0.3 * d.lift[1, 1], rel=0.02)
    assert not resistance(ellipsoid(0.2, 0.2, 0.2), 1.5, RHO).lift.any()
    short = resistance(box(2.0, 1.0, 0.8), 1.5, RHO)
    assert short.lift[1, 1] > 0.0
    assert short.lift_deviation[1, 1] > d.lift_deviation[1, 1]


def test_a_floating_hull() -> None:
    """Only the part below the waterline has drag, and moments act about the origin."""
    t = box(4.0, 1.0, 1.0)
    d = resistance(t, 1.0, RHO, surface=0.1)
    assert d.wetted == pytest.approx(4.0 * 1.0 + 2.0 * 0.4 * 5.0)
    assert d.frontal == pytest.approx(0.4)
    assert d.quadratic[3, 1] == pytest.approx(-0.3 * d.quadratic[1, 1], rel=0.1)  # in the middle of the wetted sides
    assert not any("wave resistance" in note for note in d.notes)
    assert any("wave resistance" in note for note in resistance(t, 3.0, RHO, surface=0.1).notes)
    with pytest.raises(ValueError, match="no part of the hull is below the waterline"):
        resistance(t, 1.0, RHO, surface=0.6)
    with pytest.raises(ValueError, match="not closed"):
        resistance(t[1:], 1.0, RHO)


def test_fins() -> None:
    """Whicker and Fehlner: 2.4 per rad at an aspect ratio of 2, 3.1 at 3; a hull doubles the aspect ratio."""
    assert [lift_slope(a) for a in (2.0, 3.0)] == pytest.approx([2.44, 3.14], rel=0.01)
    assert math.degrees(stall_angle(2.0)) == pytest.approx(24.0)
    plate = box(0.1, 0.01, 0.2, at=(-0.8, 0.0, 0.2))
    alone, fitted = fin(plate, 1.5), fin(plate, 1.5, hull=ellipsoid(1.0, 0.2, 0.2))
    assert (alone.area, alone.aspect_ratio, fitted.aspect_ratio) == pytest.approx((0.02, 2.0, 4.0))
    assert alone.position == pytest.approx([-0.775, 0.0, 0.2])
    assert alone.normal == pytest.approx([0.0, 1.0, 0.0])
    swept = plate.copy()
    swept[:, :, 0] -= swept[:, :, 2]  # by 45 deg
    assert fin(swept, 1.5).lift_slope == pytest.approx(lift_slope(2.0, math.radians(45.0)), rel=0.02)
    with pytest.raises(ValueError, match="across the flow"):
        fin(box(0.01, 0.2, 0.2), 1.5)
    hull = resistance(ellipsoid(1.0, 0.2, 0.2), 1.5)
    both = with_fins(hull, [alone, fin(plate * [1.0, 1.0, -1.0], 1.5)], 1.5)
    assert both.drag - hull.drag == pytest.approx(2.0 * alone.drag * 1.5**2)
    assert both.quadratic[4, 0] == hull.quadratic[4, 0]  # the moments of the two fins cancel


def test_thrusters_without_a_stated_force() -> None:
    c = math.sqrt(0.5)
    limits = thruster_limits([(c, c, 0.0), (c, -c, 0.0), (0.0, 0.0, 1.0)], 10.0)
    assert sum(most * c for _, most in limits[:2]) == pytest.approx(20.0)
    assert limits[2] == pytest.approx((-limits[0][1], limits[0][1]))


def test_added_mass_of_simple_bodies() -> None:
    """Sphere 1/2, disc 8/3 rho r^3, Lamb's spheroid, cube 0.68, square plate 0.579 pi/4 (DNV-RP-C205)."""
    ball = added_mass_of_parts.ellipsoid(np.array([2.0, 2.0, 2.0]), 1.0)
    assert ball.mass == pytest.approx([2.0 / 3.0 * math.pi] * 3)
    assert ball.moment == pytest.approx([0.0] * 3)
    disc = added_mass_of_parts.ellipsoid(np.array([2.0, 2.0, 1e-5]), 1.0)
    assert disc.mass[2] == pytest.approx(8.0 / 3.0, rel=1e-4)
    assert disc.moment[0] == pytest.approx(16.0 / 45.0, rel=1e-3)
    k1, k2, about = spheroid_added_mass(4.0)
    volume = 4.0 / 3.0 * math.pi * 4.0
    like = added_mass_of_parts.ellipsoid(np.array([8.0, 2.0, 2.0]), 1.0)
    assert like.mass == pytest.approx([k1 * volume, k2 * volume, k2 * volume])
    assert like.moment == pytest.approx([0.0, *[about * volume * 17.0 / 5.0] * 2])
    assert added_mass_of_parts.box(np.ones(3), 1.0).mass == pytest.approx([0.68] * 3, rel=0.01)
    assert added_mass_of_parts.box(np.array([0.0, 1.0, 1.0]), 1.0).mass[0] == pytest.approx(0.579 * math.pi / 4.0)
    pole = added_mass_of_parts.cylinder(np.array([100.0, 1.0, 1.0]), 1.0)
    assert pole.mass[1] == pytest.approx(25.0 * math.pi)
    matrix = added_mass_of_parts.about_origin(like, np.eye(3), np.array([3.0, 0.0, 0.0]))
    assert matrix[5, 1] == pytest.approx(3.0 * like.mass[1])
    assert matrix[5, 5] == pytest.approx(like.moment[2] + 9.0 * like.mass[1])


def _plates(gap: float, **options: Any) -> tuple[DragEstimate, Any, Any]:
    parts = [OpenFramePart(n, box(0.01, 0.3, 0.3, at=(x, 0.0, 0.0)), **options) for n, x in (("a", 0.0), ("b", gap))]
    found = open_frame(parts, 1.0, RHO)
    return found.drag, found.added_mass, found.parts


def test_parts_shield_each_other() -> None:
    """A plate close behind another one has almost no drag, and both together have the added mass of one; far apart,
    they have twice the values of one.
    """
    one = open_frame([OpenFramePart("a", box(0.01, 0.3, 0.3))], 1.0, RHO)
    assert one.parts[0].exposure == pytest.approx([1.0, 1.0, 1.0])
    alone, mass = one.drag.quadratic[0, 0], one.added_mass[0, 0]
    assert 2.0 * alone / RHO / 0.09 == pytest.approx(1.15, rel=0.2)
    drag, added, parts = _plates(0.02)
    # each is ahead for half of the time
    assert drag.quadratic[0, 0] == pytest.approx(alone, rel=0.1)
    assert added[0, 0] == pytest.approx(mass, rel=0.15)
    assert parts[0].exposure[0] == pytest.approx(0.5, abs=0.05)
    assert parts[0].exposure[1:] == pytest.approx([1.0, 1.0])
    drag, added, _ = _plates(9.0)
    assert drag.quadratic[0, 0] == pytest.approx(2.0 * alone, rel=0.06)
    assert added[0, 0] == pytest.approx(2.0 * mass, rel=0.02)
    drag, _, parts = _plates(0.02, exposure=(0.25, 1.0, 1.0))
    assert drag.quadratic[0, 0] == pytest.approx(0.5 * alone, rel=0.02)
    assert parts[1].drag_share[0] == pytest.approx(0.5)
    assert drag.coriolis_without


def test_a_part_at_an_angle_keeps_its_own_axes() -> None:
    """A plate at 45 deg has the same drag and added mass along x and y."""
    t = box(0.01, 0.3, 0.2)
    c = math.sqrt(0.5)
    found = open_frame([OpenFramePart("a", t @ np.array([[c, c, 0.0], [-c, c, 0.0], [0.0, 0.0, 1.0]]))], 1.0, RHO)
    assert found.drag.quadratic[0, 0] == pytest.approx(found.drag.quadratic[1, 1], rel=0.05)
    straight = open_frame([OpenFramePart("a", t)], 1.0, RHO).added_mass
    assert found.added_mass[0, 0] == pytest.approx(0.5 * (straight[0, 0] + straight[1, 1]), rel=0.02)
    assert abs(found.added_mass[0, 1]) == pytest.approx(0.5 * (straight[0, 0] - straight[1, 1]), rel=0.02)
