"""Flight control for fixed-wing aircraft: speed through the air, height and course (Beard & McLain 2012, ch. 6).

    flight = FlightController()
    steer = LineOfSight(waypoints, (0.0, 0.0), lookahead=150.0, acceptance=60.0)
    ...
    motion = FlightState(airspeed, height, climb, course, roll, pitch, p, q, r)
    commands = flight.commands(motion, steer.course(north, east), -steer.target.depth, steer.target.speed, dt)

Angles are in rad, lengths in m and times in s; ``dt`` is the time since the previous call. The default gains suit the
`aerosonde` model at 20 to 30 m/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from wavesim_sdk.elementary import atan2, sin, sin_cos
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance.control import clamp

__all__ = ["FlightCommands", "FlightController", "FlightGains", "FlightState"]

GRAVITY = 9.81
NEAR_SPEED = 2.0  #: airspeed error in m/s above which the integral term of the airspeed controller is frozen
MIN_AIRSPEED = 5.0  #: lower limit of the airspeed in m/s that the controller uses in its equations


class FlightState(NamedTuple):
    """Measured motion of an aircraft."""

    airspeed: float  #: speed through the air in m/s
    height: float  #: height above the water in m
    climb: float  #: rate of climb in m/s
    course: float  #: course over ground in rad
    roll: float
    pitch: float
    p: float  #: roll rate in rad/s
    q: float  #: pitch rate in rad/s
    r: float  #: yaw rate in rad/s


class FlightCommands(NamedTuple):
    """Commands for an aircraft: shaft speed in 1/s, and angles of the control surfaces in rad."""

    shaft: float
    elevator: float
    aileron: float
    rudder: float


@dataclass(frozen=True)
class FlightGains:
    """Gains and limits of the flight controller, and its commands in level flight."""

    shaft: float = 80.0  #: shaft speed in level flight, 1/s
    elevator: float = -0.12  #: angle of the elevator in level flight
    pitch: float = 0.05  #: pitch in level flight
    max_shaft: float = 120.0  #: maximum shaft speed, 1/s
    max_angle: float = math.radians(25.0)  #: maximum angle of the control surfaces, rad
    max_roll: float = math.radians(35.0)
    max_pitch: float = math.radians(15.0)
    max_climb: float = 3.0  #: maximum rate of climb and of descent, m/s
    course: float = 1.0  #: demanded roll angle per course error
    roll: float = 0.5  #: aileron angle per roll error
    roll_rate: float = 0.02  #: aileron angle per roll rate, s
    yaw_rate: float = 0.2  #: rudder angle per deviation from the yaw rate of a coordinated turn, s
    turn: float = 0.08  #: rudder angle per yaw rate of a coordinated turn, s; it balances the yaw damping
    height: float = 0.25  #: demanded rate of climb per height error, 1/s
    climb: float = 0.02  #: demanded pitch angle per error of the rate of climb, rad s/m
    climb_integral: float = 0.01  #: demanded pitch angle per integrated error of the rate of climb, rad/m
    tilt: float = 0.8  #: elevator angle per pitch error
    pitch_rate: float = 0.15  #: elevator angle per pitch rate, s
    tilt_integral: float = 0.3  #: elevator angle per integrated pitch error, 1/s
    speed: float = 6.0  #: shaft speed per airspeed error, 1/m
    speed_integral: float = 0.4  #: shaft speed per integrated airspeed error, 1/(m s)
    shaft_per_climb: float = 5.0  #: shaft speed per demanded rate of climb, 1/m


class FlightController:
    """Controller of the airspeed (with the propeller), the height (with the elevator) and the course (with banked
    turns).

    In a turn, the controller increases the lift with the bank angle, so that the aircraft keeps its height. The rudder
    keeps the turn coordinated. Integral terms are frozen while their output is limited.
    """

    def __init__(self, gains: FlightGains | None = None) -> None:
        self.gains = gains or FlightGains()
        self._climb = self._tilt = self._speed = 0.0  # integral terms, in the unit of their output

    def commands(
        self, now: FlightState, course: float, height: float, speed: float, dt: float, roll: float | None = None
    ) -> FlightCommands:
        """Return the commands for a desired course over ground (rad), height (m) and airspeed (m/s). If ``roll`` (rad)
        is given, it replaces the course.
        """
        g, airspeed = self.gains, max(now.airspeed, MIN_AIRSPEED)
        climb = clamp(g.height * (height - now.height), g.max_climb)
        banked = clamp(g.course * wrap(course - now.course) if roll is None else roll, g.max_roll)
        aileron, rudder = self._lateral(now, banked, airspeed)
        return FlightCommands(
            self._shaft(speed - now.airspeed, climb, dt), self._elevator(now, climb, airspeed, dt), aileron, rudder
        )

    def _lateral(self, now: FlightState, roll: float, airspeed: float) -> tuple[float, float]:
        g = self.gains
        aileron = clamp(g.roll * (roll - now.roll) - g.roll_rate * now.p, g.max_angle)
        turning = GRAVITY / airspeed * float(sin(now.roll))
        return aileron, clamp(g.yaw_rate * (now.r - turning) - g.turn * turning, g.max_angle)

    def _elevator(self, now: FlightState, climb: float, airspeed: float, dt: float) -> float:
        g, error = self.gains, climb - now.climb
        _, upright = sin_cos(clamp(now.roll, g.max_roll))
        level = g.pitch * (2.0 / float(upright) - 1.0) + float(atan2(climb, airspeed))
        pitch = level + g.climb * error + self._climb
        if abs(pitch) < g.max_pitch:
            self._climb += g.climb_integral * error * dt
        tilt = clamp(pitch, g.max_pitch) - now.pitch
        # in a turn, the pitch rate of level flight is not zero
        turning = GRAVITY / airspeed * float(sin(now.roll)) * float(sin(now.roll)) / float(upright)
        raise_nose = g.tilt * tilt - g.pitch_rate * (now.q - turning) + self._tilt
        if abs(g.elevator - raise_nose) < g.max_angle:
            self._tilt += g.tilt_integral * tilt * dt
        return clamp(g.elevator - raise_nose, g.max_angle)

    def _shaft(self, error: float, climb: float, dt: float) -> float:
        g = self.gains
        shaft = g.shaft + g.shaft_per_climb * climb + g.speed * error + self._speed
        if 0.0 < shaft < g.max_shaft and abs(error) < NEAR_SPEED:
            self._speed += g.speed_integral * error * dt
        return max(0.0, min(g.max_shaft, shaft))
