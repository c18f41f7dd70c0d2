"""Obstacles of triangles: bodies rest on them, beams detect them, and they block sound, like a box of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trimesh

from tests.physics.sea import PLAIN, node, run, sea
from tests.physics.test_dynamics import BARE, set_velocity
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import mesh
from wavesim_world.ocean.scene import RaycastScene

Make = Callable[..., LoadedConfig]
HEAVY = BARE.format(volume=0.23, rb="0.1 0 -0.1", d=30, lag=0)


@pytest.fixture
def cube(tmp_path: Path) -> Path:
    """A cube of 2 m, in centimetres and with z up, as a drawing program writes it."""
    box = trimesh.creation.box((200.0, 200.0, 200.0))
    box.export(str(tmp_path / "cube.stl"))
    return tmp_path / "cube.stl"


def obstacle(kind: str, x: float, y: float, z: float, heading: float) -> str:
    if kind == "block":
        return f'<obstacles><block position="{x} {y} {z} m" size="2 2 2 m" heading="{heading} deg"/></obstacles>'
    return f'<obstacles><mesh file="cube.stl" position="{x} {y} {z} m" scale="0.01" attitude="180 0 {heading} deg"/></obstacles>'


def test_beams_meet_the_mesh_where_they_meet_the_box(config: Make, cube: Path) -> None:
    rng = np.random.default_rng(2)
    o = rng.uniform(-6, 6, (20000, 3)) + (1000.0, -2000.0, 10.0)
    d = rng.normal(size=(20000, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    found = {}
    for kind in ("block", "mesh"):
        world = f'<world><bed depth="500 m"/>{obstacle(kind, 1000.0, -2000.0, 10.0, 25.0)}</world>'
        found[kind] = RaycastScene(config(world)).cast(o, d, 50.0, surface=False)
    outside = found["block"] > 0.0  # from inside the box reports 0, the hollow mesh its wall
    assert np.isfinite(found["block"][outside]).sum() > 200
    assert found["mesh"][outside] == pytest.approx(found["block"][outside], abs=1e-3)


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["block", "mesh"])
def test_a_body_comes_to_rest_on_it(config: Make, cube: Path, kind: str) -> None:
    world = f'<world><bed depth="100 m"/>{obstacle(kind, 0.0, 0.0, 21.0, 10.0)}</world>'
    sim = Simulation(config(f'<time step="4 ms"/>{world}{HEAVY}'))
    row = sim.enter("v", "bare", (0.0, 0.0, 15.0))
    sim.advance(30_000)
    state = sim.state()
    assert state["p_WB_W"][row][2] == pytest.approx(19.8, abs=0.02), "its axis is a radius above the top"
    assert np.abs(state["v_WB_B"][row]).max() < 2e-3


@pytest.mark.compiled
def test_nothing_gets_through_however_fast(config: Make, cube: Path) -> None:
    neutral = BARE.format(volume=250 / 1025, rb="0.1 0.02 0.03", d=0, lag=0)
    sim = Simulation(
        config(
            f'<time step="20 ms"/><world><bed depth="500 m"/>{obstacle("mesh", 20.0, 0.0, 50.0, 0.0)}</world>{neutral}'
        )
    )
    row = sim.enter("v", "bare", (0.0, 0.3, 50.2))
    set_velocity(sim, row, [40.0, 0, 0, 0, 0, 0])
    for _ in range(100):
        sim.advance(1)
        assert sim.state()["p_WB_W"][row][0] < 19.0
    assert sim.contacts.count > 0


def test_sound_stops_at_it(config: Make, cube: Path) -> None:
    for kind in ("block", "mesh"):
        for y, expected in ((0.0, Outcome.BLOCKED), (0.9, Outcome.BLOCKED), (1.2, Outcome.HEARD)):
            sim = sea(config, "20 ms", PLAIN, world='<bed depth="200 m"/>' + obstacle(kind, 500.0, 0.0, 50.0, 0.0))
            a, b = node(sim, "a", 0, 0.0, y=y, z=50.0), node(sim, "b", 0, 1000.0, y=y, z=50.0)
            sim.ping(a, 25e3)
            _, receptions = run(sim, 1.0)
            assert receptions["outcome"][receptions["receiver"] == b].tolist() == [expected], (kind, y)


@pytest.mark.parametrize("suffix", ["stl", "ply", "obj", "off", "glb"])
def test_every_format_is_read(tmp_path: Path, suffix: str) -> None:
    box = trimesh.creation.box((1.0, 2.0, 3.0))
    box.export(str(tmp_path / f"b.{suffix}"))
    t = mesh.read_mesh(tmp_path / f"b.{suffix}")
    assert t.shape == (12, 3, 3) and sorted(np.ptp(t.reshape(-1, 3), axis=0)) == pytest.approx([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.stl", b"", "the mesh"),
        ("a.stl", b"solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0\n", "the mesh"),
        ("a.ply", b"no ply at all", "cannot read the mesh"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv nan 1 0\nf 1 2 3\n", "the mesh"),
        ("a.obj", b"v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "no triangles"),
        ("a.obj", b"# nothing\n", "the mesh"),
        ("a.off", b"OFF\n3 1 0\n0 0 0\n1 0 0\n", "cannot read the mesh"),
        ("a.glb", bytes(range(256)), "cannot read the mesh"),
        ("a.step", b"ISO-10303-21;", "unknown mesh format; use stl, ply, obj, off, glb"),
    ],
)
def test_bad_meshes(config: Make, tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        mesh.all_triangles(config(f'<world><obstacles><mesh file="{name}" position="0 0 5 m"/></obstacles></world>'))
    assert name in str(caught.value)


def test_too_many_triangles_are_refused(config: Make, tmp_path: Path) -> None:
    trimesh.creation.icosphere(subdivisions=6).export(str(tmp_path / "ball.stl"))
    with pytest.raises(ConfigError, match="81920 triangles; the maximum for a world is 20000"):
        mesh.all_triangles(config('<world><obstacles><mesh file="ball.stl" position="0 0 5 m"/></obstacles></world>'))
