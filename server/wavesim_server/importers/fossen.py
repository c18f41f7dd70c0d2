"""Reader for the vehicles of Fossen's Python Vehicle Simulator and MSS toolbox (MATLAB).

The constants come from the assignments in the source code, which is evaluated but never run. The reader knows three
forms: a torpedo-shaped AUV, a boat with two propellers, and a hull given by matrices. It then compares the accelerations
of the model with the source code's own equation of motion, in random states: whatever the model does not represent shows
there.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.marine_functions import OSWALD, coriolis
from wavesim_server.importers.model_draft import ModelDraft
from wavesim_server.importers.torpedo_elements import OpenWaterPropeller, add_body_lift, add_propeller
from wavesim_server.importers.vehicle_source import VehicleSource

PREFIX = "value."  #: prefix of a --set key that replaces a variable of the source code
RPM, TURN = 60.0, 2.0 * math.pi
#: elements of C_A that a model can omit
OMITTED = ("15", "16", "26", "35", "51", "53", "61", "62")
STATES = 16  #: number of random states in which the accelerations are compared
TOLERANCE = 1e-6  #: accepted difference between accelerations, as a fraction of the largest one of the axis
SPEED, RATE, ANGLE = 1.5, 0.3, 0.15  #: ranges of the random states, in m/s, rad/s and rad
AXES = ("surge", "sway", "heave", "roll", "pitch", "yaw")


def is_vehicle(text: str) -> bool:
    """Return whether a Python or MATLAB file has the structure of a vehicle."""
    return bool(re.search(r"^\s+def dynamics\(", text, re.M) or re.search(r"^\s*function\s*\[\s*xdot", text, re.M))


def given_values(settings: dict[str, str]) -> dict[str, float]:
    """Return the variables that the user supplied with --set value.NAME=..."""
    return {k.removeprefix(PREFIX): float(v) for k, v in settings.items() if k.startswith(PREFIX)}


def read(path: Path, settings: dict[str, str], angles: str | None) -> ModelDraft:
    """Return the draft model of a vehicle's source file."""
    text = path.read_text(errors="replace")
    given = given_values(settings)
    if path.suffix == ".m":
        from wavesim_server.importers.matlab import MatlabVehicle

        vehicle: VehicleSource = MatlabVehicle(path, text, given)
    else:
        try:
            vehicle = VehicleSource(path, text, given)
        except SyntaxError as error:
            raise ConfigError(f"not valid Python: {error.msg} (line {error.lineno})", str(path)) from None
    name = re.sub(r"[^a-z0-9-]", "-", vehicle.name.lower()).strip("-")
    draft = ModelDraft(name, f"{path.name} ({vehicle.language})", settings, angles)
    rest = vehicle.evaluate(np.zeros(6), np.zeros(6), np.zeros(vehicle.controls))
    vehicle.constants = rest.values | vehicle.constants
    if "forceLiftDrag" in rest.calls:
        scales, world = _torpedo(draft, vehicle)
    elif vehicle.find("self.k_pos", "k_pos") is not None:
        scales, world = _two_propellers(draft, vehicle)
    elif vehicle.find("K") is not None and vehicle.find("T") is not None and np.ndim(vehicle.find("K")) == 2:
        scales, world = _matrices(draft, vehicle, True)
    elif np.shape(vehicle.find("M")) == (3, 3) and np.shape(vehicle.find("D")) == (3, 3):
        scales, world = _matrices(draft, vehicle, False)
    else:
        raise ConfigError(
            f"the equation of motion of `{vehicle.name}` has none of the forms that this reader knows: a torpedo with lift "
            "and drag, a boat with two propellers (k_pos, k_neg), or a hull with the matrices MRB, MA, D, T and K",
            str(path),
        )
    draft.used_settings |= {PREFIX + n for n in vehicle.used_given}
    draft.notes.append("the file's controllers and references are not part of the model")
    if not draft.missing:
        _compare(draft, vehicle, scales, world)
    return draft


