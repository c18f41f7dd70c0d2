"""Virtual Water Linked DVL: vectors of its protocols, commands, range modes, dead reckoning, and a real server."""

from __future__ import annotations

import json
import math
import socket
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.nursery import launch
from tests.sdk.test_devices import step
from wavesim_devices.waterlinked_dvl.device import WaterLinkedDvl
from wavesim_devices.waterlinked_dvl.instrument import MAX_PINGS
from wavesim_devices.waterlinked_dvl.measurement import BEAM_ANGLE, DIRECTIONS, ORDER
from wavesim_devices.waterlinked_dvl.reports import serial_line
from wavesim_devices.waterlinked_dvl.settings import VARIANTS
from wavesim_sdk.attach import SharedState
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
SENSORS = {t: t for t in ("dvl", "ahrs", "ctd")}


def doppler(velocity: tuple[float, float, float], altitude: float, lost: tuple[int, ...] = ()) -> list[float]:
    """Numbers of a `dvl` sensor with perfect Janus beams; ``lost`` are transducers without an echo."""
    beams, ranges = np.full(4, math.nan), np.full(4, math.nan)
    for k, place in enumerate(ORDER):
        if k not in lost:
            beams[place], ranges[place] = DIRECTIONS[k] @ np.array(velocity), altitude / math.cos(BEAM_ANGLE)
    good = len(lost) < 2
    bottom = velocity if good else (math.nan,) * 3
    return [*bottom, *velocity, *beams, *ranges, altitude if len(lost) < 4 else math.nan, 4.0 - len(lost)]


class Bench:
    """A DVL with hosts, whose body has a velocity, an altitude and an attitude."""

    def __init__(self, variant: str = "A50", **sensors: str) -> None:
        self.dvl = WaterLinkedDvl(VARIANTS[variant], 1500.0, sensors or SENSORS, 0.0)
        self.out: dict[str, list[bytes]] = {}
        self.time = 0.0
        self.velocity, self.altitude, self.lost = (1.0, 0.0, 0.0), 2.0, tuple[int, ...]()
        self.ahrs = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]

    def host(self, port: str, name: str = "") -> Any:
        self.out[name or port] = []
        return self.dvl.connect(port, self.out[name or port].append)

    def run(self, seconds: float, rate: float = 30.0) -> None:
        for _ in range(round(seconds * rate)):
            self.time += 1.0 / rate
            value = doppler(self.velocity, self.altitude, self.lost)
            self.dvl.step(step(self.time, dvl=value, ahrs=self.ahrs, ctd=[20.1325, 12.5, 4.29, 35.0]))

    def messages(self, kind: str, name: str = "json") -> list[dict[str, Any]]:
        """Messages of a type since the last call, which forgets all."""
        lines = b"".join(self.out[name]).split(b"\r\n")
        self.out[name].clear()
        assert lines.pop() == b"" and all(len(line) < 2000 for line in lines)
        return [m for m in map(json.loads, lines) if m["type"] == kind]


def ask(bench: Bench, connection: Any, command: str, **parameters: Any) -> dict[str, Any]:
    bench.out["json"].clear()
    connection.receive(json.dumps({"command": command, "parameters": parameters}).encode())
    (answer,) = bench.messages("response")
    assert answer["response_to"] == command
    return answer


# ------------------------------------------------------------------ vectors


@pytest.mark.parametrize(
    "line",
    [
        "wrv,1,0,1*44",
        "wru,0,0.070,1.10,-40,-95*9c",
        "wrz,0.120,-0.400,2.000,y,1.30,1.855,1e-07;0;1.4;0;1.2;0;0.2;0;1e+09,7,14,123.00,1*50",
        "wrp,49056.809,0.41,0.15,1.23,0.4,53.9,13.0,19.3,0*de",
        "wrx,1164.94,0.000,0.000,0.000,2.707,-1.00,n,1*39",
        "wrt,14.90,15.10,14.80,-1.00*53",
    ],
)
def test_check_sums_of_the_vendor(line: str) -> None:
    assert serial_line(line.partition("*")[0]) == line.encode() + b"\r\n"


