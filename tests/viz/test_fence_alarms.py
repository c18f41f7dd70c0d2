"""Fences in the viewer without a browser: alarms of bodies on the wrong side, the fences of a log at any time, and the
requests of a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.log import Log
from wavesim_viz.alarms import AlarmMonitor, BodyHealth
from wavesim_viz.fences import FenceHistory, fence_violations
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.page_content import RosterEntry
from wavesim_viz.page_protocol import FencesRequest
from wavesim_viz.requests import InvalidRequest, parse_request
from wavesim_world.config import LoadedConfig

SQUARE = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)]
BAY: dict[str, Any] = {"name": "bay", "keep": "inside", "corners": SQUARE}
WRECK: dict[str, Any] = {"name": "wreck", "keep": "outside", "corners": SQUARE}
ROSTER = [RosterEntry(0, "a", "lauv", "underwater", 1), RosterEntry(1, "b", "buoy", "buoy", 1)]
LEFT, BACK = "left the fence 'bay' (keep inside)", "entered the fence 'bay' (keep inside)"


def frame(t: float, north: float) -> ViewerFrame:
    """Vehicle a at a point, and buoy b, which is in no fence."""
    return ViewerFrame(
        t, round(10 * t), 1, bodies([0, 1], [[north, 5, 3], [99, 99, 1]], [[1, 0, 0, 0]] * 2, np.zeros((2, 3)))
    )


class Watch:
    """An alarm monitor, and what it looks at."""

    def __init__(self, *fences: dict[str, Any]) -> None:
        self.alarms, self.fences = AlarmMonitor(), list(fences)

    def look(self, t: float, north: float) -> list[tuple[str, int, bool]]:
        """Text, number of occurrences and activity of each alarm after a look at vehicle a at a point."""
        now = frame(t, north)
        self.alarms.evaluate(now, {0: "a", 1: "b"}, [], BodyHealth(fences=fence_violations(self.fences, now, ROSTER)))  # type: ignore[arg-type]
        assert all((a.kind, a.severity, a.name, a.row) == ("fence", "high", "a", 0) for a in self.alarms.all)
        return [(a.text, a.count, a.until is None) for a in self.alarms.all]

    def note(self, t: float, text: str, row: int = 0) -> None:
        self.alarms.note({"time": t, "row": row, "name": "a", "text": text})


def test_a_vehicle_on_the_wrong_side_is_an_alarm_until_it_is_back() -> None:
    """Returning is no alarm. A crossing is one occurrence, whether its notice or the frame comes first."""
    watch = Watch(BAY)
    assert watch.look(1.0, 5.0) == []
    watch.note(1.2, LEFT, row=-1)  # as in a replay
    assert [(a.text, a.until) for a in watch.alarms.all] == [(LEFT, 1.2)]
    outside = "outside the fence 'bay' (keep inside)"
    assert watch.look(1.5, 15.0) == [(outside, 1, True)]
    watch.note(2.0, BACK)
    assert watch.look(2.5, 5.0) == [(outside, 1, True)], "a short return does not end it"
    assert watch.look(13.0, 5.0) == [(outside, 1, False)] and watch.alarms.all[0].until == 2.5
    assert watch.look(14.0, 15.0) == [(outside, 2, True)]
    watch.note(13.9, LEFT)
    assert watch.look(14.5, 15.0) == [(outside, 2, True)]
    watch.note(14.8, "entered the fence 'wreck' (keep outside)")
    assert watch.alarms.all[0].count == 3, "another fence"


def test_a_crossing_between_two_looks_is_an_alarm_that_is_over() -> None:
    watch = Watch(BAY)
    watch.look(1.0, 5.0)
    watch.note(1.2, LEFT)
    watch.note(1.4, BACK)
    assert watch.look(2.0, 5.0) == [(LEFT, 1, False)] and watch.look(3.0, 15.0)[0][1:] == (2, True)


def test_alarms_follow_changed_fences() -> None:
    """Without a delay: the clock may stand still."""
    watch = Watch()
    assert watch.look(1.0, 5.0) == []
    watch.fences = [BAY, WRECK]
    watch.alarms.note_fence_change()
    assert watch.look(1.0, 5.0) == [("inside the fence 'wreck' (keep outside)", 1, True)]
    watch.fences = [BAY]
    watch.alarms.note_fence_change()
    assert watch.look(1.0, 5.0) == [("inside the fence 'wreck' (keep outside)", 1, False)]
    far = watch.look(2.0, 50.0)
    assert far == [("outside the fence 'bay' (keep inside)", 2, True)]
    assert fence_violations([BAY], frame(0.0, np.nan), ROSTER) == {}, "a body without a position"  # type: ignore[list-item]
    assert fence_violations([BAY], frame(0.0, 5.0), []) == {}  # type: ignore[list-item]


def test_a_log_has_the_fences_of_each_time(config: Callable[..., LoadedConfig]) -> None:
    corners = "".join(f'<corner north="{n} m" east="{e} m"/>' for n, e in SQUARE)
    loaded = config(f'<fleet><fence name="bay">{corners}</fence></fleet>')
    log = Log(Path("run.mcap"))
    net = {"name": "net", "keep": "outside", "corners": [0.0, 0.0, 5.0, 0.0, 5.0, 5.0]}
    orders = [(2, net), (3, {"name": "bay", "keep": "inside", "corners": []}), (4, {"name": "net", "corners": [1.0]})]
    orders += [(5, {**net, "keep": "inside"}), (6, {"name": "unknown", "corners": []})]
    log.json["/commands"] = [(0, {"sender": "", "verb": "start", "arguments": {}})]
    log.json["/commands"] += [(t * 10**9, {"sender": "", "verb": "fence", "arguments": a}) for t, a in orders]
    history = FenceHistory(log, loaded)
    assert history.at(0) == history.at(1.99e9) == [BAY]
    assert [(f["name"], f["keep"]) for f in history.at(2e9)] == [("bay", "inside"), ("net", "outside")]
    assert history.at(2e9)[1]["corners"] == [(0.0, 0.0), (5.0, 0.0), (5.0, 5.0)]
    assert [f["name"] for f in history.at(4.5e9)] == ["net"]
    assert [(f["name"], f["keep"]) for f in history.at(1e12)] == [("net", "inside")]
    assert FenceHistory(log, None).at(0) == []


def test_requests_of_a_page() -> None:
    text = json.dumps({"do": "fences", "changes": [WRECK, {"name": "bay", "keep": "inside", "corners": []}]})
    assert parse_request(text) == FencesRequest((WRECK, {"name": "bay", "keep": "inside", "corners": []}))  # type: ignore[arg-type]
    for wrong in (
        {"name": "bay"},
        {**WRECK, "corners": [[1.0]]},
        {**WRECK, "corners": [[1.0, None]]},
        {**WRECK, "keep": 3},
    ):
        with pytest.raises(InvalidRequest):
            parse_request(json.dumps({"do": "fences", "changes": [wrong]}))
