"""Reader for SDF 1.4 to 1.12: models, nested and included models, links, joints and frames."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.gazebo import elements
from wavesim_server.importers.gazebo.elements import Element
from wavesim_server.importers.gazebo.files import find_file
from wavesim_server.importers.gazebo.frames import IDENTITY, RigidPose
from wavesim_server.importers.gazebo.robot import LinkSensor, LinkShape, Robot, RobotJoint, RobotLink

MOST_INCLUDES = 30  #: maximum depth of models in models
_SHAPES = {
    "box": ("size", 3),
    "sphere": ("radius", 1),
    "cylinder": ("radius length", 2),
    "capsule": ("radius length", 2),
    "cone": ("radius length", 2),
    "ellipsoid": ("radii", 3),
}


def read_model(robot: Robot, section: str | None) -> None:
    """Read the model of an SDF file into ``robot``. ``section`` selects one of several models."""
    root = robot.root
    robot.use.mark(root)
    world = root.find("world")
    holder = root if world is None else world
    robot.use.mark(world)
    if world is not None:
        _include_all(robot, world, robot.use.path.parent, 0)
    models = [m for m in holder.findall("model") if section in (None, m.get("name"))]
    if world is not None and section is None:
        models = [m for m in models if m.find(".//plugin") is not None] or models
    names = ", ".join(m.get("name", "") for m in holder.findall("model"))
    if len(models) != 1:
        problem = f"no model named '{section}'" if section and not models else "the file has several models"
        if not names:
            problem = "the file has no <model>"
        raise ConfigError(f"{problem}; select one with --section: {names}", str(robot.use.path))
    model = models[0]
    robot.name = model.get("name", "vehicle")
    robot.root = model
    if world is not None:
        robot.plugins += [p for p in world.findall("plugin") if "buoyancy" in p.get("filename", "").lower()]
    robot.use.mark(model.find("pose"))  # the place of the vehicle in the world
    _Model(robot, model, robot.use.path.parent, IDENTITY, "").read(0)


class _Model:
    """One <model> with its frames; nested models have their own."""

    def __init__(self, robot: Robot, element: Element, folder: Path, pose: RigidPose, scope: str) -> None:
        self.robot, self.use, self.element, self.folder = robot, robot.use, element, folder
        self.pose, self.scope = pose, scope  #: pose of the model frame in the outermost model, and prefix of its names
        self.frames: dict[str, Element] = {}
        self.found: dict[str, RigidPose] = {"": pose, "__model__": pose}

    def read(self, depth: int) -> None:
        if depth > MOST_INCLUDES:
            raise self.use.fail(self.element, "models include each other without end")
        self.use.mark(self.element)
        _include_all(self.robot, self.element, self.folder, depth)
        for tag in ("link", "joint", "frame", "model"):
            for element in self.element.findall(tag):
                self.frames[element.get("name", "")] = element
        for element in self.element.findall("link"):
            self.read_link(element)
        for element in self.element.findall("model"):
            folder = Path(element.get("wavesim-folder", str(self.folder)))
            inner = _Model(
                self.robot,
                element,
                folder,
                self.resolve(element.get("name", "")),
                f"{self.scope}{element.get('name')}::",
            )
            inner.read(depth + 1)
            self.found |= {f"{element.get('name')}::{k}": v for k, v in inner.found.items() if k}
        for element in self.element.findall("joint"):
            self.read_joint(element)
        self.robot.plugins += self.element.findall("plugin")

    def resolve(self, name: str, seen: tuple[str, ...] = ()) -> RigidPose:
        """Return the pose of a link, joint, frame or nested model in the outermost model."""
        if name in self.found:
            return self.found[name]
        element = self.frames.get(name)
        if element is None or name in seen:
            raise self.use.fail(self.element, f"there is no frame '{name}' (or frames refer to each other)")
        pose = element.find("pose")
        base = pose.get("relative_to", "") if pose is not None else ""
        if not base and element.tag == "frame":
            base = element.get("attached_to", "")
        if not base and element.tag == "joint":
            base = (element.findtext("child") or "").strip()
            if base not in self.frames and base not in self.found:
                base = ""
        self.found[name] = self.resolve(base, (*seen, name)).then(self.use.pose(pose))
        return self.found[name]

    def read_link(self, element: Element) -> None:
        name = element.get("name", "")
        link = RobotLink(f"{self.scope}{name}", self.resolve(name))
        self.use.mark(element)
        inertial = self.use.child(element, "inertial")
        if inertial is not None:
            at = self.use.pose(inertial.find("pose"))
            link.mass = self.use.number(inertial, "mass", 1.0)
            link.centre = at.position
            moments = self.use.child(inertial, "inertia")
            n = {k: self.use.number(moments, k, 1.0 if k in ("ixx", "iyy", "izz") else 0.0) for k in _INERTIA}
            link.inertia = at.rotation @ tensor(n) @ at.rotation.T
            link.added_mass = self.added_mass(inertial)
        for tag, shapes in (("collision", link.collisions), ("visual", link.visuals)):
            for shape in element.findall(tag):
                if (found := self.shape(shape)) is not None:
                    shapes.append(found)
        for sensor in element.findall("sensor"):
            self.use.mark(sensor)
            kind = sensor.get("gz-type") or sensor.get("ignition-type") or sensor.get("type") or ""
            link.sensors.append(LinkSensor(sensor.get("name", kind), kind, self.local_pose(sensor, link), sensor))
        self.robot.links[link.name] = link

    def local_pose(self, element: Element, link: RobotLink) -> RigidPose:
        """Return the pose of a part of a link in this link."""
        pose = element.find("pose")
        base = pose.get("relative_to", "") if pose is not None else ""
        if not base or base == link.name:
            return self.use.pose(pose)
        return link.pose.inverse().then(self.resolve(base)).then(self.use.pose(pose))

    def added_mass(self, inertial: Element) -> Floats | None:
        """Return the matrix of <fluid_added_mass>, about the origin of the link and along its axes."""
        given = self.use.child(inertial, "fluid_added_mass")
        if given is None:
            return None
        m = np.zeros((6, 6))
        for i, a in enumerate("xyzpqr"):
            for j, b in enumerate("xyzpqr"):
                if j >= i:
                    m[i, j] = m[j, i] = self.use.number(given, a + b, 0.0)
        return m

    def shape(self, element: Element) -> LinkShape | None:
        self.use.mark(element)
        geometry = self.use.child(element, "geometry")
        if geometry is None:
            return None
        pose = self.use.pose(element.find("pose"))
        for kind, (tags, count) in _SHAPES.items():
            found = self.use.child(geometry, kind)
            if found is not None:
                if count == 3:
                    values = tuple(self.use.vector(found, tags, (1.0, 1.0, 1.0)))
                else:
                    values = tuple(self.use.number(found, t, 1.0) for t in tags.split())
                return LinkShape(element.get("name", ""), pose, kind, values, element)
        mesh = self.use.child(geometry, "mesh")
        if mesh is None:
            return None  # planes, heightmaps: listed as unused
        uri = self.use.text(mesh, "uri")
        scale = tuple(self.use.vector(mesh, "scale", (1.0, 1.0, 1.0)))
        file = find_file(uri, self.robot.folders, self.folder)
        return LinkShape(element.get("name", ""), pose, "mesh", scale, element, str(file) if file else uri)

    def read_joint(self, element: Element) -> None:
        use, name = self.use, element.get("name", "")
        use.mark(element)
        parent, child = (self.scope + use.text(element, k).strip() for k in ("parent", "child"))
        pose = self.resolve(name)
        axis = use.child(element, "axis")
        direction = use.vector(axis, "xyz", (0.0, 0.0, 1.0))
        turned = pose.rotation
        xyz = axis.find("xyz") if axis is not None else None
        if axis is not None and use.flag(axis, "use_parent_model_frame", False):
            turned = self.pose.rotation
        if xyz is not None and xyz.get("expressed_in"):
            turned = self.resolve(xyz.get("expressed_in", "")).rotation
        limit = use.child(axis, "limit")
        for ignored in ("effort", "stiffness", "dissipation"):
            use.mark_all(limit.find(ignored) if limit is not None else None)
        use.mark_all(axis.find("dynamics") if axis is not None else None)
        length = math.sqrt(float(direction @ direction))
        if length == 0.0:
            raise use.fail(element, "the axis of the joint has no length")
        self.robot.joints[self.scope + name] = RobotJoint(
            self.scope + name,
            element.get("type", "fixed"),
            parent,
            child,
            turned @ direction / length,
            pose,
            use.number(limit, "lower", -1e16),
            use.number(limit, "upper", 1e16),
            use.number(limit, "velocity", -1.0),
            element,
        )


_INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def tensor(n: Mapping[str, float]) -> Floats:
    """Return the inertia matrix of its six elements ixx to iyz."""
    return np.array([[n["ixx"], n["ixy"], n["ixz"]], [n["ixy"], n["iyy"], n["iyz"]], [n["ixz"], n["iyz"], n["izz"]]])


def _include_all(robot: Robot, holder: Element, folder: Path, depth: int) -> None:
    """Replace each <include> by the model that it names."""
    for include in holder.findall("include"):
        uri = (include.findtext("uri") or "").strip()
        file = find_file(uri, robot.folders, folder)
        if file is not None and file.is_dir():
            file = _main_file(file)
        if file is None:
            if holder.tag == "world":
                continue
            raise ConfigError(
                f"<include> names '{uri}', which was not found: give the folder that contains it with --path",
                f"{robot.use.path}:{include.sourceline}",
            )
        root = elements.load(file)
        inner = root.find("model")
        if inner is None:
            if holder.tag == "world":
                continue
            raise ConfigError("the included file has no <model>", str(file))
        _include_all(robot, inner, file.parent, depth + 1)
        _merge(robot, holder, include, copy.deepcopy(inner), file.parent)


def _main_file(folder: Path) -> Path | None:
    config = folder / "model.config"
    if config.is_file():
        named = [(e.text or "").strip() for e in elements.load(config).findall("sdf")]
        for name in reversed(named):
            if (folder / name).is_file():
                return folder / name
    return folder / "model.sdf" if (folder / "model.sdf").is_file() else None


def _merge(robot: Robot, holder: Element, include: Element, model: Element, folder: Path) -> None:
    """Put an included model in the place of its <include>; with `merge`, only its content."""
    model.set("wavesim-folder", str(folder))
    for mesh in model.iter("uri"):
        if mesh.text and "://" not in mesh.text:
            mesh.text = str(folder / mesh.text.strip())
    name = (include.findtext("name") or "").strip()
    if name:
        model.set("name", name)
    pose = include.find("pose")
    if pose is not None:
        for old in model.findall("pose"):
            model.remove(old)
        model.insert(0, copy.deepcopy(pose))
    for params in include.findall("experimental-params"):
        _change(robot, model, params)
    model.extend([copy.deepcopy(p) for p in include.findall("plugin")])
    holder.remove(include)
    if include.get("merge", "").lower() in ("1", "true"):
        _merge_content(robot, holder, model)
    else:
        holder.append(model)


def _merge_content(robot: Robot, holder: Element, model: Element) -> None:
    """Put the content of a model into another model. Its pose does not matter, because only relative poses count, unless
    the other model has its own links.
    """
    pose = model.find("pose")
    if pose is not None and holder.find("link") is not None and (pose.text or "").strip(" 0\n"):
        base = f"_merged_{model.get('name')}"
        frame = pose.makeelement("frame", {"name": base})
        frame.append(copy.deepcopy(pose))
        holder.append(frame)
        for inner in (*model.findall("link"), *model.findall("frame"), *model.findall("model")):
            at = inner.find("pose")
            if at is None:
                at = inner.makeelement("pose", {})
                at.text = "0 0 0 0 0 0"
                inner.insert(0, at)
            if not at.get("relative_to") and not inner.get("attached_to"):
                at.set("relative_to", base)
    for inner in list(model):
        if inner.tag != "pose":
            holder.append(inner)


def _change(robot: Robot, model: Element, params: Element) -> None:
    """Apply <experimental:params>: elements that the including file adds to parts of the included model."""
    for given in params:
        names = (given.get("element_id") or "").split("::")
        target: Element | None = model
        for name in names:
            target = next((e for e in target if e.get("name") == name), None) if target is not None and name else target
        if given.get("action") == "add" and target is not None:
            added = copy.deepcopy(given)
            for key in ("element_id", "action"):
                added.attrib.pop(key, "")
            target.append(added)
        else:
            robot.lost.append(f"experimental:params / {given.tag} {given.get('element_id')}: {given.get('action')}")
