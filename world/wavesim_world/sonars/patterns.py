"""Beam patterns of line arrays: intensity, with a peak of 1, as a function of u, which is the sine of an angle minus
the sine of the steering angle.
"""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Floats

#: for each shading: beam width at -3 dB relative to an unshaded array, and first coefficient of the window
SHADINGS = {"none": (1.0, 1.0), "hamming": (1.4695, 0.54), "hann": (1.6249, 0.5)}
HALF_POWER = 0.88589  #: beam width at -3 dB of a uniform line array, in lambda/L


def line(x: Floats, shading: str = "none") -> Floats:
    """Return the beam pattern at x = L/lambda (sin a - sin a0).

    For a uniform line the pattern is sinc^2 (first sidelobe -13.26 dB); for any other window, it is the transform of
    the window.
    """
    a = SHADINGS[shading][1]
    x = np.asarray(x, float)
    return np.asarray(((a * np.sinc(x) + 0.5 * (1.0 - a) * (np.sinc(x - 1.0) + np.sinc(x + 1.0))) / a) ** 2)


def length(width: float, wavelength: float, shading: str = "none") -> float:
    """Return the length in m of an array whose beam width at -3 dB is ``width`` rad."""
    return float(HALF_POWER * SHADINGS[shading][0] * wavelength / (2.0 * np.sin(min(width, np.pi) / 2.0)))


def energy_width(shading: str = "none", two_way: bool = False) -> float:
    """Return the integral of the pattern over u, in lambda/L. For a uniform line, it is 1 (one-way) or 2/3 (two-way)."""
    x = np.linspace(-60.0, 60.0, 48001)
    b = line(x, shading)
    return float(np.sum(b * b if two_way else b) * (x[1] - x[0]))
