"""Declaration of a model's actuators: names, kinds, units and limits.

Everywhere except in the equations of motion, the actuators of a body are numbered in the *order of its model*:
thrusters, fins, swivel angles (named ``NAME-angle`` after the thruster NAME), deflectors (``NAME-deflector``), ballast
tanks, and actuators whose types come from other packages. Within each group, actuators are in the order of their
declaration. A command refers to an actuator by its position in this order or by its name.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, SupportsIndex

from wavesim_sdk import units
from wavesim_sdk.errors import InvalidArgument, UnknownName
from wavesim_sdk.names import shorten, suggest_name

MAX_THRUSTERS = 12  #: maximum number of thrusters of a model
MAX_FINS = 8  #: maximum number of fins
MAX_SWIVELS = 4  #: number of thrusters that may have a swivel or a deflector: only the first thrusters of a model
MAX_BALLASTS = 4  #: maximum number of ballast tanks and of actuators whose types come from other packages, in total
MAX_ACTUATORS = MAX_THRUSTERS + MAX_FINS + 2 * MAX_SWIVELS + MAX_BALLASTS


class ActuatorKind(IntEnum):
    """Kind of an actuator. A model lists its actuators in the order of these kinds."""

    THRUSTER = 0
    FIN = 1
    ANGLE = 2  #: angle of a thruster with a swivel: an azimuth drive or a nozzle
    DEFLECTOR = 3  #: deflector of a water jet, from -1 (full astern) to 1 (deflector up)
    BALLAST = 4
    OTHER = 5  #: actuator whose type comes from another package; its slots follow the slots of the ballast tanks


#: first slot of each kind of actuator, in a table with slots for the maximum number of actuators
FIRST_SLOT = {
    ActuatorKind.THRUSTER: 0,
    ActuatorKind.FIN: MAX_THRUSTERS,
    ActuatorKind.ANGLE: MAX_THRUSTERS + MAX_FINS,
    ActuatorKind.DEFLECTOR: MAX_THRUSTERS + MAX_FINS + MAX_SWIVELS,
    ActuatorKind.BALLAST: MAX_THRUSTERS + MAX_FINS + 2 * MAX_SWIVELS,
    ActuatorKind.OTHER: MAX_THRUSTERS + MAX_FINS + 2 * MAX_SWIVELS,
}


@dataclass(frozen=True, slots=True)
class Actuator:
    """One actuator, with the unit and the range of its command.

    ``unit`` and the limits apply to the command: N, 1/s, rad, kg, or empty for a fraction. ``actual_unit`` is the unit
    of the actual value, which differs from ``unit`` for a thruster with a motor law. ``slot`` is the index of the
    actuator in a table with slots for the maximum number of actuators.
    """

    name: str
    kind: ActuatorKind
    unit: str
    minimum: float
    maximum: float
    slot: int = 0
    actual_unit: str = ""

    @property
    def rest_value(self) -> float:
        """Value of the actuator before any command."""
        return 1.0 if self.kind is ActuatorKind.DEFLECTOR else 0.0


CLIPPED = "command beyond its range: "  #: prefix of the notice that a command was clipped


def clipped_text(actuator: Actuator, value: float, count: int) -> str:
    """Return the notice about commands outside the range of an actuator; ``count`` is the number of such commands."""
    low, high, unit = actuator.minimum, actuator.maximum, f" {actuator.unit}" if actuator.unit else ""
    nth = f"{count}th"  # repeated notices come at counts of 10, 100, 1000 ...
    times = f", for the {nth} time" if count > 1 else ""
    return f"{CLIPPED}{actuator.name} accepts {low:.6g} to {high:.6g}{unit}; {value:.6g} was limited to {high if value > high else low:.6g}{times}"


_FLOATS = frozenset({float})
#: faults of an actuator: stuck = it keeps its value forever; frozen = it keeps its value for a limited time; lost = it
#: produces no force; reduced = it produces less force; reversed = it acts in the opposite direction; none = it works
#: normally (shared memory contains the index in this tuple plus 1, and 0 for none)
ACTUATOR_FAULTS = ("stuck", "frozen", "lost", "reduced", "reversed", "none")


def fault_amount(actuator: Actuator, fault: str, amount: float | str = 0.0) -> float:
    """Return the magnitude of an actuator fault as a number.

    For ``frozen``, the number is the duration in seconds (an empty string means forever). For ``reduced``, it is the
    remaining fraction of the force. For every other fault it is 0. If ``amount`` is a string, it may contain a unit.
    Raises ValueError if the actuator cannot have this fault.
    """
    if fault not in ACTUATOR_FAULTS:
        raise UnknownName(f"'{shorten(fault)}' is not an actuator fault{suggest_name(shorten(fault), ACTUATOR_FAULTS)}")
    if fault in ("lost", "reduced") and actuator.kind > ActuatorKind.FIN:
        raise InvalidArgument(f"'{actuator.name}' produces no force; it can only be stuck, frozen or reversed")
    if fault not in ("frozen", "reduced") or (fault == "frozen" and amount == ""):
        return math.inf if fault == "frozen" else 0.0
    what, quantity, most = ("time", "time", 1e9) if fault == "frozen" else ("remaining fraction", "", 1.0)
    if isinstance(amount, str):
        amount = units.parse(amount, "" if _is_number(amount) else quantity)[0]
    number = _number(actuator.name, amount)
    if number is None or not 0.0 <= number <= most:
        raise InvalidArgument(f"'{actuator.name}' {fault}: the {what} must be between 0 and {most:g}, got {number}")
    return number


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def actuator_index(actuators: Sequence[Actuator], which: object) -> int:
    """Return the index of an actuator, given its name or number. Raises UnknownName, suggesting the nearest name, if
    there is no such actuator.
    """
    if isinstance(which, str):
        for k, a in enumerate(actuators):
            if a.name == which:
                return k
        if which.isascii() and which.isdigit() and len(which) < 10:
            which = int(which)
    if isinstance(which, SupportsIndex) and not isinstance(which, bool):
        k = operator.index(which)
        if 0 <= k < len(actuators):
            return k
        there = f"use 0 to {len(actuators) - 1}" if actuators else "the body has no actuators"
        raise UnknownName(f"unknown actuator {shorten(k, 20)}; {there}")
    if not actuators:
        raise UnknownName(f"unknown actuator '{shorten(which)}': the body has no actuators")
    raise UnknownName(f"unknown actuator '{shorten(which)}'{suggest_name(shorten(which), [a.name for a in actuators])}")


def order_command(actuators: Sequence[Actuator], values: object) -> Sequence[float | None]:
    """Return the commands in the order of the actuators, with None for each actuator that keeps its command.

    ``values`` is a mapping from names or numbers to values, or a sequence in the order of the actuators. A sequence may
    contain fewer values than there are actuators. Raises ValueError if a value is not a finite number.
    """
    if isinstance(values, tuple) and len(values) <= len(actuators) and _FLOATS.issuperset(map(type, values)):
        plain: tuple[float, ...] = values  # from the network, with each step
        if math.isfinite(sum(plain)):
            return plain
    if isinstance(values, Mapping):
        found: list[float | None] = [None] * len(actuators)
        for which, value in values.items():
            k = actuator_index(actuators, which)
            found[k] = _number(actuators[k].name, value)
        return found
    if isinstance(values, (str, bytes, bytearray)) or not hasattr(values, "__len__") or not hasattr(values, "__iter__"):
        raise InvalidArgument(
            f"a command must be a list of numbers or a mapping from names to numbers, got {type(values).__name__}"
        )
    if len(values) > len(actuators):
        raise InvalidArgument(f"got {len(values)} values for {len(actuators)} actuators")
    return [_number(a.name, v) for a, v in zip(actuators, values, strict=False)]


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    number = units.to_real(value)
    if math.isfinite(number):
        return number
    raise InvalidArgument(f"actuator '{name}': {shorten(value)} is not a valid command; use a finite number")


def parse_command(actuators: Sequence[Actuator], text: str) -> Sequence[float | None]:
    """Parse the text of a command, whose elements are separated by spaces: either numbers in the order of the actuators
    (``8 0.1``), or ``NAME=VALUE`` for individual actuators.
    """
    words = text.split()
    pairs = [w.partition("=") for w in words]
    named = [bool(equals) for _, equals, _ in pairs]
    if any(named) and not all(named):
        raise InvalidArgument(f"'{text[:40]}' mixes numbers by position with NAME=VALUE; use only one of these forms")
    try:
        values = [float(value if equals else name) for name, equals, value in pairs]
    except ValueError:
        raise InvalidArgument(
            f"'{text[:40]}' is not a valid command; write numbers by position, or NAME=VALUE"
        ) from None
    return order_command(actuators, dict(zip((p[0] for p in pairs), values, strict=True)) if any(named) else values)
