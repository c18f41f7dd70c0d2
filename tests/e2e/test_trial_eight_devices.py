"""One trial with eight devices on three vehicles, among them modems of three makes: two runs have the same hash.

The on-board program of each vehicle knows only the ports of its instruments. It sends each of them the commands of its
protocol and records what it receives, in its lockstep steps. The readers of the manufacturers and of others judge the
records.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import struct
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from operator import xor
from pathlib import Path
from typing import Any

import pytest
import pyubx2
from brping import PingMessage, PingParser, definitions
from nucleus_driver import NucleusDriver

from tests.conftest import run_trial
from tests.e2e.test_trial_devices import free_port
from wavesim_devices.seatrac import messages as seatrac
from wavesim_sdk.log import Log, read
from wavesim_sdk.tables import Outcome

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("eight")]

#: it sends `(time, bytes)` of a plan to each port, and keeps what it receives with its time; the plan is a JSON file
PROGRAM = """
import json, socket, sys
from pathlib import Path
from wavesim_sdk.broker import Broker

here = dict(zip(sys.argv[1::2], sys.argv[2::2]))
plan = json.loads(Path(here["--vehicle"] + ".json").read_text())
with Broker(here["--vehicle"], ("127.0.0.1", int(here["--port"])), lockstep=0.1) as broker:
    steps = broker.steps()
    next(steps)  # the devices have joined by then
    drivers = {}
    for name, (port, commands) in plan.items():
        drivers[name] = socket.create_connection(("127.0.0.1", port)), commands
        drivers[name][0].setblocking(False)
    for step in steps:
        for name, (driver, commands) in drivers.items():
            try:
                print(json.dumps([name, round(step.time, 3), driver.recv(1 << 20).hex()]), flush=True)
            except BlockingIOError:
                pass
            while commands and commands[0][0] <= step.time + 1e-9:
                driver.sendall(bytes.fromhex(commands.pop(0)[1]))
        broker.answer([0.0] * len(broker.actuators))