def test_reports_have_the_keys_and_the_order_that_drivers_search_for() -> None:
    bench = Bench()
    bench.host("json")
    bench.run(1.0)
    lines = b"".join(bench.out["json"]).split(b"\r\n")[:-1]
    velocity = next(line for line in lines if b'"velocity"}' in line)
    position = next(line for line in lines if b'"position_local"}' in line)
    report = json.loads(velocity)
    assert list(report) == [
        "time", "vx", "vy", "vz", "fom", "covariance", "altitude", "transducers", "velocity_valid", "status",
        "time_of_validity", "time_of_transmission", "format", "type",
    ]  # fmt: skip
    assert list(report["transducers"][3]) == ["id", "velocity", "distance", "rssi", "nsd", "beam_valid"]
    assert velocity.startswith(b'{"time":') and velocity.endswith(b'"format":"json_v3.3","type":"velocity"}')
    assert position.startswith(b'{"ts":') and b"time" not in position and b"response_to" not in position


# ------------------------------------------------------------------ measurements


def test_velocity_beams_and_altitude() -> None:
    bench = Bench()
    bench.host("json")
    bench.velocity = (0.5, -0.2, 0.1)
    bench.run(5.0)
    reports = bench.messages("velocity")
    first, last = reports[0], reports[-1]
    assert (last["vx"], last["vy"], last["vz"]) == pytest.approx((0.5, -0.2, 0.1))
    assert last["altitude"] == pytest.approx(2.0) and last["velocity_valid"] is True
    for k, beam in enumerate(last["transducers"]):
        assert beam["velocity"] == pytest.approx(DIRECTIONS[k] @ (0.5, -0.2, 0.1)) and beam["beam_valid"]
        assert beam["distance"] == pytest.approx(2.0 / math.cos(BEAM_ANGLE))
    assert first["time"] == 0.0 and last["time"] == pytest.approx(100.0), "10 Hz between 0.3 and 3 m"
    assert 0 <= 1_767_225_605_000_000 - last["time_of_validity"] <= 100_000


@pytest.mark.parametrize(
    ("lost", "valid", "altitude"), [((2,), True, 2.0), ((2, 0), False, -1.0), ((0, 1, 2, 3), False, -1.0)]
)
def test_lost_beams(lost: tuple[int, ...], valid: bool, altitude: float) -> None:
    bench = Bench()
    bench.host("json")
    bench.lost = lost
    bench.run(1.0)
    report = bench.messages("velocity")[-1]
    assert report["velocity_valid"] is valid and report["altitude"] == pytest.approx(altitude)
    for k, beam in enumerate(report["transducers"]):
        assert beam["beam_valid"] is (k not in lost)
        if k in lost:
            assert (beam["velocity"], beam["distance"]) == (0.0, -1.0)
    if not valid:
        assert (report["vx"], report["vy"], report["vz"], report["fom"]) == (0.0, 0.0, 0.0, 2.707)


def test_the_figure_of_merit_is_the_noise_of_the_velocity() -> None:
    bench, random = Bench(), np.random.default_rng(4)
    bench.host("json")
    for k in range(1500):
        beams = DIRECTIONS @ np.array([0.3, 0.0, 0.0]) + random.normal(0.0, 0.02, 4)
        velocity = np.linalg.lstsq(DIRECTIONS, beams, rcond=None)[0]
        value = doppler(tuple(velocity), 2.0)
        for t, place in enumerate(ORDER):
            value[6 + place] = float(beams[t])
        bench.dvl.step(step(0.1 * (k + 1), dvl=value))
    reports = bench.messages("velocity")[100:]
    exact = 0.02**2 * np.linalg.inv(DIRECTIONS.T @ DIRECTIONS)
    covariance = np.mean([r["covariance"] for r in reports], axis=0)
    assert np.diag(covariance) == pytest.approx(np.diag(exact), rel=0.15)
    assert np.mean([r["fom"] for r in reports]) == pytest.approx(math.sqrt(np.trace(exact)), rel=0.1)


