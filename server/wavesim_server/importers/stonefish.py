"""Reader for Stonefish scenarios: one <robot> with its parts, actuators, sensors and looks.

Stonefish's axes are those of this project: x forward, y to starboard, z down. Only the base link is imported; joints and
further links are listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lxml import etree

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_server.importers import stonefish_actuators, stonefish_sensors
from wavesim_server.importers.drag_fit import FORCES, fit_cubic
from wavesim_server.importers.model_draft import ModelDraft, format_numbers
from wavesim_server.importers.stonefish_parts import StonefishBody, body, drag_forces
from wavesim_server.importers.stonefish_scenario import PREFIX, StonefishScenario, number, vector

DENSITY = 1000.0  #: density in kg/m3 of the water of a scenario that states none
FIT_SPEED, FIT_RATE = 1.5, 0.8  #: range of motions in m/s and rad/s for which the drag is fitted
GREY = (0.62, 0.66, 0.7)


def is_scenario(path: Path) -> bool:
    """Return whether a file is a Stonefish scenario."""
    return path.suffix in (".scn", ".xml") and re.search(rb"<scenario[\s>]", path.read_bytes()) is not None


def read(
    path: Path, section: str | None, settings: dict[str, str], angles: str | None, folders: Sequence[Path] = ()
) -> ModelDraft:
    """Return the draft model of a robot. ``section`` names it if the scenario contains several. ``folders`` are searched
    for the files that the scenario names.
    """
    arguments = {k.removeprefix(PREFIX): v for k, v in settings.items() if k.startswith(PREFIX)}
    scenario = StonefishScenario(path, arguments, folders)
    robot = _robot(scenario, section)
    name = re.sub(r"[^a-z0-9-]+", "-", robot.get("name", "robot").lower()).strip("-") or "robot"
    draft = ModelDraft(name, f"{path.name} (Stonefish), robot {robot.get('name')}", settings, angles)
    draft.used_settings |= {PREFIX + a for a in scenario.used_arguments}
    base = robot.find("base_link")
    if base is None:
        raise ConfigError(f"the robot '{robot.get('name')}' has no <base_link>", str(path))
    density = _density(scenario, draft)
    materials = {m.get("name", ""): number(m, "density") for m in scenario.root.findall("materials/material")}
    found = body(base, scenario, materials, density)
    _add_body(draft, base, found, density)
    stonefish_actuators.add(draft, robot, base.get("name", ""), scenario, density)
    stonefish_sensors.add(draft, robot, base.get("name", ""))
    _add_looks(draft, base, found, scenario)
    _list_rest(draft, robot, base)
    return draft


def _robot(scenario: StonefishScenario, section: str | None) -> etree._Element:
    robots = scenario.root.findall("robot")
    names = [r.get("name", "") for r in robots]
    if not robots:
        raise ConfigError("the scenario contains no <robot>", str(scenario.path))
    if section is None and len(robots) == 1:
        return robots[0]
    if section not in names:
        raise ConfigError(
            f"select one of the robots in this file with --section: {', '.join(names)}", str(scenario.path)
        )
    return robots[names.index(section)]


def _density(scenario: StonefishScenario, draft: ModelDraft) -> float:
    water = scenario.root.find("environment/ocean/water")
    if water is not None and water.get("density") is not None:
        density = number(water, "density")
    else:
        density = DENSITY
        draft.notes.append(f"the scenario states no density of the water: Stonefish's {DENSITY:g} kg/m3")
    draft.notes.append(f'the coefficients apply to <world density="{density:g} kg/m3">')
    return density


def _add_body(draft: ModelDraft, base: etree._Element, found: StonefishBody, density: float) -> None:
    """Add the size, masses, buoyancy and drag of the base link."""
    if base.get("physics") == "floating" or any(p.get("physics") == "floating" for p in base):
        draft.unused.append(
            "physics='floating': the water line follows from the volume of the parts in Stonefish; the model has one volume "
            "(for a floating hull, add <hull file=...> to the model)"
        )
    draft.attributes["type"] = "underwater"
    corners = np.concatenate([p.corners.reshape(-1, 3) for p in found.parts if p.external])
    size = np.ptp(corners, axis=0)
    draft.add("box", **{k: f"{s:.6g} m" for k, s in zip(("length", "width", "height"), size, strict=True)})
    draft.add("mass", value=f"{found.mass:.12g} kg", centre=format_numbers(*found.centre) + " m")
    draft.matrix("rigid-body", _clean(found.rigid_body))
    draft.add(
        "buoyancy",
        volume=f"{found.volume:.12g} m3",
        centre=format_numbers(*np.round(found.centre_of_buoyancy, 12)) + " m",
    )
    draft.matrix("added-mass", _clean(found.added_mass))
    draft.notes.append(
        f"added mass: Stonefish's, {found.added_mass[0, 0]:.6g} kg in every direction: the sum over the external parts of the mean "
        "of three coefficients of the ellipsoid, cylinder or sphere that encloses the part"
    )
    friction = np.array([drag_forces(found, density, row)[1] for row in np.eye(6)]).T
    draft.matrix("linear-drag", _clean(-friction, 1e-3))
    derivatives, errors = fit_cubic(lambda motion: drag_forces(found, density, motion)[0], FIT_SPEED, FIT_RATE)
    draft.derivatives(derivatives)
    draft.notes.append(
        "drag: Stonefish sums |v| (v n) A over the triangles that face the flow, so its drag grows with the third power of the "
        "speed; the derivatives are fitted to that sum. Rms error of the fit: "
        + ", ".join(f"{letter} {100 * e:.0f} %" for letter, e in zip(FORCES, errors, strict=True))
    )
    draft.notes.append(
        "skin friction: Stonefish's sum of the forces on all triangles, exact for motion along or about one axis"
    )


def _clean(matrix: np.ndarray, share: float = 1e-9) -> np.ndarray:
    """Return a matrix without the elements that are negligible compared with the diagonal."""
    size = np.sqrt(np.abs(np.outer(np.diag(matrix), np.diag(matrix))))
    return np.where(np.abs(matrix) <= share * size, 0.0, matrix)


def _add_looks(draft: ModelDraft, base: etree._Element, found: StonefishBody, scenario: StonefishScenario) -> None:
    """Add the parts, in the colours of their looks, as a glTF file."""
    colours = {}
    for look in scenario.root.findall("looks/look"):
        grey = look.get("gray")
        rgb = vector(look.get("rgb"), look) if look.get("rgb") else np.full(3, float(grey)) if grey else GREY
        colours[look.get("name")] = (float(rgb[0]), float(rgb[1]), float(rgb[2]))
    from wavesim_world.hull_geometry import to_glb
    from wavesim_world.hull_reader import HullPart

    elements = {p.get("name"): p for p in base.iter("external_part", "base_link")}
    parts = []
    for part in found.parts:
        if part.external:
            own = elements[part.name].find("look")
            colour = colours.get(None if own is None else own.get("name"), GREY)
            n = len(part.corners)
            parts.append(HullPart(part.name, part.corners.reshape(-1, 3), np.arange(3 * n).reshape(n, 3), colour))
    try:
        from wavesim_sdk.extras import check_installed

        check_installed("trimesh")
    except WaveSimError as error:
        draft.notes.append(f"appearance: omitted, because {error}")
        return
    draft.files[f"{draft.name}.glb"] = to_glb(parts)
    draft.attributes["appearance"] = f"{draft.name}.glb"
    draft.notes.append("appearance: the physical meshes in the colours of their looks, without textures")


def _list_rest(draft: ModelDraft, robot: etree._Element, base: etree._Element) -> None:
    """List the elements of the robot that a model does not contain."""
    for element in robot:
        if element.tag in ("link", "joint", "light", "comm", "glue"):
            kind = f" of the type {element.get('type')}" if element.get("type") else ""
            draft.unused.append(f"<{element.tag} name='{element.get('name')}'>{kind}")
    if robot.get("fixed") == "true":
        draft.unused.append("fixed='true': the robot is fastened to the world")
    if any(p.find("visual") is not None for p in base.iter()):
        draft.notes.append("visual meshes: the appearance shows the physical meshes instead")
    if any(p.find("contact") is not None for p in base.iter()):
        draft.unused.append("<contact>: stiffness and damping of contacts")
    draft.notes.append("world_transform, friction and restitution belong to the scenario and not to the model")
