"""`wavesim` commands in separate processes, for requests from the page."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wavesim_viz.xml_trees import RequestFailed

COMMAND_S = 120.0


class ProcessResult(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    errors: list[str]

    @property
    def reason(self) -> str:
        """Return the last line that the command wrote to standard error, without its prefix."""
        last = self.errors[-1] if self.errors else "the command failed"
        return last.removeprefix("wavesim: ").removeprefix("Error: ")


def run_module(module: str, arguments: Sequence[str], folder: Path, seconds: float = COMMAND_S) -> ProcessResult:
    """Run a Python module as a program in a folder. Raises RequestFailed if it does not finish in time."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RequestFailed(f"`{arguments[0]}` did not finish within {seconds:g} s") from None
    return ProcessResult(done.returncode, done.stdout, done.stderr.strip().splitlines())


def run_wavesim(arguments: Sequence[str], folder: Path) -> str:
    """Run a `wavesim` command; return its output. Raises RequestFailed with its one-line error message."""
    done = run_module("wavesim_sdk", arguments, folder)
    if done.code:
        raise RequestFailed(done.reason if done.errors else f"`wavesim {arguments[0]}` failed")
    return done.out
