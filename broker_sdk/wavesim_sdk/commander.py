"""Commander: client and server sides of a POSIX message queue that carries commands to a running server.

A command is one JSON object: ``{"verb": "start", "reply": "/wavesim.SERVER.reply...", "id": 1, ...}``.
The server replies with ``{"id": 1, "ok": true, "text": "...", "data": {...}}`` on a queue that the sender created. The
reply is split into pieces (:mod:`wavesim_sdk.reply_queue`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import posix_ipc

from wavesim_sdk import reply_queue
from wavesim_sdk.commands import split_mission, to_dict
from wavesim_sdk.errors import CommanderError
from wavesim_sdk.names import server_name
from wavesim_sdk.shared_memory import no_such_server

__all__ = ["CommandReply", "Commander", "CommanderQueue", "parse_command", "queue_name"]

#: maximum size of a command in bytes; enough for the allocation matrix of a vehicle with twelve thrusters
COMMAND_BYTES = 4096
QUEUE_LENGTH = 8
SWEEP_S = 10.0
_ids = itertools.count(1)


def queue_name(server: str) -> str:
    """Return the POSIX name of a server's commander queue."""
    return f"/wavesim.{server_name(server)}.commander"


@dataclass(frozen=True)
class CommandReply:
    """The server's answer to a command."""

    ok: bool
    text: str
    data: dict[str, Any] = field(default_factory=dict)


class Commander:
    """A client of the commander queue; use it as a context manager."""

    def __init__(self, server: str = "wavesim") -> None:
        self.server = server
        try:
            self._queue = posix_ipc.MessageQueue(queue_name(server), read=False)
        except posix_ipc.ExistentialError:
            raise no_such_server(server) from None
        except posix_ipc.PermissionsError:
            raise CommanderError(f"the server '{server}' belongs to another user") from None
        try:
            self._reply = reply_queue.ReplyQueue(server, self._queue.mqd)
        except (OSError, posix_ipc.Error) as error:
            self._queue.close()
            raise CommanderError(f"cannot create a queue for replies (see ulimit -q): {error}") from None

    def send(self, verb: str, timeout: float = 5.0, **arguments: Any) -> CommandReply:
        """Send a command and wait for its reply, for at most ``timeout`` seconds."""
        number = next(_ids)
        message = json.dumps({"verb": verb, "reply": self._reply.name, "id": number, **arguments}).encode()
        if len(message) > COMMAND_BYTES:
            raise CommanderError(f"the command '{verb}' has {len(message)} bytes; the maximum is {COMMAND_BYTES}")
        try:
            self._queue.send(message, timeout)
        except posix_ipc.BusyError:
            raise CommanderError(f"the server '{self.server}' is not accepting commands (its queue is full)") from None
        joiner = reply_queue.ReplyAssembler(number)
        while True:
            try:
                text = joiner.add(self._reply.receive(timeout))
            except posix_ipc.BusyError:
                raise CommanderError(
                    f"the server '{self.server}' did not answer '{verb}' within {timeout:g} s"
                ) from None
            if text is not None:
                answer = json.loads(text)
                return CommandReply(bool(answer["ok"]), str(answer["text"]), dict(answer.get("data") or {}))

    def mission(self, body: str, waypoints: Sequence[Sequence[float]]) -> CommandReply:
        """Send waypoints (north, east and down in m, in frame W; speed in m/s) to the pilot of a body that accepts
        missions.

        Raises ValueError if the waypoints are invalid.
        """
        number = 1 + time.time_ns() // 10**6 % (
            2**31 - 1
        )  # differs from the number of a mission that another program sends at the same time
        reply = CommandReply(False, "")
        for part in split_mission(waypoints, number, body):
            reply = self.send(**to_dict(part))
            if not reply.ok:
                break
        return reply

    def vehicle_command(self, body: str, action: str, point: Sequence[float] | None = None) -> CommandReply:
        """Send a command to the program that drives a body (:data:`wavesim_sdk.commands.VEHICLE_ACTIONS`) and return
        its answer.

        ``point`` consists of north, east and down in m (W), and the speed in m/s; a speed of 0 selects the vehicle's
        default cruise speed.
        """
        return self.send("command", body=body, action=action, point=None if point is None else list(point))

    def close(self) -> None:
        """Remove the reply queue."""
        self._queue.close()
        self._reply.close()

    def __enter__(self) -> Commander:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def parse_command(data: bytes) -> dict[str, Any] | None:
    """Return the command encoded in these bytes, or None if it is malformed."""
    try:
        command = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(command, dict)
        or not isinstance(command.get("verb"), str)
        or type(number := command.get("id")) is not int
        or not 0 <= number < 2**63
    ):
        return None
    return command


class CommanderQueue:
    """The server side of the commander queue."""

    def __init__(self, server: str, group: bool = False) -> None:
        self.server, self.name = server, queue_name(server)
        self._outbox = reply_queue.ReplyOutbox()
        self._sweep_at = 0.0
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_message_queue(self.name)
        try:
            self._queue = posix_ipc.MessageQueue(
                self.name, posix_ipc.O_CREX, mode=0o600, max_messages=QUEUE_LENGTH, max_message_size=COMMAND_BYTES
            )
            if group:
                os.fchmod(self._queue.mqd, 0o620)
        except (OSError, posix_ipc.Error) as error:
            raise CommanderError(f"cannot create the commander queue (see ulimit -q, /dev/mqueue): {error}") from None
        self._queue.block = False
        self.malformed_count = 0

    @property
    def fd(self) -> int:
        """File descriptor that is readable while a command is waiting."""
        return int(self._queue.mqd)

    def receive(self) -> Iterator[dict[str, Any]]:
        """Yield the waiting commands. Malformed commands are skipped and counted in ``malformed_count``."""
        while True:
            try:
                data = self._queue.receive(0)[0]
            except posix_ipc.BusyError:
                return
            command = parse_command(data)
            if command is not None:
                yield command
            else:
                self.malformed_count += 1

    @property
    def undelivered_count(self) -> int:
        """Number of replies that could not be delivered or queued."""
        return self._outbox.abandoned_count

    def reply(self, command: dict[str, Any], reply: CommandReply) -> None:
        """Reply to a command if its sender created a reply queue. Pieces that do not fit into the queue now are sent
        later by :meth:`poll`.
        """
        name = str(command.get("reply"))
        if not reply_queue.is_reply_queue_name(self.server, name):
            return
        number = int(command["id"])
        full = CommandReply(
            False, "the server cannot send this reply, because too many earlier replies are undelivered"
        )
        if not any(self._outbox.send(name, number, _text(number, r)) for r in (reply, full)):
            self._outbox.abandoned_count += 1

    def poll(self, now: float) -> None:
        """Continue sending replies, and occasionally remove the queues of senders that have exited."""
        self._outbox.poll(now)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_S
            reply_queue.remove_stale_queues(self.server)

    def close(self) -> None:
        self._outbox.close()
        self._queue.close()
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_message_queue(self.name)


def _text(number: int, reply: CommandReply) -> bytes:
    return json.dumps({"id": number, "ok": reply.ok, "text": reply.text, "data": reply.data}).encode()
