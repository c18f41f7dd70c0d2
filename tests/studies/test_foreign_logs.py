"""Recordings of other programs as logs: our own exports give the same score again, CSV files and bags of others are read
with their axes and units, and the usual mistakes are named.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from tests.examples.pages import page_blocks
from tests.studies.test_estimate_score import csv, stored
from tests.studies.test_filter import voyage
from tests.studies.voyage import Voyage, logged
from wavesim_sdk import frames
from wavesim_sdk.axes import attitude_enu, frd_to_flu
from wavesim_sdk.errors import ConfigError, LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log, read
from wavesim_server.logbook.datasets import tum_lines
from wavesim_server.logbook.export import write_csv
from wavesim_server.logbook.navigation_rosbag import write_rosbag
from wavesim_studies.navigation import ahrs_motion, cli, estimate, logs
from wavesim_studies.navigation import measurement_models as e
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.foreign_logs import import_log
from wavesim_studies.navigation.recordings import InstrumentRecording

pytestmark = [pytest.mark.xdist_group("navigation")]
EPOCH_NS = 1_790_000_000 * 10**9  #: when the other program recorded, ns since 1970


@pytest.fixture(scope="module")
def o() -> Voyage:
    return voyage(120.0, 10.0, leg=40.0)


@pytest.fixture(scope="module")
def log(o: Voyage) -> Log:
    return logged(o)


def nav(*arguments: Any) -> Result:
    return CliRunner().invoke(cli.nav, [*map(str, arguments)])


@pytest.mark.parametrize("form", ["csv", "rosbag"])
def test_our_exports_give_the_same_score_again(log: Log, tmp_path: Path, form: str) -> None:
    """A bag has civil times, whose floating-point numbers resolve 0.2 us; those of a CSV file are exact."""
    (tmp_path / "auv.xml").write_text(log.metadata["configuration"])
    where = ["--vehicle", "auv", "--configuration", tmp_path / "auv.xml"]
    if form == "csv":
        list(write_csv(log, tmp_path / "out"))
    else:
        list(write_rosbag(log, tmp_path / "out"))
        where += ["--truth", "/auv/odom"]
    done = nav("import", tmp_path / "out", tmp_path / "again.mcap", *where)
    assert done.exit_code == 0, done.exception
    found = []
    for file in (stored(log, tmp_path / "run.mcap"), tmp_path / "again.mcap"):
        done = nav("score", file, "--without", "speedlog", "--json")
        assert done.exit_code == 0, done.exception
        found.append(json.loads(done.stdout)["auv"])
    tolerance = 1e-9 if form == "csv" else 1e-5
    for name in ("rms", "p95", "final", "heading_rms", "nees", "distance"):
        assert found[1][name] == pytest.approx(found[0][name], abs=tolerance), name
    assert {k: v["taken"] for k, v in found[1]["sensors"].items()} == {
        k: v["taken"] for k, v in found[0]["sensors"].items()
    }


MAP = """<import vehicle="rov" origin="63.4 10.4 deg">
<sensors><ahrs rate="10 Hz"/><dvl rate="2 Hz" position="-0.3 0 0 m"/><pressure/></sensors>
<table file="attitude.csv" sensor="ahrs" columns="time=stamp:ns roll=phi:deg pitch=theta:deg heading=psi:deg {rates}"/>
<table file="speed.csv" sensor="dvl" frame="FLU" columns="time=stamp:ns bottom=vx,vy,vz:mm/s"/>
<table file="depth.csv" sensor="pressure" columns="time=stamp:ns"/>
<table file="survey.csv" sensor="truth" columns="time=stamp:ns"/></import>"""


def tables(log: Log, folder: Path, rates: str = "rates=p,q,r:deg/s") -> Path:
    """CSV files of a vehicle with AHRS, Doppler log and pressure sensor, with the units of another program."""
    folder.mkdir()
    s = log.series["/state/auv"]
    a, d = (log.series[f"/sensor/auv/{k}"].records for k in ("ahrs", "dvl"))
    angles = np.degrees([a["roll"], a["pitch"], a["heading"]])
    turning = dict(zip("pqr", np.degrees(a["rates"]).T, strict=True))
    csv(
        folder / "attitude.csv", stamp=a["time_ns"] + EPOCH_NS, phi=angles[0], theta=angles[1], psi=angles[2], **turning
    )
    flu = 1000.0 * frd_to_flu(d["bottom"])
    csv(folder / "speed.csv", stamp=d["time_ns"] + EPOCH_NS, vx=flu[:, 0], vy=flu[:, 1], vz=flu[:, 2])
    csv(folder / "depth.csv", stamp=s.time_ns + EPOCH_NS, depth=s.records["p_WB_W"][:, 2])
    q, p = s.records["q_WB"], s.records["p_WB_W"]
    quaternion = dict(zip(("qw", "qx", "qy", "qz"), q.T, strict=True))
    csv(folder / "survey.csv", stamp=s.time_ns + EPOCH_NS, north=p[:, 0], east=p[:, 1], down=p[:, 2], **quaternion)
    (folder / "map.xml").write_text(MAP.format(rates=rates))
    return folder


NODES = {"b1": (180.0, -20.0, 40.0), "b2": (-150.0, 160.0, 35.0)}
SEA = """<wavesim><world latitude="63.4 deg" longitude="10.4 deg"/><acoustics sound_speed="1490 m/s"/><fleet>
<vehicle name="rov" model="lauv" position="0 0 20 m"><sensors inherit="no"><ahrs rate="10 Hz"/>
<dvl rate="2 Hz" position="-0.3 0 0 m"/><pressure/></sensors><transducer position="0.3 0 -0.1 m" timing_noise="20 us"/></vehicle>
<buoy name="b1" model="buoy" position="180 -20 40 m"><transducer query="25 kHz" reply="26 kHz" turn_around="200 ms"/></buoy>
<buoy name="b2" model="buoy" position="-150 160 35 m"><transducer query="25 kHz" reply="27 kHz" turn_around="200 ms"/></buoy>
</fleet></wavesim>"""
RANGED = """<import vehicle="rov" configuration="sea.xml">
<table file="attitude.csv" sensor="ahrs" columns="time=stamp:ns roll=phi:deg pitch=theta:deg heading=psi:deg rates=p,q,r:deg/s"/>
<table file="speed.csv" sensor="dvl" frame="FLU" columns="time=stamp:ns bottom=vx,vy,vz:mm/s"/>
<table file="depth.csv" sensor="pressure" columns="time=stamp:ns"/>
<table file="survey.csv" sensor="truth" columns="time=stamp:ns"/>
<ranges file="b1.csv" node="b1" columns="time=stamp:ns range=slant:{unit} query=asked:ns"/>
<ranges file="b2.csv" node="{other}" columns="time=stamp:ns range=slant:{unit}"/></import>"""


def ranged(log: Log, folder: Path, unit: str = "mm", other: str = "b2") -> Path:
    """CSV files as of ``tables``, and ranges to two nodes with a noise of 15 mm. The sound travels 1490 m/s."""
    tables(log, folder)
    s, rng = log.series["/state/auv"], np.random.default_rng(6)
    at = s.records["p_WB_W"] + frames.rotation(s.records["q_WB"]) @ (0.3, 0.0, -0.1)

    def distance(t: Any, place: Any) -> Any:
        here = np.stack([np.interp(t, s.time_ns * 1e-9, at[:, k]) for k in range(3)], axis=1)
        return np.linalg.norm(here - place, axis=1)

    for k, (name, place) in enumerate(NODES.items()):
        asked = np.arange(4.0 + k, 110.0, 4.0)
        reply = asked + 0.4
        for _ in range(3):  # the vehicle moves while the sound travels
            there, back = distance(asked, place), distance(reply, place)
            reply = asked + (there + back) / 1490.0 + 0.2
        slant = 0.5 * (there + back) + 0.015 * rng.standard_normal(len(asked))
        stamp, asked_ns = (EPOCH_NS + np.round(1e9 * t).astype(np.int64) for t in (reply, asked))
        csv(folder / f"{name}.csv", stamp=stamp, slant=1e3 * slant, asked=asked_ns)
    (folder / "sea.xml").write_text(SEA)
    (folder / "map.xml").write_text(RANGED.format(unit=unit, other=other))
    return folder


def test_acoustic_ranges_of_a_recording(log: Log, tmp_path: Path) -> None:
    """Ranges in mm to two nodes of the configuration: the filter gets the way of the sound, and uses it. For one node, the
    times of the queries are not recorded.
    """
    folder = ranged(log, tmp_path / "sea")
    done = nav("import", folder, tmp_path / "sea.mcap", "--map", folder / "map.xml")
    assert done.exit_code == 0, done.exception
    assert "note: 27 ranges to 'b1' from " in done.output
    found = read(tmp_path / "sea.mcap")
    assert [b["name"] for b in found.bodies.values()] == ["rov", "b1", "b2"]
    records = found.series["/acoustics/reception"].records
    assert (np.diff(records["arrival_ns"]) >= 0).all() and np.isfinite(records["measured"]).all()
    case = logs.estimation_case(found, "rov", without=("pressure",))
    rows = case.rows[case.rows[:, e.KIND] == e.ROUND_TRIP]
    assert len(rows) == 54
    state = found.series["/state/rov"]
    arm = frames.rotation(state.records["q_WB"]) @ (0.3, 0.0, -0.1)

    def distance(t: Any) -> Any:
        here = [np.interp(t, state.time_ns * 1e-9, (state.records["p_WB_W"] + arm)[:, k]) for k in range(3)]
        return np.linalg.norm(np.transpose(here) - rows[:, e.PLACE : e.PLACE + 3], axis=1)

    error = rows[:, e.Z] - distance(rows[:, e.T]) - distance(rows[:, e.ID])  # of the whole way
    assert abs(error.mean()) < 0.015 and error.std() == pytest.approx(0.03, rel=0.3)
    track = case.run()
    sound = track.events[:, e.KIND] == e.ROUND_TRIP
    assert track.event_outcomes[sound, 0].mean() > 0.95 and case.score(track).rms < 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "m"}, "ranges reach .* m; state their unit"),
        ({"unit": "cm"}, r"b1\.csv: replies arrive 0\.39 s after their queries .* half of the way of the sound"),
        ({"other": "b3"}, "the configuration has no node 'b3' with a transducer"),
    ],
)
def test_wrong_ranges_are_refused(log: Log, tmp_path: Path, options: Any, message: str) -> None:
    folder = ranged(log, tmp_path / "sea", **options)
    with pytest.raises(LogError, match=message):
        import_log(folder, folder / "map.xml")
    (folder / "map.xml").write_text((folder / "map.xml").read_text().replace(' configuration="sea.xml"', ""))
    with pytest.raises(LogError, match=r"<ranges> needs a configuration"):
        import_log(folder, folder / "map.xml")


def rms(log: Log, name: str, **more: Any) -> float:
    case = logs.estimation_case(log, name, **more)
    return case.score(case.run()).rms


def test_a_vehicle_without_an_imu(log: Log, tmp_path: Path) -> None:
    """Degrees, mm/s, left and up, civil times in ns: the score is that of the same values in our own log."""
    folder = tables(log, tmp_path / "sea")
    done = nav("import", folder, tmp_path / "sea.mcap", "--map", folder / "map.xml")
    assert done.exit_code == 0, done.exception
    assert "simulation time 0 is 1790000000 s" in done.output and "note: the turn" not in done.output
    found = read(tmp_path / "sea.mcap")
    assert list(found.notes) == done.output.splitlines()[:-1]  # the log keeps what the import reported
    ahrs = found.series["/sensor/rov/ahrs"].records
    assert np.allclose(ahrs["rates"], log.series["/sensor/auv/ahrs"].records["rates"])
    assert np.allclose(
        found.series["/sensor/rov/dvl"].records["bottom"], log.series["/sensor/auv/dvl"].records["bottom"]
    )
    ours = rms(log, "auv", without=("imu", "speedlog"))
    assert abs(rms(found, "rov", without=("pressure",)) - ours) < 0.02 and ours < 0.6
    estimated = tmp_path / "true.tum"  # of another program, which has civil times too
    state = log.series["/state/auv"]
    estimated.write_text(tum_lines(state.time_ns + EPOCH_NS, state.records["p_WB_W"], state.records["q_WB"]))
    done = nav("score", tmp_path / "sea.mcap", "--estimate", estimated)
    assert "covers 100 %" in done.output and "1790000000.000 s were subtracted" in done.output, done.exception


def test_turn_rates_are_computed_from_angles(log: Log, tmp_path: Path) -> None:
    folder = tables(log, tmp_path / "sea", rates="rates=none,none,none")
    with pytest.raises(LogError, match="no column 'none' for 'rates'"):
        import_log(folder, folder / "map.xml")
    (folder / "map.xml").write_text(MAP.format(rates=""))
    (folder / "attitude.csv").write_text((folder / "attitude.csv").read_text().replace("p,q,r", "a,b,c", 1))
    made = import_log(folder, folder / "map.xml")
    (note,) = [n for r in made.recordings for n in r.notes]
    assert note == "turn rates are missing; they are computed from the angles"
    assert rms(made.log, "rov", without=("pressure",)) < 1.5


def test_arrays_of_ahrs_and_doppler_log(log: Log, o: Voyage) -> None:
    """The public functions give what `nav score` gives."""
    case = logs.estimation_case(log, "auv", without=("imu", "speedlog"))
    a, d = (log.series[f"/sensor/auv/{k}"].records for k in ("ahrs", "dvl"))
    angles = np.stack([a["roll"], a["pitch"], a["heading"]], axis=1)
    t, at = a["time_ns"] * 1e-9, d["time_ns"] * 1e-9
    design, samples = ahrs_motion(t, angles, a["rates"], (at, d["bottom"], 0.004))
    q = frames.quaternion(*angles[0])
    start = design.start(t[0], case.p[0], case.v[0], q, [0.05, 0.05, 0.01, 1e-6, 1e-4])
    speeds = make.velocity(0.0, np.zeros(3), 0.01, (-0.3, 0.0, 0.0), gate=make.JOLT)
    attitude = make.angles(0.0, dict.fromkeys(make.ANGLE, 0.0), [0.002, 0.002, 0.005], sensor=1)
    rows = np.concatenate([make.each(speeds, at[1:], d["bottom"][1:]), make.each(attitude, t[1:], angles[1:])])
    track = estimate(design, start, samples[1:], rows, case.time)
    off = np.linalg.norm((track.p - case.p)[:, :2], axis=1)
    assert np.sqrt(np.mean(off**2)) < 0.8
    assert rms(log, "auv", without=("imu", "speedlog")) < 0.8
    with pytest.raises(ValueError, match="roll and pitch must be in rad"):
        ahrs_motion(t, np.degrees(angles) + 5.0, a["rates"])


def foreign_bag(o: Voyage, folder: Path, pause: float = 0.0) -> Path:
    """A bag of ordinary ROS drivers: IMU with attitude, Odometry of a Doppler log, pressure, fixes, a pose, and texts.
    After 60 s, the simulator pauses for ``pause`` s, while the clock of the recorder goes on.
    """
    store, rng = get_typestore(Stores.ROS2_HUMBLE), np.random.default_rng(1)
    T: Any = store.types
    origin = Origin(np.radians(63.4), np.radians(10.4))

    def vector(v: Any) -> Any:
        return T["geometry_msgs/msg/Vector3"](*map(float, v))

    def header(t: float) -> Any:
        stamp = T["builtin_interfaces/msg/Time"](*divmod(round(t * 1e9) + EPOCH_NS, 10**9))
        return T["std_msgs/msg/Header"](stamp, "base_link")

    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        topics = {
            "/imu/data": "sensor_msgs/msg/Imu",
            "/dvl/odometry": "nav_msgs/msg/Odometry",
            "/depth/pressure": "sensor_msgs/msg/FluidPressure",
            "/fix": "sensor_msgs/msg/NavSatFix",
            "/pose": "geometry_msgs/msg/PoseStamped",
            "/log": "std_msgs/msg/String",
        }
        made = {k: writer.add_connection(k, v, typestore=store) for k, v in topics.items()}

        def write(topic: str, t: float, message: Any) -> None:
            received = t + (pause if t > 60.0 else 0.0)
            writer.write(made[topic], EPOCH_NS + round(received * 1e9), store.serialize_cdr(message, topics[topic]))

        still, known = np.zeros(9), np.diag([1e-4, 1e-4, 4e-4]).ravel()
        write("/log", 0.0, T["std_msgs/msg/String"]("hello"))
        for k in range(1, len(o.t)):
            t, sample = float(o.t[k]), o.imu[k - 1]
            w, x, y, z = map(float, attitude_enu(o.q[k]))
            turned = T["geometry_msgs/msg/Quaternion"](x, y, z, w)
            rates, force = vector(frd_to_flu(sample[4:7])), vector(frd_to_flu(sample[1:4]))
            write("/imu/data", t, T["sensor_msgs/msg/Imu"](header(t), turned, known, rates, still, force, still))
            if k % 5 == 0:
                v = vector(frd_to_flu(o.R[k].T @ o.v[k] + 0.005 * rng.standard_normal(3)))
                covariance = np.diag([2.5e-5] * 3 + [0.0] * 3).ravel()
                twist = T["geometry_msgs/msg/Twist"](v, vector(np.zeros(3)))
                point, none = (
                    T["geometry_msgs/msg/Point"](0.0, 0.0, 0.0),
                    T["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0),
                )
                pose = T["geometry_msgs/msg/PoseWithCovariance"](T["geometry_msgs/msg/Pose"](point, none), np.zeros(36))
                motion = T["geometry_msgs/msg/TwistWithCovariance"](twist, covariance)
                write("/dvl/odometry", t, T["nav_msgs/msg/Odometry"](header(t), "dvl", pose, motion))
                pascal = 1e4 * (10.1325 + 1.01 * float(o.p[k, 2]))
                write("/depth/pressure", t, T["sensor_msgs/msg/FluidPressure"](header(t), pascal, 1e4))
                latitude, longitude, _ = origin.geodetic(o.p[k])
                status, place = (
                    T["sensor_msgs/msg/NavSatStatus"](0, 1),
                    [float(np.degrees(x)) for x in (latitude, longitude)],
                )
                fix = T["sensor_msgs/msg/NavSatFix"](
                    header(t), status, *place, 45.0, np.diag([4.0, 4.0, 9.0]).ravel(), 2
                )
                write("/fix", t, fix)
                enu = T["geometry_msgs/msg/Point"](float(o.p[k, 1]), float(o.p[k, 0]), -float(o.p[k, 2]))
                write(
                    "/pose", t, T["geometry_msgs/msg/PoseStamped"](header(t), T["geometry_msgs/msg/Pose"](enu, turned))
                )
    return folder


def test_a_bag_of_a_paused_simulator(o: Voyage, tmp_path: Path) -> None:
    """The log has the stamps of the simulator, as without the pause, and each instrument a note about it."""
    made, whole = (
        import_log(foreign_bag(o, tmp_path / f"{pause:g}", pause), truth="/pose", vehicle="rov")
        for pause in (300.0, 0.0)
    )
    assert {*made.log.series} == {*whole.log.series}
    for topic, series in whole.log.series.items():
        assert (made.log.series[topic].time_ns == series.time_ns).all(), topic
    for r in made.recordings:
        (note,) = (n for n in r.notes if "stood still" in n)
        assert "stood still once, for 5.0 min, first at t = 1790000060" in note, r.name
    assert not any("stood still" in n for r in whole.recordings for n in r.notes)


def test_a_bag_of_other_drivers(o: Voyage, tmp_path: Path) -> None:
    bag = foreign_bag(o, tmp_path / "bag")
    (tmp_path / "map.xml").write_text(
        '<import vehicle="rov"><topic name="/dvl/odometry" type="dvl" sensor="dvl"/></import>'
    )
    done = nav("import", bag, tmp_path / "a.mcap", "--map", tmp_path / "map.xml", "--truth", "/pose")
    assert done.exit_code == 0, done.exception
    says = done.output
    assert (
        "the filter has no measurement model for std_msgs/msg/String" in says
        and "origin of the world frame is the first fix" in says
    )
    assert "mounting positions and accuracies are assumed" in says
    found = read(tmp_path / "a.mcap")
    assert {s.type: len(s.records) for t, s in found.series.items() if t.startswith("/sensor/")} == {
        "imu": 1200, "ahrs": 1200, "dvl": 240, "pressure": 240, "gps": 240
    }  # fmt: skip
    receiver, _ = logs.instruments_of_type(found, "rov", "gps")["fix"]
    assert receiver.parameters.hacc == pytest.approx(2.0 * 2.0**0.5, rel=1e-5)
    ahrs = found.series["/sensor/rov/imu-data-ahrs"].records
    assert np.allclose(np.stack([ahrs["roll"], ahrs["pitch"]], 1), o.angles(o.t[1:])[0][:, :2], atol=1e-9)
    assert rms(found, "rov", selection=logs.Selection(use=("imu", "ahrs", "dvl", "pressure"))) < 0.5
    done = nav("score", tmp_path / "a.mcap", "--estimate", bag)
    assert isinstance(done.exception, LogError) and "several topics with poses: /dvl/odometry, /pose" in str(
        done.exception
    )


def test_mistakes_of_an_import(log: Log, tmp_path: Path) -> None:
    folder = tables(log, tmp_path / "sea")
    (tmp_path / "empty").mkdir()
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata/metadata.yaml").write_text("x: 1")
    (tmp_path / "wrong.xml").write_text("<wavesim/>")
    (tmp_path / "unknown.xml").write_text('<import><table file="a.csv" sensor="sonar"/></import>')
    (folder / "a.csv").write_text("t,x\n1,2\n")
    for source, options, says in (
        (tmp_path / "absent", [], "No such file"),
        (tmp_path / "empty", [], "neither a ROS 2 bag nor exported files of 'vehicle'; describe its files with --map"),
        (folder, [], "describe its files with --map"),
        (folder / "a.csv", [], "give the folder of a.csv"),
        (tmp_path / "metadata", [], "cannot read the bag"),
        (stored(log, tmp_path / "run.mcap"), [], "is already a WaVeSim log"),
        (folder, ["--map", tmp_path / "wrong.xml"], "the root element is <wavesim>, expected <import>"),
        (folder, ["--map", tmp_path / "unknown.xml"], "unknown type 'sonar' of 'sonar'"),
        (folder, ["--map", folder / "map.xml", "--truth", "/odom"], "has no topics"),
    ):
        done = nav("import", source, tmp_path / "out.mcap", *options)
        assert isinstance(done.exception, LogError | ConfigError) and says in str(done.exception), done.exception
        assert not (tmp_path / "out.mcap").exists()
    assert "must end in .mcap" in nav("import", folder, tmp_path / "out.csv").output
    head, *rows = (folder / "attitude.csv").read_text().splitlines()
    (folder / "attitude.csv").write_text(f"{head}\n")
    with pytest.raises(LogError, match="turn rates are missing: the filter needs an IMU or an AHRS"):
        import_log(folder, folder / "map.xml")
    (folder / "attitude.csv").write_text("\n".join([head, rows[0], "1,2,x,4,5,6,7"]))
    with pytest.raises(LogError, match=r"row 3 has no number in the column 'theta'"):
        import_log(folder, folder / "map.xml")


def recording(kind: str, o: Voyage, **changed: Any) -> InstrumentRecording:
    angles, k = o.angles(o.t)[0], slice(1, None)
    values = {
        "ahrs": {"roll": angles[k, 0], "pitch": angles[k, 1], "heading": angles[k, 2], "rates": o.w[k]},
        "imu": {"force": o.imu[:, 1:4], "rates": o.imu[:, 4:7]},
        "dvl": {"bottom": np.einsum("tji,tj->ti", o.R, o.v)[k]},
        "pressure": {"pressure": 10.1325 + o.p[k, 2]},
        "gps": {"latitude": np.full(len(o.t) - 1, 1.1), "longitude": np.full(len(o.t) - 1, 0.2)},
    }[kind]
    time = changed.pop("time", o.t[1:])
    return InstrumentRecording("unit", kind, time, {**values, **changed}, source="file")


def test_values_of_an_instrument_are_checked(o: Voyage) -> None:
    assert [recording(k, o).checked().notes for k in ("ahrs", "imu", "dvl", "pressure", "gps")] == [[]] * 5
    roll, pitch, heading = o.angles(o.t[1:])[0].T
    velocity, t = recording("dvl", o).values["bottom"], o.t[1:]
    jump = np.where(np.arange(len(t)) > 600, t - 3600.0, t)
    for kind, changed, says in (
        ("ahrs", {"roll": np.degrees(roll) + 5.0}, "roll of 'unit' reaches"),
        ("ahrs", {"heading": np.degrees(np.mod(heading, 2 * np.pi))}, "heading of 'unit' reaches"),
        ("ahrs", {"rates": np.degrees(o.w[1:]) * 10.0}, "state their unit (deg/s?)"),
        ("ahrs", {"time": jump}, "the clock of 'unit' jumps back by 3599.9 s after t = 60.100 s"),
        ("ahrs", {"time": np.ones(len(t))}, "all times of 'unit' are equal"),
        ("imu", {"force": o.imu[:, 1:4] / 9.80665}, "state its unit (g?)"),
        ("dvl", {"bottom": velocity * 1000.0}, "state their unit (mm/s? cm/s?)"),
        ("gps", {"latitude": np.full(len(t), 63.4)}, "latitude of 'unit' reaches 63.4 rad"),
    ):
        with pytest.raises(LogError) as error:
            recording(kind, o, **changed).checked()
        assert says in str(error.value)
    shuffled = t.copy()
    shuffled[[100, 101]] = shuffled[[101, 100]]
    for kind, changed, says in (
        ("ahrs", {"roll": pitch, "pitch": roll}, "roll changes like the turn rate about y: swapped columns?"),
        ("ahrs", {"rates": frd_to_flu(o.w[1:])}, "heading and the turn rate about z have opposite signs"),
        ("ahrs", {"time": np.where(t > 60.0, t + 300.0, t)}, "1 gap of 5.0 min after t = 60.000 s"),
        ("ahrs", {"time": shuffled}, "1 values were not in chronological order (by up to 0.100 s); they were sorted"),
        ("imu", {"force": o.imu[:, 1:4] + (0.0, 0.0, 9.81)}, "gravity removed?"),
        ("dvl", {"bottom": velocity[:, [1, 0, 2]]}, "the vehicle moves mostly to starboard"),
        ("pressure", {"pressure": o.p[1:, 2] - 15.0}, "it must be absolute"),
    ):
        notes = recording(kind, o, **changed).checked().notes
        assert any(says in note for note in notes), (says, notes)


def test_the_map_of_the_page(log: Log, tmp_path: Path, root: Path) -> None:
    """The example of docs/navigation.md reads tables whose depth is called z."""
    folder = tables(log, tmp_path / "sea")
    block, ranges = (b for b in page_blocks(root, "docs/navigation.md") if b.text.startswith("<import"))
    lines = [line.strip() for line in ranges.text.splitlines()]
    assert len(lines) == 3 and all(line in RANGED.format(unit="mm", other="b2") for line in lines[:2])
    (folder / "map.xml").write_text(block.text)
    for old, new in (("attitude", "ahrs"), ("speed", "dvl")):
        (folder / f"{old}.csv").rename(folder / f"{new}.csv")
    text = (folder / "depth.csv").read_text()
    (folder / "depth.csv").write_text(text.replace("depth", "z", 1))
    made = import_log(folder, folder / "map.xml")
    assert [r.type for r in made.recordings] == ["ahrs", "dvl", "pressure"] and made.unused == {}
    assert rms(made.log, "auv") < 1.5
