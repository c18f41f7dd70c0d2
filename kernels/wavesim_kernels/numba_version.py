"""Versions of the compiler with which the kernels were tested. This module does not import Numba.

The kernels use private parts of Numba (:data:`wavesim_kernels.numba_internals.PRIVATE_PARTS`), which may change in any
Numba release. Therefore, any other version is rejected.
"""

from importlib import metadata

from wavesim_sdk.errors import WaveSimError

TESTED_VERSIONS = {"numba": "0.68.1", "llvmlite": "0.50.0"}


class UnsupportedNumba(WaveSimError):
    """Numba or llvmlite is missing, or has a version with which the kernels were not tested."""


def check_numba_version() -> None:
    """Raise UnsupportedNumba unless the tested versions of Numba and llvmlite are installed."""
    for package, tested in TESTED_VERSIONS.items():
        try:
            found = f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            found = f"no {package}"
        if found != f"{package} {tested}":
            wanted = " ".join(f"'{name}=={version}'" for name, version in TESTED_VERSIONS.items())
            raise UnsupportedNumba(
                f"{found} is installed, but the kernels need {package} {tested}; run pip install {wanted}"
            )
