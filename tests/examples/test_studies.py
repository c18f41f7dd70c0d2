"""The notebooks of the project run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "studies"
#: tests/judges/test_trainers.py runs the notebook that trains, because it needs PyTorch
NOTEBOOKS = sorted(p.name for p in FOLDER.glob("*.ipynb") if "learning.training" not in p.read_text())


def run_notebook(path: Path) -> None:
    """Cell after cell; it asserts itself what it tells."""
    names = dict[str, Any]()
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        assert not cell["outputs"], "it is kept without results"
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    assert any("assert " in line for cell in cells for line in cell["source"])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(root: Path, name: str) -> None:
    run_notebook(root / "examples" / "studies" / name)
