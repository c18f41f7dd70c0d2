"""Signal K deltas that ship instruments send, computed from the sensors of a body. Each line is one JSON object in SI
units.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from wavesim_devices.nmea import Clock
from wavesim_devices.nmea2000 import KELVIN, TYPES
from wavesim_devices.ports import Bytes
from wavesim_devices.sensor_selection import NewValueFilter
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import utc
from wavesim_sdk.wire.state import Value

__all__ = ["TYPES", "SignalKDevice", "delta", "path_values"]


def _wrap_2pi(angle: float) -> float:
    """Return the angle in rad, wrapped to the range from 0 to 2 pi."""
    return angle % (2.0 * math.pi)


def _half(angle: float) -> float:
    """Return the angle in rad, wrapped to the range from -pi to pi."""
    return math.remainder(angle, 2.0 * math.pi)


def path_values(type_: str, v: Value) -> dict[str, Any]:
    """Return the Signal K paths for a sensor value, and their values.

    If a component of the value is missing, no paths are returned. A missing propeller speed omits only the path of that
    propeller.
    """
    if type_ == "rpm":
        turning = [abs(r) / 60.0 for r in v.rpm if math.isfinite(r)]
        return {f"propulsion.{k}.revolutions": hz for k, hz in enumerate(turning)}
    if not all(map(math.isfinite, v.numbers)):
        return {}
    match type_:
        case "gps":
            place = {"latitude": math.degrees(v.latitude), "longitude": math.degrees(v.longitude), "altitude": v.height}
            return {
                "navigation.position": place,
                "navigation.speedOverGround": v.sog,
                "navigation.courseOverGroundTrue": _wrap_2pi(v.cog),
                "navigation.gnss.satellites": round(v.satellites),
                "navigation.gnss.horizontalDilution": v.hdop,
                "navigation.gnss.methodQuality": "GNSS Fix",
            }
        case "ahrs":
            attitude = {"roll": v.roll, "pitch": v.pitch, "yaw": _half(v.heading)}
            return {
                "navigation.headingTrue": _wrap_2pi(v.heading),
                "navigation.rateOfTurn": v.rates[2],
                "navigation.attitude": attitude,
            }
        case "echosounder":
            return {"environment.depth.belowTransducer": v.range}
        case "speedlog":
            return {"navigation.speedThroughWater": v.v_FB_B[0]}
        case "anemometer":
            return {"environment.wind.speedApparent": v.speed, "environment.wind.angleApparent": _half(v.angle)}
        case "battery":
            return {
                "electrical.batteries.0.voltage": v.voltage,
                "electrical.batteries.0.current": v.current,
                "electrical.batteries.0.capacity.stateOfCharge": v.charge,
            }
        case _:
            return {"environment.water.temperature": v.temperature + KELVIN}


def delta(type_: str, name: str, value: Value, clock: Clock = utc) -> dict[str, Any] | None:
    """Return the Signal K delta for a value from the sensor called ``name``, or None if the delta would be empty."""
    changes = [{"path": path, "value": v} for path, v in path_values(type_, value).items()]
    if not changes:
        return None
    source = {"label": "wavesim", "type": type_, "src": name}
    stamp = clock(value.time_ns).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"context": "vessels.self", "updates": [{"source": source, "timestamp": stamp, "values": changes}]}


class SignalKDevice:
    """Signal K source of a body. It sends each new sensor value once. ``picked`` maps each sensor type to the name of
    the sensor.
    """

    def __init__(self, send: Bytes, picked: Mapping[str, str], clock: Clock = utc) -> None:
        self.send, self._picked, self.clock = send, picked, clock
        self._new_values = NewValueFilter(picked)

    def receive(self, data: bytes) -> None:
        """Ignore received bytes, because a talker only sends."""

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        for type_, value in self._new_values.new_values(step.sensors):
            found = delta(type_, self._picked[type_], value, self.clock)
            if found is not None:
                self.send(json.dumps(found, separators=(",", ":")).encode() + b"\r\n")
