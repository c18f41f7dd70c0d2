"""Frames from imaging sonars, cameras, lidars and hydrophones: the record of a frame and its payload."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.frame_labels import LabelNames
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.tables import Field, Table, integer, value

__all__ = ["FRAME_KINDS", "PIXEL_3D", "SOUNDING_COLUMNS", "ImagingFrame"]

#: columns of a sounding: measured values first, then true values
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
#: types of frames; the ``kind`` column of a frame is an index into this tuple
FRAME_KINDS = ("forward", "sidescan", "bathymetry", "scanning", "camera", "3d", "lidar", "hydrophone")
#: types of imaging sonars
SONAR_KINDS = tuple(kind for kind in FRAME_KINDS if kind not in ("camera", "lidar", "hydrophone"))
RANGE_IMAGES = ("3d", "lidar")  #: types of frames whose samples are pixels with a range and a level
#: pixel of a 3D sonar or lidar. Range: 0 = no echo, 65535 = maximum range. Level: 0 = ``floor``, 65535 = ``floor`` plus
#: ``span``, after gain; for a lidar, the intensity from 0 to 1
PIXEL_3D = np.dtype([("range", "<u2"), ("level", "<u2")])
HYDROPHONE_BITS = (0, 12, 16, 24)  #: resolutions of a hydrophone's converter; 0 = floating-point values
_DEPTHS, _CAMERA_LABELS = 1, 2  # bits of the column ``labels`` of a camera
FRAME_SENSOR_TYPES = ("sonar", "camera", "lidar", "hydrophone")  #: sensor types that produce frames


def _text(name: str, doc: str) -> Field:
    return Field(name, "S32", "", doc)


FRAME = Table(
    "frame",
    "Record of an imaging sonar frame. The payload follows the record: samples (beams, bins), beam by beam, or soundings.",
    "emulator sonar",
    (
        integer("number", "", "Frame number, from 1."),
        integer("ping_ns", "ns", "Simulation time of the transmission."),
        integer("time_ns", "ns", "Simulation time at which the last echo arrives and the frame is published."),
        integer("generation", "", "Generation number of the instrument, as in the `instruments` table."),
        _text("body", "Name of the body."),
        _text("name", "Name of the instrument."),
        _text("preset", "Name of the instrument's preset."),
        integer(
            "kind",
            "",
            "Type of the frame: 0 forward, 1 sidescan (beams port and starboard), 2 bathymetry, 3 scanning, 4 camera "
            "(columns: docs/camera.md), 5 3D sonar, 6 lidar (columns: docs/sensors.md), 7 hydrophone (columns: "
            "docs/hydrophones.md).",
        ),
        integer(
            "beams",
            "",
            "Number of beams; for a 3D sonar or lidar, number of rows of the image; for a hydrophone, number of channels.",
        ),
        integer(
            "bins",
            "",
            "Number of samples per beam. The samples cover equal range intervals, and the first one starts at the sonar. For "
            "soundings: number of 8-byte values per sounding. For a 3D sonar or lidar: number of columns of the image.",
        ),
        integer(
            "sample_bytes",
            "",
            "Size of a sample in bytes: 1 or 2 for an unsigned integer, 4 for the range and the level of a pixel (two "
            "unsigned integers), 8 for a floating-point value of a sounding.",
        ),
        integer(
            "bytes",
            "",
            "Size of the payload in bytes. Labels add 4 bytes per sample: material and object, 2 bytes each, -1 = none.",
        ),
        integer(
            "labels",
            "",
            "1 = labels follow the samples; 0 = no labels. For a camera: 1 = depths follow the image; 2 = labels "
            "follow the image; 3 = depths, and then labels, follow the image.",
        ),
        integer("saturated", "", "Number of samples that were clipped at the maximum value."),
        value("range", "m", "Maximum range: the end of the last bin."),
        value("sector", "rad", "Angle from the first to the last beam (types 0 and 2) or column (types 5 and 6)."),
        value("azimuth", "rad", "Azimuth of the beam in the x-y plane of S, for type 3."),
        value(
            "tilt", "rad", "Angle of the sonar axis, or of the middle of a lidar's channels, below the x-y plane of S."
        ),
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
        value(
            "fan_height",
            "rad",
            "Beam width at -3 dB across the array; for types 5 and 6, angle from the first to the last row.",
        ),
        value("altitude", "m", "Altitude of the sonar above the sea bed; NaN = unknown."),
        value("p_WS_W", "m", "Position of the sonar at transmission, or of a lidar at the end of its scan.", 3),
        value("euler", "rad", "Roll, pitch and heading of the sensor frame S at the time of `p_WS_W`.", 3),
        value("v_WS_W", "m/s", "Velocity of the sensor at the time of `p_WS_W`.", 3),
    ),
    "The payload.",
)
RECORD = FRAME.dtype


def frame_record(**fields: Any) -> Any:
    """Return the record of a frame with these fields; all others are 0."""
    record = np.zeros((), RECORD)
    for name, content in fields.items():
        record[name] = content
    return record


def no_such_source(body: str, name: str, available: Iterable[str]) -> str:
    """Return the error message for a body that does not have a sonar, camera, lidar or hydrophone with this name. If ``body`` is
    empty, the message refers to all bodies.
    """
    whose = f"'{body}'" if body else "no body"
    verb = "has no" if body else "has a"
    return (
        f"{whose} {verb} sonar, camera, lidar or hydrophone named '{name}'; available: {', '.join(available) or 'none'}"
    )


@dataclass(frozen=True)
class ImagingFrame:
    """Frame from a sonar, camera, lidar or hydrophone: its record, and its payload of samples (beams, bins) or soundings
    (beams, SOUNDING_COLUMNS). A frame of a hydrophone is one block of samples (channels, samples).
    """

    record: Any
    payload: bytes
    #: names of the labels; None if they are unknown, as in frames from the network or from shared memory
    names: LabelNames | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_bytes(cls, data: bytes) -> ImagingFrame:
        """Parse the bytes of a frame's record and of its payload. Raises ValueError if they are inconsistent."""
        if len(data) < RECORD.itemsize:
            raise ValueError("the frame is shorter than its record")
        r, payload = np.frombuffer(data, RECORD, 1)[0], data[RECORD.itemsize :]
        count, size = int(r["beams"]) * int(r["bins"]), int(r["sample_bytes"])
        if (
            min(int(r["beams"]), int(r["bins"])) < 1
            or size not in (1, 2, 4, 8)
            or not 0 <= r["kind"] < len(FRAME_KINDS)
            or not _is_sound(r, size)
        ):
            raise ValueError("the frame's record is invalid (kind, beams, bins or sample_bytes)")
        if not len(payload) == int(r["bytes"]) == count * size + _truth_bytes(r):
            raise ValueError("the length of the payload differs from the length in the record")
        return cls(r, payload)

    @property
    def data(self) -> bytes:
        """Bytes of the record and the payload, in the form that :meth:`from_bytes` reads."""
        return bytes(self.record.tobytes()) + self.payload

    def without_truth(self) -> ImagingFrame:
        """Return the frame as sent to a client that has no access to true values: without pose, labels and true points."""
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
        """Name of the body that carries the instrument."""
        return bytes(self.record["body"]).rstrip(b"\0").decode("utf-8", "replace")

    @property
    def name(self) -> str:
        """Name of the instrument."""
        return bytes(self.record["name"]).rstrip(b"\0").decode("utf-8", "replace")

    @property
    def kind(self) -> str:
        return FRAME_KINDS[int(self.record["kind"])]

    @property
    def samples(self) -> Any:
        """Samples as integers (beams, bins), soundings as floats (beams, columns), or pixels of a 3D sonar or
        lidar as :data:`PIXEL_3D` (rows, columns). Samples of a hydrophone (channels, samples) are signed integers, or
        voltages in V as 32-bit floats.
        """
        r = self.record
        type_: Any = {1: "<u1", 2: "<u2", 4: PIXEL_3D, 8: "<f8"}[int(r["sample_bytes"])]
        if self.kind == "hydrophone":
            type_ = sample_type(int(r["tvg"]))
        count = int(r["beams"]) * int(r["bins"])
        return np.frombuffer(self.payload, type_, count).reshape(int(r["beams"]), int(r["bins"]))

    @property
    def image(self) -> Any:
        """Camera image (rows, columns, 3) with red, green and blue channels."""
        return self.samples.reshape(int(self.record["beams"]), -1, 3)

    @property
    def sampling_rate(self) -> float:
        """Sampling rate of a hydrophone in Hz."""
        return float(self.record["frequency"])

    @property
    def first_sample(self) -> int:
        """Number of the first sample of a hydrophone's block. Sample k is taken at the time k / ``sampling_rate`` of
        the hydrophone's own clock.
        """
        return round(int(self.record["ping_ns"]) * 1e-9 * self.sampling_rate)

    @property
    def voltages(self) -> Any:
        """Output voltages of a hydrophone in V (channels, samples)."""
        bits = int(self.record["tvg"])
        return self.samples * (float(self.record["span"]) / (1 << (bits - 1)) if bits else 1.0)

    @property
    def sixteen_bit_samples(self) -> Any:
        """Samples of a hydrophone (channels, samples) as int16, for formats that have no other type; 32768 is full scale."""
        bits, found = int(self.record["tvg"]), self.samples
        if bits == 0:
            scaled = np.floor(np.asarray(found, float) * (32768.0 / float(self.record["span"])) + 0.5)
            return np.clip(scaled, -32768, 32767).astype(np.int16)
        return (found >> (bits - 16) if bits > 16 else found << (16 - bits)).astype(np.int16)

    @property
    def pressures(self) -> Any:
        """Sound pressures in uPa (channels, samples) for the hydrophone's sensitivity and gain."""
        return self.voltages * 10.0 ** (-0.05 * (float(self.record["floor"]) + float(self.record["gain"])))

    @property
    def depth(self) -> Any:
        """Depth image of a camera (rows, columns): distance along the x axis of S in m (inf = the pixel hits nothing),
        or None if the camera does not measure depth.
        """
        r = self.record
        if self.kind != "camera" or not int(r["labels"]) & _DEPTHS:
            return None
        rows, count = int(r["beams"]), int(r["beams"]) * int(r["bins"])
        return np.frombuffer(self.payload, "<f4", count // 3, offset=count).reshape(rows, -1)

    @property
    def labels(self) -> Any:
        """Numbers of material and object for each sample (beams, bins, 2) or each pixel of a camera (rows, columns, 2);
        None if the frame has no labels. :mod:`wavesim_sdk.frame_labels` defines the numbers.
        """
        r = self.record
        is_camera = self.kind == "camera"
        if not int(r["labels"]) & (_CAMERA_LABELS if is_camera else 1):
            return None
        rows, count = int(r["beams"]), int(r["beams"]) * int(r["bins"]) // (3 if is_camera else 1)
        return np.frombuffer(self.payload, "<i2", offset=len(self.payload) - 4 * count).reshape(rows, -1, 2)

    @property
    def ranges(self) -> Any:
        """Ranges of the bin centres in m; for a 3D sonar or lidar, the measured range of each pixel (rows, columns),
        NaN = no echo.
        """
        r = self.record
        if self.kind in RANGE_IMAGES:
            found = self.samples["range"]
            return np.where(found > 0, found * (float(r["range"]) / 65535), np.nan)
        return (np.arange(int(r["bins"])) + 0.5) * float(r["range"]) / int(r["bins"])

    @property
    def angles(self) -> Any:
        """Angles of the beams, or of the columns of a 3D sonar or lidar, in rad, positive to starboard."""
        half = 0.5 * float(self.record["sector"])
        return np.linspace(-half, half, int(self.record["bins" if self.kind in RANGE_IMAGES else "beams"]))

    @property
    def points(self) -> Any:
        """Positions of the measured soundings (beams, 3), or of the pixels of a 3D sonar or lidar (rows, columns, 3),
        in frame W in m; NaN = no sounding. They are computed with the true position and heading (for pixels: attitude)
        in the record.
        """
        if self.kind in RANGE_IMAGES:
            return self.record["p_WS_W"] + self.points_S @ rotation(quaternion(*self.record["euler"])).T
        r, (x, y, z) = self.record, (self.samples[:, SOUNDING_COLUMNS.index(k)] for k in "xyz")
        c, s = math.cos(float(r["euler"][2])), math.sin(float(r["euler"][2]))
        return r["p_WS_W"] + np.stack([c * x - s * y, s * x + c * y, z], axis=1)

    @property
    def points_S(self) -> Any:
        """Positions of the pixels of a 3D sonar or lidar (rows, columns, 3) in the sensor frame S in m;
        NaN = no echo.
        """
        r = self.record
        half = 0.5 * float(r["fan_height"])
        if self.kind == "lidar":  # the channels of a tilted lidar are cones, not a tilted image
            down = np.linspace(-half, half, int(r["beams"]))[:, None] + float(r["tilt"])
            x, y, z = np.cos(down) * np.cos(self.angles), np.cos(down) * np.sin(self.angles), np.sin(down)
            return self.ranges[..., None] * np.stack(np.broadcast_arrays(x, y, z), axis=-1)
        down = np.linspace(-half, half, int(r["beams"]))[:, None]
        x, y, z = np.cos(down) * np.cos(self.angles), np.cos(down) * np.sin(self.angles), np.sin(down)
        c, s = math.cos(float(r["tilt"])), math.sin(float(r["tilt"]))
        return self.ranges[..., None] * np.stack([c * x - s * z, y, s * x + c * z], axis=-1)

    @property
    def intensities(self) -> Any:
        """Intensities of the echoes of a lidar (rows, columns), from 0 to 1; NaN = no echo."""
        s = self.samples
        return np.where(s["range"] > 0, s["level"] / 65535, np.nan)

    @property
    def column_times(self) -> Any:
        """Times in s of the columns of a lidar, relative to the start of the scan."""
        r = self.record
        count = int(r["bins"])
        return (np.arange(count) + 1.0) / count * (int(r["time_ns"]) - int(r["ping_ns"])) * 1e-9

    @property
    def levels(self) -> Any:
        """Echo levels in dB re 1 uPa, with the resolution of the samples: an array (beams, bins), or for a 3D sonar an
        array (rows, columns) in which NaN = no echo.
        """
        r = self.record
        if self.kind == "3d":
            samples, top, ranges = self.samples["level"], 65535, self.ranges
        else:
            samples, top = self.samples, (1 << (8 * int(r["sample_bytes"]))) - 1
            ranges = np.maximum(self.ranges, self.ranges[0] * 2.0)
        x = np.minimum(ranges, r["hold"])
        gain = r["tvg"] * np.log10(x) + 2.0 * r["absorption"] * x + r["gain"]
        return samples * (r["span"] / top) + r["floor"] - gain


def _is_sound(r: Any, size: int) -> bool:
    """Return False if a record claims to be from a hydrophone but its bits, rate and size do not fit."""
    if FRAME_KINDS[int(r["kind"])] != "hydrophone":
        return True
    bits, rate = float(r["tvg"]), float(r["frequency"])
    return bits in HYDROPHONE_BITS and size == np.dtype(sample_type(int(bits))).itemsize and 1.0 <= rate <= 1e9


def raw_image_type(dtype: np.dtype[Any]) -> int:
    """Return the code of a hydrophone's sample type in `marine_acoustic_msgs/SonarImageData`."""
    return {"i2": 3, "i4": 5, "f4": 8}[dtype.str[1:]]


def sample_type(bits: int) -> str:
    """Return the data type of the samples of a hydrophone: integers of ``bits`` bits, or 0 for floating-point values."""
    return "<f4" if bits == 0 else "<i2" if bits <= 16 else "<i4"


def _truth_bytes(r: Any) -> int:
    """Return the number of bytes of true data that follow the samples: 4 per sample or, for a camera, 4 per pixel
    for depths and 4 per pixel for labels.
    """
    kinds, count = int(r["labels"]), int(r["beams"]) * int(r["bins"])
    if int(r["kind"]) != FRAME_KINDS.index("camera"):
        return 4 * count if kinds else 0
    return 4 * (count // 3) * ((kinds & _DEPTHS) // _DEPTHS + (kinds & _CAMERA_LABELS) // _CAMERA_LABELS)
