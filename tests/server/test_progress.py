"""The progress bar of a trial."""

from __future__ import annotations

import warnings

import pytest

from wavesim_sdk.tables import RunState
from wavesim_server.trial import Trial, progress_bar


class Clock:
    """A run that was looked at so many times."""

    def __init__(self, *times_ns: int) -> None:
        self.left = list(times_ns)

    def clock(self) -> dict[str, float]:
        now = self.left.pop(0)
        state = RunState.RUNNING if self.left else RunState.ENDED
        return {"time_ns": now, "realtime_factor": 12.0, "state": state}


class Server:
    def check(self) -> None:
        return None


@pytest.mark.parametrize(
    ("duration", "times", "end"),
    [
        (
            1.978,
            (248159309, 347934955, 359453189, 904119802, 968318888, 1978000000),
            "2.0/2.0 s",
        ),  # whose steps sum up to more
        (0.3, (100000000, 304000000), "0.3/0.3 s"),  # the last tick lies beyond
        (900.0, (450000000000, 900000000000), "900/900 s"),
    ],
)
def test_a_short_run_is_reported_like_a_long_one(
    duration: float,
    times: tuple[int, ...],
    end: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seconds of so many, and how fast; no warning of the bar's, no seconds per second."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    trial = Trial.__new__(Trial)
    trial.name, trial.duration, trial.quiet, trial.processes = "short", duration, False, {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trial._follow_run(Server(), Clock(*times))  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert f"{end} simulated, 12.0 x real time" in said and "short: 100%" in said
    assert "s/s" not in said and "Warning" not in said


def test_a_quiet_trial_draws_none(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("short", 1.0, True) as bar:
        bar.update(0)
    assert capsys.readouterr().err == ""
