"""Variants of the Water Linked DVL, its range modes, and the settings that a host changes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

WATER_TRACK = "wt"
WATER_RATE = 2.0  #: rate in Hz at which the velocity through the water is measured
WATER_SPEED = 7.5  #: maximum speed through the water in m/s
_RANGE_MODE = re.compile(r"auto|wt|=([0-4])|([0-4])<=([0-4])")


@dataclass(frozen=True)
class Variant:
    """Variant of the DVL."""

    name: str
    maximum: float  #: maximum altitude in m
    maximum_speed: float  #: maximum speed in m/s


VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {"A50": Variant("A50", 50.0, 3.75), "A125": Variant("A125", 125.0, 9.0)}
)


@dataclass(frozen=True)
class RangeMode:
    """Range mode of the DVL: the altitudes in m at which it has bottom lock, and the ping rate in Hz."""

    lowest: float
    highest: float
    rate: float


RANGE_MODES = (
    RangeMode(0.05, 0.6, 15.0),
    RangeMode(0.3, 3.0, 10.0),
    RangeMode(1.5, 14.0, 6.0),
    RangeMode(7.7, 36.0, 8.0),
    RangeMode(15.0, math.inf, 4.0),
)


@dataclass(frozen=True)
class DvlSettings:
    """Settings that a host can change. The fields have the names that the protocol uses."""

    speed_of_sound: float = 1500.0
    acoustic_enabled: bool = True
    dark_mode_enabled: bool = False
    mounting_rotation_offset: float = 0.0
    range_mode: str = "auto"
    periodic_cycling_enabled: bool = True

    @property
    def modes(self) -> range:
        """Numbers of the allowed range modes; empty if the DVL measures the velocity through the water."""
        if self.range_mode == WATER_TRACK:
            return range(0)
        found = _RANGE_MODE.fullmatch(self.range_mode)
        if found is None or self.range_mode == "auto":
            return range(len(RANGE_MODES))
        fixed, first, last = found.groups()
        return range(int(fixed or first), int(fixed or last) + 1)


def _number(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}")
    return value


def changed_settings(old: DvlSettings, new: Mapping[str, Any]) -> DvlSettings:
    """Return the settings with some of them replaced. Raises ValueError, naming the value, if a value is invalid."""
    checked: dict[str, Any] = {}
    for name, value in new.items():
        if name == "speed_of_sound":
            checked[name] = _number(name, value, 1000.0, 2000.0)
        elif name == "mounting_rotation_offset":
            checked[name] = _number(name, value, 0.0, 360.0)
        elif name == "range_mode":
            found = _RANGE_MODE.fullmatch(value) if isinstance(value, str) else None
            if found is None or (found[2] or "") > (found[3] or ""):
                raise ValueError("range_mode must be auto, =a, a<=b (0 to 4) or wt")
            checked[name] = value
        elif name in DvlSettings.__dataclass_fields__:
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be true or false")
            checked[name] = value
        else:
            raise ValueError(f"unknown parameter {name}")
    return replace(old, **checked)
