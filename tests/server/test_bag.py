"""A log as a ROS 2 bag, opened as a folder by rosbags and checked with SciPy's rotations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore
from scipy.spatial.transform import Rotation

from tests.conftest import wavesim
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig

KINDS = ("imu", "ahrs", "gps", "dvl", "pressure", "ctd")
FLEET = "<fleet><vehicle name='a' model='bluerov2' position='0 0 5 m'><sensors>{}</sensors></vehicle></fleet>".format(
    "".join(f"<{k} name='my-{k}'/>" for k in KINDS)
)
S, B = np.array([[0, 1, 0], [1, 0, 0], [0, 0, -1.0]]), np.diag([1.0, -1.0, -1.0])  #: NED to ENU, FRD to FLU
N = 20


@pytest.fixture
def log(tmp_path: Path, config: Callable[..., LoadedConfig]) -> tuple[Path, dict[str, Any]]:
    """Random motion and values; the second fix is invalid, and the third velocity has no lock."""
    rng = np.random.default_rng(4)
    writer = LogWriter(tmp_path / "a.mcap", config(FLEET), 5)
    writer.body(0, 0, "a", "bluerov2", "underwater", True)
    records: dict[str, Any] = {k: np.zeros(N, SENSORS[k].visible.dtype) for k in KINDS}
    records["state"] = np.zeros(N, STATE.dtype)
    for r in records.values():
        for name in r.dtype.names:
            if r.dtype[name].base.kind == "f":
                r[name] = rng.uniform(-1.0, 1.0, r[name].shape)
    records["state"]["q_WB"] /= np.linalg.norm(records["state"]["q_WB"], axis=1)[:, None]
    for kind in KINDS:
        records[kind]["valid"], records[kind]["time_ns"] = 1, np.arange(N) * 10**9 + 7
    records["gps"]["valid"][1], records["dvl"]["bottom"][2, 1] = 0, np.nan
    for k in range(N):
        for kind, r in records.items():
            rows = np.array([0]) if kind == "state" else np.array([[0, KINDS.index(kind)]])
            writer.table(k * 10**9 + 9, kind, rows, r[k : k + 1].tobytes())
    writer.close()
    return tmp_path / "a.mcap", records


def test_a_bag_is_read_with_all_its_axes(log: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """Fails with an axis of either frame turned, a quaternion in another order, or a stamp that is not the measurement's."""
    path, records = log
    done = wavesim("log", "export", path, "--rosbag", tmp_path / "bag")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Any]] = {}
    with AnyReader([tmp_path / "bag"], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        for c, time, raw in reader.messages():
            assert (time - round(EPOCH.timestamp()) * 10**9) % 10**9 == 9, "when it was there"
            found.setdefault(c.topic, []).append(reader.deserialize(raw, c.msgtype))
        assert {c.topic: c.msgcount for c in reader.connections} == {k: len(v) for k, v in found.items()}
    assert {k: len(v) for k, v in found.items()} == {
        "/a/odom": N,
        "/a/my-imu": N,
        "/a/my-ahrs": N,
        "/a/my-pressure": N,
        "/a/my-ctd": N,
        "/a/my-gps": N - 1,
        "/a/my-dvl": N - 1,
    }

    def vector(v: Any) -> Any:
        return np.array([v.x, v.y, v.z])

    def attitude(q: Any) -> Any:
        return Rotation.from_quat([q.x, q.y, q.z, q.w]).as_matrix()

    for o, r in zip(found["/a/odom"], records["state"], strict=True):
        assert (o.header.frame_id, o.child_frame_id) == ("map", "a/base_link")
        true = S @ Rotation.from_quat(r["q_WB"], scalar_first=True).as_matrix() @ B
        assert np.allclose(attitude(o.pose.pose.orientation), true) and o.header.stamp.nanosec == 9
        assert np.allclose(vector(o.pose.pose.position), S @ r["p_WB_W"])
        assert np.allclose(vector(o.twist.twist.linear), B @ r["v_WB_B"])
        assert np.allclose(vector(o.twist.twist.angular), B @ r["w_WB_B"])
    for m, r in zip(found["/a/my-imu"], records["imu"], strict=True):
        assert (m.header.frame_id, m.header.stamp.nanosec, m.orientation_covariance[0]) == ("a/my-imu", 7, -1.0)
        assert np.allclose(vector(m.linear_acceleration), B @ r["force"])
        assert np.allclose(vector(m.angular_velocity), B @ r["rates"])
    for m, r in zip(found["/a/my-ahrs"], records["ahrs"], strict=True):
        true = S @ Rotation.from_euler("ZYX", [r["heading"], r["pitch"], r["roll"]]).as_matrix() @ B
        assert np.allclose(attitude(m.orientation), true) and m.linear_acceleration_covariance[0] == -1.0
        assert m.header.frame_id == "a/base_link"
    for kind in ("pressure", "ctd"):
        pascal = [m.fluid_pressure for m in found[f"/a/my-{kind}"]]
        assert pascal == pytest.approx(1e4 * records[kind]["pressure"])
    fixes = np.array([(m.latitude, m.longitude, m.altitude) for m in found["/a/my-gps"]])
    good = records["gps"][records["gps"]["valid"] == 1]
    assert np.allclose(fixes.T, [np.degrees(good["latitude"]), np.degrees(good["longitude"]), good["height"]])
    velocity = np.array([vector(m.twist.twist.linear) for m in found["/a/my-dvl"]])
    assert np.allclose(velocity, np.delete(records["dvl"]["bottom"], 2, 0) @ B)


def test_a_bag_is_a_folder_of_its_own(log: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    for place, says in ((tmp_path, "already exists"), (log[0] / "bag", "cannot write")):
        done = wavesim("log", "export", log[0], "--rosbag", place)
        assert done.returncode == 6 and says in done.stderr and "Traceback" not in done.stderr, done.stderr
