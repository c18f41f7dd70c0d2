"""The rays that the medium remembers for pairs of nodes: they save searches and change nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.courses import Course, Courses, world
from tests.physics.sea import PLAIN, node, run, sea
from tests.sdk.test_sound_volume import DEGREE, HEAD, write_volume
from wavesim_server import Simulation
from wavesim_server.acoustics import medium_setup
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.volume import SPEED_COLUMN

Make = Callable[..., LoadedConfig]
WORLD = '<bed depth="100 m"/><volume file="v.csv" latitude="0 deg" longitude="0 deg"/>'
ECHOES = '<multipath order="2"/>'
#: heard on every path, however weak
WEAK = PLAIN.replace("10 kHz", "1 Hz").replace("60 dB", "-200 dB")
COLUMNS = ["id", "source", "receiver", "outcome", "surface", "bottom", "emission_ns"]


@pytest.fixture
def front(config: Make, tmp_path: Path) -> Callable[..., Simulation]:
    """A sea with a front, in which sound is followed with known rays or without."""

    def make(echoes: bool = True, tick: str = "20 ms", **more: Any) -> Simulation:
        write_volume(tmp_path / "v.csv", times=(0.0, 60.0))
        inner = ECHOES if echoes else ""
        return sea(config, tick, PLAIN, world=WORLD, extra='profile="volume"', inner=inner, **more)

    return make


def talk(sim: Simulation, seconds: int, speed: float = 2.0) -> Any:
    """Three nodes, one of which moves, send in turn once a second; return the receptions in a fixed order."""
    rows = [
        node(sim, "a", 0, -900.0, speed, y=-300.0, z=30.0),
        node(sim, "b", 0, 700.0, 0.0, y=200.0, z=60.0),
        node(sim, "c", 0, 100.0, -0.5 * speed, y=500.0, z=45.0),
    ]
    for k in range(seconds):
        sim.ping(rows[k % 3], 25e3)
        run_ticks(sim, 1.0)
    _, found = run(sim, 2.0)
    return np.sort(found, order=["id", "receiver", "surface", "bottom", "arrival_ns"])


def run_ticks(sim: Simulation, seconds: float) -> None:
    sim.advance(math.ceil(seconds * 1e9 / sim.step_ns))


@pytest.mark.compiled
@pytest.mark.parametrize("echoes", [False, True])
def test_known_rays_change_nothing(
    front: Callable[..., Simulation], echoes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sim = front(echoes)
    found = talk(sim, 12)
    pairs = sim.channel.medium.pairs
    used = pairs[pairs.key > 0]
    assert len(used) == 6, "each pair in both directions"
    assert (used.searched < 3.0).all() and used.used.max() > 9.0, "one search for each pair, although it moved"
    monkeypatch.setattr(medium_setup, "MAX_PAIR_ROWS", 0)
    alone = front(echoes)
    other = talk(alone, 12)
    assert len(alone.channel.medium.pairs) == 0
    assert len(found) == len(other) >= (24 if not echoes else 100)
    assert found[COLUMNS].tolist() == other[COLUMNS].tolist()
    assert np.abs(found["arrival_ns"] - other["arrival_ns"]).max() <= 2
    assert np.abs(found["level"] - other["level"]).max() < 1e-3
    assert sim.channel.paths_dropped == alone.channel.paths_dropped


@pytest.mark.compiled
def test_a_search_is_repeated_when_nodes_have_moved(front: Callable[..., Simulation]) -> None:
    """At 40 m/s over 1 km, the rays are searched again after about a second."""
    sim = front(False)
    talk(sim, 9, speed=40.0)
    pairs = sim.channel.medium.pairs
    used = pairs[pairs.key > 0]
    assert len(used) == 6 and used.searched.max() > 6.0


@pytest.mark.compiled
def test_known_rays_are_part_of_a_snapshot(front: Callable[..., Simulation]) -> None:
    sim = front()
    talk(sim, 6)
    snapshot = sim.snapshot()

    def go_on() -> Any:
        for k in range(6):
            sim.ping(k % 3, 25e3)
            run_ticks(sim, 1.0)
        return sim.take_signals()[1].tobytes()

    first, pairs = go_on(), sim.channel.medium.pairs.tobytes()
    sim.restore(snapshot)
    assert sim.channel.medium.pairs.tobytes() != pairs
    assert go_on() == first and sim.channel.medium.pairs.tobytes() == pairs


def test_rows_for_pairs() -> None:
    assert [medium_setup.pair_rows(n) for n in (1, 9, 100, 5000)] == [64, 128, 16384, 131072]


@pytest.mark.compiled
def test_the_oldest_pair_makes_room(front: Callable[..., Simulation], monkeypatch: pytest.MonkeyPatch) -> None:
    """With four rows, six pairs replace each other, and the receptions are the same."""
    monkeypatch.setattr(medium_setup, "pair_rows", lambda nodes: 4)
    sim = front(False)
    found = talk(sim, 9)
    assert len(sim.channel.medium.pairs) == 4 and (sim.channel.medium.pairs.key > 0).all()
    monkeypatch.undo()
    other = talk(front(False), 9)
    assert found[COLUMNS].tolist() == other[COLUMNS].tolist()
    assert np.abs(found["arrival_ns"] - other["arrival_ns"]).max() <= 2


@pytest.mark.compiled
def test_rays_that_appear_are_found_after_a_refresh(
    config: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient grows within a minute, so that two further paths off the surface appear between nodes that do not move.
    The paths of each signal are those of a search that is at most a refresh old.
    """
    rows = [f"{HEAD},{SPEED_COLUMN}"]
    for time, z, n, e in itertools.product((0, 60), (0, 500, 1000), (-3000, 3000), (-3000, 3000)):
        rows.append(f"{time},{z},{n * DEGREE!r},{e * DEGREE!r},10,35,0,0,{1500.0 + (0.07 + 0.03 * time / 60.0) * z!r}")
    (tmp_path / "v.csv").write_text("\n".join(rows))
    world = WORLD.replace("100 m", "1000 m")

    def paths() -> list[list[tuple[int, int]]]:
        """Bounces of the paths of each signal, in order of time."""
        extra = 'profile="volume" absorption="0 dB/m"'
        sim = sea(config, "100 ms", WEAK, world=world, extra=extra, inner=ECHOES, noise="-200 dB")
        a, b = node(sim, "a", 0, 0.0, z=20.0), node(sim, "b", 0, 2500.0, z=30.0)
        for _ in range(14):
            sim.ping(a, 25e3)
            run_ticks(sim, 10.0)
        found = np.sort(sim.take_signals()[1], order=["id", "arrival_ns"])
        return [
            found[(found["id"] == k + 1) & (found["receiver"] == b)][["surface", "bottom"]].tolist() for k in range(14)
        ]

    late = paths()
    monkeypatch.setattr(medium_setup, "MAX_PAIR_ROWS", 0)
    exact = paths()
    assert exact[0].count((1, 0)) == 1 and exact[-1].count((1, 0)) == 3
    for k, found in enumerate(late):
        assert found in exact[max(k - 6, 0) : k + 1], k
    assert late[5] != exact[5] and late[-1] == exact[-1]


