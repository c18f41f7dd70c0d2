"""Time series for charts. For a log, they cover its whole length. For a server, they begin when its viewer starts.

A *line* is ``ROW/KEY``; the page uses the same keys: ``motion.depth``, ``nav.error``, ``actuator.NAME``,
``actuator.NAME:command``, ``sensor.NAME.FIELD.NUMBER``, ``force.PART.AXIS``. Values are in SI units, angles of
``motion`` in degrees; a missing value is None.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.log import Log
from wavesim_sdk.tables import ACTUATION, EFFORT, ESTIMATE, STATE
from wavesim_viz.page_protocol import ChartData
from wavesim_viz.xml_trees import RequestFailed

ChartSeries = tuple[Floats, Floats]  #: times of a line in s, and the values of the line at these times
EMPTY_SERIES: ChartSeries = (np.zeros(0), np.zeros(0))
AXES = ("X", "Y", "Z", "K", "M", "N")
MOST_LINES, MOST_POINTS = 16, 20_000
#: maximum product of the number of lines and the number of points in a request; a larger request would delay frames
MOST_VALUES = 64_000
MISSING = 10  #: a line has a gap if it has no value for more than this number of sampling intervals
ABSURD = 1e12  #: magnitude above which a chart draws a value as a gap


def motion_series(key: str, p: Floats, q: Floats, speed: Floats) -> Floats:
    """Compute a motion quantity of a body from columns of positions, attitudes and velocities over ground."""
    match key:
        case "north" | "east" | "depth":
            return p[:, ("north", "east", "depth").index(key)]
        case "speed":
            return speed
        case "roll" | "pitch" | "heading":
            with np.errstate(invalid="ignore"):
                angle = np.degrees(frames.ANGLES[key](q))
            return np.asarray(angle % 360.0 if key == "heading" else angle)
    raise RequestFailed(f"unknown motion quantity '{key}'")


def navigation_series(key: str, true: Floats, believed: Floats, sigma: Floats) -> Floats:
    """Compute a navigation quantity. ``error`` is the horizontal distance between estimate and truth. ``vertical`` is
    the estimated minus the true depth. ``sigma`` is the horizontal standard deviation that the navigator reports:
    sqrt(north^2 + east^2).
    """
    match key:
        case "error":
            return np.hypot(believed[:, 0] - true[:, 0], believed[:, 1] - true[:, 1])
        case "vertical":
            return np.asarray(believed[:, 2] - true[:, 2])
        case "sigma":
            return np.hypot(sigma[:, 0], sigma[:, 1])
    raise RequestFailed(f"unknown navigation quantity 'nav.{key}'")


class LogSeries:
    """Chart lines for a log."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def line(self, body: str, key: str, actuators: Sequence[str]) -> ChartSeries:
        """Return a line of a body. The line is empty if the log does not have the data."""
        kind, _, rest = key.partition(".")
        if body not in self.log.names:
            return EMPTY_SERIES
        match kind:
            case "motion":
                s = self.log.get(f"/state/{body}", STATE)
                p, q, v = (s.records[n] for n in ("p_WB_W", "q_WB", "v_WB_B"))
                return _seconds(s.time_ns), motion_series(rest, p, q, np.sqrt(np.einsum("ij,ij->i", v, v)))
            case "nav":
                return self._navigation(body, rest)
            case "actuator":
                name, command = rest.removesuffix(":command"), rest.endswith(":command")
                s = self.log.get(f"/actuation/{body}", ACTUATION)
                if name not in actuators:
                    return EMPTY_SERIES
                return _seconds(s.time_ns), s.records["command" if command else "actual"][:, actuators.index(name)]
            case "force":
                part, _, axis = rest.partition(".")
                s = self.log.get(f"/effort/{body}", EFFORT)
                if axis not in AXES or part not in (s.records.dtype.names or ()):
                    return EMPTY_SERIES
                return _seconds(s.time_ns), s.records[part][:, AXES.index(axis)]
            case "sensor":
                return self._sensor(body, rest)
        raise RequestFailed(f"unknown line '{key}'")

    def _navigation(self, body: str, key: str) -> ChartSeries:
        believed, true = self.log.get(f"/estimate/{body}", ESTIMATE), self.log.get(f"/state/{body}", STATE)
        _, i, k = np.intersect1d(believed.time_ns, true.time_ns, return_indices=True)
        b = believed.records[i]
        return _seconds(believed.time_ns[i]), navigation_series(key, true.records["p_WB_W"][k], b["p_WB_W"], b["sigma"])

    def _sensor(self, body: str, rest: str) -> ChartSeries:
        name, _, tail = rest.rpartition(".")
        name, _, field = name.rpartition(".")
        s = self.log.sensors(body).get(name)
        if s is None or field not in (s.records.dtype.names or ()) or not tail.isdecimal():
            return EMPTY_SERIES
        values = s.records[field].reshape(len(s.records), -1)
        if int(tail) >= values.shape[1]:
            return EMPTY_SERIES
        return _seconds(s.records["time_ns"]), np.where(s.records["valid"] != 0, values[:, int(tail)], np.nan)


