"""Lines (tethers, moorings, tow cables) as the page draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_viz.frame import decode_text, to_json_value
from wavesim_viz.page_content import CableInfo


def cable_messages(records: Any) -> list[CableInfo]:
    """Return the current lines from records of the ``lines`` table. Each line has a name, a maximum tension (N), the
    number of its broken segment (-1: none), and the positions of its nodes (m, in W), one after the other.
    """
    return [
        {
            "name": decode_text(r["name"]),
            "tension": to_json_value(r["greatest"]),
            "broken": int(r["broken"]),
            "points": np.round(r["nodes_W"][: 3 * int(r["nodes"])], 3).tolist(),
        }
        for r in records
        if r["present"] and np.isfinite(r["nodes_W"]).all()
    ]
