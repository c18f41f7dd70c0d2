"""Virtual Doppler velocity log with the Teledyne RDI formats PD0, PD4 and PD6. It sends the values of a body's ``dvl``
sensor.

Velocities are in ship axes: starboard, forward, up; -32768 marks a bad value. PD0 reports the velocity of the bottom
relative to the instrument. PD4 and PD6 report the velocity of the vehicle, which has the opposite sign. Beams 1 to 4
have azimuths of 315, 135, 45 and 225 degrees from forward, positive to starboard. Beam 3 therefore points 45 degrees to
starboard of forward, as it does on an instrument that is mounted at an angle of 45 degrees. Heading, pitch and roll
come from the ``ahrs`` sensor, and temperature, salinity and depth from the ``ctd`` sensor, if the body has these
sensors.

Commands end with CR: ``===`` (break: stop pinging), ``CS`` (start), ``PD0 PD4 PD6``, ``CR1``, ``CK``, ``ES35``
(salinity), ``BXnnnnn`` (maximum depth, dm), ``EX...`` (ship axes only). The device replies ``>`` to each command. For
any other command, it sends an error before the ``>``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType

import numpy as np

from wavesim_devices.ports import Bytes
from wavesim_devices.seabird import ATMOSPHERE
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.broker import Step
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.wire.state import Value
from wavesim_world.ocean.seawater import depth

TYPES = ("dvl", "ahrs", "ctd")  #: sensor types whose values an ensemble contains
OWN_NAMES: Mapping[str, str] = MappingProxyType({t: t for t in TYPES})
BAD = -32768
BEAM_ANGLES = {15: 0, 20: 1, 30: 2}  #: code for each beam angle in the system configuration of PD0; 3 = other
ORDER = (3, 1, 0, 2)  #: indices of the sensor's beams (45, 135, 225, 315 degrees) in the order of beams 1 to 4
BANNER = b"\r\n[BREAK Wakeup A]\r\nWaVeSim Doppler velocity log\r\n"


@dataclass
class Ensemble:
    """One measurement (ensemble) from the DVL. Velocities of the vehicle are in m/s in ship axes (starboard, forward,
    up); NaN marks a bad velocity.
    """

    number: int
    time: datetime
    bottom: tuple[float, float, float]
    water: tuple[float, float, float]
    ranges: tuple[float, float, float, float]  #: vertical component of the range of each beam in m
    altitude: float  #: mean of the vertical ranges in m
    #: distance made good to the east, to the north and upwards, m
    east_north_up: tuple[float, float, float] = (0.0, 0.0, 0.0)
    since: float = 0.0  #: time in s since the last good bottom velocity
    heading: float = 0.0  #: heading in rad; pitch and roll are also in rad
    pitch: float = 0.0
    roll: float = 0.0
    sound_speed: float = 1500.0
    temperature: float = 15.0
    salinity: float = 35.0
    depth: float = 0.0


def _mm(value: float) -> int:
    """Return a velocity in mm/s as a 16-bit number, or BAD if the velocity is unknown or out of range."""
    v = round(value * 1000.0) if math.isfinite(value) else BAD
    return v if -32767 <= v <= 32767 else BAD


def _cm(value: float) -> int:
    """Return a distance in cm as a 16-bit number; 0 marks a bad distance."""
    v = round(value * 100.0) if math.isfinite(value) else 0
    return v if 0 < v <= 65535 else 0


def _checked(data: bytes) -> bytes:
    return data + struct.pack("<H", sum(data) & 0xFFFF)


def _angle(value: float) -> int:
    """Return an angle in hundredths of a degree."""
    return round(math.degrees(value) * 100.0)


def pd0(e: Ensemble, beam_angle: int = 30) -> bytes:
    """Return a PD0 ensemble: fixed leader, variable leader, one cell with the water velocity, and bottom track."""
    system = 0x404B | BEAM_ANGLES.get(beam_angle, 3) << 8  # four beams (Janus), convex, facing down, 614 kHz
    fixed = struct.pack(
        "<HBBHBBBBHHHBBBBHBBBBhhBBHHBBBBH8sHBBIB",
        0x0000, 50, 40, system, 0, 0, 4, 1, 1, 100, 50, 1, 64, 9, 0, 2000, 0, 1, 0, 0b0001_0010, 0, 0,
        0b0111_1101, 0b0111_1101, 150, 100, 0, 0, 50, 0, 50, bytes(8), 0, 255, 0, 1, beam_angle,
    )  # fmt: skip
    t = e.time
    clock = (t.month, t.day, t.hour, t.minute, t.second, t.microsecond // 10_000)
    kelly = round(max(e.depth, 0.0) * 1000.0)  # pressure in daPa, at 1 dbar per metre
    variable = struct.pack(
        "<HHBBBBBBBBHHHHhhHhBBBBBB8sIHIIBBBBBBBBB",
        0x0080, e.number & 0xFFFF, t.year % 100, *clock, (e.number >> 16) & 0xFF, 0, round(e.sound_speed),
        min(max(round(e.depth * 10.0), 0), 9999), _angle(e.heading) % 36000, _angle(e.pitch), _angle(e.roll),
        round(e.salinity), round(e.temperature * 100.0), 0, 0, 0, 0, 0, 0, bytes(8), 0, 0, kelly, 0, 0,
        t.year // 100, t.year % 100, *clock,
    )  # fmt: skip
    good = math.isfinite(e.water[0])
    cell = [_mm(-v) for v in e.water] + [0 if good else BAD]
    lock = math.isfinite(e.bottom[0])
    ranges = [_cm(r) for r in e.ranges]
    quality = [100 if r else 0 for r in ranges]
    bottom = struct.pack(
        "<HHHBBBBHI4H4h4B4B4BHHH4h4B4B4BH4BB4B4B",
        0x0600, 1, 0, 0, 0, 0, 5, 2000, 0, *ranges, *[_mm(-v) for v in e.bottom], 0 if lock else BAD,
        *[220 if q else 0 for q in quality], *[100 if q else 0 for q in quality], *quality,
        0, 0, 0, *cell, *[120] * 4, *[100] * 4, *[100 if good else 0] * 4, 9000, *[60] * 4, 0, *[0] * 4, *[0] * 4,
    )  # fmt: skip
    parts = [
        fixed,
        variable,
        struct.pack("<H4h", 0x0100, *cell),
        struct.pack("<H4B", 0x0200, *[120] * 4),
        struct.pack("<H4B", 0x0300, *[100] * 4),
        struct.pack("<H4B", 0x0400, 0, 0, 0, 100 if good else 0),
        bottom,
    ]
    offset = 6 + 2 * len(parts)
    offsets = []
    for part in parts:
        offsets.append(offset)
        offset += len(part)
    head = struct.pack(f"<BBHBB{len(parts)}H", 0x7F, 0x7F, offset, 0, len(parts), *offsets)
    return _checked(head + b"".join(parts))


def pd4(e: Ensemble, _beam_angle: int = 30) -> bytes:
    """Return a PD4 structure (47 bytes)."""
    lock, good, t = math.isfinite(e.bottom[0]), math.isfinite(e.water[0]), e.time
    ranges = [_cm(r) for r in e.ranges]
    status = sum((0 if r else 1) << 2 * k for k, r in enumerate(ranges))
    return _checked(
        struct.pack(
            "<BBHB4h4HB4hHHBBBBBHHh",
            0x7D, 0x00, 45, 0b1010_0011, *[_mm(v) for v in e.bottom], 0 if lock else BAD, *ranges, status,
            *[_mm(v) for v in e.water], 0 if good else BAD, 0, 0, 0 if good else 1,
            t.hour, t.minute, t.second, t.microsecond // 10_000, 0, round(e.sound_speed), round(e.temperature * 100.0),
        )
    )  # fmt: skip


def pd6(e: Ensemble, _beam_angle: int = 30) -> bytes:
    """Return a PD6 ensemble as lines of ASCII text."""

    def vector(v: Sequence[float], more: str = "") -> str:
        return ",".join(f"{_mm(x):+06d}" for x in v) + more + ("," + ("A" if math.isfinite(v[0]) else "V"))

    error = ",+00000" if math.isfinite(e.bottom[0]) else f",{BAD:+06d}"
    noise = ",+00000" if math.isfinite(e.water[0]) else f",{BAD:+06d}"
    t, altitude = e.time, e.altitude if math.isfinite(e.altitude) else 0.0
    east, north, up = e.east_north_up
    bottom, water = _earth(e, e.bottom), _earth(e, e.water)
    lines = [
        f":SA,{math.degrees(e.pitch):+06.2f},{math.degrees(e.roll):+06.2f},{math.degrees(e.heading) % 360.0:05.2f}",
        f":TS,{t:%y%m%d%H%M%S}{t.microsecond // 10_000:02d},{e.salinity:04.1f},{e.temperature:+05.1f},"
        f"{e.depth:06.1f},{e.sound_speed:06.1f},000",
        f":WI,{vector(e.water, noise)}",
        f":WS,{vector(e.water)}",
        f":WE,{vector(water)}",
        f":BI,{vector(e.bottom, error)}",
        f":BS,{vector(e.bottom)}",
        f":BE,{vector(bottom)}",
        f":BD,{east:+012.2f},{north:+012.2f},{up:+012.2f},{altitude:07.2f},{min(e.since, 999.99):06.2f}",
    ]
    return ("\r\n".join(lines) + "\r\n").encode("ascii")


def _earth(e: Ensemble, v: Sequence[float]) -> tuple[float, float, float]:
    """Rotate a vector from ship axes (starboard, forward, up) to (east, north, up)."""
    starboard, forward, up = v
    down = -up
    cr, sr, cp, sp = math.cos(e.roll), math.sin(e.roll), math.cos(e.pitch), math.sin(e.pitch)
    ahead = cp * forward + sp * (sr * starboard + cr * down)  # horizontal component along the heading
    across = cr * starboard - sr * down
    below = -sp * forward + cp * (sr * starboard + cr * down)
    ch, sh = math.cos(e.heading), math.sin(e.heading)
    return sh * ahead + ch * across, ch * ahead - sh * across, -below


FORMATS = {"PD0": pd0, "PD4": pd4, "PD6": pd6}


class DvlDevice:
    """Virtual Doppler velocity log. It executes host commands and sends an ensemble for each new sensor value."""

    def __init__(
        self,
        send: Bytes,
        form: str = "PD0",
        sound_speed: float = 1500.0,
        beam_angle: int = 30,
        picked: Mapping[str, str] = OWN_NAMES,
    ) -> None:
        self.send, self.output_format, self.sound_speed, self.beam_angle, self.sensor_names = (
            send,
            form,
            sound_speed,
            beam_angle,
            picked,
        )
        self.lines, self.refused = LineSplitter(), 0
        self.pinging, self.max_range_depth = True, math.inf
        self.salinity: float | None = None
        self.number = 0
        self._last: int | None = None
        self._good: float | None = None
        self._way = [0.0, 0.0, 0.0]

    @property
    def errors(self) -> int:
        """Number of invalid commands and lines."""
        return self.refused + self.lines.dropped

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        if b"===" in data or b"+++" in data:
            self.pinging = False
            self.send(BANNER + b">")
            data = data.replace(b"===", b"").replace(b"+++", b"")
        for line in self.lines.feed(data):
            self.send(line.encode("ascii", errors="replace") + b"\r\n" + self._handle_command(line.upper()) + b">")

    def _handle_command(self, line: str) -> bytes:
        verb, value = line[:2], line[2:].strip()
        if line in FORMATS:
            self.output_format = line
        elif verb == "CS" and not value:
            self.pinging = True
        elif verb == "ES" and value.isdigit() and int(value) <= 40:
            self.salinity = float(value)
        elif verb == "BX" and value.isdigit() and 10 <= int(value) <= 65535:
            self.max_range_depth = int(value) / 10.0
        elif verb == "CR" and value in ("0", "1"):
            self.salinity, self.max_range_depth, self.output_format = None, math.inf, "PD0"
        elif not (verb == "CK" and not value) and not (verb == "EX" and value[:2] == "10"):
            self.refused += 1
            return b" ERR: unknown command or invalid value\r\n"
        return b""

    def step(self, step: Step) -> None:
        """Process a new simulation state: send an ensemble for each new sensor value."""
        value = step.sensors.get(self.sensor_names["dvl"])
        if value is None or value.time_ns == self._last:
            return
        since = 0.0 if self._last is None else (value.time_ns - self._last) * 1e-9
        self._last = value.time_ns
        if self.pinging:
            self.send(FORMATS[self.output_format](self._ensemble(step, value, since), self.beam_angle))

    def _ensemble(self, step: Step, value: Value, since: float) -> Ensemble:
        b, w, ranges = value.bottom, value.water, value.ranges
        cos = math.cos(math.radians(self.beam_angle))
        vertical = [r * cos if r * cos <= self.max_range_depth else math.nan for r in ranges]
        if sum(map(math.isfinite, vertical)) < 3:
            b = (math.nan, math.nan, math.nan)
        self.number += 1
        time_s = value.time_ns * 1e-9
        e = Ensemble(
            self.number,
            EPOCH + timedelta(seconds=time_s),
            (b[1], b[0], -b[2]),
            (w[1], w[0], -w[2]),
            (vertical[ORDER[0]], vertical[ORDER[1]], vertical[ORDER[2]], vertical[ORDER[3]]),
            value.altitude if math.isfinite(b[0]) else math.nan,
            sound_speed=self.sound_speed,
        )
        if (ahrs := step.sensors.get(self.sensor_names.get("ahrs", ""))) is not None:
            e.roll, e.pitch, e.heading = ahrs.roll, ahrs.pitch, ahrs.heading
        if (ctd := step.sensors.get(self.sensor_names.get("ctd", ""))) is not None:
            gauge = np.array(max(ctd.pressure - ATMOSPHERE, 0.0))
            e.depth, e.temperature, e.salinity = float(depth(gauge, 0.7)), ctd.temperature, ctd.salinity
        if self.salinity is not None:
            e.salinity = self.salinity
        if math.isfinite(b[0]):
            self._way = [x + v * since for x, v in zip(self._way, _earth(e, e.bottom), strict=True)]
            self._good = time_s
        e.east_north_up = (self._way[0], self._way[1], self._way[2])
        e.since = time_s - self._good if self._good is not None else 999.99
        return e
