"""Memory, open files, threads and shared memory of one process that runs many trials one after another.

    python -m benchmarks.endurance [--trials 1000] [--seconds 2] [--every 100]

Each trial is the demonstration trial, shortened. The process prints its resources every hundred trials. They must not grow.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from wavesim_server.in_process.trial import InProcessTrial
from wavesim_world.config import LoadedConfig, load

ROOT = Path(__file__).parents[1]
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Resources:
    """What a process holds at one moment."""

    resident_mb: float  #: resident memory in MB
    files: int  #: open file descriptors
    threads: int
    mappings: int  #: memory mappings
    shared: int  #: objects of the trial in /dev/shm
    modules: int
    objects: int  #: objects that the garbage collector tracks


def resources(name: str) -> Resources:
    """Return the resources of this process; ``name`` is that of its trials."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Resources(
        resident_mb=round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1),
        files=len(list(Path("/proc/self/fd").iterdir())),
        threads=threading.active_count(),
        mappings=Path("/proc/self/maps").read_text().count("\n"),
        shared=sum(name in p.name for p in SHARED_MEMORY.iterdir()),
        modules=len(sys.modules),
        objects=len(gc.get_objects()),
    )


def run_trials(loaded: LoadedConfig, trials: int, every: int, seconds: float, out: Path) -> list[tuple[int, Resources]]:
    """Run trials one after another in this process. Return the resources after each ``every`` of them."""
    name, found = f"endurance{os.getpid()}", []
    for k in range(1, trials + 1):
        InProcessTrial(loaded, out, name=name, duration=seconds, quiet=True).run(plots=False)
        if k % every == 0:
            found.append((k, resources(name)))
            print(json.dumps({"trials": k, **asdict(found[-1][1])}), flush=True)
    return found


def main() -> None:
    """Run the trials and report the growth per trial between the first and the last report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        found = run_trials(load(ROOT / "config.xml"), options.trials, options.every, options.seconds, Path(out))
    (first, before), (last, after) = found[0], found[-1]
    print(f"{options.trials} trials of {options.seconds:g} s in {time.monotonic() - began:.0f} s")
    if last > first:
        for field, value in asdict(after).items():
            print(
                f"{field}: {getattr(before, field)} -> {value}, {(value - getattr(before, field)) / (last - first):+.4f} per trial"
            )


if __name__ == "__main__":
    main()
