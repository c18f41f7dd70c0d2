"""Gazebo's equations for one model file, written from the sources of gz-sim (Hydrodynamics, HydrodynamicsUtils, Thruster,
LiftDrag, Buoyancy) and the specification of SDF. Frames: x forward, y to port, z up; the world's z axis points up.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from tests.server.gazebo_twin import hydrodynamics, rigid, rigid_coriolis
from tests.server.gazebo_twin import turn as turn_of
from wavesim_sdk.arrays import Floats

#: coefficients of drag
TERMS = {f + a + b for f in "xyzkmn" for a in "UVWPQR" for b in ("", *"UVWPQR", *(f"abs{v}" for v in "UVWPQR"))}


def vector(element: ET.Element | None, size: int) -> Floats:
    return np.zeros(size) if element is None else np.array([float(x) for x in (element.text or "").split()])


def number(element: ET.Element, tag: str, otherwise: float = 0.0) -> float:
    found = element.find(tag)
    return otherwise if found is None else float(found.text or "nan")


class GazeboTwin:
    """The model of a world file, with its physics."""

    def __init__(self, path: Path) -> None:
        world = ET.parse(path).getroot().find("world")
        assert world is not None
        model = world.find("model")
        assert model is not None
        self.gravity = -vector(world.find("gravity"), 3)[2]
        self.plugins = {p.get("name", "").split("::")[-1]: p for p in world.iter("plugin")}
        self.all = list(model.findall("plugin"))
        self.links = {link.get("name", ""): link for link in model.findall("link")}
        self.joints = {joint.get("name", ""): joint for joint in model.findall("joint")}
        parts = [self._mass(link) for link in self.links.values()]
        self.weights = [(mass, centre) for mass, centre, _ in parts]
        self.mass_matrix = rigid(parts)
        base = self.links["base_link"]
        self.shapes = [(c, vector(c.find("pose"), 6)) for c in base.findall("collision")]
        added = base.find("inertial/fluid_added_mass")
        if added is not None:
            for i, a in enumerate("xyzpqr"):
                for k, b in enumerate("xyzpqr"):
                    if k >= i:
                        self.mass_matrix[i, k] += number(added, a + b)
                        self.mass_matrix[k, i] += number(added, a + b) * (k > i)

    @staticmethod
    def _mass(link: ET.Element) -> tuple[float, Floats, Floats]:
        """Return the mass, its centre, and the inertia about this centre."""
        pose, inertial = vector(link.find("pose"), 6), link.find("inertial")
        assert inertial is not None
        turn, inner = turn_of(*pose[3:]), vector(inertial.find("pose"), 6)
        mass, centre = number(inertial, "mass"), pose[:3] + turn @ inner[:3]
        i = {t: number(inertial, f"inertia/{t}") for t in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
        about = np.array(
            [[i["ixx"], i["ixy"], i["ixz"]], [i["ixy"], i["iyy"], i["iyz"]], [i["ixz"], i["iyz"], i["izz"]]]
        )
        sizes = np.linalg.eigvalsh(about)
        assert sizes[0] > 0.0 and sizes[2] <= (sizes[0] + sizes[1]) * (1.0 + 1e-9)  # SDF rejects other bodies
        turn = turn @ turn_of(*inner[3:])
        return mass, centre, turn @ about @ turn.T

    def acceleration(self, height: float, attitude: Floats, nu: Floats, commands: dict[str, float]) -> Floats:
        """Return the acceleration (6,) in the body frame. ``commands`` has a force, a shaft speed or an angle per joint."""
        turn = turn_of(*attitude)
        up = turn.T @ np.array([0.0, 0.0, 1.0])
        load = np.zeros(6)

        def push(force: Floats, place: Floats) -> None:
            load[:3] += force
            load[3:] += np.cross(place, force)

        for mass, centre in self.weights:
            push(-mass * self.gravity * up, centre)
        for volume, centre in self._volumes(height, turn):
            push(volume * self.gravity * up, centre)
        for plugin in self.all:
            name = plugin.get("name", "").split("::")[-1]
            if name == "Hydrodynamics":
                load += hydrodynamics({e.tag: float(e.text or "nan") for e in plugin if e.tag in TERMS}, nu)[1]
            elif name == "Thruster":
                push(*self._thruster(plugin, nu, commands))
            elif name == "LiftDrag":
                push(*self._lift_drag(plugin, nu, commands))
        load += rigid_coriolis(self.mass_matrix, nu)
        return np.linalg.solve(self.mass_matrix, load)

    def _volumes(self, height: float, turn: Floats) -> list[tuple[float, Floats]]:
        """Return the displaced mass of water and its centre for each collision shape."""
        plugin, found = self.plugins["Buoyancy"], []
        uniform = plugin.find("uniform_fluid_density")
        for shape, pose in self.shapes:
            geometry = shape.find("geometry")
            assert geometry is not None
            kind = geometry[0]
            if kind.tag == "box":
                size = vector(kind.find("size"), 3)
                volume = float(np.prod(size))
            else:
                radius = number(kind, "radius")
                volume = math.pi * radius**2 * number(kind, "length")
                volume = volume if kind.tag == "cylinder" else 4.0 / 3.0 * math.pi * radius**3
            if uniform is not None:
                found.append((float(uniform.text or "nan") * volume, pose[:3]))
                continue
            assert kind.tag == "box" and number(plugin, "graded_buoyancy/density_change/density") == 0.0
            surface = -(height + (turn @ pose[:3])[2])  # the plugin does not turn the plane
            below = min(max(surface + 0.5 * size[2], 0.0), size[2])
            centre = pose[:3] + np.array([0.0, 0.0, 0.5 * below - 0.5 * size[2]])
            found.append((number(plugin, "graded_buoyancy/default_density") * size[0] * size[1] * below, centre))
        return found

    def _thruster(self, plugin: ET.Element, nu: Floats, commands: dict[str, float]) -> tuple[Floats, Floats]:
        joint = self.joints[plugin.findtext("joint_name", "")]
        pose = vector(self.links[joint.findtext("child", "")].find("pose"), 6)
        axis, command = turn_of(*pose[3:]) @ vector(joint.find("axis/xyz"), 3), commands[joint.get("name", "")]
        thrust = command
        if plugin.findtext("use_angvel_cmd") == "true":
            density, d = number(plugin, "fluid_density"), number(plugin, "propeller_diameter")
            coefficient = number(plugin, "thrust_coefficient")
            if plugin.find("thrust_coefficient") is None:
                speed = float(np.linalg.norm(nu[:3] + np.cross(nu[3:], pose[:3])))
                advance = (1.0 - number(plugin, "wake_fraction", 0.2)) * speed / (command * d)
                coefficient = number(plugin, "alpha_1") + number(plugin, "alpha_2") * advance
            thrust = density * d**4 * coefficient * command * abs(command)
        assert number(plugin, "min_thrust_cmd") <= command <= number(plugin, "max_thrust_cmd")
        return thrust * axis, pose[:3]

    def _lift_drag(self, plugin: ET.Element, nu: Floats, commands: dict[str, float]) -> tuple[Floats, Floats]:
        assert plugin.findtext("link_name") == "base_link" and plugin.findtext("reversible") == "true"
        place, forward, upward = (vector(plugin.find(t), 3) for t in ("cp", "forward", "upward"))
        velocity = nu[:3] + np.cross(nu[3:], place)
        span = np.cross(forward, upward) / np.linalg.norm(np.cross(forward, upward))
        if np.linalg.norm(velocity) <= 0.01:
            return np.zeros(3), place
        sweep = float(span @ velocity) / float(np.linalg.norm(velocity))
        plane = velocity - (velocity @ span) * span
        lift = np.cross(span, plane) / np.linalg.norm(np.cross(span, plane))
        alpha = math.acos(max(-1.0, min(1.0, float(lift @ upward)))) * (1.0 if lift @ forward >= 0.0 else -1.0)
        while abs(alpha) > 0.5 * math.pi:
            alpha += math.pi if alpha < 0.0 else -math.pi
        assert abs(alpha) < number(plugin, "alpha_stall") + 1e-9 and number(plugin, "cda") == 0.0
        angle = commands[plugin.findtext("control_joint_name", "")]
        cl = number(plugin, "cla") * alpha * (1.0 - sweep**2) + number(plugin, "control_joint_rad_to_cl") * angle
        pressure = 0.5 * number(plugin, "air_density") * float(plane @ plane)
        return cl * pressure * number(plugin, "area") * lift, place
