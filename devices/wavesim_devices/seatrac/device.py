"""Virtual Blueprint Subsea SeaTrac X150 (with USBL) and X110 on their serial port. Time is simulation time."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wavesim_devices.ports import Bytes
from wavesim_devices.seatrac import messages as m
from wavesim_devices.seatrac.exchanges import BYTE_S, GAP_S, OVERHEAD_S, AcousticMessage, Protocol
from wavesim_devices.seatrac.messages import AcousticFix, BeaconSensors, Command, MessageType, frame
from wavesim_devices.seatrac.settings import ALL_FIELDS, STATUS_PERIODS, Settings
from wavesim_devices.signal_train import Emit, SignalTrain, TrainTransmitter
from wavesim_devices.splitters import LONG_LINE, LineSplitter
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception, SignalSent

TYPES = ("pressure", "ahrs", "battery")  #: sensors that the beacon reads if the body has them
PART_NUMBERS = {"X150": 795, "X110": 843}
BANNER = b"Blueprint Subsea SeaTrac %s\r\nMain firmware 2.2.1024\r\n"
REBOOT_S = 6.0
SLACK_S = 0.5  #: time in s for which the beacon waits in addition to the duration of the longest answer
#: values that the beacon reports if the body has no sensor for them
SUPPLY_V, AIR_PRESSURE_PA, TEMPERATURE_C = 12.0, 101325.0, 15.0
DEPTH_STEP_M = 0.5
SUPPLY_MV = round(SUPPLY_V * 1000)
_USBL_TYPES = (
    MessageType.ONE_WAY_U,
    MessageType.REQUEST_U,
    MessageType.RESPONSE_U,
    MessageType.REQUEST_X,
    MessageType.RESPONSE_X,
)
_ERRORS = {
    Protocol.PING: Command.PING_ERROR,
    Protocol.ECHO: Command.ECHO_ERROR,
    Protocol.NAV: Command.NAV_ERROR,
    Protocol.DATA: Command.DATA_ERROR,
}


class CommandRefusal(Exception):
    """Raised for a command that the beacon refuses. Its argument is the status code of the reply."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass
class BeaconExchange:
    """A request to another beacon, kept until the answer arrives or the request times out."""

    protocol: Protocol
    kind: MessageType
    destination: int
    signal: int = 0  #: number of the request's signal; 0 = the signal has not been sent yet
    reply: Reception | None = None  #: reply from the other beacon's transducer
    deadline: float = math.inf  #: simulation time in s at which the request times out

    @property
    def has_content(self) -> bool:
        """Whether the answer contains a packet in addition to the automatic reply."""
        return self.protocol is not Protocol.PING or self.kind is MessageType.REQUEST_X


