"""Poses, rotations and rigid-body masses in the forward-left-up axes of Gazebo."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.kinematics import skew

#: factors of the six velocities when forward-left-up axes become forward-starboard-down axes
FLIP = np.diag([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])
#: rotations from the axes of a link to the body axes, by the axis of the link that points ahead
FORWARD = {
    "x": np.diag([1.0, -1.0, -1.0]),
    "-x": np.diag([-1.0, 1.0, -1.0]),
    "y": np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
    "-y": np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
}


class RigidPose(NamedTuple):
    """Pose of a frame in its parent: rotation (3, 3) from the frame to the parent, and position (3,) in m."""

    rotation: Floats
    position: Floats

    def then(self, inner: RigidPose) -> RigidPose:
        """Return the pose of an inner frame in the parent."""
        return RigidPose(self.rotation @ inner.rotation, self.position + self.rotation @ inner.position)

    def inverse(self) -> RigidPose:
        """Return the pose of the parent in this frame."""
        return RigidPose(self.rotation.T, -self.rotation.T @ self.position)


IDENTITY = RigidPose(np.eye(3), np.zeros(3))


def block(r: Floats) -> Floats:
    """Return the 6x6 matrix that rotates velocities and wrenches."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = r
    return out


class MassSum:
    """Sum of the masses of links about one point: mass in kg, first moment in kg m, inertia in kg m2."""

    def __init__(self) -> None:
        self.mass, self.moment, self.inertia = 0.0, np.zeros(3), np.zeros((3, 3))

    def add(self, mass: float, centre: Floats, inertia: Floats) -> None:
        """Add a body with this centre, and with this inertia about its own centre."""
        self.mass += mass
        self.moment += mass * centre
        s = skew(centre)
        self.inertia += inertia - mass * s @ s

    @property
    def centre(self) -> Floats:
        """Centre of mass, in m."""
        return self.moment / self.mass if self.mass else np.zeros(3)

    @property
    def central(self) -> Floats:
        """Inertia about the centre of mass, in kg m2."""
        s = skew(self.centre)
        return self.inertia + self.mass * s @ s
