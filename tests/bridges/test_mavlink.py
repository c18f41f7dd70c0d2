"""MAVLink without an autopilot: its bytes, answers to a ground station, and vehicles controlled by MAVSDK."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest

from tests.bridges.groundstation import GroundStation
from tests.conftest import wavesim
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.mavlink import GroundStationSocket, MavlinkVehicle
from wavesim_bridges.mavlink_codec import LAYOUTS, NUMBERS, MavlinkMessage, MavlinkWriter, read, x25
from wavesim_bridges.pilot import pilot_for
from wavesim_bridges.vehicle_motion import VehicleMotion
from wavesim_sdk.errors import BrokerError

HEARTBEAT = bytes.fromhex("fd090000000101000000000000000c000103039a63")
LATITUDE, LONGITUDE = 41.185, -8.705

#: of the standard: what proves that both sides mean the same fields
CRC_EXTRA = {
    0: 50, 1: 124, 2: 137, 4: 237, 11: 89, 20: 214, 21: 159, 22: 220, 23: 168, 24: 24, 30: 39, 31: 246, 32: 185, 33: 104,
    43: 132, 44: 221, 45: 232, 47: 153, 69: 243, 75: 158, 76: 152, 77: 143, 84: 143, 86: 5, 111: 34, 148: 178, 242: 104,
    245: 130, 300: 217, 40: 230, 41: 28, 42: 28, 46: 11, 51: 196, 73: 38, 93: 47, 107: 108, 113: 124, 115: 4, 132: 85, 331: 91,
    74: 20, 244: 95, 435: 134, 436: 193, 48: 41, 49: 39, 102: 158, 11011: 106,
}  # fmt: skip


def test_the_bytes_of_a_heartbeat() -> None:
    writer = MavlinkWriter(1, 1)
    assert writer.frame("HEARTBEAT", type=12, base_mode=1, system_status=3, mavlink_version=3) == HEARTBEAT
    assert writer.frame("HEARTBEAT", type=12)[4] == 1, "the next number"
    found, faults = read(HEARTBEAT)
    assert not faults and (found[0].name, found[0].system, found[0].component) == ("HEARTBEAT", 1, 1)
    assert found[0].fields["type"] == 12 and found[0].fields["mavlink_version"] == 3


def test_every_message_is_the_standard_s() -> None:
    assert {n: layout.crc_extra for n, layout in LAYOUTS.items()} == CRC_EXTRA


def test_zeros_at_the_end_are_cut_and_come_back() -> None:
    data = MavlinkWriter(9, 1).frame("MISSION_COUNT")
    assert data[1] == 1, "one byte is left of nothing but zeros"
    (message,), _ = read(data)
    assert set(message.fields.values()) == {0} and message.system == 9
    (text,), _ = read(MavlinkWriter(1, 1).frame("PARAM_VALUE", param_id="MAV_SYS_ID", param_count=1))
    assert text.fields["param_id"] == "MAV_SYS_ID" and text.fields["param_count"] == 1
    with pytest.raises(TypeError, match="HEARTBEAT has no field kind"):
        MavlinkWriter(1, 1).frame("HEARTBEAT", kind=1)


def test_several_in_a_datagram_signed_ones_and_those_of_others() -> None:
    signed = bytearray(MavlinkWriter(1, 1).frame("PING", seq=7))
    signed[2] = 1
    signed[-2:] = x25(bytes(signed[1:-2]) + bytes([237])).to_bytes(2, "little")
    other = bytes([0xFD, 1, 0, 0, 0, 1, 1, 0xE8, 3, 0, 5, 0, 0])
    found, faults = read(HEARTBEAT + bytes(signed) + bytes(13) + other + HEARTBEAT)
    assert not faults and [m.name for m in found] == ["HEARTBEAT", "PING", "HEARTBEAT"]
    assert found[1].fields["seq"] == 7


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x00" + HEARTBEAT, "magic"),
        (b"\xfe" + HEARTBEAT, "MAVLink 1"),
        (HEARTBEAT[:5], "size"),
        (HEARTBEAT[:-1], "size"),
        (HEARTBEAT[:-1] + b"\x00", "checksum"),
        (HEARTBEAT[:2] + b"\x02" + HEARTBEAT[3:], "flags"),
        (HEARTBEAT + b"x", "magic"),
        (HEARTBEAT[:2] + b"\x01" + HEARTBEAT[3:], "size"),
    ],
)
def test_what_is_no_frame(data: bytes, reason: str) -> None:
    assert read(data)[1] == [reason]


def test_geographic_positions_are_those_of_the_ellipsoid() -> None:
    for at in ((LATITUDE, LONGITUDE), (0.0, 0.0), (-70.0, 179.0)):
        origin = WorldOrigin(*at)
        for north, east in ((0.0, 0.0), (3000.0, -4000.0), (-9000.0, 20.0)):
            latitude, longitude, _ = pymap3d.ned2geodetic(north, east, 0.0, *at, 0.0)
            assert origin.degrees(north, east) == pytest.approx((latitude, longitude), abs=1e-10)
            assert origin.metres(*origin.degrees(north, east)) == pytest.approx((north, east), abs=0.02)


# -- a station, without sockets


class Talk:
    """A station that speaks to a vehicle; the second is a number."""

    def __init__(self) -> None:
        self.drops: Counter[str] = Counter()
        self.vehicle = MavlinkVehicle(1, WorldOrigin(LATITUDE, LONGITUDE), lambda reason: self.drops.update([reason]))
        self.vehicle.motion = VehicleMotion(
            12.5,
            np.array([10.0, -20.0, 3.0]),
            np.array([0.1, 0.2, -0.3]),
            np.array([1.0, 0, 0, 0]),
            np.zeros(3),
            np.zeros(3),
        )
        self.writer = MavlinkWriter(245, 190)

    def ask(self, name: str, now: float = 0.0, **fields: Any) -> list[MavlinkMessage]:
        return [m for d in self.vehicle.receive(self.writer.frame(name, **fields), now) for m in read(d)[0]]

    def command(self, number: int, *numbers: float, target: int = 1) -> list[MavlinkMessage]:
        return self.ask(
            "COMMAND_LONG", command=number, target_system=target, **{f"param{k}": v for k, v in enumerate(numbers, 1)}
        )

    def sent(self, now: float) -> list[str]:
        return [m.name for d in self.vehicle.take_due_frames(now) for m in read(d)[0]]


def offboard(talk: Talk) -> None:
    talk.command(400, 1.0)
    talk.command(176, 1.0, 6.0)


@pytest.mark.parametrize(
    ("number", "numbers", "result"),
    [
        (400, (1.0,), 0),
        (400, (0.0, 21196.0), 0),
        (400, (0.5,), 2),
        (400, (math.nan,), 2),
        (176, (1.0, 6.0), 0),
        (176, (1.0, 4.0, 3.0), 0),
        (176, (1.0, 2.0), 2),
        (176, (1.0, math.nan), 2),
        (176, (1.0, 4.0, 4.0), 2),
        (300, (), 2),
        (224, (0.0,), 2),
        (511, (33.0, 1e5), 0),
        (511, (33.0, math.nan), 2),
        (511, (76.0, 1e5), 2),
        (512, (148.0,), 0),
        (512, (42.0,), 0),
        (512, (9999.0,), 2),
        (512, (math.inf,), 2),
        (512, (76.0,), 2),
        (519, (1.0,), 0),
        (520, (1.0,), 0),
        (22, (), 3),
    ],
)
def test_every_command_is_answered(number: int, numbers: tuple[float, ...], result: int) -> None:
    first = Talk().command(number, *numbers)[0]
    assert first.name == "COMMAND_ACK" and first.fields["command"] == number and first.fields["result"] == result
    assert (first.fields["target_system"], first.fields["target_component"]) == (245, 190)


def test_what_else_is_answered() -> None:
    talk = Talk()
    assert [m.name for m in talk.command(512, 148.0)] == ["COMMAND_ACK", "AUTOPILOT_VERSION"]
    assert [m.name for m in talk.command(512, 242.0)] == ["COMMAND_ACK", "HOME_POSITION"]
    assert talk.ask("PING", seq=4)[0].fields["target_system"] == 245
    sync = talk.ask("TIMESYNC", now=2.0, ts1=77)[0].fields
    assert sync == {"tc1": 2_000_000_000, "ts1": 77} and not talk.ask("TIMESYNC", tc1=1)
    assert talk.ask("PARAM_REQUEST_LIST", target_system=1)[0].fields["param_count"] == 1
    assert talk.ask("PARAM_REQUEST_READ", target_system=1, param_id="MAV_SYS_ID", param_index=-1)
    assert not talk.ask("PARAM_REQUEST_READ", target_system=1, param_id="OTHER", param_index=-1)
    assert talk.ask("MISSION_REQUEST_LIST", target_system=1)[0].fields["count"] == 0
    assert not talk.command(400, 1.0, target=2), "another vehicle's"
    assert (
        talk.ask("COMMAND_INT", command=400, param1=1.0, target_system=1, target_component=1)[0].fields["result"] == 0
    )
    assert talk.vehicle.armed


def test_messages_are_sent_as_often_as_is_wished() -> None:
    talk = Talk()
    times = [0.02 * k for k in range(500)]
    found = Counter(name for t in times for name in talk.sent(t))
    assert found["HEARTBEAT"] == 10 and found["HOME_POSITION"] == 5 and 240 <= found["GLOBAL_POSITION_INT"] <= 250
    talk.command(511, 33.0, 1e5)
    talk.command(511, 30.0, -1.0)
    found = Counter(name for t in times for name in talk.sent(10.0 + t))
    assert 95 <= found["GLOBAL_POSITION_INT"] <= 101 and found["ATTITUDE"] <= 1 and found["HEARTBEAT"] == 10
    talk.vehicle.motion = None
    standing = {"HEARTBEAT", "SYS_STATUS", "EXTENDED_SYS_STATE", "CURRENT_MODE", "HOME_POSITION", "MISSION_CURRENT"}
    assert set(Counter(name for t in times for name in talk.sent(30.0 + t))) == standing, "before the first state"


def test_a_wish_counts_for_a_second_when_armed_and_in_its_mode() -> None:
    talk = Talk()
    setpoint: dict[str, Any] = {
        "coordinate_frame": 1,
        "type_mask": 0xFF8 & ~1024,
        "x": 5.0,
        "y": 2.0,
        "z": 3.0,
        "yaw": 0.5,
    }
    talk.ask("SET_POSITION_TARGET_LOCAL_NED", 1.0, **setpoint)
    assert talk.vehicle.current_setpoint(1.0) is None, "not armed"
    talk.command(400, 1.0)
    assert talk.vehicle.current_setpoint(1.0) is None, "not in that mode"
    talk.command(176, 1.0, 6.0)
    wish = talk.vehicle.current_setpoint(1.9)
    assert wish is not None and wish.position.tolist() == [5.0, 2.0, 3.0] and wish.heading == 0.5
    assert np.isnan(wish.velocity).all() and talk.vehicle.current_setpoint(2.1) is None, "silence"
    talk.ask("SET_POSITION_TARGET_LOCAL_NED", 3.0, coordinate_frame=8, type_mask=0x1C7 | 0x400, vx=1.0, yaw_rate=0.2)
    wish = talk.vehicle.current_setpoint(3.0)
    assert wish is not None and wish.body_velocity and wish.velocity[0] == 1.0 and wish.rate == pytest.approx(0.2)
    latitude, longitude = talk.vehicle.origin.degrees(7.0, -8.0)
    talk.ask(
        "SET_POSITION_TARGET_GLOBAL_INT",
        4.0,
        coordinate_frame=6,
        type_mask=0xFF8,
        lat_int=round(latitude * 1e7),
        lon_int=round(longitude * 1e7),
        alt=-4.0,
    )
    wish = talk.vehicle.current_setpoint(4.0)
    assert wish is not None and wish.position == pytest.approx([7.0, -8.0, 4.0], abs=0.02)
    talk.command(400, 0.0)
    assert talk.vehicle.current_setpoint(4.0) is None
    talk.ask("SET_MODE", base_mode=1, custom_mode=1 << 16, target_system=1)
    talk.command(400, 1.0)
    talk.ask("MANUAL_CONTROL", 5.0, target=1, x=500, y=32767, z=250, r=-1000)
    wish = talk.vehicle.current_setpoint(5.0)
    assert wish is not None and wish.velocity.tolist() == [0.5, 0.0, 0.5] and wish.rate < 0.0


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("SET_POSITION_TARGET_LOCAL_NED", {"coordinate_frame": 1, "x": math.nan}, "not finite"),
        ("SET_POSITION_TARGET_LOCAL_NED", {"coordinate_frame": 1, "vz": math.inf, "type_mask": 7}, "not finite"),
        ("SET_POSITION_TARGET_LOCAL_NED", {"coordinate_frame": 8}, "frame"),
        ("SET_POSITION_TARGET_LOCAL_NED", {"coordinate_frame": 99, "type_mask": 7}, "frame"),
        ("SET_POSITION_TARGET_GLOBAL_INT", {"coordinate_frame": 11}, "frame"),
        (
            "SET_POSITION_TARGET_GLOBAL_INT",
            {"coordinate_frame": 6, "lat_int": 2_000_000_000},
            "latitude or longitude out of range",
        ),
        ("MANUAL_CONTROL", {"target": 1, "x": 1001}, "stick value beyond 1000"),
    ],
)
def test_a_wish_that_cannot_be(name: str, fields: dict[str, Any], reason: str) -> None:
    talk = Talk()
    offboard(talk)
    talk.ask(name, 1.0, **fields)
    assert talk.drops == {reason: 1} and talk.vehicle.current_setpoint(1.0) is None


# -- missions, without sockets


def waypoint(talk: Talk, seq: int, north: float, east: float, depth: float, **others: Any) -> dict[str, Any]:
    latitude, longitude = talk.vehicle.origin.degrees(north, east)
    return {
        "target_system": 1,
        "seq": seq,
        "frame": 6,
        "command": 16,
        "x": round(1e7 * latitude),
        "y": round(1e7 * longitude),
        "z": -depth,
        "param4": math.nan,
        **others,
    }


def upload(talk: Talk, items: list[dict[str, Any]]) -> int:
    """The result of an upload in which each item is sent when it is asked for."""
    (answer,) = talk.ask("MISSION_COUNT", target_system=1, count=len(items))
    while answer.name == "MISSION_REQUEST_INT":
        (answer,) = talk.ask("MISSION_ITEM_INT", **items[answer.fields["seq"]])
    assert answer.name == "MISSION_ACK"
    return int(answer.fields["type"])


def test_a_mission_goes_up_and_comes_down_again() -> None:
    talk = Talk()
    items = [
        {"target_system": 1, "seq": 0, "frame": 2, "command": 178, "param1": 1.0, "param2": 0.6},
        waypoint(talk, 1, 12.0, -20.0, 3.0),
        waypoint(talk, 2, 12.0, -25.0, 4.0, param1=2.0, param2=0.5),
    ]
    assert upload(talk, items) == 0
    assert talk.ask("MISSION_REQUEST_LIST", target_system=1)[0].fields["count"] == 3
    for k, item in enumerate(items):
        (down,) = talk.ask("MISSION_REQUEST_INT", target_system=1, seq=k)
        assert {n: down.fields[n] for n in ("x", "command", "seq", "frame")} == {
            n: item.get(n, 0) for n in ("x", "command", "seq", "frame")
        }
    assert talk.ask("MISSION_REQUEST", target_system=1, seq=3)[0].fields["type"] == 13, "there is none such"
    assert talk.ask("MISSION_COUNT", target_system=1, count=2, mission_type=1)[0].fields["type"] == 3, "no fences"
    assert talk.ask("MISSION_REQUEST_LIST", target_system=1, mission_type=2)[0].fields["count"] == 0
    talk.ask("MISSION_COUNT", 0.0, target_system=1, count=3)
    assert len(talk.vehicle.mission.items) == 3, "the old one counts until the new one is whole"
    asked = [t for t in range(20) if "MISSION_REQUEST_INT" in talk.sent(float(t))]
    assert asked == [1, 2, 3, 4] and not talk.ask("MISSION_ACK", target_system=1), (
        "asked for five times in all, then given up"
    )
    assert talk.ask("MISSION_CLEAR_ALL", target_system=1)[0].fields["type"] == 0 and not talk.vehicle.mission.items


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({"command": 21}, 3),
        ({"frame": 8}, 2),
        ({"x": 910_000_000}, 10),
        ({"y": 2_000_000_000}, 11),
        ({"z": math.nan}, 12),
    ],
)
def test_a_mission_that_cannot_be_flown(change: dict[str, Any], result: int) -> None:
    talk = Talk()
    assert upload(talk, [waypoint(talk, 0, 1.0, 1.0, 1.0, **change)]) == result and not talk.vehicle.mission.items
    assert talk.ask("MISSION_COUNT", target_system=1, count=501)[0].fields["type"] == 4
    assert talk.ask("MISSION_ITEM_INT", **waypoint(talk, 0, 1.0, 1.0, 1.0))[0].fields["type"] == 13, "not asked for"


def test_a_mission_goes_on_from_item_to_item() -> None:
    """Position, speed, stay, return; what is reported; another item by command; hold keeps the place."""
    talk = Talk()
    motion = talk.vehicle.motion
    assert motion is not None and motion.position.tolist() == [10.0, -20.0, 3.0]

    def at(north: float, east: float, seconds: float) -> list[str]:
        motion.time += seconds
        motion.position[:2] = north, east
        talk.vehicle.update_motion(motion)
        return [
            f"{m.name} {m.fields['seq']}"
            for d in talk.vehicle.take_due_frames(0.0)
            for m in read(d)[0]
            if "MISSION" in m.name
        ]

    stay = waypoint(talk, 2, 12.0, -25.0, 3.0, param1=2.0, param2=0.5)
    assert (
        upload(
            talk,
            [
                {"target_system": 1, "seq": 0, "frame": 2, "command": 178, "param2": 0.6},
                waypoint(talk, 1, 12.0, -20.0, 3.0),
                stay,
                {"target_system": 1, "seq": 3, "frame": 2, "command": 20},
            ],
        )
        == 0
    )
    talk.command(400, 1.0)
    talk.sent(0.0)
    assert talk.command(300)[0].fields["result"] == 0 and talk.vehicle.mode == 4 << 16 | 4 << 24
    assert at(10.0, -20.0, 0.0) == ["MISSION_ITEM_REACHED 0", "MISSION_CURRENT 1", "MISSION_CURRENT 1"]
    wish = talk.vehicle.current_setpoint(99.0)
    assert (
        wish is not None
        and wish.position == pytest.approx([12.0, -20.0, 3.0], abs=0.02)
        and wish.speed == pytest.approx(0.6)
    )
    assert at(11.5, -20.0, 5.0) == ["MISSION_ITEM_REACHED 1", "MISSION_CURRENT 2"]
    assert at(12.0, -24.0, 5.0) == at(12.0, -24.7, 5.0) == at(12.0, -25.0, 1.0) == [], "near, there, not long enough"
    assert at(12.0, -25.0, 1.5) == ["MISSION_ITEM_REACHED 2", "MISSION_CURRENT 3"]
    talk.command(176, 1.0, 4.0, 3.0)
    wish = talk.vehicle.current_setpoint(99.0)
    assert wish is not None and wish.position.tolist() == [12.0, -25.0, 3.0] and wish.heading == 0.0, "hold"
    at(0.0, 0.0, 1.0)
    assert talk.vehicle.mission.current == 3, "it is only held"
    talk.command(176, 1.0, 4.0, 4.0)
    assert "MISSION_ITEM_REACHED 3" in at(0.1, 0.1, 1.0) and talk.vehicle.mission.complete
    assert talk.command(224, 1.0)[1].fields["seq"] == 1 and talk.command(224, 4.0)[0].fields["result"] == 2
    assert talk.ask("MISSION_SET_CURRENT", target_system=1, seq=2)[0].fields["seq"] == 2
    talk.command(400, 0.0)
    assert talk.vehicle.current_setpoint(99.0) is None, "disarmed"


def test_random_bytes_and_fields_end_nothing() -> None:
    talk, luck = Talk(), random.Random(4)
    for _ in range(3000):
        layout = LAYOUTS[luck.choice(list(LAYOUTS))]
        data = bytearray(talk.writer.frame(layout.name))
        payload = luck.randbytes(luck.randrange(60))
        head = bytes([len(payload)]) + bytes(data[2:10])
        whole = b"\xfd" + head + payload + x25(head + payload + bytes([layout.crc_extra])).to_bytes(2, "little")
        for d in talk.vehicle.receive(luck.choice((whole, luck.randbytes(40), whole[:-3])), 1.0):
            assert not read(d)[1]
    assert talk.drops.keys() >= {"magic", "size"}


def test_a_vehicle_that_the_pilot_does_not_know() -> None:
    with pytest.raises(
        BrokerError, match="cannot steer with nothing; it supports the thrusters of the models bluerov2"
    ):
        pilot_for([])


# -- asked by a ground station, over UDP


def test_a_ground_station_connects_and_nothing_is_left_unanswered() -> None:
    """The sequence of QGroundControl, before the world is started, and what its user does then."""
    origin = WorldOrigin(LATITUDE, LONGITUDE)
    items = [
        (round(1e7 * a), round(1e7 * o), -d)
        for (a, o), d in ((origin.degrees(9, -9), 2.0), (origin.degrees(0, 5), 4.0))
    ]
    number = random.SystemRandom().randrange(100, 200)
    drops: list[str] = []

    async def go() -> GroundStation:
        station = MavlinkVehicle(1 + number, origin, drops.append)
        port = GroundStationSocket(station, number)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: port, local_addr=("127.0.0.1", 0))
        sender = asyncio.create_task(port.send_due())
        try:
            ground = GroundStation(14550 + number, items)
            ground.start()
            while len(ground.plans) < 3 and ground.is_alive():
                await asyncio.sleep(0.01)
            station.update_motion(Talk().vehicle.motion or pytest.fail())  # the world begins when it has connected
            await asyncio.to_thread(ground.done, 60.0)
        finally:
            sender.cancel()
            port.close()
        return ground

    ground = asyncio.run(go())
    assert not drops and ground.system == 1 + number
    assert ground.modes == {"Manual": 1 << 16, "Hold": 0x03040000, "Mission": 0x04040000, "Offboard": 6 << 16}
    assert ground.parameters == {"MAV_SYS_ID": 1 + number} and ground.plans == {0: 2, 1: 0, 2: 0}
    assert ground.results[512, 148.0] == ground.results[512, 435.0] == 0
    assert {ground.results[512, n] for n in (397.0, 395.0, 259.0, 280.0, 9999.0)} == {2}, "reported as missing"
    assert {ground.results[n, 1.0] for n in (521, 522, 527, 2504, 31010)} == {3}, "reported as unknown"
    assert ground.sees["HOME_POSITION"][:2] == (round(1e7 * LATITUDE), round(1e7 * LONGITUDE))
    groundspeed, heading = ground.sees["VFR_HUD"][1], ground.sees["VFR_HUD"][4]
    assert groundspeed == pytest.approx(math.hypot(0.1, 0.2)) and heading == 0 and ground.sees["VFR_HUD"][2] == -3.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "use --latitude and --longitude in degrees, or --config FILE"),
        (("--latitude", "41"), "use --latitude and --longitude in degrees, or --config FILE"),
        (("--config", "none.xml"), "none.xml"),
        (("--instance", "300", "--latitude", "0", "--longitude", "0"), "300 is not in the range"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = wavesim("bridge", "mavlink", "--vehicle", "rov", "--port", "9", *options, cwd=tmp_path)
    assert message in done.stderr and done.returncode != 0 and "Traceback" not in done.stderr


def test_names_lead_back_to_numbers() -> None:
    assert all(LAYOUTS[number].name == name for name, number in NUMBERS.items())
