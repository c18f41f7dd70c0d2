"""Export of logs for other tools: as Parquet, NetCDF (CF) or TUM tracks, or as datasets for machine learning."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Array
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.errors import LogError
from wavesim_sdk.extras import check_installed
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import TABLES, Log, Series, read
from wavesim_sdk.log_tables import UNKNOWN_TRUTH, arrays_and_units
from wavesim_sdk.tables import RECEPTION, SENT, Outcome

Columns = dict[str, Array]
_MAX_EXACT_INTEGER = 2**53  #: limit below which integers are exact as floating-point numbers
#: those columns of sent signals and receptions that are known on board
KNOWN_ON_BOARD = {
    SENT.name: ("source", "kind", "code", "from_address", "to_address", "clock_ns", "frequency", "payload"),
    RECEPTION.name: (
        "receiver",
        "source",
        "kind",
        "code",
        "from_address",
        "to_address",
        "reported_ns",
        "measured",
        "one_way",
        "azimuth",
        "elevation",
        "heard_frequency",
        "heard_level",
    ),
}
#: fraction of the missions in each split of a dataset
SPLIT = {"train": 0.7, "validation": 0.15, "test": 0.15}


def _table(log: Log, topic: str, series: Series) -> tuple[Columns, dict[str, str]]:
    """Return a topic's columns, as in its CSV file, and their units."""
    fields = [f for t in TABLES.values() if t.name == series.type for f in t.fields]
    return arrays_and_units(log, topic, series, fields)


def _write_each_table(
    log: Path | Log, folder: Path, ending: str, write: Callable[[Path, Log, str, Columns, dict[str, str]], None]
) -> Iterator[tuple[str, int]]:
    """Write each table of a log to a file in a folder; yield the name and the number of rows of each file."""
    found = read(log)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for topic, series in sorted(found.series.items()):
            path = folder / f"{topic.strip('/').replace('/', '.')}{ending}"
            write(path, found, topic, *_table(found, topic, series))
            yield path.name, len(series.time_ns)
    except OSError as error:
        raise LogError(f"cannot write to {folder}: {error.strerror}") from None


# ------------------------------------------------------------------ Parquet


def write_parquet(log: Path | Log, folder: Path) -> Iterator[tuple[str, int]]:
    """Write each table as a Parquet file; yield the name and the number of rows of each file.

    The units are stored as JSON under the key ``units``; NaN marks a missing value.
    """
    return _write_each_table(
        log, folder, ".parquet", lambda path, _, _topic, table, units: _parquet(path, table, units)
    )


def _parquet(path: Path, table: Columns, units: Mapping[str, str]) -> None:
    try:
        import duckdb
    except ImportError:
        raise LogError("duckdb is not installed: pip install 'wavesim-server[parquet]'") from None
    metadata, place = (text.replace("'", "''") for text in (json.dumps(units), str(path)))
    with duckdb.connect() as base:
        try:
            base.register("written", table)
            base.execute(
                f"copy (select * from written) to '{place}' (format parquet, kv_metadata {{units: '{metadata}'}})"
            )
        except duckdb.IOException as error:
            raise LogError(f"cannot write {path}: {error}") from None


# ------------------------------------------------------------------ NetCDF


def write_netcdf(log: Path | Log, folder: Path) -> Iterator[tuple[str, int]]:
    """Write each table as a NetCDF file (classic format, 64-bit offsets) following CF 1.8; yield the name and the
    number of rows of each file.

    States are trajectories with latitude, longitude and depth. Integers are stored in 32 bits or, if they are too
    large, as floating-point numbers that represent them exactly.
    """
    return _write_each_table(log, folder, ".nc", _netcdf)