"""
SEA = """<time step="10 ms" duration="10 s" pace="fast"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="30 m"/></world>
<fleet>
<vehicle name="auv" model="lauv" position="0 0 10 m" client="required">
<transducer preset="umodem-fsk" threshold="80 dB" recharge="0 s"><modem address="1" payload="256"/></transducer>
<sensors><dvl rate="5 Hz" angle="22.5 deg" minimum="0.05 m" maximum="50 m"/><ahrs rate="20 Hz"/><imu rate="20 Hz"/></sensors>
<program run="driver.py"/>
<device name="micromodem" options="--address 1 --tcp {micromodem}"/>
<device name="waterlinked-dvl" options="--json tcp:{dvl} --pd4 off --pd6 off --http off"/>
<device name="vectornav" options="--tcp {vectornav}"/></vehicle>
<vehicle name="rov" model="bluerov2-heavy" position="60 0 10 m" client="required">
<transducer preset="seatrac-x150" threshold="80 dB"><modem address="1"/></transducer>
<sensors><dvl rate="5 Hz" maximum="50 m"><beam azimuth="0 deg" elevation="70 deg"/><beam azimuth="120 deg" elevation="70 deg"/>
<beam azimuth="240 deg" elevation="70 deg"/></dvl><ahrs rate="20 Hz"/><imu rate="20 Hz"/><pressure/><echosounder rate="5 Hz"/></sensors>
<program run="driver.py"/>
<device name="seatrac" options="--beacon 1 --tcp {seatrac}"/>
<device name="nucleus" options="--command tcp:{nucleus} --stream off"/>
<device name="ping1d" options="--tcp {ping1d}"/></vehicle>
<vehicle name="boat" model="jolner" position="0 60 -0.1 m" client="required">
<transducer preset="evologics-18-34" position="0 0 1.1 m" threshold="80 dB"><modem address="1" payload="128"/></transducer>
<sensors><gps rate="5 Hz" position="0 0 -1 m"/></sensors>
<program run="driver.py"/>
<device name="s2c" options="--address 1 --bit-rate 976 --frequency 26kHz --source-level 184 --net tcp:{s2c}"/>
<device name="ublox" options="--tcp {ublox}"/></vehicle>
<buoy name="gateway" model="buoy" position="80 60 0 m">
<transducer preset="umodem-fsk" position="0 0 2 m" threshold="80 dB"><modem address="4"/></transducer></buoy>
<buoy name="beacon" model="buoy" position="60 40 0 m">
<transducer preset="seatrac-x110" position="0 0 2 m" threshold="80 dB"><modem address="4"/></transducer></buoy>
<buoy name="station" model="buoy" position="70 60 0 m">
<transducer preset="evologics-18-34" position="0 0 2 m" threshold="80 dB"><modem address="4" payload="128"/></transducer>
<device name="s2c" options="--address 4 --bit-rate 976 --frequency 26kHz --source-level 184 --net pty:" period="20 ms"/></buoy>
</fleet>"""
Plan = dict[str, list[tuple[float, bytes]]]


def vn(body: str) -> bytes:
    return f"$VN{body}*XX\r\n".encode()


def ping1d(message: int, **fields: int) -> bytes:
    request = PingMessage(message)
    for name, value in fields.items():
        setattr(request, name, value)
    return bytes(request.pack_msg_data())


def ubx(name: str, **fields: int) -> bytes:
    data: bytes = pyubx2.UBXMessage("CFG", name, pyubx2.SET, **fields).serialize()
    return data


SEATRAC_PING = seatrac.frame(seatrac.Command.PING_SEND, bytes([4, seatrac.MessageType.REQUEST_U]), b"#")
#: commands by vehicle and device; a Micro-Modem and a SeaTrac send at the same time once
PLANS: dict[str, Plan] = {
    "auv": {
        "micromodem": [(0.5, b"$CCMPC,1,4\r\n"), (6.0, b"$CCMPC,1,4\r\n")],
        "dvl": [(0.5, b'{"command":"get_config"}'), (5.0, b'{"command":"reset_dead_reckoning"}')],
        "vectornav": [(0.5, vn("RRG,01")), (1.0, vn("WRG,06,1")), (1.0, vn("WRG,07,10"))],
    },
    "rov": {
        "seatrac": [(4.0, SEATRAC_PING), (6.3, SEATRAC_PING)],
        "nucleus": [(0.5, b"nortek\r\n"), (0.6, b"SETTRIG,FREQ=4\r\n"), (0.7, b"START\r\n"), (9.0, b"STOP\r\n")],
        "ping1d": [
            (float(t), ping1d(definitions.COMMON_GENERAL_REQUEST, requested_id=definitions.PING1D_DISTANCE))
            for t in range(1, 10)
        ],
    },
    "boat": {
        "s2c": [(3.0, b"AT*SENDIM,5,4,ack,hello\n"), (3.8, b"AT?T\n")],
        "ublox": [
            (0.5, ubx("CFG-RATE", measRate=200, navRate=1, timeRef=1)),
            (0.5, ubx("CFG-MSG", msgClass=1, msgID=7, rateUART1=1)),
        ],
    },
}


def nucleus_packets(data: bytes) -> dict[int, list[dict[str, Any]]]:
    """Packets among the lines of a command port, by identifier; the manufacturer's driver accepts both check sums."""
    driver, found, at = NucleusDriver(), dict[int, list[dict[str, Any]]](), data.find(b"\xa5\x0a")
    while at >= 0:
        size = data[at + 1] + int.from_bytes(data[at + 4 : at + 6], "little")
        header_good, data_good, fields = driver.parser.get_packet(bytearray(data[at : at + size]))
        assert header_good and data_good
        found.setdefault(data[at + 2], []).append(fields)
        at = data.find(b"\xa5\x0a", at + size)
    return found


