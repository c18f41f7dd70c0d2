"""Levels of echoes against the sonar equation: beds, targets, facets, patterns, absorption."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.emulators.sonar import dB, design, pose, world
from wavesim_emulators.sonar import imaging, ray_kernels
from wavesim_emulators.sonar.design import RayFan, cells
from wavesim_emulators.sonar.multibeam import SOUNDING_COLUMNS, MultibeamSonar
from wavesim_world.ocean.sound import francois_garrison
from wavesim_world.sonars import materials, patterns

TABLE = {
    "rock": "-19.0 -17.4 -16.4 -14.6 -13.4 -12.8 -13.0",
    "gravel": "-20.7 -19.1 -18.1 -16.1 -13.9 -13.1 -13.2",
    "sandy-gravel": "-22.8 -21.4 -20.3 -17.6 -15.0 -13.4 -13.3",
    "coarse-sand": "-29.1 -23.9 -23.7 -20.1 -16.7 -12.2 -10.3",
    "medium-sand": "-33.2 -25.1 -21.8 -21.4 -19.2 -13.6 -9.3",
    "fine-sand": "-36.7 -27.7 -24.6 -23.6 -22.1 -17.3 -9.9",
    "very-fine-sand": "-35.1 -26.8 -25.6 -24.5 -23.5 -20.9 -10.1",
    "coarse-silt": "-32.0 -27.8 -26.4 -25.0 -24.1 -23.0 -8.8",
    "sandy-mud": "-35.7 -31.8 -29.9 -28.3 -27.4 -26.5 -9.9",
    "clay": "-36.4 -32.0 -30.1 -28.4 -27.4 -26.7 -10.6",
}
GRAZING = np.radians([10.0, 20.0, 30.0, 45.0, 60.0, 75.0, 90.0])
SAND = '<material name="lambert" law="smooth" lambert="-18"/><ground material="lambert"/>'


@pytest.mark.parametrize("name", TABLE)
def test_sediments_scatter_as_the_table_of_the_report(name: str) -> None:
    sediment = materials.LIBRARY[name].sediment
    assert sediment is not None
    assert dB(sediment.backscatter(100e3, 1500.0, GRAZING)) == pytest.approx(
        np.array(TABLE[name].split(), float), abs=0.06
    )


def test_medium_sand_at_30_kHz() -> None:
    want = [-36.6, -28.4, -24.8, -23.1, -21.3, -15.0, -3.2]
    assert dB(materials.Sediment.from_grain_size(1.5).backscatter(30e3, 1500.0, GRAZING)) == pytest.approx(
        want, abs=0.06
    )


def test_closed_forms_of_targets_at_450_kHz() -> None:
    wavelength = 1500.0 / 450e3
    found = [
        materials.sphere(0.1),
        materials.cylinder(0.05, 0.5, wavelength),
        materials.plate(0.3, 0.3, wavelength),
        materials.trihedral(0.1, wavelength),
    ]
    assert dB(np.array(found)) == pytest.approx([-26.0, 2.7, 28.6, 4.8], abs=0.06)


def test_absorption_is_that_of_the_table() -> None:
    """10 C, 35, 0 m, pH 8.1; dB/km."""
    table = {100: 33.7, 200: 54.5, 300: 73.2, 400: 96.1, 450: 109.7, 750: 222, 900: 300, 1200: 495, 2100: 1419}
    for kHz, want in table.items():
        assert 1e3 * francois_garrison(kHz * 1e3, 10.0, 35.0, 0.0, 8.1) == pytest.approx(want, rel=0.005)


def test_pattern_of_a_uniform_line() -> None:
    x = np.linspace(1.0, 2.0, 10001)
    assert dB(patterns.line(x).max()) == pytest.approx(-13.26, abs=0.01)
    assert patterns.line(np.array([patterns.HALF_POWER / 2]))[0] == pytest.approx(0.5, abs=1e-4)
    assert patterns.energy_width() == pytest.approx(1.0, abs=0.005)
    assert patterns.energy_width(two_way=True) == pytest.approx(2 / 3, abs=1e-3)
    length = patterns.length(math.radians(1.0), 1500 / 720e3)
    assert length == pytest.approx(0.1058, abs=1e-4)
    assert length**2 / (1500 / 720e3) == pytest.approx(5.4, abs=0.05)
    for shading, sidelobe in (("hann", -31.5), ("hamming", -42.4)):
        x = np.linspace(2.0, 6.0, 40001)
        assert dB(patterns.line(x, shading).max()) == pytest.approx(sidelobe, abs=0.3)
        assert patterns.line(np.array([patterns.HALF_POWER * patterns.SHADINGS[shading][0] / 2]), shading)[
            0
        ] == pytest.approx(0.5, abs=2e-3)


def test_strip_of_a_side_scan(config: Any) -> None:
    """SL 210, 450 kHz, 20 kHz, Lambert -18 dB, 10 m: by EL = SL - 40 log r - 2 alpha r + S_b + 10 log(r phi (c/2B)/cos g)."""
    d = design(
        "starfish-450",
        80.0,
        2133,
        {"bandwidth": 20e3, "beam": math.radians(0.5), "vertical": math.radians(170.0), "tilt": 0.0},
        absorption=0.1097,
    )
    sonar = imaging.SideScanSonar(d, world(config, f'{SAND}<bed depth="20 m"/>'), 0.0, 1)
    near = sonar.ping(pose((0.0, 0.0, 10.0)), 0).power
    sonar.side = 0.0  # the sonar equation knows no near field
    power = sonar.ping(pose((0.0, 0.0, 10.0)), 1).power
    k = int(15.0 / d.bin)
    assert dB(near[0, k] / power[0, k]) == pytest.approx(dB(d.array / (15.0 * math.radians(0.5))), abs=0.05)
    phi = 2 / 3 * d.wavelength / d.array  # energy width of the pattern, both ways
    narrow = 10 * math.log10(phi / math.radians(0.5))
    for r, level in ((15.0, 116.33), (30.0, 96.97), (50.0, 81.32), (75.0, 66.98)):
        e = math.asin(10.0 / r)
        across = dB(patterns.line(np.sin(e) * d.height / d.wavelength) ** 2)
        some = power[:, int(r / d.bin) - 3 : int(r / d.bin) + 4].mean(axis=1)
        assert dB(some) - across - narrow == pytest.approx(level, abs=0.5)


def test_a_small_sphere_is_a_point(config: Any) -> None:
    """0.1 m at 10 m, SL 210, 750 kHz: 139.53 dB."""
    deep = '<bed depth="500 m"/><target name="ball" position="10 0 100 m" size="0.1 0.1 m"/>'
    d = design("m750d-low", 20.0, 1067, {"beams": 33, "sector": 1.0}, absorption=0.2224)
    sonar = imaging.ForwardLookingSonar(d, world(config, deep), 0.0, 1)
    power = sonar.ping(pose((0, 0, 100.0)), 0).power
    assert dB(power.max(axis=0).sum()) == pytest.approx(139.53, abs=0.1)
    assert np.unravel_index(power.argmax(), power.shape)[0] == 16
    far = world(config, deep.replace("10 0 100", "20 0 100"))
    twice = imaging.ForwardLookingSonar(
        design("m750d-low", 25.0, 1333, {"beams": 33, "sector": 1.0}, absorption=0.2224), far, 0.0, 1
    )
    lower = dB(twice.ping(pose((0, 0, 100.0)), 0).power.max(axis=0).sum()) - dB(power.max(axis=0).sum())
    assert lower == pytest.approx(-12.04 - 2 * 0.2224 * 10.0, abs=0.1)


def sphere_strength(config: Any, material: str, rays: int) -> float:
    """Of a sphere of 0.5 m that so many rays meet, by the energy of all of them."""
    w = world(config, f'<bed depth="900 m"/>{material}')
    w.objects = np.array([_sphere(w.palette["ball"] if "ball" in w.palette.names else w.palette["lambert"])])
    d = design("m750d-low", 120.0, 200, {"beams": 9, "sector": 0.2})
    image = imaging.ImagingSonar(d, w, 0.0, 1, 1)
    half = 0.006
    n = max(3, round(math.sqrt(rays * 4 / math.pi) * half / 0.005))
    a, width = cells(half, n)
    fan = RayFan(a, np.full(n, width), a, np.full(n, width), np.ones(n), np.ones(n))
    energy, _ = image.echo_energy(pose((0, 0, 100.0)), np.eye(3), fan, 0.0)
    r = 99.5  # near enough to a plane wave
    return float(dB(energy.sum()) - 210.0 + 40.0 * math.log10(r))


def _sphere(material: int) -> Any:
    from wavesim_emulators.sonar.scene import object_row

    return object_row(ray_kernels.SPHERE, (100.0, 0.0, 100.0), np.eye(3), (0.5, 0.5, 0.5), material, 5)


def test_spheres_of_facets_and_of_lambert(config: Any) -> None:
    smooth = '<material name="ball" law="smooth" lambert="-100" reflection="1" slope="0.1"/><ground material="ball"/>'
    assert sphere_strength(config, smooth, 300) == pytest.approx(-12.04, abs=0.2)
    rough = '<material name="ball" law="smooth" lambert="-27"/><ground material="ball"/>'
    assert sphere_strength(config, rough, 70) == pytest.approx(-29.81, abs=0.2)


def test_twice_the_rays_the_same_sum_and_no_empty_bin(config: Any) -> None:
    """A flat bottom 5 m below, a fan of 20 deg, 500 bins to 50 m: 64 spread rays within 0.2 dB rms of many."""
    w = world(config, f'{SAND}<bed depth="25 m"/>')
    d = design("m750d-low", 50.0, 500, {"beams": 3, "sector": 0.05})
    image, here = imaging.ImagingSonar(d, w, 0.0, 1, 1), pose((0, 0, 20.0))

    def by(count: int) -> Any:
        e, de = cells(math.radians(10.0), count)
        fan = RayFan(np.zeros(1), np.full(1, 0.01), e, np.full(count, de), np.ones(1), np.ones(count))
        return image.echo_energy(here, imaging.forward_axes(math.radians(10.0)), fan, 0.0)[0][0]

    few, twice, many = by(64), by(128), by(8192)
    lit = slice(160, 480)
    assert (few[lit] > 0.0).all()
    assert math.sqrt(np.mean((dB(few[lit]) - dB(many[lit])) ** 2)) < 0.25
    assert dB(few.sum() / twice.sum()) == pytest.approx(0.0, abs=0.05)


def test_scene_and_sonar_turned_together(config: Any) -> None:
    inner = (
        '{}<bed depth="20 m"/><obstacles><block position="{} {} 15 m" size="2 3 10 m" heading="{} deg"/></obstacles>'
    )
    d = design("m750d-low", 30.0, 100, {"beams": 32})
    straight = (
        imaging.ForwardLookingSonar(d, world(config, inner.format(SAND, 15, 0, 20)), 0.0, 1)
        .ping(pose((0, 0, 12.0)), 0)
        .power
    )
    c, s = 15 * math.cos(1.0), 15 * math.sin(1.0)
    turned = world(config, inner.format(SAND, repr(c), repr(s), repr(20 + math.degrees(1.0))))
    power = imaging.ForwardLookingSonar(d, turned, 0.0, 1).ping(pose((0, 0, 12.0), heading=1.0), 0).power
    assert power == pytest.approx(straight, rel=1e-6)


def test_two_points_are_separated_by_the_resolution(config: Any) -> None:
    def profile(gap: float, side: float) -> tuple[Any, Any]:
        y0, y1 = -0.5 * side, 0.5 * side
        targets = "".join(
            f'<target name="t{i}" position="{10 * math.cos(y) + dx!r} {10 * math.sin(y)!r} 100 m" size="0.02 0.1 m"/>'
            for i, (y, dx) in enumerate(((y0, -gap / 2), (y1, gap / 2)))
        )
        d = design("m750d-low", 12.0, 3200, {"beams": 61, "sector": 0.08, "shading": "none"})
        power = (
            imaging.ForwardLookingSonar(d, world(config, f'<bed depth="900 m"/>{targets}'), 0.0, 1)
            .ping(pose((0, 0, 100.0)), 0)
            .power
        )
        return power.max(axis=0), power.max(axis=1)

    def dip(line: Any) -> float:
        """dB between the lower of two peaks and what lies between; 0 = one peak."""
        high = np.flatnonzero((line[1:-1] > line[:-2]) & (line[1:-1] >= line[2:]) & (line[1:-1] > 0.5 * line.max())) + 1
        return 0.0 if len(high) < 2 else float(dB(line[high].min() / line[high[0] : high[-1]].min()))

    cell, beam = 1500.0 / 80e3, math.radians(1.0)
    assert dip(profile(1.5 * cell, 0.0)[0]) > 3.0
    assert dip(profile(0.5 * cell, 0.0)[0]) == 0.0
    assert dip(profile(0.0, 1.5 * beam)[1]) > 3.0
    assert dip(profile(0.0, 0.5 * beam)[1]) == 0.0


def test_bin_length_does_not_change_the_level_of_a_bed(config: Any) -> None:
    w, here = world(config, f'{SAND}<bed depth="20 m"/>'), pose((0, 0, 16.0))
    levels = [
        imaging.ForwardLookingSonar(design("m750d-low", 30.0, bins, {"beams": 8, "sector": 0.2}), w, 0.0, 1)
        .ping(here, 0)
        .power[4]
        for bins in (1600, 3200)
    ]
    assert dB(levels[1].reshape(-1, 2).mean(axis=1)[1400:1500] / levels[0][1400:1500]) == pytest.approx(0.0, abs=0.1)


def test_nadir_of_an_echosounder_is_beam_limited_or_pulse_limited(config: Any) -> None:
    """A beam straight down: h^2 phi phi when the pulse is long."""
    w = world(config, f'{SAND}<bed depth="30 m"/>')
    d = design("norbit-wbms", 50.0, 100, {"beams": 3, "sector": 0.1, "bandwidth": 2e3})
    frame = MultibeamSonar(d, w, 0.0, 1).ping(pose((0, 0, 10.0)), 0)
    phi = d.wavelength / d.array * d.wavelength / d.height  # energy widths, one way each
    want = 10 * math.log10(d.energy_per_ray) - 40 * math.log10(20.0) - 18.0 + 10 * math.log10(20.0**2 * phi)
    assert frame.soundings[1, SOUNDING_COLUMNS.index("level")] == pytest.approx(want, abs=0.7)
