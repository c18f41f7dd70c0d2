"""Reader for datasets that ``wavesim log export --dataset`` writes. It returns missions as logs for the filter, and as
tables for learners.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.tables import STATE, Table
from wavesim_world.config import LoadedConfig
from wavesim_world.config.standalone_xml import load_standalone

Columns = dict[str, Array]
_AXES = {3: ("x", "y", "z"), 4: ("w", "x", "y", "z")}


def missions(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the index entry of each mission in a dataset: split (`part`), seed and bodies."""
    try:
        found: dict[str, dict[str, Any]] = json.loads((folder / "dataset.json").read_text())["missions"]
        if not all({"part", "bodies"} <= entry.keys() and entry["bodies"] for entry in found.values()):
            raise ValueError("a mission does not belong to a split of the dataset, or has no bodies")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise LogError(
            f"{folder} is not a dataset: dataset.json is missing or invalid; create one with `wavesim log export --dataset`"
        ) from None


def table(folder: Path, mission: str, sort: str, topic: str) -> Columns:
    """Return the columns of one topic of a mission, such as ``sensor.auv.imu``. ``sort`` is `seen` (data known on
    board) or `truth` (all other data).
    """
    try:
        import duckdb
    except ImportError:
        raise LogError("duckdb is not installed; run pip install 'wavesim-studies[parquet]'") from None
    path = folder / mission / sort / f"{topic}.parquet"
    if not path.exists():
        raise LogError(f"{path} does not exist")
    with duckdb.connect() as base:
        try:
            columns = base.execute(
                f"select * from read_parquet('{str(path).replace(chr(39), chr(39) * 2)}')"
            ).fetchnumpy()
        except duckdb.Error as error:
            raise LogError(f"cannot read {path}: {error}") from None
    return {
        k: np.ma.filled(v.astype(float), np.nan) if isinstance(v, np.ma.MaskedArray) else np.asarray(v)
        for k, v in columns.items()
    }


def valid_rows(folder: Path, mission: str, body: str, instrument: str) -> Columns:
    """Return the columns of the valid values from an instrument, without duplicates. Raise LogError if there are none."""
    found = table(folder, mission, "seen", f"sensor.{body}.{instrument}")
    keep = found["valid"] == 1
    keep[1:] &= np.diff(found["sequence"].astype(np.int64)) > 0
    if not keep.any():
        raise LogError(f"{folder / mission}: '{instrument}' of '{body}' has no valid values")
    return {name: values[keep] for name, values in found.items()}


def configuration(folder: Path, mission: str) -> LoadedConfig:
    """Return the configuration of a mission, without reading the files to which it refers."""
    return load_standalone((folder / mission / "configuration.xml").read_text())[0]


def _series(kind: Table, columns: Columns) -> Series:
    """Convert the columns of a dataset back to the records of a table."""
    records = np.zeros(len(columns["time_ns"]), kind.visible.dtype)
    for f in kind.visible.fields:
        if f.shape:
            labels = _AXES.get(f.shape[0]) or [str(k) for k in range(f.shape[0])]
            for k, label in enumerate(labels):
                records[f.name][:, k] = columns[f"{f.name}_{label}"]
        else:
            records[f.name] = columns["measured_ns" if f.name == "time_ns" else f.name]
    return Series(columns["time_ns"].astype(np.int64), records, kind.name)


def log(folder: Path, mission: str, name: str, model: str) -> Log:
    """Return a mission as the log of one vehicle, with the values from its instruments and its true states."""
    loaded = configuration(folder, mission)
    found = Log(folder / mission, {"configuration": (folder / mission / "configuration.xml").read_text()})
    found.json["/bodies"].append((0, {"row": 0, "name": name, "model": model, "present": True}))
    found.series[f"/state/{name}"] = _series(STATE, table(folder, mission, "truth", f"state.{name}"))
    for instrument in loaded.suite_by_name(name, model):
        topic = f"sensor.{name}.{instrument.name}"
        if (folder / mission / "seen" / f"{topic}.parquet").exists():
            found.series[f"/sensor/{name}/{instrument.name}"] = _series(
                sensor_table_of(instrument.type), table(folder, mission, "seen", topic)
            )
    return found
