"""Virtual S2C modem: commands from its hosts become frames in the simulated water, and receptions become notices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wavesim_devices.ports import Bytes
from wavesim_devices.s2c.commands import S2cParser, SendCommand
from wavesim_devices.s2c.exchange import MAX_FRAGMENTS, Exchange, fragments
from wavesim_devices.s2c.frames import (
    ACK_HEAD_BYTES,
    IM_FLAGS,
    NO_PROCESS,
    FrameKind,
    S2cFrame,
)
from wavesim_devices.s2c.notices import CLOCK_US, Quality, UsblFix, received
from wavesim_devices.s2c.settings import LEVELS_DB, S2cCommandError, S2cSettings
from wavesim_devices.transmitter import Progress, Transmitter
from wavesim_sdk.acoustics import direction_of_arrival, doppler_speed
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception, SignalSent

MAX_IM = 64
BROADCAST = 255
USBL_ACCURACY = 0.0017  #: reported accuracy of directions in rad
_TYPES = {FrameKind.IMS: "ims", FrameKind.BURST: "burst", FrameKind.ACKNOWLEDGEMENT: "ack"}


@dataclass(frozen=True)
class S2cModel:
    """Modem properties that must agree with the configuration."""

    address: int
    payload: int
    bit_rate: float
    preamble: float
    frequency: float
    source_level: float
    multiline: bool = (
        True  #: whether to answer ``?P``, ``?S`` and ``&V`` with several lines, as the manufacturer's software expects
    )


class S2cDevice:
    """Virtual S2C modem in NET mode."""

    def __init__(self, broker: AsyncBroker, model: S2cModel, compass: str = "") -> None:
        self.broker, self.model, self.compass = broker, model, compass
        self.transmitter = Transmitter(broker)
        self.settings = S2cSettings(model.address, round(broker.welcome.sound_speed))
        self.hosts: list[S2cHost] = []
        self.errors = 0  #: number of commands that the modem refused
        self.travel_us = 0
        self.quality: Quality | None = None  # of the last reception
        self._exchange: Exchange | None = None
        self._piggyback: dict[int, tuple[int | None, bytes]] = {}
        self._bursts: dict[int, tuple[int, list[bytes]]] = {}  # sequence and received fragments by sender
        self._last: dict[int, tuple[int, int]] = {}  # sequence and fragment of the last delivered frame by sender
        self._count = self._sequence = 0
        self._period = 0.0  # time between the last two steps, s
        self._attitude: tuple[float, float, float] | None = None  # None until the compass has a value

    def connect(self, port: str, send: Bytes) -> S2cHost:
        """Connect a host. All hosts receive the notices; an answer goes only to the host that sent the command."""
        return S2cHost(self, send)

    @property
    def clock_us(self) -> int:
        """Time of the modem's clock."""
        return round((self.transmitter.time or 0.0) * 1e6)

    @property
    def _level(self) -> float | None:
        lower = LEVELS_DB[self.settings["!L"]]
        return None if lower == 0.0 else max(self.model.source_level + lower, 0.0)

    def notify(self, text: str | bytes) -> None:
        """Send a notice to all hosts."""
        line = text if isinstance(text, bytes) else text.encode() + b"\r\n"
        for host in self.hosts:
            host.send(line)

    # -- commands ------------------------------------------------------------------------------

    def answer(self, command: str) -> str:
        """Execute a command without data, and return its answer without the line end. Raises S2cCommandError."""
        if command.startswith("Z") and command[1:] in ("0", "1", "3", "4"):
            return self._reset(command)
        if self.settings.change(command):
            return "OK"
        several = {"?S": ["INITIATION LISTEN"], "&V": self.settings.lines(), "?P": self._multipath()}
        if command in several:
            return "\r\n".join([*several[command], ""]) if self.model.multiline else " ".join(several[command])
        fixed = {
            "@CTRL": "OK",
            "I0": "1.8",
            "I1": "phy: 0.9, mac: v1.3",
            "?MODE": "NET",
            "A": "INITIATION LISTEN",
            "?CLOCK": str(self.clock_us % CLOCK_US),
            "?T": str(self.travel_us),
        }
        said = fixed.get(command) or self.settings.read(command)
        if said is None:
            raise S2cCommandError("ERROR UNKNOWN COMMAND")
        return said

    def _reset(self, command: str) -> str:
        self.transmitter.cancel()
        self._exchange = None
        self._piggyback.clear()
        if command in ("Z0", "Z1"):
            self.settings.reset()
        return "OK"

    def _multipath(self) -> list[str]:
        """Return the delay in us and the integrity of each arrival of the last signal. The medium reports only the
        first arrival.
        """
        first = 0 if self.quality is None else self.quality.integrity
        if self.model.multiline:
            return [f"{0:8d} {first:8d}"]
        return ["0", str(first), *["0"] * 14]

    def send(self, command: SendCommand) -> str:
        """Execute a command with data, and return its answer. Raises S2cCommandError."""
        limit = MAX_IM if command.kind else MAX_FRAGMENTS * (self.model.payload - 5)
        if command.process is not None and command.process >= NO_PROCESS:
            raise S2cCommandError("ERROR WRONG PID")
        if not 0 < command.to <= BROADCAST or command.to == self.model.address:
            raise S2cCommandError("ERROR WRONG DESTINATION ADDRESS")
        if len(command.data) > limit or (command.kind and len(command.data) + ACK_HEAD_BYTES > self.model.payload):
            raise S2cCommandError("ERROR BUFFER LENGTH")
        if command.kind == "PBM":
            self._piggyback[command.to] = command.process, command.data
            return "OK"
        if self._exchange is not None or self.transmitter.busy:
            raise S2cCommandError("BUSY DELIVERING MESSAGE")
        self._sequence = (self._sequence + 1) % 256
        if command.kind == "IMS":
            return self._send_at_time(command)
        acknowledged = command.option == "ack" or not command.kind
        if acknowledged and command.to == BROADCAST:
            raise S2cCommandError("ERROR WRONG DESTINATION ADDRESS")
        if not command.kind:
            frames = fragments(command.data, self.model.payload, self._sequence, command.process)
            retries = self.settings["!RC"]
        else:
            kind = FrameKind["IM_" + command.option.upper()]
            frames, retries = [S2cFrame(kind, self._sequence, command.process, command.data)], self.settings["!RI"]
        if acknowledged:
            self._exchange = Exchange(
                self.transmitter, frames, command.to, retries, self._level, self._began, self._ended
            )
            self._exchange.start()
        else:
            self._transmit(frames[0], command.to)
        return "OK"

    def _send_at_time(self, command: SendCommand) -> str:
        frame, at = S2cFrame(FrameKind.IMS, self._sequence, command.process, command.data), None
        if command.option:
            ahead = (int(command.option) - self.clock_us) % CLOCK_US
            if ahead >= CLOCK_US // 2:
                self.notify(f"EXPIREDIMS,{command.to}")
                return "OK"
            at = (self.clock_us + ahead) * 1000
        self._transmit(frame, command.to, at)
        return "OK"

    def _transmit(self, frame: S2cFrame, to: int, at: int | None = None) -> None:
        """Send a single frame."""
        left: list[SignalSent] = []

        def began(sent: SignalSent) -> None:
            left.append(sent)
            self._began(frame, sent, to)

        def failed(_reason: str) -> None:
            if frame.kind in (FrameKind.IM_NOACK, FrameKind.IM_FORCE, FrameKind.IMS):
                self.notify(f"CANCELED{'IMS' if frame.kind == FrameKind.IMS else 'IM'},{to}")

        progress = Progress(began, lambda: self._ended(frame, left[0], to), failed)
        self.transmitter.send(frame.pack(), 0 if to == BROADCAST else to, progress, level=self._level, at=at)

    def _began(self, frame: S2cFrame, sent: SignalSent, to: int | None = None) -> None:
        if self.settings["@ZX"]:
            address = to if to is not None else 0 if self._exchange is None else self._exchange.to
            duration = round(sent.duration * 1e6)
            self.notify(f"SENDSTART,{address},{_TYPES.get(frame.kind, 'im')},{duration},0")

    def _ended(self, frame: S2cFrame, sent: SignalSent, to: int | None = None) -> None:
        if self.settings["@ZX"]:
            address = to if to is not None else 0 if self._exchange is None else self._exchange.to
            end = (sent.emission_ns // 1000 + round(sent.duration * 1e6)) % CLOCK_US
            kind = _TYPES.get(frame.kind, "im")
            self.notify(f"SENDEND,{address},{kind},{end},{round(sent.duration * 1e6)}")

    # -- receptions ----------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._period = step.time - (step.time if self.transmitter.time is None else self.transmitter.time)
        if (ahrs := step.sensors.get(self.compass)) is not None:
            self._attitude = float(ahrs.roll), float(ahrs.pitch), float(ahrs.heading)
        self.transmitter.step(step)
        for heard in step.receptions:
            frame = None if heard.payload is None else S2cFrame.unpack(heard.payload)
            if heard.kind == SignalKind.DATA and frame is not None:
                self._receive(heard, frame, step.time)
        exchange = self._exchange
        if exchange is not None and not exchange.retry(step.time):
            self._exchange = None
            self.notify(self._end_of("FAILED", exchange))

    def _end_of(self, word: str, exchange: Exchange) -> str:
        if exchange.frames[0].kind != FrameKind.BURST:
            return f"{word}IM,{exchange.to}"
        self._count += 1
        return f"{word},{self._count},{exchange.to}"

    def _receive(self, heard: Reception, frame: S2cFrame, now: float) -> None:
        size = 0 if heard.payload is None else len(heard.payload)
        duration = self.model.preamble + 8.0 * size / self.model.bit_rate
        velocity = doppler_speed(heard, self.model.frequency, self.broker.welcome.sound_speed)
        quality = self.quality = Quality(round(duration * 1e6), heard.level, heard.snr, velocity)
        mine = heard.to_address == self.model.address
        if self.settings["@ZX"]:
            end = (heard.reception_ns // 1000 + quality.duration_us) % CLOCK_US
            self.notify("RECVSTART")
            self.notify(f"RECVEND,{end},{quality.duration_us},{quality.rssi},{quality.integrity}")
        if frame.kind == FrameKind.ACKNOWLEDGEMENT:
            if mine:
                self._take_acknowledgement(heard, frame, quality)
            return
        if not mine and heard.to_address != 0 and not self.settings["!RP"]:
            return
        if mine and frame.kind in (FrameKind.IM_ACK, FrameKind.BURST):
            self._acknowledge(heard, frame, now)
            key = frame.sequence, frame.fragment
            if self._last.get(heard.from_address) == key:
                return  # repeated because the acknowledgement was lost
            self._last[heard.from_address] = key
        self._deliver(heard, frame, quality)

    def _deliver(self, heard: Reception, frame: S2cFrame, quality: Quality) -> None:
        to = BROADCAST if heard.to_address == 0 else heard.to_address
        ends = [quality.rssi, quality.integrity]
        velocity = f"{quality.velocity:.3f}"
        data, head = frame.data, [heard.from_address, to]
        if frame.kind == FrameKind.BURST:
            if to != self.model.address:
                return  # the fragments of other modems' bursts
            sequence, parts = self._bursts.get(heard.from_address, (-1, []))
            if frame.fragment == 0 or sequence != frame.sequence:
                parts = []
            if len(parts) != frame.fragment:
                return
            parts.append(data)
            self._bursts[heard.from_address] = frame.sequence, parts
            if len(parts) == frame.fragments:
                del self._bursts[heard.from_address]
                fields = [*head, round(self.model.bit_rate), *ends, self.travel_us, velocity]
                self.notify(received("RECV", fields, b"".join(parts), frame.process))
        elif frame.kind == FrameKind.IMS:
            time = heard.reception_ns // 1000 % CLOCK_US
            self.notify(received("RECVIMS", [*head, time, quality.duration_us, *ends, velocity], data, frame.process))
        else:
            fields = [*head, IM_FLAGS[frame.kind], quality.duration_us, *ends, velocity]
            self.notify(received("RECVIM", fields, data, frame.process))

    def _acknowledge(self, heard: Reception, frame: S2cFrame, now: float) -> None:
        """Send the acknowledgement of a frame after a turn-around time. The acknowledgement states this time, so that
        the frame's sender can measure the travel time.
        """
        turn = now + 2.5 * self._period + 0.05 - heard.reception_ns * 1e-9
        turn_us, at = math.ceil(turn * 100.0) * 10_000, None
        if self.transmitter.busy or not 0 < turn_us < 2**32:
            turn_us = 0
        else:
            at = heard.reception_ns + turn_us * 1000
        process, data = self._piggyback.pop(heard.from_address, (None, b""))
        number = (frame.sequence + frame.fragment) % 256
        answer = S2cFrame(FrameKind.ACKNOWLEDGEMENT, number, process, data, turn_around_us=turn_us)
        self._transmit(answer, heard.from_address, at)

    def _take_acknowledgement(self, heard: Reception, frame: S2cFrame, quality: Quality) -> None:
        exchange = self._exchange
        travel = None if exchange is None else exchange.acknowledge(heard, frame)
        if exchange is None or travel is None:
            return
        if not math.isnan(travel):
            self.travel_us = max(round(travel * 1e6), 0)
        if frame.data:
            fields = [heard.from_address, heard.to_address, quality.duration_us, quality.rssi, quality.integrity]
            notice = received("RECVPBM", [*fields, f"{quality.velocity:.3f}"], frame.data, frame.process)
            self.notify(notice)
        if not exchange.done:
            exchange.start()
            return
        self._exchange = None
        self.notify(self._end_of("DELIVERED", exchange))
        if not self.settings["@ZU"] or self._attitude is None or math.isnan(travel):
            return
        if heard.azimuth is not None and heard.elevation is not None:
            direction = direction_of_arrival(heard.azimuth, heard.elevation)
            now, then = self.transmitter.time or 0.0, heard.reception_ns * 1e-9
            fix = UsblFix(now, then, heard.from_address, direction, self._attitude, USBL_ACCURACY)
            for line in fix.notices(self.travel_us * 1e-6 * self.settings["!CA"], self.travel_us, quality):
                self.notify(line)


class S2cHost:
    """Connection to a host."""

    def __init__(self, device: S2cDevice, send: Bytes) -> None:
        self.device, self.send = device, send
        self._parser = S2cParser()
        device.hosts.append(self)

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for command in self._parser.feed(data):
            carry_out: Callable[[], str]
            if isinstance(command, SendCommand):
                carry_out = partial(self.device.send, command)
            else:
                carry_out = partial(self.device.answer, "" if command is None else command[2:])
            try:
                said = carry_out()
            except S2cCommandError as error:
                self.device.errors += 1
                said = str(error)
            self.send(said.encode() + b"\r\n")

    def close(self) -> None:
        """Remove the host after it has closed the connection."""
        self.device.hosts.remove(self)
