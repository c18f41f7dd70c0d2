"""The log: judged by another reader, complete in content, readable after a crash."""

from __future__ import annotations

import contextlib
import csv
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from wavesim_sdk.config import Loaded
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import read
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, RECEPTION, SENT, STATE
from wavesim_server.logbook.export import write_csv
from wavesim_server.logbook.writer import LogWriter


def write(path: Path, loaded: Loaded, states: int = 50) -> None:
    rng = np.random.default_rng(1)
    writer = LogWriter(path, loaded, 5)
    writer.body(0, 0, "b", "buoy", "buoy", True)
    rows = np.array([0])
    for k in range(states):
        state = rng.normal(size=16)
        ctd = np.zeros(1, SENSORS["ctd"].dtype)
        ctd["temperature"], ctd["valid"] = k, 1
        for table, data in (
            ("state", state.tobytes()),
            ("actuation", bytes(ACTUATION.dtype.itemsize)),
            ("ctd", ctd.tobytes()),
        ):
            writer.table(k * 100_000_000, table, rows, data)
    sent, rec = np.zeros(1, SENT.dtype), np.zeros(2, RECEPTION.dtype)
    sent["id"], sent["frequency"] = 1, 25e3
    rec["outcome"], rec["level"] = [0, 2], [130.5, 60.0]
    writer.signals(sent, rec)
    writer.estimate(0, 0, [1.0] * 9 + [None])
    writer.close()


@pytest.fixture
def loaded(config: Callable[..., Loaded]) -> Loaded:
    return config('<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet><emulators><ctd/></emulators>')


def test_another_reader_decodes_every_message(tmp_path: Path, loaded: Loaded) -> None:
    path = tmp_path / "a.mcap"
    write(path, loaded)
    ours = read(path)
    count = 0
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for schema, channel, message, decoded in reader.iter_decoded_messages(topics=list(ours.series)):
            assert schema is not None
            series = ours.series[channel.topic]
            record = (
                series.records[np.searchsorted(series.time_ns, message.log_time)]
                if len(set(series.time_ns)) == len(series.time_ns)
                else None
            )
            if record is not None:
                for name in series.records.dtype.names or ():
                    theirs, own = getattr(decoded, name.lower()), record[name]
                    if own.dtype.kind == "S":
                        assert bytes(theirs).rstrip(b"\0") == bytes(own), (channel.topic, name)
                        continue
                    assert np.array_equal(np.ravel(theirs), np.ravel(own), equal_nan=True), (channel.topic, name)
            count += 1
    assert count == 50 * 3 + 3 + 1
    assert ours.complete and ours.metadata["seed"] == "5" and "<fleet>" in ours.metadata["configuration"]


def test_the_hash_is_of_the_content(tmp_path: Path, loaded: Loaded) -> None:
    write(tmp_path / "a.mcap", loaded)
    write(tmp_path / "b.mcap", loaded)
    write(tmp_path / "c.mcap", loaded, states=51)
    a, b, c = (read(tmp_path / f"{n}.mcap").content_hash for n in "abc")
    assert a == b != c


def test_a_torn_file_is_readable_up_to_its_last_chunk(tmp_path: Path, loaded: Loaded) -> None:
    whole = tmp_path / "a.mcap"
    write(whole, loaded, states=400)
    data = whole.read_bytes()
    full = len(read(whole).series["/state/b"].records)
    rng = random.Random(0)
    best = 0
    for _ in range(60):
        torn = tmp_path / "torn.mcap"
        torn.write_bytes(data[: rng.randrange(len(data) // 4, len(data))])
        try:
            log = read(torn)
        except LogError:
            continue
        assert not log.complete
        states = log.series.get("/state/b")
        best = max(best, len(states.records) if states else 0)
    assert best > 0.8 * full


def test_foreign_bytes_in_the_middle(tmp_path: Path, loaded: Loaded) -> None:
    whole = tmp_path / "a.mcap"
    write(whole, loaded)
    data = whole.read_bytes()
    rng = random.Random(0)
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(rng.randrange(1, 20)):
            broken[rng.randrange(8, len(broken))] = rng.randrange(256)
        target = tmp_path / "x.mcap"
        target.write_bytes(bytes(broken))
        with contextlib.suppress(LogError):
            read(target)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"", "no MCAP"),
        (b"hello world, no log", "no MCAP"),
        (b"\x89MCAP0\r\n", "no WaVeSim log"),
    ],
)
def test_what_is_no_log(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogError, match=message):
        read(path)


def test_csv(tmp_path: Path, loaded: Loaded) -> None:
    write(tmp_path / "a.mcap", loaded)
    names = dict(write_csv(tmp_path / "a.mcap", tmp_path / "csv"))
    assert names["state.b.csv"] == 50 and names["acoustics.reception.csv"] == 2
    with (tmp_path / "csv" / "sensor.ctd.b.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(r["temperature"]) for r in rows] == list(range(50))
    with (tmp_path / "csv" / "state.b.csv").open() as file:
        first = next(csv.DictReader(file))
    state = read(tmp_path / "a.mcap").series["/state/b"].records[0]
    assert float(first["q_WB_3"]) == state["q_WB"][3]
    assert set(first) == {"time_ns", *(f"{f.name}_{k}" for f in STATE.fields for k in range(f.shape[0]))}


def test_an_unwritable_folder(tmp_path: Path, loaded: Loaded) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="cannot write the log"):
        LogWriter(tmp_path / "file" / "a.mcap", loaded, 1)
