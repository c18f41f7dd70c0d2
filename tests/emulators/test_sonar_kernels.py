"""Each sonar kernel against a slow, obvious twin."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.emulators.sonar import world
from wavesim_emulators.sonar import echo_kernels, imaging, level_kernels, ray_kernels, scene
from wavesim_emulators.sonar.beam_kernels import sum_columns
from wavesim_kernels import randomness
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.ocean.bed import sea_bed
from wavesim_world.ocean.scene import RaycastScene

HILLS = """<bed depth="20 m" slope_north="0.05" slope_east="-0.1"><bump height="-6 m" north="12 m" east="4 m" alpha="0.2 1/m" beta="0.3 1/m"/></bed>
<obstacles><block position="10 -5 12 m" size="3 2 8 m" heading="30 deg"/><pier position="8 6 10 m" radius="0.5 m" height="20 m"/></obstacles>"""


def soundings(tmp_path: Any) -> str:
    rng = np.random.default_rng(3)
    n, e = rng.uniform(-40, 40, (2, 400))
    depth = 15.0 + 2.0 * np.sin(n / 6.0) + 1.5 * np.cos(e / 5.0)
    (tmp_path / "bed.txt").write_text("\n".join(f"{a} {b} {c}" for a, b, c in zip(n, e, depth, strict=True)))
    return '<soundings file="bed.txt"/>'


def test_rays_end_where_the_other_emulators_scene_says(config: Any) -> None:
    loaded = config(f"<world>{HILLS}</world>")
    w, slow, bed = scene.SonarScene(loaded), RaycastScene(loaded), sea_bed(loaded)
    rng = np.random.default_rng(1)
    for p, heading in (((0.0, 0.0, 5.0), 0.2), ((-9.0, 3.0, 9.0), 1.3)):
        R = rotation(quaternion(0.1, -0.2, heading))
        u, e = np.sort(rng.uniform(-0.9, 0.9, 40)), np.sort(rng.uniform(-0.5, 1.4, 30))
        out, what = w.cast_fan(np.array(p), R, u, e, 60.0, 0.0, True)
        d = scene.fan_directions(u, e) @ R.T
        far = slow.cast(np.array(p), d.reshape(-1, 3), 60.0).reshape(out.shape[:2])
        hit = np.isfinite(far)
        assert ((out[..., 0] < ray_kernels.FAR) == hit).mean() > 0.999
        both = hit & (out[..., 0] < ray_kernels.FAR)
        assert np.abs(out[..., 0] - far)[both].max() < 5e-3
        on_bed = (what[..., 1] == ray_kernels.BED) & both
        ends = np.array(p) + out[..., :1] * d
        assert np.abs(bed(ends[..., 0], ends[..., 1]) - ends[..., 2])[on_bed].max() < 5e-3
        assert on_bed.sum() > 200
        assert ((out[..., 0] < ray_kernels.FAR) == (what[..., 1] != ray_kernels.NO_HIT)).all()


def test_rays_over_soundings_end_where_a_fine_march_does(config: Any, tmp_path: Any) -> None:
    loaded = config(f"<world>{soundings(tmp_path)}</world>")
    w, bed = scene.SonarScene(loaded), sea_bed(loaded)
    p, R = np.array([-9.0, 3.0, 9.0]), rotation(quaternion(0.1, -0.2, 1.3))
    u, e = np.linspace(-0.8, 0.8, 12), np.linspace(0.0, 1.3, 12)
    out, _ = w.cast_fan(p, R, u, e, 30.0, 0.0, False)
    d = scene.fan_directions(u, e) @ R.T
    t = np.arange(0.0, 30.0, 0.06)
    points = p + t[:, None, None, None] * d
    clear = bed(points[..., 0], points[..., 1]) - points[..., 2]
    under = clear <= 0.0
    first = np.where(under.any(axis=0), under.argmax(axis=0), -1)
    assert ((out[..., 0] < ray_kernels.FAR) == (first >= 0)).mean() > 0.98
    both = (first >= 0) & (out[..., 0] < ray_kernels.FAR)
    assert both.sum() > 60
    behind = t[first][both] - out[..., 0][both]
    assert (behind >= -1e-9).all()
    assert (behind <= 0.0601).mean() > 0.98, "a march steps over the edges of hills"


@pytest.mark.parametrize("kind", [ray_kernels.BOX, ray_kernels.CYLINDER, ray_kernels.SPHERE])
def test_objects_are_looked_for_where_they_may_be_seen(kind: float) -> None:
    """Every point of an object lies between the two u; far away they are hardly wider than it."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        half = rng.uniform(0.1, 6.0, 3)
        half = {ray_kernels.CYLINDER: half[[0, 1, 1]], ray_kernels.SPHERE: half[[0, 0, 0]]}.get(kind, half)
        R, W = (rotation(quaternion(*rng.uniform(-3, 3, 3))) for _ in range(2))
        centre = rng.uniform(-15, 15, 3)
        shape = scene.object_row(kind, centre, W, half, 0, 0)
        around = np.empty(2)
        ray_kernels.angular_extent(W.T @ -centre, shape, R, around)
        points = rng.uniform(-1, 1, (4000, 3))
        if kind == ray_kernels.CYLINDER:
            points = points[np.hypot(points[:, 1], points[:, 2]) <= 1.0]
        elif kind == ray_kernels.SPHERE:
            points = points[np.linalg.norm(points, axis=1) <= 1.0]
        seen = centre + (points * half) @ W.T
        u = (seen @ R[:, 1]) / np.linalg.norm(seen, axis=1)
        assert around[0] <= u.min() and u.max() <= around[1]
        away = 50.0 * centre / np.linalg.norm(centre)
        ray_kernels.angular_extent(W.T @ -away, shape, R, around)
        assert around[1] - around[0] < 2.5 * np.linalg.norm(half) * math.sqrt(3.0) / 40.0 + 0.1


