"""Virtual Popoto modem: JSON commands and replies on its command port.

A host sends ``{"Command": "SetValue", "Arguments": "TxPowerWatts 1.0 0"}``; the modem's messages are JSON objects that
end with CR. Every message goes to all hosts. A packet with n bytes has a header of ``HEADER_S`` seconds and data of 8 n
/ rate seconds; ``PayloadMode`` selects the rate. Time is simulation time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from wavesim_devices.ports import Bytes, Connection
from wavesim_devices.splitters import JsonSplitter
from wavesim_sdk.acoustics import doppler_speed
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception

RATES = (80, 5120, 2560, 1920, 1280, 10240, 2560, 1280, 960, 640)  #: bit rate in bit/s of each payload mode
MAX_DATA, ALL, FREE = 255, 255, "Available"
HEADER_S = 0.5  #: duration in s of a packet without data (assumed)
DATA, RANGE_REPLY, RANGE_REQUEST = 0, 128, 129  #: types of packets, as encoded in headers
REPLY_LIMIT_S = 15.0  #: time in s for which the modem waits for the reply to a range request (assumed)
LOWEST_POWER_W = 0.1
MAX_PAGE = 8  #: maximum number of parameters in one reply to GetAllParameters


@dataclass(frozen=True)
class PopotoModel:
    """Modem properties that must agree with the configuration. ``source_level`` is the source level in dB at the power
    ``full_power`` in W.
    """

    address: int
    carrier: float = 30e3
    source_level: float = 180.0
    full_power: float = 10.0


@dataclass(frozen=True)
class ModemParameter:
    """Parameter of the modem: whether it is an integer, its limits, and its initial value."""

    is_whole: bool
    low: float
    high: float
    start: float

    @property
    def format(self) -> str:
        """Name of the parameter's format in the list of parameters."""
        return "int" if self.is_whole else "float"


class CommandError(Exception):
    """Raised for a command that the modem refuses. Its text is the reason."""


class PopotoConnection:
    """Connection to one host."""

    def __init__(self, modem: PopotoModem, send: Bytes) -> None:
        self.modem, self.send = modem, send
        self._splitter = JsonSplitter()

    def receive(self, data: bytes) -> None:
        """Execute the commands in bytes received from the host."""
        for text in self._splitter.feed(data):
            self.modem.execute(text, self)

    def close(self) -> None:
        """Remove the host after it has closed the connection."""
        self.modem.forget(self)


