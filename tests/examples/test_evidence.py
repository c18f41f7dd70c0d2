"""The evidence page of the models names a test for each figure, and these tests exist."""

from __future__ import annotations

import re
from pathlib import Path

HEADING = "## Which test shows which figure"


def test_every_test_that_the_page_names_is_there(root: Path) -> None:
    """Fails when a test is renamed, and when a row has neither test nor command."""
    section = (root / "docs/evidence/models.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 20
    for row in rows:
        assert "tests/" in row or "python -m" in row, row
        for part in row.split("tests/")[1:]:
            file = "tests/" + part.partition("`")[0]
            text = (root / file).read_text()
            for name in re.findall(r"`(test_\w+)`", part):
                assert f"def {name}(" in text, f"{file} has no {name}"
