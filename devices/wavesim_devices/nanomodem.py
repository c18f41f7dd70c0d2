"""Virtual nano-modem (Newcastle University, third generation): ASCII commands from the host, and replies to it.

Commands and replies: ``$?`` returns ``#A003V01024`` (address, and supply voltage in 5/1024 V). ``$A003`` sets the
address, with the reply ``#A003`` (accepted only if it equals the configured address). ``$P005`` pings a modem:
``$P005``, then ``#R005T00533`` (one-way time in units of 31.25 us) or ``#TO`` (no reply). ``$B05hello`` is a broadcast:
``$B05``; other modems receive ``#B00305hello``. ``$U00505hello`` is a message to one modem: ``$U00505``; that modem
receives ``#U05hello``. Any other command returns ``E``.

The medium reports travel times with a resolution of 1 us; the modem rounds them to its own unit. Time is simulation
time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception

UNIT_S = 31.25e-6
TIMEOUT_S = 4.0
MAX_DATA = 64
#: number of digits after the letter of each command
_FIXED = {ord("?"): 0, ord("A"): 3, ord("P"): 3, ord("B"): 2, ord("U"): 5}


class InvalidCommand(Exception):
    """Received bytes that are not a command of the modem."""


@dataclass
class NanoModemParser:
    """Splitter of bytes from the host into complete commands. It skips other bytes."""

    buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the complete commands received so far without their dollar sign, with None for each invalid one."""
        self.buffer += data
        found: list[bytes | None] = []
        while True:
            start = self.buffer.find(b"$")
            del self.buffer[: start if start >= 0 else len(self.buffer)]
            if len(self.buffer) < 2:
                return found
            try:
                length = self._length()
            except InvalidCommand:
                found.append(None)
                del self.buffer[:1]
                continue
            if length is None or len(self.buffer) < length:
                return found
            found.append(bytes(self.buffer[1:length]))
            del self.buffer[:length]

    def _length(self) -> int | None:
        """Return the length in bytes of the command at the start of the buffer; None if more bytes are needed."""
        digits = _FIXED.get(self.buffer[1])
        if digits is None:
            raise InvalidCommand
        head = bytes(self.buffer[2 : 2 + digits])
        if head and not head.isdigit():
            raise InvalidCommand
        if len(head) < digits:
            return None
        if self.buffer[1] not in b"BU":
            return 2 + digits
        data = int(head[-2:])
        if not 1 <= data <= MAX_DATA:
            raise InvalidCommand
        return 2 + digits + data


class NanoModemDevice:
    """Virtual modem: it turns host commands into acoustic requests, and receptions into replies to the host."""

    def __init__(self, broker: AsyncBroker, address: int, sound_speed: float, send: Callable[[bytes], None]) -> None:
        self.broker, self.address, self.sound_speed, self.send = broker, address, sound_speed, send
        self.parser = NanoModemParser()
        self.time: float | None = None  # None until the first state arrives
        self._asked: tuple[int, int] | None = None  # address and request of the pending ping
        self._deadline: float | None = None
        broker.on_reception(self._heard)

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for command in self.parser.feed(data):
            if command is None:
                self.send(b"E\r\n")
            else:
                self._handle_command(command)

    def _handle_command(self, command: bytes) -> None:
        letter, rest = command[:1], command[1:]
        if letter == b"?":
            self.send(b"#A%03dV01024\r\n" % self.address)
        elif letter == b"A":
            self.send(b"#A%03d\r\n" % self.address if int(rest) == self.address else b"E\r\n")
        elif letter == b"P":
            self.send(b"$P%s\r\n" % rest)
            request = self.broker.range_to(int(rest))
            self._asked = (int(rest), request)
            self._deadline = None if self.time is None else self.time + TIMEOUT_S
        elif letter == b"B":
            self.send(b"$B%s\r\n" % rest[:2])
            self.broker.send(rest[2:])
        else:
            self.send(b"$U%s\r\n" % rest[:5])
            self.broker.send(rest[5:], to=int(rest[:3]))

    def _heard(self, r: Reception) -> None:
        if r.kind == SignalKind.RANGE_REPLY and r.to_address == self.address and r.range is not None:
            if self._asked is not None and self._asked[0] == r.from_address:
                units = round(r.range / self.sound_speed / UNIT_S)
                self.send(b"#R%03dT%05d\r\n" % (r.from_address, units))
                self._asked = None
        elif r.kind == SignalKind.DATA and r.payload is not None:
            if r.to_address == 0:
                self.send(b"#B%03d%02d%s\r\n" % (r.from_address, len(r.payload), r.payload))
            elif r.to_address == self.address:
                self.send(b"#U%02d%s\r\n" % (len(r.payload), r.payload))

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self.time = step.time
        if self._asked is not None:
            if self._deadline is None:  # the ping came before the first state
                self._deadline = self.time + TIMEOUT_S
            mine = any(r.request == self._asked[1] for r in step.refused)
            if mine or self.time >= self._deadline:
                self.send(b"#TO\r\n")
                self._asked = None
