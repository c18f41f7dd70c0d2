"""Trim of a vehicle: attitude, depth and actuator values of straight, level motion in equilibrium, in still water.

from wavesim_studies.linear_models import find_trim
print(find_trim("lauv", 1.5).actuators)
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.actuators import Actuator, ActuatorKind
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server import sailing
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import effort, surge_trim
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics.fleet import ActuatorState, VehicleType
from wavesim_server.dynamics.single_body import SingleBody
from wavesim_server.study import empty_sea, equilibrium_depth
from wavesim_world.config import Model, library

ITERATIONS = 100  #: maximum number of Newton iterations
CHANGE = 1e-6  #: step of the numerical derivative, as a fraction of the scale of an unknown
MAX_CHANGE = 0.2  #: maximum change of an unknown in one iteration, as a fraction of its scale
TOLERANCE = 1e-9  #: remaining acceleration in m/s2 and rad/s2, below which the motion is in equilibrium
NEGLIGIBLE = 1e-12  #: fraction of the scale of an unknown, below which its value is a rounding error
MAX_ANGLE = math.radians(60.0)  #: largest roll, pitch or drift angle of a trim
#: attitude angles that may differ from zero: the trim uses the first set that gives an equilibrium
ATTITUDES: tuple[tuple[int, ...], ...] = ((), (1,), (1, 2), (0, 1, 2))
ANGLE_NAMES = ("roll", "pitch", "yaw")
STEP = 0.01  #: time step in s of the simulation that compiles the model; the results do not depend on it


@dataclass(frozen=True)
class ModelMotion:
    """The equation of motion of one model in still water, as functions of states and actuator values."""

    model: Model
    form: VehicleType
    depth: float  #: depth in m of the origin at rest, or 1000 m for underwater vehicles
    density: float  #: density of the water in kg/m3
    gravity: float  #: acceleration of gravity in m/s2
    body: SingleBody = field(repr=False)

    @property
    def actuators(self) -> tuple[Actuator, ...]:
        """Actuators in the order of the model."""
        return self.form.actuators

    @property
    def free_dofs(self) -> Floats:
        """Mask (6,) of the free degrees of freedom."""
        return np.asarray(self.form.compiled.params[P.FREE_DOFS : P.FREE_DOFS + 6] != 0.0)

    @property
    def floats(self) -> bool:
        """Whether the depth of the vehicle follows from its buoyancy."""
        return self.model.type != "underwater" and bool(self.free_dofs[2])

    def accelerations(self, states: Floats, actuators: Floats) -> Floats:
        """Return the derivatives (n, 6) of the velocity for states (n, 12) and actuator values (n, actuators).

        A state contains north, east, down in m; roll, pitch, yaw in rad; u, v, w in m/s; p, q, r in rad/s. The fluid
        memory has the states that it would reach if the velocity were constant.
        """
        memory = self.steady_memory(states, actuators)
        return self.accelerations_with_memory(states, actuators, memory)[0]

    def steady_memory(self, states: Floats, actuators: Floats) -> Floats:
        """Return the states (n, memory_states) of the fluid memory after a long time with constant velocity."""
        if not self.body.memory_states:
            return np.zeros((len(states), 0))
        drive = self._drive(states, actuators)
        return np.asarray(-np.linalg.lstsq(self._memory_matrix, drive.T, rcond=None)[0].T)

    def _drive(self, states: Floats, actuators: Floats) -> Floats:
        """Return the derivatives of the fluid-memory states when these states are zero."""
        zero = np.zeros((len(states), self.body.memory_states))
        return self.accelerations_with_memory(states, actuators, zero)[1]

    @functools.cached_property
    def _memory_matrix(self) -> Floats:
        """Matrix that gives the derivatives of the fluid-memory states; it does not depend on the motion."""
        n = self.body.memory_states
        rest = np.zeros((n, 12))
        rest[:, 2] = self.depth
        values = np.tile(self.body.rest_values[[a.slot for a in self.actuators]], (n, 1))
        rates = self.accelerations_with_memory(rest, values, np.eye(n))[1]
        return np.asarray((rates - self._drive(rest[:1], values[:1])).T)

    def accelerations_with_memory(self, states: Floats, actuators: Floats, memory: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives (n, 6) of the velocity and those (n, memory_states) of the states of the fluid memory.

        ``memory`` contains the states (n, memory_states) of the fluid memory.
        """
        rigid = np.zeros((len(states), B.RIGID_ROWS))
        rigid[:, :3], rigid[:, B.NU : B.NU + 6] = states[:, :3], states[:, 6:]
        for k, state in enumerate(states):
            rigid[k, B.QW : B.QW + 4] = frames.quaternion(*state[3:6])
        values = np.tile(self.body.rest_values, (len(states), 1))
        values[:, [a.slot for a in self.actuators]] = actuators
        efforts, rates = self.body.efforts_with_memory(rigid, values, memory)
        return np.where(self.free_dofs, efforts[:, effort.ACCELERATION : effort.ACCELERATION + 6], 0.0), rates


