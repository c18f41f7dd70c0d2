"""Monitor that warns, while a filter runs, if the innovations of a sensor are inconsistent with the assumed noise.

monitor = InnovationMonitor(["ahrs", "sound"])
if text := monitor.add(time, 1, 1, code, nis):
    print(text)
"""

from __future__ import annotations

import functools
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from wavesim_sdk.arrays import Floats
from wavesim_studies.navigation import measurement_models
from wavesim_studies.navigation.metrics import bounds

__all__ = ["InnovationMonitor", "InnovationVerdict", "judge", "warn"]

WINDOW = 60  #: number of measurements of a sensor that are judged together
SURE = 1.0 - 1e-6  #: probability with which the window of a consistent filter causes no warning
REJECTED = 0.01  #: fraction of measurements that the gate of a consistent filter rejects
#: mean NIS, relative to its expected value, outside which the monitor warns
NOTABLE = (0.5, 1.5)
#: mean NIS of the accepted measurements, relative to its expected value, below which the rejected ones are outliers
FITTING = 1.3


class InnovationVerdict(NamedTuple):
    """Verdict on the innovations of one sensor."""

    verdict: str  #: "noisy" (more noise than assumed), "quiet" (less noise), "outliers", or empty if consistent
    factor: float  #: factor by which the assumed noise should be multiplied
    advice: str  #: cause and remedy, as text


CONSISTENT = InnovationVerdict("", 1.0, "")
_ADAPT = ", or let the filter estimate it (adaptive=True, `nav score --adapt`)"


def judge(nis: Floats, rejected: Any, numbers: float, slow: bool = False, adaptive: bool = False) -> InnovationVerdict:
    """Judge the NIS (N) of measurements of one sensor, some of which were ``rejected`` (N, bool).

    ``numbers`` is the mean number of components of a measurement. ``slow`` states that the errors of the sensor change
    slowly, so that the filter intentionally assumes more noise than a single measurement shows. ``adaptive``
    states that the filter already estimates the noise, so that the advice does not recommend this. Without
    measurements, the verdict is empty (consistent).
    """
    if not len(nis):
        return CONSISTENT
    advice = "" if adaptive else _ADAPT
    count, mean = len(nis), float(np.mean(nis)) / numbers
    low, high = _bounds(numbers, count)
    share = float(np.mean(rejected))
    kept = nis[~rejected]
    if share > _most_rejected(count) and (not len(kept) or float(np.mean(kept)) < FITTING * numbers):
        return InnovationVerdict(
            "outliers",
            1.0,
            "The accepted values are consistent: check for outliers, such as echoes, or for a wrong position",
        )
    if (mean * numbers > high and mean > NOTABLE[1]) or share > _most_rejected(count):
        factor = max(mean, 1.0) ** 0.5
        return InnovationVerdict(
            "noisy", factor, f"The noise is larger than assumed: multiply it by about {factor:.2g}{advice}"
        )
    if mean * numbers < low and mean < NOTABLE[0] and not slow:
        factor = max(mean, 1e-3) ** 0.5
        return InnovationVerdict(
            "quiet", factor, f"The noise is smaller than assumed: multiply it by about {factor:.2g}{advice}"
        )
    return CONSISTENT


@functools.lru_cache(maxsize=256)
def _bounds(numbers: float, count: int) -> tuple[float, float]:
    return bounds(numbers, count, SURE)


@functools.lru_cache(maxsize=256)
def _most_rejected(count: int) -> float:
    return float(stats.binom.ppf(SURE, count, REJECTED)) / count


class InnovationMonitor:
    """Monitor that compares the innovations of each sensor with the assumed noise, over its last ``window``
    measurements.

    A deviation is reported once. It is reported again only after ``window`` measurements that were judged consistent.
    """

    def __init__(
        self,
        names: Sequence[str] | Mapping[int, str] = (),
        window: int = WINDOW,
        slow: Sequence[str] = (),
        adaptive: bool = False,
    ) -> None:
        """Create a monitor. ``names`` are the names of the sensors by number, and ``slow`` contains the names of the
        sensors whose errors change slowly. ``adaptive`` states that the filter estimates the noise.
        """
        self.names = dict(names) if isinstance(names, Mapping) else dict(enumerate(names))
        self.window, self.slow, self.adaptive = window, frozenset(slow), adaptive
        self._recent: dict[int, deque[tuple[float, bool, int]]] = {}
        self._calm: dict[int, int] = {}  # consistent judgements since the last warning

    def add(self, time: float, sensor: int, numbers: int, code: float, nis: float) -> str:
        """Add the outcome of a measurement in chronological order. Return a warning, or an empty string.

        ``code`` is 0 if the gate rejected the measurement; negative codes are ignored.
        """
        if code < 0.0 or not np.isfinite(nis):
            return ""
        recent = self._recent.setdefault(sensor, deque(maxlen=self.window))
        recent.append((nis, code == 0.0, numbers))
        if len(recent) < self.window:
            return ""
        name = self.names.get(sensor, f"sensor {sensor}")
        values = np.array([n for n, _, _ in recent])
        rejected = np.array([r for _, r, _ in recent])
        size = float(np.mean([m for _, _, m in recent]))
        found = judge(values, rejected, size, name in self.slow, self.adaptive)
        calm = self._calm.get(sensor, self.window)
        self._calm[sensor] = 0 if found.verdict else calm + 1
        if not found.verdict or calm < self.window:
            return ""
        low, high = bounds(size, self.window)
        return (
            f"{name} at {time:.1f} s: mean NIS {values.mean():.2f} over the last {self.window} measurements, expected "
            f"{low:.2f} to {high:.2f}; {100.0 * rejected.mean():.0f} % rejected, expected {100.0 * REJECTED:.0f} %. "
            f"{found.advice}."
        )

    def add_outcomes(self, events: Floats, outcomes: Floats) -> list[str]:
        """Add the outcomes (E, OUTCOME_WIDTH) of events (E, WIDTH). Return the warnings."""
        found = []
        e = measurement_models
        for row, outcome in zip(events, outcomes, strict=True):
            if row[e.M]:
                found.append(self.add(row[e.T], int(row[e.SENSOR]), int(row[e.M]), outcome[0], outcome[1]))
        return [text for text in found if text]


def warn(text: str) -> None:
    """Write a warning to the log of the program; without a handler, it appears on standard error."""
    logging.getLogger("wavesim.navigation").warning("filter: %s", text)
