"""The acoustic medium: every number to 1e-9 s for any tick length, and the behaviour of the nodes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.physics.sea import ANSWERS, GHOST, PLAIN, TICKS, heard, node, run, sea
from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_server.acoustics import medium_arrays, reception
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import parameter_rows as P
from wavesim_server.tick import advance_acoustics
from wavesim_world.config import LoadedConfig

SHORT = pytest.param("1 ms", marks=pytest.mark.compiled)  #: thousands of ticks, which take a minute as plain Python


@pytest.mark.parametrize("tick", TICKS)
@pytest.mark.parametrize(
    ("x", "v", "seconds"),
    [(1500.0, 0.0, 1.0), (1000.0, 2.0, 0.667556742323), (1000.0, -2.0, 0.665778961385)],
)
def test_one_way(config: Callable[..., LoadedConfig], tick: str, x: float, v: float, seconds: float) -> None:
    sim = sea(config, tick, PLAIN)
    node(sim, "a", 0, 0.0)
    b = node(sim, "b", 0, x, v)
    sim.ping(0, 25e3)
    _, receptions = run(sim, 1.2)
    arrival = heard(receptions, b)["arrival_ns"]
    assert len(arrival) == 1
    assert arrival[0] * 1e-9 == pytest.approx(seconds, abs=1.001e-9)
    assert seconds == pytest.approx(x / (1500.0 - v), abs=1e-9)


@pytest.mark.parametrize("tick", TICKS)
def test_two_way_with_a_moving_asker(config: Callable[..., LoadedConfig], tick: str) -> None:
    sim = sea(config, tick, PLAIN, ANSWERS.format(tat=50))
    a = node(sim, "a", 0, 1000.0, 2.0)
    b = node(sim, "b", 1, 0.0)
    sim.ping(a, 25e3)
    sent, receptions = run(sim, 1.6)
    reply = heard(receptions, a)
    assert reply["arrival_ns"][0] * 1e-9 == pytest.approx(1.385180240320, abs=1.001e-9)
    assert (reply["arrival_ns"][0] * 1e-9 - 0.05) * 750.0 == pytest.approx(1001.385180, abs=1e-6)
    assert sent["query"].tolist() == [0, sent["id"][0]]
    query = heard(receptions, b)
    assert sent["emission_ns"][1] - query["arrival_ns"][0] == 50_000_000, "turn-around from the exact arrival"
    assert reply["query"][0] == sent["id"][0] and reply["query_source"][0] == a


@pytest.mark.parametrize("tick", [SHORT, "4 ms", "100 ms"])
def test_the_greatest_range_of_a_two_second_cycle(config: Callable[..., LoadedConfig], tick: str) -> None:
    for x, answered in ((1488.74, True), (1488.76, False)):
        sim = sea(config, tick, PLAIN, ANSWERS.format(tat=15))
        a, _ = node(sim, "a", 0, 0.0), node(sim, "b", 1, x)
        sim.ping(a, 25e3)
        _, receptions = run(sim, 2.2)
        assert (heard(receptions, a)["arrival_ns"][0] < 2_000_000_000) == answered


def test_the_arrival_log_is_the_same_at_any_tick(config: Callable[..., LoadedConfig]) -> None:
    logs = []
    for tick in TICKS:
        sim = sea(config, tick, PLAIN, ANSWERS.format(tat=15))
        rng = np.random.default_rng(3)
        for k in range(8):
            node(
                sim,
                f"n{k}",
                k % 2,
                rng.uniform(-800, 800),
                rng.uniform(-3, 3),
                rng.uniform(-800, 800),
                rng.uniform(500, 1500),
            )
        sim.ping(0, 25e3)
        _, receptions = run(sim, 4.0)
        logs.append(np.sort(receptions[["arrival_ns", "id", "receiver", "outcome"]]))
    for log in logs[1:]:
        assert (log[["id", "receiver", "outcome"]] == logs[0][["id", "receiver", "outcome"]]).all()
        assert np.abs(log["arrival_ns"] - logs[0]["arrival_ns"]).max() <= 1


def test_a_silent_vehicle_changes_nobody_elses_log(config: Callable[..., LoadedConfig]) -> None:
    logs = []
    noisy = PLAIN + ' timing_noise="1 ms"'
    for extra in (False, True):
        sim = sea(config, "4 ms", noisy)
        a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, 700.0, 1.0)
        if extra:
            node(sim, "silent", 0, 300.0)
        logs.append([])
        for _ in range(5):
            sim.ping(a, 25e3)
            _, receptions = run(sim, 1.0)
            logs[-1] += receptions[receptions["receiver"] == b][["arrival_ns", "reported_ns"]].tolist()
    assert logs[0] == logs[1] and len(logs[0]) == 5
    assert {t != u for t, u in logs[0]} == {True}, "noise is there"


@pytest.mark.parametrize("tick", [SHORT, "4 ms", "100 ms"])
def test_levels(config: Callable[..., LoadedConfig], tick: str) -> None:
    for distance, loss in ((100, 40.5), (1000, 65.0), (5000, 98.979400)):
        assert reception.transmission_loss(distance, 20.0, 0.005) == pytest.approx(loss, abs=1e-6)
        sim = sea(config, tick, PLAIN)
        node(sim, "a", 0, 0.0)
        b = node(sim, "b", 0, distance)
        sim.ping(0, 25e3, 190.0)
        _, receptions = run(sim, 3.5)
        assert heard(receptions, b)["level"][0] == pytest.approx(190.0 - loss, abs=1e-6)
    sim = sea(config, tick, PLAIN, extra='absorption_model="thorp"')
    node(sim, "a", 0, 0.0)
    b = node(sim, "b", 0, 1000.0)
    sim.ping(0, 25e3, 190.0)
    assert heard(run(sim, 1.0)[1], b)["level"][0] == pytest.approx(190 - 60 - 5.8954, abs=1e-4)


@settings(deadline=None)  # the first call compiles
@given(st.floats(1, 150), st.floats(10, 30), st.floats(1e-5, 0.05))
def test_reach_is_where_the_loss_is(excess: float, spreading: float, alpha: float) -> None:
    assert reception.transmission_loss(
        reception.detection_range(excess, spreading, alpha), spreading, alpha
    ) == pytest.approx(excess, abs=1e-6)


def outcome(
    config: Callable[..., LoadedConfig],
    transducer: str,
    frequency: float = 25e3,
    level: float = 185.0,
    noise: str = "20 dB",
) -> Outcome:
    sim = sea(config, "20 ms", PLAIN, transducer, noise=noise)
    node(sim, "a", 0, 0.0)
    b = node(sim, "b", 1, 1000.0)
    sim.ping(0, frequency, level)
    _, receptions = run(sim, 1.0)
    (mine,) = receptions[receptions["receiver"] == b]
    return Outcome(int(mine["outcome"]))


def test_threshold_band_and_death(config: Callable[..., LoadedConfig]) -> None:
    at_receiver = 185.0 - 65.0
    for offset, expected in ((-0.01, Outcome.HEARD), (0.01, Outcome.BELOW_THRESHOLD)):
        t = PLAIN.replace('threshold="60 dB"', f'threshold="{at_receiver + offset} dB"')
        assert outcome(config, t) is expected
    assert outcome(config, PLAIN, frequency=9.99e3) is Outcome.OUT_OF_BAND
    assert outcome(config, PLAIN, frequency=10.01e3) is Outcome.HEARD
    for offset, expected in ((-0.01, Outcome.HEARD), (0.01, Outcome.FADED)):
        assert outcome(config, PLAIN, noise=f"{at_receiver + offset} dB") is expected


@pytest.mark.compiled
@pytest.mark.parametrize("tick", ["1 ms", "20 ms"])
def test_recharge(config: Callable[..., LoadedConfig], tick: str) -> None:
    """A query inside the recharge time gets no answer, one just after does."""
    slow = ANSWERS.format(tat=15).replace('recharge="0 s"', 'recharge="500 ms"')
    for gap, replies in ((0.50, 1), (0.52, 2)):
        sim = sea(config, tick, PLAIN, slow)
        a, _ = node(sim, "a", 0, 0.0), node(sim, "b", 1, 300.0)
        sim.ping(a, 25e3)
        run(sim, gap)
        sim.ping(a, 25e3)
        _, _receptions = run(sim, 1.0)
        sent = sim.channel.counters[0]
        assert sent == 2 + replies


def test_a_request_while_recharging_is_not_sent(config: Callable[..., LoadedConfig]) -> None:
    sim = sea(config, "4 ms", PLAIN.replace('recharge="0 s"', 'recharge="500 ms"'))
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, 100.0)
    sim.ping(a, 25e3)
    first, _ = run(sim, 0.1)
    sim.ping(a, 25e3)
    second, receptions = run(sim, 0.3)
    assert (first["outcome"][0], second["outcome"][0]) == (0, Outcome.NOT_SENT)
    assert len(heard(receptions, b)) == 0


def test_a_sending_node_is_deaf(config: Callable[..., LoadedConfig]) -> None:
    for x, expected in ((14.0, Outcome.TRANSMITTING), (16.0, Outcome.HEARD)):
        sim = sea(config, "4 ms", PLAIN)  # pulses of 10 ms last 15 m
        a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, x)
        sim.ping(a, 25e3)
        sim.ping(b, 25e3)
        _, receptions = run(sim, 0.1)
        assert [Outcome(int(o)) for o in receptions["outcome"]] == [expected, expected]


def test_deaf_in_recharge(config: Callable[..., LoadedConfig]) -> None:
    deaf = PLAIN.replace('recharge="0 s"', 'recharge="500 ms" deaf_in_recharge="yes"')
    sim = sea(config, "4 ms", PLAIN, deaf)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 300.0)
    sim.ping(a, 25e3)
    sim.ping(b, 25e3)
    _, receptions = run(sim, 0.4)
    assert receptions[receptions["receiver"] == b]["outcome"].tolist() == [Outcome.RECHARGING]


@pytest.mark.parametrize("tick", TICKS)
def test_arrivals_of_one_tick_come_in_order(config: Callable[..., LoadedConfig], tick: str) -> None:
    sim = sea(config, tick, PLAIN)
    node(sim, "a", 0, 0.0)
    rng = np.random.default_rng(1)
    for k, x in enumerate(rng.permutation(40)):
        node(sim, f"n{k}", 0, 200.0 + 0.5 * x)
    sim.ping(0, 25e3)
    _, receptions = run(sim, 0.3)
    times = receptions["arrival_ns"]
    assert len(times) == 40 and (np.diff(times) > 0).all()


def test_a_receiver_that_leaves_and_a_sender_that_leaves(config: Callable[..., LoadedConfig]) -> None:
    sim = sea(config, "4 ms", PLAIN)
    a, b, c = node(sim, "a", 0, 0.0), node(sim, "b", 0, 1000.0), node(sim, "c", 0, 1100.0)
    sim.ping(a, 25e3)
    run(sim, 0.2)
    sim.leave(b)
    sim.leave(a)
    _, receptions = run(sim, 1.0)
    got = {int(x["receiver"]): Outcome(int(x["outcome"])) for x in receptions}
    assert got == {b: Outcome.RECEIVER_LEFT, c: Outcome.HEARD}


@pytest.mark.parametrize("thrown", [[1], [0]])
def test_who_is_thrown_out_of_all_bounds_hears_nothing_and_is_not_heard(
    config: Callable[..., LoadedConfig], thrown: list[int]
) -> None:
    """It once heard at no time, answered at no time, and was never ready to send again."""
    sim = sea(config, "20 ms", PLAIN, ANSWERS.format(tat=5))
    for k, x in enumerate((0.0, 15.0, 30.0)):
        node(sim, f"n{k}", min(k, 1), x)
    sim.ping(0, 25e3)
    m, h = sim.channel.medium, sim.step_ns * 1e-9
    whole = m.places.copy()
    m.places[:, thrown] = np.nan
    advance_acoustics(sim.tick_executor.state()[1], 1, 0.0, h)
    sim.channel.collect()
    m.places[:] = whole
    sim.tick = 1
    sent, receptions = sim.take_signals()
    assert sent["source"].tolist() == [0], "nobody answers what cannot come"
    gone = receptions[receptions["arrival_ns"] == 20_000_000]
    assert set(gone["outcome"]) == {Outcome.FADED} and set(gone["receiver"]) == ({1} if thrown == [1] else {1, 2})
    _, receptions = run(sim, 0.1)
    assert (receptions["arrival_ns"] > 0).all()
    sim.ping(0, 25e3)
    sent, receptions = run(sim, 0.1)
    assert sorted(sent["source"]) == [0, 1, 2], "back in the water, all is as before"
    assert len(heard(receptions, 0)) == 2


@pytest.mark.compiled
def test_memory_and_live_signals_stay_bounded(config: Callable[..., LoadedConfig]) -> None:
    sim = sea(config, "20 ms", PLAIN, noise="100 dB")
    for k in range(6):
        node(sim, f"n{k}", 0, 100.0 * k)
    for _ in range(2000):
        sim.ping(0, 25e3, 150.0)
        sim.advance(1)
        sim.take_signals()
    shapes = [a.shape for a in sim.channel.medium]
    for _ in range(2000):
        sim.ping(0, 25e3, 150.0)
        sim.advance(1)
        sim.take_signals()
    assert [a.shape for a in sim.channel.medium] == shapes
    run(sim, 5.0)
    assert sim.channel.counters[2] == 0, "all signals are dead"


@pytest.mark.compiled
def test_many_signals_make_the_medium_grow(config: Callable[..., LoadedConfig]) -> None:
    loaded = config(
        '<time step="100 ms"/><shared vehicles="200"/><world density="1000 kg/m3"><bed depth="9000 m"/></world>'
        + GHOST.format(transducer=PLAIN, inner="")
    )
    sim = Simulation(loaded)
    rng = np.random.default_rng(0)
    for k in range(200):
        sim.enter(f"n{k}", "ghost", tuple(rng.uniform(1000, 2000, 3)))
    for k in range(200):
        sim.ping(k, 20e3 + k)
    sent, receptions = run(sim, 3.0)
    assert len(sent) == 200 and len(receptions) == 200 * 199
    assert (np.diff(np.concatenate([[0], receptions["arrival_ns"]])) >= 0).all()


def slow_twin(path: Callable[[float], np.ndarray], origin: np.ndarray, t0: float, c: float) -> float:
    """Arrival by bisection on the true track."""
    low, high = t0, t0 + 100.0
    for _ in range(200):
        mid = 0.5 * (low + high)
        if np.linalg.norm(path(mid) - origin) > c * (mid - t0):
            low = mid
        else:
            high = mid
    return 0.5 * (low + high)


@pytest.mark.parametrize("tick", ["4 ms", "20 ms"])
def test_a_turning_receiver_against_bisection(config: Callable[..., LoadedConfig], tick: str) -> None:
    """On a circle of 10 m at 2 m/s (0.4 m/s2) the straight line inside the tick errs by a dt^2/8 = 20 um."""
    sim = sea(config, tick, PLAIN)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, 700.0, 2.0)
    sim.fleet.body(b)[B.NU + 5] = 0.2
    sim.fleet.override_parameters(b, {P.MASS_INVERSE + k: 0.0 for k in range(36)})  # no forces: keep u and r, and turn
    sim.ping(a, 25e3)
    _, receptions = run(sim, 1.0)
    centre = np.array([700.0, 10.0, 1000.0])
    exact = slow_twin(
        lambda t: centre + 10.0 * np.array([math.sin(0.2 * t), -math.cos(0.2 * t), 0.0]),
        np.array([0.0, 0.0, 1000.0]),
        0.0,
        1500.0,
    )
    dt = sim.step_ns * 1e-9
    assert abs(heard(receptions, b)["arrival_ns"][0] * 1e-9 - exact) < 0.4 * dt**2 / 8 / 1500 + 2e-9


def test_four_candidates_stand_in_a_line_of_a_cache() -> None:
    """There are as many as signals times nodes: their size is the time of the medium."""
    assert medium_arrays.CANDIDATE.dtype.itemsize == 16
