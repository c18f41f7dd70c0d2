"""Functions that are compiled only into others, and kernels that are stored on disk."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.compiled
INNER = """
from wavesim_kernels.compiler import device_function
@device_function
def added(x, y):
    return x + {} * y
"""
OUTER = """
from wavesim_kernels.compiler import kernel
from inner_of_a_test import added
@kernel
def summed(x):
    return added(x, 1) + added(x, 2) + added(x, 2.5)
"""


def imported(folder: Path, factor: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A part and a kernel of two files, as a new process would import them."""
    modules = []
    for name, source in (("inner_of_a_test", INNER.format(factor)), ("outer_of_a_test", OUTER)):
        path = folder / f"{name}.py"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        module = types.ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, path, "exec"), module.__dict__)
        modules.append(module)
    return modules[0].added, modules[1].summed


def test_a_kernel_is_compiled_anew_after_a_change_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    for factor in (1, 1, 10):
        added, summed = imported(tmp_path, factor, monkeypatch)
        assert summed(1.0) == 3.0 + 5.5 * factor
        # kept: the second time nothing is compiled
        assert sum(summed.stats.cache_hits.values()) == (len(added.overloads) == 0)
    assert len(added.overloads) == 2, "one translation for both integers that are written down"
    assert not any(
        cres.library.get_pointer_to_function(cres.fndesc.llvm_func_name) for cres in added.overloads.values()
    )
    assert added(1.0, 2) == 21.0, "Python may call it all the same"


def test_files_of_sources_that_are_no_longer_used_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of another process that still runs the earlier sources are kept."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    kept = []
    for factor in (1, 2, 3):
        imported(tmp_path, factor, monkeypatch)[1](1.0)
        files = sorted((tmp_path / "cache").rglob("outer_of_a_test.summed-*"))
        kept.append(len(files))
        for path in files if factor == 2 else ():
            os.utime(path, (0.0, 0.0))
    assert kept == [2, 4, 2], "an index and the code of one signature for each version"


def test_a_kernel_runs_without_a_folder_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert imported(tmp_path, 1, monkeypatch)[1](1.0) == 8.5
