"""A vehicle's own mesh on the page: its materials, propellers and fins that move, and files that cannot be drawn."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from tests.viz.mesh_samples import ANGLE, DART, Harbour, dart, harbour
from tests.viz.sea import Opener
from tests.viz.stage import on_stage
from wavesim_sdk.tables import ACTUATION, STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz.appearance import find_appearance, read_appearance
from wavesim_viz.propeller_turns import MOST_RATE, LiveTurns, LoggedTurns, drawn_rates
from wavesim_viz.replay import ReplaySource
from wavesim_viz.xml_trees import RequestFailed

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
#: direction in the axes of the body, for each moving part: where its first corner is, relative to its pivot
PIVOTS = """(() => { const found = {}, inverse = wavesim.view.bodies.moving.group.matrixWorld.clone().invert();
  wavesim.view.bodies.moving.group.updateMatrixWorld(true);
  for (const [key, parts] of [...wavesim.view.bodies.moving.parts, ...wavesim.view.bodies.moving.propellers])
    found[key] = parts.map(p => ({ at: p.pivot.getWorldPosition(p.pivot.position.clone()).applyMatrix4(inverse).toArray(),
      turn: p.pivot.quaternion.toArray(), disc: p.disc?.visible }));
  return found })()"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Harbour, str]]:
    dart(tmp_path / "dart.glb")
    source = harbour(tmp_path)
    with on_stage(source, tmp_path) as url:
        yield source, url


def turned(page: Any, key: str) -> np.ndarray[Any, Any]:
    """Return where a part has turned a vector that pointed up."""
    x, y, z, w = page.see(PIVOTS)[key][0]["turn"]
    return np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])


def test_propellers_and_fins_of_a_mesh_move(stage: tuple[Harbour, str], open_page: Opener) -> None:
    source, url = stage
    source.turns = 0.125
    page = open_page(url)
    page.wait("wavesim.view.bodies.kinds.get('dart')?.own")
    page.see("wavesim.app.selection.choose(0)")
    page.see("wavesim.view.look([-1.3, -1.3, 1.6], [0, -2, 0.3])")
    page.wait("wavesim.store.panel?.actuation && wavesim.view.bodies.moving.propellers.size")
    page.wait(f"Math.abs(wavesim.view.bodies.moving.values[1] - {ANGLE}) < 1e-3")
    page.see("wavesim.app.loop.wake()")
    page.wait("!wavesim.app.loop.turning")
    page.shot("own-mesh")
    found = page.see(PIVOTS)
    assert found["0"][0]["at"] == pytest.approx([0, 0, 0.82], abs=1e-6), "the hub is the origin of its node"
    # seen from astern, a propeller that drives ahead turns clockwise: an eighth of a turn moves its top to starboard
    assert turned(page, "0") == pytest.approx([0.5**0.5, 0.5**0.5, 0.0], abs=1e-6)
    assert found["0"][0]["disc"], "at 20 turns per second, it is blurred"
    # its hinge is not within the blade: the rudder turns at its position in the model, its leading edge to starboard
    assert found["fin 0"][0]["at"] == pytest.approx([0.0, 0.17, 0.65], abs=1e-6)
    x, y, z, w = found["fin 0"][0]["turn"]
    ahead = (-2 * (x * z + w * y), -2 * (y * z - w * x), -(1 - 2 * (x * x + y * y)))
    assert ahead == pytest.approx((np.sin(ANGLE), 0.0, -np.cos(ANGLE)), abs=1e-3)
    assert found["fin 1"][0]["turn"] == pytest.approx([0, 0, 0, 1], abs=1e-6)
    # the page adds no parts of its own, and keeps the materials
    drawn = page.see(
        "(() => { const all = []; wavesim.view.bodies.moving.shape.traverse(o => { if (o.isMesh && o.geometry.type !== 'CircleGeometry')"
        " all.push(o.material) }); return { own: all.filter(m => m.vertexColors).length, textures: all.filter(m => m.map).length,"
        " clear: all.filter(m => m.transparent).length, metal: all.filter(m => m.metalness > 0.8 && m.envMap).length,"
        " shining: all.filter(m => m.emissive.g > 0.9).length } })()"
    )
    assert drawn == {"own": 0, "textures": 1, "clear": 1, "metal": 2, "shining": 1}
    source.values["prop"] = 0.0
    # simulation time stands still, so the page does not redraw without this call
    page.wait("(wavesim.app.loop.wake(), !wavesim.view.bodies.moving.propellers.get(0)[0].disc.visible)")
    page.clean()


@pytest.mark.parametrize("more", ["", ' draw_parts="no"'])
def test_a_mesh_without_nodes_of_actuators(more: str, tmp_path: Path, open_page: Opener) -> None:
    """The page draws its own thrusters and fins, and they move; with draw_parts="no" it does not."""
    box = trimesh.creation.box((0.2, 0.2, 1.5))
    (tmp_path / "dart.glb").write_bytes(trimesh.Scene(box).export(file_type="glb"))
    with on_stage(harbour(tmp_path, more), tmp_path) as url:
        page = open_page(url)
        page.wait("wavesim.view.bodies.kinds.get('dart')?.own")
        page.see("wavesim.app.selection.choose(0)")
        page.wait("wavesim.store.panel?.actuation && wavesim.view.bodies.moving.kit")
        found = page.see(PIVOTS)
        assert set(found) == (set() if more else {"0", "fin 0", "fin 1"})
        meshes = page.see("wavesim.view.bodies.kinds.get('dart').meshes.length")
        assert meshes == (1 if more else 2), "the other body has them too"
        page.clean()


