"""Virtual Nucleus 1000: vectors, commands, packets parsed by Nortek's driver as the judge, noise, and a real server."""

from __future__ import annotations

import logging
import math
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nucleus_driver import NucleusDriver

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.nursery import launch
from tests.sdk.test_devices import step
from wavesim_devices.nmea import sentence
from wavesim_devices.nucleus.device import PROMPT, TYPES, Nucleus
from wavesim_devices.nucleus.packets import checksum, packet
from wavesim_sdk.attach import SharedState
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
SENSORS = {t: t for t in TYPES}
NAN = math.nan
VALUES: dict[str, list[float]] = {
    "dvl": [0.5, -0.2, 0.1, 0.5, -0.2, 0.1, 0.27, 0.01, 0.02, NAN, 21.3, 21.4, 21.5, NAN, 20.0, 3.0],
    "ahrs": [0.1, -0.2, 4.0, 0.01, 0.02, 0.03],
    "imu": [0.1, -0.2, -9.8, 0.01, 0.02, 0.03],
    "magnetometer": [2e-5, -1e-6, 4e-5],
    "ctd": [20.1325, 12.5, 4.29, 35.0],
}


class Bench:
    """A Nucleus with a host at its command port, which has logged in."""

    def __init__(self) -> None:
        self.out, self.ticks = list[bytes](), 0
        self.nucleus = Nucleus(1500.0, SENSORS)
        self.values = dict(VALUES)
        self.host: Any = self.nucleus.connect("command", self.out.append)
        self.host.receive(b"nortek\r\n")
        self.out.clear()

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * 40.0)):
            self.ticks += 1
            self.nucleus.step(step(self.ticks / 40.0, **self.values))

    def ask(self, text: str) -> str:
        self.out.clear()
        self.host.receive(text.encode() + b"\r\n")
        return b"".join(self.out).decode()

    def packets(self) -> dict[int, list[dict[str, Any]]]:
        """Packets since the last call by identifier, parsed by the driver, which must accept both check sums."""
        driver, found = NucleusDriver(), dict[int, list[dict[str, Any]]]()
        for data in self.out:
            header_good, data_good, fields = driver.parser.get_packet(bytearray(data))
            assert header_good and data_good and len(data) == fields["sizeHeader"] + fields["sizeData"]
            found.setdefault(data[2], []).append(fields)
        self.out.clear()
        return found


def test_check_sums() -> None:
    assert packet(0xD2, b"")[:8].hex() == "a50ad22000000000" and checksum(bytes.fromhex("a50ad22000000000")) == 0xE103
    assert sentence("PNOR,OK") == b"$PNOR,OK*2B\r\n" and sentence("PNOR,ERROR") == b"$PNOR,ERROR*77\r\n"


def test_the_password() -> None:
    out = list[bytes]()
    nucleus = Nucleus(1500.0, SENSORS)
    host = nucleus.connect("command", out.append)
    host.receive(b"START\r\n")
    assert out == [PROMPT, PROMPT] and not nucleus.is_measuring
    host.receive(b"nortek\r\n")
    assert out[-1].startswith(b"Welcome to Nortek")
    serial = list[bytes]()
    nucleus.connect("serial", serial.append).receive(b"ID,STR\r\n")
    assert serial == [b'"Nucleus1000"\r\nOK\r\n']


