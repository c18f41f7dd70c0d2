"""Kernel of 3D sonars: the strongest echo in each beam."""

from __future__ import annotations

from typing import NamedTuple

from wavesim_emulators.sonar.types import Ints32
from wavesim_kernels.compiler import kernel
from wavesim_sdk.arrays import Floats


class RayEchoes(NamedTuple):
    """Echoes of a grid of rays (rows, columns): range (m), energy (linear; 0 = no echo), and the range interval (m)
    over which the energy is spread. This interval is the length of the pulse, or the interval that the width of the ray
    covers.
    """

    range: Floats
    energy: Floats
    extent: Floats


@kernel
def find_strongest_echoes(rays: RayEchoes, weights: Floats, pulse: float, power: Floats, ray: Ints32) -> None:
    """Find the strongest echo in each beam (rows, columns).

    ``weights`` (down, across) is the pattern of a beam over the rays around its axis. The beam of pixel (i, j) consists
    of the rays of the grid that start at (i, j), so the grid of rays is larger than the image. The strongest ray in a
    beam gives the range of the pixel; ``ray`` receives the index of this ray in the flattened grid (-1 = no echo).
    ``power`` receives the energy of all rays of the beam in the range cell of length ``pulse`` around this range.
    """
    r, energy, extent = rays.range, rays.energy, rays.extent
    columns = r.shape[1]
    for i in range(power.shape[0]):
        for j in range(power.shape[1]):
            best, row, column = 0.0, -1, -1
            for a in range(weights.shape[0]):
                for b in range(weights.shape[1]):
                    density = weights[a, b] * energy[i + a, j + b] / extent[i + a, j + b]
                    if density > best:
                        best, row, column = density, i + a, j + b
            ray[i, j], power[i, j] = -1, 0.0
            if row < 0:
                continue
            total, low = 0.0, r[row, column] - 0.5 * pulse
            for a in range(weights.shape[0]):
                for b in range(weights.shape[1]):
                    if energy[i + a, j + b] > 0.0:
                        length = extent[i + a, j + b]
                        first = r[i + a, j + b] - 0.5 * length
                        covered = min(first + length, low + pulse) - max(first, low)
                        if covered > 0.0:
                            total += weights[a, b] * energy[i + a, j + b] * covered / length
            ray[i, j], power[i, j] = row * columns + column, total
