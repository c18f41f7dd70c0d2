"""Detections of acoustic tags by drifting receivers, as CSV files in one folder.

``hydros.csv`` lists the receivers, ``detections.csv`` the detections by the receivers' own clocks, and ``gps.csv`` the
fixes of the boat that towed a tag. A simulated trial is written in the same form, so the same code analyses both.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.errors import LogError

RECEIVER_FILE, DETECTION_FILE, GPS_FILE = "hydros.csv", "detections.csv", "gps.csv"
RECEIVER_COLUMNS = ("idx", "serial", "x_m", "y_m", "z_m", "sync_tag")
DETECTION_COLUMNS = ("serial", "tag", "epoch_s", "ms")
GPS_COLUMNS = ("epoch_s", "x_m", "y_m")
LARGEST_SPAN = 10.0e6  #: longest trial in s; a longer span means that times have another unit
LARGEST_EXTENT = 20.0e3  #: largest distance in m of a receiver or a fix from the first receiver
LARGEST_DEPTH = 1000.0  #: greatest depth in m of a receiver


@dataclass(frozen=True)
class DetectionTrial:
    """Detections of one trial.

    Positions are east, north, depth in m from ``origin``. Times are in s since ``start``. ``receiver`` is an index into
    the receivers.
    """

    names: tuple[str, ...]  #: receivers, (N) names
    serials: tuple[int, ...]  #: (N) serial numbers
    surveyed: Floats  #: surveyed positions (N, 3)
    moored_tag: Ints  #: tag on the same mooring as each receiver (N); 0 = none
    receiver: Ints  #: receiver of each detection (D)
    tag: Ints  #: tag of each detection (D)
    time: Floats  #: time of each detection by the receiver's own clock (D)
    gps: Floats  #: time, east and north of each GPS fix (G, 3)
    origin: tuple[float, float]  #: map coordinates (x east, y north) of the origin in m
    start: float  #: epoch of time 0 in s since 1970

    @property
    def fixed_tags(self) -> dict[int, int]:
        """Receiver on whose mooring each fixed tag stands."""
        return {int(tag): n for n, tag in enumerate(self.moored_tag) if tag}

    @property
    def towed_tags(self) -> list[int]:
        """Tags without a mooring."""
        return sorted(set(self.tag.tolist()) - set(self.fixed_tags))


def read_rows(path: Path, columns: Sequence[str], blank: Sequence[str] = ()) -> Floats:
    """Read the named columns of a CSV file. A blank cell is allowed in the columns ``blank``, and is read as 0."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.reader(file)
            header = next(reader, [])
            if missing := [c for c in columns if c not in header]:
                raise LogError(f"{path} has no column '{missing[0]}'; its columns are: {', '.join(header) or 'none'}")
            at, rows = [header.index(c) for c in columns], []
            for row in reader:
                if not row:
                    continue
                values = []
                for name, k in zip(columns, at, strict=True):
                    cell = row[k].strip() if k < len(row) else ""
                    try:
                        value = 0.0 if not cell and name in blank else float(cell)
                    except ValueError:
                        value = math.nan
                    if not math.isfinite(value):
                        raise LogError(f"{path}:{reader.line_num}: '{cell}' in column '{name}' is not a number")
                    values.append(value)
                rows.append(values)
    except FileNotFoundError:
        raise LogError(f"{path} does not exist; give the folder that contains {path.name}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LogError(f"cannot read {path}: {error}") from None
    return np.array(rows).reshape(-1, len(columns))


def read_trial(folder: Path) -> DetectionTrial:
    """Read a trial from the three CSV files in a folder. Raises LogError if a file is missing or implausible."""
    receivers = read_rows(folder / RECEIVER_FILE, RECEIVER_COLUMNS, blank=("sync_tag",))
    detections = read_rows(folder / DETECTION_FILE, DETECTION_COLUMNS)
    gps = read_rows(folder / GPS_FILE, GPS_COLUMNS)
    path = folder / RECEIVER_FILE
    if len(receivers) < 4:
        raise LogError(f"{path} has {len(receivers)} receivers; at least 4 are needed")
    serials = receivers[:, 1].astype(np.int64)
    if len(set(serials.tolist())) < len(serials):
        raise LogError(f"{path}: a serial number occurs twice in column 'serial'")
    far = np.abs(receivers[:, 2:4] - receivers[0, 2:4]).max()
    if far > LARGEST_EXTENT or far == 0.0 or np.abs(receivers[:, 4]).max() > LARGEST_DEPTH:
        raise LogError(
            f"{path}: receivers are {far:.3g} m apart, up to {np.abs(receivers[:, 4]).max():.3g} m deep; "
            "x_m and y_m must be map coordinates in metres, and z_m the depth in metres"
        )
    return _checked_trial(folder, receivers, detections, gps)


def _checked_trial(folder: Path, receivers: Floats, detections: Floats, gps: Floats) -> DetectionTrial:
    """Check detections and fixes against the receivers, and return the trial."""
    path = folder / DETECTION_FILE
    if not len(detections):
        raise LogError(f"{path} has no detections")
    serials = receivers[:, 1].astype(np.int64)
    place = {int(s): n for n, s in enumerate(serials)}
    unknown = sorted(set(detections[:, 0].astype(np.int64).tolist()) - set(place))
    if unknown:
        raise LogError(
            f"{path}: receiver {unknown[0]} in column 'serial' is not in {RECEIVER_FILE}; are the columns in order?"
        )
    if (detections[:, 3] < 0.0).any() or (detections[:, 3] >= 1000.0).any():
        raise LogError(f"{path}: column 'ms' must contain milliseconds from 0 to 999")
    span = np.ptp(detections[:, 2])
    if span > LARGEST_SPAN:
        raise LogError(f"{path}: detections span {span:.3g} s; column 'epoch_s' must contain seconds since 1970")
    start = float(np.floor(detections[:, 2].min()))
    moored = receivers[:, 5].astype(np.int64)
    if not moored.any():
        raise LogError(f"{folder / RECEIVER_FILE}: no receiver has a fixed tag in column 'sync_tag'; clocks need one")
    origin = (float(receivers[0, 2]), float(receivers[0, 3]))
    shift = np.array([*origin, 0.0])
    fixes = gps - np.array([start, *origin])
    if len(gps) and (np.abs(fixes[:, 0]).max() > LARGEST_SPAN or np.abs(fixes[:, 1:]).max() > LARGEST_EXTENT):
        raise LogError(f"{folder / GPS_FILE}: fixes are far from the receivers in time or place; check units and zone")
    if (np.diff(fixes[:, 0]) < 0.0).any():
        raise LogError(f"{folder / GPS_FILE}: fixes must be in chronological order")
    return DetectionTrial(
        tuple(f"r{int(i):02d}" for i in receivers[:, 0]),
        tuple(int(s) for s in serials),
        receivers[:, 2:5] - shift,
        moored,
        np.array([place[int(s)] for s in detections[:, 0]]),
        detections[:, 1].astype(np.int64),
        detections[:, 2] - start + 1e-3 * detections[:, 3],
        fixes,
        origin,
        start,
    )


def write_trial(folder: Path, trial: DetectionTrial) -> None:
    """Write a trial as three CSV files, with times rounded to milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    x0, y0 = trial.origin
    with (folder / RECEIVER_FILE).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(RECEIVER_COLUMNS)
        for n, (name, serial) in enumerate(zip(trial.names, trial.serials, strict=True)):
            x, y, z = trial.surveyed[n]
            out.writerow(
                [int(name[1:]), serial, f"{x + x0:.3f}", f"{y + y0:.3f}", f"{z:.3f}", trial.moored_tag[n] or ""]
            )
    with (folder / DETECTION_FILE).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(DETECTION_COLUMNS)
        for n, tag, time in zip(trial.receiver, trial.tag, trial.time, strict=True):
            ms = round(1e3 * (time + trial.start))
            out.writerow([trial.serials[n], tag, ms // 1000, ms % 1000])
    with (folder / GPS_FILE).open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(GPS_COLUMNS)
        for time, x, y in trial.gps:
            out.writerow([f"{time + trial.start:.3f}", f"{x + x0:.3f}", f"{y + y0:.3f}"])


def within(trial: DetectionTrial, keep: Mask) -> DetectionTrial:
    """Return the trial with only some of its detections."""
    return replace(trial, receiver=trial.receiver[keep], tag=trial.tag[keep], time=trial.time[keep])