def _torpedo(draft: ModelDraft, vehicle: VehicleSource) -> tuple[Floats, str]:
    """Add the terms of a torpedo-shaped AUV with a rudder, stern planes and a propeller."""
    rho = float(vehicle.values_of("self.rho", "rho"))
    nu = np.array([1.0, 0.3, -0.2, 0.1, 0.2, -0.1])
    controls = np.array([0.1, 0.1, 0.5 * float(vehicle.values_of("self.nMax", "n_max"))])
    moving = vehicle.evaluate(np.zeros(6), nu, controls)
    span, area, parasitic = moving.calls["forceLiftDrag"][:3]
    mass, added = vehicle.values_of("self.MRB", "MRB"), vehicle.values_of("self.MA", "MA")
    draft.attributes["type"] = "underwater"
    gone = coriolis(added, nu) - moving.values["CA"]
    omitted = [e for e in OMITTED if abs(gone[int(e[0]) - 1, int(e[1]) - 1]) > 1e-12]
    if omitted:
        draft.attributes["coriolis_without"] = " ".join(omitted)
    length = float(vehicle.values_of("self.L", "L_auv", "L"))
    draft.add("cylinder", length=f"{length:.12g} m", radius=f"{span / 2.0:.12g} m")
    weight, buoyancy = float(vehicle.values_of("self.W", "W")), float(vehicle.values_of("self.B", "B"))
    gravity = weight / mass[0, 0]
    centre = vehicle.values_of("self.r_bg", "r_bg", "r_bG")
    draft.add("mass", value=f"{mass[0, 0]:.15g} kg", centre=_numbers(centre) + " m")
    draft.matrix("rigid-body", _round(mass))
    draft.add(
        "buoyancy",
        volume=f"{buoyancy / gravity / rho:.15g} m3",
        centre=_numbers(vehicle.values_of("self.r_bb", "r_bb", "r_bB")) + " m",
    )
    draft.matrix("added-mass", _round(added))
    _fading_damping(draft, vehicle)
    _cross_flow(draft, vehicle, moving.calls)
    add_body_lift(draft, area, span, parasitic, OSWALD, rho)
    _propeller(draft, vehicle, moving.values, nu)
    _tail_fins(draft, vehicle, rho)
    return np.array([RPM, 1.0, 1.0]), _world(draft, rho, gravity)


def _fading_damping(draft: ModelDraft, vehicle: VehicleSource) -> None:
    """Add the linear damping. Elements that decrease with speed become fading drag."""
    still, fast = (
        np.array(vehicle.evaluate(np.zeros(6), np.array([u, 0, 0, 0, 0, 0.0]), np.zeros(vehicle.controls)).values["D"])
        for u in (0.0, 1.0)
    )
    start, end = np.diag(still), np.diag(fast)
    fades = start - end > 1e-9 * np.abs(start)
    draft.matrix("linear-drag", _round(still - np.diag(np.where(fades, start, 0.0))))
    if fades.any():
        rate = -math.log(end[fades][0] / start[fades][0])
        draft.add("fading-drag", diagonal=_numbers(np.where(fades, start, 0.0)), fade=f"{rate:.12g}")


def _cross_flow(draft: ModelDraft, vehicle: VehicleSource, calls: dict[str, tuple[Any, ...]]) -> None:
    """Add the cross-flow drag of the hull, if the equation of motion has it."""
    if "crossFlowDrag" not in calls:
        return
    length, beam, depth, _, *section = calls["crossFlowDrag"]
    sway, heave = (
        -float(vehicle.functions["crossFlowDrag"](length, beam, depth, np.eye(6)[k], *section)[k]) / float(length)
        for k in (1, 2)
    )
    keys = {"heave": f"{heave:.15g} kg/m2"} if heave else {}
    draft.add("cross-flow", length=f"{float(length):.12g} m", sway=f"{sway:.15g} kg/m2", **keys)
    draft.notes.append(
        "cross-flow drag: the model uses the exact integral; the source code sums 21 strips of a twentieth of the length, "
        "which gives 5 % more sway force and 21 % more yaw moment"
    )


