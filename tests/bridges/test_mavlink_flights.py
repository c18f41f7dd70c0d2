"""MAVLink without an autopilot: vehicles controlled by MAVSDK and by stand-ins for ground stations."""

from __future__ import annotations

import asyncio
import math
import random
import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pymap3d
import pytest

from tests.bridges.conftest import Fly
from tests.bridges.groundstation import OnMission
from tests.bridges.program import Program
from tests.conftest import Server
from wavesim_bridges.geo_reference import WorldOrigin
from wavesim_bridges.mavlink_codec import MavlinkWriter
from wavesim_sdk.attach import SharedState
from wavesim_world.config import LoadedConfig

LATITUDE, LONGITUDE = 41.185, -8.705
HEARTBEAT = MavlinkWriter(1, 1).frame("HEARTBEAT", type=12)

WORLD = f"""<time step="10 ms"/><world latitude="{LATITUDE} deg" longitude="{LONGITUDE} deg"><bed depth="60 m"/></world><fleet>
<vehicle name="rov" model="bluerov2" position="0 0 1 m" client="optional"/>
<vehicle name="heavy" model="vita1" position="0 -5 1 m" client="optional"/>
<vehicle name="otter" model="otter" position="0 40 0 m" client="optional"/></fleet>"""


@pytest.mark.system
@pytest.mark.xdist_group("mavlink")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("vehicle", "goal", "instance"),
    [
        ("rov", (5.0, 2.0, 3.0), 0),
        ("heavy", (5.0, 2.0, 3.0), 1),
        ("otter", (8.0, 46.0, 0.0), 3),
    ],
)
def test_mavsdk_finds_arms_and_sends_it(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    fly: Fly,
    vehicle: str,
    goal: tuple[float, float, float],
    instance: int,
) -> None:
    mavsdk = pytest.importorskip("mavsdk.asyncio")
    from mavsdk.asyncio.plugins.action import ActionAsync
    from mavsdk.asyncio.plugins.offboard import OffboardAsync, PositionNedYaw
    from mavsdk.asyncio.plugins.telemetry import TelemetryAsync

    path = config(WORLD).path
    server = serve(path, "--speed", "5")
    bridges: list[Program] = []
    truth = SharedState(server.name)

    def place() -> Any:
        return np.array(truth.snapshot().state["p_WB_W"][truth.row(vehicle)])

    async def go() -> None:
        settings = mavsdk.Configuration.create_with_component_type(mavsdk.ComponentType.GROUND_STATION)
        async with mavsdk.Mavsdk(settings) as sdk:
            await sdk.add_any_connection(f"udpin://127.0.0.1:{14540 + instance}")
            bridges.append(fly("mavlink", server, vehicle, "--config", str(path), "--instance", str(instance)))
            server.send("start")
            began = time.monotonic()
            system = await sdk.first_autopilot(timeout_s=10.0)
            assert system is not None and time.monotonic() - began < 2.0
            assert await system.get_system_id() == 1 + instance
            action, telemetry, send = ActionAsync(system), TelemetryAsync(system), OffboardAsync(system)
            await action.arm()
            target = PositionNedYaw(*goal, 0.0)
            await send.set_position_ned(target)
            await send.start()
            limit = time.monotonic() + 20.0
            while math.dist(place(), goal) > 0.3 and time.monotonic() < limit:
                await asyncio.sleep(0.2)
            await asyncio.sleep(1.0)
            assert math.dist(place(), goal) < 0.5, place()
            assert await telemetry.armed()
            server.send("pause")
            await asyncio.sleep(0.3)
            position = await telemetry.position()
            local = (await telemetry.position_velocity_ned()).position
            was = place()
            latitude, longitude, _ = pymap3d.ned2geodetic(was[0], was[1], 0.0, LATITUDE, LONGITUDE, 0.0)
            assert (position.latitude_deg, position.longitude_deg) == pytest.approx((latitude, longitude), abs=1e-6)
            assert position.absolute_altitude_m == pytest.approx(-was[2], abs=0.02)
            assert (local.north_m, local.east_m, local.down_m) == pytest.approx(was, abs=0.02)
            server.send("start")
            await send.stop()
            await action.disarm()
            await asyncio.sleep(0.3)
            assert not await telemetry.armed()

    asyncio.run(go())
    assert "Traceback" not in bridges[0].end()


