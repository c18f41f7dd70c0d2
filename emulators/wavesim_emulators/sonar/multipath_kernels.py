"""Kernels of multipath: ghosts of echoes, and their energy in range bins.

The columns of an echo are range (m), energy without the beam pattern across the array, and unit vector in W from the
sonar. The columns of a ghost are range (m), energy without the beam pattern along the array, sine of the angle off
broadside at which it arrives, and mean additional range (m) due to the roughness of the surface.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators.sonar.types import Singles
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Floats

GHOSTS = 5  #: maximum number of ghosts of an echo
WEAKEST = 1e-7  #: energy of a ghost, relative to the echo on the axis of the beam, below which the ghost is omitted
TAIL = 4.0  #: length of the tail of a ghost, as a multiple of its mean; its last bin receives the rest


class Reflections(NamedTuple):
    """Properties of the water and of the beam. ``water`` contains the depth of the sonar and of the bed (m; NaN = no
    bed), the surface loss in dB at normal incidence and its maximum, the variance of the slopes of the surface, the
    fraction of the energy that the bed reflects, the decay of the energy over range (1/m), the elevation of the beam
    axis (rad), and the number of entries of ``pattern`` per unit of the sine of the elevation. ``pattern`` is the beam
    pattern across the array.
    """

    water: Floats
    pattern: Floats


@device_function
def elevation_gain(along: float, across: float, axis: float, scale: float, pattern: Floats) -> float:
    """Return the one-way beam pattern for a direction, given its two components in the plane across the array."""
    e = np.arctan2(across, along) - axis
    if abs(e) >= 0.5 * np.pi:
        return 0.0
    x = abs(np.sin(e)) * scale
    i = int(x)
    return float(pattern[i] + (x - i) * (pattern[i + 1] - pattern[i])) if i < len(pattern) - 1 else 0.0


@kernel
def find_ghosts(R: Floats, echoes: Floats, reflections: Reflections, reach: float, ghosts: Floats) -> int:
    """Find the ghosts of echoes up to a maximum range, and return their number. ``R`` contains the axes of the fan in
    W.
    """
    water, pattern = reflections.water, reflections.pattern
    own, depth, loss_dB, most_dB, slopes, bed, decay, axis, scale = (
        water[0], water[1], water[2], water[3], water[4], water[5], water[6], water[7], water[8],
    )  # fmt: skip
    count = 0
    n = np.empty(3)
    for i in range(len(echoes)):
        r, energy = echoes[i, 0], echoes[i, 1]
        x, y, z = r * echoes[i, 2], r * echoes[i, 3], r * echoes[i, 4]
        for k in range(3):
            n[k] = (R[0, k] * x + R[1, k] * y + R[2, k] * z) / r
        direct, u = elevation_gain(n[0], n[2], axis, scale, pattern), n[1]
        for way in range(2):
            # vertical distance to the image in the surface, or in the bed and then the surface
            height = 2.0 * own + z if way == 0 else 2.0 * depth + z
            if not height > 0.0:
                continue
            s = np.sqrt(x * x + y * y + height * height)
            if 0.5 * (r + s) >= reach:
                continue
            down = -height if way == 0 else height
            for k in range(3):
                n[k] = (R[0, k] * x + R[1, k] * y + R[2, k] * down) / s
            other, v = elevation_gain(n[0], n[2], axis, scale, pattern), n[1]
            factor = 10.0 ** (-0.1 * min(loss_dB * s / height, most_dB)) * (r / s) ** 2 * np.exp(-0.5 * decay * (s - r))
            if way == 1:
                factor *= bed
            before = (own if way == 0 else 2.0 * depth - own) * s / height  # length up to the reflection at the surface
            longer = 4.0 * slopes * before * (s - before) / s
            if direct * other * factor > WEAKEST:
                for arrival in range(2):
                    ghosts[count, 0], ghosts[count, 1] = 0.5 * (r + s), energy * direct * other * factor
                    ghosts[count, 2], ghosts[count, 3] = u if arrival == 0 else v, 0.5 * longer
                    count += 1
            if way == 0 and s < reach and (other * factor) ** 2 > WEAKEST:
                ghosts[count, 0], ghosts[count, 1] = s, energy * (other * factor) ** 2
                ghosts[count, 2], ghosts[count, 3] = v, longer
                count += 1
    return count


@device_function
def add_tail(energy: Singles, row: int, ghost: Floats, size: float) -> None:
    """Add the energy of a ghost to the bins of a row. The part of its tail beyond the last bin is omitted."""
    bins = energy.shape[1]
    first = int(ghost[0] / size)
    longer = max(ghost[3], 1e-3 * size)
    left = ghost[1]  # energy beyond the start of the bin
    beyond = left * np.exp(-((first + 1) * size - ghost[0]) / longer)
    decay = np.exp(-size / longer)
    last = int((ghost[0] + TAIL * longer) / size)
    for i in range(first, min(last, bins - 1) + 1):
        energy[row, i] += left - beyond if i < last else left
        left, beyond = beyond, beyond * decay


@kernel
def add_ghosts(ghosts: Floats, angle: float, step: float, size: float, energy: Singles) -> None:
    """Add ghosts to the energy (columns, bins) of the fan. ``angle`` is the angle off broadside of the first column,
    ``step`` the angle between columns (rad), and ``size`` the bin size (m).
    """
    for i in range(len(ghosts)):
        column = int(np.floor((np.arcsin(min(max(ghosts[i, 2], -1.0), 1.0)) - angle) / step + 0.5))
        if 0 <= column < energy.shape[0] and ghosts[i, 0] < energy.shape[1] * size:
            add_tail(energy, column, ghosts[i], size)


@kernel
def ghost_profile(ghost: Floats, size: float, profile: Singles) -> None:
    """Compute the energy of one ghost in range bins (1, bins)."""
    profile[:] = 0.0
    if ghost[0] < profile.shape[1] * size:
        add_tail(profile, 0, ghost, size)
