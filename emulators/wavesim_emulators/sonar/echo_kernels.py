"""Compiled kernels for the energy of the rays over range: echoes of materials and textures in range bins.

Levels are linear. The geometry of the rays is that of :mod:`~wavesim_emulators.sonar.ray_kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wavesim_emulators.sonar.ray_kernels import BED, FAR, FIXED, SURFACE, Bed, Fan, FanHits, material_at
from wavesim_emulators.sonar.texture import (
    CELLS_PER_M,
    PATCH_TILE,
    RIPPLE_EAST,
    RIPPLE_NORTH,
    RIPPLE_SLOPE,
    Textures,
    nearest_value,
    ripple_amplitude,
    ripple_factor,
    ripple_weight,
    tile_value,
    wide_patch_factor,
)
from wavesim_emulators.sonar.types import Singles
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the random numbers with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_kernels.randomness import splitmix64
from wavesim_sdk.arrays import Floats, Ints


class FanWeights(NamedTuple):
    """Angular widths of the rays of a fan, off broadside and in elevation (rad), and their beam patterns (linear).

    ``edges`` (columns, rays, 2) contains the elevations of the edges of each ray relative to its own elevation, towards
    the previous ray and towards the next one. If its length is 0, each ray is in the middle of its width ``de``.
    """

    du: Floats
    de: Floats
    gain_u: Floats
    gain_e: Floats
    edges: Floats


class Backscatter(NamedTuple):
    """Backscattering strengths s_b of each material for each degree of incidence (materials, 91), and the random
    patches and the textures that vary these strengths. The patches are given by the quantiles of their factor, the size
    of their cells (m, 0 = no patches), and the key of their random number generator.
    """

    tables: Floats
    patches: Floats
    cells: Floats
    key: np.uint64
    textures: Textures


class EchoPath(NamedTuple):
    """Properties of the water and the receiver that determine the level of an echo.

    ``decay`` (1/m) is the two-way absorption. ``v_S`` is the velocity of the sonar in the axes of the fan: the receiver
    moves between transmission and reception. ``aperture`` contains the length of the array (0 = not used) and its
    equivalent (energy-averaged) beam width in rad. The length of the array is also the minimum width of its footprint.
    """

    decay: float
    sound_speed: float
    v_S: Floats
    aperture: Floats


class EchoBins(NamedTuple):
    """Range bins of each column: the start of the first bin, the bin size (m), and the energy (columns, bins)
    in single precision, which halves the time of everything that follows.

    ``intervals`` (columns, rays, 3) records the bins over which each ray is spread, as two real numbers, and its energy
    per bin; rays without an echo are not recorded. An array of length 0 is not filled.
    """

    first: float
    size: float
    energy: Singles
    intervals: Floats


@device_function
def ground_texture(x: float, y: float, cell: float, key: np.uint64, quantiles: Floats) -> float:
    """Return a gamma-distributed random number of mean 1 for a cell of the sea bed. All sonars use the same numbers."""
    i, j = np.uint64(np.int64(np.floor(x / cell))), np.uint64(np.int64(np.floor(y / cell)))
    h = splitmix64(splitmix64(key + i * np.uint64(0x9E3779B97F4A7C15)) + j * np.uint64(0xD1342543DE82EF95))
    return float(quantiles[h >> np.uint64(52)])  # 4096 quantiles


@device_function
def strength_at(tables: Floats, material: int, row: int, part: float) -> float:
    """Return the backscattering strength of a material, interpolated between two degrees of incidence."""
    return tables[material, row] * (1.0 - part) + tables[material, row + 1] * part


@device_function
def is_border(what: Ints, j: int, k: int) -> bool:
    """Return whether a neighbouring ray hits the bed where it has another material."""
    for step in range(4):
        a = j + (1 if step == 0 else -1 if step == 1 else 0)
        b = k + (1 if step == 2 else -1 if step == 3 else 0)
        inside = 0 <= a < what.shape[0] and 0 <= b < what.shape[1]
        if inside and what[a, b, 1] == BED and what[a, b, 0] != what[j, k, 0]:
            return True
    return False


@kernel
def bin_energy(
    fan: Fan,
    weights: FanWeights,
    hits: FanHits,
    bed: Bed,
    backscatter: Backscatter,
    path: EchoPath,
    echoes: EchoBins,
) -> None:
    """Add the energy of each ray to the bins of its column: b s_b dOmega e^(-decay r) / (r^2 cos theta), where b is the
    beam pattern. The energy is spread over the ranges that the width of the ray covers, up to the hits of the
    neighbouring rays. Within this interval, it varies with the texture and, at the border of a region, with the
    material.
    """
    o, R, u, e = fan.origin, fan.R, fan.u, fan.e
    du, de, gain_u, gain_e, edges = weights.du, weights.de, weights.gain_u, weights.gain_e, weights.edges
    out, what, tables, v_S = hits.geometry, hits.labels, backscatter.tables, path.v_S
    energy, intervals = echoes.energy, echoes.intervals
    first, size, aperture = echoes.first, echoes.size, path.aperture
    textures, patches, ripples = (
        backscatter.textures.materials,
        backscatter.textures.patches,
        backscatter.textures.ripples,
    )
    ripple_weights, regions, grid, raster = backscatter.textures.weights, bed.regions, bed.grid, bed.raster
    cosines, sines, backscatter_cells = np.cos(e), np.sin(e), backscatter.cells
    bins = energy.shape[1]
    order = 1.0 if len(e) < 2 or e[1] > e[0] else -1.0
    steps = np.zeros(len(e))  # relative change of the beam pattern with the elevation
    for k in range(1, len(e) - 1):
        total = max(gain_e[k - 1] + gain_e[k + 1], 1e-30)
        steps[k] = 2.0 * (gain_e[k + 1] - gain_e[k - 1]) / (total * (e[k + 1] - e[k - 1]))
    for j in range(len(u)):
        side = u[j]
        ahead = np.sqrt(1.0 - side * side)
        for k in range(len(e)):
            r, cosine = out[j, k, 0], out[j, k, 1]
            if r >= FAR or r <= 0.0:
                continue
            material, label = what[j, k, 0], what[j, k, 1]
            grazing = max(cosine, 1e-4)
            angle = np.arccos(min(cosine, 1.0)) * (180.0 / np.pi)
            row = min(int(angle), 89)
            part = angle - row
            s_b = strength_at(tables, material, row, part)
            before, after = -0.5 * order * de[k], 0.5 * order * de[k]
            if len(edges) > 0:
                before, after = edges[j, k, 0], edges[j, k, 1]
            c, s = cosines[k], sines[k]
            power = gain_u[j] * gain_e[k] * ahead * du[j] * abs(after - before) * np.exp(-path.decay * r)
            power *= s_b / (r * r * grazing)
            if aperture[0] > 0.0:
                power *= max(1.0, aperture[0] / (r * aperture[1]))
            # the tangent plane gives the ranges at which the edges of the ray hit the surface
            slope, tilt_u = out[j, k, 3] * ahead, out[j, k, 2] * 0.5 * du[j]
            low = r * grazing / max(grazing - slope * before, 0.25 * grazing)
            high = r * grazing / max(grazing - slope * after, 0.25 * grazing)
            if low > high:
                low, high = high, low
            for other in (k - 1, k + 1):
                if 0 <= other < len(e):
                    t = out[j, other, 0]
                    if r <= t < high:
                        high = t
                    elif low < t < r:
                        low = t
            # at an object's edge the tangent plane misleads: limit the range to that of a neighbour on the same object
            reach, edge = 0.0, False
            for other in (k - 1, k + 1):
                if 0 <= other < len(e):
                    if what[j, other, 1] == label:
                        reach = max(reach, abs(out[j, other, 0] - r))
                    else:
                        edge = True
            if edge:
                low, high = max(low, r - reach), min(high, r + reach)
            wide = 2.0 * r * min(abs(tilt_u) / grazing, 1.0)
            if len(u) > 1:
                reach = 0.0
                for other in (j - 1, j + 1):
                    if 0 <= other < len(u) and what[other, k, 1] == label:
                        reach = max(reach, abs(out[other, k, 0] - r))
                wide = min(wide, reach)
            if wide > 0.5 * size:
                grown = 0.5 * (np.sqrt((high - low) ** 2 + wide * wide) - (high - low))
                low, high = low - grown, high + grown
            shift = -r * (v_S[0] * ahead * c + v_S[1] * side + v_S[2] * ahead * s) / path.sound_speed
            a, b = (low + shift - first) / size, (high + shift - first) / size
            share = power / max(b - a, 1e-9)
            if len(intervals) > 0:
                intervals[j, k, 0], intervals[j, k, 1], intervals[j, k, 2] = a, b, share
            if b <= 0.0 or a >= bins:
                continue
            begin, end = max(int(np.floor(a)), 0), min(int(np.floor(b)), bins - 1)
            steepness = 2.0 * (tables[material, row] - tables[material, row + 1]) * (180.0 / np.pi)
            steepness /= max(tables[material, row] + tables[material, row + 1], 1e-30)
            # the energy per range falls within a wide ray on a plane: spreading r^-3, absorption, strength, beam pattern
            ramp, middle = 0.0, 0.5 * (low + high)
            if high - low > 2.0 * size and label <= SURFACE and abs(slope) > 0.1:
                ramp = (steps[k] * grazing / slope - 3.0 - steepness * grazing / abs(slope)) / r - path.decay
                steepest = 1.8 / (high - low)
                ramp = min(max(ramp, -steepest), steepest)
            # what varies over the bins: horizontal position, and its change with the range
            cell = backscatter_cells[material]
            tile = int(textures[material, PATCH_TILE]) if label == BED or label >= FIXED else -1
            slopes = textures[material, RIPPLE_SLOPE] if label == BED else 0.0
            border = label == BED and is_border(what, j, k)
            varied = tile >= 0 or slopes > 0.0 or border or cell > 0.0
            x = y = gx = gy = rippled = per_m = north = east = 0.0
            factor, coarse = 1.0, False
            if varied:
                dx, dy = (
                    R[0, 0] * ahead * c + R[0, 1] * side + R[0, 2] * ahead * s,
                    R[1, 0] * ahead * c + R[1, 1] * side + R[1, 2] * ahead * s,
                )
                turn = slope / grazing  # the range grows by r times this with the elevation
                turn = max(turn, 0.05) if turn > 0.0 else min(turn, -0.05)
                x, y = o[0] + r * dx, o[1] + r * dy
                gx = dx + ahead * (R[0, 2] * c - R[0, 0] * s) / turn
                gy = dy + ahead * (R[1, 2] * c - R[1, 0] * s) / turn
                if label != BED:  # walls vary with the depth, too
                    dz = R[2, 0] * ahead * c + R[2, 1] * side + R[2, 2] * ahead * s
                    gz = dz + ahead * (R[2, 2] * c - R[2, 0] * s) / turn
                    z = o[2] + r * dz
                    x, y, gx, gy = x + 0.6 * z, y + 0.8 * z, gx + 0.6 * gz, gy + 0.8 * gz
                per_m = textures[material, CELLS_PER_M]
                north, east = textures[material, RIPPLE_NORTH], textures[material, RIPPLE_EAST]
                along = min(size, high - low) * np.sqrt(gx * gx + gy * gy)
                coarse = along * per_m > 1.0
                if slopes > 0.0:
                    level = max(np.sqrt(dx * dx + dy * dy), 1e-9)
                    crossing, beside = (north * dx + east * dy) / level, (north * dy - east * dx) / level
                    rippled = ripple_amplitude(crossing, beside, slopes, steepness, along, r * du[j])
                    if rippled != 0.0:
                        factor = ripple_weight(ripple_weights, rippled)
                if tile >= 0:
                    factor *= wide_patch_factor(patches, tile, x * per_m, y * per_m)
                share, power = share * factor, power * factor
            for i in range(begin, end + 1):
                some = share * (min(b, i + 1.0) - max(a, float(i))) if b - a > 1e-9 else power
                at = min(max(first + (i + 0.5) * size - shift, low), high)
                some *= 1.0 + ramp * (at - middle)
                if varied:
                    beyond = at - r
                    px, py = x + beyond * gx, y + beyond * gy
                    if tile >= 0:
                        u_, v_ = px * per_m, py * per_m
                        some *= nearest_value(patches, tile, u_, v_) if coarse else tile_value(patches, tile, u_, v_)
                    if rippled != 0.0:
                        some *= ripple_factor(ripples, north * px + east * py, north * py - east * px, rippled)
                    if border:
                        here = material_at(px, py, bed.material, regions, grid, raster)
                        if here != material:
                            some *= strength_at(tables, here, row, part) / max(s_b, 1e-30)
                    if cell > 0.0:
                        some *= ground_texture(px, py, cell, backscatter.key, backscatter.patches[material])
                energy[j, i] += some
