"""The virtual Micro-Modem and acomms, the driver of its maker: two modems and four transponders in a real server."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI, Server
from wavesim_devices.micromodem.packets import RATES
from wavesim_world.config import LoadedConfig

pytest.importorskip("acomms")
pytestmark = [pytest.mark.system, pytest.mark.xdist_group("acoustics")]

BUOY = """<buoy name="{name}" model="buoy" position="{x} {y} 8 m"><transducer threshold="80 dB" recharge="0 s"
listen_low="20 kHz" listen_high="32 kHz" {more}</transducer>
<mooring anchor="{x} {y} 53 m" length="44.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>"""
MODEM = """turn_around="50 ms"><modem address="{}" frequency="25 kHz" bit_rate="80" preamble="0.9 s" payload="256"/>"""
TRANSPONDER = 'turn_around="20 ms" query="26 kHz" reply="{} kHz">'
BEACONS = ((25, 0, 400), (27, 0, -500), (28, 300, 700), (29, -600, 0))
DISTANCE = 300.0


@pytest.mark.parametrize("seconds", [0.0, pytest.param(60.0, marks=pytest.mark.long)])
def test_acomms_uses_two_modems(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], root: Path, tmp_path: Path, seconds: float
) -> None:
    """A round at each rate; the long run takes at least ten minutes of simulation time."""
    nodes = [("a", 0.0, 0, MODEM.format(1)), ("b", DISTANCE, 0, MODEM.format(2))]
    nodes += [(f"t{f}", x, y, TRANSPONDER.format(f)) for f, x, y in BEACONS]
    fleet = "".join(BUOY.format(name=n, x=x, y=y, more=more) for n, x, y, more in nodes)
    world = '<time step="10 ms"/><world><bed depth="200 m"/></world><models/>'
    server = serve(config(f"{world}<fleet>{fleet}</fleet>").path, "--speed", "20")
    links = [tmp_path / name for name in "ab"]
    devices = [
        subprocess.Popen(
            [*CLI, "device", "micromodem", link.name, "--address", str(k + 1), "--link", str(link)]
            + ["--port", str(server.port)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for k, link in enumerate(links)
    ]
    try:
        for k, device in enumerate(devices):
            assert device.stdout is not None and f"Micro-Modem {k + 1} of " in device.stdout.readline()
        server.send("start")
        judge = [sys.executable, "-W", "ignore", root / "tests/judges/micromodem.py", *links, tmp_path, str(seconds)]
        done = subprocess.run(judge, capture_output=True, text=True, timeout=240, check=False)
        ticks = int(str(server.status()["tick"]))
    finally:
        for device in devices:
            device.kill()
            device.wait()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["warnings"] == ["Unrecognized message: SNPNT"], "acomms knows the reply to CCPNT, not its echo"
    assert found["addresses"] == [1, 2] and found["info"] and found["TAT"]
    rounds = len(found["pings"])
    assert rounds >= len(RATES) and (not seconds or ticks >= 60_000)
    for source, destination, time in found["pings"]:
        assert (source, destination) == (2, 1) and time * 1500.0 == pytest.approx(DISTANCE, abs=0.2)
    for times in found["travel_times"]:
        true = [math.hypot(x, y) for _, x, y in BEACONS]
        assert [1500.0 * t for t in times] == pytest.approx(true, abs=0.3)
    assert [p for p in found["packets"] if not p[1] or p[2] != RATES[p[0]].frames] == []
    assert found["mini"] == [["1", "2", f"{k:04x}"] for k in range(rounds)] and all(found["flexible"])
    assert all(mode == 0 and snr > 10.0 and abs(speed) < 0.5 for mode, snr, speed, _ in found["statistics"])
