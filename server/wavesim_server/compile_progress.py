"""Bar that shows how far the compiler of the kernels is."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time

from tqdm import tqdm

from wavesim_kernels.cache import cache_folder

KERNELS = 33  #: number of kernels that the first compilation stores, approximately
LOOK_S = 0.3


def follow(program: subprocess.Popen[bytes]) -> int:
    """Wait for the compiler and return its exit code. On a terminal, show how many kernels it has stored."""
    since = time.time()
    tqdm.monitor_interval = 0  # no monitor thread: the caller forks
    with tqdm(
        total=KERNELS,
        disable=not sys.stderr.isatty(),
        desc="wavesim: compiling",
        bar_format="{desc}: {percentage:3.0f}%|{bar:30}| {n}/{total} kernels",
    ) as bar:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return program.wait(LOOK_S)
            bar.n = min(_stored_since(since), KERNELS)
            bar.refresh()


def _stored_since(since: float) -> int:
    """Return the number of kernels that were stored after this time."""
    count = 0
    for path in cache_folder().glob("*/*.nbc"):
        with contextlib.suppress(OSError):  # removed meanwhile
            count += path.stat().st_mtime >= since
    return count