class SeaTracDevice:
    """Virtual SeaTrac beacon. It turns the host's commands into exchanges, and answers other beacons automatically."""

    def __init__(
        self, broker: AsyncBroker, send: Bytes, beacon: int, model: str, sound_speed: float, sensors: Mapping[str, str]
    ) -> None:
        self.broker, self.send, self.beacon, self.model, self.water = broker, send, beacon, model, sound_speed
        self.errors = 0  #: number of lines from the host that were not valid commands
        self._sensors, self._own, self._supply_mv = sensors, BeaconSensors(), SUPPLY_MV
        self._lines = LineSplitter(LONG_LINE)
        self._settings, self._saved = Settings.default(beacon), Settings.default(beacon)
        self._transmitter = TrainTransmitter(GAP_S)
        self._exchange: BeaconExchange | None = None
        self._answer: AcousticMessage | None = None  # leaves after the transducer's reply to the request
        self._data_queue: dict[int, bytes] = {}
        self._nav_queue: dict[int, bytes] = {}
        self._now, self._next_status, self._off_until, self._started = 0.0, 0.0, -math.inf, False
        self.send(BANNER % model.encode())

    @property
    def _sound_speed(self) -> float:
        return self._settings.sound_speed(self.water)

    # -- the host ------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Process bytes from the host."""
        for line in self._lines.feed(data):
            found = m.parse(line)
            if found is None:
                self.errors += 1
            elif self._now >= self._off_until:
                self._handle(*found)

    def _say(self, command: int, payload: bytes = b"") -> None:
        self.send(frame(command, payload))

    def _handle(self, command: int, payload: bytes) -> None:
        handler = _HANDLERS.get(command)
        if handler is None:
            self.errors += 1  # the real beacon is silent
            return
        try:
            answer = handler(self, payload)
        except CommandRefusal as refusal:
            self.errors += 1
            to = payload[:1] if command in _ADDRESSED and payload else b""
            answer = bytes((refusal.status,)) + to
        self._say(command, answer)

    def _alive(self, payload: bytes) -> bytes:
        return struct.pack("<I", int(self._now))

    def _info(self, payload: bytes) -> bytes:
        part = PART_NUMBERS[self.model]
        hardware = struct.pack("<HBIHH", part, 1, 100000 + self.beacon, 0, 0)
        firmware = struct.pack("<BHBBHI", 1, part, 2, 2, 1024, 0)
        return self._alive(payload) + b"\x01" + hardware + firmware + firmware + b"\x01"

    def _reboot(self, payload: bytes) -> bytes:
        if len(payload) < 2:
            raise CommandRefusal(m.MISSING)
        if int.from_bytes(payload[:2], "little") != m.REBOOT_CODE:
            raise CommandRefusal(m.INVALID)
        self._settings, self._exchange = self._saved.copy(), None
        self._off_until, self._started = self._now + REBOOT_S, False
        return bytes((m.OK,))

    def _status(self, payload: bytes) -> bytes:
        return self._status_message(payload[0] & ALL_FIELDS if payload else self._settings.status[0])

    def _status_message(self, fields: int) -> bytes:
        own = self._own
        out = struct.pack("<BQ", fields, round(self._now * 1e3))
        if fields & 0x01:
            pressure = own.pressure - AIR_PRESSURE_PA if math.isfinite(own.pressure) else 0.0
            temperature = own.temperature if math.isfinite(own.temperature) else TEMPERATURE_C
            depth = m.decimal(own.depth, 10.0, -(2**31), 2**31 - 1)
            environment = (self._supply_mv, round(temperature * 10.0), round(pressure / 100.0), depth)
            out += struct.pack("<HhiiH", *environment, m.decimal(self._sound_speed, 10.0, 0, 65535))
        if fields & 0x02:
            out += own.attitude()
        if fields & 0x04:
            out += struct.pack("<BBIB", 100, 1, 0, 100)
        return out + bytes(12 * bool(fields & 0x08) + 18 * bool(fields & 0x10) + 36 * bool(fields & 0x20))

    def _status_config_get(self, payload: bytes) -> bytes:
        return bytes(self._settings.status)

    def _status_config_set(self, payload: bytes) -> bytes:
        if len(payload) < 2:
            raise CommandRefusal(m.MISSING)
        if payload[0] & ~ALL_FIELDS or payload[1] >= len(STATUS_PERIODS):
            raise CommandRefusal(m.INVALID)
        self._settings.status = payload[0], payload[1]
        return bytes((m.OK,))

    def _settings_get(self, payload: bytes) -> bytes:
        return bytes(self._settings.block)

    def _settings_set(self, payload: bytes) -> bytes:
        if len(payload) < m.SETTINGS_BYTES:
            raise CommandRefusal(m.MISSING)
        wanted = Settings(bytearray(payload))
        if not wanted.is_valid(self.beacon):
            raise CommandRefusal(m.INVALID)
        self._settings = wanted
        return bytes((m.OK,))

    def _settings_load(self, payload: bytes) -> bytes:
        self._settings = self._saved.copy()
        return bytes((m.OK,))

    def _settings_save(self, payload: bytes) -> bytes:
        self._saved = self._settings.copy()
        return bytes((m.OK,))

    def _settings_reset(self, payload: bytes) -> bytes:
        self._settings, self._saved = Settings.default(self.beacon), Settings.default(self.beacon)
        return bytes((m.OK,))

    def _refuse(self, payload: bytes) -> bytes:
        raise CommandRefusal(m.FAILED)

    def _transceiver_status(self, payload: bytes) -> bytes:
        return bytes((m.REQUESTING if self._exchange is not None or self._transmitter.busy else m.IDLE,))

    # -- commands that send ----------------------------------------------------------------------

    def _ping(self, payload: bytes) -> bytes:
        destination, kind = _address(payload, 0), _kind(payload, 1)
        if not kind.is_request or not destination:
            raise CommandRefusal(m.INVALID)
        return self._start(AcousticMessage(Protocol.PING, kind, self.beacon, destination))

    def _echo(self, payload: bytes) -> bytes:
        destination, kind = _address(payload, 0), _kind(payload, 1)
        if not kind.is_request or not destination:
            raise CommandRefusal(m.INVALID)
        return self._start(
            AcousticMessage(Protocol.ECHO, kind, self.beacon, destination, _data(payload, 2, m.MAX_DATA))
        )

    def _send_data(self, payload: bytes) -> bytes:
        destination, kind = _address(payload, 0), _kind(payload, 1)
        if kind in (MessageType.RESPONSE, MessageType.RESPONSE_U, MessageType.RESPONSE_X):
            raise CommandRefusal(m.INVALID)
        if kind.is_request and not destination:
            raise CommandRefusal(m.INVALID)
        content = _data(payload, 2, m.MAX_DATA)
        if not content:
            raise CommandRefusal(m.INVALID)
        return self._start(AcousticMessage(Protocol.DATA, kind, self.beacon, destination, content))

    def _nav(self, payload: bytes) -> bytes:
        destination = _address(payload, 0)
        if len(payload) < 2:
            raise CommandRefusal(m.MISSING)
        if not destination or payload[1] & ~m.NAV_FLAGS:
            raise CommandRefusal(m.INVALID)
        content = payload[1:2]
        if payload[1] & m.DATA and len(payload) > 2:
            content += _data(payload, 2, m.MAX_NAV_DATA)
        return self._start(AcousticMessage(Protocol.NAV, MessageType.REQUEST_X, self.beacon, destination, content))

    def _start(self, message: AcousticMessage) -> bytes:
        if self._exchange is not None or self._transmitter.busy:
            raise CommandRefusal(m.BUSY)
        exchange = BeaconExchange(message.protocol, message.kind, message.destination)
        if message.kind.is_request:
            self._exchange = exchange
        self._transmitter.start(
            SignalTrain(
                [self._emit(message)],
                on_start=lambda sent: self._note_signal(exchange, sent),
                on_refusal=lambda _: self._fail(message.protocol, message.destination, m.FAILED),
            )
        )
        return bytes((m.OK, message.destination))

    def _emit(self, message: AcousticMessage) -> Emit:
        """Return the function that sends a message. A simple ping has no payload, and its duration is that of the
        transducer's pulse.
        """
        payload, to, length = message.encode(), message.destination, message.duration
        if not message.kind.is_request:
            return lambda at: self.broker.send(payload, to=to, at=at, duration=length)
        if message.is_simple_ping:
            return lambda at: self.broker.range_to(to, at=at)
        return lambda at: self.broker.range_to(to, at=at, payload=payload, duration=length)

    def _note_signal(self, exchange: BeaconExchange, sent: SignalSent) -> None:
        exchange.signal = sent.id
        travel = 2.0 * self._settings.range_timeout / self._sound_speed
        answer = OVERHEAD_S + BYTE_S * m.MAX_DATA if exchange.has_content else sent.duration
        exchange.deadline = self._now + sent.duration + OVERHEAD_S + travel + answer + GAP_S + SLACK_S

    def _fail(self, protocol: Protocol, destination: int, status: int) -> None:
        self._exchange = None
        self._say(_ERRORS[protocol], bytes((status, destination)))

    # -- queues of data for the next answer ------------------------------------------------------

    def _queue_set(self, queue: dict[int, bytes], most: int, payload: bytes) -> bytes:
        destination = _address(payload, 0)
        content = _data(payload, 1, most)
        if not destination or not content:
            raise CommandRefusal(m.INVALID)
        queue[destination] = content
        return bytes((m.OK, destination, len(content)))

    def _queue_clear(self, queue: dict[int, bytes], payload: bytes) -> bytes:
        destination = _address(payload, 0)
        queue.pop(destination, None)
        return bytes((m.OK, destination))

    def _queue_status(self, queue: dict[int, bytes], payload: bytes) -> bytes:
        destination = _address(payload, 0)
        content = queue.get(destination, b"")
        return bytes((destination, len(content))) + content

    # -- the water -----------------------------------------------------------------------------

    def _receive_signal(self, r: Reception) -> None:
        if self._now < self._off_until:
            return
        exchange = self._exchange
        if r.kind == SignalKind.RANGE_REQUEST and r.payload is None:
            if r.to_address == self.beacon and 1 <= r.from_address <= m.MAX_BEACON:
                self._say(Command.PING_REQUEST, self._fix(r, MessageType.REQUEST_U, r.from_address))
        elif r.kind == SignalKind.RANGE_REPLY:
            if exchange is not None and r.query == exchange.signal and r.range is not None:
                exchange.reply = r
                if not exchange.has_content:
                    self._finish(exchange, None)
        elif r.payload is not None:
            message = AcousticMessage.decode(r.payload)
            if message is not None and message.destination in (0, self.beacon):
                self._receive_message(r, message)

    def _receive_message(self, r: Reception, message: AcousticMessage) -> None:
        exchange = self._exchange
        if self._settings.fix_messages:
            self._say(Command.FIX, self._fix(r, message.kind, message.source, message.destination))
        if message.kind.is_request:
            self._answer = self._answer_to(message)
            self._notify(r, message)
        elif message.kind in (MessageType.ONE_WAY, MessageType.ONE_WAY_U):
            self._notify(r, message)
        elif exchange is not None and (message.source, message.protocol) == (exchange.destination, exchange.protocol):
            self._finish(exchange, message)

    def _fix(self, r: Reception, kind: MessageType, source: int, destination: int | None = None) -> bytes:
        to = self.beacon if destination is None else destination
        return AcousticFix(to, source, kind, r.level, angles=self._angles(r, kind)).encode(self._own, self._sound_speed)

    def _angles(self, r: Reception, kind: MessageType) -> tuple[float, float] | None:
        if self.model != "X150" or kind not in _USBL_TYPES or r.azimuth is None or r.elevation is None:
            return None
        return r.azimuth, r.elevation

    def _notify(self, r: Reception, message: AcousticMessage) -> None:
        """Report a message from another beacon to the host."""
        fix = self._fix(r, message.kind, message.source, message.destination)
        content = message.content
        if message.protocol is Protocol.PING:
            self._say(Command.PING_REQUEST, fix)
        elif message.protocol is Protocol.ECHO:
            self._say(Command.ECHO_REQUEST, fix + _counted(content))
        elif message.protocol is Protocol.DATA:
            self._say(Command.DATA_RECEIVE, fix + b"\x00" + _counted(content) + b"\x01")
        elif content:
            self._say(Command.NAV_REQUEST, fix + content[:1] + _counted(content[1:]) + b"\x01")

    def _answer_to(self, request: AcousticMessage) -> AcousticMessage:
        own, content = self._own, b""
        if request.kind is MessageType.REQUEST_X:
            content = struct.pack("<H", m.decimal(own.depth, 1.0 / DEPTH_STEP_M, 0, 65535))
        if request.protocol is Protocol.ECHO:
            content += request.content
        elif request.protocol is Protocol.DATA:
            content += self._data_queue.pop(request.source, b"")
        elif request.protocol is Protocol.NAV and request.content:
            content += self._nav_content(request.content[0], request.source)
        kind = request.kind.answer
        return AcousticMessage(request.protocol, kind, self.beacon, request.source, content[: m.MAX_DATA + 2])

    def _nav_content(self, flags: int, source: int) -> bytes:
        own, out = self._own, bytes((flags,))
        if flags & m.DEPTH:
            out += struct.pack("<i", m.decimal(own.depth, 10.0, -(2**31), 2**31 - 1))
        if flags & m.SUPPLY:
            out += struct.pack("<H", self._supply_mv)
        if flags & m.TEMPERATURE:
            temperature = own.temperature if math.isfinite(own.temperature) else TEMPERATURE_C
            out += struct.pack("<h", m.decimal(temperature, 10.0, -32768, 32767))
        if flags & m.ATTITUDE:
            out += own.attitude()
        if flags & m.DATA:
            out += _counted(self._nav_queue.pop(source, b"")[: m.MAX_DATA - len(out) - 1])
        return out

    def _finish(self, exchange: BeaconExchange, message: AcousticMessage | None) -> None:
        """Report the answer to a request to the host."""
        r = exchange.reply
        if r is None or r.range is None:
            return
        self._exchange = None
        kind, content = exchange.kind.answer, b"" if message is None else message.content
        depth = None
        if kind is MessageType.RESPONSE_X and len(content) >= 2:
            depth, content = DEPTH_STEP_M * int.from_bytes(content[:2], "little"), content[2:]
        travel = r.range / self.water
        answer = AcousticFix(self.beacon, exchange.destination, kind, r.level, travel, self._angles(r, kind), depth)
        fix = answer.encode(self._own, self._sound_speed)
        if exchange.protocol is Protocol.PING:
            self._say(Command.PING_RESPONSE, fix)
        elif exchange.protocol is Protocol.ECHO:
            self._say(Command.ECHO_RESPONSE, fix + _counted(content))
        elif exchange.protocol is Protocol.DATA:
            self._say(Command.DATA_RECEIVE, fix + b"\x01" + _counted(content) + b"\x01")
        else:
            self._say(Command.NAV_RESPONSE, fix + content + b"\x01")

    # -- time ----------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now = step.time
        self._read_sensors(step)
        self._transmitter.step(step)
        for reception in step.receptions:
            self._receive_signal(reception)
        if self._answer is not None:
            for sent in step.sent:
                if not sent.request:  # the transducer's reply to the request
                    after = sent.emission_ns + round((sent.duration + GAP_S) * 1e9)
                    self._emit(self._answer)(after)
                    self._answer = None
                    break
        if self._now < self._off_until:
            return
        if not self._started:
            self._started, self._next_status = True, self._now
            if self._off_until > 0.0:
                self.send(BANNER % self.model.encode())
        exchange = self._exchange
        if exchange is not None and self._now >= exchange.deadline:
            self._fail(exchange.protocol, exchange.destination, m.TIMEOUT)
        fields, mode = self._settings.status
        if mode:
            self._next_status = min(self._next_status, self._now + STATUS_PERIODS[mode])
            if self._now >= self._next_status:
                self._next_status = max(self._next_status + STATUS_PERIODS[mode], self._now)
                self._say(Command.STATUS, self._status_message(fields))

    def _read_sensors(self, step: Step) -> None:
        own, values = self._own, {t: step.sensors.get(name) for t, name in self._sensors.items()}
        if (pressure := values.get("pressure")) is not None:
            own.depth, own.pressure = pressure.depth, pressure.pressure
        if (ahrs := values.get("ahrs")) is not None:
            own.roll, own.pitch, own.yaw = ahrs.roll, ahrs.pitch, ahrs.heading
        if (battery := values.get("battery")) is not None:
            self._supply_mv = m.decimal(battery.voltage, 1e3, 0, 65535)


