"""Commands in the ``wavesim identify`` group: fit a model to the logs of a vehicle, check and report its predictions, and
plan manoeuvres."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_studies.cli_options import check_suffix, frame_option

if TYPE_CHECKING:
    from wavesim_studies.identification.recorded_trials import RecordedTrial
    from wavesim_studies.identification.shooting import ShootingOptions
    from wavesim_world.config import Model


@click.group()
def identify() -> None:
    """Fit a model to the logs of your vehicle."""


_LOG_OPTIONS = [
    click.option(
        "--models", type=click.Path(path_type=Path), help="Models file or configuration to search besides the library."
    ),
    click.option(
        "--map",
        "map_file",
        type=click.Path(path_type=Path),
        help="Trial map (.xml) of a folder with CSV files, or import map of a bag.",
    ),
    click.option(
        "--columns",
        default="",
        metavar="LAYOUT",
        help="Columns of a CSV file, e.g. `time=t:ns rudder=cmd:deg yaw_rate=gz:deg/s`.",
    ),
    click.option("--vehicle", default="", help="Vehicle in a WaVeSim log; default: the only one."),
    click.option(
        "--command",
        "commands",
        multiple=True,
        metavar="ACTUATOR=TOPIC:FIELD",
        help="Topic and field of a bag that command an actuator. Repeatable.",
    ),
    frame_option,
    click.option("--true-states", is_flag=True, help="Use the true states of a WaVeSim log instead of its sensors."),
    click.option(
        "--channel",
        "channels",
        multiple=True,
        help="Measurement to use; default: all. Repeatable. Names: north, east, depth, roll, pitch, heading, surge, sway, "
        "heave, water_surge, water_sway, speed, roll_rate, pitch_rate, yaw_rate.",
    ),
]
_RUN_OPTIONS = [
    click.option(
        "--assume",
        multiple=True,
        metavar="NAME=VALUE",
        help="Known value in SI units of delay, push, speed (at the start), offset/ACTUATOR, current/north or current/east. Repeatable.",
    ),
    click.option(
        "--step",
        type=Quantity("time", low=1e-3, high=0.1),
        default=0.02,
        show_default=True,
        help="Time step of the simulation in s.",
    ),
    click.option(
        "--period",
        type=Quantity("time", low=0.01, high=10.0),
        default=0.1,
        show_default=True,
        help="Interval in s over which measurements are averaged.",
    ),
    click.option(
        "--world",
        default="",
        help="XML element <world> or its content, e.g. `<world density='998 kg/m3'/>`; default: deep still sea water.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, 256),
        default=2,
        show_default=True,
        help="Number of threads; the results do not depend on it.",
    ),
]
_START = click.option(
    "--start",
    "start_seconds",
    type=Quantity("time", low=0.5, high=600.0),
    default=3.0,
    show_default=True,
    help="Length in s of the measurements that determine the start state of a prediction.",
)
_SEGMENT = click.option(
    "--segment",
    type=Quantity("time", low=1.0),
    default=6.0,
    show_default=True,
    help="Length in s of the segments; the initial state of each segment is estimated.",
)
_FIT = click.option(
    "--fit",
    "unknowns",
    multiple=True,
    required=True,
    metavar="PATH[=START][~SIGMA]",
    help="Coefficient (linear-drag/N_r, derivatives/N_v, fin[rudder]/lag) or other unknown (delay, offset/ACTUATOR, push, "
    "current, bias, shift), with the start and the standard deviation of its prior (in SI units, or in %). Repeatable.",
)


def _with(options: list[Any]) -> Callable[[Any], Any]:
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


@dataclass(frozen=True)
class FitInput:
    """Model, logs and settings that the options of a command describe."""

    model: Model
    trials: list[RecordedTrial]
    others: list[RecordedTrial]  #: held-out trials
    options: ShootingOptions
    assumed: dict[str, float]

    @property
    def channels(self) -> list[str]:
        return list(dict.fromkeys(c for t in self.trials for c in t.channels))


def _prepare(model: str, files: tuple[Path, ...], held: tuple[Path, ...], segment: float, **given: Any) -> FitInput:
    """Read the model and the logs."""
    from wavesim_server import compiling
    from wavesim_server.cli_vehicles import find_model
    from wavesim_studies.identification.shooting import ShootingOptions
    from wavesim_studies.identification.trial_checks import suspicions
    from wavesim_studies.identification.trial_files import TrialSource, check_options, read_trial

    kind = find_model(model, given["models"])
    assumed = dict(map(_assumption, given["assume"]))
    source = TrialSource(
        given["map_file"], given["columns"], given["vehicle"], given["commands"], given["frame"], given["true_states"]
    )
    check_options((*files, *held), source)
    trials = [read_trial(path, kind, source).with_channels(given["channels"]) for path in (*files, *held)]
    for trial in trials:
        for text in suspicions(trial):
            echo(f"note: {text}", err=True)
    _check_assumed(assumed, kind, [c for t in trials for c in t.channels])
    options = ShootingOptions(
        segment=segment, step=given["step"], period=given["period"], world=given["world"], workers=given["workers"]
    )
    compiling.ensure_compiled()
    return FitInput(kind, trials[: len(files)], trials[len(files) :], options, assumed)


def _assumption(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise click.BadParameter(f"'{text}' must be NAME=VALUE with a number in SI units", param_hint="--assume")
    if name.partition("/")[0] not in ("delay", "push", "speed", "offset", "current", "bias", "shift"):
        raise click.BadParameter(
            f"'{name}' is not delay, push, speed, offset/ACTUATOR, current/north or current/east", param_hint="--assume"
        )
    return name, value


def _check_assumed(assumed: dict[str, float], model: Model, channels: Sequence[str]) -> None:
    """Raise BadParameter for a value that would have no effect."""
    from wavesim_world.actuators import actuators_of

    known = [
        "delay",
        "push",
        "speed",
        *(f"offset/{a.name}" for a in actuators_of(model)),
        "current/north",
        "current/east",
    ]
    known += [f"{kind}/{c}" for kind in ("bias", "shift") for c in dict.fromkeys(channels)]
    for name in assumed:
        if name not in known:
            raise click.BadParameter(f"'{name}' has no effect; possible are {', '.join(known)}", param_hint="--assume")


def _check_picture(picture: Path | None) -> None:
    check_writable(picture)
    check_suffix(picture)


@identify.command("fit")
@click.argument("model")
@click.argument("files", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_FIT
@click.option(
    "--hold-out",
    "held",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Log that the fit does not use, to be predicted. Repeatable.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write the fitted model to this models file (.xml).")
@click.option("--name", default="", help="Name of the fitted model; default: MODEL-fitted.")
@click.option("--profiles", is_flag=True, help="Also compute the profile of each coefficient.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help="Write a plot of the last prediction to this file (.png, .pdf or .svg).",
)
@_with([*_LOG_OPTIONS, *_RUN_OPTIONS, _SEGMENT, _START, json_option])
def fit_(
    model: str,
    files: tuple[Path, ...],
    unknowns: tuple[str, ...],
    held: tuple[Path, ...],
    out: Path | None,
    name: str,
    profiles: bool,
    picture: Path | None,
    segment: float,
    start_seconds: float,
    as_json: bool,
    **given: Any,
) -> None:
    """Fit coefficients of MODEL to logs.

    LOG is a WaVeSim log, a CSV file (see --columns), a folder with CSV files (see --map) or a ROS bag (see --command).
    The command prints each unknown with its uncertainty, what the logs do not determine, and the errors of predictions
    for logs that the fit did not use. The fitted model never replaces another one.
    """
    from wavesim_studies import identification as idn
    from wavesim_studies.identification import model_files, report

    _check_picture(picture)
    check_writable(out)
    if out is not None and out.exists():
        raise ConfigError(f"{out} already exists; choose another file, because fitted models never replace others")
    data = _prepare(model, files, held, segment, **given)
    parsed = idn.parse_unknowns(unknowns, data.model, data.channels, len(data.trials))

    def say(text: str) -> None:
        echo(text, err=True)

    result = idn.fit(data.model, data.trials, parsed, data.options, data.assumed, say)
    signs = idn.reversed_signs(result, say)
    rises = {u.path: idn.profile(result, k) for k, u in enumerate(parsed) if profiles and u.kind == "coefficient"}
    known = {**data.assumed, **result.common_values()}
    fitted = result.model
    made = [(idn.predict(fitted, t, data.options, known, start_seconds), "held out") for t in data.others]
    if out is not None:
        model_files.write_model(result, out, name or f"{data.model.name}-fitted", [p for p, _ in made])
    if picture is not None:
        shown = made[-1][0] if made else idn.predict(fitted, data.trials[-1], data.options, known, start_seconds)
        report.save_figure(report.figure_of(shown), picture)
    if as_json:
        found = report.fit_data(result, rises, signs)
        found["hold_out"] = [report.prediction_data(p) for p, _ in made]
        echo(finite_json(found, 2))
        return
    for line in report.fit_lines(result, rises, signs):
        echo(line)
    for p, role in made:
        for line in report.prediction_lines(p, role):
            echo(line)
    if known:
        echo("for `wavesim identify check`: " + " ".join(f"--assume {k}={v:.5g}" for k, v in known.items()))
    if out is not None:
        echo(f'wrote {out}; use it with <models><include file="{out.name}"/></models>')


@identify.command()
@click.argument("model")
@click.argument("files", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--picture", type=click.Path(path_type=Path), help="Write a plot of the last log to this file (.png, .pdf or .svg)."
)
@_with([*_LOG_OPTIONS, *_RUN_OPTIONS, _START, json_option])
def check(
    model: str, files: tuple[Path, ...], picture: Path | None, start_seconds: float, as_json: bool, **given: Any
) -> None:
    """Predict logs with MODEL and measure the errors.

    Only the first seconds of a log are used, for the start state. The commands of the log then drive the model, and the
    result is compared with all measurements.
    """
    from wavesim_studies import identification as idn
    from wavesim_studies.identification import report

    _check_picture(picture)
    data = _prepare(model, files, (), 6.0, **given)
    made = [idn.predict(data.model, t, data.options, data.assumed, start_seconds) for t in data.trials]
    if picture is not None:
        report.save_figure(report.figure_of(made[-1]), picture)
    if as_json:
        echo(finite_json([report.prediction_data(p) for p in made], 2))
        return
    for p in made:
        for line in report.prediction_lines(p, f"predicted by `{data.model.name}`"):
            echo(line)


@identify.command("report")
@click.argument("model")
@click.argument("files", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_FIT
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Page to write (.html).")
@_with([*_LOG_OPTIONS, *_RUN_OPTIONS, _SEGMENT, _START])
def report_(
    model: str,
    files: tuple[Path, ...],
    unknowns: tuple[str, ...],
    out: Path,
    segment: float,
    start_seconds: float,
    **given: Any,
) -> None:
    """Write a page about MODEL and the logs.

    The page shows the predictions beside the measurements, and how well the logs would determine each coefficient given
    by --fit. No coefficient is changed.
    """
    from wavesim_studies import identification as idn
    from wavesim_studies.identification import report

    check_writable(out)
    data = _prepare(model, files, (), segment, **given)
    parsed = idn.parse_unknowns(unknowns, data.model, data.channels, len(data.trials))
    result = idn.assess(data.model, data.trials, parsed, data.options, data.assumed)
    made = [
        (idn.predict(data.model, t, data.options, data.assumed, start_seconds), f"Predicted by {data.model.name}")
        for t in data.trials
    ]
    text = report.page(f"{data.model.name} and its logs", result, made, report.advice(result))
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", str(out)) from None
    echo(f"wrote {out}")


@identify.command()
@click.argument("model")
@_FIT
@click.option(
    "--models", type=click.Path(path_type=Path), help="Models file or configuration to search besides the library."
)
@click.option(
    "--channel",
    "channels",
    multiple=True,
    help="Measurement that the vehicle records; default: north, east, heading, yaw_rate, surge. Repeatable.",
)
@click.option("--noise", multiple=True, metavar="CHANNEL=SIGMA", help="Noise of a measurement in SI units. Repeatable.")
@click.option(
    "--seconds",
    type=Quantity("time", low=10.0, high=600.0),
    default=60.0,
    show_default=True,
    help="Duration of each manoeuvre in s.",
)
@click.option("--count", type=click.IntRange(1, 20), default=5, show_default=True, help="Number of manoeuvres.")
@click.option(
    "--step",
    type=Quantity("time", low=1e-3, high=0.1),
    default=0.02,
    show_default=True,
    help="Time step of the simulation in s.",
)
@json_option
def plan(
    model: str,
    unknowns: tuple[str, ...],
    models: Path | None,
    channels: tuple[str, ...],
    noise: tuple[str, ...],
    seconds: float,
    count: int,
    step: float,
    as_json: bool,
) -> None:
    """Propose manoeuvres that teach most about MODEL.

    Each manoeuvre is simulated. The best one first: it adds most to the Fisher information about the coefficients. The
    table shows the standard deviation of each coefficient after each manoeuvre, in % of the prior's.
    """
    from wavesim_server import compiling
    from wavesim_server.cli_vehicles import find_model
    from wavesim_studies.identification import manoeuvre_plan, recorded_trials
    from wavesim_studies.identification import unknowns as parsing
    from wavesim_studies.identification.shooting import ShootingOptions

    kind = find_model(model, models)
    chosen = channels or ("north", "east", "heading", "yaw_rate", "surge")
    for name in chosen:
        if name not in recorded_trials.CHANNELS:
            raise click.BadParameter(
                f"'{name}' is not one of {', '.join(recorded_trials.CHANNELS)}", param_hint="--channel"
            )
    parsed = parsing.parse_unknowns(unknowns, kind, chosen, 1)
    compiling.ensure_compiled()
    spread = dict(_noise(text, chosen) for text in noise)
    planned = manoeuvre_plan.plan(kind, parsed, chosen, ShootingOptions(step=step), seconds, spread)
    order = manoeuvre_plan.best_order(planned, count)
    if as_json:
        found = [
            {
                "manoeuvre": p.name,
                "seconds": seconds,
                "left": dict(zip([u.path for u in parsed], sd.tolist(), strict=True)),
            }
            for p, sd in order
        ]
        echo(finite_json(found, 2))
        return
    width = max(len(p.name) for p, _ in order)
    echo(f"{'':{width}} " + " ".join(f"{u.path[-18:]:>18}" for u in parsed))
    for p, sd in order:
        echo(f"{p.name:{width}} " + " ".join(f"{100.0 * s:16.1f} %" for s in sd))
    for u, s in zip(parsed, order[-1][1], strict=True):
        if s > 0.9:
            echo(f"note: these manoeuvres tell nothing about {u.path}")


def _noise(text: str, channels: tuple[str, ...]) -> tuple[str, float]:
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if name not in channels or not 0.0 < value < math.inf:
        raise click.BadParameter(
            f"'{text}' must be CHANNEL=SIGMA with a measurement and a positive number", param_hint="--noise"
        )
    return name, value
