"""Conversion of pressure to the samples that a hydrophone outputs: sensitivity, gain, clipping and rounding."""

from __future__ import annotations

import numpy as np

from wavesim_emulators.hydrophone.settings import HydrophoneSettings
from wavesim_sdk.arrays import Array, Floats, Ints
from wavesim_sdk.elementary import power


def volts_per_unit(settings: HydrophoneSettings) -> float:
    """Return the voltage in V of one unit of a sample; samples without bits are voltages."""
    return settings.full_scale / 2.0 ** (settings.bits - 1) if settings.bits else 1.0


def volts_per_uPa(settings: HydrophoneSettings) -> float:
    """Return the voltage in V at a pressure of 1 uPa."""
    return float(power(10.0, 0.05 * (settings.sensitivity + settings.gain)))


def convert(pressure: Floats, settings: HydrophoneSettings) -> tuple[Array, Ints]:
    """Return the samples of pressures (channels, samples) in uPa, and the number of clipped samples of each channel."""
    if not settings.bits:
        volts = pressure * volts_per_uPa(settings)
        clipped = abs(volts) > settings.full_scale
        return np.clip(volts, -settings.full_scale, settings.full_scale).astype(np.float32), clipped.sum(axis=1)
    units = np.floor(pressure * (volts_per_uPa(settings) / volts_per_unit(settings)) + 0.5)
    top = 2.0 ** (settings.bits - 1)
    clipped = (units > top - 1.0) | (units < -top)
    kind = np.int16 if settings.bits <= 16 else np.int32
    return np.clip(units, -top, top - 1.0).astype(kind), clipped.sum(axis=1)
