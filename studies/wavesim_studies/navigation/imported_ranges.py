"""Two-way acoustic ranges in recordings of other programs, as signals of a WaVeSim log.

The configuration contains the vehicle with its transducer, and the nodes that answered. The log contains only what was
recorded: the reply of a node with its measured range, and the query, whose time is recorded or follows from the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.names import suggest_name
from wavesim_sdk.tables import RECEPTION, SENT, Outcome, SignalKind
from wavesim_studies.navigation import columns as tables
from wavesim_studies.navigation.clock_checks import check_steps_back
from wavesim_studies.navigation.import_map import ImportedRanges
from wavesim_world.config import LoadedConfig

FAR_M = 30_000.0  #: length in m above which a range must have another unit
LEAST_TIME = 0.9  #: least time between query and reply, as a share of the time that the sound takes
ROLES = {
    "time": tables.ColumnRole("time", ("t", "timestamp", "stamp")),
    "range": tables.ColumnRole("length", ("distance", "slant_range")),
    "query": tables.ColumnRole("time", ("query_time",)),
}


@dataclass(frozen=True)
class RecordedRanges:
    """Two-way ranges of the vehicle to one node."""

    node: str
    source: str
    time: Floats  #: times (T) in s at which the replies arrived
    range: Floats  #: ranges (T) in m: half of the way of the sound
    query: Floats  #: times (T) in s at which the queries were sent; NaN = not recorded
    omitted: int  #: number of values without a time or a range


def read_ranges(folder: Path, listed: Sequence[ImportedRanges]) -> list[RecordedRanges]:
    """Return the ranges in the files that an import map lists. Raise LogError if a file cannot be used."""
    return [_read(folder / one.file, one) for one in listed]


def _read(path: Path, listed: ImportedRanges) -> RecordedRanges:
    with tables.open_table(path) as opened:
        layout = tables.parse_layout(listed.columns, (*ROLES,), str(path))
        chosen = tables.choose_columns(opened.header, ROLES, layout, str(path))
        if missing := [name for name in ("time", "range") if name not in chosen]:
            raise LogError(
                f'{path} has no column for {" and ".join(missing)}; name one with columns="{missing[0]}=COLUMN"; '
                f"columns: {', '.join(opened.header)}"
            )
        values = opened.values(ROLES, chosen)
    known = np.isfinite(values["time"]) & np.isfinite(values["range"]) & (values["range"] > 0.0)
    if not known.any():
        raise LogError(f"{path} has no ranges")
    check_steps_back(str(path), listed.node, values["time"][known])
    order = np.flatnonzero(known)[np.argsort(values["time"][known], kind="stable")]
    time, distance = values["time"][order], values["range"][order]
    if (most := float(distance.max())) > FAR_M:
        raise LogError(f"{path}: ranges reach {most:.4g} m; state their unit (range=COLUMN:mm?)")
    query = values["query"][order] if "query" in values else np.full(len(time), np.nan)
    if (query >= time).any():
        raise LogError(f"{path}: queries are later than their replies; are the columns swapped?")
    return RecordedRanges(listed.node, str(path), time, distance, query, int((~known).sum()))


def add_ranges(log: Log, loaded: LoadedConfig, vehicle: str, found: Sequence[RecordedRanges], zero: float) -> list[str]:
    """Add ranges to an imported log, whose times begin at ``zero`` s of the recording. Return notes.

    Raise LogError if the configuration lacks a node or a transducer, if the clocks differ, or if replies arrive too early.
    """
    bodies = {b.name: b for b in loaded.config.fleet.bodies}
    if loaded.transducer(bodies[vehicle]) is None:
        raise LogError(f"'{vehicle}' has no <transducer> in the configuration; the import map lists ranges")
    c, notes = loaded.config.acoustics.sound_speed, []
    rows: dict[str, int] = {}
    sent, received = [], []
    for one in found:
        there = loaded.transducer(bodies[one.node]) if one.node in bodies else None
        if there is None or one.node == vehicle:
            able = [n for n, b in bodies.items() if n != vehicle and loaded.transducer(b) is not None]
            hint = suggest_name(one.node, able) or f"; it has {', '.join(able) or 'none'}"
            raise LogError(f"{one.source}: the configuration has no node '{one.node}' with a transducer{hint}")
        time, query = one.time - zero, one.query - zero
        inside = (time > 0.0) & (time * 1e9 <= log.end_ns)
        if not inside.any():
            raise LogError(
                f"{one.source}: no range lies in the time of the other recordings; check the units of the times"
            )
        rows.setdefault(one.node, len(rows) + 1)
        travel = one.range / c
        if (known := inside & np.isfinite(query)).any():
            way, taken = 2.0 * float(np.median(travel[known])), float(np.median((time - query)[known]))
            if taken < LEAST_TIME * way:
                raise LogError(
                    f"{one.source}: replies arrive {taken:.3g} s after their queries (median), but at {c:g} m/s, sound takes "
                    f"{way:.3g} s for twice the range; check the unit, and that the range is half of the way of the sound"
                )
        query = np.where(np.isfinite(query), query, time - 2.0 * travel - there.turn_around)
        inside &= query > 0.0
        made = _signals(time[inside], query[inside], travel[inside])
        made[1]["source"], made[1]["measured"] = rows[one.node], one.range[inside]
        sent.append(made[0])
        received.append(made[1])
        notes.append(_note(one, inside))
    _number(sent, received)
    for topic, parts, name, key in (
        ("/acoustics/sent", sent, SENT.name, "emission_ns"),
        ("/acoustics/reception", received, RECEPTION.name, "arrival_ns"),
    ):
        records = np.concatenate(parts)
        records = records[np.argsort(records[key], kind="stable")]
        log.series[topic] = Series(records[key].astype(np.int64), records, name)
    for name, row in rows.items():
        kind = loaded.models[bodies[name].model].type
        who = {"row": row, "name": name, "model": bodies[name].model, "type": kind, "present": True}
        log.json["/bodies"].append((0, who))
    return notes


def _signals(time: Floats, query: Floats, travel: Floats) -> tuple[Any, Any]:
    """Return the records of the queries, and of the replies without their source and range."""
    sent, r = np.zeros(len(time), SENT.visible.dtype), np.zeros(len(time), RECEPTION.visible.dtype)
    for records in (sent, r):
        for name in records.dtype.names or ():
            if records.dtype[name].base.kind == "f":
                records[name] = np.nan  # not recorded
    sent["emission_ns"] = sent["clock_ns"] = np.round(query * 1e9)
    sent["kind"], r["kind"] = SignalKind.RANGE_REQUEST, SignalKind.RANGE_REPLY
    r["arrival_ns"] = r["reported_ns"] = np.round(time * 1e9)
    r["emission_ns"] = np.round((time - travel) * 1e9)
    r["outcome"] = Outcome.HEARD
    return sent, r


def _number(sent: Sequence[Any], received: Sequence[Any]) -> None:
    """Number all queries and replies, and relate each reply to its query."""
    first = 1
    for s, r in zip(sent, received, strict=True):
        s["id"] = np.arange(first, first + len(s))
        r["query"], r["id"] = s["id"], s["id"] + len(s)
        first += 2 * len(s)


def _note(one: RecordedRanges, inside: Any) -> str:
    text = f"{int(inside.sum())} ranges to '{one.node}' from {one.source}"
    left = int((~inside).sum())
    text += f"; {left} outside the time of the other recordings were omitted" if left else ""
    return text + (f"; {one.omitted} without a number were omitted" if one.omitted else "")
