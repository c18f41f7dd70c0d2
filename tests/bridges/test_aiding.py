"""Acoustic fixes and Doppler velocities for an autopilot's own navigation filter, decoded by pymavlink."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.conftest import wavesim
from wavesim_bridges.acoustic_fixes import (
    DEPTH_SIGMA,
    RANGE_SIGMA,
    AcousticFixes,
    PositionFix,
    UsblReply,
    direction_sigma,
    position_from_directions,
)
from wavesim_bridges.aiding import AidingOptions, MavlinkAids
from wavesim_bridges.core import BridgeOptions
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_sdk.errors import WaveSimError
from wavesim_world.config import LoadedConfig
from wavesim_world.config.acoustics import Hydrophone, UsblHead

dialect: Any = pytest.importorskip("pymavlink.dialects.v20.ardupilotmega")

HEAD = """<head timing_noise="0.3 us" sound_speed="1500 m/s"><hydrophone position="0.05 0 0 m"/>
<hydrophone position="-0.05 0.05 0 m"/><hydrophone position="-0.05 -0.05 0 m"/><hydrophone position="-0.05 0 0.05 m"/>
<hydrophone position="-0.05 0 -0.05 m"/></head>"""


def beacon(name: str, place: str, reply: int, query: int = 25) -> str:
    return f"""<buoy name="{name}" model="buoy" position="{place} 19 m">
<transducer threshold="90 dB" recharge="300 ms" query="{query} kHz" reply="{reply} kHz"/>
<mooring anchor="{place} 20 m" length="0.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>"""


BEACONS = beacon("west", "0 -30", 26), beacon("north", "40 5", 27), beacon("south", "-25 35", 28)


def world(*beacons: str, head: str = HEAD, sensors: str = "<pressure/><ahrs/><dvl rate='5 Hz'/>") -> str:
    return f"""<time step="2.5 ms"/><world latitude="41.185 deg" longitude="-8.705 deg"><bed depth="20 m"/></world>
<acoustics sound_speed="1500 m/s" ambient_noise="70 dB"/><fleet>
<vehicle name="rov" model="bluerov2-vectored" position="5 8 3 m" client="optional"><sensors>{sensors}</sensors>
<transducer threshold="90 dB" timing_noise="50 us" recharge="300 ms">{head}</transducer></vehicle>{"".join(beacons)}</fleet>"""


def test_messages_of_the_aids() -> None:
    """A position needs an origin, and an origin needs an autopilot. A position states its covariance, and a velocity its interval."""
    sent: list[bytes] = []
    addresses: list[tuple[str, int]] = []

    class Transport(asyncio.DatagramTransport):
        def sendto(self, data: Any, addr: Any = None) -> None:
            sent.append(bytes(data))
            addresses.append(addr)

    said: list[str] = []
    aids = MavlinkAids(WorldOrigin(41.185, -8.705), said.append, 0)
    aids.connection_made(Transport())
    fix = PositionFix(12.5, (3.0, -4.0, 2.0), (0.04, 0.01, 0.09))
    aids.beat(1.0)
    aids.send_fix(fix)
    assert sent == [], "no autopilot is connected"
    mav = dialect.MAVLink(None, srcSystem=7, srcComponent=1)
    for component in (190, 1):  # a ground station is no autopilot
        mav.srcComponent = component
        aids.datagram_received(dialect.MAVLink_heartbeat_message(12, 3, 0, 0, 4, 3).pack(mav), ("127.0.0.1", 5))
        assert (len(said) == 1) == (component == 1)
    aids.datagram_received(b"\xfdnoise", ("127.0.0.1", 5))
    aids.beat(1.0)
    aids.beat(1.5)
    aids.send_fix(fix)
    aids.datagram_received(dialect.MAVLink_gps_global_origin_message(1, 2, 3).pack(mav), ("127.0.0.1", 5))
    aids.beat(2.0)
    aids.send_fix(fix)
    aids.send_velocity(12.6, (0.5, -0.25, 0.0), 0.2)
    reader = dialect.MAVLink(None)
    heartbeat, origin, second, position, delta = reader.parse_buffer(b"".join(sent))
    assert heartbeat.get_type() == second.get_type() == "HEARTBEAT" and heartbeat.get_srcComponent() == 197
    assert (origin.target_system, origin.latitude, origin.longitude, origin.altitude) == (7, 411850000, -87050000, 0)
    assert (position.get_type(), position.usec) == ("VISION_POSITION_ESTIMATE", 12_500_000)
    assert (position.x, position.y, position.z) == (3.0, -4.0, 2.0)
    assert [position.covariance[k] for k in (0, 1, 6, 11)] == pytest.approx([0.04, 0.01, 0.09, 0.01])
    assert (delta.get_type(), delta.time_delta_usec, delta.confidence) == ("VISION_POSITION_DELTA", 200_000, 100.0)
    assert delta.position_delta == pytest.approx([0.1, -0.05, 0.0])
    known = [aids.has_origin]
    assert set(addresses) == {("127.0.0.1", 5)}
    aids.datagram_received(dialect.MAVLink_heartbeat_message(12, 3, 0, 0, 4, 3).pack(mav), ("127.0.0.1", 6))
    known.append(aids.has_origin)
    assert known == [True, False], "a restarted autopilot has another port, and no origin"
    aids.beat(2.5)
    again = reader.parse_buffer(b"".join(sent[-2:]))
    assert [m.get_type() for m in again] == ["HEARTBEAT", "SET_GPS_GLOBAL_ORIGIN"] and addresses[-1][1] == 6


