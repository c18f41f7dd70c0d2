"""Virtual u-blox receiver (M8, protocol 18): UBX messages and NMEA sentences from the ``gps`` sensor.

A frame consists of B5 62, class, identifier, length (u16), content, and two check bytes (Fletcher). All numbers are
little-endian. Like the real receiver, the device initially sends NMEA sentences but no UBX messages. A host enables
messages with CFG-MSG. It can also enable NMEA sentences and PUBX,00 with the sentence PUBX,40. The checksum of a
sentence from the host is optional, because DUNE sends none.

Under water, the receiver has no fix. After surfacing, it obtains a fix only when the reacquisition time has passed. The
number of satellites, the position, the speed and the course come from the sensor. The vertical accuracy, the DOPs other
than HDOP, and the list of satellites are nominal.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from wavesim_devices import nmea
from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import EPOCH, utc
from wavesim_sdk.wire.state import Value

SYNC = b"\xb5\x62"
MAX_CONTENT = 1024  #: maximum length in bytes of the content of a frame from the host
NAV, CFG, MON, ACK, NMEA, PUBX = 0x01, 0x06, 0x0A, 0x05, 0xF0, 0xF1
#: classes and identifiers of the messages that CFG-MSG enables, by name, in the order in which they are sent
MESSAGES = {
    "NAV-POSLLH": (NAV, 0x02),
    "NAV-STATUS": (NAV, 0x03),
    "NAV-DOP": (NAV, 0x04),
    "NAV-PVT": (NAV, 0x07),
    "NAV-VELNED": (NAV, 0x12),
    "NAV-TIMEUTC": (NAV, 0x21),
    "NAV-SAT": (NAV, 0x35),
    "NMEA-GGA": (NMEA, 0x00),
    "NMEA-RMC": (NMEA, 0x04),
    "NMEA-VTG": (NMEA, 0x05),
    "NMEA-ZDA": (NMEA, 0x08),
    "PUBX-00": (PUBX, 0x00),
    "NAV-EOE": (NAV, 0x61),
}
_GPS_EPOCH_S = 315964800  # 1980-01-06 in Unix time
LEAP_S = 18  #: time in s by which GPS time is ahead of UTC
SPEED_ACCURACY = 0.05  #: nominal accuracy of the speed in m/s
VERTICAL = 1.5  #: ratio of vertical to horizontal accuracy, and of vertical to horizontal DOP
INITIAL = ("NMEA-GGA", "NMEA-RMC", "NMEA-VTG")  #: messages that are enabled when the receiver starts
SENTENCES = {"GGA": "NMEA-GGA", "RMC": "NMEA-RMC", "VTG": "NMEA-VTG", "ZDA": "NMEA-ZDA", "00": "PUBX-00"}
UNKNOWN = 0xFFFFFFFF
VERSIONS = (b"FWVER=SPG 3.01", b"PROTVER=18.00", b"GPS;GLO;GAL;BDS")


def frame(class_: int, identifier: int, content: bytes = b"") -> bytes:
    """Return a frame with its check bytes."""
    body = struct.pack("<BBH", class_, identifier, len(content)) + content
    return SYNC + body + check_bytes(body)


def check_bytes(body: bytes) -> bytes:
    """Return the two check bytes of a frame. They cover the frame from its class onwards."""
    a = b = 0
    for byte in body:
        a = a + byte & 0xFF
        b = b + a & 0xFF
    return bytes((a, b))


class FrameSplitter:
    """Splitter that divides the bytes from the host into frames. It keeps the bytes between frames, and counts frames
    that are damaged or too long.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._between = bytearray()
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Return the class, identifier and content of the complete frames."""
        found: list[tuple[int, int, bytes]] = []
        self._buffer += data
        while True:
            start = self._buffer.find(SYNC)
            if start < 0:  # the last byte may begin a frame
                self._skip(len(self._buffer) - self._buffer.endswith(SYNC[:1]))
                return found
            self._skip(start)
            if len(self._buffer) < 6:
                return found
            class_, identifier, size = struct.unpack_from("<BBH", self._buffer, 2)
            if size > MAX_CONTENT:
                self.dropped += 1
                del self._buffer[:2]
                continue
            if len(self._buffer) < size + 8:
                return found
            body = bytes(self._buffer[2 : size + 6])
            if check_bytes(body) == self._buffer[size + 6 : size + 8]:
                found.append((class_, identifier, body[4:]))
                del self._buffer[: size + 8]
            else:
                self.dropped += 1
                del self._buffer[:1]

    def _skip(self, count: int) -> None:
        self._between += self._buffer[:count]
        del self._buffer[:count]

    def take_between(self) -> bytes:
        """Return the bytes that have arrived between frames since the last call."""
        found = bytes(self._between)
        self._between.clear()
        return found


@dataclass(frozen=True)
class Fix:
    """One navigation epoch: the time, and the value from the ``gps`` sensor (None if there is no fix)."""

    time_ns: int
    value: Value | None
    start_ns: int  #: simulation time of the receiver's start in ns
    first_fix_ms: int  #: time from the start to the first fix in ms; 0 = no fix yet

    @property
    def time(self) -> datetime:
        """Civil time (UTC) of the epoch."""
        return utc(self.time_ns)

    @property
    def itow(self) -> int:
        """GPS time of week in ms."""
        seconds = round(EPOCH.timestamp()) - _GPS_EPOCH_S + LEAP_S
        return (seconds * 1000 + self.time_ns // 1_000_000) % 604_800_000

    @property
    def velocity_mm(self) -> tuple[int, int]:
        """Velocity to the north and to the east in mm/s; 0 if there is no fix."""
        if self.value is None:
            return 0, 0
        sog, cog = self.value.sog * 1000.0, self.value.cog
        return round(sog * math.cos(cog)), round(sog * math.sin(cog))

    @property
    def accuracies_mm(self) -> tuple[int, int, int]:
        """Horizontal and vertical accuracy in mm, and accuracy of the speed in mm/s."""
        if self.value is None:
            return UNKNOWN, UNKNOWN, UNKNOWN
        horizontal = self.value.hacc * 1000.0
        return round(horizontal), round(VERTICAL * horizontal), round(SPEED_ACCURACY * 1000.0)

    @property
    def course_1e5(self) -> tuple[int, int]:
        """Course over ground and its accuracy in 1e-5 deg."""
        if self.value is None:
            return 0, 18_000_000
        accuracy = min(math.degrees(SPEED_ACCURACY / max(self.value.sog, 1e-3)), 180.0)
        return round(math.degrees(self.value.cog) * 1e5) % 36_000_000, round(accuracy * 1e5)

    @property
    def position(self) -> tuple[int, int, int, int]:
        """Longitude and latitude in 1e-7 deg, and heights above the ellipsoid and above mean sea level in mm."""
        if self.value is None:
            return 0, 0, 0, 0
        v = self.value
        height = round(v.height * 1000.0)
        return round(math.degrees(v.longitude) * 1e7), round(math.degrees(v.latitude) * 1e7), height, height

    @property
    def dops(self) -> tuple[int, int, int, int, int, int, int]:
        """Geometric, position, time, vertical, horizontal, northing and easting DOP in units of 0.01."""
        if self.value is None:
            return (9999,) * 7
        h = self.value.hdop
        v, t = VERTICAL * h, h
        p, plane = math.hypot(h, v), h / math.sqrt(2.0)
        g, p, t, v, h, n, e = (round(100.0 * d) for d in (math.hypot(p, t), p, t, v, h, plane, plane))
        return g, p, t, v, h, n, e

    @property
    def satellites(self) -> int:
        """Number of satellites in use."""
        return 0 if self.value is None else int(self.value.satellites)


def nav_posllh(f: Fix) -> bytes:
    """Return the content of NAV-POSLLH."""
    return struct.pack("<IiiiiII", f.itow, *f.position, *f.accuracies_mm[:2])


def nav_status(f: Fix) -> bytes:
    """Return the content of NAV-STATUS."""
    kind, flags = (3, 0x0D) if f.value is not None else (0, 0x0C)
    running = (f.time_ns - f.start_ns) // 1_000_000
    return struct.pack("<IBBBBII", f.itow, kind, flags, 0, 0, f.first_fix_ms, running)


def nav_dop(f: Fix) -> bytes:
    """Return the content of NAV-DOP."""
    return struct.pack("<I7H", f.itow, *f.dops)


def nav_pvt(f: Fix) -> bytes:
    """Return the content of NAV-PVT."""
    t, fixed = f.time, f.value is not None
    horizontal, vertical, speed = f.accuracies_mm
    course, course_accuracy = f.course_1e5
    north, east = f.velocity_mm
    return struct.pack(
        "<IHBBBBBBIiBBBBiiiiIIiiiiiIIHH4sihH",
        f.itow, t.year, t.month, t.day, t.hour, t.minute, t.second, 0x07 if f.first_fix_ms else 0,
        30 if fixed else UNKNOWN, t.microsecond * 1000, 3 if fixed else 0, 0x01 if fixed else 0, 0, f.satellites,
        *f.position, horizontal, vertical, north, east, 0, round(math.hypot(north, east)), course, speed,
        course_accuracy, f.dops[1], 0 if fixed else 1, bytes(4), 0, 0, 0,
    )  # fmt: skip


def nav_velned(f: Fix) -> bytes:
    """Return the content of NAV-VELNED, in cm/s."""
    north, east = (round(v / 10.0) for v in f.velocity_mm)
    speed, (course, course_accuracy) = round(math.hypot(north, east)), f.course_1e5
    accuracy = UNKNOWN if f.value is None else round(f.accuracies_mm[2] / 10.0)
    return struct.pack("<IiiiIIiII", f.itow, north, east, 0, speed, speed, course, accuracy, course_accuracy)


def nav_timeutc(f: Fix) -> bytes:
    """Return the content of NAV-TIMEUTC."""
    t = f.time
    clock = (t.year, t.month, t.day, t.hour, t.minute, t.second)
    accuracy = 30 if f.value is not None else UNKNOWN
    return struct.pack("<IIiHBBBBBB", f.itow, accuracy, t.microsecond * 1000, *clock, 0x07 if f.first_fix_ms else 0)


def nav_sat(f: Fix) -> bytes:
    """Return the content of NAV-SAT: nominal satellites, all in use, around the horizon."""
    count = f.satellites
    each = [struct.pack("<BBBbhhI", 0, k + 1, 42, 45, 360 * k // count - 180, 0, 0x1F) for k in range(count)]
    return struct.pack("<IBBH", f.itow, 1, count, 0) + b"".join(each)


def nav_eoe(f: Fix) -> bytes:
    """Return the content of NAV-EOE."""
    return struct.pack("<I", f.itow)


CONTENTS: dict[tuple[int, int], Callable[[Fix], bytes]] = {
    MESSAGES["NAV-POSLLH"]: nav_posllh,
    MESSAGES["NAV-STATUS"]: nav_status,
    MESSAGES["NAV-DOP"]: nav_dop,
    MESSAGES["NAV-PVT"]: nav_pvt,
    MESSAGES["NAV-VELNED"]: nav_velned,
    MESSAGES["NAV-TIMEUTC"]: nav_timeutc,
    MESSAGES["NAV-SAT"]: nav_sat,
    MESSAGES["NAV-EOE"]: nav_eoe,
}


def pubx_position(f: Fix) -> bytes:
    """Return PUBX,00: position, accuracies, velocity, DOPs and number of satellites."""
    v, clock = f.value, f.time.strftime("%H%M%S.") + f"{f.time.microsecond // 10_000:02d}"
    if v is None:
        return nmea.sentence(f"PUBX,00,{clock},0000.00000,N,00000.00000,E,0.000,NF,5303302,3750001,0.000,0.00,0.000,,99.99,99.99,99.99,0,0,0")  # fmt: skip
    horizontal, vertical, _ = (a / 1000.0 for a in f.accuracies_mm)
    _, _, time_dop, vertical_dop, horizontal_dop, _, _ = (d / 100.0 for d in f.dops)
    where = f"{nmea.place(v.latitude, v.longitude)},{v.height:.3f}"
    course = round(math.degrees(v.cog), 2) % 360.0
    motion = f"{horizontal:.1f},{vertical:.1f},{v.sog * 3.6:.3f},{course:.2f},0.000,"
    dops = f"{horizontal_dop:.2f},{vertical_dop:.2f},{time_dop:.2f}"
    return nmea.sentence(f"PUBX,00,{clock},{where},G3,{motion},{dops},{f.satellites},0,0")


def nmea_sentence(identifier: int, f: Fix) -> bytes:
    """Return a GGA, RMC, VTG or ZDA sentence. Without a fix, the fields of the sentence are empty."""
    v, clock = f.value, f.time.strftime("%H%M%S.") + f"{f.time.microsecond // 10_000:02d}"
    if identifier == 0x08:
        return nmea.sentence(
            f"GPZDA,{clock},{f.time.strftime('%d,%m,%Y')},00,00" if f.first_fix_ms else "GPZDA,,,,,00,00"
        )
    if identifier == 0x00:
        if v is None:
            return nmea.sentence(f"GPGGA,{clock},,,,,0,00,99.99,,,,,,")
        return nmea.gga(f.time, v.latitude, v.longitude, v.height, int(v.satellites), v.hdop)
    if identifier == 0x04:
        if v is None:
            return nmea.sentence(f"GPRMC,{clock},V,,,,,,,{f.time.strftime('%d%m%y')},,,N")
        return nmea.rmc(f.time, v.latitude, v.longitude, v.sog, v.cog)
    return nmea.sentence("GPVTG,,,,,,,,,N") if v is None else nmea.vtg(v.sog, v.cog)


def _default_rates() -> dict[tuple[int, int], int]:
    return {m: int(name in INITIAL) for name, m in MESSAGES.items()}


@dataclass
class ReceiverSettings:
    """Settings that a host can change."""

    period_ms: int = 1000  #: interval in ms between two epochs
    #: interval of each message in epochs; 0 = the message is disabled
    rates: dict[tuple[int, int], int] = field(default_factory=_default_rates)
    output_mask: int = 0x03  #: protocols that the receiver sends, as a mask: bit 0 is UBX, bit 1 is NMEA
    baud: int = 9600
    #: dynamic model and fix mode; they are stored but have no effect
    nav5: bytes = struct.pack("<HBB", 0xFFFF, 0, 3) + bytes(32)


class UbloxReceiver:
    """Virtual u-blox receiver. All hosts share its port, as with a serial line."""

    def __init__(
        self, send: Bytes, sensor: str = "gps", reacquisition: float = 2.0, enabled: Iterable[str] = ()
    ) -> None:
        self.send, self.sensor, self.reacquisition_ns = send, sensor, round(reacquisition * 1e9)
        self.splitter, self.lines = FrameSplitter(), LineSplitter()
        self.refused = 0  #: number of commands answered with ACK-NAK, plus the number of invalid sentences
        self._enabled = [MESSAGES[name] for name in enabled]
        self._restart()
        self._start_ns: int | None = None  # None until the first state
        self._first_fix_ms = 0

    @property
    def errors(self) -> int:
        """Number of damaged frames and rejected commands."""
        return self.splitter.dropped + self.refused

    def _restart(self) -> None:
        """Load the initial settings."""
        self.settings = ReceiverSettings()
        for message in self._enabled:
            self.settings.rates[message] = 1
        self._period: int | None = None  # number of the period of the last epoch, from simulation time 0
        self._epochs = 0
        self._surfaced_ns: int | None = None  # time of the first value since the antenna was under water
        self._last: Fix | None = None

    # -------------------------------------------------------------- epochs

    def step(self, step: Step) -> None:
        """Process a new simulation state: send an epoch for each period that has begun, with a fix if the sensor has a
        value.
        """
        now, period = step.state.time_ns, self.settings.period_ms * 1_000_000
        if self._start_ns is None:
            self._start_ns = now
        if self._period is None:
            self._period = now // period
        value = step.sensors.get(self.sensor)
        if value is None:
            self._surfaced_ns = None
        elif self._surfaced_ns is None:
            self._surfaced_ns = value.time_ns
        acquired = value is not None and value.time_ns - (self._surfaced_ns or 0) >= self.reacquisition_ns
        if acquired and value is not None and value.time_ns // period > self._period:
            if not self._first_fix_ms:
                self._first_fix_ms = max((value.time_ns - self._start_ns) // 1_000_000, 1)
            self._period = value.time_ns // period
            self._epoch(value.time_ns, value)
        elif not acquired and now >= (self._period + 1.5) * period:  # half a period later: a value could still come
            self._period += 1
            self._epoch(self._period * period, None)

    def _epoch(self, time_ns: int, value: Value | None) -> None:
        self._epochs += 1
        self._last = fix = Fix(time_ns, value, self._start_ns or 0, self._first_fix_ms)
        for message in MESSAGES.values():
            rate = self.settings.rates[message]
            if rate and self._epochs % rate == 0:
                self._send_message(message, fix)

    def _send_message(self, message: tuple[int, int], fix: Fix) -> None:
        if message[0] in (NMEA, PUBX):
            if self.settings.output_mask & 2:
                self.send(nmea_sentence(message[1], fix) if message[0] == NMEA else pubx_position(fix))
        elif self.settings.output_mask & 1:
            self.send(frame(*message, CONTENTS[message](fix)))

    # -------------------------------------------------------------- commands

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from a host."""
        for class_, identifier, content in self.splitter.feed(data):
            if class_ == CFG:
                self._configure(identifier, content)
            elif (class_, identifier) == (MON, 0x04) and not content:
                each = b"".join(text.ljust(30, b"\0") for text in VERSIONS)
                self.send(
                    frame(MON, 0x04, b"ROM CORE 3.01 (107888)".ljust(30, b"\0") + b"00080000".ljust(10, b"\0") + each)
                )
            elif (class_, identifier) in CONTENTS and not content and self._last is not None:
                self.send(frame(class_, identifier, CONTENTS[class_, identifier](self._last)))
        for line in self.lines.feed(self.splitter.take_between()):
            if line.startswith("$") and not self._execute_sentence(line):
                self.refused += 1

    def _execute_sentence(self, line: str) -> bool:
        """Execute PUBX,00 (poll) or PUBX,40 (rates), and return whether the sentence is valid. Sentences are not
        acknowledged.
        """
        body, star, check = line[1:].partition("*")
        if not line.isascii():
            return False
        if star and nmea.sentence(body).decode("ascii")[-4:-2] != check.upper():
            return False
        fields = body.split(",")
        if fields == ["PUBX", "00"]:
            if self._last is not None:
                self.send(pubx_position(self._last))
            return True
        if fields[:2] != ["PUBX", "40"] or len(fields) < 5 or fields[2] not in SENTENCES:
            return False
        rate = fields[4]  # of the first serial port
        if not (rate.isdecimal() and int(rate) <= 255):
            return False
        self.settings.rates[MESSAGES[SENTENCES[fields[2]]]] = int(rate)
        return True

    def _configure(self, identifier: int, content: bytes) -> None:
        """Execute a CFG message, and answer it with ACK-ACK or ACK-NAK. The answer to a poll also contains the setting."""
        call = {
            0x00: self._port,
            0x01: self._message,
            0x04: self._reset,
            0x08: self._rate,
            0x09: self._save,
            0x24: self._nav5,
        }
        done = identifier in call and call[identifier](content)
        if identifier == 0x04 and done:
            return  # a reset has no answer
        self.refused += not done
        self.send(frame(ACK, 0x01 if done else 0x00, bytes((CFG, identifier))))

    def _port(self, content: bytes) -> bool:
        s = self.settings
        if len(content) in (0, 1):
            if content not in (b"", b"\x01"):
                return False
            port = struct.pack("<BBHIIHHHH", 1, 0, 0, 0x08D0, s.baud, 0x07, s.output_mask, 0, 0)
            self.send(frame(CFG, 0x00, port))
            return True
        if len(content) != 20 or content[0] != 1:
            return False
        s.baud, s.output_mask = struct.unpack_from("<I", content, 8)[0], struct.unpack_from("<H", content, 14)[0]
        return True

    def _message(self, content: bytes) -> bool:
        message = (content[0], content[1]) if len(content) >= 2 else (0, 0)
        if message not in self.settings.rates or len(content) not in (2, 3, 8):
            return False
        if len(content) == 2:
            rate = self.settings.rates[message]
            self.send(frame(CFG, 0x01, bytes((*message, 0, rate, 0, 0, 0, 0))))
        else:
            self.settings.rates[message] = content[2] if len(content) == 3 else content[3]
        return True

    def _reset(self, content: bytes) -> bool:
        if len(content) != 4:
            return False
        self._restart()
        return True

    def _rate(self, content: bytes) -> bool:
        if not content:
            self.send(frame(CFG, 0x08, struct.pack("<HHH", self.settings.period_ms, 1, 1)))
            return True
        if len(content) != 6:
            return False
        period, cycles, _ = struct.unpack("<HHH", content)
        if period < 25 or not 1 <= cycles <= 127:
            return False
        self.settings.period_ms = period * cycles
        self._period = None
        return True

    def _save(self, content: bytes) -> bool:
        if len(content) not in (12, 13):
            return False
        clear, _, load = struct.unpack_from("<III", content)
        if clear and load:
            self.settings, self._period = ReceiverSettings(), None
        return True

    def _nav5(self, content: bytes) -> bool:
        if not content:
            self.send(frame(CFG, 0x24, self.settings.nav5))
        elif len(content) == 36:
            self.settings.nav5 = content
        return len(content) in (0, 36)
