"""A glTF file of a small AUV with materials, a texture and nodes named after actuators, and a source that shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from PIL import Image
from trimesh.transformations import rotation_matrix, translation_matrix
from trimesh.visual.material import PBRMaterial

from tests.viz.stage import Stage
from wavesim_viz import scene
from wavesim_viz.equipment import body_equipment
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.propeller_turns import drawn_rates
from wavesim_world.config import Model
from wavesim_world.config.build import read_models

ANGLE = 0.3  #: of the rudder, in rad

#: a model with the actuators of the file; its propeller is driven by shaft speed
DART = (
    '<model name="dart" type="underwater" appearance="dart.glb"{more}><cylinder length="1.6 m" radius="0.1 m"/>'
    '<mass value="50 kg"/><inertia xx="0.3" yy="10" zz="10"/><added-mass diagonal="3 50 50 0 8 8"/>'
    '<linear-drag diagonal="8 20 20 2 20 20"/>'
    '<thruster name="prop" position="-0.82 0 0 m" direction="1 0 0" law="shaft" minimum="-25" maximum="25" lag="0.1 s"'
    ' coefficients="0 0.1 0"/>'
    '<fin name="rudder" position="-0.65 0 -0.17 m" normal="0 1 0" chord="1 0 0" area="0.012 m2" lift_slope="3" limit="25 deg"'
    ' rate="90 deg/s" lag="0.1 s"/>'
    '<fin name="elevator" position="-0.65 0.17 0 m" normal="0 0 1" chord="1 0 0" area="0.012 m2" lift_slope="3"'
    ' limit="25 deg" rate="90 deg/s" lag="0.1 s"/>'
    "</model>"
)


def _surface(mesh: Any, **material: Any) -> Any:
    mesh.visual = trimesh.visual.TextureVisuals(
        uv=mesh.visual.uv if mesh.visual.kind == "texture" else None, material=PBRMaterial(**material)
    )
    return mesh


def _body() -> Any:
    """Hull with a texture: yellow with two dark bands and a chequered one, along +z."""
    profile = [(0.03, -0.8), (0.06, -0.7), (0.1, -0.45), (0.1, 0.6)]
    around, rows = 48, 60
    z = np.linspace(-0.8, 0.6, rows)
    r = np.interp(z, [p[1] for p in profile], [p[0] for p in profile])
    turn = np.linspace(0.0, 2.0 * np.pi, around + 1)
    points = np.stack(
        [np.outer(r, np.cos(turn)), np.outer(r, np.sin(turn)), np.repeat(z[:, None], around + 1, 1)], axis=-1
    ).reshape(-1, 3)
    uv = np.stack(
        [np.tile(turn / (2.0 * np.pi), (rows, 1)), np.repeat(((z - z[0]) / (z[-1] - z[0]))[:, None], around + 1, 1)],
        axis=-1,
    ).reshape(-1, 2)
    k = (np.arange(rows - 1)[:, None] * (around + 1) + np.arange(around)).ravel()
    faces = np.concatenate([np.stack([k, k + 1, k + around + 2], 1), np.stack([k, k + around + 2, k + around + 1], 1)])
    picture = np.zeros((256, 256, 3), np.uint8)
    picture[:] = (250, 196, 30)
    for low, high in ((60, 72), (190, 202)):
        picture[low:high] = (22, 32, 46)
    squares = ((np.arange(256)[None, :] // 16 + np.arange(256)[:, None] // 16) % 2)[120:152]
    picture[120:152] = np.where(squares[..., None] == 1, (240, 240, 240), (200, 40, 40))
    mesh = trimesh.Trimesh(points, faces, process=False)
    mesh.visual = trimesh.visual.TextureVisuals(uv=uv)
    return _surface(mesh, baseColorTexture=Image.fromarray(picture), metallicFactor=0.0, roughnessFactor=0.45)


def dart(path: Path) -> None:
    """Write the file: front +z, up +y. The propeller's origin is its hub, and the fins' origins are their hinges."""
    scene: Any = trimesh.Scene()
    scene.add_geometry(_body(), node_name="hull")
    dome = trimesh.creation.icosphere(subdivisions=4, radius=0.1)
    dome.apply_transform(np.diag([1.0, 1.0, 1.4, 1.0]))
    glass = {
        "baseColorFactor": [120, 190, 230, 90],
        "alphaMode": "BLEND",
        "metallicFactor": 0.0,
        "roughnessFactor": 0.05,
    }
    scene.add_geometry(_surface(dome, **glass), node_name="dome", transform=translation_matrix([0, 0, 0.6]))
    ring = trimesh.creation.annulus(0.085, 0.106, 0.05)
    steel = {"baseColorFactor": [205, 208, 212, 255], "metallicFactor": 1.0, "roughnessFactor": 0.2}
    scene.add_geometry(_surface(ring, **steel), node_name="ring", transform=translation_matrix([0, 0, 0.58]))
    lamp = trimesh.creation.icosphere(subdivisions=3, radius=0.03)
    shine = {"metallicFactor": 0.0, "baseColorFactor": [30, 30, 30, 255], "emissiveFactor": [0.2, 1.0, 0.5]}
    scene.add_geometry(_surface(lamp, **shine), node_name="lamp", transform=translation_matrix([0, 0.11, 0.2]))
    scene.add_geometry(_surface(_propeller(), baseColorFactor=[196, 140, 60, 255], metallicFactor=0.9, roughnessFactor=0.3),
                       node_name="prop", transform=translation_matrix([0, 0, -0.82]))  # fmt: skip
    red = {"baseColorFactor": [150, 8, 14, 255], "metallicFactor": 0.0, "roughnessFactor": 0.6}
    for name, angle in (("rudder", 0.0), ("elevator", np.pi / 2)):
        blade = trimesh.creation.box((0.008, 0.16, 0.1))
        blade.apply_translation([0, 0.16, -0.02])
        turn = translation_matrix([0, 0, -0.63]) @ rotation_matrix(angle, [0, 0, 1])
        scene.add_geometry(_surface(blade, **red), node_name=name, transform=turn)
    path.write_bytes(scene.export(file_type="glb"))


def _propeller() -> Any:
    """Three blades and a hub, about the z axis."""
    parts = [trimesh.creation.cylinder(0.022, 0.06, sections=24)]
    for k in range(3):
        blade = trimesh.creation.box((0.036, 0.075, 0.006))
        blade.apply_transform(rotation_matrix(0.6, [0, 1, 0]))
        blade.apply_translation([0, 0.05, 0])
        blade.apply_transform(rotation_matrix(2.0 * np.pi * k / 3.0, [0, 0, 1]))
        parts.append(blade)
    return trimesh.util.concatenate(parts)


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
