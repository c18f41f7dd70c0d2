"""Design of a configured sonar, with all parameters resolved, and its rays."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_world.sonars import patterns
from wavesim_world.sonars.presets import Preset

RAYS = 44  #: number of rays of equal width around the axis of a fan, per column of an image
#: numbers of additional rays below and above the central RAYS rays, up to the end of the first sidelobe; their widths
#: increase outwards
RAYS_BELOW, RAYS_ABOVE = 16, 5
#: numbers of rays on one side of a side-scan sonar: rays down in equal steps of range, and rays up to the surface
SIDE_RAYS, SIDE_UP = 448, 64
SIDE_COLUMNS = 3
PENCIL_COLUMNS = 5
HEIGHT = 1.3  #: angular height that the narrow rays of a fan cover, as a multiple of the fan's beam width
WIDE = 1.2  #: half width of the angle that the rays of a pencil beam cover, in units of lambda/L
ACROSS = 3  #: number of rays of a sounding in each direction, across and along the track


@dataclass(frozen=True)
class SonarDesign:
    """All properties of a sonar except its mount. Levels are in dB re 1 uPa at 1 m, other values in SI units and rad."""

    preset: Preset
    range: float
    bins: int
    sound_speed: float = 1500.0
    absorption: float = 0.0  #: absorption, dB/m
    gain: float = 0.0  #: fixed gain, dB
    tvg: float = 30.0  #: coefficient X of the time-varying gain X log r
    hold: float = math.inf  #: range in m beyond which the gain stays constant
    floor: float = 60.0  #: level in dB that maps to sample value 0
    span: float = 66.0  #: range of levels in dB from sample value 0 to the maximum
    bits: int = 8
    volume: float = -70.0  #: volume scattering strength S_v, dB
    noise: bool = True
    speckle: bool = True
    surface: bool = True
    labels: bool = False
    stabilised: bool = True
    equidistant: bool = False
    assumed_speed: float = (
        0.0  #: sound speed that a multibeam echosounder assumes at its array, m/s; 0 = the true sound speed
    )
    minimum: float = 0.0
    multipath: bool = True

    @functools.cached_property
    def wavelength(self) -> float:
        """Wavelength of the sonar in m."""
        return self.sound_speed / self.preset.frequency

    @functools.cached_property
    def bin(self) -> float:
        """Length of a range bin in m."""
        return self.range / self.bins

    @functools.cached_property
    def pulse(self) -> float:
        """Range resolution c/2B in m."""
        return self.sound_speed / (2.0 * self.preset.bandwidth)

    @functools.cached_property
    def array(self) -> float:
        """Length of the array in m."""
        return patterns.length(self.preset.beam, self.wavelength, self.preset.shading)

    @functools.cached_property
    def height(self) -> float:
        """Length of the array across the beams in m."""
        return patterns.length(self.preset.vertical, self.wavelength, "none")

    @functools.cached_property
    def ping_time(self) -> float:
        """Time from the transmission to the last echo in s."""
        return 2.0 * self.range / self.sound_speed

    @functools.cached_property
    def top(self) -> int:
        """Maximum sample value of a bin."""
        return int((1 << self.bits) - 1)

    @functools.cached_property
    def ranges(self) -> Floats:
        """Ranges of the bin centres (bins,) in m."""
        return np.asarray((np.arange(self.bins) + 0.5) * self.bin)

    @functools.cached_property
    def gain_dB(self) -> Floats:
        """Gain in dB of each bin: X log r + 2 alpha r + G, constant beyond the range ``hold``."""
        r = np.minimum(np.maximum(self.ranges, self.bin), self.hold)
        return np.asarray(self.tvg * np.log10(r) + 2.0 * self.absorption * r + self.gain)

    @functools.cached_property
    def envelope(self) -> Floats:
        """Squared envelope of the pulse, sampled at the bins. The pulse is Gaussian, with a width of 0.886 c/2B at -3
        dB. The samples are scaled such that the level of a bed does not depend on the length of the bins. If the bins
        are not shorter than the pulse, the result is a single 1.
        """
        if self.bin >= 0.99 * self.pulse:
            return np.ones(1)
        half = math.ceil(1.6 * self.pulse / self.bin)
        x = np.arange(-half, half + 1) * self.bin / self.pulse
        shape = np.exp(-4.0 * math.log(2.0) * (x / patterns.HALF_POWER) ** 2)
        return np.asarray(shape * (self.pulse / self.bin) / shape.sum())

    @functools.cached_property
    def noise_power(self) -> float:
        """Noise power per resolved range cell, in linear units: the thermal noise in the band minus the gain of a beam,
        plus the electronic noise floor. The noise of a bin that is longer than a cell is the sum over its cells.
        """
        p = self.preset
        thermal = -15.0 + 20.0 * math.log10(p.frequency * 1e-3) + 10.0 * math.log10(p.bandwidth)
        solid = max(self.preset.beam * self.preset.vertical, 1e-9)
        directed = thermal - max(0.0, 10.0 * math.log10(4.0 * math.pi / solid))
        cells = max(1.0, self.bin / self.pulse)
        return float(cells * (10.0 ** (directed / 10.0) + 10.0 ** (p.noise / 10.0)))

    @functools.cached_property
    def energy_per_ray(self) -> float:
        """Source level in linear units."""
        return float(10.0 ** (self.preset.source_level / 10.0))

    @functools.cached_property
    def decay(self) -> float:
        """Two-way decay constant of energy over range, 1/m: the energy falls as 10^(-2 alpha r/10)."""
        return float(2.0 * self.absorption * math.log(10.0) / 10.0)


@dataclass(frozen=True)
class RayFan:
    """Rays of a fan: angles off broadside, elevations, the angular widths of both, and beam patterns (linear)."""

    angle: Floats
    du: Floats
    e: Floats
    de: Floats
    gain_u: Floats
    gain_e: Floats

    @functools.cached_property
    def u(self) -> Floats:
        return np.sin(self.angle)


def cells(half: float, count: int) -> tuple[Floats, float]:
    """Return the centres and the width of equal cells from -half to half."""
    width = 2.0 * half / count
    return np.asarray((np.arange(count) + 0.5) * width - half, np.float64), width


def mean_pattern(centres: Floats, width: float, scale: float, shading: str, power: int, shift: float = 0.0) -> Floats:
    """Return the beam pattern averaged over angular cells. With ``power`` 1, this is the pattern for transmission only.
    With ``power`` 2, it also includes reception, whose pattern is offset by ``shift`` in u, the sine of the angle.
    """
    fine = (np.arange(41) + 0.5) / 41.0 - 0.5
    u = np.sin(centres[:, None] + fine * width)
    b = patterns.line(u * scale, shading)
    if power == 2:
        b = b * patterns.line((u + shift) * scale, shading)
    return np.asarray(b.mean(axis=1))


def fan_elevations(d: SonarDesign) -> tuple[Floats, Floats, Floats]:
    """Return the elevation, the width and the two-way beam pattern of each ray of a fan. The rays cover the main lobe and
    the first sidelobes.
    """
    half, pitch = 0.5 * HEIGHT * d.preset.vertical, HEIGHT * d.preset.vertical / RAYS
    end = math.asin(min(0.99, 2.0 * d.wavelength / d.height))
    below, above = (half + np.cumsum(widening(pitch, n, end - half)) for n in (RAYS_BELOW, RAYS_ABOVE))
    edges = np.concatenate([-above[::-1], np.linspace(-half, half, RAYS + 1), below])
    e, de = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    fine = (np.arange(9) + 0.5) / 9.0 - 0.5
    u = np.sin(np.clip(e[:, None] + fine * de[:, None], -0.5 * math.pi, 0.5 * math.pi))
    return e, de, np.asarray((patterns.line(u * d.height / d.wavelength) ** 2).mean(axis=1))


def widening(first: float, count: int, total: float) -> Floats:
    """Return widths that increase by the same factor from one to the next, and whose sum is ``total``. If ``count``
    widths equal to ``first`` already exceed ``total``, all widths are ``first``.
    """
    low, high = 1.0, 4.0
    for _ in range(50):
        q = 0.5 * (low + high)
        low, high = (q, high) if first * sum(q**i for i in range(1, count + 1)) < total else (low, q)
    return np.asarray(first * low ** np.arange(1, count + 1))


def image_rays(d: SonarDesign) -> RayFan:
    """Return the rays of a forward-looking sonar (or of a multibeam echosounder's water column), in columns that cover
    the sector.
    """
    p = d.preset
    count = max(8, min(p.beams, math.ceil(2.25 * p.sector / p.beam)))
    angle, width = cells(0.5 * p.sector, count)
    e, de, gain = fan_elevations(d)
    return RayFan(angle, np.full(count, width), e, de, np.ones(count), gain)


def pencil_rays(d: SonarDesign) -> RayFan:
    """Return the rays of a scanning sonar."""
    half = math.asin(min(0.99, WIDE * d.wavelength / d.array))
    angle, width = cells(half, PENCIL_COLUMNS)
    e, de, gain = fan_elevations(d)
    return RayFan(angle, np.full(PENCIL_COLUMNS, width), e, de, np.ones(PENCIL_COLUMNS), gain)


def side_rays(d: SonarDesign, altitude: float, roll: float) -> RayFan:
    """Return the rays of one side of a side-scan sonar: some in equal steps of range over a level bed ``altitude`` m
    below the sonar, and some upwards. ``roll`` is the angle of the side below the horizontal.
    """
    angle, width = cells(WIDE * d.wavelength / d.array, SIDE_COLUMNS)
    h = min(max(altitude, 0.02 * d.range), 0.999 * d.range)
    r = np.linspace(h, d.range, SIDE_RAYS + 1)
    edges = np.arcsin(np.clip(h / r, -1.0, 1.0))  # from 90 deg up to the last ray on the bed
    up = np.linspace(edges[-1], -0.5 * math.pi, SIDE_UP + 1)[1:]
    edges = np.concatenate([edges, up]) - roll
    e, de = 0.5 * (edges[:-1] + edges[1:]), edges[:-1] - edges[1:]
    gain = patterns.line(np.sin(e - d.preset.tilt) * d.height / d.wavelength) ** 2
    gain = np.where(np.abs(e - d.preset.tilt) < 0.5 * math.pi, gain, 0.0)
    return RayFan(angle, np.full(SIDE_COLUMNS, width), e, de, np.ones(SIDE_COLUMNS), gain)


def normalised_weights(weights: Floats, width: float, energy: float) -> Floats:
    """Return the weights of a few cells of the pattern, scaled such that their sum is the energy of the whole pattern,
    including the side lobes.
    """
    return np.asarray(weights * energy / (weights.sum() * width))


def beam_angles(d: SonarDesign) -> Floats:
    """Return the beam angles across the track, from port to starboard, that a multibeam echosounder assumes."""
    half = 0.5 * d.preset.sector
    if d.equidistant:
        return np.asarray(np.arctan(np.linspace(-math.tan(half), math.tan(half), d.preset.beams)))
    return np.linspace(-half, half, d.preset.beams)


def sounding_rays(d: SonarDesign, angles: Floats) -> RayFan:
    """Return nine rays per beam, from three angles across the track and three along it. Their weights are computed from
    the beam patterns.
    """
    half = WIDE * d.wavelength / d.array
    off, width = cells(half, ACROSS)
    weight = normalised_weights(
        mean_pattern(off, width, d.array / d.wavelength, d.preset.shading, 1), width, d.wavelength / d.array
    )
    stretch = 1.0 / np.maximum(np.cos(angles), 0.05)  # the projected length of a steered array is shorter
    angle = (angles[:, None] + stretch[:, None] * off).ravel()
    along, de = cells(WIDE * d.wavelength / d.height, ACROSS)
    gain = normalised_weights(mean_pattern(along, de, d.height / d.wavelength, "none", 1), de, d.wavelength / d.height)
    angle = np.clip(angle, -1.55, 1.55)
    return RayFan(
        angle, np.repeat(stretch * width, ACROSS), along, np.full(ACROSS, de), np.tile(weight, len(angles)), gain
    )
