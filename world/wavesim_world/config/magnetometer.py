"""Declarations of magnetometers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_world.config.schema import Vector, choice, key
from wavesim_world.config.sensor_base import SensorConfig


@dataclass(frozen=True)
class MagnetometerConfig(SensorConfig):
    """Magnetometer: the magnetic field along the axes of the sensor frame S.

    The measured field is the earth's field times the soft iron matrix, plus the hard iron field and the errors of the
    sensor. If `grade` selects a specific instrument, its errors replace the values of all keys left at their defaults.
    """

    grade: str = choice(
        "Commercial magnetometer to imitate. Its errors replace the values of all keys left at their defaults. "
        "rm3100: PNI RM3100 "
        "with a cycle count of 200. hmc5883l: Honeywell HMC5883L at its default gain. none: only the errors that "
        "the other keys specify.",
        ("rm3100", "hmc5883l", "none"),
        "rm3100",
    )
    hard_iron: Vector = key(
        "Hard iron: constant magnetic field of the magnetised parts of the vehicle, in the sensor frame S.",
        "magnetic field",
        (0.0, 0.0, 0.0),
        count=3,
    )
    soft_iron: Vector = key(
        "Soft iron: distortion of the earth's magnetic field by iron on the vehicle, as a 3x3 matrix in the "
        "sensor frame S, row by row.",
        default=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0),
        count=9,
    )
    sigma: float = key(
        "Standard deviation of the white noise on each axis of the magnetometer.", "magnetic field", 0.0, low=0.0
    )
    offset: float = key(
        "Standard deviation of the zero offset of each axis. The offset is drawn once per magnetometer.",
        "magnetic field",
        0.0,
        low=0.0,
    )
    scale: float = key("Standard deviation of the magnetometer's scale factor error.", "drift", 0.0, low=0.0)
    misalignment: float = key(
        "Standard deviation of the misalignment between any two axes of the magnetometer.",
        "angle",
        0.0,
        low=0.0,
    )
    step: float = key("Quantisation step of the magnetometer; 0 = no quantisation.", "magnetic field", 0.0, low=0.0)
    limit: float = key(
        "Maximum magnitude that each axis of the magnetometer can report; 0 = unlimited.",
        "magnetic field",
        0.0,
        low=0.0,
    )

    @functools.cached_property
    def resolved(self) -> MagnetometerConfig:
        """Copy of this configuration in which the grade replaces the value of every key left at its default."""
        standing = {f.name for f in fields(MagnetometerConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in GRADES[self.grade].items() if k in standing})


#: Magnetometer errors of each grade in T, from data sheets. The names are fields of MagnetometerConfig.
# RM3100 at a cycle count of 200: 15 nT rms, 75 counts/uT, +-800 uT. HMC5883L: resolution of 2 mG (noise floor), 1090
# counts/G and 12 bits at the default gain, so +-188 uT.
GRADES: dict[str, dict[str, Any]] = {
    "rm3100": {"sigma": 15e-9, "step": 1e-6 / 75.0, "limit": 800e-6},
    "hmc5883l": {"sigma": 200e-9, "step": 1e-4 / 1090.0, "limit": 2047e-4 / 1090.0},
    "none": {},
}
