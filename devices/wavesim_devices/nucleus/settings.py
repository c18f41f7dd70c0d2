"""Settings of the Nucleus by group, with their limits. A setting that is not emulated accepts only its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class NumberSetting:
    """Setting that is a number between two limits. Its default has the type of the setting."""

    default: float
    low: float
    high: float

    @property
    def limits(self) -> str:
        """Text that states the two limits."""
        return f"[{self.low};{self.high}]"

    def parse(self, text: str) -> float | None:
        """Return the value that a string contains, or None if the string is invalid."""
        try:
            value = type(self.default)(text)
        except ValueError:
            return None
        return value if self.low <= value <= self.high else None


@dataclass(frozen=True)
class Choice:
    """Setting that is one of several words, in quotes."""

    words: tuple[str, ...]

    @property
    def default(self) -> str:
        """The first word, which is the default."""
        return self.words[0]

    @property
    def limits(self) -> str:
        """Text that states the allowed words."""
        return "[" + ";".join(f'"{w}"' for w in self.words) + "]"

    def parse(self, text: str) -> str | None:
        """Return the word in a quoted string, or None if the string is invalid."""
        word = text.strip('"').upper()
        return word if word in self.words else None


def _stream(default: str, identifier: int) -> dict[str, NumberSetting | Choice]:
    return {
        "DS": Choice((default, "OFF" if default == "ON" else "ON")),
        "DF": NumberSetting(identifier, identifier, identifier),
    }


GROUPS: Mapping[str, Mapping[str, NumberSetting | Choice]] = MappingProxyType(
    {
        "MISSION": {
            "POFF": NumberSetting(9.5, 0.0, 11.0),
            "LONG": NumberSetting(9999.0, -180.0, 9999.0),
            "LAT": NumberSetting(9999.0, -90.0, 9999.0),
            "DECL": NumberSetting(0.0, -90.0, 90.0),
            "RANGE": NumberSetting(50.0, 1.0, 50.0),
            "BD": NumberSetting(0.1, 0.1, 5.0),
            "SV": NumberSetting(0.0, 0.0, 1900.0),
            "SA": NumberSetting(35.0, 0.0, 50.0),
        },
        "INST": {
            "TYPE": Choice(("NUCLEUS1000",)),
            "ROTXY": NumberSetting(0.0, 0.0, 0.0),
            "ROTYZ": NumberSetting(0.0, 0.0, 0.0),
            "ROTXZ": NumberSetting(0.0, 0.0, 0.0),
            "LED": Choice(("ON", "OFF")),
        },
        "AHRS": {"FREQ": NumberSetting(10, 1, 100), "MODE": NumberSetting(0, 0, 0), **_stream("ON", 210)},
        "FIELDCAL": {"MODE": NumberSetting(1, 1, 1)},
        "BT": {
            "MODE": Choice(("NORMAL",)),
            "VR": NumberSetting(5.0, 5.0, 5.0),
            "WT": Choice(("OFF", "ON")),
            "PL": NumberSetting(-2.0, -2.0, -2.0),
            "PLMODE": Choice(("MAX",)),
            **_stream("ON", 180),
        },
        "WT": {"MODE": Choice(("AUTO",))},
        "ALTI": {"PL": NumberSetting(0.0, 0.0, 0.0), **_stream("ON", 170)},
        "TRIG": {
            "SRC": Choice(("INTERNAL", "COMMAND")),
            "FREQ": NumberSetting(2, 1, 8),
            "ALTI": NumberSetting(1, 1, 1),
        },
        "MAG": {"FREQ": NumberSetting(10, 1, 75), "METHOD": Choice(("OFF",)), **_stream("ON", 135)},
        "IMU": {"FREQ": NumberSetting(100, 10, 100), **_stream("OFF", 130)},
        "NAV": {"FREQ": NumberSetting(10, 1, 100), **_stream("OFF", 220)},
    }
)
Values = dict[str, dict[str, float | str]]


def default_values() -> Values:
    """Return the factory settings."""
    return {group: {key: limit.default for key, limit in keys.items()} for group, keys in GROUPS.items()}


def text_of(value: float | str) -> str:
    """Return a value in the format of a reply."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:.2f}" if isinstance(value, float) else str(value)
