"""NMEA 2000 messages (PGNs) that ship instruments send, computed from the sensors of a body.

The messages are sent as CAN frames in the "RAW" text format of Yacht Devices gateways, which canboat, Signal K, OpenCPN
and other programs can read.

Each sensor type has its PGNs: 129025, 129026, 129029 and 126992 for gps; 127250, 127251 and 127257 for ahrs; 127488 for
each propeller of an rpm sensor; 128267 for echosounder; 128259 for speedlog; 130312 for ctd and temperature; 130306 for
anemometer; and 127508 for battery.

Payloads contain little-endian integers, each in units of its resolution. An integer with all bits set means "not
available". The address of a node is the index of its sensor type in ``TYPES``; nodes do not claim addresses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from wavesim_devices.nmea import Clock
from wavesim_devices.ports import Bytes
from wavesim_devices.sensor_selection import NewValueFilter
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import utc
from wavesim_sdk.wire.state import Value

TYPES = ("gps", "ahrs", "echosounder", "ctd", "temperature", "speedlog", "anemometer", "battery", "rpm")
FAST = (129029,)  #: PGNs whose messages do not fit into one CAN frame
#: priority of messages, by PGN; all other PGNs have priority 2
PRIORITY = {126992: 3, 127257: 3, 127508: 6, 128267: 3, 129029: 3, 130312: 5}
SEQUENCES = 253  #: number of sequence ids (SID); the messages of one measurement share an id
KELVIN = 273.15
_MIDNIGHT = datetime(1970, 1, 1, tzinfo=UTC)
_TRUE, _GPS_FIX, _APPARENT, _SEA, _ELECTROMAGNETIC = 0xFC, 0x10, 0xFA, 0, 4
Message = tuple[int, bytes]  #: message: its PGN and its payload


def _whole(value: float, resolution: float, size: int, signed: bool = False) -> bytes:
    """Return a number in ``size`` bytes, or "not available" if it is not finite or does not fit."""
    most = (1 << (8 * size - signed)) - 1
    n = round(value / resolution) if math.isfinite(value) else most
    if not (-most if signed else 0) <= n <= most - 2:
        n = most
    return n.to_bytes(size, "little", signed=signed)


def _angle(value: float) -> bytes:
    return _whole(value % (2.0 * math.pi), 1e-4, 2)


def _date(time: datetime) -> bytes:
    since = time - _MIDNIGHT
    return _whole(since.days, 1, 2) + _whole(since.seconds * 10_000 + since.microseconds // 100, 1, 4)


def _gps(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    latitude, longitude = math.degrees(v.latitude), math.degrees(v.longitude)
    yield 126992, sid + b"\xf0" + _date(time)
    yield 129025, _whole(latitude, 1e-7, 4, True) + _whole(longitude, 1e-7, 4, True)
    yield 129026, sid + bytes([_TRUE]) + _angle(v.cog) + _whole(v.sog, 0.01, 2) + b"\xff\xff"
    place = b"".join(_whole(x, r, 8, True) for x, r in ((latitude, 1e-16), (longitude, 1e-16), (v.height, 1e-6)))
    fix = bytes([_GPS_FIX, 0xFC]) + _whole(v.satellites, 1, 1) + _whole(v.hdop, 0.01, 2, True)
    yield 129029, sid + _date(time) + place + fix + b"\xff\x7f" + _whole(0.0, 0.01, 4, True) + b"\0"


def _ahrs(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    yield 127250, sid + _angle(v.heading) + b"\xff\x7f\xff\x7f" + bytes([_TRUE])
    yield 127251, sid + _whole(v.rates[2], 3.125e-8, 4, True) + b"\xff\xff\xff"
    yaw = math.remainder(v.heading, 2.0 * math.pi)
    yield 127257, sid + b"".join(_whole(a, 1e-4, 2, True) for a in (yaw, v.pitch, v.roll)) + b"\xff"


def _depth(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    yield 128267, sid + _whole(v.range, 0.01, 4) + _whole(0.0, 1e-3, 2, True) + b"\xff"


def _speed(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    ahead = v.v_FB_B[0]
    yield (
        128259,
        sid + _whole(abs(ahead), 0.01, 2) + b"\xff\xff" + bytes([_ELECTROMAGNETIC, 0xF0 | (ahead < 0.0), 0xFF]),
    )


def _wind(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    yield 130306, sid + _whole(v.speed, 0.01, 2) + _angle(v.angle) + bytes([_APPARENT, 0xFF, 0xFF])


def _temperature(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    yield 130312, sid + bytes([0, _SEA]) + _whole(v.temperature + KELVIN, 0.01, 2) + b"\xff\xff\xff"


def _battery(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    yield 127508, b"\0" + _whole(v.voltage, 0.01, 2, True) + _whole(v.current, 0.1, 2, True) + b"\xff\xff" + sid


def _rpm(v: Value, sid: bytes, time: datetime) -> Iterator[Message]:
    for k, rpm in enumerate(r for r in v.rpm if math.isfinite(r)):
        yield 127488, bytes([k]) + _whole(abs(rpm), 0.25, 2) + b"\xff\xff\x7f\xff\xff"


_ENCODERS = {
    "gps": _gps,
    "ahrs": _ahrs,
    "echosounder": _depth,
    "ctd": _temperature,
    "temperature": _temperature,
    "speedlog": _speed,
    "anemometer": _wind,
    "battery": _battery,
    "rpm": _rpm,
}


def messages(type_: str, value: Value, sid: int, time: datetime) -> Iterator[Message]:
    """Yield the messages for a sensor value, all with the same ``sid``. A value with a missing component produces
    no messages. If the speed of a propeller is missing, however, only the message for that propeller is omitted.
    """
    if type_ == "rpm" or all(map(math.isfinite, value.numbers)):
        yield from _ENCODERS[type_](value, bytes([sid % SEQUENCES]), time)


class CanNode:
    """Node at one address on the bus. It splits messages into CAN frames."""

    def __init__(self, address: int) -> None:
        self.address = address
        self._fast: dict[int, int] = {}

    def frames(self, pgn: int, payload: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the identifier (29 bits) and the data of each CAN frame of a message."""
        identifier = PRIORITY.get(pgn, 2) << 26 | pgn << 8 | self.address
        if pgn not in FAST:
            yield identifier, payload
            return
        sequence = self._fast[pgn] = (self._fast.get(pgn, -1) + 1) % 8
        rest = bytes([len(payload)]) + payload
        for k in range(math.ceil(len(rest) / 7)):
            yield identifier, bytes([sequence << 5 | k]) + rest[7 * k : 7 * k + 7].ljust(7, b"\xff")


def raw_line(identifier: int, data: bytes, time: datetime) -> bytes:
    """Return a received CAN frame as a line in the RAW format of Yacht Devices."""
    return f"{time:%H:%M:%S}.{time.microsecond // 1000:03d} R {identifier:08X} {data.hex(' ').upper()}\r\n".encode(
        "ascii"
    )


class Nmea2000Device:
    """NMEA 2000 bus of a body. It sends each new sensor value once. ``picked`` maps each sensor type to the name of the
    sensor.
    """

    def __init__(self, send: Bytes, picked: Mapping[str, str], clock: Clock = utc) -> None:
        self.send, self.clock = send, clock
        self._new_values = NewValueFilter(picked)
        self._nodes = {type_: CanNode(TYPES.index(type_)) for type_ in picked}
        self._sid = 0

    def receive(self, data: bytes) -> None:
        """Ignore received bytes, because a talker only sends."""

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        for type_, value in self._new_values.new_values(step.sensors):
            time = self.clock(value.time_ns)
            for pgn, payload in messages(type_, value, self._sid, time):
                for frame in self._nodes[type_].frames(pgn, payload):
                    self.send(raw_line(*frame, time))
            self._sid = (self._sid + 1) % SEQUENCES
