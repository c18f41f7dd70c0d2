"""Actuators of Stonefish robots: thrusters, rudders, forces and variable buoyancy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
from lxml import etree

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import stonefish_shapes as shapes
from wavesim_server.importers.model_draft import ModelDraft, format_numbers
from wavesim_server.importers.stonefish_scenario import StonefishScenario, frame, number

TURN = 2.0 * math.pi
STALL = 0.25 * math.pi  #: Stonefish's stall angle of a rudder that states none
LARGEST_STALL = math.radians(60.0)
OLD_GAIN = 8.0  #: gain of the rotor's controller in older versions of Stonefish, N m s/rad
FIT_ERROR = 0.01  #: largest error of a fitted thrust curve that is not listed, as a fraction of the largest thrust


def add(draft: ModelDraft, robot: etree._Element, base: str, scenario: StonefishScenario, density: float) -> None:
    """Add the actuators of the base link."""
    columns: list[Floats] = []
    torque = False
    for element in robot.findall("actuator"):
        name = re.sub(r"[^a-z0-9-]+", "-", element.get("name", "").lower()).strip("-")
        kind, link = element.get("type", ""), element.find("link")
        if link is not None and link.get("name") != base:
            draft.unused.append(f"actuator '{name}' of the type {kind}: on the link '{link.get('name')}'")
            continue
        place = frame(element.find("origin"))
        if kind == "thruster":
            ratio = _thruster(draft, element, name, place, density)
        elif kind in ("simple_thruster", "push"):
            ratio = _force(draft, element, name, place)
        else:
            if kind == "rudder":
                _rudder(draft, element, name, place)
            elif kind == "vbs":
                _ballast(draft, element, name, place, scenario, density)
            else:
                draft.unused.append(f"actuator '{name}' of the type {kind}")
            continue
        along, at = place[:3, 0], place[:3, 3]
        columns.append(np.concatenate([along, np.cross(at, along) + ratio * along]))
        torque = torque or ratio != 0.0
    if torque:
        rows = np.round(np.array(columns).T, 12)
        draft.add("allocation", "\n" + "\n".join("      " + format_numbers(*row) for row in rows) + "\n    ")
        draft.notes.append("allocation: its columns include the reaction torques of the propellers")


def _thruster(draft: ModelDraft, element: etree._Element, name: str, place: Floats, density: float) -> float:
    """Add a thruster and return its reaction torque per thrust in m."""
    specs, propeller = _child(element, "specs"), _child(element, "propeller")
    if element.find("thrust_model") is None and specs.get("thrust_coeff") is not None:
        _modernise(element, specs)
        draft.notes.append(f"{name}: in the form of Stonefish before version 1.5, with the same law of thrust")
    model, rotor = _child(element, "thrust_model"), _child(element, "rotor_dynamics")
    most = abs(number(specs, "max_setpoint"))
    right = propeller.get("right", "true") == "true"
    normalized = specs.get("normalized_setpoint", "false") == "true"
    gain = (most if normalized else 1.0) / TURN * (-1.0 if specs.get("inverted_setpoint", "false") == "true" else 1.0)
    limit, ratio = (1.0 if normalized else most), 0.0
    kind = model.get("type", "")
    if kind == "fluid_dynamics":
        d, thrust = number(propeller, "diameter"), _child(model, "thrust_coeff")
        ahead, astern = number(thrust, "forward"), number(thrust, "reverse")
        kq = number(_child(model, "torque_coeff"), "value")
        first, inflow = density * d**4, -density * d**3 * ahead
        laws = {"coefficients": (0.0, first * ahead, inflow), "reverse": (0.0, first * astern, inflow)}
        ratio = (-1.0 if right else 1.0) * kq * d / ahead
        if astern != ahead and kq:
            draft.notes.append(f"{name}: the reaction torque astern is proportional to the thrust, as it is ahead")
    else:
        curve = _curve(draft, model, kind, name)
        sign = 1.0 if right else -1.0
        laws = _fitted(draft, lambda n: sign * curve(sign * TURN * n), most / TURN, name, kind)
    if not right:
        gain = -gain  # the propeller pushes ahead when it turns the other way round
    added = draft.add(
        "thruster",
        name=name,
        position=format_numbers(*place[:3, 3]) + " m",
        direction=format_numbers(*np.round(place[:3, 0], 12)),
        law="shaft",
        minimum=f"{-limit:.12g}",
        maximum=f"{limit:.12g}",
        motor=format_numbers(0.0, gain),
        lag=f"{_lag(draft, rotor, name, most):.6g} s",
    )
    for key, numbers in laws.items():
        added.set(key, format_numbers(*numbers))
    return ratio


def _modernise(element: etree._Element, specs: etree._Element) -> None:
    """Rewrite a thruster of older versions, whose coefficients are attributes of <specs> and whose rotor has fixed
    gains and an inertia of 1 kg m2.
    """
    ahead = specs.get("thrust_coeff", "")
    model = etree.SubElement(element, "thrust_model", type="fluid_dynamics")
    etree.SubElement(model, "thrust_coeff", forward=ahead, reverse=specs.get("thrust_coeff_backward", ahead))
    etree.SubElement(model, "torque_coeff", value=specs.get("torque_coeff", "0"))
    rotor = etree.SubElement(element, "rotor_dynamics", type="mechanical_pi")
    etree.SubElement(rotor, "rotor_inertia", value="1")
    etree.SubElement(rotor, "kp", value=f"{OLD_GAIN:g}")
    specs.set("max_setpoint", f"{number(specs, 'max_rpm') / 60.0 * TURN:.12g}")
    specs.set("normalized_setpoint", "true")
    specs.set("inverted_setpoint", specs.get("inverted", "false"))


def _child(element: etree._Element, tag: str) -> etree._Element:
    found = element.find(tag)
    if found is None:
        raise ConfigError(f"<{element.tag} name='{element.get('name')}'> lacks <{tag}>")
    return found


def _curve(draft: ModelDraft, model: etree._Element, kind: str, name: str) -> Callable[[Floats], Floats]:
    """Return Stonefish's thrust in N as a function of the shaft speed in rad/s."""
    if kind == "quadratic":
        k = number(_child(model, "thrust_coeff"), "value")
        return lambda w: k * w * np.abs(w)
    if kind == "deadband":
        thrust, band = _child(model, "thrust_coeff"), _child(model, "deadband")
        back, ahead = number(thrust, "reverse"), number(thrust, "forward")
        low, high = number(band, "lower"), number(band, "upper")

        def dead(w: Floats) -> Floats:
            square = w * np.abs(w)
            return np.where(square < low, back * (square - low), np.where(square > high, ahead * (square - high), 0.0))

        return dead
    if kind == "linear_interpolation":
        at, thrusts = (_child(model, k).get("value", "").split() for k in ("input", "output"))
        x, y = np.array(at, float), np.array(thrusts, float)
        if len(x) != len(y) or not len(x):
            raise ConfigError(f"thruster '{name}': <input> and <output> must have the same number of values")
        return lambda w: np.interp(w, x, y)
    raise ConfigError(f"thruster '{name}': unknown thrust model '{kind}'")


