"""A fault of each kind of participant ends with one message, and does not touch the others."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.endurance import run_trials

from tests.conftest import CLI
from tests.in_process.conftest import output
from wavesim_emulators.water import CtdEmulator
from wavesim_sdk.log import read
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_server.logbook.mcap_file import McapFile
from wavesim_server.resources import remove_leftovers
from wavesim_server.trial import ParticipantFailed, TrialDataLost

pytestmark = [pytest.mark.system, pytest.mark.timeout(200)]
Make = Callable[..., InProcessTrial]

DRIVE = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer({"propeller": 8.0})
print("end of", a.vehicle)
"""
LEAKS = """
import threading
def forever():
    while True:
        pass
threading.Thread(target=forever, name="busy").start()
"""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_a_program_leaves_behind_ends_with_the_trial(make_trial: Make) -> None:
    before = threading.active_count()
    trial = make_trial(leaky=LEAKS + DRIVE, good=DRIVE)
    trial.run(plots=False)
    trial.check()
    assert output(trial, "leaky") == "end of leaky\n" and output(trial, "good") == "end of good\n"
    assert threading.active_count() == before
    assert not any(thread.name == "busy" for thread in threading.enumerate())


def test_a_thread_that_cannot_be_ended_is_named_and_does_not_keep_the_process(make_trial: Make) -> None:
    stubborn = LEAKS.replace("    while True:\n        pass", "    threading.Event().wait()")
    trial = make_trial(leaky=stubborn + DRIVE)
    arguments = [*CLI, "trial", str(trial.loaded.path), "--in-process", "--no-plots", "--out", str(trial.folder.parent)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0 and "did not end: thread busy" in done.stdout + done.stderr, done


def test_an_emulator_that_raises_is_named_and_ends_the_trial(make_trial: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    real = CtdEmulator.measure

    def fails(self: Any, batch: Any, *more: Any) -> Any:
        if batch.time_ns > 500_000_000:
            raise ValueError("no salt")
        return real(self, batch, *more)

    monkeypatch.setattr(CtdEmulator, "measure", fails)
    trial = make_trial(one=DRIVE)
    with pytest.raises(
        ParticipantFailed, match=r"emulator-ctd failed at 0\.6\d+ s .*test_faults\.py:\d+.*ValueError: no salt"
    ):
        trial.run(plots=False)
    log = read(trial.log)
    assert log.complete and log.end_ns >= 500_000_000, "the log until then is kept"
    assert remove_leftovers(trial.name) == []


def test_a_full_disk_stops_the_log_and_not_the_trial(make_trial: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    real, written = McapFile._write, 0

    def write(self: McapFile, data: bytes | bytearray) -> None:
        nonlocal written
        written += len(data)
        if written > 20_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(self, data)

    monkeypatch.setattr(McapFile, "_write", write)
    trial = make_trial(seconds=20.0, one=DRIVE, two=DRIVE)
    trial.run(plots=False)
    assert output(trial, "one") == "end of one\n" and output(trial, "two") == "end of two\n"
    with pytest.raises(TrialDataLost, match="the log stopped: No space left on device"):
        trial.check()


def test_an_observer_that_fails_or_never_reads_disturbs_nobody(make_trial: Make) -> None:
    """The commands of the pilot have the same effects as without the observer."""
    watches = """
from wavesim_sdk.observer import Observer
with Observer("referee", SERVER, rate=20.0) as referee, Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer({"propeller": 8.0})
        if step.time > 0.95 and FAILS:
            referee.poll(0.0)[0].bodies["no such column"]
"""
    grants = '<grant to="referee" role="observer" rights="push" others="yes"/>'
    logs = []
    for fails in ("True", "False"):
        trial = make_trial(grants=grants, good=DRIVE, bad=watches.replace("FAILS", fails))
        trial.keep_going = True
        trial.run(plots=False)
        assert trial.lost == ({"program-bad": 1} if fails == "True" else {})
        assert output(trial, "good") == "end of good\n"
        logs.append(read(trial.log).series["/state/good"].records.tobytes())
    assert logs[0] == logs[1]


def test_invalid_commands_are_refused_and_the_trial_continues(make_trial: Make) -> None:
    hashes = set()
    for invalid in (
        [],
        [{"verb": "no such"}, {"verb": "fault", "body": "absent", "part": "ctd"}, {"verb": "push", "body": 5}],
    ):
        trial = make_trial(one=DRIVE)
        with trial.opened():
            trial.run_until(1.0)
            front = trial.server.front
            for command in invalid:
                front.command(command, trial.server.now)
            assert [reply.ok for _, reply in front.replies] == [False] * len(invalid)
            front.replies.clear()
            trial.run_to_end()
        hashes.add(read(trial.log).content_hash)
    assert len(hashes) == 1


def test_many_trials_in_one_process_need_no_more_of_it(make_trial: Make) -> None:
    """The long form is `python -m benchmarks.endurance`: a thousand trials."""
    trial = make_trial(seconds=0.5, one=DRIVE, two=DRIVE)
    found = [resources for _, resources in run_trials(trial.loaded, 30, 10, 0.5, trial.folder.parent)]
    for earlier, later in itertools.pairwise(found):
        assert (later.files, later.threads, later.shared) == (earlier.files, earlier.threads, 0)
        assert later.mappings <= earlier.mappings + 5, "each trial left eight semaphores"
        assert later.objects <= earlier.objects + 100, "each trial left the classes of a module"
    assert found[-1].resident_mb < found[0].resident_mb + 20.0
