"""Export of frames from sonars, cameras, lidars and hydrophones as an MCAP file with ROS 2 messages of
marine_acoustic_msgs and sensor_msgs.

- Images (forward-looking, side-scan, scanning): ProjectedSonarImage, in which the samples of all beams at one range
  are followed by those at the next range.
- Soundings: SonarDetections and, under `/points`, PointCloud2 in the frame `map` (east, north, up).
- Scanning sonars: in addition, each step as a SonarEcho (`/echo`, ping360_sonar_msgs; angles to starboard), and each
  turn as a LaserScan (`/scan`) with the range of the strongest sample in each step; as is usual in ROS, its angles
  increase counter-clockwise.
- 3D sonars and lidars: the range image as Image (32FC1, m, NaN = no echo) and, under `/points`, PointCloud2 in the frame `map`.
- Cameras: images as Image, and depths also as Image (`/depth`).
- Hydrophones: each block as a RawSonarImage, in which a beam is a channel and the samples of all channels at one time
  are followed by those at the next time.

Stamps are transmission times, and for a hydrophone the time of the first sample on its own clock. The axes of a sonar
are z ahead, x up and y to starboard; its beams are in the y-z plane.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer

from wavesim_sdk.epoch import unix
from wavesim_sdk.errors import LogError
from wavesim_sdk.imaging_frames import RANGE_IMAGES, SOUNDING_COLUMNS, ImagingFrame, raw_image_type
from wavesim_sdk.log import frames, usable
from wavesim_sdk.logfile import CDR_HEADER

_RULE = "=" * 80
_PARTS = {
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "marine_acoustic_msgs/PingInfo": "float32 frequency\nfloat32 sound_speed\nfloat32[] tx_beamwidths\nfloat32[] rx_beamwidths",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "marine_acoustic_msgs/SonarImageData": "bool is_bigendian\nuint32 dtype\nuint32 beam_count\nuint8[] data",
    "marine_acoustic_msgs/DetectionFlag": "uint8 flag",
    "geometry_msgs/Point": "float64 x\nfloat64 y\nfloat64 z",
    "geometry_msgs/Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w",
    "geometry_msgs/Pose": "geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation",
    "geometry_msgs/PoseWithCovariance": "geometry_msgs/Pose pose\nfloat64[36] covariance",
    "geometry_msgs/Twist": "geometry_msgs/Vector3 linear\ngeometry_msgs/Vector3 angular",
    "geometry_msgs/TwistWithCovariance": "geometry_msgs/Twist twist\nfloat64[36] covariance",
    "sensor_msgs/NavSatStatus": "int8 status\nuint16 service",
    "sensor_msgs/PointField": "string name\nuint32 offset\nuint8 datatype\nuint32 count",
}


def message_definition(fields: str, *parts: str) -> str:
    """Return the definition of a message that has a header. The result includes the definitions of the nested messages
    (``parts``).
    """
    used = ("std_msgs/Header", "builtin_interfaces/Time", *parts)
    return "\n".join(["std_msgs/Header header\n" + fields, *(f"{_RULE}\nMSG: {name}\n{_PARTS[name]}" for name in used)])


def _acoustic_definition(fields: str, *parts: str) -> str:
    return message_definition(
        f"marine_acoustic_msgs/PingInfo ping_info\n{fields}", "marine_acoustic_msgs/PingInfo", *parts
    )


IMAGE, DETECTIONS = "marine_acoustic_msgs/msg/ProjectedSonarImage", "marine_acoustic_msgs/msg/SonarDetections"
RAW = "marine_acoustic_msgs/msg/RawSonarImage"
POINTS, SCAN = "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/LaserScan"
ECHO, PICTURE = "ping360_sonar_msgs/msg/SonarEcho", "sensor_msgs/msg/Image"
FLOAT32 = 7  #: code of the type float32 in PointField
NEAREST = 0.5  #: minimum range in m; at shorter ranges, a scanning sonar receives only its own pulse
SCHEMAS = {
    IMAGE: _acoustic_definition(
        "geometry_msgs/Vector3[] beam_directions\nfloat32[] ranges\nmarine_acoustic_msgs/SonarImageData image",
        "geometry_msgs/Vector3",
        "marine_acoustic_msgs/SonarImageData",
    ),
    RAW: _acoustic_definition(
        "float32 sample_rate\nuint32 samples_per_beam\nuint32 sample0\nfloat32[] tx_delays\nfloat32[] tx_angles\n"
        "float32[] rx_angles\nmarine_acoustic_msgs/SonarImageData image",
        "marine_acoustic_msgs/SonarImageData",
    ),
    DETECTIONS: _acoustic_definition(
        "marine_acoustic_msgs/DetectionFlag[] flags\nfloat32[] two_way_travel_times\nfloat32[] tx_delays\nfloat32[] intensities\n"
        "float32[] tx_angles\nfloat32[] rx_angles",
        "marine_acoustic_msgs/DetectionFlag",
    ),
    POINTS: message_definition(
        "uint32 height\nuint32 width\nsensor_msgs/PointField[] fields\nbool is_bigendian\nuint32 point_step\nuint32 row_step\n"
        "uint8[] data\nbool is_dense",
        "sensor_msgs/PointField",
    ),
    ECHO: message_definition(
        "float32 angle\nuint8 gain\nuint16 number_of_samples\nuint16 transmit_frequency\nuint16 speed_of_sound\nuint8 range\n"
        "uint8[] intensities"
    ),
    PICTURE: message_definition(
        "uint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data"
    ),
    SCAN: message_definition(
        "float32 angle_min\nfloat32 angle_max\nfloat32 angle_increment\nfloat32 time_increment\nfloat32 scan_time\nfloat32 range_min\n"
        "float32 range_max\nfloat32[] ranges\nfloat32[] intensities"
    ),
}
DTYPES = {1: 0, 2: 2}  #: code of the sample type (u8 or u16), by bytes per sample


class CdrWriter:
    """Builds a message in plain CDR: little-endian, with each number aligned to its size."""

    def __init__(self) -> None:
        self._out = bytearray()

    def add(self, type_: str, *values: Any) -> None:
        """Add numbers of one struct type."""
        size = struct.calcsize(type_)
        for value in values:
            self._out += bytes(-len(self._out) % size) + struct.pack(f"<{type_}", value)

    def text(self, text: str) -> None:
        """Add a string."""
        data = text.encode() + b"\0"
        self.add("I", len(data))
        self._out += data

    def sequence(self, values: Any, type_: str) -> None:
        """Add a sequence of numbers of a NumPy type, or a sequence of vectors if ``values`` is a matrix."""
        array = np.ascontiguousarray(values, type_)
        self.add("I", len(array))
        if array.size:
            self._out += bytes(-len(self._out) % array.itemsize) + array.tobytes()

    @property
    def message(self) -> bytes:
        """The complete message as bytes."""
        return CDR_HEADER + bytes(self._out)


def _begin_message(frame: ImagingFrame) -> CdrWriter:
    out = CdrWriter()
    out.add("I", *unix(frame.record["ping_ns"]))
    out.text(f"{frame.body}/{frame.name}")
    return out


def sonar_echo_message(frame: ImagingFrame) -> bytes:
    """Return a step of a scanning sonar as a SonarEcho, in whole metres, kilohertz and metres per second.

    The gain of the sonar is unknown and given as 0.
    """
    r, out = frame.record, _begin_message(frame)
    line = frame.samples[0] >> (8 * (int(r["sample_bytes"]) - 1))
    out.add("f", float(r["azimuth"]))
    out.add("B", 0)
    out.add("H", len(line), round(float(r["frequency"]) / 1e3), round(float(r["sound_speed"])))
    out.add("B", min(round(float(r["range"])), 255))
    out.sequence(line, "u1")
    return out.message


def image_message(frame: ImagingFrame, array: Any, encoding: str) -> bytes:
    """Return the rows of a camera frame as an Image."""
    out, data = _begin_message(frame), np.ascontiguousarray(array)
    out.add("I", data.shape[0], data.shape[1])
    out.text(encoding)
    out.add("B", 0)
    out.add("I", data.nbytes // data.shape[0])
    out.sequence(np.frombuffer(data.tobytes(), np.uint8), "u1")
    return out.message


def frame_message(frame: ImagingFrame) -> tuple[str, bytes]:
    """Return the type of the ROS message for a frame, and the message itself."""
    if frame.kind == "camera":
        return PICTURE, image_message(frame, frame.image, "rgb8")
    if frame.kind in RANGE_IMAGES:
        return PICTURE, image_message(frame, frame.ranges.astype("<f4"), "32FC1")
    r, out = frame.record, _begin_message(frame)
    out.add("f", float(r["frequency"]), float(r["sound_speed"]))
    if frame.kind == "bathymetry":
        count = int(r["beams"])
        out.sequence(np.full(count, r["fan_height"]), "<f4")
        out.sequence(np.full(count, r["beam_width"]), "<f4")
        s = dict(zip(SOUNDING_COLUMNS, frame.samples.T, strict=True))
        good = s["detection"] > 0.0
        out.sequence(~good, "u1")
        for values in (s["time"], np.zeros(count), s["level"], np.zeros(count), s["angle"]):
            out.sequence(np.where(good, values, 0.0) if values is not s["angle"] else values, "<f4")
        return DETECTIONS, out.message
    angles = {"forward": frame.angles, "sidescan": np.array([-0.5, 0.5]) * math.pi}.get(
        frame.kind, np.array([float(r["azimuth"])])
    )
    out.sequence(np.full(len(angles), r["fan_height"]), "<f4")
    out.sequence(np.full(len(angles), r["beam_width"]), "<f4")
    out.sequence(np.stack([np.zeros(len(angles)), np.sin(angles), np.cos(angles)], axis=1), "<f8")
    out.sequence(frame.ranges, "<f4")
    out.add("?", False)
    out.add("I", DTYPES[int(r["sample_bytes"])], len(angles))
    out.sequence(np.frombuffer(np.ascontiguousarray(frame.samples.T).tobytes(), np.uint8), "u1")
    return IMAGE, out.message


def sample_block_message(frame: ImagingFrame) -> bytes:
    """Return a block of a hydrophone as a RawSonarImage."""
    out, samples = _begin_message(frame), frame.samples
    out.add("f", 0.0, 0.0)
    for _ in range(2):
        out.sequence((), "<f4")  # beam widths
    out.add("f", frame.sampling_rate)
    out.add("I", samples.shape[1], frame.first_sample % 2**32)
    for _ in range(3):
        out.sequence(np.zeros(len(samples)), "<f4")  # delays and angles
    out.add("?", False)
    out.add("I", raw_image_type(samples.dtype), len(samples))
    out.sequence(np.frombuffer(np.ascontiguousarray(samples.T).tobytes(), np.uint8), "u1")
    return out.message


def point_cloud_message(frame: ImagingFrame) -> bytes:
    """Return the detected soundings or pixels of a frame as a PointCloud2 with their positions (east, north, up) and
    levels.
    """
    if frame.kind in RANGE_IMAGES:
        good = np.isfinite(frame.ranges)
        level = frame.intensities if frame.kind == "lidar" else frame.levels
    else:
        s = dict(zip(SOUNDING_COLUMNS, frame.samples.T, strict=True))
        good, level = s["detection"] > 0.0, s["level"]
    north, east, down = frame.points[good].T
    data = np.stack([east, north, -down, level[good]], axis=1).astype("<f4").tobytes()
    out = CdrWriter()
    out.add("I", *unix(frame.record["ping_ns"]))
    out.text("map")
    out.add("I", 1, len(north), 4)
    for k, name in enumerate(("x", "y", "z", "intensity")):
        out.text(name)
        out.add("I", 4 * k)
        out.add("B", FLOAT32)
        out.add("I", 1)
    out.add("?", False)
    out.add("I", 16, len(data))
    out.sequence(np.frombuffer(data, np.uint8), "u1")
    out.add("?", True)
    return out.message


class ScanAccumulator:
    """Collects the steps of a scanning sonar until a turn is complete."""

    def __init__(self) -> None:
        self._steps: list[ImagingFrame] = []

    def add_step(self, frame: ImagingFrame) -> bytes | None:
        """Add a step. If it begins a new turn, return the LaserScan for the previous turn."""
        done = None
        if self._steps and frame.record["azimuth"] <= self._steps[-1].record["azimuth"]:
            done, self._steps = self._scan() if len(self._steps) > 1 else None, []
        self._steps.append(frame)
        return done

    def _scan(self) -> bytes:
        steps = self._steps[::-1]  # counter-clockwise
        first, last = self._steps[0].record, self._steps[-1].record
        angles = [-float(f.record["azimuth"]) for f in steps]
        ranges, levels = [], []
        for f in steps:
            line = np.where(f.ranges >= NEAREST, f.samples[0], 0)
            k = int(line.argmax())
            ranges.append(float(f.ranges[k]) if line[k] else math.inf)
            levels.append(float(line[k]))
        out, n, took = CdrWriter(), len(steps) - 1, (int(last["ping_ns"]) - int(first["ping_ns"])) * 1e-9
        out.add("I", *unix(first["ping_ns"]))
        out.text(f"{steps[0].body}/{steps[0].name}")
        out.add(
            "f", angles[0], angles[-1], (angles[-1] - angles[0]) / n, -took / n, took, NEAREST, float(first["range"])
        )
        out.sequence(ranges, "<f4")
        out.sequence(levels, "<f4")
        return out.message


def frame_messages(frame: ImagingFrame, turns: dict[str, ScanAccumulator]) -> Iterator[tuple[str, str, bytes]]:
    """Yield the topic, the type and the content of each message made from a frame; ``turns`` keeps the unfinished
    turns.
    """
    topic = f"/{frame.body}/{frame.name}"
    if frame.kind == "hydrophone":
        yield topic, RAW, sample_block_message(frame)
        return
    yield topic, *frame_message(frame)
    if frame.kind in ("bathymetry", *RANGE_IMAGES):
        yield f"{topic}/points", POINTS, point_cloud_message(frame)
    elif frame.kind == "scanning":
        yield f"{topic}/echo", ECHO, sonar_echo_message(frame)
        if (scan := turns.setdefault(topic, ScanAccumulator()).add_step(frame)) is not None:
            yield f"{topic}/scan", SCAN, scan
    elif frame.depth is not None:
        yield f"{topic}/depth", PICTURE, image_message(frame, frame.depth, "32FC1")


def write_sonar_messages(log: Path, out: Path, vehicle: str = "", name: str = "") -> int:
    """Write frames from a log (all frames, or only the frames of one body or sonar) as ROS messages; return the number
    of messages.
    """
    written = 0
    channels: dict[str, int] = {}
    try:
        with out.open("wb") as file, usable(log):
            writer = Writer(file, compression=CompressionType.ZSTD)
            writer.start(profile="ros2", library="wavesim")
            schemas = {n: writer.register_schema(n, "ros2msg", text.encode()) for n, text in SCHEMAS.items()}
            turns: dict[str, ScanAccumulator] = {}
            for frame in frames(log, vehicle, name):
                time_ns = int(frame.record["time_ns"])
                for topic, kind, data in frame_messages(frame, turns):
                    if topic not in channels:
                        channels[topic] = writer.register_channel(topic, "cdr", schemas[kind])
                    written += 1
                    writer.add_message(channels[topic], time_ns, data, time_ns, written)
            writer.finish()  # type: ignore[no-untyped-call]  # mcap has no type annotations
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
    if not written:
        raise LogError(f"{log} has no frames of the selected sonar (--vehicle, --sonar)")
    return written
