"""Numbers that callers of the simulation give: so many, finite, within bounds, or a ValueError that says what is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk.elementary import LEAST
from wavesim_sdk.names import shorten
from wavesim_server.acoustics.medium_arrays import MAX_SPEED

Array = np.ndarray[Any, np.dtype[np.float64]]
MAX_COORDINATE = 1e7  #: m from the origin, where bodies may be put
MAX_ANGULAR_RATE = 100.0  #: rad/s that a body may be given
MAX_FORCE = 1e9  #: N and N m of a push


def checked_velocity(values: Any) -> Array:
    """Velocity and angular velocity of a body: u v w p q r."""
    nu = checked_numbers("a velocity", values, 6, max(MAX_SPEED, MAX_ANGULAR_RATE))
    if np.abs(nu[:3]).max() > MAX_SPEED:
        raise ValueError(f"a velocity of more than {MAX_SPEED:g} m/s")
    return nu


def checked_numbers(quantity: str, values: Any, count: int, limit: float, shape: tuple[int, ...] = ()) -> Array:
    """So many finite numbers, none greater than ``most``, those below LEAST as zero; ValueError otherwise."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RecursionError):  # ragged, or nested beyond measure
        array = np.zeros(0, object)
    if array.dtype.kind not in "iuf" or array.size != count or array.shape not in ((count,), shape):
        raise ValueError(f"{quantity} has {count} numbers; this is {shorten(values, 60)}")
    found: Array = array.astype(float)
    if not (np.abs(found) <= limit).all():
        raise ValueError(f"{quantity} of {shorten(values, 60)} is out of range (at most {limit:g} to either side)")
    found[np.abs(found) < LEAST] = 0.0
    return found
