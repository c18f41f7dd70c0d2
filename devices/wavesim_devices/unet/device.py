"""Virtual UnetStack modem: agents on a TCP port, frames in the simulated water."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wavesim_devices.hydrophone_blocks import HydrophoneBlocks
from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LONG_LINE
from wavesim_devices.transmitter import PATIENCE_S, Transmitter
from wavesim_devices.unet.agents import AddressAgent, NodeAgent
from wavesim_devices.unet.baseband import LONGEST_LINE, BasebandService
from wavesim_devices.unet.fjage import AgentContainer, GatewayConnection, Later
from wavesim_devices.unet.sound import (
    ACKNOWLEDGEMENT,
    DATAGRAM,
    HEAD_BYTES,
    ForwardingAgent,
    LinkAgent,
    PhysicalAgent,
    RangingAgent,
    UnetDatagram,
)
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.items import Reception

#: wall time in s to wait before a line is processed, because fjagepy 2.2.0 fails if an answer arrives before fjagepy is
#: waiting for it
READING_S = 0.02


def read_later(call: Callable[[], None]) -> None:
    """Call a function after the time that the modem needs to read a line."""
    asyncio.get_running_loop().call_later(READING_S, call)


def read_at_once(call: Callable[[], None]) -> None:
    """Call a function immediately, because in lockstep a device must not depend on wall time."""
    call()


@dataclass(frozen=True)
class BasebandOptions:
    """Hydrophone that records for the baseband service, and the initial carrier frequency in Hz."""

    hydrophone: str
    carrier: float = 25e3


class UnetDevice:
    """Virtual modem with the agents of a UnetStack node."""

    def __init__(
        self,
        broker: AsyncBroker,
        address: int,
        payload: int,
        source_level: float,
        addresses: Mapping[str, int],
        later: Later | None = None,
        baseband: BasebandOptions | None = None,
    ) -> None:
        self.address = address
        self.later = later or (read_at_once if broker.lockstep else read_later)
        self.transmitter = Transmitter(broker)
        self.container = AgentContainer(
            {}, lambda: round((self.transmitter.time or 0.0) * 1000), LONG_LINE if baseband is None else LONGEST_LINE
        )
        speed = broker.welcome.sound_speed
        self.phy = PhysicalAgent(self.container, self.transmitter, payload - 1, source_level, speed)
        self.baseband = (
            None
            if baseband is None
            else BasebandService(self.phy, HydrophoneBlocks(broker, baseband.hydrophone), baseband.carrier)
        )
        self.link = LinkAgent(self.container, self.phy, address)
        self.ranging = RangingAgent(self.container, self.transmitter, address)
        others = [ForwardingAgent(name, self.container, self.link) for name in ("transport", "router")]
        node = NodeAgent(self.container, address, broker.name)
        arp = AddressAgent(self.container, {broker.name: address, **addresses})
        self.container.agents = {a.name: a for a in (node, self.phy, self.link, *others, self.ranging, arp)}

    @property
    def errors(self) -> int:
        """Number of lines that were not valid requests or messages."""
        return self.container.malformed

    def connect(self, port: str, send: Bytes) -> GatewayConnection:
        """Connect a gateway."""
        return GatewayConnection(self.container, send, self.later)

    def step(self, step: Step) -> None:
        """Process a new simulation state."""
        for heard in step.receptions:
            if heard.kind == SignalKind.DATA and heard.payload:
                self._receive(heard, heard.payload)
            else:
                self.ranging.receive(heard)
        self.transmitter.step(step)
        if self.baseband is not None:
            self.baseband.step()
        self.link.step(step.time)
        self.ranging.step(step.time)

    def _receive(self, heard: Reception, frame: bytes) -> None:
        kind, protocol = frame[0] >> 6, frame[0] & 0x3F
        if kind == DATAGRAM:
            self.phy.publish(heard, UnetDatagram(heard.to_address, protocol, frame[1:], None, PATIENCE_S), self.address)
        elif kind <= ACKNOWLEDGEMENT and len(frame) >= HEAD_BYTES and heard.to_address == self.address:
            datagram = UnetDatagram(heard.to_address, protocol, frame[2:], True, PATIENCE_S)
            self.link.receive(heard, kind, frame[1], datagram)
