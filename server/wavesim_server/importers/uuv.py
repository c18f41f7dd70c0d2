"""Reader for parameter sets in forward-left-up axes, as used by UUV Simulator, Gazebo and MarineGym."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_server.importers.model_draft import ModelDraft, TrackedTable, format_numbers

FLIP = np.diag([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])  #: factors that convert forward-left-up to forward-starboard-down


def read(path: Path, data: dict[str, Any], settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the draft model with the masses and matrices from the file, converted to the axes of this project."""
    d = TrackedTable(data)
    name = re.sub(r"[^A-Za-z0-9_-]", "-", str(d.get("model") or d.get("name") or path.stem)).lower()
    draft = ModelDraft(
        name, f"{path.name} (forward-left-up axes converted to forward-starboard-down)", settings, angles
    )
    draft.attributes["type"] = "underwater"
    size = [d[k] for k in ("length", "width", "height")] if "length" in d else draft.require_numbers("size", 3)
    if size is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    flip = FLIP[:3, :3]
    mass = [d["mass"]] if "mass" in d else draft.require_numbers("mass", 1)
    if mass is not None:
        draft.add("mass", value=f"{mass[0]:g} kg", centre=format_numbers(*flip @ d.get("cog", [0.0, 0.0, 0.0])) + " m")
    if "inertial" in d:
        i = TrackedTable(d["inertial"], "inertial")
        draft.add(
            "inertia",
            xx=f"{i['ixx']:g}",
            yy=f"{i['iyy']:g}",
            zz=f"{i['izz']:g}",
            xy=f"{-i['ixy'] + 0.0:g}",
            xz=f"{-i['ixz'] + 0.0:g}",
            yz=f"{i['iyz']:g}",
        )
        draft.record_unused(i)
    elif (three := draft.require_numbers("inertia", 3)) is not None:
        draft.add("inertia", xx=f"{three[0]:g}", yy=f"{three[1]:g}", zz=f"{three[2]:g}")
    cob = d["cob"] if "cob" in d else [0.0, 0.0, d.get("coBM", 0.0)]
    draft.add("buoyancy", volume=f"{d['volume']:.12g} m3", centre=format_numbers(*flip @ cob) + " m")
    h = d.get("hydro_coef")
    if h:
        h = TrackedTable(h, "hydro_coef")
        draft.matrix("added-mass", np.diag(np.array(h["added_mass"], float)))
        draft.matrix("linear-drag", np.diag(np.array(h["linear_damping"], float)))
        draft.matrix("quadratic-drag", np.diag(np.array(h["quadratic_damping"], float)))
        draft.record_unused(h)
    else:
        draft.matrix("added-mass", FLIP @ np.array(d["Ma"], float) @ FLIP)
        for tag, key in (("linear-drag", "linear_damping"), ("quadratic-drag", "quad_damping")):
            if key in d:
                m = -np.array(d[key], float)
                draft.matrix(tag, np.diag(m) if m.ndim == 1 else FLIP @ m @ FLIP)
        if "linear_damping_forward_speed" in d:
            draft.matrix("lift", -FLIP @ np.array(d["linear_damping_forward_speed"], float) @ FLIP)
    if "density" in d:
        draft.notes.append(
            f"the coefficients apply to water of {d['density']:g} kg/m3; set <world density=...> to this value"
        )
    _add_thrusters(draft)
    d.ignore("base_link")
    draft.record_unused(d)
    return draft


def _add_thrusters(draft: ModelDraft) -> None:
    """Add the thrusters that the user supplies, since files of this kind do not contain the positions and directions of
    thrusters.
    """
    numbers = draft.require_numbers("thrusters", 0)
    for k in range(len(numbers or ()) // 7):
        x, y, z, dx, dy, dz, most = (numbers or [])[7 * k : 7 * k + 7]
        draft.add(
            "thruster",
            name=f"thruster-{k}",
            position=format_numbers(x, y, z) + " m",
            direction=format_numbers(dx, dy, dz),
            law="force",
            minimum=f"{-most:g}",
            maximum=f"{most:g}",
            lag="0 s",
        )
