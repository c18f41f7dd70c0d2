"""Components of scanning sonars whose head the host turns: the newest echoes in each direction, and the motor of the
head.

The simulated sonar scans on its own. A device reports the newest echoes in the direction of its head. These echoes are
not older than the duration of one scan of the sonar.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavesim_devices.cerulean import resample_maxima

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

DIRECTIONS = 6400  #: number of directions per turn for which the newest frame is kept
TURN = 2.0 * math.pi


class ScanImage:
    """Newest frames of a scanning sonar, by direction."""

    def __init__(self, take_frames: Callable[[], list[ImagingFrame]]) -> None:
        """``take_frames`` returns the frames received since its last call."""
        self._take_frames = take_frames
        self._frames: dict[int, ImagingFrame] = {}

    def update(self) -> None:
        """Add the frames that have arrived."""
        for f in self._take_frames():
            self._frames[round(float(f.record["azimuth"]) / TURN * DIRECTIONS) % DIRECTIONS] = f

    def find(self, azimuth: float) -> ImagingFrame | None:
        """Return the frame whose azimuth is nearest to ``azimuth`` (rad), or None if there is no frame within one beam
        width.
        """

        def distance(direction: int) -> float:
            return abs((direction * TURN / DIRECTIONS - azimuth + math.pi) % TURN - math.pi)

        near = min(self._frames, key=distance, default=None)
        if near is None or distance(near) > float(self._frames[near].record["beam_width"]):
            return None
        return self._frames[near]


@dataclass(frozen=True)
class Receiver:
    """Receiver of a head. Its settings replace those of the sonar in the configuration; None keeps the sonar's value."""

    gain: float = 0.0  #: gain in dB relative to the gain of the sonar
    tvg: float | None = None  #: coefficient X of the time-varying gain X log r + 2 alpha r
    absorption: float | None = None  #: absorption coefficient alpha of the time-varying gain, dB/m

    def levels(self, frame: ImagingFrame | None, each: float, count: int) -> list[float]:
        """Return the maximum levels in ``count`` successive range intervals, in dB above the sonar's ``floor``. Every
        interval is ``each`` m long. Samples at the floor carry no level, so they remain 0. Intervals beyond the range
        of the frame are also 0.
        """
        if frame is None:
            return [0.0] * count
        r = frame.record
        scale = float(r["span"]) / ((1 << 8 * int(r["sample_bytes"])) - 1)
        x = 0.0 if self.tvg is None else self.tvg - float(r["tvg"])
        a = 0.0 if self.absorption is None else self.absorption - float(r["absorption"])
        samples = resample_maxima(frame.samples[0].tolist(), 0.0, each * int(r["bins"]) / float(r["range"]), count)
        found = []
        for k, sample in enumerate(samples):
            reach = min((k + 0.5) * each, float(r["hold"]))
            found.append(sample and sample * scale + self.gain + x * math.log10(reach) + 2.0 * a * reach)
        return found


@dataclass
class ScanMotor:
    """Motor of a head. It turns in integer units, clockwise seen from above, and scans a sector back and forth."""

    turn: int  #: number of units per turn
    position: int
    left: int = 0  #: first direction of the sector
    width: int = 0  #: width of the sector; ``turn`` or more = the head turns continuously
    step: int = 1
    clockwise: bool = True

    @property
    def offset(self) -> int:
        """Position relative to the left limit of the sector."""
        return (self.position - self.left) % self.turn

    @property
    def at_left(self) -> bool:
        return self.width < self.turn and self.offset == 0

    @property
    def at_right(self) -> bool:
        return self.width < self.turn and self.offset == self.width

    def enter(self) -> int:
        """Turn to the nearest direction in the sector. Return the angle of the turn."""
        if self.width >= self.turn or self.offset <= self.width:
            return 0
        beyond = self.offset - self.width
        before = self.turn - self.offset
        self.position = (self.left + (self.width if beyond < before else 0)) % self.turn
        return min(beyond, before)

    def advance(self) -> None:
        """Turn by one step. At a limit of the sector, reverse; the last step before a limit ends at the limit."""
        if self.width >= self.turn:
            self.position = (self.position + (self.step if self.clockwise else -self.step)) % self.turn
            return
        if self.step and self.offset == (self.width if self.clockwise else 0):
            self.clockwise = not self.clockwise
        offset = self.offset + (self.step if self.clockwise else -self.step)
        self.position = (self.left + min(max(offset, 0), self.width)) % self.turn
