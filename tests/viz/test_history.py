"""Lines of charts, the history for late viewers, and alarms, without a browser."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.mission_status import MissionStatus
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
        {
            "sent": [],
            "receptions": [{"id": k, "time": 9.0} for k in range(9999)],
            "notices": [{"text": "x", "time": 9.0}],
            "missed": 0,
        }
    )
    events = history.events()
    assert (
        events["receptions"][-1]["id"] == 9998
        and len(events["receptions"]) < 2000
        and events["notices"] == [{"text": "x", "time": 9.0}]
    )
    history.add(frame(0.0, (0.0, 0.0, 1.0)), roster, [])
    assert len(history.moments) == 1 and not history.events()["notices"]


def kinds(alarms: AlarmMonitor, lasting: bool = True) -> list[tuple[str, str]]:
    return [(a.kind, a.name) for a in alarms.all if (a.until is None) is lasting]


class Watch:
    """An alarm monitor, and what it looks at."""

    def __init__(self, rules: AlarmRules | None = None) -> None:
        self.alarms = AlarmMonitor(rules)

    def look(self, t: float, error: float = 0.0, vitals: BodyHealth | None = None, depth: float = 5.0) -> None:
        """One look at body a, whose navigator is so many m off and states 1 m, and at body b."""
        belief = [0, error, 0.0, depth, 1.0, 0.0, 0.1]
        now = frame(t, (0.0, 0.0, depth), (9.0, 9.0, 9.0))
        self.alarms.evaluate(now, {0: "a", 1: "b"}, [belief] if error else [], vitals or BodyHealth())

    @property
    def active(self) -> list[tuple[str, str]]:
        return kinds(self.alarms)


def test_alarms_come_and_go() -> None:
    watch = Watch()
    alarms = watch.alarms
    watch.look(1.0)
    assert alarms.all == [] and alarms.version == 1
    watch.look(2.0, depth=-1e25)
    assert watch.active == [("faulted", "a")] and alarms.all[0].severity == "high"
    vitals = BodyHealth({0: 4.0, 1: 0.1}, {1}, {(0, n): 9.0 for n in ("gps", "ctd", "dvl", "usbl")}, {1: 0.1})
    watch.look(3.0, 30.0, vitals)
    assert watch.active == [("faulted", "a"), ("silent", "b"), ("silent", "a"), ("battery", "b")]
    watch.look(13.0, 30.0, vitals)
    assert watch.active[3:] == [("stale", "a"), ("navigation", "a")] and kinds(alarms, False) == [("faulted", "a")]
    assert [a.severity for a in alarms.all[-2:]] == ["medium", "medium"] and "30.0 m" in alarms.all[-1].text
    assert "'gps'" in alarms.all[-2].text and alarms.all[-2].text.endswith("; and 1 more"), "one alarm for a body"
    version = alarms.version
    watch.look(14.0)
    watch.look(24.0)
    assert watch.active == [] and alarms.version > version and alarms.all[-1].until == 14.0
    alarms.note({"time": 4.5, "row": 0, "name": "a", "text": "left the fence 'bay' (keep inside)"})
    assert kinds(alarms, lasting=False)[-1] == ("fence", "a") and alarms.all[-1].seen is False
    assert alarms.acknowledge(alarms.all[-1].id) and not alarms.acknowledge(alarms.all[-1].id)
    assert alarms.acknowledge(None) and all(a.seen for a in alarms.all) and not alarms.acknowledge(None)
    for k in range(1000):
        alarms.note({"time": 5.0 + k, "row": 0, "name": "a", "text": f"x{k}"})
    assert len(alarms.all) <= 300
    watch.look(0.5)
    assert alarms.all == [], "time began anew"


def test_normal_operation_is_no_alarm() -> None:
    """Progress of missions and accepted commands are notices only."""
    watch = Watch()
    routine = (
        str(MissionStatus("mission", 2, 6, (180.0, -120.0))),
        "goto: accepted",
        "return: accepted: 3 min",
        "accepts a mission of 6 waypoint(s)",
    )
    others = ["goto: refused: beyond the fence", "left the fence 'bay' (keep inside)"]
    for text in (*routine, *others):
        watch.alarms.note({"time": 1.0, "row": 0, "name": "a", "text": text})
    assert [a.text for a in watch.alarms.all] == others


def test_a_condition_must_last_and_be_over_for_a_time() -> None:
    """Delay: short excursions are no alarms, and short returns do not end one. Dead band: a value just within its limit
    does not end it either."""
    watch = Watch(AlarmRules(navigation=10.0, sigmas=0, delay=10.0, band=0.2))
    for t in range(0, 60, 4):  # nine seconds beyond the limit, again and again
        watch.look(t, 12.0 if t % 12 < 8 else 5.0)
        assert watch.alarms.all == []
    for t in range(60, 71):
        watch.look(t, 12.0)
    (alarm,) = watch.alarms.all
    assert alarm.since == 60.0 and alarm.until is None
    for t, error in ((72, 9.0), (90, 9.0), (92, 7.0), (95, 12.0), (96, 7.0), (105, 7.0)):
        watch.look(t, error)
        assert alarm.until is None, (t, error)
    watch.look(106, 7.0)
    assert alarm.until == 96.0
    charge = Watch(AlarmRules(battery=0.2, band=0.2, delay=1.0))
    for t, fraction in enumerate((0.19, 0.21, 0.23, 0.19, 0.22)):
        charge.look(t, vitals=BodyHealth(battery={0: fraction}))
        assert charge.active == [("battery", "a")], "noise about the limit"
    for t in (10, 12):
        charge.look(t, vitals=BodyHealth(battery={0: 0.25}))
    assert charge.active == []


def test_occurrences_of_one_alarm_are_counted_in_one_row() -> None:
    watch = Watch(AlarmRules(delay=1.0))
    gone = BodyHealth(removed={1})
    for k in range(5):
        watch.look(10.0 * k, vitals=gone)
        watch.look(10.0 * k + 4)
        watch.look(10.0 * k + 6)
        assert watch.alarms.acknowledge(None), "a new occurrence must be acknowledged again"
        watch.alarms.note({"time": 10.0 * k, "row": 1, "name": "b", "text": "left the fence 'bay' (keep inside)"})
    silent, fence = watch.alarms.all
    assert (silent.kind, silent.count, silent.since, silent.until) == ("silent", 5, 40.0, 44.0)
    assert (fence.kind, fence.count) == ("fence", 5)


def test_a_shelved_alarm_comes_back() -> None:
    """It is quiet for a time, whatever it does; it is unacknowledged again when the time is over, or on request."""
    watch = Watch(AlarmRules(delay=1.0))
    gone = BodyHealth(removed={1})
    watch.look(0.0, vitals=gone)
    (alarm,) = watch.alarms.all
    assert watch.alarms.shelve(alarm.id, 60.0) and not watch.alarms.shelve(alarm.id + 1, 60.0)
    assert alarm.shelved == 60.0 and alarm.seen
    for t in (10.0, 12.0, 14.0, 59.0):
        watch.look(t, vitals=gone if t in (14.0, 59.0) else None)
        assert alarm.shelved == 60.0 and alarm.seen
    watch.look(60.0, vitals=gone)
    assert alarm.shelved is None and not alarm.seen and alarm.until is None
    watch.alarms.shelve(alarm.id, 60.0)
    watch.alarms.shelve(alarm.id, 0.0)
    assert alarm.shelved is None and not alarm.seen


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
