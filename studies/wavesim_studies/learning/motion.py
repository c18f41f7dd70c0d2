"""Motion of the copies of a user's task: their models, their lanes in the blocks of bodies, and the threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavesim_sdk.actuators import Actuator
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.fleet import ActuatorState
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.row_pool import aligned_zeros
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_studies.learning import kernels
from wavesim_studies.learning import motion_kernels as R
from wavesim_studies.learning.custom import Task
from wavesim_studies.learning.shares import Shares
from wavesim_studies.learning.task_arrays import PADDING, TaskArrays
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model, library

DEPTH = 20.0  #: depth in m at which underwater vehicles start unless the task sets another depth


class TaskModels:
    """The models of a task, which have the same actuators."""

    def __init__(self, task: Task) -> None:
        self._name = type(task).__name__
        self.models = [self._found(m) for m in (task.models or (task.model,))]
        self.actuators = self._common_actuators()

    def _found(self, model: Any) -> Model:
        if isinstance(model, Model):
            return model
        if model not in library():
            raise ConfigError(f"{self._name}.model: unknown model '{model}'{suggest_name(str(model), list(library()))}")
        return library()[model]

    def _common_actuators(self) -> tuple[Actuator, ...]:
        first = actuators_of(self.models[0])
        if not first:
            raise ConfigError(f"{self._name}.model: '{self.models[0].name}' has no actuators")
        for m in self.models[1:]:
            if actuators_of(m) != first:
                raise ConfigError(
                    f"{self._name}.models: '{m.name}' and '{self.models[0].name}' have different actuators"
                )
        return first


class Motion:
    """Bodies of the copies. ``waiting`` selects copies whose episode has ended, and ``diverged`` those whose state
    diverged (NaN or infinity) in the last step.
    """

    def __init__(self, task: Task, models: TaskModels, layout: TaskArrays, rows: Floats, copies: int) -> None:
        self._models, self._layout, self._rows, self._substeps = models.models, layout, rows, task.substeps
        self._h = float(task.dt) / task.substeps
        columns = rows.shape[1] - PADDING
        self.waiting, self.diverged = np.zeros(columns, bool), np.zeros(columns, bool)
        self._slots = np.full(columns, -1, np.int64)  # lane of each copy
        self._model_of = np.full(columns, -1, np.int64)
        self._free: list[list[int]] = [[] for _ in self._models]  # free lanes of each model, in descending order
        self.owners = np.zeros(0, np.int64)  #: copy of each lane, or -1
        self._build(models.actuators, type(task).__name__)
        self._assign(np.arange(copies), np.zeros(copies, np.int64))
        self.threads = Shares(len(self.fleet.blocks))

    def _build(self, actuators: tuple[Actuator, ...], name: str) -> None:
        """Compile the models."""
        sim = empty_sea(len(self._models), self._h)
        density = sim.config.world.density
        depths = [DEPTH if m.type == "underwater" else equilibrium_depth(m, density) for m in self._models]
        rows = [
            sim.enter(f"v{k}", position=(1000.0 * k, 0.0, depth), variant=m)
            for k, (m, depth) in enumerate(zip(self._models, depths, strict=True))
        ]
        fleet, self.depths = sim.fleet, np.array(depths)
        self._kinds = [int(fleet.block_heads[fleet.slots[row] // LANES, B.HEAD_MODEL]) for row in rows]
        self._lanes = [
            fleet.blocks[fleet.slots[r] // LANES].reshape(B.ROWS, LANES)[:, fleet.slots[r] % LANES] for r in rows
        ]
        compiled = [fleet.vehicle_type(m) for m in self._models]
        self.initial = np.array([v.compiled.initial_values[[a.slot for a in actuators]] for v in compiled])
        laws = [ActuatorState(v).command_laws for v in compiled]
        if any(law != laws[0] for law in laws):
            raise ConfigError(f"{name}.models: the actuators of the models have different motors or limits")
        self._laws = np.array(laws[0], float)
        self.fleet = kernels.FleetView(
            aligned_zeros((0, B.SIZE)),
            np.zeros((0, B.HEAD_SIZE), np.int64),
            fleet.params.copy(),
            fleet.model_ints.copy(),
            fleet.tables.copy(),
            aligned_zeros(W.SIZE),
        )

    def _add_blocks(self, model: int, count: int) -> None:
        """Add blocks of a model with free lanes."""
        first = len(self.owners)
        blocks = aligned_zeros((len(self.fleet.blocks) + count, B.SIZE))
        blocks[: len(self.fleet.blocks)] = self.fleet.blocks
        blocks[len(self.fleet.blocks) :] = np.repeat(self._lanes[model], LANES)
        head = np.array([[LANES, self._kinds[model], 0]] * count, np.int64)
        self.fleet = self.fleet._replace(blocks=blocks, heads=np.concatenate([self.fleet.heads, head]))
        self.owners = np.concatenate([self.owners, np.full(count * LANES, -1, np.int64)])
        self._free[model] = [*range(first + count * LANES - 1, first - 1, -1), *self._free[model]]

    def _assign(self, ids: Ints, models: Ints) -> None:
        """Assign copies to lanes in the blocks of their models."""
        changed = np.unique(ids[self._model_of[ids] != models])
        wanted = dict(zip(ids.tolist(), models.tolist(), strict=True))
        for i in changed.tolist():
            if self._slots[i] >= 0:
                self.owners[self._slots[i]] = -1
                self._free[self._model_of[i]].append(int(self._slots[i]))
        for model in range(len(self._models)):
            new = [i for i in changed.tolist() if wanted[i] == model]
            missing = len(new) - len(self._free[model])
            if missing > 0:
                self._add_blocks(model, -(-missing // LANES))
            for i in new:
                self._slots[i] = self._free[model].pop()
                self.owners[self._slots[i]], self._model_of[i] = i, model

    def set_threads(self, count: int) -> None:
        """Divide the blocks among ``count`` threads."""
        self.threads.set_threads(count)

    def advance(self) -> None:
        """Advance all copies by one step of the task."""
        self.threads.blocks = len(self.fleet.blocks)  # it grows while copies change between models
        tables = self.threads.tables((self.fleet, self.owners), self._thread_state)
        self.threads.run(lambda k, first, end: R.advance(tables[k], first, end))

    def place(self, ids: Ints, models: Ints, fresh: Floats) -> None:
        """Initialise the bodies of the given copies with the states in the columns of ``fresh``."""
        if len(self._models) > 1:
            self._assign(ids, models)
        R.place(self.fleet.blocks, self._slots[ids], self._laws, fresh, self._layout.first("actuators"))

    def _thread_state(self) -> R.MotionState:
        """Return the state of the bodies with the scratch arrays of one thread."""
        first = self._layout.first
        return R.MotionState(
            self.fleet._replace(work=aligned_zeros(W.SIZE)),
            self.owners,
            self._laws,
            self._rows,
            self.waiting,
            self.diverged,
            aligned_zeros(3 * LANES),
            self._h,
            self._substeps,
            first("actuators"),
            first("command"),
            first("effect"),
        )
