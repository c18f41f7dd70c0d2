"""Functions that are compiled only into others, and kernels that are stored on disk."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numba
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
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
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
