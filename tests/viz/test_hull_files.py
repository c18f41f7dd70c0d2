"""Hull files and vessels in the configurator: real files, uploaded in a real browser, until the saved trial runs."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.conftest import Server, wavesim
from tests.viz.browser import need_package
from tests.viz.hull_samples import RADIUS, VOLUME, save
from tests.viz.sea import Opener, Page
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.broker import Broker
from wavesim_viz import mesh_job
from wavesim_world.config import load
from wavesim_world.hull import Hull
from wavesim_world.ocean.mesh import read_mesh

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]


@pytest.fixture
def page(view: Any, open_page: Opener, tmp_path: Path) -> Page:
    found = open_page(view("--folder", tmp_path, command="configure").url)
    found.page.wait_for_selector("#verdict.good")
    return found


def settled(page: Page, action: Callable[[], Any]) -> None:
    """Until the page has drawn the answer to the request for a placed hull that an action causes."""
    with page.page.expect_response("**/api/hull-fit"):
        action()
    page.page.wait_for_selector("#hull-properties")


def accepted(page: Page, action: Callable[[], Any]) -> None:
    """Until the model is valid that results from an action."""
    with page.page.expect_response("**/api/check"):
        action()
    page.page.wait_for_selector("#verdict.good")


def click_surface(page: Page, point: list[float]) -> None:
    """Click a point of the view, given in body axes."""
    at = page.see(
        f"(() => {{ const p = {point}, w = configure.bench; w.dirty = true; w.render(); const c = w.canvas.getBoundingClientRect();"
        " const v = w.camera.position.clone().set(p[1], -p[2], -p[0]).project(w.camera);"
        " return [c.left + (v.x + 1) / 2 * c.width, c.top + (1 - v.y) / 2 * c.height] })()"
    )
    accepted(page, lambda: page.page.mouse.click(*at))


def test_actuators_placed_by_clicks_on_the_surface(page: Page, tmp_path: Path) -> None:
    """A click gives a thruster or a fin its position and direction; undo removes it."""
    page.page.click("#hull-panel > summary")
    settled(page, lambda: page.page.set_input_files("#hull-file", save(tmp_path, "boat.glb")))
    page.page.select_option("#hull-type", "underwater")
    accepted(page, lambda: page.page.click("#hull-new"))
    of = "configure.tree().model.children.filter(c => ['thruster', 'fin'].includes(c.tag)).map(c => c.attributes)"
    count = len(page.see(of))
    x, y, z = page.see("(({ centre }) => centre)(configure.hull.fit.parts.find(p => p.name === 'hull'))")
    page.page.click("#place-thruster")
    click_surface(page, [x + 0.2, y + RADIUS, z])
    page.page.click("#place-fin")
    click_surface(page, [x - 0.3, y, z - RADIUS])
    page.shot("configurator-surface")
    thruster, fin = page.see(of)[-2:]
    assert (thruster["name"], fin["name"]) == ("thruster", "fin")
    assert numbers(thruster["position"]) == pytest.approx([x + 0.2, y + RADIUS, z], abs=5e-3)
    assert numbers(thruster["direction"]) == [0, -1, 0], "into the hull"
    # the fin stands on the top, half of its span above the surface, and its lift is to starboard
    span = (numbers(fin["area"])[0]) ** 0.5
    assert numbers(fin["position"]) == pytest.approx([x - 0.3, y, z - RADIUS - span / 2], abs=5e-3)
    assert numbers(fin["normal"]) == [0, 1, 0] and span > 0.1
    page.page.keyboard.press("Escape")
    assert page.page.locator("#surface-placement .on").count() == 0
    accepted(page, lambda: page.page.click("#undo"))
    assert [t["name"] for t in page.see(of)[count:]] == ["thruster"]
    accepted(page, lambda: page.page.click("#undo"))
    assert len(page.see(of)) == count
    page.clean()


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.removesuffix("m2").removesuffix("m").split()]


def test_from_an_fbx_file_to_a_vehicle_that_sails(page: Page, tmp_path: Path, serve: Callable[..., Server]) -> None:
    """Upload, pick parts by click and by key, actuators and a sensor at the parts, a moved origin, save, sail."""
    need_package("assimp_py")
    page.page.focus("#hull-panel > summary")
    page.page.keyboard.press("Enter")
    settled(page, lambda: page.page.set_input_files("#hull-file", save(tmp_path, "my boat-binary.fbx")))
    names = page.see("[...document.querySelectorAll('.hull-parts button')].map(b => b.textContent)")
    assert sorted(names) == ["hull", "propeller", "rudder", "sonar"]
    assert page.see("['unit', 'up', 'forward'].map(k => document.querySelector('#hull-' + k).value)") == ["m", "y", "x"]
    # a click on a part in the view chooses it in the list
    at = page.see(
        "(() => { const w = configure.bench; w.dirty = true; w.render(); const c = w.canvas.getBoundingClientRect(), p = configure.hull.fit.parts"
        ".find(p => p.name === 'rudder').centre; const v = w.camera.position.clone().set(p[1], -p[2], -p[0]).project(w.camera);"
        " return [c.left + (v.x + 1) / 2 * c.width, c.top + (1 - v.y) / 2 * c.height] })()"
    )
    page.page.mouse.click(*at)
    page.wait("document.querySelector('.hull-parts [aria-pressed=true]')?.textContent === 'rudder'")
    settled(page, lambda: page.page.click("#hull-make-rudder"))
    for part, what in (("propeller", "thruster"), ("sonar", "")):
        page.page.focus(f"#hull-part-{names.index(part)}")
        page.page.keyboard.press("Space")
        page.wait(f"document.querySelector('.hull-parts [aria-pressed=true]')?.textContent === '{part}'")
        if what:
            page.page.focus(f"#hull-make-{what}")
            settled(page, lambda: page.page.keyboard.press("Enter"))
        else:
            settled(page, lambda: page.page.select_option("#hull-make-sensor", "dvl"))
    assert page.see("configure.hull.fit.volume") == pytest.approx(VOLUME, rel=0.02), "only the hull displaces water"
    page.shot("configurator-hull-parts")
    page.page.select_option("#hull-type", "underwater")
    accepted(page, lambda: page.page.click("#hull-new"))
    page.wait("configure.tree().model.attributes.name.startsWith('my-boat')")
    tags = "configure.tree().model.children.map(c => c.tag)"
    assert page.see(tags).count("thruster") == 1 and page.see(tags).count("fin") == 1
    # the origin goes to 5 cm ahead; the propeller is then further behind it, and so is the mesh
    before = page.see("configure.hull.fit.centre[0]")
    page.see("configure.choose(configure.bench.origin)")
    page.page.get_by_label("Move the origin forward, m").fill("0.05")
    settled(page, lambda: page.page.click("#move-origin"))
    page.page.wait_for_selector("#verdict.good")
    assert page.see("configure.hull.fit.centre[0]") == pytest.approx(before - 0.05, abs=1e-6)
    page.shot("configurator-hull")
    page.page.fill("#save-file", "boat.xml")
    page.page.click("#save")
    page.wait("document.querySelector('.toast')?.textContent.includes('saved')")
    page.clean()

    assert {p.name for p in tmp_path.iterdir()} >= {
        "boat.xml",
        "boat-trial.xml",
        "my-boat-binary-hull.stl",
        "my-boat-binary.glb",
    }
    assert wavesim("check", tmp_path / "boat-trial.xml").returncode == 0
    model = next(iter(load(tmp_path / "boat-trial.xml").models.values()))
    hull = Hull(read_mesh(tmp_path / model.hull.file)) if model.hull else None
    assert hull is not None and hull.volume == pytest.approx(VOLUME, rel=0.02)
    assert model.mass.value == pytest.approx(0.995 * 1025 * VOLUME, rel=0.02)
    (thruster,), (rudder,), (dvl,) = model.thruster, model.fin, model.sensors.dvl if model.sensors else ()
    gap = np.array(thruster.position) - hull.centre
    assert gap == pytest.approx([-0.78, 0, 0], abs=5e-3) and thruster.direction == (1.0, 0.0, 0.0)
    assert np.array(rudder.position) - hull.centre == pytest.approx([-0.6, 0, -0.26], abs=5e-3)
    assert rudder.normal == (0.0, 1.0, 0.0) and rudder.area == pytest.approx(0.0272, rel=1e-3)
    assert np.array(dvl.position) - hull.centre == pytest.approx([0.5, 0, 0.19], abs=5e-3)
    server = serve(tmp_path / "boat-trial.xml", "--start")
    with Broker(model.name, ("127.0.0.1", server.port)) as broker:
        for step in broker.steps():
            broker.answer([5.0, 0.0])
            if step.state.motion is not None and step.state.motion[7] > 0.2:  # surge
                break
        assert 0.5 < step.time < 60.0


def test_a_hull_in_the_folder_and_broken_uploads(page: Page, tmp_path: Path) -> None:
    """A file from the folder; each broken upload gets one message, and the page goes on."""
    save(tmp_path, "barge.glb")
    page.page.click("#hull-panel > summary")
    page.page.wait_for_selector("#hull-folder option[value='barge.glb']", state="attached")
    settled(page, lambda: page.page.select_option("#hull-folder", "barge.glb"))
    assert "barge.glb: 4 parts" in page.page.locator("#hull-state").text_content()
    for name, data, message in (
        ("empty.stl", b"", "empty.stl is empty"),
        ("text.glb", b"not a hull", "text.glb: the file is not a valid GLB file"),
        ("huge.obj", b"", "huge.obj is larger than 64 MiB"),
    ):
        path = tmp_path / name
        path.write_bytes(data)
        if name == "huge.obj":
            with path.open("wb") as file:
                file.truncate((64 << 20) + 1)
        page.page.set_input_files("#hull-file", path)
        page.wait(f"document.querySelector('.toast.bad')?.textContent.includes({json.dumps(message)})")
    path.unlink()
    # the last good hull is still there: the open model may use it
    settled(page, lambda: page.page.select_option("#hull-buoyancy", "centre"))
    accepted(page, lambda: page.page.click("#hull-use"))
    assert page.see("configure.tree().model.children.find(c => c.tag === 'buoyancy').attributes.volume").endswith(" m3")
    accepted(page, lambda: page.page.click("#hull-inertia"))
    settled(page, lambda: page.page.select_option("#hull-buoyancy", "mesh"))
    page.wait("configure.tree().model.children.some(c => c.tag === 'hull')")
    page.page.wait_for_selector("#verdict.good")
    assert [e for e in page.errors if "400" not in e] == []
    page.errors.clear()  # the browser reports the refused requests
    page.clean()


PANISIM = {
    "geometry.yml": {
        "length": 2.0,
        "breadth": 0.5,
        "depth": 0.4,
        "Fn": 0.16,
        "gyration": [0.2, 0.5, 0.5],
        "CG": {"position": [0.0, 0.0, 0.1]},
    },
    "inertia.yml": {"mass": 100.0, "buoyancy_mass": 100.0, "inertia_matrix": "None", "added_mass_matrix": "None"},
    "hydrodynamics.yml": {"hydra_file": "/elsewhere/skiff_hydra.json", "dim_flag": True, "X_u": -10.0, "keel": 3.0},
    "control_surfaces.yml": {
        "control_surfaces": [
            {
                "control_surface_type": "Rudder",
                "control_surface_id": 1,
                "control_surface_delta_max": 35.0,
                "control_surface_deltad_max": 1.0,
                "control_surface_T": 0.1,
                "control_surface_hydrodynamics": {"Y_delta": 5.0, "N_delta": -4.0},
            }
        ]
    },
}


def hydra() -> dict[str, Any]:
    stiff = np.zeros((6, 6))
    stiff[2, 2], stiff[3, 3], stiff[4, 4] = 9000.0, 150.0, 2500.0
    added = np.diag([5.0, 40.0, 80.0, 1.0, 12.0, 6.0])
    added[1, 3] = added[3, 1] = 4.0
    return {
        "w": [-1.0, 0.0],
        "A_inf": added.tolist(),
        "C": stiff.tolist(),
        "M": np.diag([100.0] * 3 + [4, 25, 25]).tolist(),
    }


def test_a_panisim_vessel_and_hydra_results(page: Page, tmp_path: Path) -> None:
    """A ZIP of a vessel folder with its HydRA file elsewhere in it: questions, notices, a model; then HydRA alone."""
    archive = tmp_path / "vessel.zip"
    with zipfile.ZipFile(archive, "w") as z:
        for name, content in PANISIM.items():
            z.writestr(f"inputs/skiff/{name}", yaml.safe_dump(content))
        z.writestr("inputs/skiff/HydRA/matlab/skiff_hydra.json", json.dumps(hydra()))
    page.page.click("#vessel-panel > summary")
    page.page.set_input_files("#vessel-file", archive)
    page.page.wait_for_selector("#vessel-angles")
    page.page.select_option("#vessel-angles", "deg")
    page.page.click("#vessel-continue")
    page.page.wait_for_selector("#vessel-panel .notes")
    assert "keel = 3" in page.page.locator("#vessel-panel .notes").text_content()
    page.page.click("#vessel-continue")
    page.page.wait_for_selector("#vessel-notes")
    notes = page.page.locator("#vessel-notes").text_content()
    assert "added mass at infinite frequency and restoring, but not damping and waves" in notes
    assert "omitted: hydrodynamics.yml: keel = 3" in notes
    page.shot("configurator-vessel")
    accepted(page, lambda: page.page.click("#vessel-open"))
    child = "(tag) => configure.tree().model.children.find(c => c.tag === tag)"
    rows = np.array(page.see(f"({child})('added-mass').text").split(), float).reshape(6, 6)
    assert rows[1, 3] == -4.0, "converted to z down"
    # HydRA's file alone, into a model of the library: its size and mass need not be typed
    accepted(page, lambda: page.page.select_option("#models", "bluerov2"))
    page.page.set_input_files(
        "#vessel-file",
        {"name": "skiff_hydra.json", "mimeType": "application/json", "buffer": json.dumps(hydra()).encode()},
    )
    page.page.wait_for_selector("#vessel-take")
    page.page.uncheck("#vessel-take-damping")
    page.page.uncheck("#vessel-take-restoring")
    accepted(page, lambda: page.page.click("#vessel-take"))
    taken = page.see(f"({child})('added-mass')")
    assert np.array(taken["text"].split(), float).reshape(6, 6)[2, 2] == 80.0
    assert page.see(f"({child})('restoring')") is None
    page.clean()


#: takes the place of the command: two steps that wait for a file, and a model that exists
STAND_IN = """
import json, pathlib, sys, time
options = dict(a.split("=", 1) for a in sys.argv[1:] if "=" in a)
here = pathlib.Path(".")
(here / "arguments.json").write_text(json.dumps(sys.argv[1:]))
def say(**values):
    print(json.dumps({"steps": 4, **values}), file=sys.stderr, flush=True)