def test_normals_are_those_of_the_bed(config: Any) -> None:
    """By differences of ranges: how fast the range grows with elevation and u is what the normal says."""
    w = world(config, HILLS)
    R, p = rotation(quaternion(0.1, -0.3, 0.4)), np.array([0.0, 0.0, 8.0])
    u, e, h = np.linspace(-0.6, 0.6, 9), np.linspace(0.3, 1.0, 9), 1e-5
    out, what = w.cast_fan(p, R, u, e, 60.0)
    by_e = (w.cast_fan(p, R, u, e + h, 60.0)[0][..., 0] - w.cast_fan(p, R, u, e - h, 60.0)[0][..., 0]) / (2 * h)
    angle = np.arcsin(u)
    up, down = np.sin(angle + h), np.sin(angle - h)
    by_a = (w.cast_fan(p, R, up, e, 60.0)[0][..., 0] - w.cast_fan(p, R, down, e, 60.0)[0][..., 0]) / (2 * h)
    bed = what[..., 1] == ray_kernels.BED
    r, cosine = out[..., 0], out[..., 1]
    ahead = np.sqrt(1 - u * u)[:, None]
    assert by_e[bed] == pytest.approx((r * out[..., 3] * ahead / cosine)[bed], rel=2e-2, abs=0.1)
    assert by_a[bed] == pytest.approx((r * out[..., 2] / cosine)[bed], rel=2e-2, abs=0.1)


def test_energy_is_shared_as_a_loop_over_finer_rays_would(config: Any) -> None:
    """Bin by bin within 0.1 dB of 1e5 rays that are put whole into the bin where they end."""
    even = '<material name="even" grain="9" texture="0"/><ground material="even"/>'
    w = world(config, f'{even}<bed depth="20 m" slope_north="0.1"/>')
    tables = w.palette.tables(450e3, 1500.0, 5.0)
    p, R = np.array([0.0, 0.0, 10.0]), np.eye(3)
    bins, bin_ = 40, 0.5

    def fan(columns: int, rays: int) -> Any:
        a, da = (np.arange(columns) + 0.5) / columns * 0.2 - 0.1, 0.2 / columns
        e, de = (np.arange(rays) + 0.5) / rays * 0.9 + 0.5, 0.9 / rays
        return np.sin(a), da, e, de, w.cast_fan(p, R, np.sin(a), e, 60.0)

    u, da, e, de, hits = fan(3, 64)
    energy = np.zeros((3, bins), np.float32)
    echo_kernels.bin_energy(
        ray_kernels.Fan(p, R, u, e),
        echo_kernels.FanWeights(np.full(3, da), np.full(64, de), np.ones(3), np.ones(64), np.zeros((0, 0, 2))),
        hits,
        w.bed,
        echo_kernels.Backscatter(tables, w.palette.patches, w.palette.cells, np.uint64(1), w.palette.textures),
        echo_kernels.EchoPath(0.02, 1500.0, np.zeros(3), np.zeros(2)),
        echo_kernels.EchoBins(0.0, bin_, energy, np.zeros((0, 0, 3))),
    )
    u, da, e, de, (out, _) = fan(10, 10_000)
    r, cosine = out[..., 0], out[..., 1]
    angle = np.degrees(np.arccos(cosine))
    s_b = np.interp(angle, np.arange(91.0), tables[0])
    power = s_b * np.sqrt(1 - u * u)[:, None] * da * de * np.exp(-0.02 * r) / (r * r * cosine)
    slow = np.bincount(np.minimum(r / bin_, bins).astype(int).ravel(), power.ravel(), bins + 1)[:bins]
    inside = (slow > 0) & (np.roll(slow, 1) > 0) & (np.roll(slow, -1) > 0)
    assert inside.sum() > 8
    assert 10 * np.log10(energy.sum(axis=0)[inside] / slow[inside]) == pytest.approx(0.0, abs=0.1)


