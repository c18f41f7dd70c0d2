"""Campaigns: valid files, designs, runs that end in every way, resuming, and the same table with any workers."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from lxml import etree

from tests.conftest import CLI, wavesim
from tests.server.test_report import exchanges
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_studies.campaign import clusters, designs, runner, statistics
from wavesim_studies.campaign.cli import campaign
from wavesim_studies.campaign.config_paths import BaseConfiguration, assign
from wavesim_studies.campaign.journal import Journal
from wavesim_studies.campaign.metrics import RunResult, straight_line_bias, straight_line_max
from wavesim_studies.campaign.plan import CampaignPlan
from wavesim_studies.campaign.run import execute_run, folder_of
from wavesim_studies.campaign.schema import WorkersConfig
from wavesim_world.config import load


def plan(folder: Path, inner: str, attributes: str = 'config="base.xml"', name: str = "c") -> CampaignPlan:
    (folder / f"{name}.xml").write_text(f'<campaign name="{name}" seed="3" {attributes}>{inner}</campaign>')
    return CampaignPlan(folder / f"{name}.xml", folder / "runs")


def function(folder: Path, which: str, inner: str, name: str = "c", run: str = "") -> CampaignPlan:
    inner = f'<run kind="function" program="programs.py:{which}" {run}/>{inner}<metric name="y"/>'
    return plan(folder, inner, "", name)


def table(p: CampaignPlan) -> list[dict[str, Any]]:
    with Journal(p.folder) as journal:
        return journal.table()


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("wall", "host", "cpu")} for row in rows]


# ------------------------------------------------------------------ what a file may say


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("fleet/vehicle/position", "0 0 1 m", "matches 2 elements"),
        ("fleet/vehicle[c]/position", "0 0 1 m", "matches nothing"),
        ("fleet/vehicle[a]/positon", "0 0 1 m", "'position'"),
        ("fleet/vessel[a]/position", "0 0 1 m", "no element <vessel"),
        ("fleet/vehicle[a]/mooring/length", "1 m", "add one"),
        ("time/step", "1 s", "above the maximum, 0.1 s"),
        ("time/step", "20", "no unit"),
        ("fleet/vehicle[a]/truth", "half", "not allowed"),
    ],
)
def test_a_path_or_value_that_cannot_be_is_refused_before_the_first_run(
    folder: Path, path: str, text: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        plan(folder, f'<run duration="1 s"/><factor name="x" values="1"><key path="{path}" text="{text}"/></factor>')
    assert (error.value.line, Path(error.value.file).name) == (1, "c.xml")


def test_a_path_reaches_keys_and_what_is_left_out_for_its_defaults(folder: Path) -> None:
    tree = BaseConfiguration(folder / "base.xml").tree()
    assign(tree, "fleet/vehicle[1]/position", "1 2 3 m")
    assign(tree, "fleet/vehicle[a]/waypoint/north", "7 m")
    assign(tree, "world/density", "1000 kg/m3")
    assign(tree, "shared/vehicles", "9")  # there is no <shared>: it has its defaults
    (folder / "new.xml").write_bytes(etree.tostring(tree))
    config = load(folder / "new.xml").config
    assert config.fleet.vehicle[1].position == (1.0, 2.0, 3.0) and config.fleet.vehicle[0].waypoint[0].north == 7.0
    assert config.world.density == 1000.0 and config.shared.vehicles == 9


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ('<factor name="x" values="1"/>', "has no effect: add a <key>"),
        ('<factor name="x"><key path="world/density"/></factor>', "`low` less than `high`"),
        ('<metric name="m" of="navigation_rsm"/>', "navigation_rms"),
        ('<metric name="m" of="programs.py:deepth"/>', "depth"),
        ('<metric name="m" of="absent.py:f"/>', "program 'absent.py' does not exist"),
        ('<success where="spede &gt; 1"/>', "unknown name 'spede'"),
        ('<success where="__import__(1)"/>', "only comparisons"),
        (
            '<design kind="sobol" points="100"/><factor name="x" low="1" high="2"><key path="world/density" text="{}e3 kg/m3"/></factor>',
            "power of two",
        ),
        ('<factor name="x" values="1"><key path="seed"/></factor>', "replicates"),
        ('<workers kind="cloud"/>', "not allowed"),
    ],
)
def test_a_mistake_in_the_file_gets_one_sentence(folder: Path, inner: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(folder, f'<run duration="1 s"/>{inner}')


# ------------------------------------------------------------------ designs


def test_designs_are_even_conditions_hold_and_a_replicate_has_the_same_luck_everywhere(folder: Path) -> None:
    factors = "".join(f'<factor name="{n}" low="0" high="8"/>' for n in "abc")
    latin = function(folder, "noisy", f'<design kind="latin" points="16"/>{factors}')
    values = np.array([[r.factors[n] for n in "abc"] for r in latin.rows])
    assert (
        np.sort((values * 2.0).astype(int), axis=0) == np.arange(16)[:, None]
    ).all()  # one in each stratum of each factor
    sobol = function(folder, "noisy", f'<design kind="sobol" points="16" replicates="2"/>{factors}', "d")
    assert len(sobol.rows) == 32
    assert (np.bincount([int(r.factors["a"]) for r in sobol.rows]) == 4).all()
    assert len({(r.replicate, r.seed) for r in sobol.rows}) == 2
    again = function(folder, "noisy", f'<design kind="sobol" points="32" replicates="2"/>{factors}', "d")
    assert {r.key for r in sobol.rows} <= {r.key for r in again.rows}  # it grows and nothing is lost
    kept = function(folder, "noisy", f'<design kind="grid"><keep where="a &lt; 5 and b == 0"/></design>{factors}', "e")
    assert [(r.point, r.factors["a"], r.factors["c"]) for r in kept.rows] == [
        (0, 0.0, 0.0),
        (1, 0.0, 4.0),
        (2, 0.0, 8.0),
        (9, 4.0, 0.0),
        (10, 4.0, 4.0),
        (11, 4.0, 8.0),
    ]
    single = function(folder, "noisy", f'<design kind="one-at-a-time"/>{factors}', "f")
    assert len(single.rows) == 7
    normal = designs.value_at_share(
        function(
            folder, "noisy", '<factor name="a" distribution="normal" mean="5" deviation="2"/>', "g"
        ).campaign.factor[0],
        0.975,
    )
    assert normal == pytest.approx(5.0 + 2.0 * 1.959964, abs=1e-5)


def test_sobol_indices_of_the_ishigami_function(folder: Path) -> None:
    """Published: S1 0.314, 0.442, 0; ST 0.558, 0.442, 0.244 (Saltelli et al. 2008)."""
    n = 8192
    factors = "".join(f'<factor name="{f}" low="{-np.pi!r}" high="{np.pi!r}"/>' for f in "abc")
    p = function(folder, "ishigami", f'<design kind="sensitivity" points="4"/>{factors}')
    object.__setattr__(p.campaign.design, "points", n)
    a, b, c = ((2.0 * designs.unit_samples(p.campaign) - 1.0) * np.pi).T
    y = np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)
    found = statistics.sensitivity(y, 3, n)
    assert found["first"] == pytest.approx([0.314, 0.442, 0.0], abs=0.01)
    assert found["total"] == pytest.approx([0.558, 0.442, 0.244], abs=0.01)
    low, high = found["total_interval"].T
    assert (low < [0.558, 0.442, 0.244]).all() and (high > [0.558, 0.442, 0.244]).all() and (high - low < 0.06).all()
    assert p.program is not None and p.program({"a": 1.0, "b": 2.0, "c": 3.0}, 0)["y"] == pytest.approx(
        np.sin(1.0) + 7.0 * np.sin(2.0) ** 2 + 8.1 * np.sin(1.0)
    )


# ------------------------------------------------------------------ running


def test_runs_that_end_in_every_way_are_one_row_each(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = function(folder, "ends", '<factor name="how" values="dies | raises | well | hangs"/>', run='timeout="1 s"')
    assert runner.run(p, workers=1, quiet=True) == {"ok": 1, "failed": 2, "timed out": 1}
    found = {row["how"]: row for row in table(p)}
    assert (
        found["dies"]["status"] == "failed" and found["dies"]["attempts"] == 3 and "code 3" in found["dies"]["reason"]
    )
    assert found["raises"]["attempts"] == 1 and found["raises"]["reason"] == "ValueError: of its own accord"
    assert found["well"]["y"] == 1.0
    assert 1.0 <= found["hangs"]["wall"] < 3.0, "within two seconds of its limit"
    assert sorted(calls.read_text().split()) == ["dies", "dies", "dies", "hangs", "raises", "well"]
    assert runner.run(p, workers=1, quiet=True).total() == 4
    assert len(calls.read_text().split()) == 6  # nothing of it again
    runner.run(p, workers=1, quiet=True, retried_statuses=("timed out",))
    assert len(calls.read_text().split()) == 7


def test_a_client_that_is_killed_leaves_what_was_finished(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = function(folder, "slow", '<design kind="grid"/><factor name="a" low="0" high="59" levels="60"/>')
    command = [*CLI, "campaign", "run", str(p.path), "--out", str(folder / "runs"), "--workers", "2", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        limit = time.monotonic() + 120.0
        done = 0
        while done < 10:
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.02)
            with contextlib.suppress(WaveSimError):  # it has only just begun
                done = len(table(p))
        os.kill(process.pid, signal.SIGKILL)
    kept = {row["key"] for row in table(p)}
    before = calls.read_text().split()
    assert 10 <= len(kept) < 60
    # the workers end with it: nobody writes any more
    assert runner.run(p, workers=2, quiet=True) == {"ok": 60}
    rows = table(p)
    assert sorted(r["a"] for r in rows) == list(range(60)) and len({r["key"] for r in rows}) == 60
    again = calls.read_text().split()[len(before) :]
    mine = {f"{r['a']:g}" for r in rows if r["key"] in kept}
    assert not mine & set(again), "what was finished was not run again"


def test_the_same_table_with_one_and_two_workers_and_each_row_alone(folder: Path) -> None:
    inner = (
        '<design kind="sobol" points="4" replicates="1"/><run duration="4 s" program="programs.py:fly"/>'
        '<factor name="current" low="0" high="0.5"><key path="world/current/north" text="{} m/s"/></factor>'
        '<factor name="deep" values="10 | 20"><key path="fleet/vehicle[a]/position" text="0 0 {} m"/></factor>'
        '<metric name="way" of="distance"/><metric name="end" of="programs.py:depth" unit="m"/><metric name="energy"/>'
    )
    p = plan(folder, inner)
    assert runner.run(p, workers=2, quiet=True) == {"ok": 4}
    two = table(p)
    assert all(r["way"] > 0.5 and r["energy"] == 5.0 and abs(r["end"] - r["deep"]) < 1.0 for r in two)
    for row in reversed(p.rows):  # in any order, in this process, from its own file
        done = execute_run(p, row)
        assert done["hash"] == two[row.number]["hash"] and done["metrics"]["way"] == two[row.number]["way"]
        assert load(folder_of(p, row) / "config.xml").config.seed == row.seed
    assert len({r["hash"] for r in two}) == 4


def test_dask_makes_the_same_table(folder: Path) -> None:
    """By a cluster of this machine, whose workers keep a process each. As a command: dask's threads outlive a cluster."""
    inner = '<workers kind="dask"/><factor name="a" values="1 | 2 | 3 | 4 | 5"/>'
    p = function(folder, "noisy", inner)
    run = wavesim("campaign", "run", p.path, "--out", folder / "runs", "--workers", "2", "--quiet")
    assert run.returncode == 0, run.stderr
    q = function(folder, "noisy", inner.replace("dask", "pool"), "d")
    assert runner.run(q, workers=2, quiet=True) == {"ok": 5}
    a, b = ([(r["a"], r["y"]) for r in table(x)] for x in (p, q))
    assert sorted(a) == sorted(b) and len(a) == 5


