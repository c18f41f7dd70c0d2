"""After the simulation has returned to an earlier time, the viewer forgets what was later: samples, events, alarms, images."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.arrays import Record
from wavesim_sdk.attach import SharedState, simulation_tables
from wavesim_sdk.observer import FleetFrame
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import VEHICLE_TABLES, WORLD
from wavesim_sdk.wire.items import SignalSeen, TimeChanged
from wavesim_sdk.wire.messages import FLEET_DTYPE
from wavesim_server.network.front_tables import FrontTables
from wavesim_viz import remote
from wavesim_viz.alarms import AlarmMonitor, BodyHealth
from wavesim_viz.frame import NEW_RUN, HeldBodyDetector, ViewerFrame, bodies
from wavesim_viz.history import History
from wavesim_viz.image_streams import ReceivedFrames
from wavesim_viz.live import LiveSource
from wavesim_viz.page_content import Notice, RosterEntry

ROSTER = [RosterEntry(0, "a", "m", "underwater", 1), RosterEntry(1, "b", "m", "underwater", 1)]


def frame(t: float, north: float = 0.0, rows: tuple[int, ...] = (0,)) -> ViewerFrame:
    n = len(rows)
    place = np.tile((north, 0.0, 5.0), (n, 1))
    return ViewerFrame(t, round(t * 100), 1, bodies(rows, place, np.tile((1.0, 0, 0, 0), (n, 1)), np.zeros((n, 3))))


def notice(t: float, text: str = "x") -> Notice:
    return {"time": t, "row": 0, "name": "a", "text": text}


def test_the_history_ends_at_the_time_of_the_return() -> None:
    """Lines and tracks go on from there without a step back, whether or not a frame shows that time was lower."""
    for goes_on_at in (3.0, 30.0):  # 30 s: the run is so fast that no frame is earlier than the last one
        history = History()
        for t in range(21):
            history.add(frame(float(t), 10.0 * t), ROSTER, [[0, 10.0 * t, 1.0, 5.0, 0.1, 0.1, 0.1]])
        sent: Any = [{"time": 1.0}, {"time": 3.0}, {"time": 19.0}]  # at 3 s, another one will be sent
        history.add_events({"sent": sent, "receptions": sent, "notices": [notice(2.0), notice(20.0)], "missed": 0})
        before = history.tracks_version
        history.discard_after(3.0)
        assert history.tracks_version > before, "or a page that comes late would receive the old tracks"
        assert [e["time"] for kind in ("sent", "receptions", "notices") for e in history.events()[kind]] == [1, 1, 2]  # type: ignore[literal-required]
        history.add(frame(goes_on_at + 1.0, 0.5), ROSTER, [[0, 0.5, 1.0, 5.0, 0.1, 0.1, 0.1]])
        times, north = history.line(0, "motion.north")
        assert times.tolist() == [0, 1, 2, 3, goes_on_at + 1.0] and north.tolist() == [0, 10, 20, 30, 0.5]
        track = history.tracks()["0"]
        assert track["time"] == track["believed_time"] == times.tolist()


def test_a_frame_before_the_report_of_the_return_loses_nothing() -> None:
    history = History()
    for t in range(21):
        history.add(frame(float(t)), ROSTER, [])
    history.add(frame(3.1), ROSTER, [])  # the engine has returned to 3 s; its front end reports this a moment later
    history.discard_after(3.0)
    history.add(frame(3.2), ROSTER, [])
    history.add(frame(3.3), ROSTER, [])
    assert history.line(0, "motion.depth")[0].tolist() == pytest.approx([0, 1, 2, 3, 3.3])


def test_a_body_that_joins_after_the_return_has_no_earlier_line() -> None:
    history = History()
    for t in range(9):
        history.add(frame(float(t), rows=(0, 1) if t > 4 else (0,)), ROSTER if t > 4 else ROSTER[:1], [])
    history.discard_after(2.0)
    history.add(frame(6.0, rows=(0, 1)), ROSTER, [])
    assert history.line(1, "motion.depth")[0].tolist() == [6.0]
    assert history.line(0, "motion.depth")[0].tolist() == [0, 1, 2, 6]


def look(alarms: AlarmMonitor, t: float, charge: float = 1.0, error: float = 0.0) -> None:
    estimates = [[0, error, 0.0, 5.0, 1.0, 0.0, 0.1]] if error else []
    alarms.evaluate(frame(t), {0: "a"}, estimates, BodyHealth(battery={0: charge}))


def state(alarms: AlarmMonitor) -> list[tuple[str, float, float | None, int]]:
    return [(a.kind, a.since, a.until, a.count) for a in alarms.all]


def test_alarms_are_those_of_the_earlier_time() -> None:
    """The newest occurrence is taken back and the one before it restored; an alarm that had not ended is active again."""
    alarms = AlarmMonitor()
    for t in range(90):
        look(alarms, float(t), charge=0.1 if 10 <= t < 30 or t >= 60 else 1.0)
        if t == 70:
            alarms.note(notice(70.0, "hit the quay: contact"))
    alarms.note(notice(88.0, "line broke"))
    assert state(alarms) == [("battery", 60.0, None, 2), ("contact", 70.0, 70.0, 1), ("notice", 88.0, 88.0, 1)]
    version = alarms.version
    alarms.discard_after(75.0)
    assert state(alarms) == [("battery", 60.0, None, 2), ("contact", 70.0, 70.0, 1)] and alarms.version > version
    alarms.discard_after(50.0)
    assert state(alarms) == [("battery", 10.0, 30.0, 1)]
    alarms.discard_after(20.0)
    assert state(alarms) == [("battery", 10.0, None, 1)]
    for t in range(20, 45):
        look(alarms, float(t), charge=0.1 if t < 25 else 1.0)
    assert state(alarms) == [("battery", 10.0, 25.0, 1)], "it ends as the run now goes"
    look(alarms, 12.0, charge=0.1)  # a frame before the report
    assert state(alarms) == [("battery", 10.0, None, 1)]
    alarms.discard_after(NEW_RUN)
    assert not alarms.all


def test_an_alarm_is_taken_back_to_before_its_delay() -> None:
    alarms = AlarmMonitor()
    for t in range(30):
        look(alarms, float(t), error=50.0 if t >= 10 else 1.0)
    assert [(a.kind, a.since) for a in alarms.all] == [("navigation", 10.0)]
    alarms.discard_after(15.0)
    assert not alarms.all, "at 15 s, the error had lasted for 5 s only"
    for t in range(15, 21):
        look(alarms, float(t), error=50.0)
    assert [(a.kind, a.since) for a in alarms.all] == [("navigation", 10.0)]


def test_a_body_at_rest_after_a_reset_is_not_called_frozen() -> None:
    detector, moved, still = HeldBodyDetector(), np.ones((1, 3)), np.zeros((1, 3))
    for tick in range(1, 9):
        detector.update(tick, ROSTER[:1], [0], moved, moved, moved)
    assert detector.update(9, ROSTER[:1], [0], moved, still, still).tolist() == [True]
    detector.restart()
    for tick in range(3):
        assert detector.update(tick, ROSTER[:1], [0], moved, still, still).tolist() == [False]


def image(t: float) -> Any:
    return SimpleNamespace(record={"time_ns": round(t * 1e9)})


def test_images_of_the_discarded_time_are_dropped() -> None:
    stream = ReceivedFrames(lambda: None)

    def read(*times: float) -> tuple[bool, list[float]]:
        for t in times:
            stream.add(image(t))
        back, found = stream.new()
        return back, [f.record["time_ns"] * 1e-9 for f in found]

    assert read(1, 2, 3) == (False, [1, 2, 3]) and read() == (False, [])
    assert read(4, 5, 2, 3) == (True, [2, 3]) and read(3, 4) == (False, [3, 4])
    assert read(1) == (True, [1]) and read(2) == (False, [2])


# -- the sources ---------------------------------------------------------------------------------------------------


class Server:
    """The shared memory of a server, and a live source that reads it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.simulation = SharedMemoryArea.create_private(simulation_tables(2, 8, 4))
        self.vehicles = SharedMemoryArea.create_private([(t, 2) for t in (*VEHICLE_TABLES, SENSORS["ctd"])])
        world = np.zeros(1, WORLD.dtype)
        world["step_ns"] = 10_000_000
        self.simulation["world"].publish(world, 0)
        self.snapshots(-1)
        self.front = FrontTables(self.simulation, self.vehicles)
        self.tick(0)
        shared = SharedState.from_areas(self.simulation, self.vehicles)
        monkeypatch.setattr(shared, "alive", lambda: True)
        monkeypatch.setattr("wavesim_viz.live.SharedState", lambda name: shared)

        class Commander:
            def __init__(self, name: str) -> None: ...
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *error: object) -> None: ...
            def send(self, verb: str) -> Any:
                return SimpleNamespace(data={"configuration": "/nowhere.xml", "digest": ""})

        monkeypatch.setattr("wavesim_viz.live.Commander", Commander)
        self.source = LiveSource("x")

    def tick(self, tick: int) -> None:
        for area, name in ((self.vehicles, "state"), (self.vehicles, "actuation"), (self.simulation, "weather")):
            area[name].publish(np.zeros(area[name].capacity, area[name].dtype), tick)

    def snapshots(self, *times_ns: int) -> None:
        rows: Record = np.zeros(4, self.simulation["snapshots"].dtype)
        rows["time_ns"] = -1
        rows["time_ns"][: len(times_ns)] = times_ns
        self.simulation["snapshots"].publish(rows, 0)

    def note(self, t: float, text: str) -> None:
        self.front.notice(round(t * 1e9), 0, "a", text)

    def read(self) -> tuple[float | None, list[str]]:
        """What one frame and its events report."""
        found = self.source.frame()
        assert found is not None and found.jumped == (found.returned_s is not None)
        sounds = self.source.new_signals()
        return found.returned_s, [n["text"] for n in sounds["notices"]] if sounds else []


