"""True motion of a vehicle in the conventions of autopilots: a NED world frame and a forward-starboard-down body frame,
or ENU and FLU.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.frames import rotation, rotation_elements
from wavesim_sdk.wire.state import State

GRAVITY = 9.80665


@dataclass
class VehicleMotion:
    """Motion at a given time. ``position`` (m) and ``velocity`` (m/s, over ground) are in NED; ``attitude`` is the
    quaternion from body to NED (w, x, y, z). ``rates`` (rad/s) and ``force`` are in FRD; ``force`` is the specific
    force at the origin as an accelerometer measures it in m/s2 (0, 0, -9.81 for a vehicle that is level and at rest).
    """

    time: float
    position: Floats
    velocity: Floats
    attitude: Floats
    rates: Floats
    force: Floats

    def after(self, seconds: float) -> VehicleMotion:
        """Extrapolate the motion, for times between two steps of the simulation."""
        acceleration = rotation(self.attitude) @ self.force + (0.0, 0.0, GRAVITY)
        return VehicleMotion(
            self.time + seconds,
            self.position + seconds * (self.velocity + 0.5 * seconds * acceleration),
            self.velocity + seconds * acceleration,
            turned(self.attitude, self.rates, seconds),
            self.rates,
            self.force,
        )


def motion_of(state: State) -> VehicleMotion | None:
    """Return the motion that a state contains, or None if the server is not sending the motion. If the forces are
    missing (not requested, or not received yet), assume a constant velocity.
    """
    if state.motion is None:
        return None
    # Written out: this runs four hundred times per second and vehicle, and calls on arrays of three would cost more
    # than all else.
    u, v, ww, p, q, r = state.motion[7:13]
    r11, r12, r13, r21, r22, r23, *down = rotation_elements(*state.motion[3:7])
    du, dv, dw = state.effort.acceleration[:3] if state.effort is not None else (0.0, 0.0, 0.0)
    velocity = np.array(
        [
            r11 * u + r12 * v + r13 * ww,
            r21 * u + r22 * v + r23 * ww,
            down[0] * u + down[1] * v + down[2] * ww,
        ]
    )
    force = np.array(
        [
            du + q * ww - r * v - GRAVITY * down[0],
            dv + r * u - p * ww - GRAVITY * down[1],
            dw + p * v - q * u - GRAVITY * down[2],
        ]
    )
    m = np.array(state.motion, float)
    return VehicleMotion(state.time_ns * 1e-9, m[:3], velocity, m[3:7], m[10:13], force)


def turned(attitude: Floats, rates: Floats, seconds: float) -> Floats:
    """Extrapolate a body's attitude by its angular rates (rad/s, body frame)."""
    x, y, z = 0.5 * seconds * rates
    return product(attitude, np.array([1.0, x, y, z]) / sqrt(1.0 + x * x + y * y + z * z))


def product(a: Floats, b: Floats) -> Floats:
    """Return the product a b of two quaternions, which rotates first by b, then by a."""
    w, x, y, z = a
    return np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]]) @ b
