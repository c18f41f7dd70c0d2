"""Optional packages, and the extra of the ``wavesim`` distribution (if any) that installs each package."""

from __future__ import annotations

import importlib.util
import sys

from wavesim_sdk.errors import WaveSimError

EXTRAS = {
    "assimp_py": "hulls",
    "capytaine": "panels",
    "cascadio": "cad",
    "embreex": "scenes",
    "h5py": "channels",
    "matplotlib": "plots",
    "PIL": "plots",
    "pymavlink": "autopilots",
    "pyulog": "autopilots",
    "scipy": "scenes",
    "trimesh": "scenes",
    "xacro": "gazebo",
}

STUDIES = (
    "campaign",
    "compare",
    "data",
    "exam",
    "identify",
    "learn",
    "nav",
    "traffic",
)  #: commands of the studies package
#: for each optional command, what to install: the distribution that provides it, with an extra if the command needs one
COMMANDS = dict.fromkeys(STUDIES, "wavesim[studies]") | dict.fromkeys(
    (
        *(
            "acoustics",
            "bridge",
            "check",
            "compile",
            "configure",
            "conformance",
            "device",
            "drive",
            "emulate",
            "log",
            "modems",
            "new",
            "plot",
        ),
        *("record", "replay-actuators", "serve", "sonars", "soundings", "stubs", "trial", "vehicles", "viz"),
    ),
    "wavesim",
)


class MissingPackage(WaveSimError, ImportError):
    """An optional package is needed but is not installed."""

    exit_code = 19


def check_installed(package: str) -> None:
    """Raise MissingPackage, with the command that installs the package, unless the package is installed."""
    if sys.modules.get(package) is None and importlib.util.find_spec(package) is None:
        requirement = f"'wavesim[{EXTRAS[package]}]'" if package in EXTRAS else package
        raise MissingPackage(f"this feature needs the '{package}' package: run pip install {requirement}")