@pytest.mark.parametrize(
    ("method", "content", "text"),
    [
        (
            "lbl",
            world(*BEACONS[:2]),
            "lbl fixes need at least 3 transponders with 'query' and 'reply' in .*, which has 2",
        ),
        ("usbl", world(), "usbl fixes need at least 1 transponders"),
        ("usbl", world(*BEACONS, head=""), "USBL fixes need a <head> in the transducer of 'rov'"),
        ("lbl", world(*BEACONS, beacon("odd", "9 9", 29, 24)), "different query frequencies"),
        ("lbl", world(*BEACONS).replace('"rov"', '"rover"'), "has no vehicle 'rov'; did you mean 'rover'"),
    ],
)
def test_fixes_that_a_configuration_cannot_give(
    config: Callable[..., LoadedConfig], method: str, content: str, text: str
) -> None:
    options = AidingOptions(method, 1.0, None, 14560, str(config(content).path))
    with pytest.raises(WaveSimError, match=text):
        options.aids(BridgeOptions("rov", ("127.0.0.1", 1), 0.0025), 0)


def test_aids_need_a_configuration() -> None:
    done = wavesim("bridge", "ardupilot", "--vehicle", "rov", "--frame", "vectored", "--fixes", "lbl")
    assert done.returncode == 1 and "--fixes and --doppler need --config FILE" in done.stderr


FAR = ((0.0, -30.0, 19.0), (40.0, 5.0, 19.0), (-25.0, 35.0, 19.0))


@pytest.mark.parametrize(
    ("beacons", "largest"),
    [(FAR, 0.2), (FAR[1:2], 0.5), (((5.5, 8.0, 19.0),), 0.3), (((400.0, 300.0, 19.0),), 6.0)],
    ids=["three", "one", "below", "distant"],
)
def test_usbl_positions_are_as_accurate_as_they_state(
    beacons: tuple[tuple[float, float, float], ...], largest: float
) -> None:
    """Over many measurements, the errors have the stated covariance: the ranges of several transponders determine it."""
    random, angle, truth = np.random.default_rng(3), np.radians(0.5), np.array([5.0, 8.0, 3.7])
    errors, covariances = [], []
    for _ in range(1500):
        replies = []
        for beacon in beacons:
            offset = np.array(beacon) - truth
            distance = float(np.linalg.norm(offset))
            noise = random.normal(0.0, angle, 3)
            direction = offset / distance + noise - offset * (noise @ offset) / distance**2
            measured = (distance + random.normal(0.0, RANGE_SIGMA)) * direction / np.linalg.norm(direction)
            replies.append(UsblReply(beacon, measured, 0.0))
        found = position_from_directions(replies, truth[2] + random.normal(0.0, DEPTH_SIGMA), angle)
        assert found is not None
        errors.append(np.array(found[0]) - truth[:2])
        covariances.append(found[1])
    nn, ne, ee = np.mean(covariances, axis=0)
    stated, actual = np.array([[nn, ne], [ne, ee]]), np.cov(np.array(errors).T)
    assert np.abs(np.mean(errors, axis=0)).max() < 0.15 * largest
    ratio = np.linalg.eigvals(np.linalg.solve(stated, actual)).real
    assert ratio.min() > 0.8 and ratio.max() < 1.25
    assert 0.5 * largest < np.sqrt(np.trace(actual)) < largest


