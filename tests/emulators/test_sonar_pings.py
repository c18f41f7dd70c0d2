"""Whole pings: geometry of echoes and shadows, motion, soundings, labels, bytes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.emulators.sonar import dB, design, pose, world
from wavesim_emulators.sonar import imaging
from wavesim_emulators.sonar.multibeam import SOUNDING_COLUMNS, MultibeamSonar

FLAT = '<ground material="medium-sand"/><bed depth="20 m"/>'


def column(name: str) -> int:
    return SOUNDING_COLUMNS.index(name)


def test_first_bottom_echo_and_surface(config: Any) -> None:
    """10 m above the bed: sample 133 of 1000 over 75 m; the surface at the depth of the sonar."""
    d = design("starfish-450", 75.0, 1000, {"vertical": math.radians(100)})
    frame = imaging.SideScanSonar(d, world(config, FLAT), 0.0, 1).ping(pose((0, 0, 10.0)), 0)
    assert pytest.approx(13.333e-3, abs=1e-6) == 2 * 10.0 / 1500.0
    for side in frame.power:
        assert abs(int(np.flatnonzero(side > 1e3)[0]) - 133) <= 1
    d = design("starfish-450", 75.0, 1000, {"vertical": math.radians(170), "tilt": 0.0}, surface=True)
    frame = imaging.SideScanSonar(d, world(config, FLAT), 12.0, 1).ping(pose((0, 0, 5.0)), 0)
    assert int(np.flatnonzero(frame.power[0] > 1.0)[0]) * d.bin == pytest.approx(5.0, abs=2 * d.bin)


def test_shadow_of_a_thin_wall(config: Any) -> None:
    """1 m high, 30 m away, seen from 10 m above the bed: dark from 31.321 to 34.801 m."""
    wall = '<obstacles><block position="0 30 19.5 m" size="40 0.02 1 m"/></obstacles>'
    d = design("starfish-450", 50.0, 1000, {"vertical": math.radians(100)})
    line = imaging.SideScanSonar(d, world(config, FLAT + wall), 0.0, 1).ping(pose((0, 0, 10.0)), 0).power[1]
    before = line[int(29.0 / d.bin)]
    # behind the wall's top (r = 31.321) nothing but leakage; beyond its shadow the bed again
    dark = np.flatnonzero((line < 1e-2 * before) & (np.arange(1000) * d.bin > 31.0) & (np.arange(1000) * d.bin < 36.0))
    begin, end = dark[0] * d.bin, (dark[-1] + 1) * d.bin
    assert begin == pytest.approx(math.hypot(30.0, 10.0), abs=0.1)
    assert end == pytest.approx(34.801, abs=0.1)
    length = end - math.hypot(30.0, 9.0)
    assert length * 10.0 / end == pytest.approx(1.0, rel=0.05), "its height from its shadow"


def test_still_sonars_see_still_speckle_and_moving_ones_do_not(config: Any) -> None:
    w = world(config, FLAT)
    d = design("m750d-low", 30.0, 200, {"beams": 32}, speckle=True)
    sonar, numbers = imaging.ForwardLookingSonar(d, w, 0.0, 7), itertools.count()

    def at(**where: float) -> Any:
        """Intensity of the speckle."""
        x = where.pop("x", 0.0)
        sonar.ping(pose((x, 0, 15.0), **where), next(numbers))
        return (sonar.z.astype(float) ** 2).sum(axis=2).ravel()

    first = at()
    assert np.corrcoef(first, at())[0, 1] > 0.99
    assert abs(np.corrcoef(first, at(heading=d.preset.beam))[0, 1]) < 0.1
    first = at()
    assert abs(np.corrcoef(first, at(x=0.5 * d.array))[0, 1]) < 0.2
    first = at()
    assert abs(np.corrcoef(first, at(x=d.array))[0, 1]) < 0.1


def test_frames_are_identical_to_the_byte_for_a_seed(config: Any) -> None:
    w = world(config, FLAT)
    for preset in ("m750d-low", "starfish-450", "ping360"):
        of = {
            "forward": imaging.ForwardLookingSonar,
            "sidescan": imaging.SideScanSonar,
            "scanning": imaging.ScanningSonar,
        }
        d = design(
            preset, 30.0, 100, noise=True, speckle=True, **({} if preset != "m750d-low" else {"changes": {"beams": 16}})
        )
        made = [of[d.preset.kind](d, w, 3.0, key) for key in (5, 5, 6)]
        first, again, other = ([s.ping(pose((0.01 * i, 0, 12.0)), i).levels.tobytes() for i in range(2)] for s in made)
        assert first == again
        assert first != other
        assert first[0] != first[1]


def test_turning_blurs_what_a_turning_receiver_hears(config: Any) -> None:
    """A point at 60 m, 20 deg/s: the receiver has turned by 1.6 deg when its echo comes."""
    point = '<bed depth="900 m"/><target name="p" position="60 0 100 m" size="1 1 m"/>'
    d = design("m750d-low", 75.0, 600, {"beams": 131})
    sonar = imaging.ForwardLookingSonar(d, world(config, point), 0.0, 1)
    rate = math.radians(20.0)

    def bearing(w: float) -> float:
        power = sonar.ping(pose((0, 0, 100.0), w=(0, 0, w)), 0).power
        return float(sonar.angles[power.max(axis=1).argmax()])

    assert bearing(0.0) == pytest.approx(0.0, abs=math.radians(0.6))
    assert bearing(rate) == pytest.approx(-rate * 2 * 60.0 / 1500.0, abs=math.radians(0.6))


def test_moving_towards_a_wall_shortens_its_range(config: Any) -> None:
    wall = '<obstacles><block position="41 0 10 m" size="2 200 40 m"/></obstacles><bed depth="400 m"/>'
    w = world(config, wall)
    d = design("m750d-low", 60.0, 3000, {"beams": 9, "sector": 0.2, "bandwidth": 20e3})
    sonar = imaging.ForwardLookingSonar(d, w, 0.0, 1)
    still, moving = (int(sonar.ping(pose((0, 0, 10.0), v=(v, 0, 0)), 0).power[4].argmax()) * d.bin for v in (0.0, 5.0))
    assert still - moving == pytest.approx(40.0 * 5.0 / 1500.0, abs=2 * d.bin)


def test_a_post_is_no_streak(config: Any) -> None:
    """Rays at its edges meet it at grazing angles; their energy stays where it stands."""
    post = '<bed depth="400 m"/><obstacles><pier position="20 3 5 m" radius="0.5 m" height="8 m"/></obstacles>'
    d = design("m750d-low", 30.0, 600, {"beams": 64})
    power = imaging.ForwardLookingSonar(d, world(config, post), 0.0, 1).ping(pose((0, 0, 5.0)), 0).power
    near = math.hypot(20.0, 3.0) - 0.5
    inside = (d.ranges > near - 0.1) & (d.ranges < (near + 0.5) / math.cos(math.radians(13.0)) + 0.1)
    assert power[:, inside].max() > 1e6 * power[:, ~inside].max()


def test_labels_say_what_was_seen(config: Any) -> None:
    inner = FLAT + '<obstacles><block position="20 0 15 m" size="2 40 10 m" material="steel"/></obstacles>'
    w = world(config, inner)
    d = design("m750d-low", 40.0, 200, {"beams": 16}, labels=True)
    frame = imaging.ForwardLookingSonar(d, w, 0.0, 1).ping(pose((0, 0, 16.0)), 0)
    assert frame.labels is not None
    wall = frame.labels[8, int(19.1 / d.bin)]
    assert w.palette.names[wall[0]] == "steel"
    assert w.labels[int(wall[1])] == "block 1"
    assert (frame.labels[8, : int(3.5 / d.bin)] == -1).all()


def test_a_body_is_seen_and_a_body_hides(config: Any) -> None:
    w = world(config, '<bed depth="400 m"/>')
    from wavesim_emulators.sonar.scene import object_row

    w.objects = np.array([object_row(1.0, (12.0, 0.0, 100.0), np.eye(3), (1.0, 0.2, 0.2), w.palette["steel"], 3)])
    d = design("m750d-low", 20.0, 200, {"beams": 33, "sector": 1.0}, labels=True)
    frame = imaging.ForwardLookingSonar(d, w, 0.0, 1).ping(pose((0, 0, 100.0)), 0)
    beam, at = np.unravel_index(frame.power.argmax(), frame.power.shape)
    assert (beam, frame.labels[beam, at, 1]) == (16, 3)
    assert (at + 0.5) * d.bin == pytest.approx(11.0, abs=0.2)


# ------------------------------------------------------------------ soundings


def soundings(config: Any, inner: str = FLAT, p: Any = (0, 0, 0.0), changes: Any = None, **given: Any) -> Any:
    pose_ = {k: given.pop(k) for k in ("roll", "pitch", "heading") if k in given}
    d = design("r2sonic-2024", 200.0, 2000, changes, **given)
    return MultibeamSonar(d, world(config, inner), 0.0, 1).ping(pose(p, **pose_), 0).soundings


def test_soundings_of_a_plane_in_any_attitude(config: Any) -> None:
    for roll, pitch, z in ((10.0, 5.0, 0.0), (-10.0, 5.0, 0.3), (3.0, -5.0, -0.3)):
        table = soundings(config, p=(0, 0, z), roll=math.radians(roll), pitch=math.radians(pitch))
        depth = z + table[:, column("z")]
        good = np.isfinite(depth)
        assert good.mean() > 0.95
        assert math.sqrt(np.mean((depth[good] - 20.0) ** 2)) <= 0.02


def test_two_thirds_of_the_soundings_lie_within_their_sigma(config: Any) -> None:
    w = world(config, FLAT)
    d = design("r2sonic-2024", 100.0, 2000, noise=True)
    sonar = MultibeamSonar(d, w, 0.0, 1)
    tables = np.concatenate([sonar.ping(pose((0, 0, 0)), n).soundings for n in range(20)])
    good = tables[:, column("detection")] > 0
    error = np.abs(tables[good, column("z")] - 20.0) / tables[good, column("sigma_z")]
    assert (error < 1.0).mean() == pytest.approx(0.68, abs=0.03)
    assert {1.0, 2.0} <= set(tables[:, column("detection")]), "by amplitude at nadir, by phase outside"


def test_rolled_beams_and_their_spacing(config: Any) -> None:
    table = soundings(config, roll=math.radians(5.0), stabilised=False)
    r = table[:, column("time")] * 750.0
    assert (r[0], r[-1]) == (pytest.approx(47.324, abs=1e-3), pytest.approx(34.869, abs=1e-3))
    angle = soundings(config)[:, column("angle")]
    assert np.degrees(np.diff(angle)) == pytest.approx(0.4706, abs=1e-4)
    across = soundings(config, equidistant=True)[:, column("y")]
    assert np.diff(across) == pytest.approx((across[-1] - across[0]) / 255, abs=1e-6)


def test_wrong_sound_speed_at_the_array(config: Any) -> None:
    """Believed 1 % too high: what comes from 60 deg is taken for 61.008 deg, and 20 m for 19.388 m; nadir is right."""
    sector = 2 * math.asin(1.01 * math.sin(math.radians(60.0)))
    table = soundings(config, changes={"sector": sector, "beams": 101}, assumed_speed=1515.0)
    assert math.degrees(table[-1, column("angle")]) == pytest.approx(61.008, abs=1e-3)
    assert table[-1, column("z")] == pytest.approx(19.388, abs=2e-3)
    assert table[50, column("z")] == pytest.approx(20.0, abs=1e-6)


def test_the_water_column_of_a_multibeam_echosounder(config: Any) -> None:
    """Its fan as a picture, straight down: the bed at h/cos a in each beam, the nadir echo leaking into the outer ones at h, a buoy in the
    water where it hangs."""
    w = world(config, FLAT + '<target name="buoy" position="0 4 12 m" size="0.3 0.1 m"/>')
    d = design("norbit-wbms-water", 40.0, 1600, {"beams": 61})
    frame = imaging.ForwardLookingSonar(d, w, 0.0, 1).ping(pose((0, 0, 5.0)), 0)
    angles = np.linspace(-60.0, 60.0, 61)
    for beam in (30, 20, 45):
        want = 15.0 / math.cos(math.radians(angles[beam]))
        bed = np.where(d.ranges > 10.0, frame.power[beam], 0.0)
        first = np.flatnonzero(bed > 0.1 * bed.max())[0]
        assert d.ranges[first] == pytest.approx(want, rel=0.03)
    assert frame.power[5, int(15.2 / d.bin)] > 1e3 * frame.power[5, int(13.0 / d.bin)], "sidelobes see the bed below"
    water = frame.power[:, : int(14.0 / d.bin)]
    beam, at = np.unravel_index(water.argmax(), water.shape)
    assert angles[beam] == pytest.approx(math.degrees(math.atan2(4.0, 7.0)), abs=2.0)
    assert d.ranges[at] == pytest.approx(math.hypot(4.0, 7.0), abs=0.1)


def test_faint_soundings_are_lost(config: Any) -> None:
    table = soundings(config, changes={"source_level": 140.0})
    lost = table[:, column("detection")] == 0
    assert lost.any()
    assert np.isnan(table[lost][:, 1:9]).all()
    assert np.isfinite(table[:, column("down")]).all(), "the truth is there all the same"


def test_levels_come_back_from_numbers(config: Any) -> None:
    """A reader recovers dB from gain, floor and span."""
    d = design("m750d-low", 30.0, 200, {"beams": 16}, bits=16, floor=30.0, span=120.0)
    frame = imaging.ForwardLookingSonar(d, world(config, FLAT), 0.0, 1).ping(pose((0, 0, 15.0)), 0)
    recovered = frame.levels * d.span / d.top + d.floor - d.gain_dB
    lit = (frame.levels > 0) & (frame.levels < d.top)
    assert lit.sum() > 500
    assert recovered[lit] == pytest.approx(dB(frame.power)[lit], abs=0.01)


# ------------------------------------------------------------------ a scanning sonar


def test_a_turning_head_bends_a_tank(config: Any) -> None:
    """5 deg/s to starboard while the head goes round: a straight wall bends by that times the time; the true headings undo it."""
    walls = "".join(
        f'<block position="{8.5 * n} {8.5 * e} 5 m" size="{1 + 30 * abs(e)} {1 + 30 * abs(n)} 10 m"/>'
        for n, e in ((1, 0), (0, 1), (-1, 0), (0, -1))
    )
    d = design("ping360", 20.0, 1200)
    head = imaging.ScanningSonar(d, world(config, f'<bed depth="400 m"/><obstacles>{walls}</obstacles>'), 0.0, 1)
    rate, step = math.radians(5.0), 0.0125
    headings = rate * step * np.arange(400)
    pings = [head.ping(pose((0, 0, 5.0), heading=h, w=(0, 0, rate)), n) for n, h in enumerate(headings)]
    r = d.ranges[[int(p.power[0].argmax()) for p in pings]]
    azimuth = np.array([p.azimuth for p in pings])
    assert np.diff(np.degrees(azimuth)) == pytest.approx(0.9)

    def normal(steps: slice, turned: Any) -> float:
        """Direction (deg) to a straight wall that those steps saw."""
        a = azimuth[steps] + turned
        slope = np.polyfit(r[steps] * np.sin(a), r[steps] * np.cos(a), 1)[0]
        return float(np.degrees(np.arctan(-slope)))

    first, last = slice(0, 24), slice(376, 400)  # the wall astern, when the head begins and when it ends
    bent = normal(first, 0.0) - normal(last, 0.0)
    assert bent == pytest.approx(math.degrees(headings[last].mean() - headings[first].mean()), abs=1.5)
    assert 22.0 < bent < 25.0
    assert normal(first, headings[first]) - normal(last, headings[last]) == pytest.approx(0.0, abs=0.9), "one step"
    a = azimuth + headings
    off = np.maximum(np.abs(r * np.cos(a)), np.abs(r * np.sin(a))) - 8.0
    assert np.abs(off).max() < 0.25
    assert np.median(np.abs(off)) < 0.05


def test_numbers_of_a_ping360() -> None:
    """Units of 25 ns: 1200 samples of 80 are 1.8 m, 50 m need 2222; a turn has 400 steps."""
    from wavesim_devices.ping360 import GRADIANS_PER_TURN, SAMPLE_S
    from wavesim_world.sonars import presets

    assert pytest.approx(1.8) == 1200 * 80 * SAMPLE_S * 750.0
    assert round(50.0 / (1200 * SAMPLE_S * 750.0)) == 2222
    p = presets.find_preset("ping360")
    assert round(p.sector / p.step) == GRADIANS_PER_TURN == 400


def test_footprints_of_one_degree_at_20_m(config: Any) -> None:
    """At nadir 0.349 m; at 60 deg 0.698 m along; across 1.396 m for beams that are as wide there, twice that for a flat array, which
    is shorter when it is steered."""
    d = design("r2sonic-2024", 60.0, 2000, {"beams": 3, "beam": math.radians(1.0), "vertical": math.radians(1.0)})
    from wavesim_emulators.sonar.design import sounding_rays
    from wavesim_world.sonars import patterns

    angles = np.radians([-60.0, 0.0, 60.0])
    rays = sounding_rays(d, angles)
    r = 20.0 / np.cos(angles)
    cell = patterns.HALF_POWER / (2 * 1.2 / 3)  # of a -3 dB width in cells of its rays
    across = (rays.du[1::3] * cell) * r / np.cos(angles)
    along = rays.de[0] * cell * r
    assert along == pytest.approx([0.698, 0.349, 0.698], abs=0.002)
    assert across == pytest.approx([2 * 1.396, 0.349, 2 * 1.396], rel=0.01)
