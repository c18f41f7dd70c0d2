"""The notebooks of the project run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted(p.name for p in (Path(__file__).parents[2] / "examples" / "studies").glob("*.ipynb"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(root: Path, name: str) -> None:
    """Cell after cell; it asserts itself what it tells."""
    path, names = root / "examples" / "studies" / name, dict[str, Any]()
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        assert not cell["outputs"], "it is kept without results"
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    assert any("assert " in line for cell in cells for line in cell["source"])
