"""Virtual u-blox receiver: vectors, pyubx2 as the judge, fixes lost under water, commands, noise, and a real server."""

from __future__ import annotations

import io
import itertools
import math
import socket
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import pynmea2
import pytest
import pyubx2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.nursery import launch
from tests.sdk.test_devices import value
from wavesim_devices.ublox import CFG, MAX_CONTENT, NAV, UbloxReceiver, check_bytes, frame
from wavesim_sdk.broker import Step
from wavesim_sdk.wire.client import State
from wavesim_sdk.wire.state import Sensors
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
GPS = [math.radians(41.18), math.radians(-8.70), 1.25, 2.0, math.radians(30.0), 0.9, 1.5, 11.0]


class Bench:
    """A receiver and what it sends. Its sensor measures at 5 Hz while ``surfaced``."""

    def __init__(self, *enabled: str) -> None:
        self.data = bytearray()
        self.receiver = UbloxReceiver(self.data.extend, "gps", 2.0, enabled)
        self.ticks, self.surfaced = 0, True  # of 100 ms

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 10.0)):
            self.ticks += 1
            measured = self.ticks // 2 * 200_000_000
            sensors = {"gps": value("gps", measured, GPS)} if self.surfaced else {}
            self.receiver.step(Step(State(0, self.ticks * 100_000_000, sensors=Sensors(sensors))))

    def messages(self) -> list[Any]:
        """Messages since the last call, parsed by pyubx2, which raises an error for a wrong check sum."""
        reader = pyubx2.UBXReader(io.BytesIO(bytes(self.data)), validate=pyubx2.VALCKSUM, quitonerror=pyubx2.ERR_RAISE)
        self.data.clear()
        return [parsed for _, parsed in reader]

    def ask(self, class_: int, identifier: int, content: bytes = b"") -> list[Any]:
        self.data.clear()
        self.receiver.receive(frame(class_, identifier, content))
        return self.messages()

    def accepts(self, message: Any) -> bool:
        """Whether a command of pyubx2 is acknowledged."""
        self.data.clear()
        self.receiver.receive(message.serialize())
        answer = self.messages()[-1]
        assert (answer.clsID, answer.msgID) == (message.msg_cls[0], message.msg_id[0])
        return bool(answer.identity == "ACK-ACK")


def test_check_bytes() -> None:
    assert check_bytes(b"\x01\x07\x00\x00").hex() == "0819"
    assert frame(NAV, 0x07) == pyubx2.UBXMessage("NAV", "NAV-PVT", pyubx2.POLL).serialize()


def test_navigation_messages_carry_the_value_of_the_sensor() -> None:
    bench = Bench("NAV-PVT", "NAV-POSLLH", "NAV-STATUS", "NAV-DOP", "NAV-VELNED", "NAV-TIMEUTC", "NAV-SAT", "NAV-EOE")
    bench.run(3.2)
    last = {m.identity: m for m in bench.messages()}
    pvt = last["NAV-PVT"]
    assert (pvt.lat, pvt.lon) == pytest.approx((41.18, -8.70), abs=1e-7) and pvt.height == pvt.hMSL == 1250
    assert (pvt.fixType, pvt.gnssFixOk, pvt.numSV, pvt.hAcc) == (3, 1, 11, 1500)
    assert (pvt.velN, pvt.velE, pvt.velD, pvt.gSpeed) == (1732, 1000, 0, 2000) and pvt.headMot == pytest.approx(30.0)
    assert (pvt.year, pvt.month, pvt.day, pvt.hour, pvt.min, pvt.second, pvt.nano) == (2026, 1, 1, 0, 0, 3, 0)
    assert pvt.iTOW == (4 * 86400 + 18 + 3) * 1000, "2026-01-01 is a Thursday; GPS time is 18 s ahead of UTC"
    assert pvt.validTime == pvt.validDate == 1
    assert last["NAV-POSLLH"].lat == pvt.lat and last["NAV-STATUS"].gpsFix == 3 and last["NAV-STATUS"].gpsFixOk == 1
    assert last["NAV-VELNED"].gSpeed == 200 and last["NAV-DOP"].hDOP == pytest.approx(0.9)
    assert last["NAV-DOP"].pDOP == pvt.pDOP and last["NAV-TIMEUTC"].sec == 3
    assert last["NAV-SAT"].numSvs == 11 and last["NAV-SAT"].svUsed_11 == 1
    assert {m.iTOW for m in last.values() if m.identity.startswith("NAV")} == {pvt.iTOW}
    assert list(last)[-1] == "NAV-EOE" and last["GNGGA" if "GNGGA" in last else "GPGGA"].lat == pytest.approx(41.18)


