"""Sound in the sea: published numbers, profiles and echoes, levels, Doppler, collisions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import ANSWERS, PLAIN, find_eigenrays, heard, node, outcomes, records, run, sea
from wavesim_sdk.tables import Outcome
from wavesim_server.acoustics import image_paths, medium_setup
from wavesim_server.dynamics import block_rows as B
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
TICKS = ("1 ms", "4 ms", "100 ms")
MODEM = '<modem address="{a}" frequency="25 kHz" bit_rate="1000" preamble="20 ms" payload="32"/>'


# ------------------------------------------------------------------ paths and times


@pytest.mark.parametrize("tick", TICKS)
@pytest.mark.parametrize(
    ("x", "z0", "z1", "seconds", "metres"),
    [(1000.0, 10.0, 100.0, 0.668965643, 1004.046586), (5000.0, 50.0, 50.0, 3.331162199, 5000.591730)],
)
@pytest.mark.parametrize("mode", ["gradient", "file"])
def test_a_linear_gradient(
    config: Make, tmp_path: Any, mode: str, tick: str, x: float, z0: float, z1: float, seconds: float, metres: float
) -> None:
    """In closed form, and by eigenrays of a profile of 30 layers that is the same."""
    extra = 'profile="gradient" gradient="0.016"'
    if mode == "file":
        (tmp_path / "profile.txt").write_text("".join(f"{z} {1500 + 0.016 * z}\n" for z in range(0, 9001, 300)))
        extra = 'profile="file" file="profile.txt"'
    sim = sea(config, tick, PLAIN, extra=extra)
    a, b = node(sim, "a", 0, 0.0, z=z0), node(sim, "b", 0, x, z=z1)
    sim.ping(a, 25e3)
    _, receptions = run(sim, seconds + 0.2)
    (got,) = heard(receptions, b)
    assert got["arrival_ns"] * 1e-9 == pytest.approx(seconds, abs=1.001e-9)
    assert got["range"] == pytest.approx(metres, abs=1e-6)
    assert got["distance"] == pytest.approx(math.hypot(x, z1 - z0), abs=1e-6)


@pytest.mark.parametrize("tick", TICKS)
@pytest.mark.parametrize("mode", ["images", "rays"])
def test_echoes_in_shallow_water(config: Make, tmp_path: Any, tick: str, mode: str) -> None:
    extra = ""
    if mode == "rays":
        (tmp_path / "flat.txt").write_text("0 1500\n40 1500\n100 1500\n")
        extra = 'profile="file" file="flat.txt"'
    sim = sea(config, tick, PLAIN, world='<bed depth="100 m"/>', extra=extra, inner='<multipath order="1"/>')
    a, b = node(sim, "a", 0, 0.0, z=20.0), node(sim, "b", 0, 1000.0, z=50.0)
    sim.ping(a, 25e3)
    _, receptions = run(sim, 1.0)
    mine = np.sort(receptions[receptions["receiver"] == b], order="arrival_ns")
    assert outcomes(mine, b) == [Outcome.HEARD, Outcome.ECHO, Outcome.ECHO]
    assert mine["range"] == pytest.approx([1000.44990, 1002.44701, 1008.41460], abs=5e-6)
    assert mine["arrival_ns"] * 1e-9 == pytest.approx(mine["range"] / 1500.0, abs=1e-9)
    assert mine[["surface", "bottom"]].tolist() == [(0, 0), (1, 0), (0, 1)]
    sine = 130.0 / 1008.41460
    loss = image_paths.bottom_loss(sine, 1.9, 1500.0 / 1650.0, 0.8)
    assert mine["level"][2] == pytest.approx(200 - 20 * math.log10(1008.41460) - 0.005 * 1008.41460 - loss, abs=1e-4)


def test_the_bottom_reflects_as_rayleigh_says() -> None:
    """Without attenuation: total reflection below the critical angle, (Z2 - Z1)/(Z2 + Z1) straight down."""
    ratio = 1500.0 / 1650.0
    critical = math.sqrt(1.0 - ratio**2)
    assert image_paths.bottom_loss(0.99 * critical, 1.9, ratio, 0.0) == pytest.approx(0.0, abs=1e-9)
    assert image_paths.bottom_loss(1.01 * critical, 1.9, ratio, 0.0) > 1.0
    z = 1.9 / ratio
    assert image_paths.bottom_loss(1.0, 1.9, ratio, 0.0) == pytest.approx(-20 * math.log10((z - 1) / (z + 1)), abs=1e-9)


@pytest.mark.compiled
def test_arrivals_with_everything_are_the_same_at_any_tick(config: Make, tmp_path: Any) -> None:
    """Moving nodes, echoes in a profile, collisions, clocks, modems and a USBL head: the same log at 1 to 100 ms."""
    (tmp_path / "p.txt").write_text("0 1520\n20 1518\n40 1500\n120 1502\n")
    head = (
        "<head>"
        + "".join(f'<hydrophone position="{p} m"/>' for p in ("0 0 0", ".1 0 0", "0 .1 0", "0 0 .1"))
        + "</head>"
    )
    talk = PLAIN.replace("60 dB", "100 dB") + ' timing_noise="10 us" outlier="0.2" drop_out="0.1"'
    for extra in ('profile="file" file="p.txt"', ""):
        logs = []
        for tick in ("1 ms", "4 ms", "20 ms", "100 ms"):
            sim = sea(
                config,
                tick,
                (ANSWERS.format(tat=15), head),
                (talk, MODEM.format(a=5) + '<clock offset="3 ms" drift="20 ppm"/>'),
                (talk, '<pinger frequency="25 kHz" period="700 ms" offset="33 ms"/>'),
                world='<bed depth="120 m"/>',
                extra=extra,
                inner='<multipath order="2"/>',
            )
            rng = np.random.default_rng(3)
            for k in range(6):
                x, v, y, z = rng.uniform(-800, 800), rng.uniform(-3, 3), rng.uniform(-800, 800), rng.uniform(5, 110)
                node(sim, f"n{k}", k % 3, x, v, y, z)
            sim.ping(0, 25e3)
            for k in range(8):
                sim.send(1, b"hello", at=k * 400_000_000 + 5_000_000)
                sim.ping(3, 25e3, at=k * 300_000_000 + 17_000_000)
            sent, receptions = run(sim, 4.0)
            logs.append((sent, np.sort(receptions, order=("arrival_ns", "id", "receiver"))))
        for sent, log in logs[1:]:
            assert sent[["id", "source", "emission_ns", "clock_ns", "kind"]].tolist() == (
                logs[0][0][["id", "source", "emission_ns", "clock_ns", "kind"]].tolist()
            )
            names = ["arrival_ns", "reported_ns", "id", "receiver", "outcome", "surface", "bottom", "query"]
            assert len(log) == len(logs[0][1]) > 150
            assert (log[names] == logs[0][1][names]).all()
            for name in ("range", "doppler", "azimuth", "elevation"):
                assert np.allclose(log[name], logs[0][1][name], rtol=0, atol=2e-6, equal_nan=True), name
            # a tube is a derivative: where neighbouring rays cross it magnifies the micrometres to which a ray is found
            assert np.allclose(log["level"], logs[0][1]["level"], rtol=0, atol=1e-3), "level"
        assert {Outcome.HEARD, Outcome.COLLISION, Outcome.ECHO, Outcome.DROPPED} <= {
            Outcome(o) for o in logs[0][1]["outcome"]
        }


def test_a_turning_receiver_with_a_lever_arm(config: Make) -> None:
    """The transducer moves on a cubic inside the tick: 1 ns at 20 ms and 50 ns at 100 ms while it swings about."""
    for tick, limit in (("4 ms", 2e-9), ("20 ms", 3e-9), ("100 ms", 6e-8)):
        sim = sea(config, tick, PLAIN, PLAIN + ' position="2 0 0 m"')
        a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 700.0)
        sim.set_pose(b, velocity=(0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        sim.ping(a, 25e3)
        _, receptions = run(sim, 1.0)

        def place(t: float) -> Any:
            return np.array([700.0 + 2.0 * math.cos(t), 2.0 * math.sin(t), 0.0])

        t = 0.5
        for _ in range(60):
            t = float(np.linalg.norm(place(t)) / 1500.0)
        assert abs(heard(receptions, b)["arrival_ns"][0] * 1e-9 - t) < limit


@pytest.mark.parametrize("profile", ["munk", "steps", "duct"])
def test_eigenrays_against_integrated_ray_equations(config: Make, profile: str) -> None:
    from wavesim_server.acoustics import rays
    from wavesim_server.acoustics.types import SoundSpeedProfile
    from wavesim_world.ocean.sound import munk

    z, c = {
        "munk": (zm := np.linspace(0, 5000, 81), munk(zm)),
        "steps": (np.array([0.0, 30.0, 50.0, 200.0]), np.array([1520.0, 1519.0, 1495.0, 1497.0])),
        "duct": (np.array([0.0, 60.0, 200.0]), np.array([1500.0, 1501.0, 1490.0])),
    }[profile]
    source, receiver, x = {"munk": (1000.0, 900.0, 40e3), "steps": (25.0, 120.0, 3e3), "duct": (20.0, 40.0, 4e3)}[
        profile
    ]
    link, out, none = (
        rays.make_link(SoundSpeedProfile(z, c), source, receiver, x),
        records(rays.RAY, 1),
        np.zeros((0, 2)),
    )
    found = find_eigenrays(link, 2)
    assert len(found) >= 3
    for theta, down, reversals, seconds, *_ in found.tolist():
        end, depth, time, length = integrate(
            z, c, source, theta * (1 if down else -1), x, 0.5 if profile != "munk" else 5.0
        )
        assert depth == pytest.approx(receiver, abs=0.02 if profile != "munk" else 0.5), (theta, down, reversals)
        # the ODE's miss in depth, corrected along the front, leaves its travel time
        assert time == pytest.approx(seconds, abs=2e-6 if profile != "munk" else 1e-4)
        assert rays.trace_ray(link, theta, bool(down), reversals, none, out[0], True)
        assert length == pytest.approx(out[0].length, abs=0.02 if profile != "munk" else 0.5)
        assert end == x


def integrate(
    z: Any, c: Any, depth: float, angle: float, distance: float, step: float
) -> tuple[float, float, float, float]:
    """The ray equations dx/ds = cos a, dz/ds = sin a, da/ds = -(cos a / c) dc/dz, dt/ds = 1/c by RK4, mirrored at the
    boundaries; steps end at the knots of the profile. Returns (x, z, t, s) at the distance."""

    def slope(y: Any) -> Any:
        k = min(max(int(np.searchsorted(z, probe, side="right")) - 1, 0), len(z) - 2)
        g = (c[k + 1] - c[k]) / (z[k + 1] - z[k])
        speed = c[k] + g * (y[1] - z[k])
        return np.array([math.cos(y[2]), math.sin(y[2]), -math.cos(y[2]) / speed * g, 1.0 / speed])

    y, s = np.array([0.0, depth, angle, 0.0]), 0.0
    while y[0] < distance:
        h = min(step, (distance - y[0]) / max(math.cos(y[2]), 1e-3))
        down = y[2] > 0.0
        inside = z[z > y[1] + 1e-9] if down else z[z < y[1] - 1e-9]
        edge = (inside[0] if down else inside[-1]) if len(inside) else math.inf
        if abs(math.sin(y[2])) > 1e-9 and edge != math.inf:
            h = min(h, abs(edge - y[1]) / abs(math.sin(y[2])) + 1e-12)
        probe = y[1] + math.copysign(1e-9, y[2])
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        s += h
        if (y[1] <= z[0] + 1e-9 and y[2] < 0.0) or (y[1] >= z[-1] - 1e-9 and y[2] > 0.0):
            y[2] = -y[2]
        if distance - y[0] < 1e-9:
            break
    return distance, float(y[1]), float(y[3]), s


def test_no_ray_leads_into_the_shadow(config: Make, tmp_path: Any) -> None:
    """Below a layer in which sound bends up, far receivers hear nothing; near ones do."""
    (tmp_path / "p.txt").write_text("0 1530\n100 1480\n")
    for x, expected in ((300.0, Outcome.HEARD), (8000.0, Outcome.SHADOW)):
        sim = sea(config, "20 ms", PLAIN, world='<bed depth="100 m"/>', extra='profile="file" file="p.txt"')
        a, b = node(sim, "a", 0, 0.0, z=5.0), node(sim, "b", 0, x, z=5.0)
        sim.ping(a, 25e3)
        _, receptions = run(sim, x / 1500.0 + 0.5)
        assert outcomes(receptions, b) == [expected]


def test_a_moving_receiver_in_a_profile(config: Make, tmp_path: Any) -> None:
    """In a gradient the closed form at the place of arrival must give the time of arrival."""
    (tmp_path / "p.txt").write_text("".join(f"{z} {1500 + 0.05 * z}\n" for z in range(0, 1001, 100)))
    times = []
    for extra in ('profile="gradient" gradient="0.05"', 'profile="file" file="p.txt"'):
        for tick in ("4 ms", "100 ms"):
            sim = sea(config, tick, PLAIN, world='<bed depth="1000 m"/>', extra=extra)
            a, b = node(sim, "a", 0, 0.0, z=100.0), node(sim, "b", 0, 900.0, 3.0, 50.0, 200.0)
            sim.ping(a, 25e3)
            _, receptions = run(sim, 1.0)
            (got,) = heard(receptions, b)
            t = got["arrival_ns"] * 1e-9
            d = math.hypot(900.0 + 3.0 * t, 50.0, 100.0)
            c1, c2 = 1505.0, 1510.0
            assert t == pytest.approx(2 / 0.05 * math.asinh(0.05 * d / (2 * math.sqrt(c1 * c2))), abs=1.5e-9)
            times.append(int(got["arrival_ns"]))
    assert max(times) - min(times) <= 1


# ------------------------------------------------------------------ level, frequency, detection


@pytest.mark.parametrize(("va", "vb", "frequency"), [(0.0, -2.0, 24032.0), (2.0, 0.0, 24032.0427)])
@pytest.mark.parametrize("tick", TICKS)
def test_doppler(config: Make, tick: str, va: float, vb: float, frequency: float) -> None:
    sim = sea(config, tick, PLAIN)
    a, b = node(sim, "a", 0, 0.0, va), node(sim, "b", 0, 1000.0, vb)
    sim.ping(a, 24e3)
    _, receptions = run(sim, 1.0)
    (got,) = heard(receptions, b)
    assert 24e3 + got["doppler"] == pytest.approx(frequency, abs=5e-5)
    assert got["heard_frequency"] == 24e3 + got["doppler"]


@pytest.mark.parametrize("tick", TICKS)
def test_two_way_doppler(config: Make, tick: str) -> None:
    """The reply leaves on the frequency that was heard, to the hertz of the reply's own: closing 2 m/s twice."""
    sim = sea(config, tick, PLAIN)
    a, b = node(sim, "a", 0, 0.0, 2.0), node(sim, "b", 0, 1000.0)
    sim.ping(a, 24e3)
    _, receptions = run(sim, 1.0)
    (out,) = heard(receptions, b)
    sim.ping(b, float(out["heard_frequency"]))  # an echo repeater
    _, receptions = run(sim, 1.0)
    (back,) = heard(receptions, a)
    assert back["heard_frequency"] == pytest.approx(24064.0854, abs=5e-5)


