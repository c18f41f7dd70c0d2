"""The commander: a POSIX message queue that takes commands for a running server.

A command is one JSON object: ``{"verb": "start", "reply": "/queue", "id": 1, ...}``.  The reply, on the
queue that the sender made, is ``{"id": 1, "ok": true, "text": "...", "data": {...}}``.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import posix_ipc

from wavesim_sdk.errors import CommanderError, NotRunning

COMMAND_BYTES = 1024
REPLY_BYTES = 8192
QUEUE_LENGTH = 8
_ids = itertools.count(1)

#: verb -> (argument name or "", meaning)
VERBS: dict[str, tuple[str, str]] = {
    "start": ("", "arm the timer: time runs (also after pause or stop)"),
    "stop": ("", "unarm the timer; clients may still talk"),
    "pause": ("", "hold time"),
    "resume": ("", "go on after a pause"),
    "step": ("ticks", "advance a paused or stopped simulation by a number of ticks"),
    "speed": ("factor", "simulated seconds per wall second; 0 = as fast as possible"),
    "status": ("", "everything the server knows of itself"),
    "shutdown": ("", "end the server"),
}

#: verbs on one body -> meaning; their arguments are ``vehicle`` and those named here
BODY_VERBS: dict[str, str] = {
    "fault": "fail an actuator (`actuator`, `fault`: stuck, frozen, lost, reduced, reversed, none; `amount`: seconds of "
    "frozen, share left of reduced)",
    "sensor": "make a sensor fail (`sensor`, `fault`: lost, frozen, bias, spikes, noisy, wet, unlocked, none; `amount`: the "
    "bias, the chance of a spike, the factor of the noise, the wet compartment)",
    "push": "apply a force (`force`: X Y Z in N, `torque`: K M N in N m, in B) until it is changed",
    "allocate": "set the thruster allocation matrix (`matrix`: 6 rows of one number per thruster)",
}


def queue_name(server: str) -> str:
    """POSIX name of a server's commander queue."""
    return f"/wavesim.{server}.commander"


@dataclass(frozen=True)
class Reply:
    """The server's answer to a command."""

    ok: bool
    text: str
    data: dict[str, Any] = field(default_factory=dict)


class Commander:
    """A client of the commander queue; use as a context manager."""

    def __init__(self, server: str = "wavesim") -> None:
        self.server = server
        try:
            self._queue = posix_ipc.MessageQueue(queue_name(server))
        except posix_ipc.ExistentialError:
            raise NotRunning(
                f"no server named '{server}' is running (there is no queue {queue_name(server)}); start one with: wavesim serve CONFIG"
            ) from None
        except posix_ipc.PermissionsError:
            raise CommanderError(f"the server '{server}' belongs to another user") from None
        self._reply_name = f"/wavesim.{server}.reply.{os.getpid()}.{next(_ids)}"
        self._reply = posix_ipc.MessageQueue(
            self._reply_name, posix_ipc.O_CREX, mode=0o600, max_messages=2, max_message_size=REPLY_BYTES
        )

    def send(self, verb: str, timeout: float = 5.0, **arguments: Any) -> Reply:
        """Send a command and wait for its answer."""
        number = next(_ids)
        message = json.dumps({"verb": verb, "reply": self._reply_name, "id": number, **arguments}).encode()
        if len(message) > COMMAND_BYTES:
            raise CommanderError(f"a command holds at most {COMMAND_BYTES} bytes")
        try:
            self._queue.send(message, timeout)
        except posix_ipc.BusyError:
            raise CommanderError(f"the server '{self.server}' does not take commands (its queue is full)") from None
        while True:
            try:
                answer = json.loads(self._reply.receive(timeout)[0])
            except posix_ipc.SignalError:  # the caller's own handler ran: go on waiting
                continue
            except posix_ipc.BusyError:
                raise CommanderError(
                    f"the server '{self.server}' did not answer '{verb}' within {timeout:g} s"
                ) from None
            if answer["id"] == number:
                return Reply(bool(answer["ok"]), str(answer["text"]), dict(answer.get("data") or {}))

    def close(self) -> None:
        """Remove the reply queue."""
        self._queue.close()
        self._reply.close()
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_message_queue(self._reply_name)

    def __enter__(self) -> Commander:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def parse(data: bytes) -> dict[str, Any] | None:
    """A well-formed command, or None."""
    try:
        command = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(command, dict)
        or not isinstance(command.get("verb"), str)
        or not isinstance(command.get("id"), int)
    ):
        return None
    return command


class CommanderQueue:
    """The server's end of the queue."""

    def __init__(self, server: str) -> None:
        self.name = queue_name(server)
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_message_queue(self.name)
        try:
            self._queue = posix_ipc.MessageQueue(
                self.name, posix_ipc.O_CREX, mode=0o600, max_messages=QUEUE_LENGTH, max_message_size=COMMAND_BYTES
            )
        except (OSError, posix_ipc.Error) as error:
            raise CommanderError(f"cannot make the commander's queue (ulimit -q, /dev/mqueue): {error}") from None
        self._queue.block = False
        self.bad = 0

    @property
    def fd(self) -> int:
        """Readable when a command waits."""
        return int(self._queue.mqd)

    def receive(self) -> Iterator[dict[str, Any]]:
        """Well-formed commands that wait; others are counted in ``bad``."""
        while True:
            try:
                data = self._queue.receive(0)[0]
            except posix_ipc.BusyError:
                return
            command = parse(data)
            if command is not None:
                yield command
            else:
                self.bad += 1

    def reply(self, command: dict[str, Any], reply: Reply) -> None:
        """Answer, if the sender made a queue and still reads it."""
        name = command.get("reply")
        prefix = f"{self.name.removesuffix('commander')}reply."
        if not isinstance(name, str) or not name.startswith(prefix):
            return
        message = json.dumps({"id": command["id"], "ok": reply.ok, "text": reply.text, "data": reply.data}).encode()
        with contextlib.suppress(posix_ipc.Error, OSError, ValueError):
            queue = posix_ipc.MessageQueue(name)
            try:
                queue.send(message[:REPLY_BYTES], 0)
            finally:
                queue.close()

    def close(self) -> None:
        self._queue.close()
        with contextlib.suppress(posix_ipc.ExistentialError):
            posix_ipc.unlink_message_queue(self.name)
