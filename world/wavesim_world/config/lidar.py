"""Declarations of lidars, and presets of commercial instruments."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, fields, replace
from typing import Any

from wavesim_world.config.schema import choice, flag, key
from wavesim_world.config.sensor_base import SensorConfig


@dataclass(frozen=True)
class LidarConfig(SensorConfig):
    """Lidar: a grid of ranges and intensities. Its rows are the channels, from top to bottom; its columns run from port
    to starboard.

    The beams detect hulls, obstacles, meshes and the shore above the water. If `preset` selects an instrument, its
    values replace all keys left at their defaults.
    """

    preset: str = choice(
        "Commercial lidar to imitate. Its values replace the values of all keys left at their defaults. vlp-16: "
        "Velodyne VLP-16. hdl-32e: Velodyne "
        "HDL-32E.",
        ("none", "vlp-16", "hdl-32e"),
        "none",
    )
    channels: int = key(
        "Number of channels of the lidar: beams at different elevations.", default=16, low=2, high=256, integer=True
    )
    columns: int = key("Number of columns in a scan of the lidar.", default=900, low=2, high=4096, integer=True)
    sector: float = key(
        "Horizontal field of view of the lidar. With 360 deg, the last column is one step before the first; otherwise "
        "the first and the last column are at the edges.",
        "angle",
        6.283185307179586,
        low=0.01,
        high=6.283185307179586,
    )
    upper: float = key(
        "Elevation of the top channel above the x-y plane of the sensor frame S.",
        "angle",
        0.2617993877991494,
        low=-1.57,
        high=1.57,
    )
    lower: float = key(
        "Elevation of the bottom channel above the x-y plane of the sensor frame S.",
        "angle",
        -0.2617993877991494,
        low=-1.57,
        high=1.57,
    )
    minimum: float = key("Minimum range of the lidar; closer surfaces are not detected.", "length", 0.5, low=0.0)
    range: float = key(
        "Maximum range of the lidar, for a surface with the reflectivity `minimum_reflectivity`.",
        "length",
        100.0,
        low=0.1,
        high=1000.0,
    )
    sigma: float = key("Standard deviation of the range error.", "length", 0.03, low=0.0)
    beam_drop_out: float = key(
        "Probability that a beam of the lidar is missing from a scan.", default=0.0, low=0.0, high=1.0
    )
    minimum_reflectivity: float = key(
        "Smallest reflectivity that the lidar detects at its maximum range, at normal incidence. At a range r, the "
        "smallest detectable reflectivity is (r/range)^2 times this value.",
        default=0.1,
        low=0.0,
        high=1.0,
    )
    surface_reflectivity: float = key(
        "Reflectivity of the water surface for the light of the lidar. 0: the surface absorbs the beams, and the lidar "
        "does not detect it.",
        default=0.0,
        low=0.0,
        high=1.0,
    )
    extinction: float = key(
        "Extinction coefficient of the water for the light of a submerged lidar. The default is the absorption of infrared "
        "light of 905 nm by pure water; typical values for green light are 0.05 to 0.5 1/m.",
        "inverse length",
        7.0,
        low=0.0,
    )
    sweep: bool = flag(
        "Whether the lidar measures the columns one after the other, so that its motion during a scan distorts the scan "
        "(yes), or all at the end of the scan (no).",
        True,
    )
    log: int = key(
        "Number n: every n-th lidar scan is logged, if the run has a log; 0 = no scans are logged.",
        default=1,
        low=0,
        high=1_000_000,
        integer=True,
    )

    @functools.cached_property
    def resolved(self) -> LidarConfig:
        """Copy of this configuration in which the preset replaces the value of every key left at its default."""
        standing = {f.name for f in fields(LidarConfig) if getattr(self, f.name) == f.default}
        return replace(self, **{k: v for k, v in LIDAR_PRESETS[self.preset].items() if k in standing})

    @property
    def azimuths(self) -> tuple[float, float]:
        """Azimuths of the first and the last column, from the x axis of S towards its y axis."""
        whole = self.sector > 2.0 * math.pi - 1e-9
        half = 0.5 * self.sector * ((self.columns - 1) / self.columns if whole else 1.0)
        return -half, half


_DEG = math.pi / 180.0
# VLP-16 (data sheet 63-9229, manual 63-9243): 16 channels of 2 deg from +15 to -15 deg, 100 m, 3 cm, 5 to 20 turns per
# second, 0.2 deg at 10. HDL-32E (data sheet 97-0038): 32 channels of 1.33 deg from +10.67 to -30.67 deg, 100 m, 2 cm,
# 695,000 points per second, which are 2170 columns at 10 turns per second. The sheets give no reflectivity for the
# maximum range; 10 % is assumed, and a minimum range of 1 m.
LIDAR_PRESETS: dict[str, dict[str, Any]] = {
    "none": {},
    "vlp-16": {"columns": 1800, "minimum": 1.0},
    "hdl-32e": {
        "channels": 32,
        "columns": 2170,
        "upper": 10.67 * _DEG,
        "lower": -30.67 * _DEG,
        "minimum": 1.0,
        "sigma": 0.02,
    },
}
