"""The EvoLogics S2C modem: commands, notices, and two modems in the water. The grammar is that of the maker's parser."""

from __future__ import annotations

import math
import random
import re
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.modems import FakeBroker, devices, reception, sea
from tests.nursery import launch
from wavesim_devices.s2c.commands import S2cParser, SendCommand
from wavesim_devices.s2c.device import S2cDevice, S2cHost, S2cModel
from wavesim_devices.s2c.frames import S2cFrame
from wavesim_world.config import LoadedConfig

DATA = 1
MODEL = S2cModel(address=3, payload=128, bit_rate=1000.0, preamble=0.02, frequency=25e3, source_level=188.0)

INT, FLOAT = r"-?\d+", r"-?\d+\.\d+"
#: fields of each notice as role_at.erl of evins 3b5c6c0 reads them
GRAMMAR = {
    "USBLLONG": [FLOAT] * 2 + [INT] + [FLOAT] * 9 + [INT] * 3 + [FLOAT],
    "USBLANGLES": [FLOAT] * 2 + [INT] + [FLOAT] * 7 + [INT] * 2 + [FLOAT],
    "SENDSTART": [INT, r"\w+", INT, INT],
    "SENDEND": [INT, r"\w+", INT, INT],
    "RECVSTART": [],
    "RECVEND": [INT] * 4,
    "DELIVERED": [INT, INT],
    "DELIVEREDIM": [INT],
    "FAILED": [INT, INT],
    "FAILEDIM": [INT],
    "EXPIREDIMS": [INT],
    "CANCELEDIM": [INT],
    "CANCELEDIMS": [INT],
}
WITH_DATA = {
    "RECV": [INT] * 7 + [FLOAT],
    "RECVIM": [INT] * 3 + ["ack|noack|force"] + [INT] * 3 + [FLOAT],
    "RECVIMS": [INT] * 7 + [FLOAT],
    "RECVPBM": [INT] * 6 + [FLOAT],
}


def check_grammar(stream: bytes) -> list[str]:
    """Read a stream of notices as the maker's parser does, and return their names."""
    found = []
    while stream:
        name = re.match(rb"[A-Z]+", stream)
        assert name, stream
        word = name[0].decode()
        if word in WITH_DATA:
            fields = re.match(
                rb"(?:p\d+,)?" + b",".join(b"(?:" + f.encode() + b")" for f in WITH_DATA[word]) + b",",
                stream[len(word) + 1 :],
            )
            assert fields, stream
            size = re.match(rb"(?:p\d+,)?(\d+)", fields[0])
            assert size
            end = len(word) + 1 + fields.end() + int(size[1])
            assert stream[end : end + 2] == b"\r\n", stream
            stream = stream[end + 2 :]
        else:
            line, _, stream = stream.partition(b"\r\n")
            fields_of = line.decode().split(",")[1:]
            assert len(fields_of) == len(GRAMMAR[word]), line
            assert all(re.fullmatch(f, v) for f, v in zip(GRAMMAR[word], fields_of, strict=True)), line
        found.append(word)
    return found


def modem(**changes: Any) -> tuple[S2cDevice, FakeBroker, S2cHost, bytearray]:
    broker, out = FakeBroker(), bytearray()
    device = S2cDevice(broker, MODEL, "ahrs")  # type: ignore[arg-type]
    device.step(broker.step(1.0))
    return device, broker, device.connect("net", out.extend), out


def take(out: bytearray) -> bytes:
    taken = bytes(out)
    out.clear()
    return taken


