"""Fronts at hydrophones: times and rates against closed forms, levels and phases against the events of the medium."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.courses import ELEMENTS, HYDROPHONE, Course, Courses, arrival, image, world
from tests.physics.volume_sea import volume
from wavesim_sdk.tables import Outcome
from wavesim_server import Lab, Simulation
from wavesim_server.acoustics.propagation_model import PropagationModel
from wavesim_world.config import load_text
from wavesim_world.ocean import sound

LEVER = np.array([0.5, 0.0, 0.1])
CIRCLES = {
    "source": Course((0.0, 0.0, 20.0), (1.0, 2.0, 0.1), 2.0, 1.0),
    "listener": Course((150.0, 40.0, 31.0), (-2.0, 0.5, -0.2), 2.0, 1.0),
}
STRAIGHT = {
    "source": Course((0.0, 0.0, 20.0), (2.0, 1.0, 0.0)),
    "listener": Course((150.0, 0.0, 31.0), (-3.0, 0.5, 0.3)),
}


def exact(courses: dict[str, Course], path: int, element: int, emission: float, depth: float = 60.0) -> float:
    lever = LEVER + ELEMENTS[element]
    leaves = image(courses["source"].point(emission, (0.0, 0.0, 0.0)), path, depth)
    return arrival(leaves, lambda t: courses["listener"].point(t, lever), emission)


def fronts_of(courses: dict[str, Course], loaded: Any, seconds: float = 0.4) -> Any:
    lab = Courses(loaded, courses)
    lab.sim.ping(0, 25e3)
    lab.advance(seconds)
    return lab.sim.take_fronts()


@pytest.mark.parametrize(
    ("step", "courses"),
    [("20 ms", CIRCLES), pytest.param("1 ms", CIRCLES, marks=pytest.mark.compiled), ("20 ms", STRAIGHT)],
)
def test_times_and_rates_equal_the_closed_form(step: str, courses: dict[str, Course]) -> None:
    batch = fronts_of(courses, world(step))
    w, fronts = batch.waveforms[0], batch.fronts
    assert (w["emission"], w["duration"], w["frequency"], w["source_level"]) == (0.0, 0.07, 25e3, 190.0)
    for path in (0, 2, 3, 4, 5):
        of = fronts[fronts["path"] == path]
        assert of["number"].tolist() == [0, 1, 2, 3, 4] and of["last"].tolist() == [0, 0, 0, 0, 1]
        assert of["emission"] == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.07], abs=1e-15)
        assert np.isnan(of["times"][:, 3:]).all() and np.isnan(of["rates"][:, 3:]).all()
        for f in of:
            te = float(f["emission"])
            assert f["arrival"] == pytest.approx(exact(courses, path, 0, te), abs=1e-9)
            for k in range(3):
                assert f["times"][k] == pytest.approx(exact(courses, path, k, te), abs=1e-8 if k == 2 else 1e-9)
                if te > 0.0:
                    around = [exact(courses, path, k, te + h) for h in (-1e-3, 1e-3)]
                    rate = 2e-3 / (around[1] - around[0])
                    assert f["rates"][k] == pytest.approx(rate, abs=1e-8 if k == 2 else 1e-9)


def test_levels_and_phases_equal_those_of_the_medium() -> None:
    """The transducer of the listener is where the hydrophone is, so its events have the same times and levels."""
    beam = '<beam pattern="piston" width="60 deg" axis="1 0.3 0"/>'
    lab = Courses(world(beam=beam), CIRCLES)
    lab.sim.ping(0, 25e3)
    lab.advance(0.4)
    _, events = lab.sim.take_signals()
    fronts = lab.sim.take_fronts().fronts
    first = fronts[fronts["number"] == 0]
    assert len(first) == len(events) == 5
    assert set(events["outcome"]) == {Outcome.HEARD, Outcome.ECHO}
    first, events = first[np.argsort(first["arrival"])], events[np.argsort(events["arrival_ns"])]
    assert np.abs(first["arrival"] - events["arrival_ns"] * 1e-9).max() < 0.51e-9
    for of, name in ((first["level"], "level"), (first["length"], "range")):
        assert of == pytest.approx(events[name], abs=1e-12)
    assert first["rates"][:, 0] * 25e3 - 25e3 == pytest.approx(events["doppler"], abs=1e-6)
    assert first["surface"].tolist() == events["surface"].tolist()
    assert first["bottom"].tolist() == events["bottom"].tolist()
    for f in first:
        source = CIRCLES["source"].point(0.0, (0.0, 0.0, 0.0))
        listener = CIRCLES["listener"].point(float(f["arrival"]), LEVER)
        found = PropagationModel(world()).arrivals(tuple(source), tuple(listener), 25e3)
        alike = [a for a in found if a["surface"] == f["surface"] and a["bottom"] == f["bottom"]]
        nearest = min(alike, key=lambda a: abs(float(a["length"] - f["length"])))
        assert f["phase"] == pytest.approx(float(nearest["phase"]), abs=1e-9)


DEPTHS = np.linspace(0.0, 60.0, 7)
SPEEDS = np.array([1512.0, 1511.0, 1507.0, 1502.0, 1500.0, 1499.5, 1499.0])


@pytest.mark.parametrize("water", ["layers", pytest.param("volume", marks=pytest.mark.compiled)])
def test_in_water_with_a_profile(water: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times and levels are those of the events; a search for the rays to each element gives its times; the difference
    of successive arrivals gives the rates.
    """
    courses = {"source": Course((0.0, 0.0, 20.0), (2.0, 1.0, 0.1)), "listener": Course((250.0, 60.0, 31.0))}
    (tmp_path / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in zip(DEPTHS, SPEEDS, strict=True)))
    parts: dict[str, Any] = {"order": 1, "folder": tmp_path, "acoustics": 'profile="file" file="c.txt"'}
    if water == "volume":
        grid = volume(lambda n, e, z: np.interp(z, DEPTHS, SPEEDS), DEPTHS, (100.0, 100.0), 400.0)
        monkeypatch.setattr(sound, "sound_speed_volume", lambda *_: grid)
        parts["acoustics"] = ""
    loaded = world(**parts)
    lab = Courses(loaded, courses)
    lab.sim.ping(0, 25e3)
    lab.advance(0.4)
    fronts, (_, events) = lab.sim.take_fronts().fronts, lab.sim.take_signals()
    first = fronts[fronts["number"] == 0]
    assert len(first) == len(events) >= 3
    events = events[np.argsort(events["arrival_ns"])]
    assert np.abs(first["arrival"] - events["arrival_ns"] * 1e-9).max() < 0.6e-9
    assert first["level"] == pytest.approx(events["level"], abs=1e-9)
    model = PropagationModel(loaded)
    for f in first:
        for k, tolerance in ((0, 1e-9), (1, 2e-8)):
            place = courses["listener"].point(0.0, LEVER + ELEMENTS[k])
            found = model.arrivals((0.0, 0.0, 20.0), tuple(place), 25e3)
            times = found["time"][(found["surface"] == f["surface"]) & (found["bottom"] == f["bottom"])]
            assert np.abs(times - f["times"][k]).min() < tolerance
        of = fronts[fronts["path"] == f["path"]]
        for before, here, after in zip(of[:-2], of[1:-1], of[2:-1], strict=False):
            for k in (0, 1):
                rate = (after["emission"] - before["emission"]) / (after["times"][k] - before["times"][k])
                assert here["rates"][k] == pytest.approx(rate, abs=1e-9 if k == 0 else 2e-8)


