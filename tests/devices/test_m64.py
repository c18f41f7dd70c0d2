"""Virtual M64 modem: vectors, commands, the link of two modems, and the maker's client on a real server."""

from __future__ import annotations

import itertools
import random
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import CLI, Server
from tests.devices.modems import sea
from tests.devices.water import Water
from wavesim_devices.waterlinked_m64 import MAX_QUEUE, PACKET_S, SYNCHRONISATION, M64Modem, reply
from wavesim_world.config import LoadedConfig

PATIENCE_S = 20.0  #: limit in s for the answer of a modem on a slow machine
AWKWARD = b",*\r\n\x00\xffwc"


class Modem:
    """A modem in the minimal medium, with a host."""

    def __init__(self, water: Water, role: str) -> None:
        self.node, self.said = water.node(0), bytearray()
        self.device = M64Modem(self.node, self.said.extend, role, 4)  # type: ignore[arg-type]
        self.node.device = self.device

    def ask(self, data: bytes) -> bytes:
        self.device.receive(data)
        return self.take()

    def take(self) -> bytes:
        said = bytes(self.said)
        self.said.clear()
        return said


@pytest.fixture
def pair() -> tuple[Water, Modem, Modem]:
    water = Water()
    return water, Modem(water, "a"), Modem(water, "b")


def test_vectors(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    assert modem.ask(b"\nwcv\n") == b"wrv,1,0,1*44\n"
    assert modem.ask(b"wcn\r\n") == b"wrn,8*ba\n"
    assert modem.ask(b"wcq,8," + AWKWARD + b"\n") == b"wrq,a*d7\n"
    assert modem.ask(b"wcl\r") == reply(b"wrl,1")
    assert modem.ask(b"wcf\n") == reply(b"wrf,a") and modem.ask(b"wcl\n") == reply(b"wrl,0")
    assert modem.ask(b"wcc\n") == reply(b"wrc,a,4")
    assert modem.ask(b"wcd\n") == reply(b"wrd,n,0,0,0.0")
    with_check = reply(b"wcv")
    assert modem.ask(with_check) == b"wrv,1,0,1*44\n"
    assert modem.ask(with_check[:-2] + b"0\n") == reply(b"wr!")
    assert modem.ask(reply(b"wcq,8," + AWKWARD)) == b"wrq,a*d7\n"


@pytest.mark.parametrize(
    "line", [b"x", b"wc", b"wcz", b"wcv,1", b"wcvv", b"wcs,a", b"wcq,8", b"wcq,8,12345678x", b"wcq,x,1", b"w" * 100]
)
def test_malformed_commands(pair: tuple[Water, Modem, Modem], line: bytes) -> None:
    _, modem, _ = pair
    assert modem.ask(line + b"\n").startswith(reply(b"wr?")) and modem.device.errors >= 1
    assert modem.ask(b"\nwcv\n").endswith(b"wrv,1,0,1*44\n")


def test_settings_and_the_queue(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    for bad in (b"c,4", b"a,5", b"a,x", b"a,"):
        assert modem.ask(b"wcs,%s\n" % bad) == reply(b"wrs,n")
    assert modem.ask(b"wcs,b,4\n") == reply(b"wrs,a") and modem.ask(b"wcc\n") == reply(b"wrc,b,4")
    assert modem.ask(b"wcq,7,1234567\n") == reply(b"wrq,n")
    for _ in range(MAX_QUEUE):
        assert modem.ask(b"wcq,8,12345678\n") == reply(b"wrq,a")
    assert modem.ask(b"wcq,8,12345678\n") == reply(b"wrq,n")


def test_a_link_with_data_both_ways(pair: tuple[Water, Modem, Modem]) -> None:
    water, a, b = pair
    packets = [random.Random(k).randbytes(8) for k in range(5)] + [AWKWARD]
    for data in packets:
        assert a.ask(b"wcq,8," + data + b"\n") == b"wrq,a*d7\n"
        assert b.ask(b"wcq,8," + data[::-1] + b"\n") == b"wrq,a*d7\n"
    water.advance(2.9)
    assert a.ask(b"wcd\n") == reply(b"wrd,n,2,0,0.0"), f"it needs {SYNCHRONISATION} packets"
    water.advance(8.0)
    assert b.take() == b"".join(reply(b"wrp,8," + d) for d in packets)
    assert a.take() == b"".join(reply(b"wrp,8," + d[::-1]) for d in packets)
    assert a.ask(b"wcd\n") == reply(b"wrd,y,10,0,0.0") and b.ask(b"wcd\n") == reply(b"wrd,y,11,0,0.0")
    mine = [time for node, time, _ in water.sent if node is a.node]
    assert [y - x for x, y in itertools.pairwise(mine)] == pytest.approx([1.0] * 10)
    assert all(signal["length"] == PACKET_S for _, _, signal in water.sent)


def test_losses_are_counted_and_a_lost_link_keeps_its_data(pair: tuple[Water, Modem, Modem]) -> None:
    water, a, b = pair
    water.advance(4.9)
    count = len(water.sent)
    water.lose = lambda signal: len(water.sent) in (count + 1, count + 2)
    water.advance(4.0)
    assert b.ask(b"wcd\n").startswith(b"wrd,y,") and b.device.lost == 2 and a.device.lost == 2
    water.lose = lambda _: True
    water.advance(5.0)
    assert a.ask(b"wcq,8,12345678\n") and a.ask(b"wcd\n").startswith(b"wrd,n,")
    water.advance(3.0)
    assert a.ask(b"wcl\n") == reply(b"wrl,1")
    water.lose = lambda _: False
    water.advance(6.0)
    assert b.take().endswith(reply(b"wrp,8,12345678"))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"wcq,8,", b"wcs,", b"wcq,99,", b"*", b"\n", b"wcv"])))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    modem = Modem(Water(), "a")
    for part in parts:
        modem.device.receive(part)
    modem.device.receive(b"\n" * 120)
    assert modem.ask(b"\nwcv\n").endswith(b"wrv,1,0,1*44\n")


