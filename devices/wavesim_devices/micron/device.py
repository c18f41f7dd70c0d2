"""Virtual Tritech Micron scanning sonar. Its echoes come from the frames that a scanning `sonar` produces.

Directions are in 1/16 gradian (6400 per turn), clockwise seen from above, and 3200 is ahead. The head pings once for
each mtSendData, and then turns by one step. The protocol has no error message, so the head does not answer invalid
packets.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavesim_devices.micron import packets as p
from wavesim_devices.scanning_head import Receiver, ScanImage, ScanMotor
from wavesim_sdk.broker import Step

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

TURN, AHEAD = 6400, 3200
ALIVE_S = 1.0  #: interval in s between two mtAlive messages
BOOT_S, CENTRING_S = 1.0, 3.0  #: durations in s of a restart and of the search for the centre (assumed)
SAMPLE_S = 640e-9  #: unit of ADInterval, s
MOTOR_S = 1e-5  #: unit of MOTime, s per 1/16 gradian
MAX_BINS = 1500
ADC_DB = 80.0  #: maximum level of the converter in dB
#: initial gain (84, which is 40 %) at which echoes have the same levels as in the configured sonar, and full gain (210,
#: which is 80 dB)
NEUTRAL_GAIN, FULL_GAIN = 84, 210
REVERSE = 0x0F  #: one-byte head command that reverses the direction of the scan
V3B = {0x01: 0, 0x1D: p.V3B_BYTES}  #: number of bytes that follow the settings of a head command, by its first byte
#: bits of HdCtrl
ADC8, CONTINUOUS, SCAN_RIGHT, INVERTED, MOTOR_OFF, TRANSMITTER_OFF, STARE = 0x1, 0x2, 0x4, 0x8, 0x10, 0x20, 0x1000
#: bits of HeadInf in mtAlive
CENTRING, CENTRED, MOTOR_ON, CLOCKWISE, IN_SCAN, NO_SETTINGS, USER_DATA_SENT = 0x1, 0x2, 0x8, 0x10, 0x20, 0x40, 0x80
LEFT_LIMIT, RIGHT_LIMIT, CENTRE = 1, 2, 5  #: sweep codes of mtHeadData
DEVICE_TYPE = 0x11  #: DST head
_ALIVE, _VERSION = struct.Struct("<BIHB"), struct.Struct("<BBHIHB")
_DATA = struct.Struct("<HBBBHHIBHBBHHHHBHH")
#: software version, information, serial number, length and checksum of the program, node
VERSION = _VERSION.pack(1, 0, 1, 0, 0, p.SONAR)
USER_DATA_BYTES = 250  #: length of the user data of a DST head; all values are 0, which stands for full duplex


@dataclass(frozen=True)
class HeadSettings:
    """The settings in a head command that have an effect, in the units of the protocol."""

    control: int
    range_scale: int
    left: int
    right: int
    span: int
    low: int
    gain: int
    motor_time: int
    step: int
    interval: int
    bins: int

    @classmethod
    def parse(cls, payload: bytes) -> HeadSettings | None:
        """Return the settings in a head command, or None if they are invalid."""
        if not payload or len(payload) != p.SETTINGS.size + V3B.get(payload[0], -1):
            return None
        v = p.SETTINGS.unpack_from(payload)
        found = cls(v[1], *v[4:10], *v[12:16])
        valid = (
            max(found.left, found.right) < TURN
            and 1 <= found.bins <= MAX_BINS
            and found.interval > 0
            and found.gain <= FULL_GAIN
        )
        return found if valid else None

    @property
    def ping_time(self) -> float:
        """Time in s from the transmission to the last echo."""
        return self.bins * self.interval * SAMPLE_S

    @property
    def receiver(self) -> Receiver:
        return Receiver((self.gain - NEUTRAL_GAIN) * ADC_DB / FULL_GAIN)

    def encode_levels(self, levels: list[float]) -> bytes:
        """Return the bins. Levels from ADLow to ADLow + ADSpan are mapped to the values from 0 to 255 or, if the
        converter has 4 bits, from 0 to 15. With 4 bits, each byte contains two bins, with the first bin in the upper
        half of the byte.
        """
        top = 255 if self.control & ADC8 else 15
        unit = ADC_DB / top
        values = [min(max(round(top * (x / unit - self.low) / max(self.span, 1)), 0), top) for x in levels]
        if top == 255:
            return bytes(values)
        values += [0] * (len(values) % 2)
        return bytes(a << 4 | b for a, b in zip(values[::2], values[1::2], strict=True))


class MicronDevice:
    """Virtual Micron: its settings, its motor, and its packets."""

    def __init__(
        self, send: Callable[[bytes], None], sound_speed: float, take_frames: Callable[[], list[ImagingFrame]]
    ) -> None:
        self.send, self.sound_speed = send, sound_speed
        self.image, self.reader, self.refused = ScanImage(take_frames), p.PacketReader(), 0
        self._time = 0.0
        self._start(0.0)

    def _start(self, delay: float) -> None:
        """Start without settings, ``delay`` s from now."""
        self.settings: HeadSettings | None = None  # None until the host has sent them
        self.motor = ScanMotor(TURN, AHEAD)
        self.user_data_sent, self.sends_alive = False, True
        self._clock = -self._time  # host clock minus simulation time, s
        self._started = self._next_alive = self._time + delay
        self._ready = self._centred = self._started + CENTRING_S  # times from which the head can ping, and is centred
        self._due: float | None = None  # time of the pending reply

    # -- host -> instrument ----------------------------------------------------------------------

    @property
    def errors(self) -> int:
        """Number of malformed packets and invalid commands."""
        return self.reader.bad + self.refused

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for message, payload in self.reader.feed(data):
            if self._time >= self._started and not self._handle_message(message, payload):
                self.refused += 1

    def _handle_message(self, message: int, payload: bytes) -> bool:
        """Execute a command. Return whether it is valid."""
        if message == p.HEAD_COMMAND:
            return self._configure(payload)
        if message == p.SEND_DATA and len(payload) == 4 and self.settings is not None:
            self._clock = struct.unpack("<I", payload)[0] * 1e-3 - self._time
            if self._due is None:
                self._due = max(self._time, self._ready) + self.settings.ping_time
        elif message == p.SEND_VERSION and not payload:
            self.send(p.encode_packet(p.VERSION_DATA, VERSION))
        elif message == p.SEND_USER_DATA and not payload:
            self.send(p.encode_packet(p.USER_DATA, bytes(USER_DATA_BYTES)))
            self.user_data_sent = True
        elif message == p.REBOOT and not payload:
            self._start(BOOT_S)
        elif message == p.STOP_ALIVE and not payload:
            self.sends_alive = False
        else:
            return False
        return True

    def _configure(self, payload: bytes) -> bool:
        """Apply a head command. Return whether it is valid."""
        if payload == bytes((REVERSE,)):
            self.motor.clockwise = not self.motor.clockwise
            return True
        settings = HeadSettings.parse(payload)
        if settings is None:
            return False
        self.settings, self._due = settings, None
        width = TURN if settings.control & CONTINUOUS else (settings.right - settings.left) % TURN
        if settings.control & STARE:
            width = 0
        clockwise = bool(settings.control & SCAN_RIGHT)
        self.motor = ScanMotor(TURN, AHEAD, settings.left, width, settings.step, clockwise)
        self._centred = self._time + CENTRING_S
        self._ready = self._centred + self.motor.enter() * settings.motor_time * MOTOR_S
        self._send_alive()
        return True

    # -- instrument -> host ----------------------------------------------------------------------

    def _send_alive(self) -> None:
        flags = CENTRED if self._time >= self._centred else CENTRING
        flags |= MOTOR_ON
        flags |= CLOCKWISE if self.motor.clockwise else 0
        flags |= IN_SCAN if self._due is not None else 0
        flags |= NO_SETTINGS if self.settings is None else 0
        flags |= USER_DATA_SENT if self.user_data_sent else 0
        clock = round((self._time + self._clock) * 1e3) % (1 << 32)
        self.send(p.encode_packet(p.ALIVE, _ALIVE.pack(0, clock, self.motor.position, flags)))

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._time = step.time
        self.image.update()
        if self._time >= self._next_alive:
            self._next_alive = max(self._next_alive + ALIVE_S, self._time)
            if self.sends_alive:
                self._send_alive()
        if self._due is not None and self.settings is not None and self._time >= self._due:
            due, self._due = self._due, None
            self._ping(self.settings)
            self._ready = due + self._turn(self.settings)

    def _turn(self, s: HeadSettings) -> float:
        """Turn the head by one step. Return the time in s that this takes."""
        if s.control & (MOTOR_OFF | STARE):
            return 0.0
        self.motor.advance()
        return s.step * s.motor_time * MOTOR_S

    def _ping(self, s: HeadSettings) -> None:
        """Send the echoes in the direction of the head."""
        m = self.motor
        azimuth = (m.position - AHEAD) * math.tau / TURN
        frame = self.image.find(-azimuth if s.control & INVERTED else azimuth)
        if s.control & TRANSMITTER_OFF:
            frame = None
        echoes = s.encode_levels(s.receiver.levels(frame, 0.5 * self.sound_speed * s.interval * SAMPLE_S, s.bins))
        sweep = LEFT_LIMIT if m.at_left else RIGHT_LIMIT if m.at_right else CENTRE if m.position == AHEAD else 0
        head = _DATA.pack(
            _DATA.size + len(echoes),
            DEVICE_TYPE,
            0,
            sweep,
            s.control,
            s.range_scale,
            0,
            s.gain,
            0,
            s.span,
            s.low,
            0,
            s.interval,
            s.left,
            s.right,
            s.step,
            m.position,
            len(echoes),
        )
        self.send(p.encode_packet(p.HEAD_DATA, head + echoes))
