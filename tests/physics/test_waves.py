"""The sea under and around bodies: orbital motion, depth, slope, drift, air drag without wind."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.environment import exposure
from wavesim_world.config import LoadedConfig, library
from wavesim_world.config.exposure import Rao
from wavesim_world.config.world import Waves
from wavesim_world.ocean import surface

BALL = """<models><model name="ball" type="buoy"><sphere diameter="0.1 m"/><mass value="0.536689 kg"/>
<inertia xx="0.001" yy="0.001" zz="0.001"/><added-mass diagonal="0.268 0.268 0.268 0 0 0"/>
<linear-drag diagonal="0 0 0 0.01 0.01 0.01"/></model></models>"""


BEAM = 'direction="90 deg"'


#: mean frequency of a spectrum over its peak: that of a sea of one component
MEAN = float(surface.wave_components(Waves(height=1.0, peak=1.0, components=1), 9.81, 1)[0, surface.S_FREQUENCY])


def regular(height: float, w: float, extra: str = "", depth: float = 3000.0) -> str:
    """One component of a height (crest to trough, m) and frequency."""
    spectrum = f'height="{height * math.sqrt(2.0)} m" peak="{w / MEAN} rad/s" components="1"'
    return f'<waves {spectrum} {extra}/><bed depth="{depth} m"/>'


def test_the_length_of_waves_in_shallow_water() -> None:
    """w^2 = g k tanh(k h): 8.1 s in 8 m are 66 m long, not 102."""
    w = np.array([2 * math.pi / 8.1])
    assert 2 * math.pi / surface.wave_number(w, 9.81, 8.0)[0] == pytest.approx(66.0, abs=0.5)
    assert 2 * math.pi / surface.wave_number(w, 9.81, math.inf)[0] == pytest.approx(102.4, abs=0.1)
    w = np.geomspace(0.05, 20.0, 400)
    for depth in (0.5, 8.0, 300.0, 11_000.0):
        k = surface.wave_number(w, 9.81, depth)
        assert np.allclose(9.81 * k * np.tanh(k * depth), w * w, rtol=1e-12)


@pytest.mark.parametrize("depth", [6.0, 3000.0])
def test_the_water_moves_by_airys_theory(config: Callable[..., LoadedConfig], depth: float) -> None:
    """Velocity and acceleration at each body's depth against the sum over the components, written out."""
    world = f'<waves height="1 m" peak="0.9 rad/s" direction="40 deg" components="20" spreading="8"/><bed depth="{depth} m"/>'
    sim = Simulation(config(f"<time step='10 ms'/><world><current north='0.3 m/s'/>{world}</world>{BALL}"))
    rows = [sim.enter(f"b{k}", "ball", (30.0 * k, -7.0 * k, z)) for k, z in enumerate((0.5, 2.0, 5.0))]
    sea, t = sim.weather_model.weather.sea, 0.0
    for row in rows:
        x, y, z = sim.fleet.body(row)[:3]
        v, a, gradient = np.zeros(3), np.zeros(3), np.zeros((3, 3))
        for c in sea:
            k, w, size = c[surface.S_WAVE_NUMBER], c[surface.S_FREQUENCY], c[surface.S_AMPLITUDE]
            to = np.array([math.cos(c[surface.S_DIRECTION]), math.sin(c[surface.S_DIRECTION])])
            angle = w * t - k * (to @ [x, y]) + c[surface.S_PHASE]
            flat = math.cosh(k * (depth - z)) / math.sinh(k * depth) if k * depth < 300 else math.exp(-k * z)
            tall = math.sinh(k * (depth - z)) / math.sinh(k * depth) if k * depth < 300 else math.exp(-k * z)
            v += size * w * np.array([*(flat * to * math.cos(angle)), tall * math.sin(angle)])
            a += size * w * w * np.array([*(-flat * to * math.sin(angle)), tall * math.cos(angle)])
            n = np.array([*to, 0.0])
            down = np.array([0.0, 0.0, 1.0])
            gradient += size * w * k * flat * math.sin(angle) * (np.outer(n, n) - np.outer(down, down))
            gradient -= size * w * k * tall * math.cos(angle) * (np.outer(n, down) + np.outer(down, n))
        body = sim.fleet.body(row)
        assert np.allclose(body[B.V_WF_W : B.V_WF_W + 3], v + [0.3, 0.0, 0.0], atol=2e-4)
        assert np.allclose(body[B.A_WF_W : B.A_WF_W + 3], a + gradient @ v, atol=4e-4)


