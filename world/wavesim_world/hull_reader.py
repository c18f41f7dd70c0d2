"""Program that reads the parts of a hull file: glTF (.glb), STL, OBJ, PLY, OFF, FBX or STEP.

Hull files come from other people, and their readers are large libraries. :func:`read_in_process` therefore runs this
program as a process with limited memory and time, and a corrupt file ends only this process:

    python -m wavesim_world.hull_reader FILE PARTS.npz [MOST_TRIANGLES]

It prints one line that states the reason and exits with code 2 if the file cannot be used.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.extras import check_installed
from wavesim_world.hull_geometry import cells

STEP = ("step", "stp")
FORMATS = ("glb", "gltf", "stl", "obj", "ply", "off", "fbx", *STEP)
MOST_TRIANGLES = 200_000
READ_S = 60.0  #: maximum time in s to read a hull file
MOST_PARTS = 200
MEMORY = 4 << 30  #: maximum address space of this program, in bytes
GREY = (0.62, 0.66, 0.7)
#: minimum number of triangles of a body that becomes a separate part
BODY_TRIANGLES = 4
#: how far the triangles of a STEP file may deviate from its surfaces, as a share of the length of each edge, and their
#: largest angle (rad)
STEP_DEVIATION, STEP_ANGLE = 0.002, 0.3


class InvalidHull(WaveSimError):
    """Raised for a hull file that cannot be used. The text is one line for the user."""


class HullPart(NamedTuple):
    """Named mesh of a hull file, in the axes and the unit of the file: vertices (n, 3), triangles (k, 3), and its
    colour (red, green, blue; 0 to 1).
    """

    name: str
    vertices: Array
    triangles: Array
    colour: tuple[float, float, float]


def read_in_process(path: Path, seconds: float = READ_S, most: int = MOST_TRIANGLES) -> list[HullPart]:
    """Read all meshes of a file in a separate process. Raises InvalidHull with the reason if the file cannot be used.

    ``seconds`` limits the time, and ``most`` the number of triangles.
    """
    with tempfile.TemporaryDirectory() as folder:
        parts = Path(folder) / "parts.npz"
        command = [sys.executable, "-m", "wavesim_world.hull_reader", str(path), str(parts), str(most)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise InvalidHull(f"reading the file takes longer than {seconds:g} s: simplify the mesh") from None
        if done.returncode == 2 and done.stderr.strip():
            raise InvalidHull(done.stderr.strip().splitlines()[-1])
        if done.returncode:
            raise InvalidHull("the file is damaged, or reading it needs too much memory")
        return load_parts(parts)


def read_parts(path: Path, most: int = MOST_TRIANGLES) -> list[HullPart]:
    """Read all meshes of a file. Raises InvalidHull with the reason if the file cannot be used."""
    kind = path.suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InvalidHull(f"unknown type of file '{path.suffix}': use {', '.join(FORMATS)}")
    check_installed("trimesh")
    check_installed("scipy")
    try:
        found = list(
            _fbx(path, most) if kind == "fbx" else _step(path, most) if kind in STEP else _scene(path, kind, most)
        )
    except (WaveSimError, MemoryError):
        raise
    except Exception as error:  # the libraries can raise any exception for a corrupt file
        if "buffers" in str(error) or kind == "gltf":
            raise InvalidHull("the file refers to other files; export it as one binary file (.glb)") from None
        raise InvalidHull(f"the file is not a valid {kind.upper()} file") from None
    if not any(len(p.triangles) for p in found):
        raise InvalidHull("the file contains no triangles")
    if not all(np.isfinite(p.vertices).all() for p in found):
        raise InvalidHull("the file has a vertex that is not finite")
    if len(found) == 1:
        found = _bodies(found[0])
    if len(found) > MOST_PARTS:
        raise InvalidHull(f"the file has {len(found)} parts; the maximum is {MOST_PARTS}: join some of them")
    size = np.ptp(np.concatenate([p.vertices for p in found]), axis=0)
    if np.sort(size)[1] <= 1e-9 * size.max() or size.max() <= 0.0:
        raise InvalidHull("the mesh is degenerate: all of its vertices lie on a line")
    return _distinct(found)


def _scene(path: Path, kind: str, most: int) -> Iterator[HullPart]:
    """Read a file with trimesh (MIT)."""
    import trimesh

    more: dict[str, Any] = {"split_objects": True, "group_material": False} if kind == "obj" else {}
    scene: Any = trimesh.load_scene(str(path), file_type=kind, process=False, **more)
    count = sum(len(getattr(scene.geometry[scene.graph[n][1]], "faces", ())) for n in scene.graph.nodes_geometry)
    _check_count(count, most)
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        faces = np.asarray(getattr(mesh, "faces", np.zeros((0, 3))), int)
        if not len(faces):
            continue  # a point cloud or a curve
        yield _part(str(node) if kind in ("glb", "gltf") else str(name), mesh.vertices, faces, transform, _colour(mesh))


def _check_count(count: int, most: int) -> None:
    if count > most:
        raise InvalidHull(
            f"the file has {count} triangles; the maximum is {most}: simplify the mesh and export it again"
        )


def _colour(mesh: Any) -> Any:
    material = getattr(mesh.visual, "material", None)
    colour = getattr(material, "baseColorFactor", None)
    if colour is None and material is not None:
        colour = getattr(material, "diffuse", None)
    return None if colour is None else np.asarray(colour, float)[:3] / 255.0


def _step(path: Path, most: int) -> Iterator[HullPart]:
    """Read a STEP file with cascadio (MIT), which contains Open CASCADE. It converts the file to metres and
    keeps its axes.
    """
    try:
        check_installed("cascadio")
    except WaveSimError as error:
        raise InvalidHull(f"STEP files need a converter: {error}; or export the file as STL") from None
    import cascadio

    if b"ISO-10303-21" not in path.read_bytes()[:1024]:
        raise InvalidHull("the file is not a valid STEP file")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "parts.glb"
        done = cascadio.step_to_glb(str(path), str(out), STEP_DEVIATION, STEP_ANGLE, True)
        if done or not out.exists():
            raise InvalidHull("the file is not a valid STEP file")
        yield from list(_scene(out, "glb", most))


def _fbx(path: Path, most: int) -> Iterator[HullPart]:
    """Read an FBX file with Assimp (BSD-3-Clause). Assimp converts the file to metres, with the y axis up."""
    try:
        check_installed("assimp_py")
    except WaveSimError as error:
        raise InvalidHull(f"FBX files need a converter: {error}; or export the file as glTF (.glb)") from None
    import assimp_py

    # Assimp judges the type by the content if the ending does not fit: accept nothing but FBX
    start = path.read_bytes()[:4096]
    if not start.startswith(b"Kaydara FBX Binary") and b"FBX" not in start:
        raise InvalidHull("the file is not a valid FBX file")
    try:
        scene = assimp_py.import_file(str(path), assimp_py.Process_Triangulate | assimp_py.Process_GlobalScale)
    except RuntimeError as error:
        reason = str(error).rpartition(": ")[2].strip()[:120]
        raise InvalidHull(
            f"the FBX file cannot be converted ({reason}); export it as FBX 7.4 (2014) binary or, better, as glTF (.glb)"
        ) from None

    _check_count(sum(m.num_faces for m in scene.meshes), most)

    def walk(node: Any, above: Array) -> Iterator[HullPart]:
        transform = above @ np.array(node.transformation, float)
        meshes = [scene.meshes[i] for i in (node.mesh_indices or ())]
        vertices, faces, first = [], [], 0
        for m in meshes:  # one for each material of the part
            points = np.asarray(m.vertices, float).reshape(-1, 3)
            corners = np.asarray(m.indices, int)
            if len(corners) != 3 * m.num_faces:
                continue  # lines or points
            vertices.append(points)
            faces.append(corners.reshape(-1, 3) + first)
            first += len(points)
        if faces:
            material = scene.materials[meshes[0].material_index] if scene.materials else {}
            yield _part(
                str(node.name).partition("_$Assimp")[0],
                np.concatenate(vertices),
                np.concatenate(faces),
                transform,
                material.get("COLOR_DIFFUSE"),
            )
        for child in node.children or ():
            yield from walk(child, transform)

    yield from walk(scene.root_node, np.eye(4))


def _part(name: str, vertices: Any, faces: Array, transform: Any, colour: Any) -> HullPart:
    """Return a mesh in the axes of the file, with vertices that coincide joined into one."""
    points = np.asarray(vertices, float)
    if not len(points) or faces.min() < 0 or faces.max() >= len(points):
        raise InvalidHull("the file is damaged: a triangle refers to a vertex that is missing")
    t = np.asarray(transform, float)
    points = points @ t[:3, :3].T + t[:3, 3]
    if np.linalg.det(t[:3, :3]) < 0.0:  # a mirrored part would be inside out
        faces = faces[:, ::-1]
    size = float(np.ptp(points, axis=0).max()) if np.isfinite(points).all() else 0.0
    if size > 0.0:
        _, first, at = np.unique(cells(points, 1e-6 * size), return_index=True, return_inverse=True)
        points, faces = points[first], at.reshape(-1)[faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    rgb = GREY if colour is None or len(colour) < 3 else tuple(float(np.clip(v, 0.0, 1.0)) for v in colour[:3])
    return HullPart(name, points, faces, rgb)  # type: ignore[arg-type]


def _bodies(part: HullPart) -> list[HullPart]:
    """Split a mesh without names into its connected bodies, largest first, so that a user can select them."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    a, b, c = part.triangles.T
    n = len(part.vertices)
    links = coo_matrix((np.ones(2 * len(a)), (np.r_[a, b], np.r_[b, c])), shape=(n, n))
    count, label = connected_components(links, directed=False)
    body = label[a]
    sizes = np.bincount(body, minlength=count)
    large = [int(k) for k in np.flatnonzero(sizes >= BODY_TRIANGLES)]
    if not 1 < len(large) <= MOST_PARTS:
        return [part]

    def area(k: int) -> float:
        t = part.vertices[part.triangles[body == k]]
        return float(np.linalg.norm(np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]), axis=1).sum())

    order = sorted(large, key=area, reverse=True)
    found = []
    for number, k in enumerate(order, 1):
        faces = part.triangles[(body == k) | ((number == 1) & ~np.isin(body, large))]
        used, at = np.unique(faces, return_inverse=True)
        found.append(HullPart(f"body-{number}", part.vertices[used], at.reshape(-1, 3), part.colour))
    return found