def test_start_sequence_of_dune() -> None:
    _, _, host, out = modem()
    for command, answer in (
        (b"ATZ1\nATZ3\r\nATZ4\n", b"OK\r\nOK\r\nOK\r\n"),
        (b"AT?MODE\n", b"NET\r\n"),
        (b"ATI0\n", b"1.8\r\n"),
        (b"ATI1\n", b"phy: 0.9, mac: v1.3\r\n"),
        (b"AT@CTRL\n", b"OK\r\n"),
        (b"AT!AL3\nAT!L2\nAT!G0\nAT!RC3\nAT!RT2000\nAT!RI1\nAT!ZI0\nAT!AM14\n", b"OK\r\n" * 8),
        (b"AT@ZU1\nAT!RP1\nAT!C2\nAT@ZX1\n", b"OK\r\n" * 4),
        (b"AT?CLOCK\n", b"1000000\r\n"),
        (b"AT?T\n", b"0\r\n"),
        (b"AT?CA\nAT!CA1480\nAT?CA\n", b"1500\r\nOK\r\n1480\r\n"),
        (b"ATA\n", b"INITIATION LISTEN\r\n"),
        (b"AT?P\n", b"       0        0\r\n\r\n"),
    ):
        host.receive(command)
        assert take(out) == answer, command


def test_what_cannot_be_done_is_refused() -> None:
    device, broker, host, out = modem()
    bad = [
        b"AT!AL4",
        b"AT!L9",
        b"AT?NOISE",
        b"hello",
        b"AT*SEND,x",
        b"AT*SENDIM,1,300,ack,x",
        b"AT*SENDIM,65,4,ack," + b"x" * 65,
    ]
    bad += [
        b"AT*SENDIM,1,3,ack,x",
        b"AT*SENDIM,1,255,ack,x",
        b"AT*SENDIM,p255,1,4,ack,x",
        b"AT*SENDIM,2,4,ack,xyz",
        b"A" * 300,
    ]
    for command in bad:
        host.receive(command + b"\n")
        assert take(out).startswith(b"ERROR "), command
    assert device.errors == len(bad) and broker.requests == []
    host.receive(b"AT*SENDIM,1,4,ack,x\nAT*SENDIM,1,4,ack,x\nAT*SEND,1,4,x\n")
    assert take(out) == b"OK\r\nBUSY DELIVERING MESSAGE\r\nBUSY DELIVERING MESSAGE\r\n"


@given(st.binary(max_size=64), st.integers(1, 9))
def test_data_may_contain_anything(data: bytes, size: int) -> None:
    parser, found = S2cParser(), []
    stream = b"AT*SENDIM,p7,%d,4,noack,%b\r\nAT*SEND,%d,4,%b\nAT?T\n" % (len(data), data, len(data), data)
    for k in range(0, len(stream), size):
        found += parser.feed(stream[k : k + size])
    assert found == [SendCommand("IM", 7, 4, "noack", data), SendCommand("", None, 4, "", data), "AT?T"]


@given(st.binary(max_size=300))
def test_noise_does_no_harm(data: bytes) -> None:
    _, _, host, out = modem()
    host.receive(data + b"\n")
    take(out)
    host.receive(b"AT?T\n")
    assert take(out) == b"0\r\n"


def test_a_megabyte_of_noise() -> None:
    device, _, host, out = modem()
    host.receive(random.Random(1).randbytes(1_000_000) + b"\n")
    take(out)
    host.receive(b"AT?MODE\n")
    assert take(out) == b"NET\r\n" and device.errors > 1000


def test_an_instant_message_with_acknowledgement() -> None:
    device, broker, host, out = modem()
    host.receive(b"AT!RI1\nAT@ZX1\nAT!L1\n")
    take(out)
    host.receive(b"AT*SENDIM,p2,3,4,ack,a\nb\n")
    assert broker.requests == [("send", b"\x01\x01\x02a\nb", 4, 182.0, None)]
    device.step(broker.step(2.0, sent={1: 0.1}))
    device.step(broker.step(2.2))
    assert take(out) == b"OK\r\nSENDSTART,4,im,100000,0\r\nSENDEND,4,im,2100000,100000\r\n"
    device.step(broker.step(8.3))
    assert len(broker.requests) == 2, "repeated once"
    device.step(broker.step(8.4, sent={2: 0.1}))
    device.step(broker.step(8.6))
    take(out)
    frame = b"\x05\x01\xff" + (300_000).to_bytes(4, "big")
    answer = reception(DATA, 4, 3, frame, reception_ns=9_100_000_000, frequency=25_010.0)
    device.step(broker.step(9.2, reception(DATA, 9, 3, frame), answer))
    lines = take(out)
    assert lines.endswith(b"DELIVEREDIM,4\r\n") and lines.count(b"DELIVEREDIM") == 1
    check_grammar(lines)
    host.receive(b"AT?T\n")
    assert take(out) == b"0\r\n", "after a repetition, the answered emission is unknown"
    host.receive(b"AT*SENDIM,1,4,ack,x\n")
    device.step(broker.step(10.0, sent={3: 0.1}))
    device.step(broker.step(10.2))
    frame = b"\x05\x02" + frame[2:]
    device.step(broker.step(11.0, reception(DATA, 4, 3, frame, reception_ns=10_700_000_000)))
    take(out)
    host.receive(b"AT?T\n")
    assert take(out) == b"200000\r\n"