def ring_world(hydrophone: str) -> Any:
    """Return a world in which two vehicles ping, with echoes, around an obstacle."""
    return world(
        "20 ms",
        1,
        world='<current north="0.2 m/s"/><obstacles><pier position="150 3 30 m" radius="2 m" height="60 m"/></obstacles>',
        transducer='source_level="185 dB" pulse="100 ms"',
        hydrophone=hydrophone,
    )


def entered(loaded: Any) -> Simulation:
    sim = Simulation(loaded)
    sim.enter("source")
    sim.enter("listener")
    sim.command(0, {"propeller": 12.0})
    return sim


def test_hydrophones_change_nothing_else() -> None:
    records, states = [], []
    for hydrophone in ("", HYDROPHONE):
        sim = entered(ring_world(hydrophone))
        sim.ping(0, 25e3)
        sim.advance(10)
        sim.ping(1, 24e3)
        sim.advance(30)
        records.append([r.tobytes() for r in sim.take_signals()])
        states.append((sim.state().tobytes(), sim.actuation().tobytes(), sim.channel.counters))
        count = len(sim.take_fronts().fronts)
    assert records[0] == records[1] and states[0] == states[1]
    assert count > 0


def test_a_snapshot_in_the_middle_of_an_emission_continues_to_the_same_bits() -> None:
    sim = entered(ring_world(HYDROPHONE))
    sim.ping(0, 25e3)
    sim.advance(14)  # fronts in transit, others received, and some not emitted yet
    before = sim.take_fronts()
    snapshot = sim.snapshot()
    sim.advance(20)
    after = sim.take_fronts()
    assert before.is_restarted and not after.is_restarted and len(before.fronts) and len(after.fronts)
    other = entered(ring_world(HYDROPHONE))
    for again in (sim, other):
        again.advance(3)
        again.restore(snapshot)
        batch = again.take_fronts()
        assert batch.is_restarted and batch.time_ns == snapshot.tick * snapshot.step_ns
        assert batch.waveforms.tobytes() == before.waveforms.tobytes()
        assert batch.fronts.tobytes() == before.fronts.tobytes(), "a reader continues from the recent fronts"
        again.advance(20)
        assert again.take_fronts().fronts.tobytes() == after.fronts.tobytes()