def test_detection_by_signal_to_noise_ratio(config: Make) -> None:
    """Noise in band by Wenz and Coates, 10 log10 B, and the body's own; 0.01 dB decide."""
    from wavesim_world.ocean import sound

    band, level, x = 2000.0, 180.0, 1000.0
    ambient = sound.ambient_noise(25e3, 0.5, 5.0) + 10 * math.log10(band)
    own = 45.0 + 10 * math.log10(band) + 3.0 * 2.0
    for self_noise, noise in (("0 dB", ambient), ("45 dB", 10 * math.log10(10 ** (ambient / 10) + 10 ** (own / 10)))):
        snr = level - 65.0 - noise
        for margin, expected in ((-0.01, Outcome.HEARD), (0.01, Outcome.BELOW_THRESHOLD)):
            quiet = PLAIN + f' bandwidth="{band} Hz"'
            ear = quiet + f' detection="snr" snr="{snr + margin} dB" self_noise="{self_noise}" self_noise_slope="3"'
            world = '<wind speed="5 m/s"/><bed depth="9000 m"/>'
            sim = sea(config, "20 ms", quiet, ear, extra='noise_model="wenz"', world=world)
            # the receiver passes the mark at 2 m/s sideways at the time of arrival
            a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, x)
            sim.fleet.body(b)[B.NU + 1] = 2.0 if self_noise != "0 dB" else 0.0
            sim.fleet.body(b)[B.PY] = -2.0 * x / 1500.0 if self_noise != "0 dB" else 0.0
            sim.ping(a, 25e3, level)
            _, receptions = run(sim, 1.0)
            assert outcomes(receptions, b) == [expected]
            (got,) = receptions[receptions["receiver"] == b]
            assert got["noise"] == pytest.approx(noise, abs=1e-3)


