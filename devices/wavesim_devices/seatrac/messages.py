"""Messages on the SeaTrac's serial port: hexadecimal digits after # (command) or $ (answer), with a CRC-16."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import IntEnum

from wavesim_sdk.acoustics import direction_of_arrival
from wavesim_sdk.algebra import matvec
from wavesim_sdk.checksums import crc16
from wavesim_sdk.frames import quaternion, rotation

SETTINGS_BYTES = 110
REBOOT_CODE = 0x6A95
OK, FAILED, MISSING, INVALID, BUSY, TIMEOUT, STOPPED, IDLE, REQUESTING = 0, 1, 4, 5, 0x30, 0x34, 0x3A, 0x3B, 0x3D
MAX_DATA, MAX_NAV_DATA = 31, 29
MAX_BEACON = 15


class Command(IntEnum):
    """Identifiers of commands and messages."""

    ALIVE = 0x01
    INFO = 0x02
    REBOOT = 0x03
    STATUS = 0x10
    STATUS_CONFIG_GET = 0x11
    STATUS_CONFIG_SET = 0x12
    SETTINGS_GET = 0x15
    SETTINGS_SET = 0x16
    SETTINGS_LOAD = 0x17
    SETTINGS_SAVE = 0x18
    SETTINGS_RESET = 0x19
    CALIBRATION_ACTION = 0x20
    CALIBRATION_GET = 0x21
    CALIBRATION_SET = 0x22
    ANALYSE = 0x30
    FIX = 0x39
    TRANSCEIVER_STATUS = 0x3A
    PING_SEND = 0x40
    PING_REQUEST = 0x41
    PING_RESPONSE = 0x42
    PING_ERROR = 0x43
    ECHO_SEND = 0x48
    ECHO_REQUEST = 0x49
    ECHO_RESPONSE = 0x4A
    ECHO_ERROR = 0x4B
    NAV_SEND = 0x50
    NAV_REQUEST = 0x51
    NAV_RESPONSE = 0x52
    NAV_ERROR = 0x53
    NAV_QUEUE_SET = 0x58
    NAV_QUEUE_CLEAR = 0x59
    NAV_QUEUE_STATUS = 0x5A
    DATA_SEND = 0x60
    DATA_RECEIVE = 0x61
    DATA_ERROR = 0x63
    DATA_QUEUE_SET = 0x64
    DATA_QUEUE_CLEAR = 0x65
    DATA_QUEUE_STATUS = 0x66


class MessageType(IntEnum):
    """Types of acoustic messages. A U in the name means that USBL is used; an X means that the answer contains the
    depth.
    """

    ONE_WAY = 0
    ONE_WAY_U = 1
    REQUEST = 2
    RESPONSE = 3
    REQUEST_U = 4
    RESPONSE_U = 5
    REQUEST_X = 6
    RESPONSE_X = 7

    @property
    def is_request(self) -> bool:
        """Whether the receiver must answer."""
        return self in (MessageType.REQUEST, MessageType.REQUEST_U, MessageType.REQUEST_X)

    @property
    def answer(self) -> MessageType:
        """Return the type of the answer to a request."""
        return MessageType(self + 1)


DEPTH, SUPPLY, TEMPERATURE, ATTITUDE, DATA = 0x01, 0x02, 0x04, 0x08, 0x80  #: flags of a NAV query
NAV_FLAGS = DEPTH | SUPPLY | TEMPERATURE | ATTITUDE | DATA


def frame(command: int, payload: bytes = b"", mark: bytes = b"$") -> bytes:
    """Return a message for the serial port."""
    body = bytes((command,)) + payload
    return mark + (body + struct.pack("<H", crc16(body))).hex().upper().encode() + b"\r\n"


def parse(line: str) -> tuple[int, bytes] | None:
    """Return the command and the payload of a line from the host, or None if the line is not a valid command."""
    start = line.rfind("#")
    try:
        body = bytes.fromhex(line[start + 1 :]) if start >= 0 else b""
    except ValueError:
        return None
    if len(body) < 3 or crc16(body[:-2]) != int.from_bytes(body[-2:], "little"):
        return None
    return body[0], body[1:-2]


def decimal(value: float, scale: float, low: int, high: int) -> int:
    """Return a value in the unit of a message, limited to the range of its field. A missing value becomes 0."""
    return min(max(round(value * scale), low), high) if math.isfinite(value) else 0


def tenth_degrees(angle: float) -> int:
    """Return an angle (rad) in tenths of a degree."""
    return decimal(math.degrees(angle), 10.0, -32768, 32767)


@dataclass
class BeaconSensors:
    """Values of the beacon's own sensors in SI units and radians. NaN means that there is no sensor."""

    depth: float = math.nan
    pressure: float = math.nan  #: absolute pressure in Pa
    temperature: float = math.nan  #: temperature in degC
    roll: float = 0.0
    pitch: float = 0.0
    yaw: float = 0.0

    def attitude(self) -> bytes:
        """Return yaw, pitch and roll as fields in a message."""
        return struct.pack("<3h", *(tenth_degrees(a) for a in (self.yaw, self.pitch, self.roll)))


