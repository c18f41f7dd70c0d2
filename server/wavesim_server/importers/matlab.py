"""Reader for MATLAB functions of vehicles (MSS toolbox): a parser that produces Python syntax trees, which
:mod:`~wavesim_server.importers.source_code` evaluates. Nothing of the file is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.marine_functions import section_drag
from wavesim_server.importers.matlab_functions import MATLAB_FUNCTIONS, cross_flow
from wavesim_server.importers.source_code import SourceError, SourceReader, UnknownValue
from wavesim_server.importers.vehicle_source import MotionEvaluation, VehicleSource, recorded, unknown_motion

_TOKEN = re.compile(
    r"""(?P<number>\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)"""
    r"""|(?P<operator>\.\^|\.\*|\./|\.'|==|~=|<=|>=|&&|\|\||[-+*/\\^'()\[\]{},;:=<>&|~@])|(?P<space>[ \t]+)|(?P<text>"[^"\n]*")"""
)
BINARY = {"+": ast.Add, "-": ast.Sub, ".*": ast.Mult, "./": ast.Div}
COMPARE = {"==": ast.Eq, "~=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}
CALLS = {"*": "mtimes", "/": "mrdivide", "\\": "mldivide", "^": "power", ".^": "power"}
SECTION = "Cd_2D"  #: name of a --set value.NAME: drag coefficient of the hull's sections
KEYWORDS = ("if", "elseif", "else", "end", "for", "while", "switch", "function", "return", "persistent", "global")


def _tokens(text: str) -> list[tuple[str, str, int, bool]]:
    found: list[tuple[str, str, int, bool]] = []
    depth, joined = 0, False
    for number, line in enumerate(text.splitlines(), 1):
        at, space = 0, not joined
        space, continued = True, False
        while at < len(line):
            previous = found[-1] if found else ("", "", 0, False)
            if line.startswith("...", at):
                continued = True
                break
            if line[at] == "%":
                break
            after_value = previous[0] in ("number", "name") or previous[1] in (")", "]", "}", "'")
            if line[at] == "'" and (
                not after_value or (space and depth and previous[1] != ")") or (space and not depth)
            ):
                end = line.find("'", at + 1)
                if end < 0:
                    raise SyntaxError(f"line {number}: a text has no end")
                found.append(("text", line[at + 1 : end], number, space))
                at, space = end + 1, False
                continue
            match = _TOKEN.match(line, at)
            if match is None:
                raise SyntaxError(f"line {number}: unexpected character '{line[at]}'")
            at = match.end()
            if match.lastgroup == "space":
                space = True
                continue
            kind = str(match.lastgroup)
            depth += (match[0] in "[{") - (match[0] in "]}") if kind == "operator" else 0
            found.append((kind, match[0], number, space))
            space = False
        joined = continued
        if not continued:
            found.append(("newline", ";" if depth else "\n", number, True))
    found.append(("newline", "\n", 0, True))
    found.append(("stop", "", 0, True))
    return found


class _Parser:
    """Recursive-descent parser for the statements and expressions of a MATLAB function."""

    def __init__(self, text: str) -> None:
        self._tokens, self._at, self._in_matrix = _tokens(text), 0, 0

    def _peek(self, ahead: int = 0) -> tuple[str, str, int, bool]:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _take(self, text: str | None = None) -> tuple[str, str, int, bool]:
        token = self._peek()
        if text is not None and token[1] != text:
            raise SyntaxError(f"line {token[2]}: expected '{text}', found '{token[1]}'")
        self._at += 1
        return token

    def function(self) -> tuple[str, list[str], list[ast.stmt]]:
        """Return the name, the arguments and the statements of the first function of the file."""
        while self._peek()[1] != "function":
            if self._peek()[0] == "stop":
                raise SyntaxError("the file has no function")
            self._at += 1
        self._take()
        while self._peek()[1] not in ("=", "\n"):
            self._at += 1
        self._take("=")
        name = self._take()[1]
        self._take("(")
        arguments = []
        while self._peek()[1] != ")":
            token = self._take()
            arguments += [token[1]] if token[0] == "name" else []
        self._take(")")
        return name, arguments, self._block(("function",))

    def _block(self, ends: tuple[str, ...]) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        while True:
            token = self._peek()
            if token[0] == "stop" or (token[0] == "name" and token[1] in ends):
                return statements
            if token[0] == "newline" or token[1] in (";", ","):
                self._at += 1
            elif token[1] == "end" and "end" not in ends:
                return statements  # the end of the function
            else:
                statements += self._statement()

    def _statement(self) -> list[ast.stmt]:
        kind, text, line, _ = self._peek()
        if kind == "name" and text in ("persistent", "global", "return"):
            while self._peek()[1] not in (";", "\n"):
                self._at += 1
            return [ast.Return(None, lineno=line)] if text == "return" else []
        if text == "if":
            return [self._if()]
        if text == "for":
            self._take()
            target = ast.Name(self._take()[1], lineno=line)
            self._take("=")
            counts = self._expression()
            body = self._block(("end",))
            self._take("end")
            return [ast.For(target, counts, body, [], lineno=line)]
        if kind == "name" and text in KEYWORDS:
            raise SyntaxError(f"line {line}: the statement '{text}' is not supported")
        start = self._at
        if text == "[":
            targets = self._targets()
            if targets is not None:
                return [ast.Assign([ast.Tuple(targets)], self._expression(), lineno=line)]
            self._at = start
        value = self._expression()
        if self._peek()[1] == "=" and self._peek()[0] == "operator":
            self._take()
            return [ast.Assign([_target(value)], self._expression(), lineno=line)]
        return [ast.Expr(value, lineno=line)]

    def _targets(self) -> list[ast.expr] | None:
        """Return the targets of `[a, b] =`, or None if this is a matrix."""
        self._take("[")
        found: list[ast.expr] = []
        while self._peek()[1] != "]":
            kind, text, line, _ = self._take()
            if kind == "name" or text == "~":
                found.append(ast.Name("_" if text == "~" else text, lineno=line))
            elif text != ",":
                return None
        self._take()
        if self._peek()[1] != "=":
            return None
        self._take()
        return found

    def _if(self) -> ast.If:
        line = self._take()[2]
        test = self._expression()
        body = self._block(("elseif", "else", "end"))
        orelse: list[ast.stmt] = []
        if self._peek()[1] == "elseif":
            orelse = [self._if()]
            return ast.If(test, body, orelse, lineno=line)
        if self._peek()[1] == "else":
            self._take()
            orelse = self._block(("end",))
        self._take("end")
        return ast.If(test, body, orelse, lineno=line)

    def _expression(self) -> ast.expr:
        left = self._and()
        while self._peek()[1] in ("||", "|"):
            line = self._take()[2]
            left = ast.BoolOp(ast.Or(), [left, self._and()], lineno=line)
        return left

    def _and(self) -> ast.expr:
        left = self._comparison()
        while self._peek()[1] in ("&&", "&"):
            line = self._take()[2]
            left = ast.BoolOp(ast.And(), [left, self._comparison()], lineno=line)
        return left

    def _comparison(self) -> ast.expr:
        left = self._range()
        while self._peek()[1] in COMPARE:
            _, text, line, _ = self._take()
            left = ast.Compare(left, [COMPARE[text]()], [self._range()], lineno=line)
        return left

    def _range(self) -> ast.expr:
        parts = [self._sum()]
        line = self._peek()[2]
        while self._peek()[1] == ":" and self._peek(1)[1] not in (")", ","):
            self._take()
            parts.append(self._sum())
        return parts[0] if len(parts) == 1 else _call("colon", parts, line)

    def _sum(self) -> ast.expr:
        left = self._product()
        while self._peek()[1] in ("+", "-") and not self._separates():
            _, text, line, _ = self._take()
            left = ast.BinOp(left, BINARY[text](), self._product(), lineno=line)
        return left

    def _separates(self) -> bool:
        """Return whether a sign starts a new element of a matrix: `[a -b]`."""
        return bool(self._in_matrix and self._peek()[3] and not self._peek(1)[3])

    def _product(self) -> ast.expr:
        left = self._unary()
        while self._peek()[1] in ("*", "/", "\\", ".*", "./"):
            _, text, line, _ = self._take()
            right = self._unary()
            left = (
                _call(CALLS[text], [left, right], line)
                if text in CALLS
                else ast.BinOp(left, BINARY[text](), right, lineno=line)
            )
        return left

    def _unary(self) -> ast.expr:
        _, text, line, _ = self._peek()
        if text in ("-", "+", "~"):
            self._take()
            operator = {"-": ast.USub(), "+": ast.UAdd(), "~": ast.Not()}[text]
            return ast.UnaryOp(operator, self._unary(), lineno=line)
        return self._powers()

    def _powers(self) -> ast.expr:
        left = self._postfix()
        while self._peek()[1] in ("^", ".^"):
            line = self._take()[2]
            right = self._postfix() if self._peek()[1] not in ("-", "+") else self._unary()
            left = _call("power", [left, right], line)
        return left

    def _postfix(self) -> ast.expr:
        left = self._primary()
        while True:
            kind, text, line, space = self._peek()
            if text in ("'", ".'") and kind == "operator":
                self._take()
                left = _call("transpose", [left], line)
            elif text == "(" and isinstance(left, ast.Name | ast.Call) and not (self._in_matrix and space):
                self._take()
                outer, self._in_matrix = self._in_matrix, 0
                arguments: list[ast.expr] = []
                while self._peek()[1] != ")":
                    if self._peek()[1] == ":" and self._peek(1)[1] in (")", ","):
                        arguments.append(ast.Constant(":", lineno=self._take()[2]))
                    else:
                        arguments.append(self._expression())
                    if self._peek()[1] == ",":
                        self._take()
                self._take(")")
                self._in_matrix = outer
                left = ast.Call(left, arguments, [], lineno=line)
            else:
                return left

    def _primary(self) -> ast.expr:
        kind, text, line, _ = self._take()
        if kind == "number":
            return ast.Constant(float(text), lineno=line)
        if kind == "text":
            return ast.Constant(text, lineno=line)
        if kind == "name" and text not in KEYWORDS:
            return ast.Name(text, lineno=line)
        if text == "(":
            outer, self._in_matrix = self._in_matrix, 0
            inner = self._expression()
            self._take(")")
            self._in_matrix = outer
            return inner
        if text in ("[", "{"):
            return self._matrix("]" if text == "[" else "}", line)
        raise SyntaxError(f"line {line}: unexpected '{text.strip() or 'end of line'}'")

    def _matrix(self, end: str, line: int) -> ast.expr:
        self._in_matrix += 1
        rows: list[list[ast.expr]] = [[]]
        while self._peek()[1] != end:
            if self._peek()[1] == ";":
                self._take()
                rows.append([])
            elif self._peek()[1] == ",":
                self._take()
            else:
                rows[-1].append(self._expression())
        self._take(end)
        self._in_matrix -= 1
        return _call("matrix", [ast.Tuple(row, lineno=line) for row in rows if row], line)


def _call(name: str, arguments: list[ast.expr], line: int) -> ast.Call:
    return ast.Call(ast.Name(name, lineno=line), arguments, [], lineno=line)


def _target(value: ast.expr) -> ast.expr:
    """Return the target of an assignment: a name, or an element whose indices count from 1."""
    if not isinstance(value, ast.Call):
        return value
    keys: list[ast.expr] = [ast.BinOp(a, ast.Sub(), ast.Constant(1), lineno=value.lineno) for a in value.args]
    return ast.Subscript(value.func, keys[0] if len(keys) == 1 else ast.Tuple(keys), lineno=value.lineno)


class MatlabReader(SourceReader):
    """Evaluator in which parentheses after an array select its elements, counted from 1."""

    def _assign(self, target: ast.expr, value: Any) -> None:
        """Assign a value. A single target takes the first of several results of a function."""
        several = isinstance(value, list) and not isinstance(target, ast.Tuple)
        super()._assign(target, value[0] if several else value)

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name):
            if node.func.id == "isempty":
                name = node.args[0].id if isinstance(node.args[0], ast.Name) else ""
                return not any(k == name or k.startswith(f"{name}.") for k in self.values)
            if isinstance(stored := self.values.get(node.func.id), np.ndarray):
                self._read.add(node.func.id)
                return self._elements(stored, node)
        return super()._call(node)

    def _elements(self, stored: Floats, node: ast.Call) -> Any:
        keys: list[Any] = []
        for argument in node.args:
            key = self._known(argument)
            keys.append(slice(None) if isinstance(key, str) else np.asarray(key, int) - 1)
        if len(keys) == 2 and stored.ndim == 1:
            keys = [k for k in keys if isinstance(k, slice) or k.ndim or int(k) != 0][:1] or [np.asarray(0)]
        found = (
            stored[np.ix_(*keys)]
            if len(keys) == 2
            and all(np.ndim(k) == 1 for k in keys if not isinstance(k, slice))
            and not any(isinstance(k, slice) for k in keys)
            else stored[tuple(k if isinstance(k, slice) or k.ndim else int(k) for k in keys)]
        )
        return float(found) if np.ndim(found) == 0 else found


