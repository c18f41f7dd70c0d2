"""The declaration of lines: tethers, moorings and tow cables between bodies, or from a body to an anchor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.config.schema import Vector, children, key, place, text
from wavesim_sdk.config.validation import fail_at
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import MAX_SEGMENTS

STRETCHED = 1.1  #: a line may start with no more than this times its length


@dataclass(frozen=True)
class LineEnd:
    """Where a line ends: on a body, or at a fixed place."""

    body: str = text("The vehicle or buoy; empty: the end is fixed in the world, an anchor.", "")
    position: Vector = key("On the body, in B; of an anchor north, east, down.", "length", (0.0, 0.0, 0.0), count=3)
    place: str = place()


@dataclass(frozen=True)
class Line:
    """A line of lumped masses: it pulls, weighs, floats and drags, and lies on the bed; it neither bends nor pushes."""

    name: str = text("Its name, 1 to 31 letters, digits, - and _.")
    length: float = key("Length without load.", "length", low=0.01, high=1e5)
    diameter: float = key("Diameter, for its volume and its drag.", "length", low=1e-4, high=1.0)
    mass: float = key("Mass per length, in air.", "linear density", low=1e-4, high=1e3)
    stiffness: float = key("EA: tension per strain.", "force", low=1.0, high=1e10)
    segments: int = key("Into how many equal pieces it is divided.", default=20, low=1, high=MAX_SEGMENTS, integer=True)
    damping: float = key(
        "Damping of its stretching, as a share of what is critical for a segment: internal damping of zeta sqrt(EA mass) "
        "times a segment's length.",
        default=0.5,
        low=0.0,
        high=2.0,
    )
    drag: float = key("Coefficient of drag across, of its diameter times its length.", default=1.2, low=0.0, high=10.0)
    drag_along: float = key("Of friction along, of its surface.", default=0.01, low=0.0, high=1.0)
    added_mass: float = key("Added mass across, of the water that it displaces.", default=1.0, low=0.0, high=10.0)
    friction: float = key("Coefficient of friction on the bed.", default=0.5, low=0.0, high=10.0)
    breaking: float = key("Tension at which it breaks; 0 N: never.", "force", 0.0, low=0.0)
    substeps: int = key(
        "Steps of the line in a tick; 0: as many as it needs. With fewer than that it is refused.",
        default=0,
        low=0,
        high=10000,
        integer=True,
    )
    end: tuple[LineEnd, ...] = children(LineEnd, "Its two ends.", least=2)
    place: str = place()


def check(lines: tuple[Line, ...], starts: dict[str, Vector], name_pattern: str) -> None:
    """Refuse lines that tie nothing, or that cannot reach; ``starts``: where each body begins. ConfigError with the place."""
    import re

    seen: set[str] = set()
    for line in lines:
        who = f"line '{line.name}'"
        if not re.fullmatch(name_pattern, line.name):
            fail_at(line.place, f"{who}: use 1 to 31 letters, digits, - and _")
        if line.name in seen:
            fail_at(line.place, f"there are two lines '{line.name}'")
        seen.add(line.name)
        if len(line.end) != 2:
            fail_at(
                line.place,
                f"{who} has {len(line.end)} ends; write two <end>, each with a body or the place of an anchor",
            )
        for end in line.end:
            if end.body and end.body not in starts:
                fail_at(
                    end.place, f"{who} ends on '{end.body}', but there is no such body{suggest_name(end.body, starts)}"
                )
        first, second = line.end
        if first.body and first.body == second.body:
            fail_at(line.place, f"{who} has both its ends on '{first.body}'")
        away = math.dist(*(_roughly(end, starts) for end in line.end))
        slack = sum(math.dist(end.position, (0.0, 0.0, 0.0)) for end in line.end if end.body)
        if away - slack > STRETCHED * line.length:
            fail_at(
                line.place,
                f"{who} is {line.length:g} m long, but its ends start {away:.4g} m apart; make it longer, or move them",
            )


def _roughly(end: LineEnd, starts: dict[str, Vector]) -> Vector:
    """Where an end is, but for the body's attitude."""
    if not end.body:
        return end.position
    return tuple(float(x) for x in np.add(starts[end.body], end.position))
