"""Some rows of `python -m benchmarks.reliability matrix`: reports of a trial when one of its processes is killed or
stopped.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from benchmarks.matrix import Stage, row

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("kind", "what"),
    [("program", signal.SIGKILL), ("emulator", signal.SIGSTOP), ("front", signal.SIGSTOP)],
)
def test_a_trial_of_which_something_is_lost_is_no_success(kind: str, what: signal.Signals) -> None:
    """And one of which nothing is lost, although its front stood still for longer than anybody may be silent, is one."""
    found = row(kind, "run", what)
    assert found.green, (found, found.wanted)


def test_a_trial_without_room_for_its_log_is_no_success(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "run.mcap").symlink_to("/dev/full")
    stage = Stage(tmp_path, name)
    (tmp_path / "go").touch()
    try:
        _, said = stage.trial.communicate(timeout=100)
    finally:
        stage.close()
    last = said.splitlines()[-1]
    assert stage.trial.returncode == 12 and "the log stopped: No space left on device" in last, said
