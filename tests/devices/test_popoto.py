"""Virtual Popoto modem: its commands, packets at each rate, ranges, and the maker's client in the sea of a real server."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.modems import devices, sea
from tests.devices.water import DELAY_S, SPEED, Water
from wavesim_devices.popoto import HEADER_S, RATES, REPLY_LIMIT_S, PopotoModel, PopotoModem, packet_duration
from wavesim_world.config import LoadedConfig


class Modem:
    """A modem in the minimal medium, with a host."""

    def __init__(self, water: Water, address: int) -> None:
        self.node = water.node(address, preamble=HEADER_S)
        self.device = PopotoModem(self.node, PopotoModel(address, carrier=25e3))  # type: ignore[arg-type]
        self.node.device = self.device
        self.said = bytearray()
        self.host: Any = self.device.connect("command", self.said.extend)

    def ask(self, command: str, arguments: Any = "Unused Arguments") -> list[dict[str, Any]]:
        """Messages in answer to a command, in the form that the maker's client sends."""
        text = json.dumps(arguments)
        self.host.receive(f'{{ "Command": "{command}", "Arguments": {text}}}\n'.encode())
        return self.messages()

    def messages(self) -> list[dict[str, Any]]:
        found = [json.loads(part) for part in bytes(self.said).split(b"\r") if part]
        self.said.clear()
        return found


@pytest.fixture
def pair() -> tuple[Water, Modem, Modem]:
    water = Water()
    return water, Modem(water, 1), Modem(water, 2)


def test_commands_have_the_form_of_the_maker(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    modem.host.receive(b'{ "Command": "GetValue", "Arguments": "PayloadMode 0"}\n')
    assert bytes(modem.said) == b'{"PayloadMode":0}\r'
    modem.messages()
    assert modem.ask("SetValue", "TxPowerWatts 2.5 0") == [{"TxPowerWatts": 2.5}]
    assert modem.ask("GetValue", "TxPowerWatts 0") == [{"TxPowerWatts": 2.5}]
    (page,) = modem.ask("GetAllParameters", "0")
    names = {p["Name"]: p["Format"] for p in page["AllParameters"]["params"]}
    assert names["LocalID"] == "int" and names["TxPowerWatts"] == "float" and page["AllParameters"]["nextIdx"] == -1
    (first,) = modem.ask("GetParameters", "0")
    assert first["Element"]["Name"] == "LocalID" and first["Element"]["nextidx"] == 1
    (rates,) = modem.ask("getPopotoModulations")
    assert [p["bps"] for p in rates["PopotoModulations"]["params"]] == list(RATES)
    assert modem.ask("Event_StartRx") == []


def test_exclusive_access(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    other = bytearray()
    second = modem.device.connect("command", other.extend)
    assert modem.ask("SetMutexToken", "abc") == [{"ExclusivityToken": "abc"}]
    second.receive(b'{"Command":"SetMutexToken","Arguments":"xyz"}')
    assert other.endswith(b'{"ExclusivityToken":"abc"}\r'), "the other host has it; all hosts receive all messages"
    modem.host.close()
    second.receive(b'{"Command":"SetMutexToken","Arguments":"xyz"}')
    assert other.endswith(b'{"ExclusivityToken":"xyz"}\r')
    second.receive(b'{"Command":"SetMutexToken","Arguments":"Available"}')
    assert other.endswith(b'{"ExclusivityToken":"Available"}\r')


@pytest.mark.parametrize("mode", range(10))
def test_packets_at_each_rate(pair: tuple[Water, Modem, Modem], mode: int) -> None:
    water, modem, other = pair
    third = Modem(water, 3)
    data = list(range(255))
    modem.ask("SetValue", f"PayloadMode {mode} 0")
    modem.ask("SetValue", "TxPowerWatts 1.0 0")
    modem.ask("SetValue", "RemoteID 2 0")
    assert modem.ask("TransmitJSON", {"Payload": {"Data": data}}) == []
    assert modem.ask("TransmitJSON", {"Payload": {"Data": data}}) == [{"Error": "busy"}]
    assert water.sent == [] or water.sent[0][2]["to"] == 2
    duration = HEADER_S + 8 * 255 / RATES[mode]
    water.advance(duration - 0.05)
    assert modem.messages() == []
    water.advance(0.1)
    assert modem.messages() == [{"Alert": "TxComplete"}]
    assert water.sent[0][2]["length"] == pytest.approx(duration)
    water.advance(DELAY_S)
    header, payload, snr, doppler = other.messages()
    assert header == {"Header": [0, 1, 2, 5, 255, mode << 3]} and payload == {"Data": data}
    assert snr == {"SNRdB": 30.0} and doppler == {"DopplerVelocity": 0.0}
    assert third.messages() == [], "for another modem"
    assert packet_duration(255, mode) == pytest.approx(duration)


def test_the_power_sets_the_source_level() -> None:
    class Broker:
        welcome = type("Welcome", (), {"sound_speed": 1500.0})()
        level = 0.0

        def send(self, payload: bytes, to: int, level: float, duration: float) -> int:
            self.level = level
            return 1

    broker = Broker()
    modem = PopotoModem(broker, PopotoModel(1))  # type: ignore[arg-type]
    host = modem.connect("command", lambda _: None)
    host.receive(b'{"Command":"SetValue","Arguments":"TxPowerWatts 0.1 0"}')
    host.receive(b'{"Command":"TransmitJSON","Arguments":{"Payload":{"Data":[1]}}}')
    assert broker.level == pytest.approx(160.0)


def test_ranges(pair: tuple[Water, Modem, Modem]) -> None:
    water, modem, other = pair
    assert "RemoteID" in modem.ask("Event_sendRanging")[0]["Error"]
    modem.ask("SetValue", "RemoteID 2 0")
    assert modem.ask("Event_sendRanging") == []
    water.advance(3.0)
    alert, header, snr, _, found = modem.messages()
    assert alert == {"Alert": "TxComplete"} and header["Header"][:3] == [128, 2, 1] and snr["SNRdB"] == 30.0
    assert found["Range"] == DELAY_S * SPEED and found["Roundtrip Delay"] == pytest.approx(2e3 * DELAY_S)
    assert other.messages()[0]["Header"][:3] == [129, 1, 2]
    modem.ask("SetValue", "RemoteID 77 0")
    modem.ask("Event_sendRanging")
    water.advance(REPLY_LIMIT_S + 1.0)
    assert modem.messages() == [{"Alert": "TxComplete"}, {"Alert": "RangingTimeout"}]
    modem.node.refusing = "the transducer was recharging"
    modem.ask("Event_sendRanging")
    water.advance(0.1)
    assert modem.messages() == [{"Error": "the transducer was recharging"}]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("Fly", "1"),
        ("SetValue", "LocalID 9 0"),
        ("SetValue", "PayloadMode 1.5 0"),
        ("SetValue", "PayloadMode nan 0"),
        ("SetValue", "TxPowerWatts 11 0"),
        ("SetValue", "Unknown 1 0"),
        ("SetValue", "TxPowerWatts"),
        ("GetValue", "Unknown"),
        ("GetValue", 3),
        ("GetParameters", "99"),
        ("TransmitJSON", {"Payload": {"Data": [256]}}),
        ("TransmitJSON", {"Payload": {"Data": []}}),
        ("TransmitJSON", {"Payload": {"Data": [0] * 256}}),
        ("TransmitJSON", "x"),
        ("setRangeData", {"Payload": {"Data": [1]}}),
    ],
)
def test_commands_that_are_refused(pair: tuple[Water, Modem, Modem], command: str, arguments: Any) -> None:
    water, modem, _ = pair
    (answer,) = modem.ask(command, arguments)
    assert list(answer) == ["Error"] and modem.device.errors == 1
    water.advance(0.1)
    assert water.sent == []


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.binary(max_size=80)
        | st.sampled_from([b'{"Command":', b'"SetValue",', b'"Arguments":', b'"x y z"', b"}", b"{", b"null", b"[]"])
    )
)
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    modem = Modem(Water(), 1)
    for part in parts:
        modem.host.receive(part)
    modem.said.clear()
    modem.host.receive(b'"\n' + b"}" * 40)
    fresh = Modem(Water(), 1)
    fresh.host = modem.device.connect("command", fresh.said.extend)
    assert fresh.ask("GetValue", "PayloadMode 0") == [{"PayloadMode": modem.device._values["PayloadMode"]}]