def test_clusters_get_the_campaigns_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """What dask's clusters would be made with: the clusters are stood in for, as none is here."""
    made: list[tuple[Any, ...]] = []

    class Stand:
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def __call__(self, *hosts: Any, **options: Any) -> Stand:
            made.append((self.kind, *hosts, options))
            return self

        def scale(self, count: int) -> None:
            made.append(("scale", count))

    stand = types.SimpleNamespace(SSHCluster=Stand("ssh"), SLURMCluster=Stand("slurm"), KubeCluster=Stand("kubernetes"))
    monkeypatch.setattr(clusters.importlib, "import_module", lambda name: stand)
    clusters.made(WorkersConfig(kind="ssh", hosts="a b", options="connect_options=None"), 5)
    clusters.made(WorkersConfig(kind="slurm", options="queue=short; memory=2GB; job_cpu=2"), 3)
    clusters.made(WorkersConfig(kind="kubernetes", options="quiet=True"), 4)
    assert made == [
        ("ssh", ["a", "a", "b"], {"worker_options": {"nthreads": 1, "n_workers": 3}, "connect_options": None}),
        ("slurm", {"cores": 1, "processes": 1, "queue": "short", "memory": "2GB", "job_cpu": 2}),
        ("scale", 3),
        ("kubernetes", {"quiet": True}),
        ("scale", 4),
    ]
    with pytest.raises(ConfigError, match='invalid option "memory 2GB": use NAME=VALUE'):
        clusters.made(WorkersConfig(kind="slurm", options="queue=short; memory 2GB"), 1)
    with pytest.raises(ConfigError, match="requires `hosts`"):
        clusters.check(WorkersConfig(kind="ssh"))


