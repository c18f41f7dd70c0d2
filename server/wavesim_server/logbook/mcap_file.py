"""Writer for MCAP files that accepts many messages in one call (https://mcap.dev/spec).

The writer in the mcap package needs 15 us per message. This module needs little more than that for all messages of a
tick together, because their constant bytes are prepared once in a :class:`MessageBlock`. Most other records are written
by the mcap package.
"""

from __future__ import annotations

import functools
import itertools
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

MAGIC = b"\x89MCAP0\r\n"
LEVEL = 1  #: compression level; it compresses records as much as the default level does, in 2/3 of the time
MAX_CHANNELS = 2**16  #: maximum number of channels, because channel numbers have 16 bits
_MESSAGE = struct.Struct("<BQHIQQ")  # opcode, length, channel, number, log time, publish time
_INDEX = struct.Struct("<BQHI")  # opcode, length, channel, length of the entries
_ENTRY_BYTES = 16  # an entry of the message index: log time, position in the chunk
_PLACE = np.dtype([("channel", "<u2"), ("place", "<u8")])  # of a message index in the file


@functools.cache
def _messages(lead: int, size: int) -> np.dtype[Any]:
    """Return the type of messages whose data begin with ``lead`` common bytes, followed by ``size`` individual bytes."""
    head = [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("number", "<u4"), ("times", "<u8", 2)]
    return np.dtype([*head, ("lead", f"V{lead}"), ("data", f"V{size}")])


class MessageBlock:
    """Consecutive messages with given channels and sizes. Their sequence numbers, times and data are filled in for each
    use.

    The bytes ``lead`` precede the data of each message.
    """

    def __init__(self, channels: Sequence[int], sizes: Sequence[int], lead: bytes) -> None:
        self.channels = np.array(channels, np.int64)
        lengths = np.array(sizes, np.int64) + _MESSAGE.size + len(lead)
        self.offsets = np.cumsum(lengths) - lengths
        #: number of each message among the messages of its channel, from 1
        self.ranks = np.zeros(len(channels), np.int64)
        earlier: dict[int, int] = defaultdict(int)
        for k, c in enumerate(channels):
            self.ranks[k] = earlier[c] = earlier[c] + 1
        self.data_bytes = sum(sizes)
        self.bytes = bytearray(int(lengths.sum()))
        #: for each group of consecutive messages with the same size: indices, number, times and data
        self._runs: list[tuple[slice, Any, Any, Any]] = []
        first = 0
        for size, group in itertools.groupby(sizes):
            run = slice(first, first + len(list(group)))
            rows = np.frombuffer(self.bytes, _messages(len(lead), size), run.stop - first, self.offsets[first])
            rows["opcode"], rows["length"], rows["channel"] = Opcode.MESSAGE, lengths[first] - 9, self.channels[run]
            rows["lead"] = np.void(lead)
            self._runs.append((run, rows["number"], rows["times"], rows["data"]))
            first = run.stop

    def fill(self, numbers: Any, times_ns: Any, data: bytes) -> None:
        """Set the sequence numbers, times and data of the messages. There is one time for all messages, or one for
        each. ``data`` contains the data of all messages, one after the other.
        """
        at = 0
        for run, number, times, payload in self._runs:
            number[:] = numbers[run]
            times[:] = times_ns if isinstance(times_ns, int) else times_ns[run, None]
            payload[:] = np.frombuffer(data, payload.dtype, len(payload), at)
            at += payload.nbytes


def _bytes(*records: McapRecord) -> bytes:
    builder = RecordBuilder()
    for r in records:
        r.write(builder)
    return builder.end()  # type: ignore[no-any-return, no-untyped-call]  # mcap has no type annotations