def test_a_megabyte_of_noise(pair: tuple[Water, Modem, Modem]) -> None:
    _, modem, _ = pair
    modem.host.receive(random.Random(1).randbytes(1_000_000))
    second = bytearray()
    modem.device.connect("command", second.extend).receive(b'{"Command":"GetValue","Arguments":"RemoteID 0"}')
    assert second.endswith(b'{"RemoteID":255}\r')


# ------------------------------------------------------------------ the maker's client against a real server


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
@pytest.mark.timeout(180)
def test_the_client_of_the_maker(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    tmp_path: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = pytest.importorskip("popoto", reason="popoto-api is absent: pip install popoto-api")
    monkeypatch.chdir(tmp_path)
    node = {"payload": 256, "more": 'preset="popoto"', "turn_around": "100 ms"}
    server = serve(config(sea(node, {**node, "x": 300})).path, "--speed", "10")
    commands = [["popoto", n, "--address", a, "--command", "tcp:0"] for n, a in (("a", "3"), ("b", "4"))]
    with devices(server, *commands) as places:
        server.send("start")
        here, there = (client.popoto("127.0.0.1", p["port"]) for p in places)
        try:
            assert set(here.intParams) == {"LocalID", "RemoteID", "PayloadMode", "CarrierTxMode"}
            here.getPopotoModulations()
            assert "PopotoModulations" in here.waitForSpecificReply("PopotoModulations")
            for mode in range(len(RATES)):
                data = list(random.Random(mode).randbytes(255))
                here.set("PayloadMode", mode, override_cache=True)
                assert here.waitForSpecificReply("PayloadMode") == {"PayloadMode": mode}
                here.transmitJSON({"Payload": {"Data": data}})
                assert there.waitForSpecificReply("Header")["Header"][:3] == [0, 3, 255]
                assert there.waitForSpecificReply("Data") == {"Data": data}
                assert there.waitForSpecificReply("SNRdB")["SNRdB"] > 10.0
                assert abs(there.waitForSpecificReply("DopplerVelocity")["DopplerVelocity"]) < 0.5
                assert "Alert" in here.waitForSpecificReply("Alert", "TxComplete")
            here.set("RemoteID", 4)
            here.sendRange(1.0)
            assert here.waitForSpecificReply("Range")["Range"] == pytest.approx(300.0, abs=0.5)
        finally:
            here.is_running = there.is_running = False
