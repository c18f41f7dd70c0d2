"""Trains of a modem's signals: each signal starts exactly when the previous one has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavesim_sdk.broker import Step
from wavesim_sdk.wire.items import SignalSent

#: shortest pause in s between two signals of a train; without it, the signals could overlap because of rounding
GAP_S = 1e-6
#: function that requests a signal for a given time on the node's clock, in ns (None = now), and returns the number of
#: the request
Emit = Callable[[int | None], int]


def _nothing(*_: object) -> None: ...


@dataclass
class SignalTrain:
    """Signals to send, and functions to call when they are sent and when the last one has ended."""

    emit: list[Emit]
    on_start: Callable[[SignalSent], None] = _nothing  #: function that receives the first signal when it has been sent
    on_signal: Callable[[SignalSent], None] = _nothing  #: function that receives each signal when it has been sent
    on_end: Callable[[], None] = _nothing
    #: function that receives the server's reason if the server refuses a signal
    on_refusal: Callable[[str], None] = _nothing


class TrainTransmitter:
    """Transmitter of a modem. It sends one train at a time. ``gap`` is the pause in s between the signals of a train."""

    def __init__(self, gap: float = GAP_S) -> None:
        self._gap = gap
        self._current: SignalTrain | None = None
        self._left: list[Emit] = []
        self._request: int | None = None  # request whose signal has not left yet
        self._started = False
        self._end = 0.0

    @property
    def busy(self) -> bool:
        """Whether a train is being sent."""
        return self._current is not None

    def start(self, train: SignalTrain) -> None:
        """Start a train; the transmitter must not be busy."""
        self._current, self._started = train, False
        self._left = list(train.emit)
        self._request = self._left.pop(0)(None)

    def step(self, step: Step) -> None:
        """Process the signals that have been sent. When the last signal of the train has ended, end the train."""
        current = self._current
        if current is None:
            return
        for sent in step.sent:
            if sent.request != self._request:
                continue
            if not self._started:
                self._started = True
                current.on_start(sent)
            current.on_signal(sent)
            self._end = step.time + sent.duration
            after = sent.emission_ns + round((sent.duration + self._gap) * 1e9)
            self._request = self._left.pop(0)(after) if self._left else None
        for refused in step.refused:
            if refused.request == self._request:
                self._current = None
                current.on_refusal(refused.text)
                return
        if self._request is None and step.time >= self._end:
            self._current = None
            current.on_end()
