"""The log: checked with another reader, complete in content, readable after a crash."""

from __future__ import annotations

import contextlib
import csv
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.readers import READERS, compare
from wavesim_sdk import frames
from wavesim_sdk.errors import LogError, UnknownName
from wavesim_sdk.log import decode_cdr_text, encode_cdr_text, read
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, EFFORT, RECEPTION, SENT, STATE, VEHICLE_TABLES
from wavesim_server import cli
from wavesim_server.logbook.export import write_csv
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig, load


def write(path: Path, loaded: LoadedConfig, states: int = 50) -> None:
    rng = np.random.default_rng(1)
    writer = LogWriter(path, loaded, 5)
    writer.body(0, 0, "b", "buoy", "buoy", True)
    rows = np.array([0])
    for k in range(states):
        state = rng.normal(size=16)
        ctd = np.zeros(1, SENSORS["ctd"].visible.dtype)
        ctd["temperature"], ctd["valid"] = k, 1
        for table, data in (
            ("state", state.tobytes()),
            ("actuation", bytes(ACTUATION.dtype.itemsize)),
            ("ctd", ctd.tobytes()),
        ):
            writer.table(k * 100_000_000, table, np.array([[0, 0]]) if table == "ctd" else rows, data)
    sent, rec = np.zeros(1, SENT.dtype), np.zeros(2, RECEPTION.dtype)
    sent["id"], sent["frequency"] = 1, 25e3
    sent["payload"], sent["payload_bytes"] = b"hi", 3
    rec["outcome"], rec["level"] = [0, 2], [130.5, 60.0]
    writer.signals(sent, rec)
    writer.estimate(0, "a", [1.0] * 9 + [None])
    writer.run(0, "running")
    writer.command(5, "", "push", {"body": "b", "force": [1.0, 0.0, 0.0]})
    writer.command(6, "b", "pause", {})
    writer.fault(7, "b", "ctd", "bias", begins=True, amount=0.5, field="température")
    writer.fault(9, "b", "ctd", "bias", begins=False, amount=None, field=None)
    writer.frozen(10, ["b", "c"])
    writer.notice(11, "b", "left the fence")
    writer.close()


TEXTS = 9  #: messages of plain values that `write` makes: body, bed and the seven at its end


@pytest.fixture
def loaded(config: Callable[..., LoadedConfig]) -> LoadedConfig:
    return config(
        '<fleet><buoy name="b" model="buoy" position="0 0 5 m"><sensors><ctd name="probe"/></sensors></buoy></fleet>'
    )


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_find_every_message(tmp_path: Path, loaded: LoadedConfig, reader: Callable[..., object]) -> None:
    path = tmp_path / "a.mcap"
    write(path, loaded)
    assert compare(path, reader) == 50 * 3 + 3 + 1 + TEXTS
    ours = read(path)
    assert ours.complete and ours.metadata["seed"] == "5" and "<fleet>" in ours.metadata["configuration"]


def test_what_happened_is_in_the_log(tmp_path: Path, loaded: LoadedConfig) -> None:
    path = tmp_path / "a.mcap"
    write(path, loaded)
    found = read(path).json
    assert found["/run"] == [(0, {"state": "running"})]
    assert found["/commands"] == [
        (5, {"sender": "", "verb": "push", "arguments": {"body": "b", "force": [1.0, 0.0, 0.0]}}),
        (6, {"sender": "b", "verb": "pause", "arguments": {}}),
    ]
    fault = {"body": "b", "part": "ctd", "kind": "bias", "amount": 0.5, "field": "température"}
    assert found["/faults"] == [
        (7, {**fault, "begins": True}),
        (9, {"body": "b", "part": "ctd", "kind": "bias", "begins": False}),
    ]
    assert found["/frozen"] == [(10, {"bodies": ["b", "c"]})]
    assert found["/notices"] == [(11, {"body": "b", "text": "left the fence"})]
    came = {
        "row": 0,
        "name": "b",
        "model": "buoy",
        "type": "buoy",
        "present": True,
        "actuators": [],
        "instruments": [{"name": "probe", "type": "ctd"}],
    }
    assert found["/bodies"] == [(0, came)]
    assert set(found) == {"/run", "/commands", "/faults", "/frozen", "/notices", "/bodies", "/world/bed"}


