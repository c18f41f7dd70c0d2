"""Keys of a configuration by their path, in the XML itself."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from lxml import etree

from wavesim_sdk.config import xml
from wavesim_sdk.config.load import check_value
from wavesim_sdk.config.model import Config
from wavesim_sdk.config.schema import Child, Key, child_elements, keys
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name

_STEP = re.compile(r"([\w-]+)(?:\[([^\]]+)\])?")
#: attributes that name a file which is read; the log's is one that is written
_FILES = ("file", "run", "keys")
_WRITTEN = ("log",)


def find(root: Any, path: str) -> tuple[Any, Key]:
    """(element, declaration) of the key at a path such as ``fleet/vehicle[lauv]/position``. ConfigError if there is no such
    key, or if it may be several. An element that may be left out and then has its defaults is made."""
    *steps, last = path.strip("/").split("/")
    element: Any = root
    of: type = Config
    for number, step in enumerate(steps):
        element, of = _child(element, of, step, "/".join(steps[: number + 1]))
    declared = {k.name: k for _, k in keys(of) if k.kind != "numbers"}
    if last not in declared:
        raise ConfigError(f"'{path}': <{element.tag}> has no key '{last}'{suggest_name(last, declared)}")
    return element, declared[last]


def _child(element: Any, of: type, step: str, path: str) -> tuple[Any, type]:
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
        raise ConfigError(f"'{path}' matches {len(found)} elements; write <{name}[NAME]> or <{name}[NUMBER]>")
    if not found:
        if c.many or _may_be_absent(of, field, c):
            raise ConfigError(f"'{path}' matches nothing: there is no <{name}> in <{element.tag}>, write one")
        found = [etree.SubElement(element, name)]
    return found[0], c.of


def _may_be_absent(of: type, field: str, c: Child) -> bool:
    """Whether to leave it out means something else than its defaults."""
    return c.required or "None" in str(of.__annotations__[field])


def assign(root: Any, path: str, value: str) -> None:
    """Write a key. ConfigError if the path is not that of one, or the value not one of its."""
    element, declaration = find(root, path)
    check_value(declaration, value, path)
    element.set(declaration.name, value)


class BaseConfiguration:
    """The configuration that all runs start from."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.data = path.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot read the file: {error.strerror}", str(path)) from None

    def tree(self) -> Any:
        """The XML, to be changed."""
        return xml.parse(self.data, str(self.path))

    def write_configuration(self, keys_: dict[str, str], folder: Path) -> bytes:
        """A configuration file for another ``folder`` with some keys (path -> text) changed; the files that it names are found
        from there."""
        root = self.tree()
        for path, value in keys_.items():
            assign(root, path, value)
        here, there = self.path.parent.resolve(), folder.resolve()
        _inline(root, self.path)
        _move(root, here, there)
        root.set("files", os.path.relpath(here / root.get("files", "."), there))
        return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def _inline(root: Any, path: Path) -> None:
    """Models that are included stand in the file itself: they must not lie outside of its folder."""
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