def test_a_cluster_that_is_not_installed_is_named() -> None:
    with pytest.raises(WaveSimError, match='<workers kind="slurm"> requires the dask_jobqueue package'):
        clusters.made(WorkersConfig(kind="slurm"), 1)


def test_who_changes_a_program_or_the_configuration_gets_new_runs(folder: Path) -> None:
    inner = '<factor name="a" values="1 | 2"/>'
    first = {r.key for r in function(folder, "noisy", inner).rows}
    assert {r.key for r in function(folder, "noisy", inner).rows} == first
    with (folder / "programs.py").open("a") as file:
        file.write("# changed\n")
    assert not {r.key for r in function(folder, "noisy", inner).rows} & first


def begun(calls: Path) -> set[int]:
    """Processes of the workers that have begun a run of the program `waits`."""
    return set(map(int, calls.read_text().split())) if calls.exists() else set()


def test_a_worker_that_is_killed_takes_no_row_along(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its run is done by the next one, also where that is killed before it is ready; every row is there once."""
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = function(folder, "waits", '<design kind="grid"/><factor name="a" low="0" high="9" levels="10"/>')
    pids: list[int] = []

    def kill() -> None:
        """The worker that has just begun a run, and again the one that has it next."""
        limit = time.monotonic() + 60.0
        while len(pids) < 2 and time.monotonic() < limit:
            time.sleep(0.01)
            new = sorted(begun(calls).difference(pids))
            if new:
                (folder / "murder").touch()
                os.kill(new[0], signal.SIGKILL)
                pids.append(new[0])
        (folder / "go").touch()

    thread = threading.Thread(target=kill)
    thread.start()
    assert runner.run(p, workers=1, quiet=True) == {"ok": 10}
    thread.join()
    rows = table(p)
    assert (
        len(pids) == 2
        and not (folder / "murder").exists()
        and sorted(r["a"] for r in rows) == list(range(10))
        and len({r["key"] for r in rows}) == 10
    )
    assert sum(r["attempts"] for r in rows) == 12, "two were begun again, nothing else"


def test_all_workers_killed_at_once_lose_no_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the machine had run out of memory: what each of them did is done again, and nothing else."""
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = function(folder, "waits", '<design kind="grid"/><factor name="a" low="0" high="5" levels="6"/>')
    killed: set[int] = set()

    def kill() -> None:
        limit = time.monotonic() + 60.0
        while len(killed) < 2 and time.monotonic() < limit:
            time.sleep(0.01)
            killed.update(begun(calls))
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        (folder / "go").touch()

    thread = threading.Thread(target=kill)
    thread.start()
    assert runner.run(p, workers=2, quiet=True) == {"ok": 6}
    thread.join()
    rows = table(p)
    assert len(killed) == 2 and sorted(r["a"] for r in rows) == list(range(6)) and len({r["key"] for r in rows}) == 6
    assert sorted(r["attempts"] for r in rows) == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_closed_terminal_leave_a_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    """Of what is finished, also if whoever is impatient asks twice."""
    calls = folder / "calls"
    monkeypatch.setenv("CAMPAIGN_CALLS", str(calls))
    p = function(folder, "slow", '<design kind="grid"/><factor name="a" low="0" high="999" levels="1000"/>')
    command = [*CLI, "campaign", "run", str(p.path), "--out", str(folder / "runs"), "--workers", "1", "--quiet"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        limit = time.monotonic() + 120.0
        while not calls.exists() or len(calls.read_text().split()) < 5:
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.02)
        process.send_signal(how)
        process.send_signal(how)
        said, error = process.communicate(timeout=60)
    assert process.returncode == 130 and error.strip() == "wavesim: interrupted", error
    lines = (p.folder / "table.csv").read_text().splitlines()
    assert 3 <= len(lines) - 1 == len(table(p)) < 1000, "four had ended; the result of the last can still be on its way"
    assert f"{len(lines) - 1} of 1000 runs are finished; run the same command again to execute the rest" in said


def test_what_a_program_does_wrong_is_the_reason_of_its_row(folder: Path) -> None:
    """It ends the process, reads the keyboard, returns what is no number: once each, and none of it hangs."""
    (folder / "mine.py").write_text(
        "import sys\ndef run(factors, seed):\n    how = factors['how']\n"
        "    return {'y': sys.exit('no more coffee') if how == 'exits' else input() if how == 'asks' else 'many', 1: 2}\n"
    )
    inner = '<run kind="function" program="mine.py:run" timeout="60 s"/><factor name="how" values="exits | asks | text"/><metric name="y"/>'
    p = plan(folder, inner, "")
    assert runner.run(p, workers=1, quiet=True) == {"failed": 3}
    found = {row["how"]: (row["reason"], row["attempts"]) for row in table(p)}
    assert found == {
        "exits": ("SystemExit: no more coffee", 1),
        "asks": ("EOFError: EOF when reading a line", 1),
        "text": ("WaveSimError: metric 'y' must be a number, got 'many'", 1),
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [("t.txt", "unknown table format, use the extension .csv or .parquet"), ("absent/t.parquet", "cannot write to")],
)
def test_a_table_that_cannot_be_written_is_one_line(folder: Path, name: str, said: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("duckdb")
    p = made(folder, "t", 0.0, n=2)
    asked = ["report", str(p.path), "--out", str(folder / "runs"), "--table", str(folder / name)]
    done = CliRunner().invoke(campaign, asked)
    assert isinstance(done.exception, WaveSimError) and said in str(done.exception)


@pytest.mark.parametrize(("mount", "said"), [("size=120k", "full"), ("ro", "Read-only file system")])
def test_a_disk_that_takes_nothing_more_gets_one_sentence(folder: Path, mount: str, said: str) -> None:
    p = function(folder, "noisy", '<design kind="grid" replicates="100"/><factor name="a" values="1"/>')
    out = folder / "small"
    out.mkdir()
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], capture_output=True).returncode:
        pytest.skip("needs a mount namespace of its own")
    command = shlex.join([*CLI, "campaign", "run", str(p.path), "--out", str(out), "--workers", "1", "--quiet"])
    status = shlex.join([*CLI, "campaign", "status", str(p.path), "--out", str(out), "--json"])
    script = f"mount -t tmpfs -o {mount} none {out} && {command}; echo $? >&2; {status}"
    done = subprocess.run([*inside, script], capture_output=True, text=True, timeout=120)
    *before, code = done.stderr.strip().splitlines()[:2] if mount == "ro" else done.stderr.strip().splitlines()
    assert code == "1" and len(before) == 1 and "cannot write to" in before[0] and said in before[0], done.stderr
    if mount != "ro":
        assert 0 < json.loads(done.stdout)["states"]["ok"] < 100, "what was finished is kept"


