"""Layouts of ROS topics. A layout defines the names of topics and frames; it is a preset (a file in `layouts`) or the
user's own file.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from wavesim_bridges.ros2.axes import AXES, ENU, Axes
from wavesim_bridges.ros2.message_types import ACTUATOR, ACTUATOR_FIELDS
from wavesim_bridges.ros2.mounted_instrument import FrameNames
from wavesim_bridges.ros2.named_actuators import NamedCommands
from wavesim_bridges.ros2.node import legal
from wavesim_bridges.ros2.sensors import NUMBERS, OUTPUTS, SensorOutput
from wavesim_sdk.actuators import ActuatorKind
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import ActuatorDescription

OTHER, ALL, NAMED = "other", "all", "named"
FLOAT, STAMPED = "std_msgs/msg/Float64", "uuv_gazebo_ros_plugins_msgs/msg/FloatStamped"
_KINDS = {k.name.lower(): int(k) for k in ActuatorKind}
_PLAIN = {"title": "", "namespace": "/{vehicle}", "odometry": "", "joints": "", "state": "", "axes": ENU.name}
_TABLES: dict[str, set[str]] = {
    "names": set(),
    "frames": {"map", "world", "base", "link"},
    "sensors": {*OUTPUTS, OTHER},
    "commands": {*_KINDS, ALL, NAMED, "wrench", "twist"},
    "acoustics": {"heard", "send", "range_bearing"},
}
_COMMAND = {"topic", "type", "sign", "unit", "rotor_constant"}
_NAMED = {"topic", "type", "fields", "rotor_constant"}


@dataclass(frozen=True)
class CommandTopic:
    """Command topic of one actuator."""

    topic: str
    type: str
    actuator: ActuatorDescription
    sign: float = 1.0
    #: thrust divided by the square of the shaft speed, N/(rad/s)2, if the topic carries a shaft speed
    rotor_constant: float = 0.0
    shaft: bool = False  #: whether the topic carries a shaft speed in rad/s

    def value(self, number: float) -> float:
        """Convert a number to the actuator's unit, and limit it to the actuator's range."""
        a, u = self.actuator, self.sign * number
        if self.shaft and a.unit == "N":
            u *= self.rotor_constant * abs(u)
        elif self.shaft:
            u /= 2.0 * math.pi
        return min(max(u, a.minimum), a.maximum)


class TopicLayout:
    """Layout for one vehicle."""

    def __init__(self, text: str, file: str, vehicle: str) -> None:
        self.file, self.vehicle = file, vehicle
        try:
            self._read: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise WaveSimError(f"{file}: {error}") from None
        self._check()
        self._names: dict[str, str] = self._read.get("names", {})
        self._namespace = self._filled(self._plain("namespace"))

    @classmethod
    def find(cls, name: str, vehicle: str) -> TopicLayout:
        """Load a preset by name, or a layout file."""
        if name in presets():
            return cls((files(__package__) / "layouts" / f"{name}.toml").read_text(), f"{name}.toml", vehicle)
        path = Path(name)
        if path.suffix != ".toml":
            known = presets()
            raise WaveSimError(
                f"unknown layout '{name}'{suggest_name(name, known)}; use {', '.join(known)}, or a FILE.toml"
            )
        try:
            return cls(path.read_text(), name, vehicle)
        except (OSError, UnicodeDecodeError) as error:
            raise WaveSimError(f"cannot read the layout {name}: {error}") from None

    def topic(self, name: str) -> str:
        """Return the vehicle's topic that a layout defines under a key such as `start`."""
        return self._place(name)

    @property
    def odometry(self) -> str:
        """Topic for the true motion. If the name is empty, the true motion is not published."""
        return self._place(self._plain("odometry"))

    @property
    def joints(self) -> str:
        """Topic for the true values of the actuators."""
        return self._place(self._plain("joints"))

    @property
    def state(self) -> str:
        """Topic for the true state and the actuators in one array, as in Panisim."""
        return self._place(self._plain("state"))

    @property
    def axes(self) -> Axes:
        """Axes of the world and of the body in messages."""
        return AXES[self._plain("axes")]

    @property
    def actuator_fields(self) -> str:
        """Fields of the `interfaces/msg/Actuator` message in their order."""
        return str(self._table("commands").get(NAMED, {}).get("fields", ACTUATOR_FIELDS[0]))

    def acoustics(self, what: str) -> str:
        """Return the acoustic topic `heard`, `send` or `range_bearing`."""
        return self._place(self._table("acoustics").get(what, ""))

    @property
    def map(self) -> str:
        """Name of the parent frame of the world frame. If the name is empty, there is no parent frame."""
        return self._filled(self._table("frames").get("map", ""))

    def frames(self, sensor: str = "") -> FrameNames:
        """Return the frames of the vehicle and of a sensor."""
        f = {key: self._filled(text, sensor=sensor) for key, text in self._table("frames").items()}
        link = f.get("link", f"{self.vehicle}/{sensor}_link")
        stem = link.removesuffix("_link")
        base = f.get("base", f"{self.vehicle}/base_link")
        return FrameNames(f.get("world", "odom"), base, link, f"{stem}_frd", f"{stem}_beam")

    def outputs(self, type_: str, sensor: str) -> list[tuple[str, str, SensorOutput]]:
        """Return the topics of a sensor with the given type, as (name, topic, output) tuples."""
        table = self._table("sensors")
        if type_ in OUTPUTS:
            return [(o, self._place(t, sensor=sensor), OUTPUTS[type_][o]) for o, t in table.get(type_, {}).items()]
        return [(o, self._place(t, sensor=sensor), NUMBERS) for o, t in table.get(OTHER, {}).items()]

    def commands(self, actuators: Sequence[ActuatorDescription]) -> list[CommandTopic]:
        """Return the command topics of the actuators."""
        found, table, count = [], self._table("commands"), dict.fromkeys(_KINDS.values(), 0)
        words = {number: word for word, number in _KINDS.items()}
        for a in actuators:
            given: dict[str, Any] = table.get(words.get(a.kind, ""), {})
            if given:
                topic = self._place(given["topic"], actuator=a.name, number=str(count[a.kind]))
                shaft, constant = given.get("unit") == "rad/s", float(given.get("rotor_constant", 0.0))
                if given.get("unit") == "N" and a.unit != "N":
                    self._refuse(
                        f"'{a.name}' is commanded in {a.unit or 'fractions of its range'}, but this layout's thrusters expect N"
                    )
                if shaft and a.unit == "N" and constant <= 0.0:
                    self._refuse(
                        f"'{a.name}' is commanded in N, but this layout uses rad/s: add a rotor_constant above 0"
                    )
                found.append(
                    CommandTopic(topic, given.get("type", FLOAT), a, float(given.get("sign", 1)), constant, shaft)
                )
            count[a.kind] = count.get(a.kind, 0) + 1
        return found

    def named_commands(self, actuators: Sequence[ActuatorDescription]) -> NamedCommands | None:
        """Return the converter for commands that name their actuators, or None if the layout has no such topic."""
        given = self._table("commands").get(NAMED)
        if given is None:
            return None
        return NamedCommands(actuators, float(given.get("rotor_constant", 0.0)), self.file)

    def command(self, what: str) -> str:
        """Return the command topic for ``what``: `all` (an array for all actuators), `named` (commands that name
        their actuators), or `wrench` or `twist` (for the body). Return an empty string if the layout has no such topic.
        """
        return self._place(self._table("commands").get(what, {}).get("topic", ""))

    # -- the file

    def _plain(self, key: str) -> str:
        return str(self._read.get(key, _PLAIN[key]))

    def _table(self, name: str) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self._read.get(name, {})
        return table

    def _filled(self, text: str, **of: str) -> str:
        words = {"vehicle": self.vehicle, "sensor": "", "actuator": "", "number": ""} | of
        named = {key: word if key == "number" else legal(self._names.get(word, word)) for key, word in words.items()}
        return text.format_map(named)

    def _place(self, text: str, **of: str) -> str:
        if not text:
            return ""
        filled = self._filled(text, **of)
        return filled if filled.startswith("/") else f"{self._namespace}/{filled}"

    def _refuse(self, text: str) -> None:
        raise WaveSimError(f"{self.file}: {text}")

    def _check(self) -> None:
        """Raise WaveSimError for an invalid entry."""
        for key, value in self._read.items():
            if key in _PLAIN:
                self._text(key, value)
                if key == "axes" and value not in AXES:
                    self._refuse(f"axes must be one of: {', '.join(AXES)}")
            elif key not in _TABLES:
                self._refuse(f"unknown key '{key}'{suggest_name(key, [*_PLAIN, *_TABLES])}")
            elif not isinstance(value, dict):
                self._refuse(f"'{key}' must be a table: [{key}]")
            else:
                self._check_table(key, value)

    def _check_table(self, table: str, entries: Mapping[str, Any]) -> None:
        for key, value in entries.items():
            if table == "names":
                self._text(key, value)
                continue
            if key not in _TABLES[table]:
                self._refuse(f"[{table}] has no key '{key}'{suggest_name(key, sorted(_TABLES[table]))}")
            if table in ("frames", "acoustics"):
                self._text(key, value)
                continue
            if not isinstance(value, dict):
                self._refuse(f"[{table}] '{key}' must be an inline table {{ ... }}")
            known = (
                (_NAMED if key == NAMED else _COMMAND)
                if table == "commands"
                else set(OUTPUTS.get(key, {"numbers": NUMBERS}))
            )
            for name, given in value.items():
                if name not in known:
                    self._refuse(f"[{table}] {key}: unknown name '{name}'{suggest_name(name, sorted(known))}")
                if table == "sensors" or name == "topic":
                    self._text(name, given)
            if table == "commands":
                self._check_command(key, value)

    def _check_command(self, key: str, given: Mapping[str, Any]) -> None:
        if "topic" not in given:
            self._refuse(f"[commands] {key}: topic missing")
        if key == NAMED:
            if given.get("type", ACTUATOR) != ACTUATOR:
                self._refuse(f"[commands] {key}: type must be {ACTUATOR}")
            if given.get("fields", ACTUATOR_FIELDS[0]) not in ACTUATOR_FIELDS:
                self._refuse(f"[commands] {key}: fields must be one of: {', '.join(ACTUATOR_FIELDS)}")
        elif given.get("type", FLOAT) not in (FLOAT, STAMPED):
            self._refuse(f"[commands] {key}: type must be {FLOAT} or {STAMPED}")
        if given.get("unit", "N") not in ("N", "rad/s"):
            self._refuse(f"[commands] {key}: unit must be N or rad/s; omit it for the actuator's own unit")
        if given.get("sign", 1) not in (1, -1):
            self._refuse(f"[commands] {key}: sign must be 1 or -1")
        if not isinstance(given.get("rotor_constant", 0.0), int | float):
            self._refuse(f"[commands] {key}: rotor_constant must be a number, in N/(rad/s)2")

    def _text(self, key: str, value: Any) -> None:
        if not isinstance(value, str):
            self._refuse(f"'{key}' must be a string in quotes")
        for part in re.findall(r"{([^}]*)}?", value):
            if part not in ("vehicle", "sensor", "actuator", "number"):
                self._refuse(
                    f"'{value}': allowed placeholders are {{vehicle}}, {{sensor}}, {{actuator}} and {{number}}"
                )


def presets() -> list[str]:
    """List the layouts that are included in the bridge."""
    return sorted(
        f.name.removesuffix(".toml") for f in (files(__package__) / "layouts").iterdir() if f.name.endswith(".toml")
    )
