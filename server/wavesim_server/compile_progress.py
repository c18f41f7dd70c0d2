"""Progress bar for the kernel compiler."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time

import click  # tqdm is not yet installed when `make` compiles

from wavesim_kernels.cache import cache_folder

KERNELS = 33  #: approximate number of kernels that the first compilation stores
LOOK_S = 0.3


def follow(program: subprocess.Popen[bytes]) -> int:
    """Wait for the compiler and return its exit code. On a terminal, show how many kernels it has stored so far."""
    since = time.time()
    with click.progressbar(
        length=KERNELS,
        label="wavesim: compiling kernels",
        show_eta=False,
        show_pos=True,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return program.wait(LOOK_S)
            bar.update(min(_stored_since(since), KERNELS) - bar.pos)


def _stored_since(since: float) -> int:
    """Return the number of kernels that have been stored since a given time."""
    count = 0
    for path in cache_folder().glob("*/*.nbc"):
        with contextlib.suppress(OSError):  # removed meanwhile
            count += path.stat().st_mtime >= since
    return count
