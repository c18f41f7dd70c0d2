"""Commands in the ``wavesim data`` group: reproduce recorded trials."""

from __future__ import annotations

from pathlib import Path

import click

from wavesim_sdk.cli import json_option
from wavesim_sdk.errors import LogError
from wavesim_sdk.output_files import check_writable
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_studies.cli_options import check_suffix


@click.group()
def data() -> None:
    """Compare recorded trials with simulated ones."""


@data.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the configuration and the results to this folder.")
@click.option(
    "--runs",
    default=0,
    show_default=True,
    type=click.IntRange(0, 100),
    help="Number of trials to simulate and compare.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed of the first simulated trial.")
@click.option("--picture", type=click.Path(path_type=Path), help="Write a picture to this file (.png, .pdf or .svg).")
@json_option
def ssu1(folder: Path, out: Path | None, runs: int, seed: int, picture: Path | None, as_json: bool) -> None:
    """Estimate and simulate the acoustic trial ssu1.

    FOLDER contains hydros.csv, detections.csv and gps.csv of the data set. The command estimates clocks, positions,
    sound speed and the track of the towed tag, and fits six parameters of reception to the fixed tags. With --out, it
    writes a WaVeSim configuration of the same trial. With --runs, it simulates the trial, analyses the simulated
    detections with the same code, and compares the towed tag, which the fit has not used.
    """
    from wavesim_studies.field_trials import report as reports
    from wavesim_studies.field_trials import simulated_trial, ssu1, trial_comparison
    from wavesim_studies.field_trials.detection_files import write_trial
    from wavesim_studies.field_trials.medium_fit import fit_medium, fit_survey

    check_suffix(picture)
    check_writable(picture)
    trial, survey = ssu1.read(folder)
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LogError(f"cannot write to {out}: {error.strerror}") from None
    survey = fit_survey(trial, survey)
    recorded = trial_comparison.analyse(trial, survey, ssu1.TOWED)
    medium = fit_medium(trial, recorded.clocks, survey, ssu1.fit_span(trial))
    source = simulated_trial.TrialModel(trial, recorded.clocks, recorded.track, ssu1.TOWED, medium)
    simulated = []
    for number in range(seed, seed + runs):
        detections = simulated_trial.simulate(source, number)
        if out is not None:
            try:
                write_trial(out / f"simulated-{number}", detections)
            except OSError as error:
                raise LogError(f"cannot write to {out}: {error.strerror}") from None
        simulated.append(trial_comparison.analyse(detections, survey, ssu1.TOWED))
    yaps = ssu1.yaps_track(folder, trial)
    found = reports.TrialReport(
        survey,
        recorded,
        simulated,
        medium,
        trial_comparison.compare_residuals(recorded, simulated) if simulated else [],
        trial_comparison.compare_shares(recorded, simulated) if simulated else [],
        None if yaps is None else ssu1.yaps_distances(yaps, recorded.track, trial.gps),
    )
    values = found.values() | {"source": ssu1.LICENCE}
    if out is not None:
        try:
            (out / "trial.xml").write_text(simulated_trial.configuration(source, seed), encoding="utf-8")
            (out / "report.json").write_text(finite_json(values, 1) + "\n", encoding="utf-8")
        except OSError as error:
            raise LogError(f"cannot write to {out}: {error.strerror}") from None
    if picture is not None:
        reports.draw(found, picture)
    if as_json:
        echo(finite_json(values))
        return
    for line in found.lines():
        echo(line)
    echo("")
    echo(ssu1.LICENCE)
    if out is not None:
        echo(f"configuration: {out / 'trial.xml'}")
