"""Encounters of a selected surface vessel: the distance at each closest point of approach and the time until it occurs,
if all vessels keep their course and speed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.guidance.encounters import closest_approach, domain, role
from wavesim_viz.frame import INVALID, ViewerFrame, to_json_value
from wavesim_viz.page_content import ModelInfo, RosterEntry, Traffic

MAX_ENCOUNTERS = 60
STOPPED_SPEED = 0.05  #: speed in m/s below which the heading is used as the course


def encounter_table(
    frame: ViewerFrame, roster: Sequence[RosterEntry], row: int, models: Mapping[str, ModelInfo]
) -> Traffic | None:
    """Return the encounters of the surface vessel in ``row``: the vessel's length, the radii of its domain (m), and one
    entry for each of the other vessels. An entry contains the row, the range (m), the true bearing and the course over
    ground (rad), the speed over ground (m/s), the DCPA (m) and the TCPA (s). It also contains own ship's role under the
    collision regulations, and the positions (north, east) of both vessels at the closest point of approach. Entries are
    sorted by TCPA. Return None if the body is not a surface vessel, or if its model is unknown.
    """
    kinds = {b[0]: (b[3], b[2]) for b in roster}
    kind, model = kinds.get(row, ("", ""))
    look = models.get(model)
    if kind != "surface" or look is None or frame.v_WB_B is None:
        return None
    b = frame.bodies.astype(float)
    surface = {r for r, (k, _) in kinds.items() if k == "surface"}
    here = np.flatnonzero(np.isin(b[:, 0], list(surface)) & (b[:, 9] != INVALID))
    rows, places = b[here, 0].astype(int).tolist(), b[here, 1:3]
    if row not in rows:
        return None
    own = rows.index(row)
    v = np.einsum("nij,nj->ni", frames.rotation(b[here, 4:8]), np.asarray(frame.v_WB_B, float)[here])[:, :2]
    speeds = np.hypot(v[:, 0], v[:, 1])
    courses = np.where(speeds > STOPPED_SPEED, np.arctan2(v[:, 1], v[:, 0]), frames.euler(b[here, 4:8])[:, 2])
    away = places - places[own]
    ranges = np.hypot(away[:, 0], away[:, 1])
    dcpa, tcpa = closest_approach(away, v - v[own])
    length = look["shape"]["size"][0]
    least, preferred = domain(length)
    first = np.lexsort((np.where(tcpa > 0.0, tcpa, ranges), dcpa > preferred, tcpa <= 0.0))
    found = []
    for k in [k for k in first.tolist() if k != own][:MAX_ENCOUNTERS]:
        then = max(tcpa[k], 0.0)
        found.append(
            {
                "row": rows[k],
                "range": ranges[k],
                "bearing": math.atan2(away[k, 1], away[k, 0]),
                "course": courses[k],
                "speed": speeds[k],
                "dcpa": dcpa[k],
                "tcpa": tcpa[k],
                "role": role(away[k], courses[own], courses[k], speeds[own], speeds[k]).value,
                "own_at": places[own] + then * v[own],
                "other_at": places[k] + then * v[k],
            }
        )
    table: Traffic = to_json_value(
        {
            "row": row,
            "time": frame.time_s,
            "length": length,
            "least": least,
            "preferred": preferred,
            "others": found,
        }
    )
    return table