def _seconds(time_ns: Any) -> Floats:
    return np.asarray(time_ns, float) * 1e-9


def aligned(lines: Sequence[ChartSeries], since: float, until: float, points: int) -> ChartData:
    """Resample the lines of one chart to common times. These are the times of the first line and, before its start and
    after its end, the times of the other lines. At each of these times, each line has its newest value. If the
    number of times exceeds ``points``, each line keeps the minimum and maximum of each interval, so that peaks are not
    lost.
    """
    times = np.zeros(0)
    for t, _ in lines:
        times = np.concatenate([t[t < times[0]], times, t[t > times[-1]]]) if len(times) else t
    if len(holes := _gap_times(times)):
        times = np.sort(np.concatenate([times, holes]))
    a, b = np.searchsorted(times, [since, until])
    a, b = max(int(a) - 1, 0), min(int(b) + 1, len(times))
    times = times[a:b]
    columns = [_newest_at(times, line) for line in lines]
    reduced = len(times) > points > 0
    if reduced:
        keep = np.unique(np.concatenate([_extreme_indices(c, points) for c in columns]))
        times, columns = times[keep], [c[keep] for c in columns]
    return {"time": times.round(6).tolist(), "values": [_plain(c) for c in columns], "reduced": reduced}


def _gap_times(t: Floats) -> Floats:
    """Return a time within each gap of a line. The chart receives a missing value there, so that no straight line
    bridges the gap.
    """
    if len(t) < 3:
        return np.zeros(0)
    apart = np.diff(t)
    step = float(np.median(apart))
    return np.asarray(t[:-1][apart > (MISSING + 1) * step] + (MISSING + 0.5) * step)


def _newest_at(times: Floats, line: ChartSeries) -> Floats:
    """Return the newest value of a line at each time. The result is NaN before the first value, after the last value,
    and in gaps.
    """
    t, v = line
    if len(t) == len(times) and np.array_equal(t, times):
        return np.asarray(v, float)
    if not len(t):
        return np.full(len(times), np.nan)
    k = np.searchsorted(t, times + 1e-9, "right") - 1
    step = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    fresh = times - t[np.maximum(k, 0)] <= np.where(k < len(t) - 1, MISSING, 1) * step + 1e-9
    return np.where((k >= 0) & fresh, np.asarray(v, float)[np.maximum(k, 0)], np.nan)


def _extreme_indices(v: Floats, points: int) -> Ints:
    """Divide the values into equal intervals. Return the indices of the first, the minimum and the maximum value of
    each interval.
    """
    size = max(1, math.ceil(3 * len(v) / points))
    n = len(v) // size * size
    whole, starts = v[:n].reshape(-1, size), np.arange(0, n, size)
    low = np.where(np.isfinite(whole), whole, np.inf).argmin(axis=1)
    high = np.where(np.isfinite(whole), whole, -np.inf).argmax(axis=1)
    return np.concatenate([starts, starts + low, starts + high, [len(v) - 1]])


def _plain(v: Floats) -> list[float | None]:
    with np.errstate(invalid="ignore"):
        good = np.abs(v) < ABSURD
    return [float(f"{x:.7g}") if ok else None for x, ok in zip(v.tolist(), good.tolist(), strict=True)]
