"""Missing resources: no shared memory, no queues, a full disk, a front that does not answer. The result is a clear
error or a named degraded state.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.processes import children

from tests.conftest import CLI, Server, wavesim
from wavesim_sdk.broker import Broker
from wavesim_sdk.log import read
from wavesim_server.resources import remove_leftovers
from wavesim_server.trial import Trial
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]
ONE = '<fleet><vehicle name="a" model="lauv" position="0 0 5 m"/></fleet>'
FLEET = '<time step="4 ms"/><log state_rate="250 Hz"/><fleet><vehicle name="v" model="lauv" position="0 0 9 m"/>{more}</fleet>'


def limited(path: Path, name: str, what: int, limit: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a server that the system gives less."""
    code = (
        f"import resource, sys; resource.setrlimit({what}, ({limit}, {limit})); sys.argv[0] = 'wavesim'; "
        "from wavesim_sdk.console import main; main()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "serve", str(path), "--name", name, "--port", "0", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("what", "limit", "message"),
    [
        (resource.RLIMIT_FSIZE, 100_000, "cannot create the server's shared memory"),
        (resource.RLIMIT_MSGQUEUE, 0, "cannot create the commander queue (see ulimit -q, /dev/mqueue)"),
    ],
)
def test_the_system_gives_no_memory_or_queue(
    config: Callable[..., LoadedConfig], name: str, what: int, limit: int, message: str
) -> None:
    done = limited(config(FLEET.format(more="")).path, name, what, limit)
    assert done.returncode != 0 and message in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert remove_leftovers(name) == []


def test_a_full_disk_ends_the_log_and_not_the_run(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    log = tmp_path / "full.mcap"
    server = serve(config(FLEET.format(more="")).path, "--speed", "4", "--log", str(log))
    server.send("start")
    server.wait(lambda s: float(str(s["time_ns"])) > 6e9)
    front = children(server.process.pid)["front"]
    size = log.stat().st_size
    resource.prlimit(front, resource.RLIMIT_FSIZE, (size + 20_000, size + 20_000))  # as if the disk were full
    status = server.wait(lambda s: s["log"] != "ok", 60.0)
    assert "File too large" in str(status["log"])
    tick = int(str(status["tick"]))
    server.wait(lambda s: int(str(s["tick"])) > tick + 500)
    server.send("shutdown")
    assert server.process.wait(30) == 0
    found = read(log)
    assert not found.complete and len(found.series["/state/v"].records) > 500, "what was written before is readable"


def test_a_log_on_a_full_device(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(FLEET.format(more="")).path, "--speed", "4", "--log", "/dev/full")
    server.send("start")
    status = server.wait(lambda s: s["log"] != "ok", 60.0)
    assert "No space left on device" in str(status["log"]) and status["state"] == "running"


def test_a_trial_on_a_full_disk_tells_its_table_and_what_is_missing(
    config: Callable[..., LoadedConfig], tmp_path: Path, name: str
) -> None:
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    path = config('<time step="20 ms" duration="9 s" pace="fast"/><log state_rate="50 Hz"/>' + ONE).path
    command = shlex.join([*CLI, "trial", str(path), "--out", str(tmp_path), "--name", name, "--port", "0", "--quiet"])
    (tmp_path / name).mkdir()
    done = subprocess.run(
        [*inside, f"mount -t tmpfs -o size=12k none '{tmp_path / name}' && {command} --no-plots"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = f"cannot write the table to {tmp_path / name}: No space left on device"
    assert done.returncode == 12 and said in done.stderr and "is incomplete: it ends at" in done.stderr, done.stderr
    assert " s simulated in " in done.stdout and "Traceback" not in done.stderr


def test_failed_pictures_are_listed_beside_those_that_exist(
    config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    trial = Trial(config('<time duration="1 s"/>' + ONE), tmp_path, quiet=True)
    program = ["sh", "-c", "echo 'a b/tracks.png'; echo 'wavesim: no more room' >&2; exit 1"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as drawing:
        lines = trial._plot_lines(drawing)
    assert lines == ["picture   a b/tracks.png", "the plots could not be drawn: wavesim: no more room"]


def test_a_front_that_stands_still_is_reported_to_the_commander(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    """Commands pile up to the length of the queue, then they are refused; the engine ticks on."""
    server = serve(config(FLEET.format(more="")).path, "--speed", "1")
    server.send("start")
    front = children(server.process.pid)["front"]
    os.kill(front, signal.SIGSTOP)
    try:
        started = [
            subprocess.Popen(
                [*CLI, "status", "-s", server.name], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
            )
            for _ in range(14)
        ]
        texts = [p.communicate(timeout=60)[1] for p in started]
        assert all(p.returncode == 4 for p in started), texts
        assert all(t.startswith("wavesim: ") and "Traceback" not in t for t in texts)
        assert any("full" in t for t in texts) and any("answer" in t for t in texts), set(texts)
        before = time.monotonic()
    finally:
        os.kill(front, signal.SIGCONT)
    status = server.wait(lambda s: s["state"] == "running", 30.0)
    assert time.monotonic() - before < 30.0 and int(str(status["slipped_ns"])) < 5e8


def test_a_deaf_client_is_ended_and_costs_no_memory(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    """A client that answers the keep-alive, but acknowledges no event, is ended after 4096 of them."""
    more = "".join(f'<buoy name="c{k}" model="buoy" position="{60 + 10 * k} {30 * (k % 3)} 1 m"/>' for k in range(6))
    server = serve(
        config(
            '<network acoustic_rate="100 kHz"/>'
            + FLEET.format(more=more + '<vehicle name="a" model="lauv" position="0 -20 9 m" client="optional"/>')
        ).path,
        "--speed",
        "0",
    )
    with Broker("a", ("127.0.0.1", server.port)) as broker:
        broker.session._inbox.accept = lambda first, items: []  # type: ignore[method-assign]
        server.send("start")
        limit, ended = time.monotonic() + 60.0, ""
        while not ended and time.monotonic() < limit:
            try:
                broker.ping(25_000.0)
                broker.poll(0.02)
            except Exception as error:
                ended = str(error)
        assert "acknowledged none of the last 4096 events" in ended
    assert wavesim("status", "-s", server.name).returncode == 0
