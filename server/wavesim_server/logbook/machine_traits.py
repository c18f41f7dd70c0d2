"""Properties of the machine that can change the last bits of results from third-party libraries; the log records them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

_CORE_FUNCTIONS = (
    "scipy_openblas_get_corename64_",
    "scipy_openblas_get_corename",
    "openblas_get_corename64_",
    "openblas_get_corename",
)


def machine_traits() -> dict[str, str]:
    """Return the processor, the C library, NumPy's vector instructions, the BLAS library, and the core type for which
    BLAS has selected its kernels.
    """
    return {
        "machine": platform.machine(),
        "processor": _processor(),
        "libc": _libc(),
        "numpy_simd": " ".join(_simd()) or "unknown",
        "blas": _blas(),
        "blas_core": _core(),
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _libc() -> str:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        if version := os.confstr("CS_GNU_LIBC_VERSION"):
            return version
    return " ".join(platform.libc_ver()).strip() or "unknown"


def _simd() -> list[str]:
    """Return the instruction sets that NumPy has found and uses."""
    config: Any = np.show_config(mode="dicts")
    simd = config.get("SIMD Extensions", {}) if isinstance(config, dict) else {}
    return [*simd.get("baseline", ()), *simd.get("found", ())]


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _core() -> str:
    """Return the processor type for which OpenBLAS selected its kernels when it was loaded, if OpenBLAS is used."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        for path in sorted({line.split()[-1] for line in lines if "openblas" in line.rpartition("/")[2]}):
            library = ctypes.CDLL(path)
            for name in _CORE_FUNCTIONS:
                if (function := getattr(library, name, None)) is not None:
                    function.restype = ctypes.c_char_p
                    return str(function().decode())
    return "unknown"
