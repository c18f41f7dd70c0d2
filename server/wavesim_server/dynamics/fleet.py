"""The fleet: bodies in blocks of their kind, their commands and their faults.

A body keeps its row in the tables for life; ``slots[row]`` says where it lies in the blocks (block times
eight plus lane).  Bodies of one model share their parameters; a body whose coefficients are changed on the
way (an allocation matrix, a parameter study) gets its own, and a block of its own.  Letting a body in or out costs
the same however many there are, and what it leaves behind is used again.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.actuators import Actuator, actuators_of
from wavesim_sdk.config import Model
from wavesim_sdk.config.model import Mooring
from wavesim_sdk.config.primitives import shape_of
from wavesim_sdk.config.validation import check_model
from wavesim_sdk.config.world import Current, World
from wavesim_sdk.elementary import LEAST
from wavesim_sdk.kernel_compiler import device_function
from wavesim_server.dynamics import integrators, registry
from wavesim_server.dynamics import rows as r
from wavesim_server.dynamics.kind import Kind, check_step, kind_of
from wavesim_server.dynamics.types import Floats, Ints
from wavesim_server.pool import Pool, aligned, roomy

__all__ = ["Fleet", "Form", "shape_of"]

FOREVER = math.inf


@device_function
def release(blocks: Floats, slots: Ints, holds: Floats, wanted: Floats, count: Ints, time: float) -> None:
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


@device_function
def average(blocks: Floats, slots: Ints, meters: Ints, rings: Floats, feedback: Floats) -> None:
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


@dataclass(frozen=True)
class Form:
    """What a body of a model will be: made before it enters, so that what is wrong with it changes nothing."""

    model: Model
    kind: Kind
    actuators: tuple[Actuator, ...]
    shared: bool  #: with other bodies of the model


SLACK = 1e-9  #: share of an actuator's range: a limit that was computed is no command beyond it


class Helm:
    """What one body has been told, how it understands that, and what is wrong with its actuators."""

    def __init__(self, form: Form) -> None:
        self.form, self.actuators, kind = form, form.actuators, form.kind
        # slot, limits, dead band, motor law, by position: plain numbers, which are quicker one by one
        self.law: list[tuple[int, float, float, float, float, float]] = []
        for a in self.actuators:
            (low, high), (offset, gain) = kind.limits[a.slot].tolist(), kind.motor[a.slot].tolist()
            self.law.append((a.slot, low, high, max(float(kind.dead[a.slot]), LEAST), offset, gain))
        self.start = {a.slot: float(kind.start[a.slot]) for a in self.actuators if kind.start[a.slot] > 0.0}
        self.asked = [a.rest_value for a in self.actuators]
        self.sign = [1.0] * len(self.actuators)
        self.clipped = [0] * len(self.actuators)  #: how often a command was beyond the limits
        self.tell = [1] * len(self.actuators)  #: how often it may be so before somebody is told

    def setpoint(self, position: int) -> tuple[int, float]:
        """(slot, value it goes to): the command freed of the dead band and put through the motor law."""
        slot, _, _, dead, offset, gain = self.law[position]
        value = self.sign[position] * self.asked[position]
        if abs(value) < dead:
            value = 0.0
        return slot, gain * value + (math.copysign(offset, value) if value else 0.0)


class Fleet:
    """All bodies of a run."""

    kinds: Ints
    params: Floats
    tables: Floats
    blocks: Floats
    heads: Ints
    rings: Floats
    holds: Floats

    def __init__(self, capacity: int, step: float, world: World, integrator: str = "rk4") -> None:
        if registry.problem is not None:
            raise registry.problem
        self.capacity, self.step, self.world = capacity, step, world
        self.integrator = integrators.numbered(integrator)
        self.slots = np.full(capacity, -1, np.int64)
        #: (row, position) of an actuator -> (command beyond its limits, how many there were), until somebody is told
        self.clipped: dict[tuple[int, int], tuple[float, int]] = {}
        self.blocks = np.zeros((0, r.BLOCK))
        self.heads = np.zeros((0, 3), np.int64)
        self.params = np.zeros((0, r.PARAMS))
        self.kinds = np.zeros((0, r.KIND), np.int64)
        self.tables = np.zeros((1, 2, r.TABLE_POINTS))
        self.work = aligned(r.WORK)
        self.wanted = np.zeros((capacity, r.SLOTS))
        self.feedback = np.zeros((capacity, r.SLOTS))
        self.places = np.zeros((capacity, r.SLOTS), np.int64)  # slots of the actuators, in the order of the model
        self.counts = np.zeros(capacity, np.int64)
        self.holds = np.zeros((16, 3))
        self.held = np.zeros(1, np.int64)
        self.rings = np.zeros((0, 1))
        self._meters: Ints = np.zeros((0, 4), np.int64)
        self._metered = 0
        self.meters = self._meters  # those in use: moving averages of shaft speeds, for `average`
        self._forms: dict[int, Form] = {}  # by model
        self._kind_of: dict[int, int] = {}  # row of the kinds, by model
        self._own: dict[int, tuple[int, list[int]]] = {}  # bodies with a kind of their own: its row, its tables
        self._helms: dict[int, Helm] = {}
        self._kinds, self._tables, self._blocks = Pool(), Pool(), Pool()
        self._tables.take()  # the first is of those that have none
        self._open: dict[int, dict[int, None]] = {}  # blocks of a kind that have a free lane
        self._sequence: Ints | None = None

    # -- views -------------------------------------------------------------------------------

    def body(self, row: int) -> Floats:
        """State and inputs of one body, as a view of BLOCK_ROWS numbers."""
        slot = self.slots[row]
        return self.blocks[slot // r.LANES].reshape(r.BLOCK_ROWS, r.LANES)[:, slot % r.LANES]

    def coefficients(self, row: int) -> Floats:
        """Parameters of one body: a copy of PARAMS numbers."""
        return self.params[self.heads[self.slots[row] // r.LANES, r.BLOCK_KIND]].copy()

    def actuators(self, row: int) -> tuple[Actuator, ...]:
        """The actuators of a body, in the order of its model."""
        return self._helms[row].actuators

    @property
    def sequence(self) -> Ints:
        """Blocks in the order of their kinds."""
        if self._sequence is None:
            used = np.flatnonzero(self.heads[:, r.BLOCK_BODIES])
            self._sequence = used[np.argsort(self.heads[used, r.BLOCK_KIND], kind="stable")]
        return self._sequence

    # -- bodies ------------------------------------------------------------------------------

    def form(self, model: Model, shared: bool = True) -> Form:
        """What a body of a model will be; ConfigError if it cannot be simulated at this step."""
        found = self._forms.get(id(model)) if shared else None
        if found is None:
            if not shared:
                check_model(model)
            found = Form(model, kind_of(model, self.world, self.step, self.integrator), actuators_of(model), shared)
            if shared:
                self._forms[id(model)] = found
        return found

    def endure(self, current: Current) -> None:
        """Take a current from now on; ConfigError, and no change, if a body's model would be unstable in it at this step.

        Models of which there is no body are asked when one comes.
        """
        if current.max_speed > self.world.current.max_speed:
            used = {id(helm.form): helm.form for helm in self._helms.values()}
            for form in used.values():
                check_step(form.kind.params, form.model, self.step, self.integrator, current.max_speed)
            self._forms = {k: form for k, form in self._forms.items() if id(form) in used}
        self.world = dataclasses.replace(self.world, current=current)

    def add(
        self, row: int, form: Form, position: Floats, attitude: Floats, mooring: Mooring | None, lined: bool = False
    ) -> None:
        """Put a body at rest into a row; ``lined``: it may have lines."""
        if form.shared:
            if id(form.model) not in self._kind_of:
                self._kind_of[id(form.model)] = self._new_kind(form.kind)[0]
            kind = self._kind_of[id(form.model)]
        else:
            kind, tables = self._new_kind(form.kind)
            self._own[row] = kind, tables
        self._seat(row, kind)
        b = self.body(row)
        b[r.PX : r.PX + 3] = position
        b[r.QW : r.QW + 4] = frames.quaternion(*attitude)
        b[r.A_NOW : r.A_NOW + r.SLOTS] = b[r.A_CMD : r.A_CMD + r.SLOTS] = form.kind.rest
        b[r.A_EFFECT : r.A_EFFECT + r.THRUSTERS + r.FINS] = 1.0
        if mooring is not None:
            b[r.MOOR : r.MOOR + 6] = (*mooring.anchor, mooring.length, mooring.stiffness, mooring.damping)
        b[r.LINED] = float(lined)
        self._count(row, +1)
        self.wanted[row], self.feedback[row] = form.kind.rest, 0.0
        self.counts[row] = n = len(form.actuators)
        self.places[row, :n] = [a.slot for a in form.actuators]
        self._helms[row] = helm = Helm(form)
        for slot, start in helm.start.items():
            self._freeze(row, slot, start)
        for slot in np.flatnonzero(form.kind.window > 0.0).tolist():
            self._meter(row, slot, max(1, round(form.kind.window[slot] / self.step)))

    def remove(self, row: int) -> None:
        """Take a body out."""
        self._leave_seat(row)
        held = self.holds[: self.held[0]]
        keep = held[held[:, 0] != row]
        self.holds[: len(keep)], self.held[0] = keep, len(keep)
        for k in np.flatnonzero(self.meters[:, 0] == row)[::-1].tolist():  # the last one takes the free place
            self._metered -= 1
            self._meters[k], self.rings[k] = self._meters[self._metered], self.rings[self._metered]
            self.meters = self._meters[: self._metered]
        self.slots[row] = -1
        for position in range(len(self._helms.pop(row).actuators)):
            self.clipped.pop((row, position), None)
        if row in self._own:
            self._give_kind(*self._own.pop(row))

    def change(self, row: int, parameters: dict[int, float]) -> None:
        """Give one body parameters of its own (row of the parameters -> value)."""
        if row not in self._own:
            body, old = self.body(row).copy(), int(self.heads[self.slots[row] // r.LANES, r.BLOCK_KIND])
            self._leave_seat(row)
            kind = self._room_for_kind()
            self.kinds[kind], self.params[kind] = self.kinds[old], self.params[old]  # its tables are the model's
            self._own[row] = kind, []
            self._seat(row, kind)
            self.body(row)[:] = body
            self._count(row, +1)
        kind = self._own[row][0]
        for index, value in parameters.items():
            self.params[kind, index] = value

    # -- kinds and seats ---------------------------------------------------------------------

    def _room_for_kind(self) -> int:
        kind = self._kinds.take()
        self.kinds, self.params = roomy(self.kinds, kind + 1), roomy(self.params, kind + 1)
        return kind

    def _new_kind(self, kind: Kind) -> tuple[int, list[int]]:
        """A row for the numbers of a kind, and those of its tables."""
        row, tables = self._room_for_kind(), [self._tables.take() for _ in kind.tables]
        self.tables = roomy(self.tables, max(tables, default=0) + 1)
        for place, table in zip(tables, kind.tables, strict=True):
            self.tables[place] = table
        ints = kind.ints.copy()
        for k in range(r.KIND_TABLE, r.KIND):
            if ints[k] >= 0:
                ints[k] = tables[ints[k]]
        self.kinds[row], self.params[row] = ints, kind.params
        return row, tables

    def _give_kind(self, kind: int, tables: list[int]) -> None:
        self._kinds.give(kind)
        self._open.pop(kind, None)
        for table in tables:
            self._tables.give(table)

    def _seat(self, row: int, kind: int) -> None:
        """A free lane for a row in a block of a kind."""
        blocks = self._open.setdefault(kind, {})
        if not blocks:
            block = self._blocks.take()
            if block >= len(self.blocks):
                old = len(self.blocks)
                self.blocks, self.heads = roomy(self.blocks, block + 1), roomy(self.heads, block + 1)
                self.blocks[old:, r.QW * r.LANES : (r.QW + 1) * r.LANES] = 1.0
            self.heads[block] = 0, kind, 0
            blocks[block] = None
        block = next(iter(blocks))
        present = self.blocks[block, r.PRESENT * r.LANES : (r.PRESENT + 1) * r.LANES]
        self.slots[row] = block * r.LANES + int(np.argmin(present))

    def _count(self, row: int, by: int) -> None:
        """A body has come to its seat (+1), or leaves it (-1)."""
        block, b = int(self.slots[row]) // r.LANES, self.body(row)
        head = self.heads[block]
        b[r.PRESENT] = float(by > 0)
        head[r.BLOCK_BODIES] += by
        head[r.BLOCK_MOORED] += by * int(b[r.MOOR + 4] > 0.0 or b[r.LINED] > 0.0)
        blocks = self._open.setdefault(int(head[r.BLOCK_KIND]), {})
        if head[r.BLOCK_BODIES] == r.LANES or head[r.BLOCK_BODIES] == 0:
            blocks.pop(block, None)
        else:
            blocks[block] = None
        if not head[r.BLOCK_BODIES]:
            self._blocks.give(block)
        self._sequence = None

    def _leave_seat(self, row: int) -> None:
        self._count(row, -1)
        b = self.body(row)
        b[:] = 0.0
        b[r.QW] = 1.0

    def _meter(self, row: int, slot: int, ticks: int) -> None:
        """Report the moving average of an actuator over a window."""
        self._meters = roomy(self._meters, self._metered + 1)
        self.rings = roomy(self.rings, len(self._meters))
        if ticks > self.rings.shape[1]:
            self.rings = np.pad(self.rings, ((0, 0), (0, ticks - self.rings.shape[1])))
        self._meters[self._metered] = row, slot, ticks, 0
        self._metered += 1
        self.meters = self._meters[: self._metered]

    # -- commands and faults -----------------------------------------------------------------

    def command(self, row: int, values: Sequence[float | None]) -> None:
        """Set actuator commands by position, finite numbers; None keeps the earlier one."""
        helm = self._helms[row]
        for k, value in enumerate(values):
            if value is not None:
                _, low, high, *_ = helm.law[k]
                if low <= value <= high:
                    helm.asked[k] = value
                else:
                    helm.asked[k] = min(max(value, low), high)
                    self._clip(row, k, value)
                self._set(row, helm, k)

    def clipped_of(self, row: int) -> tuple[int, ...]:
        """How many commands beyond its limits each actuator of a body got."""
        return tuple(self._helms[row].clipped)

    def _clip(self, row: int, position: int, value: float) -> None:
        """Count a command beyond the limits; to be told at the 1st, 10th, 100th ... of an actuator."""
        helm = self._helms[row]
        _, low, high, *_ = helm.law[position]
        if low - SLACK * (high - low) <= value <= high + SLACK * (high - low):
            return
        helm.clipped[position] += 1
        if helm.clipped[position] >= helm.tell[position]:
            helm.tell[position] *= 10
            self.clipped[row, position] = value, helm.clipped[position]

    def _set(self, row: int, helm: Helm, position: int) -> None:
        slot, value = helm.setpoint(position)
        self.wanted[row, slot] = value
        if not (self.held[0] and self._is_held(row, slot)):
            seat = self.slots[row]
            self.blocks[seat // r.LANES, (r.A_CMD + slot) * r.LANES + seat % r.LANES] = value

    def settle(self, row: int) -> None:
        """Let the actuators be where they are told to go."""
        b = self.body(row)
        b[r.A_NOW : r.A_NOW + r.SLOTS] = b[r.A_CMD : r.A_CMD + r.SLOTS] = self.wanted[row]

    def fail(self, row: int, position: int, fault: str, amount: float, now: float) -> None:
        """A fault of one actuator, by its position: ``stuck`` (stays where it is), ``frozen`` (the same for ``amount`` s),
        ``lost`` (no force), ``reduced`` (to the share ``amount``), ``reversed`` (wrong sign), ``none`` (repaired)."""
        helm, b = self._helms[row], self.body(row)
        slot = helm.actuators[position].slot
        if fault in ("stuck", "frozen"):
            self._freeze(row, slot, FOREVER if fault == "stuck" else now + amount)
        elif fault in ("lost", "reduced"):
            b[r.A_EFFECT + slot] = 0.0 if fault == "lost" else amount
        elif fault == "reversed":
            helm.sign[position] = -1.0
            self._set(row, helm, position)
        else:
            self._drop_hold(row, slot)
            if helm.start.get(slot, 0.0) > now:
                self._freeze(row, slot, helm.start[slot])
            if slot < r.THRUSTERS + r.FINS:
                b[r.A_EFFECT + slot] = 1.0
            helm.sign[position] = 1.0
            self._set(row, helm, position)

    def allocate(self, row: int, matrix: Floats) -> None:
        """Set the thruster allocation matrix (6, thrusters) of one body."""
        self.change(row, {r.T_WRENCH + i: float(v) for i, v in enumerate(matrix.T.ravel())})

    def _is_held(self, row: int, slot: int) -> bool:
        held = self.holds[: self.held[0]]
        return bool(((held[:, 0] == row) & (held[:, 1] == slot)).any())

    def _drop_hold(self, row: int, slot: int) -> None:
        held = self.holds[: self.held[0]]
        keep = held[(held[:, 0] != row) | (held[:, 1] != slot)]
        self.holds[: len(keep)], self.held[0] = keep, len(keep)

    def _freeze(self, row: int, slot: int, until: float) -> None:
        self._drop_hold(row, slot)
        self.holds = roomy(self.holds, int(self.held[0]) + 1)
        self.holds[self.held[0]] = row, slot, until
        self.held[0] += 1
