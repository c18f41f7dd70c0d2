"""Long tests of campaigns: a thousand runs with one and two workers, killed workers and client, resuming ten thousand,
the gate, runs that crash and hang, full disks.

python -m benchmarks.campaign [runs] [cost] [kill] [resume] [gate] [harm] [dask]
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics as middle
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import WaveSimError
from wavesim_server import Lab, compiling
from wavesim_studies.campaign import runner, statistics
from wavesim_studies.campaign.journal import Journal
from wavesim_studies.campaign.plan import CampaignPlan
from wavesim_studies.campaign.run import TRACK_EVERY, execute_run, folder_of
from wavesim_world.config import load

BASE = """<wavesim><time step="20 ms" duration="60 s"/><world><current north="0.1 m/s"/></world><fleet>
<vehicle name="a" model="lauv" position="0 0 10 m" speed="1.2 m/s"><waypoint north="70 m" east="0 m" depth="10 m"/></vehicle></fleet></wavesim>"""
FACTORS = """<factor name="current" low="0" high="0.5"><key path="world/current/north" text="{} m/s"/></factor>
<factor name="speed" low="0.8" high="1.5"><key path="fleet/vehicle[a]/speed" text="{} m/s"/></factor>
<factor name="density" low="1000" high="1030"><key path="world/density" text="{} kg/m3"/></factor>
<factor name="heading" low="-90" high="90"><key path="fleet/vehicle[a]/attitude" text="0 0 {} deg"/></factor>
<metric name="way" of="distance"/><metric name="off" of="cross_track_rms"/>"""
TIMES = ("wall", "host", "cpu")
#: a program whose runs end in every way; "deaf" does not heed a request to end, "busy" never comes back from one call
BAD = """import os, signal, time
def go(factors, seed):
    how = factors["how"]
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if how == "busy":
        sum(k for k in range(10**12))
    while how != "well":
        time.sleep(1.0)
    return {"y": 1.0}
"""


def descendants(pid: int, command: bytes) -> list[int]:
    """Return a process and its descendants whose command contains a word."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # it has ended
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, look = [], [pid]
    while look:
        new = parents.get(look.pop(), [])
        look += new
        found += [k for k in new if command in Path(f"/proc/{k}/cmdline").read_bytes()]
    return found


def plan(folder: Path, name: str, points: int = 1024, more: str = "") -> CampaignPlan:
    (folder / "base.xml").write_text(BASE)
    text = f'<campaign name="{name}" config="base.xml" seed="3"><design kind="sobol" points="{points}"/>{FACTORS}{more}</campaign>'
    (folder / f"{name}.xml").write_text(text)
    return CampaignPlan(folder / f"{name}.xml", folder / "runs")


def table(p: CampaignPlan, times: bool = False) -> list[dict[str, Any]]:
    with Journal(p.folder) as journal:
        return [{k: v for k, v in row.items() if times or k not in TIMES} for row in journal.table()]


def runs(folder: Path) -> None:
    """Compare the tables of one and two workers, measure the cost of a run beyond its simulation, and repeat rows from
    their own files.
    """
    found = {}
    for workers in (1, 2):
        p = plan(folder, "many")
        start = time.perf_counter()
        runner.run(p, workers=workers, quiet=True)
        wall = time.perf_counter() - start
        found[workers] = table(p)
        if workers == 1:
            shutil.rmtree(p.folder)
        print(
            f"{len(p.rows)} runs of 60 s, {workers} workers: {wall:.1f} s, {1e3 * wall * workers / len(p.rows):.1f} ms a run and worker"
        )
    print(f"  the same table: {found[1] == found[2]}")
    pure, whole, same = [], [], 0
    for row in p.rows[::20]:
        start = time.perf_counter()
        same += execute_run(p, row)["hash"] == found[2][row.number]["hash"]
        whole.append(time.perf_counter() - start)
        lab = Lab(load(folder_of(p, row) / "config.xml"))
        start = time.perf_counter()
        lab.run(60.0, TRACK_EVERY)
        pure.append(time.perf_counter() - start)
    print(
        f"  again from their own files: {same} of {len(pure)} with the same hash; simulation alone {1e3 * middle.median(pure):.1f} ms, "
        f"a run as a whole {1e3 * middle.median(whole):.1f} ms"
    )


