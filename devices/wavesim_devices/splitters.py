"""Splitters that divide the bytes from a host into commands. They drop and count bytes that do not form a command or
that exceed the maximum length of a command.
"""

from __future__ import annotations

LONG_LINE = 16384  #: maximum length of a line in protocols whose commands carry data


class LineSplitter:
    """Splitter that divides the bytes from the host into lines that end with CR or LF. It drops and counts lines that
    exceed a maximum length.
    """

    def __init__(self, limit: int = 128, encoding: str = "ascii") -> None:
        self.limit, self.encoding, self.dropped = limit, encoding, 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[str]:
        """Return the complete lines without their line ends, and without empty lines."""
        found, begin = [], len(self._buffer)  # the earlier bytes contain no line end
        self._buffer += data.replace(b"\n", b"\r")
        while (end := self._buffer.find(b"\r", begin)) >= 0:
            line, begin = bytes(self._buffer[:end]), 0
            del self._buffer[: end + 1]
            if len(line) > self.limit:
                self.dropped += 1
            elif line.strip():
                found.append(line.decode(self.encoding, errors="replace").strip())
        if len(self._buffer) > self.limit:
            self.dropped += 1
            self._buffer.clear()
        return found


class JsonSplitter:
    """Splitter that divides the bytes from the host into JSON objects. It finds the objects by their braces, because
    some drivers send no line ends. It drops bytes outside of objects, and it drops and counts objects that exceed a
    maximum length.
    """

    def __init__(self, limit: int = LONG_LINE) -> None:
        self.limit, self.dropped = limit, 0
        self._buffer = bytearray()
        self._depth = 0
        self._in_string = self._escaped = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the complete objects. The braces of each object are balanced, but the object may be invalid JSON."""
        found = []
        for byte in data:
            if not self._depth and byte != 0x7B:  # {
                continue
            self._buffer.append(byte)
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif byte == 0x5C:  # backslash
                    self._escaped = True
                elif byte in b'"\n':  # a string has no line end: the host broke off inside it
                    self._in_string = False
            elif byte == 0x22:
                self._in_string = True
            elif byte == 0x7B:
                self._depth += 1
            elif byte == 0x7D:
                self._depth -= 1
                if not self._depth:
                    found.append(bytes(self._buffer))
                    self._buffer.clear()
            if len(self._buffer) > self.limit:
                self.dropped += 1
                self._reset()
        return found

    def _reset(self) -> None:
        self._buffer.clear()
        self._depth = 0
        self._in_string = self._escaped = False
