"""Logs as tables for other tools, read with those tools."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import xarray

from tests.server.test_log import write
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, read
from wavesim_sdk.log_tables import topic_columns
from wavesim_server.logbook import datasets, export
from wavesim_server.logbook.navigation_rosbag import write_rosbag
from wavesim_world.config import LoadedConfig

SENSOR = (
    """<fleet><buoy name="b" model="buoy" position="0 0 5 m"><sensors><ctd name="probe"/></sensors></buoy></fleet>"""
)


@pytest.fixture
def log(tmp_path: Path, config: Callable[..., LoadedConfig]) -> Log:
    write(tmp_path / "a.mcap", config(SENSOR))
    return read(tmp_path / "a.mcap")


def _expected(log: Log, topic: str) -> dict[str, list[Any]]:
    return topic_columns(log, topic, log.series[topic])


def test_parquet_is_exact(log: Log, tmp_path: Path) -> None:
    written = dict(datasets.write_parquet(log.path, tmp_path / "p"))
    assert written["state.b.parquet"] == 50 and len(written) == len(log.series)
    for topic in log.series:
        file = tmp_path / "p" / f"{topic[1:].replace('/', '.')}.parquet"
        frame = duckdb.read_parquet(str(file)).df()
        for name, values in _expected(log, topic).items():
            assert np.array_equal(frame[name].to_numpy(), values, equal_nan=isinstance(values[0], float)), (topic, name)
    metadata = duckdb.sql(f"select value from parquet_kv_metadata('{tmp_path}/p/sensor.b.probe.parquet')").fetchall()
    units = json.loads(metadata[0][0])
    assert units["temperature"] == "C" and units["measured_ns"] == "ns" and "valid" not in units


def test_netcdf_is_exact(log: Log, tmp_path: Path) -> None:
    dict(datasets.write_netcdf(log.path, tmp_path / "n"))
    for topic in log.series:
        with xarray.open_dataset(tmp_path / "n" / f"{topic[1:].replace('/', '.')}.nc", engine="scipy") as found:
            since = (found.time - np.datetime64("2026-01-01", "ns")).to_numpy().astype(np.int64)
            for name, values in _expected(log, topic).items():
                stored = since if name == "time_ns" else found[name].to_numpy()
                assert np.array_equal(stored, values, equal_nan=isinstance(values[0], float)), (topic, name)
    with xarray.open_dataset(tmp_path / "n" / "state.b.nc", engine="scipy") as found:
        assert found.featureType == "trajectory" and found.trajectory.attrs["cf_role"] == "trajectory_id"
        assert found.depth.attrs["positive"] == "down" and found.p_WB_W_x.attrs["units"] == "m"
        assert {"latitude", "longitude", "depth"} <= set(found.p_WB_W_x.coords)


def test_tum_keeps_every_digit(log: Log, tmp_path: Path) -> None:
    assert dict(datasets.write_tum(log.path, tmp_path / "t")) == {"b.tum": 50}
    rows, r = np.loadtxt(tmp_path / "t" / "b.tum"), log.series["/state/b"].records
    assert np.array_equal(rows[:, 1:4], r["p_WB_W"]) and np.array_equal(rows[:, [7, 4, 5, 6]], r["q_WB"])
    assert (tmp_path / "t" / "b.tum").read_text().splitlines()[3].startswith("0.300000000 ")


def test_what_a_recording_does_not_know_is_not_exported(log: Log, tmp_path: Path) -> None:
    """An imported log has measured values where the truth is unknown: as tables NaN, and as poses nothing."""
    known = _expected(log, "/state/b")
    foreign = replace(log, metadata={**log.metadata, "unknown_truth": "attitude depth"})
    dict(export.write_csv(foreign, tmp_path / "c"))
    with (tmp_path / "c" / "state.b.csv").open() as file:
        rows = list(csv.DictReader(file))
    unknown = {"p_WB_W_z", "roll", "pitch", "heading", *(k for k in known if k.startswith(("q_WB", "v_", "w_WB")))}
    for name, values in known.items():
        expected = np.full(len(values), np.nan) if name in unknown else values
        assert np.array_equal([float(row[name]) for row in rows], expected, equal_nan=True), name
    dict(datasets.write_netcdf(foreign, tmp_path / "n"))
    with xarray.open_dataset(tmp_path / "n" / "state.b.nc", engine="scipy") as found:
        assert found.depth.isnull().all() and found.latitude.notnull().all()
    assert np.isnan(foreign.table("/state/b")["p_WB_W_z"]).all() and len(foreign.table("/state/b")["time_ns"]) == 50
    with pytest.raises(LogError, match=r"the true attitude and depth are unknown, but a TUM file needs whole poses"):
        dict(datasets.write_tum(foreign, tmp_path / "t"))
    assert "/b/odom" in dict(write_rosbag(log, tmp_path / "bag"))
    assert "/b/odom" not in dict(write_rosbag(foreign, tmp_path / "foreign"))


def test_a_dataset_keeps_truth_apart(log: Log, tmp_path: Path) -> None:
    mission, part = datasets.add_mission(log.path, tmp_path / "d")
    assert (mission, part) == datasets.add_mission(log.path, tmp_path / "d"), "the same log is the same mission"
    index = json.loads((tmp_path / "d" / "dataset.json").read_text())
    assert list(index["missions"]) == [mission] and index["missions"][mission]["seed"] == 5 and part in index["split"]
    seen = {f.stem for f in (tmp_path / "d" / mission / "seen").iterdir()}
    assert {"sensor.b.probe", "acoustics.reception", "estimate.a"} <= seen
    assert not any(name.startswith(("state", "surroundings")) for name in seen)
    heard = duckdb.read_parquet(str(tmp_path / "d" / mission / "seen" / "acoustics.reception.parquet"))
    assert len(heard.df()) == 1 and not {"range", "distance", "emission_ns", "position_W_x", "outcome"} & set(
        heard.columns
    )
    whole = duckdb.read_parquet(str(tmp_path / "d" / mission / "truth" / "acoustics.reception.parquet"))
    assert len(whole.df()) == 2
    (tmp_path / "d" / "dataset.json").write_text("{}")
    with pytest.raises(LogError, match="is not a valid dataset index"):
        datasets.add_mission(log.path, tmp_path / "d")


def test_parts_are_as_large_as_they_should_be() -> None:
    parts = [datasets.part_of(k / 1000) for k in range(1000)]
    assert {p: parts.count(p) / 1000 for p in datasets.SPLIT} == pytest.approx(datasets.SPLIT, abs=0.002)


def test_where_nothing_can_be_written(log: Log, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    for write_ in (datasets.write_parquet, datasets.write_netcdf, datasets.write_tum):
        with pytest.raises(LogError, match="cannot write to"):
            list(write_(log.path, tmp_path / "f"))
    with pytest.raises(LogError, match="cannot write to"):
        datasets.add_mission(log.path, tmp_path / "f")
