"""Thrusters: the plugin Thruster of gz-sim and that of UUV Simulator, with the joints that turn them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_server.importers.gazebo.elements import Element, describe
from wavesim_server.importers.gazebo.frames import RigidPose
from wavesim_server.importers.gazebo.robot import Robot, RobotJoint, RobotLink
from wavesim_server.importers.model_draft import ModelDraft, format_numbers

GZ_LIMIT = 1000.0  #: default limit of a command of gz-sim's plugin, in N or rad/s
TURN = 2.0 * math.pi
MOST_SWIVELS = 4


def add_all(draft: ModelDraft, robot: Robot, body: Callable[[RigidPose], RigidPose], base: RobotLink) -> set[str]:
    """Add a thruster for each plugin. ``body`` converts a pose in the model to one in body axes. Return the names of the
    joints that the thrusters use.
    """
    joints: set[str] = set()
    limits = _autopilot_limits(robot)
    for plugin in robot.plugins:
        name, file = plugin.get("name", ""), plugin.get("filename", "").lower()
        if name.endswith("::Thruster") or "thruster-system" in file:
            joint = _joint(robot, plugin, "joint_name")
            element = _gz(draft, robot, plugin, joint, limits.get(joint.name))
        elif "uuv_thruster" in file:
            joint = _joint(robot, plugin, "jointName")
            element = _uuv(draft, robot, plugin, joint)
        else:
            continue
        joints.add(joint.name)
        link = robot.find_link(joint.child)
        assert link is not None
        pose = body(link.pose)
        element.set("position", format_numbers(*np.round(pose.position, 9)) + " m")
        axis = pose.rotation @ link.pose.rotation.T @ joint.axis
        element.set("direction", format_numbers(*np.round(axis, 9)))
        joints |= _add_swivel(draft, robot, joint, base, element)
    return joints


def _joint(robot: Robot, plugin: Element, tag: str) -> RobotJoint:
    robot.use.mark(plugin)
    name = robot.use.text(plugin, tag)
    joint = robot.find_joint(name)
    if joint is None:
        raise robot.use.fail(plugin, f"there is no joint '{name}'")
    return joint


def _short(robot: Robot, name: str) -> str:
    """Return the name of an actuator from the name of its joint: without models, namespaces and `joint`."""
    name = name.rpartition("::")[2].rpartition("/")[2]
    for ending in ("_engine_propeller_joint", "_propeller_joint", "_joint", "-joint"):
        name = name.removesuffix(ending)
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name).replace("_", "-").lower() or "thruster"


def _add(draft: ModelDraft, robot: Robot, joint: RobotJoint, **attributes: str) -> Element:
    names = {e.get("name") for e in draft.elements if e.tag == "thruster"}
    name = short = _short(robot, joint.name)
    count = 2
    while name in names:
        name, count = f"{short}-{count}", count + 1
    return draft.add("thruster", name=name, position="", direction="", **attributes)


def _autopilot_limits(robot: Robot) -> dict[str, tuple[float, float]]:
    """Return the range of the thrust that the channels of an ArduPilotPlugin command, by joint."""
    found = {}
    for plugin in robot.plugins:
        if plugin.get("name", "").endswith("ArduPilotPlugin"):
            for control in plugin.findall("control"):
                joint = robot.find_joint(control.findtext("jointName") or "")
                scale, offset = (float(control.findtext(t) or d) for t, d in (("multiplier", 1), ("offset", 0)))
                if joint is not None and (control.findtext("cmd_topic") or "").strip().endswith("cmd_thrust"):
                    found[joint.name] = (min(a := scale * offset, b := scale * (1 + offset)), max(a, b))
    return found


def _gz(
    draft: ModelDraft, robot: Robot, plugin: Element, joint: RobotJoint, channel: tuple[float, float] | None
) -> Element:
    """Add a thruster of gz-sim: the command is a thrust in N or a shaft speed."""
    use, where = robot.use, describe(plugin)
    low, high = use.number(plugin, "min_thrust_cmd", -GZ_LIMIT), use.number(plugin, "max_thrust_cmd", GZ_LIMIT)
    if high < low:
        low, high = -GZ_LIMIT, GZ_LIMIT
    if plugin.find("max_thrust_cmd") is None or plugin.find("min_thrust_cmd") is None:
        if channel is not None:
            low, high = max(low, channel[0]), min(high, channel[1])
            draft.notes.append(f"{joint.name}: limits {low:g} and {high:g} from the channel of the ArduPilotPlugin")
        else:
            draft.notes.append(
                f"{joint.name}: limits {low:g} and {high:g}; gz-sim's default is {GZ_LIMIT:g} either way"
            )
    density = use.number(plugin, "fluid_density", 1000.0)
    diameter = use.number(plugin, "propeller_diameter", 0.02)
    given = plugin.find("thrust_coefficient") is not None
    kt = use.number(plugin, "thrust_coefficient", 1.0)
    wake = use.number(plugin, "wake_fraction", 0.2)
    alpha = use.number(plugin, "alpha_1", 1.0), use.number(plugin, "alpha_2", 0.0)
    dead = use.number(plugin, "deadband", 0.0)
    by_speed = use.flag(plugin, "use_angvel_cmd", False)
    for tag in ("velocity_control", "p_gain", "i_gain", "d_gain", "namespace", "topic", "name"):
        use.text(plugin, tag)
    if "battery_name" in {e.tag for e in plugin}:
        use.text(plugin, "battery_name")
        draft.unused.append(f"{where} / power_load = {use.text(plugin, 'power_load')}")
    if not by_speed:
        extra = {"dead_band": f"{dead:g}"} if dead else {}
        return _add(draft, robot, joint, law="force", minimum=f"{low:.12g}", maximum=f"{high:.12g}", lag="0 s", **extra)
    scale = density * diameter**4 * TURN**2
    extra = {}
    if dead:
        extra["dead_band"] = f"{math.sqrt(dead / abs(scale * kt)) / TURN * TURN:.9g}"
    if not given:
        extra |= {"inflow": "total", "wake": f"{wake:g}"}
    law = (0.0, scale * kt, 0.0) if given else (0.0, scale * alpha[0], density * diameter**3 * TURN * alpha[1])
    draft.notes.append(f"{joint.name}: the command is the shaft speed in 1/s; in gz-sim, it is in rad/s")
    return _add(
        draft,
        robot,
        joint,
        law="shaft",
        minimum=f"{low / TURN:.12g}",
        maximum=f"{high / TURN:.12g}",
        lag="0 s",
        coefficients=format_numbers(*law),
        **extra,
    )


def _uuv(draft: ModelDraft, robot: Robot, plugin: Element, joint: RobotJoint) -> Element:
    """Add a thruster of UUV Simulator: a lag, then a static law from the shaft speed to the thrust."""
    use, where = robot.use, describe(plugin)
    for tag in ("linkName", "thrusterID"):
        use.text(plugin, tag)
    clamp = use.number(plugin, "clampMin", -math.inf), use.number(plugin, "clampMax", math.inf)
    thrust = use.number(plugin, "thrustMin", -math.inf), use.number(plugin, "thrustMax", math.inf)
    if clamp[0] >= clamp[1]:
        draft.notes.append(f"{joint.name}: clampMin is not below clampMax; UUV Simulator then ignores both")
        clamp = -math.inf, math.inf
    if thrust[0] >= thrust[1]:
        thrust = -math.inf, math.inf
    gain = use.number(plugin, "gain", 1.0)
    efficiency = use.number(plugin, "thrust_efficiency", 1.0), use.number(plugin, "propeller_efficiency", 1.0)
    lag = _lag(draft, robot, plugin)
    conversion = use.child(plugin, "conversion")
    kind = use.text(conversion, "type")
    if kind == "Basic":
        c = efficiency[0] * efficiency[1] ** 2 * use.number(conversion, "rotorConstant", 0.0)
        reach = _reach(draft, joint, clamp, thrust, lambda t: math.copysign(math.sqrt(abs(t / c)) / gain, t))
        extra = {}
        if math.isfinite(thrust[1]):
            if thrust[0] != -thrust[1]:
                draft.unused.append(f"{where} / thrustMin = {thrust[0]:g}: it differs from -thrustMax")
            extra["thrust_limit"] = f"{max(abs(t) for t in thrust):.9g} N"
        draft.notes.append(f"{joint.name}: the command is the shaft speed in rad/s times {1 / gain:g}, as in the file")
        return _add(
            draft,
            robot,
            joint,
            law="shaft",
            minimum=f"{reach[0]:.12g}",
            maximum=f"{reach[1]:.12g}",
            lag=f"{lag:g} s",
            motor=format_numbers(0.0, gain / TURN),
            coefficients=format_numbers(0.0, c * TURN**2, 0.0),
            **extra,
        )
    law = _static_law(robot, conversion, kind, where)
    values = [efficiency[0] * law(efficiency[1] * gain * x) for x in clamp]
    reach = max(values[0], thrust[0]), min(values[1], thrust[1])
    reach = _reach(draft, joint, reach, (-math.inf, math.inf), lambda t: t)
    draft.notes.append(
        f"{joint.name}: the command is the thrust in N, because its law ({kind}) has no counterpart; the lag acts on the thrust"
    )
    return _add(
        draft, robot, joint, law="force", minimum=f"{reach[0]:.12g}", maximum=f"{reach[1]:.12g}", lag=f"{lag:g} s"
    )


def _static_law(robot: Robot, conversion: Element | None, kind: str, where: str) -> Callable[[float], float]:
    """Return the function from shaft speed to thrust of the laws that a model does not have."""
    use = robot.use
    if kind == "LinearInterp" and conversion is not None:
        x, y = (use.child(conversion, t) for t in ("inputValues", "outputValues"))
        if x is not None and y is not None:
            inputs, outputs = np.array(use.numbers(x)), np.array(use.numbers(y))
            order = np.argsort(inputs)
            return lambda v: float(np.interp(v, inputs[order], outputs[order]))
    if kind == "Bessa":
        left, right, low, high = (
            use.number(conversion, t, 0.0) for t in ("rotorConstantL", "rotorConstantR", "deltaL", "deltaR")
        )

        def dead_zone(v: float) -> float:
            square = v * abs(v)
            return left * (square - low) if square <= low else right * (square - high) if square >= high else 0.0

        return dead_zone
    raise robot.use.fail(
        conversion if conversion is not None else robot.root, f"unknown conversion '{kind}' of {where}"
    )


def _reach(
    draft: ModelDraft,
    joint: RobotJoint,
    command: tuple[float, float],
    thrust: tuple[float, float],
    inverse: Callable[[float], float],
) -> tuple[float, float]:
    """Return the limits of the command, from the limits of the command and of the thrust, or from the user."""
    limits = [
        c if math.isfinite(c) else inverse(t) if math.isfinite(t) else math.inf
        for c, t in zip(command, thrust, strict=True)
    ]
    if not all(map(math.isfinite, limits)):
        given = draft.require_numbers("thrust-limit", 1)
        most = inverse(given[0]) if given is not None else 1.0
        draft.notes.append(f"{joint.name}: the file states no limit; the limit is the one given with --set")
        limits = [-most, most]
    return min(limits), max(limits)


def _lag(draft: ModelDraft, robot: Robot, plugin: Element) -> float:
    """Return the time constant of a first-order lag in s."""
    dynamics = robot.use.child(plugin, "dynamics")
    kind = robot.use.text(dynamics, "type")
    if kind == "FirstOrder":
        return robot.use.number(dynamics, "timeConstant", 0.0)
    if kind not in ("ZeroOrder", ""):
        draft.unused.append(f"{describe(plugin)} / dynamics: type {kind}; the model has no lag")
        robot.use.mark_all(dynamics)
    return 0.0


def _add_swivel(draft: ModelDraft, robot: Robot, joint: RobotJoint, base: RobotLink, element: Element) -> set[str]:
    """Add a <swivel> if a vertical joint between the thruster and the hull turns the thruster."""
    used: set[str] = set()
    at = joint.parent
    while at != base.name:
        above = next((j for j in robot.joints.values() if j.child == at), None)
        if above is None:
            break
        if above.kind in ("revolute", "continuous") and above.upper > above.lower:
            vertical = float((base.pose.rotation.T @ above.axis)[2])
            direction = np.array([float(x) for x in element.get("direction", "").split()])
            count = sum(e.find("swivel") is not None for e in draft.elements)
            if abs(vertical) > 0.999 and abs(direction[2]) < 0.05 and count < MOST_SWIVELS and not used:
                low, high = max(above.lower, -math.pi), min(above.upper, math.pi)
                low, high = (-high, -low) if vertical > 0 else (low, high)
                etree.SubElement(
                    element, "swivel", minimum=f"{math.degrees(low):.9g} deg", maximum=f"{math.degrees(high):.9g} deg"
                )
                used.add(above.name)
                draft.notes.append(
                    f"{above.name}: it turns the thrust at a fixed point; in the file, the point moves with the joint. The "
                    "angle is positive to starboard"
                )
        at = above.parent
    return used


def net_thrust(draft: ModelDraft) -> Floats:
    """Return the sum of the directions of positive thrust, in body axes."""
    found = [e.get("direction", "0 0 0").split() for e in draft.elements if e.tag == "thruster"]
    return np.sum([[float(x) for x in d] for d in found], axis=0) if found else np.zeros(3)
