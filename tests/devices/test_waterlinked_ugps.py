"""Virtual Underwater GPS: its HTTP interface, positions from pings, and a locator in the sea of a real server."""

from __future__ import annotations

import json
import math
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.devices.modems import reception
from tests.devices.water import Water
from tests.nursery import launch
from tests.sdk.test_devices import step
from wavesim_devices.level_frame import level_direction
from wavesim_devices.waterlinked_ugps.acoustic import PositionFilter, RawPosition
from wavesim_devices.waterlinked_ugps.device import UnderwaterGps
from wavesim_sdk.attach import SharedState
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.tables import SignalKind
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
GPS = [math.radians(41.0), math.radians(-8.0), 0.0, 1.5, math.radians(90.0), 0.9, 1.0, 9.0]
PERIOD = 0.25


class Topside:
    """A topside with a host, and a locator whose pings arrive from a direction."""

    def __init__(self) -> None:
        self.node = Water().node(0)
        sensors = {t: t for t in ("gps", "ahrs", "temperature")}
        self.device = UnderwaterGps(self.node, sensors, (PERIOD, 0.0), 1.0)  # type: ignore[arg-type]
        self.pings = 0
        self.advance()

    def advance(self, heading: float = 0.0, roll: float = 0.0, pitch: float = 0.0, late: float = 0.0) -> None:
        self.device.step(
            step(self.pings * PERIOD + late, gps=GPS, ahrs=[roll, pitch, heading, 0.0, 0.0, 0.0], temperature=[8.0])
        )

    def ping(self, point: tuple[float, float, float], code: int = 1, kind: SignalKind = SignalKind.PULSE) -> None:
        """Let a ping arrive from a point relative to the antenna."""
        self.pings += 1
        r = math.sqrt(sum(v * v for v in point))
        arrival = self.pings * PERIOD + r / 1500.0
        heard = reception(
            int(kind),
            0,
            0,
            reception_ns=round(arrival * 1e9),
            code=code,
            azimuth=math.atan2(point[1], point[0]),
            elevation=math.asin(point[2] / r),
        )
        for call in self.node.listeners:
            call(heard)
        self.advance(late=0.1)

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.device.handle("GET", "/api/v1/" + path, None)
        assert answer.status == status, answer
        return answer.content

    def put(self, path: str, content: Any, status: int = 200) -> Any:
        answer = self.device.handle("PUT", "/api/v1/" + path, content)
        assert answer.status == status and answer.content["success"] is (status == 200), answer
        return answer.content


def test_positions_of_a_ping() -> None:
    top = Topside()
    for path in ("position/acoustic/raw", "position/acoustic/filtered", "position/global"):
        assert top.get(path, 500) == {"success": False, "error": "the position of the locator is unknown"}
    top.ping((3.0, 4.0, 12.0))
    raw = top.get("position/acoustic/raw")
    assert raw["position_valid"] is True and (raw["x"], raw["y"], raw["z"]) == pytest.approx((3.0, 4.0, 13.0), abs=1e-3)
    distances = [math.dist((3.0, 4.0, 12.0), [r[a] for a in "xyz"]) for r in top.get("config/receivers/")]
    assert raw["receiver_distance"] == pytest.approx(distances, abs=1e-3)
    assert raw["receiver_rssi"] == [120.0] * 4 and raw["receiver_nsd"] == [90.0] * 4 and all(raw["receiver_valid"])
    assert top.get("position/acoustic/filtered") == raw
    place = top.get("position/global")
    north, east, _ = Origin(GPS[0], GPS[1]).ned(math.radians(place["lat"]), math.radians(place["lon"]))
    assert (north, east) == pytest.approx((3.0, 4.0), abs=1e-3)
    assert (place["orientation"], place["cog"], place["sog"], place["fix_quality"]) == (-1, -1, -1, 1)
    top.advance(heading=math.radians(90.0))
    place = top.get("position/global")
    north, east, _ = Origin(GPS[0], GPS[1]).ned(math.radians(place["lat"]), math.radians(place["lon"]))
    assert (north, east) == pytest.approx((-4.0, 3.0), abs=1e-3)
    top.advance(late=1.2)
    assert top.get("position/acoustic/raw")["position_valid"] is False, "no ping for a second"
    top.get("position/global", 500)
    top.ping((9.0, 9.0, 9.0), code=2)
    top.ping((9.0, 9.0, 9.0), kind=SignalKind.DATA)
    assert top.get("position/acoustic/raw")["x"] == pytest.approx(3.0, abs=1e-3), "another channel, another signal"


