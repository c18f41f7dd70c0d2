"""States for programs, with sensors and actuators accessible by name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex, overload

from wavesim_sdk.errors import UnknownName
from wavesim_sdk.wire.items import ActuatorDescription, SensorDescription
from wavesim_sdk.wire.messages import EFFORT, Reading, StateContents

MAX_PARTS = 4096
_NAN = math.nan


def missing_name_text(what: str, name: str, there: Iterable[str]) -> str:
    """Return the error message for a name that does not exist. It begins with ``what``, suggests the nearest name, and
    lists the available names.
    """
    names = list(there)
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return f"{what} '{name}'{hint} (available: {', '.join(names) or 'none'})"


class Value:
    """Latest value from one sensor.

    The fields are attributes. A field is a number, or a tuple if it has several numbers; NaN means no value.
    ``numbers`` contains all numbers in order, and ``time_ns`` is the simulation time of the value.
    """

    __slots__ = ("_layout", "numbers", "time_ns")

    def __init__(self, layout: Layout, time_ns: int, numbers: tuple[float, ...]) -> None:
        self._layout, self.time_ns, self.numbers = layout, time_ns, numbers

    def __getitem__(self, name: str) -> Any:
        try:
            return self.numbers[self._layout.places[name]]
        except KeyError:
            raise UnknownName(self._missing_text(name)) from None

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(name)
        try:
            return self.numbers[self._layout.places[name]]
        except KeyError:
            raise UnknownName(self._missing_text(name)) from None

    def _missing_text(self, name: str) -> str:
        return missing_name_text(f"'{self._layout.name}' has no field", name, self._layout.places)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *self._layout.places]

    def __repr__(self) -> str:
        return f"Value({', '.join(f'{n}={self[n]!r}' for n in self._layout.places)}, time_ns={self.time_ns})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and (self.time_ns, repr(self.numbers)) == (other.time_ns, repr(other.numbers))

    __hash__ = None  # type: ignore[assignment]  # compared by value; here NaN equals NaN


class Layout:
    """Where each field of a sensor is among the sensor's numbers: an index, or a slice if the field has several
    numbers.
    """

    def __init__(self, description: SensorDescription) -> None:
        self.description, self.name = description, description.name
        self.places: dict[str, int | slice] = {}
        self.count = 0
        for f in description.fields:
            self.places[f.name] = self.count if f.count == 1 else slice(self.count, self.count + f.count)
            self.count += f.count


class Sensors(Mapping[str, Value]):
    """The sensors that have a valid value, by name: ``sensors.ctd.temperature``, ``sensors["dvl-down"].bottom``."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Value] | None = None) -> None:
        self._values = values or {}

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            raise UnknownName(self._missing_text(name)) from None

    def __getattr__(self, name: str) -> Value:
        if name[0] == "_":
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise UnknownName(self._missing_text(name)) from None

    def _missing_text(self, name: str) -> str:
        return missing_name_text("no valid value for sensor", name, self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def keys(self) -> KeysView[str]:
        """Return the names of the sensors."""
        return self._values.keys()

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *filter(str.isidentifier, self)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Sensors({self._values!r})"


class Actuation(tuple[float, ...]):
    """The actual values of the actuators, in order and by name: ``actuation["propeller"]``."""

    names: Mapping[str, int] = {}

    @classmethod
    def from_values(cls, values: Sequence[float], names: Mapping[str, int]) -> Actuation:
        """Create an Actuation from the values and a mapping from actuator names to indices."""
        made = cls(values)
        made.names = names
        return made

    @overload
    def __getitem__(self, at: SupportsIndex | str) -> float: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[float, ...]: ...
    def __getitem__(self, at: SupportsIndex | str | slice) -> float | tuple[float, ...]:
        if not isinstance(at, str):
            return super().__getitem__(at)
        if at not in self.names:
            raise UnknownName(missing_name_text("the body has no actuator", at, self.names))
        return super().__getitem__(self.names[at])


@dataclass(frozen=True)
class Effort:
    """Accelerations (m/s2, rad/s2), and the forces (N) and moments (N m) that cause them; six numbers each, in B."""

    acceleration: Sequence[float]
    total: Sequence[float]
    restoring: Sequence[float]
    drag: Sequence[float]
    actuators: Sequence[float]
    environment: Sequence[float]
    external: Sequence[float]
    contact: Sequence[float]

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Effort:
        """Create an Effort from the numbers in a datagram."""
        return cls(*(tuple(numbers[6 * k : 6 * k + 6]) for k in range(len(EFFORT))))


@dataclass(slots=True)
class State:
    """State of the client's own body.

    ``motion`` is None if the configuration does not send the true state; ``effort`` is None unless it was requested.
    ``step`` is True if the server is waiting for :meth:`ClientSession.done`. The class is not frozen, because that
    would triple the cost of each state.
    """

    tick: int = 0
    time_ns: int = 0
    run_state: int = 0
    motion: Sequence[float] | None = None
    actuation: Actuation = Actuation()
    sensors: Sensors = field(default_factory=Sensors)
    effort: Effort | None = None
    step: bool = False


class Body:
    """The client's own body, as described by the server. It creates states in which values have names."""

    def __init__(self) -> None:
        self.actuators: dict[int, ActuatorDescription] = {}
        self.ordered_actuators: tuple[ActuatorDescription, ...] = ()  #: actuators in the order of their numbers
        self.layouts: dict[int, Layout] = {}
        self.positions: dict[str, int] = {}  #: index of each actuator by name

    def add_actuator(self, description: ActuatorDescription) -> None:
        """Add the actuator described by an ACTUATOR event."""
        self.actuators[description.number] = description
        self.positions[description.name] = description.number
        self.ordered_actuators = tuple(self.actuators[k] for k in sorted(self.actuators))

    def add_sensor(self, description: SensorDescription) -> None:
        """Add the sensor described by a SENSOR event."""
        self.layouts[description.number] = Layout(description)

    def build_state(self, message: StateContents, parts: Sequence[Sequence[Reading]], step: bool = False) -> State:
        """Create a state with named values from a message and its parts."""
        values: dict[str, Value] = {}
        pieces: list[Reading] = []
        for r in message.sensors:
            layout = self.layouts.get(r.number)
            if layout is not None and len(r.values) == layout.count and r.first == 0:
                values[layout.name] = Value(layout, r.time_ns, _with_nan(r.values))
            else:
                pieces.append(r)
        if pieces or parts:
            values = self._assemble((message.sensors, *parts))
        return State(
            message.tick,
            message.time_ns,
            message.run_state,
            message.motion,
            Actuation.from_values(message.actuation, self.positions),
            Sensors(values),
            None if message.effort is None else Effort.from_numbers(message.effort),
            step,
        )

    def _assemble(self, parts: Iterable[Sequence[Reading]]) -> dict[str, Value]:
        """Return the values from sensors, ordered by the number of the sensor. The values from a sensor may arrive in
        pieces.
        """
        numbers: dict[int, tuple[int, list[float]]] = {}
        for readings in parts:
            for r in readings:
                layout = self.layouts.get(r.number)
                if layout is None or r.first + len(r.values) > layout.count:
                    continue  # unknown sensor or too many values
                kept = numbers.get(r.number)
                if kept is None or kept[0] != r.time_ns:
                    kept = numbers[r.number] = (r.time_ns, [_NAN] * layout.count)
                kept[1][r.first : r.first + len(r.values)] = _with_nan(r.values)
        return {
            self.layouts[k].name: Value(self.layouts[k], time_ns, tuple(values))
            for k, (time_ns, values) in sorted(numbers.items())
        }


def _with_nan(values: Sequence[float | None]) -> tuple[float, ...]:
    """Return the values with None replaced by NaN."""
    return tuple([_NAN if v is None else v for v in values])


class Parts:
    """SENSORS datagrams for states that are not yet complete, by tick."""

    KEPT_TICKS = 2  #: maximum number of ticks for which parts are kept

    def __init__(self) -> None:
        self._by_tick: dict[int, dict[int, Sequence[Reading]]] = {}

    def add(self, tick: int, part: int, readings: Sequence[Reading]) -> None:
        """Add a part of a state; parts of old ticks are discarded."""
        if tick not in self._by_tick:
            if len(self._by_tick) >= self.KEPT_TICKS and tick < min(self._by_tick):
                return
            self._by_tick[tick] = {}
            if len(self._by_tick) > self.KEPT_TICKS:
                del self._by_tick[min(self._by_tick)]
        if part < MAX_PARTS:
            self._by_tick[tick][part] = readings

    def readings(self, tick: int) -> list[Sequence[Reading]]:
        """Return the parts of a state at a tick, in order."""
        parts = self._by_tick.get(tick, {})
        return [parts[k] for k in sorted(parts)]

    def is_complete(self, message: StateContents) -> bool:
        """Return whether all parts of a state have arrived."""
        if not message.parts:
            return True
        parts = self._by_tick.get(message.tick)
        return parts is not None and len(parts) >= message.parts

    def discard_until(self, tick: int) -> None:
        """Discard the parts for all ticks up to this one, after the state at this tick has been returned."""
        for old in [t for t in self._by_tick if t <= tick]:
            del self._by_tick[old]
