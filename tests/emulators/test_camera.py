"""Cameras: light against closed forms, geometry against the lens, a tag found by an independent detector, and frames
through the rings.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench
from wavesim_emulators.sonar.camera import CameraEmulator, CameraView
from wavesim_emulators.sonar.scene import SonarScene
from wavesim_sdk import frame_rings
from wavesim_sdk import imaging_frames as frames
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.config.ranging_sensors import CameraConfig as Declared
from wavesim_world.sonars import frame_sizes, lens

DEEP = '<bed depth="900 m"/>'
CLEAR = '<optics turbidity="0" backscatter="0 0 0" veil="0 0 0" diffuse="0 0 0" scattering="0 0 0" {}/>'
HERE = np.array([0.0, 0.0, 10.0])


def view(config: Any, inner: str, **changes: Any) -> CameraView:
    """A camera of 80 x 60 pixels without noise and gamma, unless the changes say otherwise."""
    loaded = config(f"<world>{DEEP}{inner}</world>")
    given = {"width": 80, "height": 60, "gamma": 1.0, "exposure": 1.0, **changes}
    return CameraView(Declared(**given), SonarScene(loaded), loaded.config.world.optics, loaded.config.world.board, 7)


def board(where: str, size: str = "4 4 m", cells: str = "1", more: str = 'heading="180 deg"') -> str:
    return f'<board name="b" position="{where}" size="{size}" cells="{cells}" {more}/>'


def middle(v: CameraView, p: Any = HERE) -> Any:
    light, r, _ = v.trace(np.asarray(p, float), np.eye(3))
    return light[40, 30], r[40, 30]


def test_a_white_plate_at_five_metres(config: Any) -> None:
    """Red 0.294, green 0.754, blue 0.955 of its light; half of the daylight falls on what is upright."""
    light, r = middle(view(config, CLEAR.format("") + board("5 0 10 m")))
    assert r == pytest.approx(5.0, rel=1e-3)
    assert 2.0 * light == pytest.approx([0.294, 0.754, 0.955], abs=1e-3)
    tilted = 'heading="180 deg" tilt="30 deg"'
    light, r = middle(view(config, CLEAR.format("") + board("5 0 10 m", more=tilted)))
    assert light / np.exp(-np.array([0.245, 0.0565, 0.0092]) * r) == pytest.approx([0.75] * 3, rel=1e-3)


def test_the_veil_daylight_and_turbidity(config: Any) -> None:
    """At z: J e^(-bD z) + V (1 - e^(-bB z)); far away V alone; daylight falls with depth."""
    optics = '<optics attenuation="0.3 0.2 0.1" backscatter="0.2 0.1 0.05" veil="0.1 0.2 0.3" diffuse="0.05 0.04 0.02" turbidity="0.1"/>'
    at_10_m = np.exp(-np.array([0.15, 0.14, 0.12]) * 10.0)
    V = np.array([0.1, 0.2, 0.3]) * at_10_m
    light, r = middle(view(config, optics + board("4 0 10 m")))
    falls, grows = np.exp(-np.array([0.4, 0.3, 0.2]) * r), 1.0 - np.exp(-np.array([0.3, 0.2, 0.15]) * r)
    assert light == pytest.approx(0.5 * at_10_m * falls + V * grows, rel=2e-2)
    light, r = middle(view(config, optics))
    assert math.isinf(r) and light == pytest.approx(V, rel=1e-5)


def test_a_lamp_by_the_square_both_ways_and_its_glow(config: Any) -> None:
    night = CLEAR.format('daylight="0"')
    lamp = {"lamp": 3.0, "lamp_position": (0.0, 0.0, 0.0)}
    for z in (1.0, 4.0):
        light, _ = middle(view(config, night + board(f"{z} 0 10 m"), **lamp))
        assert light == pytest.approx(3.0 / z**2 * np.exp(-2.0 * z * np.array([0.245, 0.0565, 0.0092])), rel=1e-3)
    murky = night.replace('scattering="0 0 0"', 'scattering="0.03 0.02 0.01"')
    v = view(config, murky, lamp=3.0, lamp_position=(0.0, 0.0, -1.0), range=16.0)
    s = (np.arange(4000) + 0.5) * 16.0 / 4000  # the same in fine steps, along the axis
    d = np.hypot(s, 1.0)
    for c, (b, a) in enumerate(((0.03, 0.245), (0.02, 0.0565), (0.01, 0.0092))):
        fine = 3.0 * b / (2.0 * math.pi) * np.sum(np.exp(-a * (d + s)) / d**2) * 16.0 / 4000
        assert middle(v)[0][c] == pytest.approx(fine, rel=0.15), "eight steps"


@pytest.mark.parametrize("distortion", [(0.0, 0.0), (-0.2, 0.03)])
def test_points_are_seen_where_the_lens_says(config: Any, distortion: tuple[float, float]) -> None:
    """White boards on black: the centre of each blob of light is the projection of its middle; depths are true."""
    attitude = (0.1, -0.2, 0.7)
    R = rotation(quaternion(*attitude))
    seen_S = np.array([[5.0, -1.5, 1.0], [5.0, 1.8, 0.9], [6.0, 0.1, -1.6]])
    places = HERE + seen_S @ R.T
    boards = "".join(
        board(
            f"{n!r} {e!r} {d!r} m".replace("np.float64(", "").replace(")", ""),
            "0.3 0.3 m",
            more=f'heading="{math.degrees(attitude[2]) + 180!r} deg"',
        ).replace('"b"', f'"b{i}"')
        for i, (n, e, d) in enumerate(places.tolist())
    )
    v = view(
        config, CLEAR.format('attenuation="0 0 0"') + boards, width=160, height=120, depth=True, distortion=distortion
    )
    numbers, (depths,), _, _ = v.picture(HERE, R, 1, noise=0.0)
    where = lens.project(seen_S, 160, 120, v.camera.view, distortion)
    rows, columns = np.mgrid[0:120, 0:160] + 0.5
    for (x, y), S in zip(where, seen_S, strict=True):
        near = (np.abs(columns - x) < 12) & (np.abs(rows - y) < 12)
        weight = numbers[..., 0] * near
        assert weight.sum() > 0
        found = (weight * columns).sum() / weight.sum(), (weight * rows).sum() / weight.sum()
        assert found == pytest.approx((x, y), abs=0.4)
        assert depths[int(y), int(x)] == pytest.approx(S[0], abs=0.06)
    assert np.isinf(depths[0, 0])


def test_depths_of_a_bed(config: Any) -> None:
    """A level bed under a camera that looks 40 deg down: each pixel by the plane."""
    loaded = config('<world><bed depth="14 m"/></world>')
    c = Declared(width=60, height=40, depth=True, range=40.0)
    v = CameraView(c, SonarScene(loaded), loaded.config.world.optics, (), 7)
    R = rotation(quaternion(0.0, -math.radians(40.0), 0.3))
    _, depths, _, _ = v.picture(HERE, R, 1)
    y, z = lens.pixel_slopes(60, 40, c.view, c.distortion)
    down = R[2, 0] + R[2, 1] * y + R[2, 2] * z
    assert depths == pytest.approx(np.where(4.0 / down < 30.0, 4.0 / down, depths), rel=2e-3)
    assert np.isfinite(depths).all()


def test_noise_has_the_root_of_the_electrons(config: Any) -> None:
    v = view(
        config, CLEAR.format('attenuation="0 0 0"') + board("3 0 10 m", "20 20 m"), electrons=1000.0, read_noise=5.0
    )
    numbers, _, exposure, cut = v.picture(HERE, np.eye(3), 1)
    assert (exposure, cut) == (1.0, 0)
    share = numbers / 255.0
    assert share.mean() == pytest.approx(0.5, abs=2e-3)
    assert share.std() == pytest.approx(math.sqrt(0.5 * 1000.0 + 25.0) / 1000.0, rel=0.03)
    assert (v.picture(HERE, np.eye(3), 1)[0] == numbers).all(), "the same number, the same noise"
    assert not (v.picture(HERE, np.eye(3), 2)[0] == numbers).all()


def test_a_tag_is_found_by_opencv(config: Any) -> None:
    """Its number, and its corners to half a pixel, four metres off and aslant, under a lamp in murky water."""
    import cv2

    tags = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    drawn = np.pad(cv2.aruco.generateImageMarker(tags, 17, 6) > 127, 1, constant_values=True)
    cells = " ".join("".join(str(int(x)) for x in row) for row in drawn)
    inner = '<optics daylight="0.2" turbidity="0.15"/>' + board("4 0.3 10.2 m", "0.8 0.8 m", cells, 'heading="160 deg"')
    v = view(config, inner, width=320, height=240, gamma=2.2, exposure=0.0, lamp=4.0, distortion=(-0.1, 0.0))
    numbers, _, _, _ = v.picture(HERE, np.eye(3), 1)
    corners, ids, _ = cv2.aruco.ArucoDetector(tags).detectMarkers(np.ascontiguousarray(numbers[..., ::-1]))
    assert ids.ravel().tolist() == [17]
    h = math.radians(160.0)
    right, half = np.array([math.sin(h), -math.cos(h), 0.0]), 0.8 * 6 / 16
    truth = [
        np.array([4.0, 0.3, 0.2]) + half * (a * right + b * np.array([0, 0, 1.0]))
        for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))
    ]
    where = lens.project(truth, 320, 240, v.camera.view, v.camera.distortion)
    assert corners[0][0] + 0.5 == pytest.approx(where, abs=1.0)


def test_pictures_in_their_ring(config: Any, name: str) -> None:
    """Beside a sonar's frames, the same the second time; without the truth neither pose nor depth."""
    inner = '<sensors><camera name="eye" width="32" height="24" depth="yes"/><sonar preset="m750d-low" beams="16" bins="64" range="15 m"/></sensors>'
    loaded = config(f"<world><bed depth='8 m'/></world><shared vehicles='2'/><fleet>{inner}</fleet>")

    def run() -> list[frames.ImagingFrame]:
        frame_sizes.create_rings(loaded, name)
        try:
            bench = Bench(loaded, CameraEmulator, period=25)
            bench.emulator.open(name)
            rings = frame_rings.FrameRings.attach(name)
            assert rings.rings == 4
            reader, found = frame_rings.FrameReader(rings, rings.ring_index("camera", 0)), []
            for tick in (0, 25, 50):
                bench.put((0.02 * tick, 0.0, 5.0), (0.0, -0.5, 0.1))
                values = bench.at(tick)
                frame = reader.next()
                assert frame is not None and values["frame"][0] == frame.record["number"] and values["width"][0] == 32
                found.append(frame)
            assert rings.done.tolist() == [0, 0, 0, 3], "from the last ring backwards"
            return found
        finally:
            frame_rings.remove_rings(name)

    first = run()
    assert [f.data for f in run()] == [f.data for f in first]
    f = frames.ImagingFrame.from_bytes(first[0].data)
    assert (f.kind, f.image.shape, f.depth.shape, f.labels) == ("camera", (24, 32, 3), (24, 32), None)
    assert 3.0 < float(np.min(f.depth)) < 10.0
    hidden = f.without_truth()
    assert hidden.depth is None and np.isnan(hidden.record["p_WS_W"]).all() and (hidden.image == f.image).all()
    assert frames.ImagingFrame.from_bytes(hidden.data).data == hidden.data


@pytest.mark.parametrize(
    ("camera", "world", "text"),
    [
        ('distortion="-0.9 0"', "", "its distortion folds the image"),
        ('width="5000"', "", "width: 5000 is above the maximum"),
        ('range="0 m"', "", "range: 0 m is below the minimum"),
        ("", board("0 0 1 m", cells="10 1"), "invalid cells of board 'b': use rows of 0 and 1 with equal lengths"),
        ("", board("0 0 1 m", cells=" "), "invalid cells of board 'b': use rows of 0 and 1 with equal lengths"),
    ],
)
def test_what_cannot_be_is_refused_by_one_line(config: Any, camera: str, world: str, text: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(text)) as refused:
        config(f"<world>{world}</world><fleet><sensors><camera {camera}/></sensors></fleet>")
    assert "\n" not in str(refused.value)
