"""Waves, wind, currents, tide: statistics against their spectra, forces against their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from wavesim_kernels import randomness
from wavesim_server import Simulation, rng
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.environment import sea_surface, spectra, weather
from wavesim_world.config import LoadedConfig
from wavesim_world.config.world import Waves
from wavesim_world.file_access import FILES_VARIABLE
from wavesim_world.ocean import surface, wind


def record(sea: np.ndarray, times: np.ndarray, x: float = 0.0, y: float = 0.0) -> np.ndarray:
    angle = np.outer(times, sea[:, surface.S_FREQUENCY]) - sea[:, surface.S_NORTH] * x - sea[:, surface.S_EAST] * y
    return np.cos(angle + sea[:, surface.S_PHASE]) @ sea[:, surface.S_AMPLITUDE]


@pytest.mark.parametrize("spectrum", ["ittc", "jonswap"])
@pytest.mark.parametrize("spreading", [0.0, 10.0])
def test_significant_wave_height_and_spectrum(spectrum: str, spreading: float) -> None:
    waves = Waves(height=2.5, peak=0.7, spectrum=spectrum, spreading=spreading, components=80)
    sea = surface.wave_components(waves, 9.81, 3)
    zeta = record(sea, np.arange(0.0, 20_000.0, 0.5), 30.0, -20.0)
    assert 4.0 * zeta.std() == pytest.approx(2.5, rel=0.02)
    # shape: share of the energy below some frequencies, against the integral of the spectrum
    w = np.linspace(0.21, 5.6, 50_000)
    s = surface.spectrum(waves, 2.5, 0.7, w)
    total = np.trapezoid(s, w)
    if spectrum == "ittc":
        assert total == pytest.approx(2.5**2 / 16, rel=2e-3)
    frequency = np.fft.rfftfreq(len(zeta), 0.5) * 2 * math.pi
    power = np.abs(np.fft.rfft(zeta * np.hanning(len(zeta)))) ** 2
    for edge in (0.6, 0.8, 1.2):
        assert power[frequency < edge].sum() / power.sum() == pytest.approx(
            np.trapezoid(s[w < edge], w[w < edge]) / total, abs=0.03
        )


def test_the_kernel_draws_the_sdks_numbers() -> None:
    key = randomness.key(7, "a", "b")
    keys = np.array([key], np.uint64)
    with np.errstate(over="ignore"):
        for counter, index in ((0, 0), (5, 3), (10**9, 5)):
            assert rng.normal(keys[0], counter, index) == randomness.normal(keys, counter, index)[0]


def run_weather(sim: Simulation, seconds: float, every: float) -> np.ndarray:
    rows = []
    for _ in range(round(seconds / every)):
        sim.advance(round(every * 1e9 / sim.step_ns))
        rows.append(sim.weather_model.weather.state.copy())
    return np.array(rows)


@pytest.mark.compiled
def test_wind_statistics(config: Callable[..., LoadedConfig]) -> None:
    declared = '<wind speed="12 m/s" direction="30 deg" slow_deviation="1 m/s" slow_time="20 s" minimum="10 m/s" maximum="14 m/s" gusts="100"/>'
    sim = Simulation(config(f'<time step="100 ms"/><world>{declared}</world>'))
    rows = run_weather(sim, 20_000.0, 1.0)
    slow = rows[:, weather.W_SLOW_WIND]
    assert slow.min() >= -2.0 and slow.max() <= 2.0
    assert slow.std() == pytest.approx(1.0, rel=0.15), "a little less than 1: cut at 2 sigma"
    lag = np.corrcoef(slow[:-20], slow[20:])[0, 1]
    assert lag == pytest.approx(math.exp(-1.0), abs=0.09), "after one time constant"
    gust = rows[:, weather.W_WIND] - 12.0 - slow
    f = np.geomspace(1 / 3600, 1.0, 20_000)
    energy = np.trapezoid(spectra.harris(0.003, 1800.0, 12.0, f), f)
    assert gust.var() == pytest.approx(energy, rel=0.05)
    assert rows[:, weather.W_WIND].mean() == pytest.approx(12.0, abs=0.2)
    assert wind.wind_profile(0.003, 10.0) == pytest.approx(1.0)
    assert wind.wind_profile(0.003, 2.0) == pytest.approx(1.0 + 2.5 * math.sqrt(0.003) * math.log(0.2))


@pytest.mark.compiled
def test_drift_statistics(config: Callable[..., LoadedConfig]) -> None:
    drift = (
        '<current><drift speed="0.5 m/s" speed_deviation="0.1 m/s" speed_minimum="0.2 m/s" speed_maximum="0.8 m/s" '
        'direction="90 deg" direction_deviation="10 deg" direction_range="25 deg" time_constant="30 s"/></current>'
    )
    sim = Simulation(config(f'<time step="100 ms"/><world>{drift}<bed depth="900 m"/></world>'))
    row = sim.enter("b", "buoy", (0.0, 0.0, 50.0))
    rows = run_weather(sim, 15_000.0, 2.0)
    speed = np.hypot(rows[:, weather.W_NORTH], rows[:, weather.W_EAST])
    heading = np.degrees(np.arctan2(rows[:, weather.W_EAST], rows[:, weather.W_NORTH]))
    assert speed.min() >= 0.2 - 1e-12 and speed.max() <= 0.8 + 1e-12
    assert speed.mean() == pytest.approx(0.5, abs=0.02) and speed.std() == pytest.approx(0.1, rel=0.12)
    assert heading.mean() == pytest.approx(90.0, abs=2.0) and heading.std() == pytest.approx(9.8, rel=0.12)
    assert np.allclose(sim.fleet.body(row)[B.V_WF_W : B.V_WF_W + 2], rows[-1][[weather.W_NORTH, weather.W_EAST]])


def test_layers_and_tide(config: Callable[..., LoadedConfig]) -> None:
    world = (
        '<world><current down="-0.1 m/s"><layer depth="0 m" north="1 m/s"/>'
        '<layer depth="20 m" north="0.5 m/s" east="0.2 m/s" down="0.3 m/s"/></current>'
        '<tide amplitude="1.5 m" period="1000 s"/><bed depth="900 m"/></world>'
    )
    sim = Simulation(config(world))
    rows = [sim.enter(f"b{k}", "buoy", (50.0 * k, 0.0, z)) for k, z in enumerate((10.0, 500.0))]
    flow = [sim.fleet.body(k)[B.V_WF_W : B.V_WF_W + 3] for k in rows]
    assert np.allclose(flow[0], [0.75, 0.1, 0.05]) and np.allclose(flow[1], [0.5, 0.2, 0.2])
    assert np.allclose(sim.water.current(np.array([0.0, 0.0, 10.0]), 0.0), [0.75, 0.1, 0.05])
    sim.advance(1)
    assert sim.fleet.body(rows[0])[B.WATER_LEVEL] == pytest.approx(-1.5, abs=1e-6), "high water at the start"


@pytest.mark.data
def test_a_volume_that_varies_in_time(
    config: Callable[..., LoadedConfig], data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FILES_VARIABLE, str(data_dir))
    (tmp_path / "v.csv").symlink_to(data_dir / "lrauv/minimal_time_varying.csv")
    sim = Simulation(
        config('<world><volume file="v.csv" latitude="0.00001 deg" longitude="0 deg"/><bed depth="900 m"/></world>')
    )
    volume = sim.water.volume
    assert volume is not None and len(volume.times) > 1
    from wavesim_server.environment.flow import flow_at

    flow = sim.tick_executor.environment.flow
    start, end = volume.times[0], volume.times[1]
    for t in (start, 0.25 * end + 0.75 * start, end, end + 99.0):
        p = np.array([0.5, 0.5, 3.0])
        ours = flow_at(flow, float(t), *p)
        assert np.allclose(ours, sim.water.current(p, float(t)), atol=1e-12)
    assert not np.allclose(volume.at(start), volume.at(end)), "it does vary"


@pytest.mark.compiled
def test_a_small_buoy_rides_a_long_wave(config: Callable[..., LoadedConfig]) -> None:
    waves = '<waves height="2 m" peak="0.4 rad/s" components="1"/>'
    sim = Simulation(config(f'<time step="10 ms"/><world>{waves}<bed depth="900 m"/></world>'))
    row = sim.enter("b", "box-buoy", (0.0, 0.0, 0.0))
    sim.advance(3000)
    difference = []
    for _ in range(1500):
        sim.advance(1)
        s = sim.state()["p_WB_W"][row]
        up, *_ = sea_surface.elevation(sim.weather_model.weather.sea, sim.time_ns * 1e-9, s[0], s[1])
        difference.append(s[2] + up)
    assert np.ptp(difference) < 0.05, "it stays at its draft, to 5 % of the wave's amplitude"


def test_wind_forces(config: Callable[..., LoadedConfig]) -> None:
    """Wind from ahead, abeam and astern at rest: Blendermann's coefficients times pressure and area."""
    for heading, (x, y) in {0.0: (-0.55, 0.0), 180.0: (0.60, 0.0), 90.0: (0.0, 0.9)}.items():
        sim = Simulation(config('<world><wind speed="10 m/s" direction="0 deg"/><bed depth="900 m"/></world>'))
        row = sim.enter("o", "odin", (0.0, 0.0, 0.0), (0.0, 0.0, math.radians(heading)))
        sim.advance(1)
        q = 0.5 * 1.25 * (10.0 * wind.wind_profile(0.003, 0.4)) ** 2
        force = sim.fleet.body(row)[B.ENVIRONMENT_WRENCH : B.ENVIRONMENT_WRENCH + 6]
        assert np.allclose(force[:2], [q * x * 6.4, q * y * 11.31], atol=1e-6 * q)
        if heading == 90.0:  # wind from the north comes from port of a boat that heads east
            assert force[5] == pytest.approx(1.2 * force[1], rel=1e-9), "s_L times Y"


