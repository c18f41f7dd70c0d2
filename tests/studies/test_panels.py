"""Panel meshes, added mass and hulls in waves, against closed forms and published coefficients."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from tests.physics import hemisphere as h
from tests.physics.test_waves import regular
from wavesim_server import Simulation
from wavesim_server.importers import spatial_matrices
from wavesim_server.importers.model_draft import ModelDraft
from wavesim_server.spheroid import spheroid_added_mass
from wavesim_studies.from_mesh import floating, panel_mesh, panel_process, panels
from wavesim_world import hull_geometry
from wavesim_world.config import LoadedConfig
from wavesim_world.config.build import read_models
from wavesim_world.hull import Hull
from wavesim_world.ocean import surface

Make = Callable[..., LoadedConfig]

WITH_PANELS = pytest.mark.skipif(importlib.util.find_spec("capytaine") is None, reason="needs capytaine")
TURN = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])  # a rotation


def spheroid(slenderness: float) -> np.ndarray:
    """Triangles with a diameter of 1 m along x."""
    t = np.array(trimesh.creation.icosphere(4, radius=0.5).triangles)
    return np.asarray(t * np.array([slenderness, 1.0, 1.0]))


def box(*size: float) -> np.ndarray:
    return np.array(trimesh.creation.box(size).triangles)


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_box_becomes_even_panels_with_sharp_edges(symmetric: bool) -> None:
    """From twelve triangles; its area shows that no edge is cut off."""
    t = box(2.0, 1.0, 0.5)
    mesh = panel_mesh.remesh(t, 600, symmetric)
    found = mesh.triangles
    cross = np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0])
    size = np.sqrt((cross**2).sum(axis=1))
    assert np.abs(cross.sum(axis=0)).max() < 1e-3 * size.sum()  # otherwise the surface has holes
    assert hull_geometry.area(found) == pytest.approx(hull_geometry.area(t), rel=0.02)
    assert hull_geometry.mass_properties(found).volume == pytest.approx(1.0, rel=1e-9)
    assert np.allclose(
        hull_geometry.mass_properties(found).inertia, hull_geometry.mass_properties(t).inertia, atol=3e-3
    )
    assert mesh.panels == pytest.approx(600, rel=0.25) and size.std() < 0.6 * size.mean()


def test_a_thin_plate_keeps_its_two_sides() -> None:
    found = panel_mesh.remesh(box(1.0, 1.0, 0.02), 400, False).triangles
    assert np.ptp(found[:, :, 2]) == pytest.approx(0.02, rel=0.2)
    assert hull_geometry.mass_properties(found).volume == pytest.approx(0.02, rel=1e-9)


def test_symmetry_is_found_whatever_the_triangles_are() -> None:
    t = spheroid(4.0)
    assert panel_mesh.is_symmetric(t)
    assert panel_mesh.is_symmetric(box(2.0, 1.0, 0.5))  # its diagonals are not symmetric
    assert not panel_mesh.is_symmetric(t + np.array([0.0, 0.05, 0.0]))
    assert not panel_mesh.is_symmetric(np.concatenate([t, 0.2 * t + np.array([0.0, 1.0, 0.0])]))


def test_a_hull_is_cut_at_the_waterline() -> None:
    """The mesh ends at z = 0, and its displacement and the second moments of its water plane are those of the hull."""
    t = np.array(trimesh.creation.icosphere(4).triangles)
    wet = panel_mesh.cut(t, 2, 0.0) * np.array([1.0, -1.0, -1.0])
    mesh = panel_mesh.remesh(wet, 300, True, waterline=True)
    volume, middle, xx, yy = panel_mesh._afloat(mesh.triangles)
    assert mesh.vertices[:, 2].max() == 0.0 and mesh.vertices[:, 1].min() >= 0.0
    assert volume == pytest.approx(2.0 / 3.0 * math.pi, rel=5e-3) and abs(middle) < 1e-3
    assert [xx, yy] == pytest.approx([math.pi / 4.0] * 2, rel=0.01)


def test_a_matrix_about_another_point() -> None:
    """Kinetic energy of the same motion, written out with cross products."""
    generator = np.random.default_rng(3)
    root = generator.normal(size=(6, 6))
    m, old, new = root @ root.T, np.array([1.0, -2.0, 0.5]), np.array([-0.5, 0.7, 3.0])
    moved = spatial_matrices.shifted(m, old, new)
    v, spin = generator.normal(size=3), generator.normal(size=3)
    at_old = np.concatenate([v + np.cross(spin, old - new), spin])
    at_new = np.concatenate([v, spin])
    assert at_new @ moved @ at_new == pytest.approx(at_old @ m @ at_old)


@WITH_PANELS
def test_added_mass_of_a_spheroid() -> None:
    """On coarse meshes, about an origin that is not its centre, against Lamb: 3 %. The matrix is symmetric."""
    t, origin = spheroid(3.0), (0.4, 0.0, -0.2)
    reported: list[float] = []
    found = panels.added_mass(t, origin, 1000.0, lambda f, text: reported.append(f), (250, 600))
    k1, k2, about = spheroid_added_mass(3.0)
    p = hull_geometry.mass_properties(t)
    mass = 1000.0 * p.volume
    wanted = np.diag([k1 * mass, k2 * mass, k2 * mass, 0.0, *[about * 1000.0 * p.inertia[1, 1]] * 2])
    wanted = spatial_matrices.shifted(wanted, np.zeros(3), np.array(origin))
    unit = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    assert (np.abs(found.matrix - wanted) < 0.03 * unit).all()
    assert np.array_equal(found.matrix, found.matrix.T) and np.linalg.eigvalsh(found.matrix).min() > -1e-9 * mass
    assert (np.diag(found.uncertainty)[:3] < 0.15 * np.diag(found.matrix)[:3]).all()
    assert reported == sorted(reported) and reported[-1] == 1.0
    assert len(found.table()) == 7 and found.panels[0] < found.panels[1]


@WITH_PANELS
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "wanted", "share"),
    [
        ("sphere", (0.5, 0.5, 0.5), 0.02),
        ("spheroid", (0.05912, 0.89426, 0.89426), 0.02),  # Lamb, length 5 diameters
        ("cylinder", (None, 0.90, 0.90), 0.03),  # DNV-RP-C205, length 5 diameters, across the axis
        # both formulations converge to this value; DNV-RP-C205 states 0.68 for a square prism of this length
        ("cube", (0.638, 0.638, 0.638), 0.02),
    ],
)
def test_closed_forms(name: str, wanted: tuple[float | None, ...], share: float) -> None:
    """Added mass over displaced mass."""
    if name == "cylinder":
        t = np.array(trimesh.creation.cylinder(0.1, 1.0, sections=96).triangles)[:, :, [2, 0, 1]]
    else:
        t = {"sphere": spheroid(1.0), "spheroid": spheroid(5.0), "cube": box(1.0, 1.0, 1.0)}[name]
    found = panels.added_mass(t, density=1.0 / hull_geometry.mass_properties(t).volume)
    for k, value in enumerate(wanted):
        if value is not None:
            assert found.matrix[k, k] == pytest.approx(value, rel=share), (name, k)


@pytest.fixture(scope="module")
def bowl() -> floating.PanelSolution:
    """Hulme's hemisphere, as a whole sphere that floats to its middle."""
    t = np.array(trimesh.creation.icosphere(4, radius=h.RADIUS).triangles)
    t *= (2.0 * h.MASS / h.DENSITY / hull_geometry.mass_properties(t).volume) ** (1.0 / 3.0)
    return floating.floating_hull(
        t, h.MASS, (0.0, 0.0, 1.0), 10.0 * h.MASS * np.eye(3), h.DENSITY, panels=(150, 400), frequencies=24
    )


