"""XSD and reference page of the configuration, derived from its declaration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping

from lxml import etree

from wavesim_sdk import units
from wavesim_world.config.model import Config, Models
from wavesim_world.config.schema import Key, child_elements, keys, type_name

_XS = "http://www.w3.org/2001/XMLSchema"
_NUMBER = r"[\-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][\-+]?[0-9]+)?"


def _classes(root: type) -> Iterator[type]:
    """Yield every element class once, in reading order."""
    seen: set[type] = set()
    stack = [root]
    while stack:
        of = stack.pop(0)
        if of not in seen:
            seen.add(of)
            yield of
            stack = [c.of for _, c in child_elements(of)] + stack


def _sub(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    return etree.SubElement(parent, f"{{{_XS}}}{tag}", attributes)


def xsd() -> bytes:
    """Return an XML schema for editors and other tools. It accepts the same files as the first stage of the
    configuration reader.
    """
    e = etree.Element(f"{{{_XS}}}schema", nsmap={"xs": _XS})

    _sub(e, "element", name="wavesim", type="Config")
    _sub(e, "element", name="models", type="Models")
    for of in [*_classes(Config)]:
        kind = _sub(e, "complexType", name=type_name(of))
        has_content = any(k.kind == "numbers" for _, k in keys(of))
        if has_content:
            kind.set("mixed", "true")
        declared = list(child_elements(of))
        if declared:
            group = _sub(kind, "choice", minOccurs="0", maxOccurs="unbounded")
            for _, c in declared:
                _sub(group, "element", name=c.name, type=type_name(c.of))
        for _, k in keys(of):
            if k.kind == "numbers":
                continue
            attribute = _sub(kind, "attribute", name=k.name, use="required" if k.required else "optional")
            _type(attribute, k)
    return etree.tostring(e, pretty_print=True, xml_declaration=True, encoding="utf-8")


def _type(attribute: etree._Element, k: Key) -> None:
    words = "".join(f"|{word}" for word in k.words)
    base = {"text": "string", "choice": "string", "flag": "string", "integer": "integer", "number": "string"}
    restriction = _sub(_sub(attribute, "simpleType"), "restriction", base=f"xs:{base[k.kind]}")
    if k.kind in ("choice", "flag"):
        for value in k.choices or ("yes", "no"):
            _sub(restriction, "enumeration", value=value)
    if k.kind == "number":
        unit = "|".join(units.QUANTITIES[k.quantity]) if k.quantity else ""
        tail = rf"\s*({unit})" if unit else ""
        _sub(restriction, "pattern", value=rf"\s*({_NUMBER}[\s,]*){{{k.count or '1,'}}}{tail}\s*{words}")


def _plain(text: str) -> str:
    """Return text for a table cell. Element names such as `<world>` become code, because a browser would treat them as
    tags.
    """
    return re.sub(r"(?<!`)<([\w-]+)([^>`]*)>(?!`)", r"`<\1\2>`", " ".join(text.split())).replace("|", "\\|")


def markdown() -> str:
    """Return docs/CONFIG.md: every element and key with unit, default and range."""
    lines = [
        "# Configuration reference",
        "",
        "Generated from `wavesim_world/config/model.py` by `make docs`; do not edit by hand.",
        "",
        "Write a quantity with its unit (`15 ms`, `2 kn`, `1 2 3 m`). The unit `-` marks pure numbers.",
        "Angles: 0 deg is north, 90 deg is east. World frame: north, east, down. Body frame: forward, starboard, down.",
        "`wavesim check FILE` checks a configuration and reports any error with its line number.",
        "",
    ]
    return "\n".join([*lines, *reference_sections(Config, {Config: "wavesim", Models: "models"}, "##")])


def reference_sections(
    root: type, names: dict[type, str], level: str, elsewhere: Mapping[type, str] | None = None
) -> list[str]:
    """Return a Markdown section with keys and child elements for ``root`` and each element class below it.

    ``names`` contains the heading of each class whose heading differs from its type name. ``level`` is the Markdown
    prefix of the headings, such as ``##``. ``elsewhere`` maps each class that another page describes, with the classes
    below it, to that page.
    """
    lines: list[str] = []
    elsewhere = elsewhere or {}
    omitted = {below for of in elsewhere for below in _classes(of)}
    for of in _classes(root):
        if of in omitted:
            continue
        lines += [f"{level} {names.get(of, type_name(of))}", "", _plain(inspect.getdoc(of) or ""), ""]
        declared = list(keys(of))
        if declared:
            lines += ["| key | unit | default | range | meaning |", "|---|---|---|---|---|"]
            lines += [_row(k) for _, k in declared]
            lines.append("")
        inner = list(child_elements(of))
        if inner:
            lines += ["| element | occurrences | meaning |", "|---|---|---|"]
            for _, c in inner:
                page = elsewhere.get(c.of, "")
                often = "any number" if c.many else "once" if c.required else "at most once"
                lines.append(
                    f"| `<{c.name}>` ([{type_name(c.of)}]({page}#{type_name(c.of).lower()})) | {often} | {_plain(c.doc)} |"
                )
            lines.append("")
    return lines


def _row(k: Key) -> str:
    unit = (
        ", ".join(units.QUANTITIES[k.quantity])
        if k.quantity
        else {"text": "text", "choice": "choice", "flag": "yes/no"}.get(k.kind, "-")
    )
    if k.words:
        unit += "".join(f", or `{word}`" for word in k.words)
    if k.count != 1:
        unit = f"{k.count or 'n'} x {unit}"
    if k.required:
        default = "**required**"
    elif isinstance(k.default, bool):
        default = "yes" if k.default else "no"
    elif isinstance(k.default, tuple):
        default = " ".join(f"{d:g}" for d in k.default) or "none"
    elif isinstance(k.default, str):
        default = f"`{k.default}`" if k.default else "empty"
    else:
        default = units.format_quantity(float(k.default), k.quantity)
    low = units.format_quantity(k.low, k.quantity) if k.low is not None else ""
    high = units.format_quantity(k.high, k.quantity) if k.high is not None else ""
    span = f"{low} .. {high}" if low or high else " / ".join(k.choices)
    name = "(text)" if k.kind == "numbers" else f"`{k.name}`"
    return f"| {name} | {unit} | {default} | {span} | {_plain(k.doc)} |"
