"""Replay of measured channels in the samples of a hydrophone, against closed forms and a direct evaluation."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.emulators import hydrophone_twin as twin
from tests.emulators.channel_files import write_channel
from tests.emulators.hydrophone_twin import C, Emission, Path as Way, at_rest
from wavesim_emulators.hydrophone.replay import ReplayChannel
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, SeaSettings
from wavesim_emulators.hydrophone.synthesis import Synthesiser
from wavesim_sdk.arrays import Floats
from wavesim_world.ocean.measured_channels import read_channel

pytest.importorskip("h5py", reason="needs h5py: make")

FS_DELAY, FS_TIME, FC, LONG = 8e3, 20.0, 12e3, 3.0
TAPS = 40
FIRST, SECOND = 10, 25  #: delays of the two taps
FS = 48e3


def gains(t: Floats) -> tuple[Any, Any]:
    """Gains of both taps, which change slowly."""
    return 0.8 * np.exp(0.4j * t) * (1.0 + 0.2 * np.sin(2.0 * t)), 0.5 * np.exp(1j - 0.7j * t)


def two_taps(path: Path, **fields: Any) -> Path:
    t = np.arange(round(LONG * FS_TIME) + 1) / FS_TIME
    h = np.zeros((len(t), 1, TAPS), complex)
    h[:, 0, FIRST], h[:, 0, SECOND] = gains(t)
    return write_channel(path, h, FS_DELAY, FS_TIME, FC, **fields)


def heard(e: Emission, channel: ReplayChannel, key: int = 5, **settings: float) -> Synthesiser:
    made = Synthesiser(HydrophoneSettings(len(e.elements), FS, **settings), SeaSettings(key))
    made.add_waveforms(e.waveform())
    made.replay(e.signal, channel)
    made.add_fronts(e.fronts())
    return made


def expected(
    t: Floats, start: float, wave: Callable[[Floats], Any], phi: Callable[[Floats], Floats], drifts: bool
) -> Floats:
    """Received sound at times since the first arrival; the definition of the format, with closed forms for all signals."""
    t = t + FIRST / FS_DELAY
    late = t + (phi(start + t) / (2.0 * np.pi * FC) if drifts else 0.0)
    g = gains(start + late)
    base = np.exp(1j * phi(start + late)) * sum(
        a * wave(late - k / FS_DELAY) * np.exp(-2j * np.pi * FC * (late - k / FS_DELAY))
        for a, k in zip(g, (FIRST, SECOND), strict=True)
    )
    return np.asarray((base * np.exp(2j * np.pi * FC * t)).real)


def difference(found: Floats, wanted: Floats) -> float:
    """Difference in dB relative to what is wanted."""
    return float(10.0 * np.log10(((found - wanted) ** 2).sum() / (wanted**2).sum()))


@pytest.mark.parametrize("field", ["", "theta_hat", "phi_hat"])
def test_two_drifting_taps(tmp_path: Path, field: str) -> None:
    n = np.arange(round(LONG * FS_DELAY) + 1) / FS_DELAY
    start, slope = 0.75, 2.0 * np.pi * FC * 1e-3  # 1.5 m/s

    def phase(t: Floats) -> Floats:
        return np.asarray(slope * t + 0.3 * np.sin(3.0 * t)) if field else 0.0 * t

    path = two_taps(tmp_path / "two.mat", **({field: phase(n)[:, np.newaxis]} if field else {}))
    channel = ReplayChannel(read_channel(path), start, True)
    e = Emission(at_rest(0, 0, 50), at_rest(150, 0, 50), duration=0.2, frequency=12.5e3, band=2000.0, level=180.0)
    s = heard(e, channel)
    first, count = round(0.1 * FS) - 500, round(0.25 * FS)
    found = s.pressure(first, count).pressure[0]
    t = np.arange(first, first + count) / FS - 150.0 / C
    wave = twin.sweep(0.2, 12.5e3, 2000.0)
    from_start = (lambda x: phase(x) - phase(np.array(start))) if field == "phi_hat" else phase
    wanted = 1e9 * expected(t, start, wave, from_start, field == "phi_hat")
    print(field, difference(found, wanted))
    assert difference(found, wanted) < -50.0
    assert s.replayed == 1 and not s.refused
