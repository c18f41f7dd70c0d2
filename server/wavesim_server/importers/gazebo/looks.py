"""Appearance of a vehicle: its visual meshes in one glTF file."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.extras import check_installed
from wavesim_server.importers.gazebo.elements import describe
from wavesim_server.importers.gazebo.frames import RigidPose
from wavesim_server.importers.gazebo.robot import LinkShape, Robot
from wavesim_server.importers.model_draft import ModelDraft


def add_appearance(draft: ModelDraft, robot: Robot, body: Callable[[RigidPose], RigidPose]) -> None:
    """Convert the visual meshes of all links, in the poses at which all joints are zero. If one of them cannot be read,
    a note says why, and viewers draw the primitive shape.
    """
    meshes = [(link, s) for link in robot.links.values() for s in link.visuals if s.kind == "mesh"]
    others = [describe(s.element) for link in robot.links.values() for s in link.visuals if s.kind != "mesh"]
    if others:
        draft.notes.append(f"{', '.join(others)}: viewers do not draw this shape")
    if not meshes:
        return
    if importlib.util.find_spec("trimesh") is None or importlib.util.find_spec("scipy") is None:
        draft.notes.append("visual meshes are not converted: pip install 'wavesim[scenes]'")
        return
    from wavesim_world import hull_geometry
    from wavesim_world.hull_reader import HullPart

    parts: list[HullPart] = []
    failed = False
    for link, shape in meshes:
        try:
            found = _read(shape)
        except WaveSimError as error:
            draft.notes.append(
                f"{describe(shape.element)}: {Path(shape.uri).name} cannot be drawn ({error}); viewers draw the box"
            )
            failed = True
            continue
        pose = body(link.pose.then(shape.pose))
        scale = np.array(shape.size if len(shape.size) == 3 else shape.size[:1] * 3)
        for part in found:
            vertices = pose.position + (part.vertices * scale) @ pose.rotation.T
            parts.append(part._replace(name=f"{link.name} {part.name}", vertices=vertices))
    if parts and not failed:
        file = f"{draft.name}.glb"
        draft.files[file] = hull_geometry.to_glb(parts)
        draft.attributes["appearance"] = file


def _read(shape: LinkShape) -> list[Any]:
    """Return the parts of a mesh (HullPart). Raises WaveSimError."""
    from wavesim_world.hull_reader import InvalidHull, read_parts

    path = Path(shape.uri)
    if not path.is_file():
        raise InvalidHull("not found; give its folder with --path")
    return _collada(path) if path.suffix.lower() == ".dae" else read_parts(path)


def _collada(path: Path) -> list[Any]:
    """Read a COLLADA file whose z axis points up with Assimp, which turns it so that its y axis points up."""
    from wavesim_world.hull_reader import HullPart, InvalidHull

    check_installed("assimp_py")
    import assimp_py

    if b"Z_UP" not in path.read_bytes():
        raise InvalidHull("its z axis does not point up")
    try:
        scene = assimp_py.import_file(str(path), assimp_py.Process_Triangulate | assimp_py.Process_SortByPType)
    except (RuntimeError, ValueError) as error:
        raise InvalidHull(f"Assimp: {str(error)[-80:]}") from None
    back, parts = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]), []

    def walk(node: Any, above: Floats) -> None:
        at = above @ np.array(node.transformation, float)
        for k in node.mesh_indices or ():
            mesh = scene.meshes[k]
            try:
                corners = np.asarray(mesh.indices, int)
            except (RuntimeError, ValueError):  # lines or points
                continue
            if len(corners) == 3 * mesh.num_faces:
                points = np.asarray(mesh.vertices, float).reshape(-1, 3) @ at[:3, :3].T + at[:3, 3]
                colour = scene.materials[mesh.material_index].get("COLOR_DIFFUSE") if scene.materials else None
                red, green, blue = (0.6, 0.6, 0.6) if colour is None else map(float, list(colour)[:3])
                parts.append(HullPart(str(node.name), points @ back.T, corners.reshape(-1, 3), (red, green, blue)))
        for child in node.children or ():
            walk(child, at)

    walk(scene.root_node, np.eye(4))
    return parts
