"""Virtual Benthos modem: the dialogue of goby3's driver, packets, ranges, and two modems on a real server."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.modems import devices, sea
from tests.devices.water import DELAY_S, SPEED, Water
from wavesim_devices.benthos import PREAMBLE_S, RANGE_LIMIT_S, RATES, BenthosModem
from wavesim_world.config import LoadedConfig

PROMPT = re.compile(r"user:\d+>")
#: commands of goby3's driver at its start, and the line that it waits for
START = {
    "AT": "OK",
    "@P1EchoChar=Dis": "P1EchoChar      | Dis",
    "@P1Prompt=7": "P1Prompt        | 7",
    "@Verbose=3": "Verbose         | 3",
    "@DataRetry=0": "DataRetry       | 0",
    "@FwdDelay=0.05": "FwdDelay        | 0.05",
    "@LocalAddr=1": "LocalAddr       | 1",
    "@PrintHex=Ena": "PrintHex        | Ena",
    "@WakeTones=Ena": "WakeTones       | Ena",
    "@RcvAll=Ena": "RcvAll          | Ena",
    "@ShowBadData=Ena": "ShowBadData     | Ena",
    "@OpMode=0": "OpMode          | 0",
    "cfg store /ffs/goby.ini": "Configuration stored.",
    "date -t19:04:26 -d11/29/2026": "19:04:26 11/29/2026",
    "ATH": "OK",
    "ATL": "Lowpower",
    "+++": "Command '+++' not found",
}


class Modem:
    """A modem in the minimal medium, with a host."""

    def __init__(self, water: Water, address: int) -> None:
        self.node, self.said = water.node(address, preamble=PREAMBLE_S), bytearray()
        self.device = BenthosModem(self.node, self.said.extend, address, 25e3)  # type: ignore[arg-type]
        self.node.device = self.device
        assert "Dis" in self.ask("@P1EchoChar=Dis")[1]

    def ask(self, command: str) -> list[str]:
        self.device.receive(command.encode() + b"\r")
        return self.lines()

    def lines(self) -> list[str]:
        found = self.said.decode().split("\r\n")
        self.said.clear()
        assert found.pop() == ""
        return found

    def dial(self, to: int, rate: int, data: bytes) -> None:
        """Send a packet as goby3's driver does."""
        assert self.ask(f"@TxRate={rate}")[0].startswith("TxRate")
        self.ask(f"@RemoteAddr={to}")
        assert self.ask("ATO") == [f"CONNECT {RATES[rate]:05d} bits/sec"]
        self.device.receive(data)


@pytest.fixture
def pair() -> tuple[Water, Modem, Modem]:
    water = Water()
    return water, Modem(water, 1), Modem(water, 2)


def parse(lines: list[str]) -> tuple[bytes, int, int]:
    """Read a received packet as goby3's driver does; return data, source and destination."""
    size = int(lines[0][5:9])
    assert re.match(r"DATA\(\d{4}\):", lines[0])
    data = bytes.fromhex(lines[0][11:])
    k = 1
    while len(data) < size:
        data += bytes.fromhex(lines[k])
        k += 1
    ends = re.fullmatch(r"Source:(\d{3})  Destination:(\d{3})", lines[k])
    statistics = r"CRC:Pass MPD:\d\d\.\d SNR:\d\d\.\d AGC:\d\d SPD:[+-]\d\d\.\d CCERR:\d{3}"
    assert ends is not None and re.fullmatch(statistics, lines[k + 1]) and lines[k + 2 :] == ["<EOP>"]
    return data, int(ends[1]), int(ends[2])