def test_a_weak_signal_under_the_noise_can_be_heard_by_its_code(config: Make) -> None:
    sim = sea(config, "20 ms", PLAIN, PLAIN + ' detection="snr" snr="-12 dB"', noise="80 dB")
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 1000.0)
    sim.ping(a, 25e3, 65.0 + 80.0 - 11.0)
    _, receptions = run(sim, 1.0)
    assert outcomes(receptions, b) == [Outcome.HEARD]


def test_beam_patterns(config: Make) -> None:
    from wavesim_world.config.acoustics import BeamPattern

    piston = medium_setup.beam_pattern(BeamPattern(width=math.radians(60.0), floor=40.0))
    assert piston[0] == 0.0 and piston[30] == pytest.approx(3.0, abs=0.02) and piston[180] == 40.0
    toroid = medium_setup.beam_pattern(BeamPattern(pattern="toroid", width=math.radians(60.0)))
    assert (
        toroid[90] == pytest.approx(0.0, abs=1e-9) and toroid[60] == pytest.approx(3.0, abs=1e-6) and toroid[0] == 40.0
    )
    # a beam to starboard of a body that heads east looks south
    beam = '<beam axis="0 1 0" pattern="table">0 0 90 10 180 30</beam>'
    levels = []
    for heading in (0.0, 90.0, 180.0, 270.0):
        sim = sea(config, "20 ms", PLAIN, (PLAIN, beam))
        a = node(sim, "a", 0, 0.0)
        b = sim.enter("b", "ghost1", (100.0, 0.0, 1000.0), (0.0, 0.0, math.radians(heading)))
        sim.ping(a, 25e3)
        _, receptions = run(sim, 0.2)
        sim.ping(b, 25e3)
        _, replies = run(sim, 0.2)
        levels.append(float(heard(receptions, b)["level"][0]))
        assert levels[-1] == pytest.approx(heard(replies, a)["level"][0], abs=1e-6), "both ways alike"
    free = 200.0 - 40.5
    # a lies to the south of b: 90 deg off the axis at heading 0, on it at heading 90 (starboard = south)
    assert levels == pytest.approx([free - 10, free, free - 10, free - 30], abs=1e-3)


