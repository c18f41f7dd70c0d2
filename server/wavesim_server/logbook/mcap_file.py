"""Write many messages at a time to an MCAP file (https://mcap.dev/spec).

The writer of the package mcap needs 15 us per message. This module needs little more than that for all messages of a
tick together. The package writes all other records.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import zstandard
from mcap.data_stream import RecordBuilder
from mcap.opcode import Opcode
from mcap.records import (
    Channel,
    Chunk,
    ChunkIndex,
    DataEnd,
    Footer,
    Header,
    McapRecord,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
    SummaryOffset,
)

FEW = 15  #: maximum number of messages that are written one by one, because that is faster
MAGIC = b"\x89MCAP0\r\n"
_MESSAGE = struct.Struct("<BQHIQQ")  # opcode, length, channel, number, log time, publish time
_INDEX = struct.Struct("<BQHI")  # opcode, length, channel, length of the entries
_ENTRY = struct.Struct("<QQ")  # log time, position in the chunk


@functools.cache
def _messages(lead: int, size: int) -> np.dtype[Any]:
    """Return the type of messages whose data begin with ``lead`` common bytes, followed by ``size`` individual bytes."""
    head = [
        ("opcode", "u1"),
        ("length", "<u8"),
        ("channel", "<u2"),
        ("number", "<u4"),
        ("log", "<u8"),
        ("publish", "<u8"),
    ]
    return np.dtype([*head, ("lead", f"V{lead}"), ("data", f"V{size}")])


def _bytes(*records: McapRecord) -> bytes:
    builder = RecordBuilder()
    for r in records:
        r.write(builder)
    return builder.end()  # type: ignore[no-any-return, no-untyped-call]  # mcap has no type annotations


class McapFile:
    """An open MCAP file. Raises OSError if the disk rejects a write."""

    def __init__(self, file: BinaryIO, chunk_bytes: int) -> None:
        self.file, self._chunk_bytes = file, chunk_bytes
        self._zstd = zstandard.ZstdCompressor()
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._numbers = [0]  # by channel, from 1: number of its last message
        self._metadata: list[MetadataIndex] = []
        self._counts: dict[int, int] = defaultdict(int)  # by channel: messages in finished chunks
        #: chunk index records for the summary, as pieces: one growing buffer would fragment the heap
        self._chunk_index: list[bytes] = []
        self._span: tuple[int, int] | None = None  # earliest and latest time of all messages
        self._chunk = bytearray()
        self._index: dict[int, bytearray] = defaultdict(bytearray)  # message index of the current chunk, by channel
        self._times: tuple[int, int] | None = None
        self._data_crc = 0  # of all bytes so far: the checksums of chunks do not cover the bytes between them

    def _write(self, data: bytes | bytearray) -> None:
        self._data_crc = zlib.crc32(data, self._data_crc)
        self.file.write(data)

    def begin(self, profile: str, library: str) -> None:
        """Write the header."""
        self._write(MAGIC + _bytes(Header(profile, library)))

    def metadata(self, name: str, values: dict[str, str]) -> None:
        """Write a metadata record outside the chunks."""
        data = _bytes(Metadata(name, values))
        self._metadata.append(MetadataIndex(self.file.tell(), len(data), name))
        self._write(data)

    def schema(self, name: str, encoding: str, text: bytes) -> int:
        """Register a message type and return its number."""
        self._schemas.append(Schema(len(self._schemas) + 1, text, encoding, name))
        self._chunk += _bytes(self._schemas[-1])
        return self._schemas[-1].id

    def channel(self, topic: str, encoding: str, schema: int) -> int:
        """Register a topic and return its number."""
        self._channels.append(Channel(len(self._channels) + 1, topic, encoding, {}, schema))
        self._numbers.append(0)
        self._chunk += _bytes(self._channels[-1])
        return self._channels[-1].id

    def message(self, channel: int, time_ns: int, data: bytes, numbered: bool = True) -> None:
        """Add one message; an unnumbered one has the number 0."""
        self._numbers[channel] += numbered
        number = self._numbers[channel] if numbered else 0
        self._index[channel] += _ENTRY.pack(time_ns, len(self._chunk))
        self._chunk += _MESSAGE.pack(Opcode.MESSAGE, 22 + len(data), channel, number, time_ns, time_ns)
        self._chunk += data
        self._extend_span(time_ns, time_ns)

    def messages(self, channels: Sequence[int], times_ns: Any, lead: bytes, data: bytes) -> None:
        """Add messages of one size.

        ``data`` holds their bytes in sequence; each message is preceded by ``lead``. ``times_ns`` is one number for all
        messages, or one per message.
        """
        n = len(channels)
        if n <= FEW:
            times = [times_ns] * n if isinstance(times_ns, int) else times_ns.tolist()
            for k, (channel, time_ns) in enumerate(zip(channels, times, strict=True)):
                self.message(channel, time_ns, lead + data[k * len(data) // n : (k + 1) * len(data) // n])
            return
        rows = np.empty(n, _messages(len(lead), len(data) // n))
        size = rows.itemsize
        entries = np.empty((n, 2), "<u8")
        entries[:, 0] = times_ns
        entries[:, 1] = np.arange(len(self._chunk), len(self._chunk) + n * size, size)
        packed, numbers = entries.tobytes(), list[int]()
        for k, channel in enumerate(channels):
            self._numbers[channel] += 1
            numbers.append(self._numbers[channel])
            self._index[channel] += packed[16 * k : 16 * k + 16]
        rows["opcode"], rows["length"], rows["channel"], rows["number"] = Opcode.MESSAGE, size - 9, channels, numbers
        rows["log"] = rows["publish"] = times_ns
        rows["lead"], rows["data"] = np.void(lead), np.frombuffer(data, rows.dtype["data"])
        self._chunk += rows.tobytes()
        self._extend_span(int(np.min(times_ns)), int(np.max(times_ns)))

    def _extend_span(self, first_ns: int, last_ns: int) -> None:
        first, last = self._times or (first_ns, last_ns)
        self._times = min(first, first_ns), max(last, last_ns)
        if len(self._chunk) > self._chunk_bytes:
            self.end_chunk()

    def end_chunk(self) -> None:
        """Write the current chunk if it holds messages, and flush the file."""
        if self._times is not None:
            self._write_chunk(*self._times)
            first, last = self._span or self._times
            self._span = min(first, self._times[0]), max(last, self._times[1])
            self._times = None
            self._chunk.clear()
            self._index.clear()
        self.file.flush()

    def _write_chunk(self, first_ns: int, last_ns: int) -> None:
        packed = self._zstd.compress(self._chunk)
        chunk = _bytes(Chunk("zstd", packed, last_ns, first_ns, zlib.crc32(self._chunk), len(self._chunk)))
        begin = self.file.tell()
        index, places = bytearray(), dict[int, int]()
        for channel, entries in self._index.items():
            places[channel] = begin + len(chunk) + len(index)
            index += _INDEX.pack(Opcode.MESSAGE_INDEX, 6 + len(entries), channel, len(entries))
            index += entries
            self._counts[channel] += len(entries) // _ENTRY.size
        self._write(chunk)
        self._write(index)
        sizes = len(chunk), len(packed), len(index), len(self._chunk)
        self._chunk_index.append(
            _bytes(ChunkIndex(sizes[0], begin, "zstd", sizes[1], last_ns, sizes[2], places, first_ns, sizes[3]))
        )

    def finish(self) -> None:
        """Write the summary, which completes the file."""
        self.end_chunk()
        self.file.write(_bytes(DataEnd(self._data_crc)))
        start = self.file.tell()
        first, last = self._span or (0, 0)
        statistics = Statistics(
            0,
            len(self._channels),
            self._counts,
            len(self._chunk_index),
            sum(self._counts.values()),
            last,
            first,
            len(self._metadata),
            len(self._schemas),
        )
        groups: list[tuple[Opcode, Sequence[bytes]]] = [
            (Opcode.SCHEMA, [_bytes(*self._schemas)]),
            (Opcode.CHANNEL, [_bytes(*self._channels)]),
            (Opcode.STATISTICS, [_bytes(statistics)]),
            (Opcode.CHUNK_INDEX, self._chunk_index),
            (Opcode.ATTACHMENT_INDEX, []),
            (Opcode.METADATA_INDEX, [_bytes(*self._metadata)]),
        ]
        sizes = [sum(map(len, pieces)) for _, pieces in groups]
        places = [start + sum(sizes[:k]) for k in range(len(groups) + 1)]
        offsets = [SummaryOffset(o, place, n) for (o, _), place, n in zip(groups, places, sizes, strict=False)]
        # without its checksum, which covers the whole summary including this record
        footer = _bytes(Footer(start, places[-1], 0))[:-4]
        crc = 0
        for data in (*(p for _, pieces in groups for p in pieces), _bytes(*offsets), footer):
            crc = zlib.crc32(data, crc)
            self.file.write(data)
        self.file.write(struct.pack("<I", crc) + MAGIC)
        self.file.flush()
