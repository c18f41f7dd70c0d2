"""Data packets of UASP2: the time of the first sample in us, the number of the packet, the numbers of samples and of
channels, and then 32-bit floating-point samples, sample by sample. All values are big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

HEADER = struct.Struct(">QIHH")
MAX_PACKET_BYTES = 1432  #: maximum size of a datagram that networks do not split
MAX_PACKET_SAMPLES = 256  #: maximum number of samples per channel in a datagram


def encode_packet(time_us: int, number: int, samples: Any) -> bytes:
    """Return the packet for samples (channels, n)."""
    channels, count = samples.shape
    data: bytes = samples.T.astype(">f4").tobytes()
    return HEADER.pack(time_us, number % 2**32, count, channels) + data


def decode_samples(data: bytes) -> Any:
    """Return the samples in a packet for a converter with one channel, limited to +-1. As in other servers, time,
    number and number of samples are ignored. Raises ValueError if the packet is invalid.
    """
    if len(data) <= HEADER.size or (len(data) - HEADER.size) % 4 or HEADER.unpack_from(data)[3] > 1:
        raise ValueError("invalid packet")
    samples = np.frombuffer(data, ">f4", offset=HEADER.size).astype(np.float32)
    if not np.isfinite(samples).all():
        raise ValueError("a sample is not a number")
    return np.clip(samples, -1.0, 1.0)


class PacketSplitter:
    """Splitter of the samples of a hydrophone into packets of equal size. Packet 0 begins at the sample ``origin``.

    If samples are missing, the incomplete packets are omitted, and the numbers of the others stay the same.
    """

    def __init__(self, channels: int, origin: int = 0) -> None:
        self.size = min((MAX_PACKET_BYTES - HEADER.size) // (4 * channels), MAX_PACKET_SAMPLES)
        self.origin = origin
        self.number = 0  #: number of the next packet
        self._kept = np.zeros((channels, 0), np.float32)
        self._next = origin  # number of the sample after those that are kept

    def restart(self, origin: int) -> None:
        """Begin again with packet 0 at the given sample."""
        self.origin, self.number = origin, 0

    def cut(self, first: int, samples: Any) -> Iterator[tuple[int, int, Any]]:
        """Yield the packets that these samples (channels, n) complete: the number of the packet, the number of its
        first sample, and its samples. ``first`` is the number of the first of the given samples.
        """
        if first == self._next:
            first -= self._kept.shape[1]
            samples = np.concatenate([self._kept, samples], axis=1)
        self._next = first + samples.shape[1]
        self.number = max(-((self.origin - first) // self.size), 0)
        begin = self.origin + self.number * self.size - first
        while begin + self.size <= samples.shape[1]:
            self.number += 1
            yield self.number - 1, first + begin, samples[:, begin : begin + self.size]
            begin += self.size
        self._kept = samples[:, begin:].copy()
