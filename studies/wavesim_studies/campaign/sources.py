"""Source files that determine a campaign's results, and the SHA-256 digest of each. A run is repeated when one of these
files changes.

The files are the installed WaVeSim packages and plugins, the campaign's program and configuration, and the data files
that the configuration names. For each Python file of the user, the following modules are also included:

- every module in or below its folder, imported or not, so that late imports and imports by a computed name are covered;
- every module outside the installation (PYTHONPATH, editable installs) that such a file imports, with its whole
package;
- every module outside the installation that was loaded while such a file was being loaded, whatever its folder.

A run that loads any other module fails (:func:`unseen`). Versions of other installed packages, and data files that a
program opens on its own, are not covered.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib.util
import os
import shlex
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import all_suffixes
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import ConfigError
from wavesim_world.config import LoadedConfig, Model
from wavesim_world.config.model import LogConfig, Models

#: packages whose code affects the results
CODE = ("wavesim_sdk", "wavesim_kernels", "wavesim_world", "wavesim_server", "wavesim_emulators", "wavesim_studies")
#: entry points that only display results
_SHOWN = ("wavesim.commands", "wavesim.checks", "wavesim.drawings")
_MODULES = tuple(all_suffixes())
#: folders that contain no importable modules
_SKIPPED = ("__pycache__", "site-packages", "dist-packages", "node_modules")
Files = dict[str, str]  #: SHA-256 of each file, by name


def of_file(path: Path) -> str:
    """Return the SHA-256 of a file, or an empty string if it cannot be read (the code that uses the file reports the
    error).
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _below(folder: Path, leave: tuple[Path, ...] = ()) -> Iterator[Path]:
    """Yield every file in or below a folder; omit hidden folders, virtual environments and the folders in ``leave``."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(
            f
            for f in folders
            if f not in _SKIPPED
            and not f.startswith(".")
            and not Path(here, f, "pyvenv.cfg").exists()
            and Path(here, f) not in leave
        )
        yield from (Path(here, name) for name in sorted(names))


@functools.cache
def code() -> str:
    """Return a digest of all files of the WaVeSim packages and plugins, because these packages affect the results."""
    groups = entry_points()
    offered = {
        e.module.split(".")[0]
        for name in groups.groups
        if name.startswith("wavesim.") and name not in _SHOWN
        for e in groups.select(group=name)
    }
    state = hashlib.sha256()
    for package in sorted({*CODE, *offered}):
        for place in _places(package):
            for path in _below(place) if place.is_dir() else (place,):
                state.update(f"{package} {path.relative_to(place)} {of_file(path)}\n".encode())
    return state.hexdigest()


def _places(module: str) -> tuple[Path, ...]:
    """Return the folders of a package, or the file of a module. The result is empty for a missing or built-in module."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # __main__ has no spec
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(Path(p).resolve() for p in spec.submodule_search_locations)
    return (Path(spec.origin).resolve(),) if spec.has_location and spec.origin else ()