@dataclass(frozen=True)
class AcousticFix:
    """Position fix: the values that a beacon has measured from a received message."""

    destination: int
    source: int
    kind: MessageType
    level: float  #: received level in dB
    travel: float | None = None  #: one-way travel time in s
    angles: tuple[float, float] | None = None  #: azimuth and elevation (positive downwards) in the body frame, rad
    remote_depth: float | None = None  #: depth of the other beacon in m

    def encode(self, own: BeaconSensors, sound_speed: float) -> bytes:
        """Encode the fix as it appears at the beginning of a message."""
        distance = None if self.travel is None else self.travel * sound_speed
        located = distance is not None and self.angles is not None
        flags = (distance is not None) | (self.angles is not None) << 1 | located << 2
        flags |= (located and self.remote_depth is not None) << 3
        level = decimal(self.level, 10.0, -32768, 32767)
        out = struct.pack("<4B", self.destination, self.source, flags, self.kind) + own.attitude()
        out += struct.pack("<HHh", decimal(own.depth, 10.0, 0, 65535), decimal(sound_speed, 10.0, 0, 65535), level)
        if self.travel is not None and distance is not None:
            ticks = decimal(2.0 * self.travel, 16000.0, 0, 2**32 - 1)
            out += struct.pack(
                "<IiH", ticks, decimal(self.travel, 1e7, 0, 2**31 - 1), decimal(distance, 10.0, 0, 65535)
            )
        if self.angles is not None:
            azimuth, elevation = self.angles
            up = tenth_degrees(-elevation)
            out += struct.pack("<B4h3h", 4, *[level] * 4, tenth_degrees(azimuth % (2.0 * math.pi)), up, 0)
        if distance is not None and self.angles is not None:
            position = self.position(own, distance, *self.angles)
            out += struct.pack("<3h", *(decimal(p, 10.0, -32768, 32767) for p in position))
        return out

    def position(
        self, own: BeaconSensors, distance: float, azimuth: float, elevation: float
    ) -> tuple[float, float, float]:
        """Return the easting and northing of the other beacon relative to this one, and the depth of the other beacon,
        in m.
        """
        attitude = rotation(quaternion(own.roll, own.pitch, own.yaw))
        north, east, down = matvec(attitude, direction_of_arrival(azimuth, elevation)).tolist()
        depth = own.depth if math.isfinite(own.depth) else 0.0
        if self.remote_depth is None:
            return distance * east, distance * north, depth + distance * down
        drop = self.remote_depth - depth
        across = math.sqrt(max(distance * distance - drop * drop, 0.0)) / max(math.hypot(north, east), 1e-9)
        return across * east, across * north, self.remote_depth
