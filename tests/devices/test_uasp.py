"""Converters of a software modem (UASP2): packets byte for byte, each command of the protocol, and invalid ones."""

from __future__ import annotations

import base64
import json
import random
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.modems import SoundBroker
from wavesim_devices.ports import UdpTarget
from wavesim_devices.uasp.device import LONGEST_LINE, OUTPUT_BUFFER, UaspDevice, UaspModel
from wavesim_devices.uasp.packets import PacketSplitter

RATE = 96000


class Client:
    """Client with a command connection."""

    def __init__(self, bench: Bench) -> None:
        self.out = bytearray()
        self.host: Any = bench.device.connect("command", self.out.extend)

    def ask(self, action: str, /, **fields: Any) -> list[Any]:
        self.host.receive(json.dumps({"action": action, **fields}).encode() + b"\n")
        return self.said()

    def said(self) -> list[Any]:
        lines = [json.loads(line) for line in bytes(self.out).splitlines()]
        self.out.clear()
        return lines

    def get(self, name: str) -> Any:
        (answer,) = self.ask("get", param=name)
        assert answer["param"] == name
        return answer["value"]

    def put(self, *values: float, channels: int = 1) -> None:
        data = struct.pack(f">QIHH{len(values)}f", 7, 8, len(values), channels, *values)
        self.ask("odata", data=base64.b64encode(data).decode())


class Bench:
    """Device at a broker without a server."""

    def __init__(self, channels: int = 1, bits: int = 16) -> None:
        self.broker = SoundBroker(channels, bits, RATE)
        self.target, self.refusals, self.packets = UdpTarget(), list[str](), list[bytes]()
        self.device = UaspDevice(
            self.broker,
            "ears",
            self.target,
            UaspModel(185.0, RATE),
            self.refusals.append,  # type: ignore[arg-type]
        )
        self.device.connect("data", self.packets.append)
        self.client = Client(self)

    def step(self, seconds: float, **events: Any) -> None:
        self.device.step(self.broker.step(seconds, **events))


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.broker.block(0, 2000)
    bench.step(0.1)
    return bench


def test_the_texts_of_the_protocol(bench: Bench) -> None:
    """Each request of the protocol description with its response; `id` is repeated."""
    ask, get = bench.client.ask, bench.client.get
    (version,) = ask("version", id=[1, "a"])
    assert (version["name"], version["protocol"], version["id"]) == ("wavesim", "0.2.0", [1, "a"])
    assert ask("get", param="irate", id=123) == [{"param": "irate", "value": RATE, "id": 123}]
    expected = {
        "time": 100_000, "iseqno": 7, "iblksize": 256, "irates": [RATE], "ichannels": 1, "igain": 0.0, "obufsize": 1_920_000,
        "orate": RATE, "orates": [48000, 96000, 192000, 250000], "ochannels": 1, "ogain": 0.0, "omute": False,
    }  # fmt: skip
    assert {name: get(name) for name in expected} == expected
    for name, value in (("irate", RATE), ("igain", 6), ("orate", 48000), ("ogain", -30), ("omute", True)):
        assert ask("set", param=name, value=value) == [] and get(name) == value
    assert (get("obufsize"), bench.client.host.errors) == (1_920_000, 0)
    for name, value in (("irate", 48000), ("orate", 1), ("omute", 1), ("igain", "6"), ("ogain", 1e9), ("time", 1)):
        ask("set", param=name, value=value)
    assert bench.client.host.errors == 6
    bench.client.host.receive(b'{"action": "get", "param": "iseq')
    bench.client.host.receive(b'no"}\r\n{"action":"quit"}\n')
    assert bytes(bench.client.out) == b'{"param": "iseqno", "value": 7}\n'


