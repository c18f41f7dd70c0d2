"""Linear models of vehicles about a trim: x' = A x + B u, with modes, controllability and step responses.

    from wavesim_studies.linear_models import linearise
    model = linearise("lauv", 1.5)
    print(model.A, model.B, model.modes())

The states are deviations from the trim: north, east, down in m; roll, pitch, yaw in rad; u, v, w in m/s; p, q, r in
rad/s. The states of the fluid memory of a model follow, named after their <memory> or <oscillator>. With ``lags``, the
actual value of each actuator with a lag is a state too. The inputs are deviations of the actuator values in SI units. At rest, a thruster whose thrust grows with the square of its speed has no linear effect;
``B_force`` is the effect of a force and moment, given in the body frame; this effect is never zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm, matrix_balance, schur, solve_sylvester

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_server.dynamics import parameter_rows as P
from wavesim_studies.linear_models.trim import ModelMotion, VehicleTrim, find_trim, free_motion
from wavesim_world.config import Model

STATES: tuple[str, ...] = ("north", "east", "down", "roll", "pitch", "yaw", "u", "v", "w", "p", "q", "r")
STATE_UNITS: tuple[str, ...] = ("m",) * 3 + ("rad",) * 3 + ("m/s",) * 3 + ("rad/s",) * 3
FORCES = ("X", "Y", "Z", "K", "M", "N")
CHANGE = 1e-5  #: step of the numerical derivative in m, rad, m/s or rad/s; for an actuator, as a fraction of its value
#: smallest singular value, relative to the largest, with which a mode still counts as controllable
CONTROLLABLE = 1e-9
ZERO = 1e-9  #: magnitude in 1/s below which an eigenvalue is 0: its mode neither decays nor grows
EQUAL = 1e-6  #: relative difference up to which eigenvalues are equal
MAIN_STATES = 0.3  #: smallest participation, relative to the largest, with which a mode lists a state


@dataclass(frozen=True)
class MotionMode:
    """An eigenvalue of A, or a pair of conjugate eigenvalues."""

    eigenvalue: complex  #: in 1/s; of a pair, the one with the positive imaginary part
    multiplicity: int  #: number of equal eigenvalues
    states: tuple[str, ...]  #: states that take part, the most important first
    controllable: bool  #: whether the actuators can change the mode

    @property
    def period(self) -> float:
        """Period in s; infinite if the mode does not oscillate."""
        return 2.0 * math.pi / self.eigenvalue.imag if self.eigenvalue.imag else math.inf

    @property
    def time_constant(self) -> float:
        """Time in s in which the mode decays by a factor of e; negative if it grows, infinite if it does neither."""
        return -1.0 / self.eigenvalue.real if self.eigenvalue.real else math.inf

    @property
    def damping_ratio(self) -> float:
        """Damping ratio: 1 if the mode decays without oscillation, negative if it grows."""
        return -self.eigenvalue.real / abs(self.eigenvalue) if self.eigenvalue else 0.0


@dataclass(frozen=True)
class LinearModel:
    """Linear model of a vehicle about a trim."""

    trim: VehicleTrim
    A: Floats  #: (n, n)
    B: Floats  #: (n, actuators)
    B_force: Floats  #: (n, 6): effect of a force (N) and a moment (N m) at the origin, given in the body frame
    states: tuple[str, ...]
    state_units: tuple[str, ...]
    inputs: tuple[str, ...]  #: names of the actuators
    input_units: tuple[str, ...]

    def reduced(self, states: Sequence[str]) -> LinearModel:
        """Return the model of some states alone, for example ``("v", "r", "yaw")``. Raise ConfigError for an unknown
        name.
        """
        for name in states:
            if name not in self.states:
                raise ConfigError(f"the linear model has no state '{name}'{suggest_name(name, self.states)}")
        at = [self.states.index(name) for name in states]
        units = tuple(self.state_units[k] for k in at)
        A, B, F = self.A[np.ix_(at, at)], self.B[at], self.B_force[at]
        return LinearModel(self.trim, A, B, F, tuple(states), units, self.inputs, self.input_units)

    def modes(self) -> list[MotionMode]:
        """Return the modes, the slowest first. Equal eigenvalues are one mode."""
        values, found = np.linalg.eigvals(self.A), []
        values[np.abs(values) < ZERO] = 0.0
        left = [complex(v) for v in values if v.imag >= 0.0]
        while left:
            value = left[0]
            equal = [v for v in left if abs(v - value) <= EQUAL * max(abs(value), ZERO)]
            left = [v for v in left if v not in equal]
            share = _participation(self.A, value)
            order = np.argsort(-share, kind="stable")
            main = tuple(self.states[j] for j in order if share[j] > MAIN_STATES * share[order[0]])
            found.append(MotionMode(value, len(equal), main, self._is_controllable(value)))
        return sorted(found, key=lambda m: (abs(m.eigenvalue), m.states))

    def _is_controllable(self, eigenvalue: complex) -> bool:
        """Apply the test of Popov, Belevitch and Hautus with states of balanced size and inputs of equal effect."""
        balanced, (scale, _) = matrix_balance(self.A, permute=False, separate=True)
        B = self.B / scale[:, None]
        size = np.linalg.norm(B, axis=0)
        inputs = B[:, size > 0.0] / size[size > 0.0]
        test = np.hstack([balanced - eigenvalue * np.eye(len(self.A)), inputs])
        singular = np.linalg.svd(test, compute_uv=False)
        return bool(singular[len(self.A) - 1] > CONTROLLABLE * singular[0])

    def step_response(self, actuator: str, size: float, times: Floats) -> Floats:
        """Return the states (times, n) after a step of one actuator by ``size``, at equally spaced times that start at 0.

        Raise ConfigError for an unknown actuator.
        """
        if actuator not in self.inputs:
            raise ConfigError(f"the model has no actuator '{actuator}'{suggest_name(actuator, self.inputs)}")
        n = len(self.A)
        system = np.zeros((n + 1, n + 1))
        system[:n, :n], system[:n, n] = self.A, size * self.B[:, self.inputs.index(actuator)]
        advance = expm(system * float(times[1] - times[0]))
        x = np.zeros(n + 1)
        x[n] = 1.0
        found = np.empty((len(times), n))
        for k in range(len(times)):
            found[k] = x[:n]
            x = advance @ x
        return found


def _participation(A: Floats, eigenvalue: complex) -> Floats:
    """Return the participation factors (n,) of the states in a mode.

    They are the diagonal of the spectral projector, which also exists if the eigenvectors do not span the space.
    """
    reach = EQUAL * max(abs(eigenvalue), ZERO) + 2.0 * ZERO
    T, Q, n = schur(A, output="complex", sort=lambda v: abs(v - eigenvalue) <= reach)
    if n == len(A):
        return np.ones(n)
    X = solve_sylvester(T[:n, :n], -T[n:, n:], -T[:n, n:])
    return np.asarray(np.abs(np.einsum("ij,ji->i", Q[:, :n] @ np.hstack([np.eye(n), -X]), Q.conj().T)))


def memory_states(model: Model) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and the units of the fluid-memory states of a model, in the order of the equation of motion.

    ``memory-2-x0`` is the state x0 of the second <memory>. ``oscillator-3`` and ``oscillator-3-rate`` are the
    displacement and the rate of the third <oscillator>.
    """
    names, units = [], []
    for m, memory in enumerate(model.memory, 1):
        order, unit = len(memory.a), "m" if memory.source in "uvw" else "rad"
        for k in range(order):
            powers = (
                order - 1 - k
            )  # the last state is the integral of a velocity, the one before it the double integral
            names.append(f"memory-{m}-x{k}")
            units.append(unit if powers == 0 else f"{unit} s{powers if powers > 1 else ''}")
    if model.radiation is not None:
        numbers = range(1, len(model.radiation.oscillator) + 1)
        names += [f"oscillator-{k}" for k in numbers] + [f"oscillator-{k}-rate" for k in numbers]
        units += ["sqrt(kg) m" for _ in numbers] + ["sqrt(kg) m/s" for _ in numbers]
    return tuple(names), tuple(units)


