"""Declare the keys that all sensors have."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import Vector, flag, key, order, place, text


@dataclass(frozen=True)
class SensorConfig:
    """Keys of every sensor. Frame S is the frame of the sensor as mounted."""

    name: str = text(
        "Name of the sensor on the body: 1 to 31 letters, digits, - and _. Empty: the name of its type.", ""
    )
    rate: float = key("Rate at which the sensor computes its values.", "frequency", 10.0, low=0.01, high=1000.0)
    noise: float = key("Factor that scales the sensor's own noise; 0 = a perfect sensor.", default=1.0, low=0.0)
    position: Vector = key("Position of the sensor on the body.", "length", (0.0, 0.0, 0.0), count=3)
    attitude: Vector = key("Roll, pitch, yaw of frame S relative to frame B.", "angle", (0.0, 0.0, 0.0), count=3)
    latency: float = key("Delay from the time of a value to its output.", "time", 0.0, low=0.0, high=10.0)
    drop_out: float = key("Probability that a value is missing.", default=0.0, low=0.0, high=1.0)
    send: bool = flag("Whether brokers receive the values. no: only shared memory and the log contain them.", True)
    order: int = order()
    place: str = place()
