"""SDF files for Gazebo: a model with the plugins Hydrodynamics, Thruster, LiftDrag and JointPositionController, and a
world with its buoyancy.

Added mass is an element of the link, because Gazebo's physics engine then solves for it implicitly and computes the
whole Coriolis force. The Hydrodynamics plugin would use only its diagonal there.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import euler_to_rotation
from wavesim_studies.model_export.axes import FLIP, numbers
from wavesim_studies.model_export.buoyancy import CollisionShape, floats_in_gazebo
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
from wavesim_studies.model_export.parts import ExportedFin, ExportedThruster
from wavesim_studies.model_export.sensor_elements import add, sensor_element

VERSION = "1.11"  #: of SDF; added mass needs 1.10
NAMESPACE = "http://gazebosim.org/schema"
FREE = 1e16  #: limit in rad of a shaft that turns freely
NEGLIGIBLE = 1e-9  #: coefficients that are smaller, relative to the largest, are rounding errors
START_DEPTH = 2.0  #: depth in m at which an underwater vehicle starts
STEP = 0.002  #: time step in s of the world
VELOCITIES, FORCES = "UVWPQR", "xyzkmn"
#: system plugins of a world, and those that one type of sensor needs
WORLD_PLUGINS = ("physics", "user-commands", "scene-broadcaster")
SENSOR_PLUGINS = {
    "imu": ("imu",),
    "navsat": ("navsat",),
    "altimeter": ("altimeter",),
    "magnetometer": ("magnetometer",),
    "dvl": ("dvl",),
    "camera": ("sensors",),
    "gpu_lidar": ("sensors",),
}
CLASSES = {
    "physics": "Physics",
    "user-commands": "UserCommands",
    "scene-broadcaster": "SceneBroadcaster",
    "imu": "Imu",
    "navsat": "NavSat",
    "altimeter": "Altimeter",
    "magnetometer": "Magnetometer",
    "dvl": "DopplerVelocityLogSystem",
    "sensors": "Sensors",
}


def write_sdf(described: ModelDescription, folder: Path) -> list[Path]:
    """Write ``model.sdf``, ``model.config`` and ``world.sdf`` to an existing folder, and return their paths."""
    mesh = copy_mesh(described, folder)
    content, missing = _model(described, mesh), described.missing
    model, world = ET.Element("sdf", version=VERSION), ET.Element("sdf", version=VERSION)
    model.set("xmlns:gz", NAMESPACE)
    world.set("xmlns:gz", NAMESPACE)
    comments(model, described, "Gazebo", missing)
    model.append(content)
    comments(world, described, "Gazebo", missing)
    world.append(_world(described, content))
    paths = [folder / "model.sdf", folder / "model.config", folder / "world.sdf"]
    for path, root in zip(paths, (model, _config(described), world), strict=True):
        ET.indent(root)
        path.write_text('<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n")
    return paths


def _plugin(parent: ET.Element, library: str, name: str) -> ET.Element:
    return add(parent, "plugin", filename=f"gz-sim-{library}-system", name=f"gz::sim::systems::{name}")


def _config(described: ModelDescription) -> ET.Element:
    root = ET.Element("model")
    add(root, "name", described.model.name)
    add(root, "version", "1.0")
    add(root, "sdf", "model.sdf", version=VERSION)
    add(root, "description", described.model.title)
    return root


def _model(described: ModelDescription, mesh: str) -> ET.Element:
    root = ET.Element("model", name=described.model.name)
    depth = described.motion.depth if floats_in_gazebo(described.motion) else START_DEPTH
    add(root, "pose", numbers([0.0, 0.0, -depth, 0.0, 0.0, 0.0]))
    base = add(root, "link", name="base_link")
    _inertial(base, described.base, described.terms.added)
    for k, shape in enumerate(described.collisions):
        collision = add(base, "collision", name=f"buoyancy_{k}")
        _shape(collision, shape)
    visual = add(base, "visual", name="hull")
    if mesh:
        add(visual, "pose", numbers([0.0, 0.0, 0.0], MESH_ATTITUDE))
        add(add(add(visual, "geometry"), "mesh"), "uri", mesh)
    else:
        _shape(visual, hull_shape(described))
        _colour(visual, (0.9, 0.7, 0.1))
    for sensor in described.sensors:
        element = sensor_element(sensor, described.missing)
        if element is not None:
            base.append(element)
    for sensor in described.sensors:
        frame = add(root, "frame", name=f"{sensor.name}_link", attached_to="base_link")
        add(frame, "pose", numbers(sensor.position, sensor.attitude), relative_to="base_link")
    for thruster in described.thrusters:
        _thruster(root, described, thruster)
    for fin in described.fins:
        _fin(root, described, fin)
    _hydrodynamics(root, described)
    return root


def _inertial(link: ET.Element, body: Inertial, added: Floats | None = None) -> None:
    inertial = add(link, "inertial")
    add(inertial, "pose", numbers(body.centre, [0.0, 0.0, 0.0]))
    add(inertial, "mass", float(body.mass))
    inertia = add(inertial, "inertia")
    for name, text in inertia_texts(body.inertia).items():
        add(inertia, name, text)
    if added is not None and np.abs(added).max() > 0.0:
        fluid = add(inertial, "fluid_added_mass")
        for i, k in itertools.combinations_with_replacement(range(6), 2):
            add(fluid, "xyzpqr"[i] + "xyzpqr"[k], float(added[i, k]))


def _shape(parent: ET.Element, shape: CollisionShape) -> None:
    add(parent, "pose", numbers(shape.centre, CYLINDER_ATTITUDE if shape.kind == "cylinder" else [0.0, 0.0, 0.0]))
    geometry = add(add(parent, "geometry"), shape.kind)
    if shape.kind == "box":
        add(geometry, "size", numbers(shape.size))
    else:
        add(geometry, "radius", float(0.5 * shape.size[1]))
        if shape.kind == "cylinder":
            add(geometry, "length", float(shape.size[0]))


def _colour(visual: ET.Element, colour: tuple[float, float, float]) -> None:
    material = add(visual, "material")
    for tag in ("ambient", "diffuse"):
        add(material, tag, numbers(colour, 1.0))


def _link(root: ET.Element, described: ModelDescription, name: str, pose: str) -> ET.Element:
    """Add a link of a propeller or fin at a pose relative to the hull."""
    link = add(root, "link", name=f"{name}_link")
    add(link, "pose", pose, relative_to="base_link")
    _inertial(link, described.part)
    return link


def _joint(root: ET.Element, name: str, ends: tuple[str, str], axis: Floats, limits: tuple[float, float]) -> ET.Element:
    joint = add(root, "joint", name=f"{name}_joint", type="revolute")
    add(joint, "parent", f"{ends[0]}_link")
    add(joint, "child", f"{ends[1]}_link")
    element = add(joint, "axis")
    add(element, "xyz", numbers(axis))
    limit = add(element, "limit")
    add(limit, "lower", float(limits[0]))
    add(limit, "upper", float(limits[1]))
    return joint


def _position_controller(root: ET.Element, name: str, rate: float) -> None:
    plugin = _plugin(root, "joint-position-controller", "JointPositionController")
    add(plugin, "joint_name", f"{name}_joint")
    add(plugin, "use_velocity_commands", "true")
    if rate > 0.0:
        add(plugin, "cmd_max", float(rate))


def _thruster(root: ET.Element, described: ModelDescription, part: ExportedThruster) -> None:
    attitude = propeller_attitude(part)
    parent = "base"
    if part.swivel is not None:
        parent = f"{part.name}-angle"
        _link(root, described, parent, numbers(part.position, [0.0, 0.0, 0.0]))
        down = np.array([0.0, 0.0, -1.0])  # a positive angle turns the thrust from forward to starboard
        _joint(root, parent, ("base", parent), down, part.swivel[:2])
        _position_controller(root, parent, part.swivel[2])
    link = _link(root, described, part.name, numbers(part.position, attitude))
    disc = add(link, "visual", name="propeller")
    thickness = 0.1 * part.diameter
    _shape(disc, CollisionShape("cylinder", np.array([thickness, part.diameter, part.diameter]), np.zeros(3)))
    _colour(disc, (0.2, 0.2, 0.2))
    _joint(root, part.name, (parent, part.name), np.array([1.0, 0.0, 0.0]), (-FREE, FREE))
    plugin = _plugin(root, "thruster", "Thruster")
    add(plugin, "joint_name", f"{part.name}_joint")
    density, diameter = described.motion.density, part.diameter
    add(plugin, "fluid_density", float(density))
    add(plugin, "propeller_diameter", float(diameter))
    if part.shaft:
        coefficient = part.per_square / (density * diameter**4)
        if part.per_speed:
            add(plugin, "alpha_1", float(coefficient))
            add(plugin, "alpha_2", float(part.per_speed / (density * diameter**3)))
            add(plugin, "wake_fraction", float(part.wake))
        else:
            add(plugin, "thrust_coefficient", float(coefficient))
        add(plugin, "use_angvel_cmd", "true")
    else:
        add(plugin, "thrust_coefficient", 1.0)
    add(plugin, "velocity_control", "true")
    add(plugin, "max_thrust_cmd", float(part.maximum))
    add(plugin, "min_thrust_cmd", float(part.minimum))


def _fin(root: ET.Element, described: ModelDescription, part: ExportedFin) -> None:
    link = _link(root, described, part.name, numbers(part.position, fin_attitude(part)))
    plate = add(link, "visual", name="fin")
    _shape(plate, CollisionShape("box", fin_size(part), np.zeros(3)))
    _colour(plate, (0.8, 0.2, 0.1))
    axis = euler_to_rotation(fin_attitude(part)).T @ part.hinge
    _joint(root, part.name, ("base", part.name), axis, (-part.limit, part.limit))
    _position_controller(root, part.name, part.rate)
    plugin = _plugin(root, "lift-drag", "LiftDrag")
    plugin.append(ET.Comment(" The link is the hull, so that the force at a fin angle is perpendicular to the flow. "))
    add(plugin, "link_name", "base_link")
    add(plugin, "control_joint_name", f"{part.name}_joint")
    add(plugin, "control_joint_rad_to_cl", float(part.slope))
    add(plugin, "air_density", float(described.motion.density))
    add(plugin, "area", float(part.area))
    add(plugin, "cp", numbers(part.position))
    add(plugin, "forward", numbers(part.forward))
    add(plugin, "upward", numbers(part.upward))
    add(plugin, "reversible", "true")
    for tag, value in (
        ("a0", 0.0),
        ("cla", part.inflow_slope),
        ("cda", 0.0),
        ("cma", 0.0),
        ("alpha_stall", 0.5 * math.pi),
        ("cla_stall", 0.0),
        ("cda_stall", 0.0),
        ("cma_stall", 0.0),
    ):
        add(plugin, tag, float(value))


def _hydrodynamics(root: ET.Element, described: ModelDescription) -> None:
    terms = described.terms
    plugin = _plugin(root, "hydrodynamics", "Hydrodynamics")
    add(plugin, "link_name", "base_link")
    signed = np.triu(np.ones((6, 6))) * (terms.signed + np.swapaxes(terms.signed, 1, 2))
    signed[:, range(6), range(6)] *= 0.5  # the products u v and v u are one term
    least = NEGLIGIBLE * max(np.abs(v).max() for v in (terms.linear, terms.absolute, signed))
    for i, force in enumerate(FORCES):
        for j, first in enumerate(VELOCITIES):
            if abs(terms.linear[i, j]) > least:
                add(plugin, f"{force}{first}", float(terms.linear[i, j]))
            for k, second in enumerate(VELOCITIES):
                if abs(terms.absolute[i, j, k]) > least:
                    add(plugin, f"{force}{first}abs{second}", float(terms.absolute[i, j, k]))
                if abs(signed[i, j, k]) > least:
                    add(plugin, f"{force}{first}{second}", float(signed[i, j, k]))


def _world(described: ModelDescription, model: ET.Element) -> ET.Element:
    root, motion = ET.Element("world", name=f"{described.model.name}_world"), described.motion
    physics = add(root, "physics", name="default", type="dart")
    add(physics, "max_step_size", STEP)
    add(physics, "real_time_factor", 1.0)
    add(root, "gravity", numbers([0.0, 0.0, -motion.gravity]))
    add(root, "magnetic_field", numbers(1e-6 * FLIP * np.array([20.0, 0.0, 45.0])))
    coordinates = add(root, "spherical_coordinates")
    for tag, text in (
        ("surface_model", "EARTH_WGS84"),
        ("world_frame_orientation", "ENU"),
        ("latitude_deg", "0"),
        ("longitude_deg", "0"),
        ("elevation", "0"),
        ("heading_deg", "0"),
    ):
        add(coordinates, tag, text)
    found = [s.get("gz:type") or s.get("type") or "" for s in model.iter("sensor")]
    needed = [plugin for type_ in found for plugin in SENSOR_PLUGINS[type_]]
    for name in dict.fromkeys((*WORLD_PLUGINS, *needed)):
        plugin = _plugin(root, name, CLASSES[name])
        if name == "sensors":
            add(plugin, "render_engine", "ogre2")
    buoyancy = _plugin(root, "buoyancy", "Buoyancy")
    if floats_in_gazebo(motion):
        graded = add(buoyancy, "graded_buoyancy")
        add(graded, "default_density", float(motion.density))
        change = add(graded, "density_change")
        add(change, "above_depth", 0.0)
        add(change, "density", 0.0)
    else:
        add(buoyancy, "uniform_fluid_density", float(motion.density))
    light = add(root, "light", name="sun", type="directional")
    add(light, "cast_shadows", "false")
    add(light, "direction", numbers([-0.5, 0.1, -0.9]))
    root.append(model)
    return root
