"""Folders whose files a configuration may name. Only the user can allow folders. A configuration cannot, because it may
come from an untrusted source.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from wavesim_sdk.errors import ConfigError

FILES_VARIABLE = "WAVESIM_FILES"  #: environment variable with the allowed folders, separated by `:`


def allowed_folders() -> tuple[Path, ...]:
    """Return the folders that the user allows in addition to the folder of a configuration."""
    return tuple(Path(name).resolve() for name in os.environ.get(FILES_VARIABLE, "").split(os.pathsep) if name)


@contextlib.contextmanager
def allow_files(*folders: str | Path) -> Iterator[None]:
    """Allow configurations to name files in ``folders``, including in processes that start within the ``with`` block."""
    before = os.environ.get(FILES_VARIABLE)
    # child processes have other working folders
    names = [str(path) for path in (*allowed_folders(), *(Path(f).resolve() for f in folders))]
    for name in names:
        if os.pathsep in name:
            raise ConfigError(f"cannot allow the folder '{name}': its path must not contain '{os.pathsep}'")
    if names:
        os.environ[FILES_VARIABLE] = os.pathsep.join(dict.fromkeys(names))
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(FILES_VARIABLE, None)
        else:
            os.environ[FILES_VARIABLE] = before
