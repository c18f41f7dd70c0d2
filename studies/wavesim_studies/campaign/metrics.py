"""Metrics: values computed for one run from its log or from an engine that ran in the worker."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.guidance import encounters
from wavesim_sdk.log import Log
from wavesim_sdk.named_objects import described, run_file
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import ACTUATION, RECEPTION, SENT, STATE, Outcome
from wavesim_server.logbook import report
from wavesim_studies.campaign import sources
from wavesim_studies.campaign.schema import Metric
from wavesim_world.config import BodyConfig, LoadedConfig

__all__ = [
    "CampaignMetric",
    "MetricType",
    "RunResult",
    "closest",
    "contacts",
    "cross_track_rms",
    "dead_reckoning_end",
    "depth_end",
    "distance",
    "heard",
    "lost",
    "navigation_end",
    "navigation_max",
    "navigation_rms",
    "nees",
    "percent_of_distance",
    "propulsion",
    "range_bias",
    "range_rms",
    "ranges",
    "speed",
    "straight_line_bias",
    "straight_line_max",
    "time_to_complete",
    "waypoints",
]

Track = tuple[Any, Record]  #: tracks of the bodies: times in s, and rows in the `state` table


@dataclass
class RunResult:
    """Everything recorded in a run: tracks by name, sent and received signals, contacts, and the log of a trial."""

    loaded: LoadedConfig
    seconds: float
    rows: dict[str, int]  #: row of each body in the shared-memory tables, by name
    tracks: dict[str, Track]
    sent: Record
    receptions: Record
    contacts: dict[str, int] = field(default_factory=dict)
    frozen: tuple[str, ...] = ()
    log: Log | None = None
    returned: Mapping[str, float] = field(default_factory=dict)  #: values that the run's program returned

    @functools.cached_property
    def fates(self) -> Record:
        """Final outcome of each signal at each node: one reception for each pair."""
        return np.asarray(report.delivery_fates(self.receptions))

    @functools.cached_property
    def ranges(self) -> tuple[Record, Any]:
        """Return the receptions that completed a two-way ranging exchange, and the range errors in m."""
        return report.two_way_ranges(self.receptions)

    def body(self, name: str) -> BodyConfig:
        """Return the configuration's body with this name, or its first body if the name is empty."""
        bodies = self.loaded.config.fleet.bodies
        found = next((b for b in bodies if not name or b.name == name), None)
        if found is None:
            raise ConfigError(f"unknown body '{name}'{suggest_name(name, [b.name for b in bodies])}")
        return found

    @classmethod
    def of_log(cls, loaded: LoadedConfig, log: Log) -> RunResult:
        """Read the result of a run from the log of a trial."""
        rows = {b["name"]: row for row, b in log.bodies.items()}
        tracks = {name: log.get(f"/state/{name}", STATE) for name in rows}
        touched: dict[str, int] = {}
        for _, m in log.json.get("/notices", []):
            if m["text"].startswith(encounters.CONTACT_NOTICE_PREFIX):
                touched[m["body"]] = touched.get(m["body"], 0) + 1
        frozen = tuple(name for _, m in log.json.get("/frozen", []) for name in m["bodies"])
        return cls(
            loaded,
            log.end_ns * 1e-9,
            rows,
            {n: (s.time_ns * 1e-9, s.records) for n, s in tracks.items()},
            log.get("/acoustics/sent", SENT).records,
            log.get("/acoustics/reception", RECEPTION).records,
            touched,
            frozen,
            log,
        )


Function = Callable[[RunResult, str], float]


@dataclass(frozen=True)
class MetricType:
    """Declaration of a library metric."""

    name: str
    unit: str
    better: str
    doc: str
    function: Function


LIBRARY: dict[str, MetricType] = {}


def _metric(unit: str, better: str) -> Callable[[Function], Function]:
    def keep(function: Function) -> Function:
        name = function.__name__
        LIBRARY[name] = MetricType(name, unit, better, " ".join((function.__doc__ or "").split()), function)
        return function

    return keep


