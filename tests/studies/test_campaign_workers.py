"""Workers of a campaign with dask and an existing scheduler, and the refusal of keys without effect."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.conftest import wavesim
from tests.nursery import CLI
from tests.studies.test_campaign import function, table, without_times
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.campaign import clusters, executors, runner
from wavesim_studies.campaign.journal import Journal
from wavesim_studies.campaign.plan import CampaignPlan

FACTOR = '<factor name="a" values="1 | 2 | 3 | 4 | 5 | 6"/>'


class Cluster:
    """A scheduler of dask and workers of one thread, started by hand, as others start them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers: list[subprocess.Popen[bytes]] = []

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        here = ["--scheduler-file", str(self.folder / "scheduler.json"), "--no-dashboard"]
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{name}", *here, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
        )
        self.stack.callback(process.wait, 60)
        self.stack.callback(process.kill)  # without its scheduler, a worker takes a minute to end
        return process

    def start_workers(self, count: int, threads: int = 1) -> str:
        """Start workers, and return the address of the scheduler when they have joined."""
        import distributed

        for _ in range(count):
            more = ("--host", "127.0.0.1", "--nworkers", "1", "--nthreads", str(threads), "--no-nanny")
            self.workers.append(self._start("worker", *more))
        with distributed.Client(scheduler_file=str(self.folder / "scheduler.json"), timeout=60) as client:
            client.wait_for_workers(count, timeout=120)
            return str(client.scheduler.address)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


@pytest.fixture
def scheduler(cluster: Cluster) -> str:
    return cluster.start_workers(1, threads=2)


def runners(parents: set[int]) -> set[int]:
    """Processes for runs that workers of dask have."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes()
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if b"wavesim_studies.campaign.worker" in command and parent in parents:
            found.add(int(path.name))
    return found


def test_a_scheduler_that_runs_does_the_campaign_and_goes_on(folder: Path, scheduler: str) -> None:
    """Its own workers do it, none of ours; files that change between two campaigns are read anew; no process stays."""
    inner = f'<workers kind="dask" options="address={scheduler}" count="3"/>{FACTOR}'
    program = "import os\ndef where(factors, seed):\n    return {{'y': os.getppid() + {}}}\n"
    (folder / "programs.py").write_text(program.format("0.0"))
    p = function(folder, "where", inner)
    import distributed

    with distributed.Client(scheduler) as client:
        theirs = set(client.run(os.getpid).values())
        for shift in ("0.0", "0.5"):
            (folder / "programs.py").write_text(program.format(shift))
            done = wavesim("campaign", "run", p.path, "--out", folder / "runs", "--quiet")
            assert done.returncode == 0 and "6 of 6 runs: 6 ok" in done.stdout, done.stdout + done.stderr
            current = {r.key for r in CampaignPlan(p.path, folder / "runs").rows}
            found = [r["y"] for r in table(p) if r["key"] in current]
            assert len(found) == 6 and {y - float(shift) for y in found} <= theirs
        assert set(client.run(os.getpid).values()) == theirs, "the workers live"
        assert not runners(theirs)


ROWS = 24


def held(folder: Path, address: str) -> CampaignPlan:
    """A campaign of runs that wait until a file `go` exists, on the cluster."""
    values = " | ".join(str(k) for k in range(ROWS))
    inner = f'<workers kind="dask" options="address={address}"/><factor name="a" values="{values}"/>'
    return function(folder, "waits", inner)


def command(p: CampaignPlan) -> list[str]:
    return [*CLI, "campaign", "run", str(p.path), "--out", str(p.folder.parent), "--quiet"]


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < limit, "timed out"
        time.sleep(0.02)


def test_a_worker_of_two_that_is_killed_loses_no_row_and_makes_none_twice(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL while both are busy; the table is the one of a campaign that lost nothing."""
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = held(folder, cluster.start_workers(2))
    with subprocess.Popen(command(p), stderr=subprocess.PIPE, text=True) as process:
        until(lambda: calls.exists() and len(set(calls.read_text().split())) == 2)
        busy = [int(pid) for pid in calls.read_text().split()]
        cluster.workers[0].send_signal(signal.SIGKILL)
        cluster.workers[0].wait()
        (folder / "go").touch()
        assert process.wait(300) == 0
        assert process.stderr is not None and not process.stderr.read(), "dask says nothing of its own"
    rows = table(p)
    assert [r["row"] for r in rows] == list(range(ROWS)) and {r["status"] for r in rows} == {"ok"}
    done = [int(pid) for pid in calls.read_text().split()]
    assert len(done) == ROWS + 1, "the run of the killed worker, and no other, was repeated"
    assert len(set(done)) == 2 and {*busy} == {*done}, "the other worker did the rest"
    with closing(executors.LocalExecutor(1, p.path, folder / "alone")) as who:
        alone = CampaignPlan(p.path, folder / "alone")
        runner.run(alone, quiet=True, worker_settings=who)
    assert without_times(table(alone)) == without_times(rows)


