"""Values that a Panisim/Makara vessel folder leaves out, and the files that it names.

Panisim's manual gives some values outside the folder (`simulation_input.yml`), and its own examples omit others. Each
function adds a note about the value that it uses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.model_draft import EMPTY_VALUES, ModelDraft, TrackedTable
from wavesim_server.spheroid import spheroid_added_mass

GRAVITY, DENSITY = 9.80665, 1025.0  #: Panisim's own values, in m/s2 and kg/m3
#: damping derivatives; in the prime system, those of real hulls are below 1
DAMPING = ("X_u", "Y_v", "Z_w", "K_p", "M_q", "N_r")
LARGEST_PRIME = 10.0
#: ratio of a vessel's mass to the mass of water in its box, above which the vessel counts as submerged
FILLED = 0.6
UNDERWATER = ("auv", "uuv", "rov", "submarine", "glider", "underwater")


class AgentEntry(NamedTuple):
    """Entry of `simulation_input.yml` for a vessel."""

    name: str
    type: str
    speed: float  #: speed in m/s; 0 = not stated
    active: tuple[int, ...]
    density: float
    gravity: float


def find_agent(folder: Path, draft: ModelDraft) -> AgentEntry:
    """Return the vessel's entry in `simulation_input.yml` in the folder or above it, or an empty entry if there is
    none.
    """
    for place in (folder, *list(folder.parents)[:2]):
        path = place / "simulation_input.yml"
        if not path.is_file():
            continue
        found = yaml.safe_load(path.read_text()) or {}
        agents = [a for a in (found.get("agents") or []) if isinstance(a, dict)] if isinstance(found, dict) else []
        named = [a for a in agents if a.get("name") == folder.name]
        if not named and len(agents) > 1:
            draft.notes.append(f"simulation_input.yml: no agent has the name '{folder.name}'")
            continue
        agent = (named or agents or [{}])[0]
        draft.notes.append(
            "simulation_input.yml: type, active_dof and U belong to the model; enter the density and the other values in the world"
        )
        return AgentEntry(
            str(agent.get("name") or ""),
            str(agent.get("type") or "").lower(),
            float(agent.get("U") or 0.0),
            tuple(int(bool(k)) for k in agent.get("active_dof") or ()),
            float(found.get("density") or DENSITY),
            float(found.get("gravity") or GRAVITY),
        )
    return AgentEntry("", "", 0.0, (), DENSITY, GRAVITY)


def locate(folder: Path, value: Any) -> Path | None:
    """Return the file that a vessel folder names, or None. The function searches the folder and the two folders above
    it; in each folder, it first tries the path of the file and then the file name alone.
    """
    if value in EMPTY_VALUES:
        return None
    path = Path(str(value).replace("{name}", folder.name))
    places = (folder, *list(folder.parents)[:2])
    for found in (p for place in places for p in (place / path, place / path.name)):
        if found.is_file():
            return found
    for place in places[:2]:  # file systems of other machines may not distinguish case
        for found in place.iterdir():
            if found.name.lower() == path.name.lower() and found.is_file():
                return found
    return None


def model_name(folder: Path, agent: AgentEntry, hydra_file: Any) -> str:
    """Return the vessel's own name: the name of its agent, its HydRA file or its folder."""
    stem = Path(str(hydra_file)).stem if hydra_file not in EMPTY_VALUES else ""
    name = agent.name or (stem.removesuffix("_hydra") if stem.endswith("_hydra") else folder.name)
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "vessel"


def actuator_name(draft: ModelDraft, text: str) -> str:
    """Return a valid and unique name for an actuator. Add a note if it differs from the given name."""
    name = re.sub(r"[^a-z0-9_-]+", "-", text.lower()).strip("-")[:28] or "actuator"
    name = f"actuator-{name}" if name.isdigit() else name
    taken = {e.get("name") for e in draft.elements}
    unique, k = name, 2
    while unique in taken:
        unique, k = f"{name}-{k}", k + 1
    if unique != text.lower():
        draft.notes.append(f"the actuator '{text}' is renamed to '{unique}'")
    return unique


def is_underwater(
    draft: ModelDraft, agent: AgentEntry, geometry: Mapping[str, Any], mass: float, start: Floats
) -> bool:
    """Return whether a vessel is an underwater vehicle: by the user's setting, its agent, its start or its geometry."""
    if "type" in draft.settings:
        given = draft.require_text("type")
        if given not in ("surface", "underwater"):
            raise ConfigError(f"--set type={given}: use surface or underwater")
        return given == "underwater"
    if agent.type:
        return any(word in agent.type for word in UNDERWATER)
    draft.used_settings.add("type")
    length, breadth, depth = (float(geometry[k]) for k in ("length", "breadth", "depth"))
    filled = mass / (agent.density * length * breadth * depth)
    reasons = {
        f"it starts at a depth of {start[2]:g} m": start[2] > depth,
        f"its mass is {filled:.0%} of the mass of water in a box with its length, breadth and depth": filled > FILLED,
    }
    reason = next((text for text, holds in reasons.items() if holds), "")
    draft.notes.append(
        f"type: underwater, because {reason}; --set type=surface changes this"
        if reason
        else "type: surface, because it starts at the surface and floats; --set type=underwater changes this"
    )
    return bool(reason)


