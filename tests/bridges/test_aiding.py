"""Acoustic fixes and Doppler velocities for an autopilot's own navigation filter, decoded by pymavlink."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import wavesim
from wavesim_bridges.acoustic_fixes import PositionFix
from wavesim_bridges.aiding import AidingOptions, MavlinkAids
from wavesim_bridges.core import BridgeOptions
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_sdk.errors import WaveSimError
from wavesim_world.config import LoadedConfig

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
