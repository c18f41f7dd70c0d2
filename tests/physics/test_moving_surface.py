"""Sound reflected by the moving surface, against Fermat's principle solved on its own and against the theory of rough surfaces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from tests.conftest import wavesim
from tests.physics.sea import PLAIN, node, run, sea
from tests.physics.test_waves import regular
from wavesim_sdk.arrays import Floats
from wavesim_server import Simulation
from wavesim_server.environment import weather
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import sound, surface
from wavesim_world.ocean.sound_warnings import sound_warnings

Make = Callable[..., LoadedConfig]
C, DEPTH = 1500.0, 60.0
#: heard on every path, however weak
WEAK = PLAIN.replace("10 kHz", "1 Hz").replace("60 dB", "-300 dB")
SWELL = regular(0.4, 2.0 * math.pi / 5.0, 'direction="20 deg"', depth=DEPTH)
WIND_SEA = '<waves height="1 m" peak="0.9 rad/s" direction="70 deg" spreading="8"/><bed depth="9000 m"/>'


def world(
    config: Make,
    surface_: str,
    sea_: str,
    tick: str = "20 ms",
    order: int = 3,
    extra: str = "",
    transducer: Any = WEAK,
    bounce: str = "",
    seed: int = 1,
) -> Simulation:
    extra = f'absorption="0 dB/m" {extra}'
    inner = f'<multipath order="{order}" surface="{surface_}" {bounce}/>'
    return sea(config, tick, transducer, world=sea_, noise="-300 dB", extra=extra, inner=inner, seed=seed)


def received(sim: Simulation, row: int, seconds: float) -> Any:
    _, found = run(sim, seconds)
    return np.sort(found[found["receiver"] == row], order="arrival_ns")


# ------------------------------------------------------------------ Fermat's principle


class Water:
    """Travel times over a sea of waves, by Fermat's principle: a path is stationary in the points of its reflections.

    Its legs are straight, or arcs in closed form if the sound speed has a gradient. ``path`` is a word of s and b: the
    boundaries that the sound meets.
    """

    def __init__(self, waves: Floats, gradient: tuple[float, ...] = (0.0, 0.0, 0.0), bottom: float = DEPTH) -> None:
        self.waves, self.gradient, self.bottom = waves, np.array(gradient), bottom

    def height(self, time: float, x: float, y: float) -> float:
        return float(surface.elevation(self.waves, time, x, y))

    def leg(self, a: Floats, b: Floats) -> float:
        far, g = math.sqrt(float(((b - a) ** 2).sum())), math.sqrt(float((self.gradient**2).sum()))
        if g == 0.0:
            return far / C
        ca, cb = C + float((self.gradient * a).sum()), C + float((self.gradient * b).sum())
        return 2.0 / g * math.asinh(0.5 * g * far / math.sqrt(ca * cb))

    def travel(self, path: str, a: Floats, b: Floats, start: float, corners: Floats) -> float:
        here, time = a, start
        for kind, (x, y) in zip(path, corners.reshape(-1, 2), strict=True):
            z, then = (self.bottom if kind == "b" else 0.0), time
            for _ in range(3):
                then = time + self.leg(here, np.array([x, y, z]))
                if kind == "s":
                    z = -self.height(then, x, y)
            here, time = np.array([x, y, z]), then
        return time + self.leg(here, b) - start

    def stationary(self, path: str, a: Floats, b: Floats, start: float) -> float:
        """Travel time of the path, from the corners over a flat surface."""
        ups = [a[2] if path[0] == "s" else self.bottom - a[2]]
        ups += [self.bottom] * (len(path) - 1)
        ups += [b[2] if path[-1] == "s" else self.bottom - b[2]]
        z = np.cumsum(ups)
        corners = (a[:2] + (b - a)[:2] * (z[:-1] / z[-1])[:, None]).ravel()

        def slope(q: Floats) -> Floats:
            h = 1e-3 * np.eye(len(q))
            return np.array([self.travel(path, a, b, start, q + d) - self.travel(path, a, b, start, q - d) for d in h])

        found = optimize.root(lambda q: 1e6 * slope(q), corners, tol=1e-10, options={"eps": 1e-6})
        return self.travel(path, a, b, start, found.x)

    def arrival(self, path: str, start: float, source: Sequence[Any], receiver: Sequence[Any]) -> float:
        """Time at which a signal meets a receiver; both have a position at time 0 and a velocity."""
        a, time = source[0] + start * source[1], start
        for _ in range(4):
            time = start + self.stationary(path, a, receiver[0] + time * receiver[1], start)
        return time


def name_of(r: Any, first_up: bool) -> str:
    n = int(r["surface"]) + int(r["bottom"])
    return ("sb" * 4 if first_up else "bs" * 4)[:n]


def test_the_mirror_path_over_one_wave(config: Make) -> None:
    """Delays to 1 us and Doppler shifts of all paths with up to three bounces, between moving nodes."""
    sim, frequency = world(config, "moving", SWELL), 300.0
    a, b = node(sim, "a", 0, 0.0, 2.0, z=20.0), node(sim, "b", 0, 120.0, -1.5, y=10.0, z=35.0)
    source, velocity = (np.array([0.0, 0.0, 20.0]), np.array([2.0, 0.0, 0.0])), np.array([-1.5, 0.0, 0.0])
    waves = sim.weather_model.weather.sea
    assert waves[0, surface.S_AMPLITUDE] == pytest.approx(0.2) and len(waves) == 1
    water, still = Water(waves), Water(np.zeros((0, surface.SEA_COLUMNS)))
    sim.ping(a, frequency)
    found = received(sim, b, 0.6)
    kinds = [(int(r["surface"]), int(r["bottom"])) for r in found]
    assert sorted(kinds) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 1), (1, 2), (2, 1)]
    moved = 0.0
    for r in found[1:]:
        # the waves also move the nodes, by micrometres: the receiver is where it was at the arrival
        receiver = r["position_W"] - r["arrival_ns"] * 1e-9 * velocity, velocity
        both = {name_of(r, True), name_of(r, False)}
        times = {w: water.arrival(w, 0.0, source, receiver) for w in both if w.count("s") == r["surface"]}
        path = min(times, key=lambda w: abs(times[w] - r["arrival_ns"] * 1e-9))
        assert r["arrival_ns"] * 1e-9 == pytest.approx(times[path], abs=2e-9), path
        ends = [water.arrival(path, start, source, receiver) for start in (-1e-3, 1e-3)]
        doppler = frequency * (2e-3 / (ends[1] - ends[0]) - 1.0)
        assert r["doppler"] == pytest.approx(doppler, abs=1e-4), path
        moved = max(moved, abs(times[path] - still.arrival(path, 0.0, source, receiver)))
    assert moved > 100e-6, "the waves change the times by far more than the tolerance"


# ------------------------------------------------------------------ rays through a profile


def field(gradient: tuple[float, ...]) -> sound.SoundSpeedVolume:
    """The sound speed on a grid; it is linear between its points."""
    x, z = np.arange(-600.0, 601.0, 50.0), np.linspace(0.0, DEPTH, 7)
    c = C + gradient[0] * x[:, None] + gradient[1] * x + gradient[2] * z[:, None, None]
    return sound.SoundSpeedVolume(c[None], z, np.zeros(1), (-600.0, -600.0), (50.0, 50.0))


@pytest.mark.parametrize(
    ("gradient", "grid"),
    [((0.0, 0.0, 0.05), False), ((0.0, 0.0, -0.2), False), ((0.0, 0.0, 0.05), True), ((0.004, -0.01, 0.05), True)],
)
def test_rays_over_one_wave(
    config: Make, monkeypatch: pytest.MonkeyPatch, gradient: tuple[float, ...], grid: bool
) -> None:
    """Delays in water with a gradient, against Fermat's principle with legs in closed form: 1 us, although the medium
    takes the neighbourhood of a reflection as straight."""
    if grid:
        monkeypatch.setattr(sound, "sound_speed_volume", lambda *_: field(gradient))
    sim = world(config, "moving", SWELL, extra=f'profile="gradient" gradient="{gradient[2]}"', order=2)
    a, b = node(sim, "a", 0, 0.0, z=20.0), node(sim, "b", 0, 120.0, y=10.0, z=35.0)
    waves = sim.weather_model.weather.sea
    water, still = Water(waves, gradient), Water(np.zeros((0, surface.SEA_COLUMNS)), gradient)
    sim.ping(a, 300.0)
    found = [r for r in received(sim, b, 0.6) if r["surface"]]
    assert sorted((int(r["surface"]), int(r["bottom"])) for r in found) == [(1, 0), (1, 1), (1, 1)]
    source, moved = np.array([0.0, 0.0, 20.0]), 0.0
    for r in found:
        both = {name_of(r, True), name_of(r, False)}
        times = {w: water.stationary(w, source, r["position_W"], 0.0) for w in both}
        path = min(times, key=lambda w: abs(times[w] - r["arrival_ns"] * 1e-9))
        assert r["arrival_ns"] * 1e-9 == pytest.approx(times[path], abs=1e-6), path
        moved = max(moved, abs(times[path] - still.stationary(path, source, r["position_W"], 0.0)))
    assert moved > 50e-6


SLOPE = SWELL.replace('<bed depth="60.0 m"/>', '<bed depth="60.0 m" slope_north="0.05" slope_east="0.02"/>')


def test_rays_and_images_agree_over_a_slope(config: Make, tmp_path: Path) -> None:
    """The same times, levels and Doppler shifts from images and, in water of uniform sound speed too, from rays."""
    (tmp_path / "c.txt").write_text("0 1500\n100 1500\n")
    both = []
    for extra in ("", f'profile="file" file="{tmp_path / "c.txt"}"'):
        sim = world(config, "moving", SLOPE, extra=extra, order=2)
        a, b = node(sim, "a", 0, 0.0, 2.0, z=20.0), node(sim, "b", 0, 120.0, -1.5, y=10.0, z=35.0)
        sim.ping(a, 300.0)
        both.append(received(sim, b, 0.6))
    images, rays = both
    assert len(images) == len(rays) == 5
    for i, r in zip(images, rays, strict=True):
        assert (i["surface"], i["bottom"]) == (r["surface"], r["bottom"])
        assert abs(i["arrival_ns"] - r["arrival_ns"]) <= 2
        assert i["level"] == pytest.approx(r["level"], abs=0.02)
        assert i["doppler"] == pytest.approx(r["doppler"], abs=0.02), "a ray keeps the directions of its flat path"


# ------------------------------------------------------------------ rough surfaces


#: source and receiver 200 m apart, 10 deg below their point of reflection
ROUGH_DEPTH = 100.0 * math.tan(math.radians(10.0))


def bounces(
    config: Make, frequency: float, count: int, seed: int = 1, sum_: str = "first", waves: str = WIND_SEA
) -> tuple[Simulation, Any, Any]:
    """(simulation, receptions over the surface, direct receptions) of ``count`` pings in 300 s."""
    pinger = f'<pinger frequency="{frequency} Hz" period="{300.0 / count} s"/>'
    transducer = WEAK.replace("10 ms", "1 ms")
    inner = '<multipath order="1" surface="moving"/>'
    sim = sea(
        config, "100 ms", (transducer, pinger), transducer, world=waves, noise="-300 dB", seed=seed,
        extra=f'absorption="0 dB/m" sum="{sum_}"', inner=inner,
    )  # fmt: skip
    a, b = node(sim, "a", 0, 0.0, z=ROUGH_DEPTH), node(sim, "b", 1, 200.0, z=ROUGH_DEPTH)
    sim.weather_model.weather.exposure[[a, b], weather.E_FLAGS] = weather.HAS_FILTER  # the waves do not move them
    found = received(sim, b, 300.0)
    return sim, found[found["surface"] == 1], found[found["surface"] == 0]


LENGTH = math.hypot(200.0, 2.0 * ROUGH_DEPTH)
SINE = 2.0 * ROUGH_DEPTH / LENGTH
LEVEL = 200.0 - 20.0 * math.log10(LENGTH)


def carrier(rayleigh: float) -> float:
    """Frequency at which the path over the surface has a Rayleigh parameter, in Hs 1 m."""
    return rayleigh * C / (4.0 * math.pi * 0.25 * SINE)


def delays(over: Any) -> Floats:
    """Delay in s of each bounce relative to a flat surface."""
    return np.asarray((over["arrival_ns"] - over["emission_ns"]) * 1e-9 - LENGTH / C)


@pytest.mark.compiled
def test_doppler_spread_of_a_rough_surface(config: Make) -> None:
    """25 kHz at 10 deg in Hs 1 m, for 300 s: rms Doppler 2 f sin s_w / c to 10 %; the rms delay is 2 sin s / c."""
    sim, over, direct = bounces(config, 25e3, 1000)
    waves = sim.weather_model.weather.sea
    rise = math.sqrt(0.5 * np.sum((waves[:, surface.S_AMPLITUDE] * waves[:, surface.S_FREQUENCY]) ** 2))
    n = min(len(over), len(direct))
    shift = over["doppler"][:n] - direct["doppler"][:n]
    assert n > 990
    assert np.std(shift) == pytest.approx(2.0 * 25e3 * SINE * rise / C, rel=0.1)
    assert np.std(delays(over)) == pytest.approx(2.0 * SINE * 0.25 / C, rel=0.1)


@pytest.mark.compiled
@pytest.mark.parametrize("rayleigh", [0.3, 0.45, 0.9, 1.3, 2.5, 10.0])
def test_energy_is_kept(config: Make, rayleigh: float) -> None:
    """The mean power of 4000 bounces is that of a flat surface, to 0.2 dB, however rough the surface is."""
    _, over, _ = bounces(config, carrier(rayleigh), 4000, seed=5)
    power = np.mean(10.0 ** (0.1 * (over["level"] - LEVEL)))
    mean = abs(np.mean(np.exp(-2j * np.pi * carrier(rayleigh) * delays(over))))
    assert 10.0 * math.log10(power) == pytest.approx(0.0, abs=0.2)
    if rayleigh < 0.5:
        assert np.ptp(over["level"]) < 0.02, "a smooth surface only moves the sound"
        assert -20.0 * math.log10(mean) == pytest.approx(8.686 * 0.5 * rayleigh**2, abs=0.1)


# ------------------------------------------------------------------ ticks, weather, snapshots


DEEP = '<waves height="1 m" peak="0.9 rad/s" direction="70 deg" components="20"/><bed depth="3000 m"/>'
COLUMNS = ["source", "receiver", "surface", "bottom", "outcome", "arrival_ns", "level", "doppler", "emission_ns"]


def exchange(config: Make, surface_: str, tick: str, waves: str = DEEP, change: bool = True, extra: str = "") -> Any:
    """Receptions of signals of three frequencies between three nodes, far below the waves; the sea changes in between."""
    sim = world(config, surface_, waves, tick, 2, extra, WEAK + ' query="25 kHz" reply="26 kHz" turn_around="80 ms"')
    rows = [node(sim, n, 0, 700.0 * k, 3.0 - 2.0 * k, y=30.0 * k, z=950.0 + 40.0 * k) for k, n in enumerate("abc")]
    for k, frequency in enumerate((150.0, 400.0, 25e3)):
        sim.ping(rows[0], frequency, at=100_000_000 + 300_000_000 * k)
    found = [run(sim, 1.2)[1]]
    if change:  # while signals travel up to the surface and down from it
        sim.set_weather(wave_height=2.5, wave_direction=0.3)
    found.append(run(sim, 4.8)[1])
    return np.sort(np.concatenate(found), order=["receiver", "arrival_ns"])


def same_bits(one: Any, other: Any) -> bool:
    return all(one[name].tobytes() == other[name].tobytes() for name in COLUMNS)


@pytest.mark.compiled
@pytest.mark.parametrize("extra", ["", 'profile="gradient" gradient="0.02"'], ids=["straight", "rays"])
def test_times_do_not_depend_on_the_tick(config: Make, extra: str) -> None:
    runs = [exchange(config, "moving", tick, extra=extra) for tick in ("1 ms", "4 ms", "20 ms")]
    assert len(runs[0]) >= 30 and np.sum(runs[0]["surface"]) > 20
    for other in runs[1:]:
        for name in COLUMNS:
            if name in ("level", "doppler"):
                assert np.allclose(other[name], runs[0][name], rtol=0.0, atol=0.01), name
            else:
                assert np.array_equal(other[name], runs[0][name]), name
    again = exchange(config, "moving", "20 ms", extra=extra)
    assert same_bits(again, runs[2]), "the seed alone chooses the parts"


@pytest.mark.parametrize("extra", ["", 'profile="gradient" gradient="0.02"'], ids=["straight", "rays"])
def test_a_moving_surface_without_waves_is_flat(config: Make, extra: str) -> None:
    flat, moving = (exchange(config, s, "100 ms", '<bed depth="3000 m"/>', False, extra) for s in ("flat", "moving"))
    assert len(flat) == len(moving) > 20 and same_bits(flat, moving)


def test_the_present_sea_reflects(config: Make) -> None:
    """A command changes the sea while a signal is on its way: what was reflected before has met the sea of before."""
    arrivals = []
    for change in (0.0, 0.1, 0.21):  # the sound reaches the surface at 0.20 s, and the receiver at 0.22 s
        sim = world(config, "moving", SWELL.replace("60.0 m", "3000 m"), "10 ms", 1, 'max_range="1 km"')
        a, b = node(sim, "a", 0, 0.0, z=300.0), node(sim, "b", 0, 90.0, z=30.0)
        sim.ping(a, 200.0)
        parts = [run(sim, change)[1]]
        sim.set_weather(wave_height=0.0)
        assert len(sim.channel.medium.sea_periods) == (1 if change == 0.0 else 2)
        parts.append(run(sim, 0.4)[1])
        found = np.concatenate(parts)
        arrivals.append(int(found[(found["receiver"] == b) & (found["surface"] == 1)]["arrival_ns"][0]))
        sim.set_weather(wave_height=0.3)
        assert len(sim.channel.medium.sea_periods) == (2 if change == 0.0 else 3)
        run(sim, 1.0)
        sim.set_weather(wave_height=0.0)
        assert len(sim.channel.medium.sea_periods) == 1, "a sea that no signal can meet any more is forgotten"
    flat = math.hypot(90.0, 330.0) / C * 1e9
    assert arrivals[:2] == pytest.approx([flat, flat], abs=20.0)
    assert abs(arrivals[2] - flat) > 20e3


@pytest.mark.parametrize("extra", ["", 'profile="gradient" gradient="1e-9"'], ids=["straight", "rays"])
def test_the_tide_moves_the_surface(config: Make, extra: str) -> None:
    """Low water, 2 m below the mean: paths over the surface are shorter by that of the image in it."""
    low = '<bed depth="3000 m"/><tide amplitude="2 m" phase="180 deg"/>'
    sim = world(config, "moving", low, "10 ms", 1, extra)
    a, b = node(sim, "a", 0, 0.0, z=30.0), node(sim, "b", 0, 90.0, z=50.0)
    sim.ping(a, 25e3)
    found = received(sim, b, 0.2)
    arrival = int(found[found["surface"] == 1]["arrival_ns"][0])
    assert arrival == pytest.approx(math.hypot(90.0, 28.0 + 48.0) / C * 1e9, abs=20.0)


def test_check_warns_of_a_surface_that_cannot_move(config: Make) -> None:
    def said(acoustics: str, world_: str = "") -> list[str]:
        return sound_warnings(config(f"<world>{world_}</world><acoustics>{acoustics}</acoustics>"))

    waves = '<waves height="1 m" peak="0.9 rad/s"/>'
    assert said('<multipath surface="moving"/>', waves) == said('<multipath surface="rough"/>') == []
    assert said('<multipath surface="moving"/>', '<tide amplitude="1 m"/>') == []
    (flat,) = said('<multipath surface="moving"/>')
    assert "the sea is flat" in flat and "<waves" in flat
    (none,) = said('<multipath order="0" surface="moving"/>', waves)
    assert "no echoes" in none
    (twice,) = said('<multipath surface="moving" surface_loss="1 dB"/>', waves)
    assert "surface_loss" in twice


def test_the_command_check_prints_the_warning(config: Make) -> None:
    done = wavesim("check", config('<acoustics><multipath surface="moving"/></acoustics>').path)
    assert done.returncode == 0 and "the sea is flat" in done.stderr


def test_a_snapshot_contains_the_sea_that_signals_in_flight_meet(config: Make) -> None:
    sim = world(config, "moving", SWELL, "10 ms")
    a, b = node(sim, "a", 0, 0.0, z=20.0), node(sim, "b", 0, 300.0, z=30.0)
    sim.ping(a, 150.0)
    run(sim, 0.08)
    sim.set_weather(wave_height=1.0)
    snapshot = sim.snapshot()
    first = received(sim, b, 0.4)
    sim.set_weather(wave_height=0.0)
    run(sim, 0.1)
    sim.restore(snapshot)
    again = received(sim, b, 0.4)
    assert np.sum(first["surface"]) > 4 and same_bits(first, again)
