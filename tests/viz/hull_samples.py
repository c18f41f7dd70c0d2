"""A vessel as a hull file of every format, for tests."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import trimesh

from tests.viz import fbx

LENGTH, RADIUS, FORWARD = 1.2, 0.15, 0.05


def vessel() -> dict[str, trimesh.Trimesh]:
    """A submarine of four named parts, x forward, z up, in m."""
    hull = trimesh.creation.capsule(height=LENGTH, radius=RADIUS, count=(24, 24))
    hull.apply_transform(trimesh.transformations.rotation_matrix(math.pi / 2, [0, 1, 0]))
    propeller = trimesh.creation.cylinder(radius=0.08, height=0.02, sections=24)
    propeller.apply_transform(trimesh.transformations.rotation_matrix(math.pi / 2, [0, 1, 0]))
    propeller.apply_translation((-0.78, 0.0, 0.0))
    rudder = trimesh.creation.box((0.12, 0.01, 0.2))
    rudder.apply_translation((-0.6, 0.0, 0.26))
    sonar = trimesh.creation.icosphere(1, radius=0.03)
    sonar.apply_translation((0.5, 0.0, -0.19))
    parts = {"hull": hull, "propeller": propeller, "rudder": rudder, "sonar": sonar}
    for part in parts.values():
        part.apply_translation((FORWARD, 0.0, 0.0))
    return parts


def save(folder: Path, name: str) -> Path:
    """The vessel as a file in the axes and the unit that are usual for its format."""
    path, parts = folder / name, vessel()
    if path.suffix == ".fbx":
        meshes: fbx.Meshes = {
            k: ((100.0 * m.vertices).tolist(), m.faces.tolist(), (0.0, 0.0, 0.0)) for k, m in parts.items()
        }
        path.write_bytes(fbx.binary(meshes, up=2) if "binary" in name else fbx.text(meshes, up=2))
        return path
    turn = np.eye(4)
    if path.suffix in (".glb", ".obj"):  # y up, z forward
        turn[:3, :3] = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    if path.suffix == ".stl":
        turn[:3, :3] *= 1000.0  # mm
    scene = trimesh.Scene()
    for k, m in parts.items():
        m.apply_transform(turn)
        scene.add_geometry(m, node_name=k, geom_name=k)
    scene.export(str(path))
    return path


VOLUME = math.pi * RADIUS**2 * LENGTH + 4 / 3 * math.pi * RADIUS**3
