"""Each module of each package can be imported first, and no import changes the program that imports it.

Run as a program, this file prints one line per problem. It imports the libraries that our modules need, because changes
that those libraries make are not ours. It then imports the modules of each of our packages in this process or, with the
argument ``first``, forks one process for each module.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]


def all_modules(package: str) -> Iterator[str]:
    """Yield the names of a package and its modules, except programs (``__main__``)."""
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    root = Path(spec.origin).parent
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        if parts[-1] != "__main__" and not path.is_symlink():  # templates, which are programs
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def state_of_host() -> dict[str, Any]:
    """Return everything that an import must leave as it was."""
    import numba

    return {
        "environment variables": dict(os.environ),
        "signal handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "signal mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "sys.path": list(sys.path),
        "import hooks": [*sys.meta_path, *sys.path_hooks],
        "exception hooks": [sys.excepthook, threading.excepthook],
        "warnings filters": list(warnings.filters),
        "log handlers": (logging.root.level, list(logging.root.handlers)),
        "working folder": os.getcwd(),  # noqa: PTH109  # one string
        "threads": threading.active_count(),
        "Numba's settings": {k: v for k, v in vars(numba.config).items() if k.isupper()},
        "files": sorted(str(path) for place in (Path.home(), Path.cwd()) for path in place.rglob("*")),
    }


def import_all(*modules: str) -> str:
    """Import modules and return the problem, or nothing."""
    before = state_of_host()
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:
            if "is not installed" not in str(error):
                return f"{module}: {type(error).__name__}: {error}"
    changed = [what for what, was in state_of_host().items() if was != before[what]]
    return f"changed {', '.join(changed)}" if changed else ""


def in_a_fork(function: Callable[[], object]) -> Any:
    """Return the result of a function that runs in a forked process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        with os.fdopen(writer, "w") as out:
            json.dump(function(), out)
            out.flush()
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def libraries_of(modules: list[str]) -> list[str]:
    """Return the names of all modules of others that these import."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception:  # reported when it is imported alone
            continue
    return [name for name in sys.modules if name.partition(".")[0] not in PACKAGES]


def report(module: str, problem: str) -> None:
    if problem:
        print(f"{module}: {problem}", flush=True)


def import_each_first(modules: list[str]) -> None:
    """Import each module in a process of its own."""
    gc.disable()  # a collection would copy the memory that the processes share
    workers = len(os.sched_getaffinity(0))
    for k in range(workers):
        if os.fork():
            continue
        for module in modules[k::workers]:
            report(module, in_a_fork(lambda module=module: import_all(module)))
        os._exit(0)
    for _ in range(workers):
        os.wait()


def main() -> None:
    modules = [module for package in PACKAGES for module in all_modules(package)]
    for library in in_a_fork(lambda: libraries_of(modules)):
        try:
            importlib.import_module(library)
        except Exception:  # a name under which a library put another object
            continue
    if "first" in sys.argv:
        import_each_first(modules)
    else:
        for package in PACKAGES:
            report(package, import_all(*all_modules(package)))
    print(len(modules))


def run_this_file(tmp_path: Path, *arguments: str) -> tuple[list[str], int]:
    """Return the problems, and how many modules were imported."""
    home, folder = tmp_path / "home", tmp_path / "folder"
    home.mkdir()
    folder.mkdir()
    outside = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in outside} | {"HOME": str(home)}
    command = [sys.executable, __file__, *arguments]
    program = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert program.returncode == 0, program.stderr
    *problems, count = program.stdout.splitlines()
    return problems, int(count)


def test_no_import_changes_the_program(tmp_path: Path) -> None:
    problems, count = run_this_file(tmp_path)
    assert problems == []
    assert count > 300


@pytest.mark.long  # the import rules forbid cycles, so a module that cannot be imported first is unlikely
@pytest.mark.timeout(600)
def test_every_module_can_be_imported_first(tmp_path: Path) -> None:
    problems, count = run_this_file(tmp_path, "first")
    assert problems == []
    assert count > 300


if __name__ == "__main__":
    main()
