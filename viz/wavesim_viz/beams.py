"""Origins and directions of instrument beams on a body, for drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_viz.page_content import BeamInfo
from wavesim_world.config.ranging_sensors import (
    EchosounderConfig,
    MultibeamConfig,
    RangeBeam,
    RangerConfig,
    ScannerConfig,
)
from wavesim_world.config.sensors import DvlConfig, SensorConfig

Vector = tuple[float, float, float]
RIM = 8  #: number of rays that represent the edge of a cone


def mounting(sensor: SensorConfig) -> Floats:
    """Return R_BS of an instrument from its mount."""
    roll, pitch, yaw = sensor.attitude
    return frames.rotation(frames.quaternion(roll, pitch, yaw))


def beams(sensor: SensorConfig) -> BeamInfo | None:
    """Return the beams of an instrument: origin and unit vector of each beam in B (``rays``, six values per beam);
    the result is None if the instrument has no beams.

    ``field`` names the instrument value that holds the ranges of the beams. If ``level`` is set, the vectors are in W,
    regardless of the attitude. If ``turning`` is set, the instrument has a single beam, and its value `angle` rotates
    the beam from its vector towards ``axis``.
    """
    level = turning = False
    field = "range"
    match sensor:
        case EchosounderConfig():
            rays, level = _cone(sensor.width), sensor.level
        case RangerConfig():
            rays = _declared(sensor.beam or (RangeBeam(),))
        case ScannerConfig():
            rays, turning = [((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))], True
        case MultibeamConfig():
            rays = _declared(sensor.beam) if sensor.beam else _fan(sensor.beams, sensor.width)
        case DvlConfig():
            rays, field = _declared(sensor.beam) if sensor.beam else _janus(sensor), "ranges"
        case _:
            return None
    R = mounting(sensor)
    at = np.array(sensor.position)
    rays_B = [[*(at + R @ start), *(along if level else R @ along)] for start, along in rays]
    return {
        "field": field,
        "maximum": float(getattr(sensor, "maximum", 0.0)),
        "rays": np.array(rays_B).round(6).ravel().tolist(),
        "level": level,
        "turning": turning,
        "axis": R[:, 1].round(6).tolist(),
    }


Ray = tuple[Sequence[float], Sequence[float]]


def _declared(found: Iterable[RangeBeam]) -> list[Ray]:
    return [(b.position, b.direction) for b in found]


def _cone(width: float) -> list[Ray]:
    """Return unit vectors along the axis and on the edge of a cone around z."""
    start, a = (0.0, 0.0, 0.0), 0.5 * width
    edge = [2.0 * math.pi * k / RIM for k in range(RIM)] if width else []
    rim = [(math.sin(a) * math.cos(b), math.sin(a) * math.sin(b), math.cos(a)) for b in edge]
    return [(start, along) for along in [(0.0, 0.0, 1.0), *rim]]


def _fan(count: int, width: float) -> list[Ray]:
    """Return the directions of beams in the y-z plane, from port to starboard."""
    angles = [width * (k / (count - 1) - 0.5) for k in range(count)]
    return [((0.0, 0.0, 0.0), (0.0, math.sin(a), math.cos(a))) for a in angles]


def _janus(dvl: DvlConfig) -> list[Ray]:
    """Return the directions of four beams around z, 90 degrees apart."""
    rays: list[Ray] = []
    for k in range(4):
        c, s = math.cos(dvl.first + k * math.pi / 2.0), math.sin(dvl.first + k * math.pi / 2.0)
        slope = math.sin(dvl.angle)
        rays.append(((dvl.radius * c, dvl.radius * s, 0.0), (slope * c, slope * s, math.cos(dvl.angle))))
    return rays
