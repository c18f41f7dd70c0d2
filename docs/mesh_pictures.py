"""Pictures of a vehicle with its own mesh, and of the configurator with a mesh; ``docs/pictures.py`` draws them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.viz.hull_samples import RADIUS, save
from tests.viz.mesh_samples import dart, harbour
from tests.viz.stage import Stage, on_stage

Keep = Callable[[str, bytes], None]
SIZE = {"width": 1100, "height": 620}


def own_mesh(browser: Any, keep: Keep) -> None:
    """Draw an AUV from a glTF file, with a fast propeller and a deflected rudder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dart(folder / "dart.glb")
        source = harbour(folder)
        source.turns = 0.1
        with on_stage(source, folder) as url:
            page = browser.new_page(viewport=SIZE)
            page.set_default_timeout(180_000)
            page.goto(url)
            page.wait_for_function("() => window.wavesim?.view?.bodies.kinds.get('dart')?.own")
            page.evaluate("() => { wavesim.view.show.arrows = false; wavesim.app.selection.choose(0) }")
            for key in ("l", "[", "]"):  # no names and no side panels
                page.keyboard.press(key)
            page.evaluate("() => wavesim.view.look([-0.95, -1.35, 1.15], [0.05, -2.05, 0.05])")
            page.wait_for_function("() => Math.abs(wavesim.view.bodies.moving.values[1] - 0.3) < 1e-3")
            page.evaluate(
                "() => { document.querySelectorAll('.toast').forEach(t => t.remove()); wavesim.app.loop.wake() }"
            )
            page.wait_for_function("() => !wavesim.app.loop.turning")
            keep("own-mesh", page.locator("canvas.space").first.screenshot())
            page.close()


def configurator_mesh(browser: Any, keep: Keep) -> None:
    """Place a thruster and a fin by clicks on the surface of a hull file."""
    with tempfile.TemporaryDirectory() as name, on_stage(Stage(), Path(name)) as url:
        page = browser.new_page(viewport={"width": 1440, "height": 860})
        page.set_default_timeout(180_000)
        page.goto(f"{url}#configure")
        page.wait_for_selector("#verdict.good")
        page.click("#hull-panel > summary")
        page.set_input_files("#hull-file", save(Path(name), "boat.glb"))
        page.wait_for_selector("#hull-properties")
        page.select_option("#hull-type", "underwater")
        with page.expect_response("**/api/check"):
            page.click("#hull-new")
        x, y, z = page.evaluate("() => configure.hull.fit.parts.find(p => p.name === 'hull').centre")
        for what, point in (("fin", [x - 0.3, y, z - RADIUS]), ("thruster", [x + 0.2, y + RADIUS, z])):
            page.click(f"#place-{what}")
            at = page.evaluate(
                """([n, e, d]) => { const w = configure.bench; w.dirty = true; w.render();
                const c = w.canvas.getBoundingClientRect(), v = w.camera.position.clone().set(e, -d, -n).project(w.camera);
                return [c.left + (v.x + 1) / 2 * c.width, c.top + (1 - v.y) / 2 * c.height] }""",
                point,
            )
            with page.expect_response("**/api/check"):
                page.mouse.click(*at)
        page.click("#from-mesh summary")
        page.locator("#from-mesh-start").scroll_into_view_if_needed()
        page.wait_for_selector("#verdict.good")
        page.evaluate("() => document.querySelectorAll('.toast').forEach(t => t.remove())")
        keep("configurator-mesh", page.screenshot())
        page.close()