def _propeller(draft: ModelDraft, vehicle: VehicleSource, values: dict[str, Any], nu: Floats) -> None:
    add_propeller(
        draft,
        OpenWaterPropeller(
            diameter=float(vehicle.values_of("D_prop")),
            advance=float(vehicle.values_of("Ja_max")),
            kt=(float(vehicle.values_of("KT_0")), float(vehicle.values_of("KT_max"))),
            kq=(float(vehicle.values_of("KQ_0")), float(vehicle.values_of("KQ_max"))),
            limit=float(vehicle.values_of("self.nMax", "n_max")) / RPM,
            lag=float(vehicle.find("self.T_n") or 0.0),
            wake=1.0 - float(values["Va"]) / float(np.linalg.norm(nu[:3])),
            torque_share=values["tau"][3] / values["K_prop"],
            deduction=float(vehicle.values_of("t_prop")),
        ),
    )


def _tail_fins(draft: ModelDraft, vehicle: VehicleSource, rho: float) -> None:
    for name, letter, axis, normal in (("rudder", "r", 1, "0 1 0"), ("stern-plane", "s", 2, "0 0 1")):
        force = -0.5 * rho * float(vehicle.values_of(f"self.A_{letter}", f"A_{letter}"))
        force *= float(vehicle.values_of(f"self.CL_delta_{letter}", f"CL_delta_{letter}"))
        at = float(vehicle.values_of(f"self.x_{letter}", f"x_{letter}"))
        effect = np.zeros(6)
        effect[axis], effect[6 - axis] = force, (at if axis == 1 else -at) * force
        limit = float(vehicle.values_of(f"self.deltaMax_{letter}", "delta_max"))
        draft.add(
            "fin",
            name=name,
            law="coefficients",
            normal=normal,
            per_angle=_numbers(effect),
            per_square=_numbers([force, 0, 0, 0, 0, 0]),
            limit=f"{limit:.12g} rad",
            lag=f"{float(vehicle.find('self.T_delta') or 0.0):.12g} s",
        )


def _two_propellers(draft: ModelDraft, vehicle: VehicleSource) -> tuple[Floats, str]:
    """Add the terms of a boat with two fixed propellers, linear restoring and a payload."""
    rho, gravity = float(vehicle.values_of("rho")), float(vehicle.values_of("self.g", "g"))
    mass, added = vehicle.values_of("MRB"), vehicle.values_of("self.MA", "MA")
    draft.attributes["type"] = "surface"
    if (size := draft.require_numbers("size", 3)) is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    draft.add(
        "mass",
        value=f"{mass[0, 0]:.15g} kg",
        centre=_numbers(np.array([mass[1, 5], mass[2, 3], mass[0, 4]]) / mass[0, 0]) + " m",
    )
    draft.matrix("rigid-body", _round(mass))
    draft.matrix("restoring", _round(vehicle.values_of("self.G", "G")))
    payload = float(vehicle.find("self.mp", "mp") or 0.0)
    if payload:
        draft.add("load", mass=f"{payload:.12g} kg", position=_numbers(vehicle.values_of("self.rp", "rp")) + " m")
    draft.matrix("added-mass", _round(added))
    linear, quadratic = _damping(vehicle)
    draft.matrix("linear-drag", np.diag(linear))
    if np.abs(quadratic).max() > 1e-9 * np.abs(linear).max():
        draft.matrix("quadratic-drag", np.diag(quadratic))
    _cross_flow(draft, vehicle, vehicle.evaluate(np.zeros(6), np.zeros(6), np.zeros(2)).calls)
    ahead, astern = (float(vehicle.values_of(f"self.{k}", k)) * TURN**2 for k in ("k_pos", "k_neg"))
    low, high = (float(vehicle.values_of(f"self.{k}", k)) / TURN for k in ("n_min", "n_max"))
    for name, arm in (("port", "l1"), ("starboard", "l2")):
        draft.add(
            "thruster",
            name=name,
            position=_numbers([0.0, float(vehicle.values_of(f"self.{arm}", arm)), 0.0]) + " m",
            direction="1 0 0",
            law="shaft",
            minimum=f"{low:.12g}",
            maximum=f"{high:.12g}",
            lag=f"{float(vehicle.find('self.T_n') or 0.0):.12g} s",
            coefficients=_numbers([0.0, ahead, 0.0]),
            reverse=_numbers([0.0, astern, 0.0]),
        )
    return np.array([TURN, TURN]), _world(draft, rho, gravity)


