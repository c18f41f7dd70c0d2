"""Sound files of hydrophones: WAV, FLAC, and NumPy arrays, each with a JSON file beside it that describes the recording.

The blocks of a hydrophone carry the numbers of their samples. Samples that are missing between two blocks become
silence in the file, so that times within the file stay correct; the JSON file lists the gaps.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from wavesim_devices import flac
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.imaging_frames import ImagingFrame

SUFFIXES = (".wav", ".flac", ".npz")
MAX_GAP_S = 60.0  #: longest gap in s that is filled with silence
PCM, FLOAT = 1, 3  # formats in a WAV file
LARGEST = 0xFFFFFFFF  #: maximum number of bytes of a WAV file, which is not an RF64 file
#: columns that are the same in all blocks of a hydrophone; another body may use its ring later
_CONSTANT = ("body", "name", "beams", "frequency", "tvg", "span", "floor", "gain")
_JUNK = 28  # bytes reserved for the sizes of a file of more than 4 GB
_HEADER = 12 + 8 + _JUNK + 8 + 16 + 8


class RefusedFrame(WaveSimError):
    """The sound file cannot contain this frame."""


class ChannelFile(Protocol):
    """Destination of samples (channels, n) in the file's format."""

    def write(self, samples: Any) -> None: ...
    def close(self) -> None: ...


