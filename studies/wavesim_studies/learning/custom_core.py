"""Copies of a user's task, with the interface of :class:`wavesim_studies.learning.core.Core`.

The motion is compiled (:mod:`.motion_kernels`); the methods of the task are called for all copies at once. All arrays
of a task are views of one array, which has a row for each quantity and a column for each copy. A column of a view such
as ``s.position[:, 2]`` is therefore contiguous in memory.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.actuators import Actuator
from wavesim_sdk.arrays import Array, Floats, Ints, Keys, Mask
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_server import array_tables
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.fleet import ActuatorState
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.row_pool import aligned_zeros
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_studies.learning import kernels
from wavesim_studies.learning import motion_kernels as R
from wavesim_studies.learning.core import Core, check_buffer
from wavesim_studies.learning.custom import FIELDS, IN_START, LATER, Task, state_type
from wavesim_studies.learning.shares import Shares
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model, library

__all__ = ["CustomCore", "make_core"]

DEPTH = 20.0  #: depth in m at which underwater vehicles start unless the task sets another depth
PADDING = 8  #: columns beyond the last copy, so that rows do not compete for the same lines of the cache
_INTEGERS = ("observations", "actions", "uniforms", "normals")


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


def size_of(shape: Any) -> tuple[int, ...]:
    """Return the shape of a variable of one copy: () for a number, (3,) for a vector."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else () if shape == 1 else (shape,)