def test_obstacles_and_hills_block(config: Make) -> None:
    wall = '<bed depth="200 m"/><obstacles><block position="500 0 50 m" size="2 40 40 m"/></obstacles>'
    pier = '<bed depth="200 m"/><obstacles><pier position="500 0 50 m" radius="5 m" height="60 m"/></obstacles>'
    hill = '<bed depth="200 m"><bump height="-180 m" north="500 m" east="0 m" alpha="0.01 1/m" beta="0.01 1/m"/></bed>'
    slope = '<bed depth="200 m" slope_north="-0.1"/>'
    for world, y, expected in (
        (wall, 0.0, Outcome.BLOCKED),
        (wall, 50.0, Outcome.HEARD),
        (pier, 0.0, Outcome.BLOCKED),
        (pier, 12.0, Outcome.HEARD),
        (hill, 0.0, Outcome.BLOCKED),
        (hill, 400.0, Outcome.HEARD),
        (slope, 0.0, Outcome.HEARD),
    ):
        for extra in ("", 'profile="gradient" gradient="0.001"'):
            sim = sea(config, "20 ms", PLAIN, world=world, extra=extra)
            a, b = node(sim, "a", 0, 0.0, y=y, z=50.0), node(sim, "b", 0, 1000.0, y=y, z=50.0)
            sim.ping(a, 25e3)
            _, receptions = run(sim, 1.0)
            assert outcomes(receptions, b) == [expected], (world, y, extra)
    sim = sea(config, "20 ms", PLAIN, world=wall, extra='blocking="no"')
    a, b = node(sim, "a", 0, 0.0, z=50.0), node(sim, "b", 0, 1000.0, z=50.0)
    sim.ping(a, 25e3)
    assert outcomes(run(sim, 1.0)[1], b) == [Outcome.HEARD]


