"""The page about studies is true: its programs run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", [0, 1])
def test_its_programs_run(root: Path, number: int) -> None:
    programs = re.findall(r"```python\n(.*?)```", (root / "docs/studies.md").read_text(), re.DOTALL)
    assert len(programs) == 2
    exec(compile(programs[number], f"studies.md, program {number}", "exec"), {})