def free_motion(model: str | Model) -> ModelMotion:
    """Return the equation of motion of a model (or of a library model, by name). Raise ConfigError for an aircraft."""
    found = library()[model] if isinstance(model, str) else model
    if found.aerodynamics is not None:
        raise ConfigError(f"model '{found.name}' is an aircraft; `wavesim vehicles {found.name}` lists its trim")
    sim = empty_sea(1, STEP)
    form = sim.fleet.vehicle_type(found, False)
    world = sim.config.world
    depth = equilibrium_depth(found, world.density)
    return ModelMotion(found, form, depth, world.density, world.gravity, SingleBody(form))


@dataclass(frozen=True)
class VehicleTrim:
    """Straight, level motion in equilibrium."""

    model: str
    speed: float  #: speed over ground in m/s
    state: Floats  #: state (12,): position, attitude, velocity and angular velocity; the course is north
    actuators: Floats  #: actual value of each actuator in SI units, in the order of the model
    names: tuple[str, ...]  #: names of the actuators
    units: tuple[str, ...]  #: units of the actual values
    memory: Floats  #: states of the fluid memory; empty if the model has none

    @property
    def attitude(self) -> Floats:
        """Roll, pitch and yaw in rad. The yaw is the drift angle, because the course is north."""
        return self.state[3:6]


def _start(motion: ModelMotion, speed: float) -> Floats:
    """Return actuator values near the trim, with which every thruster has an effect."""
    values = motion.body.rest_values[[a.slot for a in motion.actuators]]
    for k, actuator in enumerate(motion.actuators):
        if actuator.kind == ActuatorKind.THRUSTER:
            share = sailing.forward_share(motion.model, actuator.slot)
            low, high = actual_limits(motion)[k]
            values[k] = 0.3 * (high if share >= 0.0 else low) if abs(share) > 0.3 and speed else 0.01 * high
    with contextlib.suppress(ValueError):
        state = ActuatorState(motion.form)
        for k, command in enumerate(surge_trim.trim_commands(motion.form, speed)):
            if command is not None:
                state.commands[k] = command
                values[k] = state.setpoint(k)[1] or values[k]
    return np.asarray(values, float)


def actual_limits(motion: ModelMotion) -> list[tuple[float, float]]:
    """Return the limits of the actual value of each actuator."""
    state, found = ActuatorState(motion.form), []
    for k, actuator in enumerate(motion.actuators):
        ends = []
        for end in (actuator.minimum, actuator.maximum):
            state.commands[k] = end
            ends.append(state.setpoint(k)[1])
        found.append((min(ends), max(ends)))
    return found


