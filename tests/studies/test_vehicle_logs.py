"""Logs of MAVLink, ArduPilot, PX4 and DUNE: the same voyage gives the same score in each format, every command reads them,
and one check names the usual mistakes for all of them.
"""

from __future__ import annotations

import gzip
import json
import struct
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.studies.foreign_files import (
    BOOT_S,
    LATITUDE,
    LONGITUDE,
    UNIX,
    WRITERS,
    Content,
    content,
    dbar,
    write_lsf,
    write_tlog,
)
from tests.studies.test_estimate_score import stored
from tests.studies.test_filter import voyage
from tests.studies.voyage import Voyage, logged
from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError, LogError
from wavesim_sdk.extras import MissingPackage
from wavesim_sdk.log import Log, read
from wavesim_studies.navigation import cli
from wavesim_studies.navigation.attitude_motion import rates_of_angles
from wavesim_studies.navigation.clock_checks import check_clock
from wavesim_studies.navigation.foreign_logs import import_log

pytestmark = [pytest.mark.xdist_group("navigation")]
FORMATS = [*WRITERS]


@pytest.fixture(scope="module")
def o() -> Voyage:
    return voyage(120.0, 10.0, leg=40.0)


@pytest.fixture(scope="module")
def log(o: Voyage) -> Log:
    return logged(o)


@pytest.fixture(scope="module")
def said(log: Log) -> Content:
    return content(log)


