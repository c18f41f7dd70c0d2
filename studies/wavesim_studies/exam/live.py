"""A filter as an on-board program of the exam.

    class MyFilter:
        def __init__(self, facts, vehicle): ...
        def step(self, step): return Estimate(north=..., east=...)

    if __name__ == "__main__":
        sys.exit(main(MyFilter))

``facts`` is the content of ``exam.json``, which `wavesim exam export` also writes. ``step`` receives each step of the
broker; it returns an estimate, or None while it has no estimate.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.estimate import Estimate
from wavesim_studies.exam.pilot import Pilot
from wavesim_world.config import load

__all__ = ["LiveFilter", "main"]

FACTS = "exam.json"


class LiveFilter(Protocol):
    """A navigation filter that runs on board."""

    def step(self, step: Step) -> Estimate | None:
        """Process the measurements of a step, and return an estimate or None."""


def main(make: Callable[[dict[str, Any], str], LiveFilter] | None = None) -> int:
    """Run the pilot and a filter until the run has ended; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--port", type=int, default=9750)
    a = parser.parse_args()
    try:
        loaded = load(a.config)
        pilot = Pilot(loaded, a.vehicle)
        live = None
        if make is not None:
            live = make(json.loads((a.config.parent / FACTS).read_text()), a.vehicle)
        with Broker(a.vehicle, ("127.0.0.1", a.port), lockstep=pilot.program.period) as broker:
            for step in broker.steps():
                commands = pilot.commands(step, broker)
                broker.answer(commands, None if live is None else live.step(step))
    except WaveSimError as error:
        sys.stderr.write(f"{a.vehicle}: {error}\n")
        return error.exit_code
    return 0
