"""Command-line parameter types for numbers that may have a unit or be negative."""

from __future__ import annotations

import math
import re
from typing import Any

import click

from wavesim_sdk import units

_NEGATIVE = re.compile(r"-\.?\d")


class Quantity(click.FloatRange):
    """A number with an optional unit of a quantity (see :data:`wavesim_sdk.units.QUANTITIES`), converted to ``unit``.

    A number without a unit is in ``unit``, which is by default the first unit of the quantity. Without a quantity, the
    number has no unit. ``low`` and ``high`` are bounds in ``unit``; with ``infinite``, `inf` is allowed.
    """

    name = "number"

    def __init__(
        self,
        quantity: str = "",
        unit: str = "",
        *,
        low: float | None = None,
        high: float | None = None,
        infinite: bool = False,
    ) -> None:
        super().__init__(low, high)
        self.quantity, self.infinite = quantity, infinite
        self.unit = unit or next(iter(units.QUANTITIES.get(quantity, {"": 1.0})))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = self._parse(value, param, ctx) if isinstance(value, str) else float(value)
        if number < (low := -math.inf if self.min is None else self.min) or number > (self.max or math.inf):
            allowed = f"at least {low:g}" if self.max is None else f"{low:g} to {self.max:g}"
            self.fail(f"'{str(value).strip()}' is out of range: use {allowed} {self.unit}".rstrip(), param, ctx)
        return number

    def _describe_range(self) -> str:  # for the help; without bounds, click prints x<=None
        return "" if self.min is None and self.max is None else super()._describe_range()

    def _parse(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
            if self.quantity:
                try:
                    return units.parse(text, self.quantity)[0] / units.QUANTITIES[self.quantity][self.unit]
                except ValueError:
                    pass  # reported below
        if math.isfinite(number) or (self.infinite and math.isinf(number)):
            return number
        message = f"invalid {self.quantity or 'number'} '{text.strip()}'"
        if self.quantity:
            message += f": use a number in {self.unit}, or one with a unit ({units.unit_names(self.quantity)})"
        return self.fail(message, param, ctx)


def protect_negative_numbers(words: list[str]) -> list[str]:
    """Return the arguments with a space before each negative number, so that the parser does not mistake the number for
    an option.
    """
    return [f" {text}" if _NEGATIVE.match(text) else text for text in words]


class NumbersCommand(click.Command):
    """Command whose arguments may be negative numbers. Any other argument that begins with - is an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, protect_negative_numbers(args))