def test_range_modes_limit_rate_and_altitude() -> None:
    bench = Bench()
    connection = bench.host("json")

    def rate(altitude: float) -> tuple[float, bool]:
        bench.altitude = altitude
        bench.run(2.0)
        bench.messages("velocity")
        bench.run(2.0)
        reports = bench.messages("velocity")
        return round(1000.0 / reports[-1]["time"], 2), reports[-1]["velocity_valid"]

    ask(bench, connection, "set_config", periodic_cycling_enabled=False)
    assert [rate(a) for a in (0.4, 2.0, 5.0, 30.0, 45.0)] == [
        (15.0, True),
        (10.0, True),
        (6.0, True),
        (7.5, True),
        (3.75, True),
    ]
    assert rate(55.0)[1] is False, "above the maximum altitude of the A50"
    assert ask(bench, connection, "set_config", range_mode="1<=2")["success"]
    assert rate(20.0)[1] is False and rate(1.0) == (10.0, True) and rate(12.0) == (6.0, True)
    assert ask(bench, connection, "set_config", range_mode="=3")["success"]
    assert rate(2.0) == (7.5, False) and rate(20.0) == (7.5, True)
    deep = Bench("A125")
    deep.host("json")
    deep.altitude, deep.velocity = 100.0, (5.0, 0.0, 0.0)
    deep.run(5.0)
    assert deep.messages("velocity")[-1]["velocity_valid"] is True


def test_too_fast_for_the_variant() -> None:
    bench = Bench()
    bench.host("json")
    bench.velocity = (3.8, 0.0, 0.0)
    bench.run(1.0)
    assert not any(r["velocity_valid"] for r in bench.messages("velocity"))


def test_the_search_for_a_nearer_bottom_costs_measurements() -> None:
    bench = Bench()
    connection = bench.host("json")
    bench.run(31.0)
    gaps = [r["time"] for r in bench.messages("velocity")]
    assert sum(g > 250.0 for g in gaps) == 3
    bench.altitude = 5.0
    bench.run(2.0)
    bench.altitude = 2.0  # the present range mode still covers it
    bench.run(12.0)
    assert bench.messages("velocity")[-1]["time"] == pytest.approx(100.0), "the search finds the faster mode"
    ask(bench, connection, "set_config", periodic_cycling_enabled=False)
    bench.run(31.0)
    assert max(r["time"] for r in bench.messages("velocity")[1:]) < 101.0


def test_water_track() -> None:
    bench = Bench()
    connection = bench.host("json")
    bench.altitude = 20.0
    assert ask(bench, connection, "set_config", range_mode="wt")["success"]
    bench.run(3.0)
    assert bench.messages("velocity") == []
    bench.run(2.0)
    reports = bench.messages("velocity_water")
    assert len(reports) == 4 and reports[-1]["time"] == pytest.approx(500.0) and reports[-1]["vx"] == pytest.approx(1.0)
    assert "altitude" not in reports[-1] and reports[-1]["velocity_valid"] is True
    bench.altitude = 3.0
    bench.run(2.0)
    assert bench.messages("velocity_water")[-1]["velocity_valid"] is False, "the bottom is in the layer"


def test_settings_take_effect() -> None:
    bench = Bench()
    connection = bench.host("json")
    for wrong in (
        {"speed_of_sound": 999},
        {"speed_of_sound": True},
        {"mounting_rotation_offset": 361},
        {"range_mode": "3<=2"},
        {"range_mode": "=5"},
        {"acoustic_enabled": 1},
        {"gain": 3},
        {"speed_of_sound": 1480, "range_mode": "x"},
    ):
        answer = ask(bench, connection, "set_config", **wrong)
        assert answer["success"] is False and answer["error_message"], wrong
    before = ask(bench, connection, "get_config")["result"]
    assert before == {
        "speed_of_sound": 1500, "acoustic_enabled": True, "dark_mode_enabled": False, "mounting_rotation_offset": 0,
        "range_mode": "auto", "periodic_cycling_enabled": True,
    }  # fmt: skip
    assert connection.errors == 8
    ask(bench, connection, "set_config", speed_of_sound=1425, mounting_rotation_offset=90)
    bench.run(1.0)
    report = bench.messages("velocity")[-1]
    assert (report["vx"], report["vy"]) == pytest.approx((0.0, 0.95)), "it measures times and frequencies"
    assert report["altitude"] == pytest.approx(1.9)
    assert ask(bench, connection, "get_config")["result"]["speed_of_sound"] == 1425


