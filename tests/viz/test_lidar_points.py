"""Points of a lidar on the page: packed for it, and drawn in the window and in the 3D view."""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from tests.nursery import launch
from tests.viz.sea import READY, Opener
from tests.viz.test_sonar_pictures import WINDOW
from wavesim_emulators.sonar.lidar import describe
from wavesim_sdk.imaging_frames import PIXEL_3D, ImagingFrame
from wavesim_viz.image_streams import MAX_POINTS, picture
from wavesim_world.config import LoadedConfig
from wavesim_world.config.lidar import LidarConfig

WORLD = """<world><bed depth="30 m"/><obstacles><block position="26 0 0 m" size="10 400 60 m"/></obstacles></world>
<fleet><vehicle name="boat" model="otter" position="1 0 0 m"><sensors>
<lidar name="puck" rate="5 Hz" columns="180" noise="0" position="0 0 -1 m"/></sensors></vehicle></fleet>"""


def scan(c: LidarConfig, seen: Any) -> ImagingFrame:
    record = describe(c, b"boat", b"puck", 1)
    pixels = np.zeros((c.channels, c.columns), PIXEL_3D)
    pixels["range"][seen], pixels["level"][seen] = 6554, 30000
    record["bytes"] = pixels.nbytes
    return ImagingFrame(record, pixels.tobytes())


def test_points_are_packed_with_their_place_in_the_world_and_on_board() -> None:
    """Those with an echo, 10 m away; of very many a part, evenly spread."""
    c = LidarConfig(channels=3, columns=4, upper=0.2, lower=-0.2)
    frame = scan(c, np.eye(3, 4, dtype=bool))
    frame.record["p_WS_W"], frame.record["euler"] = (100.0, 200.0, -3.0), (0.0, 0.0, np.pi / 2)
    packed = picture(0, frame, 1)
    (length,) = struct.unpack_from("<I", packed, 4)
    head, points = json.loads(packed[8 : 8 + length]), np.frombuffer(packed[8 + length :], "<f4").reshape(-1, 5)
    assert (head["kind"], head["beams"], head["bins"]) == ("lidar", 3, 5)
    assert np.linalg.norm(points[:, :3] - (100.0, 200.0, -3.0), axis=1) == pytest.approx(10.0, abs=1e-3)
    starboard, ahead = points[:, 3], points[:, 4]
    assert points[:, 0] - 100.0 == pytest.approx(-starboard, abs=1e-3), "the lidar looks east"
    assert points[:, 1] - 200.0 == pytest.approx(ahead, abs=1e-3) and points[0, 2] < -3.0 < points[2, 2]
    many = LidarConfig(channels=16, columns=1800)
    packed = picture(0, scan(many, np.ones((16, 1800), bool)), 1)
    (length,) = struct.unpack_from("<I", packed, 4)
    assert 0.5 * MAX_POINTS < (len(packed) - 8 - length) / 20 <= MAX_POINTS


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(300)
def test_a_scan_is_drawn(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """The wall 20 m ahead, as points in the 3D view; the next scan replaces them."""
    path = config(WORLD).path
    server = serve(path)
    emulator = launch("emulate", "lidar", path, "-s", name, stderr=subprocess.DEVNULL)
    try:
        page = open_page(view("--server", name, "--control").url)
        page.wait(f"{READY} === 1")
        page.see("wavesim.sonars.toggle(0, 'boat', 'puck')")
        server.send("start")
        page.wait(f"{WINDOW.format('puck')}.taken > 2", 200.0)
        painter = f"{WINDOW.format('puck')}.painter"
        points = np.array(
            page.see(
                f"(() => {{ const p = {painter}, a = p.cloud.geometry.getAttribute('position').array;"
                " return [p.cloud.geometry.drawRange.count, ...a.slice(0, 3 * p.count)] })()"
            )
        )
        count, xyz = int(points[0]), points[1:].reshape(-1, 3)
        assert count == len(xyz) > 100 and count <= 16 * 180, "one scan, not the sum of all"
        assert (np.abs(xyz[:, [0, 2]]).max(axis=1) < 110.0).all() and (xyz[:, 1] > -0.5).all(), "above the water"
        status = page.see(f"{WINDOW.format('puck')}.box.textContent")
        assert "points" in status and "scan" in status
        page.clean()
    finally:
        emulator.terminate()
        emulator.wait(20)
        server.end()
