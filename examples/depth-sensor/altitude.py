"""Custom sensor in thirty lines: height above the bottom, with a scale error from the configuration."""

from wavesim_emulators.base import Batch, Emulator
from wavesim_sdk.arrays import Record
from wavesim_sdk.sensors import sensor_table, value
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import OtherSensorConfig
from wavesim_world.ocean.bed import sea_bed

TABLE = sensor_table("altitude", "Height above the bottom.", [value("height", "m", "Straight down.")])


class Altitude(Emulator):
    """Altimeter with 5 cm of noise and a scale error: `scale` is the factor by which the height is multiplied."""

    sensor = "altitude"

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__(loaded)
        self.bed = sea_bed(loaded)

    def prepare(self, parameters: OtherSensorConfig) -> float:
        return float({p.name: p.value for p in parameters.parameter}.get("scale", "1"))

    def measure(self, now: Batch, out: Record) -> None:
        p = now.p_WS_W
        out["height"] = now.prepared * (self.bed(p[:, 0], p[:, 1]) - p[:, 2]) + 0.05 * now.noise(0)
