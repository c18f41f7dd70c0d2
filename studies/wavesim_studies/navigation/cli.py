"""``wavesim nav``: a filter over a log's sensors, judged by the truth."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from wavesim_sdk.cli import json_option


@click.group()
def nav() -> None:
    """Navigation: the reference filter over logs."""


@nav.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--vehicle", "only", multiple=True, help="Whose log; all that have an IMU or AHRS without it. May be repeated."
)
@click.option(
    "--without", multiple=True, help="Type of instrument to leave out: imu, dvl, speedlog, ctd, pressure, ahrs, sound."
)
@click.option("--smooth", is_flag=True, help="The smoother instead of the filter.")
@click.option("--picture", type=click.Path(path_type=Path), help="PNG of tracks and errors.")
@json_option
def score(
    file: Path, only: tuple[str, ...], without: tuple[str, ...], smooth: bool, picture: Path | None, as_json: bool
) -> None:
    """Run the reference filter over what a log's instruments said, and compare it with the truth in the log.

    It begins at the true place (5 cm), and knows the configuration: mountings, accuracies, beacons (moored ones to 30 cm).
    """
    from wavesim_sdk.errors import LogError
    from wavesim_sdk.log import read
    from wavesim_studies.navigation import logs

    log = read(file)
    names = only or logs.vehicles(log)
    if not names:
        raise LogError(f"{file} has no vehicle with an IMU or an AHRS")
    found, voyages = {}, []
    for name in names:
        voyage = logs.voyage(log, name, without)
        track = voyage.run(smooth)
        found[name] = {**asdict(voyage.score(track)), "sensors": logs.counts(voyage, track)}
        voyages.append((voyage, track))
    if picture is not None:
        logs.draw(voyages, picture)
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    click.echo(f"{'':12}{'distance':>10}{'rms':>9}{'95 %':>9}{'final':>9}{'of way':>9}{'heading':>10}{'NEES (2)':>10}")
    for name, s in found.items():
        click.echo(
            f"{name:12}{s['distance']:8.0f} m{s['rms']:7.2f} m{s['p95']:7.2f} m{s['final']:7.2f} m{s['percent']:7.2f} %"
            f"{s['heading_rms'] * 57.29578:6.2f} deg{s['nees']:10.2f}"
        )
        for sensor, c in s["sensors"].items():
            click.echo(
                f"  {sensor:14}{c['taken']:8} taken{c['refused']:7} refused   NIS {c['nis']:.2f} of {c['numbers']:.0f}"
            )