def test_packets_carry_the_values_of_the_sensors() -> None:
    bench = Bench()
    for command in ('SETIMU,DS="ON"', 'SETNAV,DS="ON"', 'SETBT,WT="ON"', "SETMISSION,LAT=41.18,LONG=-8.7,DECL=-2.5"):
        assert bench.ask(command) == "OK\r\n"
    stream = list[bytes]()
    bench.nucleus.connect("stream", stream.append)
    bench.run(1.0)
    assert bench.ask("START") == "OK\r\n"
    bench.out.clear()
    bench.run(10.0)
    assert stream == bench.out, "the same packets at both ports"
    found = bench.packets()
    counts = {k: len(v) for k, v in found.items()}
    assert counts == pytest.approx({0xB4: 20, 0xBE: 20, 0xAA: 20, 0xD2: 100, 0xDC: 100, 0x82: 400, 0x87: 100}, abs=1)
    bottom, water, ahrs, ins = (found[k][-1] for k in (0xB4, 0xBE, 0xD2, 0xDC))
    assert [bottom[f"velocity{a}"] for a in "XYZ"] == pytest.approx([0.5, -0.2, 0.1])
    assert [bottom[f"velocityBeam{k}"] for k in (1, 2, 3)] == pytest.approx([0.27, 0.01, 0.02])
    assert [bottom[f"distanceBeam{k}"] for k in (1, 2, 3)] == pytest.approx([21.3, 21.4, 21.5])
    assert all(v for k, v in bottom.items() if k.startswith("status.")) and bottom["pressure"] == pytest.approx(10.0)
    assert bottom["timeStamp"] == 1_767_225_600 + 11 and bottom["flags.posixTime"] is True
    assert water["velocityX"] == pytest.approx(0.5) and water["status.beam1DistanceValid"] is False
    assert (
        found[0xAA][-1]["altimeterDistance"] == pytest.approx(20.0) and found[0xAA][-1]["status.altimeterDistanceValid"]
    )
    angles = [ahrs[f"ahrsData.{a}"] for a in ("roll", "pitch", "heading")]
    assert angles == pytest.approx([math.degrees(a) for a in (0.1, -0.2, 4.0)])
    assert ahrs["declination"] == -2.5 and ahrs["depth"] == pytest.approx(9.93, abs=0.01)
    imu, field = found[0x82][-1], found[0x87][-1]
    assert (
        imu["accelerometer.z"] == pytest.approx(-9.8) and imu["gyro.y"] == pytest.approx(0.02) and imu["status.isValid"]
    )
    assert field["magnetometer.x"] == pytest.approx(0.2)
    speed = math.hypot(ins["velocityNedX"], ins["velocityNedY"])
    assert ins["statusIns.latLonIsValid"] is True and ins["speedOverGround"] == pytest.approx(speed)
    assert ins["positionFrameX"] == pytest.approx(9.5 * ins["velocityNedX"], abs=0.5)
    assert ins["latitude"] == pytest.approx(41.18 + math.degrees(ins["positionFrameX"] / 6_371_000.0), abs=1e-6)
    assert ins["velocityNucleusX"] == pytest.approx(0.5) and ins["turnRateZ"] == pytest.approx(math.degrees(0.03))
    assert bench.ask("STOP") == "OK\r\n"
    bench.out.clear()
    bench.run(1.0)
    assert bench.out == []


def test_validity_above_the_range() -> None:
    bench = Bench()
    bench.ask("SETMISSION,RANGE=21.45")
    bench.ask("START")
    bench.out.clear()
    bench.run(1.0)
    found = bench.packets()
    bottom = found[0xB4][-1]
    assert [bottom[f"status.beam{k}DistanceValid"] for k in (1, 2, 3)] == [True, True, False]
    assert bottom["status.xVelocityValid"] is False and bottom["velocityX"] == 0.0
    assert found[0xAA][-1]["status.altimeterDistanceValid"] is False


def test_settings() -> None:
    bench = Bench()
    assert bench.ask("GETAHRS") == '10,0,"ON",210\r\nOK\r\n' and bench.ask("GETAHRS,FREQ") == "10\r\nOK\r\n"
    assert bench.ask("$PNOR,GETAHRS,FREQ*2A").startswith("$PNOR,ERROR*77")
    asked = sentence("PNOR,GETAHRS,FREQ").decode().strip()
    assert bench.ask(asked) == (sentence("PNOR,GETAHRS,FREQ=10") + sentence("PNOR,OK")).decode()
    assert bench.ask("SETAHRS,FREQ=20") == "OK\r\n" and bench.ask("GETAHRS,FREQ") == "20\r\nOK\r\n"
    assert bench.ask("SETAHRS,FREQ=500") == "ERROR\r\n" and "limits [1;100]" in bench.ask("GETERROR")
    assert bench.ask("SETINST,ROTXY=90") == "ERROR\r\n", "not emulated"
    assert bench.ask("FIELDCAL") == "ERROR\r\n" and bench.ask("SETXY,A=1") == "ERROR\r\n"
    assert bench.ask("GETTRIGLIM,FREQ") == "([1;8])\r\nOK\r\n" and bench.ask("GETTRIG,NO") == "ERROR\r\n"
    assert bench.ask("SAVE,ALL") == "OK\r\n" and bench.ask("SETDEFAULT,CONFIG") == "OK\r\n"
    assert bench.ask("GETAHRS,FREQ") == "10\r\nOK\r\n" and bench.ask("RESTORE,ALL") == "OK\r\n"
    assert bench.ask("GETAHRS,FREQ") == "20\r\nOK\r\n" and bench.ask("SAVE,MORE") == "ERROR\r\n"
    assert bench.ask('SETCLOCKSTR,TIME="2030-01-01 00:00:00"') == "OK\r\n" and bench.ask("SETCLOCKSTR") == "ERROR\r\n"
    assert bench.ask("GETCLOCKSTR") == '"2030-01-01 00:00:00"\r\nOK\r\n'
    lines = bench.ask("$PNOR,GETALL*38").split("\r\n")[:-1]
    assert len(lines) > 15 and lines[-1] == "$PNOR,OK*2B" and any("SETAHRS,FREQ=20" in line for line in lines)
    assert bench.ask("START") == "OK\r\n" and bench.ask("SETAHRS,FREQ=20") == "ERROR\r\n" == bench.ask("START")
    bench.out.clear()
    bench.run(2.0)
    assert len(bench.packets()[0xD2]) == pytest.approx(40, abs=1)


