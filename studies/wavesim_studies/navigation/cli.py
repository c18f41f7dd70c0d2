"""Commands in the ``wavesim nav`` group: run a filter over the sensor values of a log and score it against the true
states."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from wavesim_sdk.cli import json_option, whole
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.terminal_text import echo

PICTURES = (".png", ".pdf", ".svg")


@click.group()
def nav() -> None:
    """Run the reference navigation filter on logs."""


@nav.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--vehicle", "only", multiple=True, help="Vehicle to score; default: all vehicles with an IMU or AHRS. Repeatable."
)
@click.option(
    "--without",
    multiple=True,
    help="Instrument type to exclude: imu, dvl, speedlog, ctd, pressure, ahrs, sound. Repeatable.",
)
@click.option("--smooth", is_flag=True, help="Run the smoother instead of the filter.")
@click.option(
    "--picture",
    type=click.Path(path_type=Path),
    help="Write a plot of the tracks and errors to this file (.png, .pdf or .svg).",
)
@json_option
def score(
    file: Path, only: tuple[str, ...], without: tuple[str, ...], smooth: bool, picture: Path | None, as_json: bool
) -> None:
    """Score the reference filter on a log against the true track.

    The filter uses the measurements in the log. It starts within 5 cm of the true position. Sensor mounts,
    accuracies and beacon positions come from the configuration. The positions of moored beacons are known to
    within 30 cm.
    """
    from wavesim_sdk.errors import LogError
    from wavesim_sdk.log import read
    from wavesim_studies.navigation import logs

    if picture is not None and picture.suffix.lower() not in PICTURES:
        raise click.BadParameter(f"'{picture}' must end in one of {', '.join(PICTURES)}", param_hint="--picture")
    log = read(file)
    names = only or logs.vehicles(log)
    if not names:
        raise LogError(f"{file} has no vehicle with an IMU or an AHRS")
    found, voyages = {}, []
    for name in names:
        voyage = logs.estimation_case(log, name, without)
        if not as_json:  # a run can take long, and the first one compiles the filter
            echo(f"{name}: {voyage.time[-1] - voyage.time[0]:.0f} s, {len(voyage.rows)} measurements", err=True)
        track = voyage.run(smooth)
        found[name] = {**asdict(voyage.score(track)), "sensors": logs.counts(voyage, track)}
        voyages.append((voyage, track))
    if picture is not None:
        logs.draw(voyages, picture)
    if as_json:
        echo(json.dumps(found, indent=2))
    else:
        _show(found)
    whole(log)


def _show(found: dict[str, Any]) -> None:
    """Print the scores of vehicles as a table."""
    echo(f"{'':12}{'distance':>10}{'rms':>9}{'95 %':>9}{'final':>9}{'of dist.':>9}{'heading':>10}{'NEES (2)':>10}")
    for name, s in found.items():
        echo(
            f"{name:12}{s['distance']:8.0f} m{s['rms']:7.2f} m{s['p95']:7.2f} m{s['final']:7.2f} m{s['percent']:7.2f} %"
            f"{s['heading_rms'] * 57.29578:6.2f} deg{s['nees']:10.2f}"
        )
        for sensor, c in s["sensors"].items():
            echo(
                f"  {sensor:14}{c['taken']:8} accepted{c['refused']:7} rejected   NIS {c['nis']:.2f} of {c['numbers']:.0f}"
            )


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
def missions(folder: Path, count: int, seconds: float, seed: int) -> None:
    """Run random LAUV missions and add their logs to FOLDER.

    The logs are a dataset for `wavesim nav learn`.
    """
    from wavesim_server import compiling
    from wavesim_studies.navigation.training_missions import make_dataset

    compiling.ensure_compiled()
    for k, (name, part) in enumerate(make_dataset(folder, count, seconds, seed), start=1):
        echo(f"{k:5} of {count}  {name}  {part}")


@nav.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Write the trained network to this file (.npz).")
@click.option(
    "--epochs", default=60, show_default=True, type=click.IntRange(1, 10000), help="Number of training epochs."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Seed of the training.")
@json_option
def learn(folder: Path, out: Path | None, epochs: int, seed: int, as_json: bool) -> None:
    """Train learned dead reckoning on the dataset in FOLDER.

    `wavesim log export --dataset` and `wavesim nav missions` write such datasets. Each mission belongs to exactly
    one part: training, validation or test. The trained network and, for comparison, the reference filter are scored
    on the test missions.
    """
    from wavesim_studies.navigation import learned_dead_reckoning

    found = learned_dead_reckoning.learn(folder, epochs, seed, say=lambda text: echo(text, err=True))
    if out is not None:
        found["reckoner"].save(out)
    if as_json:
        report = {k: found[k] for k in ("missions", "summary", "seconds")}
        echo(json.dumps(report | {"rows": [asdict(r) for r in found["rows"]]}, indent=2))
        return
    parts = found["missions"]
    echo(
        f"trained on {parts['train']} missions in {found['seconds']:.0f} s; medians over {parts['test']} unseen missions:"
    )
    echo(f"{'':10}{'final':>10}{'of dist.':>10}{'rms':>10}{'of the filter':>16}{'velocity':>12}")
    for name, s in sorted(found["summary"].items(), key=lambda item: item[1]["rms"]):
        speed = f"{s['velocity']:8.3f} m/s" if s["velocity"] == s["velocity"] else ""
        echo(f"{name:10}{s['final']:8.1f} m{s['percent']:8.1f} %{s['rms']:8.1f} m{s['of_filter']:16.3f}{speed}")