def test_datagrams_byte_for_byte() -> None:
    bench = Bench(channels=2, bits=16)
    bench.step(0.1)
    assert bench.client.ask("istart", port=8080) == []
    bench.broker.block(0, 200)
    bench.broker.block(200, 200)
    bench.step(0.2)
    size = bench.client.get("iblksize")
    assert size == 177 and len(bench.packets) == 2, "two channels of 177 samples fit into 1432 bytes"
    assert bench.target.address == ("127.0.0.1", 8080)
    assert bench.packets[1][:24] == struct.pack(">QIHHff", 1844, 1, 177, 2, 177 / 32768, 178 / 32768)
    assert all(len(p) == 16 + 8 * 177 <= 1432 for p in bench.packets)
    for number, packet in enumerate(bench.packets):
        samples = np.frombuffer(packet, ">f4", offset=16).reshape(-1, 2) * 32768
        assert (samples[:, 1] == samples[:, 0] + 1).all() and samples[0, 0] == number * size
    bench.client.ask("istop")
    bench.broker.block(400, 400)
    bench.step(0.3)
    assert len(bench.packets) == 2 and bench.target.address is None
    assert bench.client.get("iseqno") == 4, "the converter runs without a receiver, too"


def test_a_number_of_packets_a_gain_and_a_gap(bench: Bench) -> None:
    """Of 3 packets, the second and third follow a gap; numbers and times tell how much is missing."""
    bench.client.ask("set", param="igain", value=20)
    bench.client.ask("istart", port=9, blocks=3)
    bench.broker.block(2000, 100)
    bench.broker.block(2300, 1000)
    bench.step(0.2)
    heads = [struct.unpack(">QIHH", p[:16]) for p in bench.packets]
    assert heads == [(round(n * 256 / 0.096), n, 256, 1) for n in (7, 9, 10)]
    first = np.frombuffer(bench.packets[1], ">f4", 2, offset=16)
    assert first == pytest.approx(np.array([304, 305]) / 32768 * 10.0, rel=1e-6)
    assert bench.target.address is None, "stopped after the third one"
    bench.client.ask("set", param="igain", value=60)
    bench.client.ask("istart", port=9)
    bench.broker.block(3300, 500)
    bench.step(0.3)
    assert np.frombuffer(bench.packets[-1], ">f4", offset=16).max() == 1.0, "limited to full scale"


@pytest.mark.parametrize("bits", [0, 24])
def test_full_scale_is_1_for_all_converters(bits: int) -> None:
    bench = Bench(bits=bits)
    bench.client.ask("istart", port=9)
    bench.broker.block(0, 256)
    bench.step(0.1)
    scale = 1e-3 / 2.0 if bits == 0 else 1.0 / (1 << 23)
    assert np.frombuffer(bench.packets[0], ">f4", offset=16) == pytest.approx(np.arange(256) * scale, rel=1e-6)


def test_the_clock_and_the_counter_begin_again(bench: Bench) -> None:
    """After `ireset` at 0.1 s, which is sample 9600, the packets begin there, and times for transmission refer to it."""
    bench.client.ask("ireset")
    assert (bench.client.get("time"), bench.client.get("iseqno")) == (0, 0)
    bench.client.ask("istart", port=9)
    bench.broker.block(2000, 8000)
    bench.step(0.15)
    assert [struct.unpack(">QI", p[:12]) for p in bench.packets] == [(0, 0)]
    bench.client.put(0.5)
    bench.client.ask("ostart", time=70_000)
    assert bench.broker.requests[-1][4] == 170_000_000
    bench.step(0.2, sent={1: 0.01})
    assert bench.client.said()[0] == {"event": "ostart", "time": 100_000}


def test_requests_about_the_hydrophone_wait_for_its_first_block() -> None:
    bench = Bench()
    assert bench.client.ask("get", param="irate", id=1) == [] == bench.client.ask("version", id=2)
    other = Client(bench)
    assert other.get("orate") == RATE
    bench.broker.rate = 48000
    bench.broker.block(0, 100)
    bench.step(0.1)
    assert [a["id"] for a in bench.client.said()] == [1, 2] and bench.client.get("irate") == 48000
    silent = Bench()
    silent.client.ask("get", param="irate")
    for _ in range(30):
        silent.client.ask("odata", data="A" * 200_000)
    assert 5 < silent.client.host.errors < 30, "a client cannot let the device keep any amount of bytes"


