"""Everything about a model that SDF and URDF files describe, along forward, port and up."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.kinematics import rotation_to_euler
from wavesim_studies.linear_models.trim import ModelMotion, free_motion
from wavesim_studies.model_export.axes import attitude_with_x_along, numbers
from wavesim_studies.model_export.buoyancy import CollisionShape, collision_shapes
from wavesim_studies.model_export.hull_terms import HullTerms, hull_terms
from wavesim_studies.model_export.parts import (
    ExportedFin,
    ExportedThruster,
    base_inertial,
    fin_parts,
    part_inertia,
    thruster_parts,
)
from wavesim_studies.model_export.sensor_elements import MountedSensor, mounted_sensors
from wavesim_world.config import Model
from wavesim_world.config.primitives import shape_of

#: attitude of a glTF file (+Z forward, +Y up, +X to port) in axes forward, port, up
MESH_ATTITUDE = tuple(rotation_to_euler([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).tolist())
CYLINDER_ATTITUDE = (0.0, 0.5 * np.pi, 0.0)  #: a cylinder's own axis is z; this attitude turns it forward


@dataclass(frozen=True)
class Inertial:
    """Mass, centre of mass (3,) and moments of inertia (3, 3) of a link."""

    mass: float
    centre: Floats
    inertia: Floats


@dataclass(frozen=True)
class ModelDescription:
    """A model as links, joints and forces."""

    motion: ModelMotion
    terms: HullTerms
    base: Inertial  #: of the hull without thrusters and fins
    part: Inertial  #: of each propeller and fin
    thrusters: list[ExportedThruster]
    fins: list[ExportedFin]
    sensors: list[MountedSensor]
    collisions: list[CollisionShape]
    mesh: Path | None  #: glTF file

    @property
    def model(self) -> Model:
        """Model that is described."""
        return self.motion.model

    @property
    def missing(self) -> list[str]:
        """Texts about the parts of the model that Gazebo cannot represent."""
        return self.terms.missing


def describe_model(model: str | Model, folder: Path | None = None) -> ModelDescription:
    """Return the description of a model (or of a library model, by name). ``folder`` contains its glTF file.

    Raise ConfigError for an aircraft and for names that occur twice.
    """
    motion = free_motion(model)
    terms = hull_terms(motion)
    thrusters, fins = thruster_parts(motion, terms.missing), fin_parts(motion, terms.missing)
    sensors = mounted_sensors(motion.model)
    names = [t.name for t in thrusters] + [f.name for f in fins] + [s.name for s in sensors]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise ConfigError(
            f"model '{motion.model.name}' has an actuator and an instrument with the same name, '{twice[0]}'; "
            "links in the file need different names, so rename one of them"
        )
    places = [t.position for t in thrusters] + [f.position for f in fins]
    places += [t.position for t in thrusters if t.swivel is not None]
    mass, centre, inertia, part, size = base_inertial(terms, places, motion)
    mesh = None
    if motion.model.appearance:
        path = (folder or Path()) / motion.model.appearance
        if path.is_file():
            mesh = path
        else:
            terms.missing.append(f"the glTF file {motion.model.appearance}, which does not exist")
    return ModelDescription(
        motion,
        terms,
        Inertial(mass, centre, inertia),
        Inertial(part, np.zeros(3), part_inertia(part, size)),
        thrusters,
        fins,
        sensors,
        collision_shapes(motion, terms),
        mesh,
    )


def copy_mesh(described: ModelDescription, folder: Path) -> str:
    """Copy the glTF file to ``meshes`` in a folder and return its path there; empty if the model has none."""
    if described.mesh is None:
        return ""
    (folder / "meshes").mkdir(exist_ok=True)
    shutil.copyfile(described.mesh, folder / "meshes" / described.mesh.name)
    return f"meshes/{described.mesh.name}"


def hull_shape(described: ModelDescription) -> CollisionShape:
    """Return the primitive shape of the model, for drawing."""
    shape = shape_of(described.model)
    return CollisionShape(shape.kind, np.array(shape.size), np.zeros(3))


def propeller_attitude(part: ExportedThruster) -> tuple[float, float, float]:
    """Return the attitude of a propeller's link, whose x axis is the direction of positive thrust."""
    return attitude_with_x_along(part.axis)


def fin_attitude(part: ExportedFin) -> tuple[float, float, float]:
    """Return the attitude of a fin's link: x along the chord, z along the force at a positive angle."""
    roll, pitch, yaw = rotation_to_euler(
        np.column_stack([part.forward, np.cross(part.upward, part.forward), part.upward])
    ).tolist()
    return roll, pitch, yaw


def fin_size(part: ExportedFin) -> Floats:
    """Return the size (3,) of the plate that is drawn for a fin: chord, span and thickness."""
    span = (1.5 * part.area) ** 0.5
    return np.array([part.area / span, span, 0.05 * span])


def inertia_texts(inertia: Floats) -> dict[str, str]:
    """Return the six moments of inertia as texts by their names in SDF and URDF."""
    names = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    return {name: numbers(float(inertia[at])) for name, at in names.items()}


def comments(parent: ET.Element, described: ModelDescription, program: str, missing: list[str]) -> None:
    """Add comments: the source, the choices, and the list of everything that the file does not contain."""
    model = described.model
    lines = [
        f"Model {model.name}: {model.title}",
        "Written by wavesim vehicles export. Axes: x forward, y to port, z up.",
    ]
    lines += [f"Source of the parameters: {model.source}"] if model.source else []
    lines += described.terms.notes + [f"Not in this file for {program}: {text}" for text in missing]
    for line in lines:
        parent.append(ET.Comment(f" {line.replace('--', '- -')} "))