def test_blur_matrix_and_levels() -> None:
    rng = np.random.default_rng(2)
    power, kernel = rng.random((3, 50)), rng.random(7)
    out = np.empty_like(power)
    level_kernels.convolve_pulse(power, kernel, out)
    assert out == pytest.approx(np.array([np.convolve(row, kernel, "same") for row in power]))
    x = np.arange(65) / 8.0
    table = np.cos(x) ** 2
    W = np.empty((4, 6))
    beams, columns, shift = rng.uniform(-1, 1, 4), rng.uniform(-1, 1, 6), rng.uniform(-0.1, 0.1, 6)
    level_kernels.pattern_matrix(beams, columns, shift, table, 8.0, W)
    gap = np.abs(columns + shift - beams[:, None])
    assert pytest.approx(np.interp(gap, x, table)) == W
    levels = np.empty((3, 50), np.uint8)
    gain = np.linspace(0.0, 30.0, 50)
    cut = level_kernels.to_levels(power, gain, 5.0, 255 / 20.0, 255, levels)
    want = np.floor((10 * np.log10(power) + gain - 5.0) * 255 / 20.0 + 0.5)
    assert cut == (want > 255).sum() > 0
    assert (levels == np.clip(want, 0, 255)).all()


def test_random_numbers_are_those_of_the_project() -> None:
    """Speckle draws the bits that wavesim_kernels.randomness draws at (2 ping + 1, bin)."""
    n = 200
    power, z = np.ones((1, n)), np.zeros((1, n, 2), np.float32)
    key = np.uint64(randomness.key(1, "a", "b"))
    level_kernels.apply_speckle(
        power, np.zeros(n), key, 5, z, np.zeros(1), imaging.NORMAL_QUANTILES, imaging.EXPONENTIAL_QUANTILES
    )
    bits = randomness.uniform(np.full(n, key), 5, np.arange(n)) * 2.0**32  # the upper half of a hash
    exact = imaging.EXPONENTIAL_QUANTILES[np.floor(bits).astype(np.uint64) & np.uint64(65535)]
    quiet, other = np.zeros((1, n)), np.zeros((1, n, 2), np.float32)
    level_kernels.apply_speckle(
        quiet, np.ones(n), key, 5, other, np.zeros(1), imaging.NORMAL_QUANTILES, imaging.EXPONENTIAL_QUANTILES
    )
    assert quiet[0] == pytest.approx(exact)
    assert power[0] == pytest.approx((z[0].astype(float) ** 2).sum(axis=1))


