"""The kernel's speed rests on vector code; this fails when the compiler silently gives it up."""

from __future__ import annotations

from pathlib import Path

import numba as nb
import pytest

from wavesim_server.dynamics import kernel


@pytest.mark.parametrize(
    ("function", "signature"), [("derivative", ()), ("actuators", ()), ("actuator_forces", (nb.int64, nb.int64))]
)
def test_the_lanes_are_used(function: str, signature: tuple[object, ...]) -> None:
    if nb.config.DISABLE_JIT:
        pytest.skip("compilation is off")
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    fresh = nb.njit(error_model="numpy")(getattr(kernel, function).py_func)
    fresh.compile((nb.float64[::1], *signature))
    code = next(iter(fresh.inspect_asm().values()))
    wide, narrow = code.count("ymm") + code.count("zmm"), code.count("xmm")
    assert wide > 100 and wide > 10 * narrow, f"{wide} wide, {narrow} narrow"
