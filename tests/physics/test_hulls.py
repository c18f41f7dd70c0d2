"""Bodies with a mesh as shape: attitude, period and capsizing angle equal those of closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import trimesh

from tests.sdk.test_hull import prism, wigley
from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.dynamics import hydrostatics
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics.hull_mesh import MAX_FACES
from wavesim_server.dynamics.sizes import TABLE_FACES, TABLE_POINTS
from wavesim_world.config import LoadedConfig
from wavesim_world.hull import Hull

Make = Callable[..., LoadedConfig]
#: a ship of 10 m, 3 m wide, 1 m deep in the water, 0.8 m above it; its walls stand upright
SHIP = wigley(10.0, 3.0, 1.0, 0.8)
MODEL = """<models><model name="raft" type="surface"><box length="{l} m" width="{b} m" height="{h} m"/>{hull}
<mass value="{mass} kg" centre="0 0 {zg} m"/><inertia xx="{xx}" yy="{yy}" zz="{yy}"/>
<added-mass diagonal="0 0 {added} 0 0 0"/><linear-drag diagonal="{d} {d} {d} {d} {d} {d}"/></model></models>"""


def save(path: Path, triangles: np.ndarray) -> Path:
    """A file with z up, as drawing programs write it: the body's y and z turned."""
    turned = triangles * [1.0, -1.0, -1.0]
    trimesh.Trimesh(turned.reshape(-1, 3), np.arange(3 * len(turned)).reshape(-1, 3), process=False).export(str(path))
    return path


def model(hull: str = "", **numbers: float) -> str:
    given = {
        "l": 10.0,
        "b": 4.0,
        "h": 3.0,
        "mass": 40_000.0,
        "zg": 0.3,
        "xx": 60e3,
        "yy": 400e3,
        "added": 30e3,
        "d": 2000.0,
    }
    mesh = f'<hull file="{hull}" attitude="180 0 0 deg"/>' if hull else ""
    return MODEL.format(hull=mesh, **(given | numbers))


def test_the_compiled_twin_of_a_cut_hull() -> None:
    """Volume and moments of a ship at random planes against the readable one."""
    assert len(SHIP) > TABLE_FACES
    coarse = Hull(wigley_of(15, 9))
    faces = coarse.triangles.reshape(-1, 9)
    kind, tables = np.zeros(M.COLUMNS, np.int64), []
    kind[M.FACES] = len(faces)
    assert TABLE_FACES < len(faces) <= MAX_FACES
    for k, first in enumerate(range(0, len(faces), TABLE_FACES)):
        table = np.zeros(2 * TABLE_POINTS)
        some = faces[first : first + TABLE_FACES].ravel()
        table[: len(some)] = some
        kind[M.HULL + k] = k
        tables.append(table.reshape(2, -1))
    rng = np.random.default_rng(5)
    for _ in range(40):
        n = rng.normal(size=3)
        n /= np.linalg.norm(n)
        d = rng.uniform(-3.0, 3.0)
        volume, *moments = hydrostatics.mesh_volume(kind, np.array(tables), hydrostatics.WaterPlane(*n, d))
        twin = coarse.wetted_part(n, d)
        assert volume == pytest.approx(twin.volume, abs=1e-9)
        assert np.allclose(moments, twin.volume * twin.centre, atol=1e-9)


def wigley_of(along: int, down: int) -> np.ndarray:
    """The ship with fewer triangles."""
    x, z = np.linspace(-1.0, 1.0, along), np.array([-0.8, *np.linspace(0.0, 1.0, down)])
    half = 1.5 * (1.0 - x * x)[:, None] * (1.0 - np.maximum(z, 0.0) ** 2)[None, :]
    corners = np.stack([np.broadcast_to(5.0 * x[:, None], half.shape), half, np.broadcast_to(z, half.shape)], axis=2)
    from tests.sdk.test_hull import grid, outward

    other = corners * [1.0, -1.0, 1.0]
    deck = np.stack([other[:, 0], corners[:, 0]], axis=1)
    return outward(np.concatenate([grid(corners), grid(other)[:, ::-1], grid(deck)]))


@pytest.mark.compiled
def test_a_box_of_triangles_moves_as_the_box(config: Make, tmp_path: Path) -> None:
    """Heeled 50 deg, trimmed, dropped from above and in waves: the same to rounding."""
    save(tmp_path / "box.stl", prism([(-2, -1.5), (2, -1.5), (2, 1.5), (-2, 1.5)], 10.0))
    ends = []
    for hull in ("", "box.stl"):
        world = '<waves height="1 m" peak="0.9 rad/s" direction="60 deg"/><bed depth="300 m"/>'
        sim = Simulation(config(f"<time step='20 ms'/><world>{world}</world>{model(hull)}"))
        row = sim.enter("v", "raft", (0.0, 0.0, -2.0), tuple(np.radians([50.0, 10.0, 20.0])))
        sim.advance(400)
        s = sim.state()[row]
        ends.append([*s["p_WB_W"], *s["q_WB"], *s["v_WB_B"]])
    assert np.allclose(ends[0], ends[1], atol=1e-5), np.subtract(*ends)


