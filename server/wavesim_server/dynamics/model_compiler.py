"""Compilation of a model into the numbers that the kernel uses: parameter rows, flags and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.algebra import dot, interpolate, matmul, norm
from wavesim_sdk.algebra import inverse as matrix_inverse
from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.elementary import expm1, sin
from wavesim_sdk.names import shorten, suggest_name
from wavesim_server.dynamics import aircraft, cross_flow_sections, hull_mesh, integrators, registry
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import model_columns as M
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.dynamics import work_rows as W
from wavesim_server.dynamics.extension_points import ActuatorType, Term
from wavesim_server.dynamics.sizes import (
    FINS,
    OTHER_COEFFICIENTS,
    SLOT_ANGLE,
    SLOT_BALLAST,
    SLOT_BUCKET,
    SLOT_FIN,
    SLOTS,
    SWIVELS,
    TABLE_FACES,
    TABLE_POINTS,
)
from wavesim_world.config import Model, matrix
from wavesim_world.config.actuators import Aerofoil, Coefficient, Thruster
from wavesim_world.config.exposure import Radiation
from wavesim_world.config.primitives import PrimitiveShape, shape_of
from wavesim_world.config.validation import fail_at
from wavesim_world.config.vehicle import CrossFlow, Derivatives, Matrix6
from wavesim_world.config.world import World
from wavesim_world.hull import Hull

MIN_TIME_CONSTANT = 1e-9  #: value in s below which an actuator's time constant counts as zero
AXES = "XYZKMN"
MOTIONS = "uvwpqr"
HORIZONTAL_DOFS = np.array([1.0, 1.0, 0.0, 0.0, 0.0, 1.0])  #: degrees of freedom in the horizontal plane


def contact_margin(shape: PrimitiveShape) -> float:
    """Return the radius by which the core of a shape is rounded for contact."""
    return shape.half_size[0] if shape.code == 2 else 0.5 * min(shape.half_size)


def skew(v: Sequence[float] | Floats) -> Floats:
    """Return the matrix S(a) such that S(a) b = a x b."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]], dtype=float)


def mass_matrices(model: Model) -> tuple[Floats, Floats]:
    """Return the rigid-body mass matrix M_RB and the added mass M_A of a model about the origin. M_A is as given in the
    model, not symmetrised.
    """
    if model.rigid_body is not None:
        return matrix(model.rigid_body), matrix(model.added_mass)
    i = model.inertia
    assert i is not None
    m, g = model.mass.value, np.array(model.mass.centre)
    diagonal = [m * k * k for k in i.gyration] if i.gyration else [i.xx, i.yy, i.zz]
    about_g = np.diag(diagonal) + np.array([[0, i.xy, i.xz], [i.xy, 0, i.yz], [i.xz, i.yz, 0]])
    s = skew(g)
    return np.block([[m * np.eye(3), -m * s], [m * s, about_g - m * matmul(s, s)]]), matrix(model.added_mass)


def radiation_oscillators(radiation: Radiation) -> tuple[Floats, Floats, Floats]:
    """Return the squared frequencies (n,), the damping (n, n) and the couplings (n, 6) of the oscillators that
    represent radiated waves.
    """
    o = radiation.oscillator
    return (
        np.array([x.frequency * x.frequency for x in o]),
        np.array([x.damping for x in o]),
        np.array([x.coupling for x in o]),
    )


def free_dofs(model: Model) -> list[int]:
    """Return the indices (0 to 5) of the free degrees of freedom of a model."""
    return [MOTIONS.index(name) for name in model.active.split()]


@dataclass
class CompiledModel:
    """Compiled model: parameters for the kernel, and the limits and motor laws for the commands."""

    params: Floats  # (P.ROWS,)
    ints: Ints  # (M.COLUMNS,)
    tables: list[Floats]  # each (2, TABLE_POINTS)
    limits: Floats  # (SLOTS, 2), for commands
    dead_bands: Floats  # (SLOTS,)
    motor_laws: Floats  # (SLOTS, 2)
    start_delays: Floats  # (SLOTS,), s
    averaging_windows: Floats  # (SLOTS,), s
    rest_values: Floats  # (SLOTS,), targets before any command
    initial_values: Floats  # (SLOTS,), outputs when a body is added
    has_actuator: Mask  # (SLOTS,), true for existing actuators


