"""A model from the description of a vehicle in SDF, URDF or xacro."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.kinematics import skew
from wavesim_server.importers.gazebo import buoyancy, elements, fins, hydrodynamics, propulsion, sdf, sensors, urdf
from wavesim_server.importers.gazebo.elements import ElementUse, describe
from wavesim_server.importers.gazebo.files import search_path
from wavesim_server.importers.gazebo.frames import FORWARD, MassSum, RigidPose
from wavesim_server.importers.gazebo.looks import add_appearance
from wavesim_server.importers.gazebo.robot import LinkShape, Robot, RobotLink
from wavesim_server.importers.gazebo.xacro_files import expand
from wavesim_server.importers.model_draft import ModelDraft, format_numbers

#: share of the mass that a joint may move before the import reports it
MOVING_SHARE = 0.01
#: distance in m of a centre of mass from the axis of its joint up to which turning does not move it
SMALL_ARM = 0.01
#: plugins that move nothing: messages, controllers on top of actuators, and displays
_SILENT = re.compile(
    r"joint.?state|pose.?publisher|odometry|joint.?position.?controller|joint.?controller|ardupilot|commsendpoint|comms.?endpoint"
    r"|tethyscomm|user.?commands|scene.?broadcaster|p3d|ros_control|gz_ros2_control|label|trajectory|joint.?trajectory"
    r"|pose_3dgt|pose_gt|particle|wavefield|sensors.?system|imu.?system|altimeter.?system|magnetometer.?system",
    re.IGNORECASE,
)


def read(
    path: Path, section: str | None, settings: dict[str, str], angles: str | None, folders: Sequence[Path] = ()
) -> ModelDraft:
    """Return the draft of one vehicle as a rigid body about the origin of the link on which the water acts."""
    search = search_path(path, folders)
    use = ElementUse(path)
    if path.suffix == ".xacro":
        text, warnings = expand(path, search, settings.get("xacro", ""))
        root = elements.parse(text, path)
        use.notes += warnings
    else:
        root = elements.load(path)
    robot = Robot(path.stem, use, root, search)
    if root.tag == "robot":
        urdf.read_robot(robot)
        dialect = "URDF"
    elif root.tag in ("sdf", "gazebo", "world"):
        sdf.read_model(robot, section)
        dialect = "SDF"
    else:
        raise ConfigError(f"the root of the file is <{root.tag}>; expected <sdf> or <robot>", str(path))
    if not robot.links:
        raise ConfigError("the file has no <link>", str(path))
    name = re.sub(r"[^A-Za-z0-9_-]", "-", robot.name).lower()
    draft = ModelDraft(name, f"{path.name} ({dialect}; forward-left-up axes converted)", settings, angles)
    if path.suffix == ".xacro":
        draft.used_settings.add("xacro")
    _build(draft, robot)
    return draft


def _build(draft: ModelDraft, robot: Robot) -> None:
    waters = hydrodynamics.find(draft, robot)
    base = waters[0].link if waters else robot.roots()[0]
    turn = _turn(draft)
    back = base.pose.inverse()

    def body(pose: RigidPose) -> RigidPose:
        """Convert a pose in the model to body axes. The rotation maps the axes of the posed frame to body axes."""
        inner = back.then(pose)
        return RigidPose(turn @ inner.rotation, turn @ inner.position)

    draft.attributes["type"] = "surface" if _floats(robot) else "underwater"
    rho = buoyancy.density(draft, robot)
    _add_size(draft, robot, body)
    masses = _add_masses(draft, robot, base, turn)
    buoyancy.add_ballast(draft, robot, body)
    buoyancy.add(draft, robot, base, body, masses, rho)
    _add_water(draft, waters, turn)
    joints = propulsion.add_all(draft, robot, body, base)
    joints |= fins.add_all(draft, robot, body, rho)
    _report_joints(draft, robot, joints, masses.mass)
    _report_loose_links(draft, robot, base)
    sensors.add_all(draft, robot, body)
    add_appearance(draft, robot, body)
    if propulsion.net_thrust(draft)[0] < -0.5:
        draft.notes.append(
            "positive commands push the vehicle backwards; if it faces -x of its link, import it with --set forward=-x"
        )
    _finish(draft, robot)


def _turn(draft: ModelDraft) -> Floats:
    axis = draft.settings.get("forward", "x").strip()
    draft.used_settings.add("forward")
    if axis not in FORWARD:
        raise ConfigError(f"--set forward: expected one of {', '.join(FORWARD)}; got '{axis}'")
    return FORWARD[axis]


def _floats(robot: Robot) -> bool:
    return any(p.get("name", "").endswith("::Surface") or "usv" in p.get("filename", "") for p in robot.plugins)


def _add_masses(draft: ModelDraft, robot: Robot, base: RobotLink, turn: Floats) -> MassSum:
    """Add <mass> and <inertia> of all links together, and return them in body axes about the origin of the body."""
    total = robot.masses(base.pose)
    masses = MassSum()
    if total.mass <= 0.0:
        given, three = draft.require_numbers("mass", 1), draft.require_numbers("inertia", 3)
        total.mass, masses.mass = (given or [1.0])[0], (given or [1.0])[0]
        inertia = np.diag(three or [1.0, 1.0, 1.0])
    else:
        inertia = turn @ total.central @ turn.T
    masses.add(0.0 if masses.mass else total.mass, turn @ total.centre, inertia)
    draft.add("mass", value=f"{total.mass:.12g} kg", centre=format_numbers(*np.round(masses.centre, 12)) + " m")
    least, middle, most = np.linalg.eigvalsh(inertia)
    if least <= 0.0 or most > (least + middle) * (1.0 + 1e-9):
        why = f"; that of the file is impossible: principal moments {least:.4g}, {middle:.4g} and {most:.4g} kg m2"
        draft.require_text("inertia", why)
        inertia = np.diag(draft.require_numbers("inertia", 3) or [1.0, 1.0, 1.0])
        draft.missing = [gap for gap in draft.missing if not gap.startswith("--set inertia") or why in gap]
        masses.inertia = inertia - masses.mass * (skew(masses.centre) @ skew(masses.centre))
    inertia[np.abs(inertia) < 1e-12 * np.trace(inertia)] = 0.0
    names = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
    draft.add("inertia", **{k: f"{inertia[at] + 0.0:.12g}" for k, at in names.items()})
    count = sum(link.mass > 0.0 for link in robot.links.values())
    draft.notes.append(
        f"mass and inertia are those of {count} links; the origin of the body is that of link {base.name}"
    )
    return masses


def _add_water(draft: ModelDraft, waters: list[hydrodynamics.WaterForces], turn: Floats) -> None:
    if not waters:
        added, drag = draft.require_numbers("added-mass", 6), draft.require_numbers("linear-drag", 6)
        if added is not None and drag is not None:
            draft.matrix("added-mass", np.diag(added))
            draft.matrix("linear-drag", np.diag(drag))
        return
    for other in waters[1:]:
        draft.unused.append(
            f"hydrodynamics of link {other.link.name}: a model has one set, here of {waters[0].link.name}"
        )
    link = waters[0].link
    if link.added_mass is not None:
        waters[0].added = waters[0].added + link.added_mass
        waters[0].circulating = waters[0].circulating + link.added_mass
    hydrodynamics.add(draft, waters[0], turn)


def _add_size(draft: ModelDraft, robot: Robot, body: Callable[[RigidPose], RigidPose]) -> None:
    """Add the primitive shape: the box around all collision shapes, or the box of UUV Simulator."""
    for plugin in robot.plugins:
        box = plugin.find("link/box") if "uuv_underwater_object" in plugin.get("filename", "").lower() else None
        if box is not None:
            robot.use.mark(box)
            size = [robot.use.number(box, t, 1.0) for t in ("length", "width", "height")]
            draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
            return
    corners = [
        _corners(robot, shape, body(link.pose.then(shape.pose)))
        for link in robot.links.values()
        for shape in link.collisions
    ]
    found = [c for c in corners if c is not None]
    if not found:
        given = draft.require_numbers("size", 3)
        size = given if given is not None else [1.0, 1.0, 1.0]
    else:
        points = np.concatenate(found)
        size = list(np.maximum(np.ptp(points, axis=0), 0.001))
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        if np.abs(middle).max() > 0.01:
            draft.notes.append(
                f"the box has the size of the collision shapes; their middle is at {format_numbers(*np.round(middle, 3))} m, the "
                "middle of the box at the origin"
            )
    draft.add("box", length=f"{size[0]:.6g} m", width=f"{size[1]:.6g} m", height=f"{size[2]:.6g} m")


def _corners(robot: Robot, shape: LinkShape, pose: RigidPose) -> Floats | None:
    s = shape.size
    if shape.kind == "mesh":
        triangles = buoyancy.mesh_triangles(robot, shape)
        return None if triangles is None else pose.position + triangles.reshape(-1, 3) @ pose.rotation.T
    if shape.kind == "box":
        half = np.array(s) / 2
    elif shape.kind in ("sphere", "ellipsoid"):
        half = np.array(s if len(s) == 3 else s * 3)
    else:
        half = np.array([s[0], s[0], s[1] / 2 + (s[0] if shape.kind == "capsule" else 0.0)])
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    return np.asarray(pose.position + (signs * half) @ pose.rotation.T)


def _report_joints(draft: ModelDraft, robot: Robot, used: set[str], mass: float) -> None:
    """Report the joints that move a considerable mass: the model keeps it where it is at zero. A body that turns about
    an axis through its centre of mass does not move.
    """
    for joint in robot.joints.values():
        if joint.kind == "fixed" or joint.upper <= joint.lower:
            continue
        links = [link for link in robot.subtree(joint.child) if link.mass > 0.0]
        moved = sum(link.mass for link in links)
        centre = sum(
            (link.mass * (link.pose.position + link.pose.rotation @ link.centre) for link in links), np.zeros(3)
        )
        arm = np.linalg.norm(np.cross(joint.axis, centre / max(moved, 1e-9) - joint.pose.position))
        if joint.kind in ("revolute", "continuous") and arm < SMALL_ARM and joint.name in used:
            continue
        text = f"joint {joint.name} ({joint.kind}): moves {moved:.4g} kg, {100 * moved / mass:.3g} % of the mass"
        if moved > MOVING_SHARE * mass:
            draft.unused.append(f"{text}; the model holds it at zero")
        elif joint.name not in used:
            draft.notes.append(f"{text}; the model holds it at zero")


def _report_loose_links(draft: ModelDraft, robot: Robot, base: RobotLink) -> None:
    """Report the links that no joint connects with the body, except drop weights."""
    top = base.name
    while (above := next((j.parent for j in robot.joints.values() if j.child == top), None)) is not None:
        top = above
    held = {link.name for link in robot.subtree(top)}
    held |= {(p.findtext("child_link") or "").strip() for p in robot.plugins}
    for link in robot.links.values():
        if link.name not in held:
            draft.unused.append(
                f"link {link.name}: no joint connects it with {base.name}; the model holds it where it is"
            )


def _finish(draft: ModelDraft, robot: Robot) -> None:
    """Collect notes and everything that was not used."""
    for plugin in robot.plugins:
        if _SILENT.search(f"{plugin.get('name')} {plugin.get('filename')}"):
            draft.notes.append(f"{describe(plugin)}: messages or control, no part of a model")
            robot.use.mark_all(plugin)
        if topic := plugin.findtext("topic"):
            draft.notes.append(f"{describe(plugin)}: topic {topic.strip()}")
            robot.use.mark(plugin.find("topic"))
    lost, none = robot.use.unused(robot.root)
    draft.unused += [*robot.lost, *lost]
    draft.notes += [*robot.notes, *robot.use.notes]
    draft.notes = _grouped(draft.notes)
    if none:
        draft.notes.append(f"elements that have no meaning for a model: {', '.join(none)}")


def _grouped(notes: list[str]) -> list[str]:
    """Return the notes, with those that say the same about several parts in one line."""
    parts: dict[str, list[str]] = {}
    for note in notes:
        part, colon, text = note.partition(": ")
        names = parts.setdefault(text if colon else note, [])
        if colon and part not in names:
            names.append(part)
    return [f"{', '.join(names)}: {text}" if names else text for text, names in parts.items()]
