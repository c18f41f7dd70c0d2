"""Distances between convex bodies, proved by separating planes; contacts with walls, piers and tunnels."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.test_dynamics import set_velocity
from wavesim_sdk import frames
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import shapes
from wavesim_world.config import LoadedConfig


def body(rng: np.random.Generator, code: int) -> np.ndarray:
    g = np.zeros(shapes.GEOMETRY)
    g[0] = code
    g[1:4] = rng.uniform(0.1, 1.5, 3) if code == shapes.BOX else (rng.uniform(0.2, 1.5), *[rng.uniform(0.1, 0.6)] * 2)
    if code == shapes.SPHERE:
        g[1:4] = 0.0
    g[5:8] = rng.uniform(-2.0, 2.0, 3)
    g[8:] = frames.rotation(frames.quaternion(*rng.uniform(-3, 3, 3))).ravel()
    return g


@pytest.mark.parametrize("a", [shapes.BOX, shapes.CYLINDER, shapes.SPHERE])
@pytest.mark.parametrize("b", [shapes.BOX, shapes.CYLINDER])
def test_the_distance_is_proved_by_a_plane(a: int, b: int) -> None:
    """The distance d is right if the points are in the bodies and a slab of width d across their line parts them."""
    rng = np.random.default_rng(100 * a + b)
    work, pa, pb, far = np.zeros((16, 3)), np.zeros(3), np.zeros(3), np.zeros(3)
    apart = 0
    for _ in range(60):
        ga, gb = body(rng, a), body(rng, b)
        d = shapes.distance(ga, gb, work, pa, pb)
        if d == 0.0:
            continue
        apart += 1
        assert np.linalg.norm(pa - pb) == pytest.approx(d, rel=1e-9)
        n = (pb - pa) / d
        shapes.support_point(ga, *n, far)
        top = far @ n
        shapes.support_point(gb, *-n, far)
        assert far @ n - top == pytest.approx(d, abs=2e-5), "nothing of either body lies between"
        for g, p in ((ga, pa), (gb, pb)):
            q = np.abs(g[8:].reshape(3, 3).T @ (p - g[5:8]))
            if g[0] == shapes.CYLINDER:
                assert q[0] <= g[1] + 1e-9 and math.hypot(q[1], q[2]) <= g[2] + 1e-9
            else:
                assert np.all(q <= g[1:4] + 1e-9)
    assert apart > 25


SHOT = """<models><model name="shot" type="underwater">{shape}<mass value="{mass} kg"/><inertia xx="1" yy="1" zz="1"/>
<buoyancy volume="{volume} m3"/><added-mass diagonal="1 1 1 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/></model></models>"""
SHAPES = {
    "box": ('<box length="0.6 m" width="0.5 m" height="0.4 m"/>', 0.12),
    "cylinder": ('<cylinder length="1 m" radius="0.1 m"/>', 0.0314159265),
    "sphere": ('<sphere diameter="0.4 m"/>', 0.0335103),
}


def shot(config: Callable[..., LoadedConfig], shape: str, world: str, weight: float = 1.0) -> Simulation:
    text, volume = SHAPES[shape]
    mass = volume * 1025 * weight
    inner = SHOT.format(shape=text, mass=mass, volume=volume)
    return Simulation(config(f'<time step="4 ms"/><world>{world}</world>{inner}'))


def kinetic(sim: Simulation, row: int) -> float:
    nu = sim.fleet.body(row)[B.NU : B.NU + 6]
    mass = np.linalg.inv(sim.fleet.coefficients(row)[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6))
    return float(0.5 * nu @ mass @ nu)


@pytest.mark.compiled
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("speed", [1.0, 5.0, 30.0])
def test_nothing_goes_through_a_thin_wall(config: Callable[..., LoadedConfig], shape: str, speed: float) -> None:
    """1 cm of wall; at 30 m/s a step is 12 cm. The energy only falls, whatever the attitude."""
    wall = '<obstacles><block position="5 0 50 m" size="0.01 20 20 m"/></obstacles><bed depth="900 m"/>'
    for attitude in ((0.0, 0.0, 0.0), (0.3, 0.4, 0.7)):
        sim = shot(config, shape, wall)
        row = sim.enter("s", "shot", (0.0, 0.3, 50.0), attitude)
        v = frames.rotation(frames.quaternion(*attitude)).T @ [speed, 0.2 * speed, 0.0]
        set_velocity(sim, row, [*v, 0.0, 0.1, 0.0])
        last = kinetic(sim, row)
        for _ in range(round(6.0 / speed / 0.004) + 50):
            sim.advance(1)
            now = kinetic(sim, row)
            assert now <= last * (1 + 1e-9)
            last = now
            assert sim.state()["p_WB_W"][row][0] < 5.0
        assert sim.contacts.count > 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.compiled
