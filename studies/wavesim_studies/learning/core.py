"""Copies of a task and their arrays: the core of the adapters for Gymnasium and other libraries."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.arrays import Array, Mask
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.row_pool import aligned_zeros
from wavesim_server.study import empty_sea, varied
from wavesim_studies.learning import kernels
from wavesim_studies.learning.shares import Shares
from wavesim_studies.learning.tasks import LAST_S, TASK_NAMES, TASKS
from wavesim_world.config import library

__all__ = ["Core"]

MODELS = 64  #: number of different hulls; the groups of HULL_COPIES copies are assigned to them cyclically
HULL_COPIES = 8  #: number of consecutive copies that share a hull; it is a multiple of the number of lanes


class Core:
    """Copies of a task that advance together.

    ``vary`` (0 to 1) scales the differences between episodes, which affect the current (up to 0.5 m/s), the net
    buoyancy (2 N), the delay of commands (0 to 3 steps) and the thrust. The thrust of each thruster differs by up to
    20 %, and the common thrust of all thrusters is reduced by up to 20 %. ``hulls`` (0 to 1) scales the differences
    between models, which affect mass and inertia (20 %), and added mass and drag (a factor of 0.5 to 1.5). Eight
    consecutive copies share a hull. ``noise`` scales the sensor noise. ``dt`` is the interval between actions in s,
    which is divided into ``substeps`` Runge-Kutta steps.
    """

    units: ClassVar = {"distance": "m", "heading_error": "rad"}  #: units of :meth:`infos`

    def __init__(
        self,
        task: str,
        copies: int,
        *,
        model: str = "bluerov2-marinegym",
        dt: float = 0.05,
        substeps: int = 1,
        vary: float = 1.0,
        hulls: float = 0.0,
        noise: float = 1.0,
    ) -> None:
        if task not in TASKS:
            raise ConfigError(f"unknown task '{task}'{suggest_name(task, TASK_NAMES)}")
        able = [name for name, m in library().items() if m.thruster and not m.fin]
        if model not in able:
            raise ConfigError(f"'{model}' is not a vehicle driven by thrusters only{suggest_name(model, able)}")
        if copies < 1 or substeps < 1 or not 0.0 < dt < np.inf:
            raise ConfigError(
                f"copies and substeps must be >= 1 and dt positive, got {copies} copies, {substeps} substeps, dt {dt:g} s"
            )
        t, thrusters = TASKS[task], library()[model].thruster
        self.copies, self.task, self.model, self.hulls = copies, t, model, hulls
        self.actions = len(thrusters)
        self.size, self.bound = kernels.BASE + self.actions, kernels.BOUND
        self.rules = kernels.TaskRules(
            t.code,
            round(t.limit / dt),
            round(LAST_S / dt),
            float(dt),
            substeps,
            float(t.size),
            2.0 * np.pi / t.period,
            float(t.distance),
            float(t.heading),
            float(noise),
            float(vary),
            float(min(min(-k.minimum, k.maximum) for k in thrusters)),
            kernels.SAME_STEP,
        )
        self.matrix = self._build(0)
        n, blocks, lanes = copies, -(-copies // LANES), LANES
        self.state = kernels.CopyState(
            np.zeros((blocks, kernels.COPY * lanes)),
            np.zeros(blocks * lanes, np.uint64),
            np.zeros((blocks, kernels.DELAYS * self.actions * lanes)),
            np.zeros((lanes, B.MEMORY_STATE)),
            np.zeros(kernels.WORK * lanes),
        )
        self.outputs = kernels.StepOutput(
            np.zeros((n, self.size), np.float32),
            np.zeros(n),
            np.zeros(n, bool),
            np.zeros(n, bool),
            np.zeros((n, self.size), np.float32),
            np.zeros((n, 3)),
            np.zeros((n, kernels.PARTS)),
        )
        self._threads = Shares(blocks)

    def _build(self, seed: int) -> Array:
        """Create the bodies. Return the thruster matrix (6, actions), which contains the force and the torque in B of
        each thruster at unit thrust.
        """
        step, blocks = self.rules.dt / self.rules.substeps, -(-self.copies // LANES)
        models = [library()[self.model]]
        if self.hulls > 0.0:
            models = [self._hull(seed, k) for k in range(min(MODELS, -(-self.copies // HULL_COPIES)))]
        sim = empty_sea(max(len(models), 1), step)
        rows = [
            sim.enter(f"v{k}", position=(0.0, 0.0, kernels.DEPTH + 100.0 * k), variant=m) for k, m in enumerate(models)
        ]
        fleet = sim.fleet
        kinds = [int(fleet.block_heads[fleet.slots[row] // LANES, B.HEAD_MODEL]) for row in rows]
        first = fleet.blocks[fleet.slots[rows[0]] // LANES].reshape(B.ROWS, LANES)[:, fleet.slots[rows[0]] % LANES]
        filled = aligned_zeros((blocks, B.SIZE))
        filled[:] = np.repeat(first, LANES)
        hulls = [k * LANES // HULL_COPIES % len(kinds) for k in range(blocks)]
        heads = np.array([[LANES, kinds[hull], 0] for hull in hulls], np.int64)
        self.fleet = kernels.FleetView(
            filled, heads, fleet.params.copy(), fleet.model_ints.copy(), fleet.tables.copy(), aligned_zeros(W.SIZE)
        )
        p = fleet.params[kinds[0]]
        return np.asarray(p[P.THRUSTER_WRENCH : P.THRUSTER_WRENCH + 6 * self.actions].reshape(self.actions, 6).T)

    def _hull(self, seed: int, number: int) -> Any:
        """Return variation ``number`` of the library model, drawn with the seed."""
        key = np.array([randomness.key(seed, str(number), "hull")], np.uint64)
        u = [2.0 * float(randomness.uniform(key, 0, k)[0]) - 1.0 for k in range(5)]
        base = library()[self.model]
        made = varied(
            base,
            mass=base.mass.value * (1.0 + 0.2 * self.hulls * u[0]),
            added_mass=1.0 + 0.5 * self.hulls * u[1],
            linear_drag=1.0 + 0.5 * self.hulls * u[2],
            quadratic_drag=1.0 + 0.5 * self.hulls * u[3],
        )
        assert base.buoyancy is not None  # net buoyancy is varied elsewhere
        return varied(made, volume=base.buoyancy.volume * made.mass.value / base.mass.value)

    def seed(self, seed: int) -> None:
        """Seed all copies: copy ``i`` uses the random numbers of seed + i."""
        if self.hulls > 0.0:
            self._build(seed)
        self.state.keys[: self.copies] = [randomness.key(seed + i, "copy", "learning") for i in range(self.copies)]
        self.state.numbers[:] = 0.0

    def set_threads(self, count: int) -> None:
        """Divide the copies among ``count`` threads, starting with the next step. The results do not depend on the
        number of threads.
        """
        self._threads.set_threads(count)

    def set_reset_mode(self, mode: int) -> None:
        """Select when a copy starts a new episode: in the step that ends its episode (SAME_STEP, the default), in the
        next step (NEXT_STEP), or only when :meth:`reset_copies` is called (DISABLED).
        """
        self.rules = self.rules._replace(mode=mode)

    def set_observation_buffer(self, observation: Array) -> None:
        """Write future observations into the caller's array. Raise ValueError unless it is a C-contiguous float32 array of
        shape (n, size).
        """
        check_buffer(observation, (self.copies, self.size))
        observation[:] = self.outputs.observation
        self.outputs = self.outputs._replace(observation=observation)

    def reset_copies(self, chosen: Array | None = None) -> None:
        """Start a new episode in the copies that the mask ``chosen`` (n,) selects, or in all copies if it is None.

        The observations are then in ``outputs``. Raise ValueError if the mask has the wrong shape.
        """
        kernels.reset_selected(self._current_tables()[0], checked_mask(chosen, self.copies), self.actions)

    def _current_tables(self) -> list[Any]:
        """Return the table of each thread. The tables are rebuilt after an array or a rule has been replaced."""
        return self._threads.tables((self.fleet, self.state, self.rules, self.outputs), self._thread_state)

    def _thread_state(self) -> kernels.StepState:
        """Return the state of the copies with the scratch arrays of one thread."""
        held, work = np.zeros_like(self.state.held_states), np.zeros_like(self.state.work)
        fleet = self.fleet._replace(work=aligned_zeros(W.SIZE))
        return kernels.StepState(fleet, self.state._replace(held_states=held, work=work), self.rules, self.outputs)

    def step(self, actions: Array) -> None:
        """Advance all copies by one step with ``actions`` (n, thrusters) float32.

        The results are then in ``outputs``. Raise ValueError if ``actions`` has the wrong shape.
        """
        if actions.shape != (self.copies, self.actions):  # the kernel would read beyond it
            raise ValueError(f"expected actions of shape {(self.copies, self.actions)}, got {actions.shape}")
        tables = self._current_tables()
        self._threads.run(lambda k, first, end: kernels.step(tables[k], actions, self.actions, first, end))

    @property
    def limit(self) -> int:
        """Maximum number of steps of an episode."""
        return self.rules.steps

    @property
    def success(self) -> Mask:
        """Mask (copies,) of the episodes that ended in this step and succeeded."""
        won: Mask = self.outputs.episode_info[:, -1] > 0.0
        return won

    def infos(self) -> dict[str, Array]:
        """Return the quantities (copies,) of this step for the infos of Gymnasium, by name."""
        out = self.outputs
        return {
            "distance": out.episode_info[:, 0],
            "heading_error": out.episode_info[:, 1],
            "reward_place": out.parts[:, 0],
            "reward_still": out.parts[:, 1],
            "reward_effort": out.parts[:, 2],
        }


def check_buffer(observation: Array, shape: tuple[int, int]) -> None:
    """Raise ValueError unless an array is a C-contiguous float32 array of this shape."""
    if observation.shape != shape or observation.dtype != np.float32 or not observation.flags.c_contiguous:
        raise ValueError(f"observations require a C-contiguous float32 array of shape {shape}")


def checked_mask(chosen: Any, count: int) -> Mask:
    """Return a mask (count,) as a contiguous array; None selects everything. Raise ValueError if the shape is wrong,
    because a kernel would read beyond the mask.
    """
    mask = np.ones(count, bool) if chosen is None else np.ascontiguousarray(chosen, bool)
    if mask.shape != (count,):
        raise ValueError(f"expected a mask of shape ({count},), got {mask.shape}")
    return mask
