"""What a picture of many vehicles may cost: few drawings, and no letters or styles that are computed anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks.page import VEHICLES, log

from tests.viz.browser import Page, Viewer

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
MOST_DRAWINGS = 20  #: for 50 vehicles of two models, with their tracks
# calls of some functions of the browser while the same picture is drawn again
CALLS = """(() => {
  const found = { strokeText: 0, getComputedStyle: 0, arc: 0 }, of = CanvasRenderingContext2D.prototype, old = [of.strokeText, window.getComputedStyle, of.arc];
  of.strokeText = function (...a) { found.strokeText++; return old[0].apply(this, a) };
  window.getComputedStyle = function (...a) { found.getComputedStyle++; return old[1].apply(window, a) };
  of.arc = function (...a) { if (this.canvas === wavesim.view.compass) found.arc++; return old[2].apply(this, a) };
  wavesim.view.render();
  [of.strokeText, window.getComputedStyle, of.arc] = old;
  return found })()"""


def test_fifty_vehicles_with_tracks(
    view: Callable[..., Viewer], open_page: Callable[[str], Page], tmp_path: Path
) -> None:
    page = open_page(view(log(tmp_path)).url)
    page.wait(f"wavesim.view && wavesim.store.rows.length === {VEHICLES}")
    page.see("wavesim.link.control('pause'); wavesim.link.control('seek', 30)")
    page.wait("Math.abs(wavesim.store.time - 30) < 0.1 && !wavesim.app.loop.turning")
    page.see("wavesim.view.render()")
    assert page.see("wavesim.view.renderer.info.render.calls") <= MOST_DRAWINGS
    # the tracks end at the time of the replay
    drawn: Any = page.see(
        "(() => { const g = wavesim.view.trails.log.geometry; return [g.drawRange.count / 2, g.index.count / 2] })()"
    )
    assert 0.45 < drawn[0] / drawn[1] < 0.55
    assert page.see(CALLS) == {"strokeText": 0, "getComputedStyle": 0, "arc": 0}
    page.clean()
