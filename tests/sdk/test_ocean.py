"""Sea water against the tables of UNESCO 44; profiles, volumes and beds against their formulas."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from pathlib import Path

import gsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavesim_sdk.errors import ConfigError
from wavesim_world.config import LoadedConfig, load
from wavesim_world.config.world import BedConfig, Bump, Spot, TemperatureConfig, World
from wavesim_world.ocean import bed, seawater, water
from wavesim_world.ocean.volume import EARTH_RADIUS, UPWARD_COLUMN, VOLUME_COLUMNS, read_samples, read_volume


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
    field = TemperatureConfig(surface=18.0, knee_1=10.0, knee_2=30.0, gradient_1=-0.1, gradient_2=-0.01, spot=())
    z = np.array([0.0, 5.0, 10.0, 20.0, 30.0, 50.0])
    assert water.two_knee_profile(field, z) == pytest.approx([18.0, 18.0, 18.0, 17.0, 16.0, 15.8])
    spot = Spot(deviation=2.0, position=(10.0, 20.0, 5.0), alpha=0.1, beta=0.2, gamma=0.5)
    here = water.spot_deviation([spot], np.array([[10.0, 20.0, 5.0], [20.0, 20.0, 5.0], [10.0, 25.0, 7.0]]))
    assert here == pytest.approx([2.0, 2.0 * math.exp(-1), 2.0 * math.exp(-1 - 1)])


@given(st.floats(0, 500))
def test_pressure_and_depth(z: float) -> None:
    world = World(pressure_0=10.1325, pressure_1=1.0055, pressure_2=2.3e-6)
    assert water.depth_of_pressure(world, float(water.pressure(world, np.float64(z)))) == pytest.approx(z, abs=1e-9)


@pytest.mark.parametrize("latitude", [0.0, 45.0, 90.0])
def test_pressure_of_a_standard_ocean_is_that_of_teos_10(latitude: float) -> None:
    """Unless a polynomial is given; and a pressure sensor's depth is the true one."""
    world = World(latitude=math.radians(latitude))
    z = np.array([-1.0, 0.0, 0.5, 100.0, 1000.0, 4000.0, 6000.0])
    found = water.pressure(world, z)
    assert found - 10.1325 == pytest.approx(gsw.p_from_z(-z, latitude), rel=4e-5, abs=1e-6)
    assert water.depth_of_pressure(world, found) == pytest.approx(z, abs=1e-7)


@pytest.mark.parametrize("pressure_1", [0.0, 1.0055])
def test_the_depth_of_a_number_is_a_number_of_the_same_bits(pressure_1: float) -> None:
    """An array of none would make all that a program computes from it ten times as dear."""
    world = World(latitude=0.7, pressure_1=pressure_1)
    for p in (10.2, 31.7, 998.3):
        found = water.depth_of_pressure(world, p)
        assert type(found) is float and found == water.depth_of_pressure(world, np.array([p]))[0]


def test_half_a_polynomial_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.xml"
    path.write_text('<wavesim name="half"><world pressure_2="1e-6 dbar/m2"/></wavesim>')
    with pytest.raises(ConfigError, match="`pressure_2` needs `pressure_1`"):
        load(path)


def test_the_papers_bed() -> None:
    b = BedConfig(
        depth=50.0,
        slope_north=0.1,
        slope_east=-0.2,
        bump=(Bump(height=-5.0, north=10.0, east=0.0, alpha=0.1, beta=0.2),),
    )
    assert bed.analytic_depth(b, np.array([0.0, 10.0]), np.array([0.0, 5.0])) == pytest.approx(
        [50 - 5 * math.exp(-1), 51 - 1 - 5 * math.exp(-1)]
    )


