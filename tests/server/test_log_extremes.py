"""Logs with extreme values in every field: every reader returns a result or a documented error."""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import CompressionType, Writer

from tests.conftest import wavesim
from wavesim_devices.sonar_formats import kmall, xtf
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.imaging_frames import FRAME, FRAME_KINDS, SOUNDING_COLUMNS
from wavesim_sdk.log import Log, encode_cdr_text, read
from wavesim_sdk.logfile import CDR_HEADER, METADATA
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, EFFORT, ESTIMATE, LINES, RECEPTION, SENT, STATE, SURROUNDINGS, Table
from wavesim_server.logbook import datasets, export, navigation_rosbag, report, sonar_rosbag
from wavesim_studies.navigation import logs
from wavesim_viz import mosaic, plots
from wavesim_viz.replay import ReplaySource
from wavesim_world.config import LoadedConfig

FLEET = (
    '<fleet><sensors><imu/><ahrs/><dvl/><ctd/><gps/></sensors><vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/>'
    '<buoy name="b" model="buoy" position="30 0 5 m"/></fleet>'
)
TABLES: dict[str, Table] = {
    "/state/a": STATE,
    "/state/b": STATE,
    "/actuation/a": ACTUATION,
    "/effort/a": EFFORT,
    "/estimate/a": ESTIMATE,
    "/surroundings/a": SURROUNDINGS,
    "/lines/tether": LINES,
    "/acoustics/sent": SENT,
    "/acoustics/reception": RECEPTION,
    **{f"/sensor/a/{name}": SENSORS[name].visible for name in ("imu", "ahrs", "dvl", "ctd", "gps")},
}
TIMES = (0, 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
FLOATS = (0.0, -0.0, 5e-324, -1e-310, 1e-300, 1e300, -1.7e308, np.inf, -np.inf, np.nan)
TEXTS = [
    (
        "/bodies",
        {
            "row": 0,
            "name": "a",
            "model": "lauv",
            "type": "underwater",
            "present": True,
            "actuators": [{"name": "propeller", "kind": "thruster", "unit": "N"}],
            "instruments": [{"name": n, "type": n} for n in ("imu", "ahrs", "dvl", "ctd", "gps")],
        },
    ),
    ("/bodies", {"row": 1, "name": "b", "model": "buoy", "type": "buoy", "present": True}),
    ("/run", {"state": "running"}),
    (
        "/commands",
        {
            "sender": "",
            "verb": "weather",
            "arguments": {"wave_height": 10**400, "wave_peak": -1.0, "current_north": 10**400},
        },
    ),
    ("/commands", {"sender": "", "verb": "pose", "arguments": {"body": ["a"], "position": [1e308, None, "x"]}}),
    ("/notices", {"body": "a", "text": "look"}),
    ("/frozen", {"bodies": ["a", "absent"]}),
    ("/faults", {"body": "a", "part": "propeller", "kind": "loss", "begins": True, "amount": -1e299}),
    ("/host/health", {"ticks_late": 10**299}),
]


def extreme(dtype: np.dtype[Any], dice: np.random.Generator, share: float) -> bytes:
    """A record of ordinary small numbers, a share of them replaced by the ends of their type."""
    record = np.zeros(1, dtype)
    for name in dtype.names or ():
        kind, flat = dtype[name].base, record[name].reshape(-1)
        if kind.kind == "f":
            flat[:] = dice.normal(size=len(flat))
            chosen = dice.choice(FLOATS, len(flat))
        elif kind.kind in "iu":
            ends = np.iinfo(kind)
            flat[:] = 0 if name == "labels" else 1
            chosen = dice.choice(np.array([ends.min, ends.max, 0, ends.max // 2], kind), len(flat))
        else:
            chosen = np.array([bytes(dice.integers(0, 256, kind.itemsize, np.uint8))] * len(flat), kind)
        where = dice.random(len(flat)) < share
        flat[where] = chosen[where]
    return record.tobytes()


def frame_of(dice: np.random.Generator, share: float, kind: str) -> bytes:
    """A frame of a sonar, of four samples or soundings; its lengths agree, but for that share of frames."""
    record = np.frombuffer(extreme(FRAME.dtype, dice, share), FRAME.dtype).copy()
    size, bins = (8, len(SOUNDING_COLUMNS)) if kind == "bathymetry" else (1, 2)
    if dice.random() >= share:
        record["kind"], record["beams"], record["bins"], record["sample_bytes"] = FRAME_KINDS.index(kind), 2, bins, size
        record["bytes"], record["labels"], record["body"], record["name"] = 2 * bins * size, 0, b"a", b"s"
    payload = dice.choice(FLOATS, 2 * bins).tobytes() if size == 8 else dice.bytes(2 * bins)
    length = len(payload) if dice.random() >= share else int(dice.choice([0, 4, 2**32 - 1]))
    return record.tobytes() + struct.pack("<I", length) + payload


def log_of(path: Path, loaded: LoadedConfig, seed: int) -> Path:
    """A log of another hand: times without order, values of every size, lengths that are not so."""
    dice = np.random.default_rng(seed)
    share, orderly = float(dice.choice([0.0, 0.02, 0.3, 1.0])), bool(dice.integers(2))
    meta = {
        "configuration": loaded.text,
        "seed": str(dice.choice(["1", "-1", "1e3", "9" * 400, "", "٣"])),
        "digest": "d",
        "server": "\x1b]0;x\x07",
        "step_ns": str(dice.choice(["4000000", "-5", "1" + "0" * 40])),
        "origin": str(dice.choice(["[0.7, -0.1]", "[1e308, NaN]", "[3.2, 0]"])),
        "versions": '{"wavesim": "\\u001b[2J"}',
    }
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE if seed % 2 else CompressionType.ZSTD)
        writer.start()
        writer.add_metadata(METADATA, meta)
        text = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        channels = {t: writer.register_channel(t, "cdr", text) for t in {topic for topic, _ in TEXTS}}
        for topic, value in TEXTS:
            time = 0 if orderly else int(dice.choice(np.array(TIMES, np.uint64)))
            writer.add_message(channels[topic], time, encode_cdr_text(json.dumps(value)), time, 1)
        tables = {
            t: writer.register_schema(f.message, "ros2msg", b"x") for t, f in {**TABLES, "/sonar/a/s": FRAME}.items()
        }
        data = {topic: writer.register_channel(topic, "cdr", schema) for topic, schema in tables.items()}
        for k in range(12):
            for topic, table in TABLES.items():
                time = k * 10**8 if orderly else int(dice.choice(np.array(TIMES, np.uint64)))
                writer.add_message(data[topic], time, CDR_HEADER + extreme(table.dtype, dice, share), time, 1)
            frame = frame_of(dice, share, "bathymetry" if seed % 3 else "sidescan")
            writer.add_message(data["/sonar/a/s"], k, CDR_HEADER + frame, k, 1)
        writer.finish()
    return path


def _all(found: Iterator[Any]) -> None:
    for _ in found:
        pass


def replayed(path: Path) -> None:
    """Everything that a page asks of a replay, at its beginning, its end and beyond."""
    replay = ReplaySource(path)
    for to in (0.0, replay.end, 1e30):
        replay.control("seek", to)
        (
            replay.scene(),
            replay.frame(),
            replay.roster(),
            replay.new_signals(),
            replay.events(),
            replay.beliefs(),
            replay.sea_components(),
        )
        replay.cables(), replay.health(), replay.weather(), replay.marks(), replay.tracks()
        for row in (0, 1):
            replay.panel(row), replay.equipment(row)
    replay.close()


def drawn(path: Path, folder: Path) -> None:
    plots.draw(plots.LoggedRun(path), folder)


def score(log: Log) -> None:
    """What `nav score` does before its filter: that one takes any numbers, and costs seconds."""
    for name in logs.vehicles(log):
        logs.estimation_case(log, name)


#: reader -> what it does with a log and an empty folder
READERS: dict[str, Callable[[Path, Path], object]] = {
    "report": lambda path, _: report.table_json(t := report.trial_table(path)) + report.table_text(t),
    "csv": lambda path, out: _all(export.write_csv(path, out)),
    "parquet": lambda path, out: _all(datasets.write_parquet(path, out)),
    "netcdf": lambda path, out: _all(datasets.write_netcdf(path, out)),
    "tum": lambda path, out: _all(datasets.write_tum(path, out)),
    "dataset": lambda path, out: datasets.add_mission(path, out),
    "rosbag": lambda path, out: _all(navigation_rosbag.write_rosbag(path, out / "bag")),
    "ros": lambda path, out: sonar_rosbag.write_sonar_messages(path, out / "x.mcap"),
    "xtf": lambda path, out: export.write_frames(path, out / "x.xtf", xtf, "sidescan"),
    "kmall": lambda path, out: export.write_frames(path, out / "x.kmall", kmall, "bathymetry"),
    "cnv": lambda path, out: export.write_cnv(path, "a", out / "a.cnv"),
    "mosaic": lambda path, out: _all(mosaic.draw(path, out, 1.0)),
    "replay": lambda path, _: replayed(path),
    "nav score": lambda path, _: score(read(path)),
}
SLOW = ("parquet", "dataset")
SEEDS = range(16)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_lives_on_extreme_values(tmp_path: Path, config: Callable[..., LoadedConfig], reader: str) -> None:
    """Only documented errors: WaveSimError."""
    loaded = config(FLEET)
    for seed in SEEDS[: 4 if reader in SLOW else None]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = log_of(tmp_path / f"{seed}.mcap", loaded, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of sums that overflow: they are numbers of others
            try:
                READERS[reader](path, folder)
            except WaveSimError as error:
                assert "\n" not in str(error) and str(error).isprintable()
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error


@pytest.mark.long
def test_pictures_of_extreme_values(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    loaded = config(FLEET)
    for seed in SEEDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                drawn(log_of(tmp_path / f"{seed}.mcap", loaded, seed), tmp_path / str(seed))
            except WaveSimError:
                pass
            except Exception as error:
                raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("command", [("log", "info"), ("log", "report"), ("plot",)])
def test_a_message_later_than_any_run_is_left_out(
    tmp_path: Path, config: Callable[..., LoadedConfig], command: tuple[str, ...]
) -> None:
    """MCAP's times have no sign: 2**63 and more overflowed. Nor does any text of the log reach the terminal as a command of it."""
    path = tmp_path / "late.mcap"
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE)
        writer.start()
        metadata = {
            "seed": "1",
            "server": "\x1b]0;x\x07",
            "versions": '{"wavesim": "\\u001b[2J"}',
            "\x1b[2J": "x",
            "digest": "d\x1b[2J",
        }
        writer.add_metadata(METADATA, {"configuration": config(FLEET).text, **metadata})
        text = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        bodies = writer.register_channel("/bodies", "cdr", text)
        for time, (topic, value) in zip((0, 2**63, 2**64 - 1), TEXTS * 2, strict=False):
            assert topic
            writer.add_message(bodies, time, encode_cdr_text(json.dumps(value)), time, 1)
        writer.finish()
    done = wavesim(*command, path, *(("--out", tmp_path / "p") if command == ("plot",) else ()))
    assert "Traceback" not in done.stderr and done.returncode in (0, 6), done.stderr
    assert not any(c in done.stdout + done.stderr for c in "\x1b\x07")
    assert list(read(path).bodies) == [0] and read(path).end_ns == 0