def test_a_source_that_leaves_emits_the_rest_of_its_signal() -> None:
    sim = entered(world("20 ms", 0, transducer='source_level="185 dB" pulse="100 ms"'))
    sim.ping(0, 25e3)
    sim.advance(3)
    sim.leave(0)
    assert sim.enter("source") == 0
    sim.set_pose(0, position=(0.0, 40.0, 20.0))
    sim.advance(20)
    fronts = sim.take_fronts().fronts
    assert fronts["number"].tolist() == [0, 1, 2, 3, 4, 5] and fronts["last"].tolist() == [0, 0, 0, 0, 0, 1]
    assert np.ptp(fronts["length"]) < 0.5, "not from the place of the body that now has its row"


def test_an_obstacle_stops_the_fronts() -> None:
    pier = '<obstacles><pier position="75 20 30 m" radius="2 m" height="60 m"/></obstacles>'
    there = [len(fronts_of(STRAIGHT, world(order=0, world=w)).fronts) for w in ("", pier)]
    blocked = {**STRAIGHT, "listener": Course((150.0, 40.0, 31.0))}
    assert there == [5, 5]
    assert len(fronts_of(blocked, world(order=0, world=pier)).fronts) == 0


def test_a_body_hears_itself_at_the_distance_of_its_hydrophone() -> None:
    lab = Courses(world(order=0), CIRCLES)
    lab.sim.ping(1, 25e3)
    lab.advance(0.2)
    waveforms, fronts, *_ = lab.sim.take_fronts()
    assert fronts["arrival"] == pytest.approx(
        fronts["emission"], abs=1e-15
    )  # the transducer is where the hydrophone is
    for k in (1, 2):
        distance = np.linalg.norm(ELEMENTS[k])
        assert fronts["times"][:, k] - fronts["emission"] == pytest.approx(distance / 1500.0, abs=1e-5)
    assert fronts["level"] == pytest.approx(waveforms["source_level"][0] - waveforms["absorption"][0], abs=1e-9)


def test_a_long_signal_far_away_needs_more_room() -> None:
    courses = {"source": Course((0.0, 0.0, 20.0)), "listener": Course((3000.0, 0.0, 20.0))}
    lab = Courses(world(order=1, transducer='source_level="220 dB" pulse="2 s"'), courses)
    lab.sim.ping(0, 10e3)
    lab.advance(4.2)
    fronts = lab.sim.take_fronts().fronts
    for path in (0, 2, 3):
        of = fronts[fronts["path"] == path]
        assert of["number"].tolist() == list(range(101)) and of["last"].sum() == 1
        assert of["arrival"] - of["emission"] == pytest.approx(of["length"] / 1500.0, abs=1e-9)
    hydrophones = lab.sim.channel.hydrophones
    assert hydrophones is not None and len(hydrophones.medium.signals) > 64
    assert int(hydrophones.medium.counters[0].live) == 0, "no front stays in the medium"


def test_hydrophones_have_the_rows_of_the_instrument_table() -> None:
    """Bodies come and go; the place of a hydrophone is the row of its values."""
    sensors = "".join(f'<hydrophone name="h{k}"/>' for k in range(3))
    vehicles = "".join(
        f'<vehicle name="v{k}" model="lauv" client="optional" position="{20 * k} 0 20 m"><sensors>{sensors}</sensors></vehicle>'
        for k in range(3)
    )
    lab = Lab(load_text(f'<wavesim><shared vehicles="3"/><fleet>{vehicles}</fleet></wavesim>'))
    rows = {f"v{k}": lab.enter(f"v{k}") for k in (2, 0, 1)}
    lab.leave(rows["v0"])
    lab.leave(rows["v2"])
    rows |= {name: lab.enter(name) for name in ("v2", "v0")}
    hydrophones = lab.channel.hydrophones
    assert hydrophones is not None
    for row in rows.values():
        assert hydrophones._places[row] == [e.place for e in lab.instruments.installed(row)]
