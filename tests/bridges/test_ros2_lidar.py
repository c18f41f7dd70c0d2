"""Points of a lidar in ROS 2, decoded by a stand-in's codec."""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.bridges import ros2
from tests.bridges.ros2 import Node, until
from tests.bridges.test_ros2_flights import Bridge
from tests.bridges.test_ros2_sensors import mounted
from tests.conftest import Server
from tests.nursery import launch
from wavesim_bridges.ros2.message_types import MessageTypes
from wavesim_bridges.ros2.sensors import lidar_cloud
from wavesim_emulators.sonar.lidar import describe
from wavesim_sdk.imaging_frames import PIXEL_3D, ImagingFrame
from wavesim_world.config import LoadedConfig
from wavesim_world.config.lidar import LidarConfig

WORLD = """<time step="20 ms"/><world><bed depth="30 m"/><obstacles><block position="26 0 0 m" size="10 400 60 m"/></obstacles></world>
<fleet><vehicle name="boat" model="otter" position="1 0 0 m" client="optional"><sensors>
<lidar name="puck" preset="vlp-16" rate="5 Hz" columns="90" noise="0" position="0 0 -1 m"/></sensors></vehicle></fleet>"""


@pytest.fixture
def domain() -> Iterator[int]:
    yield from ros2.domains()


def test_a_point_has_the_fields_of_a_velodyne_driver() -> None:
    """One echo of the second channel from the top and the last column but one, 50 m away, of half intensity."""
    types = MessageTypes("jazzy")
    c = LidarConfig(channels=4, columns=8, upper=0.3, lower=-0.6, range=100.0)
    record = describe(c, b"boat", b"puck", 1)
    record["ping_ns"], record["time_ns"] = 900_000_000, 1_000_000_000
    pixels = np.zeros((4, 8), PIXEL_3D)
    pixels[1, 6] = 32768, 32768
    record["bytes"] = pixels.nbytes
    message = lidar_cloud(mounted(types, "lidar"), ImagingFrame(record, pixels.tobytes()), 1_000_000_000)
    data = types.packed(message)
    cloud = ros2.PointCloud2.deserialize(data)
    assert data == cloud.serialize() and cloud.header.frame_id == "v/s_link" and cloud.header.stamp.ns == 1_000_000_000
    names = list(cloud.array.dtype.names or ())
    assert names == ["x", "y", "z", "intensity", "ring", "time"] and cloud.is_dense
    (point,) = cloud.array
    azimuth, up = -math.pi * 7 / 8 + 6 * math.pi / 4, 0.0  # of 8 columns, and of channels from 0.3 down to -0.6
    assert (point["x"], point["y"], point["z"]) == pytest.approx(
        (50.0 * math.cos(azimuth), -50.0 * math.sin(azimuth), 50.0 * math.sin(up)), abs=2e-3
    )
    assert point["intensity"] == pytest.approx(0.5, abs=1e-4) and point["ring"] == 2
    assert point["time"] == pytest.approx(-0.1 / 8)


@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_lidar_publishes_the_wall(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], domain: int
) -> None:
    """A wall 20 m ahead of a boat that is afloat, as points in the frame of the lidar."""
    path = config(WORLD).path
    server = serve(path, "--speed", "4")
    emulator = launch("emulate", "lidar", path, "-s", server.name, stderr=subprocess.DEVNULL)
    node, bridge = Node(domain), Bridge(server, path, domain, "boat", "--period", "0.02")
    try:
        bridge.wait("joined, one step every 20 ms")
        clouds = node.latest("/boat/puck/points", ros2.PointCloud2)
        server.send("start")
        until(lambda: len(clouds) >= 3)
    finally:
        node.close()
        bridge.kill()
        emulator.terminate()
        emulator.wait(60)
    assert not node.errors
    cloud = clouds[-1]
    assert cloud.header.frame_id == "boat/puck_link"
    points = cloud.array
    ahead = points[np.hypot(points["x"], points["y"]) < 60.0]
    assert len(ahead) > 100 and np.abs(ahead["x"] - 20.0).max() < 1.0 and points["ring"].min() >= 0
    assert points["ring"].max() <= 15 and (np.diff(np.unique(points["ring"])) == 1).all()
    assert (ahead["z"] > -1.1).all(), "the water absorbs what is below it"
    assert -0.2 <= points["time"].min() < -0.1 and points["time"].max() <= 0.0
