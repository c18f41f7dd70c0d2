"""C programs of the examples and of their tests, compiled with all warnings as errors."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
POSIX = "-D_POSIX_C_SOURCE=200809L"  #: sockets
SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def absent(what: str) -> None:
    """A tool that is not there: loud here, a failure in CI."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def tool(*names: str) -> str:
    """The first of some programs that there is."""
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    absent(f"this needs {' or '.join(names)}, which this machine has not")
    raise AssertionError


def compiled(source: Path, out: Path, *flags: str) -> str:
    """The program of a source."""
    libraries = [f for f in flags if f.startswith("-l")]
    rest = [f for f in flags if f not in libraries]
    command = [tool("cc", "gcc"), *FLAGS, *rest, "-o", str(out), str(source), "-lm", *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(out)
