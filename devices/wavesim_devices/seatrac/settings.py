"""Settings of a SeaTrac beacon: the block of 110 bytes that the host reads and writes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from wavesim_devices.seatrac.messages import SETTINGS_BYTES

#: offset and struct format of each setting that has an effect
_STATUS_MODE, _STATUS_FIELDS, _ENVIRONMENT, _SOUND_SPEED = (0, "B"), (1, "B"), (28, "B"), (35, "H")
_TRANSCEIVER, _BEACON, _RANGE_TIMEOUT, _RESPONSE_TIME = (95, "B"), (96, "B"), (97, "H"), (99, "H")
#: period in s of each status mode; 0 = the beacon sends its status only on request
STATUS_PERIODS = (0.0, 1.0, 0.4, 0.2, 0.1, 0.04)
ALL_FIELDS = 0x3F
_AUTOMATIC_SPEED, FIX_MESSAGES = 0x01, 0x40


@dataclass
class Settings:
    """Settings, stored as the block that the host reads and writes."""

    block: bytearray

    @classmethod
    def default(cls, beacon: int) -> Settings:
        """Return the settings of a new beacon."""
        settings = cls(bytearray(SETTINGS_BYTES))
        settings.block[2:4] = bytes((0x0D, 0x0D))  # baud rates: 115200
        struct.pack_into("<H", settings.block, 33, 350)  # salinity, 0.1
        for (offset, code), value in (
            (_STATUS_MODE, 1),
            (_STATUS_FIELDS, 0x03),
            (_ENVIRONMENT, _AUTOMATIC_SPEED),
            (_SOUND_SPEED, 15000),
            (_TRANSCEIVER, 0x01),
            (_BEACON, beacon),
            (_RANGE_TIMEOUT, 1000),
            (_RESPONSE_TIME, 10),
        ):
            struct.pack_into(f"<{code}", settings.block, offset, value)
        return settings

    def copy(self) -> Settings:
        """Return a copy of the settings."""
        return Settings(bytearray(self.block))

    def _value(self, place: tuple[int, str]) -> int:
        return int(struct.unpack_from(f"<{place[1]}", self.block, place[0])[0])

    def is_valid(self, beacon: int) -> bool:
        """Return whether the beacon with the identifier ``beacon`` accepts the settings. They must contain this
        identifier.
        """
        return (
            len(self.block) == SETTINGS_BYTES
            and self._value(_BEACON) == beacon
            and self._value(_STATUS_MODE) < len(STATUS_PERIODS)
            and 100 <= self._value(_RANGE_TIMEOUT) <= 3000
            and 10 <= self._value(_RESPONSE_TIME) <= 1000
            and (bool(self._value(_ENVIRONMENT) & _AUTOMATIC_SPEED) or self._value(_SOUND_SPEED) >= 10000)
        )

    @property
    def status(self) -> tuple[int, int]:
        """Fields and mode of the status message."""
        return self._value(_STATUS_FIELDS), self._value(_STATUS_MODE)

    @status.setter
    def status(self, value: tuple[int, int]) -> None:
        self.block[1], self.block[0] = value

    @property
    def fix_messages(self) -> bool:
        """Whether the beacon reports the fix of each message that it receives."""
        return bool(self._value(_TRANSCEIVER) & FIX_MESSAGES)

    @property
    def range_timeout(self) -> float:
        """Maximum range in m from which the beacon expects answers."""
        return float(self._value(_RANGE_TIMEOUT))

    def sound_speed(self, water: float) -> float:
        """Return the sound speed in m/s with which the beacon computes ranges. ``water`` is the true sound speed."""
        return water if self._value(_ENVIRONMENT) & _AUTOMATIC_SPEED else 0.1 * self._value(_SOUND_SPEED)