def _navigation(result: RunResult, body: str) -> tuple[Any, Any]:
    if result.log is None or body not in result.log.names:  # this body published no estimate
        return np.zeros(0), np.zeros(0)
    _, nav, dead = result.log.navigation_errors(body)
    return nav, dead


def _rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else math.nan


def _last(values: Any) -> float:
    return float(values[-1]) if len(values) else math.nan


@_metric("m", "lower")
def navigation_rms(result: RunResult, body: str) -> float:
    """Root-mean-square horizontal error of the estimated position. Available for trials only."""
    return _rms(_navigation(result, body)[0])


@_metric("m", "lower")
def navigation_max(result: RunResult, body: str) -> float:
    """Maximum horizontal error of the estimated position."""
    error = _navigation(result, body)[0]
    return float(error.max()) if len(error) else math.nan


@_metric("m", "lower")
def navigation_end(result: RunResult, body: str) -> float:
    """Horizontal error of the estimated position at the end of the run."""
    return _last(_navigation(result, body)[0])


@_metric("m", "lower")
def dead_reckoning_end(result: RunResult, body: str) -> float:
    """Horizontal error of dead reckoning at the end of the run."""
    return _last(_navigation(result, body)[1])


@_metric("%", "lower")
def percent_of_distance(result: RunResult, body: str) -> float:
    """Horizontal error of the estimated position at the end of the run, divided by the distance travelled."""
    return 100.0 * navigation_end(result, body) / max(distance(result, body), 1e-9)


@_metric("", "lower")
def nees(result: RunResult, body: str) -> float:
    """Mean horizontal NEES: squared error divided by the variance that the filter reports, for two axes. It is 2 for a
    consistent filter.
    """
    if result.log is None or body not in result.log.names:
        return math.nan
    from wavesim_sdk.tables import ESTIMATE

    estimate, state = result.log.get(f"/estimate/{body}", ESTIMATE), result.log.get(f"/state/{body}", STATE)
    _, i, k = np.intersect1d(estimate.time_ns, state.time_ns, return_indices=True)
    error = estimate.records["p_WB_W"][i][:, :2] - state.records["p_WB_W"][k][:, :2]
    sigma = estimate.records["sigma"][i][:, :2]
    good = np.isfinite(error).all(1) & (sigma > 0.0).all(1)
    return float(np.mean(np.sum((error[good] / sigma[good]) ** 2, 1))) if good.any() else math.nan


@_metric("m", "")
def distance(result: RunResult, body: str) -> float:
    """Distance travelled over ground."""
    return float(np.linalg.norm(np.diff(result.tracks[body][1]["p_WB_W"], axis=0), axis=1).sum())


@_metric("m/s", "higher")
def speed(result: RunResult, body: str) -> float:
    """Mean speed over ground."""
    return distance(result, body) / max(result.seconds, 1e-9)


def _legs(result: RunResult, body: str) -> Any:
    b = result.body(body)
    return np.array([b.position[:2], *((w.north, w.east) for w in b.waypoint)], float)


def _reached_times(result: RunResult, body: str, within: float = 10.0) -> list[float]:
    """Return, in order, the times in s at which the body first came within ``within`` metres of each waypoint."""
    times, state = result.tracks[body]
    found, first = [], 0
    for place in _legs(result, body)[1:]:
        near = np.flatnonzero(np.linalg.norm(state["p_WB_W"][first:, :2] - place, axis=1) < within)
        if not len(near):
            break
        first += int(near[0])
        found.append(float(times[first]))
    return found


@_metric("m", "lower")
def cross_track_rms(result: RunResult, body: str) -> float:
    """Root-mean-square horizontal distance to the nearest leg of the mission."""
    legs, p = _legs(result, body), result.tracks[body][1]["p_WB_W"][:, :2]
    if len(legs) < 2:
        return math.nan
    away = []
    for a, b in itertools.pairwise(legs):
        d = b - a
        along = np.clip((p - a) @ d / max(float(d @ d), 1e-9), 0.0, 1.0)
        away.append(np.linalg.norm(p - a - along[:, None] * d, axis=1))
    return _rms(np.min(away, axis=0))


