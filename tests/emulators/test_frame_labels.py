"""Labels of sonars and cameras: whole masks, shadows, numbers and names."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.emulators.sonar import design, pose, world
from wavesim_emulators.sonar import imaging, label_kernels
from wavesim_emulators.sonar.camera import CameraView
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frame_labels import LabelNames
from wavesim_world.config.ranging_sensors import CameraConfig
from wavesim_world.sonars.scene_labels import label_names

FLAT = '<bed depth="12 m"/>'
BLOCK, POST, BALL = 20000, 20001, 28000
SCENE = f"""{FLAT}<obstacles><block position="15 -3 11.5 m" size="1 1 1 m" category="cube"/>
<pier position="20 5 11 m" radius="0.5 m" height="2 m"/></obstacles>
<target name="ball" position="12 3 11.8 m" shape="sphere" size="0.2 0.2 m"/>"""
ALTITUDE = 4.0


@pytest.fixture
def labels(config: Any) -> Any:
    w = world(config, SCENE)
    d = design("m750d-low", 30.0, 1200, {"beams": 256}, labels=True)
    return d, imaging.ForwardLookingSonar(d, w, 0.0, 1).ping(pose((0, 0, 12.0 - ALTITUDE), pitch=-0.2), 0).labels


def test_a_mask_has_no_holes_and_its_shadow_has_the_length_of_the_geometry(labels: Any) -> None:
    d, found = labels
    objects = found[..., 1]
    for number, near, height, half in (
        (BLOCK, math.hypot(14.5, 3.0), 1.0, 0.5),
        (POST, math.hypot(20, 5) - 0.5, 2.0, 0.5),
    ):
        beams = np.flatnonzero((objects == number).any(axis=1))
        assert (np.diff(beams) == 1).all()
        lateral = 2.0 * half / near
        assert len(beams) * 2.27 / 256 == pytest.approx(lateral, rel=0.35)
        for beam in beams:
            at = np.flatnonzero(objects[beam] == number)
            assert (np.diff(at) == 1).all(), "the bed in front of the block is stronger than its top"
            dark = np.flatnonzero(objects[beam] == -number)
            assert (np.diff(dark) == 1).all() and at[-1] < dark[0] <= at[-1] + 2
            assert (found[beam, dark, 0] == -1).all()
        beam = int(beams[len(beams) // 2])
        # the first echo is that of the edge at the bed or of the upper edge, whichever is nearer
        first = min(math.hypot(near, ALTITUDE), math.hypot(near, ALTITUDE - height))
        assert np.flatnonzero(objects[beam] == number)[0] * d.bin == pytest.approx(first, abs=0.25)
        tip = math.hypot(
            *(np.array([near + 2 * half, ALTITUDE]) * (1.0 + height / (ALTITUDE - height)) * [1, 0]), ALTITUDE
        )
        spacing = tip**2 / ALTITUDE * math.radians(0.42)  # of the rays on the bed
        assert (np.flatnonzero(objects[beam] == -number)[-1] + 1) * d.bin == pytest.approx(
            min(tip, 30.0), abs=1.5 * spacing
        )


def test_a_point_target_has_a_label_in_its_beam(labels: Any) -> None:
    d, found = labels
    beam, at = (a[0] for a in np.nonzero(found[..., 1] == BALL))
    assert (at + 0.5) * d.bin == pytest.approx(math.sqrt(12**2 + 3**2 + 3.8**2), abs=2 * d.pulse)
    assert d.preset.sector * (beam / 255 - 0.5) == pytest.approx(math.atan2(3, math.hypot(12, 3.8)), abs=0.03)


def test_the_kernel_and_a_set_of_cells() -> None:
    """Random intervals against sets: an object before a shadow, and a shadow before the bed if that is much weaker."""
    random = np.random.default_rng(5)
    columns, rays, bins = 6, 9, 40
    for _ in range(30):
        begin = random.uniform(-5, 42, (columns, rays))
        intervals = np.stack(
            [begin, begin + random.uniform(0, 6, begin.shape), random.uniform(0.1, 1, begin.shape)], -1
        )
        behind = random.uniform(0, 38, begin.shape)
        background = np.stack([behind, behind + random.uniform(0.1, 6, begin.shape), np.ones(begin.shape)], -1)
        what = np.stack([random.integers(0, 3, begin.shape), random.choice([-1, 0, 2, 3], begin.shape)], -1)
        geometry = np.where(what[..., 1:] == -1, 1e30, 1.0) * np.ones(4)
        out = np.empty((3, bins, 2), np.int32)
        first, end = np.array([0, 2, 4]), np.array([2, 4, 6])
        given = label_kernels.LabelledRays(intervals, geometry, what, np.full(rays, -1e9), np.ones(rays), background)
        label_kernels.label_cells(given, first, end, out)

        def covers(interval: Any, i: int) -> bool:
            return bool(max(math.floor(interval[0]), 0) <= i <= math.floor(interval[1]) and interval[1] > 0)

        def overlap(a: float, b: float, i: int) -> float:
            return float(max(min(b, i + 1.0) - max(a, float(i)), 0.0))

        for beam in range(3):
            mine = [(j, k) for j in range(first[beam], end[beam]) for k in range(rays)]
            for i in range(bins):
                here = [(j, k) for j, k in mine if what[j, k, 1] >= 0 and covers(intervals[j, k], i)]
                objects = {int(what[j, k, 1]) for j, k in here if what[j, k, 1] > 1}
                kept = 0.0  # energy that objects keep from the cell
                for j, k in mine:
                    hit = next((n for n in (k, k - 1, k + 1) if 0 <= n < rays and what[j, n, 1] > 1), None)
                    if hit is not None:
                        near = max(background[j, k, 0], intervals[j, hit, 0])
                        if covers((near, background[j, k, 1]), i):
                            share = overlap(near, background[j, k, 1], i)
                            kept = max(kept, 1e-12, share * (1.0 if hit == k else 1e-9))
                lit = max((intervals[j, k, 2] * overlap(*intervals[j, k, :2], i) for j, k in here), default=0.0)
                got = int(out[beam, i, 1])
                if objects:
                    assert got in objects
                elif kept > 10.0 * lit or (kept and not here):
                    assert got in (-2, -3)
                elif here:
                    assert got == 0
                else:
                    assert got == -1 and out[beam, i, 0] == -1


def test_side_scan_shadow(config: Any) -> None:
    """A block of 2 m at 8 m below the sonar: its shadow begins behind it and is dark."""
    w = world(config, FLAT + '<obstacles><block position="0 15 11 m" size="4 2 2 m"/></obstacles>')
    d = design("starfish-450", 40.0, 800, labels=True)
    frame = imaging.SideScanSonar(d, w, 0.0, 1).ping(pose((0, 0, 4.0)), 0)
    shadow = np.flatnonzero(frame.labels[1, :, 1] == -BLOCK)
    assert (frame.labels[0, :, 1] <= 0).all() and (frame.labels[0, :, 1] >= -1).all()
    assert shadow[-1] * d.bin == pytest.approx(math.hypot(16 * 8 / 6, 8.0), abs=0.6)
    lit = np.flatnonzero(frame.labels[1, :, 1] == 0)
    inner = shadow[2:-2]
    assert np.median(frame.power[1, inner]) < 1e-3 * np.median(frame.power[1, lit])


def test_camera_labels_are_those_of_the_rays(config: Any) -> None:
    loaded = config(f'<world>{SCENE}<board name="tag" position="6 1 9 m" size="1 1 m" heading="180 deg"/></world>')
    camera = CameraConfig(width=80, height=60, truth=True, range=30.0)
    view = CameraView(camera, world(config, SCENE), loaded.config.world.optics, loaded.config.world.board, 1)
    _, (labels,), _, _ = view.picture(np.array([0, 0, 9.0]), np.eye(3), 1)
    names = label_names(loaded)
    seen = {names[n] for n in np.unique(labels[..., 1]) if n != -1}
    assert {"bed", "block 1", "pier 1", "tag"} <= seen <= {"bed", "block 1", "pier 1", "tag", "surface"}
    slope = 1.0 / 6.0  # the middle of the board: 1 m to the right of the axis at 6 m
    f = 40 / math.tan(0.5 * camera.view)
    assert names[labels[30, round(39.5 + slope * f), 1]] == "tag"
    assert (labels[labels[..., 1] == 31000, 0] == -1).all()


def test_names_and_categories(config: Any) -> None:
    loaded = config(
        f"<world>{FLAT}<obstacles><block position='1 1 1 m' size='1 1 1 m' category='mine'/><block position='5 1 1 m' size='1 1 1 m'/>"
        "<pier position='9 1 1 m' radius='1 m' height='1 m'/><tunnel position='20 1 1 m' length='3 m' width='1 m' height='1 m'/></obstacles></world>"
        "<fleet><vehicle name='auv' model='lauv' position='0 9 5 m'/></fleet>"
    )
    names = label_names(loaded)
    assert dict(names) == {
        0: "bed",
        1: "surface",
        2: "auv",
        20000: "block 1",
        20001: "block 2",
        20002: "pier 1",
        20003: "tunnel 1",
    }
    assert [names.category(n) for n in (2, 20000, 20001, -20000)] == ["lauv", "mine", "block", "shadow"]
    assert names[-20003] == "shadow of tunnel 1"
    again = LabelNames.from_json(names.to_json()).with_body(998, "b", "otter")
    assert again.materials == names.materials and (again[1000], again.category(1000)) == ("b", "otter")
    for text in (
        "[]",
        '{"materials": 1, "objects": {}}',
        '{"materials": [], "objects": {"x": ["a", "b"]}}',
        '{"materials": [], "objects": {"1": ["a"]}}',
    ):
        with pytest.raises(ValueError):
            LabelNames.from_json(text)


@pytest.mark.parametrize(
    ("element", "most", "outside", "said"),
    [
        (
            "<pier position='9 1 1 m' radius='1 m' height='1 m'/>",
            8000,
            "obstacles",
            "8001 obstacles, but frames have only 8000 labels",
        ),
        ("<target name='{}' position='1 2 3 m'/>", 3000, "", "3001 targets, but frames have only 3000 labels"),
        (
            "<board name='{}' position='1 2 3 m' size='1 1 m'/>",
            1768,
            "",
            "1769 boards, but frames have only 1768 labels",
        ),
    ],
)
def test_a_world_has_no_more_objects_than_labels(config: Any, element: str, most: int, outside: str, said: str) -> None:
    """Beyond these numbers, the labels of obstacles would be those of targets, and boards would have none."""

    def world_of(count: int) -> str:
        inner = "".join(element.format(f"n{n}") for n in range(count))
        return f"<world>{f'<{outside}>{inner}</{outside}>' if outside else inner}</world>"

    names = label_names(config(world_of(most)))
    assert len(names) == most + 2 and max(names) < 2**15
    with pytest.raises(ConfigError, match=said):
        config(world_of(most + 1))


def test_a_frame_whose_bins_are_left_out_fits_its_ring(config: Any) -> None:
    loaded = config('<fleet><sensors><sonar name="eye" preset="m750d-low" range="40 m" truth="yes"/></sensors></fleet>')
    from wavesim_world.sonars import frame_sizes

    (eye,) = loaded.config.fleet.sensors.instruments
    assert frame_sizes.payload_bytes(eye.parameters) <= frame_sizes.MAX_BYTES
    assert frame_sizes.resolve_preset(eye.parameters).bins > 1500
