"""FLAC files: lossless compression of samples with fixed predictors and Rice codes (RFC 9639).

Each block of 4096 samples is one FLAC frame. The predictor is the polynomial of order 0 to 4 whose error is smallest. The
error is divided into eight parts with their own Rice parameters. If a subframe would be longer than its uncompressed
samples, it contains these samples instead.
"""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array, Ints
from wavesim_sdk.checksums import crc8, crc16

BLOCK = 4096  #: number of samples per channel in a frame
_ORDERS, _PARTS_LOG = 5, 3
_MAX_PARAMETER = 30
#: the bits of each byte in reverse order: FLAC computes its CRC-16 from the highest bit
MAX_CHANNELS = 8  #: maximum number of channels of a file
_REVERSED = bytes(int(f"{k:08b}"[::-1], 2) for k in range(256))


class FlacFile:
    """FLAC file with integer samples of 16 or 24 bits."""

    def __init__(self, path: Path, channels: int, rate: float, bits: int) -> None:
        self._file = path.open("wb")
        self._channels, self._rate, self._bits = channels, round(rate), bits
        self._hash, self._total, self._frames = hashlib.md5(usedforsecurity=False), 0, 0
        self._rest: Ints = np.zeros((channels, 0), np.int64)
        self._write_header()

    def write(self, samples: Any) -> None:
        """Append samples (channels, n)."""
        by_time = np.ascontiguousarray(np.asarray(samples).T).astype("<i4")
        self._hash.update(by_time.view(np.uint8).reshape(-1, 4)[:, : self._bits // 8].tobytes())
        self._rest = np.concatenate([self._rest, np.asarray(samples, np.int64)], axis=1)
        while self._rest.shape[1] >= BLOCK:
            self._write_frame(self._rest[:, :BLOCK])
            self._rest = self._rest[:, BLOCK:]

    def close(self) -> None:
        if self._rest.shape[1]:
            self._write_frame(self._rest)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        """Write the marker and the stream information, the only block of metadata."""
        numbers = self._rate << 44 | (self._channels - 1) << 41 | (self._bits - 1) << 36 | self._total
        self._file.seek(0)
        self._file.write(b"fLaC" + struct.pack(">I", 0x80000022) + struct.pack(">HH", BLOCK, BLOCK) + bytes(6))
        self._file.write(struct.pack(">Q", numbers) + self._hash.digest())

    def _write_frame(self, samples: Ints) -> None:
        count = samples.shape[1]
        # fixed block size, 16 bits for the number of samples; the rate and the word length are in the header
        head = bytes([0xFF, 0xF8, 0x70, (self._channels - 1) << 4]) + _coded_number(self._frames)
        head += struct.pack(">H", count - 1)
        head += bytes([crc8(head)])
        body = head + np.packbits(np.concatenate([_subframe(x, self._bits) for x in samples])).tobytes()
        crc = crc16(body.translate(_REVERSED))
        self._file.write(body + bytes(_REVERSED[k] for k in (crc & 0xFF, crc >> 8)))
        self._total, self._frames = self._total + count, self._frames + 1


def _coded_number(number: int) -> bytes:
    """Return a number in the extended UTF-8 of frame headers."""
    if number < 0x80:
        return bytes([number])
    more = 1
    while number >= 1 << (6 * more + 6 - more):
        more += 1
    first = (0xFF00 >> (more + 1)) & 0xFF | number >> (6 * more)
    return bytes([first, *(0x80 | number >> (6 * k) & 0x3F for k in range(more - 1, -1, -1))])


def _bits_of(values: Any, width: int) -> Array:
    """Return the bits of numbers in two's complement, the highest first."""
    numbers = np.atleast_1d(np.asarray(values, np.int64))
    return (numbers[:, np.newaxis] >> np.arange(width - 1, -1, -1) & 1).astype(np.uint8).ravel()


def _subframe(x: Ints, bits: int) -> Array:
    """Return the bits of the shortest subframe for the samples of a channel."""
    if (x == x[0]).all():
        return np.concatenate([_bits_of(0, 8), _bits_of(x[0], bits)])
    verbatim = np.concatenate([_bits_of(2, 8), _bits_of(x, bits)])
    errors = [x]
    for _ in range(min(_ORDERS, len(x)) - 1):
        errors.append(np.diff(errors[-1]))
    order = int(np.argmin([abs(e[_ORDERS - 1 - k :]).sum() for k, e in enumerate(errors)]))
    parts_log = _PARTS_LOG if len(x) == BLOCK else 0
    head = [_bits_of(16 + 2 * order, 8), _bits_of(x[:order], bits), _bits_of(1, 2), _bits_of(parts_log, 4)]
    made = np.concatenate([*head, *_rice_parts(errors[order], len(x), parts_log)])
    return made if len(made) < len(verbatim) else verbatim


def _rice_parts(error: Ints, count: int, parts_log: int) -> list[Array]:
    """Return the Rice codes of all parts of an error, each after its parameter in five bits. The first part does not
    contain the warm-up samples.
    """
    folded = np.where(error < 0, -2 * error - 1, 2 * error)
    edges = np.maximum(np.arange(1, 1 << parts_log) * (count >> parts_log) - (count - len(error)), 0)
    found = []
    for part in np.split(folded, edges):
        mean = int(part.sum()) // max(len(part), 1)
        parameter = min(max(mean.bit_length() - 1, 0), _MAX_PARAMETER)
        high = part >> parameter
        ends = np.cumsum(high + 1 + parameter)
        bits = np.zeros(int(ends[-1]) if len(part) else 0, np.uint8)
        stop = ends - parameter  # the position after the 1 that ends the unary part
        bits[stop - 1] = 1
        for k in range(parameter):
            bits[stop + k] = part >> (parameter - 1 - k) & 1
        found += [_bits_of(parameter, 5), bits]
    return found
