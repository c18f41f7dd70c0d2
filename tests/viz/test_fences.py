"""Fences on the chart: drawn, edited, deleted and saved, as the configuration then has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.fences import is_inside
from wavesim_viz import scene
from wavesim_viz.fences import configured_fences
from wavesim_world.config import load

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
BAY = """<wavesim><world><bed depth="40 m"/></world><fleet>
  <vehicle name="a" model="lauv" position="0 0 3 m"/>
  <fence name="bay"><corner north="-60 m" east="-60 m"/><corner north="60 m" east="-60 m"/><corner north="60 m" east="60 m"/><corner north="-60 m" east="60 m"/></fence>
  <fence name="wreck" keep="outside"><corner north="70 m" east="0 m"/><corner north="80 m" east="0 m"/><corner north="80 m" east="10 m"/></fence>
</fleet></wavesim>"""


@pytest.fixture
def bay(tmp_path: Path, open_page: Callable[[str], Page]) -> Iterator[tuple[Page, Path]]:
    """A page with the tool for fences."""
    (tmp_path / "bay.xml").write_text(BAY)
    source = Stage()
    loaded = load(tmp_path / "bay.xml")
    source.described, source.fenced = {**scene.describe(loaded)}, [*configured_fences(loaded)]
    with on_stage(source, tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.scene && wavesim.store.rows.length && wavesim.store.fences.length")
        page.page.locator("#do-mission").click()
        page.see("wavesim.chart.look([0, 100], 1.5)")
        page.page.get_by_role("button", name="fences", exact=True).click()
        yield page, tmp_path
        page.clean()


def at(page: Page, north: float, east: float) -> tuple[float, float]:
    box = page.page.locator("canvas.chart").bounding_box()
    assert box is not None
    x, y = page.see(f"wavesim.chart.px({north}, {east})")
    return box["x"] + x, box["y"] + y


def saved(page: Page, folder: Path, name: str) -> dict[str, tuple[str, np.ndarray]]:
    """Fences of the configuration after saving: side and corners by name."""
    page.page.locator("#mission-file").fill(name)
    page.page.locator("#mission-save").click()
    expect(page.page.locator(".toast")).to_contain_text(f"saved {folder / name}")
    fences = load(folder / name).config.fleet.fence
    return {f.name: (f.keep, np.array([(c.north, c.east) for c in f.corner])) for f in fences}


def test_a_fence_is_drawn_edited_and_deleted(bay: tuple[Page, Path]) -> None:
    page, folder = bay
    for corner in ((-20, -40), (20, -40), (20, -10)):
        page.page.mouse.click(*at(page, *corner))
    page.page.locator("#close-fence").click()
    expect(page.page.locator("#fences tr")).to_have_count(3)
    page.page.get_by_label("Name of fence fence1").fill("nets")
    page.page.get_by_label("Name of fence fence1").press("Enter")
    page.page.get_by_label("Side of fence nets").select_option("outside")
    page.page.mouse.move(*at(page, 20, -10))  # drag a corner on the chart
    page.page.mouse.down()
    page.page.mouse.move(*at(page, 25, 0), steps=4)
    page.page.mouse.up()
    page.page.get_by_label("Insert a corner after 3").click()  # halfway to the first
    page.page.get_by_label("north of corner 4").fill("-31.5")
    page.page.get_by_label("north of corner 4").press("Enter")
    page.page.get_by_label("Delete fence wreck").click()
    expect(page.page.locator("#fences tr")).to_have_count(2)
    expect(page.page.locator("#fence-note")).to_have_text("2 fences differ from the running server")
    page.shot("fences")
    found = saved(page, folder, "nets.xml")
    assert list(found) == ["bay", "nets"]
    keep, corners = found["nets"]
    assert keep == "outside"
    assert corners == pytest.approx(np.array([(-20, -40), (20, -40), (25, 0), (-31.5, -20)]), abs=0.7)
    assert found["bay"][1].tolist() == [[-60, -60], [60, -60], [60, 60], [-60, 60]], "unchanged"


def test_a_circle(bay: tuple[Page, Path]) -> None:
    """A circle is a polygon that the server checks as any other."""
    page, folder = bay
    page.page.mouse.click(*at(page, 10, 20))
    page.page.locator("#fence-radius").fill("30")
    page.page.locator("#fence-radius").press("Enter")
    page.page.locator("#circle-fence").click()
    _, corners = saved(page, folder, "circle.xml")["fence1"]
    far = np.hypot(*(corners - corners.mean(axis=0)).T)
    assert far == pytest.approx(np.full(24, 30.0), abs=0.1) and corners.mean(axis=0) == pytest.approx((10, 20), abs=0.7)
    assert is_inside(corners, np.array([[10.0, 49.0], [10.0, 51.5]])).tolist() == [True, False]


def test_what_is_no_fence_is_not_saved(bay: tuple[Page, Path]) -> None:
    page, folder = bay
    page.page.mouse.click(*at(page, 10, 20))
    page.page.locator("#mission-save").click()
    expect(page.page.locator(".toast")).to_have_text(
        "fence 'fence1' has fewer than 3 corners: add corners, or delete it"
    )
    page.page.get_by_role("button", name="undo").click()
    page.page.get_by_label("Name of fence wreck").fill("bay")
    page.page.get_by_label("Name of fence wreck").press("Enter")
    page.page.locator("#mission-save").click()
    expect(page.page.locator(".toast")).to_have_text("two fences are named 'bay': give each its own name")
    assert not (folder / "mission.xml").exists()
