"""Virtual Teledyne Benthos ATM-900 modem on its serial port.

In command mode, the host sends AT commands, ``@Parameter=value`` and shell commands, and each answer ends with the
prompt ``user:N>``. ``ATD2`` or ``ATO`` begins online mode, in which the bytes from the host become a packet once the
host has been silent for ``FwdDelay``. ``+++`` after one second of silence ends online mode. A packet is one signal, or
several signals without a pause. The first byte of each signal is the rate code, with the highest bit set if more
signals follow; the second byte is the number of the signal. Time is simulation time.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from wavesim_devices.ports import Bytes
from wavesim_devices.signal_train import Emit, SignalTrain, TrainTransmitter
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.acoustics import doppler_speed
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception

#: bit rate of each rate code, from 140 to 15360 bit/s (assumed)
RATES: Mapping[int, int] = MappingProxyType(
    dict(zip(range(2, 14), (140, 300, 600, 800, 1066, 1200, 2400, 2560, 5120, 7680, 10240, 15360), strict=True))
)
PREAMBLE_S = 0.6  #: duration of a packet's preamble in s (assumed)
MORE = 0x80  #: flag in the first byte of a signal: another signal of the packet follows
GUARD_S = 1.0  #: time in s for which the host must be silent before +++
PIECE, MAX_PACKET, MAX_QUEUE = 254, 4096, 8
BROADCAST = 255
RANGE_LIMIT_S = 15.0  #: time in s for which the modem waits for the reply to a range request (assumed)
KNOT = 1852.0 / 3600.0
HEX_LINE = 16  #: number of bytes in a line of received data
_SWITCH = ("Ena", "Dis")
_ADDRESSES = (0.0, 255.0)
#: for each parameter, its initial value, and the allowed words or the limits of a number; hosts can set LocalAddr
#: only to the modem's address
_PARAMETERS: Mapping[str, tuple[str, tuple[str, ...] | tuple[float, float]]] = MappingProxyType(
    {
        "P1EchoChar": ("Ena", _SWITCH),
        "P1Prompt": ("7", (0.0, 7.0)),
        "Verbose": ("3", (0.0, 5.0)),
        "DataRetry": ("0", (0.0, 0.0)),
        "FwdDelay": ("0.05", (0.01, 5.0)),
        "LocalAddr": ("0", _ADDRESSES),
        "RemoteAddr": ("1", _ADDRESSES),
        "TxRate": ("5", (2.0, 13.0)),
        "PrintHex": ("Ena", ("Ena",)),
        "WakeTones": ("Ena", _SWITCH),
        "RcvAll": ("Dis", _SWITCH),
        "ShowBadData": ("Dis", _SWITCH),
        "OpMode": ("0", (0.0, 1.0)),
    }
)
_DATE = re.compile(r"date(?: -t(\d\d:\d\d:\d\d))?(?: -d(\d\d/\d\d/\d{4}))?", re.IGNORECASE)
_DIAL = re.compile(r"AT([DR])(\d{1,3})", re.IGNORECASE)


class BenthosModem:
    """Virtual ATM-900 modem."""

    def __init__(self, broker: AsyncBroker, send: Bytes, address: int, carrier: float) -> None:
        self.broker, self.send, self.address, self.carrier = broker, send, address, carrier
        self.sound_speed = broker.welcome.sound_speed
        self.errors = 0  #: number of invalid commands
        self.dropped = 0  #: number of packets that were too long, did not fit into the queue, or arrived incomplete
        self._values: dict[str, str] = {}
        self._reset()
        self._lines = LineSplitter(256)
        self._prompts = 0
        self._is_online = False
        self._now, self._last_input = 0.0, -math.inf
        self._input = bytearray()  # data of the next packet
        self._packets: deque[tuple[bytes, int, int]] = deque()  # data, destination, rate code
        self._transmitter = TrainTransmitter()
        self._ranged, self._deadline = 0, math.inf  # modem whose reply is awaited (0 = none), and until when
        self._parts: dict[int, list[bytes]] = {}  # begun packets by their sender

    def _reset(self) -> None:
        self._values = {name: start for name, (start, _) in _PARAMETERS.items()} | {"LocalAddr": str(self.address)}

    # -- the host ------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Process bytes received from the host."""
        if self._is_online:
            self._receive_online(data)
            return
        lines = self._lines.feed(data)
        for k, line in enumerate(lines):
            if self._values["P1EchoChar"] == "Ena":
                self._say(line)
            if self._execute(line):
                self._receive_online("\r".join(lines[k + 1 :]).encode("ascii", errors="replace"))
                return

    def _receive_online(self, data: bytes) -> None:
        if not data:
            return
        if not self._input and self._now - self._last_input >= GUARD_S and data.strip() == b"+++":
            self._is_online = False
            self._prompt()
            return
        self._last_input = self._now
        self._input += data
        if len(self._input) > MAX_PACKET:
            self.dropped += 1
            self._input.clear()

    def _say(self, text: str) -> None:
        self.send(text.encode("ascii", errors="replace") + b"\r\n")

    def _prompt(self) -> None:
        self._prompts += 1
        self._say(f"user:{self._prompts}>")

    def _execute(self, line: str) -> bool:
        """Execute a command; return whether the modem is in online mode afterwards."""
        word, dial, date = line.upper(), _DIAL.fullmatch(line), _DATE.fullmatch(line)
        if line.startswith("@"):
            self._set_parameter(line[1:])
        elif dial is not None and dial[1].upper() == "D":
            if 1 <= int(dial[2]) <= BROADCAST:
                self._values["RemoteAddr"] = str(int(dial[2]))
                self._go_online()
                return True
            self._refuse("Invalid address")
        elif dial is not None:
            self._range(int(dial[2]))
        elif word == "ATO":
            self._go_online()
            return True
        elif word in ("AT", "ATH"):
            self._say("OK")
        elif word == "ATL":
            self._say("Lowpower")
        elif date is not None:
            self._say(f"{date[1] or '00:00:00'} {date[2] or '01/01/2026'}")
        elif word == "FACTORY_RESET":
            self._reset()
        elif word.startswith("CFG STORE"):
            self._say("Configuration stored.")
        else:
            self._refuse(f"Command '{line.split()[0][:40]}' not found")
        self._prompt()
        return False

    def _refuse(self, reason: str) -> None:
        self.errors += 1
        self._say(reason)

    def _set_parameter(self, text: str) -> None:
        wanted, equals, value = (part.strip() for part in text.partition("="))
        name = next((n for n in _PARAMETERS if n.lower() == wanted.lower()), None)
        if name is None:
            self._refuse(f"Parameter '{wanted[:40]}' not found")
        elif equals and not self._is_allowed(name, value):
            self._refuse(f"Invalid value '{value[:40]}' of {name}")
        else:
            if equals:
                self._values[name] = value
            self._say(f"{name:<16}| {self._values[name]}")

    def _is_allowed(self, name: str, value: str) -> bool:
        limits = _PARAMETERS[name][1]
        if isinstance(limits[0], str):
            return value in limits
        if not re.fullmatch(r"\d{1,4}" if name != "FwdDelay" else r"\d{0,2}\.?\d{1,4}", value):
            return False
        if name == "LocalAddr":
            return int(value) == self.address
        return float(limits[0]) <= float(value) <= float(limits[1])

    def _go_online(self) -> None:
        self._is_online, self._last_input = True, self._now
        self._say(f"CONNECT {RATES[int(self._values['TxRate'])]:05d} bits/sec")

    def _range(self, to: int) -> None:
        if not 1 <= to < BROADCAST or to == self.address:
            self._refuse("Invalid address")
        elif self._transmitter.busy or self._packets or self._ranged:
            self._refuse("Busy")
        else:
            self._ranged, self._deadline = to, math.inf
            self._transmitter.start(
                SignalTrain(
                    [lambda at: self.broker.range_to(to, at=at)],
                    on_end=self._await_range,
                    on_refusal=lambda _: self._lose_range(),
                )
            )
            self._say("TX time " + format_time(self._now))

    def _await_range(self) -> None:
        self._deadline = self._now + RANGE_LIMIT_S

    def _lose_range(self) -> None:
        self._ranged, self._deadline = 0, math.inf
        self._say("Response Not Received")

    # -- the water -----------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now = step.time
        self._transmitter.step(step)
        for heard in step.receptions:
            self._hear(heard)
        if self._ranged and self._now >= self._deadline:
            self._lose_range()
        if self._input and self._now - self._last_input >= float(self._values["FwdDelay"]):
            self._queue_packet()
        if self._packets and not self._transmitter.busy:
            self._transmit(*self._packets.popleft())

    def _queue_packet(self) -> None:
        data = bytes(self._input)
        self._input.clear()
        if len(self._packets) >= MAX_QUEUE:
            self.dropped += 1
            return
        self._packets.append((data, int(self._values["RemoteAddr"]), int(self._values["TxRate"])))

    def _transmit(self, data: bytes, to: int, rate: int) -> None:
        pieces = [data[k : k + PIECE] for k in range(0, len(data), PIECE)]

        def emit(k: int) -> Emit:
            payload = bytes((rate | (MORE if k + 1 < len(pieces) else 0), k)) + pieces[k]
            length = 8.0 * len(pieces[k]) / RATES[rate] + (0.0 if k else PREAMBLE_S)
            return lambda at: self.broker.send(payload, 0 if to == BROADCAST else to, at=at, duration=length)

        self._transmitter.start(
            SignalTrain(
                [emit(k) for k in range(len(pieces))],
                on_start=lambda _: self._say("Forwarding Delay Up"),
                on_refusal=lambda _: self._count_drop(),
            )
        )

    def _count_drop(self) -> None:
        self.dropped += 1

    def _hear(self, heard: Reception) -> None:
        if heard.kind == SignalKind.RANGE_REPLY:
            if heard.range is not None and self._ranged == heard.from_address and heard.to_address == self.address:
                self._ranged, self._deadline = 0, math.inf
                trip = round(2e3 * heard.range / self.sound_speed, 1)
                distance, speed = trip * 5e-4 * self.sound_speed, self._closing_speed(heard)
                ends = f"{self.address} to {heard.from_address}"
                self._say(f"Range {ends} : {distance:.1f} m  (Round-trip {trip:7.1f} ms) speed {speed:4.1f} m/s")
        elif heard.kind == SignalKind.DATA and heard.payload and len(heard.payload) > 2:
            self._hear_piece(heard, heard.payload)

    def _hear_piece(self, heard: Reception, payload: bytes) -> None:
        number, sender = payload[1], heard.from_address
        if payload[0] & ~MORE not in RATES:
            return
        parts = self._parts.pop(sender, []) if number else []
        if len(parts) != number:
            self.dropped += 1  # a part of the packet has been lost
            return
        parts.append(payload[2:])
        if payload[0] & MORE:
            self._parts[sender] = parts
        elif heard.to_address in (0, self.address) or self._values["RcvAll"] == "Ena":
            self._report(heard, b"".join(parts))

    def _closing_speed(self, heard: Reception) -> float:
        return doppler_speed(heard, self.carrier, self.sound_speed) + 0.0

    def _report(self, heard: Reception, data: bytes) -> None:
        lines = [data[k : k + HEX_LINE].hex() for k in range(0, len(data), HEX_LINE)]
        self._say(f"DATA({len(data):04d}):{lines[0]}")
        for line in lines[1:]:
            self._say(line)
        self._say(f"Source:{heard.from_address:03d}  Destination:{heard.to_address or BROADCAST:03d}")
        speed = max(min(self._closing_speed(heard) / KNOT, 99.9), -99.9)
        snr = max(min(heard.snr, 99.9), 0.0)
        self._say(f"CRC:Pass MPD:00.0 SNR:{snr:04.1f} AGC:00 SPD:{speed:+05.1f} CCERR:000")
        self._say("<EOP>")


def format_time(seconds: float) -> str:
    """Return a simulation time as hours, minutes and seconds."""
    whole = int(seconds)
    return f"{whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{seconds % 60.0:06.3f}"
