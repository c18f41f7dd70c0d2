"""A trial in this process, for notebooks and tests. It can run to a given time, give access to its live objects, and
continue.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from wavesim_sdk import arguments
from wavesim_sdk.errors import InvalidArgument, UnknownName, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import RunState
from wavesim_server import compiling
from wavesim_server.in_process.trial import InProcessTrial, outside_participants
from wavesim_server.lab import States
from wavesim_server.simulation import Simulation
from wavesim_server.trial import ParticipantFailed
from wavesim_world.config import load

__all__ = ["Trial"]

_NUMBERS = itertools.count(1)


class Trial:
    """Trial of a configuration file, with its emulators and on-board programs, in this process.

        with Trial("config.xml", duration=60.0) as trial:
            trial.run(10.0)
            print(trial.states())
            trial.run()
        print(trial.table())

    ``out`` is the folder for log and output (default: a temporary folder); ``seed`` and ``duration`` (s) replace the
    values in the configuration. With ``keep_going``, the trial continues without a program that fails. Raises
    WaveSimError if a participant cannot run in this process.
    """

    def __init__(
        self,
        configuration: str | Path,
        out: str | Path | None = None,
        *,
        seed: int | None = None,
        duration: float | None = None,
        keep_going: bool = False,
    ) -> None:
        if duration is not None and arguments.at_least_zero("duration", duration, "s") == 0.0:
            raise InvalidArgument("duration must be above 0 s")
        if isinstance(configuration, str) and configuration.lstrip().startswith("<"):
            raise InvalidArgument(
                "a Trial needs the path of a configuration file, because its programs read the file: save the text, or use Lab"
            )
        self._temporary = tempfile.TemporaryDirectory(prefix="wavesim-") if out is None else None
        folder = Path(out if out is not None else self._temporary.name)  # type: ignore[union-attr]
        loaded = load(Path(configuration).absolute())
        name = f"notebook-{os.getpid()}-{next(_NUMBERS)}"
        self._trial = InProcessTrial(loaded, folder, name=name, duration=duration, seed=seed, quiet=True)
        self._trial.keep_going = keep_going
        if outside := outside_participants(self._trial):
            raise WaveSimError(f"cannot run in this process: {', '.join(outside)}; use `wavesim trial`")
        self._opened: Any = None
        self._wall = 0.0

    def __enter__(self) -> Trial:
        hydrophones = "hydrophone" in self._trial.loaded.sensor_rows
        compiling.ensure_compiled(lambda text: None, hydrophones=hydrophones)
        self._opened = self._trial.opened()
        self._opened.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    @property
    def simulation(self) -> Simulation:
        """The live simulation, in its current state."""
        return self._trial.server.simulation

    @property
    def time(self) -> float:
        """Current simulation time in s."""
        return self.simulation.time_ns * 1e-9

    @property
    def has_ended(self) -> bool:
        """Whether the run has reached its end."""
        return self._trial.server.run_state is RunState.ENDED

    @property
    def log(self) -> Path:
        """Path of the log. The log is complete after the end of the `with` block."""
        return self._trial.log

    def run(self, until: float | None = None) -> None:
        """Run until the simulation time ``until`` in s, or to the end of the trial (None).

        Raises ParticipantFailed if a program fails or does not answer in time.
        """
        if until is not None:
            arguments.at_least_zero("until", until, "s")
        if until is None:
            self._wall = self._trial.run_to_end()
        else:
            self._trial.run_until(until)
        if self._trial.failure:
            raise ParticipantFailed(self._trial.failure)

    def states(self) -> States:
        """Return the current states of the bodies, for example ``states()["lauv"]["depth"]``."""
        simulation = self.simulation
        names = [simulation.occupants[row].name for row in simulation.rows]
        return States(names, simulation.state()[simulation.rows])

    def program(self, body: str) -> Mapping[str, Any]:
        """Return the global variables of a body's program. Raises UnknownName if the body does not have a program."""
        programs = {p.label.removeprefix("program-"): p for p in self._trial.host.programs}
        if body not in programs:
            raise UnknownName(f"no program drives '{body}'{suggest_name(body, programs)}")
        return vars(programs[body].context.main)

    def output(self, body: str) -> str:
        """Return the text that a body's program has printed."""
        return (self._trial.folder / f"program-{body}.txt").read_text()

    def table(self) -> str:
        """Return the trial table as text, after the end of the `with` block."""
        return self._trial.write_table(max(self._wall, 1e-3))
