"""Frames of imaging sonars and cameras: their record, and the rings in shared memory that hold the newest of each instrument.

A segment ``/wavesim.NAME.sonars`` holds a ring for each place of the table ``sonar``, and behind them, from the last backwards, one for
each place of the table ``camera``.  It begins like the other areas: the magic
``WAVESONR``, version, 16 bytes of the record's hash, size, PID and start time of the server, then rings, slots, bytes of a slot (8
bytes each).  Ring k begins at ``HEADER + k (RING + slots slot_bytes)`` with ``begun``, ``done`` and ``logged``: numbers of
the frame that is being written, of the last that is whole, and one more than that of the last which the log has (0 = no log).  Frame n stands in slot ``(n - 1) % slots``: a record (:data:`FRAME`) and behind it
``bytes`` of payload.  A reader copies the frame and then looks at ``begun``: up to ``n + slots - 1`` the copy is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
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
MAX_BYTES = 4 << 20  #: of a payload
MAX_BINS = 2000
LOOK_S = 0.0005  #: of a writer that waits for the log

#: columns of a sounding: what is told, then the truth
SOUNDING_COLUMNS = (
    "angle", "time", "x", "y", "z", "sigma_z", "sigma_r", "level", "snr", "detection",
    "north", "east", "down", "material", "object",
)  # fmt: skip
FRAME_KINDS = (*KINDS, "camera")  #: a frame's kind is a place in it
FRAME_SENSOR_TYPES = ("sonar", "camera")  #: of sensors that have frames


def _text(name: str, doc: str) -> Field:
    return Field(name, "S32", "", doc)


FRAME = Table(
    "frame",
    "A frame of an imaging sonar. Behind it stands its payload: samples (beams, bins), a beam after the other, or soundings.",
    "emulator sonar",
    (
        integer("number", "", "From 1."),
        integer("ping_ns", "ns", "Simulation time of the transmission."),
        integer("time_ns", "ns", "Simulation time at which the last echo has come: it is published then."),
        integer("generation", "", "That of its instrument in the table instruments."),
        _text("body", "Name of the body."),
        _text("name", "Name of the instrument."),
        _text("preset", "What it is."),
        integer("kind", "", "0 forward, 1 sidescan (beams port and starboard), 2 bathymetry, 3 scanning, 4 camera (its columns: docs/camera.md)."),
        integer("beams", "", "Beams."),
        integer("bins", "", "Samples of a beam, of equal length from the sonar on; of a sounding its numbers (8 bytes each)."),
        integer("sample_bytes", "", "1 or 2, without sign; 8: floating-point numbers of soundings."),
        integer("bytes", "", "Of the payload; with labels 4 bytes more for each sample: material and object, 2 bytes each, -1 = none."),
        integer("labels", "", "1: behind the samples stand labels."),
        integer("saturated", "", "Samples cut at the top."),
        value("range", "m", "End of the last bin."),
        value("sector", "rad", "From the first beam to the last, of kinds 0 and 2."),
        value("azimuth", "rad", "Of the beam in the plane of S, of kind 3."),
        value("tilt", "rad", "Of its axis below the x-y plane of S."),
        value("frequency", "Hz", "Centre."),
        value("bandwidth", "Hz", "Of the pulse."),
        value("sound_speed", "m/s", "By which ranges were made of times."),
        value("absorption", "dB/m", "That the gain makes up for."),
        value("source_level", "dB re 1 uPa at 1 m", "SL."),
        value("gain", "dB", "G of X log r + 2 alpha r + G."),
        value("tvg", "", "X of it."),
        value("hold", "m", "Range from which it no longer grows."),
        value("floor", "dB re 1 uPa", "Level after gain of the number 0."),
        value("span", "dB", "From 0 to the greatest number."),
        value("beam_width", "rad", "At -3 dB, along the array."),
        value("fan_height", "rad", "At -3 dB, across it."),
        value("altitude", "m", "Over the bed; NaN = unknown."),
        value("p_WS_W", "m", "Place at the transmission.", 3),
        value("euler", "rad", "Roll, pitch, heading of S then.", 3),
        value("v_WS_W", "m/s", "Velocity then.", 3),
    ),
    "The payload.",
)  # fmt: skip
RECORD = FRAME.dtype


def resolve_preset(s: SonarConfig) -> Preset:
    """The instrument with the numbers that a declaration changes."""
    p = find_preset(s.preset)
    changes: dict[str, Any] = {"range": s.range or p.range, "rate": s.rate}
    changes |= {"beams": s.beams} if s.beams else {}
    changes |= {"sector": s.sector} if s.sector else {}
    changes |= {"tilt": s.tilt} if s.tilt > -1.0 else {}
    bins = s.bins or p.bins or min(MAX_BINS, max(16, round(changes["range"] / p.resolution)))
    return replace(p, bins=bins, **changes)


def payload_bytes(s: SonarConfig | CameraConfig) -> int:
    """Of a frame."""
    if isinstance(s, CameraConfig):
        return s.width * s.height * (7 if s.depth else 3)
    p = resolve_preset(s)
    if p.kind == "bathymetry":
        return p.beams * len(SOUNDING_COLUMNS) * 8
    return p.beams * p.bins * (s.bits // 8 + (4 if s.truth else 0))


def ring_slot_bytes(sonars: list[SonarConfig | CameraConfig]) -> int:
    """Of a ring for any of them."""
    most = max((payload_bytes(s) for s in sonars), default=0)
    return (RECORD.itemsize + most + 63) & ~63


def create_rings(loaded: LoadedConfig, server: str) -> None:
    """Make the rings of a server whose configuration has such instruments; OSError."""
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
    """A frame: its record, and its payload as an array: samples (beams, bins) or soundings (beams, SOUNDING)."""

    record: Any
    payload: bytes

    @classmethod
    def from_bytes(cls, data: bytes) -> ImagingFrame:
        """From the bytes of a record and its payload; ValueError where they do not agree."""
        if len(data) < RECORD.itemsize:
            raise ValueError("shorter than its record")
        r, payload = np.frombuffer(data, RECORD, 1)[0], data[RECORD.itemsize :]
        count, size = int(r["beams"]) * int(r["bins"]), int(r["sample_bytes"])
        if min(int(r["beams"]), int(r["bins"])) < 1 or size not in (1, 2, 8) or not 0 <= r["kind"] < len(FRAME_KINDS):
            raise ValueError("its record makes no sense")
        if not len(payload) == int(r["bytes"]) == count * size + _truth_bytes(r):
            raise ValueError("its payload is not as long as its record says")
        return cls(r, payload)

    @property
    def data(self) -> bytes:
        """Record and payload, as :meth:`of` reads them."""
        return bytes(self.record.tobytes()) + self.payload

    def without_truth(self) -> ImagingFrame:
        """The same, as somebody gets it from whom the truth is hidden: no pose, no labels, no true points."""
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
        """(beams, bins) of whole numbers; of soundings (beams, numbers)."""
        r = self.record
        type_ = {1: "<u1", 2: "<u2", 8: "<f8"}[int(r["sample_bytes"])]
        count = int(r["beams"]) * int(r["bins"])
        return np.frombuffer(self.payload, type_, count).reshape(int(r["beams"]), int(r["bins"]))

    @property
    def image(self) -> Any:
        """Of a camera: (rows, columns, 3) red, green, blue."""
        return self.samples.reshape(int(self.record["beams"]), -1, 3)

    @property
    def depth(self) -> Any:
        """Of a camera that tells it: (rows, columns) distance along the x axis of S, m (inf = nothing), or None."""
        r = self.record
        if not r["labels"] or self.kind != "camera":
            return None
        return np.frombuffer(self.payload, "<f4", offset=len(self.payload) - _truth_bytes(r)).reshape(
            int(r["beams"]), -1
        )

    @property
    def labels(self) -> Any:
        """(beams, bins, 2) material and object, or None."""
        r = self.record
        if not r["labels"] or self.kind == "camera":
            return None
        start = int(r["beams"]) * int(r["bins"]) * int(r["sample_bytes"])
        return np.frombuffer(self.payload, "<i2", offset=start).reshape(int(r["beams"]), int(r["bins"]), 2)

    @property
    def ranges(self) -> Any:
        """Middles of the bins, m."""
        r = self.record
        return (np.arange(int(r["bins"])) + 0.5) * float(r["range"]) / int(r["bins"])

    @property
    def angles(self) -> Any:
        """Of the beams, rad to starboard."""
        half = 0.5 * float(self.record["sector"])
        return np.linspace(-half, half, int(self.record["beams"]))

    @property
    def points(self) -> Any:
        """Where soundings lie as the sonar took them, by the true place and heading of the ping: (beams, 3) in W, m; NaN where lost."""
        r, (x, y, z) = self.record, (self.samples[:, SOUNDING_COLUMNS.index(k)] for k in "xyz")
        c, s = math.cos(float(r["euler"][2])), math.sin(float(r["euler"][2]))
        return r["p_WS_W"] + np.stack([c * x - s * y, s * x + c * y, z], axis=1)

    @property
    def levels(self) -> Any:
        """Echo levels (beams, bins) in dB re 1 uPa, as far as the numbers tell them."""
        r = self.record
        top = (1 << (8 * int(r["sample_bytes"]))) - 1
        x = np.minimum(np.maximum(self.ranges, self.ranges[0] * 2.0), r["hold"])
        gain = r["tvg"] * np.log10(x) + 2.0 * r["absorption"] * x + r["gain"]
        return self.samples * (r["span"] / top) + r["floor"] - gain


def _truth_bytes(r: Any) -> int:
    """Of what stands behind the samples: 4 for each sample, or for each pixel."""
    if not r["labels"]:
        return 0
    return 4 * int(r["beams"]) * int(r["bins"]) // (3 if int(r["kind"]) == FRAME_KINDS.index("camera") else 1)


class FrameRings:
    """The rings of a server's instruments with frames, mapped. ``begun``, ``done``, ``logged``: of each ring, as views."""

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
        """Make the segment of a server; OSError."""
        total = HEADER + rings * (RING + SLOTS * size)
        memory = create_memory(segment_name(server, "sonars"), total, group)
        header = np.frombuffer(memory, np.int64, 10, 0)
        header[1], header[4:10] = VERSION, (total, os.getpid(), process_start(os.getpid()), rings, SLOTS, size)
        memory[16:32] = _hash()
        memory[0:8] = MAGIC

    @classmethod
    def attach(cls, server: str, writable: bool = False) -> FrameRings:
        """Map them; NotRunning or AttachError says why that cannot be done."""
        name = segment_name(server, "sonars")
        try:
            memory = map_memory(name, MAGIC, HEADER, "ring of sonars", writable)
        except posix_ipc.ExistentialError:
            raise NotRunning(f"no server '{server}' with imaging sonars or cameras runs") from None
        if memory[16:32] != _hash():
            raise AttachError(f"{name} is of another release; install the same on both sides")
        header = [int(n) for n in np.frombuffer(memory, np.int64, 10)]
        rings, slots, size = header[7:]
        if min(rings, slots - 1, size - RECORD.itemsize) < 0 or HEADER + rings * (RING + slots * size) > len(memory):
            raise AttachError(f"{name} is damaged: {rings} rings of {slots} x {size} bytes in {len(memory)} bytes")
        if not is_process_alive(header[5], header[6]):
            raise NotRunning(f"the server that owned {name} is gone")
        return cls(memory)

    def ring_index(self, type_: str, place: int) -> int:
        """The ring of an instrument, by its type and its place in that type's table."""
        return place if type_ == "sonar" else self.rings - 1 - place

    def _slot(self, ring: int, number: int) -> int:
        return HEADER + ring * self._each + RING + (number - 1) % self.slots * self.slot_bytes

    def write(self, ring: int, record: Any, *payload: bytes, patience: float = 0.0) -> int:
        """Add a frame; returns its number. One writer at a time. It waits up to ``patience`` s of wall time for the log to have
        that which is overwritten."""
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
        """A frame by its number; None if it is not there yet or no longer."""
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
    """Frames of one instrument, one after the other; ``dropped`` counts those that it was too slow for."""

    def __init__(self, rings: FrameRings, ring: int, name: str = "") -> None:
        self.rings, self.ring, self.name = rings, ring, name
        self.last_read = self.dropped = 0

    @classmethod
    def open(cls, server: str, body: str, name: str) -> FrameReader:
        """Of a sonar or camera of a body of a running server."""
        from wavesim_sdk.attach import SharedState

        suite = SharedState(server).instruments(body)
        types = {n: bytes(entry["type"]).decode() for n, entry in suite.items()}
        if types.get(name) not in FRAME_SENSOR_TYPES:
            there = [n for n, type_ in types.items() if type_ in FRAME_SENSOR_TYPES]
            raise AttachError(f"'{body}' has no sonar or camera '{name}'; it has {', '.join(there) or 'none'}")
        rings = FrameRings.attach(server)
        return cls(rings, rings.ring_index(types[name], int(suite[name]["place"])), name)

    def next(self) -> ImagingFrame | None:
        """The oldest frame that was not read yet and is still there; None if there is no new one."""
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
    """Remove the segment of a server, if it is there; returns its name."""
    name = segment_name(server, "sonars")
    with contextlib.suppress(posix_ipc.ExistentialError):
        posix_ipc.unlink_shared_memory(name)
        return [name]
    return []
