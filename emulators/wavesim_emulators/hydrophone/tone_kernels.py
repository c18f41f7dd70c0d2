"""Compiled kernels for signals in closed form: tones, sweeps and sequences of tones.

Between two fronts, the emission time is a cubic Hermite polynomial of the arrival time. The phase of a tone is then a
cubic polynomial of the number of the sample. A recurrence of three complex products evaluates it. The recurrence
restarts at each multiple of ``CELL`` samples, so rounding errors stay below 1e-9 rad, and the size of the blocks changes no
bit.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_emulators.hydrophone.clock_kernels import number_at, time_of
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the functions with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.elementary import exp, sin, sin_cos

CELL = 256  #: number of samples after which a recurrence restarts
FADE = 0.01  #: time in s over which a path fades in or out
_PER_DB = 0.11512925464970229  # ln 10 / 20
_TURN = 2.0 * math.pi

# columns of a segment
EMITTED, EMITTED_END, AMPLITUDE, AMPLITUDE_END, PHASE, PHASE_CHANGE, LENGTH, LENGTH_END = range(8)
# columns of the times of a segment at an element
START, END, RATE, RATE_END, NEAR, NEAR_END = range(6)
# columns of a piece of a waveform
FREQUENCY, SWEEP, CYCLES, ABSORPTION, ABSORPTION_END, WEIGHT, WEIGHT_END = range(7)
FADE_IN, FADE_OUT = 1, 2  #: bits of the fades of a segment


class Segments(NamedTuple):
    """Parts of signals between two consecutive fronts of a path.

    ``values`` (segments, 8): emission times since the start of the signal, amplitudes in uPa, the phase at the start and
    its change in rad, and the lengths of the path in m. ``times`` (segments, elements, 6): arrival times at each element
    in s, the rates there, and the factors of the amplitude due to the distance of the element. ``waves`` and ``fades`` (segments) contain the row of the waveform and FADE_IN, FADE_OUT.
    """

    values: Floats
    times: Floats
    waves: Ints
    fades: Ints


class Tones(NamedTuple):
    """Waveforms in closed form. Each one consists of pieces of equal duration.

    ``first`` and ``parts`` (waveforms) are the row of the
    first piece and the number of pieces of each one; ``duration`` and ``edge`` are in s. ``pieces``
    (pieces, 7): frequency at the start in Hz, sweep rate in Hz/s, cycles since the start of the signal, additional
    absorption in dB/m at both ends, and the factor of the band at both ends.
    """

    first: Ints
    parts: Ints
    duration: Floats
    edge: Floats
    pieces: Floats


@device_function
def hermite(values: Floats, times: Floats) -> tuple[float, float, float, float]:
    """Return the coefficients of the emission time over the time since the start of the segment, divided by its
    duration.
    """
    h = times[END] - times[START]
    rise, a, b = values[EMITTED_END] - values[EMITTED], h * times[RATE], h * times[RATE_END]
    return values[EMITTED], a, 3.0 * rise - 2.0 * a - b, a + b - 2.0 * rise


@device_function
def nearness(times: Floats, u: float) -> float:
    """Return the factor of the amplitude due to the distance of an element, at a share ``u`` of a segment."""
    return float(times[NEAR] + u * (times[NEAR_END] - times[NEAR]))


@device_function
def fade_factor(fades: int, since: float, duration: float) -> float:
    """Return the factor of a fading path at a time after the start of a segment."""
    f = min(max(since / min(FADE, duration), 0.0), 1.0)
    s = sin(0.5 * math.pi * f)
    factor = 1.0
    if fades & FADE_IN:
        factor *= s * s
    if fades & FADE_OUT:
        factor *= 1.0 - s * s
    return factor


@device_function
def _envelope(s: float, duration: float, edge: float) -> float:
    """Return the envelope of a waveform with raised-cosine edges at a time since its start."""
    inside = min(s, duration - s)
    if inside <= 0.0:
        return 0.0
    if inside >= edge:
        return 1.0
    x = sin(0.5 * math.pi * inside / edge)
    return float(x * x)


@device_function
def _weight(piece: Floats, v: float, length: float) -> float:
    """Return the factor of absorption and band at a share ``v`` of a piece."""
    v = min(max(v, 0.0), 1.0)
    more = piece[ABSORPTION] + v * (piece[ABSORPTION_END] - piece[ABSORPTION])
    return float((piece[WEIGHT] + v * (piece[WEIGHT_END] - piece[WEIGHT])) * exp(-_PER_DB * more * length))


@device_function
def _cubic(c: tuple[float, float, float, float], x: float) -> float:
    return c[0] + x * (c[1] + x * (c[2] + x * c[3]))


@device_function
def _samples_until(c: tuple[float, float, float, float], end: float, most: int) -> int:
    """Return the number of samples, from 1 to ``most``, until the emission time reaches ``end``."""
    if _cubic(c, float(most)) < end or c[1] <= 0.0:
        return most
    x = (end - c[0]) / c[1]
    for _ in range(2):
        x -= (_cubic(c, x) - end) / max(c[1] + x * (2.0 * c[2] + x * 3.0 * c[3]), 0.5 * c[1])
    return min(max(math.ceil(x), 1), most)


@device_function
def _phase(piece: Floats, c: tuple[float, float, float, float], begin: float) -> tuple[float, float, float, float]:
    """Return the coefficients of the phase in cycles over the number of the sample. ``begin`` is the start of the piece.

    The square of the emission time is truncated after the cubic term; in 256 samples, the remainder is below 1e-7 cycles.
    """
    f, half = piece[FREQUENCY], 0.5 * piece[SWEEP]
    s = c[0] - begin
    return (
        piece[CYCLES] + s * (f + half * s),
        c[1] * (f + 2.0 * half * s),
        c[2] * (f + 2.0 * half * s) + half * c[1] * c[1],
        c[3] * (f + 2.0 * half * s) + 2.0 * half * c[1] * c[2],
    )


@device_function
def _turn(cycles: float) -> tuple[float, float]:
    """Return (sine, cosine) of a number of cycles."""
    sine, cosine = sin_cos(_TURN * (cycles - math.floor(cycles)))
    return sine, cosine


@kernel
def add_tones(segments: Segments, tones: Tones, clock: Floats, first: int, out: Floats) -> None:
    """Add signals in closed form to the pressure (elements, samples) in uPa. ``first`` is the number of the first
    sample; ``clock`` contains the sampling rate, the offset and the drift of the clock.
    """
    count = out.shape[1]
    for i in range(len(segments.waves)):
        w, values, fades = segments.waves[i], segments.values[i], segments.fades[i]
        duration, edge, parts = tones.duration[w], tones.edge[w], tones.parts[w]
        part = duration / parts
        for e in range(out.shape[0]):
            times = segments.times[i, e]
            h = times[END] - times[START]
            if not h > 0.0:
                continue
            begin, end = number_at(times[START], clock), number_at(times[END], clock)
            n = max(begin, first // CELL * CELL)
            stop = min(end, first + count)
            c = hermite(values, times)
            du = 1.0 / (clock[0] * (1.0 + clock[2]) * h)
            while n < stop:
                u = (time_of(n, clock) - times[START]) / h
                local = (
                    _cubic(c, u),
                    du * (c[1] + u * (2.0 * c[2] + u * 3.0 * c[3])),
                    du * du * (c[2] + u * 3.0 * c[3]),
                    du * du * du * c[3],
                )
                p = min(max(int(local[0] / part), 0), parts - 1)
                cell = min(end, (n // CELL + 1) * CELL) - n
                m = cell if p == parts - 1 else _samples_until(local, (p + 1) * part, cell)
                low, high = max(first - n, 0), min(m, first + count - n)
                if low >= high:
                    n += m
                    continue
                piece, after = tones.pieces[tones.first[w] + p], _cubic(local, float(m))
                share = u + m * du
                x0, x1 = (local[0] - p * part) / part, (after - p * part) / part
                a0 = values[AMPLITUDE] + u * (values[AMPLITUDE_END] - values[AMPLITUDE])
                a1 = values[AMPLITUDE] + share * (values[AMPLITUDE_END] - values[AMPLITUDE])
                a0 *= nearness(times, u)
                a1 *= nearness(times, share)
                a0 *= _weight(piece, x0, values[LENGTH] + u * (values[LENGTH_END] - values[LENGTH]))
                a1 *= _weight(piece, x1, values[LENGTH] + share * (values[LENGTH_END] - values[LENGTH]))
                slope = (a1 - a0) / m
                q = _phase(piece, local, p * part)
                turn = values[PHASE_CHANGE] / _TURN
                zs, zc = _turn(q[0] + values[PHASE] / _TURN + turn * u)
                ds, dc = _turn(q[1] + q[2] + q[3] + turn * du)
                es, ec = _turn(2.0 * q[2] + 6.0 * q[3])
                gs, gc = _turn(6.0 * q[3])
                for _ in range(low):
                    zc, zs = zc * dc - zs * ds, zc * ds + zs * dc
                    dc, ds = dc * ec - ds * es, dc * es + ds * ec
                    ec, es = ec * gc - es * gs, ec * gs + es * gc
                row = out[e, n - first + low : n - first + high]
                if fades == 0 and local[0] >= edge and after <= duration - edge:
                    for k in range(high - low):
                        row[k] += (a0 + slope * (low + k)) * zc
                        zc, zs = zc * dc - zs * ds, zc * ds + zs * dc
                        dc, ds = dc * ec - ds * es, dc * es + ds * ec
                        ec, es = ec * gc - es * gs, ec * gs + es * gc
                else:
                    for k in range(high - low):
                        x = low + k
                        a = (a0 + slope * x) * _envelope(_cubic(local, float(x)), duration, edge)
                        if fades:
                            a *= fade_factor(fades, (u + x * du) * h, h)
                        row[k] += a * zc
                        zc, zs = zc * dc - zs * ds, zc * ds + zs * dc
                        dc, ds = dc * ec - ds * es, dc * es + ds * ec
                        ec, es = ec * gc - es * gs, ec * gs + es * gc
                n += m
