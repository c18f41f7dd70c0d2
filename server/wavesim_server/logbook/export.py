"""Logs as CSV, one file per topic; a body's CTD as a Sea-Bird file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.devices import seabird
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import read


def write_csv(log: Path, folder: Path) -> Iterator[tuple[str, int]]:
    """Write every topic; yields (file name, rows). Arrays become one column per element."""
    found = read(log)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for topic, series in sorted(found.series.items()):
            columns, values = _flat(series.records)
            yield (
                _write(
                    folder,
                    topic,
                    ["time_ns", *columns],
                    ([t, *v] for t, v in zip(series.time_ns.tolist(), values, strict=True)),
                ),
                len(series.time_ns),
            )
        for topic, messages in found.json.items():
            columns = list(dict.fromkeys(key for _, m in messages for key in m))
            lines = ([t, *(_cell(m.get(c, "")) for c in columns)] for t, m in messages)
            yield _write(folder, topic, ["time_ns", *columns], lines), len(messages)
    except OSError as error:
        raise LogError(f"cannot write to {folder}: {error.strerror}") from None


def write_cnv(log: Path, vehicle: str, out: Path, name: str = "") -> int:
    """Write the valid values of a body's CTD as a CTD file; returns how many. ``name``: which one, if it has several."""
    found = read(log)
    there = found.of_type("ctd")
    mine = [n for body, n in there if body == vehicle]
    if not mine:
        have = list(dict.fromkeys(body for body, _ in there))
        raise LogError(f"{log} has no CTD of '{vehicle}'; it has those of: {', '.join(have) or 'nobody'}")
    if not name and len(mine) > 1:
        raise LogError(f"'{vehicle}' has several CTDs; name one of {', '.join(mine)}")
    if name and name not in mine:
        raise LogError(f"'{vehicle}' has no CTD '{name}'; it has {', '.join(mine)}")
    values = there[vehicle, name or mine[0]].records
    values = values[values["valid"] == 1]
    new = np.concatenate([[True], np.diff(values["sequence"]) > 0]) if len(values) else np.zeros(0, bool)
    values = values[new]
    world = json.loads(found.metadata.get("origin", "[0, 0]"))
    try:
        out.write_text(seabird.cnv(values["time_ns"] * 1e-9, values, world[0], world[1]), newline="")
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
    return len(values)


def _flat(records: Any) -> tuple[list[str], list[list[Any]]]:
    columns: list[str] = []
    parts: list[Any] = []
    for name in records.dtype.names:
        column = records[name]
        if column.ndim == 1:
            columns.append(name)
            parts.append(column.tolist())
        else:
            for k in range(column.shape[1]):
                columns.append(f"{name}_{k}")
                parts.append(np.ascontiguousarray(column[:, k]).tolist())
    return columns, [list(row) for row in zip(*parts, strict=True)]


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _write(folder: Path, topic: str, header: list[str], rows: Any) -> str:
    name = topic.strip("/").replace("/", ".") + ".csv"
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return name
