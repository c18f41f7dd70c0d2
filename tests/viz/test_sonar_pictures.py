"""Pictures of imaging sonars and a camera in a real browser, from a running server and from its log."""

from __future__ import annotations

import json
import math
import struct
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from tests.nursery import launch
from tests.viz.sea import READY, Opener, Page, colours
from wavesim_sdk.attach import SharedState
from wavesim_sdk.frame_rings import FrameReader
from wavesim_sdk.imaging_frames import FRAME_KINDS, PIXEL_3D, RECORD, ImagingFrame
from wavesim_sdk.log import frames
from wavesim_viz.image_streams import ImageStream, LoggedFrames, ReceivedFrames, picture
from wavesim_viz.page_protocol import PicturesRequest
from wavesim_viz.remote import RemoteSource
from wavesim_viz.requests import InvalidRequest, parse_request
from wavesim_world.config import LoadedConfig

SONARS = ("ahead", "side", "bed", "head")
EYES = (*SONARS, "lens")
DEPTH, PIER = 12.0, (14.0, -4.0)
#: held where it is: its own weight in water is nothing, and nothing flows
WORLD = f"""
<time step="10 ms"/>
<world><bed depth="{DEPTH} m"/><obstacles><pier position="{PIER[0]} {PIER[1]} 6 m" radius="0.4 m" height="12 m" material="steel"/></obstacles></world>
<fleet><vehicle name="auv" model="lauv" position="0 0 6 m"><sensors>
  <sonar name="ahead" preset="m750d-low" range="20 m" rate="5 Hz" beams="128" bins="200" gain="-25"/>
  <sonar name="side" preset="starfish-450" range="20 m" rate="10 Hz" bins="400"/>
  <sonar name="bed" preset="norbit-wbms" range="30 m" rate="5 Hz" beams="64"/>
  <sonar name="head" preset="ping360" range="20 m" rate="20 Hz" bins="200"/>
  <sonar name="secret" preset="ping360" range="20 m" rate="1 Hz" bins="16" log="0"/>
  <camera name="lens" rate="5 Hz" width="80" height="60" log="1"/>
</sensors></vehicle></fleet>
"""
WINDOW = "[...wavesim.sonars.windows.values()].find(w => w.name === '{}')"


def open_all(page: Page) -> None:
    page.see("wavesim.app.selection.choose(0)")
    for name in EYES:
        page.page.click(f"#instruments details[data-name='{name}'] button.picture")


def shown(page: Page, name: str) -> tuple[int, bytes]:
    """(number, samples) of what a window shows."""
    found = page.see(f"(() => {{ const w = {WINDOW.format(name)}; return [w.head.number, [...w.painter.samples]] }})()")
    return int(found[0]), bytes(found[1])


