"""No body starts inside the bed, a wall or another body; a body that gets stuck during a run is pushed out gently."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_world.config import LoadedConfig

BED = '<bed depth="20 m" slope_north="0.1"/>'
WALL = '<bed depth="20 m"/><obstacles><block position="60 0 10 m" size="4 80 20 m"/><tunnel position="0 50 8 m" length="40 m" width="4 m" height="4 m"/></obstacles>'


def start(world: str, *bodies: str) -> str:
    return f'<time step="20 ms"/><world>{world}</world><fleet>{"".join(bodies)}</fleet>'


def box(name: str, place: str, client: str = "none") -> str:
    return f'<buoy name="{name}" model="box-buoy" position="{place} m" client="{client}"/>'


@pytest.mark.parametrize(
    ("world", "bodies", "message"),
    [
        (
            BED,
            [box("b", "0 0 21")],
            "'b': start position 1.33 m inside the bed: the lowest point of the body is 21.30 m deep, but the bed at this position is 19.96 m deep",
        ),
        (BED, [box("b", "40 0 23.72")], "inside the bed"),  # the bed is at 24 m: the lowest corner is 2 cm too deep
        (
            WALL,
            [box("b", "60 39 5")],
            "'b': start position inside block 1 (at 60, 0, 10 m): the configured start is 60 39 5 m",
        ),
        (WALL, [box("b", "10 52 8")], "inside a wall of tunnel 1"),
        (BED, [box("a", "0 0 5"), box("b", "0.7 0.8 5.3")], "'b' starts inside 'a'"),
    ],
)
def test_it_is_refused_when_the_configuration_is_read(
    config: Callable[..., LoadedConfig], world: str, bodies: list[str], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        Simulation(config(start(world, *bodies)))
    assert message in str(error.value)
    assert ".xml:2: " in str(error.value), "the line of the body"


def test_what_has_room_starts(config: Callable[..., LoadedConfig]) -> None:
    bodies = [
        box("a", "0 0 5"),
        box("b", "1.02 0 5"),
        box("c", "0 0 18"),
        box("d", "40 0 23.66"),
        box("e", "0 0 5", "optional"),
    ]
    sim = Simulation(config(start(BED, *bodies)))
    sim.enter_residents()
    assert len(sim.rows) == 4
    with pytest.raises(ValueError, match="would start inside 'a'"):
        sim.enter("e")
    with pytest.raises(ValueError, match="inside the bed"):
        sim.enter("f", "box-buoy", (0.0, 0.0, 300.0))
    assert len(sim.rows) == 4, "nothing has changed"
    sim.set_pose(sim.row_of("a") or 0, (0.0, 100.0, 5.0))
    sim.enter("e")
    sim = Simulation(config(start(WALL, box("f", "0 50 8"), box("g", "57.4 0 8"))))
    sim.enter_residents()


@pytest.mark.compiled
def test_what_is_stuck_comes_out_gently(config: Callable[..., LoadedConfig]) -> None:
    """In the bed by 3 m, in a wall 80 m long near its side, in another body: none is shot away, all come out."""
    sim = Simulation(config(start(WALL)))
    places = {
        "bed": (0.0, -200.0, 23.0),
        "wall": (61.0, 30.0, 10.0),
        "a": (-100.0, 0.0, 10.0),
        "b": (-100.1, 0.0, 10.0),
    }
    for k, (name, place) in enumerate(places.items()):
        row = sim.enter(name, "bluerov2", (-300.0, 20.0 * k, 10.0))
        sim.set_pose(row, place)
    fastest = 0.0
    before = np.array(list(places.values()))
    for _ in range(1500):
        sim.advance(1)
        here = sim.state()["p_WB_W"][:4]
        fastest, before = max(fastest, float(np.abs(here - before).max()) / 0.02), here.copy()
    assert fastest < 2.0, "0.2 m/s at each point of contact"
    assert here[0][2] < 20.0
    assert here[1][0] > 62.0 and abs(here[1][1] - 30.0) < 3.0, "out by the side that was nearest"
    assert math.dist(here[2], here[3]) > 0.3
    assert np.abs([sim.fleet.body(k)[B.NU : B.NU + 6] for k in range(4)]).max() < 1.0
