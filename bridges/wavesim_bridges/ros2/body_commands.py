"""Commands for a whole body: a wrench, which is allocated to the thrusters, and a velocity, which the built-in pilot
maintains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.pilot import BoatPilot, RovPilot, Setpoint, allocation, pilot_for
from wavesim_bridges.ros2.message_types import Message
from wavesim_sdk.axes import frd_to_flu
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_world.config.actuators import Thruster

WRENCH, TWIST = "geometry_msgs/msg/Wrench", "geometry_msgs/msg/Twist"


def _vector(v: Message) -> tuple[float, float, float]:
    if not all(map(math.isfinite, (v.x, v.y, v.z))):
        raise MalformedMessage("no number")
    return v.x, v.y, v.z


class WrenchAllocator:
    """Allocation of a wrench at the body's origin to thrusts (N). If one thrust would exceed its limit, all thrusts are
    scaled by one factor.
    """

    def __init__(self, thrusters: Sequence[Thruster], actuators: Sequence[ActuatorDescription]) -> None:
        self._own = [next(a for a in actuators if a.name == t.name) for t in thrusters]
        directions = np.array([t.direction for t in thrusters], float)
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        self._inverse = np.linalg.pinv(allocation(np.array([t.position for t in thrusters], float), directions))

    @classmethod
    def for_thrusters(
        cls, thrusters: Sequence[Thruster], actuators: Sequence[ActuatorDescription]
    ) -> WrenchAllocator | None:
        """Return the allocation for the given thrusters. Return None if they cannot produce a wrench on demand: a
        single thruster, swivelling thrusters, or thrusters commanded by shaft speed.
        """
        newtons = {a.name for a in actuators if a.unit == "N"}
        fixed = [t for t in thrusters if t.swivel is None and t.deflector is None and t.name in newtons]
        return cls(thrusters, actuators) if len(fixed) == len(thrusters) > 1 else None

    def thrusts(self, message: Message) -> dict[int, float]:
        """Return the commands by actuator for a Wrench in the body frame (forward, left, up)."""
        wrench = np.concatenate([frd_to_flu(np.array(_vector(v))) for v in (message.force, message.torque)])
        thrusts = self._inverse @ wrench
        limits = [a.maximum if u > 0.0 else -a.minimum for u, a in zip(thrusts, self._own, strict=True)]
        most = max((abs(u) / limit for u, limit in zip(thrusts, limits, strict=True) if limit > 0.0), default=0.0)
        less = thrusts / max(most, 1.0)
        return {a.number: min(max(float(u), a.minimum), a.maximum) for u, a in zip(less, self._own, strict=True)}


def built_in_pilot(actuators: Sequence[ActuatorDescription]) -> RovPilot | BoatPilot | None:
    """Return the built-in pilot, or None if it does not support the vehicle."""
    try:
        return pilot_for(actuators)
    except BrokerError:
        return None


def twist_setpoint(message: Message) -> Setpoint:
    """Return the setpoint for a Twist in the body frame: ahead, to port, up (m/s), and yaw rate (rad/s, to port)."""
    ahead, left, up = _vector(message.linear)
    return Setpoint(velocity=np.array([ahead, -left, -up]), body_velocity=True, rate=-_vector(message.angular)[2])