def compile_model(model: Model, world: World, step: float, integrator: int) -> CompiledModel:
    """Compile a model for a world, a time step and an integrator. Raises ConfigError if this combination is invalid."""
    try:
        return _compile_model(model, world, step, integrator)
    except (ValueError, ArithmeticError) as error:
        fail_at(model.place, f"model '{model.name}': {error}")


def _compile_model(model: Model, world: World, step: float, integrator: int) -> CompiledModel:
    p, ints = np.zeros(P.ROWS), np.zeros(M.COLUMNS, np.int64)
    ints[M.ACTUATOR_TABLES :] = -1
    kind = CompiledModel(
        p,
        ints,
        [],
        np.zeros((SLOTS, 2)),
        np.zeros(SLOTS),
        np.tile([0.0, 1.0], (SLOTS, 1)),
        np.zeros(SLOTS),
        np.zeros(SLOTS),
        np.zeros(SLOTS),
        np.zeros(SLOTS),
        np.zeros(SLOTS, bool),
    )
    kind.rest_values[SLOT_BUCKET : SLOT_BUCKET + SWIVELS] = 1.0
    kind.initial_values[:] = kind.rest_values
    p[P.ACTUATOR_RATE : P.ACTUATOR_RATE + SLOTS] = 1e300
    timing = (step, integrators.ALL[integrator].gains)
    for k in range(len(timing[1])):
        p[P.ACTUATOR_GAIN + SLOTS * k : P.ACTUATOR_GAIN + SLOTS * (k + 1)] = 1.0
    hull = hull_mesh.hull_of(model)
    _set_rigid_body(p, model, world, hull)
    if hull is not None:
        _set_hull_mesh(kind, hull)
    flags = 0
    if any(_couples_planes(matrix(m)) for m in _coupling_matrices(model)) or _couples_planes(mass_matrices(model)[0]):
        flags |= M.COUPLES_PLANES
    if model.lift is not None:
        flags |= M.HAS_LIFT
    flags |= _set_hull_terms(p, ints, model, world)
    if model.aerodynamics is not None:
        flags |= M.HAS_AERODYNAMICS
        aircraft.set_rows(p, model.aerodynamics, [f.name for f in model.fin], world, step)
    flags |= _set_thrusters(kind, model, world, timing)
    flags |= _set_fins(kind, model, world, timing)
    for k, tank in enumerate(model.ballast):
        flags |= M.HAS_BALLAST
        p[P.BALLAST_PLACE + 3 * k : P.BALLAST_PLACE + 3 * k + 3] = tank.position
        slot = SLOT_BALLAST + k
        kind.limits[slot] = tank.minimum, tank.maximum
        kind.initial_values[slot] = tank.initial
        _set_actuator_lag(kind, slot, 0.0, tank.rate, timing)
    ints[M.TANKS] = len(model.ballast)
    ints[M.FLAGS] = flags | _set_extensions(kind, model, timing)
    check_step_stability(p, model, step, integrator, world.current.max_speed)
    return kind


def check_step_stability(p: Floats, model: Model, step: float, integrator: int, flow: float) -> None:
    """Reject a time step for which the linearised motions of a model would diverge at rest, at 2 m/s, or while the
    model is held in the flow.

    The arguments include the parameters (P.ROWS,), the time step in s and a flow speed in m/s. Raises ConfigError if a
    motion would diverge.
    """
    inverse, stiffness = p[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6), np.zeros((6, 6))
    stiffness[:, 2:5] = p[P.RESTORING : P.RESTORING + 18].reshape(6, 3)
    if model.restoring is None:  # for a floating primitive: waterplane area; for any body: weight above buoyancy
        shape = shape_of(model)
        plane = 4.0 * shape.half_size[0] * shape.half_size[1]
        stiffness[2, 2] = p[P.FULL_BUOYANCY] / max(p[P.VOLUME] or shape.volume, 1e-9) * plane
        stiffness[3, 3] = stiffness[4, 4] = max(
            p[P.WEIGHT_MOMENT + 2] - p[P.FULL_BUOYANCY] * p[P.FULL_BUOYANCY_CENTRE + 2], 0.0
        )
    fading = np.diag(p[P.FADING_DRAG : P.FADING_DRAG + 6])
    dl, dq, lift = (p[row : row + 36].reshape(6, 6) for row in (P.LINEAR_DRAG, P.QUADRATIC_DRAG, P.BODY_LIFT))
    fastest = 0.0
    drags = [dl + fading, dl + max(2.0, flow) * (lift + 2.0 * dq)]
    if model.aerodynamics is not None:
        drags.append(aircraft.damping(p, model.valid_speed))
    for drag in drags:
        system = np.block([[np.zeros((6, 6)), np.eye(6)], [-inverse @ stiffness, -inverse @ drag]])
        fastest = max(fastest, float(np.abs(np.linalg.eigvals(system)).max()))
    if model.radiation is not None:
        squares, damping, _ = radiation_oscillators(model.radiation)
        system = np.block([[np.zeros_like(damping), np.eye(len(damping))], [-np.diag(squares), -damping]])
        fastest = max(fastest, float(np.abs(np.linalg.eigvals(system)).max()))
    if advice := describe_instability(fastest, step, integrator):
        among = f" in a flow of {flow:.3g} m/s" if flow > 2.0 else ""
        fail_at(
            model.place,
            f"model '{model.name}' is unstable with a time step of {1e3 * step:g} ms{among}: its fastest motion changes "
            f"{advice}",
        )


