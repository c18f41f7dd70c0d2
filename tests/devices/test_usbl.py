"""Virtual ship USBL: vectors of its telegrams, interrogations, and two beacons in the sea of a real server."""

from __future__ import annotations

import math
import socket
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click
import numpy as np
import pynmea2
import pytest

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.devices.water import DELAY_S, SPEED, Water
from tests.nursery import launch
from tests.sdk.test_devices import value
from wavesim_devices import usbl_telegrams as t
from wavesim_devices.cli_positioning import _beacons
from wavesim_devices.usbl import TELEGRAMS, ShipUsbl, UsblBeacon, UsblOptions
from wavesim_devices.usbl_telegrams import BeaconFix, ShipState
from wavesim_sdk.attach import SharedState
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.tables import SignalKind
from wavesim_sdk.wire.state import Sensors
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
NOON = datetime(2017, 12, 18, 12, 45, 44, 449_000, UTC)


def angle(degrees: int, minutes: float) -> float:
    return math.radians(degrees + minutes / 60.0)


def test_vectors() -> None:
    fix = BeaconFix(NOON, 1, 3.0, -4.0, 1013.1, 5.0, 6.0, angle(43, 5.25355), angle(6, 31.76852))
    assert t.ptsag(16068, fix) == (
        b"$PTSAG,#16068,124544.449,18,12,2017,1,4305.25355,N,00631.76852,E,F,1013.10,1,9999.00*23\r\n"
    )
    ranger = BeaconFix(
        NOON.replace(hour=15, minute=30, second=5, microsecond=253_000),
        24,
        0.0,
        0.0,
        425.3,
        0.0,
        0.0,
        math.radians(50.02495),
        math.radians(8.873323),
    )
    assert t.psonlld(ranger) == b"$PSONLLD,153005.253,24,A,50.02495,8.873323,425.3,,,,,,,,*3E\r\n"
    body = t.psimssb(fix, "H").partition(b"*")[0]
    assert body == b"$PSIMSSB,124544.44,B01,A,,C,H,M,-4.00,3.00,1013.10,0.0,N,,"
    assert t.psimssb(fix, "E").split(b",")[8:10] == [b"6.00", b"5.00"]
    assert t.psimssb_lost(NOON, 7, "E").partition(b"*")[0] == b"$PSIMSSB,124544.44,B07,V,,C,E,M,,,,,N,,"
    assert t.ptsax(2, fix).split(b",")[6:] == [b"1", b"3.00", b"-4.00", b"F", b"1013.10", b"1", b"9999.00*2A\r\n"]
    ship = ShipState(NOON, angle(-43, 0.0), -angle(6, 30.0), 2.5, math.radians(359.999), 0.01, -0.02)
    assert t.ptsah(ship).startswith(b"$PTSAH,0,0.00,2.50*")
    assert t.psimsns(ship).startswith(b"$PSIMSNS,124544.44,USBL,1,1,0.57,-1.15,,0.00,,,0.0,,M*")
    assert t.ptsag_ship(3, ship).split(b",")[6:12] == [b"0", b"4300.00000", b"S", b"00630.00000", b"W", b"F"]
    fields = {name: len(line.split(b",")) for name, line in (("A", t.psonlld(ranger)), ("V", t.psonlld_lost(NOON, 2)))}
    assert fields["A"] == fields["V"]
    for line in (t.ptsag(1, fix), t.psimsns(ship), t.psonlld_lost(NOON, 2), t.psimssb(fix, "H")):
        assert pynmea2.parse(line.decode(), check=True)


class Ship:
    """A ship in the minimal medium, with two beacons that are modems."""

    def __init__(self, *telegrams: str, **options: Any) -> None:
        self.water, self.said = Water(), bytearray()
        self.node = self.water.node(9, direction=(math.radians(30.0), math.radians(60.0)))
        self.beacon = self.water.node(1)
        beacons = (UsblBeacon(4, 1), UsblBeacon(5, 2))
        self.device = ShipUsbl(
            self.node,  # type: ignore[arg-type]
            self.said.extend,
            {"ahrs": "ahrs", "gps": "gps"},
            UsblOptions(beacons, telegrams, **options),
        )
        self.node.device = self
        self.gps = True

    def step(self, step: Any) -> None:
        ns = step.state.time_ns
        sensors = {"ahrs": value("ahrs", ns, [0.0, 0.0, math.radians(90.0)])}
        if self.gps:
            sensors["gps"] = value("gps", ns, [angle(41, 0.0), angle(8, 0.0), 0.0, 1.0, 0.0, 1.0, 1.0, 9.0])
        step.state.sensors = Sensors(sensors)
        self.device.step(step)

    def lines(self) -> list[str]:
        found = [line.decode().partition("*")[0] for line in bytes(self.said).split(b"\r\n") if line]
        self.said.clear()
        return found


