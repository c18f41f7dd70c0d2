"""Acoustics for DUNE: a modem and long-baseline ranging. They use an instrument session for the vehicle, in addition to
the pilot's session.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wavesim_bridges import imc
from wavesim_bridges.core import RECONNECT_S, BridgeOptions, MalformedMessage
from wavesim_bridges.imc_codec import ImcMessage
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import Refused, SessionLost, WaveSimError
from wavesim_sdk.tables import MAX_PAYLOAD, SignalKind
from wavesim_sdk.wire.items import Reception

BROADCAST = "broadcast"  #: name by which IMC addresses all systems
TIMEOUT_S = 5.0  #: default simulation time in s to wait for the reply to a range request
LONGEST_S = 60.0
AGAIN_AFTER_S = 0.1  #: simulation time in s after which a request to a recharging transducer is repeated
PING_DELAY_S = 2.0  #: interval in s between the queries to two successive long-baseline beacons
Send = Callable[[ImcMessage], None]


@dataclass
class _PendingTransmission:
    """Task for the transducer: send a packet, measure a range, or both. The transducer executes one task at a time."""

    name: str
    timeout: float
    packet: bytes | None = None
    ranging: bool = True
    seq: int | None = None  #: number of DUNE's request; None for a periodic query to a beacon
    beacon: int = 0
    request: int = 0  #: number of the request to the server; 0 if there is no request
    signal: int = 0
    retry_at: float = 0.0
    #: simulation time in s at which the request expires; None if no state has been received since the request
    deadline: float | None = None
    error: str = "no answer"


class DuneAcoustics:
    """Modem and long-baseline ranging of a vehicle. ``modems`` maps IMC names to addresses and includes the vehicle's
    own name, ``name``. ``transponders`` holds the query and reply frequencies (Hz) of beacons that are not modems.
    """

    def __init__(
        self,
        seat: BridgeOptions,
        name: str,
        modems: Mapping[str, int],
        transponders: Mapping[str, tuple[float, float]],
        send_to_dune: Send,
    ) -> None:
        if modems and name not in modems:
            raise WaveSimError(
                f"the vehicle's own modem is missing: add --modem '{name}=ADDRESS', or specify another name with --name"
            )
        self.seat, self.name, self.send_to_dune = seat, name, send_to_dune
        self.active, self.ping_delay = True, PING_DELAY_S
        self._modems, self._transponders = modems, transponders
        self._names = {address: name for name, address in modems.items()}
        self._beacons: tuple[imc.LblBeacon, ...] = ()
        self._next_beacon_index, self._ping_at, self._now = 0, 0.0, 0.0
        self._pending: _PendingTransmission | None = None
        self._broker: AsyncBroker | None = None

    async def run(self) -> None:
        """Run until the simulation ends."""
        seat, joined = self.seat, False
        while True:
            broker = AsyncBroker(seat.vehicle, seat.server, role="instrument", sensors=())
            try:
                async with broker:
                    self._broker, joined = broker, True
                    seat.report(f"'{seat.vehicle}' transmits and receives sound through its transducer")
                    async for step in broker.steps():
                        self.advance(broker, step)
                    broker.raise_if_shut_down()  # another server may follow
                    return
            except (SessionLost, Refused) as lost:
                if not joined:
                    raise  # it never existed: a user error
                seat.report(f"transducer session: {lost}; retrying")
                await asyncio.sleep(RECONNECT_S)
            finally:
                self._broker = None
                self._finish(imc.UamTxStatus.UTS_FAILED, "the session was lost")

    # -- requests from DUNE ----------------------------------------------------------------------------------

    def handle(self, message: ImcMessage) -> None:
        """Process a request from DUNE and answer it with a status; ignore other messages."""
        match message:
            case imc.UamTxFrame(seq=seq, sys_dst=name, flags=flags, data=data):
                ranging = bool(flags & imc.UamTxFrame.UTF_ACK)
                self._ask(seq, name, data if data or not ranging else None, ranging, TIMEOUT_S)
            case imc.UamTxRange(seq=seq, sys_dst=name, timeout=timeout):
                is_set = math.isfinite(timeout) and timeout > 0.0
                self._ask(seq, name, None, True, min(timeout, LONGEST_S) if is_set else TIMEOUT_S)

    def _ask(self, seq: int, name: str, packet: bytes | None, ranging: bool, timeout: float) -> None:
        known = name in self._modems or (name == BROADCAST and not ranging)
        if not known or name == self.name:
            self._status(seq, imc.UamTxStatus.UTS_INV_ADDR, "no such modem")
        elif packet is not None and len(packet) > MAX_PAYLOAD:
            self._status(seq, imc.UamTxStatus.UTS_INV_SIZE, f"more than {MAX_PAYLOAD} bytes")
        elif self._pending is not None:
            self._status(seq, imc.UamTxStatus.UTS_BUSY)
        elif self._broker is None:
            self._status(seq, imc.UamTxStatus.UTS_FAILED, "the transducer is not connected")
        else:
            self._pending = _PendingTransmission(name, timeout, packet, ranging, seq)
            self._status(seq, imc.UamTxStatus.UTS_IP)
            self._send(self._broker, self._pending)

    def _status(self, seq: int, value: int, error: str = "") -> None:
        self.send_to_dune(imc.UamTxStatus(seq, value, error))

    def _send(self, broker: AsyncBroker, order: _PendingTransmission) -> None:
        """Start the next action of a task: its packet or its range query."""
        if order.packet is not None:
            order.request = broker.send(order.packet, self._modems.get(order.name, 0))
        elif order.name in self._modems:
            order.request = broker.range_to(self._modems[order.name])
        else:
            order.request = broker.ping(self._transponders[order.name][0])

    # -- the long baseline -------------------------------------------------------------------------------

    def configure(self, beacons: Sequence[ImcMessage]) -> None:
        """Set the beacons that the modem queries in turn from now on. Raise MalformedMessage for an invalid beacon."""
        found = tuple(b for b in beacons if isinstance(b, imc.LblBeacon))
        if len(found) < len(beacons) or len(found) > 256:
            raise MalformedMessage("payload")
        for b in found:
            if b.beacon not in self._modems and b.beacon not in self._transponders:
                self.seat.report(f"the beacon '{b.beacon}' is ignored: neither --modem nor --transponder defines it")
        self._beacons, self._next_beacon_index = found, 0

    @property
    def beacons(self) -> tuple[imc.LblBeacon, ...]:
        """Return the beacons in the order in which they were configured."""
        return self._beacons

    def _next_beacon(self, now: float) -> _PendingTransmission | None:
        """Return the task for the next beacon, or None if no query is due."""
        if not self.active or now < self._ping_at:
            return None
        self._ping_at = now + self.ping_delay
        for _ in self._beacons:
            k, self._next_beacon_index = self._next_beacon_index, (self._next_beacon_index + 1) % len(self._beacons)
            name = self._beacons[k].beacon
            if name in self._modems or name in self._transponders:
                return _PendingTransmission(name, min(TIMEOUT_S, self.ping_delay), beacon=k)
        return None

    # -- results ---------------------------------------------------------------------------------------------

    def advance(self, broker: AsyncBroker, step: Step) -> None:
        """Process a new simulation state."""
        now = step.time
        if now < self._now:  # the server was restarted
            self._ping_at = now
        self._now = now
        for reception in step.receptions:
            self._handle_reception(reception)
        order = self._pending
        if order is not None:
            if order.deadline is None:
                order.deadline = now + order.timeout
            self._follow_request(order, step)
            if self._pending is order and now >= order.deadline:
                self._finish(imc.UamTxStatus.UTS_FAILED, order.error)
            elif self._pending is order and not order.request and not order.signal and now >= order.retry_at:
                self._send(broker, order)
        if self._pending is None:
            self._pending = self._next_beacon(now)
            if self._pending is not None:
                self._send(broker, self._pending)

    def _follow_request(self, pending: _PendingTransmission, step: Step) -> None:
        """Process the server's answer to a request that a task has made."""
        for sent in step.sent:
            if sent.request == pending.request:
                pending.request = 0
                if pending.packet is None:
                    pending.signal = sent.id
                elif pending.ranging:
                    pending.packet = None  # its range follows
                else:
                    self._finish(imc.UamTxStatus.UTS_DONE)
        for refused in step.refused:
            if refused.request == pending.request:
                pending.request, pending.error, pending.retry_at = 0, refused.text, step.time + AGAIN_AFTER_S

    def _finish(self, value: int, error: str = "") -> None:
        order, self._pending = self._pending, None
        if order is not None and order.seq is not None:
            self._status(order.seq, value, error)

    def _handle_reception(self, r: Reception) -> None:
        pending = self._pending
        if r.kind == SignalKind.DATA and r.payload is not None:
            own = r.to_address in (0, self._modems.get(self.name))
            to = self._name_of(r.to_address) if r.to_address else BROADCAST
            self.send_to_dune(
                imc.UamRxFrame(
                    self._name_of(r.from_address), to, 0 if own else imc.UamRxFrame.URF_PROMISCUOUS, r.payload
                )
            )
        elif pending is not None and r.range is not None and self._is_reply_to(r, pending):
            if pending.seq is None:
                self.send_to_dune(imc.LblRange(pending.beacon, r.range))
            else:
                self.send_to_dune(imc.UamRxRange(pending.seq, pending.name, r.range))
            self._finish(imc.UamTxStatus.UTS_DONE)

    def _name_of(self, address: int) -> str:
        return self._names.get(address, str(address))

    def _is_reply_to(self, r: Reception, pending: _PendingTransmission) -> bool:
        if pending.name in self._modems:
            return r.kind == SignalKind.RANGE_REPLY and r.from_address == self._modems[pending.name]
        replies = {name: reply for name, (_, reply) in self._transponders.items()}
        nearest = min(replies, key=lambda name: abs(replies[name] - r.frequency))
        return nearest == pending.name
