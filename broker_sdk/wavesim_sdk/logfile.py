"""Reader for log files. It yields all records in order, part by part, within size limits that protect the reader
against damaged or foreign files.

A large log continues in additional files (``run.mcap``, ``run.2.mcap``, ...). Each part can be read on its own, because
the beginning of a later part repeats the messages that its reader needs. These messages have the sequence number 0.
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

CDR_HEADER = b"\x00\x01\x00\x00"
TEXT, TEXT_SCHEMA = "std_msgs/msg/String", "# a JSON object\nstring data"
METADATA = "wavesim"
RUN, PART = "run", "part"  #: metadata keys for the run and for the number of the part, counted from 1
#: metadata key for the ID of the preceding run, whose log ended when the simulation time changed
EARLIER_RUN = "earlier_run"
RECORD_BYTES = 64 * 1024 * 1024  #: maximum size in bytes of a record in the file
CHUNK_BYTES = 64 * 1024 * 1024  #: maximum size in bytes of a decompressed chunk
_RECORD, _MESSAGE = (
    struct.Struct("<BQ"),
    struct.Struct("<HIQQ"),
)  #: binary formats of the record header and the message header
ROOM_BYTES, RATIO = (
    256 * 1024 * 1024,
    200,
)  #: maximum size of a decompressed file: the larger of ROOM_BYTES and RATIO times the size of the file


def encode_cdr_text(text: str) -> bytes:
    """Encode text as a ROS string message."""
    data = text.encode() + b"\0"
    return CDR_HEADER + struct.pack("<I", len(data)) + data


def decode_cdr_text(message: bytes) -> str:
    """Decode a message made by :func:`encode_cdr_text`. Raises ValueError if it is not such a message or is truncated."""
    if len(message) < 9 or struct.unpack_from("<I", message, 4)[0] != len(message) - 8:
        raise ValueError("the message is not a ROS string")
    return message[8:-1].decode()


def branch_path(first: Path, number: int) -> Path:
    """Return the file of the log that begins after the simulation time has changed ``number`` times."""
    return first.with_name(f"{first.stem}-{number + 1}{first.suffix}")


def part_path(first: Path, number: int) -> Path:
    """Return the file that contains part ``number`` of a log; parts are counted from 1."""
    return first if number == 1 else first.with_name(f"{first.stem}.{number}{first.suffix}")


def records(path: Path) -> Iterator[Any]:
    """Yield every readable record in a log, from the part in this file to the last part; stop without an error at a
    truncated end.

    Raises LogError if the file is not a log or decompresses to more data than the limits allow.
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


def first_content(path: Path) -> str:
    """Return what comes first in an MCAP file: `wavesim` (the metadata of a WaVeSim log), `messages` (as in the bags of
    ROS), or nothing if the file is empty or damaged.
    """
    for record in records(path):
        kind = type(record).__name__
        if kind == "Metadata" and record.name == METADATA:
            return "wavesim"
        if kind == "Message":
            return "messages"
    return ""


class LogComplete:
    """Marker that follows the last record in a log whose last part is complete."""


def _identity(record: Any) -> tuple[str, int] | None:
    """Return the run and the part number in a metadata record, or None if the record does not contain them."""
    if type(record).__name__ != "Metadata" or record.name != METADATA:
        return None
    number = str(record.metadata.get(PART, "1"))
    return str(record.metadata.get(RUN, "")), int(number) if number.isdecimal() and len(number) < 10 else 1


def _continues(path: Path, run: str, number: int) -> bool:
    """Return whether a file is part ``number`` of a run's log."""
    if not path.is_file():
        return False
    with contextlib.suppress(LogError):
        return next((identity for r in _records_of(path) if (identity := _identity(r)) is not None), None) == (
            run,
            number,
        )
    return False


def _records_of(path: Path) -> Iterator[Any]:
    """Yield the records of one file."""
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
            raise LogError(f"{path} is not an MCAP file")
        file.seek(0)
        reader = StreamReader(file, emit_chunks=True, record_size_limit=RECORD_BYTES, validate_crcs=True)
        _skip_indices(reader)
        try:
            r: Any
            for r in reader.records:
                if type(r).__name__ != "Chunk":
                    yield r
                    continue
                r.data, r.compression = _unpacked(r, path), ""
                room -= len(r.data)
                if room < 0:
                    raise LogError(
                        f"{path} decompresses to more than {RATIO} times its size, so it is not a WaVeSim log"
                    )
                yield from _broken_up(r)
        except (McapError, EOFError, struct.error, ValueError, OverflowError):
            return
        except Exception as error:  # the decompressors raise their own errors for a cut chunk
            if type(error).__module__.split(".")[0] not in ("zstandard", "lz4", "builtins"):
                raise
            return


def _skip_indices(reader: Any) -> None:
    """Make the mcap reader skip the indices, on which it would spend a fifth of its time. The checksum of the file
    still covers their bytes.
    """
    from mcap.opcode import Opcode

    stream, read_record = reader._stream, reader._read_record

    def read_all_but_indices(opcode: int, length: int) -> Any:
        if opcode not in (Opcode.MESSAGE_INDEX, Opcode.CHUNK_INDEX):
            return read_record(opcode, length)
        stream.read(length)
        return None

    reader._read_record = read_all_but_indices


def _broken_up(chunk: Any) -> list[Any]:
    """Return the records in a decompressed chunk. Raises ValueError or EOFError if the chunk is damaged.

    This function replaces ``breakup_chunk`` of mcap. The mcap function reads each number separately, and would take
    half of the time needed to read a log.
    """
    from mcap.data_stream import ReadDataStream
    from mcap.opcode import Opcode
    from mcap.records import Channel, Message, Schema

    data, found, begin = chunk.data, [], 0
    if chunk.uncompressed_crc and zlib.crc32(data) != chunk.uncompressed_crc:
        raise ValueError("the checksum of a chunk is wrong")
    while begin < len(data):
        code, length = _RECORD.unpack_from(data, begin)
        begin += _RECORD.size
        end = begin + length
        if end > len(data):
            raise EOFError
        if code == Opcode.MESSAGE:
            if length < _MESSAGE.size:
                raise ValueError("a message in a chunk has no header")
            channel, sequence, logged, published = _MESSAGE.unpack_from(data, begin)
            found.append(Message(channel, logged, data[begin + _MESSAGE.size : end], published, sequence))
        elif code in (Opcode.CHANNEL, Opcode.SCHEMA):
            kind = Channel if code == Opcode.CHANNEL else Schema
            found.append(kind.read(ReadDataStream(io.BytesIO(data[begin:end]))))
        begin = end
    return found


def _unpacked(chunk: Any, path: Path) -> bytes:
    """Return the decompressed bytes of a chunk, limited to CHUNK_BYTES regardless of the size stated in its header."""
    if chunk.compression == "zstd":
        import zstandard

        data: bytes = zstandard.ZstdDecompressor().stream_reader(chunk.data).read(CHUNK_BYTES + 1)
    elif chunk.compression == "lz4":
        import lz4.frame  # type: ignore[import-untyped]  # it has no types

        data = lz4.frame.LZ4FrameDecompressor().decompress(chunk.data, max_length=CHUNK_BYTES + 1)
    else:
        data = chunk.data
    if len(data) > CHUNK_BYTES:
        raise LogError(
            f"{path} has a chunk that decompresses to more than {CHUNK_BYTES >> 20} MB, so it is not a WaVeSim log"
        )
    if len(data) < chunk.uncompressed_size:
        raise EOFError
    return data
