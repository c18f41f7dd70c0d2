"""The data set ssu1: nineteen receivers and four tags in Florida Bay in 2019.

The R package yaps (GPL-3) contains it, with permission from J. S. Rehage. It is not part of WaVeSim.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.field_trials.clock_solution import Survey
from wavesim_studies.field_trials.detection_files import GPS_FILE, DetectionTrial, read_rows, read_trial
from wavesim_studies.field_trials.towed_track import TowedTrack

LICENCE = (
    "Data: set ssu1 of the R package yaps (GPL-3, https://github.com/baktoft/yaps), included there with permission from "
    "J. S. Rehage, Florida International University. The data are not part of WaVeSim."
)
KEEPER = 5  #: receiver that keeps the time
HELD = (2, 3, 6, 8, 11, 13, 14, 15, 16, 17)  #: receivers whose positions yaps holds as well
TOWED = 15266  #: number of the towed tag
#: sound speed in m/s and its standard deviation: 27 to 33 C and salinity 30 to 40 at the surface (Medwin 1975). The
#: water was not measured.
SOUND_SPEED, SPEED_DEVIATION = 1547.0, 8.0
MARGIN = 3600.0  #: time in s before and after the tow in which the fixed tags show the shares of detections
YAPS_FILE, YAPS_COLUMNS = "yaps_track.csv", ("epoch_s", "x_m", "y_m", "receivers")


def read(folder: Path) -> tuple[DetectionTrial, Survey]:
    """Read the data set from a folder. Raises LogError if the folder contains another data set."""
    trial = read_trial(folder)
    numbers = [int(name[1:]) for name in trial.names]
    if KEEPER not in numbers or trial.towed_tags != [TOWED]:
        raise LogError(f"{folder} does not contain ssu1: expected receiver {KEEPER} and one towed tag, {TOWED}")
    if len(trial.gps) < 2:
        raise LogError(f"{folder / GPS_FILE} has {len(trial.gps)} fixes; at least 2 are needed")
    return trial, Survey(
        numbers.index(KEEPER), np.isin(numbers, HELD), sound_speed=SOUND_SPEED, speed_deviation=SPEED_DEVIATION
    )


def fit_span(trial: DetectionTrial) -> tuple[float, float]:
    """Return the times in s between which the fixed tags show the shares of detections. GPS gives the time of the tow."""
    return float(trial.gps[0, 0]) - MARGIN, float(trial.gps[-1, 0]) + MARGIN


def yaps_track(folder: Path, trial: DetectionTrial) -> Floats | None:
    """Return time, east and north of the pings in the stored result of yaps; None if the folder lacks it.

    Pings that yaps inserted in gaps are left out.
    """
    path = folder / YAPS_FILE
    if not path.exists():
        return None
    rows = read_rows(path, YAPS_COLUMNS)
    return np.asarray(rows[rows[:, 3] > 0.0, :3] - np.array([trial.start, *trial.origin]))


def yaps_distances(yaps: Floats, track: TowedTrack, gps: Floats) -> tuple[float, float]:
    """Return the median distances in m of the track of yaps from the fixes and from another track.

    Only pings that both tracks contain count.
    """
    nearest = np.argmin(np.abs(yaps[:, 0][:, None] - track.time), axis=1)
    same = np.abs(yaps[:, 0] - track.time[nearest]) < 1.0
    inside = same & (yaps[:, 0] >= gps[0, 0]) & (yaps[:, 0] <= gps[-1, 0])
    east, north = (np.interp(yaps[inside, 0], gps[:, 0], gps[:, k]) for k in (1, 2))
    to_gps = np.hypot(yaps[inside, 1] - east, yaps[inside, 2] - north)
    between = np.linalg.norm(yaps[same, 1:] - track.position[nearest[same]], axis=1)
    return float(np.median(to_gps)), float(np.median(between))
