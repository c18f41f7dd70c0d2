"""Command-line option of every command that reads a configuration."""

from __future__ import annotations

from pathlib import Path

import click

from wavesim_world.file_access import FILES_VARIABLE, allow_files


def _allow(context: click.Context, _parameter: click.Parameter, folders: tuple[Path, ...]) -> None:
    context.with_resource(allow_files(*folders))


files_option = click.option(
    "--files",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    expose_value=False,
    callback=_allow,
    help="Allow the configuration to use files in FOLDER, in addition to those in its own folder. Repeatable. The "
    f"environment variable {FILES_VARIABLE} does the same.",
)
