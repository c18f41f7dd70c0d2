"""What the commands of the front do to the simulation. A command that fails is refused to who sent it, and ends nothing."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.area import Area
from wavesim_sdk.commander import BODY_VERBS
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.tables import SENSOR_FAULTS, RunState, SensorFault
from wavesim_sdk.wire.items import Request
from wavesim_server.messages import (
    Actuate,
    Command,
    Enter,
    Execute,
    Executed,
    Failed,
    Leave,
    Refused,
    Release,
    Sound,
    TurnedAway,
    decode_command,
)

if TYPE_CHECKING:
    from wavesim_server.engine.core import Engine

#: what the simulation raises for values that it cannot use
UNUSABLE = (ValueError, WaveSimError)


class Orders:
    """Takes commands."""

    def __init__(self, engine: Engine, vehicles: Area) -> None:
        self.engine, self.sim, self.vehicles = engine, engine.sim, vehicles
        self.failures = 0
        self._faults = np.zeros(engine.sim.capacity, SENSOR_FAULTS.dtype)

    def take(self, kind: int, payload: bytes) -> None:
        """Do what a record says."""
        self._contained(decode_command(kind, payload))

    def _contained(self, command: Command) -> None:
        """Whatever a command does, the engine goes on: the sender is told."""
        try:
            self._do(command)
        except Exception as error:  # an error of ours: it costs whoever met it, and nobody else
            self.failures += 1
            if self.failures == 1:
                traceback.print_exc()
            sys.stderr.write(f"wavesim: the engine failed at {type(command).__name__}: {error!r}\n")
            if isinstance(command, Execute):
                self._answer(command, False, "the server failed at this; see its standard error")
            elif not isinstance(command, Release):
                self.engine.emit(Failed(command.row, f"the server failed at {type(command).__name__}"))

    def _do(self, command: Command) -> None:
        match command:
            case Actuate():
                self._actuate(command)
            case Sound():
                self._sound(command)
            case Release():
                self._release(command)
            case Enter():
                self._enter(command)
            case Leave():
                self._leave(command.row)
            case Execute():
                self._execute(command)

    # -- clients ---------------------------------------------------------------------------------

    def _actuate(self, c: Actuate) -> None:
        if c.row not in self.sim.occupants:
            return
        try:
            self.sim.command(c.row, c.values)
        except UNUSABLE as error:
            self.engine.emit(Failed(c.row, str(error)))
        self.engine.watchdog.fed(c.row, self.sim.tick)

    def _release(self, c: Release) -> None:
        if not self.engine.waiting or c.tick != self.sim.tick:
            return
        self.engine.waiting = False
        for answer in c.answers:
            if answer.values is not None:
                self._contained(Actuate(answer.row, answer.values))
            elif answer.row in self.sim.occupants:
                self.engine.watchdog.fed(answer.row, self.sim.tick)
            for sound in answer.sounds:
                self._contained(sound)

    def _sound(self, c: Sound) -> None:
        if c.row not in self.sim.occupants:
            return
        kind, *values = c.item
        try:
            if kind == Request.PING:
                self.sim.ping(c.row, *values[:4], number=c.number)
            elif kind == Request.SEND:
                to, payload, level, at = values[:4]
                self.sim.send(c.row, payload, to, level, at, number=c.number)
            else:
                self.sim.range_request(c.row, *values[:3], number=c.number)
        except UNUSABLE as error:
            self.engine.emit(Refused(c.row, c.number, str(error)))

    def _enter(self, c: Enter) -> None:
        engine = self.engine
        if c.row not in self.sim.occupants:
            try:
                self.sim.enter(c.name, c.model, c.position, c.attitude, c.row)
            except UNUSABLE as error:
                engine.emit(TurnedAway(c.row, str(error)))
                return
            came = True
        else:
            came = False
        engine.lockstep.pop(c.row, None)
        if c.lockstep:
            engine.lockstep[c.row] = c.lockstep
        engine.watchdog.watch(c.row, c.name, self.sim.tick)
        if came:
            engine.roster(c.row, present=True)
            engine.publish()  # its state before its presence: a reader between the two sees no body without a state
            engine.publication.identity()

    def _leave(self, row: int) -> None:
        engine = self.engine
        if row not in self.sim.occupants:
            return
        engine.roster(row, present=False)
        self.sim.leave(row)
        engine.lockstep.pop(row, None)
        engine.watchdog.forget(row)
        engine.fences.forget(row)
        self._faults[row] = 0
        self.vehicles["sensor_faults"].publish(self._faults, self.sim.tick)
        engine.publication.identity()
        engine.publish()

    # -- the commander -----------------------------------------------------------------------------

    def _answer(self, c: Execute, ok: bool, text: str) -> None:
        self.engine.emit(Executed(c.number, ok, text, self.sim.time_ns))

    def _execute(self, c: Execute) -> None:
        try:
            text = self._on_body(c.verb, *c.argument) if c.verb in BODY_VERBS else self._control(c.verb, c.argument)
        except UNUSABLE as error:
            self._answer(c, False, str(error))
        else:
            self._answer(c, True, text)

    def _control(self, verb: str, argument: Any) -> str:
        """A verb on the timer; what came of it. ValueError if it cannot be now."""
        engine = self.engine
        if verb == "shutdown":
            engine.over = True
        elif engine.state is RunState.ENDED and verb != "speed":
            raise ValueError("the run has ended; start the server again for another")
        elif verb in ("start", "resume"):
            engine.set_state(RunState.RUNNING)
        elif verb == "stop":
            engine.set_state(RunState.STOPPED)
        elif verb == "pause":
            engine.set_state(RunState.PAUSED)
        elif verb == "speed":
            engine.pace.speed = float(argument)
            engine.pace.restart()
            return f"speed {engine.pace.speed:g}" if engine.pace.speed else "as fast as possible"
        elif verb == "step":
            if engine.state is RunState.RUNNING:
                raise ValueError("the simulation runs; pause it before you step")
            engine.budget = int(argument)
            engine.set_state(RunState.RUNNING)
        return f"{engine.state.name.lower()} at {self.sim.time_ns * 1e-9:.3f} s"

    def _on_body(self, verb: str, name: str, *arguments: Any) -> str:
        """A verb on one body."""
        row = next((k for k, o in self.sim.occupants.items() if o.name == name), None)
        if row is None:
            present = ", ".join(o.name for o in self.sim.occupants.values())
            raise ValueError(f"'{name}' is not in the simulation; present: {present}")
        try:
            if verb == "fault":
                self.sim.fail(row, *arguments)
            elif verb == "sensor":
                self._sensor_fault(row, *arguments)
            elif verb == "push":
                self.sim.push(row, *arguments)
            else:
                self.sim.allocate(row, np.array(arguments[0], float))
        except UNUSABLE as error:
            raise ValueError(f"{verb} '{name}': {error}") from None
        return f"{verb} '{name}' from {self.sim.time_ns * 1e-9:.3f} s on"

    def _sensor_fault(self, row: int, sensor: str, fault: str, amount: float | str) -> None:
        sensors = self.sim.config.emulators.names
        if sensor not in sensors:
            raise ValueError(f"this run has no sensor '{sensor}'; it has {', '.join(sensors) or 'none'}")
        kinds = {f.name.lower(): f for f in SensorFault}
        if fault not in kinds:
            raise ValueError(f"there is no fault '{fault}'; faults are {', '.join(kinds)}")
        k = sensors.index(sensor)
        for name, only in (("wet", "leak"), ("unlocked", "dvl")):
            if fault == name and sensor != only:
                raise ValueError(f"'{name}' is a fault of the sensor '{only}'")
        if fault == "wet":
            amount = self._wet(row, k, str(amount))
        if isinstance(amount, str):
            raise ValueError(f"the amount of '{fault}' is a number, not '{amount}'")
        if fault == "spikes" and not 0.0 <= amount <= 1.0:
            raise ValueError(f"the chance of a spike is 0 to 1, not {amount:g}")
        self._faults["kind"][row, k], self._faults["amount"][row, k] = kinds[fault], amount
        self.vehicles["sensor_faults"].publish(self._faults, self.sim.tick)

    def _wet(self, row: int, k: int, compartment: str) -> float:
        """Bits of the wet compartments of a body, with one more."""
        leak = self.sim.config.emulators.leak
        assert leak is not None
        if compartment not in leak.names:
            raise ValueError(f"there is no compartment '{compartment}'; there are {', '.join(leak.names)}")
        had = int(self._faults["amount"][row, k]) if self._faults["kind"][row, k] == SensorFault.WET else 0
        return float(had | 1 << leak.names.index(compartment))
