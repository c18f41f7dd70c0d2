"""The estimate that an on-board navigator publishes through its broker."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

from wavesim_sdk import arguments
from wavesim_sdk.errors import InvalidArgument

__all__ = ["Estimate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Position of a vehicle as its navigator estimates it, in m in frame W; None = unknown.

    The log, the table of a trial and the viewer compare it with the true position.
    """

    north: float | None = None
    east: float | None = None
    depth: float | None = None
    sigma_north: float | None = None  #: standard deviation of ``north``
    sigma_east: float | None = None  #: standard deviation of ``east``
    sigma_depth: float | None = None  #: standard deviation of ``depth``
    dead_reckoning_north: float | None = None  #: by heading and speed through the water only
    dead_reckoning_east: float | None = None
    dead_reckoning_depth: float | None = None
    innovation: float | None = None  #: innovation of the last range


NAMES = tuple(Estimate.__dataclass_fields__)


def estimate_numbers(estimate: Any) -> list[float | None]:
    """Return the ten numbers of an estimate, given as :class:`Estimate` or as these numbers in its order."""
    values = astuple(estimate) if isinstance(estimate, Estimate) else estimate
    if isinstance(values, str | bytes) or not hasattr(values, "__len__") or len(values) != len(NAMES):
        raise InvalidArgument(
            f"estimate must be an Estimate, or {len(NAMES)} numbers or None in its order, got {arguments.shown(values)}"
        )
    named = isinstance(estimate, Estimate)
    return [
        None if v is None else arguments.number(f"estimate.{name}" if named else f"estimate[{k}] ({name})", v, "m")
        for k, (name, v) in enumerate(zip(NAMES, values, strict=True))
    ]