class WaveFile:
    """WAV file: 16 or 24 bits, or 32-bit floating-point values. A file of more than 4 GB becomes an RF64 file."""

    def __init__(self, path: Path, channels: int, rate: float, bits: int) -> None:
        self._file = path.open("wb")
        self._bits = bits or 32
        format_, width = (PCM if bits else FLOAT), self._bits // 8
        each = channels * width
        self._format = struct.pack("<HHIIHH", format_, channels, round(rate), round(rate) * each, each, self._bits)
        self._each, self._bytes = each, 0
        self._write_header()

    def write(self, samples: Any) -> None:
        by_time = np.ascontiguousarray(samples.T)
        data = by_time.tobytes()
        if self._bits == 24:  # the three lower bytes of each little-endian number
            data = by_time.astype("<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
        self._file.write(data)
        self._bytes += len(data)

    def _write_header(self) -> None:
        total = _HEADER - 8 + self._bytes + self._bytes % 2
        large = total > LARGEST
        sizes = struct.pack("<QQQI", total, self._bytes, self._bytes // self._each, 0) if large else bytes(_JUNK)
        self._file.seek(0)
        self._file.write((b"RF64" if large else b"RIFF") + struct.pack("<I", 0xFFFFFFFF if large else total) + b"WAVE")
        self._file.write((b"ds64" if large else b"JUNK") + struct.pack("<I", _JUNK) + sizes)
        self._file.write(b"fmt " + struct.pack("<I", 16) + self._format)
        self._file.write(b"data" + struct.pack("<I", 0xFFFFFFFF if large else self._bytes))

    def close(self) -> None:
        if self._bytes % 2:
            self._file.write(b"\0")
        self._write_header()
        self._file.close()


class ArrayFile:
    """NumPy file with the array ``samples`` (channels, n) and the values of the JSON file."""

    def __init__(self, path: Path, description: Callable[[], dict[str, Any]], missing: Any) -> None:
        self._path, self._description, self._parts = path, description, [missing]

    def write(self, samples: Any) -> None:
        self._parts.append(samples)

    def close(self) -> None:
        known: dict[str, Any] = {k: np.asarray(v) for k, v in self._description().items() if k != "gaps"}
        np.savez(self._path, samples=np.concatenate(self._parts, axis=1), **known)


class SoundFile:
    """Sound file with the samples of one hydrophone."""

    def __init__(self, path: Path) -> None:
        if path.suffix not in SUFFIXES:
            raise RefusedFrame(
                f"unknown type of sound file '{path.suffix}': the name must end in {' or '.join(SUFFIXES)}"
            )
        self._path = path
        self._file: ChannelFile | None = None
        self._first: ImagingFrame | None = None
        self._next = 0  # number of the sample after the last one in the file
        self._gaps: list[tuple[int, int]] = []
        self._clipped = 0

    def add(self, frame: ImagingFrame) -> None:
        """Append a block. Raises RefusedFrame if the frame is not a block, or if time went back."""
        if frame.kind != "hydrophone":
            raise RefusedFrame(
                f"a sound file needs a hydrophone; '{frame.name}' on '{frame.body}' gives frames of type '{frame.kind}'"
            )
        if self._first is not None and any(frame.record[c] != self._first.record[c] for c in _CONSTANT):
            raise RefusedFrame(
                f"the blocks now come from another hydrophone, '{frame.name}' on '{frame.body}'; record them in another file"
            )
        samples = self._scaled(frame)
        file = self._file or self._open(frame, samples)
        gap = frame.first_sample - self._next
        if gap < 0:
            raise RefusedFrame(
                f"'{frame.name}' on '{frame.body}': sample {frame.first_sample} follows sample {self._next - 1}: the "
                "simulation was reset or rewound; record the rest in another file"
            )
        if gap > MAX_GAP_S * frame.sampling_rate:
            raise RefusedFrame(
                f"'{frame.name}' on '{frame.body}': {gap / frame.sampling_rate:.0f} s of samples are missing (maximum "
                f"{MAX_GAP_S:g} s); record the rest in another file"
            )
        if gap:
            self._gaps.append((self._next, gap))
            file.write(np.zeros((len(samples), gap), samples.dtype))
        file.write(samples)
        self._next = frame.first_sample + samples.shape[1]
        self._clipped += int(frame.record["saturated"])

    def _scaled(self, frame: ImagingFrame) -> Any:
        """Return the samples for the file. In a WAV or FLAC file, full scale is the full scale of the converter: samples of 12
        bits are shifted to 16 bits, and voltages are divided by the full scale.
        """
        bits, samples = int(frame.record["tvg"]), frame.samples
        if self._path.suffix == ".npz":
            return samples
        if bits == 0:
            return (samples / np.float32(frame.record["span"])).astype("<f4")
        return samples << 4 if bits == 12 else samples

    def _open(self, frame: ImagingFrame, samples: Any) -> ChannelFile:
        self._first, self._next = frame, frame.first_sample
        bits = int(frame.record["tvg"])
        if self._path.suffix == ".wav":
            if frame.sampling_rate != round(frame.sampling_rate):
                raise RefusedFrame(
                    f"a WAV file needs a whole sampling rate in Hz, but this one is {frame.sampling_rate:.9g} Hz; record .npz"
                )
            self._file = WaveFile(self._path, len(samples), frame.sampling_rate, 16 if bits == 12 else bits)
        elif self._path.suffix == ".flac":
            _check_flac(len(samples), frame.sampling_rate, bits)
            self._file = flac.FlacFile(self._path, len(samples), frame.sampling_rate, 16 if bits == 12 else bits)
        else:
            self._file = ArrayFile(self._path, self.description, samples[:, :0])
        return self._file

    def description(self) -> dict[str, Any]:
        """Return the description of the recording, as in the JSON file."""
        assert self._first is not None
        frame, r = self._first, self._first.record
        bits, full = int(r["tvg"]), float(r["span"])
        to_pressure = 10.0 ** (-0.05 * (float(r["floor"]) + float(r["gain"])))
        unit = full / (1 << (bits - 1)) if bits else 1.0
        return {
            "body": frame.body,
            "hydrophone": frame.name,
            "channels": int(r["beams"]),
            "sampling": frame.sampling_rate,
            "first_sample": frame.first_sample,
            "t0_ns": int(r["ping_ns"]),
            "samples_per_channel": self._next - frame.first_sample,
            "bits": bits,
            "full_scale_V": full,
            "full_scale_uPa": full * to_pressure,
            "V_per_unit": unit,
            "uPa_per_unit": unit * to_pressure,
            "sensitivity_dB_re_1_V_per_uPa": float(r["floor"]),
            "gain_dB": float(r["gain"]),
            "clipped_samples": self._clipped,
            "gaps": self._gaps,
        }

    @property
    def missing(self) -> int:
        """Number of samples per channel that were missing between the blocks."""
        return sum(count for _, count in self._gaps)

    def close(self) -> None:
        """Finish the file and write the JSON file."""
        if self._file is None or self._first is None:
            return
        self._file.close()
        about = json.dumps(self.description(), indent=2)
        self._path.with_name(self._path.name + ".json").write_text(about + "\n")


def _check_flac(channels: int, rate: float, bits: int) -> None:
    """Raise RefusedFrame if a FLAC file cannot contain the samples."""
    if channels > flac.MAX_CHANNELS:
        raise RefusedFrame(
            f"a FLAC file has at most {flac.MAX_CHANNELS} channels, but the hydrophone has {channels}; record .wav or .npz"
        )
    if bits == 0:
        raise RefusedFrame('a FLAC file needs integer samples, but the hydrophone has bits="0"; record .wav or .npz')
    if rate != round(rate):
        raise RefusedFrame(f"a FLAC file needs a whole sampling rate in Hz, but this one is {rate:.9g} Hz; record .npz")
