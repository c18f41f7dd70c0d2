"""The fleet: all bodies with their commands and faults, grouped into blocks by compiled model.

A body keeps its row in the tables as long as it exists; ``slots[row]`` is its slot in the blocks, which is LANES times
the number of the block, plus the number of the lane. Bodies of one model share their parameters. A body whose
coefficients change during the run (an allocation matrix, a parameter study) has its own parameters and its own block.
The cost of adding or removing a body does not depend on the number of bodies, and the slot of a removed body is reused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk import frames
from wavesim_sdk.actuators import Actuator, clipped_text
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.elementary import LEAST
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import integrators, registry
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.bodies import BodyArrays, ModelArrays
from wavesim_server.dynamics.model_compiler import CompiledModel, check_step_stability, compile_model
from wavesim_server.dynamics.sizes import FINS, LANES, SLOTS, TABLE_POINTS, THRUSTERS
from wavesim_server.identity_map import IdentityMap
from wavesim_server.row_pool import RowPool, aligned_zeros, grown_to
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model
from wavesim_world.config.model import Mooring
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.validation import check_model
from wavesim_world.config.world import Current, World

__all__ = ["FleetDynamics", "VehicleType", "shape_of"]

HOLD_FOREVER = math.inf


@device_function
def release_holds(
    blocks: Floats, slots: Ints, actuator_holds: Floats, setpoints: Floats, count: Ints, time: float
) -> None:
    """Keep the values of frozen actuators until their freeze ends, and then apply the commands to these actuators."""
    i = 0
    while i < count[0]:
        row, slot = int(actuator_holds[i, 0]), int(actuator_holds[i, 1])
        b, l = blocks[slots[row] // LANES], slots[row] % LANES
        if time < actuator_holds[i, 2]:
            b[(B.ACTUATOR_COMMAND + slot) * LANES + l] = b[(B.ACTUATOR_STATE + slot) * LANES + l]
            i += 1
        else:
            b[(B.ACTUATOR_COMMAND + slot) * LANES + l] = setpoints[row, slot]
            count[0] -= 1
            for k in range(3):
                actuator_holds[i, k] = actuator_holds[count[0], k]


@device_function
def average_shaft_speeds(
    blocks: Floats, slots: Ints, speed_averages: Ints, average_windows: Floats, feedback: Floats
) -> None:
    """Update the moving averages of reported shaft speeds. The columns of ``speed_averages`` (n, 4) are row, slot,
    window in ticks, and number of ticks in the average.
    """
    for i in range(speed_averages.shape[0]):
        row, slot, window, seen = speed_averages[i, 0], speed_averages[i, 1], speed_averages[i, 2], speed_averages[i, 3]
        value = blocks[slots[row] // LANES, (B.ACTUATOR_STATE + slot) * LANES + slots[row] % LANES]
        average_windows[i, seen % window] = value
        speed_averages[i, 3] = seen + 1
        n = min(window, seen + 1)
        total = 0.0
        for k in range(n):
            total += average_windows[i, k]
        feedback[row, slot] = total / n


@dataclass(frozen=True)
class VehicleType:
    """Compiled form of a body's model. It is created before the body is added, so that an invalid model is rejected
    before anything changes.
    """

    model: Model
    compiled: CompiledModel
    actuators: tuple[Actuator, ...]
    is_shared: bool  #: True if other bodies with the same model also use this compiled model


SLACK = 1e-9  #: excess over a limit that still counts as rounding error, as a fraction of the actuator's range


class ActuatorState:
    """Commands for one body, with their dead bands and motor laws, and the faults of the body's actuators."""

    def __init__(self, vehicle_type: VehicleType) -> None:
        self.vehicle_type, self.actuators, kind = vehicle_type, vehicle_type.actuators, vehicle_type.compiled
        # slot, limits, dead band, motor law, by position: plain numbers, which are faster one by one
        self.command_laws: list[tuple[int, float, float, float, float, float]] = []
        for a in self.actuators:
            (low, high), (offset, gain) = kind.limits[a.slot].tolist(), kind.motor_laws[a.slot].tolist()
            self.command_laws.append((a.slot, low, high, max(float(kind.dead_bands[a.slot]), LEAST), offset, gain))
        self.start_delays = {
            a.slot: float(kind.start_delays[a.slot]) for a in self.actuators if kind.start_delays[a.slot] > 0.0
        }
        self.commands = [a.rest_value for a in self.actuators]
        self.signs = [1.0] * len(self.actuators)
        self.clipped = [0] * len(self.actuators)  #: number of commands beyond the limits, for each actuator
        #: number of commands beyond the limits at which the next notice is due, for each actuator
        self.next_notice = [1] * len(self.actuators)

    def setpoint(self, position: int) -> tuple[int, float]:
        """Return the actuator's slot and the target value for a command. The target value is the command after the dead
        band and the motor law.
        """
        slot, _, _, dead, offset, gain = self.command_laws[position]
        value = self.signs[position] * self.commands[position]
        if abs(value) < dead:
            value = 0.0
        return slot, gain * value + (math.copysign(offset, value) if value else 0.0)


