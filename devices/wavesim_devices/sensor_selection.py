"""Selection of the sensors that a virtual device reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wavesim_sdk.errors import BrokerError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import SensorDescription
from wavesim_sdk.wire.state import Sensors, Value


def select_sensors(
    sensors: Sequence[SensorDescription], types: Sequence[str], named: Sequence[str] = (), needs: str = ""
) -> dict[str, str]:
    """Select a sensor for each type: the named sensor, or the only sensor of that type. Returns the name of the sensor
    for each type.

    Types for which the body has no sensor are omitted. ``needs`` is the type that the device requires. Raises
    BrokerError, listing the sensors, if a named sensor does not exist or is of another type, if the required sensor is
    missing, or if the body has several sensors of a type.
    """
    own = {s.name: s.type for s in sensors}
    for name in named:
        if name not in own:
            raise BrokerError(f"there is no sensor '{name}'{suggest_name(name, own) or '; the body has no sensors'}")
        if own[name] not in types:
            raise BrokerError(
                f"sensor '{name}' is of type '{own[name]}', which this device does not use; it uses {', '.join(types)}"
            )
    found: dict[str, str] = {}
    for type_ in types:
        there = [n for n, t in own.items() if t == type_]
        chosen = [n for n in named if own[n] == type_] or there
        if len(chosen) > 1:
            raise BrokerError(
                f"the body has several sensors of type '{type_}': {', '.join(chosen)}; select one with --sensor"
            )
        if chosen:
            found[type_] = chosen[0]
    if needs and needs not in found:
        raise BrokerError(f"the body has no sensor of type '{needs}'; it has {', '.join(own) or 'none'}")
    return found


class NewValueFilter:
    """Filter that passes each sensor value once. ``picked`` maps each sensor type to the name of the sensor."""

    def __init__(self, picked: Mapping[str, str]) -> None:
        self._picked = picked
        self._last_time_ns: dict[str, int] = {}

    def new_values(self, sensors: Sensors) -> Iterator[tuple[str, Value]]:
        """Yield (sensor type, value) for each new sensor value."""
        for type_, name in self._picked.items():
            value = sensors.get(name)
            if value is not None and self._last_time_ns.get(name) != value.time_ns:
                self._last_time_ns[name] = value.time_ns
                yield type_, value
