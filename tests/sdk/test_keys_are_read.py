"""Every key of a configuration or campaign is read by some code; no key is accepted and ignored."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from wavesim_studies.campaign.schema import Campaign
from wavesim_world.config.model import Config, Models
from wavesim_world.config.schema import child_elements, keys

PACKAGES = (
    "wavesim_sdk",
    "wavesim_kernels",
    "wavesim_world",
    "wavesim_devices",
    "wavesim_conformance",
    "wavesim_server",
    "wavesim_emulators",
    "wavesim_viz",
    "wavesim_bridges",
    "wavesim_studies",
)


def elements(of: type, seen: set[type]) -> Iterator[type]:
    if of not in seen:
        seen.add(of)
        yield of
        for _, child in child_elements(of):
            yield from elements(child.of, seen)


def names_read() -> set[str]:
    """Names of attributes that any of our code reads; a declaration reads nothing."""
    found: set[str] = set()
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None and spec.submodule_search_locations is not None
        for path in Path(next(iter(spec.submodule_search_locations))).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                    found.add(node.value)  # getattr, operator.attrgetter, tables of names
    return found


@pytest.mark.parametrize("root", [Config, Models, Campaign])
def test_every_key_is_read_somewhere(root: type) -> None:
    read = names_read()
    unread = [
        f"{of.__name__}.{field}"
        for of in elements(root, set())
        for field, key in keys(of)
        if key.kind != "numbers" and dataclasses.is_dataclass(of) and field not in read
    ]
    assert unread == []
