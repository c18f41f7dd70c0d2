"""Types of the arguments of the acoustic kernels; when compilation is off, the arguments have exactly these types."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Floats

Record = np.record  #: a record whose members are attributes with the names that its table declares
Records = np.recarray[Any, np.dtype[Any]]  #: an array of records whose members are attributes


class Vector(NamedTuple):
    """A position (m) or a direction, in W."""

    x: float
    y: float
    z: float


class SoundSpeedProfile(NamedTuple):
    """Sound speed c (m/s) at the knots z (m, ascending) of a water column; between the knots, it is linear."""

    z: Floats
    c: Floats
