"""Learning tasks of your own: depth and heading of an AUV, waypoints of an AUV, and a course line of a surface vessel.

The program runs a simple controller and random actions in each task, and prints their success rates.

    python examples/studies/own_tasks.py [--copies 200]
"""

from __future__ import annotations

import argparse
import math
from typing import Any, ClassVar

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.kinematics import smallest_signed_angle
from wavesim_studies import learning
from wavesim_studies.learning.baselines import RandomPolicy
from wavesim_studies.learning.custom_core import CustomCore
from wavesim_studies.learning.evaluation import evaluate_core


class DepthAndHeading(learning.Task):
    """A LAUV keeps a depth and a heading, at constant thrust. The actions are the angles of the rudders and planes."""

    model, dt, substeps, limit = "lauv", 0.1, 2, 30.0
    observations, actions, uniforms, normals = 13, 2, 9, 2
    variables: ClassVar = {"depth": 1, "heading": 1}
    units: ClassVar = {"distance": "m"}

    def start(self, s: Any) -> None:
        """Start with errors of up to 3 m and 60 deg, in a current, with a weaker propeller and a wrong trim."""
        u = s.uniform
        s.depth = 10.0 + 10.0 * u[:, 0]
        s.heading = math.pi * (2.0 * u[:, 1] - 1.0)
        s.position[:, 2] = s.depth + 6.0 * (u[:, 2] - 0.5)
        s.attitude[:, 2] = s.heading + 2.0 * (u[:, 3] - 0.5)
        s.velocity[:, 0] = 1.0 + 0.5 * u[:, 4]
        s.current[:, 0] = 0.4 * (u[:, 5] - 0.5)
        s.current[:, 1] = 0.4 * (u[:, 6] - 0.5)
        s.effect[:, 0] = 1.0 - 0.2 * u[:, 7]
        s.net_weight = 1.0 * (u[:, 8] - 0.5)

    def command(self, s: Any) -> Any:
        """Set 60 % of the maximum thrust, and the angles of both rudders and both planes."""
        rudder, plane = s.action.T
        return 0.6, rudder, rudder, plane, plane

    def observe(self, s: Any) -> Any:
        """Return the errors with noise of 5 cm and 0.5 deg, and the true attitude, velocity, rates and last action."""
        error = s.heading - s.attitude[:, 2] + 0.0087 * s.normal[:, 1]
        depth = s.depth - s.position[:, 2] + 0.05 * s.normal[:, 0]
        return depth, np.sin(error), np.cos(error), s.attitude[:, :2], s.velocity, s.rates, s.action

    def reward(self, s: Any) -> Any:
        """Reward small errors, and penalise changes of the angles."""
        depth = s.depth - s.position[:, 2]
        aim = 0.5 + 0.5 * np.cos(s.heading - s.attitude[:, 2])
        change = ((s.action - s.previous_action) ** 2).sum(axis=1)
        return aim / (1.0 + depth * depth) - 0.02 * change

    def terminated(self, s: Any) -> Any:
        """End an episode if the depth error exceeds 8 m."""
        return abs(s.depth - s.position[:, 2]) > 8.0

    def success(self, s: Any) -> Any:
        """Count an episode as successful if the errors at the time limit are below 0.3 m and 5 deg."""
        turned = abs(smallest_signed_angle(s.heading - s.attitude[:, 2]))
        return (s.time > 29.9) & (abs(s.depth - s.position[:, 2]) < 0.3) & (turned < 0.087)

    def info(self, s: Any) -> dict[str, Array]:
        """Report the depth error of each copy, for evaluations."""
        return {"distance": abs(s.depth - s.position[:, 2])}


class Waypoints(learning.Task):
    """A LAUV passes three waypoints within 3 m, one after the other, in a current. All actuators are actions."""

    model, dt, substeps, limit = "lauv", 0.1, 2, 120.0
    observations, uniforms = 16, 12
    variables: ClassVar = {"waypoints": (3, 3), "reached": 1, "before": 1}

    def start(self, s: Any) -> None:
        """Draw random waypoints about 25 m apart."""
        u = s.uniform
        s.position[:, 2] = 15.0
        s.velocity[:, 0] = 1.0
        s.attitude[:, 2] = 2.0 * math.pi * u[:, 0]
        course, at = s.attitude[:, 2], s.position
        for k in range(3):
            course = course + 2.0 * (u[:, 1 + k] - 0.5)
            at = at + np.stack([25.0 * np.cos(course), 25.0 * np.sin(course), 6.0 * (u[:, 4 + k] - 0.5)], axis=1)
            s.waypoints[:, k] = at
        s.current[:, :2] = 0.6 * (u[:, 7:9] - 0.5)
        s.before = np.linalg.norm(self.offset(s), axis=1)

    def offset(self, s: Any) -> Any:
        """Return the vector to the next waypoint, in W."""
        following = np.minimum(s.reached, 2.0).astype(int)
        return s.waypoints[np.arange(s.copies), following] - s.position

    def update(self, s: Any) -> None:
        """Count a waypoint when the vehicle is within 3 m of it."""
        s.reached += np.linalg.norm(self.offset(s), axis=1) < 3.0

    def observe(self, s: Any) -> Any:
        """Return the vector to the waypoint in B, the attitude, the velocity, the rates and the last action."""
        ahead = learning.to_body(s.quaternion, self.offset(s)) / 10.0
        return ahead, s.attitude[:, :2], s.velocity, s.rates, s.action

    def reward(self, s: Any) -> Any:
        """Reward progress towards the next waypoint, and each waypoint reached."""
        distance = np.linalg.norm(self.offset(s), axis=1)
        nearer = np.clip(s.before - distance, -1.0, 1.0)  # a new waypoint is not a step back
        s.before = distance
        return nearer + 10.0 * (s.reached >= 3.0)

    def terminated(self, s: Any) -> Any:
        """End an episode at the last waypoint, or if the vehicle is more than 60 m from the next waypoint."""
        return (s.reached >= 3.0) | (np.linalg.norm(self.offset(s), axis=1) > 60.0)

    def success(self, s: Any) -> Any:
        """Count an episode as successful if the vehicle has passed all three waypoints."""
        return s.reached >= 3.0


