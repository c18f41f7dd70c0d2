"""Sizes of the frames from the sonars, cameras, lidars and hydrophones in a configuration, and the rings that hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wavesim_sdk.frame_rings import FrameRings
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, PIXEL_3D, RECORD, SOUNDING_COLUMNS, sample_type
from wavesim_world.config.hydrophone import HydrophoneArrayConfig
from wavesim_world.config.lidar import LidarConfig
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.ranging_sensors import PRESET, CameraConfig, SonarConfig
from wavesim_world.sonars.presets import Preset, find_preset

MAX_BYTES = 4 << 20  #: maximum size of the payload of a frame, bytes
MAX_BINS = 2000
#: configuration of an instrument that produces frames
Imager = SonarConfig | CameraConfig | LidarConfig | HydrophoneArrayConfig


def resolve_preset(s: SonarConfig) -> Preset:
    """Return the preset of a sonar, with the values that its configuration replaces."""
    p = find_preset(s.preset)
    changes: dict[str, Any] = {"range": s.range or p.range, "rate": s.rate}
    changes |= {"beams": s.beams} if s.beams else {}
    changes |= {"sector": s.sector} if s.sector else {}
    changes |= {"tilt": s.tilt} if s.tilt != PRESET else {}
    changes |= {key: value for key in ("rows", "height", "minimum") if (value := getattr(s, key))}
    bins = s.bins or p.bins or min(MAX_BINS, max(16, round(changes["range"] / p.resolution)))
    if not s.bins:  # as many as the ring can hold, with whatever else is configured
        bins = max(1, min(bins, MAX_BYTES // ((s.beams or p.beams) * _sample_bytes(s))))
    return replace(p, bins=bins, **changes)


def _sample_bytes(s: SonarConfig) -> int:
    """Return the size of a sample and its labels in bytes."""
    return s.bits // 8 + (4 if s.truth else 0)


def payload_bytes(s: Imager) -> int:
    """Return the size of the payload of a frame in bytes."""
    if isinstance(s, HydrophoneArrayConfig):
        return len(s.element_positions) * s.block_samples * np.dtype(sample_type(s.bits)).itemsize
    if isinstance(s, LidarConfig):
        return s.resolved.channels * s.resolved.columns * PIXEL_3D.itemsize
    if isinstance(s, CameraConfig):
        return s.width * s.height * (3 + (4 if s.depth else 0) + (4 if s.truth else 0))
    p = resolve_preset(s)
    if p.kind == "bathymetry":
        return p.beams * len(SOUNDING_COLUMNS) * 8
    if p.kind == "3d":
        return p.beams * p.rows * (PIXEL_3D.itemsize + (4 if s.truth else 0))
    return p.beams * p.bins * _sample_bytes(s)


def ring_slot_bytes(sonars: list[Imager]) -> int:
    """Return the slot size of a ring in bytes: large enough for one frame from any of these instruments."""
    most = max((payload_bytes(s) for s in sonars), default=0)
    return (RECORD.itemsize + most + 63) & ~63


def create_rings(loaded: LoadedConfig, server: str) -> None:
    """Create a server's frame rings if its configuration has sonars, cameras, lidars or hydrophones. Raises OSError on failure."""
    rows = sum(loaded.sensor_rows.get(type_, 0) for type_ in FRAME_SENSOR_TYPES)
    if rows:
        suites = [loaded.suite(b) for b in loaded.config.fleet.bodies] + [
            loaded.suite_of_model(m) for m in loaded.models.values()
        ]
        declared = [i.parameters for suite in suites for i in suite if isinstance(i.parameters, Imager)]
        everybody = loaded.config.fleet.sensors
        declared += (
            [i.parameters for i in everybody.instruments if isinstance(i.parameters, Imager)] if everybody else []
        )
        lidar = loaded.sensor_rows.get("sonar", 0)
        first = lidar, lidar + loaded.sensor_rows.get("lidar", 0)
        FrameRings.create(server, rows, ring_slot_bytes(declared), loaded.config.shared.group, first)
