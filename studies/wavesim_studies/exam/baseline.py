"""Baseline of the exam: the reference filter of `wavesim nav score`, with the start position and the prior of the exam.

The filter starts at the stated start position instead of the true state, and additionally uses one-way travel times.
A follower of a fleet uses the position that the baseline of the leader has at the time of the ping.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_studies.exam.facts import as_floats, bodies, timing_sigma
from wavesim_studies.exam.run import ExamRun, helpers
from wavesim_studies.navigation import logs, measurement_models
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.estimate_score import reference_track
from wavesim_studies.navigation.filter import Track
from wavesim_studies.navigation.pose_tracks import PoseTrack

__all__ = ["BaselineTrack", "baseline"]

NAME = "reference"  #: name of the baseline in results
DEPTH_SIGMA, VELOCITY_SIGMA, ATTITUDE_SIGMA = 0.1, 0.1, 0.006  #: uncertainty of the first values of the instruments


@dataclass(frozen=True)
class BaselineTrack:
    """Result of the reference filter for one vehicle."""

    case: logs.EstimationCase
    track: Track

    @property
    def poses(self) -> PoseTrack:
        """The estimated track of the body's origin."""
        return replace(reference_track(self.case, self.track), name=NAME)

    @property
    def acoustic_nis(self) -> tuple[float, int]:
        """Mean NIS per number of all accepted acoustic measurements, and their count."""
        events, outcomes = self.track.events, self.track.event_outcomes
        e = measurement_models
        kinds = (e.ROUND_TRIP, e.ONE_WAY, e.DIRECTION)
        used = np.isin(events[:, e.KIND], kinds) & (outcomes[:, 0] >= 1.0)
        numbers = float(events[used, e.M].sum())
        return (float(outcomes[used, 1].sum()) / numbers if numbers else float("nan")), int(used.sum())

    def transducer(self, lever_B: Floats, time: float) -> tuple[Floats, Floats]:
        """Return the estimated position (3) of a point on the body at a given time, and its covariance (3, 3).

        The estimate at the last state before the time is extrapolated with its velocity.
        """
        k = max(int(np.searchsorted(self.track.time, time + 1e-9)) - 1, 0)
        R = frames.rotation(self.track.q[k])
        p = self.track.at(self.case.lever)[k] + R @ lever_B + self.track.v[k] * (time - self.track.time[k])
        return p, self.track.covariance[k, :3, :3]


def baseline(run: ExamRun) -> dict[str, BaselineTrack]:
    """Run the reference filter for each scored vehicle, and for the vehicles that help them."""
    from wavesim_studies.navigation.filter import compile_filter

    compile_filter()
    found: dict[str, BaselineTrack] = {}
    for vehicle in (*helpers(run), *run.scenario.vehicles):
        case = _case(run, vehicle, found)
        found[vehicle] = BaselineTrack(case, case.run(False, lambda text: None))
    return found


def _case(run: ExamRun, vehicle: str, leaders: dict[str, BaselineTrack]) -> logs.EstimationCase:
    settings = run.scenario.settings(run.level)
    case = logs.estimation_case(run.log, vehicle, selection=logs.Selection(adaptive=settings.adaptive))
    c = run.loaded.config.acoustics.sound_speed
    current = settings.current_sigma if case.design.current else 0.0
    sigma, time = settings.current_sigma, settings.current_time
    walk = sigma * (2.0 / time) ** 0.5 if time else 1e-4
    extra = _one_way_rows(run, vehicle, leaders, len(case.sensors), case.lever)
    has_clock = len(extra) > 0 and settings.clock_sigma > 0.0 and vehicle in run.scenario.vehicles
    design = replace(
        case.design,
        current=current,
        current_walk=walk if current else 0.0,
        current_time=time if current else 0.0,
        sound=settings.sound_sigma,
        clock=(c * settings.clock_sigma, c * settings.drift_sigma) if has_clock else (0.0, 0.0),
    )
    first = float(case.start.time)
    p, v, q = _first_values(run, vehicle, first)
    position = (run.facts["vehicles"][vehicle]["start_sigma"],) * 2
    velocity = float(np.hypot(VELOCITY_SIGMA, settings.current_sigma))
    start = design.start(
        first,
        p - frames.rotation(q) @ case.lever,
        v,
        q,
        [(*position, DEPTH_SIGMA), velocity, ATTITUDE_SIGMA, 1e-6, 1e-4],
    )
    rows = case.rows
    if len(extra):
        rows = np.concatenate([rows, extra[extra[:, measurement_models.T] > first]])
    return replace(case, design=design, start=start, rows=rows, sensors=[*case.sensors, "one-way"])


def _first_values(run: ExamRun, vehicle: str, time: float) -> tuple[Floats, Floats, Floats]:
    """Return position, velocity and attitude from the stated start and the first values of the instruments."""
    tables = run.tables
    ahrs = as_floats(tables[f"{vehicle}-ahrs"], "time", "roll", "pitch", "heading")
    speed = as_floats(tables[f"{vehicle}-speedlog"], "time", "u", "v", "w")
    depth = as_floats(tables[f"{vehicle}-ctd"], "time", "depth")

    def at(table: Floats) -> Floats:
        return np.asarray(table[int(np.argmin(np.abs(table[:, 0] - time))), 1:])

    q = frames.quaternion(*at(ahrs))
    north, east = run.facts["vehicles"][vehicle]["start"]
    return np.array([north, east, at(depth)[0]]), np.asarray(frames.rotation(q) @ at(speed)), np.asarray(q)


def _one_way_rows(run: ExamRun, vehicle: str, leaders: dict[str, BaselineTrack], sensor: int, lever: Floats) -> Floats:
    """Return the measurement rows (N, WIDTH) of one-way travel times from or to a vehicle."""
    table = run.tables.get("one-way")
    rows: list[Any] = []
    known, c = bodies(run.loaded), run.loaded.config.acoustics.sound_speed
    nodes = run.facts["nodes"]
    for sender, receiver, sent, received, length in table.rows if table is not None else ():
        if vehicle not in (sender, receiver):
            continue
        other = sender if receiver == vehicle else receiver
        transducer, ear = run.loaded.transducer(known[vehicle]), run.loaded.transducer(known[receiver])
        assert transducer is not None and ear is not None
        sigma = c * timing_sigma(ear) + 1e-3
        arm = np.array(transducer.position, float) + lever
        time = received if receiver == vehicle else sent
        if other in nodes:
            rows.append(make.one_way(time, length, nodes[other]["position"], sigma, arm, sensor=sensor))
        elif other in leaders:
            there = run.loaded.transducer(known[other])
            assert there is not None
            p, P = leaders[other].transducer(np.array(there.position, float), sent)
            rows.append(make.one_way(time, length, p, sigma, arm, covariance=P, sensor=sensor))
    return np.array(rows).reshape(-1, measurement_models.WIDTH)
