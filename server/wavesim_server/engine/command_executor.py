"""Execution of the front end's commands on the simulation.

If a command fails, its sender receives a refusal, and nothing else is affected.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wavesim_sdk import commands
from wavesim_sdk.actuators import actuator_index, fault_amount
from wavesim_sdk.device_faults import device_of, line_fault_amount
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import RunState
from wavesim_sdk.wire import items
from wavesim_sdk.wire.messages import Actuate, Done, Leave
from wavesim_server.engine.event_queue import EngineEvents
from wavesim_server.engine.publication import EngineTables
from wavesim_server.engine.run_control import RunControl
from wavesim_server.engine.sound_uploads import SoundUploads
from wavesim_server.fault_schedule import FaultChange, FaultSchedule
from wavesim_server.fences import Fences
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.messages import (
    COMMANDS,
    ClientMessage,
    EffortCommand,
    EngineCommand,
    EnterCommand,
    ExecutedEvent,
    InstrumentStepsCommand,
    ReleaseCommand,
    SessionFailedEvent,
    SoundRefusedEvent,
    decode_command,
)
from wavesim_server.simulation import Simulation
from wavesim_server.watchdog import Watchdog
from wavesim_world.sensor_faults import parse_fault

_FAILED = "the server failed while executing"
#: exceptions that the simulation raises for invalid values
INVALID_COMMAND_ERRORS = (ValueError, WaveSimError)
TimeChange = items.Control | items.SnapshotAction
FEW = 20  #: maximum number of names listed in a refusal


class CommandExecutor:
    """Executes commands from the front end."""

    def __init__(
        self,
        simulation: Simulation,
        instruments: InstrumentRegistry,
        run: RunControl,
        events: EngineEvents,
        tables: EngineTables,
        watchdog: Watchdog,
        fences: Fences,
        fault_schedule: FaultSchedule,
    ) -> None:
        self.sim, self.instruments, self.run, self.tables = simulation, instruments, run, tables
        self.watchdog, self.fences, self.fault_schedule = watchdog, fences, fault_schedule
        self.events = events
        #: function that carries out a time change and passes the result to the given function; set by the engine
        self.request_time_change: Callable[[TimeChange, Callable[[bool, str], None]], None]
        self.entries: dict[int, EnterCommand] = {}  #: commands that added the bodies of the connected clients, by row
        self._traced: set[str] = set()
        self._uploads = SoundUploads()

    def execute_record(self, kind: int, payload: bytes) -> bool:
        """Decode and execute a record from the ring. Return whether it could be decoded."""
        try:
            command = decode_command(kind, payload)
        except Exception as error:  # the front wrote an invalid record, so the sender is unknown
            self._print_traceback_once(error)
            if kind == COMMANDS.numbers[ReleaseCommand]:
                self.run.awaits_release = False  # the answers are lost; the simulation continues
            return False
        self.execute(command)
        return True

    def execute(self, command: EngineCommand) -> None:
        """Execute a command. If an error occurs, report it to the sender and continue."""
        try:
            self._dispatch(command)
        except Exception as error:  # an internal error: it affects only the sender
            self._print_traceback_once(error)
            match command:
                case ClientMessage(row, number, items.Ping() | items.Send() | items.Range() | items.Transmit()):
                    self.events.emit(SoundRefusedEvent(row, number, f"{_FAILED} Sound"))
                case ClientMessage(row, session, Actuate() | Done()):
                    self.events.emit(SessionFailedEvent(row, session, f"{_FAILED} Actuate", 1))
                case EnterCommand(row, session):
                    self.events.emit(SessionFailedEvent(row, session, f"{_FAILED} Enter", 1))
                case ClientMessage(message=Leave()):
                    pass
                case ClientMessage():
                    self._answer(command, False, f"{_FAILED} this command; see the server's standard error")

    def _print_traceback_once(self, error: Exception) -> None:
        """Print a traceback to standard error, once for each code location."""
        lines = traceback.format_exception(error)
        place = "".join(lines[-2:])
        if place not in self._traced:
            self._traced.add(place)
            sys.stderr.write("".join(lines))

    def _dispatch(self, command: EngineCommand) -> None:
        match command:
            case ClientMessage(row, number, message):
                match message:
                    case Actuate(values):
                        self._actuate(row, number, values)
                    case Done():
                        self._done(row, number, message)
                    case items.Ping() | items.Send() | items.Range() | items.Transmit():
                        self._sound(row, number, message)
                    case items.SoundPart():
                        self._uploads.add(row, number, message)
                    case Leave():
                        self._leave(row)
                    case _:
                        self._execute(command, message)
            case ReleaseCommand(tick):
                if tick == self.sim.tick:
                    self.run.awaits_release = False
            case EnterCommand():
                self._enter(command)
            case EffortCommand(rows):
                self.tables.requested_effort_rows = tuple(rows)
                self.run.publish()
            case InstrumentStepsCommand(rows, periods):
                self.run.instrument_steps = tuple(zip(rows, periods, strict=True))

    # -- clients ---------------------------------------------------------------------------------

    def _actuate(self, row: int, session: int, values: Sequence[float | None]) -> None:
        if row not in self.sim.occupants:
            return
        try:
            self.sim.command(row, values)
        except INVALID_COMMAND_ERRORS as error:
            self.events.emit(SessionFailedEvent(row, session, f"invalid actuator command: {error}", 0))
        self.watchdog.note_command(row, self.sim.tick)

    def _done(self, row: int, session: int, done: Done) -> None:
        """Apply the answer to a step, unless the engine has already continued without it."""
        if not self.run.awaits_release or done.tick != self.sim.tick:
            return
        if done.command is not None:
            self._actuate(row, session, done.command)
        elif row in self.sim.occupants:
            self.watchdog.note_command(row, self.sim.tick)

    def _sound(self, row: int, number: int, request: items.Ping | items.Send | items.Range | items.Transmit) -> None:
        if row not in self.sim.occupants:
            return
        try:
            match request:
                case items.Ping(frequency, level, at, code, duration):
                    self.sim.ping(row, frequency, level, at, code, duration, number=number)
                case items.Send(to, payload, level, at, duration):
                    self.sim.send(row, payload, to, level, at, duration, number=number)
                case items.Range(to, level, at, payload, duration):
                    self.sim.range_request(row, to, level, at, payload, duration, number=number)
                case items.Transmit(sound, sampling_rate, level, at, is_peak):
                    samples, scale = self._uploads.take(row, number, sound), "peak" if is_peak else "rms"
                    self.sim.transmit(row, samples, sampling_rate, level, at, scale, number=number)
        except INVALID_COMMAND_ERRORS as error:
            self.events.emit(SoundRefusedEvent(row, number, str(error)))

    def _enter(self, c: EnterCommand) -> None:
        if c.row in self.sim.occupants and self.run.generation(c.row) < c.generation:
            self._leave(c.row)  # added by a front that crashed, without the knowledge of the present front
        came = c.row not in self.sim.occupants
        if came:
            if not self.add_body(c):
                return
        elif self.sim.occupants[c.row].name != c.name:
            raise RuntimeError(f"row {c.row} belongs to '{self.sim.occupants[c.row].name}'")
        else:
            self.watchdog.watch(c.row, c.name, self.sim.tick)
        self.run.lockstep.pop(c.row, None)
        if c.lockstep:
            self.run.lockstep[c.row] = c.lockstep
        self.entries[c.row] = c
        if came:
            self.run.announce_body(c.row, present=True)
            self.run.publish()  # state before presence: a reader in between must not see a body without a state
            self.tables.publish_identity()

    def add_body(self, c: EnterCommand) -> bool:
        """Add the body of a client, with its watchdog and its active faults. If it cannot be added, end the session and
        return False.
        """
        try:
            self._let_in(c)
        except INVALID_COMMAND_ERRORS as error:
            self.events.emit(SessionFailedEvent(c.row, c.session, f"'{c.name}' cannot enter: {error}", 0))
            return False
        self.watchdog.watch(c.row, c.name, self.sim.tick)
        for change in self.fault_schedule.active_faults(c.name, self.sim.tick):
            self.apply_scheduled_fault(change)
        return True

    def _let_in(self, c: EnterCommand) -> None:
        """Add the body with its instruments. If an error occurs, add neither."""
        self.instruments.enter(c.row, self.sim.loaded.suite_by_name(c.name, c.model))
        try:
            self.sim.enter(c.name, c.model, c.position, c.attitude, c.row, generation=c.generation)
            if self.sim.occupants[c.row].transducer is not None:
                self.sim.listen(c.row)
        except BaseException:
            self.instruments.leave(c.row)
            raise

    def _leave(self, row: int) -> None:
        if row not in self.sim.occupants:
            return
        self.run.announce_body(row, present=False)
        self.remove_body(row)
        self.run.lockstep.pop(row, None)
        self.entries.pop(row, None)
        self.tables.publish_identity()
        self.run.publish()

    def remove_body(self, row: int) -> None:
        """Remove a body and everything that the engine stores about it."""
        self.sim.leave(row)
        self.instruments.leave(row)
        self.watchdog.remove(row)
        self._uploads.remove_body(row)
        self.fences.remove_body(row)

    # -- commands ----------------------------------------------------------------------------------

    def _answer(self, c: ClientMessage, ok: bool, text: str) -> None:
        self.events.emit(ExecutedEvent(c.number, int(ok), text, self.sim.time_ns, c.payload))

    def _execute(self, c: ClientMessage, command: Any) -> None:
        if isinstance(command, items.SnapshotAction) or (
            isinstance(command, items.Control) and command.verb in commands.TIME_CHANGE_VERBS
        ):
            self.request_time_change(command, lambda ok, text: self._answer(c, ok, text))
            return
        try:
            text = self._run_command(command)
        except INVALID_COMMAND_ERRORS as error:
            self._answer(c, False, str(error))
        else:
            self._answer(c, True, text)

    def _run_command(self, command: commands.Command) -> str:
        """Execute a command and return the result as text. Raises ValueError if the command is invalid."""
        since = f"starting at {self.sim.time_ns * 1e-9:.3f} s"
        if isinstance(command, items.Control):
            return self._control(command)
        if isinstance(command, items.Weather):
            self._weather(command)
            return f"weather {since}"
        if isinstance(command, items.Fence):
            text = self.fences.change(command)
            self.tables.publish_fences(self.fences.current)
            return f"{text} {since}"
        assert not isinstance(command, items.SnapshotAction)  # see _execute
        row = self._row_of(command.body)
        verb = commands.verb_of(command)
        try:
            match command:
                case items.Fault():
                    self._fault(row, command)
                case items.Push():
                    self.sim.push(row, command.force, command.torque, command.duration)
                case items.Pose():
                    self.sim.set_pose(row, command.position, command.attitude, command.velocity)
                case items.Mission() | items.VehicleCommand():
                    pass  # the front forwards it to the pilot, at this time
                case items.Allocate():
                    self.sim.allocate(row, np.array(command.matrix, float).reshape(6, -1))
        except INVALID_COMMAND_ERRORS as error:
            raise ValueError(f"{verb} '{command.body}': {error}") from None
        self.run.publish()
        match command:
            case items.Fault(kind="none"):
                return f"repaired '{command.part}' of '{command.body}' at {self.sim.time_ns * 1e-9:.3f} s"
            case items.Fault():
                return f"{_describe_fault(command)} {since}"
            case items.Push() if not any((*command.force, *command.torque)):
                return f"ended the push on '{command.body}' at {self.sim.time_ns * 1e-9:.3f} s"
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
        text = f"{_describe_fault(fault)} starting at {self.sim.time_ns * 1e-9:.3f} s"
        self.events.emit(ExecutedEvent(0, 1, text, self.sim.time_ns, commands.encode(fault)))

    def _control(self, c: items.Control) -> str:
        """Execute a command that controls the run: its state, its speed, or its shutdown."""
        run = self.run
        if c.verb == "shutdown":
            run.is_over = True
            return f"the server shuts down at {self.sim.time_ns * 1e-9:.3f} s"
        if c.verb == "speed":
            run.set_speed(float(c.value or 0.0))
            return f"speed {run.pacer.speed:g}" if run.pacer.speed else "as fast as possible"
        if run.state is RunState.ENDED:
            raise ValueError("the run has ended; restart the server to start another run")
        if c.verb in ("start", "resume"):
            run.set_state(RunState.RUNNING)
        elif c.verb == "stop":
            run.set_state(RunState.STOPPED)
        elif c.verb == "pause":
            run.set_state(RunState.PAUSED)
        elif c.verb == "step":
            if run.state is RunState.RUNNING:
                raise ValueError("the simulation is running; pause it before you step")
            run.budget = int(c.value or 1)
            run.set_state(RunState.RUNNING)
        else:
            raise ValueError(f"no command named '{c.verb}'")
        return f"{run.state.name.lower()} at {self.sim.time_ns * 1e-9:.3f} s"

    def _fault(self, row: int, c: items.Fault) -> None:
        wet = c.kind == "wet"  # its amount is a compartment, which the field names
        self._set_part_fault(row, c.part, c.kind, c.field if wet else c.amount, "" if wet else c.field)

    def _set_part_fault(self, row: int, part: str, kind: str, amount: float | str, field: str) -> float | str:
        """Set or repair a fault of an actuator or sensor and return the magnitude of the fault. The front end sends the
        faults of devices to the devices.

        Raises ValueError if the name of the actuator or sensor is ambiguous or unknown.
        """
        if device_of(part):
            return 0.0 if kind == "none" else line_fault_amount(kind, amount)
        actuators = self.sim.fleet.actuators(row)
        sensors = {e.instrument.name: e.instrument for e in self.instruments.installed(row)}
        is_actuator = part in [a.name for a in actuators] or part.isdigit()
        if part in sensors and is_actuator:
            raise ValueError(f"the name '{part}' is ambiguous: both an actuator and a sensor have this name")
        if part in sensors:
            self.instruments.set_fault(row, part, kind, amount or 0.0, field)
            self.tables.publish_instruments()
            return amount if kind == "wet" else parse_fault(sensors[part], kind, amount or 0.0, field).amount
        if is_actuator:
            position = actuator_index(actuators, part)
            self.sim.fail(row, position, kind, amount)
            self.tables.publish_actuator_faults()
            return fault_amount(actuators[position], kind, amount)
        known = [a.name for a in actuators] + list(sensors)
        what = suggest_name(part, known) or "; this body has no actuators or sensors"
        raise ValueError(f"no actuator or sensor named '{part}'{what}; to name a device, use 'device:NAME'")

    def _weather(self, c: items.Weather) -> None:
        values = {k: v for k, v in commands.to_dict(c).items() if k != "verb"}
        self.sim.set_weather(**values)


def _describe_fault(fault: items.Fault) -> str:
    return f"fault '{fault.kind}' in '{fault.part}' of '{fault.body}'"


def _amount_as_number(amount: float | str) -> float:
    """Return the magnitude of a fault as a finite number that a record can store."""
    value = float(amount or 0.0)
    return value if math.isfinite(value) else 0.0
