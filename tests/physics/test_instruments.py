"""Acoustic instruments: clocks, their errors, packets, modems, directions of arrival."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.physics.sea import PLAIN, heard, node, outcomes, run, sea
from wavesim_sdk import acoustics as onboard
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import quaternion
from wavesim_sdk.tables import Outcome, SignalKind
from wavesim_server import Simulation
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
TICKS = ("1 ms", "4 ms", "100 ms")
MODEM = '<modem address="{a}" frequency="25 kHz" bit_rate="1000" preamble="20 ms" payload="32"/>'


# ------------------------------------------------------------------ clocks, instruments, packets


@pytest.mark.compiled
def test_clocks(config: Make) -> None:
    """All times are those of the node's own clock; what is planned is planned by it."""
    clock = '<clock offset="2 ms" drift="50 ppm"/>'
    sim = sea(config, "4 ms", PLAIN, (PLAIN, clock))
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 1500.0)
    sim.ping(a, 25e3, at=10_000_000_000)
    sim.ping(b, 25e3, at=20_000_000_000)
    sent, receptions = run(sim, 25.0)
    assert sent["emission_ns"][0] == 10_000_000_000
    assert sent["clock_ns"][1] == 20_000_000_000
    assert sent["emission_ns"][1] == pytest.approx((20.0 - 0.002) / 1.00005 * 1e9, abs=1)
    (got,) = heard(receptions, b)
    assert got["reported_ns"] == pytest.approx((11.0 * 1.00005 + 0.002) * 1e9, abs=1)
    assert got["one_way"] == pytest.approx(1500.0 * (1.0 + 0.002 + 50e-6 * 11.0), abs=1e-5)
    assert got["arrival_ns"] == 11_000_000_000


def test_random_clocks_differ_and_belong_to_the_name(config: Make) -> None:
    def clocks(extra: bool) -> dict[str, tuple[float, float]]:
        sim = sea(config, "4 ms", (PLAIN, '<clock offset_deviation="1 ms" drift_deviation="10 ppm"/>'))
        for k in range(40 + extra):
            node(sim, f"n{(k - 1) % 41}", 0, 100.0 * k)
        return {n.name: n.clock for n in sim.channel.nodes.values()}

    first, second = clocks(False), clocks(True)
    assert all(first[n] == second[n] for n in first)
    offsets, drifts = zip(*second.values(), strict=True)
    assert 0.7e-3 < np.std(offsets) < 1.4e-3 and 7e-6 < np.std(drifts) < 14e-6


@pytest.mark.parametrize("tick", TICKS)
def test_a_pinger_keeps_its_own_time(config: Make, tick: str) -> None:
    sim = sea(
        config,
        tick,
        (PLAIN, '<pinger frequency="25 kHz" period="1 s" offset="250 ms"/><clock offset="-100 ms" drift="-1000 ppm"/>'),
    )
    node(sim, "a", 0, 0.0)
    sent, _ = run(sim, 5.0)
    own = 0.25 + np.arange(5)
    assert sent["clock_ns"].tolist() == [round(t * 1e9) for t in own]
    assert sent["emission_ns"] * 1e-9 == pytest.approx((own + 0.1) / 0.999, abs=1e-9)


@pytest.mark.parametrize("tick", TICKS)
def test_a_pinger_repeats_recorded_times(config: Make, tick: str) -> None:
    own = (0.5, 0.55, 2.0, 7000.0)
    pinger = f'<pinger frequency="25 kHz">{" ".join(map(str, own))}</pinger><clock offset="-100 ms" drift="1000 ppm"/>'
    sim = sea(config, tick, (PLAIN, pinger))
    node(sim, "a", 0, 0.0)
    sent, _ = run(sim, 3.0)
    assert sent["clock_ns"].tolist() == [round(t * 1e9) for t in own[:3]]
    assert sent["emission_ns"] * 1e-9 == pytest.approx((np.array(own[:3]) + 0.1) / 1.001, abs=1e-9)
    node(sim, "b", 0, 100.0)  # it comes after three of its times
    assert len(run(sim, 3.0)[0]) == 0


