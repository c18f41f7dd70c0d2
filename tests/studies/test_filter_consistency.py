"""Consistency of the reference filter on runs of a vehicle between moored beacons: NEES and NIS within their bounds, warnings while it
runs, and noise that it estimates itself."""

from __future__ import annotations

import functools
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.studies.test_filter import BEACONS, DEG, MEMS, _trips, started, voyage
from tests.studies.voyage import Voyage, compass, depths, noisy, sampled, velocities
from wavesim_sdk.log import Log, read
from wavesim_studies.navigation import (
    acoustic_rows,
    forward_filter,
    lab_logs,
    logs,
    measurement_models,
    metrics,
)
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.filter import Filter, FilterDesign, Track, estimate, rotation_vector
from wavesim_studies.navigation.innovation_monitor import InnovationMonitor, judge
from wavesim_world.config import load_text

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("navigation")]
Array = Any
SEEDS = range(8)
PLACES = ((-150.0, -150.0), (-150.0, 150.0), (150.0, 0.0))
SEA = """<wavesim seed="{seed}"><time step="10 ms"/><world><current north="{north:.4f} m/s" east="{east:.4f} m/s"/><bed depth="50 m"/></world>
<acoustics ambient_noise="75 dB"/><fleet>
<vehicle name="auv" model="lauv" position="-60 -40 10 m" attitude="0 0 45 deg" speed="1.2 m/s" client="none">
<sensors inherit="no"><ctd rate="5 Hz"/><ahrs rate="10 Hz"/><speedlog rate="5 Hz"/></sensors>
<transducer position="0.3 0 -0.1 m" threshold="90 dB" timing_noise="50 us" query="0 Hz"/></vehicle>{buoys}</fleet></wavesim>"""
BUOY = """<buoy name="b{k}" model="buoy" position="{x} {y} 8 m">
<transducer position="0 0 0.3 m" threshold="90 dB" recharge="500 ms" query="25 kHz" reply="{reply} kHz"/>
<mooring anchor="{x} {y} 50 m" length="41.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>"""


def loaded(seed: int) -> Any:
    """The current of each seed has another direction."""
    buoys = "".join(BUOY.format(k=k, x=x, y=y, reply=26 + k) for k, (x, y) in enumerate(PLACES))
    north, east = 0.12 * math.cos(2.4 * seed), 0.12 * math.sin(2.4 * seed)
    return load_text(SEA.format(seed=seed, north=north, east=east, buoys=buoys))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    folder, found = tmp_path_factory.mktemp("moored"), []
    for seed in SEEDS:
        path = folder / f"{seed}.mcap"
        lab_logs.record(
            loaded(seed), "auv", path, 90.0, seed, lambda *_: {"propeller": 5.0}, every=0.1, state=0.1, ping=3.0
        )
        found.append(read(path))
    return found


def consistency(runs: list[Log], selection: logs.Selection | None = None, scale: float = 1.0) -> dict[str, float]:
    """Means over the runs: NEES of position (2), velocity (3) and attitude (3), NIS per number of each sensor, error in m.
    ``scale`` multiplies all noise that the filter assumes."""
    found: dict[str, list[float]] = {}
    for log in runs:
        case = logs.estimation_case(log, "auv", selection=selection)
        case.rows[:, measurement_models.NOISE : measurement_models.NOISE + 16] *= scale**2
        case.imu[:, 7:] *= scale
        track = case.run(say=lambda text: None)
        score, P = case.score(track), track.covariance
        turn = rotation_vector(metrics.frames.rotation(case.q) @ np.swapaxes(metrics.frames.rotation(track.q), 1, 2))
        values = {
            "rms": score.rms,
            "position": score.nees,
            "velocity": float(metrics.nees(case.v - track.v, P[:, 3:6, 3:6]).mean()),
            "attitude": float(metrics.nees(turn, P[:, 6:9, 6:9]).mean()),
            **{k: c["nis"] / c["numbers"] for k, c in logs.counts(case, track).items()},
        }
        for k, v in values.items():
            found.setdefault(k, []).append(v)
    return {k: float(np.mean(v)) for k, v in found.items()}


