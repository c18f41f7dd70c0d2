"""Cross-flow drag from the dimensions of a hull: Hoerner's curve, and the forces of hulls whose sections vary against a
quadrature that shares nothing with the program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.dynamics import cross_flow_sections
from wavesim_server.dynamics.model_compiler import derivative_factors
from wavesim_server.study import empty_sea
from wavesim_world.config import Model
from wavesim_world.config.build import read_models

#: (B/(2T), CD) as published
PUBLISHED = """0.0108623 1.96608  0.176606 1.96573  0.353025 1.89756  0.451863 1.78718  0.472838 1.58374  0.492877 1.27862
0.493252 1.21082  0.558473 1.08356  0.646401 0.998631  0.833589 0.87959  0.988002 0.828415  1.30807 0.759941
1.63918 0.691442  1.85998 0.657076  2.31288 0.630693  2.59998 0.596186  3.00877 0.586846  3.45075 0.585909
3.7379 0.559877  4.00309 0.559315"""
CURVE = np.array(PUBLISHED.split(), float).reshape(-1, 2)
DENSITY = 1025.0
HULL = """<models><model name="m" type="{kind}"><box length="4 m" width="1.2 m" height="0.8 m"/>
<mass value="{mass} kg"/><inertia xx="200" yy="2000" zz="2000"/><buoyancy volume="{volume} m3"/>
<added-mass diagonal="50 400 400 10 200 200"/>{drag}</model></models>"""


def curve(ratio: float) -> float:
    """Straight lines between the published points, from scratch."""
    k = int(np.searchsorted(CURVE[:, 0], ratio))
    if k == 0 or k == len(CURVE):
        return float(CURVE[min(k, len(CURVE) - 1), 1])
    (a, ca), (b, cb) = CURVE[k - 1], CURVE[k]
    return float(ca + (cb - ca) * (ratio - a) / (b - a))


def model_with(tmp_path: Path, drag: str, kind: str = "surface", mass: float = 984.0) -> Model:
    path = tmp_path / "m.xml"
    path.write_text(HULL.format(kind=kind, mass=mass, volume=mass / DENSITY, drag=drag))
    return read_models(path)["m"]


def accelerations(model: Model, speeds: Floats, step: float = 1e-4) -> Floats:
    """Accelerations of the kernel at velocities through still water, from one short step each."""
    sim = empty_sea(len(speeds), step, "")
    for k, nu in enumerate(speeds):
        row = sim.enter(f"v{k}", position=(0.0, 40.0 * k, 50.0), variant=model)
        sim.set_pose(row, velocity=tuple(nu))
    sim.advance(1)
    now = sim.state()
    return np.array([(np.concatenate([now["v_WB_B"][k], now["w_WB_B"][k]]) - nu) / step for k, nu in enumerate(speeds)])


def drag_of(model: Model, bare: Model, speeds: Floats) -> Floats:
    """Forces and moments of the cross-flow drag alone: what its model has more than one with negligible drag."""
    masses = np.array([984.0 + m for m in (50, 400, 400)] + [200 + 10, 2000 + 200, 2000 + 200])
    return np.asarray((accelerations(model, speeds) - accelerations(bare, speeds)) * masses)


@functools.cache
def per_strip(
    hull: tuple[tuple[float, ...], ...], per_length: Callable[[float, float], float]
) -> tuple[Floats, Floats]:
    """Places of 20 000 midpoints along a hull (x, beam, draft), and the coefficient of each strip times its length."""
    edges = np.linspace(hull[0][0], hull[0][-1], 20_001)
    at, dx = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    pairs = zip(np.interp(at, hull[0], hull[1]), np.interp(at, hull[0], hull[2]), strict=True)
    return at, np.array([per_length(b, t) for b, t in pairs]) * dx


def strips(
    x: Sequence[float],
    beam: Sequence[float],
    draft: Sequence[float],
    v: float,
    r: float,
    per_length: Callable[[float, float], float],
) -> tuple[float, float]:
    """Force and moment by midpoints along the hull, each with its own coefficient."""
    at, k = per_strip((tuple(x), tuple(beam), tuple(draft)), per_length)
    s = v + at * r
    f = -k * np.abs(s) * s
    return float(f.sum()), float((at * f).sum())


def floating(beam: float, draft: float) -> float:
    return 0.5 * DENSITY * draft * curve(beam / (2 * draft)) if draft else 0.0


def submerged(beam: float, height: float) -> float:
    """Both halves of a section and their images: its coefficient is that of a floating half."""
    return 0.5 * DENSITY * height * curve(beam / height) if height else 0.0


def test_the_curve_is_the_published_one_at_its_points_and_ends() -> None:
    assert cross_flow_sections.hoerner(CURVE[:, 0]) == pytest.approx(CURVE[:, 1], rel=1e-12)
    for ratio in (0.0, 0.3, 0.4929, 1.0, 2.5, 3.9, 4.1, 1e6):
        assert float(cross_flow_sections.hoerner(np.array(ratio))) == pytest.approx(curve(ratio), rel=1e-12)


def test_the_coefficient_that_a_thesis_read_from_the_curve(tmp_path: Path) -> None:
    """Jolner (Ødegaard 2017): a beam of 0.695 m and a draft of 0.2 m, for which its parameter file has 0.65."""
    drag = '<cross-flow coefficient="hoerner" length="1.65 m" beam="0.695 m" draft="0.2 m"/>'
    found = cross_flow_sections.from_dimensions(model_with(tmp_path, drag), 1000.0)
    assert found.sway / (0.5 * 1000.0 * 0.2) == pytest.approx(0.65, rel=0.05)
    assert found.half == pytest.approx(0.825)


#: sway and yaw speeds along all directions, also where the flow changes sides along the hull
PLANE: list[tuple[float, ...]] = [
    (0.0, v, 0.0, 0.0, 0.0, r)
    for v, r in ((1, 0), (-1, 0), (0, 0.5), (0.7, 0.35), (0.4, -0.5), (0.95, 0.15), (-0.2, 0.49))
]
#: the same in heave and pitch
UPRIGHT: list[tuple[float, ...]] = [(0.0, 0.0, nu[1], 0.0, nu[5], 0.0) for nu in PLANE]


def test_a_box_hull_has_the_drag_of_its_own_beam_and_draft(tmp_path: Path) -> None:
    """984 kg on 4 m x 1.2 m: a draft of 0.2 m and CD at B/(2T) = 3."""
    bare = model_with(tmp_path, '<cross-flow sway="1e-12 kg/m2"/>')
    model = model_with(tmp_path, '<cross-flow coefficient="hoerner"/>')
    found = drag_of(model, bare, np.array(PLANE))
    for nu, force in zip(PLANE, found, strict=True):
        y, n = strips([-2, 2], [1.2, 1.2], [0.2, 0.2], nu[1], nu[5], floating)
        assert force[1] == pytest.approx(y, rel=1e-4, abs=1e-3), nu
        assert force[5] == pytest.approx(n, rel=1e-4, abs=1e-3), nu
    narrow = model_with(
        tmp_path, '<cross-flow coefficient="hoerner" beam="0.4 m" draft="0.4 m" length="3 m" centre="0.5 m"/>'
    )
    found = drag_of(narrow, bare, np.array(PLANE))
    for nu, force in zip(PLANE, found, strict=True):
        y, n = strips([-1, 2], [0.4, 0.4], [0.4, 0.4], nu[1], nu[5], floating)
        assert force[[1, 5]] == pytest.approx([y, n], rel=1e-4, abs=1e-3), nu
    assert model.derivatives is None and not cross_flow_sections.from_dimensions(model, DENSITY).derivatives


HULLS: dict[str, tuple[Sequence[float], Sequence[float], Sequence[float]]] = {
    "tapered to both ends": ([-2, -1, 1, 2], [0.2, 1.2, 1.2, 0.1], [0.05, 0.2, 0.25, 0.02]),
    "wedge": ([-2, 2], [1.2, 0.0], [0.3, 0.3]),
    "deep aft": ([-2, 0, 2], [1.0, 1.0, 1.0], [0.4, 0.2, 0.1]),
    "diamond": ([-2, 0, 2], [0.0, 1.2, 0.0], [0.0, 0.3, 0.0]),
}


def sections(hull: tuple[Sequence[float], Sequence[float], Sequence[float]]) -> str:
    rows = "".join(f'<section x="{x} m" beam="{b} m" draft="{t} m"/>' for x, b, t in zip(*hull, strict=True))
    return f'<cross-flow coefficient="hoerner">{rows}</cross-flow>'


@pytest.mark.parametrize("name", HULLS)
def test_a_hull_whose_sections_vary_against_a_quadrature(tmp_path: Path, name: str) -> None:
    """Pure sway and pure yaw to four digits; between them to 1.5 % of the largest force and 3.5 % of the largest moment."""
    hull = HULLS[name]
    bare = model_with(tmp_path, '<cross-flow sway="1e-12 kg/m2"/>')
    speeds = [(0.0, v, 0.0, 0.0, 0.0, 0.5 * r) for v, r in directions()]
    found = drag_of(model_with(tmp_path, sections(hull)), bare, np.array(speeds))[:, [1, 5]]
    wanted = np.array([strips(*hull, nu[1], nu[5], floating) for nu in speeds])
    largest = np.abs(wanted).max(0)
    for k in (0, 1):  # pure sway, pure yaw
        assert found[k] == pytest.approx(wanted[k], rel=2e-4, abs=2e-4 * largest.max())
    error = np.abs(found - wanted).max(0) / largest
    assert error[0] < 0.015 and error[1] < 0.035, error


def directions() -> list[tuple[float, float]]:
    turns = np.linspace(0.0, np.pi, 25)
    return [(1.0, 0.0), (0.0, 1.0), *((float(np.cos(a)), float(np.sin(a))) for a in turns)]


def test_a_submerged_hull_has_the_drag_in_heave_and_pitch_of_its_sections(tmp_path: Path) -> None:
    """Flat and wide: the flow from below meets the beam, with CD by the height; the flow from the side meets the height."""
    hull = ([-2, -1, 1, 2], [0.3, 1.2, 1.2, 0.4], [0.2, 0.5, 0.5, 0.1])
    bare = model_with(tmp_path, '<cross-flow sway="1e-12 kg/m2"/>', "underwater")
    model = model_with(tmp_path, sections(hull), "underwater")
    found = drag_of(model, bare, np.array(PLANE + UPRIGHT))
    flat = [strips(hull[0], hull[2], hull[1], nu[2], -nu[4], submerged) for nu in UPRIGHT]
    side = [strips(*hull, nu[1], nu[5], submerged) for nu in PLANE]
    wanted = np.array([[y, n] for y, n in side] + [[z, -m] for z, m in flat])
    got = np.concatenate([found[: len(PLANE), [1, 5]], found[len(PLANE) :, [2, 4]]])
    for part, most in ((slice(0, len(PLANE)), (0.015, 0.035)), (slice(len(PLANE), None), (0.03, 0.06))):
        error = np.abs(got[part] - wanted[part]).max(0) / np.abs(wanted[part]).max(0)
        assert (error < most).all(), error
    tube = model_with(tmp_path, '<cross-flow coefficient="hoerner" beam="0.5 m" draft="0.5 m"/>', "underwater")
    found = drag_of(tube, bare, np.array([PLANE[3], UPRIGHT[3]]))
    y, n = strips([-2, 2], [0.5, 0.5], [0.5, 0.5], 0.7, 0.35, submerged)
    z, m = strips([-2, 2], [0.5, 0.5], [0.5, 0.5], 0.7, -0.35, submerged)
    assert [*found[0, [1, 5]], *found[1, [2, 4]]] == pytest.approx([y, n, z, -m], rel=1e-4, abs=1e-3)


def test_the_named_derivatives_of_the_model_stay_beside_those_of_its_sections(tmp_path: Path) -> None:
    drag = '<derivatives><derivative name="X_u" value="-30"/></derivatives>' + sections(HULLS["diamond"])
    model = model_with(tmp_path, drag)
    reduced = cross_flow_sections.from_dimensions(model, DENSITY).derivatives
    assert set(reduced) >= {"Y_v_ar", "N_r_ar"} and all(derivative_factors(n) for n in reduced)
    assert accelerations(model, np.array([[2.0, 0, 0, 0, 0, 0]]))[0, 0] == pytest.approx(-60.0 / 1034.0, rel=1e-3)


@pytest.mark.parametrize(
    ("drag", "message"),
    [
        ('<cross-flow length="2 m"/>', "has no coefficient"),
        ('<cross-flow coefficient="hoerner" sway="3 kg/m2"/>', "remove `sway`"),
        ('<cross-flow sway="3 kg/m2" draft="0.3 m"/>', 'need coefficient="hoerner"'),
        (sections(([0], [1], [1])), "at least two sections"),
        (sections(([1, 0], [1, 1], [1, 1])), "ascending order of `x`"),
        (sections(([0, 1], [1, 1], [0, 0])), "a draft of 0 m"),
        (sections(HULLS["wedge"]).replace("hoerner", 'hoerner" length="2 m', 1), "sections replace `length`"),
        (sections(HULLS["wedge"]).replace("hoerner", 'hoerner" still="0.1 m/s', 1), "`still` cannot be used"),
        (
            "<derivatives>" + '<derivative name="X_u" value="-30"/>' * 40 + "</derivatives>" + sections(HULLS["wedge"]),
            "remove 8 derivatives",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, drag: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        empty_sea(1, 0.01, "").enter("v", position=(0, 0, 5.0), variant=model_with(tmp_path, drag))
    assert message in str(refused.value)