def test_the_master() -> None:
    top = Topside()
    assert top.get("position/master") == {
        "lat": pytest.approx(41.0),
        "lon": pytest.approx(-8.0),
        "orientation": 0.0,
        "cog": 90.0,
        "sog": 5.4,
        "hdop": 0.9,
        "numsats": 9,
        "fix_quality": 1,
    }
    top.advance(heading=1.0, late=0.5)
    assert top.get("position/master")["orientation"] == 0.0, "once a second"
    top.advance(heading=1.0, late=1.1)
    assert top.get("position/master")["orientation"] == 57.3
    external = {"lat": 10.0, "long": 11.0, "cog": 42, "fix_quality": 1, "hdop": 1.9, "numsats": 11, "orientation": 42}
    top.put("external/master", external)
    top.advance(late=2.2)
    assert top.get("position/master")["lat"] == pytest.approx(41.0), "the source is still the own receiver"
    top.put("config/generic", {"gps": "external", "compass": "external"})
    top.advance(late=3.3)
    master = top.get("position/master")
    assert (master["lat"], master["lon"], master["orientation"], master["numsats"]) == (10.0, 11.0, 42.0, 11.0)
    top.put("external/orientation", {"orientation": 7})
    top.put("config/generic", {"gps": "static", "static_lat": 1, "static_lon": 2})
    top.advance(late=4.4)
    master = top.get("position/master")
    assert (master["lat"], master["lon"], master["orientation"]) == (1.0, 2.0, 7.0)
    assert top.get("about/temperature")["water"] == 8.0 and top.get("about/status")["gps"] == 1
    assert top.get("about")["product_name"]


def test_settings_take_effect() -> None:
    top = Topside()
    top.put(
        "config/generic", {"search_radius": 20, "search_direction": 90, "search_sector": 60, "speed_of_sound": 1500}
    )
    for point, valid in (((0.0, 9.0, 1.0), True), ((6.0, 9.0, 1.0), False), ((0.0, 25.0, 1.0), False)):
        for _ in range(8):
            top.ping(point)
        assert top.get("position/acoustic/filtered")["position_valid"] is valid
        top.get("position/global", 200 if valid else 500)
    top.put("config/antenna", {"x": 1, "y": 2, "depth": 3, "antenna_rotation": 90})
    top.ping((2.0, 0.0, 5.0))
    raw = top.get("position/acoustic/raw")
    assert (raw["x"], raw["y"], raw["z"]) == pytest.approx((1.0, 4.0, 8.0), abs=1e-3)
    distances = [math.dist((2.0, 0.0, 5.0), [r[a] for a in "xyz"]) for r in top.get("config/receivers")]
    assert raw["receiver_distance"] == pytest.approx(distances, abs=1e-3)
    assert top.get("config/receivers/3") == {"id": 3, "x": 0.0, "y": 0.0, "z": 0.2}
    top.put("config/generic", {"speed_of_sound": 1575, "channel": 5})
    top.ping((2.0, 0.0, 5.0), code=5)
    raw = top.get("position/acoustic/raw")
    assert raw["z"] == pytest.approx(3.0 + 5.0 * 1.05, abs=1e-3)


def test_the_depth_of_locator_a1_comes_from_the_host() -> None:
    top = Topside()
    top.put("config/generic", {"locator_type": "a1"})
    top.ping((3.0, 4.0, 12.0))
    top.get("position/acoustic/raw", 500)
    top.put("external/depth", {"depth": 6.0, "temp": 10.0})
    top.ping((3.0, 4.0, 12.0))
    raw = top.get("position/acoustic/raw")
    flat = math.sqrt(13.0**2 - 5.0**2)
    assert (raw["x"], raw["y"], raw["z"]) == pytest.approx((0.6 * flat, 0.8 * flat, 6.0), abs=1e-3)
    top.put("external/depth", {"depth": 60.0, "temp": 10.0})
    top.ping((1.0, 0.0, 1.0))
    assert top.get("position/acoustic/raw")["z"] == 6.0, "a range shorter than the depth gives no position"


def test_the_level_of_the_antenna() -> None:
    roll, pitch = 0.2, -0.1
    down = np.array([0.3, -0.4, math.sqrt(0.75)])
    rx = np.array([[1, 0, 0], [0, math.cos(roll), -math.sin(roll)], [0, math.sin(roll), math.cos(roll)]])
    ry = np.array([[math.cos(pitch), 0, math.sin(pitch)], [0, 1, 0], [-math.sin(pitch), 0, math.cos(pitch)]])
    body = (ry @ rx).T @ down
    found = level_direction(math.atan2(body[1], body[0]), math.asin(body[2]), roll, pitch)
    assert found == pytest.approx(tuple(down))


def test_the_filter_follows_a_moving_locator() -> None:
    rng = np.random.default_rng(1)
    position_filter = PositionFilter(PERIOD)
    errors = []
    for k in range(400):
        true = np.array([0.3 * k * PERIOD, 5.0, 10.0])
        noisy = true + rng.normal(0.0, 0.1, 3)
        point = position_filter.update(
            RawPosition(k * PERIOD, (float(noisy[0]), float(noisy[1]), float(noisy[2])), 120.0, 90.0)
        )
        errors.append(np.array(point) - true)
    late = np.array(errors[100:])
    assert np.abs(late.mean(0)).max() < 0.02 and late.std() < 0.09
    assert 0.1 < position_filter.std < 0.25


