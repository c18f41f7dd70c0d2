"""Pictures of frames from sonars and cameras, with the label of each pixel, and a writer for PNG files."""

from __future__ import annotations

import functools
import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.elementary import atan2, sin_cos
from wavesim_sdk.frame_labels import NOTHING
from wavesim_sdk.imaging_frames import ImagingFrame

LINES = 500  #: number of pings of a side-scan sonar in one picture
FAN_ROWS = 512  #: maximum number of pixels from the sonar to the maximum range in a fan
#: compression level of PNG files; a higher level would save little, because speckle is hardly compressible
COMPRESSION = 4


class Picture(NamedTuple):
    """Picture of one or several frames.

    ``view`` is `polar` (rows are ranges, with the farthest at the top, and columns are beams), `fan` (undistorted; the
    direction ahead points up), `waterfall` (rows are pings of a side-scan sonar; port is on the left), `range` (range
    image of a 3D sonar) or `camera`. ``pixels`` (rows, columns) or (rows, columns, 3) contains integers of 8 or 16
    bits. ``labels`` (rows, columns) contains the object of each pixel, or is None. ``frame`` is the first frame.
    """

    view: str
    pixels: Any
    labels: Any
    frame: ImagingFrame


def pictures(frames: Iterable[ImagingFrame]) -> Iterator[Picture]:
    """Yield the pictures of the frames of one instrument, in chronological order.

    A forward-looking sonar gives two pictures per frame, `polar` and `fan`, and so does a scanning sonar for each turn.
    Frames of multibeam echosounders and lidars give no pictures and are omitted.
    """
    several: list[ImagingFrame] = []
    for frame in frames:
        if frame.kind == "forward":
            yield from _sector([frame], frame.samples, frame.labels, frame.angles)
        elif frame.kind == "camera":
            yield Picture("camera", frame.image, _objects(frame.labels), frame)
        elif frame.kind == "3d":
            yield Picture("range", frame.samples["range"], _objects(frame.labels), frame)
        elif frame.kind in ("sidescan", "scanning"):
            if several and _is_complete(several, frame):
                yield from _join(several)
                several = []
            several.append(frame)
    if several:
        yield from _join(several)


def _is_complete(several: list[ImagingFrame], following: ImagingFrame) -> bool:
    """Return whether the picture of several pings is complete, so that the following ping begins a new picture."""
    if following.samples.shape != several[-1].samples.shape:
        return True
    if following.kind == "sidescan":
        return len(several) == LINES
    return float(following.record["azimuth"]) <= float(several[-1].record["azimuth"])


def _join(several: list[ImagingFrame]) -> Iterator[Picture]:
    has_labels = several[0].labels is not None
    if several[0].kind == "scanning":
        samples = np.concatenate([f.samples for f in several])
        labels = np.concatenate([f.labels for f in several]) if has_labels else None
        yield from _sector(several, samples, labels, np.array([float(f.record["azimuth"]) for f in several]))
        return

    def lines(sides: list[Any]) -> Any:
        """Join the port side, with its far end at the left, and the starboard side."""
        return np.stack([np.concatenate([port[::-1], starboard]) for port, starboard in sides])

    labels = lines([f.labels[..., 1] for f in several]) if has_labels else None
    yield Picture("waterfall", lines([f.samples for f in several]), labels, several[0])


def _sector(several: list[ImagingFrame], samples: Any, labels: Any, angles: Any) -> Iterator[Picture]:
    objects = _objects(labels)
    yield Picture("polar", samples.T[::-1], None if objects is None else objects.T[::-1], several[0])
    if len(angles) > 1:
        beam, bin_, is_outside = _fan(samples.shape[1], angles.tobytes())
        pixels = np.where(is_outside, 0, samples[beam, bin_]).astype(samples.dtype)
        seen = None if objects is None else np.where(is_outside, NOTHING, objects[beam, bin_])
        yield Picture("fan", pixels, seen, several[0])


def _objects(labels: Any) -> Any:
    return None if labels is None else labels[..., 1]


@functools.lru_cache(maxsize=8)
def _fan(bins: int, angles: bytes) -> tuple[Any, Any, Any]:
    """Return the nearest beam and bin for each pixel of a fan, and whether the pixel is outside the sector. ``angles``
    contains the angles of the beams as 8-byte floating-point numbers.
    """
    a = np.frombuffer(angles, np.float64)
    rows = min(bins, FAN_ROWS)
    step = 1.0 / rows  # size of a pixel, as a fraction of the range
    edges = np.concatenate([a[:1] - 0.5 * (a[1] - a[0]), 0.5 * (a[1:] + a[:-1]), a[-1:] + 0.5 * (a[-1] - a[-2])])
    reach = max(abs(float(edges[0])), abs(float(edges[-1])))
    half = math.ceil(rows * sin_cos(min(reach, 0.5 * math.pi))[0])
    below = math.ceil(rows * max(0.0, -sin_cos(min(reach, math.pi))[1]))
    y, x = np.meshgrid((np.arange(-half, half) + 0.5) * step, (np.arange(rows, -below, -1) - 0.5) * step)
    r, azimuth = np.sqrt(x * x + y * y), atan2(y, x)
    is_outside = (r >= 1.0) | (azimuth < edges[0]) | (azimuth > edges[-1])
    beam = np.clip(np.searchsorted(edges, azimuth) - 1, 0, len(a) - 1)
    return beam, np.minimum((r * bins).astype(np.int64), bins - 1), is_outside


def png(pixels: Any) -> bytes:
    """Return the PNG file of an image (rows, columns) or (rows, columns, 3) of unsigned integers with 8 or 16 bits."""
    rows, columns = pixels.shape[:2]
    big = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder(">"))
    lines = big.reshape(rows, -1).view(np.uint8)
    data = np.zeros((rows, lines.shape[1] + 1), np.uint8)  # each line begins with its filter, 0 = none
    data[:, 1:] = lines
    header = struct.pack(">IIBBBBB", columns, rows, 8 * pixels.dtype.itemsize, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(data.tobytes(), COMPRESSION)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def run_lengths(mask: Any) -> str:
    """Return a mask (rows, columns) as COCO's compressed run lengths: column by column, beginning with the unset
    pixels. Each length is stored as its difference from the length two positions earlier, in groups of 5 bits.
    """
    flat = np.asarray(mask, bool).T.ravel()
    ends = np.concatenate([np.flatnonzero(flat[1:] != flat[:-1]) + 1, [len(flat)]])
    lengths = np.diff(ends, prepend=0).tolist()
    if flat[0]:
        lengths.insert(0, 0)
    text = []
    for i, length in enumerate(lengths):
        x = length - lengths[i - 2] if i > 2 else length
        is_more = True
        while is_more:
            group = x & 0x1F
            x >>= 5
            is_more = x != -1 if group & 0x10 else x != 0
            text.append(chr((group | 0x20 if is_more else group) + 48))
    return "".join(text)
