"""The medium in water whose sound speed is given by a grid: ticks, layers, walls, hills, sleep, and the time of the grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import PLAIN, node, outcomes, run, sea
from tests.physics.volume_sea import volume
from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import sound
from wavesim_world.ocean.sound import SoundSpeedVolume

Make = Callable[..., LoadedConfig]
QUIET = 'absorption="0 dB/m" spreading="0 "'
SAND = '<multipath order="{order}" bottom_speed="1650 m/s" bottom_density="1.9" bottom_attenuation="0.8 "/>'
DEPTHS = np.linspace(0.0, 100.0, 9)
FLAT = '<bed depth="100 m"/>'


def tilted(n: Any, e: Any, z: Any) -> Any:
    """A thermocline that is deeper to the north."""
    return 1500.0 - 10.0 * np.tanh((z - 30.0 - 0.01 * n) / 10.0)


@pytest.fixture
def volume_sea(monkeypatch: pytest.MonkeyPatch, config: Make) -> Callable[..., Simulation]:
    def make(
        water: SoundSpeedVolume, order: int = 0, tick: str = "20 ms", world: str = FLAT, more: str = ""
    ) -> Simulation:
        with monkeypatch.context() as patch:
            patch.setattr(sound, "sound_speed_volume", lambda *_: water)
            inner = SAND.format(order=order) if order else ""
            return sea(config, tick, PLAIN, PLAIN + ' listening="asked"', world=world, extra=QUIET + more, inner=inner)

    return make


@pytest.mark.parametrize("world", [FLAT, '<bed depth="95 m" slope_north="0.01" slope_east="-0.005"/>'])
def test_the_tick_does_not_matter(volume_sea: Callable[..., Simulation], world: str) -> None:
    """Both ends move, through a front, with echoes."""
    water, logs = volume(tilted, DEPTHS, (300.0, 400.0), 3000.0), []
    for tick in ("1 ms", "4 ms", "20 ms"):
        sim = volume_sea(water, 2, tick, world)
        a, b = node(sim, "a", 0, 0.0, 1.5, z=20.0), node(sim, "b", 0, 1200.0, -2.0, y=500.0, z=50.0)
        sim.ping(a, 25e3)
        sim.ping(b, 25e3)
        _, receptions = run(sim, 1.2)
        logs.append(np.sort(receptions[["arrival_ns", "id", "receiver", "outcome", "surface", "bottom"]]))
    assert len(logs[0]) >= 8
    for log in logs[1:]:
        assert (log == logs[0]).all()


@pytest.mark.parametrize(("order", "summing"), [(0, "first"), (3, "first"), (3, "coherent")])
def test_equal_columns_are_a_profile(
    config: Make, volume_sea: Callable[..., Simulation], tmp_path: Path, order: int, summing: str
) -> None:
    """The log of a world with the same profile: times to 2 ns, levels to 0.01 dB, Doppler, and phases."""
    c = np.interp(DEPTHS, [0.0, 20.0, 45.0, 60.0, 100.0], [1520.0, 1519.0, 1500.0, 1497.0, 1499.0])
    (tmp_path / "c.txt").write_text("".join(f"{z} {v}\n" for z, v in zip(DEPTHS, c, strict=True)))
    more, logs = f' sum="{summing}"', []
    profile = f'{QUIET}{more} profile="file" file="{tmp_path / "c.txt"}"'
    inner = SAND.format(order=order) if order else ""
    water = volume(lambda n, e, z: np.interp(z, DEPTHS, c), DEPTHS, (250.0, 350.0), 2500.0)
    for sim in (
        sea(config, "20 ms", PLAIN, world=FLAT, extra=profile, inner=inner),
        volume_sea(water, order, more=more),
    ):
        a, b = node(sim, "a", 0, 0.0, 1.0, z=30.0), node(sim, "b", 0, 1700.0, -2.0, y=600.0, z=45.0)
        sim.ping(a, 15e3)
        sim.ping(b, 25e3)
        logs.append(np.sort(run(sim, 1.5)[1], order=["source", "arrival_ns"]))
    layers, grid = logs
    strong = layers["level"] > layers["level"].max() - 20.0
    assert strong.sum() >= (2 if order == 0 else 8)
    for r in layers[strong]:
        near = np.abs(grid["arrival_ns"] - r["arrival_ns"]) <= 2
        same = grid[near & (grid["source"] == r["source"])]
        assert len(same) == 1, (r, grid["arrival_ns"])
        for name in ("outcome", "surface", "bottom"):
            assert same[0][name] == r[name]
        assert same[0]["doppler"] == pytest.approx(r["doppler"], abs=1e-5)
        # the phase of a path turns by 2 pi in 40 us
        assert same[0]["level"] == pytest.approx(r["level"], abs=0.01)


def test_walls_and_hills(volume_sea: Callable[..., Simulation]) -> None:
    """A wall blocks a ray; behind a hill there is no ray."""
    water = volume(lambda n, e, z: 1500.0 + 0.001 * n + 0.01 * z, np.array([0.0, 90.0, 200.0]), (400.0, 400.0), 1200.0)
    deep = '<bed depth="200 m"/>'
    wall = deep + '<obstacles><block position="500 0 50 m" size="2 40 40 m"/></obstacles>'
    hill = '<bed depth="200 m"><bump height="-180 m" north="500 m" east="0 m" alpha="0.01 1/m" beta="0.01 1/m"/></bed>'
    for world, y, expected in (
        (wall, 0.0, Outcome.BLOCKED),
        (wall, 50.0, Outcome.HEARD),
        (hill, 0.0, Outcome.SHADOW),
        (hill, 400.0, Outcome.HEARD),
    ):
        sim = volume_sea(water, world=world)
        a, b = node(sim, "a", 0, 0.0, y=y, z=50.0), node(sim, "b", 0, 1000.0, y=y, z=50.0)
        sim.ping(a, 25e3)
        assert outcomes(run(sim, 1.0)[1], b) == [expected], (world, y)


def test_a_transponder_on_the_bed(volume_sea: Callable[..., Simulation]) -> None:
    """A body of 5 cm rests on a slope: the direct path arrives, with the same time in both directions."""
    water = volume(tilted, np.linspace(0.0, 160.0, 9), (300.0, 400.0), 2000.0)
    world = '<bed depth="80 m" slope_north="0.05" slope_east="-0.02"/>'
    sim = volume_sea(water, 1, world=world)
    a = node(sim, "a", 0, 0.0, z=20.0)
    b = node(sim, "b", 0, 600.0, y=300.0, z=80.0 + 30.0 - 6.0 - 0.05)
    sim.ping(a, 15e3)
    sim.ping(b, 25e3)
    _, receptions = run(sim, 1.0)
    first = {int(r["receiver"]): r for r in receptions[::-1] if r["bottom"] == r["surface"] == 0}
    assert set(first) == {a, b}
    assert abs(first[a]["arrival_ns"] - first[b]["arrival_ns"]) <= 1
    straight = math.sqrt(600.0**2 + 300.0**2 + 84.0**2)
    assert straight / 1510.0 < first[b]["arrival_ns"] * 1e-9 < straight / 1490.0


def test_waking_finds_the_signals_in_transit(volume_sea: Callable[..., Simulation]) -> None:
    """The signal of a has passed when b wakes, that of c has not. It has the values of a run in which b never slept."""
    water, found = volume(tilted, DEPTHS, (300.0, 400.0), 2500.0), []
    for kind in (0, 1):
        sim = volume_sea(water, 2)
        a, b, c = (
            node(sim, "a", 0, 0.0, z=50.0),
            node(sim, "b", kind, 300.0, 1.5, z=80.0),
            node(sim, "c", 0, 1800.0, z=60.0),
        )
        sim.ping(a, 20e3)
        sim.ping(c, 30e3)
        run(sim, 0.6)
        sim.listen(b)
        _, receptions = run(sim, 1.0)
        found.append(np.sort(receptions[receptions["receiver"] == b], order="arrival_ns"))
        assert set(found[-1]["source"]) == {c}
    always, asked = found
    assert len(always) == len(asked) >= 3
    for name in ("arrival_ns", "outcome", "surface", "bottom"):
        assert (always[name] == asked[name]).all(), name
    np.testing.assert_allclose(asked["level"], always["level"], atol=1e-6)


def test_the_emission_selects_the_time_of_the_grid(volume_sea: Callable[..., Simulation]) -> None:
    """The speed grows by 1 m/s each second; each signal keeps the speed of its emission while it travels."""
    water = volume(lambda n, e, z: 1500.0 + 0.0 * z, np.array([0.0, 100.0]), (500.0, 500.0), 500.0, (0.0, 1.5, 4.0))
    sim = volume_sea(water)
    a, b = node(sim, "a", 0, 0.0, z=50.0), node(sim, "b", 0, 1200.0, z=60.0)
    for at in (0, 900_000_000, 2_000_000_000):
        sim.ping(a, 25e3, at=at)
    _, receptions = run(sim, 3.2)
    heard = receptions[receptions["receiver"] == b]
    travel = (heard["arrival_ns"] - heard["emission_ns"]) * 1e-9
    assert travel == pytest.approx(math.hypot(1200.0, 10.0) / np.array([1500.0, 1500.9, 1502.0]), abs=1.1e-9)
