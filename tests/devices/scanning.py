"""Frames of a scanning sonar that sees walls in given directions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk.broker import Step
from wavesim_sdk.imaging_frames import FRAME_KINDS, RECORD, ImagingFrame
from wavesim_sdk.wire.state import State

RANGE, BINS, SPAN = 20.0, 2000, 66.0


def step(time: float) -> Step:
    return Step(State(time_ns=round(time * 1e9)))


@dataclass
class FakeScan:
    """A single scan: one frame per wall, with an echo of ``level`` dB above the floor in its bin."""

    walls: dict[float, float] = field(default_factory=dict)  #: range in m by azimuth in rad
    level: float = 50.0

    def take(self) -> list[ImagingFrame]:
        """Return the frames once, as a broker does."""
        found = [self._frame(a, r) for a, r in self.walls.items()]
        self.walls = {}
        return found

    def _frame(self, azimuth: float, wall: float) -> ImagingFrame:
        record = np.zeros((), RECORD)
        for name, value in {
            "kind": FRAME_KINDS.index("scanning"), "beams": 1, "bins": BINS, "sample_bytes": 2, "bytes": 2 * BINS,
            "range": RANGE, "azimuth": azimuth, "sound_speed": 1500.0, "tvg": 30.0, "hold": np.inf, "floor": 110.0,
            "absorption": 0.2, "span": SPAN, "beam_width": 0.05, "frequency": 675e3,
        }.items():  # fmt: skip
            record[name] = value
        samples = np.zeros(BINS, "<u2")
        samples[int(wall / RANGE * BINS)] = round(self.level / SPAN * 65535)
        return ImagingFrame(record, samples.tobytes())
