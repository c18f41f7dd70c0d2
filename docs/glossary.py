"""Bind names to the glossary: every word of a public class, table column, message and configuration key is in ``docs/glossary.md``."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from wavesim_sdk import tables
from wavesim_world.config.model import Config, Models
from wavesim_world.config.schema import child_elements, keys

PAGE = Path(__file__).parent / "glossary.md"
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_of(name: str) -> list[str]:
    """Return the words of a name: ``LineOfSight``, ``line_of_sight`` and ``line-of-sight`` have the same three words."""
    return [w.lower() for w in _WORD.findall(name)]


def vocabulary(page: str) -> set[str]:
    """Return every word that the page allows: its terms and names, and the list of its section *Words in names*."""
    lines = page.splitlines()
    cells = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    refused = {w for row in cells if len(row) == 5 for w in words_of(row[4])}
    allowed = {w for row in cells if len(row) == 5 for cell in row[:4] for w in words_of(cell)}
    return (allowed - refused) | set(words_of(page.partition("## Words in names")[2]))


def _known(word: str, allowed: set[str]) -> bool:
    forms = (
        word,
        word.removesuffix("s"),
        word.removesuffix("es"),
        re.sub("ies$", "y", word),
        re.sub("ves$", "f", word),
    )
    return len(word) == 1 or any(form in allowed for form in forms)


def declared() -> Iterator[tuple[str, str]]:
    """Yield the place and the name of each table column, message and configuration key."""
    for table in vars(tables).values():
        if isinstance(table, tables.Table):
            yield "table", table.name
            yield from ((f"column of table {table.name}", f.name) for f in table.fields)
    protocol = json.loads(importlib.resources.files("wavesim_sdk.wire").joinpath("protocol.json").read_text())
    for group in ("messages", "events", "requests"):
        for entry in protocol[group]:
            yield f"name in {group}", entry["name"].lower()
            yield from ((f"field of {entry['name']}", f["name"]) for f in entry["fields"])
    seen: set[type] = set()
    stack: list[type] = [Config, Models]
    while stack:
        of = stack.pop()
        if of in seen:
            continue
        seen.add(of)
        yield from ((f"key of {of.__name__}", k.name) for _, k in keys(of))
        for _, c in child_elements(of):
            yield f"element of {of.__name__}", c.name
            stack.append(c.of)


def unknown(classes: Iterable[tuple[str, str]] = (), page: str | None = None) -> Iterator[str]:
    """Yield names that contain a word that is not in the glossary. ``classes`` are pairs of name and file."""
    allowed = vocabulary(PAGE.read_text() if page is None else page)
    names = [*((f"class in {file}", name) for name, file in classes), *declared()]
    for place, name in names:
        for word in words_of(name):
            if not _known(word, allowed):
                yield f"{name} ({place}): '{word}' is not in docs/glossary.md"
