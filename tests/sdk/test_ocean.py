"""Sea water against the tables of UNESCO 44; profiles, volumes and beds against their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavesim_sdk.config import Loaded
from wavesim_sdk.config.world import Bed, Bump, Spot, Temperature, World
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.ocean import bed, seawater, water


@pytest.mark.parametrize(
    ("r", "t", "p", "s"), [(1, 15, 0, 35.0), (1.2, 20, 2000, 37.245628), (0.65, 5, 1500, 27.995347)]
)
def test_salinity_table(r: float, t: float, p: float, s: float) -> None:
    assert seawater.salinity(r * seawater.C_35_15_0, t, p) == pytest.approx(s, abs=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("s", "t", "p", "r", "tolerance"),
    [
        (40, 40, 10000, 1.888091, 5e-7),
        (25, 10, 0, 0.654990, 1e-6),
        (25, 0, 1000, 0.506244, 1e-6),
        (25, 10, 1000, 0.662975, 1e-6),
        (25, 0, 0, 0.498008, 1e-6),
    ],
)
def test_conductivity_table(s: float, t: float, p: float, r: float, tolerance: float) -> None:
    assert seawater.conductivity(s, t, p) / seawater.C_35_15_0 == pytest.approx(r, abs=tolerance)  # type: ignore[arg-type]


@given(st.floats(2, 42), st.floats(-2, 35), st.floats(0, 10000))
def test_there_and_back(s: float, t: float, p: float) -> None:
    c = seawater.conductivity(np.float64(s), np.float64(t), np.float64(p))
    assert seawater.salinity(c, np.float64(t), np.float64(p)) == pytest.approx(s, abs=1e-9)


def test_the_papers_profile_and_spots() -> None:
    field = Temperature(surface=18.0, knee_1=10.0, knee_2=30.0, gradient_1=-0.1, gradient_2=-0.01, spot=())
    z = np.array([0.0, 5.0, 10.0, 20.0, 30.0, 50.0])
    assert water.profile(field, z) == pytest.approx([18.0, 18.0, 18.0, 17.0, 16.0, 15.8])
    spot = Spot(deviation=2.0, position=(10.0, 20.0, 5.0), alpha=0.1, beta=0.2, gamma=0.5)
    here = water.spots([spot], np.array([[10.0, 20.0, 5.0], [20.0, 20.0, 5.0], [10.0, 25.0, 7.0]]))
    assert here == pytest.approx([2.0, 2.0 * math.exp(-1), 2.0 * math.exp(-1 - 1)])


@given(st.floats(0, 500))
def test_pressure_and_depth(z: float) -> None:
    world = World(pressure_0=10.1325, pressure_1=1.0055, pressure_2=2.3e-6)
    assert water.depth_of_pressure(world, float(water.pressure(world, np.float64(z)))) == pytest.approx(z, abs=1e-9)


def test_the_papers_bed() -> None:
    b = Bed(
        depth=50.0,
        slope_north=0.1,
        slope_east=-0.2,
        bump=(Bump(height=-5.0, north=10.0, east=0.0, alpha=0.1, beta=0.2),),
    )
    assert bed.analytic(b, np.array([0.0, 10.0]), np.array([0.0, 5.0])) == pytest.approx(
        [50 - 5 * math.exp(-1), 51 - 1 - 5 * math.exp(-1)]
    )


def test_soundings_are_exact_at_the_points_and_linear_between(tmp_path: Path) -> None:
    t = bed.Triangles(np.array([[0.0, 0.0, 10.0], [10.0, 0.0, 20.0], [0.0, 10.0, 30.0], [10.0, 10.0, 40.0]]))
    assert t(np.array([0.0, 10.0, 0.0, 10.0]), np.array([0.0, 0.0, 10.0, 10.0])) == pytest.approx([10, 20, 30, 40])
    assert t(np.array([5.0]), np.array([5.0])) == pytest.approx([25.0])
    assert t(np.array([-15000.0]), np.array([-15000.0])) == pytest.approx([10.0])
    assert np.isnan(t(np.array([1e6]), np.array([0.0])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Data = 1 2 3,\n 4 5 x,\n", ":2: '4 5 x,' is not a sounding"),
        ("Data = 1 2 3\n", "fewer than three"),
        ("", "fewer than three"),
        ("Data = 1 2 3,\n 4 5 1e999,\n 7 8 9,\n", "not finite"),
    ],
)
def test_bad_soundings(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.ini"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        bed.read_soundings(path)
    assert message in str(caught.value)


COLUMNS = ["depth_meter", "latitude_degree", "longitude_degree", *water.VOLUME_COLUMNS.values()]


def _volume(path: Path, values: Callable[[float, float, float], float]) -> None:
    lines = [",".join(COLUMNS)]
    for d in (0.0, 10.0, 30.0):
        for lat in (0.0, 0.001, 0.002):
            for lon in (0.0, 0.001):
                v = values(d, lat, lon)
                lines.append(",".join(map(str, [d, lat, lon, v, v + 1, v + 2, v + 3])))
    path.write_text("\n".join(lines))


def test_a_linear_volume_is_reproduced(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    _volume(path, lambda d, lat, lon: 0.1 * d + 1000 * lat + 500 * lon)
    grid = water.read_volume(path, 0.0, 0.0)
    metres = water.EARTH_RADIUS * math.pi / 180.0
    p = np.array([[0.0005 * metres, 0.0002 * metres, 17.0], [0.0015 * metres, 0.001 * metres, 3.0]])
    assert grid(p)[0] == pytest.approx([1.7 + 0.5 + 0.1, 0.3 + 1.5 + 0.5])
    assert grid(np.array([[-1e5, -1e5, 999.0]]))[0] == pytest.approx([3.0]), "beyond the edge: the edge's value"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("depth_meter", "depth"), "lacks the column 'depth_meter'"),
        (lambda t: t.replace("10.0,0.001", "x,0.001", 1), "not a row of numbers"),
        (lambda t: "\n".join(t.split("\n")[:-1]), "no complete grid"),
        (lambda t: t.split("\n")[0], "no data"),
    ],
)
def test_bad_volumes(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    path = tmp_path / "v.csv"
    _volume(path, lambda d, lat, lon: d)
    path.write_text(change(path.read_text()))
    with pytest.raises(ConfigError, match=message):
        water.read_volume(path, 0.0, 0.0)


def test_the_kernels_agree_with_the_readable_twins(config: Callable[..., Loaded], tmp_path: Path) -> None:
    from wavesim_server.environment import kernels

    _volume(tmp_path / "v.csv", lambda d, lat, lon: 0.1 * d + 1000 * lat * lat + 500 * lon)
    (tmp_path / "s.ini").write_text("Data = 0 0 10,\n 50 3 14,\n 20 60 12,\n 70 70 20,\n 30 30 9,\n")
    rng = np.random.default_rng(1)
    for world in (
        '<world><current north="0.1 m/s" tide_amplitude="0.3 m/s" tide_direction="30 deg" tide_period="1 h"/><bed depth="30 m" slope_north="0.1"><bump height="-4 m" north="9 m" east="5 m" alpha="0.1 1/m" beta="0.02 1/m"/></bed></world>',
        '<world><soundings file="s.ini" north="-3 m" east="8 m"/><volume file="v.csv" latitude="0 deg" longitude="0 deg"/></world>',
    ):
        loaded = config(world)
        sea = water.Water(loaded)
        b, net = kernels.bed_of(loaded)
        flow = kernels.flow_of(loaded, sea)
        cursor = np.zeros(1, np.int64)
        p = rng.uniform(-40, 120, (200, 3))
        expected = bed.sea_bed(loaded)(p[:, 0], p[:, 1])
        got = [kernels.bed_depth(b, net, cursor, 0, x, y) for x, y in p[:, :2]]
        assert got == pytest.approx(expected, rel=1e-9)
        current = sea.current(p, 777.0)
        assert [kernels.flow_at(flow, 777.0, *q) for q in p] == pytest.approx(current[:, :2], abs=1e-12)
