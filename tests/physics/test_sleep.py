"""Bodies at rest: they sleep in place, cost almost nothing, and wake when anything that affects them changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.test_dynamics import BARE
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import sleep
from wavesim_server.dynamics.sizes import LANES
from wavesim_world.config import LoadedConfig

#: level as it is put down, so that it does not rock
HEAVY = BARE.replace("0.1 0.02 0.03 m", "0 0 0.03 m").format(volume=0.23, rb="0 0 -0.1", d=30, lag=0)
BLOCK = '<obstacles><block position="0 20 18 m" size="8 8 4 m"/></obstacles>'
WORLD = f'<time step="4 ms"/><shared vehicles="4" signals="4"/><world><bed depth="20 m"/>{BLOCK}</world>{HEAVY}'
LONG = 1000  #: ticks of 4 ms until what was put down sleeps

pytestmark = pytest.mark.compiled


def asleep(sim: Simulation, row: int) -> bool:
    return bool(sim.fleet.body(row)[B.ASLEEP])


def insomnia(sim: Simulation) -> Simulation:
    """Of whom nobody ever sleeps."""
    sim.contacts.memory.sleep.settle_ticks[0] = 10**9
    return sim


def pose(sim: Simulation, row: int) -> np.ndarray:
    return sim.fleet.body(row)[:7].copy()


def lying(config: Callable[..., LoadedConfig], world: str = WORLD, east: float = 0.0, down: float = 19.8) -> Simulation:
    sim = Simulation(config(world))
    sim.enter("sleeper", "bare", (0.0, east, down - 1e-3))
    return sim


@pytest.mark.parametrize(("east", "down"), [(0.0, 19.8), (20.0, 15.8)], ids=["on the bed", "on an obstacle"])
def test_it_sleeps_where_it_lay(config: Callable[..., LoadedConfig], east: float, down: float) -> None:
    """To within what a body creeps that is awake; its velocity is zero, and what bears it is reported as before."""
    sim, awake = lying(config, WORLD, east, down), insomnia(lying(config, WORLD, east, down))
    for s in (sim, awake):
        s.advance(LONG)
    assert asleep(sim, 0) and not asleep(awake, 0)
    before, contacts = pose(sim, 0), sim.contacts.count
    for s in (sim, awake):
        s.advance(5000)
    assert pose(sim, 0).tobytes() == before.tobytes() and sim.contacts.count == contacts
    assert np.abs(sim.state()["v_WB_B"][0]).max() == 0.0
    assert np.abs(pose(sim, 0) - pose(awake, 0)).max() < sleep.CREEP_TOLERANCE / sleep.SETTLE_S * 5000 * 4e-3
    ours, theirs = (s.results.effort()["contact"][0] for s in (sim, awake))
    assert ours[2] == pytest.approx(-sim.results.effort()["restoring"][0][2], rel=0.02)
    assert ours[2] == pytest.approx(theirs[2], rel=0.02)


REASONS: dict[str, Callable[[Simulation], object]] = {
    "a command": lambda sim: sim.command(0, [1.0]),
    "a fault": lambda sim: sim.fail(0, 0, "lost"),
    "a push": lambda sim: sim.push(0, (1e-3, 0.0, 0.0)),
    "a pose": lambda sim: sim.set_pose(0, (0.0, 0.0, 19.7)),
    "a velocity": lambda sim: sim.set_pose(0, velocity=(0.1, 0.0, 0.0, 0.0, 0.0, 0.0)),
    "a current": lambda sim: sim.set_weather(current_north=0.01),
    "an upwelling": lambda sim: sim.set_weather(current_down=-0.01),
    "waves": lambda sim: sim.set_weather(wave_height=2.0),
    "an allocation": lambda sim: sim.allocate(0, np.ones((6, 1))),
}


@pytest.mark.parametrize("reason", REASONS)
def test_it_wakes_in_the_next_tick_by(config: Callable[..., LoadedConfig], reason: str) -> None:
    sim = lying(config)
    sim.advance(LONG)
    assert asleep(sim, 0)
    sim.command(0, [0.0])  # its command before
    sim.push(0, (0.0, 0.0, 0.0))
    sim.advance(2)
    assert asleep(sim, 0), "nothing new is no reason"
    news = len(sim.take_meetings())
    REASONS[reason](sim)
    sim.advance(1)
    assert not asleep(sim, 0)
    sim.advance(2)
    assert news == 1 and (reason in ("a pose", "a velocity") or not sim.take_meetings()), (
        "it has lain there all the while"
    )


def test_a_tide_counts_by_a_millimetre_a_second(config: Callable[..., LoadedConfig]) -> None:
    sim = lying(config)
    sim.advance(LONG)
    sim.set_weather(current_north=0.9 * sleep.FLOW_TOLERANCE)
    sim.advance(1)
    assert asleep(sim, 0)
    sim.set_weather(current_north=1.1 * sleep.FLOW_TOLERANCE)
    sim.advance(1)
    assert not asleep(sim, 0)


def test_whom_another_body_touches_wakes_before_the_blow(config: Callable[..., LoadedConfig]) -> None:
    """Both go on as if nobody had slept; and the bodies of a block are stepped by themselves."""

    def struck(sim: Simulation) -> Simulation:
        sim.enter("other", "bare", (0.0, 1.0, 19.75))
        sim.advance(LONG)
        before = pose(sim, 0)
        sim.set_pose(1, velocity=(0.0, -1.5, -0.3, 0, 0, 0))
        sim.advance(20)
        assert asleep(sim, 1) is False and (asleep(sim, 0) is False or pose(sim, 0).tobytes() == before.tobytes())
        return sim

    sim, awake = struck(lying(config)), struck(insomnia(lying(config)))
    assert asleep(sim, 0) and sim.fleet.slots[0] // LANES == sim.fleet.slots[1] // LANES
    start = pose(sim, 0)
    woke = None
    for k in range(2500):
        sim.advance(1)
        if woke is None and not asleep(sim, 0):
            woke = k
            assert np.abs(pose(sim, 0) - start).max() < 1e-3, "it wakes where it lay"
    awake.advance(2500)
    assert woke is not None and abs(pose(sim, 0)[1] - start[1]) > 0.02
    for row in range(2):
        assert np.abs(pose(sim, row) - pose(awake, row)).max() < 0.02


def test_the_same_bits_however_time_is_cut(config: Callable[..., LoadedConfig]) -> None:
    def run(at_once: int) -> bytes:
        sim = lying(config)
        sim.enter("other", "bare", (0.0, 3.0, 19.6))
        for k in range(3):
            for _ in range(LONG // at_once):
                sim.advance(at_once)
            assert asleep(sim, 0)
            sim.push(0, (0.0, 0.0, 5.0 + k))
        return sim.state().tobytes() + sim.fleet.body(0).tobytes()

    assert run(1) == run(125)


def test_what_begins_to_move_slowly_does_not_sleep(config: Callable[..., LoadedConfig]) -> None:
    """Nearly afloat, pushed along the bed: less than CREEP in the time it must lie still, but faster and faster."""
    sim = lying(config)
    sim.advance(LONG)
    assert asleep(sim, 0)
    start = pose(sim, 0)
    sim.push(0, (0.07, 0.0, -139.7))
    sim.advance(round(1.1 * sleep.SETTLE_S / 4e-3))
    assert 2e-5 < pose(sim, 0)[0] - start[0] < sleep.CREEP_TOLERANCE and not asleep(sim, 0)
    sim.advance(5 * LONG)
    assert not asleep(sim, 0) and pose(sim, 0)[0] - start[0] > 0.01


def test_who_leans_on_a_body_stays_awake(config: Callable[..., LoadedConfig]) -> None:
    sim = lying(config)
    sim.enter("upon", "bare", (0.0, 0.0, 19.38))
    sim.advance(round(0.3 / 4e-3))
    touched = False
    for _ in range(2 * LONG):
        sim.advance(1)
        beside = (sim.contacts.memory.sleep.rest_ticks[:2, sleep.LAST_BODY_CONTACT] == sim.tick).all()
        touched |= bool(beside)
        assert not (beside and (asleep(sim, 0) or asleep(sim, 1)))
    assert touched


def test_who_leaves_takes_nothing_along(config: Callable[..., LoadedConfig]) -> None:
    """Another body in the same row and seat begins awake."""
    sim = lying(config)
    sim.advance(LONG)
    assert asleep(sim, 0)
    sim.leave(0)
    row = sim.enter("next", "bare", (0.0, 0.0, 15.0))
    sim.advance(100)
    assert row == 0 and not asleep(sim, 0) and pose(sim, 0)[2] > 15.01
