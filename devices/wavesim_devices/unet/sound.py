"""Agents that use sound: physical layer, link and ranging.

A frame is the payload of a packet of the simulated modem. Its first byte holds the kind of the frame in the upper two
bits (0 datagram, 1 datagram with acknowledgement, 2 acknowledgement) and the protocol in the lower six bits. The second
byte of kinds 1 and 2 is the sequence number of the datagram.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from wavesim_devices.transmitter import PATIENCE_S, Progress, Transmitter
from wavesim_devices.unet.agents import BROADCAST, SERVICES, UNET, AgentParameter, ParameterAgent, integer, number
from wavesim_devices.unet.fjage import AgentContainer, AgentMessage, from_json_bytes, to_json_bytes
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception, SignalSent

DATAGRAM, RELIABLE, ACKNOWLEDGEMENT = range(3)
HEAD_BYTES = 2
CONTROL, DATA = 1, 2  #: types of frames in the physical layer
USER, MAX_PROTOCOL = 32, 63
LOWEST_POWER_DB = -138.0


@dataclass(frozen=True)
class UnetDatagram:
    """Datagram that a program wants to send."""

    to: int
    protocol: int
    data: bytes
    reliable: bool | None
    patience: float  #: time to live of the datagram in s

    @classmethod
    def parse(cls, message: AgentMessage, limit: int) -> UnetDatagram:
        """Return the datagram for a request. Raises ValueError, stating the reason, if the datagram cannot be sent."""
        get = message.fields.get
        to, protocol, reliable, ttl = get("to"), get("protocol", 0), get("reliability"), get("ttl")
        data = from_json_bytes([] if get("data") is None else get("data"))
        if type(to) is not int or not 0 <= to < 2**31:
            raise ValueError("invalid address")
        if type(protocol) is not int or not 0 <= protocol <= MAX_PROTOCOL:
            raise ValueError("invalid protocol")
        if data is None:
            raise ValueError("invalid data")
        if len(data) > limit:
            raise ValueError(f"the data has {len(data)} bytes; the MTU is {limit}")
        if get("route") is not None:
            raise ValueError("routes are not supported")
        if reliable not in (None, True, False):
            raise ValueError("invalid reliability")
        patience = float(ttl) if isinstance(ttl, int | float) and 0.0 < ttl < 1e6 else PATIENCE_S
        return cls(to, protocol, data, reliable, patience)


class PhysicalAgent(ParameterAgent):
    """Agent for the physical layer. It sends frames immediately, and publishes the frames that it receives."""

    services: tuple[str, ...] = (SERVICES + "PHYSICAL", SERVICES + "DATAGRAM")

    def __init__(
        self, container: AgentContainer, transmitter: Transmitter, mtu: int, level: float, speed: float
    ) -> None:
        super().__init__("phy", container)
        self.transmitter, self.mtu, self.level = transmitter, mtu, level
        self.powers = {CONTROL: 0.0, DATA: 0.0}  # by type of frame, in dB relative to ``level``
        limits = dict.fromkeys(("MTU", "RTU"), AgentParameter(lambda: mtu))
        self.parameters[-1] |= limits | {
            "time": AgentParameter(lambda: round((transmitter.time or 0.0) * 1e6)),
            "busy": AgentParameter(lambda: transmitter.busy),
            "propagationSpeed": AgentParameter(lambda: speed),
            "refPowerLevel": AgentParameter(lambda: level),
            "maxPowerLevel": AgentParameter(lambda: 0.0),
            "minPowerLevel": AgentParameter(lambda: LOWEST_POWER_DB),
        }
        for k in self.powers:
            self.parameters[k] = {
                **limits,
                "powerLevel": AgentParameter(partial(self.powers.get, k), self._set_power(k)),
            }
        self.requests = dict.fromkeys((UNET + "DatagramReq", UNET + "phy.TxFrameReq"), self._transmit)
        self.requests[UNET + "ClearReq"] = self._clear

    def _set_power(self, k: int) -> Callable[[Any], None]:
        def change(value: Any) -> None:
            self.powers[k] = number(value, LOWEST_POWER_DB, 0.0)

        return change

    def send(
        self,
        datagram: UnetDatagram,
        progress: Progress,
        *,
        head: bytes = b"",
        frame_type: int = DATA,
        at: int | None = None,
    ) -> None:
        """Send a frame. ``head`` contains the header of a frame that is not a simple datagram. ``at`` is the time in ns
        at which to send the frame.
        """
        power = self.powers[frame_type]
        frame = (head or bytes([DATAGRAM << 6 | datagram.protocol])) + datagram.data
        level = None if power == 0.0 else max(self.level + power, 0.0)
        self.transmitter.send(frame, datagram.to, progress, level=level, at=at, patience=datagram.patience)

    def _transmit(self, message: AgentMessage) -> None:
        kind, at = message.fields.get("type") or DATA, message.fields.get("txTime")
        try:
            datagram = UnetDatagram.parse(message, self.mtu)
            if type(kind) is not int or kind not in self.powers:
                raise ValueError(f"invalid type {kind!r} for a frame: use 1 (control) or 2 (data)")
            if datagram.reliable:
                raise ValueError("the physical layer has no reliable frames")
            if at is not None and (type(at) is not int or not 0 <= at < 2**52):
                raise ValueError("invalid txTime")
            if self.transmitter.full:
                raise ValueError("the queue is full")
        except ValueError as error:
            self.refuse(message, str(error))
            return
        self.container.agree(message)
        left: list[SignalSent] = []

        def ended() -> None:
            reply = {"type": kind, "txTime": left[0].emission_ns // 1000}
            self.container.reply(message, UNET + "phy.TxFrameNtf", **reply)

        def failed(reason: str) -> None:
            self.container.reply(message, UNET + "FailureNtf", "FAILURE", reason=reason)

        progress = Progress(left.append, ended, failed)
        self.send(datagram, progress, frame_type=kind, at=None if at is None else at * 1000)

    def _clear(self, message: AgentMessage) -> None:
        self.transmitter.cancel()
        self.container.agree(message)

    def publish(self, heard: Reception, datagram: UnetDatagram, address: int) -> None:
        """Publish a received frame. Frames for other nodes go to the topic for snooping."""
        self.notify(
            "" if datagram.to in (address, BROADCAST) else "snoop",
            UNET + "phy.RxFrameNtf",
            **{"from": heard.from_address, "to": datagram.to, "protocol": datagram.protocol, "type": DATA},
            data=to_json_bytes(datagram.data),
            rxTime=heard.reception_ns // 1000,
            rssi=round(heard.level, 1),
        )


class LinkAgent(ParameterAgent):
    """Agent for the link layer. It sends datagrams. If a program requests it, the link waits for acknowledgements and
    repeats unacknowledged datagrams.
    """

    services = (SERVICES + "LINK", SERVICES + "DATAGRAM")

    def __init__(self, container: AgentContainer, phy: PhysicalAgent, address: int) -> None:
        super().__init__("uwlink", container)
        self.phy, self.address = phy, address
        self.mtu = phy.mtu - 1
        self.retries, self.timeout = 2, 5.0
        self._sequence = 0
        self._pending: dict[int, _Pending] = {}  # datagrams that wait for their acknowledgement, by sequence number
        self._last: dict[int, int] = {}  # newest sequence number from each sender
        self.parameters[-1] |= {
            "MTU": AgentParameter(lambda: self.mtu),
            "RTU": AgentParameter(lambda: self.mtu),
            "maxRetries": AgentParameter(lambda: self.retries, self._set_retries),
            "ackTimeout": AgentParameter(lambda: self.timeout, self._set_timeout),
        }
        self.requests = {UNET + "DatagramReq": self._send}

    def _set_retries(self, value: Any) -> None:
        self.retries = integer(value, 0, 100)

    def _set_timeout(self, value: Any) -> None:
        self.timeout = number(value, 0.01, 1000.0)

    def _send(self, message: AgentMessage) -> None:
        try:
            datagram = UnetDatagram.parse(message, self.mtu)
            if datagram.reliable and datagram.to == BROADCAST:
                raise ValueError("a broadcast cannot be reliable")
            if self.phy.transmitter.full or len(self._pending) >= 128:
                raise ValueError("the queue is full")
        except ValueError as error:
            self.refuse(message, str(error))
            return
        self.container.agree(message)
        if datagram.reliable:
            while self._sequence in self._pending:
                self._sequence = (self._sequence + 1) % 256
            pending = _Pending(message, datagram, self.retries)
            self._pending[self._sequence] = pending
            self._transmit(self._sequence, pending)
            self._sequence = (self._sequence + 1) % 256
            return
        self.phy.send(
            datagram,
            Progress(
                ended=lambda: self.container.reply(message, UNET + "DatagramTransmissionNtf", to=datagram.to),
                failed=lambda reason: self._fail(message, datagram, reason),
            ),
        )

    def _transmit(self, sequence: int, pending: _Pending) -> None:
        pending.deadline = None

        def ended() -> None:
            if self.phy.transmitter.time is not None:
                pending.deadline = self.phy.transmitter.time + self.timeout

        def failed(reason: str) -> None:
            if self._pending.pop(sequence, None) is not None:
                self._fail(pending.message, pending.datagram, reason)

        head = bytes([RELIABLE << 6 | pending.datagram.protocol, sequence])
        self.phy.send(pending.datagram, Progress(ended=ended, failed=failed), head=head)

    def _fail(self, message: AgentMessage, datagram: UnetDatagram, reason: str) -> None:
        self.container.reply(message, UNET + "DatagramFailureNtf", "FAILURE", to=datagram.to, reason=reason)

    def receive(self, heard: Reception, kind: int, sequence: int, datagram: UnetDatagram) -> None:
        """Process a link frame that this node has received and that is addressed to it."""
        if kind == ACKNOWLEDGEMENT:
            pending = self._pending.get(sequence)
            if pending is not None and pending.datagram.to == heard.from_address:
                del self._pending[sequence]
                self.container.reply(pending.message, UNET + "DatagramDeliveryNtf", to=heard.from_address)
            return
        answer = UnetDatagram(heard.from_address, 0, b"", None, PATIENCE_S)
        self.phy.send(answer, Progress(), head=bytes([ACKNOWLEDGEMENT << 6, sequence]))
        if self._last.get(heard.from_address) == sequence:
            return  # repeated because the acknowledgement was lost
        self._last[heard.from_address] = sequence
        self.notify(
            "",
            UNET + "DatagramNtf",
            **{"from": heard.from_address, "to": datagram.to, "protocol": datagram.protocol},
            data=to_json_bytes(datagram.data),
        )

    def step(self, time: float) -> None:
        """Repeat each datagram whose acknowledgement is overdue."""
        for sequence, pending in list(self._pending.items()):
            if pending.deadline is None or time < pending.deadline:
                continue
            if pending.retries:
                pending.retries -= 1
                self._transmit(sequence, pending)
            else:
                del self._pending[sequence]
                self._fail(pending.message, pending.datagram, "no acknowledgement")


@dataclass
class _Pending:
    """Datagram that is waiting to be acknowledged."""

    message: AgentMessage
    datagram: UnetDatagram
    retries: int
    deadline: float | None = None  # None until it has been sent


class ForwardingAgent(ParameterAgent):
    """Agent for transport or routing in a single-hop network. It passes all datagrams to the link."""

    def __init__(self, name: str, container: AgentContainer, link: LinkAgent) -> None:
        super().__init__(name, container)
        service = {"transport": "TRANSPORT", "router": "ROUTING"}[name]
        self.services = (SERVICES + service, SERVICES + "DATAGRAM")
        self.parameters[-1] |= {k: link.parameters[-1][k] for k in ("MTU", "RTU")}
        self.requests = link.requests


class RangingAgent(ParameterAgent):
    """Agent that measures the range to a node: it sends a query, to which the node's modem replies."""

    services = (SERVICES + "RANGING",)

    def __init__(self, container: AgentContainer, transmitter: Transmitter, address: int) -> None:
        super().__init__("ranging", container)
        self.transmitter, self.address = transmitter, address
        self._pending: dict[int, tuple[AgentMessage, float | None]] = {}  # request and its deadline, by address
        self.requests = {UNET + "localization.RangeReq": self._range}

    def _range(self, message: AgentMessage) -> None:
        to = message.fields.get("to")
        if type(to) is not int or not 0 < to < 2**31 or to == self.address:
            self.refuse(message, "invalid address")
        elif to in self._pending or self.transmitter.full:
            self.refuse(message, "busy")
        else:
            self.container.agree(message)
            self._pending[to] = message, None
            self.transmitter.range_to(
                to, Progress(ended=lambda: self._wait(to, message), failed=lambda reason: self._fail(to, reason))
            )

    def _wait(self, to: int, message: AgentMessage) -> None:
        if to in self._pending and self.transmitter.time is not None:
            self._pending[to] = message, self.transmitter.time + PATIENCE_S

    def _fail(self, to: int, reason: str) -> None:
        message, _ = self._pending.pop(to)
        self.container.reply(message, UNET + "FailureNtf", "FAILURE", to=to, reason=reason)

    def receive(self, heard: Reception) -> None:
        """Process a reply to a query."""
        if heard.kind == SignalKind.RANGE_REPLY and heard.range is not None and heard.from_address in self._pending:
            message, _ = self._pending.pop(heard.from_address)
            fields = {"from": self.address, "to": heard.from_address, "range": heard.range}
            self.container.reply(message, UNET + "localization.RangeNtf", **fields)

    def step(self, time: float) -> None:
        """Abandon the queries that have received no reply in time."""
        for to, (_, deadline) in list(self._pending.items()):
            if deadline is not None and time >= deadline:
                self._fail(to, "no reply")
