"""Virtual WHOI Micro-Modem, first and second generation, on its serial port.

The modem's clock shows simulation time plus the offset that the host sets with CCCLK or CCTMS. The modem also reports
packets that are addressed to others, as the real modem does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from wavesim_devices.micromodem import navigation
from wavesim_devices.micromodem.packets import (
    ACK,
    BROADCAST,
    CYCLE,
    DATA,
    FLEXIBLE,
    MINI,
    RATES,
    PacketAssembler,
    Signal,
    data_signals,
)
from wavesim_devices.micromodem.sentences import (
    BUSY,
    DEFAULTS,
    INVALID_ARGUMENT,
    NOT_SENT,
    UNKNOWN_COMMAND,
    CycleStatistics,
    InvalidSentence,
    data,
    parse,
    sentence,
    whole,
)
from wavesim_devices.ports import Bytes
from wavesim_devices.signal_train import Emit, SignalTrain, TrainTransmitter
from wavesim_devices.splitters import LONG_LINE, LineSplitter
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.epoch import utc
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception, SignalSent

FIRMWARE = {1: "0.93.0.30", 2: "2.0.36274"}
REVISION_S = 10.0  #: interval in s between two CAREV sentences
LATE_S = 2.0  #: time in s after which the modem stops waiting for a frame
MINI_FRAME = 90  #: maximum size in bytes of a flexible packet that the receiver reports as a mini frame
MINI_BITS = 0x1FFF
ROUNDING_S = 1e-9


@dataclass(frozen=True)
class ModemProperties:
    """Properties that differ between modems."""

    address: int  #: address of the modem in the configuration
    generation: int  #: generation of the modem: 1 or 2
    carrier: float  #: carrier frequency in Hz


@dataclass
class Cycle:
    """A packet whose data the modem requests from its host, frame by frame."""

    source: int
    destination: int
    rate: int
    ack: bool
    frames: int
    data: list[tuple[bytes, bool]] = field(default_factory=list)
    #: time in s at which the modem gives up waiting for a frame; meaningful only while it is waiting for one
    deadline: float = 0.0
    waiting: bool = False


class MicroModemDevice:
    """Virtual Micro-Modem. It turns the host's sentences into signals, and receptions into sentences."""

    def __init__(self, broker: AsyncBroker, send: Bytes, modem: ModemProperties, sound_speed: float) -> None:
        self.broker, self.send, self.modem, self.sound_speed = broker, send, modem, sound_speed
        self.errors = 0  #: number of sentences that the modem answered with an error
        self.settings = {**DEFAULTS, "SRC": modem.address}
        self._lines = LineSplitter(LONG_LINE)
        self._transmitter = TrainTransmitter()
        self._now, self._clock = 0.0, timedelta()
        self._next_revision = REVISION_S
        self._cycle: Cycle | None = None
        self._query: navigation.NavigationQuery | None = None
        self._ping: int | None = None  # signal of the last ping
        self._packet: PacketAssembler | None = None
        self._last: Reception | None = None  # last signal of the packet that is being received
        self._packet_deadline = 0.0
        self._packets = 0

    # -- the host ------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Process bytes from the host."""
        for line in self._lines.feed(data):
            try:
                found = parse(line)
                if found is None:
                    continue
                name, fields = found
                handler = getattr(self, f"_on_{name.lower()}", None) if name.startswith("CC") else None
                if handler is None or not name.isascii() or not name.isalnum():
                    raise InvalidSentence(UNKNOWN_COMMAND, "Unknown command")
                handler(fields)
            except InvalidSentence as error:
                self.errors += 1
                self._say("CAERR", self._stamp(), "NMEA", error.code, error)

    def _say(self, *fields: object) -> None:
        self.send(sentence(*fields))

    def _utc(self, time_ns: int | None = None) -> datetime:
        """Return the time of the modem's clock at a simulation time in ns; the default is the current simulation time."""
        return utc(self._now * 1e9 if time_ns is None else time_ns) + self._clock

    def _stamp(self) -> str:
        return self._utc().strftime("%H%M%S")

    def _is_busy(self) -> bool:
        return self._transmitter.busy or self._cycle is not None or self._query is not None or self._packet is not None

    def _check_idle(self) -> None:
        if self._transmitter.busy or self._cycle is not None or self._query is not None:
            raise InvalidSentence(BUSY, "Modem busy")

    def _check_source(self, fields: list[str], index: int) -> None:
        if whole(fields, index, 0, BROADCAST) != self.modem.address:
            raise InvalidSentence(INVALID_ARGUMENT, f"Source is not {self.modem.address}")

    # -- parameters and clock ------------------------------------------------------------------

    def _on_cccfg(self, fields: list[str]) -> None:
        name = fields[0].upper() if fields else ""
        if name == "ALL":
            self.settings = {**DEFAULTS, "SRC": self.modem.address}
            self._say("CACFG", name, *fields[1:])
            return
        if name not in self.settings:
            raise InvalidSentence(INVALID_ARGUMENT, "Unknown parameter")
        if name == "SRC":
            self._check_source(fields, 1)
        self.settings[name] = whole(fields, 1, -(2**31), 2**31)
        self._say("CACFG", name, self.settings[name])

    def _on_cccfq(self, fields: list[str]) -> None:
        name = fields[0] if fields else ""
        if name.lower().startswith("info"):
            self._say("CACFG", "info.firmware_version", FIRMWARE[self.modem.generation])
        elif name.upper() in ("ALL", "TOP"):
            for parameter, value in self.settings.items():
                self._say("CACFG", parameter, value)
            self._say("CACFG", name.upper(), "")
        elif name.upper() in self.settings:
            self._say("CACFG", name.upper(), self.settings[name.upper()])
        else:
            raise InvalidSentence(INVALID_ARGUMENT, "Unknown parameter")

    def _on_ccalq(self, fields: list[str]) -> None:
        self._say("CAALQ", "AUV", 11)

    def _on_ccmsc(self, fields: list[str]) -> None:
        """Execute CCMSC (sleep) by restarting immediately, because the virtual modem does not sleep."""
        self._check_idle()
        self._say("CAREV", self._stamp(), "INIT")
        self._say_revision()

    def _say_revision(self) -> None:
        self._say("CAREV", self._stamp(), "AUV", FIRMWARE[self.modem.generation])

    def _set_clock(self, time: datetime) -> None:
        self._clock = time - utc(self._now * 1e9)

    def _on_ccclk(self, fields: list[str]) -> None:
        numbers = [whole(fields, k, 0, 9999) for k in range(6)]
        try:
            self._set_clock(datetime(*numbers, tzinfo=UTC))  # type: ignore[arg-type, misc]
        except ValueError:
            raise InvalidSentence(INVALID_ARGUMENT, "Invalid date") from None
        self._say("CACLK", *numbers)

    def _on_cctms(self, fields: list[str]) -> None:
        try:
            time = datetime.fromisoformat(fields[0])
            self._set_clock(time if time.tzinfo else time.replace(tzinfo=UTC))
        except (IndexError, ValueError, OverflowError):
            raise InvalidSentence(INVALID_ARGUMENT, "Invalid time") from None
        self._say("CATMS", 0, self._iso())

    def _on_cctmq(self, fields: list[str]) -> None:
        self._say("CATMQ", self._iso(), "USER_CMD" if self._clock else "RTC", "RTC")

    def _iso(self) -> str:
        return self._utc().strftime("%Y-%m-%dT%H:%M:%SZ")

    # -- transmissions -------------------------------------------------------------------------

    def _transmit(self, emit: list[Emit], count: int, on_end: object = None, xst: tuple[int, ...] = ()) -> None:
        """Transmit signals that contain ``count`` bytes in total. ``xst`` holds the fields (rate, destination, ack,
        frames, packet type) for CAXST.
        """

        def start(sent: SignalSent) -> None:
            self._ping = sent.id
            if self._query is not None:
                self._query.sent_ns, self._query.deadline = sent.emission_ns, self._now + self._query.timeout
            if self.settings["TXP"]:
                self._say("CATXP", count)

        def end() -> None:
            if self.settings["TXF"]:
                self._say("CATXF", count)
            if xst and self.settings["XST"]:
                self._say_transmit_statistics(count, *xst)
            if callable(on_end):
                on_end()

        def refuse(text: str) -> None:
            self._query = self._cycle = None
            self._say("CAERR", self._stamp(), "NMEA", NOT_SENT, text)

        self._transmitter.start(SignalTrain(emit, start, on_end=end, on_refusal=refuse))

    def _say_transmit_statistics(
        self, count: int, rate: int, destination: int, ack: int, frames: int, packet_type: int
    ) -> None:
        now = self._utc()
        version = (6,) if self.modem.generation == 2 else ()
        stamp = now.strftime("%H%M%S.") + f"{now.microsecond // 100:04d}"
        place = (rate, self.modem.address, destination, ack, frames, frames, packet_type, count)
        self._say("CAXST", *version, now.strftime("%Y%m%d"), stamp, 7, 0, 200, 4000, round(self.modem.carrier), *place)

    def _emit(self, s: Signal) -> Emit:
        to = 0 if s.destination == BROADCAST else s.destination
        return lambda at: self.broker.send(s.encode(), to=to, at=at, duration=s.duration)

    def _on_ccmpc(self, fields: list[str]) -> None:
        self._check_source(fields, 0)
        destination = whole(fields, 1, 1, BROADCAST - 1)
        self._check_idle()
        self._say("CAMPC", self.modem.address, destination)
        self._transmit([lambda at: self.broker.range_to(destination, at=at)], 0, xst=(0, destination, 0, 1, 2))

    def _on_ccmuc(self, fields: list[str]) -> None:
        self._check_source(fields, 0)
        destination, content = whole(fields, 1, 0, BROADCAST), data(fields, 2, 2)
        if len(content) != 2 or int.from_bytes(content) > MINI_BITS:
            raise InvalidSentence(INVALID_ARGUMENT, "A mini-packet has 13 bits")
        self._check_idle()
        self._say("CAMUC", self.modem.address, destination, content.hex())
        signal = Signal(MINI, self.modem.address, destination, data=content)
        self._transmit([self._emit(signal)], 2, xst=(0, destination, 0, 1, 2))

    def _on_cctdp(self, fields: list[str]) -> None:
        destination, rate = whole(fields, 0, 0, BROADCAST), whole(fields, 1, 0, max(RATES))
        if whole(fields, 2, 0, 1) or whole(fields, 3, 0, 1):
            raise InvalidSentence(INVALID_ARGUMENT, "Acknowledgement and base64 are not supported")
        size, most = RATES[rate].size, RATES[rate].size * RATES[rate].frames
        content = data(fields, 4, most)
        self._check_idle()
        self._packets = (self._packets + 1) % 256
        self._say("CATDP", 0, self._packets, destination, rate, 0, 0, len(content))
        frames = [(content[k : k + size], False) for k in range(0, max(len(content), 1), size)]
        first = Signal(FLEXIBLE, self.modem.address, destination, rate, number=self._packets)
        signals = data_signals(first, frames)
        self._transmit([self._emit(s) for s in signals], len(content), xst=(rate, destination, 0, len(frames), 5))

    # -- cycles --------------------------------------------------------------------------------

    def _on_cccyc(self, fields: list[str]) -> None:
        source, destination = whole(fields, 1, 0, BROADCAST - 1), whole(fields, 2, 0, BROADCAST)
        rate = whole(fields, 3, 0, max(RATES))
        cycle = Cycle(source, destination, rate, bool(whole(fields, 4, 0, 1)), whole(fields, 5, 1, RATES[rate].frames))
        self._check_idle()
        self._say("CACYC", 0, source, destination, rate, int(cycle.ack), cycle.frames)
        own = source == self.modem.address
        if own:
            self._cycle = cycle
        if own and rate:
            self._request_frame(cycle)
            return
        content = bytes((source, destination, int(cycle.ack)))
        init = Signal(CYCLE, self.modem.address, destination if own else source, rate, cycle.frames, data=content)
        after = partial(self._request_frame, cycle) if own else None
        self._transmit([self._emit(init)], len(content), after, (0, destination, int(cycle.ack), 1, 2))

    def _request_frame(self, cycle: Cycle) -> None:
        cycle.waiting, cycle.deadline = True, self._now + self.settings["CTO"]
        number = len(cycle.data) + 1
        place = (cycle.source, cycle.destination, int(cycle.ack), RATES[cycle.rate].size, number)
        self._say("CADRQ", self._stamp(), *place)

    def _on_cctxd(self, fields: list[str]) -> None:
        cycle = self._cycle
        if cycle is None or not cycle.waiting:
            raise InvalidSentence(INVALID_ARGUMENT, "No data requested")
        self._check_source(fields, 0)
        destination, ack = whole(fields, 1, 0, BROADCAST), bool(whole(fields, 2, 0, 1))
        content = data(fields, 3, RATES[cycle.rate].size)
        cycle.data.append((content, ack))
        self._say("CATXD", self.modem.address, destination, int(ack), len(content))
        if len(cycle.data) < cycle.frames:
            self._request_frame(cycle)
        else:
            self._send_packet(cycle)

    def _send_packet(self, cycle: Cycle) -> None:
        """Send the frames that the host has provided."""
        self._cycle = None
        self._packets = (self._packets + 1) % 256
        first = Signal(DATA, self.modem.address, cycle.destination, cycle.rate, number=self._packets)
        signals = data_signals(first, cycle.data)
        count = sum(len(content) for content, _ in cycle.data)
        xst = (cycle.rate, cycle.destination, int(cycle.ack), len(cycle.data), 3 if cycle.rate else 1)
        self._transmit([self._emit(s) for s in signals], count, xst=xst)

    # -- long baseline -------------------------------------------------------------------------

    def _on_ccpnt(self, fields: list[str]) -> None:
        self._start_query("SNPNT", fields, navigation.narrow_band(fields))

    def _on_ccpdt(self, fields: list[str]) -> None:
        self._start_query("SNPDT", fields, navigation.digital(fields, self.modem.carrier))

    def _on_ccpgt(self, fields: list[str]) -> None:
        self._start_query("SNPGT", fields, navigation.generic(fields))

    def _start_query(self, name: str, fields: list[str], query: navigation.NavigationQuery) -> None:
        self._check_idle()
        self._say(name, *fields)
        self._query = query
        emit: Emit = lambda at: self.broker.ping(query.frequency, at=at, code=query.code, duration=query.duration)  # noqa: E731
        self._transmit([emit], 0)

    def _end_query(self, query: navigation.NavigationQuery, sent_ns: int) -> None:
        self._query = None
        time = self._utc(sent_ns)
        self._say("SNTTA", *query.fields(), time.strftime("%H%M%S.") + f"{time.microsecond // 10000:02d}")

    # -- the water -----------------------------------------------------------------------------

    def _receive_signal(self, r: Reception) -> None:
        if r.kind == SignalKind.PULSE:
            if self._query is not None:
                self._query.add(r, 1e-3 * self.settings["TAT"])
        elif r.kind == SignalKind.RANGE_REQUEST and r.payload is None:
            self._say("CAMPA", r.from_address, r.to_address)
            self._say_statistics(CycleStatistics(r, 0, r.from_address, r.to_address, 2))
        elif r.kind == SignalKind.RANGE_REPLY:
            if r.range is not None and r.query == self._ping:
                self._say("CAMPR", r.from_address, r.to_address, f"{r.range / self.sound_speed:.4f}")
            self._say_statistics(CycleStatistics(r, 0, r.from_address, r.to_address, 2))
        elif r.payload is not None and (signal := Signal.decode(r.payload)) is not None:
            self._receive_packet(r, signal)

    def _receive_packet(self, r: Reception, s: Signal) -> None:
        if s.kind in (DATA, FLEXIBLE):
            self._receive_frame(r, s)
            return
        if s.kind == MINI:
            self._say("CAMUA", s.source, s.destination, s.data.hex())
        elif s.kind == ACK and s.destination == self.modem.address:
            for frame in s.data:
                self._say("CAACK", s.source, s.destination, frame + 1, 1)
        elif s.kind == CYCLE and len(s.data) == 3:
            self._receive_cycle(s, Cycle(s.data[0], s.data[1], s.rate, bool(s.data[2]), s.frames))
        self._say_statistics(CycleStatistics(r, 0, s.source, s.destination, 2))

    def _receive_cycle(self, s: Signal, cycle: Cycle) -> None:
        """Report a cycle that another modem has started. If the cycle requests this modem's data, ask the host for the
        data.
        """
        self._say("CACYC", 0, cycle.source, cycle.destination, cycle.rate, int(cycle.ack), cycle.frames)
        if cycle.source == self.modem.address and not self._transmitter.busy and self._cycle is None:
            self._cycle = cycle
            self._request_frame(cycle)

    def _receive_frame(self, r: Reception, s: Signal) -> None:
        packet = self._packet
        if packet is not None and not packet.matches(s):
            self._end_packet(packet, r)
            packet = None
        if packet is None:
            packet = self._packet = PacketAssembler(s)
            if self.settings["RXP"]:
                self._say("CARXP", 1 if s.rate else 0)
            if s.rate and s.kind == DATA:
                self._say("CACYC", 0, s.source, s.destination, s.rate, int(s.ack), s.frames)
        self._last = r
        self._packet_deadline = self._now + packet.time_left(s) + LATE_S
        frame = packet.add(s)
        if frame is not None and s.kind == DATA and self.settings["RXD"]:
            for lost in sorted(set(range(frame)) - packet.frames.keys() - packet.reported):
                packet.reported.add(lost)
                self._say("CAMSG", "BAD_CRC", lost + 1)
            self._say("CARXD", s.source, s.destination, int(s.ack), frame + 1, packet.frames[frame].hex())
        if packet.time_left(s) < ROUNDING_S:
            self._end_packet(packet, r)

    def _end_packet(self, packet: PacketAssembler, r: Reception) -> None:
        """After the last signal of a packet, report the frames that have not been reported yet, and acknowledge the
        packet if it requires an acknowledgement.
        """
        self._packet = None
        s = packet.first
        missing = sorted(set(range(s.frames)) - packet.frames.keys())
        if s.kind == DATA:
            for lost in missing:
                if lost not in packet.reported:
                    self._say("CAMSG", "BAD_CRC", lost + 1)
        else:
            frames = [packet.frames.get(k, b"") for k in range(s.frames)]
            text = ";".join(f"{int(k in packet.frames)};{len(f)};{f.hex()}" for k, f in enumerate(frames))
            is_mini = sum(map(len, frames)) <= MINI_FRAME
            places = (text, "") if is_mini else ("", text)
            self._say("CARDP", s.source, s.destination, s.rate, 0, 0, *places)
        kind = 5 if s.kind == FLEXIBLE else 3 if s.rate else 1
        self._say_statistics(CycleStatistics(r, s.rate, s.source, s.destination, kind, s.frames, len(missing)))
        if packet.acks and s.destination == self.modem.address and not self._transmitter.busy:
            answer = Signal(ACK, self.modem.address, s.source, data=bytes(sorted(packet.acks)))
            self._transmit([self._emit(answer)], len(answer.data), xst=(0, s.source, 0, 1, 2))

    def _say_statistics(self, statistics: CycleStatistics) -> None:
        r = statistics.reception
        arrival = self._utc(r.reception_ns)
        if r.azimuth is not None and r.elevation is not None:
            self._say_direction(r, arrival)
        if self.settings["CST"]:
            version = 6 if self.modem.generation == 2 else 0
            self._say("CACST", *statistics.fields(arrival, version, self.modem.carrier, self.sound_speed))

    def _say_direction(self, r: Reception, arrival: datetime) -> None:
        """Report the angles of arrival that a USBL head has measured for a reception. The impulse responses of the
        head's elements are reported as 0.
        """
        angles = (f"{57.29577951308232 * a:.1f}" for a in (r.azimuth or 0.0, r.elevation or 0.0))
        travel = f"{(r.range or 0.0) / self.sound_speed:.4f}"
        stamp = arrival.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self._say("CAUSB2", 1, stamp, *angles, travel, 0, *["0.0"] * 8, 4)

    # -- time ----------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        self._now = step.time
        self._transmitter.step(step)
        for reception in step.receptions:
            self._receive_signal(reception)
        cycle, query, packet = self._cycle, self._query, self._packet
        if cycle is not None and cycle.waiting and self._now >= cycle.deadline:
            self._say("CAERR", self._stamp(), "DATA_TIMEOUT", len(cycle.data) + 1)
            self._cycle = None
            if cycle.data:
                self._send_packet(cycle)
        if query is not None and query.sent_ns is not None and self._now >= query.deadline:
            self._end_query(query, query.sent_ns)
        if packet is not None and self._last is not None and self._now >= self._packet_deadline:
            self._end_packet(packet, self._last)
        if self._now >= self._next_revision and not self._is_busy():
            self._next_revision = self._now + REVISION_S
            if self.settings["REV"]:
                self._say_revision()