say(step=1, name="reading", fraction=0.0, text="")
say(step=1, name="reading", seconds=0.1)
say(step=2, name="added mass", fraction=0.5, text="400 panels")
while not (here / "go").exists():
    time.sleep(0.02)
if (here / "go").read_text():
    sys.exit(print((here / "go").read_text(), file=sys.stderr) or 2)
model = '<model name="NAME" type="underwater"><sphere diameter="1 m"/><mass value="500 kg"/><inertia xx="50" yy="50" zz="50"/>'
model += '<added-mass diagonal="200 200 200 1 1 1"/><linear-drag diagonal="9 9 9 9 9 9"/></model>'
(here / options["--out"]).write_text("<models>" + model.replace("NAME", options["--name"]) + "</models>")
print(json.dumps({"files": [options["--out"]], "notes": ["the mesh was closed"], "sheet": {}, "steps": []}))
"""


def test_a_model_is_computed_from_a_mesh(tmp_path: Path, open_page: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress, an error, a cancelled run, and the model that opens at the end."""
    (tmp_path / "program.py").write_text(STAND_IN)
    monkeypatch.setattr(mesh_job, "COMMAND", (sys.executable, str(tmp_path / "program.py")))
    with on_stage(Stage(), tmp_path) as url:
        page = open_page(f"{url}#configure")
        page.page.wait_for_selector("#verdict.good")
        page.page.click("#hull-panel > summary")
        settled(page, lambda: page.page.set_input_files("#hull-file", save(tmp_path, "boat.glb")))
        rudder = page.see("configure.hull.file.parts.findIndex(p => p.name === 'rudder')")
        page.page.click(f"#hull-part-{rudder}")
        settled(page, lambda: page.page.click("#hull-make-rudder"))
        page.page.click("#from-mesh summary")
        page.page.fill("#from-mesh-mass", "")
        page.page.click("#from-mesh-start")
        page.page.wait_for_selector(".toast.bad")
        assert "enter the mass" in page.page.locator(".toast").text_content()
        page.page.fill("#from-mesh-mass", "80")
        begin = "document.querySelector('#from-mesh-step').textContent === 'added mass: 400 panels'"
        page.page.click("#from-mesh-start")
        page.wait(begin)
        assert page.see("document.querySelector('#from-mesh-progress').value") == pytest.approx(0.375)
        page.shot("configurator-from-mesh")
        page.page.click("#from-mesh-cancel")
        page.wait("document.querySelector('#from-mesh-step').textContent === 'cancelled'")
        given = json.loads((tmp_path / "arguments.json").read_text())
        assert {"--mass=80", "--type=underwater", "--up=y", "--forward=z", "--fin-part=rudder"} <= set(given)
        assert [a for a in given if a.startswith("--hull-part")] == [
            f"--hull-part={n}" for n in page.see("configure.hull.file.parts.map(p => p.name)") if n != "rudder"
        ]
        (tmp_path / "go").write_text("Error: the mesh has 3 holes")
        page.page.click("#from-mesh-start")
        page.wait("document.querySelector('#from-mesh-step').textContent === 'the mesh has 3 holes'")
        (tmp_path / "go").write_text("")
        accepted(page, lambda: page.page.click("#from-mesh-start"))
        page.wait("configure.tree().model.attributes.name === 'boat'")
        assert "note: the mesh was closed" in page.page.locator("#from-mesh-step").text_content()
        assert page.see("document.querySelector('#models').value") == "boat"
