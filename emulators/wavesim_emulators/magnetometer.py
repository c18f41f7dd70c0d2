"""Magnetometer: the earth's magnetic field, distorted by the vehicle's iron and the errors of the sensor."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.base import Batch, Emulator, Noise
from wavesim_sdk.algebra import matvec, vecmat
from wavesim_sdk.arrays import Floats, Record
from wavesim_world.config import LoadedConfig
from wavesim_world.config.magnetometer import MagnetometerConfig as Parameters
from wavesim_world.config.world import World


def field(world: World) -> Floats:
    """Return the earth's magnetic field (3,) in W, in T: the configured field, or the WMM2025 field at the origin, at
    the mean water level and in the configured year. North in W is true north, so the declination is the angle from
    north to the horizontal component of the field, positive towards east.
    """
    field = np.array(world.magnetic.field)
    if field.any():
        return field
    from pygeomag import GeoMag  # load the model only if it is needed

    model = GeoMag(coefficients_file="wmm/WMM_2025.COF")
    found = model.calculate(math.degrees(world.latitude), math.degrees(world.longitude), 0.0, world.magnetic.year)
    return 1e-9 * np.array([found.x, found.y, found.z], float)


class MagnetometerEmulator(Emulator):
    """Emulator of magnetometers. The measured field is B_S = (1 + scale and misalignment) (soft iron R_SW B_W + hard
    iron) + offset + noise. The result is limited to the range of the sensor and quantised.
    """

    sensor = "magnetometer"
    needs_all_bodies = False

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.field_W = field(loaded.config.world)

    def prepare(self, parameters: Parameters) -> Parameters:
        return parameters.resolved

    def measure(self, now: Batch, out: Record) -> None:
        p = now.prepared
        iron = np.array(p.soft_iron).reshape(3, 3)
        found = matvec(iron, vecmat(self.field_W, now.R_WS)) + np.array(p.hard_iron)
        drawn = Noise(now.noise.streams, 0, now.noise.scale, "axes").normals(
            12
        )  # constant over an instrument's lifetime
        spread = np.where(np.eye(3, dtype=bool), p.scale, p.misalignment)
        found = found + matvec(spread * drawn[:, :9].reshape(-1, 3, 3), found) + p.offset * drawn[:, 9:]
        found = found + p.sigma * now.noise.normals(3)
        if p.limit:
            found = np.clip(found, -p.limit, p.limit)
        if p.step:
            found = p.step * np.round(found / p.step)
        out["field"] = found
