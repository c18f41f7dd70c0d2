"""Replies of the commander: JSON of any size in numbered pieces, on a queue that the asker made.

A piece is one message: ``NUMBER PART PARTS\\n`` in ASCII, then its share of the text; NUMBER is the
command's ``id``, PART counts from 0.  A queue outlives a killed asker, and a user has room for about
fifty.  So a queue's name says whose it is, an empty shared memory of the same name makes it findable
(message queues themselves can be listed only where /dev/mqueue is mounted), and everybody removes
those of the dead.
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

PIECE_BYTES = 8192  #: of a message, its head included; what Linux gives without being asked for more
HEAD_BYTES = 48
ROOM_BYTES = 16 * 1024 * 1024  #: of all replies that wait for their askers
WAITING = 64  #: replies that may wait
PATIENCE_S = 5.0  #: an asker that takes no piece for so long is given up
SHARED_MEMORY = Path("/dev/shm")
_END = re.compile(r"[A-Za-z0-9.]{1,60}")
_numbers = itertools.count(1)


def queue_prefix(server: str) -> str:
    """How the names of all queues for replies of a server begin."""
    return f"/wavesim.{server}.reply."


def is_reply_queue_name(server: str, name: object) -> bool:
    """Whether this can be a queue for replies of the server; posix_ipc ends the process at some names (a zero in one)."""
    return (
        isinstance(name, str)
        and name.startswith(queue_prefix(server))
        and _END.fullmatch(name[len(queue_prefix(server)) :]) is not None
    )


def split_reply(number: int, text: bytes) -> deque[bytes]:
    """The messages of one reply."""
    share = PIECE_BYTES - HEAD_BYTES
    parts = max(1, -(-len(text) // share))
    return deque(
        f"{number} {part} {parts}\n".encode() + text[part * share : (part + 1) * share] for part in range(parts)
    )


class ReplyAssembler:
    """Puts the pieces of one reply together."""

    def __init__(self, number: int) -> None:
        self._number = str(number).encode()
        self._shares: list[bytes] = []

    def add(self, message: bytes) -> bytes | None:
        """The whole text, with its last piece. Others' pieces (of a reply that came too late) are left out."""
        head, _, share = message.partition(b"\n")
        number, _, place = head.partition(b" ")
        if number != self._number or place.split(b" ")[0] != str(len(self._shares)).encode():
            return None
        self._shares.append(share)
        return b"".join(self._shares) if place == b"%d %d" % (len(self._shares) - 1, len(self._shares)) else None


# -- the asker's end ---------------------------------------------------------------------------------


class ReplyQueue:
    """A queue of this process for the replies of a server."""

    def __init__(self, server: str, commands: int) -> None:
        """``commands``: descriptor of the queue for commands; if a group may use that, its server may be another user."""
        pid = os.getpid()
        self.name = f"{queue_prefix(server)}{pid}.{process_start(pid)}.{next(_numbers)}"
        remove_stale_queues(server)
        try:
            self._queue = self._make()
        except OSError:  # this user has no room for another one
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
        """The next piece; posix_ipc.BusyError when none came in time."""
        while True:
            with contextlib.suppress(posix_ipc.SignalError):  # the caller's own handler ran: go on waiting
                return bytes(self._queue.receive(timeout)[0])

    def close(self) -> None:
        """Remove the queue."""
        self._queue.close()
        _remove(self.name)


def _remove(name: str) -> None:
    with contextlib.suppress(posix_ipc.Error, OSError):
        posix_ipc.unlink_message_queue(name)
    with contextlib.suppress(posix_ipc.Error, OSError):
        posix_ipc.unlink_shared_memory(name)


def remove_stale_queues(server: str = "*") -> list[str]:
    """Remove this user's queues whose askers are dead, of one server or of all; returns their names."""
    found = []
    for entry in SHARED_MEMORY.glob(f"wavesim.{server}.reply.*"):
        *_, pid, start, number = entry.name.split(".")
        if (pid + start + number).isdecimal() and not is_process_alive(int(pid), int(start)):
            found.append(f"/{entry.name}")
            _remove(found[-1])
    return found


# -- the server's end ----------------------------------------------------------------------------------


@dataclass
class _PendingReply:
    """A reply of which not all is sent."""

    queue: posix_ipc.MessageQueue
    unsent: deque[bytes]
    size: int
    stalled_since: float | None = None  # nothing was taken since then


class ReplyOutbox:
    """Replies on their way. Nothing here blocks: what finds no room waits for the next turn."""

    def __init__(self) -> None:
        self._waiting: list[_PendingReply] = []
        self.abandoned_count = 0  #: replies that their askers did not take

    def send(self, name: str, number: int, text: bytes) -> bool:
        """Send what goes at once; False if the reply finds no room to wait."""
        if len(self._waiting) >= WAITING or sum(r.size for r in self._waiting) + len(text) > ROOM_BYTES:
            return False
        with contextlib.suppress(posix_ipc.Error, OSError, ValueError):  # no such queue: nobody wants to know
            reply = _PendingReply(posix_ipc.MessageQueue(name, read=False), split_reply(number, text), len(text))
            if not self._push(reply):
                self._waiting.append(reply)
        return True

    def poll(self, now: float) -> None:
        """Go on with what waits."""
        self._waiting = [r for r in self._waiting if not self._push(r, now)]

    def _push(self, reply: _PendingReply, now: float | None = None) -> bool:
        """Send what goes; True when nothing is left to do."""
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
        """Forget what waits."""
        for reply in self._waiting:
            reply.queue.close()
        self._waiting.clear()
