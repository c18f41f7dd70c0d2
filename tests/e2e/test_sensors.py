"""Sensors of a running server: started together, killed, frozen, replaced, and with injected faults; NMEA read by other
programs.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynmea2
import pytest

from tests import gpsd
from tests.conftest import CLI, Server, wavesim
from tests.nursery import launch
from wavesim_devices import ping1d
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.shared_memory import OWNER
from wavesim_sdk.wire.state import Sensors
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("sensors"), pytest.mark.timeout(200)]

FLEET = """<time step="4 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="35 m"/><wind speed="5 m/s" direction="10 deg"/></world><network keepalive_timeout="20 s"/>
<fleet><vehicle name="boat" model="jolner" position="100 -50 -0.1 m" attitude="0 0 30 deg" client="optional">
<sensors><gps rate="5 Hz" noise="0" position="0 0 -1.5 m"/><ahrs rate="10 Hz" noise="0"/><echosounder rate="5 Hz" noise="0"/><speedlog rate="5 Hz" noise="0"/>
<ctd rate="2 Hz" noise="0" position="0 0 0.6 m"/><anemometer rate="2 Hz" noise="0" position="0 0 -2 m"/>{more}</sensors></vehicle></fleet>"""


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for p in started:
        p.terminate()
    for p in started:
        p.wait(15)
        for stream in (p.stdout, p.stderr):
            if stream is not None:
                stream.close()


def await_sensors(
    name: str, sensors: list[str], timeout: float = 40.0, meanwhile: Callable[[], object] = lambda: time.sleep(0.05)
) -> dict[str, int]:
    """PIDs of the emulators, once each has written a value."""
    state, limit = SharedState(name), time.monotonic() + timeout
    while time.monotonic() < limit:
        pids = {s: int(state.vehicles[s].header[OWNER]) for s in sensors}
        if all(pids.values()) and all(int(state.values(s)["sequence"][0]) > 0 for s in sensors):
            return pids
        meanwhile()
    raise AssertionError(f"not all sensors came up: {pids}")


def latest(broker: Broker, seconds: float) -> Sensors:
    limit, values = time.monotonic() + seconds, Sensors()
    while time.monotonic() < limit:
        for step in broker.poll(0.05):
            values = step.sensors
    return values


def test_any_set_of_emulators_is_kept_alive(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(FLEET.format(more="")).path
    server = serve(path, "--speed", "1")
    manager = launch("emulate", "all", path, "-s", server.name, stderr=subprocess.PIPE)
    processes.append(manager)
    names = ["gps", "ahrs", "echosounder", "speedlog", "ctd", "anemometer"]
    with Broker("boat", ("127.0.0.1", server.port)) as broker:
        server.send("start")
        pids = await_sensors(server.name, names, 60.0, lambda: latest(broker, 0.05))
        assert set(latest(broker, 1.0)) == set(names)
        os.kill(pids["ahrs"], signal.SIGKILL)
        limit = time.monotonic() + 60.0
        while (new := await_sensors(server.name, ["ahrs"], 60.0, lambda: latest(broker, 0.05))["ahrs"]) == pids[
            "ahrs"
        ] and time.monotonic() < limit:
            latest(broker, 0.1)
        assert new != pids["ahrs"]
        assert set(latest(broker, 2.0)) == set(names)

        os.kill(pids["gps"], signal.SIGSTOP)  # 5 Hz: stale after a second
        values = latest(broker, 3.0)
        assert set(values) == set(names) - {"gps"}, "a frozen sensor is stale, the others go on"
        os.kill(pids["gps"], signal.SIGCONT)
        assert set(latest(broker, 2.0)) == set(names)

        # faults on command
        def fault(*words: str) -> str:
            done = wavesim("fault", "boat", *words, "-s", server.name)
            assert done.returncode in (0, 4)
            return done.stderr

        assert fault("echosounder", "bias", "700 cm") == ""
        assert latest(broker, 1.0).echosounder.range == pytest.approx(42.1, abs=0.3)
        before = latest(broker, 0.5).gps
        assert fault("gps", "bias", "10 deg", "--field", "latitude") == ""
        biased = latest(broker, 1.0).gps
        assert biased.latitude - before.latitude == pytest.approx(math.radians(10.0), abs=1e-6)
        assert biased.longitude == pytest.approx(before.longitude, abs=1e-6) and biased.satellites == before.satellites
        assert fault("ctd", "lost") == ""
        assert "ctd" not in latest(broker, 1.5)
        assert fault("ctd", "none") == ""
        assert "ctd" in latest(broker, 1.5)
        assert "no actuator or sensor named 'sonar'" in fault("sonar", "lost")
        assert "have different units; name one of them" in fault("gps", "bias", "10 deg")
        assert "is not a unit of angle; use one of deg, rad" in fault("gps", "bias", "10 m", "--field", "cog")
        server.send("shutdown")
    assert manager.stderr is not None
    assert "emulator ahrs was killed by signal 9; restarted" in manager.stderr.read()
    assert manager.wait(15) == 0


def test_a_sensor_of_ones_own(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    root: Path,
    tmp_path: Path,
    processes: list[subprocess.Popen[str]],
) -> None:
    """The package of examples/depth-sensor, installed into a folder of its own, as the tutorial says."""
    source = tmp_path / "source"
    shutil.copytree(root / "examples/depth-sensor", source)
    target = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, source],
        check=True,
        capture_output=True,
        timeout=120,
    )
    paths = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    path = tmp_path / "own.xml"
    more = '<sensor type="altitude" rate="5 Hz" noise="0" position="0 0 0.5 m"><parameter name="scale" value="1.1"/></sensor>'
    path.write_text(f"<wavesim>{FLEET.format(more=more)}</wavesim>")
    name = f"own{os.getpid()}"
    server = subprocess.Popen(
        [*CLI, "serve", str(path), "--name", name, "--port", "0", "--speed", "1"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    processes.append(server)
    assert server.stderr is not None
    line = server.stderr.readline()
    assert "on UDP" in line
    processes.append(subprocess.Popen([*CLI, "emulate", "altitude", str(path), "-s", name], env=environment, text=True))
    port = int(line.split("on UDP ")[1].split(";")[0].rpartition(":")[2])
    with Broker("boat", ("127.0.0.1", port)) as broker:
        assert wavesim("start", "-s", name).returncode == 0
        limit = time.monotonic() + 40.0
        while "altitude" not in (values := latest(broker, 0.3)) and time.monotonic() < limit:
            pass
    assert values.altitude.height == pytest.approx(1.1 * 34.6, abs=0.3)


def device(processes: list[subprocess.Popen[str]], server: Server, kind: str, *options: str) -> str:
    """Start a virtual device of the boat, which nobody else drives; where it is reached."""
    p = launch("device", kind, "boat", "--pilot", "--port", str(server.port), *options, stdout=subprocess.PIPE)
    processes.append(p)
    assert p.stdout is not None
    return p.stdout.readline().rpartition(" at ")[2].strip()


def test_gpsd_and_pynmea2_read_our_instruments(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    gpsd.find_gpsd()
    path = config(FLEET.format(more="")).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "all", path, "-s", server.name))
    host, _, port = device(processes, server, "nmea", "--tcp", "0").rpartition(":")
    process, gpsd_port = gpsd.start(f"tcp://{host}:{port}")
    processes.append(process)
    server.send("start")
    state = SharedState(server.name)
    row = state.row("boat")
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        file = raw.makefile("rb")
        seen: dict[str, Any] = {}
        limit = time.monotonic() + 40.0
        wanted = {"GGA", "RMC", "VTG", "HDT", "ROT", "XDR", "DPT", "DBT", "VHW", "MTW", "MWV"}
        while not wanted <= seen.keys() and time.monotonic() < limit:
            message = pynmea2.parse(file.readline().decode("ascii"), check=True)
            seen[message.sentence_type] = message
        assert wanted <= seen.keys(), wanted - seen.keys()
    truth = state.snapshot().state[row]
    north, east = truth["p_WB_W"][:2]
    latitude = 41.18 + math.degrees(north / 6_362_000.0)
    longitude = -8.70 + math.degrees(east / (6_387_000.0 * math.cos(math.radians(41.18))))
    assert seen["GGA"].latitude == pytest.approx(latitude, abs=2e-5)
    assert seen["RMC"].longitude == pytest.approx(longitude, abs=2e-5)
    assert float(seen["DPT"].depth) == pytest.approx(35.1, abs=0.4)
    assert float(seen["HDT"].heading) == pytest.approx(30.0, abs=15.0)
    found: dict[str, Any] = {}
    limit = time.monotonic() + 40.0
    with gpsd.connect(gpsd_port) as client:
        client.sendall(b'?WATCH={"enable":true,"json":true};\n')
        reader = client.makefile()
        while not {"lat", "speed", "track"} <= found.keys() and time.monotonic() < limit:
            report = json.loads(reader.readline())
            if report["class"] == "TPV":
                found |= report
    assert found["lat"] == pytest.approx(latitude, abs=3e-5) and found["lon"] == pytest.approx(longitude, abs=3e-5)
    assert found["mode"] == 3 and found["speed"] < 1.0


def test_all_instruments_of_a_boat_at_once(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    """NMEA 0183 by TCP and UDP, NMEA 2000, Signal K; and a Ping360 beside them, which finds a pier."""
    from brping import Ping360

    sonar = '<scanner rate="125 Hz" step="1.8 deg" noise="0" position="0 0 0.8 m"/>'
    world = FLEET.format(more=sonar).replace(
        "</world>", '<obstacles><pier position="100 -40 15 m" radius="2 m" height="40 m"/></obstacles></world>'
    )
    path = config(world).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "ahrs", "scanner", path, "-s", server.name))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("127.0.0.1", 0))
        datagrams.settimeout(40.0)
        udp = f"udp:{datagrams.getsockname()[1]}"
        places = ["--nmea0183", "tcp:0", "--nmea0183", udp, "--nmea2000", "tcp:0", "--signalk", "tcp:0"]
        first = device(processes, server, "boat", *places)
        assert processes[-1].stdout is not None
        others = [processes[-1].stdout.readline() for _ in range(3)]
        assert [line.split(" of ")[0] for line in others] == ["NMEA 0183", "NMEA 2000", "Signal K"]
        server.send("start")

        def lines(address: str) -> Iterator[str]:
            host, _, port = address.strip().rpartition(":")
            with socket.create_connection((host, int(port)), timeout=40.0) as stream:
                for line in stream.makefile(newline="\r\n"):
                    yield line.strip()

        heading = next(pynmea2.parse(s, check=True).heading for s in lines(first) if s.startswith("$IIHDT"))
        sentence = ""
        while not sentence.startswith("$IIHDT"):
            sentence = datagrams.recv(200).decode()
            assert sentence.endswith("\r\n") and sentence.count("$") == 1, "one in each datagram"
        at = [line.rpartition(" at ")[2] for line in others[1:]]
        frame = next(s.split() for s in lines(at[0]) if s.split()[2][2:6] == "F112")  # PGN 127250
        deltas = (v for s in lines(at[1]) for v in json.loads(s)["updates"][0]["values"])
        angle = next(v["value"] for v in deltas if v["path"] == "navigation.headingTrue")
    seen = [float(heading), float(pynmea2.parse(sentence.strip()).heading), math.degrees(angle)]
    seen.append(math.degrees(1e-4 * int(frame[5] + frame[4], 16)))
    assert max(seen) - min(seen) < 5.0 and min(seen) > 20.0, "all tell of the same boat, which turns slowly in the wind"
    crew = ["device", "ping360", "boat", "--port", str(server.port), "--udp", "0"]
    processes.append(launch(*crew, stdout=subprocess.PIPE))
    assert processes[-1].stdout is not None
    driver = Ping360()
    driver.connect_udp("127.0.0.1", int(processes[-1].stdout.readline().rpartition(":")[2]))
    assert driver.initialize() is True
    for setting, v in (("number_of_samples", 600), ("sample_period", 1200), ("transmit_duration", 60)):
        assert getattr(driver, f"set_{setting}")(v) is not None
    found: dict[int, float] = {}
    limit = time.monotonic() + 60.0
    bearing = round((90.0 - seen[0]) / 0.9) % 400  # the pier lies to the east
    while not found and time.monotonic() < limit:
        for gradian in (bearing - 6, bearing, bearing + 6):
            assert driver.transmitAngle(gradian % 400) is not None
            data = list(driver._data)
            if max(data[100:]) > 60:
                found[gradian] = (max(range(100, 600), key=data.__getitem__) + 0.5) * 0.5 * 1500.0 * 1200 * 25e-9
    driver.iodev.close()
    assert found and all(abs(r - 8.0) < 0.7 for r in found.values()), found


def test_brping_drives_our_echosounder(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    from brping import Ping1D, definitions

    path = config(FLEET.format(more="")).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "echosounder", path, "-s", server.name))
    port = int(device(processes, server, "ping1d", "--udp", "0").rpartition(":")[2])
    server.send("start")
    await_sensors(server.name, ["echosounder"])
    ping = Ping1D()
    ping.connect_udp("127.0.0.1", port)
    limit = time.monotonic() + 60.0

    def asked(question: Callable[[], Any]) -> Any:
        """brping waits half a second for an answer, which a busy machine may not give."""
        while not (answer := question()):
            assert time.monotonic() < limit
        return answer

    asked(ping.initialize)
    while not (data := asked(ping.get_distance))["confidence"] and time.monotonic() < limit:
        time.sleep(0.05)
    assert data["distance"] == pytest.approx(35_100, abs=300) and data["confidence"] == 98
    asked(lambda: ping.set_mode_auto(0))
    ping.set_range(1000, 50_000, verify=False)
    ping.set_range(0, 0, verify=False)  # a scan of no length is refused
    # brping 0.2.5 takes the messages 1002 and 1204 for another device's: it sends 0, and cannot read the range back
    ping.iodev.send(ping1d.encode_frame(definitions.PING1D_SET_SPEED_OF_SOUND, struct.pack("<I", 1_400_000)))
    while abs((data := asked(ping.get_distance))["distance"] - 35_100 * 14 / 15) > 400 and time.monotonic() < limit:
        time.sleep(0.05)
    assert (data["scan_start"], data["scan_length"]) == (1000, 50_000)
    profile = asked(ping.get_profile)
    strengths = list(profile["profile_data"])
    peak = max(range(len(strengths)), key=strengths.__getitem__)
    assert 1000 + (peak + 0.5) * 250 == pytest.approx(profile["distance"], abs=300)
    ping.control_continuous_start(definitions.PING1D_PROFILE)
    numbers = set()
    while len(numbers) < 3 and time.monotonic() < limit:
        message = ping.wait_message([definitions.PING1D_PROFILE], 1.0)
        if message is not None:
            numbers.add(message.ping_number)
    assert len(numbers) == 3
    ping.control_continuous_stop(definitions.PING1D_PROFILE)
    ping.iodev.close()


def test_a_moored_ctd_on_a_serial_line_and_its_file(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    """pyserial talks to the SBE 37; the log becomes a file that the package ctd reads."""
    import ctd
    import serial

    path = config(FLEET.format(more="")).path
    log = tmp_path / "run.mcap"
    server = serve(path, "--speed", "1", "--log", str(log))
    processes.append(launch("emulate", "ctd", path, "-s", server.name))
    link = device(processes, server, "sbe37", "--link", str(tmp_path / "ttyCTD"))
    server.send("start")
    await_sensors(server.name, ["ctd"])
    with serial.Serial(link, 9600, timeout=20) as port:
        port.write(b"INTERVAL=1\r")
        assert port.read_until(b"S>") == b"INTERVAL=1\r\nS>"
        port.write(b"TS\r")
        assert port.read_until(b"S>").startswith(b"TS\r\n")
        port.write(b"STARTNOW\r")
        lines = [port.readline().decode().strip().removeprefix("S>") for _ in range(5)]
    samples = [line.split(",") for line in lines if line.count(",") == 4]
    assert len(samples) >= 3, lines
    truth = SharedState(server.name).sensor("boat", "ctd")
    for sample in samples:
        assert float(sample[0]) * 1.00024 == pytest.approx(truth["temperature"], abs=2e-4)
        assert float(sample[1]) == pytest.approx(truth["conductivity"], abs=1e-5)
        assert float(sample[2]) == pytest.approx(truth["pressure"] - 10.1325, abs=0.3), "the boat heaves"
    server.send("shutdown")
    server.process.wait(30)
    assert wavesim("log", "ctd", log, "boat", tmp_path / "boat.cnv").returncode == 0
    cast = ctd.from_cnv(tmp_path / "boat.cnv")
    assert len(cast) >= 3 and cast["t090C"].mean() == pytest.approx(float(samples[0][0]), abs=1e-3)
    wrong = wavesim("log", "ctd", log, "bot", tmp_path / "b.cnv")
    assert wrong.returncode == 6 and "has no CTD data from 'bot'; vehicles with a CTD: boat" in wrong.stderr


def test_a_doppler_log_by_tcp_and_its_faults(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(
        FLEET.format(more='<dvl noise="0" position="0 0 0.6 m"/><leak compartments="bow stern" rate="5 Hz"/>')
    ).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "dvl", "ahrs", "leak", path, "-s", server.name))
    host, _, port = device(processes, server, "dvl", "--tcp", "0", "--format", "PD6").rpartition(":")
    server.send("start")
    await_sensors(server.name, ["dvl", "leak"])
    with socket.create_connection((host, int(port)), timeout=20) as raw:
        file = raw.makefile("rb")

        def next_line(kind: bytes) -> list[bytes]:
            while not (line := file.readline()).startswith(kind):
                assert line, "the device is gone"
            return line.strip().split(b",")

        assert next_line(b":BS")[-1] == b"A"
        assert float(next_line(b":BD")[4]) == pytest.approx(34.5, abs=0.4)
        assert wavesim("fault", "boat", "dvl", "unlocked", "-s", server.name).returncode == 0
        limit = time.monotonic() + 60.0
        while (line := next_line(b":BS"))[-1] != b"V" and time.monotonic() < limit:
            pass
        assert line[1] == b"-32768"
        assert next_line(b":WS")[-1] == b"A"
        raw.sendall(b"===")
        while not file.readline().startswith(b"WaVeSim Doppler"):
            assert time.monotonic() < limit
    assert wavesim("fault", "boat", "leak", "wet", "stern", "-s", server.name).returncode == 0
    state = SharedState(server.name)
    while state.sensor("boat", "leak")["wet"].tolist() != [0, 1, 0, 0] and time.monotonic() < limit:
        time.sleep(0.05)
    assert state.sensor("boat", "leak")["wet"].tolist() == [0, 1, 0, 0]
    wrong = wavesim("fault", "boat", "leak", "wet", "galley", "-s", server.name)
    assert wrong.returncode == 4 and "unknown compartment 'galley'; use one of bow, stern" in wrong.stderr
    wrong = wavesim("fault", "boat", "gps", "unlocked", "-s", server.name)
    assert wrong.returncode == 4 and "fault 'unlocked' applies only to the sensor type 'dvl'" in wrong.stderr
