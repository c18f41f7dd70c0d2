"""A device of a user's own: a pressure gauge with a serial line."""

from __future__ import annotations

from typing import Any

from wavesim_devices.ports import Bytes
from wavesim_devices.splitters import LineSplitter
from wavesim_sdk.broker import Step


class Gauge:
    """Answers `P` with the pressure, and sends it at an interval in s; any other command is an error."""

    title = "gauge"
    types = ("pressure",)

    def __init__(
        self, _broker: Any, send: Bytes, sensors: dict[str, str], *, interval: float = 0.0, unit: str = "dbar"
    ) -> None:
        self.send, self.sensor, self.interval, self.unit = send, sensors.get("pressure", ""), interval, unit
        self.lines, self.errors, self.pressure, self.next = LineSplitter(), 0, 0.0, 0.0

    def receive(self, data: bytes) -> None:
        dropped = self.lines.dropped
        for line in self.lines.feed(data):
            if line == "FAIL":
                raise ValueError("a defect")
            if line == "P":
                self.publish()
            else:
                self.errors += 1
                self.send(b"?\r\n")
        self.errors += self.lines.dropped - dropped

    def publish(self) -> None:
        self.send(f"{self.pressure:.2f} {self.unit}\r\n".encode())

    def step(self, step: Step) -> None:
        value = step.sensors.get(self.sensor)
        if value is not None:
            self.pressure = value.pressure
        if self.interval and step.time >= self.next:
            self.next = step.time + self.interval
            self.publish()