@pytest.mark.system
@pytest.mark.xdist_group("mavlink")
@pytest.mark.timeout(120)
def test_mavsdk_sends_it_on_a_mission_and_steers_by_hand(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    """Upload, download; sticks; start, progress, hold, going on, the end. Judged on the truth."""
    mavsdk = pytest.importorskip("mavsdk.asyncio")
    from mavsdk.asyncio.plugins.action import ActionAsync
    from mavsdk.asyncio.plugins.manual_control import ManualControlAsync
    from mavsdk.asyncio.plugins.mission_raw import MissionRawAsync
    from mavsdk.plugins.mission_raw import MissionItem

    path = config(WORLD).path
    server = serve(path, "--speed", "5")
    bridges: list[Program] = []
    truth = SharedState(server.name)
    origin = WorldOrigin(LATITUDE, LONGITUDE)
    goals = [(2.0, 0.0, 1.5), (2.0, 2.0, 2.0)]

    def place() -> Any:
        return np.array(truth.snapshot().state["p_WB_W"][truth.row("rov")])

    async def until(condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < limit, place()
            await asyncio.sleep(0.05)

    def items() -> list[Any]:
        found = [MissionItem(0, 2, 178, 1, 1, 1.0, 0.6, -1.0, 0.0, 0, 0, 0.0, 0)]
        for k, (n, e, d) in enumerate(goals, 1):
            latitude, longitude = origin.degrees(n, e)
            x, y = round(1e7 * latitude), round(1e7 * longitude)
            found.append(MissionItem(k, 6, 16, 0, 1, 0.0, 0.4, 0.0, math.nan, x, y, -d, 0))
        return found

    async def go() -> None:
        settings = mavsdk.Configuration.create_with_component_type(mavsdk.ComponentType.GROUND_STATION)
        async with mavsdk.Mavsdk(settings) as sdk:
            await sdk.add_any_connection("udpin://127.0.0.1:14544")
            bridges.append(fly("mavlink", server, "rov", "--config", str(path), "--instance", "4", "--wait", "0"))
            server.send("start")
            system = await sdk.first_autopilot(timeout_s=20.0)
            assert system is not None
            action, mission, sticks = ActionAsync(system), MissionRawAsync(system), ManualControlAsync(system)
            await mission.upload_mission(items())
            down = await mission.download_mission()
            assert [(i.command, i.x, i.y, i.z) for i in down] == [(i.command, i.x, i.y, i.z) for i in items()]
            await action.arm()
            was, limit = place(), time.monotonic() + 60.0
            while place()[0] < was[0] + 0.5 or place()[2] < was[2] + 0.2:
                assert time.monotonic() < limit, f"by hand, ahead and down: {was} {place()} {server.status()}"
                await sticks.set_manual_control_input(0.6, 0.0, 0.3, 0.0)
                await asyncio.sleep(0.05)
            await mission.start_mission()
            nearest = [math.inf, math.inf]

            def passed() -> bool:
                nearest[:] = [min(was, math.dist(place(), g)) for was, g in zip(nearest, goals, strict=True)]
                return nearest[1] < 0.4

            await until(lambda: passed() or nearest[0] < 0.4)
            await mission.pause_mission()
            await asyncio.sleep(1.0)
            assert math.dist(place(), goals[0]) < 1.5, "it holds there"
            await mission.start_mission()
            await until(passed)
            assert nearest[0] < 0.5
            limit = time.monotonic() + 60.0
            while not await mission.is_mission_finished():
                assert time.monotonic() < limit
                await asyncio.sleep(0.1)

    asyncio.run(go())
    server.send("shutdown")
    assert bridges[0].process.wait(30) == 5
    said = bridges[0].end()
    assert "the server ended the session: the server shuts down" in said and "Traceback" not in said


@pytest.mark.system
@pytest.mark.xdist_group("mavlink")
def test_two_missions_in_one_world_and_a_bridge_that_is_killed(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], fly: Fly
) -> None:
    """A ROV and a boat, a station each; rubbish and strangers all the time. The ROV's bridge is killed with -9 in mid-mission: a
    new one finds the vehicle where it is, disarmed, and is sent again; the boat's mission knows nothing of it."""
    world = WORLD.replace("<fleet>", '<network takeover="yes" keepalive_timeout="60 s"/><fleet>')
    path = config(world).path
    server = serve(path, "--speed", "5")
    truth, origin = SharedState(server.name), WorldOrigin(LATITUDE, LONGITUDE)
    goals = {"rov": [(3.0, 0.0, 1.5), (3.0, 2.0, 2.0)], "otter": [(4.0, 40.0, 0.0), (5.0, 43.0, 0.0)]}
    number = random.SystemRandom().randrange(200, 250)
    ports = {"rov": 14550 + number, "otter": 14551 + number}

    def place(vehicle: str) -> Any:
        return np.array(truth.snapshot().state["p_WB_W"][truth.row(vehicle)])

    def sent(vehicle: str) -> OnMission:
        ways = [(*origin.degrees(n, e), -d) for n, e, d in goals[vehicle]]
        station = OnMission(ports[vehicle], [(round(1e7 * a), round(1e7 * o), z) for a, o, z in ways])
        station.start()
        return station

    def bridge(vehicle: str) -> Program:
        return fly("mavlink", server, vehicle, "--config", str(path), "--instance", str(ports[vehicle] - 14550))

    def until(condition: Callable[[], bool], *stations: OnMission) -> None:
        limit = time.monotonic() + 150.0
        while not condition():
            assert all(s.is_alive() and s.error is None for s in stations), [s.error for s in stations]
            assert time.monotonic() < limit, {v: place(v) for v in goals}
            for s in (s for s in stations if s.vehicle[1]):
                for data in (b"", b"\xfd", HEARTBEAT[:9], b"\xfe" + HEARTBEAT, bytes(300), HEARTBEAT):
                    stranger.sendto(data, s.vehicle)
            time.sleep(0.01)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        bridges = {v: bridge(v) for v in goals}
        server.send("start")
        first, boat = sent("rov"), sent("otter")
        until(lambda: place("rov")[0] > 1.0, first, boat)
        bridges["rov"].kill()
        first.die()
        again = bridge("rov")
        assert place("rov")[0] > 0.9, "not back at its start: it went on meanwhile, at its last commands"
        second = sent("rov")
        until(lambda: second.complete and boat.complete, second, boat)
        server.send("pause")
        before = len(second.track), len(boat.track)
        until(lambda: len(second.track) > before[0] + 2 and len(boat.track) > before[1] + 2, second, boat)
        for s in (second, boat):
            s.die()
            assert s.error is None, s.error
    for vehicle, station in (("rov", second), ("otter", boat)):
        track = np.array([(*origin.metres(a, o), -z) for a, o, z in station.track])
        for goal in goals[vehicle]:
            assert np.linalg.norm((track - goal)[:, :2], axis=1).min() < 1.0
        assert track[-1] == pytest.approx(place(vehicle), abs=0.05), "the reported track is the true one"
        assert math.dist(place(vehicle)[:2], goals[vehicle][-1][:2]) < 1.0
        assert abs(place(vehicle)[2] - goals[vehicle][-1][2]) < 0.3
    for said in (again.end(), bridges["otter"].end()):
        assert (
            all(f"was dropped: {reason}" in said for reason in ("size", "magic", "MAVLink 1"))
            and "Traceback" not in said
        ), said
