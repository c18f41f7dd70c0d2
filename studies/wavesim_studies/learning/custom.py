"""Your own learning task: a class with the reward, the observation, the start and the end of an episode.

    import numpy as np
    from wavesim_studies import learning

    class Depth(learning.Task):
        model, dt, limit = "lauv", 0.1, 30.0
        observations, uniforms = 4, 1
        variables = {"target": 1}

        def start(self, s):
            s.target = 5.0 + 10.0 * s.uniform[:, 0]
            s.position[:, 2] = 10.0
            s.velocity[:, 0] = 1.5

        def observe(self, s):
            return s.target - s.position[:, 2], s.attitude[:, 1], s.velocity[:, 2], s.rates[:, 1]

        def reward(self, s):
            return -abs(s.target - s.position[:, 2])

    learning.register(Depth)  # gymnasium.make_vec("wavesim/Depth-v0", num_envs=4096)

A method is called once per step for all copies of the task. It receives arrays whose first axis is the copy, and it may
be a function compiled by Numba (``@staticmethod`` and ``@numba.njit``).
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Array, Floats

__all__ = ["Task", "to_body", "to_world"]

#: fields of the state that every task has, in the order of the named tuple
FIELDS = (
    "copies",
    "dt",
    "time",
    "step",
    "position",
    "attitude",
    "quaternion",
    "velocity",
    "rates",
    "actuators",
    "action",
    "previous_action",
    "current",
    "wrench",
    "net_weight",
    "effect",
    "model",
    "uniform",
    "normal",
)
#: fields that a task may set in ``start`` (IN_START), and in its other methods (LATER)
IN_START = frozenset(
    ["position", "attitude", "velocity", "rates", "actuators", "current", "wrench", "net_weight", "effect", "model"]
)
LATER = frozenset(["current", "wrench", "net_weight", "effect"])


@cache
def state_type(variables: tuple[str, ...]) -> Any:
    """Return the named tuple of the states of a task with these variables."""
    return type("TaskState", (_Settable, namedtuple("TaskState", (*FIELDS, *variables))), {"__slots__": ()})


class _Settable:
    """Base class of the state. An assignment to a field writes into the array of the field: ``s.target = 3.0`` is the
    same as ``s.target[:] = 3.0``.
    """

    __slots__ = ()
    _fields: tuple[str, ...]

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(f"s.{name} does not exist; declare '{name}' in the variables of the task")
        array = getattr(self, name)
        if not isinstance(array, np.ndarray) or not array.flags.writeable:
            raise AttributeError(f"s.{name} is read-only here" + (": set it in start" if name in IN_START else ""))
        array[...] = value


class Task:
    """A learning task. Subclass it, and override at least :meth:`observe` and :meth:`reward`.

    Every method receives ``s``, a named tuple of arrays with one row per copy. W is the world frame (north, east, down),
    and B is the body frame (forward, starboard, down).

    - ``position`` (copies, 3): position in W, m
    - ``attitude`` (copies, 3): roll, pitch and heading, rad; ``quaternion`` (copies, 4): the same attitude as q_WB
    - ``velocity``, ``rates`` (copies, 3): velocity over ground and angular velocity in B, m/s and rad/s
    - ``actuators`` (copies, k): actual values of the actuators, N, 1/s, rad or kg
    - ``action``, ``previous_action`` (copies, a): actions of this step and of the previous step
    - ``time``, ``step`` (copies,): time in s and number of steps since the start of the episode
    - ``uniform``, ``normal``: random numbers in (0, 1) for :meth:`start`, and standard normal numbers for each step
    - ``current`` (copies, 3): velocity of the water in W, m/s
    - ``wrench`` (copies, 6): external force and moment in B, N and N m
    - ``net_weight`` (copies,): additional weight in water, N; negative values are additional buoyancy
    - ``effect`` (copies, k): remaining fraction of the force of each thruster and fin, 1 without a fault
    - ``model`` (copies,): index of the copy's model in ``models``
    - your ``variables`` (copies,) or (copies, size); they keep their values until the next start

    ``copies`` is the number of rows, and ``dt`` is the step in s. ``s.target = value`` writes into the array of the
    variable. The state of the vehicle can be set in :meth:`start` only; the current, the wrench, the net weight, the
    effect and your variables can be set in every method. The random numbers of a copy depend only on its seed,
    its episode and its step. A task has no state of its own: everything that differs between copies belongs in its
    ``variables``.
    """

    #: name of a library model, or a model, for example from :func:`wavesim_server.study.varied`
    model: Any = "lauv"
    #: several models with the same actuators; each episode draws one of them, unless :meth:`start` sets ``s.model``
    models: Sequence[Any] = ()
    dt: float = 0.1  #: interval between actions, s
    substeps: int = 2  #: number of Runge-Kutta steps per action
    limit: float = 60.0  #: maximum duration of an episode, s
    observations: int = 0  #: number of values in an observation
    bound: float = 10.0  #: limit of the magnitude of every value in an observation; scale the values to this range
    actions: int = 0  #: number of values in an action; 0 = one per actuator
    uniforms: int = 0  #: number of uniform random numbers per copy for :meth:`start`
    normals: int = 0  #: number of normal random numbers per copy and step
    #: the task's own quantities and their sizes or shapes, for example {"target": 3, "waypoints": (5, 3)}
    variables: ClassVar[Mapping[str, int | tuple[int, ...]]] = {}
    units: ClassVar[Mapping[str, str]] = {}  #: units of the quantities that :meth:`info` returns, for evaluations

    def start(self, s: Any) -> None:
        """Initialise new episodes: write their initial states to the arrays of ``s``, which have one row for each copy
        that starts an episode.

        You can set the position, the attitude, the velocity and the rates, the actuators, the current, the wrench, the
        net weight, the effect, the model, and your variables. Everything else follows from them. Without this method, a
        vehicle starts at the origin, at rest: an underwater vehicle at a depth of 20 m, and others afloat. If you set
        ``s.model``, a depth and actuators that you do not set are those of the new model.
        """

    def command(self, s: Any) -> Array | None:
        """Return the commands (copies, actuators) from -1 to 1 for ``s.action``, or None to use the action itself.

        1 is the maximum of an actuator, -1 is its minimum, and 0 is rest. Override this method for an action that is not
        one value per actuator.
        """
        return None

    def update(self, s: Any) -> None:
        """Update your variables, the current or the wrench after each step, before the reward is computed."""

    def observe(self, s: Any) -> Array | Sequence[Array]:
        """Return the observations: an array (copies, observations), or a sequence of columns (copies,) and arrays
        (copies, n).
        """
        raise NotImplementedError

    def reward(self, s: Any) -> Array:
        """Return the rewards (copies,)."""
        raise NotImplementedError

    def terminated(self, s: Any) -> Array | None:
        """Return a mask (copies,) of the episodes that end now for a reason other than the time limit. None means that
        no episode ends.
        """
        return None

    def success(self, s: Any) -> Array | None:
        """Return a mask (copies,) of the successful episodes; it is used for the episodes that end now. None means that
        the episodes that reach the time limit succeed.
        """
        return None

    def info(self, s: Any) -> Mapping[str, Array]:
        """Return quantities (copies,) by name for the ``infos`` of Gymnasium."""
        return {}


# ``kinematics.rotate_vector`` gives the same vectors, but it normalises the quaternions, builds matrices and takes three
# times as long. A task rotates vectors in each step, and its quaternions are normalised.


def to_body(quaternion: Floats, vector: Floats) -> Floats:
    """Convert vectors (copies, 3) from W to B."""
    a, b, c, d, e, f, g, h, i = frames.rotation_elements(*quaternion.T)
    x, y, z = vector.T
    return np.array([a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + i * z]).T


def to_world(quaternion: Floats, vector: Floats) -> Floats:
    """Convert vectors (copies, 3) from B to W."""
    a, b, c, d, e, f, g, h, i = frames.rotation_elements(*quaternion.T)
    x, y, z = vector.T
    return np.array([a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z]).T
