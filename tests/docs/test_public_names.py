"""What the Python reference lists is public: each of its modules names it in ``__all__`` (docs/stability.md)."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SITE = ast.parse((ROOT / "docs" / "site.py").read_text())
API = next(
    ast.literal_eval(node.value)
    for node in _SITE.body
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "API"
)
MODULES = ["wavesim", "wavesim_sdk"] + [name for _, modules in API.values() for name in modules]


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist_and_are_documented(name: str) -> None:
    module = importlib.import_module(name)
    public = module.__all__
    assert len(set(public)) == len(public) > 0
    for symbol in public:
        found = getattr(module, symbol)
        assert not callable(found) or not hasattr(found, "__module__") or found.__doc__, (
            f"{name}.{symbol}: no docstring"
        )
