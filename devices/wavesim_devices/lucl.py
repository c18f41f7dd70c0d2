"""LUCL, the protocol that LSTS uses for its circuit boards.

A frame consists of 2A, length (of data and check byte), command, data, and the check byte: the exclusive or of all
bytes before it, with bit 7 set. A board answers with the same command, or with an error, which is a command of E0 or
above without data.
"""

from __future__ import annotations

from collections.abc import Callable

from wavesim_devices.ports import Bytes
from wavesim_sdk.checksums import xor

SYNC = 0x2A
MAX_LENGTH = 127  #: maximum length of data and check byte
VERSION, NAME, RESET = 0x00, 0xFE, 0xFF
INVALID_COMMAND, INVALID_CHECK, INVALID_ARGUMENTS = 0xE0, 0xE5, 0xE7


def frame(command: int, data: bytes = b"") -> bytes:
    """Return a frame with its check byte."""
    body = bytes((SYNC, len(data) + 1, command)) + data
    return body + check_byte(body)


def check_byte(body: bytes) -> bytes:
    """Return the check byte of a frame."""
    return bytes((xor(body) | 0x80,))


class LuclSplitter:
    """Splitter that divides the bytes from the host into frames. It skips bytes outside of frames, and counts damaged
    frames.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return command and data of each complete frame. The command of a damaged frame is INVALID_CHECK."""
        found: list[tuple[int, bytes]] = []
        self._buffer += data
        while True:
            start = self._buffer.find(SYNC)
            if start < 0:
                self._buffer.clear()
                return found
            del self._buffer[:start]
            if len(self._buffer) < 2:
                return found
            length = self._buffer[1]
            if not 1 <= length <= MAX_LENGTH:
                self.dropped += 1
                del self._buffer[:1]
                continue
            end = length + 3
            if len(self._buffer) < end:
                return found
            body = bytes(self._buffer[: end - 1])
            if check_byte(body) == self._buffer[end - 1 : end]:
                found.append((body[2], body[3:]))
                del self._buffer[:end]
            else:
                self.dropped += 1
                found.append((INVALID_CHECK, b""))
                del self._buffer[:1]


#: function that executes a command: it returns the data of the answer, or None if the arguments are invalid
Command = Callable[[bytes, "BoardConnection"], bytes | None]


class LuclBoard:
    """A board and its commands."""

    def __init__(self, name: bytes, version: tuple[int, int, int]) -> None:
        self.refused = 0
        self.commands: dict[int, Command] = {
            VERSION: lambda data, _: bytes(version) if not data else None,
            NAME: lambda data, _: name if not data else None,
            RESET: self._reset,
        }

    def reset(self) -> None:
        """Load the initial state."""

    def _reset(self, data: bytes, _: BoardConnection) -> bytes | None:
        if data:
            return None
        self.reset()
        return b""


class BoardConnection:
    """Connection of a host to a board."""

    def __init__(self, board: LuclBoard, send: Bytes, hosts: list[BoardConnection]) -> None:
        self.board, self.send, self._hosts, self._splitter = board, send, hosts, LuclSplitter()
        hosts.append(self)

    @property
    def errors(self) -> int:
        """Number of damaged frames from the host."""
        return self._splitter.dropped

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from the host."""
        for command, arguments in self._splitter.feed(data):
            self.send(self._answer(command, arguments))

    def _answer(self, command: int, arguments: bytes) -> bytes:
        if command == INVALID_CHECK and not arguments:
            return frame(INVALID_CHECK)
        if command not in self.board.commands:
            self.board.refused += 1
            return frame(INVALID_COMMAND)
        answer = self.board.commands[command](arguments, self)
        if answer is None:
            self.board.refused += 1
            return frame(INVALID_ARGUMENTS)
        return frame(command, answer)

    def send_frame(self, command: int, data: bytes) -> None:
        """Send a frame that is not an answer."""
        self.send(frame(command, data))

    def close(self) -> None:
        """Remove the host after it has closed the connection."""
        self._hosts.remove(self)
