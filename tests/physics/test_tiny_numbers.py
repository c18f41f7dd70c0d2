"""Zeros of both signs, subnormal and large numbers in states, commands and water: all forces stay finite, and bodies
that come to rest end at zero.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable

import numba as nb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.physics.test_terms import TERMS, model_text
from wavesim_sdk import frames
from wavesim_sdk.elementary import LEAST
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.units import QUANTITIES
from wavesim_server import Lab, Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_world.config import LoadedConfig, library
from wavesim_world.config.schema import child_elements, keys
from wavesim_world.config.world import World as WorldConfig

Config = Callable[..., LoadedConfig]
COMPILED = not nb.config.DISABLE_JIT
CALM = "<world><bed depth='1000 m'/></world>"
#: zero, subnormal numbers, those whose inverses, squares, cubes or fourth powers are infinite or subnormal, and LEAST
TINY = (0.0, 5e-324, 1e-320, 1e-309, 5e-309, 2.3e-308, 1e-300, 1e-160, 1e-107, 1e-80, 0.9 * LEAST, LEAST, 1e-30)
SIGNED = tuple(sign * size for size in TINY for sign in (1.0, -1.0))
#: a velocity's parts, u v w p q r
MOTION = st.lists(st.sampled_from([*SIGNED, 1e-3, -0.2, 1.0, -3.0]), min_size=6, max_size=6)
ANGLE = st.sampled_from([*SIGNED, 1e-3, -0.1])
EXAMPLES = settings(
    max_examples=150 if COMPILED else 3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def place(sim: Simulation, name: str, number: int, depth: float | None = None) -> int:
    """A body far from all others; without a depth, where one of its type belongs."""
    if depth is None:
        depth = 60.0 if sim.loaded.model(name).type == "underwater" else 0.0
    return sim.enter(f"v{number}", name, (300.0 * (number % 40), 300.0 * (number // 40), depth))


def is_settled(x: np.ndarray) -> bool:
    """Whether all numbers are zero or at least LEAST in size."""
    return bool(((x == 0.0) | (np.abs(x) >= LEAST)).all())


class Extremes:
    """Simulations whose bodies are given extreme states; each example begins with the same ones."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.start = {row: sim.fleet.body(row).copy() for row in sim.rows}

    def put(self, nu: list[float], angles: tuple[float, float, float], z: float, water: list[float]) -> None:
        """The same numbers for all bodies, each beginning with another one of the velocities."""
        for k, row in enumerate(self.sim.rows):
            b = self.sim.fleet.body(row)
            b[:] = self.start[row]
            b[B.PZ] += z
            b[B.QW : B.QW + 4] = frames.quaternion(*angles)
            b[B.NU : B.NU + 6] = np.roll(nu, k)
            b[B.V_WF_W : B.V_WF_W + 3] = water
            for j, actuator in enumerate(self.sim.fleet.actuators(row)):
                value = min(max(nu[(j + k) % 6], actuator.minimum), actuator.maximum)
                b[B.ACTUATOR_STATE + actuator.slot] = b[B.ACTUATOR_COMMAND + actuator.slot] = value

    def forces(self) -> None:
        """All parts of all forces at the state as it stands are finite."""
        effort = self.sim.results.effort()
        for row in self.sim.rows:
            for part in effort.dtype.names:
                assert np.isfinite(effort[part][row]).all(), (self.sim.occupants[row].model.name, part)

    def step(self) -> np.ndarray:
        """A tick leaves all bodies finite: their states after it."""
        self.sim.advance(1)
        assert self.sim.frozen_bodies == []
        found = np.array([self.sim.fleet.body(row)[: B.STATE_ROWS] for row in self.sim.rows])
        assert np.isfinite(found).all()
        return found

    def check(self, nu: list[float], angles: tuple[float, float, float], z: float, water: list[float]) -> None:
        """Forces are finite, and a step ends with numbers that are zero or of at least LEAST."""
        self.put(nu, angles, z, water)
        self.forces()
        assert is_settled(np.delete(self.step(), slice(B.QW, B.NU), axis=1))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Extremes:
    """Every model where it belongs; underwater vehicles at the surface as well."""
    from wavesim_world.config import load

    path = tmp_path_factory.mktemp("shipped") / "config.xml"
    path.write_text(f"<wavesim><time step='10 ms'/><shared vehicles='128' signals='4'/>{CALM}</wavesim>")
    sim = Simulation(load(path))
    numbers = itertools.count()
    for name, model in sorted(library().items()):
        place(sim, name, next(numbers))
        if model.type == "underwater" and COMPILED:
            place(sim, name, next(numbers), 0.0)
    return Extremes(sim)


@EXAMPLES
@given(MOTION, st.tuples(ANGLE, ANGLE, ANGLE), ANGLE, st.lists(ANGLE, min_size=3, max_size=3))
def test_every_shipped_model(
    shipped: Extremes, nu: list[float], angles: tuple[float, float, float], z: float, water: list[float]
) -> None:
    shipped.check(nu, angles, z, water)


