"""Fits of coefficients to recorded trials: planted values come back inside the stated intervals, a linear problem has
the solution of linear least squares, and what a log cannot tell is said.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.identification import standard_deviations
from click.testing import CliRunner, Result
from scipy import optimize, sparse

from tests.studies.lake import CASES, START, ZIGZAG, Commands, csv_lines, distort, planted_trial, sail, square, steps
from wavesim_sdk.errors import ConfigError, LogError
from wavesim_server.study import varied
from wavesim_studies.identification import (
    FitResult,
    MeasuredSeries,
    RecordedTrial,
    ShootingOptions,
    TrialSource,
    cli,
    fit,
    least_squares,
    manoeuvre_plan,
    parse_unknowns,
    predict,
    profile,
    read_trial,
    reversed_signs,
    write_model,
)
from wavesim_studies.identification.coefficients import ModelCoefficients
from wavesim_studies.identification.uncertainty import uncertainty, unexplained
from wavesim_world.config import Model, library
from wavesim_world.config.build import read_models

pytestmark = [pytest.mark.xdist_group("identification")]
PUSH = 1.28  #: N, holds the model boat at 0.5 m/s


def boat(**changes: float) -> Model:
    """The model boat with other derivatives."""
    paths = {f"derivatives/{k}" if "/" not in k else k: v for k, v in changes.items()}
    return ModelCoefficients(library()["sookshma"]).model_with(paths)


def sail_boat(
    seed: int = 1, seconds: float = 40.0, commands: Commands | None = None, **changes: float
) -> RecordedTrial:
    scaled = {k: ModelCoefficients(library()["sookshma"]).value(f"derivatives/{k}") * f for k, f in changes.items()}
    return sail(
        boat(**scaled), commands or ZIGZAG, seconds, seed, velocity=[0.5, 0, 0, 0, 0, 0], push=[PUSH, 0, 0, 0, 0, 0]
    )


def fitted(model: str, trials: list[RecordedTrial], unknowns: list[str], **options: Any) -> FitResult:
    kind = library()[model]
    assumed = {"push": PUSH} if model == "sookshma" else {}
    parsed = parse_unknowns(unknowns, kind, [*trials[0].channels], len(trials))
    return fit(kind, trials, parsed, ShootingOptions(**options), assumed)


def recovered(result: FitResult, planted: dict[str, float], sigmas: float = 3.0) -> None:
    """Check that each planted value is inside its interval, and that the logs determine it."""
    for k, u in enumerate(result.unknowns):
        if u.path in planted:
            off = abs(result.value(k) - planted[u.path])
            assert off < sigmas * result.sd(k), (u.path, result.value(k), planted[u.path], result.sd(k))
            assert result.uncertainty.informed(k), u.path


# ------------------------------------------------------------------ coefficients and their paths


def test_paths_reach_every_kind_of_coefficient() -> None:
    c = ModelCoefficients(library()["lauv"])
    assert c.value("linear-drag/N_r") == 9.7 and c.value("lift/N_v") == -6.0 and c.value("added-mass/Y_r") == 0.0
    assert c.value("fin[rudder-top]/limit") == pytest.approx(math.radians(25.0))
    made = c.model_with({"fin[*]/lift_slope": 4.0, "thruster[propeller]/coefficients[1]": 0.1})
    assert [f.lift_slope for f in made.fin] == [4.0] * 4
    assert made.thruster[0].coefficients == (1.0, 0.1, 0.0)
    diagonal = ModelCoefficients(library()["bluerov2"]).model_with({"linear-drag/Y_r": 0.5}).linear_drag
    assert diagonal is not None
    assert np.array(diagonal.rows).reshape(6, 6)[1].tolist() == [0.0, 17.11, 0.0, 0.0, 0.0, 0.5]
    assert ModelCoefficients(library()["sookshma"]).value("derivatives/N_r") == -0.001889456681929024


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("derivatives/N_q", "has no derivative 'N_q'"),
        ("linear-drag/diagonal", "has 6 numbers"),
        ("fin[rudder]/lagg", "has no coefficient 'lagg'"),
        ("fin[helm]/lag", "matches nothing"),
        ("fan/lag", "has no element <fan>"),
        ("mass/value[1]", "counted from 0"),
    ],
)
def test_a_wrong_path_is_named(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", "\\[")):
        ModelCoefficients(library()["sookshma"]).value(path)


def test_priors_follow_the_source_of_the_model() -> None:
    found = parse_unknowns(
        ["derivatives/N_r", "linear-drag/K_p", "derivatives/N_v~200%", "delay=0.2~0.1", "current"],
        library()["sookshma"], ["yaw_rate"], 2,
    )  # fmt: skip
    spreads = [(u.path, u.spread, u.reason, u.log) for u in found]
    assert spreads[:4] == [
        ("derivatives/N_r", 0.3, "published", -1),
        ("linear-drag/K_p", 1.0, "assumed in the source", -1),
        ("derivatives/N_v", 2.0, "as given", -1),
        ("delay", 0.1, "as given", -1),
    ]
    assert [(s[0], s[3]) for s in spreads[4:]] == [(f"current/{c}", k) for c in ("north", "east") for k in (0, 1)]


@pytest.mark.parametrize(
    ("unknowns", "message"),
    [
        (["derivatives/N_r", "derivatives/N_r"], "more than once"),
        (["push"], "needs a start"),
        (["bias/depth"], "no channel 'depth'"),
        (["offset/helm"], "no actuator 'helm'"),
        (["linear-drag/N_r"], "is 0 in 'sookshma'"),
        (["delay~5%"], "instead of a percentage"),
        (["derivatives/N_r~x"], "invalid unknown"),
        (["derivatives/N_r~0"], "must be positive"),
    ],
)
def test_an_impossible_unknown_is_named(unknowns: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_unknowns(unknowns, library()["sookshma"], ["yaw_rate"], 1)


# ------------------------------------------------------------------ solver


def test_the_solver_finds_the_minimum_of_scipys() -> None:
    """A robust fit of an exponential with outliers, by both solvers."""
    random = np.random.default_rng(4)
    t = np.linspace(0.0, 3.0, 80)
    y = 2.0 * np.exp(-0.7 * t) + 0.1 * random.standard_normal(80)
    y[::9] += 2.0

    def residuals(x: Any) -> Any:
        return (x[0] * np.exp(-x[1] * t) - y) / 0.1

    def jacobian(x: Any) -> Any:
        e = np.exp(-x[1] * t) / 0.1
        return residuals(x), sparse.csr_matrix(np.stack([e, -x[0] * t * e], axis=1))

    ours = least_squares.solve(residuals, jacobian, np.array([1.0, 0.1]), np.ones(80, bool))
    theirs = optimize.least_squares(
        residuals, [1.0, 0.1], loss="soft_l1", f_scale=least_squares.SCALE, xtol=1e-12, gtol=1e-12
    )
    assert ours.converged
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-4)
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)


def test_the_scale_of_residuals_ignores_outliers() -> None:
    r = np.random.default_rng(1).standard_normal(20000)
    assert least_squares.robust_scale(r) == pytest.approx(1.0, abs=0.02)
    r[:1000] = 50.0
    assert least_squares.robust_scale(r) == pytest.approx(1.1, abs=0.1)


YAW = """<models><model name="yaw" type="surface" active="r"><box length="1 m" width="0.3 m" height="0.3 m"/><mass value="20 kg"/>
<inertia xx="1" yy="1" zz="2"/><added-mass diagonal="0 0 0 0 0 0"/><derivatives system="dimensional">
<derivative name="N_r" value="-5"/><derivative name="N_d1" value="-3"/></derivatives>
<fin name="rudder" law="derivatives" limit="35 deg" lag="0 s"/></model></models>"""


def test_a_linear_boat_has_the_solution_of_linear_least_squares(tmp_path: Path) -> None:
    """Yaw alone, first order: T r' + r = K (delta - delta0). With a known T, the yaw rate is linear in K, K delta0 and the
    start rate, so that linear least squares give estimates and covariance in closed form.
    """
    (tmp_path / "yaw.xml").write_text(YAW)
    model = read_models(tmp_path / "yaw.xml")["yaw"]
    T, K, delta0, n, dt, sigma = 0.4, -0.55, 0.05, 1000, 0.1, 0.02
    t = dt * np.arange(n)
    delta = np.where((t // 4.0).astype(int) % 2 == 0, 0.35, -0.3)
    a = math.exp(-dt / T)
    columns = np.zeros((n, 3))  # responses to delta, to -1, and to the start rate
    columns[0, 2] = 1.0
    for k in range(n - 1):
        columns[k + 1] = a * columns[k] + (1.0 - a) * np.array([delta[k], -1.0, 0.0])
    r = columns @ [K, K * delta0, 0.1] + sigma * np.random.default_rng(3).standard_normal(n)
    linear = np.linalg.lstsq(columns, r, rcond=None)[0]
    trial = RecordedTrial("yaw", "", {"rudder": MeasuredSeries(t, delta)}, {"yaw_rate": MeasuredSeries(t, r)})
    unknowns = parse_unknowns(["derivatives/N_d1~1000%", "offset/rudder~10"], model, ["yaw_rate"], 1)
    result = fit(model, [trial], unknowns, ShootingOptions(segment=1e3, step=0.025, robust=False))
    assert result.value(0) / 5.0 == pytest.approx(linear[0], rel=1e-6)
    assert -result.value(1) == pytest.approx(linear[1] / linear[0], rel=1e-5)
    residual = r - columns @ linear
    covariance = np.linalg.inv(columns.T @ columns) * float(residual @ residual) / (n - 3)
    assert result.sd(0) / 5.0 == pytest.approx(math.sqrt(covariance[0, 0]), rel=0.05)
    g = np.array([-linear[1] / linear[0] ** 2, 1.0 / linear[0], 0.0])
    assert result.sd(1) == pytest.approx(math.sqrt(g @ covariance @ g), rel=0.05)
    assert result.uncertainty.channels["yaw_rate"].whiteness > 0.01
    rises = profile(result, 0)  # of a linear problem: the squares of the steps
    assert rises == pytest.approx([4.0, 4.0], rel=0.05)


# ------------------------------------------------------------------ recoveries


def test_planted_derivatives_of_the_model_boat_come_back() -> None:
    """The boat turns 2.5 times too fast as shipped; with lag and offset unknown, too."""
    planted = {"N_r": 2.5, "N_d1": 1.2}
    trials = [sail_boat(1, **planted), sail_boat(2, seconds=30.0, commands={"rudder": square(0.2, 4.0)}, **planted)]
    result = fitted("sookshma", trials, ["derivatives/N_r~100%", "derivatives/N_d1", "offset/rudder", "delay"])
    c = ModelCoefficients(library()["sookshma"])
    recovered(result, {f"derivatives/{k}": c.value(f"derivatives/{k}") * f for k, f in planted.items()})
    recovered(result, {"offset/rudder": 0.0, "delay": 0.0})


@pytest.mark.parametrize("name", CASES)
def test_planted_coefficients_come_back(name: str) -> None:
    planted, trial = planted_trial(name, 3)
    result = fitted(name, [trial], [*planted])
    recovered(result, planted)
    for k, u in enumerate(result.unknowns):  # informative: at least three times better than the prior
        assert result.sd(k) < 0.1 * abs(planted[u.path]), (u.path, result.sd(k))
    assert not unexplained(result.problem, result.solution)


def test_robust_covariance_has_the_spread_of_repeated_estimates() -> None:
    """The mean of normal values by the robust loss: its stated variance is that over 4000 repetitions (1.02 / n), although
    the loss reduces both the slopes and the squares of the residuals.
    """
    random, n = np.random.default_rng(2), 100
    values = random.standard_normal((4000, n))
    mean = values.mean(axis=1)
    for _ in range(30):
        w = 1.0 / np.sqrt(1.0 + ((values - mean[:, None]) / least_squares.SCALE) ** 2)
        mean = (w * values).sum(axis=1) / w.sum(axis=1)
    t = 0.1 * np.arange(n)
    problem = SimpleNamespace(
        unknowns=[0], segments=[], free=[], channels=["yaw_rate"], size=1, sigma={"yaw_rate": 1.0},
        measured=[SimpleNamespace(channel="yaw_rate", time=t, value=t)], rows_of=lambda c: np.arange(n + 1) < n,
    )  # fmt: skip
    stated = []
    for k in range(200):
        r = np.append(values[k] - mean[k], 0.0)
        w = least_squares.weights_of(r, np.arange(n + 1) < n)
        J = sparse.csr_matrix(np.append(-np.ones(n), 1e-6)[:, None])
        made = uncertainty(problem, SimpleNamespace(residuals=r, jacobian=J, weights=w))  # type: ignore[arg-type]
        stated.append(made.covariance[0, 0] / made.channels["yaw_rate"].correlation_time)  # correlated by chance only
    assert np.mean(stated) == pytest.approx(float(np.var(mean)), rel=0.06)
    assert float(np.var(mean)) * n == pytest.approx(1.022, rel=0.05)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_stated_intervals_contain_the_true_values(name: str) -> None:
    """Twelve seeds; `python -m benchmarks.identification` uses 50. Of 48 or 60 intervals of 95 %, at least 87 % contain the
    true value, and the deviations have about the stated size.
    """
    z = np.array([standard_deviations(name, seed) for seed in range(12)])
    assert float(np.mean(np.abs(z) < 1.96)) > 0.87
    assert 0.7 < float(np.sqrt(np.mean(z**2))) < 1.3


def test_outliers_gaps_and_a_clock_shift_do_not_disturb() -> None:
    """5 % outliers, three seconds without rudder commands, and headings that are stamped 0.2 s late."""
    planted = {"N_r": 2.5, "N_d1": 1.2}
    trial = sail_boat(5, 60.0, **planted)
    random = np.random.default_rng(8)

    def spoil(t: Any, v: Any) -> tuple[Any, Any]:
        wrong = random.random(len(v)) < 0.05
        return t, np.where(wrong, v + random.uniform(-1.0, 1.0, len(v)), v)

    trial = distort(trial, "yaw_rate", spoil)
    trial = distort(trial, "heading", lambda t, v: (t + 0.2, v))
    s = trial.commands["rudder"]
    kept = (s.time < 26.05) | (s.time > 29.05)  # the rudder is constant there, but the log does not say so
    trial = dataclasses.replace(trial, commands={"rudder": MeasuredSeries(s.time[kept], s.value[kept])})
    result = fitted("sookshma", [trial], ["derivatives/N_r~100%", "derivatives/N_d1", "shift/heading"])
    c = ModelCoefficients(library()["sookshma"])
    recovered(result, {f"derivatives/{k}": c.value(f"derivatives/{k}") * f for k, f in planted.items()})
    assert result.value(2) == pytest.approx(-0.2, abs=0.02)
    assert 0.02 < result.uncertainty.channels["yaw_rate"].outliers < 0.06  # some of them are within the noise


def test_the_wrong_form_of_drag_is_detected() -> None:
    """A boat with quadratic drag, fitted with linear drag only: the residuals of surge are not white."""
    base = library()["otter"]
    true = varied(base, linear_drag=0.2, quadratic_drag=np.diag([60.0, 0, 0, 0, 0, 426.5]))
    commands = {k: steps([12.0, 4.0, 16.0, 8.0], 8.0) for k in ("port", "starboard")}
    trial = sail(true, commands, 60.0, 2, channels=("surge", "heading", "yaw_rate"), velocity=[1.0, 0, 0, 0, 0, 0])
    wrong = fitted("otter", [trial], ["linear-drag/X_u~200%"], segment=30.0)
    right = fitted("otter", [trial], ["linear-drag/X_u~200%", "quadratic-drag/X_u=1~60"], segment=30.0)
    said = unexplained(wrong.problem, wrong.solution)
    assert len(said) == 1 and "'surge'" in said[0] and "m/s" in said[0] and "not white" in said[0]
    assert wrong.uncertainty.channels["surge"].whiteness < 1e-6
    assert not unexplained(right.problem, right.solution)


def test_an_unknown_that_the_log_does_not_show_stays_at_its_prior() -> None:
    """A straight run does not tell the drag in sway, although its prior is wide."""
    commands = {k: steps([12.0, 4.0, 16.0, 8.0], 8.0) for k in ("port", "starboard")}
    channels = ("surge", "heading", "yaw_rate")
    trial = sail(library()["otter"], commands, 30.0, 2, channels=channels, velocity=[1.0, 0, 0, 0, 0, 0])
    result = fitted("otter", [trial], ["cross-flow/sway", "linear-drag/X_u"])
    start = ModelCoefficients(library()["otter"]).value("cross-flow/sway")
    assert not result.uncertainty.informed(0) and result.uncertainty.informed(1)
    assert result.value(0) == pytest.approx(start, rel=0.05)
    assert result.sd(0) == pytest.approx(0.3 * result.value(0), rel=0.1), "the prior of a published coefficient"


def test_unknowns_that_the_log_does_not_separate_are_named() -> None:
    """At one speed, thrust and drag are one."""
    result = fitted("sookshma", [sail_boat(3, 30.0)], ["derivatives/N_r", "derivatives/X_u", "push=1.28~1"])
    assert result.uncertainty.informed(0)
    pairs = [{result.unknowns[i].path, result.unknowns[j].path} for i, j, _ in result.uncertainty.pairs()]
    assert {"derivatives/X_u", "push"} in pairs


def test_a_reversed_rudder_is_reported_and_not_changed() -> None:
    trial = sail_boat(4, 30.0).reversed_commands("rudder")
    result = fitted("sookshma", [trial], ["derivatives/N_r", "derivatives/N_d1"])
    said = reversed_signs(result)
    assert len(said) == 1 and "'rudder'" in said[0] and "opposite sign" in said[0] and "nothing was changed" in said[0]
    assert result.value(1) < 0.0, "the sign of the shipped coefficient"
    right = fitted("sookshma", [trial.reversed_commands("rudder")], ["derivatives/N_r", "derivatives/N_d1"])
    assert reversed_signs(right) == []


def test_the_results_do_not_depend_on_the_number_of_workers() -> None:
    trial = sail_boat(6, 30.0, N_r=2.0)
    one, three = (fitted("sookshma", [trial], ["derivatives/N_r", "delay"], workers=k) for k in (1, 3))
    assert np.array_equal(one.solution.x, three.solution.x)
    assert np.array_equal(one.uncertainty.covariance, three.uncertainty.covariance)


# ------------------------------------------------------------------ prediction and files


def test_a_fitted_model_predicts_a_held_out_trial(tmp_path: Path) -> None:
    planted = {"N_r": 2.5, "N_d1": 1.2}
    trial, other = sail_boat(1, 40.0, **planted), sail_boat(7, 40.0, {"rudder": square(0.3, 4.0)}, **planted)
    options, shipped = ShootingOptions(), library()["sookshma"]
    before = predict(shipped, other, options, {"push": PUSH})
    result = fitted("sookshma", [trial], ["derivatives/N_r~100%", "derivatives/N_d1"])
    after = predict(result.model, other, options, {"push": PUSH})
    assert before.errors["yaw_rate"].explained < 0.6 < 0.99 < after.errors["yaw_rate"].explained
    assert after.errors["yaw_rate"].rms < 0.01 and after.distances[25.0] < 1.5 < before.distances[25.0]
    made = write_model(result, tmp_path / "fitted.xml", "my-boat", [after])
    assert made.name == "my-boat" and "derivatives/N_r" in made.source and trial.digest[:12] in made.source
    assert shipped.source in made.source and "38 s" in made.validated
    again = predict(read_models(tmp_path / "fitted.xml")["my-boat"], other, options, {"push": PUSH})
    assert again.errors["yaw_rate"].rms == pytest.approx(after.errors["yaw_rate"].rms, rel=1e-3)
    with pytest.raises(ConfigError, match="already exists"):
        write_model(result, tmp_path / "fitted.xml", "my-boat")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli.identify, [*map(str, arguments)])


def test_fit_check_and_report_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(csv_lines(sail_boat(1, 30.0, N_r=2.5)))
    (tmp_path / "b.csv").write_text(csv_lines(sail_boat(2, 30.0, N_r=2.5)))
    common = ["sookshma", tmp_path / "a.csv", "--assume", f"push={PUSH}"]
    done = run("fit", *common, "--fit", "derivatives/N_r~100%", "--hold-out", tmp_path / "b.csv",
               "--out", tmp_path / "m.xml", "--picture", tmp_path / "p.png", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["unknowns"][0]["value"] == pytest.approx(2.5 * -0.00188946, rel=0.03)
    assert data["hold_out"][0]["errors"]["yaw_rate"]["explained"] > 0.98
    assert (tmp_path / "p.png").stat().st_size > 10_000
    with_model = ["sookshma-fitted", tmp_path / "b.csv", "--models", tmp_path / "m.xml", "--assume", f"push={PUSH}"]
    done = run("check", *with_model)
    assert done.exit_code == 0 and "the rest is predicted" in done.output and "yaw_rate" in done.output
    done = run(
        "report", *with_model, "--fit", "derivatives/N_r", "--fit", "linear-drag/Z_w~1%", "--out", tmp_path / "r.html"
    )
    assert done.exit_code == 0, done.output
    text = (tmp_path / "r.html").read_text()
    assert "not informed" in text and "data:image/png" in text


def test_the_plan_prefers_manoeuvres_that_teach_more() -> None:
    """A zig-zag tells yaw damping from rudder force; driving at two speeds tells linear from quadratic drag."""
    model = library()["otter"]
    channels = ("north", "east", "heading", "yaw_rate", "surge")
    unknowns = parse_unknowns(["linear-drag/X_u", "quadratic-drag/N_r"], model, channels, 1)
    planned = manoeuvre_plan.plan(model, unknowns, channels, ShootingOptions(), 20.0)
    order = manoeuvre_plan.best_order(planned, 3)
    sds = np.array([sd for _, sd in order])
    assert (np.diff(sds, axis=0) < 0.0).all() and (sds[-1] < 0.3).all()
    coasting = next(p for p in planned if p.name.startswith("coast-down"))
    turning = next(p for p in planned if p.name.startswith("zig-zag"))
    assert coasting.information[0, 0] > coasting.information[1, 1]
    assert turning.information[1, 1] > 100.0 * coasting.information[1, 1]


# ------------------------------------------------------------------ wrong input


def spoiled(tmp_path: Path, change: Callable[[str], str], columns: str = "") -> str:
    """Return the message for a CSV file that ``change`` has spoiled."""
    path = tmp_path / "log.csv"
    path.write_text(change(csv_lines(sail_boat(1, 30.0))))
    with pytest.raises(LogError) as raised:
        read_trial(path, library()["sookshma"], TrialSource(columns=columns))
    text = str(raised.value)
    assert text.count("\n") == 0
    return text


def column(lines: str, name: str, change: Callable[[int, float], float]) -> str:
    head, *rows = lines.strip().split("\n")
    at = head.split(",").index(name)
    made = [head]
    for k, row in enumerate(rows):
        cells = row.split(",")
        cells[at] = f"{change(k, float(cells[at])):.9g}"
        made.append(",".join(cells))
    return "\n".join(made) + "\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: "", "is empty"),
        (lambda s: s.split("\n")[0] + "\n", "a header but no rows"),
        (lambda s: s.replace("time", "when"), "no column for the time"),
        (lambda s: s.replace("rudder", "helm"), "no commands of an actuator"),
        (lambda s: "\n".join(",".join(r.split(",")[:2]) for r in s.split("\n")), "no measurements"),
        (lambda s: column(s, "rudder", lambda k, v: math.degrees(v)), "rudder=COLUMN:deg"),
        (lambda s: column(s, "heading", lambda k, v: math.degrees(v)), "heading=heading:deg"),
        (lambda s: column(s, "yaw_rate", lambda k, v: math.degrees(v)), "yaw_rate=COLUMN:deg/s"),
        (lambda s: column(s, "yaw_rate", lambda k, v: -v), "opposite sign"),
        (lambda s: s.replace("north,east", "east,north"), "north and east swapped"),
        (lambda s: column(s, "time", lambda k, v: v - 100.0 * (k > 150)), "jumps back by"),
        (lambda s: column(s, "time", lambda k, v: v + 5000.0 * (k > 150)), "jumps by 5000 s"),
        (lambda s: column(s, "time", lambda k, v: v * 1e-3), "overlap for 0.0 s"),
        (lambda s: column(s, "rudder", lambda k, v: 0.1), "no command changes"),
        (lambda s: column(s, "rudder", lambda k, v: math.nan), "'rudder' has no valid values"),
        (lambda s: s.replace("0.1,", "x,", 1), "no number in the column"),
    ],
)
def test_a_spoiled_log_gives_one_clear_message(tmp_path: Path, change: Callable[[str], str], message: str) -> None:
    assert message in spoiled(tmp_path, change)


def test_units_and_names_of_columns_can_be_stated(tmp_path: Path) -> None:
    trial = sail_boat(1, 30.0)
    names = {"rudder": "cmd", "yaw_rate": "gz", "heading": "hdg"}
    text = csv_lines(trial, {"rudder": 57.29577951, "yaw_rate": 57.29577951, "heading": 57.29577951}, names)
    (tmp_path / "log.csv").write_text(text)
    layout = "time=time rudder=cmd:deg yaw_rate=gz:deg/s heading=hdg:deg"
    found = read_trial(tmp_path / "log.csv", library()["sookshma"], TrialSource(columns=layout))
    assert sorted(found.channels) == ["heading", "yaw_rate"]
    sailed = trial.commands["rudder"]
    np.testing.assert_allclose(found.commands["rudder"].value, sailed.value[sailed.time > START - 1e-6], atol=1e-6)
    np.testing.assert_allclose(
        found.channels["heading"].value,
        trial.channels["heading"].value[: len(found.channels["heading"].value)],
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fit", "derivatives/N_x"], "has no derivative 'N_x'"),
        (["--fit", "derivatives/N_r", "--channel", "depth"], "has no channel 'depth'"),
        (["--fit", "derivatives/N_r", "--assume", "delay"], "must be NAME=VALUE"),
        (["--fit", "derivatives/N_r", "--assume", "drag=1"], "'drag' is not delay"),
        (["--fit", "derivatives/N_r", "--assume", "offset/helm=1"], "'offset/helm' has no effect"),
        (["--fit", "derivatives/N_r", "--assume", "delay=nan"], "must be NAME=VALUE"),
        (["--fit", "derivatives/N_r=1e999"], "is not a number"),
        (["--fit", "derivatives/N_r", "--true-states"], "applies only to a WaVeSim log"),
        (["--fit", "derivatives/N_r", "--out", "absent/m.xml"], "the folder absent does not exist"),
        (["--fit", "derivatives/N_r", "--picture", "p.txt"], "must end in one of"),
    ],
)
def test_a_wrong_option_gives_one_clear_message(tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "a.csv").write_text(csv_lines(sail_boat(1, 20.0)))
    done = run("fit", "sookshma", tmp_path / "a.csv", *arguments)
    assert done.exit_code != 0 and message in (done.output + str(done.exception))