def test_a_folder_that_cannot_be_written_gets_one_sentence(folder: Path) -> None:
    (folder / "runs").write_text("a file")
    with pytest.raises(WaveSimError, match=r"cannot write to .*runs/c: "):
        runner.run(function(folder, "noisy", '<factor name="a" values="1"/>'), workers=1, quiet=True)


# ------------------------------------------------------------------ results


def made(folder: Path, name: str, shift: float, n: int = 40, spread: float = 1.0) -> CampaignPlan:
    """A campaign whose runs were not run: pairs correlated by 0.9."""
    p = function(folder, "noisy", f'<design kind="grid" replicates="{n}"/><factor name="a" values="1"/>', name)
    random, luck = np.random.default_rng(5), np.random.default_rng(len(name))
    common, own = random.normal(size=n), luck.normal(size=n)
    common, own = common - common.mean(), own - own.mean()
    with Journal(p.folder, new=True) as journal:
        for row in p.rows:
            y = 10.0 * (1.0 + shift) + spread * (0.9**0.5 * common[row.replicate] + 0.1**0.5 * own[row.replicate])
            outcome = {
                "status": "ok",
                "reason": "",
                "metrics": {"y": float(y)},
                "wall": 1.0,
                "simulated": 1.0,
                "hash": "x",
                "host": "<here>",
                "cpu": "",
            }
            journal.record_outcome(row, 1, outcome)
    return p


