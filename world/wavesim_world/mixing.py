"""Generic commands for any model: surge, sway, heave, roll, pitch, yaw, rudder and planes. The mixer of a model
converts them to commands for the actuators.

    mix = Mixer("lauv")
    broker.answer(mix(surge=0.6, rudder=0.1, planes=-0.05))

The mixer is derived from the declared actuators of the model: positions, directions, thrust laws and limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wavesim_sdk import arguments
from wavesim_sdk.algebra import interpolate, inverse, matmul, norm, symmetric_eigen
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, hypot
from wavesim_sdk.errors import UnknownName
from wavesim_sdk.names import suggest_name
from wavesim_world.config.actuators import Fin, Thruster
from wavesim_world.config.build import library
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.vehicle import Model

__all__ = ["AXES", "Mixer"]

AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")
#: order in which axes are assigned to the thrusters; an axis that cannot be controlled independently of earlier axes is left to
#: the hull's own stability
_PRIORITY = (0, 5, 2, 1, 3, 4)
_LEAST = 0.1  #: relative effect below which an actuator counts as having no effect
_AIR_DENSITY = 1.25  #: density of the air in kg/m3, for the propellers of aircraft
_DENSITY = 1025.0  #: density of the water in kg/m3, for open-water curves
_AZIMUTH = 0.5 * math.pi  #: minimum angle to either side of a swivel that steers by the direction of its thrust
_HARD_OVER = math.radians(40.0)  #: maximum yaw angle of a swivel


class Mixer:
    """Mixer of one model, given as its name in the library or as the loaded model.

    Call the mixer with keywords. ``surge``, ``sway``, ``heave``, ``roll``, ``pitch`` and ``yaw`` are fractions, from -1
    to 1, of the largest force or moment along or about the axes of B (forward, starboard, down). ``rudder`` and
    ``planes`` are fin angles in rad. A positive ``rudder`` turns the bow to starboard, and positive ``planes`` raise
    the bow. Larger values are limited. The call returns commands by actuator for ``broker.answer``. :attr:`keywords`
    lists the keywords that the model has.
    """

    def __init__(self, model: str | Model) -> None:
        if isinstance(model, str):
            if model not in library():
                raise UnknownName(f"unknown model '{model}'{suggest_name(model, library())}")
            model = library()[model]
        self.model = model = _with_static_thrust(model)
        self._fins = [(f, *_fin_signs(model, k)) for k, f in enumerate(model.fin)]
        self._banks = {f.name: _bank_sign(model, f.name) for f in model.fin}
        columns = _columns(model)
        self._fixed = [k for k, t in enumerate(model.thruster) if t.swivel is None]
        self._swivelled = [t for t in model.thruster if t.swivel is not None]
        self._limits = np.array([_thrust_limits(model.thruster[k]) for k in self._fixed]).reshape(-1, 2)
        self._thrusts = _axis_thrusts(columns[:, self._fixed], self._limits, shape_of(model).size[0])
        axes = {*self._thrusts, *(("surge", "yaw") if self._swivelled else ())}
        axes |= {"yaw" for _, turn, _ in self._fins if turn} | {"pitch" for _, _, lift in self._fins if lift}
        axes |= {"roll"} if any(self._banks.values()) else set()
        self.axes = tuple(axis for axis in AXES if axis in axes)  #: axes on which the actuators act
        angles = [("rudder", any(turn for _, turn, _ in self._fins)), ("planes", any(up for *_, up in self._fins))]
        self.keywords = (*self.axes, *(name for name, there in angles if there))

    def __repr__(self) -> str:
        return f"<Mixer of '{self.model.name}': {', '.join(self.keywords) or 'no actuators'}>"

    def __call__(self, **demands: float) -> dict[str, float]:
        """Return commands by actuator. Raises UnknownName for a keyword that the model does not have."""
        wanted = dict.fromkeys((*AXES, "rudder", "planes"), 0.0)
        for name, value in demands.items():
            if name not in self.keywords:
                hint = suggest_name(name, self.keywords) or "; it has no actuators"
                raise UnknownName(f"'{self.model.name}' has no {name}{hint}")
            number = arguments.number(name, value)
            wanted[name] = max(-1.0, min(1.0, number)) if name in AXES else number
        return {**self._thruster_commands(wanted), **self._swivel_commands(wanted), **self._fin_commands(wanted)}

    def _thruster_commands(self, wanted: dict[str, float]) -> dict[str, float]:
        thrusts = np.zeros(len(self._fixed))
        for axis, (ahead, astern) in self._thrusts.items():
            thrusts += wanted[axis] * ahead if wanted[axis] > 0.0 else -wanted[axis] * astern
        limits = np.where(thrusts > 0.0, self._limits[:, 1], -self._limits[:, 0])
        share = np.abs(thrusts) / np.maximum(limits, 1e-12)
        thrusts /= max(1.0, float(share.max(initial=0.0)))  # the direction of the sum stays
        at = (self.model.thruster[k] for k in self._fixed)
        return {t.name: _command(t, float(force)) for t, force in zip(at, thrusts, strict=True)}

    def _swivel_commands(self, wanted: dict[str, float]) -> dict[str, float]:
        found: dict[str, float] = {}
        surge, yaw = wanted["surge"], wanted["yaw"]
        for t in self._swivelled:
            assert t.swivel is not None
            low, high = _thrust_limits(t)
            side = math.copysign(1.0, t.position[0]) * yaw  # lateral force that turns the bow to starboard
            if min(-t.swivel.minimum, t.swivel.maximum) >= _AZIMUTH:
                force, angle = high * min(1.0, float(hypot(surge, side))), float(atan2(side, surge))
                if abs(angle) > _AZIMUTH and low < 0.0:  # reverse instead of turning the drive around
                    force, angle = force / high * low, angle - math.copysign(math.pi, angle)
                found[t.name], found[f"{t.name}-angle"] = _command(t, force), angle
                continue
            if t.deflector is not None:
                found[f"{t.name}-deflector"] = t.deflector.maximum if surge >= 0.0 else t.deflector.minimum
                force = high * abs(surge)
            else:
                force = high * surge if surge >= 0.0 else -low * surge
            angle = (side if surge >= 0.0 else -side) * _HARD_OVER  # astern, the thrust points the other way
            found[t.name] = _command(t, force)
            found[f"{t.name}-angle"] = max(t.swivel.minimum, min(t.swivel.maximum, angle))
        return found

    def _fin_commands(self, wanted: dict[str, float]) -> dict[str, float]:
        found = {}
        for fin, turn, lift in self._fins:
            by_axes = fin.limit * (turn * wanted["yaw"] + lift * wanted["pitch"])
            by_axes += fin.limit * self._banks[fin.name] * wanted["roll"]
            angle = by_axes + turn * wanted["rudder"] + lift * wanted["planes"]
            found[fin.name] = max(-fin.limit, min(fin.limit, angle))
        return found


def _with_static_thrust(model: Model) -> Model:
    """For an aircraft, return a copy of the model whose thrusters follow the propeller law at zero airspeed; return any
    other model unchanged.
    """
    if model.aerodynamics is None or (o := model.aerodynamics.propeller) is None:
        return model
    square = o.diameter * o.diameter
    law = (0.0, _AIR_DENSITY * square * square * o.kt[0], 0.0)
    return replace(model, thruster=tuple(replace(t, coefficients=law) for t in model.thruster))


def _bank_sign(model: Model, fin: str) -> float:
    """Return the sign of the fin angle that rolls an aircraft to starboard, or 0 if the fin does not control roll."""
    for c in model.aerodynamics.control if model.aerodynamics is not None else ():
        if c.fin == fin and abs(c.roll) > max(abs(c.pitch), abs(c.yaw)):
            return math.copysign(1.0, c.roll)
    return 0.0


def _columns(model: Model) -> Floats:
    """Return the force and moment of each thruster per N of thrust, at swivel angle 0, as an array (6, n)."""
    if model.allocation is not None:
        return np.array(model.allocation.rows, float).reshape(6, -1)
    found = np.zeros((6, len(model.thruster)))
    for k, t in enumerate(model.thruster):
        direction = np.array(t.direction) / norm(t.direction)
        found[:3, k], found[3:, k] = direction, np.cross(t.position, direction)
    return found


def _axis_thrusts(columns: Floats, limits: Floats, length: float) -> dict[str, tuple[Floats, Floats]]:
    """Return, for each axis, the thrusts for full demand in either direction. These thrusts have no effect on any other
    controllable axis.

    An axis is omitted if its maximum effect is below 2 % of the largest one. For this comparison, moments are divided
    by the length of the body.
    """
    if not columns.shape[1]:
        return {}
    full = np.abs(columns) * np.abs(limits).max(axis=1)
    scale = full.max(axis=1)
    levers = np.array([1.0, 1.0, 1.0, length, length, length])
    strongest = (scale / levers).max()
    rows: list[int] = []
    for k in _PRIORITY:
        if scale[k] < 0.02 * levers[k] * strongest:
            continue
        trial = columns[[*rows, k]] / scale[[*rows, k], None] * np.abs(limits).max(axis=1)
        least = symmetric_eigen(matmul(trial, trial.T))[0][-1]  # square of the least singular value
        if len(trial) <= trial.shape[1] and least > _LEAST * _LEAST:
            rows.append(k)
    acting = columns[rows] / scale[rows, None]  # its rows are independent, so this is the pseudo-inverse
    thrusts_of = matmul(acting.T, inverse(matmul(acting, acting.T)))
    found = {}
    for place, k in enumerate(rows):
        thrusts = thrusts_of[:, place]
        both = [direction / _overload(direction, limits) for direction in (thrusts, -thrusts)]
        found[AXES[k]] = both[0], both[1]
    return found


def _overload(thrusts: Floats, limits: Floats) -> float:
    """Return the greatest ratio, among the thrusters, of the thrust to the thrust limit in the same direction."""
    return float((np.abs(thrusts) / np.maximum(np.where(thrusts > 0.0, limits[:, 1], -limits[:, 0]), 1e-12)).max())


def _law(t: Thruster, side: float) -> tuple[float, float]:
    """Return the coefficients c1 and c2 of the bollard thrust c1 n + c2 n abs(n), for positive or negative n."""
    o = t.open_water
    if o is None:
        c1, c2, _ = t.reverse if side < 0.0 and t.reverse else t.coefficients
        return c1, c2
    kt = float(interpolate(0.0, o.rows[::2], o.rows[1::2])) if o.rows else o.kt[0]
    return 0.0, (1.0 - o.deduction) * _DENSITY * (o.diameter * o.diameter) * (o.diameter * o.diameter) * kt


def _thrust_limits(t: Thruster) -> tuple[float, float]:
    """Return the minimum and maximum bollard thrust in N."""
    found = []
    for command in (t.minimum, t.maximum):
        a, b = t.motor
        n = math.copysign(a, command) + b * command if command else 0.0
        c1, c2 = _law(t, n)
        thrust = c1 * n + c2 * n * abs(n)
        found.append(max(-t.thrust_limit, min(t.thrust_limit, thrust)) if t.thrust_limit else thrust)
    return found[0], found[1]


def _command(t: Thruster, force: float) -> float:
    """Return the command, limited to its range, at which a thruster produces a bollard thrust (N)."""
    c1, c2 = _law(t, force)
    size = abs(force)
    n = size / c1 if not c2 else (math.sqrt(c1 * c1 + 4.0 * c2 * size) - c1) / (2.0 * c2)
    a, b = t.motor
    command = math.copysign(max(0.0, (n - a) / b), force) if size > 0.0 else 0.0
    return max(t.minimum, min(t.maximum, command))


def _fin_signs(model: Model, number: int) -> tuple[float, float]:
    """Return the sign of the fin angle that turns the bow to starboard, and the sign of the fin angle that raises the
    bow. A sign of 0 means that the fin has no such effect.
    """
    fin = model.fin[number]
    moment = np.array(_fin_moment(model, fin, number))
    size = float(norm(moment))
    share = moment / size if size else moment
    return (*(math.copysign(1.0, share[k]) if abs(share[k]) > 2.0 * _LEAST else 0.0 for k in (2, 1)),)  # type: ignore[return-value]


def _fin_moment(model: Model, fin: Fin, number: int) -> Sequence[float]:
    """Return the moments K, M and N of a fin at a small positive angle while the body moves ahead. They are scaled by
    an arbitrary positive factor.
    """
    if fin.law == "coefficients":
        return fin.per_angle[3:]
    if model.aerodynamics is not None:
        a = model.aerodynamics
        moved = [c for c in a.control if c.fin == fin.name]
        return [
            a.span * sum(c.roll for c in moved),
            a.chord * sum(c.pitch for c in moved),
            a.span * sum(c.yaw for c in moved),
        ]
    if fin.law == "derivatives":
        factors = {f"d{number + 1}", *(("d", "dr") if number == 0 else ())}
        given = model.derivatives.derivative if model.derivatives is not None else ()
        return [sum(d.value for d in given if d.name in {f"{axis}_{f}" for f in factors}) for axis in "KMN"]
    return list(np.cross(fin.position, fin.normal))
