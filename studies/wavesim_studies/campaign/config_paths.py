"""Access to the keys in an XML configuration by path."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from lxml import etree

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world.config import xml
from wavesim_world.config.build import check_value
from wavesim_world.config.model import Config
from wavesim_world.config.schema import Child, Key, child_elements, keys

_STEP = re.compile(r"([\w-]+)(?:\[([^\]]+)\])?")
#: attributes that name an input file; the `file` attribute of the log is not among them, because it names an output
#: file
_FILES = ("file", "run", "keys")
_WRITTEN = ("log",)


def find(root: Any, path: str) -> tuple[Any, Key]:
    """Return the element that contains the key at a path such as ``fleet/vehicle[lauv]/position``, and the declaration
    of the key.

    If an optional element on the path is absent, create it with its defaults. Raise ConfigError if the key does not
    exist or is ambiguous.
    """
    *steps, last = path.strip("/").split("/")
    element: Any = root
    of: type = Config
    for number, step in enumerate(steps):
        element, of = child_element(element, of, step, "/".join(steps[: number + 1]))
    declared = {k.name: k for _, k in keys(of) if k.kind != "numbers"}
    if last not in declared:
        raise ConfigError(f"'{path}': <{element.tag}> has no key '{last}'{suggest_name(last, declared)}")
    return element, declared[last]


def child_element(element: Any, of: type, step: str, path: str) -> tuple[Any, type]:
    """Return the child element that one step of a path names, and its class. Raise ConfigError as :func:`find` does."""
    declared = {c.name: (field, c) for field, c in child_elements(of)}
    match = _STEP.fullmatch(step)
    if match is None or match[1] not in declared:
        raise ConfigError(f"'{path}': <{element.tag}> has no element <{step}>{suggest_name(step, declared)}")
    name, which = match[1], match[2]
    field, c = declared[name]
    found = [e for e in element if e.tag == name]
    if which is not None:
        names = [e.get("name") or "" for e in found]
        if which in names:
            return found[names.index(which)], c.of
        if which.isdecimal() and int(which) < len(found):
            return found[int(which)], c.of
        raise ConfigError(f"'{path}' matches nothing{suggest_name(which, [n for n in names if n])}")
    if len(found) > 1:
        raise ConfigError(
            f"'{path}' is ambiguous: it matches {len(found)} elements; write <{name}[NAME]> or <{name}[NUMBER]>"
        )
    if not found:
        if c.many or _may_be_absent(of, field, c):
            raise ConfigError(f"'{path}' matches nothing: <{element.tag}> has no <{name}>; add one")
        found = [etree.SubElement(element, name)]
    return found[0], c.of


def _may_be_absent(of: type, field: str, c: Child) -> bool:
    """Return whether leaving out the element has a different effect from declaring it with default values."""
    return c.required or "None" in str(of.__annotations__[field])


def assign(root: Any, path: str, value: str) -> None:
    """Set the key at ``path``. Raise ConfigError if the path or the value is invalid."""
    element, declaration = find(root, path)
    check_value(declaration, value, path)
    element.set(declaration.name, value)


class BaseConfiguration:
    """The configuration that all runs are based on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read the file: {error.strerror}", str(path)) from None

    def tree(self) -> Any:
        """Parse a new copy of the XML, which the caller may change."""
        return xml.parse(self.data, str(self.path))

    def write_configuration(self, keys_: dict[str, str], folder: Path) -> bytes:
        """Return the text of the configuration as a file for ``folder``, with the keys in ``keys_`` (path -> text)
        changed.

        Relative paths of other files are rewritten so that they are correct in that folder. The reader of the file must
        allow the folder of the base configuration (``allow_files``).
        """
        root = self.tree()
        for path, value in keys_.items():
            assign(root, path, value)
        here, there = self.path.parent.resolve(), folder.resolve()
        _inline(root, self.path)
        _move(root, here, there)
        return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _inline(root: Any, path: Path) -> None:
    """Copy included models into the file, because a file can include only files in its own folder or below."""
    for models in root.findall("models"):
        for include in models.findall("include"):
            target = (path.parent / include.get("file", "")).resolve()
            try:
                inner = xml.parse(target.read_bytes(), str(target))
            except OSError as error:
                raise ConfigError(f"cannot read the file: {error.strerror}", str(target)) from None
            wrapped = etree.Element("wavesim")
            wrapped.append(inner)
            _inline(wrapped, target)
            _move(inner, target.parent, path.parent.resolve())
            models.remove(include)
            models.extend(list(inner))


def _move(root: Any, here: Path, there: Path) -> None:
    for element in root.iter():
        for name in _FILES:
            value = element.get(name)
            if value and element.tag not in _WRITTEN and not Path(value).is_absolute():
                element.set(name, os.path.relpath(here / value, there))
