"""The sources of a compiled function: a change in any of them compiles the function again."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wavesim_kernels import sources as kernel_sources

FILES = {
    "deep_of_a_test": "def leaf(x):\n    return 2.0 * x\n",
    "rows_of_a_test": "import numpy as np\nFIRST, SECOND, UNUSED = 3, 4, 5\nWEIGHTS = np.array([1.0, 2.0])\n",
    "middle_of_a_test": "import deep_of_a_test as deep\ndef middle(x):\n    return deep.leaf(x)\n",
    "top_of_a_test": """from functools import wraps
from middle_of_a_test import middle
from rows_of_a_test import FIRST, WEIGHTS
import rows_of_a_test as rows
def around(f):
    @wraps(f)
    def wrapped(x):
        return f(x)
    return wrapped
@around
def inner(x):
    return x + rows.SECOND
def closed(factor):
    def top(x):
        return [middle(y) for y in (x, inner(x))][0] + FIRST * WEIGHTS[0] * factor
    return top
top = closed(7.5)
""",
}
CHANGES = {
    "a function two files below, by the name of its module": ("deep_of_a_test", "2.0", "2.5"),
    "a function one file below": ("middle_of_a_test", "(x)\n", "(x) + 0.0\n"),
    "a constant that is imported": ("rows_of_a_test", "= 3,", "= 33,"),
    "a constant, by the name of its module": ("rows_of_a_test", " 4,", " 44,"),
    "an array that is imported": ("rows_of_a_test", "2.0]", "2.5]"),
    "what a decorator has wrapped": ("top_of_a_test", "x + rows", "2 * x + rows"),
    "a variable of the function around": ("top_of_a_test", "7.5", "8.5"),
}


def imported(folder: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The last of some modules, as a new process would import them."""
    for name, source in files.items():
        path = folder / f"{name}.py"
        path.write_text(source)
        module = types.ModuleType(name)
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, path, "exec"), module.__dict__)
    return module


def digest(function: Any) -> tuple[Any, ...]:
    files, constants = kernel_sources.reachable_sources(function)
    return sorted(files.items()), sorted(constants)


def test_every_change_of_what_is_reached_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(imported(tmp_path, FILES, monkeypatch).top)
    assert digest(imported(tmp_path, FILES, monkeypatch).top) == before
    assert {Path(path).stem for path, _ in before[0]} == set(FILES) - {"rows_of_a_test"}, "its constants alone count"
    for what, (name, old, new) in CHANGES.items():
        assert old in FILES[name]
        changed = FILES | {name: FILES[name].replace(old, new, 1)}
        assert digest(imported(tmp_path, changed, monkeypatch).top) != before, what
    unused = FILES | {"rows_of_a_test": FILES["rows_of_a_test"].replace(" 5\n", " 55\n")}
    assert digest(imported(tmp_path, unused, monkeypatch).top) == before, "what it does not name does not count"


def test_a_file_counts_as_it_was_when_its_functions_were_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a program that was started before a change would keep the old code as that of the new file."""
    module = imported(tmp_path, FILES, monkeypatch)
    kernel_sources.record_digest(module.top)
    before = digest(module.top)
    (tmp_path / "top_of_a_test.py").write_text(FILES["top_of_a_test"] + "# changed\n")
    assert digest(module.top) == before


def test_members_of_named_tuples_belong_to_a_signature() -> None:
    import numba as nb

    class Pair(NamedTuple):
        a: float
        b: float

    one = nb.typeof(Pair(1.0, 2.0))

    class Pair(NamedTuple):  # type: ignore[no-redef]
        b: float
        a: float

    other = nb.typeof(Pair(1.0, 2.0))
    assert kernel_sources.named_tuple_members((one, nb.int64)) != kernel_sources.named_tuple_members((other, nb.int64))


def function_of(kernel: Any) -> Any:
    return getattr(kernel, "py_func", kernel)


def kernels_of_the_server() -> dict[str, Callable[..., Any]]:
    from wavesim_server import result_tables, start_clearance, tick
    from wavesim_server.acoustics import medium
    from wavesim_server.dynamics import effort
    from wavesim_server.environment import weather

    return {
        "ticks": tick.run_ticks,
        "publish": result_tables.fill_tables,
        "place": tick.update_transducers,
        "hear": tick.advance_acoustics,
        "efforts": effort.fill_efforts,
        "around": result_tables.fill_surroundings,
        "act": weather.apply_to_bodies,
        "near": start_clearance._next_near_body,
        "request": medium.request_emission,
        "live": medium.fill_live_signals,
    }


def test_the_kernels_of_the_server_reach_all_that_they_are_made_of() -> None:
    ticks, hear = (
        {Path(path).name for path in kernel_sources.reachable_sources(function_of(kernels_of_the_server()[name]))[0]}
        for name in ("ticks", "hear")
    )
    assert ticks >= {
        "tick.py",
        "kernel.py",
        "terms.py",
        "lanes.py",
        "impulses.py",
        "weather.py",
        "flow.py",
        "seabed.py",
        "elementary.py",
    }
    assert hear >= {"tick.py", "medium.py", "rays.py", "seabed.py", "elementary.py"}
    assert not ticks & {"medium.py", "rays.py"}, "sound is called by address, and compiled once"


def test_the_filter_is_made_of_its_models() -> None:
    from wavesim_studies.navigation import forward_filter, smoother

    for kernel, files in (
        (forward_filter.run, {"forward_filter", "measurement_models", "strapdown", "elementary"}),
        (smoother.smooth, {"strapdown", "forward_filter"}),
    ):
        assert {Path(path).stem for path in kernel_sources.reachable_sources(function_of(kernel))[0]} >= files