class PopotoModem:
    """Virtual Popoto modem. It starts in receiving mode, and returns to it after each transmission."""

    def __init__(self, broker: AsyncBroker, model: PopotoModel) -> None:
        self.broker, self.model, self.sound_speed = broker, model, broker.welcome.sound_speed
        self.errors = 0  #: number of commands that the modem refused
        self.parameters: dict[str, ModemParameter] = {
            "LocalID": ModemParameter(True, model.address, model.address, model.address),
            "RemoteID": ModemParameter(True, 0, ALL, ALL),
            "PayloadMode": ModemParameter(True, 0, len(RATES) - 1, 0),
            "CarrierTxMode": ModemParameter(True, 0, 0, 0),
            "TxPowerWatts": ModemParameter(False, LOWEST_POWER_W, model.full_power, 1.0),
        }
        self._values = {n: int(p.start) if p.is_whole else p.start for n, p in self.parameters.items()}
        self._hosts: list[PopotoConnection] = []
        self._owner: PopotoConnection | None = None  # the host with exclusive access
        self._token = FREE
        self._now = 0.0
        self._request: int | None = None  # of the signal that is to leave, or leaves
        self._end = math.inf  # of this signal
        self._ranged = 0  # address of the modem whose reply is awaited; 0 = none
        self._deadline = math.inf

    # -- hosts -----------------------------------------------------------------------------------

    def connect(self, port: str, send: Bytes) -> Connection:
        """Create the connection to a host."""
        self._hosts.append(PopotoConnection(self, send))
        return self._hosts[-1]

    def forget(self, host: PopotoConnection) -> None:
        """Remove a host. If the host had exclusive access, this access ends."""
        self._hosts.remove(host)
        if host is self._owner:
            self._owner, self._token = None, FREE

    def _say(self, **message: Any) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\r"
        for host in self._hosts:
            host.send(line)

    def execute(self, text: bytes, host: PopotoConnection) -> None:
        """Execute a command from a host."""
        try:
            message = json.loads(text)
            name = message["Command"]
            handler = _COMMANDS.get(name.lower())
            if handler is None:
                raise CommandError(f"unknown command {name[:40]}")
            handler(self, message.get("Arguments"), host)
        except (ValueError, KeyError, AttributeError, RecursionError):
            self._fail("invalid message")
        except CommandError as error:
            self._fail(str(error))

    def _fail(self, reason: str) -> None:
        self.errors += 1
        self._say(Error=reason)

    def _set_token(self, arguments: Any, host: PopotoConnection) -> None:
        (token,) = _words(arguments, 1)
        if token == FREE:
            self._owner, self._token = None, FREE
        elif self._owner is None:
            self._owner, self._token = host, token
        self._say(ExclusivityToken=self._token)

    # -- parameters --------------------------------------------------------------------------------

    def _describe(self, name: str) -> dict[str, Any]:
        p = self.parameters[name]
        return {"Name": name, "Format": p.format, "Channel": 0, "Min": p.low, "Max": p.high}

    def _all_parameters(self, arguments: Any, host: PopotoConnection) -> None:
        first = _index(arguments, len(self.parameters))
        names = list(self.parameters)[first : first + MAX_PAGE]
        after = first + len(names)
        page = {"params": [self._describe(n) for n in names], "nextIdx": after if after < len(self.parameters) else -1}
        self._say(AllParameters=page)

    def _one_parameter(self, arguments: Any, host: PopotoConnection) -> None:
        index = _index(arguments, len(self.parameters))
        after = index + 1 if index + 1 < len(self.parameters) else -1
        self._say(Element=self._describe(list(self.parameters)[index]) | {"nextidx": after})

    def _get_value(self, arguments: Any, host: PopotoConnection) -> None:
        name, *_ = _words(arguments, 1)
        if name not in self._values:
            raise CommandError(f"unknown parameter {name[:40]}")
        self._say(**{name: self._values[name]})

    def _set_value(self, arguments: Any, host: PopotoConnection) -> None:
        name, text, *_ = _words(arguments, 2)
        parameter = self.parameters.get(name)
        if parameter is None:
            raise CommandError(f"unknown parameter {name[:40]}")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not parameter.low <= value <= parameter.high or (parameter.is_whole and value != int(value)):
            raise CommandError(f"{name} must be between {parameter.low:g} and {parameter.high:g}")
        self._values[name] = int(value) if parameter.is_whole else value
        self._say(**{name: self._values[name]})

    def _modulations(self, arguments: Any, host: PopotoConnection) -> None:
        self._say(PopotoModulations={"params": [{"id": k, "bps": rate} for k, rate in enumerate(RATES)]})

    # -- sending -----------------------------------------------------------------------------------

    @property
    def _level(self) -> float:
        """Source level in dB at the current power setting."""
        return self.model.source_level + 10.0 * math.log10(self._values["TxPowerWatts"] / self.model.full_power)

    @property
    def _power_code(self) -> int:
        """Power as encoded in the header: in steps of 2 dB above the lowest power (assumed)."""
        return min(round(5.0 * math.log10(self._values["TxPowerWatts"] / LOWEST_POWER_W)), 15)

    def _check_idle(self) -> None:
        if self._request is not None or self._ranged:
            raise CommandError("busy")

    def _transmit(self, arguments: Any, host: PopotoConnection) -> None:
        try:
            data = bytes(arguments["Payload"]["Data"])
        except (TypeError, KeyError, ValueError):
            raise CommandError('TransmitJSON needs {"Payload": {"Data": [bytes]}}') from None
        if not 1 <= len(data) <= MAX_DATA:
            raise CommandError(f"Data must have 1 to {MAX_DATA} bytes")
        self._check_idle()
        mode, remote = int(self._values["PayloadMode"]), int(self._values["RemoteID"])
        self._request = self.broker.send(
            bytes((mode << 4 | self._power_code,)) + data,
            0 if remote == ALL else remote,
            self._level,
            duration=packet_duration(len(data), mode),
        )

    def _range(self, arguments: Any, host: PopotoConnection) -> None:
        remote = int(self._values["RemoteID"])
        if remote in (0, ALL, self.model.address):
            raise CommandError("set RemoteID to the modem whose range is wanted")
        self._check_idle()
        self._request = self.broker.range_to(remote, self._level)
        self._ranged, self._deadline = remote, math.inf

    def _ignore(self, arguments: Any, host: PopotoConnection) -> None:
        """Accept a command that has no effect and no answer."""

    # -- the water -----------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now = step.time
        for sent in step.sent:
            if sent.request == self._request:
                self._end = self._now + sent.duration
        for refused in step.refused:
            if refused.request == self._request:
                self._request, self._ranged, self._end = None, 0, math.inf
                self._fail(refused.text)
        if self._now >= self._end:
            self._request, self._end = None, math.inf
            self._deadline = self._now + REPLY_LIMIT_S
            self._say(Alert="TxComplete")
        for heard in step.receptions:
            self._hear(heard)
        if self._ranged and self._now >= self._deadline:
            self._ranged = 0
            self._say(Alert="RangingTimeout")

    def _hear(self, heard: Reception) -> None:
        mine = heard.to_address == self.model.address
        if heard.kind == SignalKind.RANGE_REPLY:
            if mine and heard.from_address == self._ranged and heard.range is not None:
                self._ranged = 0
                self._report(heard, RANGE_REPLY, 0, 0)
                delay = 2e3 * heard.range / self.sound_speed
                self._say(
                    **{"Range": round(heard.range, 3), "Roundtrip Delay": round(delay, 3)},
                    SpeedOfSound=self.sound_speed,
                    Units="m, ms, meters per second",
                )
        elif heard.kind == SignalKind.RANGE_REQUEST:
            if mine:
                self._report(heard, RANGE_REQUEST, 0, 0)
        elif heard.kind == SignalKind.DATA and heard.payload and (mine or not heard.to_address):
            mode = heard.payload[0] >> 4
            data = heard.payload[1:]
            if mode < len(RATES) and data:
                self._report(heard, DATA, heard.payload[0] & 15, mode << 11 | len(data), data)

    def _report(self, heard: Reception, kind: int, power: int, info: int, data: bytes = b"") -> None:
        to = heard.to_address or ALL
        self._say(Header=[kind, heard.from_address, to, power, info & 255, info >> 8])
        if data:
            self._say(Data=list(data))
        self._say(SNRdB=round(heard.snr, 2))
        self._say(DopplerVelocity=round(doppler_speed(heard, self.model.carrier, self.sound_speed), 3))


def packet_duration(count: int, mode: int) -> float:
    """Return the duration in s of a packet with the given number of bytes."""
    return HEADER_S + 8.0 * count / RATES[mode]


def _words(arguments: Any, least: int) -> list[str]:
    words = arguments.split() if isinstance(arguments, str) else []
    if len(words) < least:
        raise CommandError("arguments are missing")
    return words


def _index(arguments: Any, count: int) -> int:
    (word, *_) = _words(arguments, 1)
    if not (word.isascii() and word.isdigit() and len(word) < 6 and int(word) < count):
        raise CommandError("invalid index")
    return int(word)


_Handler = Callable[[PopotoModem, Any, PopotoConnection], None]
_COMMANDS: Mapping[str, _Handler] = MappingProxyType(
    {
        "setmutextoken": PopotoModem._set_token,
        "getallparameters": PopotoModem._all_parameters,
        "getparameters": PopotoModem._one_parameter,
        "getvalue": PopotoModem._get_value,
        "setvalue": PopotoModem._set_value,
        "getpopotomodulations": PopotoModem._modulations,
        "transmitjson": PopotoModem._transmit,
        "event_sendranging": PopotoModem._range,
        "event_startrx": PopotoModem._ignore,
    }
)
