"""Copies of a user's task, with the interface of :class:`wavesim_studies.learning.core.Core`.

The motion is compiled (:mod:`.motion_kernels`); the methods of the task are called for all copies at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.arrays import Array, Floats, Ints, Keys, Mask
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_server.dynamics.sizes import LANES
from wavesim_studies.learning import kernels
from wavesim_studies.learning import motion_kernels as R
from wavesim_studies.learning.core import Core, check_buffer, checked_mask
from wavesim_studies.learning.custom import IN_START, LATER, Task
from wavesim_studies.learning.motion import Motion, TaskModels
from wavesim_studies.learning.task_arrays import PADDING, TaskArrays
from wavesim_studies.learning.task_methods import TaskMethods
from wavesim_studies.learning.tasks import TEAM_TASK

if TYPE_CHECKING:
    from wavesim_studies.learning.team_rows import TeamRows

__all__ = ["CustomCore", "make_core"]


class TaskOutput(NamedTuple):
    """Outputs of a step. ``last`` is the observation before a reset; the last column of ``episode_info`` is the
    success.
    """

    observation: kernels.Singles
    reward: Floats
    terminated: Mask
    truncated: Mask
    last: kernels.Singles
    episode_info: Floats


class CustomCore:
    """Copies of a user's task that advance together; see :class:`wavesim_studies.learning.custom.Task`."""

    def __init__(self, task: Task, copies: int) -> None:
        if copies < 1:
            raise ConfigError(f"copies must be >= 1, got {copies}")
        self.task, self.copies, self._methods = task, copies, TaskMethods(task)
        models = TaskModels(task)
        self._models, self.actuators, self._name = models.models, models.actuators, self._methods.name
        self.actions = task.actions or len(self.actuators)
        if self.actions != len(self.actuators) and "command" not in self._methods.own:
            raise ConfigError(f"{self._name} has {self._mismatch()}: define command(self, s)")
        self.size, self.bound, self.dt = task.observations, float(task.bound), float(task.dt)
        self.limit = max(1, round(task.limit / task.dt)) if np.isfinite(task.limit) else np.inf
        self.layout = layout = TaskArrays(task, len(self.actuators), self.actions)
        #: number of columns that the task sees. A single copy is computed together with a duplicate, because NumPy sums
        #: a single row in a different order from several rows.
        self.columns = max(copies, 2)
        self.rows = layout.zeros(self.columns)
        self.state = layout.state(self.rows, self.columns, LATER)
        self.keys = np.zeros(self.rows.shape[1] - PADDING, np.uint64)
        self._episodes = np.zeros(len(self.keys), np.int64)
        self._scratch = np.zeros(LANES)
        self._mode = kernels.SAME_STEP
        self.outputs = TaskOutput(
            np.zeros((copies, self.size), np.float32),
            np.zeros(copies),
            np.zeros(copies, bool),
            np.zeros(copies, bool),
            np.zeros((copies, self.size), np.float32),
            np.zeros((copies, 1)),
        )
        self.units = task.units  #: units of :meth:`infos`
        self._infos: dict[str, Array] = {}
        self.motion = Motion(task, models, layout, self.rows, self.columns)
        self._waiting, self._diverged = self.motion.waiting, self.motion.diverged

    # -- interface of the adapters -----------------------------------------------------------

    @property
    def success(self) -> Mask:
        """Mask (copies,) of the episodes that ended in this step and succeeded."""
        won: Mask = self.outputs.episode_info[:, -1] > 0.0
        return won

    def infos(self) -> dict[str, Array]:
        """Return the quantities (copies,) that the task reports for this step, by name."""
        return self._infos

    def seed(self, seed: int) -> None:
        """Seed all copies: copy ``i`` uses the random numbers of seed + i."""
        found = [randomness.key(seed + i, "copy", "task") for i in range(self.copies)]
        self.keys[: self.columns] = found if self.copies > 1 else found * 2
        self._episodes[:] = 0

    def set_threads(self, count: int) -> None:
        """Divide the motion of the copies among ``count`` threads. The results do not depend on the number of
        threads.
        """
        self.motion.set_threads(count)

    def set_reset_mode(self, mode: int) -> None:
        """See :meth:`wavesim_studies.learning.core.Core.set_reset_mode`."""
        self._mode = mode

    def set_observation_buffer(self, observation: Array) -> None:
        """See :meth:`wavesim_studies.learning.core.Core.set_observation_buffer`."""
        check_buffer(observation, (self.copies, self.size))
        observation[:] = self.outputs.observation
        self.outputs = self.outputs._replace(observation=observation)

    def reset_copies(self, chosen: Array | None = None) -> None:
        """See :meth:`wavesim_studies.learning.core.Core.reset_copies`."""
        self._start(np.flatnonzero(checked_mask(chosen, self.copies)))

    def step(self, actions: Array) -> None:
        """Advance all copies by one step with ``actions`` (n, actions) float32. The results are then in ``outputs``."""
        if actions.shape != (self.copies, self.actions):
            raise ValueError(f"expected actions of shape {(self.copies, self.actions)}, got {actions.shape}")
        rows, parts, n, out = self.rows, self.layout.parts, self.copies, self.outputs
        waiting = self._waiting[: self.columns]
        rows[parts["previous_action"]] = rows[parts["action"]]
        action = rows[parts["action"], : self.columns]
        np.clip(actions.T, -1.0, 1.0, out=action)
        np.copyto(action, 0.0, where=action != action)  # replace NaN by 0
        held = bool(waiting.any())
        if held:
            action[:, waiting] = 0.0
        s, own, call = self.state, self._methods.own, self._methods.call
        if "command" in own and (commands := call("command", s)) is not None:
            self._methods.store("command", commands, s, rows[parts["command"]])
            if not np.isfinite(rows[parts["command"]]).all():
                raise WaveSimError(f"{self._name}.command(s) returned a command that is not finite")
        else:
            self._use_action_as_command()
        self.motion.advance()
        rows[R.STEP, : self.columns] += ~waiting if held else 1.0
        np.multiply(rows[R.STEP], self.dt, out=rows[R.TIME])
        self._draw(rows, self.keys, self._episodes, is_start=False)
        if "update" in own:
            call("update", s)
        self._judge(s, waiting, held)
        self._observe(s, rows, self._waiting if held else None, out.observation, None)
        ended = out.terminated | out.truncated
        due = np.flatnonzero(waiting[:n]) if self._mode == kernels.NEXT_STEP and held else None
        if ended.any():
            if self._diverged[:n].any():
                out.observation[self._diverged[:n] & ended] = 0.0
            np.copyto(out.last, out.observation, where=ended[:, None])
            if self._mode == kernels.SAME_STEP:
                due = np.flatnonzero(ended)
            else:
                waiting[:n] |= ended
                waiting[n:] = waiting[:1] if n == 1 else False
        if due is not None:
            self._start(due)

    def _use_action_as_command(self) -> None:
        if self.actions != len(self.actuators):
            raise WaveSimError(f"{self._name}.command(s) returned None; the task has {self._mismatch()}")
        self.rows[self.layout.parts["command"]] = self.rows[self.layout.parts["action"]]

    def _mismatch(self) -> str:
        return f"{self.actions} actions, but '{self._models[0].name}' has {len(self.actuators)} actuators"

    # -- parts of a step ---------------------------------------------------------------------

    def _draw(self, rows: Floats, keys: Keys, episodes: Ints, is_start: bool) -> None:
        """Draw the random numbers of copies: those for :meth:`Task.start`, or the normal numbers for the current
        step.
        """
        uniforms, normals = self.task.uniforms if is_start else 0, self.task.normals
        if uniforms or normals:
            counters = episodes << 20
            if not is_start:
                counters += rows[R.STEP, : len(keys)].astype(np.int64) + 1
            first, first_normal = self.layout.first("uniform"), self.layout.first("normal")
            R.draw(keys, counters, rows, first, uniforms, first_normal, normals, self._scratch)

    def _judge(self, s: Any, waiting: Mask, held: bool) -> None:
        """Compute the rewards and the ends of the episodes."""
        out, n, own, call, checked = (
            self.outputs,
            self.copies,
            self._methods.own,
            self._methods.call,
            self._methods.checked,
        )
        diverged = self._diverged[:n]
        reward = checked("reward", call("reward", s), (self.columns,), "f")[:n]
        out.reward[:] = reward
        out.terminated[:] = False
        if "terminated" in own and (ends := call("terminated", s)) is not None:
            out.terminated[:] = checked("terminated", ends, (self.columns,), "b")[:n]
        broken = diverged.any()
        if broken:
            out.reward[diverged] = 0.0
            out.terminated[diverged] = True
        np.greater_equal(self.rows[R.STEP, :n], self.limit, out=out.truncated)
        if held:
            out.reward[waiting[:n]] = 0.0
            out.terminated[waiting[:n]] = out.truncated[waiting[:n]] = False
        if not np.isfinite(out.reward).all():
            i = int(np.flatnonzero(~np.isfinite(out.reward))[0])
            raise WaveSimError(f"{self._name}.reward(s) returned {out.reward[i]} for copy {i}, whose state is finite")
        out.truncated[out.terminated] = False
        if "info" in own:
            found = call("info", s)
            self._infos = {
                name: np.array(checked(f"info(s)['{name}']", v, (self.columns,), "f")[:n]) for name, v in found.items()
            }
        if out.terminated.any() or out.truncated.any():
            won: Any = out.truncated
            if "success" in own and (succeeded := call("success", s)) is not None:
                won = checked("success", succeeded, (self.columns,), "b")[:n] & (out.terminated | out.truncated)
            out.episode_info[:, -1] = won & ~diverged if broken else won
        else:
            out.episode_info[:, -1] = 0.0

    def _observe(self, s: Any, rows: Floats, skipped: Mask | None, seen: Any, ids: Ints | None) -> None:
        """Call the task's ``observe`` and write the observations to ``seen``."""
        staged = rows[self.layout.parts["observation"]]
        self._methods.store("observe", self._methods.call("observe", s), s, staged)
        wrong = R.show(staged, self.bound, np.zeros(len(seen), bool) if skipped is None else skipped, seen)
        if wrong >= 0:
            values = staged[:, wrong]
            which = int(np.flatnonzero(np.isnan(values))[0])
            copy = wrong if ids is None else int(ids[wrong])
            raise WaveSimError(f"{self._name}.observe(s): value {which} of copy {copy} is NaN")

    def _start(self, ids: Ints) -> None:
        """Start new episodes in the selected copies: set their states, and write their observations."""
        if not len(ids):
            return
        layout, n = self.layout, len(ids)
        columns = max(n, 2)
        fresh = layout.zeros(columns)
        padded = np.zeros(fresh.shape[1] - PADDING, np.int64)
        padded[:n], padded[n:columns] = ids, ids[0]
        self._episodes[ids] += 1
        if self.copies == 1:
            self._episodes[1] = self._episodes[0]
        keys, episodes = self.keys[padded], self._episodes[padded]
        self._draw(fresh, keys, episodes, is_start=True)
        models = np.zeros(columns, np.int64)
        if len(self._models) > 1:
            share = randomness.uniform(keys[:columns], episodes[:columns], 1 << 20)
            models[:] = np.minimum(share * len(self._models), len(self._models) - 1)
            fresh[R.MODEL, :columns] = models
        fresh[R.POSITION + 2, :columns] = self.motion.depths[models]
        fresh[layout.parts["actuators"], :columns] = self.motion.initial[models].T
        fresh[layout.parts["effect"]] = 1.0
        self._methods.call("start", layout.state(fresh, columns, IN_START))
        models = self._follow_models(models, self._checked_start(fresh[:, :columns]), fresh)
        self.motion.place(padded[:columns] if self.copies > 1 else np.arange(2), models, fresh)
        self._draw(fresh, keys, episodes, is_start=False)
        seen = np.zeros((columns, self.size), np.float32)
        self._observe(layout.state(fresh, columns, LATER), fresh, None, seen, padded)
        self.outputs.observation[ids] = seen[:n]
        self.rows[:, ids] = fresh[:, :n]
        if self.copies == 1:
            self.rows[:, 1] = fresh[:, 0]
        self._waiting[ids] = False
        self._waiting[self.copies : self.columns] = False

    def _follow_models(self, drawn: Ints, chosen: Ints, fresh: Floats) -> Ints:
        """Set the depth and the actuators of copies whose model was changed by ``start`` to the values for the new
        model, unless ``start`` has set these values as well. Return the models.
        """
        if (chosen != drawn).any():
            n, motion = len(drawn), self.motion
            for rows, values in (
                (fresh[R.POSITION + 2 : R.POSITION + 3, :n], motion.depths[:, None]),
                (fresh[self.layout.parts["actuators"], :n], motion.initial),
            ):
                np.copyto(rows, values[chosen].T, where=rows == values[drawn].T)
        return chosen

    def _checked_start(self, fresh: Floats) -> Ints:
        """Return the model of each new episode. Raise WaveSimError if its initial state has a value that is not finite,
        or a model that does not exist.
        """
        wrong = ~np.isfinite(fresh).all(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            name = self.layout.name_of(row)
            raise WaveSimError(f"{self._name}.start(s) left a value in s.{name} that is not finite")
        models: Ints = fresh[R.MODEL].astype(np.int64)
        if ((models < 0) | (models >= len(self._models))).any():
            raise WaveSimError(f"{self._name}.start(s): s.model must be from 0 to {len(self._models) - 1}")
        return models


def make_core(task: str | Task | type[Task], copies: int, **options: Any) -> Core | CustomCore | TeamRows:
    """Return the copies of a task: one of the built-in tasks by its name, or a user's task.

    ``options`` are passed to :class:`~wavesim_studies.learning.core.Core`, to
    :class:`~wavesim_studies.learning.team_rows.TeamRows`, or to the class of a user's task.
    """
    if task == TEAM_TASK:
        from wavesim_studies.learning.team_rows import TeamRows  # other tasks need neither sound nor its kernels

        return TeamRows(copies, **options)
    if isinstance(task, str):
        return Core(task, copies, **options)
    if isinstance(task, type) and issubclass(task, Task):
        kind = task
        try:
            task = kind(**options)
        except TypeError as error:
            raise ConfigError(f"cannot create the task {kind.__name__}: {error}") from error
    elif options:
        raise ConfigError(
            f"an existing task accepts no options: pass {', '.join(options)} to its class when you create it"
        )
    if not isinstance(task, Task):
        raise ConfigError(f"expected the name of a task or a wavesim_studies.learning.Task, got {task!r}")
    return CustomCore(task, copies)
