"""The kernel's speed rests on vector code; this fails when the compiler silently gives it up."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numba as nb
import pytest

from wavesim_server.dynamics import kernel, terms

_A, _I = nb.float64[::1], nb.int64


@pytest.mark.parametrize(
    ("function", "signature"),
    [
        (kernel.kinematics, (_A, _A, _A, _I)),
        (kernel.solve, (_A, _A, _I)),
        (kernel.solve_symmetric, (_A, _A, _I)),
        (kernel.lag, (_A, _A, _A, _I, _I, _I, nb.float64)),
        (terms.thrusters, (_A, _A, _A, _I, nb.boolean)),
        (terms.fins, (_A, _A, _A, _I)),
        (terms.cross_flow, (_A, _A)),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_the_lanes_are_used(function: Any, signature: tuple[object, ...]) -> None:
    if nb.config.DISABLE_JIT:
        pytest.skip("compilation is off")
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    fresh = nb.njit(error_model="numpy")(function.py_func)
    fresh.compile(signature)
    code = next(iter(fresh.inspect_asm().values()))
    wide = len(re.findall(r"v(?:add|sub|mul|div|and|max|min)pd\s.*[yz]mm", code))
    narrow = len(re.findall(r"v?(?:add|sub|mul|div)sd\s", code))
    assert wide > 8 and wide > 10 * narrow, f"{wide} operations on all lanes, {narrow} on one"
