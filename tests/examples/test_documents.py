"""What the documents tell to type: every command and option exists, every program is Python that finds its imports, and what needs
no more than this machine is run. The tour of the README and the studies run in tests of their own."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import trimesh
from lxml import etree

from wavesim_sdk.config import load
from wavesim_sdk.errors import ConfigError

#: programs that are not run here, by page: and why
ELSEWHERE = {
    "README.md": "test_readme.py runs it",
    "docs/SHARED_MEMORY.md": "needs a server with an emulator; tests/e2e reads the same",
    "docs/models.md": "a hundred vehicles; the tests of studies call the same",
    "docs/studies.md": "test_studies.py runs them",
    "docs/network.md": "needs a client's rights and an emulator; tests/e2e/test_crew.py does the same",
    "docs/navigation.md": "needs the readings of a mission; tests/studies/test_filter.py makes the same calls",
    "docs/camera.md": "needs a camera's emulator; tests/emulators/test_camera.py does the same",
    "docs/sonars.md": "needs a sonar's emulator; tests/emulators/test_sonar_frames.py does the same",
}
GIVEN: dict[str, dict[str, Any]] = {  #: names that a page's program takes as given
    "docs/ocean.md": {
        "p_W": np.array([[0.0, 0.0, 5.0], [10.0, 0.0, 20.0]]), "time_s": 3.0, "north": 5.0, "east": -5.0,
        "origins": np.array([[0.0, 0.0, 5.0]]), "directions": np.array([[0.0, 0.0, 1.0]]),
    }
}  # fmt: skip


def blocks(root: Path, language: str) -> list[tuple[str, str]]:
    """(page, text) of all code blocks of a language; pages that a program writes are checked by it."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    return [
        (str(page.relative_to(root)), text)
        for page in pages
        if page.name not in ("COMMANDS.md", "CONFIG.md")
        for found, text in re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
        if found == language
    ]


def test_commands_of_the_documents(root: Path) -> None:
    commands = {c.name: c for entry in entry_points(group="wavesim.commands") for c in entry.load()()}
    whole = click.Group("wavesim", commands={str(k): c for k, c in commands.items()})
    seen = 0
    for page, text in blocks(root, ""):
        for line in re.findall(r"(?:^|&& )wavesim (.*)", text, re.MULTILINE):
            words = shlex.split(re.split(r"\s#|\s{3,}|&&|[|>] |\.\.\.", line)[0].rstrip(" \\"))
            at: click.Command = whole
            while isinstance(at, click.Group) and words:
                found = at.get_command(click.Context(at), words[0])
                assert found is not None, f"{page}: there is no command '{words[0]}' in: wavesim {line}"
                at, words = found, words[1:]
            context = click.Context(at, info_name=at.name)
            try:
                _, left, _ = at.make_parser(context).parse_args(words)
            except click.UsageError as error:
                pytest.fail(f"{page}: wavesim {line}: {error.message}")
            assert not left or context.ignore_unknown_options or at.ignore_unknown_options, f"{page}: {line}: {left}"
            seen += 1
    assert seen > 40


def test_programs_find_what_they_import(root: Path) -> None:
    found = blocks(root, "python")
    for page, text in found:
        for node in ast.walk(compile(text, page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                for name in node.names:
                    assert hasattr(module, name.name), f"{page}: {node.module} has no {name.name}"
    assert {page for page, _ in found} >= ELSEWHERE.keys(), "a page that is named here has no program any more"


def test_programs_run(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    run = [(page, text) for page, text in blocks(root, "python") if page not in ELSEWHERE]
    assert {page for page, _ in run} >= GIVEN.keys()
    for page, text in run:
        exec(compile(text, page, "exec"), dict(GIVEN.get(page, {})))


FLEET = '<fleet><vehicle name="v" model="lauv" position="0 0 5 m">{}</vehicle></fleet>'
#: blocks that test_extending.py and test_campaign.py put where they belong
OTHERS = {"campaign", "term", "actuator"}


def test_pieces_of_configurations_are_read(root: Path, tmp_path: Path) -> None:
    """By the real reader: those of the world and the server as they stand, those of a model or a vehicle by their instruments."""
    seen = 0
    trimesh.creation.box().export(tmp_path / "wreck.stl")
    for page, text in [*blocks(root, "xml"), *((p, t) for p, t in blocks(root, "") if t.startswith("<"))]:
        whole = etree.fromstring(f"<page>{text.replace(' ...>', '>')}</page>")
        parts = {
            str(e.tag): etree.tostring(e, encoding="unicode", with_tail=False) for e in whole if isinstance(e.tag, str)
        }
        for tag in parts.keys() - OTHERS:
            if tag in ("world", "network"):
                inner = parts[tag] + FLEET.format("")
            else:
                sensors = whole.find(f"{tag}//sensors")
                assert sensors is not None, f"{page}: nobody reads this block of <{tag}>"
                inner = FLEET.format(etree.tostring(sensors, encoding="unicode", with_tail=False))
            path = tmp_path / "piece.xml"
            path.write_text(f"<wavesim>{inner}</wavesim>")
            try:
                load(path)
            except ConfigError as error:
                pytest.fail(f"{page}: {error}")
            seen += 1
    assert seen >= 5
