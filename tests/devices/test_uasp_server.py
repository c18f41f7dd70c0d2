"""Converters of a software modem in the sea of a real server: ranges and Doppler from samples alone.

The client is written from the protocol description alone.
"""

from __future__ import annotations

import base64
import json
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from tests.devices.modems import open_devices
from tests.e2e.test_sensors import processes
from tests.nursery import launch
from wavesim_sdk.attach import SharedState
from wavesim_sdk.log import Log, read
from wavesim_sdk.shared_memory import OWNER, SYNCHRONOUS
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("hydrophones"), pytest.mark.timeout(240)]

RATE, SPEED = 96000, 1500.0
TONE = 24e3
TRANSDUCER = (
    '<transducer source_level="190 dB" recharge="0 s" listen_low="10 kHz" listen_high="40 kHz" position="0 0 0 m"/>'
)
#: `still` and `swimmer` send, and `ears` receives; `swimmer` approaches it and slows down
SEA = f"""<time step="10 ms" speed="0.3"/><log state_rate="100 Hz"/><network lockstep_timeout="60 s" keepalive_timeout="60 s"/>
<world><bed depth="4000 m"/></world><acoustics sound_speed="{SPEED} m/s" absorption="0 dB/m"/><fleet>
<vehicle name="ears" model="lauv" position="0 0 20 m">{TRANSDUCER}<sensors>
<hydrophone name="array" ambient="no" bits="24" gain="40 dB"><element position="0 0 0 m"/><element position="0.5 0 0 m"/></hydrophone></sensors></vehicle>
<vehicle name="still" model="lauv" position="0 1000 20 m">{TRANSDUCER}<sensors><hydrophone position="0.5 0 0 m"/></sensors></vehicle>
<vehicle name="swimmer" model="lauv" position="1000 0 30 m" attitude="0 0 180 deg" velocity="2 0 0 m/s">{TRANSDUCER}<sensors><hydrophone/></sensors></vehicle></fleet>"""


class UaspClient:
    """Commands over TCP, and a thread that receives the datagrams."""

    def __init__(self, port: int) -> None:
        self.command = socket.create_connection(("127.0.0.1", port), 30)
        self.lines = self.command.makefile("rb")
        self.data = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.data.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)  # a busy machine delays the thread
        self.data.bind(("127.0.0.1", 0))
        self.data.settimeout(0.5)
        self.packets: dict[int, bytes] = {}
        self.is_open = True
        self.thread = threading.Thread(target=self._receive, daemon=True)
        self.thread.start()

    def _receive(self) -> None:
        while self.is_open:
            try:
                packet = self.data.recv(2000)
            except TimeoutError:
                continue
            self.packets[struct.unpack(">QI", packet[:12])[1]] = packet

    def close(self) -> None:
        self.is_open = False
        self.thread.join()
        self.data.close()
        self.lines.close()
        self.command.close()

    def send(self, action: str, /, **fields: Any) -> None:
        self.command.sendall(json.dumps({"action": action, **fields}).encode() + b"\n")

    def next(self) -> Any:
        return json.loads(self.lines.readline())

    def get(self, name: str) -> Any:
        self.send("get", param=name, id=7)
        answer = self.next()
        assert (answer["param"], answer["id"]) == (name, 7)
        return answer["value"]

    def play(self, samples: Any, at: int) -> int:
        """Play samples; return the time in us at which they were sent."""
        for k in range(0, len(samples), 4096):
            part = samples[k : k + 4096].astype(">f4")
            packet = struct.pack(">QIHH", 0, 0, len(part), 1) + part.tobytes()
            self.send("odata", data=base64.b64encode(packet).decode())
        self.send("ostart", time=at)
        began, ended = self.next(), self.next()
        assert (began["event"], ended["event"]) == ("ostart", "ostop")
        assert ended["time"] - began["time"] == round(len(samples) / RATE * 1e6)
        return int(began["time"])

    def samples(self) -> tuple[int, Any]:
        """The number of the first sample of the clock, and the samples (channels, n); no packet may be missing."""
        numbers = sorted(self.packets)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        heads = [struct.unpack(">QIHH", self.packets[n][:16]) for n in numbers]
        parts = [
            np.frombuffer(self.packets[n], ">f4", offset=16).reshape(-1, h[3])
            for n, h in zip(numbers, heads, strict=True)
        ]
        first = round(heads[0][0] * RATE / 1e6)
        assert all(h[0] == round((first + k * h[2]) * 1e6 / RATE) for k, h in enumerate(heads))
        return first, np.concatenate(parts).T.astype(float)


def start_emulator(server: Server, loaded: LoadedConfig, processes: list[subprocess.Popen[str]]) -> None:
    """Start the emulator of hydrophones, and wait until the server waits for it."""
    processes.append(launch("emulate", "hydrophone", loaded.path, "-s", server.name))
    header = SharedState(server.name).vehicles["hydrophone"].header
    limit = time.monotonic() + 100.0
    while not (header[OWNER] and header[SYNCHRONOUS]):
        assert time.monotonic() < limit
        time.sleep(0.02)


