"""Beams: echosounder, fixed rangers, scanning beam, multibeam; on sea bed, obstacles and surface."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.base import Emulator, Floats, Noise, Rows
from wavesim_sdk.area import Record
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded
from wavesim_sdk.ocean.scene import Scene
from wavesim_sdk.sensors import RANGERS

SIGMA = 0.02  #: m, of the echosounder
RINGS, SPOKES = 3, 12  #: rays of a cone


def cone(width: float) -> Floats:
    """Unit vectors (n, 3) that fill a cone of full angle ``width`` around z."""
    rays = [(0.0, 0.0, 1.0)]
    for ring in range(1, RINGS + 1) if width else ():
        a = 0.5 * width * ring / RINGS
        for k in range(SPOKES):
            b = 2.0 * math.pi * k / SPOKES
            rays.append((math.sin(a) * math.cos(b), math.sin(a) * math.sin(b), math.cos(a)))
    return np.array(rays)


class Beams(Emulator):
    """An emulator with beams."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.scene = Scene(loaded)

    def cast(self, view: Snapshot, rows: Rows, beams: Floats, surface: bool = True, level: bool = False) -> Floats:
        """Ranges (bodies, beams) along unit vectors (n, 3) of S, or of W if ``level``; inf = nothing within reach."""
        m = self.mounted(view, rows)
        directions = beams[None] if level else np.einsum("nij,kj->nki", m.R_WS, beams)
        return self.scene.cast(m.p_WS_W[:, None, :], directions, self.parameters.maximum, surface=surface)


class Echosounder(Beams):
    """The nearest of bottom and obstacles within the cone. Noise 2 cm."""

    sensor = "echosounder"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        self.beams = cone(self.parameters.width)

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        distance = self.cast(view, rows, self.beams, False, self.parameters.level).min(axis=1)
        out["range"][rows] = np.where(np.isfinite(distance), distance + SIGMA * noise(0), np.nan)
        in_water = view.state["p_WB_W"][rows, 2] >= -0.5
        out["valid"][rows] = in_water & np.isfinite(distance) & (distance > self.parameters.minimum)


class Ranger(Beams):
    """Ranges along fixed beams."""

    sensor = "ranger"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        angles = [(b.azimuth, b.elevation) for b in self.parameters.beam][:RANGERS] or [(0.0, 0.0)]
        self.beams = np.array([(math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)) for a, e in angles])

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        ranges = self.cast(view, rows, self.beams)
        out["range"][rows] = np.nan
        for k in range(len(self.beams)):
            r = ranges[:, k] + self.parameters.sigma * noise(k)
            out["range"][rows, k] = np.where(np.isfinite(r), r, np.nan)


class Scanner(Beams):
    """One beam; its angle follows from the tick, so that a new process goes on where the old one was."""

    sensor = "scanner"

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        p = self.parameters
        steps = max(1, round((p.last - p.first) / p.step))
        angle = p.first + (view.tick // self.period_ticks) % steps * p.step
        ranges = self.cast(view, rows, np.array([(math.cos(angle), math.sin(angle), 0.0)]))[:, 0]
        out["angle"][rows] = angle
        r = ranges + p.sigma * noise(0)
        out["range"][rows] = np.where(np.isfinite(r), r, np.nan)


class Multibeam(Beams):
    """A fan down and to both sides."""

    sensor = "multibeam"

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded)
        a = np.linspace(-0.5, 0.5, self.parameters.beams) * self.parameters.width
        self.beams = np.stack([np.zeros_like(a), np.sin(a), np.cos(a)], axis=1)

    def measure(self, view: Snapshot, rows: Rows, noise: Noise, out: Record) -> None:
        ranges = self.cast(view, rows, self.beams, surface=False)
        out["range"][rows] = np.nan
        for k in range(len(self.beams)):
            r = ranges[:, k] + self.parameters.sigma * noise(k)
            out["range"][rows, k] = np.where(np.isfinite(r), r, np.nan)
