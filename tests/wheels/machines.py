"""Other machines for the wheels: a root of Debian testing with the newest Python, and 64-bit ARM emulated by QEMU."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

#: files of this machine that a root needs to reach the package registry
_NETWORK = ("etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt")


class Unavailable(Exception):
    """This machine cannot make the other one; the text is the reason."""


def run(*command: str | Path, **environment: str) -> str:
    """Return the output of a command. Raises :exc:`Unavailable` if it is missing or fails."""
    try:
        done = subprocess.run(
            [str(c) for c in command],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from None
    if done.returncode:
        raise Unavailable(f"{Path(command[0]).name}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def debian(root: Path, suite: str, *options: str) -> None:
    """Make a root of Debian with debootstrap from the mirror of this machine, unless the folder has one."""
    if platform.machine() != "x86_64" or os.geteuid() or shutil.which("debootstrap") is None:
        raise Unavailable("requires root, x86-64 and Debian's package debootstrap")
    if not (root / ".made").exists():
        shutil.rmtree(root, ignore_errors=True)
        sites = run("apt-get", "indextargets", "--format", "$(SITE)").split()
        mirrors = [site for site in sites if site.rstrip("/").endswith("/debian")]
        if not mirrors:
            raise Unavailable("apt names no mirror of Debian")
        run("debootstrap", "--variant=minbase", *options, suite, root, mirrors[0])
        (root / ".made").touch()


def python_of_testing(root: Path, version: str, wheels: list[Path]) -> list[str]:
    """Install the wheels into a Python of Debian testing, with the newest packages that the resolver finds; return the
    command that starts it.
    """
    packages = f"python{version},python{version}-venv,python{version}-dev,gcc,libc6-dev,ca-certificates"
    debian(root, "testing", f"--include={packages}")
    for name in _NETWORK:
        shutil.copy(f"/{name}", root / name)
    shutil.rmtree(root / "dist", ignore_errors=True)
    (root / "dist").mkdir()
    for wheel in wheels:
        shutil.copy(wheel, root / "dist")
    run("chroot", root, f"python{version}", "-m", "venv", "--clear", "/env")
    run("chroot", root, "/env/bin/python", "-m", "pip", "install", "-q", "--find-links", "/dist", "wavesim")
    run("chroot", root, "/env/bin/python", "-m", "pip", "check")
    return ["chroot", str(root), "/env/bin/python"]


def python_of_arm(root: Path, wheels: Path, uv: Path) -> tuple[list[str], dict[str, str]]:
    """Unpack Debian's Python for 64-bit ARM, and install the wheels for it; return the command that starts it under
    QEMU, and its environment.
    """
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        raise Unavailable("requires Debian's package qemu-user-static")
    debian(root, "stable", "--foreign", "--arch=arm64", "--include=python3")
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        run("dpkg-deb", "-x", package, root)
    (python,) = (root / "usr/bin").glob("python3.*[0-9]")
    site = root / "site"
    shutil.rmtree(site, ignore_errors=True)
    target = ("--python-platform", "aarch64-manylinux_2_28", "--python-version", python.name.removeprefix("python"))
    run(
        uv,
        "pip",
        "install",
        "-q",
        "--target",
        site,
        *target,
        "--only-binary",
        ":all:",
        "--find-links",
        wheels,
        "wavesim",
    )
    return [emulator, "-L", str(root), str(python)], {"PYTHONPATH": str(site)}