class FleetDynamics:
    """All bodies in a run."""

    model_ints: Ints
    params: Floats
    tables: Floats
    blocks: Floats
    block_heads: Ints
    average_windows: Floats
    actuator_holds: Floats

    def __init__(self, capacity: int, step: float, world: World, integrator: str = "rk4") -> None:
        if registry.load_error is not None:
            raise registry.load_error
        self.capacity, self.step, self.world = capacity, step, world
        self.integrator = integrators.integrator_index(integrator)
        self.slots = np.full(capacity, -1, np.int64)
        #: for each actuator, given as (row, position): the last command beyond its limits, and the number of such
        #: commands
        self._clipped: dict[tuple[int, int], tuple[float, int]] = {}
        self.blocks = np.zeros((0, B.SIZE))
        self.block_heads = np.zeros((0, B.HEAD_SIZE), np.int64)
        self.params = np.zeros((0, P.ROWS))
        self.model_ints = np.zeros((0, M.COLUMNS), np.int64)
        self.tables = np.zeros((1, 2, TABLE_POINTS))
        self.work = aligned_zeros(W.SIZE)
        self.setpoints = np.zeros((capacity, SLOTS))
        self.feedback = np.zeros((capacity, SLOTS))
        self.actuator_slots = np.zeros((capacity, SLOTS), np.int64)  # slots of the actuators, in the order of the model
        self.actuator_counts = np.zeros(capacity, np.int64)
        self.actuator_holds = np.zeros((16, 3))
        self.hold_count = np.zeros(1, np.int64)
        self.average_windows = np.zeros((0, 1))
        self._all_speed_averages: Ints = np.zeros((0, 4), np.int64)
        self._average_count = 0
        self.speed_averages = (
            self._all_speed_averages
        )  # entries in use: moving averages of shaft speeds, for `average_shaft_speeds`
        self._vehicle_types: IdentityMap[Model, VehicleType] = IdentityMap()
        self._model_rows: IdentityMap[Model, int] = IdentityMap()  # parameter row by model
        # bodies with their own parameters: parameter row, tables
        self._own_models: dict[int, tuple[int, list[int]]] = {}
        self._actuator_states: dict[int, ActuatorState] = {}
        self._model_pool, self._table_pool, self._block_pool = RowPool(), RowPool(), RowPool()
        self._table_pool.acquire()  # the first is for models without tables
        self._open_blocks: dict[int, dict[int, None]] = {}  # blocks of a model that have a free lane
        self._sequence: Ints | None = None

    # -- views -------------------------------------------------------------------------------

    @property
    def arrays(self) -> BodyArrays:
        """The arrays of all bodies, for kernels."""
        return BodyArrays(self.blocks, self.slots, self.block_heads, self.params)

    @property
    def models(self) -> ModelArrays:
        """Integers and tables for all models, for kernels."""
        return ModelArrays(self.model_ints, self.tables)

    def body(self, row: int) -> Floats:
        """Return the state and inputs of one body, as a view of B.ROWS numbers."""
        slot = self.slots[row]
        return self.blocks[slot // LANES].reshape(B.ROWS, LANES)[:, slot % LANES]

    def coefficients(self, row: int) -> Floats:
        """Return the parameters of one body, as a copy of P.ROWS numbers."""
        return self.params[self.block_heads[self.slots[row] // LANES, B.HEAD_MODEL]].copy()

    def actuators(self, row: int) -> tuple[Actuator, ...]:
        """Return the actuators of a body, in the order of its model."""
        return self._actuator_states[row].actuators

    @property
    def sequence(self) -> Ints:
        """The blocks, in the order of their models."""
        if self._sequence is None:
            used = np.flatnonzero(self.block_heads[:, B.HEAD_BODIES])
            self._sequence = used[np.argsort(self.block_heads[used, B.HEAD_MODEL], kind="stable")]
        return self._sequence

    # -- bodies ------------------------------------------------------------------------------

    def vehicle_type(self, model: Model, shared: bool = True) -> VehicleType:
        """Compile a model for a body. Raises ConfigError if the model cannot be simulated with this time step."""
        vehicle_type = self._vehicle_types.get(model) if shared else None
        if vehicle_type is None:
            if not shared:
                check_model(model)
            vehicle_type = VehicleType(
                model, compile_model(model, self.world, self.step, self.integrator), actuators_of(model), shared
            )
            if shared:
                self._vehicle_types[model] = vehicle_type
        return vehicle_type

    def set_current(self, current: Current) -> None:
        """Use a current from now on. Raises ConfigError, and changes nothing, if the model of a body would be unstable
        in this current with this time step.

        Models without a body are checked when their first body is added.
        """
        if current.max_speed > self.world.current.max_speed:
            used = {id(helm.vehicle_type): helm.vehicle_type for helm in self._actuator_states.values()}
            for vehicle_type in used.values():
                check_step_stability(
                    vehicle_type.compiled.params, vehicle_type.model, self.step, self.integrator, current.max_speed
                )
            for model in [m for m, form in self._vehicle_types.items() if id(form) not in used]:
                del self._vehicle_types[model]
        self.world = dataclasses.replace(self.world, current=current)

    def add(
        self,
        row: int,
        vehicle_type: VehicleType,
        position: Floats,
        attitude: Floats,
        mooring: Mooring | None,
        has_lines: bool = False,
    ) -> None:
        """Add a body to a row, at rest; ``has_lines`` states whether lines may be attached to the body."""
        if vehicle_type.is_shared:
            if vehicle_type.model not in self._model_rows:
                self._model_rows[vehicle_type.model] = self._add_model(vehicle_type.compiled)[0]
            kind = self._model_rows[vehicle_type.model]
        else:
            kind, tables = self._add_model(vehicle_type.compiled)
            self._own_models[row] = kind, tables
        self._assign_lane(row, kind)
        b = self.body(row)
        b[:] = 0.0  # the kernel moves empty lanes too
        b[B.PX : B.PX + 3] = position
        b[B.QW : B.QW + 4] = frames.quaternion(*attitude)
        b[B.ACTUATOR_STATE : B.ACTUATOR_STATE + SLOTS] = vehicle_type.compiled.initial_values
        b[B.ACTUATOR_COMMAND : B.ACTUATOR_COMMAND + SLOTS] = vehicle_type.compiled.rest_values
        b[B.ACTUATOR_EFFECT : B.ACTUATOR_EFFECT + THRUSTERS + FINS] = 1.0
        if mooring is not None:
            b[B.MOORING : B.MOORING_DAMPING + 1] = (*mooring.anchor, mooring.length, mooring.stiffness, mooring.damping)
        b[B.HAS_LINES] = float(has_lines)
        self._update_occupancy(row, +1)
        self.setpoints[row], self.feedback[row] = vehicle_type.compiled.rest_values, 0.0
        self.actuator_counts[row] = n = len(vehicle_type.actuators)
        self.actuator_slots[row, :n] = [a.slot for a in vehicle_type.actuators]
        self._actuator_states[row] = actuator_state = ActuatorState(vehicle_type)
        for slot, start in actuator_state.start_delays.items():
            self._hold_actuator(row, slot, start)
        for slot in np.flatnonzero(vehicle_type.compiled.averaging_windows > 0.0).tolist():
            self.feedback[row, slot] = vehicle_type.compiled.initial_values[slot]
            self._start_averaging(row, slot, max(1, round(vehicle_type.compiled.averaging_windows[slot] / self.step)))

    def remove(self, row: int) -> None:
        """Remove a body."""
        self._clear_lane(row)
        held = self.actuator_holds[: self.hold_count[0]]
        keep = held[held[:, 0] != row]
        self.actuator_holds[: len(keep)], self.hold_count[0] = keep, len(keep)
        # move the last entry to the free position
        for k in np.flatnonzero(self.speed_averages[:, 0] == row)[::-1].tolist():
            self._average_count -= 1
            self._all_speed_averages[k], self.average_windows[k] = (
                self._all_speed_averages[self._average_count],
                self.average_windows[self._average_count],
            )
            self.speed_averages = self._all_speed_averages[: self._average_count]
        self.slots[row] = -1
        for position in range(len(self._actuator_states.pop(row).actuators)):
            self._clipped.pop((row, position), None)
        if row in self._own_models:
            self._release_model(*self._own_models.pop(row))

    def override_parameters(self, row: int, parameters: dict[int, float]) -> None:
        """Change parameters of one body, given as {parameter row: value}; the body then has its own parameters."""
        if row not in self._own_models:
            body, old = self.body(row).copy(), int(self.block_heads[self.slots[row] // LANES, B.HEAD_MODEL])
            self._clear_lane(row)
            kind = self._acquire_model_row()
            self.model_ints[kind], self.params[kind] = (
                self.model_ints[old],
                self.params[old],
            )  # its tables belong to the model
            self._own_models[row] = kind, []
            self._assign_lane(row, kind)
            self.body(row)[:] = body
            self._update_occupancy(row, +1)
        kind = self._own_models[row][0]
        for index, value in parameters.items():
            self.params[kind, index] = value

    # -- models and slots --------------------------------------------------------------------

    def _acquire_model_row(self) -> int:
        kind = self._model_pool.acquire()
        self.model_ints, self.params = grown_to(self.model_ints, kind + 1), grown_to(self.params, kind + 1)
        return kind

    def _add_model(self, kind: CompiledModel) -> tuple[int, list[int]]:
        """Add the parameters of a compiled model. Return the row of the model and the rows of its tables."""
        row, tables = self._acquire_model_row(), [self._table_pool.acquire() for _ in kind.tables]
        self.tables = grown_to(self.tables, max(tables, default=0) + 1)
        for place, table in zip(tables, kind.tables, strict=True):
            self.tables[place] = table
        ints = kind.ints.copy()
        for k in range(M.ACTUATOR_TABLES, M.COLUMNS):
            if ints[k] >= 0:
                ints[k] = tables[ints[k]]
        self.model_ints[row], self.params[row] = ints, kind.params
        return row, tables

    def _release_model(self, kind: int, tables: list[int]) -> None:
        self._model_pool.release(kind)
        self._open_blocks.pop(kind, None)
        for table in tables:
            self._table_pool.release(table)

    def _assign_lane(self, row: int, kind: int) -> None:
        """Assign a free lane to the body in a row, in one of the blocks of the body's model."""
        blocks = self._open_blocks.setdefault(kind, {})
        if not blocks:
            block = self._block_pool.acquire()
            if block >= len(self.blocks):
                old = len(self.blocks)
                self.blocks, self.block_heads = grown_to(self.blocks, block + 1), grown_to(self.block_heads, block + 1)
                self.blocks[old:, B.QW * LANES : (B.QW + 1) * LANES] = 1.0
            self.block_heads[block] = 0, kind, 0
            blocks[block] = None
        block = next(iter(blocks))
        present = self.blocks[block, B.PRESENT * LANES : (B.PRESENT + 1) * LANES]
        self.slots[row] = block * LANES + int(np.argmin(present))

    def _update_occupancy(self, row: int, by: int) -> None:
        """Update the number of bodies in the block of a row: +1 after a body has been added, -1 before a body is
        removed.
        """
        block, b = int(self.slots[row]) // LANES, self.body(row)
        head = self.block_heads[block]
        b[B.PRESENT] = float(by > 0)
        head[B.HEAD_BODIES] += by
        head[B.HEAD_MOORED] += by * int(b[B.MOORING + 4] > 0.0 or b[B.HAS_LINES] > 0.0)
        blocks = self._open_blocks.setdefault(int(head[B.HEAD_MODEL]), {})
        if head[B.HEAD_BODIES] == LANES or head[B.HEAD_BODIES] == 0:
            blocks.pop(block, None)
        else:
            blocks[block] = None
        if not head[B.HEAD_BODIES]:
            self._block_pool.release(block)
        self._sequence = None

    def _clear_lane(self, row: int) -> None:
        self._update_occupancy(row, -1)
        b = self.body(row)
        b[:] = 0.0
        b[B.QW] = 1.0

    def _start_averaging(self, row: int, slot: int, ticks: int) -> None:
        """From now on, report the moving average of an actuator's value over a window."""
        self._all_speed_averages = grown_to(self._all_speed_averages, self._average_count + 1)
        self.average_windows = grown_to(self.average_windows, len(self._all_speed_averages))
        if ticks > self.average_windows.shape[1]:
            self.average_windows = np.pad(self.average_windows, ((0, 0), (0, ticks - self.average_windows.shape[1])))
        self._all_speed_averages[self._average_count] = row, slot, ticks, 0
        self._average_count += 1
        self.speed_averages = self._all_speed_averages[: self._average_count]

    # -- commands and faults -----------------------------------------------------------------

    def command(self, row: int, values: Sequence[float | None]) -> None:
        """Set finite actuator commands, in the order of the actuators. None leaves a command unchanged."""
        actuator_state = self._actuator_states[row]
        for k, value in enumerate(values):
            if value is not None:
                _, low, high, *_ = actuator_state.command_laws[k]
                if low <= value <= high:
                    actuator_state.commands[k] = value
                else:
                    actuator_state.commands[k] = min(max(value, low), high)
                    self._clip(row, k, value)
                self._apply_setpoint(row, actuator_state, k)

    def clipped(self, row: int) -> dict[str, int]:
        """Return, for each actuator, the number of commands that exceeded its range and were limited to it.

        Actuators without any limited commands are omitted.
        """
        state = self._actuator_states[row]
        return {a.name: n for a, n in zip(state.actuators, state.clipped, strict=True) if n}

    def take_clipped(self) -> list[tuple[int, str]]:
        """Return the notices about commands that were limited since the last call, as (row, text) pairs.

        The notices report the first, tenth, hundredth, ... command beyond the range of each actuator.
        """
        if not self._clipped:
            return []
        found, self._clipped = self._clipped, {}
        return [
            (row, clipped_text(self.actuators(row)[position], value, count))
            for (row, position), (value, count) in found.items()
        ]

    def _clip(self, row: int, position: int, value: float) -> None:
        """Count a command beyond the limits of an actuator; report the 1st, 10th, 100th, ... such command."""
        helm = self._actuator_states[row]
        _, low, high, *_ = helm.command_laws[position]
        if low - SLACK * (high - low) <= value <= high + SLACK * (high - low):
            return
        helm.clipped[position] += 1
        if helm.clipped[position] >= helm.next_notice[position]:
            helm.next_notice[position] *= 10
            self._clipped[row, position] = value, helm.clipped[position]

    def _apply_setpoint(self, row: int, actuator_state: ActuatorState, position: int) -> None:
        slot, value = actuator_state.setpoint(position)
        self.setpoints[row, slot] = value
        if not (self.hold_count[0] and self._is_held(row, slot)):
            seat = self.slots[row]
            self.blocks[seat // LANES, (B.ACTUATOR_COMMAND + slot) * LANES + seat % LANES] = value

    def settle_actuators(self, row: int) -> None:
        """Set the actuators to their commanded values without delay."""
        b = self.body(row)
        b[B.ACTUATOR_STATE : B.ACTUATOR_STATE + SLOTS] = b[B.ACTUATOR_COMMAND : B.ACTUATOR_COMMAND + SLOTS] = (
            self.setpoints[row]
        )

    def set_actuator_fault(self, row: int, position: int, fault: str, amount: float, now: float) -> None:
        """Set a fault of the actuator with the given position in the order of the model.

        The faults are ``stuck`` (the actuator keeps its value), ``frozen`` (it keeps its value for ``amount`` seconds),
        ``lost`` (no force), ``reduced`` (force reduced to the fraction ``amount``), ``reversed`` (opposite sign), and
        ``none`` (repaired).
        """
        actuator_state, b = self._actuator_states[row], self.body(row)
        slot = actuator_state.actuators[position].slot
        if fault in ("stuck", "frozen"):
            self._hold_actuator(row, slot, HOLD_FOREVER if fault == "stuck" else now + amount)
        elif fault in ("lost", "reduced"):
            b[B.ACTUATOR_EFFECT + slot] = 0.0 if fault == "lost" else amount
        elif fault == "reversed":
            actuator_state.signs[position] = -1.0
            self._apply_setpoint(row, actuator_state, position)
        else:
            self._remove_hold(row, slot)
            if actuator_state.start_delays.get(slot, 0.0) > now:
                self._hold_actuator(row, slot, actuator_state.start_delays[slot])
            if slot < THRUSTERS + FINS:
                b[B.ACTUATOR_EFFECT + slot] = 1.0
            actuator_state.signs[position] = 1.0
            self._apply_setpoint(row, actuator_state, position)

    def allocate(self, row: int, matrix: Floats) -> None:
        """Set the thruster allocation matrix (6, thrusters) of one body."""
        self.override_parameters(row, {P.THRUSTER_WRENCH + i: float(v) for i, v in enumerate(matrix.T.ravel())})

    def _is_held(self, row: int, slot: int) -> bool:
        held = self.actuator_holds[: self.hold_count[0]]
        return bool(((held[:, 0] == row) & (held[:, 1] == slot)).any())

    def _remove_hold(self, row: int, slot: int) -> None:
        held = self.actuator_holds[: self.hold_count[0]]
        keep = held[(held[:, 0] != row) | (held[:, 1] != slot)]
        self.actuator_holds[: len(keep)], self.hold_count[0] = keep, len(keep)

    def _hold_actuator(self, row: int, slot: int, until: float) -> None:
        self._remove_hold(row, slot)
        self.actuator_holds = grown_to(self.actuator_holds, int(self.hold_count[0]) + 1)
        self.actuator_holds[self.hold_count[0]] = row, slot, until
        self.hold_count[0] += 1