def chirp(t: Any) -> Any:
    """20 to 30 kHz in 20 ms."""
    inside = (t >= 0.0) & (t < 0.02)
    return np.where(inside, np.sin(2 * np.pi * (20e3 * t + 0.5 * 10e3 / 0.02 * t * t)), 0.0) * 0.8


def tone(t: Any) -> Any:
    return 0.8 * np.sin(2 * np.pi * TONE * t) * np.clip(np.minimum(t, 0.4 - t) / 0.005, 0.0, 1.0)


def arrival(sound: Any, wanted: Any) -> float:
    """The delay of a signal in samples: the peak of the correlation, interpolated 16 times and by a parabola."""
    size = 1 << (len(sound) + len(wanted) - 1).bit_length()
    spectrum = np.fft.rfft(sound, size) * np.conj(np.fft.rfft(wanted, size))
    fine = np.fft.irfft(spectrum, 16 * size)
    peak = int(np.argmax(fine[: 16 * len(sound)]))
    a, b, c = fine[peak - 1 : peak + 2]
    return (peak + 0.5 * (a - c) / (a - 2 * b + c)) / 16.0


class Track:
    """The true position of a body at any time."""

    def __init__(self, log: Log, name: str) -> None:
        series = log.series[f"/state/{name}"]
        self.times, self.positions = series.time_ns * 1e-9, series.records["p_WB_W"]

    def at(self, t: Any) -> Any:
        return np.stack([np.interp(t, self.times, self.positions[:, k]) for k in range(3)], axis=-1)


def emission(source: Track, listener: Track, t: Any) -> Any:
    """The time at which the sound that arrives at ``t`` was sent."""
    sent = np.array(t, float)
    for _ in range(8):
        sent = t - np.linalg.norm(source.at(sent) - listener.at(t), axis=-1) / SPEED
    return sent


@pytest.fixture
def clients() -> Iterator[list[UaspClient]]:
    opened: list[UaspClient] = []
    yield opened
    for client in opened:
        client.close()


def test_range_and_doppler_from_samples(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    clients: list[UaspClient],
    tmp_path: Path,
) -> None:
    loaded = config(SEA)
    server = serve(loaded.path, "--log", str(tmp_path / "run.mcap"))
    start_emulator(server, loaded, processes)
    names = ("ears", "still", "swimmer")
    commands = [["uasp", name, "--command", "tcp:0", "--lockstep", "20ms"] for name in names]
    with open_devices(server, *commands) as places:
        clients.extend(UaspClient(place["command"]) for place in places)
        ears, still, swimmer = clients
        ears.send("version")
        assert ears.next()["protocol"] == "0.2.0"
        ears.send("istart", port=ears.data.getsockname()[1])
        server.send("start")
        assert (ears.get("irate"), ears.get("ichannels"), ears.get("iblksize")) == (RATE, 2, 177)
        clock = np.arange(round(0.4 * RATE)) / RATE
        begin = still.get("time") + 600_000
        assert still.play(chirp(clock[: RATE // 50]), begin) == begin
        later = swimmer.play(tone(clock), begin + 100_000)
        assert later >= begin + 100_000
        enough = (later * 1e-6 + 1000.0 / SPEED + 0.5) * RATE
        limit = time.monotonic() + 100.0
        while not ears.packets or max(ears.packets) * 177 < enough:
            assert time.monotonic() < limit
            time.sleep(0.05)
        ears.send("istop")
    server.send("shutdown")
    assert server.process.wait(60) == 0

    log = read(tmp_path / "run.mcap")
    tracks = {name: Track(log, name) for name in names}
    first, sound = ears.samples()
    # the range of `still`, which rests, from the time that its client set and the samples alone
    window = round((begin * 1e-6 + 0.6) * RATE) - first
    heard = window + arrival(sound[0, window : window + RATE // 5], chirp(clock[: RATE // 50])) + first
    travel = heard / RATE - begin * 1e-6
    true = np.linalg.norm(tracks["ears"].at(heard / RATE) - tracks["still"].at(begin * 1e-6))
    assert travel * SPEED == pytest.approx(true, abs=1e-3)
    # the Doppler shift of `swimmer`: the mean frequency of the middle 0.3 s, at both elements
    start = round((later * 1e-6 + 0.72) * RATE)
    t = np.arange(start, start + round(0.3 * RATE)) / RATE
    part = sound[:, start - first : start - first + len(t)]
    phase = np.unwrap(np.angle(_smooth(part * np.exp(-2j * np.pi * TONE * t))), axis=1)
    edge = 500
    rise = (phase[:, -edge] - phase[:, edge - 1]) / (2 * np.pi) / (t[-edge] - t[edge - 1])
    sent = emission(tracks["swimmer"], tracks["ears"], t[[edge - 1, -edge]])
    ratio = (sent[1] - sent[0]) / (t[-edge] - t[edge - 1])
    assert 1.0005 < ratio < 1.002, "it comes closer"
    assert 1.0 + rise / TONE == pytest.approx(ratio, abs=1e-6)


def _smooth(mixed: Any) -> Any:
    """Remove the sum frequency: a mean over 400 samples, in which 48 kHz have whole periods."""
    return np.stack([np.convolve(m, np.full(400, 1 / 400), "same") for m in mixed])
