"""Carrier sense: times counted by hand, random traffic against the union of all signals, and bodies that leave."""

from __future__ import annotations

import random
from typing import Any

import pytest

from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_world.config import load_text

THRESHOLD = 130.0
NODE = (
    "<buoy name='{name}' model='buoy' position='{x!r} {y!r} 20 m'><transducer recharge='0 s' threshold='{threshold} dB' {more}><clock "
    "offset='{offset} s'/><modem address='{address}' preamble='0 s' modulation='{modulation}'/></transducer></buoy>"
)


def sea(nodes: list[str], step: str = "100 ms", seed: int = 1) -> Simulation:
    text = (
        f"<wavesim><time step='{step}'/><world><bed depth='60 m'/></world><acoustics sound_speed='1500 m/s'/>"
        f"<fleet>{''.join(nodes)}</fleet></wavesim>"
    )
    sim = Simulation(load_text(text), seed)
    sim.enter_residents()
    return sim


def buoy(name: str, x: float, y: float = 0.0, sense: bool = True, offset: float = 0.0, modulation: str = "") -> str:
    more = "carrier_sense='yes'" if sense else ""
    address = ord(name[-1]) - ord("a") + 1
    return NODE.format(
        name=name, threshold=THRESHOLD, x=x, y=y, more=more, offset=offset, address=address, modulation=modulation
    )


def changes(sim: Simulation, name: str) -> list[float]:
    """The times in s, by the node's clock, at which its channel became busy, idle, busy, and so on."""
    found = sim.take_channel_states()
    found = found[found["receiver"] == sim.row_of(name)]
    assert found["busy"].tolist() == [1 - k % 2 for k in range(len(found))]
    return [t * 1e-9 for t in found["clock_ns"].tolist()]


def send(sim: Simulation, name: str, at: float) -> None:
    row = sim.row_of(name)
    assert row is not None
    sim.send(row, b"12345678", 0, at=round(at * 1e9))  # 0.1 s


def test_times_that_are_counted_by_hand() -> None:
    """Overlapping packets of another modulation, the node's own packet that ends in another, and one that is too weak."""
    sim = sea(
        [
            buoy("a", 0.0, offset=2.0),
            buoy("b", 75.0, sense=False, modulation="x"),
            buoy("c", -150.0, sense=False),
            buoy("d", 900.0),
        ]
    )
    send(sim, "b", 1.0)  # at a from 1.05 to 1.15 s
    send(sim, "c", 0.98)  # from 1.08 to 1.18 s: both are lost
    send(sim, "a", 3.2)  # on its own clock, which is 2 s ahead
    send(sim, "b", 1.2)  # from 1.25 to 1.35 s: a transmits
    send(sim, "d", 1.5)  # 900 m: 188 - 59.1 dB is below the threshold
    sim.advance(30)
    _, receptions = sim.take_signals()
    a = receptions["receiver"] == sim.row_of("a")
    assert receptions["outcome"][a].tolist() == [
        Outcome.FOREIGN,
        Outcome.COLLISION,
        Outcome.TRANSMITTING,
        Outcome.BELOW_THRESHOLD,
    ]
    assert changes(sim, "a") == pytest.approx([3.05, 3.18, 3.2, 3.35], abs=1e-6)


def union_of_signals(sent: Any, receptions: Any) -> dict[int, list[tuple[int, int]]]:
    """Return, for each row, the (time in ns, busy) of all changes, from the records of the log."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for s in sent:
        spans.setdefault(int(s["source"]), []).append((int(s["emission_ns"]), round(s["duration"] * 1e9)))
    for r in receptions:
        if r["level"] >= THRESHOLD:
            spans.setdefault(int(r["receiver"]), []).append((int(r["arrival_ns"]), round(r["duration"] * 1e9)))
    found = {}
    for row, own in spans.items():
        end, edges = -1, list[tuple[int, int]]()
        for start, length in sorted(own):
            if start > end:
                edges += [(end, 0), (start, 1)]
            end = max(end, start + length)
        found[row] = [*edges[1:], (end, 0)]
    return found


@pytest.mark.parametrize("step", ["10 ms", "100 ms"])
def test_random_traffic_against_the_union_of_all_signals(step: str) -> None:
    draw = random.Random(5)
    places = [(draw.uniform(-600.0, 600.0), draw.uniform(-600.0, 600.0)) for _ in range(6)]
    sim = sea([buoy(f"n{k}"[0] + "abcdef"[k], x, y, modulation="xy"[k % 2]) for k, (x, y) in enumerate(places)], step)
    for _ in range(60):
        send(sim, "n" + draw.choice("abcdef"), draw.uniform(1.0, 9.0))
    sim.advance(round(15e9) // sim.step_ns)
    sent, receptions = sim.take_signals()
    assert {Outcome.BELOW_THRESHOLD, Outcome.COLLISION, Outcome.TRANSMITTING} <= set(receptions["outcome"].tolist())
    expected = union_of_signals(sent[sent["outcome"] == Outcome.HEARD], receptions)
    states = sim.take_channel_states()
    assert len(states) > 100
    for row, wanted in expected.items():
        mine = states[states["receiver"] == row]
        assert mine["busy"].tolist() == [busy for _, busy in wanted]
        assert mine["time_ns"].tolist() == pytest.approx([t for t, _ in wanted], rel=0, abs=2)


def test_a_node_that_leaves_and_returns_starts_with_an_idle_channel() -> None:
    sim = sea([buoy("a", 0.0), buoy("b", 75.0, sense=False)])
    send(sim, "a", 1.05)  # both signals would still occupy the channel when it leaves
    send(sim, "b", 1.02)
    sim.advance(11)  # to 1.1 s
    assert changes(sim, "a") == [1.05]
    row = sim.row_of("a")
    assert row is not None
    sim.leave(row)
    assert sim.enter("a") == row
    send(sim, "b", 1.3)
    sim.advance(10)
    assert changes(sim, "a") == pytest.approx([1.35, 1.45], abs=1e-3)


def test_carrier_sense_changes_no_signal_and_is_off_by_default() -> None:
    found = []
    for sense in (False, True):
        sim = sea([buoy("a", 0.0, sense=sense), buoy("b", 75.0, sense=sense)])
        send(sim, "a", 1.0)
        send(sim, "b", 1.2)
        sim.advance(20)
        found.append([t.tobytes() for t in sim.take_signals()])
        assert len(sim.take_channel_states()) == (8 if sense else 0)
    assert found[0] == found[1]