@pytest.mark.compiled
@pytest.mark.parametrize("depth", [10.0, 3000.0])
def test_a_small_neutral_sphere_follows_the_orbit(config: Callable[..., LoadedConfig], depth: float) -> None:
    w, z, height = 0.8, 4.0, 0.4
    sim = Simulation(config(f"<time step='10 ms'/><world>{regular(height, w, depth=depth)}</world>{BALL}"))
    row = sim.enter("b", "ball", (0.0, 0.0, z))
    sim.set_pose(row, velocity=(*sim.fleet.body(row)[B.V_WF_W : B.V_WF_W + 3], 0.0, 0.0, 0.0))
    track = []
    for _ in range(round(4 * 2 * math.pi / w / 0.05)):
        sim.advance(5)
        track.append(sim.state()["p_WB_W"][row].copy())
    k = sim.weather_model.weather.sea[0, surface.S_WAVE_NUMBER]
    flat, tall = (
        f(k * (depth - z)) / math.sinh(k * depth) if k * depth < 300 else math.exp(-k * z)
        for f in (math.cosh, math.sinh)
    )
    t = 0.05 * np.arange(1, len(track) + 1)
    basis = np.stack([np.cos(w * t), np.sin(w * t), np.ones(len(t)), t, t * t], axis=1)
    fit = np.linalg.lstsq(basis, np.array(track), rcond=None)[0]
    sizes = np.hypot(fit[0], fit[1])
    assert sizes[2] / (height / 2 * tall) == pytest.approx(1.0, abs=0.02)
    assert sizes[0] / (height / 2 * flat) == pytest.approx(1.0, abs=0.02)
    assert np.abs(fit[3]).max() < 3.0 * w * k * (height / 2) ** 2, "it does not leave, but for a drift of second order"


@pytest.mark.compiled
def test_an_auv_below_a_rough_sea_heaves(config: Callable[..., LoadedConfig]) -> None:
    """LAUV 3 m below a sea of Hs 3 m: about 0.6 m."""
    world = '<waves height="3 m" peak="0.5127 rad/s"/><bed depth="500 m"/>'
    sim = Simulation(config(f"<time step='20 ms'/><world>{world}</world>"))
    row = sim.enter("v", "lauv", (0.0, 0.0, 3.0))
    sim.fleet.override_parameters(row, {P.FULL_BUOYANCY: sim.fleet.coefficients(row)[P.WEIGHT]})  # trimmed
    z = []
    for _ in range(600):
        sim.advance(25)
        z.append(float(sim.state()["p_WB_W"][row][2]))
    moving = np.array(z)[40:-39] - np.convolve(z, np.ones(80) / 80, "valid")
    sea = sim.weather_model.weather.sea
    water = math.sqrt(
        0.5 * np.sum((sea[:, surface.S_AMPLITUDE] * np.exp(-sea[:, surface.S_WAVE_NUMBER] * np.mean(z))) ** 2)
    )
    assert 0.4 < water < 0.75 and moving.std() == pytest.approx(water, rel=0.2)


