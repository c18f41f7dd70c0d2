"""Equipment of a body: its actuators and instruments by name, with units and limits, as plain data for the page.

The hub sends this description once for each selected body. Each panel message then contains the values in the same
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from wavesim_sdk.actuators import ACTUATOR_FAULTS, FIRST_SLOT, Actuator, ActuatorKind
from wavesim_sdk.sensors import all_sensor_tables, value_fields
from wavesim_sdk.tables import Field
from wavesim_viz.beams import beams
from wavesim_viz.page_content import ActuatorInfo, ActuatorKindName, BodyEquipment, FieldInfo, InstrumentInfo
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, Model, library
from wavesim_world.config.sensors import InstrumentConfig, LeakConfig, SensorConfig
from wavesim_world.sensor_faults import fault_names_of


@dataclass(frozen=True)
class InstrumentDescription:
    """Instrument as described by shared memory, a log or the server. ``sensor`` is its declaration, if it is known."""

    name: str
    type: str
    period_s: float | None
    sensor: SensorConfig | None = None
    #: fields of the instrument, given only if its sensor type is not installed on this machine
    fields: tuple[Field, ...] = ()


def model_of(loaded: LoadedConfig | None, name: str) -> Model | None:
    """Find a model by name. Return None if neither the configuration nor the library contains it."""
    return (loaded.models.get(name) if loaded is not None else None) or library().get(name)


def described_instruments(suite: Sequence[InstrumentConfig]) -> tuple[InstrumentDescription, ...]:
    """Return the instruments that a configuration declares."""
    return tuple(InstrumentDescription(i.name, i.type, 1.0 / i.parameters.rate, i.parameters) for i in suite)


def body_equipment(
    row: int,
    generation: int,
    model: Model | None,
    instruments: Sequence[InstrumentDescription],
    loaded: LoadedConfig | None = None,
) -> BodyEquipment:
    """Describe all equipment of one body."""
    actuators = actuators_of(model) if model is not None else ()
    return {
        "row": row,
        "generation": generation,
        "actuators": [actuator(a, model) for a in actuators],
        "sensors": [instrument(i, actuators, loaded) for i in instruments],
    }


def actuator(a: Actuator, model: Model | None) -> ActuatorInfo:
    """Describe one actuator. Its limits are in the unit of its values."""
    part = a.slot - FIRST_SLOT[a.kind]
    low, high = a.minimum, a.maximum
    if model is not None and a.kind is ActuatorKind.THRUSTER and a.unit != a.actual_unit:
        offset, slope = model.thruster[part].motor
        low, high = (math.copysign(offset, c) * (c != 0.0) + slope * c for c in (low, high))
    return {
        "name": a.name,
        "kind": cast("ActuatorKindName", a.kind.name.lower()),
        "unit": a.actual_unit,
        "minimum": low,
        "maximum": high,
        "rest": a.rest_value,
        "part": part,
        "faults": list(ACTUATOR_FAULTS),
    }


def instrument(
    description: InstrumentDescription, actuators: Sequence[Actuator] = (), loaded: LoadedConfig | None = None
) -> InstrumentInfo:
    """Describe one instrument: quantities, period, mount and beams."""
    table = all_sensor_tables().get(description.type)
    labels = _labels(description, actuators, loaded)
    sensor = description.sensor
    return {
        "name": description.name,
        "type": description.type,
        "doc": table.doc if table is not None else "",
        "period": description.period_s,
        "fields": [_field(f, *labels) for f in (value_fields(table) if table is not None else description.fields)],
        "position": list(sensor.position) if sensor is not None else None,
        "beams": beams(sensor) if sensor is not None else None,
        "faults": fault_names_of(description.type),
    }


def _field(f: Field, labels: list[str] | None, units: list[str] | None) -> FieldInfo:
    count = math.prod(f.shape)
    if labels is not None:
        count = min(count, len(labels))
    return {"name": f.name, "unit": f.unit, "count": count, "doc": f.doc, "labels": labels, "units": units}


def _labels(
    description: InstrumentDescription, actuators: Sequence[Actuator], loaded: LoadedConfig | None
) -> tuple[list[str] | None, list[str] | None]:
    """Return the names of a field's values (for example, names of actuators), and the unit of each if units differ."""
    named: dict[str, Callable[[], tuple[list[str] | None, list[str] | None]]] = {
        "encoder": lambda: ([a.name for a in actuators], [a.actual_unit for a in actuators]),
        "rpm": lambda: ([a.name for a in actuators if a.kind is ActuatorKind.THRUSTER], None),
        "leak": lambda: (list(description.sensor.names) if isinstance(description.sensor, LeakConfig) else None, None),
        "scalar": lambda: ([s.name for s in loaded.config.world.scalar] if loaded is not None else None, None),
    }
    find = named.get(description.type)
    if find is None or (description.type in ("encoder", "rpm") and not actuators):
        return None, None
    return find()
