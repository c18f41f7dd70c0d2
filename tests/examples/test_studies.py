"""The notebook that is kept with the project runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_the_notebook_runs(root: Path) -> None:
    """Cell after cell; it asserts itself what it tells."""
    path, names = root / "examples" / "studies" / "first.ipynb", dict[str, Any]()
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        assert not cell["outputs"], "it is kept without results"
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    assert len(names["told"]) == 600
