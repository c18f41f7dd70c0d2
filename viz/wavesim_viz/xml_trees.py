"""XML element trees of models, and declarations of their permitted content, as plain data for the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lxml import etree

from wavesim_sdk import units
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_viz.page_protocol import ElementRule, XmlTree
from wavesim_world import modem_presets
from wavesim_world.config import xml
from wavesim_world.config.acoustics import TransducerConfig
from wavesim_world.config.ranging_sensors import SonarConfig
from wavesim_world.config.schema import child_elements, keys, type_name
from wavesim_world.sonars import presets

#: names of the presets that each element accepts
LISTED: dict[type, Iterable[str]] = {TransducerConfig: modem_presets.PRESETS, SonarConfig: presets.PRESETS}


class RequestFailed(WaveSimError):
    """Raised when a request cannot be fulfilled. The text explains the reason to the user."""


def to_tree(element: etree._Element) -> XmlTree:
    """Convert an element to plain data."""
    return {
        "tag": str(element.tag),
        "attributes": {str(k): str(v) for k, v in element.attrib.items()},
        "text": " ".join((element.text or "").split()),
        "children": [to_tree(c) for c in element if isinstance(c.tag, str)],
    }


def to_element(tree: Any) -> etree._Element:
    """Build an element from plain data."""
    try:
        element = etree.Element(tree["tag"], {str(k): str(v) for k, v in tree.get("attributes", {}).items()})
        element.text = tree.get("text") or None
        for child in tree.get("children", []):
            element.append(to_element(child))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise RequestFailed(f"invalid tree of elements: {error}") from None
    return element


def to_text(root: etree._Element) -> str:
    etree.indent(root)
    return etree.tostring(root, pretty_print=True, xml_declaration=True, encoding="utf-8").decode()


def declared(of: type) -> ElementRule:
    return {
        "doc": " ".join((of.__doc__ or "").split()),
        "keys": [
            {
                "name": k.name,
                "kind": k.kind,
                "doc": k.doc,
                "units": list(units.QUANTITIES[k.quantity]) if k.quantity else [],
                "count": k.count,
                "required": k.required,
                "default": None if k.required else written(k.default, k.quantity, k.kind),
                "low": None if k.low is None else units.format_quantity(k.low, k.quantity),
                "high": None if k.high is None else units.format_quantity(k.high, k.quantity),
                "choices": _choices(of, k.name) or list(k.choices) or (["yes", "no"] if k.kind == "flag" else []),
            }
            for _, k in keys(of)
        ],
        "children": [
            {"name": c.name, "of": type_name(c.of), "many": c.many, "required": c.required, "doc": c.doc}
            for _, c in child_elements(of)
        ],
    }


def _choices(of: type, key: str) -> list[str]:
    """Return the names that a text key accepts, if a library lists them."""
    return sorted(LISTED.get(of, ())) if key == "preset" else []


def written(value: Any, quantity: str, kind: str) -> str:
    """Format a default value for display."""
    if kind == "flag":
        return "yes" if value else "no"
    if isinstance(value, tuple):
        unit, factor = next(iter(units.QUANTITIES[quantity].items())) if quantity else ("", 1.0)
        return f"{' '.join(f'{v / factor:g}' for v in value)} {unit}".strip() if value else ""
    return value if isinstance(value, str) else units.format_quantity(float(value), quantity)


def classes(root: type, found: dict[str, ElementRule]) -> dict[str, ElementRule]:
    if type_name(root) not in found:
        found[type_name(root)] = declared(root)
        for _, c in child_elements(root):
            classes(c.of, found)
    return found


def parse(data: bytes) -> Any:
    """Parse an uploaded file, including its comments. Raise RequestFailed if the file cannot be read."""
    try:
        return xml.parse(data, comments=True)
    except ConfigError as error:
        raise RequestFailed(str(error)) from None


def root_of(path: Path) -> str:
    """Return the tag of the outermost element in a file, or an empty string if the file cannot be read."""
    try:
        return str(parse(path.read_bytes()).tag)
    except (RequestFailed, OSError):
        return ""
