"""The array of a user's task, with a row for each quantity and a column for each copy, and the views of this array.

A column of a view such as ``s.position[:, 2]`` is contiguous in memory.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.row_pool import aligned_zeros
from wavesim_studies.learning import motion_kernels as R
from wavesim_studies.learning.custom import FIELDS, Task, state_type

PADDING = 8  #: columns beyond the last copy, so that rows do not compete for the same cache lines


def size_of(shape: Any) -> tuple[int, ...]:
    """Return the shape of a variable of one copy: () for a number, (3,) for a vector."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else () if shape == 1 else (shape,)


class TaskArrays:
    """Layout of the rows in the array of a task, and the views of this array."""

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
        """Return the first row of a quantity that has several rows."""
        part = self.parts[name]
        assert isinstance(part, slice)
        return int(part.start)

    def zeros(self, copies: int) -> Floats:
        """Return an array of zeros that has room for ``copies`` copies."""
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

    def name_of(self, row: int) -> str:
        """Return the name of the quantity in a row."""
        spans = {name: (p, p + 1) if isinstance(p, int) else (p.start, p.stop) for name, p in self.parts.items()}
        return next(name for name, (first, end) in spans.items() if first <= row < end).removeprefix("variable ")