def test_compare_and_gate(folder: Path) -> None:
    made(folder, "before", 0.0)
    run, out = CliRunner(), str(folder / "runs")
    for name, shift, spread, code in (("same", 0.0, 1.0, 0), ("worse", 0.1, 1.0, 14), ("unclear", 0.05, 5.0, 15)):
        p = made(folder, name, shift, spread=spread)
        done = run.invoke(campaign, ["gate", str(p.path), f"{out}/before", "--out", out])
        assert getattr(done.exception, "exit_code", 0) == code, (name, done.output)
    done = run.invoke(campaign, ["compare", str(p.path), f"{out}/before", "--out", out, "--json"])
    y = next(d for d in json.loads(done.output) if d["name"] == "y")
    assert y["pairs"] == 40 and y["low"] < 0.5 < y["high"]
    a, b = (
        np.array([r["y"] for r in table(CampaignPlan(folder / f"{n}.xml", folder / "runs"))])
        for n in ("before", "worse")
    )
    unpaired = 1.96 * np.sqrt((a.var() + b.var()) / 40)
    _, low, high = statistics.mean_interval(b - a)
    assert (high - low) / 2 <= 0.4 * unpaired


def test_a_metric_of_which_neither_way_is_better_is_shown_and_not_judged(folder: Path) -> None:
    """A longer way is no worse one, unless the campaign says so."""
    key = '<factor name="a" values="1"><key path="world/current/north" text="{} m/s"/></factor><run duration="1 s"/>'
    p = plan(folder, f'{key}<metric name="way" of="distance"/><metric name="short" of="distance" better="lower"/>')
    rows = [
        [{"a": 1, "replicate": k, "status": "ok", "way": x + k, "short": x + k} for k in range(9)] for x in (10.0, 20.0)
    ]
    found = {d.name: d for d in statistics.compare(*rows, ["a"], p.metrics)}
    assert (found["way"].verdict, found["short"].verdict) == ("not judged", "worse")
    assert found["way"].change == 10.0 and np.isnan(found["way"].share_better)


