"""True states of a log from a track in another file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.log_tables import UNKNOWN_TRUTH
from wavesim_sdk.tables import STATE
from wavesim_studies.navigation.estimate_score import common_clock, interpolated, time_origin
from wavesim_studies.navigation.filter import rotation_vector
from wavesim_studies.navigation.logs import valid_values
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_world.config.standalone_xml import load_standalone
from wavesim_world.ocean.water import depth_of_pressure

__all__ = ["with_truth"]


def with_truth(log: Log, name: str, track: PoseTrack, notes: list[str] | None = None) -> Log:
    """Return a log in which the true states of a vehicle are taken from a track. Raise LogError if log and track do not
    overlap in time.

    Velocities and angular velocities that the track lacks are computed from the poses. If the track lacks attitudes,
    the attitudes from the vehicle's AHRS are used.
    """
    notes = [] if notes is None else notes
    ends = [s.time_ns[k] * 1e-9 for s in log.sensors(name).values() if len(s.time_ns) for k in (0, -1)]
    if not ends:
        raise LogError(f"{log.path} has no values from instruments of '{name}'")
    track = common_clock(track, min(ends), max(ends), time_origin(log))
    notes += [f"truth: {note}" for note in track.notes]
    t, q = track.time, track.q
    unknown = []
    if q is None:
        q = _measured_attitude(log, name, t)
        unknown.append("attitude")
        notes.append("the true track has no attitudes; the filter starts at the attitude from the AHRS")
    if not np.isfinite(track.p[:, 2]).all():
        track = replace(track, p=np.concatenate([track.p[:, :2], _measured_depth(log, name, t)[:, None]], axis=1))
        unknown.append("depth")
        notes.append("the true track has no depths; the filter starts at the depth from the pressure sensor, or at 0 m")
    h = max(0.5, float(np.median(np.diff(t))))
    a, b = np.clip(t - h, t[0], t[-1]), np.clip(t + h, t[0], t[-1])
    posed = replace(track, q=q, v=None, w=None)
    before, after = interpolated(posed, a), interpolated(posed, b)
    R, span = frames.rotation(q), (b - a)[:, None]
    v = track.v if track.v is not None else np.einsum("tji,tj->ti", R, (after.p - before.p) / span)
    w = track.w
    if w is None:
        assert before.q is not None and after.q is not None
        turn = np.einsum("tji,tjk->tik", frames.rotation(before.q), frames.rotation(after.q))
        w = rotation_vector(turn) / span
    records = np.zeros(len(t), STATE.visible.dtype)
    records["p_WB_W"], records["q_WB"], records["v_WB_B"], records["w_WB_B"] = track.p, q, v, w
    metadata = {**log.metadata, UNKNOWN_TRUTH: " ".join(unknown)}
    found = replace(log, metadata=metadata, series=dict(log.series), json=log.json)
    keep = t >= 0.0
    found.series[f"/state/{name}"] = Series(np.round(t * 1e9).astype(np.int64)[keep], records[keep], STATE.name)
    return found


def _measured_attitude(log: Log, name: str, at: Floats) -> Floats:
    """Return the attitudes (T, 4) that the AHRS of a vehicle measured."""
    ahrs = [r for (body, _), s in log.by_type("ahrs").items() if body == name and len(r := valid_values(s))]
    if not ahrs:
        raise LogError(
            f"the true track has no attitudes, and no AHRS of '{name}' has valid values; the filter needs an initial "
            "attitude"
        )
    r = ahrs[0]
    angles = [np.interp(at, r["time_ns"] * 1e-9, np.unwrap(r[k])) for k in ("roll", "pitch", "heading")]
    return frames.quaternion(*angles)


def _measured_depth(log: Log, name: str, at: Floats) -> Floats:
    """Return the depths (T) in m that a pressure sensor of a vehicle measured; 0 without a pressure sensor."""
    for kind in ("pressure", "ctd"):
        for (body, _), series in log.by_type(kind).items():
            if body == name and len(r := valid_values(series)):
                world = load_standalone(log.metadata.get("configuration", ""))[0].config.world
                return np.interp(at, r["time_ns"] * 1e-9, depth_of_pressure(world, r["pressure"].astype(float)))
    return np.zeros(len(at))
