"""Code that all on-board programs share: arguments, broker and main loop."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Protocol

from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.estimate import Estimate
from wavesim_world.config import load


class Vehicle(Protocol):
    """On-board software: it converts the values of a step into named actuator commands and an estimate (or None)."""

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], Estimate | None]: ...


def run(
    description: str | None,
    make: Callable[..., Vehicle],
    options: Callable[[argparse.ArgumentParser], None] | None = None,
) -> int:
    """Drive the vehicle named on the command line until the run has ended; return the exit code.

    ``make`` creates the software from the loaded configuration, the body, and the parsed options (if ``options`` is
    given).
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="config.xml")
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--port", type=int, default=9750)
    if options is not None:
        options(parser)
    a = parser.parse_args()
    try:
        loaded = load(a.config)
        body = next((b for b in loaded.config.fleet.bodies if b.name == a.vehicle), None)
        if body is None or body.program is None:
            raise ConfigError(f"vehicle '{a.vehicle}' does not exist or has no <program>", a.config)
        vehicle = make(loaded, body, a) if options is not None else make(loaded, body)
        with Broker(a.vehicle, ("127.0.0.1", a.port), lockstep=body.program.period) as broker:
            for step in broker.steps():
                broker.answer(*vehicle.act(step, broker))
    except WaveSimError as error:
        print(f"{a.vehicle}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0
