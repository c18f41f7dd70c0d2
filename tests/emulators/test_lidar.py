"""Lidars: ranges against closed forms and triangles cut one by one, a platform that moves, noise, and frames in rings."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

from tests.emulators.bench import Bench
from wavesim_emulators.sonar.lidar import LidarEmulator, LidarPose, LidarScanner
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_sdk import frame_rings
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.config.lidar import LidarConfig as Declared
from wavesim_world.sonars import frame_sizes

HERE = np.array([1.0, -2.0, -5.0])
STILL = np.zeros(3)
TURNED = rotation(quaternion(0.05, -0.1, 0.7))


def scanner(config: Any, inner: str, **changes: Any) -> LidarScanner:
    """A lidar of 9 x 60 beams that detects anything, unless the changes say otherwise."""
    loaded = config(f"<world><bed depth='900 m'/>{inner}</world>")
    given = {"channels": 9, "columns": 60, "minimum_reflectivity": 0.0, "sigma": 0.0, "sweep": False, **changes}
    return LidarScanner(Declared(**given).resolved, SonarScene(loaded), 7)


def pose(p: Any = HERE, R: Any = TURNED, v: Any = STILL, w: Any = STILL, duration: float = 0.0) -> LidarPose:
    return LidarPose(np.asarray(p, float), R, np.asarray(v, float), np.asarray(w, float), duration)


def directions(s: LidarScanner) -> Any:
    """Unit vectors in S from the declared angles; by another formula than the emulator's."""
    c = s.lidar
    up, azimuth = np.linspace(c.upper, c.lower, c.channels)[:, None], np.linspace(*c.azimuths, c.columns)
    return np.stack(np.broadcast_arrays(np.cos(up) * np.cos(azimuth), np.cos(up) * np.sin(azimuth), -np.sin(up)), -1)


def test_the_field_of_view(config: Any) -> None:
    """From the top channel down, from port to starboard; a full circle has no column twice."""
    s = scanner(config, "", upper=0.2, lower=-0.5)
    assert pytest.approx(directions(s), abs=1e-12) == s.D
    assert s.D[0, 30, 2] < 0.0 < s.D[-1, 30, 2] and s.D[4, 15, 1] < 0.0 < s.D[4, 45, 1]
    first, last = s.lidar.azimuths
    assert last - first == pytest.approx(2.0 * math.pi * 59 / 60)
    assert Declared(sector=1.0).azimuths == (-0.5, 0.5)


def test_a_wall(config: Any) -> None:
    """A plane 20 m ahead, 30 m high: range = distance / cosine, intensity = reflectivity times that cosine."""
    s = scanner(config, '<obstacles><block position="26 0 0 m" size="10 400 30 m"/></obstacles>', upper=0.5, lower=-0.1)
    r, intensity = s.trace(pose(R=np.eye(3)))
    d = directions(s)
    with np.errstate(divide="ignore"):
        t = np.where(d[..., 0] > 0.0, 20.0 / d[..., 0], np.inf)
    height = -5.0 + t * d[..., 2]
    seen = (t < 100.0) & (height > -15.0) & (height < 0.0) & (np.abs(-2.0 + t * d[..., 1]) < 200.0)
    assert 30 < seen.sum() < seen.size / 2
    assert r[seen] == pytest.approx(t[seen], rel=1e-9)
    assert np.isinf(r[~seen & (t > 100.0) & (d[..., 2] < 0.0)]).all(), "sky"
    white = intensity[seen] / d[seen][:, 0]
    assert white.min() > 0.05 and white.max() == pytest.approx(white.min(), rel=1e-9)


def test_a_shore_and_the_water(config: Any) -> None:
    """The slope is seen where it is above the water; the water absorbs the beams, or reflects them."""
    bed = '<bed depth="10 m" slope_north="-0.2"/>'  # dry beyond 50 m to the north
    for reflects, level in ((0.0, 0.0), (0.02, 0.0), (0.0, 0.5)):
        loaded = config(f"<world>{bed}</world>")
        c = Declared(channels=33, columns=90, minimum_reflectivity=0.0, surface_reflectivity=reflects, sweep=False)
        s = LidarScanner(c, SonarScene(loaded), 7)
        r, intensity = s.trace(pose(R=np.eye(3)), level)
        d = directions(s)
        with np.errstate(divide="ignore"):
            fall = d[..., 2] + 0.2 * d[..., 0]
            bed_range = np.where(fall > 0.0, (10.0 - 0.2 * HERE[0] - HERE[2]) / fall, np.inf)
            water = np.where(d[..., 2] > 0.0, (5.0 - level) / d[..., 2], np.inf)
        shore = (bed_range < water) & (bed_range < 100.0)
        wet = (water < bed_range) & (water < 100.0)
        assert shore.sum() > 20 and wet.sum() > 100
        assert r[shore] == pytest.approx(bed_range[shore], abs=2e-3)
        if reflects:
            assert r[wet] == pytest.approx(water[wet], rel=1e-9)
            assert intensity[wet] == pytest.approx(0.02 * d[wet][:, 2], rel=1e-9)
        else:
            assert np.isinf(r[wet]).all() and not intensity[wet].any()


