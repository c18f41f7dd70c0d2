"""Installation says how many packages, how much and how long, and passes a failure on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def install(root: Path, into: Path, *command: str) -> subprocess.CompletedProcess[str]:
    script = ["sh", "locked/install.sh", "locked/compiler.txt", str(into), *command]
    return subprocess.run(script, cwd=root, capture_output=True, text=True, check=False, timeout=60)


def test_progress_of_an_installation(root: Path, tmp_path: Path) -> None:
    count = len(re.findall(r"^[A-Za-z0-9].*==", (root / "locked/compiler.txt").read_text(), re.MULTILINE))
    done = install(root, tmp_path, "sh", "-c", f"head -c 3145728 /dev/urandom > {tmp_path}/package")
    assert done.returncode == 0 and done.stderr == ""
    first, last = done.stdout.splitlines()
    assert first == f"installing {count} packages of locked/compiler.txt into {tmp_path} (once)" and count > 5
    assert re.fullmatch(rf"installed {count} packages of locked/compiler.txt into {tmp_path}: [34] MB, \d+ s", last)


def test_a_failed_installation_fails(root: Path, tmp_path: Path) -> None:
    done = install(root, tmp_path, "sh", "-c", "exit 3")
    assert done.returncode == 3 and "installed" not in done.stdout


def test_downloads_count_and_are_removed(root: Path, tmp_path: Path) -> None:
    """What is in the temporary folder counts while the command runs, and is gone afterwards."""
    shown = f'head -c 2097152 /dev/urandom > "$TMPDIR/x"; du -sm {tmp_path} | cut -f1'
    done = install(root, tmp_path, "sh", "-c", shown)
    assert done.stdout.splitlines()[1] in ("2", "3") and list(tmp_path.iterdir()) == []