class MatlabVehicle(VehicleSource):
    """Function `[xdot, ...] = NAME(x, ui, ...)` whose state starts with the six velocities, or has them after three
    coordinates of the horizontal plane.
    """

    language = "MSS toolbox"

    def __init__(self, path: Path, text: str, given: Mapping[str, float]) -> None:
        self.path, self.given, self.used_given = path, given, set[str]()
        try:
            self.name, self._arguments, self._body = _Parser(text).function()
        except SyntaxError as error:
            raise ConfigError(f"cannot read the MATLAB code: {error.msg}", str(path)) from None
        if len(self._arguments) < 2:
            raise ConfigError(f"the function `{self.name}` has no controls", str(path))
        x, ui = self._arguments[:2]
        size = re.search(rf"length\(\s*{x}\s*\)\s*~=\s*(\d+)", text)
        controls = re.search(rf"length\(\s*{ui}\s*\)\s*~=\s*(\d+)", text)
        self._size, self.controls = int(size[1]) if size else 12, int(controls[1]) if controls else 0
        if self._size not in (6, 12):
            raise ConfigError(
                f"the state of `{self.name}` has {self._size} elements; the reader knows 12 (6 velocities, 6 coordinates) and 6 "
                "(surge, sway, yaw)",
                str(path),
            )
        self.functions = MATLAB_FUNCTIONS | {"crossFlowDrag": self._cross_flow}
        self.constants: dict[str, Any] = {}
        self.lines: dict[str, int] = {}

    def evaluate(self, position: Floats, velocity: Floats, controls: Floats) -> MotionEvaluation:
        calls: dict[str, tuple[Any, ...]] = {}
        reader = MatlabReader(recorded(self.functions, calls), self.given)
        plane = [0, 1, 5]
        state = np.concatenate([velocity, position] if self._size == 12 else [position[plane], velocity[plane]])
        reader.values |= dict.fromkeys(self._arguments[2:], 0.0)
        reader.values |= {"pi": np.pi, "eps": 2.0**-52, "nargin": float(len(self._arguments)), "nargout": 1.0}
        reader.values |= {self._arguments[0]: state, self._arguments[1]: controls.copy()}
        for name in ("mp", "rp"):
            if name in self._arguments:
                self._payload(reader, name)
        self._run(reader, self._body)
        rate = reader.values.get("xdot")
        if rate is None or isinstance(rate, UnknownValue):
            raise ConfigError(unknown_motion(rate, reader.values), str(self.path))
        found = np.zeros(6)
        if self._size == 12:
            found[:] = rate[:6]
        else:
            found[plane] = rate[3:6]
        return MotionEvaluation(found, reader.values, calls)

    def _cross_flow(self, length: float, beam: float, draft: float, nu: Any, section: str = "Hoerner") -> Any:
        """Return the cross-flow drag; the user supplies a coefficient that the toolbox computes from the speed."""
        if section == "Hoerner":
            return cross_flow(length, beam, draft, nu)
        if SECTION not in self.given:
            raise SourceError(
                f"the drag coefficient of the section '{section}' depends on the speed; supply a constant one with --set "
                f"value.{SECTION}=..."
            )
        self.used_given.add(SECTION)
        return cross_flow(length, beam, draft, nu) * self.given[SECTION] / section_drag(beam, draft)

    def _payload(self, reader: SourceReader, name: str) -> None:
        """Set an argument of the function; without a value from the user, the vehicle has no payload."""
        reader.values[name] = self.given.get(name, 0.0) if name == "mp" else np.zeros(3)
        self.used_given |= {name} & set(self.given)
