"""Virtual Cerulean Omniscan 450 side-scan sonar and Surveyor 240 multibeam echosounder (Ping protocol). They send data
that is computed from imaging sonar frames.

A host enables a device. For each frame that arrives over the network, the device then sends a profile or a set of
soundings. The configuration sets range, rate and gain. Samples beyond the range of the sonar are zero. The instruments
measure travel times and convert them to metres with the speed of sound that the host sets.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wavesim_devices.ping1d import (
    ACK,
    DEVICE_INFORMATION,
    GENERAL_REQUEST,
    NACK,
    PROTOCOL_VERSION,
    PingParser,
    encode_frame,
)
from wavesim_sdk.broker import Step
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.onboard import BrokerBase

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

SET_SOUND_SPEED = 116
PING_PARAMS, MONO_PROFILE = 2197, 2198
ATOF, SET_PING_PARAMETERS = 3012, 3023
MAX_RESULTS = 1200
MAX_POINTS = 252  #: maximum number of points per message, so that the message fits into one datagram
_PROFILE = struct.Struct("<IIIIIHHHBBffffff")
_PARAMS = struct.Struct("<IIIffffhHBBBB")
_POINTS = struct.Struct("<IQffIIfIHH")
_SURVEYOR = struct.Struct("<iifhhHBBBBBBiHHf")


class SonarFrameSource:
    """Source of the frames from one sonar. The broker receives these frames over the network."""

    def __init__(self, broker: BrokerBase, sonar: str, kind: str, title: str) -> None:
        self.broker, self.sonar, self.kind, self.title = broker, sonar, kind, title
        broker.subscribe_frames(sonar)

    def take_frames(self) -> list[ImagingFrame]:
        """Return the frames received since the last call. Raises BrokerError if the sonar is not of the type that the
        device needs.
        """
        found = [f for f in self.broker.take_frames() if f.name == self.sonar]
        for f in found:
            check_sonar_type(f, self.kind, self.title)
        return found


def check_sonar_type(frame: ImagingFrame, kind: str, title: str) -> None:
    """Raise BrokerError if a frame is not from a sonar of the type that a device needs."""
    if frame.kind != kind:
        raise BrokerError(f"sonar '{frame.name}' is of type {frame.kind}; {title} needs type {kind}")


def resample_maxima(samples: Sequence[int], first: float, each: float, count: int) -> list[int]:
    """Return the maximum sample in each of ``count`` successive intervals. An interval is ``each`` samples long, and
    the first one starts at sample ``first``. The maximum is 0 for intervals beyond the samples.
    """
    edges = [first + each * k for k in range(count + 1)]
    return [max(samples[int(a) : max(math.ceil(b), int(a) + 1)], default=0) for a, b in itertools.pairwise(edges)]


class _CeruleanDevice:
    """Base class of the Cerulean devices: it handles requests and sends replies."""

    message = 0  #: id of the message that the device sends for each sonar frame

    def __init__(self, send: Callable[[bytes], None], new: Callable[[], list[ImagingFrame]]) -> None:
        self.send, self._new = send, new
        self.parser, self.refused = PingParser(), 0
        self.enabled, self.sound_speed = False, 0.0  #: sound speed set by the host, m/s; 0 = sound speed of the sonar
        self.last = b""

    @property
    def errors(self) -> int:
        """Number of invalid frames and rejected requests."""
        return self.parser.bad + self.refused

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for message, payload in self.parser.feed(data):
            if message == GENERAL_REQUEST and len(payload) == 2:
                self._send_message(struct.unpack("<H", payload)[0])
            elif not payload:
                self._send_message(message)
            elif (trouble := self._set(message, payload)) is None:
                self.send(encode_frame(ACK, struct.pack("<H", message)))
            else:
                self._refuse(message, trouble)

    def _refuse(self, message: int, text: str) -> None:
        self.refused += 1
        self.send(encode_frame(NACK, struct.pack("<H", message) + text.encode() + b"\0"))

    def _send_message(self, message: int) -> None:
        answers = {DEVICE_INFORMATION: bytes((0, 1, 1, 0, 0, 0)), PROTOCOL_VERSION: bytes((1, 1, 0, 0))}
        if self.last:
            answers[self.message] = self.last
        if message in answers:
            self.send(encode_frame(message, answers[message]))
        else:
            self._refuse(message, "unknown message, or no measurement yet")

    def _set(self, message: int, payload: bytes) -> str | None:
        """Apply the settings in a message. Return an error message, or None if they are valid."""
        raise NotImplementedError

    def _payloads(self, f: ImagingFrame) -> list[bytes]:
        """Return the message payloads to send for a sonar frame."""
        raise NotImplementedError

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        for f in self._new():
            for payload in self._payloads(f):
                self.last = payload
                if self.enabled:
                    self.send(encode_frame(self.message, payload))


class OmniscanDevice(_CeruleanDevice):
    """Virtual Omniscan 450. The two sides of the sonar share one serial or network port as separate devices: channel 0
    is the port side, channel 1 the starboard side. Strengths are levels in dB after the gain.
    """

    message = MONO_PROFILE

    def __init__(self, send: Callable[[bytes], None], new: Callable[[], list[ImagingFrame]]) -> None:
        super().__init__(send, new)
        #: start and length of the scan in mm, and number of samples
        self.start, self.length, self.results = 0, 5000, 600

    def _set(self, message: int, payload: bytes) -> str | None:
        if message == SET_SOUND_SPEED and len(payload) == 4:
            speed = struct.unpack("<I", payload)[0] * 1e-3
            if not 1000.0 <= speed <= 2000.0:
                return "speed_of_sound must be between 1000000 and 2000000 mm/s"
            self.sound_speed = speed
        elif message == PING_PARAMS and len(payload) == _PARAMS.size:
            start, length, *_, results, enable, _, _, _ = _PARAMS.unpack(payload)
            if not (0 < length <= 1_000_000 and start <= 1_000_000 and 1 <= results <= MAX_RESULTS):
                return f"length_mm must be between 1 and 1000000, and num_results between 1 and {MAX_RESULTS}"
            self.start, self.length, self.results, self.enabled = start, length, results, bool(enable)
        else:
            return "unknown message or wrong length"
        return None

    def _payloads(self, f: ImagingFrame) -> list[bytes]:
        r = f.record
        true, low, high = float(r["sound_speed"]), float(r["floor"]), float(r["floor"] + r["span"])
        speed, bins, top = self.sound_speed or true, int(r["bins"]), (1 << 8 * int(r["sample_bytes"])) - 1
        per = (
            float(r["range"]) / bins * speed / true
        )  # metres per bin at the speed of sound that the instrument assumes
        first, each = self.start * 1e-3 / per, self.length * 1e-3 / self.results / per
        found = []
        for channel, line in enumerate(f.samples.tolist()):
            results = [x * 65535 // top for x in resample_maxima(line, first, each, self.results)]
            heading = math.degrees(float(r["euler"][2])) % 360.0 if math.isfinite(float(r["euler"][2])) else 0.0
            head = _PROFILE.pack(
                int(r["number"]) % (1 << 32),
                self.start,
                self.length,
                int(r["ping_ns"]) // 1_000_000 % (1 << 32),
                round(float(r["frequency"])),
                0,
                self.results,
                round(speed * 10.0),
                channel,
                0,
                1.0 / float(r["bandwidth"]),
                float(r["gain"]),
                high,
                low,
                (heading + (90.0 if channel else -90.0)) % 360.0,
                heading,
            )
            found.append(head + struct.pack(f"<{self.results}H", *results))
        return found


class SurveyorDevice(_CeruleanDevice):
    """Virtual Surveyor 240. It sends the angle (rad) and two-way time of each detected sounding. Angles are positive to
    port; this sign has not been verified against a document.
    """

    message = ATOF

    def _set(self, message: int, payload: bytes) -> str | None:
        if message != SET_PING_PARAMETERS or len(payload) != _SURVEYOR.size:
            return "unknown message or wrong length"
        values = _SURVEYOR.unpack(payload)
        if not 1000.0 <= values[2] <= 2000.0:
            return "sos_mps must be between 1000 and 2000 m/s"
        self.sound_speed, self.enabled = values[2], bool(values[7] and values[11])
        return None

    def _payloads(self, f: ImagingFrame) -> list[bytes]:
        from wavesim_sdk.imaging_frames import SOUNDING_COLUMNS

        r = f.record
        angle, time, detection = (
            f.samples[:, SOUNDING_COLUMNS.index(n)].tolist() for n in ("angle", "time", "detection")
        )
        true = float(r["sound_speed"])
        speed = self.sound_speed or true
        points = []
        for a, t, good in zip(angle, time, detection, strict=True):
            sine = math.sin(a) * speed / true  # a wrong sound speed at the array changes the beam direction
            if good > 0.0 and abs(sine) < 1.0:
                points.append((-math.asin(sine), t))
        every = max(1, math.ceil(len(points) / MAX_POINTS))
        points = points[::every]
        head = _POINTS.pack(
            int(r["ping_ns"]) // 1_000_000 % (1 << 32),
            0,
            2.0 * float(r["range"]) / true,
            speed,
            int(r["number"]) % (1 << 32),
            round(float(r["frequency"])),
            1.0 / float(r["bandwidth"]),
            0,
            len(points),
            0,
        )
        return [head + b"".join(struct.pack("<ffII", a, t, 0, 0) for a, t in points)]
