"""Models from meshes: broken files, balance, the whole command and ensembles."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from tests.studies import step_file
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.from_mesh import ensemble, mesh_preparation
from wavesim_studies.from_mesh.balance import MassOptions, balance
from wavesim_studies.from_mesh.cli import ensemble as ensemble_command
from wavesim_studies.from_mesh.cli import from_mesh
from wavesim_studies.from_mesh.ellipsoid import ellipsoid_added_mass
from wavesim_studies.from_mesh.mesh_preparation import MeshOptions, PreparedMesh, ReadMesh, prepare
from wavesim_studies.from_mesh.remesh import remeshed
from wavesim_world import hull_geometry as geometry
from wavesim_world import hull_reader
from wavesim_world import hull_surface as surfaces
from wavesim_world.config.build import read_models
from wavesim_world.hull import Hull
from wavesim_world.hull_reader import HullPart, InvalidHull

LENGTH, RADIUS = 2.0, 0.2
VOLUME = 4.0 / 3.0 * math.pi * (0.5 * LENGTH) * RADIUS**2
MASS = 1025.0 * VOLUME


def spindle(level: int = 3) -> np.ndarray:
    return np.asarray(trimesh.creation.icosphere(level).triangles) * [0.5 * LENGTH, RADIUS, RADIUS]


def box(*size: float) -> np.ndarray:
    return np.asarray(trimesh.creation.box(size).triangles)


def mesh_of(*bodies: np.ndarray, kind: str = "stl") -> ReadMesh:
    """The parts of a file, without a file."""
    parts = [
        HullPart(f"body-{k}", t.reshape(-1, 3), np.arange(3 * len(t)).reshape(-1, 3), (0.5, 0.5, 0.5))
        for k, t in enumerate(bodies, 1)
    ]
    return ReadMesh(parts, kind)


def prepared(*bodies: np.ndarray, **options: Any) -> PreparedMesh:
    return prepare(mesh_of(*bodies), MeshOptions(**({"mass": MASS, "up": "z", "forward": "x"} | options)))


def test_a_clean_mesh_keeps_its_properties() -> None:
    found = prepared(spindle(), unit="m")
    inertia = VOLUME / 5.0 * np.array([2 * RADIUS**2, 1.0 + RADIUS**2, 1.0 + RADIUS**2])
    assert found.volume == pytest.approx(VOLUME, rel=0.02) and found.notes == []
    assert np.diag(found.inertia) == pytest.approx(inertia, rel=0.04)
    assert len(found.hull) <= mesh_preparation.MOST_HULL and Hull(found.hull).volume == pytest.approx(found.volume)


@pytest.mark.parametrize("unit", ["m", "mm"])
def test_the_unit_is_guessed_and_stated_or_refused(unit: str) -> None:
    t = spindle() / geometry.UNITS[unit]
    found = prepared(t)
    assert found.volume == pytest.approx(VOLUME, rel=0.02)
    assert any(note.startswith(f"unit guessed: {unit}, which makes the mesh 2 m long") for note in found.notes)
    other = "mm" if unit == "m" else "m"
    with pytest.raises(InvalidHull, match=f"does not fit a mass of .* kg: use --unit {unit}$"):
        prepared(t, unit=other)


def test_an_open_mesh_is_refused_with_ways_out() -> None:
    whole = spindle()
    open_ = whole[whole.mean(axis=1)[:, 0] < 0.8]
    with pytest.raises(
        InvalidHull, match=r"a hole of 0\.2\d+ m near 0\.8\d+ 0 0 m; close it .* --fill-holes .* --shape"
    ) as caught:
        prepared(open_)
    assert "\n" not in str(caught.value)
    missing = math.pi * RADIUS**2 * (0.2 - (1.0 - 0.8**3) / 3.0)  # the cap of an ellipsoid
    for options in ({"fill_holes": True}, {"shape": "convex"}, {"shape": "remesh"}, {"shape": "parts"}):
        found = prepared(open_, **options)
        assert found.volume == pytest.approx(VOLUME - missing, rel=0.03), options
        assert not len(geometry.open_edges(found.hull)), options
        assert len(found.notes) > 1, options
    pinhole = np.delete(spindle(4), [0], axis=0)  # small holes are closed without a question
    assert any("holes covered with flat lids: 1" in note for note in prepared(pinhole).notes)


def test_wrong_senses_are_turned_and_stated() -> None:
    whole = spindle()
    found = prepared(whole[:, ::-1])
    assert found.volume == pytest.approx(VOLUME, rel=0.02)
    assert any("inside out; its faces were reversed" in note for note in found.notes)
    mixed = whole.copy()
    mixed[100:200] = mixed[100:200, ::-1]
    found = prepared(mixed)
    assert found.volume == pytest.approx(VOLUME, rel=0.02)
    assert any(note.startswith("100 faces pointed to the other side") for note in found.notes)


def test_a_self_intersecting_mesh_is_refused_and_remeshed() -> None:
    keel = box(0.3, 0.05, 0.9)
    with pytest.raises(InvalidHull, match=r"intersects itself near .* count twice: use --shape remesh"):
        prepared(spindle(), keel)
    found = prepared(spindle(), keel, shape="remesh")
    # of the keel, only the part outside the spindle adds volume: its half-height there is nearly the radius
    expected = VOLUME + 0.3 * 0.05 * (0.9 - 2.0 * RADIUS * 0.99)
    assert found.volume == pytest.approx(expected, rel=0.02)
    assert found.volume < 0.98 * (VOLUME + 0.3 * 0.05 * 0.9), "the volume inside both counts once"
    nested = prepared(spindle(), 0.5 * spindle())
    assert nested.volume == pytest.approx(VOLUME, rel=0.02)
    assert any("is inside part 'body-1'" in note for note in nested.notes)


def test_a_new_surface_keeps_the_volume() -> None:
    for t in (spindle(4), spindle(4) + [0.3, 5.0, -2.0]):
        found, spread = remeshed(t, 64)
        before, after = geometry.mass_properties(t), geometry.mass_properties(found)
        assert not len(geometry.open_edges(found)) and spread < 0.02
        assert after.volume == pytest.approx(before.volume, rel=0.02)
        assert after.centre == pytest.approx(before.centre, abs=0.01)
        assert geometry.area(found) == pytest.approx(geometry.area(t), rel=0.05)


def test_duplicate_and_flat_faces_are_dropped() -> None:
    whole = spindle(2)
    flat = np.repeat(whole[:3, :1], 3, axis=1)
    t, notes = surfaces.clean(np.concatenate([whole, whole[:5], flat]))
    assert len(t) == len(whole) and len(notes) == 2
    assert geometry.mass_properties(t).volume == pytest.approx(geometry.mass_properties(whole).volume)


@pytest.mark.long
def test_a_million_facets_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "fine.stl"
    path.write_bytes(geometry.to_stl(spindle(8)))  # 1.3 million
    with pytest.raises(InvalidHull, match="1310720 triangles; the maximum is 200000"):
        hull_reader.read_in_process(path)
    found = prepare(path, MeshOptions(mass=MASS))
    assert len(found.triangles) <= mesh_preparation.MOST_FINE and len(found.hull) <= mesh_preparation.MOST_HULL
    assert found.volume == pytest.approx(VOLUME, rel=1e-3)
    assert any("simplified from 1310720 to" in note and "area" in note for note in found.notes)


@pytest.mark.parametrize("unit", ["MILLI", ""])
def test_step_files_keep_their_axes_and_have_a_unit(tmp_path: Path, unit: str) -> None:
    pytest.importorskip("cascadio")
    factor = 1000.0 if unit else 1.0
    size = (3.0 * factor, 0.6 * factor, 0.4 * factor)
    (part,) = hull_reader.read_parts(step_file.box(tmp_path / "box.step", size, unit))
    assert part.vertices.min(axis=0) == pytest.approx([0, 0, 0], abs=1e-6)
    assert part.vertices.max(axis=0) == pytest.approx([3.0, 0.6, 0.4], rel=1e-5)
    assert abs(geometry.mass_properties(part.vertices[part.triangles]).volume) == pytest.approx(0.72, rel=1e-5)


def test_a_wrong_part_or_file_gets_one_message(tmp_path: Path) -> None:
    with pytest.raises(InvalidHull, match="no part named 'body-9'"):
        prepared(spindle(), hull_parts=("body-9",))
    with pytest.raises(InvalidHull, match="it is not a file"):
        prepare(tmp_path / "missing.stl", MeshOptions())


def test_balance_of_a_submerged_vehicle() -> None:
    mesh = prepared(spindle())
    found = balance(mesh, MassOptions(MASS, centre=(0.001, 0.0, 0.02)))
    assert math.degrees(found.pitch) == pytest.approx(-math.degrees(math.atan2(0.001, 0.02)), rel=1e-3), "bow down"
    with pytest.raises(ConfigError, match=r"state the displaced mass with --displacement"):
        balance(mesh, MassOptions(0.5 * MASS))
    half = balance(mesh, MassOptions(0.5 * MASS, displacement=0.5 * VOLUME))
    assert half.flooded == pytest.approx(1025.0 * (mesh.volume - 0.5 * VOLUME))
    with pytest.raises(ConfigError, match="capsizes: lower --centre"):
        balance(mesh, MassOptions(MASS, centre=(0.0, 0.0, -0.02)))


def test_balance_of_a_barge() -> None:
    length, width, height = 4.0, 1.6, 0.9
    mesh = prepared(box(length, width, height), mass=2200.0)
    draft = 2200.0 / 1025.0 / length / width
    shift, low = 0.05, 0.1
    found = balance(mesh, MassOptions(2200.0, "surface", centre=(shift, 0.0, low)))
    assert found.afloat is not None and found.afloat.draft == pytest.approx(draft)
    below = 0.5 * height - 0.5 * draft - low  # from the centre of mass down to the centre of buoyancy
    gm = length**2 / 12.0 / draft - below
    assert found.afloat.gm_pitch == pytest.approx(gm, rel=1e-6)
    assert math.tan(-found.pitch) == pytest.approx(shift / gm, rel=0.01), "bow down"
    assert found.roll == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ConfigError, match="a mass of 9000 kg sinks"):
        balance(mesh, MassOptions(9000.0, "surface"))
    with pytest.raises(ConfigError, match=r"capsizes: its metacentric height in roll is -"):
        balance(mesh, MassOptions(2200.0, "surface", centre=(0.0, 0.0, -0.8)))


def test_added_mass_of_ellipsoids() -> None:
    """The spheroid of slenderness 5 in Lamb's table (art. 115), and half of a sphere at the surface, which has half of the added mass in surge."""
    found = ellipsoid_added_mass(spindle(4) + [0.0, 0.0, 0.3], 1000.0)
    mass = 1000.0 * VOLUME
    assert found.matrix[0, 0] == pytest.approx(0.0591 * mass, rel=0.02)
    assert found.matrix[1, 1] / mass == pytest.approx(0.8951, rel=0.02)
    # 0.3 m below the origin, a roll to starboard moves the body to port
    assert found.matrix[1, 3] == pytest.approx(-0.3 * found.matrix[1, 1], rel=1e-6)
    sphere = np.asarray(trimesh.creation.icosphere(4).triangles)
    half = ellipsoid_added_mass(sphere, 1000.0, waterline=0.0)
    assert half.matrix[0, 0] == pytest.approx(1000.0 * math.pi / 3.0, rel=0.02)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, str]:
    """Folder in which the command has made a model of a torpedo, its JSON output and its progress."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "pike.stl").write_bytes(geometry.to_stl(spindle(3)))
    arguments = [str(folder / "pike.stl"), "--mass", f"{0.98 * MASS:.6g}", "--added-mass", "ellipsoid", "--json"]
    done = CliRunner().invoke(from_mesh, [*arguments, "--out", str(folder / "pike.xml")], catch_exceptions=False)
    assert done.exit_code == 0
    return folder, json.loads(done.stdout), done.stderr


def test_the_command_makes_a_sailing_model(made: tuple[Path, Any, str]) -> None:
    folder, found, errors = made
    assert [Path(p).name for p in found["files"]] == [
        *("pike.xml", "pike-hull.stl", "pike.glb", "pike-uncertainty.json", "pike-report.md"),
    ]
    model = read_models(folder / "pike.xml")["pike"]
    assert model.hull is not None and len(model.thruster) == 1 and len(model.fin) == 4
    sheet = found["sheet"]
    assert sheet["bollard_pull_N"] == pytest.approx(model.thruster[0].maximum, rel=1e-3)
    assert 1.5 < sheet["full_speed_m_s"] < 3.0 and 2.0 < sheet["turning_diameter_m"] < 40.0
    lines = [json.loads(line) for line in errors.splitlines()]
    ends = [line["name"] for line in lines if "seconds" in line]
    assert ends == ["reading", "mesh", "balance", "added mass", "drag", "writing", "behaviour"]
    assert all(line["step"] <= line["steps"] == 7 for line in lines)
    text = (folder / "pike-report.md").read_text()
    assert "equivalent ellipsoid" in text and "## Uncertainty" in text and "`quadratic-drag/X_u`" in text


def test_an_ensemble_is_drawn(made: tuple[Path, Any, str]) -> None:
    folder, _, _ = made
    out = folder / "pike-ensemble.xml"
    arguments = ["pike", "--models", str(folder / "pike.xml"), "--uncertainty", str(folder / "pike-uncertainty.json")]
    arguments += ["--members", "6", "--out", str(out), "--campaign", str(folder / "campaign.xml")]
    done = CliRunner().invoke(ensemble_command, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    models = read_models(out)
    assert sorted(models) == [f"pike-{k:03d}" for k in range(1, 7)]
    surge = [
        m.quadratic_drag.rows[0] if m.quadratic_drag.rows else m.quadratic_drag.diagonal[0] for m in models.values()
    ]  # type: ignore[union-attr]
    assert len(set(surge)) == 6
    assert "pike-001 | pike-002" in (folder / "campaign.xml").read_text()


def test_draws_have_the_stated_spread() -> None:
    rows = [
        ensemble.UncertainCoefficient("a/X_u", 2.0, 0.6, "log-normal", "a"),
        ensemble.UncertainCoefficient("b/X_u", -3.0, 0.3, "normal", "b"),
        ensemble.UncertainCoefficient("c/X_u", 5.0, 1.5, "log-normal", "a"),
    ]
    values = ensemble.draw(rows, 4000, 3)
    spread = math.sqrt(math.log1p(0.09))
    assert np.median(values[:, 0]) == pytest.approx(2.0, rel=0.01)
    assert np.std(np.log(values[:, 0])) == pytest.approx(spread, rel=0.02)
    assert values[:, 1].mean() == pytest.approx(-3.0, rel=0.01) and values[:, 1].std() == pytest.approx(0.3, rel=0.02)
    assert values[:, 2] == pytest.approx(2.5 * values[:, 0]), "one cause of error, one random number"
    assert (ensemble.draw(rows, 50, 3) == ensemble.draw(rows, 50, 3)).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("{}", "no list 'unknowns'"),
        ('{"unknowns": [{"path": "mass/value"}]}', "needs 'path', 'value' and 'sd'"),
        ('{"unknowns": [{"path": "delay", "value": 1, "sd": 1}]}', "lists no coefficient of a model"),
        ('{"unknowns": [{"path": "a/b", "value": 0, "sd": 1, "distribution": "log-normal"}]}', "other than 0"),
        ('{"unknowns": [{"path": "a/b", "value": 1, "sd": 1, "distribution": "odd"}]}', "unknown distribution 'odd'"),
    ],
)
def test_a_wrong_uncertainty_file_gets_one_message(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "u.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        ensemble.read_uncertainty(path)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--thruster", "main 1 2"], "--thruster 'main 1 2': use \"NAME X Y Z DX DY DZ MAX\""),
        (["--thruster", "main 0 0 0 0 0 0 5"], "the direction must not be zero"),
        (["--fin", "f 0 0 0 0 1 0 -1"], "must be above 0"),
        (["--thruster", "a 0 0 0 1 0 0 5", "--fin", "a 0 0 0 0 1 0 0.1"], "two actuators have the name 'a'"),
        (["--unit", "mm"], "use --unit m"),
        (["--fin-part", "tail"], "no part named 'tail'"),
    ],
)
def test_wrong_options_get_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], message: str
) -> None:
    monkeypatch.setattr(mesh_preparation, "read_in_process", lambda *_: mesh_of(spindle()).parts)
    path = tmp_path / "a.stl"
    path.write_bytes(b"")
    arguments = [str(path), "--mass", "172", "--added-mass", "ellipsoid", "--out", str(tmp_path / "a.xml"), *more]
    done = CliRunner().invoke(from_mesh, arguments)
    assert isinstance(done.exception, WaveSimError) and message in str(done.exception)
