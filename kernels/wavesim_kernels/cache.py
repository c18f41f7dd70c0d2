"""Location of compiled kernels, and the check that all kernels of a program are stored. This module does not import
Numba.

Each kernel is stored under a digest of everything that is compiled into it (:mod:`wavesim_kernels.compiler`). It is
compiled again when any of its sources has changed. Importing a kernel does not create the folder or any file.

A program that has compiled all kernels that another program needs can record this fact (:class:`CompletionRecord`). The
other program then knows that all kernels are stored, without loading them.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from wavesim_kernels.numba_version import TESTED_VERSIONS
from wavesim_sdk.errors import WaveSimError


def cache_folder() -> Path:
    """Return the folder of compiled kernels: NUMBA_CACHE_DIR if it is set, otherwise `wavesim` in the user's cache
    folder.
    """
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "wavesim"
    try:
        return Path.home() / ".cache" / "wavesim"
    except RuntimeError:
        raise WaveSimError("this user has no home folder; set NUMBA_CACHE_DIR to a folder for kernels") from None


def folder_for(source: Path) -> Path:
    """Return the cache folder for the kernels that are defined in the folder ``source``. Each checkout has its own
    folder.
    """
    return cache_folder() / f"{source.name}_{hashlib.sha256(os.fsencode(source)).hexdigest()[:16]}"


@functools.lru_cache(maxsize=1024)
def _digest(path: str, modified_ns: int, size: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def file_digest(path: str) -> str:
    """Return the digest of a file's current content, or the path itself if the file does not exist."""
    try:
        found = Path(path).stat()
        return _digest(path, found.st_mtime_ns, found.st_size)
    except OSError:
        return path


class CompletionRecord:
    """File that states that all kernels of a program are stored, and from which sources they were compiled.

    The record names the files whose functions are compiled into the kernels. It also names the files of all other
    modules of WaVeSim and of its extensions, because these modules may define constants that the kernels use.
    """

    def __init__(self, name: str, source: Path, plugins: str) -> None:
        """``source`` is the folder of the package; entry points in the group ``plugins`` add functions to kernels."""
        self.path = folder_for(source) / f"{name}.{sys.implementation.cache_tag}.json"
        self._plugins = plugins

    def _installed(self) -> dict[str, Any]:
        extensions = sorted(f"{entry.name} {entry.value}" for entry in metadata.entry_points(group=self._plugins))
        return {"python": sys.version, "extensions": extensions, **TESTED_VERSIONS}

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self.path.read_text())
        except (OSError, ValueError):
            return {}
        return found if found.get("installed") == self._installed() else {}

    def is_current(self) -> bool:
        """Return whether all kernels are stored and no source has changed since they were stored."""
        found = self._read()
        return bool(found) and all(_unchanged(found[kind]) for kind in ("functions", "imports"))

    def has_current_functions(self) -> bool:
        """Return whether all functions of the kernels are unchanged. If they are, probably nothing needs to be
        compiled.
        """
        found = self._read()
        return bool(found) and _unchanged(found["functions"])

    def write(self, functions: Iterable[str]) -> None:
        """Record that all kernels compiled from these files are stored."""
        functions = set(functions)
        roots = {name.partition(".")[0] for name, path in _loaded_files().items() if path in functions}
        imports = {p for n, p in _loaded_files().items() if n.startswith("wavesim_") or n.partition(".")[0] in roots}
        text = json.dumps(
            {
                "installed": self._installed(),
                "functions": {path: file_digest(path) for path in sorted(functions)},
                "imports": {path: file_digest(path) for path in sorted(imports - functions)},
            },
            indent=1,
        )
        partial = self.path.with_suffix(f".{os.getpid()}")
        partial.write_text(text)
        partial.replace(self.path)


def _unchanged(files: dict[str, str]) -> bool:
    return all(file_digest(path) == digest for path, digest in files.items())


def _loaded_files() -> dict[str, str]:
    """Return the source files of all loaded modules, by module name."""
    found = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return {name: path for name, path in found.items() if path is not None and path.endswith(".py")}
