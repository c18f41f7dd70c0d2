"""Frames of imaging sonars and cameras: the record of a frame, and the shared-memory rings that contain the newest
frames of each instrument.

A segment ``/wavesim.NAME.sonars`` contains one ring for each row of the table ``sonar``, followed by one ring for each
row of the table ``camera`` in reverse order. It begins like the other segments: the magic ``WAVESONR``, version, 16
bytes of the record hash, size, PID and start time of the server. The number of rings, slots per ring and bytes per slot
follow (8 bytes each).

Ring k begins at ``HEADER + k (RING + slots slot_bytes)`` with three numbers. ``begun`` is the number of the frame being
written. ``done`` is the number of the last complete frame. ``logged`` is one more than the number of the last logged
frame (0 = no log). Frame n is in slot ``(n - 1) % slots``: a record (:data:`FRAME`) followed by ``bytes`` of payload. A
reader copies the frame and then checks ``begun``: the copy is valid if ``begun`` is at most ``n + slots - 1``.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import posix_ipc

from wavesim_sdk.config.sensors import CameraConfig, SonarConfig
from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.shared_memory import create_memory, is_process_alive, map_memory, process_start, segment_name
from wavesim_sdk.sonars.presets import KINDS, Preset, find_preset
from wavesim_sdk.tables import Field, Table, integer, value

if TYPE_CHECKING:
    from wavesim_sdk.config.load import LoadedConfig

MAGIC = b"WAVESONR"
VERSION = 1
HEADER, RING = 4096, 64
SLOTS = 4
MAX_BYTES = 4 << 20  #: maximum size of the payload of a frame, bytes
MAX_BINS = 2000
LOOK_S = 0.0005  #: poll interval in s of a writer that waits for the log

#: columns of a sounding: measurements, then the truth
SOUNDING_COLUMNS = (
    "angle",
    "time",
    "x",
    "y",
    "z",
    "sigma_z",
    "sigma_r",
    "level",
    "snr",
    "detection",
    "north",
    "east",
    "down",
    "material",
    "object",
)
FRAME_KINDS = (*KINDS, "camera")  #: types of frames; the column ``kind`` of a frame is an index into this tuple
FRAME_SENSOR_TYPES = ("sonar", "camera")  #: sensor types that produce frames


def _text(name: str, doc: str) -> Field:
    return Field(name, "S32", "", doc)


FRAME = Table(
    "frame",
    "Record of an imaging sonar frame. Its payload follows: samples (beams, bins), beam by beam, or soundings.",
    "emulator sonar",
    (
        integer("number", "", "Frame number, from 1."),
        integer("ping_ns", "ns", "Simulation time of the transmission."),
        integer("time_ns", "ns", "Simulation time at which the last echo arrives and the frame is published."),
        integer("generation", "", "Generation of the instrument, as in the table `instruments`."),
        _text("body", "Name of the body."),
        _text("name", "Name of the instrument."),
        _text("preset", "Name of the preset of the instrument."),
        integer(
            "kind",
            "",
            "Type of the frame: 0 forward, 1 sidescan (beams port and starboard), 2 bathymetry, 3 scanning, 4 camera "
            "(columns: docs/camera.md).",
        ),
        integer("beams", "", "Number of beams."),
        integer(
            "bins",
            "",
            "Number of samples per beam. The samples have equal lengths and start at the sonar. For soundings: "
            "numbers per sounding (8 bytes each).",
        ),
        integer(
            "sample_bytes",
            "",
            "Size of a sample. 1 or 2: an unsigned integer. 8: a floating-point value of a sounding.",
        ),
        integer(
            "bytes",
            "",
            "Size of the payload in bytes. Labels add 4 bytes per sample: material and object, 2 bytes each, -1 = none.",
        ),
        integer("labels", "", "1 = labels follow the samples; 0 = no labels."),
        integer("saturated", "", "Number of samples that were clipped at the maximum value."),
        value("range", "m", "Maximum range: the end of the last bin."),
        value("sector", "rad", "Angle from the first to the last beam, for types 0 and 2."),
        value("azimuth", "rad", "Azimuth of the beam in the x-y plane of S, for type 3."),
        value("tilt", "rad", "Angle of the sonar axis below the x-y plane of S."),
        value("frequency", "Hz", "Centre frequency."),
        value("bandwidth", "Hz", "Bandwidth of the sonar pulse."),
        value("sound_speed", "m/s", "Sound speed used to convert times into ranges."),
        value("absorption", "dB/m", "Absorption coefficient for which the time-varying gain compensates."),
        value("source_level", "dB re 1 uPa at 1 m", "Source level."),
        value("gain", "dB", "Constant G of the time-varying gain X log r + 2 alpha r + G."),
        value("tvg", "", "Coefficient X of the time-varying gain X log r + 2 alpha r + G."),
        value("hold", "m", "Range beyond which the time-varying gain is constant."),
        value("floor", "dB re 1 uPa", "Level after gain that corresponds to sample value 0."),
        value("span", "dB", "Level difference between sample value 0 and the maximum."),
        value("beam_width", "rad", "Beam width at -3 dB along the array."),
        value("fan_height", "rad", "Beam width at -3 dB across the array."),
        value("altitude", "m", "Altitude of the sonar above the sea bed; NaN = unknown."),
        value("p_WS_W", "m", "Position of the sonar at the transmission.", 3),
        value("euler", "rad", "Roll, pitch and heading of the sonar frame S at the transmission.", 3),
        value("v_WS_W", "m/s", "Velocity of the sonar at the transmission.", 3),
    ),
    "The payload.",
)
RECORD = FRAME.dtype


def no_such_source(body: str, name: str, available: Iterable[str]) -> str:
    """Return the message for a body without a sonar or camera of this name."""
    return f"'{body}' has no sonar or camera named '{name}'; available: {', '.join(available) or 'none'}"


def resolve_preset(s: SonarConfig) -> Preset:
    """Return the preset of a sonar with the changes made by its configuration."""
    p = find_preset(s.preset)
    changes: dict[str, Any] = {"range": s.range or p.range, "rate": s.rate}
    changes |= {"beams": s.beams} if s.beams else {}
    changes |= {"sector": s.sector} if s.sector else {}
    changes |= {"tilt": s.tilt} if s.tilt > -1.0 else {}
    bins = s.bins or p.bins or min(MAX_BINS, max(16, round(changes["range"] / p.resolution)))
    return replace(p, bins=bins, **changes)


def payload_bytes(s: SonarConfig | CameraConfig) -> int:
    """Return the size of the payload of a frame in bytes."""
    if isinstance(s, CameraConfig):
        return s.width * s.height * (7 if s.depth else 3)
    p = resolve_preset(s)
    if p.kind == "bathymetry":
        return p.beams * len(SOUNDING_COLUMNS) * 8
    return p.beams * p.bins * (s.bits // 8 + (4 if s.truth else 0))


def ring_slot_bytes(sonars: list[SonarConfig | CameraConfig]) -> int:
    """Return the slot size in bytes of a ring into which the frames of all these instruments fit."""
    most = max((payload_bytes(s) for s in sonars), default=0)
    return (RECORD.itemsize + most + 63) & ~63


def create_rings(loaded: LoadedConfig, server: str) -> None:
    """Create the frame rings of a server if its configuration has sonars or cameras. Raises OSError on failure."""
    rows = sum(loaded.sensor_rows.get(type_, 0) for type_ in FRAME_SENSOR_TYPES)
    if rows:
        suites = [loaded.suite(b) for b in loaded.config.fleet.bodies] + [
            loaded.suite_of_model(m) for m in loaded.models.values()
        ]
        declared = [
            i.parameters for suite in suites for i in suite if isinstance(i.parameters, (SonarConfig, CameraConfig))
        ]
        everybody = loaded.config.fleet.sensors
        declared += (
            [i.parameters for i in everybody.instruments if isinstance(i.parameters, (SonarConfig, CameraConfig))]
            if everybody
            else []
        )
        FrameRings.create(server, rows, ring_slot_bytes(declared), loaded.config.shared.group)


def _hash() -> bytes:
    return hashlib.sha256(repr(RECORD.descr).encode()).hexdigest()[:16].encode()


@dataclass(frozen=True)
class ImagingFrame:
    """Frame of a sonar or camera: its record, and its payload of samples (beams, bins) or soundings (beams,
    SOUNDING_COLUMNS).
    """

    record: Any
    payload: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> ImagingFrame:
        """Parse the bytes of a record and its payload. Raises ValueError if they are inconsistent."""
        if len(data) < RECORD.itemsize:
            raise ValueError("the frame is shorter than its record")
        r, payload = np.frombuffer(data, RECORD, 1)[0], data[RECORD.itemsize :]
        count, size = int(r["beams"]) * int(r["bins"]), int(r["sample_bytes"])
        if min(int(r["beams"]), int(r["bins"])) < 1 or size not in (1, 2, 8) or not 0 <= r["kind"] < len(FRAME_KINDS):
            raise ValueError("the record of the frame is invalid (kind, beams, bins or sample_bytes)")
        if not len(payload) == int(r["bytes"]) == count * size + _truth_bytes(r):
            raise ValueError("the length of the payload differs from the length in the record")
        return cls(r, payload)

    @property
    def data(self) -> bytes:
        """Bytes of the record and the payload, as :meth:`from_bytes` reads them."""
        return bytes(self.record.tobytes()) + self.payload

    def without_truth(self) -> ImagingFrame:
        """Return the frame without pose, labels and true points, for a client without access to true values."""
        r = self.record.copy()
        r["p_WS_W"], r["euler"], r["v_WS_W"] = np.nan, np.nan, np.nan
        if self.kind == "bathymetry":
            values = self.samples.copy()
            values[:, SOUNDING_COLUMNS.index("north") :] = np.nan
            return ImagingFrame(r, values.tobytes())
        payload = self.payload[: len(self.payload) - _truth_bytes(r)]
        r["labels"], r["bytes"] = 0, len(payload)
        return ImagingFrame(r, payload)

    @property
    def body(self) -> str:
        """Name of the body that carries the sonar."""
        return bytes(self.record["body"]).rstrip(b"\0").decode("utf-8", "replace")

    @property
    def name(self) -> str:
        """Name of the sonar."""
        return bytes(self.record["name"]).rstrip(b"\0").decode("utf-8", "replace")

    @property
    def kind(self) -> str:
        return FRAME_KINDS[int(self.record["kind"])]

    @property
    def samples(self) -> Any:
        """Samples as integers (beams, bins), or soundings as floats (beams, columns)."""
        r = self.record
        type_ = {1: "<u1", 2: "<u2", 8: "<f8"}[int(r["sample_bytes"])]
        count = int(r["beams"]) * int(r["bins"])
        return np.frombuffer(self.payload, type_, count).reshape(int(r["beams"]), int(r["bins"]))

    @property
    def image(self) -> Any:
        """Camera image (rows, columns, 3) with red, green and blue."""
        return self.samples.reshape(int(self.record["beams"]), -1, 3)

    @property
    def depth(self) -> Any:
        """Depth image of a camera (rows, columns): distance along the x axis of S in m (inf = nothing hit), or None if
        the camera has no depth.
        """
        r = self.record
        if not r["labels"] or self.kind != "camera":
            return None
        return np.frombuffer(self.payload, "<f4", offset=len(self.payload) - _truth_bytes(r)).reshape(
            int(r["beams"]), -1
        )

    @property
    def labels(self) -> Any:
        """Labels (beams, bins, 2) of the samples: material and object; or None if the frame has no labels."""
        r = self.record
        if not r["labels"] or self.kind == "camera":
            return None
        start = int(r["beams"]) * int(r["bins"]) * int(r["sample_bytes"])
        return np.frombuffer(self.payload, "<i2", offset=start).reshape(int(r["beams"]), int(r["bins"]), 2)

    @property
    def ranges(self) -> Any:
        """Ranges of the bin centres in m."""
        r = self.record
        return (np.arange(int(r["bins"])) + 0.5) * float(r["range"]) / int(r["bins"])

    @property
    def angles(self) -> Any:
        """Angles of the beams in rad, positive to starboard."""
        half = 0.5 * float(self.record["sector"])
        return np.linspace(-half, half, int(self.record["beams"]))

    @property
    def points(self) -> Any:
        """Measured soundings (beams, 3) in frame W in m, placed with the true position and heading of the ping; NaN
        where a sounding is lost.
        """
        r, (x, y, z) = self.record, (self.samples[:, SOUNDING_COLUMNS.index(k)] for k in "xyz")
        c, s = math.cos(float(r["euler"][2])), math.sin(float(r["euler"][2]))
        return r["p_WS_W"] + np.stack([c * x - s * y, s * x + c * y, z], axis=1)

    @property
    def levels(self) -> Any:
        """Echo levels (beams, bins) in dB re 1 uPa, within the resolution of the samples."""
        r = self.record
        top = (1 << (8 * int(r["sample_bytes"]))) - 1
        x = np.minimum(np.maximum(self.ranges, self.ranges[0] * 2.0), r["hold"])
        gain = r["tvg"] * np.log10(x) + 2.0 * r["absorption"] * x + r["gain"]
        return self.samples * (r["span"] / top) + r["floor"] - gain


def _truth_bytes(r: Any) -> int:
    """Return the number of bytes of true data after the samples: 4 per sample, or per pixel of a camera."""
    if not r["labels"]:
        return 0
    return 4 * int(r["beams"]) * int(r["bins"]) // (3 if int(r["kind"]) == FRAME_KINDS.index("camera") else 1)


class FrameRings:
    """Frame rings of a server in mapped memory. ``begun``, ``done`` and ``logged`` are views with one number per ring."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory
        self.header = np.frombuffer(memory, np.int64, 10, 0)
        self.rings, self.slots, self.slot_bytes = (int(n) for n in self.header[7:10])
        self._each = RING + self.slots * self.slot_bytes
        self.begun, self.done, self.logged = (
            np.ndarray(self.rings, np.int64, memory, HEADER + 8 * k, (self._each,)) for k in range(3)
        )

    @classmethod
    def create(cls, server: str, rings: int, size: int, group: bool = False) -> None:
        """Create the segment of a server. Raises OSError on failure."""
        total = HEADER + rings * (RING + SLOTS * size)
        memory = create_memory(segment_name(server, "sonars"), total, group)
        header = np.frombuffer(memory, np.int64, 10, 0)
        header[1], header[4:10] = VERSION, (total, os.getpid(), process_start(os.getpid()), rings, SLOTS, size)
        memory[16:32] = _hash()
        memory[0:8] = MAGIC

    @classmethod
    def attach(cls, server: str, writable: bool = False) -> FrameRings:
        """Map the rings of a server. Raises NotRunning or AttachError with the reason on failure."""
        name = segment_name(server, "sonars")
        try:
            memory = map_memory(name, MAGIC, HEADER, "ring of sonars", writable)
        except posix_ipc.ExistentialError:
            raise NotRunning(f"no server '{server}' with imaging sonars or cameras is running") from None
        if memory[16:32] != _hash():
            raise AttachError(f"{name} was created by another release; install the same release on both sides")
        header = [int(n) for n in np.frombuffer(memory, np.int64, 10)]
        rings, slots, size = header[7:]
        if min(rings, slots - 1, size - RECORD.itemsize) < 0 or HEADER + rings * (RING + slots * size) > len(memory):
            raise AttachError(f"{name} is damaged: {rings} rings of {slots} x {size} bytes in {len(memory)} bytes")
        if not is_process_alive(header[5], header[6]):
            raise NotRunning(f"the server that owned {name} has ended")
        return cls(memory)

    def ring_index(self, type_: str, place: int) -> int:
        """Return the number of the ring of an instrument, from its type and its row in the table of that type."""
        return place if type_ == "sonar" else self.rings - 1 - place

    def _slot(self, ring: int, number: int) -> int:
        return HEADER + ring * self._each + RING + (number - 1) % self.slots * self.slot_bytes

    def write(self, ring: int, record: Any, *payload: bytes, patience: float = 0.0) -> int:
        """Append a frame and return its number. Only one writer may call this at a time.

        The call waits up to ``patience`` s of wall-clock time until the log has read the frame that is overwritten.
        """
        body = b"".join(payload)
        if RECORD.itemsize + len(body) > self.slot_bytes:
            raise AttachError(f"a frame of {len(body)} bytes does not fit into its ring")
        number = int(self.done[ring]) + 1
        limit = time.monotonic() + patience
        while 0 < self.logged[ring] <= number - self.slots and time.monotonic() < limit:
            time.sleep(LOOK_S)
        self.begun[ring] = number
        record["number"], record["bytes"] = number, len(body)
        at = self._slot(ring, number)
        self._memory[at : at + RECORD.itemsize] = record.tobytes()
        at += RECORD.itemsize
        self._memory[at : at + len(body)] = body
        self.done[ring] = number
        return number

    def read(self, ring: int, number: int) -> ImagingFrame | None:
        """Return a frame by its number, or None if it is not yet written or already overwritten."""
        if not 0 < number <= int(self.done[ring]):
            return None
        at = self._slot(ring, number)
        record = np.frombuffer(bytes(self._memory[at : at + RECORD.itemsize]), RECORD)[0]
        size = min(int(record["bytes"]), self.slot_bytes - RECORD.itemsize)
        at += RECORD.itemsize
        payload = bytes(self._memory[at : at + max(size, 0)])
        if int(self.begun[ring]) >= number + self.slots or int(record["number"]) != number:
            return None
        return ImagingFrame(record, payload)


