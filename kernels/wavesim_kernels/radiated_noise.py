"""Spectrum of the broadband noise that a body radiates, for kernels and for NumPy arrays."""

from __future__ import annotations

from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the functions with Numba
from wavesim_kernels.compiler import device_function
from wavesim_sdk.elementary import log10

CORNER_HZ = 100.0  #: frequency in Hz below which the spectrum is flat
REFERENCE_HZ = 1000.0  #: frequency in Hz at which the level of a noise source is stated


@device_function
def relative_spectrum(frequency: float) -> float:
    """Return the spectrum level at a frequency in Hz minus the level at REFERENCE_HZ, in dB.

    The spectrum is flat below CORNER_HZ and decreases by 20 dB per decade above. This is a common approximation for
    ships (Ross 1976); the noise of a particular vehicle may differ by several dB.
    """
    corner = CORNER_HZ * CORNER_HZ
    return float(10.0 * log10((REFERENCE_HZ * REFERENCE_HZ + corner) / (frequency * frequency + corner)))