def test_a_body_is_logged_with_what_it_has(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    """Names and units of its actuators, in the order of their columns, and of its instruments: a reader needs no model."""
    body = '<vehicle name="v" model="lauv" position="0 0 5 m"><sensors><dvl name="down"/><gps/></sensors></vehicle>'
    writer = LogWriter(tmp_path / "a.mcap", config(f"<fleet>{body}</fleet>"), 5)
    writer.body(0, 0, "v", "lauv", "underwater", True)
    writer.body(9, 0, "v", "lauv", "underwater", False)
    writer.close()
    (_, came), (_, went) = read(tmp_path / "a.mcap").json["/bodies"]
    assert came["actuators"][:2] == [
        {"name": "propeller", "kind": "thruster", "unit": "N"},
        {"name": "rudder-top", "kind": "fin", "unit": "rad"},
    ]
    assert len(came["actuators"]) == 5
    assert came["instruments"] == [{"name": "down", "type": "dvl"}, {"name": "gps", "type": "gps"}]
    assert "actuators" not in went and not went["present"]
    assert read(tmp_path / "a.mcap").bodies[0] == {**came, "present": False}


@pytest.mark.parametrize("name", sorted(t.name for t in VEHICLE_TABLES))
def test_every_table_of_bodies_can_be_logged(tmp_path: Path, loaded: LoadedConfig, name: str) -> None:
    table = next(t for t in VEHICLE_TABLES if t.name == name)
    rows = np.frombuffer(np.random.default_rng(3).bytes(2 * table.dtype.itemsize), table.dtype)
    writer = LogWriter(tmp_path / "a.mcap", loaded, 5)
    writer.body(0, 0, "b", "buoy", "buoy", True)
    writer.table(8, name, [0, 3], rows.tobytes())
    writer.close()
    log = read(tmp_path / "a.mcap")
    owners = ("line0", "line3") if name == "lines" else ("b", "row3")  # lines are nobody's
    assert log.get(f"/{name}/{owners[0]}", table).records.tobytes() == rows[:1].tobytes()
    assert log.get(f"/{name}/{owners[1]}", table).records.tobytes() == rows[1:].tobytes()


@pytest.mark.parametrize("text", ["", "x", '{"a": "é"}', "x" * 100_000])
def test_a_ros_string(text: str) -> None:
    message = encode_cdr_text(text)
    assert decode_cdr_text(message) == text
    for torn in (b"", message[:4], message[:-1], message + b"\0"):
        with pytest.raises(ValueError, match="not a ROS string"):
            decode_cdr_text(torn)


def test_the_hash_is_of_the_content(tmp_path: Path, loaded: LoadedConfig) -> None:
    write(tmp_path / "a.mcap", loaded)
    write(tmp_path / "b.mcap", loaded)
    write(tmp_path / "c.mcap", loaded, states=51)
    a, b, c = (read(tmp_path / f"{n}.mcap").content_hash for n in "abc")
    assert a == b != c


def test_a_torn_file_is_readable_up_to_its_last_chunk(tmp_path: Path, loaded: LoadedConfig) -> None:
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


@pytest.mark.parametrize(
    "asked",
    [
        ["info"],
        ["info", "--json"],
        ["report"],
        ["report", "--json"],
        ["export", "--tum", "t", "--csv", "c"],
        ["ctd", "b", "c.cnv"],
    ],
    ids=" ".join,
)
def test_commands_do_what_they_can_with_a_log_that_is_not_whole_and_end_with_a_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    from wavesim_sdk.cli import _Group

    write(tmp_path / "a.mcap", with_ctd(tmp_path), states=400)
    (tmp_path / "torn.mcap").write_bytes(
        (tmp_path / "a.mcap").read_bytes()[: 3 * (tmp_path / "a.mcap").stat().st_size // 4]
    )
    monkeypatch.chdir(tmp_path)
    said = {}
    for name in ("a", "torn"):
        done = CliRunner().invoke(_Group(commands={"log": cli.log}), ["log", asked[0], f"{name}.mcap", *asked[1:]])
        said[name] = done.exit_code, done.stderr
        assert done.stdout, "what there is of it"
        if "--json" in asked:
            assert json.loads(done.stdout)["complete"] == (name == "a")
    assert said["a"] == (0, "") and said["torn"][0] == 6
    assert said["torn"][1].startswith("wavesim: torn.mcap is incomplete or damaged: it was read up to")


def with_ctd(folder: Path) -> LoadedConfig:
    """The configuration of a buoy with a CTD in its first place."""
    (folder / "c.xml").write_text(
        '<wavesim><fleet><buoy name="b" model="buoy" position="0 0 0 m"><sensors><ctd/></sensors></buoy></fleet></wavesim>'
    )
    return load(folder / "c.xml")


def test_a_request_for_what_a_log_lacks_is_an_error(tmp_path: Path) -> None:
    """Misspelt names: no empty answer, of which one would believe that nothing happened. What may be absent is empty."""
    write(tmp_path / "a.mcap", with_ctd(tmp_path))
    log = read(tmp_path / "a.mcap")
    asked: list[tuple[Callable[[], object], str]] = [
        (lambda: log.navigation_errors("buoy"), "no body 'buoy'.*allowed: b, a"),
        (lambda: log.sensors("bb"), "no body 'bb'; did you mean 'b'"),
        (lambda: log.by_type("cdt"), "unknown sensor type 'cdt'; did you mean 'ctd'"),
        (lambda: log.get("/state/c", STATE), "no body 'c'"),
        (lambda: log.get("/states/b", STATE), "unknown topic '/states/b'; did you mean 'state'"),
        (lambda: log.get("/acoustics/receptions", RECEPTION), "did you mean 'reception'"),
        (lambda: log.get("/sensor/b/cdt", SENSORS["ctd"]), "'b' has no instrument 'cdt'; did you mean 'ctd'"),
        (lambda: log.get("state/b", STATE), "unknown topic 'state/b'"),
    ]
    for call, said in asked:
        with pytest.raises(UnknownName, match=said):
            call()
    assert len(log.navigation_errors("b")[0]) == 0, "it is there, and its navigator sent nothing"
    assert log.by_type("gps") == {} and len(log.get("/effort/b", EFFORT).records) == 0 and "ctd" in log.sensors("b")


def test_foreign_bytes_in_the_middle(tmp_path: Path, loaded: LoadedConfig) -> None:
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
        (b"", "is not an MCAP file"),
        (b"hello world, no log", "is not an MCAP file"),
        (b"\x89MCAP0\r\n", "is not a WaVeSim log"),
    ],
)
def test_what_is_no_log(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogError, match=message):
        read(path)