def derivatives(motion: ModelMotion, states: Floats, actuators: Floats) -> Floats:
    """Return the derivatives (n, 12 + memory) of states of the same shape with actuator values (n, actuators)."""
    found = np.empty_like(states)
    for k, state in enumerate(states):
        roll, pitch = state[3], state[4]
        p, q, r = state[9:12]
        found[k, :3] = frames.rotation(frames.quaternion(*state[3:6])) @ state[6:9]
        turn = q * math.sin(roll) + r * math.cos(roll)
        found[k, 3] = p + turn * math.tan(pitch)
        found[k, 4] = q * math.cos(roll) - r * math.sin(roll)
        found[k, 5] = turn / math.cos(pitch)
    found[:, 6:12], found[:, 12:] = motion.accelerations_with_memory(states[:, :12], actuators, states[:, 12:])
    return found


def lags(model: Model) -> Floats:
    """Return the time constants (actuators,) of the actuators in s, in the order of the model; 0 = no lag."""
    swivels = [t.swivel.lag for t in model.thruster if t.swivel is not None]
    deflectors = [t.deflector.lag for t in model.thruster if t.deflector is not None]
    others = [0.0] * len(model.ballast) + [a.lag for a in model.actuator]
    return np.array([*(t.lag for t in model.thruster), *(f.lag for f in model.fin), *swivels, *deflectors, *others])