def _damping(vehicle: VehicleSource) -> tuple[Floats, Floats]:
    """Return the diagonals of the linear and quadratic damping, from the forces `tau_damp` at two speeds."""
    slow, fast = np.zeros(6), np.zeros(6)
    for k in range(6):
        for at, force in ((1.0, slow), (2.0, fast)):
            nu = np.zeros(6)
            nu[k] = at
            force[k] = -vehicle.evaluate(np.zeros(6), nu, np.zeros(vehicle.controls)).values["tau_damp"][k]
    quadratic = (fast - 2.0 * slow) / 2.0
    quadratic[np.abs(quadratic) < 1e-12 * np.abs(slow).max()] = 0.0
    return slow - quadratic, quadratic


def _matrices(draft: ModelDraft, vehicle: VehicleSource, thrusters: bool) -> tuple[Floats, str]:
    """Add a hull given by its mass, damping and restoring matrices, with propellers and tunnel thrusters."""
    draft.attributes |= {"type": "surface", "coriolis": "no"}
    if (size := draft.require_numbers("size", 3)) is not None:
        draft.add("box", length=f"{size[0]:g} m", width=f"{size[1]:g} m", height=f"{size[2]:g} m")
    if vehicle.find("MRB") is not None:
        mass, added = np.array(vehicle.values_of("MRB")), np.array(vehicle.values_of("self.MA", "MA"))
        damping, stiffness = vehicle.values_of("self.D", "D"), vehicle.values_of("self.G", "G")
        draft.add("mass", value=f"{mass[0, 0]:.12g} kg")
    else:
        plane = np.ix_((0, 1, 5), (0, 1, 5))
        whole, m = vehicle.values_of("self.M3", "M"), float(vehicle.values_of("m", "mass"))
        total, damping, stiffness = np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6))
        total[plane], damping[plane] = whole, vehicle.values_of("self.D3", "D")
        mass = np.diag([m, m, m, total[5, 5], total[5, 5], total[5, 5]])
        mass[1, 5] = mass[5, 1] = total[1, 5]
        added = np.diag([total[0, 0] - m, total[1, 1] - m, 0.0, 0.0, 0.0, 0.0])
        draft.attributes["active"] = "u v r"
        draft.add("mass", value=f"{m:.12g} kg")
        draft.notes.append(
            "the file contains only the sum of inertia and added inertia in yaw: the model has it as inertia"
        )
    draft.matrix("rigid-body", _round(mass))
    draft.matrix("restoring", _round(stiffness))
    draft.matrix("added-mass", _round(added))
    draft.matrix("linear-drag", _round(damping))
    draft.notes.append("the source code has no Coriolis forces")
    if not thrusters:
        draft.notes.append("the controls of the source code are forces: the model has no actuators")
        return np.zeros(0), ""
    gains, arms = np.diag(vehicle.values_of("K")) * RPM**2, np.array(vehicle.values_of("T"), float)
    limits = np.broadcast_to(vehicle.values_of("self.n_max", "n_max"), len(gains)) / RPM
    for k, (gain, (along, across, arm)) in enumerate(zip(gains, arms.T, strict=True)):
        draft.add(
            "thruster",
            name=f"{'propeller' if along else 'tunnel'}-{k + 1}",
            position=_numbers([0.0, -arm / along, 0.0] if along else [arm / across, 0.0, 0.0]) + " m",
            direction=_numbers([along, across, 0.0]),
            law="shaft",
            minimum=f"{-limits[k]:.12g}",
            maximum=f"{limits[k]:.12g}",
            lag=f"{float(vehicle.find('self.T_n') or 0.0):.12g} s",
            coefficients=_numbers([0.0, gain * math.hypot(along, across), 0.0]),
        )
    return np.full(len(gains), RPM), ""


