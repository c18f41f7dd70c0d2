"""Encoder of multibeam echosounder frames in the KMALL format (Kongsberg), little-endian. It returns bytes and opens no
files.

A file is :func:`file_header` followed by a :func:`ping` for each frame. The header contains the installation (#IIP),
the settings (#IOP) and the sound speed (#SVP). A ping contains the attitude (#SKM), the position (#SPO) and the
soundings (#MRZ version 3). The sonar is the reference point of the vessel, whose axes are x (ahead), y (to starboard)
and z (down). Levels are written as received, whereas real instruments correct and filter them. Only lost detections are
flagged.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from wavesim_sdk.epoch import unix
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.imaging_frames import SOUNDING_COLUMNS, ImagingFrame

ECHO_SOUNDER = 2040
#: struct format of a datagram header: size, type, version, system, echosounder, seconds, nanoseconds
HEADER = struct.Struct("<I4sBBHII")
MRZ_VERSION, SKM_VERSION, SPO_VERSION, SVP_VERSION = 3, 1, 0, 1
NO_DETECTION, AMPLITUDE, PHASE = 0, 1, 2  #: detection methods, as in the `detection` column of the soundings
LOST = 2  #: code for a failed detection
ACTIVE = 1  #: status code of a sensor that is in use
_AT = "X=0.000;Y=0.000;Z=0.000"
_TURNED = _AT + ";R=0.000;P=0.000;H=0.000"
#: text of the #IIP datagram; readers require all of its parts, with the first seven in this order
INSTALLATION = (
    f"OSCV:Empty,EMXV:EM{ECHO_SOUNDER},PU_0,SN=0,IP=0.0.0.0:0x00000000,UDP=0,TYPE=none,SERIALno:,TX:0,RX:0,SERIALno-END,"
    f"SYSTEM:EM {ECHO_SOUNDER}-Single Tx single Rx,TRAI_TX1:N=0;{_TURNED};S=0.5,TRAI_RX1:N=0;{_TURNED};G=0.000,"
    f"POSI_1:{_AT};D=0.000;G=WGS84;T=OFF;C=OFF;F=GGA;Q=ON;I=COM1;U=ACTIVE,"
    f"ATTI_1:{_TURNED};D=0.000;M=RP;F=KMB;I=COM2;U=ACTIVE,"
)
PING = struct.Struct("<2Hf6BH11f2h2BHI3f2Hf2H6f4B2d2f2BH")
SECTOR = struct.Struct("<4B7f2BH3f")
RECEIVER = struct.Struct("<4H4f4H")
SOUNDED = struct.Struct("<H8BH6f2H18f4H")


class NoSoundings(WaveSimError):
    """Raised for a frame that has no soundings because it does not come from a multibeam echosounder."""


def _check(frame: ImagingFrame) -> Any:
    if frame.kind != "bathymetry":
        raise NoSoundings(f"a KMALL file needs soundings (sonar type bathymetry); this sonar is of type '{frame.kind}'")
    return frame.record


def _datagram(kind: bytes, version: int, time_ns: int, body: bytes) -> bytes:
    size = HEADER.size + len(body) + 4
    return HEADER.pack(size, kind, version, 0, ECHO_SOUNDER, *unix(time_ns)) + body + struct.pack("<I", size)


def _text_datagram(kind: bytes, time_ns: int, text: str) -> bytes:
    """Return the #IIP or #IOP datagram with a text that is padded to a multiple of four bytes."""
    data = text.encode() + b"\0"
    data += bytes(-(6 + len(data)) % 4)
    return _datagram(kind, 0, time_ns, struct.pack("<3H", 6 + len(data), 0, 0) + data)


def file_header(frame: ImagingFrame, origin: Origin) -> bytes:
    """Return the start of a file: installation, settings and sound speed.

    All instruments are at the reference point. The settings contain the sector of the frame. The sound speed profile
    contains the sound speed of the frame, at two depths.
    """
    r = _check(frame)
    half = 0.5 * math.degrees(float(r["sector"]))
    settings = f'"Sector coverage"\nMax angle Port: {half:.1f}\nMax angle Starboard: {half:.1f}\n'
    begin = _text_datagram(b"#IIP", int(r["ping_ns"]), INSTALLATION) + _text_datagram(
        b"#IOP", int(r["ping_ns"]), settings
    )
    time_ns, speed = int(r["ping_ns"]), float(r["sound_speed"])
    where = origin.degrees(r["p_WS_W"])
    body = struct.pack("<2H4sI2d", 28, 2, b"S00\0", unix(time_ns)[0], *where)
    body += b"".join(struct.pack("<2fI2f", depth, speed, 0, 0.0, 0.0) for depth in (0.0, 12_000.0))
    return begin + _datagram(b"#SVP", SVP_VERSION, time_ns, body)


def ping(frame: ImagingFrame, origin: Origin, period: float = 0.0) -> bytes:
    """Return the datagrams for a frame. ``origin`` is the origin of the world frame. ``period`` is the time in s
    between pings.
    """
    r = _check(frame)
    where = origin.degrees(r["p_WS_W"])
    return _attitude(r, where) + _position(r, where) + _soundings(frame, r, where, origin, period)


