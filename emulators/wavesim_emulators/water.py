"""Sensors of the water: CTD and its parts, sound speed, scalar quantities."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.base import Batch, Emulator
from wavesim_sdk.arrays import Floats, Record
from wavesim_world.config import LoadedConfig
from wavesim_world.instruments import CONDUCTIVITY_SIGMA, PRESSURE_SIGMA, SALINITY_SIGMA, SOUND_SIGMA, TEMPERATURE_SIGMA
from wavesim_world.ocean import seawater, sound
from wavesim_world.ocean.water import NO_SCALAR, Water, depth_of_pressure


class WaterEmulator(Emulator):
    """Base class of sensors of the surrounding water. In air, they have no value."""

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.water = Water(loaded)

    def position_and_validity(self, now: Batch, out: Record) -> Floats:
        """Return positions (n, 3) and depths below the water surface at this tick. Mark the values of sensors in air as
        invalid.
        """
        out["valid"] = now.depth >= 0.0
        return np.column_stack([now.p_WS_W[:, :2], now.depth])


class CtdEmulator(WaterEmulator):
    """Emulator of a CTD: pressure, temperature and conductivity from the configured formulas (or a volume), and
    salinity from PSS-78.

    The noise is 0.01 dbar, 2 mK and 0.3 mS/m (the accuracy of a moored CTD).
    """

    sensor = "ctd"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        noise = now.noise.normals(3)
        pressure = self.water.pressure(p_W) + PRESSURE_SIGMA * noise[:, 0]
        temperature = self.water.temperature(p_W, now.time) + TEMPERATURE_SIGMA * noise[:, 1]
        conductivity = self.water.conductivity(p_W, now.time) + CONDUCTIVITY_SIGMA * noise[:, 2]
        gauge = np.maximum(pressure - self.water.world.pressure_0, 0.0)
        out["pressure"], out["temperature"], out["conductivity"] = pressure, temperature, conductivity
        out["salinity"] = seawater.salinity(conductivity, temperature, gauge)


class PressureEmulator(WaterEmulator):
    """Emulator of a pressure sensor: absolute pressure, and depth from the configured formula. The noise is 0.01 dbar."""

    sensor = "pressure"

    def measure(self, now: Batch, out: Record) -> None:
        pressure = self.water.pressure(self.position_and_validity(now, out)) + PRESSURE_SIGMA * now.noise(0)
        out["pressure"] = pressure
        out["depth"] = depth_of_pressure(self.water.world, pressure)


class TemperatureEmulator(WaterEmulator):
    """Emulator of a thermometer: water temperature. The noise is 2 mK."""

    sensor = "temperature"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["temperature"] = self.water.temperature(p_W, now.time) + TEMPERATURE_SIGMA * now.noise(0)


class ConductivityEmulator(WaterEmulator):
    """Emulator of a conductivity cell. The noise is 0.3 mS/m."""

    sensor = "conductivity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["conductivity"] = self.water.conductivity(p_W, now.time) + CONDUCTIVITY_SIGMA * now.noise(0)


class SalinityEmulator(WaterEmulator):
    """Emulator of a salinometer: practical salinity (PSS-78) from temperature, conductivity and pressure. The noise is
    0.005.
    """

    sensor = "salinity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["salinity"] = self.water.salinity(p_W, now.time) + SALINITY_SIGMA * now.noise(0)


class ScalarEmulator(WaterEmulator):
    """Emulator of sensors for scalar properties of the water. The noise is 1 % of the value."""

    sensor = "scalar"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
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
        p_W = self.position_and_validity(now, out)
        gauge = np.maximum(self.water.pressure(p_W) - self.water.world.pressure_0, 0.0)
        temperature, salinity = self.water.temperature(p_W, now.time), self.water.salinity(p_W, now.time)
        out["speed"] = sound.chen_millero(temperature, salinity, gauge) + SOUND_SIGMA * now.noise(0)
