"""Evaluation of the assignments in other people's source code, without running it.

:class:`SourceReader` walks a syntax tree of Python's ``ast`` module. It knows arithmetic, arrays, branches, loops with a
known count and the functions in a table; it executes nothing else. A value that it cannot compute becomes an
:class:`UnknownValue`, which names the line and the expression. The user can supply such a value by its name.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

MOST_STEPS = 400_000  #: maximum number of evaluated expressions per file, so that a file cannot stall the reader
MOST_ELEMENTS = 10_000  #: maximum number of elements of an array
LARGEST = 10**30  #: maximum magnitude of an integer


class UnknownValue(NamedTuple):
    """Value that the reader could not compute, and the reason."""

    line: int
    expression: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.expression}"


class SourceError(ValueError):
    """Raised for source code that the reader cannot evaluate."""


class _Return(Exception):
    """Ends the evaluation of a function."""


def _limited(value: Any) -> Any:
    size = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, list | str | range) else 1
    if size > MOST_ELEMENTS or (isinstance(value, int) and abs(value) > LARGEST):
        raise SourceError("a value is too large")
    return value


def power(base: Any, exponent: Any) -> Any:
    if np.ndim(base) == 2:
        return np.linalg.matrix_power(base, int(exponent))
    return float(base) ** float(exponent) if np.ndim(base) == 0 else base**exponent


def zeros(*shape: Any) -> Any:
    """Return an array of zeros; one row or one column is a vector."""
    sizes = [int(n) for n in (shape[0] if np.ndim(shape[0]) else shape[:2])]
    if math.prod(sizes) > MOST_ELEMENTS:
        raise SourceError("an array is too large")
    return np.zeros([n for n in sizes if n != 1] or [1])


def array(values: Any, *_: Any) -> Any:
    return np.array(values, float)


def sign(value: Any) -> Any:
    return np.sign(value)


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: power,
    ast.MatMult: np.matmul,
}
COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: functions of Python's `math` module and of NumPy, by the names that source code uses
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{f"math.{f}": getattr(math, f) for f in ("sqrt", "sin", "cos", "tan", "exp", "log", "atan2", "radians", "fabs")},
    **{f"np.{f}": getattr(np, f) for f in ("sqrt", "sin", "cos", "exp", "deg2rad", "radians", "cross", "interp")},
    "np.array": array,
    "np.diag": lambda v, *_: np.diag(np.asarray(v, float)),
    "np.zeros": zeros,
    "np.identity": lambda n, *_: np.eye(min(int(n), 100)),
    "np.eye": lambda n, *_: np.eye(min(int(n), 100)),
    "np.matmul": np.matmul,
    "np.dot": np.dot,
    "np.linalg.inv": np.linalg.inv,
    "np.sign": sign,
    "np.abs": np.abs,
    "np.append": np.append,
    "abs": abs,
    "pow": power,
    "float": float,
    "int": int,
    "len": len,
    "str": str,
    "min": min,
    "max": max,
    "range": range,
}
CONSTANTS = {"math.pi": math.pi, "np.pi": math.pi}


class SourceReader:
    """Evaluator of statements. ``values`` holds the variables by name; an attribute is stored as `self.name`."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]], given: Mapping[str, float]) -> None:
        self.values: dict[str, Any] = dict(CONSTANTS)
        self.lines: dict[str, int] = {}  #: line of the last assignment of each variable
        self.sources: dict[str, set[str]] = {}  #: names from which each variable was computed
        self.given, self.used_given = given, set[str]()
        self.result: Any = None
        self._functions, self._read = functions, set[str]()
        self._steps = 0

    def run(self, statements: list[ast.stmt]) -> None:
        """Evaluate statements until one of them returns."""
        try:
            for statement in statements:
                self._statement(statement)
        except _Return:
            pass

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            self._read = set()
            value = self.value(node.value) if node.value is not None else None
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self._assign(target, value)
        elif isinstance(node, ast.AugAssign):
            self._read = set()
            both = ast.copy_location(ast.BinOp(_load(node.target), node.op, node.value), node)
            self._assign(node.target, self.value(both))
        elif isinstance(node, ast.If):
            test = self.value(node.test)
            if isinstance(test, UnknownValue):
                raise SourceError(f"line {node.lineno}: the condition `{ast.unparse(node.test)}` is unknown")
            for inner in node.body if test else node.orelse:
                self._statement(inner)
        elif isinstance(node, ast.For):
            counts = self.value(node.iter)
            if isinstance(counts, UnknownValue) or len(counts) > MOST_ELEMENTS:
                raise SourceError(f"line {node.lineno}: the loop over `{ast.unparse(node.iter)}` is unknown")
            for count in counts:
                self._assign(node.target, count)
                for inner in node.body:
                    self._statement(inner)
        elif isinstance(node, ast.Try):
            for inner in node.body:
                self._statement(inner)
        elif isinstance(node, ast.Return):
            self.result = None if node.value is None else self.value(node.value)
            raise _Return
        elif not isinstance(node, ast.Expr | ast.Pass | ast.Import | ast.ImportFrom):
            raise SourceError(f"line {node.lineno}: statement `{ast.unparse(node).splitlines()[0][:60]}`")

    def _assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            parts = [value] * len(target.elts) if isinstance(value, UnknownValue) else value
            for inner, part in zip(target.elts, parts, strict=False):
                self._assign(inner, part)
            return
        if isinstance(target, ast.Subscript):
            name = dotted(target.value)
            keys: list[ast.expr] = []
            while isinstance(target, ast.Subscript):  # MA[0][1] = ... is MA[0, 1] = ...
                keys.insert(0, target.slice)
                name, target = dotted(target.value), target.value
            stored, index = self.values.get(name), tuple(self._index(k) for k in keys)
            if isinstance(stored, np.ndarray) and not isinstance(value, UnknownValue):
                stored[index if len(index) > 1 else index[0]] = value
                self.sources.setdefault(name, set()).update(self._read)
            return
        name = dotted(target)
        if name in self.given:
            value = self.given[name]
            self.used_given.add(name)
        self.values[name] = value.copy() if isinstance(value, np.ndarray) else value
        self.lines[name] = target.lineno
        self.sources[name] = set(self._read) - {name} | (self.sources.get(name, set()) if name in self._read else set())

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression, or the UnknownValue that prevents its computation."""
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise SourceError("the file needs too many steps")
        try:
            with np.errstate(all="ignore"):
                return _limited(self._value(node))
        except _Unknown as error:
            return error.args[0]
        except SourceError:
            raise
        except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError, np.linalg.LinAlgError):
            return UnknownValue(node.lineno, ast.unparse(node)[:80])

    def _known(self, node: ast.expr) -> Any:
        found = self.value(node)
        if isinstance(found, UnknownValue):
            raise _Unknown(found)
        return found

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name | ast.Attribute):
            return self._variable(node)
        if isinstance(node, ast.List | ast.Tuple):
            return [self._known(e) for e in node.elts]
        if isinstance(node, ast.BinOp):
            left, right = self._known(node.left), self._known(node.right)
            return OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp):
            operand = self._known(node.operand)
            if isinstance(node.op, ast.Not):
                return not operand
            return -operand if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BoolOp):
            parts = [bool(self._known(v)) for v in node.values]
            return all(parts) if isinstance(node.op, ast.And) else any(parts)
        if isinstance(node, ast.Compare):
            left, result = self._known(node.left), True
            for comparison, other in zip(node.ops, node.comparators, strict=True):
                right = self._known(other)
                result, left = result and bool(COMPARISONS[type(comparison)](left, right)), right
            return result
        if isinstance(node, ast.IfExp):
            return self._known(node.body if self._known(node.test) else node.orelse)
        if isinstance(node, ast.Subscript):
            return self._known(node.value)[self._index(node.slice)]
        if isinstance(node, ast.Call):
            return self._call(node)
        raise _Unknown(UnknownValue(node.lineno, ast.unparse(node)[:80]))

    def _variable(self, node: ast.Name | ast.Attribute) -> Any:
        name = dotted(node)
        if name in self.values:
            self._read.add(name)
            found = self.values[name]
            if isinstance(found, UnknownValue):
                raise _Unknown(found)
            return found
        if isinstance(node, ast.Attribute):
            owner = self._known(node.value)
            if node.attr == "T":
                return owner.T
            if isinstance(owner, tuple) and node.attr in getattr(owner, "_fields", ()):
                return getattr(owner, node.attr)
        raise _Unknown(UnknownValue(node.lineno, name or ast.unparse(node)[:80]))

    def _index(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Slice):
            return slice(*(None if p is None else int(self._known(p)) for p in (node.lower, node.upper, node.step)))
        if isinstance(node, ast.Tuple):
            return tuple(self._index(e) for e in node.elts)
        return int(self._known(node))

    def _call(self, node: ast.Call) -> Any:
        name = dotted(node.func)
        function = self._functions.get(name) or FUNCTIONS.get(name)
        if function is None:
            raise _Unknown(UnknownValue(node.lineno, ast.unparse(node)[:80]))
        arguments = [float if dotted(a) in ("float", "int") else self._known(a) for a in node.args]
        return function(*arguments, **{str(k.arg): self._known(k.value) for k in node.keywords})


class _Unknown(Exception):
    """Carries an UnknownValue to the end of its expression."""


def dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a name or an attribute, and an empty text for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := dotted(node.value)):
        return f"{owner}.{node.attr}"
    return ""


def _load(node: ast.expr) -> ast.expr:
    """Return the expression that reads the target of an assignment."""
    found = ast.parse(ast.unparse(node), mode="eval").body
    for inner in ast.walk(found):
        ast.copy_location(inner, node)
    return found
