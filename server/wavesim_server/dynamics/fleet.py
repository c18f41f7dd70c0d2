"""The fleet: bodies in blocks of their kind, their commands and their faults.

A body keeps its row in the tables for life; ``slots[row]`` says where it lies in the blocks (block times
eight plus lane).  Bodies of one model share their parameters; a body whose coefficients are changed on the
way (an allocation matrix, a parameter study) gets its own, and a block of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numba as nb
import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.actuators import Actuator, actuators_of
from wavesim_sdk.config import Model
from wavesim_sdk.config.model import Mooring
from wavesim_sdk.config.world import World
from wavesim_server.dynamics import kernel
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.kind import Kind, kind_of, shape_of

__all__ = ["Fleet", "shape_of"]

Array = np.ndarray[Any, np.dtype[np.float64]]
INTEGRATORS = {"euler": kernel.EULER, "rk4": kernel.RK4, "dp5": kernel.DP5}
FOREVER = math.inf


@nb.njit(cache=True, error_model="numpy")
def release(blocks: Any, slots: Any, holds: Any, wanted: Any, count: Any, time: float) -> None:
    """Keep held actuators where they are until their time comes; then give them their command."""
    i = 0
    while i < count[0]:
        row, slot = int(holds[i, 0]), int(holds[i, 1])
        b, l = blocks[slots[row] // r.LANES], slots[row] % r.LANES
        if time < holds[i, 2]:
            b[(r.A_CMD + slot) * r.LANES + l] = b[(r.A_NOW + slot) * r.LANES + l]
            i += 1
        else:
            b[(r.A_CMD + slot) * r.LANES + l] = wanted[row, slot]
            count[0] -= 1
            for k in range(3):
                holds[i, k] = holds[count[0], k]


@nb.njit(cache=True, error_model="numpy")
def average(blocks: Any, slots: Any, meters: Any, rings: Any, feedback: Any) -> None:
    """Moving average of reported shaft speeds. ``meters`` (n, 4): row, slot, window in ticks, ticks seen."""
    for i in range(meters.shape[0]):
        row, slot, window, seen = meters[i, 0], meters[i, 1], meters[i, 2], meters[i, 3]
        value = blocks[slots[row] // r.LANES, (r.A_NOW + slot) * r.LANES + slots[row] % r.LANES]
        rings[i, seen % window] = value
        meters[i, 3] = seen + 1
        n = min(window, seen + 1)
        total = 0.0
        for k in range(n):
            total += rings[i, k]
        feedback[row, slot] = total / n


@dataclass
class Commands:
    """How the commands of one body are understood, and its faults."""

    kind: Kind
    actuators: tuple[Actuator, ...]
    sign: Array = field(default_factory=lambda: np.ones(r.SLOTS))


class Fleet:
    """All bodies of a run."""

    def __init__(self, capacity: int, step: float, world: World, integrator: str = "rk4") -> None:
        self.capacity, self.step, self.world = capacity, step, world
        self.integrator = INTEGRATORS[integrator]
        self.slots = np.full(capacity, -1, np.int64)
        self.blocks = np.zeros((0, r.BLOCK))
        self.heads = np.zeros((0, 3), np.int64)
        self.turn = np.zeros(0, np.int64)  # blocks in the order of their kinds
        self.params = np.zeros((0, r.PARAMS))
        self.kinds = np.zeros((0, r.KIND), np.int64)
        self.tables = np.zeros((1, 2, r.TABLE_POINTS))
        self.work = np.zeros(r.WORK)
        self.wanted = np.zeros((capacity, r.SLOTS))
        self.feedback = np.zeros((capacity, r.SLOTS))
        self.places = np.zeros((capacity, r.SLOTS), np.int64)  # slots of the actuators, in the order of the model
        self.counts = np.zeros(capacity, np.int64)
        self.holds = np.zeros((16, 3))
        self.held = np.zeros(1, np.int64)
        self.meters = np.zeros((0, 4), np.int64)
        self.rings = np.zeros((0, 1))
        self._shared: dict[int, tuple[Model, int, Kind]] = {}
        self._private: set[int] = set()
        self._commands: dict[int, Commands] = {}

    # -- views -------------------------------------------------------------------------------

    def body(self, row: int) -> Array:
        """State and inputs of one body, as a view of BLOCK_ROWS numbers."""
        slot = self.slots[row]
        return self.blocks[slot // r.LANES].reshape(r.BLOCK_ROWS, r.LANES)[:, slot % r.LANES]

    def coefficients(self, row: int) -> Array:
        """Parameters of one body: a copy of PARAMS numbers."""
        return self.params[self.heads[self.slots[row] // r.LANES, r.BLOCK_KIND]].copy()

    # -- bodies ------------------------------------------------------------------------------

    def add(
        self,
        row: int,
        model: Model,
        position: tuple[float, ...],
        attitude: tuple[float, ...],
        mooring: Mooring | None,
        variant: bool = False,
    ) -> None:
        """Put a body at rest into a row. A ``variant`` is a model of a study that no other body shares."""
        if variant:
            kind = kind_of(model, self.world, self.step, self.integrator)
            index = self._new_kind(kind)
        else:
            index, kind = self._kind(model)
        self._seat(row, index)
        b = self.body(row)
        b[r.PX : r.PX + 3] = position
        b[r.QW : r.QW + 4] = frames.quaternion(*attitude)
        b[r.A_NOW : r.A_NOW + r.SLOTS] = b[r.A_CMD : r.A_CMD + r.SLOTS] = kind.rest
        b[r.A_EFFECT : r.A_EFFECT + r.THRUSTERS + r.FINS] = 1.0
        if mooring is not None:
            b[r.MOOR : r.MOOR + 6] = (*mooring.anchor, mooring.length, mooring.stiffness, mooring.damping)
        b[r.PRESENT] = 1.0
        self.wanted[row] = kind.rest
        self._commands[row] = commands = Commands(kind, actuators_of(model))
        self.counts[row] = len(commands.actuators)
        self.places[row, : len(commands.actuators)] = [a.slot for a in commands.actuators]
        self.feedback[row] = 0.0
        for slot in np.flatnonzero(kind.start > 0.0):
            self._hold(row, int(slot), kind.start[slot])
        for slot in np.flatnonzero(kind.window > 0.0):
            ticks = max(1, round(kind.window[slot] / self.step))
            self.meters = np.vstack([self.meters, [[row, slot, ticks, 0]]])
            self.rings = np.zeros((len(self.meters), max(self.rings.shape[1], ticks)))
            self.meters[:, 3] = 0
        self._count()

    def remove(self, row: int) -> None:
        """Take a body out."""
        b = self.body(row)
        b[:] = 0.0
        b[r.QW] = 1.0
        keep = self.holds[: self.held[0]][self.holds[: self.held[0], 0] != row]
        self.holds[: len(keep)], self.held[0] = keep, len(keep)
        self.meters = self.meters[self.meters[:, 0] != row]
        self.slots[row] = -1
        del self._commands[row]
        self._count()

    def change(self, row: int, parameters: dict[int, float]) -> None:
        """Give one body parameters of its own (row of the parameters -> value)."""
        block = self.slots[row] // r.LANES
        kind = int(self.heads[block, r.BLOCK_KIND])
        if kind not in self._private:
            body = self.body(row).copy()
            self.body(row)[:] = 0.0
            self.body(row)[r.QW] = 1.0
            self.kinds = np.vstack([self.kinds, self.kinds[kind]])
            self.params = np.vstack([self.params, self.params[kind]])
            kind = len(self.kinds) - 1
            self._private.add(kind)
            self._seat(row, kind)
            self.body(row)[:] = body
        for index, value in parameters.items():
            self.params[kind, index] = value
        self._count()

    def _kind(self, model: Model) -> tuple[int, Kind]:
        """The shared kind of a model, made when it is first needed."""
        found = self._shared.get(id(model))
        if found is None:
            kind = kind_of(model, self.world, self.step, self.integrator)
            found = self._shared[id(model)] = (model, self._new_kind(kind), kind)
        return found[1], found[2]

    def _new_kind(self, kind: Kind) -> int:
        ints = kind.ints.copy()
        if kind.tables:
            ints[r.KIND_TABLE :][ints[r.KIND_TABLE :] >= 0] += len(self.tables)
            self.tables = np.concatenate([self.tables, np.stack(kind.tables)])
        self.kinds = np.vstack([self.kinds, ints])
        self.params = np.vstack([self.params, kind.params])
        return len(self.kinds) - 1

    def _free(self, block: int) -> int | None:
        present = self.blocks[block].reshape(r.BLOCK_ROWS, r.LANES)[r.PRESENT]
        free = np.flatnonzero(present == 0.0)
        return int(free[0]) if len(free) else None

    def _seat(self, row: int, kind: int) -> None:
        """A free lane for a row in a block of a kind."""
        for block in np.flatnonzero(self.heads[:, r.BLOCK_KIND] == kind)[::-1]:
            lane = self._free(int(block))
            if lane is not None:
                break
        else:
            spare = np.flatnonzero(self.heads[:, r.BLOCK_KIND] < 0)
            if not len(spare):  # twice as many
                more = max(len(self.blocks), 1)
                empty = np.zeros((more, r.BLOCK_ROWS, r.LANES))
                empty[:, r.QW] = 1.0
                self.blocks = np.vstack([self.blocks, empty.reshape(more, -1)])
                self.heads = np.vstack([self.heads, np.tile([0, -1, 0], (more, 1))])
                spare = np.arange(len(self.blocks) - more, len(self.blocks))
            block, lane = int(spare[0]), 0
            self.heads[block] = 0, kind, 0
        self.slots[row] = block * r.LANES + lane

    def _count(self) -> None:
        lanes = self.blocks.reshape(-1, r.BLOCK_ROWS, r.LANES)
        self.heads[:, r.BLOCK_BODIES] = lanes[:, r.PRESENT].sum(axis=1)
        self.heads[:, r.BLOCK_MOORED] = lanes[:, r.MOOR + 4].any(axis=1)
        used = np.flatnonzero(self.heads[:, r.BLOCK_KIND] >= 0)
        self.turn = used[np.argsort(self.heads[used, r.BLOCK_KIND], kind="stable")]

    # -- commands and faults -----------------------------------------------------------------

    def actuators(self, row: int) -> tuple[Actuator, ...]:
        """The actuators of a body, in the order of its model."""
        return self._commands[row].actuators

    def command(self, row: int, values: Sequence[float | None]) -> None:
        """Set actuator commands by position, finite numbers; None keeps the earlier one."""
        commands, b = self._commands[row], self.body(row)
        kind = commands.kind
        for actuator, value in zip(commands.actuators, values, strict=False):
            k = actuator.slot
            if value is None:
                continue
            value = commands.sign[k] * min(max(value, kind.limits[k, 0]), kind.limits[k, 1])
            if abs(value) < kind.dead[k]:
                value = 0.0
            a, gain = kind.motor[k]
            value = gain * value + (math.copysign(a, value) if value else 0.0)
            self.wanted[row, k] = value
            if not self._is_held(row, k):
                b[r.A_CMD + k] = value

    def fail(self, row: int, position: int, fault: str, amount: float = 0.0) -> None:
        """A fault of one actuator, by its position: ``stuck`` (stays where it is), ``frozen`` (the same until the time ``amount``),
        ``lost`` (no force), ``reduced`` (to the share ``amount``), ``reversed`` (wrong sign), ``none`` (repaired)."""
        commands, b = self._commands[row], self.body(row)
        actuator = commands.actuators[position]
        slot = actuator.slot
        has_force = slot < r.THRUSTERS + r.FINS
        if fault in ("lost", "reduced") and not has_force:
            raise ValueError(f"'{actuator.name}' makes no force of its own; it can be stuck, frozen or reversed")
        if fault in ("stuck", "frozen"):
            self._hold(row, slot, FOREVER if fault == "stuck" else amount)
        elif fault in ("lost", "reduced"):
            b[r.A_EFFECT + slot] = 0.0 if fault == "lost" else amount
        elif fault == "reversed":
            commands.sign[slot] = -1.0
            b[r.A_CMD + slot] = self.wanted[row, slot] = -self.wanted[row, slot]
        elif fault == "none":
            self._drop_hold(row, slot)
            if has_force:
                b[r.A_EFFECT + slot] = 1.0
            commands.sign[slot] = 1.0
            b[r.A_CMD + slot] = self.wanted[row, slot]
        else:
            raise ValueError(f"'{fault}' is no fault; allowed are stuck, frozen, lost, reduced, reversed, none")

    def allocate(self, row: int, matrix: Array) -> None:
        """Set the thruster allocation matrix (6, thrusters) of one body."""
        count = int(self.kinds[self.heads[self.slots[row] // r.LANES, r.BLOCK_KIND], r.KIND_THRUSTERS])
        if np.shape(matrix) != (6, count) or not np.isfinite(matrix).all():
            raise ValueError(f"the allocation matrix needs 6 x {count} finite numbers")
        flat = np.asarray(matrix, float).T.ravel()
        self.change(row, {r.T_H + i: float(v) for i, v in enumerate(flat)})

    def _is_held(self, row: int, slot: int) -> bool:
        if not self.held[0]:
            return False
        held = self.holds[: self.held[0]]
        return bool(((held[:, 0] == row) & (held[:, 1] == slot)).any())

    def _drop_hold(self, row: int, slot: int) -> None:
        held = self.holds[: self.held[0]]
        keep = held[(held[:, 0] != row) | (held[:, 1] != slot)].copy()
        self.holds[: len(keep)], self.held[0] = keep, len(keep)

    def _hold(self, row: int, slot: int, until: float) -> None:
        self._drop_hold(row, slot)
        if self.held[0] == len(self.holds):
            self.holds = np.vstack([self.holds, np.zeros_like(self.holds)])
        self.holds[self.held[0]] = row, slot, until
        self.held[0] += 1
