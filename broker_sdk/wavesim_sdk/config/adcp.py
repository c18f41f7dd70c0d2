"""Declare acoustic Doppler current profilers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_sdk.config.schema import choice, key
from wavesim_sdk.config.sensor_base import SensorConfig
from wavesim_sdk.sensors import ADCP_CELLS


@dataclass(frozen=True)
class AdcpConfig(SensorConfig):
    """Current profiler: the velocity of the water in cells along the z axis of S.

    That axis points down from a hull, or up (attitude 180 0 0) from the bed. The instrument has four Janus beams; a
    cell is measured where all of them reach it. `preset` sets the values of a specific instrument for all keys that
    stay at their defaults.
    """

    rate: float = key("Profiles per second. Each profile comes from one ping.", "frequency", 1.0, low=0.01, high=100.0)
    preset: str = choice(
        "sentinel-v100, -v50, -v20: Teledyne RDI Sentinel V at 307, 492 and 983 kHz.",
        ("sentinel-v100", "sentinel-v50", "sentinel-v20"),
        "sentinel-v50",
    )
    cell: float = key("Height of a cell; 0 m = that of the preset.", "length", 0.0, low=0.0)
    blank: float = key("Blanking distance before the first cell; 0 m = that of the preset.", "length", 0.0, low=0.0)
    range: float = key("Maximum range along the axis; 0 m = that of the preset.", "length", 0.0, low=0.0)
    cells: int = key(
        "Number of cells; 0 = as many as fit into the range.", default=0, low=0, high=ADCP_CELLS, integer=True
    )
    angle: float = key(
        "Angle of the beams from the z axis; 0 deg = that of the preset.", "angle", 0.0, low=0.0, high=1.2
    )
    first: float = key(
        "Azimuth of the first beam, from x towards y. The others follow at intervals of 90 deg.",
        "angle",
        0.7853981633974483,
    )
    sigma: float = key(
        "Noise of a horizontal velocity component in a cell for one ping; 0 m/s = that of the preset (`noise` 0: "
        "none).",
        "speed",
        0.0,
        low=0.0,
    )

    @functools.cached_property
    def resolved(self) -> AdcpConfig:
        """The configuration with the values of its preset for all keys that stay at their defaults."""
        standing = {f.name for f in fields(AdcpConfig) if getattr(self, f.name) == f.default}
        p = replace(self, **{k: v for k, v in PRESETS[self.preset].items() if k in standing})
        fit = max(1, int((p.range - p.blank) / p.cell + 1e-9))
        return replace(p, cells=min(p.cells or fit, ADCP_CELLS))


#: Teledyne RDI Sentinel V, operation manual (2017), table 3: default cell, blank, range; 25 deg. The manual states no noise
#: per ping (its software predicts one); 3 cm/s at these cells is assumed.
PRESETS: dict[str, dict[str, Any]] = {
    "sentinel-v100": {"cell": 4.0, "blank": 1.6, "range": 100.0, "angle": 0.4363323129985824, "sigma": 0.03},
    "sentinel-v50": {"cell": 2.0, "blank": 1.0, "range": 50.0, "angle": 0.4363323129985824, "sigma": 0.03},
    "sentinel-v20": {"cell": 1.0, "blank": 0.4, "range": 20.0, "angle": 0.4363323129985824, "sigma": 0.03},
}