def _fitted(
    draft: ModelDraft, curve: Callable[[Floats], Floats], most: float, name: str, kind: str
) -> dict[str, tuple[float, float, float]]:
    """Return the coefficients c1, c2 of both directions that fit a thrust curve, and report the error."""
    laws, worst, largest = {}, 0.0, 0.0
    for key, n in (("coefficients", np.linspace(0.0, most, 201)[1:]), ("reverse", np.linspace(-most, 0.0, 201)[:-1])):
        basis = np.stack([n, n * np.abs(n)], axis=1)
        if kind == "quadratic":
            basis[:, 0] = 0.0
        goal = curve(n)
        c = np.linalg.lstsq(basis, goal, rcond=None)[0]
        laws[key] = (float(c[0]), float(c[1]), 0.0)
        worst, largest = max(worst, float(np.abs(basis @ c - goal).max())), max(largest, float(np.abs(goal).max()))
    if worst > FIT_ERROR * largest:
        draft.unused.append(
            f"thruster '{name}': the thrust model '{kind}' differs by up to {worst:.3g} N (of {largest:.3g} N) from the law "
            "c1 n + c2 n |n| of the model"
        )
    elif worst > 1e-9 * largest:
        draft.notes.append(f"{name}: the thrust model '{kind}' is fitted; its error is at most {worst:.2g} N")
    return laws