def describe_instability(fastest: float, step: float, integrator: int) -> str:
    """Return how fast a motion with the rate ``fastest`` (1/s) changes, and which time step it needs. The result is empty
    if the motion is stable with the given time step (s).
    """
    stable = integrators.ALL[integrator].stable
    if not fastest * step > stable:
        return ""
    return f"by a factor of e in {1e3 / fastest:.3g} ms; use a time step of at most {0.9e3 * stable / fastest:.3g} ms"


def check_initial_velocity(p: Floats, step: float, integrator: int, velocity: Sequence[float]) -> None:
    """Raise ValueError if drag is so strong at an initial velocity (u v w p q r) that the motion would diverge with the
    given time step (s).
    """
    inverse, speeds = p[P.MASS_INVERSE : P.MASS_INVERSE + 36].reshape(6, 6), np.abs(np.asarray(velocity, dtype=float))
    dl, dq, lift = (p[row : row + 36].reshape(6, 6) for row in (P.LINEAR_DRAG, P.QUADRATIC_DRAG, P.BODY_LIFT))
    fastest = float(np.abs(np.linalg.eigvals(inverse @ (dl + speeds[0] * lift + 2.0 * dq * speeds))).max())
    if advice := describe_instability(fastest, step, integrator):
        raise ValueError(
            f"the initial velocity is too high for a time step of {1e3 * step:g} ms: drag changes it {advice}, or a lower velocity"
        )


def _coupling_matrices(model: Model) -> list[Matrix6 | None]:
    return [model.added_mass, model.linear_drag, model.quadratic_drag]


def _couples_planes(m: Floats) -> bool:
    """Return whether a matrix couples surge, heave and pitch with sway, roll and yaw."""
    i, j = np.indices((6, 6))
    return bool(np.abs(m[(i + j) % 2 == 1]).max() > 0.0)


def _set_hull_mesh(kind: CompiledModel, hull: Hull) -> None:
    """Store the triangles of a hull in tables."""
    faces = hull.triangles.reshape(-1, 9)
    kind.ints[M.FACES] = len(faces)
    for k, first in enumerate(range(0, len(faces), TABLE_FACES)):
        table, some = np.zeros(2 * TABLE_POINTS), faces[first : first + TABLE_FACES]
        table[: some.size] = some.ravel()
        kind.ints[M.HULL + k] = len(kind.tables)
        kind.tables.append(table.reshape(2, -1))