class FrameReader:
    """Sequential reader of the frames of one instrument. ``dropped`` counts the frames that were overwritten before
    they were read.
    """

    def __init__(self, rings: FrameRings, ring: int, name: str = "") -> None:
        self.rings, self.ring, self.name = rings, ring, name
        self.last_read = self.dropped = 0

    @classmethod
    def open(cls, server: str, body: str, name: str) -> FrameReader:
        """Open the frames of a sonar or camera on a body of a running server."""
        from wavesim_sdk.attach import SharedState

        suite = SharedState(server).instruments(body)
        types = {n: bytes(entry["type"]).decode() for n, entry in suite.items()}
        if types.get(name) not in FRAME_SENSOR_TYPES:
            there = [n for n, type_ in types.items() if type_ in FRAME_SENSOR_TYPES]
            raise AttachError(no_such_source(body, name, there))
        rings = FrameRings.attach(server)
        return cls(rings, rings.ring_index(types[name], int(suite[name]["place"])), name)

    def next(self) -> ImagingFrame | None:
        """Return the oldest unread frame that still exists, or None if there is no new frame."""
        while True:
            done = int(self.rings.done[self.ring])
            if self.last_read >= done:
                return None
            first = max(self.last_read + 1, done - self.rings.slots + 2)
            self.dropped += first - self.last_read - 1
            self.last_read = first
            frame = self.rings.read(self.ring, first)
            if frame is not None:
                return frame
            self.dropped += 1


def remove_rings(server: str) -> list[str]:
    """Remove the segment of a server if it exists. Returns the names of the removed segments."""
    name = segment_name(server, "sonars")
    with contextlib.suppress(posix_ipc.ExistentialError):
        posix_ipc.unlink_shared_memory(name)
        return [name]
    return []
