"""Resolution of the 3D view: it falls while pictures take too long, rises again, and follows the setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.viz.sea import Opener
from tests.viz.stage import Stage, on_stage

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
#: pictures of a renderer that takes a time (ms) for each: share of the resolution, width of the picture and of the texts
PICTURES = """([count, ms]) => {
  const { view } = wavesim, render = view.renderer.render, now = performance.now.bind(performance);
  let t = now();
  view.renderer.render = () => { t += ms };
  performance.now = () => t;
  view.resolution.restart(t);
  for (let k = 0; k < count; k++) view.render();
  view.renderer.render = render;
  performance.now = now;
  return [view.resolution.share, view.canvas.width / view.canvas.clientWidth, view.over.width / view.canvas.clientWidth];
}"""


def test_the_resolution_follows_the_renderer_and_the_setting(open_page: Opener, tmp_path: Path) -> None:
    with on_stage(Stage(), tmp_path) as url:
        page = open_page(url)

        def pictures(count: int, ms: float) -> list[float]:
            found: list[float] = page.page.evaluate(PICTURES, [count, ms])
            return found

        def choose(setting: str) -> None:
            page.page.click("#shown summary")
            page.page.select_option("#resolution", setting)
            page.page.keyboard.press("Escape")

        page.wait("wavesim.view.frames > 1")
        # 12 pictures per second: less resolution, but sharp texts
        share, picture, texts = pictures(100, 80)
        assert share == pytest.approx(0.4) and picture < 0.45 and texts == pytest.approx(1, abs=0.01)
        # 83 pictures per second
        share, picture, texts = pictures(1000, 12)
        assert share == 1 and picture == pytest.approx(1, abs=0.01) and texts == pytest.approx(1, abs=0.01)
        choose("full")
        assert pictures(100, 80)[0] == 1
        choose("reduced")
        assert pictures(1000, 12)[:2] == [0.5, pytest.approx(0.5, abs=0.01)]
        # the setting is remembered
        page.page.reload()
        page.wait("window.wavesim && wavesim.view && wavesim.view.frames > 1")
        assert page.see("document.querySelector('#resolution').value") == "reduced"
        assert pictures(1, 1)[0] == 0.5
        choose("auto")
        assert pictures(1, 1)[0] == 1
        page.clean()
