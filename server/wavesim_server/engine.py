"""The engine process: it ticks, and touches only shared memory and two rings.

Real time: each tick has an absolute deadline.  Fast: as many ticks in one compiled call as there are
until somebody is due (an emulator, a lockstep client, the log, a viewer).
"""

from __future__ import annotations

import argparse
import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import posix_ipc

from wavesim_sdk.area import DUE, OWNER, OWNER_START, PERIOD, Area, alive, segment_name
from wavesim_sdk.attach import semaphore
from wavesim_sdk.commander import BODY_VERBS
from wavesim_sdk.config import load
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.tables import SENSOR_FAULTS, RunState, SensorFault
from wavesim_sdk.wire.items import Request
from wavesim_server.environment.weather import W_LEVEL, W_WIND
from wavesim_server.fences import Fences
from wavesim_server.messages import Command, Event
from wavesim_server.priority import Priority
from wavesim_server.resources import ring_names
from wavesim_server.ring import Ring
from wavesim_server.simulation import Simulation
from wavesim_server.watchdog import Watchdog

VIEW_S = 0.1  #: in fast mode the tables are published at least this often (simulated)
CHUNK_S = 0.004  #: wall time of the ticks that a faster pace takes together
CATCH_UP_S = 0.25  #: a real-time engine that is later than this gives the time up


