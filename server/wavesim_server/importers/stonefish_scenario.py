"""XML of a Stonefish scenario: included files, arguments, expressions in braces, and the files it refers to."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.kinematics import euler_to_rotation
from wavesim_server.importers.source_code import SourceReader, UnknownValue

PREFIX = "arg."  #: prefix of a --set key that gives the value of a scenario's argument
MOST_INCLUDES = 100
_ARGUMENT = re.compile(r"\$\(arg\s+([^)]+)\)")
_FIND = re.compile(r"\$\(find\s+([^)]+)\)/*")
_EXPRESSION = re.compile(r"\$\{([^}]*)\}")
_MATHS = ("sqrt", "sin", "cos", "tan", "exp", "atan2", "abs")


class StonefishScenario:
    """A scenario with everything that it includes. ``folders`` are searched for its files."""

    def __init__(self, path: Path, arguments: dict[str, str], folders: Sequence[Path]) -> None:
        self.path, self._folders = path, folders
        self.used_arguments: set[str] = set()
        self.root = self._parse(path)
        self._substitute(self.root, arguments)
        for _ in range(MOST_INCLUDES):
            include = self.root.find("include")
            if include is None:
                return
            self._include(include, arguments)
        raise ConfigError(f"the scenario includes more than {MOST_INCLUDES} files", str(path))

    def _parse(self, path: Path) -> etree._Element:
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
        try:
            root = etree.fromstring(path.read_bytes(), parser)
        except etree.XMLSyntaxError as error:
            raise ConfigError(f"not valid XML: {error.msg}", str(path)) from None
        if root.tag != "scenario":
            raise ConfigError(f"the root element is <{root.tag}>; a Stonefish scenario has <scenario>", str(path))
        return root

    def _include(self, include: etree._Element, given: dict[str, str]) -> None:
        file = include.get("file", "")
        found = self.locate(file)
        if found is None:
            raise ConfigError(
                f"the included file '{file}' was not found; state its folder with --path",
                str(self.path),
            )
        own = {a.get("name", ""): a.get("value", "") for a in include.findall("arg")}
        inner = self._parse(found)
        self._substitute(inner, own | given)
        self.root.remove(include)
        self.root.extend(list(inner))

    def _substitute(self, root: etree._Element, arguments: dict[str, str]) -> None:
        """Replace arguments and evaluate expressions in all attributes."""
        for element in root.iter():
            for key, text in element.items():
                element.set(str(key), self._evaluate(self._arguments(str(text), arguments), element))

    def _arguments(self, text: str, arguments: dict[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name not in arguments:
                raise ConfigError(
                    f"the argument '{name}' has no value; state it with --set {PREFIX}{name}=...", str(self.path)
                )
            self.used_arguments.add(name)
            return arguments[name]

        return _ARGUMENT.sub(value, text)

    def _evaluate(self, text: str, element: etree._Element) -> str:
        def value(match: re.Match[str]) -> str:
            reader = SourceReader({name: getattr(np, name) for name in _MATHS if name != "atan2"}, {})
            reader.values |= {"pi": np.pi, "e": np.e}
            try:
                found = reader.value(ast.parse(match[1].replace("^", "**").strip(), mode="eval").body)
            except (SyntaxError, ValueError):
                found = UnknownValue(0, match[1])
            if isinstance(found, UnknownValue):
                raise ConfigError(f"<{element.tag}>: cannot evaluate the expression '{match[1]}'", str(self.path))
            return f"{float(found):.12g}"

        return _EXPRESSION.sub(value, text)

    def locate(self, file: str) -> Path | None:
        """Return the path of a file of the scenario, or None. ROS packages and data folders are searched by name."""
        package = _FIND.match(file)
        name = _FIND.sub("", file)
        places = [self.path.parent, *self.path.resolve().parents]
        places[:0] = self._folders
        if package is not None:
            places = [
                q for p in places for q in (p if p.name == package[1].strip() else p / package[1].strip(),)
            ] + places
        for place in places:
            for candidate in (place / name, place / "data" / name):
                if candidate.is_file():
                    return candidate
        return None


def vector(text: str | None, element: etree._Element, count: int = 3) -> Floats:
    """Return the numbers of an attribute. Raises ConfigError, naming the element, if their count is wrong."""
    try:
        found = np.array([float(n) for n in (text or "").replace(",", " ").split()])
    except ValueError:
        found = np.zeros(0)
    if len(found) != count:
        raise ConfigError(f"<{element.tag}>: expected {count} numbers, got '{text}'")
    return found


def number(element: etree._Element | None, key: str, default: float | None = None) -> float:
    """Return the number of an attribute; without a default, a missing one is an error."""
    text = None if element is None else element.get(key)
    if text is None:
        if default is None:
            raise ConfigError(f"<{'?' if element is None else element.tag}> lacks the attribute '{key}'")
        return default
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"<{element.tag if element is not None else '?'}>: {key}='{text}' is not a number") from None


def frame(element: etree._Element | None) -> Floats:
    """Return the 4x4 transform of an <origin> (xyz in m, rpy in rad; z-y-x order), or the identity without one."""
    transform = np.eye(4)
    if element is not None:
        transform[:3, :3] = euler_to_rotation(vector(element.get("rpy"), element))
        transform[:3, 3] = vector(element.get("xyz"), element)
    return transform