def _netcdf(path: Path, log: Log, topic: str, table: Columns, units: Mapping[str, str]) -> None:
    check_installed("scipy")
    from scipy.io import netcdf_file

    table = dict(table)
    with netcdf_file(path, "w", version=2) as file:
        file.Conventions, file.title, file.source = "CF-1.8", f"WaVeSim {topic}", log.content_hash
        file.createDimension("time", len(table["time_ns"]))
        start = f"nanoseconds since {EPOCH:%Y-%m-%d %H:%M:%S}"
        _variable(file, "time", table.pop("time_ns").astype(float), {"units": start, "standard_name": "time"})
        coordinates: dict[str, str] = {}
        if topic.startswith("/state/"):
            file.featureType = "trajectory"
            whose = topic.removeprefix("/state/").encode()
            file.createDimension("name_length", len(whose))
            body = file.createVariable("trajectory", "c", ("name_length",))
            body[:], body.cf_role = np.frombuffer(whose, "S1"), "trajectory_id"
            places = np.stack([table[f"p_WB_W_{axis}"] for axis in "xyz"], axis=1)
            latitude, longitude = Origin(*json.loads(log.metadata.get("origin", "[0, 0]"))).degrees(
                np.nan_to_num(places)
            )
            _variable(file, "latitude", latitude, {"units": "degrees_north", "standard_name": "latitude"})
            _variable(file, "longitude", longitude, {"units": "degrees_east", "standard_name": "longitude"})
            _variable(file, "depth", places[:, 2], {"units": "m", "standard_name": "depth", "positive": "down"})
            coordinates = {"coordinates": "time latitude longitude depth"}
        for name, values in table.items():
            _variable(file, name, values, {"units": units.get(name, "1"), **coordinates})


def _variable(file: Any, name: str, values: Array, attributes: Mapping[str, str]) -> None:
    kind = values.dtype.kind
    size: tuple[str, ...] = ("time",)
    if kind == "O":
        width = max((len(v.encode()) for v in values), default=1) or 1
        if f"text{width}" not in file.dimensions:
            file.createDimension(f"text{width}", width)
        values = np.array([v.encode() for v in values], f"S{width}").view("S1").reshape(-1, width)
        size = (*size, f"text{width}")
    elif kind == "i":
        greatest = int(np.abs(values).max(initial=0))
        if greatest >= _MAX_EXACT_INTEGER:
            raise LogError(f"NetCDF cannot store the integer {greatest} of '{name}' exactly; use Parquet")
        values = values.astype("i4" if greatest < 2**31 else "f8")
    elif kind != "f":
        values = values.astype("f8")
    variable = file.createVariable(name, values.dtype.newbyteorder("="), size)
    variable[:] = values
    if kind == "O":
        attributes = {**attributes, "units": "1", "_Encoding": "utf-8"}
    for key, text in attributes.items():
        setattr(variable, key, text)


# ------------------------------------------------------------------ tracks