class Layout:
    """Rows of the array of a task, and its views."""

    def __init__(self, task: Task, actuators: int, actions: int) -> None:
        self.variables = {name: size_of(shape) for name, shape in task.variables.items()}
        sizes = {
            "actuators": actuators,
            "effect": actuators,
            "command": actuators,
            "action": actions,
            "previous_action": actions,
            "uniform": task.uniforms,
            "normal": task.normals,
            "observation": task.observations,
            **{f"variable {name}": math.prod(shape) for name, shape in self.variables.items()},
        }
        fixed = {
            "position": (R.POSITION, 3),
            "attitude": (R.ATTITUDE, 3),
            "quaternion": (R.QUATERNION, 4),
            "velocity": (R.VELOCITY, 3),
            "rates": (R.VELOCITY + 3, 3),
            "current": (R.CURRENT, 3),
            "wrench": (R.WRENCH, 6),
        }
        scalar = {"net_weight": R.NET_WEIGHT, "model": R.MODEL, "step": R.STEP, "time": R.TIME}
        self.parts: dict[str, slice | int] = dict(scalar)
        self.parts |= {name: slice(first, first + size) for name, (first, size) in fixed.items()}
        at = R.ROWS
        for name, size in sizes.items():
            self.parts[name] = slice(at, at + size)
            at += size
        self.size = at
        self.type = state_type(tuple(self.variables))
        self.dt = float(task.dt)

    def first(self, name: str) -> int:
        """Return the first row of a part of several rows."""
        part = self.parts[name]
        assert isinstance(part, slice)
        return int(part.start)

    def zeros(self, copies: int) -> Floats:
        """Return an array for some copies."""
        columns = -(-copies // LANES) * LANES
        rows: Floats = aligned_zeros((self.size, columns + PADDING))
        return rows

    def state(self, rows: Floats, copies: int, may_write: frozenset[str]) -> Any:
        """Return the named tuple of the views for the methods of a task."""
        values: dict[str, Any] = {"copies": copies, "dt": self.dt}
        for name in (*FIELDS[2:], *self.variables):
            if (shape := self.variables.get(name)) is not None:
                first = self.first(f"variable {name}")
                whole = rows[first : first + math.prod(shape)].reshape(*shape, rows.shape[1])
                values[name] = np.moveaxis(whole[..., :copies], -1, 0)
                continue
            values[name] = rows[self.parts[name], :copies].T
            if name not in may_write:
                values[name].flags.writeable = False
        return self.type(**values)


class CustomCore:
    """Copies of a user's task that advance together; see :class:`wavesim_studies.learning.custom.Task`."""

    def __init__(self, task: Task, copies: int) -> None:
        if copies < 1:
            raise ConfigError(f"copies must be >= 1, got {copies}")
        self.task, self.copies, self._name = task, copies, type(task).__name__
        self._check_settings()
        self._models = [self._found(m) for m in (task.models or (task.model,))]
        self.actuators = self._common_actuators()
        self.actions = task.actions or len(self.actuators)
        self._own = {name for name in ("command", "update", "terminated", "success", "info") if self._overridden(name)}
        if self.actions != len(self.actuators) and "command" not in self._own:
            raise ConfigError(f"{self._name} has {self._mismatch()}: define command(self, s)")
        self.size, self.bound, self.dt = task.observations, float(task.bound), float(task.dt)
        self.limit = max(1, round(task.limit / task.dt)) if np.isfinite(task.limit) else np.inf
        self.layout = layout = Layout(task, len(self.actuators), self.actions)
        #: number of columns that the task sees. One copy is computed with a twin, because NumPy adds the elements of a
        #: single row in another order than those of several rows.
        self.columns = max(copies, 2)
        self.rows = layout.zeros(self.columns)
        self.state = layout.state(self.rows, self.columns, LATER)
        self.keys = np.zeros(self.rows.shape[1] - PADDING, np.uint64)
        self._episodes = np.zeros(len(self.keys), np.int64)
        self._waiting, self._diverged = np.zeros(len(self.keys), bool), np.zeros(len(self.keys), bool)
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
        self._infos: dict[str, Array] = {}
        self._build()
        self._threads = Shares(len(self.fleet.blocks))
        self._packed: tuple[Any, ...] = ()

    # -- construction ------------------------------------------------------------------------

    def _check_settings(self) -> None:
        t = self.task
        for name in _INTEGERS:
            value = getattr(t, name)
            if not isinstance(value, int) or value < (1 if name == "observations" else 0):
                least = "1 or more" if name == "observations" else "0 or more"
                raise ConfigError(f"{self._name}.{name}: expected an integer of {least}, got {value!r}")
        if not isinstance(t.substeps, int) or t.substeps < 1:
            raise ConfigError(f"{self._name}.substeps: expected an integer of 1 or more, got {t.substeps!r}")
        for name in ("dt", "limit", "bound"):
            value = getattr(t, name)
            if not value > 0.0 or (name == "dt" and not value < np.inf):
                raise ConfigError(f"{self._name}.{name}: expected a positive number, got {value!r}")
        for name, size in t.variables.items():
            if not name.isidentifier() or name.startswith("_") or name in FIELDS:
                raise ConfigError(
                    f"{self._name}.variables: '{name}' is not a free name for a variable; the state already has "
                    + ", ".join(FIELDS)
                )
            if not all(isinstance(n, int) and n > 0 for n in size_of(size)):
                raise ConfigError(
                    f"{self._name}.variables: '{name}' needs a size of 1 or more, or a shape such as (3, 2), got {size!r}"
                )
        for name in ("observe", "reward"):
            if not self._overridden(name):
                raise ConfigError(f"{self._name} does not define {name}(self, s)")

    def _overridden(self, name: str) -> bool:
        return name in vars(self.task) or getattr(type(self.task), name) is not getattr(Task, name)

    def _found(self, model: Any) -> Model:
        if isinstance(model, Model):
            return model
        if model not in library():
            raise ConfigError(f"{self._name}.model: unknown model '{model}'{suggest_name(str(model), list(library()))}")
        return library()[model]

    def _common_actuators(self) -> tuple[Actuator, ...]:
        first = actuators_of(self._models[0])
        if not first:
            raise ConfigError(f"{self._name}.model: '{self._models[0].name}' has no actuators")
        for m in self._models[1:]:
            if actuators_of(m) != first:
                raise ConfigError(f"{self._name}.models: '{m.name}' has other actuators than '{self._models[0].name}'")
        return first

    def _build(self) -> None:
        """Create the blocks of the bodies, with a lane for each copy."""
        sim = empty_sea(len(self._models), self.dt / self.task.substeps)
        density = sim.config.world.density
        depths = [DEPTH if m.type == "underwater" else equilibrium_depth(m, density) for m in self._models]
        rows = [
            sim.enter(f"v{k}", position=(1000.0 * k, 0.0, depth), variant=m)
            for k, (m, depth) in enumerate(zip(self._models, depths, strict=True))
        ]
        fleet, self._depths = sim.fleet, np.array(depths)
        self._kinds = [int(fleet.block_heads[fleet.slots[row] // LANES, B.HEAD_MODEL]) for row in rows]
        self._lanes = [
            fleet.blocks[fleet.slots[r] // LANES].reshape(B.ROWS, LANES)[:, fleet.slots[r] % LANES] for r in rows
        ]
        compiled = [fleet.vehicle_type(m) for m in self._models]
        self._initial = np.array([v.compiled.initial_values[[a.slot for a in self.actuators]] for v in compiled])
        laws = [ActuatorState(v).command_laws for v in compiled]
        if any(law != laws[0] for law in laws):
            raise ConfigError(f"{self._name}.models: the actuators of the models have different motors or limits")
        self._laws = np.array(laws[0], float)
        self.fleet = kernels.FleetView(
            aligned_zeros((0, B.SIZE)),
            np.zeros((0, B.HEAD_SIZE), np.int64),
            fleet.params.copy(),
            fleet.model_ints.copy(),
            fleet.tables.copy(),
            aligned_zeros(W.SIZE),
        )
        self.owners = np.zeros(0, np.int64)
        self._slots = np.full(len(self.keys), -1, np.int64)  # lane of each copy
        self._free: list[list[int]] = [[] for _ in self._models]  # free lanes of each model, in descending order
        self._model_of = np.full(len(self.keys), -1, np.int64)
        self._assign(np.arange(self.columns), np.zeros(self.columns, np.int64))

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
        """Give copies lanes in the blocks of their models."""
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

    # -- interface of the adapters -----------------------------------------------------------

    @property
    def success(self) -> Mask:
        """Which of the episodes that ended in this step succeeded (copies,)."""
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
        """Divide the motion of the copies among ``count`` threads. The results do not depend on their number."""
        self._threads.set_threads(count)
        self._packed = ()

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
        mask = np.ones(self.copies, bool) if chosen is None else np.asarray(chosen, bool)
        if mask.shape != (self.copies,):
            raise ValueError(f"expected a mask of shape ({self.copies},), got {mask.shape}")
        self._start(np.flatnonzero(mask))

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
        held = waiting.any()
        if held:
            action[:, waiting] = 0.0
        s = self.state
        if "command" in self._own and (commands := self._call("command", s)) is not None:
            self._store("command", commands, s, rows[parts["command"]])
            if not np.isfinite(rows[parts["command"]]).all():
                raise WaveSimError(f"{self._name}.command(s) returned a command that is not finite")
        else:
            self._use_action_as_command()
        tables = self._current_tables()
        self._threads.run(lambda k, first, end: R.advance(tables[k], first, end))
        rows[R.STEP, : self.columns] += ~waiting if held else 1.0
        np.multiply(rows[R.STEP], self.dt, out=rows[R.TIME])
        self._draw(rows, self.keys, self._episodes, is_start=False)
        if "update" in self._own:
            self._call("update", s)
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

    def _current_tables(self) -> list[Any]:
        now = (self.fleet, self.owners)
        if len(self._packed) != len(now) or any(map(operator.is_not, now, self._packed)):
            self._packed, self._threads.blocks = now, len(self.fleet.blocks)
            self._states = [
                R.MotionState(
                    self.fleet._replace(work=aligned_zeros(W.SIZE)),
                    self.owners,
                    self._laws,
                    self.rows,
                    self._waiting,
                    self._diverged,
                    aligned_zeros(3 * LANES),
                    self.dt / self.task.substeps,
                    self.task.substeps,
                    self.layout.first("actuators"),
                    self.layout.first("command"),
                    self.layout.first("effect"),
                )
                for _ in range(self._threads.count)
            ]
            self._tables = [array_tables.pack(state) for state in self._states]
        return self._tables

    def _draw(self, rows: Floats, keys: Keys, episodes: Ints, is_start: bool) -> None:
        """Draw the random numbers of copies: those of :meth:`Task.start`, or the normal numbers of the current step."""
        uniforms, normals = self.task.uniforms if is_start else 0, self.task.normals
        if uniforms or normals:
            counters = episodes << 20
            if not is_start:
                counters += rows[R.STEP, : len(keys)].astype(np.int64) + 1
            first, first_normal = self.layout.first("uniform"), self.layout.first("normal")
            R.draw(keys, counters, rows, first, uniforms, first_normal, normals, self._scratch)

    def _judge(self, s: Any, waiting: Mask, held: bool) -> None:
        """Compute the rewards and the ends of the episodes."""
        out, n = self.outputs, self.copies
        diverged = self._diverged[:n]
        reward = self._checked("reward", self._call("reward", s), (self.columns,), "f")[:n]
        out.reward[:] = reward
        out.terminated[:] = False
        if "terminated" in self._own and (ends := self._call("terminated", s)) is not None:
            out.terminated[:] = self._checked("terminated", ends, (self.columns,), "b")[:n]
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
        if "info" in self._own:
            found = self._call("info", s)
            self._infos = {
                name: np.array(self._checked(f"info(s)['{name}']", v, (self.columns,), "f")[:n])
                for name, v in found.items()
            }
        if out.terminated.any() or out.truncated.any():
            won: Any = out.truncated
            if "success" in self._own and (succeeded := self._call("success", s)) is not None:
                won = self._checked("success", succeeded, (self.columns,), "b")[:n] & (out.terminated | out.truncated)
            out.episode_info[:, -1] = won & ~diverged if broken else won
        else:
            out.episode_info[:, -1] = 0.0

    def _observe(self, s: Any, rows: Floats, skipped: Mask | None, seen: Any, ids: Ints | None) -> None:
        """Call the task's ``observe`` and write the observations to ``seen``."""
        staged = rows[self.layout.parts["observation"]]
        self._store("observe", self._call("observe", s), s, staged)
        wrong = R.show(staged, self.bound, np.zeros(len(seen), bool) if skipped is None else skipped, seen)
        if wrong >= 0:
            values = staged[:, wrong]
            which = int(np.flatnonzero(np.isnan(values))[0])
            copy = wrong if ids is None else int(ids[wrong])
            raise WaveSimError(f"{self._name}.observe(s): value {which} of copy {copy} is NaN")

    def _start(self, ids: Ints) -> None:
        """Start new episodes in some copies: set their states, and write their observations."""
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
        fresh[R.POSITION + 2, :columns] = self._depths[models]
        fresh[layout.parts["actuators"], :columns] = self._initial[models].T
        fresh[layout.parts["effect"]] = 1.0
        self._call("start", layout.state(fresh, columns, IN_START))
        models = self._checked_start(fresh[:, :columns])
        lanes = padded[:columns] if self.copies > 1 else np.arange(2)
        if len(self._models) > 1:
            self._assign(lanes, models)
        R.place(self.fleet.blocks, self._slots[lanes], self._laws, fresh, layout.first("actuators"))
        self._draw(fresh, keys, episodes, is_start=False)
        seen = np.zeros((columns, self.size), np.float32)
        self._observe(layout.state(fresh, columns, LATER), fresh, None, seen, padded)
        self.outputs.observation[ids] = seen[:n]
        self.rows[:, ids] = fresh[:, :n]
        if self.copies == 1:
            self.rows[:, 1] = fresh[:, 0]
        self._waiting[ids] = False
        self._waiting[self.copies : self.columns] = False

    def _checked_start(self, fresh: Floats) -> Ints:
        """Return the models of the starts. Raise WaveSimError if a start is not a number or there is no such model."""
        wrong = ~np.isfinite(fresh).all(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            name = next(
                n
                for n, p in self.layout.parts.items()
                if p == row or (isinstance(p, slice) and p.start <= row < p.stop)
            )
            name = name.removeprefix("variable ")
            raise WaveSimError(f"{self._name}.start(s) left a value in s.{name} that is not finite")
        models = fresh[R.MODEL].astype(np.int64)
        if ((models < 0) | (models >= len(self._models))).any():
            raise WaveSimError(f"{self._name}.start(s): s.model must be from 0 to {len(self._models) - 1}")
        return models

    def _call(self, name: str, s: Any) -> Any:
        """Call a method of the task. Raise WaveSimError if it fails."""
        method = getattr(self.task, name)
        try:
            return method(s)
        except Exception as error:
            raise WaveSimError(f"{self._name}.{name}(s) failed: {type(error).__name__}: {error}") from error

    def _checked(self, name: str, value: Any, shape: tuple[int, ...], kind: str) -> Array:
        """Return the result of a method as an array. Raise WaveSimError if its shape or its type is wrong."""
        call = name if "(" in name else f"{name}(s)"
        found = np.asarray(value)
        if found.shape != shape:
            raise WaveSimError(f"{self._name}.{call} must return an array of shape {shape}, got {found.shape}")
        if found.dtype.kind not in ("b" if kind == "b" else "fiub"):
            wanted = "booleans" if kind == "b" else "numbers"
            raise WaveSimError(f"{self._name}.{call} must return {wanted}, got {found.dtype}")
        return found

    def _store(self, name: str, value: Any, s: Any, staged: Floats) -> None:
        """Store the result of a method, which is an array (copies, size) or a sequence of columns."""
        n, size = s.copies, len(staged)
        columns = value if isinstance(value, (tuple, list)) else (value,)
        at = 0
        for column in columns:
            found = np.asarray(column)
            width = found.shape[1] if found.ndim == 2 else 1
            if (
                found.ndim > 2
                or (found.ndim and len(found) != n)
                or found.dtype.kind not in "fiub"
                or at + width > size
            ):
                break
            staged[at : at + width, :n] = found.T
            at += width
        else:
            if at == size:
                return
        shapes = ", ".join(str(np.shape(c)) for c in columns)
        raise WaveSimError(
            f"{self._name}.{name}(s) must return numbers of shape {(n, size)}, or columns that have this shape together; "
            f"got {shapes}"
        )


def make_core(task: str | Task | type[Task], copies: int, **options: Any) -> Core | CustomCore:
    """Return the copies of a task: one of the built-in tasks by its name, or a user's task.

    ``options`` are passed to :class:`~wavesim_studies.learning.core.Core`, or to the class of a user's task.
    """
    if isinstance(task, str):
        return Core(task, copies, **options)
    if isinstance(task, type) and issubclass(task, Task):
        task = task(**options)
    elif options:
        raise ConfigError(f"pass {', '.join(options)} to the task itself, because it has already been created")
    if not isinstance(task, Task):
        raise ConfigError(f"expected the name of a task or a wavesim_studies.learning.Task, got {task!r}")
    return CustomCore(task, copies)
