"""Commands in the ``wavesim exam`` group: run, export, score and tabulate the exam for navigation filters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo, finite_json

if TYPE_CHECKING:
    from wavesim_studies.exam.scenario import Scenario
    from wavesim_studies.exam.scoring import Job

LEVELS = ("easy", "medium", "hard")


@click.group()
def exam() -> None:
    """Run and score the exam for navigation filters.

    The exam consists of ten frozen scenarios. Each has three levels with three seeds.
    """


level_option = click.option(
    "--level",
    "levels",
    multiple=True,
    type=click.Choice(LEVELS),
    help="Level; default: medium. Repeatable.",
)
seeds_option = click.option(
    "--seeds",
    type=click.IntRange(1, 10000),
    help="Number of seeds, from 1; default: the seeds of the exam, which each scenario lists.",
)
workers_option = click.option(
    "--workers", type=click.IntRange(1, 256), help="Number of worker processes; default: number of processors."
)
out_option = click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the results to this file (JSON)."
)


@exam.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the scenarios."""
    from wavesim_studies.exam.scenario import names, scenario

    found = [scenario(name) for name in names()]
    if as_json:
        values = [{"name": s.name, "title": s.title, "question": s.question, "digest": s.digest} for s in found]
        echo(finite_json(values, 2))
        return
    for s in found:
        echo(f"{s.name:12}{s.title:52}{s.duration:4.0f} s   {s.digest[:12]}")


@exam.command()
@click.argument("name", metavar="SCENARIO")
def show(name: str) -> None:
    """Show what a scenario asks and what a filter may know."""
    from wavesim_studies.exam.scenario import scenario

    s = scenario(name)
    echo(f"{s.title}\n\n{s.question}\n\nA program may know:")
    for line in s.knowledge:
        echo(f"- {line}")
    echo(
        f"\nScored: {', '.join(s.vehicles)}, from {s.score_from:g} s to {s.duration:g} s. A position is available if its "
        f"horizontal error is at most {s.requirement:g} m.\n"
    )
    keys = list(s.level("easy"))
    for level in LEVELS:
        values = s.level(level)
        echo(f"{level:8}{', '.join(f'{k} {values[k]}' for k in keys)}")
    echo(f"\nSeeds of each level: {', '.join(map(str, s.seeds))}\ndigest {s.digest}")


