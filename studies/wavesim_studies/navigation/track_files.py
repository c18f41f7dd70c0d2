"""Reader for tracks of vehicles in CSV files, TUM files, ROS bags and WaVeSim logs."""

from __future__ import annotations

from pathlib import Path

from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, read
from wavesim_sdk.logfile import first_content
from wavesim_sdk.recorded_messages import suffix_of
from wavesim_studies.navigation import bags
from wavesim_studies.navigation import columns as tables
from wavesim_studies.navigation.estimate_score import TIME_ORIGIN, time_origin
from wavesim_studies.navigation.pose_tracks import (
    FRAMES,
    KEYS,
    ROLES,
    PoseTrack,
    track_of_csv,
    track_of_log,
    track_of_tum,
)

__all__ = ["is_wavesim_log", "read_track"]


def read_track(path: Path | Log, layout: str = "", body: str = "", true: bool = False) -> PoseTrack:
    """Read a track from a file, in the format that its name indicates.

    - ``.csv``: a table with a header. ``layout`` names the columns (see :mod:`wavesim_studies.navigation.columns`).
    - a ROS 2 bag (folder, ``.mcap``, ``.db3``) or a ROS 1 bag (``.bag``): Odometry, PoseWithCovarianceStamped or
      PoseStamped. ``topic=NAME`` in ``layout`` selects the topic.
    - a log from MAVLink, ArduPilot, PX4 or DUNE: the simulator's ground truth or, if there is none, the vehicle's own
      estimate.
    - a WaVeSim log: the estimates (or, if ``true``, the true states) of ``body``.
    - any other name: TUM, with the columns ``t x y z qx qy qz qw``.

    ``frame=ned`` or ``frame=enu`` in ``layout`` states the axes: default `enu` for bags, otherwise `ned`. With `enu`,
    attitudes are those of a body with the axes forward, left, up (REP 103). ``unit=ns`` states the unit of the times in
    a TUM file. Raise LogError if the file cannot be used.
    """
    if isinstance(path, Log):
        return track_of_log(path, body, true)
    options = tables.parse_layout(layout, (*KEYS, *ROLES), "--layout")
    body = options.pop("body", body)
    if (frame := options.pop("frame", "")) not in ("", *FRAMES):
        raise LogError(f"unknown frame '{frame}'; use ned or enu")
    kind = path.suffix.lower()
    if kind != ".csv" and (named := [k for k in options if k in ROLES]):
        raise LogError(f"'{named[0]}={options[named[0]]}' names a column, but {path} is not a CSV file (.csv)")
    if kind == ".csv":
        track = track_of_csv(path, frame or "ned", options)
    elif path.is_dir() or kind in (".mcap", ".db3", ".bag"):
        if kind == ".mcap" and is_wavesim_log(path):
            return track_of_log(read(path), body, true)
        track = bags.read_pose_track(path, options.get("topic", ""), frame or "enu")
    elif suffix_of(path):
        if frame or options:
            raise LogError(f"a layout does not apply to {path}: its format defines the fields, units and axes")
        log = read(path)
        track = track_of_log(log, "", true=True)
        if log.metadata.get(TIME_ORIGIN):
            track = track.shifted(time_origin(log))
    else:
        track = track_of_tum(path, frame or "ned", options.get("unit", "s"))
    if len(track.time) < 2:
        raise LogError(f"{path} has {len(track.time)} pose(s); a track needs at least two")
    return track


def is_wavesim_log(path: Path) -> bool:
    """Return whether an MCAP file is a WaVeSim log; its metadata come before all messages."""
    return first_content(path) == "wavesim"