def cost(folder: Path) -> None:
    """Measure the cost of a run beyond its simulation: runs of one tick by one worker, with file, engine, table of
    states, metrics and journal.
    """
    p = plan(folder, "cheap", more='<run duration="20 ms"/>')
    q = plan(folder, "one", 1, more='<run duration="20 ms"/>')  # what starting costs

    def spent(which: CampaignPlan) -> tuple[float, float]:
        before, start = os.times(), time.perf_counter()
        assert set(runner.run(which, workers=1, quiet=True)) == {"ok"}
        after = os.times()
        return sum(after[:4]) - sum(before[:4]), time.perf_counter() - start

    first, many = spent(q), spent(p)
    cpu, wall = (1e3 * (b - a) / (len(p.rows) - 1) for a, b in zip(first, many, strict=True))
    print(
        f"  beyond the simulation: {cpu:.1f} ms of processor time a run, client and worker; {wall:.1f} ms by the clock"
    )


def kill(folder: Path) -> None:
    """Kill a worker every 20 runs and the client after 300, then start the campaign again."""
    p = plan(folder, "killed")
    command = [
        sys.executable,
        "-m",
        "wavesim_sdk",
        "campaign",
        "run",
        str(p.path),
        "--out",
        str(folder / "runs"),
        "--workers",
        "2",
        "--quiet",
    ]
    client_at, killed, ends = 300, 0, 0
    rows: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    while ends < 2:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        next_ = len(rows) + 20
        while process.poll() is None:
            time.sleep(0.05)
            try:
                rows = table(p)
            except Exception:  # not there yet
                continue
            if len(rows) >= next_:
                next_ += 20
                mine = descendants(process.pid, b"campaign.worker")
                if mine:
                    os.kill(mine[killed % len(mine)], signal.SIGKILL)
                    killed += 1
            if ends == 0 and len(rows) >= client_at:
                process.kill()
                before = {r["key"]: r for r in table(p, times=True)}
        process.wait()
        ends += 1
    after = {r["key"]: r for r in table(p, times=True)}
    calm = plan(folder, "killed", more="")
    print(
        f"{killed} workers killed, the client after {len(before)} rows: {len(after)} rows, {len({r['row'] for r in after.values()})} different, "
        f"states {dict(Counter(r['status'] for r in after.values()))}, attempts {dict(Counter(r['attempts'] for r in after.values()))}; "
        f"none of those run again (times and all): {all(after[k] == v for k, v in before.items() if v['status'] == 'ok')}; all wanted: {set(after) == {r.key for r in calm.rows}}"
    )


