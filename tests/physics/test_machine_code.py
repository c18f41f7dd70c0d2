"""The kernel's speed rests on vector code; this fails when the compiler silently gives it up, or makes more of it than it was.

Times are compared by ``python -m benchmarks.paired``, between two checkouts in one run.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
import pytest

from wavesim_server.acoustics import medium_arrays
from wavesim_server.dynamics import kernel, terms

_A, _I = nb.float64[::1], nb.int64


def assembly(function: Any, *signature: object) -> str:
    if nb.config.DISABLE_JIT:
        pytest.skip("compilation is off")
    fresh = nb.njit(error_model="numpy")(getattr(function, "py_func", function))
    fresh.compile(signature)
    return str(next(iter(fresh.inspect_asm().values())))


@pytest.mark.parametrize(
    ("function", "signature", "operations"),
    [
        (kernel.kinematics, (_A, _A, _A, _I), 108),
        (kernel.solve, (_A, _A, _I, nb.boolean), 361),
        (kernel.solve_symmetric, (_A, _A, _I, nb.boolean), 217),
        (kernel.lag_slots, (_A, _A, _A, _I, _I, _I, nb.float64), 52),
        (terms.thrusters, (_A, _A, _A, _I, nb.boolean), 64),
        (terms.fins, (_A, _A, _A, _I), 34),
        (terms.cross_flow, (_A, _A), 85),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_the_lanes_are_used(function: Any, signature: tuple[object, ...], operations: int) -> None:
    """``operations``: on all eight lanes, as it was; processors with narrower registers take two of half the width for each."""
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    code = assembly(function, *signature)
    found = re.findall(r"v(?:add|sub|mul|div|and|max|min)pd\s.*([yz])mm", code)
    wide = found.count("z") + 0.5 * found.count("y")
    narrow = len(re.findall(r"v?(?:add|sub|mul|div)sd\s", code))
    # one number on its own is a parameter that all lanes share, once in each copy of an unrolled loop
    assert wide > 8 and wide >= 10 * narrow, f"{wide} operations on all lanes, {narrow} on one"
    assert 0.8 * operations <= wide <= 1.25 * operations, f"{wide} operations on all lanes, {operations} before"


def test_a_member_of_a_record_costs_what_a_column_does() -> None:
    """Both are a load at a fixed offset: no call, and as many instructions, a few aside."""

    def by_name(nodes: Any, j: int) -> float:
        node = nodes[j]
        node.ready = node.sending_until + node.recharge
        return float(node.ready * node.threshold)

    def by_column(nodes: Any, j: int) -> float:
        node = nodes[j]
        node[3] = node[5] + node[7]
        return float(node[3] * node[11])

    records = nb.typeof(np.zeros(1, medium_arrays.NODE.dtype))
    codes = [assembly(f, kind, nb.intp) for f, kind in ((by_name, records), (by_column, nb.float64[:, ::1]))]
    bodies = [code[: code.index("ret")] for code in codes]
    assert "call" not in bodies[0], bodies[0]
    lines = [len(re.findall(r"(?m)^\s+[a-z]\w+\s", body)) for body in bodies]
    assert lines[0] <= lines[1] + 4, lines


@pytest.mark.compiled
def test_no_kernel_writes_text() -> None:
    """A row assigned to a row brings NumPy's error of shapes, and with it 25 functions that write it: a tenth of all compilation.

    Fails with ``legs[NOW] = legs[NEXT]`` in :mod:`wavesim_server.acoustics.range_dependent_rays`.
    """
    kernels = {p.name.partition("-")[0]: p.read_bytes() for p in Path(os.environ["NUMBA_CACHE_DIR"]).glob("*/*.nbc")}
    assert {"tick.ticks", "tick.hear", "effort.efforts", "weather.act"} <= kernels.keys()
    assert [name for name, code in kernels.items() if b"numba7cpython7unicode" in code] == []
