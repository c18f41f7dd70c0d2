"""Obstacles from triangle meshes, read with trimesh (MIT) and ray-cast with embree (Apache-2.0); the ``ocean`` extra
contains both.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.algebra import matvec, norm
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_world.config.loaded import LoadedConfig

FORMATS = ("stl", "ply", "obj", "off", "glb")
#: maximum total number of triangles in all meshes of a world, because contacts test each nearby triangle
MAX_TRIANGLES = 20_000
MAX_BYTES = 64 * 2**20


def read_mesh(path: Path) -> Floats:
    """Read triangles (n, 3, 3) from a mesh file, in the axes and the unit of the file. Raises ConfigError if the file
    is invalid.
    """
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in FORMATS:
        raise ConfigError(f"unknown mesh format; use {', '.join(FORMATS)}", str(path))
    check_installed("trimesh")
    import trimesh

    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"the mesh is larger than {MAX_BYTES >> 20} MiB", str(path))
        mesh = trimesh.load_mesh(str(path), file_type=suffix, process=False)
    except OSError as error:
        raise ConfigError(f"cannot read the mesh: {error.strerror or error}", str(path)) from None
    except ConfigError:
        raise
    except Exception:  # trimesh can raise any exception for a corrupt file, with a text from the file
        raise ConfigError(f"cannot read the mesh: the file is not a valid {suffix.upper()} file", str(path)) from None
    triangles = np.asarray(getattr(mesh, "triangles", np.zeros((0, 3, 3))), float)
    if not np.isfinite(triangles).all():
        raise ConfigError("the mesh has a vertex that is not finite", str(path))
    area = norm(np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]))
    triangles = triangles[area > 0.0]
    if not len(triangles):
        raise ConfigError("the mesh has no triangles", str(path))
    return np.asarray(triangles)


def mesh_triangles(loaded: LoadedConfig) -> list[Floats]:
    """Return the triangles (n, 3, 3) of each mesh of a world, in frame W."""
    found = []
    for m in loaded.config.world.obstacles.mesh:
        path = loaded.data_file(m.file)
        R = frames.rotation(frames.quaternion(*m.attitude))
        corners = _read(path, path.stat().st_mtime_ns if path.exists() else 0)
        found.append(matvec(R, m.scale * corners) + np.array(m.position))
    return found


def all_triangles(loaded: LoadedConfig) -> Floats:
    """Return the triangles (n, 3, 3) of all meshes of a world."""
    total = np.concatenate([np.zeros((0, 3, 3)), *mesh_triangles(loaded)])
    if len(total) > MAX_TRIANGLES:
        raise ConfigError(
            f"the meshes have {len(total)} triangles; the maximum for a world is {MAX_TRIANGLES}: simplify the meshes",
            str(loaded.path),
        )
    return total


@functools.lru_cache(maxsize=16)
def _read(path: Path, _changed: int) -> Floats:
    return read_mesh(path)


class RaycastMesh:
    """Triangles prepared for ray casting."""

    def __init__(self, triangles: Floats) -> None:
        check_installed("trimesh")
        check_installed("embreex")
        import trimesh
        from trimesh.ray.ray_pyembree import RayMeshIntersector

        corners = triangles.reshape(-1, 3)
        self._middle = corners.mean(axis=0)  # embree computes in single precision
        mesh = trimesh.Trimesh(corners - self._middle, np.arange(len(corners)).reshape(-1, 3), process=False)
        self._rays = RayMeshIntersector(mesh)

    def cast(self, origin: Floats, direction: Floats) -> Floats:
        """Return distances (n,) from origins (n, 3) along unit directions (n, 3), with inf where nothing is hit."""
        found = np.full(len(origin), np.inf)
        place, ray, _ = self._rays.intersects_location(origin - self._middle, direction, multiple_hits=False)
        if len(ray):
            found[ray] = norm(place + self._middle - origin[ray])
        return found
