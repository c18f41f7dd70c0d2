"""Beams start at their mounting, and end at the water surface and at other bodies, but never at their own body."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench, Make, bench
from wavesim_emulators import motion, position, ranging
from wavesim_sdk.frames import quaternion, rotation
from wavesim_sdk.tables import IDENTITY, STATE
from wavesim_world.ocean import bodies
from wavesim_world.ocean.bodies import BodyObstacles, ModelShapes
from wavesim_world.ocean.scene import RaycastScene

MODELS = {b"jolner": "box", b"lauv": "cylinder", b"buoy": "sphere"}


def crowd(config: Make, count: int, spread: float, seed: int = 2) -> tuple[BodyObstacles, Any, Any]:
    """Boxes, cylinders and spheres at random places and attitudes."""
    rng = np.random.default_rng(seed)
    identity, state = np.zeros(count, IDENTITY.dtype), np.zeros(count, STATE.dtype)
    identity["model"] = [list(MODELS)[k % 3] for k in range(count)]
    state["p_WB_W"] = rng.uniform(-spread, spread, (count, 3)) + (1e4, -2e4, 50.0)
    state["q_WB"] = [quaternion(*rng.uniform(-3, 3, 3)) for _ in range(count)]
    state["v_WB_B"], state["w_WB_B"] = rng.normal(size=(2, count, 3))
    return BodyObstacles(ModelShapes(config("")), np.arange(count), identity, state), identity, state


def rays(of: BodyObstacles, n: int, beams: int, seed: int = 3) -> tuple[Any, Any]:
    """Towards the bodies, more or less."""
    rng = np.random.default_rng(seed)
    starts = of.p.mean(axis=0) + rng.uniform(-4, 4, (n, beams, 3))
    along = of.p[rng.integers(0, len(of.p), (n, beams))] + rng.normal(scale=0.3, size=(n, beams, 3)) - starts
    return starts, along / np.linalg.norm(along, axis=2)[:, :, None]


def inside(of: BodyObstacles, model: bytes, j: int, points: Any) -> Any:
    """Whether points lie in a body, by the definition of its shape."""
    x = (points - of.p[j]) @ rotation(of.state["q_WB"][j])
    half = of.half[j]
    match MODELS[model]:
        case "box":
            return (np.abs(x) <= half).all(axis=1)
        case "cylinder":
            return (np.abs(x[:, 0]) <= half[0]) & (np.hypot(x[:, 1], x[:, 2]) <= half[1])
    return np.linalg.norm(x, axis=1) <= half[0]


def test_beams_on_bodies_against_a_slow_march(config: Make) -> None:
    of, identity, _ = crowd(config, 30, 3.0)
    starts, along = rays(of, 40, 5)
    own = np.arange(40) % 30
    found, hit = of.cast(starts, along, np.full((40, 5), np.inf), 12.0, own)
    t = np.arange(0.0, 12.0, 0.004)
    met = 0
    for i in range(40):
        for b in range(5):
            points = starts[i, b] + t[:, None] * along[i, b]
            first, who = math.inf, -1
            for j in range(30):
                if j != own[i] and (at := inside(of, identity["model"][j], j, points)).any() and t[at.argmax()] < first:
                    first, who = t[at.argmax()], j
            close = found[i, b] == pytest.approx(first, abs=0.005) or first > 11.99
            grazed = found[i, b] < first and not math.isinf(found[i, b])  # a corner between two steps of the march
            assert close or grazed, (i, b, found[i, b], first)
            met += close and hit[i, b] == who >= 0
    assert met > 60


def test_a_tree_of_bodies_gives_what_strips_give(config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    of, _, _ = crowd(config, 200, 6.0)
    starts, along = rays(of, 60, 7)
    ranges = np.random.default_rng(1).uniform(1.0, 80.0, (60, 7))
    every = of.cast(starts, along, ranges, 50.0, np.arange(60))
    monkeypatch.setattr(bodies, "STRIP", 0)
    monkeypatch.setattr(bodies, "ELEMENTS", 100)
    some = of.cast(starts, along, ranges, 50.0, np.arange(60))
    assert (every[0] == some[0]).all() and (every[1] == some[1]).all() and (every[1] >= 0).sum() > 20
    assert (every[0][every[1] < 0] == ranges[every[1] < 0]).all(), "what no body stops goes as far as before"


def test_the_velocity_of_what_a_beam_hits(config: Make) -> None:
    of, _, state = crowd(config, 3, 1.0)
    points = of.p[1] + np.array([[[0.3, -0.1, 0.2], [0.0, 0.0, 0.0]]])
    v = of.velocity(np.array([[1, -1]]), points)
    R = rotation(state["q_WB"][1])
    expected = R @ state["v_WB_B"][1] + np.cross(R @ state["w_WB_B"][1], (0.3, -0.1, 0.2))
    assert v[0, 0] == pytest.approx(expected) and (v[0, 1] == 0.0).all()


def test_an_echosounder_sees_who_dives_below_but_not_itself(config: Make) -> None:
    b = bench(config, ranging.EchosounderEmulator, world='<bed depth="60 m"/>', bodies=2)
    b.put((0.0, 0.0, 5.0))
    depths = [20.0, 30.0, 40.0]
    found = []
    for tick, depth in enumerate(depths):
        b.put((0.0, 0.3, depth), row=1)  # a cylinder of radius 0.075 m passes beside the beam
        assert b.at(2 * tick)["range"][0] == pytest.approx(55.0, abs=1e-3)
        b.put((0.1, 0.02, depth), row=1)
        found.append(b.at(2 * tick + 1)["range"][0])
    radius = b.loaded.model("lauv").cylinder.radius  # type: ignore[union-attr]
    assert found == pytest.approx([d - 5.0 - math.sqrt(radius**2 - 0.02**2) for d in depths], abs=1e-9)
    assert b.out["range"][1] == pytest.approx(60.0 - depths[-1], abs=1e-3), "the lower one looks down"
    b.leave(1)
    assert b.at(9)["range"][0] == pytest.approx(55.0, abs=1e-3)


def test_a_doppler_log_over_a_moving_body_measures_against_it(config: Make) -> None:
    """A ferry of 83 m passes above the bed: all four beams of the one over it stand on its deck."""
    loaded = config(
        '<world><bed depth="75 m"/></world><fleet><vehicle name="b0" model="lauv" position="0 0 0 m"><sensors>'
        '<dvl noise="0"/></sensors></vehicle></fleet>'
    )
    b = Bench(loaded, motion.DvlEmulator, bodies=2)
    b.identity["model"][1] = b"supply"
    b.put((0.0, 0.0, 10.0), v=(1.5, 0.2, 0.0))
    b.put((2.0, 1.0, 30.0), v=(1.0, 0.0, 0.0), row=1)
    out = b.at(0)[0]
    half = loaded.model("supply").box.height / 2  # type: ignore[union-attr]
    assert out["locked"] == 4 and out["altitude"] == pytest.approx(20.0 - half)
    assert out["bottom"] == pytest.approx((0.5, 0.2, 0.0), abs=1e-9) and out["water"] == pytest.approx((1.5, 0.2, 0.0))
    b.put((200.0, 0.0, 30.0), v=(1.0, 0.0, 0.0), row=1)
    assert b.at(1)["bottom"][0] == pytest.approx((1.5, 0.2, 0.0), abs=1e-9)


# ------------------------------------------------------------------ beams have places


def test_beams_start_where_they_are_mounted(config: Make) -> None:
    beams = '<beam elevation="90 deg" position="0 0 1 m"/><beam azimuth="90 deg" position="0 2 0 m"/><beam position="1 0 0 m"/>'
    wall = '<bed depth="50 m"/><obstacles><block position="10 0 20 m" size="2 60 40 m"/><block position="0 10 20 m" size="60 2 40 m"/></obstacles>'
    b = bench(config, ranging.RangerEmulator, 'noise="0" position="0.5 0 0.2 m" maximum="60 m"', beams, wall)
    b.put((0.0, 0.0, 10.0))
    assert b.at(0)["range"][0][:3] == pytest.approx([50.0 - 10.0 - 1.2, 9.0 - 2.0, 9.0 - 1.5], abs=1e-3)
    b.put((0.0, 0.0, 10.0), (0.0, 0.0, math.pi / 2))  # turned to starboard: the beam ahead meets the east wall
    assert b.at(1)["range"][0][2] == pytest.approx(9.0 - 1.5, abs=1e-3)


def test_a_multibeam_of_own_beams(config: Make) -> None:
    beams = '<beam elevation="90 deg"/><beam elevation="90 deg" position="0 0 2 m"/><beam azimuth="90 deg" elevation="45 deg"/>'
    b = bench(config, ranging.MultibeamEmulator, 'noise="0"', beams, '<bed depth="40 m"/>')
    b.put((0.0, 0.0, 10.0))
    out = b.at(0)["range"][0]
    assert out[:3] == pytest.approx([30.0, 28.0, 30.0 * math.sqrt(2.0)], abs=1e-3) and np.isnan(out[3:]).all()


def test_janus_beams_on_a_circle(config: Make) -> None:
    b = bench(config, motion.DvlEmulator, 'noise="0" radius="0.1 m"', world='<bed depth="60 m" slope_north="0.3"/>')
    b.put((0.0, 0.0, 30.0), v=(1.0, -0.5, 0.2))
    out = b.at(0)[0]
    assert out["bottom"] == pytest.approx((1.0, -0.5, 0.2), abs=1e-12)
    slope = np.array([0.3, 0.0, -1.0])
    for k in range(4):
        a = math.radians(45 + 90 * k)
        beam = np.array([0.5 * math.cos(a), 0.5 * math.sin(a), math.cos(math.radians(30))])
        start = np.array([0.1 * math.cos(a), 0.1 * math.sin(a), 30.0])
        assert out["ranges"][k] == pytest.approx(-(60.0 + slope @ start) / (slope @ beam), abs=1e-3)


def test_a_doppler_log_with_three_beams(config: Make) -> None:
    beams = "".join(f'<beam azimuth="{a} deg" elevation="65 deg" position="0 0 0.1 m"/>' for a in (0, 120, 240))
    b = bench(config, motion.DvlEmulator, 'noise="0"', beams, '<bed depth="60 m"/>')
    b.put((0.0, 0.0, 30.0), (0.1, -0.1, 0.3), (1.0, 0.5, -0.2))
    out = b.at(0)[0]
    assert out["bottom"] == pytest.approx((1.0, 0.5, -0.2), abs=1e-12) == out["water"]
    assert out["locked"] == 3 and np.isnan(out["beams"][3]) and np.isnan(out["ranges"][3])


# ------------------------------------------------------------------ the water as it stands


@pytest.mark.parametrize(
    ("of", "in_air"), [(position.GpsEmulator, 1), (position.UwbEmulator, 1), (motion.DvlEmulator, 0)]
)
def test_air_and_water_part_at_the_level_of_the_water(config: Make, of: Any, in_air: int) -> None:
    b = bench(config, of, world='<bed depth="20 m"/>')
    for tick, (z, level, in_water) in enumerate(
        [(0.5, 0.0, True), (-0.5, 0.0, False), (-0.5, 1.0, True), (0.5, -1.0, False), (-1.5, 1.0, False)]
    ):
        b.level(level)
        b.put((0.0, 0.0, z))
        assert b.at(tick)["valid"][0] == (in_air ^ in_water), (z, level)


def test_an_echosounder_falls_dry_with_the_water(config: Make) -> None:
    b = bench(config, ranging.EchosounderEmulator, world='<bed depth="20 m"/>')
    for tick, (z, level, wet) in enumerate([(-0.3, 0.0, 1), (-1.0, 0.0, 0), (-1.0, 0.8, 1), (0.5, -1.5, 0)]):
        b.level(level)
        b.put((0.0, 0.0, z))
        assert b.at(tick)["valid"][0] == wet, (z, level)


def test_a_beam_upwards_meets_the_water_where_it_stands(config: Make) -> None:
    b = bench(config, ranging.RangerEmulator, 'noise="0"', '<beam elevation="-90 deg"/>', '<bed depth="40 m"/>')
    b.put((0.0, 0.0, 10.0))
    for tick, level in enumerate((0.0, 2.0, -3.0)):
        b.level(level)
        assert b.at(tick)["range"][0][0] == pytest.approx(10.0 + level)
    scene = RaycastScene(config("<world/>"))
    up = np.array([[0.0, 0.0, -1.0]])
    assert scene.cast(np.array([[0.0, 0.0, -1.0]]), up, 50.0, level=1.5)[0] == pytest.approx(0.5)
    assert np.isinf(scene.cast(np.array([[0.0, 0.0, -1.0]]), up, 50.0)[0]), "above the mean water it is in the air"
