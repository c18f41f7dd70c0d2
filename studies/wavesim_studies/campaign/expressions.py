"""Comparisons of named numbers from a campaign file. They contain no calls or attributes, and have no side effects."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

_TWO: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ONE: dict[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}


#: maximum number of characters in an expression; this limit also bounds the nesting depth and the size of numbers
LONGEST = 1000


class Expression:
    """A parsed comparison, such as ``spread > 100 and drift == 0``. Raises ConfigError, stating the problem, if the
    text is invalid.
    """

    def __init__(self, text: str, names: Collection[str], place: str = "") -> None:
        file, _, line = place.rpartition(":")
        self.text = text
        if len(text) > LONGEST:
            raise ConfigError(
                f"a comparison of {len(text)} characters is too long: the maximum is {LONGEST}", file, int(line or 0)
            )
        try:
            self._body = ast.parse(text, mode="eval").body
            self._check(self._body, names)
        except SyntaxError as error:
            raise ConfigError(f"'{text}' is not a valid comparison: {error.msg}", file, int(line or 0)) from None
        except (RecursionError, MemoryError):  # the parser reports deep nesting by these errors
            raise ConfigError(f"'{text[:60]}...' is nested too deeply", file, int(line or 0)) from None
        except ValueError as error:
            raise ConfigError(f"'{text}': {error}", file, int(line or 0)) from None

    def _check(self, node: ast.AST, names: Collection[str]) -> None:
        if isinstance(node, ast.Name):
            if node.id not in names:
                raise ValueError(f"unknown name '{node.id}'{suggest_name(node.id, names)}")
        elif isinstance(node, ast.Constant):
            if not isinstance(node.value, int | float | str):
                raise ValueError("only numbers and strings are allowed")
        elif isinstance(node, ast.BoolOp):
            for value in node.values:
                self._check(value, names)
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _ONE:
            self._check(node.operand, names)
        elif isinstance(node, ast.BinOp) and type(node.op) in _TWO:
            self._check(node.left, names)
            self._check(node.right, names)
        elif isinstance(node, ast.Compare) and all(type(op) in _TWO for op in node.ops):
            for part in (node.left, *node.comparators):
                self._check(part, names)
        else:
            raise ValueError("only comparisons, + - * /, and, or, not are allowed")

    def __call__(self, values: Mapping[str, Any]) -> bool:
        """Evaluate the expression; return False where a value is missing or cannot be compared."""
        try:
            return bool(self._value(self._body, values))
        except (KeyError, TypeError, ArithmeticError):
            return False

    def _value(self, node: Any, values: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BoolOp):
            join = all if isinstance(node.op, ast.And) else any
            return join(self._value(v, values) for v in node.values)
        if isinstance(node, ast.UnaryOp):
            return _ONE[type(node.op)](self._value(node.operand, values))
        if isinstance(node, ast.BinOp):
            two = self._value(node.left, values), self._value(node.right, values)
            if any(isinstance(v, str) for v in two):
                raise TypeError("strings can only be compared; arithmetic with strings is not allowed")
            return _TWO[type(node.op)](*two)
        left = self._value(node.left, values)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._value(part, values)
            if not _TWO[type(op)](left, right):
                return False
            left = right
        return True