@functools.cache
def _installed() -> tuple[Path, ...]:
    """Return the folders of the installation: standard library, installed packages and WaVeSim's own packages."""
    known = [sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib", "platlib")]
    known += [*site.getsitepackages(), site.getusersitepackages()]
    ours = [p for name in (*CODE, "wavesim_viz", "wavesim_bridges") for p in _places(name)]
    return (*(Path(p).resolve() for p in known), *ours)


def is_installed(path: Path) -> bool:
    """Return whether a file belongs to the installation."""
    path = path.resolve()
    return any(path.is_relative_to(p) for p in _installed()) or any(s in path.parts for s in _SKIPPED[1:])


def _imported(path: Path) -> set[str]:
    """Return the top-level names of all modules that a Python file imports."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # running the file reports the error
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    return {name.split(".")[0] for name in found} - set(sys.stdlib_module_names)


@functools.cache
def _outside(file: str) -> Path | None:
    """Return the path of a module outside the installation, or None for an installed module."""
    path = Path(file).resolve()
    return None if is_installed(path) else path


def loaded_modules() -> dict[Path, str]:
    """Return every module outside the installation that this process has loaded (file -> name)."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and (path := _outside(file)) is not None:
            found[path] = name
    return found


def of_programs(programs: Iterable[Path], here: Path, leave: tuple[Path, ...], before: Mapping[Path, str]) -> Files:
    """Return all modules that Python programs may load, with names relative to the folder ``here``.

    These are the modules in and below the folders of the programs, the modules that this process has loaded in addition
    to those in ``before``, and all modules that these import.
    """
    found: dict[Path, str] = {}
    todo: list[Path] = []

    def add(path: Path, name: str) -> None:
        if path not in found:
            found[path] = name
            if path.suffix == ".py":
                todo.append(path)

    for folder in sorted({p.resolve().parent for p in programs}):
        for path in _below(folder, leave):
            if path.name.endswith(_MODULES):
                add(path, os.path.relpath(path, here))
    for path, name in loaded_modules().items():
        if path not in before:
            package = "/__init__" if path.stem == "__init__" else ""
            add(path, f"module {name.replace('.', '/')}{package}{path.suffix}")
    while todo:
        for name in sorted(_imported(todo.pop())):
            for place in _places(name):
                if is_installed(place):
                    continue
                for path in _below(place, leave) if place.is_dir() else (place,):
                    if path.name.endswith(_MODULES):
                        add(path, f"module {path.name if path == place else Path(name, path.relative_to(place))}")
    return {name: of_file(path) for path, name in found.items()}


def unseen(files: Files, before: Mapping[Path, str]) -> list[str]:
    """List modules from outside the installation that this process has loaded since ``before`` and whose content is not
    in ``files``.
    """
    known = set(files.values())
    return [str(path) for path in loaded_modules() if path not in before and of_file(path) not in known]


def of_configuration(loaded: LoadedConfig, changed: Iterable[tuple[str, str]], here: Path) -> Files:
    """Return the files of a configuration: the configuration itself and the data files that it, its models and the
    factors name.

    ``changed`` contains the key and the text of each factor setting.
    """
    base = loaded.path.parent
    paths = [*_named(loaded.config, base), *(p for m in loaded.models.values() for p in _named(m, base))]
    programs = [b.program.options for b in loaded.config.fleet.bodies if b.program is not None]
    for key, text in (*changed, *(("options", o) for o in programs)):
        if key == "file" and text:
            paths.append(base / text)
        elif key == "options":
            paths += named_in_options(text, base)
    paths += [Path(place).resolve() for m in loaded.models.values() if (place := m.place.rpartition(":")[0])]
    paths.append(loaded.path)
    return {os.path.relpath(path.resolve(), here): of_file(path) for path in paths if not is_installed(path)}


def named_in_options(text: str, base: Path) -> Iterator[Path]:
    """Yield the files that a program's options name, including those in FILE.py:OBJECT."""
    try:
        words = shlex.split(text)
    except ValueError:  # starting the program reports the error
        return
    for word in words:
        name = word.rpartition("=")[2]
        for path in (base / name, base / name.rpartition(":")[0]):
            if path.is_file():
                yield path


def _named(value: Any, base: Path) -> Iterator[Path]:
    """Yield every input file named by a `file` key in an element of a configuration or in its child elements."""
    if isinstance(value, tuple):
        for item in value:
            yield from _named(item, base)
    if not dataclasses.is_dataclass(value) or isinstance(value, (LogConfig, Models)):
        return
    if isinstance(value, Model) and (place := value.place.rpartition(":")[0]):
        base = Path(place).resolve().parent
    for f in dataclasses.fields(value):
        item = getattr(value, f.name)
        if f.name == "file" and isinstance(item, str):
            if item:
                yield base / item
        else:
            yield from _named(item, base)


def differences(before: Files, after: Files) -> list[str]:
    """Describe the changes between two sets of files, by name."""
    names = sorted({*before, *after})
    return [
        f"{name} ({'new' if name not in before else 'gone' if name not in after else 'changed'})"
        for name in names
        if before.get(name) != after.get(name)
    ]


def check_unseen(files: Files, before: Mapping[Path, str]) -> None:
    """Raise ConfigError if this process has loaded a module whose changes would go unnoticed."""
    if found := unseen(files, before):
        raise ConfigError(
            f"the run loaded {', '.join(found)}, outside the folders that the campaign watches: import it at the top of the "
            "program, add its folder to PYTHONPATH, or move it into the program's folder"
        )
