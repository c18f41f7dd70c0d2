"""Installed packages match the locks to the byte, and a failed installation is reported."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "locked").glob("*.txt"))
PAGES = ("viz/web", "tests/judges")
PROJECTS = (
    "broker_sdk",
    "kernels",
    "world",
    "devices",
    "conformance",
    "server",
    "emulators",
    "viz",
    "bridges",
    "studies",
)
AGAIN = "run `make lock` and commit what it writes"


def locked(name: str) -> dict[str, str]:
    """Package -> version."""
    text = (ROOT / "locked" / name).read_text()
    return {canonicalize_name(n): v for n, v in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)}


def lines(name: str) -> list[str]:
    """Requirements of a file."""
    return [t for line in (ROOT / name).read_text().splitlines() if (t := line.partition("#")[0].strip())]


def project(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name / "pyproject.toml").read_text())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda p: p.name)
def test_each_locked_package_has_hashes_and_no_lock_names_a_place(lock: Path) -> None:
    text = lock.read_text()
    entries = [e for e in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if e.strip()]
    assert entries
    assert all("--hash=sha256:" in e for e in entries)
    assert "://" not in text and "index-url" not in text


def test_the_locks_are_of_the_constraints() -> None:
    wanted = {canonicalize_name(n): v for n, v in (line.split("==") for line in lines("constraints.txt"))}
    for name in ("run.txt", "dev.txt", "mutants.txt"):
        for package, version in locked(name).items():
            assert wanted.get(package, version) == version, f"{name}: {package}; {AGAIN}"
    assert set(locked("run.txt")) - {"colorama"} <= set(wanted), "a package of locked/run.txt is not in constraints.txt"
    assert set(locked("run.txt")) <= set(locked("dev.txt"))


def test_what_is_required_is_locked() -> None:
    needed = [(Requirement(r), "dev.txt") for r in lines("requirements-dev.txt")]
    needed += [(Requirement(r), "mutants.txt") for r in lines("requirements-mutants.txt")]
    needed += [(Requirement(r), "audit.txt") for r in lines("requirements-audit.txt")]
    needed += [(Requirement(r), "mhkit.txt") for r in lines("requirements-mhkit.txt")]
    needed += [(Requirement(r), "bellhop.txt") for r in lines("requirements-bellhop.txt")]
    for name in PROJECTS:
        declared = project(name)["project"]
        needed += [(Requirement(r), "run.txt") for r in declared["dependencies"]]
        if name == "broker_sdk":
            needed += [(Requirement(r), "run.txt") for some in declared["optional-dependencies"].values() for r in some]
    for requirement, lock in needed:
        if not requirement.name.startswith("wavesim"):
            version = locked(lock).get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement.name} is not in locked/{lock}; {AGAIN}"
            assert requirement.specifier.contains(version, prereleases=True), f"{requirement}, {version}; {AGAIN}"


def test_the_kernels_are_compiled_by_what_is_installed_first() -> None:
    """A part of the lock; fails where a module that the compiling program imports needs more, which is not there yet then."""
    first = (ROOT / "locked" / "kernels.txt").read_text()
    entries = [e for e in re.split(r"^(?=\S)", first, flags=re.MULTILINE) if e.strip()]
    assert all(entry in (ROOT / "locked" / "run.txt").read_text() for entry in entries), AGAIN
    code = f"""
import sys, importlib.metadata as m
allowed = {set(locked("kernels.txt"))}
later = {{k for k, names in m.packages_distributions().items() if not any(n.lower().replace("_", "-") in allowed for n in names)}}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in later - {{"wavesim_sdk", "wavesim_kernels", "wavesim_world", "wavesim_devices", "wavesim_server"}}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import wavesim_server.cli
from wavesim_server import compiling
compiling.make_empty_world()
assert not {{"scipy", "matplotlib"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_build_tools_are_pinned() -> None:
    pinned = f"setuptools=={locked('run.txt')['setuptools']}"
    assert {name: project(name)["build-system"]["requires"] for name in PROJECTS} == {
        name: [pinned] for name in PROJECTS
    }


@pytest.mark.parametrize("folder", PAGES)
def test_npm_is_locked_too(folder: str) -> None:
    """By hashes, without the place where a file was had."""
    wanted = json.loads((ROOT / folder / "package.json").read_text())
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    for kind in ("dependencies", "devDependencies"):
        assert packages[""].get(kind) == wanted.get(kind), AGAIN
    assert all("integrity" in p and "resolved" not in p for place, p in packages.items() if place)


@pytest.mark.parametrize("target", ["trial", "test"])
def test_who_cannot_install_is_told_what_to_do(target: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / ".python").touch()
    python = venv / "bin" / "python"
    python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found' >&2\nexit 1\n")
    python.chmod(0o755)
    done = subprocess.run(["make", "-C", ROOT, target, f"VENV={venv}"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "check the network" in done.stdout
    assert "PIP_NO_INDEX=1 PIP_FIND_LINKS=" in done.stdout
    assert not (venv / ".installed").exists()


def test_the_audit_knows_what_may_be_passed_on_and_says_what_it_could_not_ask(tmp_path: Path) -> None:
    audit = runpy.run_path(str(ROOT / "locked" / "audit.py"))
    assert audit["strange"]({"good": "BSD-3-Clause", "bad": "GNU General Public\nLicense v3"}) == [
        "bad: GNU General Public License v3"
    ]
    with pytest.raises(audit["Unreachable"], match="refused"):
        audit["_json"]([sys.executable, "-c", "import sys; sys.exit('connection refused')"])
    with pytest.raises(audit["Unreachable"]):
        audit["_json"]([str(tmp_path / "absent")])
    shutil.copytree(ROOT / "locked", tmp_path / "locked")
    for folder in PAGES:
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(ROOT / folder / "package-lock.json", tmp_path / folder)
    blind = {"PATH": str(tmp_path), "PYTHONPATH": "", "PYTHONSAFEPATH": "1"}  # neither pip-audit nor npm
    command = [sys.executable, "-I", str(tmp_path / "locked" / "audit.py"), sys.executable]
    done = subprocess.run(command, env=os.environ | blind, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.count("NOT ASKED") == len(LOCKS) + len(PAGES) + 1
    assert "licences of what is in the page: nothing found" in done.stdout