@_metric("", "higher")
def waypoints(result: RunResult, body: str) -> float:
    """Number of waypoints passed in order, within 10 m."""
    return float(len(_reached_times(result, body)))


@_metric("s", "lower")
def time_to_complete(result: RunResult, body: str) -> float:
    """Time at which the last waypoint was reached; empty if it was not reached."""
    found = _reached_times(result, body)
    return found[-1] if found and len(found) == len(_legs(result, body)) - 1 else math.nan


@_metric("J", "lower")
def propulsion(result: RunResult, body: str) -> float:
    """Energy that the commanded thrust put into the water: time integral of the product of thrust (N) and
    speed through water. Available for trials only.
    """
    if result.log is None or body not in result.log.names:
        return math.nan
    series, state = result.log.get(f"/actuation/{body}", ACTUATION), result.log.get(f"/state/{body}", STATE)
    model = result.loaded.model(result.body(body).model)
    if not len(series.time_ns) or not len(state.time_ns) or any(t.law != "thrust" for t in model.thruster):
        return math.nan
    thrust = series.records["actual"][:, : len(model.thruster)].sum(1)
    speed_ = np.interp(series.time_ns, state.time_ns, state.records["v_FB_B"][:, 0])
    power = np.maximum(thrust * speed_, 0.0)
    return float(np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(series.time_ns) * 1e-9))


@_metric("", "lower")
def contacts(result: RunResult, body: str) -> float:
    """Number of contacts."""
    return float(result.contacts.get(body, 0))


@_metric("m", "higher")
def closest(result: RunResult, body: str) -> float:
    """Minimum distance to another vehicle."""
    moving = {b.name for b in result.loaded.config.fleet.bodies if result.loaded.model(b.model).type != "buoy"}
    tracks = {n: (t, s["p_WB_W"]) for n, (t, s) in result.tracks.items() if n in moving and len(t)}
    found = encounters.closest_passes(tracks).get(body)
    return found[1] if found else math.nan


@_metric("", "higher")
def heard(result: RunResult, body: str) -> float:
    """Number of signals received."""
    mine = result.fates[result.fates["receiver"] == result.rows[body]]
    return float((mine["outcome"] == Outcome.HEARD).sum())


@_metric("", "lower")
def lost(result: RunResult, body: str) -> float:
    """Number of signals that arrived but were not received, for any reason."""
    return len(result.fates[result.fates["receiver"] == result.rows[body]]) - heard(result, body)


def _loss_counter(outcome: Outcome) -> None:
    def count(result: RunResult, body: str) -> float:
        mine = result.fates[result.fates["receiver"] == result.rows[body]]
        return float((mine["outcome"] == outcome).sum())

    count.__name__ = f"lost_{outcome.name.lower()}"
    count.__doc__ = f"Number of lost signals with the outcome '{outcome.name.lower().replace('_', ' ')}'."
    _metric("", "lower")(count)


for _outcome in Outcome:
    if _outcome is not Outcome.HEARD:
        _loss_counter(_outcome)


@_metric("", "higher")
def ranges(result: RunResult, body: str) -> float:
    """Number of two-way ranges."""
    return float((result.ranges[0]["receiver"] == result.rows[body]).sum())


def _range_errors(result: RunResult, body: str) -> Any:
    found, error = result.ranges
    return error[found["receiver"] == result.rows[body]]


@_metric("m", "lower")
def range_rms(result: RunResult, body: str) -> float:
    """Root-mean-square error of two-way ranges."""
    return _rms(_range_errors(result, body))


@_metric("m", "")
def range_bias(result: RunResult, body: str) -> float:
    """Mean error of two-way ranges."""
    error = _range_errors(result, body)
    return float(np.mean(error)) if len(error) else math.nan


def _straight_line_errors(result: RunResult, body: str) -> Any:
    speed = result.loaded.config.acoustics.sound_speed
    error = report.exchange_errors(result.receptions, speed)[result.ranges[0]["receiver"] == result.rows[body]]
    return error[np.isfinite(error)]


