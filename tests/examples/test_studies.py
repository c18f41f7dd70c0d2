"""The page about studies is true: its programs run as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("number", [0, 1])
def test_its_programs_run(root: Path, number: int) -> None:
    programs = re.findall(r"```python\n(.*?)```", (root / "docs/studies.md").read_text(), re.DOTALL)
    assert len(programs) == 2
    exec(compile(programs[number], f"studies.md, program {number}", "exec"), {})


def test_the_notebook_runs(root: Path) -> None:
    """Cell after cell; it asserts itself what it tells."""
    path, names = root / "examples" / "studies" / "first.ipynb", dict[str, Any]()
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    for number, cell in enumerate(cells):
        assert not cell["outputs"], "it is kept without results"
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
    assert len(names["told"]) == 600
