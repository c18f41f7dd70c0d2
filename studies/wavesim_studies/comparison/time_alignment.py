"""Offset between the clocks of two runs, from the correlation of speeds and rates.

Each signal is averaged over steps of equal length in both runs. A coarse search of the lags gives the place of the
optimum; around it, the simulated signals are shifted by fractions of a step, and a parabola gives the offset. The
criterion is the log-likelihood of the lag if the gain and the noise of each signal are unknown: the sum of
log(1 - correlation^2). Its sums are kept for each block of time, so that a bootstrap over blocks gives the interval.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.comparison.block_bootstrap import correlation_time
from wavesim_studies.comparison.channels import Channel

__all__ = ["TimeOffset", "find_offset"]

FINEST_S, MOST_STEPS = 0.02, 20000  #: shortest step in s, and largest number of steps
NEAR_S = 1.0  #: the fine search covers this time in s on both sides of the coarse optimum
WIDER = 3.0  #: factor by which the lags of the interval widen while it reaches the last one
FEWEST = 5  #: least number of lags of the interval
LEAST_CORRELATION = 0.4  #: without a signal that is correlated at least as well as this, the clocks cannot be aligned
LEAST_S = 2.0  #: shortest common time in s
OVERLAP = 0.3  #: fraction of the shorter run that must remain common at each tested lag
BLOCKS = (8, 60)  #: smallest and largest number of blocks of the bootstrap
RESAMPLES = 499
WINDOWS = 4  #: windows in which the offset is also determined, to find clocks that jump or drift
JUMP_CORRELATION = 0.7  #: least correlation of a window that has another offset
JUMP_GAIN = 0.3  #: and how much better this correlation must be than that at the common offset
MOST_JUMP_S = 30.0  #: longest jump in s that is searched
AMBIGUOUS = 0.05  #: a second optimum is ambiguous if its correlation is smaller by no more than this


@dataclass(frozen=True)
class TimeOffset:
    """Offset in s to add to the times of the real run, with its 95 % interval."""

    seconds: float
    low: float = math.nan
    high: float = math.nan
    given: bool = False
    #: correlation of each signal at the offset
    correlations: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Binned:
    """A signal averaged over steps of equal length: values (N), NaN where the signal is unknown."""

    name: str
    real: Floats
    simulated: Channel


def find_offset(real: Mapping[str, Channel], simulated: Mapping[str, Channel], search: float, gap: float) -> TimeOffset:
    """Return the offset between two runs from the signals that both contain. The times of both overlap after an offset
    of at most ``search`` s.

    Raise LogError if no signal is correlated, or if the clock of the real run jumps.
    """
    names = [name for name in real if name in simulated and _varies(real[name]) and _varies(simulated[name])]
    if not names:
        raise LogError("no speed or rate varies in both runs, so their clocks cannot be aligned; give --offset SECONDS")
    begin = max(min(real[n].time[0] for n in names), min(simulated[n].time[0] for n in names) - search)
    end = min(max(real[n].time[-1] for n in names), max(simulated[n].time[-1] for n in names) + search)
    period = max(max(real[n].period, simulated[n].period) for n in names)
    step = max(FINEST_S, min(period, 0.25), (end - begin) / MOST_STEPS)
    if end - begin < LEAST_S:
        raise LogError(f"the runs have only {max(end - begin, 0.0):.1f} s in common; at least {LEAST_S:g} s are needed")
    edges = np.arange(begin, end + 0.5 * step, step)
    signals = [_Binned(n, averages(real[n], edges, gap), simulated[n]) for n in names]
    coarse, curve, lags = _coarse(signals, edges, step, search, gap)
    places = np.arange(-math.ceil(NEAR_S / step) * 2, math.ceil(NEAR_S / step) * 2 + 1)
    fine = places * 0.5 * step + coarse
    sums, common = _block_sums(signals, edges, fine, gap)
    found = _optimum(sums.sum(axis=2)[None], fine)
    seconds = float(found[0])
    correlations = _correlations(sums.sum(axis=2)[None])[0, :, int(np.argmin(np.abs(fine - seconds)))]
    quality = dict(zip(names, (float(r) for r in correlations), strict=True))
    if max(quality.values()) < LEAST_CORRELATION:
        best = max(quality, key=lambda n: quality[n])
        raise LogError(
            f"the speeds and rates of the two runs are not correlated (best: {best}, {quality[best]:.2f} at "
            f"{seconds:+.2f} s), so their clocks cannot be aligned; give --offset SECONDS, or check vehicle and axes"
        )
    low, high = _bootstrapped(sums, common, fine)
    possible = lags[curve > -1.0]
    reach = max(coarse - float(possible[0]), float(possible[-1]) - coarse)
    while (low <= fine[1] or high >= fine[-2]) and places[-1] * 0.5 * step < reach:
        places = places * WIDER
        fine = places * 0.5 * step + coarse
        fine = fine[(fine >= possible[0]) & (fine <= possible[-1])]
        if len(fine) < FEWEST:  # long runs have few lags
            fine = np.linspace(possible[0], possible[-1], FEWEST)
        low, high = _bootstrapped(*_block_sums(signals, edges, fine, gap), fine)
    notes = [*_second_optimum(curve, lags, coarse, step, max(quality.values()))]
    if low <= fine[1] or high >= fine[-2]:
        notes.append(
            f"the interval of the offset ({low:+.1f} to {high:+.1f} s) reaches the end of the searched offsets: the signals "
            "hardly determine the offset; give --offset SECONDS or a larger --search"
        )
    notes += _changes(signals, edges, step, (seconds, search, gap))
    return TimeOffset(seconds, low, high, False, quality, tuple(notes))


def _varies(channel: Channel) -> bool:
    return len(channel.values) > 3 and float(np.ptp(channel.values)) > 0.0


def averages(channel: Channel, edges: Floats, gap: float) -> Floats:
    """Return the means of a channel between consecutive edges; NaN where the channel is unknown.

    The means are exact for the linear interpolation of the values, so they do not depend on how the edges fall.
    """
    t, x = channel.time, channel.values
    whole = np.concatenate([[0.0], np.cumsum(0.5 * (x[1:] + x[:-1]) * np.diff(t))])
    k = np.clip(np.searchsorted(t, edges, side="right") - 1, 0, len(t) - 2)
    s = edges - t[k]
    slope = (x[k + 1] - x[k]) / (t[k + 1] - t[k])
    integral = whole[k] + s * (x[k] + 0.5 * slope * s)
    known = (edges >= t[0]) & (edges <= t[-1]) & (t[k + 1] - t[k] <= gap)
    mean = np.diff(integral) / np.diff(edges)
    return np.where(known[1:] & known[:-1], mean, np.nan)


def _coarse(
    signals: Sequence[_Binned], edges: Floats, step: float, search: float, gap: float
) -> tuple[float, Floats, Floats]:
    """Return the best lag among all multiples of a step, the correlation at each lag, and the lags."""
    most = math.ceil(search / step)
    wide = np.arange(-most, len(edges) + most) * step + edges[0]
    n, criterion, best = len(edges) - 1, np.zeros(2 * most + 1), np.full(2 * most + 1, -1.0)
    enough = np.ones(2 * most + 1, bool)
    for s in signals:
        y = averages(s.simulated, wide, gap)
        rho, count = _lagged(s.real, y, most, n)
        possible = min(int(np.isfinite(s.real).sum()), int(np.isfinite(y).sum()))
        enough &= count >= max(OVERLAP * possible, LEAST_S / step)
        criterion += np.log(1.0 - np.square(np.clip(rho, 0.0, 0.9999999)))
        best = np.maximum(best, rho)
    if not enough.any():
        raise LogError(
            f"the runs have less than {LEAST_S:g} s in common within the searched offsets (up to {search:g} s); give "
            "--offset SECONDS or a larger --search"
        )
    lags = np.asarray(np.arange(-most, most + 1) * step, np.float64)
    criterion[~enough] = np.inf
    best[~enough] = -1.0
    return float(lags[int(np.argmin(criterion))]), best, lags


def _lagged(x: Floats, y: Floats, most: int, n: int) -> tuple[Floats, Floats]:
    """Return the correlations of x (n) with y at all lags, and the number of common steps. y begins ``most`` steps
    earlier.
    """
    known_x, known_y = np.isfinite(x), np.isfinite(y)
    # subtract the means first: the sums below are differences of large numbers
    x = np.where(known_x, x - (x[known_x].mean() if known_x.any() else 0.0), 0.0)
    y = np.where(known_y, y - (y[known_y].mean() if known_y.any() else 0.0), 0.0)
    size = 1 << (len(y) + n).bit_length()

    def product(a: Floats, b: Floats) -> Floats:
        spectrum = np.conj(np.fft.rfft(a.astype(float), size)) * np.fft.rfft(b.astype(float), size)
        return np.asarray(np.fft.irfft(spectrum, size)[: 2 * most + 1])

    count = np.round(product(known_x, known_y))
    sx, sy = product(x, known_y), product(known_x, y)
    sxx, syy, sxy = product(x * x, known_y), product(known_x, y * y), product(x, y)
    return _rho(np.maximum(count, 1.0), sx, sy, sxx, syy, sxy), count


def _rho(count: Floats, sx: Floats, sy: Floats, sxx: Floats, syy: Floats, sxy: Floats) -> Floats:
    vx, vy = sxx - sx * sx / count, syy - sy * sy / count
    spread = np.sqrt(np.maximum(vx, 0.0) * np.maximum(vy, 0.0))
    return np.where(
        spread > 1e-12 * np.sqrt(np.maximum(sxx * syy, 1e-300)),
        (sxy - sx * sy / count) / np.maximum(spread, 1e-300),
        0.0,
    )


def _block_sums(signals: Sequence[_Binned], edges: Floats, lags: Floats, gap: float) -> tuple[Floats, Floats]:
    """Return the sums (6, K, B, L) for each signal, block and lag from which correlations follow, and the number of common
    steps (B) of each block.
    """
    n = len(edges) - 1
    times = max(correlation_time(np.nan_to_num(s.real - np.nanmean(s.real))) for s in signals)
    blocks = int(min(max(n / max(2.0 * times, 1.0), BLOCKS[0]), BLOCKS[1], n // 2))
    starts = np.linspace(0, n, blocks + 1).astype(int)[:-1]
    sums = np.zeros((6, len(signals), blocks, len(lags)))
    for k, s in enumerate(signals):
        x_known = np.isfinite(s.real)
        level_x, level_y = np.nanmean(s.real), s.simulated.values.mean()
        for j, lag in enumerate(lags):
            y = averages(s.simulated, edges + lag, gap)
            both = x_known & np.isfinite(y)
            x, y = np.where(both, s.real - level_x, 0.0), np.where(both, y - level_y, 0.0)
            rows = np.stack([both.astype(float), x, y, x * x, y * y, x * y])
            sums[:, k, :, j] = np.add.reduceat(rows, starts, axis=1)
    return sums, np.asarray(sums[0].max(axis=(0, 2)))


def _correlations(totals: Floats) -> Floats:
    """Return the correlations (R, K, L) from sums (R, 6, K, L)."""
    count, sx, sy, sxx, syy, sxy = np.moveaxis(totals, 1, 0)
    return _rho(np.maximum(count, 1.0), sx, sy, sxx, syy, sxy)


def _optimum(totals: Floats, lags: Floats) -> Floats:
    """Return the best lag (R) of each resample: the vertex of a parabola through the smallest values.

    Near the optimum, 1 - rho^2 is a parabola, but its logarithm is not. So the logarithm is replaced by its tangent.
    """
    square = np.square(np.clip(_correlations(totals), 0.0, 0.9999999))
    criterion = np.log(1.0 - square).sum(axis=1)
    k = np.clip(np.argmin(criterion, axis=1), 1, len(lags) - 2)
    rows = np.arange(len(k))
    near = np.stack([square[rows, :, k + j] for j in (-1, 0, 1)])  # (3, R, K)
    a, b, c = -(near / (1.0 - near[1])).sum(axis=2)
    bend = a - 2.0 * b + c
    shift = np.where(bend > 0.0, 0.5 * (a - c) / np.where(bend > 0.0, bend, 1.0), 0.0)
    return np.asarray(lags[k] + np.clip(shift, -1.0, 1.0) * (lags[1] - lags[0]))


def _bootstrapped(sums: Floats, common: Floats, lags: Floats) -> tuple[float, float]:
    blocks = sums.shape[2]
    used = np.flatnonzero(common > 0.0)
    if len(used) < BLOCKS[0] // 2:
        return math.nan, math.nan
    rng = np.random.default_rng(7)
    drawn = used[rng.integers(0, len(used), (RESAMPLES, len(used)))]
    weights = np.stack([np.bincount(row, minlength=blocks) for row in drawn]).astype(float)
    totals = np.einsum("rb,skbl->rskl", weights, sums, optimize=True)
    low, high = np.percentile(_optimum(totals, lags), [2.5, 97.5])
    return float(low), float(high)


def _second_optimum(curve: Floats, lags: Floats, coarse: float, step: float, best: float) -> list[str]:
    """Return a note if another offset, in another peak of the correlation, fits nearly as well."""
    k = round((coarse - lags[0]) / step)
    left = right = k
    while left > 0 and curve[left] > 0.5 * curve[k]:
        left -= 1
    while right < len(curve) - 1 and curve[right] > 0.5 * curve[k]:
        right += 1
    rest = np.concatenate([curve[:left], curve[right + 1 :]])
    places = np.concatenate([lags[:left], lags[right + 1 :]])
    if len(rest) and rest.max() > best - AMBIGUOUS:
        other = float(places[int(np.argmax(rest))])
        return [
            f"the offset is ambiguous: at {other:+.2f} s the correlation is {rest.max():.2f} (at {coarse:+.2f} s: "
            f"{best:.2f}); limit --search, or give --offset"
        ]
    return []


def _changes(signals: Sequence[_Binned], edges: Floats, step: float, place: tuple[float, float, float]) -> list[str]:
    """Return a note if the offset changes slowly during the run. Raise LogError if it jumps by more than a second."""
    seconds, search, gap = place
    found, spans = [], np.array_split(np.arange(len(edges) - 1), WINDOWS)
    for span in spans:
        part = edges[span[0] : span[-1] + 2]
        mine = [_Binned(s.name, s.real[span], s.simulated.shifted(-seconds)) for s in signals]
        if len(span) * step < 2.0 * LEAST_S or not any(np.isfinite(s.real).sum() > 0.5 * len(span) for s in mine):
            continue
        mine = [s for s in mine if np.isfinite(s.real).sum() > 0.5 * len(span)]
        try:
            lag, curve, lags = _coarse(mine, part, step, min(search, MOST_JUMP_S), gap)
        except LogError:
            continue
        own, common = float(np.interp(lag, lags, curve)), float(np.interp(0.0, lags, curve))
        if own > JUMP_CORRELATION and (abs(lag) < 1.0 or own - common > JUMP_GAIN):
            found.append((float(part[0]), seconds + lag, own - common > JUMP_GAIN))
    for (_, a, better_a), (at, b, better_b) in itertools.pairwise(found):
        # the offsets of slow signals differ between windows by chance, but then the common offset fits as well
        if abs(b - a) > 1.0 and (better_a or better_b):
            raise LogError(
                f"the clock of the real run jumps: near t = {at:.0f} s of its clock, the offset to the simulation changes "
                f"from {a:+.2f} to {b:+.2f} s; split the recording there"
            )
    lags_found = [lag for _, lag, _ in found]
    if len(found) == WINDOWS and abs(lags_found[-1] - lags_found[0]) > max(3.0 * step, 0.1):
        ppm = 1e6 * (lags_found[-1] - lags_found[0]) / (found[-1][0] - found[0][0])
        return [
            f"the offset changes from {lags_found[0]:+.2f} to {lags_found[-1]:+.2f} s during the run ({ppm:+.0f} ppm): clock drift, or a model that is too fast or too slow"
        ]
    return []