def _set_rigid_body(p: Floats, model: Model, world: World, hull: Hull | None) -> None:
    shape = shape_of(model)
    rigid, added = mass_matrices(model)
    total = rigid + added
    if model.coriolis_added == "plane":
        p[P.HEAVE_ADDED_MASS : P.HEAVE_ADDED_MASS + 6] = added[:, 2] if model.coriolis else total[:, 2]
    if model.coriolis:  # C is computed from this momentum; because the matrix is symmetric it does no work
        swept = added if model.coriolis_added == "whole" else added * np.outer(HORIZONTAL_DOFS, HORIZONTAL_DOFS)
        carried = rigid + swept
        p[P.MASS : P.MASS + 36] = (0.5 * (carried + carried.T)).ravel()
        p[P.ADDED_MOMENTUM : P.ADDED_MOMENTUM + 36] = (0.5 * (swept + swept.T)).ravel()
    p[P.TOTAL_INERTIA : P.TOTAL_INERTIA + 36] = total.ravel()
    p[P.ADDED_MASS : P.ADDED_MASS + 36] = added.ravel()
    free = free_dofs(model)
    p[P.FREE_DOFS : P.FREE_DOFS + 6] = [float(i in free) for i in range(6)]
    inverse = np.zeros((6, 6))
    inverse[np.ix_(free, free)] = matrix_inverse(total[np.ix_(free, free)])
    p[P.MASS_INVERSE : P.MASS_INVERSE + 36] = inverse.ravel()
    for row, m in (
        (P.LINEAR_DRAG, model.linear_drag),
        (P.QUADRATIC_DRAG, model.quadratic_drag),
        (P.BODY_LIFT, model.lift),
    ):
        p[row : row + 36] = matrix(m).ravel()
    p[P.GRAVITY], p[P.INVERSE_GRAVITY] = world.gravity, 1.0 / world.gravity if world.gravity > 0.0 else 0.0
    p[P.SHAPE], p[P.BOUNDING_RADIUS] = shape.code, shape.bounding_radius
    p[P.HALF : P.HALF + 3] = shape.half_size
    p[P.CONTACT_MARGIN] = contact_margin(shape)
    if model.restoring is None:
        if hull is not None:
            volume, centre = hull.volume, tuple(hull.centre)
            p[P.VOLUME] = volume
            p[P.BOUNDING_RADIUS] = max(shape.bounding_radius, float(norm(hull.triangles).max()))
        else:
            volume, centre = (
                (model.buoyancy.volume, model.buoyancy.centre) if model.buoyancy else (shape.volume, (0.0,) * 3)
            )
        p[P.FULL_BUOYANCY] = world.density * world.gravity * volume
        p[P.FULL_BUOYANCY_CENTRE : P.FULL_BUOYANCY_CENTRE + 3] = centre
        p[P.WEIGHT] = model.mass.value * world.gravity
        p[P.WEIGHT_MOMENT : P.WEIGHT_MOMENT + 3] = p[P.WEIGHT] * np.array(model.mass.centre)
    for load in model.load:
        p[P.WEIGHT] += load.mass * world.gravity
        p[P.WEIGHT_MOMENT : P.WEIGHT_MOMENT + 3] += load.mass * world.gravity * np.array(load.position)


def _set_hull_terms(p: Floats, ints: Ints, model: Model, world: World) -> int:
    flags = 0
    if model.coriolis_added == "plane":
        flags |= M.ON_SURFACE
    if model.restoring is not None:
        flags |= M.HAS_RESTORING
        p[P.RESTORING : P.RESTORING + 18] = matrix(model.restoring)[:, 2:5].ravel()
        p[P.RESTORING_DEPTH] = model.restoring.z
    sections: dict[str, float] = {}
    if model.cross_flow is not None:
        flags |= M.HAS_CROSS
        sections = _set_cross_flow(p, model, model.cross_flow, world.density)
    if (f := model.surge_friction) is not None:
        flags |= M.HAS_FRICTION
        p[P.FRICTION : P.FRICTION_REYNOLDS + 1] = f.factor, f.residual, f.length / f.viscosity
    if model.fading_drag is not None:
        flags |= M.HAS_FADE
        p[P.FADING_DRAG : P.FADING_RATE + 1] = *model.fading_drag.diagonal, model.fading_drag.fade
    if (b := model.body_lift) is not None:
        flags |= M.HAS_WING
        aspect = b.span * b.span / b.area
        slope = math.pi * aspect / (1.0 + math.sqrt(1.0 + 0.25 * aspect * aspect))
        p[P.WING_AREA : P.WING_INDUCED + 1] = (
            0.5 * world.density * b.area,
            slope,
            b.drag,
            1 / (math.pi * b.efficiency * aspect),
        )
    if model.coriolis_without:
        flags |= M.HAS_MUNK
        elements = ["15", "16", "26", "35", "51", "53", "61", "62"]
        for name in model.coriolis_without.split():
            p[P.OMITTED_MUNK + elements.index(name)] = 1.0
        added = matrix(model.added_mass)
        p[P.ADDED_MASS_ROWS : P.ADDED_MASS_ROWS + 18] = (0.5 * (added + added.T))[:3].ravel()
    first = 0
    for m, memory in enumerate(model.memory):
        flags |= M.HAS_MEMORY
        order = len(memory.a)
        p[P.MEMORY_DENOMINATOR + first : P.MEMORY_DENOMINATOR + first + order] = memory.a
        p[P.MEMORY_NUMERATOR + first : P.MEMORY_NUMERATOR + first + order] = memory.c
        system = M.MEMORIES + M.MEMORY_SIZE * m
        ints[system : system + M.MEMORY_SIZE] = (
            W.HEAVE_SPEED if memory.source == "w" else W.NU_R + MOTIONS.index(memory.source),
            AXES.index(memory.force),
            order,
            first,
        )
        first += order
    ints[M.MEMORY_COUNT], ints[M.FIRST_OSCILLATOR] = len(model.memory), first
    if model.radiation is not None:
        flags |= M.HAS_RADIATION
        n = ints[M.OSCILLATOR_COUNT] = len(model.radiation.oscillator)
        rows = P.OSCILLATOR_SQUARE, P.OSCILLATOR_DAMPING, P.OSCILLATOR_COUPLING
        for row, part in zip(rows, radiation_oscillators(model.radiation), strict=True):
            p[row : row + part.size] = part.ravel()
        first += 2 * n
    ints[M.STATES] = B.RIGID_ROWS + first
    if model.derivatives is not None or sections:
        flags |= M.HAS_DERIVATIVES
        _set_derivatives(p, ints, model, sections, world.density)
    return flags


