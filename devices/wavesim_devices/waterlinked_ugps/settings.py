"""Settings of the Underwater GPS, and limits of the content that a host sends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

from wavesim_devices.json_fields import ChoiceField, Fields, NumberField

MAX_CHANNEL = 32
SOURCES = ("onboard", "static", "external")
LOCATORS = ("d1", "a1", "s1", "p1", "u1")
EXTERNAL_DEPTH = "a1"  #: type of a locator without a depth sensor
_ANY = NumberField(-1e9, 1e9)
_LATITUDE, _LONGITUDE, _ANGLE = NumberField(-90.0, 90.0), NumberField(-180.0, 180.0), NumberField(-360.0, 360.0)
ANTENNA: Fields = MappingProxyType(
    {
        "x": NumberField(-1000.0, 1000.0),
        "y": NumberField(-1000.0, 1000.0),
        "depth": NumberField(0.1, 10.0),
        "antenna_rotation": NumberField(-180.0, 180.0),
    }
)
GENERIC: Fields = MappingProxyType(
    {
        "channel": NumberField(1, MAX_CHANNEL, is_whole=True),
        "locator_type": ChoiceField(LOCATORS),
        "gps": ChoiceField(SOURCES),
        "compass": ChoiceField(SOURCES),
        "static_lat": _LATITUDE,
        "static_lon": _LONGITUDE,
        "static_orientation": _ANGLE,
        "search_radius": NumberField(1.0, 300.0),
        "search_direction": _ANGLE,
        "search_sector": NumberField(1.0, 360.0),
        "speed_of_sound": NumberField(1000.0, 2000.0),
    }
)
EXTERNAL_DEPTH_FIELDS: Fields = MappingProxyType({"depth": NumberField(0.0, 1e4), "temp": NumberField(-10.0, 100.0)})
EXTERNAL_MASTER: Fields = MappingProxyType(
    {
        "lat": _LATITUDE,
        "lon": _LONGITUDE,
        "cog": _ANY,
        "fix_quality": _ANY,
        "hdop": _ANY,
        "numsats": _ANY,
        "orientation": _ANGLE,
        "sog": _ANY,
    }
)
EXTERNAL_ORIENTATION: Fields = MappingProxyType({"orientation": _ANGLE})


@dataclass
class AntennaSettings:
    """Position of the antenna relative to the satellite receiver (m), and its depth (m)."""

    x: float = 0.0
    y: float = 0.0
    depth: float = 1.0
    antenna_rotation: float = 0.0  #: rotation of the antenna in deg


@dataclass
class GenericSettings:
    """Other settings of the topside. Angles are in deg."""

    channel: int = 1
    locator_type: str = "u1"
    gps: str = "onboard"
    compass: str = "onboard"
    static_lat: float = 0.0
    static_lon: float = 0.0
    static_orientation: float = 0.0
    search_radius: float = 200.0
    search_direction: float = 0.0
    search_sector: float = 360.0
    speed_of_sound: float = 1500.0

    def contains(self, x: float, y: float) -> bool:
        """Return whether a position relative to the antenna (m) is inside the search area."""
        off = (math.degrees(math.atan2(y, x)) - self.search_direction + 180.0) % 360.0 - 180.0
        return math.hypot(x, y) <= self.search_radius and abs(off) <= self.search_sector / 2.0