@dataclass
class Trial:
    """A run: its log, its content hash, and what each driver received, with the times of its steps."""

    log: Log
    received: dict[str, list[tuple[float, bytes]]]
    outputs: dict[str, str]  #: of the devices, by the names of their files

    def __getitem__(self, device: str) -> bytes:
        return b"".join(data for _, data in self.received[device])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration of the trial, its program and the plans of the vehicles."""
    folder = tmp_path_factory.mktemp("eight")
    ports = {device: free_port() for plan in PLANS.values() for device in plan}
    (folder / "driver.py").write_text(PROGRAM)
    (folder / "config.xml").write_text(f"<wavesim>{SEA.format(**ports)}</wavesim>")
    for vehicle, plan in PLANS.items():
        commands = {d: (ports[d], [(t, c.hex()) for t, c in sent]) for d, sent in plan.items()}
        (folder / f"{vehicle}.json").write_text(json.dumps(commands))
    return folder


def run(folder: Path, label: str, *more: str) -> Trial:
    name = f"eight-{label}-{os.getpid()}"
    done = run_trial(folder / "config.xml", folder, name, *more)
    assert done.returncode == 0, done.stderr
    received: dict[str, list[tuple[float, bytes]]] = {}
    for vehicle in PLANS:
        for line in (folder / name / f"program-{vehicle}.txt").read_text().splitlines():
            device, time, data = json.loads(line)
            received.setdefault(device, []).append((time, bytes.fromhex(data)))
    outputs = {p.stem: p.read_text() for p in (folder / name).glob("device-*.txt")}
    return Trial(read(folder / name / "run.mcap"), received, outputs)


@pytest.fixture(scope="module")
def trial(folder: Path) -> Trial:
    return run(folder, "first")


def test_each_driver_used_its_device(trial: Trial) -> None:
    assert trial.received.keys() == {d for plan in PLANS.values() for d in plan}
    assert len(trial.outputs) == 9 and all(len(t.splitlines()) == 2 for t in trial.outputs.values()), trial.outputs
    # the navigation sensors
    reports = [json.loads(line) for line in trial["dvl"].splitlines()]
    answers = [r for r in reports if "response_to" in r]
    assert [(a["response_to"], a["success"]) for a in answers] == [("get_config", True), ("reset_dead_reckoning", True)]
    speeds = [r for r in reports if r.get("type") == "velocity"]
    assert len(speeds) >= 45 and all(r["velocity_valid"] for r in speeds)
    assert all(abs(r["altitude"] - 20.0) < 0.5 for r in speeds)
    lines = trial["vectornav"].splitlines()
    for line in lines:
        text, _, check = line[1:].partition(b"*")
        assert reduce(xor, text) == int(check, 16), line
    assert b"$VNRRG,01,VN-100*5A" in lines and sum(line.startswith(b"$VNYPR") for line in lines) >= 85
    found = nucleus_packets(trial["nucleus"])
    assert len(found[0xB4]) >= 30 and found[0xAA][-1]["altimeterDistance"] == pytest.approx(20.0, abs=0.5)
    assert trial["nucleus"].endswith(b"OK\r\n"), "it has stopped"
    parser, distances = PingParser(), list[int]()
    for byte in trial["ping1d"]:
        if parser.parse_byte(byte) == PingParser.NEW_MESSAGE:
            distances.append(parser.rx_msg.distance)
    assert parser.errors == 0 and len(distances) == 9 and all(abs(d - 20_000) < 500 for d in distances)
    messages = [m for _, m in pyubx2.UBXReader(io.BytesIO(trial["ublox"]), quitonerror=pyubx2.ERR_RAISE)]
    fixes = [m for m in messages if m.identity == "NAV-PVT" and m.fixType == 3]
    assert Counter(m.identity for m in messages)["ACK-ACK"] == 2 and len(fixes) >= 30
    assert fixes[-1].lon == pytest.approx(
        -8.70 + math.degrees(60.0 / (6_387_000.0 * math.cos(math.radians(41.18)))), abs=2e-5
    )


def test_modems_of_three_makes_share_the_sea(trial: Trial) -> None:
    """Each reaches the modem of its make, and none reads another's signals; the loud one hides the other's."""
    travels = [float(t) for t in re.findall(rb"\$CAMPR,4,1,([0-9.]+)", trial["micromodem"])]
    assert [1500.0 * t for t in travels] == pytest.approx([math.hypot(80.0, 60.0, 8.0)] * 2, abs=1.0)
    assert trial["s2c"].startswith(b"OK\r\nDELIVEREDIM,4\r\n")
    assert 1.5e-3 * int(trial["s2c"].splitlines()[2]) == pytest.approx(70.0, abs=1.0)
    answers = [seatrac.parse("#" + line[1:].decode()) for line in trial["seatrac"].splitlines()]
    said = [a for a in answers if a is not None and a[0] not in (seatrac.Command.STATUS, seatrac.Command.PING_SEND)]
    assert [command for command, _ in said] == [seatrac.Command.PING_RESPONSE, seatrac.Command.PING_ERROR]
    (distance,) = struct.unpack_from("<H", said[0][1], 24)
    assert distance * 0.1 == pytest.approx(math.hypot(40.0, 8.0), abs=1.0)
    assert said[1][1] == bytes([seatrac.TIMEOUT, 4])
    received = trial.log.series["/acoustics/reception"].records
    makes = ["umodem", "seatrac", "s2c"] * 2  # of auv, rov, boat and their counterparts
    outcomes = Counter((Outcome(int(r["outcome"])), makes[r["source"]] == makes[r["receiver"]]) for r in received)
    assert outcomes[Outcome.HEARD, True] == 8 and outcomes[Outcome.COLLISION, True] == 1, outcomes
    assert {o for o, same in outcomes if not same} == {Outcome.FOREIGN, Outcome.OUT_OF_BAND}, outcomes


@pytest.mark.parametrize("where", [(), ("--in-process",)], ids=["network", "in-process"])
def test_another_run_is_the_same(trial: Trial, folder: Path, where: tuple[str, ...]) -> None:
    again = run(folder, "again", *where)
    assert again.received == trial.received
    assert again.log.content_hash == trial.log.content_hash