def _set_cross_flow(p: Floats, model: Model, c: CrossFlow, density: float) -> dict[str, float]:
    """Set the rows of the cross-flow drag. Return the named derivatives (SI units) that the drag needs in addition."""
    if c.coefficient == "hoerner":
        hull = cross_flow_sections.from_dimensions(model, density)
        drag = hull.sway, hull.sway, hull.heave, hull.heave, hull.half, hull.centre
        p[P.CROSS_SWAY : P.CROSS_STILL + 1] = *drag, c.still
        return hull.derivatives
    yaw, pitch = c.sway if c.yaw < 0 else c.yaw, c.heave if c.pitch < 0 else c.pitch
    half = 0.5 * (c.length or shape_of(model).size[0])
    p[P.CROSS_SWAY : P.CROSS_STILL + 1] = c.sway, yaw, c.heave, pitch, half, c.centre, c.still
    return {}


def _set_derivatives(p: Floats, ints: Ints, model: Model, others: dict[str, float], density: float) -> None:
    """Set the rows and columns of the model's named derivatives, and of ``others``, which are given in SI units."""
    terms = derivative_terms(model.derivatives, density, len(model.fin)) if model.derivatives is not None else []
    for name, value in others.items():
        axis, names = derivative_factors(name)
        terms.append((axis, [BASIS_INDEX[n] for n in names], value))
    ints[M.DERIVATIVE_COUNT] = len(terms)
    for t, (axis, factors, value) in enumerate(terms):
        term = M.DERIVATIVES + M.TERM_SIZE * t
        ints[term + M.TERM_AXIS] = axis
        ints[term + M.TERM_FACTORS : term + M.TERM_SIZE] = [*factors, *[0] * (4 - len(factors))]
        p[P.DERIVATIVE_COEFFICIENT + t] = value


#: for each factor that the name of a hydrodynamic derivative may contain, its index in the basis
BASIS_INDEX = {c: 1 + i for i, c in enumerate(MOTIONS)} | {f"a{c}": 7 + i for i, c in enumerate(MOTIONS)}
_U, _U2, _INVERSE, _DELTA = 13, 14, 15, 16
BASIS_INDEX |= {"d": _DELTA, "dr": _DELTA} | {f"d{1 + k}": _DELTA + k for k in range(FINS)}
_FACTOR = re.compile(rf"a[uvwpqr]|dr|d[1-{FINS}]?|[uvwpqr]")


def derivative_factors(name: str) -> tuple[int, list[str]]:
    """Parse the name of a hydrodynamic derivative and return its axis and its factors. Raises ValueError, stating the
    reason, if the name is invalid.
    """
    letter, _, rest = name.partition("_")
    if letter not in AXES or len(letter) != 1 or not rest:
        raise ValueError(f"invalid derivative '{name}': write one of X, Y, Z, K, M or N, an underscore and the factors")
    found: list[str] = []
    for part in rest.split("_"):
        at = 0
        while at < len(part):
            match = _FACTOR.match(part, at)
            if match is None:
                raise ValueError(
                    f"derivative '{name}': unknown factor '{part[at:]}'; allowed: u v w p q r, au .. ar, d, d1 .. d{FINS}"
                )
            found.append(match[0])
            at = match.end()
    if not found or len(found) > 4:
        raise ValueError(f"derivative '{name}' has {len(found)} factors; 1 to 4 are allowed")
    return AXES.index(letter), found


