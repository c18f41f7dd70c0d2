"""Sound through a real server: packets between brokers, many simultaneous pings, and the modem on a serial port and a
socket.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import serial

from tests.conftest import Server
from tests.nursery import launch
from wavesim_sdk.broker import Broker
from wavesim_sdk.wire.items import Reception
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("acoustics")]

NODE = """<vehicle name="{name}" model="lauv" position="{x} 0 20 m" client="optional"><transducer threshold="80 dB" recharge="0 s"
turn_around="50 ms"><clock offset="{offset}"/><modem address="{address}" bit_rate="1000" preamble="20 ms"/></transducer></vehicle>"""


def fleet(distance: float = 300.0, offset: str = "0 s") -> str:
    nodes = NODE.format(name="a", x=0, address=3, offset="0 s") + NODE.format(
        name="b", x=distance, address=4, offset=offset
    )
    return (
        '<time step="4 ms"/><network acoustic_rate="10 Hz"/><world><bed depth="200 m"/></world><models/>'
        f'<fleet>{nodes}<vehicle name="quiet" model="lauv" position="0 50 20 m" client="optional"/></fleet>'
    )


def exchange(a: Broker, b: Broker, seconds: float) -> tuple[list[Reception], list[Reception], list[str]]:
    """Both brokers' receptions, and what was refused to the first."""
    at_a: list[Reception] = []
    at_b: list[Reception] = []
    refused: list[str] = []
    limit = time.monotonic() + 20.0
    until = None
    while time.monotonic() < limit:
        for step in a.poll(0.01):
            at_a += step.receptions
            refused += [r.text for r in step.refused]
            until = step.time + seconds if until is None else until
            if step.time > until:
                return at_a, at_b, refused
        for step in b.poll(0.01):
            at_b += step.receptions
    raise AssertionError("the simulation stands still")


def test_packets_and_ranges_between_brokers(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    server = serve(config(fleet(offset="1 s")).path, "--speed", "5")
    address = ("127.0.0.1", server.port)
    calls: list[int] = []
    with Broker("a", address) as a, Broker("b", address) as b:
        b.on_reception(lambda r: calls.append(r.id))
        server.send("start")
        a.send(b"\x00hello\x00", to=4)
        a.send(bytes(65))
        a.range_to(4, at=5_000_000_000)
        a.ping(25e3, 300.0)
        at_a, at_b, refused = exchange(a, b, 8.0)
    data = next(r for r in at_b if r.kind == 1)
    assert (data.payload, data.from_address, data.to_address) == (b"\x00hello\x00", 3, 4)
    assert data.reception_ns > 1_000_000_000, "by the receiver's clock, which is a second ahead"
    assert data.snr == pytest.approx(data.level - 60.0)
    (reply,) = [r for r in at_a if r.kind == 3]
    assert reply.range == pytest.approx(300.0, abs=0.1) and reply.from_address == 4
    assert reply.azimuth is None and reply.payload is None
    assert calls == [r.id for r in at_b]
    assert any("the maximum for this modem is 64" in text for text in refused) and any(
        "level 300 dB" in text for text in refused
    )


def test_a_storm_of_pings_is_stopped_and_named(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server]
) -> None:
    server = serve(config(fleet()).path, "--speed", "1")
    address = ("127.0.0.1", server.port)
    with Broker("a", address) as a, Broker("b", address) as b:
        for _ in range(400):
            a.ping(25e3)
        server.send("start")
        b.send(b"fine", to=3)
        at_a, _, refused = exchange(a, b, 2.0)
        assert [r.payload for r in at_a if r.kind == 1] == [b"fine"], "the other client is not touched"
    storm = [t for t in refused if "more than 10 acoustic requests" in t]
    assert 270 < len(storm) <= 300, "a hundred at once, then ten a second"
    status = server.status()
    assert status["acoustic_refused"] == {"a": len(storm)}


def lines(read: Callable[[], bytes], pattern: bytes, timeout: float = 20.0) -> list[bytes]:
    """Whole lines until one matches."""
    limit, text = time.monotonic() + timeout, b""
    while time.monotonic() < limit:
        text += read()
        found = text.split(b"\r\n")
        if any(re.fullmatch(pattern, line) for line in found[:-1]):
            return found[:-1]
    raise AssertionError(f"no {pattern!r} in {text!r}")


def test_the_nanomodem_on_a_serial_port_and_a_socket(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    server = serve(config(fleet()).path, "--speed", "4")
    link = tmp_path / "modem"
    common = ["--port", str(server.port)]
    devices = [
        launch("device", "nanomodem", *args, *common, "--pilot", stdout=subprocess.PIPE)
        for args in (["a", "--address", "3", "--link", str(link)], ["b", "--address", "4", "--tcp", "0"])
    ]
    try:
        said = [d.stdout.readline() for d in devices if d.stdout is not None]
        assert "nano-modem 003 of 'a'" in said[0]
        host, _, port = said[1].rpartition(" at ")[2].strip().rpartition(":")
        with serial.Serial(str(link), 9600, timeout=0.1) as uart, socket.create_connection((host, int(port))) as tcp:
            tcp.settimeout(0.1)

            def from_tcp() -> bytes:
                try:
                    return tcp.recv(4096)
                except TimeoutError:
                    return b""

            server.send("start")
            server.wait(lambda s: int(str(s["tick"])) > 50)
            uart.write(b"noise$?")
            assert lines(lambda: uart.read(100), rb"#A003V\d{5}")[0].startswith(b"#A003")
            uart.write(b"$P")
            uart.write(b"004")
            got = lines(lambda: uart.read(100), rb"#R004T\d{5}")
            assert got[0] == b"$P004"
            metres = int(got[1][-5:]) * 31.25e-6 * 1500.0
            assert metres == pytest.approx(300.0, abs=0.1)
            uart.write(b"$B05he$lo")
            assert lines(from_tcp, rb"#B.*") == [b"#B00305he$lo"]
            tcp.sendall(b"$U00304abcd")
            assert lines(lambda: uart.read(100), rb"#U.*")[-1] == b"#U04abcd"
            assert lines(from_tcp, rb"\$U00304") == [b"$U00304"]
            uart.write(b"$P009$X$Q12")
            got = lines(lambda: uart.read(100), rb"#TO")
            assert got == [b"$P009", b"E", b"E", b"#TO"]
    finally:
        for d in devices:
            d.terminate()
            d.wait(10)
            if d.stdout is not None:
                d.stdout.close()
