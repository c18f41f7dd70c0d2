"""Tracks from other programs: positions over time with optional attitudes and covariances, from TUM and CSV files,
ROS 2 bags and WaVeSim logs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import axes, frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log
from wavesim_sdk.log_tables import known_states
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import ESTIMATE, STATE
from wavesim_studies.navigation import columns as tables
from wavesim_studies.navigation.columns import ColumnRole
from wavesim_studies.navigation.metrics import rms_distance

__all__ = ["PoseTrack"]

FRAMES = ("ned", "enu")
#: roles of the columns in a CSV file with a track
ROLES = {
    "time": ColumnRole("time", ("t", "timestamp", "stamp")),
    "north": ColumnRole("length", ("n", "p_WB_W_x", "pos_n", "p_n")),
    "east": ColumnRole("length", ("e", "p_WB_W_y", "pos_e", "p_e")),
    "down": ColumnRole("length", ("d", "p_WB_W_z", "depth", "pos_d", "p_d")),
    "up": ColumnRole("length", ("u", "height", "altitude")),
    "x": ColumnRole("length", ("tx", "px", "pos_x", "position_x")),
    "y": ColumnRole("length", ("ty", "py", "pos_y", "position_y")),
    "z": ColumnRole("length", ("tz", "pz", "pos_z", "position_z")),
    "roll": ColumnRole("angle", ("phi",)),
    "pitch": ColumnRole("angle", ("theta",)),
    "heading": ColumnRole("angle", ("hdg",)),
    "yaw": ColumnRole("angle", ("psi",)),
    **{f"q{k}": ColumnRole("", (f"q_{k}", f"q_WB_{k}", f"orientation_{k}")) for k in "wxyz"},
    "sigma_north": ColumnRole("length", ("sigma_n", "sigma_x", "std_north", "std_n")),
    "sigma_east": ColumnRole("length", ("sigma_e", "sigma_y", "std_east", "std_e")),
    "sigma_down": ColumnRole("length", ("sigma_d", "sigma_z", "sigma_depth")),
    "cov_nn": ColumnRole("", ("cov_xx", "var_north", "var_n")),
    "cov_ne": ColumnRole("", ("cov_xy",)),
    "cov_ee": ColumnRole("", ("cov_yy", "var_east", "var_e")),
    # other programs often give vectors in W under the names velocity_x and rates_x
    "velocity": ColumnRole("speed", ("v_WB_B",), 3, usual=False),
    "rates": ColumnRole("angular rate", ("w_WB_B",), 3, usual=False),
}
KEYS = ("frame", "topic", "body", "unit")  #: keys of a layout that do not name columns
#: units of the times in a file without named columns
TIME_UNITS = ("s", "ms", "us", "ns")
#: velocities are compared with the displacements over this time in s; smaller differences in m are ignored
COMPARED_S, COMPARED_M = 5.0, 0.5


@dataclass(frozen=True)
class PoseTrack:
    """Poses of a vehicle over time, in the frame W (north, east, down).

    Create a track from arrays, or with :func:`read_track`. ``q`` rotates vectors from the frame B (forward, starboard,
    down) to W.
    """

    name: str
    time: Floats  #: times (T) in s, strictly increasing
    p: Floats  #: positions (T, 3) in m; the down component may be NaN
    q: Floats | None = None  #: attitudes q_WB (T, 4), scalar first
    covariance: Floats | None = None  #: covariances (T, 2, 2) of north and east in m2
    v: Floats | None = None  #: velocities (T, 3) over ground in B in m/s
    w: Floats | None = None  #: angular velocities (T, 3) in B in rad/s
    notes: tuple[str, ...] = ()

    def part(self, keep: Any) -> PoseTrack:
        """Return some of the poses, selected by a mask, by indices or by a slice."""
        fields = ("time", "p", "q", "covariance", "v", "w")
        chosen: dict[str, Any] = {k: None if getattr(self, k) is None else getattr(self, k)[keep] for k in fields}
        return replace(self, **chosen)

    def shifted(self, seconds: float, note: str = "") -> PoseTrack:
        """Return the track with ``seconds`` added to its times."""
        return replace(self, time=self.time + seconds, notes=(*self.notes, note) if note else self.notes)


def track_of_log(log: Log, body: str, true: bool) -> PoseTrack:
    """Return the estimates or the true states of a body in a log."""
    kind = "state" if true else "estimate"
    having = [t.split("/")[2] for t in log.series if t.startswith(f"/{kind}/") and len(log.series[t].time_ns)]
    what = "true states" if true else "estimates"
    if not having:
        hint = "add --truth FILE" if true else "an on-board program publishes them with Broker.answer(estimate=...)"
        raise LogError(f"{log.path} has no {what}; {hint}")
    if not body and len(having) > 1:
        raise LogError(f"{log.path} has {what} of several bodies: {', '.join(having)}; select one with --vehicle")
    name = body or having[0]
    if name not in having:
        raise LogError(f"{log.path} has no {what} of '{name}'{suggest_name(name, having)}")
    series = log.get(f"/{kind}/{name}", STATE if true else ESTIMATE)
    r, t = series.records, np.asarray(series.time_ns * 1e-9, float)
    if true:
        # the filter starts with measured values in place of unknown ones, but these are not true
        r = known_states(log.metadata, r)
        if np.isnan(r["q_WB"]).all():
            return PoseTrack(name, t, r["p_WB_W"].astype(float))
        return PoseTrack(name, t, r["p_WB_W"].astype(float), r["q_WB"].astype(float), None, r["v_WB_B"], r["w_WB_B"])
    good = np.isfinite(r["p_WB_W"][:, :2]).all(axis=1)
    sigma: Floats = np.asarray(r["sigma"][good, :2], float)
    known = np.isfinite(sigma).all() and (sigma > 0.0).all()
    covariance = np.einsum("ti,ij->tij", sigma**2, np.eye(2)) if known else None
    return _in_order(str(log.path), PoseTrack(name, t[good], r["p_WB_W"][good].astype(float), None, covariance))


def track_of_tum(path: Path, frame: str, unit: str) -> PoseTrack:
    """Read a track from a file in TUM format."""
    if unit not in TIME_UNITS:
        raise LogError(f"unknown unit of time '{unit}'; use one of {', '.join(TIME_UNITS)}")
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise LogError(f"cannot read {path}: {reason}") from None
    rows, expected = [], "expected 8 numbers: t x y z qx qy qz qw, separated by spaces"
    for number, line in enumerate(lines, start=1):
        cells = line.replace(",", " ").split()
        if not cells or cells[0].startswith("#"):
            continue
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            raise LogError(
                f"{path}: line {number} is not a pose; {expected}. If the file is a table with a header, its name must "
                "end in .csv"
            ) from None
        if len(cells) != 8:
            raise LogError(f"{path}: line {number} has {len(cells)} numbers; {expected}")
    if not rows:
        raise LogError(f"{path} has no poses; {expected}")
    table = np.array(rows)
    q: Floats | None = _quaternions(str(path), table[:, [7, 4, 5, 6]])
    return _in_order(str(path), _track(path.name, table[:, 0] * tables.UNITS["time"][unit], table[:, 1:4], q, frame))


def track_of_csv(path: Path, frame: str, options: Mapping[str, str]) -> PoseTrack:
    """Read a track from a CSV file."""
    options = dict(options)
    if unit := options.pop("unit", ""):
        raise LogError(f"'unit={unit}' applies to TUM files; for a CSV file, write time=COLUMN:{unit}")
    with tables.open_table(path) as table:
        chosen = tables.choose_columns(table.header, ROLES, options, str(path))
        _check_roles(path, chosen, table.header)
        values = table.values(ROLES, chosen)
    if not len(values["time"]):
        raise LogError(f"{path} has no rows")
    tables.check_angles(str(path), values, chosen)
    p, world = _positions(values, frame)
    q = _attitudes(str(path), values, frame)
    covariance = _covariances(values)
    first = next((k for k in ("cov_nn", "sigma_north") if k in values), "")
    named_x = first not in options and first in chosen and chosen[first].columns[0].lower().endswith("x")
    if covariance is not None and world == "enu" and named_x:  # x is east
        covariance = covariance[:, ::-1, ::-1]
    track = _track(path.name, values["time"], p, q, "ned", covariance)
    motion = {k: values[k] for k in ("velocity", "rates") if k in values}
    if frame == "enu":
        motion = {k: axes.frd_to_flu(x) for k, x in motion.items()}
    return _in_order(str(path), replace(track, v=motion.get("velocity"), w=motion.get("rates")))


def _check_roles(path: Path, chosen: Mapping[str, Any], header: list[str]) -> None:
    there = f"columns: {', '.join(header)}"
    if "time" not in chosen:
        raise LogError(f"{path} has no column for the time; name one, for example --layout time=COLUMN:s; {there}")
    if not ({"north", "east"} <= chosen.keys() or {"x", "y"} <= chosen.keys()):
        raise LogError(
            f'{path} has no columns for the position; name them with --layout "north=COLUMN east=COLUMN"; {there}'
        )


def _positions(values: Mapping[str, Any], frame: str) -> tuple[Floats, str]:
    """Return positions (T, 3) in W, and the frame of the horizontal covariances."""
    none = np.full(len(values["time"]), np.nan)
    if "north" in values and "east" in values:
        down = values.get("down", -values["up"] if "up" in values else none)
        return np.stack([values["north"], values["east"], down], axis=1), "ned"
    p = np.stack([values["x"], values["y"], values.get("z", none)], axis=1)
    return (axes.ned_to_enu(p), "enu") if frame == "enu" else (p, "ned")


def _attitudes(where: str, values: Mapping[str, Any], frame: str) -> Floats | None:
    """Return attitudes q_WB (T, 4), or None if the table has neither quaternions nor a heading."""
    if all(f"q{k}" in values for k in "wxyz"):
        q = _quaternions(where, np.stack([values[f"q{k}"] for k in "wxyz"], axis=1))
        return axes.attitude_enu(q) if q is not None and frame == "enu" else q
    zero = np.zeros(len(values["time"]))
    roll, pitch = values.get("roll", zero), values.get("pitch", zero)
    if "heading" in values:  # always clockwise from north
        return frames.quaternion(roll, pitch, values["heading"])
    if "yaw" in values:
        q = frames.quaternion(roll, pitch, values["yaw"])
        return axes.attitude_enu(q) if frame == "enu" else q
    return None


def _covariances(values: Mapping[str, Any]) -> Floats | None:
    """Return covariances (T, 2, 2) of the horizontal position, or None if they are unknown."""
    if "cov_nn" in values and "cov_ee" in values:
        nn, ee = values["cov_nn"], values["cov_ee"]
        ne = values.get("cov_ne", np.zeros(len(nn)))
    elif "sigma_north" in values and "sigma_east" in values:
        nn, ee = values["sigma_north"] ** 2, values["sigma_east"] ** 2
        ne = np.zeros(len(nn))
    else:
        return None
    return np.stack([nn, ne, ne, ee], axis=1).reshape(-1, 2, 2)


def _quaternions(where: str, q: Floats) -> Floats | None:
    """Return unit quaternions, or None if no attitude was recorded, that is, if all are (1, 0, 0, 0) or 0."""
    q = np.asarray(q, float)
    if (q[:, 1:] == 0.0).all() and np.isin(q[:, 0], (0.0, 1.0)).all():
        return None
    size = np.linalg.norm(q, axis=1)
    if (bad := np.abs(size - 1.0) > 0.01).any():
        first = int(np.argmax(bad))
        raise LogError(
            f"{where}: the quaternion of pose {first + 1} has the norm {size[first]:.3g} instead of 1; check the columns"
        )
    return np.asarray(q / size[:, None])


def _track(
    name: str, time: Floats, p: Floats, q: Floats | None, frame: str, covariance: Floats | None = None
) -> PoseTrack:
    """Return a track in W from poses in a frame (`ned` or `enu`)."""
    if frame == "enu":
        p, q = axes.ned_to_enu(p), None if q is None else axes.attitude_enu(q)
        covariance = None if covariance is None else covariance[:, ::-1, ::-1]
    return PoseTrack(name, time, p, q, covariance)


def pose_track(
    where: str,
    time: Floats,
    p: Floats,
    q: Floats,
    frame: str,
    covariance: Floats | None,
    motion: tuple[Floats | None, Floats | None],
) -> PoseTrack:
    """Return a track from the messages of a bag. The messages need not be in chronological order.

    ``motion`` contains the velocities and angular velocities in B, or None.
    """
    order = np.argsort(time, kind="stable")
    track = _track(where, time, p, _quaternions(where, q), frame, covariance)
    track = replace(track, v=motion[0], w=motion[1]).part(order)
    swapped = int((np.diff(order) < 0).sum())
    return _in_order(
        where, replace(track, notes=(f"{swapped} messages were not in chronological order",) if swapped else ())
    )


def _in_order(where: str, track: PoseTrack) -> PoseTrack:
    """Return a track without repeated times and poses with missing values. Raise LogError if its times decrease."""
    if not np.isfinite(track.time).all():
        raise LogError(f"{where}: times must be finite numbers")
    if not (known := np.isfinite(track.p[:, :2]).all(axis=1)).all():
        note = f"{int((~known).sum())} poses without a position were omitted"
        track = replace(track.part(known), notes=(*track.notes, note))
    track = _complete(track)
    steps = np.diff(track.time)
    if (steps < 0.0).any():
        at = int(np.argmax(steps < 0.0))
        raise LogError(
            f"{where}: times must increase, but pose {at + 2} (t = {track.time[at + 1]:.9g} s) follows t = "
            f"{track.time[at]:.9g} s; sort the file"
        )
    if track.covariance is not None:
        nn, ne, ee = track.covariance[:, 0, 0], track.covariance[:, 0, 1], track.covariance[:, 1, 1]
        if not ((nn > 0.0) & (ee > 0.0) & (nn * ee > ne * ne)).all():
            raise LogError(f"{where}: covariances of the position must be positive definite; check their columns")
    if not (steps > 0.0).all():
        repeated = int((steps == 0.0).sum())
        kept = track.part(np.concatenate([steps > 0.0, [True]]))
        track = replace(kept, notes=(*track.notes, f"{repeated} poses with a repeated time were omitted"))
    return _with_checked_velocity(track)


def _complete(track: PoseTrack) -> PoseTrack:
    """Return a track in which either all poses or none have a depth. The same applies to attitudes, velocities and
    rates.

    If at most half of the poses lack a depth or an attitude, these poses are omitted; otherwise, the depths or
    attitudes are not used.
    """
    for name in ("depth", "attitude"):
        x = track.p[:, 2:] if name == "depth" else track.q
        lacking: Any = np.zeros(0, bool) if x is None else ~np.isfinite(x).all(axis=1)
        if not lacking.any() or (name == "depth" and lacking.all()):
            continue
        many = lacking.mean() > 0.5
        note = f"{int(lacking.sum())} poses without a valid {name} were omitted"
        if many:
            note = f"{int(lacking.sum())} of {len(lacking)} poses have no valid {name}; the {name}s are not used"
        track = replace(track, notes=(*track.notes, note))
        if not many:
            track = track.part(~lacking)
        elif name == "depth":
            track = replace(track, p=track.p * (1.0, 1.0, np.nan))
        else:
            track = replace(track, q=None)
    for name, key in (("velocities", "v"), ("angular velocities", "w")):
        x = getattr(track, key)
        if x is None or (np.isfinite(x).all() and x.any()):
            continue
        track = replace(track, **{key: None})  # type: ignore[arg-type]
        if x.any():  # many programs leave values of 0 that they do not know
            track = replace(track, notes=(*track.notes, f"some {name} are missing; none are used"))
    return track


def _with_checked_velocity(track: PoseTrack) -> PoseTrack:
    """Return a track without its velocities if they contradict the changes of its positions."""
    if track.v is None or track.q is None or len(track.time) < 3:
        return track
    t, p = track.time, track.p[:, :2]
    step = max(round(COMPARED_S / float(np.median(np.diff(t)))), 1)
    if len(t) <= step:
        return track
    moved = p[step:] - p[:-step]

    def difference(v: Floats) -> float:
        """Return the RMS difference in m between the displacements and the integral of velocities (T, 3) in W."""
        steps = 0.5 * (v[1:, :2] + v[:-1, :2]) * np.diff(t)[:, None]
        way = np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])
        return rms_distance(way[step:] - way[:-step] - moved)

    noise = 1.5 * float(np.median(np.abs(np.diff(p, 2, axis=0)))) / 6.0**0.5
    limit = max(0.5 * rms_distance(moved), 4.0 * noise, COMPARED_M)
    if (found := difference(np.einsum("tij,tj->ti", frames.rotation(track.q), track.v))) < limit:
        return track
    cause = "wrong unit or axes?"
    if min(difference(track.v), difference(axes.ned_to_enu(track.v))) < 0.5 * found:
        cause = "they seem to be in the axes of the world instead of the body"
    note = (
        f"the velocities are not used: over {COMPARED_S:g} s, their integral differs by {found:.2f} m (RMS) "
        f"from the changes of the position; {cause}"
    )
    return replace(track, v=None, notes=(*track.notes, note))


def epoch_time(seconds: float) -> bool:
    """Return whether a time in s is a civil time since 1970 instead of a simulation time."""
    return math.isfinite(seconds) and seconds > 1e8
