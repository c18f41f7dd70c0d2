"""Detection of the programs that may share a thread, because their imports show that they neither start threads nor run
an event loop.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["may_share_thread"]

#: modules of the standard library that start threads, wait for them or run event loops, or that import modules by computed names
THREADED = frozenset(
    [
        "_thread",
        "_threading_local",
        "asyncio",
        "concurrent",
        "http",
        "importlib",
        "multiprocessing",
        "pkgutil",
        "queue",
        "runpy",
        "sched",
        "selectors",
        "socketserver",
        "threading",
        "wsgiref",
        "xmlrpc",
    ]
)
#: packages that do not call a broker from another thread
SAFE = frozenset({"numba", "numpy", "scipy", "wavesim_kernels", "wavesim_sdk", "wavesim_studies", "wavesim_world"})


def may_share_thread(file: Path) -> bool:
    """Return whether a program and the modules in its folder import nothing that needs another thread.

    A package that WaVeSim does not know is assumed to need another thread.
    """
    folder, seen, waiting = file.parent, set[Path](), [file]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            return False  # the program itself reports this error
        for name in _imported(tree):
            if own := [p for p in (folder / f"{name}.py", *(folder / name).rglob("*.py")) if p.is_file()]:
                waiting += own
            elif name not in SAFE and (name not in sys.stdlib_module_names or name in THREADED):
                return False
    return True


def _imported(tree: ast.AST) -> Iterator[str]:
    """Yield the top-level names of all imported modules. Relative imports do not add names, because all modules of
    their package are read anyway.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.Name) and node.id == "__import__":
            yield "importlib"
