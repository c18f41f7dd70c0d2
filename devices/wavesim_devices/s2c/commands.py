"""Splitter that divides the bytes from the host of an S2C modem into commands.

A command is a line that ends with LF or CR LF. The length field of an ``AT*SEND`` command states the number of data
bytes that follow; these bytes may have any value. A line end follows the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BURST = 16384
MAX_LINE = 256  #: maximum length in bytes of a command without data
_NUMBER = rb"(\d{1,10})"
_HEADS = {
    b"": re.compile(rb"AT\*SEND,(?:p" + _NUMBER + rb",)?" + _NUMBER + b"," + _NUMBER + b",()"),
    b"IM": re.compile(rb"AT\*SENDIM,(?:p" + _NUMBER + rb",)?" + _NUMBER + b"," + _NUMBER + b",(ack|noack|force),"),
    b"IMS": re.compile(rb"AT\*SENDIMS,(?:p" + _NUMBER + rb",)?" + _NUMBER + b"," + _NUMBER + rb",(\d{0,20}),"),
    b"PBM": re.compile(rb"AT\*SENDPBM,(?:p" + _NUMBER + rb",)?" + _NUMBER + b"," + _NUMBER + b",()"),
}
_KIND = re.compile(rb"AT\*SEND(IMS|IM|PBM|),")


@dataclass(frozen=True)
class SendCommand:
    """Command that sends data. ``kind`` is empty for a burst; otherwise, it is IM, IMS or PBM."""

    kind: str
    process: int | None  #: identifier ``p<id>`` of the sending program
    to: int
    option: str  #: option of the command: `ack`, `noack` or `force` for an IM, or the time for an IMS
    data: bytes


class S2cParser:
    """Splitter that divides the bytes from the host into commands. It returns a command without data as text, and None
    for each invalid command.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[str | SendCommand | None]:
        """Return the complete commands received so far."""
        self._buffer += data
        found: list[str | SendCommand | None] = []
        while self._buffer:
            kind = _KIND.match(self._buffer)
            head = None if kind is None else _HEADS[kind[1]].match(self._buffer)
            if kind is not None and head is not None and int(head[2]) <= MAX_BURST:
                end = head.end() + int(head[2])
                tail = bytes(self._buffer[end : end + 2])
                if tail in (b"", b"\r"):
                    break  # more data must come
                if tail[:1] == b"\n" or tail == b"\r\n":
                    option, process = head[4].decode(), None if head[1] is None else int(head[1])
                    body = bytes(self._buffer[head.end() : end])
                    found.append(SendCommand(kind[1].decode(), process, int(head[3]), option, body))
                    del self._buffer[: end + (1 if tail[:1] == b"\n" else 2)]
                    continue
            line_end = self._buffer.find(b"\n")
            if line_end < 0:
                if len(self._buffer) > MAX_LINE:
                    self._buffer.clear()
                    found.append(None)
                break
            line = bytes(self._buffer[:line_end]).strip()
            del self._buffer[: line_end + 1]
            if line:
                known = line.isascii() and len(line) <= MAX_LINE and line.startswith(b"AT") and kind is None
                found.append(line.decode() if known else None)
        return found