def test_messages_that_come() -> None:
    device, broker, host, out = modem()
    other = bytearray()
    device.connect("net", other.extend)
    host.receive(b"AT*SENDPBM,3,4,pig\n")
    device.step(broker.step(1.9))
    frame = S2cFrame.unpack(b"\x01\x07\xffhe\r\nlo")
    assert frame is not None
    device.step(broker.step(2.0, reception(DATA, 4, 3, frame.pack(), reception_ns=1_900_000_000, frequency=25_050.0)))
    assert take(out) == b"OK\r\nRECVIM,6,4,3,ack,92000,-50,180,3.000,he\r\nlo\r\n"
    turn = 400_000  # 0.1 s that have passed, two and a half steps and 0.05 s
    assert broker.requests == [("send", b"\x05\x07\xff" + turn.to_bytes(4, "big") + b"pig", 4, None, 2_300_000_000)]
    device.step(broker.step(2.4, reception(DATA, 4, 3, frame.pack()), sent={1: 0.1}))
    assert take(out) == b"", "a repetition is acknowledged, but not delivered again"
    for payload, to in ((b"\x00\x08\x05x", 0), (b"\x03\x09\xffy", 3), (b"\x01\x0a\xffz", 9)):
        device.step(broker.step(2.5, reception(DATA, 4, to, payload)))
    assert check_grammar(take(other)) == ["RECVIM", "RECVIM", "RECVIMS"], "without the message to another modem"
    assert take(out).startswith(b"RECVIM,p5,1,4,255,noack,")


def test_a_burst_in_fragments() -> None:
    sender, broker, host, out = modem()
    receiver, far, _, heard = modem()
    data = random.Random(2).randbytes(1000)
    host.receive(b"AT*SEND,1000,4,%b\n" % data)
    now = 2.0
    while broker.requests and len(broker.requests) < 30 and b"DELIVERED" not in out:
        request = broker.requests[-1]
        sender.step(broker.step(now, sent={len(broker.requests): 0.5}))
        sender.step(broker.step(now + 1.0))
        receiver.step(far.step(now + 1.0, reception(DATA, 4, 3, request[1])))
        number = len(far.requests)
        receiver.step(far.step(now + 1.1, sent={number: 0.1}))
        receiver.step(far.step(now + 1.3))
        sender.step(broker.step(now + 1.5, reception(DATA, 4, 3, far.requests[-1][1])))
        now += 2.0
    assert take(out) == b"OK\r\nDELIVERED,1,4\r\n" and len(broker.requests) == 9, "123 bytes each"
    assert check_grammar(bytes(heard)) == ["RECV"] and heard.endswith(data + b"\r\n")


def test_nothing_is_acknowledged() -> None:
    device, broker, host, out = modem()
    host.receive(b"AT!RC1\nAT*SEND,1,4,x\n")
    sent: set[int] = set()
    for k in range(30):
        last = len(broker.requests)
        device.step(broker.step(2.0 + k, sent={} if last in sent else {last: 0.5}))
        sent.add(last)
    assert take(out) == b"OK\r\nOK\r\nFAILED,1,4\r\n" and len(broker.requests) == 2