def test_soundings_are_exact_at_the_points_and_linear_between(tmp_path: Path) -> None:
    t = bed.TriangulatedBed(np.array([[0.0, 0.0, 10.0], [10.0, 0.0, 20.0], [0.0, 10.0, 30.0], [10.0, 10.0, 40.0]]))
    assert t(np.array([0.0, 10.0, 0.0, 10.0]), np.array([0.0, 0.0, 10.0, 10.0])) == pytest.approx([10, 20, 30, 40])
    assert t(np.array([5.0]), np.array([5.0])) == pytest.approx([25.0])
    assert t(np.array([-15000.0]), np.array([-15000.0])) == pytest.approx([10.0])
    assert np.isnan(t(np.array([1e6]), np.array([0.0])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Data = 1 2 3,\n 4 5 x,\n", ":2: invalid sounding: use three numbers"),
        ("Data = 1 2 3\n", "fewer than three"),
        ("", "fewer than three"),
        ("Data = 1 2 3,\n 4 5 1e999,\n 7 8 9,\n", ":2: invalid sounding: use three numbers"),
        ("1 2 3\n4 5 nan\n", ":2: invalid sounding: use three numbers"),
        ("1 2 3\n4 5\n", ":2: invalid sounding: use three numbers"),
        ("# only words\n", "fewer than three"),
        (
            "0 0 5\n0 9 5\n9 0 45000\n",
            ":3: invalid depth of 45000 m: use -9000 to 12000 m; check that the file is in metres",
        ),
        ("0 0 5\n1 1 5\n2 2 5\n", "lie on one straight line"),
        ("ncols 2\nnrows 2\n1 2\n3 4\n", ":2: 'cellsize' is missing from the header of the grid"),
        ("ncols 2\nnrows x\n", ":2: invalid line in the header of the grid: nrows needs one number"),
        (
            "ncols 2\nnrows 2\ncellsize 5\n1 2\n3\n",
            ":5: row 2 of the grid has 1 numbers; the header states 2 rows with 2 numbers each",
        ),
        ("ncols 2\nnrows 2\ncellsize 5\n1 2\n3 4\n5 6\n", ":6: row 3"),
        ("ncols 2\nnrows 3\ncellsize 5\n1 2\n3 4\n", ":5: the grid ends after 2 of 3 rows"),
        ("ncols 2\nnrows 2\ncellsize 5\nnodata_value -9\n1 -9\n-9 4\n", "fewer than three"),
    ],
)
def test_bad_soundings(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.ini"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        bed.read_soundings(path)
    assert message in str(caught.value)


COLUMNS = ["depth_meter", "latitude_degree", "longitude_degree", *VOLUME_COLUMNS.values()]


def _volume(path: Path, values: Callable[[float, float, float], float]) -> None:
    lines = [",".join(COLUMNS)]
    for d in (0.0, 10.0, 30.0):
        for lat in (0.0, 0.001, 0.002):
            for lon in (0.0, 0.001):
                v = values(d, lat, lon)
                lines.append(",".join(map(str, [d, lat, lon, v, v + 1, v / 100 + 2, v / 100 + 3])))
    path.write_text("\n".join(lines))


def _upwelling(path: Path, of: Path) -> None:
    """The volume of another file at two times, with an upward flow of 0.01 depth m/s that has doubled after 100 s."""
    head, *lines = of.read_text().split("\n")
    rows = [f"{t},{line},{(1 + t / 100) * 0.01 * float(line.split(',')[0])}" for t in (0, 100) for line in lines]
    path.write_text("\n".join([f"elapsed_time_second,{head},{UPWARD_COLUMN}", *rows]))


def test_a_volume_with_a_vertical_flow(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """Positive up in the file, positive down in W; linear between the levels and the times; a gap is filled."""
    _volume(tmp_path / "v.csv", lambda d, lat, lon: 0.1 * d)
    _upwelling(tmp_path / "u.csv", tmp_path / "v.csv")
    flat, loaded = (
        config(f'<world><volume file="{name}.csv" latitude="0 deg" longitude="0 deg"/></world>') for name in "vu"
    )
    sea, p = water.Water(loaded), np.array([[5.0, 20.0, 17.0], [100.0, 50.0, 4.0]])
    assert sea.current(p, 25.0)[:, 2] == pytest.approx([-1.25 * 0.17, -1.25 * 0.04], abs=1e-12)
    assert sea.current(p, 1e6)[:, 2] == pytest.approx([-0.34, -0.08], abs=1e-12)
    assert (sea.current(p, 25.0)[:, :2] == water.Water(flat).current(p, 25.0)[:, :2]).all()
    assert (water.Water(flat).current(p, 25.0)[:, 2] == 0.0).all(), "without the column there is none"
    text = (tmp_path / "u.csv").read_text()
    (tmp_path / "u.csv").write_text(re.sub(r"(?m)^(0,30.0,0.002,0.001,.*),[^,]*$", r"\1,nan", text))
    corner = np.array([0.002, 0.001, 0.0]) * EARTH_RADIUS * math.pi / 180.0 + (0.0, 0.0, 30.0)
    assert water.Water(loaded).current(corner, 0.0)[2] == pytest.approx(-0.1), "from the level above"
    (tmp_path / "u.csv").write_text(text.replace(",0.3\n", ",30\n", 1))
    with pytest.raises(ConfigError, match=f":14: {UPWARD_COLUMN} is 30; use -10 to 10"):
        water.Water(loaded)


def test_a_linear_volume_is_reproduced(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    _volume(path, lambda d, lat, lon: 0.1 * d + 1000 * lat + 500 * lon)
    grid = read_volume(path, 0.0, 0.0)
    metres = EARTH_RADIUS * math.pi / 180.0
    p = np.array([[0.0005 * metres, 0.0002 * metres, 17.0], [0.0015 * metres, 0.001 * metres, 3.0]])
    assert grid(p)[0] == pytest.approx([1.7 + 0.5 + 0.1, 0.3 + 1.5 + 0.5])
    assert grid(np.array([[-1e5, -1e5, 999.0]]))[0] == pytest.approx([3.0]), "beyond the edge: the edge's value"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace("depth_meter", "depth"), "has no column 'depth_meter'"),
        (lambda t: t.replace("10.0,0.001", "x,0.001", 1), ":\\d+: latitude_degree|not a number"),
        (lambda t: "\n".join(t.split("\n")[:-1]), "missing: depth 30, latitude 0.002, longitude 0.001, time 0"),
        (lambda t: t + "\n" + t.split("\n")[1], ":20: duplicate line: its point and time equal those of line 2"),
        (
            lambda t: t.replace("\n30.0,0.002,0.0,30.0", "\n30.0,0.002,0.0,300"),
            ":18: sea_water_temperature_degC is 300; use -5 to 45",
        ),
        (lambda t: t.replace("\n10.0,", "\nnan,", 1), ":8: depth_meter is nan"),
        (lambda t: t.replace("\n10.0,", "\ninf,", 1), ":8: depth_meter is inf"),
        (lambda t: t.replace(",0.002,", ",0.0023,"), "latitudes of the volume are not evenly spaced"),
        (lambda t: t.replace(",0.002,", ",200.2,"), "latitude_degree is 200.2; use -90 to 90"),
        (lambda t: re.sub(r"(?m)^(\d[^,]*,[^,]*,[^,]*,)[^,]*", r"\1nan", t), "no value of sea_water_temperature_degC"),
        (lambda t: t[:40] + "\0" + t[40:], "has no column|not a valid CSV"),
        (lambda t: "", "has no column"),
        (lambda t: t.split("\n")[0], "no data"),
    ],
)
def test_bad_volumes(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    path = tmp_path / "v.csv"
    _volume(path, lambda d, lat, lon: d)
    path.write_text(change(path.read_text()))
    with pytest.raises(ConfigError, match=message):
        read_volume(path, 0.0, 0.0)


def test_files_that_are_too_large_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(600 * 2**20)  # sparse
    for read in (bed.read_soundings, lambda p: read_volume(p, 0.0, 0.0), lambda p: read_samples(p, 0.0, 0.0, 1.0, 2.0)):
        with pytest.raises(ConfigError, match=r"larger than 512 MiB"):
            read(huge)
    with pytest.raises(ConfigError, match="No such file"):
        bed.read_soundings(tmp_path / "none")


def test_a_regular_grid_is_a_bed(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """ESRI's rows run from north to south; heights are negative below the water; a cell without data is bridged."""
    rng = np.random.default_rng(3)
    heights = rng.uniform(-30.0, -10.0, (7, 9))
    rows = "\n".join(" ".join(f"{v:.4f}" for v in row) for row in heights)
    head = "ncols 9\nnrows 7\nxllcorner 500\nyllcorner 1000\ncellsize 5\nNODATA_value -9999\n"
    (tmp_path / "bed.asc").write_text(head + rows)
    loaded = config('<world><soundings file="bed.asc" north="-1000 m" east="-500 m" heights="yes"/></world>')
    depth = bed.sea_bed(loaded)
    i, j = np.meshgrid(np.arange(7), np.arange(9), indexing="ij")
    north, east = (6 - i) * 5.0 + 2.5, j * 5.0 + 2.5
    assert depth(north, east) == pytest.approx(-heights, abs=1e-4)
    low = np.minimum.reduce([-heights[:-1, :-1], -heights[1:, :-1], -heights[:-1, 1:], -heights[1:, 1:]])
    high = np.maximum.reduce([-heights[:-1, :-1], -heights[1:, :-1], -heights[:-1, 1:], -heights[1:, 1:]])
    between = depth(north[:-1, :-1] - 2.0, east[:-1, :-1] + 3.0)
    assert (between >= low - 1e-4).all() and (between <= high + 1e-4).all()
    (tmp_path / "bed.asc").write_text(head + rows.replace(f"{heights[3, 3]:.4f}", "-9999"))
    os.utime(tmp_path / "bed.asc", ns=(1, 1))
    assert 10.0 <= bed.sea_bed(loaded)(np.array([17.5]), np.array([17.5]))[0] <= 30.0


def _samples(path: Path, rows: np.ndarray) -> None:
    head = "elapsed_time_second,latitude_degree,longitude_degree,depth_meter," + ",".join(
        list(VOLUME_COLUMNS.values())[:2]
    )
    path.write_text(head + "\n" + "\n".join(",".join(map(repr, r)) for r in rows.tolist()))


def test_scattered_samples(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """Exact at the data, inverse-distance weights between (a plain double loop as judge), linear in time."""
    rng = np.random.default_rng(7)
    n, metres = 60, EARTH_RADIUS * math.pi / 180.0
    p = np.stack([rng.uniform(-500, 500, 2 * n), rng.uniform(-500, 500, 2 * n), rng.uniform(0, 50, 2 * n)], axis=1)
    t, s = rng.uniform(5, 20, 2 * n), rng.uniform(30, 36, 2 * n)
    times = np.repeat([100.0, 400.0], n)
    shuffled = rng.permutation(2 * n)
    cos = math.cos(math.radians(41.0))
    rows = np.stack([times, 41.0 + p[:, 0] / metres, -8.0 + p[:, 1] / metres / cos, p[:, 2], t, s], axis=1)
    _samples(tmp_path / "s.csv", rows[shuffled])
    loaded = config(
        '<world><samples file="s.csv" latitude="41 deg" longitude="-8 deg" radius="200 m" power="2"/></world>'
    )
    sea = water.Water(loaded)
    for level, at in ((0, 100.0), (1, 400.0)):
        mine = times == times[level * n]
        assert sea.temperature(p[mine], at) == pytest.approx(t[mine], abs=1e-6), "exact at the points"
        assert sea.salinity(p[mine], at) == pytest.approx(s[mine], abs=1e-6)

    def judge(q: np.ndarray, level: int) -> float:
        over = under = 0.0
        best, nearest = math.inf, 0.0
        for k in range(level * n, (level + 1) * n):
            d = math.dist(q, p[k])
            if d < best:
                best, nearest = d, t[k]
            if d <= 200.0:
                over, under = over + t[k] / d**2, under + 1.0 / d**2
        return over / under if under else nearest

    q = np.stack([rng.uniform(-700, 700, 300), rng.uniform(-700, 700, 300), rng.uniform(0, 50, 300)], axis=1)
    first, second = (np.array([judge(x, k) for x in q]) for k in (0, 1))
    assert sea.temperature(q, -5.0) == pytest.approx(first, abs=1e-5)
    assert sea.temperature(q, 1e6) == pytest.approx(second, abs=1e-5)
    assert sea.temperature(q, 175.0) == pytest.approx(0.75 * first + 0.25 * second, abs=1e-5)
    gauge = sea.pressure(q) - loaded.config.world.pressure_0
    back = seawater.salinity(sea.conductivity(q, 9.0), sea.temperature(q, 9.0), gauge)
    assert sea.salinity(q, 9.0) == pytest.approx(back, abs=1e-9), "salinity is always that of the three"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([100.0, 0.0, 0.0, 5.0, 10.0, 35.0], ":3: duplicate line: its point and time equal those of line 2"),
        ([100.0, 0.0, 0.0, 6.0, math.nan, 35.0], ":3: the sample has a missing value"),
        ([100.0, 0.0, 0.0, 6.0, 283.0, 35.0], ":3: sea_water_temperature_degC is 283; use -5 to 45"),
        ([100.0, 95.0, 0.0, 6.0, 10.0, 35.0], ":3: latitude_degree is 95;"),
        ([math.nan, 0.0, 0.0, 6.0, 10.0, 35.0], ":3: elapsed_time_second is nan"),
    ],
)
def test_bad_samples(tmp_path: Path, row: list[float], message: str) -> None:
    _samples(tmp_path / "s.csv", np.array([[100.0, 0.0, 0.0, 5.0, 10.0, 35.0], row]))
    with pytest.raises(ConfigError) as caught:
        read_samples(tmp_path / "s.csv", 0.0, 0.0, 10.0, 2.0)
    assert message in str(caught.value)


def test_other_quantities(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    _volume(path, lambda d, lat, lon: 1.0 + 0.1 * d)
    lines = path.read_text().split("\n")
    path.write_text("\n".join([lines[0] + ",dye", *(f"{x},{7.0 + float(x.split(',')[0])}" for x in lines[1:])]))
    loaded = config(
        '<world><volume file="v.csv" latitude="0 deg" longitude="0 deg"/><scalar name="dye" column="dye"/>'
        '<scalar name="plume" above="2 m"><gaussian peak="5" north="10 m" east="-5 m" sigma_north="20 m" sigma_east="40 m"/>'
        '<gaussian peak="1" north="10 m" east="-5 m" sigma_north="1 km" sigma_east="1 km"/></scalar></world>'
    )
    sea, p = water.Water(loaded), np.array([[10.0, -5.0, 3.0], [30.0, 35.0, 17.0], [10.0, -5.0, 1.0]])
    assert sea.scalar(0, p) == pytest.approx([10.0, 24.0, 8.0])
    assert sea.scalar(1, p)[0] == pytest.approx(6.0) and sea.scalar(1, p)[2] == -1.0
    assert sea.scalar(1, p)[1] == pytest.approx(5.0 * math.exp(-0.5 - 0.5) + math.exp(-0.5 * (20**2 + 40**2) / 1e6))
    for wrong, message in (
        ('<scalar name="x"/>', "needs either a `column`"),
        ('<scalar name="x" column="dye"/>', "the world has no <volume>"),
        (
            '<volume file="v.csv" latitude="0 deg" longitude="0 deg"/><scalar name="x" column="ink"/>',
            "has no column 'ink'",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            water.Water(config(f"<world>{wrong}</world>"))


def test_the_kernels_agree_with_the_readable_twins(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    from wavesim_server import seabed
    from wavesim_server.environment import flow

    _volume(tmp_path / "v.csv", lambda d, lat, lon: 0.1 * d + 1000 * lat * lat + 500 * lon)
    _upwelling(tmp_path / "u.csv", tmp_path / "v.csv")
    (tmp_path / "s.ini").write_text("Data = 0 0 10,\n 50 3 14,\n 20 60 12,\n 70 70 20,\n 30 30 9,\n")
    rng = np.random.default_rng(1)
    for world in (
        '<world><current north="0.1 m/s" tide_amplitude="0.3 m/s" tide_direction="30 deg" tide_period="1 h"/><bed depth="30 m" slope_north="0.1"><bump height="-4 m" north="9 m" east="5 m" alpha="0.1 1/m" beta="0.02 1/m"/></bed></world>',
        '<world><soundings file="s.ini" north="-3 m" east="8 m"/><volume file="v.csv" latitude="0 deg" longitude="0 deg"/></world>',
        '<world><bed depth="30 m"/><current down="0.2 m/s"><layer depth="0 m"/><layer depth="60 m" down="-0.5 m/s"/></current>'
        '<volume file="u.csv" latitude="0 deg" longitude="0 deg"/></world>',
    ):
        loaded = config(world)
        sea = water.Water(loaded)
        b, net = seabed.make_bed(loaded)
        f = flow.make_flow(loaded, sea)
        cursor = np.zeros(1, np.int64)
        p = rng.uniform(-40, 120, (200, 3))
        expected = bed.sea_bed(loaded)(p[:, 0], p[:, 1])
        got = [seabed.bed_depth(b, net, cursor, 0, x, y) for x, y in p[:, :2]]
        assert got == pytest.approx(expected, rel=1e-9)
        current = sea.current(p, 777.0)
        assert [flow.flow_at(f, 777.0, *q) for q in p] == pytest.approx(current, abs=1e-12)
