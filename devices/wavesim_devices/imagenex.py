"""Virtual Imagenex sonars: the 881A imaging sonar, the 852 scanning sonar and the 852 echo sounder. Their echoes come
from the frames of a scanning `sonar`.

The host sends a command with all settings (switch data) for each ping. The head pings, sends its return data, and then
turns by one step. If a setting is invalid, the head keeps its settings, and the bit "switches accepted" is not set in
the status of its return data. A command that arrives during a ping is lost, and the status reports an overrun.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wavesim_devices.scanning_head import Receiver, ScanImage, ScanMotor
from wavesim_sdk.broker import Step

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

START, STOP, END = b"\xfe\x44", 0xFD, 0xFC  #: first bytes and last byte of a command, and last byte of the return data
COMMAND_BYTES = 27
ACCEPTED, OVERRUN = 0x40, 0x80  #: bits of the status: settings accepted, command lost
SLAVE, TRANSMIT, SEND = 0x40, 0x01, 0x02  #: bits of the "master/slave" byte of an 881A
#: bits of the control byte: hold the head; reverse its direction when this bit changes to 1 (assumed)
HOLD, REVERSE = 0x04, 0x40
#: header of the return data and number of points, by the value of the "data points" byte
POINTS = {25: (b"IMX", 252), 50: (b"IGX", 500)}
NEUTRAL_GAIN = 20  #: start gain in dB at which echoes have the same levels as in the configured sonar (assumed)
THRESHOLD = 128  #: sample value that an echo must reach to determine the profile range (assumed)
SOUND_SPEED = 1500.0  #: speed of sound that the head assumes, m/s
SLEW = math.radians(120.0)  #: turning speed of the head, rad/s (assumed)


@dataclass(frozen=True)
class HeadModel:
    """Model of a head. Angles are in degrees. A head position is a multiple of ``unit``; position 0 is ``centre`` units
    to port of straight ahead.
    """

    title: str
    head: int  #: head ID
    status: int  #: bits of the status that are always set
    ranges: tuple[int, ...]  #: range scales, m
    unit: float = 0.0  #: unit of the head position; 0 = a fixed beam
    centre: int = 0  #: head position that points straight ahead
    train: int = 0  #: value of the train angle that points ahead, in units of 3 deg
    step: int = 0  #: number of position units per unit of the step size
    max_step: int = 0  #: maximum step size
    has_mode: bool = False  #: whether the command contains the mode, the time-varying gain and the number of bits
    #: unit of the profile range in m, by range scale; None = the head has no profile range
    profile_unit: Callable[[int], float] | None = None

    @property
    def turn(self) -> int:
        """Number of position units per turn."""
        return round(360.0 / self.unit) if self.unit else 1


_SMALL = (5, 10, 20, 30, 40, 50)
MODELS = {
    "881A": HeadModel(
        "Imagenex 881A",
        0x10,
        0,
        (1, 2, 3, 4, 5, 10, 20, 30, 40, 50, 60, 80, 100),
        0.3,
        600,
        60,
        1,
        8,
        True,
        lambda reach: 0.002 if reach < 5 else 0.01,
    ),
    "852": HeadModel("Imagenex 852", 0x10, 1, _SMALL, 0.15, 1400, 70, 20, 2),
    "852-sounder": HeadModel("Imagenex 852 echo sounder", 0x11, 1, _SMALL, profile_unit=lambda _: 0.01),
}


@dataclass(frozen=True)
class ImagenexSettings:
    """The settings in a command that have an effect, in the units of the protocol."""

    range: int = 5
    direction: int = 0
    mode: int = SLAVE | TRANSMIT | SEND
    gain: int = NEUTRAL_GAIN
    tvg: int = 2
    absorption: int = 20
    train: int = 0
    sector: int = 0
    step: int = 0
    minimum: int = 0
    points: int = 50
    bits: int = 8
    profile: int = 0
    calibrate: int = 0
    delay: int = 0

    @classmethod
    def parse(cls, model: HeadModel, command: bytes) -> ImagenexSettings | None:
        """Return the settings in a command, or None if they are invalid."""
        b = command
        s = cls(b[3], b[5], b[6], b[8], b[9], b[10], b[11], b[12], b[13], b[15], b[19], b[20], b[22], b[23], b[24])
        valid = (
            s.range in model.ranges
            and s.gain <= 40
            and (s.points in POINTS or s.profile == 1)
            and s.profile <= (model.profile_unit is not None)
            and s.minimum <= 250
            and (not model.unit or (s.step <= model.max_step and s.train <= 2 * model.train and s.sector <= 120))
            and (not model.has_mode or (s.mode & SLAVE and s.tvg <= 3 and s.bits == 8))
        )
        return s if valid else None


@dataclass
class CommandReader:
    """Reader that turns received bytes into commands. It counts malformed commands."""

    head: int
    buffer: bytearray = field(default_factory=bytearray)
    bad: int = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the commands for this head that have been received completely so far."""
        self.buffer += data
        found: list[bytes] = []
        while (start := self.buffer.find(START)) >= 0:
            del self.buffer[:start]
            stop = self.buffer.find(STOP, 2, COMMAND_BYTES)
            if stop < 0 and len(self.buffer) < COMMAND_BYTES:
                return found
            if stop != COMMAND_BYTES - 1:
                self.bad += 1
                del self.buffer[:2]
                continue
            command = bytes(self.buffer[:COMMAND_BYTES])
            del self.buffer[:COMMAND_BYTES]
            if command[2] == self.head:
                found.append(command)
        del self.buffer[: max(len(self.buffer) - 1, 0)]
        return found


