"""Builder of typed objects from XML files. It parses each file safely, and then checks it against the declaration. This
module also reads the library of models.

Every error is a :class:`~wavesim_sdk.errors.ConfigError`. Its message states the file and line, the invalid item, the
permitted values and, for a misspelt name, the nearest match.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from lxml import etree

from wavesim_sdk import units
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world import modem_presets
from wavesim_world.config import xml
from wavesim_world.config.acoustics import TransducerConfig
from wavesim_world.config.model import Config, Models
from wavesim_world.config.schema import Key, child_elements, keys
from wavesim_world.config.vehicle import Model
from wavesim_world.file_access import FILES_VARIABLE

T = TypeVar("T")


@functools.cache
def library() -> dict[str, Model]:
    """Return WaVeSim's own models, and the models that installed packages provide through the entry point group
    ``wavesim.models``.
    """
    found: dict[str, Model] = {}
    for package in ("wavesim_world.models", *(e.value for e in entry_points(group="wavesim.models"))):
        try:
            offered = sorted(files(package).iterdir(), key=lambda r: r.name)
        except ModuleNotFoundError:  # package of a release that kept its models elsewhere
            continue
        for resource in offered:
            if resource.name.endswith(".xml"):
                path = Path(str(resource))
                root, _ = parse_file(path)
                found.update(read_included_models(build_root(root, "models", Models, path), path, {})[0])
    return found


def read_models(path: Path) -> dict[str, Model]:
    """Return the models in a models file or in a configuration."""
    root, _ = parse_file(path)
    if root.tag == "wavesim":
        return read_included_models(build_root(root, "wavesim", Config, path).models, path, {})[0]
    return read_included_models(build_root(root, "models", Models, path), path, {})[0]


def read_element(path: Path, tag: str, of: type[T]) -> tuple[T, str]:
    """Read an XML file whose root element is a declared class. Returns the object and the text of the file."""
    root, text = parse_file(path)
    return build_root(root, tag, of, path), text


def check_value(declaration: Key, text: str, tag: str) -> None:
    """Raise ConfigError if ``text`` is not a valid value of a key. ``tag`` is the name of its element."""
    _value(declaration, text, tag, "", 0)


def parse_file(path: Path) -> tuple[Any, str]:
    """Parse an XML file safely: without entities, DTD or network access."""
    try:
        data = path.read_bytes()
    except OSError as error:
        hint = ""
        if isinstance(error, FileNotFoundError) and path.name == "config.xml":
            hint = "; `wavesim new` writes an example, and `wavesim trial --demo` needs no file"
        raise ConfigError(f"cannot read the file: {error.strerror}{hint}", str(path)) from None
    return xml.parse(data, str(path)), data.decode("utf-8", "replace")


def build_root(element: Any, tag: str, of: type[T], path: Path) -> T:
    if element.tag != tag:
        raise ConfigError(f"the root element is <{element.tag}>, expected <{tag}>", str(path), element.sourceline)
    return build(element, of, str(path))


def read_included_models(models: Models, path: Path, seen: dict[Path, None]) -> tuple[dict[str, Model], list[str]]:
    found: dict[str, Model] = {}
    texts: list[str] = []
    own: list[Model] = list(models.model)
    for include in models.include:
        target = (path.parent / include.file).resolve()
        if not target.is_relative_to(path.parent.resolve()):
            raise ConfigError(
                f"included file '{include.file}' is outside the folder of the configuration; move it there", str(path)
            )
        if target in seen:
            raise ConfigError(f"'{include.file}' is included more than once", str(path))
        seen[target] = None
        root, text = parse_file(target)
        inner, inner_texts = read_included_models(build_root(root, "models", Models, target), target, seen)
        own.extend(inner.values())
        texts += [text, *inner_texts]
    for model in own:
        if model.name in found:
            file, _, line = model.place.rpartition(":")
            raise ConfigError(f"model '{model.name}' is defined twice", file, int(line))
        found[model.name] = model
    return found, texts


#: removed keys of earlier releases, and their replacements
_REMOVED = {
    ("wavesim", "files"): ": a configuration cannot grant itself access to files. Remove the key. If you trust the "
    "configuration, allow access to the folder that contains its files, with --files FOLDER or "
    f"{FILES_VARIABLE}"
}


def build(element: Any, of: type[T], file: str) -> T:
    """Build an object of a declared class from its XML element."""
    if of is TransducerConfig and element.get("preset"):
        try:
            modem_presets.fill_element(element, modem_presets.find_preset(element.get("preset")))
        except ConfigError as error:
            raise ConfigError(str(error), file, element.sourceline) from None
    tag, line = element.tag, element.sourceline
    declared = {k.name: (field, k) for field, k in keys(of)}
    content = next((k for _, k in declared.values() if k.kind == "numbers"), None)
    attributes = {n: v for n, v in declared.items() if v[1].kind != "numbers"}
    values: dict[str, Any] = {}
    for name, text in element.attrib.items():
        if name not in attributes:
            hint = _REMOVED.get((tag, name)) or suggest_name(name, attributes)
            raise ConfigError(f"<{tag}> has no key '{name}'{hint}", file, line)
        field, declaration = attributes[name]
        values[field] = _value(declaration, text, tag, file, line)
    for name, (field, declaration) in attributes.items():
        if field not in values and declaration.required:
            unit = f" ({units.unit_names(declaration.quantity)})" if declaration.quantity else ""
            raise ConfigError(f"<{tag}> needs the key '{name}'{unit}: {declaration.doc}", file, line)
    text = (element.text or "").strip()
    if content is not None and text:
        values["rows"] = _numbers(content, text, tag, file, line)
    elif text or any((child.tail or "").strip() for child in element):
        raise ConfigError(f"<{tag}> contains text ('{text[:30]}') where only elements are allowed", file, line)
    _children(element, of, file, values)
    if any(f.metadata.get("place") for f in dataclasses.fields(of)):  # type: ignore[arg-type]  # T is one of our data classes
        values["place"] = f"{file}:{line}"
    if any(f.metadata.get("order") for f in dataclasses.fields(of)):  # type: ignore[arg-type]  # T is one of our data classes
        values["order"] = len(list(element.itersiblings(preceding=True)))
    return of(**values)


def _children(element: Any, of: type, file: str, values: dict[str, Any]) -> None:
    declared = {c.name: (field, c) for field, c in child_elements(of)}
    for item in element:
        if item.tag not in declared:
            raise ConfigError(
                f"<{element.tag}> has no element <{item.tag}>{suggest_name(str(item.tag), declared)}",
                file,
                item.sourceline,
            )
        field, c = declared[item.tag]
        value: Any = build(item, c.of, file)
        if c.many:
            values[field] = (*values.get(field, ()), value)
        elif field in values:
            raise ConfigError(f"<{item.tag}> may occur only once in <{element.tag}>", file, item.sourceline)
        else:
            values[field] = value
    for name, (field, c) in declared.items():
        if field in values or c.many:
            continue
        if c.required:
            raise ConfigError(f"<{element.tag}> needs the element <{name}>: {c.doc}", file, element.sourceline)
        if not _may_be_none(of, field):
            values[field] = build(etree.Element(name), c.of, file)


def _may_be_none(of: type, field: str) -> bool:
    """Return whether the annotation of a field allows None. If it does not, an absent XML element counts as present,
    with the default value of every key.
    """
    return "None" in str(of.__annotations__[field])


def _numbers(declaration: Key, text: str, tag: str, file: str, line: int) -> tuple[float, ...]:
    try:
        return units.parse(text, "", declaration.count or len(text.split()))
    except ValueError as error:
        raise ConfigError(f"<{tag}>: {error}", file, line) from None


def _value(declaration: Key, text: str, tag: str, file: str, line: int) -> Any:
    convert: dict[str, Callable[[], Any]] = {
        "text": lambda: text,
        "choice": lambda: _choice(declaration, text),
        "flag": lambda: _flag(text),
        "integer": lambda: _integer(declaration, text),
        "number": lambda: text if text in declaration.words else _number(declaration, text),
    }
    try:
        return convert[declaration.kind]()
    except ValueError as error:
        raise ConfigError(f"<{tag}> {declaration.name}: {error}", file, line) from None


def _choice(declaration: Key, text: str) -> str:
    if text not in declaration.choices:
        raise ValueError(f"'{text}' is not allowed{suggest_name(text, declaration.choices)}")
    return text


def _flag(text: str) -> bool:
    if text not in ("yes", "no"):
        raise ValueError(f"'{text}' is not allowed; write yes or no")
    return text == "yes"


def _integer(declaration: Key, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a whole number") from None
    _in_range(declaration, number)
    return number


def _number(declaration: Key, text: str) -> float | tuple[float, ...]:
    numbers = units.parse(text, declaration.quantity, declaration.count or len(text.split()))
    for number in numbers:
        _in_range(declaration, number)
    return numbers if declaration.count != 1 else numbers[0]


def _in_range(declaration: Key, number: float) -> None:
    q = declaration.quantity
    if declaration.low is not None and number < declaration.low:
        raise ValueError(
            f"{units.format_quantity(number, q)} is below the minimum, {units.format_quantity(declaration.low, q)}"
        )
    if declaration.high is not None and number > declaration.high:
        raise ValueError(
            f"{units.format_quantity(number, q)} is above the maximum, {units.format_quantity(declaration.high, q)}"
        )
