"""3D sonar: geometry against exact intersections, the sonar equation, lost pixels, noise, frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench
from tests.emulators.sonar import dB, design, pose, strongest_echoes, world
from wavesim_emulators.sonar.emulator import SonarEmulator, describe
from wavesim_emulators.sonar.imaging import PingResult, SonarPose
from wavesim_emulators.sonar.ray_kernels import SPHERE
from wavesim_emulators.sonar.scene import object_row
from wavesim_emulators.sonar.sonar_3d import Sonar3D
from wavesim_emulators.sonar.sonar_3d_kernels import RayEchoes, find_strongest_echoes
from wavesim_sdk.imaging_frames import PIXEL_3D, ImagingFrame
from wavesim_world.sonars import patterns, presets

#: matt, so that no part of a beam is brighter than its axis
MATT = '<material name="matt" law="smooth" lambert="-20"/>'
WALL = (
    f'{MATT}<bed depth="400 m"/><obstacles><block position="6 0 10 m" size="2 200 40 m" material="matt"/></obstacles>'
)
DEEP = '<bed depth="400 m"/>'
LOW = "sonar-3d15-low"
SMALL = {"beams": 48, "rows": 24}  #: pixels, to be quick without compilation
LAST = 15.0 / 65535.0  #: m, unit of a range


def sonar(config: Any, inner: str, changes: Any = None, key: int = 1, preset: str = LOW, **given: Any) -> Sonar3D:
    p = presets.find_preset(preset)
    d = design(preset, given.pop("reach", p.range), 2000, SMALL | (changes or {}), minimum=p.minimum, **given)
    return Sonar3D(d, world(config, inner), 0.0, key)


def framed(s: Sonar3D, made: PingResult) -> ImagingFrame:
    """What the engine made, as a reader gets it."""
    record = describe(s.design, b"rov", b"eye", 1, s.design.preset.name)
    record["p_WS_W"], record["euler"] = made.pose.p, _euler(made.pose)
    payload = made.levels.tobytes() + (b"" if made.labels is None else made.labels.astype("<i2").tobytes())
    record["bytes"], record["number"] = len(payload), made.number + 1
    return ImagingFrame.from_bytes(record.tobytes() + payload)


def _euler(p: SonarPose) -> Any:
    return math.atan2(p.R[2, 1], p.R[2, 2]), math.asin(-p.R[2, 0]), math.atan2(p.R[1, 0], p.R[0, 0])


def directions(s: Sonar3D) -> Any:
    """Unit vectors of the pixels (rows, columns, 3) in S: ahead, starboard, down."""
    p = s.design.preset
    down = np.linspace(-0.5 * p.height, 0.5 * p.height, p.rows)[:, None]
    side = np.linspace(-0.5 * p.sector, 0.5 * p.sector, p.beams)
    return np.stack([np.cos(down) * np.cos(side), np.cos(down) * np.sin(side), np.sin(down) + 0.0 * side], axis=-1)


@pytest.mark.parametrize("changes", [{}, pytest.param({"beams": 256, "rows": 64}, id="full")])
def test_a_wall_is_where_it_is_in_every_pixel(config: Any, changes: Any) -> None:
    s = sonar(config, WALL, changes)
    ranges = framed(s, s.ping(pose((0, 0, 10.0)), 0)).ranges
    exact = 5.0 / directions(s)[..., 0]
    assert np.abs(ranges - exact).max() <= 0.5 * LAST + 1e-9
    assert exact.max() > 7.0


def test_a_sphere_is_as_round_as_the_beams_allow(config: Any) -> None:
    s = sonar(config, DEEP, {"beams": 80, "rows": 40, "sector": 0.4, "height": 0.4})
    centre, radius = np.array([4.0, 0.3, -0.2]), 0.5
    s.world.objects = np.array([object_row(SPHERE, centre + (0, 0, 50.0), np.eye(3), (radius, 0, 0), 0, 2)])
    ranges = framed(s, s.ping(pose((0, 0, 50.0)), 0)).ranges
    n = directions(s)
    along = n @ centre
    root = along**2 - centre @ centre + radius**2
    hit = root > 0.0
    exact = along - np.sqrt(np.maximum(root, 0.0))
    off = np.arccos(np.clip(along / np.linalg.norm(centre), -1.0, 1.0))  # angle from the centre
    rim = math.asin(radius / float(np.linalg.norm(centre)))
    inside = off < rim - s.design.preset.vertical
    assert inside.sum() > 200 and np.isfinite(ranges[inside]).all()
    # the strongest ray of a beam is on the near side of its axis, at most a beam width away
    slope = np.tan(
        np.arcsin(np.clip(exact * np.sin(off) / radius, 0.0, 0.999))
    )  # change of range per arc, to within the slope
    allowed = exact * s.design.preset.vertical * np.maximum(slope, 0.02)
    assert (np.abs(ranges - exact)[inside] <= allowed[inside]).all()
    assert np.abs(np.median((ranges - exact)[off < 0.3 * rim])) < 5e-3
    seen = np.isfinite(ranges)
    assert seen[hit].mean() > 0.98
    assert (off[seen] < rim + 1.3 * s.design.preset.vertical).all(), "wider by a beam width"


def test_tilt_and_attitude_place_the_points_on_the_wall(config: Any) -> None:
    s = sonar(config, WALL, {"tilt": 0.2})
    here = pose((1.0, 2.0, 11.0), roll=0.3, pitch=-0.15, heading=0.25)
    frame = framed(s, s.ping(here, 0))
    points = frame.points
    assert points.shape == (24, 48, 3)
    assert np.isfinite(points).all()
    assert np.abs(points[..., 0] - 5.0).max() < 2e-3
    # up in the image is up in the world, and the columns go to starboard
    assert points[0, 24, 2] < points[-1, 24, 2] and points[12, 0, 1] < points[12, -1, 1]
    assert np.allclose(frame.points_S, (points - here.p) @ here.R, atol=1e-9)


def test_levels_follow_the_sonar_equation(config: Any) -> None:
    """SL + s_b + 10 log of the solid angle of a beam - 20 log r - 2 alpha r, at normal incidence."""
    s = sonar(config, WALL, {"beams": 17, "rows": 9, "sector": 0.03, "height": 0.03}, floor=110.0, absorption=0.4)
    here = pose((3.0, 0, 10.0))
    frame = framed(s, s.ping(here, 0))
    p, d = s.design.preset, s.design
    u = np.linspace(-8.0, 8.0, 4001)
    one = float(np.sum(patterns.line(u, p.shading)) * (u[1] - u[0])) * d.wavelength / d.array
    solid = one * d.wavelength / d.height
    want = p.source_level - 20.0 + dB(solid) - 20.0 * math.log10(2.0) - 2.0 * 0.4 * 2.0
    assert frame.levels[4, 8] == pytest.approx(want, abs=0.5)
    assert dB(s.ping(here, 1).power[4, 8]) == pytest.approx(frame.levels[4, 8], abs=0.01)


def test_pixels_are_lost_at_grazing_angles_by_absorption_and_out_of_range(config: Any) -> None:
    flat = '<ground material="medium-sand"/><bed depth="12 m"/>'

    def seen(z: float = 10.0, inner: str = flat, **more: Any) -> Any:
        s = sonar(config, inner, {**more.pop("changes", {})}, noise=True, **more)
        return np.isfinite(framed(s, s.ping(pose((0, 0, z)), 0)).ranges)

    near = seen()
    below = near.any(axis=1)
    assert not below[:12].any(), "nothing above the horizon"
    assert below[-1] and near[-1, 20:28].all()
    faint = seen(changes={"source_level": 160.0})
    assert faint[-1, 20:28].mean() > 0.8
    assert faint.sum() < 0.8 * near.sum()
    rows = np.flatnonzero(near[:, 24] & ~faint[:, 24])
    assert rows.size and rows.max() < np.flatnonzero(faint[:, 24]).max(), (
        "the far rows, at small grazing angles, are lost"
    )
    assert seen(absorption=6.0).sum() < 0.8 * near.sum()
    assert not seen(inner=WALL, reach=4.9).any()
    close = WALL.replace("6 0 10", "1.15 0 10")  # at 0.15 m
    assert not seen(inner=close)[12, 24] and seen(inner=close.replace("1.15", "1.21"))[12, 24]
    assert seen(inner=WALL).all() and seen(volume=0.0, inner=WALL).mean() < 0.02, "only reverberation"


def test_noise_is_as_small_as_the_pulse_and_grows_with_the_incidence(config: Any) -> None:
    s = sonar(config, WALL, {"beams": 64, "rows": 32, "sector": 0.1, "height": 0.1}, noise=True, speckle=True)
    exact = 5.0 / directions(s)[..., 0]
    errors = np.array([framed(s, s.ping(pose((0.001 * k, 0, 10.0)), k)).ranges + 0.001 * k - exact for k in range(8)])
    good = np.isfinite(errors)
    assert good.mean() > 0.95
    assert s.design.pulse / math.sqrt(12.0) < errors[good].std() < 0.6 * s.design.pulse
    oblique = [
        framed(s, s.ping(pose((0.001 * k, 0, 10.0), heading=0.9), k)).ranges - _turned(s, 0.001 * k, 0.9)
        for k in range(8)
    ]
    spread = float(np.nanstd(oblique))
    # anywhere in the beam of 0.6 deg: up to 8 m x 0.6 deg x tan 52 deg
    assert 5.0 * errors[good].std() < spread < 8.1 * s.design.preset.beam * math.tan(0.9)
    assert abs(np.nanmean(oblique)) < 0.3 * spread


def _turned(s: Sonar3D, north: float, heading: float) -> Any:
    n = directions(s)
    return (5.0 - north) / (math.cos(heading) * n[..., 0] - math.sin(heading) * n[..., 1])


def test_frames_are_identical_for_a_seed(config: Any) -> None:
    made = [sonar(config, WALL, noise=True, speckle=True, key=key) for key in (5, 5, 6)]
    first, again, other = ([s.ping(pose((0.01 * i, 0, 9.0)), i).levels.tobytes() for i in range(2)] for s in made)
    assert first == again
    assert first != other and first[0] != first[1]


def test_a_point_target_and_labels(config: Any) -> None:
    inner = WALL + '<target name="buoy" position="3 0.5 10 m" size="0.2 0.1 m"/>'
    s = sonar(config, inner, {"beams": 129, "rows": 33, "sector": 1.0, "height": 0.5}, labels=True)
    frame = framed(s, s.ping(pose((0, 0, 10.0)), 0))
    away = math.hypot(3.0, 0.5)
    column = int(np.abs(frame.angles - math.atan2(0.5, 3.0)).argmin())
    assert frame.ranges[16, column] == pytest.approx(away, abs=LAST)
    assert frame.ranges[16, 5] > 5.0
    small = np.abs(frame.ranges - away) < 0.01
    assert 0 < small.sum() < 0.05 * small.size
    material, what = frame.labels[16, 5]
    assert (s.world.palette.names[material], s.world.labels[int(what)]) == ("matt", "block 1")
    assert frame.without_truth().labels is None and not np.isfinite(frame.without_truth().points).any()


def test_the_kernel_and_its_twin() -> None:
    rng = np.random.default_rng(3)
    r = rng.uniform(1.0, 1.05, (9, 14))
    energy = np.where(rng.random(r.shape) < 0.6, rng.exponential(1.0, r.shape), 0.0)
    energy[:6, :8] = 0.0  # beams without any echo
    rays = RayEchoes(r, energy, np.maximum(rng.uniform(0.0, 0.02, r.shape), 0.004))
    weights = rng.random((3, 5))
    power, ray = np.empty((7, 10)), np.empty((7, 10), np.int32)
    find_strongest_echoes(rays, weights, 0.004, power, ray)
    want_power, want_ray = strongest_echoes(rays, weights, 0.004)
    assert (ray == want_ray).all() and (ray == -1).any() and (ray >= 0).sum() > 30
    assert power == pytest.approx(want_power, rel=1e-12)


def test_the_emulator_writes_frames_of_all_sizes(config: Any, name: str) -> None:
    from wavesim_sdk import frame_rings
    from wavesim_world.sonars import frame_sizes

    eye = (
        f'<sonar name="eye" preset="{LOW}" range="10 m" beams="20" rows="8" height="30 deg" sector="60 deg" '
        'minimum="1 m" truth="yes" rate="10 Hz" position="2 0 0 m"/>'
    )
    loaded = config(
        f"<world>{WALL}</world><shared vehicles='4'/><fleet><sensors>{eye}</sensors></fleet>".replace("6 0 10", "9 0 5")
    )
    frame_sizes.create_rings(loaded, name)
    try:
        bench = Bench(loaded, SonarEmulator, period=25)
        bench.emulator.open(name)
        bench.put((0.0, 0.0, 5.0), (0.0, 0.0, 0.0))
        values = [bench.at(tick).copy() for tick in (0, 25, 50)][-1]
        reader = frame_rings.FrameReader(frame_rings.FrameRings.attach(name), 0)
        frame = reader.next()
        assert frame is not None and (frame.kind, frame.samples.shape, frame.samples.dtype) == ("3d", (8, 20), PIXEL_3D)
        r = frame.record
        assert (r["sector"], r["fan_height"]) == pytest.approx((math.radians(60), math.radians(30)))
        assert (int(r["bytes"]), float(r["range"])) == (8 * 20 * 8, 10.0)
        assert np.nanmin(frame.ranges) == pytest.approx(6.0, abs=0.05)
        assert 0.0 <= float(values["saturated"][0]) <= 1.0 and (values["beams"][0], values["bins"][0]) == (8, 20)
    finally:
        frame_rings.remove_rings(name)
