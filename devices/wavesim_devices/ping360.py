"""Virtual Blue Robotics Ping360 scanning sonar (Ping protocol, device type 2).

The device reads the `scanner` sensor of a body, or the frames from a scanning `sonar`. With frames, each sample of the
device is the maximum of the echoes within its range interval.

The head turns in gradians (400 per turn) from the x axis of the instrument towards its y axis. For each transmission,
the device reports the echo strength of a number of samples. The device measures travel times and converts them to
metres with the speed of sound in the sea. The simulated scanner turns independently of the head, and faster. The device
reports the scanner's last value in the direction of the head.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavesim_devices.cerulean import resample_maxima
from wavesim_devices.ping1d import (
    ACK,
    DEVICE_INFORMATION,
    GENERAL_REQUEST,
    NACK,
    PROTOCOL_VERSION,
    PingParser,
    encode_frame,
)
from wavesim_devices.scanning_head import ScanImage
from wavesim_sdk.broker import Step

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

SET_DEVICE_ID, COMMON_SET_DEVICE_ID = 2000, 100
DEVICE_DATA, AUTO_DEVICE_DATA, RESET, TRANSDUCER, AUTO_TRANSMIT, MOTOR_OFF = 2300, 2301, 2600, 2601, 2602, 2903
GRADIANS_PER_TURN = 400
SAMPLE_S = 25e-9  #: unit in which the sample period is set, s
#: maximum angle (in gradians) between the head direction and the direction of a scanner value; values at larger angles
#: are not reported
MAX_ANGLE_OFFSET = 2
STEP_S = 0.004  #: time in s that the head takes to turn by one gradian
#: struct format of the settings: mode, gain, angle, pulse, sample period, frequency, number of samples
_STATE = struct.Struct("<BBHHHHH")
_SECTOR = struct.Struct("<HHBB")  #: struct format of an automatic scan: start, stop, steps, delay
_TRANSDUCER = struct.Struct("<BBHHHHHBB")
_AUTO = struct.Struct("<BBHHHHHHBB")


@dataclass
class Ping360Settings:
    """Settings of the Ping360, with the names and units of the protocol."""

    mode: int = 1
    gain_setting: int = 0
    angle: int = 0
    transmit_duration: int = 32
    sample_period: int = 80
    transmit_frequency: int = 750
    number_of_samples: int = 1024


@dataclass
class Ping360Sector:
    """Sector of an automatic scan. Angles are in gradians, ``delay`` in ms."""

    start_angle: int = 0
    stop_angle: int = GRADIANS_PER_TURN - 1
    num_steps: int = 1
    delay: int = 0


#: minimum and maximum of each setting, in the units of the protocol
LIMITS = {
    "mode": (0, 1),
    "gain_setting": (0, 2),
    "angle": (0, GRADIANS_PER_TURN - 1),
    "transmit_duration": (1, 1000),
    "sample_period": (80, 40_000),
    "transmit_frequency": (500, 1000),
    "number_of_samples": (200, 1200),
    "start_angle": (0, GRADIANS_PER_TURN - 1),
    "stop_angle": (0, GRADIANS_PER_TURN - 1),
    "num_steps": (1, 10),
    "delay": (0, 100),
}


def _apart(a: int, b: int) -> int:
    """Return the smaller angle between two directions, in gradians."""
    return abs((a - b + GRADIANS_PER_TURN // 2) % GRADIANS_PER_TURN - GRADIANS_PER_TURN // 2)


class Ping360Device:
    """Virtual Ping360: its settings, the values from the scanner, and replies."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        sound_speed: float,
        scanner: str = "scanner",
        take_frames: Callable[[], list[ImagingFrame]] | None = None,
    ) -> None:
        """``take_frames`` returns the sonar frames received since its last call. If this function is given, the frames
        replace the values from the scanner.
        """
        self.send, self.sound_speed, self.scanner = send, sound_speed, scanner
        self._image = ScanImage(take_frames) if take_frames is not None else None
        self.parser, self.refused = PingParser(), 0
        self.device, self.head, self.sector = 2, Ping360Settings(), Ping360Sector()
        self.automatic = False
        self._seen: dict[int, float] = {}  # range in m by gradian
        self._time = 0.0
        self._data = b""
        self._due: deque[tuple[float, bool]] = deque()  # pending replies: time, and whether the head transmits

    # -- host -> instrument ----------------------------------------------------------------------

    @property
    def errors(self) -> int:
        """Number of invalid frames and rejected requests."""
        return self.parser.bad + self.refused

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for message, payload in self.parser.feed(data):
            self._handle_message(message, payload)

    def _handle_message(self, message: int, payload: bytes) -> None:
        if message == GENERAL_REQUEST and len(payload) == 2:
            self._send_message(struct.unpack("<H", payload)[0])
        elif message == TRANSDUCER and len(payload) == _TRANSDUCER.size:
            *settings, transmit, _ = _TRANSDUCER.unpack(payload)
            self._move(message, settings, transmit)
        elif message == AUTO_TRANSMIT and len(payload) == _AUTO.size:
            self._scan(_AUTO.unpack(payload))
        elif message == MOTOR_OFF and not payload:
            self._stop()
            self._acknowledge(message)
        elif message == RESET and len(payload) == 2:
            self._stop()
            self.head, self.sector, self._data = Ping360Settings(), Ping360Sector(), b""
            self._acknowledge(message)
        elif message in (SET_DEVICE_ID, COMMON_SET_DEVICE_ID) and payload:
            if not 1 <= payload[0] <= 254:
                self._refuse(message, "device_id must be between 1 and 254")
                return
            self.device = payload[0]
            self._acknowledge(message)
        elif not payload:  # older form of a request
            self._send_message(message)
        else:
            self._refuse(message, "unknown message or wrong length")

    def _allowed(self, message: int, settings: dict[str, int]) -> bool:
        for name, value in settings.items():
            low, high = LIMITS[name]
            if not low <= value <= high:
                self._refuse(message, f"{name} must be between {low} and {high}")
                return False
        return True

    def _move(self, message: int, settings: list[int], transmit: int) -> None:
        """Turn the head, and then transmit if the message requests a transmission."""
        names = list(Ping360Settings.__dataclass_fields__)
        requested = dict(zip(names, settings, strict=True))
        if not self._allowed(message, requested):
            return
        self._stop()
        turn = _apart(requested["angle"], self.head.angle)
        self.head = Ping360Settings(**requested)
        self._data = b""
        self._due.append((self._time + turn * STEP_S + (self._duration() if transmit else 0.0), bool(transmit)))

    def _scan(self, values: tuple[int, ...]) -> None:
        """Start scanning a sector automatically and repeatedly."""
        mode, gain, pulse, period, frequency, samples, *sector = values
        settings = dict(
            zip(
                Ping360Settings.__dataclass_fields__,
                (mode, gain, sector[0] % GRADIANS_PER_TURN, pulse, period, frequency, samples),
                strict=True,
            )
        )
        requested = dict(zip(Ping360Sector.__dataclass_fields__, sector, strict=True))
        if not self._allowed(AUTO_TRANSMIT, settings | requested):
            return
        self._stop()
        self.head, self.sector, self.automatic = Ping360Settings(**settings), Ping360Sector(**requested), True
        self._due.append((self._time + self._duration(), True))

    def _stop(self) -> None:
        self.automatic = False
        self._due.clear()

    def _acknowledge(self, message: int) -> None:
        self.send(encode_frame(ACK, struct.pack("<H", message), self.device))

    def _refuse(self, message: int, text: str) -> None:
        self.refused += 1
        self.send(encode_frame(NACK, struct.pack("<H", message) + text.encode() + b"\0", self.device))

    def _send_message(self, message: int) -> None:
        h, s = self.head, self.sector
        state = _STATE.pack(
            h.mode,
            h.gain_setting,
            h.angle,
            h.transmit_duration,
            h.sample_period,
            h.transmit_frequency,
            h.number_of_samples,
        )
        echoes = struct.pack("<H", len(self._data)) + self._data
        sector = _SECTOR.pack(s.start_angle, s.stop_angle, s.num_steps, s.delay)
        answers = {
            DEVICE_INFORMATION: bytes((2, 1, 3, 3, 0, 0)),
            PROTOCOL_VERSION: bytes((1, 1, 0, 0)),
            DEVICE_DATA: state + echoes,
            AUTO_DEVICE_DATA: state[:-2] + sector + state[-2:] + echoes,
        }
        if message in answers:
            self.send(encode_frame(message, answers[message], self.device))
        else:
            self._refuse(message, "unknown message")

    # -- the measurement ---------------------------------------------------------------------------

    def _duration(self) -> float:
        """Return the duration in s of a transmission, including the time for its echoes."""
        return self.head.number_of_samples * self.head.sample_period * SAMPLE_S

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        if self._image is not None:
            self._image.update()
        value = step.sensors.get(self.scanner) if self._image is None else None
        if value is not None:
            self._seen[round(value.angle / (2.0 * math.pi) * GRADIANS_PER_TURN) % GRADIANS_PER_TURN] = value.range
        self._time = step.time
        while self._due and self._due[0][0] <= self._time:
            at, transmitted = self._due.popleft()
            if transmitted:
                self._data = self._echoes()
            self._send_message(AUTO_DEVICE_DATA if self.automatic else DEVICE_DATA)
            if self.automatic:
                self._next(at)

    def _next(self, at: float) -> None:
        """Schedule the next step of an automatic scan. At the end of the sector, the scan starts again."""
        s, h = self.sector, self.head
        h.angle = (h.angle + s.num_steps) % GRADIANS_PER_TURN
        if (h.angle - s.start_angle) % GRADIANS_PER_TURN > (s.stop_angle - s.start_angle) % GRADIANS_PER_TURN:
            h.angle = s.start_angle
        self._due.append((at + s.num_steps * STEP_S + self._duration() + 1e-3 * s.delay, True))

    def distance(self) -> float | None:
        """Return the range in m along the beam of the head, or None if there is no echo."""
        near = min(self._seen, key=lambda a: _apart(a, self.head.angle), default=None)
        if near is None or _apart(near, self.head.angle) > MAX_ANGLE_OFFSET or not math.isfinite(self._seen[near]):
            return None
        return self._seen[near]

    def _echoes(self) -> bytes:
        """Return the echo strength of each sample: a decaying ring-down, and a peak as long as the pulse where the echo
        arrives.
        """
        h = self.head
        period = h.sample_period * SAMPLE_S
        reach = 0.5 * self.sound_speed * period  # metres per sample
        if self._image is not None:
            return self._imaged_echoes(self._image, reach)
        found = self.distance()
        width = max(0.5 * h.transmit_duration * 1e-6 / period, 1.0)
        peak = -1.0 if found is None else found / reach
        strength = (90.0, 150.0, 210.0)[h.gain_setting]
        out = bytearray()
        for k in range(h.number_of_samples):
            echo = strength * math.exp(-(((k + 0.5 - peak) / width) ** 2)) if peak >= 0.0 else 0.0
            out.append(min(255, round(echo + 120.0 * math.exp(-(k + 0.5) * reach / 0.2))))
        return bytes(out)

    def _imaged_echoes(self, image: ScanImage, reach: float) -> bytes:
        """Return the echoes of the sonar frame nearest to the head angle, with zeros beyond its range. ``reach`` is the
        length of a sample in m.
        """
        frame = image.find(self.head.angle * 2.0 * math.pi / GRADIANS_PER_TURN)
        if frame is None:
            return bytes(self.head.number_of_samples)
        strengths = frame.samples[0] >> (8 * (int(frame.record["sample_bytes"]) - 1))
        metres = float(frame.record["range"]) / int(frame.record["bins"])
        return bytes(resample_maxima(strengths.tolist(), 0.0, reach / metres, self.head.number_of_samples))
