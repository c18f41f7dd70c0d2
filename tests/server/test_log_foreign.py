"""Foreign logs: for any content, the readers end with one line or leave the content out."""

from __future__ import annotations

import json
import resource
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcap.writer import CompressionType, Writer

from tests.conftest import wavesim
from wavesim_sdk.errors import ConfigError, LogError
from wavesim_sdk.log import encode_cdr_text, read
from wavesim_sdk.logfile import METADATA
from wavesim_server.logbook import report
from wavesim_server.logbook.export import write_csv
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz import scene
from wavesim_viz.replay import ReplaySource
from wavesim_world.config import LoadedConfig
from wavesim_world.config.xml import parse

FLEET = '<fleet><buoy name="b" model="buoy" position="0 0 5 m"/></fleet>'
GOOD = {"row": 0, "name": "b", "model": "buoy", "type": "buoy", "present": True}


def foreign(
    path: Path, texts: list[tuple[str, bytes]], metadata: dict[str, str] | None = None, padding: int = 0
) -> Path:
    """A log that another program wrote."""
    with path.open("wb") as file:
        writer = Writer(file, compression=CompressionType.ZSTD, chunk_size=32 * 1024**2)
        writer.start(profile="ros2", library="another")
        writer.add_metadata(METADATA, {"seed": "1", **(metadata or {})})
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        for k, (topic, data) in enumerate(texts):
            writer.add_message(writer.register_channel(topic, "cdr", schema), k, data, k, k + 1)
        for k in range(padding):
            channel = writer.register_channel(f"/zeros{k}", "cdr", schema)
            writer.add_message(channel, 1, bytes(40 * 1024**2), 1, 1)
        writer.finish()
    return path


def text(value: Any) -> bytes:
    return encode_cdr_text(json.dumps(value))


BODIES = [
    {},
    [],
    "b",
    7,
    None,
    {**GOOD, "row": "0"},
    {**GOOD, "row": -1},
    {**GOOD, "row": True},
    {**GOOD, "name": ["b"]},
    {**GOOD, "name": "b\n"},
    {**GOOD, "type": "spaceship"},
    {**GOOD, "present": "yes"},
    {**GOOD, "actuators": [7]},
    {**GOOD, "actuators": [{"name": "x"}]},
    {**GOOD, "instruments": {"name": "x"}},
    {k: v for k, v in GOOD.items() if k != "model"},
]
OTHERS = [
    ("/frozen", {}),
    ("/frozen", {"bodies": 3}),
    ("/host/health", {"ticks_late": "many"}),
    ("/host/health", 5),
    ("/notices", {"body": "b"}),
    ("/run", {"state": "flying"}),
    ("/host/damage", []),
    ("/world/bed", {"north": []}),
    ("/world/bed", {"north": [0, 1], "east": [0, 1], "depth": [[1], [1, 2]]}),
    ("/faults", {"body": "b"}),
    ("/world/bed", {"north": [0, 1], "east": [0, 1], "depth": [[None, None], [None, None]]}),
]
BYTES = [
    b"",
    b"\0\1\0\0",
    encode_cdr_text("{"),
    encode_cdr_text("[" * 100_000),
    b"\0\1\0\0\xff\xff\xff\xff{}\0",
    encode_cdr_text('{"row": NaN}'),
]


def test_messages_that_are_none_are_left_out(tmp_path: Path) -> None:
    """By the reader, so that report, CSV, pictures and replay need not ask."""
    texts = [("/bodies", text(b)) for b in BODIES] + [(t, text(v)) for t, v in OTHERS]
    texts += [(topic, data) for data in BYTES for topic in ("/bodies", "/run", "/host/health")] + [("/a\0b", text({}))]
    found = read(foreign(tmp_path / "x.mcap", [*texts, ("/bodies", text(GOOD))]))
    assert found.json == {"/bodies": [(len(texts), GOOD)]}
    assert "b " in report.table_text(report.trial_table(tmp_path / "x.mcap"))
    assert [name for name, _ in write_csv(tmp_path / "x.mcap", tmp_path / "csv")] == ["bodies.csv"]
    with pytest.raises(LogError, match="contains no states"):
        ReplaySource(tmp_path / "x.mcap")


def test_metadata_that_nobody_can_read_is_left_out(tmp_path: Path) -> None:
    bad = {
        "versions": "[",
        "origin": "[1]",
        "step_ns": "fast",
        "run": "7",
        "part": "9" * 5000,
        "configuration": "<wavesim",
    }
    path = foreign(tmp_path / "x.mcap", [], bad)
    assert not {"versions", "origin", "step_ns"} & read(path).metadata.keys()
    done = wavesim("log", "info", path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "xml",
    [
        "<!DOCTYPE wavesim [<!ENTITY a 'aaaaaaaaaa'>]><wavesim name='&a;'/>",
        "<!DOCTYPE wavesim SYSTEM 'http://127.0.0.1:9/x.dtd'><wavesim/>",
        "<wavesim>" + "<a>" * 5000,
        "<wavesim name='" + "x" * (5 * 1024 * 1024) + "'/>",
        "",
    ],
    ids=["entities", "dtd", "deep", "long", "empty"],
)
def test_a_configuration_in_a_log_goes_through_the_one_parser(tmp_path: Path, xml: str) -> None:
    log = read(foreign(tmp_path / "x.mcap", [], {"configuration": xml, "server": "there"}))
    found, loaded = scene.of_log(log)
    assert loaded is None and found["name"] == "there" and not found["bodies"]
    if "DOCTYPE" in xml:
        with pytest.raises(ConfigError, match="entities are not allowed"):
            parse(xml.encode())


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 * 1024**3, 4 * 1024**3))


def test_a_small_file_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = foreign(tmp_path / "bomb.mcap", [], padding=12)
    assert path.stat().st_size < 131_000
    done = wavesim("log", "report", path, preexec_fn=limited)
    assert done.returncode == 6 and "decompresses to more than" in done.stderr and "Traceback" not in done.stderr, (
        done.stderr
    )
    with pytest.raises(LogError, match="decompresses to more than 200 times its size"):
        read(path)


def test_a_chunk_whose_header_lies_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frame says how much it unpacks to, and who made the file says so, too: neither is asked."""
    from mcap import writer

    monkeypatch.setattr(writer, "Chunk", lambda **fields: Chunk(**fields | {"uncompressed_size": 9}))
    from mcap.records import Chunk

    path = foreign(tmp_path / "bomb.mcap", [("/x", bytes(150 * 1024**2))])
    tracemalloc.start()
    try:
        with pytest.raises(LogError, match="a chunk that decompresses to more than 64 MB"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 140 * 1024**2, "no more of it than that was unpacked"
    finally:
        tracemalloc.stop()


def test_an_ordinary_log_is_within_the_limits(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    """Bodies at rest pack well."""
    from tests.server.test_log_parts import write

    loaded = config(FLEET)
    write(tmp_path / "a.mcap", loaded, ticks=100)
    assert read(tmp_path / "a.mcap").complete
    LogWriter(tmp_path / "b.mcap", loaded, 1).close()
    assert read(tmp_path / "b.mcap").complete
