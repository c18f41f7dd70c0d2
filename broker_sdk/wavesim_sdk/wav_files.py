"""WAV files: reading in pieces and writing, with NumPy only."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from wavesim_sdk.errors import InvalidArgument

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_UNKNOWN_SIZE = 0xFFFFFFFF
_MAX_DESCRIPTION = 64  #: bytes of a chunk before the samples that are read
_TYPES = {(_PCM, 8): "u1", (_PCM, 16): "<i2", (_PCM, 32): "<i4", (_FLOAT, 32): "<f4", (_FLOAT, 64): "<f8"}
_BITS = (16, 24, 32)


class WavFile:
    """A WAV file (RIFF or RF64) open for reading. Use it with ``with``.

    ``sampling`` is in Hz; ``count`` is the number of samples per channel in the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO = path.open("rb")
        try:
            self._read_header()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> WavFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def _read_header(self) -> None:
        head = self._file.read(12)
        if len(head) < 12 or head[:4] not in (b"RIFF", b"RF64") or head[8:] != b"WAVE":
            raise InvalidArgument(f"{self.path}: not a WAV file: convert the sound to WAV (RIFF or RF64) first")
        form, long_size = b"", None
        while len(chunk := self._file.read(8)) == 8:
            name, size = chunk[:4], int.from_bytes(chunk[4:], "little")
            if name == b"data":
                break
            after = self._file.tell() + size + size % 2
            content = self._file.read(min(size, _MAX_DESCRIPTION))
            self._file.seek(after)
            if name == b"fmt ":
                form = content
            elif name == b"ds64" and len(content) >= 16:
                long_size = int.from_bytes(content[8:16], "little")
        else:
            raise InvalidArgument(f"{self.path}: the WAV file has no samples: it ends before its data chunk")
        if len(form) < 16:
            raise InvalidArgument(f"{self.path}: the WAV file does not describe its format before the samples")
        tag, self.channels, self.sampling, _, _, self.bits = struct.unpack("<HHIIHH", form[:16])
        if tag == _EXTENSIBLE and len(form) >= 26:
            tag = int.from_bytes(form[24:26], "little")
        if (
            not self.channels
            or not self.sampling
            or ((tag, self.bits) not in _TYPES and (tag, self.bits) != (_PCM, 24))
        ):
            raise InvalidArgument(
                f"{self.path}: unsupported WAV format {tag} with {self.bits} bits, {self.channels} channels and"
                f" {self.sampling} Hz: use PCM with 8 to 32 bits, or float with 32 or 64 bits"
            )
        self._type, self._frame = _TYPES.get((tag, self.bits)), self.channels * self.bits // 8
        begin = self._file.tell()
        present = self._file.seek(0, 2) - begin
        declared = long_size if long_size is not None and size == _UNKNOWN_SIZE else size
        if declared in (0, _UNKNOWN_SIZE):  # written by a program that could not go back to the header
            declared = present
        self.truncated = declared > present  #: whether the file ends before the declared number of samples
        self.count = min(declared, present) // self._frame
        self._file.seek(begin)

    def blocks(self, size: int) -> Iterator[npt.NDArray[np.float64]]:
        """Yield all samples in blocks of at most ``size``: arrays (samples, channels). Full scale is 1."""
        left = self.count
        while left:
            data = self._file.read(min(size, left) * self._frame)
            yield self._samples(data).reshape(-1, self.channels)
            left -= min(size, left)

    def _samples(self, data: bytes) -> npt.NDArray[np.float64]:
        if self._type is None:
            three = np.frombuffer(data, np.uint8).reshape(-1, 3)
            wide = np.zeros((len(three), 4), np.uint8)
            wide[:, 1:] = three
            return wide.view("<i4")[:, 0] / 2.0**31
        values = np.frombuffer(data, self._type)
        if self._type == "u1":
            return (values - 128.0) / 128.0
        return values / 2.0 ** (self.bits - 1) if values.dtype.kind == "i" else values.astype(float)


def write_wav(path: Path, samples: npt.ArrayLike, sampling: int, bits: int = 16) -> None:
    """Write samples (samples,) or (samples, channels) between -1 and 1 as PCM with 16 or 24 bits, or as 32-bit float."""
    values = np.asarray(samples, float)
    values = values[:, None] if values.ndim == 1 else values
    if bits not in _BITS:
        raise InvalidArgument(f"expected 16 or 24 bits, or 32 for float, got {bits}")
    if values.ndim != 2 or not np.isfinite(values).all() or (bits != 32 and np.abs(values).max(initial=0.0) > 1.0):
        raise InvalidArgument("expected finite samples between -1 and 1, in an array (samples,) or (samples, channels)")
    if bits == 32:
        data = values.astype("<f4").tobytes()
    else:
        full = 2 ** (bits - 1)
        whole = np.minimum(np.rint(values * full), full - 1).astype("<i4")
        data = np.ascontiguousarray(whole).view(np.uint8).reshape(-1, 4)[:, : bits // 8].tobytes()
    channels = values.shape[1]
    frame = channels * bits // 8
    if len(data) + 36 > _UNKNOWN_SIZE - 1:
        raise InvalidArgument(
            f"{path}: a WAV file holds at most 4 GB of samples, got {len(data)} bytes: split the recording"
        )
    form = struct.pack("<HHIIHH", _FLOAT if bits == 32 else _PCM, channels, sampling, sampling * frame, frame, bits)
    head = b"RIFF" + struct.pack("<I", 36 + len(data) + len(data) % 2) + b"WAVEfmt " + struct.pack("<I", 16) + form
    path.write_bytes(head + b"data" + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2))
