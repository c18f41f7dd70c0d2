"""The table of a campaign as a file: CSV, or Parquet with units."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import WaveSimError

Table = Sequence[Mapping[str, Any]]


def write(table: Table, path: Path, units: Mapping[str, str]) -> None:
    """Write the table in the format that the file extension selects, .csv or .parquet. Raise WaveSimError on failure."""
    if path.suffix not in WRITERS:
        raise WaveSimError(f"{path}: unknown table format, use the extension {' or '.join(WRITERS)}")
    try:
        WRITERS[path.suffix](table, path, units)
    except OSError as error:
        raise WaveSimError(f"cannot write to {path}: {error.strerror}") from None


def _columns(table: Table) -> list[str]:
    return list(dict.fromkeys(name for row in table for name in row))


def _csv(table: Table, path: Path, _units: Mapping[str, str]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, _columns(table), restval="")
        writer.writeheader()
        writer.writerows(table)


def _parquet(table: Table, path: Path, units: Mapping[str, str]) -> None:
    try:
        import duckdb
    except ImportError:
        raise WaveSimError(
            "duckdb is not installed; run pip install 'wavesim-studies[parquet]', or write .csv"
        ) from None
    names = _columns(table)
    kinds = {n: _kind([row.get(n) for row in table]) for n in names}
    with duckdb.connect() as base:
        base.execute("create table t (" + ", ".join(f"{_quoted(n)} {kinds[n]}" for n in names) + ")")
        rows = [[_cell(row.get(n), kinds[n]) for n in names] for row in table]
        if rows:
            base.executemany(f"insert into t values ({', '.join('?' * len(names))})", rows)
        units_text = json.dumps({n: u for n, u in units.items() if u}).replace("'", "''")
        place = str(path).replace("'", "''")
        try:
            base.execute(f"copy t to '{place}' (format parquet, kv_metadata {{units: '{units_text}'}})")
        except duckdb.IOException as error:
            raise WaveSimError(f"cannot write to {path}: {error}") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _kind(values: Sequence[Any]) -> str:
    there = [v for v in values if v is not None]
    if there and all(isinstance(v, bool) for v in there):
        return "boolean"
    if there and all(isinstance(v, int) and not isinstance(v, bool) for v in there):
        return "bigint"
    return "double" if all(isinstance(v, int | float) for v in there) else "varchar"


def _cell(value: Any, kind: str) -> Any:
    return str(value) if kind == "varchar" and value is not None else value


WRITERS = {".csv": _csv, ".parquet": _parquet}
