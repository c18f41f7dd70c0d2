"""Directions in the level frame of a body. This frame is horizontal and has the heading of the body."""

from __future__ import annotations

import math

Point = tuple[float, float, float]  #: coordinates of a point: forward, to starboard and down


def level_direction(azimuth: float, elevation: float, roll: float, pitch: float) -> Point:
    """Return the direction of an arrival in the level frame that has the heading of the body."""
    forward, starboard = math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth)
    down = math.sin(elevation)
    starboard, down = (
        math.cos(roll) * starboard - math.sin(roll) * down,
        math.sin(roll) * starboard + math.cos(roll) * down,
    )
    return (
        math.cos(pitch) * forward + math.sin(pitch) * down,
        starboard,
        math.cos(pitch) * down - math.sin(pitch) * forward,
    )
