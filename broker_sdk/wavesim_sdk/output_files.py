"""Check of the files that a command will write, before a long computation."""

from __future__ import annotations

import os
from pathlib import Path

from wavesim_sdk.errors import ConfigError

__all__ = ["check_writable"]


def check_writable(path: Path | None) -> None:
    """Raise ConfigError if a file cannot be written: its folder does not exist, it is a folder, or the user lacks the
    permission. None stands for a file that is not requested.
    """
    if path is None:
        return
    problem = ""
    if not path.absolute().parent.is_dir():
        problem = f"the folder {path.parent} does not exist"
    elif path.is_dir():
        problem = "it is a folder"
    elif not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        problem = "no permission"
    if problem:
        raise ConfigError(f"cannot write {path}: {problem}")
