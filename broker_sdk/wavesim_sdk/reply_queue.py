"""Replies to commands: JSON strings of any size, sent in numbered pieces on a queue that the sender of the command
created.

A piece is one message: ``NUMBER PART PARTS\n`` in ASCII, followed by its part of the text; NUMBER is the ``id`` of the
command, and PART is counted from 0. A queue persists after its process has been killed, and a user can have only about
fifty queues. Therefore, the name of a queue includes the PID of its process, and every process removes the queues of
processes that have exited. Message queues can be listed only if /dev/mqueue is mounted. Therefore, an empty
shared-memory object of the same name makes each queue discoverable.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import posix_ipc

from wavesim_sdk.shared_memory import is_process_alive, process_start

PIECE_BYTES = 8192  #: size in bytes of a message, including its header; this is the default limit of Linux
HEAD_BYTES = 48
ROOM_BYTES = 16 * 1024 * 1024  #: maximum total size of all waiting replies in bytes
WAITING = 64  #: maximum number of waiting replies
PATIENCE_S = 5.0  #: time in s after which a reply is dropped if its receiver has not read any piece of it
SHARED_MEMORY = Path("/dev/shm")
_END = re.compile(r"[A-Za-z0-9.]{1,60}")
_numbers = itertools.count(1)


def queue_prefix(server: str) -> str:
    """Return the prefix of the names of a server's reply queues."""
    return f"/wavesim.{server}.reply."


def is_reply_queue_name(server: str, name: object) -> bool:
    """Return whether this is a valid name of a reply queue. A name that contains a zero byte would make posix_ipc end
    the process.
    """
    return (
        isinstance(name, str)
        and name.startswith(queue_prefix(server))
        and _END.fullmatch(name[len(queue_prefix(server)) :]) is not None
    )


def split_reply(number: int, text: bytes) -> deque[bytes]:
    """Split a reply into the messages that carry it."""
    share = PIECE_BYTES - HEAD_BYTES
    parts = max(1, -(-len(text) // share))
    return deque(
        f"{number} {part} {parts}\n".encode() + text[part * share : (part + 1) * share] for part in range(parts)
    )


class ReplyAssembler:
    """Assembler for the pieces of one reply."""

    def __init__(self, number: int) -> None:
        self._number = str(number).encode()
        self._shares: list[bytes] = []

    def add(self, message: bytes) -> bytes | None:
        """Add a piece and return the text that the piece completes, or None. Pieces of an earlier reply that arrive
        late are ignored.
        """
        head, _, share = message.partition(b"\n")
        number, _, place = head.partition(b" ")
        if number != self._number or place.split(b" ")[0] != str(len(self._shares)).encode():
            return None
        self._shares.append(share)
        return b"".join(self._shares) if place == b"%d %d" % (len(self._shares) - 1, len(self._shares)) else None


# -- the side of the sender of a command -------------------------------------------------------------


class ReplyQueue:
    """Queue of this process for the replies from one server."""

    def __init__(self, server: str, commands: int) -> None:
        """Create the queue. If a group may use the command queue (descriptor ``commands``), the same group may use this
        queue, because the server may then run as another user.
        """
        pid = os.getpid()
        self.name = f"{queue_prefix(server)}{pid}.{process_start(pid)}.{next(_numbers)}"
        remove_stale_queues(server)
        try:
            self._queue = self._make()
        except OSError:  # the user's limit is reached
            remove_stale_queues()
            self._queue = self._make()
        asked = os.fstat(commands)
        if asked.st_mode & 0o020:
            os.fchown(self._queue.mqd, -1, asked.st_gid)
            os.fchmod(self._queue.mqd, 0o620)

    def _make(self) -> posix_ipc.MessageQueue:
        posix_ipc.SharedMemory(self.name, posix_ipc.O_CREX, mode=0o600).close_fd()
        try:
            return posix_ipc.MessageQueue(
                self.name, posix_ipc.O_CREX, mode=0o600, max_messages=2, max_message_size=PIECE_BYTES
            )
        except (OSError, posix_ipc.Error):
            _remove(self.name)
            raise

    def receive(self, timeout: float) -> bytes:
        """Wait for the next piece of a reply. Raises posix_ipc.BusyError after ``timeout`` seconds."""
        while True:
            with contextlib.suppress(posix_ipc.SignalError):  # a signal handler ran; continue to wait
                return bytes(self._queue.receive(timeout)[0])

    def close(self) -> None:
        """Remove the reply queue."""
        self._queue.close()
        _remove(self.name)


def _remove(name: str) -> None:
    with contextlib.suppress(posix_ipc.Error, OSError):
        posix_ipc.unlink_message_queue(name)
    with contextlib.suppress(posix_ipc.Error, OSError):
        posix_ipc.unlink_shared_memory(name)


def remove_stale_queues(server: str = "*") -> list[str]:
    """Remove this user's reply queues whose processes have exited, for one server or for all, and return the names of
    the queues.
    """
    found = []
    for entry in SHARED_MEMORY.glob(f"wavesim.{server}.reply.*"):
        *_, pid, start, number = entry.name.split(".")
        if (pid + start + number).isdecimal() and not is_process_alive(int(pid), int(start)):
            found.append(f"/{entry.name}")
            _remove(found[-1])
    return found


# -- the side of the server ----------------------------------------------------------------------------


@dataclass
class _PendingReply:
    """A reply of which some pieces have not been sent yet."""

    queue: posix_ipc.MessageQueue
    unsent: deque[bytes]
    size: int
    stalled_since: float | None = None  # time since which no piece was accepted


class ReplyOutbox:
    """Replies that are waiting to be sent. No method blocks, because pieces that do not fit into a queue wait for the
    next :meth:`poll`.
    """

    def __init__(self) -> None:
        self._waiting: list[_PendingReply] = []
        self.abandoned_count = 0  #: number of replies that their receivers did not read

    def send(self, name: str, number: int, text: bytes) -> bool:
        """Send as many pieces of a reply as fit, and keep the others. Return False if there is no room to keep them."""
        if len(self._waiting) >= WAITING or sum(r.size for r in self._waiting) + len(text) > ROOM_BYTES:
            return False
        with contextlib.suppress(
            posix_ipc.Error, OSError, ValueError
        ):  # the queue is gone, so its owner does not need the reply
            reply = _PendingReply(posix_ipc.MessageQueue(name, read=False), split_reply(number, text), len(text))
            if not self._push(reply):
                self._waiting.append(reply)
        return True

    def poll(self, now: float) -> None:
        """Continue sending the waiting replies."""
        self._waiting = [r for r in self._waiting if not self._push(r, now)]

    def _push(self, reply: _PendingReply, now: float | None = None) -> bool:
        """Send as many pieces of a reply as fit. Return True when the reply has been sent or abandoned."""
        try:
            while reply.unsent:
                reply.queue.send(reply.unsent[0], 0)
                reply.unsent.popleft()
                reply.stalled_since = now
        except posix_ipc.BusyError:
            if reply.stalled_since is None:
                reply.stalled_since = now
            if now is None or reply.stalled_since is None or now - reply.stalled_since < PATIENCE_S:
                return False
            self.abandoned_count += 1
        except (posix_ipc.Error, OSError, ValueError):  # a queue with messages of another size
            self.abandoned_count += 1
        reply.queue.close()
        return True

    def close(self) -> None:
        """Discard all waiting replies."""
        for reply in self._waiting:
            reply.queue.close()
        self._waiting.clear()
