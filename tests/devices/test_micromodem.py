"""Virtual WHOI Micro-Modem: its sentences, and cycles between two modems. The judge is in test_micromodem_judge.py."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.devices.water import DELAY_S, Node, Water
from wavesim_devices.micromodem.device import MicroModemDevice, ModemProperties
from wavesim_devices.micromodem.packets import RATES, Signal, data_signals
from wavesim_devices.micromodem.sentences import checksum, sentence
from wavesim_sdk.tables import SignalKind


class Modem:
    """A modem with its host."""

    def __init__(self, water: Water, address: int, generation: int = 2) -> None:
        self.node: Node = water.node(address, preamble=0.9)
        self.said = bytearray()
        properties = ModemProperties(address, generation, 25e3)
        self.device = MicroModemDevice(self.node, self.said.extend, properties, 1500.0)  # type: ignore[arg-type]
        self.node.device = self.device

    def write(self, text: str) -> None:
        self.device.receive(text.encode() + b"\r\n")

    def read(self) -> list[str]:
        """The sentences since the last call, without statistics and check sums, which must be right."""
        lines = self.said.decode().split("\r\n")
        assert lines.pop() == ""
        self.said.clear()
        for line in lines:
            body, _, digits = line[1:].partition("*")
            assert line[0] == "$" and checksum(body) == int(digits, 16)
        return [s[1:].partition("*")[0] for s in lines if s[1:6] not in ("CACST", "CAXST", "CAREV")]


@pytest.fixture
def water() -> Water:
    return Water()


@pytest.mark.parametrize(
    "text",
    ["$CACFG,SRC,1*33", "$CCMPC,1,2*5D", "$CACFG,CTO,10*19", "$SNTTA,,0.3214,,,120000.00*47"],
)
def test_vectors(text: str) -> None:
    assert sentence(*text[1:].partition("*")[0].split(",")) == text.encode() + b"\r\n"


def test_parameters_and_the_clock(water: Water) -> None:
    modem = Modem(water, 1)
    for text in ("$CCCFG,SRC,1*31", "$CCCFG,NRV,0", "$CCCFG,CTO,10", "$CCCFG,TAT,20", "$CCCFG,XST,0", "$CCCFQ,SRC"):
        modem.write(text)
    assert modem.said.startswith(b"$CACFG,SRC,1*33\r\n")
    assert modem.read() == ["CACFG,SRC,1", "CACFG,NRV,0", "CACFG,CTO,10", "CACFG,TAT,20", "CACFG,XST,0", "CACFG,SRC,1"]
    modem.device.receive(b"$CCCFQ,ALL\r$CCCFQ,info\r\n")
    said = modem.read()
    assert said[-2:] == ["CACFG,ALL,", "CACFG,info.firmware_version,2.0.36274"] and "CACFG,TAT,20" in said
    modem.write("$CCCLK,2030,5,17,12,30,59")
    modem.write("$CCTMS,2031-01-02T03:04:05Z,0")
    water.advance(2.0)
    modem.write("$CCTMQ,0")
    assert modem.read() == [
        "CACLK,2030,5,17,12,30,59",
        "CATMS,0,2031-01-02T03:04:05Z",
        "CATMQ,2031-01-02T03:04:07Z,USER_CMD,RTC",
    ]
    modem.write("$CCMSC,1,1,0")
    assert modem.said.decode().count("CAREV,030407,INIT") == 1 and b"CAREV,030407,AUV,2.0.36274" in modem.said


def test_mistakes_are_answered_and_counted(water: Water) -> None:
    modem = Modem(water, 1)
    wrong = (
        "$CCCFG,SRC,2",
        "$CCCFG,SRC,1*00",
        "$CCCFG,SRC,1*zz",
        "$CCCFG",
        "$CCCFG,NOPE,1",
        "$CCCFG,TAT,x",
        "$CCCFQ,NOPE",
        "$CCXYZ,1",
        "$CC",
        "$CCMPC,2,1",
        "$CCMPC,1",
        "$CCMUC,1,2,ffff",
        "$CCMUC,1,2,0",
        "$CCCYC,0,1,2,7,0,1",
        "$CCCYC,0,1,2,1,0,4",
        "$CCTXD,1,2,0,00",
        "$CCPNT,26000,3,3,0,25000,0,0,0,1",
        "$CCPDT,1,5,0,0,1000,1,1,0,0",
        "$CCPGT,26000,7,zz,1000,25000,7,1,2,3,4,5,5,0",
        "$CCCLK,2030,13,1,0,0,0",
        "$CCTMS,soon,0",
        "$CCTDP,2,1,1,0,00",
        "$CC_MPC,1,2",
    )
    for text in wrong:
        modem.write(text)
    said = modem.read()
    assert len(said) == len(wrong) == modem.device.errors
    assert all(s.startswith("CAERR,000000,NMEA,") for s in said)
    assert "CAERR,000000,NMEA,3,Source is not 1" in said
    modem.write("noise")
    assert modem.read() == []


@pytest.mark.parametrize("rate", RATES)
def test_a_packet_at_each_rate(water: Water, rate: int) -> None:
    """Frame by frame to the receiver and back as acknowledgement. The time on the air is that of the table."""
    a, b = Modem(water, 1), Modem(water, 2)
    frames = [bytes((k, rate)) * (RATES[rate].size // 2) for k in range(RATES[rate].frames)]
    a.write(f"$CCCYC,0,1,2,{rate},1,{len(frames)}")
    water.advance(1.0)
    assert a.read()[:2] == [f"CACYC,0,1,2,{rate},1,{len(frames)}"] + (
        ["CATXP,3"] if rate == 0 else [f"CADRQ,000000,1,2,1,{RATES[rate].size},1"]
    )
    for frame in frames:
        a.write(f"$CCTXD,1,2,1,{frame.hex()}")
    water.advance(20.0)
    count = sum(map(len, frames))
    signals = [s for node, _, s in water.sent if node is a.node and len(s["payload"]) > 14]
    expected = {6: 3.25}.get(rate, 8 * count / RATES[rate].bit_rate)
    assert sum(s["length"] for s in signals) == pytest.approx(expected, rel=0.05)
    said = a.read()
    assert f"CATXD,1,2,1,{RATES[rate].size}" in said
    assert said[-len(frames) - 2 :] == [
        f"CATXP,{count}",
        f"CATXF,{count}",
        *(f"CAACK,2,1,{k + 1},1" for k in range(len(frames))),
    ]
    received = b.read()
    assert received[: len(received) - 2] == [
        *([f"CACYC,0,1,2,{rate},1,1"] if rate == 0 else []),
        f"CARXP,{int(rate > 0)}",
        *([f"CACYC,0,1,2,{rate},1,{len(frames)}"] if rate else []),
        *(f"CARXD,1,2,1,{k + 1},{f.hex()}" for k, f in enumerate(frames)),
    ]
    assert received[-2:] == [f"CATXP,{len(frames)}", f"CATXF,{len(frames)}"], "its acknowledgement"


def test_a_host_that_does_not_provide_data(water: Water) -> None:
    modem = Modem(water, 1)
    modem.write("$CCCFG,CTO,3")
    modem.write("$CCCYC,0,1,2,1,0,2")
    water.advance(2.9)
    assert modem.read()[-1] == "CADRQ,000000,1,2,0,64,1"
    water.advance(0.2)
    assert modem.read() == ["CAERR,000003,DATA_TIMEOUT,1"] and not water.sent
    modem.write("$CCCYC,0,1,2,1,0,2")
    modem.write("$CCTXD,1,2,0,61")
    modem.write("$CCMPC,1,2")
    water.advance(6.0)
    said = modem.read()
    assert "CAERR,000003,NMEA,4,Modem busy" in said
    assert said[-3:] == ["CAERR,000006,DATA_TIMEOUT,2", "CATXP,1", "CATXF,1"], "it sends the frame that it has"


def test_a_poll(water: Water) -> None:
    a, b = Modem(water, 1), Modem(water, 2)
    a.write("$CCCYC,0,2,1,1,0,1")
    water.advance(2.0)
    assert a.read() == ["CACYC,0,2,1,1,0,1", "CATXP,3", "CATXF,3"]
    assert b.read() == ["CACYC,0,2,1,1,0,1", "CADRQ,000001,2,1,0,64,1"]
    b.write("$CCTXD,2,1,0,6869")
    water.advance(5.0)
    assert a.read()[-1] == "CARXD,2,1,0,1,6869"


def test_lost_frames_are_reported(water: Water) -> None:
    a, b = Modem(water, 1), Modem(water, 2)
    water.lose = lambda s: s["kind"] == SignalKind.DATA and Signal.decode(s["payload"]).frame in (1, 2)  # type: ignore[union-attr]
    a.write("$CCCYC,0,1,2,1,1,3")
    for k in range(3):
        a.write(f"$CCTXD,1,2,1,0{k}")
    water.advance(20.0)
    assert [s for s in b.read() if s[:5] in ("CARXD", "CAMSG")] == [
        "CARXD,1,2,1,1,00",
        "CAMSG,BAD_CRC,2",
        "CAMSG,BAD_CRC,3",
    ]
    assert [s for s in a.read() if s.startswith("CAACK")] == ["CAACK,2,1,1,1"]


def test_half_of_a_long_frame_is_no_frame() -> None:
    whole = data_signals(Signal(0, 1, 2, 3, number=9), [(bytes(range(256)), False)])
    assert [len(s.data) for s in whole] == [128, 128] and sum(s.duration for s in whole) == pytest.approx(2048 / 1200)
    back = [Signal.decode(s.encode()) for s in whole]
    assert [s.data for s in back if s is not None] == [s.data for s in whole]
    assert Signal.decode(b"hello, I am another modem") is None


@pytest.mark.parametrize("generation", [1, 2])
def test_ping_mini_packet_and_flexible_packet(water: Water, generation: int) -> None:
    a, b = Modem(water, 1, generation), Modem(water, 2, generation)
    a.write("$CCMPC,1,2*5D")
    water.advance(4.0)
    assert a.read() == ["CAMPC,1,2", "CATXP,0", "CATXF,0", f"CAMPR,2,1,{DELAY_S:.4f}"]
    assert b.read() == ["CAMPA,1,2"]
    a.write("$CCMUC,1,127,1ABC")
    water.advance(4.0)
    assert a.read() == ["CAMUC,1,127,1abc", "CATXP,2", "CATXF,2"] and b.read() == ["CAMUA,1,127,1abc"]
    a.write(f"$CCTDP,2,1,0,0,{b'hello'.hex()}")
    water.advance(10.0)
    assert a.read() == ["CATDP,0,1,2,1,0,0,5", "CATXP,5", "CATXF,5"]
    assert b.read() == ["CARXP,1", f"CARDP,1,2,1,0,0,1;5;{b'hello'.hex()},"]


def test_long_baseline(water: Water) -> None:
    """Missing replies leave their field empty. The turn-around time of CCCFG is subtracted."""
    modem = Modem(water, 1)
    beacons = [water.node(0) for _ in range(2)]
    for k, beacon in enumerate(beacons):
        answer = {"kind": SignalKind.PULSE, "frequency": 27e3 + 1e3 * k, "code": k + 1, "length": 0.01}

        def reply(r: object, beacon: Node = beacon, answer: dict[str, object] = answer) -> None:
            if r.frequency in (26e3, 25e3):  # type: ignore[attr-defined]
                water.plan(water.time + 0.03, lambda t: water.emit(beacon, r.reception_ns * 1e-9 + 0.02, answer))  # type: ignore[attr-defined]

        beacon.on_reception(reply)
    modem.write("$CCCFG,TAT,20")
    modem.write("$CCPNT,26000,3,3,2000,25000,27000,28000,0,1")
    water.advance(3.0)
    assert modem.read()[1:] == [
        "SNPNT,26000,3,3,2000,25000,27000,28000,0,1",
        "CATXP,0",
        "CATXF,0",
        "SNTTA,,0.2000,0.2000,,000000.00",
    ]
    assert water.sent[0][2]["length"] == 0.003
    modem.write("$CCPGT,26000,7,a5,1500,28000,7,1,2,3,4,5000,5000,0")
    water.advance(3.0)
    assert modem.read()[-1].startswith("SNTTA,,0.2000,,,") and water.sent[-3][2]["code"] == 0xA5
    modem.write("$CCPDT,1,2,0,0,1500,1,1,0,0")
    water.advance(3.0)
    assert modem.read()[-1].startswith("SNTTA,,,,,") and water.sent[-3][2]["code"] == 102


def test_a_refused_transmission_is_reported(water: Water) -> None:
    modem = Modem(water, 1)
    modem.node.refusing = "the transducer was recharging"
    modem.write("$CCCYC,0,1,2,0,0,1")
    water.advance(0.1)
    assert modem.read()[-1] == "CAERR,000000,NMEA,5,the transducer was recharging"
    modem.node.refusing = ""
    modem.write("$CCMUC,1,2,0001")
    water.advance(2.0)
    assert modem.read()[-1] == "CATXF,2", "it is not busy any more"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"$CC", b"CCCYC,0,1,2,", b"\r\n", b"*", b",", b"1"])))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    modem = Modem(Water(), 1)
    for part in parts:
        modem.device.receive(part)
    modem.device.receive(b"x" * 20000 + b"\r\n")
    modem.said.clear()
    modem.write("$CCCFQ,SRC")
    assert modem.said == b"$CACFG,SRC,1*33\r\n"