def test_a_signal_is_sent_and_its_events_follow(bench: Bench) -> None:
    """A sine of amplitude 0.5 in two parts: its level is 185 + 10 - 6.02 dB."""
    sine = np.sin(np.arange(960) * 2 * np.pi / 4) * 0.5
    for part in (sine[:500], sine[500:]):
        bench.client.put(*part)
    bench.client.ask("set", param="ogain", value=10)
    assert bench.client.ask("ostart", id="x") == []
    ((what, samples, rate, level, at),) = bench.broker.requests
    assert (what, rate, at) == ("rms", RATE, None) and level == pytest.approx(188.979, abs=0.01)
    assert samples.dtype == np.float32 and samples == pytest.approx(sine.astype(np.float32))
    bench.step(0.11, sent={1: 0.01})
    assert bench.client.said() == [{"event": "ostart", "time": 110_000, "id": "x"}]
    bench.step(0.115)
    assert bench.client.said() == []
    bench.step(0.12)
    assert bench.client.said() == [{"event": "ostop", "time": 120_000, "id": "x"}]
    bench.client.ask("ostart")
    assert len(bench.broker.requests) == 1 and bench.client.host.errors == 1, "the buffer is empty again"


def test_late_muted_silent_and_refused_signals(bench: Bench) -> None:
    bench.client.put(0.5)
    bench.client.ask("ostart", time=99_000)
    assert bench.broker.requests[-1][4] is None, "a late signal is sent at once"
    bench.client.put(2.0, -3.0)
    bench.client.ask("ostart", time=130_000)
    assert bench.broker.requests[-1][1].tolist() == [1.0, -1.0] and bench.broker.requests[-1][4] == 130_000_000
    bench.step(0.11, refused={1: "too loud", 2: "too long"})
    assert bench.refusals == [
        "a signal of 1.04e-05 s was not sent: too loud",
        "a signal of 2.08e-05 s was not sent: too long",
    ]
    assert bench.client.said() == []
    for mute, value in ((True, 0.5), (False, 0.0)):
        bench.client.ask("set", param="omute", value=mute)
        bench.client.put(*[value] * 960)
        bench.client.ask("ostart", time=200_000)
    bench.step(0.15)
    assert bench.client.said() == []
    bench.step(0.21)
    assert [e["event"] for e in bench.client.said()] == ["ostart", "ostop"] * 2 and len(bench.broker.requests) == 2
    bench.client.put(0.5)
    bench.client.ask("oclear")
    bench.client.ask("ostart")
    bench.client.ask("ostop")
    assert len(bench.broker.requests) == 2


def test_two_clients(bench: Bench) -> None:
    """Each has its own buffer and events; the stream goes to the one that asked last, and stops when it leaves."""
    other = Client(bench)
    bench.client.put(0.5)
    other.put(-0.25, 0.25)
    bench.client.ask("ostart")
    other.ask("ostart", id=2)
    assert [len(r[1]) for r in bench.broker.requests] == [1, 2]
    bench.step(0.11, sent={2: 0.1})
    assert bench.client.said() == [] and other.said() == [{"event": "ostart", "time": 110_000, "id": 2}]
    bench.client.ask("istart", port=1000)
    other.ask("istart", port=1001)
    assert bench.target.address == ("127.0.0.1", 1001)
    bench.client.host.close()
    assert bench.target.address == ("127.0.0.1", 1001)
    other.host.close()
    assert bench.target.address is None
    bench.step(0.5)
    assert other.said() == [], "its signal has ended, but it has left"


