"""Gamepads and joysticks on Linux, read from their device files without other packages.

``/dev/input/js*`` delivers the events of the joystick API: records of 8 bytes (``struct js_event``).
``/dev/input/event*`` delivers input events (``struct input_event``). A pipe or a file with the same records also works.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from wavesim_sdk.errors import ConfigError

__all__ = ["Gamepad", "with_dead_zone"]

_JS = struct.Struct("=IhBB")  # time in ms, value, type, number
_EVENT = struct.Struct("@llHHi")  # time in s and us, type, code, value
_JS_BUTTON, _JS_AXIS, _JS_INITIAL = 1, 2, 0x80
_KEY, _ABSOLUTE, _SYNCHRONISE, _DROPPED = 1, 3, 0, 3
_ABS_INFO = struct.Struct("@6i")  # value, minimum, maximum, and three more
_MOST_AXES = 64
FULL = 32767.0  #: value of a fully deflected axis in the joystick API


def with_dead_zone(value: float, dead_zone: float) -> float:
    """Return an axis value from -1 to 1 that is 0 inside the dead zone around the middle."""
    return 0.0 if abs(value) <= dead_zone else max(-1.0, min(1.0, value))


class Gamepad:
    """Current axes (from -1 to 1) and buttons of a gamepad, read by a thread.

    The axes of the joystick API are numbered from 0; the axes of input events have their Linux codes (ABS_X is 0, ABS_Y
    is 1, ABS_RX is 3, ABS_RY is 4), and so do the buttons of input events. When the device is unplugged, every axis
    returns to 0 and :attr:`is_lost` is true.
    """

    def __init__(self, path: str | Path, events: str = "") -> None:
        """``events`` is the format of the events, ``js`` or ``evdev``; if it is empty, the format follows from the name
        of the device. Opening a pipe waits for its writer.

        Raises ConfigError if the device cannot be opened.
        """
        self.path = Path(path)
        self.events = events or ("evdev" if self.path.name.startswith("event") else "js")
        self.axes: dict[int, float] = {}
        self.buttons: set[int] = set()
        self.is_lost = False
        self._ranges: dict[int, tuple[float, float]] = {}
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ConfigError(f"cannot open the gamepad: {error.strerror}", str(path)) from None
        threading.Thread(target=self._run, name="gamepad", daemon=True).start()

    def axis(self, number: int) -> float:
        """Return an axis from -1 to 1. An axis that has not moved yet is 0."""
        return self.axes.get(number, 0.0)

    def _run(self) -> None:
        record = _JS if self.events == "js" else _EVENT
        take = self._take_js if self.events == "js" else self._take_event
        try:
            for fields in self._records(record):
                take(*fields)
        finally:
            self.axes, self.buttons, self.is_lost = {}, set(), True
            os.close(self._fd)

    def _records(self, record: struct.Struct) -> Iterator[tuple[int, ...]]:
        """Yield the records of the device until it is unplugged."""
        rest = b""
        while True:
            try:
                data = os.read(self._fd, 64 * record.size)
            except OSError:  # ENODEV: unplugged
                return
            if not data:
                return
            rest += data
            whole = len(rest) - len(rest) % record.size
            yield from record.iter_unpack(rest[:whole])
            rest = rest[whole:]

    def _take_js(self, _: int, value: int, kind: int, number: int) -> None:
        if kind & ~_JS_INITIAL == _JS_AXIS and number < _MOST_AXES:
            self.axes[number] = max(-1.0, value / FULL)
        elif kind & ~_JS_INITIAL == _JS_BUTTON:
            (self.buttons.add if value else self.buttons.discard)(number)

    def _take_event(self, _: int, __: int, kind: int, code: int, value: int) -> None:
        if kind == _ABSOLUTE and code < _MOST_AXES:
            low, high = self._range(code)
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            self.axes[code] = max(-1.0, min(1.0, (value - middle) / half))
        elif kind == _KEY:
            (self.buttons.add if value else self.buttons.discard)(code)
        elif kind == _SYNCHRONISE and code == _DROPPED:
            # Linux lost events, such as the release of a stick or button: ask for the current axes, and hold no button
            self.buttons.clear()
            for number in list(self.axes):
                self.axes[number] = 0.0
                if (info := self._info(number)) is not None:
                    self._take_event(0, 0, _ABSOLUTE, number, info[0])

    def _range(self, code: int) -> tuple[float, float]:
        """Return the smallest and largest value of an axis: as reported by the device or, for a pipe, the limits of a
        16-bit integer.
        """
        if code not in self._ranges:
            info = self._info(code)
            known = info is not None and info[2] > info[1]
            self._ranges[code] = (float(info[1]), float(info[2])) if info is not None and known else (-FULL, FULL)
        return self._ranges[code]

    def _info(self, code: int) -> tuple[int, ...] | None:
        request = 0x80000000 | _ABS_INFO.size << 16 | ord("E") << 8 | 0x40 + code  # EVIOCGABS
        try:
            return _ABS_INFO.unpack(fcntl.ioctl(self._fd, request, bytes(_ABS_INFO.size)))
        except OSError:  # a pipe or a file
            return None
