"""Programs that share a process behave as if each had its own."""

from __future__ import annotations

import gc
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.in_process.conftest import output
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.log import read
from wavesim_sdk.tables import STATE
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_server.resources import remove_leftovers
from wavesim_server.trial import ParticipantFailed

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]
Make = Callable[..., InProcessTrial]

DRIVE = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer({"propeller": 8.0})
print("end of", a.vehicle)
"""


def test_programs_drive_their_bodies_to_the_end(make_trial: Make) -> None:
    trial = make_trial(seconds=20.0, one=DRIVE, two=DRIVE)
    table = trial.run(plots=False)
    trial.check()
    assert output(trial, "one") == "end of one\n" and output(trial, "two") == "end of two\n"
    track = read(trial.log).get("/state/one", STATE).records["p_WB_W"]
    assert np.linalg.norm(track[-1] - track[0]) > 10.0
    assert "content hash" in table
    assert remove_leftovers(trial.name) == []


@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        ("raise ValueError('no such course')", 1, "ValueError: no such course"),
        ("sys.exit(7)", 7, ""),
        ("sys.exit('out of battery')", 1, "out of battery"),
        ("import nothing_of_this_name", 1, "ModuleNotFoundError"),
    ],
)
def test_a_program_that_fails_does_not_touch_another(make_trial: Make, ending: str, code: int, words: str) -> None:
    fails = f"""
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        if step.time > 0.55:
            {ending}
"""
    trial = make_trial(bad=fails, good=DRIVE)
    trial.keep_going = True
    trial.run(plots=False)
    assert trial.lost == {"program-bad": code}
    assert words in output(trial, "bad")
    assert output(trial, "good") == "end of good\n"
    with pytest.raises(WaveSimError, match=f"program-bad ended early \\(code {code}\\)"):
        trial.check()


def test_a_program_that_fails_ends_the_trial_at_the_same_tick_in_each_run(make_trial: Make) -> None:
    fails = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        if step.time > 0.55:
            broker.answer({"propellor": 1.0})
"""
    trial, hashes = make_trial(bad=fails, good=DRIVE), set()
    for _ in range(2):
        again = InProcessTrial(trial.loaded, trial.folder.parent, quiet=True)
        again.run(plots=False)
        assert again.lost == {"program-bad": 1}, "the other one was interrupted"
        said = r"program-bad exited with code 1 after 0\.600 s and ended the trial: bad\.py:\d+: broker\.answer.*did you mean 'propeller'"
        with pytest.raises(ParticipantFailed, match=f"{said}.*; all output: .*program-bad.txt; --keep-going"):
            again.check()
        log = read(again.log)
        assert log.complete and log.end_ns == 600_000_000
        hashes.add(log.content_hash)
    assert len(hashes) == 1


def test_the_traceback_shows_the_line_of_the_program(make_trial: Make) -> None:
    trial = make_trial(bad="with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:\n    course = 1 / 0\n")
    with pytest.raises(
        ParticipantFailed,
        match=r"program-bad exited with code 1 before the trial started: bad.py:\d+: course = 1 / 0: ZeroDivisionError",
    ):
        trial.run(plots=False)
    assert "course = 1 / 0" in output(trial, "bad")


def test_a_program_that_hangs_is_named_with_its_line(make_trial: Make) -> None:
    hangs = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        while step.time > 0.95:
            pass
"""
    trial = make_trial(limit=1.0, bad=hangs, good=DRIVE)
    before = threading.active_count()
    with pytest.raises(
        ParticipantFailed, match=r"program-bad did not answer its step within 1 s .* at 1\.000 s.*bad\.py:\d+"
    ):
        trial.run(plots=False)
    assert threading.active_count() == before, "the loop was ended"
    assert remove_leftovers(trial.name) == []


def test_modules_of_the_folder_and_of_the_library_are_not_shared(make_trial: Make) -> None:
    counts = """
import helper, random
random.seed(len(a.vehicle))
helper.calls.append(a.vehicle)
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        random.random()
        import late_helper
        late_helper.calls.append(a.vehicle)
print(helper.calls, set(late_helper.calls), random.random(), sys.argv[-3], __name__)
"""
    trial = make_trial(one=counts, three=counts)
    for name in ("helper", "late_helper"):
        (trial.loaded.path.parent / f"{name}.py").write_text("calls = []\n")
    before = dict(sys.modules), list(sys.path), list(sys.argv), sys.stdout
    trial.run(plots=False)
    import random

    for name in ("one", "three"):
        own = random.Random(len(name))
        numbers = [own.random() for _ in range(30)]
        words = output(trial, name)
        assert words.startswith(f"['{name}'] {{'{name}'}} ") and words.split()[-1] == "__main__"
        assert any(f" {v!r} " in words for v in numbers)
    assert (sys.path, sys.argv, sys.stdout) == before[1:] and "helper" not in sys.modules
    assert sys.modules["__main__"] is before[0]["__main__"]


def test_each_program_has_the_global_generator_of_numpy_for_itself(make_trial: Make) -> None:
    draws = """
import numpy as np
np.random.seed(5)
drawn = []
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        drawn.append(np.random.normal())
print(drawn)
"""
    state = np.random.get_state()
    trial = make_trial(one=draws, two=draws)
    trial.run(plots=False)
    assert output(trial, "one") == output(trial, "two")
    drawn = json.loads(output(trial, "one"))
    assert len(drawn) > 10 and drawn == np.random.RandomState(5).normal(size=len(drawn)).tolist()
    assert np.array_equal(np.random.get_state()[1], state[1])  # type: ignore[index]


def test_arguments_output_and_signals_of_a_program(make_trial: Make) -> None:
    source = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: None)  # has no effect, and is no error
print(a.vehicle, a.port, os.path.basename(os.getcwd()))
print("careful", file=sys.stderr)
""" + DRIVE.strip()
    trial = make_trial(one=source)
    trial.run(plots=False)
    folder = trial.loaded.path.parent.name
    assert output(trial, "one") == f"one 9750 {folder}\ncareful\nend of one\n"


def test_threads_and_processes_of_the_trial_end_with_it(make_trial: Make) -> None:
    """The programs leave nothing behind, however often trials run in one process."""
    before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        make_trial(one=DRIVE).run(plots=False)
    assert threading.active_count() == before[0]
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before[1] + 2


def test_a_body_whose_program_is_missing_names_the_file(make_trial: Make) -> None:
    with pytest.raises(WaveSimError, match=r"absent\.py"):
        make_trial(one="absent.py").run(plots=False)