def write_tum(log: Path | Log, folder: Path) -> Iterator[tuple[str, int]]:
    """Write the true track of each body as a TUM file NAME.tum; yield the name and the number of rows of each file.

    The columns are t (s), x y z (W: north, east, down) and qx qy qz qw (of B), with full precision. Raise LogError if
    the log was imported from a recording without true attitudes or depths.
    """
    found = read(log)
    if unknown := found.metadata.get(UNKNOWN_TRUTH, "").split():
        raise LogError(
            f"{log}: the true {' and '.join(unknown)} {'are' if len(unknown) > 1 else 'is'} unknown, but a TUM file needs "
            "whole poses; export the log as CSV or Parquet instead"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for topic, series in sorted(found.series.items()):
            if topic.startswith("/state/"):
                r = series.records
                path = folder / f"{topic.removeprefix('/state/')}.tum"
                path.write_text(tum_lines(series.time_ns, r["p_WB_W"], r["q_WB"]))
                yield path.name, len(r)
    except OSError as error:
        raise LogError(f"cannot write to {folder}: {error.strerror}") from None


def tum_lines(time_ns: Any, p: Any, q: Any) -> str:
    """Format poses as TUM lines from times (T) in ns, positions (T, 3), and scalar-first attitudes (T, 4)."""
    times = (f"{t // 10**9}.{t % 10**9:09d}" for t in np.asarray(time_ns).tolist())
    poses = np.concatenate([p, np.asarray(q)[:, [1, 2, 3, 0]]], axis=1).tolist()
    return "".join(f"{t} {' '.join(map(repr, row))}\n" for t, row in zip(times, poses, strict=True))


# ------------------------------------------------------------------ datasets for machine learning


def add_mission(log: Path | Log, folder: Path) -> tuple[str, str]:
    """Add a log to a dataset as one mission; return the name of the mission and its split (training, validation or
    test).

    ``seen`` contains the data that are known on board: instruments, commands, receptions and estimates. ``truth``
    contains all other data, so that no model is trained on them by mistake. The content hash of a mission determines
    its split. A mission is never divided between splits.
    """
    found = read(log)
    mission = found.content_hash[:16]
    part = part_of(int(found.content_hash[:8], 16) / 2.0**32)
    try:
        index = _index(folder)
        for sort in ("seen", "truth"):
            (folder / mission / sort).mkdir(parents=True, exist_ok=True)
        for topic, series in sorted(found.series.items()):
            for sort, (table, units) in _split_seen_and_truth(found, topic, series).items():
                _parquet(folder / mission / sort / f"{topic.strip('/').replace('/', '.')}.parquet", table, units)
        (folder / mission / "configuration.xml").write_text(found.metadata.get("configuration", ""))
        index["missions"][mission] = {
            "part": part,
            "seed": int(found.metadata.get("seed", 0)),
            "duration_s": found.end_ns * 1e-9,
            "bodies": {b["name"]: b.get("model", "") for b in found.bodies.values()},
            "origin_rad": json.loads(found.metadata.get("origin", "[0, 0]")),
            "content_hash": found.content_hash,
            "configuration_digest": found.metadata.get("digest", ""),
        }
        (folder / "dataset.json").write_text(json.dumps(index, indent=2) + "\n")
    except OSError as error:
        raise LogError(f"cannot write to {folder}: {error.strerror}") from None
    return mission, part


def part_of(share: float) -> str:
    """Return the dataset split that a number from 0 to 1 selects, according to the fractions in SPLIT."""
    for part, size in SPLIT.items():
        if share < size:
            return part
        share -= size
    return part


def _index(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / "dataset.json").read_text())
        return {**found, "missions": dict(found["missions"])}
    except FileNotFoundError:
        return {
            "format": "wavesim-dataset",
            "version": 1,
            "split": SPLIT,
            "licence": "not stated: specify a licence before you distribute this dataset",
            "missions": {},
            "frames": "W north-east-down, B forward-starboard-down, S sensor frame; quaternions scalar first",
            "mountings": "configuration.xml of each mission: positions, attitudes, accuracies and clocks of its instruments",
        }
    except (ValueError, KeyError, TypeError):
        raise LogError(f"{folder / 'dataset.json'} is not a valid dataset index; select another folder") from None


def _split_seen_and_truth(log: Log, topic: str, series: Series) -> dict[str, tuple[Columns, dict[str, str]]]:
    table, units = _table(log, topic, series)
    if topic.startswith(("/sensor/", "/estimate/", "/sonar/")):
        return {"seen": (table, units)}
    found = {"truth": (table, units)}
    if topic.startswith("/actuation/"):
        found["seen"] = {k: v for k, v in table.items() if not k.startswith("actual_")}, units
    elif series.type in KNOWN_ON_BOARD:
        good = series.records["outcome"] == Outcome.HEARD
        found["seen"] = {k: table[k][good] for k in KNOWN_ON_BOARD[series.type]}, units
    return {sort: (t, {k: u for k, u in units.items() if k in t}) for sort, (t, units) in found.items()}