@_metric("m", "")
def straight_line_bias(result: RunResult, body: str) -> float:
    """Mean error of two-way ranges due to the speed and path of sound alone; noise and clock errors are not included."""
    error = _straight_line_errors(result, body)
    return float(np.mean(error)) if len(error) else math.nan


@_metric("m", "lower")
def straight_line_max(result: RunResult, body: str) -> float:
    """Largest error of two-way ranges due to the speed and path of sound alone; noise and clock errors are not
    included.
    """
    error = _straight_line_errors(result, body)
    return float(np.abs(error).max()) if len(error) else math.nan


@_metric("m", "")
def depth_end(result: RunResult, body: str) -> float:
    """Depth at the end of the run."""
    return _last(result.tracks[body][1]["p_WB_W"][:, 2])


# ------------------------------------------------------------------ metrics of a campaign


@dataclass(frozen=True)
class CampaignMetric:
    """A metric that a campaign computes for each run."""

    name: str
    unit: str
    better: str
    margin: float
    body: str
    #: function that computes the metric; None if the run's program returns the value
    function: Callable[..., Any] | None
    own: bool

    def value(self, result: RunResult) -> float:
        """Return the value of the metric for one run, or NaN if the run has no value."""
        if self.function is None:
            return float(result.returned.get(self.name, math.nan))
        return float(self.function(result) if self.own else self.function(result, result.body(self.body).name))


def resolve_metric(metric: Metric, file: Path) -> CampaignMetric:
    """Resolve a metric that a campaign file declares. Raise ConfigError if it is unknown."""
    place, _, line = metric.place.rpartition(":")
    if ".py:" in metric.of:
        return CampaignMetric(
            metric.name, metric.unit, metric.better or "lower", metric.margin, "", load_function(metric.of, file), True
        )
    if not metric.of:
        return CampaignMetric(metric.name, metric.unit, metric.better or "lower", metric.margin, "", None, True)
    if metric.of not in LIBRARY:
        raise ConfigError(f"unknown metric '{metric.of}'{suggest_name(metric.of, LIBRARY)}", place, int(line))
    kind = LIBRARY[metric.of]
    return CampaignMetric(
        metric.name,
        kind.unit,
        metric.better or kind.better,
        metric.margin,
        metric.body,
        kind.function,
        False,
    )


def load_function(text: str, file: Path) -> Callable[..., Any]:
    """Load ``FILE.py:FUNCTION``, relative to a campaign file."""
    name, _, which = text.rpartition(":")
    path = (file.parent / name).resolve()
    if not path.is_file():
        raise ConfigError(f"program '{name}' does not exist", str(file))
    _make_room(path.parent)
    try:
        module = run_file(path, "campaign")
    except (Exception, SystemExit) as error:  # a user's file may raise anything
        raise ConfigError(f"cannot load '{name}': {described(error)}", str(file)) from None
    found = getattr(module, which, None)
    if not callable(found):
        known = [n for n in vars(module) if callable(getattr(module, n)) and not n.startswith("_")]
        raise ConfigError(f"'{name}' has no function '{which}'{suggest_name(which, known)}", str(file))
    return found  # type: ignore[no-any-return]  # callable, as we have just seen


def _make_room(folder: Path) -> None:
    """Allow imports to find the modules in this folder, both now and while a program from the folder is running.

    Modules with the same names that were loaded from other folders are removed, so that imports do not return those.
    """
    if (text := str(folder)) in sys.path:
        sys.path.remove(text)
    sys.path.insert(0, text)
    others = set()
    for name, module in list(sys.modules.items()):
        mine = (folder / f"{name}.py", folder / name / "__init__.py")
        place = getattr(module, "__file__", None)
        if (
            place
            and not sources.is_installed(Path(place))
            and Path(place).resolve() not in mine
            and any(p.is_file() for p in mine)
        ):
            others.add(name)
    for name in list(sys.modules):
        if name.partition(".")[0] in others:
            del sys.modules[name]