class Engine:
    """One run of the engine."""

    def __init__(self, simulation: Simulation, name: str, commands_fd: int, events_fd: int, log: bool) -> None:
        self.sim, self.name = simulation, name
        config = simulation.config
        self.areas = {a: Area.attach(segment_name(name, a), writable=True) for a in ("simulation", "vehicles")}
        commands, events = ring_names(name)
        self.commands, self.events = Ring.attach(commands), Ring.attach(events)
        self.commands_fd, self.events_fd = commands_fd, events_fd
        self.sensors = config.emulators.names
        self._due = {s: semaphore(name, s, "due") for s in self.sensors}
        self._done = {s: semaphore(name, s, "done") for s in self.sensors}
        self.state = RunState.STOPPED
        self.speed = config.time.speed if config.time.pace == "realtime" else 0.0
        self.end_tick = round(config.time.duration * 1e9) // simulation.step_ns or None
        self.log_ticks = max(1, round(1e9 / config.log.state_rate / simulation.step_ns)) if log else 0
        self.view_ticks = max(1, int(VIEW_S * 1e9) // simulation.step_ns)
        self.lockstep: dict[int, int] = {}  # row -> period in ticks
        self.budget: int | None = None  # ticks left of a `step` command
        self._served = -1  # last tick whose participants were served
        self._waiting = False  # for RELEASE
        self.watchdog = Watchdog(simulation.config.fleet.bodies, simulation.step_ns)
        self.fences = Fences(config.fleet.fence, simulation.capacity, simulation.step_ns)
        self.priority = Priority()
        self._started = False
        self._shutdown = False
        self._faults = np.zeros(simulation.capacity, SENSOR_FAULTS.dtype)
        self._sequences: dict[str, Any] = {s: np.zeros(simulation.capacity, np.int64) for s in self.sensors}
        self._late = self._sensors_late = self._lateness = self._lateness_max = self._slipped = 0
        self._deadline = 0.0
        self._factor = 0.0
        self._factor_mark = (time.monotonic(), 0)
        self._parent = os.getppid()

    # -- the loop ------------------------------------------------------------------------------

    def run(self) -> None:
        """Until a shutdown command, or the death of the parent process."""
        self.sim.enter_residents()
        self._publish_world()
        self._publish()
        while not self._shutdown and os.getppid() == self._parent:
            self._take_commands()
            self.priority.set(self.state is RunState.RUNNING and 0.0 < self.speed <= 1.0)
            if self.state is not RunState.RUNNING or self._waiting:
                self._wait(0.1)
            elif self._serve():
                continue
            elif self.speed > 0.0:
                self._real_time_tick()
            else:
                self._advance(self._next_stop() - self.sim.tick)

    def _wait(self, timeout: float) -> None:
        """Sleep until the front has written something."""
        if select.select([self.commands_fd], [], [], timeout)[0]:
            with suppress(BlockingIOError):
                os.eventfd_read(self.commands_fd)

    def _next_stop(self) -> int:
        """The next tick at which somebody must be served."""
        tick = self.sim.tick
        view = self.view_ticks * max(1, int(self.speed))  # viewers look by wall time
        periods = [view, *self.lockstep.values(), *self._periods().values()]
        if self.log_ticks:
            periods.append(self.log_ticks)
        stop = min((tick // p + 1) * p for p in periods)
        stop = min(stop, self.watchdog.next_tick(), self.fences.next_tick(tick))
        if self.end_tick is not None:
            stop = min(stop, self.end_tick)
        return min(stop, tick + self.budget) if self.budget is not None else stop

    def _advance(self, ticks: int) -> None:
        faults = len(self.sim.faults)
        self.sim.advance(ticks)
        if self.budget is not None:
            self.budget -= ticks
        sent, receptions = self.sim.take_signals()
        if len(sent) or len(receptions):
            self._emit(Event.SIGNALS, [sent.tobytes(), receptions.tobytes()])
        if len(self.sim.faults) > faults:
            self._emit(Event.FAULT, [self.sim.time_ns, self.sim.faults])

    def _real_time_tick(self) -> None:
        now = time.monotonic()
        length = self.sim.step_ns * 1e-9
        ticks = 1
        if self.speed > 1.0:  # several at once, as long as that takes no longer than a tick, or CHUNK_S
            ticks = max(1, min(int(min(CHUNK_S, length) / length * self.speed), self._next_stop() - self.sim.tick))
        step = ticks * length / self.speed
        if self._deadline == 0.0:
            self._deadline = now
        self._deadline += step
        if now < self._deadline:
            time.sleep(self._deadline - now)
        late = time.monotonic() - self._deadline
        self._lateness = int(late * 1e9)
        self._lateness_max = max(self._lateness_max, self._lateness)
        if late > step:
            self._late += ticks
        if late > CATCH_UP_S:
            self.priority.slipped()
            self._slipped += int(late * 1e9)
            self._deadline += late
        self._advance(ticks)

    def _serve(self) -> bool:
        """Publish and serve whoever is due at this tick. True if the loop must look at commands first."""
        tick = self.sim.tick
        if self._served == tick:
            return False
        self._served = tick
        for row, name, command, text in self.watchdog.bark(tick):
            if command is not None:
                self.sim.command(row, command)
            self._emit(Event.NOTICE, [self.sim.time_ns, row, name, text])
        self._look_at_fences(tick)
        self._publish()
        self._ask_sensors(tick)
        if self.end_tick is not None and tick >= self.end_tick:
            self._set_state(RunState.ENDED)
        elif self.budget == 0:
            self.budget = None
            self._set_state(RunState.PAUSED)
        rows = [row for row, period in sorted(self.lockstep.items()) if tick % period == 0]
        if rows and self.state is not RunState.ENDED:
            self._waiting = True
            self._emit(Event.STEP, [tick, rows])
        # Logged while the clients compute: nothing moves until they have answered.
        if self.log_ticks and tick % self.log_ticks == 0:
            self._log(tick)
        return self._waiting or self.state is not RunState.RUNNING

    def _look_at_fences(self, tick: int) -> None:
        if self.fences.next_tick(tick - 1) == tick:
            rows = np.array([k for k, o in sorted(self.sim.occupants.items()) if o.model.type != "buoy"], np.int64)
            for row, text in self.fences.crossed(tick, rows, self.sim.state()["p_WB_W"][rows]):
                self._emit(Event.NOTICE, [self.sim.time_ns, row, self.sim.occupants[row].name, text])

    # -- synchronous emulators -------------------------------------------------------------------

    def _periods(self) -> dict[str, int]:
        """Period in ticks of each synchronous sensor."""
        tables = self.areas["vehicles"].tables
        periods = {s: int(tables[s].header[PERIOD]) for s in self.sensors}
        return {s: p for s, p in periods.items() if p > 0}

    def _ask_sensors(self, tick: int) -> None:
        due = [s for s, period in self._periods().items() if tick % period == 0]
        for s in due:
            with suppress(posix_ipc.BusyError):  # a late answer to an earlier question
                while True:
                    self._done[s].acquire(0)
            self.areas["vehicles"][s].header[DUE] = tick
            self._due[s].release()
        if self.speed == 0.0:
            for s in due:
                self._await_sensor(s)

    def _await_sensor(self, sensor: str) -> None:
        header = self.areas["vehicles"][sensor].header
        limit = time.monotonic() + self.sim.config.network.lockstep_timeout
        while time.monotonic() < limit:
            try:
                self._done[sensor].acquire(0.02)
                return
            except posix_ipc.BusyError:
                if header[PERIOD] == 0:
                    return
                if not alive(int(header[OWNER]), int(header[OWNER_START])):
                    break
        self._sensors_late += 1
        header[PERIOD] = 0  # free until an emulator asks to be waited for again

    # -- commands --------------------------------------------------------------------------------

    def _take_commands(self) -> None:
        for kind, payload in self.commands.pop_all():
            arguments = msgpack.unpackb(payload)
            match kind:
                case Command.ACTUATE:
                    if arguments[0] in self.sim.occupants:
                        self.sim.command(arguments[0], arguments[1])
                        self.watchdog.fed(arguments[0], self.sim.tick)
                case Command.SOUND:
                    self._sound(*arguments)
                case Command.RELEASE:
                    self._release(*arguments)
                case Command.ENTER:
                    self._enter(*arguments)
                case Command.LEAVE:
                    self._leave(arguments[0])
                case Command.CONTROL:
                    self._control(*arguments)

    def _enter(
        self, row: int, name: str, model: str, position: list[float], attitude: list[float], lockstep: int
    ) -> None:
        if row not in self.sim.occupants:
            self.sim.enter(name, model, position, attitude, row)
        self.lockstep.pop(row, None)
        if lockstep:
            self.lockstep[row] = lockstep
        self.watchdog.watch(row, name, self.sim.tick)
        self._roster(row, present=True)
        self._publish()  # its state before its presence: a reader between the two sees no body without a state
        self._publish_identity()

    def _leave(self, row: int) -> None:
        if row in self.sim.occupants:
            self._roster(row, present=False)
            self.sim.leave(row)
        self.lockstep.pop(row, None)
        self.watchdog.forget(row)
        self.fences.forget(row)
        self._faults[row] = 0
        self.areas["vehicles"]["sensor_faults"].publish(self._faults, self.sim.tick)
        self._publish_identity()
        self._publish()

    def _roster(self, row: int, present: bool) -> None:
        if self._started:
            occupant = self.sim.occupants[row]
            self._emit(
                Event.ROSTER, [self.sim.time_ns, row, occupant.name, occupant.model.name, occupant.model.type, present]
            )

    def _sound(self, row: int, item: list[Any], number: int) -> None:
        """An acoustic request as it stands on the wire."""
        if row not in self.sim.occupants:
            return
        kind, *values = item
        try:
            if kind == Request.PING:
                self.sim.ping(row, *values[:4], number=number)
            elif kind == Request.SEND:
                to, payload, level, at = values[:4]
                self.sim.send(row, payload, to, level, at, number=number)
            else:
                self.sim.range_request(row, *values[:3], number=number)
        except ValueError as error:
            self._emit(Event.REFUSED, [row, number, str(error)])

    def _release(self, tick: int, answers: list[Any]) -> None:
        if not self._waiting or tick != self.sim.tick:
            return
        for row, command, requests in answers:
            if row not in self.sim.occupants:
                continue
            if command is not None:
                self.sim.command(row, command)
            self.watchdog.fed(row, self.sim.tick)
            for item, number in requests:
                self._sound(row, item, number)
        self._waiting = False

    def _control(self, number: int, verb: str, argument: Any) -> None:
        text = ""
        ended = self.state is RunState.ENDED
        if verb in BODY_VERBS:
            self._on_body(number, verb, *argument)
            return
        if verb == "shutdown":
            self._shutdown = True
        elif ended and verb != "speed":
            self._emit(Event.REPLY, [number, False, "the run has ended; start the server again for another", {}])
            return
        elif verb in ("start", "resume"):
            self._set_state(RunState.RUNNING)
        elif verb == "stop":
            self._set_state(RunState.STOPPED)
        elif verb == "pause":
            self._set_state(RunState.PAUSED)
        elif verb == "speed":
            self.speed, self._deadline = float(argument), 0.0
            text = f"speed {self.speed:g}" if self.speed else "as fast as possible"
        elif verb == "step":
            if self.state is RunState.RUNNING:
                self._emit(Event.REPLY, [number, False, "the simulation runs; pause it before you step", {}])
                return
            self.budget = int(argument)
            self._set_state(RunState.RUNNING)
        self._emit(
            Event.REPLY, [number, True, text or f"{self.state.name.lower()} at {self.sim.time_ns * 1e-9:.3f} s", {}]
        )

    def _on_body(self, number: int, verb: str, name: str, *arguments: Any) -> None:
        """A verb on one body."""
        row = next((k for k, o in self.sim.occupants.items() if o.name == name), None)
        if row is None:
            present = ", ".join(o.name for o in self.sim.occupants.values())
            self._emit(Event.REPLY, [number, False, f"'{name}' is not in the simulation; present: {present}", {}])
            return
        try:
            if verb == "fault":
                self.sim.fail(row, *arguments)
            elif verb == "sensor":
                self._sensor_fault(row, *arguments)
            elif verb == "push":
                self.sim.push(row, *arguments)
            else:
                self.sim.allocate(row, np.array(arguments[0], float))
        except ValueError as error:
            self._emit(Event.REPLY, [number, False, f"{verb} '{name}': {error}", {}])
            return
        self._emit(Event.REPLY, [number, True, f"{verb} '{name}' from {self.sim.time_ns * 1e-9:.3f} s on", {}])

    def _sensor_fault(self, row: int, sensor: str, fault: str, amount: float | str) -> None:
        if sensor not in self.sensors:
            raise ValueError(f"this run has no sensor '{sensor}'; it has {', '.join(self.sensors) or 'none'}")
        kinds = {f.name.lower(): f for f in SensorFault}
        if fault not in kinds:
            raise ValueError(f"there is no fault '{fault}'; faults are {', '.join(kinds)}")
        k = self.sensors.index(sensor)
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
        self.areas["vehicles"]["sensor_faults"].publish(self._faults, self.sim.tick)

    def _wet(self, row: int, k: int, compartment: str) -> float:
        """Bits of the wet compartments of a body, with one more."""
        leak = self.sim.config.emulators.leak
        assert leak is not None
        if compartment not in leak.names:
            raise ValueError(f"there is no compartment '{compartment}'; there are {', '.join(leak.names)}")
        had = int(self._faults["amount"][row, k]) if self._faults["kind"][row, k] == SensorFault.WET else 0
        return float(had | 1 << leak.names.index(compartment))

    def _set_state(self, state: RunState) -> None:
        if state is self.state:
            return
        self.state = state
        if state is RunState.RUNNING:
            self._deadline = 0.0
            self._factor_mark = (time.monotonic(), self.sim.time_ns)
            if not self._started:
                self._started = True
                for row in self.sim.rows:
                    self._roster(row, present=True)
        else:
            self.budget = None
        self._emit(Event.RUN, [int(state), self.sim.time_ns])
        self._publish()

    # -- what others see ---------------------------------------------------------------------------

    def _emit(self, event: Event, payload: list[Any]) -> None:
        data = msgpack.packb(payload)
        while not self.events.push(event, data):
            if self.speed > 0.0 and event is Event.LOG:
                self.events.drop()
                return
            if os.getppid() != self._parent:
                return
            os.eventfd_write(self.events_fd, 1)
            time.sleep(0.0005)
        os.eventfd_write(self.events_fd, 1)

    def _publish(self) -> None:
        sim, tick = self.sim, self.sim.tick
        vehicles, simulation = self.areas["vehicles"], self.areas["simulation"]
        state, actuation = vehicles["state"].begin(), vehicles["actuation"].begin()
        sim.publish(state, actuation)
        vehicles["state"].end(tick)
        vehicles["actuation"].end(tick)
        sim.live_signals(simulation["signals"].begin())
        simulation["signals"].end(tick)
        self._publish_weather()
        self._publish_clock()

    def _publish_weather(self) -> None:
        table = self.areas["simulation"]["weather"]
        now = self.sim.weather
        # whole records: each field by itself costs a view of its own
        table.begin()[0] = (tuple(self.sim.current()), now.state[W_WIND], now.wind[1], -now.state[W_LEVEL])
        table.end(self.sim.tick)

    def _publish_clock(self) -> None:
        now = time.monotonic()
        wall, since = now - self._factor_mark[0], self.sim.time_ns - self._factor_mark[1]
        if wall >= 1.0:
            self._factor = since * 1e-9 / wall
            self._factor_mark = (now, self.sim.time_ns)
        sent, heard, live = self.sim.counters
        identity = self.sim.identity
        buoys = int(((identity["type"] == 2) & (identity["present"] == 1)).sum())
        table = self.areas["simulation"]["clock"]
        table.begin()[0] = (
            self.sim.tick, self.sim.time_ns, self.sim.time_ns // 100_000, int(self.state), self.speed, self._factor,
            self._late, self._lateness, self._lateness_max, self._slipped, len(self.sim.occupants) - buoys, buoys,
            live, sent, heard, self.events.dropped, self._sensors_late,
        )  # fmt: skip
        table.end(self.sim.tick)

    def _publish_world(self) -> None:
        config, a = self.sim.config, self.sim.config.acoustics
        table = self.areas["simulation"]["world"]
        w = table.begin()[0]
        w["step_ns"], w["seed"] = self.sim.step_ns, self.sim.seed
        w["duration_ns"] = round(config.time.duration * 1e9)
        w["sound_speed"], w["spreading"], w["ambient_noise"] = a.sound_speed, a.spreading, a.ambient_noise
        w["absorption"] = a.absorption if a.absorption_model == "constant" else np.nan
        w["density"], w["gravity"] = config.world.density, config.world.gravity
        w["origin"] = (config.world.latitude, config.world.longitude)
        table.end(self.sim.tick)
        self._publish_identity()

    def _publish_identity(self) -> None:
        vehicles = self.areas["vehicles"]
        vehicles["identity"].publish(self.sim.identity, self.sim.tick)
        vehicles["geometry"].publish(self.sim.geometry, self.sim.tick)

    def _log(self, tick: int) -> None:
        vehicles = self.areas["vehicles"]
        rows = np.array(self.sim.rows, np.int64)  # also where there is none
        state, actuation = (vehicles[t].latest for t in ("state", "actuation"))
        sensors: dict[str, list[bytes]] = {}
        for s in self.sensors:
            values = vehicles[s].snapshot()[1]
            new = np.flatnonzero((values["sequence"] != self._sequences[s]) & (values["sequence"] > 0))
            if len(new):
                self._sequences[s][new] = values["sequence"][new]
                sensors[s] = [new.tobytes(), values[new].tobytes()]
        self._emit(Event.LOG, [tick, rows.tobytes(), state[rows].tobytes(), actuation[rows].tobytes(), sensors])


def main() -> None:
    """Entry point of the process; arguments come from the supervisor."""
    parser = argparse.ArgumentParser()
    for name in ("--config", "--name", "--seed", "--commands-fd", "--events-fd", "--pace", "--duration", "--log"):
        parser.add_argument(name)
    a = parser.parse_args()
    try:
        simulation = Simulation(load(Path(a.config)), int(a.seed))
    except WaveSimError as error:
        sys.stderr.write(f"wavesim: {error}\n")
        sys.exit(error.exit_code)
    engine = Engine(simulation, a.name, int(a.commands_fd), int(a.events_fd), bool(a.log))
    if a.pace:
        engine.speed = float(a.pace)
    if a.duration:
        engine.end_tick = round(float(a.duration) * 1e9 / simulation.step_ns)
    _compile(simulation)
    os.eventfd_write(engine.events_fd, 1)
    engine.run()
    sys.exit(0)


def _compile(simulation: Simulation) -> None:
    """Load (or, the first time, compile) every kernel before the first tick is due."""
    twin = Simulation(simulation.loaded, simulation.seed)
    twin.enter_residents()
    twin.advance(1)
    twin.take_signals()
    twin.state()
    twin.live_signals(twin.new_signals_table())


if __name__ == "__main__":
    main()
