"""Streams of samples at any whole sampling rate, mixed down to complex baseband with a fixed number of samples per chip."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.janus.waveform import ParameterSet

PER_CHIP = 40  #: baseband samples per chip
_FLAT, _STOP = 16, 19  #: half widths of the pass band and of the transition, in tone spacings

Complex = npt.NDArray[np.complex64]


class Downconverter:
    """Mixer, filter and resampler. Each block spans 2 s, and the middle second of its result is kept.

    Baseband sample ``k`` belongs to the time ``k / rate`` after the first sample that was pushed. ``rate`` is a
    whole number of Hz, as is the sampling rate, so one second holds a whole number of both.
    """

    def __init__(self, sampling: float, parameters: ParameterSet) -> None:
        self.sampling = parameters.check_sampling(sampling)
        self.rate = PER_CHIP * parameters.spacing
        self.position = 0  #: number of samples that were pushed
        self._waiting = np.zeros(self.sampling)  # silence before the first sample
        self._skip = self.rate // 2  # the first block begins 1 s before the first sample
        offset = np.fft.fftfreq(2 * self.rate, 1 / (2 * self.rate)).round().astype(np.int64)  # in steps of 0.5 Hz
        bins = 2 * parameters.centre + offset
        self._bins = np.clip(bins, 0, self.sampling)
        width = np.abs(offset) / (2 * parameters.spacing)
        edge = np.clip((_STOP - width) / (_STOP - _FLAT), 0.0, 1.0)
        weight = np.where((bins > 0) & (bins < self.sampling), 0.5 - 0.5 * np.cos(np.pi * edge), 0.0)
        self._weight = weight * (2.0 * self.rate / self.sampling)  # analytic signal; sizes of both transforms

    def push(self, samples: npt.ArrayLike) -> Complex:
        """Return the baseband samples that these samples complete."""
        new = np.asarray(samples, float)
        if new.ndim != 1:
            raise InvalidArgument(f"expected samples of one channel, got an array of shape {new.shape}")
        bad = ~np.isfinite(new)
        if bad.any():
            at = (self.position + int(np.argmax(bad))) / self.sampling
            raise InvalidArgument(
                f"{int(bad.sum())} samples are NaN or infinite, the first one at {at:.6f} s: remove or replace them"
            )
        self.position += len(new)
        self._waiting = np.concatenate([self._waiting, new])
        parts = [np.zeros(0, np.complex64)]
        while len(self._waiting) >= 2 * self.sampling:
            spectrum = np.fft.rfft(self._waiting[: 2 * self.sampling])
            block = np.fft.ifft(spectrum[self._bins] * self._weight)
            kept = block[self.rate // 2 : 3 * self.rate // 2]
            parts.append(kept[self._skip :].astype(np.complex64))
            self._skip = 0
            self._waiting = self._waiting[self.sampling :]
        return np.concatenate(parts)