def test_contradictory_usbl_replies_give_no_position() -> None:
    truth = np.array([5.0, 8.0, 3.7])
    offsets = [np.array(b) - truth for b in FAR]
    good = [UsblReply(b, o, 0.0) for b, o in zip(FAR, offsets, strict=True)]
    echo = UsblReply(FAR[0], offsets[0] * 1.2, 0.0)  # a path 8 m longer than the direct one
    assert position_from_directions(good, 3.7, 0.01) is not None
    assert position_from_directions([echo, *good[1:]], 3.7, 0.01) is None


@pytest.mark.parametrize("planar", [False, True])
def test_direction_error_of_a_head(planar: bool) -> None:
    """The error agrees with directions computed from noisy arrival times; the heading of the AHRS is added."""
    places = [(0.05, 0.0, 0.0), (-0.05, 0.05, 0.0), (-0.05, -0.05, 0.0), (-0.05, 0.0, 0.0 if planar else 0.05)]
    head = UsblHead(hydrophone=tuple(Hydrophone(position=p) for p in places), timing_noise=3e-6)
    centred = np.array(places) - np.mean(places, axis=0)
    random = np.random.default_rng(4)
    slowness = np.linalg.pinv(centred) @ random.normal(0.0, 3e-6, (4, 4000))
    worst = 1500.0 * np.sqrt(np.linalg.eigvalsh(np.cov(slowness)).max())
    assert direction_sigma(head, 1500.0) == pytest.approx(np.hypot(worst, np.radians(0.3)), rel=0.03)


@pytest.mark.parametrize("clock_error", [0.0, 100.0])
def test_attitude_of_a_turning_vehicle_at_the_arrival(config: Callable[..., LoadedConfig], clock_error: float) -> None:
    """The last attitude is 80 ms old, and the vehicle has turned by 2.4 deg since, which are 1.6 m at the transponder."""
    fixes = AcousticFixes("usbl", config(world(BEACONS[1])), "rov", 1.0)
    sensor_list = [SimpleNamespace(name=n, type=n) for n in ("pressure", "ahrs")]
    broker: Any = SimpleNamespace(sensors=sensor_list, ping=lambda frequency: 7)
    fixes.on_joined(broker)
    truth, rate = np.array([5.0, 8.0, 3.0]), np.radians(30.0)
    ahead = np.array([40.0, 5.0, 19.0]) - truth
    yaw = np.radians(50.0)  # at the arrival
    arrival, measured_ns = 10.0, 9_920_000_000
    ahrs = SimpleNamespace(
        time_ns=measured_ns, roll=0.0, pitch=0.0, heading=yaw - 0.08 * rate, rates=np.array([0.0, 0.0, rate])
    )
    sensors = {"pressure": SimpleNamespace(pressure=10.1325 + 3.0 * 1025.0 * 9.80665 * 1e-4), "ahrs": ahrs}
    heard = SimpleNamespace(
        reception_ns=round(1e9 * (arrival + clock_error)),
        query=3,
        frequency=27e3,
        range=float(np.linalg.norm(ahead)),
        azimuth=float(np.arctan2(ahead[1], ahead[0]) - yaw),
        elevation=float(np.arctan2(ahead[2], np.hypot(*ahead[:2]))),
    )

    def step(time: float, sent: list[Any], receptions: list[Any]) -> Any:
        return SimpleNamespace(time=time, sent=sent, receptions=receptions, sensors=sensors)

    assert list(fixes.advance(broker, step(9.9, [], []))) == []
    found = list(fixes.advance(broker, step(arrival, [SimpleNamespace(request=7, id=3)], [heard])))
    assert len(found) == 1 and found[0].position[:2] == pytest.approx(truth[:2], abs=0.1)
