"""Recordings with missing values: a gap in one quantity leaves the other quantities and the other times intact, and
measured values never become true ones.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

from tests.studies.test_estimate_score import csv, scored
from tests.studies.test_filter import voyage
from tests.studies.voyage import logged
from wavesim_sdk import frames
from wavesim_sdk.errors import ConfigError
from wavesim_studies.navigation import ahrs_motion, cli, logs, measurement_models
from wavesim_studies.navigation.foreign_logs import ImportedLog, import_log, write_log
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_studies.navigation.track_files import read_track
from wavesim_studies.navigation.true_states import with_truth

pytestmark = [pytest.mark.xdist_group("navigation")]
T = np.arange(0.0, 60.0, 0.1)  #: s
NAN = np.full(len(T), np.nan)
#: a vehicle that sails north at 1 m/s and at a depth of 5 m, and rolls
SAILING: dict[str, dict[str, Any]] = {
    "ahrs": {"roll": 0.1 * np.sin(T), "pitch": 0.0 * T, "heading": 0.0 * T},
    "dvl": {"v_x": 1.0 + 0.0 * T, "v_y": 0.0 * T, "v_z": 0.0 * T},
    "pressure": {"pressure": 15.2 + 0.0 * T},
    "gps": {"latitude": 0.7 + T / 6.371e6, "longitude": 0.1 + 0.0 * T, "altitude": 45.0 + 0.0 * T},
}


def missing(x: Any, *at: int) -> Any:
    """Return values of which some are missing."""
    found = np.array(x, float)
    found[list(at)] = np.nan
    return found


def recorded(folder: Path, truth: dict[str, Any] | None = None, **changed: dict[str, Any]) -> ImportedLog:
    """Return the import of CSV files of the vehicle, of which some columns are changed."""
    tables = {name: values | changed.get(name, {}) for name, values in SAILING.items()}
    if truth is not None:
        tables["truth"] = {"north": T, "east": 0.0 * T} | truth
    for name, values in tables.items():
        csv(folder / f"{name}.csv", time=T, **values)
    rows = "".join(f'<table file="{name}.csv" sensor="{name}"/>' for name in tables)
    (folder / "map.xml").write_text(f'<import vehicle="auv" origin="0.7 0.1 rad">{rows}</import>')
    return import_log(folder, folder / "map.xml")


def notes(made: ImportedLog, name: str) -> list[str]:
    return next(r.notes for r in made.recordings if r.name == name)


def test_fixes_without_a_height(tmp_path: Path) -> None:
    """They measure the horizontal position only, however accurate the height of the receiver is said to be."""
    made = recorded(tmp_path, {"down": 5.0 + 0.0 * T}, gps={"altitude": missing(SAILING["gps"]["altitude"], *range(9))})
    case = logs.estimation_case(made.log, "auv")
    rows = case.rows[case.rows[:, measurement_models.KIND] == measurement_models.POSITION]
    assert sorted(rows[:, measurement_models.M]) == [2.0] * 8 + [3.0] * 591, "all fixes after the first"
    taken = logs.counts(case, case.run())["gps"]
    assert taken["taken"] == 599 and taken["raw"] < 0.1 and notes(made, "gps") == []
    csv(tmp_path / "gps.csv", time=T, latitude=SAILING["gps"]["latitude"], longitude=SAILING["gps"]["longitude"])
    case = logs.estimation_case(import_log(tmp_path, tmp_path / "map.xml").log, "auv")
    assert (
        case.rows[case.rows[:, measurement_models.KIND] == measurement_models.POSITION, measurement_models.M] == 2
    ).all()


def test_one_missing_cell_costs_one_value(tmp_path: Path) -> None:
    """Of each instrument, one cell is empty; the first fix as well, at which the origin could be."""
    turning = np.stack([0.1 * np.cos(T), 0.0 * T, 0.0 * T])
    made = recorded(
        tmp_path,
        ahrs={
            "roll": missing(SAILING["ahrs"]["roll"], 100),
            **{f"rates_{axis}": missing(turning[k], 300) for k, axis in enumerate("xyz")},
        },
        dvl={"v_y": missing(SAILING["dvl"]["v_y"], 200)},
        pressure={"depth": NAN, "pressure": missing(SAILING["pressure"]["pressure"], 5)},
        gps={"latitude": missing(SAILING["gps"]["latitude"], 0)},
    )
    found = {r.name: made.log.series[f"/sensor/auv/{r.name}"].records for r in made.recordings}
    assert {k: int(r["valid"].sum()) for k, r in found.items()} == {
        "ahrs": 599,
        "dvl": 600,
        "pressure": 599,
        "gps": 599,
    }
    assert np.isfinite(found["ahrs"]["rates"]).all() and np.allclose(
        found["ahrs"]["rates"].T[0], np.delete(turning[0], 100), atol=1e-3
    )
    omitted = "1 of 600 values were omitted: numbers are missing or invalid"
    assert notes(made, "ahrs") == [omitted, "1 of 599 turn rates are missing; they are computed from the angles"]
    assert notes(made, "pressure") == notes(made, "gps") == [omitted]
    assert notes(made, "dvl") == ["1 of 600 values have no velocity over the bottom"]
    made = recorded(tmp_path, {}, dvl={"v_y": missing(SAILING["dvl"]["v_y"], 200)})
    case = logs.estimation_case(made.log, "auv", without=("gps",))
    assert case.score(case.run()).rms < 5.0, "the incomplete velocity is not used"
    with pytest.raises(ValueError, match="`angles` must be finite"):
        ahrs_motion(T, np.stack([missing(T, 3) * 0.0, 0.0 * T, 0.0 * T], axis=1))
    made = recorded(tmp_path, gps={"latitude": NAN})
    assert made.unused == {"gps": "no valid values"}


def test_measured_values_are_not_true_ones(tmp_path: Path) -> None:
    """A survey without attitudes and depths: AHRS and pressure sensor start the filter, but no error refers to them."""
    made = recorded(tmp_path, {})
    write_log(made, tmp_path / "sea.mcap")
    estimate = csv(tmp_path / "e.csv", time=T, north=T, east=0.0 * T, down=9.0 + 0.0 * T, heading=0.3 + 0.0 * T)
    (found,) = scored(tmp_path / "sea.mcap", "--estimate", estimate).values()
    assert found["heading_rms"] is None and found["depth_rms"] is None and found["rms"] < 1e-6
    true = read_track(made.log, body="auv", true=True)
    assert true.q is None and true.v is None and np.isnan(true.p[:, 2]).all()


def test_invalid_values_are_not_true_states() -> None:
    log = logged(voyage(60.0, 10.0, leg=40.0))
    series = dict(log.series)
    for name, field, wrong in (("ahrs", "heading", np.nan), ("ahrs", "roll", 3.0)):
        records = series[f"/sensor/auv/{name}"].records.copy()
        records[field][:50], records["valid"][:50] = wrong, 0
        series[f"/sensor/auv/{name}"] = replace(series[f"/sensor/auv/{name}"], records=records)
    state = log.series["/state/auv"]
    t, p = state.time_ns * 1e-9, state.records["p_WB_W"] * (1.0, 1.0, np.nan)
    broken = replace(log, series=series, json=log.json)
    made = with_truth(broken, "auv", PoseTrack("survey", t, p)).series["/state/auv"].records
    roll = frames.euler(made["q_WB"])[:, 0]
    assert np.isfinite(made["q_WB"]).all() and np.abs(roll).max() < 0.5


def test_poses_with_missing_values(tmp_path: Path) -> None:
    """A few incomplete poses are omitted; a quantity that most poses lack is not used."""
    whole = {"time": T, "north": T, "east": 0.0 * T, "down": 5.0 + 0.0 * T, "heading": 0.0 * T}
    track = read_track(
        csv(tmp_path / "a.csv", **whole | {"down": missing(whole["down"], 7), "heading": missing(T * 0, 9)})
    )
    assert len(track.time) == 598 and track.q is not None and np.isfinite(track.q).all() and np.isfinite(track.p).all()
    assert track.notes == (
        "1 poses without a valid depth were omitted",
        "1 poses without a valid attitude were omitted",
    )
    most = range(400)
    track = read_track(
        csv(tmp_path / "b.csv", **whole | {"down": missing(whole["down"], *most), "heading": missing(T * 0, *most)})
    )
    assert len(track.time) == 600 and track.q is None and np.isnan(track.p[:, 2]).all()
    assert track.notes[0] == "400 of 600 poses have no valid depth; the depths are not used"
    made = recorded(tmp_path, {"down": missing(whole["down"], 7)})
    assert "truth: 1 poses without a valid depth were omitted" in made.notes


# ------------------------------------------------------------------ bags


def bag(folder: Path, **changed: Any) -> Path:
    """A bag of a vehicle that turns at 0.1 rad/s. Each message is changed by a function of its number."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    types: Any = store.types
    kinds = {"/imu": "sensor_msgs/msg/Imu", "/dvl": "geometry_msgs/msg/TwistStamped", "/say": "std_msgs/msg/Header"}
    with Writer(folder, version=9) as writer:
        topics = {k: writer.add_connection(k, v, typestore=store) for k, v in kinds.items()}

        def vector(x: float, y: float, z: float) -> Any:
            return types["geometry_msgs/msg/Vector3"](x, y, z)

        for k in range(200):
            t, yaw = 0.1 * (k + 1), 0.01 * k
            header = types["std_msgs/msg/Header"](
                types["builtin_interfaces/msg/Time"](*divmod(round(t * 1e9), 10**9)), "x"
            )
            imu = {
                "orientation": types["geometry_msgs/msg/Quaternion"](0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)),
                "orientation_covariance": np.zeros(9),
                "angular_velocity": vector(0.0, 0.0, 0.1),
                "angular_velocity_covariance": np.zeros(9),
                "linear_acceleration": vector(0.0, 0.0, 9.8),
                "linear_acceleration_covariance": np.zeros(9),
            }
            imu |= {name: change(k, imu[name]) for name, change in changed.items()}
            twist = types["geometry_msgs/msg/Twist"](vector(1.0, 0.0, 0.0), vector(0.0, 0.0, 0.0))
            for topic, message in (
                ("/imu", types[kinds["/imu"]](header, **imu)),
                ("/dvl", types[kinds["/dvl"]](header, twist)),
                ("/say", header),
            ):
                writer.write(topics[topic], round(t * 1e9), store.serialize_cdr(message, kinds[topic]))
    return folder


