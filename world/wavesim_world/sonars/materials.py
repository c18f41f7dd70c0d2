"""Backscatter of surfaces: linear backscattering strength s_b (per m2 at 1 m) as a function of the angle of incidence.

The strength is ``s_b = s_diffuse + s_facet``. Sediments follow the model of APL-UW TR 9407 (1994), which is fitted from
10 to 100 kHz and extrapolated above. Other surfaces combine Lambert's law (diffuse) with facets of small slopes (smooth
surfaces). The average over larger slopes and APL's separate law for rough rock are not modelled. The facet coefficients
of concrete, wood and rubber are not validated.

A :class:`Texture` varies the strength of a bed with position, without changing the mean strength. The wavelengths of
ripples follow Wiberg & Harris (1994) for a swell with a height of 1.35 m and a period of 8 s in water 15 m deep
(orbital diameter 0.95 m): 0.62 times the orbital diameter for coarse sand, 535 grain diameters for fine sand, and their
logarithmic interpolation for medium sand. The slopes are assumed to be 40 % of those of active ripples, whose height is
0.17 wavelengths. The amplitudes of patches are assumed. They increase from mud to rock, as measured statistics of
backscatter do (K distributions; Lyons & Abraham 1999): with the shape parameter nu of a K distribution, the rms
variation is 4.3 dB times the square root of the trigamma function of nu, that is 1 dB for nu = 19 and 3.5 dB for nu =
2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

#: angles of incidence at which a table gives s_b: every degree from the normal, in rad
ANGLES = np.radians(np.arange(0.0, 91.0))
MAX_SURFACE_LOSS = 15.0  #: maximum loss in dB of a reflection at the sea surface


@dataclass(frozen=True)
class Sediment:
    """Parameters of a sediment: ratios of density and sound speed to those of water, loss parameter, spectral strength
    of the relief in cm4, and volume scattering parameter.
    """

    density: float
    speed: float
    loss: float
    relief: float
    volume: float

    @classmethod
    def from_grain_size(cls, size: float) -> Sediment:
        """Derive a sediment from its mean grain size in phi, from -1 (sandy gravel) to 9 (clay)."""
        m = size
        if m < 1.0:
            density, speed = 2.3139 - 0.17057 * m + 0.007797 * m**2, 1.2778 - 0.056452 * m + 0.002709 * m**2
        elif m < 5.3:
            density = 3.0455 - 1.1069031 * m + 0.2290201 * m**2 - 0.0165406 * m**3
            speed = 1.3425 - 0.1382798 * m + 0.0213937 * m**2 - 0.0014881 * m**3
        else:
            density, speed = 1.1565 - 0.0012973 * m, 1.0019 - 0.0024324 * m
        relief = 0.000518 if m >= 5.0 else 0.00207 * ((2.03846 - 0.26923 * m) / (1.0 + 0.076923 * m)) ** 2
        limits = ((0.0, (0.4556,)), (2.6, (0.4556, 0.0245)), (4.5, (0.1978, 0.1245)), (6.0, (8.0399, -2.5228, 0.20098)))
        terms = next((t for most, t in limits if m < most), (0.9431, -0.2041, 0.0117))
        absorbed = sum(k * m**p for p, k in enumerate(terms))
        return cls(density, speed, 0.0280 * speed * absorbed, relief, 0.001 if m >= 5.5 else 0.002)

    def backscatter(self, frequency: float, sound_speed: float, grazing: Floats) -> Floats:
        """Return the backscattering strength s_b at grazing angles in rad."""
        g = np.clip(grazing, 1e-4, math.pi / 2)
        sin, cos = np.sin(g), np.cos(g)
        k = 2.0 * math.pi * frequency / sound_speed / 100.0  # 1/cm
        index = (1.0 + 1j * self.loss) / self.speed
        below = np.sqrt(index**2 - cos**2)  # sine of the grazing angle in the bed
        y = self.density * sin / below
        reflection = (y - 1.0) / (y + 1.0)
        shape = ((self.density - 1.0) ** 2 * cos**2 + self.density**2 - index**2) / (self.density * sin + below) ** 2
        relief = self.relief / ((2.0 * k * cos) ** 2 + (k / 10.0) ** 2) ** 1.625
        rough = 4.0 * k**4 * sin**4 * np.abs(shape) ** 2 * relief
        inside = (
            5.0
            * self.loss
            * self.volume
            * np.abs(1.0 - reflection**2) ** 2
            * sin**2
            / (self.speed * math.log(10.0) * np.abs(below) ** 2 * below.imag)
        )
        steep, turn = self._steep(k, g), self._fifteen_below(k)
        share = 1.0 / (1.0 + np.exp(np.clip(80.0 * (cos - math.cos(turn)), -60.0, 60.0)))
        return np.asarray(share * steep + (1.0 - share) * rough + inside)

    def _steep(self, k: float, g: Floats) -> Floats:
        """Return the backscattering strength s_b near normal incidence, from an approximation of the Kirchhoff
        integral.
        """
        upright = (self.density - 1.0 / self.speed) / (self.density + 1.0 / self.speed)
        q = 9.3972 * self.relief * k**0.75
        spread = np.maximum(np.cos(g), 0.0) ** 2.5 + 1.6892 * q * q * np.sin(g) ** 4
        return np.asarray(1.4132 * q * upright**2 / (8.0 * math.pi * spread**1.3))

    def _fifteen_below(self, k: float) -> float:
        """Return the grazing angle at which the Kirchhoff approximation is 15 dB below its peak."""
        fine = np.linspace(math.pi / 2, 0.0, 2001)
        low = np.flatnonzero(self._steep(k, fine) < self._steep(k, fine[:1]) * 10.0**-1.5)
        return float(fine[low[0]]) if len(low) else 0.0


@dataclass(frozen=True)
class Texture:
    """Texture of a bed: rms variation of the backscattering strength in dB (0 = none), length in m of the largest
    patches, rms slope of the ripples (0 = none), their wavelength in m, and the direction across their crests in rad.
    """

    variation: float = 0.0
    scale: float = 4.0
    ripple: float = 0.0
    ripple_length: float = 0.4
    ripple_heading: float = math.radians(20.0)


@dataclass(frozen=True)
class Material:
    """Surface material: either a sediment, or Lambert's law plus facets.

    ``lambert`` is the coefficient of Lambert's law in dB; -inf = no diffuse scattering. Facets have a pressure
    reflection coefficient ``reflection`` and an rms ``slope``. ``patch`` is nu of the K distribution (0 = uniform),
    with one random number per ground cell of ``cell`` m.
    """

    name: str
    sediment: Sediment | None = None
    lambert: float = -math.inf
    reflection: float = 0.0
    slope: float = 0.1
    patch: float = 0.0
    cell: float = 0.5
    colour: tuple[float, ...] = (
        0.4,
        0.4,
        0.4,
    )  #: reflected fraction of red, green and blue light; the values of the library are estimates
    texture: Texture = Texture()

    def backscatter_table(self, frequency: float, sound_speed: float) -> Floats:
        """Return the linear backscattering strength s_b (91,) at the angles of incidence :data:`ANGLES`."""
        if self.sediment is not None:
            return self.sediment.backscatter(frequency, sound_speed, math.pi / 2 - ANGLES)
        diffuse = 10.0 ** (self.lambert / 10.0) * np.cos(ANGLES) ** 2
        return np.asarray(diffuse + facet_strength(self.reflection, self.slope, ANGLES))

    def reflected_energy(self) -> float:
        """Return the fraction of the energy that the surface reflects at normal incidence."""
        if self.sediment is None:
            return self.reflection**2
        impedance = self.sediment.density * self.sediment.speed
        return ((impedance - 1.0) / (impedance + 1.0)) ** 2


def facet_strength(reflection: float, slope: float, incidence: Floats) -> Floats:
    """Return the backscattering strength of facets: s_b = R^2/(8 pi s^2) sec^4 exp(-tan^2/(2 s^2))."""
    if not reflection:
        return np.zeros_like(incidence)
    cos = np.maximum(np.cos(incidence), 1e-6)
    tan2 = np.minimum((1.0 - cos**2) / cos**2, 1e4)
    return np.asarray(reflection**2 / (8.0 * math.pi * slope**2) * np.exp(-tan2 / (2.0 * slope**2)) / cos**4)


def sea_surface(wind: float) -> Material:
    """Return the facets of the sea surface as seen from below, for a wind speed in m/s."""
    return Material("surface", reflection=1.0, slope=math.sqrt((0.003 + 0.00512 * wind) / 2.0))


def surface_loss(frequency: float, wind: float, grazing: float) -> float:
    """Return the loss in dB of a reflection at the sea surface, caused by the bubbles below the surface (APL-UW TR
    9407). The model holds from 10 to 100 kHz and is extrapolated above. The loss is at most :data:`MAX_SURFACE_LOSS`.
    """
    strong = 1.26e-3 * max(wind, 6.0) ** 1.57 * (frequency / 1e3) ** 0.85
    calm = math.exp(min(0.0, 1.2 * (wind - 6.0)))
    return float(min(MAX_SURFACE_LOSS, strong * calm / max(math.sin(grazing), 1e-3)))


def surface_backscatter(frequency: float, wind: float) -> Floats:
    """Return the linear backscattering strength s_b (91,) of the sea surface at the angles of incidence :data:`ANGLES`:
    facets, and the bubbles below the surface.

    The bubble layer follows APL-UW TR 9407: with its optical depth b, ``s_b = 0.0136 sin g / (8 pi damping) (1 + 8 b
    e^(-2b) - e^(-4b))``. The layer also attenuates the echo of the facets, by :func:`surface_loss`.
    """
    kHz = frequency / 1e3
    vertical = (kHz / 25.0) ** 0.85 * 10.0 ** (-5.2577 + 0.4701 * min(wind, 11.0)) * max(1.0, wind / 11.0) ** 3.5
    sine = np.maximum(np.cos(ANGLES), 1e-3)  # of the grazing angle
    depth = vertical / sine
    layer = 1.0 + 8.0 * depth * np.exp(-2.0 * depth) - np.exp(-4.0 * depth)
    bubbles = 0.0136 * sine / (8.0 * math.pi * 0.0255 * kHz ** (1.0 / 3.0)) * layer
    facets = sea_surface(wind).backscatter_table(frequency, 1500.0)
    losses = [surface_loss(frequency, wind, math.pi / 2 - float(a)) for a in ANGLES]
    return np.asarray(facets * 10.0 ** (-np.array(losses) / 10.0) + bubbles)


ROCK = Sediment(2.5, 2.5, 0.01374, 0.01862, 0.002)
GRAVEL = Sediment(2.5, 1.8, 0.01374, 0.016, 0.002)
GRAINS = {
    "sandy-gravel": -1.0,
    "coarse-sand": 0.5,
    "medium-sand": 1.5,
    "fine-sand": 2.5,
    "very-fine-sand": 3.5,
    "coarse-silt": 4.5,
    "sandy-mud": 6.0,
    "clay": 9.0,
}
#: textures of the sediments in the library
TEXTURES = {
    "rock": Texture(3.5, 3.0),
    "gravel": Texture(2.2, 2.5),
    "sandy-gravel": Texture(2.0, 3.0),
    "coarse-sand": Texture(1.4, 4.0, 0.15, 0.6),
    "medium-sand": Texture(1.4, 4.0, 0.15, 0.4),
    "fine-sand": Texture(1.2, 5.0, 0.15, 0.1),
    "very-fine-sand": Texture(1.2, 5.0),
    "coarse-silt": Texture(1.0, 6.0),
    "sandy-mud": Texture(1.0, 6.0),
    "clay": Texture(0.8, 6.0),
}
#: fractions of red, green and blue light that sandy sediments and muddy sediments reflect
SAND, MUD = (0.45, 0.4, 0.3), (0.2, 0.18, 0.15)

LIBRARY: dict[str, Material] = {
    m.name: m
    for m in (
        Material("rock", ROCK, colour=(0.25, 0.24, 0.22), texture=TEXTURES["rock"]),
        Material("gravel", GRAVEL, colour=(0.3, 0.28, 0.25), texture=TEXTURES["gravel"]),
        *(
            Material(name, Sediment.from_grain_size(size), colour=SAND if size < 4.0 else MUD, texture=TEXTURES[name])
            for name, size in GRAINS.items()
        ),
        Material("steel", lambert=-25.0, reflection=0.94, slope=0.1, colour=(0.35, 0.35, 0.37)),
        Material("concrete", lambert=-20.0, reflection=0.68, slope=0.1, colour=(0.4, 0.4, 0.38)),
        Material("wood", lambert=-25.0, reflection=0.3, slope=0.1, colour=(0.3, 0.2, 0.12)),
        Material("rubber", lambert=-30.0, reflection=0.1, slope=0.1, colour=(0.05, 0.05, 0.05)),
    )
}


def typical_texture(grain: float) -> Texture:
    """Return the texture of the sediment in the library whose mean grain size is nearest to the given one (in phi)."""
    return TEXTURES[min(GRAINS, key=lambda name: abs(GRAINS[name] - grain))]


def find_material(name: str, own: dict[str, Material]) -> Material:
    """Return a material from the configuration or the library. Raises ConfigError, suggesting a similar name, if there
    is no such material.
    """
    known = {**LIBRARY, **own}
    if name not in known:
        raise ConfigError(f"unknown material '{name}'{suggest_name(name, sorted(known))}")
    return known[name]


# ------------------------------------------------------------------ closed-form target strengths, linear; rigid, ka > 1


def sphere(radius: float) -> float:
    """Return the linear target strength of a sphere: a^2/4."""
    return radius**2 / 4.0


def _sinc2(x: float) -> float:
    return 1.0 if abs(x) < 1e-9 else (math.sin(x) / x) ** 2


def cylinder(radius: float, length: float, wavelength: float, off: float = 0.0, r: float = math.inf) -> float:
    """Return the linear target strength of a cylinder: a L^2/(2 lambda) (sin x/x)^2 cos^2 b, with x = k L sin b.

    b (``off``) is the angle off broadside in rad. At short range r, L is limited to sqrt(lambda r).
    """
    seen = min(length, math.sqrt(wavelength * r))
    x = 2.0 * math.pi / wavelength * seen * math.sin(off)
    return radius * seen**2 / (2.0 * wavelength) * _sinc2(x) * math.cos(off) ** 2


def plate(width: float, height: float, wavelength: float, off: float = 0.0, r: float = math.inf) -> float:
    """Return the linear target strength of a plate: (A/lambda)^2 (sin x/x)^2. ``off`` is the angle from the normal
    (rad), in the plane that contains the normal and the width.
    """
    near = math.sqrt(wavelength * r)
    w, h = min(width, near), min(height, near)
    return (w * h / wavelength) ** 2 * _sinc2(2.0 * math.pi / wavelength * w * math.sin(off))


def trihedral(edge: float, wavelength: float) -> float:
    """Return the linear target strength of a trihedral corner: L^4/(3 lambda^2)."""
    return edge**4 / (3.0 * wavelength**2)