@WITH_PANELS
@pytest.mark.long
def test_hulmes_hemisphere_from_its_mesh(bowl: floating.PanelSolution) -> None:
    """Heave with 400 panels, and the mean drift in head sea: downwind, and none across."""
    c, o = bowl.results.coefficients, bowl.results.operators
    assert c is not None and o is not None and o.drift is not None and c.infinite is not None
    inner = (c.frequencies > h.FREQUENCIES[0]) & (c.frequencies < h.FREQUENCIES[-1])
    w = c.frequencies[inner]
    for found, table, share in (
        (c.added_mass[inner, 2, 2], h.ADDED, 0.04),
        (c.damping[inner, 2, 2], h.DAMPING, 0.07),
        (np.abs(o.response[2, inner, 0]), h.FORCE, 0.02),
    ):
        wanted = np.interp(w, h.FREQUENCIES, table)
        assert np.abs(found - wanted).max() < share * wanted.max()
    assert not c.damping[:, 3:].any()  # its rotations radiate no waves
    half = len(o.headings) // 2  # head sea
    assert (o.drift[0, :, half] < 0.0).all() and np.abs(o.drift[1, :, half]).max() < 1e-6 * np.abs(o.drift[0]).max()


@WITH_PANELS
@pytest.mark.long
@pytest.mark.compiled
def test_the_model_heaves_in_waves_as_the_panel_method_says(
    config: Make, bowl: floating.PanelSolution, tmp_path: Path
) -> None:
    """The engine in regular waves, against the motions in the frequency domain: 3 %."""
    draft = ModelDraft("bowl", "test", {}, None)
    draft.attributes |= {"type": "surface", "coriolis_added": "plane", "active": "w"}
    draft.add("box", length="10 m", width="10 m", height="10 m")
    bowl.add_to(draft, [0.0] * 6)
    written = draft.xml(tmp_path / "bowl.xml", False)
    (tmp_path / "bowl.xml").write_text(written.xml)
    for name, text in written.files.items():
        (tmp_path / name).write_text(text)
    model = read_models(tmp_path / "bowl.xml")["bowl"]
    assert bowl.results.operators is not None
    for w in (0.8, 1.1, 1.5):
        loaded = config(f'<time step="20 ms"/><world density="1000 kg/m3">{regular(0.05, w)}</world>')
        sim = Simulation(dataclasses.replace(loaded, models={"bowl": model}))
        row = sim.enter("b", "bowl")
        sim.advance(4000)
        z: list[float] = []
        angle: list[float] = []
        sea: Any = sim.weather_model.weather.sea
        size = float(sea[0, surface.S_AMPLITUDE])
        for _ in range(round(3 * 2 * math.pi / w / 0.1)):
            sim.advance(5)
            z.append(sim.state()["p_WB_W"][row][2])
            angle.append(w * sim.time_ns * 1e-9)
        fit = np.linalg.lstsq(
            np.stack([np.cos(angle), np.sin(angle), np.ones(len(z))], axis=1), np.array(z), rcond=None
        )[0]
        wanted = np.interp(w, bowl.results.operators.frequencies, np.abs(bowl.motion[2, :, 0]))
        assert np.hypot(fit[0], fit[1]) / size == pytest.approx(wanted, rel=0.03), w


