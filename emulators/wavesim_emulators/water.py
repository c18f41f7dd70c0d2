"""What the water is like where the sensor is: CTD and its parts, sound velocity, other quantities."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.base import Emulator, Floats, Noise, Rows
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean import seawater, sound
from wavesim_sdk.ocean.water import NONE, Water, depth_of_pressure

PRESSURE_SIGMA = 0.01  #: dbar
TEMPERATURE_SIGMA = 0.002  #: C
CONDUCTIVITY_SIGMA = 0.0003  #: S/m
SALINITY_SIGMA = 0.005
SOUND_SIGMA = 0.02  #: m/s


class InWater(Emulator):
    """A sensor of the water around it; without a value in the air."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.water = Water(loaded)

    def place(self, view: Snapshot, rows: Rows, out: Record) -> Floats:
        """Where it is (n, 3), its depth below the water as it stands; marks the values of sensors in the air."""
        p_W = self.mounted(view, rows).p_WS_W
        p_W[:, 2] += self.weather(view.time_ns)["level"]
        out["valid"][rows] = p_W[:, 2] >= 0.0
        return p_W


class Ctd(InWater):
    """Pressure, temperature, conductivity by the paper's formulas (or a volume), salinity by PSS-78.

    Noise: 0.01 dbar, 2 mK, 0.3 mS/m (a moored CTD's accuracy).
    """

    sensor = "ctd"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W, time = self.place(view, rows, out), view.time_ns * 1e-9
        pressure = self.water.pressure(p_W) + PRESSURE_SIGMA * noise(0)
        temperature = self.water.temperature(p_W, time) + TEMPERATURE_SIGMA * noise(1)
        conductivity = self.water.conductivity(p_W, time) + CONDUCTIVITY_SIGMA * noise(2)
        gauge = np.maximum(pressure - self.water.world.pressure_0, 0.0)
        out["pressure"][rows], out["temperature"][rows], out["conductivity"][rows] = pressure, temperature, conductivity
        out["salinity"][rows] = seawater.salinity(conductivity, temperature, gauge)


class Pressure(InWater):
    """Absolute pressure, and the depth that follows from the configured polynomial. Noise 0.01 dbar."""

    sensor = "pressure"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        pressure = self.water.pressure(self.place(view, rows, out)) + PRESSURE_SIGMA * noise(0)
        out["pressure"][rows] = pressure
        out["depth"][rows] = [depth_of_pressure(self.water.world, float(p)) for p in pressure]


class Temperature(InWater):
    """Noise 2 mK."""

    sensor = "temperature"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W = self.place(view, rows, out)
        out["temperature"][rows] = self.water.temperature(p_W, view.time_ns * 1e-9) + TEMPERATURE_SIGMA * noise(0)


class Conductivity(InWater):
    """Noise 0.3 mS/m."""

    sensor = "conductivity"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W = self.place(view, rows, out)
        value = self.water.conductivity(p_W, view.time_ns * 1e-9)
        out["conductivity"][rows] = value + CONDUCTIVITY_SIGMA * noise(0)


class Salinity(InWater):
    """PSS-78 of temperature, conductivity and pressure. Noise 0.005."""

    sensor = "salinity"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W = self.place(view, rows, out)
        out["salinity"][rows] = self.water.salinity(p_W, view.time_ns * 1e-9) + SALINITY_SIGMA * noise(0)


class Scalar(InWater):
    """The other quantities of the water. Noise 1 % of the value."""

    sensor = "scalar"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W, time = self.place(view, rows, out), view.time_ns * 1e-9
        out["value"][rows] = NONE
        for k in range(len(self.water.world.scalar)):
            value = self.water.scalar(k, p_W, time)
            out["value"][rows, k] = np.where(value == NONE, NONE, value * (1.0 + 0.01 * noise(k)))


class SoundVelocity(InWater):
    """Speed of sound of the water (Chen and Millero), whatever <acoustics> takes. Noise 2 cm/s."""

    sensor = "sound_velocity"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W, time = self.place(view, rows, out), view.time_ns * 1e-9
        gauge = np.maximum(self.water.pressure(p_W) - self.water.world.pressure_0, 0.0)
        temperature, salinity = self.water.temperature(p_W, time), self.water.salinity(p_W, time)
        out["speed"][rows] = sound.chen_millero(temperature, salinity, gauge) + SOUND_SIGMA * noise(0)
