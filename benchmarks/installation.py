"""Measure an installation from wheels, as a user meets it: time to the first table, size, memory, time to a ready server.

    python -m benchmarks.installation FOLDER [FOLDER ...]

The folders contain the wheels of `make wheels` and those of all other packages (`pip download -r locked/run.txt`), so the
download is not included. The environment and the cache of kernels are empty at the start.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def spent(command: list[str], environment: dict[str, str], folder: Path) -> tuple[float, float]:
    """Run a command; return wall and processor time in s."""
    before, start = os.times(), time.monotonic()
    subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - start, processor


def memory_kB(process: int) -> dict[str, int]:
    """Return the resident memory of the children of a process, by their names."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            status = (place / "status").read_text()
        except OSError:
            continue
        if f"PPid:\t{process}\n" in status:
            name = re.search(r"Name:\t(.*)", status)
            resident = re.search(r"VmRSS:\s+(\d+)", status)
            if name and resident:
                found[f"{name[1]} {place.name}"] = int(resident[1])
    return found


def serve(wavesim: str, environment: dict[str, str], folder: Path) -> tuple[float, dict[str, int]]:
    """Start a server; return the time in s until it is ready, and the memory of its processes."""
    start = time.monotonic()
    command = [wavesim, "serve", "config.xml", "--port", "0", "--log", "", "--name", f"bench-{os.getpid()}"]
    with subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("server '"):
                break
        ready, memory = time.monotonic() - start, memory_kB(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    return ready, memory


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5, help="starts of the server, of which the fastest counts")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA", "WAVESIM"))}
        environment |= {"XDG_CACHE_HOME": str(place / "cache"), "PIP_CONFIG_FILE": os.devnull}
        shutil.copytree(ROOT / "examples", place / "examples")
        shutil.copy(ROOT / "config.xml", place)
        venv.create(place / "env", with_pip=True)
        sources = [f"--find-links={folder.resolve()}" for folder in args.folders]
        pip = [str(place / "env/bin/python"), "-m", "pip", "install", "-qq", "--no-index", *sources, "wavesim"]
        wavesim = str(place / "env/bin/wavesim")
        installed = spent(pip, environment, place)
        trial = spent([wavesim, "trial", "config.xml", "--quiet", "--no-plots", "--port", "0"], environment, place)
        files = [p for p in (place / "env").rglob("*") if p.is_file() and not p.is_symlink()]
        print(f"{'':24}{'wall s':>10}{'CPU s':>10}")
        print(f"{'pip install wavesim':24}{installed[0]:10.1f}{installed[1]:10.1f}")
        print(f"{'first trial, to table':24}{trial[0]:10.1f}{trial[1]:10.1f}")
        print(f"environment             {sum(p.stat().st_size for p in files) / 1e6:10.0f} MB")
        ready, memory = min(
            (serve(wavesim, environment, place) for _ in range(args.rounds)), key=lambda found: found[0]
        )
        print(f"serve ready             {ready:10.2f} s")
        for process, size in memory.items():
            print(f"resident, {process:24}{size / 1000:10.1f} MB")


if __name__ == "__main__":
    main()
