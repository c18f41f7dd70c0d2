"""Flight control of an aircraft for DUNE. DUNE's guidance sends demanded values of heading or roll, height and speed,
as it does to the autopilots of real aircraft. The bridge moves the control surfaces accordingly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wavesim_bridges import imc
from wavesim_bridges.core import MalformedMessage
from wavesim_bridges.imc_codec import ImcMessage
from wavesim_bridges.servo_outputs import ServoOutput
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.elementary import atan2
from wavesim_sdk.frames import euler
from wavesim_sdk.guidance.flight import FlightController, FlightState
from wavesim_sdk.wire.items import ActuatorDescription
from wavesim_sdk.wire.state import Sensors

#: servos of an aircraft, mapped to the actuators of the `aerosonde` model
SERVOS = {0: ServoOutput("elevator"), 1: ServoOutput("aileron"), 2: ServoOutput("rudder")}
SURFACES = tuple(output.actuator for output in SERVOS.values())
AIRSPEED = "anemometer"  #: sensor type that measures the speed through the air
CRUISE = 25.0  #: airspeed in m/s until DUNE demands another one
LOITER_ROLL = math.radians(20.0)  #: roll angle at which the aircraft circles until DUNE sends a demand


def is_aircraft(actuators: Sequence[ActuatorDescription]) -> bool:
    """Return whether a vehicle has the control surfaces of an aircraft."""
    return {a.name for a in actuators} >= set(SURFACES)


def airspeed_of(sensors: Sequence[str], values: Sensors) -> float | None:
    """Return the measured speed through the air in m/s, or None if no sensor provides a valid value."""
    for name in sensors:
        value = values.get(name)
        if value is not None and math.isfinite(value.speed):
            return float(value.speed)
    return None


class DuneFlight:
    """Demands of DUNE's guidance, and the flight controller that follows them. The aircraft circles until the first
    demand arrives. While DUNE commands actuators, the controller is not engaged.
    """

    def __init__(self, actuators: Sequence[ActuatorDescription]) -> None:
        self._numbers = {a.name: a.number for a in actuators}
        self._propellers = [a.number for a in actuators if a.unit == "1/s"]
        self._controller = FlightController()
        self._heading: float | None = None
        self._roll, self._height, self._speed = 0.0, math.nan, CRUISE
        self._time = math.nan
        self.is_engaged = True
        self.loiter()

    def handle(self, message: ImcMessage) -> bool:
        """Process a message if it is a demand of DUNE's guidance, and return whether it is one. Raise MalformedMessage
        for invalid values.
        """
        match message:
            case imc.DesiredHeading(value=value) | imc.DesiredRoll(value=value):
                number = _finite(value)
                if isinstance(message, imc.DesiredHeading):
                    self._heading = number
                else:
                    self._heading, self._roll = None, number
            case imc.DesiredZ(value=value, z_units=units):
                if units not in (imc.DesiredZ.Z_DEPTH, imc.DesiredZ.Z_ALTITUDE, imc.DesiredZ.Z_HEIGHT):
                    raise MalformedMessage("unknown z units")
                self._height = -_finite(value) if units == imc.DesiredZ.Z_DEPTH else _finite(value)
            case imc.DesiredSpeed(value=value, speed_units=units):
                if units != imc.DesiredSpeed.SUNITS_METERS_PS:
                    raise MalformedMessage("speed not in m/s")
                self._speed = _finite(value)
            case _:
                return False
        self.is_engaged = True
        return True

    def loiter(self) -> None:
        """Circle at the demanded height and speed, until DUNE sends a demand."""
        self._heading, self._roll = None, LOITER_ROLL

    def commands(self, motion: VehicleMotion, airspeed: float | None) -> list[float | None]:
        """Return the actuator commands for the present motion. If the airspeed is not measured, the speed over ground
        is used instead.
        """
        north, east, down = map(float, motion.velocity)
        over_ground = math.sqrt(north * north + east * east + down * down)
        roll, pitch, _ = map(float, euler(motion.attitude))
        p, q, r = map(float, motion.rates)
        height = -float(motion.position[2])
        now = FlightState(
            over_ground if airspeed is None else airspeed,
            height,
            -down,
            float(atan2(east, north)),
            roll,
            pitch,
            p,
            q,
            r,
        )
        if math.isnan(self._height):
            self._height = height
        dt = min(max(motion.time - self._time, 0.0), 1.0) if math.isfinite(self._time) else 0.0
        self._time = motion.time
        banked = self._roll if self._heading is None else None
        c = self._controller.commands(now, self._heading or 0.0, self._height, self._speed, dt, banked)
        found: list[float | None] = [None] * len(self._numbers)
        for name, angle in zip(SURFACES, (c.elevator, c.aileron, c.rudder), strict=True):
            found[self._numbers[name]] = angle
        for number in self._propellers:
            found[number] = c.shaft
        return found


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise MalformedMessage("no number")
    return float(value)