def derivative_terms(d: Derivatives, density: float, fins: int) -> list[tuple[int, list[int], float]]:
    """Return the axis, the indices of the factors in the basis, and the dimensional coefficient of each derivative."""
    terms = []
    for item in d.derivative:
        axis, names = derivative_factors(item.name)
        value, places = item.value, [BASIS_INDEX[n] for n in names]
        for name, place in zip(names, places, strict=True):
            if place >= _DELTA + fins:
                raise ValueError(
                    f"derivative '{item.name}': '{name}' is the angle of a fin, but the model does not have this fin"
                )
        if d.system == "prime":
            motions = [n[-1] for n in names if not n.startswith("d")]
            value *= 0.5 * density * math.prod([d.length] * (2 + (axis > 2) + sum(m in "pqr" for m in motions)))
            power = 2 - len(motions)
            if d.speed > 0.0:
                value *= math.prod([d.speed] * power) if power >= 0 else 1.0 / math.prod([d.speed] * -power)
            elif power < -1 or (power and len(places) == 4):
                raise ValueError(f"derivative '{item.name}': too many factors for the prime system without `speed`")
            elif power:
                places.append({2: _U2, 1: _U, -1: _INVERSE}[power])
        terms.append((axis, places, value))
    return terms


def _set_actuator_lag(
    kind: CompiledModel, slot: int, lag: float, rate: float, timing: tuple[float, Sequence[float]]
) -> None:
    step, times = timing
    kind.has_actuator[slot] = True
    for k, part in enumerate(times):
        kind.params[P.ACTUATOR_GAIN + SLOTS * k + slot] = -expm1(-part * step / lag) if lag > MIN_TIME_CONSTANT else 1.0
    kind.params[P.ACTUATOR_IMMEDIATE + slot] = float(lag <= MIN_TIME_CONSTANT and rate <= 0.0)
    if rate > 0.0:
        kind.params[P.ACTUATOR_RATE + slot] = rate * step


def _set_extensions(kind: CompiledModel, model: Model, timing: tuple[float, Sequence[float]]) -> int:
    """Set the parameters of the terms and actuator types that the model uses from other packages; return their flags.
    See :mod:`wavesim_server.dynamics.registry`.
    """
    flags = 0
    for term in model.term:
        k = _find_extension(term.name, registry.TERMS, "term")
        if flags & registry.term_flag(k):
            raise ValueError(f"term '{term.name}' is given twice")
        flags |= registry.term_flag(k)
        names = registry.TERMS[k].coefficients
        kind.params[registry.FIRST_COEFFICIENT[k] : registry.FIRST_COEFFICIENT[k + 1]] = _ordered_coefficients(
            term.name, names, term.coefficient
        )
    for n, a in enumerate(model.actuator, len(model.ballast)):
        flags |= M.HAS_OTHER
        k = _find_extension(a.type, registry.ACTUATOR_TYPES, "type of actuator")
        kind.ints[M.OTHER_TYPES + n] = 1 + k
        names, first = registry.ACTUATOR_TYPES[k].coefficients, P.OTHER_COEFFICIENT + OTHER_COEFFICIENTS * n
        kind.params[first : first + len(names)] = _ordered_coefficients(a.name, names, a.coefficient)
        kind.limits[SLOT_BALLAST + n] = a.minimum, a.maximum
        kind.initial_values[SLOT_BALLAST + n] = a.initial
        _set_actuator_lag(kind, SLOT_BALLAST + n, a.lag, a.rate, timing)
    return flags


def _find_extension(name: str, offers: Sequence[Term | ActuatorType], what: str) -> int:
    names = [o.name for o in offers]
    if name not in names:
        raise ValueError(
            f"no installed package provides the {what} '{shorten(name)}'{suggest_name(shorten(name), names)}"
        )
    return names.index(name)


def _ordered_coefficients(whose: str, names: Sequence[str], coefficients: Sequence[Coefficient]) -> list[float]:
    """Return the coefficients of an extension in the order of their names. Raises ValueError if a name is missing,
    unknown or repeated.
    """
    values = {c.name: c.value for c in coefficients}
    if sorted(c.name for c in coefficients) != sorted(names):
        names_found = " ".join(c.name for c in coefficients) or "none"
        raise ValueError(
            f"'{whose}' has the coefficients {names_found}; specify each of {' '.join(names) or 'none'} exactly once"
        )
    return [values[n] for n in names]


