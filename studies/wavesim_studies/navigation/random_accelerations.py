"""Random acceleration of a vehicle without an IMU, estimated from its measured speed."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter1d
from scipy.signal import lfilter

from wavesim_sdk.arrays import Floats

#: candidates: variance of the speed change between two values, divided by the variance of the noise
RATIOS = np.geomspace(1e-6, 1e4, 51)
WINDOW = 10.0  #: time in s over which the density of the random acceleration is assumed to be constant
#: shorter window in s, for example for a vehicle that starts to move, and the gain in log likelihood above which this
#: window is preferred
SHORT_WINDOW, GAIN = 2.0, 4.0


def random_accelerations(at: Floats, speeds: Floats, sigma: Floats) -> Floats:
    """Return the random acceleration (N, k) in m/s/sqrt(s) at the times ``at`` (N) of measured speeds (N, k), whose
    noise has the standard deviations ``sigma`` (k).

    Each axis is a random walk that is observed with white noise. For each time, the density of the walk is chosen that
    maximises the likelihood of the innovations within a window around that time. The density is therefore larger while
    a vehicle accelerates than at constant speed. If a shorter window fits much better, it is used instead.
    """
    step = max(float(np.median(np.diff(at))), 1e-3)
    width, short = (max(round(w / step), 3) for w in (WINDOW, SHORT_WINDOW))
    times = np.arange(len(at))
    found = np.empty(speeds.shape)
    for axis in range(speeds.shape[1]):
        z, R = speeds[:, axis] - speeds[0, axis], float(sigma[axis]) ** 2
        likelihood = np.empty((len(RATIOS), len(z)))
        for k, ratio in enumerate(RATIOS):
            prior = 0.5 * (ratio + (ratio * ratio + 4.0 * ratio) ** 0.5)  # steady state, in units of R
            gain = prior / (prior + 1.0)
            level = lfilter([gain], [1.0, gain - 1.0], z)
            y = np.concatenate([[0.0], z[1:] - level[:-1]])
            S = (prior + 1.0) * R
            likelihood[k] = -0.5 * (np.log(S) + y * y / S)
        usual = _mean(likelihood, width).argmax(axis=0)
        local = _mean(likelihood, short)
        best = local.argmax(axis=0)
        better = short * (local[best, times] - local[usual, times]) > GAIN
        found[:, axis] = (RATIOS[np.where(better, best, usual)] * R / step) ** 0.5
    return found


def _mean(x: Floats, width: int) -> Floats:
    """Return the running mean over the last axis."""
    return np.asarray(uniform_filter1d(x, width, axis=-1, mode="nearest"))
