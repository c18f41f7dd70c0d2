"""Virtual nano-modem (Newcastle University, third generation): ASCII commands from the host, and replies to it.

Commands and replies: ``$?`` returns ``#A003V21941`` (address, and supply voltage in 15/65536 V). ``$A003`` sets the
address and returns ``#A003``; the modem accepts only the configured address. ``$P005`` pings a modem. It returns
``$P005``, and then ``#R005T00533`` (one-way time in units of 31.25 us) or ``#TO`` (no reply). ``$B05hello`` sends a
broadcast and returns ``$B05``; the hosts of the other modems receive ``#B00305hello``. ``$U00505hello`` sends a message
to one modem and returns ``$U00505``; the host of that modem receives ``#U05hello``. ``$M00505hello`` sends a message
that the modem acknowledges. It returns ``$M00505``, and then the range as after a ping, or ``#TO``. ``$XTE``, ``$XTD``,
``$XTC`` and ``$XTG`` enable, disable, clear and read the system timer; each returns the time, such as
``#XTE00000001500000`` (us). While the timer is enabled, received messages end with a time stamp, ``T`` and 14 digits.
The host may append such a time to a message, which is then sent at this time. Any other command returns ``E``.

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
VOLTAGE = 21941  #: supply voltage of 5.02 V in the modem's unit
MAX_DATA = 64
TIMER_DIGITS, TIMER_NS = 14, 1000
TIMER_COMMANDS = (b"XTE", b"XTD", b"XTC", b"XTG")
#: preamble in s, overhead in bytes, and time per byte in s, which determine the duration of a packet with data
PREAMBLE_S, OVERHEAD_BYTES, BYTE_S = 0.105, 16, 2 * 50 / 8000
#: number of digits after the letter of each command
_FIXED = {ord("?"): 0, ord("A"): 3, ord("P"): 3, ord("B"): 2, ord("U"): 5, ord("M"): 5}


class InvalidCommand(Exception):
    """Raised for received bytes that are not a command for the modem."""


@dataclass
class NanoModemParser:
    """Splitter that divides the bytes from the host into complete commands. It skips all other bytes."""

    buffer: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the complete commands received so far, without their dollar signs. Each invalid command is returned as
        None.
        """
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
        """Return the length in bytes of the command at the start of the buffer, or None if more bytes are needed."""
        if self.buffer[1] == ord("X"):
            if not any(name.startswith(bytes(self.buffer[1:4])) for name in TIMER_COMMANDS):
                raise InvalidCommand
            return 4
        digits = _FIXED.get(self.buffer[1])
        if digits is None:
            raise InvalidCommand
        head = bytes(self.buffer[2 : 2 + digits])
        if head and not head.isdigit():
            raise InvalidCommand
        if len(head) < digits:
            return None
        if self.buffer[1] not in b"BUM":
            return 2 + digits
        data = int(head[-2:])
        if not 1 <= data <= MAX_DATA:
            raise InvalidCommand
        end = 2 + digits + data
        stamp = bytes(self.buffer[end : end + 1 + TIMER_DIGITS])
        if stamp[:1] != b"T":
            return end  # a time follows in the same write, or not at all
        if len(stamp) <= TIMER_DIGITS and (len(stamp) == 1 or stamp[1:].isdigit()):
            return None
        return end + len(stamp) if stamp[1:].isdigit() else end


class NanoModemDevice:
    """Virtual nano-modem. It turns host commands into acoustic requests, and receptions into replies to the host."""

    def __init__(self, broker: AsyncBroker, address: int, sound_speed: float, send: Callable[[bytes], None]) -> None:
        self.broker, self.address, self.sound_speed, self.send = broker, address, sound_speed, send
        self.parser, self.errors = NanoModemParser(), 0
        self.time: float | None = None  # None until the first state arrives
        self._asked: tuple[int, int] | None = None  # address and request of the pending ping
        self._timer_runs, self._timer_start_ns = False, 0
        self._deadline: float | None = None

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        for command in self.parser.feed(data):
            if command is None:
                self._refuse()
            else:
                self._handle_command(command)

    def _refuse(self) -> None:
        self.errors += 1
        self.send(b"E\r\n")

    def _handle_command(self, command: bytes) -> None:
        letter, rest = command[:1], command[1:]
        if letter == b"?":
            self.send(b"#A%03dV%05d\r\n" % (self.address, VOLTAGE))
        elif letter == b"A":
            if int(rest) == self.address:
                self.send(b"#A%03d\r\n" % self.address)
            else:
                self._refuse()
        elif letter == b"P":
            self.send(b"$P%s\r\n" % rest)
            request = self.broker.range_to(int(rest))
            self._asked = (int(rest), request)
            self._deadline = None if self.time is None else self.time + TIMEOUT_S
        elif letter == b"X":
            self._handle_timer(rest[1:])
        else:
            self._send_message(letter, rest, 2 if letter == b"B" else 5)

    def _handle_timer(self, action: bytes) -> None:
        now = round((self.time or 0.0) * 1e9)
        if action in b"ED":
            self._timer_runs = action == b"E"
        elif action == b"C":
            self._timer_start_ns = now
        state = b"E" if self._timer_runs else b"D"
        self.send(b"#XT%s%014d\r\n" % (state, (now - self._timer_start_ns) // TIMER_NS))

    def _send_message(self, letter: bytes, rest: bytes, digits: int) -> None:
        """Send a message. In ``rest``, the address and the length (``digits`` characters) precede the data."""
        self.send(b"$%s%s\r\n" % (letter, rest[:digits]))
        count = int(rest[digits - 2 : digits])
        data, stamp = rest[digits : digits + count], rest[digits + count + 1 :]
        at = int(stamp) * TIMER_NS + self._timer_start_ns if stamp else None
        length = PREAMBLE_S + (count + OVERHEAD_BYTES) * BYTE_S
        if letter != b"M":
            self.broker.send(data, to=int(rest[:3]) if letter == b"U" else 0, at=at, duration=length)
            return
        to = int(rest[:3])
        self._asked = (to, self.broker.range_to(to, at=at, payload=data, duration=length))
        wait = TIMEOUT_S if at is None else max(TIMEOUT_S + at * 1e-9 - (self.time or 0.0), TIMEOUT_S)
        self._deadline = None if self.time is None else self.time + wait

    def _stamp(self, r: Reception) -> bytes:
        if not self._timer_runs:
            return b""
        return b"T%014d" % max((r.reception_ns - self._timer_start_ns) // TIMER_NS, 0)

    def _heard(self, r: Reception) -> None:
        if r.kind == SignalKind.RANGE_REPLY and r.to_address == self.address and r.range is not None:
            if self._asked is not None and self._asked[0] == r.from_address:
                units = round(r.range / self.sound_speed / UNIT_S)
                self.send(b"#R%03dT%05d\r\n" % (r.from_address, units))
                self._asked = None
        elif r.payload is not None:
            message = b"%02d%s%s\r\n" % (len(r.payload), r.payload, self._stamp(r))
            if r.to_address == 0:
                self.send(b"#B%03d%s" % (r.from_address, message))
            elif r.to_address == self.address:
                self.send(b"#U%s" % message)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self.time = step.time
        for reception in step.receptions:
            self._heard(reception)
        if self._asked is not None:
            if self._deadline is None:  # the ping came before the first state
                self._deadline = self.time + TIMEOUT_S
            mine = any(r.request == self._asked[1] for r in step.refused)
            if mine or self.time >= self._deadline:
                self.send(b"#TO\r\n")
                self._asked = None
