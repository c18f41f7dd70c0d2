"""URDF files for ROS: links with their inertia, joints of thrusters and fins, and the frames of the instruments.

URDF has neither water nor sensors. The names follow REP 105 and REP 145: ``base_link``, and ``NAME_link`` for an
instrument. ``base_link_frd`` is the body frame of WaVeSim, which points forward, to starboard and down.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import euler_to_rotation
from wavesim_studies.model_export.axes import numbers
from wavesim_studies.model_export.buoyancy import CollisionShape
from wavesim_studies.model_export.description import (
    CYLINDER_ATTITUDE,
    MESH_ATTITUDE,
    Inertial,
    ModelDescription,
    comments,
    copy_mesh,
    fin_attitude,
    fin_size,
    hull_shape,
    inertia_texts,
    propeller_attitude,
)
from wavesim_studies.model_export.sensor_elements import add

OPTICAL = (-0.5 * math.pi, 0.0, -0.5 * math.pi)  #: attitude of a camera's optical frame (REP 103): z forward, x right
#: parts of every model that URDF cannot represent
NOT_IN_URDF = (
    "added mass, drag, lift and all other forces of the water; SDF has them",
    "buoyancy",
    "thrust and its limits, lags and laws",
    "the forces, lags and rates of the fins",
    "the noise and rates of the instruments; the file has their frames",
)
REST = (0.0, 0.0, 0.0)


def write_urdf(described: ModelDescription, folder: Path) -> list[Path]:
    """Write the URDF file to an existing folder, with the files that make the folder a ROS package; return the paths.

    The package is ``NAME_description``; meshes refer to it.
    """
    package = f"{described.model.name.replace('-', '_')}_description"
    mesh = copy_mesh(described, folder)
    root = ET.Element("robot", name=described.model.name)
    comments(root, described, "ROS", missing_in_urdf(described))
    base = add(root, "link", name="base_link")
    _inertial(base, described.base)
    _shape(base, "visual", hull_shape(described))
    if mesh:
        visual = base[-1]
        visual.clear()
        add(visual, "origin", xyz=numbers(REST), rpy=numbers(MESH_ATTITUDE))
        add(add(visual, "geometry"), "mesh", filename=f"package://{package}/{mesh}")
    _shape(base, "collision", hull_shape(described))
    _frame(root, "base_link_frd", "base_link", np.zeros(3), (math.pi, 0.0, 0.0))
    for thruster in described.thrusters:
        name, parent, place = f"{thruster.name}_link", "base_link", thruster.position
        attitude = propeller_attitude(thruster)
        if thruster.swivel is not None:
            low, high, rate = thruster.swivel
            parent = f"{thruster.name}-angle_link"
            _inertial(add(root, "link", name=parent), described.part)
            _joint(root, (f"{thruster.name}-angle_joint", "base_link", parent), place, REST, np.array([0.0, 0.0, -1.0]))
            _limit(root[-1], low, high, rate)
            place = np.zeros(3)
        link = add(root, "link", name=name)
        _inertial(link, described.part)
        size = np.array([0.1 * thruster.diameter, thruster.diameter, thruster.diameter])
        _shape(link, "visual", CollisionShape("cylinder", size, np.zeros(3)))
        joint = _joint(
            root, (f"{thruster.name}_joint", parent, name), place, attitude, np.array([1.0, 0.0, 0.0]), "continuous"
        )
        add(joint, "limit", effort="1000", velocity="1000")
    for fin in described.fins:
        name, attitude = f"{fin.name}_link", fin_attitude(fin)
        link = add(root, "link", name=name)
        _inertial(link, described.part)
        _shape(link, "visual", CollisionShape("box", fin_size(fin), np.zeros(3)))
        axis = euler_to_rotation(attitude).T @ fin.hinge
        _joint(root, (f"{fin.name}_joint", "base_link", name), fin.position, attitude, axis)
        _limit(root[-1], -fin.limit, fin.limit, fin.rate)
    for sensor in described.sensors:
        _frame(root, f"{sensor.name}_link", "base_link", sensor.position, sensor.attitude)
        if sensor.type == "camera":
            _frame(root, f"{sensor.name}_optical_frame", f"{sensor.name}_link", np.zeros(3), OPTICAL)
    ET.indent(root)
    path = folder / f"{described.model.name}.urdf"
    path.write_text('<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n")
    return [path, *_package(described, folder, package)]


def missing_in_urdf(described: ModelDescription) -> list[str]:
    """Return texts about everything that the URDF file of a model does not contain."""
    return list(NOT_IN_URDF) + [text for text in described.missing if text.startswith("the glTF file")]


def _inertial(link: ET.Element, body: Inertial) -> None:
    inertial = add(link, "inertial")
    add(inertial, "origin", xyz=numbers(body.centre), rpy=numbers(REST))
    add(inertial, "mass", value=numbers(body.mass))
    add(inertial, "inertia", **inertia_texts(body.inertia))


def _shape(link: ET.Element, tag: str, shape: CollisionShape) -> None:
    element = add(link, tag)
    attitude = CYLINDER_ATTITUDE if shape.kind == "cylinder" else REST
    add(element, "origin", xyz=numbers(shape.centre), rpy=numbers(attitude))
    geometry = add(element, "geometry")
    if shape.kind == "box":
        add(geometry, "box", size=numbers(shape.size))
    elif shape.kind == "cylinder":
        add(geometry, "cylinder", radius=numbers(0.5 * shape.size[1]), length=numbers(shape.size[0]))
    else:
        add(geometry, "sphere", radius=numbers(0.5 * shape.size[0]))


def _joint(
    root: ET.Element,
    names: tuple[str, str, str],
    place: Floats,
    attitude: tuple[float, float, float],
    axis: Floats | None = None,
    kind: str = "revolute",
) -> ET.Element:
    """Add a joint with the given name, parent and child."""
    joint = add(root, "joint", name=names[0], type="fixed" if axis is None else kind)
    add(joint, "parent", link=names[1])
    add(joint, "child", link=names[2])
    add(joint, "origin", xyz=numbers(place), rpy=numbers(attitude))
    if axis is not None:
        add(joint, "axis", xyz=numbers(axis))
    return joint


def _limit(joint: ET.Element, low: float, high: float, rate: float) -> None:
    add(joint, "limit", lower=numbers(low), upper=numbers(high), effort="1000", velocity=numbers(rate or 1000.0))


def _frame(root: ET.Element, name: str, parent: str, place: Floats, attitude: tuple[float, float, float]) -> None:
    """Add a link without mass that is fixed to another one."""
    add(root, "link", name=name)
    _joint(root, (f"{name}_joint", parent, name), place, attitude)


def _package(described: ModelDescription, folder: Path, package: str) -> list[Path]:
    """Write the files that make a folder a ROS package, so that programs find the meshes."""
    root = ET.Element("package", format="3")
    add(root, "name", package)
    add(root, "version", "0.1.0")
    add(root, "description", f"Description of {described.model.name}, written by wavesim vehicles export")
    add(root, "maintainer", "unknown", email="unknown@example.com")
    add(root, "license", "unknown")
    add(root, "buildtool_depend", "ament_cmake")
    add(add(root, "export"), "build_type", "ament_cmake")
    ET.indent(root)
    manifest, build = folder / "package.xml", folder / "CMakeLists.txt"
    manifest.write_text('<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n")
    folders = " meshes/" if described.mesh is not None else ""
    build.write_text(
        "cmake_minimum_required(VERSION 3.8)\n"
        f"project({package})\n"
        "find_package(ament_cmake REQUIRED)\n"
        f"install(FILES {described.model.name}.urdf DESTINATION share/${{PROJECT_NAME}})\n"
        + (f"install(DIRECTORY{folders} DESTINATION share/${{PROJECT_NAME}}/meshes)\n" if folders else "")
        + "ament_package()\n"
    )
    return [manifest, build]