def _lag(draft: ModelDraft, rotor: etree._Element, name: str, most: float) -> float:
    """Return the time constant of the shaft in s. A model has a first-order lag only."""
    kind = rotor.get("type", "")
    if kind == "zero_order":
        return 0.0
    if kind == "first_order":
        return number(_child(rotor, "time_constant"), "value")
    if kind == "mechanical_pi":
        inertia, kp = rotor.find("rotor_inertia"), number(_child(rotor, "kp"), "value")
        if inertia is None:
            draft.unused.append(
                f"thruster '{name}': rotor dynamics mechanical_pi; Stonefish computes the inertia of the rotor from its mesh. "
                "The shaft follows at once"
            )
            return 0.0
        lag, reason = (
            number(inertia, "value") / kp,
            "inertia / kp, without the integral part and the torque of the water",
        )
    elif kind == "yoerger":
        alpha, beta = number(_child(rotor, "alpha"), "value"), number(_child(rotor, "beta"), "value")
        lag, reason = (
            0.5 / math.sqrt(alpha * beta * most),
            "that at full setpoint; its final speed is sqrt(beta/alpha setpoint)",
        )
    elif kind == "bessa":
        j, k1, k2 = (number(_child(rotor, k), "value") for k in ("jmsp", "kv1", "kv2"))
        lag, reason = j / (k1 + 2.0 * k2 * most), "that at full speed; its final speed is not the setpoint"
    else:
        raise ConfigError(f"thruster '{name}': unknown rotor dynamics '{kind}'")
    draft.unused.append(f"thruster '{name}': rotor dynamics {kind}; the model has a lag of {lag:.3g} s ({reason})")
    return lag


def _force(draft: ModelDraft, element: etree._Element, name: str, place: Floats) -> float:
    """Add an actuator whose setpoint is a force."""
    specs = element.find("specs")
    lower, upper = (
        None if specs is None else specs.get(f"{k}_thrust_limit", specs.get(f"{k}_limit")) for k in ("lower", "upper")
    )
    if lower is None or upper is None:
        limit = draft.require_numbers("thrust-limit", 1)
        lower, upper = (str(-limit[0]), str(limit[0])) if limit else ("0", "0")
    inverted = specs is not None and specs.get("inverted", "false") == "true"
    draft.add(
        "thruster",
        name=name,
        position=format_numbers(*place[:3, 3]) + " m",
        direction=format_numbers(*np.round(place[:3, 0], 12)),
        law="force",
        minimum=f"{float(lower):.12g}",
        maximum=f"{float(upper):.12g}",
        motor=format_numbers(0.0, -1.0 if inverted else 1.0),
        lag="0 s",
    )
    return 0.0


def _rudder(draft: ModelDraft, element: etree._Element, name: str, place: Floats) -> None:
    specs = _child(element, "specs")
    sign = -1.0 if specs.get("inverted", "false") == "true" else 1.0
    rate, stall = number(specs, "max_angular_rate", 0.0), number(specs, "stall_angle", STALL)
    draft.add(
        "fin",
        name=name,
        law="linear",
        position=format_numbers(*place[:3, 3]) + " m",
        chord=format_numbers(*np.round(place[:3, 0], 12)),
        normal=format_numbers(*np.round(sign * place[:3, 1], 12)),
        area=f"{number(specs, 'area'):.12g} m2",
        lift_slope=f"{number(specs, 'lift_coeff'):.12g}",
        stall=f"{min(stall, LARGEST_STALL):.9g} rad",
        limit=f"{number(specs, 'max_angle'):.9g} rad",
        rate=f"{abs(rate):.9g} rad/s",
        lag="0 s",
    )
    draft.unused.append(
        f"rudder '{name}': Stonefish's drag (lift times angle of attack); beyond the stall angle, its lift is zero, whereas the "
        "model has a stalled plate"
    )
    draft.notes.append(f"rudder '{name}': drag_coeff has no effect in Stonefish")


def _ballast(
    draft: ModelDraft, element: etree._Element, name: str, place: Floats, scenario: StonefishScenario, density: float
) -> None:
    volume = _child(element, "volume")
    tanks = []
    for mesh in volume.findall("mesh"):
        found = scenario.locate(mesh.get("filename", ""))
        if found is None:
            raise ConfigError(
                f"actuator '{name}': the mesh '{mesh.get('filename')}' was not found; state its folder with --path",
                str(scenario.path),
            )
        tanks.append(shapes.mass_properties(shapes.read(found, 1.0), -1.0)[:2])
    if len(tanks) < 2:
        raise ConfigError(f"actuator '{name}' needs two meshes of its volume, empty and full", str(scenario.path))
    tanks.sort(key=lambda t: t[0])
    initial = min(max(number(volume, "initial"), tanks[0][0]), tanks[-1][0])
    middle = place[:3, :3] @ np.array(
        [np.interp(initial, [t[0] for t in tanks], [t[1][k] for t in tanks]) for k in range(3)]
    )
    draft.add(
        "ballast",
        name=name,
        position=format_numbers(*(middle + place[:3, 3])) + " m",
        minimum=f"{density * tanks[0][0]:.9g} kg",
        maximum=f"{density * tanks[-1][0]:.9g} kg",
        initial=f"{density * initial:.9g} kg",
    )
    draft.unused.append(
        f"actuator '{name}': Stonefish's setpoint is a flow in m3/s, and the centre of the water moves; in the model it is the mass, "
        "at the centre for the initial volume"
    )
