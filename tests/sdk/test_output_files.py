"""The check of files that a command will write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.output_files import check_writable


def test_files_that_cannot_be_written_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (None, Path("new.json"), tmp_path / "new.json"):
        check_writable(path)
    Path("old.json").touch()
    check_writable(Path("old.json"))
    with pytest.raises(ConfigError, match=r"^cannot write absent/new.json: the folder absent does not exist$") as error:
        check_writable(Path("absent/new.json"))
    assert error.value.exit_code == 2
    with pytest.raises(ConfigError, match=r"it is a folder$"):
        check_writable(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: path != Path("old.json"))
    with pytest.raises(ConfigError, match=r"^cannot write old.json: no permission$"):
        check_writable(Path("old.json"))