@WITH_PANELS
@pytest.mark.long
def test_turned_and_mirrored_bodies() -> None:
    """A wedge without symmetry: the matrix turns with the body, and the mirror image has the mirrored matrix."""
    t = box(1.0, 0.4, 0.3)
    t[:, :, 1] *= 1.0 + 0.6 * t[:, :, 0]
    t[:, :, 2] += 0.3 * t[:, :, 0] * t[:, :, 1]
    some = (600, 1400, 2400)
    plain = panels.added_mass(t, panels=some).matrix
    unit = np.sqrt(np.outer(np.diag(plain), np.diag(plain)))
    six = np.kron(np.eye(2), TURN)
    turned = panels.added_mass(t @ TURN.T, panels=some).matrix
    most = 0.03 * unit  # each body gets its own mesh
    most[3, 3] *= 2.0  # roll moves little water
    assert (np.abs(six.T @ turned @ six - plain) < most).all()
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    other = panels.added_mass(panel_mesh.mirrored(t), panels=some).matrix
    assert (np.abs(other * np.outer(signs, signs) - plain) < most).all()


def test_the_program_is_ended_when_it_takes_too_long() -> None:
    given = {"vertices": np.zeros((3, 3)), "faces": np.array([[0, 1, 2]])}
    if importlib.util.find_spec("capytaine") is not None:
        with pytest.raises(panel_process.PanelError, match="takes more than 0 s: use fewer panels"):
            panel_process.run(given, seconds=0)


@pytest.mark.parametrize(
    ("mass", "centre", "message"),
    [
        (3000.0, (0.0, 0.0, 0.0), "the hull cannot float: it must displace 3 m3 but has 2 m3"),
        (
            1000.0,
            (1.8, 0.0, 0.0),
            "would trim by more than 11 deg: move the centre of mass along the hull; it is 1.8 m forward",
        ),
        (1000.0, (0.0, 0.1, 0.0), "would heel: the centre of mass is 0.1 m to starboard"),
        (1000.0, (0.0, 0.0, -0.6), "unstable in roll"),
    ],
)
@WITH_PANELS
def test_hulls_that_do_not_float_upright(mass: float, centre: tuple[float, float, float], message: str) -> None:
    with pytest.raises(panel_process.PanelError, match=message):
        floating.floating_hull(box(4.0, 1.0, 0.5), mass, centre, np.eye(3), 1000.0)


def test_a_hull_trims_by_the_moment_of_its_weight() -> None:
    """A box whose centre of mass is 1 cm forward trims by the bow: tan(trim) = arm / GM."""
    rest = floating._at_rest(Hull(box(4.0, 1.0, 0.5)), 1000.0, np.array([0.01, 0.0, 0.0]), np.eye(3), 1000.0)
    gm = 4.0**2 / (12.0 * 0.25) - 0.125
    assert math.tan(rest.trim) == pytest.approx(-0.01 / gm, rel=0.01)
    g = floating._stiffness(rest, 1000.0, 1000.0)
    assert g[2, 2] == pytest.approx(1000.0 * 9.81 * 4.0, rel=1e-3)
    assert g[4, 4] == pytest.approx(1000.0 * 9.81 * gm, rel=0.01)
