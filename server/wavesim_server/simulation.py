"""The engine as a library. It advances bodies, water and sound together, without a network or files.

    from wavesim_server import Simulation
    sim = Simulation.from_config("config.xml")
    row = sim.enter("lauv")
    sim.command(row, {"propeller": 10.0})
    sim.advance(250)
    print(sim.state()["p_WB_W"][row])

Each method checks its arguments before it changes anything. Invalid arguments raise InvalidArgument or ConfigError and leave
the simulation unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from wavesim_sdk import arguments, frames
from wavesim_sdk.actuators import ACTUATOR_FAULTS, actuator_index, fault_amount, order_command
from wavesim_sdk.algebra import vecmat
from wavesim_sdk.arrays import Floats, Record
from wavesim_sdk.errors import ConfigError, InvalidArgument, UnknownName
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch
from wavesim_sdk.tables import ACTUATOR_FAULT, GEOMETRY, IDENTITY, BodyType
from wavesim_server import seabed, tick
from wavesim_server.acoustics import noise_sources
from wavesim_server.acoustics.channel import AcousticChannel, EmissionRequest
from wavesim_server.argument_checks import MAX_COORDINATE, MAX_FORCE, checked_numbers, checked_ticks, checked_velocity
from wavesim_server.contacts import Contacts
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics.bodies import TickScratch
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.dynamics.model_compiler import free_dofs
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.entry_checks import EntryChecker
from wavesim_server.environment.weather_model import WeatherModel
from wavesim_server.line_system import LineSystem
from wavesim_server.occupants import Occupant, Occupants
from wavesim_server.result_tables import ResultTables
from wavesim_server.snapshots import Snapshot, capture, read_state
from wavesim_server.start_clearance import StartClearance
from wavesim_server.stratification import Stratification
from wavesim_server.threads import TickThreads
from wavesim_server.tick_executor import TickExecutor
from wavesim_world.config import BodyConfig, LoadedConfig, Model, load
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.ocean.bed import sea_bed
from wavesim_world.ocean.water import Water

__all__ = ["Simulation"]

NO_FRONTS = FrontBatch(np.zeros(0, WAVEFORM.dtype), np.zeros(0, FRONT.dtype), 0)


class Simulation:
    """All bodies, the sea and the sound, advanced tick by tick.

    ``threads`` is the number of threads for large fleets; it does not change the results.
    """

    def __init__(self, loaded: LoadedConfig, seed: int | None = None, threads: int = 1) -> None:
        if not isinstance(loaded, LoadedConfig):
            raise InvalidArgument(
                "a Simulation needs the result of wavesim_world.config.load or load_text; a Lab also accepts a file"
            )
        config = loaded.config
        self.loaded, self.config = loaded, config
        self.seed = config.seed if seed is None else seed
        if not 0 <= self.seed <= 2**53:
            raise InvalidArgument(f"invalid seed {seed}: use an integer from 0 to 2**53")
        self.step_ns = round(config.time.step * 1e9)
        self.tick = 0
        self._push_ends: dict[int, int] = {}  # tick at which the push on the body in a row ends
        self.capacity = capacity = config.shared.vehicles
        step = self.step_ns * 1e-9
        self.fleet = FleetDynamics(capacity, step, config.world, config.time.integrator)
        self.water = Water(loaded)
        self.weather_model = WeatherModel(loaded, self.water, capacity, self.seed)
        self._occupants = Occupants(config.fleet.bodies, capacity)
        self.occupants = self._occupants.by_row
        self.stratification = Stratification(
            config.world, self.water, self.fleet, self.occupants, self.weather_model.weather.buoyancy_volumes
        )
        self._scratch = TickScratch(
            np.zeros(capacity, np.int64),
            np.zeros((capacity, 3)),
            np.zeros((capacity, B.RIGID_ROWS)),
            np.zeros(capacity, np.int64),
            np.zeros(3, np.int64),
        )
        self._single_scratch = self._scratch._replace(order=np.zeros(1, np.int64), counters=np.array([1, 0, 0]))
        self.contacts = Contacts(loaded, self.fleet, self.occupants, self._scratch)
        bed, net = seabed.make_bed(loaded)
        self._start_clearance = StartClearance(self.contacts.obstacle_names, bed, net, self.contacts.memory.obstacles)
        self.channel = AcousticChannel(loaded, self.water, capacity, step, self.seed, self.weather_model.wind.mean)
        self.channel.set_sea(0.0, self.weather_model.weather.sea, self.weather_model.weather.tide)
        self.identity = np.zeros(capacity, IDENTITY.dtype)
        self.geometry = np.zeros(capacity, GEOMETRY.dtype)
        self.actuator_faults = np.zeros(capacity, ACTUATOR_FAULT.dtype)
        self.has_new_actuator_faults = True  #: whether the faults have changed since they were last published
        self._entry_checker = EntryChecker(loaded, self.fleet, self.weather_model, self.channel, self._start_clearance)
        self._entry_checker.check_configuration()
        self.line_system = LineSystem(
            config.fleet.line,
            {name: row for name, (row, _) in self._occupants.reserved.items()},
            lambda row: self.fleet.vehicle_type(loaded.model(config.fleet.bodies[row].model)).compiled.params,
            config.world,
            step,
            lambda: sea_bed(loaded),
        )
        self.line_system.lay_anchored_lines(self.fleet)
        self.tick_executor = TickExecutor(
            self.fleet,
            self.weather_model,
            self.contacts,
            self.line_system,
            self.channel,
            seabed.SeaBed(bed, net, np.zeros(capacity, np.int64)),
            self._scratch,
            threads,
        )
        self.results = ResultTables(
            self.fleet, self.contacts, self.occupants, self._scratch, self.line_system, self.tick_executor.packed_state
        )
        self._entry_checker.check_common_start()

    @classmethod
    def from_config(cls, path: str | Path, seed: int | None = None) -> Simulation:
        """Create a simulation from a configuration file and add all bodies that do not need a client."""
        simulation = cls(load(path), seed)
        simulation.enter_residents()
        return simulation

    @property
    def time_ns(self) -> int:
        """Current simulation time in nanoseconds."""
        return self.tick * self.step_ns

    @property
    def time_s(self) -> float:
        """Current simulation time in seconds."""
        return self.time_ns * 1e-9

    # -- bodies ------------------------------------------------------------------------------

    def enter_residents(self) -> None:
        """Add all bodies in the configuration that do not have a client."""
        for name, (_, body) in self._occupants.reserved.items():
            if body.client == "none":
                self.enter(name)

    def row_of(self, name: str) -> int | None:
        """Return the row of a body in the simulation, or None if the body is absent."""
        return self._occupants.row_of(name)

    def enter(
        self,
        name: str,
        model: str = "",
        position: Sequence[float] = (0.0, 0.0, 0.0),
        attitude: Sequence[float] = (0.0, 0.0, 0.0),
        row: int | None = None,
        variant: Model | None = None,
        generation: int = 0,
    ) -> int:
        """Add a body and return its row. The body is either one in the configuration, selected by name, or a new body
        with a given model.

        ``variant`` is a model object to use instead of a model name, for example one of many in a study (see
        :mod:`wavesim_server.study`). ``generation`` numbers the bodies that have used a row; 0 selects the next number.
        Raises InvalidArgument or ConfigError if the body cannot be added; in that case, the simulation is unchanged.
        """
        row = self._occupants.free_row(name, row)
        if name in self._occupants.reserved:
            entry = self._entry_checker.prepare_configured(self._occupants.reserved[name][1])
        else:
            kind = variant or self._model(str(model))
            entry = self._entry_checker.prepare_new(kind, position, attitude, variant is None)
        beside = self._start_clearance.overlapping_row(
            entry.vehicle_type.model, entry.position, entry.attitude, self.fleet
        )
        if beside is not None:
            raise InvalidArgument(f"'{name}' would start inside '{self.occupants[beside].name}'")
        self.line_system.check_reach(row, entry.position, frames.quaternion(*entry.attitude), self.fleet)
        hydrophones = self.channel.hydrophones
        suite: Sequence[InstrumentConfig] = ()
        if hydrophones is not None:
            model_ = entry.vehicle_type.model
            suite = self.loaded.suite(entry.body) if entry.body else self.loaded.suite_of_model(model_)
            hydrophones.check_room(suite)
        # nothing below this line can fail
        kind, transducer = entry.vehicle_type.model, entry.transducer
        mooring = entry.body.mooring if entry.body else None
        self.fleet.add(
            row, entry.vehicle_type, entry.position, entry.attitude, mooring, self.line_system.has_lines(row)
        )
        self.weather_model.add(row, name, kind, entry.operators)
        self._occupants.add(row, Occupant(name, kind, transducer, entry.vehicle_type.actuators))
        self._refresh_surroundings(row)
        if entry.body is not None:
            self._set_initial_motion(row, entry.body, entry.commands, entry.velocity)
        self.line_system.enter(row, self.fleet)
        self._scratch.faults[row] = 0
        self.contacts.add(row)
        self._reset_last_finite(row)
        generation = generation or int(self.identity[row]["generation"]) + 1
        if self.actuator_faults[row]["kind"].any():
            self.actuator_faults[row], self.has_new_actuator_faults = 0, True
        self.identity[row] = (1, BodyType[kind.type.upper()], name.encode(), kind.name.encode(), generation)
        lever = transducer.position if transducer else (np.nan,) * 3
        self.geometry[row] = (shape_of(kind).size, kind.mass.value, lever)
        self._scratch.transducer_levers[row] = transducer.position if transducer else 0.0
        if entry.body is not None and entry.body.radiated_noise is not None:
            self.channel.add_noise_source(row, name, entry.body.radiated_noise, entry.vehicle_type, self.time_s)
            self._place_noise_source(row)
        if transducer is not None and entry.acoustics is not None:
            self.channel.add(row, name, transducer, entry.acoustics, self.time_s)
            self._place_transducer(row)
            self.channel.start_pinger(row, self.time_s)
        if hydrophones is not None:
            hydrophones.add(row, name, suite, self.time_s)
            self._place_hydrophones(row)
        return row

    def _model(self, name: str) -> Model:
        try:
            return self.loaded.model(name)
        except ConfigError as error:
            raise UnknownName(error.message) from None

    def _set_initial_motion(
        self, row: int, body: BodyConfig, commands: list[float | None] | None, velocity: Sequence[float]
    ) -> None:
        """Set the initial motion of a body in the configuration."""
        b = self.fleet.body(row)
        if commands is None:
            b[B.NU : B.NU + 6] = *body.velocity, *body.angular_velocity
            return
        # the configured speed is through the water or, for an aircraft, through the air; the current does not move
        # degrees of freedom that the model holds fixed
        model = self.occupants[row].model
        around = B.V_AF_W if model.aerodynamics is not None else B.V_WF_W
        v = vecmat(b[around : around + 3], frames.rotation(b[B.QW : B.QW + 4])) + np.array(velocity)
        free = free_dofs(model)
        for k in range(3):
            b[B.NU + k] = v[k] if k in free else 0.0
        self.fleet.command(row, commands)
        self.fleet.settle_actuators(row)

    def leave(self, row: int) -> None:
        """Remove a body. Its transducer stops sending; its signals in transit continue to travel."""
        occupant = self._occupants.in_row(row)
        self.line_system.leave(row)
        self._push_ends.pop(row, None)
        self.fleet.remove(row)
        self.weather_model.remove(row, occupant.model)
        self.channel.remove(row)
        if self.channel.hydrophones is not None:
            self.channel.hydrophones.remove(row)
        self.identity[row]["present"] = 0
        self._occupants.remove(row)
        self.contacts.remove()

    def _refresh_surroundings(self, row: int) -> None:
        self.stratification.refresh([row], self.time_s)
        self.weather_model.refresh(row, self.fleet, self.tick, self.time_s)

    def _reset_last_finite(self, row: int) -> None:
        """After a change that was not caused by a contact, reset the last finite state of a body to its current state,
        and wake the body.
        """
        self._scratch.last_finite[row] = self.fleet.body(row)[: B.RIGID_ROWS]
        self.contacts.wake(row)

    def _place_transducer(self, row: int) -> None:
        """Set the transducer's positions in this tick and in the previous tick to the current position, so that its
        path does not contain a jump.
        """
        self._single_scratch.order[0] = row
        tick.update_transducers(self.fleet.arrays, self._single_scratch, self.channel.table, self.tick)
        places = self.channel.medium.places
        places[(self.tick + 1) & 1, row] = places[self.tick & 1, row]
        self._place_noise_source(row)
        self._place_hydrophones(row)

    def _place_noise_source(self, row: int) -> None:
        """Set the positions of the body's noise source in this tick and in the previous tick to the current one."""
        if row in noise_sources.active_rows(self.channel.medium):
            noise_sources.place_source(self.channel.medium, row, *self._motion(row))

    def _motion(self, row: int) -> tuple[Floats, Floats, Floats]:
        """Return the position, the attitude and the velocity of a body; the velocity is u v w p q r in B."""
        b = self.fleet.body(row)
        return b[B.PX : B.PX + 3], b[B.QW : B.QW + 4], b[B.NU : B.NU + 6]

    def _place_hydrophones(self, row: int) -> None:
        """Set the positions of the body's hydrophones in this tick and in the previous tick to the current ones."""
        if self.channel.hydrophones is not None:
            self.channel.hydrophones.place(row, *self._motion(row))

    @property
    def rows(self) -> list[int]:
        """The occupied rows, in ascending order."""
        return sorted(self.occupants)

    def suite_in_row(self, row: int) -> Sequence[InstrumentConfig]:
        """Return the configured instruments of the body in a row."""
        occupant = self.occupants[row]
        return self.loaded.suite_by_name(occupant.name, occupant.model.name)

    # -- client actions ----------------------------------------------------------------------

    def command(self, row: int, values: Sequence[float | None] | Mapping[Any, float]) -> None:
        """Set actuator commands, given by position in the model's order or by name; None keeps the previous command.

        Raises InvalidArgument if any command is invalid; in that case, no command has any effect.
        """
        occupant = self._occupants.in_row(row)
        self.fleet.command(row, order_command(occupant.actuators, values))

    def fail(self, row: int, actuator: int | str, fault: str, amount: float | str = 0.0) -> None:
        """Set a fault on an actuator, given by its name or by its position in the model's order.

        The faults are ``stuck``, ``frozen`` for ``amount`` s, ``lost``, ``reduced`` to the fraction ``amount``,
        ``reversed``, or ``none`` to repair the actuator. If ``amount`` is a string, it may contain a unit (`5 s`).
        """
        occupant = self._occupants.in_row(row)
        try:
            position = actuator_index(occupant.actuators, actuator)
            number = fault_amount(occupant.actuators[position], fault, amount)
            self.fleet.set_actuator_fault(row, position, fault, number, self.time_s)
            known, self.has_new_actuator_faults = self.actuator_faults[row], True
            known["kind"][position] = 0 if fault == "none" else ACTUATOR_FAULTS.index(fault) + 1
            known["until"][position] = self.time_s + number if fault == "frozen" else np.inf
        except ValueError as error:
            kind = UnknownName if isinstance(error, UnknownName) else InvalidArgument
            raise kind(f"'{occupant.name}': {error}") from None

    def allocate(self, row: int, matrix: Any) -> None:
        """Set the thruster allocation matrix (6, thrusters) of one body. It contains the force and torque in B per unit
        thrust.
        """
        count = len(self._occupants.in_row(row).model.thruster)
        if not count:
            raise InvalidArgument(f"'{self.occupants[row].name}' has no thrusters")
        wanted = checked_numbers(f"a 6 x {count} allocation matrix", matrix, 6 * count, MAX_FORCE, (6, count))
        self.fleet.allocate(row, wanted.reshape(6, count))
        self.contacts.wake(row)

    def push(
        self,
        row: int,
        force: Sequence[float],
        torque: Sequence[float] = (0.0, 0.0, 0.0),
        duration: float | None = None,
    ) -> None:
        """Apply an external force (N) and torque (N m) in B at the origin of B. They act until they are changed, or for
        ``duration`` seconds, rounded up to whole ticks.
        """
        self._occupants.in_row(row)
        if duration is not None:
            duration = arguments.number("duration", duration)
            if not 0.0 <= duration <= MAX_FORCE:
                raise InvalidArgument(f"a push must last from 0 to {MAX_FORCE:g} s, got {duration:g}")
        values = *checked_numbers("a force", force, 3, MAX_FORCE), *checked_numbers("a torque", torque, 3, MAX_FORCE)
        self.fleet.body(row)[B.EXTERNAL_WRENCH : B.EXTERNAL_WRENCH + 6] = values
        self._push_ends.pop(row, None)
        if duration is not None:
            self._push_ends[row] = self.tick + math.ceil(duration * 1e9 / self.step_ns - 1e-6)

    def _end_pushes(self, until: int) -> int:
        """End the pushes whose time is over. Return the tick at which the next one ends, at most ``until``."""
        for row in [row for row, end in self._push_ends.items() if end <= self.tick]:
            self.fleet.body(row)[B.EXTERNAL_WRENCH : B.EXTERNAL_WRENCH + 6] = 0.0
            del self._push_ends[row]
        return min((until, *self._push_ends.values()))

    def set_pose(
        self,
        row: int,
        position: Sequence[float] | None = None,
        attitude: Sequence[float] | None = None,
        velocity: Sequence[float] | None = None,
    ) -> None:
        """Move a body by setting its position in W (m), its roll, pitch and yaw (rad), and its velocity over ground u v
        w p q r (m/s, rad/s).

        None keeps the current value. A body that was frozen because its state diverged (NaN or infinity) moves again.
        """
        self._occupants.in_row(row)
        p = None if position is None else checked_numbers("a position", position, 3, MAX_COORDINATE)
        e = None if attitude is None else checked_numbers("an attitude", attitude, 3, MAX_COORDINATE)
        nu = None if velocity is None else checked_velocity(velocity)
        b = self.fleet.body(row)
        q = b[B.QW : B.QW + 4] if e is None else frames.quaternion(*e)
        self.line_system.check_reach(row, b[B.PX : B.PX + 3] if p is None else p, q, self.fleet)
        if p is not None:
            b[B.PX : B.PX + 3] = p
        b[B.QW : B.QW + 4] = q
        if nu is not None:
            b[B.NU : B.NU + 6], b[B.MEMORY_STATE : B.STATE_ROWS] = nu, 0.0
        b[B.CLEARANCE] = 0.0
        if p is not None or e is not None:
            self.line_system.enter(row, self.fleet)
        self._scratch.faults[row] = 0
        self.contacts.relist()
        self._refresh_surroundings(row)
        self._reset_last_finite(row)
        self._place_transducer(row)

    def set_weather(self, **values: float | None) -> None:
        """Set the mean current, wind and waves from now on.

        ``current_north``, ``current_east``, ``current_down`` and ``wind_speed`` are in m/s; ``wind_direction`` is the
        direction in rad from which the wind blows; ``wave_height`` is the significant height in m; ``wave_peak`` is the
        peak frequency in rad/s; and ``wave_direction`` is the direction in rad in which the waves travel. Raises
        InvalidArgument if a value is invalid, or if a body would be numerically unstable in this current with this time
        step.
        """
        current, wind, waves = self.weather_model.with_changes(**values)
        try:
            self.fleet.set_current(current)
        except ConfigError as error:
            raise InvalidArgument(error.message) from None
        self.weather_model.set_weather(self.time_s, current, wind, waves)
        self.channel.set_wind(self.weather_model.wind.mean)
        self.channel.set_sea(self.time_s, self.weather_model.weather.sea, self.weather_model.weather.tide)

    # -- sound -------------------------------------------------------------------------------

    def ping(
        self,
        row: int,
        frequency: float,
        level: float | None = None,
        at: int | None = None,
        code: int | None = None,
        duration: float | None = None,
        *,
        number: int = 0,
    ) -> None:
        """Send a pulse at the start of the next tick, or when the node's own clock shows ``at`` (ns).

        ``duration`` is the length of the pulse in s; by default, the transducer's pulse length applies.

        Raises InvalidArgument if the node cannot send the requested pulse.
        """
        self._check_transducer(row)
        self.channel.ping(row, frequency, code, duration, EmissionRequest(level, at, number, self.time_s))

    def send(
        self,
        row: int,
        payload: bytes,
        to: int = 0,
        level: float | None = None,
        at: int | None = None,
        duration: float | None = None,
        *,
        number: int = 0,
    ) -> None:
        """Send a packet to a modem address (0 = all modems). Raises InvalidArgument if the node cannot send it.

        ``duration`` is the length of the packet in s; by default, it follows from the modem's preamble and bit rate.
        """
        self._check_transducer(row)
        self.channel.send(row, payload, to, duration, EmissionRequest(level, at, number, self.time_s))

    def range_request(
        self,
        row: int,
        to: int,
        level: float | None = None,
        at: int | None = None,
        payload: bytes = b"",
        duration: float | None = None,
        *,
        number: int = 0,
    ) -> None:
        """Query the modem with the address ``to`` for its range. Raises InvalidArgument if the node cannot send the
        query.

        The query may have a payload, which the reply acknowledges. ``duration`` is as in :meth:`send`.
        """
        self._check_transducer(row)
        self.channel.range_request(row, to, payload, duration, EmissionRequest(level, at, number, self.time_s))

    def transmit(
        self,
        row: int,
        samples: Any,
        sampling_rate: float,
        level: float | None = None,
        at: int | None = None,
        scale: str = "rms",
        *,
        number: int = 0,
    ) -> None:
        """Play a sound: samples of one channel, for example a NumPy array of float32. Timing is as in :meth:`ping`.

        ``level`` is the rms source level in dB re 1 uPa at 1 m, whatever the scale of the samples; by default, it is
        that of the transducer. With ``scale="peak"``, it is the level of a sine between -1 and 1, and the samples are
        between -1 and 1.

        Hydrophones hear the samples. For all other purposes, the sound is a signal of kind 4 with the band that contains
        99 % of its energy: it interferes with other signals, and transducers lose it with the outcome `foreign`.

        Raises InvalidArgument if the node cannot play the sound: it lasts more than 60 s, its band is not within that
        of the transducer or reaches above 0.40 of the sampling rate, its level is above that of the transducer, or it
        contains a value that is not finite.
        """
        self._check_transducer(row)
        asked = EmissionRequest(level, at, number, self.time_s)
        self.channel.transmit(row, samples, sampling_rate, scale, asked)

    def listen(self, row: int, on: bool = True) -> None:
        """Make a transducer start receiving at the next tick, or stop receiving immediately.

        A transducer that does not receive does not answer queries either, and needs no computing time for receptions.
        When it starts to receive, it also receives those signals in transit whose wavefront has not yet passed it.
        """
        self._check_transducer(row)
        self.channel.listen(row, on, self.time_ns * 1e-9)

    def _check_transducer(self, row: int) -> None:
        if self._occupants.in_row(row).transducer is None:
            raise InvalidArgument(f"'{self.occupants[row].name}' has no transducer")

    # -- time --------------------------------------------------------------------------------

    def advance(self, ticks: int = 1) -> None:
        """Advance the simulation by whole ticks.

        Signals are collected; see :meth:`take_signals`. Raises InvalidArgument if the number of ticks is negative.
        """
        last, contacts = self.tick + checked_ticks(ticks), self.contacts.count
        self.contacts.sort_rows()
        while self.tick < last:
            until = last
            if period := self.stratification.period:
                if self.tick % period == 0:
                    self.stratification.refresh(self.rows, self.time_s)
                until = min(last, (self.tick // period + 1) * period)
            if self._push_ends:
                until = self._end_pushes(until)
            self.tick = self.tick_executor.advance(self.tick, until)
        if self.contacts.count != contacts or self.config.fleet.line:
            self._hold_diverged()

    def _hold_diverged(self) -> None:
        """Freeze bodies whose state diverged (NaN or infinity) in a contact.

        The tick checks for such bodies only before contacts, so it would freeze them only in the next tick. Until then,
        readers would see the diverged state.
        """
        if np.isfinite(self.fleet.blocks[:, : B.STATE_ROWS * LANES].sum()):
            return
        for row in self.occupants:
            b = self.fleet.body(row)
            if not np.isfinite(b[: B.STATE_ROWS]).all():
                b[: B.NU] = self._scratch.last_finite[row, : B.NU]
                b[B.NU : B.STATE_ROWS] = 0.0
                self._scratch.faults[row] = 1
                self._place_transducer(row)

    # -- snapshots ---------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Return the complete state at this tick. A simulation that continues from this state with :meth:`restore`
        produces bit-identical results.
        """
        return self._capture()

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot of this simulation, or of another one with the same configuration.

        A continued run that receives the same commands as the original run is bit-identical to the original run. Raises
        InvalidArgument if the snapshot belongs to another configuration or version; in that case, the simulation is
        unchanged.
        """
        self._put_back(snapshot)

    #: attributes that are not part of the state of the simulation
    _OUTSIDE: ClassVar[frozenset[str]] = frozenset()

    def _capture(self, **parts: Any) -> Snapshot:
        """Return a snapshot that also contains ``parts``."""
        return capture(self, {k: v for k, v in vars(self).items() if k not in self._OUTSIDE}, **parts)

    def _put_back(self, snapshot: Snapshot, *needed: str) -> dict[str, Any]:
        """Restore a snapshot, and return the parts that it contains in addition to the simulation.

        Raises InvalidArgument if one of the ``needed`` parts is absent.
        """
        parts = read_state(self, snapshot)
        if missing := [name for name in needed if name not in parts]:
            raise InvalidArgument(f"the snapshot has no {missing[0]}: it was made by a Simulation, not by a Lab")
        self.put_back(parts.pop("simulation"))
        return parts

    def put_back(self, state: Mapping[str, Any]) -> None:
        """Replace the state with one that :func:`~wavesim_server.snapshots.read_state` returned for this simulation."""
        threads = self.tick_executor.threads.count
        vars(self).update(state)
        self.tick_executor.threads = TickThreads(threads)
        self.has_new_actuator_faults = True

    def restart(self) -> None:
        """Reset the simulation to its beginning, with no bodies added yet."""
        Simulation.__init__(self, self.loaded, self.seed, self.tick_executor.threads.count)

    # -- published results -------------------------------------------------------------------

    def take_signals(self) -> tuple[Record, Record]:
        """Return the sent signals and the receptions since the last call, in chronological order."""
        return self.channel.take_records()

    def take_channel_states(self) -> Record:
        """Return the changes between a busy and an idle channel since the last call, in chronological order. Only
        transducers with ``carrier_sense`` report them.

        The columns are ``receiver`` (row of the body), ``busy`` (1 = busy, 0 = idle), ``time_ns`` (simulation time) and
        ``clock_ns`` (the node's own clock).
        """
        return self.channel.take_channel_states()

    def take_fronts(self) -> FrontBatch:
        """Return the waveforms and fronts at all hydrophones since the last call.

        After a return to a snapshot, the batch repeats the recent records, so that a reader can continue from it. If
        the fronts are not taken, the oldest ones are discarded and counted in ``lost``.
        """
        if self.channel.hydrophones is None:
            return NO_FRONTS._replace(time_ns=self.time_ns)
        return self.channel.take_fronts(self.time_ns)

    def take_meetings(self) -> list[tuple[int, int, str, float]]:
        """Return the contacts that have begun since the last call, in chronological order.

        Each item is (time in ns, row, partner, approach speed in m/s along the normal). A contact that resumes
        within one second is not reported again.
        """
        return self.contacts.take_meetings()

    def state(self) -> Record:
        """Return a copy of the state of all rows."""
        return self.results.motion()[0]

    def actuation(self) -> Record:
        """Return a copy of the actuation of all rows."""
        return self.results.motion()[1]

    @property
    def frozen_bodies(self) -> list[str]:
        """Names of bodies that were frozen because their state diverged (NaN or infinity)."""
        if not np.count_nonzero(self._scratch.faults):
            return []
        rows = np.flatnonzero(self._scratch.faults).tolist()
        return [self.occupants[row].name for row in rows if row in self.occupants]