def test_triggered_pings() -> None:
    bench = Bench()
    connection = bench.host("json")
    assert ask(bench, connection, "trigger_ping")["success"] is False, "it pings by itself"
    ask(bench, connection, "set_config", acoustic_enabled=False)
    bench.run(1.0)
    assert bench.messages("velocity") == []
    answers = [ask(bench, connection, "trigger_ping")["success"] for _ in range(16)]
    assert answers == [True] * MAX_PINGS + [False]
    bench.run(2.0)
    assert len(bench.messages("velocity")) == MAX_PINGS


def test_gyro_calibration_needs_rest() -> None:
    bench = Bench()
    connection = bench.host("json")
    bench.run(1.0)
    connection.receive(b'{"command":"calibrate_gyro"}')
    bench.run(0.1)
    assert bench.messages("response")[0]["success"] is False
    bench.velocity = (0.01, 0.0, 0.0)
    bench.run(1.0)
    connection.receive(b'{"command":"calibrate_gyro"}')
    bench.run(9.0)
    assert bench.messages("response") == []
    bench.run(2.0)
    assert [r["success"] for r in bench.messages("response")] == [True]


def test_clock_and_versions() -> None:
    bench = Bench()
    connection = bench.host("json")
    about = ask(bench, connection, "get_version_info")["result"]
    assert about["product_name"] == "DVL A50" and about["product_id"] == 21035 and about["is_ready"] is True
    assert ask(bench, connection, "get_time_ntp")["result"] == {"ntp_address": "auto"}
    assert ask(bench, connection, "force_sync_ntp", timeout_seconds=1)["success"] is False
    assert ask(bench, connection, "set_time_manual", time="yesterday")["success"] is False
    assert ask(bench, connection, "set_time_manual", time="2030-01-01T00:00:00Z")["success"] is True
    assert ask(bench, connection, "get_time_status")["result"]["system_time"].startswith("2030-01-01T00:00:00")
    bench.run(1.0)
    assert 0 < bench.messages("velocity")[-1]["time_of_validity"] - 1_893_456_000_000_000 <= 1_000_000


# ------------------------------------------------------------------ dead reckoning


def test_dead_reckoning_in_the_frame_of_the_reset() -> None:
    bench = Bench()
    connection = bench.host("json")
    bench.ahrs[2] = math.radians(30.0)
    bench.run(2.0)
    assert ask(bench, connection, "reset_dead_reckoning")["success"]
    bench.run(10.0)
    bench.ahrs[2] = math.radians(120.0)  # a turn of 90 degrees to starboard
    bench.run(10.0)
    reports = bench.messages("position_local")
    assert len(reports) == pytest.approx(100, abs=1)
    last = reports[-1]
    assert (last["x"], last["y"], last["z"]) == pytest.approx((10.0, 10.0, 0.0), abs=0.3)
    assert (last["roll"], last["pitch"], last["yaw"]) == pytest.approx((0.0, 0.0, 90.0), abs=1e-6)
    assert last["ts"] == pytest.approx(1_767_225_600 + 22.0, abs=0.21) and 0.0 <= last["std"] < 0.2


def test_dead_reckoning_bridges_a_gap_and_says_that_it_knows_less() -> None:
    bench = Bench()
    connection = bench.host("json")
    bench.run(1.0)
    ask(bench, connection, "reset_dead_reckoning")
    bench.run(5.0)
    before = bench.messages("position_local")[-1]["std"]
    bench.lost = (0, 1, 2)
    bench.run(5.0)
    bench.lost, bench.velocity = (), (2.0, 0.0, 0.0)
    bench.run(1.0)
    last = bench.messages("position_local")[-1]
    assert last["x"] == pytest.approx(5.0 + 7.5 + 2.0, abs=0.5) and last["std"] > before + 1.0


def test_yaw_drift() -> None:
    dvl, out = WaterLinkedDvl(VARIANTS["A50"], 1500.0, SENSORS, 0.2 / 60.0), list[bytes]()
    dvl.connect("json", out.append)
    for k in range(601):
        dvl.step(step(float(k), ahrs=[0.0] * 6))
    assert json.loads(out[-1])["yaw"] == pytest.approx(2.0, abs=1e-6)