def linearise(
    model: str | Model, speed: float, depth: float | None = None, with_lags: bool = False, at: VehicleTrim | None = None
) -> LinearModel:
    """Return the linear model of a vehicle about its trim at a speed over ground in m/s, in still water.

    ``depth`` is described at :func:`find_trim`; ``at`` replaces the trim. Raise ConfigError if the model has no trim.
    """
    motion = free_motion(model)
    trim = find_trim(motion, speed, depth) if at is None else at
    start = np.concatenate([trim.state, trim.memory])
    n, m = len(start), len(trim.actuators)
    sizes = np.array([max(abs(a.minimum), abs(a.maximum), 1e-9) for a in motion.actuators])
    steps = np.concatenate([np.full(n, CHANGE), CHANGE * np.maximum(np.abs(trim.actuators), 0.01 * sizes)])
    base = np.concatenate([start, trim.actuators])
    points = np.concatenate([base + np.diag(steps), base - np.diag(steps)])
    values = derivatives(motion, points[:, :n], points[:, n:])
    slopes = ((values[: n + m] - values[n + m :]) / (2.0 * steps[:, None])).T
    A, B, F = slopes[:, :n], slopes[:, n:], np.zeros((n, 6))
    F[6:12] = motion.form.compiled.params[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6)
    memory_names, memory_units = memory_states(motion.model)
    names, units = STATES + memory_names, STATE_UNITS + memory_units
    if with_lags:
        constants = lags(motion.model)
        slow = np.flatnonzero(constants > 0.0)
        fast = constants <= 0.0
        rates = np.zeros((len(slow), m))
        rates[np.arange(len(slow)), slow] = 1.0 / constants[slow]
        A = np.block([[A, B[:, slow]], [np.zeros((len(slow), n)), -np.diag(1.0 / constants[slow])]])
        B, F = np.vstack([B * fast, rates]), np.vstack([F, np.zeros((len(slow), 6))])
        names += tuple(trim.names[k] for k in slow)
        units += tuple(trim.units[k] for k in slow)
    return LinearModel(trim, A, B, F, names, units, trim.names, trim.units)