def test_triggered_pings() -> None:
    bench = Bench()
    assert bench.ask('SETTRIG,SRC="COMMAND"') == "OK\r\n" and bench.ask("TRIG") == "ERROR\r\n"
    bench.ask("START")
    bench.out.clear()
    bench.run(1.0)
    assert 0xB4 not in bench.packets()
    assert bench.ask("TRIG") == bench.ask("TRIG") == "OK\r\n"
    bench.out.clear()
    bench.run(1.0)
    assert len(bench.packets()[0xB4]) == 2


def test_a_host_that_left_harms_no_other() -> None:
    bench = Bench()
    other = list[bytes]()
    second = bench.nucleus.connect("stream", other.append)
    bench.ask("START")
    second.close()
    bench.run(1.0)
    assert other == [] and len(bench.out) > 1


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([b"$PNOR,", b"SETBT,", b"GETALL\r\n", b"*", b"=", b"\r\n", b"START"])
    )
)
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    bench = Bench()
    for part in parts:
        bench.host.receive(part)
    bench.run(0.1)
    bench.host.receive(b"\r\nSTOP\r\n")
    assert bench.ask("ID,SN") == "100001\r\nOK\r\n"


SEA = """<time step="5 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="20 m"/></world>
<network keepalive_timeout="20 s"/><fleet><vehicle name="boat" model="jolner" position="0 0 -0.1 m" attitude="0 0 30 deg"
 client="optional"><sensors><dvl rate="8 Hz" maximum="50 m" position="0 0 0.5 m"><beam azimuth="0 deg" elevation="70 deg"/>
<beam azimuth="120 deg" elevation="70 deg"/><beam azimuth="240 deg" elevation="70 deg"/></dvl><ahrs rate="20 Hz"/>
<imu rate="20 Hz"/><ctd rate="2 Hz" position="0 0 0.6 m"/></sensors></vehicle></fleet>"""


@pytest.mark.system
def test_the_driver_of_nortek_on_a_server(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It connects, configures, measures and stops, unchanged."""
    path = config(SEA).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "all", path, "-s", server.name))
    ports = device(processes, server, "nucleus", "--command", "tcp:0", "--stream", "tcp:0")
    places = dict(p.split() for p in ports.split(", "))
    server.send("start")
    driver, found = NucleusDriver(), dict[int, list[dict[str, Any]]]()
    driver.set_tcp_configuration(host="127.0.0.1", port=int(places["command"].rpartition(":")[2]))
    with caplog.at_level(logging.WARNING):
        assert driver.connect("tcp") is True and driver.connection.firmware_version is not None
    assert b"OK\r\n" in driver.commands.set_trig(freq=4) and b"OK\r\n" in driver.start_measurement()
    limit = time.monotonic() + 150.0
    while len(found.get(0xB4, ())) < 20 and time.monotonic() < limit:
        if (fields := driver.read_packet(timeout=1.0, _suppress_warning=True)) is not None:
            found.setdefault(int(fields["id"]), []).append(fields)
    assert driver.read_condition() is None, "a packet with a wrong check sum"
    assert b"OK\r\n" in b"".join(driver.stop()) and driver.disconnect()
    state = SharedState(server.name)
    truth = state.snapshot().state[state.row("boat")]
    bottom = [b for b in found[0xB4] if b["status.xVelocityValid"]]
    assert len(bottom) > 15 and sum(b["velocityX"] for b in bottom) / len(bottom) == pytest.approx(0.0, abs=0.1)
    altitude = [a["altimeterDistance"] for a in found[0xAA] if a["status.altimeterDistanceValid"]]
    assert altitude[-1] == pytest.approx(20.0 - 0.5 - truth["p_WB_W"][2], abs=0.3)
    assert found[0xD2][-1]["ahrsData.heading"] == pytest.approx(30.0, abs=5.0)
