"""What is declared of every sensor."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import Vector, flag, key, order, place, text


@dataclass(frozen=True)
class SensorConfig:
    """What every sensor has. Frame S is that of the sensor as it is mounted."""

    name: str = text("Its name on the body, 1 to 31 letters, digits, - and _; empty: that of its type.", "")
    rate: float = key("How often it computes its values.", "frequency", 10.0, low=0.01, high=1000.0)
    noise: float = key("Factor of the sensor's own noise; 0 = a perfect sensor.", default=1.0, low=0.0)
    position: Vector = key("Where it sits on the body.", "length", (0.0, 0.0, 0.0), count=3)
    attitude: Vector = key("Roll, pitch, yaw of S in B.", "angle", (0.0, 0.0, 0.0), count=3)
    latency: float = key("Values come out this much after their time.", "time", 0.0, low=0.0, high=10.0)
    drop_out: float = key("Probability that a value does not come.", default=0.0, low=0.0, high=1.0)
    send: bool = flag("Whether brokers get it; no: only shared memory and the log.", True)
    order: int = order()
    place: str = place()