def _distinct(parts: list[HullPart]) -> list[HullPart]:
    """Give each part a unique, printable name."""
    taken, found = set[str](), []
    for p in parts:
        name = "".join(c for c in p.name if c.isprintable()).strip()[:60] or "part"
        own, k = name, 2
        while own in taken:
            own, k = f"{name}-{k}", k + 1
        taken.add(own)
        found.append(p._replace(name=own))
    return found


def save_parts(parts: list[HullPart], path: Path) -> None:
    names = json.dumps([[p.name, *p.colour] for p in parts])
    arrays = {f"{what}{k}": a for k, p in enumerate(parts) for what, a in (("v", p.vertices), ("t", p.triangles))}
    np.savez(path, names=np.frombuffer(names.encode(), np.uint8), **arrays)  # type: ignore[arg-type]


def load_parts(path: Path) -> list[HullPart]:
    with np.load(path) as data:
        names = json.loads(data["names"].tobytes())
        return [HullPart(name, data[f"v{k}"], data[f"t{k}"], (r, g, b)) for k, (name, r, g, b) in enumerate(names)]


def main(arguments: list[str]) -> int:
    source, out, most = (*arguments, str(MOST_TRIANGLES))[:3]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        save_parts(read_parts(Path(source), int(most)), Path(out))
    except MemoryError:
        sys.stderr.write("the file needs too much memory: simplify the mesh and export it again\n")
        return 2
    except WaveSimError as error:
        sys.stderr.write(" ".join(str(error).split()) + "\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