def test_an_error_of_our_own_is_not_a_lost_scheduler(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It passes as it is, the waiting runs are ended, and the loggers of the user's process are as before."""
    import distributed

    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    address = cluster.start_workers(1, threads=2)
    p = held(folder, address)
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "distributed.scheduler")]
    monkeypatch.setattr(loggers[1], "level", logging.INFO)
    before = [logger.level for logger in loggers]
    with distributed.Client(address) as client:
        theirs = set(client.run(os.getpid).values())
        with closing(executors.executor(p.campaign.workers, p.path, p.folder)) as who:
            assert isinstance(who, executors.DaskExecutor)
            who.submit((1, p.rows[1].key, 60.0))  # it waits
            until(calls.exists)
            who.submit((0, "a key that does not exist", 60.0))
            who._rows = {"a mistake in our code": 0}
            with pytest.raises(KeyError):
                next(who.results())
            assert runners(theirs)
        until(lambda: not runners(theirs))
        assert [logger.level for logger in loggers] == before


def test_a_worker_that_cannot_execute_a_run_says_why(
    folder: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without our packages; it is not a lost worker."""

    def fails(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'wavesim_studies'")

    monkeypatch.setattr(executors, "on_dask", fails)
    p = function(folder, "noisy", f'<workers kind="dask" options="address={scheduler}"/>{FACTOR}')
    with closing(executors.executor(p.campaign.workers, p.path, p.folder)) as who:
        who.submit((0, p.rows[0].key, 60.0))
        ((row, outcome),) = who.results()
    assert row == 0 and outcome["reason"] == (
        "the dask worker cannot execute the run: ModuleNotFoundError: No module named 'wavesim_studies'"
    )


@pytest.mark.long
def test_a_scheduler_that_goes_is_one_line_and_the_rest_follows(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in an error of a connection after 30 s, or hung; the finished runs are not repeated."""
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = held(folder, cluster.start_workers(1))
    (folder / "go").touch()
    with subprocess.Popen(command(p), stderr=subprocess.PIPE, text=True) as process:
        until(lambda: (p.folder / "journal.sqlite").exists() and len(states(p)) > 2)
        (folder / "go").unlink()
        until(lambda: len(calls.read_text().split()) > len(states(p)))  # a run waits
        cluster.scheduler.kill()
        assert process.wait(120) == 1
        assert process.stderr is not None
        (line,) = process.stderr.read().splitlines()
    assert "the dask scheduler at tcp://127.0.0.1:" in line and "no longer answers" in line and "same command" in line
    before = table(p)
    assert 2 < len(before) < ROWS and {r["status"] for r in before} == {"ok"}
    (folder / "go").touch()
    with closing(executors.LocalExecutor(1, p.path, folder / "runs")) as who:
        runner.run(CampaignPlan(p.path, folder / "runs"), quiet=True, worker_settings=who)
    rows = table(p)
    assert [r["row"] for r in rows] == list(range(ROWS)) and rows[: len(before)] == before


def states(p: CampaignPlan) -> dict[str, tuple[str, int]]:
    try:
        with Journal(p.folder) as journal:
            return journal.states()
    except WaveSimError:  # it has only just begun
        return {}


def test_nobody_there_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(clusters, "ATTACH_S", 0.5)
    with pytest.raises(WaveSimError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"):
        clusters.attached("tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ('kind="dask" options="adress=tcp://127.0.0.1:1"', "no option 'adress'.*'address'"),
        ('kind="dask" options="queue=short"', "no option 'queue'"),
        ('kind="dask" options="address=127.0.0.1:8786"', "PROTOCOL://HOST:PORT"),
        ('kind="dask" options="address=tcp://a:1; address=tcp://b:1"', "appears twice"),
        ('kind="dask" options="address=tcp://127.0.0.1:1" dashboard="yes"', "does not accept `dashboard`"),
        ('kind="dask" hosts="a b"', "does not accept `hosts`"),
        ('kind="pool" options="queue=short"', "no options"),
        ('kind="pool" dashboard="yes"', "does not accept `dashboard`"),
        ('kind="pool" hosts="a"', "does not accept `hosts`"),
        ('options="address=tcp://127.0.0.1:1"', "no options"),
        ('kind="ssh"', "requires `hosts`"),
        ('kind="ssh" hosts="a" dashboard="yes"', "does not accept `dashboard`"),
        ('kind="slurm" options="memory 2GB"', "use NAME=VALUE"),
        ('kind="slurm" hosts="a"', "does not accept `hosts`"),
        ('kind="kubernetes" dashboard="yes"', "does not accept `dashboard`"),
    ],
)
def test_workers_take_nothing_that_they_would_ignore(folder: Path, workers: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        function(folder, "noisy", f"\n<workers {workers}/>{FACTOR}")
    assert error.value.line == 2


KEY = '<key path="world/current/north" text="{} m/s"/>'
LAB = '<run kind="lab" duration="1 s"/>'


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        (
            f'{LAB}<design kind="grid" points="8"/><factor name="a" values="1">{KEY}</factor>',
            "<design points=...> has no effect",
        ),
        (
            f'{LAB}<design kind="sobol" points="8" strength="2"/><factor name="a" low="0" high="1">{KEY}</factor>',
            "<design strength",
        ),
        (f'{LAB}<design kind="sobol" points="8"/>', "<design> has no effect.*requires a <factor>"),
        (
            f'{LAB}<design kind="grid"><point set="a=1"/></design><factor name="a" values="1">{KEY}</factor>',
            "<point> has no effect",
        ),
        (
            f'{LAB}<design kind="seeds"/><factor name="a" values="1">{KEY}</factor>',
            "<factor> has no effect.*replicates",
        ),
        (f'{LAB}<factor name="a" values="1 | 2" low="3">{KEY}</factor>', "<factor low"),
        (f'{LAB}<factor name="a" low="0" high="1" mean="0.5">{KEY}</factor>', "<factor mean"),
        (f'{LAB}<factor name="a" distribution="normal" mean="1" low="0">{KEY}</factor>', "<factor low"),
        (
            f'{LAB}<design kind="latin" points="4"/><factor name="a" low="0" high="1" levels="4">{KEY}</factor>',
            "<factor levels",
        ),
        ('<run duration="1 s" logs="all"/>', "<run logs"),
        ('<run kind="trial" duration="1 s" program="programs.py:fly"/>', "<run program"),
        (f'{LAB}<metric name="m" of="distance" unit="km"/>', "<metric unit"),
        (f'{LAB}<metric name="m" of="programs.py:depth" body="b"/>', "<metric body"),
        (f'{LAB}<metric name="energy" body="b"/>', "<metric body"),
    ],
)
def test_a_key_without_an_effect_is_refused(folder: Path, inner: str, said: str) -> None:
    (folder / "c.xml").write_text(f'<campaign name="c" config="base.xml">\n{inner}</campaign>')
    with pytest.raises(ConfigError, match=said) as error:
        CampaignPlan(folder / "c.xml", folder / "runs")
    assert error.value.line == 2 and Path(error.value.file).name == "c.xml"


@pytest.mark.parametrize(
    ("attributes", "run", "metric", "said"),
    [
        ('config="base.xml"', "", "", "<campaign config"),
        ("", 'duration="1 s"', "", "<run duration"),
        ("", "", 'of="distance"', "<metric of"),
        ("", "", 'body="a"', "<metric body"),
    ],
)
def test_a_function_simulates_nothing(folder: Path, attributes: str, run: str, metric: str, said: str) -> None:
    (folder / "c.xml").write_text(
        f'<campaign name="c" {attributes}><run kind="function" program="programs.py:noisy" {run}/>{FACTOR}<metric name="y" {metric}/></campaign>'
    )
    with pytest.raises(ConfigError, match=said):
        CampaignPlan(folder / "c.xml", folder / "runs")