class McapFile:
    """An open MCAP file. Raises OSError if the disk rejects a write."""

    def __init__(self, file: BinaryIO, chunk_bytes: int) -> None:
        self.file, self._chunk_bytes = file, chunk_bytes
        self._zstd = zstandard.ZstdCompressor(LEVEL)
        self._schemas: list[Schema] = []
        self._channels: list[Channel] = []
        self._numbers = np.zeros(MAX_CHANNELS, np.int64)  # of the last message of each channel
        self._counts: dict[int, int] = defaultdict(int)  # of messages in finished chunks, by channel
        self._metadata: list[MetadataIndex] = []
        #: chunk index records for the summary, kept in pieces because one growing buffer would fragment the heap
        self._chunk_index: list[bytes] = []
        self._span: tuple[int, int] | None = None  # earliest and latest time of all messages
        self._chunk = bytearray()
        self._index: list[tuple[Any, Any, Any]] = []  # channels, times and positions of the messages in the chunk
        self._times: tuple[int, int] | None = None
        self._data_crc = 0  # of all bytes so far: the checksums of chunks do not cover the bytes between them
        self.size = 0  #: number of bytes in the file so far

    def _write(self, data: bytes | bytearray) -> None:
        self._data_crc = zlib.crc32(data, self._data_crc)
        self.file.write(data)
        self.size += len(data)

    def begin(self, profile: str, library: str) -> None:
        """Write the header of the file."""
        self._write(MAGIC + _bytes(Header(profile, library)))

    def metadata(self, name: str, values: dict[str, str]) -> None:
        """Write a metadata record outside the chunks."""
        data = _bytes(Metadata(name, values))
        self._metadata.append(MetadataIndex(self.size, len(data), name))
        self._write(data)

    def schema(self, name: str, encoding: str, text: bytes) -> int:
        """Register a message type and return its number."""
        self._schemas.append(Schema(len(self._schemas) + 1, text, encoding, name))
        self._chunk += _bytes(self._schemas[-1])
        return self._schemas[-1].id

    def channel(self, topic: str, encoding: str, schema: int) -> int:
        """Register a topic and return its number."""
        self._channels.append(Channel(len(self._channels) + 1, topic, encoding, {}, schema))
        self._chunk += _bytes(self._channels[-1])
        return self._channels[-1].id

    def message(self, channel: int, time_ns: int, data: bytes, numbered: bool = True) -> None:
        """Add one message; an unnumbered message has the number 0."""
        self._numbers[channel] += numbered
        number = int(self._numbers[channel]) if numbered else 0
        self._index.append(((channel,), time_ns, len(self._chunk)))
        self._chunk += _MESSAGE.pack(Opcode.MESSAGE, 22 + len(data), channel, number, time_ns, time_ns)
        self._chunk += data
        self._extend_span(time_ns, time_ns)

    def messages(self, block: MessageBlock, times_ns: Any, data: bytes) -> None:
        """Add the messages in a block; see :meth:`MessageBlock.fill`."""
        numbers = self._numbers[block.channels] + block.ranks
        self._numbers[block.channels] = numbers  # of a channel that occurs several times, the last one stays
        block.fill(numbers, times_ns, data)
        self._index.append((block.channels, times_ns, block.offsets + len(self._chunk)))
        self._chunk += block.bytes
        if isinstance(times_ns, int):
            self._extend_span(times_ns, times_ns)
        else:
            self._extend_span(int(times_ns.min()), int(times_ns.max()))

    def _extend_span(self, first_ns: int, last_ns: int) -> None:
        first, last = self._times or (first_ns, last_ns)
        self._times = min(first, first_ns), max(last, last_ns)
        if len(self._chunk) > self._chunk_bytes:
            self.end_chunk()

    def end_chunk(self) -> None:
        """Write the current chunk if it contains messages, and flush the file."""
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
        begin = self.size
        index, places = self._message_index(begin + len(chunk))
        self._write(chunk)
        self._write(index)
        head = struct.pack("<QQQQI", first_ns, last_ns, begin, len(chunk), places.nbytes)
        tail = struct.pack("<QI4sQQ", len(index), 4, b"zstd", len(packed), len(self._chunk))
        record = head + places.tobytes() + tail
        self._chunk_index.append(struct.pack("<BQ", Opcode.CHUNK_INDEX, len(record)) + record)

    def _message_index(self, begin: int) -> tuple[bytearray, Any]:
        """Return the message index of the chunk for each channel, and the position of each of these indices in the
        file.
        """
        channels = np.concatenate([c for c, _, _ in self._index])
        entries, at = np.empty((len(channels), 2), "<u8"), 0
        for group, times_ns, positions in self._index:
            rows = entries[at : at + len(group)]
            rows[:, 0], rows[:, 1] = times_ns, positions
            at += len(group)
        order = np.argsort(channels, kind="stable")
        packed, channels = entries[order].tobytes(), channels[order]
        bounds = [0, *(np.flatnonzero(channels[1:] != channels[:-1]) + 1).tolist(), len(order)]
        groups = zip(
            order[bounds[:-1]].tolist(), channels[bounds[:-1]].tolist(), itertools.pairwise(bounds), strict=True
        )
        index, places = bytearray(), []
        for _, channel, (first, end) in sorted(groups):  # by the first message of each channel
            places.append((channel, begin + len(index)))
            size = _ENTRY_BYTES * (end - first)
            index += _INDEX.pack(Opcode.MESSAGE_INDEX, 6 + size, channel, size)
            index += packed[_ENTRY_BYTES * first : _ENTRY_BYTES * end]
            self._counts[channel] += end - first
        return index, np.array(places, _PLACE)

    def finish(self) -> None:
        """Complete the file by writing the summary."""
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
