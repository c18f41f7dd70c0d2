"""The actuator watchdog. It sets the commands of a body when its program falls silent.

Watchdogs count ticks, so that runs are repeatable.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from wavesim_sdk.actuators import parse_command
from wavesim_world.actuators import actuators_of
from wavesim_world.config import BodyConfig, LoadedConfig

NEVER = sys.maxsize


class Watchdog:
    """The watchdogs of all bodies that have one."""

    def __init__(self, loaded: LoadedConfig, step_ns: int) -> None:
        self._bodies = {b.name: b for b in loaded.config.fleet.bodies if b.watchdog > 0.0}
        self._commands = {n: _failsafe_command(b, loaded) for n, b in self._bodies.items()}
        self._ticks = {n: max(1, -(-round(b.watchdog * 1e9) // step_ns)) for n, b in self._bodies.items()}
        self._names: dict[int, str] = {}
        self._due: dict[int, int] = {}

    def watch(self, row: int, name: str, tick: int) -> None:
        """Start watching a body whose client has joined."""
        if name in self._bodies:
            self._names[row] = name
            self.note_command(row, tick)

    def note_command(self, row: int, tick: int) -> None:
        """Restart the watchdog of a body after a command."""
        if row in self._names:
            self._due[row] = tick + self._ticks[self._names[row]]

    def remove(self, row: int) -> None:
        """Stop watching a body that has been removed from the simulation."""
        self._names.pop(row, None)
        self._due.pop(row, None)

    def save(self) -> dict[int, tuple[str, int | None]]:
        """Return the watched bodies for a snapshot: name and tick at which the watchdog expires, by row."""
        return {row: (name, self._due.get(row)) for row, name in self._names.items()}

    def restore(self, state: Mapping[int, tuple[str, int | None]]) -> None:
        """Restore a state that :meth:`save` returned."""
        self._names = {row: name for row, (name, _) in state.items()}
        self._due = {row: due for row, (_, due) in state.items() if due is not None}

    def next_tick(self) -> int:
        """Return the next tick at which a watchdog expires."""
        return min(self._due.values(), default=NEVER)

    def take_due(self, tick: int) -> Iterator[tuple[int, str, Sequence[float | None] | None, str]]:
        """Yield (row, name, command or None to hold, notice) for each expired watchdog; each watchdog is yielded only
        once until the next command.
        """
        for row in sorted(r for r, due in self._due.items() if tick >= due):
            name = self._names[row]
            body = self._bodies[name]
            del self._due[row]
            done = {"zero": "actuators at zero", "hold": "commands are held", "safe": f"actuators at {body.safe}"}[
                body.failsafe
            ]
            yield row, name, self._commands[name], f"no command for {body.watchdog:g} s: {done}"


def _failsafe_command(body: BodyConfig, loaded: LoadedConfig) -> Sequence[float | None] | None:
    """Return the failsafe command of a body in the order of its actuators; None means that the current commands are
    held.
    """
    actuators = actuators_of(loaded.model(body.model))
    commands: dict[str, Sequence[float | None] | None] = {
        "zero": [0.0] * len(actuators),
        "hold": None,
        "safe": parse_command(actuators, body.safe),
    }
    return commands[body.failsafe]
