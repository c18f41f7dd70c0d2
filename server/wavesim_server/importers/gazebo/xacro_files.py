"""Expansion of xacro files with the package `xacro`. The package evaluates the expressions in a file with Python."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_server.importers.gazebo.files import SearchPath, find_package


def expand(path: Path, folders: SearchPath, arguments: str = "") -> tuple[str, list[str]]:
    """Return the URDF of a xacro file, and the warnings of the package. `$(find PACKAGE)` is looked for in the folders;
    ``arguments`` are `NAME:=VALUE ...`. Raises ConfigError.
    """
    check_installed("xacro")
    import xacro
    from xacro import substitution_args

    given = dict(item.split(":=", 1) for item in arguments.split() if ":=" in item)
    if len(given) != len(arguments.split()):
        raise ConfigError(f"--set xacro: expected NAME:=VALUE ..., got '{arguments}'")
    if not path.is_file():
        raise ConfigError("cannot read the file: No such file or directory", str(path))

    missing: list[str] = []

    def find(package: str) -> str:
        found = find_package(package, folders)
        if found is None:
            missing.append(package)
            raise LookupError(package)
        return str(found)

    original, messages = substitution_args._eval_find, io.StringIO()
    substitution_args._eval_find = find
    try:
        with contextlib.redirect_stderr(messages):
            text = str(xacro.process_file(str(path), mappings=given).toxml())
    except Exception as error:  # the package raises many types
        if missing:
            raise ConfigError(
                f"$(find {missing[0]}): this package was not found; give the folder that contains it with --path",
                str(path),
            ) from None
        raise ConfigError(f"xacro: {' '.join(str(error).split())[:200]}", str(path)) from None
    finally:
        substitution_args._eval_find = original
    warnings = [f"xacro: {line}" for line in messages.getvalue().splitlines() if line.startswith("warning")]
    return text, warnings
