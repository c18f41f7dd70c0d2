"""Commands in the ``wavesim nav`` group: run a filter over the sensor values of a log and score it against the true
states, compute Allan deviations, and train learned dead reckoning."""

from __future__ import annotations

import functools
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from wavesim_sdk.cli import json_option, whole
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_studies.cli_options import check_suffix
from wavesim_studies.navigation.cli_import import import_


@click.group()
def nav() -> None:
    """Score navigation on logs and analyse IMUs."""


nav.add_command(import_)


@nav.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--vehicle", "only", multiple=True, help="Vehicle to score; default: all vehicles with an IMU or AHRS. Repeatable."
)
@click.option(
    "--use",
    multiple=True,
    help="Instrument, or type of instruments, to use; default: all. Types: imu, ahrs, dvl, speedlog, ctd, pressure, gps, "
    "uwb, sound. Repeatable.",
)
@click.option("--without", multiple=True, help="Instrument, or type of instruments, to exclude. Repeatable.")
@click.option(
    "--noise",
    multiple=True,
    metavar="NAME=FACTOR",
    help="Multiply the noise that the filter assumes for an instrument or a type, e.g. uwb=2. Repeatable.",
)
@click.option("--no-gate", is_flag=True, help="Accept outliers, which the filter otherwise rejects.")
@click.option("--adapt", is_flag=True, help="Estimate the noise of each sensor from the innovations.")
@click.option("--smooth", is_flag=True, help="Run the smoother instead of the filter.")
@click.option(
    "--estimate",
    "estimates",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Score this estimate instead of the reference filter: TUM, CSV (.csv), ROS bag, or a WaVeSim log with "
    "estimates. Repeatable.",
)
@click.option(
    "--layout",
    default="",
    metavar="KEYS",
    help="Layout of the estimate file: frame=ned or frame=enu, topic=NAME, unit=ns, or columns such as time=t:ns north=x "
    "heading=yaw:deg.",
)
@click.option("--reference", is_flag=True, help="Also score the reference filter.")
@click.option(
    "--truth",
    type=click.Path(path_type=Path),
    help="Use the true track in this file instead of the true states in the log. Formats: as for --estimate.",
)
@click.option("--truth-layout", default="", metavar="KEYS", help="Layout of the file with the true track.")
@click.option(
    "--offset",
    default=0.0,
    type=Quantity("time"),
    help="Time in s to add to the times of the estimate.",
)
@click.option(
    "--gap",
    default=2.0,
    show_default=True,
    type=Quantity("time", low=0.0),
    help="Length in s of the longest gap in the estimate that is interpolated.",
)
@click.option(
    "--align", is_flag=True, help="Also report the error after alignment by the best-fitting rotation and translation."
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help="Write a plot of the tracks and errors to this file (.png, .pdf or .svg).",
)
@json_option
def score(
    file: Path | None,
    only: tuple[str, ...],
    use: tuple[str, ...],
    without: tuple[str, ...],
    noise: tuple[str, ...],
    no_gate: bool,
    adapt: bool,
    smooth: bool,
    estimates: tuple[Path, ...],
    layout: str,
    reference: bool,
    truth: Path | None,
    truth_layout: str,
    offset: float,
    gap: float,
    align: bool,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Score the reference filter or your own estimate on a log.

    The errors are differences from the true states. The filter uses the measurements in the log. It starts at the true
    state. Sensor mounts, accuracies and beacon positions come from the configuration. The report lists the instruments
    that were used, with their consistency, and those that were not used, with the reason. While the filter runs, it
    warns if the innovations of a sensor are inconsistent with the assumed noise.

    With --estimate, the command scores an estimate from another program. FILE may be omitted if --truth is given.
    """
    from wavesim_sdk.errors import LogError
    from wavesim_studies.navigation import logs, score_estimates

    check_suffix(picture)
    check_writable(picture)
    selection = logs.Selection(use, without, dict(map(_factor, noise)), not no_gate, adapt)
    log = None if file is None else score_estimates.read_log(file)
    if estimates:
        if picture is not None:
            raise click.UsageError("--picture applies only to the reference filter, without --estimate")
        if not reference and (use or without or noise or no_gate or adapt or smooth):
            raise click.UsageError(
                "--use, --without, --noise, --no-gate, --adapt and --smooth apply to the reference filter; add --reference"
            )
        task = score_estimates.EstimateTask(log, only, estimates, layout, truth, truth_layout, offset, gap, align)
        score_estimates.run(task, selection if reference else None, smooth, as_json)
        if log is not None:
            whole(log)
        return
    unused("without --estimate", "layout", "reference", "offset", "gap", "align")
    if log is None:
        raise click.UsageError("give FILE (a log), or give the tracks to compare with --estimate and --truth")
    log = score_estimates.log_with_truth(log, only, truth, truth_layout)
    names = only or logs.vehicles(log)
    if not names:
        able = ", ".join(score_estimates.vehicles_without_truth(log))
        hint = f"; no true states of {able}: add --truth FILE" if able else ""
        raise LogError(f"{file} has no vehicle with true states and an IMU or an AHRS{hint}")
    found, voyages = {}, []
    score_estimates.prepare_filter(as_json)
    for name in names:
        voyage = logs.estimation_case(log, name, selection=selection)
        if not as_json:  # a run can take a long time
            echo(f"{name}: {voyage.time[-1] - voyage.time[0]:.0f} s, {len(voyage.rows)} measurements", err=True)
        track = voyage.run(smooth, functools.partial(_warn, name))
        found[name] = {
            **asdict(voyage.score(track)),
            "states": voyage.design.size,
            "inertial": voyage.inertial,
            "sensors": logs.counts(voyage, track),
            "unused": voyage.unused,
        }
        voyages.append((voyage, track))
    if picture is not None:
        logs.draw(voyages, picture)
    if as_json:
        echo(finite_json(found, 2))
    else:
        score_estimates.show(found)
    whole(log)


def _warn(name: str, text: str) -> None:
    """Print a warning from the filter of one vehicle."""
    echo(f"{name}: {text}", err=True)


def _factor(text: str) -> tuple[str, float]:
    """Parse NAME=FACTOR into the name and the factor."""
    name, _, number = text.partition("=")
    try:
        factor = float(number)
    except ValueError:
        factor = 0.0
    if not name or not 0.0 < factor < 1e6:
        raise click.BadParameter(f"'{text}' must be NAME=FACTOR with a factor between 0 and 1e6", param_hint="--noise")
    return name, factor


class ColumnNames(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """Names of CSV columns, separated by commas, with an optional unit after a colon: ``wx,wy,wz:deg/s``."""

    name = "columns"

    def __init__(self, group: str, count: int) -> None:
        self.group, self.count = group, count

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[list[str], str]:
        from wavesim_studies.navigation.allan import CSV_UNITS

        names, colon, unit = str(value).partition(":")
        found, allowed = [name.strip() for name in names.split(",")], CSV_UNITS[self.group]
        if len(found) != self.count or not all(found):
            self.fail(f"'{value}' must name {self.count} column(s), separated by commas", param, ctx)
        if not colon:
            unit = next(k for k, factor in allowed.items() if factor == 1.0)
        if unit not in allowed:
            self.fail(f"unknown unit '{unit}' in '{value}'; use one of {', '.join(allowed)}", param, ctx)
        return found, unit


@nav.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--vehicle", default="", help="Vehicle that carries the IMU; default: the first vehicle with an IMU.")
@click.option("--sensor", default="", help="Name of the IMU; default: the vehicle's first IMU.")
@click.option("--time", type=ColumnNames("time", 1), help="Time column of a .csv file, e.g. t_ns:ns. Default unit: s.")
@click.option(
    "--rates",
    type=ColumnNames("rates", 3),
    help="Gyro columns of a .csv file, e.g. wx,wy,wz:deg/s. Default unit: rad/s.",
)
@click.option(
    "--force",
    type=ColumnNames("force", 3),
    help="Accelerometer columns of a .csv file, e.g. ax,ay,az:g. Default unit: m/s2.",
)
@click.option(
    "--rate",
    type=Quantity("frequency", low=1e-6),
    help="Sample rate of a .csv file in Hz. If given, the time column is not used.",
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help="Write a plot of the deviations to this file (.png, .pdf or .svg).",
)
@json_option
def allan(
    file: Path, vehicle: str, sensor: str, rate: float | None, picture: Path | None, as_json: bool, **columns: Any
) -> None:
    """Compute the Allan deviation of an IMU at rest.

    FILE is a log or, if its name ends in .csv, a table with a header. The command prints white noise, bias instability
    and random walk of the bias for each axis, with standard deviations (95 % limits for coefficients that cannot be
    distinguished from 0). The configured errors are shown for comparison if the log contains them.
    """
    from wavesim_sdk.log import read
    from wavesim_studies.navigation import allan as deviations

    check_suffix(picture)
    check_writable(picture)
    columns = {k: v for k, v in columns.items() if v is not None}
    log = None
    if file.suffix.lower() == ".csv":
        if not columns.keys() & {"rates", "force"}:
            raise click.UsageError("a .csv file requires --rates or --force, with the names of three columns")
        if rate is None and "time" not in columns:
            raise click.UsageError("a .csv file requires --time (a column) or --rate (in Hz)")
        if vehicle or sensor:
            raise click.UsageError("--vehicle and --sensor apply only to logs")
        recording = deviations.from_csv(file, columns, rate or 0.0)
    else:
        if columns or rate is not None:
            raise click.UsageError("--time, --rates, --force and --rate apply only to .csv files")
        log = read(file)
        recording = deviations.from_log(log, vehicle, sensor)
    found = deviations.curves(recording)
    if picture is not None:
        deviations.draw(recording, found, picture)
    if as_json:
        echo(finite_json(deviations.report(recording, found), 2))
    else:
        for line in deviations.table(recording, found):
            echo(line)
    if log is not None:
        whole(log)


@nav.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--count", default=48, show_default=True, type=click.IntRange(1, 10000), help="Number of missions.")
@click.option(
    "--seconds",
    default=600.0,
    show_default=True,
    type=Quantity("time", low=10.0, high=36000.0),
    help="Duration of each mission in s.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the first mission. Each subsequent mission uses the next number.",
)
@click.option(
    "--configuration",
    type=click.Path(path_type=Path),
    help="Run the first vehicle of this configuration, with random commands, instead of an LAUV.",
)
def missions(folder: Path, count: int, seconds: float, seed: int, configuration: Path | None) -> None:
    """Run random missions of a vehicle and add their logs to FOLDER.

    The logs are a dataset for `wavesim nav learn`.
    """
    from wavesim_server import compiling
    from wavesim_studies.navigation.training_missions import make_dataset
    from wavesim_world.config import load

    loaded = None if configuration is None else load(configuration)
    compiling.ensure_compiled()
    for k, (name, part) in enumerate(make_dataset(folder, count, seconds, seed, loaded), start=1):
        echo(f"{k:5} of {count}  {name}  {part}")


@nav.command()
@click.argument("folder", type=click.Path(path_type=Path), required=False)
@click.option(
    "--form",
    "forms",
    multiple=True,
    help="Planar form to train: position, delta, decoupled, velocity, velocity-yaw, velocity-yaw-delta, lstm-position, "
    "lstm-delta, lstm-decoupled, lstm-velocity-yaw, or all. Repeatable. Default: the three-dimensional network.",
)
@click.option(
    "--train-run",
    "train_runs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Recorded run (.csv) for training. Repeatable.",
)
@click.option(
    "--test-run",
    "test_runs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Recorded run (.csv) for testing. Repeatable.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the trained network to this file (.npz).")
@click.option(
    "--epochs", default=60, show_default=True, type=click.IntRange(1, 10000), help="Number of training epochs."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed of the training.")
@json_option
def learn(
    folder: Path | None,
    forms: tuple[str, ...],
    train_runs: tuple[Path, ...],
    test_runs: tuple[Path, ...],
    out: Path | None,
    epochs: int,
    seed: int,
    as_json: bool,
) -> None:
    """Train learned dead reckoning on a dataset or on recorded runs.

    `wavesim log export --dataset` and `wavesim nav missions` write such datasets. Each mission belongs to exactly one
    split: training, validation or test. The trained network and, for comparison, methods without learning are scored on
    the test missions. If recorded test runs are given, the methods are scored on these only.
    """
    if forms or train_runs or test_runs:
        _learn_forms(folder, forms, (train_runs, test_runs), (epochs, seed), out, as_json)
        return
    if folder is None:
        raise click.UsageError("give FOLDER with a dataset, or --form with recorded runs")
    from wavesim_studies.navigation import learned_dead_reckoning

    found = learned_dead_reckoning.learn(folder, epochs, seed, say=lambda text: echo(text, err=True))
    if out is not None:
        found["reckoner"].save(out)
    if as_json:
        report = {k: found[k] for k in ("missions", "summary", "seconds")}
        echo(finite_json(report | {"rows": [asdict(r) for r in found["rows"]]}, 2))
        return
    parts = found["missions"]
    echo(
        f"trained on {parts['train']} missions in {found['seconds']:.0f} s; medians over {parts['test']} unseen missions:"
    )
    echo(f"{'':10}{'final':>10}{'of dist.':>10}{'rms':>10}{'of the filter':>16}{'velocity':>12}")
    for name, s in sorted(found["summary"].items(), key=lambda item: item[1]["rms"]):
        speed = f"{s['velocity']:8.3f} m/s" if s["velocity"] == s["velocity"] else ""
        echo(f"{name:10}{s['final']:8.1f} m{s['percent']:8.1f} %{s['rms']:8.1f} m{s['of_filter']:16.3f}{speed}")


def _learn_forms(
    folder: Path | None,
    names: tuple[str, ...],
    recorded: tuple[tuple[Path, ...], tuple[Path, ...]],
    training: tuple[int, int],
    out: Path | None,
    as_json: bool,
) -> None:
    """Train planar forms. Print their errors and, for comparison, the errors of methods without learning."""
    from wavesim_studies.navigation import dataset, learned_forms, planar_runs

    if unknown := set(names) - {*learned_forms.FORMS, "all"}:
        raise click.BadParameter(
            f"unknown form '{sorted(unknown)[0]}'; use: {', '.join(learned_forms.FORMS)}, all", param_hint="--form"
        )
    names = tuple(learned_forms.FORMS) if "all" in names else names or ("velocity-yaw-delta", "lstm-velocity-yaw")
    if out is not None and len(names) != 1:
        raise click.UsageError("--out requires exactly one --form")
    runs = [
        planar_runs.of_csv(path, part)
        for part, paths in zip(("train", "test"), recorded, strict=True)
        for path in paths
    ]
    if folder is not None:
        for name, entry in dataset.missions(folder).items():
            if entry["part"] != "test" or not recorded[1]:
                runs.append(planar_runs.of_mission(folder, name, entry, entry["part"] == "test"))
    found = learned_forms.compare(runs, names, *training, say=lambda text: echo(text, err=True))
    if out is not None:
        found["forms"][names[0]].save(out)
    if as_json:
        echo(finite_json({k: found[k] for k in ("errors", "seconds", "train", "test")}, 2))
        return
    echo(f"trained on {found['train']} runs; medians over {found['test']} unseen runs:")
    echo(f"{'':24}{'final':>10}{'of dist.':>10}{'rms':>10}{'yaw rms':>12}{'training':>11}")
    for name, each in sorted(found["errors"].items(), key=lambda item: _median(item[1], "rms")):
        final, percent, rms, yaw = (_median(each, k) for k in ("final", "percent", "rms", "yaw"))
        turn = f"{yaw * 57.29578:8.1f} deg" if yaw == yaw else ""
        spent = f"{found['seconds'][name]:9.0f} s" if name in found["seconds"] else ""
        echo(f"{name:24}{final:8.2f} m{percent:8.1f} %{rms:8.2f} m{turn:>12}{spent:>11}")


def _median(each: dict[str, dict[str, float]], key: str) -> float:
    from statistics import median

    return median(e[key] for e in each.values())
