"""The mailbox: incoming messages into a POSIX queue, notice by a signal; for programs in any language.

A message is an 8-byte head (``int32`` kind, ``int32`` bytes that follow) and one record of
``wavesim_sdk.tables``: kind 1 is ``mailbox_state``, kind 2 ``mailbox_reception``, kind 3 an ``int64`` run
state.  ``wavesim_sdk.tables.c_struct`` writes the C structs; see ``examples/mailbox-c``.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import struct
import time
from collections import deque
from types import TracebackType

import numpy as np
import posix_ipc

from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.tables import MAILBOX_RECEPTION, MAILBOX_STATE, RECORDS, RunState, c_struct
from wavesim_sdk.wire.messages import MOTION_NUMBERS

STATE, RECEPTION, RUN_STATE = 1, 2, 3
MESSAGE_BYTES = 1024
LENGTH = 8
BACKLOG = 4096
LAST_WORDS_S = 5.0  #: how long a slow reader is given at the end of the run
_HEAD = struct.Struct("<ii")
_TIMES = struct.Struct("<qq")  # of a state: tick, time


class Mailbox:
    """A queue, and who is told of its messages. Use as a context manager.

    When the reader is slow, states are given up (the latest counts; ``dropped`` counts them), while
    receptions and run states wait here, in order, until there is room.
    """

    def __init__(self, queue: str, signal_name: str = "", pid: int = 0) -> None:
        if bool(signal_name) != bool(pid):
            raise WaveSimError("a signal needs both its name and the process that gets it (--signal and --pid)")
        self.queue_name, self.pid = queue, pid
        try:
            self.signal = signal.Signals[f"SIG{signal_name.upper().removeprefix('SIG')}"] if signal_name else None
        except KeyError:
            raise WaveSimError(f"there is no signal '{signal_name}'") from None
        self.dropped = 0
        self._backlog: deque[bytes] = deque()
        self._created = False

    def __enter__(self) -> Mailbox:
        try:
            try:
                self._queue = posix_ipc.MessageQueue(
                    self.queue_name, posix_ipc.O_CREX, mode=0o600, max_messages=LENGTH, max_message_size=MESSAGE_BYTES
                )
                self._created = True
            except posix_ipc.ExistentialError:
                self._queue = posix_ipc.MessageQueue(self.queue_name)
        except (posix_ipc.Error, OSError, ValueError) as error:
            raise WaveSimError(f"cannot open the queue '{self.queue_name}': {error}") from None
        if self._queue.max_message_size < MESSAGE_BYTES:
            self._queue.close()
            raise WaveSimError(
                f"the queue '{self.queue_name}' takes messages of {self._queue.max_message_size} bytes; {MESSAGE_BYTES} are needed"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.close()
        if self._created:
            with contextlib.suppress(posix_ipc.ExistentialError):
                posix_ipc.unlink_message_queue(self.queue_name)

    def put(self, kind: int, record: bytes) -> None:
        """Drop a message into the queue and tell the reader."""
        message = _HEAD.pack(kind, len(record)) + record
        if kind != STATE:
            if len(self._backlog) >= BACKLOG:
                self._backlog.popleft()
                self.dropped += 1
            self._backlog.append(message)
            self.flush()
        elif not (self.flush() and self._send(message)):
            self.dropped += 1

    def flush(self) -> bool:
        """Send what waits; whether nothing waits any more."""
        while self._backlog and self._send(self._backlog[0]):
            self._backlog.popleft()
        return not self._backlog

    def _send(self, message: bytes) -> bool:
        try:
            self._queue.send(message, 0)
        except posix_ipc.BusyError:
            return False
        if self.signal is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, self.signal)
        return True

    def put_step(self, step: Step) -> None:
        """Everything of one step: receptions and run states first, then the state."""
        for run in step.run_states:
            self.put(RUN_STATE, struct.pack("<q", run.run_state))
        for r in step.receptions:
            measured = [math.nan if v is None else v for v in (r.range, r.azimuth, r.elevation)]
            head = (r.id, r.query, r.reception_ns, r.kind, r.code, r.from_address, r.to_address)
            payload = r.payload or b""
            values = (*head, r.frequency, r.level, r.snr, *measured, len(payload), payload)
            self.put(RECEPTION, np.array([values], MAILBOX_RECEPTION.dtype).tobytes())
        s = step.state
        motion = s.motion if s.motion is not None else [float("nan")] * MOTION_NUMBERS
        numbers = np.zeros((MAILBOX_STATE.dtype.itemsize - _TIMES.size) // 8)
        numbers[: MOTION_NUMBERS + len(s.actuation)] = [*motion, *s.actuation]
        self.put(STATE, _TIMES.pack(s.tick, s.time_ns) + numbers.tobytes())

    def run(self, broker: Broker) -> None:
        """Feed the queue until the run has ended."""
        for step in broker.steps():
            self.put_step(step)
        self.put(RUN_STATE, struct.pack("<q", RunState.ENDED))
        limit = time.monotonic() + LAST_WORDS_S
        while not self.flush() and time.monotonic() < limit:
            time.sleep(0.01)


def c_header() -> str:
    """A C header with the structs of the mailbox."""
    structs = "\n\n".join(c_struct(t) for t in RECORDS if t.name.startswith("mailbox"))
    assert MAILBOX_STATE.dtype.itemsize < MESSAGE_BYTES
    return (
        "/* Made by `python -m wavesim_sdk.mailbox`; do not edit by hand. */\n#ifndef WAVESIM_MAILBOX_H\n#define WAVESIM_MAILBOX_H\n\n#include <stdint.h>\n\n"
        f"#define WAVESIM_MESSAGE_BYTES {MESSAGE_BYTES}\n"
        "enum wavesim_kind { WAVESIM_STATE = 1, WAVESIM_RECEPTION = 2, WAVESIM_RUN_STATE = 3 };\n\n"
        "struct wavesim_head {\n    int32_t kind;\n    int32_t bytes;\n};\n\n" + structs + "\n\n#endif\n"
    )


if __name__ == "__main__":
    print(c_header(), end="")
