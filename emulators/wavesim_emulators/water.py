"""What the water is like where the sensor is: CTD and its parts, sound velocity, other quantities."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.base import Batch, Emulator, Floats
from wavesim_sdk.config import LoadedConfig
from wavesim_sdk.instruments import CONDUCTIVITY_SIGMA, PRESSURE_SIGMA, SALINITY_SIGMA, SOUND_SIGMA, TEMPERATURE_SIGMA
from wavesim_sdk.ocean import seawater, sound
from wavesim_sdk.ocean.water import NO_SCALAR, Water, depth_of_pressure
from wavesim_sdk.shared_memory import Record


class WaterEmulator(Emulator):
    """A sensor of the water around it; without a value in the air."""

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.water = Water(loaded)

    def position_and_validity(self, now: Batch, out: Record) -> Floats:
        """Where it is (n, 3), its depth below the water as it stands; marks the values of sensors in the air."""
        out["valid"] = now.depth >= 0.0
        return np.column_stack([now.p_WS_W[:, :2], now.depth])


class CtdEmulator(WaterEmulator):
    """Pressure, temperature, conductivity by the configured formulas (or a volume), salinity by PSS-78.

    Noise: 0.01 dbar, 2 mK, 0.3 mS/m (a moored CTD's accuracy).
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
    """Absolute pressure, and the depth that follows by the configured formula. Noise 0.01 dbar."""

    sensor = "pressure"

    def measure(self, now: Batch, out: Record) -> None:
        pressure = self.water.pressure(self.position_and_validity(now, out)) + PRESSURE_SIGMA * now.noise(0)
        out["pressure"] = pressure
        out["depth"] = depth_of_pressure(self.water.world, pressure)


class TemperatureEmulator(WaterEmulator):
    """Noise 2 mK."""

    sensor = "temperature"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["temperature"] = self.water.temperature(p_W, now.time) + TEMPERATURE_SIGMA * now.noise(0)


class ConductivityEmulator(WaterEmulator):
    """Noise 0.3 mS/m."""

    sensor = "conductivity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["conductivity"] = self.water.conductivity(p_W, now.time) + CONDUCTIVITY_SIGMA * now.noise(0)


class SalinityEmulator(WaterEmulator):
    """PSS-78 of temperature, conductivity and pressure. Noise 0.005."""

    sensor = "salinity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["salinity"] = self.water.salinity(p_W, now.time) + SALINITY_SIGMA * now.noise(0)


class ScalarEmulator(WaterEmulator):
    """The other quantities of the water. Noise 1 % of the value."""

    sensor = "scalar"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        out["value"] = NO_SCALAR
        for k in range(len(self.water.world.scalar)):
            value = self.water.scalar(k, p_W, now.time)
            out["value"][:, k] = np.where(value == NO_SCALAR, NO_SCALAR, value * (1.0 + 0.01 * now.noise(k)))


class SoundVelocityEmulator(WaterEmulator):
    """Speed of sound of the water (Chen and Millero), whatever <acoustics> takes. Noise 2 cm/s."""

    sensor = "sound_velocity"

    def measure(self, now: Batch, out: Record) -> None:
        p_W = self.position_and_validity(now, out)
        gauge = np.maximum(self.water.pressure(p_W) - self.water.world.pressure_0, 0.0)
        temperature, salinity = self.water.temperature(p_W, now.time), self.water.salinity(p_W, now.time)
        out["speed"] = sound.chen_millero(temperature, salinity, gauge) + SOUND_SIGMA * now.noise(0)
