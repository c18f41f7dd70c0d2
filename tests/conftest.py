"""Fixtures: configurations, real servers in their own processes, and the folder of real data."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import posix_ipc
import pytest

from tests import nursery
from tests.nursery import CLI, launch
from wavesim_sdk.commander import Commander
from wavesim_sdk.errors import NotRunning
from wavesim_server import compiling
from wavesim_server.resources import remove_leftovers
from wavesim_world.config import LoadedConfig, load

ROOT = Path(__file__).parent.parent
_numbers = itertools.count(1)
# of a suite in the background, or started by nohup: programs would inherit it, deaf to Ctrl-C or to a closed terminal
for _signal, _usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_signal) == signal.SIG_IGN:
        signal.signal(_signal, _usual)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile the kernels once, before workers or servers do so side by side."""
    if not hasattr(session.config, "workerinput"):
        compiling.ensure_compiled(lambda text: print(f"\n{text}", flush=True), hydrophones=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests of a group share a server, a trial or a browser: a worker that does not know groups would start them twice."""
    if hasattr(session.config, "workerinput") and session.config.getvalue("loadgroup"):
        lost = [i for i in session.items if i.get_closest_marker("xdist_group") and "@" not in i.nodeid]
        if lost:
            pytest.exit(f"pytest-xdist does not keep groups with pytest {pytest.__version__}", returncode=3)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real data beside the project; in CI its absence is a failure."""
    for folder in (
        Path(os.environ.get("WAVESIM_DATA", "")),
        ROOT.parent / "shared" / "data",
        ROOT.parent.parent / "shared" / "data",
    ):
        if folder.name and (folder / "dune").is_dir():
            return folder
    message = "the folder of real data (../shared/data, or $WAVESIM_DATA) is absent"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def name() -> Iterator[str]:
    """A server name that nobody else uses; whatever is left under it is removed."""
    unique = f"t{os.getpid()}-{next(_numbers)}"
    yield unique
    left = remove_leftovers(unique)
    assert left == [], f"the server left these behind: {left}"


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., LoadedConfig]:
    """Write a configuration from the text inside <wavesim> and read it."""

    def make(inner: str, **attributes: str) -> LoadedConfig:
        head = "".join(f' {k}="{v}"' for k, v in attributes.items())
        path = tmp_path / f"config{next(_numbers)}.xml"
        path.write_text(f"<wavesim{head}>\n{inner}\n</wavesim>\n")
        return load(path)

    return make


def wavesim(
    *arguments: str | Path, timeout: float = 120.0, cwd: Path | None = None, **options: object
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end: in a fork that has imported everything, or with options in a new interpreter."""
    if not options:
        return nursery.run(*arguments, timeout=timeout, cwd=cwd)
    return new_wavesim(*arguments, timeout=timeout, cwd=cwd, **options)


def new_wavesim(*arguments: str | Path, timeout: float = 120.0, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command to its end in a new interpreter."""
    return subprocess.run(
        [*CLI, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False, **options
    )  # type: ignore[call-overload,no-any-return]


def run_trial(
    config: str | Path, out: Path, name: str, *more: str, timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run a trial on a free port, without pictures."""
    return wavesim(
        "trial", config, "--out", out, "--name", name, "--port", "0", "--quiet", "--no-plots", *more, timeout=timeout
    )


class Server:
    """A real server in a process."""

    def __init__(self, config_path: Path, name: str, *arguments: str) -> None:
        self.name = name
        self.process = launch("serve", config_path, "--name", name, "--port", "0", *arguments, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        said = [self.process.stderr.readline()]
        while said[-1] and "on UDP" not in said[-1]:
            said.append(self.process.stderr.readline())
        line = said[-1]
        if not line:
            self.process.wait(10)
            raise AssertionError(f"the server did not start: {''.join(said)}")
        self.port = int(line.split("on UDP ")[1].split(";")[0].rpartition(":")[2])

    def send(self, verb: str, **arguments: object) -> dict[str, object]:
        try:
            with Commander(self.name) as commander:
                reply = commander.send(verb, **arguments)
        except NotRunning as error:
            if self.process.poll() is not None and self.process.stderr is not None:
                raise AssertionError(f"the server ended: {self.process.stderr.read()}") from error
            raise
        assert reply.ok, reply.text
        return reply.data

    def status(self) -> dict[str, object]:
        return self.send("status")

    def wait(self, condition: Callable[[dict[str, object]], bool], timeout: float = 30.0) -> dict[str, object]:
        """Poll the status until the condition holds."""
        limit = time.monotonic() + timeout
        while time.monotonic() < limit:
            status = self.status()
            if condition(status):
                return status
            time.sleep(0.02)
        raise AssertionError(f"timed out; last status: {status}")

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()


@pytest.fixture
def serve(name: str) -> Iterator[Callable[..., Server]]:
    """Start servers; they are ended after the test."""
    servers: list[Server] = []

    def start(path: Path, *arguments: str) -> Server:
        servers.append(Server(path, name, *arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.end()
        if server.process.stderr is not None:
            server.process.stderr.close()


@pytest.fixture
def queue_name() -> Iterator[str]:
    """A message queue name that is removed after the test."""
    queue = f"/wavesim-test-{os.getpid()}-{next(_numbers)}"
    yield queue
    with contextlib.suppress(posix_ipc.ExistentialError):
        posix_ipc.unlink_message_queue(queue)
