"""Virtual Blue Robotics Ping echosounder (Ping protocol, device type 1). It sends the values from a body's echosounder.

A frame consists of ``BR``, length, message, source, destination, payload, and the sum of all bytes; numbers are
little-endian. Because the instrument measures travel times, it reports the true range multiplied by the ratio of its
configured speed of sound to the true speed of sound.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from wavesim_sdk.broker import Step

ACK, NACK, DEVICE_INFORMATION, PROTOCOL_VERSION, GENERAL_REQUEST = 1, 2, 4, 5, 6
FIRMWARE, DEVICE_ID, VOLTAGE, SOUND_SPEED, RANGE, MODE_AUTO, INTERVAL, GAIN = range(1200, 1208)
TRANSMIT, GENERAL_INFO, DISTANCE_SIMPLE, DISTANCE, CPU_TEMPERATURE, PCB_TEMPERATURE, ENABLE = 1208, *range(1210, 1216)
PROFILE, CONTINUOUS_START, CONTINUOUS_STOP = 1300, 1400, 1401
POINTS = 200
MAX_PAYLOAD = 512
_HEAD = struct.Struct("<2sHHBB")
#: names of the settings in each message, and the struct format of its payload, by message id
_SETTINGS: dict[int, tuple[tuple[str, ...], struct.Struct]] = {
    1000: (("device",), struct.Struct("<B")),
    1001: (("scan_start", "scan_length"), struct.Struct("<II")),
    1002: (("sound_speed",), struct.Struct("<I")),
    1003: (("automatic",), struct.Struct("<B")),
    1004: (("interval",), struct.Struct("<H")),
    1005: (("gain",), struct.Struct("<B")),
    1006: (("enabled",), struct.Struct("<B")),
}
#: minimum and maximum of each setting, in the units of the protocol
_LIMITS = {
    "device": (0, 254),
    "scan_start": (0, 100_000),
    "scan_length": (1, 100_000),
    "sound_speed": (1_000_000, 2_000_000),
    "automatic": (0, 1),
    "interval": (20, 60_000),
    "gain": (0, 6),
    "enabled": (0, 1),
}


def encode_frame(message: int, payload: bytes, source: int = 1, destination: int = 0) -> bytes:
    """Return a Ping protocol frame with its checksum."""
    data = _HEAD.pack(b"BR", len(payload), message, source, destination) + payload
    return data + struct.pack("<H", sum(data) & 0xFFFF)


@dataclass
class PingParser:
    """Parser that turns received bytes into (message, payload) pairs. It counts frames with a bad checksum or length."""

    buffer: bytearray = field(default_factory=bytearray)
    bad: int = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Return the frames that have been received completely so far."""
        self.buffer += data
        found: list[tuple[int, bytes]] = []
        while True:
            start = self.buffer.find(b"BR")
            if start < 0:
                del self.buffer[: max(len(self.buffer) - 1, 0)]
                return found
            del self.buffer[:start]
            if len(self.buffer) < _HEAD.size:
                return found
            _, length, message, _, _ = _HEAD.unpack_from(self.buffer)
            size = _HEAD.size + length + 2
            if length > MAX_PAYLOAD:
                self.bad += 1
                del self.buffer[:2]
                continue
            if len(self.buffer) < size:
                return found
            whole = bytes(self.buffer[:size])
            if sum(whole[:-2]) & 0xFFFF != struct.unpack("<H", whole[-2:])[0]:
                self.bad += 1
                del self.buffer[:2]
                continue
            del self.buffer[:size]
            found.append((message, whole[_HEAD.size : -2]))


