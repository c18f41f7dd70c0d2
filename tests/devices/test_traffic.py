"""Traffic of devices: records, replays to a driver, the printout, faults of the line, and devices of a user's own."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.gauge import Gauge
from wavesim_devices.cli_traffic import where
from wavesim_devices.line_faults import FaultyLine, LineFault, parse_fault
from wavesim_devices.own_device import OwnDevice
from wavesim_devices.replay import Replay
from wavesim_devices.serve import DeviceType, ServedDevice, TrafficOptions
from wavesim_devices.traffic import SENT, Recording, TrafficEvent, TrafficReporter, read_recording
from wavesim_sdk.broker import Step
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.wire.state import State

GAUGE = Path(__file__).with_name("gauge.py")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def at(time: float) -> Step:
    return Step(dataclasses.replace(State(), time_ns=round(time * 1e9)))


class Bench:
    """A gauge on a TCP port, without a server."""

    def __init__(self, record: Path | None = None, *faults: str, interval: float = 0.0) -> None:
        self.said: list[str] = []
        self.traffic = TrafficReporter(record, self.said.append)
        kind = DeviceType("gauge", lambda b, send, p: Gauge(b, send, p, interval=interval))
        options = TrafficOptions(record, faults=tuple(map(parse_fault, faults)), seed=1)
        self.served = ServedDevice(kind, {"port": where("tcp:0")}, self.traffic, options, self.said.append)

    async def open(self) -> Streams:
        port = self.served.ports["port"]
        await port.open()
        self.traffic.begin("gauge", "a", {"port": port.where})
        self.served.create(None, {})  # type: ignore[arg-type]  # a gauge uses no broker
        return await self.connect()

    async def connect(self) -> Streams:
        before = len(self.served.hosts)
        streams = await asyncio.open_connection("127.0.0.1", int(self.served.ports["port"].path.rpartition(":")[2]))
        await until(lambda: len(self.served.hosts) > before or self.served._was_disconnected)
        return streams

    def step(self, time: float) -> None:
        self.traffic.time = time
        self.served.step(at(time))

    async def close(self) -> None:
        self.traffic.close()
        for port in self.served.ports.values():
            await port.close()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():
            await asyncio.sleep(0.001)


async def within(wait: Awaitable[Any]) -> Any:
    async with asyncio.timeout(10.0):
        return await wait


async def recorded(path: Path) -> Bench:
    """A recording: the driver asks for a value at 1 s and sends a wrong command at 1.5 s; a value comes each second."""
    bench = Bench(path, interval=1.0)
    reader, writer = await bench.open()
    for time in (0.0, 1.0, 2.0):
        bench.step(time)
        if time == 1.0:
            writer.write(b"P\r")
            await until(lambda: bench.served.counts["received"] == 2)
            bench.step(1.5)
            writer.write(b"wrong\xff\n")
            await until(lambda: bench.served.counts["received"] == 9)
    value = b"0.00 dbar\r\n"
    assert await within(reader.readexactly(47)) == value * 3 + b"?\r\n" + value
    writer.close()
    await until(lambda: not bench.served.hosts)
    await bench.close()
    return bench


async def test_a_recording_has_both_directions_with_simulation_times(tmp_path: Path) -> None:
    path = tmp_path / "gauge.jsonl"
    bench = await recorded(path)
    head, *lines = map(json.loads, path.read_text().splitlines())
    assert head["device"] == "gauge" and head["body"] == "a" and head["ports"]["port"].startswith("tcp:")
    value = "0.00 dbar\r\n"
    assert [(x["time"], x["what"], x.get("text", x.get("hex"))) for x in lines] == [
        (0.0, "opened", None),
        (0.0, "sent", value),
        (1.0, "sent", value),
        (1.0, "received", "P\r"),
        (1.0, "sent", value),
        (1.5, "received", b"wrong\xff\n".hex()),
        (1.5, "sent", "?\r\n"),
        (2.0, "sent", value),
        (2.0, "closed", None),
    ]
    assert bench.said[3] == r"     1.000  port 1 received  P\r"
    assert bench.said[5] == "     1.500  port 1 received  77 72 6f 6e 67 ff 0a"
    assert [str(e) for e in read_recording(path).events] == bench.said[:9]


@pytest.mark.parametrize(
    ("commands", "difference"),
    [
        ((b"P\r", b"wrong\xff\n"), ""),
        ((b"P\r", b"wrung\xff\n"), "byte 5 of 9 differs: recorded 50 0d 77 72 6f"),
        ((b"P\r",), "7 of 9 B are missing: 77 72 6f"),
        ((b"P\r", b"wrong\xff\nQ\r"), r"2 B more than recorded: Q\r"),
    ],
)
async def test_a_replay_answers_a_driver_and_compares_its_commands(
    tmp_path: Path, commands: tuple[bytes, ...], difference: str
) -> None:
    path = tmp_path / "gauge.jsonl"
    await recorded(path)
    said: list[str] = []
    replay = Replay(
        read_recording(path), {"port": where("tcp:0")}, 0.0, 0.2 if len(commands) == 1 else 10.0, said.append
    )
    running = asyncio.create_task(replay.run())
    await until(lambda: said)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(said[0].rpartition(":")[2]))
    assert await within(reader.readexactly(22)) == b"0.00 dbar\r\n" * 2
    writer.write(commands[0])
    assert await within(reader.readexactly(11)) == b"0.00 dbar\r\n", "the answer comes after its command"
    for command in commands[1:]:
        writer.write(command)
    assert await within(reader.read(3)) == b"?\r\n"
    found = await within(running)
    assert found.keys() == {("port", 1)} and found["port", 1].startswith(difference)
    assert bool(found["port", 1]) == bool(difference)
    writer.close()


async def test_a_replay_keeps_the_recorded_times(tmp_path: Path) -> None:
    path = tmp_path / "gauge.jsonl"
    await recorded(path)
    loop = asyncio.get_running_loop()
    said: list[str] = []
    running = asyncio.create_task(Replay(read_recording(path), {"port": where("tcp:0")}, 4.0, 0.0, said.append).run())
    await until(lambda: said)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(said[0].rpartition(":")[2]))
    await within(reader.readexactly(11))
    begin = loop.time()
    await within(reader.readexactly(36))  # until 2 s
    assert loop.time() - begin > 0.45
    writer.close()
    await within(running)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot|not a recording"),
        ("{}\n", "1: not a recording"),
        ('{"format": "wavesim device traffic 1", "device": "a", "ports": {"b": "tcp:1"}}\nx\n{}\n', "2: not an event"),
        (
            '{"format": "wavesim device traffic 1", "device": "a", "ports": {"b": "tcp:1"}}\n'
            '{"time": 0, "port": "c", "host": 1, "what": "sent"}\n\n',
            "2: unknown port 'c'",
        ),
    ],
)
def test_an_invalid_recording_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(WaveSimError, match=message):
        read_recording(path)


@given(st.binary(max_size=300), st.sampled_from(["sent", "received"]))
def test_events_pass_through_the_file(data: bytes, what: str) -> None:
    event = TrafficEvent(1.25, "port", 2, what, data)
    assert TrafficEvent.from_json(event.to_json()) == event


# -- faults ----------------------------------------------------------------------------------------------------------


def carry(fault: str, data: bytes = bytes(range(256)) * 40, seed: str = "1") -> bytes:
    """What arrives of the data, sent byte by byte."""
    arrived = bytearray()
    line = FaultyLine(arrived.extend, [parse_fault(fault)], seed, lambda: 0.0)
    for k in range(0, len(data), 100):
        line.put(data[k : k + 100])
    return bytes(arrived)


def test_bytes_are_lost_garbled_and_doubled_with_their_probability() -> None:
    data = bytes(range(256)) * 40
    expected = len(data) * 0.1
    assert abs(len(data) - len(carry("lost 0.1")) - expected) < 0.15 * expected
    assert abs(len(carry("doubled 0.1")) - len(data) - expected) < 0.15 * expected
    garbled = carry("garbled 0.1")
    wrong = [(a ^ b).bit_count() for a, b in zip(data, garbled, strict=True) if a != b]
    assert set(wrong) == {1} and abs(len(wrong) - expected) < 0.15 * expected
    assert carry("garbled 0.1") == garbled != carry("garbled 0.1", seed="2"), "the seed decides"


def test_bytes_are_late_and_stalled_in_their_order() -> None:
    arrived: list[Any] = []
    now = 0.0
    line = FaultyLine(
        arrived.append, [parse_fault("late 0.5s for=1s"), parse_fault("stalled at=2s for=1s")], "", lambda: now
    )
    for now, data in ((0.0, b"a"), (0.4, b"b"), (0.5, b""), (1.2, b"c"), (2.5, b"d"), (3.0, b"e")):
        line.put(data)
        arrived.append(now)
    assert arrived == [0.0, 0.4, b"a", 0.5, b"b", b"", b"c", 1.2, 2.5, b"d", b"e", 3.0]


def test_a_fault_repeats() -> None:
    fault = parse_fault("silent at=10s for=2s every=1min")
    assert fault == LineFault("silent", 0.0, 10.0, 2.0, 60.0)
    assert [t for t in range(140) if fault.is_active(t)] == [10, 11, 70, 71, 130, 131]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lots 0.1", "unknown fault 'lots'; did you mean 'lost'"),
        ("", "unknown fault ''"),
        ("lost", "needs a probability per byte"),
        ("lost 2", "needs a probability per byte"),
        ("garbled x", "is not a number"),
        ("late", "needs a delay, such as"),
        ("late 5", "has no unit"),
        ("silent 5", "does not take an amount"),
        ("silent at=5", "has no unit"),
        ("silent until=5s", "unknown key 'until'"),
        ("silent every=5s", "'every' needs 'for'"),
        ("silent for=9s every=5s", "'every' must be longer"),
        ("restarted", "such as 'restarted for=3s'"),
    ],
)
def test_an_invalid_fault_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_fault(text)


async def test_a_silent_device_hears_and_says_nothing() -> None:
    bench = Bench(None, "silent at=1s for=1s")
    reader, writer = await bench.open()
    for time in (0.0, 1.0, 2.0):
        bench.step(time)
        received = bench.served.counts["received"]
        writer.write(b"%d\r" % time)
        await until(lambda: bench.served.counts["received"] == received + 2)  # noqa: B023
    assert bench.served.device.errors == 2  # type: ignore[union-attr]
    assert await within(reader.readexactly(6)) == b"?\r\n?\r\n"
    writer.close()
    await bench.close()


@pytest.mark.parametrize(("fault", "errors"), [("disconnected", 1), ("restarted", 0)])
async def test_a_device_disconnects_and_restarts(fault: str, errors: int) -> None:
    """A restarted device has lost its state, a disconnected one has not. Both serve new hosts afterwards."""
    bench = Bench(None, f"{fault} at=1s for=1s")
    reader, writer = await bench.open()
    bench.step(0.0)
    writer.write(b"x\r")
    assert await within(reader.readexactly(3)) == b"?\r\n"
    bench.step(1.0)
    assert await within(reader.read()) == b"", "the connection is closed"
    await until(lambda: not bench.served.hosts)
    refused, closing = await bench.connect()
    assert await within(refused.read()) == b"", "nor is a new one served"
    await until(lambda: not bench.served.hosts)
    bench.step(2.0)
    assert bench.served.device.errors == errors  # type: ignore[union-attr]
    again, writing = await bench.connect()
    writing.write(b"P\r")
    assert await within(again.readexactly(11)) == b"0.00 dbar\r\n"
    for w in (writer, closing, writing):
        w.close()
    await bench.close()


# -- a device of a user's own ----------------------------------------------------------------------------------------


async def test_a_defect_of_a_device_is_reported_and_the_device_goes_on() -> None:
    bench = Bench()
    reader, writer = await bench.open()
    writer.write(b"FAIL\rP\r")
    await until(lambda: bench.served.counts["failures"])
    writer.write(b"P\r")
    assert await within(reader.readexactly(11)) == b"0.00 dbar\r\n"
    (said,) = [s for s in bench.said if "failed" in s]
    assert (
        said.startswith("gauge failed while processing 7 bytes from host 1 of 'port': gauge.py:28: ")
        and "a defect" in said
    )
    assert bench.served.summary.endswith("1 device failures")
    writer.close()
    await bench.close()


def test_a_device_of_ones_own_has_typed_options() -> None:
    own = OwnDevice(GAUGE)
    assert (own.title, own.types, own.ports) == ("gauge", ("pressure",), {"port": "pty:"})
    gauge = own.device_type(["interval=2", "unit=psi"]).create(None, print, {})  # type: ignore[arg-type]
    assert (gauge.interval, gauge.unit) == (2.0, "psi")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("intervall=2", "unknown option 'intervall=2'; did you mean 'interval'"),
        ("interval=fast", "option interval: invalid value 'fast', expected float"),
        ("interval", "write NAME=VALUE"),
    ],
)
def test_an_invalid_option_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OwnDevice(GAUGE).device_type([text])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("x = 1", "expected one class with the methods .* found none"),
        ("x = (", "line 1: SyntaxError"),
        ("\nimport nothing_like_it", r"own.py:2: ModuleNotFoundError"),
        (
            "class A:\n    ports = 5\n    def step(self, s): ...\n    def receive(self, d): ...",
            "A.ports: expected dict",
        ),
    ],
)
def test_an_invalid_file_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        OwnDevice(path)


async def test_the_replay_on_a_terminal_ends_when_the_driver_has_read_everything(tmp_path: Path) -> None:
    """A terminal that closes loses what its client has not read."""
    said: list[str] = []
    recording = Recording("gauge", {"port": "pty:line"}, (TrafficEvent(0.0, "port", 1, SENT, b"last words"),))
    replay = Replay(recording, {"port": where(f"pty:{tmp_path / 'line'}")}, 0.0, 60.0, said.append)
    client = os.open(replay.ports["port"].path, os.O_RDWR | os.O_NOCTTY)
    running = asyncio.create_task(replay.run())
    try:
        await until(lambda: said)
        await asyncio.sleep(0)
        assert not running.done()
        assert os.read(client, 100) == b"last words"
        await within(running)
    finally:
        os.close(client)
