"""Wind, current and sea state that change while the simulation runs, the surroundings of each body, and noise that
follows the wind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import node, run, sea
from wavesim_sdk.arrays import as_numbers
from wavesim_sdk.tables import WEATHER as WEATHER_TABLE
from wavesim_server import Simulation
from wavesim_server.acoustics import medium_setup
from wavesim_server.environment import sea_surface, weather
from wavesim_world.config import LoadedConfig, library
from wavesim_world.ocean import sound

WEATHER = (
    '<time step="20 ms"/><world><current north="0.1 m/s" tide_amplitude="0.2 m/s" tide_period="100 s"/><tide amplitude="1 m"/>'
    '<wind speed="6 m/s" direction="30 deg" gusts="10"/><waves height="0.5 m" peak="1 rad/s" components="12"/>'
    '<bed depth="900 m"/></world>'
)


def test_the_current(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(WEATHER))
    row = sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    sim.set_weather(current_north=-0.5, current_east=0.4)
    assert np.allclose(sim.weather_model.uniform_flow(sim.time_s), [-0.5 + 0.2, 0.4, 0.0]), "the tidal stream goes on"
    sim.advance(1)
    around = sim.results.surroundings(sim.time_s)[row]
    tide = 0.2 * math.cos(2 * math.pi * 0.02 / 100.0)
    assert np.allclose(around["current_W"], [-0.5 + tide, 0.4, 0.0])
    sim.set_weather(current_east=0.0, current_down=-0.2)
    tide = 0.2 * math.cos(2 * math.pi * sim.time_s / 100.0)
    now = [-0.5 + tide, 0.0, -0.2]
    assert sim.weather_model.uniform_flow(sim.time_s) == pytest.approx(now), "what is not named stays"
    sim.advance(1)
    assert sim.results.surroundings(sim.time_s)[row]["current_W"][2] == -0.2
    published = np.zeros(1, WEATHER_TABLE.dtype)
    state, actuation = (as_numbers(table) for table in sim.results.motion())
    sim.results.fill(sim.time_s, state, actuation, as_numbers(published))
    assert published["current_W"][0] == pytest.approx(sim.weather_model.uniform_flow(sim.time_s))
    sim.set_weather(current_north=0.3)
    assert sim.weather_model.uniform_flow(sim.time_s)[2] == -0.2


def test_the_wind(config: Callable[..., LoadedConfig]) -> None:
    calm = WEATHER.replace(' gusts="10"', "").replace('<waves height="0.5 m" peak="1 rad/s" components="12"/>', "")
    sim = Simulation(config(calm))
    row = sim.enter("boat", "odin")
    sim.set_weather(wind_speed=12.0, wind_direction=math.pi / 2)
    around = sim.results.surroundings(sim.time_s)[row]
    assert np.allclose(around["wind_W"], [0.0, -12.0, 0.0], atol=1e-12), "from the east, at once"
    sim.advance(1)
    strong = sim.results.effort()[row]["environment"][1]
    sim.set_weather(wind_speed=6.0)
    sim.advance(1)
    assert strong < 0.0 and sim.results.effort()[row]["environment"][1] == pytest.approx(strong / 4.0, rel=0.02)


def test_gusts_belong_to_their_mean(config: Callable[..., LoadedConfig]) -> None:
    sim, born = Simulation(config(WEATHER)), Simulation(config(WEATHER.replace('speed="6 m/s"', 'speed="11 m/s"')))
    sim.set_weather(wind_speed=11.0)
    assert np.array_equal(sim.weather_model.weather.gusts, born.weather_model.weather.gusts)
    assert np.array_equal(sim.weather_model.weather.wind, born.weather_model.weather.wind)


def test_the_sea_is_the_one_that_the_seed_gives(config: Callable[..., LoadedConfig]) -> None:
    """A sea that was set is the sea of a configuration that says so, whatever came before."""
    sim = Simulation(config(WEATHER))
    sim.enter("b", "box-buoy")
    sim.advance(20)
    sim.set_weather(wave_height=2.0, wave_peak=0.7, wave_direction=1.0)
    sim.set_weather(wave_height=0.0)
    assert len(sim.weather_model.weather.sea) == 0
    sim.set_weather(wave_height=1.5)
    other = '<waves height="1.5 m" peak="0.7 rad/s" direction="57.29577951308232 deg" components="12"/>'
    born = Simulation(config(WEATHER.replace('<waves height="0.5 m" peak="1 rad/s" components="12"/>', other)))
    assert np.allclose(sim.weather_model.weather.sea, born.weather_model.weather.sea, rtol=1e-14)
    up = [sea_surface.elevation(s.weather_model.weather.sea, 33.0, 5.0, 6.0)[0] for s in (sim, born)]
    assert up[0] == pytest.approx(up[1], rel=1e-9)


def test_runs_with_changes_repeat(config: Callable[..., LoadedConfig]) -> None:
    ends = []
    for _ in range(2):
        sim = Simulation(config(WEATHER))
        row = sim.enter("boat", "jolner")
        for k in range(5):
            sim.set_weather(wave_height=0.2 * k, wind_speed=3.0 * k, current_east=0.1 * k)
            sim.advance(30)
        ends.append(sim.state()[row].tobytes())
    assert ends[0] == ends[1]


def test_beaufort_gives_way_to_numbers(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<world><wind beaufort="5"/><waves beaufort="4" components="30"/></world>'))
    sim.set_weather(wave_height=1.0)
    assert (sim.weather_model.waves.height, sim.weather_model.waves.peak) == (1.0, 0.6280), "the peak of before"
    sim.set_weather(wind_direction=1.0)
    assert sim.weather_model.wind.mean == 9.4
    sim.set_weather(wind_speed=2.0)
    assert sim.weather_model.wind.mean == 2.0


@pytest.mark.compiled
def test_waves_reach_bodies_that_the_old_sea_did_not(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(WEATHER.replace('height="0.5 m"', 'height="0 m"')))
    row = sim.enter("b", "box-buoy", (0.0, 0.0, 0.0))
    sim.set_weather(wave_height=6.0, wave_peak=0.5)
    sim.advance(200)
    zs = []
    for _ in range(200):
        sim.advance(20)
        zs.append(float(sim.state()["p_WB_W"][row][2]))
    assert np.ptp(zs) > 2.0
    assert sim.frozen_bodies == []


@pytest.mark.parametrize(
    "values",
    [
        {"wind_speed": -1.0},
        {"wind_speed": 101.0},
        {"wind_speed": math.nan},
        {"wave_height": 31.0},
        {"wave_peak": 0.0},
        {"wave_peak": 21.0},
        {"current_north": 21.0},
        {"current_east": -math.inf},
        {"current_down": 20.1},
        {"current_down": math.nan},
        {"wave_direction": 1e9},
        {"rain": 1.0},
        {"wind_speed": "5"},
        {"wind_speed": True},
        {"wind_speed": [5.0]},
        {"wind_speed": 10**400},
    ],
)
def test_what_cannot_be_set_changes_nothing(config: Callable[..., LoadedConfig], values: dict[str, Any]) -> None:
    sim = Simulation(config(WEATHER))
    before = [a.tobytes() for a in (*sim.weather_model.weather, *sim.weather_model.flow)]
    with pytest.raises(ValueError):
        sim.set_weather(
            current_north=1.0,
            wave_height=2.0,
            **{k: v for k, v in values.items() if k not in ("current_north", "wave_height")},
        ) if not {"current_north", "wave_height"} & values.keys() else sim.set_weather(**values)
    assert [a.tobytes() for a in (*sim.weather_model.weather, *sim.weather_model.flow)] == before


def test_surroundings(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(WEATHER))
    afloat = sim.enter("b", "box-buoy", (30.0, 20.0, 0.0))
    deep = sim.enter("v", "lauv", (-40.0, 0.0, 300.0))
    sim.advance(100)
    table = sim.results.surroundings(sim.time_s)
    state = sim.state()
    for row in (afloat, deep):
        x, y, _ = state["p_WB_W"][row]
        up, _, _ = sea_surface.elevation(sim.weather_model.weather.sea, 2.0, x, y)
        assert table["wave"][row] == pytest.approx(up), "deep bodies too"
        tide = -sim.weather_model.weather.state[weather.W_LEVEL]
        assert tide == pytest.approx(1.0, abs=1e-3) and table["level"][row] == pytest.approx(tide + up)
    speed = sim.weather_model.weather.state[weather.W_WIND]
    assert np.allclose(table["wind_W"][afloat], [-speed * math.cos(math.radians(30)), -speed * 0.5, 0.0])
    only = sim.results.surroundings(sim.time_s, [deep, 60])
    assert only["current_W"][deep].any() and not only["current_W"][afloat].any()


NOISY = 'listen_low="10 kHz" listen_high="40 kHz" threshold="60 dB" source_level="200 dB" pulse="10 ms" recharge="0 s" bandwidth="1 kHz"'
MODEM = '<modem address="{}" frequency="25 kHz" bandwidth="2 kHz" bit_rate="100" preamble="10 ms" payload="32"/>'


def test_the_noise_follows_the_wind(config: Callable[..., LoadedConfig]) -> None:
    """What is heard, what a node will send by itself, and what had been planned, have the noise of the new wind."""
    sim = sea(
        config,
        "20 ms",
        (NOISY + ' query="25 kHz" reply="26 kHz"', '<pinger frequency="24 kHz" period="9 s"/>' + MODEM.format(3)),
        extra='noise_model="wenz" shipping="0.5"',
        world='<wind speed="3 m/s"/><bed depth="9000 m"/>',
    )
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, 300.0)
    sim.ping(a, 30e3, at=1_000_000_000)
    n = sim.channel.medium.nodes[b]
    bands = ((26e3, 1e3), (25e3, 2e3), (24e3, 1e3))
    for wind in (3.0, 15.0):
        sim.set_weather(wind_speed=wind)
        acoustics = sim.config.acoustics
        expected = [sound.noise_in_band(acoustics, wind, f, band) for f, band in bands]
        assert [n.reply_noise, n.modem_noise, n.ping_noise] == pytest.approx(expected)
        planned = sim.channel.medium.emissions.noise[medium_setup.planned_emissions(sim.channel.medium)]
        assert max(planned) <= max(sound.noise_in_band(acoustics, wind, f, 1e3) for f in (24e3, 30e3)) + 1e-9
    loud = sound.noise_in_band(sim.config.acoustics, 15.0, 30e3, 1e3)
    _, receptions = run(sim, 2.0)
    assert receptions[receptions["frequency"] == 30e3]["noise"] == pytest.approx(loud)


def test_operators_of_different_headings_side_by_side(config: Callable[..., LoadedConfig], tmp_path: Any) -> None:
    """Two models whose operator files have other headings: each gets its own force; and they follow a changed sea."""
    import dataclasses

    from scipy.io import savemat

    from wavesim_world.config.exposure import Rao

    frequencies = np.linspace(0.2, 3.0, 15)
    models = {}
    for name, headings, size in (("eight", 8, 100.0), ("twelve", 12, 300.0)):
        amp = np.empty(6, object)
        for k in range(6):
            amp[k] = np.full((15, headings, 2), size if k == 2 else 0.0)
        phase = np.empty(6, object)
        phase[:] = [np.zeros((15, headings, 2))] * 6
        force = {"w": frequencies, "amp": amp, "phase": phase}
        savemat(
            str(tmp_path / f"{name}.mat"),
            {"vessel": {"headings": np.arange(headings) * 2 * math.pi / headings, "forceRAO": force}},
        )
        models[name] = dataclasses.replace(
            library()["jolner"],
            name=name,
            rao=Rao(file=f"{name}.mat"),
            wave_filter=None,
            wind_drag=None,
            active="u",
            place=f"{tmp_path / 'x.xml'}:1",
        )
    loaded = config(
        '<time step="20 ms"/><world><waves height="1 m" peak="1 rad/s" components="5"/><bed depth="900 m"/></world>'
    )
    sim = Simulation(dataclasses.replace(loaded, models=models))
    rows = {n: sim.enter(n, n, (100.0 * k, 0.0, 0.0)) for k, n in enumerate(models)}

    def ratio() -> list[float]:
        t = sim.time_ns * 1e-9
        sim.advance(1)
        effort, state = sim.results.effort(), sim.state()
        return [
            effort["environment"][row][2]
            / sea_surface.elevation(sim.weather_model.weather.sea, t, *state["p_WB_W"][row][:2])[0]
            for row in rows.values()
        ]

    assert ratio() == pytest.approx([100.0, 300.0], rel=1e-3)
    sim.set_weather(wave_height=2.0, wave_peak=0.6)
    assert ratio() == pytest.approx([100.0, 300.0], rel=1e-3)
    sim.leave(rows["eight"])
    assert sim.enter("eight again", "eight", (500.0, 0.0, 0.0)) == rows["eight"]
    assert ratio() == pytest.approx([100.0, 300.0], rel=1e-3)
    assert len(sim.weather_model.weather.rao) == 2


def test_an_operator_file_that_is_none_is_refused_before_anything_changes(
    config: Callable[..., LoadedConfig], tmp_path: Any
) -> None:
    import dataclasses

    from wavesim_sdk.errors import ConfigError
    from wavesim_world.config.exposure import Rao

    (tmp_path / "x.mat").write_bytes(b"no such file")
    model = dataclasses.replace(library()["jolner"], name="m", rao=Rao(file="x.mat"), place=f"{tmp_path / 'x.xml'}:1")
    loaded = dataclasses.replace(config("<world/>"), models={"m": model})
    with pytest.raises(ConfigError, match=r"x\.mat"):
        Simulation(loaded)