def _set_thrusters(kind: CompiledModel, model: Model, world: World, timing: tuple[float, Sequence[float]]) -> int:
    p, flags = kind.params, 0
    kind.ints[M.THRUSTER_COUNT] = len(model.thruster)
    for k, t in enumerate(model.thruster):
        direction = np.array(t.direction) / norm(t.direction)
        p[P.THRUSTER_WRENCH + 6 * k : P.THRUSTER_WRENCH + 6 * k + 6] = (*direction, *np.cross(t.position, direction))
        p[P.PROPELLER_TORQUE_AXIS + 3 * k : P.PROPELLER_TORQUE_AXIS + 3 * k + 3] = direction
        law = p[P.THRUSTER_LAW + P.LAW_SIZE * k : P.THRUSTER_LAW + P.LAW_SIZE * (k + 1)]
        if model.aerodynamics is None:
            flags |= _set_thruster_law(kind, law, k, t, world)
        else:  # the law stays zero: its propeller works in the air
            flags |= M.HAS_THRUSTER_LAW
        law[P.LAW_WHOLE], law[P.LAW_WAKE] = float(t.inflow == "total"), 1.0 - t.wake
        if t.thrust_limit > 0.0:
            flags |= M.HAS_THRUSTER_LAW
        law[P.LAW_LIMIT] = t.thrust_limit or 1e300
        kind.limits[k] = t.minimum, t.maximum
        kind.motor_laws[k] = t.motor
        kind.dead_bands[k], kind.start_delays[k], kind.averaging_windows[k] = t.dead_band, t.start, t.feedback
        kind.initial_values[k] = t.initial
        _set_actuator_lag(kind, k, t.lag, 0.0, timing)
        if t.swivel is not None:
            flags |= M.HAS_SWIVEL | M.HAS_THRUSTER_LAW
            slot = SLOT_ANGLE + k
            kind.limits[slot] = t.swivel.minimum, t.swivel.maximum
            kind.initial_values[slot] = t.swivel.initial
            _set_actuator_lag(kind, slot, t.swivel.lag, t.swivel.rate, timing)
            turned = np.array([-direction[1], direction[0], 0.0])
            p[P.THRUSTER_WRENCH_TURNED + 6 * k : P.THRUSTER_WRENCH_TURNED + 6 * k + 6] = (
                *turned,
                *np.cross(t.position, turned),
            )
        if t.deflector is not None:
            flags |= M.HAS_SWIVEL | M.HAS_THRUSTER_LAW
            slot = SLOT_BUCKET + k
            kind.limits[slot] = t.deflector.minimum, t.deflector.maximum
            kind.initial_values[slot] = t.deflector.initial
            _set_actuator_lag(kind, slot, t.deflector.lag, 0.0, timing)
    if model.allocation is not None:
        n = len(model.thruster)
        columns = np.array(model.allocation.rows).reshape(6, n)
        p[P.THRUSTER_WRENCH : P.THRUSTER_WRENCH + 6 * n] = columns.T.ravel()
    return flags


def _set_thruster_law(kind: CompiledModel, law: Floats, k: int, t: Thruster, world: World) -> int:
    """Set the rows for the law of a thruster; return the thruster's flags."""
    o = t.open_water
    if o is None:
        law[P.LAW_AHEAD : P.LAW_AHEAD + 3] = t.coefficients
        law[P.LAW_ASTERN : P.LAW_ASTERN + 3] = t.reverse or t.coefficients
        return 0 if t.coefficients == (1.0, 0.0, 0.0) and not t.reverse else M.HAS_THRUSTER_LAW
    d4 = world.density * math.prod([o.diameter] * 4)
    share = 1.0 - o.deduction
    law[P.LAW_AHEAD + 1] = law[P.LAW_ASTERN + 1] = share * d4 * o.kt[0]
    law[P.LAW_AHEAD + 2] = share * d4 / o.diameter * o.kt[1]
    q = o.torque_share * d4 * o.diameter
    law[P.LAW_TORQUE_AHEAD] = law[P.LAW_TORQUE_ASTERN] = q * o.kq[0]
    law[P.LAW_TORQUE_AHEAD + 1] = q / o.diameter * o.kq[1]
    flags = M.HAS_THRUSTER_LAW | (M.HAS_TORQUE if any(o.kq) else 0)
    if o.rows:
        table = np.array(o.rows).reshape(-1, 2)
        low, high = table[0, 0], table[-1, 0]
        grid = np.linspace(low, high, TABLE_POINTS)
        kind.ints[M.ACTUATOR_TABLES + FINS + k] = len(kind.tables)
        kind.tables.append(np.stack([interpolate(grid, table[:, 0], table[:, 1]), np.zeros(len(grid))]))
        law[P.LAW_AHEAD : P.LAW_AHEAD + 6] = 0.0
        law[P.LAW_SCALE], law[P.LAW_DIAMETER] = share * d4, o.diameter
        law[P.LAW_LEAST_J], law[P.LAW_PER_J] = low, (TABLE_POINTS - 1) / (high - low)
        flags |= M.HAS_KT_TABLE
    return flags