@pytest.mark.parametrize("name", TERMS)
def test_every_optional_term(config: Config, name: str) -> None:
    sim = Simulation(config(f"<time step='10 ms'/>{CALM}{model_text(name)}"))
    for k in range(6):  # of one block: the velocities in turn
        sim.enter(f"v{k}", "m", (0.0, 60.0 * k, 60.0))
    bodies = Extremes(sim)

    @settings(max_examples=25 if COMPILED else 3, deadline=None)
    @given(MOTION, st.tuples(ANGLE, ANGLE, ANGLE), ANGLE, st.lists(ANGLE, min_size=3, max_size=3))
    def check(nu: list[float], angles: tuple[float, float, float], z: float, water: list[float]) -> None:
        bodies.check(nu, angles, z, water)

    check()


@pytest.mark.parametrize("speed", [30.0, 1000.0])
def test_forces_at_the_greatest_velocity_that_a_client_may_set(shipped: Extremes, speed: float) -> None:
    for signs in itertools.product((1.0, -1.0), repeat=3):
        shipped.put([s * speed for s in (*signs, *signs)], (0.0, 0.0, 0.0), 0.0, [0.0, -0.0, 0.0])
        shipped.forces()


@pytest.mark.compiled
def test_velocities_of_any_size_in_each_part(config: Config) -> None:
    """Seven of the models faulted in this with velocities below 5.6e-309."""
    sim = Simulation(config(f"<time step='20 ms'/><shared vehicles='2048' signals='4'/>{CALM}"))
    given = {}
    for name, i, size in itertools.product(
        sorted(library()), range(6), (5e-324, 1e-309, -5e-309, 1e-308, 1e-300, -1e-80)
    ):
        row = place(sim, name, len(given))
        sim.set_pose(row, velocity=[size if k == i else 0.0 for k in range(6)])
        given[f"v{row}"] = name, i, size
    sim.advance(3)
    assert [given[name] for name in sim.frozen_bodies] == []


def test_commands_of_any_size(config: Config) -> None:
    """The command of an actuator is zero below LEAST, and a lag that ends there, too."""
    sim = Simulation(config(f"<time step='20 ms'/>{CALM}"))
    row = sim.enter("v", "lauv", (0.0, 0.0, 50.0))
    now = lambda: sim.actuation()["actual"][row]  # noqa: E731
    sim.command(row, [1e-310, -1e-310])
    sim.advance(2)
    assert not now().any() and not sim.actuation()["command"][row].any()
    sim.command(row, [1e-50])
    sim.advance(2)
    assert now()[0] > 0.0
    sim.fleet.body(row)[B.ACTUATOR_STATE] = 1e-70
    sim.command(row, [0.0])
    sim.advance(1)
    assert not now().any()


@pytest.mark.parametrize("what", ["aerofoil", "KT table"])
def test_a_state_that_is_no_number_has_no_place_in_a_table(config: Config, what: str) -> None:
    """An index made of NaN lies far outside of the table in compiled code, and is an error otherwise."""
    sim = Simulation(config(f"<time step='10 ms'/>{CALM}{model_text(what)}"))
    bad, good = (sim.enter(name, "m", (0.0, y, 60.0)) for name, y in (("bad", 0.0), ("good", 60.0)))
    for row in (bad, good):
        sim.command(row, [0.5 * a.maximum for a in sim.fleet.actuators(row)])
    for value in (math.nan, math.inf, 1e200):
        sim.set_pose(bad, velocity=[0.0] * 6)
        sim.fleet.body(bad)[B.NU : B.NU + 2] = value
        with np.errstate(all="ignore"):
            sim.advance(3)
        assert sim.frozen_bodies == ["bad"]
    assert np.isfinite(sim.fleet.body(good)).all()


def rest(config: Config, seconds: float, names: list[str], step: float = 0.05) -> Simulation:
    """Bodies that were shoved a little, and what became of them."""
    sim = Simulation(config(f"<time step='{step} s'/><shared vehicles='32' signals='4'/>{CALM}"))
    for k, name in enumerate(names):
        row = place(sim, name, k)
        sim.set_pose(row, velocity=[0.1, -0.02, 0.01, 0.005, -0.01, 0.02])
    sim.advance(round(seconds / step))
    return sim


def check_rest(sim: Simulation) -> None:
    assert sim.frozen_bodies == []
    sim.advance(1)
    moving = []
    for row in sim.rows:
        state = sim.fleet.body(row)[: B.STATE_ROWS]
        assert np.isfinite(state).all()
        if not is_settled(np.delete(state, slice(B.QW, B.NU))):  # an attitude is made a unit quaternion afterwards
            moving.append((sim.occupants[row].model.name, state[: B.NU + 6].tolist()))
    assert moving == [], "subnormal, or about to be"


@pytest.mark.compiled
def test_an_idle_body_comes_to_rest(config: Config) -> None:
    """`jolner` was frozen after 6379 s, when its velocities had become subnormal."""
    check_rest(rest(config, 7200.0, ["jolner", "lauv"]))


