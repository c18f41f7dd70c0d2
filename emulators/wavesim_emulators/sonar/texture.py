"""Texture of beds: spatial variation of the backscattering strength by patches and ripples.

The strength at a point is multiplied by ``exp(a p) exp(b q) / (P(a) Q(b))``. Here p (patches) and q (the slope of the
ripples) are random fields of the position in W, with mean 0 and rms 1, and a is the rms variation in nepers. A slope
changes the angle of incidence; b is the resulting change of the strength in nepers for the rms slope. P and Q are the
means of the exponentials over the fields. The mean strength over a large area therefore equals the strength of a
uniform bed. For ripples, ``(1 + b q/8)^8`` replaces the exponential.

The fields are periodic tiles that are computed once, from fixed random numbers. All sonars, runs and copies of a world
see the same bed. The patches are the sum of two tiles of different sizes and directions, so that their pattern does not
repeat within many kilometres. The larger tile is evaluated once for each ray. The ripples are a narrow band of
wavelengths and directions; they repeat after 48 wavelengths. Their relief casts no shadows and does not change ranges.

If a field varies within a range bin or within the width of a ray, its variation is reduced as averaging would reduce
it. The contrast then decreases, but the mean does not change.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from wavesim_emulators.sonar.types import Singles
from wavesim_kernels import randomness
from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_world.sonars.materials import Material

#: numbers of cells of a tile in each direction: patches, ripples. Tiles of 256 kB remain in the cache of a core
PATCH_CELLS, RIPPLE_CELLS = 256, 512
PATCHES = 8.0  #: number of the largest patches along a tile
RIPPLES = 48.0  #: number of ripples along a tile
STEP = 4.0 / 127.0  #: step of the integers in the tile of the ripples, as a multiple of their rms slope
SPECTRUM = 2.5  #: exponent with which the spectrum of the patches falls with the wavenumber
#: relative rms spread of the wavelengths of ripples, and rms spread of their directions in rad
RIPPLE_SPREAD, RIPPLE_TURN = 0.15, 0.18
#: maximum of b in nepers (5 dB rms), and the value below which ripples are ignored (0.35 dB rms)
STEEPEST, WEAKEST = 1.2, 0.08
MEANS = 49  #: number of entries in the table of 1/Q
#: size and rotation (rad) of the second tile of the patches, relative to the first
RATIO, TURN = 5.236, 0.66
COSINE, SINE, HALF = math.cos(TURN) / RATIO, math.sin(TURN) / RATIO, math.sqrt(0.5)
WAVENUMBER = 2.0 * math.pi * RIPPLES / RIPPLE_CELLS  #: wavenumber of the ripples in rad per cell
#: columns of a material's texture
(
    PATCH_TILE,
    CELLS_PER_M,
    RIPPLE_SLOPE,
    RIPPLE_NORTH,
    RIPPLE_EAST,
    TEXTURE_WIDTH,
) = range(6)


class Textures(NamedTuple):
    """Textures of materials (materials, TEXTURE_WIDTH): the number of the tile of the patches (-1 = none), the number
    of cells of this tile per m, the rms slope of the ripples, and a vector across their crests, whose length is the
    number of cells of their tile per m.

    ``patches`` (tiles, cells, cells) contains ``exp(a p/sqrt(2))`` for each a, divided by its mean. ``ripples`` (1, cells,
    cells) is q in steps of STEP, and ``weights`` (MEANS) is 1/Q.
    """

    materials: Floats
    patches: Singles
    ripples: Any
    weights: Floats


def textures_of(materials: list[Material]) -> Textures:
    """Return the textures of materials, followed by the sea surface, which has no texture."""
    table = np.zeros((len(materials) + 1, TEXTURE_WIDTH))
    table[-1, PATCH_TILE] = -1.0
    variations = sorted({m.texture.variation for m in materials} - {0.0})
    for row, m in zip(table, materials, strict=False):
        t = m.texture
        per_m = RIPPLE_CELLS / (RIPPLES * t.ripple_length)
        row[:] = (
            variations.index(t.variation) if t.variation else -1.0,
            PATCH_CELLS / (PATCHES * t.scale),
            t.ripple,
            per_m * math.cos(t.ripple_heading),
            per_m * math.sin(t.ripple_heading),
        )
    patches = np.array([_patches(v) for v in variations], np.float32).reshape(-1, PATCH_CELLS, PATCH_CELLS)
    return Textures(table, patches, *_ripples())


def _wavenumbers(cells: int) -> tuple[Any, Any]:
    f = np.abs(np.fft.fftfreq(cells, 1.0 / cells))
    return f[:, None], f[None, : cells // 2 + 1]


@functools.lru_cache(maxsize=16)
def _patches(variation: float) -> Singles:
    """Return a tile of patch factors with mean 1, for an rms variation in dB."""
    x, y = _wavenumbers(PATCH_CELLS)
    spectrum = (1.0 + (np.hypot(x, y) / PATCHES) ** 2) ** (-0.5 * SPECTRUM)
    spectrum[0, 0] = 0.0
    factor = np.exp(variation * math.log(10.0) / 10.0 * HALF * _random_tile(spectrum, "patches"))
    return np.asarray(factor / _between(factor).mean(), np.float32)


@functools.cache
def _ripples() -> tuple[Any, Floats]:
    """Return the tile of the ripples, and 1/Q for amplitudes from -STEEPEST to STEEPEST."""
    x, y = _wavenumbers(RIPPLE_CELLS)
    wavelength = (np.hypot(x, y) / RIPPLES - 1.0) / RIPPLE_SPREAD
    spectrum = np.exp(-0.5 * (wavelength**2 + (np.arctan2(y, x) / RIPPLE_TURN) ** 2))
    tile = np.rint(np.clip(_random_tile(spectrum, "ripples") / STEP, -127, 127)).astype(np.int8)
    between = _between(tile * STEP)
    amplitudes = np.linspace(-STEEPEST, STEEPEST, MEANS)
    return tile[None], np.array(
        [1.0 / float((np.maximum(1.0 + 0.125 * b * between, 0.0) ** 8).mean()) for b in amplitudes]
    )


def _random_tile(spectrum: Any, name: str) -> Floats:
    """Return a periodic Gaussian random field with the given power spectrum, mean 0 and rms 1."""
    cells = len(spectrum)
    keys = np.full(cells * cells, randomness.key(0, "ground", name), np.uint64)
    white = randomness.normal(keys, 0, np.arange(cells * cells)).reshape(cells, cells)
    field = np.fft.irfft2(np.fft.rfft2(white) * np.sqrt(spectrum), s=(cells, cells))
    between = _between(field)
    return np.asarray((field - between.mean()) / between.std())


def _between(tile: Any) -> Any:
    """Return the values of the bilinear interpolation of a tile at nine points in each cell."""
    a, b = tile, np.roll(tile, -1, axis=0)
    c, d = np.roll(a, -1, axis=1), np.roll(b, -1, axis=1)
    parts = (1.0 / 6.0, 0.5, 5.0 / 6.0)
    return np.stack([(1 - p) * ((1 - q) * a + q * c) + p * ((1 - q) * b + q * d) for p in parts for q in parts]).astype(
        float
    )


@device_function
def tile_value(tiles: Any, tile: int, x: float, y: float) -> float:
    """Return the value of a periodic tile at a point, by bilinear interpolation; x and y are in cells."""
    mask = tiles.shape[1] - 1
    i, j = int(np.floor(x)), int(np.floor(y))
    p, q = x - i, y - j
    i, j = i & mask, j & mask
    k, m = (i + 1) & mask, (j + 1) & mask
    a, b = float(tiles[tile, i, j]), float(tiles[tile, i, m])
    c, d = float(tiles[tile, k, j]), float(tiles[tile, k, m])
    return (1.0 - p) * (a + q * (b - a)) + p * (c + q * (d - c))


@device_function
def nearest_value(tiles: Any, tile: int, x: float, y: float) -> float:
    """Return the value of a periodic tile in the cell that contains a point. The mean is the same as with
    interpolation.
    """
    mask = tiles.shape[1] - 1
    return float(tiles[tile, int(np.floor(x)) & mask, int(np.floor(y)) & mask])


@device_function
def ripple_amplitude(ahead: float, beside: float, slope: float, steepness: float, along: float, across: float) -> float:
    """Return b for a ray: the change of the strength in nepers for the rms slope of the ripples.

    ``ahead`` and ``beside`` are the components of the vector across the crests, in cells per m, in the direction of the
    ray on the bed, and at right angles to it. ``steepness`` is the rate in nepers/rad at which the strength falls with
    the angle of incidence. ``along`` and ``across`` are the lengths on the bed, in these two directions, over which the
    ripples are averaged.
    """
    # the mean of a wave over a length L is sin(KL/2)/(KL/2), which is close to 1/(1 + (KL)^2/24)
    averaged = ((ahead * along) ** 2 + (beside * across) ** 2) * (WAVENUMBER * WAVENUMBER / 24.0)
    b = steepness * slope * ahead / (np.sqrt(ahead * ahead + beside * beside) * (1.0 + averaged) ** 2)
    return min(max(b, -STEEPEST), STEEPEST) if abs(b) > WEAKEST else 0.0


@device_function
def ripple_weight(weights: Floats, b: float) -> float:
    """Return 1/Q for an amplitude b."""
    x = (b + STEEPEST) * ((MEANS - 1) / (2.0 * STEEPEST))
    k = min(max(int(x), 0), MEANS - 2)
    return float(weights[k] + (x - k) * (weights[k + 1] - weights[k]))


@device_function
def wide_patch_factor(patches: Singles, tile: int, x: float, y: float) -> float:
    """Return the factor of the larger tile of the patches at a point; x and y are in cells of the smaller tile."""
    return tile_value(patches, tile, COSINE * x - SINE * y, SINE * x + COSINE * y)


@device_function
def ripple_factor(ripples: Any, x: float, y: float, b: float) -> float:
    """Return the factor of the ripples at a point, before the division by Q; x and y are in cells of their tile."""
    f = max(1.0 + 0.125 * STEP * b * tile_value(ripples, 0, x, y), 0.0)
    f *= f
    f *= f
    return f * f
