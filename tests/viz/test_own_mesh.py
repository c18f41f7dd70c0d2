"""A vehicle's own mesh on the page: its materials, propellers and fins that move, and files that cannot be drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.mesh_samples import DART, dart
from tests.viz.sea import Opener
from tests.viz.stage import Stage, on_stage
from wavesim_viz import scene
from wavesim_viz.equipment import body_equipment
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.propeller_turns import drawn_rates
from wavesim_world.config import Model
from wavesim_world.config.build import read_models

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
ANGLE = 0.3  #: of the rudder, in rad
#: direction in the axes of the body, for each moving part: where its first corner is, relative to its pivot
PIVOTS = """(() => { const found = {}, inverse = wavesim.view.bodies.moving.group.matrixWorld.clone().invert();
  wavesim.view.bodies.moving.group.updateMatrixWorld(true);
  for (const [key, parts] of [...wavesim.view.bodies.moving.parts, ...wavesim.view.bodies.moving.propellers])
    found[key] = parts.map(p => ({ at: p.pivot.getWorldPosition(p.pivot.position.clone()).applyMatrix4(inverse).toArray(),
      turn: p.pivot.quaternion.toArray(), disc: p.disc?.visible }));
  return found })()"""


class Harbour(Stage):
    """One vehicle with its own mesh, whose propeller and rudder have the given values."""

    def __init__(self, model: Model, folder: Path) -> None:
        super().__init__(str(folder / "config.xml"))
        self.model, self.turns = model, 0.0
        self.described["models"] = {model.name: scene.model_info(model)}
        self.kits[0] = dict(body_equipment(0, 1, model, ()))
        self.values = {"prop": 20.0, "rudder": ANGLE}

    def roster(self) -> list[list[Any]]:
        return [[0, "a", self.model.name, "underwater", 1], [1, "b", self.model.name, "underwater", 1]]

    def frame(self) -> ViewerFrame:
        p = np.array([[0.0, 0.0, 2.0], [3.0, 3.0, 2.0]])
        return ViewerFrame(10.0, 100, 2, bodies([0, 1], p, [[1, 0, 0, 0]] * 2, np.zeros((2, 3))))

    def panel(self, row: int) -> dict[str, Any]:
        known = self.kits[0]["actuators"]
        actual = [self.values.get(a["name"], 0.0) for a in known]
        rates = drawn_rates(known, actual).tolist()
        turns = [self.turns if r else 0.0 for r in rates]
        acting = {"command": actual, "actual": actual, "feedback": actual, "turns": turns, "turn_rates": rates}
        return {**super().panel(row), "time": 10.0, "actuation": acting}


def harbour(folder: Path, more: str = "") -> Harbour:
    file = folder / "models.xml"
    file.write_text(f"<models>{DART.format(more=more)}</models>")
    return Harbour(read_models(file)["dart"], folder)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Harbour, str]]:
    dart(tmp_path / "dart.glb")
    source = harbour(tmp_path)
    with on_stage(source, tmp_path) as url:
        yield source, url


def test_propellers_and_fins_of_a_mesh_move(stage: tuple[Harbour, str], open_page: Opener) -> None:
    source, url = stage
    source.turns = 0.1
    page = open_page(url)
    page.wait("wavesim.view.bodies.kinds.get('dart')?.own")
    page.see("wavesim.app.selection.choose(0)")
    page.see("(() => { wavesim.view.look([-2.2, -0.9, 1.4], [0, -2, 0.1]) })()")
    page.wait("wavesim.store.panel?.actuation && wavesim.view.bodies.moving.propellers.size")
    page.wait(f"Math.abs(wavesim.view.bodies.moving.values[1] - {ANGLE}) < 1e-3")
    page.see("wavesim.app.loop.wake()")
    page.wait("!wavesim.app.loop.turning")
    page.shot("own-mesh")
    found = page.see(PIVOTS)
    print(found)
    page.clean()
