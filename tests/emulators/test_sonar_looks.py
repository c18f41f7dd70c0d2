"""Texture of beds, edges of objects and regions, ghosts, and the water column."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.emulators.sonar import dB, design, pose, world
from wavesim_emulators.sonar import imaging, ray_kernels
from wavesim_emulators.sonar.multipath_kernels import ghost_profile
from wavesim_world.config import imaging_checks
from wavesim_world.sonars import materials, patterns

LAMBERT = '<material name="lambert" law="smooth" lambert="-18"/><ground material="lambert"/>'


def ground(material: str, even: bool = False) -> str:
    """A bed of a sediment of the library, or the same without texture."""
    grain = {"medium-sand": 1.5, "sandy-gravel": -1.0}[material]
    own = f'<material name="even" grain="{grain}" texture="0" ripple="0"/>' if even else ""
    return f'{own}<ground material="{"even" if even else material}"/><bed depth="20 m"/>'


@pytest.mark.parametrize("material", ["medium-sand", "sandy-gravel"])
def test_texture_does_not_change_the_mean_level(config: Any, material: str) -> None:
    """Within 0.1 dB over 80 fans on 1 km2, at every range together."""
    total = []
    for even in (False, True):
        rng = np.random.default_rng(4)
        d = design("m750d-low", 40.0, 200, {"beams": 48})
        sonar = imaging.ForwardLookingSonar(d, world(config, ground(material, even)), 0.0, 1)
        found = 0.0
        for n in range(80):
            x, y, heading = rng.uniform(0.0, 1000.0), rng.uniform(0.0, 1000.0), rng.uniform(0.0, 6.28)
            found = found + sonar.ping(pose((x, y, 15.0), heading=heading), n).power[:, 100:].mean(axis=0)
        total.append(found)
    ratio = total[0] / total[1]
    assert dB(ratio.mean()) == pytest.approx(0.0, abs=0.1)
    assert np.abs(dB(ratio)).max() < 0.6, "no range is brighter than others"


def lines(config: Any, inner: str, y: float, preset: str = "starfish-450", **changes: Any) -> Any:
    """Powers (pings, 2, bins) of a side-scan sonar that sails north, 6 m above the bed."""
    d = design(preset, 30.0, 600, changes or None)
    sonar = imaging.SideScanSonar(d, world(config, inner), 0.0, 1)
    return np.array([sonar.ping(pose((0.25 * n, y, 14.0)), n).power for n in range(80)]), d.ranges


def test_the_bed_looks_the_same_from_both_sides_and_in_every_copy_of_the_world(config: Any) -> None:
    bed = ground("sandy-gravel")
    (east, r), (west, _), (again, _) = (lines(config, bed, y) for y in (0.0, 36.0, 0.0))
    assert (east == again).all()
    (even, _) = lines(config, ground("sandy-gravel", even=True), 0.0)
    across = np.arange(10.0, 26.0, 0.1)

    def map_of(power: Any, away: Any, side: int) -> Any:
        """Strength over the ground, relative to an even bed."""
        relative = power[:, side] / np.maximum(even[:, side], 1e-30)
        return np.log([np.interp(away, np.sqrt(np.maximum(r**2 - 36.0, 0.0)), line) for line in relative])

    found, other = map_of(east, across, 1), map_of(west, 36.0 - across[::-1], 0)[:, ::-1]
    assert found.std() > 0.3
    assert np.corrcoef(found.ravel(), other.ravel())[0, 1] > 0.85
    assert np.abs(np.log(even[1:] / even[:-1])[:, :, 200:]).max() < 1e-5, "without texture, the bed is even"


def test_ripples_show_across_their_crests(config: Any) -> None:
    """A line along the crests looks across them; a sonar whose cells are longer than the ripples does not see them."""

    def contrast(heading: float, length: float) -> float:
        own = (
            f'<material name="own" grain="1.5" texture="0" ripple="0.3" ripple_length="{length} m" '
            f'ripple_heading="{heading} deg"/><ground material="own"/><bed depth="20 m"/>'
        )
        power, r = lines(config, own, 0.0)
        there = (r > 12.0) & (r < 25.0)
        return float(np.log(power[:, 1, there] / power[:, 1, there].mean(axis=0)).std())

    assert contrast(90.0, 1.0) > 0.35, "the sonar looks east, across crests that run north"
    assert contrast(0.0, 1.0) < 0.1
    assert contrast(90.0, 0.04) < 0.1


def test_keys_of_a_texture(config: Any) -> None:
    inner = (
        '<material name="typical" grain="1.4"/><material name="smooth" law="smooth"/>'
        '<material name="patchy" grain="1.4" patch="2"/>'
        '<material name="own" grain="6" texture="3" scale="1 m" ripple="0.2" ripple_length="50 cm" ripple_heading="90 deg"/>'
    )
    found = imaging_checks.materials_of(config(f"<world>{inner}</world>").config.world)
    assert found["typical"].texture == materials.LIBRARY["medium-sand"].texture
    assert found["smooth"].texture == materials.Texture()
    assert (found["patchy"].texture.variation, found["patchy"].texture.ripple) == (0.0, 0.15)
    assert found["own"].texture == materials.Texture(3.0, 1.0, 0.2, 0.5, math.pi / 2)


def test_shadows_end_where_the_top_of_the_wall_hides_the_bed(config: Any) -> None:
    """Rays are 0.6 deg apart, that is 1.3 m of range here; edges are found within an eighth of this."""
    d = design("m750d-low", 40.0, 1600, {"beams": 24, "sector": 0.6})
    for height in (0.5, 0.7, 0.83, 1.0, 1.13):
        wall = f'<obstacles><block position="20 0 {20 - height / 2} m" size="0.02 60 {height} m"/></obstacles>'
        line = imaging.ForwardLookingSonar(d, world(config, f'{LAMBERT}<bed depth="20 m"/>{wall}'), 0.0, 1)
        power = line.ping(pose((0, 0, 15.0)), 0).power[12]
        want = math.hypot(20.0 * 5.0 / (5.0 - height), 5.0)
        lit = power[int((want + 1.5) / d.bin)]
        dark = np.flatnonzero((power < 0.5 * lit) & (d.ranges > 20.9) & (d.ranges < want + 3.0))
        assert (dark[-1] + 1) * d.bin == pytest.approx(want, abs=0.25)


def test_regions_begin_at_their_border(config: Any) -> None:
    """Within two bins, though a ray covers 40 of them; an irregular border keeps the area of the region."""
    pair = LAMBERT.replace(
        '"lambert"/>', '"lambert"><region material="bright" position="60 0 m" size="80 80 m" {}/></ground>'
    )
    own = '<material name="bright" law="smooth" lambert="-8"/>' + pair + '<bed depth="20 m"/>'
    d = design("m750d-low", 40.0, 1600, {"beams": 24, "sector": 0.3})
    w = world(config, own.format('edge="0 m"'))
    power = imaging.ForwardLookingSonar(d, w, 0.0, 1).ping(pose((0, 0, 15.0)), 0).power[12]
    middle = math.sqrt(power[int(19.6 / d.bin)] * power[int(21.6 / d.bin)])
    at = np.flatnonzero((power > middle) & (d.ranges > 15.0))[0] * d.bin
    assert at == pytest.approx(math.hypot(20.0, 5.0), abs=2 * d.bin)

    rough = world(config, own.format('edge="0.5 m"')).bed
    x, y = np.meshgrid(np.arange(10.0, 110.0, 0.25), np.arange(-50.0, 50.0, 0.25), indexing="ij")
    is_bright = np.array(
        [
            ray_kernels.material_at(a, b, rough.material, rough.regions, rough.grid, rough.raster) != rough.material
            for a, b in zip(x.ravel(), y.ravel(), strict=True)
        ]
    ).reshape(x.shape)
    assert is_bright.sum() * 0.25**2 == pytest.approx(80.0**2, rel=0.01)
    first = np.array([x[line.argmax(), 0] for line in is_bright[:, np.abs(y[0]) < 35.0].T])
    assert first.std() == pytest.approx(0.5, rel=0.4)
    assert first.mean() == pytest.approx(20.0, abs=0.5)


def test_ghosts_of_a_target_have_the_range_and_the_level_of_their_paths(config: Any) -> None:
    """Sonar at 4 m, sphere at 6 m and 20 m away: by the surface once (two paths) and twice."""
    inner = '<bed depth="900 m"/><target name="ball" position="20 0 6 m" size="0.1 0.1 m"/>'
    changes = {"beams": 33, "sector": 1.0, "vertical": math.radians(60.0)}
    alpha, wind = 0.2, 4.0
    d = design("m750d-low", 40.0, 2000, changes, absorption=alpha, surface=True)
    none = design("m750d-low", 40.0, 2000, changes, absorption=alpha, surface=True, multipath=False)
    w = world(config, inner)
    power, plain = (imaging.ForwardLookingSonar(x, w, wind, 1).ping(pose((0, 0, 4.0)), 0).power[16] for x in (d, none))
    ghosts = power - plain
    r, s = math.hypot(20.0, 2.0), math.hypot(20.0, 10.0)

    def gain(height: float) -> float:
        return float(patterns.line(np.array(height * d.height / d.wavelength)))

    def level(of: Any, begin: float) -> float:
        return float(dB(of[(d.ranges > begin - 0.05) & (d.ranges < begin + 0.95)].sum()))

    loss = materials.surface_loss(750e3, wind, math.asin(10.0 / s))
    direct = level(plain, r)
    way = -20.0 * math.log10(s / r) - alpha * (s - r) - loss + dB(gain(10.0 / s) / gain(2.0 / r))
    assert direct == pytest.approx(210.0 - 40 * math.log10(r) - 2 * alpha * r - 26.02 + 2 * dB(gain(2.0 / r)), abs=0.3)
    assert level(ghosts, 0.5 * (r + s)) == pytest.approx(direct + way + 3.01, abs=0.3)
    assert level(ghosts, s) == pytest.approx(direct + 2 * way, abs=0.3)
    first = d.ranges[np.flatnonzero(ghosts > 1e-3 * ghosts.max())[0]]
    assert first == pytest.approx(0.5 * (r + s), abs=0.05), "no ghost is earlier"


def test_objects_have_the_ghosts_of_targets(config: Any) -> None:
    """A rough sphere, as an object: all ghosts together, within 1 dB of the paths to its near side."""
    from wavesim_emulators.sonar.scene import object_row

    w = world(config, f'{LAMBERT}<bed depth="900 m"/>')
    w.objects = np.array([object_row(ray_kernels.SPHERE, (20.0, 0.0, 6.0), np.eye(3), (1.0, 1.0, 1.0), 0, 5)])
    changes = {"beams": 33, "sector": 0.3, "vertical": math.radians(40.0)}
    powers = [
        imaging.ForwardLookingSonar(design("m750d-low", 40.0, 1000, changes, surface=True, multipath=on), w, 2.0, 1)
        .ping(pose((0, 0, 4.0)), 0)
        .power
        for on in (True, False)
    ]
    r, s = math.hypot(20.0, 2.0) - 0.7, math.hypot(20.0, 10.0) - 0.7
    loss = materials.surface_loss(750e3, 2.0, math.asin(10.0 / s))
    x = design("m750d-low", 40.0, 1000, changes)
    gain = [float(patterns.line(np.array(h * x.height / x.wavelength))) for h in (2.0 / r, 10.0 / s)]
    way = 10 ** (-0.1 * loss) * (r / s) ** 2 * gain[1] / gain[0]
    assert dB((powers[0] - powers[1]).sum() / powers[1].sum()) == pytest.approx(dB(2 * way + way**2), abs=1.0)


def test_the_last_bin_has_no_energy_from_beyond_the_range() -> None:
    """The tail of a ghost is the same in an image with more bins; the last bin was once 20 dB too bright."""
    for begin in (4.05, 9.0, 9.93, 9.999):
        short, long = np.zeros((1, 100), np.float32), np.zeros((1, 400), np.float32)
        for profile in (short, long):
            ghost_profile(np.array([begin, 1.0, 0.0, 0.5]), 0.1, profile)
        assert (short == long[:, :100]).all()
        assert long.sum() == pytest.approx(1.0, abs=1e-6)


def test_second_bottom_echoes_of_a_side_scan(config: Any) -> None:
    """4 m deep in 10 m: at the altitude plus the depth. The array does not look straight up."""
    inner = '<ground material="gravel"/><bed depth="10 m"/>'
    given = {"changes": {"vertical": math.radians(100.0)}, "surface": True}
    power, plain = (
        imaging.SideScanSonar(design("starfish-450", 30.0, 600, multipath=on, **given), world(config, inner), 0.0, 1)
        .ping(pose((0, 0, 4.0)), 0)
        .power[0]
        for on in (True, False)
    )
    more = power - plain
    there = int(16.0 / 0.05)
    assert more[there - 2 : there + 8].max() > 100.0 * max(more[: there - 3].max(), 1e-30)


def test_the_water_is_not_black(config: Any) -> None:
    """SL + Sv + 10 log(Psi c/2B) - 20 log r: above the floor of the default receiver in coastal water."""
    d = design("m750d-low", 30.0, 400, {"beams": 48, "sector": 0.3}, volume=-70.0, floor=110.0)
    frame = imaging.ForwardLookingSonar(d, world(config, '<bed depth="900 m"/>'), 0.0, 1).ping(pose((0, 0, 100.0)), 0)
    psi = patterns.energy_width("hamming") * d.wavelength / d.array * patterns.energy_width(two_way=True) / d.height
    want = 210.0 - 70.0 + dB(psi * d.wavelength * max(d.pulse, d.bin)) - 20.0 * np.log10(d.ranges)
    assert dB(frame.power[24])[100:] == pytest.approx(want[100:], abs=0.3)
    assert (frame.levels[24, 200:] > 0).all()


def test_a_turn_leaves_no_steps(config: Any) -> None:
    """30 deg/s with a beam of 0.3 deg: the far bed is lost, smoothly; the pattern was once constant over 75 bins."""
    w = world(config, f'{LAMBERT}<bed depth="20 m"/>')
    d = design("edgetech-2205-540", 60.0, 600)
    line = imaging.SideScanSonar(d, w, 0.0, 1).ping(pose((0, 0, 12.0), w=(0, 0, math.radians(30.0))), 0).power[0]
    steps = np.abs(np.diff(dB(line[250:])))
    assert steps.max() < 4.0 * np.median(steps) + 0.05
    assert dB(line[300] / line[590]) > 12.0


def test_bubbles_scatter_and_absorb_at_the_surface() -> None:
    """APL-UW TR 9407: in a strong wind, the strength is that of the thick layer, whatever the wind."""
    thick = 0.0136 / (8.0 * math.pi * 0.0255 * 100.0 ** (1 / 3))
    strong = materials.surface_backscatter(100e3, 20.0)
    assert strong[60] == pytest.approx(thick * 0.5, rel=0.02)
    assert materials.surface_backscatter(100e3, 0.0)[60] < 1e-2 * strong[60]
    assert materials.surface_loss(30e3, 10.0, math.radians(30.0)) == pytest.approx(
        1.26e-3 * 10**1.57 * 30**0.85 / 0.5, rel=1e-6
    )
    assert materials.surface_loss(750e3, 15.0, 0.1) == materials.MAX_SURFACE_LOSS