class _Search:
    """Newton search for the equilibrium with certain free attitude angles."""

    def __init__(self, motion: ModelMotion, speed: float, depth: float, angles: Sequence[int]) -> None:
        self.motion, self.speed, self.depth, self.angles = motion, speed, depth, tuple(angles)
        self.limits = actual_limits(motion)
        steered = (ActuatorKind.THRUSTER, ActuatorKind.FIN)
        self.used = [k for k, a in enumerate(motion.actuators) if a.kind in steered]
        self.floats = motion.floats
        self.dofs = np.flatnonzero(motion.free_dofs)
        self.idle = motion.body.rest_values[[a.slot for a in motion.actuators]]
        self.start = _start(motion, speed)
        sizes = [max(abs(low), abs(high)) for low, high in self.limits]
        self.scale = np.array([*([0.3] * len(self.angles)), *([0.1] * self.floats), *(sizes[k] for k in self.used)])

    def unpack(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the state and the actuator values for a vector of unknowns."""
        n = len(self.angles)
        state, values = np.zeros(12), self.start.copy()
        state[[3 + k for k in self.angles]] = x[:n]
        state[2] = self.depth + (x[n] if self.floats else 0.0)
        values[self.used] = x[n + self.floats :]
        state[6:9] = frames.rotation(frames.quaternion(*state[3:6])).T @ np.array([self.speed, 0.0, 0.0])
        return state, values

    def residuals(self, xs: Floats) -> Floats:
        """Return the accelerations (n, free dofs) for n vectors of unknowns."""
        states, values = zip(*(self.unpack(x) for x in xs), strict=True)
        return self.motion.accelerations(np.array(states), np.array(values))[:, self.dofs]

    def run(self) -> Floats | None:
        """Return the unknowns in equilibrium; None if the search does not converge within the limits."""
        idle = np.concatenate([np.zeros(len(self.angles) + self.floats), self.idle[self.used]])
        if np.abs(self.residuals(idle[None])).max() < TOLERANCE:
            return idle
        x = np.concatenate([np.zeros(len(idle) - len(self.used)), self.start[self.used]])
        steps = np.diag(CHANGE * self.scale)
        for _ in range(ITERATIONS):
            found = self.residuals(np.concatenate([x[None], x + steps, x - steps]))
            left = found[0]
            if not np.isfinite(found).all():
                return None
            if np.abs(left).max() < TOLERANCE:
                return x if self.allowed(x) else None
            n = len(x)
            slopes = (found[1 : 1 + n] - found[1 + n :]).T / (2.0 * CHANGE)  # per scale of each unknown
            change = -np.linalg.pinv(slopes, 1e-9) @ left
            x = x + self.scale * change * min(1.0, MAX_CHANGE / max(float(np.abs(change).max()), 1e-300))
        return None

    def allowed(self, x: Floats) -> bool:
        """Return whether the actuators are within their limits and the angles are moderate."""
        _, values = self.unpack(x)
        within = all(low - 1e-9 <= values[k] <= high + 1e-9 for k in self.used for low, high in [self.limits[k]])
        return within and bool(np.abs(x[: len(self.angles)]).max(initial=0.0) < MAX_ANGLE)


def find_trim(model: str | Model | ModelMotion, speed: float, depth: float | None = None) -> VehicleTrim:
    """Return the trim of a vehicle at a speed over ground in m/s (negative: astern) in still water.

    ``depth`` is the depth in m of the origin of an underwater vehicle, by default 1000 m; other vehicles float. The
    attitude is level if the actuators allow it. Otherwise, the pitch is free, then also the drift angle, then also the
    roll. Angles of azimuth thrusters, deflectors and tanks keep their rest values. Raise ConfigError if there is no
    equilibrium within the limits of the actuators.
    """
    motion = model if isinstance(model, ModelMotion) else free_motion(model)
    down = motion.depth if depth is None or motion.floats else depth
    for angles in _attitudes(motion):
        search = _Search(motion, speed, down, angles)
        if (x := search.run()) is not None:
            x[np.abs(x) < NEGLIGIBLE * search.scale] = 0.0
            state, values = search.unpack(x)
            return VehicleTrim(
                motion.model.name,
                speed,
                state,
                values,
                tuple(a.name for a in motion.actuators),
                tuple(a.actual_unit for a in motion.actuators),
                motion.steady_memory(state[None], values[None])[0],
            )
    raise ConfigError(_reason(motion, speed, down))


def _attitudes(motion: ModelMotion) -> Iterator[tuple[int, ...]]:
    """Yield the sets of free attitude angles that the model allows."""
    free = motion.free_dofs[3:]
    for angles in ATTITUDES:
        if all(free[k] for k in angles):
            yield angles


def _reason(motion: ModelMotion, speed: float, depth: float) -> str:
    """Return the message for a vehicle without a trim."""
    name = motion.model.name
    state = np.zeros(12)
    state[2] = depth
    rest = motion.body.rest_values[[a.slot for a in motion.actuators]]
    heave = float(motion.accelerations(state[None], rest[None])[0, 2])
    if motion.model.type == "underwater" and abs(heave) > 1e-6 and abs(speed) < 1.0:
        verb = "sinks" if heave > 0.0 else "rises"
        return f"model '{name}' has no trim at {speed:g} m/s: it {verb}, and its actuators cannot prevent this; try another speed"
    return f"model '{name}' has no straight, level motion at {speed:g} m/s within the limits of its actuators; try another speed"