def test_a_megabyte_of_noise() -> None:
    modem = Modem(Water(), "b")
    modem.device.receive(random.Random(1).randbytes(1_000_000))
    modem.device.receive(b"\n" * 120)
    assert modem.ask(b"wcn\n").endswith(b"wrn,8*ba\n") and modem.device.errors > 1000


# ------------------------------------------------------------------ the maker's client against a real server


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.long)])
def test_the_client_of_the_maker(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path, count: int
) -> None:
    wlmodem = pytest.importorskip(
        "wlmodem",
        reason="wlmodem is absent, because its dependencies crcmod and cobs have no wheels: pip install wlmodem",
    )
    node = {"payload": 8, "more": 'preset="wl-m64"', "address": 0}
    server = serve(config(sea(node, {**node, "x": 120})).path, "--speed", "5")
    links = [tmp_path / name for name in "ab"]
    started = [
        subprocess.Popen(
            [
                *CLI,
                "device",
                "m64",
                link.name,
                "--role",
                link.name,
                "--link",
                str(link),
                "--pilot",
                "--lockstep",
                "20ms",
            ]
            + ["--port", str(server.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for link in links
    ]
    try:
        for process in started:
            assert process.stdout is not None and "M64 modem" in process.stdout.readline()
        server.send("start")
        modems: list[Any] = [wlmodem.WlModem(str(link)) for link in links]
        assert all(modem.connect() for modem in modems) and modems[0].payload_size == 8
        assert modems[0].cmd_configure("a", 4) and not modems[0].cmd_configure("a", 5)
        limit = time.monotonic() + 60.0
        while not all(modem.cmd_get_diagnostic().get("link_up") for modem in modems):
            assert time.monotonic() < limit, "no link"
        packets = [AWKWARD, *(random.Random(k).randbytes(8) for k in range(count - 1))]
        received: list[list[bytes]] = [[], []]
        queued = [0, 0]
        limit = time.monotonic() + 180.0
        while min(map(len, received)) < count and time.monotonic() < limit:
            for k, modem in enumerate(modems):
                if queued[k] < count and modem.cmd_get_queue_length(PATIENCE_S) < 8:
                    data = [b"8", packets[queued[k]]]
                    assert modem.request(wlmodem.protocol.CMD_QUEUE_PACKET, data, PATIENCE_S).options[0] == b"a"
                    queued[k] += 1
                packet = modem.get_data_packet(0)
                if packet is not None:
                    received[k].append(bytes(packet))
        assert received == [packets, packets]
        assert modems[0].cmd_get_diagnostic(PATIENCE_S)["pkt_loss_cnt"] == 0
    finally:
        for process in started:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
