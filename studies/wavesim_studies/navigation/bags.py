"""Reader for ROS 1 and ROS 2 bags: it converts pose messages to tracks, and messages from instruments to recordings.

Positions and attitudes in ROS are ENU and FLU (REP 103), and `linear_acceleration` is the specific force (REP 145).
With the frame `ned`, the messages are interpreted as NED and FRD.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import axes, frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.names import suggest_name
from wavesim_studies.navigation.clock_checks import check_clock
from wavesim_studies.navigation.import_map import ImportedTopic
from wavesim_studies.navigation.pose_tracks import PoseTrack, pose_track
from wavesim_studies.navigation.recordings import InstrumentRecording
from wavesim_world.config.validation import fail_at

#: message types with a pose
POSES = ("nav_msgs/msg/Odometry", "geometry_msgs/msg/PoseWithCovarianceStamped", "geometry_msgs/msg/PoseStamped")
LATE_S = 0.5  #: median delay in s of the reception after the stamp, above which the delay is reported


@dataclass
class TopicRecording:
    """Messages of one topic: stamps and times of reception in s, and rows of numbers."""

    name: str
    type: str
    stamps: list[float] = field(default_factory=list)
    received: list[float] = field(default_factory=list)
    rows: list[tuple[float, ...]] = field(default_factory=list)

    def times(self) -> tuple[Floats, list[str]]:
        """Return the times (T) in s of the measurements, and notes about the clocks."""
        stamps, received = np.array(self.stamps), np.array(self.received)
        if not stamps.any():
            return received, ["the stamps are 0; the times of reception are used"]
        check_clock(self.name, self.name, stamps, received)
        late = float(np.median(received - stamps))
        if abs(late) > LATE_S:
            return stamps, [f"messages were received {late:.3f} s after their stamps (median); the stamps are used"]
        return stamps, []


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a bag. Raise LogError if it cannot be opened."""
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise LogError("rosbags is not installed; run pip install 'wavesim[studies,rosbag]'") from None
    if path.is_dir() and not (path / "metadata.yaml").exists():
        raise LogError(f"{path} is not a ROS 2 bag: it has no metadata.yaml; for a CSV file, give the file itself")
    if not path.exists():
        raise LogError(f"cannot read {path}: No such file or directory")
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            yield reader
    except LogError:
        raise
    except (AnyReaderError, OSError) as error:
        raise LogError(f"cannot read the bag {path}: {error}") from None
    except Exception as error:  # rosbags passes on errors of its parsers, such as struct.error
        raise LogError(f"cannot read the bag {path}: {type(error).__name__}: {error}") from None


def _vector(v: Any) -> tuple[float, float, float]:
    return v.x, v.y, v.z


def _quaternion(q: Any) -> tuple[float, float, float, float]:
    return q.w, q.x, q.y, q.z


def _pose(m: Any) -> tuple[float, ...]:
    """Return the position, the attitude and the horizontal covariance (xx, xy, yy) of a message with a pose."""
    pose, covariance = m.pose, (0.0, 0.0, 0.0)
    if hasattr(pose, "covariance"):
        covariance = float(pose.covariance[0]), float(pose.covariance[1]), float(pose.covariance[7])
        pose = pose.pose
    return (*_vector(pose.position), *_quaternion(pose.orientation), *covariance)


def _twist(m: Any) -> tuple[float, ...]:
    """Return the linear velocity and its mean variance of a message with a twist."""
    twist, variance = m.twist, 0.0
    if hasattr(twist, "covariance"):
        variance, twist = float(np.mean([twist.covariance[k] for k in (0, 7, 14)])), twist.twist
    return (*_vector(twist.linear), variance)


NONE = (float("nan"),) * 4


def _imu(m: Any) -> tuple[float, ...]:
    """Return the attitude, the turn rates, the specific force and the variance of the heading; NaN = not measured."""
    known = [float(c[0]) != -1.0 for c in (m.orientation_covariance, m.angular_velocity_covariance)]
    forced = float(m.linear_acceleration_covariance[0]) != -1.0
    q = _quaternion(m.orientation)
    return (
        *(q if known[0] and abs(sum(x * x for x in q) - 1.0) < 0.02 else NONE),
        *(_vector(m.angular_velocity) if known[1] else NONE[:3]),
        *(_vector(m.linear_acceleration) if forced else NONE[:3]),
        float(m.orientation_covariance[8]),
    )


def _pressure(m: Any) -> tuple[float, ...]:
    return float(m.fluid_pressure), float(m.variance)


def _fix(m: Any) -> tuple[float, ...]:
    c, known = m.position_covariance, m.position_covariance_type > 0
    variance = 0.5 * float(c[0] + c[4]) if known else 0.0
    place = (m.latitude, m.longitude, m.altitude) if m.status.status >= 0 else NONE[:3]
    return (*place, variance)


