"""WAV files: what is written is read back, and files from other programs are read in pieces."""

from __future__ import annotations

import struct
import tracemalloc
import wave
from pathlib import Path

import numpy as np
import pytest

from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.wav_files import WavFile, write_wav


def _header(form: bytes, size: int, riff: bytes = b"RIFF", extra: bytes = b"") -> bytes:
    return (
        riff
        + b"\xff\xff\xff\xffWAVE"
        + extra
        + b"fmt "
        + struct.pack("<I", len(form))
        + form
        + b"data"
        + struct.pack("<I", size)
    )


def _read(path: Path, size: int = 7) -> np.ndarray:
    with WavFile(path) as file:
        return np.concatenate(list(file.blocks(size)))


@pytest.mark.parametrize(("bits", "step"), [(16, 2.0**-15), (24, 2.0**-23), (32, 1e-7)])
def test_samples_return_within_one_step(tmp_path: Path, bits: int, step: float) -> None:
    samples = np.random.default_rng(1).uniform(-1, 1, (101, 3))
    write_wav(tmp_path / "a.wav", samples, 96_000, bits)
    with WavFile(tmp_path / "a.wav") as file:
        assert (file.sampling, file.channels, file.count, file.truncated) == (96_000, 3, 101, False)
    assert np.abs(_read(tmp_path / "a.wav") - samples).max() <= 1.01 * step
    if bits < 32:  # the standard library reads the same
        with wave.open(str(tmp_path / "a.wav")) as other:
            assert (other.getframerate(), other.getsampwidth(), other.getnframes()) == (96_000, bits // 8, 101)


def test_formats_of_other_programs(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    guid = b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    pcm = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)
    extensible = (
        struct.pack("<HHIIHH", 0xFFFE, 1, 8000, 16000, 2, 16) + struct.pack("<HHI", 22, 16, 4) + b"\x01\x00" + guid
    )
    data = struct.pack("<4h", 0, 16384, -32768, 32767)
    whole = [0, 0.5, -1, 32767 / 32768]
    for head in (
        _header(pcm, 8),
        _header(extensible, 8),
        _header(pcm, 8, extra=b"LIST\x03\x00\x00\x00abc\x00"),  # padded to an even size
        _header(pcm, 0xFFFFFFFF, b"RF64", b"ds64" + struct.pack("<IQQQI", 28, 0, 8, 4, 0)),
        _header(pcm, 0),  # streamed: the size was never written
    ):
        path.write_bytes(head + data)
        assert _read(path)[:, 0].tolist() == whole
    path.write_bytes(_header(struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8), 3) + bytes([0, 128, 192]))
    assert _read(path)[:, 0].tolist() == [-1, 0, 0.5]
    path.write_bytes(_header(struct.pack("<HHIIHH", 3, 1, 8000, 64000, 8, 64), 8) + struct.pack("<d", 0.25))
    assert _read(path)[:, 0].tolist() == [0.25]


def test_a_file_that_is_cut_off_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    write_wav(path, np.full(100, 0.5), 48_000)
    path.write_bytes(path.read_bytes()[:-21])
    with WavFile(path) as file:
        assert (file.truncated, file.count) == (True, 89)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "not a WAV file: convert"),
        (b"OggS" + bytes(40), "not a WAV file: convert"),
        (b"RIFF\x00\x00\x00\x00WAVE", "no samples: it ends before its data chunk"),
        (b"RIFF\x00\x00\x00\x00WAVEdata\x00\x00\x00\x00", "does not describe its format"),
        (_header(struct.pack("<HHIIHH", 85, 2, 44100, 0, 0, 0), 0), "unsupported WAV format 85 with 0 bits"),
        (_header(struct.pack("<HHIIHH", 1, 0, 44100, 0, 0, 16), 0), "0 channels"),
    ],
)
def test_unknown_formats_are_refused_by_name(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=text) as error:
        WavFile(path)
    assert str(error.value).startswith(f"{path}: ")


def test_an_hour_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    count = 3600 * 48_000
    with path.open("wb") as file:
        file.write(_header(struct.pack("<HHIIHH", 1, 1, 48_000, 96_000, 2, 16), 2 * count))
        file.truncate(file.tell() + 2 * count)  # a sparse file
    tracemalloc.start()
    with WavFile(path) as file:
        blocks = file.blocks(48_000)
        assert sum(len(next(blocks)) for _ in range(20)) == 20 * 48_000
        assert file.count == count
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def test_samples_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    for bad in ([np.nan], [1.5], np.zeros((1, 1, 1))):
        with pytest.raises(InvalidArgument, match="finite samples between -1 and 1"):
            write_wav(tmp_path / "a.wav", bad, 48_000)
    with pytest.raises(InvalidArgument, match="16 or 24 bits, or 32"):
        write_wav(tmp_path / "a.wav", [0.0], 48_000, 8)