def test_rest_on_the_bottom_is_still(config: Callable[..., LoadedConfig], shape: str) -> None:
    sim = shot(config, shape, '<bed depth="20 m"/>', weight=1.3)
    own = sim.loaded.models["shot"]
    row = sim.enter("s", "shot", (0.0, 0.0, 19.6), (0.1, 0.05, 0.0))
    sim.fleet.override_parameters(row, {P.LINEAR_DRAG + 7 * k: 20.0 * own.mass.value / 50 for k in range(6)})
    sim.advance(10_000)
    before = sim.state()[row].copy()
    sim.advance(5_000)
    after = sim.state()[row]
    assert np.abs(after["p_WB_W"] - before["p_WB_W"]).max() < 1e-4, "20 s"
    assert np.abs(after["v_WB_B"]).max() < 1e-3 and np.abs(after["w_WB_B"]).max() < 1e-3
    if shape == "box":
        roll, pitch, _ = frames.euler(after["q_WB"])
        assert abs(roll) < 2e-3 and abs(pitch) < 2e-3, "it lies flat"
        assert after["p_WB_W"][2] == pytest.approx(19.8, abs=2e-3)


@pytest.mark.compiled
def test_pier_and_tunnel(config: Callable[..., LoadedConfig]) -> None:
    obstacles = (
        '<obstacles><pier position="6 0 10 m" radius="0.5 m" height="20 m"/>'
        '<tunnel position="100 50 50 m" length="60 m" width="3 m" height="3 m" heading="90 deg"/></obstacles><bed depth="900 m"/>'
    )
    sim = shot(config, "cylinder", obstacles)
    a, b = sim.enter("a", "shot", (0.0, 0.05, 5.0)), sim.enter("b", "shot", (100.0, 30.0, 50.0), (0.0, 0.2, 1.2))
    set_velocity(sim, a, [3.0, 0, 0, 0, 0, 0])
    set_velocity(sim, b, [2.0, 0.5, 0.3, 0, 0.2, 0.1])
    for _ in range(2500):
        sim.advance(1)
        p = sim.state()["p_WB_W"]
        assert math.hypot(p[a][0] - 6.0, p[a][1]) > 0.55
        if 21.0 < p[b][1] < 79.0:
            assert abs(p[b][0] - 100.0) < 1.5 and abs(p[b][2] - 50.0) < 1.5, "inside the tunnel"
    assert sim.contacts.count > 10


def test_boxes_stack_and_push(config: Callable[..., LoadedConfig]) -> None:
    sim = shot(config, "box", '<bed depth="900 m"/>')
    a, b = sim.enter("a", "shot", (0.0, 0.0, 50.0)), sim.enter("b", "shot", (1.0, 0.1, 50.05), (0.0, 0.0, 0.3))
    set_velocity(sim, a, [2.0, 0, 0, 0, 0, 0])
    before = kinetic(sim, a)
    for _ in range(400):
        sim.advance(1)
        assert kinetic(sim, a) + kinetic(sim, b) <= before * (1 + 1e-9)
    p = sim.state()["p_WB_W"]
    assert np.linalg.norm(p[a] - p[b]) > 0.45 and p[b][0] > 1.2


@pytest.mark.compiled
def test_the_pair_list_misses_nothing(config: Callable[..., LoadedConfig]) -> None:
    """A crowd that mixes: whoever is near another by brute force is on the list."""
    from wavesim_server.dynamics import contact_memory

    text, volume = SHAPES["sphere"]
    inner = SHOT.format(shape=text, mass=volume * 1025, volume=volume)
    sim = Simulation(config(f'<time step="4 ms"/><shared vehicles="60"/><world><bed depth="900 m"/></world>{inner}'))
    rng = np.random.default_rng(5)
    for k in range(60):
        grid = np.array([k % 4, k // 4 % 4, k // 16]) * 1.2
        row = sim.enter(f"s{k}", "shot", tuple(grid + rng.uniform(0, 0.7, 3) + [0, 0, 50]))
        set_velocity(sim, row, [*rng.uniform(-3, 3, 3), 0, 0, 0])
    touched = 0
    for _ in range(300):
        sim.advance(1)
        p = sim.state()["p_WB_W"]
        d = np.linalg.norm(p[:, None] - p[None], axis=2)
        near = {(i, j) for i, j in np.argwhere(d < 0.45) if i < j}
        t = sim.contacts.memory
        listed = {tuple(pair) for pair in t.pairs[: t.counters[contact_memory.N_PAIRS]]}
        assert near <= listed
        touched += len(near)
        assert d[np.triu_indices(60, 1)].min() > 0.37, "no overlap to speak of"
    assert touched > 50