def pier_stands_out(page: Page, record: Any) -> None:
    """In the fan, at its range and bearing, brighter than what is before, behind and beside it."""
    x, y, w = page.see(f"(() => {{ const p = {WINDOW.format('ahead')}.painter; return [...p.middle, p.radius] }})()")
    north, east = (PIER[k] - float(record["p_WS_W"][k]) for k in range(2))
    r, bearing = (math.hypot(north, east) - 0.4) / 20.0 * w, math.atan2(east, north) - float(record["euler"][2])

    def brightness(angle: float, far: float) -> int:
        column, line = int(x + far * math.sin(angle)), int(y - far * math.cos(angle))
        at = f"(() => {{ const i = {WINDOW.format('ahead')}.painter.image, k = 4 * ({line} * i.width + {column}); return [...i.data.slice(k, k + 3)] }})()"
        return int(sum(page.see(at)))

    there = max(brightness(bearing + a, r + d) for a in (-0.01, 0.0, 0.01) for d in range(-2, 6))  # it is speckled
    assert there > 500, "bright"
    for d in (-0.15 * w, 0.15 * w):  # the mean of a few pixels, because the bed is speckled too
        around = [brightness(bearing + a, r + d + e) for a in (-0.02, 0.0, 0.02) for e in range(-2, 3)]
        assert sum(around) / len(around) < 0.5 * there
    assert max(brightness(bearing + a, r) for a in (-0.15, 0.15)) < there, "where its beam is"


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(400)
def test_four_sonars_and_a_camera_live_and_in_replay(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    view: Any,
    open_page: Opener,
    name: str,
    tmp_path: Any,
) -> None:
    path = config(WORLD).path
    server = serve(path, "--log", str(tmp_path / "run.mcap"))
    emulators = [launch("emulate", kind, path, "-s", name, stderr=subprocess.DEVNULL) for kind in ("sonar", "camera")]
    try:
        viewer = view("--server", name, "--control")
        page = open_page(viewer.url)
        page.wait(f"{READY} === 1")
        open_all(page)
        server.send("start")
        remote = RemoteSource(("127.0.0.1", server.port), 10.0, path)  # who sees no shared memory gets the same
        limit = time.monotonic() + 60.0
        while remote.frame() is None or remote.equipment(0) is None:
            assert time.monotonic() < limit, remote.trouble
            time.sleep(0.02)
        far = {eye: remote.open_frames(0, eye) for eye in ("ahead", "lens")}
        came: dict[str, list[Any]] = {eye: [] for eye in far}
        for eye in EYES:
            page.wait(f"{WINDOW.format(eye)}.taken > 2", 200.0)  # their kernels may have to be compiled
        limit = time.monotonic() + 60.0
        while not all(len(f) > 1 for f in came.values()):
            assert time.monotonic() < limit, (came, remote.trouble)
            for eye, look in far.items():
                came[eye] += look.new()[1]
            time.sleep(0.05)
        remote.close()
        page.wait(f"{WINDOW.format('bed')}.painter.count > 400")
        server.send("pause")
        server.wait(lambda s: s["state"] == "paused")
        # what is drawn is what stands in shared memory
        entry = SharedState(name).instruments("auv")["ahead"]
        reader = FrameReader.open(name, "auv", "ahead")
        place, limit = int(entry["place"]), time.monotonic() + 60.0
        while True:  # the last pings before the pause are still being computed
            newest, (number, samples) = reader.rings.read(place, int(reader.rings.done[place])), shown(page, "ahead")
            if newest is not None and number == int(newest.record["number"]):
                break
            assert time.monotonic() < limit
        assert samples == newest.payload
        page.wait(f"!{WINDOW.format('ahead')}.stale")
        pier_stands_out(page, newest.record)
        # the swath lies on the bed; the profile says how deep it is
        depths = page.see(
            f"(() => {{ const p = {WINDOW.format('bed')}.painter, a = p.cloud.geometry.getAttribute('position').array;"
            " return [...Array(Math.min(p.count, 200)).keys()].map(k => -a[3 * k + 1]) })()"
        )
        assert np.median(depths) == pytest.approx(DEPTH, abs=0.05)
        # slant range, then over the ground: what was dark under the sonar is closed by the bed
        beside = f"(() => {{ const i = {WINDOW.format('side')}.painter.image, w = i.width; let n = 0; for (let k = w / 4 | 0; k < 3 * w / 4; k++) n += i.data[4 * (2 * w + k)]; return n / (w / 2) }})()"
        slant = page.see(beside)
        page.page.click(".window.sonars[data-sonar='side'] button.ground")
        page.wait(f"{beside} > 1.3 * {slant}")  # mean brightness
        for eye in EYES:
            assert colours(page, f".window.sonars[data-sonar='{eye}'] canvas") > 40
        page.shot("sonars-live")
        # a server that ends takes no picture away, and is reported
        page.see("wavesim.sonars.toggle(0, 'auv', 'secret'); wavesim.sonars.toggle(0, 'auv', 'nothing')")
        page.wait(
            f"{WINDOW.format('nothing')}.trouble.includes(\"has no sonar, camera, lidar or hydrophone named 'nothing'\")"
        )
        page.clean()
        page.page.close()
    finally:
        for emulator in emulators:
            emulator.terminate()
            emulator.wait(20)
        server.end()

    logged = {s: list(frames(tmp_path / "run.mcap", "auv", s)) for s in EYES}
    for eye, found in came.items():
        for frame in found:
            assert frame.data == logged[eye][int(frame.record["number"]) - 1].data
    page = open_page(view(tmp_path / "run.mcap").url)
    page.wait(f"{READY} === 1")
    page.see("wavesim.link.control('pause')")
    open_all(page)
    for eye in ("ahead", "lens"):
        want = logged[eye][2]
        page.see(f"wavesim.link.control('seek', {int(want.record['time_ns']) * 1e-9 + 0.01})")
        page.wait(f"{WINDOW.format(eye)}.head?.number === {int(want.record['number'])}")
        assert shown(page, eye)[1] == want.payload
    page.see("wavesim.link.control('seek', 1e9)")  # to the end: then lines and points of all before are there
    last = {s: int(found[-1].record["number"]) for s, found in logged.items()}
    for eye in EYES:
        page.wait(f"{WINDOW.format(eye)}.head.number === {last[eye]}")
    page.wait(f"{WINDOW.format('side')}.painter.lines.length === {len(logged['side'])}")
    soundings = sum(int((f.samples[:, 9] > 0).sum()) for f in logged["bed"])
    page.wait(f"{WINDOW.format('bed')}.painter.count === {soundings}")
    page.shot("sonars-replay")
    page.see("wavesim.sonars.toggle(0, 'auv', 'secret')")
    page.wait(f"{WINDOW.format('secret')}.trouble.includes('the log has no frames')")
    # back: what is later is no longer shown
    page.see("wavesim.link.control('seek', 0)")
    page.wait(f"{WINDOW.format('side')}.painter.lines.length === 0")
    page.clean()


