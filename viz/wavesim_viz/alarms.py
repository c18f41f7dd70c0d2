"""What an operator must see: conditions of bodies that are not as they should be, since when, until when, and who has seen them.

An alarm stands as long as its condition holds, and until somebody acknowledges it; what happens in a moment (a fence is
crossed) stands until then. The rules are a few numbers, which a file may change (``docs/viewer.md``).
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

CONDITIONS = {
    HELD: "the server holds it where it is: its state was no longer finite",
    INVALID: "its state is no state: not finite, or beyond this world",
}
MOST = 300  #: alarms kept; the oldest that are over go first


@dataclass(frozen=True)
class AlarmRules:
    """When there is an alarm; 0 = never."""

    silent: float = 3.0  #: s of wall time without a datagram of a body's pilot
    stale: float = 5.0  #: periods (and half a second) without a new value of an instrument that has given one
    battery: float = 0.2  #: share of the capacity
    navigation: float = 10.0  #: m of horizontal error of what a navigator believes
    sigmas: float = 5.0  #: the same in standard deviations that it states

    @classmethod
    def read(cls, path: Path) -> AlarmRules:
        """The rules of a TOML file; ConfigError names what is wrong."""
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"the rules of alarms cannot be read: {error}", str(path)) from None
        known = [f.name for f in dataclasses.fields(cls)]
        for name, value in told.items():
            if name not in known:
                raise ConfigError(f"there is no rule '{name}'; known are {', '.join(known)}", str(path))
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < math.inf:
                raise ConfigError(f"{name} = {value!r}: a rule is a number, 0 or more", str(path))
        return cls(**told)


@dataclass
class BodyHealth:
    """What a source knows of its bodies beside their motion, by row."""

    silent: dict[int, float] = field(default_factory=dict)  #: s since the last datagram of its pilot
    removed: set[int] = field(default_factory=set)  #: pilots that keep-alive removed
    stale: dict[tuple[int, str], float] = field(default_factory=dict)  #: instrument -> age of its value, in periods
    battery: dict[int, float] = field(default_factory=dict)  #: share of the capacity left


@dataclass
class Alarm:
    """One alarm; times in s of simulation."""

    id: int
    kind: str
    name: str
    row: int
    text: str
    since: float
    until: float | None = None  #: None = it lasts
    seen: bool = False


Found = Iterable[tuple[str, int, str, str]]  #: kind, row, what of it, text


class AlarmMonitor:
    """All of them; who asks gets them when they have changed."""

    def __init__(self, rules: AlarmRules | None = None) -> None:
        self.rules = rules or AlarmRules()
        self.clear()

    def clear(self) -> None:
        """Time began anew."""
        self.all: list[Alarm] = []
        self._lasting: dict[tuple[str, int, str], Alarm] = {}
        self._time, self.version = -math.inf, 1

    def evaluate(
        self, frame: ViewerFrame, names: Mapping[int, str], beliefs: Iterable[Any], vitals: BodyHealth
    ) -> None:
        """Compare with the rules."""
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
                known.text = text  # told with the next change

    def note(self, notice: Mapping[str, Any]) -> None:
        """Something that happened in a moment, and was told by the server."""
        text = str(notice["text"])
        kind = next((k for k in ("fence", "contact", "frozen") if k in text), "notice")
        alarm = self._add(kind, int(notice["row"]), str(notice["name"]), text, float(notice["time"]))
        alarm.until = alarm.since

    def _add(self, kind: str, row: int, name: str, text: str, time: float) -> Alarm:
        self.version += 1
        alarm = Alarm(self.version, kind, name, row, text, time)
        self.all.append(alarm)
        if len(self.all) > MOST:
            self.all.remove(next((a for a in self.all if a.until is not None), self.all[0]))
        return alarm

    def acknowledge(self, number: int | None) -> bool:
        """Somebody has seen an alarm (None: all that there are); whether there was one to see."""
        unseen = [a for a in self.all if not a.seen and number in (None, a.id)]
        for a in unseen:
            a.seen = True
        self.version += bool(unseen)
        return bool(unseen)

    def to_messages(self) -> list[dict[str, Any]]:
        """As a page is told, the newest last."""
        return [dataclasses.asdict(a) for a in self.all]

    # -- rules ---------------------------------------------------------------------------------

    def _found(self, frame: ViewerFrame, beliefs: Iterable[Any], vitals: BodyHealth) -> Found:
        rules, b = self.rules, frame.bodies
        for k in np.flatnonzero(b[:, 9]):
            yield "faulted", int(b[k, 0]), "", CONDITIONS[int(b[k, 9])]
        for row in vitals.removed:
            yield "silent", row, "", "its pilot was removed by keep-alive"
        for row, silent in vitals.silent.items():
            if 0.0 < rules.silent < silent and row not in vitals.removed:
                yield "silent", row, "", f"nothing from its pilot for {silent:.0f} s"
        for (row, name), periods in vitals.stale.items():
            if 0.0 < rules.stale < periods:
                yield "stale", row, name, f"no new value of '{name}' for {periods:.0f} of its periods"
        for row, charge in vitals.battery.items():
            if charge < rules.battery:
                yield "battery", row, "", f"{100.0 * charge:.0f} % of the battery left"
        yield from self._navigation_errors(frame, beliefs)

    def _navigation_errors(self, frame: ViewerFrame, beliefs: Iterable[Any]) -> Found:
        """Navigators that are far from the truth."""
        places = {int(r[0]): r for r in frame.bodies}
        for row, *e in beliefs:
            true = places.get(int(row))
            if true is None or None in e[:5] or not np.isfinite(true[1]):
                continue
            error, sigma = math.hypot(e[0] - true[1], e[1] - true[2]), math.hypot(e[3], e[4])
            if 0.0 < self.rules.navigation < error:
                yield "navigation", int(row), "error", f"it believes to be {error:.1f} m from where it is"
            elif 0.0 < self.rules.sigmas * sigma < error:
                yield (
                    "navigation",
                    int(row),
                    "sigma",
                    f"its error of {error:.1f} m is {error / sigma:.0f} times what it states",
                )