@pytest.mark.parametrize(
    ("path", "content", "text"),
    [
        ("config/generic", {"channel": 0}, "channel must be a number between 1 and 32"),
        ("config/generic", {"channel": 1.5}, "channel must be a whole number"),
        ("config/generic", {"gps": "none"}, "gps must be one of onboard, static, external"),
        ("config/generic", {"speed_of_sound": True}, "speed_of_sound must be a number"),
        ("config/generic", {"speed_of_sound": math.nan}, "speed_of_sound must be a number"),
        ("config/generic", [1], "the content must be a JSON object"),
        ("config/generic", None, "the content must be a JSON object"),
        ("config/antenna", {"depth": 11}, "depth must be a number between 0.1 and 10"),
        ("config/antenna", {"height": 1}, "unknown key 'height': use x, y, depth, antenna_rotation"),
        ("external/depth", {"temp": 3}, "'depth' is missing"),
        ("external/master", {"lat": 91, "lon": 0}, "lat must be"),
        ("external/orientation", {}, "'orientation' is missing"),
    ],
)
def test_invalid_content_is_refused(path: str, content: Any, text: str) -> None:
    top = Topside()
    assert text in top.put(path, content, 400)["error"]
    assert top.device.errors == 1


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["GET", "PUT", "POST", "DELETE"]),
    st.text(max_size=20) | st.sampled_from(["config/generic", "external/master", "config/receivers/9", "poi"]),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["lat", "lon", "long", "channel", "gps", "x"]), inner, max_size=3)
        ),
    ),
)
def test_any_request_is_answered(method: str, path: str, content: Any) -> None:
    answer = Topside().device.handle(method, "/api/v1/" + path, content)
    assert answer.status in (200, 400, 404, 500)


def test_two_hosts_have_their_own_answers_and_noise_ends_only_its_own_connection() -> None:
    top = Topside()
    out: list[list[bytes]] = [[], [], []]
    hosts = [top.device.connect("http", o.append) for o in out]
    hosts[0].receive(b"GET /api/v1/config/antenna HTTP/1.1\r\nHost: a\r\n\r\n")
    hosts[1].receive(b"\xff\x00" * 500_000)
    hosts[2].receive(b"GET /api/v1/about HTTP/1.1\r\nHos")
    hosts[2].receive(b"t: a\r\n\r\n")
    assert json.loads(out[0][0].partition(b"\r\n\r\n")[2])["depth"] == 1.0
    assert out[1][0].startswith(b"HTTP/1.1 431 ") and out[1][-1] == b""
    assert b"G2" in out[2][0]


# ------------------------------------------------------------------ a real server

SEA = """<time step="10 ms"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="60 m"/></world>
<network keepalive_timeout="20 s"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" attitude="0 0 30 deg" client="optional">
<transducer position="0 0 1.1 m" threshold="80 dB" listen_low="30 kHz" listen_high="250 kHz"><head timing_noise="0.5 us">
<hydrophone position="0.2 0 1.1 m"/><hydrophone position="-0.2 0 1.1 m"/><hydrophone position="0 0.2 1.1 m"/>
<hydrophone position="0 0 1.3 m"/></head></transducer>
<sensors><gps rate="5 Hz" noise="0" position="0 0 -1 m"/><ahrs rate="20 Hz"/></sensors></vehicle>
<vehicle name="rov" model="bluerov2-heavy" position="20 12 15 m">
<transducer code="1" pulse="10 ms" recharge="0 s" source_level="180 dB" listen_low="30 kHz" listen_high="250 kHz">
<pinger frequency="100 kHz" period="250 ms"/></transducer></vehicle></fleet>"""


def fetch(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
def test_the_locator_of_a_rov(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], processes: list[subprocess.Popen[str]]
) -> None:
    path = config(SEA).path
    server = serve(path, "--speed", "4")
    processes.append(launch("emulate", "all", path, "-s", server.name))
    url = f"http://{device(processes, server, 'waterlinked-ugps', '--http', 'tcp:0')}/api/v1/"
    server.send("start")
    state = SharedState(server.name)
    errors: list[np.ndarray] = []
    limit = time.monotonic() + 60.0
    while len(errors) < 40 and time.monotonic() < limit:
        try:
            found = fetch(url + "position/acoustic/raw")
            place = fetch(url + "position/global")
        except urllib.error.HTTPError as error:
            assert error.code == 500
            continue
        true = state.snapshot().state
        boat, rov = (true[state.row(n)]["p_WB_W"] for n in ("boat", "rov"))
        p = Origin(math.radians(41.18), math.radians(-8.70)).ned(math.radians(place["lat"]), math.radians(place["lon"]))
        assert found["position_valid"]
        errors.append(np.array([*(p[:2] - rov[:2]), found["z"] - (rov[2] - boat[2] - 0.1)]))
    assert len(errors) == 40
    # few independent fixes; 1 deg of elevation is 0.4 m of depth
    assert (np.abs(np.median(errors, 0)) < (0.6, 0.6, 1.2)).all(), errors