#: for each message type with values of an instrument: the function that returns these values
READERS: dict[str, Callable[[Any], tuple[float, ...]]] = {
    "sensor_msgs/msg/Imu": _imu,
    "sensor_msgs/msg/FluidPressure": _pressure,
    "sensor_msgs/msg/NavSatFix": _fix,
    "geometry_msgs/msg/TwistWithCovarianceStamped": _twist,
    "geometry_msgs/msg/TwistStamped": _twist,
}
#: for each message type that an import map can name: the types of instruments that it can contain, first the default
TYPES = {
    "sensor_msgs/msg/Imu": ("", "imu", "ahrs"),
    "sensor_msgs/msg/FluidPressure": ("pressure", "ctd"),
    "sensor_msgs/msg/NavSatFix": ("gps",),
    "geometry_msgs/msg/TwistWithCovarianceStamped": ("dvl", "speedlog"),
    "geometry_msgs/msg/TwistStamped": ("dvl", "speedlog"),
    POSES[0]: ("dvl", "speedlog"),
}


def _read(
    path: Path, wanted: Callable[[str, str], Callable[[Any], tuple[float, ...]] | None]
) -> tuple[dict[str, TopicRecording], dict[str, str]]:
    """Return the topics for which ``wanted`` returns a reader, and the types of all other topics."""
    found: dict[str, TopicRecording] = {}
    with opened(path) as reader:
        readers = {c.id: wanted(c.topic, c.msgtype) for c in reader.connections}
        others = {c.topic: c.msgtype for c in reader.connections if readers[c.id] is None}
        chosen = [c for c in reader.connections if readers[c.id] is not None]
        for connection, received, raw in reader.messages(connections=chosen) if chosen else ():
            message = reader.deserialize(raw, connection.msgtype)
            topic = found.setdefault(connection.topic, TopicRecording(connection.topic, connection.msgtype))
            stamp = message.header.stamp
            topic.stamps.append(stamp.sec + stamp.nanosec * 1e-9)
            topic.received.append(received * 1e-9)
            topic.rows.append(readers[connection.id](message))  # type: ignore[misc]  # chosen topics have a reader
    return found, others


def topics_of(path: Path) -> dict[str, str]:
    """Return the message type of each topic in a bag."""
    with opened(path) as reader:
        return {c.topic: c.msgtype for c in reader.connections}


def read_pose_track(path: Path, topic: str = "", frame: str = "enu") -> PoseTrack:
    """Return the track that a topic of a bag contains. ``topic`` may be empty if only one topic has poses."""
    having = {name: type_ for name, type_ in topics_of(path).items() if type_ in POSES}
    if not having:
        raise LogError(f"{path} has no topic with poses (types: {', '.join(POSES)})")
    if not topic and len(having) > 1:
        raise LogError(
            f"{path} has several topics with poses: {', '.join(having)}; select one with --layout topic=NAME"
        )
    name = topic or next(iter(having))
    if name not in having:
        raise LogError(f"{path} has no poses on the topic '{name}'{suggest_name(name, having)}")
    twisted = having[name] == POSES[0]

    def rows(m: Any) -> tuple[float, ...]:
        motion = (*_vector(m.twist.twist.linear), *_vector(m.twist.twist.angular)) if twisted else ()
        return (*_pose(m), *motion)

    found, _ = _read(path, lambda there, _type: rows if there == name else None)
    if name not in found:
        raise LogError(f"{path}: the topic '{name}' has no messages")
    time, notes = found[name].times()
    table = np.array(found[name].rows)
    covariance = table[:, [7, 8, 8, 9]].reshape(-1, 2, 2)
    known = (covariance[:, 0, 0] > 0.0).all() and (covariance[:, 1, 1] > 0.0).all()
    motion: tuple[Any, Any] = (None, None)
    if twisted:
        v, w = table[:, 10:13], table[:, 13:16]
        motion = (axes.frd_to_flu(v), axes.frd_to_flu(w)) if frame == "enu" else (v, w)
    label = path.name if len(having) == 1 else name
    track = pose_track(label, time, table[:, :3], table[:, 3:7], frame, covariance if known else None, motion)
    return PoseTrack(**{**track.__dict__, "notes": (*track.notes, *notes)})


# ------------------------------------------------------------------ instruments


