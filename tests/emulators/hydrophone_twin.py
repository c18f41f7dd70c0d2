"""Slow twin of the synthesis: exact fronts of prescribed motions, and the pressure from the emission time of each sample.

Paths are straight, and the surface is a plane with image sources. Everything is double precision and NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.front_tables import FRONT, WAVEFORM

C = 1500.0
SCALES: dict[tuple[float, float], float] = {}  # amplitude of a wave with an rms of 1, by duration and edge
Vector = Callable[[Floats], Floats]


@dataclass
class Motion:
    """Position of a reference point (times, 3) and rotation about the vertical as functions of the time."""

    position: Vector
    velocity: Vector
    heading: float = 0.0
    turn: float = 0.0

    def element(self, arm: Sequence[float], t: Floats) -> tuple[Floats, Floats]:
        """Position and velocity of a point on the body."""
        t = np.asarray(t, float)
        angle = self.heading + self.turn * t
        c, s = np.cos(angle), np.sin(angle)
        x, y, z = arm
        p = np.stack([c * x - s * y, s * x + c * y, z + 0.0 * c], axis=-1)
        v = self.turn * np.stack([-s * x - c * y, c * x - s * y, 0.0 * c], axis=-1)
        return self.position(t) + p, self.velocity(t) + v


def at_rest(*p: float) -> Motion:
    return straight(p, (0.0, 0.0, 0.0))


def straight(p: Sequence[float], v: Sequence[float], turn: float = 0.0) -> Motion:
    return Motion(
        lambda t: np.asarray(p) + np.asarray(t)[..., np.newaxis] * np.asarray(v),
        lambda t: np.broadcast_to(np.asarray(v, float), (*np.shape(t), 3)),
        turn=turn,
    )


def circle(centre: Sequence[float], radius: float, rate: float) -> Motion:
    def position(t: Floats) -> Floats:
        t = np.asarray(t)
        return np.asarray(centre) + radius * np.stack([np.cos(rate * t), np.sin(rate * t), 0.0 * t], axis=-1)

    def velocity(t: Floats) -> Floats:
        t = np.asarray(t)
        return radius * rate * np.stack([-np.sin(rate * t), np.cos(rate * t), 0.0 * t], axis=-1)

    return Motion(position, velocity)


@dataclass
class Path:
    """Straight path (surface False) or image above the surface, with a phase added to that of the bounce."""

    surface: bool = False
    phase: float = 0.0


@dataclass
class Emission:
    """Signal, its source, and the hydrophone that hears it."""

    source: Motion
    receiver: Motion
    elements: Sequence[Sequence[float]] = ((0.0, 0.0, 0.0),)
    paths: Sequence[Path] = (Path(),)
    signal: int = 1
    start: float = 0.0
    duration: float = 0.1
    frequency: float = 24e3
    band: float = 0.0  # 0 = 2 divided by the duration, as a tone burst has
    level: float = 185.0
    absorption: float = 0.0
    kind: int = 0
    code: int = 3
    samples: int = 0
    interval: float = 0.02

    def waveform(self) -> Record:
        row = np.zeros(1, WAVEFORM.dtype)
        row["signal"], row["kind"], row["code"], row["samples"] = self.signal, self.kind, self.code, self.samples
        row["emission"], row["duration"], row["frequency"] = self.start, self.duration, self.frequency
        row["band"], row["source_level"] = self.band or 2.0 / self.duration, self.level
        row["absorption"] = self.absorption
        return row

    def mirrored(self, te: Floats, path: Path) -> tuple[Floats, Floats]:
        p, v = self.source.element((0.0, 0.0, 0.0), te)
        sign = np.array([1.0, 1.0, -1.0 if path.surface else 1.0])
        return p * sign, v * sign

    def arrival(self, te: Floats, path: Path, arm: Sequence[float]) -> tuple[Floats, Floats, Floats]:
        """Arrival times, rates d te/d tr and distances by iteration."""
        p, v = self.mirrored(te, path)
        tr = te
        for _ in range(8):
            r, u = self.receiver.element(arm, tr)
            d = np.sqrt(((r - p) ** 2).sum(axis=-1))
            tr = te + d / C
        n = (r - p) / d[..., np.newaxis]
        return tr, (1.0 - (u * n).sum(axis=-1) / C) / (1.0 - (v * n).sum(axis=-1) / C), d

    def received(self, length: Floats) -> Floats:
        return self.level - 20.0 * np.log10(length) - self.absorption * length

    def fronts(self) -> Record:
        steps = max(math.ceil(self.duration / self.interval - 1e-9), 1)
        te = self.start + np.minimum(np.arange(steps + 1) * self.interval, self.duration)
        rows = np.zeros((len(self.paths), len(te)), FRONT.dtype)
        for row, path, number in zip(rows, self.paths, range(99), strict=False):
            tr, _, d = self.arrival(te, path, (0.0, 0.0, 0.0))
            row["signal"], row["path"], row["number"] = self.signal, number, np.arange(len(te))
            row["generation"] = 1
            row["last"][-1] = 1
            row["emission"], row["arrival"], row["length"], row["level"] = te, tr, d, self.received(d)
            row["surface"], row["phase"] = path.surface, math.pi * path.surface + path.phase
            row["times"] = row["rates"] = np.nan
            for m, arm in enumerate(self.elements):
                row["times"][:, m], row["rates"][:, m], _ = self.arrival(te, path, arm)
        return rows.ravel()

    def pressure(self, t: Floats, wave: Callable[[Floats], Floats]) -> Floats:
        """Pressure (elements, samples) in uPa at simulation times. ``wave`` returns the complex wave, with an rms value
        of 1, at times since its start.
        """
        out = np.zeros((len(self.elements), len(t)))
        for path in self.paths:
            for row, arm in zip(out, self.elements, strict=True):
                r, _ = self.receiver.element(arm, t)
                te = t
                for _ in range(8):
                    p, _ = self.mirrored(te, path)
                    te = t - np.sqrt(((r - p) ** 2).sum(axis=-1)) / C
                leaves, _ = self.mirrored(te, path)
                d = np.sqrt(((r - leaves) ** 2).sum(axis=-1))
                # the absorption belongs to the reference point, the spreading loss to the element
                reference, _ = self.receiver.element((0.0, 0.0, 0.0), t)
                far = np.sqrt(((reference - leaves) ** 2).sum(axis=-1))
                turn = np.exp(1j * (math.pi * path.surface + path.phase))
                row += 10.0 ** (self.received(far) / 20.0) * far / d * (turn * wave(te - self.start)).real
        return out


def envelope(s: Floats, duration: float, frequency: float) -> Floats:
    """Raised-cosine edges over 5 % of the duration, at most ten periods, scaled to an rms of 1 above -20 dB."""
    edge = min(0.05 * duration, 10.0 / frequency)

    def shape(x: Floats) -> Floats:
        inside = np.clip(np.minimum(x, duration - x) / edge, 0.0, 1.0)
        return 0.5 - 0.5 * np.cos(np.pi * inside)

    if (duration, edge) not in SCALES:
        fine = shape(np.linspace(0.0, duration, 400001))
        SCALES[duration, edge] = math.sqrt(2.0 / (fine[fine > 0.1] ** 2).mean())
    return shape(s) * SCALES[duration, edge]


def tone(duration: float, frequency: float) -> Callable[[Floats], Floats]:
    return lambda s: envelope(s, duration, frequency) * np.exp(2j * np.pi * frequency * s)


def sweep(duration: float, frequency: float, band: float) -> Callable[[Floats], Floats]:
    def wave(s: Floats) -> Floats:
        cycles = (frequency - 0.5 * band) * s + 0.5 * band / duration * s**2
        return np.asarray(envelope(s, duration, frequency) * np.exp(2j * np.pi * cycles))

    return wave


def steps(duration: float, frequency: float, tones: Floats) -> Callable[[Floats], Floats]:
    """Sequence of tones of equal duration with continuous phase."""
    part = duration / len(tones)

    def wave(s: Floats) -> Floats:
        k = np.clip((s / part).astype(int), 0, len(tones) - 1)
        before = np.concatenate([[0.0], np.cumsum(tones * part)])
        cycles = before[k] + tones[k] * (s - k * part)
        return np.asarray(envelope(s, duration, frequency) * np.exp(2j * np.pi * cycles))

    return wave
