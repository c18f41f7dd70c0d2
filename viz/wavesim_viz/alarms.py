"""Alarms for the operator: abnormal conditions of bodies, managed as ISA 18.2 (IEC 62682) requires.

Each alarm has a severity. A condition must last for some time before it becomes an alarm (delay), and a value must
return well within its limit before the alarm ends (dead band). All occurrences of the same kind on one body form one
alarm with a count (grouping). A user can acknowledge an alarm, or shelve it for some time. A file can change the
thresholds (``docs/viewer.md``).
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
from wavesim_sdk.fences import crossing_side
from wavesim_sdk.mission_status import is_routine
from wavesim_viz.frame import HELD, INVALID, ViewerFrame
from wavesim_viz.page_content import Alarm, Notice, Severity

CONDITIONS = {
    HELD: "frozen by the server: its state diverged (NaN or infinity)",
    INVALID: "invalid state: a value is not finite, or is beyond the permitted range",
}
#: severity of each kind of alarm; all other kinds have a low severity
SEVERITIES: dict[str, Severity] = {
    "faulted": "high",
    "frozen": "high",
    "silent": "high",
    "fence": "high",
    "contact": "high",
    "battery": "medium",
    "navigation": "medium",
    "stale": "medium",
}
#: kinds whose condition must last for the time in the ``delay`` rule before it is an alarm
DELAYED = ("navigation", "stale")
MOST = 300  #: maximum number of alarms kept; the oldest finished ones are removed first
MOST_PAST = 100  #: maximum number of earlier occurrences of an alarm that are kept, for time changes
MOST_SUBJECTS = 3  #: maximum number of conditions that the text of one alarm lists


@dataclass(frozen=True)
class AlarmRules:
    """Thresholds of the alarm rules; 0 disables a rule."""

    silent: float = 3.0  #: maximum wall time in s without a datagram from the pilot of a body
    #: maximum number of periods (plus half a second) since the newest value from an instrument; instruments that have
    #: not produced a value are not checked
    stale: float = 5.0
    battery: float = 0.2  #: minimum charge of a battery, as a fraction of its capacity
    navigation: float = 10.0  #: maximum horizontal error of a navigator's estimate in m
    #: maximum horizontal error of the estimate, in units of the standard deviation that the navigator reports
    sigmas: float = 5.0
    #: simulation time in s for which a condition must hold before it is an alarm, and must be over before the alarm
    #: ends
    delay: float = 10.0
    #: dead band: the alarm ends only when the value is on the safe side of its limit by this fraction of the limit
    band: float = 0.2

    @classmethod
    def read(cls, path: Path) -> AlarmRules:
        """Read the alarm rules from a TOML file. Raise ConfigError for an invalid file."""
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"cannot read the alarm rules: {error}", str(path)) from None
        known = [f.name for f in dataclasses.fields(cls)]
        for name, value in values.items():
            if name not in known:
                raise ConfigError(f"unknown alarm rule '{name}'; known rules: {', '.join(known)}", str(path))
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ConfigError(f"invalid alarm rule {name} = {value!r}: expected a number >= 0", str(path))
        return cls(**values)


@dataclass
class BodyHealth:
    """Data from which the alarms of a source are computed, by row. The motion of the bodies is not included."""

    #: time in s since the last datagram from each body's pilot, by row
    silent: dict[int, float] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)  #: rows of bodies whose pilot was removed by keep-alive
    stale: dict[tuple[int, str], float] = field(
        default_factory=dict
    )  #: age of the newest value of each instrument, in periods, by row of the body and name of the instrument
    #: battery charge of each body as a fraction of its capacity, by row
    battery: dict[int, float] = field(default_factory=dict)
    #: descriptions of the fences that each body violates, by row
    fences: dict[int, list[str]] = field(default_factory=dict)


Found = Iterable[tuple[str, int, str]]  #: conditions that hold now: kind, row and text of each


@dataclass
class _Condition:
    """Abnormal condition that holds, or that held until recently."""

    since: float
    over: float | None = None  #: time at which the condition ceased to hold
    alarm: Alarm | None = None  #: the alarm; None if the condition has not lasted long enough


class AlarmMonitor:
    """All alarms of a source. The hub sends the list of alarms again when the list has changed."""

    def __init__(self, rules: AlarmRules | None = None) -> None:
        self.rules, self.version = rules or AlarmRules(), 0
        self.clear()

    def clear(self) -> None:
        """Clear everything."""
        self.all: list[Alarm] = []  #: all alarms, with the newest last
        #: start and end of the earlier occurrences of each alarm, by its number
        self._past: dict[int, list[tuple[float, float | None]]] = {}
        self._conditions: dict[tuple[str, int], _Condition] = {}
        self._time, self._last_id = -math.inf, 0
        self.version += 1
        self._fences_changed = False
        #: alarms for fence crossings that no frame has shown yet, by the name of the body
        self._noted: dict[str, Alarm] = {}

    def discard_after(self, time_s: float) -> None:
        """Restore the alarms as they were at an earlier time to which the simulation has returned. Acknowledgements
        remain.
        """
        for key, condition in list(self._conditions.items()):
            if condition.since >= time_s:  # it occurs again if it began at this time
                del self._conditions[key]
            elif condition.over is not None and condition.over > time_s:
                condition.over = None
        for alarm in list(self.all):
            past = self._past.get(alarm.id, [])
            while alarm.since + self._delay_of(alarm.kind) >= time_s and past:
                alarm.since, alarm.until = past.pop()
                alarm.count -= 1
            if alarm.since + self._delay_of(alarm.kind) >= time_s:
                self._remove(alarm)
            elif alarm.until is not None and alarm.until > time_s:
                alarm.until = None
                self._conditions[alarm.kind, alarm.row] = _Condition(alarm.since, alarm=alarm)
        for condition in self._conditions.values():
            alarm_ = condition.alarm
            if alarm_ is not None and (alarm_.until is not None or all(a is not alarm_ for a in self.all)):
                condition.alarm = None
        self.all.sort(key=lambda a: a.since)
        self._noted = {name: alarm for name, alarm in self._noted.items() if alarm.since < time_s}
        self._time = time_s
        self.version += 1

    def _delay_of(self, kind: str) -> float:
        """Return the time in s for which a condition of this kind must hold before it is an alarm."""
        return self.rules.delay if kind in DELAYED else 0.0

    def _remove(self, alarm: Alarm) -> None:
        self.all.remove(alarm)
        self._past.pop(alarm.id, None)

    def evaluate(
        self, frame: ViewerFrame, names: Mapping[int, str], beliefs: Iterable[Any], vitals: BodyHealth
    ) -> None:
        """Compare the current state with the rules."""
        now = frame.time_s
        if now < self._time:
            self.discard_after(now)  # the frame precedes the report of the time change
        self._time = now
        found: dict[tuple[str, int], list[str]] = {}
        for kind, row, text in self._found(frame, beliefs, vitals):
            found.setdefault((kind, row), []).append(text)
        for key in self._conditions.keys() - found.keys():
            self._end(key, now, at_once=self._fences_changed and key[0] == "fence")
        self._fences_changed = False
        for (kind, row), texts in found.items():
            more = len(texts) - MOST_SUBJECTS
            text = "; ".join(texts[:MOST_SUBJECTS]) + (f"; and {more} more" if more > 0 else "")
            condition = self._conditions.setdefault((kind, row), _Condition(now))
            condition.over = None
            if condition.alarm is not None:
                condition.alarm.text = text  # sent with the next change
            elif now - condition.since >= self._delay_of(kind):
                name = names.get(row, f"row {row}")
                noted = self._noted.pop(name, None) if kind == "fence" else None
                condition.alarm = noted or self._raise(kind, row, name, text, condition.since)
                condition.alarm.row, condition.alarm.text, condition.alarm.until = row, text, None
                self.version += 1
        self._noted = {name: alarm for name, alarm in self._noted.items() if alarm.since > now}
        self._unshelve(now)

    def _end(self, key: tuple[str, int], now: float, at_once: bool) -> None:
        """Forget a condition that no longer holds, and end its alarm. An alarm ends only after the delay, unless
        ``at_once`` is set.
        """
        condition = self._conditions[key]
        condition.over = now if condition.over is None else condition.over
        if condition.alarm is not None and now - condition.over < self.rules.delay and not at_once:
            return
        del self._conditions[key]
        if condition.alarm is not None:
            condition.alarm.until = condition.over
            self.version += 1

    def note(self, notice: Notice) -> None:
        """Add an instantaneous event that the server has reported. Events of normal operation raise no alarm."""
        text, crossing = notice["text"], crossing_side(notice["text"])
        if crossing:
            self._note_crossing(notice)
        if crossing is not None or is_routine(text):
            return
        kind = next((k for k in ("contact", "frozen") if k in text), "notice")
        alarm = self._raise(kind, notice["row"], notice["name"], text, notice["time"], same_text=True)
        alarm.until = alarm.since

    def _note_crossing(self, notice: Notice) -> None:
        """Raise the alarm of a body that has crossed a fence. The alarm stays active if :meth:`evaluate` then finds the
        body on the wrong side.
        """
        name, time = notice["name"], notice["time"]
        active = next((a for a in self.all if (a.kind, a.name, a.until) == ("fence", name, None)), None)
        if active is None or active.since < time:  # otherwise, the frame showed the crossing before the notice
            alarm = self._raise("fence", notice["row"], name, notice["text"], time)
            if active is None:
                alarm.until, self._noted[name] = alarm.since, alarm

    def note_fence_change(self) -> None:
        """End fence alarms immediately, instead of after the delay, if the bodies do not violate the changed fences."""
        self._fences_changed = True

    def _raise(self, kind: str, row: int, name: str, text: str, time: float, *, same_text: bool = False) -> Alarm:
        """Add an alarm, or count another occurrence of the alarm of this kind and body."""
        self.version += 1
        alike = (a for a in self.all if (a.kind, a.name) == (kind, name) and (a.text == text or not same_text))
        if (alarm := next(alike, None)) is None:
            self._last_id += 1
            alarm = Alarm(self._last_id, kind, SEVERITIES.get(kind, "low"), name, row, text, time)
        else:
            self.all.remove(alarm)
            past = self._past.setdefault(alarm.id, [])
            past.append((alarm.since, alarm.until))
            del past[:-MOST_PAST]
            alarm.text, alarm.since, alarm.until, alarm.count = text, time, None, alarm.count + 1
            alarm.seen = alarm.shelved is not None
        self.all.append(alarm)
        if len(self.all) > MOST:
            self._remove(next((a for a in self.all if a.until is not None), self.all[0]))
        return alarm

    def acknowledge(self, number: int | None) -> bool:
        """Acknowledge an alarm, or all alarms if the argument is None. Return whether there was an alarm to
        acknowledge.
        """
        unseen = [a for a in self.all if not a.seen and number in (None, a.id)]
        for a in unseen:
            a.seen = True
        self.version += bool(unseen)
        return bool(unseen)

    def shelve(self, number: int, seconds: float) -> bool:
        """Suppress an alarm for some simulation time (in s); 0 returns it to service. Return whether there is such an
        alarm.
        """
        alarm = next((a for a in self.all if a.id == number), None)
        if alarm is None:
            return False
        alarm.shelved = self._time + seconds
        self.version += 1
        if seconds > 0:
            alarm.seen = True
        else:
            self._unshelve(self._time)
        return True

    def _unshelve(self, now: float) -> None:
        """Return shelved alarms to service when their time is over. An active alarm must then be acknowledged again."""
        for a in self.all:
            if a.shelved is not None and a.shelved <= now:
                a.shelved, a.seen = None, a.until is not None
                self.version += 1

    # -- rules ---------------------------------------------------------------------------------

    def _limit(self, kind: str, row: int, limit: float, side: float = -1.0) -> float:
        """Return the limit to apply: the given limit or, while its alarm is active, this limit moved by the dead band
        in the direction ``side`` (-1: down).
        """
        condition = self._conditions.get((kind, row))
        active = condition is not None and condition.alarm is not None
        return limit * (1.0 + side * self.rules.band) if active else limit

    def _found(self, frame: ViewerFrame, beliefs: Iterable[Any], vitals: BodyHealth) -> Found:
        rules, b = self.rules, frame.bodies
        for k in np.flatnonzero(b[:, 9]):
            yield "faulted", int(b[k, 0]), CONDITIONS[int(b[k, 9])]
        for row in vitals.removed:
            yield "silent", row, "the server removed the silent pilot of this body"
        for row, silent in vitals.silent.items():
            if 0.0 < rules.silent < silent and row not in vitals.removed:
                yield "silent", row, f"no datagram from its pilot for {silent:.0f} s"
        for (row, name), periods in vitals.stale.items():
            if 0.0 < rules.stale < periods:
                yield "stale", row, f"no new value from '{name}' for {periods:.0f} of its periods"
        for row, texts in vitals.fences.items():
            for text in texts:
                yield "fence", row, text
        for row, charge in vitals.battery.items():
            if charge < self._limit("battery", row, rules.battery, 1.0):
                yield "battery", row, f"battery at {100.0 * charge:.0f} %"
        yield from self._navigation_errors(frame, beliefs)

    def _navigation_errors(self, frame: ViewerFrame, beliefs: Iterable[Any]) -> Found:
        """Compare the estimates from navigators with the true positions."""
        places = {int(r[0]): r for r in frame.bodies}
        for row, *e in beliefs:
            true = places.get(int(row))
            if true is None or None in e[:5] or not np.isfinite(true[1]):
                continue
            error, sigma = math.hypot(e[0] - true[1], e[1] - true[2]), math.hypot(e[3], e[4])
            if 0.0 < self._limit("navigation", int(row), self.rules.navigation) < error:
                yield "navigation", int(row), f"estimated position is {error:.1f} m off"
            elif 0.0 < self._limit("navigation", int(row), self.rules.sigmas) * sigma < error:
                text = f"position error {error:.1f} m is {error / sigma:.0f} times the stated standard deviation"
                yield "navigation", int(row), text
