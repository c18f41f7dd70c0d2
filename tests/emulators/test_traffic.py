"""Radar and AIS without a server: tracks against the limits of IMO MSC.192(79), reports against clock, steps and horizon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyais
import pytest

from tests.emulators.bench import STEP_NS, Bench, bench
from wavesim_devices import ais as encoder
from wavesim_emulators.ais import AisEmulator
from wavesim_emulators.radar import RadarEmulator, horizon
from wavesim_sdk import ais
from wavesim_sdk.guidance.encounters import closest_approach
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
NM, KNOT = 1852.0, 1852.0 / 3600.0
SCAN = 600  # ticks of 4 ms: 2.4 s


def radar(config: Make, attributes: str = "", world: str = "", bodies: int = 2, model: str = "ship") -> Bench:
    return bench(
        config,
        RadarEmulator,
        f'position="0 0 -20 m" {attributes}',
        world=world,
        bodies=bodies,
        period=SCAN,
        model=model,
    )


def sail(b: Bench, starts: list[Any], courses: list[float], speeds: list[float], scans: range) -> Any:
    """Put the bodies where they are after so many scans; returns the list of the first one's radar."""
    out = None
    for k in scans:
        for row, ((n, e), course, speed) in enumerate(zip(starts, courses, speeds, strict=True)):
            t = k * SCAN * STEP_NS * 1e-9
            p = (n + speed * t * math.cos(course), e + speed * t * math.sin(course), 0.0)
            b.put(p, (0.0, 0.0, course), (speed, 0.0, 0.0), row=row)
        out = b.at(k * SCAN)[0]
    return out


def heading(degrees: float) -> Any:
    return np.array([math.cos(math.radians(degrees)), math.sin(math.radians(degrees))])


def off(a: float, b: float) -> float:
    return abs((a - b + math.pi) % (2.0 * math.pi) - math.pi)


def test_tracks_within_the_limits_of_the_performance_standard(config: Make) -> None:
    """After three minutes: course 5 deg, speed 0.5 kn, CPA 0.3 NM, TCPA 0.5 min in 95 % of cases; a trend after one minute."""
    many = 10
    fitted = "".join(f'<radar name="r{k}" position="0 0 -20 m"/>' for k in range(many))
    loaded = config(
        f"<fleet><vehicle name='b0' model='ship' position='0 0 0 m'><sensors>{fitted}</sensors></vehicle></fleet>"
    )
    good = trends = 0
    # own speed; distance, bearing, course and speed of the target, relative, as the standard has it
    for own, distance, bearing, course, speed in (
        (5.0, 8.0, 0.0, 180.0, 20.0),
        (5.0, 1.0, 0.0, 90.0, 10.0),
        (5.0, 8.0, 45.0, 225.0, 20.0),
        (25.0, 8.0, 45.0, 225.0, 20.0),
    ):
        own_v, relative = np.array([own * KNOT, 0.0]), speed * KNOT * heading(course)
        v, at = own_v + relative, distance * NM * heading(bearing)
        here = at + 180.0 * relative
        true = closest_approach(here, relative)
        b = Bench(loaded, RadarEmulator, 2, seed=int(own + bearing), period=SCAN, model="ship")
        starts, courses, speeds = [(0.0, 0.0), at], [0.0, math.atan2(v[1], v[0])], [own * KNOT, float(np.hypot(*v))]
        sail(b, starts, courses, speeds, range(27))
        trends += int(np.isfinite(b.out["course"][:many]).sum())
        sail(b, starts, courses, speeds, range(27, 76))
        for row in b.out[:many]:
            i = int(np.nanargmax(row["status"]))
            cpa = closest_approach(
                row["range"][i] * heading(math.degrees(row["bearing"][i])),
                row["speed"][i] * heading(math.degrees(row["course"][i])) - own_v,
            )
            assert abs(row["range"][i] - np.hypot(*here)) < max(50.0, 0.01 * np.hypot(*here))
            good += (
                off(row["course"][i], courses[1]) < math.radians(5.0)
                and abs(row["speed"][i] - speeds[1]) < 0.5 * KNOT
                and abs(cpa[0] - true[0]) < 0.3 * NM
                and abs(cpa[1] - true[1]) < 30.0
            )
    assert good >= 0.95 * 4 * many and trends == 4 * many


