"""Encoder of side-scan frames in the XTF format (Triton eXtended Format), little-endian. It returns bytes and opens no
files.

A file is :func:`file_header` followed by a :func:`ping` for each frame. Positions are in degrees. A ping contains the
samples of the frame in one channel per side, with the first sample nearest to the sonar. The port channel is mirrored,
as XTF readers expect. Times have a resolution of 10 ms.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from wavesim_sdk.epoch import utc
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.imaging_frames import ImagingFrame

DEGREES, SLANT, MAGIC, SONAR = 3, 1, 0xFACE, 0
FORMATS = {1: 8, 2: 3}  #: XTF code of the sample format (u8 or u16), by the number of bytes per sample


class NoSideScan(WaveSimError):
    """Raised for a frame that XTF cannot represent because it does not come from a side-scan sonar."""


def _check(frame: ImagingFrame) -> Any:
    if frame.kind != "sidescan":
        raise NoSideScan(f"an XTF file needs side-scan frames; this sonar is of type '{frame.kind}'")
    return frame.record


def file_header(frame: ImagingFrame, origin: Origin) -> bytes:
    """Return the file header (1024 bytes) for the frames from this sonar."""
    r = _check(frame)
    out = bytearray(1024)
    out[0:2] = b"\x7b\x01"
    out[2:10] = b"WaveSim\0"
    struct.pack_into("<HH", out, 164, DEGREES, 2)
    for k, name in enumerate((b"port", b"starboard")):
        at = 256 + 128 * k
        struct.pack_into("<BBHHHI", out, at, k + 1, 0, SLANT, 0, int(r["sample_bytes"]), 1024)
        out[at + 12 : at + 12 + len(name)] = name
        struct.pack_into("<f", out, at + 32, float(r["frequency"]))
        out[at + 74] = FORMATS[int(r["sample_bytes"])]
    return bytes(out)


def ping(frame: ImagingFrame, origin: Origin, period: float = 0.0) -> bytes:
    """Return the XTF record of a frame. ``origin`` is the origin of the world frame. ``period`` is the time in s
    between pings.
    """
    r = _check(frame)
    when = utc(int(r["ping_ns"]))
    latitude, longitude = origin.degrees(r["p_WS_W"])
    samples = np.ascontiguousarray(frame.samples)
    channels = [samples[0, ::-1].tobytes(), samples[1].tobytes()]
    size = 256 + sum(64 + len(c) for c in channels)
    padded = (size + 63) & ~63
    out = bytearray(padded)
    struct.pack_into("<HBxH4xI", out, 0, MAGIC, SONAR, 2, padded)
    struct.pack_into(
        "<H6BH",
        out,
        14,
        when.year,
        when.month,
        when.day,
        when.hour,
        when.minute,
        when.second,
        when.microsecond // 10_000,
        when.timetuple().tm_yday,
    )
    struct.pack_into("<If", out, 28, int(r["number"]), 0.5 * float(r["sound_speed"]))
    struct.pack_into("<dd", out, 160, latitude, longitude)
    altitude = float(r["altitude"])
    struct.pack_into("<ff", out, 192, float(r["p_WS_W"][2]), altitude if math.isfinite(altitude) else 0.0)
    roll, pitch, heading = (math.degrees(float(x)) for x in r["euler"])
    struct.pack_into("<fff", out, 204, pitch, roll, heading % 360.0)
    at = 256
    for k, data in enumerate(channels):
        struct.pack_into("<Hxxf", out, at, k, float(r["range"]))
        struct.pack_into("<ff", out, at + 16, 2.0 * float(r["range"]) / float(r["sound_speed"]), period)
        struct.pack_into("<H", out, at + 26, round(float(r["frequency"]) * 1e-3))
        struct.pack_into("<I", out, at + 42, int(r["bins"]))
        out[at + 64 : at + 64 + len(data)] = data
        at += 64 + len(data)
    return bytes(out)
