"""Steps of a long command: progress lines on standard error, and the time of each step."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

from wavesim_sdk.terminal_text import echo

SHOWN_S = 1.0  #: least time in s between two progress lines of a step


class StepTime(NamedTuple):
    """Name of a finished step and its duration in s."""

    name: str
    seconds: float


class StepLog:
    """Writes one line when a step begins, as it advances and when it ends.

    With ``as_json``, each line is a JSON object with ``step``, ``steps`` and ``name``, and with ``fraction`` and ``text``
    while the step runs or with ``seconds`` at its end.
    """

    def __init__(self, steps: int, as_json: bool = False) -> None:
        self._steps, self._json = steps, as_json
        self._number, self._name, self._shown = 0, "", 0.0
        self.times: list[StepTime] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time a step."""
        self._number, self._name = self._number + 1, name
        begin = time.perf_counter()
        self._say(f"{name} ...", {"fraction": 0.0, "text": ""})
        yield
        seconds = time.perf_counter() - begin
        self.times.append(StepTime(name, seconds))
        self._say(f"{name}: {seconds:.1f} s", {"seconds": round(seconds, 3)})

    def progress(self, fraction: float, text: str) -> None:
        """Show how far the current step is (0 to 1)."""
        now = time.perf_counter()
        if now - self._shown >= SHOWN_S:
            self._shown = now
            self._say(f"{self._name}: {100.0 * fraction:3.0f} % {text}", {"fraction": fraction, "text": text})

    def _say(self, text: str, values: dict[str, float | str]) -> None:
        head = {"step": self._number, "steps": self._steps, "name": self._name}
        echo(json.dumps(head | values) if self._json else f"[{self._number}/{self._steps}] {text}", err=True)