def test_the_dialogue_at_the_start(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    for command, wanted in START.items():
        answer, prompt = modem.ask(command)
        assert answer == wanted and PROMPT.fullmatch(prompt), command
    assert modem.device.errors == 1
    (prompt,) = modem.ask("factory_reset")
    assert PROMPT.fullmatch(prompt)
    assert modem.ask("at")[:2] == ["at", "OK"], "the echo is on again"


@pytest.mark.parametrize(
    "command", ["@LocalAddr=2", "@TxRate=14", "@FwdDelay=9", "@PrintHex=Dis", "@Nothing=1", "@TxRate=x", "ATR1", "ATR0"]
)
def test_commands_that_are_refused(pair: tuple[Water, Modem, Modem], command: str) -> None:
    water, modem, _ = pair
    answer, prompt = modem.ask(command)
    assert re.match("Invalid|Parameter", answer) and PROMPT.fullmatch(prompt) and modem.device.errors == 1
    water.advance(0.1)
    assert water.sent == []


@pytest.mark.parametrize(("rate", "count"), [(2, 1), (2, 40), (7, 254), (9, 255), (13, 1000), (13, 4096)])
def test_packets(pair: tuple[Water, Modem, Modem], rate: int, count: int) -> None:
    water, modem, other = pair
    third = Modem(water, 3)
    data = random.Random(count).randbytes(count)
    water.advance(0.1)
    modem.dial(2, rate, data)
    water.advance(0.04)
    assert water.sent == [], "the forwarding delay"
    duration = PREAMBLE_S + 8.0 * count / RATES[rate]
    water.advance(duration + 1.0)
    assert modem.lines() == ["Forwarding Delay Up"]
    assert parse(other.lines()) == (data, 1, 2) and third.lines() == []
    assert sum(signal["length"] for _, _, signal in water.sent) == pytest.approx(duration)


def test_online_mode_ends_after_a_silence(pair: tuple[Water, Modem, Modem]) -> None:
    water, modem, other = pair
    third = Modem(water, 3)
    third.ask("@RcvAll=Ena")
    water.advance(0.1)
    modem.dial(2, 13, b"one")
    modem.device.receive(b"+++\r")
    water.advance(3.0)
    assert parse(other.lines())[0] == b"one+++\r" and parse(third.lines())[1:] == (1, 2)
    modem.lines()
    modem.device.receive(b"+++\r")
    assert PROMPT.fullmatch(modem.lines()[0])
    assert modem.ask("ATD255") == ["CONNECT 15360 bits/sec"]
    modem.device.receive(b"all")
    water.advance(3.0)
    assert parse(other.lines()) == (b"all", 1, 255) == parse(third.lines())


def test_a_packet_of_which_a_part_is_lost(pair: tuple[Water, Modem, Modem]) -> None:
    water, modem, other = pair
    water.advance(0.1)
    water.lose = lambda signal: signal["payload"][1] == 1
    modem.dial(2, 13, bytes(700))
    water.advance(4.0)
    assert other.lines() == [] and other.device.dropped == 1
    water.lose = lambda _: False
    modem.device.receive(b"again")
    water.advance(4.0)
    assert parse(other.lines())[0] == b"again"


def test_ranges(pair: tuple[Water, Modem, Modem]) -> None:
    water, modem, _ = pair
    water.advance(0.1)
    first, prompt = modem.ask("ATR2")
    assert first.startswith("TX time") and PROMPT.fullmatch(prompt)
    assert modem.ask("ATR2")[0] == "Busy"
    water.advance(3.0)
    (line,) = modem.lines()
    assert line == f"Range 1 to 2 : {DELAY_S * SPEED:.1f} m  (Round-trip   400.0 ms) speed  0.0 m/s"
    modem.ask("ATR9")
    water.advance(RANGE_LIMIT_S + 1.0)
    assert modem.lines() == ["Response Not Received"]
    modem.node.refusing = "recharging"
    modem.ask("ATR2")
    water.advance(0.1)
    assert modem.lines() == ["Response Not Received"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"AT", b"ATO\r", b"+++\r", b"@", b"=", b"\r\n", b"ATR2\r"])))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    water = Water()
    modem = Modem(water, 1)
    for part in parts:
        modem.device.receive(part)
        water.advance(0.05)
    water.advance(2.0)
    modem.device.receive(b"\r+++\r")
    water.advance(2.0)
    modem.device.receive(b"+++\r")
    modem.said.clear()
    assert "OK" in modem.ask("AT")


def test_a_megabyte_of_noise(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    noise = random.Random(1).randbytes(1_000_000).replace(b"\r", b"").replace(b"\n", b"")
    modem.device.receive(noise + b"\r")
    assert "OK" in modem.ask("AT")
    water = Water()
    online = Modem(water, 1)
    online.dial(2, 13, noise)
    assert online.device.dropped == 1


# ------------------------------------------------------------------ a real server


def talk(host: socket.socket, data: bytes, wanted: str) -> str:
    """Send bytes and return the text until a pattern appears."""
    host.sendall(data)
    text = ""
    while not re.search(wanted, text, re.DOTALL):
        text += host.recv(4096).decode()
    return text


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
@pytest.mark.timeout(120)
def test_two_modems_in_the_sea(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    node = {"payload": 256, "more": 'preset="benthos-900"'}
    server = serve(config(sea(node, {**node, "x": 400})).path, "--speed", "5")
    options = ["--tcp", "0", "--lockstep", "20ms"]
    commands = [["benthos", name, "--address", address, *options] for name, address in (("a", "3"), ("b", "4"))]
    with devices(server, *commands) as places:
        server.send("start")
        hosts = [socket.create_connection(("127.0.0.1", p["port"]), timeout=60) for p in places]
        for host in hosts:
            talk(host, b"@P1EchoChar=Dis\r", "P1EchoChar.*user:")
        found = re.search(
            r"Range 3 to 4 : ([\d.]+) m +\(Round-trip +([\d.]+) ms\)", talk(hosts[0], b"ATR4\r", "speed.*\n")
        )
        assert found is not None and float(found[1]) == pytest.approx(400.0, abs=1.0)
        assert float(found[1]) == pytest.approx(float(found[2]) * 0.75, abs=0.1)
        data = random.Random(1).randbytes(600)
        talk(hosts[0], b"@TxRate=9\r", "TxRate.*user:")
        talk(hosts[0], b"ATD4\r", "CONNECT.*\n")
        hosts[0].sendall(data)
        lines = talk(hosts[1], b"", "<EOP>").split("\r\n")
        lines = lines[next(k for k, line in enumerate(lines) if line.startswith("DATA")) :]
        assert parse([line for line in lines if line]) == (data, 3, 4)
        for host in hosts:
            host.close()