def absent(_number: int, _value: Any) -> Any:
    """Return the covariance of a quantity that a driver does not measure."""
    return np.array([-1.0, *[0.0] * 8])


def test_an_imu_message_without_gyros(tmp_path: Path) -> None:
    """Its AHRS turns as its angles do, and not at 0 rad/s; no IMU is made of the accelerations alone."""
    for k, changed in enumerate(
        (
            {"angular_velocity_covariance": absent},
            {"angular_velocity": lambda _, v: type(v)(0.0, 0.0, 0.0)},
            {"angular_velocity": lambda _, v: type(v)(float("nan"), 0.0, 0.0)},
        )
    ):
        made = import_log(bag(tmp_path / str(k), **changed))
        (ahrs,) = [r for r in made.recordings if r.type != "dvl"]
        rates = made.log.series["/sensor/vehicle/imu"].records["rates"]
        assert ahrs.type == "ahrs" and np.allclose(rates[:, 2], -0.1, atol=1e-6), "down is the opposite of up"
        assert "turn rates are missing; they are computed from the angles" in ahrs.notes
        assert "the accelerations are not used: the messages contain no turn rates" in ahrs.notes
    first = {"orientation_covariance": lambda k, c: absent(k, c) if k < 20 else c}
    made = import_log(bag(tmp_path / "later", **first))
    assert {r.type: len(r.time) for r in made.recordings} == {"imu": 200, "ahrs": 180, "dvl": 200}