def test_the_fix_is_lost_under_water_and_returns_after_the_reacquisition() -> None:
    bench = Bench("NAV-PVT")
    bench.run(10.0)
    bench.surfaced = False
    bench.run(10.0)
    bench.surfaced = True
    bench.run(10.0)
    fixes = {m.second: m.fixType for m in bench.messages() if m.identity == "NAV-PVT"}
    assert [s for s in range(1, 30) if fixes[s] == 0] == [1, *range(11, 22)]
    assert len(fixes) >= 29, "an epoch for each second, with or without a fix"


@pytest.mark.long
def test_an_hour_without_an_error() -> None:
    bench = Bench("NAV-PVT", "NAV-EOE")
    count = 0
    for k in range(20):
        bench.surfaced = k % 3 != 1
        bench.run(180.0)
        count += sum(m.identity == "NAV-PVT" for m in bench.messages())
    assert count == pytest.approx(3600, abs=60)


def test_nmea_with_and_without_a_fix() -> None:
    bench = Bench()
    bench.surfaced = False
    bench.run(3.0)
    lines = bytes(bench.data).decode().split("\r\n")[:-1]
    assert [pynmea2.parse(line, check=True).sentence_type for line in lines[:3]] == ["GGA", "RMC", "VTG"]
    assert pynmea2.parse(lines[0]).gps_qual == 0 and pynmea2.parse(lines[1]).status == "V"
    bench.surfaced = True
    bench.run(5.0)
    assert pynmea2.parse(bytes(bench.data).decode().split("\r\n")[-4]).gps_qual == 1


#: sentences by which DUNE's driver configures a receiver of a LAUV; they have no check sum
DUNE = [f"$PUBX,40,{name},0,1,0,0,0,0" for name in ("VTG", "ZDA", "00")]
DUNE += [f"$PUBX,40,{name},0,0,0,0,0,0" for name in ("GLL", "RMC", "GGA")]


def test_the_start_of_dunes_driver() -> None:
    """It selects VTG, ZDA and PUBX,00, in which the accuracies are."""
    bench = Bench()
    for line in DUNE:
        bench.receiver.receive(line.encode() + b"\r\n")
    assert bench.receiver.errors == 1, "GLL is not emulated"
    bench.run(3.05)
    bench.data.clear()
    bench.run(1.0)
    lines = bytes(bench.data).decode().split("\r\n")[:-1]
    assert [line.split(",")[0] for line in lines] == ["$GPVTG", "$GPZDA", "$PUBX"]
    zda, fields = pynmea2.parse(lines[1], check=True), lines[2].partition("*")[0].split(",")
    assert (zda.day, zda.month, zda.year, zda.timestamp.second) == (1, 1, 2026, 4)
    assert len(fields) == 21 and fields[1] == "00" and fields[8] == "G3" and fields[18:] == ["11", "0", "0"]
    assert int(fields[3][:2]) + float(fields[3][2:]) / 60.0 == pytest.approx(41.18, abs=1e-7) and fields[4] == "N"
    assert int(fields[5][:3]) + float(fields[5][3:]) / 60.0 == pytest.approx(8.70, abs=1e-7) and fields[6] == "W"
    numbers = [float(fields[k]) for k in (7, 9, 10, 11, 12, 15, 16, 17)]
    assert numbers == pytest.approx([1.25, 1.5, 2.2, 7.2, 30.0, 0.9, 1.35, 0.9], abs=0.05)


def test_pubx_without_a_fix() -> None:
    bench = Bench("PUBX-00", "NMEA-ZDA")
    bench.surfaced = False
    bench.run(3.0)
    lines = bytes(bench.data).decode().split("\r\n")[:-1]
    fields = lines[-1].partition("*")[0].split(",")
    assert len(fields) == 21 and fields[8] == "NF" and fields[18] == "0" and lines[-2].startswith("$GPZDA,,,,,00,00*")


def test_sentences_between_frames() -> None:
    bench = Bench()
    bench.run(3.0)
    bench.data.clear()
    poll = b"$PUBX,00*33\r\n"
    for k in range(len(poll)):  # a frame ends a part of the line, and the bytes arrive one by one
        bench.receiver.receive(poll[k : k + 1])
    assert bytes(bench.data).startswith(b"$PUBX,00,000003.00,4110.8")
    bench.data.clear()
    bench.receiver.receive(frame(CFG, 0x08) + b"$PUBX,00*33\r\n" + frame(CFG, 0x08))
    assert bytes(bench.data).count(b"$PUBX") == 1 and bytes(bench.data).count(b"\xb5\x62") == 4
    bench.data.clear()
    for wrong in (
        b"$PUBX,00*34",
        b"$PUBX,41,1",
        b"$PUBX,40,GGA",
        b"$PUBX,40,GGA,0,x,0",
        b"$PUBX,40,GGA,0,300,0",
        b"$\xc3\xa9*00",
    ):
        bench.receiver.receive(wrong + b"\r\n")
    assert not bench.data and bench.receiver.errors == 6, "sentences have no answer"


