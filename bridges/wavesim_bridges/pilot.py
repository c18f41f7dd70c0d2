"""Simple pilot for vehicles without an autopilot. It moves the vehicle to a position or at a velocity, and keeps it
upright.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import atan2, cos, hypot, isfinite, nan, pi, sqrt

import numpy as np

from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import euler, quaternion, rotation, wrap
from wavesim_sdk.wire.items import ActuatorDescription

Place = tuple[float, float, float]
_A = sqrt(0.5)


def _vectored_thrusters(x: float, y: float, z: float) -> dict[str, tuple[Place, Place]]:
    """Return the positions and directions (FRD) of four horizontal thrusters, each at 45 degrees to the forward axis."""
    return {
        "front-starboard": ((x, y, z), (_A, -_A, 0.0)),
        "front-port": ((x, -y, z), (_A, _A, 0.0)),
        "rear-starboard": ((-x, y, z), (_A, _A, 0.0)),
        "rear-port": ((-x, -y, z), (_A, -_A, 0.0)),
    }


_DOWN = (0.0, 0.0, 1.0)
#: thrusters of a BlueROV2 and of a BlueROV2 Heavy, as in the `bluerov2` and `vita1` models
ROV_THRUSTERS = (
    {
        **_vectored_thrusters(0.156, 0.111, 0.0),
        "vertical-starboard": ((0.0, 0.111, -0.07), _DOWN),
        "vertical-port": ((0.0, -0.111, -0.07), _DOWN),
    },
    {
        **_vectored_thrusters(0.156, 0.111, 0.085),
        "vertical-front-starboard": ((0.12, 0.218, 0.0), _DOWN),
        "vertical-front-port": ((0.12, -0.218, 0.0), _DOWN),
        "vertical-rear-starboard": ((-0.12, 0.218, 0.0), _DOWN),
        "vertical-rear-port": ((-0.12, -0.218, 0.0), _DOWN),
    },
)
BOAT = {"port", "starboard"}


def allocation(places: Floats, directions: Floats) -> Floats:
    """Return the 6 x n matrix of the forces and torques that n thrusters produce at unit thrust, given their positions
    and directions (both n x 3, FRD). A row without any element above 0.1 (for a torque, a lever arm of 0.1 m) is set to
    zero, because the hull's stability keeps the vehicle level.
    """
    matrix = np.vstack([directions.T, np.cross(places, directions).T])
    matrix[np.abs(matrix).max(axis=1) < 0.1] = 0.0
    return matrix


def _unset() -> Floats:
    return np.full(3, nan)


@dataclass(frozen=True)
class Setpoint:
    """Setpoint of the pilot. The pilot does not control quantities that are NaN. ``position`` (m) and ``velocity``
    (m/s) are in NED. With ``body_velocity``, the components of ``velocity`` are ahead, to starboard and down; these
    directions depend on the heading, but not on roll and pitch.
    """

    position: Floats = field(default_factory=_unset)
    velocity: Floats = field(default_factory=_unset)
    body_velocity: bool = False
    heading: float = nan  #: desired heading in rad
    rate: float = nan  #: desired heading rate in rad/s
    speed: float = nan  #: maximum speed towards the position in m/s

    def velocity_ned(self, motion: VehicleMotion, gain: float, level: float, vertical: float) -> Floats:
        """Return the velocity in NED in m/s, which is the sum of the commanded velocity and a velocity towards the
        target position.
        """
        given = np.where(np.isfinite(self.velocity), self.velocity, 0.0)
        if self.body_velocity:
            heading = float(euler(motion.attitude)[2])
            given = rotation(quaternion(0.0, 0.0, heading)) @ given
        way = self.position - motion.position
        towards = gain * np.where(np.isfinite(way), way, 0.0)
        level = min(level, self.speed) if isfinite(self.speed) else level
        towards[:2] *= min(1.0, level / max(hypot(*towards[:2]), 1e-9))
        towards[2] = min(max(towards[2], -vertical), vertical)
        return np.asarray(given + towards)


class RovPilot:
    """Pilot for an ROV. Control loops for velocity and attitude compute a force and a torque, and the pseudo-inverse of
    the thruster matrix allocates these to the thrusters.

    The velocity loop has an integral term, which compensates buoyancy and current. The gains suit vehicles of about 10
    to 30 kg.
    """

    CRUISE, VERTICAL, GAIN = 0.8, 0.5, 0.6
    #: velocity loop: proportional gain (N per m/s), integral gain (N per m), and limit of the integral term (N)
    FORCE, INTEGRAL, MOST = 60.0, 15.0, 60.0
    #: attitude loop: gains (Nm per rad, Nm per rad/s), and maximum lead of the heading reference over the heading (rad)
    TORQUE, DAMPING, LEAD = 1.5, 0.9, 1.0

    def __init__(self, thrusters: dict[str, tuple[Place, Place]], actuators: Sequence[ActuatorDescription]) -> None:
        own = {a.name: (k, a) for k, a in enumerate(actuators)}
        self._count, self._places = len(actuators), [own[name][0] for name in thrusters]
        self._limits = np.array([min(abs(a.minimum), abs(a.maximum)) for _, a in (own[n] for n in thrusters)])
        matrix = allocation(*(np.array([t[k] for t in thrusters.values()]) for k in (0, 1)))
        if len(thrusters) == 6:
            matrix[4] = 0.0
        self._inverse = np.linalg.pinv(matrix)
        self.rest()

    def rest(self) -> None:
        """Reset the control loops. The bridge calls this method in every step without an active setpoint."""
        self._sum = np.zeros(3)
        self._heading = self._turning = nan

    def commands(self, setpoint: Setpoint, motion: VehicleMotion, seconds: float) -> list[float | None]:
        """Return the commands in the order of the actuators."""
        missing = setpoint.velocity_ned(motion, self.GAIN, self.CRUISE, self.VERTICAL) - motion.velocity
        self._sum = np.clip(self._sum + seconds * self.INTEGRAL * missing, -self.MOST, self.MOST)
        R = rotation(motion.attitude)
        force = R.T @ (self.FORCE * missing + self._sum)
        roll, pitch, heading = euler(motion.attitude)
        if isfinite(setpoint.rate):  # follow a heading reference that turns and never leads by much
            lead = wrap(self._turning - heading) if isfinite(self._turning) else 0.0
            off = min(max(lead + setpoint.rate * seconds, -self.LEAD), self.LEAD)
            turn, self._turning, self._heading = setpoint.rate, wrap(heading + off), nan
        else:
            if isfinite(setpoint.heading) or not isfinite(self._heading):
                self._heading = setpoint.heading if isfinite(setpoint.heading) else float(heading)
            turn, self._turning = 0.0, nan
            off = min(max(wrap(self._heading - heading), -1.0), 1.0)
        torque = self.TORQUE * np.array([-roll, -pitch, off]) + self.DAMPING * (
            np.array([0.0, 0.0, turn]) - motion.rates
        )
        thrust = self._inverse @ np.concatenate([force, torque])
        thrust /= max(1.0, float(np.max(np.abs(thrust) / self._limits)))
        found: list[float | None] = [None] * self._count
        for place, value in zip(self._places, thrust, strict=True):
            found[place] = float(value)
        return found


class BoatPilot:
    """Pilot for a boat with two stern thrusters. The boat turns towards its target and stops within the distance
    ``NEAR`` of the target. If the target is behind the boat at a distance of at most ``BACK``, the boat moves astern
    towards it.
    """

    #: maximum speed (m/s), ratio of speed to distance from the target (1/s), and distances for stopping and moving
    #: astern (m)
    CRUISE, GAIN, NEAR, BACK = 1.2, 0.3, 0.25, 4.0
    THRUST, DRAG = 0.4, 0.12  #: fraction of full thrust per m/s of speed error, and per m/s of speed
    #: turning thrust as a fraction of full thrust: per rad of heading error, per rad/s of turn rate, and its maximum
    STEER, DAMPING, MOST_TURN = 0.5, 0.6, 0.35

    def __init__(self, actuators: Sequence[ActuatorDescription]) -> None:
        own = {a.name: (k, a) for k, a in enumerate(actuators)}
        self._count, self._own = len(actuators), [own[name] for name in ("port", "starboard")]

    def rest(self) -> None:
        """Do nothing, because this pilot has no state."""

    def commands(self, setpoint: Setpoint, motion: VehicleMotion, seconds: float) -> list[float | None]:
        """Return the commands in the order of the actuators."""
        heading = float(euler(motion.attitude)[2])
        goal, rate = heading, 0.0
        if setpoint.body_velocity:
            ahead, rate = (v if isfinite(v) else 0.0 for v in (float(setpoint.velocity[0]), setpoint.rate))
        else:
            way = setpoint.position[:2] - motion.position[:2]
            near = not np.isfinite(way).all() or hypot(*way) < self.NEAR
            v = (
                setpoint.velocity_ned(motion, self.GAIN, self.CRUISE, 0.0)
                if not near or np.isfinite(setpoint.velocity[:2]).any()
                else np.zeros(3)
            )
            speed = hypot(v[0], v[1])
            goal = atan2(v[1], v[0]) if speed > 0.01 else setpoint.heading if isfinite(setpoint.heading) else heading
            behind = speed > 0.01 and hypot(*way) < self.BACK and cos(goal - heading) < 0.0
            goal = goal + pi if behind else goal
            ahead = (-speed if behind else speed) * max(cos(goal - heading), 0.0) ** 2
            if speed <= 0.01 and isfinite(setpoint.rate):
                rate = setpoint.rate
        surge = float(rotation(motion.attitude)[:, 0] @ motion.velocity)
        push = self.THRUST * (ahead - surge) + self.DRAG * ahead
        turn = self.STEER * wrap(goal - heading) + self.DAMPING * (rate - float(motion.rates[2]))
        turn = min(max(turn, -self.MOST_TURN), self.MOST_TURN)
        push = min(max(push, abs(turn) - 1.0), 1.0 - abs(turn))
        found: list[float | None] = [None] * self._count
        for (place, a), share in zip(self._own, (push + turn, push - turn), strict=True):
            full = a.maximum if share > 0 else -a.minimum
            found[place] = full * share if a.unit == "N" else full * sqrt(abs(share)) * (1 if share > 0 else -1)
        return found


def pilot_for(actuators: Sequence[ActuatorDescription]) -> RovPilot | BoatPilot:
    """Return a pilot that supports the given actuators."""
    names = {a.name for a in actuators}
    for thrusters in ROV_THRUSTERS:
        if set(thrusters) == names:
            return RovPilot(thrusters, actuators)
    if names == BOAT:
        return BoatPilot(actuators)
    raise BrokerError(
        f"the built-in pilot cannot steer with {', '.join(sorted(names)) or 'nothing'}; it supports the thrusters of the models bluerov2, vita1, jolner, otter"
    )
