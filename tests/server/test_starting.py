"""Start of the server's processes: memory layout, imports, and the location of kernels."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Server, wavesim
from wavesim_sdk.broker import Broker
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


FLEET = """<fleet><vehicle name="a" model="lauv" position="0 0 9 m" client="required"/>
<vehicle name="b" model="lauv" position="0 50 9 m" client="required"/></fleet>"""


def test_a_server_with_start_waits_for_its_required_clients(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    """It ran away before they came; and it says for whom it waits."""
    server = serve(config(FLEET).path, "--start")
    assert server.process.stderr is not None
    assert "waiting until the required clients have joined: a, b; `wavesim start`" in server.process.stderr.readline()
    with Broker("a", ("127.0.0.1", server.port), lockstep=0.1):
        assert server.wait(lambda s: s["missing"] == ["b"])["state"] == "stopped"
        with Broker("b", ("127.0.0.1", server.port), lockstep=0.1) as broker:
            assert any("the clock starts" in line for line in iter(server.process.stderr.readline, ""))
            step = next(iter(broker.steps()))
            assert step.time == 0.0, "not a tick before both had come"


@pytest.mark.parametrize("how", ["--no-wait", "start", "step"])
def test_a_server_with_start_does_not_wait_if_the_user_says_so(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], how: str
) -> None:
    server = serve(config(FLEET).path, "--start", *([how] if how == "--no-wait" else []))
    assert server.process.stderr is not None
    if how != "--no-wait":
        assert "waiting until" in server.process.stderr.readline()
        server.send(how, **({"ticks": 5} if how == "step" else {}))
    if how == "step":
        assert server.wait(lambda s: s["tick"] == 5)["state"] == "paused", "and it stays the user's"
    else:
        server.wait(lambda s: s["tick"] > 5)
    assert server.end() == 0
    assert "clock starts" not in server.process.stderr.read()


def test_a_server_that_waits_ends_at_ctrl_c(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(FLEET).path, "--start")
    assert server.process.stderr is not None and "waiting until" in server.process.stderr.readline()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(60) == 0
    done = wavesim("serve", config(FLEET).path, "--no-wait")
    assert done.returncode == 2 and "--no-wait requires --start" in done.stderr