@pytest.mark.parametrize(
    ("pinger", "message"),
    [
        ('<pinger frequency="25 kHz"/>', "either `period` or the times"),
        ('<pinger frequency="25 kHz" period="1 s">1 2</pinger>', "either `period` or the times"),
        ('<pinger frequency="25 kHz">2 1</pinger>', "ascending order"),
        ('<pinger frequency="25 kHz" offset="1 s">1 2</pinger>', "has no effect on given times"),
        ('<pinger frequency="25 kHz" period="1 ms"/>', "least period is 0.01 s"),
    ],
)
def test_a_pinger_without_a_plan_is_refused(config: Make, pinger: str, message: str) -> None:
    sim = sea(config, "4 ms", (PLAIN, pinger))
    with pytest.raises((ConfigError, ValueError), match=message):
        node(sim, "a", 0, 0.0)


def test_levels_fluctuate_and_detections_with_them(config: Make) -> None:
    """The level has the stated deviation, and the share of detections is that of a normal distribution."""
    level = 200.0 - 20.0 * math.log10(1500.0) - 0.005 * 1500.0
    poor = PLAIN.replace('threshold="60 dB"', f'threshold="{level + 3.0} dB"') + ' fluctuation="6 dB"'
    sim = sea(config, "100 ms", PLAIN, poor)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 1500.0)
    for k in range(2000):
        sim.ping(a, 25e3, at=k * 20_000_000)
    mine = run(sim, 43.0)[1]
    mine = mine[mine["receiver"] == b]
    assert (mine["outcome"] == Outcome.HEARD).mean() == pytest.approx(0.3085, abs=0.03)
    assert np.mean(mine["level"]) == pytest.approx(level, abs=0.4) and np.std(mine["level"]) == pytest.approx(
        6.0, rel=0.05
    )


@pytest.mark.compiled
def test_the_instruments_errors_have_their_statistics(config: Make) -> None:
    poor = (
        PLAIN
        + ' timing_noise="1 ms" level_noise="2 dB" doppler_noise="3 Hz" drop_out="0.1" outlier="0.2" outlier_time="1 s"'
    )
    sim = sea(config, "100 ms", PLAIN, poor)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 15.0)
    for k in range(4000):
        sim.ping(a, 25e3, at=k * 20_000_000)
    _, receptions = run(sim, 82.0)
    mine = receptions[receptions["receiver"] == b]
    assert len(mine) == 4000
    assert (mine["outcome"] == Outcome.DROPPED).mean() == pytest.approx(0.1, abs=0.015)
    good = mine[mine["outcome"] == Outcome.HEARD]
    late = (good["reported_ns"] - good["arrival_ns"]) * 1e-9
    assert (late > 0.01).mean() == pytest.approx(0.2 * 0.99, abs=0.02)
    assert np.std(late[late < 0.005]) == pytest.approx(1e-3, rel=0.05)
    assert np.std(good["heard_level"] - good["level"]) == pytest.approx(2.0, rel=0.05)
    assert np.std(good["heard_frequency"] - 25e3) == pytest.approx(3.0, rel=0.05)


@pytest.mark.compiled
def test_packets(config: Make) -> None:
    """Duration from preamble and bits; payload, addresses; bit errors lose 1 - (1 - p)^n of the packets."""
    modems = [(PLAIN, MODEM.format(a=k).replace("/>", ' bit_error="0.001"/>')) for k in (7, 9)]
    sim = sea(config, "20 ms", *modems)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 300.0)
    for _ in range(1000):
        sim.send(a, b"0123456789abcdef", to=9)
        sim.advance(20)
    sent, receptions = sim.take_signals()
    assert sent["duration"][0] == pytest.approx(0.02 + 16 * 8 / 1000)
    assert (bytes(sent["payload"][0]), sent["payload_bytes"][0]) == (b"0123456789abcdef", 16)
    mine = receptions[receptions["receiver"] == b]
    assert (mine["outcome"] == Outcome.CORRUPT).mean() == pytest.approx(1 - 0.999**128, abs=0.03)
    assert set(mine["from_address"]) == {7} and set(mine["to_address"]) == {9} and set(mine["kind"]) == {1}


def test_a_sender_may_state_the_length_of_its_signal(config: Make) -> None:
    """As modems with several data rates do. It then occupies transducer and channel that long."""
    sim = sea(config, "20 ms", *[(PLAIN, MODEM.format(a=k)) for k in (7, 9)])
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 300.0)
    sim.send(a, b"slow", to=9, duration=3.2)
    sim.ping(a, 25e3, at=4_000_000_000, duration=0.5)
    sim.ping(b, 25e3, at=2_000_000_000)
    sim.ping(a, 25e3, at=5_000_000_000)
    sent, receptions = run(sim, 7.0)
    assert sent["duration"].tolist() == [3.2, 0.01, 0.5, 0.01]
    assert receptions["duration"][receptions["receiver"] == b].tolist() == [3.2, 0.5, 0.01]
    outcomes = {int(r["id"]): Outcome(int(r["outcome"])) for r in receptions}
    assert (outcomes[1], outcomes[2], outcomes[3]) == (Outcome.TRANSMITTING, Outcome.TRANSMITTING, Outcome.HEARD)
    for length in (0.0, 61.0):
        with pytest.raises(ValueError, match=r"duration .* s is out of range"):
            sim.send(a, b"x", duration=length)


