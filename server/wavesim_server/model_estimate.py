"""First estimate of a model for a torpedo-shaped vehicle, computed from its dimensions with published formulas, without
measurements.

The added mass is that of a prolate spheroid of the same slenderness (Lamb, Hydrodynamics, 1932, art. 114 and 373;
Fossen 2021, section 8.2). The factors k1 (along the axis) and k2 (across it) apply to the displaced mass, and k' (about
a transverse axis) to its moment of inertia. The axial drag uses the ITTC 1957 friction line on the surface of the
cylinder, with Hoerner's form factor for streamlined bodies (1965, 6-28). The cross-flow drag is that of strips of a
circular cylinder with the coefficient 1.1 (Hoerner, 3-9). Mass is distributed evenly. The four fins have the same area
relative to the hull as those of the LAUV. At half its thrust, the propeller maintains the stated speed.

The estimate does not include body lift, sails, antennas or the actual hull lines. Expect errors of 20 to 30 % in added
mass and cross-flow drag, and of a factor of two in axial drag. To reduce these errors, fit the model to a towing test
or a speed trial with ``wavesim_server.study.varied`` and ``batch``.
"""

from __future__ import annotations

import math
from pathlib import Path

from wavesim_sdk.errors import ConfigError
from wavesim_server.friction import DENSITY, VISCOSITY, ittc_line, streamlined_form_factor
from wavesim_server.importers.model_draft import ModelDraft, format_numbers
from wavesim_server.spheroid import spheroid_added_mass

CROSS_FLOW_DRAG = 1.1  #: drag coefficient of a cylinder across the flow
FIN_AREA_SHARE = 0.033  #: area of a fin divided by the product of hull length and hull diameter, as on the LAUV
#: displaced mass divided by the mass of the vehicle; the ratio is above 1, so that the vehicle surfaces after a failure
BUOYANCY_RESERVE = 1.005
CENTRE_OF_MASS_OFFSET = 0.05  #: distance of the centre of mass below the axis, in hull diameters


def friction_coefficient(length: float, diameter: float, speed: float) -> float:
    """Return the drag coefficient based on the wetted surface: the ITTC 1957 line multiplied by the form factor."""
    return ittc_line(speed * length / VISCOSITY) * streamlined_form_factor(diameter / length)


def models_file(name: str, length: float, diameter: float, mass: float | None = None, speed: float = 1.5) -> str:
    """Return the text of a models file.

    Lengths are in m, ``mass`` is in kg (None means the mass of the water that the cylinder displaces), and ``speed``,
    which determines the friction and the propeller, is in m/s. Raises ConfigError if the hull is outside the range of
    the formulas.
    """
    volume = 0.25 * math.pi * diameter**2 * length
    if not (diameter > 0.0 and 2.0 <= length / diameter <= 20.0):
        raise ConfigError("the formulas apply to torpedo-shaped hulls only: use a length of 2 to 20 diameters")
    mass = DENSITY * volume / BUOYANCY_RESERVE if mass is None else mass
    if not 0.5 < mass / (DENSITY * volume) < 1.2:
        raise ConfigError(
            f"a cylinder of that size displaces {DENSITY * volume:.3g} kg, so a mass of {mass:g} kg is implausible: use 0.5 to 1.2 times the displaced mass"
        )
    if not 0.1 <= speed <= 20.0:
        raise ConfigError(f"invalid speed {speed:g} m/s: use 0.1 to 20 m/s")
    r = 0.5 * diameter
    roll, turn = 0.5 * mass * r * r, mass * (3.0 * r * r + length**2) / 12.0
    k1, k2, about = spheroid_added_mass(length / diameter)
    half_rho, surface = 0.5 * DENSITY, math.pi * diameter * length
    skin = half_rho * friction_coefficient(length, diameter, speed) * surface
    across = half_rho * CROSS_FLOW_DRAG * diameter
    drag = skin * speed * speed

    draft = ModelDraft(name, "estimated from its dimensions by `wavesim vehicles estimate`", {}, None)
    draft.attributes |= {
        "type": "underwater",
        "title": f"estimate: {length:g} m, {diameter:g} m across, {mass:.3g} kg",
        "validated": "Not validated: every coefficient is an estimate.",
    }
    draft.notes += [
        f"added mass: spheroid of slenderness {length / diameter:.3g}: k1 {k1:.4f}, k2 {k2:.4f}, k' {about:.4f} (Lamb)",
        f"axial drag: ITTC 1957 and Hoerner's form factor at {speed:g} m/s on {surface:.3g} m2: {drag:.3g} N",
        f"cross-flow drag: strips of a cylinder, coefficient {CROSS_FLOW_DRAG:g}; roll damping: skin friction",
        "mass distributed evenly, centre of mass one twentieth of the diameter below the axis; reserve buoyancy of half a percent",
        f"fins: {100 * FIN_AREA_SHARE:.2g} % of length times diameter each, as on the LAUV; propeller: maximum thrust of twice the axial drag",
    ]
    draft.add("cylinder", length=f"{length:g} m", radius=f"{r:g} m")
    draft.add("mass", value=f"{mass:.6g} kg", centre=format_numbers(0.0, 0.0, CENTRE_OF_MASS_OFFSET * diameter) + " m")
    draft.add("inertia", xx=f"{roll:.4g}", yy=f"{turn:.4g}", zz=f"{turn:.4g}")
    draft.add("buoyancy", volume=f"{BUOYANCY_RESERVE * mass / DENSITY:.6g} m3")
    spun = about * turn  # the displaced water has the cylinder's inertia
    draft.add("added-mass", diagonal=_four_digits(k1 * mass, k2 * mass, k2 * mass, 0.0, spun, spun))
    pitch = across * length**4 / 32.0
    draft.add(
        "quadratic-drag", diagonal=_four_digits(skin, across * length, across * length, skin * r**3, pitch, pitch)
    )
    draft.add(
        "thruster",
        name="propeller",
        position=format_numbers(-0.5 * length, 0.0, 0.0) + " m",
        direction="1 0 0",
        law="force",
        minimum=f"{-drag:.3g}",
        maximum=f"{2.0 * drag:.3g}",
        lag="0.2 s",
    )
    area, arm = FIN_AREA_SHARE * length * diameter, -0.42 * length
    for fin, y, z, normal in (
        ("rudder-top", 0.0, -1.2 * r, "0 1 0"),
        ("rudder-bottom", 0.0, 1.2 * r, "0 1 0"),
        ("plane-port", -1.2 * r, 0.0, "0 0 1"),
        ("plane-starboard", 1.2 * r, 0.0, "0 0 1"),
    ):
        draft.add(
            "fin",
            name=fin,
            position=format_numbers(round(arm, 6), y, z) + " m",
            normal=normal,
            area=f"{area:.4g} m2",
            lift_slope="3.55",
            limit="25 deg",
            rate="90 deg/s",
            lag="0.1 s",
        )
    return draft.xml(Path(name), False).xml


def _four_digits(*numbers: float) -> str:
    return " ".join(f"{n:.4g}" for n in numbers)
