"""The declaration of magnetometers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_sdk.config.schema import Vector, choice, key
from wavesim_sdk.config.sensor_base import SensorConfig


@dataclass(frozen=True)
class MagnetometerConfig(SensorConfig):
    """The magnetic field along the axes of S: soft iron times the earth's field, and hard iron, with the sensor's own errors. `grade`
    gives those that are not written beside it, of one instrument each."""

    grade: str = choice(
        "rm3100: PNI RM3100 at 200 cycles. hmc5883l: Honeywell HMC5883L at its default gain. none: no errors but those given.",
        ("rm3100", "hmc5883l", "none"),
        "rm3100",
    )
    hard_iron: Vector = key(
        "Field of what is magnetised on the vehicle, in S.", "magnetic field", (0.0, 0.0, 0.0), count=3
    )
    soft_iron: Vector = key(
        "What iron on the vehicle makes of the earth's field: a 3x3 matrix in S, by rows.",
        default=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
        count=9,
    )
    sigma: float = key("White noise of each axis of a value, standard deviation.", "magnetic field", 0.0, low=0.0)
    offset: float = key(
        "Zero of each axis from one instrument to another, standard deviation.", "magnetic field", 0.0, low=0.0
    )
    scale: float = key("Error of the scale factor, standard deviation.", "drift", 0.0, low=0.0)
    misalignment: float = key("Of each axis towards each other, standard deviation.", "angle", 0.0, low=0.0)
    step: float = key("What it counts in; 0 = none.", "magnetic field", 0.0, low=0.0)
    limit: float = key("It tells no more than this; 0 = no limit.", "magnetic field", 0.0, low=0.0)

    @functools.cached_property
    def resolved(self) -> MagnetometerConfig:
        """With the values of its grade for those that stand at their defaults."""
        standing = {f.name for f in fields(MagnetometerConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in GRADES[self.grade].items() if k in standing})


#: data sheets, in T. RM3100 at a cycle count of 200: 15 nT rms, 75 counts/uT, +-800 uT. HMC5883L: resolution of 2 mG (noise floor),
#: 1090 counts/G and 12 bits at the default gain, so +-188 uT.
GRADES: dict[str, dict[str, Any]] = {
    "rm3100": {"sigma": 15e-9, "step": 1e-6 / 75.0, "limit": 800e-6},
    "hmc5883l": {"sigma": 200e-9, "step": 1e-4 / 1090.0, "limit": 2047e-4 / 1090.0},
    "none": {},
}
