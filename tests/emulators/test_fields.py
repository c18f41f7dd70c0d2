"""Magnetometer and current profiler: geometry by hand, noise against the data sheet, limits, refusals."""

from __future__ import annotations

import math
from typing import Any

import allantools
import numpy as np
import pytest

from tests.emulators.bench import Make, bench
from wavesim_emulators.adcp import AdcpEmulator
from wavesim_emulators.magnetometer import MagnetometerEmulator, field
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.instruments import magnetic_heading

FIELD = '<magnetic field="15 -2 48 uT"/>'
COS, SIN = math.cos(math.radians(25)), math.sin(math.radians(25))

# ------------------------------------------------------------------ magnetometer


def test_the_earths_field_is_that_of_the_world_magnetic_model(config: Make) -> None:
    """The rows at the surface of NOAA's own table for WMM2025 (WMM2025_TEST_VALUES.txt of its coefficients): units, axes, the sign of down,
    and the change with the years."""
    for year, latitude, longitude, north, east, down in (
        (2025.0, 80.0, 0.0, 6521.6, 145.9, 54791.5),
        (2025.0, 0.0, 120.0, 39677.8, -109.6, -10580.2),
        (2025.0, -80.0, -120.0, 6117.5, 15751.9, -52022.5),
        (2027.5, 80.0, 0.0, 6500.8, 294.5, 54869.4),
        (2027.5, 0.0, 120.0, 39701.6, -167.4, -10381.8),
        (2027.5, -80.0, -120.0, 6200.7, 15730.3, -51783.7),
    ):
        place = f'<world latitude="{latitude} deg" longitude="{longitude} deg"><magnetic year="{year}"/></world>'
        assert 1e9 * field(config(place).config.world) == pytest.approx([north, east, down], abs=0.06)


def test_a_heading_follows_from_the_field_at_any_attitude(config: Make) -> None:
    """Fails when the field is turned the wrong way, or the declination has the wrong sign."""
    b = bench(config, MagnetometerEmulator, 'grade="none"', world=FIELD)
    declination = math.atan2(-2.0, 15.0)
    for tick, (roll, pitch, heading) in enumerate(((0, 0, 0.3), (0.4, -0.3, 2.0), (-1.0, 0.9, 4.0), (2.5, 0.2, 6.0))):
        b.put((0.0, 0.0, 5.0), (roll, pitch, heading))
        found = b.at(tick)["field"][0]
        assert np.linalg.norm(found) == pytest.approx(1e-6 * math.sqrt(15**2 + 2**2 + 48**2))
        true = math.remainder(magnetic_heading(found, roll, pitch) + declination - heading, 2 * math.pi)
        assert abs(true) < 1e-9


def test_hard_and_soft_iron_move_and_bend_the_circle(config: Make) -> None:
    iron = 'hard_iron="3 -1 2 uT" soft_iron="1.1 0.05 0 0.02 0.9 0 0 0 1.2" attitude="0 0 90 deg"'
    b = bench(config, MagnetometerEmulator, f'grade="none" {iron}', world=FIELD)
    for tick, heading in enumerate(np.linspace(0.0, 6.0, 5)):
        b.put((0.0, 0.0, 5.0), (0.1, 0.2, heading))
        R_WS = rotation(quaternion(0.1, 0.2, heading)) @ rotation(quaternion(0.0, 0.0, math.pi / 2))
        soft = np.array([[1.1, 0.05, 0.0], [0.02, 0.9, 0.0], [0.0, 0.0, 1.2]])
        assert b.at(tick)["field"][0] == pytest.approx(
            soft @ R_WS.T @ (15e-6, -2e-6, 48e-6) + (3e-6, -1e-6, 2e-6), abs=1e-15
        )