def test_a_track_follows_a_turn(config: Make) -> None:
    """Ten minutes straight, then 90 deg: within two minutes it tells the new course."""
    b = radar(config, 'trend="10 s"', bodies=1)
    b.enter(1, "b1")
    sail(b, [(0.0, 0.0), (2000.0, 1000.0)], [0.0, 0.0], [0.0, 5.0], range(100))
    there = b.state["p_WB_W"][1].copy()
    row = sail(b, [(0.0, 0.0), (there[0], there[1] - 5.0 * 100 * 2.4)], [0.0, math.pi / 2], [0.0, 5.0], range(100, 150))
    i = int(np.nanargmax(row["status"]))
    assert row["target"][i] == 1.0, "the same track"
    assert off(row["course"][i], math.pi / 2) < math.radians(8.0) and row["speed"][i] == pytest.approx(5.0, abs=0.7)


def test_what_stands_in_the_way_hides(config: Make) -> None:
    """A quay, a hull, the horizon; and what lies below the water gives no echo."""
    quay = '<obstacles><block position="1000 0 0 m" size="20 200 60 m" heading="0 deg"/></obstacles>'
    at = {
        "behind the quay": (2000.0, 0.0),
        "clear": (2000.0, 1500.0),
        "near": (0.0, 1000.0),
        "behind a hull": (0.0, 1200.0),
    }
    b = radar(config, 'noise="0" detection="1" maximum="90 km"', quay, bodies=6)
    starts = [(0.0, 0.0), *at.values(), (60_000.0, 30_000.0)]
    row = sail(b, starts, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0] * 6, range(4))
    seen = sorted(r for r in row["range"] if np.isfinite(r))
    assert seen == pytest.approx([1000.0, 2500.0], abs=0.1), "not the two hidden ones, not the one beyond the horizon"
    assert horizon(20.0, 8.0) == pytest.approx(30_000.0, rel=0.01)
    b.put((2000.0, 1500.0, 30.0), row=2)
    for k in range(4, 16):
        row = b.at(k * SCAN)[0]
    assert [r for r in row["range"] if np.isfinite(r)] == pytest.approx([1000.0], abs=0.1), (
        "it dived and its track is lost"
    )


def test_false_echoes_become_no_followed_tracks_for_long(config: Make) -> None:
    b = radar(config, 'false_echoes="2" maximum="5 km"', bodies=1)
    live = []
    for k in range(60):
        b.put((0.0, 0.0, 0.0))
        row = b.at(k * SCAN)[0]
        live.append((np.isfinite(row["range"]).sum(), (row["status"] == 2.0).sum()))
    counts = np.array(live)[10:]
    assert counts[:, 0].mean() > 1.0, "echoes are there"
    assert counts[:, 1].mean() < 0.5, "hardly any is taken for a ship"


def test_a_process_that_takes_over_goes_on(config: Make) -> None:
    one, two = radar(config), radar(config)
    for b, change in ((one, False), (two, True)):
        for k in range(12):
            if change and k == 6:
                b.replace(keep=True)
            sail(b, [(0.0, 0.0), (3000.0, 100.0)], [0.0, math.pi], [5.0, 5.0], range(k, k + 1))
    assert one.out.tobytes() == two.out.tobytes()


# ------------------------------------------------------------------ AIS


def stations(config: Make, given: list[str], model: str = "ship") -> Bench:
    vehicles = "".join(
        f'<vehicle name="b{k}" model="{model}" position="{1000 * k} 0 0 m"><sensors><ais {text}/></sensors></vehicle>'
        for k, text in enumerate(given)
    )
    loaded = config(f"<shared vehicles='64'/><fleet>{vehicles}</fleet>")
    return Bench(loaded, AisEmulator, len(given), period=0, model=model)


def test_reports_come_at_the_intervals_of_their_class(config: Make) -> None:
    given = [
        ("A", 0.0, 0.0, 10.0),
        ("A", 10.0, 0.0, 10.0),
        ("A", 10.0, 0.02, 10.0 / 3.0),
        ("A", 18.0, 0.0, 6.0),
        ("A", 18.0, 0.02, 2.0),
        ("A", 24.0, 0.0, 2.0),
        ("B", 10.0, 0.0, 30.0),
        ("B", 1.0, 0.0, 180.0),
        ("B-SO", 10.0, 0.0, 30.0),
        ("B-SO", 20.0, 0.0, 15.0),
        ("B-SO", 24.0, 0.0, 5.0),
        ("mark", 0.0, 0.0, 180.0),
        ('A" status="1', 0.0, 0.0, 180.0),
    ]
    texts = ['mmsi="900000000" station="receiver" noise="0" rate="2 Hz"']
    texts += [f'mmsi="{257000000 + 7 * k}" station="{s}" rate="0.01 Hz"' for k, (s, *_) in enumerate(given)]
    b = stations(config, texts)
    for k, (_, knots, turn, _) in enumerate(given):
        b.put((1000.0 * k, 1000.0, 0.0), v=(knots * KNOT, 0.0, 0.0), w=(0.0, 0.0, turn), row=k + 1)
    times: dict[float, list[float]] = {}
    for tick in range(0, 100_000, 125):  # 400 s
        row = b.at(tick)[0]
        for mmsi, age in zip(row["mmsi"][1:], row["age"][1:], strict=True):
            if age == 0.0:
                times.setdefault(mmsi, []).append(tick * 0.004)
    for k, (_, _, _, every) in enumerate(given):
        found = np.array(times[257000000 + 7 * k][1:])  # the first is that of the start
        assert len(found) >= int(380.0 / every), (k, found)
        exact = found[0] + every * np.arange(len(found))
        assert np.abs(found - exact).max() < 0.5 + 1e-9, f"{given[k]}: to the period of the list, without drift"