@exam.command()
@click.argument("scenarios", metavar="[SCENARIO]...", nargs=-1)
@level_option
@seeds_option
@workers_option
@click.option(
    "--program",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run this on-board program instead of the reference filter, and score the estimates that it publishes.",
)
@click.option("--name", default="", help="Name of the filter in the results; default: the name of the program's file.")
@out_option
@json_option
def run(
    scenarios: tuple[str, ...],
    levels: tuple[str, ...],
    seeds: int | None,
    workers: int | None,
    program: Path | None,
    name: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run scenarios with the reference filter or your program.

    Without SCENARIO, the command runs all ten. It simulates each case, scores the estimates and computes the bound.
    """
    from wavesim_studies.exam.scenario import names, scenario
    from wavesim_studies.exam.scoring import Job

    jobs = [
        Job(s.name, level, seed, program, name=name)
        for s in map(scenario, dict.fromkeys(scenarios or names()))
        for level in dict.fromkeys(levels or ("medium",))
        for seed in _seeds(s, seeds)
    ]
    _execute(jobs, workers, out, as_json)


@exam.command()
@click.argument("scenarios", metavar="SCENARIO...", nargs=-1, required=True)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@level_option
@seeds_option
def export(scenarios: tuple[str, ...], folder: Path, levels: tuple[str, ...], seeds: int | None) -> None:
    """Write what a filter may know to FOLDER, as CSV.

    The command writes a folder for each case, with exam.json and a table for each instrument. It writes no true states.
    SCENARIO may be `all`.
    """
    from wavesim_server import compiling
    from wavesim_studies.exam.execution import export_case
    from wavesim_studies.exam.scenario import names, scenario

    chosen = [scenario(s) for s in (names() if scenarios == ("all",) else scenarios)]
    compiling.ensure_compiled()
    for s in chosen:
        for level in dict.fromkeys(levels or ("medium",)):
            for seed in _seeds(s, seeds):
                echo(str(export_case(s, level, seed, folder)))


@exam.command()
@click.argument("scenario", metavar="SCENARIO")
@click.argument("estimates", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option("--level", type=click.Choice(LEVELS), default="medium", show_default=True, help="Level of the case.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(1), help="Seed of the case.")
@click.option(
    "--layout",
    default="",
    metavar="KEYS",
    help='Layout of the estimate files, as for `wavesim nav score`, e.g. "frame=enu" or "time=t:ns north=x east=y".',
)
@click.option("--name", default="", help="Name of the filter in the results; default: the name of the file or folder.")
@workers_option
@out_option
@json_option
def score(
    scenario: str,
    estimates: tuple[Path, ...],
    level: str,
    seed: int,
    layout: str,
    name: str,
    workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Score your offline estimates of exported cases.

    ESTIMATES is a file for each scored vehicle of the case that --level and --seed select, or the folder of
    `wavesim exam export`, in which each case has its estimate: estimate.csv, estimate.tum or estimate-VEHICLE.csv. With
    a folder, SCENARIO may be `all`. The command simulates each case again to obtain the true states.
    """
    from wavesim_sdk.errors import LogError
    from wavesim_studies.exam import scenario as scenarios
    from wavesim_studies.exam.execution import find_estimates
    from wavesim_studies.exam.scoring import Job

    label = name or estimates[0].resolve().stem
    if not estimates[0].is_dir():
        s = scenarios.scenario(scenario)
        _execute([Job(s.name, level, seed, None, estimates, layout, label)], workers, out, as_json)
        return
    if len(estimates) > 1:
        raise click.UsageError("give one folder, or a file for each scored vehicle")
    source = click.get_current_context().get_parameter_source
    if any(source(k) is not click.core.ParameterSource.DEFAULT for k in ("level", "seed")):
        raise click.UsageError("--level and --seed apply to files; the cases of a folder are named in it")
    jobs, lacking = [], []
    for known in scenarios.names() if scenario == "all" else (scenario,):
        found, without = find_estimates(estimates[0], scenarios.scenario(known))
        jobs += [Job(known, k, n, None, files, layout, label) for (k, n), files in found.items()]
        lacking += without
    if not jobs:
        what = "" if scenario == "all" else f" of '{scenario}'"
        raise LogError(
            f"no estimates{what} in {estimates[0]}: `wavesim exam export` writes a folder for each case, and your program "
            "writes estimate.csv, estimate.tum or (if several vehicles are scored) estimate-VEHICLE.csv to it"
        )
    for folder in lacking:
        echo(f"not scored, because the estimate is missing: {folder}", err=True)
    _execute(jobs, workers, out, as_json)


@exam.command()
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path), nargs=-1, required=True)
@click.option("--format", "kind", type=click.Choice(["text", "markdown", "csv"]), default="text", show_default=True)
def table(results: tuple[Path, ...], kind: str) -> None:
    """Build the table of RESULTS (files of `run` and `score`).

    The command rejects results of other versions of a scenario, and results of one case whose true tracks differ.
    """
    from wavesim_studies.exam import results as files

    rows = files.table_rows(files.read_results(results))
    echo({"text": files.plain, "markdown": files.markdown, "csv": files.csv}[kind](rows))


def _seeds(scenario: Scenario, count: int | None) -> Sequence[int]:
    """Return the first seeds, or the seeds of the exam."""
    return scenario.seeds if count is None else range(1, count + 1)


def _execute(jobs: list[Job], workers: int | None, out: Path | None, as_json: bool) -> None:
    """Run the jobs, write the results and print the table."""
    from wavesim_server import compiling
    from wavesim_studies.exam import results as files
    from wavesim_studies.exam.execution import run_jobs
    from wavesim_studies.navigation.score_estimates import prepare_filter

    check_writable(out)
    compiling.ensure_compiled()
    prepare_filter(as_json)

    def finished(job: Job, cases: list[dict[str, Any]]) -> None:
        if out is not None:
            files.write_results(cases, out)
        if not as_json:
            echo(f"{len(cases):4} of {len(jobs)}  {job.scenario}, {job.level}, seed {job.seed}", err=True)

    cases = run_jobs(jobs, workers or os.cpu_count() or 1, finished)
    echo(finite_json(cases, 2) if as_json else files.plain(files.table_rows(cases)))
