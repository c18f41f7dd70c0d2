"""One file of a log, in the MCAP format, written in chunks. Chunks are flushed when they are complete and, if
configured, the file is periodically synchronised to disk.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from wavesim_sdk.errors import LogError
from wavesim_sdk.logfile import CDR_HEADER, TEXT, TEXT_SCHEMA
from wavesim_sdk.tables import Table, ros2_definition
from wavesim_server.logbook.mcap_file import McapFile, MessageBlock

#: maximum number of topics per file, because topic numbers have 16 bits, and each topic needs half a kilobyte of memory
MAX_TOPICS = 8192
MAX_CHUNK_BYTES = 512 * 1024  #: maximum chunk size in bytes; compressing a larger chunk would delay the front end
CHUNK_NS = 500_000_000  #: maximum simulation time in a chunk
#: maximum simulation time in a chunk if the simulation runs as fast as possible; the chunk then covers less wall time
FAST_CHUNK_NS = 2_000_000_000


def open_durably(path: Path) -> BinaryIO:
    """Create a new file, and its folder if necessary."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("wb")
    except OSError as error:
        raise LogError(f"cannot write the log {path}: {error.strerror}") from None


class LogPart:
    """An open log file. Raises OSError if the disk rejects a write."""

    def __init__(self, file: BinaryIO, chunk_ns: int = CHUNK_NS) -> None:
        self.file, self._chunk_ns = file, chunk_ns
        self._mcap = McapFile(file, MAX_CHUNK_BYTES)
        self._since: int | None = None  # simulation time of the first message in the current chunk
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}

    def write_metadata(self, name: str, metadata: dict[str, str]) -> None:
        """Write the header and the metadata at the beginning of the file."""
        self._mcap.begin(profile="ros2", library="wavesim")
        self._mcap.metadata(name, metadata)
        self.file.flush()

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self._mcap.size

    def has_room(self, topic: str) -> bool:
        """Return whether the topic can be written to this file."""
        return topic in self._channels or len(self._channels) < MAX_TOPICS

    def add(self, topic: str, table: Table | None, time_ns: int, data: bytes, said_before: bool = False) -> None:
        """Add a message. If ``said_before`` is True, the message repeats one from an earlier part of the log and has
        the number 0.
        """
        channel = self.channel(topic, table)
        self._since = time_ns if self._since is None else self._since
        self._mcap.message(channel, time_ns, data, not said_before)

    def block(self, channels: Sequence[int], sizes: Sequence[int]) -> MessageBlock:
        """Prepare messages that contain records of tables, for :meth:`add_block`."""
        return MessageBlock(channels, sizes, CDR_HEADER)

    def add_block(self, block: MessageBlock, times_ns: Any, records: bytes) -> None:
        """Add the messages in a block, with a common time or with individual times."""
        if not len(block.channels):
            return
        if self._since is None:
            self._since = times_ns if isinstance(times_ns, int) else int(times_ns.min())
        self._mcap.messages(block, times_ns, records)

    def channel(self, topic: str, table: Table | None) -> int:
        """Return the number of a topic in this file; register the topic if necessary."""
        if topic not in self._channels:
            name, text = (table.message, ros2_definition(table)) if table else (TEXT, TEXT_SCHEMA)
            if name not in self._schemas:
                self._schemas[name] = self._mcap.schema(name, "ros2msg", text.encode())
            self._channels[topic] = self._mcap.channel(topic, "cdr", self._schemas[name])
        return self._channels[topic]

    def flush(self, now_ns: int) -> None:
        """Pass complete chunks to the operating system, so that a killed server loses at most the current chunk."""
        if self._since is not None and now_ns - self._since >= self._chunk_ns:
            self._since = None
            self._mcap.end_chunk()

    def finish(self) -> None:
        """Complete the file by writing the index."""
        self._mcap.finish()


class DiskSync:
    """Synchronises the log to disk every ``period`` seconds, so that the log survives a power failure.

    The class uses its own thread, because synchronising to disk may be slow.
    """

    def __init__(self, period: float, failed: Callable[[OSError], None]) -> None:
        self._period, self._failed = period, failed
        self._over = threading.Event()
        self._file: BinaryIO | None = None
        self._thread = threading.Thread(target=self._run, name="log-sync", daemon=True)
        self._thread.start()

    def set_file(self, file: BinaryIO) -> None:
        """Set the file that is synchronised from now on."""
        self._file = file

    def _run(self) -> None:
        while not self._over.wait(self._period):
            if self._file is not None:
                self.sync_now(self._file)

    def sync_now(self, file: BinaryIO) -> None:
        """Synchronise the file to disk immediately."""
        # closed in the meantime, or not a file of the operating system
        with contextlib.suppress(ValueError, io.UnsupportedOperation):
            try:
                os.fsync(file.fileno())
            except OSError as error:
                if not isinstance(error, io.UnsupportedOperation):
                    self._failed(error)

    def close(self) -> None:
        """Stop synchronising the file."""
        self._over.set()
        self._thread.join()