@pytest.mark.parametrize(("grade", "sigma", "step"), [("rm3100", 15e-9, 1e-6 / 75), ("hmc5883l", 200e-9, 1e-4 / 1090)])
def test_noise_and_steps_are_those_of_the_data_sheet(config: Make, grade: str, sigma: float, step: float) -> None:
    """White: an Allan deviation of sigma/sqrt(n), with that of the steps (`allantools`); a tilt between steps, so that these are random."""
    b = bench(config, MagnetometerEmulator, f'grade="{grade}" rate="25 Hz"', world=FIELD, bodies=20)
    for row in range(20):
        b.put((0.0, 0.0, 5.0), (0.01 * row, 0.02 * row, 0.3 * row), row=row)
    series = np.array([b.at(10 * k)["field"][:20].copy() for k in range(600)])
    assert np.abs(series / step - np.round(series / step)).max() < 1e-6
    whole = math.hypot(sigma, step / math.sqrt(12))
    taus = [0.04, 0.4]
    found = [allantools.oadev(x, rate=25.0, data_type="freq", taus=taus)[1] ** 2 for x in series.reshape(600, 60).T]
    assert np.sqrt(np.mean(found, axis=0)) == pytest.approx([whole, whole / math.sqrt(10)], rel=0.05)


def test_instruments_differ_and_stay_as_they_are(config: Make) -> None:
    """Offset, scale and axes are drawn once for each; a limit cuts."""
    wrong = 'grade="none" offset="100 nT" scale="1000 ppm" misalignment="0.5 deg" limit="40 uT"'
    b = bench(config, MagnetometerEmulator, wrong, world=FIELD, bodies=40)
    first = b.at(0)["field"][:40].copy()
    assert np.array_equal(first, b.at(50)["field"][:40])
    assert first[:, 2] == pytest.approx(40e-6), "the limit"
    spread = np.std(first[:, 0])
    by_hand = math.hypot(100e-9, 15e-6 * 1e-3, 48e-6 * math.radians(0.5), 2e-6 * math.radians(0.5))
    assert spread == pytest.approx(by_hand, rel=0.35)


# ------------------------------------------------------------------ current profiler


def profiler(config: Make, attributes: str = 'noise="0"', world: str = "", **more: Any) -> Any:
    return bench(config, AdcpEmulator, attributes, world=world or '<bed depth="300 m"/>', **more)


def test_every_cell_of_a_uniform_flow_is_the_water_past_the_instrument(config: Make) -> None:
    """Moving, turning, tilted and on an arm: fails when a lever, a frame or a sign is wrong."""
    flow = '<bed depth="300 m"/><current north="0.4 m/s" east="-0.3 m/s" down="0.1 m/s"/>'
    b = profiler(config, 'noise="0" position="1 2 0.5 m" attitude="5 -4 30 deg"', flow)
    b.put((0.0, 0.0, 20.0), (0.1, -0.15, 2.0), (1.2, 0.1, -0.2), (0.02, -0.03, 0.05))
    out = b.at(0)[0]
    R_WB = rotation(quaternion(0.1, -0.15, 2.0))
    R_WS = R_WB @ rotation(quaternion(math.radians(5), math.radians(-4), math.radians(30)))
    v_W = R_WB @ (np.array([1.2, 0.1, -0.2]) + np.cross([0.02, -0.03, 0.05], [1.0, 2.0, 0.5]))
    true = R_WS.T @ (np.array([0.4, -0.3, 0.1]) - v_W)
    assert out["valid"] == 1 and out["good"] == 24 and (out["first"], out["cell"]) == (3.0, 2.0)
    found = np.stack([out[k][:24] for k in "xyz"])
    assert np.abs(found - true[:, None]).max() < 1e-12 and np.abs(out["error"][:24]).max() < 1e-12
    assert np.isnan(out["x"][24:]).all()


def test_cells_are_weighted_means_of_layers(config: Make) -> None:
    """Linear between layers: a cell away from a bend has its middle's value; one on it the triangle's mean."""
    layers = '<layer depth="0 m"/><layer depth="41 m" north="0.82 m/s"/><layer depth="80 m" north="0.82 m/s" east="0.39 m/s"/>'
    b = profiler(config, 'noise="0"', f'<bed depth="300 m"/><current>{layers}</current>')
    b.put((0.0, 0.0, 10.0))
    out = b.at(0)[0]
    middles = 10.0 + out["first"] + 2.0 * np.arange(24)
    expected = np.minimum(0.02 * middles, 0.82)
    bend = int(np.flatnonzero(np.isclose(middles, 41.0))[0])
    # the bend is in the middle: the mean of -0.02 |s| below it, 2 (2 x 2/3 + 1 x ... )/9 of a cell
    expected[bend] -= 0.02 * 2.0 * (2.0 / 3.0 * 1.0 + 1.0 / 3.0 * 2.0) / 9.0
    assert out["x"][:24] == pytest.approx(expected, abs=1e-9)
    east = np.interp(middles, [41.0, 80.0], [0.0, 0.39])
    east[bend] += 0.01 * 2.0 * (2.0 / 3.0 * 1.0 + 1.0 / 3.0 * 2.0) / 9.0
    assert out["y"][:24] == pytest.approx(east, abs=1e-9)


