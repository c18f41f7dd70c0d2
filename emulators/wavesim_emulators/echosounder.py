"""Echosounder: distance to the bottom, straight down from the body's origin."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.base import Emulator, Noise, Rows
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean.bed import sea_bed

SIGMA = 0.02  #: m


class Echosounder(Emulator):
    """Depth of the bed (the paper's formula, or soundings) minus the body's depth. Noise 2 cm."""

    sensor = "echosounder"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.bed = sea_bed(loaded)

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p_W = view.state["p_WB_W"][rows]
        distance = self.bed(p_W[:, 0], p_W[:, 1]) - p_W[:, 2]
        out["range"][rows] = distance + SIGMA * noise(0)
        good = np.isfinite(distance) & (distance > 0.0) & (distance <= self.parameters.maximum)
        out["valid"][rows] = good & (p_W[:, 2] >= -0.5)
