"""A log in a notebook: three lines instead of all numbers, and tables for pandas, xarray, polars and Arrow without files."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import xarray

from tests.examples.pages import page_blocks
from tests.server.test_log import write
from wavesim_sdk.errors import UnknownName
from wavesim_sdk.extras import MissingPackage
from wavesim_sdk.log import Log, read
from wavesim_sdk.log_tables import LogTable
from wavesim_world.config import LoadedConfig

SENSOR = (
    """<fleet><buoy name="b" model="buoy" position="0 0 5 m"><sensors><ctd name="probe"/></sensors></buoy></fleet>"""
)


@pytest.fixture
def log(tmp_path: Path, config: Callable[..., LoadedConfig]) -> Log:
    write(tmp_path / "a.mcap", config(SENSOR))
    return read(tmp_path / "a.mcap")


def test_a_log_shows_itself_in_three_lines(log: Log) -> None:
    first, second, third = repr(log).splitlines()
    assert first == f"<Log '{log.path}': 4.90 s, complete; messages: {log.messages}>" and second == "bodies (2): b, a"
    assert f"topics ({len(log.topics)}): `log.topics`" in third and 'log.table("/' in third
    shown = log._repr_html_()
    assert "<td>/state/b</td><td>50</td>" in shown and "array(" not in shown
    with pytest.raises(TypeError) as slip:
        log.series("/state/b")  # type: ignore[operator]
    assert len(str(slip.value)) < 200


def test_a_table_is_the_numbers_of_the_log_in_every_library(log: Log) -> None:
    table = log.table("/state/b")
    north, time = log.series["/state/b"].records["p_WB_W"][:, 0], log.series["/state/b"].time_ns
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.attrs["units"]["p_WB_W_x"] == "m"
    assert np.array_equal(frame["p_WB_W_x"], north) and np.array_equal(frame["time_ns"], time) and len(frame) == 50
    columns = table.to_polars()
    assert isinstance(columns, polars.DataFrame) and np.array_equal(columns["p_WB_W_x"].to_numpy(), north)
    dataset = table.to_xarray()
    assert isinstance(dataset, xarray.Dataset) and dataset.p_WB_W_x.attrs["units"] == "m"
    assert np.array_equal(dataset.p_WB_W_x, north) and np.array_equal(dataset.time_ns, time)
    arrow = table.to_arrow()
    assert isinstance(arrow, pyarrow.Table) and arrow.schema.field("p_WB_W_x").metadata == {b"unit": b"m"}
    assert np.array_equal(arrow["p_WB_W_x"].to_numpy(), north)
    assert polars.DataFrame(table).equals(columns), "any library reads it by Arrow's interface"


def test_texts_and_words_are_columns_too(log: Log) -> None:
    for topic in log.topics:
        table = log.table(topic)
        assert len(table) == log.topics[topic] == len(table.to_pandas()) == len(table.to_polars())
        assert table.to_arrow().num_rows == table.to_xarray().sizes["time_ns"] == len(table)
        assert topic in repr(table) and len(repr(table)) < 2000 and "<table>" in table._repr_html_()
    assert log.table("notices")["text"].tolist() == ["left the fence"]
    assert log.table("/acoustics/reception").to_polars()["outcome"].to_list() == ["heard", "faded"]


def test_a_misspelt_topic_or_column_is_named(log: Log) -> None:
    with pytest.raises(UnknownName, match="has no topic '/state/c'; did you mean '/state/b'"):
        log.table("/state/c")
    with pytest.raises(UnknownName, match="'/sensor/b/probe' has no column 'temprature'; did you mean 'temperature'"):
        log.table("/sensor/b/probe")["temprature"]


def test_the_page_about_logs_is_true(root: Path, log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = (b for b in page_blocks(root, "docs/LOG.md") if b.language == "python")
    code = block.text.replace("runs/demo/run.mcap", str(log.path)).replace("/lauv/ctd", "/b/probe").replace("lauv", "b")
    exec(code, {})
    assert capsys.readouterr().out.splitlines()[-1] == "m"


@pytest.mark.parametrize("package", ["pandas", "polars", "xarray", "pyarrow"])
def test_a_missing_library_is_one_clear_message(log: Log, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, package)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    table: LogTable = log.table("/state/b")
    call = {"pyarrow": table.to_arrow}.get(package) or getattr(table, f"to_{package}")
    with pytest.raises(MissingPackage) as caught:
        call()
    assert str(caught.value) == f"this feature needs the '{package}' package: run pip install {package}"
