"""Legacy message MTData of an Xsens MTi, which SetOutputMode selects instead of MTData2.

The output mode and the output settings determine the content of the message. Quantities that the body does not measure
are 0. The local frame is ENU (assumed), or NED if bit 31 of the settings is set.
"""

from __future__ import annotations

import struct

from wavesim_devices.xsens_measurement import MtiMeasurement

MT_DATA = 0x32
SET_MODE, SET_SETTINGS, SET_PERIOD, SET_SKIP, SET_SYNC_IN = 0xD0, 0xD2, 0x04, 0xD4, 0xD6
#: bits of the output mode
TEMPERATURE, CALIBRATED, ORIENTATION, POSITION, VELOCITY, STATUS = 0x1, 0x2, 0x4, 0x10, 0x20, 0x800
MODES = TEMPERATURE | CALIBRATED | ORIENTATION | POSITION | VELOCITY | STATUS
#: bits of the output settings: counter, time, angles, quantities that are omitted from the calibrated data, and frame
COUNTER, UTC_TIME, EULER, WITHOUT, NED = 0x1, 0x2, 0x4, {0x10: 0x4020, 0x20: 0x8020, 0x40: 0xC020}, 0x80000000
#: accepted settings; those of the analogue inputs have no effect, because the output mode cannot select the inputs
SETTINGS = COUNTER | UTC_TIME | EULER | sum(WITHOUT) | 0xC00 | NED
TICKS_PER_S = 115_200  #: number of ticks per second; the period is set in ticks
MIN_PERIOD = 288  #: minimum period, for a rate of 400 Hz


class LegacyOutput:
    """Mode, settings and period of the legacy message."""

    def __init__(self) -> None:
        self.is_selected = False
        self.mode, self.settings, self.period, self.skipped = 0, COUNTER, 1152, 0

    def set_mode(self, content: bytes) -> bytes | None:
        """Select the legacy message and its quantities. Return the answer, or None if the mode is invalid."""
        if not content:
            return struct.pack(">H", self.mode)
        if len(content) != 2 or int.from_bytes(content, "big") & ~MODES:
            return None
        self.mode, self.is_selected = int.from_bytes(content, "big"), True
        return b""

    def set_settings(self, content: bytes) -> bytes | None:
        """Set the output settings. Return the answer, or None if the settings are invalid."""
        if not content:
            return struct.pack(">I", self.settings)
        if len(content) != 4 or int.from_bytes(content, "big") & ~SETTINGS:
            return None
        self.settings = int.from_bytes(content, "big")
        return b""

    def set_period(self, content: bytes) -> bytes | None:
        """Set the period in ticks. Return the answer, or None if the period is invalid."""
        if not content:
            return struct.pack(">H", self.period)
        if len(content) != 2 or int.from_bytes(content, "big") < MIN_PERIOD:
            return None
        self.period = int.from_bytes(content, "big")
        return b""

    def set_skip(self, content: bytes) -> bytes | None:
        """Set the number of periods to skip after each message. Return the answer, or None if the number is invalid."""
        if not content:
            return struct.pack(">H", self.skipped)
        if len(content) != 2:
            return None
        self.skipped = int.from_bytes(content, "big")
        return b""

    def number_of_period(self, time_ns: int) -> int:
        """Return the number of the period that contains a given time."""
        return time_ns * TICKS_PER_S // (10**9 * self.period * (self.skipped + 1))

    def content(self, measured: MtiMeasurement) -> bytes:
        """Return the content of a message."""
        frame = 0x4 if self.settings & NED else 0x0
        groups: list[tuple[int, int]] = []  # data identifiers of MTData2, and numbers of values
        if self.mode & TEMPERATURE:
            groups.append((0x0810, 1))
        if self.mode & CALIBRATED:
            groups += [(group, 3) for bit, group in WITHOUT.items() if not self.settings & bit]
        if self.mode & ORIENTATION:
            groups.append((0x2030, 3) if self.settings & EULER else (0x2010, 4))
        if self.mode & POSITION:
            groups += [(0x5040, 2), (0x5020, 1)]
        if self.mode & VELOCITY:
            groups.append((0xD010, 3))
        numbers = [x for group, count in groups for x in measured.numbers(group, frame) or count * (0.0,)]
        data = struct.pack(f">{len(numbers)}f", *numbers)
        for is_wanted, group in (
            (self.mode & STATUS, 0xE010),
            (self.settings & COUNTER, 0x1020),
            (self.settings & UTC_TIME, 0x1010),
        ):
            if is_wanted:
                data += measured.integers(group) or b""
        return data
