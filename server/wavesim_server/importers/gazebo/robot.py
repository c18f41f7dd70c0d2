"""Links, joints, shapes and sensors of a vehicle, as read from SDF or URDF."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.importers.gazebo.elements import Element, ElementUse
from wavesim_server.importers.gazebo.files import SearchPath
from wavesim_server.importers.gazebo.frames import IDENTITY, MassSum, RigidPose

V = TypeVar("V")


@dataclass
class LinkShape:
    """Collision or visual shape of a link. ``size`` has the dimensions in m: box x y z; cylinder, capsule and cone
    radius and length; sphere radius; ellipsoid three radii; mesh the scale.
    """

    name: str
    pose: RigidPose
    kind: str
    size: tuple[float, ...]
    element: Element
    uri: str = ""


@dataclass
class LinkSensor:
    """Sensor of a link, with its pose in the link."""

    name: str
    kind: str
    pose: RigidPose
    element: Element


@dataclass
class RobotLink:
    """Link with its pose in the model, its mass (kg), centre of mass and inertia (kg m2) in its own axes."""

    name: str
    pose: RigidPose = IDENTITY
    mass: float = 0.0
    centre: Floats = field(default_factory=lambda: np.zeros(3))
    inertia: Floats = field(default_factory=lambda: np.zeros((3, 3)))
    added_mass: Floats | None = None  #: <fluid_added_mass> about the origin of the link (6, 6)
    collisions: list[LinkShape] = field(default_factory=list)
    visuals: list[LinkShape] = field(default_factory=list)
    sensors: list[LinkSensor] = field(default_factory=list)


@dataclass
class RobotJoint:
    """Joint with its axis and its pose in the model; limits in rad or m, rate in rad/s or m/s."""

    name: str
    kind: str
    parent: str
    child: str
    axis: Floats
    pose: RigidPose
    lower: float
    upper: float
    rate: float
    element: Element


@dataclass
class Robot:
    """Vehicle as read from a file. ``folders`` are the places where its files are looked for."""

    name: str
    use: ElementUse
    root: Element
    folders: SearchPath
    links: dict[str, RobotLink] = field(default_factory=dict)
    joints: dict[str, RobotJoint] = field(default_factory=dict)
    plugins: list[Element] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def find_link(self, name: str) -> RobotLink | None:
        """Return a link by its name, with or without the names of the models around it."""
        return _find(self.links, name)

    def find_joint(self, name: str) -> RobotJoint | None:
        """Return a joint by its name, with or without the names of the models around it."""
        return _find(self.joints, name)

    def roots(self) -> list[RobotLink]:
        """Return the links that are not the child of a joint."""
        children = {j.child for j in self.joints.values()}
        return [link for name, link in self.links.items() if name not in children]

    def subtree(self, name: str) -> list[RobotLink]:
        """Return a link and all links that joints attach to it."""
        found, queue = [], [name]
        while queue:
            at = queue.pop()
            if at in self.links and self.links[at] not in found:
                found.append(self.links[at])
                queue += [j.child for j in self.joints.values() if j.parent == at]
        return found

    def masses(self, origin: RigidPose) -> MassSum:
        """Return the sum of the masses of all links, about and along a frame of the model."""
        total, back = MassSum(), origin.inverse()
        for link in self.links.values():
            if link.mass > 0.0:
                at = back.then(link.pose)
                centre = at.position + at.rotation @ link.centre
                total.add(link.mass, centre, at.rotation @ link.inertia @ at.rotation.T)
        return total


def _find(table: dict[str, V], name: str) -> V | None:
    name = name.strip()
    if name in table:
        return table[name]
    ends = [v for k, v in table.items() if k.rpartition("::")[2] == name.rpartition("::")[2]]
    return ends[0] if len(ends) == 1 else None
