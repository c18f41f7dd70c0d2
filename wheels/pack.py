"""Add machine code to the wheels: ``python -m wheels.pack PURE CODE OUT``, run by the Python of the group `wheels`.

PURE contains wheels without machine code, CODE the folders of ``wheels.machine_code``. OUT receives one wheel for each
architecture of a package with machine code, and copies of the others.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PLATFORM = "manylinux_2_17_{0}.manylinux2014_{0}"
#: tags of a wheel with an extension module: the stable interface of Python 3.11
EXTENSION = ("--python-tag", "cp311", "--abi-tag", "abi3")


def _wheel(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "wheel", *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def add_machine_code(pure: Path, code: Path, architecture: str, out: Path) -> None:
    """Write the wheel of a package for one architecture."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        _wheel("unpack", pure, "-d", work)
        (folder,) = work.iterdir()
        package = pure.name.partition("-")[0]
        shutil.copytree(code / package, folder / package, dirs_exist_ok=True)
        _wheel("pack", folder, "-d", work)
        (made,) = work.glob("*.whl")
        extension = EXTENSION if any((code / package).glob("*.so")) else ()
        _wheel("tags", "--remove", *extension, "--platform-tag", PLATFORM.format(architecture), made)
        (tagged,) = work.glob("*.whl")
        shutil.move(tagged, out / tagged.name)


def main(pure: Path, code: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for wheel in sorted(pure.glob("*.whl")):
        package = wheel.name.partition("-")[0]
        architectures = [folder for folder in sorted(code.iterdir()) if (folder / package).is_dir()]
        for folder in architectures:
            add_machine_code(wheel, folder, folder.name, out)
        if not architectures:
            shutil.copy(wheel, out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
