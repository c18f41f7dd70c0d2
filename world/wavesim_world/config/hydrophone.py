"""Declarations of hydrophones, which record the sound in the water."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, children, flag, key, text
from wavesim_world.config.sensor_base import SensorConfig

MAX_ELEMENT_DISTANCE = 5.0  #: maximum distance of an element from the position of its hydrophone in m
MAX_BAND_SHARE = 0.40  #: maximum upper edge of the band, as a fraction of the sampling rate
MAX_CLOCK_OFFSET = 1e6  #: maximum offset of the clock in s, at which times are still exact to 0.1 ns
MAX_TOTAL_RATE = 2e6  #: maximum number of samples of all channels per second
BITS = (0, 12, 16, 24)  #: word lengths of the converter; 0 = samples are floating-point numbers


@dataclass(frozen=True)
class HydrophoneElement:
    """Element of a hydrophone. Each element is a channel of the recorded samples."""

    position: Vector = key("Position of the element in the sensor frame S.", "length", count=3)


@dataclass(frozen=True)
class HydrophoneArrayConfig(SensorConfig):
    """Hydrophone: it records the pressure of the sound in the water as samples, in blocks of equal length.

    A hydrophone has one element at its position, or up to 64 elements with their own positions. All channels together
    have at most 2 million samples per second. A hydrophone hears every signal of the acoustic medium on all paths, but it
    does not transmit, and it does not affect other nodes.
    """

    rate: float = key(
        "Number of blocks of samples per second. A block must contain a whole number of samples and of time steps.",
        "frequency",
        10.0,
        low=1.0,
        high=1000.0,
    )
    sampling: float = key("Sampling rate of each channel.", "frequency", 96e3, low=8e3, high=250e3)
    sensitivity: float = key(
        "Voltage sensitivity of the elements in dB re 1 V/uPa.", "level", -180.0, low=-260.0, high=-100.0
    )
    gain: float = key("Gain of the amplifier before the converter.", "level", 0.0, low=-40.0, high=120.0)
    low: float = key("Lower edge of the frequency band of the hydrophone.", "frequency", 10.0, low=0.0)
    high: float = key(
        "Upper edge of the frequency band of the hydrophone, at most 0.40 times `sampling`. 0 Hz: 0.40 times "
        "`sampling`.",
        "frequency",
        0.0,
        low=0.0,
    )
    bits: int = key(
        "Word length of the converter: 12, 16 or 24 bits; 0 = the samples are floating-point numbers in V.",
        default=16,
        low=0,
        high=24,
        integer=True,
    )
    full_scale: float = key("Voltage in V at which the converter clips a sample.", default=1.0, low=1e-6, high=1e3)
    clock_offset: float = key(
        "Offset of the hydrophone's clock at the start of the run.",
        "time",
        0.0,
        low=-MAX_CLOCK_OFFSET,
        high=MAX_CLOCK_OFFSET,
    )
    clock_drift: float = key("Relative drift of the hydrophone's clock.", "drift", 0.0, low=-1e-3, high=1e-3)
    ambient: bool = flag("Whether the samples contain the ambient noise of the sea.", True)
    coherent: bool = flag(
        "Whether the ambient noise at the elements is that of an isotropic sound field, with the coherence "
        "sin(kd)/(kd) at the distance d; for at most eight elements. no: it is independent at each element.",
        False,
    )
    gain_deviation: float = key(
        "Standard deviation of the gain of each channel, in dB. The seed determines the gains.",
        default=0.0,
        low=0.0,
        high=20.0,
    )
    delay_deviation: float = key(
        "Standard deviation of the delay of each channel. The seed determines the delays.",
        "time",
        0.0,
        low=0.0,
        high=1e-3,
    )
    log: int = key(
        "Number n: every n-th block of samples is logged, if the run has a log; 0 = no blocks are logged.",
        default=0,
        low=0,
        high=1_000_000,
        integer=True,
    )
    element: tuple[HydrophoneElement, ...] = children(
        HydrophoneElement,
        "Element of the hydrophone: one to 64. Without an element, there is one at the origin of S.",
    )
    elements: str = text(
        "CSV file with the columns x, y and z, whose rows are the positions of the elements in S, in m; instead of "
        "<element>.",
        "",
    )

    @property
    def element_positions(self) -> tuple[Vector, ...]:
        """Positions of the elements in the sensor frame S, in m."""
        return tuple(e.position for e in self.element) or ((0.0, 0.0, 0.0),)

    @property
    def band(self) -> tuple[float, float]:
        """Lower and upper edge of the band in Hz."""
        return self.low, self.high or MAX_BAND_SHARE * self.sampling

    @property
    def block_samples(self) -> int:
        """Number of samples of each channel in a block."""
        return round(self.sampling / self.rate)
