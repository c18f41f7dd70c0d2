"""Lines of charts, the history for late viewers, and alarms, without a browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, EFFORT, ESTIMATE, STATE
from wavesim_viz.alarms import AlarmMonitor, AlarmRules, BodyHealth
from wavesim_viz.chart_series import ChartSeries, LogSeries, aligned
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.history import MAX_SAMPLES, History
from wavesim_viz.xml_trees import RequestFailed


def log_of(n: int) -> Log:
    """A body that dives and turns, its navigator 3 m east and 4 m north of it, a CTD at half the rate."""
    t = np.arange(n) * 100_000_000
    state, estimate = np.zeros(n, STATE.dtype), np.zeros(n // 2, ESTIMATE.dtype)
    half = 0.5 * np.radians(np.arange(n) % 360)
    state["p_WB_W"][:, 2] = np.arange(n)
    state["q_WB"][:, 0], state["q_WB"][:, 3] = np.cos(half), np.sin(half)
    state["v_WB_B"] = (3.0, 4.0, 0.0)
    estimate["p_WB_W"] = state["p_WB_W"][::2] + (4.0, 3.0, -0.5)
    estimate["sigma"] = (0.3, 0.4, 0.1)
    acting, effort, ctd = (
        np.zeros(n, ACTUATION.dtype),
        np.zeros(n, EFFORT.dtype),
        np.zeros(n, SENSORS["ctd"].visible.dtype),
    )
    acting["actual"][:, 1], acting["command"][:, 1], effort["drag"][:, 4] = 7.0, 8.0, -2.0
    ctd["time_ns"], ctd["valid"], ctd["temperature"] = t, np.arange(n) % 2, 11.5
    series = {"/state/a": Series(t, state), "/estimate/a": Series(t[::2], estimate), "/actuation/a": Series(t, acting)}
    return Log(Path("x"), series=series | {"/effort/a": Series(t, effort), "/sensor/a/my.ctd": Series(t, ctd, "ctd")})


def test_lines_of_a_log() -> None:
    lines = LogSeries(log_of(720))

    def line(key: str) -> ChartSeries:
        return lines.line("a", key, ["rudder", "fin.top"])

    assert line("motion.depth")[1].tolist() == list(range(720)) and line("motion.depth")[0][10] == pytest.approx(1.0)
    assert line("motion.heading")[1] == pytest.approx(np.arange(720) % 360, abs=1e-6)
    assert set(line("motion.speed")[1]) == {5.0}
    assert line("nav.error")[1] == pytest.approx(np.full(360, 5.0)) and line("nav.sigma")[1] == pytest.approx(
        np.full(360, 0.5)
    )
    assert line("nav.vertical")[1] == pytest.approx(np.full(360, -0.5))
    assert set(line("actuator.fin.top")[1]) == {7.0} and set(line("actuator.fin.top:command")[1]) == {8.0}
    assert set(line("force.drag.M")[1]) == {-2.0}
    temperature = line("sensor.my.ctd.temperature.0")[1]
    assert np.isnan(temperature[::2]).all() and set(temperature[1::2]) == {11.5}, "what is not valid is a gap"
    for nothing in (
        "actuator.none",
        "force.drag.Q",
        "force.none.X",
        "sensor.none.temperature.0",
        "sensor.my.ctd.temperature.9",
    ):
        assert not len(line(nothing)[0])
    for wrong in ("speed", "motion.colour", "nav.none"):
        with pytest.raises(RequestFailed):
            line(wrong)


def test_no_peak_is_lost() -> None:
    """Of 100 000 values 600 are sent, the least and the greatest among them; gaps stay gaps; lines share their times."""
    t = np.arange(100_000) * 0.01
    v = np.sin(t)
    v[77_777], v[12_345], v[500:700] = 50.0, -40.0, np.nan
    other = (t[::10] + 0.001, np.arange(10_000.0))
    found = aligned([(t, v), other, (np.zeros(0), np.zeros(0))], -math.inf, math.inf, 600)
    first, second, empty = found["values"]
    assert len(found["time"]) == len(first) == len(second) < 2000 and set(empty) == {None}
    assert (
        max(x for x in first if x is not None) == 50.0
        and min(x for x in first if x is not None) == -40.0
        and None in first
    )
    at = found["time"].index(777.77)
    assert first[at] == 50.0 and second[at] == 7777.0, "the newest value of the other line"
    near = aligned([(t, v)], 777.0, 778.0, 600)
    assert near["time"][0] >= 776.98 and near["time"][-1] <= 778.02 and len(near["time"]) > 95
    absurd = aligned([(t[:2], np.array([1e25, 1.0]))], -math.inf, math.inf, 10)
    assert absurd["values"] == [[None, 1.0]]


def test_nothing_is_drawn_where_nothing_was() -> None:
    """A line that ends before another, or begins later, is not drawn on; nor over a time without values; the chart holds all of both."""
    t, nan = np.arange(0.0, 5.0), None
    late = (np.array([3.0, 4.0, 5.0, 6.0, 7.0]), np.arange(5.0))
    found = aligned([(t, t), late], -math.inf, math.inf, 600)
    assert found["time"] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert found["values"] == [[0, 1, 2, 3, 4, 4, nan, nan], [nan, nan, nan, 0, 1, 2, 3, 4]]
    assert aligned([late, (t, t)], -math.inf, math.inf, 600)["values"][::-1] == found["values"], "in any order"
    every = np.arange(0.0, 60.0)
    gone = np.concatenate([every[:20], every[40:]])  # it left and came back
    (_, there) = aligned([(every, every), (gone, gone)], -math.inf, math.inf, 600)["values"]
    assert there[25] == 19 and there[31:40] == [nan] * 9 and there[40] == 40
    alone = aligned([(gone, gone)], -math.inf, math.inf, 600)
    assert alone["values"][0][19:22] == [19, nan, 40] and 19 < alone["time"][20] < 40, "no straight line over it"


def frame(time: float, *places: tuple[float, float, float], held: bool = False) -> ViewerFrame:
    n = len(places)
    return ViewerFrame(time, int(time * 10), 1, bodies(range(n), places, [[1, 0, 0, 0]] * n, np.ones((n, 3)), held))


def test_a_late_viewer_gets_what_was() -> None:
    """Evenly thinned; a body that takes another's row begins anew; time that goes back too."""
    history, roster = History(), [[0, "a", "m", "underwater", 1], [1, "b", "m", "underwater", 1]]
    for k in range(10 * MAX_SAMPLES):
        if k == 5 * MAX_SAMPLES:
            roster = [roster[0], [1, "c", "m", "underwater", 2]]
        history.add(frame(k * 0.3, (k, 0.0, 5.0), (0.0, k, 6.0)), roster, [[0, k + 3.0, 4.0, 5.0, 0.1, 0.1, 0.1]])
    assert len(history.moments) <= MAX_SAMPLES
    times, depth = history.line(0, "motion.depth")
    steps = np.diff(times)
    assert times[0] == 0.0 and steps.max() < 2.1 * steps.min() and set(depth) == {5.0}
    assert history.line(0, "nav.error")[1] == pytest.approx(np.full(len(times), 5.0), abs=1e-3)
    assert history.line(1, "motion.east")[0][0] >= 5 * MAX_SAMPLES * 0.3 - 1e-9, "not its forerunner's"
    tracks = history.tracks()
    assert tracks["0"]["position"][:3] == [0.0, 0.0, 5.0] and len(tracks["0"]["believed"]) == 3 * len(
        tracks["0"]["time"]
    )
    history.add_events(
        {"sent": [], "receptions": [{"id": k} for k in range(9999)], "notices": [{"text": "x"}], "missed": 0}
    )
    told = history.events()
    assert (
        told["receptions"][-1] == {"id": 9998} and len(told["receptions"]) < 2000 and told["notices"] == [{"text": "x"}]
    )
    history.add(frame(0.0, (0.0, 0.0, 1.0)), roster, [])
    assert len(history.moments) == 1 and not history.events()["notices"]


