"""Validation of the messages and metadata in a log.

Messages and metadata are checked before use, because another program may have written them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from wavesim_sdk.frame_labels import LabelNames
from wavesim_sdk.imaging_frames import FRAME, FRAME_KINDS, ImagingFrame
from wavesim_sdk.log_tables import IMPORT_NOTES
from wavesim_sdk.tables import RECEPTION, SENT, BodyType, Outcome, RunState, SignalKind, Table

LATEST_NS = 2**61  #: latest valid time in ns, 73 years of simulation; MCAP times can be as large as 2**64 - 1
Check = Callable[[Any], bool]
_TOPIC = re.compile(r"(/[A-Za-z0-9_-]+)+")
#: minimum and maximum of each integer that readers use as a count, length or index; other integers are not limited
_COUNTS: dict[tuple[str, str], tuple[int, int]] = {
    **{(table.name, "outcome"): (0, max(Outcome)) for table in (SENT, RECEPTION)},
    **{(table.name, "kind"): (0, max(SignalKind)) for table in (SENT, RECEPTION)},
    (SENT.name, "payload_bytes"): (0, SENT.dtype["payload"].itemsize),
    (FRAME.name, "kind"): (0, len(FRAME_KINDS) - 1),
}
_LONG = ("configuration", "versions", "labels", IMPORT_NOTES)  #: metadata values that may have many lines
_CLOCKS = ("clock_ns", "reported_ns")  #: columns with readings of the clocks of bodies; such a reading may be negative


def is_short_text(value: Any) -> bool:
    """Return whether a value is a printable string of at most 4096 characters."""
    return isinstance(value, str) and len(value) <= 4096 and value.isprintable()


def _one_of(words: Iterable[str]) -> Check:
    known = {w.lower() for w in words}
    return lambda value: isinstance(value, str) and value in known


def _grid(value: Any) -> bool:
    """Return whether a value is a list of rows, each of which contains numbers or None, with at least one number in
    total.
    """
    rows = value if isinstance(value, list) else []
    cells = [c for row in rows if isinstance(row, list) for c in row]
    return (
        any(map(is_number, cells))
        and all(c is None or is_number(c) for c in cells)
        and all(isinstance(r, list) for r in rows)
    )


def _axis(value: Any) -> bool:
    return isinstance(value, list) and 1 < len(value) <= 2000 and all(map(is_number, value))


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _row(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number that fits into a float."""
    return isinstance(value, int | float) and not _flag(value) and abs(value) < 1e300  # false for NaN, too


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_short_text, value))


def _each(**checks: Check) -> Check:
    """Return a check that accepts a list of JSON objects, each with these fields."""
    return lambda value: isinstance(value, list) and all(_has(v, checks) for v in value)


def _words(value: Any) -> bool:
    return isinstance(value, dict) and all(is_short_text(k) and is_short_text(v) for k, v in value.items())


def _map(value: Any) -> bool:
    return isinstance(value, dict)


def _has(value: Any, checks: Mapping[str, Check]) -> bool:
    return isinstance(value, dict) and all(name in value and check(value[name]) for name, check in checks.items())


#: required fields of the messages on each topic
REQUIRED_FIELDS: dict[str, dict[str, Check]] = {
    "/bodies": {
        "row": _row,
        "name": is_short_text,
        "model": is_short_text,
        "type": _one_of(BodyType.__members__),
        "present": _flag,
    },
    "/run": {"state": _one_of(RunState.__members__)},
    "/commands": {"sender": is_short_text, "verb": is_short_text, "arguments": _map},
    "/faults": {"body": is_short_text, "part": is_short_text, "kind": is_short_text, "begins": _flag},
    "/frozen": {"bodies": _texts},
    "/notices": {"body": is_short_text, "text": is_short_text},
    "/host/damage": {"text": is_short_text},
    "/host/keys": {"text": is_short_text},
    "/world/bed": {"north": _axis, "east": _axis, "depth": _grid},
}
#: optional fields of the messages on each topic
OPTIONAL_FIELDS: dict[str, dict[str, Check]] = {
    "/bodies": {
        "actuators": _each(name=is_short_text, kind=is_short_text, unit=is_short_text),
        "instruments": _each(name=is_short_text, type=is_short_text),
    },
    "/faults": {"amount": is_number, "field": is_short_text},
    "/world/bed": {"mean": is_number},
}


