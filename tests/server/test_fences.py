"""Fences: inside and outside against the polygons of another library, and crossings that are reported once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

from tests.conftest import Server
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import ConfigError
from wavesim_server.fences import Fences, is_inside
from wavesim_world.config import LoadedConfig
from wavesim_world.config.model import Corner, Fence


def test_inside_as_matplotlib_says() -> None:
    """Convex, concave and self-crossing polygons; 20 000 points each."""
    draw = np.random.default_rng(5)
    points = draw.uniform(-12, 12, (20_000, 2))
    for n in (3, 4, 7, 12):
        angle = np.sort(draw.uniform(0, 2 * np.pi, n))
        star = np.column_stack([np.cos(angle), np.sin(angle)]) * draw.uniform(2, 10, (n, 1))
        assert np.array_equal(is_inside(star, points), Polygon(star).contains_points(points))


def test_a_crossing_is_reported_once() -> None:
    square = tuple(Corner(north=n, east=e) for n, e in ((0.0, 0.0), (10.0, 0.0), (10.0, 10.0), (0.0, 10.0)))
    fences = Fences(
        [Fence(name="in", keep="inside", corner=square), Fence(name="out", keep="outside", corner=square)],
        4,
        100_000_000,
    )
    rows = np.array([2])

    def look(tick: int, north: float) -> list[str]:
        return [text for _, text in fences.crossings(tick, rows, np.array([[north, 5.0, 3.0]]))]

    assert look(0, 5.0) == ["entered the fence 'out' (keep outside)"]
    assert look(1, 50.0) == [], "not a tick at which they are looked at"
    assert look(2, 50.0) == ["left the fence 'in' (keep inside)", "left the fence 'out' (keep outside)"]
    assert look(4, 60.0) == []
    assert fences.next_tick(4) == 6
    fences.remove(2)
    assert look(6, 60.0) == ["left the fence 'in' (keep inside)"], "another body in the same row"


@pytest.mark.parametrize(
    ("corners", "message"),
    [
        ('<corner north="0 m" east="0 m"/><corner north="1 m" east="0 m"/>', "at least 3"),
        (
            '<corner north="0 m" east="0 m"/><corner north="1 m" east="1 m"/><corner north="2 m" east="2 m"/>',
            "encloses no area",
        ),
    ],
)
def test_fences_without_area(config: Callable[..., LoadedConfig], corners: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(f'<fleet><fence name="f">{corners}</fence></fleet>')


@pytest.mark.system
def test_a_crossing_reaches_the_pilot(config: Callable[..., LoadedConfig], serve: Callable[..., Server]) -> None:
    """By a notice to its broker, and in shared memory, at the same time of every run."""
    corners = "".join(f'<corner north="{n} m" east="{e} m"/>' for n, e in ((-9, -9), (1, -9), (1, 9), (-9, 9)))
    server = serve(
        config(
            '<time step="10 ms" pace="fast" duration="20 s"/><world><current north="0.5 m/s"/></world>'
            f'<fleet><vehicle name="a" model="lauv" position="0 0 8 m" client="required"/><fence name="bay">{corners}</fence></fleet>'
        ).path
    )
    with Broker("a", ("127.0.0.1", server.port), lockstep=0.1) as broker:
        server.wait(lambda s: not s["missing"])
        server.send("start")
        notices = []
        for step in broker.steps():
            notices += step.notices
            broker.answer([0.0])
            if notices:
                break
    assert [n.text for n in notices] == ["left the fence 'bay' (keep inside)"]
    assert notices[0].time_ns % 200_000_000 == 0
    shared = SharedState(server.name)
    server.wait(lambda _: shared.history("notice", 0)[0] > 0)
    total, records = shared.history("notice", 0)
    assert total == 1 and records["text"][0].decode() == notices[0].text and records["name"][0] == b"a"
