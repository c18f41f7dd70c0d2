"""Virtual MicroStrain 3DM-GX3-25 (single-byte protocol). It reports the values of a body's ``ahrs``, ``imu`` and
``magnetometer`` sensors.

A command is one byte; in some commands, arguments follow. A reply begins with the byte of the command and ends with a
checksum: the sum of all bytes before it, as a u16. Numbers are big-endian. The frame of the instrument is x forward, y
to starboard, z down. A data reply contains three-axis quantities in a fixed order and the time in ticks of 16 us.

Like the real instrument, the device reports the heading from magnetic north: the heading of the ``ahrs`` minus the
declination.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from wavesim_devices.ports import Bytes
from wavesim_sdk.broker import Step
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.wire.state import Value

TYPES = ("ahrs", "imu", "magnetometer")  #: sensor types that the instrument uses
TICKS_PER_S = 62_500
GRAVITY = 9.80665  #: unit of the acceleration in m/s2
GAUSS = 1e-4  #: unit of the magnetic field in T
WRITE_WORD, READ_WORD, FIRMWARE, IDENTITY = 0xE4, 0xE5, 0xE9, 0xEA
CONTINUOUS, MODE, STOP, RESET = 0xC4, 0xD4, 0xFA, 0xFE
FIRMWARE_NUMBER = 2005  #: version 2.0.05
#: identity strings, in the order of their selectors: model number, serial number, model name, options
IDENTITIES = (b"      6223-4220 ", b"      6223-00001", b"      3DM-GX3-25", b" 5g,  300deg/sec")
#: for each command, the fixed bytes that follow and confirm its first byte, and the number of argument bytes after the
#: fixed bytes
ARGUMENTS: Mapping[int, tuple[bytes, int]] = MappingProxyType(
    {
        WRITE_WORD: (b"\xc1\x29\x00", 4),
        READ_WORD: (b"\x00", 2),
        FIRMWARE: (b"", 0),
        IDENTITY: (b"", 1),
        CONTINUOUS: (b"\xc1\x29", 1),
        MODE: (b"\xa3\x47", 1),
        STOP: (b"\x75\xb4", 0),
        RESET: (b"\x9e\x3a", 0),
    }
)
CURRENT_MODE, ACTIVE_MODE, CONTINUOUS_MODE = 0, 1, 2


def reply(command: int, content: bytes) -> bytes:
    """Return a reply with its checksum."""
    body = bytes((command,)) + content
    return body + struct.pack(">H", sum(body) & 0xFFFF)


class MicrostrainSplitter:
    """Splitter that divides the bytes from the host into commands. It drops and counts bytes that do not belong to a
    command.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the first byte and the arguments of each complete command, without the fixed bytes."""
        found: list[tuple[int, bytes]] = []
        self._buffer += data
        at = 0
        while at < len(self._buffer):
            command = self._buffer[at]
            if command in QUANTITIES:
                fixed, more = b"", 0
            elif command in ARGUMENTS:
                fixed, more = ARGUMENTS[command]
            else:
                self.dropped += 1
                at += 1
                continue
            there = bytes(self._buffer[at + 1 : at + 1 + len(fixed)])
            if not fixed.startswith(there):
                self.dropped += 1
                at += 1
                continue
            end = at + 1 + len(fixed) + more
            if end > len(self._buffer):
                break
            found.append((command, bytes(self._buffer[end - more : end])))
            at = end
        del self._buffer[:at]
        return found


class MicrostrainMeasurement:
    """Newest value of each sensor type, and the quantities of the protocol that are computed from these values."""

    def __init__(self, values: Mapping[str, Value], declination: float) -> None:
        self.values, self.declination = values, declination

    @property
    def angles(self) -> tuple[float, float, float]:
        """Roll, pitch and heading from magnetic north in rad, -pi to pi."""
        a = self.values["ahrs"]
        return a.roll, a.pitch, math.remainder(a.heading - self.declination, math.tau)

    def acceleration(self) -> Sequence[float]:
        """Return the specific force in g: 0, 0, -1 at rest."""
        return [x / GRAVITY for x in self.values["imu"].force]

    def rates(self) -> Sequence[float]:
        """Return the angular rates in rad/s."""
        return list(self.values["imu"].rates)

    def field(self) -> Sequence[float]:
        """Return the magnetic field in gauss; 0 without a magnetometer."""
        v = self.values.get("magnetometer")
        return 3 * (0.0,) if v is None else [x / GAUSS for x in v.field]

    def matrix(self) -> Sequence[float]:
        """Return the orientation matrix in row-major order. It rotates vectors from the axes magnetic north, east and
        down to the axes of the instrument.
        """
        return np.asarray(rotation(quaternion(*self.angles))).T.ravel().tolist()

    def euler(self) -> Sequence[float]:
        """Return roll, pitch and heading in rad."""
        return self.angles

    def quaternion(self) -> Sequence[float]:
        """Return the quaternion of the orientation matrix, with the scalar first."""
        w, x, y, z = quaternion(*self.angles)
        return float(w), -float(x), -float(y), -float(z)


M = MicrostrainMeasurement
#: quantities in the reply to each data command
QUANTITIES: Mapping[int, tuple[Callable[[MicrostrainMeasurement], Sequence[float]], ...]] = MappingProxyType(
    {
        0xC2: (M.acceleration, M.rates),
        0xC5: (M.matrix,),
        0xC8: (M.acceleration, M.rates, M.matrix),
        0xCB: (M.acceleration, M.rates, M.field),
        0xCC: (M.acceleration, M.rates, M.field, M.matrix),
        0xCE: (M.euler,),
        0xCF: (M.euler, M.rates),
        0xDF: (M.quaternion,),
    }
)


class Microstrain:
    """Virtual 3DM-GX3-25. All hosts share its port, as with a serial line. It answers polls, and in continuous mode it
    sends a reply for each new value of the ``imu``.
    """

    def __init__(self, send: Bytes, sensors: Mapping[str, str], declination: float = 0.0) -> None:
        self.send, self.sensors, self.declination = send, sensors, declination
        self.splitter, self.refused = MicrostrainSplitter(), 0
        self.words: dict[int, int] = {}  #: words in the EEPROM that a host has written, by address
        self.continuous = 0  #: command whose reply is sent continuously; 0 = none
        self._values: dict[str, Value] = {}
        self._time_ns = self._last_ns = 0

    @property
    def errors(self) -> int:
        """Number of bytes that are not part of a command, plus the number of rejected commands."""
        return self.splitter.dropped + self.refused

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._time_ns = step.state.time_ns
        self._values = {t: v for t, name in self.sensors.items() if (v := step.sensors.get(name)) is not None}
        new = self._values.get("imu")
        if new is not None and new.time_ns != self._last_ns:
            self._last_ns = new.time_ns
            if self.continuous:
                self._send_data(self.continuous)

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from a host."""
        for command, arguments in self.splitter.feed(data):
            if command in QUANTITIES:
                self._send_data(command)
            else:
                self._execute(command, arguments)

    def _send_data(self, command: int) -> None:
        """Send a data reply. Before the first values, the device is silent, as the real instrument is while it starts."""
        if "imu" in self._values and "ahrs" in self._values:
            measured = MicrostrainMeasurement(self._values, self.declination)
            numbers = [x for quantity in QUANTITIES[command] for x in quantity(measured)]
            ticks = self._values["imu"].time_ns * TICKS_PER_S // 10**9 & 0xFFFFFFFF
            self.send(reply(command, struct.pack(f">{len(numbers)}fI", *numbers, ticks)))

    def _execute(self, command: int, arguments: bytes) -> None:
        if command == READ_WORD:
            self.send(reply(command, struct.pack(">H", self.words.get(int.from_bytes(arguments, "big"), 0))))
        elif command == WRITE_WORD:
            address, word = struct.unpack(">HH", arguments)
            self.words[address] = word
            self.send(reply(command, arguments[2:]))
        elif command == FIRMWARE:
            self.send(reply(command, struct.pack(">i", FIRMWARE_NUMBER)))
        elif command == IDENTITY and arguments[0] < len(IDENTITIES):
            self.send(reply(command, arguments + IDENTITIES[arguments[0]]))
        elif command == CONTINUOUS and (arguments[0] in QUANTITIES or not arguments[0]):
            self.continuous = arguments[0]
            ticks = self._time_ns * TICKS_PER_S // 10**9 & 0xFFFFFFFF
            self.send(reply(command, arguments + struct.pack(">I", ticks)))
        elif command == MODE and arguments[0] in (CURRENT_MODE, ACTIVE_MODE):
            if arguments[0] == ACTIVE_MODE:
                self.continuous = 0
            self.send(reply(command, bytes((CONTINUOUS_MODE if self.continuous else ACTIVE_MODE,))))
        elif command in (STOP, RESET):  # neither has a reply
            self.continuous = 0
        else:
            self.refused += 1
