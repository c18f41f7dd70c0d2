"""Parts of the sound that a moving, rough surface returns along one path: a mirror part, a coherent part and facets;
compiled.

The Rayleigh parameter R of a path is the standard deviation of its phase: R^2 is the sum of (2 k s sin)^2 over its
bounces off the surface, with the wave number k of the sound, the standard deviation s of the elevation and the grazing
angle. The share of the scattering, w, increases smoothly from 0 at R = 0.5 to 1 at R = 2. The sound then consists of
these parts:

    mirror     amplitude sqrt(1 - w): the reflection in the moving surface itself (Fermat's path, if it is unique)
    coherent   amplitude (1 - sqrt(1 - w)) exp(-R^2/2): the reflection in the mean surface (Eckart 1953)
    facets     power w (1 - exp(-R^2)), in equal shares, with random phases: points of the moving surface in the first
               Fresnel zones around the point of reflection

The phase of the mirror part has the standard deviation R, so its mean is exp(-R^2/2). Therefore, the mean pressure is
exp(-R^2/2) and the mean power is 1 for every R.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.tables import Table, value
from wavesim_server.acoustics.moving_surface import SurfaceMotion, sea_period_at, still_level_at, surface_at
from wavesim_server.acoustics.types import Record, Records
from wavesim_server.elementary import exp, sin_cos
from wavesim_server.rng import uniform

FACETS = 16  #: number of facets of a path
PARTS = FACETS + 2  #: maximum number of parts of a path
MIRROR, COHERENT_PART, FIRST_FACET = range(3)  #: numbers of the parts
FRESNEL_ZONES = 4.0  #: number of Fresnel zones over which the facets are distributed
#: Rayleigh parameters: below the first, there are no facets; above the second, there is no mirror part
MIRROR_LIMIT, FACET_LIMIT = 0.5, 2.0
#: focusing below which the mirror part follows Fermat's path, and above which it does not; see `fermat_weight`
UNIQUE_PATH, FOCUSED_PATHS = 0.8, 1.2
GOLDEN_ANGLE = 2.399963229728653  #: angle in rad between successive facets, as between the seeds of a sunflower
MAX_BOUNCES = 8  #: maximum number of reflections off the surface whose motion a path follows

BOUNCE = Table(
    "bounce",
    "A reflection off the surface, as if the surface were flat.",
    "medium",
    (
        value("x", "m", "Position, W."),
        value("y", "m", ""),
        value("delay", "s", "Time since the emission."),
        value("north", "", "Direction of the sound before the reflection, W: horizontal part."),
        value("east", "", ""),
        value("sine", "", "Sine of the grazing angle."),
        value("speed", "m/s", "Sound speed at the surface."),
        value("before", "m", "Length of the path since the last reflection off the surface, or since the source."),
        value("after", "m", "Length of the path up to the next reflection off the surface, or up to the receiver."),
    ),
)
PART = Table(
    "part",
    "A part of the sound that arrives along a path.",
    "medium",
    (
        value("delay", "s", "Delay relative to the path over a flat surface at rest."),
        value("amplitude", "", "Amplitude relative to the reflection off a flat surface."),
        value("phase", "rad", "Additional phase of the pressure at the carrier."),
        value("doppler", "", "Factor by which the moving surface multiplies the frequency."),
    ),
)


class Stream(NamedTuple):
    """Random numbers of one signal on one path: key and counter. The parts of the path use the indices from
    FIRST_INDEX.
    """

    key: np.uint64
    counter: int


FIRST_INDEX = 64  #: first index of the random numbers for the parts; the reception uses the indices below it


class ScatteringShares(NamedTuple):
    """Rayleigh parameter of a path, share of the scattering, and square of the coherent factor, exp(-R^2)."""

    rayleigh: float
    scattered: float
    coherent: float


class PartMotion(NamedTuple):
    """Delay in s of a part relative to the flat surface, and factor by which the surface multiplies its frequency."""

    delay: float
    doppler: float


@device_function
def shares_of(surface: SurfaceMotion, bounces: Records, count: int, frequency: float) -> ScatteringShares:
    """Return the shares of the parts of a path with ``count`` bounces (records BOUNCE) at a frequency in Hz."""
    square = 0.0
    for k in range(count):
        deviation = surface.periods[sea_period_at(surface, bounces[k].delay)].deviation
        phase = 4.0 * math.pi * frequency / bounces[k].speed * deviation * bounces[k].sine
        square += phase * phase
    r = math.sqrt(square)
    u = min(max((r - MIRROR_LIMIT) / (FACET_LIMIT - MIRROR_LIMIT), 0.0), 1.0)
    return ScatteringShares(r, u * u * (3.0 - 2.0 * u), exp(-min(square, 700.0)))


@device_function
def fermat_weight(surface: SurfaceMotion, bounces: Records, count: int) -> float:
    """Return the weight (0 to 1) of Fermat's path in the motion of the mirror part.

    A surface with the curvature q focuses sound that is reflected at distances a and b from the ends of its path if 2 q
    a b / ((a + b) sin) > 1. There are then several such paths, and which one a search finds changes abruptly as the
    nodes move. If the surface is nearly smooth for the sound, such short waves only modulate its phase: the delay
    follows from the height at the point of reflection. The weight changes smoothly between these two cases.
    """
    focusing = 0.0
    for k in range(count):
        b = bounces[k]
        q = surface.periods[sea_period_at(surface, b.delay)].curvature
        focusing = max(focusing, 2.0 * q * b.before * b.after / ((b.before + b.after) * max(b.sine, 1e-9)))
    return min(max((FOCUSED_PATHS - focusing) / (FOCUSED_PATHS - UNIQUE_PATH), 0.0), 1.0)


@device_function
def blend(one: PartMotion, other: PartMotion, weight: float) -> PartMotion:
    """Return the weighted mean of two motions; ``weight`` (0 to 1) is the weight of the first."""
    rest = 1.0 - weight
    return PartMotion(weight * one.delay + rest * other.delay, weight * one.doppler + rest * other.doppler)


@device_function
def dominant_part(shares: ScatteringShares, stream: Stream) -> int:
    """Draw the part that determines the time and the Doppler shift of a signal. The probability of each part is its
    share of the power.
    """
    if shares.scattered == 0.0:
        return MIRROR
    u = uniform(stream.key, stream.counter, FIRST_INDEX)
    facets = shares.scattered * (1.0 - shares.coherent)
    if u < facets:
        return FIRST_FACET + min(int(u / facets * FACETS), FACETS - 1)
    return MIRROR if u < facets + 1.0 - shares.scattered else COHERENT_PART


@device_function
def facet_offset(bounce: Record, wavelength: float, facet: int, turn: float) -> tuple[float, float]:
    """Return the horizontal position (north, east) of a facet relative to the point of reflection. The facets fill the
    first Fresnel zones, an ellipse, evenly; ``turn`` (0 to 1) turns their pattern.
    """
    shorter = min(bounce.before, bounce.after)
    across = math.sqrt(FRESNEL_ZONES * wavelength * bounce.before * bounce.after / (bounce.before + bounce.after))
    along = min(across / max(bounce.sine, 1e-6), 0.5 * shorter)
    across = min(across, 0.5 * shorter)
    radius = math.sqrt((facet + 0.5) / FACETS)
    sine, cosine = sin_cos(GOLDEN_ANGLE * facet + 2.0 * math.pi * turn)
    level = math.sqrt(bounce.north * bounce.north + bounce.east * bounce.east)
    north, east = (bounce.north / level, bounce.east / level) if level > 1e-9 else (1.0, 0.0)
    u, v = along * radius * cosine, across * radius * sine
    return u * north - v * east, u * east + v * north


@device_function
def over_point(
    surface: SurfaceMotion, bounce: Record, late: float, north: float, east: float, still: bool
) -> tuple[float, float]:
    """Return (delay in s, Doppler factor) of the path over a point of the surface that is displaced horizontally from
    the point of reflection, relative to the path over the flat surface.

    ``late`` is the delay in s of the earlier bounces. If ``still`` is true, the surface is the still-water level. On
    both sides of the point of reflection, the path is straight up to the next reflection.
    """
    before, after, sine, speed = bounce.before, bounce.after, bounce.sine, bounce.speed
    along = bounce.north * north + bounce.east * east
    square = north * north + east * east
    level = still_level_at(surface, bounce.delay + late)
    first = _stretch(before, along - sine * level, square + level * level)
    when = bounce.delay + late + first / speed
    z, rise = level, 0.0
    if not still:
        at = surface_at(surface, when, bounce.x + north, bounce.y + east)
        z, rise = at.z, at.rise
        first = _stretch(before, along - sine * z, square + z * z)
    second = _stretch(after, -along - sine * z, square + z * z)
    # the surface moves vertically; the sound comes up to it and goes down from it
    v = -rise / speed
    up = (z - before * sine) / (before + first)
    down = (after * sine - z) / (after + second)
    return (first + second) / speed, (1.0 - v * up) / (1.0 - v * down)


@device_function
def _stretch(length: float, along: float, square: float) -> float:
    """Return the increase in length of a vector when a displacement is added to it. The displacement has the component
    ``along`` the vector and the squared length ``square``.
    """
    change = 2.0 * length * along + square
    return change / (math.sqrt(max(length * length + change, 0.0)) + length)


@device_function
def part_motion(
    surface: SurfaceMotion, bounces: Records, count: int, frequency: float, stream: Stream, part: int
) -> PartMotion:
    """Return delay and Doppler factor of a part of a path. For the mirror part, the path is reflected at the point of
    reflection of a flat surface, raised to the present height of the surface there.
    """
    delay, doppler = 0.0, 1.0
    for k in range(count):
        north = east = 0.0
        if part >= FIRST_FACET:
            turn = uniform(stream.key, stream.counter, FIRST_INDEX + 1 + k)
            north, east = facet_offset(bounces[k], bounces[k].speed / frequency, part - FIRST_FACET, turn)
        more, factor = over_point(surface, bounces[k], delay, north, east, part == COHERENT_PART)
        delay, doppler = delay + more, doppler * factor
    return PartMotion(delay, doppler)


@device_function
def fill_parts(
    surface: SurfaceMotion,
    bounces: Records,
    count: int,
    frequency: float,
    stream: Stream,
    mirror: PartMotion,
    parts: Records,
) -> int:
    """Fill ``parts`` (records PART) with all parts of the sound of a path; return their number.

    ``bounces`` contains the ``count`` reflections off the surface, and ``mirror`` the motion of the mirror part. Parts
    without power are left out.
    """
    shares, n = shares_of(surface, bounces, count, frequency), 0
    w = shares.scattered
    if w < 1.0:
        n = _add_part(parts, n, mirror, math.sqrt(1.0 - w), 0.0)
    if w > 0.0:
        flat = part_motion(surface, bounces, count, frequency, stream, COHERENT_PART)
        n = _add_part(parts, n, flat, (1.0 - math.sqrt(1.0 - w)) * math.sqrt(shares.coherent), 0.0)
        amplitude = math.sqrt(w * (1.0 - shares.coherent) / FACETS)
        for facet in range(FACETS):
            motion = part_motion(surface, bounces, count, frequency, stream, FIRST_FACET + facet)
            turn = uniform(stream.key, stream.counter, FIRST_INDEX + 1 + MAX_BOUNCES + facet)
            n = _add_part(parts, n, motion, amplitude, 2.0 * math.pi * turn)
    return n


@device_function
def _add_part(parts: Records, n: int, motion: PartMotion, amplitude: float, phase: float) -> int:
    parts[n].delay, parts[n].doppler = motion.delay, motion.doppler
    parts[n].amplitude, parts[n].phase = amplitude, phase
    return n + 1


@device_function
def sum_of_parts(parts: Records, count: int, frequency: float, delay: float) -> tuple[float, float]:
    """Return (real part, imaginary part) of the sum of all parts, relative to a reflection off a flat surface that
    arrives with the given delay in s.

    Pressures vary as ``exp(+i w t)``, so a delay reduces the phase.
    """
    real = imaginary = 0.0
    for k in range(count):
        cycles = frequency * (parts[k].delay - delay)
        sine, cosine = sin_cos(parts[k].phase - 2.0 * math.pi * (cycles - math.floor(cycles)))
        real += parts[k].amplitude * cosine
        imaginary += parts[k].amplitude * sine
    return real, imaginary