class Ping1DDevice:
    """Virtual Ping echosounder: its settings, last measurement and replies."""

    def __init__(
        self, send: Callable[[bytes], None], true_sound_speed: float, echosounder: str = "echosounder"
    ) -> None:
        self.send, self.true_sound_speed, self.echosounder = send, true_sound_speed, echosounder
        self.parser, self.refused = PingParser(), 0
        self.device, self.gain, self.automatic, self.enabled, self.interval = 1, 3, 1, 1, 100
        self.scan_start, self.scan_length, self.sound_speed = 0, 30_000, 1_500_000
        self.number = self.distance = self.confidence = 0
        self.continuous: int | None = None
        self._next = 0.0

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
        elif message in _SETTINGS:
            self._set(message, payload)
        elif message in (CONTINUOUS_START, CONTINUOUS_STOP) and len(payload) == 2:
            requested = struct.unpack("<H", payload)[0]
            if requested not in (DISTANCE, DISTANCE_SIMPLE, PROFILE):
                self._refuse(message, "only distance and profile messages are supported")
                return
            self.continuous = requested if message == CONTINUOUS_START else None
            self.send(encode_frame(ACK, struct.pack("<H", message), self.device))
        elif not payload:  # older form of a request
            self._send_message(message)
        else:
            self._refuse(message, "unknown message")

    def _set(self, message: int, payload: bytes) -> None:
        names, form = _SETTINGS[message]
        if len(payload) != form.size:
            self._refuse(message, "wrong length")
            return
        values = dict(zip(names, form.unpack(payload), strict=True))
        for name, value in values.items():
            low, high = _LIMITS[name]
            if not low <= value <= high:
                self._refuse(message, f"{name} must be between {low} and {high}")
                return
        for name, value in values.items():
            setattr(self, name, value)
        self.send(encode_frame(ACK, struct.pack("<H", message), self.device))

    def _refuse(self, message: int, text: str) -> None:
        self.refused += 1
        self.send(encode_frame(NACK, struct.pack("<H", message) + text.encode() + b"\0", self.device))

    def _send_message(self, message: int) -> None:
        head = struct.pack(
            "<IHHIIII", self.distance, self.confidence, self.transmit, self.number, self.start, self.length, self.gain
        )
        answers: dict[int, Callable[[], bytes]] = {
            DEVICE_INFORMATION: lambda: bytes((1, 1, 3, 29, 0, 0)),
            PROTOCOL_VERSION: lambda: bytes((1, 0, 0, 0)),
            FIRMWARE: lambda: struct.pack("<BBHH", 1, 1, 3, 29),
            DEVICE_ID: lambda: bytes((self.device,)),
            VOLTAGE: lambda: struct.pack("<H", 5000),
            SOUND_SPEED: lambda: struct.pack("<I", self.sound_speed),
            RANGE: lambda: struct.pack("<II", self.start, self.length),
            MODE_AUTO: lambda: bytes((self.automatic,)),
            INTERVAL: lambda: struct.pack("<H", self.interval),
            GAIN: lambda: struct.pack("<I", self.gain),
            TRANSMIT: lambda: struct.pack("<H", self.transmit),
            GENERAL_INFO: lambda: struct.pack("<HHHHBB", 3, 29, 5000, self.interval, self.gain, self.automatic),
            DISTANCE_SIMPLE: lambda: struct.pack("<IB", self.distance, self.confidence),
            DISTANCE: lambda: head,
            CPU_TEMPERATURE: lambda: struct.pack("<H", 3500),
            PCB_TEMPERATURE: lambda: struct.pack("<H", 3000),
            ENABLE: lambda: bytes((self.enabled,)),
            PROFILE: lambda: head + struct.pack("<H", POINTS) + self._profile(),
        }
        if message not in answers:
            self._refuse(message, "unknown message")
            return
        self.send(encode_frame(message, answers[message](), self.device))

    # -- the measurement ---------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """Start of the scan in mm; 0 in automatic mode."""
        return 0 if self.automatic else self.scan_start

    @property
    def length(self) -> int:
        """Length of the scan in mm; 1.5 times the distance in automatic mode."""
        return max(2_000, round(1.5 * self.distance)) if self.automatic and self.confidence else self.scan_length

    @property
    def transmit(self) -> int:
        """Pulse length in us; it increases with the length of the scan."""
        return min(max(round(self.length / 1000.0 * 8.0), 20), 1000)

    def _profile(self) -> bytes:
        """Return the echo strength along the scan: decaying reverberation, and a peak at the bottom."""
        width = max(self.length / POINTS * 1.5, 30.0)
        out = bytearray()
        for k in range(POINTS):
            x = self.start + (k + 0.5) * self.length / POINTS
            peak = 255.0 * math.exp(-(((x - self.distance) / width) ** 2)) if self.confidence else 0.0
            out.append(min(255, round(peak + 40.0 * math.exp(-x / 500.0))))
        return bytes(out)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        value = step.sensors.get(self.echosounder)
        self.measure(step.time, None if value is None else value.range)

    def measure(self, time: float, distance: float | None) -> None:
        """Make a measurement if a ping is due at ``time`` (s). ``distance`` is the range that the sensor reports in m,
        or None.
        """
        if not self.enabled or time < self._next:
            return
        self._next = time + self.interval * 1e-3
        self.number += 1
        indicated = None if distance is None else round(distance * self.sound_speed / self.true_sound_speed)
        if indicated is not None and (
            self.automatic or self.scan_start <= indicated <= self.scan_start + self.scan_length
        ):
            self.distance, self.confidence = indicated, 98
        else:
            self.confidence = 0
        if self.continuous is not None:
            self._send_message(self.continuous)