def mapped(source: Path, topics: str, **options: Any) -> ImportedLog:
    (source.parent / "map.xml").write_text(f"<import>{topics}</import>")
    return import_log(source, source.parent / "map.xml", **options)


def test_types_and_names_of_topics(tmp_path: Path) -> None:
    source = bag(tmp_path / "bag")

    def found(topics: str) -> dict[str, str]:
        return {r.name: r.type for r in mapped(source, topics).recordings}

    assert found("") == {"imu": "imu", "imu-ahrs": "ahrs", "dvl": "dvl"}
    assert found('<topic name="/imu" sensor="xsens"/>') == {"xsens": "imu", "xsens-ahrs": "ahrs", "dvl": "dvl"}
    assert found('<topic name="/imu" sensor="xsens" type="ahrs"/>') == {"xsens": "ahrs", "dvl": "dvl"}
    assert found('<topic name="/imu" type="imu"/>') == {"imu": "imu", "dvl": "dvl"}
    assert found('<topic name="/dvl" type="speedlog"/>') == {"imu": "imu", "imu-ahrs": "ahrs", "dvl": "speedlog"}
    for topic, says in (
        ('name="/dvl" type="imu"', "geometry_msgs/msg/TwistStamped contains values of the types dvl, speedlog"),
        ('name="/dvl" type="gps"', "topic '/dvl' cannot have the type 'gps'"),
        ('name="/imu" type="pressure"', "sensor_msgs/msg/Imu contains values of the types imu, ahrs"),
        ('name="/say" type="dvl"', "the filter has no measurement model for std_msgs/msg/Header"),
    ):
        with pytest.raises(ConfigError) as error:
            mapped(source, f"<topic {topic}/>")
        assert says in str(error.value) and "map.xml:1: " in str(error.value)
    done = CliRunner().invoke(
        cli.nav, ["import", str(source), str(tmp_path / "x.mcap"), "--map", str(tmp_path / "map.xml")]
    )
    assert isinstance(done.exception, ConfigError) and done.exception.exit_code == 2


def test_two_recordings_of_one_instrument(tmp_path: Path) -> None:
    """They do not overwrite each other; a name in the map comes first."""
    made = recorded(tmp_path)
    (tmp_path / "auv.xml").write_text(made.loaded.text)
    text = (tmp_path / "map.xml").read_text()
    csv(tmp_path / "other.csv", time=T, v_x=2.0 + 0.0 * T, v_y=0.0 * T, v_z=0.0 * T)
    other = '<table file="other.csv" sensor="other" type="dvl"/>'
    (tmp_path / "map.xml").write_text(text.replace('<table file="dvl.csv"', other + '<table file="dvl.csv"'))
    made = import_log(tmp_path, tmp_path / "map.xml", configuration=tmp_path / "auv.xml")
    (why,) = made.unused.values()
    assert (
        why.startswith("'dvl' already has the values of")
        and (made.log.series["/sensor/auv/dvl"].records["bottom"][:, 0] == 1.0).all()
    )
