"""Virtual Water Linked M64 modem on its serial port.

Commands and replies are lines ``wcX,...`` and ``wrX,...*CRC``, as in the serial protocol of the Water Linked DVL. A
packet has eight bytes with arbitrary values: ``wcq,8,<bytes>`` queues a packet, and ``wrp,8,<bytes>`` reports a
received packet.

The modem in role a sends a packet every second, and the modem in role b answers each packet. Packets without data are
empty. The modems do not repeat lost packets. Time is simulation time.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from wavesim_devices.ports import Bytes
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.checksums import crc8
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception

PAYLOAD = 8
PERIOD_S = 1.0  #: time in s between two packets from role a
PACKET_S, TURN_S = 0.3, 0.05  #: duration of a packet, and pause before the modem in role b answers, in s (assumed)
#: number of packets that must arrive after a change of the settings before the link is up (the manufacturer's
#: simulator: 3 s)
SYNCHRONISATION = 3
LINK_LOSS_S = 3.5  #: time in s without a packet after which the link is down (assumed)
MAX_QUEUE = 32  #: maximum number of packets in the queue (assumed)
LINE_LIMIT = 64
_BINARY = b"wcq,"


@dataclass(frozen=True)
class SerialCommand:
    """A line from the host: its letter and fields or, if the line is not a valid command, an error code (``?`` or
    ``!``).
    """

    letter: str = ""
    fields: tuple[bytes, ...] = ()
    problem: str = ""


class M64Splitter:
    """Splitter that divides the bytes from the host into commands. The bytes of a packet may include line ends."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[SerialCommand]:
        """Return the complete commands."""
        self._buffer += data
        found = []
        while (end := self._end()) is not None:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            if line:
                found.append(_parse(line))
        if len(self._buffer) > LINE_LIMIT:
            self._buffer.clear()
            found.append(SerialCommand(problem="?"))
        return found

    def _end(self) -> int | None:
        """Return the index of the line end, or None if it has not arrived yet."""
        start = _data_start(self._buffer)
        first = 0 if start is None else start[0] + start[1]
        ends = [e for e in (self._buffer.find(b"\r", first), self._buffer.find(b"\n", first)) if e >= 0]
        return min(ends, default=None)


def _data_start(line: bytes | bytearray) -> tuple[int, int] | None:
    """Return the position of a packet's data bytes in the line and the number of these bytes, or None if the line does
    not announce a packet.
    """
    if not line.startswith(_BINARY):
        return None
    comma = line.find(b",", len(_BINARY))
    count = bytes(line[len(_BINARY) : comma]) if comma >= 0 else b""
    if not count.isdigit() or len(count) > 2:
        return None
    return comma + 1, int(count)


def _parse(line: bytes) -> SerialCommand:
    start = _data_start(line)
    rest = line if start is None else line[start[0] + start[1] :]
    if rest[-3:-2] == b"*":
        if rest[-2:].lower() != b"%02x" % crc8(line[:-3]):
            return SerialCommand(problem="!")
        line, rest = line[:-3], rest[:-3]
    if start is not None:
        if rest or len(line) < start[0] + start[1]:
            return SerialCommand(problem="?")
        return SerialCommand("q", (b"%d" % start[1], line[start[0] :]))
    if not line.startswith(b"wc") or line.startswith(b"wcq") or len(line) < 3 or line[3:4] not in (b"", b","):
        return SerialCommand(problem="?")
    fields = tuple(line[4:].split(b",")) if len(line) > 3 else ()
    return SerialCommand(chr(line[2]), fields)


def reply(text: bytes) -> bytes:
    """Return a line with its checksum."""
    return b"%s*%02x\n" % (text, crc8(text))


class M64Modem:
    """Virtual M64 modem. ``channel`` is the channel of the transducer's band; hosts cannot select another one."""

    def __init__(self, broker: AsyncBroker, send: Bytes, role: str, channel: int) -> None:
        self.broker, self.send, self.role, self.channel = broker, send, role, channel
        self.errors = 0  #: number of lines that were not valid commands
        self.received, self.lost = 0, 0
        self._splitter = M64Splitter()
        self._queue: deque[bytes] = deque()
        self._now = 0.0
        self._next: float | None = None  # time of the next packet of role a; None until the first state
        self._in_step = 0  # packets received since the link is being set up
        self._last = -math.inf  # time of the last packet

    @property
    def has_link(self) -> bool:
        """Whether the other modem is answering."""
        return self._in_step >= SYNCHRONISATION

    # -- the host ------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for command in self._splitter.feed(data):
            text = b"wr" + command.problem.encode() if command.problem else self._execute(command)
            self.errors += text in (b"wr?", b"wr!")
            self.send(reply(text))

    def _execute(self, command: SerialCommand) -> bytes:
        """Execute a command and return the reply."""
        fields, simple = command.fields, not command.fields
        match command.letter:
            case "v" if simple:
                return b"wrv,1,0,1"
            case "n" if simple:
                return b"wrn,%d" % PAYLOAD
            case "c" if simple:
                return b"wrc,%s,%d" % (self.role.encode(), self.channel)
            case "l" if simple:
                return b"wrl,%d" % len(self._queue)
            case "f" if simple:
                self._queue.clear()
                return b"wrf,a"
            case "d" if simple:
                return b"wrd,%s,%d,%d,0.0" % (b"y" if self.has_link else b"n", self.received, self.lost)
            case "s" if len(fields) == 2:
                return b"wrs,a" if self._configure(*fields) else b"wrs,n"
            case "q" if len(fields) == 2:
                if int(fields[0]) != PAYLOAD or len(self._queue) >= MAX_QUEUE:
                    return b"wrq,n"
                self._queue.append(fields[1])
                return b"wrq,a"
        return b"wr?"

    def _configure(self, role: bytes, channel: bytes) -> bool:
        if role not in (b"a", b"b") or channel != b"%d" % self.channel:
            return False
        self.role = role.decode()
        self._in_step, self._last, self.received, self.lost = 0, -math.inf, 0, 0
        self._next = self._now
        return True

    # -- the water -------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now = step.time
        for heard in step.receptions:
            if heard.kind == SignalKind.DATA and not heard.to_address and len(heard.payload or b"") in (0, PAYLOAD):
                self._hear(heard)
        if self.has_link and self._now - self._last > LINK_LOSS_S:
            self._in_step = 0
        if self.role == "a":
            self._next = self._now if self._next is None else self._next
            if self._now >= self._next:
                self._next += PERIOD_S * max(1, math.ceil((self._now - self._next) / PERIOD_S + 1e-9))
                self._transmit(None)

    def _hear(self, heard: Reception) -> None:
        time = heard.reception_ns * 1e-9
        if self.has_link:
            self.lost += max(round((time - self._last) / PERIOD_S) - 1, 0)
        self._last, self._in_step = time, self._in_step + 1
        self.received += 1
        if heard.payload:
            self.send(reply(b"wrp,%d,%s" % (PAYLOAD, heard.payload)))
        if self.role == "b":
            self._transmit(heard.reception_ns + round((PACKET_S + TURN_S) * 1e9))

    def _transmit(self, at: int | None) -> None:
        """Send the next packet in the queue if the link is up. Otherwise, send an empty packet."""
        data = self._queue.popleft() if self._queue and self.has_link else b""
        self.broker.send(data, at=at, duration=PACKET_S)
