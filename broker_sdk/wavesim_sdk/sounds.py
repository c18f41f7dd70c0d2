"""Sounds: waveforms that a program computes and its transducer transmits.

A sound is a sequence of pressure samples. Its level is the rms level between the first and the last sample that
reach a tenth of the largest sample; silence before and after a packet therefore does not change the level.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from wavesim_sdk.arguments import number
from wavesim_sdk.arrays import Array, Floats
from wavesim_sdk.elementary import log10
from wavesim_sdk.errors import InvalidArgument, LogError
from wavesim_sdk.names import shorten
from wavesim_sdk.tables import MAX_SIGNAL_S
from wavesim_sdk.wire.items import MAX_SOUND_SAMPLES, SOUND_PART_BYTES, SoundPart

SCALES = ("rms", "peak")
USABLE = 0.40  #: highest frequency of a sound, as a share of its sampling rate
MIN_SAMPLING, MAX_SAMPLING = 1e3, 1e6  #: sampling rates of a sound in Hz
MAX_SAMPLES = MAX_SOUND_SAMPLES  #: maximum number of samples of a sound, and of all sounds that can still be heard
MIN_SOUND_S = 1e-4
MAX_PARTS = -(-4 * MAX_SAMPLES // SOUND_PART_BYTES) + 1  #: number of requests for the longest sound
_SILENT = 0.1  #: share of the largest sample below which a sample is silence


def checked_sound(samples: Any, sampling_rate: Any, scale: str = "rms") -> tuple[Array, float]:
    """Return the samples of a sound in single precision, and the sampling rate in Hz.

    Raises InvalidArgument if they cannot be a sound, or if ``scale`` is "peak" and a sample is beyond +-1.
    """
    sampling = number("sampling_rate", sampling_rate, "Hz")
    if not MIN_SAMPLING <= sampling <= MAX_SAMPLING:
        raise InvalidArgument(
            f"sampling_rate {sampling:g} Hz is out of range ({MIN_SAMPLING:g} to {MAX_SAMPLING:g} Hz)"
        )
    if scale not in SCALES:
        raise InvalidArgument(f"scale must be 'rms' or 'peak', got {shorten(scale, 20)!r}")
    x = _single(samples)
    if x.ndim != 1:
        raise InvalidArgument(f"the samples must be one channel, a sequence of numbers; their shape is {x.shape}")
    if not len(x):
        raise InvalidArgument("the sound is empty: it has no samples")
    if len(x) > MAX_SIGNAL_S * sampling:
        raise InvalidArgument(f"the sound lasts {len(x) / sampling:.3f} s; the maximum is {MAX_SIGNAL_S:g} s")
    if len(x) > MAX_SAMPLES:
        raise InvalidArgument(
            f"the sound has {len(x)} samples; the maximum is {MAX_SAMPLES}, which is {MAX_SAMPLES / sampling:.1f} s"
        )
    finite = np.isfinite(x)
    if not finite.all():
        raise InvalidArgument(f"sample {int(np.argmin(finite))} of the sound is not a finite number")
    largest = float(abs(x).max())
    if largest == 0.0:
        raise InvalidArgument("all samples of the sound are 0, so it cannot have a level")
    if len(x) < MIN_SOUND_S * sampling:
        raise InvalidArgument(f"the sound lasts {1e3 * len(x) / sampling:.3f} ms; the minimum is 0.1 ms")
    if scale == "peak" and largest > 1.0:
        raise InvalidArgument(
            f"with scale='peak', samples are between -1 and 1; sample {int(abs(x).argmax())} is {largest:g}"
        )
    return x, sampling


def _single(samples: Any) -> Array:
    """Return numbers in single precision; a value that is too large becomes infinite."""
    try:
        x = np.asarray(samples)
        if x.dtype.kind not in "fiub" and x.size:
            raise ValueError
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(x, np.float32)
    except (TypeError, ValueError):
        raise InvalidArgument("the samples must be real numbers, for example a NumPy array of float32") from None


def check_band(high: float, sampling: float) -> None:
    """Raise InvalidArgument if the sampling rate is too low for a sound with frequencies up to ``high`` (Hz)."""
    if high > USABLE * sampling:
        raise InvalidArgument(
            f"the sound contains frequencies up to {high:.0f} Hz; with a sampling rate of {sampling:g} Hz, the maximum is "
            f"{USABLE * sampling:.0f} Hz. Use a sampling rate of at least {math.ceil(high / USABLE)} Hz"
        )


def sound_parts(sound: int, samples: Array) -> Iterator[SoundPart]:
    """Return the requests that send a sound, in order. ``sound`` is a number that the sender chooses."""
    step = SOUND_PART_BYTES // 4
    for first in range(0, len(samples), step):
        yield SoundPart(sound, first, len(samples), samples[first : first + step].astype("<f4").tobytes())


def logged_sound(message: Mapping[str, Any]) -> tuple[Array, float]:
    """Return the samples and the sampling rate in Hz of a message on the topic `/acoustics/sound` of a log. Raises
    LogError if the message is damaged.
    """
    try:
        data, sampling = base64.b64decode(message["samples"], validate=True), float(message["sampling_rate"])
        return np.frombuffer(data, "<f4"), sampling
    except (KeyError, TypeError, ValueError):
        raise LogError("the message does not contain a sound: its samples or its sampling rate are damaged") from None


def mean_square(samples: Array) -> float:
    """Return the mean square of a sound between its first and its last sample that are not silence."""
    size = abs(samples)
    loud = np.flatnonzero(size >= _SILENT * size.max())
    part: Floats = samples[loud[0] : loud[-1] + 1].astype(np.float64)
    return float(np.cumsum(part * part)[-1]) / len(part)  # a running sum: its order is the same on every machine


def level_of_sound(samples: Array, level: float, scale: str) -> float:
    """Return the rms source level of a sound in dB. With ``scale`` "peak", ``level`` is that of a sine between -1 and 1."""
    if scale != "peak":
        return level
    return level + 10.0 * float(log10(2.0 * mean_square(samples)))
