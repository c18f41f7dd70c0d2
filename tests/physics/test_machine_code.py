"""The speed of the kernel depends on vector code. This test fails if the compiler silently stops using it, or generates
more code than before.

Times are compared by ``python -m benchmarks.paired``, between two checkouts in one run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np
import pytest

from wavesim_kernels import cache as kernel_cache
from wavesim_server import tick
from wavesim_server.acoustics import medium_arrays
from wavesim_server.dynamics import effort, kernel, terms
from wavesim_server.environment import weather

_A, _I = nb.float64[::1], nb.int64


def assembly(function: Any, *signature: object) -> str:
    if nb.config.DISABLE_JIT:
        pytest.skip("compilation is off")
    fresh = nb.njit(error_model="numpy")(getattr(function, "py_func", function))
    fresh.compile(signature)
    return str(next(iter(fresh.inspect_asm().values())))


#: function, signature, operations on all lanes
LANES = [
    (kernel.kinematics, (_A, _A, _A, _I), 108),
    (kernel.solve, (_A, _A, _I, nb.boolean), 361),
    (kernel.solve_symmetric, (_A, _A, _I, nb.boolean), 217),
    (kernel.lag_slots, (_A, _A, _A, _I, _I, _I, nb.float64), 52),
    (terms.thrusters, (_A, _A, _A, _I, nb.boolean), 64),
    (terms.fins, (_A, _A, _A, _I), 34),
    (terms.cross_flow, (_A, _A), 85),
]


def count(function: Any, signature: tuple[object, ...]) -> tuple[int, int]:
    """Operations on all four lanes, and on one lane."""
    code = assembly(function, *signature)
    return len(re.findall(r"v(?:add|sub|mul|div|and|max|min)pd\s.*ymm", code)), len(
        re.findall(r"v?(?:add|sub|mul|div)sd\s", code)
    )


@pytest.fixture(scope="module")
def counts() -> list[list[int]]:
    """Of all functions, for one processor with AVX-512 on every machine: the compiler unrolls loops as often as each processor likes."""
    if nb.config.DISABLE_JIT:
        pytest.skip("compilation is off")
    done = subprocess.run(
        [sys.executable, "-m", "tests.physics.test_machine_code"],
        env=os.environ | {"NUMBA_CPU_NAME": "znver4", "NUMBA_CPU_FEATURES": "+avx512f,+avx512vl,+avx512dq,+avx512bw"},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("number", "operations"), [(k, n) for k, (_, _, n) in enumerate(LANES)], ids=[f.__name__ for f, _, _ in LANES]
)
def test_the_lanes_are_used(counts: list[list[int]], number: int, operations: int) -> None:
    wide, narrow = counts[number]
    assert wide > 8 and wide > 10 * narrow, f"{wide} operations on all lanes, {narrow} on one"
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
    folders = [kernel_cache.folder_for(Path(module.__file__).parent) for module in (tick, effort, weather)]
    files = sorted((p for f in folders for p in f.glob("*.nbc")), key=lambda p: p.stat().st_mtime)
    kernels = {p.name.partition("-")[0]: p.read_bytes() for p in files}  # of each the newest
    assert {
        "tick.run_ticks",
        "tick.advance_acoustics",
        "effort.fill_efforts",
        "weather.apply_to_bodies",
    } <= kernels.keys()
    assert [name for name, code in kernels.items() if b"numba7cpython7unicode" in code] == []


if __name__ == "__main__":
    print(json.dumps([count(function, signature) for function, signature, _ in LANES]))