def test_a_message_at_a_time() -> None:
    _, broker, host, out = modem()
    host.receive(b"AT*SENDIMS,1,4,500000,x\n")
    assert take(out) == b"EXPIREDIMS,4\r\nOK\r\n" and broker.requests == []
    host.receive(b"AT*SENDIMS,1,255,3000000,x\n")
    assert broker.requests == [("send", b"\x03\x02\xffx", 0, None, 3_000_000_000)]


# ------------------------------------------------------------------ in the water


class Host:
    """A host program of a modem."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10.0)
        self.socket.settimeout(0.2)
        self.log = b""

    def ask(self, command: bytes, pattern: bytes, timeout: float = 20.0) -> re.Match[bytes]:
        """Send a command, and wait for what matches."""
        start, limit = len(self.log), time.monotonic() + timeout
        if command:
            self.socket.sendall(command + b"\n")
        while time.monotonic() < limit:
            found = re.search(pattern, self.log[start:], re.DOTALL)
            if found:
                return found
            try:
                self.log += self.socket.recv(65536)
            except TimeoutError:
                continue
        raise AssertionError(f"no {pattern!r} in {self.log[start:]!r}")


HEAD = (
    "<head>"
    + "".join(
        f'<hydrophone position="{x} {y} {z} m"/>' for x, y, z in ((0, 0, 0), (0.1, 0, 0), (0, 0.1, 0), (0, 0, 0.1))
    )
    + "</head>"
)


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
@pytest.mark.timeout(200)
def test_two_modems_in_the_water(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    compass = '<sensors><ahrs rate="10 Hz" noise="0"/></sensors>'
    head = {"heading": 30, "payload": 128, "inner": HEAD, "sensors": compass}
    path = config(sea(head, {"x": 300, "y": 200, "payload": 128})).path
    server = serve(path, "--speed", "2")
    emulator = launch("emulate", "ahrs", path, "-s", server.name)
    common = [
        "--bit-rate",
        "1000",
        "--preamble",
        "0.02",
        "--net",
        "tcp:0",
        "--lockstep",
        "20 ms",
    ]  # also on a slow machine
    commands = [["s2c", "a", "--address", "3", "--usbl", *common], ["s2c", "b", "--address", "4", *common]]
    with devices(server, *commands) as (a, b):
        server.send("start")
        here, there = Host(a["port"]), Host(b["port"])
        here.ask(b"AT!RI3", rb"OK\r\n")
        distance = math.hypot(300.0, 200.0)
        for k in range(10):
            here.ask(b"AT*SENDIM,64,4,ack," + bytes([k]) * 64, rb"DELIVEREDIM,4\r\n")
            travel = int(here.ask(b"AT?T", rb"(?:^|\n)(\d+)\r\n")[1])
            assert travel * 1e-6 * 1500.0 == pytest.approx(distance, abs=1.5), "within 1 ms"
        more = 0
        while b"USBLANGLES" not in here.log:  # the compass may need time for its first value
            here.ask(b"AT*SENDIM,1,4,ack,x", rb"DELIVEREDIM,4\r\n")
            here.ask(b"AT?MODE", b"NET")
            more += 1
        fix = re.findall(rb"DELIVEREDIM,4\r\nUSBLLONG,([^\r]*)\r\nUSBLANGLES", here.log)[-1]
        values = [float(v) for v in fix.split(b",")]
        assert values[2] == 4.0 and values[6:9] == pytest.approx([200.0, 300.0, 0.0], abs=10.0), "E, N, U"
        assert values[11] == pytest.approx(math.radians(30.0), abs=0.05), "heading"
        data = random.Random(3).randbytes(1000)
        here.ask(b"AT*SEND,1000,4," + data, rb"DELIVERED,1,4\r\n", 60.0)
        there.ask(b"AT?MODE", rb"NET\r\n$")
        names = check_grammar(there.log.removesuffix(b"NET\r\n"))
        assert names == ["RECVIM"] * (10 + more) + ["RECV"] and data in there.log
    emulator.terminate()
    emulator.wait(15)
