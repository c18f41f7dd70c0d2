"""Thrusters and fins of a model as links and joints, along forward, port and up. SDF and URDF use the same parts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.importers.spatial_matrices import spatial_inertia
from wavesim_studies.linear_models.trim import ModelMotion, actual_limits
from wavesim_studies.model_export.axes import FLIP6, flipped
from wavesim_studies.model_export.hull_terms import HullTerms, derivative
from wavesim_world.config.actuators import Fin, Thruster
from wavesim_world.config.primitives import shape_of

DRAWN_DIAMETER = 0.1  #: diameter of a propeller in m if the model does not state it; it has no effect on the thrust
PART_SHARES = (1e-3, 1e-4, 1e-5, 1e-6)  #: mass of a propeller or fin, as a share of the mass of the vehicle


@dataclass(frozen=True)
class ExportedThruster:
    """A propeller on a shaft, with its constants per rad/s."""

    name: str
    position: Floats  #: (3,) in m
    axis: Floats  #: direction (3,) of positive thrust
    shaft: bool  #: whether the command is a shaft speed in rad/s, and not a force in N
    per_square: float  #: thrust per squared shaft speed, N/(rad/s)^2
    per_speed: float  #: thrust per shaft speed and speed through the water, N/(rad/s m/s)
    wake: float  #: wake fraction
    diameter: float  #: in m
    minimum: float  #: smallest command, in N or rad/s
    maximum: float
    swivel: tuple[float, float, float] | None  #: minimum, maximum (rad) and largest rate (rad/s; 0 = any) of its angle


@dataclass(frozen=True)
class ExportedFin:
    """A fin on a shaft. The force is 1/2 rho V^2 area (slope angle + inflow_slope alpha) along ``upward``."""

    name: str
    position: Floats  #: point of application (3,) in m
    forward: Floats  #: direction (3,) of the chord
    upward: Floats  #: direction (3,) of the force at a positive angle
    area: float  #: in m2
    slope: float  #: lift coefficient per rad of the fin angle
    inflow_slope: float  #: lift coefficient per rad of the angle of attack of the hull
    limit: float  #: largest angle in rad
    rate: float  #: largest rate in rad/s; 0 = any

    @property
    def hinge(self) -> Floats:
        """Axis (3,) about which a positive angle turns the chord towards ``upward``."""
        return np.cross(self.forward, self.upward)


class _Losses:
    """Properties that the file lacks, each with the names of the actuators that have it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: dict[str, list[str]] = {}

    def add(self, text: str, name: str) -> None:
        """Add a property of one actuator."""
        self.names.setdefault(text, []).append(name)

    def texts(self) -> list[str]:
        """Return one text for each property."""
        return [f"{text} of the {self.kind}{'s' * (len(n) > 1)} {', '.join(n)}" for text, n in self.names.items()]


def thruster_parts(motion: ModelMotion, missing: list[str]) -> list[ExportedThruster]:
    """Return the thrusters. Texts about everything that they do not represent are added to ``missing``."""
    p, limits, found = motion.form.compiled.params, actual_limits(motion), []
    names, losses = [a.name for a in motion.actuators], _Losses("thruster")
    for k, thruster in enumerate(motion.model.thruster):
        wrench = p[P.THRUSTER_WRENCH + 6 * k : P.THRUSTER_WRENCH + 6 * k + 6] * FLIP6
        size = float(np.linalg.norm(wrench[:3]))
        if size < 1e-9:
            losses.add("the moment without a force", thruster.name)
            continue
        place, axis = flipped(thruster.position), wrench[:3] / size
        if motion.model.allocation is not None or np.abs(np.cross(place, wrench[:3]) - wrench[3:]).max() > 1e-9:
            place = np.cross(wrench[:3], wrench[3:]) / size**2
            if abs(wrench[:3] @ wrench[3:]) > 1e-9 * size * float(np.linalg.norm(wrench[3:])):
                losses.add("the moment about the axis", thruster.name)
        low, high = limits[names.index(thruster.name)]
        law = p[P.THRUSTER_LAW + P.LAW_SIZE * k : P.THRUSTER_LAW + P.LAW_SIZE * (k + 1)]
        c1, c2, c3 = law[P.LAW_AHEAD : P.LAW_AHEAD + 3] * size
        shaft, turn = thruster.law == "shaft", 2.0 * math.pi
        diameter = thruster.open_water.diameter if thruster.open_water is not None else DRAWN_DIAMETER
        s = thruster.swivel
        found.append(
            ExportedThruster(
                thruster.name,
                place,
                axis,
                shaft,
                c2 / turn**2,
                c3 / turn,
                thruster.wake,
                diameter,
                low * (turn if shaft else size),
                high * (turn if shaft else size),
                None if s is None else (s.minimum, s.maximum, s.rate),
            )
        )
        for text in _missing_of_thruster(thruster, law, c1):
            losses.add(text, thruster.name)
    missing += losses.texts()
    return found