class CourseLine(learning.Task):
    """An otter follows a line through the origin at a given speed, in a current. The actions are its two thrusters."""

    model, dt, substeps, limit = "otter", 0.1, 2, 60.0
    observations, uniforms = 10, 6
    variables: ClassVar = {"course": 1, "speed": 1}

    def start(self, s: Any) -> None:
        """Start up to 10 m from the line, with a random heading."""
        u = s.uniform
        s.course = 2.0 * math.pi * u[:, 0]
        s.speed = 0.8 + 0.7 * u[:, 1]
        off = 20.0 * (u[:, 2] - 0.5)
        s.position[:, 0] = -off * np.sin(s.course)
        s.position[:, 1] = off * np.cos(s.course)
        s.attitude[:, 2] = 2.0 * math.pi * u[:, 3]
        s.current[:, :2] = 0.6 * (u[:, 4:6] - 0.5)

    def errors(self, s: Any) -> tuple[Array, Array, Array]:
        """Return the distance to starboard of the line, and the speeds along it and across it."""
        off = s.position[:, 1] * np.cos(s.course) - s.position[:, 0] * np.sin(s.course)
        turned = s.attitude[:, 2] - s.course
        sine, cosine = np.sin(turned), np.cos(turned)
        along = s.velocity[:, 0] * cosine - s.velocity[:, 1] * sine
        across = s.velocity[:, 0] * sine + s.velocity[:, 1] * cosine
        return off, along, across

    def observe(self, s: Any) -> Any:
        """Return the errors, the heading relative to the line, the velocity, the yaw rate and the desired speed."""
        off, along, across = self.errors(s)
        turned = s.attitude[:, 2] - s.course
        return (
            off / 5.0,
            along,
            across,
            np.sin(turned),
            np.cos(turned),
            s.velocity[:, :2],
            s.rates[:, 2],
            s.speed,
            s.time / 60.0,
        )

    def reward(self, s: Any) -> Any:
        """Reward a small distance from the line and the desired speed."""
        off, along, _ = self.errors(s)
        return 1.0 / (1.0 + off * off + 4.0 * (along - s.speed) ** 2)

    def terminated(self, s: Any) -> Any:
        """End an episode if the vessel is more than 20 m from the line."""
        return abs(self.errors(s)[0]) > 20.0

    def success(self, s: Any) -> Any:
        """Count an episode as successful if the vessel is less than 1 m from the line at the time limit."""
        return (s.time > 59.9) & (abs(self.errors(s)[0]) < 1.0)


class Autopilot:
    """Proportional-derivative controllers, one for each task, that use the observations of the task."""

    def __init__(self, core: CustomCore) -> None:
        self._control = {DepthAndHeading: steer, Waypoints: approach, CourseLine: follow}[type(core.task)]

    def act(self, observation: Array, ended: Array | None = None) -> Array:
        """Return the actions for the observations."""
        return np.clip(self._control(observation.astype(float)), -1.0, 1.0).astype(np.float32)


def planes(below: Array, pitch: Array, rate: Array) -> Array:
    """Return the angle of the planes in rad for a depth error in m."""
    wanted = np.clip(-0.15 * below, -0.5, 0.5)
    return 4.0 * (wanted - pitch) - 2.0 * rate


def steer(o: Array) -> Array:
    """Return rudder and planes for :class:`DepthAndHeading`."""
    rudder = o[:, 10] - 1.5 * np.arctan2(o[:, 1], o[:, 2])
    return np.stack([rudder, planes(o[:, 0], o[:, 4], o[:, 9])], axis=1)


def approach(o: Array) -> Array:
    """Return the actions for :class:`Waypoints`: turn towards the waypoint at constant thrust."""
    rudder = o[:, 10] - 1.5 * np.arctan2(o[:, 1], o[:, 0])
    plane = planes(10.0 * o[:, 2], o[:, 4], o[:, 9])
    return np.stack([np.full(len(o), 0.7), rudder, rudder, plane, plane], axis=1)


def follow(o: Array) -> Array:
    """Return the thrusts for :class:`CourseLine`: steer a line-of-sight course at the desired speed."""
    turned = np.arctan2(o[:, 3], o[:, 4]) + 1.5 * np.arctan(o[:, 0]) + 1.5 * o[:, 2]
    turn = -smallest_signed_angle(turned) - 0.8 * o[:, 7]
    ahead = 0.35 * o[:, 8] + 0.5 * (o[:, 8] - o[:, 1])
    return np.stack([ahead + turn, ahead - turn], axis=1)


def main() -> None:
    """Print the success rates of the controllers and of random actions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=200)
    copies = parser.parse_args().copies
    for task in (DepthAndHeading, Waypoints, CourseLine):
        core = CustomCore(task(), copies)
        for policy in (Autopilot(core), RandomPolicy(core)):
            print(f"{task.__name__:16} {type(policy).__name__:13} {evaluate_core(core, policy, seed=1)}")


if __name__ == "__main__":
    main()
