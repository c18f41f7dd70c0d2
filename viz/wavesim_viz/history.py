"""History of a server since its viewer was started, for charts and for pages that connect late."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wavesim_viz.chart_series import EMPTY_SERIES, ChartSeries, motion_series, navigation_series
from wavesim_viz.frame import INVALID, Array, ViewerFrame, to_json_value
from wavesim_viz.page_content import (
    Notice,
    Numbers,
    RosterEntry,
    SentSignal,
    SignalEvents,
    SignalReception,
    TrackPoints,
)

MAX_SAMPLES, FIRST_S = (
    1500,
    0.25,
)  #: maximum number of samples, and initial interval between samples in s, which is doubled when the maximum is reached
MOST_SENT, MOST_RECEPTIONS, MOST_NOTICES = 400, 1600, 400
TRACK_POINTS = 60_000  #: maximum total number of points in all tracks


class HistorySource(Protocol):
    """History for charts and for pages that connect late. For a server, it is the viewer's own record; for a replay, it
    is the log.
    """

    tracks_version: int  #: a number that changes whenever the tracks change

    def events(self) -> SignalEvents:
        """Return the newest signals and notices, in the form of the ``sounds`` message."""

    def tracks(self) -> dict[str, TrackPoints]:
        """Return the tracks so far, by row: times and positions, and the navigator's estimates."""

    def line(self, row: int, key: str) -> ChartSeries:
        """Return a chart line of a body (see ``chart_series.py``)."""


@dataclass
class MotionSample:
    """Sample of the history: the bodies of one frame, and [row, estimate (3), sigma (3)] of each navigator."""

    time: float
    bodies: Array
    beliefs: Array

    def body(self, row: int) -> Any:
        found = np.flatnonzero(self.bodies[:, 0] == row)
        return self.bodies[found[0]] if len(found) and self.bodies[found[0], 9] != INVALID else None

    def belief(self, row: int) -> Any:
        found = np.flatnonzero(self.beliefs[:, 0] == row)
        return self.beliefs[found[0]] if len(found) else None


class History:
    """Record of samples and of the newest events. If there are too many samples, every second one is dropped."""

    def __init__(self) -> None:
        self.tracks_version = 0
        self.clear()

    def clear(self) -> None:
        """Clear everything."""
        self.moments: list[MotionSample] = []
        self._every = FIRST_S
        self._since: dict[int, tuple[Any, float]] = {}  # row -> body in it, and since when
        self._sent: deque[SentSignal] = deque(maxlen=MOST_SENT)
        self._heard: deque[SignalReception] = deque(maxlen=MOST_RECEPTIONS)
        self._notices: deque[Notice] = deque(maxlen=MOST_NOTICES)

    def discard_after(self, time_s: float) -> None:
        """Discard everything that is later than the time to which the simulation has returned."""
        self.tracks_version += 1
        self.moments = [m for m in self.moments if m.time <= time_s]
        self._since = {row: entry for row, entry in self._since.items() if entry[1] <= time_s}
        for events in (self._sent, self._heard, self._notices):
            kept = [e for e in events if e["time"] < time_s]  # events at this time occur again
            events.clear()
            events.extend(kept)  # type: ignore[arg-type]  # the same kind of event
        if not self.moments:
            self._every = FIRST_S

    def add(self, frame: ViewerFrame, roster: Sequence[RosterEntry], beliefs: Sequence[Numbers]) -> None:
        """Add a sample if enough time has passed since the last sample."""
        if self.moments and frame.time_s < self.moments[-1].time:
            self.discard_after(frame.time_s)  # the frame precedes the report of the time change
        if self.moments and frame.time_s - self.moments[-1].time < self._every:
            return
        for row, name, model, _, generation in roster:
            if self._since.get(row, (None,))[0] != (name, model, generation):
                self._since[row] = ((name, model, generation), frame.time_s)
        believed = np.array(beliefs, np.float32).reshape(-1, 7)
        self.tracks_version += 1
        self.moments.append(MotionSample(frame.time_s, frame.bodies, believed))
        if len(self.moments) > MAX_SAMPLES:
            self.moments = self.moments[::2]
            self._every *= 2.0

    def add_events(self, sounds: SignalEvents) -> None:
        """Add events from a source."""
        self._sent.extend(sounds["sent"])
        self._heard.extend(sounds["receptions"])
        self._notices.extend(sounds["notices"])

    def events(self) -> SignalEvents:
        return {"sent": list(self._sent), "receptions": list(self._heard), "notices": list(self._notices), "missed": 0}

    def _of(self, row: int) -> list[MotionSample]:
        since = self._since.get(row, (None, 0.0))[1]
        return [m for m in self.moments if m.time >= since and m.body(row) is not None]

    def line(self, row: int, key: str) -> ChartSeries:
        kind, _, rest = key.partition(".")
        found = self._of(row)
        if kind == "nav":
            found = [m for m in found if m.belief(row) is not None]
        if not found or kind not in ("motion", "nav"):
            return EMPTY_SERIES
        times, b = np.array([m.time for m in found]), np.array([m.body(row) for m in found], float)
        if kind == "motion":
            return times, motion_series(rest, b[:, 1:4], b[:, 4:8], b[:, 8])
        e = np.array([m.belief(row) for m in found], float)
        return times, navigation_series(rest, b[:, 1:4], e[:, 1:4], e[:, 4:7])

    def tracks(self) -> dict[str, TrackPoints]:
        rows = {int(r) for m in self.moments[-1:] for r in m.bodies[:, 0]}
        thin = max(1, -(-len(rows) * len(self.moments) // TRACK_POINTS))
        points: dict[str, TrackPoints] = {}
        for row in rows:
            found = self._of(row)[::thin]
            believed = [(m.time, b[1:4]) for m in found if (b := m.belief(row)) is not None and np.isfinite(b[1])]
            points[str(row)] = {
                "time": [round(m.time, 3) for m in found],
                "position": to_json_value(np.array([m.body(row)[1:4] for m in found], float).round(3).ravel()),
                "believed_time": [round(t, 3) for t, _ in believed],
                "believed": to_json_value(np.array([p for _, p in believed], float).round(3).ravel()),
            }
        return points
