"""Ctrl-C, the debugger, and steps by hand."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI
from wavesim_sdk.errors import WaveSimError
from wavesim_server import Trial
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_server.resources import remove_leftovers

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]
Make = Callable[..., InProcessTrial]

FAILS_AT_ONE = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        course = {"wanted": 1.5}
        if step.time > 0.95:
            course["rudder"] / 2
"""
BUSY = """
import time
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        if step.time > 0.45:
            print("busy", flush=True)
            while True:
                pass
"""


def command(trial: InProcessTrial, *more: str) -> list[str]:
    out = str(trial.folder.parent)
    return [*CLI, "trial", str(trial.loaded.path), "--in-process", "--no-plots", "--out", out, *more]


def test_the_debugger_stops_in_the_program_that_raised(make_trial: Make) -> None:
    trial = make_trial(one=FAILS_AT_ONE)
    asked = "p round(step.time, 3)\np sorted(course)\np broker.name\nq\n"
    done = subprocess.run(
        command(trial, "--pdb"), input=asked, capture_output=True, text=True, timeout=100, check=False
    )
    said = done.stdout
    assert "program-one raised KeyError at 1.000 s; the simulation waits" in said, said + done.stderr
    assert 'course["rudder"] / 2' in said
    assert "(Pdb) 1.0\n(Pdb) ['wanted']\n(Pdb) 'one'\n" in said
    assert done.returncode == 10 and "program-one exited with code 1 after 1.000 s and ended the trial" in done.stderr


def test_the_debugger_needs_the_program_in_this_process(make_trial: Make) -> None:
    arguments = [a for a in command(make_trial(one=FAILS_AT_ONE), "--pdb") if a != "--in-process"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "--pdb needs --in-process" in done.stderr


def test_ctrl_c_stops_a_busy_program_at_once(make_trial: Make) -> None:
    trial = make_trial(seconds=600.0, one=BUSY)
    with subprocess.Popen(command(trial, "--quiet"), stderr=subprocess.PIPE, text=True) as process:
        said = trial.folder / "program-one.txt"
        while process.poll() is None and not (said.exists() and "busy" in said.read_text()):
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in error, error
    assert remove_leftovers(trial.name) == []


def test_coverage_sees_the_lines_of_a_program(make_trial: Make, tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    trial = make_trial(one=FAILS_AT_ONE.replace("> 0.95", "> 99.0"))
    data = tmp_path / "coverage"
    run = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        f"--data-file={data}",
        f"--include={tmp_path}/*.py",
        "-m",
        "wavesim_sdk",
    ]
    subprocess.run([*run, *command(trial)[len(CLI) :]], check=True, capture_output=True, timeout=100)
    report = [sys.executable, "-m", "coverage", "report", f"--data-file={data}", "--show-missing"]
    said = subprocess.run(report, check=True, capture_output=True, text=True, timeout=60).stdout
    row = next(line for line in said.splitlines() if line.endswith("one.py") or "one.py" in line)
    assert row.split()[2] == "1", said  # only the line that fails


def test_a_trial_in_a_notebook(make_trial: Make) -> None:
    source = """
total = 0
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        total += 1
        broker.answer({"propeller": 8.0})
print("done")
"""
    path = make_trial(seconds=3.0, one=source).loaded.path
    with Trial(path) as trial:
        trial.run(1.0)
        assert trial.time == 1.0 and not trial.has_ended
        assert trial.states()["one"]["speed"] > 0.2 and trial.program("one")["total"] == 11
        with pytest.raises(KeyError, match="did you mean 'one'"):
            trial.program("oone")
        trial.run()
        assert trial.has_ended and trial.output("one") == "done\n"
    assert "content hash" in trial.table() and trial.log.exists()
    bridge = path.read_text().replace('run="one.py" options=""', 'bridge="mavlink"')
    path.write_text(bridge)
    with pytest.raises(WaveSimError, match=r"cannot run in this process: one \(bridge mavlink\)"):
        Trial(path)


def test_time_advances_by_hand_with_live_objects(make_trial: Make) -> None:
    source = """
total = 0
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        total += 1
        broker.answer({"propeller": 8.0})
"""
    trial = make_trial(seconds=3.0, one=source)
    with trial.opened():
        (program,) = trial.host.programs
        trial.run_until(1.004)  # in a step of the program, and not on a tick
        assert trial.server.simulation.time_ns == 1_000_000_000
        assert vars(program.context.main)["total"] == 11
        trial.run_until(2.0)
        assert trial.server.simulation.time_ns == 2_000_000_000
        assert trial.server.simulation.state()["v_WB_B"][0, 0] > 0.2
        trial.run_to_end()
    assert vars(program.context.main)["total"] == 30
