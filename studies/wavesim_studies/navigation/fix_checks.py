"""Checks of satellite fixes in recordings from other programs. All formats use the same checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.navigation.recordings import InstrumentRecording

FAR_M = 1e5  #: a fix that is further than this distance in m from the others must be wrong
FEW = 0.05  #: maximum fraction of wrong fixes; they are omitted. With more of them, the recording is refused
EARTH_M = 6.371e6  #: mean radius of the Earth in m
APART_M, APART_S = 5.0, 60.0  #: smallest distance and longest time between fixes from which a course is computed
#: minimum mean cosine of the angle between heading and course after a swap, and its minimum increase through the swap
AGREE, BETTER = 0.9, 0.25
STEADY = 0.9  #: length of the mean heading vector above which the heading counts as constant
COURSES = 10  #: smallest number of courses that are compared with the heading


def without_far_fixes(r: InstrumentRecording) -> InstrumentRecording:
    """Return a recording without the individual satellite fixes that are far from all others. Raise LogError if there
    are too many of them.
    """
    if r.type != "gps":
        return r
    latitude, longitude = r.values["latitude"], r.values["longitude"]
    middle = float(np.median(latitude)), float(np.median(longitude))
    east = np.mod(longitude - middle[1] + math.pi, 2.0 * math.pi) - math.pi
    far = EARTH_M * np.sqrt((latitude - middle[0]) ** 2 + (east * math.cos(middle[0])) ** 2) > FAR_M
    if not far.any():
        return r
    k = int(np.argmax(far))
    place = f"{math.degrees(latitude[k]):.6f}, {math.degrees(longitude[k]):.6f} deg at t = {r.time[k]:.3f} s"
    what = f"{int(far.sum())} of {len(far)} fixes of '{r.name}' are more than {FAR_M / 1000.0:.0f} km from the others"
    if far.mean() > FEW:
        raise LogError(
            f"{r.source}: {what} (the first: {place}); check the units, and whether latitude and longitude are swapped"
        )
    kept = {name: x[~far] for name, x in r.values.items()}
    return replace(r, time=r.time[~far], values=kept, notes=[*r.notes, f"{what} and were omitted (the first: {place})"])


def check_course(recordings: Sequence[InstrumentRecording]) -> None:
    """Compare the courses between fixes with the headings of an AHRS. If they agree only after latitude and longitude
    are swapped, raise LogError. If the heading is constant, only add a note, because the vehicle may be moving
    sideways.
    """
    headings = [r for r in recordings if r.type == "ahrs"]
    for r in recordings:
        if r.type != "gps" or not headings:
            continue
        latitude, longitude = r.values["latitude"], r.values["longitude"]
        if np.abs(longitude).max() > 0.5 * math.pi:
            continue  # it cannot be a latitude
        stated, _ = _agreement(headings[0], r.time, latitude, longitude)
        swapped, steady = _agreement(headings[0], r.time, longitude, latitude)
        if swapped < AGREE or swapped - stated < BETTER:
            continue
        what = (
            f"the courses between its fixes agree with the heading only after a swap (mean cosine {swapped:.2f} "
            f"instead of {stated:.2f})"
        )
        if steady < STEADY:
            raise LogError(f"{r.source}: latitude and longitude of '{r.name}' are swapped: {what}")
        r.notes.append(
            f"latitude and longitude swapped? {what}; the heading is constant, so the vehicle may be moving sideways"
        )


def _agreement(ahrs: InstrumentRecording, time: Floats, latitude: Floats, longitude: Floats) -> tuple[float, float]:
    """Return the mean cosine of the angle between heading and course, and the length of the mean of the unit vectors of
    the headings. Both are 0 for a vehicle that hardly moves.
    """
    north = EARTH_M * (latitude - latitude[0])
    east = EARTH_M * math.cos(float(latitude[0])) * (longitude - longitude[0])
    starts, ends, last = [], [], 0
    for k in range(1, len(time)):
        if time[k] - time[last] > APART_S:
            last = k
        elif math.hypot(north[k] - north[last], east[k] - east[last]) > APART_M:
            starts.append(last)
            ends.append(k)
            last = k
    if len(starts) < COURSES:
        return 0.0, 0.0
    dn, de = north[ends] - north[starts], east[ends] - east[starts]
    heading = np.unwrap(ahrs.values["heading"])
    middle = np.interp(0.5 * (time[starts] + time[ends]), ahrs.time, heading)
    c, s = np.cos(middle), np.sin(middle)
    return float(np.mean((dn * c + de * s) / np.sqrt(dn**2 + de**2))), math.hypot(float(c.mean()), float(s.mean()))
