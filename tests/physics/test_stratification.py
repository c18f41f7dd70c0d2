"""Buoyancy in the local water: floats find their level and gliders glide, against closed forms and the sea water of
another package.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import seawater
from scipy.optimize import brentq

from wavesim_server.simulation import Simulation
from wavesim_server.stratification import water_density
from wavesim_world.config import load_text

G = 9.81
SEA = """<world density="{density}"><bed depth="3000 m"/>
<temperature surface="16 C" knee_1="0 m" knee_2="400 m" gradient_1="-0.02 C/m" gradient_2="0 C/m"/>
<conductivity surface="4.3 S/m" knee_1="0 m" knee_2="400 m" gradient_1="-0.002 S/m/m" gradient_2="0 S/m/m"/></world>"""
BODY = """<model name="body" type="underwater" {active}><sphere diameter="0.5 m"/><mass value="{mass} kg"/><inertia xx="1" yy="1" zz="1"/>
<buoyancy volume="50 l" compressibility="{soft} 1/dbar"/><added-mass diagonal="0 0 25 0 0 0"/>{drag}{more}</model>"""
DRAG = '<linear-drag diagonal="0 0 {d} 0 0 0"/>'


def simulation(
    mass: float,
    depth: float,
    soft: float = 0.0,
    drag: float = 0.0,
    world: str = "water",
    active: str = "",
    more: str = "",
) -> Simulation:
    damped = "" if more else DRAG.format(d=drag)
    body = BODY.format(mass=mass, soft=soft, drag=damped, more=more, active=active)
    start = f'<vehicle name="b" model="body" position="0 0 {depth} m" attitude="0 0 0 deg"/>'
    sim = Simulation(
        load_text(
            f"<wavesim><time step='50 ms'/>{SEA.format(density=world)}<models>{body}</models><fleet>{start}</fleet></wavesim>"
        )
    )
    sim.enter_residents()
    return sim


def water(depth: float) -> float:
    """Density by the package `seawater` (EOS-80): temperature and conductivity as configured, pressure of a standard ocean."""
    t = (16.0 - 0.02 * min(depth, 400.0)) / 1.00024  # ITS-90
    c = 4.3 - 0.002 * min(depth, 400.0)
    p = seawater.pres(depth, 0.0)
    return float(seawater.dens(seawater.salt(10.0 * c / 42.914, t, p), t, p))


def level(mass: float, soft: float) -> float:
    """Where a body of 50 l has the density of the water."""
    return float(brentq(lambda z: 0.050 * water(z) * (1.0 - soft * seawater.pres(z, 0.0)) - mass, 1.0, 2500.0))


def test_the_density_is_that_of_another_package() -> None:
    sim = simulation(51.3, 100.0)
    for depth in (0.0, 50.0, 333.3, 1500.0):
        assert water_density(sim.water, (0.0, 0.0, depth), 0.0) == pytest.approx(water(depth), abs=2e-3)


@pytest.mark.parametrize(("soft", "mass"), [pytest.param(0.0, 51.32, marks=pytest.mark.compiled), (3e-6, 51.30)])
def test_a_float_finds_its_level(soft: float, mass: float) -> None:
    """Fails when the hull is not pressed together, or the wrong way, or when the water is not that of its depth."""
    true = level(mass, soft)
    assert 50.0 < true < 380.0
    sim = simulation(mass, true - 3.0, soft, drag=1.2)
    sim.advance(24000)
    assert sim.state()["p_WB_W"][0, 2] == pytest.approx(true, abs=0.5)
    assert abs(sim.state()["v_WB_B"][0, 2]) < 1e-3


@pytest.mark.compiled
def test_it_swings_about_its_level_as_the_stratification_says() -> None:
    """w^2 = g/(m + A) d(rho V)/dz: Brunt and Vaisala's, with the hull's compression and the added mass."""
    soft, mass = 2e-6, 51.30
    true = level(mass, soft)
    sim = simulation(mass, true - 2.0, soft)
    carried = [0.050 * water(z) * (1.0 - soft * seawater.pres(z, 0.0)) for z in (true - 2.0, true + 2.0)]
    w = math.sqrt(G / (mass + 25.0) * (carried[1] - carried[0]) / 4.0)
    z = []
    for _ in range(round(1.3 * 2.0 * math.pi / w)):  # s
        sim.advance(20)
        z.append(sim.state()["p_WB_W"][0, 2])
    away = np.array(z) - np.mean(z[: round(2.0 * math.pi / w)])
    crossings = np.flatnonzero(away[:-1] * away[1:] < 0.0)
    at = crossings + away[crossings] / (away[crossings] - away[crossings + 1])
    assert math.pi / (at[1] - at[0]) == pytest.approx(w, rel=0.02)


def test_a_hull_softer_than_water_finds_none() -> None:
    """Below the thermocline water is only pressed together, 4.4e-6 a dbar: a hull of twice that goes on sinking, one of half comes back."""
    soft_and_stiff = []
    for soft in (9e-6, 2e-6):
        mass = 0.050 * water(1000.0) * (1.0 - soft * float(seawater.pres(1000.0, 0.0)))
        sim = simulation(mass, 1030.0, soft, drag=0.05)
        sim.advance(2400)
        soft_and_stiff.append(sim.state()["p_WB_W"][0, 2])
    assert soft_and_stiff[0] > 1030.05 and soft_and_stiff[1] < 1029.95


def test_a_glider_with_ballast_glides_down_and_up() -> None:
    """At a held pitch: along the body W sin = X u^2, across W cos = L u w. Slower where the water carries more."""
    wings = """<quadratic-drag diagonal="20 0 0 0 0 0"/><lift diagonal="0 0 60 0 0 0"/>
    <ballast name="engine" position="0 0 0 m" minimum="-0.5 kg" maximum="0.5 kg" rate="0.1"/>"""
    mass = 0.050 * water(60.0)
    for way in (1.0, -1.0):
        sim = simulation(mass, 60.0, active='active="u w"', more=wings)
        pitch = -way * math.radians(25)
        sim.set_pose(0, attitude=(0.0, pitch, 0.0))
        sim.command(0, {"engine": 0.5 * way})
        sim.advance(800)
        z, v = sim.state()["p_WB_W"][0, 2], sim.state()["v_WB_B"][0]
        heavy = (mass + 0.5 * way - 0.050 * water(z)) * G
        u = math.sqrt(-heavy * math.sin(pitch) / 20.0)
        w = heavy * math.cos(pitch) / (60.0 * u)
        assert v[0] == pytest.approx(u, rel=0.01) and v[2] == pytest.approx(w, rel=0.01)
        assert way * (z - 60.0) > 5.0 and sim.state()["p_WB_W"][0, 0] > 4.0
        assert abs(heavy) < 0.999 * 0.5 * G, "it has come into water that carries it otherwise"


def test_without_the_word_density_is_one_number() -> None:
    """And the same bits as ever: nothing of it is computed."""
    one = simulation(51.3, 100.0, world="1026 kg/m3")
    assert one.stratification.period == 0 and one.config.world.density == 1026.0
    one.advance(500)
    lift = 0.050 * 1026.0 * G - 51.3 * G
    assert (
        one.results.effort()["restoring"][0, 2] == pytest.approx(-lift)
        and not one.results.effort()["environment"].any()
    )
    many = simulation(51.3, 100.0)
    many.advance(1)
    assert many.config.world.density == 1025.0
    more = 0.050 * (water(100.0) - 1025.0) * G
    assert many.results.effort()["environment"][0, 2] == pytest.approx(-more, rel=1e-3)


def test_how_time_is_advanced_changes_nothing() -> None:
    """To the bit: the water is looked up at the same ticks."""
    bits: list[Any] = []
    for ticks in (300, 7):
        sim = simulation(51.32, 100.0)
        for _ in range(2100 // ticks):
            sim.advance(ticks)
        bits.append(sim.state().tobytes())
    assert bits[0] == bits[1]
