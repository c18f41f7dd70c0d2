"""From a hull file to a models file, step by step."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.terminal_text import finite_json
from wavesim_server.importers.model_draft import ModelDraft
from wavesim_studies.from_mesh import actuators, appendages, mesh_preparation, panels, report
from wavesim_studies.from_mesh.balance import DENSITY, MassOptions, VehicleBalance, balance
from wavesim_studies.from_mesh.ellipsoid import ellipsoid_added_mass
from wavesim_studies.from_mesh.floating import floating_hull
from wavesim_studies.from_mesh.mesh_preparation import MeshOptions, PreparedMesh
from wavesim_studies.from_mesh.model_builder import AddedMassEstimate, BuiltModel, VehicleParts, build, hull_file
from wavesim_studies.from_mesh.open_frame import OpenFrameEstimate, OpenFramePart, open_frame
from wavesim_studies.from_mesh.panel_process import PanelError
from wavesim_studies.from_mesh.resistance import DragEstimate, resistance
from wavesim_studies.from_mesh.steps import StepLog, StepTime
from wavesim_world import hull_geometry as geometry
from wavesim_world import hull_surface as surfaces
from wavesim_world.config import Model

STEPS = 7  #: number of steps of :func:`make_vehicle`
METHODS = ("panels", "ellipsoid")
#: relative standard deviation of an added mass by the panel method that the mesh itself causes: small parts, roughness
MESH_DEVIATION = 0.03


@dataclass(frozen=True)
class VehicleRequest:
    """Everything that the user asks for. ``thrusters`` and ``fins`` are the texts of the options, ``thruster_parts`` and
    ``fin_parts`` the names of parts. ``method`` is one of `METHODS`; empty = the best one that is installed.
    """

    file: Path
    name: str
    mesh: MeshOptions
    mass: MassOptions
    speed: float = 1.5
    method: str = ""
    frame: bool = False
    thrusters: tuple[str, ...] = ()
    thruster_parts: tuple[str, ...] = ()
    fins: tuple[str, ...] = ()
    fin_parts: tuple[str, ...] = ()
    bare: bool = False


class MadeVehicle(NamedTuple):
    """Result of the command: the written files, the sheet, the notes, and the time of each step."""

    files: list[Path]
    sheet: dict[str, Any]
    notes: list[str]
    times: list[StepTime]
    built: BuiltModel


def make_vehicle(request: VehicleRequest, out: Path, log: StepLog) -> MadeVehicle:
    """Write the models file ``out`` and the files beside it. Raises WaveSimError with the reason if this is impossible."""
    thrusters, fins = [actuators.thruster(t) for t in request.thrusters], [actuators.fin(t) for t in request.fins]
    actuators.check_names(thrusters, fins)  # before the long steps
    with log.step("reading"):
        source = mesh_preparation.read(request.file)
    names = [p.name for p in source.parts]
    others = [*(actuators.part_name(t, names) for t in request.thruster_parts), *request.fin_parts]
    with log.step("mesh"):
        options = MeshOptions(
            **{k: getattr(request.mesh, k) for k in ("unit", "up", "forward", "origin", "shape", "fill_holes")},
            mass=request.mass.mass,
            hull_parts=request.mesh.hull_parts,
            other_parts=tuple(others),
        )
        mesh = mesh_preparation.prepare(source, options)
    with log.step("balance"):
        weight = balance(mesh, request.mass)
    parts = VehicleParts(request.name, request.mass.kind, request.file.name, mesh, weight, *(None, None))  # type: ignore[arg-type]
    waves = weight.afloat is not None and _method(request) == "panels"
    with log.step("added mass and waves" if waves else "added mass"):
        frame = _frame(request, mesh) if request.frame else None
        parts.added = _waves(request, parts, log) if waves else _added_mass(request, mesh, weight, frame, log)
    mesh = parts.mesh
    with log.step("drag"):
        drag = frame.drag if frame is not None else _drag(request, parts)
        parts.drag = _with_actuators(request, parts, drag)
    parts.exact_inertia = request.mass.inertia is not None
    parts.notes = [*mesh.notes, *weight.notes, *parts.added.notes, *parts.drag.notes]
    with log.step("writing"):
        files, built = _write(parts, out)
    with log.step("behaviour"):
        sheet = _sheet(out, request.name, weight)
    more = out.with_name(f"{request.name}-report.md")
    more.write_text(report.page(parts, built, sheet, log.times), encoding="utf-8")
    return MadeVehicle([*files, more], sheet, parts.notes, log.times, built)


def _frame(request: VehicleRequest, mesh: PreparedMesh) -> OpenFrameEstimate:
    names = request.mesh.hull_parts or tuple(mesh.parts)
    others = {actuators.part_name(t, list(mesh.parts)) for t in request.thruster_parts} | set(request.fin_parts)
    closed = []
    for name in names:
        if name in others:
            continue
        t, _ = surfaces.clean(mesh.parts[name])
        whole = len(t) > 0 and not len(geometry.open_edges(t))
        closed.append(OpenFramePart(name, geometry.outward(t) if whole else surfaces.convex_surface(mesh.parts[name])))
    return open_frame(closed, request.speed)


def _added_mass(
    request: VehicleRequest, mesh: PreparedMesh, weight: VehicleBalance, frame: Any, log: StepLog
) -> AddedMassEstimate:
    if frame is not None:
        deviation = np.full(6, frame.added_mass_deviation)
        return AddedMassEstimate(frame.added_mass, deviation, "sum of the parts of an open frame", ())
    notes: tuple[str, ...] = ()
    if not request.method and _method(request) == "ellipsoid":
        notes = ("the panel method is not installed (pip install 'wavesim[panels]'), so an ellipsoid replaces it",)
    if _method(request) == "panels":
        found = panels.added_mass(mesh.triangles, (0.0, 0.0, 0.0), DENSITY, log.progress)
        share = np.diag(found.uncertainty) / np.maximum(np.diag(found.matrix), 1e-300)
        deviation = np.minimum(np.hypot(share, MESH_DEVIATION), 1.0)
        return AddedMassEstimate(
            found.matrix, deviation, "panel method (Capytaine)", (*notes, *found.notes), found.table()
        )
    level = weight.afloat.waterline if weight.afloat is not None else None
    fallback = ellipsoid_added_mass(mesh.hull, DENSITY, level)
    return AddedMassEstimate(fallback.matrix, fallback.deviation, "equivalent ellipsoid", (*notes, *fallback.notes))


def _method(request: VehicleRequest) -> str:
    """Return the method for the added mass: that of the user, or the best one that is installed."""
    return request.method or ("panels" if importlib.util.find_spec("capytaine") else "ellipsoid")


def _waves(request: VehicleRequest, parts: VehicleParts, log: StepLog) -> AddedMassEstimate:
    """Compute radiation, wave forces and drift of a hull at the surface. Its axes become horizontal at rest.

    If they fail and the user did not ask for them, an ellipsoid and an assumed damping replace them, with a note.
    """
    weight = parts.weight
    try:
        found = floating_hull(
            parts.mesh.hull, weight.mass, weight.centre.tolist(), weight.inertia, DENSITY, log.progress
        )
        found.add_to(ModelDraft(parts.name, "", {}, None), [0.0] * 6)  # raises if no fluid memory fits
    except (PanelError, ValueError) as error:
        if request.method:
            raise ConfigError(f"waves by the panel method: {error}; use --added-mass ellipsoid") from None
        level = weight.afloat.waterline if weight.afloat is not None else None
        instead = ellipsoid_added_mass(parts.mesh.hull, DENSITY, level)
        note = f"waves by the panel method are not possible ({error}): an ellipsoid and an assumed damping replace them"
        return AddedMassEstimate(instead.matrix, instead.deviation, "equivalent ellipsoid", (note, *instead.notes))
    parts.waves = found
    c, s = math.cos(found.trim), math.sin(found.trim)
    parts.mesh = parts.mesh.rotated(np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]))
    change = [float(row[1].rstrip(" %")) / 100.0 for row in found.table[1:7]]
    deviation = np.hypot(change, MESH_DEVIATION)
    return AddedMassEstimate(np.zeros((6, 6)), deviation, "panel method (Capytaine)", (), found.table)


def _drag(request: VehicleRequest, parts: VehicleParts) -> DragEstimate:
    level = parts.weight.afloat.waterline if parts.weight.afloat is not None else None
    if parts.waves is not None:
        level = -parts.waves.results.depth
    try:
        return resistance(parts.mesh.triangles, request.speed, DENSITY, level)
    except ValueError as error:
        raise ConfigError(f"drag of the hull: {error}") from None


def _with_actuators(request: VehicleRequest, parts: VehicleParts, drag: DragEstimate) -> DragEstimate:
    """Add the thrusters and fins to the parts. Return the drag with that of the fins."""
    mesh = parts.mesh
    thrusters = [actuators.thruster(t) for t in request.thrusters]
    thrusters += [actuators.thruster_of_part(t, mesh.parts) for t in request.thruster_parts]
    fins = [actuators.fin(t) for t in request.fins]
    for name in request.fin_parts:
        made, found = actuators.fin_of_part(name, mesh.parts, mesh.hull, request.speed)
        fins.append(made)
        drag = appendages.with_fins(drag, [found], request.speed)
    if not (thrusters or request.bare):
        thrusters = actuators.assumed_thrusters(parts.kind, mesh.hull)
        if not fins and parts.kind == "underwater":
            fins = actuators.assumed_fins(mesh.hull)
    actuators.check_names(thrusters, fins)
    parts.thrusters, parts.fins = actuators.with_limits(thrusters, drag.drag), fins
    return drag


def _write(parts: VehicleParts, out: Path) -> tuple[list[Path], BuiltModel]:
    """Write the models file, the mesh, the drawing and the uncertainties."""
    drawing = out.with_name(f"{parts.name}.glb")
    drawing.write_bytes(geometry.to_glb(parts.mesh.drawn))
    parts.appearance = drawing.name
    built = build(parts)
    files = [out, drawing, out.with_name(f"{parts.name}-uncertainty.json")]
    hull = out.with_name(hull_file(parts.name))
    if f'"{hull.name}"' in built.xml:
        hull.write_bytes(geometry.to_stl(parts.mesh.hull))
        files.insert(1, hull)
    for name, content in built.files.items():
        (out.parent / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        files.insert(1, out.parent / name)
    out.write_text(built.xml, encoding="utf-8")
    rows = [{**v._asdict(), "distribution": "log-normal"} for v in built.values]
    files[-1].write_text(finite_json({"model": parts.name, "unknowns": rows}, indent=2) + "\n", encoding="utf-8")
    return files, built


def _sheet(out: Path, name: str, weight: VehicleBalance) -> dict[str, Any]:
    """Return the figures of the model: those of `wavesim vehicles explain`, bollard pull, roll and pitch at rest."""
    from wavesim_server.model_properties import derived_properties
    from wavesim_world.config.build import read_models
    from wavesim_world.config.validation import check_model

    model = read_models(out)[name]
    check_model(model)
    found = derived_properties(model)
    return found | {
        "bollard_pull_N": round(bollard_pull(model), 2),
        "roll_at_rest_deg": round(math.degrees(weight.roll), 2) + 0.0,
        "pitch_at_rest_deg": round(math.degrees(weight.pitch), 2) + 0.0,
    }


def bollard_pull(model: Model) -> float:
    """Return the forward force in N of all forward thrusters at full power and zero speed."""
    from wavesim_server.sailing import forward_thrusters

    total = 0.0
    for k in forward_thrusters(model):
        t = model.thruster[k]  # the thrusters of these models have the law force
        total += t.maximum * t.direction[0] / math.sqrt(sum(x * x for x in t.direction))
    return total


def as_data(made: MadeVehicle) -> str:
    """Return the result as JSON."""
    return json.dumps(
        json.loads(finite_json({
            "files": [str(p) for p in made.files],
            "sheet": made.sheet,
            "notes": made.notes,
            "steps": [{"name": t.name, "seconds": round(t.seconds, 3)} for t in made.times],
        })),
        indent=2,
    )  # fmt: skip
