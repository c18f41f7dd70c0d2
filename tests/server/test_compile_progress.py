"""The bar of the first compilation."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from wavesim_server import compile_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


COMPILER = "import sys; from pathlib import Path\nfor k in range(7): Path(sys.argv[1], f'{k}.nbc').touch()\nsys.stdin.read(); sys.exit(3)"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_sees_how_many_kernels_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    folder = tmp_path / "dynamics_1"
    folder.mkdir()
    (folder / "earlier.nbc").touch()
    os.utime(folder / "earlier.nbc", (1.0, 1.0))
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compile_progress, "LOOK_S", 0.01)
    monkeypatch.setattr(sys, "stderr", stream)
    found: list[int] = []
    with subprocess.Popen([sys.executable, "-c", COMPILER, str(folder)], stdin=subprocess.PIPE) as program:
        thread = threading.Thread(target=lambda: found.append(compile_progress.follow(program)))
        thread.start()
        assert program.stdin is not None
        limit = time.monotonic() + 30.0
        while terminal and f"7/{compile_progress.KERNELS}" not in stream.getvalue():
            assert time.monotonic() < limit, stream.getvalue()
            time.sleep(0.01)
        program.stdin.close()
        thread.join(30.0)
    assert found == [3]
    assert terminal or stream.getvalue() == ""
