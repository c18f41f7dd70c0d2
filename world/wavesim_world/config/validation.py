"""Checks that the model of a body can be simulated."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any, NoReturn

import numpy as np

from wavesim_sdk.actuators import MAX_BALLASTS, MAX_FINS, MAX_SWIVELS, MAX_THRUSTERS
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_world.actuators import actuators_of
from wavesim_world.config.actuators import Ballast, Deflector, Fin, OtherActuator, Swivel, Thruster
from wavesim_world.config.exposure import Oscillator
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.schema import keys
from wavesim_world.config.vehicle import CrossFlow, Matrix6, Model

WATER_DENSITY = 1025.0  #: density of sea water for plausibility checks, kg/m3
#: maximum plausible ratio of the mass of a body to the mass of the water that it displaces; its inverse is the minimum
MAX_DENSITY_RATIO = 700.0
MAX_MEMORY, MAX_STATES, MAX_OSCILLATORS, MAX_DERIVATIVES = 24, 64, 16, 48
#: largest number of named derivatives to which the cross-flow drag of a hull with sections is converted
SECTION_TERMS = 16
_NAME = re.compile(r"(?=.*[A-Za-z_-])[A-Za-z0-9_-]{1,31}")
MUNK_ELEMENTS = ("15", "16", "26", "35", "51", "53", "61", "62")


def matrix(m: Matrix6 | None) -> Floats:
    """Return the 6x6 matrix of an XML element as an array, or zeros if the element is absent."""
    if m is None:
        return np.zeros((6, 6))
    return np.array(m.rows).reshape(6, 6) if m.rows else np.diag(np.array(m.diagonal, dtype=float))


def fail_at(place: str, message: str) -> NoReturn:
    """Raise ConfigError with the position ``file:line`` of the invalid element."""
    file, _, line = place.rpartition(":")
    raise ConfigError(message, file, int(line or 0))


def check_model(model: Model) -> None:
    """Raise ConfigError for the first reason why a model cannot be simulated."""

    def fail(message: str) -> NoReturn:
        fail_at(model.place, f"model '{model.name}': {message}")

    if len([s for s in (model.box, model.cylinder, model.sphere) if s is not None]) != 1:
        fail("a body needs exactly one geometry: <box>, <cylinder> or <sphere>")
    for name in ("added_mass", "linear_drag", "quadratic_drag", "lift", "rigid_body", "restoring"):
        m: Matrix6 | None = getattr(model, name)
        if m is not None and bool(m.rows) == bool(m.diagonal):
            fail(f"<{name.replace('_', '-')}> needs either `diagonal` or 36 numbers between its tags")
    _masses(model, fail)
    _drag(model, fail)
    if model.hull is not None and (model.restoring is not None or model.buoyancy is not None):
        fail("<hull> replaces <buoyancy> and <restoring>; remove them")
    if model.restoring is not None:
        g = matrix(model.restoring)
        if g[:, [0, 1, 5]].any():
            fail("<restoring>: only columns 3, 4, 5 (heave, roll, pitch) may have non-zero elements")
        if model.buoyancy is not None:
            fail("<restoring> replaces <buoyancy>; remove one of them")
    elif model.load:
        fail("<load> needs <restoring>; without it, include the load in <mass>")
    active = model.active.split()
    if not active or any(a not in "uvwpqr" or len(a) != 1 for a in active) or len(set(active)) != len(active):
        fail(f"invalid active '{model.active}': list the free degrees of freedom, chosen from u v w p q r")
    wrong = [e for e in model.coriolis_without.split() if e not in MUNK_ELEMENTS]
    if wrong:
        fail(f"coriolis_without: '{wrong[0]}' is not allowed; choose from {' '.join(MUNK_ELEMENTS)}")
    _actuators(model, fail)
    _aerodynamics(model, fail)


def _masses(model: Model, fail: Any) -> None:
    if model.restoring is None:  # otherwise buoyancy equals weight
        displaced = WATER_DENSITY * (shape_of(model).volume if model.buoyancy is None else model.buoyancy.volume)
        if displaced and not 1.0 / MAX_DENSITY_RATIO < model.mass.value / displaced < MAX_DENSITY_RATIO:
            fail(
                f"its mass is {model.mass.value:g} kg, but it displaces {displaced:.3g} kg of water when submerged; "
                "check the units of both"
            )
    added = matrix(model.added_mass)
    if np.linalg.eigvalsh(0.5 * (added + added.T)).min() < -1e-9:
        fail("the added mass has a negative eigenvalue; enter M_A with a positive sign")
    lopsided = np.abs(added - added.T).max() / max(np.abs(added).max(), 1e-300)
    if lopsided > 0.35:
        a, b = divmod(int(np.argmax(np.abs(added - added.T))), 6)
        fail(
            f"the added mass is far from symmetric: element {a + 1},{b + 1} is {added[a, b]:g} and {b + 1},{a + 1} is "
            f"{added[b, a]:g}"
        )
    if (model.inertia is None) == (model.rigid_body is None):
        fail("a model needs either <inertia> or <rigid-body>")
    if model.rigid_body is not None:
        rigid = matrix(model.rigid_body)
        if np.abs(rigid - rigid.T).max() > 1e-6 * np.abs(rigid).max():
            fail("<rigid-body> is not symmetric")
        if np.linalg.eigvalsh(rigid).min() <= 0.0:
            fail("<rigid-body> is singular or has a negative mass")
        return
    i = model.inertia
    assert i is not None
    if bool(i.gyration) == bool(i.xx or i.yy or i.zz):
        fail("<inertia> needs either xx, yy, zz or `gyration`")
    diagonal = [model.mass.value * k * k for k in i.gyration] or [i.xx, i.yy, i.zz]
    tensor = np.diag(diagonal) + np.array([[0, i.xy, i.xz], [i.xy, 0, i.yz], [i.xz, i.yz, 0]])
    principal = np.linalg.eigvalsh(tensor)
    if principal.min() <= 0.0:
        fail("<inertia> is not positive definite")
    if principal[0] + principal[1] < principal[2] * (1.0 - 1e-9):
        fail("impossible <inertia>: one principal moment exceeds the sum of the other two")


def _drag(model: Model, fail: Any) -> None:
    terms = (
        model.linear_drag,
        model.quadratic_drag,
        model.derivatives,
        model.cross_flow,
        model.surge_friction,
        model.fading_drag,
        model.lift,
        model.term,
        model.aerodynamics,
    )
    if not any(terms):
        fail('the model has no drag; if that is intended, write <linear-drag diagonal="0 0 0 0 0 0"/>')
    for name in ("linear_drag", "quadratic_drag"):
        if np.diag(matrix(getattr(model, name))).min() < 0.0:
            fail(f"<{name.replace('_', '-')}> has a negative diagonal element; enter the drag with a positive sign")
    if model.derivatives is not None:
        d = model.derivatives
        if len(d.derivative) > MAX_DERIVATIVES:
            fail(f"too many named derivatives; the maximum is {MAX_DERIVATIVES}")
        if d.system == "prime" and d.length <= 0.0:
            fail("<derivatives> in the prime system needs `length`")
    if model.cross_flow is not None:
        _cross_flow(model, model.cross_flow, fail)
    if len(model.memory) > MAX_MEMORY:
        fail(f"too many fluid-memory systems; the maximum is {MAX_MEMORY}")
    oscillators = model.radiation.oscillator if model.radiation is not None else ()
    if len(oscillators) > MAX_OSCILLATORS:
        fail(f"<radiation>: too many oscillators; the maximum is {MAX_OSCILLATORS}")
    if sum(len(m.a) for m in model.memory) + 2 * len(oscillators) > MAX_STATES:
        fail(f"too many fluid-memory states; the maximum in all systems is {MAX_STATES}, and an oscillator has two")
    if oscillators:
        _passive(oscillators, fail)
    for m in model.memory:
        if len(m.a) != len(m.c):
            fail(
                f"the fluid memory from {m.source} to {m.force} has {len(m.a)} numbers in `a` but {len(m.c)} in `c`; "
                "use the same number of coefficients in both"
            )
        fastest = np.roots([1.0, *m.a[::-1]])
        if not fastest.real.max() < 0.0:
            fail(
                f"the fluid memory from {m.source} to {m.force} is unstable: s^n + ... + a1 s + a0 has a root with the real "
                f"part {fastest.real.max():.3g}"
            )


def _cross_flow(model: Model, c: CrossFlow, fail: Any) -> None:
    given = max(c.sway, c.yaw, c.heave, c.pitch) > 0.0
    if c.coefficient == "given":
        if not given:
            fail('<cross-flow> has no coefficient: write `sway` or `heave`, or coefficient="hoerner"')
        if c.section or c.beam or c.draft:
            fail('<cross-flow>: `beam`, `draft` and <section> need coefficient="hoerner"')
        return
    if given:
        fail(
            '<cross-flow coefficient="hoerner"> determines the coefficients; remove `sway`, `yaw`, `heave` and `pitch`'
        )
    if c.section:
        if len(c.section) < 2 or any(b.x <= a.x for a, b in itertools.pairwise(c.section)):
            fail("<cross-flow> needs at least two sections, in ascending order of `x`")
        if not any(s.draft for s in c.section):
            fail("<cross-flow>: every section has a draft of 0 m")
        if c.length or c.centre or c.beam or c.draft:
            fail("<cross-flow>: sections replace `length`, `centre`, `beam` and `draft`; remove those")
        if c.still:
            fail("<cross-flow>: `still` cannot be used with sections")
        if model.derivatives is not None and len(model.derivatives.derivative) > MAX_DERIVATIVES - SECTION_TERMS:
            fail(
                f"<cross-flow> with sections needs {SECTION_TERMS} of the {MAX_DERIVATIVES} named derivatives; remove "
                f"{len(model.derivatives.derivative) - MAX_DERIVATIVES + SECTION_TERMS} derivatives"
            )


def _passive(oscillators: tuple[Oscillator, ...], fail: Any) -> None:
    """Check that the oscillators of radiated waves absorb energy from the hull and dissipate it."""
    n = len(oscillators)
    for k, o in enumerate(oscillators, 1):
        if len(o.damping) != n:
            fail(
                f"<radiation>: oscillator {k} has {len(o.damping)} numbers in `damping`, but needs {n}: one per "
                "oscillator"
            )
    damping = np.array([o.damping for o in oscillators])
    most = np.abs(damping).max()
    if np.abs(damping - damping.T).max() > 1e-9 * most:
        fail("<radiation>: the damping of the oscillators is not symmetric")
    if np.linalg.eigvalsh(damping).min() < -1e-9 * most:
        fail(
            "<radiation>: the damping of the oscillators has a negative eigenvalue, so they would supply energy to the hull"
        )
    squares = np.diag([o.frequency * o.frequency for o in oscillators])
    poles = np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-squares, -damping]]))
    if not poles.real.max() < 0.0:
        fail("<radiation>: an oscillator has no damping, so it would oscillate forever")


def _actuators(model: Model, fail: Any) -> None:
    for found, most, what in (
        (model.thruster, MAX_THRUSTERS, "thrusters"),
        (model.fin, MAX_FINS, "fins"),
        (model.ballast, MAX_BALLASTS, "ballast tanks"),
        (model.ballast + model.actuator, MAX_BALLASTS, "ballast tanks and actuators of other types"),
    ):
        if len(found) > most:
            fail(f"the model has {len(found)} {what}; the maximum is {most}")
    if model.type == "buoy" and (model.thruster or model.fin):
        fail("a buoy cannot have thrusters or fins; remove them")
    for k, thruster in enumerate(model.thruster):
        _thruster(thruster, k, fail)
    for fin in model.fin:
        _fin(fin, fail)
    for tank in model.ballast:
        if tank.maximum < tank.minimum:
            fail(f"ballast '{tank.name}': `maximum` is below `minimum`")
        _initial(f"ballast '{tank.name}'", tank, (tank.minimum, tank.maximum), "kg", fail)
    for other in model.actuator:
        if other.maximum < other.minimum:
            fail(f"actuator '{other.name}': `maximum` is below `minimum`")
        _initial(f"actuator '{other.name}'", other, (other.minimum, other.maximum), other.unit, fail)
    names = [a.name for a in actuators_of(model)]
    for name in names:
        if names.count(name) > 1:
            fail(f"duplicate actuator name '{name}'; give each actuator its own name")
        if not _NAME.fullmatch(name):
            fail(f"invalid actuator name '{name}': use 1 to 31 letters, digits, - and _, but not digits alone")
    if model.allocation is not None and len(model.allocation.rows) != 6 * len(model.thruster):
        fail(f"<allocation> needs 6 x {len(model.thruster)} numbers, got {len(model.allocation.rows)}")


def _initial(
    whose: str,
    actuator: Thruster | Fin | Swivel | Deflector | Ballast | OtherActuator,
    limits: tuple[float, float],
    unit: str,
    fail: Any,
) -> None:
    """Check the configured initial output of an actuator. The default is always allowed."""
    default = next(k.default for name, k in keys(type(actuator)) if name == "initial")
    low, high = limits
    if actuator.initial != default and not low <= actuator.initial <= high:
        fail(f"{whose}: `initial` is {actuator.initial:g}; use {low:g} to {high:g} {unit}".rstrip())


def _shaft_limits(t: Thruster) -> tuple[float, float]:
    """Return the range of the thruster variable n that the motor law gives for the limits of the command."""
    offset, gain = t.motor
    ends = [gain * c + (math.copysign(offset, c) if abs(c) > 0.0 else 0.0) for c in (t.minimum, t.maximum)]
    return min(ends), max(ends)


def _thruster(t: Thruster, k: int, fail: Any) -> None:
    if t.maximum < t.minimum:
        fail(f"thruster '{t.name}': `maximum` is below `minimum`")
    _initial(f"thruster '{t.name}'", t, _shaft_limits(t), "N" if t.law == "force" else "1/s", fail)
    if (s := t.swivel) is not None:
        _initial(f"the swivel of thruster '{t.name}'", s, (s.minimum, s.maximum), "rad", fail)
    if (d := t.deflector) is not None:
        _initial(f"the deflector of thruster '{t.name}'", d, (d.minimum, d.maximum), "", fail)
    if not any(t.direction):
        fail(f"thruster '{t.name}': `direction` is the zero vector")
    if (t.swivel or t.deflector) and k >= MAX_SWIVELS:
        fail(f"thruster '{t.name}': only the first {MAX_SWIVELS} thrusters can have a swivel or a deflector")
    o = t.open_water
    if o is None:
        return
    if t.law != "shaft":
        fail(f"thruster '{t.name}': <open-water> needs law=\"shaft\"")
    if bool(o.rows) == bool(o.kt[0]):
        fail(f"thruster '{t.name}': <open-water> needs either `kt` or rows `J KT`")
    if o.rows and any(o.kq):
        fail(f"thruster '{t.name}': `kq` needs `kt`; it cannot be used with rows `J KT`")
    if o.rows:
        j = o.rows[::2]
        if len(o.rows) % 2 or len(j) < 2 or any(b <= a for a, b in itertools.pairwise(j)):
            fail(f"thruster '{t.name}': <open-water> needs at least two rows `J KT`, ascending in J")


def _fin(f: Fin, fail: Any) -> None:
    if not any(f.normal) or not any(f.chord):
        fail(f"fin '{f.name}': `normal` or `chord` is the zero vector")
    _initial(f"fin '{f.name}'", f, (-f.limit, f.limit), "rad", fail)
    if np.linalg.norm(np.cross(f.normal, f.chord)) < 1e-6:
        fail(f"fin '{f.name}': `normal` and `chord` are parallel")
    if f.law == "linear" and f.area * f.lift_slope == 0.0:
        fail(f"fin '{f.name}': law=linear needs `area` and `lift_slope`")
    if f.stall > 0.0 and f.law != "linear":
        fail(f"fin '{f.name}': `stall` applies only to law=linear; the table of an <aerofoil> includes its stall")
    if f.law == "coefficients" and not any(f.per_angle):
        fail(f"fin '{f.name}': law=coefficients needs `per_angle`")
    if (f.law == "aerofoil") != (f.aerofoil is not None) or (f.law == "aerofoil" and f.area == 0.0):
        fail(f"fin '{f.name}': law=aerofoil needs `area` and an <aerofoil>, and no other law may have an <aerofoil>")
    if f.aerofoil is not None:
        alpha = f.aerofoil.rows[::3]
        ascending = all(b > a for a, b in itertools.pairwise(alpha))
        if len(f.aerofoil.rows) % 3 or len(alpha) < 3 or not ascending or alpha[0] > 0.0 or alpha[-1] < 0.0:
            fail(
                f"fin '{f.name}': <aerofoil> needs rows `alpha CL CD`, ascending in alpha, in a range that includes 0 deg"
            )


def _aerodynamics(model: Model, fail: Any) -> None:
    """Check the model of an aircraft."""
    a = model.aerodynamics
    if (a is None) != (model.type != "aircraft"):
        fail('type="aircraft" and <aerodynamics> require each other; write both or neither')
    if a is None:
        return
    for name in ("restoring", "hull", "wind_drag", "wave_filter", "rao", "allocation"):
        if getattr(model, name) is not None:
            fail(f"an aircraft cannot have <{name.replace('_', '-')}>; remove it")
    if a.lift[1] <= 0.0:
        fail("<aerodynamics>: the slope of `lift` with the angle of attack must be greater than 0")
    if model.valid_speed <= 0.0:
        fail("an aircraft needs `valid_speed`, for which the server checks the time step")
    if bool(model.thruster) != (a.propeller is not None):
        fail("an aircraft needs a <propeller> in <aerodynamics> if it has thrusters, and only then")
    for t in model.thruster:
        if t.law != "shaft" or t.minimum < 0.0 or t.open_water is not None or t.swivel or t.deflector:
            fail(
                f"thruster '{t.name}' of an aircraft needs law=\"shaft\" and a `minimum` of at least 0; "
                "<propeller> defines its thrust, so it cannot have <open-water>, <swivel> or <deflector>"
            )
    fins = [f.name for f in model.fin]
    for f in model.fin:
        if f.law != "derivatives":
            fail(f"fin '{f.name}' of an aircraft needs law=\"derivatives\": a <control> defines its force")
    for c in a.control:
        if c.fin not in fins:
            fail(f"<control>: the model has no fin '{c.fin}'{suggest_name(c.fin, fins)}")
    moved = [c.fin for c in a.control]
    if len(set(moved)) != len(moved):
        fail("<aerodynamics>: two <control> elements name the same fin; write one")
