"""Mission files: every format is read, judged by other parsers, and sailed to its end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest
from pymavlink import mavwp  # type: ignore[import-untyped]

from tests.conftest import Server, wavesim
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.control import Waypoint
from wavesim_sdk.guidance.mission_files import MissionFile, read_mission
from wavesim_sdk.log import read as read_log
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_server.resources import remove_leftovers
from wavesim_world.config import LoadedConfig, load
from wavesim_world.config.standalone_xml import load_standalone
from wavesim_world.file_access import allow_files

ROOT = Path(__file__).resolve().parents[2]
LATITUDE, LONGITUDE = 41.18, -8.70
ORIGIN = Origin(*np.radians([LATITUDE, LONGITUDE]).tolist())
ROUTE = [(25.0, 0.0), (25.0, 20.0), (5.0, 20.0)]

SOOKSHMA = """
waypoints:
- [0, 0, 0]
- [-4, -10, 0]
- [8, -5, 0]
- [9, 9, 0]
- [0, 0, 0]
waypoints_type: XYZ
"""

PLAN: dict[str, Any] = {
    "fileType": "Plan",
    "version": 1,
    "groundStation": "QGroundControl",
    "geoFence": {"circles": [], "polygons": [{"inclusion": True, "polygon": [], "version": 1}], "version": 2},
    "rallyPoints": {"points": [], "version": 2},
    "mission": {
        "cruiseSpeed": 1.5,
        "hoverSpeed": 5,
        "firmwareType": 3,
        "vehicleType": 11,
        "version": 2,
        "plannedHomePosition": [LATITUDE, LONGITUDE, 0],
        "items": [],
    },
}


def geodetic(north: float, east: float) -> tuple[float, float]:
    latitude, longitude, _ = pymap3d.ned2geodetic(north, east, 0.0, LATITUDE, LONGITUDE, 0.0)
    return float(latitude), float(longitude)


def item(number: int, command: int, *params: float | None, frame: int = 3) -> dict[str, Any]:
    return {
        "type": "SimpleItem",
        "autoContinue": True,
        "command": command,
        "doJumpId": number,
        "frame": frame,
        "params": [*params, *[0] * (7 - len(params))],
    }


def plan(*items: Any, **mission: Any) -> str:
    return json.dumps({**PLAN, "mission": {**PLAN["mission"], "items": items, **mission}})


def text_items(*rows: tuple[float, ...], version: str = "110") -> str:
    """Item 0 is the home position. A row contains the frame, the command, four parameters and the position."""
    home = f"0\t1\t0\t16\t0\t0\t0\t0\t{LATITUDE}\t{LONGITUDE}\t0\t1"
    lines = [f"{k}\t0\t" + "\t".join(f"{v:.12g}" for v in row) + "\t1" for k, row in enumerate(rows, 1)]
    return "\n".join([f"QGC WPL {version}", home, *lines]) + "\n"


def files(shift: float) -> dict[str, str]:
    """The route, ``shift`` m farther east, in every format."""
    local = [(n, e + shift) for n, e in ROUTE]
    places = [geodetic(*p) for p in local]
    rows = "".join(f"- [{n}, {e}, 0.0]\n" for n, e in local)
    return {
        "xyz.yml": f"waypoints:\n{rows}waypoints_type: XYZ\nacceptance_radius: 4\nlookahead_distance: 8\n",
        "ned.yaml": f"waypoints_type: NED\nacceptance_radius: 4\nlookahead_distance: 8.0\nwaypoints:\n{rows}",
        "lla.yml": "waypoints_type: LLA\nacceptance_radius: 4\nlookahead_distance: 8\nwaypoints:\n"
        + "".join(f"  - [{a:.9f}, {b:.9f}, 0]\n" for a, b in places),
        "q.plan": plan(*(item(k, 16, 0, 4, 0, None, a, b, 0) for k, (a, b) in enumerate(places, 1))),
        "q.waypoints": text_items((3, 178, 1, 1.5, 0, 0, 0, 0, 0), *((3, 16, 0, 4, 0, 0, a, b, 0) for a, b in places)),
        "local.csv": "north,east,speed,acceptance\n" + "".join(f"{n},{e},1.5,4\n" for n, e in local),
        "geodetic.csv": "Latitude;Longitude;Altitude [m];Acceptance_m\n"
        + "".join(f"{a:.9f};{b:.9f};0;4\n" for a, b in places),
    }


def read(tmp_path: Path, name: str, text: str, **options: Any) -> MissionFile:
    (tmp_path / name).write_text(text)
    return read_mission(tmp_path / name, ORIGIN, **options)


# ------------------------------------------------------------------ formats


def test_every_format_states_the_same_route(tmp_path: Path) -> None:
    for name, text in files(0.0).items():
        found = read(tmp_path, name, text, speed=1.5)
        assert np.abs(np.array([(w.north, w.east) for w in found.waypoints]) - ROUTE).max() < 1e-3, name
        assert {w.depth for w in found.waypoints} == {0.0} and {w.speed for w in found.waypoints} == {1.5}
        assert found.acceptance == 4.0, name
        assert found.lookahead == (8.0 if name.endswith(("yml", "yaml")) else None)


def test_the_guidance_files_of_the_reference_document(tmp_path: Path) -> None:
    found = read(tmp_path, "guidance.yml", SOOKSHMA)
    assert found.waypoints == tuple(Waypoint(n, e, 0.0, 1.0) for n, e in [(0, 0), (-4, -10), (8, -5), (9, 9), (0, 0)])
    assert found.notices == ()
    assert read_mission(tmp_path / "guidance.yml").waypoints == found.waypoints, "without a world"
    found = read(tmp_path, "a.yml", "guidance_type: LOS\nwaypoints: [[41.181, -8.701, -10]]\nwaypoints_type: LLA\n")
    assert found.waypoints[0].depth == 10.0, "an altitude of -10 m"
    assert found.notices == ("the key 'guidance_type' is ignored",)
    assert read(tmp_path, "b.yml", "waypoints: [[1, 2, 10]]\nwaypoints_type: NED").waypoints[0].depth == 10.0


def test_text_items_agree_with_pymavlink(tmp_path: Path) -> None:
    rng = np.random.default_rng(17)
    rows = [
        (frame, 16, 0, 2.5, 0, 0, LATITUDE + dn, LONGITUDE + de, -depth)
        for frame, dn, de, depth in zip(
            (0, 3, 6, 5, 3), *rng.uniform(0.0, 0.01, (2, 5)), rng.uniform(0, 30, 5), strict=True
        )
    ]
    path = tmp_path / "a.waypoints"
    path.write_text(text_items(*rows))
    loader = mavwp.MAVWPLoader()
    assert loader.load(str(path)) == 6
    found = read_mission(path, ORIGIN)
    assert found.notices == ("item 0 is the home position, not a waypoint",) and found.acceptance == 2.5
    for k, w in enumerate(found.waypoints, 1):
        judge = loader.wp(k)
        north, east, _ = pymap3d.geodetic2ned(judge.x, judge.y, judge.z, LATITUDE, LONGITUDE, 0.0)
        assert abs(w.north - north) < 1e-6 and abs(w.east - east) < 1e-6
        assert w.depth == pytest.approx(-judge.z, abs=1e-9)
    # what pymavlink writes is read, too
    loader.save(str(tmp_path / "b.waypoints"))
    again = read_mission(tmp_path / "b.waypoints", ORIGIN).waypoints
    assert (
        np.abs([(a.north - b.north, a.east - b.east) for a, b in zip(again, found.waypoints, strict=True)]).max() < 0.08
    ), "six decimals"


def test_items_that_are_no_waypoints_are_named(tmp_path: Path) -> None:
    a, b = geodetic(10.0, 20.0)
    survey = {
        "type": "ComplexItem",
        "complexItemType": "survey",
        "TransectStyleComplexItem": {"Items": [item(6, 16, 0, 0, 0, None, a, b, -3), item(7, 206, 25)]},
    }
    found = read(
        tmp_path,
        "a.plan",
        plan(
            item(1, 22, 15, 0, 0, None, a, b, 5),
            item(2, 16, 7, 0, 0, None, a, b, -2),
            item(3, 178, 1, 0.8, -1, 0),
            item(4, 16, 0, 0, 0, None, 5, 6, 3, frame=1),
            survey,
            {"type": "ComplexItem", "complexItemType": "fwLandingPattern"},
            item(8, 178, 1, -2),
            item(9, 82, 0, 0, 0, None, a, b, 12),
            item(10, 178, 2, 3),
            item(11, 16, 0, 0, 0, None, None, None, 0),
            item(12, 4711),
        ),
    )
    assert [(round(w.north), round(w.east), w.depth, w.speed) for w in found.waypoints] == [
        (10, 20, 2.0, 1.5),
        (5, 6, 3.0, 0.8),
        (10, 20, 3.0, 0.8),
        (10, 20, 0.0, 1.5),
    ]
    notices = "\n".join(found.notices)
    for expected in (
        "item 1 (NAV_TAKEOFF) is not a waypoint",
        "'survey') becomes the waypoints",
        "item 7 (DO_SET_CAM_TRIGG_DIST) is not a waypoint",
        "'fwLandingPattern') contains no waypoints",
        "item 9 (NAV_SPLINE_WAYPOINT) is a point of a curve",
        "item 10 (DO_CHANGE_SPEED) changes the climb",
        "item 11 (NAV_WAYPOINT) has no position",
        "item 12 (MAV_CMD 4711) is not a waypoint",
        "the geofence of the plan (1)",
        "hold time of waypoint 1 is ignored",
        "waypoint 4 (12 m)",
    ):
        assert expected in notices
    assert len(found.notices) == 11
    assert read(tmp_path, "b.plan", plan(item(1, 16, 0, 0, 0, 0, a, b, 0)), speed=0.5).waypoints[0].speed == 0.5
    flight = read(tmp_path, "c.plan", plan(item(1, 16, 0, 0, 0, 0, a, b, 0), vehicleType=2))
    assert flight.waypoints[0].speed == 1.0 and "cruiseSpeed (1.5 m/s) is ignored" in "".join(flight.notices)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yml", "waypoints: [[1, 2], [3, x]]", "waypoint 2: 'x' is not a number"),
        ("a.yml", "waypoints: [1, 2]", "waypoint 1 must be a list"),
        ("a.yml", "waypoints: [[1, 2]\nb: 1", ":2: not valid YAML"),
        ("a.yml", "waypoints_type: UTM\nwaypoints: [[1, 2, 3]]", "unknown waypoints_type 'UTM'"),
        ("a.yml", "waypoints: []", "contains no waypoint"),
        ("a.yml", "waypoints: [[1, 2]]\nacceptance_radius: -1", "acceptance_radius must be greater than 0 m"),
        ("a.yml", "waypoints: [[95, 2, 0]]\nwaypoints_type: LLA", "invalid latitude and longitude 95, 2"),
        ("a.yml", "waypoints: [[-41, 171, 0]]\nwaypoints_type: LLA", "more than 1000 km from the world's origin"),
        ("a.plan", "[]", "`mission` with `items` is missing"),
        ("a.plan", "{", "not a QGroundControl plan"),
        ("a.plan", "[" * 100_000, "not a QGroundControl plan"),
        ("a.plan", plan({"type": "SimpleItem"}), "item 1 of the plan is invalid"),
        ("a.plan", plan(item(1, 16, 0, 0, 0, 0, 41, -8, 3, frame=10)), "relative to the terrain"),
        ("a.plan", plan(item(1, 178, 1, -5)), "invalid speed -5 m/s"),
        ("a.waypoints", "1 2 3", "must be `QGC WPL 110`"),
        ("a.waypoints", "QGC WPL 110\n0 1 0", ":2: expected 12 fields, got 3"),
        ("a.waypoints", "", "must be `QGC WPL 110`"),
        ("a.csv", "a,b\n1,2", ":1: the header must name"),
        ("a.csv", "north,east,latitude,longitude\n1,2,3,4", ":1: the header must name"),
        ("a.csv", "north,east\n1,2\n3", ":3: expected 2 values, got 1"),
        ("a.csv", "north,east\n1,\n", ":2: the line has no values for north and east"),
        ("a.csv", "north,east\n1,nan\n", "'nan' is not a number"),
        ("a.csv", "", "contains no header"),
        ("a.gpx", "<gpx/>", "unknown type of mission file '.gpx'"),
    ],
)
def test_mistakes_in_mission_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, name, text)
    assert message in str(caught.value) and str(tmp_path / name) in str(caught.value)


def test_random_bytes_raise_only_documented_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for name, text in files(0.0).items():
        data = np.frombuffer(text.encode(), np.uint8)
        for _ in range(30):
            changed = data.copy()
            changed[rng.integers(0, len(data), 6)] = rng.integers(0, 256, 6)
            (tmp_path / name).write_bytes(bytes(changed[: rng.integers(1, len(data))]))
            try:
                read_mission(tmp_path / name, ORIGIN)
            except ConfigError:
                continue


# ------------------------------------------------------------------ configurations, trials, commands

CONFIG = """<wavesim name="{name}" seed="1"><time step="50 ms" duration="{seconds} s" pace="fast"/>
<world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="20 m"/></world><fleet>{fleet}</fleet></wavesim>"""
BOAT = """<vehicle name="{0}" model="jolner" position="0 {1} -0.1 m" client="required" truth="full">
<program run="{2}/examples/onboard/usv.py" period="200 ms"/>{3}</vehicle>"""


def configuration(tmp_path: Path, fleet: str, seconds: float = 10.0) -> LoadedConfig:
    path = tmp_path / "config.xml"
    path.write_text(CONFIG.format(name=f"way-{tmp_path.name[-8:]}", seconds=seconds, fleet=fleet))
    return load(path)


def test_a_boat_sails_the_mission_of_each_format_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "guidance.yml").write_text(SOOKSHMA)
    fleet = BOAT.format("sookshma", 0.0, ROOT, '<mission file="guidance.yml" acceptance="2 m" lookahead="4 m"/>')
    for k, name in enumerate(files(0.0), 1):
        (tmp_path / name).write_text(files(100.0 * k)[name])
        fleet += BOAT.format(f"boat{k}", 100.0 * k, ROOT, f'<mission file="{name}" speed="1.5 m/s"/>')
    loaded = configuration(tmp_path, fleet, 75.0)
    with allow_files(ROOT / "examples/onboard"):
        trial = InProcessTrial(loaded, tmp_path / "runs", quiet=True)
        assert remove_leftovers(loaded.config.name) == []
        trial.run()
    log = read_log(trial.folder / "run.mcap")
    for body in loaded.config.fleet.bodies:
        assert body.mission is not None
        left = list(body.waypoint)
        for place in log.series[f"/state/{body.name}"].records["p_WB_W"][:, :2]:
            if left and np.hypot(left[0].north - place[0], left[0].east - place[1]) < body.mission.acceptance + 0.5:
                left.pop(0)
        assert not left, f"{body.name} did not reach {left}"


def test_a_configuration_obeys_the_rules_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (tmp_path / "outside.csv").write_text("north,east\n1,2\n")
    (folder / "a.csv").write_text("north,east,colour\n1,2,3\n")
    with pytest.raises(ConfigError, match="is outside the folder of the configuration"):
        configuration(folder, BOAT.format("b", 0, ROOT, '<mission file="../outside.csv"/>'))
    with pytest.raises(ConfigError, match=r"config.xml:3: 'b' has both <mission> and <waypoint>"):
        both = '<mission file="a.csv"/><waypoint north="1 m" east="2 m"/>'
        configuration(folder, BOAT.format("b", 0, ROOT, both))
    loaded = configuration(folder, BOAT.format("b", 0, ROOT, '<mission file="a.csv" speed="2 m/s"/>'))
    assert loaded.notices == ("mission of 'b': the column 'colour' is ignored",)
    assert [(w.north, w.east, w.speed) for w in loaded.config.fleet.vehicle[0].waypoint] == [(1.0, 2.0, 2.0)]
    (folder / "a.csv").write_text("north,east\n1,3\n")
    assert load(loaded.path).digest != loaded.digest, "the digest covers the file"
    assert load_standalone(loaded.text)[0].config.fleet.vehicle[0].waypoint == (), "a log has no files"
    (folder / "a.csv").write_text("north,east\n1,\n")
    done = wavesim("check", loaded.path)
    assert done.returncode == 2 and "a.csv:2: the line has no values for north and east" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.system
@pytest.mark.timeout(120)
def test_a_mission_file_is_sent_to_a_running_vehicle(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str, tmp_path: Path
) -> None:
    boat = BOAT.format("boat", 0, ROOT, "")
    loaded = config(
        '<time step="20 ms" pace="fast"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="20 m"/></world>'
        f"<fleet>{boat}</fleet>"
    )
    server = serve(loaded.path)
    program = subprocess.Popen(
        [sys.executable, str(ROOT / "examples/onboard/usv.py"), "--config", str(loaded.path), "--vehicle", "boat"]
        + ["--port", str(server.port)]
    )
    path = tmp_path / "q.plan"
    path.write_text(files(0.0)["q.plan"])

    def mission(*arguments: str) -> Any:
        return wavesim("mission", "boat", *arguments, "-s", name)

    try:
        server.wait(lambda status: bool(status["clients"]))
        server.send("start")
        shown = mission("--file", str(path), "--dry-run")
        assert shown.returncode == 0 and shown.stdout.startswith("25.00 m north"), shown.stderr
        assert shown.stdout.splitlines()[1].split()[3] == "20.00"
        done = mission("--file", str(path), "--speed", "1.2")
        assert done.returncode == 0, done.stderr
        assert "the value in the file, 4 m, is ignored" in done.stderr and "the geofence" in done.stderr
        shared = SharedState(name)
        missing = mission("--file", str(tmp_path / "none.csv"))
        assert missing.returncode == 2 and "cannot read the mission file" in missing.stderr

        def is_at_its_end(_: Any) -> bool:
            place = shared.snapshot().state[shared.row("boat")]["p_WB_W"][:2]
            return bool(np.hypot(*(place - ROUTE[-1])) < 7.0)

        server.wait(is_at_its_end, 60.0)
    finally:
        program.terminate()
        program.wait(20)