def _split(value: int) -> bytes:
    """Return a number as two bytes of seven bits each, the least significant byte first."""
    return bytes((value & 0x7F, value >> 7 & 0x7F))


class ImagenexDevice:
    """Virtual Imagenex head: its settings, its motor, and its return data."""

    def __init__(
        self,
        model: HeadModel,
        send: Callable[[bytes], None],
        sound_speed: float,
        take_frames: Callable[[], list[ImagingFrame]],
    ) -> None:
        self.model, self.send = model, send
        self.stretch = sound_speed / SOUND_SPEED  # true range divided by the range that the head states
        self.image, self.reader, self.refused = ScanImage(take_frames), CommandReader(model.head), 0
        self.switches = ImagenexSettings(train=model.train)
        self.motor = ScanMotor(model.turn, model.centre % model.turn)
        self._time = self._ready = 0.0  # simulation time, and time at which the head has turned
        self._due: float | None = None  # time of the pending return data
        self._status = 0

    # -- host -> instrument ----------------------------------------------------------------------

    @property
    def errors(self) -> int:
        """Number of commands that are malformed or have an invalid setting."""
        return self.reader.bad + self.refused

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for command in self.reader.feed(data):
            if self._due is not None:
                self._status |= OVERRUN
                continue
            switches = ImagenexSettings.parse(self.model, command)
            self._status = self.model.status | (ACCEPTED if switches is not None else 0)
            if switches is None:
                self.refused += 1
            else:
                self._apply(switches)
            if self.switches.mode & SEND or not self.model.has_mode:
                self._transmit()

    def _apply(self, new: ImagenexSettings) -> None:
        """Apply the settings in a command, and turn the head to the sector that they define."""
        m, model = self.motor, self.model
        is_reversed = new.direction & REVERSE and not self.switches.direction & REVERSE
        self.switches = new
        if not model.unit:
            return
        unit = round(3.0 / model.unit)  # position units in the unit of angles of a sector
        m.width = new.sector * unit
        m.left = (model.centre + (new.train - model.train) * unit - m.width // 2) % model.turn
        m.step = 0 if new.direction & HOLD else new.step * model.step
        if is_reversed:
            m.clockwise = not m.clockwise
        turned = 0
        if new.calibrate:
            turned, m.position = abs(self.angle), model.centre % model.turn
        self._ready = max(self._time, self._ready) + self._turning_time(turned + m.enter())

    def _turning_time(self, turned: int) -> float:
        """Return the time in s that the head needs to turn by an angle in position units."""
        return turned * math.radians(self.model.unit) / SLEW

    def _transmit(self) -> None:
        s = self.switches
        listening = 2.0 * s.range / SOUND_SPEED if self.is_transmitting else 0.0
        self._due = max(self._time, self._ready) + listening + 2e-3 * s.delay

    @property
    def is_transmitting(self) -> bool:
        """Whether the head transmits before it sends return data."""
        return bool(self.switches.mode & TRANSMIT) or not self.model.has_mode

    @property
    def angle(self) -> int:
        """Angle of the head from straight ahead, in position units. It ranges from half a turn to port to half a turn
        to starboard.
        """
        turn = self.model.turn
        return (self.motor.position - self.model.centre + turn // 2) % turn - turn // 2

    # -- instrument -> host ----------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._time = step.time
        self.image.update()
        if self._due is not None and self._time >= self._due:
            self._ready, self._due = self._due, None
            self._send_echoes()
            if self.model.unit:
                self.motor.advance()
                self._ready += self._turning_time(self.motor.step)

    def _send_echoes(self) -> None:
        """Send the return data for the direction of the head."""
        s, m, model = self.switches, self.motor, self.model
        frame = self.image.find(self.angle * math.radians(model.unit)) if self.is_transmitting else None
        tvg = 10.0 * (s.tvg + 1) if model.has_mode else None
        receiver = Receiver(s.gain - NEUTRAL_GAIN, tvg, 0.01 * s.absorption)
        title, count = (b"IPX", 0) if s.profile else POINTS[s.points]
        direction = 0x2000 if m.clockwise else 0
        position = _split(model.centre + self.angle | direction) if model.unit else b"\0\0"
        head = title + bytes((model.head, self._status)) + position + bytes((s.range,))
        profile = _split(min(self._first_echo(frame, receiver), 0x3FFF))
        echoes = self._encode(frame, receiver, s.range * self.stretch / count, count) if count else b""
        self.send(head + profile + _split(count) + echoes + bytes((END,)))

    @staticmethod
    def _encode(frame: ImagingFrame | None, receiver: Receiver, each: float, count: int) -> bytes:
        """Return ``count`` samples. Every sample covers a range interval that is ``each`` m long. The level range of
        the sonar is mapped to the values 0 to 255.
        """
        span = 1.0 if frame is None else float(frame.record["span"])
        return bytes(min(max(round(255.0 * x / span), 0), 255) for x in receiver.levels(frame, each, count))

    def _first_echo(self, frame: ImagingFrame | None, receiver: Receiver) -> int:
        """Return the range of the first echo above the threshold in the unit of the profile range; 0 = no echo."""
        if frame is None or self.model.profile_unit is None:
            return 0
        s, each = self.switches, float(frame.record["range"]) / int(frame.record["bins"])
        samples = self._encode(frame, receiver, each, int(frame.record["bins"]))
        for k, sample in enumerate(samples):
            reach = (k + 0.5) * each / self.stretch
            if reach > s.range:
                break
            if sample >= THRESHOLD and reach >= 0.1 * s.minimum:
                return max(round(reach / self.model.profile_unit(s.range)), 1)
        return 0