def _missing_of_thruster(thruster: Thruster, law: Floats, c1: float) -> list[str]:
    """Return texts about the properties of a thruster that Gazebo's Thruster plugin does not have."""
    found = []
    water = thruster.open_water
    if thruster.law == "force" and (thruster.coefficients != (1.0, 0.0, 0.0) or thruster.reverse):
        found.append("the thrust law")
    if thruster.law == "shaft" and water is None and c1 != 0.0:
        found.append("the thrust proportional to the shaft speed")
    if thruster.law == "shaft" and np.any(law[P.LAW_AHEAD : P.LAW_AHEAD + 3] != law[P.LAW_ASTERN : P.LAW_ASTERN + 3]):
        found.append("the thrust law astern (the file has the law ahead)")
    if law[P.LAW_AHEAD + 2] != 0.0 and thruster.inflow == "along":
        found.append("the inflow speed along the axis (the file has the total speed)")
    if water is not None and water.rows:
        found.append("the table of KT")
    if water is not None and any(water.kq) and water.torque_share:
        found.append("the propeller torque on the hull")
    if thruster.deflector is not None:
        found.append("the deflector")
    if thruster.lag > 0.0 or (thruster.swivel is not None and thruster.swivel.lag > 0.0):
        found.append("the lag")
    if thruster.motor != (0.0, 1.0):
        found.append("the motor law (the command is the output of the motor)")
    if thruster.thrust_limit > 0.0 and thruster.law == "shaft":
        found.append("the thrust limit")
    if thruster.dead_band > 0.0:
        found.append("the dead band")
    return found


def fin_parts(motion: ModelMotion, missing: list[str]) -> list[ExportedFin]:
    """Return the fins. Texts about everything that they do not represent are added to ``missing``."""
    p, model, found, losses = motion.form.compiled.params, motion.model, [], _Losses("fin")
    half_density = 0.5 * motion.density
    from_derivatives = _fin_derivatives(motion, missing)
    for k, fin in enumerate(model.fin):
        unit = p[P.FIN_WRENCH + 6 * k : P.FIN_WRENCH + 6 * k + 6]
        if fin.law == "linear":
            wrench, inflow = unit * p[P.FIN_LIFT + k], p[P.FIN_LIFT + k] * p[P.FIN_INFLOW + k]
        elif fin.law == "coefficients":
            wrench, inflow = p[P.FIN_PER_ANGLE + 6 * k : P.FIN_PER_ANGLE + 6 * k + 6], 0.0
        else:
            wrench, inflow = from_derivatives[k], 0.0
        wrench = wrench * FLIP6
        size = float(np.linalg.norm(wrench[:3]))
        if size < 1e-12:
            losses.add(f"the force (law={fin.law})", fin.name)
            continue
        upward = wrench[:3] / size
        if abs(wrench[:3] @ wrench[3:]) > 1e-6 * size * float(np.linalg.norm(wrench[3:])):
            losses.add("the moment about the direction of the force", fin.name)
        place = flipped(fin.position) if fin.law == "linear" else np.cross(wrench[:3], wrench[3:]) / size**2
        ahead = np.array([1.0, 0.0, 0.0])
        ahead = ahead - (ahead @ upward) * upward
        if np.linalg.norm(ahead) < 1e-3:
            losses.add("the force, which acts forward,", fin.name)
            continue
        area = fin.area or 0.01
        found.append(
            ExportedFin(
                fin.name,
                place,
                ahead / np.linalg.norm(ahead),
                upward,
                area,
                size / (half_density * area),
                inflow / (half_density * area),
                fin.limit,
                fin.rate,
            )
        )
        for text in _missing_of_fin(fin):
            losses.add(text, fin.name)
    missing += losses.texts()
    return found


def _missing_of_fin(fin: Fin) -> list[str]:
    """Return texts about the properties of a fin that Gazebo's LiftDrag plugin does not have."""
    found = []
    if fin.stall > 0.0 and fin.law == "linear":
        found.append("the stall")
    if any(fin.per_square):
        found.append("the force per squared angle")
    if fin.lag > 0.0:
        found.append("the lag")
    return found


def _fin_derivatives(motion: ModelMotion, missing: list[str]) -> Floats:
    """Return the force and moment (fins, 6) per squared speed and per rad from the named derivatives."""
    p, ints, fins = motion.form.compiled.params, motion.form.compiled.ints, motion.model.fin
    found, left = np.zeros((len(fins), 6)), 0
    ahead = [[1, 1], [1, 7]]  # u u and u abs(u) equal the squared speed while the vehicle moves ahead
    for t in range(ints[M.DERIVATIVE_COUNT]):
        axis, factors, speeds, numbers = derivative(ints, t)
        value = p[P.DERIVATIVE_COEFFICIENT + t]
        if not numbers or value == 0.0:
            continue
        squared = (speeds == 2 and not factors) or (speeds == 0 and sorted(factors) in ahead)
        if len(numbers) == 1 and squared:
            found[numbers[0], axis] += value
        else:
            left += 1
    if left:
        missing.append(f"{left} of the named derivatives with a fin angle (not the squared speed times the angle)")
    return found


def part_inertia(mass: float, size: float) -> Floats:
    """Return the moments of inertia (3, 3) of a small sphere that stands for a propeller or fin."""
    return 0.4 * mass * (0.5 * size) ** 2 * np.eye(3)


def base_inertial(
    terms: HullTerms, places: list[Floats], motion: ModelMotion
) -> tuple[float, Floats, Floats, float, float]:
    """Return the mass, centre and inertia of the hull without its parts, and the mass and size of a part.

    The hull and the parts together have the mass, the centre and the inertia of the vehicle.
    """
    size = 0.02 * max(shape_of(motion.model).size)
    whole = spatial_inertia(terms.mass, terms.centre, terms.inertia)
    for share in PART_SHARES:
        part = share * terms.mass
        rest = whole - sum(spatial_inertia(part, place, part_inertia(part, size)) for place in places)
        mass = float(terms.mass - part * len(places))
        centre = np.array([rest[5, 1], rest[3, 2], rest[4, 0]]) / mass
        offset = spatial_inertia(mass, centre, np.zeros((3, 3)))[3:, 3:]
        inertia = rest[3:, 3:] - offset
        sizes = np.linalg.eigvalsh(inertia)
        if sizes[0] > 0.0 and sizes[2] <= sizes[0] + sizes[1]:
            break
    return mass, centre, inertia, part, size