def _set_fins(kind: CompiledModel, model: Model, world: World, timing: tuple[float, Sequence[float]]) -> int:
    p, flags = kind.params, 0
    kind.ints[M.FIN_COUNT] = len(model.fin)
    for k, f in enumerate(model.fin):
        normal = np.array(f.normal) / norm(f.normal)
        chord = np.array(f.chord) / norm(f.chord)
        slot = SLOT_FIN + k
        kind.limits[slot] = -f.limit, f.limit
        kind.initial_values[slot] = f.initial
        _set_actuator_lag(kind, slot, f.lag, f.rate, timing)
        if f.law == "linear":
            flags |= M.HAS_FIN | (M.HAS_STALL if f.stall > 0.0 else 0)
            p[P.FIN_LIFT + k] = 0.5 * world.density * f.area * f.lift_slope
            p[P.FIN_WRENCH + 6 * k : P.FIN_WRENCH + 6 * k + 6] = (*normal, *np.cross(f.position, normal))
            p[P.FIN_INFLOW + k] = float(f.inflow)
            p[P.FIN_PLACE_Y + k], p[P.FIN_PLACE_Z + k] = f.position[1], f.position[2]
            p[P.FIN_STALL + k], p[P.FIN_SLOPE + k], p[P.FIN_PLATE + k] = f.stall, f.lift_slope, f.plate
        elif f.law == "coefficients":
            flags |= M.HAS_FIN_COEFFICIENTS
            if f.speed == "plane":
                p[P.FIN_SPAN + 3 * k : P.FIN_SPAN + 3 * k + 3] = np.cross(chord, normal)
            p[P.FIN_PER_ANGLE + 6 * k : P.FIN_PER_ANGLE + 6 * k + 6] = f.per_angle
            p[P.FIN_PER_SQUARE + 6 * k : P.FIN_PER_SQUARE + 6 * k + 6] = f.per_square
        elif f.law == "aerofoil":
            flags |= M.HAS_AEROFOIL
            across = normal - dot(normal, chord) * chord
            across /= norm(across)
            p[P.FIN_FOIL + P.FOIL_SIZE * k : P.FIN_FOIL + P.FOIL_SIZE * (k + 1)] = (
                *f.position,
                *chord,
                *across,
                0.5 * world.density * f.area,
            )
            kind.ints[M.ACTUATOR_TABLES + k] = len(kind.tables)
            assert f.aerofoil is not None
            kind.tables.append(aerofoil_table(f.aerofoil, f.plate))
    return flags


def aerofoil_table(a: Aerofoil, across: float) -> Floats:
    """Return the coefficients CL and CD of an aerofoil at angles from -180 to 180 deg. Outside the range of the given
    rows, they change within 10 deg to those of a stalled flat plate.

    The normal force on the plate is `across` times the sine of the angle.
    """
    rows = np.array(a.rows).reshape(-1, 3)
    alpha = np.linspace(-180.0, 180.0, TABLE_POINTS)
    rad = np.radians(alpha)
    plate = across * np.stack([0.5 * sin(2 * rad), sin(rad) * sin(rad)])
    given = np.stack([interpolate(alpha, rows[:, 0], rows[:, k]) for k in (1, 2)])
    outside = np.maximum(rows[0, 0] - alpha, alpha - rows[-1, 0])
    blend = np.clip(outside / 10.0, 0.0, 1.0)
    return np.asarray(given * (1 - blend) + plate * blend)