@pytest.mark.parametrize("tick", TICKS)
def test_modems_range_each_other(config: Make, tick: str) -> None:
    modems = [(PLAIN + ' turn_around="50 ms"', MODEM.format(a=k)) for k in (3, 4, 5)]
    sim = sea(config, tick, *modems)
    rows = [node(sim, f"m{k}", k, 400.0 * k, 1.0 if k == 0 else 0.0) for k in range(3)]
    sim.range_request(rows[0], 4)
    sent, receptions = run(sim, 1.5)
    assert [(int(s["source"]), SignalKind(int(s["kind"]))) for s in sent] == [
        (rows[0], SignalKind.RANGE_REQUEST),
        (rows[1], SignalKind.RANGE_REPLY),
    ]
    (reply,) = heard(receptions, rows[0])
    assert (reply["from_address"], reply["to_address"], reply["query"]) == (4, 3, 1)
    t = reply["arrival_ns"] * 1e-9
    assert reply["measured"] == pytest.approx((t - 0.05) * 750.0, abs=2e-6)
    assert reply["measured"] == pytest.approx(400.0 - 0.5 * t, abs=1e-3), "the range at mid-time"


def test_a_range_request_may_have_a_payload(config: Make) -> None:
    """Its reply acknowledges it: a modem that loses the payload does not reply."""
    modems = [(PLAIN, MODEM.format(a=k)) for k in (3, 4)]
    modems[1] = (PLAIN, MODEM.format(a=4).replace("/>", ' bit_error="0.01"/>'))
    sim = sea(config, "4 ms", *modems)
    rows = [node(sim, f"m{k}", k, 300.0 * k) for k in range(2)]
    for k in range(40):
        sim.range_request(rows[0], 4, at=k * 10**9, payload=bytes((k + 1,)) * 10, duration=None if k else 0.3)
    sent, receptions = run(sim, 42.0)
    asked = sent[sent["source"] == rows[0]]
    assert asked["duration"].tolist() == [0.3] + [pytest.approx(0.02 + 80 / 1000)] * 39
    assert [bytes(s["payload"][:10]) for s in asked[:3]] == [bytes((k + 1,)) * 10 for k in range(3)]
    there = receptions[receptions["receiver"] == rows[1]]
    good = set(there["id"][there["outcome"] == Outcome.HEARD].tolist())
    replies = heard(receptions, rows[0])
    assert {int(r["query"]) for r in replies} == good and 5 < len(good) < 35
    assert [r["measured"] for r in replies] == pytest.approx([300.0] * len(replies), abs=1e-6)


def test_modems_of_different_makes_do_not_understand_each_other_but_interfere(config: Make) -> None:
    def modem(address: int, make: str) -> tuple[str, str]:
        return PLAIN, MODEM.format(a=address).replace("/>", f' modulation="{make}"/>')

    sim = sea(config, "20 ms", modem(1, "a"), modem(2, "a"), modem(2, "b"), (PLAIN, ""))
    sender, friend, foreigner, ear = (node(sim, n, k, 300.0 * k) for k, n in enumerate(("s", "f", "g", "e")))
    sim.send(sender, b"hello", to=2)
    _, receptions = run(sim, 2.0)
    assert outcomes(receptions, friend) == [Outcome.HEARD]
    assert outcomes(receptions, foreigner) == [Outcome.FOREIGN], "it has the same address"
    assert outcomes(receptions, ear) == [Outcome.FOREIGN], "a transducer without a modem"
    sim.range_request(sender, 2)
    sent, _ = run(sim, 3.0)
    assert set(sent["source"][1:]) == {friend}, "only the modem of the same make answers"
    sim.send(sender, b"hello", to=2)
    sim.send(foreigner, b"as loud, and as near", to=9)  # 300 m from the friend on the other side
    _, receptions = run(sim, 2.0)
    both = receptions[(receptions["receiver"] == friend) & (receptions["source"] == sender)]
    assert both["outcome"].tolist() == [Outcome.COLLISION]
    sim.ping(sender, 25e3)
    _, receptions = run(sim, 2.0)
    assert set(receptions["outcome"]) == {Outcome.HEARD}, "a pulse has no modulation"