def test_the_buffer_has_an_end(bench: Bench) -> None:
    full = np.zeros(60_000)
    for _ in range(OUTPUT_BUFFER // len(full)):
        bench.client.put(*full)
    assert bench.client.host.errors == 0 and bench.client.host.buffered == OUTPUT_BUFFER
    bench.client.put(0.0)
    assert bench.client.host.errors == 1 and bench.client.host.buffered == OUTPUT_BUFFER


@pytest.mark.parametrize(
    "line",
    [
        b"{", b"[]", b"1", b'"a"', b'{"action": "fly"}', b'{"action": ["get"]}', b'{"action": "get"}', b'{"action": "get", "param": {}}',
        b'{"action": "get", "param": "omega"}', b'{"action": "set", "param": "igain"}', b'{"action": "istart"}', b"\xff\xfe",
        b'{"action": "istart", "port": 0}', b'{"action": "istart", "port": true}', b'{"action": "istart", "port": 80, "blocks": 0}',
        b'{"action": "istart", "port": 1e999}', b'{"action": "ostart", "time": -1}', b'{"action": "ostart", "time": NaN}',
        b'{"action": "odata"}', b'{"action": "odata", "data": 5}', b'{"action": "odata", "data": "AAAA"}', b"[" * 100_000, b"a" * LONGEST_LINE + b"b",
    ],
)  # fmt: skip
def test_invalid_commands_are_counted(bench: Bench, line: bytes) -> None:
    bench.client.host.receive(line + b"\n")
    assert bench.client.host.errors == 1 and bench.target.address is None and not bench.broker.requests
    assert bench.client.get("ochannels") == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(16),
        bytes(19),
        struct.pack(">QIHHff", 0, 0, 1, 2, 0.0, 0.0),
        struct.pack(">QIHHf", 0, 0, 1, 1, np.nan),
    ],
)
def test_invalid_packets_are_counted(bench: Bench, data: bytes) -> None:
    bench.client.ask("odata", data=base64.b64encode(data).decode())
    assert (bench.client.host.errors, bench.client.host.buffered) == (1, 0)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(
    st.sampled_from(["version", "ireset", "istart", "istop", "oclear", "odata", "ostart", "ostop", "get", "set", "x"]),
    st.dictionaries(st.sampled_from(["id", "port", "blocks", "data", "time", "param", "value"]), JUNK, max_size=4),
    st.booleans(),
)
def test_fields_of_any_type(action: str, fields: dict[str, Any], is_known: bool) -> None:
    bench = Bench()
    if is_known:
        bench.broker.block(0, 300)
        bench.step(0.1)
    bench.client.put(0.5)
    bench.client.ask(action, **fields)
    bench.step(0.2)
    assert bench.client.get("ochannels") == 1


def test_a_megabyte_of_noise(bench: Bench) -> None:
    bench.client.host.receive(random.Random(1).randbytes(1_000_000))
    bench.client.host.receive(b"\n")
    assert bench.client.host.errors > 1000 and bench.client.get("omute") is False


@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=8),
    st.integers(1, 8),
    st.integers(-500, 500),
)
def test_packets_have_the_samples_that_their_number_says(
    parts: list[tuple[int, int]], channels: int, origin: int
) -> None:
    """Blocks of any length with any gaps: packet n has the samples from origin + n size on, and all whole ones come."""
    cutter = PacketSplitter(channels, origin)
    at, there, found = -300, set[int](), []
    for gap, count in parts:
        at += gap
        samples = np.broadcast_to(np.arange(at, at + count, dtype=np.float64), (channels, count))
        found += list(cutter.cut(at, samples))
        there.update(range(at, at + count))
        at += count
    for number, first, samples in found:
        assert first == origin + number * cutter.size and number >= 0
        assert samples.shape == (channels, cutter.size) and (samples == np.arange(first, first + cutter.size)).all()
    whole = [n for n in range(400) if all(origin + n * cutter.size + k in there for k in range(cutter.size))]
    assert [n for n, _, _ in found] == whole
