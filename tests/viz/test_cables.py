"""Lines in a real browser: their nodes have the right positions in 3D and on the chart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage


class Tethered(Stage):
    def cables(self) -> list[dict[str, Any]]:
        return [{"name": "t", "tension": 5.0, "broken": 1, "points": [0, 0, 0, 0, 30, 20, 30, 30, 40, 60, 30, 40]}]


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_lines_are_drawn(open_page: Callable[[str], Page], tmp_path: Path) -> None:
    with on_stage(Tethered(), tmp_path) as url:
        page = open_page(url)
        page.wait(
            "window.wavesim && wavesim.store.cables.length && wavesim.view.cables.lines.geometry.attributes.position?.count"
        )
        drawn = page.see("Array.from(wavesim.view.cables.lines.geometry.attributes.position.array)")
        # east, up, south; not from the second node to the third
        assert [v + 0.0 for v in drawn] == [0, 0, 0, 30, -20, 0, 30, -40, -30, 30, -40, -60]
        page.page.keyboard.press("4")
        page.see("wavesim.chart.look([30, 15], 4); wavesim.chart.show.trails = false")

        def bright(north: float, east: float) -> bool:
            return bool(
                page.see(
                    f"(() => {{ wavesim.chart.render(); const c = wavesim.chart.canvas, r = c.width / c.clientWidth, p = wavesim.chart.px({north}, {east}),"
                    " d = c.getContext('2d').getImageData(Math.round(p[0] * r) - 1, Math.round(p[1] * r) - 1, 3, 3).data;"
                    " for (let k = 0; k < d.length; k += 4) if (d[k] > 120 && d[k] > d[k + 2] + 40) return true; return false })()"
                )
            )

        assert bright(0.0, 15.0) and bright(45.0, 30.0) and not bright(15.0, 30.0) and not bright(7.0, 15.0)
        page.clean()
