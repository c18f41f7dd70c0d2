"""Settings of an S2C modem, and the commands that read and change them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LEVELS_DB = (0.0, -6.0, -12.0, -20.0)  #: source level of ``!L0`` to ``!L3`` relative to full power
#: settings by command, with their lowest and highest values; settings without an effect are accepted (see the help)
LIMITS = {
    "!L": (0, 3),
    "!G": (0, 1),
    "!RC": (0, 50),
    "!RI": (0, 255),
    "!RT": (500, 12000),
    "!ZI": (0, 3600),
    "!AM": (2, 254),
    "!RP": (0, 1),
    "!C": (0, 2),
    "!CA": (1300, 1700),
    "@ZU": (0, 1),
    "@ZX": (0, 1),
}
DEFAULTS = {
    "!L": 0,
    "!G": 0,
    "!RC": 3,
    "!RI": 0,
    "!RT": 2000,
    "!ZI": 0,
    "!AM": 254,
    "!RP": 0,
    "!C": 2,
    "@ZU": 1,
    "@ZX": 0,
}
_SETTING = re.compile(r"([!@][A-Z]+)(\d{1,9})")


class S2cCommandError(Exception):
    """Raised for a command that the modem refuses. The text of the exception is the modem's answer."""


@dataclass
class S2cSettings:
    """Settings of an S2C modem."""

    address: int
    sound_speed: int
    values: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reset()

    def __getitem__(self, name: str) -> int:
        return self.values[name]

    def reset(self) -> None:
        """Restore the initial settings."""
        self.values = {**DEFAULTS, "!CA": self.sound_speed}

    def change(self, command: str) -> bool:
        """Apply a command that changes a setting. Return False if the command does not change a setting. Raises
        S2cCommandError if the value is invalid.
        """
        match = _SETTING.fullmatch(command)
        if match is None:
            return False
        name, value = match[1], int(match[2])
        if name == "!AL":
            if value != self.address:
                raise S2cCommandError("ERROR OUT OF RANGE")
            return True
        if name not in LIMITS:
            return False
        low, high = LIMITS[name]
        if not low <= value <= high:
            raise S2cCommandError("ERROR OUT OF RANGE")
        self.values[name] = value
        return True

    def read(self, command: str) -> str | None:
        """Return the value that a command such as ``?CA`` reads, or None if there is no such setting."""
        if command == "?AL":
            return str(self.address)
        for mark in "!@":
            if command[:1] == "?" and mark + command[1:] in self.values:
                return str(self.values[mark + command[1:]])
        return None

    def lines(self) -> list[str]:
        """Return all settings, one per line."""
        return [f"!AL {self.address}", *(f"{name} {value}" for name, value in self.values.items())]