@pytest.mark.compiled
def test_wave_filter(config: Callable[..., LoadedConfig]) -> None:
    """Variance of K s/(s^2 + 2 l w s + w^2) driven by white noise of unit intensity: K^2/(4 l w)."""
    sim = Simulation(
        config(
            '<time step="50 ms"/><world><waves height="1 m" peak="0.8 rad/s" components="1"/><bed depth="900 m"/></world>'
        )
    )
    row = sim.enter("o", "odin-hilsim", (0.0, 0.0, 0.0))
    sim.fleet.override_parameters(row, {P.MASS_INVERSE + k: 0.0 for k in range(36)})  # held in place: no encounter
    values = []
    for _ in range(20_000):
        sim.advance(4)
        values.append(sim.fleet.body(row)[B.ENVIRONMENT_WRENCH + 2])
    assert np.var(values) == pytest.approx(13193.0**2 / (4 * 0.1017 * 0.8), rel=0.15)
    power = np.abs(np.fft.rfft(np.array(values) * np.hanning(len(values)))) ** 2
    frequency = np.fft.rfftfreq(len(values), 0.2) * 2 * math.pi
    smooth = np.convolve(power, np.ones(200) / 200, "same")
    assert frequency[smooth.argmax()] == pytest.approx(0.8, abs=0.06)