def test_without_an_attitude_there_is_no_dead_reckoning() -> None:
    bench = Bench(dvl="dvl")
    connection = bench.host("json")
    assert ask(bench, connection, "reset_dead_reckoning")["success"] is False
    bench.run(1.0)
    assert bench.messages("position_local") == []


# ------------------------------------------------------------------ other ports


def test_the_serial_protocol() -> None:
    bench = Bench()
    connection = bench.host("serial")
    out = bench.out["serial"]

    def say(text: str) -> str:
        out.clear()
        connection.receive(text.encode() + b"\n")
        line = b"".join(out).decode()
        assert line.encode() == serial_line(line.partition("*")[0]) if line else True
        return line.partition("*")[0]

    assert say("wcv") == "wrv,2,8,0" and say("wcw").startswith("wrw,dvl-a50,2.7.2,0x")
    assert say("wcc") == "wrc,1500.00,0.00,y,n,auto,y"
    assert say("wcs,1450,,n,,,") == "wra" and say("wcc") == "wrc,1450.00,0.00,n,n,auto,y"
    assert say("wcs,,,,y,=2,n") == "wra" and say("wcc") == "wrc,1450.00,0.00,n,y,=2,n"
    assert say("wcs,900,,,,,") == "wrn" and say("wcs,,,maybe,,,") == "wr?" and say("wcs,1") == "wr?"
    assert say("wcv*00") == "wr!" and say(serial_line("wcv").decode().strip()) == "wrv,2,8,0"
    assert say("hello") == "wr?" and say("wc") == "wr?" and say("wcq") == "wr?"
    assert [say("wcx") for _ in range(16)] == ["wra"] * 15 + ["wrn"]
    assert say("wcm,1893456000000000") == "wra" and say("wct") == "wrs,1893456000000000,n,,"
    assert say("wcn,10.0.0.1") == "wra" and say("wcN") == "wrN,10.0.0.1" and say("wcT,5") == "wrT,n"
    say("wcs,1500,,y,,auto,")
    bench.run(1.0)
    lines = b"".join(out).decode().split("\r\n")
    kinds = [line[:3] for line in lines]
    assert kinds.count("wru") == 4 * kinds.count("wrz") > 0 and "wrp" in kinds and "wrx" not in kinds
    fields = next(line for line in lines if line.startswith("wrz")).partition("*")[0].split(",")
    assert fields[1:6] == ["1.000", "0.000", "0.000", "y", "2.00"] and len(fields) == 12 and fields[7].count(";") == 8
    assert say("wcp,1") == "wra"
    bench.run(1.0)
    assert {b"wrx", b"wrt", b"wrz"} <= {line[:3] for data in out for line in data.split(b"\r\n")}
    assert say("wcp,7") == "wrn" and say("wcp,2") == "wra"
    bench.run(1.0)
    assert {line[:3] for data in out[1:] for line in data.split(b"\r\n") if line} == {b":TS", b":BI", b":BS", b":BD"}
    assert say("wcp,0") == "wra"
    out.clear()
    bench.run(1.0)
    assert out == []


def test_pd4_and_pd6() -> None:
    bench = Bench()
    bench.host("pd4")
    bench.host("pd6")
    bench.velocity, bench.lost = (0.5, -0.2, 0.1), (2,)
    bench.run(0.5)
    data = bench.out["pd4"][-1]
    assert len(data) == 47 and struct.unpack_from("<H", data, 45)[0] == sum(data[:45]) & 0xFFFF
    starboard, forward, up = struct.unpack_from("<3h", data, 5)
    assert (starboard, forward, up) == (-200, 500, -100)
    assert struct.unpack_from("<4H", data, 13) == (0, 200, 200, 200), "beam 1 is transducer 3, counted from 1"
    lines = bench.out["pd6"][-1].decode().split("\r\n")
    assert [line[:3] for line in lines] == [":TS", ":BI", ":BS", ":BD", ""]
    assert lines[1] == ":BI,-00200,+00500,-00100,+00000,A" and float(lines[3].split(",")[4]) == 2.0


