"""Values of the emulators without a server: computed from poses, and compared with geometry, formulas and independent
code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import allantools
import numpy as np
import pyproj
import pytest
from scipy.optimize import brentq

from tests.emulators.bench import STEP_NS, Bench, Make, bench
from wavesim_emulators import motion, position, ranging, vessel, water
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import quaternion, rotation
from wavesim_world.ocean.bed import analytic_depth
from wavesim_world.ocean.scene import RaycastScene

# ------------------------------------------------------------------ the base


def test_latency_delays_values_but_not_their_time(config: Make) -> None:
    b = bench(config, position.UwbEmulator, 'noise="0" latency="100 ms" rate="25 Hz"')
    for k in range(8):
        b.put((float(k), 0.0, -1.0))
        out = b.at(10 * k)[0]
        late = k - 3 if k >= 3 else None  # 100 ms are two and a half periods
        assert out["sequence"] == (0 if late is None else late + 1)
        if late is not None:
            assert out["position"][0] == late and out["time_ns"] == 10 * late * STEP_NS


def test_values_drop_out(config: Make) -> None:
    b = bench(config, position.UwbEmulator, 'noise="0" drop_out="0.3"', bodies=40)
    b.state["p_WB_W"][:, 2] = -1.0
    for tick in range(100):
        b.at(tick)
    assert b.out["sequence"][:40].mean() == pytest.approx(70.0, abs=3.0)


def test_faults(config: Make) -> None:
    b = bench(config, position.UwbEmulator, 'sigma="0.1 m"', bodies=6)
    b.state["p_WB_W"][:, 2] = -1.0
    b.at(0)
    kinds: list[tuple[str, float | str]] = [
        ("none", 0.0),
        ("lost", 0.0),
        ("frozen", 0.0),
        ("bias", "5 m"),
        ("spikes", 0.5),
    ]
    for row, (kind, amount) in enumerate([*kinds, ("noisy", 30.0)]):
        b.fault(row, kind, amount)
    first = b.out["position"][:6].copy()
    values = []
    for tick in range(1, 400):
        values.append(b.at(tick)["position"][:6].copy())
        assert b.out["valid"][:6].tolist() == [1, 0, 1, 1, 1, 1]
        assert (b.out["sequence"][:6] == tick + 1).all(), "all of them speak"
    x = np.array(values)[:, :, 0]
    assert (x[:, 2] == first[2, 0]).all(), "frozen"
    assert x[:, 0].std() == pytest.approx(0.1, rel=0.15) and x[:, 3].mean() == pytest.approx(5.0, abs=0.05)
    assert (np.abs(x[:, 4]) > 5.0).mean() == pytest.approx(0.5, abs=0.1)
    assert x[:, 5].std() == pytest.approx(3.0, rel=0.15)
    b.fault(1, "none")
    assert b.at(500)["valid"][1] == 1, "repaired"


def test_a_body_that_leaves_and_another_that_enters(config: Make) -> None:
    b = bench(config, motion.ImuEmulator, bodies=2)
    b.at(0)
    assert b.at(10)["valid"][:2].tolist() == [1, 1]
    b.leave(1)
    assert b.at(20)["valid"][:2].tolist() == [1, 0]
    b.enter(1, "b1")
    assert b.at(30)["valid"][:2].tolist() == [1, 0], "no acceleration of a body that has just come"
    assert b.at(40)["valid"][:2].tolist() == [1, 1]


def test_a_replaced_emulator_goes_on_with_the_same_numbers(config: Make) -> None:
    one, other = (bench(config, motion.AhrsEmulator, "", bodies=3) for _ in range(2))
    for tick in range(0, 50, 10):
        one.at(tick)
    other.at(40)
    for name in ("roll", "pitch", "heading", "rates"):
        assert (one.out[name] == other.out[name]).all()


# ------------------------------------------------------------------ beams


def test_the_echosounder_on_slopes_hills_and_walls(config: Make) -> None:
    hill = '<bed depth="60 m" slope_north="0.1" slope_east="-0.05"><bump height="-25 m" north="40 m" east="10 m" alpha="0.03 1/m" beta="0.05 1/m"/></bed>'
    loaded = config(f"<world>{hill}</world><fleet><sensors><echosounder noise='0' level='no'/></sensors></fleet>")
    b = Bench(loaded, ranging.EchosounderEmulator)
    rng = np.random.default_rng(1)
    for k in range(40):
        p = np.array([rng.uniform(-50, 100), rng.uniform(-50, 60), rng.uniform(0, 20)])
        angles = rng.uniform(-0.6, 0.6, 2)
        b.put(p, (*angles, rng.uniform(-3, 3)))
        d = rotation(b.state["q_WB"][0]) @ (0.0, 0.0, 1.0)

        def clear(t: float, p: Any = p, d: Any = d) -> float:
            """Water under a point of the beam."""
            return float(analytic_depth(loaded.config.world.bed, p[0] + t * d[0], p[1] + t * d[1]) - p[2] - t * d[2])

        grid = np.arange(0.0, 300.0, 0.25)
        first = next(i for i, t in enumerate(grid) if clear(t) <= 0.0)
        assert b.at(k)["range"][0] == pytest.approx(brentq(clear, grid[first - 1], grid[first]), abs=2e-3)


def test_a_cone_hears_the_nearest_point(config: Make) -> None:
    b = bench(
        config, ranging.EchosounderEmulator, 'noise="0" width="30 deg"', world='<bed depth="50 m" slope_north="0.2"/>'
    )
    b.put((0.0, 0.0, 0.0))
    narrow = 50.0 / (math.cos(math.radians(15)) - -0.2 * math.sin(math.radians(15)))
    # the outermost ray uphill (to the south, where the bed rises) meets first, or the normal if it lies in the cone
    normal = 50.0 / math.hypot(1.0, 0.2)
    found = b.at(0)["range"][0]
    assert normal <= found < 50.0 and found == pytest.approx(normal, rel=0.003) and narrow > normal


def test_the_walls_of_a_tunnel(config: Make) -> None:
    tunnel = '<bed depth="90 m"/><obstacles><tunnel position="0 0 20 m" length="100 m" width="8 m" height="6 m" heading="30 deg"/></obstacles>'
    beams = (
        '<beam azimuth="90 deg"/><beam azimuth="-90 deg"/><beam elevation="90 deg"/><beam elevation="-90 deg"/><beam/>'
    )
    b = bench(config, ranging.RangerEmulator, 'noise="0" maximum="40 m"', beams, tunnel)
    c, s = math.cos(math.radians(30)), math.sin(math.radians(30))
    b.put((-1.0 * s, 1.0 * c, 21.0), (0.0, 0.0, math.radians(30)))
    assert b.at(0)["range"][0][:4] == pytest.approx([3.0, 5.0, 2.0, 4.0], abs=1e-9)
    assert np.isnan(b.out["range"][0][4:]).all(), "open ahead"
    b.put((-1.0 * s, 1.0 * c, 21.0), (math.radians(30), 0.0, math.radians(30)))
    assert b.at(1)["range"][0][0] == pytest.approx(
        min(3.0 / math.cos(math.radians(30)), 2.0 / math.sin(math.radians(30))), abs=1e-9
    )


def test_piers_the_surface_and_a_scan(config: Make) -> None:
    world = '<bed depth="40 m"/><obstacles><pier position="10 0 20 m" radius="2 m" height="40 m"/></obstacles>'
    b = bench(config, ranging.ScannerEmulator, 'noise="0" step="10 deg" rate="250 Hz"', "", world)
    b.put((0.0, 0.0, 10.0), (0.0, math.radians(10), 0.0))
    seen = {}
    for tick in range(36):
        b.at(tick)
        seen[round(math.degrees(b.out["angle"][0]))] = float(b.out["range"][0])
    assert seen[0] == pytest.approx(8.0 / math.cos(math.radians(10)), abs=1e-9)
    assert math.isnan(seen[30]), "past the pier it goes up 10 deg and meets the surface beyond its reach"
    assert seen[-180] == pytest.approx(30.0 / math.sin(math.radians(10)), abs=1e-3) if seen[-180] < 50 else True
    assert sum(not math.isnan(v) for v in seen.values()) >= 2


def test_rays_against_a_slow_march(config: Make) -> None:
    """Thousands of random rays in a scene of everything, against a march in steps of a centimetre."""
    world = (
        '<bed depth="30 m"><bump height="-12 m" north="10 m" east="5 m" alpha="0.08 1/m" beta="0.08 1/m"/></bed><obstacles>'
        '<block position="-15 8 15 m" size="6 10 20 m" heading="25 deg"/><pier position="12 -14 15 m" radius="3 m" height="20 m"/></obstacles>'
    )
    loaded = config(f"<world>{world}</world>")
    scene = RaycastScene(loaded)
    rng = np.random.default_rng(3)
    o = np.array([0.0, 0.0, 8.0]) + rng.uniform(-2, 2, (300, 3))
    d = rng.normal(size=(300, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    found = scene.cast(o, d, 40.0)
    c, s = math.cos(math.radians(25)), math.sin(math.radians(25))
    for k in range(300):
        t = np.arange(0.0, 40.0, 0.01)
        p = o[k] + t[:, None] * d[k]
        solid = (p[:, 2] < 0.0) | (analytic_depth(loaded.config.world.bed, p[:, 0], p[:, 1]) < p[:, 2])
        x, y = p[:, 0] + 15.0, p[:, 1] - 8.0
        solid |= (np.abs(c * x + s * y) < 3.0) & (np.abs(-s * x + c * y) < 5.0) & (np.abs(p[:, 2] - 15.0) < 10.0)
        solid |= (np.hypot(p[:, 0] - 12.0, p[:, 1] + 14.0) < 3.0) & (np.abs(p[:, 2] - 15.0) < 10.0)
        first = t[np.argmax(solid)] if solid.any() else math.inf
        assert found[k] == pytest.approx(first, abs=0.02) or (math.isinf(found[k]) and first > 39.9), k


# ------------------------------------------------------------------ motion


def test_specific_force_on_a_turning_accelerating_body(config: Make) -> None:
    """A body that yaws faster and faster and drives forward, the sensor on an arm and turned: force by hand."""
    b = bench(config, motion.ImuEmulator, 'noise="0" position="1 0.5 -0.2 m" attitude="10 20 30 deg" rate="250 Hz"')
    r, R_BS = np.array([1.0, 0.5, -0.2]), rotation(quaternion(*np.radians((10.0, 20.0, 30.0))))
    accel, alpha = 0.3, 0.2
    for tick in range(500):
        t = tick * STEP_NS * 1e-9
        b.put((0.0, 0.0, 5.0), (0.05, 0.0, 0.5 * alpha * t * t), (accel * t, 0.0, 0.0), (0.0, 0.0, 0.0))
        R = rotation(b.state["q_WB"][0])
        b.state["w_WB_B"][0] = R.T @ (0.0, 0.0, alpha * t)
        b.at(tick)
    t -= 0.5 * STEP_NS * 1e-9
    heading = 0.5 * alpha * t * t
    R = rotation(quaternion(0.05, 0.0, heading))
    w, dw = R.T @ (0.0, 0.0, alpha * t), R.T @ (0.0, 0.0, alpha)
    v = np.array([accel * t, 0.0, 0.0])
    a = np.array([accel, 0.0, 0.0]) + np.cross(w, v) + np.cross(dw, r) + np.cross(w, np.cross(w, r))
    force = R_BS.T @ (a - R.T @ (0.0, 0.0, 9.81))
    assert b.out["force"][0] == pytest.approx(force, abs=2e-5)
    assert b.out["rates"][0] == pytest.approx(R_BS.T @ w, abs=1e-6)


def test_specific_force_in_a_fast_spin(config: Make) -> None:
    """6 rad/s about an axis that is itself carried around, at 50 Hz, on an arm: the mean of the true force over the interval,
    from positions of the sensor differenced twice."""
    b = bench(config, motion.ImuEmulator, 'noise="0" position="0.3 -0.2 0.1 m" attitude="10 20 30 deg" rate="50 Hz"')
    arm, R_BS = np.array([0.3, -0.2, 0.1]), rotation(quaternion(*np.radians((10.0, 20.0, 30.0))))

    def attitude(t: float) -> Any:
        return rotation(quaternion(0.5 * math.sin(2.0 * t), 0.3 + 0.2 * math.sin(3.0 * t), 6.0 * t))

    def place(t: float) -> Any:
        return np.array([0.1 * math.sin(t), 0.1 * t, 5.0 + 0.05 * math.sin(2.0 * t)])

    def slope(f: Callable[[float], Any], t: float, h: float) -> Any:
        return (f(t + h) - f(t - h)) / (2.0 * h)

    for tick in (50, 55):
        t = tick * STEP_NS * 1e-9
        R, spin = attitude(t), attitude(t).T @ slope(attitude, t, 1e-6)
        b.put(place(t), (0.5 * math.sin(2.0 * t), 0.3 + 0.2 * math.sin(3.0 * t), 6.0 * t), R.T @ slope(place, t, 1e-6))
        b.state["w_WB_B"][0] = spin[2, 1], spin[0, 2], spin[1, 0]
        b.at(tick)
    times = np.linspace(50, 55, 2001) * STEP_NS * 1e-9
    h = 1e-4
    forces = []
    for t in times:
        a = sum(k * (place(t + s) + attitude(t + s) @ arm) for k, s in ((1, h), (-2, 0.0), (1, -h))) / h**2
        forces.append((attitude(t) @ R_BS).T @ (a - (0.0, 0.0, 9.81)))
    assert b.out["force"][0] == pytest.approx(np.trapezoid(forces, times, axis=0) / (times[-1] - times[0]), abs=2e-3)


@pytest.mark.parametrize("which", ["force", "rates"])
def test_allan_deviation_of_the_inertial_unit(config: Make, which: str) -> None:
    """White noise N/sqrt(tau) and random walk K sqrt(tau/3), each alone, over 40 bodies; `allantools` as oracle."""
    white, walk = ("accelerometer_noise", "accelerometer_walk") if which == "force" else ("gyro_noise", "gyro_walk")
    zero = dict.fromkeys(
        (
            "gyro_noise",
            "gyro_walk",
            "gyro_turn_on",
            "accelerometer_noise",
            "accelerometer_walk",
            "accelerometer_turn_on",
        ),
        "0",
    )
    for name, value, law in (
        (white, 0.02, lambda t: 0.02 / math.sqrt(t)),
        (walk, 0.01, lambda t: 0.01 * math.sqrt(t / 3)),
    ):
        attributes = " ".join(f'{k}="{v}"' for k, v in {**zero, name: str(value)}.items())
        b = bench(config, motion.ImuEmulator, attributes + ' rate="50 Hz"', bodies=40)
        series = []
        for k in range(2001):
            b.at(5 * k)
            series.append(b.out[which][:40, 0].copy())
        data = np.array(series[1:])
        taus = [0.2, 1.0, 2.0]
        found = np.mean(
            [allantools.oadev(data[:, k], rate=50.0, data_type="freq", taus=taus)[1] ** 2 for k in range(40)], axis=0
        )
        assert np.sqrt(found) == pytest.approx([law(t) for t in taus], rel=0.07), name


ALONE = " ".join(f'{kind}_{what}="0"' for kind in ("gyro", "accelerometer") for what in ("noise", "walk", "turn_on"))


def allan(b: Bench, bodies: int, which: str, rate: float, values: int, taus: list[float]) -> Any:
    """Allan deviations of the first axis at ``taus``, the mean over all bodies (`allantools`); of several quantities in turn."""
    ticks = round(250 / rate)
    series: dict[str, list[Any]] = {name: [] for name in which.split()}
    for k in range(values + 1):
        b.at(ticks * k)
        for name, rows in series.items():
            rows.append(b.out[name][:bodies, 0].copy())
    found = []
    for rows in series.values():
        each = [allantools.oadev(x, rate=rate, data_type="freq", taus=taus)[1] ** 2 for x in np.array(rows[1:]).T]
        found.extend(np.sqrt(np.mean(each, axis=0)))
    return np.array(found)


DEG, HOUR, GRAVITY = math.radians(1.0), 3600.0, 9.80665
#: of each grade, of gyros and accelerometers in the units of their sheets: random walks and instabilities, turned into SI
SHEETS = {
    "mems": (math.hypot(3.394e-4, 3.8785e-5 / math.sqrt(3)), math.hypot(4e-3, 6e-3 / math.sqrt(3)), 0.0, 0.0),
    "tactical": (0.15 * DEG / math.sqrt(HOUR), 0.06 / math.sqrt(HOUR), 0.5 * DEG / HOUR, 0.05e-3 * GRAVITY),
    "navigation": (0.002 * DEG / math.sqrt(HOUR), 5e-6 * GRAVITY, 0.0035 * DEG / HOUR / 3.0, 25e-6 * GRAVITY / 3.0),
}


@pytest.mark.parametrize("grade", SHEETS)
def test_grades_have_the_allan_deviations_of_their_data_sheets(config: Make, grade: str) -> None:
    """Gyros and accelerometers. At a second, the random walks of angle and velocity (the MEMS unit's biases walk too); the height of the
    instability by itself, at 1.89 of its (here short) time."""
    *white, gyro, accelerometer = SHEETS[grade]
    b = bench(config, motion.ImuEmulator, f'grade="{grade}" rate="10 Hz"', bodies=30)
    assert allan(b, 30, "rates force", 10.0, 400, [1.0]) == pytest.approx(white, rel=0.05)
    if not gyro:
        return
    quiet = f'grade="{grade}" gyro_noise="1e-15" accelerometer_noise="1e-15" instability_time="2 s" rate="10 Hz"'
    b = bench(config, motion.ImuEmulator, quiet, bodies=40)
    taus = [0.8, 3.8, 16.0]
    for floor, found in zip(
        (gyro, accelerometer), allan(b, 40, "rates force", 10.0, 800, taus).reshape(2, 3), strict=True
    ):
        assert found[1] == pytest.approx(floor, rel=0.07) and found[0] < found[1] > found[2]


def test_steps_of_an_inertial_unit(config: Make) -> None:
    """Counts of 1e-3 rad: an Allan deviation of step / (2 tau), and no angle is ever lost."""
    b = bench(config, motion.ImuEmulator, ALONE + ' gyro_step="0.001 rad" rate="25 Hz"', bodies=30)
    for row in range(30):
        b.put((0.0, 0.0, 5.0), w=(0.0123 + 0.00137 * row, 0.0, 0.0), row=row)
    assert allan(b, 30, "rates", 25.0, 500, [0.4, 2.0]) == pytest.approx([1e-3 / 0.8, 1e-3 / 4.0], rel=0.1)
    one = bench(config, motion.ImuEmulator, ALONE + ' gyro_step="0.001 rad" rate="25 Hz"')
    one.put((0.0, 0.0, 5.0), w=(0.0123, 0.0, 0.0))
    turned = 0.0
    for k in range(101):
        out = one.at(10 * k)[0]
        turned += out["rates"][0] * 0.04 if out["valid"] else 0.0
    assert turned == pytest.approx(0.0123 * 4.0, abs=0.6e-3)
    assert round(turned / 1e-3, 9) % 1.0 == 0.0


def test_axes_that_are_not_straight(config: Make) -> None:
    """Scale factors and misalignments: of the size that is given, the same for the whole life, others for each unit."""
    b = bench(
        config,
        motion.ImuEmulator,
        ALONE + ' gyro_scale="1000 ppm" accelerometer_scale="0 ppm" misalignment="0.002 rad"',
        bodies=60,
    )
    for row in range(60):
        b.put((0.0, 0.0, 5.0), w=(1.0, 0.0, 0.0), row=row)
    b.at(0)
    first, later = b.at(25)["rates"][:60].copy(), b.at(500)["rates"][:60].copy()
    assert later == pytest.approx(first, abs=1e-12)
    assert (first[:, 0] - 1.0).std() == pytest.approx(1e-3, rel=0.25)
    assert first[:, 1:].std() == pytest.approx(2e-3, rel=0.2)
    assert b.out["force"][:60, :2].std() == pytest.approx(2e-3 * 9.81, rel=0.25), "gravity leaks into the level axes"


def test_the_earth_turns_under_an_inertial_unit(config: Make) -> None:
    """At 41 deg north: 15.04 deg/h about the pole's axis, and 2 w x v of what moves."""
    world = config(
        f'<world latitude="41 deg"/><fleet><sensors><imu earth="yes" {ALONE} rate="10 Hz"/></sensors></fleet>'
    )
    b = Bench(world, motion.ImuEmulator)
    for tick in (0, 25):
        b.put((0.0, 0.0, 5.0), (0.0, 0.0, math.pi / 2), (10.0, 0.0, 0.0))  # it goes east
        out = b.at(tick)[0]
    omega = math.radians(360.0) * 366.2422 / 365.2422 / 86400.0
    north, down = omega * math.cos(math.radians(41.0)), -omega * math.sin(math.radians(41.0))
    assert out["rates"] == pytest.approx([0.0, -north, down], rel=1e-4, abs=1e-12)
    coriolis_W = 2.0 * np.cross([north, 0.0, down], [0.0, 10.0, 0.0])
    assert out["force"] == pytest.approx([coriolis_W[1], -coriolis_W[0], coriolis_W[2] - 9.81], abs=1e-7)


@pytest.mark.parametrize("mount", [(0, 0, 0), (0, 0, 45), (180, 0, 0), (5, -8, 120)])
def test_the_doppler_log_in_four_mountings(config: Make, mount: tuple[float, float, float]) -> None:
    """Down, turned by 45 deg, looking up at nothing, askew: beams, velocity at the sensor's place, altitude, lock."""
    attributes = f'noise="0" position="0.5 0.2 0.1 m" attitude="{mount[0]} {mount[1]} {mount[2]} deg"'
    b = bench(config, motion.DvlEmulator, attributes, world='<bed depth="60 m"/>')
    v, w = np.array([1.2, -0.3, 0.1]), np.array([0.05, -0.1, 0.2])
    b.put((3.0, 4.0, 20.0), (0.1, -0.05, 0.7), v, w)
    out = b.at(0)[0]
    R_BS = rotation(quaternion(*np.radians(mount)))
    expected = R_BS.T @ (v + np.cross(w, (0.5, 0.2, 0.1)))
    assert out["water"] == pytest.approx(expected, abs=1e-12)
    if mount[0] == 180:
        assert out["locked"] == 0 and np.isnan(out["bottom"]).all() and np.isnan(out["altitude"])
        return
    assert out["bottom"] == pytest.approx(expected, abs=1e-12) and out["locked"] == 4
    R = rotation(b.state["q_WB"][0])
    height = 60.0 - (b.state["p_WB_W"][0] + R @ (0.5, 0.2, 0.1))[2]
    assert out["altitude"] == pytest.approx(height, abs=1e-3)
    for k in range(4):
        azimuth = math.radians(45 + 90 * k)
        beam = np.array([0.5 * math.cos(azimuth), 0.5 * math.sin(azimuth), math.cos(math.radians(30))])
        assert out["beams"][k] == pytest.approx(beam @ expected, abs=1e-12)
        assert out["ranges"][k] == pytest.approx(height / (R @ R_BS @ beam)[2], abs=1e-3)


def test_three_beams_are_enough_and_two_are_not(config: Make) -> None:
    b = bench(config, motion.DvlEmulator, 'noise="0" beam_drop_out="0.4"', world='<bed depth="60 m"/>', bodies=60)
    for row in range(60):
        b.put((0.0, 100.0 * row, 30.0), v=(1.0, 0.5, -0.2), row=row)  # they would see each other
    out = b.at(0)[:60]
    counts = set(out["locked"].tolist())
    assert {2.0, 3.0, 4.0} <= counts
    good = out["locked"] >= 3
    assert out["bottom"][good] == pytest.approx(np.tile((1.0, 0.5, -0.2), (good.sum(), 1)), abs=1e-12)
    assert np.isnan(out["bottom"][~good]).all()
    for tick, depth, locked in (
        (1, 60.0 - 0.5 * math.cos(math.radians(30)), 0),
        (2, 60.0 - 91.0 * math.cos(math.radians(30)) + 40, 4),
    ):
        b.put((0.0, 0.0, depth))
        assert (b.at(tick)["locked"][0] == 0) == (locked == 0)


# ------------------------------------------------------------------ position and vessel


def test_gps_against_pyproj(config: Make) -> None:
    world = config(
        '<world latitude="41.18 deg" longitude="-8.70 deg"/><fleet><sensors><gps noise="0" position="0 0 -2 m"/></sensors></fleet>'
    )
    b = Bench(world, position.GpsEmulator)
    to_geodetic = pyproj.Transformer.from_pipeline(
        "+proj=pipeline +step +inv +proj=topocentric +lat_0=41.18 +lon_0=-8.70 +h_0=0 +ellps=WGS84 +step +inv +proj=cart +ellps=WGS84"
    )
    for tick, (n, e) in enumerate(((0.0, 0.0), (1500.0, -2500.0), (-9000.0, 12000.0), (1e5, 1e5))):
        b.put((n, e, 0.0), (0.0, 0.0, 0.3), (2.0, 0.0, 0.0))
        out = b.at(tick)[0]
        lon, lat, height = to_geodetic.transform(e, n, 2.0)
        assert (
            math.degrees(out["latitude"]) == pytest.approx(lat, abs=1e-11)
            or abs(math.degrees(out["latitude"]) - lat) < 1e-9
        )
        assert math.degrees(out["longitude"]) == pytest.approx(lon, abs=1e-9)
        assert (out["height"], out["sog"], out["cog"], out["valid"]) == pytest.approx((height, 2.0, 0.3, 1), abs=1e-6)
    b.put((0.0, 0.0, 2.5))
    assert b.at(4)["valid"][0] == 0, "the antenna is under water"


def test_gps_errors_are_slow_and_of_the_right_size(config: Make) -> None:
    b = bench(config, position.GpsEmulator, 'hacc="2 m" correlation="10 s"', bodies=60)
    b.state["p_WB_W"][:, 2] = -1.0
    north = []
    for k in range(400):
        north.append(b.at(250 * k)["latitude"][:60].copy())
    x = np.array(north) * 6.335e6
    assert x.std() == pytest.approx(2.0 / math.sqrt(2.0), rel=0.06)
    lag = np.mean(x[:-10] * x[10:]) / x.var()
    assert lag == pytest.approx(math.exp(-1.0), abs=0.06)


def test_the_battery_counts_energy(config: Make) -> None:
    b = bench(config, vessel.BatteryEmulator, 'noise="0" capacity="100" hotel="15" per_thrust="1"', model="vita1")
    b.drive(4.0, -9.0)
    for k in range(361):
        b.at(2500 * k)  # an hour
    power = 15.0 + 8.0 + 27.0
    out = b.out[0]
    assert out["charge"] == pytest.approx(1.0 - power / 100.0, abs=1e-9)
    volts = 22.0 + 6.8 * 0.5
    assert out["current"] == pytest.approx(power / volts) and out["voltage"] == pytest.approx(
        volts - 0.05 * power / volts
    )


def test_power_follows_the_law_of_the_thruster(config: Make) -> None:
    """Force thrusters by T^1.5, shafts by n^3: twice the thrust 2.83 times the power, twice the revolutions eight times."""
    attributes = 'noise="0" capacity="100" hotel="0" per_thrust="2" per_shaft="0.01"'
    for model, one, factor in (("vita1", 2.0 * 4.0**1.5, 2.0**1.5), ("jolner", 0.01 * 4.0**3, 8.0)):
        used = []
        for n in (4.0, 8.0, -8.0):
            b = bench(config, vessel.BatteryEmulator, attributes, model=model)
            b.drive(n)
            b.at(0)
            used.append(1.0 - b.at(250 * 60)["charge"][0])
        assert used[0] == pytest.approx(one / 60.0 / 100.0) and used[1] == pytest.approx(factor * used[0]) == used[2]


def test_the_apparent_wind(config: Make) -> None:
    b = bench(
        config,
        vessel.AnemometerEmulator,
        'noise="0" position="0 0 -10 m"',
        world='<wind speed="5 m/s" direction="0 deg"/>',
    )
    b.put((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (2.0, 0.0, 0.0))  # north, against a northerly
    assert (b.at(0)["speed"][0], b.out["angle"][0]) == pytest.approx((7.0, 0.0), abs=1e-9)
    b.put((0.0, 0.0, 0.0), (0.0, 0.0, math.pi / 2), (5.0, 0.0, 0.0))  # east: from port ahead
    assert b.at(1)["speed"][0] == pytest.approx(5.0 * math.sqrt(2.0))
    assert b.out["angle"][0] == pytest.approx(2 * math.pi - math.pi / 4)
    b.put((0.0, 0.0, 8.0))  # 2 m above the water: less wind
    assert b.at(2)["speed"][0] == pytest.approx(5.0 * (1.0 + 2.5 * math.sqrt(0.003) * math.log(0.2)))
    strong = bench(config, vessel.AnemometerEmulator, 'noise="0" position="0 0 -10 m"', world='<wind beaufort="5"/>')
    assert strong.at(0)["speed"][0] == pytest.approx(9.4)


def test_the_tide_raises_the_pressure(config: Make) -> None:
    b = bench(config, water.PressureEmulator, world='<tide amplitude="2 m" period="1 h"/>')
    b.put((0.0, 0.0, 10.0))
    assert b.at(0)["depth"][0] == pytest.approx(12.0)
    assert b.at(round(1800.0 / 0.004))["depth"][0] == pytest.approx(8.0)


def test_parts_of_the_ctd_agree_with_it(config: Make) -> None:
    loaded = config(
        "<fleet><sensors><ctd noise='0'/><conductivity noise='0'/><salinity noise='0'/><temperature noise='0'/></sensors></fleet>"
    )
    found = {}
    for of in (water.CtdEmulator, water.ConductivityEmulator, water.SalinityEmulator, water.TemperatureEmulator):
        b = Bench(loaded, of)
        b.put((3.0, 4.0, 33.0))
        found[of.sensor] = b.at(0)[0].copy()
    for part in ("conductivity", "salinity", "temperature"):
        assert found[part][part] == pytest.approx(found["ctd"][part], abs=1e-12), part


def test_other_quantities_are_measured(config: Make) -> None:
    cloud = '<gaussian peak="4" north="5 m" east="0 m" sigma_north="10 m" sigma_east="10 m"/>'
    b = bench(config, water.ScalarEmulator, world=f'<scalar name="dye" above="3 m">{cloud}</scalar>')
    b.put((15.0, 0.0, 5.0))
    assert b.at(0)["value"][0] == pytest.approx([4.0 * math.exp(-0.5), -1.0, -1.0, -1.0])
    b.put((15.0, 0.0, 2.0))
    assert b.at(1)["value"][0, 0] == -1.0


def test_propellers_are_counted_by_pulses(config: Make) -> None:
    b = bench(config, vessel.RpmEmulator, 'pulses="16" rate="10 Hz"', period=0, model="jolner")  # two shafts
    b.drive(12.3, -7.7, 5.0)
    values = []
    for k in range(400):
        values.append(b.at(25 * k)["rpm"][0].copy())
    r = np.array(values)
    assert np.isnan(r[:, 2:]).all(), "it has no more thrusters"
    one = 60.0 / (16 * 0.1)
    assert np.allclose(r[:, :2] / one, np.round(r[:, :2] / one)), "whole pulses"
    assert r[:, 0].mean() == pytest.approx(738.0, abs=3.0) and r[:, 1].mean() == pytest.approx(-462.0, abs=3.0)
    force = bench(config, vessel.RpmEmulator, model="vita1")
    force.drive(3.0, 3.0)
    assert np.isnan(force.at(0)["rpm"][0]).all(), "thrusters that are commanded a force have no shaft to count"


def test_a_leak_in_named_compartments(config: Make) -> None:
    b = bench(config, vessel.LeakEmulator, 'compartments="bow stern"')
    assert (b.at(0)["wet"][0] == 0).all()
    b.fault(0, "wet", "stern")
    assert b.at(1)["wet"][0].tolist() == [0, 1, 0, 0]
    with pytest.raises(ConfigError, match="1 to 4 different names"):
        bench(config, vessel.LeakEmulator, 'compartments="bow bow"')


def test_the_doppler_log_loses_the_bottom_on_command(config: Make) -> None:
    b = bench(config, motion.DvlEmulator, world='<bed depth="60 m"/>')
    b.put((0.0, 0.0, 30.0), v=(1.0, 0.5, -0.2))
    assert b.at(0)["locked"][0] == 4
    b.fault(0, "unlocked")
    out = b.at(1)[0]
    assert out["locked"] == 0 and np.isnan(out["bottom"]).all() and np.isnan(out["altitude"]) and out["valid"] == 1
    assert out["water"] == pytest.approx((1.0, 0.5, -0.2)), "the water track goes on"


def test_sensors_in_the_water_and_in_the_air(config: Make) -> None:
    b = bench(config, water.PressureEmulator, 'noise="0" position="0 0 0.5 m"')
    b.put((0.0, 0.0, 9.5))
    out = b.at(0)[0]
    assert out["depth"] == pytest.approx(10.0) and out["pressure"] == pytest.approx(10.1325 + 10.05547)
    b.put((0.0, 0.0, -1.0))
    assert b.at(1)["valid"][0] == 0
    s = bench(config, water.SoundVelocityEmulator, 'noise="0"')
    s.put((0.0, 0.0, 5.0))
    assert 1490.0 < s.at(0)["speed"][0] < 1520.0
