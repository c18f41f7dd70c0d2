"""Declarations of lines: tethers, moorings and tow cables between bodies, or from a body to an anchor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import MAX_SEGMENTS
from wavesim_world.config.schema import Vector, children, key, place, text
from wavesim_world.config.validation import fail_at

STRETCHED = 1.1  #: maximum initial distance between the ends of a line, divided by the length of the line


@dataclass(frozen=True)
class LineEnd:
    """End of a line, on a body or at a fixed anchor."""

    body: str = text(
        "Name of the vehicle or buoy to which this end of the line is attached. Empty: the end is an anchor, fixed in "
        "the world.",
        "",
    )
    position: Vector = key(
        "Position of this end of the line. On a body, it is in the body frame; for an anchor, it is north, east, down.",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    place: str = place()


@dataclass(frozen=True)
class Line:
    """Line (tether, mooring or tow cable), modelled by lumped masses with elasticity, weight, buoyancy, drag and
    contact with the bed.

    The line has no bending stiffness and carries no compressive force.
    """

    name: str = text("Name of the line: 1 to 31 letters, digits, - or _.")
    length: float = key("Unstretched length of the line.", "length", low=0.01, high=1e5)
    diameter: float = key("Diameter of the line, which determines its volume and drag.", "length", low=1e-4, high=1.0)
    mass: float = key("Mass of the line per unit length, in air.", "linear density", low=1e-4, high=1e3)
    stiffness: float = key("Axial stiffness EA of the line: tension per unit strain.", "force", low=1.0, high=1e10)
    segments: int = key(
        "Number of equal segments into which the line is divided.", default=20, low=1, high=MAX_SEGMENTS, integer=True
    )
    damping: float = key(
        "Internal damping ratio zeta of the line. 1 = critical damping of a segment; the damping coefficient is then "
        "sqrt(EA `mass`) times the length of the segment.",
        default=0.5,
        low=0.0,
        high=2.0,
    )
    drag: float = key(
        "Transverse drag coefficient of the line, based on the projected area (diameter times length).",
        default=1.2,
        low=0.0,
        high=10.0,
    )
    drag_along: float = key(
        "Tangential friction coefficient of the line in water, based on its surface area.",
        default=0.01,
        low=0.0,
        high=1.0,
    )
    added_mass: float = key(
        "Transverse added mass coefficient of the line: added mass divided by the mass of the displaced water.",
        default=1.0,
        low=0.0,
        high=10.0,
    )
    friction: float = key("Friction coefficient between the line and the sea bed.", default=0.5, low=0.0, high=10.0)
    breaking: float = key("Tension at which the line breaks; 0 N = never.", "force", 0.0, low=0.0)
    substeps: int = key(
        "Number of integration steps of the line per tick; 0 = as many as stability requires. The server rejects a "
        "number that is too small for stability.",
        default=0,
        low=0,
        high=10000,
        integer=True,
    )
    end: tuple[LineEnd, ...] = children(LineEnd, "End of the line. A line needs two ends.", least=2)
    place: str = place()


def check(lines: tuple[Line, ...], starts: dict[str, Vector], name_pattern: str) -> None:
    """Check lines. Raises ConfigError, with file and line number, if a line has an invalid name or end, or is too short
    for the distance between its ends.

    ``starts`` contains the start position of each body.
    """
    import re

    seen: set[str] = set()
    for line in lines:
        who = f"line '{line.name}'"
        if not re.fullmatch(name_pattern, line.name):
            fail_at(line.place, f"{who}: use 1 to 31 letters, digits, - and _")
        if line.name in seen:
            fail_at(line.place, f"duplicate line name '{line.name}'; give each line its own name")
        seen.add(line.name)
        if len(line.end) != 2:
            fail_at(
                line.place,
                f"{who} has {len(line.end)} ends; write two <end> elements, each with a body or the position of an "
                "anchor",
            )
        for end in line.end:
            if end.body and end.body not in starts:
                fail_at(
                    end.place, f"{who} is attached to the unknown body '{end.body}'{suggest_name(end.body, starts)}"
                )
        first, second = line.end
        if first.body and first.body == second.body:
            fail_at(
                line.place,
                f"both ends of {who} are attached to '{first.body}'; attach one end to another body or to an anchor",
            )
        away = math.dist(*(_roughly(end, starts) for end in line.end))
        slack = sum(math.dist(end.position, (0.0, 0.0, 0.0)) for end in line.end if end.body)
        if away - slack > STRETCHED * line.length:
            fail_at(
                line.place,
                f"{who} is {line.length:g} m long, but its ends start {away:.4g} m apart; use a longer line or move the ends",
            )


def _roughly(end: LineEnd, starts: dict[str, Vector]) -> Vector:
    """Return the approximate position of an end in the world. The attitude of the body is ignored."""
    if not end.body:
        return end.position
    return tuple(float(x) for x in np.add(starts[end.body], end.position))
