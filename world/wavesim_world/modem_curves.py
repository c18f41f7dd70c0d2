"""Modem curves: the probability that a packet is lost, as a function of energy per bit, delay spread and Doppler shift.

A curve is a file in ``modem_curve_files``, with its source. Its axes are multiples of a bit of the modem, so a curve
applies at any bit rate and bandwidth:

- ``energies``: energy per transmitted bit of all paths, relative to the noise density (dB). It is the signal-to-noise
  ratio in the band plus 10 log10(bandwidth / bit rate).
- ``spreads``: rms delay spread times the bit rate.
- ``shifts``: magnitude of the Doppler shift of the carrier divided by the bit rate.

``header`` and ``block`` are the probabilities that the header of a packet is lost, and that a block of ``block_bits``
bits is wrong. The first ``header_bits`` bits of a packet belong to the header. Below the first energy, no packet is
detected. Beyond the last value of an axis, the last probability applies.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.algebra import interpolate
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import log10, power
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

FOLDER = Path(__file__).parent / "modem_curve_files"
COMPUTED, QUOTED = "computed", "quoted"
AXES = ("energies", "spreads", "shifts")
MAX_LENGTHS = (32, 8, 8)  #: maximum number of values on each axis


@dataclass(frozen=True)
class ModemCurve:
    """A modem curve. ``header`` and ``block`` have the shape (energies, spreads, shifts)."""

    name: str
    title: str
    origin: str  #: COMPUTED from waveforms, or QUOTED from a manufacturer
    source: str
    header_bits: float
    block_bits: float
    energies: Floats
    spreads: Floats
    shifts: Floats
    header: Floats
    block: Floats

    def losses(self, bits: float, spread: float = 0.0) -> Floats:
        """Return the probability that a packet of ``bits`` transmitted bits is lost, for each energy, without a Doppler
        shift. ``spread`` is a multiple of a bit.
        """
        blocks = max(bits - self.header_bits, 0.0) / self.block_bits
        header, block = (
            np.array([interpolate(np.array([spread]), self.spreads, row)[0] for row in table[:, :, 0]])
            for table in (self.header, self.block)
        )
        kept = power(1.0 - block, blocks) if blocks > 0.0 else 1.0
        return np.asarray(1.0 - (1.0 - header) * kept)

    def required_energy(self, loss: float, bits: float, spread: float = 0.0) -> float:
        """Return the lowest energy per bit (dB) above which at most a share ``loss`` of the packets is lost; infinite if
        the curve does not reach it.
        """
        losses = self.losses(bits, spread)
        above = np.flatnonzero(losses > loss)
        last = int(above[-1]) if len(above) else -1
        if last + 1 >= len(losses):
            return math.inf
        if last < 0:
            return float(self.energies[0])
        weight = (losses[last] - loss) / (losses[last] - losses[last + 1])
        return float(self.energies[last] + weight * (self.energies[last + 1] - self.energies[last]))


@functools.cache
def curve_names() -> list[str]:
    """Return the names of all curves."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def find_curve(name: str) -> ModemCurve:
    """Return the curve with this name. Raises ConfigError, suggesting a similar name, if there is no such curve."""
    if name not in curve_names():
        raise ConfigError(
            f"unknown modem curve '{name}'{suggest_name(name, curve_names())}; list the curves with `wavesim modems`"
        )
    return _read(name)


@functools.cache
def _read(name: str) -> ModemCurve:
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    axes: dict[str, Any] = {axis: np.array(data.pop(axis), float) for axis in AXES}
    shape = tuple(len(axes[axis]) for axis in AXES)
    tables: dict[str, Any] = {
        table: np.broadcast_to(np.array(data.pop(table), float), shape) for table in ("header", "block")
    }
    return ModemCurve(name=name, **data, **axes, **tables)


def energy_gain(bandwidth: float, bit_rate: float) -> float:
    """Return the energy per bit relative to the noise density, in dB above the signal-to-noise ratio in the band."""
    return float(10.0 * log10(bandwidth / bit_rate))


def list_curves() -> str:
    """Return a text table with one line per curve."""
    lines = [
        f"{'curve':12} {'origin':9} {'Eb/N0 for 50 %':>14} {'10 %':>6} {'1 %':>6}  loss of packets of 16 bytes, one path"
    ]
    for curve in map(find_curve, curve_names()):
        needs = (f"{curve.required_energy(loss, curve.header_bits + 128):.1f}" for loss in (0.5, 0.1, 0.01))
        fifty, ten, one = needs
        lines.append(f"{curve.name:12} {curve.origin:9} {fifty:>11} dB {ten:>6} {one:>6}  {curve.title}")
    return "\n".join(lines)