def derivative_system(
    draft: ModelDraft,
    agent: AgentEntry,
    geometry: Mapping[str, Any],
    hydro: Mapping[str, Any],
    found: Mapping[str, float],
) -> dict[str, str]:
    """Return the attributes of <derivatives>: the system of units with its length and speed."""
    if hydro.get("dim_flag", False):
        return {}
    largest = max((abs(found.get(name, 0.0)) for name in DAMPING), default=0.0)
    if "derivatives" in draft.settings or largest > LARGEST_PRIME:
        given = draft.settings.get("derivatives", "dimensional").strip()
        draft.used_settings.add("derivatives")
        if given not in ("prime", "dimensional"):
            raise ConfigError(f"--set derivatives={given}: use prime or dimensional")
        if "derivatives" not in draft.settings:
            draft.notes.append(
                f"dim_flag is false, but a derivative of {largest:g} is too large for the prime system: the derivatives "
                "are read in SI units; --set derivatives=prime changes this"
            )
        if given == "dimensional":
            return {}
    length = float(geometry["length"])
    froude = geometry.get("Fn")
    speed = agent.speed
    if not speed and froude is not None:
        speed = float(froude) * math.sqrt(agent.gravity * length)
    if not speed:
        draft.notes.append("Fn and U are missing: the prime system uses the instantaneous speed")
    return {"system": "prime", "length": f"{length:g} m", "speed": f"{speed:.12g} m/s"}


def estimated_added_mass(sections: Floats, mass: float, density: float, submerged: bool) -> Floats:
    """Return the diagonal of the added mass for a hull with rows (x, beam, draft or height) in m.

    The values are those of strips with elliptic cross-sections (Newman, Marine Hydrodynamics, 1977): pi rho T^2/2 in
    sway and pi rho B^2/8 in heave for a floating section. A submerged section has twice the values of its lower half.
    In surge, the value is that of Lamb's spheroid with the same volume.
    """
    x, beam, draft = sections.T
    floats = 1.0 if not submerged else 2.0
    depth = draft if not submerged else 0.5 * draft
    half = 0.5 * beam
    side, below = floats * 0.5 * math.pi * density * depth**2, floats * 0.5 * math.pi * density * half**2
    roll = floats * math.pi / 16.0 * density * (half**2 - depth**2) ** 2
    length = float(x[-1] - x[0])
    volume = mass / density * (1.0 if submerged else 2.0)
    diameter = math.sqrt(6.0 * volume / (math.pi * length))
    surge = spheroid_added_mass(max(length / diameter, 1.01))[0] * mass
    parts = side, below, roll, x * x * below, x * x * side
    return np.array([surge, *(float(np.trapezoid(part, x)) for part in parts)])


def box_sections(geometry: Mapping[str, Any], mass: float, density: float, submerged: bool) -> Floats:
    """Return the end sections of a box with the vessel's length and breadth, at the draft that carries its mass."""
    length, breadth, depth = (float(geometry[k]) for k in ("length", "breadth", "depth"))
    draft = depth if submerged else min(mass / (density * length * breadth), depth)
    return np.array([[-0.5 * length, breadth, draft], [0.5 * length, breadth, draft]])


def surface_axes(draft: ModelDraft, where: str, name: str, angles: Iterable[float]) -> tuple[Floats, Floats]:
    """Return the chord and the normal of a control surface in body axes.

    Panisim rotates a horizontal surface by roll, pitch and yaw, in this order of axes; its force at a positive angle
    points up. A rudder has to be upright: if this rotation does not make it upright, the angles are relative to an
    upright rudder; the yaw is omitted if the chord would otherwise be across the flow.
    """
    roll, pitch, yaw = angles
    turned = rotation(roll, pitch, yaw)
    if "rudder" not in name:
        if abs(turned[0, 0]) < 0.5:
            draft.notes.append(f"{where}: its orientation turns the chord of '{name}' across the flow")
        return turned[:, 0], -turned[:, 2]
    upright = [(turned[:, 0], -turned[:, 2], "")]
    upright.append((turned[:, 0], turned[:, 1], "the orientation is taken relative to an upright rudder"))
    still = rotation(roll, pitch, 0.0)
    upright.append(
        (
            still[:, 0],
            still[:, 1],
            f"its yaw of {math.degrees(yaw):.3g} deg would turn the chord across the flow, so it is omitted",
        )
    )
    upright.append((np.eye(3)[0], np.eye(3)[1], "its orientation would not make it upright, so it is omitted"))
    chord, normal, note = next(u for u in upright if abs(u[0][0]) > 0.5 and abs(u[1][1]) > 0.5)
    if note:
        draft.notes.append(f"{where}: '{name}': {note}")
    return chord, normal


def rotation(roll: float, pitch: float, yaw: float) -> Floats:
    """Return Panisim's rotation of a part: about x, then about the turned y and z axes."""
    a, b, c = ((math.cos(t), math.sin(t)) for t in (roll, pitch, yaw))
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, a[0], -a[1]], [0.0, a[1], a[0]]])
    about_y = np.array([[b[0], 0.0, b[1]], [0.0, 1.0, 0.0], [-b[1], 0.0, b[0]]])
    about_z = np.array([[c[0], -c[1], 0.0], [c[1], c[0], 0.0], [0.0, 0.0, 1.0]])
    turned: Floats = about_x @ about_y @ about_z
    return turned


def or_default(draft: ModelDraft, table: TrackedTable, where: str, key: str, default: Any, reason: str = "") -> Any:
    """Return an entry. If it is missing, add a note and return a default."""
    if key in table and table[key] not in (None, "None", "none", ""):
        return table[key]
    draft.notes.append(f"{where}: {key} is missing: {reason or default}")
    return default
