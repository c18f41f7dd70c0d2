"""Versions of Numba: the tested ones are installed, and any other is refused in one line."""

from __future__ import annotations

import ast
import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.nursery import CLI
from wavesim_kernels import numba_version
from wavesim_kernels.numba_version import TESTED_VERSIONS, UnsupportedNumba, check_numba_version

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT / p for p in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["mypy_path"].split(":")
]
#: the modules of Numba that its documentation describes
PUBLIC = {"numba", "numba.extending"}


@pytest.fixture
def other_version(tmp_path: Path) -> dict[str, str]:
    """The environment of a program that finds another version of Numba."""
    metadata = tmp_path / "numba-0.99.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: numba\nVersion: 0.99.0\n")
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path[1:]]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_DISABLE_JIT": "0",
    }


LINE = (
    "numba 0.99.0 is installed, but the kernels need numba 0.68.1; run pip install 'numba==0.68.1' 'llvmlite==0.50.0'"
)


@pytest.mark.parametrize("command", ["compile", "trial"])
def test_a_command_reports_another_version_in_one_line(other_version: dict[str, str], root: Path, command: str) -> None:
    arguments = [str(root / "config.xml")] if command == "trial" else []
    run = subprocess.run(
        [*CLI, command, *arguments], env=other_version, capture_output=True, text=True, check=False, cwd=root
    )
    assert run.returncode == UnsupportedNumba.exit_code
    assert (run.stdout, run.stderr) == ("", f"wavesim: {LINE}\n")


def test_a_program_that_imports_kernels_gets_the_same_line(other_version: dict[str, str]) -> None:
    code = "import wavesim_sdk.errors as e\ntry:\n    import wavesim_server.simulation\nexcept e.WaveSimError as x:\n    print(x)"
    run = subprocess.run([sys.executable, "-c", code], env=other_version, capture_output=True, text=True, check=True)
    assert run.stdout == f"{LINE}\n"


def test_a_missing_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(numba_version.TESTED_VERSIONS, "no-such-package", "1.0")
    with pytest.raises(UnsupportedNumba, match="no no-such-package is installed, but the kernels need no-such-package"):
        check_numba_version()


def test_the_package_requires_the_tested_versions() -> None:
    project = tomllib.loads((ROOT / "kernels" / "pyproject.toml").read_text())["project"]
    assert set(project["optional-dependencies"]["extend"]) == {
        f"{name}=={version}" for name, version in TESTED_VERSIONS.items()
    }
    check_numba_version()


def test_private_parts_of_numba_are_used_in_two_modules_only() -> None:
    """Everything in its table exists, and its imports are in the table. Extensions of the dynamics use none."""
    from wavesim_kernels.numba_internals import PRIVATE_PARTS

    for path in PRIVATE_PARTS:
        pkgutil.resolve_name(path)
    users: dict[str, set[str]] = {}
    for package in [*PACKAGES, ROOT / "examples", ROOT / "benchmarks"]:
        for file in package.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names = [f"{node.module}.{alias.name}" for alias in node.names if node.module not in PUBLIC]
                for name in names:
                    if name.startswith("numba.") and name not in PUBLIC:
                        users.setdefault(file.stem, set()).add(name)
    assert users.keys() == {"numba_internals", "entry_points"}
    named = users["numba_internals"] | users["entry_points"]
    assert [name for name in named if not any(part.startswith(name) for part in PRIVATE_PARTS)] == []
