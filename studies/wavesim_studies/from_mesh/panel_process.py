"""Starting of the panel program, with bounded memory and time, and with its progress."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.extras import check_installed

MOST_SECONDS = 1800  #: time after which the program is ended
GRAVITY = 9.81

#: called with a fraction (0 to 1) and a text for the user
Progress = Callable[[float, str], None]


class PanelError(WaveSimError):
    """Raised if the panel method gives no result. The text is one line for the user."""


def no_progress(fraction: float, text: str) -> None:
    """Ignore the progress."""


def run(given: dict[str, Any], progress: Progress = no_progress, seconds: int = MOST_SECONDS) -> dict[str, Array]:
    """Run the panel program on its input arrays, and return its output arrays.

    The arrays are described in :mod:`~wavesim_studies.from_mesh.panel_program`. Raises PanelError with the reason if
    there is no result.
    """
    check_installed("capytaine")
    with tempfile.TemporaryDirectory(prefix="wavesim-panels-") as folder:
        source, out, errors = (Path(folder) / name for name in ("in.npz", "out.npz", "errors.txt"))
        np.savez(source, **given)
        command = [sys.executable, "-m", "wavesim_studies.from_mesh.panel_program", str(source), str(out), str(seconds)]
        with (
            errors.open("wb") as stream,
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stream,
                env=os.environ | {"OMP_WAIT_POLICY": "passive"},  # waiting threads leave the cores to other programs
            ) as program,
        ):
            late = threading.Timer(seconds, program.kill)
            late.start()
            try:
                assert program.stdout is not None
                for line in program.stdout:
                    fraction, _, text = line.decode(errors="replace").strip().partition(" ")
                    try:
                        progress(min(max(float(fraction), 0.0), 1.0), text)
                    except ValueError:
                        continue  # a message of a library
                program.wait()
                ended = not late.is_alive()
            except BaseException:  # the user ends the command, or the progress display fails
                program.kill()
                raise
            finally:
                late.cancel()
        if program.returncode == 0 and out.exists():
            with np.load(out) as data:
                return {name: data[name] for name in data.files}
        if ended:
            raise PanelError(f"the panel method takes more than {seconds} s: use fewer panels")
        lines = errors.read_text(errors="replace").strip().splitlines()
        raise PanelError(lines[-1] if lines else "the panel method failed: use fewer panels")
