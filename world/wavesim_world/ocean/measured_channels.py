"""Measured acoustic channels: impulse responses over time, in files of the uwa-channels format 1.0, read with h5py (BSD;
the ``channels`` extra).

The format is that of the Underwater Acoustic Channel Toolbox (https://uwa-channels.github.io).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_world.config.acoustics import ChannelReplay, TransducerConfig
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.validation import fail_at

LEAST_TIMES = 4  #: minimum number of impulse responses, which a cubic spline needs
MAX_VALUES = 30_000_000  #: maximum number of values of the impulse responses that are used
MAX_STRETCH = 0.1  #: maximum difference of `f_resamp` from 1
_FIRST_ARRIVAL = 0.1  # power of the first arrival, as a share of that of the strongest delay


class MeasuredChannel(NamedTuple):
    """Impulse response of a channel at some receivers, over delay and time, about a carrier frequency.

    ``real`` and ``imaginary`` have the shape (receivers, times, delays). ``phase`` (receivers, samples) is the phase in
    rad at the sampling rate of the delays. If ``drifts`` is set, it also describes a drift of the delays.
    """

    file: str
    real: Floats
    imaginary: Floats
    phase: Floats
    drifts: bool
    delay_rate: float  #: sampling rate of the delays in Hz
    time_rate: float  #: number of impulse responses per second
    carrier: float  #: Hz
    stretch: float  #: factor by which received signals are longer than transmitted ones

    @property
    def duration(self) -> float:
        """Time from the first impulse response to the last one in s."""
        return float((self.real.shape[1] - 1) / self.time_rate)

    @property
    def spread(self) -> float:
        """Length of an impulse response in s."""
        return float(self.real.shape[2] / self.delay_rate)

    @property
    def mean_power(self) -> float:
        """Mean over time and receivers of the power of an impulse response: the power gain of the channel."""
        return float(np.sum(self._profile))

    @property
    def first_arrival(self) -> int:
        """Number of the delay at which the first sound arrives: the first maximum of the mean power profile that
        is at most 10 dB below the highest one.
        """
        p = np.concatenate([[0.0], self._profile, [0.0]])
        peaks = (p[1:-1] >= p[:-2]) & (p[1:-1] > p[2:]) & (p[1:-1] >= _FIRST_ARRIVAL * p.max())
        return int(np.argmax(peaks))

    @property
    def _profile(self) -> Floats:
        return np.asarray(np.mean(self.real * self.real + self.imaginary * self.imaginary, axis=(0, 1)))

    def refusal(self, frequency: float, band: float, duration: float, start: float | None) -> str:
        """Return why the channel cannot carry a signal, or an empty string if it can.

        :param frequency: carrier of the signal in Hz
        :param band: bandwidth of the signal in Hz
        :param duration: duration of the signal in s
        :param start: time in s, in the file, at which the signal starts; None = any time
        """
        low, high = self.carrier - 0.5 * self.delay_rate, self.carrier + 0.5 * self.delay_rate
        if frequency - 0.5 * band < low or frequency + 0.5 * band > high:
            return (
                f"the band of the signal, {frequency - 0.5 * band:.6g} to {frequency + 0.5 * band:.6g} Hz, is not within "
                f"that of the measured channel, {low:.6g} to {high:.6g} Hz"
            )
        end = (start or 0.0) + duration + self.spread
        if end > self.duration:
            asked = f" that starts at {start:g} s" if start else ""
            return (
                f"a signal of {duration:.4g} s{asked}, with its echoes of {self.spread:.4g} s, is longer than the "
                f"measured channel of {self.duration:.4g} s"
            )
        return ""


# ------------------------------------------------------------------ files


def read_channel(path: Path, receivers: tuple[float, ...] = (1.0,)) -> MeasuredChannel:
    """Read a measured channel at the receivers with the given numbers (from 1). Raises ConfigError if the file is
    invalid, and MissingPackage without h5py.
    """
    check_installed("h5py")
    import h5py

    try:
        if not h5py.is_hdf5(path):
            _fail(path, "the measured channel is not an HDF5 file; save it in MATLAB with `-v7.3`")
        with h5py.File(path, "r") as file:
            return _channel(path, file, [int(n) - 1 for n in receivers])
    except OSError as error:
        reason = error.strerror or "the file is damaged"
        raise ConfigError(f"cannot read the measured channel: {reason}", str(path)) from None


def _fail(path: Path, message: str) -> NoReturn:
    raise ConfigError(message, str(path))


def _channel(path: Path, file: Any, receivers: list[int]) -> MeasuredChannel:
    """Return the measured channel in an open file."""
    if not _number(path, file, "version") >= 1.0:
        _fail(path, "the version of the measured channel is below 1.0")
    rates = {name: _number(path, file, f"params/{name}") for name in ("fs_delay", "fs_time", "fc")}
    for name, value in rates.items():
        if not 0.0 < value < 1e7:
            _fail(path, f"`params.{name}` is {value:g} Hz; it must be positive and below 10 MHz")
    stretch = _number(path, file, "f_resamp") if "f_resamp" in file else 1.0
    if not abs(stretch - 1.0) <= MAX_STRETCH:
        _fail(path, f"`f_resamp` is {stretch:g}; it must be within {MAX_STRETCH:g} of 1")
    stored = _dataset(path, file, "h_hat")
    if len(stored.shape) != 3:
        _fail(path, f"`h_hat` has {len(stored.shape)} dimensions; it must have three: delay, receiver and time")
    times, known, delays = stored.shape
    if max(receivers) >= known:
        _fail(path, f"there is no receiver {max(receivers) + 1}; the file has {known}, numbered from 1")
    if times < LEAST_TIMES:
        _fail(path, f"`h_hat` has {times} impulse responses; the minimum is {LEAST_TIMES}")
    if times * delays * len(receivers) > MAX_VALUES:
        _fail(
            path,
            f"the impulse responses have more than {MAX_VALUES // 1_000_000} million values; use fewer `receivers`",
        )
    real, imaginary = _complex(path, stored, receivers)
    name = next((n for n in ("phi_hat", "theta_hat") if n in file), "")
    phase = np.zeros((len(receivers), 1))
    if name:
        phase = _phase(path, _dataset(path, file, name), name, known)[receivers]
        if phase.shape[1] < (times - 2) * rates["fs_delay"] / rates["fs_time"]:
            _fail(path, f"`{name}` is shorter than the impulse responses; it must have `fs_delay` values per second")
    for field, values in (("h_hat", real), ("h_hat", imaginary), (name, phase)):
        if not np.isfinite(values).all():
            _fail(path, f"`{field}` has a value that is not finite")
    if not (real.any() or imaginary.any()):
        _fail(path, "all values of `h_hat` are 0")
    if rates["fc"] < 0.5 * rates["fs_delay"]:
        _fail(
            path,
            f"`params.fc` {rates['fc']:g} Hz is less than half of `params.fs_delay`, so the band extends below 0 Hz",
        )
    return MeasuredChannel(
        path.name, real, imaginary, phase, name == "phi_hat", rates["fs_delay"], rates["fs_time"], rates["fc"], stretch
    )


def _dataset(path: Path, file: Any, name: str) -> Any:
    """Return a dataset of a file."""
    shown = name.replace("/", ".")
    if name not in file:
        _fail(path, f"the measured channel has no `{shown}`; the uwa-channels format 1.0 requires it")
    found = file[name]
    if not hasattr(found, "shape") or found.dtype.kind not in "fiucV":
        _fail(path, f"`{shown}` is not an array of numbers")
    return found


def _number(path: Path, file: Any, name: str) -> float:
    """Return a single number in a file."""
    values = np.asarray(_dataset(path, file, name)[()])
    if values.size != 1 or values.dtype.kind not in "fiu":
        _fail(path, f"`{name.replace('/', '.')}` is not a single number")
    return float(values.reshape(-1)[0])


def _complex(path: Path, stored: Any, receivers: list[int]) -> tuple[Floats, Floats]:
    """Return the real and imaginary parts of impulse responses (receivers, times, delays)."""
    names = stored.dtype.names
    if names is not None and not {"real", "imag"} <= set(names):
        _fail(path, "`h_hat` is not an array of complex numbers")
    rows = [stored[:, r, :] for r in receivers]
    real, imaginary = ([row[part] if names else getattr(row, part) for row in rows] for part in ("real", "imag"))
    return np.ascontiguousarray(real, float), np.ascontiguousarray(imaginary, float)


def _phase(path: Path, stored: Any, name: str, known: int) -> Floats:
    """Return the phases (receivers, samples) of all receivers."""
    if stored.dtype.kind not in "fiu" or len(stored.shape) != 2 or stored.shape[1] != known:
        _fail(
            path, f"`{name}` must be an array of numbers with two dimensions, receiver and time, for {known} receivers"
        )
    return np.ascontiguousarray(np.asarray(stored[()], float).T)


# ------------------------------------------------------------------ configurations


def check(loaded: LoadedConfig) -> None:
    """Read the measured channel of each replay; see :func:`read_replay`."""
    for replay in loaded.config.acoustics.replay:
        read_replay(loaded, replay)


def read_replay(loaded: LoadedConfig, replay: ChannelReplay) -> MeasuredChannel:
    """Return the measured channel of a replay. Raises ConfigError if its file is invalid, or if it cannot carry the
    signals that the configuration declares.
    """
    channel = read_channel(loaded.data_file(replay.file), replay.receivers)
    body = next(b for b in loaded.config.fleet.bodies if b.name == replay.source)
    for what, frequency, band, duration in _signals(loaded.transducer(body)):
        if reason := channel.refusal(frequency, band, duration, start_of(replay)):
            fail_at(replay.place, f"<replay>: '{replay.file}' cannot carry the {what} of '{replay.source}': {reason}")
    return channel


def start_of(replay: ChannelReplay) -> float | None:
    """Return the time in s, in the file, at which each signal starts; None = drawn for each signal."""
    return None if isinstance(replay.start, str) else replay.start


def _signals(t: TransducerConfig | None) -> list[tuple[str, float, float, float]]:
    """Return (name, carrier in Hz, bandwidth in Hz, longest duration in s) of each kind of signal of a transducer."""
    found: list[tuple[str, float, float, float]] = []
    if t is None:
        return found
    if t.pinger is not None:
        found.append(("pings", t.pinger.frequency, t.band, t.pulse))
    if t.query and t.reply:
        found.append(("replies", t.reply, t.band, t.pulse))
    if t.modem is not None:
        longest = t.modem.preamble + 8.0 * t.modem.payload / t.modem.bit_rate
        found.append(("packets", t.modem.frequency, t.modem.bandwidth, longest))
    return found
