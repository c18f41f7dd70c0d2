"""Workers of a campaign with dask and an existing scheduler, and the refusal of keys without effect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import wavesim
from tests.studies.test_campaign import function, table
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.campaign import clusters
from wavesim_studies.campaign.plan import CampaignPlan

FACTOR = '<factor name="a" values="1 | 2 | 3 | 4 | 5 | 6"/>'


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    """The address of a scheduler of dask and a worker of two threads, as others start them."""
    pytest.importorskip("distributed")
    place = tmp_path / "scheduler.json"
    here = ["--scheduler-file", str(place), "--no-dashboard"]
    with ExitStack() as stack:

        def start(name: str, *arguments: str) -> None:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{name}", *here, *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=tmp_path,
            )
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)

        start("scheduler", "--host", "127.0.0.1", "--port", "0")
        start("worker", "--host", "127.0.0.1", "--nworkers", "1", "--nthreads", "2", "--no-nanny")
        import distributed

        with distributed.Client(scheduler_file=str(place), timeout=60) as client:
            client.wait_for_workers(1, timeout=120)
        yield str(json.loads(place.read_text())["address"])


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
