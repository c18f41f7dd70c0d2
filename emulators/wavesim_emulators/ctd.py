"""CTD: pressure, temperature, conductivity by the paper's formulas (or a volume), salinity by PSS-78."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.base import Emulator, Noise, Rows
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean import seawater
from wavesim_sdk.ocean.water import Water

PRESSURE_SIGMA = 0.01  #: dbar
TEMPERATURE_SIGMA = 0.002  #: C
CONDUCTIVITY_SIGMA = 0.0003  #: S/m


class Ctd(Emulator):
    """Sea water at the body's origin. Noise: 0.01 dbar, 2 mK, 0.3 mS/m (a moored CTD's accuracy)."""

    sensor = "ctd"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.water = Water(loaded)

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W = view.state["p_WB_W"][rows]
        pressure = self.water.pressure(p_W) + PRESSURE_SIGMA * noise(0)
        temperature = self.water.temperature(p_W, view.time_ns * 1e-9) + TEMPERATURE_SIGMA * noise(1)
        conductivity = self.water.conductivity(p_W, view.time_ns * 1e-9) + CONDUCTIVITY_SIGMA * noise(2)
        gauge = np.maximum(pressure - self.water.world.pressure_0, 0.0)
        out["pressure"][rows], out["temperature"][rows], out["conductivity"][rows] = pressure, temperature, conductivity
        out["salinity"][rows] = seawater.salinity(conductivity, temperature, gauge)
        out["valid"][rows] = p_W[:, 2] >= 0.0