def test_a_ball_and_a_box(config: Any) -> None:
    """Hulls of other bodies, turned: against the quadratic equation and against the slabs of the box."""
    s = scanner(config, "", channels=41, columns=240, upper=0.6, lower=-0.25)
    d, turn = directions(s) @ TURNED.T, Rotation.from_euler("ZYX", [0.4, 0.2, -0.1])
    x, y, z, w = turn.as_quat()
    for kind, half in ((2.0, (3.0, 3.0, 3.0)), (0.0, (4.0, 1.5, 2.0))):
        c = HERE + TURNED @ [15.0, 2.0, -1.5]
        hull = SimpleNamespace(
            rows=np.array([3]), kind=[kind], p=[c], half=[half], state={"q_WB": np.array([[w, x, y, z]])}
        )
        s.world.set_bodies(hull, 0)  # type: ignore[arg-type]
        r, _ = s.trace(pose())
        o = HERE - c
        if kind == 2.0:
            b = d @ o
            inside = b * b - (o @ o - 9.0)
            expected = np.where((inside > 0.0) & (b < 0.0), -b - np.sqrt(np.maximum(inside, 0.0)), np.inf)
        else:
            box = trimesh.creation.box(2.0 * np.array(half))
            box.apply_transform(np.block([[turn.as_matrix(), c[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]]))
            expected = cut(box.triangles, HERE, d)
        hit = np.isfinite(expected)
        assert 40 < hit.sum() < hit.size / 4
        assert r[hit] == pytest.approx(expected[hit], rel=1e-9) and np.isinf(r[~hit]).all()


def cut(triangles: Any, o: Any, d: Any) -> Any:
    """The nearest of all triangles along each direction, each cut by itself (Moeller & Trumbore 1997)."""
    best = np.full(d.shape[:-1], np.inf)
    for a, b, c in triangles:
        e1, e2 = b - a, c - a
        h = np.cross(d, e2)
        with np.errstate(divide="ignore", invalid="ignore"):
            f = 1.0 / (h @ e1)
            u = f * (h @ (o - a))
            q = np.cross(o - a, e1)
            v, t = f * (d @ q), f * (q @ e2)
            best = np.where((u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t > 0.0), np.minimum(best, t), best)
    return best


def test_a_mesh(config: Any, tmp_path: Any) -> None:
    """A ring of triangles, against each of them (the scene's are cut by embree, in single precision)."""
    ring = trimesh.creation.torus(4.0, 1.2, major_sections=24, minor_sections=12)
    turn = np.eye(4)
    turn[:3, :3] = Rotation.from_euler("ZYX", [0.2, 0.3, 1.1]).as_matrix()
    ring.apply_transform(turn)
    ring.export(tmp_path / "ring.stl")
    place = HERE + TURNED @ [12.0, 1.0, -1.0]
    where = " ".join(f"{v:.17g}" for v in place)
    s = scanner(
        config,
        f'<obstacles><mesh file="{tmp_path / "ring.stl"}" position="{where} m"/></obstacles>',
        channels=25,
        columns=120,
        upper=0.5,
        lower=-0.2,
    )
    r, intensity = s.trace(pose())
    d = directions(s) @ TURNED.T
    expected = cut(trimesh.load_mesh(tmp_path / "ring.stl").triangles + place, HERE, d)
    both = np.isfinite(expected) & np.isfinite(r)
    assert both.sum() > 100 and (np.isfinite(expected) != np.isfinite(r)).sum() <= 0.01 * both.sum(), "edges"
    assert np.abs(r[both] - expected[both]).max() < 1e-3 and (intensity[both] > 0.0).all()


def test_a_scan_from_a_platform_that_moves(config: Any) -> None:
    """Each column at its own time: with the pose at that time its points are on the wall, with the last pose they are
    not.
    """
    inner = '<obstacles><block position="26 0 0 m" size="10 400 30 m"/></obstacles>'
    s = scanner(config, inner, columns=480, upper=0.3, lower=0.05, sector=2.0, sweep=True)
    v, w, duration = np.array([8.0, 1.0, 0.0]), np.array([0.05, 0.1, 1.2]), 0.1
    pixels = s.scan(pose(R=np.eye(3), v=v, w=w, duration=duration), 0, noise=0.0)
    r = pixels["range"] * (100.0 / 65535)
    seen = pixels["range"] > 0
    ago = duration * (1.0 - (np.arange(480) + 0.5) / 480)
    R = Rotation.from_rotvec(-ago[:, None] * w).as_matrix()
    points = r[..., None] * np.einsum("jab,ijb->ija", R, directions(s)) + (HERE - ago[:, None] * v)
    assert seen.mean() > 0.9
    assert np.abs(points[seen][:, 0] - 21.0).max() < 0.12, "16 columns have one pose: 3 ms"
    assert np.abs(points[seen][:, 0] - 21.0).mean() < 0.04
    naive = r[..., None] * directions(s) + HERE
    assert np.abs(naive[seen][:, 0] - 21.0).max() > 0.8
    at_once = scanner(config, inner, columns=480, upper=0.3, lower=0.05, sector=2.0)
    r = at_once.scan(pose(R=np.eye(3), v=v, w=w, duration=duration), 0)["range"] * (100.0 / 65535)
    assert (r[..., None] * directions(s) + HERE)[r > 0.0][:, 0] == pytest.approx(21.0, abs=2e-3)


def test_noise_and_drop_outs(config: Any) -> None:
    """Bounds with a probability of 1e-6: variance by chi-squared, mean and drop-outs by the normal distribution."""
    inner = '<obstacles><block position="26 0 0 m" size="10 400 30 m"/></obstacles>'
    s = scanner(
        config, inner, channels=40, columns=100, upper=0.3, lower=0.0, sector=1.0, sigma=0.05, beam_drop_out=0.1
    )
    exact, _ = s.trace(pose(R=np.eye(3)))
    found = [s.scan(pose(R=np.eye(3)), k, noise=2.0)["range"] * (100.0 / 65535) for k in range(5)]
    assert not np.array_equal(found[0], found[1])
    errors = np.concatenate([(f - exact)[f > 0.0] for f in found])
    n = len(errors)
    low, high = chi2.ppf([5e-7, 1.0 - 5e-7], n) * 0.1**2
    assert low < (errors**2).sum() < high and abs(errors.mean()) < 4.9 * 0.1 / math.sqrt(n)
    total = 5 * exact.size
    assert abs((total - n) / total - 0.1) < 4.9 * math.sqrt(0.1 * 0.9 / total)
    third = errors / 0.1
    assert abs((np.abs(third) < 1.0).mean() - 0.6827) < 4.9 * math.sqrt(0.6827 * 0.3173 / n)


def test_what_a_lidar_detects(config: Any) -> None:
    """A surface of reflectivity a is seen up to range sqrt(a cos / minimum); under water the light decays twice."""
    inner = '<obstacles><block position="26 0 0 m" size="10 400 30 m"/></obstacles>'
    one = {"channels": 2, "columns": 2, "sector": 0.01, "upper": 0.01, "lower": 0.0, "range": 50.0}
    _, bright = scanner(config, inner, **one).trace(pose(R=np.eye(3)))
    limit = float(bright[1, 0]) / (20.0 / 50.0) ** 2
    for factor, seen in ((0.99, True), (1.01, False)):
        r, _ = scanner(config, inner, **one, minimum_reflectivity=limit * factor).trace(pose(R=np.eye(3)))
        assert np.isfinite(r[1, 0]) == seen
    deep = (1.0, -2.0, 5.0)
    wet = scanner(config, inner, **one, extinction=0.1)
    r, intensity = wet.trace(pose(deep, np.eye(3)))
    assert r[1, 0] == pytest.approx(20.0, rel=1e-3)
    assert intensity[1, 0] == pytest.approx(bright[1, 0] * math.exp(-2.0 * 0.1 * 20.0), rel=1e-3)
    blind = scanner(config, inner, **{**one, "minimum_reflectivity": 0.1})
    assert np.isinf(blind.trace(pose(deep, np.eye(3)))[0]).all(), "infrared light does not pass 20 m of water"
    near = scanner(config, inner, **{**one, "minimum": 21.0})
    assert not near.scan(pose(R=np.eye(3)), 0)["range"].any()


@pytest.mark.parametrize(
    ("name", "channels", "step", "per_second", "sigma"),
    [("vlp-16", 16, 2.0, 300e3, 0.03), ("hdl-32e", 32, 1.33, 695e3, 0.02)],
)
def test_presets_have_the_numbers_of_their_data_sheets(
    name: str, channels: int, step: float, per_second: float, sigma: float
) -> None:
    p = Declared(preset=name).resolved
    assert (p.channels, p.range, p.sigma, p.rate) == (channels, 100.0, sigma, 10.0)
    assert math.degrees(p.upper - p.lower) / (channels - 1) == pytest.approx(step, abs=0.01)
    assert p.channels * p.columns * p.rate == pytest.approx(per_second, rel=0.05)
    assert Declared(preset=name, sigma=0.5, channels=8).resolved.channels == 8


def test_scans_in_their_ring(config: Any, name: str) -> None:
    """Between the rings of a sonar and of a camera; the same the second time; without the truth no pose."""
    inner = """<sensors><lidar name="puck" channels="8" columns="120" position="0 0 -3 m"/><camera name="eye" width="32" height="24"/>
        <sonar preset="m750d-low" beams="16" bins="64" range="15 m"/></sensors>"""
    wall = '<obstacles><block position="26 0 0 m" size="10 400 30 m"/></obstacles>'
    loaded = config(f"<world><bed depth='8 m'/>{wall}</world><shared vehicles='2'/><fleet>{inner}</fleet>")

    def run() -> list[frames.ImagingFrame]:
        frame_sizes.create_rings(loaded, name)
        try:
            bench = Bench(loaded, LidarEmulator, period=25)
            bench.emulator.open(name)
            rings = frame_rings.FrameRings.attach(name)
            assert (rings.rings, rings.ring_index("lidar", 0)) == (6, 2)
            reader, found = frame_rings.FrameReader(rings, rings.ring_index("lidar", 0)), []
            for tick in (0, 25, 50):
                bench.put((0.02 * tick, 0.0, 0.0), (0.0, 0.02, 0.3), (5.0, 0.0, 0.0), (0.0, 0.0, 0.2))
                values = bench.at(tick)
                frame = reader.next()
                assert frame is not None and values["frame"][0] == frame.record["number"]
                assert values["channels"][0] == 8 and values["columns"][0] == 120
                assert values["points"][0] == np.isfinite(frame.ranges).sum() > 20
                assert values["nearest"][0] == pytest.approx(np.nanmin(frame.ranges))
                found.append(frame)
            assert rings.done.tolist() == [0, 0, 3, 0, 0, 0]
            return found
        finally:
            frame_rings.remove_rings(name)

    first = run()
    assert [f.data for f in run()] == [f.data for f in first]
    f = frames.ImagingFrame.from_bytes(first[0].data)
    assert (f.kind, f.samples.shape, f.labels) == ("lidar", (8, 120), None)
    assert f.record["ping_ns"] == f.record["time_ns"] == 0 and first[1].record["ping_ns"] == 0
    assert first[1].column_times[-1] == pytest.approx(0.1)
    seen = np.isfinite(f.ranges)
    assert np.nanmax(f.intensities) <= 1.0 and (f.intensities[seen] > 0.0).all()
    points = f.points[seen]
    on_wall = np.abs(points[:, 0] - 21.0) < 0.15
    assert on_wall.mean() > 0.9 and (points[:, 2] < 0.1).all(), "with 3 cm of noise"
    hidden = f.without_truth()
    assert np.isnan(hidden.record["p_WS_W"]).all() and (hidden.samples == f.samples).all()


@pytest.mark.parametrize(
    ("lidar", "text"),
    [
        ('upper="-20 deg"', "`upper` must be greater than `lower`"),
        ('range="0.3 m"', "`range` must be greater than `minimum`"),
        ('preset="vlp-17"', "preset: 'vlp-17' is not allowed; did you mean 'vlp-16'"),
        ('channels="1"', "channels: 1 is below the minimum"),
    ],
)
def test_mistakes(config: Any, lidar: str, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)):
        config(f"<world/><fleet><sensors><lidar name='puck' {lidar}/></sensors></fleet>")
