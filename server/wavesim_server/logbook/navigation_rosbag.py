"""Export of a log as a rosbag2 folder of standard ROS 2 navigation messages.

Axes follow REP 103. World axes are east, north, up, from the origin of the world; body axes are forward, left, up. The
true motion is exported as Odometry (`/NAME/odom`, frames `map` and `NAME/base_link`). Instruments keep their own axes
(forward, left, up as mounted, frame `NAME/INSTRUMENT`). Their values are exported as:

- Imu: IMUs (without attitude), and attitude references (in `NAME/base_link`, without acceleration)
- FluidPressure (Pa, absolute): pressure sensors and CTDs
- NavSatFix: satellite receivers
- TwistWithCovarianceStamped: Doppler logs (velocity over the bottom; omitted without bottom lock)

Stamps are the measurement times; bag times are the times at which the values became available. Covariances are marked
as unknown in the way that each message defines: as zeros, or as -1 for quantities that are not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer

from wavesim_sdk.epoch import EPOCH, unix
from wavesim_sdk.errors import LogError
from wavesim_sdk.frames import quaternion
from wavesim_sdk.log import Log, read
from wavesim_sdk.log_tables import UNKNOWN_TRUTH
from wavesim_server.logbook.sonar_rosbag import CdrWriter, message_definition

#: time at which the message became available (simulation time in ns), and the message itself
Message = tuple[int, bytes]
_HALF = math.sqrt(0.5)
_UNKNOWN_COVARIANCE = (-1.0, *[0.0] * 8)  #: covariance that marks a quantity as not measured
IMU, ODOMETRY, TWIST = (
    "sensor_msgs/msg/Imu",
    "nav_msgs/msg/Odometry",
    "geometry_msgs/msg/TwistWithCovarianceStamped",
)
PRESSURE, FIX = "sensor_msgs/msg/FluidPressure", "sensor_msgs/msg/NavSatFix"
_VECTOR, _TWIST = "geometry_msgs/Vector3", "geometry_msgs/Twist"
SCHEMAS = {
    IMU: message_definition(
        "geometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n"
        "float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance",
        "geometry_msgs/Quaternion",
        _VECTOR,
    ),
    ODOMETRY: message_definition(
        "string child_frame_id\ngeometry_msgs/PoseWithCovariance pose\ngeometry_msgs/TwistWithCovariance twist",
        "geometry_msgs/PoseWithCovariance",
        "geometry_msgs/Pose",
        "geometry_msgs/Point",
        "geometry_msgs/Quaternion",
        "geometry_msgs/TwistWithCovariance",
        _TWIST,
        _VECTOR,
    ),
    TWIST: message_definition(
        "geometry_msgs/TwistWithCovariance twist", "geometry_msgs/TwistWithCovariance", _TWIST, _VECTOR
    ),
    PRESSURE: message_definition("float64 fluid_pressure\nfloat64 variance"),
    FIX: message_definition(
        "sensor_msgs/NavSatStatus status\nfloat64 latitude\nfloat64 longitude\nfloat64 altitude\nfloat64[9] position_covariance\n"
        "uint8 position_covariance_type",
        "sensor_msgs/NavSatStatus",
    ),
}


def _begin_message(time_ns: int, frame: str) -> CdrWriter:
    out = CdrWriter()
    out.add("I", *unix(time_ns))
    out.text(frame)
    return out


def _frd_to_flu(v: Any) -> tuple[float, float, float]:
    """Convert a vector from forward, starboard, down to forward, left, up."""
    return float(v[0]), -float(v[1]), -float(v[2])


def _ned_to_enu_quaternion(q: Any) -> tuple[float, float, float, float]:
    """Convert an attitude quaternion from FRD-to-NED, ordered (w, x, y, z), to FLU-to-ENU, ordered (x, y, z, w)."""
    w, x, y, z = map(float, q)
    return _HALF * (x + y), _HALF * (x - y), _HALF * (w - z), _HALF * (w + z)


def _odometry(body: str, r: Any, time_ns: int) -> bytes:
    out = _begin_message(time_ns, "map")
    out.text(f"{body}/base_link")
    north, east, down = map(float, r["p_WB_W"])
    out.add("d", east, north, -down, *_ned_to_enu_quaternion(r["q_WB"]), *[0.0] * 36)
    out.add("d", *_frd_to_flu(r["v_WB_B"]), *_frd_to_flu(r["w_WB_B"]), *[0.0] * 36)
    return out.message


def _imu(body: str, name: str, r: Any) -> bytes:
    out = _begin_message(r["time_ns"], f"{body}/{name}")
    out.add("d", 0.0, 0.0, 0.0, 1.0, *_UNKNOWN_COVARIANCE)
    out.add("d", *_frd_to_flu(r["rates"]), *[0.0] * 9, *_frd_to_flu(r["force"]), *[0.0] * 9)
    return out.message


def _ahrs(body: str, _name: str, r: Any) -> bytes:
    out = _begin_message(r["time_ns"], f"{body}/base_link")
    out.add(
        "d", *_ned_to_enu_quaternion(quaternion(float(r["roll"]), float(r["pitch"]), float(r["heading"]))), *[0.0] * 9
    )
    out.add("d", *_frd_to_flu(r["rates"]), *[0.0] * 9, 0.0, 0.0, 0.0, *_UNKNOWN_COVARIANCE)
    return out.message


def _pressure(body: str, name: str, r: Any) -> bytes:
    out = _begin_message(r["time_ns"], f"{body}/{name}")
    out.add("d", 1e4 * float(r["pressure"]), 0.0)
    return out.message


def _fix(body: str, name: str, r: Any) -> bytes:
    out = _begin_message(r["time_ns"], f"{body}/{name}")
    out.add("b", 0)
    out.add("H", 1)
    out.add("d", *(math.degrees(float(r[k])) for k in ("latitude", "longitude")), float(r["height"]), *[0.0] * 9)
    out.add("B", 0)
    return out.message


def _dvl_twist(body: str, name: str, r: Any) -> bytes | None:
    if not np.isfinite(r["bottom"]).all():
        return None
    unknown = np.zeros((6, 6))
    unknown[3, 3] = -1.0
    out = _begin_message(r["time_ns"], f"{body}/{name}")
    out.add("d", *_frd_to_flu(r["bottom"]), 0.0, 0.0, 0.0, *unknown.ravel())
    return out.message


#: for each instrument type, the message type and the function that creates the message from (body, instrument, record)
INSTRUMENTS: dict[str, tuple[str, Callable[[str, str, Any], bytes | None]]] = {
    "imu": (IMU, _imu),
    "ahrs": (IMU, _ahrs),
    "pressure": (PRESSURE, _pressure),
    "ctd": (PRESSURE, _pressure),
    "gps": (FIX, _fix),
    "dvl": (TWIST, _dvl_twist),
}


def _topics(log: Log) -> Iterator[tuple[str, str, list[Message]]]:
    """Yield the name, the type and the messages of each topic that can be exported."""
    for topic, series in sorted(log.series.items()):
        if topic.startswith("/state/") and not log.metadata.get(
            UNKNOWN_TRUTH
        ):  # an odometry message needs a whole pose
            body = topic.removeprefix("/state/")
            times = series.time_ns.tolist()
            yield (
                f"/{body}/odom",
                ODOMETRY,
                [(t, _odometry(body, r, t)) for t, r in zip(times, series.records, strict=True)],
            )
    for kind, (type_, make) in INSTRUMENTS.items():
        for (body, name), series in sorted(log.by_type(kind).items()):
            good = series.records["valid"] == 1
            made = (
                (t, make(body, name, r))
                for t, r in zip(series.time_ns[good].tolist(), series.records[good], strict=True)
            )
            yield f"/{body}/{name}", type_, [(t, m) for t, m in made if m is not None]


def write_rosbag(log: Path | Log, folder: Path) -> Iterator[tuple[str, int]]:
    """Write a log as a new rosbag2 folder (MCAP, metadata.yaml) and yield the name and the number of messages of each
    topic.
    """
    found = [(topic, type_, messages) for topic, type_, messages in _topics(read(log)) if messages]
    every = sorted(
        ((time, k, message) for k, (_, _, messages) in enumerate(found) for time, message in messages),
        key=lambda m: m[:2],
    )
    if not every:
        raise LogError(f"{log} has no data that can be exported to a bag")
    start = round(EPOCH.timestamp()) * 10**9
    name = f"{folder.name}_0.mcap"
    try:
        folder.mkdir(parents=True)
        with (folder / name).open("wb") as file:
            writer = Writer(file, compression=CompressionType.ZSTD)
            writer.start(profile="ros2", library="wavesim")
            schemas = {
                t: writer.register_schema(t, "ros2msg", SCHEMAS[t].encode()) for t in sorted({f[1] for f in found})
            }
            channels = [writer.register_channel(topic, "cdr", schemas[type_]) for topic, type_, _ in found]
            for number, (time, k, message) in enumerate(every, 1):
                writer.add_message(channels[k], start + time, message, start + time, number)
            writer.finish()  # type: ignore[no-untyped-call]  # mcap has no type annotations
        (folder / "metadata.yaml").write_text(_metadata(name, found, start + every[0][0], every[-1][0] - every[0][0]))
    except FileExistsError:
        raise LogError(f"{folder} already exists; a bag needs a new folder") from None
    except OSError as error:
        raise LogError(f"cannot write {folder}: {error.strerror}") from None
    for topic, _, messages in found:
        yield topic, len(messages)


def _metadata(name: str, found: list[tuple[str, str, list[Message]]], start: int, duration: int) -> str:
    """Return the content of metadata.yaml in the format of rosbag2 version 5."""
    count = sum(len(messages) for _, _, messages in found)
    times = f"starting_time:\n{{0}}  nanoseconds_since_epoch: {start}\n{{0}}duration:\n{{0}}  nanoseconds: {duration}\n"
    lines = [
        "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n  ",
        times.format("  "),
        f"  message_count: {count}\n  topics_with_message_count:\n",
    ]
    for topic, type_, messages in found:
        lines.append(
            f"    - topic_metadata:\n        name: {topic}\n        type: {type_}\n        serialization_format: cdr\n"
            f'        offered_qos_profiles: ""\n      message_count: {len(messages)}\n'
        )
    lines.append(
        f'  compression_format: ""\n  compression_mode: ""\n  relative_file_paths:\n    - {name}\n  files:\n    - path: {name}\n      '
        + times.format("      ")
        + f"      message_count: {count}\n"
    )
    return "".join(lines)
