"""Texts from files of others reach the terminal without commands for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import wavesim
from wavesim_sdk.terminal_text import visible


@pytest.mark.parametrize("text", ["\x1b[2J", "\r", "\x00", "\x9b2J", "\u202e", "\u2066"])
def test_control_characters_are_written_out(text: str) -> None:
    assert visible(f"a{text}") == f"a\\u{ord(text[0]):04x}{text[1:]}"


def test_other_text_stays() -> None:
    assert visible("depth\t5 m\n\u6c34 \u00b0") == "depth\t5 m\n\u6c34 \u00b0"


@pytest.mark.parametrize("place", ["error", "contents"])
def test_a_foreign_configuration_does_not_command_the_terminal(tmp_path: Path, place: str) -> None:
    """XML allows the control characters above 0x80: 0x9b begins a command on many terminals."""
    body = '<vehicle name="v" model="{}" position="0 0 5 m">{}</vehicle>'
    sensor = '<sensors><ctd name="&#x9b;2J"/></sensors>'
    inner = body.format("&#x9b;2J", "") if place == "error" else body.format("lauv", sensor)
    (tmp_path / "c.xml").write_text(f"<wavesim><fleet>{inner}</fleet></wavesim>")
    done = wavesim("check", tmp_path / "c.xml")
    assert "\\u009b2J" in done.stdout + done.stderr and "\x9b" not in done.stdout + done.stderr


def test_commands_print_in_no_other_way(root: Path) -> None:
    sources = [path for path in root.glob("*/wavesim_*/**/*.py") if path.name != "terminal_text.py"]
    assert len(sources) > 200
    assert [str(path) for path in sources if "click.echo(" in path.read_text()] == []