@pytest.mark.compiled
def test_draft_and_period_of_a_wedge(config: Make, tmp_path: Path) -> None:
    """A wedge, point down, 90 deg: draft sqrt(m/(rho L)), heave stiffness 2 rho g L draft."""
    save(tmp_path / "wedge.stl", prism([(0, 2), (-4, -2), (4, -2)], 10.0)[:, ::1])
    mass = 1025.0 * 10.0 * 1.5**2
    text = model("wedge.stl", mass=mass, h=4.0, b=8.0, zg=0.0, xx=200e3, added=0.0, d=0.0).replace(
        'type="surface"', 'type="surface" active="w"'
    )
    sim = Simulation(config(f"<time step='10 ms'/><world density='1025 kg/m3'><bed depth='300 m'/></world>{text}"))
    row = sim.enter("v", "raft", (0.0, 0.0, -0.5 + 0.01))  # the point 1.5 m deep and 1 cm more
    z = []
    for _ in range(1500):
        sim.advance(1)
        z.append(sim.state()["p_WB_W"][row][2])
    up = np.flatnonzero((np.array(z[:-1]) < -0.5) & (np.array(z[1:]) >= -0.5))
    assert np.mean(z) == pytest.approx(-0.5, abs=1e-3) and np.ptp(z) == pytest.approx(0.02, abs=1e-3)
    wanted = 2 * math.pi * math.sqrt(mass / (2 * 1025.0 * 9.81 * 10.0 * 1.5))
    assert np.diff(up).mean() * 0.01 == pytest.approx(wanted, rel=0.01)


@pytest.mark.compiled
@pytest.mark.parametrize("zg", [-0.1, 0.15])
def test_it_capsizes_at_its_true_limit(config: Make, tmp_path: Path, zg: float) -> None:
    """The ship is heeled a little less and a little more than where its righting arm vanishes, and let go."""
    triangles = wigley_of(15, 9)
    save(tmp_path / "ship.stl", triangles)
    hull, g = Hull(triangles), (0.0, 0.0, zg)
    mass = 0.9 * 1025.0 * hull.wetted_part((0.0, 0.0, 1.0), 0.0).volume
    low, high = math.radians(20.0), math.radians(170.0)
    assert hull.righting_arm(mass, g, low) > 0.0 > hull.righting_arm(mass, g, high)
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if hull.righting_arm(mass, g, middle) > 0.0 else (low, middle)
    for heel, upright in ((low - 0.03, True), (low + 0.03, False)):
        level = hull.level((0.0, math.sin(heel), math.cos(heel)), mass / 1025.0)
        text = model("ship.stl", mass=mass, zg=zg, h=1.8, b=3.0, xx=3000.0, yy=30e3, added=2000.0, d=6000.0)
        text = text.replace('type="surface"', 'type="surface" active="w p"')
        sim = Simulation(config(f"<time step='20 ms'/><world density='1025 kg/m3'><bed depth='300 m'/></world>{text}"))
        row = sim.enter("v", "raft", (0.0, 0.0, -level), (heel, 0.0, 0.0))
        sim.advance(6000)
        roll = frames.euler(sim.state()["q_WB"][row])[0]
        assert (abs(roll) < 0.05) == upright and (abs(roll) > 1.5) == (not upright), (zg, math.degrees(heel), roll)


def test_meshes_that_are_no_hull(config: Make, tmp_path: Path) -> None:
    box = prism([(-2, -1.5), (2, -1.5), (2, 1.5), (-2, 1.5)], 10.0)
    save(tmp_path / "open.stl", box[1:])
    save(tmp_path / "inside.stl", box[:, ::-1])
    save(tmp_path / "fine.stl", wigley(10.0, 3.0, 1.0, 0.8))
    for name, message in (
        ("open.stl", "not closed"),
        ("inside.stl", "inside out"),
        ("fine.stl", f"the maximum is {MAX_FACES}"),
        ("none.stl", "cannot read the mesh"),
        ("box.step", "unknown mesh format; use"),
    ):
        with pytest.raises(ConfigError, match=message) as error:
            Simulation(config(f"<world><bed depth='300 m'/></world>{model(name)}")).enter("v", "raft", (0.0, 0.0, 0.0))
        assert name in str(error.value)
    both = model("open.stl").replace("<mass", '<buoyancy volume="3 m3"/><mass')
    with pytest.raises(ConfigError, match="<hull> replaces <buoyancy> and <restoring>"):
        Simulation(config(f"<world><bed depth='300 m'/></world>{both}"))


def test_a_submerged_mesh_stays_upright(config: Make, tmp_path: Path) -> None:
    """A hull of many faces far below the surface: its centre of buoyancy is that of the mesh, above the centre of mass."""
    ball = trimesh.creation.icosphere(3, radius=0.7)
    ball.apply_transform(trimesh.transformations.rotation_matrix(1.0, [1.0, 2.0, 3.0]))
    save(tmp_path / "boat.stl", np.asarray(ball.triangles))
    numbers = {"l": 1.0, "b": 1.0, "h": 1.0, "mass": 1460.0, "zg": 0.05, "xx": 300.0, "yy": 300.0}
    text = model("boat.stl", **(numbers | {"added": 700.0, "d": 200.0})).replace('"surface"', '"underwater"')
    sim = Simulation(config(f"<time step='20 ms'/><world><bed depth='1000 m'/></world>{text}"))
    row = sim.enter("v", "raft", (0.0, 0.0, 50.0))
    for _ in range(100):
        sim.advance()
    roll, pitch, _ = frames.euler(np.array(sim.state()[row]["q_WB"]))
    assert abs(math.degrees(roll)) < 0.1 and abs(math.degrees(pitch)) < 0.1
