"""Sound for DUNE: its acoustic modem and its long baseline, by an instrument session of the vehicle beside the one that drives."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wavesim_bridges import imc
from wavesim_bridges.core import AGAIN_S, Seat
from wavesim_bridges.imc_codec import Message, Unusable
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import Refused, SessionLost, WaveSimError
from wavesim_sdk.tables import MAX_PAYLOAD, SignalKind
from wavesim_sdk.wire.items import Reception

BROADCAST = "broadcast"  #: IMC's name of all systems
TIMEOUT_S = 5.0  #: of simulation time: so long a range is waited for, unless the request says otherwise
LONGEST_S = 60.0
AGAIN_AFTER_S = 0.1  #: of simulation time: a transducer that recharges is asked again
PING_DELAY_S = 2.0  #: of the long baseline, between two beacons
Tell = Callable[[Message], None]


@dataclass
class _Order:
    """One thing at a time: a packet, then perhaps a range."""

    name: str
    timeout: float
    packet: bytes | None = None
    ranging: bool = True
    seq: int | None = None  #: of DUNE's request; None: the turn of a beacon
    beacon: int = 0
    request: int = 0  #: that the server has; 0: none
    signal: int = 0
    again: float = 0.0
    deadline: float | None = None  #: of simulation time; None: no state has come since
    trouble: str = "no answer"


class Sound:
    """Modem and long baseline. ``modems``: addresses by IMC's names, with that of the vehicle itself (``name``); ``transponders``:
    frequencies of query and reply (Hz) of beacons that are no modems."""

    def __init__(
        self,
        seat: Seat,
        name: str,
        modems: Mapping[str, int],
        transponders: Mapping[str, tuple[float, float]],
        tell: Tell,
    ) -> None:
        if modems and name not in modems:
            raise WaveSimError(f"which is the vehicle's own modem? Give --modem '{name}=ADDRESS' too, or --name")
        self.seat, self.name, self.tell = seat, name, tell
        self.active, self.ping_delay = True, PING_DELAY_S
        self._modems, self._transponders = modems, transponders
        self._names = {address: name for name, address in modems.items()}
        self._beacons: tuple[imc.LblBeacon, ...] = ()
        self._turn, self._ping_at, self._now = 0, 0.0, 0.0
        self._order: _Order | None = None
        self._broker: AsyncBroker | None = None

    async def run(self) -> None:
        """Until the run has ended."""
        seat, joined = self.seat, False
        while True:
            broker = AsyncBroker(seat.vehicle, seat.server, role="instrument", sensors=())
            try:
                async with broker:
                    self._broker, joined = broker, True
                    seat.say(f"'{seat.vehicle}' hears and sends by its transducer")
                    async for step in broker.steps():
                        self.step(broker, step)
                    return
            except (SessionLost, Refused) as lost:
                if not joined:
                    raise  # it never was there: the user's mistake
                seat.say(f"its transducer: {lost}; trying again")
                await asyncio.sleep(AGAIN_S)
            finally:
                self._broker = None
                self._end(imc.FAILED, "the session was lost")

    # -- what DUNE asks ----------------------------------------------------------------------------------

    def hear(self, message: Message) -> None:
        """A request of DUNE's; each is answered by a status. Other messages mean nothing here."""
        match message:
            case imc.UamTxFrame(seq=seq, sys_dst=name, flags=flags, data=data):
                ranging = bool(flags & imc.ACKNOWLEDGED)
                self._ask(seq, name, data if data or not ranging else None, ranging, TIMEOUT_S)
            case imc.UamTxRange(seq=seq, sys_dst=name, timeout=timeout):
                given = math.isfinite(timeout) and timeout > 0.0
                self._ask(seq, name, None, True, min(timeout, LONGEST_S) if given else TIMEOUT_S)

    def _ask(self, seq: int, name: str, packet: bytes | None, ranging: bool, timeout: float) -> None:
        known = name in self._modems or (name == BROADCAST and not ranging)
        if not known or name == self.name:
            self._status(seq, imc.INV_ADDR, "no such modem")
        elif packet is not None and len(packet) > MAX_PAYLOAD:
            self._status(seq, imc.INV_SIZE, f"more than {MAX_PAYLOAD} bytes")
        elif self._order is not None:
            self._status(seq, imc.BUSY)
        elif self._broker is None:
            self._status(seq, imc.FAILED, "the transducer is not there")
        else:
            self._order = _Order(name, timeout, packet, ranging, seq)
            self._status(seq, imc.IN_PROGRESS)
            self._send(self._broker, self._order)

    def _status(self, seq: int, value: int, error: str = "") -> None:
        self.tell(imc.UamTxStatus(seq, value, error))

    def _send(self, broker: AsyncBroker, order: _Order) -> None:
        """What is next of an order."""
        if order.packet is not None:
            order.request = broker.send(order.packet, self._modems.get(order.name, 0))
        elif order.name in self._modems:
            order.request = broker.range_to(self._modems[order.name])
        else:
            order.request = broker.ping(self._transponders[order.name][0])

    # -- the long baseline -------------------------------------------------------------------------------

    def configure(self, beacons: Sequence[Message]) -> None:
        """The beacons, which are asked for their range one after the other. Unusable for what is none."""
        found = tuple(b for b in beacons if isinstance(b, imc.LblBeacon))
        if len(found) < len(beacons) or len(found) > 256:
            raise Unusable("payload")
        for b in found:
            if b.beacon not in self._modems and b.beacon not in self._transponders:
                self.seat.say(f"the beacon '{b.beacon}' is not asked: it is no --modem and no --transponder")
        self._beacons, self._turn = found, 0

    @property
    def beacons(self) -> tuple[imc.LblBeacon, ...]:
        """As they were configured."""
        return self._beacons

    def _next_beacon(self, now: float) -> _Order | None:
        """The turn of a beacon; None if it is nobody's."""
        if not self.active or now < self._ping_at:
            return None
        self._ping_at = now + self.ping_delay
        for _ in self._beacons:
            k, self._turn = self._turn, (self._turn + 1) % len(self._beacons)
            name = self._beacons[k].beacon
            if name in self._modems or name in self._transponders:
                return _Order(name, min(TIMEOUT_S, self.ping_delay), beacon=k)
        return None

    # -- what comes of it --------------------------------------------------------------------------------

    def step(self, broker: AsyncBroker, step: Step) -> None:
        """The simulation has come to a new state."""
        now = step.time
        if now < self._now:  # the server was started anew
            self._ping_at = now
        self._now = now
        for heard in step.receptions:
            self._heard(heard)
        order = self._order
        if order is not None:
            if order.deadline is None:
                order.deadline = now + order.timeout
            self._follow(order, step)
            if self._order is order and now >= order.deadline:
                self._end(imc.FAILED, order.trouble)
            elif self._order is order and not order.request and not order.signal and now >= order.again:
                self._send(broker, order)
        if self._order is None:
            self._order = self._next_beacon(now)
            if self._order is not None:
                self._send(broker, self._order)

    def _follow(self, order: _Order, step: Step) -> None:
        """What the server said to the request of an order."""
        for sent in step.sent:
            if sent.request == order.request:
                order.request = 0
                if order.packet is None:
                    order.signal = sent.id
                elif order.ranging:
                    order.packet = None  # its range is next
                else:
                    self._end(imc.DONE)
        for refused in step.refused:
            if refused.request == order.request:
                order.request, order.trouble, order.again = 0, refused.text, step.time + AGAIN_AFTER_S

    def _end(self, value: int, error: str = "") -> None:
        order, self._order = self._order, None
        if order is not None and order.seq is not None:
            self._status(order.seq, value, error)

    def _heard(self, r: Reception) -> None:
        order = self._order
        if r.kind == SignalKind.DATA and r.payload is not None:
            own = r.to_address in (0, self._modems.get(self.name))
            to = self._name_of(r.to_address) if r.to_address else BROADCAST
            self.tell(imc.UamRxFrame(self._name_of(r.from_address), to, 0 if own else imc.PROMISCUOUS, r.payload))
        elif order is not None and r.range is not None and self._answers(r, order):
            if order.seq is None:
                self.tell(imc.LblRange(order.beacon, r.range))
            else:
                self.tell(imc.UamRxRange(order.seq, order.name, r.range))
            self._end(imc.DONE)

    def _name_of(self, address: int) -> str:
        return self._names.get(address, str(address))

    def _answers(self, r: Reception, order: _Order) -> bool:
        if order.name in self._modems:
            return r.kind == SignalKind.RANGE_REPLY and r.from_address == self._modems[order.name]
        replies = {name: reply for name, (_, reply) in self._transponders.items()}
        nearest = min(replies, key=lambda name: abs(replies[name] - r.frequency))
        return nearest == order.name
