"""Fins: the plugin LiftDrag of gz-sim, and the fins of UUV Simulator.

Each becomes a fin with the `aerofoil` law, whose table has the lift and the drag that the simulator computes at each
angle of attack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_server.importers.gazebo.elements import Element, describe
from wavesim_server.importers.gazebo.frames import RigidPose
from wavesim_server.importers.gazebo.propulsion import _joint, _lag, _short
from wavesim_server.importers.gazebo.robot import Robot, RobotJoint
from wavesim_server.importers.model_draft import ModelDraft, format_numbers

STEP_DEG = 1  #: spacing of the table; between its rows, the engine interpolates
MOST_FINS = 8
Law = Callable[[float], tuple[float, float]]


def add_all(draft: ModelDraft, robot: Robot, body: Callable[[RigidPose], RigidPose], density: float) -> set[str]:
    """Add a fin for each plugin. Return the names of the joints that the fins use."""
    joints: set[str] = set()
    for plugin in robot.plugins:
        name, file = plugin.get("name", ""), plugin.get("filename", "").lower()
        if name.endswith("::LiftDrag") or "lift-drag-system" in file or "liftdragplugin" in file:
            joints |= _lift_drag(draft, robot, plugin, body, density)
        elif "uuv_fin" in file:
            joints |= _uuv(draft, robot, plugin, body, density)
    return joints


def _moving_joint(robot: Robot, link: str) -> RobotJoint | None:
    found = [j for j in robot.joints.values() if j.child == link and j.kind in ("revolute", "continuous")]
    return found[0] if found else None


def _lift_drag(
    draft: ModelDraft, robot: Robot, plugin: Element, body: Callable[[RigidPose], RigidPose], density: float
) -> set[str]:
    use, where = robot.use, describe(plugin)
    use.mark(plugin)
    link = robot.find_link(name := use.text(plugin, "link_name"))
    if link is None:
        raise use.fail(plugin, f"there is no link '{name}'")
    n = {k: use.number(plugin, k, d) for k, d in _LIFT_DRAG.items()}
    control = use.text(plugin, "control_joint_name")
    if control and n["control_joint_rad_to_cl"]:
        return _control(draft, robot, plugin, body, density, n)
    if use.flag(plugin, "radial_symmetry", False):
        draft.unused.append(f"{where} / radial_symmetry: a fin has one normal")
    if n["cma"] or n["cma_stall"] or n["cm_delta"]:
        draft.unused.append(f"{where} / cma, cma_stall, cm_delta: a fin causes no moment about its own centre")
    reversible = use.flag(plugin, "reversible", False)
    forward, upward, cp = (
        use.vector(plugin, t, d) for t, d in (("forward", (1.0, 0, 0)), ("upward", (0, 0, 1.0)), ("cp", (0, 0, 0.0)))
    )
    forward, upward = forward / np.linalg.norm(forward), upward / np.linalg.norm(upward)
    if abs(forward @ upward) > 1e-6:
        draft.unused.append(f"{where} / upward: it is not perpendicular to `forward`")
    joint = _moving_joint(robot, link.name)
    turn = body(link.pose)
    chord, up = turn.rotation @ forward, turn.rotation @ upward
    side, limit = 1.0, 0.0
    if joint is not None:
        axis = turn.rotation @ link.pose.rotation.T @ joint.axis
        moves = np.cross(axis, chord)
        side = math.copysign(1.0, float(moves @ up)) if abs(moves @ up) > 1e-9 else 0.0
        if abs(abs(moves @ up) - 1.0) > 1e-6:
            draft.unused.append(f"{where}: the joint {joint.name} does not turn the fin about its span")
        limit = _limit(draft, joint)

    def law(alpha: float) -> tuple[float, float]:
        return _gz_coefficients(n, alpha, reversible)

    fin = _Fin(joint.name if joint else link.name, turn.rotation @ cp + turn.position, chord, side or 1.0, up, limit)
    bends = n["alpha_stall"] - n["a0"], n["alpha_stall"] + n["a0"]
    fin.add(draft, robot, law, n["area"] * n["air_density"] / density, bends=bends)
    draft.notes.append(
        f"{where}: gz-sim multiplies lift and drag by the squared cosine of the sweep angle a second time; the model does not"
    )
    return {joint.name} if joint else set()


_LIFT_DRAG = {
    "cla": 1.0,
    "cda": 0.01,
    "cma": 0.0,
    "alpha_stall": math.pi / 2,
    "cla_stall": 0.0,
    "cda_stall": 1.0,
    "cma_stall": 0.0,
    "cm_delta": 0.0,
    "air_density": 1.2041,
    "area": 1.0,
    "a0": 0.0,
    "control_joint_rad_to_cl": 4.0,
}


def _gz_coefficients(n: dict[str, float], alpha: float, reversible: bool) -> tuple[float, float]:
    """Return the lift and drag coefficients at an angle of attack relative to `forward`, in rad."""
    if abs(alpha) >= math.pi / 2 and not reversible:
        return 0.0, 0.0
    a = _wrap(alpha + n["a0"])
    stall = n["alpha_stall"]
    beyond = a - math.copysign(stall, a)
    if abs(a) <= stall:
        return n["cla"] * a, abs(n["cda"] * a)
    cl = n["cla"] * math.copysign(stall, a) + n["cla_stall"] * beyond
    cd = n["cda"] * math.copysign(stall, a) + n["cda_stall"] * beyond
    return (max(0.0, cl) if a > 0 else min(0.0, cl)), abs(cd)


def _wrap(a: float) -> float:
    while abs(a) > math.pi / 2:
        a -= math.copysign(math.pi, a)
    return a


def _control(
    draft: ModelDraft,
    robot: Robot,
    plugin: Element,
    body: Callable[[RigidPose], RigidPose],
    density: float,
    n: dict[str, float],
) -> set[str]:
    """Report a wing whose lift depends on the angle of a flap."""
    robot.use.mark_all(plugin)
    draft.unused.append(
        f"{describe(plugin)} / control_joint_name: a wing with a flap, whose angle adds {n['control_joint_rad_to_cl']:g} "
        "to CL per rad"
    )
    return set()


def _limit(draft: ModelDraft, joint: RobotJoint) -> float:
    """Return the limit to either side, in rad. A model has one limit for both sides."""
    low, high = joint.lower, joint.upper
    if low < -math.pi or high > math.pi:
        low, high = max(low, -math.pi), min(high, math.pi)
    if abs(low + high) > 1e-9:
        draft.unused.append(f"joint {joint.name} / limit: {low:g} and {high:g} rad; a fin has one limit for both sides")
    return max(abs(low), abs(high))


class _Fin:
    """Fin in body axes. ``side`` is 1 if a positive angle of the joint makes a force along ``up``, otherwise -1."""

    def __init__(self, name: str, place: Floats, chord: Floats, side: float, up: Floats, limit: float) -> None:
        self.name, self.place, self.chord, self.side, self.up, self.limit = name, place, chord, side, up, limit

    def add(
        self, draft: ModelDraft, robot: Robot, law: Law, area: float, lag: float = 0.0, bends: Sequence[float] = ()
    ) -> None:
        """Add the <fin> with the table of a law for the force along `up`. ``bends`` are angles in rad at which the law
        bends.
        """
        if sum(e.tag == "fin" for e in draft.elements) >= MOST_FINS:
            draft.unused.append(f"fin {self.name}: a model may have up to {MOST_FINS} fins")
            return
        names = {e.get("name") for e in draft.elements}
        name = short = _short(robot, self.name)
        while name in names:
            name += "-fin" if name == short else "x"
        fin = draft.add(
            "fin",
            name=name,
            position=format_numbers(*np.round(self.place, 9)) + " m",
            normal=format_numbers(*np.round(self.side * self.up, 9)),
            chord=format_numbers(*np.round(self.chord, 9)),
            law="aerofoil",
            area=f"{area:.9g} m2",
            limit=f"{math.degrees(self.limit):.9g} deg",
            **({"lag": f"{lag:g} s"} if lag else {}),
        )
        rows = []
        # at 90 deg, the laws jump
        bent = {sign * (90.0 + small) for sign in (-1, 1) for small in (-0.001, 0.001)}
        bent |= {round(math.degrees(a), 6) for b in bends for a in (b, -b) if abs(a) < math.pi}
        for degrees in sorted({*map(float, range(-180, 181, STEP_DEG)), *bent}):
            cl, cd = law(self.side * math.radians(degrees))
            rows.append(f"{degrees:.9g} {self.side * cl + 0.0:.6g} {cd + 0.0:.6g}")
        table = etree.SubElement(fin, "aerofoil")
        table.text = "\n" + "\n".join(f"        {row}" for row in rows) + "\n      "


def _uuv(
    draft: ModelDraft, robot: Robot, plugin: Element, body: Callable[[RigidPose], RigidPose], density: float
) -> set[str]:
    """Add a fin of UUV Simulator, whose joint turns about the z axis of its link and whose chord is the x axis."""
    use, joint = robot.use, _joint(robot, plugin, "joint_name")
    for tag in ("fin_id", "link_name", "current_velocity_topic", "input_topic", "output_topic"):
        use.text(plugin, tag)
    link = robot.find_link(joint.child)
    assert link is not None
    lag = _lag(draft, robot, plugin)
    model = use.child(plugin, "liftdrag")
    kind = use.text(model, "type")
    if kind == "Quadratic":
        lift, drag = (use.number(model, t, 0.0) for t in ("lift_constant", "drag_constant"))
        area = 2.0 / density

        def law(alpha: float) -> tuple[float, float]:
            a = _wrap(alpha)
            return lift * a, drag * a * a

    elif kind == "TwoLines":
        n = {k: use.number(model, k, 0.0) for k in ("a0", "alpha_stall", "cla", "cla_stall", "cda", "cda_stall")}
        area = use.number(model, "area", 0.0) * use.number(model, "fluid_density", 1028.0) / density

        def law(alpha: float) -> tuple[float, float]:
            return _two_lines(n, alpha)

    else:
        draft.unused.append(f"{describe(plugin)} / liftdrag: type {kind}")
        use.mark_all(model)
        return {joint.name}
    pose = body(link.pose)
    axis = pose.rotation @ link.pose.rotation.T @ joint.axis
    chord, up = pose.rotation[:, 0], pose.rotation[:, 1]
    side = math.copysign(1.0, float(np.cross(axis, chord) @ up))
    _Fin(joint.name, pose.position, chord, side, up, _limit(draft, joint)).add(draft, robot, law, area, lag)
    return {joint.name}


def _two_lines(n: dict[str, float], alpha: float) -> tuple[float, float]:
    """Return the coefficients of UUV Simulator's two lines. Its drag has the sign of the angle of attack, so that it
    pushes at negative angles; the model has its magnitude.
    """
    a, stall = _wrap(_wrap(alpha) + n["a0"]), n["alpha_stall"]
    if abs(a) <= stall:
        return n["cla"] * a, abs(n["cda"] * a)
    beyond = a - math.copysign(stall, a)
    slope = n["cla_stall"] if a > 0 else n["cda_stall"]  # as in its source
    return n["cla"] * math.copysign(stall, a) + slope * beyond, abs(
        n["cda"] * math.copysign(stall, a) + n["cda_stall"] * beyond
    )
