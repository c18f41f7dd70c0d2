"""Transmitter of a virtual modem: it sends signals one after the other, because a transducer sends one at a time.

If the transducer refuses a signal because it is recharging, the transmitter repeats the request until a timeout. It
does not repeat a signal whose time the host has set.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.wire.items import SignalSent

PATIENCE_S = 10.0
RECHARGING = "recharging"  #: word in the server's reason for refusing a signal while the transducer is recharging
MAX_WAITING = 64


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Progress:
    """Functions that are called as the transmission of a signal progresses. All times are simulation times in s."""

    #: function that is called when the signal begins to leave the transducer
    began: Callable[[SignalSent], None] = _ignore
    ended: Callable[[], None] = _ignore  #: function that is called when the last bit of the signal has left
    failed: Callable[[str], None] = _ignore  #: function that is called with the reason if the signal cannot be sent


@dataclass
class _Waiting:
    request: Callable[[], int]
    progress: Progress
    patience: float
    timed: bool
    deadline: float | None = None  # None until its turn comes
    number: int | None = None  # of the request at the server; None while it is to be repeated
    end: float | None = None  # None until it leaves


class Transmitter:
    """Queue of a modem's signals. ``step`` must be called at each simulation step."""

    def __init__(self, broker: AsyncBroker) -> None:
        self.broker = broker
        self.time: float | None = None  # None until the first state arrives
        self._queue: deque[_Waiting] = deque()

    @property
    def busy(self) -> bool:
        """Whether the transducer is sending a signal, or the queue contains signals."""
        return bool(self._queue)

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return len(self._queue) >= MAX_WAITING

    def send(
        self,
        payload: bytes,
        to: int,
        progress: Progress | None = None,
        *,
        level: float | None = None,
        at: int | None = None,
        patience: float = PATIENCE_S,
    ) -> None:
        """Send a packet when its turn comes. The arguments are those of :meth:`Broker.send`."""
        if at is not None and self.time is not None:
            patience += max(at * 1e-9 - self.time, 0.0)
        self._put(lambda: self.broker.send(payload, to, level, at=at), progress, patience, timed=at is not None)

    def range_to(self, address: int, progress: Progress | None = None, *, level: float | None = None) -> None:
        """Request a reply from a modem; the request waits for its turn in the queue."""
        self._put(lambda: self.broker.range_to(address, level), progress, PATIENCE_S)

    def play(
        self,
        samples: Any,
        sampling_rate: float,
        level: float,
        progress: Progress | None = None,
        *,
        at: int | None = None,
    ) -> None:
        """Play samples when their turn comes. The arguments are those of :meth:`Broker.transmit`."""
        patience = PATIENCE_S if at is None or self.time is None else PATIENCE_S + max(at * 1e-9 - self.time, 0.0)
        self._put(
            lambda: self.broker.transmit(samples, sampling_rate, level, at=at),
            progress,
            patience,
            timed=at is not None,
        )

    def cancel(self) -> None:
        """Drop all signals whose transmission has not been requested yet."""
        dropped = [w for w in self._queue if w.number is None]
        self._queue = deque(w for w in self._queue if w.number is not None)
        for waiting in dropped:
            waiting.progress.failed("cancelled")

    def _put(
        self, request: Callable[[], int], progress: Progress | None, patience: float, *, timed: bool = False
    ) -> None:
        self._queue.append(_Waiting(request, progress or Progress(), patience, timed))
        self._start()

    def _start(self) -> None:
        """Request the transmission of the first signal in the queue, unless it has already been requested."""
        if self.time is None or not self._queue:
            return
        first = self._queue[0]
        if first.deadline is None:
            first.deadline = self.time + first.patience
        if first.number is None:
            first.number = first.request()

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self.time = step.time
        for sent in step.sent:
            if self._queue and self._queue[0].number == sent.request:
                self._queue[0].end = self.time + sent.duration
                self._queue[0].progress.began(sent)
        for refused in step.refused:
            if self._queue and self._queue[0].number == refused.request:
                self._refused(refused.text)
        while self._queue:
            first = self._queue[0]
            if first.end is not None and self.time >= first.end:
                self._queue.popleft()
                first.progress.ended()
            elif first.end is None and first.deadline is not None and self.time >= first.deadline:
                self._queue.popleft()
                first.progress.failed("the transducer did not transmit the signal in time")
            else:
                break
        self._start()

    def _refused(self, reason: str) -> None:
        if RECHARGING in reason and not self._queue[0].timed:
            self._queue[0].number = None
        else:
            self._queue.popleft().progress.failed(reason)