def test_whom_a_station_receives(config: Make) -> None:
    texts = [f'mmsi="{k + 1}" noise="0" rate="1 Hz" position="0 0 -16 m"' for k in range(4)]
    texts[0] += ' loss="0.4" maximum="25 km"'
    b = stations(config, texts)
    for k, north in enumerate((0.0, 20_000.0, 26_000.0, 60_000.0)):
        b.put((north, 0.0, 0.0), v=(12.5, 0.0, 0.0), row=k)
    heard: list[int] = []
    other: set[float] = set()
    for tick in range(0, 100_000, 250):
        out = b.at(tick)
        heard += [int(m) for m, age in zip(out[0]["mmsi"][1:], out[0]["age"][1:], strict=True) if age == 0.0]
        other |= set(out[1]["mmsi"][1:][np.isfinite(out[1]["mmsi"][1:])])
    assert set(heard) == {2}, "one is too far for it, one beyond the horizon of the antennas"
    assert len(heard) == pytest.approx(0.6 * 200, abs=25)
    assert other == {1.0, 3.0}, "32.9 km is the horizon of two antennas at 16 m"
    assert b.out[0]["mmsi"][0] == 1.0 and b.out[0]["age"][0] < 2.1, "its own report"


@pytest.mark.parametrize("station", ["A", "B", "B-SO", "mark"])
def test_pyais_reads_the_reports_of_the_sensor(config: Make, station: str) -> None:
    """To the step of each field; what is in the list is what a receiver decodes."""
    kind = 'kind="20"' if station == "mark" else 'kind="52"'
    b = stations(
        config,
        [
            f'mmsi="257000001" station="{station}" {kind} called="NORTH STAR" noise="0"',
            'mmsi="2" station="receiver" noise="0"',
        ],
    )
    b.put((1234.5, -321.0, 0.0), (0.0, 0.0, -1.0), (7.25, 0.0, 0.0), (0.0, 0.0, 0.03))
    row = b.at(0)[1]
    got = {
        name: float(row[name][1]) for name in ("mmsi", "latitude", "longitude", "station", "kind", "length", "width")
    }
    moving = {name: float(row[name][1]) for name in ("sog", "cog", "heading", "turn")}
    report = ais.AisReport(
        int(got["mmsi"]),
        int(got["station"]),
        got["latitude"],
        got["longitude"],
        **{k: None if math.isnan(v) else v for k, v in moving.items()},
        name=ais.unpacked(tuple(row["called"].reshape(-1, 3)[1])),
        ship_type=int(got["kind"]),
        length=got["length"],
        width=got["width"],
    )
    read = pyais.decode(*encoder.sentences(encoder.position_report(report))).asdict()
    assert read["mmsi"] == 257000001
    assert math.radians(float(read["lat"])) == pytest.approx(got["latitude"], abs=ais.STEP_ANGLE / 2)
    assert math.radians(float(read["lon"])) == pytest.approx(got["longitude"], abs=ais.STEP_ANGLE / 2)
    if station == "mark":
        assert read["name"] == "NORTH STAR" and int(read["aid_type"]) == 20
    else:
        assert float(read["speed"]) == pytest.approx(14.1, abs=1e-9) and float(read["course"]) == pytest.approx(302.7)
        assert read["heading"] == 303
        statics = [pyais.decode(*encoder.sentences(bits)).asdict() for bits in encoder.static_reports(report)]
        assert statics[0]["shipname"] == "NORTH STAR" and int(statics[-1]["ship_type"]) == 52
        assert statics[-1]["to_bow"] + statics[-1]["to_stern"] == 100
    if station == "A":
        assert float(read["turn"]) == pytest.approx(103.1, rel=0.02), "degrees a minute"
