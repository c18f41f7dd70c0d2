"""Which instruments of a body a virtual device is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wavesim_sdk.errors import BrokerError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import SensorDescription
from wavesim_sdk.wire.state import Sensors, Value


def select_sensors(
    sensors: Sequence[SensorDescription], types: Sequence[str], named: Sequence[str] = (), needs: str = ""
) -> dict[str, str]:
    """Type -> name of the instrument that is taken for it: the one that is named, else the only one of that type.

    Types that the body does not have are left out; ``needs`` is the one without which there is no device.  BrokerError says
    what is missing, and what there is to choose from.
    """
    own = {s.name: s.type for s in sensors}
    for name in named:
        if name not in own:
            raise BrokerError(f"there is no sensor '{name}'{suggest_name(name, own) or '; the body has none'}")
        if own[name] not in types:
            raise BrokerError(
                f"'{name}' is of the type '{own[name]}', of which this device makes nothing; it takes {', '.join(types)}"
            )
    found: dict[str, str] = {}
    for type_ in types:
        there = [n for n, t in own.items() if t == type_]
        chosen = [n for n in named if own[n] == type_] or there
        if len(chosen) > 1:
            raise BrokerError(
                f"there are several sensors of the type '{type_}': {', '.join(chosen)}; name one with --sensor"
            )
        if chosen:
            found[type_] = chosen[0]
    if needs and needs not in found:
        raise BrokerError(f"the body has no sensor of the type '{needs}'; it has {', '.join(own) or 'none'}")
    return found


class NewValueFilter:
    """Each value of some sensors once. ``picked``: the name of the sensor of each type."""

    def __init__(self, picked: Mapping[str, str]) -> None:
        self._picked = picked
        self._last_time_ns: dict[str, int] = {}

    def new_values(self, sensors: Sensors) -> Iterator[tuple[str, Value]]:
        """Type and value of those that are new."""
        for type_, name in self._picked.items():
            value = sensors.get(name)
            if value is not None and self._last_time_ns.get(name) != value.time_ns:
                self._last_time_ns[name] = value.time_ns
                yield type_, value
