"""Which kernels run: machine code of a wheel, compiled ones, or plain Python."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from wavesim_kernels import machine_code
from wavesim_kernels.machine_code import Mode
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.extras import MissingPackage, check_installed


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NUMBA_DISABLE_JIT", "WAVESIM_KERNELS", "WAVESIM_CPU_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("is_shipped", "has_compiler", "variable", "mode"),
    [
        (False, True, "", Mode.COMPILE),  # a clone
        (False, False, "", Mode.COMPILE),  # a clone without its compiler, which is reported
        (True, False, "", Mode.MACHINE_CODE),
        (True, True, "", Mode.COMPILE),  # the extra `extend`
        (True, True, "machine-code", Mode.MACHINE_CODE),
        (True, False, "compile", Mode.COMPILE),
    ],
)
def test_the_choice(
    environment: pytest.MonkeyPatch, is_shipped: bool, has_compiler: bool, variable: str, mode: Mode
) -> None:
    environment.setattr(machine_code, "_CALLER", "json" if is_shipped else "wavesim_kernels._absent")
    environment.setattr(machine_code, "_has_compiler", lambda: has_compiler)
    environment.setenv("WAVESIM_KERNELS", variable)
    assert machine_code._choose_mode() is mode
    environment.setenv("NUMBA_DISABLE_JIT", "1")
    assert machine_code._choose_mode() is Mode.PYTHON


def test_an_impossible_choice_is_refused(environment: pytest.MonkeyPatch) -> None:
    environment.setattr(machine_code, "_CALLER", "wavesim_kernels._absent")
    environment.setenv("WAVESIM_KERNELS", "machine-code")
    with pytest.raises(WaveSimError, match="this installation contains no machine code; install the WaVeSim wheels"):
        machine_code._choose_mode()
    environment.setenv("WAVESIM_KERNELS", "fast")
    with pytest.raises(WaveSimError, match="invalid WAVESIM_KERNELS 'fast': use 'compile' or 'machine-code'"):
        machine_code._choose_mode()


@pytest.mark.parametrize(
    ("features", "level"),
    [
        (set(), "x86-64"),
        (machine_code.LEVELS["x86_64"]["x86-64-v3"], "x86-64-v3"),
        (machine_code.LEVELS["x86_64"]["x86-64-v4"], "x86-64"),  # a level includes all those below
        (set.union(*machine_code.LEVELS["x86_64"].values()), "x86-64-v4"),
    ],
)
def test_the_level_of_a_processor(environment: pytest.MonkeyPatch, features: set[str], level: str) -> None:
    environment.setattr("platform.machine", lambda: "x86_64")
    environment.setattr(machine_code, "_features", lambda: features)
    assert machine_code.level.__wrapped__() == level
    environment.setenv("WAVESIM_CPU_LEVEL", "x86-64")
    assert machine_code.level.__wrapped__() == "x86-64"
    environment.setenv("WAVESIM_CPU_LEVEL", "z80")
    with pytest.raises(WaveSimError, match="invalid WAVESIM_CPU_LEVEL 'z80': use one of x86-64, x86-64-v3"):
        machine_code.level.__wrapped__()


def test_a_kernel_of_another_package_names_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = types.ModuleType("foreign")
    package.__file__ = str(tmp_path / "foreign" / "__init__.py")
    monkeypatch.setitem(sys.modules, "foreign", package)

    def doubled(x: float) -> float:
        return 2.0 * x

    doubled.__module__, doubled.__qualname__ = "foreign", "doubled"
    with pytest.raises(WaveSimError, match=r"kernel 'foreign.doubled'.*pip install 'wavesim\[extend\]'"):
        machine_code.kernel(doubled)
    with pytest.raises(
        WaveSimError, match=r"'foreign.doubled' has machine code only inside kernels.*'wavesim\[extend\]'"
    ):
        machine_code.device_function(doubled)(1.0)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingPackage, match=r"'trimesh' package: run pip install 'wavesim\[scenes\]'"):
        check_installed("trimesh")
    check_installed("numpy")