@pytest.fixture(scope="module")
def made(said: Content, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")
    return {suffix: write(said, folder / f"sea{suffix}") for suffix, write in WRITERS.items()}


def nav(*arguments: Any) -> Result:
    return CliRunner().invoke(cli.nav, [*map(str, arguments)])


def scored(*arguments: Any) -> dict[str, Any]:
    done = nav("score", *arguments, "--json")
    assert done.exit_code == 0, done.exception
    (found,) = json.loads(done.stdout).values()
    return dict(found)


def series(found: Log, name: str) -> Any:
    return found.series[f"/sensor/vehicle/{name}"].records


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_values_of_a_log(made: dict[str, Path], said: Content, suffix: str) -> None:
    """Times, units and axes: degrees, 1e-7 degrees, mm, hPa and Pa, displacements, quaternions. Fixes come from the truth."""
    found = import_log(made[suffix])
    assert {r.type for r in found.recordings} == {"ahrs", "dvl", "pressure", "gps"}, found.unused
    late = 0.08 if suffix == ".tlog" else 0.0  # nothing separates the delay of the link from the offset of the clock
    assert found.log.metadata["time_origin_ns"] == str(round(UNIX * 1e9))
    a, d, g = (series(found.log, k) for k in ("ahrs", "dvl", "gps"))
    assert np.abs(a["time_ns"] * 1e-9 - late - said.t).max() < 0.002
    assert np.abs(np.sin(a["heading"] - said.angles[:, 2])).max() < 1e-5
    assert np.abs(a["roll"] - said.angles[:, 0]).max() < 1e-5
    # ArduPilot logs no rates with its attitude; differences of noisy angles replace them
    assert (a["rates"] - said.rates)[5:-5].std() < (0.05 if suffix == ".bin" else 1e-5)
    assert np.abs(d["time_ns"] * 1e-9 - late - said.dvl_t).max() < 0.002
    assert np.abs(d["bottom"] - said.dvl).max() < 1e-5
    assert len(g) == len(said.fix_t) and np.abs(np.degrees(g["latitude"]) - said.fixes[:, 0]).max() < 1e-7
    depth = series(found.log, "pressure")["pressure"]
    assert np.abs(depth - dbar(said)).max() < (0.05 if suffix == ".lsf" else 1e-4)  # DUNE logs depths
    s = found.log.series["/state/vehicle"]
    off = s.records["p_WB_W"] - said.p
    assert np.abs(off - off[0]).max() < 0.02 and np.abs(off[0, 2]) < 1e-3  # one unit is 11 mm
    assert np.abs(np.abs((s.records["q_WB"] * said.q).sum(axis=1)) - 1.0).max() < 1e-6
    assert not any("own estimate" in note for note in found.notes)


def placed(log: Log) -> str:
    """The configuration of a log, with the place on Earth."""
    world = f'<world latitude="{LATITUDE} deg" longitude="{LONGITUDE} deg"/>'
    return log.metadata["configuration"].replace("<fleet>", f"{world}<fleet>")


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_scores_as_our_own_log(
    made: dict[str, Path], log: Log, said: Content, tmp_path: Path, suffix: str
) -> None:
    """With the instruments' configuration, the file itself scores as the log that it was made from."""
    (tmp_path / "auv.xml").write_text(placed(log))
    if suffix == ".bin":  # it has no turn rates
        ahrs = log.series["/sensor/auv/ahrs"].records.copy()
        angles = np.stack([ahrs[k] for k in ("roll", "pitch", "heading")], axis=1)
        ahrs["rates"] = rates_of_angles(ahrs["time_ns"] * 1e-9, angles)
        without = replace(log.series["/sensor/auv/ahrs"], records=ahrs)
        log = replace(log, series={**log.series, "/sensor/auv/ahrs": without})
    ours = scored(stored(log, tmp_path / "run.mcap"), "--use", "ahrs", "--use", "dvl")
    theirs = tmp_path / f"sea{suffix}"
    theirs.write_bytes(made[suffix].read_bytes())
    (tmp_path / f"sea{suffix}.import.xml").write_text('<import vehicle="auv" configuration="auv.xml"/>')
    found = scored(theirs, "--use", "ahrs", "--use", "dvl")
    exact = suffix in (".lsf", ".ulg")
    for name in ("rms", "p95", "final", "heading_rms"):
        assert found[name] == pytest.approx(ours[name], abs=2e-3 if exact else 0.03), name
    assert found["distance"] == pytest.approx(ours["distance"], rel=1e-3)
    assert found["sensors"]["dvl"]["taken"] == pytest.approx(ours["sensors"]["dvl"]["taken"], abs=0 if exact else 2)


# ------------------------------------------------------------------ through the bridges


def test_a_log_through_the_bridge_to_dune(log: Log, said: Content, tmp_path: Path) -> None:
    """The bridge's messages, written as DUNE writes its log, score as the log that went through the bridge."""
    from tests.bridges.test_dune import described
    from wavesim_bridges.dune_vehicle import ImcInstruments, ReferencePoint, simulated_state
    from wavesim_bridges.geo_reference import WorldOrigin
    from wavesim_bridges.imc_codec import ImcPacket, packed
    from wavesim_bridges.vehicle_motion import VehicleMotion
    from wavesim_sdk.wire.state import Layout, Sensors, Value

    kinds = ("ahrs", "dvl")
    devices = {kind: described(k, kind) for k, kind in enumerate(kinds)}
    instruments = ImcInstruments(devices.values())
    reference = ReferencePoint(WorldOrigin(LATITUDE, LONGITUDE))
    rows = {kind: log.series[f"/sensor/auv/{kind}"].records for kind in kinds}
    data = []
    for k, t in enumerate(said.truth_t):
        ns, values = round(t * 1e9), {}
        for kind, r in rows.items():
            for one in r[r["time_ns"] == ns]:
                numbers = [
                    x
                    for f in devices[kind].fields
                    for x in np.atleast_1d(one[f.name] if f.name in r.dtype.names else np.full(f.count, np.nan))
                ]
                values[devices[kind].name] = Value(Layout(devices[kind]), ns, tuple(map(float, numbers)))
        motion = VehicleMotion(t, said.p[k], said.v[k], said.q[k], said.w[k], np.zeros(3))
        through = frames.rotation(said.q[k]).T @ said.v[k]
        messages = [simulated_state(motion, through, reference), *instruments.messages(Sensors(values), ns, UNIX + t)]
        data += [packed(ImcPacket(m, UNIX + t, 0x15, source_entity=1)) for m in messages]
    (tmp_path / "auv.xml").write_text(placed(log))
    ours = scored(stored(log, tmp_path / "run.mcap"), "--use", "ahrs", "--use", "dvl")
    (tmp_path / "Data.lsf.gz").write_bytes(gzip.compress(b"".join(data)))
    done = nav(
        "import",
        tmp_path / "Data.lsf.gz",
        tmp_path / "again.mcap",
        "--vehicle",
        "auv",
        "--configuration",
        tmp_path / "auv.xml",
    )
    assert done.exit_code == 0, done.exception
    again = scored(tmp_path / "again.mcap", "--use", "ahrs", "--use", "dvl")
    for name in ("rms", "p95", "final", "heading_rms", "distance"):
        assert again[name] == pytest.approx(ours[name], abs=1e-3), name
    assert again["sensors"]["dvl"]["taken"] == ours["sensors"]["dvl"]["taken"]


def test_telemetry_of_the_mavlink_bridge(said: Content, tmp_path: Path) -> None:
    """What the bridge sends to a ground station, recorded as one does. The vehicle's own estimate is the reference."""
    from wavesim_bridges.geo_reference import WorldOrigin
    from wavesim_bridges.mavlink import MavlinkVehicle
    from wavesim_bridges.vehicle_motion import VehicleMotion

    boat = MavlinkVehicle(3, WorldOrigin(LATITUDE, LONGITUDE), lambda reason: None)
    data = b""
    for k, t in enumerate(said.truth_t):
        p = said.p[k] * (1.0, 1.0, 0.0)
        boat.update_motion(VehicleMotion(t + BOOT_S, p, said.v[k], said.q[k], said.w[k], np.zeros(3)))
        for frame in boat.take_due_frames(float(t)):
            data += struct.pack(">Q", round((t + UNIX) * 1e6)) + frame
    (tmp_path / "boat.tlog").write_bytes(data)
    found = read(tmp_path / "boat.tlog")
    assert any("own estimate (GLOBAL_POSITION_INT)" in note for note in found.notes)
    s = found.series["/state/vehicle"]
    t, p = s.time_ns * 1e-9, s.records["p_WB_W"]
    true = np.stack([np.interp(t, said.truth_t, said.p[:, k] - said.p[0, k]) for k in (0, 1)], axis=1)
    assert len(t) > 600 and np.abs(p[:, :2] - true).max() < 0.03
    receiver = found.series["/sensor/vehicle/gps"].records
    assert len(receiver) > 300 and float(np.degrees(receiver["latitude"][0])) == pytest.approx(LATITUDE, abs=1e-5)
    assert "depth is not measured" in " ".join(found.notes)


# ------------------------------------------------------------------ commands


def test_other_commands_read_a_log(made: dict[str, Path], tmp_path: Path) -> None:
    from wavesim_viz.plots import LoggedRun
    from wavesim_viz.replay import ReplaySource

    path = made[".lsf"]
    replay = ReplaySource(path)
    assert replay.end == pytest.approx(120.0) and replay.log.names == ("vehicle",)
    run = LoggedRun(path)
    assert run.vehicles == ["vehicle"] and len(run.state("vehicle").time_ns) == 1201
    done = nav("score", "--estimate", path, "--truth", made[".ulg"])
    assert done.exit_code == 0 and "covers 100 %" in done.output, done.exception
    done = nav("score", path, "--use", "ahrs", "--use", "dvl")
    assert done.exit_code == 0, done.exception
    assert "sea.lsf was recorded by another program" in done.stderr and "accuracies are assumed" in done.stderr
    compressed = tmp_path / "Data.lsf.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(compressed).series.keys() == read(path).series.keys()


def test_dune_of_another_byte_order(said: Content, tmp_path: Path) -> None:
    found = import_log(write_lsf(said, tmp_path / "big.lsf", ">"))
    assert len(series(found.log, "ahrs")) == len(said.t)


def test_an_import_map_names_messages(made: dict[str, Path], tmp_path: Path) -> None:
    plan = tmp_path / "map.xml"
    plan.write_text('<import vehicle="rov"><topic name="SCALED_PRESSURE" sensor="hull" type="pressure"/></import>')
    found = import_log(made[".tlog"], plan, truth="none")
    assert found.log.series["/sensor/rov/hull"].records["pressure"][0] == pytest.approx(10.13)
    assert "/state/rov" not in found.log.series and any("true states are missing" in n for n in found.notes)
    for text, says in (
        ('<topic name="SCALED_PRESURE"/>', "has no message 'SCALED_PRESURE'; did you mean 'SCALED_PRESSURE'?"),
        ('<topic name="ATTITUDE" type="gps"/>', "ATTITUDE contains values of the types ahrs"),
    ):
        plan.write_text(f"<import>{text}</import>")
        with pytest.raises((LogError, ConfigError)) as error:
            import_log(made[".tlog"], plan)
        assert says in str(error.value)


# ------------------------------------------------------------------ mistakes


def half(c: Content, change: Callable[[Any], Any]) -> Content:
    """The content with the times of its second half changed."""
    middle = 60.0
    names = ("t", "dvl_t", "fix_t", "truth_t")
    return replace(c, **{k: np.where(getattr(c, k) > middle, change(getattr(c, k)), getattr(c, k)) for k in names})


MISTAKES: dict[str, tuple[Callable[[Content], Content], str, tuple[str, ...]]] = {
    "clock set back": (
        lambda c: replace(c, more={"clock": lambda t: t - 45.0 * (t > 60.0)}),
        "jumps back by 4",
        tuple(FORMATS),
    ),
    "clock set ahead": (lambda c: half(c, lambda t: t + 1e9), "jumps ahead by 31.7 years after t =", (".lsf",)),
    "latitude and longitude swapped": (
        lambda c: replace(c, fixes=c.fixes[:, ::-1]),
        "latitude and longitude of 'gps' are swapped: the courses between its fixes agree",
        tuple(FORMATS),
    ),
    "many fixes far away": (
        lambda c: replace(c, fixes=np.where(np.arange(len(c.fixes))[:, None] % 5 == 2, [10.0, 20.0], c.fixes)),
        "24 of 121 fixes of 'gps' are more than 100 km from the others",
        tuple(FORMATS),
    ),
    "degrees for radians": (
        lambda c: replace(c, angles=np.degrees(c.angles)),
        "of 'ahrs' reaches",
        (".tlog", ".lsf"),  # the others log degrees and quaternions
    ),
    "mm/s for m/s": (lambda c: replace(c, dvl=1000.0 * c.dvl), "speeds of 'dvl' reach", tuple(FORMATS)),
}


@pytest.mark.parametrize(("mistake", "suffix"), [(m, s) for m, (_, _, having) in MISTAKES.items() for s in having])
def test_mistakes_are_refused_in_one_message(said: Content, tmp_path: Path, mistake: str, suffix: str) -> None:
    change, says, _ = MISTAKES[mistake]
    with pytest.raises(LogError) as error:
        import_log(WRITERS[suffix](change(said), tmp_path / f"bad{suffix}"), truth="none")
    assert says in str(error.value) and len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("suffix", FORMATS)
def test_gaps_and_single_wrong_fixes_are_reported_once(said: Content, tmp_path: Path, suffix: str) -> None:
    wrong = said.fixes.copy()
    wrong[[20, 90]] = 0.5, 0.5
    bad = half(replace(said, fixes=wrong), lambda t: t + 300.0)
    found = import_log(WRITERS[suffix](bad, tmp_path / f"bad{suffix}"))
    (gap,) = [n for n in found.notes if "gap" in n]
    assert "all instruments have 1 gap of 5.0 min after t =" in gap
    notes = [n for r in found.recordings for n in r.notes]
    assert not any("gap" in n for n in notes)
    (far,) = [n for n in notes if "km from the others" in n]
    assert far.startswith(
        "2 of 121 fixes of 'gps' are more than 100 km from the others and were omitted (the first: 0.5"
    )


@pytest.mark.parametrize("suffix", FORMATS)
def test_damaged_files(made: dict[str, Path], tmp_path: Path, suffix: str) -> None:
    """A file that is cut off gives what it has, with a note; an empty file, text and noise give one message."""
    data = made[suffix].read_bytes()
    bad = tmp_path / f"bad{suffix}"
    for content_, says in (
        (b"", f"bad{suffix} is empty"),
        (b"hello\n" * 50, f"cannot read {bad}"),
        (np.random.default_rng(1).bytes(5000), f"cannot read {bad}"),
    ):
        bad.write_bytes(content_)
        done = nav("import", bad, tmp_path / "out.mcap")
        assert isinstance(done.exception, LogError) and says in str(done.exception), done.exception
        assert len(str(done.exception).splitlines()) == 1
    bad.write_bytes(data[: round(0.6 * len(data)) + 4])
    found = import_log(bad)
    assert found.log.end_ns * 1e-9 == pytest.approx(72.0, abs=5.0)
    if suffix in (".tlog", ".lsf"):
        assert any("the file ends within a" in n for n in found.notes)
    at = len(data) // 2
    bad.write_bytes(data[:at] + bytes(777) + data[at + 777 :])  # a bad block of the disk
    found = import_log(bad)
    assert found.log.end_ns * 1e-9 == pytest.approx(120.0, abs=0.2)
    assert suffix == ".ulg" or any("damaged parts were skipped" in n for n in found.notes)


def test_other_mistakes(made: dict[str, Path], log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere.xml").write_text(log.metadata["configuration"])
    for arguments, says in (
        ((made[".lsf"], "--vehicle", "auv", "--configuration", tmp_path / "elsewhere.xml"), "km from the origin"),
        ((tmp_path / "absent.ulg",), "No such file"),
        ((made[".lsf"], "--frame", "ned"), "--frame applies only to bags"),
        ((made[".lsf"], "--truth", "Estimated"), "unknown track 'Estimated'; use SimulatedState, EstimatedState, none"),
        ((made[".lsf"], "--truth", "EstimatedState"), "has no usable EstimatedState (no messages)"),
    ):
        done = nav("import", arguments[0], tmp_path / "out.mcap", *arguments[1:])
        assert isinstance(done.exception, LogError) and says in str(done.exception), done.exception
    done = nav("score", "--estimate", made[".lsf"], "--layout", "frame=enu", "--truth", made[".lsf"])
    assert isinstance(done.exception, LogError) and "a layout does not apply to" in str(done.exception)
    for suffix, package in ((".tlog", "pymavlink"), (".bin", "pymavlink"), (".ulg", "pyulog")):
        for name in [m for m in sys.modules if m.partition(".")[0] == package] or [package]:
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(
            MissingPackage, match=rf"needs the '{package}' package: run pip install 'wavesim\[autopilots\]'"
        ):
            import_log(made[suffix])
        monkeypatch.undo()


def test_a_stalled_link_is_no_jump_of_the_clock(said: Content, tmp_path: Path) -> None:
    """Messages that wait 20 s keep the time of the autopilot. A restart within a minute is distinguished from such messages."""
    stalled = replace(said, more={"received": lambda t: 70.0 if 50.0 < t < 70.0 else t})
    found = import_log(write_tlog(stalled, tmp_path / "stall.tlog"))
    assert np.diff(series(found.log, "ahrs")["time_ns"]).max() < 0.2e9
    own = np.concatenate([np.arange(0.0, 40.0, 0.1), np.arange(0.0, 60.0, 0.1)])
    with pytest.raises(LogError, match=r"the clock of 'ATTITUDE' jumps back by 4\d\.\d s at about t = "):
        check_clock("file", "ATTITUDE", own, np.arange(len(own)) * 0.1)


def test_a_pause_of_a_simulator_is_reported_and_a_stalled_link_is_not_a_pause() -> None:
    """The stamps stand still while the receiver's clock goes on; a log after a restart still is refused."""
    own = np.arange(0.0, 100.0, 0.1)
    received = own + 1e9 + 0.01 * np.random.default_rng(1).random(len(own))
    paused = received + 60.0 * (own > 30.0) + 20.0 * (own > 70.05)
    (note,) = check_clock("bag", "/imu", own, paused)
    assert note.startswith("the clock of the messages stood still 2 times, together for 80.0 s, first at t = 30.000 s")
    stalled = np.where((own > 30.0) & (own < 45.0), np.maximum(received, received[450]), received)
    assert check_clock("bag", "/imu", own, stalled) == [] == check_clock("bag", "/imu", own, received)
    restarted = np.where(own > 50.0, own - 50.0, own)
    with pytest.raises(LogError, match="jumps back by"):
        check_clock("bag", "/imu", restarted, paused)


@pytest.mark.parametrize("factor", [0.9, 1.05, 10.0])
def test_a_pause_of_a_simulator_that_does_not_run_in_real_time(factor: float) -> None:
    """The delay of the messages changes by more than the pause, also in a short file of 30 messages."""
    for count in (30, 40_000):
        own = 0.1 * np.arange(count)
        received = own / factor + 1e9 + 0.01 * np.random.default_rng(1).random(count)
        assert check_clock("bag", "/imu", own, received) == []
        paused = received + np.where(np.arange(count) > count // 3, 20.0, 0.0)
        (note,) = check_clock("bag", "/imu", own, paused)
        assert note.startswith("the clock of the messages stood still once, for 20.0 s, first at"), note


def test_a_bag_without_messages(tmp_path: Path) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    with Writer(tmp_path / "bag", version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        writer.add_connection("/imu", "sensor_msgs/msg/Imu", typestore=get_typestore(Stores.ROS2_HUMBLE))
    done = nav("score", tmp_path / "bag")
    assert isinstance(done.exception, LogError), done.output
    assert "has no values of an instrument that the filter can use (/imu: no messages" in str(done.exception)
