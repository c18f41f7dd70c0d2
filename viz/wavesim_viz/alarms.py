"""Alarms for the operator: abnormal conditions of bodies, with start, end and acknowledgement.

An alarm stays in the list while its condition holds, and afterwards until a user acknowledges it. An instantaneous
event (for example a crossed fence) is listed until it is acknowledged. A file can change the thresholds
(``docs/viewer.md``).
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import ConfigError
from wavesim_viz.frame import HELD, INVALID, ViewerFrame
from wavesim_viz.page_content import Alarm, Notice

CONDITIONS = {
    HELD: "frozen by the server: its state diverged (NaN or infinity)",
    INVALID: "invalid state: a value is not finite, or is beyond the permitted range",
}
MOST = 300  #: maximum number of alarms kept; the oldest finished ones are removed first


@dataclass(frozen=True)
class AlarmRules:
    """Thresholds of the alarm rules; 0 disables a rule."""

    silent: float = 3.0  #: maximum wall time in s without a datagram from the pilot of a body
    #: maximum number of periods (plus half a second) without a new value from an instrument that has produced values
    stale: float = 5.0
    battery: float = 0.2  #: minimum charge of a battery, as a fraction of its capacity
    navigation: float = 10.0  #: maximum horizontal error of a navigator's estimate, m
    #: maximum horizontal error of the estimate, in units of the standard deviation that the navigator states
    sigmas: float = 5.0

    @classmethod
    def read(cls, path: Path) -> AlarmRules:
        """Read the alarm rules from a TOML file. Raise ConfigError for an invalid file."""
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"cannot read the alarm rules: {error}", str(path)) from None
        known = [f.name for f in dataclasses.fields(cls)]
        for name, value in told.items():
            if name not in known:
                raise ConfigError(f"unknown alarm rule '{name}'; known rules: {', '.join(known)}", str(path))
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ConfigError(f"invalid alarm rule {name} = {value!r}: expected a number >= 0", str(path))
        return cls(**told)


@dataclass
class BodyHealth:
    """Data of a source for its alarms, by row. The motion of the bodies is not included."""

    silent: dict[int, float] = field(default_factory=dict)  #: row -> s since the last datagram from the body's pilot
    removed: set[int] = field(default_factory=set)  #: rows of bodies whose pilot was removed by keep-alive
    stale: dict[tuple[int, str], float] = field(
        default_factory=dict
    )  #: row of the body and name of the instrument -> age of the instrument's newest value, in periods
    battery: dict[int, float] = field(default_factory=dict)  #: row -> battery charge, as a fraction of its capacity


Found = Iterable[tuple[str, int, str, str]]  #: alarms found now: kind, row, subject, text


class AlarmMonitor:
    """All alarms of a source. The hub sends the list again when it has changed."""

    def __init__(self, rules: AlarmRules | None = None) -> None:
        self.rules = rules or AlarmRules()
        self.clear()

    def clear(self) -> None:
        """Clear everything, because simulation time has restarted."""
        self.all: list[Alarm] = []  #: newest last
        self._lasting: dict[tuple[str, int, str], Alarm] = {}
        self._time, self.version = -math.inf, 1

    def evaluate(
        self, frame: ViewerFrame, names: Mapping[int, str], beliefs: Iterable[Any], vitals: BodyHealth
    ) -> None:
        """Compare the current state with the rules."""
        if frame.time_s < self._time:
            self.clear()
        self._time = frame.time_s
        found = {(kind, row, what): text for kind, row, what, text in self._found(frame, beliefs, vitals)}
        for key in [k for k in self._lasting if k not in found]:
            self._lasting.pop(key).until = frame.time_s
            self.version += 1
        for (kind, row, what), text in found.items():
            if (known := self._lasting.get((kind, row, what))) is None:
                self._lasting[kind, row, what] = self._add(kind, row, names.get(row, f"row {row}"), text, frame.time_s)
            else:
                known.text = text  # sent with the next change

    def note(self, notice: Notice) -> None:
        """Add an instantaneous event that the server has reported."""
        text = notice["text"]
        kind = next((k for k in ("fence", "contact", "frozen") if k in text), "notice")
        alarm = self._add(kind, notice["row"], notice["name"], text, notice["time"])
        alarm.until = alarm.since

    def _add(self, kind: str, row: int, name: str, text: str, time: float) -> Alarm:
        self.version += 1
        alarm = Alarm(self.version, kind, name, row, text, time)
        self.all.append(alarm)
        if len(self.all) > MOST:
            self.all.remove(next((a for a in self.all if a.until is not None), self.all[0]))
        return alarm

    def acknowledge(self, number: int | None) -> bool:
        """Acknowledge an alarm (None: all alarms). Return whether there was an alarm to acknowledge."""
        unseen = [a for a in self.all if not a.seen and number in (None, a.id)]
        for a in unseen:
            a.seen = True
        self.version += bool(unseen)
        return bool(unseen)

    # -- rules ---------------------------------------------------------------------------------

    def _found(self, frame: ViewerFrame, beliefs: Iterable[Any], vitals: BodyHealth) -> Found:
        rules, b = self.rules, frame.bodies
        for k in np.flatnonzero(b[:, 9]):
            yield "faulted", int(b[k, 0]), "", CONDITIONS[int(b[k, 9])]
        for row in vitals.removed:
            yield "silent", row, "", "keep-alive removed its pilot"
        for row, silent in vitals.silent.items():
            if 0.0 < rules.silent < silent and row not in vitals.removed:
                yield "silent", row, "", f"no datagram from its pilot for {silent:.0f} s"
        for (row, name), periods in vitals.stale.items():
            if 0.0 < rules.stale < periods:
                yield "stale", row, name, f"no new value from '{name}' for {periods:.0f} of its periods"
        for row, charge in vitals.battery.items():
            if charge < rules.battery:
                yield "battery", row, "", f"battery at {100.0 * charge:.0f} %"
        yield from self._navigation_errors(frame, beliefs)

    def _navigation_errors(self, frame: ViewerFrame, beliefs: Iterable[Any]) -> Found:
        """Compare the estimates of navigators with the true positions."""
        places = {int(r[0]): r for r in frame.bodies}
        for row, *e in beliefs:
            true = places.get(int(row))
            if true is None or None in e[:5] or not np.isfinite(true[1]):
                continue
            error, sigma = math.hypot(e[0] - true[1], e[1] - true[2]), math.hypot(e[3], e[4])
            if 0.0 < self.rules.navigation < error:
                yield "navigation", int(row), "error", f"estimated position is {error:.1f} m off"
            elif 0.0 < self.rules.sigmas * sigma < error:
                yield (
                    "navigation",
                    int(row),
                    "sigma",
                    f"position error {error:.1f} m is {error / sigma:.0f} times the stated standard deviation",
                )
