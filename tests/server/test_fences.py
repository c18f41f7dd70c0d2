"""Fences: inside and outside against the polygons of another library, and crossings that are reported once."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

from tests.conftest import Server
from tests.server.harbour import Harbour, status
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.fences import check_fence, corner_points, crossing_side, fence_rows, fences_in_rows, is_inside
from wavesim_sdk.wire.items import Fence, Notice
from wavesim_server.fences import Fences
from wavesim_world.config import LoadedConfig


def test_inside_as_matplotlib_says() -> None:
    """Convex, concave and self-crossing polygons; 20 000 points each."""
    draw = np.random.default_rng(5)
    points = draw.uniform(-12, 12, (20_000, 2))
    for n in (3, 4, 7, 12):
        angle = np.sort(draw.uniform(0, 2 * np.pi, n))
        star = np.column_stack([np.cos(angle), np.sin(angle)]) * draw.uniform(2, 10, (n, 1))
        assert np.array_equal(is_inside(star, points), Polygon(star).contains_points(points))


SQUARE = (0.0, 0.0, 10.0, 0.0, 10.0, 10.0, 0.0, 10.0)
TICK_NS = 100_000_000


def crossings(fences: Fences, tick: int, north: float) -> list[str]:
    """What is reported at a tick about the body in row 2."""
    return [text for _, text in fences.crossings(tick, np.array([2]), np.array([[north, 5.0, 3.0]]))]


def test_a_crossing_is_reported_once() -> None:
    fences = Fences([Fence("in", "inside", SQUARE), Fence("out", "outside", SQUARE)], 4, TICK_NS)
    assert crossings(fences, 0, 5.0) == ["entered the fence 'out' (keep outside)"]
    assert crossings(fences, 1, 50.0) == [], "not a tick at which they are looked at"
    there = ["left the fence 'in' (keep inside)", "left the fence 'out' (keep outside)"]
    assert crossings(fences, 2, 50.0) == there
    assert [crossing_side(text) for text in there] == [True, False]
    assert crossings(fences, 4, 60.0) == []
    assert fences.next_tick(4) == 6
    fences.remove_body(2)
    assert crossings(fences, 6, 60.0) == ["left the fence 'in' (keep inside)"], "another body in the same row"


def test_a_fence_is_added_replaced_and_removed() -> None:
    """A replaced fence keeps the side on which each body was, so that only a change of the side is reported."""
    fences = Fences([], 4, TICK_NS)
    assert fences.next_tick(0) > 10**9
    assert fences.change(Fence("in", "inside", SQUARE)) == "added the fence 'in' (keep inside)"
    assert fences.next_tick(0) == 2
    assert crossings(fences, 2, 50.0) == ["left the fence 'in' (keep inside)"]
    wide = tuple(10.0 * v for v in SQUARE)
    assert (
        fences.change(Fence("in", "inside", tuple(2.0 * v for v in SQUARE))) == "changed the fence 'in' (keep inside)"
    )
    assert crossings(fences, 4, 50.0) == [], "still outside"
    fences.change(Fence("in", "inside", wide))
    (back,) = crossings(fences, 6, 50.0)
    assert back == "entered the fence 'in' (keep inside)" and crossing_side(back) is False
    fences.change(Fence("in", "outside", wide))
    (wrong,) = crossings(fences, 8, 50.0)
    assert wrong == "entered the fence 'in' (keep outside)" and crossing_side(wrong) is True
    assert [f.keep for f in fences.current] == ["outside"]
    assert fences.change(Fence("in")) == "removed the fence 'in'"
    assert fences.current == [] and crossings(fences, 10, 50.0) == []


@pytest.mark.parametrize(
    ("fence", "reason"),
    [
        (Fence("bya"), "no fence is named 'bya'; did you mean 'bay'?"),
        (
            Fence("x", "inside", (0.0, 0.0, 10.0, 10.0, 10.0, 0.0, 0.0, 10.0)),
            "'x' crosses itself: the sides that begin",
        ),
        (Fence("x", "inside", (0.0, 0.0, 10.0, 10.0)), "fence 'x' needs at least 3 corners, got 2"),
        (Fence("x", "inside", (0.0, 0.0, 1.0, 1.0, 2.0, 2.0)), "fence 'x' encloses no area"),
        (Fence("x", "inside", (0.0,) * 7), "expected two numbers per corner (north, east), got 7 numbers"),
        (Fence("x", "in", SQUARE), "`keep` must be inside or outside, got 'in'"),
        (Fence("", "inside", SQUARE), "invalid fence name '': use 1 to 31 bytes"),
    ],
)
def test_an_invalid_change_changes_nothing(fence: Fence, reason: str) -> None:
    bay = Fence("bay", "inside", SQUARE)
    fences = Fences([bay], 4, TICK_NS)
    with pytest.raises(ValueError, match=re.escape(reason)):
        fences.change(fence)
    assert fences.current == [bay]


def test_all_fences_together_have_a_limit() -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
    ring = tuple(np.column_stack([100.0 * np.cos(angles), 100.0 * np.sin(angles)]).ravel().tolist())
    fences = Fences([], 1, TICK_NS)
    for k in range(21):
        fences.change(Fence(f"ring{k}", "inside", ring))
    with pytest.raises(ValueError, match="the fences would have 1056 in total, and the maximum is 1024"):
        fences.change(Fence("ring21", "inside", ring))
    fences.change(Fence("ring20", "outside", ring))  # replaces one
    assert list(fences_in_rows(fence_rows(fences.current))) == fences.current


def test_self_crossing_as_pairs_of_sides_say() -> None:
    """Against the solution of each pair of sides for the point that both have."""
    draw, found = np.random.default_rng(3), [0, 0]
    for _ in range(300):
        corners = draw.uniform(-10.0, 10.0, (draw.integers(4, 9), 2))
        sides = [(corners[k], corners[(k + 1) % len(corners)]) for k in range(len(corners))]
        crosses = any(
            all(0.0 < s < 1.0 for s in np.linalg.solve(np.column_stack([b - a, c - d]), c - a))
            for k, (a, b) in enumerate(sides)
            for j, (c, d) in enumerate(sides)
            if 1 < abs(j - k) < len(sides) - 1
        )
        fence = Fence("f", "inside", tuple(corners.ravel().tolist()))
        found[crosses] += 1
        if crosses:
            with pytest.raises(ValueError, match="crosses itself"):
                check_fence(fence)
        else:
            check_fence(fence)
            assert corner_points(fence).tolist() == corners.tolist()
    assert min(found) > 20


@pytest.mark.parametrize(
    ("corners", "message"),
    [
        ('<corner north="0 m" east="0 m"/><corner north="1 m" east="0 m"/>', "at least 3"),
        (
            '<corner north="0 m" east="0 m"/><corner north="1 m" east="1 m"/><corner north="2 m" east="2 m"/>',
            "encloses no area",
        ),
        (
            '<corner north="0 m" east="0 m"/><corner north="1 m" east="1 m"/><corner north="1 m" east="0 m"/><corner north="0 m" east="1 m"/>',
            "crosses itself",
        ),
    ],
)
def test_fences_without_area(config: Callable[..., LoadedConfig], corners: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(f'<fleet><fence name="f">{corners}</fence></fleet>')


def test_a_running_server_checks_its_changed_fences(config: Callable[..., LoadedConfig]) -> None:
    """A change takes effect at the next check, whether or not the run began with fences; readers see it at once."""
    harbour = Harbour(
        config(
            '<time step="10 ms" pace="fast"/><network newcomers="lockstep"/><fleet>'
            '<vehicle name="a" model="lauv" position="0 0 5 m" client="optional"/></fleet>'
        )
    )
    pilot = harbour.join("a", lockstep_ns=10_000_000)
    harbour.order("start")

    def step_to(tick: int) -> list[tuple[int, str]]:
        while harbour.sea.tick < tick:
            pilot.session.done(harbour.sea.tick, None)
            harbour.run(0.005)
        notices, pilot.events = [(n.time_ns // 10**6, n.text) for n in pilot.of(Notice)], []
        return notices

    around = {"name": "net", "keep": "outside", "corners": [[-9, -9], [9, -9], [9, 9], [-9, 9]]}
    assert step_to(25) == []
    assert harbour.order("fence", **around) == (True, "added the fence 'net' (keep outside) starting at 0.250 s")
    assert step_to(60) == [(400, "entered the fence 'net' (keep outside)")]
    table = harbour.areas["simulation"]["fences"]
    net = Fence("net", "outside", (-9.0, -9.0, 9.0, -9.0, 9.0, 9.0, -9.0, 9.0))
    assert list(fences_in_rows(table.snapshot()[1])) == [net] and len(status(harbour)["fences"]) == 1
    assert harbour.order("fence", **{**around, "keep": "inside"})[0]
    assert step_to(85) == [(800, "entered the fence 'net' (keep inside)")]
    assert harbour.order("fence", name="nett") == (False, "no fence is named 'nett'; did you mean 'net'?")
    assert harbour.order("fence", name="net") == (True, "removed the fence 'net' starting at 0.850 s")
    assert step_to(130) == [] and status(harbour)["fences"] == []
    many = [[float(k), float(k * k)] for k in range(49)]
    assert harbour.order("fence", name="net", corners=many) == (
        False,
        "fence: 49 corners are too many; the maximum is 48",
    )


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