def test_what_gave_no_value_and_why_is_said_at_the_end(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "def none(factors, seed):\n    return {'x': 1.0}\ndef three(factors, seed):\n    return 3\n"
    )
    for which, said, code in (
        ("none", "no run returned a value for y", 0),
        ("three", "must return a dictionary of metrics, got 3", 17),
    ):
        inner = f'<run kind="function" program="mine.py:{which}"/><workers count="1"/><metric name="y"/>'
        path = plan(folder, inner, "", which).path
        done = CliRunner().invoke(campaign, ["run", str(path), "--out", str(folder / "runs"), "--quiet"])
        assert getattr(done.exception, "exit_code", done.exit_code) == code and said in done.output, done.output


def test_the_report_needs_no_network_and_has_a_command_for_each_row(folder: Path) -> None:
    p = made(folder, "r", 0.0)
    csv = folder / "t.csv"
    done = CliRunner().invoke(campaign, ["report", str(p.path), "--out", str(folder / "runs"), "--table", str(csv)])
    assert done.exit_code == 0, done.output
    page = (p.folder / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2 and "http" not in page and 'src="/' not in page
    assert all(f"campaign repeat r.xml {k}</code>" in page for k in range(40))
    assert "&lt;here&gt;" in page and "<here>" not in page
    assert len(csv.read_text().splitlines()) == 41


def test_nothing_to_do_draws_nothing(folder: Path) -> None:
    """It cost 6 s of processor time: the whole report once more, and libraries of statistics for a list of values."""
    p = function(folder, "noisy", '<factor name="a" values="1 | 2"/>')
    report, asked = p.folder / "report.html", ["campaign", "run", str(p.path), "--out", str(folder / "runs"), "--quiet"]
    for drawn in (True, False):
        done = wavesim(*asked, env=os.environ | {"PYTHONPROFILEIMPORTTIME": "1"})
        assert done.returncode == 0 and "2 of 2 runs: 2 ok" in done.stdout
        assert ("matplotlib" in done.stderr, "scipy.stats" in done.stderr) == (drawn, drawn)
    first = report.read_text()
    report.write_text(first[:100])  # as if a client had been killed while it wrote
    assert CliRunner().invoke(campaign, asked[1:]).exit_code == 0
    assert report.read_text() == first


def test_the_table_as_parquet_with_units(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    from wavesim_studies.campaign.table import write

    rows = [{"row": k, "x": 0.5 * k, "name": "a'b", "won": k > 1, "none": None} for k in range(3)]
    write(rows, folder / "t.parquet", {"x": "m's"})
    with duckdb.connect() as base:
        assert base.execute(f"select * from '{folder}/t.parquet'").fetchall() == [tuple(r.values()) for r in rows]
        metadata = base.execute(
            f"select value from parquet_kv_metadata('{folder}/t.parquet') where key = 'units'"
        ).fetchone()
    assert json.loads(metadata[0]) == {"x": "m's"}


def test_the_metrics_of_the_straight_line_error(tmp_path: Path) -> None:
    """Two equal exchanges in water that is 10 m/s slower than assumed."""
    (tmp_path / "base.xml").write_text("<wavesim/>")
    result = RunResult(load(tmp_path / "base.xml"), 15.0, {"a": 0, "b": 1}, {}, *exchanges(1490.0))
    error = 1515.0 * (1500.0 / 1490.0 - 1.0)
    assert straight_line_bias(result, "a") == pytest.approx(error, abs=1e-6)
    assert straight_line_max(result, "a") == pytest.approx(error, abs=1e-6)
    assert np.isnan(straight_line_bias(result, "b")) and np.isnan(straight_line_max(result, "b")), "it asked nothing"
