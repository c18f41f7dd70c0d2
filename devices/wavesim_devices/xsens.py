"""Virtual Xsens MTi with MTData2 or legacy MTData messages. It reports the values of a body's ``ahrs``, ``imu`` and
other sensors.

A message consists of FA FF, identifier, length (FF and a u16 if it exceeds 254), content, and a check byte that makes
the sum of all bytes after FA equal to 0 (modulo 256). Numbers are big-endian. The identifier of an answer is that of
the command plus 1. The housing is mounted upright: its frame S is x forward, y to port, z up. Orientation and velocity
are in the local frame that the data identifier selects: ENU, NED or NWU.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from wavesim_devices import xsens_legacy as legacy
from wavesim_devices.ports import Bytes
from wavesim_devices.xsens_measurement import LOCAL, MtiMeasurement
from wavesim_sdk.broker import Step

TYPES = ("ahrs", "imu", "magnetometer", "gps", "ctd", "pressure")  #: sensor types that the MTi uses
DEVICE_ID, PRODUCT, FIRMWARE = 0x07700001, b"MTi-G-710-2A8G4    ", (1, 12, 0)
MAX_CONTENT = 8192  #: maximum length in bytes of the content of a message
GO_TO_MEASUREMENT, RESET, GO_TO_CONFIG, ERROR, MT_DATA2, WAKE_UP = 0x10, 0x40, 0x30, 0x42, 0x36, 0x3E
BAD_MESSAGE, BAD_PARAMETER = 0x04, 0x21
MAX_RATE = 400  #: maximum output rate in Hz
#: codes of the rates that SetBaudrate accepts
BAUD_CODES = (0x80, 0x0A, 0x0C, 0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0B, 0x0D)
DEFAULT_OUTPUTS = ((0x1020, 0xFFFF), (0x1060, 0xFFFF), (0x2010, 100), (0x8020, 100), (0x4020, 100), (0xE020, 0xFFFF))


def message(identifier: int, content: bytes = b"") -> bytes:
    """Return a message with its check byte."""
    size = struct.pack(">B", len(content)) if len(content) < 255 else struct.pack(">BH", 255, len(content))
    body = bytes((0xFF, identifier)) + size + content
    return b"\xfa" + body + bytes((-sum(body) & 0xFF,))


class MessageSplitter:
    """Splitter that divides the bytes from the host into messages. It skips other bytes, and counts damaged messages."""

    def __init__(self) -> None:
        self.dropped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the identifier and the content of each complete message."""
        found: list[tuple[int, bytes]] = []
        self._buffer += data
        while True:
            start = self._buffer.find(b"\xfa\xff")
            if start < 0:
                del self._buffer[: max(len(self._buffer) - 1, 0)]
                return found
            del self._buffer[:start]
            if len(self._buffer) < 4:
                return found
            size, head = self._buffer[3], 4
            if size == 255:
                if len(self._buffer) < 6:
                    return found
                size, head = int.from_bytes(self._buffer[4:6], "big"), 6
            if size <= MAX_CONTENT and len(self._buffer) < head + size + 1:
                return found
            if size > MAX_CONTENT or sum(self._buffer[1 : head + size + 1]) & 0xFF:
                self.dropped += 1
                del self._buffer[:1]
                continue
            found.append((self._buffer[2], bytes(self._buffer[head : head + size])))
            del self._buffer[: head + size + 1]


FLOATS = (0x0810, 0x2010, 0x2030, 0x4020, 0x5020, 0x5040, 0x8020, 0xC020, 0xD010)
INTEGERS = (0x1010, 0x1020, 0x1060, 0x3010, 0xE010, 0xE020)


def is_known(identifier: int) -> bool:
    """Return whether the device measures the quantity of a data identifier in this format."""
    precision, frame = identifier & 0x3, identifier & 0xC
    if identifier & 0xFFF0 in INTEGERS:
        return not identifier & 0xF
    return identifier & 0xFFF0 in FLOATS and precision in (0x0, 0x3) and frame in LOCAL


def block(identifier: int, measured: MtiMeasurement) -> bytes:
    """Return the MTData2 block of a data identifier, or empty bytes if its quantity is not measured."""
    group = identifier & 0xFFF0
    content = measured.integers(group)
    if content is None:
        numbers = measured.numbers(group, identifier & 0xC)
        if numbers is None:
            return b""
        content = struct.pack(f">{len(numbers)}{'d' if identifier & 0x3 else 'f'}", *numbers)
    return struct.pack(">HB", identifier, len(content)) + content


