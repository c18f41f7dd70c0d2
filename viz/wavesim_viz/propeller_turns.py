"""Turns of propellers as viewers draw them.

A propeller that turns faster than the picture rate seems to stand still or to turn backwards. Viewers therefore draw at
most ``MOST_RATE``, and blur faster propellers. The angle is an integral over simulation time, so a log shows the same
angle whenever it is replayed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wavesim_viz.page_content import ActuatorInfo

MOST_RATE = 2.0  #: maximum drawn rate in 1/s: 29 degrees between two pictures of a video with 25 pictures per second

Array = np.ndarray[Any, np.dtype[np.float64]]


def drawn_rates(actuators: Sequence[ActuatorInfo], actual: Any) -> Array:
    """Return the drawn rate (1/s) of each actuator, for values of shape (..., at least the number of actuators).

    A shaft speed is limited to ``MOST_RATE``. For a thruster whose value is a force, the rate grows with the square root
    of the force, and reaches ``MOST_RATE`` at the maximum force. The rate of other actuators is 0.
    """
    values = np.nan_to_num(np.asarray(actual, float)[..., : len(actuators)], posinf=0.0, neginf=0.0)
    rates: Array = np.zeros(values.shape)
    for k, a in enumerate(actuators[: values.shape[-1]]):
        if a["kind"] != "thruster":
            continue
        v = values[..., k]
        if a["unit"] == "N":
            share = np.abs(v) / max(abs(a["minimum"]), abs(a["maximum"]), 1e-9)
            v = MOST_RATE * np.sign(v) * np.sqrt(share)
        rates[..., k] = np.clip(v, -MOST_RATE, MOST_RATE)
    return rates


class LiveTurns:
    """Turns of the propellers of one body while a simulation is watched."""

    def __init__(self) -> None:
        self._time_s, self._rates, self._turns = math.nan, np.zeros(0), np.zeros(0)

    def update(self, time_s: float, rates: Array) -> Array:
        """Return the turns at a time (s) from which the given rates apply."""
        if len(rates) != len(self._turns):
            self._turns, self._rates = np.zeros(len(rates)), np.zeros(len(rates))
        elif time_s > self._time_s:
            self._turns = (self._turns + self._rates * (time_s - self._time_s)) % 1.0
        self._time_s, self._rates = time_s, rates
        return self._turns


class LoggedTurns:
    """Turns of the propellers of one body over a log."""

    def __init__(self, time_s: Any, rates: Array) -> None:
        """``time_s`` has the shape (n,), ``rates`` the shape (n, number of actuators)."""
        self._time_s, self._rates = np.asarray(time_s, float), rates
        steps = np.diff(self._time_s, prepend=self._time_s[:1])[:, None]
        before = np.vstack([np.zeros((1, rates.shape[1])), rates[:-1]]) if len(rates) else rates
        self._turns = np.cumsum(before * steps, axis=0)

    def at(self, time_s: float) -> tuple[Array, Array]:
        """Return the turns at a time (s) after the first record, and the rates (1/s)."""
        k = int(np.searchsorted(self._time_s, time_s, "right")) - 1
        return (self._turns[k] + self._rates[k] * (time_s - self._time_s[k])) % 1.0, self._rates[k]
