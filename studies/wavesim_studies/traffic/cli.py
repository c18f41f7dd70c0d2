"""Commands in the ``wavesim traffic`` group: simulate and score encounters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_world.cli_options import files_option


@click.group()
def traffic() -> None:
    """Run and score vessel encounters.

    The encounters are Imazu's cases or situations from DNV's traffic generator. The reference avoider or an avoider
    that you provide steers own ship.
    """


avoider_option = click.option(
    "--avoider",
    default="reference",
    show_default=True,
    metavar="NAME",
    help="Avoider of own ship: an installed avoider, FILE.py:OBJECT, or MODULE:OBJECT.",
)


def _options(function: Any) -> Any:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per encounter."),
        click.option("--hold", is_flag=True, help="Keep own ship on its course, without collision avoidance."),
        avoider_option,
        click.option(
            "--model", default="otter", show_default=True, help="Model of own ship: a surface vessel from the library."
        ),
    ):
        function = option(function)
    return function


@traffic.command()
@click.argument("cases", type=click.IntRange(1, 22), nargs=-1)
@_options
def imazu(cases: tuple[int, ...], model: str, avoider: str, hold: bool, as_json: bool) -> None:
    """Run the given Imazu CASES; default: all 22."""
    from wavesim_studies.traffic import encounters
    from wavesim_studies.traffic.encounter_runs import MODEL_SPEEDS_AND_TIMES

    speed, time = MODEL_SPEEDS_AND_TIMES.get(model, (3.0, 300.0))
    for case in cases or encounters.IMAZU:
        _run_and_print(encounters.imazu(case, speed, time), model, _selected(avoider, hold), as_json)


@traffic.command()
@click.argument("files", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True)
@_options
def dnv(files: tuple[Path, ...], model: str, avoider: str, hold: bool, as_json: bool) -> None:
    """Run situations from DNV's ship-traffic-generator (JSON FILES)."""
    from wavesim_studies.traffic.encounters import read_dnv

    for path in files:
        _run_and_print(read_dnv(path), model, _selected(avoider, hold), as_json)


def _selected(avoider: str, hold: bool) -> str | None:
    """Return the name of the avoider, or None for --hold. Raise UsageError if both are given."""
    source = click.get_current_context().get_parameter_source("avoider")
    if hold and source is not click.core.ParameterSource.DEFAULT:
        raise click.UsageError("--hold and --avoider cannot be combined")
    if hold:
        return None
    from wavesim_sdk.guidance.avoiders import avoider_named

    avoider_named(avoider)  # a mistake is reported before the kernels are compiled
    return avoider


@traffic.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("cases", type=click.IntRange(1, 22), nargs=-1)
@click.option(
    "--model", default="otter", show_default=True, help="Model of own ship: a surface vessel from the library."
)
@click.option(
    "--rogue", is_flag=True, help="Make the first of the other vessels leave its course and steer for own ship."
)
@click.option(
    "--captain",
    type=click.Path(path_type=Path),
    default=Path("examples/onboard/captain.py"),
    show_default=True,
    help="Program that steers the vessels.",
)
@avoider_option
def trials(folder: Path, cases: tuple[int, ...], model: str, rogue: bool, captain: Path, avoider: str) -> None:
    """Write Imazu CASES as configurations for `wavesim trial`.

    The command writes one file per case to FOLDER. Without CASES, it writes all 22 cases. Own ship detects the other vessels only by AIS and radar.
    """
    from wavesim_studies.traffic import encounters
    from wavesim_studies.traffic.encounter_runs import MODEL_SPEEDS_AND_TIMES
    from wavesim_studies.traffic.encounter_trials import write

    _known(model)
    speed, time = MODEL_SPEEDS_AND_TIMES.get(model, (3.0, 300.0))
    for case in cases or encounters.IMAZU:
        echo(write(encounters.imazu(case, speed, time), folder, model, captain, rogue, avoider))
    if not captain.resolve().is_relative_to(folder.resolve()):
        echo(f"run a trial with: wavesim trial --files {captain.parent} {folder}/NAME.xml", err=True)


@traffic.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@files_option
@click.option("--vehicle", default="odin", show_default=True, help="Name of a vessel in the configuration.")
@click.option(
    "--radius",
    type=Quantity("length", low=0.0),
    default=45.0,
    show_default=True,
    help="Turning radius at waypoints in m.",
)
@click.option(
    "--seconds", type=Quantity("time", low=1.0), default=480.0, show_default=True, help="Duration of the voyage in s."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def mission(file: Path, vehicle: str, radius: float, seconds: float, as_json: bool) -> None:
    """Sail a vessel along its waypoints and report the deviation.

    FILE is a configuration; other vessels in it are ignored. The report states the speed and the distances from the
    legs and arcs.
    """
    import numpy as np

    from wavesim_server import compiling
    from wavesim_studies.traffic.waypoint_runs import rms, run_waypoints
    from wavesim_world.config import load

    compiling.ensure_compiled()
    found = run_waypoints(load(file), vehicle, radius, seconds)
    late = found.times > min(60.0, 0.5 * seconds)
    result = {
        "waypoints": found.reached,
        "cross_track_rms_m": round(rms(found.off[late]), 3),
        "cross_track_max_m": round(float(found.off[late].max()), 3),
        "speed_mean_m_s": round(float(np.mean(found.speeds[late])), 3),
    }
    echo(finite_json(result) if as_json else "\n".join(f"{k:20} {v:g}" for k, v in result.items()))


def _known(model: str) -> None:
    """Raise ConfigError unless this model can be used for own ship."""
    from wavesim_sdk.errors import ConfigError
    from wavesim_sdk.names import suggest_name
    from wavesim_world.config import library

    if model not in library():
        raise ConfigError(f"unknown model '{model}'{suggest_name(model, library())}")
    if library()[model].box is None:
        raise ConfigError(
            f"'{model}' is not a surface vessel: own ship needs a model with a <box>, which defines its length and width"
        )


def _run_and_print(encounter: object, model: str, avoider: str | None, as_json: bool) -> None:
    from wavesim_server import compiling
    from wavesim_studies.traffic.encounter_runs import run_encounter
    from wavesim_studies.traffic.encounters import Encounter

    assert isinstance(encounter, Encounter)
    _known(model)
    compiling.ensure_compiled()
    found = run_encounter(encounter, model, avoider)
    score = found.score
    if as_json:
        pairs = [
            {
                "other": p.other,
                "role": p.role.value,
                "distance_m": round(p.distance, 2),
                "time_s": round(p.time, 2),
                "score": round(p.score, 3),
                **{k: round(v, 3) for k, v in p.parts.items()},
            }
            for p in score.pairs
        ]
        echo(
            finite_json(
                {
                    "name": encounter.name,
                    "score": round(score.total, 3),
                    "extra_way": round(score.extra, 4),
                    "late_s": round(score.late, 1),
                    "course_changes": score.turns,
                    "economy": {k: round(v, 3) for k, v in score.economy.items()},
                    "pairs": pairs,
                }
            )
        )
    else:
        echo(f"{encounter.name}: {score}")