def test_a_live_source_separates_events_before_a_return_from_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)
    server.tick(900)
    server.note(8.0, "old")
    server.front.flush(900)
    assert server.read() == (None, ["old"])
    server.note(8.9, "discarded, not read")
    server.front.time_change(5_000_000_000, 9_000_000_000, 500)
    server.note(5.1, "new")
    server.front.flush(510)
    assert server.read() == (5.0, ["new"]), "the event of the discarded time is left out, whatever the new time is"
    assert server.read() == (None, [])
    server.front.time_change(6_000_000_000, 9_000_000_000, 600)
    server.front.time_change(2_000_000_000, 9_000_000_000, 200)
    assert server.read()[0] == 0.0, "of two returns, the earlier time is unknown"
    server.snapshots(1_000_000_000, 2_000_000_000)
    assert server.source.weather()["snapshots"] == [1.0, 2.0]


def test_a_server_that_restarts_is_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)
    assert server.read()[0] is None
    server.source._attach()
    assert server.read()[0] == NEW_RUN and server.read()[0] is None


def test_a_remote_source_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Returns are not lost between two frames of the hub, and signals of the discarded time are not sent to pages."""
    link = SimpleNamespace(close=lambda: None)
    observer = SimpleNamespace(names={0: "a"}, models={0: "m"}, link=link, poll=lambda wait: [])
    monkeypatch.setattr(remote.RemoteSource, "_join", lambda self: observer)
    source = remote.RemoteSource(("127.0.0.1", 1), 20.0)

    def arrive(t: float, *changes: float, signals: tuple[float, ...] = ()) -> None:
        seen = [SignalSeen(k, 0, 0, round(s * 1e9), 25e3, 180.0, (0.0, 0.0, 5.0)) for k, s in enumerate(signals)]
        back = [TimeChanged(round(c * 1e9), 0) for c in changes]
        record = np.zeros(1, FLEET_DTYPE)
        source._handle_snapshot(FleetFrame(round(t * 100), round(t * 1e9), 1, record, True, seen, [], back))

    def returned() -> float | None:
        found = source.frame()
        assert found is not None and found.jumped == (found.returned_s is not None)
        return found.returned_s

    try:
        arrive(8.0, signals=(7.0, 8.0))
        assert returned() is None
        arrive(9.0, signals=(8.5, 3.0))
        arrive(5.0, 7.0, 5.0, signals=(5.0,))
        arrive(6.0, 5.5)
        assert returned() == 5.0 and returned() is None
        sounds = source.new_signals()
        assert sounds is not None and [s["time"] for s in sounds["sent"]] == [3.0, 5.0]
        source._rejoined = True
        arrive(9.0)
        assert returned() is None, "the same run goes on"
        source._rejoined = True
        arrive(1.0)
        assert returned() == NEW_RUN, "a change of time may have been missed while the session was lost"
    finally:
        source.close()
