"""Options and checks that several command groups share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

PICTURES = (".png", ".pdf", ".svg")

frame_option = click.option(
    "--frame",
    type=click.Choice(["enu", "ned"]),
    default="enu",
    show_default=True,
    help="Axes of a bag: enu (REP 103: ENU and FLU) or ned (NED and FRD).",
)


def check_suffix(file: Path | None, suffixes: Sequence[str] = PICTURES, option: str = "--picture") -> None:
    """Raise BadParameter if a file that will be written has another suffix than these."""
    if file is not None and file.suffix.lower() not in suffixes:
        raise click.BadParameter(f"'{file}' must end in one of {', '.join(suffixes)}", param_hint=option)