def outside(found: dict[str, float]) -> list[str]:
    """The names of the values outside the 95 % bounds (NEES, one independent value for each run) or off by 15 % (NIS)."""
    limits = {"position": 2, "velocity": 3, "attitude": 3}
    wrong = []
    for k, n in limits.items():
        low, high = metrics.bounds(n, len(SEEDS))
        wrong += [k] if not low < found[k] < high else []
    return wrong + [k for k in ("ctd", "ahrs", "speedlog", "sound") if not 0.85 < found[k] < 1.15]


def test_nees_and_nis_are_within_their_bounds(runs: list[Log]) -> None:
    found = consistency(runs)
    assert outside(found) == [], found
    assert found["rms"] < 0.1, "the current displaces the beacons by 0.22 m, and the filter finds out"


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_filter_with_twice_or_half_the_noise_leaves_the_bounds(runs: list[Log], scale: float) -> None:
    found = consistency(runs, scale=scale)
    assert {"position", "ctd", "ahrs", "speedlog", "sound"} <= set(outside(found)), found


def test_beacons_hang_where_they_are_expected(runs: list[Log]) -> None:
    """The depth of a buoy in equilibrium, and its displacement by the current, from the configuration alone."""
    from wavesim_server import Lab

    made = loaded(0)
    lab = Lab(made, 0)
    lab.run(120.0)
    for body in made.config.fleet.bodies[1:]:
        place = acoustic_rows.beacon_place(made, body, 0.0)
        off = lab.state()[lab.row(body.name)]["p_WB_W"] - place.p_W
        assert abs(off[2]) < 0.01 and np.linalg.norm(off[:2]) == pytest.approx(place.excursion, rel=0.05)
        assert place.excursion > 0.15


# ------------------------------------------------------------------ warnings, adaptation

RANGES = 5  #: number of the sensor in `_trips`


@functools.cache
def exact_ranges() -> tuple[Voyage, Array]:
    o = voyage(600.0, 5.0, leg=60.0)
    return o, _trips(o, BEACONS, 4.0, 1.0)


def long_baseline(true: float, adaptive: bool, seed: int, say: Any) -> tuple[Track, Array]:
    """Ranges with ``true`` times the believed noise (1 m), depth and heading; a Doppler log of 5 cm/s now and then."""
    o, exact = exact_ranges()
    design = FilterDesign(**MEMS, adaptive=adaptive)
    rng = np.random.default_rng(seed)
    ranges = exact.copy()
    ranges[:, measurement_models.NOISE] = true**2
    measured = [noisy(ranges, rng)]
    measured[0][:, measurement_models.NOISE] = 1.0
    for rows in (velocities(o, 10.0, 0.05), depths(o, 1.0, 0.05), compass(o, 1.0, DEG)):
        measured.append(noisy(rows, rng))
    imu = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])
    start = started(design, o, rng, [0.5, 0.05, 0.01, 1e-5, 1e-4])
    marks = o.every(4.0)
    monitor = InnovationMonitor({RANGES: "sound"})
    track = estimate(design, start, imu, np.concatenate(measured), o.t[marks], monitor=monitor, say=say)
    return track, o.p[marks]


def outcome(true: float, adaptive: bool) -> tuple[float, float, float, list[str]]:
    """Share of rejected ranges, error in m, factor of the noise, warnings; over two seeds."""
    refused, errors, factors, said = [], [], [], []
    for seed in range(2):
        track, p = long_baseline(true, adaptive, seed, said.append)
        mine = (track.events[:, measurement_models.SENSOR] == RANGES) & (track.events[:, measurement_models.M] > 0)
        refused.append(np.mean(track.event_outcomes[mine, 0] == 0.0))
        errors.append(np.sqrt(np.mean(np.sum((track.p - p)[:, :2] ** 2, axis=1))))
        factors.append(track.final_state.noise_factor(RANGES))
    return float(np.mean(refused)), float(np.mean(errors)), float(np.mean(factors)), said


def test_more_noise_than_believed_is_reported_and_with_adaptive_estimated() -> None:
    refused, error, factor, said = outcome(2.0, False)
    assert refused > 0.15 and factor == 1.0 and len(said) >= 2
    assert re.match(
        r"sound at [\d.]+ s: mean NIS \d+\.\d\d over the last 60 measurements, expected 0\.67 to 1\.39; \d+ % rejected, "
        r"expected 1 %\. The noise is larger than assumed: multiply it by about [1-4](\.\d)?, or let the filter estimate it",
        said[0],
    )
    adapted = outcome(2.0, True)
    assert adapted[0] < 0.05 and adapted[1] < 0.8 * error and adapted[2] == pytest.approx(2.0, rel=0.2)