def test_behind_a_wall_the_echo_is_heard_as_an_outlier(config: Make) -> None:
    wall = '<bed depth="100 m"/><obstacles><block position="50 0 50 m" size="1 20 20 m"/></obstacles>'
    sim = sea(config, "20 ms", PLAIN, world=wall, inner='<multipath order="1"/>')
    a, b = node(sim, "a", 0, 0.0, z=50.0), node(sim, "b", 0, 100.0, z=50.0)
    sim.ping(a, 25e3)
    _, receptions = run(sim, 1.0)
    mine = receptions[receptions["receiver"] == b]
    first = mine[mine["outcome"] == Outcome.HEARD]
    assert len(first) == 1 and first["range"][0] == pytest.approx(math.hypot(100.0, 100.0))
    assert first["one_way"][0] == pytest.approx(math.hypot(100.0, 100.0), abs=1e-5)
    assert (mine["outcome"] == Outcome.BLOCKED).sum() == 1


# ------------------------------------------------------------------ collisions


def two_at_once(
    config: Make, gap: float, louder: float, first: str = PLAIN, second: str = PLAIN, f2: float = 25e3
) -> Any:
    """A receiver between two senders: what becomes of both signals, the second ``gap`` s later."""
    sim = sea(config, "4 ms", first, second, PLAIN)
    a, b = node(sim, "a", 0, -500.0), node(sim, "b", 1, 500.0)
    c = node(sim, "c", 2, 0.0)
    sim.ping(a, 25e3, 180.0)
    sim.ping(b, f2, 180.0 + louder, at=round(gap * 1e9))
    _, receptions = run(sim, 1.0)
    mine = receptions[receptions["receiver"] == c]
    return [Outcome(int(mine["outcome"][mine["source"] == k][0])) for k in (a, b)]