def _address(payload: bytes, index: int) -> int:
    if len(payload) <= index:
        raise CommandRefusal(m.MISSING)
    if payload[index] > m.MAX_BEACON:
        raise CommandRefusal(m.INVALID)
    return payload[index]


def _kind(payload: bytes, index: int) -> MessageType:
    if len(payload) <= index:
        raise CommandRefusal(m.MISSING)
    try:
        return MessageType(payload[index])
    except ValueError:
        raise CommandRefusal(m.INVALID) from None


def _data(payload: bytes, index: int, most: int) -> bytes:
    """Return the data that follow their length byte. Drivers may send more bytes than the length states."""
    if len(payload) <= index or len(payload) <= index + payload[index]:
        raise CommandRefusal(m.MISSING)
    if payload[index] > most:
        raise CommandRefusal(m.INVALID)
    return payload[index + 1 : index + 1 + payload[index]]


def _counted(data: bytes) -> bytes:
    return bytes((len(data),)) + data


_HANDLERS: dict[int, Callable[[SeaTracDevice, bytes], bytes]] = {
    Command.ALIVE: SeaTracDevice._alive,
    Command.INFO: SeaTracDevice._info,
    Command.REBOOT: SeaTracDevice._reboot,
    Command.STATUS: SeaTracDevice._status,
    Command.STATUS_CONFIG_GET: SeaTracDevice._status_config_get,
    Command.STATUS_CONFIG_SET: SeaTracDevice._status_config_set,
    Command.SETTINGS_GET: SeaTracDevice._settings_get,
    Command.SETTINGS_SET: SeaTracDevice._settings_set,
    Command.SETTINGS_LOAD: SeaTracDevice._settings_load,
    Command.SETTINGS_SAVE: SeaTracDevice._settings_save,
    Command.SETTINGS_RESET: SeaTracDevice._settings_reset,
    Command.TRANSCEIVER_STATUS: SeaTracDevice._transceiver_status,
    Command.PING_SEND: SeaTracDevice._ping,
    Command.ECHO_SEND: SeaTracDevice._echo,
    Command.NAV_SEND: SeaTracDevice._nav,
    Command.DATA_SEND: SeaTracDevice._send_data,
    Command.NAV_QUEUE_SET: lambda d, p: d._queue_set(d._nav_queue, m.MAX_NAV_DATA, p),
    Command.NAV_QUEUE_CLEAR: lambda d, p: d._queue_clear(d._nav_queue, p),
    Command.NAV_QUEUE_STATUS: lambda d, p: d._queue_status(d._nav_queue, p),
    Command.DATA_QUEUE_SET: lambda d, p: d._queue_set(d._data_queue, m.MAX_DATA, p),
    Command.DATA_QUEUE_CLEAR: lambda d, p: d._queue_clear(d._data_queue, p),
    Command.DATA_QUEUE_STATUS: lambda d, p: d._queue_status(d._data_queue, p),
    # calibration, NAV status, data exchange (DEX): not emulated
    **dict.fromkeys(
        (Command.CALIBRATION_ACTION, Command.CALIBRATION_GET, Command.CALIBRATION_SET, Command.ANALYSE, 0x5B, 0x5C),
        SeaTracDevice._refuse,
    ),
    **dict.fromkeys(range(0x70, 0x78), SeaTracDevice._refuse),
}
#: commands whose answer contains the status and the destination
_ADDRESSED = {Command.PING_SEND, Command.ECHO_SEND, Command.NAV_SEND, Command.DATA_SEND}
_ADDRESSED |= {Command.NAV_QUEUE_SET, Command.DATA_QUEUE_SET}
