"""Checks of the count, finiteness and bounds of the numbers that callers pass to the simulation. If a number is
invalid, the functions raise InvalidArgument, stating the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk import arguments
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import LEAST
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.names import shorten
from wavesim_server.acoustics.medium_arrays import MAX_SPEED
from wavesim_world.config.model import MAX_COORDINATE as MAX_COORDINATE

MAX_ANGULAR_RATE = 100.0  #: maximum angular rate of a body in rad/s
MAX_FORCE = 1e9  #: maximum external force in N, and maximum external torque in N m


def checked_ticks(ticks: int) -> int:
    """Check and return a number of ticks. Raises InvalidArgument if it is negative."""
    if arguments.whole("ticks", ticks) < 0:
        raise InvalidArgument(f"invalid number of ticks {ticks}: use 0 or more")
    return ticks


def checked_velocity(values: Any) -> Floats:
    """Check the velocity and the angular velocity of a body: u, v, w, p, q, r."""
    nu = checked_numbers("a velocity", values, 6, max(MAX_SPEED, MAX_ANGULAR_RATE))
    if np.abs(nu[:3]).max() > MAX_SPEED:
        raise InvalidArgument(f"invalid velocity: u, v and w must be within +-{MAX_SPEED:g} m/s")
    return nu


def checked_numbers(quantity: str, values: Any, count: int, limit: float, shape: tuple[int, ...] = ()) -> Floats:
    """Check and return ``count`` finite numbers within +-``limit``. Numbers whose magnitude is below LEAST are set to
    zero. Raises InvalidArgument if the input is invalid.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RecursionError):  # ragged or nested too deeply
        array = np.zeros(0, object)
    if array.dtype.kind not in "iuf" or array.size != count or array.shape not in ((count,), shape):
        raise InvalidArgument(f"{quantity} needs {count} numbers, got {shorten(values, 60)}")
    found: Floats = array.astype(float)
    if not (np.abs(found) <= limit).all():
        raise InvalidArgument(f"{quantity} of {shorten(values, 60)} is out of range (-{limit:g} to {limit:g})")
    found[np.abs(found) < LEAST] = 0.0
    return found
