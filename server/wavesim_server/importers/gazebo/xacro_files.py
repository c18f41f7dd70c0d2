"""Expansion of xacro files with the package `xacro`, in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.extras import check_installed
from wavesim_server.importers.gazebo.files import find_package


def expand(path: Path, folders: list[Path]) -> str:
    """Return the URDF of a xacro file. `$(find PACKAGE)` is looked for in the folders. Raises ConfigError."""
    check_installed("xacro")
    import xacro
    from xacro import substitution_args

    missing: list[str] = []

    def find(package: str) -> str:
        found = find_package(package, folders)
        if found is None:
            missing.append(package)
            raise ConfigError(
                f"$(find {package}): this package was not found; give the folder that contains it with --path", str(path)
            )
        return str(found)

    original = substitution_args._eval_find, sys.stderr
    substitution_args._eval_find = find
    try:
        return str(xacro.process_file(str(path)).toxml())
    except ConfigError:
        raise
    except Exception as error:  # the package raises many types
        raise ConfigError(f"xacro: {' '.join(str(error).split())[:200]}", str(path)) from None
    finally:
        substitution_args._eval_find = original[0]
