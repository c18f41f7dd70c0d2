"""Evidence pages name a test for each figure or capability, and these tests exist."""

from __future__ import annotations

import re
from pathlib import Path

HEADING = "## Which test shows which figure"
#: number of rows of each reference document
REFERENCES = {"W": 21, "D": 17, "S": 13, "H": 20, "P": 25}


def missing_tests(root: Path, cell: str) -> list[str]:
    """Return the tests that a cell names, as `FILE.py`: `test_name`, and that do not exist."""
    missing = []
    for part in re.split(r"`(?:tests/)?(?=[\w/]+\.py`)", cell)[1:]:
        file, _, rest = part.partition("`")
        path = root / "tests" / file
        text = path.read_text() if path.exists() else ""
        names = re.findall(r"`(test_\w+)`", rest)
        missing += [f"{file}: {name}" for name in names or [""] if f"def {name or 'test_'}" not in text]
    return missing


def test_every_test_that_the_page_names_is_there(root: Path) -> None:
    """Fails when a test is renamed, and when a row has neither test nor command."""
    section = (root / "docs/evidence/models.md").read_text().partition(HEADING)[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("|")][2:]
    assert len(rows) > 20
    for row in rows:
        assert "tests/" in row or "python -m" in row, row
        assert not missing_tests(root, row)


def test_each_capability_of_the_reference_documents_has_a_test(root: Path) -> None:
    page = (root / "docs/evidence/references.md").read_text()
    rows = {m[1]: m[0] for m in re.finditer(r"^\| ([A-Z]\d+) \|.*$", page, re.MULTILINE)}
    assert sorted(rows) == sorted(f"{letter}{k}" for letter, count in REFERENCES.items() for k in range(1, count + 1))
    for row in rows.values():
        shown = row.split(" | ")[3]
        assert re.search(r"`[\w/]+\.py`", shown), f"no test: {row}"
        assert not missing_tests(root, shown)


def test_a_test_that_does_not_exist_is_found(root: Path) -> None:
    assert missing_tests(root, "`tests/examples/test_evidence.py`: `test_a_test_that_does_not_exist_is_found`") == []
    assert missing_tests(root, "`examples/test_evidence.py`: `test_nothing`; `no/file.py`") == [
        "examples/test_evidence.py: test_nothing",
        "no/file.py: ",
    ]
