"""Messages of an S2C modem that are waiting to be acknowledged: instant messages and bursts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavesim_devices.s2c.frames import BURST_HEAD_BYTES, FrameKind, S2cFrame
from wavesim_devices.transmitter import Progress, Transmitter
from wavesim_sdk.wire.items import Reception, SignalSent

ACK_WAIT_S = 6.0  #: time in s to wait for an acknowledgement after the end of a frame
MAX_FRAGMENTS = 255


def fragments(data: bytes, payload: int, sequence: int, process: int | None) -> list[S2cFrame]:
    """Divide the data of a burst into frames, for packets with the given maximum payload."""
    size = payload - BURST_HEAD_BYTES
    parts = [data[k : k + size] for k in range(0, len(data), size)] or [b""]
    return [S2cFrame(FrameKind.BURST, sequence, process, p, k, len(parts)) for k, p in enumerate(parts)]


@dataclass
class Exchange:
    """Frames for one modem. Each frame is repeated until it is acknowledged or no retries are left."""

    transmitter: Transmitter
    frames: list[S2cFrame]
    to: int
    retries: int
    level: float | None
    began: Callable[[S2cFrame, SignalSent], None]
    ended: Callable[[S2cFrame, SignalSent], None]
    next: int = 0  # index of the frame that waits
    tries: int = 0
    sent: SignalSent | None = None  # its last emission
    deadline: float | None = None

    def start(self) -> None:
        """Send the next frame."""
        frame, self.deadline = self.frames[self.next], None
        left: list[SignalSent] = []

        def began(sent: SignalSent) -> None:
            left.append(sent)
            self.sent = sent
            self.began(frame, sent)

        def ended() -> None:
            if self.transmitter.time is not None:
                self.deadline = self.transmitter.time + ACK_WAIT_S
            self.ended(frame, left[0])

        def failed(_reason: str) -> None:
            self.deadline = self.transmitter.time

        self.transmitter.send(frame.pack(), self.to, Progress(began, ended, failed), level=self.level)

    def acknowledge(self, heard: Reception, frame: S2cFrame) -> float | None:
        """Process an acknowledgement of the waiting frame. Return the travel time in s, or NaN if it is unknown.

        Return None if the acknowledgement belongs to another frame.
        """
        mine = heard.from_address == self.to and frame.sequence == (self.frames[self.next].sequence + self.next) % 256
        if not mine or self.sent is None:
            return None
        repeated, self.next, self.tries = self.tries > 0, self.next + 1, 0
        if repeated or not frame.turn_around_us:  # after a repetition: which emission it answers is unknown
            return float("nan")
        return 0.5 * ((heard.reception_ns - self.sent.emission_ns) * 1e-9 - frame.turn_around_us * 1e-6)

    @property
    def done(self) -> bool:
        """Whether all frames have been acknowledged."""
        return self.next >= len(self.frames)

    def retry(self, time: float) -> bool:
        """Repeat the frame if its acknowledgement is overdue. Return False if no retries are left."""
        if self.deadline is None or time < self.deadline:
            return True
        if self.tries >= self.retries:
            return False
        self.tries += 1
        self.start()
        return True
