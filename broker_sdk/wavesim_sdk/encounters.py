"""How near bodies come to each other: predicted from positions and velocities, and found in tracks."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
CONTACT = "contact with "  #: so begins the notice of a contact


def closest_approach(p_AB_W: Any, v_AB_W: Any) -> tuple[Any, Any]:
    """(DCPA in m, TCPA in s) of bodies that keep their velocities.

    ``p_AB_W`` (..., n) is where B is from A in m, ``v_AB_W`` (..., n) how it moves from there in m/s, in two axes (ships) or
    three. TCPA is negative if they were nearest in the past, 0 if the distance does not change.
    """
    p, v = np.asarray(p_AB_W, float), np.asarray(v_AB_W, float)
    square = np.sum(v * v, axis=-1)
    time = -np.sum(p * v, axis=-1) / np.where(square > 0.0, square, 1.0)
    return np.linalg.norm(p + v * time[..., None], axis=-1), time + 0.0


def nearest(times: Array, p_AB_W: Array) -> tuple[float, float]:
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


def passes(tracks: dict[str, tuple[Array, Array]]) -> dict[str, tuple[str, float, float]]:
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
            distance, time = nearest(ta[both], at - pa[both])
            for one, other in ((a, b), (b, a)):
                if one not in found or distance < found[one][1]:
                    found[one] = other, distance, time
    return found
