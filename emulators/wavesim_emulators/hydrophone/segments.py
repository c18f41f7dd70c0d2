"""Segments of the signals at a hydrophone: the fronts of each path in order, and what lies between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_emulators.hydrophone.tone_kernels import (
    END,
    FADE,
    FADE_IN,
    FADE_OUT,
    NEAR,
    NEAR_END,
    RATE,
    RATE_END,
    START,
)
from wavesim_sdk.arrays import Floats, Ints, Mask, Record
from wavesim_sdk.elementary import power
from wavesim_sdk.front_tables import FRONT

_MARGIN = 1e-6  # times in s are rounded


class PathSegments(NamedTuple):
    """Parts of signals between two fronts, in the order of signal, path and front.

    ``values`` and ``times`` have the columns of :class:`~wavesim_emulators.hydrophone.tone_kernels.Segments`, but
    emission times are simulation times, and amplitudes are rms values in uPa.
    """

    signals: Ints
    paths: Ints
    values: Floats
    times: Floats
    fades: Ints

    def chosen(self, rows: Mask) -> PathSegments:
        """Return the segments in some rows."""
        return PathSegments(self.signals[rows], self.paths[rows], self.values[rows], self.times[rows], self.fades[rows])


class FrontStore:
    """The fronts that arrived at a hydrophone and are still needed.

    ``delays`` contains the delay of each channel in s. ``spreading`` is the factor k of the spreading loss k log10 s.
    """

    def __init__(self, elements: int, delays: Sequence[float] = (), spreading: float = 20.0) -> None:
        self._elements, self._delays, self._exponent = elements, delays, spreading / 20.0
        self._fronts: Record = np.zeros(0, FRONT.dtype)
        self._new: list[Record] = []

    def add(self, records: Record) -> None:
        """Add records of the FRONT table, in any order; a record may be added twice."""
        if len(records):
            self._new.append(records.copy())

    def _sort(self) -> None:
        if self._new:
            f = np.concatenate([self._fronts, *self._new])
            f = f[np.lexsort((f["number"], f["path"], f["signal"]))]
            keys = np.stack([f["signal"], f["path"], f["number"]])
            f = f[np.concatenate([[True], (keys[:, 1:] != keys[:, :-1]).any(axis=0)])]
            self._fronts, self._new = f, []

    def _neighbours(self) -> tuple[Mask, Mask]:
        """Return whether each front has a predecessor and a successor on its path."""
        f = self._fronts
        joined = np.zeros(len(f) + 1, bool)
        joined[1:-1] = (
            (f["signal"][1:] == f["signal"][:-1])
            & (f["path"][1:] == f["path"][:-1])
            & (f["number"][1:] == f["number"][:-1] + 1)
        )
        return joined[:-1], joined[1:]

    def segments(self, start: float, end: float) -> PathSegments:
        """Return the segments that have a part between two simulation times in s.

        A path that appears during an emission fades in after its first front. A path that disappears fades out after
        its last front.
        """
        self._sort()
        f = self._fronts
        before, after = self._neighbours()
        times, successor = self._times(after), np.minimum(np.arange(len(f)) + 1, max(len(f) - 1, 0))
        tail = ~after & (f["last"] == 0)
        with np.errstate(invalid="ignore"):
            live = ((times[:, :, START] < end + _MARGIN) & (times[:, :, END] > start - _MARGIN)).any(axis=1)
        chosen = np.nonzero((after | tail) & live)[0]
        second = np.where(after[chosen], successor[chosen], chosen)
        a, b = f[chosen], f[second]
        t = times[chosen]
        amplitudes = power(10.0, 0.05 * np.stack([a["level"], b["level"]]))
        change = b["phase"] - a["phase"]
        change = change - 2.0 * math.pi * np.floor(change / (2.0 * math.pi) + 0.5)
        known = np.argmax(np.isfinite(a["rates"]), axis=1)  # the first element that the path reaches
        rates = a["rates"][np.arange(len(a)), known]
        emitted = np.where(after[chosen], b["emission"], a["emission"] + FADE * rates)
        values = np.stack(
            [a["emission"], emitted, *amplitudes, a["phase"], change, a["length"], b["length"]],
            axis=-1,
        )
        fade_in = ~before[chosen] & (a["number"] > 0)
        fades = FADE_IN * fade_in + FADE_OUT * tail[chosen]
        return PathSegments(a["signal"].copy(), a["path"].copy(), values, t, fades.astype(np.int64))

    def first_path(self, signal: int) -> int:
        """Return the path on which the first of the known fronts of a signal arrives."""
        self._sort()
        f = self._fronts[self._fronts["signal"] == signal]
        return int(f["path"][np.argmin(f["arrival"])])

    def _times(self, after: Mask) -> Floats:
        """Return arrival times, rates and amplitudes at both ends of the segment that begins at each front (fronts,
        elements, 6).
        """
        f, n = self._fronts, self._elements
        times, near = np.zeros((len(f), n, 6)), self._nearness()
        arrivals = f["times"][:, :n] + np.array(self._delays) if self._delays else f["times"][:, :n]
        times[:, :, START], times[:, :, RATE] = arrivals, f["rates"][:, :n]
        times[:, :, END], times[:, :, RATE_END] = times[:, :, START] + FADE, times[:, :, RATE]
        times[:, :, NEAR] = times[:, :, NEAR_END] = near
        k = np.nonzero(after)[0]
        times[k, :, END], times[k, :, RATE_END] = arrivals[k + 1], f["rates"][k + 1, :n]
        times[k, :, NEAR_END] = near[k + 1]
        return times

    def _nearness(self) -> Floats:
        """Return the amplitude at each element, relative to that at the reference point (fronts, elements).

        The level of a front belongs to the reference point. The lengths of the paths to the elements are in proportion
        to the travel times. As in the medium, the spreading loss begins at 1 m.
        """
        f = self._fronts
        length = f["length"][:, np.newaxis]
        travel = (f["times"][:, : self._elements] - f["emission"][:, np.newaxis]) / np.maximum(
            f["arrival"] - f["emission"], 1e-9
        )[:, np.newaxis]
        with np.errstate(invalid="ignore"):
            ratio = np.maximum(length, 1.0) / np.maximum(length * travel, 1.0)
        return np.asarray(ratio if self._exponent == 1.0 else power(ratio, self._exponent))

    def forget(self, time: float) -> None:
        """Remove the fronts that no sample at or after a simulation time in s needs."""
        before, after = self._neighbours()
        if not len(before):
            return
        # an element that a path does not reach has the time NaN, and needs no front
        times, limit = self._times(after), time - _MARGIN
        with np.errstate(invalid="ignore"):
            needed = np.asarray(((times[:, :, START] >= limit) | (times[:, :, END] >= limit)).any(axis=1))
        # a successor shows that a path did not appear only now
        followed = np.append(needed[1:] & before[1:], False)
        self._fronts = self._fronts[needed | followed]
