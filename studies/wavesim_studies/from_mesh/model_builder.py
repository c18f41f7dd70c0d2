"""Model of a vehicle from the results for its mesh: the elements of a models file, and the uncertainty of each value."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_server.importers.model_draft import ModelDraft, format_numbers
from wavesim_server.importers.spatial_matrices import shifted
from wavesim_studies.from_mesh.actuators import FinPart, ThrusterPart
from wavesim_studies.from_mesh.balance import DENSITY, VehicleBalance
from wavesim_studies.from_mesh.floating import PanelSolution
from wavesim_studies.from_mesh.mesh_preparation import PreparedMesh
from wavesim_studies.from_mesh.resistance import DragEstimate

FORCES, VELOCITIES = "XYZKMN", "uvwpqr"
WAVE_DAMPING = 0.1  #: assumed damping by radiated waves in heave, roll and pitch, as a share of the critical damping
WAVE_DEVIATION = 0.5
INERTIA_DEVIATION = 0.2  #: of the inertia of a mass that is assumed to be distributed evenly
LEAST_SHARE = 2e-4  #: entries of the added mass that are smaller, relative to the largest one, are omitted


class UncertainValue(NamedTuple):
    """Coefficient of a model: its path as in `wavesim identify`, its value and standard deviation in SI units, and the
    source of the value. Coefficients of the same ``group`` have the same error.
    """

    path: str
    value: float
    sd: float
    source: str
    group: str = ""


class AddedMassEstimate(NamedTuple):
    """Added mass (6, 6) about the origin, the relative standard deviation (6,) of its diagonal, its method, notes, and a
    table of its convergence.
    """

    matrix: Array
    deviation: Array
    method: str
    notes: tuple[str, ...]
    table: Sequence[Sequence[str]] = ()


@dataclass
class VehicleParts:
    """Everything that a model consists of."""

    name: str
    kind: str
    file: str
    mesh: PreparedMesh
    weight: VehicleBalance
    added: AddedMassEstimate
    drag: DragEstimate
    thrusters: Sequence[ThrusterPart] = ()
    fins: Sequence[FinPart] = ()
    exact_inertia: bool = False  #: the user stated the moments of inertia
    appearance: str = ""
    notes: list[str] = field(default_factory=list)
    waves: PanelSolution | None = None  #: of a hull at the surface, by the panel method


class BuiltModel(NamedTuple):
    """Text of a models file, the uncertain values of its model, and the contents of the tables beside it, by file name."""

    xml: str
    values: list[UncertainValue]
    files: dict[str, str | bytes]


def flooded_mass(weight: VehicleBalance, mesh: PreparedMesh) -> Array:
    """Return the mass matrix (6, 6) about the origin of the water that floods the hull."""
    m = weight.flooded
    found = np.diag([m, m, m, 0.0, 0.0, 0.0])
    found[3:, 3:] = m / mesh.volume * mesh.inertia
    return shifted(found, mesh.centre, np.zeros(3))


def build(parts: VehicleParts) -> BuiltModel:
    """Return the models file of a vehicle."""
    weight, mesh = parts.weight, parts.mesh
    draft = ModelDraft(parts.name, f"computed from the mesh {parts.file} by `wavesim vehicles from-mesh`", {}, None)
    length = float(mesh.size[0])
    draft.attributes |= {
        "type": parts.kind,
        "title": f"from {parts.file}: {length:.3g} m, {weight.mass:.3g} kg",
        "validated": "Not validated: every coefficient is computed or estimated from the mesh.",
    }
    if parts.kind == "surface":
        draft.attributes["coriolis_added"] = "plane"
    if parts.drag.coriolis_without:
        draft.attributes["coriolis_without"] = parts.drag.coriolis_without
    if parts.appearance:
        draft.attributes["appearance"] = parts.appearance
    # the notes for the user name options
    draft.notes += [re.sub(r" \(--[^)]*\)", "", note) for note in parts.notes]
    values: list[UncertainValue] = []
    size = np.maximum(mesh.size, 2e-3)
    draft.add("box", **{k: f"{v:.4g} m" for k, v in zip(("length", "width", "height"), size, strict=True)})
    if parts.waves is None:
        _add_body(draft, parts, values)
    else:
        _add_waves(draft, parts, parts.waves, values)
    _add_drag(draft, parts, values)
    for t in parts.thrusters:
        draft.add("thruster", **t.attributes())
    for f in parts.fins:
        draft.add("fin", **f.attributes())
        deviation = f.deviation * f.lift_slope
        values.append(
            UncertainValue(f"fin[{f.name}]/lift_slope", f.lift_slope, deviation, f.source, "lift slope of fins")
        )
    made = draft.xml(Path(parts.file), False)
    return BuiltModel(made.xml, values, made.files)


def _add_body(draft: ModelDraft, parts: VehicleParts, values: list[UncertainValue]) -> None:
    """Add mass, inertia, buoyancy and added mass."""
    weight, mesh = parts.weight, parts.mesh
    draft.add("mass", value=f"{weight.mass:.6g} kg", centre=f"{format_numbers(*np.round(weight.centre, 6))} m")
    _add_inertia(draft, parts, values)
    if weight.volume == mesh.volume or parts.kind == "surface":
        draft.add("hull", file=hull_file(parts.name))
    else:
        centre = format_numbers(*np.round(weight.buoyancy, 6))
        draft.add("buoyancy", volume=f"{weight.volume:.6g} m3", centre=f"{centre} m")
    m = _without_rounding_errors(parts.added.matrix + flooded_mass(weight, mesh))
    draft.matrix("added-mass", _six_digits(m))
    values += _added_mass_values(m, parts.added)


def _add_waves(draft: ModelDraft, parts: VehicleParts, waves: PanelSolution, values: list[UncertainValue]) -> None:
    """Add mass, restoring, added mass, linear drag, radiation and wave forces of a hull at the surface."""
    waves.add_to(draft, np.diag(parts.drag.linear).tolist())
    (element,) = (e for e in draft.elements if e.tag == "added-mass")
    diagonal = element.get("diagonal")
    m = np.diag([float(x) for x in diagonal.split()]) if diagonal else _rows(element.text or "")
    values += _added_mass_values(m, parts.added)


def _rows(text: str) -> Array:
    return np.array([float(x) for x in text.split()]).reshape(6, 6)


def hull_file(name: str) -> str:
    return f"{name}-hull.stl"


def _add_inertia(draft: ModelDraft, parts: VehicleParts, values: list[UncertainValue]) -> None:
    i = parts.weight.inertia
    keys = {"xx": i[0, 0], "yy": i[1, 1], "zz": i[2, 2], "xy": i[0, 1], "xz": i[0, 2], "yz": i[1, 2]}
    draft.add("inertia", **{k: f"{v:.5g}" for k, v in keys.items() if v or k[0] == k[1]})
    if not parts.exact_inertia:
        for k in ("xx", "yy", "zz"):
            value = float(keys[k])
            sd = INERTIA_DEVIATION * value
            values.append(UncertainValue(f"inertia/{k}", value, sd, "mass distributed evenly", "inertia"))


def _added_mass_values(m: Array, added: AddedMassEstimate) -> list[UncertainValue]:
    return [
        UncertainValue(
            f"added-mass/{FORCES[k]}_{VELOCITIES[k]}", float(m[k, k]), float(added.deviation[k] * m[k, k]), added.method
        )
        for k in range(6)
        if m[k, k] > 0.0
    ]


def _six_digits(m: Array) -> Array:
    return np.array([[float(f"{x:.6g}") for x in row] for row in m])


def _without_rounding_errors(m: Array) -> Array:
    """Return a symmetric, positive definite matrix without the entries that are rounding errors of the mesh."""
    size = np.ones(6)  # masses and moments have different units
    size[3:] = np.sqrt(max(float(np.diag(m)[3:].max()), 1e-300) / np.diag(m)[:3].max())
    scaled = 0.5 * (m + m.T) / np.outer(size, size)
    scaled = np.where(np.abs(scaled) > LEAST_SHARE * np.abs(scaled).max(), scaled, 0.0)
    # a body that moves no water about an axis has an added mass of zero there, on which errors of the panels decide
    more = LEAST_SHARE * scaled.max()
    while np.linalg.eigvalsh(scaled).min() < 0.1 * LEAST_SHARE * scaled.max():
        scaled[3:, 3:] += more * np.eye(3)
        more *= 2.0
    return np.asarray(scaled * np.outer(size, size))


def _add_drag(draft: ModelDraft, parts: VehicleParts, values: list[UncertainValue]) -> None:
    d = parts.drag
    linear, deviation = d.linear.copy(), np.diag(d.linear_deviation).copy()
    if parts.waves is not None:  # it contains the linear drag
        linear = np.diag(np.diag(linear))
    elif parts.kind == "surface":
        waves = wave_damping(parts)
        for k, wave in zip((2, 3, 4), waves, strict=True):
            deviation[k] = (deviation[k] * linear[k, k] + WAVE_DEVIATION * wave) / (linear[k, k] + wave)
            linear[k, k] += wave
    terms = (
        ("linear-drag", linear, deviation),
        ("quadratic-drag", d.quadratic, np.diag(d.quadratic_deviation)),
        ("lift", d.lift, np.diag(d.lift_deviation)),
    )
    for tag, m, shares in terms:
        if not m.any():
            continue
        if parts.waves is None or tag != "linear-drag":
            draft.matrix(tag, _six_digits(m))
        for k in range(6):
            if m[k, k]:
                path = f"{tag}/{FORCES[k]}_{VELOCITIES[k]}"
                source = {"lift": "body lift of a slender hull"}.get(tag, f"drag of the hull ({d.regime})")
                values.append(UncertainValue(path, float(m[k, k]), float(shares[k] * abs(m[k, k])), source))


def wave_damping(parts: VehicleParts) -> tuple[float, float, float]:
    """Return the assumed damping by radiated waves in heave, roll and pitch, in SI units."""
    weight = parts.weight
    assert weight.afloat is not None
    a, g = parts.added.matrix, 9.81
    stiffness = (
        DENSITY * g * weight.afloat.area,
        weight.mass * g * weight.afloat.gm_roll,
        weight.mass * g * weight.afloat.gm_pitch,
    )
    inertia = (weight.mass + a[2, 2], weight.inertia[0, 0] + a[3, 3], weight.inertia[1, 1] + a[4, 4])
    found = [2.0 * WAVE_DAMPING * math.sqrt(c * m) for c, m in zip(stiffness, inertia, strict=True)]
    return found[0], found[1], found[2]