def a_frame(number: int, kind: int = 1, **fields: Any) -> Any:
    from tests.emulators.test_sonar_frames import record
    from wavesim_sdk.imaging_frames import ImagingFrame

    given = {"kind": kind, "number": number, "time_ns": number * 10**9, "bytes": 32, "body": b"auv", "name": b"side"}
    return ImagingFrame(record(**{**given, **fields}), bytes(range(32)))


def head_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    magic, length = data[:4], struct.unpack_from("<I", data, 4)[0]
    assert magic == b"WVS1"
    assert length % 4 == 0
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def test_a_screen_keeps_what_a_later_page_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In order, each once; forward sonars only the newest; what jumped back begins anew."""
    monkeypatch.setattr("wavesim_viz.image_streams.MAX_KEPT", {"sidescan": 3, "forward": 1})
    batches: list[tuple[bool, list[Any]]] = []

    class Source:
        def scene(self) -> tuple[int, dict[str, Any]]:
            return 1, {}

        def open_frames(self, row: int, name: str) -> Any:
            return self

        def new(self) -> tuple[bool, list[Any]]:
            return batches.pop(0)

        def close(self) -> None:
            batches.append((True, []))

    screen = ImageStream(Source(), 0, "side")
    batches[:] = [(False, [a_frame(n) for n in range(1, 6)]), (False, [a_frame(6)]), (True, [a_frame(2)])]
    screen.read(0.0)
    assert [head_of(d)[0]["number"] for d in screen.after(0)] == [3, 4, 5]
    had = screen.made
    screen.read(0.1)
    assert [head_of(d)[0]["number"] for d in screen.after(had)] == [6]
    assert screen.after(screen.made) == []
    first = head_of(screen.after(0)[0])
    assert (first[0]["epoch"], first[1]) == (1, bytes(range(32)))
    screen.read(0.2)
    assert [(head_of(d)[0]["number"], head_of(d)[0]["epoch"]) for d in screen.after(0)] == [(2, 2)]
    deep = a_frame(1, 0, sample_bytes=2, bins=4, bytes=32)
    assert head_of(picture(0, deep, 1))[1] == bytes(range(1, 32, 2)), "of 16 bits the upper ones"
    head, numbers = head_of(picture(0, a_frame(1, 4, beams=2, bins=3, labels=1, bytes=14, gain=2.0), 1))
    assert (head["kind"], head["gain"], numbers) == ("camera", 2.0, bytes(range(6))), "without depths"


def test_frames_that_came_over_a_network() -> None:
    done: list[bool] = []
    look = ReceivedFrames(lambda: done.append(True))
    assert look.new() == (False, [])
    for n in range(1, 100):
        look.add(a_frame(n))
    assert [int(f.record["number"]) for f in look.new()[1]] == list(range(36, 100)), "the newest 64"
    assert look.new() == (False, []) and not done
    look.close()
    assert done


def test_frames_of_a_log_at_any_moment(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    import threading

    copied, now = threading.Event(), 0.0

    def found(*_: Any) -> Any:
        for n in range(1, 11):
            yield a_frame(n)
        copied.set()

    monkeypatch.setattr("wavesim_viz.image_streams.frames", found)
    monkeypatch.setattr("wavesim_viz.image_streams.MAX_KEPT", {"sidescan": 4})
    look = LoggedFrames(tmp_path, "auv", "side", lambda: now)
    assert copied.wait(10)
    assert look.new() == (False, [])
    now = 3.5
    assert [int(f.record["number"]) for f in look.new()[1]] == [1, 2, 3]
    assert look.new() == (False, [])
    now = 9.0
    back, some = look.new()
    assert (back, [int(f.record["number"]) for f in some]) == (True, [6, 7, 8, 9]), "a jump leaves a hole: anew"
    now = 2.0
    back, some = look.new()
    assert (back, [int(f.record["number"]) for f in some]) == (True, [1, 2])
    look.close()


def test_what_a_page_may_ask_for() -> None:
    assert parse_request('{"do": "pictures", "sonars": [[0, "side", 0], [3, "ears", 2]]}') == PicturesRequest(
        ((0, "side", 0), (3, "ears", 2))
    )
    for wrong in (
        '[["side", 0, 0]]',
        "[[0]]",
        '[[0, "a"]]',
        '[[0, "a", -1]]',
        '[[-1, "a", 0]]',
        '[[0, "", 0]]',
        '[[0, "' + 65 * "a" + '", 0]]',
        "[" + ",".join(9 * ['[0, "a", 0]']) + "]",
        '"side"',
    ):
        with pytest.raises(InvalidRequest):
            parse_request('{"do": "pictures", "sonars": ' + wrong + "}")


def test_a_3d_sonar_is_packed_as_ranges() -> None:
    pixels = np.zeros((2, 3), PIXEL_3D)
    pixels["range"] = [[0, 1, 65535], [300, 32768, 0]]
    record = np.zeros((), RECORD)
    for field, value in {
        "kind": FRAME_KINDS.index("3d"), "beams": 2, "bins": 3, "sample_bytes": 4, "bytes": 24, "range": 15.0,
        "sector": math.radians(90), "fan_height": math.radians(40),
    }.items():  # fmt: skip
        record[field] = value
    packed = picture(0, ImagingFrame(record, pixels.tobytes()), 1)
    (length,) = struct.unpack_from("<I", packed, 4)
    head = json.loads(packed[8 : 8 + length])
    assert (head["kind"], head["beams"], head["bins"]) == ("3d", 2, 3)
    assert (head["sector"], head["height"]) == pytest.approx((math.radians(90), math.radians(40)))
    assert [*packed[8 + length :]] == [0, 1, 255, 1, 128, 0], "0 is no echo; the nearest echo is still 1"
