"""Packets of the Range Image Protocol: a protobuf message with a length and a CRC-32.

The manufacturer's `WaterLinkedSonarIntegrationProtocol.proto` defines the messages. Fields that are zero are omitted,
as protobuf requires for the canonical encoding.
"""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Array

MAX_PACKET = 65507  #: maximum size of a UDP datagram, bytes
PROTOCOLS = ("RIP2", "RIP1")  #: versions of the protocol; RIP2 compresses the message
RANGE_IMAGE, BITMAP, IMU_BATCH = "RangeImage", "BitmapImageGreyscale8", "ImuBatch"  #: types of messages
SIGNAL_STRENGTH = 0  #: type of a bitmap that contains signal strengths
_TYPE_URL = "type.googleapis.com/waterlinked.sonar.protocol."
_VARINT, _DELIMITED, _FIXED32 = 0, 2, 5  #: wire types of protobuf
_LONG_LITERAL = 61 << 2  #: tag of a Snappy literal whose length follows in two bytes


@dataclass(frozen=True)
class ImageHead:
    """Fields that all images have. Angles are in deg."""

    time: tuple[int, int]  #: civil time: whole seconds since 1970, ns
    sequence: int
    speed_of_sound: float  #: speed of sound, m/s
    range: float  #: maximum range of the image, m
    frequency: int  #: acoustic frequency, Hz
    size: tuple[int, int]  #: width and height in pixels
    view: tuple[float, float]  #: horizontal and vertical field of view


def varint(value: int) -> bytes:
    """Encode a non-negative integer."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def packed_varints(values: Array) -> bytes:
    """Encode integers from 0 to 65535, one after the other."""
    v = np.asarray(values, np.uint32).ravel()
    length = 1 + (v > 127) + (v > 16383)
    groups = np.stack([v & 127, v >> 7 & 127, v >> 14], axis=1)
    place = np.arange(3)
    groups |= np.where(place < length[:, None] - 1, 128, 0).astype(np.uint32)
    return groups[place < length[:, None]].astype(np.uint8).tobytes()


def integer(number: int, value: int) -> bytes:
    """Encode an integer field."""
    return varint(number << 3 | _VARINT) + varint(value) if value else b""


def single(number: int, value: float) -> bytes:
    """Encode a single-precision field."""
    data = struct.pack("<f", value)
    return varint(number << 3 | _FIXED32) + data if any(data) else b""


def delimited(number: int, data: bytes, is_message: bool = False) -> bytes:
    """Encode a length-delimited field: bytes, text, packed numbers or a message. An empty message is also encoded."""
    return varint(number << 3 | _DELIMITED) + varint(len(data)) + data if data or is_message else b""


def timestamp(time: tuple[int, int]) -> bytes:
    """Encode a civil time."""
    return integer(1, time[0]) + integer(2, time[1])


def _head(head: ImageHead) -> bytes:
    return (
        delimited(1, delimited(1, timestamp(head.time), is_message=True) + integer(2, head.sequence), is_message=True)
        + single(2, head.speed_of_sound)
        + single(3, head.range)
        + integer(4, head.frequency)
    )


def range_image(head: ImageHead, scale: float, pixels: Array) -> bytes:
    """Encode a RangeImage. ``pixels`` are ranges in units of ``scale`` m; 0 = no echo."""
    sizes = (
        *(integer(5 + k, n) for k, n in enumerate(head.size)),
        *(single(7 + k, a) for k, a in enumerate(head.view)),
    )
    return b"".join([_head(head), *sizes, single(9, scale), delimited(10, packed_varints(pixels))])


def bitmap(head: ImageHead, kind: int, pixels: Array) -> bytes:
    """Encode a BitmapImageGreyscale8 with pixels from 0 to 255."""
    sizes = (
        *(integer(6 + k, n) for k, n in enumerate(head.size)),
        *(single(8 + k, a) for k, a in enumerate(head.view)),
    )
    return b"".join([_head(head), integer(5, kind), *sizes, delimited(10, np.asarray(pixels, np.uint8).tobytes())])


def imu_batch(sequence: int, samples: Sequence[tuple[tuple[int, int], Iterable[float], Iterable[float]]]) -> bytes:
    """Encode an ImuBatch. A sample contains the civil time, the specific force (m/s2) and the rate of turn (rad/s)."""
    times = (delimited(3, timestamp(time), is_message=True) for time, _, _ in samples)
    forces, rates = (
        np.array([*itertools.chain.from_iterable(sample[k] for sample in samples)], "<f4").tobytes() for k in (1, 2)
    )
    return b"".join([integer(1, sequence), integer(2, len(samples)), *times, delimited(4, forces), delimited(5, rates)])


def snappy(data: bytes) -> bytes:
    """Return data in the Snappy format, as one uncompressed literal of at most 65536 bytes."""
    return varint(len(data)) + struct.pack("<BH", _LONG_LITERAL, len(data) - 1) + data


def packet(kind: str, message: bytes, protocol: str = "RIP2") -> bytes:
    """Return the packet that contains a message of this type."""
    body = delimited(1, delimited(1, (_TYPE_URL + kind).encode()) + delimited(2, message), is_message=True)
    if protocol == "RIP2":
        body = snappy(body)
    head = protocol.encode() + struct.pack("<I", len(body) + 12) + body
    return head + struct.pack("<I", zlib.crc32(head))
