"""The devices in a trial: virtual instruments that the trial starts alongside the on-board programs (<device>).

The devices of a body start one after the other. Therefore, they join in the order of the configuration, and each has
the same ordinal in the crew in every run.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wavesim_world.config import LoadedConfig
from wavesim_world.config.model import DeviceConfig


@dataclass(frozen=True)
class TrialDevice:
    """A device to start: the label of its process, its body, its number among the devices of the body, and its
    configuration.
    """

    label: str
    body: str
    number: int
    config: DeviceConfig

    def arguments(self, loaded: LoadedConfig, port: int) -> list[str]:
        """Return the arguments with which Python starts the device; ``port`` is the port of the server."""
        period = ["--lockstep", f"{self.config.period:.9g}"] if self.config.period else []
        what = ["run", str(loaded.data_file(self.config.run))] if self.config.run else [self.config.name]
        here = ["device", *what, self.body, "--port", str(port), *period]
        return ["-m", "wavesim_sdk", *here, *shlex.split(self.config.options)]


def devices_of(loaded: LoadedConfig) -> Iterator[TrialDevice]:
    """Yield the devices of a configuration, in the order in which it declares them."""
    for body in loaded.config.fleet.bodies:
        seen: Counter[str] = Counter()
        for number, device in enumerate(body.device):
            seen[device.label] += 1
            again = f"-{seen[device.label]}" if seen[device.label] > 1 else ""
            yield TrialDevice(f"device-{body.name}-{device.label}{again}", body.name, number, device)


class TrialDevices:
    """Devices of a trial. Each device is started when the preceding devices of the same body have joined."""

    def __init__(self, loaded: LoadedConfig) -> None:
        self._devices = list(devices_of(loaded))
        self._started: set[str] = set()  #: labels of the devices that have been started

    def take_due(self, status: Mapping[str, Any]) -> list[TrialDevice]:
        """Return the devices to start now, each of them only once; ``status`` is the status of the server."""
        joined = _joined(status)
        due = [d for d in self._devices if d.label not in self._started and d.number <= joined[d.body]]
        self._started.update(d.label for d in due)
        return due

    def missing(self, status: Mapping[str, Any]) -> list[str]:
        """Return the labels of the devices that have not joined."""
        joined = _joined(status)
        return [d.label for d in self._devices if d.number >= joined[d.body]]


def _joined(status: Mapping[str, Any]) -> Counter[str]:
    """Return the number of instrument sessions for each body."""
    return Counter(c["name"] for c in status["clients"] if c["role"] == "instrument")