def check_message(topic: str, value: Any) -> dict[str, Any]:
    """Return a message if it is valid for its topic; otherwise, raise ValueError."""
    if not _has(value, REQUIRED_FIELDS.get(topic, {})):
        raise ValueError(f"invalid message on {topic}")
    if not all(check(value[name]) for name, check in OPTIONAL_FIELDS.get(topic, {}).items() if name in value):
        raise ValueError(f"invalid message on {topic}")
    if topic == "/world/bed" and [len(row) for row in value["depth"]] != [len(value["east"])] * len(value["north"]):
        raise ValueError(f"invalid message on {topic}")
    if topic == "/host/health" and not all(map(is_number, value.values())):
        raise ValueError(f"invalid message on {topic}")
    found: dict[str, Any] = value
    return found


def possible(table: Table, records: Any) -> Any:
    """Return a mask of the plausible records: their times are within a run, and their counts do not exceed the sizes of
    their arrays.
    """
    good = np.ones(len(records), bool)
    for name in table.dtype.names or ():
        bounds = _COUNTS.get((table.name, name))
        if bounds is None and name.endswith("_ns"):
            bounds = (-LATEST_NS if name in _CLOCKS else 0, LATEST_NS)
        if (table.name, name) == (FRAME.name, "ping_ns"):  # a hydrophone reads its own clock
            is_clock = records["kind"] == FRAME_KINDS.index("hydrophone")
            good &= (records[name] >= np.where(is_clock, -LATEST_NS, 0)) & (records[name] <= LATEST_NS)
        elif bounds is not None:
            good &= (records[name] >= bounds[0]) & (records[name] <= bounds[1])
    if table.name == FRAME.name:
        for name in table.dtype.names or ():
            if table.dtype[name].base.kind == "f" and name != "hold":  # infinite if the gain grows without limit
                good &= _within(records[name]).reshape(len(records), -1).all(axis=1)
    return good


def _within(values: Any) -> Any:
    """Return a mask of the sonar values that the file formats of survey software can represent. NaN (unknown) is one of
    them.
    """
    return np.isnan(values) | (np.abs(values) <= 1e9)


def possible_topic(topic: str) -> bool:
    """Return whether a topic consists of valid names. Exports use these names as names of files."""
    return len(topic) <= 256 and _TOPIC.fullmatch(topic) is not None


def possible_frame(frame: ImagingFrame, topic: str) -> bool:
    """Return whether a simulated sonar can have produced the record and the soundings of a frame, and whether the names
    in the record match the topic.
    """
    if topic != f"/sonar/{frame.body}/{frame.name}":
        return False
    soundings = frame.samples if int(frame.record["sample_bytes"]) == 8 else np.zeros(0)
    return bool(possible(FRAME, np.array([frame.record]))[0] and _within(soundings).all())


def valid_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata without invalid values and without values that a terminal could interpret as control
    sequences.
    """
    found = {k: v for k, v in metadata.items() if is_short_text(k) and (k in _LONG or is_short_text(v))}
    checks = {"versions": _words, "origin": _place, "step_ns": _step, "sound_speed": _speed, IMPORT_NOTES: _texts}
    for name, check in checks.items():
        if name in found and not check(_plain(found[name])):
            del found[name]
    if "labels" in found and label_names(found) is None:
        del found["labels"]
    if not _seed(found.get("seed", "0")):
        del found["seed"]
    return found


def label_names(metadata: Mapping[str, str]) -> LabelNames | None:
    """Return the names of the labels in frames; None if the metadata has none, or if they are invalid."""
    try:
        return LabelNames.from_json(metadata["labels"]) if "labels" in metadata else None
    except (ValueError, RecursionError):
        return None


def _plain(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _place(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(map(is_number, value))
        and all(abs(v) <= math.pi for v in value)
    )


def _step(value: Any) -> bool:
    return type(value) is int and 0 < value <= 10**12


def _speed(value: Any) -> bool:
    return type(value) is float and 0.0 < value <= 1e4


def _seed(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) <= 20
