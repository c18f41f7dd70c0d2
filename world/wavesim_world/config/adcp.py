"""Declarations of acoustic Doppler current profilers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_sdk.sensors import ADCP_CELLS
from wavesim_world.config.schema import choice, key
from wavesim_world.config.sensor_base import SensorConfig


@dataclass(frozen=True)
class AdcpConfig(SensorConfig):
    """Acoustic Doppler current profiler (ADCP): the velocity of the water in cells along the z axis of the sensor frame
    S.

    The z axis of a current profiler points down if the instrument is mounted on a hull, or up (attitude 180 0 0) if it
    is placed on the sea bed. The profiler has four Janus beams. A cell is valid if at least three of them measure it.
    If `preset` selects a specific instrument, its values replace the values of all keys left at their defaults.
    """

    rate: float = key(
        "Number of current profiles per second. Each profile comes from one ping.",
        "frequency",
        1.0,
        low=0.01,
        high=100.0,
    )
    preset: str = choice(
        "Commercial current profiler to imitate. Its values replace the values of all keys left at their defaults. "
        "sentinel-v100, "
        "-v50, -v20: Teledyne RDI Sentinel V at 307, 492 and 983 kHz.",
        ("sentinel-v100", "sentinel-v50", "sentinel-v20"),
        "sentinel-v50",
    )
    cell: float = key("Height of each cell in the profile; 0 m = the preset's value.", "length", 0.0, low=0.0)
    blank: float = key(
        "Blanking distance from the current profiler to the first cell; 0 m = the preset's value.",
        "length",
        0.0,
        low=0.0,
    )
    range: float = key(
        "Maximum range of the current profiler along the z axis of the sensor frame S; 0 m = the preset's value.",
        "length",
        0.0,
        low=0.0,
    )
    cells: int = key(
        "Number of cells in the profile; 0 = as many as fit within the range.",
        default=0,
        low=0,
        high=ADCP_CELLS,
        integer=True,
    )
    angle: float = key(
        "Angle between the beams of the current profiler and the z axis of the sensor frame S; 0 deg = the preset's "
        "value.",
        "angle",
        0.0,
        low=0.0,
        high=1.2,
    )
    first: float = key(
        "Azimuth of the current profiler's first beam, from the x axis of the sensor frame S towards its y "
        "axis. The other beams follow at intervals of 90 deg.",
        "angle",
        0.7853981633974483,
    )
    sigma: float = key(
        "Standard deviation of the noise in a horizontal velocity component of a cell, for one ping; 0 m/s = the "
        "preset's value. For no noise, set `noise` to 0.",
        "speed",
        0.0,
        low=0.0,
    )

    @functools.cached_property
    def resolved(self) -> AdcpConfig:
        """Copy of this configuration in which the preset replaces the value of every key left at its default."""
        standing = {f.name for f in fields(AdcpConfig) if getattr(self, f.name) == f.default}
        p = replace(self, **{k: v for k, v in PRESETS[self.preset].items() if k in standing})
        fit = max(1, int((p.range - p.blank) / p.cell + 1e-9))
        return replace(p, cells=min(p.cells or fit, ADCP_CELLS))


#: Values of each current profiler preset: cell height, blanking distance and range in m, beam angle in rad, noise per
#: ping in m/s.
# Teledyne RDI Sentinel V, operation manual (2017), table 3: default cell, blank, range; 25 deg. The manual states no noise
# per ping (its software predicts one); 3 cm/s at these cells is assumed.
PRESETS: dict[str, dict[str, Any]] = {
    "sentinel-v100": {"cell": 4.0, "blank": 1.6, "range": 100.0, "angle": 0.4363323129985824, "sigma": 0.03},
    "sentinel-v50": {"cell": 2.0, "blank": 1.0, "range": 50.0, "angle": 0.4363323129985824, "sigma": 0.03},
    "sentinel-v20": {"cell": 1.0, "blank": 0.4, "range": 20.0, "angle": 0.4363323129985824, "sigma": 0.03},
}