class XsensMti:
    """Virtual MTi. It starts measuring immediately. All hosts share its port, as with a serial line."""

    def __init__(self, send: Bytes, sensors: Mapping[str, str]) -> None:
        self.send, self.sensors, self.splitter, self.errors = send, sensors, MessageSplitter(), 0
        self.is_measuring = True
        self.outputs: tuple[tuple[int, int], ...] = DEFAULT_OUTPUTS
        self.legacy = legacy.LegacyOutput()
        self._baud, self._flags = 0x02, 0
        self._last_ns, self._number = -1, 0
        self._last_period: dict[int, int] = {}
        self._commands: dict[int, Callable[[bytes], bytes | None]] = {
            0x00: lambda _: struct.pack(">I", DEVICE_ID),
            0x1C: lambda _: PRODUCT,
            0x1E: lambda _: bytes((2, 0)),
            0x12: lambda _: bytes(FIRMWARE),
            0x0C: lambda _: self._configuration(),
            0xC0: self._set_outputs,
            0x18: self._set_baud,
            0x48: self._set_flags,
            legacy.SET_MODE: self.legacy.set_mode,
            legacy.SET_SETTINGS: self.legacy.set_settings,
            legacy.SET_PERIOD: self.legacy.set_period,
            legacy.SET_SKIP: self.legacy.set_skip,
            legacy.SET_SYNC_IN: lambda _: b"",
        }

    # -------------------------------------------------------------- measurements

    def step(self, step: Step) -> None:
        """Process a new simulation state: send a message for each new value of the `imu`."""
        values = {t: v for t, name in self.sensors.items() if (v := step.sensors.get(name)) is not None}
        if "imu" not in values or "ahrs" not in values or values["imu"].time_ns == self._last_ns:
            return
        self._last_ns = now = values["imu"].time_ns
        if not self.is_measuring:
            return
        if self.legacy.is_selected:
            if self._begins(legacy.MT_DATA, self.legacy.number_of_period(now)):
                self.send(message(legacy.MT_DATA, self.legacy.content(MtiMeasurement(self._number, values))))
                self._number += 1
            return
        due = [i for i, rate in self.outputs if rate != 0xFFFF and self._begins(i, now * rate // 10**9)]
        if not due:
            return
        measured = MtiMeasurement(self._number, values)
        with_data = [i for i, rate in self.outputs if rate == 0xFFFF or i in due]  # FFFF: in every message
        if content := b"".join(block(i, measured) for i in with_data):
            self._number += 1
            self.send(message(MT_DATA2, content))

    def _begins(self, identifier: int, period: int) -> bool:
        """Return whether a new period of an output has begun since its last message."""
        last = self._last_period.get(identifier, -1)
        self._last_period[identifier] = period
        return period > last

    # -------------------------------------------------------------- commands

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from a host."""
        dropped = self.splitter.dropped
        for identifier, content in self.splitter.feed(data):
            self._execute(identifier, content)
        self.errors += self.splitter.dropped - dropped

    def _execute(self, identifier: int, content: bytes) -> None:
        if identifier == RESET:
            self.send(message(RESET + 1))
            self.is_measuring = True
            self._last_period.clear()
            self.send(message(WAKE_UP))
        elif identifier in (GO_TO_CONFIG, GO_TO_MEASUREMENT):
            self.is_measuring = identifier == GO_TO_MEASUREMENT
            self._last_period.pop(legacy.MT_DATA, None)  # the host may have changed the period
            self.send(message(identifier + 1))
        elif identifier == WAKE_UP + 1:  # the host keeps the device in the configuration state
            self.is_measuring = False
        elif identifier not in self._commands or (self.is_measuring and identifier != 0x00):
            self._fail(BAD_MESSAGE)
        elif (answer := self._commands[identifier](content)) is None:
            self._fail(BAD_PARAMETER)
        else:
            self.send(message(identifier + 1, answer))

    def _fail(self, code: int) -> None:
        self.errors += 1
        self.send(message(ERROR, bytes((code,))))

    def _configuration(self) -> bytes:
        old = self.legacy
        head = struct.pack(">IHHHH", DEVICE_ID, old.period, old.skipped, 0, 0)
        form = struct.pack(">HIHHI", 1, DEVICE_ID, 0, old.mode, old.settings)
        return (head + bytes(84) + form).ljust(118, b"\0")

    def _set_outputs(self, content: bytes) -> bytes | None:
        if len(content) % 4 or len(content) > 128:
            return None
        pairs = [struct.unpack_from(">HH", content, k) for k in range(0, len(content), 4)]
        wanted = [(i, rate) for i, rate in pairs if i]
        if wanted and not all(is_known(i) for i, _ in wanted):
            return None
        if content:
            self.legacy.is_selected = False
            limited = [(i, rate if rate in (0, 0xFFFF) else min(rate, MAX_RATE)) for i, rate in wanted]
            timed = [(i, MAX_RATE if r == 0xFFFF and i & 0xFFF0 not in INTEGERS else r) for i, r in limited]
            self.outputs = tuple((i, rate) for i, rate in timed if rate)
            self._last_period.clear()
        return b"".join(struct.pack(">HH", *pair) for pair in self.outputs)

    def _set_baud(self, content: bytes) -> bytes | None:
        if not content:
            return bytes((self._baud,))
        if len(content) != 1 or content[0] not in BAUD_CODES:
            return None
        self._baud = content[0]
        return b""

    def _set_flags(self, content: bytes) -> bytes | None:
        if content and len(content) != 8:
            return None
        if content:
            wanted, cleared = struct.unpack(">II", content)
            self._flags = (self._flags | wanted) & ~cleared
        return struct.pack(">I", self._flags)
