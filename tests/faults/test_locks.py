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
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "locked").glob("*.txt"))
PAGES = ("viz/web", "tests/judges")
PROJECTS = {path.parent.name: tomllib.loads(path.read_text()) for path in sorted(ROOT.glob("*/pyproject.toml"))}
WORKSPACE = tomllib.loads((ROOT / "pyproject.toml").read_text())
AGAIN = "run `make lock` and commit what it writes"


def locked(name: str) -> dict[str, str]:
    """Package -> version."""
    text = (ROOT / "locked" / name).read_text()
    return {canonicalize_name(n): v for n, v in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)}


def group(name: str) -> list[Requirement]:
    """Requirements of a dependency group, without the groups that it includes."""
    return [Requirement(r) for r in WORKSPACE["dependency-groups"][name] if isinstance(r, str)]


def required(name: str, extras: Iterable[str] = ()) -> Iterator[Requirement]:
    """Requirements of a distribution with extras, and of our distributions that it requires."""
    declared = next(p["project"] for p in PROJECTS.values() if p["project"]["name"] == name)
    optional = declared.get("optional-dependencies", {})
    for text in [*declared["dependencies"], *(r for extra in extras for r in optional[extra])]:
        requirement = Requirement(text)
        if requirement.name.startswith("wavesim"):
            yield from required(requirement.name, requirement.extras)
        else:
            yield requirement


@pytest.mark.parametrize("lock", LOCKS, ids=lambda p: p.name)
def test_each_locked_package_has_hashes_and_no_lock_names_a_place(lock: Path) -> None:
    text = lock.read_text()
    entries = [e for e in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if e.strip()]
    assert entries
    assert all("--hash=sha256:" in e for e in entries)
    assert "://" not in text and "index-url" not in text


def test_the_environment_of_the_tests_holds_what_users_run() -> None:
    for name in ("dev.txt", "mutants.txt"):
        assert locked("run.txt").items() <= locked(name).items(), f"{name}; {AGAIN}"


def test_what_is_required_is_locked() -> None:
    needed = [(r, "run.txt") for r in required("wavesim")]
    needed += [(r, f"{name}.txt") for name in WORKSPACE["dependency-groups"] if name != "build" for r in group(name)]
    for requirement, lock in needed:
        version = locked(lock).get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement.name} is not in locked/{lock}; {AGAIN}"
        assert requirement.specifier.contains(version, prereleases=True), f"{requirement}, {version}; {AGAIN}"


def test_the_kernels_are_compiled_by_what_is_installed_first() -> None:
    """A part of the lock; fails where a module that the compiling program imports needs more, which is not there yet then."""
    first = (ROOT / "locked" / "compiler.txt").read_text()
    entries = [e for e in re.split(r"^(?=\S)", first, flags=re.MULTILINE) if e.strip()]
    assert all(entry in (ROOT / "locked" / "run.txt").read_text() for entry in entries), AGAIN
    code = f"""
import sys, importlib.metadata as m
allowed = {set(locked("compiler.txt"))}
later = {{k for k, names in m.packages_distributions().items() if not any(n.lower().replace("_", "-") in allowed for n in names)}}
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in later and not name.startswith("wavesim_"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import wavesim_server.cli
from wavesim_server import compiling
compiling.make_empty_world()
assert not {{"scipy", "matplotlib"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_distributions_declare_the_same() -> None:
    """What builds them, the Pythons, the licence and the authors; the version comes from CITATION.cff."""
    whole = PROJECTS["wavesim"]
    for name, declared in PROJECTS.items():
        assert declared["build-system"] == whole["build-system"], name
        for key in ("version", "requires-python", "license", "license-files", "authors"):
            assert declared["project"].get(key) == whole["project"][key], f"{name}: {key}"
        pythons = {c for c in whole["project"]["classifiers"] if "Python ::" in c}
        assert pythons <= set(declared["project"]["classifiers"]), name
    done = subprocess.run([sys.executable, ROOT / "locked" / "version.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_version_of_citation_cff_is_written_into_a_project() -> None:
    written = runpy.run_path(str(ROOT / "locked" / "version.py"))["written"]
    citation = 'version: 2.1.0\nrepository-code: "https://host.example/wavesim"\nauthors:\n  - name: "A. Author"\n'
    text = 'version = "1"\nauthors = []\ndependencies = ["wavesim-sdk[log]~=1.0", "numpy>=2"]\n\n[tool.setuptools]\n'
    once = written(text, citation)
    assert once == written(once, citation), "a second time changes nothing"
    assert once == (
        'version = "2.1.0"\nauthors = [{ name = "A. Author" }]\ndependencies = ["wavesim-sdk[log]~=2.1.0", "numpy>=2"]\n\n'
        '[project.urls]\nRepository = "https://host.example/wavesim"\n\n[tool.setuptools]\n'
    )
    assert written(once, citation.replace("repository-code", "none")).count("urls") == 0


def test_distributions_require_each_other_at_the_same_version() -> None:
    """Layouts of shared memory differ between releases. ``wavesim`` and its extra
    ``studies`` install all distributions, and its extras exist."""
    declared = {p["project"]["name"]: p["project"] for p in PROJECTS.values()}
    for name, project in declared.items():
        optional = project.get("optional-dependencies", {})
        for text in [*project["dependencies"], *(r for some in optional.values() for r in some)]:
            requirement = Requirement(text)
            if requirement.name in declared:
                there = declared[requirement.name]
                assert requirement.extras <= set(there.get("optional-dependencies", {})), f"{name}: {requirement}"
                if requirement.name != name:
                    assert str(requirement.specifier) == f"~={there['version']}", f"{name}: {requirement}"
    whole = declared["wavesim"]
    by_extras = {Requirement(r).name for r in whole["optional-dependencies"]["studies"]}
    assert {Requirement(r).name for r in whole["dependencies"]} | by_extras == set(declared) - {"wavesim"}


def test_the_tools_know_every_package() -> None:
    packages = {path.parent.name for part in PROJECTS for path in (ROOT / part).glob("*/__init__.py")}
    assert packages <= set(WORKSPACE["tool"]["mypy"]["packages"])
    assert packages == set(WORKSPACE["tool"]["importlinter"]["root_packages"])
    assert (
        set(PROJECTS) == set(WORKSPACE["tool"]["mypy"]["mypy_path"].split(":")) <= set(WORKSPACE["tool"]["ruff"]["src"])
    )


@pytest.mark.parametrize("folder", PAGES)
def test_npm_is_locked_too(folder: str) -> None:
    """By hashes, without the place where a file was had."""
    wanted = json.loads((ROOT / folder / "package.json").read_text())
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    for kind in ("dependencies", "devDependencies"):
        assert packages[""].get(kind) == wanted.get(kind), AGAIN
    assert all("integrity" in p and "resolved" not in p for place, p in packages.items() if place)


@pytest.mark.parametrize("target", ["trial", "test"])
def test_a_failed_installation_says_what_to_do(target: str, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv / ".python").touch()
    python = venv / "bin" / "python"
    python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found' >&2\nexit 1\n")
    python.chmod(0o755)
    done = subprocess.run(["make", "-C", ROOT, target, f"VENV={venv}"], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "check the network" in done.stdout
    assert "PIP_NO_INDEX=1 PIP_FIND_LINKS=" in done.stdout and "UV_FIND_LINKS" in done.stdout
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
