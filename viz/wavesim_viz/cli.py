"""``wavesim plot``: pictures of a run."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the pictures; default: beside the log.")
def plot(log: Path, out: Path | None) -> None:
    """Draw the pictures of a run from its LOG."""
    from wavesim_viz.plots import draw

    for path in draw(log, out or log.parent):
        click.echo(path)


def commands() -> list[click.Command]:
    return [plot]
