"""Wave forces, radiation, mean drift and restoring of a hull at the surface, by the panel method.

    found = floating_hull(triangles, mass, centre, inertia, density=1025.0)
    found.add_to(draft, linear_drag)      # <mass>, <rigid-body>, <restoring>, <added-mass>, <radiation>, <rao>

Triangles (n, 3, 3), ``centre`` and ``inertia`` are in body axes (forward, starboard, down) in m. The hull floats at rest
with the trim at which the centre of buoyancy is below the centre of mass. All results refer to axes that are horizontal
in this state, with the same origin. Capytaine solves the flow at zero speed in deep water. A lid on the water plane
inside the hull removes the irregular frequencies.

The mean drift follows from the momentum of the waves far away (Maruo 1960, Newman 1967) and the motions of the free
hull. The motions contain no viscous damping.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.extras import check_installed
from wavesim_server.importers import hull as hull_importer
from wavesim_server.importers import panel_results
from wavesim_server.importers.model_draft import ModelDraft
from wavesim_server.importers.spatial_matrices import shifted
from wavesim_studies.from_mesh import panel_mesh, panel_process
from wavesim_studies.from_mesh.panel_process import GRAVITY, PanelError, Progress, no_progress
from wavesim_studies.from_mesh.panels import AXES, NAMES
from wavesim_world.hull import Hull

PANELS = (500, 1200)  #: panels of the two meshes
FREQUENCIES = 32
HEADING_STEP = 15.0  #: deg
#: lowest and highest wavenumber of the table: multiples of 1/beam, and the highest 1/length for the lowest wavenumber
LOWEST, HIGHEST, LONGEST = 0.2, 10.0, 0.6
PANELS_PER_WAVE = 5.0  #: minimum number of panels in the length of a wave
MOST_TRIM = 0.2  #: rad; with more trim, the linear restoring forces of the model do not hold
#: a motion counts as radiating no waves if its damping is below this fraction of that of the strongest translation,
#: times the square of the arm for rotations. Otherwise, the noise of the mesh would determine its fluid memory
SILENT = 1e-4
OFF_CENTRE = 2e-3  #: allowed distance of the centre of mass from the centre plane of the hull, in beams


class PanelSolution(NamedTuple):
    """Results for a hull at the surface.

    ``results`` are in the form that all readers of panel codes return. ``motion`` (6, f, h) is the motion of the free
    hull in m or rad per m of wave amplitude, at the frequencies and headings of ``results.operators``. ``trim`` is in
    rad, bow up. ``triangles`` (n, 3, 3) is the whole hull and ``centre`` (3,) its centre of mass, in the axes that are
    horizontal at rest. ``table`` shows the convergence, with a header.
    """

    results: panel_results.PanelResults
    motion: Array
    trim: float
    triangles: Array
    centre: Array
    table: list[list[str]]
    notes: tuple[str, ...]

    def add_to(self, draft: ModelDraft, linear_drag: Sequence[float]) -> None:
        """Add the masses, the restoring and the wave forces to a model. ``linear_drag`` (6,) is the damping in addition
        to the radiation of waves. Raises ValueError if the radiation cannot be represented by a fluid memory.
        """
        draft.notes += self.notes
        hull_importer.add_panel_results(draft, self.results, linear_drag)


class _Rest(NamedTuple):
    """Hull at rest in horizontal axes, with its mass properties, and the z coordinate of the waterline."""

    hull: Hull
    centre: Array
    inertia: Array
    trim: float
    waterline: float


def floating_hull(
    triangles: Array,
    mass: float,
    centre: Sequence[float],
    inertia: Array,
    density: float = 1025.0,
    progress: Progress = no_progress,
    panels: tuple[int, int] = PANELS,
    frequencies: int = FREQUENCIES,
) -> PanelSolution:
    """Return the wave forces and the radiation of a hull at the surface.

    ``mass`` is in kg, ``centre`` (3,) is the centre of mass in m, ``inertia`` (3, 3) is about the centre of mass in kg
    m2, and ``density`` is in kg/m3. ``panels`` are the approximate numbers of panels of a coarse and a fine mesh.
    Raises PanelError with the reason if the hull does not float upright or if there is no result.
    """
    check_installed("capytaine")
    check_installed("scipy")
    rest = _at_rest(Hull(triangles), mass, np.asarray(centre, float), np.asarray(inertia, float), density)
    stiffness = _stiffness(rest, mass, density)
    origin = np.array([0.0, 0.0, rest.waterline])
    wet = (rest.hull.triangles - origin) * AXES
    wet = panel_mesh.cut(wet * AXES, 2, 0.0) * AXES
    symmetric = panel_mesh.is_symmetric(wet)
    w = _frequencies(wet, max(panels), frequencies)
    degrees = np.arange(0.0, 180.1 if symmetric else 359.9, HEADING_STEP)
    found = []
    for k, (count, some) in enumerate(zip(sorted(panels), (w[::2], w), strict=True)):
        try:
            mesh = panel_mesh.remesh(wet, count, symmetric, waterline=True)
        except ValueError as error:
            raise PanelError(str(error)) from None
        start, share = ((0.0, 0.15), (0.15, 0.85))[k]
        progress(start, f"waves, {mesh.panels} panels")
        given = {
            "vertices": mesh.vertices,
            "faces": mesh.faces,
            "symmetric": symmetric,
            "origin": origin,
            "density": density,
            "gravity": GRAVITY,
            "frequencies": some,
            "headings": np.radians(degrees),
        }

        def tell(fraction: float, text: str, start: float = start, share: float = share) -> None:
            progress(start + share * fraction, text)

        out = panel_process.run(given, tell)
        found.append(out | {"panels": np.array(mesh.panels)})
    return _solution(rest, mass, density, stiffness, w, degrees, found)


def _at_rest(hull: Hull, mass: float, centre: Array, inertia: Array, density: float) -> _Rest:
    """Return the hull at the trim at which the centre of buoyancy is below the centre of mass."""
    from scipy.optimize import brentq

    def axes(trim: float) -> Array:
        c, s = float(np.cos(trim)), float(np.sin(trim))
        return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])

    def arm(trim: float) -> float:
        r = axes(trim)
        wet = hull.wetted_part(r[2], hull.level(r[2], mass / density))
        return float(r[0] @ (wet.centre - centre))

    try:
        low, high = arm(-MOST_TRIM), arm(MOST_TRIM)
    except ValueError as error:
        raise PanelError(str(error)) from None
    if low * high > 0.0:
        raise PanelError(
            f"the hull would trim by more than {np.degrees(MOST_TRIM):.0f} deg: move the centre of mass along the hull; it is {abs(arm(0.0)):.3g} m {'aft' if arm(0.0) > 0.0 else 'forward'} of the centre of buoyancy"
        )
    trim = float(brentq(arm, -MOST_TRIM, MOST_TRIM, xtol=1e-9))
    r = axes(trim)
    level = Hull(hull.triangles @ r.T)
    state = level.afloat(mass, list(r @ centre), density)
    beam = float(np.ptp(level.triangles[:, :, 1]))
    aside = float((r @ centre)[1] - state.centre[1])
    if abs(aside) > OFF_CENTRE * beam:
        raise PanelError(
            f"the hull would heel: the centre of mass is {abs(aside):.3g} m to {'starboard' if aside > 0.0 else 'port'} of the centre of buoyancy"
        )
    for gm, word in ((state.gm_roll, "roll"), (state.gm_pitch, "pitch")):
        if gm <= 0.0:
            raise PanelError(
                f"the hull is unstable in {word} (metacentric height {gm:.3g} m): lower the centre of mass"
            )
    return _Rest(level, r @ centre, r @ inertia @ r.T, trim, state.waterline)


def _stiffness(rest: _Rest, mass: float, density: float) -> Array:
    """Return the restoring matrix (6, 6) about the origin in body axes, with the contribution of the weight."""
    s = rest.hull.afloat(mass, list(rest.centre), density)
    x, y = s.flotation
    weight, plane = density * GRAVITY * s.volume, density * GRAVITY * s.area
    g = np.zeros((6, 6))
    g[2, 2] = plane
    g[2, 3] = g[3, 2] = plane * y
    g[2, 4] = g[4, 2] = -plane * x
    g[3, 3] = weight * s.gm_roll + plane * y * y
    g[4, 4] = weight * s.gm_pitch + plane * x * x
    g[3, 4] = g[4, 3] = -plane * x * y if abs(y) > 0.0 else 0.0
    return g


def _frequencies(wet: Array, panels: int, count: int) -> Array:
    """Return the frequencies (rad/s) that the radiation of a hull of this size needs, in equal steps."""
    length, beam = (float(np.ptp(wet[:, :, k])) for k in (0, 1))
    area = 0.5 * np.sqrt((np.cross(wet[:, 1] - wet[:, 0], wet[:, 2] - wet[:, 0]) ** 2).sum(axis=1)).sum()
    panel = np.sqrt(area / panels * 4.0 / np.sqrt(3.0))
    low = min(LOWEST / beam, LONGEST / length)
    high = min(HIGHEST / beam, 2.0 * np.pi / (PANELS_PER_WAVE * panel))
    return np.linspace(np.sqrt(GRAVITY * low), np.sqrt(GRAVITY * high), count)


def _solution(
    rest: _Rest, mass: float, density: float, stiffness: Array, w: Array, degrees: Array, found: list[dict[str, Array]]
) -> PanelSolution:
    coarse, fine = found
    silent = _silence(rest, fine)
    signs = panel_results.AXIS_SIGN_PRODUCTS
    rigid = np.zeros((6, 6))
    rigid[:3, :3], rigid[3:, 3:] = mass * np.eye(3), rest.inertia
    rigid = shifted(rigid, rest.centre, np.zeros(3))
    infinite = 0.5 * (fine["infinite"][0] + fine["infinite"][0].T)
    force = fine["force"].transpose(2, 0, 1)  # (6, f, h), lagging phases
    z = -(w**2)[:, None, None] * (rigid * signs + fine["added_mass"]) - 1j * w[:, None, None] * fine["damping"]
    motion = np.linalg.solve(z + stiffness * signs, force.transpose(1, 0, 2)).transpose(1, 0, 2)
    results = panel_results.PanelResults(stiffness=stiffness, rigid_body=rigid, depth=-rest.waterline, density=density)
    table = _convergence(coarse, fine, silent)
    notes = (
        f"waves: panel method (Capytaine) with {int(fine['panels'])} panels at zero speed in deep water; change against {int(coarse['panels'])} panels: {table[-1][-1]} of the largest wave force",
        f"trim at rest: {np.degrees(rest.trim):.2f} deg, bow {'up' if rest.trim >= 0.0 else 'down'}; all values refer to axes that are horizontal at rest",
        "mean drift: far field, free hull without viscous damping",
    )
    angles = np.radians(degrees)
    try:
        results.coefficients = panel_results.make_coefficients(w, fine["added_mass"], fine["damping"], infinite)
        drift = mean_drift(fine, motion, w, density, angles)
        results.operators = panel_results.make_operators(w, angles, np.conj(force), "force", drift)
        motions = panel_results.make_operators(w, angles, np.conj(motion), "motion").response
    except ValueError as error:
        raise PanelError(str(error)) from None
    return PanelSolution(results, motions, rest.trim, rest.hull.triangles, rest.centre, table, notes)


def _silence(rest: _Rest, found: dict[str, Array]) -> list[int]:
    """Remove the damping of the motions that radiate no waves, such as the yaw of a round hull. Their added mass does not
    depend on the frequency. Return these motions.
    """
    half = 0.5 * np.ptp(rest.hull.triangles.reshape(-1, 3), axis=0)
    most = np.diagonal(found["damping"], axis1=1, axis2=2).max(axis=0)
    arms = np.array([1.0, 1.0, 1.0, half[1], half[0], half[0]])
    silent = np.flatnonzero(most < SILENT * most[:3].max() * arms**2)
    for i in silent:
        found["damping"][:, i, :] = found["damping"][:, :, i] = 0.0
        constant = found["infinite"][0] * 0.5 + found["infinite"][0].T * 0.5
        found["added_mass"][:, i, :], found["added_mass"][:, :, i] = constant[i], constant[:, i]
    return [int(i) for i in silent]


def mean_drift(found: dict[str, Array], motion: Array, w: Array, density: float, headings: Array) -> Array:
    """Return the mean force in surge and sway and the mean moment in yaw (3, f, h) per squared wave amplitude, in the
    axes of panel codes, from the Kochin functions and the motions (6, f, h). The forces assume that the hull takes no
    energy from the waves.
    """
    h = 1j * (
        found["kochin_diffraction"] + np.einsum("fit,ifh->fht", found["kochin_radiation"], motion)
    )  # (f, h, angles)
    angles = found["angles"]
    order = np.fft.fftfreq(len(angles), 1.0 / len(angles))
    slope = np.fft.ifft(1j * order * np.fft.fft(h, axis=2), axis=2)
    at = np.round(headings / angles[1]).astype(int) % len(angles)
    ahead_slope = slope[:, np.arange(len(headings)), at]
    k = (w * w / GRAVITY)[:, None]
    far = 2.0 * np.pi * density * k * k * angles[1]
    power = np.abs(h) ** 2
    twist = (np.conj(h) * slope).imag.sum(axis=2)
    return np.array(
        [
            far * (power * (np.cos(headings)[:, None] - np.cos(angles))).sum(axis=2),
            far * (power * (np.sin(headings)[:, None] - np.sin(angles))).sum(axis=2),
            2.0 * np.pi * density * w[:, None] / k * ahead_slope.real - far / k * twist,
        ]
    )


def _convergence(coarse: dict[str, Array], fine: dict[str, Array], silent: list[int]) -> list[list[str]]:
    """Return rows of texts: for each motion, the largest change from the coarse to the fine mesh, relative to the
    largest value. Motions that radiate no waves have no entry.
    """
    rows = [["motion", "added mass", "damping", "wave force"]]
    most = np.zeros(3)
    for i, name in enumerate(NAMES):
        if i in silent:
            rows.append([name, "-", "-", "-"])
            continue
        cells = []
        for n, (a, b) in enumerate(
            (
                (coarse["added_mass"][:, i, i], fine["added_mass"][::2, i, i]),
                (coarse["damping"][:, i, i], fine["damping"][::2, i, i]),
                (coarse["force"][:, :, i], fine["force"][::2, :, i]),
            )
        ):
            change = float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-300))
            most[n] = max(most[n], change)
            cells.append(f"{100.0 * change:.1f} %")
        rows.append([name, *cells])
    return [*rows, ["all", *(f"{100.0 * m:.1f} %" for m in most)]]
