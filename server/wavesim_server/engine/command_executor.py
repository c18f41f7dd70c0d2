"""Execute the front's commands on the simulation.

If a command fails, its sender receives a refusal and nothing else is affected.
"""

from __future__ import annotations

import math
import sys
import traceback
from typing import TYPE_CHECKING

import numpy as np

from wavesim_sdk import commands
from wavesim_sdk.actuators import actuator_index, fault_amount
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import items
from wavesim_server.fault_schedule import FaultChange
from wavesim_server.messages import (
    COMMANDS,
    ActuateCommand,
    EffortCommand,
    EngineCommand,
    EnterCommand,
    ExecuteCommand,
    ExecutedEvent,
    LeaveCommand,
    ReleaseCommand,
    SessionFailedEvent,
    SoundCommand,
    SoundRefusedEvent,
    decode_command,
    decode_request,
)
from wavesim_world.sensor_faults import parse_fault

if TYPE_CHECKING:
    from wavesim_server.engine.core import Engine

#: exceptions that the simulation raises for invalid values
INVALID_COMMAND_ERRORS = (ValueError, WaveSimError)
FEW = 20  #: maximum number of names in a refusal


class CommandExecutor:
    """Executes the commands of the front."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.sim, self.instruments = engine, engine.sim, engine.instruments
        self._traced: set[str] = set()

    def execute(self, kind: int, payload: bytes) -> None:
        """Decode and execute a record."""
        try:
            command = decode_command(kind, payload)
        except Exception as error:  # the front wrote an invalid record, so the sender is unknown
            self._print_traceback_once(error)
            if kind == COMMANDS.numbers[ReleaseCommand]:
                self.engine.awaits_release = False  # the answers are lost; the simulation continues
            return
        self._execute_safely(command)

    def _execute_safely(self, command: EngineCommand) -> None:
        """Execute a command; on an error, report to the sender and continue."""
        try:
            self._dispatch(command)
        except Exception as error:  # an internal error: it affects only the sender
            self._print_traceback_once(error)
            text = f"the server failed while executing {type(command).__name__.removesuffix('Command')}"
            match command:
                case ExecuteCommand():
                    self._answer(command, False, f"{text}; see the server's standard error")
                case SoundCommand():
                    self.engine.emit(SoundRefusedEvent(command.row, command.number, text))
                case ActuateCommand() | EnterCommand():
                    self.engine.emit(SessionFailedEvent(command.row, command.session, text, 1))

    def _print_traceback_once(self, error: Exception) -> None:
        """Print a traceback on standard error, once per code location."""
        lines = traceback.format_exception(error)
        place = "".join(lines[-2:])
        if place not in self._traced:
            self._traced.add(place)
            sys.stderr.write("".join(lines))

    def _dispatch(self, command: EngineCommand) -> None:
        match command:
            case ActuateCommand():
                self._actuate(command)
            case SoundCommand():
                self._sound(command)
            case ReleaseCommand():
                self._release(command)
            case EnterCommand():
                self._enter(command)
            case LeaveCommand():
                self._leave(command.row)
            case ExecuteCommand():
                self._execute(command)
            case EffortCommand(rows):
                self.engine.publication.requested_effort_rows = tuple(rows)
                self.engine.publish()

    # -- clients ---------------------------------------------------------------------------------

    def _actuate(self, c: ActuateCommand) -> None:
        if c.row not in self.sim.occupants:
            return
        try:
            self.sim.command(c.row, c.values)
        except INVALID_COMMAND_ERRORS as error:
            self.engine.emit(SessionFailedEvent(c.row, c.session, f"invalid actuator command: {error}", 0))
        self.engine.watchdog.note_command(c.row, self.sim.tick)

    def _release(self, c: ReleaseCommand) -> None:
        if not self.engine.awaits_release or c.tick != self.sim.tick:
            return
        self.engine.awaits_release = False
        for answer in c.answers:
            if answer.values is not None:
                self._execute_safely(ActuateCommand(answer.row, answer.session, answer.values))
            elif answer.row in self.sim.occupants:
                self.engine.watchdog.note_command(answer.row, self.sim.tick)
            for sound in answer.sounds:
                self._execute_safely(sound)

    def _sound(self, c: SoundCommand) -> None:
        if c.row not in self.sim.occupants:
            return
        try:
            match decode_request(c.request):
                case items.Ping(frequency, level, at, code):
                    self.sim.ping(c.row, frequency, level, at, code, number=c.number)
                case items.Send(to, payload, level, at):
                    self.sim.send(c.row, payload, to, level, at, number=c.number)
                case items.Range(to, level, at):
                    self.sim.range_request(c.row, to, level, at, number=c.number)
        except INVALID_COMMAND_ERRORS as error:
            self.engine.emit(SoundRefusedEvent(c.row, c.number, str(error)))

    def _enter(self, c: EnterCommand) -> None:
        engine = self.engine
        if c.row in self.sim.occupants and engine.generation(c.row) < c.generation:
            self._leave(c.row)  # added by a front that crashed, without the knowledge of the present front
        came = c.row not in self.sim.occupants
        if came:
            try:
                self._let_in(c)
            except INVALID_COMMAND_ERRORS as error:
                engine.emit(SessionFailedEvent(c.row, c.session, f"'{c.name}' cannot enter: {error}", 0))
                return
        elif self.sim.occupants[c.row].name != c.name:
            raise RuntimeError(f"row {c.row} belongs to '{self.sim.occupants[c.row].name}'")
        engine.lockstep.pop(c.row, None)
        if c.lockstep:
            engine.lockstep[c.row] = c.lockstep
        engine.watchdog.watch(c.row, c.name, self.sim.tick)
        if came:
            for change in engine.fault_schedule.active_faults(c.name, self.sim.tick):
                self.apply_scheduled_fault(change)
            engine.announce_body(c.row, present=True)
            engine.publish()  # state before presence: a reader in between must not see a body without a state
            engine.publication.publish_identity()

    def _let_in(self, c: EnterCommand) -> None:
        """Add the body with its instruments; on an error, add neither."""
        self.instruments.enter(c.row, self.sim.loaded.suite_by_name(c.name, c.model))
        try:
            self.sim.enter(c.name, c.model, c.position, c.attitude, c.row, generation=c.generation)
        except BaseException:
            self.instruments.leave(c.row)
            raise

    def _leave(self, row: int) -> None:
        engine = self.engine
        if row not in self.sim.occupants:
            return
        engine.announce_body(row, present=False)
        self.sim.leave(row)
        self.instruments.leave(row)
        engine.lockstep.pop(row, None)
        engine.watchdog.remove(row)
        engine.fences.remove(row)
        engine.publication.publish_identity()
        engine.publish()

    # -- commands ----------------------------------------------------------------------------------

    def _answer(self, c: ExecuteCommand, ok: bool, text: str) -> None:
        self.engine.emit(ExecutedEvent(c.number, int(ok), text, self.sim.time_ns, c.command))

    def _execute(self, c: ExecuteCommand) -> None:
        command: commands.Command = decode_request(c.command)
        try:
            text = self._run_command(command)
        except INVALID_COMMAND_ERRORS as error:
            self._answer(c, False, str(error))
        else:
            self._answer(c, True, text)

    def _run_command(self, command: commands.Command) -> str:
        """Execute a command and return the result as text. Raises ValueError if the command is invalid."""
        since = f"from {self.sim.time_ns * 1e-9:.3f} s on"
        if isinstance(command, items.Control):
            return self._control(command)
        if isinstance(command, items.Weather):
            self._weather(command)
            return f"weather {since}"
        row = self._row_of(command.body)
        verb = commands.verb_of(command)
        try:
            match command:
                case items.Fault():
                    self._fault(row, command)
                case items.Push():
                    self.sim.push(row, command.force, command.torque)
                case items.Pose():
                    self.sim.set_pose(row, command.position, command.attitude, command.velocity)
                case items.Mission():
                    pass  # the front forwards it to the pilot, at this time
                case items.Allocate():
                    self.sim.allocate(row, np.array(command.matrix, float).reshape(6, -1))
        except INVALID_COMMAND_ERRORS as error:
            raise ValueError(f"{verb} '{command.body}': {error}") from None
        self.engine.publish()
        return f"{verb} '{command.body}' {since}"

    def _row_of(self, name: str) -> int:
        row = self.sim.row_of(name)
        if row is None:
            present = [o.name for o in self.sim.occupants.values()]
            some = ", ".join(present[:FEW]) + (f" and {len(present) - FEW} more" if len(present) > FEW else "")
            raise ValueError(f"'{name}' is not in the simulation; present: {some or 'none'}")
        return row

    def apply_scheduled_fault(self, change: FaultChange) -> None:
        """Begin or end a configured fault. The body need not be in the simulation."""
        try:
            self._apply_scheduled_fault(change)
        except Exception as error:  # the configuration was checked, so this is an internal error; the run continues
            self._print_traceback_once(error)

    def _apply_scheduled_fault(self, change: FaultChange) -> None:
        row = self.sim.row_of(change.body)
        if row is None:
            return
        wet = change.kind == "wet"
        field = change.amount if wet else change.field
        amount = (
            0.0
            if wet
            else _amount_as_number(self._set_part_fault(row, change.part, change.kind, change.amount, change.field))
        )
        if wet:
            self._set_part_fault(row, change.part, change.kind, change.amount, "")
        fault = items.Fault(change.body, change.part, change.kind, amount, field)
        text = f"fault '{change.body}' from {self.sim.time_ns * 1e-9:.3f} s on"
        self.engine.emit(ExecutedEvent(0, 1, text, self.sim.time_ns, commands.encode(fault)))

    def _control(self, c: items.Control) -> str:
        """Execute a command that changes the timer."""
        engine = self.engine
        if c.verb == "shutdown":
            engine.is_over = True
            return f"the server shuts down at {self.sim.time_ns * 1e-9:.3f} s"
        if c.verb == "speed":
            engine.pacer.speed = float(c.value or 0.0)
            engine.pacer.restart()
            engine.publish()
            return f"speed {engine.pacer.speed:g}" if engine.pacer.speed else "as fast as possible"
        if engine.state is RunState.ENDED:
            raise ValueError("the run has ended; restart the server for another run")
        if c.verb in ("start", "resume"):
            engine.set_state(RunState.RUNNING)
        elif c.verb == "stop":
            engine.set_state(RunState.STOPPED)
        elif c.verb == "pause":
            engine.set_state(RunState.PAUSED)
        elif c.verb == "step":
            if engine.state is RunState.RUNNING:
                raise ValueError("the simulation is running; pause it before you step")
            engine.budget = int(c.value or 1)
            engine.set_state(RunState.RUNNING)
        else:
            raise ValueError(f"no command named '{c.verb}'")
        return f"{engine.state.name.lower()} at {self.sim.time_ns * 1e-9:.3f} s"

    def _fault(self, row: int, c: items.Fault) -> None:
        wet = c.kind == "wet"  # its amount is a compartment, which the field names
        self._set_part_fault(row, c.part, c.kind, c.field if wet else c.amount, "" if wet else c.field)

    def _set_part_fault(self, row: int, part: str, kind: str, amount: float | str, field: str) -> float | str:
        """Set or repair a fault of an actuator or sensor and return its amount.

        Raises ValueError if a name is ambiguous or unknown.
        """
        actuators = self.sim.actuators(row)
        sensors = {e.instrument.name: e.instrument for e in self.instruments.installed(row)}
        is_actuator = part in [a.name for a in actuators] or part.isdigit()
        if part in sensors and is_actuator:
            raise ValueError(f"part '{part}' is ambiguous: both an actuator and a sensor have this name")
        if part in sensors:
            self.instruments.set_fault(row, part, kind, amount or 0.0, field)
            self.engine.publication.publish_instruments()
            return amount if kind == "wet" else parse_fault(sensors[part], kind, amount or 0.0, field).amount
        if is_actuator:
            position = actuator_index(actuators, part)
            self.sim.fail(row, position, kind, amount)
            return fault_amount(actuators[position], kind, amount)
        known = [a.name for a in actuators] + list(sensors)
        raise ValueError(f"no part named '{part}'{suggest_name(part, known) or '; this body has no parts'}")

    def _weather(self, c: items.Weather) -> None:
        given = {k: v for k, v in commands.to_dict(c).items() if k != "verb"}
        self.sim.set_weather(**given)


def _amount_as_number(amount: float | str) -> float:
    """Return an amount as a finite number for a record."""
    value = float(amount or 0.0)
    return value if math.isfinite(value) else 0.0
