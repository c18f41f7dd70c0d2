"""The estimate that an on-board navigator publishes through its broker."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from wavesim_sdk import arguments
from wavesim_sdk.errors import InvalidArgument

__all__ = ["Estimate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Position of a vehicle as estimated by its navigator, in m in frame W; None = unknown.

    The log, the trial table and the viewer compare this estimate with the true position.
    """

    north: float | None = None
    east: float | None = None
    depth: float | None = None
    sigma_north: float | None = None  #: standard deviation of ``north`` in m
    sigma_east: float | None = None  #: standard deviation of ``east`` in m
    sigma_depth: float | None = None  #: standard deviation of ``depth`` in m
    #: north coordinate in m from dead reckoning: heading and speed through the water only
    dead_reckoning_north: float | None = None
    dead_reckoning_east: float | None = None
    dead_reckoning_depth: float | None = None
    innovation: float | None = None  #: innovation of the last range measurement


NAMES = tuple(Estimate.__dataclass_fields__)
_all_values = operator.attrgetter(*NAMES)


def estimate_numbers(estimate: Any) -> list[float | None]:
    """Return the ten numbers of an estimate, given as an :class:`Estimate` or as these numbers in the same order."""
    named = isinstance(estimate, Estimate)
    values = _all_values(estimate) if named else estimate
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or len(values) != len(NAMES):
        raise InvalidArgument(
            f"estimate must be an Estimate, or {len(NAMES)} values (numbers or None) in the order of its fields, got {arguments.shown(values)}"
        )
    found = list(values)
    for k, value in enumerate(found):
        if value is not None and not (type(value) is float and isfinite(value)):
            what = f"estimate.{NAMES[k]}" if named else f"estimate[{k}] ({NAMES[k]})"
            found[k] = arguments.number(what, value, "m")
    return found