def test_collisions_and_capture(config: Make) -> None:
    both = [Outcome.COLLISION, Outcome.COLLISION]
    fine = [Outcome.HEARD, Outcome.HEARD]
    assert two_at_once(config, 0.005, 0.0) == both
    assert two_at_once(config, 0.00999, 0.0) == both
    assert two_at_once(config, 0.01001, 0.0) == fine, "pulses of 10 ms no longer overlap"
    assert two_at_once(config, 0.005, 9.99) == both
    assert two_at_once(config, 0.005, 10.01) == [Outcome.COLLISION, Outcome.HEARD]
    assert two_at_once(config, 0.005, -10.01) == [Outcome.HEARD, Outcome.COLLISION]
    assert two_at_once(config, 0.005, 0.0, f2=25.19e3) == both, "bands of 200 Hz"
    assert two_at_once(config, 0.005, 0.0, f2=25.21e3) == fine
    assert two_at_once(config, 0.005, 0.0, PLAIN + ' code="1"', PLAIN + ' code="2"') == fine
    assert two_at_once(config, 0.005, 0.0, PLAIN + ' code="1"', PLAIN + ' code="1"') == both


def test_sending_cuts_off_what_was_being_heard(config: Make) -> None:
    sim = sea(config, "4 ms", PLAIN)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, 150.0)
    sim.ping(a, 25e3)
    sim.ping(b, 25e3, at=105_000_000)
    _, receptions = run(sim, 0.3)
    assert outcomes(receptions, b) == [Outcome.TRANSMITTING]


@pytest.mark.compiled
@pytest.mark.parametrize(("slotted", "load"), [(False, 0.25), (False, 0.5), (False, 1.0), (True, 0.5), (True, 1.0)])
def test_aloha(config: Make, slotted: bool, load: float) -> None:
    """Throughput of many senders and one receiver: S = G exp(-2G), in slots G exp(-G); within 5 %."""
    packet, senders = 0.02, 150
    quiet = PLAIN.replace("10 ms", f"{packet} s") + ' capture="200 dB"'
    sim = sea(config, "100 ms", quiet, rest='<shared vehicles="256" signals="4096"/><log faded="no"/>')
    hub = node(sim, "hub", 0, 0.0)
    for k in range(senders):
        angle = 2 * math.pi * k / senders
        node(sim, f"n{k}", 0, 300.0 * math.cos(angle), 0.0, 300.0 * math.sin(angle))
    rng = np.random.default_rng(int(load * 100) + slotted)
    duration, good = 400.0, 0
    times = np.sort(rng.uniform(0.0, duration, rng.poisson(load / packet * duration)))
    if slotted:
        times = np.ceil(times / (packet * 1.0001)) * packet * 1.0001
    done = 0
    for until in np.arange(10.0, duration + 11.0, 10.0):
        while done < len(times) and times[done] < until:
            sim.ping(1 + int(rng.integers(senders)), 25e3, at=round(times[done] * 1e9))
            done += 1
        sim.advance(100)
        _, receptions = sim.take_signals()
        good += len(heard(receptions, hub))
    expected = load * math.exp(-load if slotted else -2.0 * load)
    assert good * packet / duration == pytest.approx(expected, rel=0.05)
