"""Conversion of quantities at the system boundary, from text with a unit to SI numbers.

Inside the project, everything is in SI units and radians. Other units appear only in a configuration file, on the
command line, or in a name that ends in the unit (``_deg``, ``_dbar``).
"""

from __future__ import annotations

import math
import re
from numbers import Real

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"

#: the units of each quantity, as {unit: factor that converts to SI}. Documents print the first unit.
QUANTITIES: dict[str, dict[str, float]] = {
    "length": {"m": 1.0, "km": 1e3, "cm": 1e-2, "mm": 1e-3},
    "area": {"m2": 1.0, "cm2": 1e-4},
    "volume": {"m3": 1.0, "l": 1e-3},
    "linear density": {"kg/m": 1.0, "g/m": 1e-3},
    "mass": {"kg": 1.0, "g": 1e-3, "t": 1e3},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0},
    "frequency": {"Hz": 1.0, "kHz": 1e3},
    "speed": {"m/s": 1.0, "kn": 1852.0 / 3600.0},
    "acceleration": {"m/s2": 1.0},
    "density": {"kg/m3": 1.0},
    "angle": {"deg": math.pi / 180.0, "rad": 1.0},
    "angular rate": {"deg/s": math.pi / 180.0, "rad/s": 1.0, "deg/min": math.pi / 10800.0},
    "force": {"N": 1.0, "kN": 1e3, "lbf": 4.4482216152605},
    "torque": {"N m": 1.0, "kN m": 1e3, "lbf ft": 1.3558179483314},
    "stiffness": {"N/m": 1.0},
    "line damping": {"N s/m": 1.0},
    "level": {"dB": 1.0},
    "attenuation": {"dB/m": 1.0, "dB/km": 1e-3},
    "temperature": {"C": 1.0},
    "temperature gradient": {"C/m": 1.0},
    "pressure": {"dbar": 1.0},
    "magnetic field": {"uT": 1e-6, "nT": 1e-9, "T": 1.0, "mG": 1e-7},
    "compressibility": {"1/dbar": 1.0, "1/Pa": 1e4},
    "pressure gradient": {"dbar/m": 1.0},
    "pressure curvature": {"dbar/m2": 1.0},
    "conductivity": {"S/m": 1.0, "mS/cm": 0.1},
    "conductivity gradient": {"S/m/m": 1.0},
    "cross-flow": {"kg/m2": 1.0},
    "cross-flow length": {"kg/m": 1.0},
    "inverse length": {"1/m": 1.0},
    "drift": {"ppm": 1e-6, "ppb": 1e-9},
    "data": {"MB": 1e6, "kB": 1e3, "GB": 1e9, "B": 1.0},
    "rotation": {"rpm": 1.0 / 60.0, "1/s": 1.0},
}


def unit_names(quantity: str) -> str:
    """Return the units of a quantity as text for a message."""
    return ", ".join(QUANTITIES[quantity])


def parse(text: str, quantity: str, count: int = 1) -> tuple[float, ...]:
    """Parse numbers followed by one unit, and return the numbers in SI units.

    ``parse("15 ms", "time")`` is ``(0.015,)``; ``parse("1 2 3 m", "length", 3)`` is ``(1, 2, 3)``. An empty
    ``quantity`` means numbers without a unit. Raises ValueError with a message that states what was found and what is
    allowed.
    """
    match = re.fullmatch(rf"\s*((?:{_NUMBER}[\s,]*)+?)\s*([A-Za-z/][A-Za-z0-9/ ]*|1/[A-Za-z]+)?\s*", text)
    if match is None:
        raise ValueError(f"'{text}' is not a number" + (" with a unit" if quantity else ""))
    numbers = [float(n) for n in re.split(r"[\s,]+", match[1].strip().strip(","))]
    unit = (match[2] or "").strip()
    if quantity and not unit:
        raise ValueError(f"'{text}' has no unit; write one of {unit_names(quantity)}")
    if quantity and unit not in QUANTITIES[quantity]:
        raise ValueError(f"'{unit}' is not a unit of {quantity}; use one of {unit_names(quantity)}")
    if not quantity and unit:
        raise ValueError(f"'{text}' has a unit, but a pure number is expected")
    if len(numbers) != count:
        raise ValueError(f"'{text}' has {len(numbers)} number(s), expected {count}")
    if not all(math.isfinite(n) for n in numbers):
        raise ValueError(f"'{text}' is not finite")
    factor = QUANTITIES[quantity][unit] if quantity else 1.0
    return tuple(n * factor for n in numbers)


def to_real(value: object) -> float:
    """Return a received value as a real number, or NaN.

    NaN replaces booleans, values that are not numbers, and integers that are too large for a float.
    """
    if type(value) is float:  # the usual case
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def format_quantity(value: float, quantity: str) -> str:
    """Return a number as text in the first unit of its quantity, for documents and messages."""
    if not quantity:
        return f"{value:g}"
    unit, factor = next(iter(QUANTITIES[quantity].items()))
    return f"{value / factor:g} {unit}"
