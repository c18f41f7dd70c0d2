"""Independent readers check our formats: Signal K, canboat, ctd and seabird, mhkit."""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import ctd
import numpy as np
import pytest
from seabird.cnv import fCNV

from tests import gpsd
from tests.sdk.test_devices import value
from wavesim_devices import ais as ais_encoder
from wavesim_devices import dvl, nmea, nmea2000, seabird, signalk
from wavesim_sdk import ais
from wavesim_sdk.broker import Step
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.wire.state import Sensors, State
from wavesim_world.ocean import seawater

TIME = datetime(2026, 3, 4, 5, 6, 7, 890000, UTC)


def absent(what: str) -> None:
    """A judge that is not there: loud here, a failure in CI."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def node(script: str, lines: list[bytes], root: Path) -> list[Any]:
    """What a script of ours makes of lines, by packages of Signal K and canboat."""
    program, folder = shutil.which("node"), root / "tests/judges"
    if program is None or not (folder / "node_modules/@canboat").is_dir():
        absent("the judges of NMEA and Signal K are not installed (they need Node.js and npm; then `make setup`)")
    done = subprocess.run(
        [str(program), script], cwd=folder, input=b"".join(lines), capture_output=True, timeout=60, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_signal_k_understands_every_sentence(root: Path) -> None:
    sentences = {
        "HDT": nmea.hdt(1.25),
        "DPT": nmea.dpt(12.3, 0.5),
        "DBT": nmea.dbt(12.3),
        "MTW": nmea.mtw(14.25),
        "VHW": nmea.vhw(1.25, 1.5),
        "MWV": nmea.mwv(math.pi / 2, 8.0),
        "GGA": nmea.gga(TIME, math.radians(41.18), math.radians(-8.7), 1.5, 9, 0.9),
        "RMC": nmea.rmc(TIME, math.radians(41.18), math.radians(-8.7), 2.0, 0.5),
        "VTG": nmea.vtg(2.0, 0.5),
        "ROT": nmea.rot(0.02),
        "XDR": nmea.xdr(0.1, -0.05),
        "GSA": nmea.gsa(9, 0.9),
        "GSV": next(nmea.gsv(4)),
    }
    answers = dict(zip(sentences, node("signalk.js", list(sentences.values()), root), strict=True))
    for kind, answer in answers.items():
        assert isinstance(answer, list), f"{kind}: {answer}"
    found = {v["path"]: v["value"] for answer in answers.values() for v in answer}
    assert found["navigation.headingTrue"] == pytest.approx(1.25, abs=1e-4)
    assert found["environment.depth.belowTransducer"] == pytest.approx(12.3, abs=0.01)
    assert found["environment.water.temperature"] == pytest.approx(273.15 + 14.25)
    assert found["navigation.speedThroughWater"] == pytest.approx(1.5, abs=1e-3)
    assert found["environment.wind.speedApparent"] == pytest.approx(8.0)
    assert found["environment.wind.angleApparent"] == pytest.approx(math.pi / 2, abs=1e-3)
    assert found["navigation.position"]["latitude"] == pytest.approx(41.18, abs=1e-6)
    assert found["navigation.position"]["longitude"] == pytest.approx(-8.7, abs=1e-6)
    assert found["navigation.speedOverGround"] == pytest.approx(2.0, abs=1e-3)
    assert found["navigation.courseOverGroundTrue"] == pytest.approx(0.5, abs=1e-4)
    assert found["navigation.rateOfTurn"] == pytest.approx(0.02, abs=1e-4)


def test_gpsd_reports_position_sky_heading_and_ais() -> None:
    """Every class of report that gpsd makes of our sentences."""
    report = ais.AisReport(211000001, ais.CLASS_A, 0.7, 0.1, 2.0, 1.0, 1.0, time=0.0)
    sent = b""
    for k in range(3):
        v = value("gps", k * 10**9, MEASURED["gps"])
        sent += b"".join(nmea.sentences("gps", v))
        sent += b"".join(nmea.sentences("ahrs", value("ahrs", k * 10**9, MEASURED["ahrs"])))
    # last: gpsd 3.22 keeps AIS and attitude in the same memory, and its next ATT would be invalid JSON
    sent += b"".join(ais_encoder.sentences(ais_encoder.position_report(report)))
    with closing(socket.create_server(("127.0.0.1", 0))) as instrument:
        instrument.settimeout(20.0)
        process, port = gpsd.start(f"tcp://127.0.0.1:{instrument.getsockname()[1]}")
        found: dict[str, Any] = {}
        try:
            with closing(gpsd.connect(port)) as client, closing(client.makefile()) as lines:
                client.sendall(b'?WATCH={"enable":true,"json":true};\n')
                while json.loads(lines.readline())["class"] != "WATCH":
                    pass
                driver, _ = instrument.accept()
                with closing(driver):
                    driver.sendall(sent)
                    while not {"TPV", "SKY", "ATT", "AIS"} <= found.keys():
                        said = json.loads(lines.readline())
                        found[said["class"]] = said
        finally:
            process.terminate()
            process.wait(10)
    assert found["TPV"]["lat"] == pytest.approx(41.18, abs=1e-7) and found["TPV"]["mode"] == 3
    assert (found["SKY"]["nSat"], found["SKY"]["uSat"], found["SKY"]["hdop"]) == (9, 9, 0.9)
    assert {s["gnssid"] for s in found["SKY"]["satellites"]} == {0}, "all of them are of GPS"
    assert found["ATT"]["heading"] == pytest.approx(math.degrees(4.0), abs=0.006)
    assert found["AIS"]["mmsi"] == 211000001


#: a boat that drifts astern, with wind from port
MEASURED = {
    "gps": [math.radians(41.18), math.radians(-8.7), 1.5, 2.0, 0.5, 0.9, 1.0, 9.0],
    "ahrs": [0.1, -0.05, 4.0, 0.0, 0.0, 0.02],
    "echosounder": [12.3],
    "ctd": [20.0, 14.25, 4.3, 35.0],
    "speedlog": [-1.5, 0.1, 0.0],
    "anemometer": [8.0, 4.0],
    "battery": [24.5, -3.2, 0.8],
    "rpm": [-1200.0, 600.0, *[math.nan] * 10],
}


def encoded(maker: Callable[..., Any], measured: dict[str, list[float]]) -> list[bytes]:
    """What an instrument sends at these values of its sensors, five seconds after the beginning."""
    out: list[bytes] = []
    sensors = Sensors({k: value(k, 5_000_000_000, v) for k, v in measured.items()})
    instrument = maker(out.append, {k: k for k in measured})
    for _ in range(2):  # each value once
        instrument.step(Step(State(0, 5_000_000_000, sensors=sensors)))
    return out


def test_canboat_and_signal_k_understand_our_bus(root: Path) -> None:
    too_much = {
        "anemometer": [700.0, 1.0],
        "battery": [400.0, 1.0, 0.5],
        "gps": [0.1, 0.1, 1.0, 1.0, 1.0, math.inf, 1.0, 9.0],
    }
    *answers, wind, battery = node(
        "nmea2000.js", encoded(nmea2000.Nmea2000Device, MEASURED) + encoded(nmea2000.Nmea2000Device, too_much), root
    )
    assert [a.get("pgn") for a in answers] == [
        126992,
        129025,
        129026,
        129029,
        127250,
        127251,
        127257,
        128267,
        130312,
        128259,
        130306,
        127508,
        127488,
        127488,
    ], answers
    found = {v["path"]: v["value"] for answer in answers for v in answer["values"]}
    position = found["navigation.position"]
    assert (position["latitude"], position["longitude"]) == pytest.approx((41.18, -8.7), abs=1e-9), (
        "in 129029: to the nm"
    )
    assert answers[1]["fields"]["latitude"] == pytest.approx(41.18, abs=1e-7)
    assert found["navigation.gnss.antennaAltitude"] == 1.5 and found["navigation.gnss.satellites"] == 9
    assert found["navigation.gnss.horizontalDilution"] == pytest.approx(0.9)
    assert (
        found["navigation.gnss.methodQuality"] == "GNSS Fix" and found["navigation.datetime"] == "2026-01-01T00:00:05Z"
    )
    assert found["navigation.speedOverGround"] == 2.0 and found["navigation.courseOverGroundTrue"] == 0.5
    assert found["navigation.headingTrue"] == 4.0 and found["navigation.rateOfTurn"] == pytest.approx(0.02, abs=1e-7)
    yaw = 4.0 - 2.0 * math.pi
    assert found["navigation.attitude"] == pytest.approx({"roll": 0.1, "pitch": -0.05, "yaw": yaw}, abs=1e-4)
    assert found["environment.depth.belowTransducer"] == 12.3
    assert found["environment.water.temperature"] == pytest.approx(287.4, abs=0.01)
    assert found["navigation.speedThroughWater"] == 1.5 and answers[9]["fields"]["speedDirection"] == 1, "astern"
    assert found["environment.wind.speedApparent"] == 8.0 and answers[10]["fields"]["reference"] == "Apparent"
    assert found["environment.wind.angleApparent"] == pytest.approx(yaw, abs=1e-4)
    assert found["electrical.batteries.0.voltage"] == 24.5
    assert found["electrical.batteries.0.current"] == pytest.approx(-3.2)
    assert [answers[k]["fields"]["speed"] for k in (12, 13)] == [1200, 600]
    assert "windSpeed" not in wind["fields"] and wind["fields"]["windAngle"] == 1, "what does not fit is not available"
    assert "voltage" not in battery["fields"] and battery["fields"]["current"] == 1


def test_signal_k_accepts_our_deltas(root: Path) -> None:
    lines = encoded(signalk.SignalKDevice, MEASURED)
    bad = b'{"context":"vessels.self","updates":[{"values":"none"}]}\n'
    *errors, some = node("deltas.js", [*lines, bad], root)
    assert errors == [[]] * len(MEASURED) and some, "its schema finds no errors, but in the last one"
    deltas = [json.loads(line) for line in lines]
    found = {v["path"]: v["value"] for d in deltas for v in d["updates"][0]["values"]}
    assert found["navigation.position"] == pytest.approx({"latitude": 41.18, "longitude": -8.7, "altitude": 1.5})
    assert found["navigation.headingTrue"] == 4.0 and found["navigation.attitude"]["yaw"] == 4.0 - 2.0 * math.pi
    assert found["navigation.speedThroughWater"] == -1.5 and found["environment.water.temperature"] == 287.4
    assert found["propulsion.0.revolutions"] == 20.0 and "propulsion.2.revolutions" not in found
    assert found["environment.wind.angleApparent"] == 4.0 - 2.0 * math.pi
    assert {d["updates"][0]["timestamp"] for d in deltas} == {"2026-01-01T00:00:05.000Z"}
    assert encoded(signalk.SignalKDevice, {"echosounder": [math.nan]}) == []


def test_ctd_and_seabird_read_our_file(tmp_path: Path) -> None:
    values = np.zeros(80, SENSORS["ctd"].dtype)
    time = 0.5 * np.arange(80)
    values["pressure"] = seabird.ATMOSPHERE + np.linspace(0.0, 60.0, 80)
    values["temperature"] = np.linspace(18.0, 12.0, 80)
    values["conductivity"] = np.linspace(4.5, 4.0, 80)
    gauge = values["pressure"] - seabird.ATMOSPHERE
    values["salinity"] = seawater.salinity(values["conductivity"], values["temperature"], gauge)
    path = tmp_path / "cast.cnv"
    path.write_text(seabird.cnv(time, values, math.radians(-41.18), math.radians(8.7)), newline="")
    cast = ctd.from_cnv(path)
    assert cast.index.to_numpy() == pytest.approx(gauge, abs=1e-4)
    assert cast["t090C"].to_numpy() * 1.00024 == pytest.approx(values["temperature"], abs=1e-4)
    assert cast["c0S/m"].to_numpy() == pytest.approx(values["conductivity"], abs=1e-6)
    assert cast["sal00"].to_numpy() == pytest.approx(values["salinity"], abs=1e-4)
    assert cast["depSM"].to_numpy() == pytest.approx(seawater.depth(gauge, math.radians(41.18)), abs=1e-3)
    assert (cast._metadata["lat"], cast._metadata["lon"]) == pytest.approx((-41.18, 8.7), abs=1e-5)
    profile = fCNV(str(path))
    assert np.asarray(profile["PRES"]) == pytest.approx(gauge, abs=1e-4)
    assert np.asarray(profile["PSAL"]) == pytest.approx(values["salinity"], abs=1e-4)
    assert profile.attributes["datetime"] == datetime(2026, 1, 1)
    assert len(fCNV(str(path))["timeS"]) == 80


@pytest.mark.mhkit
def test_mhkit_reads_our_pd0(root: Path, tmp_path: Path) -> None:
    judge = root / ".venv-mhkit/bin/python"
    if not judge.exists():
        absent("mhkit is not installed (`make test-mhkit` does it)")
    truth, data = [], b""
    for k in range(40):
        lost = k in (10, 11)
        e = dvl.Ensemble(
            k + 1,
            TIME + timedelta(seconds=0.2 * k),
            (math.nan,) * 3 if lost else (0.1 * math.sin(k), 1.0 + 0.01 * k, -0.05),
            (0.2, 0.9, 0.03),
            (20.0 + 0.1 * k, 21.0, 22.0, 23.0),
            21.5,
            heading=(0.2 * k) % (2 * math.pi),
            pitch=0.1,
            roll=-0.05,
            sound_speed=1493.0,
            temperature=12.34,
            depth=10.0 + k,
        )
        truth.append(e)
        data += dvl.pd0(e)
    (tmp_path / "x.pd0").write_bytes(data)
    subprocess.run(
        [judge, root / "tests/judges/pd0.py", tmp_path / "x.pd0", tmp_path / "x.json"],
        check=True,
        capture_output=True,
        timeout=200,
    )
    found = json.loads((tmp_path / "x.json").read_text())
    assert found["attributes"] == {
        "coord_sys": "ship",
        "orientation": "down",
        "beam_angle": "30",
        "n_beams": "4",
        "inst_make": "TRDI",
    }
    n = len(found["heading"])
    assert n >= 39, "its reader leaves out the last ensemble"
    seen = truth[:n]
    late = np.array(found["time"], "datetime64[ms]") - np.array(
        [e.time.replace(tzinfo=None) for e in seen], "datetime64[ms]"
    )
    assert np.abs(late.astype(int)).max() <= 15, "hundredths of a second, through its floating-point days"
    bottom = np.array(found["vel_bt"], float)[:3]
    expected = -np.array([e.bottom for e in seen]).T  # the bottom's velocity, not the vehicle's
    bottom = np.where(
        np.abs(bottom + 32.768) < 1e-3, np.nan, bottom
    )  # it knows bad values of cells, but not of the bottom
    assert bottom == pytest.approx(expected, abs=6e-4, nan_ok=True)
    assert np.isnan(bottom[:, 10:12]).all()
    assert np.array(found["vel"])[:3, 0] == pytest.approx(-np.array([e.water for e in seen]).T, abs=6e-4)
    assert np.array(found["dist_bt"]) == pytest.approx(np.array([e.ranges for e in seen]).T, abs=0.006)
    assert found["heading"] == pytest.approx([math.degrees(e.heading) for e in seen], abs=0.006)
    assert found["pitch"] == pytest.approx([math.degrees(0.1)] * n, abs=0.006)
    assert found["temp"] == pytest.approx([12.34] * n, abs=1e-4) and found["c_sound"] == [1493.0] * n
    assert found["depth"] == pytest.approx([e.depth for e in seen], abs=0.05)
