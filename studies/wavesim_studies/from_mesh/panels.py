"""Added mass of a submerged body by the panel method, with its convergence.

    found = added_mass(triangles, origin=(0.0, 0.0, 0.0), density=1025.0)
    print(found.matrix, found.uncertainty, found.table())

Triangles (n, 3, 3) are in body axes (forward, starboard, down) in m, with their faces outwards. The water has no
boundary. Capytaine solves the flow on three panel meshes with two formulations of the boundary integral: with sources,
and with the potential. Both converge to the same value, from different sides for most bodies. The result is the mean of
the two extrapolated values.

With flat panels of the size h, the error falls as h^2 on a smooth body, and about as h on a body with sharp edges. The
extrapolation uses h^1.5. The uncertainty is the sum of half the difference between the two formulations and half the
difference between the extrapolations with h and with h^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.extras import check_installed
from wavesim_server.importers.spatial_matrices import shifted
from wavesim_studies.from_mesh import panel_mesh, panel_process
from wavesim_studies.from_mesh.panel_process import GRAVITY, Progress, no_progress
from wavesim_world import hull_geometry

PANELS = (400, 900, 2000)  #: panels of the three meshes
FORMULATIONS = ("indirect", "direct")  #: Capytaine's names: unknown sources, unknown potential
ORDER = 1.5  #: power of the panel size in the error
#: from body axes to the axes of panel codes (x forward, y to port, z up), and back
AXES = np.array([1.0, -1.0, -1.0])
MOTIONS = np.concatenate([AXES, AXES])
NAMES = ("surge", "sway", "heave", "roll", "pitch", "yaw")


class AddedMassResult(NamedTuple):
    """Added mass (6, 6) about the origin in body axes (kg, kg m, kg m2), and its uncertainty (6, 6) in the same units.

    ``panels`` (g,) are the numbers of panels of the meshes. ``grids`` (2, g, 6, 6) is the added mass with each of the two
    formulations on each mesh. ``notes`` are texts for the user.
    """

    matrix: Array
    uncertainty: Array
    panels: tuple[int, ...]
    grids: Array
    notes: tuple[str, ...]

    def table(self) -> list[list[str]]:
        """Return the convergence as rows of texts, with a header. Each row is one mesh with one formulation."""
        rows = [["panels", "unknown", *NAMES]]
        for k, panels in enumerate(self.panels):
            for word, grid in zip(("sources", "potential"), self.grids, strict=True):
                rows.append([str(panels), word, *(f"{x:.4g}" for x in np.diag(grid[k]))])
        rows.append(["extrapolated", "", *(f"{x:.4g}" for x in np.diag(self.matrix))])
        rows.append(["uncertainty", "", *(f"{x:.2g}" for x in np.diag(self.uncertainty))])
        return rows


def added_mass(
    triangles: Array,
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    density: float = 1025.0,
    progress: Progress = no_progress,
    panels: Sequence[int] = PANELS,
) -> AddedMassResult:
    """Return the added mass of a closed body in unbounded water of ``density`` (kg/m3), about ``origin`` (3,) in m.

    ``panels`` are the approximate numbers of panels of at least two meshes. Raises PanelError with the reason if the
    surface cannot be meshed or the flow cannot be computed.
    """
    check_installed("capytaine")
    check_installed("scipy")
    if len(panels) < 2:
        raise ValueError("the extrapolation needs at least two meshes")
    t = np.asarray(triangles, float)
    centre = hull_geometry.mass_properties(t).centre
    size = float(np.ptp(t.reshape(-1, 3), axis=0).max())
    local = hull_geometry.outward((t - centre) * AXES / size)  # the program works with a length of 1
    symmetric = panel_mesh.is_symmetric(local)
    counts, grids = [], []
    for k, count in enumerate(sorted(panels)):
        try:
            mesh = panel_mesh.remesh(local, count, symmetric)
        except ValueError as error:
            raise panel_process.PanelError(str(error)) from None
        progress(k / len(panels), f"added mass with {mesh.panels} panels")
        given = {
            "vertices": mesh.vertices,
            "faces": mesh.faces,
            "symmetric": mesh.symmetric,
            "origin": np.zeros(3),
            "density": 1.0,
            "gravity": GRAVITY,
            "frequencies": np.zeros(0),
            "headings": np.zeros(0),
        }
        found = panel_process.run(given)["infinite"]
        counts.append(mesh.panels)
        grids.append(0.5 * (found + found.transpose(0, 2, 1)))
    progress(1.0, "added mass")
    scale = density * size**3 * np.outer([1, 1, 1, size, size, size], [1, 1, 1, size, size, size])
    rows = np.array(grids).transpose(1, 0, 2, 3) * np.outer(MOTIONS, MOTIONS) * scale
    about = np.array([shifted(m, centre, np.asarray(origin, float)) for m in rows.reshape(-1, 6, 6)])
    return _extrapolated(tuple(counts), about.reshape(rows.shape), symmetric)


def _extrapolated(counts: tuple[int, ...], rows: Array, symmetric: bool) -> AddedMassResult:
    """Extrapolate the rows (2, meshes, 6, 6) to panels of size zero."""
    best, first, second = (np.array([limit(counts, r, order) for r in rows]) for order in (ORDER, 1.0, 2.0))
    matrix = _positive(best.mean(axis=0))
    uncertainty = 0.5 * np.abs(best[0] - best[1]) + 0.5 * np.abs(first - second).mean(axis=0)
    share = float(np.max(np.diag(uncertainty)[:3] / np.maximum(np.diag(matrix)[:3], 1e-300)))
    notes = (
        f"added mass: panel method (Capytaine) with {', '.join(map(str, counts))} panels, extrapolated; uncertainty at most {100 * share:.1f} % in surge, sway and heave",
        *(("the mesh is treated as symmetric about the centre plane",) if symmetric else ()),
    )
    return AddedMassResult(matrix, uncertainty, counts, rows, notes)


def _positive(m: Array) -> Array:
    """Return the matrix without negative eigenvalues, which the extrapolation of zero can give (roll of a sphere)."""
    unit = np.diag(
        [*np.full(3, np.trace(m[:3, :3])), *np.full(3, max(np.trace(m[3:, 3:]), 1e-12 * np.trace(m[:3, :3])))]
    )
    unit = np.sqrt(unit / 3.0)
    back = np.linalg.inv(unit)
    values, vectors = np.linalg.eigh(back @ m @ back)
    found = unit @ (vectors * np.maximum(values, 0.0)) @ vectors.T @ unit
    return np.asarray(0.5 * (found + found.T))


def limit(panels: Sequence[int], values: Array, order: float) -> Array:
    """Return the values (meshes, ...) extrapolated to panels of size zero, by least squares. The error is assumed to be
    proportional to the size of the panels to the power ``order``.
    """
    h = np.asarray(panels, float) ** (-0.5 * order)
    across = (h - h.mean()) / ((h - h.mean()) ** 2).sum()
    slope = np.tensordot(across, values, axes=(0, 0))
    return np.asarray(values.mean(axis=0) - slope * h.mean())