@pytest.mark.compiled
@pytest.mark.parametrize(("name", "w", "height"), [("otter", 0.9, 0.2), ("supply", 0.25, 1.0), ("odin", 0.4, 0.4)])
def test_a_hull_rolls_with_the_slope_of_a_long_beam_sea(
    config: Callable[..., LoadedConfig], name: str, w: float, height: float
) -> None:
    """Linear restoring takes the level of the water, and its slope."""
    sim = Simulation(config(f"<time step='20 ms'/><world>{regular(height, w, BEAM)}</world>"))
    row = sim.enter("v", name, (0.0, 0.0, library()[name].restoring.z))  # type: ignore[union-attr]
    sim.advance(round(120 / 0.02))
    roll, z = [], []
    for _ in range(round(2 * math.pi / w * 3 / 0.2)):
        sim.advance(10)
        s = sim.state()[row]
        roll.append(frames.euler(s["q_WB"])[0])
        z.append(s["p_WB_W"][2])
    slope = height / 2 * w * w / 9.81
    assert np.ptp(z) / height == pytest.approx(1.0, abs=0.1)
    assert 0.9 < np.ptp(roll) / (2 * slope) < 1.35, "more only by what is left of its own period"


@pytest.mark.data
@pytest.mark.compiled
def test_the_supply_vessel_moves_as_its_table_says(config: Callable[..., LoadedConfig], data_dir: Path) -> None:
    """Motion, not force: heave, roll and pitch in regular waves over frequency and heading against the table's operators."""
    from scipy.io import loadmat

    vessel = loadmat(str(data_dir / "ships/supply.mat"), squeeze_me=True, struct_as_record=False)["vessel"]
    model = dataclasses.replace(
        library()["supply"], rao=Rao(file="supply.mat", use="motion"), place=f"{data_dir / 'ships' / 'x.xml'}:1"
    )
    headings = range(0, 360, 30)
    for w in (0.3, 0.45, 0.6, 0.75, 0.95, 1.3):
        loaded = config(f'<time step="50 ms"/><shared vehicles="12"/><world>{regular(0.05, w)}</world>')
        sim = Simulation(dataclasses.replace(loaded, models={"supply": model}))
        rows = [
            sim.enter(f"s{k}", "supply", (0.0, 1000.0 * k, 0.0), (0.0, 0.0, -math.radians(h)))
            for k, h in enumerate(headings)
        ]
        sim.advance(8000)
        size = sim.weather_model.weather.sea[0, surface.S_AMPLITUDE]
        record, times = [], []
        for _ in range(round(4 * 2 * math.pi / w / 0.25)):
            sim.advance(5)
            s = sim.state()[rows]
            record.append([[p[2], *frames.euler(q)[:2]] for p, q in zip(s["p_WB_W"], s["q_WB"], strict=True)])
            times.append(sim.time_ns * 1e-9)
        basis = np.stack([np.cos(w * np.array(times)), np.sin(w * np.array(times)), np.ones(len(times))], axis=1)
        fit = np.linalg.lstsq(basis, np.array(record).reshape(len(times), -1), rcond=None)[0]
        found = (np.hypot(fit[0], fit[1]) / size).reshape(len(rows), 3)
        for j, dof in enumerate((2, 3, 4)):
            table = [
                abs(np.interp(w, vessel.motionRAO.w, a * np.exp(1j * p)))
                for a, p in (
                    (vessel.motionRAO.amp[dof][:, h // 10, 0], vessel.motionRAO.phase[dof][:, h // 10, 0])
                    for h in headings
                )
            ]
            most = max(max(table), 0.02 if dof == 2 else 0.002)
            assert np.abs(found[:, j] - table).max() < 0.05 * most, (w, dof, found[:, j], table)


@pytest.mark.data
def test_drift_forces_of_the_table(config: Callable[..., LoadedConfig], data_dir: Path) -> None:
    """Newman's approximation: its mean over time is the sum of a^2 T over the components."""
    model = dataclasses.replace(
        library()["supply"], rao=Rao(file="supply.mat", use="force"), place=f"{data_dir / 'ships' / 'x.xml'}:1"
    )
    operators = exposure.read_operators(model, model.rao)  # type: ignore[arg-type]
    loaded = config('<world><waves height="3 m" peak="0.8 rad/s" direction="60 deg"/><bed depth="3000 m"/></world>')
    sim = Simulation(dataclasses.replace(loaded, models={"supply": model}))
    row = sim.enter("s", "supply")
    sea = sim.weather_model.weather.sea
    wanted = (sea[:, surface.S_AMPLITUDE] ** 2)[:, None] * operators.drift_at(sea[:, surface.S_FREQUENCY])[6] ** 2
    signs = np.sign(operators.drift_at(sea[:, surface.S_FREQUENCY])[6])
    first = operators.force_at(sea[:, surface.S_FREQUENCY])[6]
    forces = []
    times = np.arange(0.0, 40_000.0, 7.3)
    for t in times:
        sim.weather_model.refresh(row, sim.fleet, 0, float(t))
        forces.append(sim.fleet.body(row)[B.ENVIRONMENT_WRENCH : B.ENVIRONMENT_WRENCH + 6].copy())
    angle = np.outer(times, sea[:, surface.S_FREQUENCY]) + sea[:, surface.S_PHASE]
    linear = (np.cos(angle) * sea[:, surface.S_AMPLITUDE]) @ first[:, :, 0] - (
        np.sin(angle) * sea[:, surface.S_AMPLITUDE]
    ) @ first[:, :, 1]
    slow = (np.array(forces) - linear)[:, [0, 1, 5]].mean(axis=0)
    assert np.allclose(slow[:2], (signs * wanted).sum(axis=0)[:2], rtol=0.1)


def test_air_drags_without_wind_too(config: Callable[..., LoadedConfig]) -> None:
    """-6600 N at 8 m/s in calm air, as a hair of wind gives."""
    forces = []
    for speed in (0.0, 1e-6):
        sim = Simulation(config(f'<world><wind speed="{speed} m/s"/><bed depth="900 m"/></world>'))
        row = sim.enter("s", "supply")
        sim.set_pose(row, velocity=(8.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        sim.advance(1)
        forces.append(float(sim.fleet.body(row)[B.ENVIRONMENT_WRENCH]))
    assert forces[0] == pytest.approx(-0.5 * 1.25 * 64.0 * 0.55 * 300.0, rel=1e-3)
    assert forces[0] == pytest.approx(forces[1], rel=1e-3)


def test_wind_needs_the_height_at_which_it_acts(config: Callable[..., LoadedConfig]) -> None:
    text = BALL.replace("</model>", '<wind-drag frontal="1 m2" lateral="1 m2" length="1 m"{}/></model>')
    with pytest.raises(ConfigError, match="height"):
        config(text.format(""))
    with pytest.raises(ConfigError, match=r"below the minimum, 0\.01 m"):
        config(text.format(' height="0 m"'))


def test_the_wing_of_a_hull_that_goes_straight_astern(config: Callable[..., LoadedConfig]) -> None:
    """Its angle of attack is pi there, as it is a hair beside it."""
    text = BALL.replace("</model>", '<body-lift area="0.1 m2" span="0.2 m" drag="0.2"/></model>')
    found: list[Any] = []
    for across in (0.0, 1e-9):
        sim = Simulation(config(f"<world><bed depth='900 m'/></world>{text}"))
        row = sim.enter("b", "ball", (0.0, 0.0, 50.0))
        sim.set_pose(row, velocity=(-1.0, 0.0, across, 0.0, 0.0, 0.0))
        sim.advance(1)
        found.append(sim.fleet.body(row)[B.NU : B.NU + 3].copy())
    assert np.allclose(found[0], found[1], rtol=1e-6) and found[0][0] > -0.999


@pytest.mark.parametrize("model", ["boat", "ship"])
def test_the_water_does_not_start_what_a_model_holds(config: Callable[..., LoadedConfig], model: str) -> None:
    """A vessel that moves in the plane goes straight on in waves; she sank, or took off, at the water's first vertical speed."""
    body = f'<fleet><vehicle name="v" model="{model}" position="0 0 0 m" speed="4 m/s"/></fleet>'
    sim = Simulation(config(f'<time step="10 ms"/><world><bed depth="80 m"/><waves height="1.2 m"/></world>{body}'))
    sim.enter_residents()
    sim.advance(2000)
    state = sim.state()[0]
    assert state["p_WB_W"][2] == 0.0 and state["v_WB_B"][2] == 0.0
    assert 60.0 < state["p_WB_W"][0] < 100.0 and abs(state["p_WB_W"][1]) < 5.0
