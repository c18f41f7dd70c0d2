"""Frames of sonars as an MCAP file of the ROS 2 messages that acoustic tools know (marine_acoustic_msgs).

Images (forward-looking, side-scan, scanning) are ProjectedSonarImage: all beams of one range, then the next.  Soundings are
SonarDetections.  Stamps are the times of transmission.  Axes of a sonar: z ahead, x up, y to starboard; beams in the y-z plane.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from mcap.writer import CompressionType, Writer

from wavesim_sdk.epoch import unix
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import CDR_HEADER, frames
from wavesim_sdk.sonars.frames import SOUNDING, Frame

_RULE = "=" * 80
_PARTS = {
    "std_msgs/Header": "builtin_interfaces/Time stamp\nstring frame_id",
    "builtin_interfaces/Time": "int32 sec\nuint32 nanosec",
    "marine_acoustic_msgs/PingInfo": "float32 frequency\nfloat32 sound_speed\nfloat32[] tx_beamwidths\nfloat32[] rx_beamwidths",
    "geometry_msgs/Vector3": "float64 x\nfloat64 y\nfloat64 z",
    "marine_acoustic_msgs/SonarImageData": "bool is_bigendian\nuint32 dtype\nuint32 beam_count\nuint8[] data",
    "marine_acoustic_msgs/DetectionFlag": "uint8 flag",
}


def _schema(fields: str, *parts: str) -> str:
    head = "std_msgs/Header header\nmarine_acoustic_msgs/PingInfo ping_info\n"
    used = ("std_msgs/Header", "builtin_interfaces/Time", "marine_acoustic_msgs/PingInfo", *parts)
    return "\n".join([head + fields, *(f"{_RULE}\nMSG: {name}\n{_PARTS[name]}" for name in used)])


IMAGE, DETECTIONS = "marine_acoustic_msgs/msg/ProjectedSonarImage", "marine_acoustic_msgs/msg/SonarDetections"
SCHEMAS = {
    IMAGE: _schema(
        "geometry_msgs/Vector3[] beam_directions\nfloat32[] ranges\nmarine_acoustic_msgs/SonarImageData image",
        "geometry_msgs/Vector3", "marine_acoustic_msgs/SonarImageData",
    ),
    DETECTIONS: _schema(
        "marine_acoustic_msgs/DetectionFlag[] flags\nfloat32[] two_way_travel_times\nfloat32[] tx_delays\nfloat32[] intensities\n"
        "float32[] tx_angles\nfloat32[] rx_angles",
        "marine_acoustic_msgs/DetectionFlag",
    ),
}  # fmt: skip
DTYPES = {1: 0, 2: 2}  #: bytes of a sample -> number of its type: u8, u16


class Cdr:
    """A message under way: plain CDR, little-endian, each number at a multiple of its size."""

    def __init__(self) -> None:
        self._out = bytearray()

    def add(self, type_: str, *values: Any) -> None:
        """Numbers of one type, as struct writes it."""
        size = struct.calcsize(type_)
        for value in values:
            self._out += bytes(-len(self._out) % size) + struct.pack(f"<{type_}", value)

    def text(self, text: str) -> None:
        """A string."""
        data = text.encode() + b"\0"
        self.add("I", len(data))
        self._out += data

    def many(self, values: Any, type_: str) -> None:
        """A sequence of numbers of a NumPy type; of vectors, where it is a matrix."""
        array = np.ascontiguousarray(values, type_)
        self.add("I", len(array))
        if array.size:
            self._out += bytes(-len(self._out) % array.itemsize) + array.tobytes()

    @property
    def message(self) -> bytes:
        """All of it."""
        return CDR_HEADER + bytes(self._out)


def message(frame: Frame) -> tuple[str, bytes]:
    """(name of its type, a frame as that message)."""
    r, out = frame.record, Cdr()
    out.add("I", *unix(r["ping_ns"]))
    out.text(f"{frame.body}/{frame.name}")
    out.add("f", float(r["frequency"]), float(r["sound_speed"]))
    if frame.kind == "bathymetry":
        count = int(r["beams"])
        out.many(np.full(count, r["fan_height"]), "<f4")
        out.many(np.full(count, r["beam_width"]), "<f4")
        s = dict(zip(SOUNDING, frame.samples.T, strict=True))
        good = s["detection"] > 0.0
        out.many(~good, "u1")
        for values in (s["time"], np.zeros(count), s["level"], np.zeros(count), s["angle"]):
            out.many(np.where(good, values, 0.0) if values is not s["angle"] else values, "<f4")
        return DETECTIONS, out.message
    angles = {"forward": frame.angles, "sidescan": np.array([-0.5, 0.5]) * math.pi}.get(
        frame.kind, np.array([float(r["azimuth"])])
    )
    out.many(np.full(len(angles), r["fan_height"]), "<f4")
    out.many(np.full(len(angles), r["beam_width"]), "<f4")
    out.many(np.stack([np.zeros(len(angles)), np.sin(angles), np.cos(angles)], axis=1), "<f8")
    out.many(frame.ranges, "<f4")
    out.add("?", False)
    out.add("I", DTYPES[int(r["sample_bytes"])], len(angles))
    out.many(np.frombuffer(np.ascontiguousarray(frame.samples.T).tobytes(), np.uint8), "u1")
    return IMAGE, out.message


def write(log: Path, out: Path, vehicle: str = "", name: str = "") -> int:
    """Write the frames of a log (of a body, of one of its sonars) as ROS messages; returns how many."""
    written = 0
    channels: dict[str, int] = {}
    try:
        with out.open("wb") as file:
            writer = Writer(file, compression=CompressionType.ZSTD)
            writer.start(profile="ros2", library="wavesim")
            schemas = {n: writer.register_schema(n, "ros2msg", text.encode()) for n, text in SCHEMAS.items()}
            for frame in frames(log, vehicle, name):
                kind, data = message(frame)
                topic = f"/{frame.body}/{frame.name}"
                if topic not in channels:
                    channels[topic] = writer.register_channel(topic, "cdr", schemas[kind])
                time_ns = int(frame.record["time_ns"])
                written += 1
                writer.add_message(channels[topic], time_ns, data, time_ns, written)
            writer.finish()  # type: ignore[no-untyped-call]  # mcap gives it no types
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
    if not written:
        raise LogError(f"{log} has no frames of such a sonar (--vehicle, --sonar)")
    return written