def test_a_reply_and_a_loss() -> None:
    ship = Ship(*TELEGRAMS, period=1.0, head_offset=(2.0, 0.0, 3.0))
    ship.water.advance(3.0)
    lines = ship.lines()
    names = [line.split(",")[0][1:] for line in lines]
    first = ["PSIMSSB", "PSIMSNS", "PTSAG", "PTSAG", "PTSAX", "PTSAH", "PSONLLD"]
    assert names == [*first, "PSIMSSB", "PSONLLD", *first]
    r = DELAY_S * SPEED
    forward, starboard = 2.0 + r * 0.5 * math.cos(math.radians(30.0)), r * 0.25
    depth = 3.0 + r * math.sin(math.radians(60.0))
    assert lines[0].split(",")[2:] == [
        *("B04", "A", "", "C", "H", "M", f"{starboard:.2f}", f"{forward:.2f}", f"{depth:.2f}", "0.0", "N", "", "")
    ]
    assert lines[7].split(",")[2:4] == ["B05", "V"] and lines[8].split(",")[2:4] == ["5", "V"]
    found = lines[6].split(",")
    p = Origin(angle(41, 0.0), angle(8, 0.0)).ned(math.radians(float(found[4])), math.radians(float(found[5])))
    assert p[:2] == pytest.approx((-starboard, forward), abs=0.01), "north and east at heading 90"
    assert lines[3].split(",")[1] == "#00001" and lines[12].split(",")[1] == "#00002"
    assert (ship.device.replies, ship.device.losses) == (2, 1)
    ship.device.receive(b"\xff" * 1_000_000)
    assert ship.device.ignored == 1_000_000 and not ship.said


def test_positions_of_the_ship_are_needed_for_geographic_telegrams_only() -> None:
    ship = Ship("PTSAG", "PTSAX", "PSONLLD")
    ship.gps = False
    ship.water.advance(1.0)
    assert [line[:6] for line in ship.lines()] == ["$PTSAX"]
    assert ship.device.options.period == 2.0


def test_transponders_are_queried_by_frequency_and_code() -> None:
    ship = Ship()
    object.__setattr__(ship.device.options, "beacons", (UsblBeacon(3, 0, 26e3, 102),))
    ship.water.advance(0.05)
    _, _, signal = ship.water.sent[0]
    assert (signal["kind"], signal["frequency"], signal["code"]) == (SignalKind.PULSE, 26e3, 102)


def test_beacons_of_the_command_line() -> None:
    found = _beacons(None, None, ("1=5", "2=25kHz/102", "3=26 kHz"))
    assert found == (UsblBeacon(1, 5), UsblBeacon(2, 0, 25e3, 102), UsblBeacon(3, 0, 26e3))
    for bad in ("1", "0=5", "1=0", "100=5", "1=x", "1=25kHz/x", "1=25kHz/70000", "1=5/3", "x=5"):
        with pytest.raises(click.BadParameter, match="use NUMBER=ADDRESS"):
            _beacons(None, None, (bad,))
    with pytest.raises(click.BadParameter, match="different for each beacon"):
        _beacons(None, None, ("1=5", "1=6"))


# ------------------------------------------------------------------ a real server

SEA = """<time step="10 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="300 m"/></world>
<network keepalive_timeout="20 s"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" attitude="0 0 30 deg" client="optional">
<transducer preset="gaps-m7" position="0 0 1.1 m"><modem address="9" frequency="25 kHz"/></transducer>
<sensors><gps rate="5 Hz" noise="0" position="0 0 -1 m"/><ahrs rate="20 Hz"/></sensors></vehicle>
<buoy name="near" model="buoy" position="80 -40 90 m"><transducer threshold="80 dB"><modem address="5" frequency="25 kHz"/>
</transducer><mooring anchor="80 -40 299 m" length="208.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>
<buoy name="far" model="buoy" position="-60 150 120 m"><transducer threshold="80 dB" query="22 kHz" reply="28 kHz"/>
<mooring anchor="-60 150 299 m" length="178.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy></fleet>"""
BEACONS = {"B01": "near", "B02": "far", "B03": ""}


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
def test_beacons_of_a_boat(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(SEA).path
    server = serve(path, "--speed", "4")
    processes.append(launch("emulate", "all", path, "-s", server.name))
    options = ["--beacon", "1=5", "--beacon", "2=22kHz", "--beacon", "3=77", "--orientation", "E"]
    place = device(processes, server, "usbl", *options, "--head-offset", "0 0 1 m", "--tcp", "0")
    host, _, port = place.rpartition(":")
    server.send("start")
    state = SharedState(server.name)
    errors: list[np.ndarray] = []
    with socket.create_connection((host, int(port)), timeout=120) as raw:
        file, lost = raw.makefile("r"), 0
        while len(errors) < 12 or lost < 4:
            line = file.readline()
            fields = pynmea2.parse(line, check=True).data
            name = BEACONS[fields[2]]
            if fields[3] == "V":
                lost += 1
                assert not name or not errors, "a beacon that does not exist, or the first reply before the compass"
                continue
            true = state.snapshot().state
            boat, beacon = (true[state.row(n)]["p_WB_W"] for n in ("boat", name))
            east, north, depth = map(float, fields[8:11])
            errors.append(np.array([north, east, depth]) - [*(beacon - boat)[:2], beacon[2]])
    assert np.abs(np.median(errors, 0)).max() < 1.5 and np.abs(errors).max() < 8.0, errors
