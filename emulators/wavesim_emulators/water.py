"""Sensors that measure the water: CTD and its component sensors, sound speed, scalar quantities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavesim_emulators import bank_kernels, water_kernels
from wavesim_emulators.base import Batch, Emulator
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.elementary import sin
from wavesim_world.config import LoadedConfig
from wavesim_world.config.world import ConductivityConfig, Spot, TemperatureConfig
from wavesim_world.instruments import CONDUCTIVITY_SIGMA, PRESSURE_SIGMA, SALINITY_SIGMA, SOUND_SIGMA, TEMPERATURE_SIGMA
from wavesim_world.ocean import sound
from wavesim_world.ocean.water import NO_SCALAR, Water, depth_of_pressure


class WaterEmulator(Emulator):
    """Base class of sensors that measure the surrounding water. In air, these sensors have no value."""

    kernels = water_kernels.CONDITIONS_KERNELS

    needs_all_bodies = False

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.water, world = Water(loaded), loaded.config.world
        self.is_measured = world.volume is not None or world.samples is not None
        sine = float(sin(world.latitude))
        self._law = np.array([world.pressure_0, world.pressure_1, world.pressure_2, sine * sine])
        fields = world.temperature, world.conductivity
        self._profiles = np.array([_profile_row(field) for field in fields])
        self._spots = [_spot_rows(field.spot) for field in fields]

    def conditions(self, now: Batch) -> Floats:
        """Return pressure, temperature and conductivity of the water around the sensors (n, 3)."""
        found = np.empty((len(now), water_kernels.CONDITIONS))
        water_kernels.fill_conditions(now.poses, self._law, self._profiles, *self._spots, found)
        if self.is_measured:
            p_W = self.positions(now)
            found[:, water_kernels.TEMPERATURE] = self.water.temperature(p_W, now.time)
            found[:, water_kernels.CONDUCTIVITY] = self.water.conductivity(p_W, now.time)
        return found

    def positions(self, now: Batch) -> Floats:
        """Return positions (n, 3) with depths below the water surface at this tick."""
        return np.asarray(now.poses[:, bank_kernels.PLACE : bank_kernels.DEPTH + 1].take((0, 1, 3), axis=1))


def _profile_row(field: TemperatureConfig | ConductivityConfig) -> list[float]:
    between = max(field.knee_2 - field.knee_1, 0.0)
    return [field.surface, field.knee_1, between, field.gradient_1, field.gradient_2, field.knee_2]


def _spot_rows(spots: Sequence[Spot]) -> Floats:
    rows = [(s.deviation, *s.position, s.alpha, s.beta, s.gamma) for s in spots]
    return np.array(rows, float).reshape(-1, 7)


class CtdEmulator(WaterEmulator):
    """Emulator of a CTD: pressure, temperature and conductivity from the configured formulas or from a volume, and
    salinity from PSS-78.

    The noise is 0.01 dbar, 2 mK and 0.3 mS/m (the accuracy of a moored CTD).
    """

    sensor = "ctd"
    kernels = water_kernels.CTD_KERNELS

    def measure(self, now: Batch, out: Record) -> None:
        noise, surface = now.noise.normals(3), self.water.world.pressure_0
        water_kernels.fill_ctd(now.poses, self.conditions(now), noise, surface, now.numbers(out))


class PressureEmulator(WaterEmulator):
    """Emulator of a pressure sensor: absolute pressure, and depth from the configured formula. The noise is 0.01 dbar."""

    sensor = "pressure"

    def measure(self, now: Batch, out: Record) -> None:
        pressure = self.conditions(now)[:, water_kernels.PRESSURE] + PRESSURE_SIGMA * now.noise(0)
        out["pressure"] = pressure
        out["depth"] = depth_of_pressure(self.water.world, pressure)
        out["valid"] = now.depth >= 0.0


class TemperatureEmulator(WaterEmulator):
    """Emulator of a thermometer: water temperature. The noise is 2 mK."""

    sensor = "temperature"

    def measure(self, now: Batch, out: Record) -> None:
        temperature = self.conditions(now)[:, water_kernels.TEMPERATURE]
        out["temperature"] = temperature + TEMPERATURE_SIGMA * now.noise(0)
        out["valid"] = now.depth >= 0.0


class ConductivityEmulator(WaterEmulator):
    """Emulator of a conductivity cell. The noise is 0.3 mS/m."""

    sensor = "conductivity"

    def measure(self, now: Batch, out: Record) -> None:
        conductivity = self.conditions(now)[:, water_kernels.CONDUCTIVITY]
        out["conductivity"] = conductivity + CONDUCTIVITY_SIGMA * now.noise(0)
        out["valid"] = now.depth >= 0.0


class SalinityEmulator(WaterEmulator):
    """Emulator of a salinometer: practical salinity (PSS-78) from temperature, conductivity and pressure. The noise is
    0.005.
    """

    sensor = "salinity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W, out["valid"] = self.positions(now), now.depth >= 0.0
        out["salinity"] = self.water.salinity(p_W, now.time) + SALINITY_SIGMA * now.noise(0)


class ScalarEmulator(WaterEmulator):
    """Emulator of sensors for scalar properties of the water. The noise is 1 % of the value."""

    sensor = "scalar"

    def measure(self, now: Batch, out: Record) -> None:
        p_W, out["valid"] = self.positions(now), now.depth >= 0.0
        out["value"] = NO_SCALAR
        for k in range(len(self.water.world.scalar)):
            value = self.water.scalar(k, p_W, now.time)
            out["value"][:, k] = np.where(value == NO_SCALAR, NO_SCALAR, value * (1.0 + 0.01 * now.noise(k)))


class SoundVelocityEmulator(WaterEmulator):
    """Emulator of a sound velocity probe: sound speed in the water (Chen and Millero), independent of the <acoustics>
    setting. The noise is 2 cm/s.
    """

    sensor = "sound_velocity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W, out["valid"] = self.positions(now), now.depth >= 0.0
        gauge = np.maximum(self.water.pressure(p_W) - self.water.world.pressure_0, 0.0)
        temperature, salinity = self.water.temperature(p_W, now.time), self.water.salinity(p_W, now.time)
        out["speed"] = sound.chen_millero(temperature, salinity, gauge) + SOUND_SIGMA * now.noise(0)
