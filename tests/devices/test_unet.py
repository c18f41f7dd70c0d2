"""The UnetStack modem: fjåge lines, agents, and the maker's UnetSocket in the water."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.modems import FakeBroker, devices, reception, sea
from wavesim_devices.unet.device import UnetDevice
from wavesim_devices.unet.fjage import GatewayConnection
from wavesim_world.config import LoadedConfig

UNET = "org.arl.unet."
DATA, RANGE_REPLY = 1, 3


class Peer:
    """A gateway without a socket."""

    def __init__(self, device: UnetDevice, name: str, *topics: str) -> None:
        self.name, self.out = name, bytearray()
        self.gateway: GatewayConnection = device.connect("fjage", self.out.extend)
        self.line({"action": "wantsMessagesFor", "agentIDs": [name, *topics]})

    def line(self, content: Any) -> None:
        self.gateway.receive(json.dumps(content).encode() + b"\n")

    def tell(self, agent: str, clazz: str, /, **fields: Any) -> None:
        data = {"msgID": "m1", "perf": "REQUEST", "sender": self.name, "recipient": agent, **fields}
        self.line({"id": "x", "action": "send", "relay": True, "message": {"clazz": clazz, "data": data}})

    def take(self) -> list[Any]:
        """The lines since the last call, messages as (class without its package, fields)."""
        lines = [json.loads(line) for line in bytes(self.out).splitlines() if line != b'{"alive": true}']
        self.out.clear()
        return [
            (m["message"]["clazz"].rpartition(".")[2], m["message"]["data"]) if m.get("action") == "send" else m
            for m in lines
        ]


def modem() -> tuple[UnetDevice, FakeBroker]:
    broker = FakeBroker()
    device = UnetDevice(broker, 3, 64, 188.0, {"buoy": 31})  # type: ignore[arg-type]
    device.step(broker.step(1.0))
    return device, broker


def test_lines_byte_for_byte() -> None:
    device, _ = modem()
    out: list[bytes] = []
    gateway = device.connect("fjage", out.append)
    assert out == [b'{"alive": true}\n']
    gateway.receive(b'{"id":"1","action":"agentForSer')
    gateway.receive(
        b'vice","service":"org.arl.unet.Services.NODE_INFO"}\n{"id":"2","action":"containsAgent","agentID":"phy"}\n'
    )
    gateway.receive(b'{"id":"3","action":"agentForService","service":"none"}\n')
    gateway.receive('{"action":"wantsMessagesFor","agentIDs":["gateway-å"]}\n'.encode())
    gateway.receive(
        b'{"action":"send","relay":true,"message":{"clazz":"org.arl.fjage.param.ParameterReq","data":{"msgID":"q",'
        b'"perf":"REQUEST","sender":"gateway-\xc3\xa5","recipient":"node","index":-1,"requests":[],"param":"address"}}}\n'
    )
    assert out[1:] == [
        b'{"id":"1","inResponseTo":"agentForService","agentID":"node"}\n',
        b'{"id":"2","inResponseTo":"containsAgent","answer":true}\n',
        b'{"id":"3","inResponseTo":"agentForService"}\n',
        b'{"action":"send","relay":true,"message":{"clazz":"org.arl.fjage.param.ParameterRsp","data":{"msgID":"node-1",'
        b'"perf":"INFORM","sender":"node","recipient":"gateway-\\u00e5","inReplyTo":"q","sentAt":1000,"index":-1,'
        b'"values":{},"param":"address","value":3}}}\n',
    ]


def test_keep_alive_is_answered_but_not_for_ever() -> None:
    device, _ = modem()
    out: list[bytes] = []
    gateway = device.connect("fjage", out.append)
    for expected in (1, 2, 2, 3):
        gateway.receive(b'{"alive": true}\n')  # the first one answers the greeting
        assert len(out) == expected
    gateway.receive(b'{"alive": false}\n')
    assert out[-1] == b""


def test_parameters_are_read_set_and_refused() -> None:
    device, broker = modem()
    peer = Peer(device, "g")

    def parameters(agent: str, **fields: Any) -> dict[str, Any]:
        peer.tell(agent, "org.arl.fjage.param.ParameterReq", **fields)
        ((_, data),) = peer.take()
        return {**({data["param"]: data["value"]} if "param" in data else {}), **data["values"]}

    assert parameters("node", param=None)["nodeName"] == "a"
    assert parameters("node", param="address", value=9) == {"address": 3}, "refused: the value that applies"
    assert parameters("node", param="nothing") == {}
    many = [{"param": "time"}, {"param": "org.arl.unet.phy.PhysicalParam.busy"}]
    assert parameters("phy", param="MTU", requests=many) == {
        "MTU": 63,
        "time": 1_000_000,
        "org.arl.unet.phy.PhysicalParam.busy": False,
    }
    assert parameters("phy", index=2, param="powerLevel", value=-20) == {"powerLevel": -20.0}
    assert parameters("phy", index=2, param="powerLevel", value=1) == {"powerLevel": -20.0}
    peer.tell("phy", UNET + "DatagramReq", to=4, protocol=32, data=[1])
    peer.tell("phy", UNET + "phy.TxFrameReq", to=4, protocol=32, data=[-1], type=1, txTime=5_000_000)
    assert broker.requests == [("send", b"\x20\x01", 4, 168.0, None)]
    device.step(broker.step(1.1, sent={1: 0.5}))
    device.step(broker.step(1.7))
    assert broker.requests[1:] == [("send", b"\x20\xff", 4, None, 5_000_000_000)], (
        "its own power, when the first is out"
    )


def test_a_datagram_that_is_not_reliable() -> None:
    device, broker = modem()
    peer, other = Peer(device, "g"), Peer(device, "h", "#phy__ntf", "#uwlink__ntf")
    peer.tell("uwlink", UNET + "DatagramReq", to=4, protocol=40, data={"clazz": "[B", "data": "AP8="}, ttl=2.0)
    assert broker.requests == [("send", b"\x28\x00\xff", 4, None, None)]
    assert [(c, d["perf"]) for c, d in peer.take()] == [("Message", "AGREE")]
    device.step(broker.step(1.1, refused={1: "the transducer was recharging; nothing was sent"}))
    assert len(broker.requests) == 2, "repeated"
    device.step(broker.step(1.2, sent={2: 0.5}))
    device.step(broker.step(1.6))
    assert peer.take() == []
    device.step(broker.step(1.71))
    assert [(c, d["inReplyTo"]) for c, d in peer.take()] == [("DatagramTransmissionNtf", "m1")]
    device.step(
        broker.step(
            2.0, reception(DATA, 4, 3, b"\x28\x01"), reception(DATA, 4, 9, b"\x28\x01"), reception(DATA, 4, 0, b"\x00")
        )
    )
    heard = other.take()
    assert [(c, d["from"], d["to"], d["protocol"], d["rxTime"]) for c, d in heard] == [
        ("RxFrameNtf", 4, 3, 40, 2_000_000),
        ("RxFrameNtf", 4, 0, 0, 2_000_000),
    ]
    assert heard[0][1]["data"] == {"clazz": "[B", "data": "AQ=="} and peer.take() == []


def test_a_time_to_live_ends() -> None:
    device, broker = modem()
    peer = Peer(device, "g")
    peer.tell("uwlink", UNET + "DatagramReq", to=4, data=[1], ttl=2.0)
    for k in range(1, 25):
        device.step(broker.step(1.0 + 0.1 * k, refused={len(broker.requests): "the transducer was recharging"}))
    assert [c for c, _ in peer.take()] == ["Message", "DatagramFailureNtf"]


def test_a_reliable_datagram_is_repeated_until_its_acknowledgement() -> None:
    device, broker = modem()
    peer = Peer(device, "g", "#uwlink__ntf")
    peer.tell("transport", UNET + "DatagramReq", to=4, protocol=32, data=[7], reliability=True)
    device.step(broker.step(1.1, sent={1: 0.5}))
    device.step(broker.step(1.7))
    device.step(broker.step(6.8))
    frame = ("send", b"\x60\x00\x07", 4, None, None)
    assert broker.requests == [frame, frame]
    device.step(broker.step(6.9, sent={2: 0.5}))
    device.step(broker.step(7.5, reception(DATA, 9, 3, b"\x80\x00"), reception(DATA, 4, 3, b"\x80\x01")))
    assert [c for c, _ in peer.take()] == ["Message"], "another node's, and another number's"
    device.step(broker.step(8.0, reception(DATA, 4, 3, b"\x80\x00")))
    assert [(c, d["to"]) for c, d in peer.take()] == [("DatagramDeliveryNtf", 4)]
    again = reception(DATA, 4, 3, b"\x60\x05\x07")
    device.step(broker.step(9.0, again))
    device.step(broker.step(9.1, sent={3: 0.1}))
    device.step(broker.step(9.3, again))
    assert broker.requests[2:] == [("send", b"\x80\x05", 4, None, None)] * 2, "each is acknowledged"
    assert [c for c, _ in peer.take()] == ["DatagramNtf"], "but delivered once"
    peer.tell("uwlink", UNET + "DatagramReq", to=4, data=[7], reliability=True)
    out: set[int] = set()
    for k in range(36):
        last = len(broker.requests)
        device.step(broker.step(10.0 + k, sent={} if last in out else {last: 0.5}))
        out.add(last)
    assert [c for c, _ in peer.take()] == ["Message", "DatagramFailureNtf"] and len(broker.requests) == 7


def test_requests_that_cannot_be_met_are_refused() -> None:
    device, broker = modem()
    peer = Peer(device, "g")
    bad: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("uwlink", "DatagramReq", {"to": 4, "data": [0] * 63}),
        ("uwlink", "DatagramReq", {"to": -1, "data": [0]}),
        ("uwlink", "DatagramReq", {"to": 4, "data": [256]}),
        ("uwlink", "DatagramReq", {"to": 4, "data": [0], "route": "r"}),
        ("uwlink", "DatagramReq", {"to": 0, "data": [0], "reliability": True}),
        ("phy", "DatagramReq", {"to": 4, "data": [0], "reliability": True}),
        ("phy", "phy.TxFrameReq", {"to": 4, "data": [0], "type": [1]}),
        ("phy", "phy.TxFrameReq", {"to": 4, "data": [0], "txTime": "now"}),
        ("phy", "phy.TxFrameReq", {"to": 4, "protocol": 64}),
        ("ranging", "localization.RangeReq", {"to": 3}),
    )
    for agent, clazz, fields in bad:
        peer.tell(agent, UNET + clazz, **fields)
        ((said, data),) = peer.take()
        assert (said, data["perf"]) == ("RefuseRsp", "REFUSE") and data["reason"], fields
    peer.tell("uwlink", UNET + "remote.RemoteMessageReq", to=4, data=[0])
    assert [d["perf"] for _, d in peer.take()] == ["NOT_UNDERSTOOD"]
    assert broker.requests == []


def test_ranges_and_names() -> None:
    device, broker = modem()
    peer = Peer(device, "g")
    peer.tell("ranging", UNET + "localization.RangeReq", to=4)
    peer.tell("ranging", UNET + "localization.RangeReq", to=5)
    device.step(broker.step(1.1, sent={1: 0.02}))
    device.step(broker.step(1.2, reception(RANGE_REPLY, 4, 3, range=301.5)))
    device.step(broker.step(1.3, sent={2: 0.02}))
    device.step(broker.step(1.4))
    device.step(broker.step(11.5))
    said = peer.take()
    assert [c for c, _ in said] == ["Message", "Message", "RangeNtf", "FailureNtf"]
    assert (said[2][1]["to"], said[2][1]["range"]) == (4, 301.5)
    for name, address in (("a", 3), ("buoy", 31), ("nobody", None)):
        peer.tell("arp", UNET + "addr.AddressResolutionReq", name=name)
        ((_, data),) = peer.take()
        assert data["address"] == address


def is_noise(data: bytes) -> bool:
    """Whether no line can be valid without an action; Hypothesis also tries texts that it finds in the sources."""
    return b"alive" not in data and b"inResponseTo" not in data


@given((st.binary(max_size=300) | st.text(max_size=300).map(str.encode)).filter(is_noise))
def test_noise_is_counted_and_harms_nothing(data: bytes) -> None:
    device, _ = modem()
    peer = Peer(device, "g")
    peer.gateway.receive(data + b"\n")
    peer.line({"id": "1", "action": "agents"})
    assert peer.take()[-1]["agentIDs"][0] == "node"
    assert device.container.malformed == sum(bool(p.strip()) for p in data.replace(b"\r", b"\n").split(b"\n"))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
FIELDS = (
    "to",
    "data",
    "protocol",
    "reliability",
    "ttl",
    "route",
    "type",
    "txTime",
    "param",
    "value",
    "index",
    "requests",
    "name",
)


@given(
    st.sampled_from(["node", "phy", "uwlink", "ranging", "arp", "g", "#x"]),
    st.sampled_from(
        ["org.arl.fjage.param.ParameterReq"]
        + [UNET + c for c in ("DatagramReq", "phy.TxFrameReq", "localization.RangeReq", "addr.AddressResolutionReq")]
    ),
    st.dictionaries(st.sampled_from(FIELDS), JUNK | st.integers(-2, 3), max_size=6),
)
def test_fields_of_any_type_are_answered(agent: str, clazz: str, fields: dict[str, Any]) -> None:
    device, broker = modem()
    peer = Peer(device, "g")
    peer.tell(agent, clazz, **fields)
    device.step(broker.step(1.1, reception(DATA, 4, 3, b"\xff"), reception(DATA, 4, 3, b"\x40")))
    assert len(peer.take()) == (agent in device.container.agents)


def test_a_megabyte_of_noise() -> None:
    device, _ = modem()
    peer = Peer(device, "g")
    peer.gateway.receive(random.Random(1).randbytes(1_000_000))
    peer.gateway.receive(b"\n")
    peer.line({"id": "1", "action": "services"})
    assert UNET + "Services.LINK" in peer.take()[-1]["services"] and device.container.malformed > 1000


# ------------------------------------------------------------------ the maker's client against a real server


def received(receive: Callable[[int], Any]) -> Any:
    """Return what arrives. fjagepy 2.2.0 overlooks a message that arrives while it begins to wait; the next call finds it."""
    for _ in range(30):
        found = receive(500)
        if found is not None:
            return found
    raise AssertionError("nothing was received")


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
@pytest.mark.timeout(120)
def test_unetsocket_in_the_water(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    from unetpy import Protocol, UnetSocket
    from unetpy.messages import RangeNtf, RangeReq, TxFrameNtf

    server = serve(config(sea({}, {"x": 300})).path, "--speed", "10")
    commands = [
        ["unet", "a", "--address", "3", "--fjage", "tcp:0", "--node", "b=4"],
        ["unet", "b", "--address", "4", "--fjage", "tcp:0"],
    ]
    with devices(server, *commands) as (a, b):
        server.send("start")
        with UnetSocket("127.0.0.1", a["port"]) as here, UnetSocket("127.0.0.1", b["port"]) as there:
            assert (here.getLocalAddress(), there.agent("node").nodeName, here.host("b")) == (3, "b", 4)
            assert here.bind(Protocol.USER) and there.bind(Protocol.USER)
            here.setSendMode(UnetSocket.BLOCKING)
            for k in range(100):
                assert here.send(bytes([k, 200]), 4, Protocol.USER)
                heard = received(there.receive)
                assert heard is not None and [v & 255 for v in heard.data] == [k, 200] and heard.from_ == 3
            sent = here.agent("phy").request(_frame(b"\x01" * 50), 5000)
            assert str(sent.perf) == "AGREE"
            left = received(lambda ms: here.getGateway().receive(TxFrameNtf, ms))
            came = received(there.receive)
            assert (came.rxTime - left.txTime) * 1e-6 == pytest.approx(300.0 / 1500.0, abs=2e-4)
            there.setReliability(True)
            assert there.send("reliable", 3, Protocol.USER)
            assert bytes(received(here.receive).data) == b"reliable"
            assert not there.send("nobody", 9, Protocol.USER), "not acknowledged"
            request = RangeReq(to=4, recipient=here.agentForService("org.arl.unet.Services.RANGING"))
            assert str(here.getGateway().request(request, 5000).perf) == "AGREE"
            found = received(lambda ms: here.getGateway().receive(RangeNtf, ms))
            assert found.range == pytest.approx(300.0, abs=0.1)
            here.agent("phy")[2].powerLevel = -80
            assert here.agent("phy")[2].powerLevel == -80.0
            assert here.send(b"too weak", 4, Protocol.USER) and there.receive(2_000) is None


def _frame(data: bytes) -> Any:
    from unetpy.messages import TxFrameReq

    return TxFrameReq(to=4, protocol=32, data=list(data))
