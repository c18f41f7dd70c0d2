"""FLAC files against a decoder written from RFC 9639 alone."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from wavesim_devices.flac import FlacFile
from wavesim_sdk.arrays import Ints
from wavesim_sdk.checksums import crc8


class Bits:
    """Reader of bits, the highest first."""

    def __init__(self, data: bytes) -> None:
        self.data, self.text, self.at = data, "".join(f"{b:08b}" for b in data), 0

    def unsigned(self, width: int) -> int:
        self.at += width
        return int(self.text[self.at - width : self.at] or "0", 2)

    def signed(self, width: int) -> int:
        value = self.unsigned(width)
        return value - (1 << width) if value >> (width - 1) else value

    def rice(self, parameter: int) -> int:
        end = self.text.index("1", self.at)
        high, self.at = end - self.at, end + 1
        folded = high << parameter | self.unsigned(parameter)
        return -(folded + 1) // 2 if folded & 1 else folded // 2


def crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x8005 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def subframe(bits: Bits, count: int, width: int) -> list[int]:
    kind = bits.unsigned(8)
    assert not kind & 0x81
    kind >>= 1
    if kind == 0:
        return count * [bits.signed(width)]
    if kind == 1:
        return [bits.signed(width) for _ in range(count)]
    assert 8 <= kind <= 12, "a fixed predictor"
    order, error = kind - 8, []
    x = [bits.signed(width) for _ in range(order)]
    assert bits.unsigned(2) == 1
    parts = 1 << bits.unsigned(4)
    for part in range(parts):
        parameter = bits.unsigned(5)
        error += [bits.rice(parameter) for _ in range(count // parts - (order if part == 0 else 0))]
    weights = ((), (1,), (2, -1), (3, -3, 1), (4, -6, 4, -1))[order]
    for e in error:
        x.append(e + sum(w * x[-1 - k] for k, w in enumerate(weights)))
    return x


def decoded(data: bytes) -> tuple[int, int, Ints]:
    """Return (sampling rate, word length, samples); every checksum must be right."""
    assert data[:4] == b"fLaC" and data[4:8] == bytes([0x80, 0, 0, 34])
    info = int.from_bytes(data[18:26], "big")
    rate, channels, width, total = info >> 44, (info >> 41 & 7) + 1, (info >> 36 & 31) + 1, info & (1 << 36) - 1
    blocks, bits, number = [], Bits(data[42:]), 0
    while bits.at < len(bits.text):
        start = bits.at // 8
        assert bits.unsigned(16) == 0xFFF8 and bits.unsigned(8) == 0x70
        assert bits.unsigned(8) == (channels - 1) << 4 and bits.unsigned(8) == number < 128
        count = bits.unsigned(16) + 1
        assert bits.unsigned(8) == crc8(bits.data[start : bits.at // 8 - 1])
        blocks.append([subframe(bits, count, width) for _ in range(channels)])
        bits.at = -(-bits.at // 8) * 8
        assert crc16(bits.data[start : bits.at // 8]) == bits.unsigned(16)
        number += 1
    x = np.concatenate([np.array(b) for b in blocks], axis=1)
    assert x.shape == (channels, total)
    packed = b"".join(int(v).to_bytes(width // 8, "little", signed=True) for v in x.T.ravel())
    assert data[26:42] == hashlib.md5(packed, usedforsecurity=False).digest()
    return rate, width, x


@pytest.mark.parametrize(("bits", "channels"), [(16, 1), (24, 3)])
def test_a_decoder_finds_the_same_samples(tmp_path: Path, bits: int, channels: int) -> None:
    """Smooth sound, silence, full scale and white noise, over two frames and in parts of 700 samples."""
    random, count = np.random.default_rng(bits), 4096 + 900
    x = np.cumsum(np.cumsum(random.normal(0.0, 2.0, (channels, count)), axis=1), axis=1).astype(np.int64) // 50
    x[0, 1000:1600], x[-1, 2000:2002] = 0, ((1 << bits - 1) - 1, -(1 << bits - 1))
    x[0, 4096:] = 7
    if channels > 1:
        x[1] = random.integers(-(1 << bits - 1), 1 << bits - 1, count)
    file = FlacFile(tmp_path / "a.flac", channels, 250e3, bits)
    for k in range(0, count, 700):
        file.write(x[:, k : k + 700])
    file.close()
    data = (tmp_path / "a.flac").read_bytes()
    rate, width, found = decoded(data)
    assert (rate, width) == (250_000, bits) and np.array_equal(found, x)
    if channels == 1:
        assert len(data) < 0.7 * x.size * bits / 8


def test_frame_numbers_are_coded_like_utf_8() -> None:
    from wavesim_devices.flac import _coded_number

    for number in (0, 127, 128, 2047, 2048, 65535, 65536, 0x10FFFF):
        assert _coded_number(number) == chr(number).encode("utf-8", "surrogatepass")
    assert _coded_number(0x7FFFFFFF) == b"\xfd" + b"\xbf" * 5