def test_commands() -> None:
    bench, set_ = Bench(), pyubx2.SET
    bench.run(3.0)
    assert bench.accepts(pyubx2.UBXMessage("CFG", "CFG-MSG", set_, msgClass=1, msgID=7, rateUART1=1))
    assert bench.accepts(pyubx2.UBXMessage("CFG", "CFG-RATE", set_, measRate=200, navRate=1, timeRef=1))
    assert not bench.accepts(pyubx2.UBXMessage("CFG", "CFG-RATE", set_, measRate=10, navRate=1, timeRef=1))
    assert not bench.accepts(pyubx2.UBXMessage("CFG", "CFG-MSG", set_, msgClass=2, msgID=0x15, rateUART1=1)), "raw data"
    assert not bench.accepts(pyubx2.UBXMessage("CFG", "CFG-GNSS", pyubx2.POLL)) and bench.receiver.refused == 3
    port = pyubx2.UBXMessage("CFG", "CFG-PRT", set_, portID=1, baudRate=115200, inUBX=1, outUBX=1)
    assert bench.accepts(port)
    rate, done = bench.ask(CFG, 0x08)
    assert rate.measRate == 200 and done.identity == "ACK-ACK"
    port, _ = bench.ask(CFG, 0x00, b"\x01")
    assert (port.baudRate, port.outUBX, port.outNMEA) == (115200, 1, 0)
    bench.run(2.0)
    found = bench.messages()
    assert [m.identity for m in found] == ["NAV-PVT"] * 10, "five times a second, and no NMEA"
    assert bench.accepts(pyubx2.UBXMessage("CFG", "CFG-MSG", set_, msgClass=1, msgID=7, rateUART1=5))
    bench.run(2.0)
    assert len(bench.messages()) == 2
    assert bench.ask(NAV, 0x07)[0].fixType == 3 and bench.ask(NAV, 0x07)[0].identity == "NAV-PVT"
    version = bench.ask(0x0A, 0x04)[0]
    assert version.swVersion.startswith(b"ROM CORE 3.01") and version.extension_02.startswith(b"PROTVER=18.00")
    assert bench.ask(CFG, 0x04, struct.pack("<HBB", 0, 1, 0)) == [], "a reset has no answer"
    bench.run(1.6)
    assert {m.identity for m in bench.messages()} == {"GPGGA", "GPRMC", "GPVTG"}, "the settings of the start"


def test_damaged_and_long_frames_are_dropped_and_counted() -> None:
    bench = Bench()
    good = frame(CFG, 0x08)
    bench.receiver.receive(good[:-1] + b"\x00" + struct.pack("<2sBBH", b"\xb5\x62", 6, 8, MAX_CONTENT + 1) + good[:3])
    assert bench.data == b"" and bench.receiver.splitter.dropped == 2
    bench.receiver.receive(good[3:])
    assert [m.identity for m in bench.messages()] == ["CFG-RATE", "ACK-ACK"]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"\xb5\x62", b"\xb5\x62\x06\x01", frame(CFG, 0, bytes(20))])))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    bench = Bench()
    for part in parts:
        bench.receiver.receive(part)
    for identifier in (0x00, 0x01, 0x04, 0x08, 0x09, 0x24, 0x8A):
        bench.receiver.receive(frame(CFG, identifier, b"".join(parts)[:40]))
    bench.receiver.receive(bytes(MAX_CONTENT + 8))
    bench.messages()


SEA = """<time step="10 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="20 m"/></world>
<network keepalive_timeout="20 s"/><fleet><vehicle name="boat" model="jolner" position="100 -50 -0.1 m" client="optional">
<sensors><gps rate="5 Hz"/></sensors></vehicle></fleet>"""


@pytest.mark.system
def test_pyubx2_reads_the_receiver_of_a_boat_on_a_server(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(SEA).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "gps", path, "-s", server.name))
    places = device(processes, server, "ublox", "--tcp", "0", "--reacquisition", "0.5")
    server.send("start")
    host, _, port = places.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=150) as raw:
        raw.sendall(pyubx2.UBXMessage("CFG", "CFG-RATE", pyubx2.SET, measRate=200, navRate=1, timeRef=1).serialize())
        raw.sendall(pyubx2.UBXMessage("CFG", "CFG-MSG", pyubx2.SET, msgClass=1, msgID=7, rateUART1=1).serialize())
        found: list[Any] = []
        for _, message in pyubx2.UBXReader(raw, validate=pyubx2.VALCKSUM, quitonerror=pyubx2.ERR_RAISE):
            found += [message] * (message.identity == "NAV-PVT" and message.fixType == 3)
            if len(found) == 20:
                break
    north, east = 100.0 / 6_362_000.0, -50.0 / (6_387_000.0 * math.cos(math.radians(41.18)))
    assert found[-1].lat == pytest.approx(41.18 + math.degrees(north), abs=1e-4)
    assert found[-1].lon == pytest.approx(-8.70 + math.degrees(east), abs=1e-4)
    assert all(b.iTOW - a.iTOW >= 100 for a, b in itertools.pairwise(found)), "five times a second or less"