def kinds(alarms: AlarmMonitor, lasting: bool = True) -> list[tuple[str, str]]:
    return [(a.kind, a.name) for a in alarms.all if (a.until is None) is lasting]


def test_alarms_come_and_go() -> None:
    alarms, names = AlarmMonitor(), {0: "a", 1: "b"}

    def look(
        t: float, beliefs: Sequence[list[float]] = (), vitals: BodyHealth | None = None, depth: float = 5.0
    ) -> None:
        alarms.evaluate(frame(t, (0.0, 0.0, depth), (9.0, 9.0, 9.0)), names, beliefs, vitals or BodyHealth())

    look(1.0)
    assert alarms.all == [] and alarms.version == 1
    look(2.0, depth=-1e25)
    assert kinds(alarms) == [("faulted", "a")]
    look(
        3.0,
        [[0, 30.0, 0.0, 5.0, 0.1, 0.1, 0.1], [1, 9.0, 12.0, 9.0, 0.2, 0.2, 0.2]],
        BodyHealth(silent={0: 4.0, 1: 0.1}, removed={1}, stale={(0, "gps"): 9.0}, battery={1: 0.1}),
    )
    assert kinds(alarms) == [
        ("silent", "b"),
        ("silent", "a"),
        ("stale", "a"),
        ("battery", "b"),
        ("navigation", "a"),
        ("navigation", "b"),
    ]
    assert kinds(alarms, lasting=False) == [("faulted", "a")]
    assert "30.0 m" in alarms.all[-2].text and "3.0 m is 11 times" in alarms.all[-1].text
    version = alarms.version
    look(4.0)
    assert kinds(alarms) == [] and alarms.version > version and alarms.all[-1].until == 4.0
    alarms.note({"time": 4.5, "row": 0, "name": "a", "text": "left the fence 'bay'"})
    assert kinds(alarms, lasting=False)[-1] == ("fence", "a") and alarms.all[-1].seen is False
    assert alarms.acknowledge(alarms.all[-1].id) and not alarms.acknowledge(alarms.all[-1].id)
    assert alarms.acknowledge(None) and all(a.seen for a in alarms.all) and not alarms.acknowledge(None)
    for k in range(1000):
        alarms.note({"time": 5.0 + k, "row": 0, "name": "a", "text": "x"})
    assert len(alarms.all) <= 300
    look(0.5)
    assert alarms.all == [], "time began anew"


def test_rules_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "alarms.toml"
    path.write_text("navigation = 2.5\nbattery = 0\n")
    rules = AlarmRules.read(path)
    assert (rules.navigation, rules.battery, rules.silent) == (2.5, 0, AlarmRules().silent)
    alarms = AlarmMonitor(AlarmRules(0, 0, 0, 0, 0))
    alarms.evaluate(
        frame(1.0, (0.0, 0.0, 5.0)),
        {},
        [[0, 99.0, 0.0, 0.0, 0.0, 0.0, 0.0]],
        BodyHealth({0: 99.0}, set(), {(0, "x"): 99.0}, {0: 0.0}),
    )
    assert alarms.all == [], "0 = never"
    for text, message in (
        ("speed = 1", "unknown alarm rule 'speed'; known rules: silent"),
        ("silent = -1", "expected a number >= 0"),
        ("silent = true", "a number"),
        ("silent = nan", "a number"),
        ("x", "cannot read the alarm rules"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            AlarmRules.read(path)
    with pytest.raises(ConfigError, match="cannot read the alarm rules"):
        AlarmRules.read(tmp_path / "absent.toml")
