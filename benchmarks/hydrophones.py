"""Measure the synthesis of the samples of hydrophones on one core, also beside plain NumPy: python -m
benchmarks.hydrophones

Each line states processor time per second of sound. The fronts exist already; the engine computes them.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from tests.emulators.hydrophone_twin import Emission, Path, circle, straight

from wavesim_emulators.hydrophone.settings import HydrophoneSettings, SeaSettings
from wavesim_emulators.hydrophone.synthesis import Synthesiser, load_kernels
from wavesim_world.ocean.sound import ainslie_mccolm, ambient_noise

TURNS = 5
SECONDS = 1.0
ARMS = [(0.1 * math.cos(k), 0.1 * math.sin(k), 0.05 * k) for k in range(8)]


def signals(kind: str, count: int, paths: int, elements: int) -> list[Emission]:
    """Return signals that fill a second of sound at a hydrophone that moves and turns."""
    different = [Path(), Path(surface=True), *(Path(phase=0.3 * k) for k in range(paths))][:paths]
    options: dict[str, Any] = {
        "tone": {},
        "sweep": {"band": 8e3},
        "steps": {"band": 4e3, "kind": 1},
        "samples": {"band": 8e3, "samples": 1},
    }[kind]
    return [
        Emission(
            circle((5.0 * k, 10.0, 30.0), 2.0, 1.0),
            straight((400.0, 50.0, 60.0), (-2.0, 1.0, 0.0), turn=0.5),
            ARMS[:elements],
            different,
            signal=k + 1,
            duration=SECONDS + 0.6,
            absorption=ainslie_mccolm(24e3),
            **options,
        )
        for k in range(count)
    ]


def synthesis_time(emissions: list[Emission], sampling: float, noise: bool) -> float:
    """Return the shortest processor time for one second of sound, in blocks of 0.1 s."""
    elements = len(emissions[0].elements)
    rows = [(e.waveform(), e.fronts()) for e in emissions]
    spectrum = (lambda f: ambient_noise(f, 0.5, 8.0)) if noise else None
    samples = np.random.default_rng(1).normal(size=round(96e3 * emissions[0].duration))
    best = math.inf
    for _ in range(TURNS):
        made = Synthesiser(HydrophoneSettings(elements, sampling), SeaSettings(1, spectrum, ainslie_mccolm))
        made.add_samples(1, samples, 96e3)
        for waveform, fronts in rows:
            made.add_waveforms(waveform)
            made.add_fronts(fronts)
        first, count = made.first_after(0.4), round(0.1 * sampling)
        made.block(first, count)  # prepares the waveforms and the filters
        begun = time.process_time()
        for k in range(1, round(10 * SECONDS) + 1):
            made.block(first + k * count, count)
        best = min(best, time.process_time() - begun)
    return best / SECONDS


def numpy_time(e: Emission, sampling: float) -> float:
    """Return the processor time of plain NumPy for a tone: emission time by interpolation, then its cosine."""
    rows = e.fronts()
    t = 0.4 + np.arange(round(SECONDS * sampling)) / sampling
    best = math.inf
    for _ in range(TURNS):
        begun = time.process_time()
        for m in range(len(e.elements)):
            out = np.zeros(len(t))
            for path in range(len(e.paths)):
                f = rows[rows["path"] == path]
                k = np.clip(np.searchsorted(f["times"][:, m], t) - 1, 0, len(f) - 2)
                h = f["times"][k + 1, m] - f["times"][k, m]
                u = (t - f["times"][k, m]) / h
                te = (
                    f["emission"][k] * (1.0 - u * u * (3.0 - 2.0 * u))
                    + f["emission"][k + 1] * u * u * (3.0 - 2.0 * u)
                    + h * u * (1.0 - u) * ((1.0 - u) * f["rates"][k, m] - u * f["rates"][k + 1, m])
                )
                out += 10.0 ** (0.05 * f["level"][k]) * np.cos(2.0 * np.pi * e.frequency * te + f["phase"][k])
        best = min(best, time.process_time() - begun)
    return best / SECONDS


def main() -> None:
    load_kernels()
    for kind in ("tone", "sweep", "steps", "samples"):
        made = synthesis_time(signals(kind, 1, 5, 8), 96e3, noise=False)
        print(f"8 channels, 96 kS/s, 5 paths, {kind}, no noise: {made:.4f} s per second of sound", flush=True)
    for kind in ("tone", "samples"):
        made = synthesis_time(signals(kind, 1, 5, 8), 96e3, noise=True)
        print(f"8 channels, 96 kS/s, 5 paths, {kind}, with noise: {made:.4f} s", flush=True)
    print(f"the same tone in NumPy, no noise: {numpy_time(signals('tone', 1, 5, 8)[0], 96e3):.4f} s", flush=True)
    for channels in (1, 2, 4, 8):
        made = synthesis_time(signals("tone", 1, 5, channels), 96e3, noise=True)
        print(f"{channels} channels, 96 kS/s, 5 paths, tone, with noise: {made:.4f} s", flush=True)
    for sampling in (24e3, 48e3, 192e3, 250e3):
        for kind in ("tone", "samples"):
            made = synthesis_time(signals(kind, 1, 5, 8), sampling, noise=True)
            print(f"8 channels, {sampling / 1e3:g} kS/s, 5 paths, {kind}, with noise: {made:.4f} s", flush=True)
    for paths in (1, 10):
        made = synthesis_time(signals("tone", 1, paths, 8), 96e3, noise=True)
        print(f"8 channels, 96 kS/s, {paths} paths, tone, with noise: {made:.4f} s", flush=True)
    for count in (2, 5):
        made = synthesis_time(signals("tone", count, 5, 8), 96e3, noise=True)
        print(f"8 channels, 96 kS/s, 5 paths, {count} tones at once, with noise: {made:.4f} s", flush=True)


if __name__ == "__main__":
    main()
