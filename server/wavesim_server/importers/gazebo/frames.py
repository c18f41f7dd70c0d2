"""Poses, rotations and rigid-body masses in the forward-left-up axes of Gazebo."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats

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


def rotation(roll: float, pitch: float, yaw: float) -> Floats:
    """Return the rotation for fixed-axis roll, pitch and yaw in rad (URDF and SDF)."""
    cr, sr, cp, sp, cy, sy = (f(a) for a in (roll, pitch, yaw) for f in (math.cos, math.sin))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def from_quaternion(x: float, y: float, z: float, w: float) -> Floats:
    """Return the rotation of a quaternion, which need not be normalised."""
    x, y, z, w = np.array([x, y, z, w]) / math.sqrt(x * x + y * y + z * z + w * w)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def angles(r: Floats) -> tuple[float, float, float]:
    """Return roll, pitch and yaw in rad of a rotation."""
    pitch = math.asin(min(1.0, max(-1.0, -r[2, 0])))
    if abs(r[2, 0]) > 1.0 - 1e-9:
        return 0.0, pitch, math.atan2(-r[0, 1], r[1, 1])
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])


def block(r: Floats) -> Floats:
    """Return the 6x6 matrix that rotates velocities and wrenches."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = r
    return out


def skew(v: Floats) -> Floats:
    """Return the matrix of the cross product with v."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


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
