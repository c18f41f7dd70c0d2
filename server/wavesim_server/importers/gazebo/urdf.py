"""Reader for URDF, also as the result of xacro: links, joints, and the extensions in <gazebo>."""

from __future__ import annotations

import math

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.kinematics import euler_to_rotation
from wavesim_server.importers.gazebo.elements import Element, ElementUse
from wavesim_server.importers.gazebo.files import find_file
from wavesim_server.importers.gazebo.frames import IDENTITY, RigidPose
from wavesim_server.importers.gazebo.robot import LinkSensor, LinkShape, Robot, RobotJoint, RobotLink
from wavesim_server.importers.gazebo.sdf import tensor


def read_robot(robot: Robot) -> None:
    """Read the <robot> of a URDF file into ``robot``."""
    root, use = robot.root, robot.use
    use.mark(root)
    robot.name = root.get("name") or robot.use.path.stem
    for element in root.findall("link"):
        link = _read_link(robot, element)
        if link.name in robot.links:
            raise use.fail(element, "there are two links of this name")
        robot.links[link.name] = link
    for element in root.findall("joint"):
        joint = _read_joint(use, element)
        for name in (joint.parent, joint.child):
            if name not in robot.links:
                raise use.fail(element, f"there is no link '{name}'")
        robot.joints[joint.name] = joint
    _place(robot)
    for element in root.findall("gazebo"):
        _read_extension(robot, element)
    for material in root.findall("material"):
        use.mark_all(material)


def _origin(use: ElementUse, element: Element) -> RigidPose:
    origin = element.find("origin")
    if origin is None:
        return IDENTITY
    use.mark(origin)
    xyz = use.numbers(origin, 3, origin.get("xyz", "0 0 0"))
    rpy = use.numbers(origin, 3, origin.get("rpy", "0 0 0"))
    return RigidPose(euler_to_rotation(rpy), np.array(xyz))


def _read_link(robot: Robot, element: Element) -> RobotLink:
    use = robot.use
    use.mark(element)
    link = RobotLink(element.get("name", ""))
    inertial = use.child(element, "inertial")
    if inertial is not None:
        at, mass = _origin(use, inertial), use.child(inertial, "mass")
        inertia = use.child(inertial, "inertia")
        if mass is not None:
            link.mass = use.numbers(mass, 1, mass.get("value", ""))[0]
        if inertia is not None:
            n = {k: use.numbers(inertia, 1, inertia.get(k, "0"))[0] for k in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
            link.inertia = at.rotation @ tensor(n) @ at.rotation.T
        link.centre = at.position
    for tag, shapes in (("collision", link.collisions), ("visual", link.visuals)):
        for shape in element.findall(tag):
            if (found := _read_shape(robot, shape)) is not None:
                shapes.append(found)
    return link


def _read_shape(robot: Robot, element: Element) -> LinkShape | None:
    use = robot.use
    use.mark(element)
    geometry = use.child(element, "geometry")
    if geometry is None or not len(geometry):
        return None
    pose, shape, name = _origin(use, element), geometry[0], element.get("name", "")
    if shape.tag == "box":
        size = use.numbers(shape, 3, shape.get("size", ""))
    elif shape.tag in ("cylinder", "capsule"):
        size = [use.numbers(shape, 1, shape.get(k, ""))[0] for k in ("radius", "length")]
    elif shape.tag == "sphere":
        size = use.numbers(shape, 1, shape.get("radius", ""))
    elif shape.tag == "mesh":
        use.mark(shape)
        uri = shape.get("filename", "")
        file = find_file(uri, robot.folders, robot.use.path.resolve().parent)
        scale = tuple(use.numbers(shape, 0, shape.get("scale", "1 1 1")))
        return LinkShape(name, pose, "mesh", scale, element, str(file) if file else uri)
    else:
        return None
    use.mark(shape)
    return LinkShape(name, pose, shape.tag, tuple(size), element)


def _read_joint(use: ElementUse, element: Element) -> RobotJoint:
    use.mark(element)
    names = []
    for tag in ("parent", "child"):
        found = use.child(element, tag)
        names.append("" if found is None else found.get("link", ""))
    axis, limit = use.child(element, "axis"), use.child(element, "limit")
    direction = np.array([1.0, 0.0, 0.0])
    if axis is not None:
        direction = np.array(use.numbers(axis, 3, axis.get("xyz", "1 0 0")))
    length = math.sqrt(float(direction @ direction))
    if length == 0.0:
        raise use.fail(element, "the axis of the joint has no length")
    low, high, rate = -1e16, 1e16, -1.0
    if limit is not None:
        low, high = (use.numbers(limit, 1, limit.get(k, "0"))[0] for k in ("lower", "upper"))
        rate = use.numbers(limit, 1, limit.get("velocity", "-1"))[0]
    use.mark_all(element.find("dynamics"))
    kind = element.get("type", "fixed")
    if kind == "continuous":
        low, high = -1e16, 1e16
    return RobotJoint(
        element.get("name", ""),
        kind,
        names[0],
        names[1],
        direction / length,
        _origin(use, element),
        low,
        high,
        rate,
        element,
    )


def _place(robot: Robot) -> None:
    """Replace the poses of joints and links, relative to their parents, by poses in the model."""
    roots = robot.roots()
    if not roots:
        raise ConfigError("the joints form a ring: no link is the root", str(robot.use.path))
    done = {link.name for link in roots}
    queue = [link.name for link in roots]
    while queue:
        at = queue.pop()
        for joint in robot.joints.values():
            if joint.parent == at and joint.child not in done:
                joint.pose = robot.links[at].pose.then(joint.pose)
                joint.axis = joint.pose.rotation @ joint.axis
                robot.links[joint.child].pose = joint.pose
                done.add(joint.child)
                queue.append(joint.child)
    if len(roots) > 1:
        raise ConfigError(
            f"the links {', '.join(r.name for r in roots)} are not connected by joints", str(robot.use.path)
        )


def _read_extension(robot: Robot, element: Element) -> None:
    """Read one <gazebo>: plugins, and sensors of the link that it refers to."""
    use = robot.use
    use.mark(element)
    robot.plugins += element.findall("plugin")
    reference = element.get("reference")
    link = robot.find_link(reference) if reference else None
    for sensor in element.findall("sensor"):
        if link is None:
            continue
        use.mark(sensor)
        kind = sensor.get("gz-type") or sensor.get("type") or ""
        pose = use.pose(sensor.find("pose"))
        link.sensors.append(LinkSensor(sensor.get("name", kind), kind, pose, sensor))
    for tag in ("visual", "collision"):
        for shape in element.findall(tag):
            use.mark_all(shape)  # colours and friction of the shapes of the link
