"""Sound speed in a gridded volume: against the formula and the file, and what `wavesim check` says about it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from wavesim_sdk.errors import ConfigError
from wavesim_world import data_files
from wavesim_world.cli import check
from wavesim_world.config import LoadedConfig, load
from wavesim_world.ocean import seawater, sound
from wavesim_world.ocean.sound_warnings import sound_warnings
from wavesim_world.ocean.volume import EARTH_RADIUS, SPEED_COLUMN, VOLUME_COLUMNS
from wavesim_world.ocean.water import Water

DEGREE = 1.0 / (EARTH_RADIUS * math.pi / 180.0)  # of latitude, and of longitude at the equator, per metre
HEAD = f"elapsed_time_second,depth_meter,latitude_degree,longitude_degree,{','.join(VOLUME_COLUMNS.values())}"
LATITUDE = 40.0


def temperature(north: float, east: float, z: float, time: float) -> float:
    """A front of 6 degrees over 2 km, above water that gets colder; it warms by 1 degree in an hour."""
    ramp = min(max((north + 0.2 * east) / 1000.0, -1.0), 1.0)
    return 11.0 - 3.0 * ramp - 0.01 * z + time / 3600.0


def write_volume(path: Path, times: tuple[float, ...] = (0.0,), speed: Callable[..., float] | None = None) -> None:
    rows = [HEAD + (f",{SPEED_COLUMN}" if speed else "")]
    norths, easts, depths = range(-2000, 2001, 500), range(-1000, 1001, 500), (0.0, 30.0, 60.0, 120.0)
    for time, z, north, east in itertools.product(times, depths, norths, easts):
        values = [temperature(north, east, z, time), 35.0 - 0.002 * z, 0.0, 0.0]
        values += [speed(north, east, z, time)] if speed else []
        numbers = (time, z, north * DEGREE, east * DEGREE, *values)
        rows.append(",".join(repr(float(v)) for v in numbers))
    path.write_text("\n".join(rows))


WORLD = (
    f'<world latitude="{LATITUDE} deg"><bed depth="100 m"/>'
    '<volume file="v.csv" latitude="0 deg" longitude="0 deg"/></world>'
)
NODES = (
    "<fleet>"
    + "".join(
        f'<buoy name="{n}" model="buoy" position="{p} 40 m"><transducer/></buoy>'
        for n, p in (("a", "-1500 0"), ("b", "1500 0"), ("c", "0 500"))
    )
    + "</fleet>"
)


@pytest.fixture
def volume(config: Callable[..., LoadedConfig], tmp_path: Path) -> Callable[..., LoadedConfig]:
    def load(acoustics: str = '<acoustics profile="volume"/>', rest: str = NODES, **file: object) -> LoadedConfig:
        write_volume(tmp_path / "v.csv", **file)  # type: ignore[arg-type]
        return config(f"{WORLD}{acoustics}{rest}")

    return load


def field_of(loaded: LoadedConfig) -> sound.SoundSpeedVolume:
    water = Water(loaded)
    assert water.volume is not None
    return sound.sound_speed_on_grid(loaded, water, water.volume)


def test_the_grid_reaches_from_the_surface_to_the_deepest_bed(volume: Callable[..., LoadedConfig]) -> None:
    for parts in (1, 2, 4):
        field = field_of(volume(f'<acoustics profile="volume" refinement="{parts}"/>', times=(-60.0, 0.0, 3600.0)))
        assert (field.depths[0], field.depths[-1]) == (0.0, 100.0) and (np.diff(field.depths) > 0.0).all()
        assert {30.0, 60.0} <= set(field.depths.tolist())
        assert field.times.tolist() == [0.0, 3600.0], "the time before the start is not needed"
        assert field.c.shape == (2, len(field.depths), 8 * parts + 1, 4 * parts + 1)
        assert field.spacing == pytest.approx((500.0 / parts, 500.0 / parts), rel=1e-9)
        assert field.origin == pytest.approx((-2000.0, -1000.0), abs=1e-6)


@pytest.mark.parametrize(
    ("formula", "function"), [("chen-millero", sound.chen_millero), ("del-grosso", sound.del_grosso)]
)
def test_the_sound_speed_is_that_of_the_formula(
    volume: Callable[..., LoadedConfig], formula: str, function: Callable[..., np.ndarray]
) -> None:
    """Tetrahedra against the bilinear temperature of the file: at its times, between and after them. Halving the cells
    divides the error by four.
    """
    errors = []
    for parts in (2, 4):
        acoustics = f'<acoustics profile="volume" formula="{formula}" refinement="{parts}"/>'
        loaded = volume(acoustics, times=(0.0, 3600.0))
        field, water = field_of(loaded), Water(loaded)
        scale, worst = 1.0 if formula == "chen-millero" else 1.00024, 0.0
        rng = np.random.default_rng(5)
        for time in (0.0, 1800.0, 3600.0, 9000.0):
            at = rng.uniform((-2000.0, -1000.0, 0.0), (2000.0, 1000.0, 100.0), (2000, 3))
            gauge = seawater.pressure(at[:, 2], math.radians(LATITUDE))
            exact = function(water.temperature(at, time) / scale, 35.0 - 0.002 * at[:, 2], gauge)
            worst = max(worst, float(np.abs(field(at, time) - exact).max()))
        errors.append(worst)
    assert errors[0] < 0.1 and errors[1] < 0.5 * errors[0]
    north, east = (field.origin[k] + field.spacing[k] * np.arange(field.c.shape[2 + k]) for k in (0, 1))
    p = np.stack(np.meshgrid(field.depths, north, east, indexing="ij"), axis=-1)[..., [1, 2, 0]]
    assert np.array_equal(field(p, 0.0), field.c[0]) and np.array_equal(field(p, 5000.0), field.c[1])
    middle = 0.5 * (field.c[0] + field.c[1])
    assert np.abs(field(p, 1800.0) - middle).max() < 1e-9


def test_levels_hold_the_tolerance_in_steep_water(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """10 degrees between two depths of the file: without further levels, the error would be 1.3 m/s."""
    rows = [HEAD]
    for depth, north, east in itertools.product((0.0, 100.0), (-500, 500), (-500, 500)):
        rows.append(f"0,{depth},{north * DEGREE!r},{east * DEGREE!r},{20.0 - 0.1 * depth},35,0,0")
    (tmp_path / "v.csv").write_text("\n".join(rows))
    loaded = config(f'{WORLD}<acoustics profile="volume"/>{NODES}')
    field = field_of(loaded)
    z = np.linspace(0.0, 100.0, 2001)
    p = np.stack([0.0 * z, 0.0 * z, z], axis=-1)
    gauge = seawater.pressure(z, math.radians(LATITUDE))
    error = np.abs(field(p) - sound.chen_millero(20.0 - 0.1 * z, np.full(len(z), 35.0), gauge)).max()
    assert 0.003 < error < 0.0105 and 8 <= len(field.depths) <= 20


def test_the_same_columns_give_the_profile_of_the_water(volume: Callable[..., LoadedConfig]) -> None:
    """Where the volume has no front, `volume` and `water` differ by the levels only."""
    field = field_of(volume())
    loaded = volume('<acoustics profile="water"/>')
    z, c = sound.sound_speed_profile(loaded, Water(loaded), 100.0)
    p = np.stack([0.0 * z, 0.0 * z, z], axis=-1)
    assert np.abs(field(p) - c).max() < sound.SPEED_TOLERANCE + 1e-6


def test_the_field_is_linear_in_each_tetrahedron(volume: Callable[..., LoadedConfig]) -> None:
    """Against a slow search for the tetrahedron by barycentric coordinates; continuous across every face."""
    field = field_of(volume())
    rng = np.random.default_rng(3)
    c = field.c[0]
    for _ in range(40):
        k, i, j = (int(rng.integers(0, n - 1)) for n in c.shape)
        low = np.array(
            [field.origin[0] + i * field.spacing[0], field.origin[1] + j * field.spacing[1], field.depths[k]]
        )
        size = np.array([*field.spacing, field.depths[k + 1] - field.depths[k]])
        p = low + size * rng.uniform(0.0, 1.0, 3)
        held = []
        for order in itertools.permutations(range(3)):
            corners = [np.zeros(3)]
            for axis in order:
                corners.append(corners[-1] + np.eye(3)[axis])
            weights = np.linalg.solve(np.vstack([np.transpose(corners), np.ones(4)]), np.append((p - low) / size, 1.0))
            if weights.min() >= -1e-12:
                at = [c[k + int(q[2]), i + int(q[0]), j + int(q[1])] for q in corners]
                held.append(float(weights @ np.array(at)))
        assert held and np.allclose(held, field(p), rtol=0, atol=1e-9)


def test_beyond_the_grid_the_edge_applies(volume: Callable[..., LoadedConfig]) -> None:
    field = field_of(volume())
    edge = field(np.array([[2000.0, 300.0, 40.0], [-2000.0, 1000.0, 100.0]]))
    assert np.array_equal(edge, field(np.array([[9000.0, 300.0, 40.0], [-5000.0, 7000.0, 500.0]])))


def test_a_column_of_sound_speeds_replaces_the_formula(volume: Callable[..., LoadedConfig]) -> None:
    def linear(north: float, east: float, z: float, time: float) -> float:
        return 1500.0 + 2e-3 * north - 1e-3 * east + 0.016 * z + time / 3600.0

    loaded = volume('<acoustics profile="volume" refinement="3"/>', times=(0.0, 3600.0), speed=linear)
    field = field_of(loaded)
    assert field.depths.tolist() == [0.0, 30.0, 60.0, 100.0], "c is linear between the depths of the file"
    at = np.random.default_rng(1).uniform((-2000.0, -1000.0, 0.0), (2000.0, 1000.0, 100.0), (200, 3))
    exact = np.array([linear(n, e, z, 900.0) for n, e, z in at.tolist()])
    assert np.abs(field(at, 900.0) - exact).max() < 1e-8
    water = Water(loaded)
    assert float(water.temperature(np.array([0.0, 0.0, 30.0]))) == pytest.approx(temperature(0.0, 0.0, 30.0, 0.0))


def test_gaps_and_wrong_units_of_the_column(volume: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """A gap is filled from above and leaves temperature and salinity alone; km/s are refused with their line."""

    def gap(north: float, east: float, z: float, time: float) -> float:
        return math.nan if (north, z) == (0.0, 60.0) else 1500.0 + z

    loaded = volume(speed=gap)
    field = field_of(loaded)
    assert float(field(np.array([0.0, 0.0, 60.0]))) == 1530.0
    assert Water(loaded).volume.filled.sum() == 0  # type: ignore[union-attr]
    loaded = volume(speed=lambda *_: 1.5)
    with pytest.raises(ConfigError, match=rf":2: {SPEED_COLUMN} is 1.5; use 1300 to 1800"):
        Water(loaded)


def test_a_volume_is_needed_and_may_not_be_too_large(
    config: Callable[..., LoadedConfig], volume: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match='profile="volume" needs water on a grid: add a <volume> to <world>'):
        config('<acoustics profile="volume"/>')
    loaded = volume('<acoustics profile="water"/>')
    assert sound.sound_speed_volume(loaded, Water(loaded)) is None
    loaded = volume()
    assert sound.sound_speed_volume(loaded, Water(loaded)) is not None
    data_files.check(loaded)
    monkeypatch.setattr(sound, "MAX_VOLUME_BYTES", 1000)
    with pytest.raises(ConfigError, match=r"17 x 9 points; reduce `refinement`"):
        data_files.check(loaded)


def test_check_says_what_the_profile_of_the_origin_neglects(volume: Callable[..., LoadedConfig]) -> None:
    """The range error follows from the travel time along the straight line."""
    loaded = volume('<acoustics profile="water"/>')
    (text,) = sound_warnings(loaded)
    length = math.hypot(1500.0, 500.0)
    assert "between 'b' and 'c' (1581 m apart)" in text and 'use profile="volume"' in text, "'a' to 'b' is symmetric"
    field, share = field_of(loaded), np.linspace(0.0, 1.0, 100_001)
    p = np.stack([1500.0 * (1.0 - share), 500.0 * share, 0.0 * share + 40.0], axis=-1)
    travel = length * float(np.trapezoid(1.0 / field(p), share))
    error = 1500.0 * abs(travel - length / float(field(np.array([0.0, 0.0, 40.0]))))
    said = float(text.partition("are wrong by up to ")[2].split()[0])
    assert said == pytest.approx(error, abs=0.03), "0.01 by the digits, the rest by the levels of the profile"
    difference = 4.0 * 4.8  # m/s: 4.8 degrees between 'a' and 'b', about 4 m/s for each
    assert abs(float(text.partition("differs by up to ")[2].split()[0]) - difference) < 2.5
    near = NODES.replace("1500", "20").replace("0 500", "0 10")
    assert sound_warnings(volume('<acoustics profile="water"/>', near)) == []


def test_check_says_what_the_volume_does_not_cover(volume: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    rest = '<time duration="2 h"/>' + NODES.replace("1500 0", "2500 0", 2).replace("-1500", "-2500")
    loaded = volume(rest=rest, times=(0.0, 3600.0))
    texts = sound_warnings(loaded)
    assert len(texts) == 2
    assert "does not contain all positions of 'a', 'b' (up to 500 m outside)" in texts[0]
    assert "ends at 3600 s, but the run lasts 7200 s" in texts[1]
    done = CliRunner().invoke(check, [str(loaded.path)])
    assert done.exit_code == 0 and all(text in done.output for text in texts)
    deep = volume()
    deep.path.write_text(deep.text.replace('<bed depth="100 m"/>', '<bed depth="150 m"/>'))
    done = CliRunner().invoke(check, [str(deep.path)])
    assert "ends at a depth of 120 m, but the bed is up to 150 m deep" in done.output
    assert sound_warnings(volume()) == []


def test_check_says_that_a_profile_ignores_the_volume(
    volume: Callable[..., LoadedConfig], config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    (text,) = sound_warnings(volume("<acoustics/>"))
    c = field_of(volume()).c
    assert (
        f'is between {c.min():.1f} and {c.max():.1f} m/s; to trace sound through this water, use profile="volume"'
        in text
    )
    (text,) = sound_warnings(volume('<acoustics profile="gradient"/>'))
    said = float(text.partition("by up to ")[2].split()[0])
    assert said == pytest.approx(float(np.ptp(c[0], axis=(1, 2)).max()), abs=0.06)
    layered = {"speed": lambda north, east, z, time: 1500.0 - 0.1 * z}
    assert sound_warnings(volume('<acoustics profile="gradient" gradient="-0.1"/>', **layered)) == []
    assert len(sound_warnings(volume("<acoustics/>", **layered))) == 1
    uniform = {"speed": lambda north, east, z, time: 1500.0}
    assert sound_warnings(volume("<acoustics/>", **uniform)) == []
    (tmp_path / "c.txt").write_text("0 1500\n")
    assert sound_warnings(volume('<acoustics profile="file" file="c.txt"/>')) == []


def test_check_says_which_keys_have_no_effect(volume: Callable[..., LoadedConfig]) -> None:
    uniform = {"speed": lambda north, east, z, time: 1500.0}
    (text,) = sound_warnings(volume('<acoustics refinement="2"/>', **uniform))
    assert text.startswith('`refinement` has no effect with profile="constant"')
    assert sound_warnings(volume('<acoustics profile="volume" refinement="3" blocking="no"/>')) == []
    level = volume('<acoustics profile="volume" blocking="no"/>')
    level.path.write_text(level.text.replace('<bed depth="100 m"/>', '<bed depth="100 m" slope_north="0.001"/>'))
    assert sound_warnings(load(level.path))[0].startswith('blocking="no" has no effect on the sea bed')
