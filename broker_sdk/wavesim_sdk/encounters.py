"""How near bodies come to each other: predicted from positions and velocities, and found in tracks; who gives way to whom."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from wavesim_sdk.frames import wrap

ABAFT = math.radians(112.5)  #: 22.5 deg abaft the beam: the sector of the stern light
MIN_DOMAIN_LENGTHS, PREFERRED_DOMAIN_LENGTHS = (
    2.0,
    10.0,
)  #: lengths of own ship: the domain that no other may enter, and the one that is kept clear
HEAD_ON = math.radians(12.0)  #: a reciprocal course is one within so much, seen from both

Array = np.ndarray[Any, np.dtype[Any]]
CONTACT_NOTICE_PREFIX = "contact with "  #: so begins the notice of a contact


def closest_approach(p_AB_W: Any, v_AB_W: Any) -> tuple[Any, Any]:
    """(DCPA in m, TCPA in s) of bodies that keep their velocities.

    ``p_AB_W`` (..., n) is where B is from A in m, ``v_AB_W`` (..., n) how it moves from there in m/s, in two axes (ships) or
    three. TCPA is negative if they were nearest in the past, 0 if the distance does not change.
    """
    p, v = np.asarray(p_AB_W, float), np.asarray(v_AB_W, float)
    square = np.sum(v * v, axis=-1)
    time = -np.sum(p * v, axis=-1) / np.where(square > 0.0, square, 1.0)
    return np.linalg.norm(p + v * time[..., None], axis=-1), time + 0.0


def domain(length: float) -> tuple[float, float]:
    """Ship domain of own ship, whose ``length`` is in m: radii in m of the circles around others that she may not and should not
    enter. Scores and pictures of encounters use these, the reference avoider the second."""
    return MIN_DOMAIN_LENGTHS * length, PREFERRED_DOMAIN_LENGTHS * length


class EncounterRole(enum.Enum):
    """Part that a power-driven vessel plays towards another in sight of it (COLREG rules 13 to 15 and 17)."""

    HEAD_ON = "head-on"  #: 14: both alter course to starboard
    OVERTAKING = "overtaking"  #: 13: she keeps out of the way
    OVERTAKEN = "overtaken"  #: 13, 17: she holds
    GIVE_WAY = "give way"  #: 15: the other is on her starboard side
    STAND_ON = "stand on"  #: 17: she holds


def role(
    p_AB_W: Any, course_A: float, course_B: float, speed_A: float, speed_B: float, head_on: float = HEAD_ON
) -> EncounterRole:
    """What A is towards B. ``p_AB_W``: where B is from A (north, east, m); courses in rad, speeds in m/s.

    It holds whether or not there is a risk of collision, and is that of this moment: a vessel keeps the role in which an
    encounter began (rule 13d). ``head_on``: how near ahead both must see each other.
    """
    bearing = math.atan2(p_AB_W[1], p_AB_W[0])
    seen = wrap(bearing - course_A)  # of B from A, off the bow
    aspect = wrap(bearing + math.pi - course_B)  # of A from B
    closing = speed_A * math.cos(seen) + speed_B * math.cos(aspect)  # m/s
    if closing > 0.0 and abs(aspect) >= ABAFT - 1e-9 and abs(seen) < ABAFT - 1e-9:
        return EncounterRole.OVERTAKING
    if closing > 0.0 and abs(seen) >= ABAFT - 1e-9 and abs(aspect) < ABAFT - 1e-9:
        return EncounterRole.OVERTAKEN
    if abs(seen) <= head_on and abs(aspect) <= head_on:
        return EncounterRole.HEAD_ON
    side = seen if abs(seen) > 1e-9 else -aspect  # right ahead: by what the other sees
    return EncounterRole.GIVE_WAY if side > 0.0 else EncounterRole.STAND_ON


def closest_on_track(times: Array, p_AB_W: Array) -> tuple[float, float]:
    """(least distance in m, when in s) of a relative track: places (n, axes) at ``times`` (n,), straight between them."""
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
    """For each track by name, (times in s, places in W): who came nearest, how near in m, when in s.

    Two are compared while both are there, at the times of the first; a track that met none has no entry.
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