def test_less_noise_than_believed_is_reported_and_with_adaptive_estimated() -> None:
    refused, error, _, said = outcome(0.5, False)
    assert refused < 0.005 and "The noise is smaller than assumed" in said[0]
    adapted = outcome(0.5, True)
    assert adapted[1] < 1.02 * error and adapted[2] == pytest.approx(0.5, rel=0.25)
    assert not [text for text in adapted[3] if "larger" in text]


def test_nothing_is_said_of_a_consistent_filter_and_it_stays_so_if_adaptive() -> None:
    refused, error, _, said = outcome(1.0, False)
    assert said == [] and refused < 0.03
    adapted = outcome(1.0, True)
    assert adapted[3] == [] and adapted[1] < 1.05 * error and adapted[2] == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("adaptive", [False, True])
def test_the_advice_to_adapt_is_for_filters_that_do_not(adaptive: bool) -> None:
    monitor = InnovationMonitor(["gps"], adaptive=adaptive)
    said = [monitor.add(float(k), 0, 2, 1.0, 7.0) for k in range(60)]
    assert "The noise is larger than assumed" in said[-1] and ("--adapt" in said[-1]) is not adaptive


def test_outliers_are_not_taken_for_noise() -> None:
    monitor, rng = InnovationMonitor(["gps"]), np.random.default_rng(1)
    said = []
    for k in range(60):
        outlier = k % 5 == 0
        nis = 80.0 if outlier else min(rng.chisquare(2), 9.0)
        said.append(monitor.add(float(k), 0, 2, 0.0 if outlier else 1.0, nis))
    assert said[:-1] == [""] * 59 and "gps at 59.0 s" in said[-1] and "check for outliers" in said[-1]
    assert [monitor.add(float(k), 0, 2, 0.0, 80.0) for k in range(200)] == [""] * 200, "once is enough"


def at_rest(rows: list[Array], adaptive: bool, depth: float, sigma: float) -> Track:
    """A vehicle that does not move for 10 s; its state at 0.15 s."""
    design = FilterDesign(adaptive=adaptive)
    imu = np.array([[0.05 * k, 0.0, 0.0, -design.gravity, 0.0, 0.0, 0.0] for k in range(1, 201)])
    start = design.start(0.0, (0.0, 0.0, depth), np.zeros(3), (1.0, 0.0, 0.0, 0.0), [sigma, 0.01, 0.01, 1e-6, 1e-6])
    return estimate(design, start, imu, rows, [0.15], say=lambda text: None)


@pytest.mark.parametrize(
    ("sigma", "off", "softened"), [(1.0, 10.0, False), (1.0, 3.5, True), (0.1, 0.6, True), (0.1, 1.6, False)]
)
def test_noise_that_could_not_explain_a_value_does_not_make_the_adaptive_filter_take_it(
    sigma: float, off: float, softened: bool
) -> None:
    """A fix with 0.1 m noise that the gate rejects. With sigma = 1 m, even four times the noise explains 3.6 m only."""
    row = make.position(0.1, (off, 0.0, 0.0), 0.1)
    plain, adaptive = (at_rest([row], a, 0.0, sigma) for a in (False, True))
    codes = [t.event_outcomes[t.events[:, measurement_models.M] > 0, 0].tolist() for t in (plain, adaptive)]
    assert codes == [[0.0], [float(softened)]] and (plain.p[0, 0] == 0.0)
    if not softened:
        assert adaptive.p[0, 0] == 0.0
        return
    before = plain.P[0, 0, 0]  # the noise is increased until the value lies on the gate: S = off^2 / gate
    assert adaptive.p[0, 0] == pytest.approx(before / (off**2 / forward_filter.GATES[3]) * off, rel=0.02)


