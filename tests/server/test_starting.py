"""Start of the server's processes: memory layout, imports, and the location of kernels."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server.address_layout import same_address_layout
from wavesim_server.engine import process
from wavesim_server.serve import ProcessArguments, ServerOptions
from wavesim_world.config import LoadedConfig

WHERE = [sys.executable, "-c", "print(open('/proc/self/maps').readlines()[-4:])"]


def places() -> set[str]:
    return {subprocess.run(WHERE, capture_output=True, text=True, check=True).stdout for _ in range(3)}


def test_programs_share_a_layout() -> None:
    before = places()
    with same_address_layout():
        inside = places()
    if len(before) == 1:
        pytest.skip("this system does not randomise addresses at all")
    if len(inside) == len(before):
        pytest.skip("this system does not permit a layout of one's own (a container's seccomp profile)")
    assert len(inside) == 1
    assert len(places()) == 3  # the caller's own choice is back


@pytest.mark.parametrize("module", ["wavesim_server.network.process", "wavesim_server.trial", "wavesim_server.cli"])
def test_only_the_engine_pays_for_numba(module: str) -> None:
    code = f"import {module}, sys; print(sorted({{'numba', 'scipy', 'wavesim_server.simulation'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_engine_is_made_with_seed_and_threads_of_the_options(
    config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(*arguments: object) -> None:
        raise ConfigError(f"with {arguments[1:]}")

    monkeypatch.setattr(process, "Simulation", made)
    with pytest.raises(SystemExit):
        process.main(ProcessArguments(config(""), ServerOptions("n", 5, 0, "", threads=3), -1, -1, os.getpid()))
    assert "with (5, 3)" in capsys.readouterr().err


def test_kernels_are_kept_in_the_folder_chosen(tmp_path: Path) -> None:
    """Also where Numba was there first. The folder is created only when a kernel is stored."""
    code = "{first}\nfrom wavesim_server import Simulation, tick\nprint(tick.run_ticks.stats.cache_path)"
    for variable, first in (
        (None, ""),
        (None, "import numba"),
        (tmp_path / "own", ""),
        (tmp_path / "own", "import numba"),
    ):
        env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"XDG_CACHE_HOME": str(tmp_path)}
        if variable is not None:
            env["NUMBA_CACHE_DIR"] = str(variable)
        run = subprocess.run(
            [sys.executable, "-c", code.format(first=first)], capture_output=True, text=True, check=True, env=env
        )
        path = Path(run.stdout.strip())
        assert path.parent == (variable or tmp_path / "wavesim")
        assert list(tmp_path.iterdir()) == []