@pytest.mark.long
@pytest.mark.compiled
@pytest.mark.timeout(900)
def test_every_model_at_rest_for_ten_hours(config: Config) -> None:
    short = {"bluerov2-heavy", "otter", "otter-fossen"}  # unstable with 100 ms
    check_rest(rest(config, 36_000.0, sorted({*library()} - short), 0.1))
    check_rest(rest(config, 36_000.0, sorted(short)))


@pytest.mark.parametrize(
    "water",
    [
        '<bed depth="60 m"/></world><acoustics><multipath order="2" bottom_speed="1650 m/s" bottom_density="1.9"/></acoustics>',
        '<bed depth="60 m"/></world><acoustics profile="gradient" gradient="0.02"/>',
        '<bed depth="60 m"/><temperature surface="19 C" knee_1="14 m" knee_2="29 m" gradient_1="-0.3 C/m" gradient_2="-0.02 C/m"/>'
        '</world><acoustics profile="water" formula="chen-millero" sum="coherent"><multipath order="2"/></acoustics>',
        '<bed depth="60 m" slope_north="0.02"/></world><acoustics><multipath order="2" bottom_speed="1650 m/s"/></acoustics>',
    ],
    ids=["images", "gradient", "rays", "a sloping bed"],
)
@pytest.mark.compiled
def test_sound_straight_up_and_nearly_so(config: Config, water: str) -> None:
    """One node above the other, and off that by a tiny length: the same is heard."""
    heard = []
    for off in (0.0, 5e-324, 1e-310, 1e-200, 1e-60, 1e-14):
        sim = Simulation(config(f"<time step='10 ms'/><shared vehicles='4' signals='16'/><world>{water}"))
        for name, x, z in (("low", off, 40.0), ("high", 0.0, 10.0)):
            row = sim.enter(name, "lauv", (x, -x, z))
            b = sim.fleet.body(row)
            b[B.PX : B.PX + 2], b[B.NU : B.NU + 6] = (x, -x), off
        sim.ping(0, 25e3)
        sim.advance(40)
        _, receptions = sim.take_signals()
        assert sim.frozen_bodies == [] and len(receptions)
        heard.append(receptions)
    for receptions in heard[1:]:
        assert len(receptions) == len(heard[0])
        for name in receptions.dtype.names:
            if receptions.dtype[name].base.kind == "f":
                there, here = receptions[name], heard[0][name]
                assert np.array_equal(np.isfinite(there), np.isfinite(here)), name
                if name != "azimuth":
                    assert np.allclose(there, here, rtol=1e-6, atol=1e-6, equal_nan=True), name


#: elements of the world, each with the keys that give it an effect
SURROUNDINGS = {
    "current": 'north="0.2 m/s"',
    "tide": "",
    "wind": 'speed="5 m/s"',
    "waves": 'height="0.5 m" peak="1 rad/s" spreading="2"',
    "bed": 'depth="50 m"',
    "temperature": "",
    "conductivity": "",
}


def tiny_keys() -> list[tuple[str, str, str]]:
    """Return (element, key, unit) of each number that may be tiny."""
    elements = {child.name: child.of for _, child in child_elements(WorldConfig)}
    return [
        (
            element,
            key.name,
            next((unit for unit, factor in QUANTITIES.get(key.quantity, {}).items() if factor == 1.0), ""),
        )
        for element in SURROUNDINGS
        for _, key in keys(elements[element])
        if key.kind == "number" and key.count == 1 and not (key.low is not None and key.low > 0.0)
    ]


@pytest.mark.parametrize(("element", "key", "unit"), tiny_keys(), ids=lambda v: v or "-")
@pytest.mark.compiled
def test_tiny_surroundings_are_refused_or_harmless(element: str, key: str, unit: str) -> None:
    """Waves of 1e-160 m once had a spectrum without energy, and froze every body."""
    others = re.sub(rf'\b{key}="[^"]*"', "", SURROUNDINGS[element])
    bed = "" if element == "bed" else '<bed depth="50 m"/>'
    for value in (5e-324, 1e-200, 1e-160):
        world = f'<{element} {others} {key}="{value!r} {unit}"/>{bed}'
        bodies = "".join(
            f'<vehicle name="{model}" model="{model}" position="{k} 0 {k} m" client="none"/>'
            for k, model in ((0, "jolner"), (5, "lauv"))
        )
        try:
            lab = Lab(f'<wavesim seed="1"><world>{world}</world><fleet>{bodies}</fleet></wavesim>')
        except ConfigError:
            continue
        lab.advance(50)
        assert lab.frozen_bodies == [], world


@pytest.mark.compiled
def test_weather_that_almost_vanishes_freezes_nobody() -> None:
    lab = Lab('<wavesim><fleet><vehicle name="a" model="jolner" position="0 0 0 m" client="none"/></fleet></wavesim>')
    for name in ("wave_height", "wind_speed", "current_north", "current_east", "wave_direction", "wind_direction"):
        for value in (5e-324, 1e-200, 1e-160, 1e-10, 0.0):
            lab.set_weather(**{name: value})
            lab.advance(20)
            assert lab.frozen_bodies == [], (name, value)