def read_instruments(
    path: Path, vehicle: str, listed: Sequence[ImportedTopic], frame: str, skip: Collection[str]
) -> tuple[list[InstrumentRecording], dict[str, str]]:
    """Return the instruments in a bag, and the reason for each topic that is not used.

    ``listed`` contains the topics of an import map, and ``skip`` contains topics that are not used. If some topics begin
    with the name of the vehicle, the other topics are not used. Raise ConfigError if the map gives a topic a type that
    its messages do not contain.
    """
    there = topics_of(path)
    plan = {topic.name: topic for topic in listed}
    for topic in listed:
        _check_topic(path, topic, there)
    prefix = f"/{vehicle}/" if any(t.startswith(f"/{vehicle}/") for t in there) else "/"

    def wanted(topic: str, type_: str) -> Callable[[Any], tuple[float, ...]] | None:
        if topic in plan:
            return READERS.get(type_, _twist if type_ == POSES[0] else None)
        return READERS.get(type_) if topic.startswith(prefix) and topic not in skip else None

    found, others = _read(path, wanted)
    unused = {}
    for name, type_ in others.items():
        if name in skip:
            continue
        if type_ in POSES:
            unused[name] = "a pose: use it as the truth (--truth) or score it (wavesim nav score --estimate)"
        elif type_ in READERS:
            unused[name] = f"it does not belong to '{vehicle}'"
        else:
            unused[name] = f"the filter has no measurement model for {type_}"
    recordings = []
    for one in found.values():
        usual = one.name.removeprefix(prefix).strip("/").replace("/", "-")[:31]
        chosen = plan.get(one.name)
        made = _recordings(one, (chosen and chosen.sensor) or usual, chosen.type if chosen else "", frame)
        if not made:
            unused[one.name] = "no valid values"
        recordings += made
    for name, type_ in there.items():
        if name not in found and name not in others:
            unused[name] = f"no messages ({type_})"
    return recordings, unused


def _check_topic(path: Path, topic: ImportedTopic, there: dict[str, str]) -> None:
    """Raise LogError if a bag lacks a topic of an import map, and ConfigError if its messages have another type."""
    if topic.name not in there:
        raise LogError(f"{path} has no topic '{topic.name}'{suggest_name(topic.name, there)}")
    message = there[topic.name]
    if topic.type and topic.type not in (allowed := TYPES.get(message, ())):
        able = f"{message} contains values of the types {', '.join(filter(None, allowed))}"
        why = able if allowed else f"the filter has no measurement model for {message}"
        fail_at(topic.place, f"topic '{topic.name}' cannot have the type '{topic.type}': {why}")


def _recordings(topic: TopicRecording, name: str, type_: str, frame: str) -> list[InstrumentRecording]:
    time, notes = topic.times()
    table = np.array(topic.rows)
    kind = type_ or TYPES[topic.type][0]
    body = axes.frd_to_flu if frame == "enu" else np.asarray
    values: dict[str, Any]
    if topic.type == "sensor_msgs/msg/Imu":
        return _of_imu(InstrumentRecording(name, kind, time, {}, 0.0, topic.name, notes), table, frame)
    if kind in ("pressure", "ctd"):
        values, sigma = {"pressure": table[:, 0] * 1e-4}, _deviation(table[:, 1]) * 1e-4
    elif kind == "gps":
        values = dict(zip(("latitude", "longitude"), np.radians(table[:, :2]).T, strict=True))
        values, sigma = {**values, "height": table[:, 2]}, _deviation(table[:, 3])
    else:
        values, sigma = {"v_FB_B" if kind == "speedlog" else "bottom": body(table[:, :3])}, _deviation(table[:, 3])
    return [InstrumentRecording(name, kind, time, values, sigma, topic.name, notes)]


def _of_imu(topic: InstrumentRecording, table: Floats, frame: str) -> list[InstrumentRecording]:
    """Convert Imu messages to the recordings of an IMU, an AHRS or both, depending on the values that they contain. If
    the import map gives the topic one of these types, return only that recording.
    """
    q, rates, force = table[:, :4], table[:, 4:7], table[:, 7:10]
    if frame == "enu":
        rates, force = axes.frd_to_flu(rates), axes.frd_to_flu(force)
    # drivers also leave 0 where they measure nothing, and the unit quaternion
    turned, forced = (bool(np.nan_to_num(x).any()) for x in (rates, force))
    oriented = bool(np.nan_to_num(q[:, 1:]).any())
    made = []
    if forced and turned and topic.type != "ahrs":
        made.append(replace(topic, type="imu", values={"force": force, "rates": rates}, notes=list(topic.notes)))
    if oriented and topic.type != "imu":
        known = np.isfinite(q).all(axis=1)
        angles = np.full((len(q), 3), np.nan)
        angles[known] = frames.euler(axes.attitude_enu(q[known]) if frame == "enu" else q[known])
        angles[:, 2] = np.mod(angles[:, 2], 2.0 * np.pi)
        values = dict(zip(("roll", "pitch", "heading"), angles.T, strict=True))
        if turned:
            values["rates"] = rates
        label, sigma = f"{topic.name[:26]}-ahrs" if made else topic.name, _deviation(table[:, 10])
        made.append(replace(topic, name=label, type="ahrs", values=values, sigma=sigma, notes=list(topic.notes)))
    if forced and not turned and topic.type != "ahrs" and made:
        made[0].notes.append("the accelerations are not used: the messages contain no turn rates")
    return made


def _deviation(variance: Any) -> float:
    """Return the median standard deviation; 0 = unknown."""
    known = np.asarray(variance, float)
    known = known[np.isfinite(known) & (known > 0.0)]
    return float(np.sqrt(np.median(known))) if len(known) else 0.0
