"""The probability that a packet is lost, from the curve of the receiving modem; compiled.

A curve is a row of numbers in the medium: the values of its axes, the bits of its header and of a block, and both tables
of probabilities. The axes have fixed lengths; a shorter axis is extended, with the last probability.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats
from wavesim_server.elementary import log10, power
from wavesim_world.modem_curves import MAX_LENGTHS, ModemCurve

ENERGIES, SPREADS, SHIFTS = MAX_LENGTHS
_SPREAD, _SHIFT = ENERGIES, ENERGIES + SPREADS  # first columns of the axes
_HEADER_BITS = _SHIFT + SHIFTS
_BLOCK_BITS = _HEADER_BITS + 1
_TABLES = _BLOCK_BITS + 1
_CELLS = ENERGIES * SPREADS * SHIFTS
CURVE_COLUMNS = _TABLES + 2 * _CELLS


def curve_row(curve: ModemCurve) -> Floats:
    """Return the numbers of a curve as the medium stores them."""
    row = np.zeros(CURVE_COLUMNS)
    first = 0
    for axis, length in zip((curve.energies, curve.spreads, curve.shifts), MAX_LENGTHS, strict=True):
        row[first : first + length] = np.concatenate([axis, axis[-1] + 1.0 + np.arange(length - len(axis))])
        first += length
    row[_HEADER_BITS], row[_BLOCK_BITS] = curve.header_bits, curve.block_bits
    margins = [(0, most - has) for most, has in zip(MAX_LENGTHS, curve.header.shape, strict=True)]
    for k, table in enumerate((curve.header, curve.block)):
        row[_TABLES + k * _CELLS : _TABLES + (k + 1) * _CELLS] = np.pad(table, margins, "edge").ravel()
    return row


@device_function
def _cell(curves: Floats, row: int, first: int, length: int, x: float) -> tuple[int, float]:
    """Return (index, fraction) of a value on an axis, limited to the axis."""
    i = 0
    while i < length - 2 and x >= curves[row, first + i + 1]:
        i += 1
    low, high = curves[row, first + i], curves[row, first + i + 1]
    return i, min(max((x - low) / (high - low), 0.0), 1.0)


@device_function
def packet_loss(curves: Floats, row: int, energy: float, spread: float, shift: float, bits: float) -> float:
    """Return the probability that a packet is lost; for the arguments, see :mod:`wavesim_world.modem_curves`."""
    i, u = _cell(curves, row, 0, ENERGIES, energy)
    j, v = _cell(curves, row, _SPREAD, SPREADS, spread)
    k, w = _cell(curves, row, _SHIFT, SHIFTS, shift)
    header = block = 0.0
    for a in range(2):
        for b in range(2):
            for c in range(2):
                weight = (u if a else 1.0 - u) * (v if b else 1.0 - v) * (w if c else 1.0 - w)
                cell = _TABLES + ((i + a) * SPREADS + j + b) * SHIFTS + k + c
                header += weight * curves[row, cell]
                block += weight * curves[row, cell + _CELLS]
    blocks = max(bits - curves[row, _HEADER_BITS], 0.0) / curves[row, _BLOCK_BITS]
    kept = (1.0 - header) * (power(max(1.0 - block, 0.0), blocks) if blocks > 0.0 else 1.0)
    return 1.0 - kept


@device_function
def delay_spread(powers: float, delays: float, squares: float) -> float:
    """Return the rms delay spread (s) of paths, from the sums of their powers, and of the powers times the delay and
    times its square.
    """
    mean = delays / powers
    return math.sqrt(max(squares / powers - mean * mean, 0.0))


@device_function
def bit_energy(powers: float, noise: float, band: float, bit_rate: float) -> float:
    """Return the energy per bit relative to the noise density in dB, for a sum of powers and the noise in the band."""
    return float(10.0 * log10(powers * band / bit_rate) - noise)
