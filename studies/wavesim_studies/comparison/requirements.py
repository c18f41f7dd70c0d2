"""Limits for a comparison, such as ``track rms < 2 m``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wavesim_sdk import units
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_studies.comparison.comparison import Comparison

__all__ = ["Requirement", "parse_requirement"]

OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_FORM = re.compile(r"\s*(.+?)\s+(\S+)\s*(<=|>=|<|>)\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*([^\s<>][^<>]*?)?\s*")
#: statistics of a quantity, and of the ranges of a pair of nodes
STATISTICS = ("bias", "rms", "spread", "mad", "p95", "worst", "final", "correlation", "gain")
RANGE_STATISTICS = ("bias", "mad", "p")
ABSOLUTE = ("bias", "final")  #: statistics of which the absolute value is compared
_UNITS: dict[str, dict[str, float]] = {
    next(iter(k for k, v in group.items() if v == 1.0), name): group for name, group in units.QUANTITIES.items()
}
EXAMPLE = '"track rms < 2 m"'


@dataclass(frozen=True)
class Requirement:
    """Limit for one statistic of one quantity."""

    text: str
    quantity: str
    statistic: str
    sign: str
    limit: float
    unit: str

    def outcome(self, comparison: Comparison) -> tuple[float, bool]:
        """Return the value, in the unit of the limit, and whether it meets the limit. Raise ConfigError if the comparison
        has no such value.
        """
        value, unit = self._value(comparison)
        factor = self._factor(unit)
        size = abs(value) if self.statistic in ABSOLUTE else value
        return value / factor, math.isfinite(value) and bool(OPERATORS[self.sign](size / factor, self.limit))

    def _value(self, c: Comparison) -> tuple[float, str]:
        pairs = {f"range {r.pair}": r for r in c.ranges}
        if self.quantity in pairs:
            r = pairs[self.quantity]
            known = {"bias": r.real_bias.value - r.simulated_bias.value, "mad": r.real_mad.value, "p": r.p}
            if self.statistic not in known:
                raise self._unknown(self.statistic, known)
            return known[self.statistic], "" if self.statistic == "p" else "m"
        if self.quantity not in c.quantities:
            raise self._unknown(self.quantity, [*c.quantities, *pairs])
        q = c.quantities[self.quantity]
        if self.statistic.startswith("coverage"):
            shares: Mapping[str, Any] = q.coverage.shares if q.coverage is not None else {}
            name = self.statistic.removeprefix("coverage")
            if name not in shares:
                hint = "" if shares else "; the coverage needs three simulated runs or more"
                raise ConfigError(f"--require '{self.text}': '{self.quantity}' has no {self.statistic}{hint}")
            return float(shares[name].value), "%"
        if self.statistic not in STATISTICS:
            raise self._unknown(self.statistic, [*STATISTICS, "coverage50", "coverage90", "coverage95"])
        value = getattr(q, self.statistic)
        return float(getattr(value, "value", value)), "" if self.statistic in ("correlation", "gain") else q.unit

    def _factor(self, unit: str) -> float:
        """Return the factor from the unit of the limit to the unit of the value."""
        if unit == "%":
            if self.unit not in ("", "%"):
                raise ConfigError(f"--require '{self.text}': a share has no unit '{self.unit}'; use % or none")
            return 0.01 if self.unit == "%" else 1.0
        if not unit:
            if self.unit:
                raise ConfigError(f"--require '{self.text}': {self.statistic} has no unit")
            return 1.0
        allowed = _UNITS.get(unit, {unit: 1.0})
        if self.unit not in allowed:
            shown = f"unknown unit '{self.unit}'" if self.unit else "the unit is missing"
            raise ConfigError(f"--require '{self.text}': {shown}; use {', '.join(allowed)}")
        return allowed[self.unit]

    def _unknown(self, name: str, known: Any) -> ConfigError:
        hint = suggest_name(name, list(known)) or f"; use one of {', '.join(known)}"
        return ConfigError(f"--require '{self.text}': unknown name '{name}'{hint}")


def parse_requirement(text: str) -> Requirement:
    """Parse a limit such as ``yaw rate rms < 3 deg/s``. Raise ConfigError if it is invalid."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ConfigError(f"--require '{text}' must be QUANTITY STATISTIC < NUMBER UNIT, for example {EXAMPLE}")
    quantity, statistic, sign, number, unit = match.groups()
    try:
        limit = float(number)
    except ValueError:
        raise ConfigError(f"--require '{text}': '{number}' is not a number") from None
    return Requirement(text.strip(), quantity, statistic, sign, limit, unit or "")