def test_speckle_has_the_moments_of_a_complex_gaussian() -> None:
    beams, bins = 100, 1000
    z = np.zeros((beams, bins, 2), np.float32)

    def draw(ping: int, memory: float) -> Any:
        power = np.ones((beams, bins))
        level_kernels.apply_speckle(
            power,
            np.zeros(bins),
            np.uint64(99),
            ping,
            z,
            np.full(beams, memory),
            imaging.NORMAL_QUANTILES,
            imaging.EXPONENTIAL_QUANTILES,
        )
        return power

    first = draw(0, 0.0)
    amplitude, level = np.sqrt(first), 10 * np.log10(first)
    assert amplitude.mean() / amplitude.std() == pytest.approx(1.913, rel=0.01)
    assert first.mean() / first.std() == pytest.approx(1.0, rel=0.01)
    assert level.std() == pytest.approx(5.57, rel=0.01)
    assert 10 * math.log10(first.mean()) - level.mean() == pytest.approx(2.51, rel=0.01)
    assert draw(1, 1.0) == pytest.approx(first, rel=1e-6), "nothing moves: frozen"
    half = draw(2, 0.14)
    assert abs(np.corrcoef(half.ravel(), first.ravel())[0, 1]) < 0.1
    power = np.zeros((beams, bins))
    level_kernels.apply_speckle(
        power,
        np.full(bins, 2.0),
        np.uint64(7),
        0,
        z,
        np.zeros(beams),
        imaging.NORMAL_QUANTILES,
        imaging.EXPONENTIAL_QUANTILES,
    )
    assert power.mean() == pytest.approx(2.0, rel=0.01)
    assert power.std() == pytest.approx(2.0, rel=0.02), "noise is exponential in power"


def test_patches_follow_a_K_distribution_and_stay_where_they_are() -> None:
    """SI = <I^2>/<I>^2 - 1 = 1 + 2/nu with the speckle on top."""
    nu = 1.5
    quantiles = scene.gamma_quantiles(nu)
    key = np.uint64(3)
    cells = np.array(
        [
            [echo_kernels.ground_texture(x, y, 0.5, key, quantiles) for x in np.arange(0.2, 80, 0.5)]
            for y in np.arange(0.2, 80, 0.5)
        ]
    )
    assert cells.mean() == pytest.approx(1.0, abs=0.02)
    rng = np.random.default_rng(5)
    intensity = cells * rng.exponential(size=cells.shape)
    assert (intensity**2).mean() / intensity.mean() ** 2 - 1.0 == pytest.approx(1.0 + 2.0 / nu, rel=0.08)
    assert echo_kernels.ground_texture(10.1, -3.2, 0.5, key, quantiles) == echo_kernels.ground_texture(
        10.4, -3.4, 0.5, key, quantiles
    )


def test_columns_are_added_in_their_order() -> None:
    """In single precision, bit for bit, also where all gains are 0; the other bins keep their values."""
    random = np.random.default_rng(2)
    gains, columns = random.random((5, 40), np.float32), random.random((40, 101), np.float32)
    gains[1, 8:32] = gains[3] = 0.0
    power = np.full((5, 101), 7.0, np.float32)
    sum_columns(gains, columns, 3, 98, power)
    slow = np.zeros((5, 95), np.float32)
    for gain, column in zip(gains.T, columns, strict=True):
        slow = slow + gain[:, None] * column[3:98]
    assert slow.dtype == np.float32 and (power[:, 3:98] == slow).all()
    assert (power[:, :3] == 7.0).all() and (power[:, 98:] == 7.0).all()


FORWARD = """
import hashlib, math
import numpy as np
from tests.emulators.sonar import design, pose
from wavesim_emulators.sonar import imaging, scene
from wavesim_world.config import load_text

loaded = load_text('<wavesim><world><bed depth="12 m"/><obstacles><block position="9 1 11 m" size="3 9 2 m"/></obstacles></world></wavesim>')
made = design("m1200d-low", 25.0, 300, surface=True)
sonar = imaging.ForwardLookingSonar(made, scene.SonarScene(loaded), 5.0, 1)
assert len(sonar.rays.u) == 488, "more columns than a matrix product adds in one go"
for turn in (0.0, math.radians(20.0)):
    power = sonar.ping(pose((0, 0, 8.0), w=(0.0, 0.0, turn)), 0).power
    print(hashlib.sha256(power.tobytes()).hexdigest())
"""


def test_frames_do_not_depend_on_the_number_of_threads() -> None:
    """They did, by the last bits of the powers: a linear-algebra library divides a product among its threads."""

    def powers(threads: int) -> str:
        limits = {f"{name}_NUM_THREADS": str(threads) for name in ("OPENBLAS", "OMP", "MKL")}
        return subprocess.run(
            [sys.executable, "-c", FORWARD], env={**os.environ, **limits}, capture_output=True, text=True, check=True
        ).stdout

    one = powers(1)
    assert len(set(one.split())) == 2, "the frame of the turning sonar is another one"
    assert powers(2) == one
