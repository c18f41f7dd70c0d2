"""Contacts: bodies do not pass through each other or the sea bed, and contacts add no energy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.test_dynamics import BARE, energy, set_velocity
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.impulses import ROLLING_RESISTANCE
from wavesim_world.config import LoadedConfig

HEAVY = BARE.format(volume=0.23, rb="0.1 0 -0.1", d=30, lag=0)
NEUTRAL = BARE.format(volume=250 / 1025, rb="0.1 0.02 0.03", d=0, lag=0)


@pytest.mark.compiled
def test_a_sinking_body_comes_to_rest_on_the_bed(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config(f'<time step="4 ms"/><world><bed depth="20 m"/></world>{HEAVY}'))
    row = sim.enter("v", "bare", (0.0, 0.0, 15.0))
    sim.advance(30_000)
    state = sim.state()
    assert state["p_WB_W"][row][2] == pytest.approx(19.8, abs=0.02), "its axis is a radius above the bed"
    assert np.abs(state["v_WB_B"][row]).max() < 1e-3
    assert sim.contacts.count > 0


@pytest.mark.compiled
def test_a_contact_is_reported_once_with_both_bodies(config: Callable[..., LoadedConfig]) -> None:
    """With the time of the tick, however many are advanced in one call; a body that rests is no news again."""
    block = '<obstacles><block position="0 0 5 m" size="4 4 1 m"/></obstacles>'
    world = f'<time step="20 ms"/><world><bed depth="20 m"/>{block}</world>{NEUTRAL}'

    def contacts(at_once: int) -> list[tuple[int, int, str, float]]:
        sim = Simulation(config(world))
        for name, north, down, v in (("a", 0.0, 6.5, [0.0, 0, -0.5, 0, 0, 0]), ("b", 20.0, 10.0, [1.0, 0, 0, 0, 0, 0])):
            set_velocity(sim, sim.enter(name, "bare", (north, 0.0, down)), v)
        set_velocity(sim, sim.enter("c", "bare", (24.0, 0.0, 10.0)), [0.0, 0, 0, 0, 0, 0])
        sim.enter("d", "bare", (40.0, 0.0, 19.75))
        set_velocity(sim, 3, [0.0, 0, 0.2, 0, 0, 0])
        found = []
        while sim.tick < 200:
            sim.advance(at_once)
            found += sim.take_meetings()
        return found

    found = contacts(1)
    assert [(row, what) for _, row, what, _ in found] == [(3, "the sea bed"), (0, "block 1"), (1, "'c'"), (2, "'b'")]
    speeds = [speed for *_, speed in found]
    assert speeds == pytest.approx([0.2, 0.5, 1.0, 1.0], rel=0.1), "drag is none, and nearly all of it along the normal"
    assert contacts(50) == found


@pytest.mark.compiled
def test_a_slope_and_a_hill(config: Callable[..., LoadedConfig]) -> None:
    bed = '<bed depth="20 m" slope_north="0.3"><bump height="-6 m" north="10 m" east="0 m" alpha="0.2 1/m" beta="0.2 1/m"/></bed>'
    sim = Simulation(config(f'<time step="4 ms"/><world>{bed}</world>{HEAVY}'))
    row = sim.enter("v", "bare", (0.0, 0.0, 12.0))
    set_velocity(sim, row, [2.0, 0, 0, 0, 0, 0])
    from wavesim_world.ocean.bed import sea_bed

    depth = sea_bed(sim.loaded)
    for _ in range(100):
        sim.advance(100)
        p = sim.state()["p_WB_W"][row]
        assert p[2] < depth(p[0], p[1]) - 0.1, "never below the bed"


@pytest.mark.parametrize("offset", [0.0, 0.15])
def test_a_collision_keeps_momentum_and_makes_no_energy(config: Callable[..., LoadedConfig], offset: float) -> None:
    sim = Simulation(config(f'<time step="4 ms"/><world><bed depth="1000 m"/></world>{NEUTRAL}'))
    a = sim.enter("a", "bare", (0.0, 0.0, 100.0))
    b = sim.enter("b", "bare", (4.0, offset, 100.0))
    set_velocity(sim, a, [1.5, 0, 0, 0, 0, 0])
    before = energy(sim, a) + energy(sim, b)
    last = before
    touched = False
    for _ in range(100):
        sim.advance(10)
        now = energy(sim, a) + energy(sim, b)
        assert now <= last * (1 + 1e-9)
        last = now
        touched = touched or sim.contacts.count > 0
    assert touched
    state = sim.state()
    assert state["p_WB_W"][b][0] > 4.5, "the struck body was pushed on"
    if offset == 0.0:
        assert last < 0.9 * before, "no bounce: a part of the energy is gone"


def test_far_bodies_do_not_touch(config: Callable[..., LoadedConfig]) -> None:
    sim = Simulation(config('<time step="4 ms"/>'))
    for k in range(20):
        sim.enter(f"v{k}", "lauv", (3.0 * k, 0.0, 20.0))
    sim.advance(100)
    assert sim.contacts.count == 0


BALL = """<models><model name="ball" type="underwater"><sphere diameter="1 m"/><mass value="600 kg"/><inertia xx="40" yy="40" zz="40"/>
<added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/></model></models>"""


def test_a_ball_rolls_until_its_resistance_has_stopped_it(config: Callable[..., LoadedConfig]) -> None:
    """Its way is v^2 / (2 a) with a = k (m g - B) / (m + I / R^2) in water without drag; its energy only falls, and it keeps to its course
    and to a pure rolling. Without resistance it would roll for ever."""
    sim = Simulation(config(f'<time step="4 ms"/><world><bed depth="20 m"/></world>{BALL}'))
    row, v, radius = sim.enter("b", "ball", (0.0, 0.0, 19.5)), 0.3, 0.5
    set_velocity(sim, row, [v, 0, 0, 0, -v / radius, 0])
    sim.advance(1)
    slows = (
        ROLLING_RESISTANCE * (600.0 * 9.81 - 1025.0 * 9.81 * 4.0 / 3.0 * np.pi * radius**3) / (600.0 + 40.0 / radius**2)
    )
    last = energy(sim, row)
    for _ in range(125):
        sim.advance(10)
        assert energy(sim, row) <= last * (1 + 1e-9) + 1e-12
        last = energy(sim, row)
        if sim.tick == 251:
            speed, rolls = (np.linalg.norm(sim.state()[key][row]) for key in ("v_WB_B", "w_WB_B"))
            assert speed == pytest.approx(v - slows, rel=0.02) and rolls * radius == pytest.approx(speed, rel=0.01)
    p = sim.state()["p_WB_W"][row]
    assert p[0] == pytest.approx(v**2 / (2.0 * slows), rel=0.02) and abs(p[1]) < 1e-9
    assert last < 1e-6


@pytest.mark.compiled
@pytest.mark.parametrize("model", ["remus100", "eca-a9"])
def test_a_torpedo_does_not_rock_on_the_bed(config: Callable[..., LoadedConfig], model: str) -> None:
    """Heavy by 20 N and heeled by 30 deg it sinks, touches the bed, and lies: it rocked on its keel for minutes, for friction
    at a point does no work on what rolls."""
    sim = Simulation(config('<time step="4 ms"/><world><bed depth="20 m"/></world>'))
    row = sim.enter("v", model, (0.0, 0.0, 18.5), (0.5, 0.0, 0.0))
    sim.push(row, (0.0, 0.0, 20.0))
    while not sim.contacts.count:
        sim.advance(25)
        assert sim.tick < 5000
    sim.advance(3000)
    assert np.abs(sim.fleet.body(row)[B.NU : B.NU + 6]).max() < 1e-3, "twelve seconds after it touched"
    sim.advance(5000)
    assert sim.fleet.body(row)[B.ASLEEP], "and sleeps"