def test_csv(tmp_path: Path, loaded: LoadedConfig) -> None:
    write(tmp_path / "a.mcap", loaded)
    names = dict(write_csv(tmp_path / "a.mcap", tmp_path / "csv"))
    assert names["state.b.csv"] == 50 and names["acoustics.reception.csv"] == 2
    with (tmp_path / "csv" / "commands.csv").open() as file:
        commands = list(csv.DictReader(file))
    assert [c["verb"] for c in commands] == ["push", "pause"] and commands[0]["time_ns"] == "5"
    assert json.loads(commands[0]["arguments"]) == {"body": "b", "force": [1.0, 0.0, 0.0]}
    with (tmp_path / "csv" / "faults.csv").open() as file:
        faults = list(csv.DictReader(file))
    assert [(f["begins"], f["amount"], f["part"]) for f in faults] == [("True", "0.5", "ctd"), ("False", "", "ctd")]
    with (tmp_path / "csv" / "sensor.b.probe.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(r["temperature"]) for r in rows] == list(range(50))
    with (tmp_path / "csv" / "state.b.csv").open() as file:
        first = next(csv.DictReader(file))
    state = read(tmp_path / "a.mcap").series["/state/b"].records[0]
    assert float(first["q_WB_z"]) == state["q_WB"][3]
    axes = {3: "xyz", 4: "wxyz"}
    columns = {f"{f.name}_{k}" for f in STATE.fields for k in axes[f.shape[0]]}
    assert set(first) == {"time_ns", "roll", "pitch", "heading", *columns}
    assert [float(first[k]) for k in ("roll", "pitch", "heading")] == list(frames.euler(state["q_WB"]))
    with (tmp_path / "csv" / "acoustics.reception.csv").open() as file:
        heard = list(csv.DictReader(file))
    assert [(h["outcome"], h["kind"], h["source"], h["receiver"]) for h in heard] == [
        ("heard", "pulse", "b", "b"),
        ("faded", "pulse", "b", "b"),
    ]
    with (tmp_path / "csv" / "acoustics.sent.csv").open() as file:
        (sent,) = csv.DictReader(file)
    assert (sent["outcome"], sent["source"], sent["payload"]) == ("sent", "b", b"hi\0".hex())


def test_csv_names_actuators_and_who_was_there(tmp_path: Path, config: Callable[..., LoadedConfig]) -> None:
    """Two bodies had one row in turn: each signal has the name of its time."""
    writer = LogWriter(
        tmp_path / "a.mcap",
        config("<fleet><vehicle name='v' model='lauv' position='0 0 5 m' client='optional'/></fleet>"),
        5,
    )
    writer.body(0, 0, "v", "lauv", "underwater", True)
    acts = np.zeros(1, ACTUATION.dtype)
    acts["command"][0, :2] = 7.0, 0.25
    writer.table(0, "actuation", np.array([0]), acts.tobytes())
    writer.body(50, 0, "v", "lauv", "underwater", False)
    writer.body(60, 0, "w", "lauv", "underwater", True)
    heard = np.zeros(3, RECEPTION.dtype)
    heard["arrival_ns"], heard["source"] = [10, 55, 70], -1
    writer.signals(np.zeros(0, SENT.dtype), heard)
    writer.close()
    dict(write_csv(tmp_path / "a.mcap", tmp_path / "csv"))
    with (tmp_path / "csv" / "actuation.v.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["command_propeller"], row["command_rudder-top"]) == ("7.0", "0.25")
    assert len(row) == 1 + 3 * 5, "one column for each actuator it has, not for each it could have"
    with (tmp_path / "csv" / "acoustics.reception.csv").open() as file:
        assert [(r["receiver"], r["source"]) for r in csv.DictReader(file)] == [("v", ""), ("v", ""), ("w", "")]


def test_an_unwritable_folder(tmp_path: Path, loaded: LoadedConfig) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="cannot write the log"):
        LogWriter(tmp_path / "file" / "a.mcap", loaded, 1)
