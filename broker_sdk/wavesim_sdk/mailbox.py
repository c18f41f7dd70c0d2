"""The mailbox: a POSIX message queue that delivers states and events to a program in any language, with an optional
signal for each message.

A message has an 8-byte header (``int32`` kind, ``int32`` number of bytes that follow) and one record of
``wavesim_sdk.mailbox_tables``. In some kinds of message, more data follow the record. The first messages describe the
body: each actuator (kind 4, ``mailbox_actuator``) and each sensor (kind 5, ``mailbox_sensor`` and its fields). They are
followed by states (kind 1, ``mailbox_state`` and the readings from the sensors). Readings that do not fit are sent in
messages of kind 6 (``mailbox_values``). Receptions are of kind 2 (``mailbox_reception``), changes of the acoustic channel
are of kind 7 (``mailbox_channel_state``), and run states are of kind 3 (an ``int64``). ``c_header`` writes the C structs; see ``examples/mailbox-c``.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import struct
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType

import numpy as np
import posix_ipc

from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.mailbox_tables import (
    MAILBOX_ACTUATOR,
    MAILBOX_CHANNEL_STATE,
    MAILBOX_FIELD,
    MAILBOX_READING,
    MAILBOX_RECEPTION,
    MAILBOX_SENSOR,
    MAILBOX_STATE,
    MAILBOX_VALUES,
    RECORDS,
)
from wavesim_sdk.tables import RunState, Table, c_struct
from wavesim_sdk.wire.items import ActuatorDescription, Reception, SensorDescription
from wavesim_sdk.wire.messages import MOTION_NUMBERS
from wavesim_sdk.wire.state import State

STATE, RECEPTION, RUN_STATE, ACTUATOR, SENSOR, VALUES, CHANNEL_STATE = range(1, 8)
MESSAGE_BYTES = 4096
QUEUE_LENGTH = 8
MAX_BACKLOG = 4096
FINAL_FLUSH_TIMEOUT_S = 5.0  #: maximum time in s to wait for a slow reader at the end of the run
_HEAD = struct.Struct("<ii")


def _record(table: Table, *values: object) -> bytes:
    """Return the bytes of a mailbox record."""
    return np.array([values], table.dtype).tobytes()


class Mailbox:
    """A message queue and the process that receives a signal for each message. Use it as a context manager.

    If the reader is slow, states are dropped, since only the latest matters; ``dropped`` counts the dropped states.
    Receptions and run states are kept in order until the queue has room.
    """

    def __init__(self, queue: str, signal_name: str = "", pid: int = 0) -> None:
        if bool(signal_name) != bool(pid):
            raise WaveSimError(
                "to send a signal, specify both its name (--signal) and the process that receives it (--pid)"
            )
        self.queue_name, self.pid = queue, pid
        try:
            self.signal = signal.Signals[f"SIG{signal_name.upper().removeprefix('SIG')}"] if signal_name else None
        except KeyError:
            raise WaveSimError(f"unknown signal '{signal_name}'") from None
        self.dropped = 0
        self._backlog: deque[bytes] = deque()
        self._numbers: dict[str, int] = {}  # sensor name -> number
        self._created = False

    def __enter__(self) -> Mailbox:
        try:
            try:
                self._queue = posix_ipc.MessageQueue(
                    self.queue_name,
                    posix_ipc.O_CREX,
                    mode=0o600,
                    max_messages=QUEUE_LENGTH,
                    max_message_size=MESSAGE_BYTES,
                )
                self._created = True
            except posix_ipc.ExistentialError:
                self._queue = posix_ipc.MessageQueue(self.queue_name)
        except (posix_ipc.Error, OSError, ValueError) as error:
            wants = "" if self.queue_name.startswith("/") else " (its name must start with /)"
            raise WaveSimError(f"cannot open the queue '{self.queue_name}'{wants}: {error}") from None
        if self._queue.max_message_size < MESSAGE_BYTES:
            self._queue.close()
            raise WaveSimError(
                f"the queue '{self.queue_name}' accepts messages of at most {self._queue.max_message_size} bytes; {MESSAGE_BYTES} are needed"
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
        """Put a message into the queue as soon as there is room, and send the signal to the reader."""
        if len(self._backlog) >= MAX_BACKLOG:
            self._backlog.popleft()
            self.dropped += 1
        self._backlog.append(_HEAD.pack(kind, len(record)) + record)
        self.flush()

    def put_latest(self, messages: list[tuple[int, bytes]]) -> None:
        """Put the messages that carry a state into the queue, either all of them or none."""
        room = self.flush() and self._queue.max_messages - self._queue.current_messages
        if room < min(len(messages), self._queue.max_messages):
            self.dropped += 1
            return
        for kind, record in messages:
            if not self._send(_HEAD.pack(kind, len(record)) + record):
                self.dropped += 1  # the state needs more messages than the queue holds
                return

    def flush(self) -> bool:
        """Send the waiting messages; return whether none is left."""
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

    def put_body(self, actuators: Sequence[ActuatorDescription], sensors: Sequence[SensorDescription]) -> None:
        """Send the description of the body, with its actuators and sensors."""
        for a in actuators:
            values = (a.number, a.name.encode(), a.kind, a.unit.encode(), a.minimum, a.maximum)
            self.put(ACTUATOR, _record(MAILBOX_ACTUATOR, *values))
        for s in sensors:
            self._numbers[s.name] = s.number
            head = _record(MAILBOX_SENSOR, s.number, s.name.encode(), s.type.encode(), s.period_ns, len(s.fields))
            fields = [_record(MAILBOX_FIELD, f.name.encode(), f.unit.encode(), f.count) for f in s.fields]
            self.put(SENSOR, head + b"".join(fields))

    def put_step(self, step: Step) -> None:
        """Send one step: run states, receptions and channel states first, then the state."""
        for run in step.run_states:
            self.put(RUN_STATE, struct.pack("<q", run.run_state))
        for r in step.receptions:
            self.put(RECEPTION, _reception(r))
        for change in step.channel:
            self.put(CHANNEL_STATE, _record(MAILBOX_CHANNEL_STATE, change.time_ns, change.busy))
        s = step.state
        motion = np.full(MOTION_NUMBERS, math.nan) if s.motion is None else np.array(s.motion)
        first, *parts = self._readings(s)
        record = np.zeros(1, MAILBOX_STATE.dtype)
        record["tick"], record["time_ns"], record["actuators"] = s.tick, s.time_ns, len(s.actuation)
        record["readings"], record["parts"] = len(first), len(parts)
        record["actuation"][0, : len(s.actuation)] = s.actuation
        raw = bytearray(record.tobytes())
        raw[_MOTION : _MOTION + motion.nbytes] = motion.tobytes()
        more = [(VALUES, _record(MAILBOX_VALUES, s.tick, len(part)) + b"".join(part)) for part in parts]
        self.put_latest([(STATE, bytes(raw) + b"".join(first)), *more])

    def _readings(self, state: State) -> list[list[bytes]]:
        """Split readings into the messages that carry a state; a reading larger than one message is split."""
        found: list[list[bytes]] = [[]]
        room = _ROOM - MAILBOX_STATE.dtype.itemsize
        for name, value in state.sensors.items():
            numbers, done = np.array(value.numbers, float), 0
            while True:
                rest = _READING + 8 * (len(numbers) - done)
                if rest > room and (rest <= _ROOM_OF_VALUES or room < _READING + 8):  # cut only if necessary
                    found.append([])
                    room = _ROOM_OF_VALUES
                piece = numbers[done : done + (room - _READING) // 8]
                head = _record(MAILBOX_READING, self._numbers[name], value.time_ns, done, len(piece))
                found[-1].append(head + piece.tobytes())
                room -= len(found[-1][-1])
                done += len(piece)
                if done >= len(numbers):
                    break
        return found

    def run(self, broker: Broker) -> None:
        """Put the steps of a run into the queue until the run has ended."""
        self.put_body(broker.actuators, broker.sensors)
        for step in broker.steps():
            self.put_step(step)
        self.put(RUN_STATE, struct.pack("<q", RunState.ENDED))
        limit = time.monotonic() + FINAL_FLUSH_TIMEOUT_S
        while not self.flush() and time.monotonic() < limit:
            time.sleep(0.01)


_MOTION = int(MAILBOX_STATE.dtype.fields["p_WB_W"][1]) if MAILBOX_STATE.dtype.fields else 0
_READING = MAILBOX_READING.dtype.itemsize
_ROOM = MESSAGE_BYTES - _HEAD.size
_ROOM_OF_VALUES = _ROOM - MAILBOX_VALUES.dtype.itemsize


def _reception(r: Reception) -> bytes:
    measured = [math.nan if v is None else v for v in (r.range, r.azimuth, r.elevation)]
    head = (r.id, r.query, r.reception_ns, r.kind, r.code, r.from_address, r.to_address)
    payload = r.payload or b""
    return _record(MAILBOX_RECEPTION, *head, r.frequency, r.level, r.snr, *measured, len(payload), payload)


def c_header() -> str:
    """Return the C header with the structs of the mailbox."""
    kinds = {
        "STATE": STATE,
        "RECEPTION": RECEPTION,
        "RUN_STATE": RUN_STATE,
        "ACTUATOR": ACTUATOR,
        "SENSOR": SENSOR,
        "VALUES": VALUES,
        "CHANNEL_STATE": CHANNEL_STATE,
    }
    named = ", ".join(f"WAVESIM_{name} = {number}" for name, number in kinds.items())
    structs = "\n\n".join(c_struct(t) for t in RECORDS)
    return (
        "/* Generated by `python -m wavesim_sdk.mailbox`; do not edit. */\n#ifndef WAVESIM_MAILBOX_H\n#define WAVESIM_MAILBOX_H\n\n#include <stdint.h>\n\n"
        f"#define WAVESIM_MESSAGE_BYTES {MESSAGE_BYTES}\n"
        f"enum wavesim_kind {{ {named} }};\n\n"
        "struct wavesim_head {\n    int32_t kind;\n    int32_t bytes;\n};\n\n" + structs + "\n\n#endif\n"
    )


if __name__ == "__main__":
    print(c_header(), end="")