@pytest.mark.compiled
def test_hulls_heave_as_the_sea_does(config: Callable[..., LoadedConfig]) -> None:
    """Adrift in a sea whose waves are longer than they: by slopes and by filters (that heaved 1.4 to 1.6 times as much)."""
    inner = '<waves height="1 m" peak="0.8 rad/s" direction="90 deg" components="40"/><bed depth="900 m"/>'
    sim = Simulation(config(f'<time step="50 ms"/><shared vehicles="4"/><world>{inner}</world>'))
    names = ("odin", "odin-hilsim", "jolner", "otter")
    rows = [sim.enter(name, name, (0.0, 3000.0 * k, 0.0)) for k, name in enumerate(names)]
    sim.advance(2000)
    heave = []
    for _ in range(4000):
        sim.advance(10)
        heave.append(sim.state()["p_WB_W"][rows, 2])
    assert 4.0 * np.std(heave, axis=0) == pytest.approx(1.0, abs=0.15)


def test_beaufort(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<world><wind beaufort="5"/><waves beaufort="5" components="200"/></world>'))
    zeta = record(sim.weather_model.weather.sea, np.arange(0.0, 5000.0, 0.5))
    assert 4 * zeta.std() == pytest.approx(3.0, rel=0.04)
    sim.advance(1)
    assert 8.0 <= sim.weather_model.weather.state[weather.W_WIND] <= 10.7


def test_waves_belong_to_the_seed(config: Callable[..., LoadedConfig]) -> None:
    inner = '<world><waves height="1 m" peak="1 rad/s"/><wind speed="9 m/s" gusts="10"/></world>'
    a, b, c = (Simulation(config(inner), seed) for seed in (1, 1, 2))
    assert np.array_equal(a.weather_model.weather.sea, b.weather_model.weather.sea) and not np.array_equal(
        a.weather_model.weather.sea, c.weather_model.weather.sea
    )
    assert np.array_equal(a.weather_model.weather.gusts, b.weather_model.weather.gusts)


def test_who_composes_the_sea_again_has_the_same_one(config: Callable[..., LoadedConfig]) -> None:
    """From the configuration, the seed and what was changed on the way; its elevation is the one that the kernel finds."""
    loaded = config("<world><waves height='1 m' peak='0.9 rad/s' spreading='6'/><bed depth='12 m'/></world>")
    sim = Simulation(loaded, seed=4)
    assert np.array_equal(sim.weather_model.weather.sea, surface.sea_components(loaded, 4))
    sim.set_weather(wave_height=2.0, wave_direction=1.0)
    sea = sim.weather_model.weather.sea
    assert np.array_equal(sea, surface.sea_components(loaded, 4, height=2.0, direction=1.0))
    assert not np.array_equal(sea, surface.sea_components(loaded, 4, height=2.0, direction=1.0, depth=50.0)), (
        "of this depth"
    )
    x, y = np.linspace(-50.0, 50.0, 7), np.linspace(0.0, 30.0, 7)
    wanted = [sea_surface.elevation(sea, 100.0, a, b)[0] for a, b in zip(x, y, strict=True)]
    assert np.allclose(surface.elevation(sea, 100.0, x, y), wanted, atol=1e-12)
