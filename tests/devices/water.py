"""A minimal medium for devices in one process: brokers whose signals reach each other after a constant delay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from wavesim_sdk.broker import Step
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.client import State
from wavesim_sdk.wire.items import Reception, RequestRefused, SignalSent

SPEED = 1500.0
DELAY_S = 0.2  #: between any two nodes
TICK_S = 0.01


@dataclass
class Node:
    """A broker of the minimal medium."""

    water: Water
    address: int
    turn_around: float = 0.015
    preamble: float = 0.03
    direction: tuple[float, float] | None = None  #: azimuth and elevation that a USBL head reports, rad
    sound_speed: float = SPEED
    requests: int = 0
    listeners: list[Callable[[Reception], None]] = field(default_factory=list)
    events: Step = field(default_factory=lambda: Step(State()))
    device: Any = None
    refusing: str = ""  #: reason for which the node refuses requests

    @property
    def welcome(self) -> Any:
        return SimpleNamespace(sound_speed=self.sound_speed)

    def on_reception(self, call: Callable[[Reception], None]) -> None:
        self.listeners.append(call)

    def ping(
        self, frequency: float, level: Any = None, *, at: Any = None, code: Any = None, duration: Any = None
    ) -> int:
        return self._request(at, kind=SignalKind.PULSE, frequency=frequency, code=code or 0, length=duration or 0.01)

    def send(self, payload: bytes, to: int = 0, level: Any = None, *, at: Any = None, duration: Any = None) -> int:
        assert len(payload) <= 256
        length = self.preamble + len(payload) / 80.0 if duration is None else duration
        return self._request(at, kind=SignalKind.DATA, to=to, payload=payload, length=length)

    def range_to(
        self, address: int, level: Any = None, *, at: Any = None, payload: bytes = b"", duration: Any = None
    ) -> int:
        length = self.preamble + len(payload) / 80.0 if duration is None else duration
        return self._request(at, kind=SignalKind.RANGE_REQUEST, to=address, payload=payload or None, length=length)

    def _request(self, at: int | None, **signal: Any) -> int:
        self.requests += 1
        if self.refusing:
            self.events.refused.append(RequestRefused(self.requests, self.refusing))
        else:
            time = self.water.time if at is None else max(at * 1e-9, self.water.time)
            self.water.plan(time, lambda t: self.water.emit(self, t, {"request": self.requests, **signal}))
        return self.requests


@dataclass
class Water:
    """The medium. Signals do not collide; ``lose`` decides which receptions are lost."""

    time: float = 0.0
    nodes: list[Node] = field(default_factory=list)
    sent: list[tuple[Node, float, dict[str, Any]]] = field(default_factory=list)
    lose: Callable[[dict[str, Any]], bool] = lambda _: False
    _plan: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    _number: int = 0

    def node(self, address: int, **properties: Any) -> Node:
        self.nodes.append(Node(self, address, **properties))
        return self.nodes[-1]

    def plan(self, time: float, call: Callable[[float], None]) -> None:
        self._number += 1
        self._plan.append((time, self._number, call))

    def emit(self, source: Node, time: float, signal: dict[str, Any]) -> None:
        self.sent.append((source, time, signal))
        number = len(self.sent)
        ns, length = round(time * 1e9), signal["length"]
        source.events.sent.append(
            SignalSent(signal.get("request", 0), number, ns, signal.get("frequency", 25e3), 180.0, length)
        )
        for node in self.nodes:
            if node is not source and not self.lose(signal):
                self.plan(time + DELAY_S + length, lambda t, n=node: self._arrive(n, source, t, number, signal))  # type: ignore[misc]

    def _arrive(self, node: Node, source: Node, time: float, number: int, signal: dict[str, Any]) -> None:
        kind, arrival = signal["kind"], time - signal["length"]
        azimuth, elevation = node.direction or (None, None)
        reception = Reception(
            round(arrival * 1e9),
            number,
            signal.get("query", 0),
            int(kind),
            signal.get("code", 0),
            source.address if kind != SignalKind.PULSE else 0,
            signal.get("to", 0),
            signal.get("frequency", 25e3),
            110.0,
            30.0,
            DELAY_S * SPEED if kind == SignalKind.RANGE_REPLY and signal["asked"] is node else None,
            azimuth,
            elevation,
            signal.get("payload"),
        )
        node.events.receptions.append(reception)
        for call in node.listeners:
            call(reception)
        if kind == SignalKind.RANGE_REQUEST and signal["to"] == node.address:
            reply = {"kind": SignalKind.RANGE_REPLY, "to": source.address, "query": number, "asked": source}
            wait = max(arrival + node.turn_around, time)
            self.plan(wait, lambda t: self.emit(node, t, {**reply, "length": node.preamble}))

    def advance(self, seconds: float) -> None:
        """Advance tick by tick; each device gets a step at the end of each tick."""
        for _ in range(round(seconds / TICK_S)):
            self.time += TICK_S
            while due := sorted(p for p in self._plan if p[0] <= self.time):
                self._plan.remove(due[0])
                due[0][2](due[0][0])
            for node in self.nodes:
                step, node.events = node.events, Step(State())
                step.state.time_ns = round(self.time * 1e9)
                if node.device is not None:
                    node.device.step(step)