def _attitude(r: Any, where: tuple[float, float]) -> bytes:
    """Return the #SKM datagram with one attitude sample, taken at the time of the ping."""
    time_ns = int(r["ping_ns"])
    roll, pitch, heading = (math.degrees(float(x)) for x in r["euler"])
    velocity = [float(x) for x in r["v_WS_W"]]
    sample = struct.pack("<4s2H3I2d", b"#KMB", 120, 1, *unix(time_ns), 0, *where)
    numbers = [0.0, roll, pitch, heading % 360.0, 0.0, 0.0, 0.0, 0.0, *velocity, *[0.0] * 10]
    sample += struct.pack("<21f", *numbers) + struct.pack("<2If", *unix(time_ns), 0.0)
    info = struct.pack("<H2B4H", 12, 0, ACTIVE, 1, 1, len(sample), 0b111111)
    return _datagram(b"#SKM", SKM_VERSION, time_ns, info + sample)


def _position(r: Any, where: tuple[float, float]) -> bytes:
    """Return the #SPO datagram with the position at the time of the ping."""
    time_ns = int(r["ping_ns"])
    north, east = float(r["v_WS_W"][0]), float(r["v_WS_W"][1])
    course = math.degrees(math.atan2(east, north)) % 360.0
    body = struct.pack("<4H2If2d3f", 8, 0, ACTIVE, 0, *unix(time_ns), 0.0, *where, math.hypot(north, east), course, 0.0)
    return _datagram(b"#SPO", SPO_VERSION, time_ns, body)


def _soundings(frame: ImagingFrame, r: Any, where: tuple[float, float], origin: Origin, period: float) -> bytes:
    """Return the #MRZ datagram with the soundings of the ping."""
    s = dict(zip(SOUNDING_COLUMNS, frame.samples.T, strict=True))
    good = s["detection"] > 0.0
    half, heading = 0.5 * math.degrees(float(r["sector"])), float(r["euler"][2])
    beam, along = math.degrees(float(r["beam_width"])), math.degrees(float(r["fan_height"]))
    frequency, band = float(r["frequency"]), float(r["bandwidth"])
    across = np.where(good, s["y"], 0.0)
    reach = (float(-across.min()), float(across.max())) if len(across) else (0.0, 0.0)
    pulse = 1.0 / band
    body = struct.pack("<2H2H8B", 1, 1, 12, int(r["number"]) & 0xFFFF, 1, 0, 1, 0, 0, 0, 1, 0)
    body += PING.pack(
        PING.size, 0, 1.0 / period if period > 0.0 else 0.0, 1, 0, 0, 0, 0, 2, 0, frequency, frequency - 0.5 * band,
        frequency + 0.5 * band, pulse, pulse, band, 1e3 * float(r["absorption"]), half, half, half, half,
        _short(reach[0]), _short(reach[1]), 0, 0, 0, 0, along, beam, 0.0, 0, 0, 0.0, 1, SECTOR.size,
        math.degrees(heading) % 360.0, float(r["sound_speed"]), float(r["p_WS_W"][2]), -float(r["p_WS_W"][2]), 0.0, 0.0,
        0, 0, 0, 0, *where, 0.0, 0.0, 0, 0, 0,
    )  # fmt: skip
    body += SECTOR.pack(
        0, 0, 0, 0, 0.0, 0.0, float(r["source_level"]), 0.0, frequency, band, pulse, 0, 2, 0, 0.0, 0.0, pulse
    )
    body += RECEIVER.pack(RECEIVER.size, len(good), int(good.sum()), SOUNDED.size, 0.0, 0.0, 0.0, 0.0, 0, 0, 0, 0)
    x, y, z = (np.where(good, s[n], 0.0) for n in "xyz")
    c, sine = math.cos(heading), math.sin(heading)
    places = np.stack([c * x - sine * y, sine * x + c * y, np.zeros_like(x)], axis=-1) + r["p_WS_W"]
    north, east = (there - here for there, here in zip(origin.degrees(places), where, strict=True))
    for k in range(len(good)):
        found = bool(good[k])
        sigma = float(s["sigma_z"][k]) if found else 0.0
        level = float(s["level"][k]) if found else 0.0
        body += SOUNDED.pack(
            k, 0, 0 if found else LOST, int(s["detection"][k]) if found else NO_DETECTION, 0, 0, 0, 0, 0, 0, 0.0,
            100.0 * sigma / z[k] if z[k] > 0.0 else 0.0, sigma, float(s["sigma_r"][k]) if found else 0.0, 0.0, 0.0, 0, 0,
            math.degrees(float(s["angle"][k])), 1e3 * float(r["absorption"]), level, level, 0.0,
            float(r["source_level"]), 0.0, 0.0, -math.degrees(float(s["angle"][k])), 0.0,
            float(s["time"][k]) if found else 0.0, 0.0, north[k], east[k], z[k], y[k], x[k], 0.0, 0, 0, 0, 0,
        )  # fmt: skip
    return _datagram(b"#MRZ", MRZ_VERSION, int(r["ping_ns"]), body)


def _short(metres: float) -> int:
    return max(-32768, min(32767, round(metres)))
