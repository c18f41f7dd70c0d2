"""On-board program for an ROV that navigates only with the images of its forward-looking sonar.

The ROV holds station at a pile, then turns to the quay and follows it sideways.

    python inspector.py --config ../trials/inspection.xml --vehicle rov
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import program
from wavesim_sdk.algebra import inverse, matmul, matvec
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import atan2, cos, hypot, sin
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.guidance import control
from wavesim_sdk.imaging_frames import ImagingFrame
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.ocean.water import depth_of_pressure

AWAY = 4.0  #: distance in m to keep from the pile and from the quay
HOLD_S = 30.0  #: time at the pile in s
QUAY = 90.0  #: expected bearing of the quay in deg
ALONG = 0.25  #: speed to starboard along the quay in m/s
NEAREST = 1.0  #: range in m below which the program ignores echoes
GATE_M, GATE_RAD = 1.5, 0.3  #: maximum deviation in range (m) and bearing (rad) from the last position of the pile
FAINT_DB = 18.0  #: level in dB below the strongest echo at which a sample no longer belongs to the same object
#: time in s to wait for a frame that the sensor announced; afterwards, the program uses the last image
PATIENCE_S = 5.0


class Axis:
    """Controller of one axis. It demands a velocity towards the target, with an integral term that compensates the
    current, and computes the force (N).
    """

    def __init__(self, stiffness: float = 80.0, limit: float = 40.0) -> None:
        self.stiffness, self.limit, self.drift = stiffness, limit, 0.0

    def force(self, error: float, speed: float, dt: float, most: float = 0.35) -> float:
        if abs(error) < 1.0:  # no integration on the way to the target
            self.drift = control.clamp(self.drift + 0.06 * error * dt, 0.3)
        wanted = control.clamp(0.5 * error, most) + self.drift
        return self.go(wanted, speed)

    def go(self, wanted: float, speed: float) -> float:
        return control.clamp(self.stiffness * (wanted - speed), self.limit)


class Inspector:
    """Controller that computes the surge, sway and heave forces and the yaw moment from the sonar image."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        thrusters = loaded.model(body.model).thruster
        self.names = [t.name for t in thrusters]
        wrenches = np.array(
            [[*t.direction, *np.cross(t.position, t.direction)] for t in thrusters]
        )  # wrenches of 1 N each
        self.shares = matmul(
            wrenches, inverse(matmul(wrenches.T, wrenches))
        )  # thrusts for a wrench with the smallest sum of squares
        self.world = loaded.config.world
        self.depth, self.heading = body.position[2], float(body.attitude[2])
        self.ahead, self.side, self.turn = Axis(), Axis(), control.HeadingController(3.0, 2.5, 4.0)
        self.seen = 0  #: number of the newest frame
        self.pile: tuple[float, float] | None = None  #: range and bearing of the pile, if known
        self.error = (0.0, 0.0)  #: position error in m, ahead and to starboard
        self.at_quay = self._asked = False
        self._before = -1.0

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        if not self._asked:
            broker.subscribe_frames("eye")
            self._asked = True
        sensors = step.sensors
        dt = step.time - self._before if self._before >= 0.0 else 0.0
        self._before = step.time
        if not {"ctd", "ahrs", "speedlog"} <= sensors.keys():
            return {}, None
        at_quay = step.time > HOLD_S
        if at_quay and not self.at_quay:  # a new direction: the learned current no longer applies
            self.ahead.drift = 0.0
        self.at_quay = at_quay
        frame = self._newest(int(sensors.eye.frame), broker) if "eye" in sensors else None
        if frame is not None:
            self._look(frame, at_quay, sensors.ahrs.heading)
        surge, sway, heave = sensors.speedlog.v_FB_B
        side = self.side.go(ALONG, sway) if at_quay else self.side.force(self.error[1], sway, dt)
        ahead = self.ahead.force(self.error[0], surge, dt)
        turn = self.turn.control_action(self.heading, sensors.ahrs.heading, sensors.ahrs.rates[2])
        depth = float(depth_of_pressure(self.world, sensors.ctd.pressure))
        down = control.clamp(30.0 * (self.depth - depth) - 40.0 * heave, 40.0)
        roll, pitch = (
            -6.0 * a - 2.0 * w
            for a, w in zip((sensors.ahrs.roll, sensors.ahrs.pitch), sensors.ahrs.rates, strict=False)
        )
        forces = matvec(self.shares, np.array([ahead, side, down, roll, pitch, turn]))
        return dict(zip(self.names, forces.tolist(), strict=True)), None

    def _newest(self, number: int, broker: Broker) -> ImagingFrame | None:
        """Return the frame with this number or a later one; None if this frame has already been returned or does not
        arrive in time. The pieces of a frame may arrive after the step that announces it, or never.
        """
        if number <= self.seen:
            return None
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            for frame in broker.take_frames():
                if int(frame.record["number"]) >= number:
                    self.seen = int(frame.record["number"])
                    return frame
            broker.poll(0.02)
        self.seen = number
        return None

    def _look(self, frame: ImagingFrame, at_quay: bool, heading: float) -> None:
        if at_quay:
            found = quay(frame)
            if found is None:  # not in sight yet
                self.heading, self.error = math.radians(QUAY), (0.0, 0.0)
            else:
                far, bearing = found
                self.heading, self.error = heading + bearing, (far - AWAY, 0.0)
        else:
            self.pile = pile(frame, self.pile) or self.pile
            if self.pile is not None:
                far, bearing = self.pile
                off = bearing + heading - self.heading  # bearing relative to the desired heading
                self.error = far * cos(off) - AWAY, far * sin(off)