def resume(folder: Path) -> None:
    """Measure the time to recognise that ten thousand runs are finished."""
    p = plan(folder, "long", 16384)
    with Journal(p.folder, new=True) as journal, journal._base:
        rows = [(r.key, r.number, r.point, r.replicate, r.seed, "{}", 1, "ok", '{"metrics": {}}') for r in p.rows]
        journal._base.executemany("insert into runs values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    start = time.perf_counter()
    p = plan(folder, "long", 16384)
    states = runner.run(p, quiet=True)
    print(f"{sum(states.values())} finished runs: resumed in {time.perf_counter() - start:.2f} s")


def gate(folder: Path) -> None:
    """Count how often the gate passes equal campaigns, and fails one that is 10 % worse: 100 pairs, correlated by 0.9."""
    from wavesim_studies.campaign.metrics import CampaignMetric

    random, verdicts = np.random.default_rng(1), {"equal": Counter[str](), "10 % worse": Counter[str]()}
    metric, narrower = [CampaignMetric("y", "", "lower", 0.05, "", None, True)], []
    for _ in range(100):
        for name, shift in (("equal", 1.0), ("10 % worse", 1.1)):
            common = random.normal(size=100)
            own = random.normal(size=(2, 100))
            y = 10.0 + 1.5 * (0.9**0.5 * common + 0.1**0.5 * own)
            y[1] += 10.0 * (shift - 1.0)
            both = [[{"replicate": k, "status": "ok", "y": v} for k, v in enumerate(part.tolist())] for part in y]
            found = statistics.compare(both[0], both[1], [], metric)[0]
            verdicts[name][found.verdict] += 1
            narrower.append((found.high - found.low) / (2 * 1.96 * np.sqrt(y.var(axis=1).sum() / 100)))
    print(
        f"gate: { ({k: dict(v) for k, v in verdicts.items()}) }; paired interval {np.median(narrower):.2f} of the unpaired"
    )


def harm(folder: Path) -> None:
    """Check the table and the last line for runs that crash or hang, a read-only folder, and a full disk."""
    (folder / "bad.py").write_text(BAD)
    ways, limit = ("crash", "hang", "deaf", "busy", "well"), 3.0
    text = f"""<campaign name="bad" seed="1"><design kind="grid"/><run kind="function" program="bad.py:go" timeout="{limit:g} s"/>
<factor name="how" values="{" | ".join(ways)}"/><metric name="y"/></campaign>"""
    (folder / "bad.xml").write_text(text)
    p = CampaignPlan(folder / "bad.xml", folder / "runs")
    runner.run(p, workers=2, quiet=True)
    with Journal(p.folder) as journal:
        for row in journal.table():
            late = f", {row['wall'] - limit:.2f} s after its limit" if row["status"] == "timed out" else ""
            print(f"  {row['how']}: {row['status']} after {row['attempts']} attempts{late}: {row['reason']}")
    many = (
        text.replace('name="bad"', 'name="many"')
        .replace("</campaign>", "")
        .replace('kind="grid"', 'kind="grid" replicates="200"')
    )
    (folder / "many.xml").write_text(many.replace(" | ".join(ways), "well") + "</campaign>")
    run = 'campaign run "$1" --out "$2" --workers 1 --quiet'
    for what, mount in (("a disk of 200 kB", "-o size=200k"), ("a disk that cannot be written", "-o ro")):
        out = folder / "small"
        out.mkdir(exist_ok=True)
        script = f'mount -t tmpfs {mount} none "$2" || exit 99; "$0" -m wavesim_sdk {run}; echo "exit code $?"; "$0" -m wavesim_sdk campaign status "$1" --out "$2"'
        done = subprocess.run(
            ["unshare", "-Urm", "sh", "-c", script, sys.executable, str(folder / "many.xml"), str(out)],
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"  {what}: {done.stderr.strip()!r}, {done.stdout.strip()!r}")


def dask(folder: Path) -> None:
    """Compare the table of dask workers, one of which is killed during the run, with that of the pool."""
    more = '<workers kind="{}" count="2"/>'
    p = plan(folder, "pool", 256, more.format("pool"))
    runner.run(p, quiet=True)
    q = plan(folder, "dask", 256, more.format("dask"))
    ended = threading.Event()

    def kill_one() -> None:
        while not ended.wait(0.1):
            try:
                done = len(table(q))
            except WaveSimError:  # not there yet
                continue
            if done > 60:
                for pid in descendants(os.getpid(), b"spawn_main")[:1]:
                    os.kill(pid, signal.SIGKILL)
                return

    thread = threading.Thread(target=kill_one)
    thread.start()
    start = time.perf_counter()
    states = runner.run(q, quiet=True)
    ended.set()
    thread.join()
    a, b = ([{k: v for k, v in r.items() if k not in ("key", "attempts")} for r in table(x)] for x in (p, q))
    print(
        f"dask: {dict(states)} in {time.perf_counter() - start:.1f} s, one worker killed; the same table as the pool's: {a == b}"
    )


def main() -> None:
    compiling.ensure_compiled(print)
    parts = {f.__name__: f for f in (runs, cost, kill, resume, gate, harm, dask)}
    for name in sys.argv[1:] or parts:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](Path(folder))


if __name__ == "__main__":
    main()
