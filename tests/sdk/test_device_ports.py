"""Ports of devices: a stream of its own for each host, commands cut out of bytes, and HTTP. Sockets are real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import h11
import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from wavesim_devices.http import NOT_FOUND, HttpAnswer, HttpConnection
from wavesim_devices.ports import MAX_CLIENTS, Accept, Bytes, Connection, PtyPort, TcpPort, UdpServerPort
from wavesim_devices.serve import DeviceType, ServedDevice
from wavesim_devices.splitters import JsonSplitter
from wavesim_sdk.broker import Step


class Echo:
    """Answers each host with its own bytes, and counts hosts that left."""

    def __init__(self, left: list[str]) -> None:
        self.left = left

    def connect(self, port: str, send: Bytes) -> Connection:
        left = self.left

        class Peer:
            def receive(self, data: bytes) -> None:
                send(port.encode() + b":" + data)

            def close(self) -> None:
                left.append(port)

        return Peer()

    def step(self, step: Step) -> None: ...


async def served(*names: str, left: list[str] | None = None) -> ServedDevice:
    def open_port(accept: Accept) -> TcpPort:
        return TcpPort(accept, 0)

    device = ServedDevice(
        DeviceType("an echo", lambda *_: Echo([] if left is None else left)), dict.fromkeys(names, open_port)
    )
    for port in device.ports.values():
        await port.open()
    return device


async def connect(device: ServedDevice, port: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, number = device.ports[port].path.partition(":")
    return await asyncio.open_connection(host, int(number))


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():
            await asyncio.sleep(0.001)


async def test_each_host_gets_its_own_answers() -> None:
    left: list[str] = []
    device = await served("a", "b", left=left)
    early, early_writer = await connect(device, "a")  # before the device has joined a body
    await until(lambda: len(device.hosts) == 1)
    device.create(None, {})  # type: ignore[arg-type]  # an echo uses no broker
    late, late_writer = await connect(device, "a")
    other, other_writer = await connect(device, "b")
    for writer, text in ((early_writer, b"1"), (late_writer, b"2"), (other_writer, b"3")):
        writer.write(text)
    async with asyncio.timeout(10.0):
        assert [await r.read(10) for r in (early, late, other)] == [b"a:1", b"a:2", b"b:3"]
    device.send(b"all")
    async with asyncio.timeout(10.0):
        assert [await r.read(10) for r in (early, late, other)] == [b"all"] * 3
    late_writer.close()
    await until(lambda: left)
    assert left == ["a"] and len(device.hosts) == 2
    for port in device.ports.values():
        await port.close()
    await until(lambda: not device.hosts)


async def test_a_port_has_a_limit_of_hosts() -> None:
    device = await served("a")
    hosts = [await connect(device, "a") for _ in range(MAX_CLIENTS + 1)]
    async with asyncio.timeout(10.0):
        assert await hosts[-1][0].read(1) == b""
    assert len(device.hosts) == MAX_CLIENTS
    for port in device.ports.values():
        await port.close()
    await until(lambda: not device.hosts)


async def test_a_host_that_never_reads_harms_no_other() -> None:
    device = await served("a")
    device.create(None, {})  # type: ignore[arg-type]
    deaf, _deaf_writer = await connect(device, "a")
    reader, writer = await connect(device, "a")
    await until(lambda: len(device.hosts) == 2)
    port = device.ports["a"]
    async with asyncio.timeout(30.0):
        while not port.dropped:
            device.send(bytes(60000))
            await reader.readexactly(60000)
        writer.write(b"?")
        assert await reader.readexactly(3) == b"a:?"
    assert deaf.at_eof() is False
    await port.close()


async def test_a_terminal_and_a_udp_port_are_one_host() -> None:
    device = ServedDevice(
        DeviceType("an echo", lambda *_: Echo([])),
        {"pty": lambda accept: PtyPort(accept), "udp": lambda accept: UdpServerPort(accept, 0)},
    )
    assert [h.port for h in device.hosts] == list(device.ports)
    for port in device.ports.values():
        await port.open()
        await port.close()


# ------------------------------------------------------------------ commands cut out of bytes


@given(
    st.lists(st.dictionaries(st.text(max_size=8), st.text(max_size=8) | st.integers(), max_size=4), max_size=5),
    st.integers(1, 9),
    st.sampled_from([b"", b"\r\n", b"\n", b" ", b"}"]),
)
def test_json_objects_are_found_wherever_the_bytes_are_cut(objects: list[Any], size: int, between: bytes) -> None:
    data = between.join(json.dumps(o).encode() for o in objects)
    splitter, found = JsonSplitter(), []
    for at in range(0, len(data), size):
        found += splitter.feed(data[at : at + size])
    assert [json.loads(f) for f in found] == objects and splitter.dropped == 0


def test_json_that_is_too_long_or_broken_off_is_dropped_and_counted() -> None:
    splitter = JsonSplitter(64)
    assert splitter.feed(b'{"a": "' + b"x" * 65) == [] and splitter.dropped == 1
    assert splitter.feed(b'"}{"b": 1}') == [b'{"b": 1}']
    assert splitter.feed(b"noise \x00\xff") == []
    assert splitter.feed(b'{"half": "str\n}') == [b'{"half": "str\n}'], "its line end shows where the string broke off"


@given(st.binary(max_size=300))
def test_noise_does_no_harm_to_json(data: bytes) -> None:
    splitter = JsonSplitter(64)
    splitter.feed(data)
    splitter.feed(b"{" * 65)  # above the limit: begin anew
    assert splitter.feed(b'{"a": 1}')[-1:] == [b'{"a": 1}'] or splitter.dropped


# ------------------------------------------------------------------ HTTP


def handler(method: str, path: str, content: Any) -> HttpAnswer:
    if path == "/echo":
        return HttpAnswer(200, {"method": method, "content": content})
    return HttpAnswer(204) if path == "/nothing" else NOT_FOUND


class Site:
    def connect(self, port: str, send: Bytes) -> Connection:
        return HttpConnection(handler, send)

    def step(self, step: Step) -> None: ...


async def test_http_with_a_common_client() -> None:
    device = ServedDevice(DeviceType("a site", lambda *_: Site()), {"http": lambda accept: TcpPort(accept, 0)})
    device.create(None, {})  # type: ignore[arg-type]
    port = device.ports["http"]
    await port.open()

    def ask() -> None:
        url = f"http://{port.path}"
        with requests.Session() as session:
            session.trust_env = False
            for _ in range(3):  # on one connection
                answer = session.get(f"{url}/echo?x=1", timeout=10)
                assert answer.json() == {"method": "GET", "content": None}
                assert answer.headers["Content-Type"] == "application/json"
            assert session.put(f"{url}/echo", json={"a": [1]}, timeout=10).json()["content"] == {"a": [1]}
            assert session.get(f"{url}/nothing", timeout=10).status_code == 204
            assert session.get(f"{url}/else", timeout=10).status_code == 404
            assert session.put(f"{url}/echo", data=b"{", timeout=10).status_code == 400
            assert session.put(f"{url}/echo", data=b"x" * 20000, timeout=10).status_code == 413

    await asyncio.to_thread(ask)
    await port.close()


@pytest.mark.parametrize("data", [b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"a" * 20000])
def test_what_is_not_http_is_answered_counted_and_ends_the_connection(data: bytes) -> None:
    out: list[bytes] = []
    connection = HttpConnection(handler, out.append)
    connection.receive(data)
    connection.receive(data)
    assert out[0].startswith(b"HTTP/1.1 4") and out[-1] == b"" and connection.errors == 1


@given(st.binary(max_size=200))
def test_http_survives_noise(data: bytes) -> None:
    connection = HttpConnection(handler, lambda _: None)
    connection.receive(data)
    connection.receive(b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n")
    assert connection._http.our_state is not h11.SEND_BODY
