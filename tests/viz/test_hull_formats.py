"""Hull files without a browser: every format, every kind of broken file, and limits."""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from tests.viz import fbx
from tests.viz.browser import need_package
from tests.viz.hull_samples import FORWARD, LENGTH, RADIUS, VOLUME, save, vessel
from wavesim_sdk.extras import MissingPackage
from wavesim_viz import hull_fit, uploads
from wavesim_viz.configurator import Configurator
from wavesim_viz.xml_trees import RequestFailed
from wavesim_world import hull_geometry as geometry
from wavesim_world import hull_reader
from wavesim_world.hull import Hull


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read hull files without a process for each, which would import its libraries again."""

    monkeypatch.setattr(hull_fit, "read_in_process", hull_reader.read_parts)


@pytest.fixture
def page(tmp_path: Path) -> Configurator:
    return Configurator(tmp_path / "out", lambda: "")


def opened(page: Configurator, name: str, data: bytes) -> Any:
    return page.open_hull({"upload": page.upload({"file": name, "data": data})["upload"]})


def fitted(page: Configurator, file: Any, **choices: Any) -> Any:
    every = list(range(len(file["parts"])))
    request = {"hull": file["hull"], "origin": "file", "solid": every, "drawn": every}
    return page.fit_hull(request | {k: file[k] for k in ("unit", "up", "forward")} | choices)


def exported(mesh: trimesh.Trimesh, kind: str = "stl") -> bytes:
    data = mesh.export(file_type=kind)
    return data if isinstance(data, bytes) else data.encode()


@pytest.mark.parametrize(
    ("name", "unit", "up", "forward"),
    [
        ("boat.glb", "m", "y", "z"),
        ("boat.stl", "mm", "z", "x"),
        ("boat.obj", "m", "y", "z"),
        ("boat-text.fbx", "m", "y", "x"),
        ("boat-binary.fbx", "m", "y", "x"),
    ],
)
def test_every_format_gives_the_same_vessel(
    page: Configurator, tmp_path: Path, name: str, unit: str, up: str, forward: str
) -> None:
    """Guessed unit and axes, named parts, and the mass properties of a known body."""
    if name.endswith(".fbx"):
        need_package("assimp_py")
    file = opened(page, name, save(tmp_path, name).read_bytes())
    assert (file["unit"], file["up"], file["forward"]) == (unit, up, forward)
    names = [p["name"] for p in file["parts"]]
    assert len(names) == 4 and (name.endswith(".stl") or sorted(names) == ["hull", "propeller", "rudder", "sonar"])
    hull = names.index("hull") if "hull" in names else 0  # of an STL, the largest body comes first
    found = fitted(page, file, solid=[hull], mass=40.0)
    assert found["closed"] and found["volume"] == pytest.approx(VOLUME, rel=0.02)
    assert found["centre"] == pytest.approx([FORWARD, 0, 0], abs=1e-3)
    assert found["size"] == pytest.approx([LENGTH + 2 * RADIUS, 2 * RADIUS, 2 * RADIUS], rel=0.03)
    assert found["afloat"]["draft"] < RADIUS and abs(found["afloat"]["gm_roll"]) < 2e-3, "a circle has no stability"
    by_place = sorted(found["parts"], key=lambda p: p["centre"][0])
    assert by_place[0]["centre"] == pytest.approx([FORWARD - 0.78, 0, 0], abs=2e-3)
    assert by_place[0]["axis"] == pytest.approx([1, 0, 0], abs=1e-6), "the propeller pushes ahead"
    assert by_place[1]["centre"] == pytest.approx([FORWARD - 0.6, 0, -0.26], abs=2e-3), "up is negative"
    assert by_place[1]["normal"] == pytest.approx([0, 1, 0], abs=1e-6) and by_place[1]["area"] == pytest.approx(0.0544)


def test_mass_properties_against_closed_forms() -> None:
    box = np.asarray(trimesh.creation.box((3.0, 2.0, 1.0)).triangles) + [5.0, -4.0, 3.0]
    found = geometry.mass_properties(box)
    assert found.volume == pytest.approx(6.0) and found.centre == pytest.approx([5.0, -4.0, 3.0])
    expected = 6.0 / 12.0 * np.array([2.0**2 + 1.0, 3.0**2 + 1.0, 3.0**2 + 2.0**2])
    assert np.diag(found.inertia) == pytest.approx(expected)
    assert found.inertia - np.diag(expected) == pytest.approx(np.zeros((3, 3)), abs=1e-9)
    assert geometry.area(box) == pytest.approx(22.0)


def test_a_simplified_mesh_stays_closed_and_keeps_its_volume() -> None:
    fine = np.asarray(trimesh.creation.icosphere(5).triangles) * [3.0, 0.4, 0.5] + [1.0, 2.0, 3.0]
    coarse = geometry.simplify(fine, 1280)
    before, after = geometry.mass_properties(fine), geometry.mass_properties(coarse)
    assert len(fine) == 20480 and 600 < len(coarse) <= 1280
    assert Hull(coarse).volume == pytest.approx(before.volume, rel=1e-9)
    assert after.centre == pytest.approx(before.centre, abs=1e-9)
    assert np.diag(after.inertia) == pytest.approx(np.diag(before.inertia), rel=0.02)


@pytest.mark.usefixtures("in_process")
def test_warnings_about_the_surface(page: Configurator) -> None:
    box = trimesh.creation.box((2.0, 0.5, 0.4))
    closed = np.asarray(box.triangles)

    def notes(triangles: np.ndarray, **choices: Any) -> tuple[Any, str]:
        mesh = trimesh.Trimesh(triangles.reshape(-1, 3), np.arange(3 * len(triangles)).reshape(-1, 3), process=False)
        found = fitted(page, opened(page, "box.stl", exported(mesh)), **choices)
        return found, " ".join(found["notes"])

    found, said = notes(closed)
    assert found["volume"] == pytest.approx(0.4) and said == ""
    found, said = notes(closed[:-1])
    assert not found["closed"] and "is open: 3 edges do not join two faces" in said
    assert found["volume"] == pytest.approx(0.4), "of the convex hull"
    found, said = notes(closed[:, ::-1])
    assert found["volume"] == pytest.approx(0.4) and "was inside out; its faces were reversed" in said
    small = 0.2 * closed
    found, said = notes(np.concatenate([closed, small]))
    assert found["volume"] == pytest.approx(0.4) and "'body-2' is inside part 'body-1'" in said
    found, said = notes(np.concatenate([closed, small[:, :, [1, 0, 2]][:, ::-1] + [0.0, 0.24, 0.01]]))
    assert "intersects itself near" in said


def glb_with_external_buffer() -> bytes:
    return (
        b'{"asset":{"version":"2.0"},"scenes":[{"nodes":[0]}],"scene":0,"nodes":[{"mesh":0}],'
        b'"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],"buffers":[{"uri":"other.bin","byteLength":36}],'
        b'"bufferViews":[{"buffer":0,"byteLength":36}],"accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3"}]}'
    )


def million_facets() -> bytes:
    triangles = np.zeros(1_000_000, np.dtype([("n", "<f4", 3), ("c", "<f4", 9), ("u", "<u2")]))
    triangles["c"] = np.arange(9) ** 2
    return bytes(80) + np.uint32(len(triangles)).tobytes() + triangles.tobytes()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("boat.stl", lambda: b"\0" * 84, "the file contains no triangles"),
        ("boat.stl", lambda: b"solid nothing\nendsolid nothing\n", "contains no triangles|not a valid STL"),
        ("boat.glb", lambda: b"PK\3\4 this is another kind of file", "not a valid GLB file"),
        ("boat.obj", lambda: b"v 0 0 0\nv 1 0 0\nf 1 2 99\n", "not a valid OBJ|damaged|no triangles"),
        ("boat.obj", lambda: b"v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n", "all of its vertices lie on a line"),
        ("boat.stl", million_facets, "has 1000000 triangles; the maximum is 200000: simplify the mesh"),
        ("boat.gltf", glb_with_external_buffer, "refers to other files; export it as one binary file"),
        (
            "boat.fbx",
            lambda: b"Kaydara FBX Binary  \0\x1a\0\xe8\x1c\0\0" + b"\x55" * 900,
            "cannot be converted .* export it as",
        ),
        ("boat.fbx", lambda: b"solid x", "not a valid FBX file"),
        ("boat.step", lambda: b"ISO-10303-21;", "not a valid STEP file"),
        ("boat.iges", lambda: b"S      1", "unknown type of hull file '.iges': use glb"),
    ],
)
@pytest.mark.usefixtures("in_process")
def test_an_unusable_file_gets_one_message(
    page: Configurator, name: str, data: Callable[[], bytes], message: str
) -> None:
    if name.endswith(".fbx"):
        need_package("assimp_py")
    with pytest.raises(RequestFailed, match=message) as caught:
        opened(page, name, data())
    text = str(caught.value)
    assert "\n" not in text and "Traceback" not in text and "/tmp" not in text


@pytest.mark.parametrize("name", ["boat.fbx", "boat.glb"])
def test_the_process_that_reads_reports_in_one_line(page: Configurator, name: str) -> None:
    if name.endswith(".fbx"):
        need_package("assimp_py")
    with pytest.raises(RequestFailed, match=f"^{re.escape(name)}: the file is not a valid"):
        opened(page, name, b"PK something else")


def test_fbx_without_its_converter_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> None:
        if package == "assimp_py":
            raise MissingPackage("this feature needs the 'assimp_py' package: run pip install 'wavesim[hulls]'")

    monkeypatch.setattr(hull_reader, "check_installed", missing)
    path = tmp_path / "a.fbx"
    path.write_bytes(
        fbx.text({"a": (vessel()["rudder"].vertices.tolist(), vessel()["rudder"].faces.tolist(), (0, 0, 0))})
    )
    with pytest.raises(hull_reader.InvalidHull, match=r"pip install 'wavesim\[hulls\]'; or export the file as glTF"):
        hull_reader.read_parts(path)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"solid": []}, "no part forms the hull"),
        ({"solid": [99]}, "'solid' in the request must list part numbers"),
        ({"unit": "ft"}, "unknown unit 'ft'"),
        ({"forward": "z"}, "must differ"),
        ({"unit": "mm"}, "choose another unit"),
        ({"shift": [1, 2]}, "'shift' in the request must be three numbers"),
        ({"hull": "?"}, "no longer has this hull; open the file again"),
    ],
)
@pytest.mark.usefixtures("in_process")
def test_wrong_choices_are_refused(page: Configurator, choices: Any, message: str) -> None:
    file = opened(page, "a.stl", exported(trimesh.creation.box((5.0, 0.5, 0.4))))
    with pytest.raises(RequestFailed, match=message):
        fitted(page, file, **choices)


@pytest.mark.parametrize(
    "name", ["../a.stl", "/etc/a.stl", "a/../../b.stl", "C:\\a.stl", "", "a\0.stl", "x" * 300, None, "~/a.stl"]
)
def test_unsafe_names_are_refused(page: Configurator, name: Any) -> None:
    with pytest.raises(RequestFailed, match="invalid file name"):
        page.upload({"file": name, "data": b"x"})


def test_archives_are_bounded(tmp_path: Path) -> None:
    def archive(files: dict[str, bytes]) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as z:
            for name, content in files.items():
                z.writestr(name, content)
        return buffer.getvalue()

    for data, message in (
        (b"PK nothing", "damaged"),
        (archive({"../../x.yml": b"x"}), "invalid file name"),
        (archive({"big": bytes(uploads.MOST_UPLOAD + 1)}), "too large"),
        (archive({f"{k}": b"" for k in range(uploads.MOST_FILES + 1)}), "too large"),
    ):
        with pytest.raises(RequestFailed, match=message):
            uploads.unpack(data, tmp_path / "box")
    assert not (tmp_path / "x.yml").exists()
    uploads.unpack(archive({"a/b.yml": b"x: 1"}), tmp_path / "box")
    assert (tmp_path / "box/a/b.yml").read_text() == "x: 1"


def test_the_store_drops_the_oldest_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_KEPT", 10)
    store = uploads.FileStore()
    first, second = store.add("a", b"123456"), store.add("b", b"7890123")
    assert store.find(first) is None and store.get(second) == ("b", b"7890123")
    with pytest.raises(RequestFailed, match="open the file again"):
        store.get(first)


def test_saved_files_stay_in_the_folder(page: Configurator, tmp_path: Path) -> None:
    """A model that names a file elsewhere is refused; other content is not overwritten."""
    page.folder.mkdir()
    (tmp_path / "secret.stl").write_bytes(exported(trimesh.creation.box((1, 1, 1))))
    file = opened(page, "barge.stl", exported(trimesh.creation.box((2.0, 0.5, 0.4))))
    request = {"hull": file["hull"], "origin": "middle", "solid": [0], "drawn": [0], "type": "surface"}
    model = page.hull_model(request | {k: file[k] for k in ("unit", "up", "forward")})
    assert page.check({"model": model})["ok"]
    for name in ("../secret.stl", str(tmp_path / "secret.stl"), "unknown.stl"):
        (hull,) = (c for c in model["children"] if c["tag"] == "hull")
        bad = model | {
            "children": [*(c for c in model["children"] if c is not hull), hull | {"attributes": {"file": name}}]
        }
        with pytest.raises(RequestFailed, match=r"invalid file name|which is not in"):
            page.save({"model": bad, "file": "a.xml"})
    (page.folder / "barge-hull.stl").write_bytes(b"mine")
    with pytest.raises(RequestFailed, match=r"barge-hull\.stl already exists with other content"):
        page.save({"model": model, "file": "a.xml"})
    assert (page.folder / "barge-hull.stl").read_bytes() == b"mine" and not (page.folder / "a.xml").exists()
    page.save({"model": model, "file": "a.xml", "replace": True})
    assert sorted(p.name for p in page.folder.iterdir()) == ["a-trial.xml", "a.xml", "barge-hull.stl", "barge.glb"]
    assert math.isclose(Hull(trimesh.load_mesh(page.folder / "barge-hull.stl").triangles).volume, 0.4, rel_tol=1e-6)
