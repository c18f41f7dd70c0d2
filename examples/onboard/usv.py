"""On-board program for a twin-thruster boat. The true state serves as its GPS.

The program accepts missions and commands while it is running (`wavesim mission`, `wavesim command`, mission control).

    python usv.py --config config.xml --vehicle jolner
"""

from __future__ import annotations

import math
import sys

import program
from wavesim_sdk import frames
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import cos
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance import control
from wavesim_sdk.guidance.mission import FollowerSettings, MissionFollower
from wavesim_world.config import BodyConfig, LoadedConfig


class Boat:
    """Guidance and control of one boat."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        settings = FollowerSettings(lookahead=25.0, acceptance=6.0, circle=0.0).with_mission(body.mission)
        self.guidance = MissionFollower(body.waypoint, (body.position[0], body.position[1]), settings)
        self.crab = control.CrabAngle()
        self.heading = control.HeadingController(250.0, 700.0, 100.0)
        self.speed = control.SpeedController(60.0, 15.0, -60.0, 90.0)
        self.port, self.starboard = (t.name for t in loaded.model(body.model).thruster)
        thruster = loaded.model(body.model).thruster[0]
        self.per_square = thruster.coefficients[1] if thruster.law == "shaft" else 0.0
        self._time = -1.0

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        motion = step.state.motion
        if motion is None:
            raise BrokerError('this boat needs its true state; set truth="full" for it in the configuration')
        self.guidance.update(step, broker, (motion[0], motion[1]))
        heading = frames.heading(motion[3:7])
        dt = min(step.time - self._time, 1.0) if self._time >= 0.0 else 0.0  # another client may have driven
        self._time = step.time
        course = self.guidance.course(motion[0], motion[1])
        # The velocity over ground is known here, so the crab angle does not need the current.
        wanted = self.crab.heading(course, heading, motion[7], motion[8], (0.0, 0.0), dt)
        turn = self.heading.control_action(wanted, heading, motion[12])
        turning = max(0.3, cos(min(abs(wrap(wanted - heading)), math.pi / 2)))
        thrust = self.speed.thrust(self.guidance.target.speed * turning, motion[13], dt)
        port, starboard = self.command(0.5 * thrust + 0.5 * turn), self.command(0.5 * thrust - 0.5 * turn)
        return {self.port: port, self.starboard: starboard}, None

    def command(self, force: float) -> float:
        """Return the command of one thruster for a force in N: the force itself, or the corresponding shaft speed."""
        return math.copysign(math.sqrt(abs(force) / self.per_square), force) if self.per_square else force


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Boat))
