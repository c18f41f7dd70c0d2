"""Settings of a hydrophone, and the blocks of samples that it produces."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wavesim_sdk.arrays import Array, Floats, Ints
from wavesim_sdk.front_tables import FRONT_INTERVAL_S

Spectrum = Callable[[float], float]  #: function of the frequency in Hz


class HydrophoneSettings(NamedTuple):
    """Electrical properties and clock of a hydrophone.

    Sample k is taken when the hydrophone's own clock, ``t + clock_offset + clock_drift t`` at simulation time t, shows
    ``k / sampling``.
    """

    elements: int = 1  #: number of elements; each one is a channel
    sampling: float = 96e3  #: sampling rate in Hz of the hydrophone's clock
    sensitivity: float = -180.0  #: dB re 1 V/uPa
    gain: float = 0.0  #: dB
    low: float = 10.0  #: lower edge of the band in Hz; 0 = all frequencies but 0
    high: float = 0.0  #: upper edge of the band in Hz, at most 0.40 ``sampling``; 0 = 0.40 ``sampling``
    bits: int = 16  #: 12, 16 or 24; 0 = samples are float32 values in V
    full_scale: float = 1.0  #: voltage in V at which a sample is clipped
    clock_offset: float = 0.0  #: s
    clock_drift: float = 0.0  #: s/s
    gains: tuple[float, ...] = ()  #: additional gain of each channel in dB; empty = none
    delays: tuple[float, ...] = ()  #: delay of each channel in s; empty = none
    interval: float = FRONT_INTERVAL_S  #: interval between fronts in s: the time step, but at least FRONT_INTERVAL_S


class SeaSettings(NamedTuple):
    """Properties of the sea that the samples depend on.

    ``noise`` returns the spectrum level of the ambient noise in dB re 1 uPa^2/Hz, and ``absorption`` the absorption in
    dB/m. None means no ambient noise, or the same absorption at all frequencies. ``key`` is the random-stream key of the
    hydrophone.

    ``shrimp`` returns the spectrum level of the noise of snapping shrimp, which is symmetric alpha-stable with the
    exponent ``shrimp_alpha``; None means no shrimp. ``spacing`` contains the time in s that sound takes from each
    element to each other (elements, elements), for noise that is coherent between them; None means independent noise.
    """

    key: int = 0
    noise: Spectrum | None = None
    absorption: Spectrum | None = None
    shrimp: Spectrum | None = None
    shrimp_alpha: float = 2.0
    spacing: Floats | None = None
    spreading: float = 20.0  #: factor k of the spreading loss k log10 s


class SampleBlock(NamedTuple):
    """Consecutive samples of all channels.

    ``samples`` has the shape (channels, samples); its type is int16 for 12 and 16 bits, int32 for 24 bits and float32
    otherwise.
    """

    first: int  #: number of the first sample
    time: float  #: simulation time of the first sample in s
    samples: Array
    clipped: Ints  #: number of clipped samples of each channel
    volts: float  #: V per unit of a sample
    pressure: float  #: uPa per unit of a sample


class PressureBlock(NamedTuple):
    """Consecutive samples of the pressure in the band of the hydrophone, in uPa, with the shape (channels, samples)."""

    first: int
    time: float
    pressure: Floats