def test_what_a_node_cannot_send_is_refused_by_name(config: Make) -> None:
    sim = sea(config, "4 ms", PLAIN, (PLAIN, MODEM.format(a=1)))
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, 100.0)
    for call, text in (
        (lambda: sim.ping(a, 0.5), "frequency"),
        (lambda: sim.ping(a, 25e3, 300.0), "level"),
        (lambda: sim.ping(a, 25e3, None, None, 70000), "code 70000 is out of range"),
        (lambda: sim.send(a, b"x"), "no modem"),
        (lambda: sim.send(b, bytes(33)), "33 bytes; the maximum for this modem is 32"),
        (lambda: sim.send(b, b"x", -1), "address"),
        (lambda: sim.range_request(b, 0), "address of one"),
        (lambda: sim.ping(a, 25e3, at=10**14), "at most one hour"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    assert len(run(sim, 0.1)[0]) == 0


# ------------------------------------------------------------------ directions

PHONES = ("0.1 0 0", "-0.1 0 0", "0 0.1 0", "0 -0.1 0", "0 0 0.1")


def head(phones: tuple[str, ...], extra: str = "") -> str:
    return f"<head {extra}>" + "".join(f'<hydrophone position="{p} m"/>' for p in phones) + "</head>"


@pytest.mark.parametrize("phones", [PHONES, PHONES[:4]])
def test_a_usbl_head_sees_where_sound_comes_from(config: Make, phones: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        sim = sea(config, "20 ms", PLAIN, (PLAIN, head(phones)), world='<bed depth="9000 m"/>')
        p = rng.uniform(-1, 1, 3)
        p[2] = abs(p[2]) + 0.3  # a plane head looks down
        p *= 2000.0 / np.linalg.norm(p)
        attitude = (rng.uniform(-0.2, 0.2), rng.uniform(-0.2, 0.2), rng.uniform(-3, 3))
        a = node(sim, "a", 0, float(p[0]), 0.0, float(p[1]), 1000.0 + float(p[2]))
        b = sim.enter("b", "ghost1", (0.0, 0.0, 1000.0), attitude)
        sim.ping(a, 25e3)
        _, receptions = run(sim, 2.0)
        (got,) = heard(receptions, b)
        bearing = onboard.direction_of_arrival(float(got["azimuth"]), float(got["elevation"]))
        from wavesim_sdk.frames import rotation

        found = rotation(quaternion(*attitude)) @ bearing
        # the wave front is curved: over 0.1 m at 2000 m that is 2.5e-5 rad
        assert np.linalg.norm(found - p / np.linalg.norm(p)) < 6e-5


def test_a_plane_head_errs_with_the_sound_speed_that_it_assumes(config: Make) -> None:
    """cos(elevation) is measured in proportion to the assumed speed: 1 % gives cot(e) 0.01 rad."""
    sim = sea(
        config, "20 ms", PLAIN, (PLAIN, head(PHONES[:4], 'sound_speed="1515 m/s"')), world='<bed depth="9000 m"/>'
    )
    a = node(sim, "a", 0, 1000.0, 0.0, 0.0, 2000.0)
    b = sim.enter("b", "ghost1", (0.0, 0.0, 1000.0))
    sim.ping(a, 25e3)
    (got,) = heard(run(sim, 2.0)[1], b)
    assert got["elevation"] == pytest.approx(math.acos(1.01 * math.cos(math.pi / 4)), abs=1e-4)
    assert got["azimuth"] == pytest.approx(0.0, abs=1e-6)


def test_times_between_hydrophones_while_the_vehicle_turns(config: Make) -> None:
    """10 ns between the hydrophones of a head that turns at 0.5 rad/s, at 100 ms ticks: 1.5e-4 rad over 0.1 m."""
    bearings = []
    for tick in ("1 ms", "100 ms"):
        sim = sea(config, tick, PLAIN, (PLAIN, head(PHONES)), world='<bed depth="9000 m"/>')
        a = node(sim, "a", 0, 1000.0, 0.0, 0.0, 1200.0)
        b = sim.enter("b", "ghost1", (0.0, 0.0, 1000.0))
        sim.set_pose(b, velocity=(0.0, 0.0, 0.0, 0.0, 0.0, 0.5))
        sim.ping(a, 25e3)
        (got,) = heard(run(sim, 2.0)[1], b)
        bearings.append((float(got["azimuth"]), float(got["elevation"])))
        t = got["arrival_ns"] * 1e-9
        assert got["azimuth"] == pytest.approx(-0.5 * t, abs=1e-4)
    assert np.abs(np.subtract(*bearings)).max() < 5e-6


def test_noise_of_the_hydrophones_spreads_the_bearing(config: Make) -> None:
    """Four hydrophones on a circle of radius a: sigma_azimuth = c sigma_t/(a sqrt(2)) for a distant source abeam."""
    sim = sea(config, "20 ms", PLAIN, (PLAIN, head(PHONES[:4], 'timing_noise="1 us"')), world='<bed depth="9000 m"/>')
    a, b = node(sim, "a", 0, 500.0), sim.enter("b", "ghost1", (0.0, 0.0, 1000.0))
    for k in range(1500):
        sim.ping(a, 25e3, at=k * 20_000_000)
    (got,) = (heard(run(sim, 31.0)[1], b),)
    assert len(got) == 1500
    assert np.std(got["azimuth"]) == pytest.approx(1500.0 * 1e-6 / (0.1 * math.sqrt(2.0)), rel=0.07)


def test_an_offset_from_range_and_bearing(config: Make) -> None:
    tag = PLAIN + ' query="25 kHz" reply="26 kHz" turn_around="15 ms"'
    sim = sea(config, "20 ms", tag, (PLAIN, head(PHONES)), world='<bed depth="9000 m"/>')
    node(sim, "tag", 0, 300.0, 0.0, -400.0, 1100.0)
    b = sim.enter("b", "ghost1", (0.0, 0.0, 1000.0), (0.1, -0.1, 2.0))
    sim.ping(b, 25e3)
    (got,) = heard(run(sim, 2.0)[1], b)
    from wavesim_sdk.wire.items import Reception

    seen = Reception(
        0, 2, 1, 0, 0, 0, 0, 26e3, 100.0, 40.0, float(got["measured"]), float(got["azimuth"]), float(got["elevation"])
    )
    offset = onboard.usbl_offset(seen, quaternion(0.1, -0.1, 2.0))
    assert offset is not None
    assert offset == pytest.approx([300.0, -400.0, 100.0], abs=0.05)


def test_ranges_from_times_and_a_speed_from_the_frequency(config: Make) -> None:
    """The helpers for on-board software against the true geometry: a tag that replies, heard from a vehicle that nears it."""
    tag = PLAIN + ' query="25 kHz" reply="26 kHz" turn_around="15 ms"'
    sim = sea(config, "20 ms", tag, PLAIN, world='<bed depth="9000 m"/>')
    node(sim, "tag", 0, 600.0)
    b = sim.enter("b", "ghost1", (0.0, 0.0, 1000.0))
    sim.set_pose(b, velocity=(3.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    sim.ping(b, 25e3)
    (got,) = heard(run(sim, 2.0)[1], b)
    arrival = int(got["arrival_ns"])
    middle = 600.0 - 3.0 * 0.5 * arrival * 1e-9
    assert onboard.two_way_range(0, arrival, 0.015, 1500.0) == pytest.approx(middle, abs=0.03)
    reply_sent = arrival - round((600.0 - 3.0 * arrival * 1e-9) / 1500.0 * 1e9)
    assert onboard.one_way_range(reply_sent, arrival, 1500.0) == pytest.approx(600.0 - 3.0 * arrival * 1e-9, abs=1e-3)
    from wavesim_sdk.wire.items import Reception

    seen = Reception(0, 2, 1, 0, 0, 0, 0, float(got["heard_frequency"]), 100.0, 40.0, None, None, None)
    assert onboard.doppler_speed(seen, 26e3, 1500.0) == pytest.approx(3.0, rel=1e-3)


def test_the_simulation_goes_on_when_a_node_leaves_in_the_middle_of_a_reception(config: Make) -> None:
    sim = sea(config, "4 ms", PLAIN)
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 0, 15.0)
    sim.ping(a, 25e3)
    sim.advance(4)
    sim.leave(b)
    assert isinstance(sim, Simulation)
    assert node(sim, "c", 0, 30.0) == b
    _, receptions = run(sim, 0.1)
    assert outcomes(receptions, b) == [Outcome.RECEIVER_LEFT]
    sim.ping(a, 25e3)
    assert outcomes(run(sim, 0.1)[1], b) == [Outcome.HEARD]
