"""The commands at the top of docs/janus.md print the line that the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from wavesim_sdk.cli_janus import janus

PAGE = Path(__file__).parents[2] / "docs" / "janus.md"


def test_the_commands_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    commands = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    shown = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert commands and shown
    output = ""
    for line in commands[1].splitlines():
        program, group, *arguments = shlex.split(line)
        assert (program, group) == ("wavesim", "janus")
        result = CliRunner().invoke(janus, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        output = result.output
    assert shown[1].strip() in output
