"""Declare magnetometers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_sdk.config.schema import Vector, choice, key
from wavesim_sdk.config.sensor_base import SensorConfig


@dataclass(frozen=True)
class MagnetometerConfig(SensorConfig):
    """Magnetometer: the magnetic field along the axes of S.

    It measures the earth's field times the soft iron matrix, plus the hard iron field, with the errors of the sensor.
    `grade` sets the errors of a specific instrument for all keys that stay at their defaults.
    """

    grade: str = choice(
        "rm3100: PNI RM3100 at 200 cycles. hmc5883l: Honeywell HMC5883L at its default gain. none: only the errors "
        "given by the other keys.",
        ("rm3100", "hmc5883l", "none"),
        "rm3100",
    )
    hard_iron: Vector = key(
        "Field in S of the magnetised parts of the vehicle.", "magnetic field", (0.0, 0.0, 0.0), count=3
    )
    soft_iron: Vector = key(
        "Effect of iron on the vehicle on the earth's field: a 3x3 matrix in S, by rows.",
        default=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
        count=9,
    )
    sigma: float = key("White noise of each axis per value, standard deviation.", "magnetic field", 0.0, low=0.0)
    offset: float = key(
        "Zero offset of each axis from one instrument to another, standard deviation.", "magnetic field", 0.0, low=0.0
    )
    scale: float = key("Scale factor error, standard deviation.", "drift", 0.0, low=0.0)
    misalignment: float = key(
        "Misalignment of each axis towards each other axis, standard deviation.", "angle", 0.0, low=0.0
    )
    step: float = key("Quantisation step; 0 = none.", "magnetic field", 0.0, low=0.0)
    limit: float = key("Maximum magnitude that each axis can report; 0 = unlimited.", "magnetic field", 0.0, low=0.0)

    @functools.cached_property
    def resolved(self) -> MagnetometerConfig:
        """The configuration with the values of its grade for all keys that stay at their defaults."""
        standing = {f.name for f in fields(MagnetometerConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in GRADES[self.grade].items() if k in standing})


#: Values of the data sheets, in T. RM3100 at a cycle count of 200: 15 nT rms, 75 counts/uT, +-800 uT. HMC5883L: resolution of 2 mG (noise floor),
#: 1090 counts/G and 12 bits at the default gain, so +-188 uT.
GRADES: dict[str, dict[str, Any]] = {
    "rm3100": {"sigma": 15e-9, "step": 1e-6 / 75.0, "limit": 800e-6},
    "hmc5883l": {"sigma": 200e-9, "step": 1e-4 / 1090.0, "limit": 2047e-4 / 1090.0},
    "none": {},
}
