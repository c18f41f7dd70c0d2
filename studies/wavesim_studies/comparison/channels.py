"""Channels of a run: one number over time each, from the states of a vehicle or from a column of an instrument."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.log import Log
from wavesim_sdk.sensors import all_sensor_tables, sensor_table_of
from wavesim_studies.navigation.estimate_score import covered, interpolated
from wavesim_studies.navigation.filter import rotation_vector
from wavesim_studies.navigation.logs import valid_values
from wavesim_studies.navigation.pose_tracks import PoseTrack

__all__ = ["Channel", "motion_channels", "sensor_channels"]

LEAST_VALUES = 10  #: a channel with fewer values is not compared
DERIVED_S = 0.5  #: half the interval in s of the differences between poses that give missing speeds and rates
SLOPE = 3  #: number of values on both sides from which the slope of an instrument's values is taken
TURN = 2.0 * np.pi
_AXES = {3: ("x", "y", "z"), 4: ("0", "1", "2", "3")}
_TURNS = ("heading", "roll", "pitch", "yaw", "course", "azimuth", "elevation")


@dataclass(frozen=True)
class Channel:
    """Values of one quantity over time. An angle on the circle may jump by one turn."""

    name: str
    unit: str  #: unit of the values, as in the log
    time: Floats  #: times (T) in s, strictly increasing
    values: Floats  #: values (T)
    turns: bool = False  #: whether the values are angles on the circle
    sampled: bool = False  #: whether the values contain noise, so that interpolation would change their spread

    def at(self, time: Floats, gap: float) -> Floats:
        """Return the values at other times. They are NaN outside the channel and in gaps longer than ``gap`` s.

        States are interpolated. For an instrument, the nearest value is taken and moved along the mean slope of the
        values around it, because the mean of two values would have less noise than one value.
        """
        inside = covered(self.time, time, gap)
        values = np.unwrap(self.values) if self.turns else self.values
        if self.sampled:
            k = np.clip(np.searchsorted(self.time, time), 1, len(self.time) - 1)
            k = k - (time - self.time[k - 1] < self.time[k] - time)
            a, b = np.maximum(k - SLOPE, 0), np.minimum(k + SLOPE, len(self.time) - 1)
            found = values[k] + (values[b] - values[a]) / (self.time[b] - self.time[a]) * (time - self.time[k])
        else:
            found = np.interp(time, self.time, values)
        return np.where(inside, found, np.nan)

    def difference(self, a: Floats, b: Floats) -> Floats:
        """Return a - b; angles on the circle are between -pi and pi."""
        d = a - b
        return np.asarray(d - TURN * np.round(d / TURN) if self.turns else d)

    def shifted(self, seconds: float) -> Channel:
        """Return the channel with ``seconds`` added to its times."""
        return replace(self, time=self.time + seconds)

    @property
    def period(self) -> float:
        """Median interval in s."""
        return float(np.median(np.diff(self.time)))


def with_motion(track: PoseTrack) -> PoseTrack:
    """Return a track with velocities and rates. Those that it lacks are computed from its poses, if it has attitudes."""
    if track.q is None or (track.v is not None and track.w is not None):
        return track
    t = track.time
    h = max(DERIVED_S, float(np.median(np.diff(t))))
    a, b = np.clip(t - h, t[0], t[-1]), np.clip(t + h, t[0], t[-1])
    still = replace(track, v=None, w=None)
    before, after = interpolated(still, a), interpolated(still, b)
    span = (b - a)[:, None]
    v = track.v
    if v is None:
        v = np.einsum("tji,tj->ti", frames.rotation(track.q), (after.p - before.p) / span)
    w = track.w
    if w is None and before.q is not None and after.q is not None:
        w = rotation_vector(np.einsum("tji,tjk->tik", frames.rotation(before.q), frames.rotation(after.q))) / span
    return replace(track, v=v, w=w)


def motion_channels(track: PoseTrack) -> dict[str, Channel]:
    """Return position, attitude, speeds and rates of a track, by name. Quantities that it lacks are omitted."""
    t = track.time
    found = {name: Channel(name, "m", t, track.p[:, k]) for k, name in enumerate(("north", "east", "down"))}
    if not np.isfinite(track.p[:, 2]).all():
        del found["down"]
    moving = with_motion(track)
    if moving.q is not None:
        angles = frames.euler(moving.q)
        for k, name in enumerate(("roll", "pitch", "heading")):
            found[name] = Channel(name, "rad", t, angles[:, k], turns=True)
    if moving.v is not None and moving.q is not None:
        v_W = np.einsum("tij,tj->ti", frames.rotation(moving.q), moving.v)
        found["speed"] = Channel("speed", "m/s", t, np.linalg.norm(v_W[:, :2], axis=1))
        for k, name in enumerate(("surge", "sway")):
            found[name] = Channel(name, "m/s", t, moving.v[:, k])
    else:
        h = max(DERIVED_S, float(np.median(np.diff(t))))
        a, b = np.clip(t - h, t[0], t[-1]), np.clip(t + h, t[0], t[-1])
        moved = [np.interp(b, t, track.p[:, k]) - np.interp(a, t, track.p[:, k]) for k in (0, 1)]
        found["speed"] = Channel("speed", "m/s", t, np.linalg.norm(moved, axis=0) / (b - a))
    if moving.w is not None:
        for k, name in enumerate(("roll rate", "pitch rate", "yaw rate")):
            found[name] = Channel(name, "rad/s", t, moving.w[:, k])
    return {k: c for k, c in found.items() if np.isfinite(c.values).all()}


def sensor_channels(log: Log, vehicle: str) -> dict[str, dict[str, Channel]]:
    """Return the columns of each instrument of a vehicle, by instrument and column. Columns of whole numbers are
    omitted.
    """
    found: dict[str, dict[str, Channel]] = {}
    for instrument, series in log.sensors(vehicle).items():
        if series.type not in all_sensor_tables() or len(values := valid_values(series)) < LEAST_VALUES:
            continue
        time = np.asarray(values["time_ns"] * 1e-9, float)
        mine = {}
        for f in sensor_table_of(series.type).visible.fields:
            if f.name not in (values.dtype.names or ()) or values.dtype[f.name].base.kind != "f":
                continue
            x = np.asarray(values[f.name], float).reshape(len(values), -1)
            labels = [f.name]
            if x.shape[1] > 1:
                axes = _AXES.get(x.shape[1]) or [str(k) for k in range(x.shape[1])]
                labels = [f"{f.name}_{axis}" for axis in axes]
            for label, column in zip(labels, x.T, strict=True):
                good = np.isfinite(column)
                good[1:] &= np.diff(time) > 0.0
                if good.sum() >= LEAST_VALUES:
                    turns = f.unit == "rad" and f.name in _TURNS
                    name = f"{instrument}.{label}"
                    mine[label] = Channel(name, f.unit, time[good], column[good], turns, sampled=True)
        if mine:
            found[instrument] = mine
    return found
