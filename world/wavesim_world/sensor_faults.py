"""Parser of instrument faults. A fault affects the whole value of an instrument, or one field of the value.

The package of the configuration imports this module to check faults. This module therefore must not import that
package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from wavesim_sdk import units
from wavesim_sdk.names import suggest_name
from wavesim_sdk.sensors import find_columns, value_count, value_fields
from wavesim_sdk.tables import SensorFault, Table

FAULT_NAMES: dict[str, SensorFault] = {f.name.lower(): f for f in SensorFault}
_ONLY = {SensorFault.WET: "leak", SensorFault.UNLOCKED: "dvl"}  #: faults that only one sensor type can have


class Instrument(Protocol):
    """Instrument of a body, as the configuration describes it (:class:`wavesim_world.config.sensors.InstrumentConfig`)."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def table(self) -> Table: ...
    @property
    def parameters(self) -> Any: ...


def fault_names_of(type_: str) -> list[str]:
    """Return the names of the faults that a sensor type can have."""
    return [name for name, kind in FAULT_NAMES.items() if _ONLY.get(kind, type_) == type_]


@dataclass(frozen=True)
class InstrumentFault:
    """Fault as stored in the `instruments` table: its kind, the affected numbers of the instrument's value, and its
    magnitude in the unit of these numbers.
    """

    kind: SensorFault
    first: int
    count: int
    amount: float


def parse_fault(instrument: Instrument, kind: str, amount: float | str = 0.0, field: str = "") -> InstrumentFault:
    """Parse a fault of an instrument.

    ``amount`` is the magnitude: a number in the unit of the field, or a string with a unit (`5 deg`). For the fault
    `wet`, it is the compartment. ``field`` is the name of a field of the value, the name of a single number in a field
    (`rates.2`), or empty for the whole value. Raises ValueError with the reason.
    """
    if kind not in FAULT_NAMES:
        raise ValueError(f"unknown sensor fault '{kind}'{suggest_name(kind, FAULT_NAMES)}")
    found = FAULT_NAMES[kind]
    if instrument.type != _ONLY.get(found, instrument.type):
        raise ValueError(
            f"fault '{kind}' applies only to the sensor type '{_ONLY[found]}'; '{instrument.name}' has another type"
        )
    if found in _ONLY and field:
        raise ValueError(f"fault '{kind}' affects the whole instrument; remove the field")
    first, count, unit = find_columns(instrument.table, field) if field else (0, value_count(instrument.table), "")
    value = 0.0
    if found is SensorFault.BIAS:
        value = _quantity(kind, amount, unit if field else _one_unit(instrument))
    elif found is SensorFault.WET:
        value = _compartment(instrument, str(amount))
    elif found in (SensorFault.SPIKES, SensorFault.NOISY):
        value = _quantity(kind, amount, "")
        if value < 0.0 or (found is SensorFault.SPIKES and value > 1.0):
            what = (
                "spike probability must be between 0 and 1"
                if found is SensorFault.SPIKES
                else "noise factor must be at least 0"
            )
            raise ValueError(f"the {what}, got {value:g}")
    return InstrumentFault(found, first, count, value)


def _one_unit(instrument: Instrument) -> str:
    """Return the common unit of all fields of a value. Raises ValueError if the fields have different units, because a
    fault must then specify a field.
    """
    fields = value_fields(instrument.table)
    if len({f.unit for f in fields}) > 1:
        names = ", ".join(f.name for f in fields)
        raise ValueError(f"the fields of '{instrument.name}' have different units; name one of them: {names}")
    return fields[0].unit


def _quantity(kind: str, amount: float | str, unit: str) -> float:
    """Return a number unchanged, or convert a string that contains a unit to a number in ``unit``."""
    if isinstance(amount, str):
        quantity = next((q for q, known in units.QUANTITIES.items() if known.get(unit) == 1.0), "")
        try:
            # a unit without a configuration quantity (V, 1/min) must be written as in the table
            plain = "" if quantity else unit
            if plain and not amount.rstrip().endswith(plain):
                raise ValueError(f"'{amount}' has no unit; use {unit}")
            return units.parse(amount.rstrip().removesuffix(plain), quantity)[0]
        except ValueError as error:
            raise ValueError(f"invalid magnitude of the fault '{kind}': {error}") from None
    if not math.isfinite(amount):
        raise ValueError(f"the magnitude of the fault '{kind}' is not finite")
    return float(amount)


def _compartment(instrument: Instrument, name: str) -> float:
    """Return the bit mask for a compartment that a leak detector monitors."""
    names = instrument.parameters.names
    if name not in names:
        raise ValueError(f"unknown compartment '{name}'; use one of {', '.join(names)}")
    return float(1 << names.index(name))