def _world(draft: ModelDraft, rho: float, gravity: float) -> str:
    """Return the attributes of the <world> to which the coefficients apply, and add a note about them."""
    draft.notes.append(f'the coefficients apply to <world density="{rho:g} kg/m3" gravity="{gravity:.9g} m/s2">')
    return f'density="{rho:.15g} kg/m3" gravity="{gravity:.15g} m/s2"'


def _numbers(values: Any) -> str:
    return " ".join(f"{float(v) + 0.0:.15g}" for v in np.asarray(values).ravel())


def _round(matrix: Any) -> Floats:
    """Return a matrix without the rounding errors in elements that are zero."""
    m = np.array(matrix, float)
    m[np.abs(m) < 1e-13 * np.abs(m).max()] = 0.0
    return m


def _compare(draft: ModelDraft, vehicle: VehicleSource, scales: Floats, world: str) -> None:
    """Compare the model's accelerations with those of the source code in random states, and record what differs."""
    from wavesim_server.importers.comparison import accelerations

    random = np.random.default_rng(1)
    motion = random.uniform(-1.0, 1.0, (STATES, 12)) * np.repeat([0.0, ANGLE, SPEED, RATE], 3)
    share = random.uniform(-0.6, 0.6, (STATES, len(scales)))
    ours, values = accelerations(draft, world, motion, share)
    theirs = np.array(
        [
            vehicle.evaluate(m[:6], m[6:], _in_their_order(v * scales, vehicle, draft)).acceleration
            for m, v in zip(motion, values, strict=True)
        ]
    )
    if (active := draft.attributes.get("active")) is not None:
        theirs[:, [k for k, name in enumerate("uvwpqr") if name not in active.split()]] = 0.0
    finite = np.isfinite(theirs).all(axis=1)
    if not finite.all():
        draft.unused.append(
            f"the equation of motion of `{vehicle.name}` has no finite result in {STATES - int(finite.sum())} of {STATES} random states"
        )
    ours, theirs = ours[finite], theirs[finite]
    size = np.maximum(np.abs(theirs).max(axis=0, initial=0.0), 1e-12)
    error = np.abs(ours - theirs).max(axis=0, initial=0.0)
    wrong = [k for k in range(6) if not error[k] <= max(TOLERANCE * size[k], 1e-12)]
    count = len(ours)
    if wrong:
        draft.unused.append(
            f"the equation of motion of `{vehicle.name}` has terms that the model does not have; in {count} random states, the "
            "accelerations differ by up to "
            + ", ".join(f"{error[k]:.2g} ({AXES[k]}, largest {size[k]:.2g})" for k in wrong)
        )
    else:
        draft.notes.append(
            f"in {count} random states, the accelerations equal those of the source code to {(error / size).max():.1g} of the largest"
        )


def _in_their_order(values: Floats, vehicle: VehicleSource, draft: ModelDraft) -> Floats:
    """Return actuator values (thrusters, then fins) in the order of the source code's controls: fins first."""
    if not len(values):
        return np.zeros(vehicle.controls)
    thrusters = sum(e.tag == "thruster" for e in draft.elements)
    return np.concatenate([values[thrusters:], values[:thrusters]])
