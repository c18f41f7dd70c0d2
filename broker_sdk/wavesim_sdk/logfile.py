"""The files of a log: its records in order, part after part, within limits, whoever wrote them.

A log that grows goes on in another file (``run.mcap``, ``run.2.mcap``, ...). Each part can be read by itself: what a reader of
the later ones has to know is said again at their beginning, in messages with the sequence number 0.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import LogError

METADATA = "wavesim"
RUN, PART = "run", "part"  #: keys of the metadata: which run it is, which part of its log, from 1
RECORD_BYTES = 64 * 1024 * 1024  #: of a record in the file
CHUNK_BYTES = 64 * 1024 * 1024  #: of a chunk, unpacked
_RECORD, _MESSAGE = struct.Struct("<BQ"), struct.Struct("<HIQQ")  #: heads of a record, and of a message in it
ROOM_BYTES, RATIO = 256 * 1024 * 1024, 200  #: unpacked, a file has so many bytes at most, or so many times its own


def part_path(first: Path, number: int) -> Path:
    """The file of a part of a log, from 1."""
    return first if number == 1 else first.with_name(f"{first.stem}.{number}{first.suffix}")


def records(path: Path) -> Iterator[Any]:
    """Every record of the log that can be read, in all its parts from this one on; stops quietly at a torn end.

    LogError where it is none, or unpacks to more than any log would.
    """
    run, number, whole = "", 1, False
    for r in _records_of(path):
        kind = type(r).__name__
        whole = kind == "Footer"
        if not whole:
            if kind == "Metadata" and (identity := _identity(r)) is not None:
                run, number = identity
            yield r
    first = path.with_name(path.stem.removesuffix(f".{number}") + path.suffix) if number > 1 else path
    while whole and run and _continues(part_path(first, number + 1), run, number + 1):
        number += 1
        for r in _records_of(part_path(first, number)):
            kind = type(r).__name__
            whole = kind == "Footer"
            if kind in ("Schema", "Channel") or (kind == "Message" and r.sequence):
                yield r
    if whole:
        yield LogComplete()


class LogComplete:
    """Comes last, where the last part is whole."""


def _identity(record: Any) -> tuple[str, int] | None:
    """(run, number of the part) that a record tells, if it does."""
    if type(record).__name__ != "Metadata" or record.name != METADATA:
        return None
    number = str(record.metadata.get(PART, "1"))
    return str(record.metadata.get(RUN, "")), int(number) if number.isdecimal() and len(number) < 10 else 1


def _continues(path: Path, run: str, number: int) -> bool:
    """Whether a file is that part of that run's log."""
    if not path.is_file():
        return False
    with contextlib.suppress(LogError):
        return next((identity for r in _records_of(path) if (identity := _identity(r)) is not None), None) == (
            run,
            number,
        )
    return False


def _records_of(path: Path) -> Iterator[Any]:
    """The records of one file."""
    try:
        from mcap.exceptions import McapError
        from mcap.stream_reader import StreamReader
    except ImportError:
        raise LogError("reading logs needs the package mcap: pip install 'wavesim-sdk[log]'") from None
    try:
        file = path.open("rb")
        room = max(ROOM_BYTES, RATIO * path.stat().st_size)
    except OSError as error:
        raise LogError(f"cannot read {path}: {error.strerror}") from None
    with file:
        if file.read(8) != b"\x89MCAP0\r\n":
            raise LogError(f"{path} is no MCAP file")
        file.seek(0)
        reader = StreamReader(file, emit_chunks=True, record_size_limit=RECORD_BYTES, validate_crcs=True)
        try:
            r: Any
            for r in reader.records:
                if type(r).__name__ != "Chunk":
                    yield r
                    continue
                r.data, r.compression = _unpacked(r, path), ""
                room -= len(r.data)
                if room < 0:
                    raise LogError(f"{path} unpacks to more than {RATIO} times its size: that is no log")
                yield from _broken_up(r)
        except (McapError, EOFError, struct.error, ValueError, OverflowError):
            return
        except Exception as error:  # the decompressors raise errors of their own on a torn chunk
            if type(error).__module__.split(".")[0] not in ("zstandard", "lz4", "builtins"):
                raise
            return


def _broken_up(chunk: Any) -> list[Any]:
    """The records in an unpacked chunk. As mcap's own ``breakup_chunk``, which reads a message number by number: half of the time
    that a log took to be read. ValueError or EOFError where it is damaged."""
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Channel, Message, Schema

    data, found, begin = chunk.data, [], 0
    if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
        raise ValueError("the checksum of a chunk")
    while begin < len(data):
        code, length = _RECORD.unpack_from(data, begin)
        begin += _RECORD.size
        end = begin + length
        if end > len(data):
            raise EOFError
        if code == Opcode.MESSAGE:
            if length < _MESSAGE.size:
                raise ValueError("a message without its head")
            channel, sequence, logged, published = _MESSAGE.unpack_from(data, begin)
            found.append(Message(channel, logged, data[begin + _MESSAGE.size : end], published, sequence))
        elif code in (Opcode.CHANNEL, Opcode.SCHEMA):
            kind = Channel if code == Opcode.CHANNEL else Schema
            found.append(kind.read(ReadDataStream(io.BytesIO(data[begin:end]))))
        begin = end
    return found


def _unpacked(chunk: Any, path: Path) -> bytes:
    """The bytes of a chunk. What its header promises of their number is not believed."""
    if chunk.compression == "zstd":
        import zstandard

        data: bytes = zstandard.ZstdDecompressor().stream_reader(chunk.data).read(CHUNK_BYTES + 1)
    elif chunk.compression == "lz4":
        import lz4.frame  # type: ignore[import-untyped]  # it has no types

        data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=CHUNK_BYTES + 1)
    else:
        data = chunk.data
    if len(data) > CHUNK_BYTES:
        raise LogError(f"{path} holds a chunk that unpacks to more than {CHUNK_BYTES >> 20} MB: that is no log")
    if len(data) < chunk.uncompressed_size:
        raise EOFError
    return data
