"""Many copies of a vehicle that are simulated together, with different coefficients, start states and commands.

The copies use the compiled equations of motion from the learning tasks. They do not affect each other, so the results
depend neither on the number of copies nor on the number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.errors import ConfigError
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.fleet import ActuatorState
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.row_pool import aligned_zeros
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_studies.learning import kernels
from wavesim_studies.learning import motion_kernels as R
from wavesim_studies.learning.shares import Shares
from wavesim_studies.navigation.metrics import wrapped
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model

DEPTH = 20.0  #: depth in m at which underwater vehicles start, if their depth is not measured
STATES = 12
#: rows of a start state and of a simulated state: position in m, attitude in rad, velocity over ground in B in m/s,
#: angular velocity in B in rad/s
NORTH, EAST, DOWN, ROLL, PITCH, YAW, U, V, W_, P, Q, R_ = range(STATES)


@dataclass(frozen=True)
class CopyInputs:
    """Inputs of the copies. Each array has a column for each copy."""

    start: Floats  #: start states (STATES, copies)
    #: mean command of each actuator in each time step (steps, actuators, copies), in SI units
    commands: Floats
    current: Floats  #: velocity of the water (3, copies) in m/s: north, east, down
    push: Floats  #: external force and moment in B (6, copies)
    warm_up: int  #: number of time steps at the beginning in which only the actuators move


def density_of(world: str) -> float:
    """Return the density in kg/m3 of the water in a world, given as the XML element `<world>` or its content."""
    return float(empty_sea(1, 0.1, world).config.world.density)


def resting_depth(model: Model, density: float) -> float:
    """Return the depth in m at which a vehicle starts if its depth is not measured: at rest on the surface, or DEPTH."""
    return DEPTH if model.type == "underwater" else equilibrium_depth(model, density)


class ModelCopies:
    """Copies of variants of a model. All variants have the same actuators.

    ``model_of`` contains the index of the variant of each copy. ``step`` is the time step in s, and ``world`` the XML
    element `<world>` or its content. Raise ConfigError if a variant cannot be simulated.
    """

    def __init__(self, models: Sequence[Model], model_of: Ints, step: float, world: str = "", workers: int = 1) -> None:
        self.step, self.copies = step, len(model_of)
        sim = empty_sea(len(models), step, world)
        density = sim.config.world.density
        depths = [resting_depth(m, density) for m in models]
        bodies = [
            sim.enter(f"v{k}", position=(1000.0 * k, 0.0, depth), variant=m)
            for k, (m, depth) in enumerate(zip(models, depths, strict=True))
        ]
        fleet = sim.fleet
        self.actuators = actuators_of(models[0])
        laws = [ActuatorState(fleet.vehicle_type(m)).command_laws for m in models]
        if any(law != laws[0] for law in laws):
            raise ConfigError("limits, dead bands and motor laws of actuators cannot be fitted")
        self.laws = np.array(laws[0], float).reshape(-1, R.LAW)
        kinds = [int(fleet.block_heads[fleet.slots[row] // LANES, B.HEAD_MODEL]) for row in bodies]
        lanes = [
            fleet.blocks[fleet.slots[r] // LANES].reshape(B.ROWS, LANES)[:, fleet.slots[r] % LANES] for r in bodies
        ]
        self._slots, self.owners, block_models = _assign(model_of, len(models))
        blocks = aligned_zeros((len(block_models), B.SIZE))
        blocks[:] = [np.repeat(lanes[m], LANES) for m in block_models]
        heads = np.array([[LANES, kinds[m], 0] for m in block_models], np.int64)
        self._fleet = kernels.FleetView(
            blocks, heads, fleet.params.copy(), fleet.model_ints.copy(), fleet.tables.copy(), aligned_zeros(W.SIZE)
        )
        n = len(self.laws)
        self._actual, self._command, self._effect = R.ROWS, R.ROWS + n, R.ROWS + 2 * n
        self.rows = np.zeros((R.ROWS + 3 * n, self.copies))
        self.rows[self._effect :] = 1.0
        self._waiting, self._diverged = np.zeros(self.copies, bool), np.zeros(self.copies, bool)
        self._shares = Shares(len(blocks))
        self._shares.set_threads(max(1, min(workers, len(blocks))))

    def _thread_state(self) -> R.MotionState:
        return R.MotionState(
            self._fleet._replace(work=aligned_zeros(W.SIZE)),
            self.owners,
            self.laws,
            self.rows,
            self._waiting,
            self._diverged,
            aligned_zeros(3 * LANES),
            self.step,
            1,
            self._actual,
            self._command,
            self._effect,
        )

    def _shares_of(self, commands: Floats) -> Floats:
        """Return commands as fractions of the limits of their actuators."""
        least, greatest = self.laws[:, R.LEAST, None], self.laws[:, R.GREATEST, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            made = np.where(commands > 0.0, commands / greatest, -commands / least)
        return np.asarray(np.where(np.isfinite(made), made, 0.0), float)

    def run(self, inputs: CopyInputs, every: int) -> Floats:
        """Simulate all copies. Return their states (times, STATES, copies) after the warm-up, at every ``every``-th time
        step, beginning with the start states. Yaw is continuous. States are NaN from the time at which they diverged.
        """
        rows, steps = self.rows, len(inputs.commands)
        rows[R.CURRENT : R.CURRENT + 3] = inputs.current
        rows[R.WRENCH : R.WRENCH + 6] = inputs.push
        limits = self.laws[:, R.LEAST, None], self.laws[:, R.GREATEST, None]
        if steps:
            actual = self.laws[:, R.GAIN, None] * np.clip(inputs.commands[0], *limits)
            rows[self._actual : self._command] = actual
        self._place(inputs.start)
        tables = self._shares.tables((self._fleet, self.owners), self._thread_state)
        count = (steps - inputs.warm_up) // every + 1
        states = np.empty((count, STATES, self.copies))
        alive = np.ones(self.copies, bool)
        for k in range(steps):
            if k == inputs.warm_up:
                self._place(inputs.start)
                states[0] = inputs.start
                alive[:] = True
            rows[self._command : self._effect] = self._shares_of(inputs.commands[k])
            self._shares.run(lambda thread, first, end: R.advance(tables[thread], first, end))
            alive &= ~self._diverged
            done = k + 1 - inputs.warm_up
            if done > 0 and done % every == 0:
                states[done // every, :6] = rows[R.POSITION : R.POSITION + 6]
                states[done // every, 6:] = rows[R.VELOCITY : R.VELOCITY + 6]
                states[done // every][:, ~alive] = np.nan
        turned = wrapped(np.diff(states[:, YAW], axis=0))
        states[1:, YAW] = states[0, YAW] + np.cumsum(turned, axis=0)
        return states

    def _place(self, start: Floats) -> None:
        """Initialise the bodies with start states and with the present outputs of the actuators."""
        fresh = self.rows.copy()
        fresh[R.POSITION : R.POSITION + 6] = start[:6]
        fresh[R.VELOCITY : R.VELOCITY + 6] = start[6:]
        R.place(self._fleet.blocks, self._slots, self.laws, fresh, self._actual)


def _assign(model_of: Ints, models: int) -> tuple[Ints, Ints, list[int]]:
    """Assign copies to lanes. Return the lane of each copy, the copy of each lane (or -1) and the model of each block."""
    slots = np.zeros(len(model_of), np.int64)
    owners: list[int] = []
    block_models: list[int] = []
    for model in range(models):
        mine = np.flatnonzero(model_of == model)
        blocks = -(-len(mine) // LANES)
        first = len(block_models) * LANES
        slots[mine] = first + np.arange(len(mine))
        owners += [*mine.tolist(), *[-1] * (blocks * LANES - len(mine))]
        block_models += [model] * blocks
    return slots, np.array(owners, np.int64), block_models