def test_echoes_that_fit_say_the_same_of_the_noise_as_direct_paths() -> None:
    """Exact ranges, off the surface or direct; with both, the estimated noise falls and the monitor has one opinion."""
    tracks = []
    for length in (50.0, math.hypot(50.0, 20.0)):
        times = 0.2 + 0.5 * np.arange(18)
        rows = [make.round_trip(t, t + 0.3, 2.0 * length, (50.0, 0.0, 10.0), 0.1, bed=80.0) for t in times]
        tracks.append(at_rest(rows, True, 10.0, 0.05))
    direct, echo = (t.event_outcomes[t.events[:, measurement_models.M] > 0] for t in tracks)
    assert (direct[:, 0] == 1.0).all() and (echo[:, 0] == 5.0).all()
    assert echo[:, 1].max() < 0.1, "the NIS is that of the accepted path"
    assert np.abs(echo[:, 6]).max() < 0.5, "and so is the innovation, in m"
    factors = [t.final_state.noise_factor(0) for t in tracks]
    assert factors[1] == pytest.approx(factors[0], rel=0.05) and factors[0] < 0.8


def test_a_range_is_not_noisy_because_the_position_is_uncertain() -> None:
    """A large uncertainty across the line of sight lengthens ranges; this says nothing about their noise."""
    row = make.round_trip(4.0, 5.0, 2.0 * 50.0, (50.0, 0.0, 0.0), 0.01)
    state = at_rest([row], True, 0.0, 20.0).final_state
    assert state.noise_factor(0) == pytest.approx(1.0, abs=1e-4)


def test_a_sensor_without_a_known_outcome_gets_no_verdict(runs: list[Log]) -> None:
    """As for measurements that contain no information; it ended in a ZeroDivisionError."""
    assert judge(np.zeros(0), np.zeros(0, bool), 1.0).verdict == ""
    case = logs.estimation_case(runs[0], "auv")
    track = case.run(say=lambda text: None)
    mine = (track.events[:, measurement_models.M] > 0) & (
        track.events[:, measurement_models.SENSOR] == case.sensors.index("ctd")
    )
    track.event_outcomes[mine] = np.nan
    track.event_outcomes[mine, 0] = -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = logs.counts(case, track)["ctd"]
    assert (found["taken"], found["refused"], found["advice"]) == (0, 0, "")
    assert math.isnan(found["nis"])


def test_the_live_filter_warns_and_adapts_with_the_same_result() -> None:
    """Measurements come one by one; the outcome of each counts when it is final."""
    o = voyage(60.0, 10.0, leg=20.0)
    rows = depths(o, 0.2, 0.05)
    rng = np.random.default_rng(2)
    rows = noisy(rows, rng)
    rows[:, measurement_models.NOISE] = 0.025**2
    said: list[str] = []
    design = FilterDesign(**MEMS, adaptive=True)
    imu = sampled(o, rng, MEMS["gyro_noise"], MEMS["accelerometer_noise"])
    start = started(design, o, None, [0.5, 0.05, 0.01, 1e-5, 1e-4])
    live = Filter(start, memory=2.0, names={2: "depth"}, say=said.append)
    plain = Filter(
        started(FilterDesign(**MEMS), o, None, [0.5, 0.05, 0.01, 1e-5, 1e-4]),
        memory=2.0,
        names={2: "depth"},
        say=said.append,
    )
    for sample in imu:
        for f in (live, plain):
            f.sample(sample[0], sample[1:4], sample[4:7])
            f.add(*rows[np.abs(rows[:, 0] - sample[0]) < 1e-6])
    assert len(said) == 1 and said[0].startswith("depth at ") and plain.state.noise_factor(2) == 1.0
    assert live.state.noise_factor(2) == pytest.approx(2.0, rel=0.2)
    whole = estimate(design, start, imu, rows, [o.t[-1]], say=said.append)
    assert np.array_equal(whole.final_state.adaptation, live.state.adaptation) and len(said) == 1


def test_score_shows_the_advice_and_adapts(runs: list[Log]) -> None:
    from click.testing import CliRunner

    from wavesim_studies.navigation import cli

    path = str(Path(runs[0].path))
    done = CliRunner().invoke(cli.nav, ["score", path, "--noise", "sound=0.3", "--noise", "ctd=3"])
    assert done.exit_code == 0, done.output
    assert "auv: ctd at 12" in done.output and "The noise is smaller than assumed" in done.stdout
    adapted = CliRunner().invoke(cli.nav, ["score", path, "--noise", "ctd=3", "--adapt"])
    found = re.search(r"ctd .* noise x ([\d.]+)", adapted.stdout)
    assert found is not None and float(found[1]) == pytest.approx(1.0 / 3.0, rel=0.3)
