"""Logs as CSV, one file per topic."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

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
            yield _write(folder, topic, ["time_ns", "json"], ([t, json.dumps(m)] for t, m in messages)), len(messages)
    except OSError as error:
        raise LogError(f"cannot write to {folder}: {error.strerror}") from None


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


def _write(folder: Path, topic: str, header: list[str], rows: Any) -> str:
    name = topic.strip("/").replace("/", ".") + ".csv"
    with (folder / name).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return name
