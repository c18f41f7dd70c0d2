"""Replay of a recording: the device's side is played to a driver, and the bytes from the driver are compared with the
recording.

The replay follows the recorded times. Where the recording has bytes from a host, the replay waits until the driver has
sent the same number of bytes, so that no answer precedes its command. A slower driver therefore delays all later
events. If a driver sends less than the recording contains, the replay waits once for ``patience`` seconds, and does not
wait for this host again.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from wavesim_devices.ports import Bytes, OpenPort, PtyPort, TcpPort
from wavesim_devices.traffic import CLOSED, OPENED, RECEIVED, SENT, Recording, TrafficEvent, shown

CONTEXT_BYTES = 24  #: number of bytes to show around the first difference
Key = tuple[str, int]  #: name of the port, and number of the host on this port


@dataclass
class ReplayHost:
    """Driver on a port, with the bytes that it has sent and the bytes that the recording contains for it."""

    send: Bytes | None = None  #: function that sends bytes to the driver; None until the driver connects
    received: bytearray = field(default_factory=bytearray)
    #: bytes that the driver should have sent so far according to the recording
    expected: bytearray = field(default_factory=bytearray)
    is_awaited: bool = True

    def difference(self) -> str:
        """Describe how the bytes of the host differ from the recording. The description is empty if they do not differ."""
        got, wanted = bytes(self.received), bytes(self.expected)
        if self.send is None:
            return "no host connected"
        if got == wanted:
            return ""
        at = next((k for k, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
        if at == len(got):
            return f"{len(wanted) - at} of {len(wanted)} B are missing: {shown(wanted[at : at + CONTEXT_BYTES])}"
        if at == len(wanted):
            return f"{len(got) - at} B more than recorded: {shown(got[at : at + CONTEXT_BYTES])}"
        begin = max(at - CONTEXT_BYTES // 2, 0)
        old, new = (shown(part[begin : begin + CONTEXT_BYTES]) for part in (wanted, got))
        return f"byte {at + 1} of {len(wanted)} differs: recorded {old}, received {new}"


class _Peer:
    """Connection to a driver."""

    def __init__(self, replay: Replay, host: ReplayHost) -> None:
        self.replay, self.host = replay, host

    def receive(self, data: bytes) -> None:
        self.host.received += data
        self.replay.changed.set()

    def close(self) -> None:
        self.host.is_awaited = False
        self.replay.changed.set()


class Replay:
    """Player of the device's side of a recording, for a driver. ``speed`` is the ratio of recorded time to wall time; 0
    means without pauses.
    """

    def __init__(
        self,
        recording: Recording,
        places: Mapping[str, OpenPort],
        speed: float = 1.0,
        patience: float = 2.0,
        report: Callable[[str], None] = print,
    ) -> None:
        self.recording, self.speed, self.patience, self.report = recording, speed, patience, report
        self.changed = asyncio.Event()  #: event that is set when a host connects, sends bytes or disconnects
        self.hosts: dict[Key, ReplayHost] = {(e.port, e.host): ReplayHost() for e in recording.events}
        self._count = dict.fromkeys(places, 0)
        self._is_begun = False
        self._late = 0.0  # wall time by which the replay lags behind the recording, s
        self.ports = {name: open_port(partial(self._accept, name)) for name, open_port in places.items()}

    def _accept(self, port: str, send: Bytes) -> _Peer:
        self._count[port] += 1
        host = self.hosts.setdefault((port, self._count[port]), ReplayHost())
        host.send = send
        self.changed.set()
        return _Peer(self, host)

    async def run(self) -> dict[Key, str]:
        """Play the recording. Return for each host how its bytes differed from the recording; the text is empty if they
        did not.
        """
        try:
            for port in self.ports.values():
                await port.open()
            places = ", ".join(f"{name} {port.path}" for name, port in self.ports.items())
            self.report(f"replay of {self.recording.device} at {places}")
            start = time.monotonic()
            for event in self.recording.events:
                if self.speed:
                    due = start + self._late + (event.time - self.recording.events[0].time) / self.speed
                    await asyncio.sleep(max(due - time.monotonic(), 0.0))
                await self._play(event)
            for port in self.ports.values():
                if isinstance(port, PtyPort):
                    await port.drain(self.patience)
            return {key: host.difference() for key, host in self.hosts.items()}
        finally:
            for port in self.ports.values():
                await port.close()

    async def _play(self, event: TrafficEvent) -> None:
        host = self.hosts[event.port, event.host]
        if event.what == OPENED and isinstance(self.ports[event.port], TcpPort):
            await self._wait(host, lambda: host.send is not None)
        elif event.what == RECEIVED:
            host.expected += event.data
            await self._wait(host, lambda: len(host.received) >= len(host.expected))
        elif event.what == SENT and host.send is not None:
            self._is_begun = True
            host.send(event.data)
        elif event.what == CLOSED and host.send is not None:
            host.send(b"")

    async def _wait(self, host: ReplayHost, condition: Callable[[], bool]) -> None:
        """Wait for a host; until the first host connects, wait without a time limit."""
        begin = time.monotonic()
        limit = begin + self.patience if self._is_begun else math.inf
        while not condition() and host.is_awaited and time.monotonic() < limit:
            self.changed.clear()
            try:
                async with asyncio.timeout(None if limit == math.inf else limit - time.monotonic()):
                    await self.changed.wait()
            except TimeoutError:
                host.is_awaited = False
        self._is_begun = True
        self._late += time.monotonic() - begin