def test_a_file_that_cannot_be_drawn(tmp_path: Path, open_page: Opener) -> None:
    """One message says why, and the page draws the shape."""
    with on_stage(harbour(tmp_path), tmp_path) as url:
        page = open_page(url)
        page.page.wait_for_selector(".toast.bad")
        said = page.page.locator(".toast.bad").text_content()
        assert said == f"model dart is drawn as its shape: the appearance 'dart.glb' does not exist in {tmp_path}"
        page.wait("wavesim.view.bodies.kinds.get('dart').meshes.length === 1")


def glb(description: dict[str, Any], length: int | None = None) -> bytes:
    text = json.dumps(description).encode()
    return b"glTF" + struct.pack("<IIII", 2, length or 20 + len(text), len(text), 0x4E4F534A) + text


MESH = {"meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": [{"count": 30}]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"solid a", "is not a binary glTF file"),
        (b"glTF" + struct.pack("<IIII", 1, 20, 0, 0), "version 1"),
        (b"glTF\x02", "damaged or incomplete"),
        (glb(MESH, 99), "damaged or incomplete"),
        (glb({"meshes": [{}]}), "is damaged"),
        (glb({}), "contains no triangles"),
        (glb({**MESH, "accessors": [{"count": 900_000}]}), "has 300000 triangles; the maximum is 200000"),
        (glb({**MESH, "images": [{"uri": "paint.png"}]}), "refers to 'paint.png'"),
        (glb({**MESH, "extensionsRequired": ["KHR_draco_mesh_compression"]}), "without compression"),
    ],
)
def test_reasons_why_a_file_cannot_be_drawn(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.glb"
    file.write_bytes(content)
    with pytest.raises(RequestFailed, match=message):
        read_appearance(file)


def test_where_a_file_is(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    (second / "x.glb").write_bytes(glb({**MESH, "images": [{"uri": "data:image/png;base64,"}]}))
    assert read_appearance(find_appearance("x.glb", [first, second]))
    for name, message in (
        ("../b/x.glb", "is outside the folder"),
        ("y.glb", "does not exist"),
        ("x.obj", "not a .glb"),
    ):
        with pytest.raises(RequestFailed, match=message):
            find_appearance(name, [first])


def test_propellers_turn_with_simulation_time() -> None:
    """Turns are the integral of a rate that pictures can show, live and in a log."""
    known: Any = [
        {"kind": "thruster", "unit": "1/s", "minimum": -25.0, "maximum": 25.0},
        {"kind": "thruster", "unit": "N", "minimum": -5.0, "maximum": 20.0},
        {"kind": "fin", "unit": "rad", "minimum": -0.4, "maximum": 0.4},
    ]
    actual = np.array([[0.5, 5.0, 0.1], [1.0, -5.0, 0.1], [20.0, 20.0, 0.1], [-20.0, np.nan, 0.1]])
    rates = drawn_rates(known, actual)
    expected = [[0.5, 1.0, 0.0], [1.0, -1.0, 0.0], [MOST_RATE, MOST_RATE, 0.0], [-MOST_RATE, 0.0, 0.0]]
    assert rates == pytest.approx(np.array(expected))
    time = np.array([0.0, 0.3, 0.5, 0.6])
    logged, live = LoggedTurns(time, rates), LiveTurns()
    assert logged.at(0.55)[0] == pytest.approx([0.15 + 0.2 + 0.1, (0.3 - 0.2 + 0.1) % 1.0, 0.0])
    for t, r in zip(time, rates, strict=True):
        at = live.update(t, r)
        assert at == pytest.approx(logged.at(t)[0])
    assert live.update(0.0, rates[0]) == pytest.approx(at), "after a time change, they continue"


def test_a_replay_shows_the_same_angle_again(config: Any, tmp_path: Path, open_page: Opener) -> None:
    dart(tmp_path / "dart.glb")
    loaded = config(
        f'<models>{DART.format(more="")}</models><fleet><vehicle name="a" model="dart" position="0 0 5 m"/></fleet>'
    )
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "run.mcap"
    writer, state, acting = LogWriter(path, loaded, 1), np.zeros(1, STATE.dtype), np.zeros(1, ACTUATION.dtype)
    state["q_WB"][:, 0] = 1.0
    writer.body(0, 0, "a", "dart", "underwater", True)
    for k in range(101):
        acting["actual"][0, 0] = 0.01 * k  # the shaft speed grows to 1/s in 10 s
        writer.table(k * 100_000_000, "state", [0], state.tobytes())
        writer.table(k * 100_000_000, "actuation", [0], acting.tobytes())
    writer.close()
    with on_stage(ReplaySource(path), tmp_path) as url:  # type: ignore[arg-type]
        page = open_page(url)
        page.wait("wavesim.view.bodies.kinds.get('dart')?.own")
        page.see("wavesim.link.control('pause')")
        page.see("wavesim.app.selection.choose(0)")
        angles = []
        for time in (4.0, 9.0, 4.0):
            page.see(f"wavesim.link.control('seek', {time})")
            page.wait(
                f"Math.abs(wavesim.store.time - {time}) < 1e-6 && Math.abs(wavesim.store.panel?.time - {time}) < 1e-6"
            )
            page.see("wavesim.app.loop.wake()")
            page.wait("!wavesim.app.loop.turning")
            angles.append(turned(page, "0"))
        # 0.05 t^2 less half of a sample's growth in each period
        turns = 0.05 * 4.0**2 - 0.5 * 4.0 * 0.1 * 0.1
        assert angles[0] == pytest.approx([np.sin(2 * np.pi * turns), np.cos(2 * np.pi * turns), 0.0], abs=1e-6)
        assert (angles[0] == angles[2]).all() and not np.allclose(angles[0], angles[1])
        page.clean()