DEPTHS = np.linspace(0.0, 60.0, 7)
#: speeds of sound at these depths: faster at the top, and a channel at 20 m
LAYERS = {
    "downward": np.array([1512.0, 1511.0, 1507.0, 1502.0, 1500.0, 1499.5, 1499.0]),
    "channel": np.array([1508.0, 1503.0, 1499.0, 1502.0, 1505.0, 1507.0, 1508.0]),
}


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("distance", [250.0, 900.0])
def test_fronts_through_layers_are_those_of_a_search_for_each(layers: str, distance: float, tmp_path: Path) -> None:
    """Both ends move, and the rays of a front are refined from those of the front before. A search for each front gives
    the same paths at the same times.
    """
    (tmp_path / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in zip(DEPTHS, LAYERS[layers], strict=True)))
    loaded = world(order=2, folder=tmp_path, acoustics='profile="file" file="c.txt"')
    courses = {
        "source": Course((0.0, 0.0, 20.0), (3.0, 1.0, 0.2)),
        "listener": Course((distance, 60.0, 31.0), (-2.0, 2.0, -0.3), 1.5, 0.8),
    }

    def fronts(with_known_rays: bool) -> Any:
        lab = Courses(loaded, courses)
        listening = lab.sim.channel.hydrophones
        assert listening is not None
        if not with_known_rays:
            m = listening.medium
            listening._set_arrays(m._replace(pairs=m.pairs[:0], known_rays=m.known_rays[:0]), listening.fronts)
        lab.sim.ping(0, 25e3, duration=0.5)
        lab.advance(0.5 + distance / 1400.0)
        if with_known_rays:
            (pair,) = listening.medium.pairs[listening.medium.pairs["key"] > 0]
            assert 0 < pair["count"] <= 10 and pair["searched"] > 0.3 and pair["used"] - pair["searched"] > 0.02
        return np.sort(lab.sim.take_fronts().fronts, order=["number", "path", "arrival"])

    known, searched = fronts(True), fronts(False)
    assert len(known) == len(searched) >= 26 * 3
    for column in ("number", "path", "surface", "bottom", "last", "emission"):
        assert np.array_equal(known[column], searched[column])
    assert np.abs(known["arrival"] - searched["arrival"]).max() < 1e-9
    assert np.abs(known["times"][:, :2] - searched["times"][:, :2]).max() < 1e-9
    assert np.abs(known["rates"][:, :2] - searched["rates"][:, :2]).max() < 1e-9
    assert np.abs(known["level"] - searched["level"]).max() < 1e-3
