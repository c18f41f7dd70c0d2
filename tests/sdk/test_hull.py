"""Hydrostatics of meshes against closed forms: box, wedge, and the Wigley hull."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavesim_world.hull import Hull

RHO = 1025.0


def grid(points: np.ndarray) -> np.ndarray:
    """The triangles between points (n, m, 3)."""
    a, b, c, d = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
    return np.concatenate([np.stack(t, axis=2).reshape(-1, 3, 3) for t in ((a, b, c), (a, c, d))])


def outward(triangles: np.ndarray) -> np.ndarray:
    """Turned so that the volume is positive."""
    volume = np.einsum("ij,ij->", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2]))
    return triangles if volume > 0.0 else triangles[:, ::-1]


def prism(section: list[tuple[float, float]], length: float) -> np.ndarray:
    """A convex section (y, z), extruded along x."""
    ring = np.array([*section, section[0]])
    ends = [np.column_stack([np.full(len(ring), x), ring]) for x in (-length / 2, length / 2)]
    sides = grid(np.stack(ends))
    caps = [np.stack([np.broadcast_to(e[0], e[1:-1].shape), e[1:-1], e[2:]], axis=1) for e in ends]
    return outward(np.concatenate([sides, caps[0], caps[1][:, ::-1]]))


def wigley(length: float, beam: float, draft: float, freeboard: float) -> np.ndarray:
    """y = B/2 (1 - (2x/L)2)(1 - (z/T)2) below the water line z = 0, upright walls above it, a deck."""
    x = np.linspace(-1.0, 1.0, 161)
    z = np.array([-freeboard, *np.linspace(0.0, draft, 81)])
    half = 0.5 * beam * (1.0 - x * x)[:, None] * (1.0 - (np.maximum(z, 0.0) / draft) ** 2)[None, :]
    corners = np.stack(
        [np.broadcast_to(0.5 * length * x[:, None], half.shape), half, np.broadcast_to(z, half.shape)], axis=2
    )
    other = corners * [1.0, -1.0, 1.0]
    deck = np.stack([other[:, 0], corners[:, 0]], axis=1)
    return outward(np.concatenate([grid(corners), grid(other)[:, ::-1], grid(deck)]))


def test_box() -> None:
    """Draft, GM = T/2 - z_G + B2/(12 T), and the exact arm of a wall-sided hull, sin(phi) (GM + BM/2 tan2(phi))."""
    length, beam, depth, draft = 10.0, 4.0, 3.0, 1.2
    hull = Hull(prism([(-2, -1.5), (2, -1.5), (2, 1.5), (-2, 1.5)], length))
    assert hull.volume == pytest.approx(length * beam * depth, rel=1e-13)
    mass, g = RHO * length * beam * draft, (0.0, 0.0, 0.2)
    afloat = hull.afloat(mass, g)
    bm, bm_pitch = beam**2 / (12 * draft), length**2 / (12 * draft)
    down_to_b = 1.5 - draft / 2
    assert afloat.draft == pytest.approx(draft, abs=1e-12) and afloat.waterline == pytest.approx(0.3, abs=1e-12)
    assert afloat.area == pytest.approx(length * beam, rel=1e-12) and afloat.flotation == pytest.approx(
        (0.0, 0.0), abs=1e-12
    )
    assert afloat.gm_roll == pytest.approx(bm - (down_to_b - 0.2), rel=1e-9)
    assert afloat.gm_pitch == pytest.approx(bm_pitch - (down_to_b - 0.2), rel=1e-9)
    for deg in (-25, -5, 1, 10, 25, 30):  # the bilge emerges at 31 deg
        phi = math.radians(deg)
        wall_sided = math.sin(phi) * (afloat.gm_roll + 0.5 * bm * math.tan(phi) ** 2)
        assert hull.righting_arm(mass, g, phi) == pytest.approx(wall_sided, rel=1e-8), deg
    assert hull.righting_arm(mass, g, math.pi) == pytest.approx(0.0, abs=1e-9)
    arms = [hull.righting_arm(mass, g, math.radians(deg)) for deg in range(5, 180, 5)]
    assert arms[0] > 0.0 > arms[-1], "it has a limit, beyond which it lies on its back"


def test_wedge() -> None:
    """A triangular prism, keel down: T = sqrt(V H / (L b)), KB = 2/3 T, BM = (2 b T / H)3 L / (12 V)."""
    length, b, height = 6.0, 1.5, 2.0
    hull = Hull(prism([(-b, -height), (b, -height), (0.0, 0.0)], length))
    mass = 3000.0
    volume = mass / RHO
    draft = math.sqrt(volume * height / (length * b))
    afloat = hull.afloat(mass, (0.0, 0.0, -0.9))
    assert afloat.draft == pytest.approx(draft, rel=1e-10) and afloat.waterline == pytest.approx(-draft, rel=1e-10)
    assert -afloat.centre[2] == pytest.approx(2 / 3 * draft, rel=1e-9)
    bm = (2 * b * draft / height) ** 3 * length / (12 * volume)
    assert afloat.gm_roll == pytest.approx(2 / 3 * draft + bm - 0.9, rel=1e-8)
    slope = hull.righting_arm(mass, (0.0, 0.0, -0.9), 1e-4) / 1e-4
    assert slope == pytest.approx(afloat.gm_roll, rel=1e-5), "GM is the slope of the arm"


def test_a_ship() -> None:
    """Wigley: V = 4/9 L B T, centre of buoyancy 3/8 T under water, BM from its water line, to the error of the mesh."""
    length, beam, draft = 40.0, 6.0, 2.5
    hull = Hull(wigley(length, beam, draft, 2.0))
    volume = 4 / 9 * length * beam * draft
    afloat = hull.afloat(RHO * volume, (0.0, 0.0, 0.0))
    assert afloat.draft == pytest.approx(draft, rel=3e-4)
    assert afloat.centre[2] == pytest.approx(3 / 8 * draft, rel=1e-3)
    assert afloat.area == pytest.approx(2 / 3 * length * beam, rel=1e-3)
    bm = 2 / 3 * (beam / 2) ** 3 * length / 2 * (32 / 35) / volume
    assert afloat.gm_roll == pytest.approx(bm - 3 / 8 * draft, rel=3e-3)
    bm_pitch = (length / 2) ** 3 * beam * (2 / 3 - 2 / 5) / volume
    assert afloat.gm_pitch == pytest.approx(bm_pitch - 3 / 8 * draft, rel=2e-3)


def test_refusals() -> None:
    box = prism([(-2, -1.5), (2, -1.5), (2, 1.5), (-2, 1.5)], 10.0)
    with pytest.raises(ValueError, match="not closed"):
        Hull(box[1:])
    with pytest.raises(ValueError, match="not closed"):
        Hull(np.concatenate([box[:-4], box[-4:, ::-1]]))  # both ends turned: the areas would add up
    with pytest.raises(ValueError, match="inside out"):
        Hull(box[:, ::-1])
    with pytest.raises(ValueError, match=r"shape \(n, 3, 3\)"):
        Hull(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="the hull cannot float: it must displace 200 m3"):
        Hull(box).afloat(200.0 * RHO, (0.0, 0.0, 0.0))


def test_the_centre_of_the_whole_volume_keeps_its_digits() -> None:
    """A ship far from the origin of its file, with thousands of faces: the centre of buoyancy of a submerged body."""
    ship = wigley(10.0, 3.0, 1.0, 0.8)
    offset = np.array([30.0, -20.0, 10.0])
    near, far = Hull(ship), Hull(ship + offset)
    deep = near.wetted_part((0.0, 0.0, 1.0), -2.0)
    assert near.centre == pytest.approx(deep.centre, abs=1e-9)
    assert far.centre - offset == pytest.approx(near.centre, abs=1e-9)
    assert near.wetted_area((0.0, 0.0, 1.0), -2.0) == pytest.approx(
        0.5 * np.linalg.norm(np.cross(ship[:, 1] - ship[:, 0], ship[:, 2] - ship[:, 0]), axis=1).sum()
    )