def test_http() -> None:
    bench = Bench()
    connection = bench.host("http")
    bench.run(0.1)

    def get(path: str) -> Any:
        bench.out["http"].clear()
        connection.receive(f"GET {path} HTTP/1.1\r\nHost: dvl\r\n\r\n".encode())
        head, _, body = b"".join(bench.out["http"]).partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    assert "DVL" in get("/api/v1/about")[1]["product_name"]
    assert get("/api/v1/about/status") == (200, {"temperature": 12.5})
    assert get("/api/v1/else")[0] == 404


# ------------------------------------------------------------------ robustness


def test_each_host_gets_its_own_answers_and_all_get_the_measurements() -> None:
    bench = Bench()
    first, second = bench.host("json", "first"), bench.host("json", "second")
    first.receive(b'{"command":"get_con')
    second.receive(b'{"command":"reset_dead_reckoning"}')
    first.receive(b'fig"}')
    assert [r["response_to"] for r in bench.messages("response", "first")] == ["get_config"]
    assert [r["response_to"] for r in bench.messages("response", "second")] == ["reset_dead_reckoning"]
    bench.run(1.0)
    assert bench.out["first"] == bench.out["second"] != []
    second.close()
    bench.out["second"].clear()
    bench.run(1.0)
    assert bench.out["second"] == [] and len(bench.dvl.hosts) == 1


@pytest.mark.parametrize(
    "data", [b"{}", b'{"command":5}', b'{"command":"x"}', b"{]}", b'{"command":"set_config","parameters":[1]}']
)
def test_invalid_json_commands_are_answered_and_counted(data: bytes) -> None:
    bench = Bench()
    connection = bench.host("json")
    connection.receive(data)
    (answer,) = bench.messages("response")
    assert answer["success"] is False and answer["error_message"] and connection.errors == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=120) | st.sampled_from([b'{"command":', b"wcs,", b"wcm,", b"*", b"\n", b"}"])))
def test_noise_does_no_harm(parts: list[bytes]) -> None:
    bench = Bench()
    connections = [bench.host(port) for port in ("json", "serial", "pd4", "pd6", "http")]
    for part in parts:
        for connection in connections:
            connection.receive(part)
    bench.run(0.5)
    bench.out["serial"].clear()
    connections[1].receive(b"\nwcv\n")
    assert serial_line("wrv,2,8,0") in bench.out["serial"]


# ------------------------------------------------------------------ a real server

SEA = """<time step="5 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="20 m"/></world>
<network keepalive_timeout="20 s"/><fleet><vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional">
<sensors><dvl rate="15 Hz" angle="22.5 deg" minimum="0.05 m" maximum="50 m" position="0 0 0.5 m"/><ahrs rate="20 Hz"/>
<ctd rate="2 Hz" position="0 0 0.6 m"/></sensors></vehicle></fleet>"""


@pytest.mark.system
def test_the_dvl_of_a_boat_on_a_server(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(SEA).path
    server = serve(path, "--speed", "1")
    processes.append(launch("emulate", "all", path, "-s", server.name))
    ports = [o for name in ("json", "pd4", "pd6", "http") for o in (f"--{name}", "tcp:0")]
    places = dict(p.split() for p in device(processes, server, "waterlinked-dvl", *ports).split(", "))
    server.send("start")
    host, _, port = places["json"].rpartition(":")
    found: dict[str, list[dict[str, Any]]] = {"velocity": [], "position_local": [], "response": []}
    with socket.create_connection((host, int(port)), timeout=150) as raw:
        file = raw.makefile("rb")
        raw.sendall(b'{"command":"get_config"}')
        while len(found["velocity"]) < 20 or not (found["position_local"] and found["response"]):
            message = json.loads(file.readline())
            found[message["type"]].append(message)
    state = SharedState(server.name)
    truth = state.snapshot().state[state.row("boat")]
    good = [r for r in found["velocity"] if r["velocity_valid"]]
    assert len(good) > 15 and good[-1]["altitude"] == pytest.approx(20.0 - 0.5 - truth["p_WB_W"][2], abs=0.3)
    assert np.mean([r["vx"] for r in good]) == pytest.approx(0.0, abs=0.1)
    assert found["response"][0]["result"]["acoustic_enabled"] is True
