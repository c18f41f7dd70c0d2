"""Declarations of the keys that all sensors have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wavesim_world.config.schema import Vector, flag, key, order, place, text


def covariance(what: str, unit: str, otherwise: str) -> Any:
    """Declare a key for the covariance of the noise of a vector."""
    return key(
        f"Covariance of the white noise in each value of {what}: a positive semi-definite 3x3 matrix, row by row "
        f"({unit}). Default: {otherwise}.",
        default=(),
        count=9,
    )


@dataclass(frozen=True)
class SensorConfig:
    """Keys that every sensor has. Frame S is the frame of the sensor as mounted on the body."""

    name: str = text(
        "Name of the sensor on the body: 1 to 31 letters, digits, - and _. Empty: the name of its type.", ""
    )
    rate: float = key("Rate at which the sensor computes values.", "frequency", 10.0, low=0.01, high=1000.0)
    noise: float = key(
        "Scale factor of the sensor's random errors: 1 = as configured, 0 = no errors.", default=1.0, low=0.0
    )
    position: Vector = key(
        "Position of the sensor in the body frame (forward, starboard, down).", "length", (0.0, 0.0, 0.0), count=3
    )
    attitude: Vector = key(
        "Roll, pitch and yaw of the sensor frame S relative to the body frame B.", "angle", (0.0, 0.0, 0.0), count=3
    )
    latency: float = key(
        "Delay from the time of a measurement until the sensor outputs its value.", "time", 0.0, low=0.0, high=10.0
    )
    drop_out: float = key("Probability that the sensor omits a value.", default=0.0, low=0.0, high=1.0)
    send: bool = flag(
        "Whether brokers receive the values of the sensor. no: only shared memory and the log contain them.", True
    )
    order: int = order()
    place: str = place()
