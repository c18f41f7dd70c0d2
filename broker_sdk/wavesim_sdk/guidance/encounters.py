"""Encounters between bodies: their closest approach, either predicted or found in tracks, and their roles under the
collision regulations.
"""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.frames import wrap

#: angle off the bow in rad at which the sector of the stern light begins: 22.5 deg abaft the beam
ABAFT = math.radians(112.5)
MIN_DOMAIN_LENGTHS, PREFERRED_DOMAIN_LENGTHS = (
    2.0,
    10.0,
)  #: radii of the minimum and the preferred ship domain, in own-ship lengths
HEAD_ON = math.radians(12.0)  #: angle off the bow, seen from both vessels, within which courses count as reciprocal

CONTACT_NOTICE_PREFIX = "contact with "  #: beginning of a notice that reports a contact


def closest_approach(p_AB_W: Any, v_AB_W: Any) -> tuple[Any, Any]:
    """Return the distance (DCPA, m) and the time (TCPA, s) of the closest approach between bodies that keep their
    velocities.

    ``p_AB_W`` (..., n) is the position of B relative to A in m. ``v_AB_W`` (..., n) is the velocity of B relative to A
    in m/s. Both have two components (ships) or three. TCPA is negative if the closest approach is in the past, and 0 if the
    distance is constant.
    """
    p, v = np.asarray(p_AB_W, float), np.asarray(v_AB_W, float)
    square = np.sum(v * v, axis=-1)
    time = -np.sum(p * v, axis=-1) / np.where(square > 0.0, square, 1.0)
    return np.linalg.norm(p + v * time[..., None], axis=-1), time + 0.0


def domain(length: float) -> tuple[float, float]:
    """Return the radii in m of the minimum and the preferred ship domain for own ship with a length of ``length`` m.

    Own ship must not enter the minimum domain around another vessel and should not enter the preferred one. Scores and
    plots of encounters use both domains; the reference avoider uses the preferred one.
    """
    return MIN_DOMAIN_LENGTHS * length, PREFERRED_DOMAIN_LENGTHS * length


class EncounterRole(enum.Enum):
    """Role of a power-driven vessel towards another vessel in sight (COLREG rules 13 to 15 and 17)."""

    HEAD_ON = "head-on"  #: rule 14: both vessels alter their courses to starboard
    OVERTAKING = "overtaking"  #: rule 13: the vessel overtakes and keeps out of the way
    OVERTAKEN = "overtaken"  #: rules 13, 17: the vessel is overtaken and holds course and speed
    GIVE_WAY = "give way"  #: rule 15: the other vessel is on the starboard side, and this vessel gives way
    STAND_ON = "stand on"  #: rule 17: the vessel holds course and speed


def role(
    p_AB_W: Any, course_A: float, course_B: float, speed_A: float, speed_B: float, head_on: float = HEAD_ON
) -> EncounterRole:
    """Return the role of A towards B. ``p_AB_W`` is the position of B relative to A (north, east) in m; courses are in
    rad and speeds in m/s.

    The result does not depend on the risk of collision and applies only at this instant, whereas a vessel keeps the
    role with which an encounter began (rule 13d). ``head_on`` is the maximum angle off the bow, in rad, at which each
    vessel sees the other in a head-on encounter.
    """
    bearing = math.atan2(p_AB_W[1], p_AB_W[0])
    seen = wrap(bearing - course_A)  # relative bearing of B from A
    aspect = wrap(bearing + math.pi - course_B)  # relative bearing of A from B
    closing = speed_A * math.cos(seen) + speed_B * math.cos(aspect)  # m/s
    if closing > 0.0 and abs(aspect) >= ABAFT - 1e-9 and abs(seen) < ABAFT - 1e-9:
        return EncounterRole.OVERTAKING
    if closing > 0.0 and abs(seen) >= ABAFT - 1e-9 and abs(aspect) < ABAFT - 1e-9:
        return EncounterRole.OVERTAKEN
    if abs(seen) <= head_on and abs(aspect) <= head_on:
        return EncounterRole.HEAD_ON
    side = seen if abs(seen) > 1e-9 else -aspect  # dead ahead: decide from the bearing on the other vessel
    return EncounterRole.GIVE_WAY if side > 0.0 else EncounterRole.STAND_ON


def closest_on_track(times: Array, p_AB_W: Array) -> tuple[float, float]:
    """Return the minimum distance in m between two bodies and the time in s at which it occurs, given the track of one
    body relative to the other. The relative track consists of positions (n, 2) or (n, 3) at ``times`` (n,), joined by
    straight lines.
    """
    if len(times) == 1:
        return float(np.linalg.norm(p_AB_W[0])), float(times[0])
    lasts = np.diff(times)
    v = np.diff(p_AB_W, axis=0) / lasts[:, None]
    _, after = closest_approach(p_AB_W[:-1], v)
    after = np.clip(after, 0.0, lasts)
    distance = np.linalg.norm(p_AB_W[:-1] + v * after[:, None], axis=1)
    k = int(np.argmin(distance))
    return float(distance[k]), float(times[k] + after[k])


def closest_passes(tracks: dict[str, tuple[Array, Array]]) -> dict[str, tuple[str, float, float]]:
    """Return, for each track, the name of the nearest other track, the minimum distance in m, and the time in s at
    which it occurs.

    Each named track is given as (times in s, positions in W). Two tracks are compared while both exist, at the times of
    the first track. A track that overlaps no other track in time has no entry.
    """
    names = list(tracks)
    found: dict[str, tuple[str, float, float]] = {}
    for i, a in enumerate(names):
        ta, pa = tracks[a]
        for b in names[i + 1 :]:
            tb, pb = tracks[b]
            if not len(ta) or not len(tb):
                continue
            both = (ta >= tb[0]) & (ta <= tb[-1])
            if not both.any():
                continue
            at = np.stack([np.interp(ta[both], tb, pb[:, k]) for k in range(pb.shape[1])], axis=1)
            distance, time = closest_on_track(ta[both], at - pa[both])
            for one, other in ((a, b), (b, a)):
                if one not in found or distance < found[one][1]:
                    found[one] = other, distance, time
    return found