@pytest.mark.parametrize("up", [False, True])
def test_the_profile_ends_where_side_lobes_reach_bottom_or_surface(config: Make, up: bool) -> None:
    """25 m of water, 2 m cells from 3 m on: fails without the side lobes, or where the surface is not seen."""
    b = profiler(config, 'noise="0"' + (' attitude="180 0 0 deg"' if up else ""), '<bed depth="35 m"/>')
    b.put((0.0, 0.0, 25.0 if up else 10.0))
    out = b.at(0)[0]
    last = max(k for k in range(24) if 3.0 + 2.0 * k + 1.0 < 25.0 * COS)
    assert out["good"] == last + 1 == 10
    assert out["ranges"] == pytest.approx([25.0 / COS] * 4, abs=2e-2)
    assert np.isnan(out["x"][last + 1 :]).all() and np.isfinite(out["error"][: last + 1]).all()


def test_three_beams_are_enough_and_have_no_error_velocity(config: Make) -> None:
    wall = '<bed depth="300 m"/><current north="0.5 m/s"/><obstacles><block position="9 9 40 m" size="10 10 40 m"/></obstacles>'
    b = profiler(config, 'noise="0"', wall)
    b.put((0.0, 0.0, 10.0))
    out = b.at(0)[0]
    hit = np.flatnonzero(np.isfinite(out["ranges"]))
    assert hit.tolist() == [0], "the first beam looks north-east"
    near = out["ranges"][0] * COS * COS
    far = np.flatnonzero(3.0 + 2.0 * np.arange(24) + 1.0 >= near)
    assert out["good"] == far[0], "its side lobes end the profile of the others too"
    assert out["x"][: far[0]] == pytest.approx(0.5, abs=1e-12)


def test_the_error_velocity_tells_a_flow_that_is_not_the_same_at_the_beams(config: Make) -> None:
    """u = a x, v = 0: a r sin(angle)/sqrt(2) with beams along and across."""
    b = profiler(config, 'noise="0" first="0 deg"')
    a = 0.01
    b.emulator.water.current = lambda p, t: np.stack([a * p[..., 0], 0.0 * p[..., 0], 0.0 * p[..., 0]], axis=-1)
    b.put((0.0, 0.0, 10.0))
    out = b.at(0)[0]
    slant = (3.0 + 2.0 * np.arange(24)) / COS
    assert out["error"][:24] == pytest.approx(a * slant * SIN / math.sqrt(2), abs=1e-12)


def test_noise_of_a_ping_and_of_the_mean_of_many(config: Make) -> None:
    """Of horizontal components and error velocity as the preset says, less along the axis, white from ping to ping."""
    b = profiler(config, 'preset="sentinel-v20" rate="25 Hz"', bodies=10)
    for row in range(10):
        b.put((100.0 * row, 0.0, 10.0), row=row)
    series = []
    for k in range(200):
        out = b.at(10 * k)
        series.append(np.stack([out[n][:10, :19] for n in ("x", "y", "z", "error")]))
    s = np.array(series)
    assert s.std(axis=(0, 2, 3)) == pytest.approx([0.03, 0.03, 0.03 * SIN / COS / math.sqrt(2), 0.03], rel=0.02)
    columns = s[:, 0].reshape(200, -1).T[:60]
    found = [allantools.oadev(x, rate=25.0, data_type="freq", taus=[0.4])[1] ** 2 for x in columns]
    assert math.sqrt(np.mean(found)) == pytest.approx(0.03 / math.sqrt(10), rel=0.06)


def test_a_profile_without_a_cell_is_refused(config: Make) -> None:
    with pytest.raises(ConfigError, match="its range of 2 m ends before its first cell, at 4 m"):
        profiler(config, 'range="2 m"')