def pile(frame: ImagingFrame, last: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the range in m and the bearing in rad of the nearest face of the brightest object in the image. If the
    last position of this object is known, search only near that position.
    """
    s = frame.samples.astype(float) * float(frame.record["span"]) / 255.0
    r, b = frame.ranges, frame.angles
    wanted = np.broadcast_to(r > NEAREST, s.shape)
    if last is not None:
        wanted = wanted & (np.abs(r - last[0]) < GATE_M) & (np.abs(b - last[1]) < GATE_RAD)[:, None]
    if not wanted.any():
        return None
    bright = wanted & (s > np.max(s[wanted]) - 6.0)
    beams, bins = np.nonzero(bright)
    return float(r[bins.min()]), float(np.mean(b[beams]))


def quay(frame: ImagingFrame) -> tuple[float, float] | None:
    """Return the distance in m to a straight wall, and the bearing in rad of the normal of the wall. The wall is a line
    through the strongest echo of each beam.
    """
    s = frame.samples.astype(float) * float(frame.record["span"]) / 255.0
    s[:, frame.ranges <= NEAREST] = 0.0
    bins = s.argmax(axis=1)
    bright = s.max(axis=1)
    good = bright > bright.max() - FAINT_DB
    r, b = frame.ranges[bins], frame.angles
    x, y = r * cos(b), r * sin(b)
    far = slope = 0.0
    for _ in range(4):  # remove outliers
        if good.sum() < 12 or np.ptp(y[good]) < 1.0:
            return None
        middle = y[good].mean()
        slope = float(np.sum((y[good] - middle) * x[good]) / np.sum((y[good] - middle) * (y[good] - middle)))
        far = float(x[good].mean() - slope * middle)
        off = np.abs(x - far - slope * y)
        good = (off < max(2.0 * float(np.median(off[good])), 0.1)) & (bright > bright.max() - FAINT_DB)
    return far / float(hypot(1.0, slope)), float(atan2(-slope, 1.0))


def make(loaded: LoadedConfig, body: BodyConfig) -> Inspector:
    """Create the inspector. Raise BrokerError if the vehicle has no sonar named `eye`."""
    if not any(i.name == "eye" for i in loaded.suite(body)):
        raise BrokerError("this vehicle needs a forward-looking <sonar name='eye'>")
    return Inspector(loaded, body)


if __name__ == "__main__":
    sys.exit(program.run(__doc__, make))
