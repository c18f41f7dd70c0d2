"""A growing log: it continues in further files, uses bounded memory, and survives a power failure if this is
configured.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.readers import READERS, compare
from wavesim_sdk.log import Log, read
from wavesim_sdk.logfile import part_path
from wavesim_sdk.tables import ACTUATION, STATE, SURROUNDINGS
from wavesim_server.logbook import log_part as parts
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig

FLEET = '<log {0}/><fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'


def write(path: Path, loaded: LoadedConfig, ticks: int = 300, bodies: int = 3, close: bool = True) -> LogWriter:
    """States of bodies that come one after the other and stay; the first leaves in the midst of it."""
    noise = np.random.default_rng(1)
    writer = LogWriter(path, loaded, 5)
    for k in range(ticks):
        if k % 10 == 0 and k < 10 * bodies:
            writer.body(k * 100_000_000, k // 10, f"b{k // 10}", "buoy", "buoy", True)
        if k == ticks // 2:
            writer.body(k * 100_000_000, 0, "b0", "buoy", "buoy", False)
        rows = np.arange(min(k // 10 + 1, bodies))
        for name, table in (("state", STATE), ("actuation", ACTUATION)):
            data = noise.normal(size=len(rows) * table.dtype.itemsize // 8).tobytes()
            writer.table(k * 100_000_000, name, rows, data)
        writer.notice(k * 100_000_000, "b0", "look")
    if close:
        writer.close()
    return writer


def same(a: Log, b: Log) -> bool:
    """Whether two logs tell the same."""
    assert a.series.keys() == b.series.keys() and a.json == b.json and a.messages == b.messages
    assert all((a.series[t].records == s.records).all() for t, s in b.series.items())
    return a.content_hash == b.content_hash and a.complete and b.complete


@pytest.mark.parametrize("how", ['part_size="60 kB"', 'part_time="4 s"'])
def test_a_log_in_parts_is_the_same_log(tmp_path: Path, config: Callable[..., LoadedConfig], how: str) -> None:
    write(tmp_path / "one.mcap", config(FLEET.format("")))
    loaded = config(FLEET.format(how))
    write(tmp_path / "run.mcap", loaded)
    files = sorted(tmp_path.glob("run*.mcap"), key=lambda p: p.stat().st_mtime_ns)
    assert len(files) > 4 and files[:3] == [part_path(tmp_path / "run.mcap", k) for k in (1, 2, 3)]
    if "size" in how:
        assert max(f.stat().st_size for f in files) < 2 * 60_000
    one, many = read(tmp_path / "one.mcap"), read(tmp_path / "run.mcap")
    many.metadata["digest"] = one.metadata["digest"]
    assert one.series.keys() == many.series.keys() and one.json == many.json and one.messages == many.messages
    assert all((one.series[t].records == s.records).all() for t, s in many.series.items())
    assert one.complete and many.complete


def test_the_hash_does_not_depend_on_where_a_log_was_divided(
    tmp_path: Path, config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = config(FLEET.format(""))
    write(tmp_path / "one.mcap", loaded)
    monkeypatch.setattr(parts, "MAX_TOPICS", 5)  # bed, bodies, notices, states ... : another body is too many
    write(tmp_path / "run.mcap", loaded)
    assert part_path(tmp_path / "run.mcap", 2).exists()
    assert same(read(tmp_path / "one.mcap"), read(tmp_path / "run.mcap"))


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_open_each_part(
    tmp_path: Path, config: Callable[..., LoadedConfig], reader: Callable[..., object]
) -> None:
    write(tmp_path / "run.mcap", config(FLEET.format('part_time="20 s"')))
    last = part_path(tmp_path / "run.mcap", 2)
    assert last.exists() and not part_path(tmp_path / "run.mcap", 3).exists()
    assert compare(last, reader) == read(last).messages


def test_a_later_part_says_who_is_there(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    """Alone it tells the rest of the run, with what had been said before."""
    write(tmp_path / "run.mcap", config(FLEET.format('part_time="10 s"')))
    rest = read(part_path(tmp_path / "run.mcap", 2))
    assert rest.complete and rest.metadata["part"] == "2" and "/world/bed" in rest.json
    assert [b["name"] for b in rest.bodies.values()] == ["b0", "b1", "b2"]
    assert [b["name"] for b in read(part_path(tmp_path / "run.mcap", 3)).bodies.values()] == ["b1", "b2"]
    assert rest.series["/state/b1"].time_ns[-1] == 29_900_000_000, "to the end of the run"
    assert json.loads(rest.metadata["versions"])["numpy"]


def test_a_part_of_another_run_is_not_its_continuation(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    write(tmp_path / "run.mcap", config(FLEET.format('part_time="10 s"')))
    whole = read(tmp_path / "run.mcap")
    write(tmp_path / "run.mcap", config(FLEET.format("")), ticks=50)
    found = read(tmp_path / "run.mcap")
    assert found.complete and found.end_ns < whole.end_ns and found.messages < whole.messages


def test_a_torn_part_ends_the_log_there(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    write(tmp_path / "run.mcap", config(FLEET.format('part_time="10 s"')))
    second = part_path(tmp_path / "run.mcap", 2)
    second.write_bytes(second.read_bytes()[:-30_000])
    found = read(tmp_path / "run.mcap")
    assert not found.complete and 10e9 < found.end_ns < 20e9


def test_where_there_is_no_other_file_the_log_stops_and_says_so(
    tmp_path: Path, config: Callable[..., LoadedConfig]
) -> None:
    path = tmp_path / "run.mcap"
    part_path(path, 2).mkdir()
    writer = write(path, config(FLEET.format('part_time="10 s"')))
    assert "Is a directory" in writer.failure
    assert read(path).end_ns >= 10e9


def test_the_index_of_a_log_costs_little_memory(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    """An entry for each topic in each chunk: as objects a hundred bytes each, until the end of the run."""
    loaded = config(FLEET.format(""))
    writer = LogWriter(tmp_path / "run.mcap", loaded, 5)
    rows = np.arange(100)
    for k in range(100):
        writer.body(0, k, f"b{k}", "buoy", "buoy", True)

    def fill(begin: int, end: int) -> None:
        for k in range(begin, end):
            for table in (STATE, ACTUATION, SURROUNDINGS):
                writer.table(k * 100_000_000, table.name, rows, bytes(100 * table.dtype.itemsize))

    tracemalloc.start()
    fill(0, 60)
    before = tracemalloc.get_traced_memory()[0]
    fill(60, 160)  # ten seconds
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    writer.close()
    assert grown < 150_000, f"{grown} bytes in 10 s of 100 bodies"


def test_what_was_written_is_made_durable_now_and_then(
    tmp_path: Path, config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, enough = list[int](), threading.Event()

    def fsync(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)
        if len(synced) >= 3:
            enough.set()

    monkeypatch.setattr(os, "fsync", fsync)
    writer = write(tmp_path / "run.mcap", config(FLEET.format('sync="10 ms"')), close=False)
    assert enough.wait(30.0)
    writer.close()
    assert set(synced) == {(tmp_path / "run.mcap").stat().st_ino} and not writer.failure
    synced.clear()
    write(tmp_path / "none.mcap", config(FLEET.format("")))
    assert not synced


def test_a_disk_that_does_not_keep_what_it_took_is_named(
    tmp_path: Path, config: Callable[..., LoadedConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    writer = write(tmp_path / "run.mcap", config(FLEET.format('sync="1 h"')))
    assert writer.failure == "the log stopped: Input/output error"


def test_the_log_says_what_of_the_machine_may_matter(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    write(tmp_path / "run.mcap", config(FLEET.format("")), ticks=3)
    found = json.loads(read(tmp_path / "run.mcap").metadata["versions"])
    assert {
        "python",
        "machine",
        "processor",
        "libc",
        "numpy_simd",
        "blas",
        "blas_core",
        "numpy",
        "numba",
        "kernels",
    } <= found.keys()
    assert found["numpy_simd"].split() and "glibc" in found["libc"]
    for core in ("Nehalem", "Sandybridge"):  # any x86-64 can be made to use these
        code = "from wavesim_server.logbook.machine_traits import machine_traits; print(machine_traits()['blas_core'])"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "OPENBLAS_CORETYPE": core},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == core
