"""Modems of the tests: two in the sea with devices on their ports, and a broker without a server."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.conftest import Server
from tests.nursery import launch
from wavesim_sdk.broker import Step
from wavesim_sdk.imaging_frames import FRAME_KINDS, ImagingFrame, frame_record, sample_type
from wavesim_sdk.wire.items import Reception, RequestRefused, SignalSent
from wavesim_sdk.wire.state import State

NODE = """<vehicle name="{name}" model="lauv" position="{x} {y} 20 m" attitude="0 0 {heading} deg" client="optional">
<transducer threshold="80 dB" recharge="0 s" turn_around="{turn_around}" {more}>
<modem address="{address}" bit_rate="{bit_rate}" preamble="20 ms" payload="{payload}"/>{inner}</transducer>{sensors}</vehicle>"""
DEFAULTS = {
    "x": 0,
    "y": 0,
    "heading": 0,
    "turn_around": "50 ms",
    "more": "",
    "bit_rate": 1000,
    "payload": 64,
    "inner": "",
    "sensors": "",
}


def sea(*nodes: dict[str, Any], acoustics: str = "") -> str:
    """Configuration with nodes a, b, ... and their addresses 3, 4, ...; each node may have other values than DEFAULTS."""
    fleet = "".join(
        NODE.format(**{**DEFAULTS, "name": chr(ord("a") + k), "address": 3 + k, **node}) for k, node in enumerate(nodes)
    )
    return (
        f'<time step="4 ms"/><network acoustic_rate="1 kHz"/>{acoustics}<world><bed depth="200 m"/></world><models/>'
        f"<fleet>{fleet}</fleet>"
    )


@contextmanager
def devices(server: Server, *commands: list[str]) -> Iterator[list[dict[str, int]]]:
    """Run `wavesim device` with each command, as pilots. Yields the TCP ports of each device by name."""
    with open_devices(server, *([*command, "--pilot"] for command in commands)) as places:
        yield places


@contextmanager
def open_devices(server: Server, *commands: list[str]) -> Iterator[list[dict[str, int]]]:
    """Run `wavesim device` with each command. Yields the ports of each device by name."""
    started = [
        launch("device", *command, "--server", f"127.0.0.1:{server.port}", stdout=subprocess.PIPE)
        for command in commands
    ]
    try:
        places = []
        for device in started:
            assert device.stdout is not None
            said = device.stdout.readline().rpartition(" at ")[2].strip()
            named = said if " " in said else f"port {said}"
            places.append({n: int(p.rpartition(":")[2]) for n, _, p in (q.partition(" ") for q in named.split(", "))})
        yield places
        assert [d.poll() for d in started] == [None] * len(started), "a device has ended"
    finally:
        for device in started:
            device.terminate()
            device.wait(10)
            if device.stdout is not None:
                device.stdout.close()


class FakeBroker:
    """Broker that keeps the requests of a device, and makes steps of what a server would report."""

    def __init__(self) -> None:
        self.name, self.welcome = "a", SimpleNamespace(sound_speed=1500.0)
        self.requests: list[tuple[Any, ...]] = []
        self.time, self.lockstep = 0.0, 1.0

    def send(self, payload: bytes, to: int = 0, level: float | None = None, *, at: int | None = None) -> int:
        self.requests.append(("send", payload, to, level, at))
        return len(self.requests)

    def range_to(self, address: int, level: float | None = None, *, at: int | None = None) -> int:
        self.requests.append(("range", address, level, at))
        return len(self.requests)

    def ping(
        self, frequency: float, level: float | None = None, *, at: int | None = None, code: int | None = None
    ) -> int:
        self.requests.append(("ping", frequency, level, at, code))
        return len(self.requests)

    def on_reception(self, call: Callable[[Reception], None]) -> None:
        raise AssertionError("the devices of this folder read the receptions of the steps")

    def step(
        self,
        time: float,
        *receptions: Reception,
        sent: dict[int, float] | None = None,
        refused: dict[int, str] | None = None,
    ) -> Step:
        """The step at a time, with the durations of requests that were sent, and the reasons of those refused."""
        self.time = time
        now = round(time * 1e9)
        state = dataclasses.replace(State(), time_ns=now)
        return Step(
            state,
            receptions=list(receptions),
            sent=[SignalSent(n, 100 + n, now, 25e3, 188.0, duration) for n, duration in (sent or {}).items()],
            refused=[RequestRefused(n, text) for n, text in (refused or {}).items()],
        )


class SoundBroker(FakeBroker):
    """Broker that also has blocks of a hydrophone, and that can transmit samples."""

    def __init__(self, channels: int = 1, bits: int = 16, rate: float = 96000) -> None:
        super().__init__()
        self.channels, self.bits, self.rate, self.frames = channels, bits, rate, list[ImagingFrame]()
        self.hydrophone = ""

    def subscribe_frames(self, name: str) -> None:
        self.hydrophone = name

    def take_frames(self) -> list[ImagingFrame]:
        found, self.frames = self.frames, []
        return found

    def transmit(
        self, samples: Any, sampling_rate: float, level: float, at: int | None = None, *, scale: str = "rms"
    ) -> int:
        self.requests.append((scale, samples, sampling_rate, level, at))
        return len(self.requests)

    def block(self, first: int, count: int) -> None:
        """Add a block. Sample k of channel c has the value (k + c) mod 1000 in units of the converter."""
        self.hear(first, (np.arange(first, first + count) + np.arange(self.channels)[:, None]) % 1000)

    def hear(self, first: int, values: Any) -> None:
        """Add a block with these values (channels, n) in units of the converter; without a converter, in mV."""
        samples = values.astype(sample_type(self.bits)) if self.bits else (values * 1e-3).astype("<f4")
        record = frame_record(
            name=self.hydrophone.encode(), kind=FRAME_KINDS.index("hydrophone"), beams=self.channels, bins=values.shape[1],
            frequency=self.rate, tvg=self.bits, span=2.0, ping_ns=round(first * 1e9 / self.rate), sample_bytes=samples.itemsize,
        )  # fmt: skip
        self.frames.append(ImagingFrame(record, samples.tobytes()))


def reception(kind: int, sender: int, to: int, payload: bytes | None = None, **more: Any) -> Reception:
    values = {"reception_ns": 2_000_000_000, "id": 7, "query": 0, "code": 0, "frequency": 25e3, "level": 120.0}
    return Reception(
        **{**values, "kind": kind, "from_address": sender, "to_address": to, "snr": 30.0, "payload": payload, **more}
    )
