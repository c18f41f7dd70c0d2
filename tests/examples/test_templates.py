"""The templates of `wavesim new`: each one runs to its end, from the files that the wheel has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import run_trial, wavesim
from wavesim_world.templates import FILES, TEMPLATES

pytestmark = pytest.mark.system


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_complete(tmp_path: Path, template: str) -> None:
    """Its configuration is valid, and each module that its programs import is there."""
    made = wavesim("new", tmp_path / "x", "--template", template)
    assert made.returncode == 0, made.stderr
    assert f"run it with: wavesim trial {tmp_path / 'x' / 'config.xml'}" in made.stderr
    files = {path.name for path in (tmp_path / "x").iterdir()}
    assert {Path(line).name for line in made.stdout.splitlines()} == files
    programs = re.findall(r'run="([^"]*)"', (tmp_path / "x" / "config.xml").read_text())
    assert programs and set(programs) <= files
    known = {path.stem for path in (FILES.parents[2] / "examples" / "onboard").glob("*.py")}
    for path in (tmp_path / "x").glob("*.py"):
        imported = set(re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)) & known
        assert {f"{name}.py" for name in imported} <= files, path
    checked = wavesim("check", cwd=tmp_path / "x")
    assert checked.returncode == 0 and "config.xml is valid" in checked.stdout, checked.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_runs_to_its_end(tmp_path: Path, name: str, template: str) -> None:
    assert wavesim("new", tmp_path / "x", "--template", template).returncode == 0
    done = run_trial(tmp_path / "x" / "config.xml", tmp_path, name, timeout=580)
    assert done.returncode == 0, done.stderr
    table = json.loads((tmp_path / name / "table.json").read_text())
    vehicles = [v for v in table["vehicles"] if v["model"] != "buoy"]
    assert table["complete"] and all(v["distance_m"] > 5.0 for v in vehicles), vehicles
    if template in ("demo", "two-auvs"):
        assert all(v["ranges"] > 30 and v["navigation_max_m"] < 15.0 for v in vehicles if "ranges" in v)
    if template == "modems":
        assert table["packets"]["delivery_ratio"] > 0.9


def test_files_are_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("mine")
    done = wavesim("new", tmp_path)
    assert done.returncode == 2 and "program.py already exists; select another folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_the_demonstration_needs_no_file(tmp_path: Path, name: str) -> None:
    more = ("--out", "runs", "--name", name, "--port", "0", "--duration", "2", "--no-plots", "--quiet")
    done = wavesim("trial", "--demo", *more, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.startswith("2 s simulated"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    both = wavesim("trial", "x.xml", "--demo", cwd=tmp_path)
    assert both.returncode == 2 and "has no effect with --demo" in both.stderr


@pytest.mark.parametrize("command", ["trial", "serve", "check"])
def test_a_missing_configuration_names_both_ways_out(tmp_path: Path, command: str) -> None:
    done = wavesim(command, cwd=tmp_path)
    assert done.returncode == 2 and "`wavesim new`" in done.stderr and "`wavesim trial --demo`" in done.stderr


def test_the_wheel_has_the_files_and_the_repository_has_each_once(root: Path, tmp_path: Path) -> None:
    assert all(path.is_symlink() for path in FILES.iterdir() if path.name != "__pycache__")
    source = tmp_path / "world"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{root}", str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    subprocess.run([*command, str(source / "world")], check=True, timeout=110)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        for path in (p for p in FILES.iterdir() if p.is_symlink()):
            assert packed.read(f"wavesim_world/template_files/{path.name}") == path.read_bytes()
